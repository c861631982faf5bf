/*
 * What the worker has to do with sandbox-helper (design 2, docs/frames.md).
 *
 * Control: frames are copied into a queue and stay there until the helper has
 * acknowledged them; one write a loop round sends what is new.  After a
 * reconnect the helper says what it has, the rest is sent again.
 * Bulk: questions that must never stand before a BEGIN.
 */


#include "ngx_http_sandbox.h"
#include "ngx_http_sandbox_link.h"
#include "ngx_http_sandbox_queue.h"
#include "ngx_http_sandbox_gap.h"
#include "ngx_http_sandbox_full.h"
#include "ngx_http_sandbox_fetch.h"
#include "ngx_http_sandbox_ask.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"
#include <poll.h>


/* all in ms */
#define NGX_HTTP_SANDBOX_LATER      5
#define NGX_HTTP_SANDBOX_EXIT_TIME  500
#define NGX_HTTP_SANDBOX_PAUSE      500     /* ms, while the journal fails */
#define NGX_HTTP_SANDBOX_HOLD_STEP  100
#define NGX_HTTP_SANDBOX_HOLD_AWAY  1000
#define NGX_HTTP_SANDBOX_HOLD_TIME  3000    /* without an answer */


typedef struct {
    ngx_uint_t                 active;

    ngx_http_sandbox_link_t    control;
    ngx_http_sandbox_link_t    bulk;
    ngx_http_sandbox_queue_t   queue;
    ngx_event_t                flush;       /* at the end of the loop round */
    ngx_event_t                later;       /* for what nobody waits for */

    ngx_queue_t                waiters;
    ngx_event_t                timer;       /* non-cancelable: a worker that
                                               exits waits for the waiters */
    ngx_event_t                hold;        /* and for acknowledgements */
    ngx_msec_t                 answered;
    ngx_uint_t                 failing;     /* the journal is, said once */
    uint64_t                   failed;      /* seq that it failed for */
    uint64_t                   acked;       /* ... up to which it is written */
    ngx_uint_t                 away;
    ngx_msec_t                 away_since;

    ngx_connection_t           dummy;       /* event debugging wants an fd */
} ngx_http_sandbox_helper_t;


static ngx_int_t ngx_http_sandbox_helper_control(ngx_http_sandbox_link_t *l,
    sb_frame_t *f);
static ngx_int_t ngx_http_sandbox_helper_bulk(ngx_http_sandbox_link_t *l,
    sb_frame_t *f);
static ngx_int_t ngx_http_sandbox_helper_writable(ngx_http_sandbox_link_t *l);
static void ngx_http_sandbox_helper_gone(ngx_http_sandbox_link_t *l);
static void ngx_http_sandbox_flush_handler(ngx_event_t *ev);
static void ngx_http_sandbox_ack(uint64_t seq);
static void ngx_http_sandbox_nack(ngx_http_sandbox_link_t *l, uint64_t seq,
    ngx_err_t err);
static void ngx_http_sandbox_answer(uint64_t seq, ngx_int_t rc);
static void ngx_http_sandbox_timer_handler(ngx_event_t *ev);
static void ngx_http_sandbox_timer_arm(void);
static void ngx_http_sandbox_hold_handler(ngx_event_t *ev);


static ngx_http_sandbox_helper_t  helper;


ngx_int_t
ngx_http_sandbox_helper_init(ngx_cycle_t *cycle,
    ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_memzero(&helper, sizeof(ngx_http_sandbox_helper_t));

    ngx_queue_init(&helper.waiters);
    ngx_http_sandbox_lock_init(cycle->log);
    ngx_http_sandbox_queue_init(&helper.queue, mcf->queue);

    if (mcf->helper == NGX_HTTP_SANDBOX_HELPER_NONE
        || (mcf->locations == 0 && mcf->apis == 0))
    {
        return NGX_OK;
    }

    helper.active = 1;
    helper.dummy.fd = (ngx_socket_t) -1;

    helper.flush.handler = ngx_http_sandbox_flush_handler;
    helper.flush.data = &helper.dummy;
    helper.flush.log = cycle->log;

    helper.later.handler = ngx_http_sandbox_flush_handler;
    helper.later.data = &helper.dummy;
    helper.later.log = cycle->log;
    helper.later.cancelable = 1;

    helper.timer.handler = ngx_http_sandbox_timer_handler;
    helper.timer.data = &helper.dummy;
    helper.timer.log = cycle->log;

    helper.hold.handler = ngx_http_sandbox_hold_handler;
    helper.hold.data = &helper.dummy;
    helper.hold.log = cycle->log;

    helper.away = 1;
    helper.away_since = ngx_current_msec;

    helper.control.role = "control";
    helper.control.socket = mcf->socket;
    helper.control.frame = ngx_http_sandbox_helper_control;
    helper.control.writable = ngx_http_sandbox_helper_writable;
    helper.control.gone = ngx_http_sandbox_helper_gone;

    sb_random(&helper.control.instance, sizeof(helper.control.instance));

    helper.bulk.role = "bulk";
    helper.bulk.socket = mcf->socket;
    helper.bulk.frame = ngx_http_sandbox_helper_bulk;
    helper.bulk.gone = ngx_http_sandbox_ask_gone;
    helper.bulk.instance = helper.control.instance;

    ngx_http_sandbox_fetch_init(&helper.bulk, cycle->log);
    ngx_http_sandbox_ask_init(&helper.bulk, mcf->questions, mcf->live_limit,
                              cycle->log);

    ngx_http_sandbox_link_open(&helper.control, cycle->log);
    ngx_http_sandbox_link_open(&helper.bulk, cycle->log);

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_helper_control(ngx_http_sandbox_link_t *l, sb_frame_t *f)
{
    uint64_t  code;

    switch (f->type) {

    case SB_F_WELCOME:

        l->ready = 1;
        l->wait = 0;

        ngx_http_sandbox_full_set(NULL);

        if (helper.away && !helper.failing) {
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "sandbox helper: connected");
        }

        helper.away = 0;

        /* what it has is answered, the rest goes (again) */

        ngx_http_sandbox_ack(sb_field_u64(f, SB_T_LAST_SEQ, 0));
        ngx_http_sandbox_queue_rewind(&helper.queue);
        ngx_http_sandbox_gap_send();
        ngx_http_sandbox_lock_tell();

        return ngx_http_sandbox_helper_writable(l) == NGX_ERROR ? NGX_ERROR
                                                                : NGX_OK;

    case SB_F_ACK:

        code = sb_field_u64(f, SB_T_CODE, 0);

        if (code) {
            ngx_http_sandbox_nack(l, f->seq, (ngx_err_t) code);

        } else {
            ngx_http_sandbox_ack(f->seq);
        }

        return NGX_OK;

    case SB_F_GRANTED:
        ngx_http_sandbox_lock_granted(f);
        return NGX_OK;

    case SB_F_FULL:
        ngx_http_sandbox_full_set(f);
        return NGX_OK;

    default:
        /* of a later version */
        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_sandbox_helper_bulk(ngx_http_sandbox_link_t *l, sb_frame_t *f)
{
    if (f->type == SB_F_WELCOME) {
        l->ready = 1;
        l->wait = 0;

    } else if (f->type == SB_F_FETCHED) {
        ngx_http_sandbox_fetch_answer(f);

    } else if (f->type == SB_F_ANSWER || f->type == SB_F_CANCEL) {
        return ngx_http_sandbox_ask_frame(f);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_helper_writable(ngx_http_sandbox_link_t *l)
{
    ngx_int_t  rc;

    if (l->out_len) {
        /* HELLO is still on its way */
        return NGX_AGAIN;
    }

    rc = ngx_http_sandbox_queue_write(&helper.queue, l->connection);

    if (rc == NGX_OK && !ngx_http_sandbox_gap_pending()) {
        /* it is in the helper's socket, which outlives this process */
        ngx_http_sandbox_metric_gauge(unsent, 0);
    }

    return rc;
}


static void
ngx_http_sandbox_helper_gone(ngx_http_sandbox_link_t *l)
{
    if (!helper.failing) {
        /* else closed by ourselves, and soon here again */

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "sandbox helper: the connection is gone, %uz bytes wait "
                      "for it", helper.queue.bytes);
    }

    helper.away = 1;
    helper.away_since = ngx_current_msec;

    /* what it has not acknowledged it may not have; gaps still come on top */

    ngx_http_sandbox_metric_worker->unsent +=
                                ngx_http_sandbox_queue_begins(&helper.queue);
}


static void
ngx_http_sandbox_flush_handler(ngx_event_t *ev)
{
    ngx_http_sandbox_link_t  *l;

    l = &helper.control;

    if (!l->ready || l->connection == NULL
        || (l->connection->write->active && !l->connection->write->ready))
    {
        return;
    }

    if (ngx_http_sandbox_helper_writable(l) == NGX_ERROR) {
        ngx_http_sandbox_link_close(l);
    }
}


uint64_t
ngx_http_sandbox_helper_send(u_char *frame, size_t len, ngx_uint_t reserve)
{
    uint64_t  seq;

    if (!helper.active) {
        return 0;
    }

    seq = ngx_http_sandbox_queue_add(&helper.queue, frame, len, reserve);

    if (seq == 0) {
        return 0;
    }

    ngx_http_sandbox_metric_gauge(queue_bytes, helper.queue.bytes);
    if (frame[4] == SB_F_BEGIN && !(frame[5] & SB_FF_STRICT)) {
        ngx_http_sandbox_metric_worker->unsent++;
    }

    ngx_http_sandbox_helper_hold();

    if (helper.control.ready) {

        if (frame[5] & SB_FF_STRICT) {
            ngx_http_sandbox_helper_flush();

        } else if (!helper.later.timer_set) {
            /* goes with the next that somebody waits for, or then */
            ngx_add_timer(&helper.later, NGX_HTTP_SANDBOX_LATER);
        }

    }

    return seq;
}


void
ngx_http_sandbox_helper_push(void)
{
    ngx_http_sandbox_flush_handler(&helper.flush);
}


void
ngx_http_sandbox_helper_flush(void)
{
    if (helper.control.ready) {
        ngx_post_event(&helper.flush, &ngx_posted_events);
    }
}


ngx_uint_t
ngx_http_sandbox_helper_active(void)
{
    return helper.active;
}


static void
ngx_http_sandbox_ack(uint64_t seq)
{
    if (helper.failing && seq >= helper.failed) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "sandbox helper: the journal can be written again");
        helper.failing = 0;
    }

    helper.answered = ngx_current_msec;
    helper.acked = ngx_max(helper.acked, seq);

    ngx_http_sandbox_queue_release(&helper.queue, seq);
    ngx_http_sandbox_metric_gauge(queue_bytes, helper.queue.bytes);
    ngx_http_sandbox_answer(seq, NGX_OK);
}


/*
 * The journal could not be written: who waits is refused.  The frames stay, and
 * are sent again on a new connection after a pause.
 */

static void
ngx_http_sandbox_nack(ngx_http_sandbox_link_t *l, uint64_t seq, ngx_err_t err)
{
    if (!helper.failing) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "sandbox helper: the journal cannot be written, records "
                      "wait and strict operations are refused");
        helper.failing = 1;
    }

    helper.failed = seq;

    ngx_http_sandbox_answer(seq, NGX_ERROR);

    l->wait = NGX_HTTP_SANDBOX_PAUSE;
    ngx_http_sandbox_link_close(l);
}


/* Resumes who waits for frames up to seq. */

static void
ngx_http_sandbox_answer(uint64_t seq, ngx_int_t rc)
{
    ngx_queue_t             *q;
    ngx_http_sandbox_ctx_t  *ctx;

    while (!ngx_queue_empty(&helper.waiters)) {

        q = ngx_queue_head(&helper.waiters);
        ctx = ngx_queue_data(q, ngx_http_sandbox_ctx_t, queue);

        if (ctx->wait_seq > seq) {
            break;
        }

        ngx_queue_remove(q);
        ngx_http_sandbox_resume(ctx, rc);
    }
}


ngx_uint_t
ngx_http_sandbox_helper_away(ngx_msec_t timeout)
{
    return helper.away
           && (ngx_msec_int_t) (ngx_current_msec - helper.away_since)
              >= (ngx_msec_int_t) timeout;
}


void
ngx_http_sandbox_helper_each(ngx_http_sandbox_queued_pt handler)
{
    ngx_http_sandbox_queue_each(&helper.queue, handler);
}


ngx_uint_t
ngx_http_sandbox_helper_acked(uint64_t seq)
{
    return seq <= helper.acked;
}


void
ngx_http_sandbox_helper_wait(ngx_http_sandbox_ctx_t *ctx, ngx_msec_t timeout)
{
    ctx->deadline = ngx_current_msec + timeout;

    ngx_queue_insert_tail(&helper.waiters, &ctx->queue);
    ngx_http_sandbox_metric_worker->waiters++;
    ngx_http_sandbox_timer_arm();
}


void
ngx_http_sandbox_helper_forget(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_queue_remove(&ctx->queue);
    ngx_http_sandbox_metric_worker->waiters--;

    if (ngx_queue_empty(&helper.waiters) && helper.timer.timer_set) {
        ngx_del_timer(&helper.timer);
    }
}


static void
ngx_http_sandbox_timer_arm(void)
{
    ngx_queue_t             *q;
    ngx_msec_int_t           left;
    ngx_http_sandbox_ctx_t  *ctx;

    if (helper.timer.timer_set || ngx_queue_empty(&helper.waiters)) {
        return;
    }

    q = ngx_queue_head(&helper.waiters);
    ctx = ngx_queue_data(q, ngx_http_sandbox_ctx_t, queue);

    left = (ngx_msec_int_t) (ctx->deadline - ngx_current_msec);

    /* locations may have different time-outs: look at least this often */
    left = ngx_min(ngx_max(left, 1), 100);

    ngx_add_timer(&helper.timer, (ngx_msec_t) left);
}


static void
ngx_http_sandbox_timer_handler(ngx_event_t *ev)
{
    ngx_queue_t             *q, *next, late;
    ngx_http_sandbox_ctx_t  *ctx;

    /* resuming may add waiters: those that are late are taken out first */

    ngx_queue_init(&late);

    for (q = ngx_queue_head(&helper.waiters);
         q != ngx_queue_sentinel(&helper.waiters);
         q = next)
    {
        next = ngx_queue_next(q);
        ctx = ngx_queue_data(q, ngx_http_sandbox_ctx_t, queue);

        if ((ngx_msec_int_t) (ctx->deadline - ngx_current_msec) <= 0) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&late, q);
        }
    }

    while (!ngx_queue_empty(&late)) {
        q = ngx_queue_head(&late);
        ngx_queue_remove(q);

        ctx = ngx_queue_data(q, ngx_http_sandbox_ctx_t, queue);

        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "sandbox %s: the helper did not answer in time",
                      ctx->id_text);

        ngx_http_sandbox_resume(ctx, NGX_ABORT);
    }

    ngx_http_sandbox_timer_arm();
}


void
ngx_http_sandbox_helper_hold(void)
{
    if (!helper.hold.timer_set) {
        helper.answered = ngx_current_msec;
        ngx_add_timer(&helper.hold, NGX_HTTP_SANDBOX_HOLD_STEP);
    }
}


/*
 * Its being set is what keeps an exiting worker: a helper that is just being
 * replaced is connected to again and has everything before the worker leaves.
 */

static void
ngx_http_sandbox_hold_handler(ngx_event_t *ev)
{
    if (helper.control.ready) {
        ngx_http_sandbox_gap_send();
    }

    if (helper.queue.bytes == 0 && !ngx_http_sandbox_gap_pending()) {
        return;
    }

    if (ngx_exiting
        && ngx_current_msec - helper.answered >= NGX_HTTP_SANDBOX_HOLD_TIME)
    {
        return;
    }

    ngx_add_timer(ev, ngx_exiting || helper.control.ready
                      ? NGX_HTTP_SANDBOX_HOLD_STEP
                      : NGX_HTTP_SANDBOX_HOLD_AWAY);
}


/*
 * The worker leaves: what is queued is written and the acknowledgement waited
 * for, a bounded time; nobody is served by this process any more.
 */

void
ngx_http_sandbox_helper_exit(ngx_cycle_t *cycle)
{
    struct pollfd             pfd;
    ngx_msec_t                start;
    ngx_http_sandbox_link_t  *l;

    if (!helper.active) {
        return;
    }

    l = &helper.control;

    l->stopped = 1;
    helper.bulk.stopped = 1;

    /* after a fast shutdown: who still waits, for the record or for a lock, is
     * not sent upstream any more */
    ngx_queue_init(&helper.waiters);
    ngx_http_sandbox_lock_init(cycle->log);

    if (l->ready) {
        ngx_http_sandbox_gap_send();
    }

    ngx_time_update();
    start = ngx_current_msec;

    while (helper.queue.bytes && l->ready && l->connection) {

        if (ngx_http_sandbox_helper_writable(l) == NGX_ERROR) {
            break;
        }

        pfd.fd = l->connection->fd;
        pfd.events = POLLIN;
        pfd.revents = 0;

        if (poll(&pfd, 1, 20) > 0) {

            /* no event has told how much there is to be read */
            l->connection->read->ready = 1;
            l->connection->read->available = -1;

            if (ngx_http_sandbox_link_read(l) == NGX_ERROR) {
                break;
            }
        }

        ngx_time_update();

        if (ngx_current_msec - start >= NGX_HTTP_SANDBOX_EXIT_TIME) {
            break;
        }
    }

    if (helper.queue.bytes || ngx_http_sandbox_gap_pending()) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "sandbox helper: did not answer at exit, %uz bytes of "
                      "records and %ui gaps may be lost", helper.queue.bytes,
                      ngx_http_sandbox_gap_pending());
    }
}
