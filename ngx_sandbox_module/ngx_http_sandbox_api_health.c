/*
 * GET health: without a token only {"status"}, with one what it is made of.
 *
 * What the helper knows is asked for once for all who wait, and counts for a
 * second: whoever polls this, and everybody may, costs no more than that.
 */


#include "ngx_http_sandbox_api.h"


/* ms */
#define NGX_HTTP_SANDBOX_HEALTH_FRESH  1000
#define NGX_HTTP_SANDBOX_HEALTH_TIME   3000     /* upstream has 1.5 s of it */

#define NGX_HTTP_SANDBOX_HEALTH_MAX    4096


typedef struct {
    ngx_http_sandbox_ask_t   ask;
    ngx_queue_t              waiters;   /* of ngx_http_sandbox_api_t */
    ngx_uint_t               known;     /* 1: text is the helper's answer */
    ngx_msec_t               since;
    size_t                   len;
    u_char                   text[NGX_HTTP_SANDBOX_HEALTH_MAX];
} ngx_http_sandbox_health_t;


static void ngx_http_sandbox_health_piece(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_piece_t *p);
static void ngx_http_sandbox_health_gone(ngx_http_sandbox_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_sandbox_health_tell(void);
static ngx_int_t ngx_http_sandbox_health_answer(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static sb_rc_t ngx_http_sandbox_health_text(sb_buf_t *b, sb_jdoc_t *doc,
    const char *status);
static const char *ngx_http_sandbox_health_status(sb_jdoc_t *doc);


static ngx_http_sandbox_health_t  health;


ngx_int_t
ngx_http_sandbox_api_health(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_http_sandbox_question_t  q;

    if (health.waiters.next == NULL) {
        ngx_queue_init(&health.waiters);
    }

    if (!health.ask.open) {

        if (health.known
            && ngx_current_msec - health.since < NGX_HTTP_SANDBOX_HEALTH_FRESH)
        {
            return ngx_http_sandbox_health_answer(r, a);
        }

        health.known = 0;
        health.len = 0;

        health.ask.piece = ngx_http_sandbox_health_piece;
        health.ask.gone = ngx_http_sandbox_health_gone;
        health.ask.timeout = NGX_HTTP_SANDBOX_HEALTH_TIME;

        ngx_memzero(&q, sizeof(ngx_http_sandbox_question_t));
        ngx_str_set(&q.method, "GET");
        ngx_str_set(&q.path, "health");

        if (ngx_http_sandbox_ask(&health.ask, &q) != NGX_OK) {
            return ngx_http_sandbox_health_answer(r, a);
        }
    }

    ngx_queue_insert_tail(&health.waiters, &a->queue);
    a->queued = 1;

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;
    r->main->count++;

    return NGX_DONE;
}


void
ngx_http_sandbox_api_unqueue(ngx_http_sandbox_api_t *a)
{
    if (a->queued) {
        a->queued = 0;
        ngx_queue_remove(&a->queue);
    }
}


static void
ngx_http_sandbox_health_piece(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_piece_t *p)
{
    if ((p->status && p->status != NGX_HTTP_OK)
        || p->len > NGX_HTTP_SANDBOX_HEALTH_MAX - health.len)
    {
        ngx_http_sandbox_ask_cancel(ask);
        ngx_http_sandbox_health_tell();
        return;
    }

    if (p->len) {
        ngx_memcpy(health.text + health.len, p->data, p->len);
    }

    health.len += p->len;

    if (!p->last) {
        return;
    }

    health.known = 1;
    health.since = ngx_current_msec;

    ngx_http_sandbox_health_tell();
}


static void
ngx_http_sandbox_health_gone(ngx_http_sandbox_ask_t *ask, ngx_int_t rc)
{
    ngx_http_sandbox_health_tell();
}


/* Answers all who wait; those who come meanwhile wait for the next time. */

static void
ngx_http_sandbox_health_tell(void)
{
    ngx_queue_t             *q, now;
    ngx_http_sandbox_api_t  *a;

    if (ngx_queue_empty(&health.waiters)) {
        return;
    }

    ngx_queue_init(&now);
    ngx_queue_add(&now, &health.waiters);
    ngx_queue_init(&health.waiters);

    while (!ngx_queue_empty(&now)) {
        q = ngx_queue_head(&now);
        a = ngx_queue_data(q, ngx_http_sandbox_api_t, queue);

        ngx_http_sandbox_api_unqueue(a);

        ngx_http_set_log_request(a->request->connection->log, a->request);

        ngx_http_sandbox_api_finalize(a,
                                 ngx_http_sandbox_health_answer(a->request, a));
    }
}


/* "ok"; "degraded": traffic passes, something is late or away; "unavailable":
 * what must be on record is refused. */

static const char *
ngx_http_sandbox_health_status(sb_jdoc_t *doc)
{
    sb_str_t                       status;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                              ngx_http_sandbox_module);

    if (!ngx_http_sandbox_helper_active()) {
        return mcf->history_none ? "ok" : "unavailable";
    }

    if (doc == NULL || ngx_http_sandbox_helper_away(0)) {
        return mcf->history_none ? "degraded" : "unavailable";
    }

    status = sb_jv_str(sb_jdoc_root(doc), "status");

    return sb_eq(status, sb_lit("ok")) ? "ok"
           : sb_eq(status, sb_lit("degraded")) ? "degraded" : "unavailable";
}


static ngx_int_t
ngx_http_sandbox_health_answer(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    sb_rc_t      rc;
    sb_buf_t     b;
    ngx_str_t    body;
    sb_jdoc_t   *doc;
    ngx_uint_t   status;
    const char  *word;

    doc = health.known ? sb_jdoc_parse(sb_str(health.text, health.len), NULL,
                                       NULL)
                       : NULL;

    word = ngx_http_sandbox_health_status(doc);

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = 2 * NGX_HTTP_SANDBOX_HEALTH_MAX;

    rc = a->token ? ngx_http_sandbox_health_text(&b, doc, word)
                  : sb_buf_printf(&b, "{\"status\":\"%s\"}", word);

    sb_jdoc_free(doc);

    body.len = b.len;
    body.data = rc == SB_OK ? ngx_pnalloc(r->pool, b.len) : NULL;

    if (body.data == NULL) {
        sb_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(body.data, b.data, b.len);
    sb_buf_free(&b);

    status = ngx_strcmp(word, "unavailable") == 0 ? NGX_HTTP_SERVICE_UNAVAILABLE
                                                  : NGX_HTTP_OK;

    return ngx_http_sandbox_api_send(r, status, "application/json", &body);
}


/* The parts of the helper's answer, and what a worker knows. */

static sb_rc_t
ngx_http_sandbox_health_text(sb_buf_t *b, sb_jdoc_t *doc, const char *status)
{
    sb_rc_t           rc;
    sb_buf_t          part;
    ngx_uint_t        i;
    const sb_jv_t    *v;
    ngx_core_conf_t  *ccf;

    static const char  *names[] = { "store", "upstream", NULL };

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);

    rc = sb_buf_printf(b, "{\"status\":\"%s\",\"version\":\"" SB_VERSION "\","
                       "\"workers\":%ld,\"helper\":", status,
                       (long) ccf->worker_processes);

    ngx_memzero(&part, sizeof(sb_buf_t));
    part.max = NGX_HTTP_SANDBOX_HEALTH_MAX;

    v = doc ? sb_jv_get(sb_jdoc_root(doc), "helper") : NULL;

    if (rc == SB_OK && v) {
        rc = sb_jv_canonical(&part, v);
    }

    if (rc == SB_OK) {
        /* {"connected":true, and what stands in the helper's braces */
        rc = sb_buf_printf(b, "{\"connected\":%s%s%.*s",
                           ngx_http_sandbox_helper_active()
                           && !ngx_http_sandbox_helper_away(0)
                           ? "true" : "false",
                           part.len > 2 ? "," : "}",
                           part.len > 2 ? (int) part.len - 1 : 0,
                           part.len > 2 ? part.data + 1 : "");
    }

    sb_buf_free(&part);

    for (i = 0; rc == SB_OK && names[i]; i++) {
        rc = sb_buf_printf(b, ",\"%s\":", names[i]);
        v = doc ? sb_jv_get(sb_jdoc_root(doc), names[i]) : NULL;

        if (rc == SB_OK) {
            rc = v ? sb_jv_canonical(b, v) : sb_buf_add_str(b, sb_lit("null"));
        }
    }

    return rc == SB_OK ? sb_buf_add_c(b, '}') : rc;
}
