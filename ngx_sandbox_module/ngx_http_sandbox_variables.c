/* The module's variables. */


#include "ngx_http_sandbox_policy.h"
#include "ngx_http_sandbox_lock.h"


typedef enum {
    NGX_HTTP_SANDBOX_VAR_ID = 0,
    NGX_HTTP_SANDBOX_VAR_OPERATION,
    NGX_HTTP_SANDBOX_VAR_OPERATION_ID,
    NGX_HTTP_SANDBOX_VAR_PORT,
    NGX_HTTP_SANDBOX_VAR_ACTOR_ID,
    NGX_HTTP_SANDBOX_VAR_STATUS,
    NGX_HTTP_SANDBOX_VAR_VERDICT,
    NGX_HTTP_SANDBOX_VAR_RULE,
    NGX_HTTP_SANDBOX_VAR_LOCK_WAIT,
    NGX_HTTP_SANDBOX_VAR_UPSTREAM_URI,
    NGX_HTTP_SANDBOX_VAR_UPSTREAM_HOST,
    NGX_HTTP_SANDBOX_VAR_CONNECTION
} ngx_http_sandbox_variable_e;


static ngx_int_t ngx_http_sandbox_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


static ngx_http_variable_t  ngx_http_sandbox_variables[] = {

    { ngx_string("sandbox_id"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_operation"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_OPERATION, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_operation_id"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_OPERATION_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_port"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_PORT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_actor_id"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_ACTOR_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_status"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_verdict"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_VERDICT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_rule"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_RULE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_lock_wait"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_LOCK_WAIT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_upstream_uri"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_UPSTREAM_URI, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_upstream_host"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_UPSTREAM_HOST, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sandbox_connection"), NULL, ngx_http_sandbox_variable,
      NGX_HTTP_SANDBOX_VAR_CONNECTION, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_sandbox_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_sandbox_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char                  *p;
    ngx_str_t                s, rule;
    ngx_http_sandbox_ctx_t  *ctx;

    ctx = ngx_http_sandbox_get_ctx(r);

    ngx_str_null(&s);

    if (ctx == NULL) {

        if (data == NGX_HTTP_SANDBOX_VAR_UPSTREAM_URI) {
            s = r->unparsed_uri;
        }

    } else {

        switch (data) {

        case NGX_HTTP_SANDBOX_VAR_ID:
            s.data = (u_char *) ctx->route.sandbox.data;
            s.len = ctx->route.sandbox.len;
            break;

        case NGX_HTTP_SANDBOX_VAR_OPERATION:
            s.data = (u_char *) ctx->op->name;
            s.len = ngx_strlen(ctx->op->name);
            break;

        case NGX_HTTP_SANDBOX_VAR_OPERATION_ID:
            s.data = ctx->id_text;
            s.len = SB_UUID_LEN;
            break;

        case NGX_HTTP_SANDBOX_VAR_PORT:

            if (ctx->route.port) {
                p = ngx_pnalloc(r->pool, NGX_INT32_LEN);
                if (p == NULL) {
                    return NGX_ERROR;
                }

                s.data = p;
                s.len = ngx_sprintf(p, "%uD", ctx->route.port) - p;
            }

            break;

        case NGX_HTTP_SANDBOX_VAR_ACTOR_ID:
            s = ctx->actor_id;
            break;

        case NGX_HTTP_SANDBOX_VAR_STATUS:

            s.data = (u_char *) (ctx->status ? ctx->status : "started");
            s.len = ngx_strlen(s.data);
            break;

        case NGX_HTTP_SANDBOX_VAR_VERDICT:
            ngx_http_sandbox_policy_text(ctx, &s, &rule);
            break;

        case NGX_HTTP_SANDBOX_VAR_RULE:
            ngx_http_sandbox_policy_text(ctx, &rule, &s);
            break;

        case NGX_HTTP_SANDBOX_VAR_LOCK_WAIT:

            if (ctx->lock && ctx->lock->answered) {
                p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
                if (p == NULL) {
                    return NGX_ERROR;
                }

                s.data = p;
                s.len = ngx_sprintf(p, "%uL.%03uL",
                                    ctx->lock->waited_us / 1000000,
                                    ctx->lock->waited_us / 1000 % 1000) - p;
            }

            break;

        case NGX_HTTP_SANDBOX_VAR_UPSTREAM_URI:
            s = ctx->judged ? ctx->upstream_uri : r->unparsed_uri;
            break;

        case NGX_HTTP_SANDBOX_VAR_UPSTREAM_HOST:
            s = ctx->upstream_host;
            break;

        case NGX_HTTP_SANDBOX_VAR_CONNECTION:

            if (ctx->upgrade) {
                ngx_str_set(&s, "upgrade");
            }

            break;
        }
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = s.data == NULL;
    v->len = s.len;
    v->data = s.data;

    if (s.data == NULL && data >= NGX_HTTP_SANDBOX_VAR_UPSTREAM_URI) {
        /* "Connection: " is removed by an empty value, not by a missing one */
        v->not_found = 0;
        v->data = (u_char *) "";
    }

    return NGX_OK;
}
