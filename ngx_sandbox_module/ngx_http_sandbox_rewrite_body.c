/*
 * The new endpoints answer (design 6): all that upstream said, but "endpoint"
 * names our own proxy route and "headers" hands out a token for it.
 */


#include "ngx_http_sandbox_rewrite.h"
#include "json.h"


#define NGX_HTTP_SANDBOX_REWRITE_DEPTH  32


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


const char *
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

    if (ctx->token == NULL || ctx->session.len) {
        /* a session comes along by itself, and may be less than its token */
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
