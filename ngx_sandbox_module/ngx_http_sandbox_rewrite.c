/*
 * The endpoints answer, the one body that the gateway changes (design 6).
 *
 * SDKs talk to the address in it, past us, unless it is ours.  So the answer is
 * held, header and body, until it is whole; "endpoint" then names our own
 * proxy route, and "headers" hands out a token for it, which SDKs send along.
 * All other members pass as they are.  What cannot be rewritten passes
 * unchanged and is said so in the log.
 */


#include "ngx_http_sandbox.h"
#include "json.h"


#define NGX_HTTP_SANDBOX_REWRITE_MAX    (64 * 1024)
#define NGX_HTTP_SANDBOX_REWRITE_DEPTH  32


struct ngx_http_sandbox_rewrite_s {
    u_char       *body;
    size_t        size;
    size_t        len;
    ngx_uint_t    passing;  /* held no longer */
    ngx_uint_t    changes;  /* else it is only read */
    ngx_uint_t    teaches;  /* it names the sandbox, not the server proxy */
};


static ngx_int_t ngx_http_sandbox_rewrite_query(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t *teaches);
static ngx_uint_t ngx_http_sandbox_rewrite_json(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_rewrite_keep(ngx_http_request_t *r,
    ngx_http_sandbox_rewrite_t *rw, ngx_buf_t *b);
static ngx_int_t ngx_http_sandbox_rewrite_unchanged(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_chain_t *in, const char *why);
static ngx_int_t ngx_http_sandbox_rewrite_send(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *body);
static const char *ngx_http_sandbox_rewrite_make(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *body);
static sb_rc_t ngx_http_sandbox_rewrite_object(sb_buf_t *out,
    const sb_jv_t *root, sb_str_t endpoint, sb_str_t token);
static sb_rc_t ngx_http_sandbox_rewrite_headers(sb_buf_t *out,
    const sb_jv_t *headers, sb_str_t token);
static sb_rc_t ngx_http_sandbox_rewrite_value(sb_buf_t *out, const sb_jv_t *v);
static sb_rc_t ngx_http_sandbox_rewrite_key(sb_buf_t *out, ngx_uint_t *n,
    sb_str_t key);
static ngx_int_t ngx_http_sandbox_rewrite_endpoint(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *endpoint);
static void ngx_http_sandbox_rewrite_token(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, char *token);
static ngx_int_t ngx_http_sandbox_rewrite_fields(ngx_http_request_t *r);


static ngx_str_t  ngx_http_sandbox_rewrite_cleared[] = {
    ngx_string("Content-MD5"),
    ngx_string("Digest"),
    ngx_string("Content-Digest"),
    ngx_string("Repr-Digest"),
    ngx_string("Cache-Control"),
    ngx_null_string
};


ngx_int_t
ngx_http_sandbox_rewrite_header(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    off_t                         len;
    ngx_uint_t                    changes, teaches;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->endpoints == NGX_HTTP_SANDBOX_ENDPOINTS_OFF
        || r != r->main
        || r->header_only
        || r->headers_out.status != NGX_HTTP_OK)
    {
        return NGX_DECLINED;
    }

    if (ngx_http_sandbox_rewrite_query(ctx, &teaches) != NGX_OK) {

        /* the signature in the address would not survive a change of it */

        ctx->reason = "bypass_signed";
        return NGX_DECLINED;
    }

    changes = lcf->endpoints == NGX_HTTP_SANDBOX_ENDPOINTS_ALL
              || ctx->route.port == SB_PORT_EXECD
              || ctx->route.port == SB_PORT_EGRESS;

    len = r->headers_out.content_length_n;

    if (len == 0 || (!changes && !teaches)) {
        return NGX_DECLINED;
    }

    if (len > NGX_HTTP_SANDBOX_REWRITE_MAX
        || (r->headers_out.content_encoding
            && r->headers_out.content_encoding->value.len)
        || !ngx_http_sandbox_rewrite_json(r))
    {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "sandbox %s: the endpoints answer passes unchanged: it "
                      "is too long, encoded or not JSON", ctx->id_text);
        return NGX_DECLINED;
    }

    ctx->rewrite = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_rewrite_t));
    if (ctx->rewrite == NULL) {
        return NGX_ERROR;
    }

    ctx->rewrite->changes = changes;
    ctx->rewrite->teaches = teaches;
    ctx->rewrite->size = len < 0 ? 4096 : (size_t) len;

    ctx->rewrite->body = ngx_pnalloc(r->pool, ctx->rewrite->size);
    if (ctx->rewrite->body == NULL) {
        ctx->rewrite = NULL;
        return NGX_ERROR;
    }

    r->filter_need_in_memory = 1;

    return NGX_OK;
}


/*
 * NGX_DECLINED for a signed endpoint.  FastAPI takes the last value of a
 * parameter and spells true in six ways; what it would not accept has not led
 * to this answer, but does not teach either.
 */

static ngx_int_t
ngx_http_sandbox_rewrite_query(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t *teaches)
{
    char          *p;
    size_t         i, len;
    sb_str_t       query, name, value, text;
    static const sb_str_t  no[] = {
        { "false", 5 }, { "0", 1 }, { "no", 2 }, { "off", 3 }, { "f", 1 },
        { "n", 1 }
    };

    char  buf[64];

    *teaches = 1;
    query = ctx->route.query;

    while (sb_query_next(&query, &name, &value)) {

        p = buf;

        /* both names are shorter than this even when all of it is escaped */

        if (name.len > sizeof(buf)) {
            continue;
        }

        if (sb_query_decode(p, &len, name) != SB_OK) {
            *teaches = 0;
            continue;
        }

        text = sb_str(p, len);

        if (sb_eq(text, sb_lit("expires"))) {
            return NGX_DECLINED;
        }

        if (!sb_eq(text, sb_lit("use_server_proxy"))) {
            continue;
        }

        *teaches = 0;

        if (value.len > sizeof(buf)
            || sb_query_decode(p, &len, value) != SB_OK)
        {
            continue;
        }

        for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
            if (sb_ieq(sb_str(p, len), no[i])) {
                *teaches = 1;
                break;
            }
        }
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sandbox_rewrite_json(ngx_http_request_t *r)
{
    size_t      n;
    ngx_str_t  *type;

    type = &r->headers_out.content_type;
    n = sizeof("application/json") - 1;

    return type->len >= n
           && ngx_strncasecmp(type->data, (u_char *) "application/json", n)
              == 0
           && (type->len == n || type->data[n] == ';' || type->data[n] == ' ');
}


ngx_int_t
ngx_http_sandbox_rewrite_body(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_chain_t *in)
{
    ngx_int_t                    rc;
    ngx_str_t                    body;
    const char                  *why;
    ngx_chain_t                 *cl;
    ngx_http_sandbox_rewrite_t  *rw;

    rw = ctx->rewrite;

    /* subrequests, which others may have added, are not held */

    if (rw->passing || r != r->main) {
        return ngx_http_sandbox_next_body_filter(r, in);
    }

    for (cl = in; cl; cl = cl->next) {

        if (rw->len + (size_t) ngx_buf_size(cl->buf)
            > NGX_HTTP_SANDBOX_REWRITE_MAX)
        {
            return ngx_http_sandbox_rewrite_unchanged(r, ctx, cl,
                                                      "it is too long");
        }

        rc = ngx_http_sandbox_rewrite_keep(r, rw, cl->buf);
        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        if (cl->buf->last_buf || cl->buf->last_in_chain) {

            why = ngx_http_sandbox_rewrite_make(r, ctx, &body);

            if (why) {
                return ngx_http_sandbox_rewrite_unchanged(r, ctx, cl, why);
            }

            return ngx_http_sandbox_rewrite_send(r, ctx, &body);
        }
    }

    if (in && r->upstream && r->upstream->cleanup == NULL) {

        /*
         * upstream has closed in the middle: nginx only flushes now and will
         * close the connection; what came is not ours to complete
         */

        return ngx_http_sandbox_rewrite_unchanged(r, ctx, NULL, "it was cut");
    }

    /* nothing was sent yet, so there is nothing to be flushed either */

    return NGX_OK;
}


/* Copies a buffer of any kind and marks it as sent. */

static ngx_int_t
ngx_http_sandbox_rewrite_keep(ngx_http_request_t *r,
    ngx_http_sandbox_rewrite_t *rw, ngx_buf_t *b)
{
    size_t    size;
    u_char   *p;
    ssize_t   n;

    size = (size_t) ngx_buf_size(b);

    if (size > rw->size - rw->len) {

        p = ngx_pnalloc(r->pool, NGX_HTTP_SANDBOX_REWRITE_MAX);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(p, rw->body, rw->len);
        rw->body = p;
        rw->size = NGX_HTTP_SANDBOX_REWRITE_MAX;
    }

    if (ngx_buf_in_memory(b)) {
        ngx_memcpy(rw->body + rw->len, b->pos, size);
        b->pos = b->last;

    } else if (b->in_file) {

        n = ngx_read_file(b->file, rw->body + rw->len, size, b->file_pos);

        if (n == NGX_ERROR || (size_t) n != size) {
            return NGX_ERROR;
        }
    }

    if (b->in_file) {
        b->file_pos = b->file_last;
    }

    rw->len += size;

    return NGX_OK;
}


/*
 * Passes on what is held and all that follows: `in` goes on with the first
 * buffer that was not kept, or the last one, which is empty by now.
 */

static ngx_int_t
ngx_http_sandbox_rewrite_unchanged(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_chain_t *in, const char *why)
{
    ngx_int_t                    rc;
    ngx_buf_t                   *b;
    ngx_chain_t                 *cl;
    ngx_http_sandbox_rewrite_t  *rw;

    rw = ctx->rewrite;
    rw->passing = 1;

    if (rw->changes) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "sandbox %s: the endpoints answer passes unchanged: %s",
                      ctx->id_text, why);
    }

    rc = ngx_http_sandbox_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    if (rw->len) {

        b = ngx_calloc_buf(r->pool);
        cl = ngx_alloc_chain_link(r->pool);

        if (b == NULL || cl == NULL) {
            return NGX_ERROR;
        }

        b->pos = rw->body;
        b->last = rw->body + rw->len;
        b->memory = 1;
        b->flush = 1;

        cl->buf = b;
        cl->next = in;
        in = cl;
    }

    return ngx_http_sandbox_next_body_filter(r, in);
}


static ngx_int_t
ngx_http_sandbox_rewrite_send(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *body)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    ctx->rewrite->passing = 1;

    if (ngx_http_sandbox_rewrite_fields(r) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);

    r->headers_out.content_length_n = body->len;
    r->allow_ranges = 0;

    rc = ngx_http_sandbox_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = body->data;
    b->last = body->data + body->len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_sandbox_next_body_filter(r, &out);
}


/*
 * Header lines that spoke of the body as it was are taken out; no cache may
 * keep the one with the token in it.
 */

static ngx_int_t
ngx_http_sandbox_rewrite_fields(ngx_http_request_t *r)
{
    ngx_str_t        *name;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_out.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        for (name = ngx_http_sandbox_rewrite_cleared; name->len; name++) {

            if (h[i].key.len == name->len
                && ngx_strncasecmp(h[i].key.data, name->data, name->len) == 0)
            {
                h[i].hash = 0;
            }
        }
    }

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    ngx_str_set(&h->key, "Cache-Control");
    ngx_str_set(&h->value, "no-store");
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    return NGX_OK;
}


/* Learns from the answer and makes the new body in r->pool.  Returns NULL, or
 * why it cannot be made. */

static const char *
ngx_http_sandbox_rewrite_make(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *body)
{
    sb_rc_t                        rc;
    sb_buf_t                       out;
    ngx_str_t                      held, endpoint;
    sb_jdoc_t                     *doc;
    const char                    *why;
    const sb_jv_t                 *root;
    ngx_http_sandbox_rewrite_t    *rw;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    char  token[SB_ENDPOINT_TOKEN_MAX];

    static const sb_json_limits_t  limits = {
        NGX_HTTP_SANDBOX_REWRITE_DEPTH, NGX_HTTP_SANDBOX_REWRITE_MAX
    };

    rw = ctx->rewrite;

    held.data = rw->body;
    held.len = rw->len;

    doc = sb_jdoc_parse(ngx_http_sandbox_str(&held), &limits, NULL);

    if (doc == NULL) {
        return "it is not JSON";
    }

    ngx_memzero(&out, sizeof(sb_buf_t));
    out.max = 2 * NGX_HTTP_SANDBOX_REWRITE_MAX;

    why = NULL;
    root = sb_jdoc_root(doc);

    if (root->kind != SB_JSON_OPEN_OBJECT
        || sb_jv_str(root, "endpoint").len == 0)
    {
        why = "it is no object with an \"endpoint\"";
        goto done;
    }

    if (rw->teaches) {
        mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);
        lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

        ngx_http_sandbox_endpoint_learn(mcf, lcf, r->connection->log,
                                        ctx->route.sandbox, ctx->route.port,
                                        &held);
    }

    if (!rw->changes) {
        why = "it is for a port whose answers are not rewritten";
        goto done;
    }

    switch (ngx_http_sandbox_rewrite_endpoint(r, ctx, &endpoint)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        why = "the request named no Host and there is no sandbox_public";
        goto done;

    default:
        why = "no memory";
        goto done;
    }

    ngx_http_sandbox_rewrite_token(r, ctx, token);

    rc = ngx_http_sandbox_rewrite_object(&out, root,
                                         ngx_http_sandbox_str(&endpoint),
                                         sb_str(token, ngx_strlen(token)));

    if (rc == SB_OK) {
        body->len = out.len;
        body->data = ngx_pnalloc(r->pool, out.len);
    }

    if (rc != SB_OK || body->data == NULL) {
        why = rc == SB_LIMIT ? "it would become too long" : "no memory";
        goto done;
    }

    ngx_memcpy(body->data, out.data, out.len);

done:

    ngx_explicit_memzero(token, sizeof(token));

    sb_buf_free(&out);
    sb_jdoc_free(doc);

    return why;
}


static sb_rc_t
ngx_http_sandbox_rewrite_object(sb_buf_t *out, const sb_jv_t *root,
    sb_str_t endpoint, sb_str_t token)
{
    sb_rc_t         rc;
    ngx_uint_t      n, named;
    const sb_jv_t  *v, *headers;

    n = 0;
    named = 0;
    headers = sb_jv_get(root, "headers");

    rc = sb_buf_add_c(out, '{');

    for (v = root->child; v && rc == SB_OK; v = v->next) {

        if (sb_eq(v->key, sb_lit("endpoint"))) {

            /* readers differ in which of two they take: there is one */

            if (named++) {
                continue;
            }

            rc = ngx_http_sandbox_rewrite_key(out, &n, v->key);

            if (rc == SB_OK) {
                rc = sb_json_write_str(out, endpoint);
            }

            continue;
        }

        if (sb_eq(v->key, sb_lit("headers"))) {

            if (v != headers) {
                continue;
            }

            rc = ngx_http_sandbox_rewrite_key(out, &n, v->key);

            if (rc == SB_OK) {
                rc = ngx_http_sandbox_rewrite_headers(out, v, token);
            }

            continue;
        }

        rc = ngx_http_sandbox_rewrite_key(out, &n, v->key);

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_rewrite_value(out, v);
        }
    }

    if (rc == SB_OK && headers == NULL) {
        rc = ngx_http_sandbox_rewrite_key(out, &n, sb_lit("headers"));

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_rewrite_headers(out, NULL, token);
        }
    }

    return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
}


static sb_rc_t
ngx_http_sandbox_rewrite_headers(sb_buf_t *out, const sb_jv_t *headers,
    sb_str_t token)
{
    sb_rc_t         rc;
    ngx_uint_t      n;
    const sb_jv_t  *v;

    n = 0;
    rc = sb_buf_add_c(out, '{');

    /* upstream's own; anything but an object is as good as none */

    v = (headers && headers->kind == SB_JSON_OPEN_OBJECT) ? headers->child
                                                          : NULL;

    for ( /* void */ ; v && rc == SB_OK; v = v->next) {

        if (token.len && sb_ieq(v->key, sb_lit("OPEN-SANDBOX-API-KEY"))) {
            continue;
        }

        rc = ngx_http_sandbox_rewrite_key(out, &n, v->key);

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_rewrite_value(out, v);
        }
    }

    if (rc == SB_OK && token.len) {
        rc = ngx_http_sandbox_rewrite_key(out, &n,
                                          sb_lit("OPEN-SANDBOX-API-KEY"));

        if (rc == SB_OK) {
            rc = sb_json_write_str(out, token);
        }
    }

    return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
}


/* A value as it was, members in their order; as deep as the parser allows. */

static sb_rc_t
ngx_http_sandbox_rewrite_value(sb_buf_t *out, const sb_jv_t *v)
{
    sb_rc_t         rc;
    ngx_uint_t      n;
    const sb_jv_t  *c;

    switch (v->kind) {

    case SB_JSON_NULL:
        return sb_buf_add_str(out, sb_lit("null"));

    case SB_JSON_TRUE:
        return sb_buf_add_str(out, sb_lit("true"));

    case SB_JSON_FALSE:
        return sb_buf_add_str(out, sb_lit("false"));

    case SB_JSON_NUMBER:
        return sb_buf_add_str(out, v->text);

    case SB_JSON_STRING:
        return sb_json_write_str(out, v->text);

    case SB_JSON_OPEN_OBJECT:

        n = 0;
        rc = sb_buf_add_c(out, '{');

        for (c = v->child; c && rc == SB_OK; c = c->next) {
            rc = ngx_http_sandbox_rewrite_key(out, &n, c->key);

            if (rc == SB_OK) {
                rc = ngx_http_sandbox_rewrite_value(out, c);
            }
        }

        return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;

    default: /* SB_JSON_OPEN_ARRAY */

        rc = sb_buf_add_c(out, '[');

        for (c = v->child; c && rc == SB_OK; c = c->next) {

            if (c != v->child) {
                rc = sb_buf_add_c(out, ',');
            }

            if (rc == SB_OK) {
                rc = ngx_http_sandbox_rewrite_value(out, c);
            }
        }

        return rc == SB_OK ? sb_buf_add_c(out, ']') : rc;
    }
}


static sb_rc_t
ngx_http_sandbox_rewrite_key(sb_buf_t *out, ngx_uint_t *n, sb_str_t key)
{
    sb_rc_t  rc;

    rc = (*n)++ ? sb_buf_add_c(out, ',') : SB_OK;

    if (rc == SB_OK) {
        rc = sb_json_write_str(out, key);
    }

    return rc == SB_OK ? sb_buf_add_c(out, ':') : rc;
}


/* {public}/sandboxes/{id}/proxy/{port}; NGX_DECLINED when we do not know how
 * the client calls us. */

static ngx_int_t
ngx_http_sandbox_rewrite_endpoint(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *endpoint)
{
    u_char                       *p;
    ngx_str_t                     public;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->public.len) {
        public = lcf->public;

    } else if (r->headers_in.host && r->headers_in.host->value.len) {
        public = r->headers_in.host->value;

    } else {
        return NGX_DECLINED;
    }

    while (public.len && public.data[public.len - 1] == '/') {
        public.len--;
    }

    p = ngx_pnalloc(r->pool, public.len + sizeof("/sandboxes//proxy/") - 1
                             + 3 * ctx->route.sandbox.len + NGX_INT32_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    endpoint->data = p;

    p = ngx_cpymem(p, public.data, public.len);
    p = ngx_cpymem(p, "/sandboxes/", sizeof("/sandboxes/") - 1);
    p = (u_char *) ngx_escape_uri(p, (u_char *) ctx->route.sandbox.data,
                                  ctx->route.sandbox.len,
                                  NGX_ESCAPE_URI_COMPONENT);
    p = ngx_sprintf(p, "/proxy/%uD", ctx->route.port);

    endpoint->len = p - endpoint->data;

    return NGX_OK;
}


/* The token of who asked, for this sandbox and port; empty when nobody's. */

static void
ngx_http_sandbox_rewrite_token(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, char *token)
{
    sb_rc_t              rc;
    sb_endpoint_token_t  e;

    token[0] = '\0';

    if (ctx->token == NULL) {
        return;
    }

    e.sandbox = ctx->route.sandbox;
    e.port = ctx->route.port;
    e.actor_type = ngx_http_sandbox_str(&ctx->actor_type);
    e.actor_id = ngx_http_sandbox_str(&ctx->actor_id);
    e.row = ctx->token;

    rc = sb_endpoint_token_make(token, &e);

    if (rc == SB_LIMIT) {

        /* still gated and recorded, under the name of the credential */

        e.actor_type = sb_str("", 0);
        e.actor_id = sb_str("", 0);

        rc = sb_endpoint_token_make(token, &e);
    }

    if (rc != SB_OK) {
        token[0] = '\0';

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "sandbox %s: no endpoint token could be made: the id of "
                      "the sandbox is too long, or there is no memory",
                      ctx->id_text);
    }
}
