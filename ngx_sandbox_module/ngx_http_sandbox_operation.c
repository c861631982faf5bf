/*
 * The course of one operation (design 2):
 *
 *   access phase      find out who asks; never decides, returns DECLINED
 *   precontent phase  refuse, or: BEGIN, read the body that has to be read,
 *                     FACTS, wait until it is in the journal, choose the road
 *   taps              ngx_http_sandbox_body.c, _response.c, _tunnel.c
 *   log phase         END, exactly once; the pool cleanup is the net below it
 */


#include "ngx_http_sandbox_archive.h"
#include "ngx_http_sandbox_before.h"
#include "ngx_http_sandbox_full.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_known.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_policy.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_spool.h"
#include "ngx_http_sandbox_tokens.h"
#include "ngx_http_sandbox_precondition.h"
#include "ngx_http_sandbox_rate.h"
#include "ngx_http_sandbox_rules.h"


static ngx_http_sandbox_ctx_t *ngx_http_sandbox_make_ctx(
    ngx_http_request_t *r);
static ngx_http_sandbox_ctx_t *ngx_http_sandbox_unread(ngx_http_request_t *r);
static void ngx_http_sandbox_cleanup(void *data);
static void ngx_http_sandbox_detach(void *data);
static ngx_int_t ngx_http_sandbox_admit(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
static ngx_int_t ngx_http_sandbox_forward(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
static ngx_int_t ngx_http_sandbox_road(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_slowed(ngx_http_request_t *r);
static ngx_uint_t ngx_http_sandbox_open_to_all(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_uint_t ngx_http_sandbox_encoded(ngx_http_request_t *r);
static ngx_uint_t ngx_http_sandbox_loops(ngx_http_request_t *r,
    ngx_http_sandbox_loc_conf_t *lcf);


ngx_http_sandbox_ctx_t *
ngx_http_sandbox_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t      *cln;
    ngx_http_sandbox_ctx_t  *ctx;

    r = r->main;

    ctx = ngx_http_get_module_ctx(r, ngx_http_sandbox_module);

    if (ctx == NULL && (r->internal || r->filter_finalize)) {

        /*
         * an internal redirect has cleared the contexts; the operation is
         * still the same, its context is found by its cleanup handler
         */

        for (cln = r->pool->cleanup; cln; cln = cln->next) {
            if (cln->handler == ngx_http_sandbox_cleanup) {
                ctx = cln->data;
                ngx_http_set_ctx(r, ctx, ngx_http_sandbox_module);
                break;
            }
        }
    }

    return ctx;
}


/* The same, made when it is missing; NULL without memory. */

static ngx_http_sandbox_ctx_t *
ngx_http_sandbox_make_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t           *cln;
    ngx_http_cleanup_t           *hcln;
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    static sb_uuid7_t        generator;
    static ngx_pid_t         generator_pid;

    ctx = ngx_http_sandbox_get_ctx(r);
    if (ctx) {
        return ctx;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_sandbox_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_sandbox_ctx_t));

    hcln = ngx_http_cleanup_add(r, 0);
    if (hcln == NULL) {
        return NULL;
    }

    hcln->handler = ngx_http_sandbox_detach;
    hcln->data = ctx;

    if (generator_pid != ngx_pid) {
        ngx_memzero(&generator, sizeof(sb_uuid7_t));
        generator_pid = ngx_pid;
    }

    ctx->request = r;
    ctx->http_version = r->http_version;
    ctx->started_us = sb_now_us();
    sb_uuid7(&generator, ctx->started_us, ctx->id);
    sb_uuid_text((char *) ctx->id_text, ctx->id);

    ctx->upgrade = ngx_http_sandbox_wants_upgrade(r);
    ctx->target = r->unparsed_uri;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if ((lcf->port_listen && ngx_http_sandbox_port_enter(r, ctx) != NGX_OK)
        || ngx_http_sandbox_route(r, ctx) != NGX_OK)
    {
        return NULL;
    }

    cln->handler = ngx_http_sandbox_cleanup;
    ngx_http_set_ctx(r, ctx, ngx_http_sandbox_module);

    return ctx;
}


ngx_int_t
ngx_http_sandbox_route(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    char    *buf;
    size_t   size;

    size = 2 * ctx->target.len + 64;
    buf = ngx_pnalloc(r->pool, size);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    if (ctx->port_listener) {
        ctx->route_rc = sb_route(&ctx->route,
                                 ngx_http_sandbox_str(&r->method_name),
                                 ngx_http_sandbox_str(&ctx->target),
                                 ctx->upgrade, buf, size);

    } else {
        ngx_http_sandbox_ingress_route(r, ctx, buf, size);
    }

    if (ctx->route.op == NULL) {
        ctx->route.op = sb_op_find(sb_lit("lifecycle.unknown"));
    }

    if (ctx->port_listener && !ctx->authenticated) {

        /* of some port, nobody knows which; no path names a sandbox here */

        ctx->route_rc = SB_OK;
        ctx->route.op = sb_op_find(ctx->upgrade ? sb_lit("proxy.ws")
                                                : sb_lit("proxy.http"));
        ctx->route.surface = SB_SURFACE_PORT;
        ctx->route.proxied = true;
        ctx->route.sandbox.len = 0;
        ctx->route.port = 0;
        ctx->route.carrier_port = 0;
    }

    ctx->op = ctx->route.op;

    return NGX_OK;
}


/* The client has gone, or the request ends: nobody waits any more. */

static void
ngx_http_sandbox_detach(void *data)
{
    ngx_http_sandbox_ctx_t  *ctx = data;

    if (ctx->waiting) {
        ctx->waiting = 0;

        if (ctx->lock && ctx->lock->waiting) {
            ngx_http_sandbox_lock_leave(ctx->lock);

        } else {
            ngx_http_sandbox_helper_forget(ctx);
        }
    }

    ngx_http_sandbox_before_forget(ctx);
    ngx_http_sandbox_precondition_forget(ctx);
    ngx_http_sandbox_known_forget(ctx);
    ngx_http_sandbox_known_changed(ctx->request, ctx);
    ngx_http_sandbox_archive_forget(ctx);
}


static void
ngx_http_sandbox_cleanup(void *data)
{
    ngx_http_sandbox_ctx_t  *ctx = data;

    ngx_http_sandbox_detach(ctx);

    if (!ctx->ended) {
        ngx_http_sandbox_record_end(ctx->request, ctx);
    }

    ngx_http_sandbox_rules_forget(ctx);

    if (ctx->facts) {
        sb_request_free(ctx->facts);
    }

    ngx_http_sandbox_spool_give(ctx);

    sb_multipart_free(ctx->multipart);
    sb_stream_free(ctx->stream);
    sb_buf_free(&ctx->results);
    sb_answer_free(ctx->answer);
    sb_sha256_free(ctx->digest);
}


/* On the user-port listener the target is looked at before any rule that could
 * log or rewrite it. */

ngx_int_t
ngx_http_sandbox_port_handler(ngx_http_request_t *r)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (!lcf->enable || lcf->port_listen == NULL || r != r->main) {
        return NGX_DECLINED;
    }

    return ngx_http_sandbox_make_ctx(r) ? NGX_DECLINED
                                        : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_sandbox_access_handler(ngx_http_request_t *r)
{
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (!lcf->enable || r != r->main) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_sandbox_make_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ctx->checked) {
        ngx_http_sandbox_authenticate(r, ctx);
    }

    /*
     * never NGX_OK: with "satisfy any" that would skip the user's own rules;
     * who is not authenticated is refused in the precontent phase, which no
     * access rule can skip
     */

    return NGX_DECLINED;
}


/*
 * Upstream cannot steer nginx (design 7): X-Accel-Redirect in an answer on an
 * intercepted location has made an internal redirect; it ends here, before
 * any rule of the location it chose.
 */

ngx_int_t
ngx_http_sandbox_redirect_handler(ngx_http_request_t *r)
{
    ngx_http_sandbox_ctx_t  *ctx;

    if (!r->internal || r != r->main || r->upstream == NULL
        || r->upstream->headers_in.x_accel_redirect == NULL)
    {
        return NGX_DECLINED;
    }

    ctx = ngx_http_sandbox_get_ctx(r);

    if (ctx == NULL || !ctx->judged || ctx->refused) {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "sandbox %s: upstream sent X-Accel-Redirect, refused",
                  ctx->id_text);

    ctx->reason = "upstream_steers";

    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_GATEWAY,
                                   "GATEWAY_UPSTREAM_UNAVAILABLE",
                                   "Upstream tried to redirect inside the "
                                   "gateway with X-Accel-Redirect.", NULL);
}


ngx_int_t
ngx_http_sandbox_precontent_handler(ngx_http_request_t *r)
{
    ngx_int_t                     rc;
    ngx_msec_t                    delay;
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (!lcf->enable || r != r->main) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_sandbox_make_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->waiting || ctx->known_waiting) {
        /* a write event ran the phases again */
        return NGX_AGAIN;
    }

    if (ctx->judged || ctx->refused || ctx->spooling
        || (ctx->body_started && !ctx->body_done))
    {

        /*
         * an internal redirect, as error_page makes it, came back to us: a file
         * may be served, but nothing goes upstream again, or without its body
         */

        if (r->content_handler == NULL) {
            return NGX_DECLINED;
        }

        return r->err_status >= NGX_HTTP_BAD_REQUEST
               ? (ngx_int_t) r->err_status : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ctx->checked) {
        ngx_http_sandbox_authenticate(r, ctx);
    }

    if (ctx->wrong && !ctx->slowed) {
        ctx->slowed = 1;

        delay = ngx_http_sandbox_tokens_wrong(lcf->tokens, r->connection);

        if (delay) {
            ngx_http_sandbox_tokens_delay(r, delay, ngx_http_sandbox_slowed);
            return NGX_AGAIN;
        }
    }

    if (!ctx->admitted) {
        ctx->admitted = 1;

        rc = ngx_http_sandbox_admit(r, ctx, lcf);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if ((ctx->op->flags & SB_OPF_JSON) && !ctx->body_done) {
        return ngx_http_sandbox_read_body(r, ctx);
    }

    if (ctx->too_large) {
        return ngx_http_sandbox_refuse(r, ctx,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "GATEWAY_LIMIT_EXCEEDED",
                                       "The body of this operation is larger "
                                       "than sandbox_body_limit allows.", NULL);
    }

    if (ctx->facts && ctx->facts->reason) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       ctx->facts->reason, NULL);
    }

    if (lcf->policy && !ctx->policed) {
        rc = ngx_http_sandbox_policy_judge(r, ctx, lcf);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ctx->overloaded && ctx->mode == NGX_HTTP_SANDBOX_STRICT) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "GATEWAY_OVERLOADED",
                                       "The queue of the recorder is full and "
                                       "this operation must be on record; try "
                                       "again shortly.", NULL);
    }

    if (ctx->failed || (ctx->lost && ctx->mode == NGX_HTTP_SANDBOX_STRICT)) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "GATEWAY_RECORDER_UNAVAILABLE",
                                       "This operation must be on record "
                                       "before it happens and the recorder "
                                       "does not answer; try again shortly.",
                                       NULL);
    }

    if (!ctx->body_done && ngx_http_sandbox_lock_reads(ctx, lcf)) {
        return ngx_http_sandbox_read_upload(r, ctx);
    }

    if (!ctx->lock_asked) {
        ctx->lock_asked = 1;

        rc = ngx_http_sandbox_lock_ask(r, ctx, lcf);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (ctx->begun && ctx->mode == NGX_HTTP_SANDBOX_STRICT && !ctx->acked
        && !ngx_http_sandbox_helper_acked(ctx->wait_seq))
    {
        ctx->waiting = 1;

        /* else a client that leaves is not noticed */
        r->read_event_handler = ngx_http_test_reading;

        ngx_http_sandbox_helper_wait(ctx, lcf->timeout);

        return NGX_AGAIN;
    }

    if (ctx->lock) {
        rc = ngx_http_sandbox_lock_done(r, ctx, lcf);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    return ngx_http_sandbox_forward(r, ctx, lcf);
}


/* A wrong credential has waited for its answer. */

static void
ngx_http_sandbox_slowed(ngx_http_request_t *r)
{
    if (ngx_http_sandbox_tokens_delayed(r)) {
        return;
    }

    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}


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


/* Everything that is known without the body: refuses, or puts the operation
 * on record. */

static ngx_int_t
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

        if (h[i].key.len == sizeof("content-encoding") - 1
            && ngx_strncmp(h[i].lowcase_key, "content-encoding", h[i].key.len)
               == 0
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


static ngx_int_t
ngx_http_sandbox_forward(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_int_t  rc;

    if (!ctx->routed) {

        if (ctx->op->flags & SB_OPF_UPLOAD) {

            rc = ngx_http_sandbox_upload_start(r, ctx);

            if (rc == NGX_DECLINED) {
                return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                               "GATEWAY_AMBIGUOUS_REQUEST",
                                               "The boundary in Content-Type "
                                               "can be read in more than one "
                                               "way.", NULL);
            }

            if (rc != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            if (ctx->multipart && !ctx->spooled && !ctx->body_done
                && ngx_http_sandbox_before_wanted(r, ctx))
            {
                return ngx_http_sandbox_before_spool(r, ctx);
            }
        }

        rc = ngx_http_sandbox_road(r, ctx);
        if (rc != NGX_OK) {
            return rc;
        }

        if (ctx->lock || ctx->spooled) {
            ctx->ready_us = sb_now_us();
        }
    }

    if (ctx->precondition) {
        rc = ngx_http_sandbox_precondition(r, ctx);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    /* the last that is waited for: how files stand is read under their keys */

    if (ngx_http_sandbox_before_wanted(r, ctx)) {

        rc = ngx_http_sandbox_before(r, ctx);

        if (rc == NGX_AGAIN) {
            return NGX_AGAIN;
        }

        if (rc != NGX_OK) {
            ctx->judged = 1;
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    /* it may have waited for its body, its keys, its files */

    if (ctx->token
        && !ngx_http_sandbox_tokens_stand(r, lcf->tokens, ctx->token,
                                          &ctx->session))
    {
        ngx_http_sandbox_metric_add(AUTH_FAILURES, 1);

        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_UNAUTHORIZED,
                                       "GATEWAY_UNAUTHENTICATED",
                                       "The token, or the session, was "
                                       "revoked, changed or ended while the "
                                       "request waited.", NULL);
    }

    rc = ngx_http_sandbox_rules_again(r, ctx, lcf);
    if (rc != NGX_OK) {
        return rc;
    }

    if ((ctx->op->flags & (SB_OPF_LONG|SB_OPF_UPGRADE|SB_OPF_UNKNOWN))
        && ctx->token
        && ngx_http_sandbox_tokens_hold(r, lcf->tokens, ctx->token,
                                        &ctx->session)
           != NGX_OK)
    {
        ctx->judged = 1;
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->judged = 1;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "sandbox %s: %s, straight:%d", ctx->id_text, ctx->op->name,
                   ctx->road != NULL);

    return NGX_DECLINED;
}


/* Where it goes, and the headers that it has there. */

static ngx_int_t
ngx_http_sandbox_road(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    if ((ctx->route.proxied && !ctx->ingress
         && ngx_http_sandbox_endpoint_find(r, ctx) == NGX_ERROR)
        || ngx_http_sandbox_headers_upstream(r, ctx) != NGX_OK)
    {
        ctx->judged = 1;
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->routed = 1;

    return NGX_OK;
}


void
ngx_http_sandbox_resume(ngx_http_sandbox_ctx_t *ctx, ngx_int_t rc)
{
    ctx->waiting = 0;
    ngx_http_sandbox_metric_worker->waiters--;

    if (rc == NGX_OK) {
        ctx->acked = 1;

    } else {
        ctx->failed = 1;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ctx->request->connection->log, 0,
                   "sandbox %s resumes: %i", ctx->id_text, rc);

    ngx_http_sandbox_run(ctx->request);
}


void
ngx_http_sandbox_run(ngx_http_request_t *r)
{
    ngx_connection_t  *c;

    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    /* still ngx_http_core_run_phases() */
    r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_sandbox_log_handler(ngx_http_request_t *r)
{
    ngx_http_sandbox_ctx_t  *ctx;

    if (r != r->main) {
        return NGX_OK;
    }

    ctx = ngx_http_sandbox_get_ctx(r);

    if (ctx == NULL) {
        ctx = ngx_http_sandbox_unread(r);
    }

    if (ctx && !ctx->ended) {
        ngx_http_sandbox_record_end(r, ctx);
    }

    return NGX_OK;
}


/*
 * nginx refuses by itself what has two lengths and the like (C013, C014), and
 * before any location is found.  Such a request to a server that has a sandbox
 * location is on record too, as one of a stranger: nobody was asked who it is.
 */

static ngx_http_sandbox_ctx_t *
ngx_http_sandbox_unread(ngx_http_request_t *r)
{
    void                        **loc_conf;
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_sandbox_loc_conf_t  *lcf;

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    if (r->headers_out.status != NGX_HTTP_BAD_REQUEST
        || r->loc_conf != cscf->ctx->loc_conf
        || r->method_name.len == 0 || r->unparsed_uri.len == 0)
    {
        return NULL;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->within == NULL) {
        return NULL;
    }

    loc_conf = r->loc_conf;
    r->loc_conf = lcf->within;

    ctx = ngx_http_sandbox_make_ctx(r);

    if (ctx) {
        ctx->checked = 1;
        ctx->refused = 1;
        ctx->mode = NGX_HTTP_SANDBOX_BEST_EFFORT;
        ngx_str_set(&ctx->error_code, "GATEWAY_AMBIGUOUS_REQUEST");
        ngx_str_set(&ctx->actor_type, "system");
        ngx_str_set(&ctx->identity, "none");

        (void) ngx_http_sandbox_record_begin(r, ctx);
        ngx_http_sandbox_record_end(r, ctx);
    }

    r->loc_conf = loc_conf;

    return ctx;
}
