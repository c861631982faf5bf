/*
 * Uploads that are read whole before they go on: nginx writes them to
 * client_body_temp_path.  How much of that there is in all workers is bounded
 * by sandbox_spool_limit; a request gives its share back when it ends, and
 * those of a worker that was killed are given back by its successor.
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_spool.h"


ngx_int_t
ngx_http_sandbox_spool_take(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    size_t n)
{
    ngx_atomic_uint_t              all;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    all = __atomic_add_fetch(&ngx_http_sandbox_metrics->spool_bytes, n,
                             __ATOMIC_RELAXED);

    if (all > (ngx_atomic_uint_t) mcf->spool_limit) {

        (void) __atomic_sub_fetch(&ngx_http_sandbox_metrics->spool_bytes, n,
                                  __ATOMIC_RELAXED);

        ngx_http_sandbox_metric_add(SPOOL_REFUSED, 1);
        ngx_http_sandbox_metric_refused("GATEWAY_OVERLOADED");

        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "sandbox %s: upload refused, sandbox_spool_limit is "
                      "reached", ctx->id_text);

        ctx->spool_full = 1;
        ngx_str_set(&ctx->error_code, "GATEWAY_OVERLOADED");

        return NGX_DECLINED;
    }

    ctx->spool_bytes += n;
    ngx_http_sandbox_metric_worker->spool_bytes += n;

    return NGX_OK;
}


void
ngx_http_sandbox_spool_give(ngx_http_sandbox_ctx_t *ctx)
{
    if (ctx->spool_bytes) {
        (void) __atomic_sub_fetch(&ngx_http_sandbox_metrics->spool_bytes,
                                  ctx->spool_bytes, __ATOMIC_RELAXED);

        ngx_http_sandbox_metric_worker->spool_bytes -= ctx->spool_bytes;
        ctx->spool_bytes = 0;
    }
}
