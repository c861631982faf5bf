/* The context of a request: made once, found again after an internal redirect,
 * and what becomes of it when the request ends. */


#include "ngx_http_sandbox_archive.h"
#include "ngx_http_sandbox_before.h"
#include "ngx_http_sandbox_known.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_precondition.h"
#include "ngx_http_sandbox_rules.h"
#include "ngx_http_sandbox_spool.h"


static void ngx_http_sandbox_cleanup(void *data);
static void ngx_http_sandbox_detach(void *data);


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


ngx_http_sandbox_ctx_t *
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
