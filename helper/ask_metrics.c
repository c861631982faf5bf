/* GET metrics: what the helper counts, in Prometheus' text format; a worker
 * sends its own in front. */

#include "api.h"
#include "id.h"
#include "server.h"
#include "stats.h"


#define METRICS_MAX     (128 * 1024)
#define METRICS_PREFIX  "sandbox_gateway_"


static sb_rc_t
metrics_head(sb_buf_t *b, const char *name, const char *type, const char *help)
{
    return sb_buf_printf(b, "# HELP " METRICS_PREFIX "%s %s\n"
                         "# TYPE " METRICS_PREFIX "%s %s\n", name, help, name,
                         type);
}


static sb_rc_t
metrics_one(sb_buf_t *b, const char *name, const char *type, const char *help,
    uint64_t v)
{
    sb_rc_t  rc;

    rc = metrics_head(b, name, type, help);

    return rc != SB_OK ? rc
           : sb_buf_printf(b, METRICS_PREFIX "%s %llu\n", name,
                           (unsigned long long) v);
}


typedef struct {
    const char  *name;
    const char  *type;
    const char  *help;
    uint64_t     v;
} metrics_row_t;


static sb_rc_t
metrics_rows(sb_buf_t *b, const metrics_row_t *rows, size_t n)
{
    size_t   i;
    sb_rc_t  rc;

    rc = SB_OK;

    for (i = 0; rc == SB_OK && i < n; i++) {
        rc = metrics_one(b, rows[i].name, rows[i].type, rows[i].help,
                         rows[i].v);
    }

    return rc;
}


static sb_rc_t
metrics_seconds(sb_buf_t *b, const char *name, const char *help, uint64_t us)
{
    sb_rc_t  rc;

    rc = metrics_head(b, name, "gauge", help);

    return rc != SB_OK ? rc
           : sb_buf_printf(b, METRICS_PREFIX "%s %llu.%06llu\n", name,
                           (unsigned long long) (us / 1000000u),
                           (unsigned long long) (us % 1000000u));
}


static sb_rc_t
metrics_times(sb_buf_t *b, stats_time_e n)
{
    unsigned        i;
    sb_rc_t         rc;
    uint64_t        sum;
    const char     *name;
    stats_times_t   t;

    stats_times(n, &t);
    name = stats_time_name(n);
    sum = 0;

    rc = metrics_head(b, name, "histogram", stats_time_help(n));

    for (i = 0; rc == SB_OK && i < STATS_BUCKETS; i++) {
        sum += t.bucket[i];

        if (stats_bounds[i] == UINT64_MAX) {
            rc = sb_buf_printf(b, METRICS_PREFIX "%s_bucket{le=\"+Inf\"} %llu\n",
                               name, (unsigned long long) sum);

        } else {
            rc = sb_buf_printf(b, METRICS_PREFIX "%s_bucket{le=\"%llu.%06llu\"} "
                               "%llu\n", name,
                               (unsigned long long) stats_bounds[i] / 1000000u,
                               (unsigned long long) stats_bounds[i] % 1000000u,
                               (unsigned long long) sum);
        }
    }

    return rc != SB_OK ? rc
           : sb_buf_printf(b, METRICS_PREFIX "%s_sum %llu.%06llu\n"
                           METRICS_PREFIX "%s_count %llu\n", name,
                           (unsigned long long) (t.sum_us / 1000000u),
                           (unsigned long long) (t.sum_us % 1000000u), name,
                           (unsigned long long) sum);
}


static sb_rc_t
metrics_asks(sb_buf_t *b, ask_t *ask)
{
    ask_numbers_t  n;

    ask_numbers(ask, &n);

    const metrics_row_t  rows[] = {
        { "helper_questions", "gauge", "questions of the console API that are "
          "open", n.open },
        { "helper_questions_limit", "gauge", "--questions", n.limit },
        { "helper_questions_running", "gauge", "of these, that a thread is "
          "busy with", n.running },
        { "helper_question_threads", "gauge", "--question-threads", n.threads },
        { "helper_questions_total", "counter", "questions asked", n.asked },
        { "helper_questions_refused_total", "counter", "questions refused "
          "because too many were open", n.refused },
        { "live_streams_limit", "gauge", "--live", n.stream_limit },
        { "connections_limit", "gauge", "connections of workers that are taken",
          SERVER_CONNS },
        { "upstream_requests_limit", "gauge", "of the helper's own that may "
          "wait", FETCH_QUEUE },
        { "detached_limit", "gauge", "commands that are followed at most",
          INFLIGHT_DETACHED }
    };

    return metrics_rows(b, rows, sizeof(rows) / sizeof(rows[0]));
}


static sb_rc_t
metrics_index(sb_buf_t *b, index_t *index)
{
    sb_rc_t          rc;
    index_numbers_t  n;

    index_numbers(index, &n);

    const metrics_row_t  rows[] = {
        { "index_ready", "gauge", "0: the search index is being made, answers "
          "do not tell all", n.ready },
        { "index_files", "gauge", "history files that are indexed", n.files },
        { "index_files_done", "gauge", "of these, that were read to their end "
          "since the start", n.done },
        { "index_rows", "gauge", "operations in the index", n.rows },
        { "index_bytes", "gauge", "bytes of the index on the disk", n.bytes },
        { "index_cursor", "gauge", "everything up to this cursor is in the "
          "index", n.cursor },
        { "index_records_total", "counter", "records written into the index",
          n.indexed },
        { "index_cut_total", "counter", "of these, with more output than is "
          "searched", n.cut },
        { "index_rebuilds_total", "counter", "times the index was made anew",
          n.rebuilds },
        { "index_partial_total", "counter", "searches that took too long and "
          "told what they had", n.partial },
        { "index_refused_total", "counter", "searches for nothing that can be "
          "searched for, or for too much", n.refused },
        { "index_inexact_total", "counter", "facets and histograms that did not "
          "count all records", n.inexact }
    };

    rc = metrics_seconds(b, "index_lag_seconds", "age of the oldest news that "
                         "is in a history file and not in the index", n.lag_us);

    return rc == SB_OK ? metrics_rows(b, rows, sizeof(rows) / sizeof(rows[0]))
                       : rc;
}


ask_rc_e
ask_metrics(ask_question_t *q)
{
    int        i;
    api_t     *api;
    sb_rc_t    rc;
    sb_buf_t   b;

    api = q->context;
    memset(&b, 0, sizeof(b));
    b.max = METRICS_MAX;

    rc = metrics_seconds(&b, "apply_lag_seconds", "age of the oldest record "
                         "that is in the journal and not in a history file",
                         stats_lag_us(sb_now_us()));

    if (rc == SB_OK) {
        rc = metrics_one(&b, "apply_lag_records", "gauge", "records in the "
                         "journal that are not in history files",
                         stats_lag_records());
    }

    for (i = 0; rc == SB_OK && i < STATS_COUNT; i++) {

        if (i == STATS_APPLIED_US) {
            /* apply_lag_seconds says it */
            continue;
        }

        rc = metrics_one(&b, stats_name(i),
                         stats_is_counter(i) ? "counter" : "gauge",
                         stats_help(i), stats_get(i));
    }

    for (i = 0; rc == SB_OK && i < STATS_TIMES; i++) {
        rc = metrics_times(&b, i);
    }

    if (rc == SB_OK) {
        rc = metrics_asks(&b, api->ask);
    }

    if (rc == SB_OK && api->index) {
        rc = metrics_index(&b, api->index);
    }

    if (rc != SB_OK) {
        sb_buf_free(&b);
        return ASK_FAILED;
    }

    return ask_whole(q, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}
