/*
 * Refusals in OpenSandbox's own envelope (design 4): {"code","message",
 * "details"}, ours and those that nginx makes on an intercepted route.
 */


#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_policy.h"


static ngx_int_t ngx_http_sandbox_envelope(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const char *code, const char *message,
    ngx_str_t *details);
static ngx_int_t ngx_http_sandbox_retry_after(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);


static ngx_str_t  ngx_http_sandbox_json_type = ngx_string("application/json");


typedef struct {
    ngx_uint_t   status;
    const char  *code;
    const char  *message;
} ngx_http_sandbox_special_t;


/* what nginx itself answers on a route of ours */

static ngx_http_sandbox_special_t  ngx_http_sandbox_special[] = {

    { NGX_HTTP_BAD_REQUEST, "GATEWAY_AMBIGUOUS_REQUEST",
      "The gateway cannot read this request in exactly one way." },

    { NGX_HTTP_FORBIDDEN, "GATEWAY_FORBIDDEN",
      "A rule of this nginx server does not allow the request." },

    { NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, "GATEWAY_LIMIT_EXCEEDED",
      "The request body is larger than the gateway allows." },

    { NGX_HTTP_INTERNAL_SERVER_ERROR, "GATEWAY_INTERNAL",
      "The gateway failed; its error log has more under this operation id." },

    { NGX_HTTP_BAD_GATEWAY, "GATEWAY_UPSTREAM_UNAVAILABLE",
      "OpenSandbox, or the sandbox, cannot be reached or broke off." },

    { NGX_HTTP_SERVICE_UNAVAILABLE, "GATEWAY_BUSY",
      "The gateway has no room for this request at the moment." },

    { NGX_HTTP_GATEWAY_TIME_OUT, "GATEWAY_UPSTREAM_UNAVAILABLE",
      "OpenSandbox, or the sandbox, did not answer in time." },

    { 0, NULL, NULL }
};


ngx_int_t
ngx_http_sandbox_refuse(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t status, const char *code, const char *message,
    ngx_str_t *details)
{
    ngx_int_t                 rc;
    ngx_str_t                *type;
    ngx_http_complex_value_t  cv;

    static ngx_str_t  html = ngx_string("text/html; charset=utf-8");

    ctx->refused = 1;

    ngx_http_sandbox_metric_refused(code);

    ctx->error_code.data = (u_char *) code;
    ctx->error_code.len = ngx_strlen(code);

    if (ngx_http_sandbox_envelope(r, ctx, code, message, details) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    type = &ngx_http_sandbox_json_type;

    if (ctx->port_listener) {
        rc = ngx_http_sandbox_port_page(r, ctx, status, message);

        if (rc == NGX_ERROR) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (rc == NGX_OK) {
            type = &html;
        }
    }

    if ((status == NGX_HTTP_SERVICE_UNAVAILABLE
         || status == NGX_HTTP_TOO_MANY_REQUESTS
         || status == 423 /* Locked */)
        && ngx_http_sandbox_retry_after(r, ctx) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ctx->begun && !ctx->lost && ctx->mode != NGX_HTTP_SANDBOX_OFF) {
        (void) ngx_http_sandbox_record_begin(r, ctx);
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "sandbox %s: %s refused with %s", ctx->id_text,
                  ctx->op->name, code);

    if (ngx_http_sandbox_drain(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = ctx->refusal;

    rc = ngx_http_send_response(r, status, type, &cv);

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}


ngx_int_t
ngx_http_sandbox_replace_error(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_str_t                    rule, *details;
    ngx_uint_t                   status;
    const char                  *message;
    ngx_http_sandbox_special_t  *s;

    status = r->headers_out.status;

    for (s = ngx_http_sandbox_special; s->status; s++) {
        if (s->status == status) {
            break;
        }
    }

    if (s->status == 0) {
        return NGX_DECLINED;
    }

    if (ctx->error_code.len == 0) {
        ngx_http_sandbox_metric_refused(s->code);

        ctx->error_code.data = (u_char *) s->code;
        ctx->error_code.len = ngx_strlen(s->code);
    }

    /* who refused it may have had a closer reason: a literal, as s->code is */

    message = s->message;
    details = NULL;

    if (ctx->multipart_bad && ctx->multipart
        && (status == NGX_HTTP_BAD_REQUEST
            || status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE))
    {
        message = sb_multipart_reason(ctx->multipart);

    } else if (status == NGX_HTTP_SERVICE_UNAVAILABLE && ctx->spool_full) {

        message = "Uploads that are read before they go on have no room left "
                  "in sandbox_spool_limit; try again shortly.";

    } else if (status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE && !ctx->policed
               && ctx->verdict && ctx->verdict->limit)
    {
        message = ctx->verdict->reason;

        if (ngx_http_sandbox_policy_details(r, ctx->verdict, &rule) != NGX_OK) {
            return NGX_ERROR;
        }

        details = &rule;
    }

    if (ngx_http_sandbox_envelope(r, ctx, (const char *) ctx->error_code.data,
                                  message, details)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (status == NGX_HTTP_SERVICE_UNAVAILABLE
        && ngx_http_sandbox_retry_after(r, ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);
    ngx_http_clear_content_length(r);

    r->headers_out.content_length_n = ctx->refusal.len;
    r->headers_out.content_type = ngx_http_sandbox_json_type;
    r->headers_out.content_type_len = ngx_http_sandbox_json_type.len;
    ngx_str_null(&r->headers_out.charset);
    r->headers_out.content_type_lowcase = NULL;

    ctx->replace = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_envelope(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    const char *code, const char *message, ngx_str_t *details)
{
    u_char     *p;
    size_t      len;
    ngx_str_t   m;
    uintptr_t   escape;

    m.data = (u_char *) message;
    m.len = ngx_strlen(message);

    escape = ngx_escape_json(NULL, m.data, m.len);

    len = sizeof("{\"code\":\"\",\"message\":\"\",\"details\":"
                 "{\"operation_id\":\"\",}}")
          + ngx_strlen(code) + m.len + escape + SB_UUID_LEN
          + (details ? details->len : 0);

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ctx->refusal.data = p;

    p = ngx_sprintf(p, "{\"code\":\"%s\",\"message\":\"", code);
    p = (u_char *) ngx_escape_json(p, m.data, m.len);
    p = ngx_sprintf(p, "\",\"details\":{\"operation_id\":\"%s\"%s",
                    ctx->id_text, details ? "," : "");

    if (details) {
        p = ngx_copy(p, details->data, details->len);
    }

    *p++ = '}';
    *p++ = '}';

    ctx->refusal.len = p - ctx->refusal.data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_retry_after(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    u_char  *p;
    size_t   len;

    p = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    len = ngx_sprintf(p, "%ui", ngx_max(ctx->retry_after, 1)) - p;

    return ngx_http_sandbox_add_header(r, "Retry-After", (const char *) p, len);
}
