/* Questions of the console API to the helper (ngx_http_sandbox_ask.h). */


#include "ngx_http_sandbox_ask.h"
#include "ngx_http_sandbox_metrics.h"


/* ms between two looks at deadlines; while it is set an exiting worker stays */
#define NGX_HTTP_SANDBOX_ASK_TICK  200

/* room of the bulk connection that is left for CREDIT and CANCEL */
#define NGX_HTTP_SANDBOX_ASK_SPARE  16384

/* lists that questions are found in by their numbers: so many that of a thousand
 * live streams hardly two share one, for each that is passed over is far away in
 * memory */
#define NGX_HTTP_SANDBOX_ASK_SLOTS  4096


typedef struct {
    ngx_http_sandbox_link_t  *bulk;
    ngx_queue_t               open;
    ngx_queue_t               slots[NGX_HTTP_SANDBOX_ASK_SLOTS];
    ngx_uint_t                n;
    ngx_uint_t                limit;
    ngx_uint_t                streams;
    ngx_uint_t                stream_limit;
    uint64_t                  seq;
    ngx_event_t               tick;     /* non-cancelable */
    ngx_event_t               broken;   /* the link cannot be written */
    ngx_connection_t          dummy;
} ngx_http_sandbox_asks_t;


static ngx_queue_t *ngx_http_sandbox_ask_slot(uint64_t seq);
static ngx_http_sandbox_ask_t *ngx_http_sandbox_ask_find(uint64_t seq);
static ngx_int_t ngx_http_sandbox_ask_piece(ngx_http_sandbox_ask_t *ask,
    sb_frame_t *f);
static void ngx_http_sandbox_ask_count(ngx_http_sandbox_ask_t *ask,
    ngx_int_t n);
static void ngx_http_sandbox_ask_close(ngx_http_sandbox_ask_t *ask);
static void ngx_http_sandbox_ask_put(sb_frame_writer_t *w, uint16_t tag,
    ngx_str_t *value);
static void ngx_http_sandbox_ask_note(uint8_t type, uint64_t seq,
    uint64_t count);
static void ngx_http_sandbox_ask_tick_handler(ngx_event_t *ev);
static void ngx_http_sandbox_ask_broken_handler(ngx_event_t *ev);


static ngx_http_sandbox_asks_t  asks;

static const char  *ngx_http_sandbox_ask_roles[] = {
    "viewer", "operator", "admin"
};


void
ngx_http_sandbox_ask_init(ngx_http_sandbox_link_t *bulk, ngx_uint_t limit,
    ngx_uint_t stream_limit, ngx_log_t *log)
{
    ngx_uint_t  i;

    ngx_memzero(&asks, sizeof(ngx_http_sandbox_asks_t));

    ngx_queue_init(&asks.open);

    for (i = 0; i < NGX_HTTP_SANDBOX_ASK_SLOTS; i++) {
        ngx_queue_init(&asks.slots[i]);
    }

    asks.stream_limit = stream_limit;
    asks.bulk = bulk;
    asks.limit = limit;
    asks.dummy.fd = (ngx_socket_t) -1;

    asks.tick.handler = ngx_http_sandbox_ask_tick_handler;
    asks.tick.data = &asks.dummy;
    asks.tick.log = log;

    asks.broken.handler = ngx_http_sandbox_ask_broken_handler;
    asks.broken.data = &asks.dummy;
    asks.broken.log = log;
}


ngx_uint_t
ngx_http_sandbox_asks(void)
{
    return asks.n + asks.streams;
}


ngx_int_t
ngx_http_sandbox_ask(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_question_t *q)
{
    size_t                    len, size;
    u_char                   *p;
    sb_frame_writer_t         w;
    ngx_http_sandbox_link_t  *l;

    l = asks.bulk;

    if (l == NULL || !l->ready) {
        return NGX_DECLINED;
    }

    size = SB_FRAME_HEAD + 128 + q->method.len + q->path.len + q->query.len
           + q->body.len + q->actor_type.len + q->actor_id.len
           + q->identity.len + q->sandbox.len + q->event_id.len
           + q->lease.len;

    if ((ask->stream ? asks.streams >= asks.stream_limit
                     : asks.n >= asks.limit)
        || l->out_len + size + NGX_HTTP_SANDBOX_ASK_SPARE
           > NGX_HTTP_SANDBOX_LINK_MAX)
    {
        return NGX_BUSY;
    }

    p = ngx_http_sandbox_link_room(l, size);
    if (p == NULL) {
        return NGX_BUSY;
    }

    sb_frame_begin(&w, p, size, SB_F_ASK,
                   ask->stream ? SB_FF_SHARE : 0, ++asks.seq, NULL,
                   sb_now_us());
    ask->window = ask->stream ? NGX_HTTP_SANDBOX_ASK_STREAM : SB_ASK_WINDOW;
    sb_frame_put_u64(&w, SB_T_COUNT, ask->window);
    ngx_http_sandbox_put_text(&w, SB_T_ROLE,
                              ngx_http_sandbox_ask_roles[q->role]);
    ngx_http_sandbox_ask_put(&w, SB_T_METHOD, &q->method);
    ngx_http_sandbox_ask_put(&w, SB_T_PATH, &q->path);
    ngx_http_sandbox_ask_put(&w, SB_T_QUERY, &q->query);
    ngx_http_sandbox_ask_put(&w, SB_T_ACTOR_TYPE, &q->actor_type);
    ngx_http_sandbox_ask_put(&w, SB_T_ACTOR_ID, &q->actor_id);
    ngx_http_sandbox_ask_put(&w, SB_T_IDENTITY, &q->identity);
    ngx_http_sandbox_ask_put(&w, SB_T_SANDBOX, &q->sandbox);
    ngx_http_sandbox_ask_put(&w, SB_T_EVENT_ID, &q->event_id);
    ngx_http_sandbox_ask_put(&w, SB_T_LOCK_LEASE, &q->lease);
    ngx_http_sandbox_ask_put(&w, SB_T_DATA, &q->body);

    len = sb_frame_end(&w);

    if (len == 0) {
        return NGX_BUSY;
    }

    l->out_len += len;

    ask->seq = asks.seq;
    ask->owed = 0;
    ask->deadline = ngx_current_msec + ask->timeout;
    ask->open = 1;
    ask->head = 0;

    ngx_queue_insert_tail(&asks.open, &ask->queue);
    ngx_queue_insert_head(ngx_http_sandbox_ask_slot(ask->seq), &ask->slot);
    ngx_http_sandbox_ask_count(ask, 1);

    if (!asks.tick.timer_set) {
        ngx_add_timer(&asks.tick, NGX_HTTP_SANDBOX_ASK_TICK);
    }

    if (ngx_http_sandbox_link_write(l) == NGX_ERROR) {
        ngx_post_event(&asks.broken, &ngx_posted_events);
    }

    return NGX_OK;
}


static ngx_queue_t *
ngx_http_sandbox_ask_slot(uint64_t seq)
{
    return &asks.slots[seq % NGX_HTTP_SANDBOX_ASK_SLOTS];
}


static void
ngx_http_sandbox_ask_count(ngx_http_sandbox_ask_t *ask, ngx_int_t n)
{
    if (ask->stream) {
        asks.streams += n;
        ngx_http_sandbox_metric_gauge(streams, asks.streams);

    } else {
        asks.n += n;
        ngx_http_sandbox_metric_gauge(questions, asks.n);
    }
}


static void
ngx_http_sandbox_ask_put(sb_frame_writer_t *w, uint16_t tag, ngx_str_t *value)
{
    if (value->len) {
        sb_frame_put(w, tag, ngx_http_sandbox_str(value));
    }
}


/* CREDIT and CANCEL are small, and there is room for them unless the helper
 * has stopped reading: then it is given up. */

static void
ngx_http_sandbox_ask_note(uint8_t type, uint64_t seq, uint64_t count)
{
    size_t                    size;
    u_char                   *p;
    sb_frame_writer_t         w;
    ngx_http_sandbox_link_t  *l;

    l = asks.bulk;
    size = SB_FRAME_HEAD + 16;

    p = ngx_http_sandbox_link_room(l, size);

    if (p == NULL) {
        ngx_post_event(&asks.broken, &ngx_posted_events);
        return;
    }

    sb_frame_begin(&w, p, size, type, 0, seq, NULL, sb_now_us());

    if (count) {
        sb_frame_put_u64(&w, SB_T_COUNT, count);
    }

    l->out_len += sb_frame_end(&w);

    if (ngx_http_sandbox_link_write(l) == NGX_ERROR) {
        ngx_post_event(&asks.broken, &ngx_posted_events);
    }
}


void
ngx_http_sandbox_ask_credit(ngx_http_sandbox_ask_t *ask, size_t n)
{
    if (!ask->open || n == 0) {
        return;
    }

    if (ask->window == 0) {
        /* the time counts while something may come */
        ask->deadline = ngx_current_msec + ask->timeout;
    }

    ask->window += n;

    if (ask->stream) {
        /* many small pieces to many readers: a frame for each would be as
         * much work as the pieces */
        ask->owed += n;

        if (ask->owed < NGX_HTTP_SANDBOX_ASK_STREAM / 2) {
            return;
        }

        n = ask->owed;
        ask->owed = 0;
    }

    ngx_http_sandbox_ask_note(SB_F_CREDIT, ask->seq, n);
}


void
ngx_http_sandbox_ask_cancel(ngx_http_sandbox_ask_t *ask)
{
    if (!ask->open) {
        return;
    }

    ngx_http_sandbox_ask_close(ask);
    ngx_http_sandbox_ask_note(SB_F_CANCEL, ask->seq, 0);
}


static void
ngx_http_sandbox_ask_close(ngx_http_sandbox_ask_t *ask)
{
    ask->open = 0;
    ngx_queue_remove(&ask->queue);
    ngx_queue_remove(&ask->slot);
    ngx_http_sandbox_ask_count(ask, -1);

    if (ngx_http_sandbox_asks() == 0 && asks.tick.timer_set) {
        ngx_del_timer(&asks.tick);
    }
}


static ngx_http_sandbox_ask_t *
ngx_http_sandbox_ask_find(uint64_t seq)
{
    ngx_queue_t             *q, *slot;
    ngx_http_sandbox_ask_t  *ask;

    slot = ngx_http_sandbox_ask_slot(seq);

    for (q = ngx_queue_head(slot);
         q != ngx_queue_sentinel(slot);
         q = ngx_queue_next(q))
    {
        ask = ngx_queue_data(q, ngx_http_sandbox_ask_t, slot);

        if (ask->seq == seq) {
            return ask;
        }
    }

    /* cancelled, the helper did not know it yet */

    return NULL;
}


ngx_int_t
ngx_http_sandbox_ask_frame(sb_frame_t *f)
{
    ngx_int_t                rc;
    uint16_t                 tag;
    sb_str_t                 fields, v;
    ngx_http_sandbox_ask_t  *ask;

    ask = ngx_http_sandbox_ask_find(f->seq);

    if (f->type == SB_F_CANCEL) {

        if (ask) {
            ngx_http_sandbox_ask_close(ask);
            ask->gone(ask, NGX_ERROR);
        }

        return NGX_OK;
    }

    rc = ask ? ngx_http_sandbox_ask_piece(ask, f) : NGX_OK;

    /* many streams get the same */

    fields = f->fields;

    while (rc == NGX_OK && sb_field_next(&fields, &tag, &v)) {

        if (tag == SB_T_ALSO) {
            ask = ngx_http_sandbox_ask_find(sb_value_u64(v, 0));
            rc = ask ? ngx_http_sandbox_ask_piece(ask, f) : NGX_OK;
        }
    }

    return rc;
}


static ngx_int_t
ngx_http_sandbox_ask_piece(ngx_http_sandbox_ask_t *ask, sb_frame_t *f)
{
    sb_str_t                  v;
    ngx_http_sandbox_piece_t  p;

    ngx_memzero(&p, sizeof(ngx_http_sandbox_piece_t));

    if (sb_field_get(f, SB_T_DATA, &v)) {
        p.data = (u_char *) v.data;
        p.len = v.len;
    }

    p.last = (f->flags & SB_FF_LAST) ? 1 : 0;

    if (!ask->head) {
        p.status = (ngx_uint_t) sb_field_u64(f, SB_T_HTTP_STATUS, 0);

        if (p.status < NGX_HTTP_OK || p.status > 599) {
            return NGX_ERROR;
        }

        if (sb_field_get(f, SB_T_CONTENT_TYPE, &v)) {
            p.type.data = (u_char *) v.data;
            p.type.len = v.len;
        }

        if (sb_field_get(f, SB_T_ALLOW, &v)) {
            p.allow.data = (u_char *) v.data;
            p.allow.len = v.len;
        }
    }

    if (p.len > ask->window) {
        return NGX_ERROR;
    }

    ask->head = 1;
    ask->window -= p.len;
    ask->deadline = ngx_current_msec + ask->timeout;

    if (p.last) {
        ngx_http_sandbox_ask_close(ask);
    }

    /* it may be the end of the request that the question is of */

    ask->piece(ask, &p);

    return NGX_OK;
}


void
ngx_http_sandbox_ask_gone(ngx_http_sandbox_link_t *l)
{
    ngx_queue_t             *q;
    ngx_http_sandbox_ask_t  *ask;

    while (!ngx_queue_empty(&asks.open)) {
        q = ngx_queue_head(&asks.open);
        ask = ngx_queue_data(q, ngx_http_sandbox_ask_t, queue);

        ngx_http_sandbox_ask_close(ask);
        ask->gone(ask, NGX_ERROR);
    }
}


static void
ngx_http_sandbox_ask_broken_handler(ngx_event_t *ev)
{
    if (asks.bulk->connection) {
        ngx_http_sandbox_link_close(asks.bulk);
    }
}


/* Its being set is what keeps an exiting worker until the answers are over. */

static void
ngx_http_sandbox_ask_tick_handler(ngx_event_t *ev)
{
    ngx_queue_t             *q, *next, late;
    ngx_http_sandbox_ask_t  *ask;

    /* a callback may end others: those that are late are taken out first */

    ngx_queue_init(&late);

    for (q = ngx_queue_head(&asks.open);
         q != ngx_queue_sentinel(&asks.open);
         q = next)
    {
        next = ngx_queue_next(q);
        ask = ngx_queue_data(q, ngx_http_sandbox_ask_t, queue);

        if (ask->window
            && (ngx_msec_int_t) (ask->deadline - ngx_current_msec) <= 0)
        {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&late, q);

        } else if (ngx_exiting && ask->leaving) {
            ngx_queue_remove(q);
            ngx_queue_insert_head(&late, q);
        }
    }

    while (!ngx_queue_empty(&late)) {
        q = ngx_queue_head(&late);
        ask = ngx_queue_data(q, ngx_http_sandbox_ask_t, queue);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&asks.open, q);

        if (ask->window
            && (ngx_msec_int_t) (ask->deadline - ngx_current_msec) <= 0)
        {
            ngx_http_sandbox_ask_cancel(ask);
            ask->gone(ask, NGX_ABORT);

        } else {
            ask->leaving(ask);
        }
    }

    if (ngx_http_sandbox_asks() && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_SANDBOX_ASK_TICK);
    }
}
