/* What all workers count (ngx_http_sandbox_metrics.h). */


#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_METRIC_AGAIN  500      /* ms */


static ngx_int_t ngx_http_sandbox_metric_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static void ngx_http_sandbox_metric_place(ngx_event_t *ev);


/* where those count who have no zone: nobody reads it */
static ngx_http_sandbox_metrics_t  ngx_http_sandbox_metric_nowhere;

ngx_http_sandbox_metrics_t        *ngx_http_sandbox_metrics =
                                              &ngx_http_sandbox_metric_nowhere;
ngx_http_sandbox_metric_worker_t  *ngx_http_sandbox_metric_worker =
                                   &ngx_http_sandbox_metric_nowhere.workers[0];


const char  *ngx_http_sandbox_metric_codes[] = {
    "other",
    "GATEWAY_AMBIGUOUS_REQUEST",
    "GATEWAY_UNAUTHENTICATED",
    "GATEWAY_FORBIDDEN",
    "GATEWAY_WRONG_HOST",
    "GATEWAY_POLICY_DENIED",
    "GATEWAY_LEASE_INVALID",
    "GATEWAY_PRECONDITION_FAILED",
    "GATEWAY_LIMIT_EXCEEDED",
    "GATEWAY_UNSUPPORTED_ENCODING",
    "GATEWAY_LOCK_TIMEOUT",
    "GATEWAY_BUSY",
    "GATEWAY_UNSUPPORTED",
    "GATEWAY_UPSTREAM_UNAVAILABLE",
    "GATEWAY_RECORDER_UNAVAILABLE",
    "GATEWAY_OVERLOADED",
    "GATEWAY_LOOP",
    "GATEWAY_INTERNAL",
    "GATEWAY_NOT_FOUND",
    "GATEWAY_METHOD_NOT_ALLOWED",
    "GATEWAY_LENGTH_REQUIRED",
    NULL
};

const char  *ngx_http_sandbox_metric_statuses[] = {
    "succeeded", "failed", "timeout", "cancelled", "unknown"
};

const ngx_uint_t  ngx_http_sandbox_metric_bounds[] = {
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10000
};


char *
ngx_http_sandbox_metric_zone(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    size_t     size;
    ngx_str_t  name;

    if (sb_op_count() > NGX_HTTP_SANDBOX_METRIC_OPS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the zone of metrics has room for %d operations",
                           NGX_HTTP_SANDBOX_METRIC_OPS);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&name, "sandbox_metrics");

    /* whole pages, and some for the slab's own */

    size = ngx_align(sizeof(ngx_http_sandbox_metrics_t), ngx_pagesize)
           + 8 * ngx_pagesize;

    mcf->metrics = ngx_shared_memory_add(cf, &name, size,
                                         &ngx_http_sandbox_module);
    if (mcf->metrics == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->metrics->init = ngx_http_sandbox_metric_zone_init;
    mcf->metrics->data = NULL;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_metric_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t             *shpool;
    ngx_http_sandbox_metrics_t  *m;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (data || shm_zone->shm.exists) {

        m = data ? data : shpool->data;

        /* the old workers go on counting there, so it cannot be laid out
         * anew */

        if (m == NULL || m->layout != NGX_HTTP_SANDBOX_METRIC_LAYOUT
            || m->size != sizeof(ngx_http_sandbox_metrics_t))
        {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "the zone \"%V\" was laid out by another version of "
                          "this module, restart nginx instead of reloading it",
                          &shm_zone->shm.name);
            return NGX_ERROR;
        }

        shm_zone->data = m;

        return NGX_OK;
    }

    m = ngx_slab_calloc(shpool, sizeof(ngx_http_sandbox_metrics_t));
    if (m == NULL) {
        return NGX_ERROR;
    }

    m->layout = NGX_HTTP_SANDBOX_METRIC_LAYOUT;
    m->size = sizeof(ngx_http_sandbox_metrics_t);
    m->since = ngx_time();

    shpool->data = m;
    shm_zone->data = m;

    return NGX_OK;
}


ngx_uint_t
ngx_http_sandbox_metric_init(ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_uint_t                         i, lost;
    ngx_atomic_uint_t                  pid, unsent, spooled;
    ngx_http_sandbox_metric_worker_t  *w;

    static ngx_event_t                 again;
    static ngx_connection_t            dummy;

    if (mcf->metrics == NULL || mcf->metrics->data == NULL) {
        return 0;
    }

    ngx_http_sandbox_metrics = mcf->metrics->data;

    /* workers that were killed have given nothing back */

    lost = 0;

    for (i = 0; i < NGX_HTTP_SANDBOX_METRIC_WORKERS; i++) {

        w = &ngx_http_sandbox_metrics->workers[i];
        pid = w->pid;
        unsent = w->unsent;
        spooled = w->spool_bytes;

        if (pid == 0 || (pid != (ngx_atomic_uint_t) ngx_pid
                         && (kill((pid_t) pid, 0) == 0 || ngx_errno != ESRCH)))
        {
            continue;
        }

        /* another worker may start just now: one of us counts it */

        if (ngx_atomic_cmp_set(&w->pid, pid, 0)) {
            lost += unsent;
            (void) __atomic_sub_fetch(&ngx_http_sandbox_metrics->spool_bytes,
                                      spooled, __ATOMIC_RELAXED);
        }
    }

    again.handler = ngx_http_sandbox_metric_place;
    again.data = &dummy;
    again.log = ngx_cycle->log;
    again.cancelable = 1;
    dummy.fd = (ngx_socket_t) -1;

    ngx_http_sandbox_metric_place(&again);

    return lost;
}


/* Where this worker's gauges are seen.  While so many are alive, those that a
 * reload lets go among them, it counts where nobody looks, and asks again. */

static void
ngx_http_sandbox_metric_place(ngx_event_t *ev)
{
    ngx_uint_t                         i;
    ngx_http_sandbox_metric_worker_t  *w, *was;

    was = ngx_http_sandbox_metric_worker;

    for (i = 0; i < NGX_HTTP_SANDBOX_METRIC_WORKERS; i++) {

        w = &ngx_http_sandbox_metrics->workers[i];

        if (ngx_atomic_cmp_set(&w->pid, 0, (ngx_atomic_uint_t) ngx_pid)) {
            ngx_memcpy((u_char *) w + sizeof(ngx_atomic_t),
                       (u_char *) was + sizeof(ngx_atomic_t),
                       sizeof(ngx_http_sandbox_metric_worker_t)
                       - sizeof(ngx_atomic_t));
            ngx_http_sandbox_metric_worker = w;
            return;
        }
    }

    ngx_add_timer(ev, NGX_HTTP_SANDBOX_METRIC_AGAIN);
}


void
ngx_http_sandbox_metric_exit(void)
{
    ngx_http_sandbox_metric_worker_t  *w;

    w = ngx_http_sandbox_metric_worker;
    ngx_http_sandbox_metric_worker =
                                   &ngx_http_sandbox_metric_nowhere.workers[0];

    w->pid = 0;
}


void
ngx_http_sandbox_metric_begun(ngx_http_sandbox_ctx_t *ctx)
{
    ctx->metric_op = sb_op_index(ctx->op);

    ngx_http_sandbox_metric_incr(
                           ngx_http_sandbox_metrics->begun[ctx->metric_op], 1);
}


void
ngx_http_sandbox_metric_ended(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                        i, status;
    ngx_msec_t                        ms;
    ngx_http_upstream_t              *u;
    ngx_http_sandbox_road_e           road;
    ngx_http_sandbox_metric_times_t  *t;

    u = r->upstream;

    if (ctx->judged && u && u->state
        && u->state->header_time != (ngx_msec_t) -1)
    {
        ms = u->state->header_time;

        road = ctx->road ? NGX_HTTP_SANDBOX_ROAD_STRAIGHT
               : ctx->route.proxied ? NGX_HTTP_SANDBOX_ROAD_PROXY
               : NGX_HTTP_SANDBOX_ROAD_LIFECYCLE;

        t = &ngx_http_sandbox_metrics->upstream[road];

        for (i = 0; i < NGX_HTTP_SANDBOX_METRIC_BUCKETS - 1; i++) {
            if (ms <= ngx_http_sandbox_metric_bounds[i]) {
                break;
            }
        }

        ngx_http_sandbox_metric_incr(t->buckets[i], 1);

        if (ms) {
            ngx_http_sandbox_metric_incr(t->sum_ms, ms);
        }
    }

    if (!ctx->begun || ctx->status == NULL) {
        return;
    }

    switch (ctx->status[0]) {

    case 's':
        status = 0;
        break;

    case 'f':
        status = 1;
        break;

    case 't':
        status = 2;
        break;

    case 'c':
        status = 3;
        break;

    default:
        status = 4;
    }

    ngx_http_sandbox_metric_incr(
                   ngx_http_sandbox_metrics->ended[ctx->metric_op][status], 1);
}


void
ngx_http_sandbox_metric_refused(const char *code)
{
    ngx_uint_t  i;

    for (i = 1; ngx_http_sandbox_metric_codes[i]; i++) {
        if (ngx_strcmp(ngx_http_sandbox_metric_codes[i], code) == 0) {
            break;
        }
    }

    if (ngx_http_sandbox_metric_codes[i] == NULL) {
        i = 0;
    }

    ngx_http_sandbox_metric_incr(ngx_http_sandbox_metrics->refused[i], 1);
}
