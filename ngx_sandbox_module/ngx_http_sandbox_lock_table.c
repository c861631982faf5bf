/* Locks that this worker's operations hold or wait for. */


#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_LOCK_BUCKETS  1024
#define NGX_HTTP_SANDBOX_LOCK_STEP     100      /* ms between two looks */


typedef struct {
    ngx_queue_t        buckets[NGX_HTTP_SANDBOX_LOCK_BUCKETS];
    ngx_queue_t        waiters;
    ngx_rbtree_t       deadlines;   /* of them: there may be thousands, of which
                                       none is late */
    ngx_rbtree_node_t  sentinel;
    ngx_event_t        timer;       /* non-cancelable: a worker that exits waits
                                       for the waiters */
    uint64_t           told;        /* seq of "all are told" ... */
    u_char            *end;         /* ... where it is queued ... */
    uint64_t           last;        /* ... and of the last of these */
    ngx_connection_t   dummy;       /* event debugging wants an fd */
} ngx_http_sandbox_locks_t;


static ngx_queue_t *ngx_http_sandbox_lock_bucket(const u_char *id);
static ngx_http_sandbox_lock_t *ngx_http_sandbox_lock_find(const u_char *id);
static void ngx_http_sandbox_lock_queued(u_char *frame, sb_frame_t *f);
static void ngx_http_sandbox_lock_resume(ngx_http_sandbox_lock_t *l);
static void ngx_http_sandbox_lock_late(ngx_http_sandbox_lock_t *l,
    ngx_uint_t code, ngx_queue_t *late);
static void ngx_http_sandbox_lock_pass(ngx_queue_t *late);
static void ngx_http_sandbox_lock_timer_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_sandbox_lock_copy(ngx_http_sandbox_lock_t *l,
    ngx_str_t *dst, sb_str_t *src);


static ngx_http_sandbox_locks_t  locks;


void
ngx_http_sandbox_lock_init(ngx_log_t *log)
{
    ngx_uint_t  i;

    if (locks.timer.timer_set) {
        ngx_del_timer(&locks.timer);
    }

    ngx_memzero(&locks, sizeof(ngx_http_sandbox_locks_t));

    for (i = 0; i < NGX_HTTP_SANDBOX_LOCK_BUCKETS; i++) {
        ngx_queue_init(&locks.buckets[i]);
    }

    ngx_queue_init(&locks.waiters);
    ngx_rbtree_init(&locks.deadlines, &locks.sentinel,
                    ngx_rbtree_insert_timer_value);

    locks.dummy.fd = (ngx_socket_t) -1;
    locks.timer.handler = ngx_http_sandbox_lock_timer_handler;
    locks.timer.data = &locks.dummy;
    locks.timer.log = log;
}


/* The end of an id is random. */

static ngx_queue_t *
ngx_http_sandbox_lock_bucket(const u_char *id)
{
    return &locks.buckets[(id[14] << 8 | id[15])
                          % NGX_HTTP_SANDBOX_LOCK_BUCKETS];
}


static ngx_http_sandbox_lock_t *
ngx_http_sandbox_lock_find(const u_char *id)
{
    ngx_queue_t              *q, *bucket;
    ngx_http_sandbox_lock_t  *l;

    bucket = ngx_http_sandbox_lock_bucket(id);

    for (q = ngx_queue_head(bucket); q != bucket; q = ngx_queue_next(q)) {
        l = ngx_queue_data(q, ngx_http_sandbox_lock_t, queue);

        if (ngx_memcmp(l->ctx->id, id, 16) == 0) {
            return l;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_sandbox_lock_add(ngx_http_sandbox_lock_t *l)
{
    l->seq = ngx_http_sandbox_helper_send(l->frame, l->len, 0);

    if (l->seq == 0) {
        return NGX_ERROR;
    }

    ngx_queue_insert_tail(ngx_http_sandbox_lock_bucket(l->ctx->id), &l->queue);

    return NGX_OK;
}


void
ngx_http_sandbox_lock_wait(ngx_http_sandbox_lock_t *l)
{
    l->waiting = 1;
    ngx_queue_insert_tail(&locks.waiters, &l->wait);
    l->timed = 1;
    l->late.key = l->deadline;
    ngx_rbtree_insert(&locks.deadlines, &l->late);
    ngx_http_sandbox_metric_worker->waiters++;

    if (!locks.timer.timer_set) {
        ngx_add_timer(&locks.timer, NGX_HTTP_SANDBOX_LOCK_STEP);
    }
}


void
ngx_http_sandbox_lock_leave(ngx_http_sandbox_lock_t *l)
{
    l->waiting = 0;
    ngx_queue_remove(&l->wait);

    if (l->timed) {
        l->timed = 0;
        ngx_rbtree_delete(&locks.deadlines, &l->late);
    }

    ngx_http_sandbox_metric_worker->waiters--;

    if (ngx_queue_empty(&locks.waiters) && locks.timer.timer_set) {
        ngx_del_timer(&locks.timer);
    }
}


void
ngx_http_sandbox_lock_end(ngx_http_sandbox_lock_t *l, ngx_uint_t begun)
{
    u_char             mem[SB_FRAME_HEAD];
    size_t             len;
    sb_frame_writer_t  w;

    ngx_queue_remove(&l->queue);

    /* others may wait: what frees it is not to wait for company */
    ngx_http_sandbox_helper_flush();

    if (begun) {
        return;
    }

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_RELEASE, 0, 0, l->ctx->id,
                   sb_now_us());
    len = sb_frame_end(&w);

    (void) ngx_http_sandbox_helper_send(mem, len,
                                        NGX_HTTP_SANDBOX_QUEUE_ALWAYS);
}


static ngx_int_t
ngx_http_sandbox_lock_copy(ngx_http_sandbox_lock_t *l, ngx_str_t *dst,
    sb_str_t *src)
{
    dst->data = ngx_pnalloc(l->ctx->request->pool, src->len + 1);
    if (dst->data == NULL) {
        return NGX_ERROR;
    }

    dst->len = src->len;
    ngx_memcpy(dst->data, src->data, src->len);

    return NGX_OK;
}


void
ngx_http_sandbox_lock_granted(sb_frame_t *f)
{
    uint16_t                  tag;
    sb_str_t                  fields, v;
    ngx_str_t                *text;
    ngx_http_sandbox_lock_t  *l;

    l = ngx_http_sandbox_lock_find(f->op);

    if (l == NULL || l->answered) {
        return;
    }

    l->answered = 1;

    for (fields = f->fields; sb_field_next(&fields, &tag, &v); /* void */ ) {

        text = NULL;

        switch (tag) {

        case SB_T_CODE:
            l->code = (ngx_uint_t) sb_value_u64(v, SB_LOCK_FULL);
            break;

        case SB_T_WAITED_US:
            l->waited_us = sb_value_u64(v, 0);
            break;

        case SB_T_LOCK_WRITE:
            l->write = 1;
            text = &l->key;
            break;

        case SB_T_LOCK_READ:
            text = &l->key;
            break;

        case SB_T_HOLDER:
            text = &l->holder;
            break;

        case SB_T_ACTOR_ID:
            text = &l->actor;
            break;

        case SB_T_OWNER:
            text = &l->owner;
            break;
        }

        if (text) {
            /* without memory the refusal says less */
            (void) ngx_http_sandbox_lock_copy(l, text, &v);
        }
    }

    if (l->waiting) {
        ngx_http_sandbox_lock_leave(l);
        ngx_http_sandbox_lock_resume(l);
    }
}


static void
ngx_http_sandbox_lock_resume(ngx_http_sandbox_lock_t *l)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = l->ctx->request;
    c = r->connection;

    l->ctx->waiting = 0;

    ngx_http_set_log_request(c->log, r);

    /* still ngx_http_core_run_phases() */
    r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}


/* Answers in the helper's place; it is resumed later. */

static void
ngx_http_sandbox_lock_late(ngx_http_sandbox_lock_t *l, ngx_uint_t code,
    ngx_queue_t *late)
{
    l->answered = 1;
    l->code = code;

    l->timed = 0;
    ngx_rbtree_delete(&locks.deadlines, &l->late);

    ngx_queue_remove(&l->wait);
    ngx_queue_insert_tail(late, &l->wait);
}


/* Nobody to ask: what only reads, and may go without a record, goes without a
 * lock, and is counted. */

static void
ngx_http_sandbox_lock_pass(ngx_queue_t *late)
{
    ngx_queue_t                  *q, *next;
    ngx_http_sandbox_lock_t      *l;
    ngx_http_sandbox_loc_conf_t  *lcf;

    for (q = ngx_queue_head(&locks.waiters);
         q != ngx_queue_sentinel(&locks.waiters);
         q = next)
    {
        next = ngx_queue_next(q);
        l = ngx_queue_data(q, ngx_http_sandbox_lock_t, wait);

        lcf = ngx_http_get_module_loc_conf(l->ctx->request,
                                           ngx_http_sandbox_module);

        if (l->may_pass && ngx_http_sandbox_helper_away(lcf->timeout)) {
            ngx_http_sandbox_lock_late(l, SB_LOCK_GRANTED, late);
            l->passed = 1;
            ngx_http_sandbox_metric_add(LOCKS_PASSED, 1);
        }
    }
}


static void
ngx_http_sandbox_lock_timer_handler(ngx_event_t *ev)
{
    ngx_queue_t              *q, late;
    ngx_rbtree_node_t        *node;
    ngx_http_sandbox_lock_t  *l;

    ngx_queue_init(&late);

    if (ngx_http_sandbox_helper_away(0)) {
        ngx_http_sandbox_lock_pass(&late);
    }

    while (locks.deadlines.root != &locks.sentinel) {

        node = ngx_rbtree_min(locks.deadlines.root, &locks.sentinel);

        if ((ngx_msec_int_t) (node->key - ngx_current_msec) > 0) {
            break;
        }

        l = ngx_rbtree_data(node, ngx_http_sandbox_lock_t, late);
        ngx_http_sandbox_lock_late(l, SB_LOCK_FULL, &late);
    }

    /* resuming may add waiters */

    while (!ngx_queue_empty(&late)) {
        q = ngx_queue_head(&late);
        l = ngx_queue_data(q, ngx_http_sandbox_lock_t, wait);

        ngx_http_sandbox_lock_leave(l);
        ngx_http_sandbox_lock_resume(l);
    }

    if (!ngx_queue_empty(&locks.waiters) && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_SANDBOX_LOCK_STEP);
    }
}


/*
 * What the helper has not acknowledged is sent again as it lies in the queue, and
 * need not be told twice: while the journal cannot be written there is a new
 * connection every half second.  What was granted meanwhile is said to be held.
 */

void
ngx_http_sandbox_lock_tell(void)
{
    u_char                    mem[SB_FRAME_HEAD];
    size_t                    len;
    ngx_uint_t                i;
    ngx_queue_t              *q, *bucket;
    sb_frame_writer_t         w;
    ngx_http_sandbox_lock_t  *l;

    static const uint8_t  none[16];

    locks.last = 0;
    locks.end = NULL;

    ngx_http_sandbox_helper_each(ngx_http_sandbox_lock_queued);

    for (i = 0; i < NGX_HTTP_SANDBOX_LOCK_BUCKETS; i++) {
        bucket = &locks.buckets[i];

        for (q = ngx_queue_head(bucket); q != bucket; q = ngx_queue_next(q)) {
            l = ngx_queue_data(q, ngx_http_sandbox_lock_t, queue);

            if ((l->answered && l->code != SB_LOCK_GRANTED)
                || !ngx_http_sandbox_helper_acked(l->seq))
            {
                continue;
            }

            /* flags, docs/frames.md */
            l->frame[5] = SB_FF_STRICT | (l->answered ? SB_FF_HELD : 0);

            l->seq = ngx_http_sandbox_helper_send(l->frame, l->len,
                                                NGX_HTTP_SANDBOX_QUEUE_ALWAYS);
            locks.last = l->seq;
        }
    }

    if (locks.told > locks.last && !ngx_http_sandbox_helper_acked(locks.told)) {
        /* it is in the queue, behind all that it speaks of */
        return;
    }

    if (locks.end) {
        /* it would speak too soon: nobody is released in its place */
        locks.end[4] = SB_F_RELEASE;
    }

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_KEYS, SB_FF_STRICT, 0, none,
                   sb_now_us());
    len = sb_frame_end(&w);

    locks.told = ngx_http_sandbox_helper_send(mem, len,
                                              NGX_HTTP_SANDBOX_QUEUE_ALWAYS);
}


/* A frame that will be sent again, on the new connection. */

static void
ngx_http_sandbox_lock_queued(u_char *frame, sb_frame_t *f)
{
    ngx_http_sandbox_lock_t  *l;

    if (f->type != SB_F_KEYS) {
        return;
    }

    if (f->seq == locks.told) {
        locks.end = frame;
        return;
    }

    l = ngx_http_sandbox_lock_find(f->op);

    if (l && l->answered && l->code == SB_LOCK_GRANTED) {
        frame[5] |= SB_FF_HELD;
        locks.last = f->seq;
    }
}
