/*
 * What all workers count, in a shared zone of its own: it survives a reload
 * (not a binary upgrade: the new master begins anew), and is told by GET
 * /console/api/v1/metrics.
 *
 * Counting is a relaxed atomic addition and may stand anywhere.  Where nobody
 * serves requests (master, "nginx -t") it goes to a place that nobody reads.
 */

#ifndef _NGX_HTTP_SANDBOX_METRICS_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_METRICS_H_INCLUDED_


#include "ngx_http_sandbox.h"


#define NGX_HTTP_SANDBOX_METRIC_LAYOUT   5

#define NGX_HTTP_SANDBOX_METRIC_OPS      192    /* more than there are */
#define NGX_HTTP_SANDBOX_METRIC_CODES    32
#define NGX_HTTP_SANDBOX_METRIC_BUCKETS  13
#define NGX_HTTP_SANDBOX_METRIC_WORKERS  256    /* old ones of reloads, too */


/* succeeded, failed, timeout, cancelled, unknown */
#define NGX_HTTP_SANDBOX_METRIC_STATUSES  5

typedef enum {
    NGX_HTTP_SANDBOX_ROAD_LIFECYCLE = 0,
    NGX_HTTP_SANDBOX_ROAD_STRAIGHT,
    NGX_HTTP_SANDBOX_ROAD_PROXY,
    NGX_HTTP_SANDBOX_ROADS
} ngx_http_sandbox_road_e;


/* Single counters: name without the prefix, what it is. */

#define NGX_HTTP_SANDBOX_METRIC_LIST(X)                                       \
    X(GAPS, "gaps_total",                                                     \
      "operations that passed without a record, each in a gap row")           \
    X(OUTPUT_LOST, "output_lost_bytes_total",                                 \
      "output that found no room in the queue")                               \
    X(OUTPUT_DROPPED, "output_dropped_bytes_total",                           \
      "output beyond sandbox_capture_limit, told in its record")              \
    X(INPUT_HIDDEN, "terminal_input_hidden_bytes_total",                      \
      "bytes typed into terminals that were not echoed, nor kept")            \
    X(INPUT_UNREAD, "terminal_input_unread_total",                            \
      "text messages to terminals that were not read")                        \
    X(CONTENTS_LOST, "contents_lost_total",                                   \
      "operations with contents of files that found no room in the queue")    \
    X(FILES_LATE, "files_late_total",                                         \
      "files that were written before it was known how they stood, as that"   \
      " took too long")                                                       \
    X(ENDS_SHORT, "ends_shortened_total",                                     \
      "ends without details because the queue was full")                      \
    X(AUTH_FAILURES, "auth_failures_total",                                   \
      "requests whose credentials, if any, were wrong")                       \
    X(API_REQUESTS, "console_api_requests_total",                             \
      "requests for the console API")                                         \
    X(API_CUT, "console_api_cut_total",                                       \
      "answers of the console API that broke off")                            \
    X(ENDPOINTS_EVICTED, "endpoint_zone_evicted_total",                       \
      "sandboxes whose addresses made room in sandbox_endpoint_zone")         \
    X(ENDPOINTS_PASSED, "endpoints_unchanged_total",                          \
      "endpoints answers that could not be rewritten and passed")             \
    X(BODIES_CLOSED, "refused_bodies_closed_total",                           \
      "connections closed because the body of a refusal went on")             \
    X(FETCHES, "fetches_total",                                               \
      "questions to upstream through the helper")                             \
    X(FETCHES_REFUSED, "fetches_refused_total",                               \
      "such questions that found no room, or no helper")                      \
    X(RECONNECTS, "helper_connections_lost_total",                            \
      "connections to the helper that were lost")                             \
    X(TICKETS, "port_tickets_total",                                          \
      "tickets for user ports handed out")                                    \
    X(TICKETS_DROPPED, "port_tickets_dropped_total",                          \
      "unused tickets that made room in sandbox_port_zone")                   \
    X(TICKETS_REFUSED, "port_tickets_refused_total",                          \
      "tickets for user ports that were wrong, used or late")                 \
    X(WRONG_TOKENS, "wrong_tokens_total",                                     \
      "wrong credentials that were shown")                                    \
    X(WRONG_SLOWED, "wrong_tokens_slowed_total",                              \
      "such whose answer had to wait, as many came from their address")       \
    X(TOKENS_CUT, "tokens_cut_total",                                         \
      "requests that were cut as their token was revoked, or over")           \
    X(SESSIONS, "sessions_total",                                             \
      "sessions of people begun")                                             \
    X(SESSIONS_DROPPED, "sessions_dropped_total",                             \
      "sessions that made room in sandbox_session_zone")                      \
    X(POLICY_ALLOWED, "policy_allowed_total",                                 \
      "operations that the policy allowed")                                   \
    X(POLICY_DENIED, "policy_denied_total",                                   \
      "operations that the policy denied")                                    \
    X(POLICY_OBSERVED, "policy_observed_total",                               \
      "operations that an observe rule would have denied")                    \
    X(POLICY_UNREAD, "policy_unread_total",                                   \
      "commands that rules could not read to the end")                        \
    X(POLICY_AGAIN, "policy_again_total",                                     \
      "operations that had waited while the rules changed, and were judged"   \
      " again")                                                               \
    X(ARCHIVES, "archives_total",                                             \
      "archives in uploads that were looked into for the policy")             \
    X(ARCHIVES_UNKNOWN, "archives_unknown_total",                             \
      "archives of which nothing is known: the helper was away, or it took"   \
      " too long")                                                            \
    X(SPOOL_REFUSED, "spool_refused_total",                                   \
      "uploads refused as sandbox_spool_limit was reached")                   \
    X(LOCKS_PASSED, "locks_passed_total",                                     \
      "operations that went without a lock as the helper was away")           \
    X(PRECONDITIONS_FAILED, "preconditions_failed_total",                     \
      "uploads refused because their file was not the expected one")          \
    X(RATE_REFUSED, "rate_refused_total",                                     \
      "requests beyond sandbox_rate")                                         \
    X(RATE_FORGOTTEN, "rate_forgotten_total",                                 \
      "actors whose account made room in sandbox_rate_zone")                  \
    X(REDACTED, "redacted_total",                                             \
      "credentials masked in what is recorded, told in its record")

typedef enum {
#define NGX_HTTP_SANDBOX_METRIC_ENUM(id, name, help)                          \
    NGX_HTTP_SANDBOX_METRIC_##id,
    NGX_HTTP_SANDBOX_METRIC_LIST(NGX_HTTP_SANDBOX_METRIC_ENUM)
#undef NGX_HTTP_SANDBOX_METRIC_ENUM
    NGX_HTTP_SANDBOX_METRIC_COUNT
} ngx_http_sandbox_metric_e;


/* a worker's own gauges: written by it alone; a cache line */

typedef struct {
    ngx_atomic_t       pid;             /* 0: free */
    ngx_atomic_t       queue_bytes;
    ngx_atomic_t       waiters;
    ngx_atomic_t       questions;
    ngx_atomic_t       fetches;
    ngx_atomic_t       unsent;          /* operations whose record is lost with
                                           this process */
    ngx_atomic_t       streams;
    ngx_atomic_t       spool_bytes;
} ngx_http_sandbox_metric_worker_t;


typedef struct {
    ngx_atomic_t       buckets[NGX_HTTP_SANDBOX_METRIC_BUCKETS];
    ngx_atomic_t       sum_ms;
} ngx_http_sandbox_metric_times_t;


typedef struct {
    ngx_uint_t         layout;
    size_t             size;
    time_t             since;

    ngx_atomic_t       begun[NGX_HTTP_SANDBOX_METRIC_OPS];
    ngx_atomic_t       ended[NGX_HTTP_SANDBOX_METRIC_OPS]
                            [NGX_HTTP_SANDBOX_METRIC_STATUSES];
    ngx_atomic_t       refused[NGX_HTTP_SANDBOX_METRIC_CODES];
    ngx_atomic_t       single[NGX_HTTP_SANDBOX_METRIC_COUNT];
    ngx_atomic_t       spool_bytes;     /* of all workers */

    ngx_http_sandbox_metric_times_t   upstream[NGX_HTTP_SANDBOX_ROADS];
    ngx_http_sandbox_metric_worker_t  workers[NGX_HTTP_SANDBOX_METRIC_WORKERS];
} ngx_http_sandbox_metrics_t;


/* never NULL */
extern ngx_http_sandbox_metrics_t        *ngx_http_sandbox_metrics;
extern ngx_http_sandbox_metric_worker_t  *ngx_http_sandbox_metric_worker;

extern const char        *ngx_http_sandbox_metric_codes[];
extern const char        *ngx_http_sandbox_metric_statuses[];
/* upper bounds in ms; the last bucket has none */
extern const ngx_uint_t   ngx_http_sandbox_metric_bounds[];


#define ngx_http_sandbox_metric_incr(counter, n)                              \
    ((void) __atomic_fetch_add(&(counter), (n), __ATOMIC_RELAXED))

/* ngx_http_sandbox_metric_add(GAPS, 1) */
#define ngx_http_sandbox_metric_add(id, n)                                    \
    ngx_http_sandbox_metric_incr(                                             \
        ngx_http_sandbox_metrics->single[NGX_HTTP_SANDBOX_METRIC_##id], n)

/* A gauge of this worker, such as queue_bytes. */
#define ngx_http_sandbox_metric_gauge(field, n)                               \
    (ngx_http_sandbox_metric_worker->field = (ngx_atomic_uint_t) (n))


/* The zone; in postconfiguration. */
char *ngx_http_sandbox_metric_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* A place for this worker's gauges; given back at its exit.  Returns how many
 * operations went with workers that were killed before they had sent what is to
 * be recorded of them. */
ngx_uint_t ngx_http_sandbox_metric_init(ngx_http_sandbox_main_conf_t *mcf);
void ngx_http_sandbox_metric_exit(void);

/* An operation has begun on record; it ends under the same name. */
void ngx_http_sandbox_metric_begun(ngx_http_sandbox_ctx_t *ctx);
/* Every intercepted request is over: what upstream took, and, when it has
 * begun on record, how it ended. */
void ngx_http_sandbox_metric_ended(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
void ngx_http_sandbox_metric_refused(const char *code);

/* ngx_http_sandbox_metrics_text.c */
/* All of it in Prometheus' text format. */
sb_rc_t ngx_http_sandbox_metric_text(sb_buf_t *b,
    ngx_http_sandbox_main_conf_t *mcf, ngx_uint_t helper_up);


#endif /* _NGX_HTTP_SANDBOX_METRICS_H_INCLUDED_ */
