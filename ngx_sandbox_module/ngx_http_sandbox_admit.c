/* What is refused, or not, without a look at the body
 * (ngx_http_sandbox_admit.h). */


#include "ngx_http_sandbox_admit.h"
#include "ngx_http_sandbox_full.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_precondition.h"
#include "ngx_http_sandbox_rate.h"


/* What must be on record cannot be: its history has reached a limit. */

static ngx_int_t
ngx_http_sandbox_full_refuse(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *limit)
{
    u_char  *p, *text;

    text = ngx_pnalloc(r->pool, limit->len + 256);
    if (text == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_sprintf(text, "This operation must be on record and the history "
                    "has reached its limit, %V: raise it, delete what is old "
                    "with \"sandbox-history cleanup\", or delete the "
                    "sandbox.%Z", limit);
    (void) p;

    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   "GATEWAY_RECORDER_UNAVAILABLE",
                                   (const char *) text, NULL);
}


/*
 * "GET /health", to the letter and without a body, is what load balancers ask;
 * upstream answers it without a key, and gets none from us.
 */

static ngx_uint_t
ngx_http_sandbox_open_to_all(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    return r->method == NGX_HTTP_GET
           && r->unparsed_uri.len == sizeof("/health") - 1
           && ngx_strncmp(r->unparsed_uri.data, "/health",
                          sizeof("/health") - 1)
              == 0
           && sb_op_index(ctx->op) == SB_OP_SERVER_HEALTH
           && !ctx->ingress
           && r->headers_in.content_length_n <= 0
           && !r->headers_in.chunked
           && r->headers_in.upgrade == NULL;
}


/* Does the request have a body in another encoding than identity? */

static ngx_uint_t
ngx_http_sandbox_encoded(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_is(&h[i], "content-encoding")
            && h[i].value.len
            && (h[i].value.len != sizeof("identity") - 1
                || ngx_strncasecmp(h[i].value.data, (u_char *) "identity",
                                   sizeof("identity") - 1)
                   != 0))
        {
            return 1;
        }
    }

    return 0;
}


/* Has the request come in at the very address that it would be sent to? */

static ngx_uint_t
ngx_http_sandbox_loops(ngx_http_request_t *r, ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_uint_t         i;
    ngx_addr_t        *addr;
    ngx_connection_t  *c;

    c = r->connection;

    if (ngx_connection_local_sockaddr(c, NULL, 0) != NGX_OK) {
        return 0;
    }

    for (i = 0; i < lcf->upstream->naddrs; i++) {
        addr = &lcf->upstream->addrs[i];

        if (ngx_cmp_sockaddr(c->local_sockaddr, c->local_socklen,
                             addr->sockaddr, addr->socklen, 1)
            == NGX_OK)
        {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_sandbox_admit(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    sb_rc_t      rc;
    ngx_int_t    host, n;
    ngx_str_t    path;
    ngx_str_t   *full;
    const char  *why;

    host = lcf->port_listen ? ngx_http_sandbox_port_host_allowed(r)
                            : ngx_http_sandbox_host_allowed(r);

    if (lcf->port_listen && host == NGX_OK
        && ngx_http_sandbox_port_redeem(r, ctx) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->mode = lcf->modes[sb_op_index(ctx->op)];

    path.data = (u_char *) ctx->route.path.data;
    path.len = ctx->route.path.len;

    if (ngx_http_sandbox_ours(lcf, &ctx->target)
        || (memchr(ctx->target.data, '%', ctx->target.len)
            && ngx_http_sandbox_ours(lcf, &path)))
    {
        /* it would stand in records, logs and before the sandbox (C141) */

        ctx->route_rc = SB_AMBIGUOUS;
        ctx->route.reason = "The request target holds a credential: send it "
                            "in the header OPEN-SANDBOX-API-KEY.";
        ctx->route.sandbox.len = 0;
    }

    if (ngx_http_sandbox_identify(r, ctx) == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (host != NGX_OK) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_MISDIRECTED_REQUEST,
                                       "GATEWAY_WRONG_HOST",
                                       "This gateway does not serve the host "
                                       "named in the request; name it with "
                                       "sandbox_host or --host.", NULL);
    }

    if (!ctx->authenticated && !ngx_http_sandbox_open_to_all(r, ctx)) {

        ngx_http_sandbox_metric_add(AUTH_FAILURES, 1);

        if (lcf->port_listen) {
            return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_UNAUTHORIZED,
                                           "GATEWAY_UNAUTHENTICATED",
                                           ctx->ticket.data
                                           ? "The ticket in the address has "
                                             "been used, or is too old."
                                           : "A user port is opened with a "
                                             "ticket: POST /console/api/v1/"
                                             "sandboxes/{id}/ports/{port} "
                                             "names an address with one.",
                                           NULL);
        }

        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_UNAUTHORIZED,
                                       "GATEWAY_UNAUTHENTICATED",
                                       "The gateway needs a token of its own: "
                                       "send it as OPEN-SANDBOX-API-KEY or as "
                                       "Authorization: Bearer.", NULL);
    }

    if (r->schema_start) {

        /* "GET http://host/...": two hosts, and nginx has cut the target */

        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "The request target must be a path, "
                                       "not an absolute URL.", NULL);
    }

    if (ctx->route_rc != SB_OK) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       ctx->route.reason
                                       ? ctx->route.reason
                                       : "The request target can be read in "
                                         "more than one way.", NULL);
    }

    if (ctx->restored_bad && sb_op_index(ctx->op) == SB_OP_FILE_WRITE) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "X-Sandbox-Restored-From must be the id "
                                       "of one operation.", NULL);
    }

    if (ctx->identity_bad) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "A header that says who acts occurs "
                                       "more than once.", NULL);
    }

    why = ctx->origin_fault;

    if (why == NULL) {
        why = ngx_http_sandbox_role_fault(r, ctx);
    }

    if (why) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_FORBIDDEN,
                                       "GATEWAY_FORBIDDEN", why, NULL);
    }

    if (ctx->mode == NGX_HTTP_SANDBOX_STRICT
        && sb_op_index(ctx->op) != SB_OP_SANDBOX_DELETE)
    {
        full = ngx_http_sandbox_full(ctx->route.sandbox);

        if (full) {
            return ngx_http_sandbox_full_refuse(r, ctx, full);
        }
    }

    if (lcf->port_listen) {
        n = ngx_http_sandbox_port_admit(r, ctx);

        if (n != NGX_OK) {
            return n;
        }
    }

    if ((ctx->op->flags & (SB_OPF_JSON|SB_OPF_UPLOAD))
        && ngx_http_sandbox_encoded(r))
    {
        return ngx_http_sandbox_refuse(r, ctx,
                                       NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                       "GATEWAY_UNSUPPORTED_ENCODING",
                                       "The body of this operation is judged "
                                       "and must be sent without "
                                       "Content-Encoding.", NULL);
    }

    if (ngx_http_sandbox_loops(r, lcf)) {
        return ngx_http_sandbox_refuse(r, ctx, 508 /* Loop Detected */,
                                       "GATEWAY_LOOP",
                                       "sandbox_upstream names this gateway "
                                       "itself; name the OpenSandbox server.",
                                       NULL);
    }

    if (ctx->upgrade && r->http_version == NGX_HTTP_VERSION_20) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_NOT_IMPLEMENTED,
                                       "GATEWAY_UNSUPPORTED",
                                       "WebSockets need HTTP/1.1 here.", NULL);
    }

    why = ngx_http_sandbox_handshake_fault(r, ctx);

    if (why == NULL
        && ngx_http_sandbox_has(ctx, NGX_HTTP_SANDBOX_H_CONNECTION))
    {
        why = ngx_http_sandbox_hop_fault(r);
    }

    if (why == NULL) {
        why = ngx_http_sandbox_rewrite_fault(r, ctx);
    }

    if (why) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST", why, NULL);
    }

    n = ngx_http_sandbox_rate(r, ctx, lcf);
    if (n != NGX_OK) {
        return n;
    }

    n = ngx_http_sandbox_lock_headers(r, ctx, lcf);
    if (n != NGX_OK) {
        return n;
    }

    n = ngx_http_sandbox_precondition_headers(r, ctx, lcf);
    if (n != NGX_OK) {
        return n;
    }

    if (!(ctx->op->flags & SB_OPF_JSON)) {

        if (ngx_http_sandbox_read_facts(r, ctx, (sb_str_t) { "", 0 }, &rc)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ctx->op->flags & SB_OPF_JSON
        && r->headers_in.content_length_n > (off_t) lcf->body_limit)
    {
        ctx->too_large = 1;
        ctx->body_done = 1;
    }

    if (ctx->mode == NGX_HTTP_SANDBOX_STRICT
        && ngx_http_sandbox_helper_away(lcf->timeout))
    {
        /* refused, so nothing happens that a gap would have to tell of */

        ctx->failed = 1;
        ctx->lost = 1;

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "sandbox %s: %s refused, the helper is away",
                      ctx->id_text, ctx->op->name);

        return NGX_OK;
    }

    return ngx_http_sandbox_record_begin(r, ctx);
}
