/*
 * The endpoints answer, the one body that the gateway changes (design 6).
 *
 * SDKs talk to the address in it, past us, unless it is ours.  So the answer is
 * held, header and body, until it is whole; "endpoint" then names our own
 * proxy route, and "headers" hands out a token for it, which SDKs send along.
 * All other members pass as they are.  What cannot be rewritten passes
 * unchanged and is said so in the log.
 */


#include "ngx_http_sandbox_rewrite.h"
#include "ngx_http_sandbox_metrics.h"


static ngx_uint_t ngx_http_sandbox_rewrite_changes(
    ngx_http_sandbox_loc_conf_t *lcf, ngx_http_sandbox_ctx_t *ctx);
static ngx_int_t ngx_http_sandbox_rewrite_query(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t *teaches);
static ngx_uint_t ngx_http_sandbox_rewrite_json(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_rewrite_keep(ngx_http_request_t *r,
    ngx_http_sandbox_rewrite_t *rw, ngx_buf_t *b);
static ngx_int_t ngx_http_sandbox_rewrite_unchanged(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_chain_t *in, const char *why);
static ngx_int_t ngx_http_sandbox_rewrite_send(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *body);
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

    changes = ngx_http_sandbox_rewrite_changes(lcf, ctx);

    len = r->headers_out.content_length_n;

    if (len == 0 || (!changes && !teaches)) {
        return NGX_DECLINED;
    }

    if (len > NGX_HTTP_SANDBOX_REWRITE_MAX
        || (r->headers_out.content_encoding
            && r->headers_out.content_encoding->value.len)
        || !ngx_http_sandbox_rewrite_json(r))
    {
        if (changes) {
            ngx_http_sandbox_metric_add(ENDPOINTS_PASSED, 1);
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "sandbox %s: the endpoints answer passes unchanged: "
                          "it is too long, encoded or not JSON", ctx->id_text);
        }

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


const char *
ngx_http_sandbox_rewrite_fault(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                    teaches;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    /* a signed address passes as it is */

    if (sb_op_index(ctx->op) != SB_OP_ENDPOINT_GET
        || ngx_http_sandbox_rewrite_query(ctx, &teaches) != NGX_OK
        || !ngx_http_sandbox_rewrite_changes(lcf, ctx)
        || lcf->public.len
        || (r->headers_in.host && r->headers_in.host->value.len))
    {
        return NULL;
    }

    /* unchanged, the answer would be a way past us */

    return "The answer would name an address of this gateway, which neither a "
           "Host in the request nor sandbox_public tells.";
}


static ngx_uint_t
ngx_http_sandbox_rewrite_changes(ngx_http_sandbox_loc_conf_t *lcf,
    ngx_http_sandbox_ctx_t *ctx)
{
    return lcf->endpoints == NGX_HTTP_SANDBOX_ENDPOINTS_ALL
           || (lcf->endpoints != NGX_HTTP_SANDBOX_ENDPOINTS_OFF
               && (ctx->route.port == SB_PORT_EXECD
                   || ctx->route.port == SB_PORT_EGRESS));
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
        ngx_http_sandbox_metric_add(ENDPOINTS_PASSED, 1);
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
