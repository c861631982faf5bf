/* The counters in Prometheus' text format, and the route that tells them. */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_fetch.h"


#define NGX_HTTP_SANDBOX_METRICS_MAX   (256 * 1024)
#define NGX_HTTP_SANDBOX_METRICS_TYPE                                         \
    "text/plain; version=0.0.4; charset=utf-8"
#define NGX_HTTP_SANDBOX_METRICS_TIME  1500     /* ms, for the helper's part */

#define NGX_HTTP_SANDBOX_PREFIX        "sandbox_gateway_"


static ngx_int_t ngx_http_sandbox_metrics_body(ngx_http_request_t *r,
    ngx_uint_t helper_up, ngx_str_t *body);
static ngx_int_t ngx_http_sandbox_metrics_alone(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static sb_rc_t ngx_http_sandbox_metric_head(sb_buf_t *b, const char *name,
    const char *type, const char *help);
static sb_rc_t ngx_http_sandbox_metric_one(sb_buf_t *b, const char *name,
    const char *type, const char *help, uint64_t v);
static sb_rc_t ngx_http_sandbox_metric_operations(sb_buf_t *b);
static sb_rc_t ngx_http_sandbox_metric_upstream(sb_buf_t *b);
static sb_rc_t ngx_http_sandbox_metric_workers(sb_buf_t *b,
    ngx_http_sandbox_main_conf_t *mcf);


static const char  *ngx_http_sandbox_metric_roads[] = {
    "lifecycle", "straight", "server-proxy"
};

static const struct {
    const char  *name;
    const char  *help;
} ngx_http_sandbox_metric_singles[] = {
#define NGX_HTTP_SANDBOX_METRIC_ROW(id, name, help)  { name, help },
    NGX_HTTP_SANDBOX_METRIC_LIST(NGX_HTTP_SANDBOX_METRIC_ROW)
#undef NGX_HTTP_SANDBOX_METRIC_ROW
};


/*
 * GET metrics: what the workers count and, behind it, what the helper does;
 * without an answer of the helper's the first half alone.
 */

ngx_int_t
ngx_http_sandbox_api_metrics(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    if (ngx_http_sandbox_metrics_body(r, 1, &a->prefix) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->alone = ngx_http_sandbox_metrics_alone;
    a->ask.timeout = NGX_HTTP_SANDBOX_METRICS_TIME;

    return ngx_http_sandbox_api_ask(r, a);
}


static ngx_int_t
ngx_http_sandbox_metrics_alone(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    ngx_str_t  body;

    if (ngx_http_sandbox_metrics_body(r, 0, &body) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_sandbox_api_send(r, NGX_HTTP_OK,
                                     NGX_HTTP_SANDBOX_METRICS_TYPE, &body);
}


static ngx_int_t
ngx_http_sandbox_metrics_body(ngx_http_request_t *r, ngx_uint_t helper_up,
    ngx_str_t *body)
{
    sb_rc_t                        rc;
    sb_buf_t                       b;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_METRICS_MAX;

    rc = ngx_http_sandbox_metric_text(&b, mcf, helper_up);

    body->len = b.len;
    body->data = rc == SB_OK ? ngx_pnalloc(r->pool, b.len) : NULL;

    if (body->data) {
        ngx_memcpy(body->data, b.data, b.len);
    }

    sb_buf_free(&b);

    return body->data ? NGX_OK : NGX_ERROR;
}


static sb_rc_t
ngx_http_sandbox_metric_head(sb_buf_t *b, const char *name, const char *type,
    const char *help)
{
    return sb_buf_printf(b, "# HELP " NGX_HTTP_SANDBOX_PREFIX "%s %s\n"
                         "# TYPE " NGX_HTTP_SANDBOX_PREFIX "%s %s\n",
                         name, help, name, type);
}


static sb_rc_t
ngx_http_sandbox_metric_one(sb_buf_t *b, const char *name, const char *type,
    const char *help, uint64_t v)
{
    sb_rc_t  rc;

    rc = ngx_http_sandbox_metric_head(b, name, type, help);

    return rc != SB_OK ? rc
           : sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX "%s %llu\n", name,
                           (unsigned long long) v);
}


sb_rc_t
ngx_http_sandbox_metric_text(sb_buf_t *b, ngx_http_sandbox_main_conf_t *mcf,
    ngx_uint_t helper_up)
{
    sb_rc_t                      rc;
    ngx_uint_t                   i;
    ngx_http_sandbox_metrics_t  *m;

    m = ngx_http_sandbox_metrics;

    rc = ngx_http_sandbox_metric_head(b, "build_info", "gauge",
                                      "version of this gateway");

    if (rc == SB_OK) {
        rc = sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX "build_info{version=\""
                           SB_VERSION "\"} 1\n");
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_metric_one(b, "counting_since_seconds", "gauge",
                                         "Unix time when the workers' counters "
                                         "began", m->since);
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_metric_one(b, "helper_up", "gauge",
                                         "1: what the helper counts follows",
                                         helper_up);
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_metric_operations(b);
    }

    for (i = 0; rc == SB_OK && i < NGX_HTTP_SANDBOX_METRIC_COUNT; i++) {
        rc = ngx_http_sandbox_metric_one(b,
                                       ngx_http_sandbox_metric_singles[i].name,
                                       "counter",
                                       ngx_http_sandbox_metric_singles[i].help,
                                       m->single[i]);
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_metric_head(b, "refused_total", "counter",
                                          "requests refused by the gateway, by "
                                          "code");
    }

    for (i = 0; rc == SB_OK && ngx_http_sandbox_metric_codes[i]; i++) {
        rc = sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX
                           "refused_total{code=\"%s\"} %llu\n",
                           ngx_http_sandbox_metric_codes[i],
                           (unsigned long long) m->refused[i]);
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_metric_upstream(b);
    }

    return rc == SB_OK ? ngx_http_sandbox_metric_workers(b, mcf) : rc;
}


/* Is there an operation of the same name before?  It speaks for both. */

static ngx_uint_t
ngx_http_sandbox_metric_twin(ngx_uint_t n)
{
    return n && ngx_strcmp(sb_op_at(n)->name, sb_op_at(n - 1)->name) == 0;
}


/* Only what has happened: there are some 600 combinations. */

static sb_rc_t
ngx_http_sandbox_metric_operations(sb_buf_t *b)
{
    sb_rc_t                      rc;
    uint64_t                     v;
    ngx_uint_t                   i, n, s, count;
    ngx_http_sandbox_metrics_t  *m;

    m = ngx_http_sandbox_metrics;
    count = sb_op_count();

    rc = ngx_http_sandbox_metric_head(b, "operations_begun_total", "counter",
                                      "operations begun on record");

    for (i = 0; rc == SB_OK && i < count; i++) {

        if (ngx_http_sandbox_metric_twin(i)) {
            continue;
        }

        v = m->begun[i];

        for (n = i + 1; n < count && ngx_http_sandbox_metric_twin(n); n++) {
            v += m->begun[n];
        }

        if (v) {
            rc = sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX
                               "operations_begun_total{operation=\"%s\"} "
                               "%llu\n", sb_op_at(i)->name,
                               (unsigned long long) v);
        }
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_metric_head(b, "operations_ended_total",
                                          "counter",
                                          "operations ended on record, under "
                                          "the name they began with");
    }

    for (i = 0; rc == SB_OK && i < count; i++) {

        if (ngx_http_sandbox_metric_twin(i)) {
            continue;
        }

        for (s = 0; rc == SB_OK && s < NGX_HTTP_SANDBOX_METRIC_STATUSES; s++) {

            v = m->ended[i][s];

            for (n = i + 1; n < count && ngx_http_sandbox_metric_twin(n); n++) {
                v += m->ended[n][s];
            }

            if (v) {
                rc = sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX
                                   "operations_ended_total{operation=\"%s\","
                                   "status=\"%s\"} %llu\n", sb_op_at(i)->name,
                                   ngx_http_sandbox_metric_statuses[s],
                                   (unsigned long long) v);
            }
        }
    }

    return rc;
}


static sb_rc_t
ngx_http_sandbox_metric_upstream(sb_buf_t *b)
{
    char                              le[32];
    sb_rc_t                           rc;
    uint64_t                          n;
    ngx_uint_t                        i, road, ms;
    ngx_http_sandbox_metric_times_t  *t;

    rc = ngx_http_sandbox_metric_head(b, "upstream_header_seconds", "histogram",
                                      "time until upstream's answer began");

    for (road = 0; rc == SB_OK && road < NGX_HTTP_SANDBOX_ROADS; road++) {

        t = &ngx_http_sandbox_metrics->upstream[road];
        n = 0;

        for (i = 0; rc == SB_OK && i < NGX_HTTP_SANDBOX_METRIC_BUCKETS; i++) {

            n += t->buckets[i];

            if (i < NGX_HTTP_SANDBOX_METRIC_BUCKETS - 1) {
                ms = ngx_http_sandbox_metric_bounds[i];
                ngx_sprintf((u_char *) le, "%ui.%03ui%Z", ms / 1000, ms % 1000);

            } else {
                ngx_sprintf((u_char *) le, "+Inf%Z");
            }

            rc = sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX
                               "upstream_header_seconds_bucket{road=\"%s\","
                               "le=\"%s\"} %llu\n",
                               ngx_http_sandbox_metric_roads[road], le,
                               (unsigned long long) n);
        }

        if (rc == SB_OK) {
            rc = sb_buf_printf(b, NGX_HTTP_SANDBOX_PREFIX
                               "upstream_header_seconds_sum{road=\"%s\"} "
                               "%llu.%03llu\n" NGX_HTTP_SANDBOX_PREFIX
                               "upstream_header_seconds_count{road=\"%s\"} "
                               "%llu\n", ngx_http_sandbox_metric_roads[road],
                               (unsigned long long) t->sum_ms / 1000,
                               (unsigned long long) t->sum_ms % 1000,
                               ngx_http_sandbox_metric_roads[road],
                               (unsigned long long) n);
        }
    }

    return rc;
}


/* Gauges of the living workers, and their bounds. */

static sb_rc_t
ngx_http_sandbox_metric_workers(sb_buf_t *b, ngx_http_sandbox_main_conf_t *mcf)
{
    pid_t                              pid;
    sb_rc_t                            rc;
    uint64_t                           free;
    ngx_uint_t                         i;
    ngx_slab_pool_t                   *shpool;
    ngx_http_sandbox_metric_worker_t  *w;

    struct {
        uint64_t   n, queue, longest, waiters, questions, streams, fetches;
    } all;

    ngx_memzero(&all, sizeof(all));

    for (i = 0; i < NGX_HTTP_SANDBOX_METRIC_WORKERS; i++) {

        w = &ngx_http_sandbox_metrics->workers[i];
        pid = (pid_t) w->pid;

        if (pid == 0 || (kill(pid, 0) == -1 && ngx_errno == ESRCH)) {
            continue;
        }

        all.n++;
        all.queue += w->queue_bytes;
        all.longest = ngx_max(all.longest, w->queue_bytes);
        all.waiters += w->waiters;
        all.questions += w->questions;
        all.streams += w->streams;
        all.fetches += w->fetches;
    }

    free = 0;

    if (mcf->zone) {
        shpool = (ngx_slab_pool_t *) mcf->zone->shm.addr;
        free = shpool->pfree * ngx_pagesize;
    }

    const struct {
        const char  *name;
        const char  *help;
        uint64_t     v;
    } gauges[] = {
        { "workers", "worker processes, those that are leaving, too", all.n },
        { "queue_bytes", "records that the helper has not acknowledged, of all "
          "workers", all.queue },
        { "queue_longest_bytes", "of the worker that has most of them",
          all.longest },
        { "queue_limit_bytes", "sandbox_queue, for each worker", mcf->queue },
        { "waiters", "requests that wait for the journal or for a lock",
          all.waiters },
        { "questions", "questions of the console API that are open, as workers "
          "see them", all.questions },
        { "questions_limit", "sandbox_api_questions, for each worker",
          mcf->questions },
        { "streams", "live streams that are open", all.streams },
        { "streams_limit", "sandbox_live_limit, for each worker",
          mcf->live_limit },
        { "fetches", "questions to upstream that are open", all.fetches },
        { "spool_bytes", "uploads that are read whole before they go on",
          ngx_http_sandbox_metrics->spool_bytes },
        { "spool_limit_bytes", "sandbox_spool_limit, for all workers",
          (uint64_t) mcf->spool_limit },
        { "endpoint_zone_used_bytes", "of the zone of learnt addresses, in "
          "whole pages", mcf->zone ? mcf->zone_size - free : 0 },
        { "endpoint_zone_limit_bytes", "sandbox_endpoint_zone",
          mcf->zone ? mcf->zone_size : 0 },
        { "workers_limit", "workers whose gauges are told, with those of "
          "earlier reloads", NGX_HTTP_SANDBOX_METRIC_WORKERS },
        { "fetches_limit", "questions to upstream, for each worker",
          NGX_HTTP_SANDBOX_FETCHES }
    };

    rc = SB_OK;

    for (i = 0; rc == SB_OK && i < sizeof(gauges) / sizeof(gauges[0]); i++) {
        rc = ngx_http_sandbox_metric_one(b, gauges[i].name, "gauge",
                                         gauges[i].help, gauges[i].v);
    }

    return rc;
}
