/* Credentials in what is recorded (ngx_http_sandbox_secret.h). */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_secret.h"


static void ngx_http_sandbox_secret_list(ngx_http_sandbox_ctx_t *ctx,
    sb_secrets_t *s);
static void ngx_http_sandbox_secret_count(ngx_http_sandbox_ctx_t *ctx,
    size_t n);


/*
 * A credential of any location counts in all of them: one that is stored is
 * known to whoever may read the history.
 */

char *
ngx_http_sandbox_secret_conf(ngx_conf_t *cf, ngx_http_sandbox_loc_conf_t *lcf)
{
    sb_buf_t                       json;
    ngx_uint_t                     i;
    sb_secret_set_t               *set;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (mcf->secrets == NULL) {
        mcf->secrets = ngx_array_create(cf->pool, 2, sizeof(sb_secret_set_t));
        if (mcf->secrets == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    set = mcf->secrets->elts;

    for (i = 0; i < mcf->secrets->nelts; i++) {
        if (set[i].tokens == lcf->tokens
            && set[i].key.data == (char *) lcf->api_key.data)
        {
            return NGX_CONF_OK;
        }
    }

    set = ngx_array_push(mcf->secrets);
    if (set == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(set, sizeof(sb_secret_set_t));

    set->tokens = lcf->tokens;
    set->key = ngx_http_sandbox_str(&lcf->api_key);

    ngx_memzero(&json, sizeof(sb_buf_t));
    json.max = 2 * SB_SECRET_KEY + 2;

    json.data = ngx_pnalloc(cf->pool, json.max);
    if (json.data == NULL) {
        return NGX_CONF_ERROR;
    }

    json.cap = json.max;

    /* in quotes; nothing in a key needs more than one "\" */

    if (sb_json_write_str(&json, set->key) != SB_OK) {
        return NGX_CONF_ERROR;
    }

    if (json.len != set->key.len + 2) {
        set->key_json = sb_str(json.data + 1, json.len - 2);
    }

    return NGX_CONF_OK;
}


/* What was a credential when the operation began is masked until its end: so no
 * clock has to be read for every piece. */

static void
ngx_http_sandbox_secret_list(ngx_http_sandbox_ctx_t *ctx, sb_secrets_t *s)
{
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(ctx->request, ngx_http_sandbox_module);

    s->sets = mcf->secrets ? mcf->secrets->elts : NULL;
    s->n = mcf->secrets ? mcf->secrets->nelts : 0;
}


static void
ngx_http_sandbox_secret_count(ngx_http_sandbox_ctx_t *ctx, size_t n)
{
    if (n) {
        ctx->redacted += n;
        ngx_http_sandbox_metric_add(REDACTED, n);
    }
}


void
ngx_http_sandbox_secret_mask(ngx_http_sandbox_ctx_t *ctx, u_char *p, size_t n)
{
    sb_secrets_t  s;

    ngx_http_sandbox_secret_list(ctx, &s);

    ngx_http_sandbox_secret_count(ctx, sb_secrets_mask(&s, (char *) p, n,
                                                       ctx->started_us));
}


void
ngx_http_sandbox_secret_named(ngx_http_sandbox_ctx_t *ctx, u_char *p, size_t n)
{
    ngx_http_sandbox_secret_count(ctx, sb_secrets_named((char *) p, n));
}


void
ngx_http_sandbox_secret_frame(ngx_http_sandbox_ctx_t *ctx, u_char *frame,
    size_t len)
{
    sb_secrets_t  s;

    ngx_http_sandbox_secret_list(ctx, &s);

    ngx_http_sandbox_secret_count(ctx, sb_secrets_frame(&s, frame, len,
                                                        ctx->started_us));
}


size_t
ngx_http_sandbox_secret_begin(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_tail_t *tail, u_char *buf)
{
    if (tail == NULL) {
        return 0;
    }

    ngx_memcpy(buf, tail->data, tail->len);

    return tail->len;
}


size_t
ngx_http_sandbox_secret_end(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_tail_t **tail, u_char *buf, size_t n, ngx_uint_t last,
    size_t *from)
{
    size_t        shown, open, until;
    sb_secrets_t  s;

    ngx_http_sandbox_secret_list(ctx, &s);

    ngx_http_sandbox_secret_count(ctx, sb_secrets_mask(&s, (char *) buf, n,
                                                       ctx->started_us));

    shown = *tail ? (*tail)->shown : 0;
    *from = shown;

    open = last ? 0 : sb_secrets_open(&s, sb_str(buf, n));

    if (open && *tail == NULL) {
        *tail = ngx_palloc(ctx->request->pool, sizeof(ngx_http_sandbox_tail_t));

        if (*tail == NULL) {
            open = 0;
        }
    }

    /* so little of one gives nothing away, and who watches need not wait */

    until = open < SB_SECRET_SHOWN ? n : n - open;

    if (until < shown) {
        until = shown;
    }

    if (*tail) {
        (*tail)->len = open;
        (*tail)->shown = until > n - open ? until - (n - open) : 0;
        ngx_memcpy((*tail)->data, buf + n - open, open);
    }

    return until - shown;
}
