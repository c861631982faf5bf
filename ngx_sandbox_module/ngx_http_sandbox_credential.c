/*
 * One credential of a request, held against the tokens.
 *
 * That costs a digest, and several for an endpoint token.  A client sends the
 * same one with every request of a connection, so the connection remembers the
 * last that was right; only who has shown it there gains by showing it again.
 */


#include "ngx_http_sandbox_tokens.h"


typedef struct {
    const sb_tokens_t    *tokens;       /* NULL: nothing is remembered */
    ngx_uint_t            generation;   /* of these */
    const sb_token_t     *row;          /* NULL: an endpoint token */
    sb_endpoint_token_t   endpoint;     /* points into claims */
    size_t                len;
    u_char                text[SB_ENDPOINT_TOKEN_MAX];
    char                  claims[SB_ENDPOINT_TOKEN_MAX];
} ngx_http_sandbox_shown_t;


static const sb_token_t *ngx_http_sandbox_token(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const sb_tokens_t *tokens, ngx_str_t *value,
    sb_endpoint_token_t *e);
static ngx_http_sandbox_shown_t *ngx_http_sandbox_shown(ngx_connection_t *c,
    ngx_uint_t create);
static void ngx_http_sandbox_shown_cleanup(void *data);
static void ngx_http_sandbox_endpoint_copy(sb_endpoint_token_t *to, char *buf,
    const sb_endpoint_token_t *from, const char *claims);


ngx_int_t
ngx_http_sandbox_credential(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    const sb_tokens_t *tokens, ngx_str_t *value)
{
    const sb_token_t              *row;
    sb_endpoint_token_t            e;
    ngx_http_sandbox_main_conf_t  *mcf;

    e.row = NULL;

    row = ngx_http_sandbox_token(r, ctx, tokens, value, &e);

    if (row == NULL && e.row) {

        mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

        if (!ctx->route.proxied || ctx->route_rc != SB_OK
            || !sb_eq(e.sandbox, ctx->route.sandbox)
            || e.port != ctx->route.port
            || ngx_http_sandbox_endpoint_is_gone(mcf, e.sandbox))
        {
            return NGX_DECLINED;
        }

        row = e.row;
    }

    if (row == NULL) {
        return NGX_DECLINED;
    }

    ctx->token = ngx_http_sandbox_tokens_keep(r, tokens, row);
    if (ctx->token == NULL) {
        return NGX_DECLINED;
    }

    if (e.row) {
        ctx->endpoint = e;
        ctx->endpoint.row = ctx->token;
    }

    ctx->authenticated = 1;

    return NGX_OK;
}


/* The row of a token; NULL for an endpoint token, of which `e` tells, and for
 * what is none or not valid. */

static const sb_token_t *
ngx_http_sandbox_token(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    const sb_tokens_t *tokens, ngx_str_t *value, sb_endpoint_token_t *e)
{
    char                      *buf;
    const sb_token_t          *row;
    ngx_http_sandbox_shown_t  *s;

    if (value->len >= SB_ENDPOINT_TOKEN_MAX) {
        return NULL;
    }

    /* the first request may be the only one */

    s = ngx_http_sandbox_shown(r->connection, r->connection->requests > 1);

    if (s && s->tokens == tokens
        && s->generation == ngx_http_sandbox_tokens_generation(tokens)
        && s->len == value->len
        && sb_equal_ct(s->text, value->data, value->len))
    {
        row = s->row ? s->row : s->endpoint.row;

        if (row->expires_us && row->expires_us <= ctx->started_us) {
            return NULL;
        }

        if (s->row) {
            return row;
        }

        buf = ngx_pnalloc(r->pool, SB_ENDPOINT_TOKEN_MAX);
        if (buf) {
            ngx_http_sandbox_endpoint_copy(e, buf, &s->endpoint, s->claims);
        }

        return NULL;
    }

    buf = NULL;
    row = sb_token_check(tokens, ngx_http_sandbox_str(value), ctx->started_us);

    if (row == NULL) {

        if (!ctx->route.proxied || ctx->route_rc != SB_OK) {
            return NULL;
        }

        buf = ngx_pnalloc(r->pool, SB_ENDPOINT_TOKEN_MAX);

        if (buf == NULL
            || sb_endpoint_token_check(e, tokens, ngx_http_sandbox_str(value),
                                       ctx->started_us, buf)
               != SB_OK)
        {
            e->row = NULL;
            return NULL;
        }
    }

    if (s) {
        s->tokens = tokens;
        s->generation = ngx_http_sandbox_tokens_generation(tokens);
        s->row = row;
        s->len = value->len;
        ngx_memcpy(s->text, value->data, value->len);

        if (row == NULL) {
            ngx_http_sandbox_endpoint_copy(&s->endpoint, s->claims, e, buf);
        }
    }

    return row;
}


static ngx_http_sandbox_shown_t *
ngx_http_sandbox_shown(ngx_connection_t *c, ngx_uint_t create)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_sandbox_shown_t  *s;

    for (cln = c->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_sandbox_shown_cleanup) {
            return cln->data;
        }
    }

    if (!create) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(c->pool, sizeof(ngx_http_sandbox_shown_t));
    if (cln == NULL) {
        /* it is checked every time, then */
        return NULL;
    }

    cln->handler = ngx_http_sandbox_shown_cleanup;

    s = cln->data;
    s->tokens = NULL;

    return s;
}


static void
ngx_http_sandbox_shown_cleanup(void *data)
{
    explicit_bzero(data, sizeof(ngx_http_sandbox_shown_t));
}


/* Requests of one connection may run side by side: each has its own copy. */

static void
ngx_http_sandbox_endpoint_copy(sb_endpoint_token_t *to, char *buf,
    const sb_endpoint_token_t *from, const char *claims)
{
    *to = *from;

    ngx_memcpy(buf, claims, SB_ENDPOINT_TOKEN_MAX);

    to->sandbox.data = buf + (from->sandbox.data - claims);
    to->actor_type.data = buf + (from->actor_type.data - claims);
    to->actor_id.data = buf + (from->actor_id.data - claims);
}
