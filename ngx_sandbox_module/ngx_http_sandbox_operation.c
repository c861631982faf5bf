/*
 * The course of one operation (design 2):
 *
 *   access phase      find out who asks; never decides, returns DECLINED
 *   precontent phase  refuse, or: BEGIN, read the body that has to be read,
 *                     FACTS, wait until it is in the journal, choose the road
 *                     (ngx_http_sandbox_admit.c has what comes before a body)
 *   taps              ngx_http_sandbox_body.c, _response.c, _tunnel.c
 *   log phase         END, exactly once; the pool cleanup is the net below it
 */


#include "ngx_http_sandbox_admit.h"
#include "ngx_http_sandbox_before.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_policy.h"
#include "ngx_http_sandbox_tokens.h"
#include "ngx_http_sandbox_precondition.h"
#include "ngx_http_sandbox_rules.h"


static ngx_http_sandbox_ctx_t *ngx_http_sandbox_unread(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_forward(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
static ngx_int_t ngx_http_sandbox_road(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_slowed(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_subrequest(ngx_http_request_t *r);


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

    if (!lcf->enable) {
        return NGX_DECLINED;
    }

    if (r != r->main) {
        return ngx_http_sandbox_subrequest(r);
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


/*
 * What nginx asks by itself, for ssi, addition, Lua and the like, is no operation:
 * nobody has said who asks, nothing judges it and nothing records it, and the
 * target is that of the request around it.  A file may be served, as an error page.
 */

static ngx_int_t
ngx_http_sandbox_subrequest(ngx_http_request_t *r)
{
    if (r->content_handler == NULL) {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "subrequest to \"%V\" in a location with \"sandbox on\", "
                  "refused", &r->uri);

    return NGX_HTTP_FORBIDDEN;
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
