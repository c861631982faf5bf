/* What a credential may do: by its role, and the sandboxes that it is for. */


#include "ngx_http_sandbox.h"


static ngx_uint_t ngx_http_sandbox_role_endpoint(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);


const char *
ngx_http_sandbox_role_fault(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    const sb_token_t  *token;

    token = ctx->token;

    if (token == NULL) {
        /* what is open to all */
        return NULL;
    }

    if (token->role < SB_ROLE_OPERATOR
        && (!sb_op_viewer(ctx->op) || ngx_http_sandbox_role_endpoint(r, ctx)))
    {
        return "This operation needs a token with the role operator.";
    }

    if (!sb_token_allows(token, ctx->route.sandbox)) {
        return ctx->route.sandbox.len
               ? "The token is not for this sandbox."
               : "The token is for certain sandboxes only, and this operation "
                 "is about none.";
    }

    return NULL;
}


/* An address that is not rewritten is a way past us, where no role counts. */

static ngx_uint_t
ngx_http_sandbox_role_endpoint(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    char                          buf[64];
    size_t                        n;
    sb_str_t                      query, name, value;
    ngx_http_sandbox_loc_conf_t  *lcf;

    if (sb_op_index(ctx->op) != SB_OP_ENDPOINT_GET) {
        return 0;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->endpoints == NGX_HTTP_SANDBOX_ENDPOINTS_OFF
        || (ctx->route.port != SB_PORT_EXECD
            && ctx->route.port != SB_PORT_EGRESS))
    {
        return 1;
    }

    query = ctx->route.query;

    while (sb_query_next(&query, &name, &value)) {

        if (name.len > sizeof(buf)
            || sb_query_decode(buf, &n, name) != SB_OK
            || sb_eq(sb_str(buf, n), sb_lit("expires")))
        {
            return 1;
        }
    }

    return 0;
}
