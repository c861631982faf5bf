/*
 * The worker's connections to sandbox-helper (design 2, docs/frames.md).
 *
 * Control: frames are copied into a queue of blocks and stay there until the
 * helper has acknowledged them; one write a loop round sends what is new.
 * After a reconnect the helper says what it has, the rest is sent again.
 * Bulk: questions that must never stand before a BEGIN.
 */


#include "ngx_http_sandbox.h"
#include <poll.h>


#define NGX_HTTP_SANDBOX_BLOCK      65536
#define NGX_HTTP_SANDBOX_FREE       16      /* blocks kept for the next burst */
#define NGX_HTTP_SANDBOX_IOVS       64
#define NGX_HTTP_SANDBOX_RECV       4096
#define NGX_HTTP_SANDBOX_RECONNECT  20      /* ms, grows to: */
#define NGX_HTTP_SANDBOX_BACKOFF    500
#define NGX_HTTP_SANDBOX_GAPS       64
#define NGX_HTTP_SANDBOX_FETCHES    64
#define NGX_HTTP_SANDBOX_FETCH_MAX  (128 * 1024)
#define NGX_HTTP_SANDBOX_FETCH_TIME 10000
#define NGX_HTTP_SANDBOX_EXIT_TIME  500


typedef struct {
    ngx_queue_t       queue;
    size_t            size;
    u_char           *pos;          /* first byte that is not acknowledged */
    u_char           *sent;         /* first byte that is not sent */
    u_char           *last;
    u_char            data[1];
} ngx_http_sandbox_block_t;


typedef struct {
    size_t            len;
    uint64_t          count;
    uint64_t          first_us;
    uint64_t          last_us;
    const char       *reason;
    u_char            sandbox[128];
} ngx_http_sandbox_gap_t;


typedef struct {
    uint64_t                      seq;
    ngx_msec_t                    deadline;
    ngx_http_sandbox_fetched_pt   done;
    void                         *data;
} ngx_http_sandbox_fetch_t;


typedef struct {
    ngx_connection_t  *connection;
    const char        *role;
    ngx_uint_t         ready;       /* WELCOME was read */
    ngx_msec_t         wait;        /* until the next try */
    ngx_event_t        retry;
    u_char            *in;          /* what is read */
    size_t             in_size;
    size_t             in_len;
    u_char            *out;         /* HELLO, FETCH */
    size_t             out_size;
    size_t             out_len;
    size_t             out_sent;
} ngx_http_sandbox_link_t;


typedef struct {
    ngx_uint_t                 active;
    ngx_str_t                  socket;
    size_t                     limit;
    uint64_t                   instance;

    ngx_http_sandbox_link_t    control;
    ngx_http_sandbox_link_t    bulk;

    ngx_queue_t                blocks;
    ngx_queue_t                spare;
    ngx_uint_t                 nspare;
    size_t                     queued;      /* bytes not acknowledged */
    uint64_t                   seq;         /* last given */
    ngx_event_t                flush;

    ngx_queue_t                waiters;
    ngx_event_t                timer;       /* non-cancelable: holds a reload */
    ngx_uint_t                 away;
    ngx_msec_t                 away_since;
    ngx_uint_t                 exiting;

    ngx_http_sandbox_gap_t     gaps[NGX_HTTP_SANDBOX_GAPS];
    ngx_uint_t                 ngaps;

    uint64_t                   fetch_seq;
    ngx_http_sandbox_fetch_t   fetches[NGX_HTTP_SANDBOX_FETCHES];
    ngx_uint_t                 nfetches;
    ngx_event_t                fetch_timer;

    ngx_connection_t           dummy;       /* a data pointer with an fd, as
                                               event debugging wants it */
} ngx_http_sandbox_helper_t;


static void ngx_http_sandbox_connect(ngx_http_sandbox_link_t *l);
static void ngx_http_sandbox_connected(ngx_http_sandbox_link_t *l);
static void ngx_http_sandbox_close(ngx_http_sandbox_link_t *l);
static void ngx_http_sandbox_retry_handler(ngx_event_t *ev);
static void ngx_http_sandbox_read_handler(ngx_event_t *rev);
static void ngx_http_sandbox_write_handler(ngx_event_t *wev);
static ngx_int_t ngx_http_sandbox_recv(ngx_http_sandbox_link_t *l);
static ngx_int_t ngx_http_sandbox_frame(ngx_http_sandbox_link_t *l,
    sb_frame_t *f);
static ngx_int_t ngx_http_sandbox_write_out(ngx_http_sandbox_link_t *l);
static ngx_int_t ngx_http_sandbox_write_blocks(void);
static void ngx_http_sandbox_flush_handler(ngx_event_t *ev);
static void ngx_http_sandbox_ack(uint64_t seq, uint64_t code);
static void ngx_http_sandbox_release(uint64_t seq);
static void ngx_http_sandbox_rewind(void);
static void ngx_http_sandbox_timer_handler(ngx_event_t *ev);
static void ngx_http_sandbox_timer_arm(void);
static void ngx_http_sandbox_send_gaps(void);
static void ngx_http_sandbox_fetched(uint64_t seq, ngx_uint_t status,
    ngx_str_t *body);
static void ngx_http_sandbox_fetch_handler(ngx_event_t *ev);
static u_char *ngx_http_sandbox_room(size_t len);


static ngx_http_sandbox_helper_t  helper;


ngx_int_t
ngx_http_sandbox_helper_init(ngx_cycle_t *cycle,
    ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_memzero(&helper, sizeof(ngx_http_sandbox_helper_t));

    ngx_queue_init(&helper.blocks);
    ngx_queue_init(&helper.spare);
    ngx_queue_init(&helper.waiters);

    if (mcf->helper == NGX_HTTP_SANDBOX_HELPER_NONE || mcf->locations == 0) {
        return NGX_OK;
    }

    helper.active = 1;
    helper.socket = mcf->socket;
    helper.limit = mcf->queue;
    sb_random(&helper.instance, sizeof(helper.instance));

    helper.dummy.fd = (ngx_socket_t) -1;

    helper.control.role = "control";
    helper.bulk.role = "bulk";

    helper.control.retry.handler = ngx_http_sandbox_retry_handler;
    helper.control.retry.data = &helper.control;
    helper.control.retry.log = cycle->log;
    helper.control.retry.cancelable = 1;

    helper.bulk.retry.handler = ngx_http_sandbox_retry_handler;
    helper.bulk.retry.data = &helper.bulk;
    helper.bulk.retry.log = cycle->log;
    helper.bulk.retry.cancelable = 1;

    helper.flush.handler = ngx_http_sandbox_flush_handler;
    helper.flush.data = &helper.dummy;
    helper.flush.log = cycle->log;

    helper.timer.handler = ngx_http_sandbox_timer_handler;
    helper.timer.data = &helper.dummy;
    helper.timer.log = cycle->log;

    helper.fetch_timer.handler = ngx_http_sandbox_fetch_handler;
    helper.fetch_timer.data = &helper.dummy;
    helper.fetch_timer.log = cycle->log;
    helper.fetch_timer.cancelable = 1;

    helper.away = 1;
    helper.away_since = ngx_current_msec;

    ngx_http_sandbox_connect(&helper.control);
    ngx_http_sandbox_connect(&helper.bulk);

    return NGX_OK;
}


static void
ngx_http_sandbox_connect(ngx_http_sandbox_link_t *l)
{
    int                  n;
    ngx_err_t            err;
    ngx_socket_t         s;
    ngx_event_t         *rev, *wev;
    struct sockaddr_un   sa;
    ngx_connection_t    *c;

    l->ready = 0;
    l->in_len = 0;
    l->out_len = 0;
    l->out_sent = 0;

    s = ngx_socket(AF_UNIX, SOCK_STREAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_socket_errno,
                      "sandbox helper: " ngx_socket_n " failed");
        goto retry;
    }

    c = ngx_get_connection(s, ngx_cycle->log);

    if (c == NULL) {
        (void) ngx_close_socket(s);
        goto retry;
    }

    l->connection = c;
    c->data = l;
    c->log = ngx_cycle->log;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);

    if (ngx_nonblocking(s) == -1) {
        ngx_log_error(NGX_LOG_ERR, c->log, ngx_socket_errno,
                      ngx_nonblocking_n " failed");
        ngx_http_sandbox_close(l);
        return;
    }

    n = 1024 * 1024;
    (void) setsockopt(s, SOL_SOCKET, SO_SNDBUF, (const void *) &n, sizeof(int));

    rev = c->read;
    wev = c->write;

    rev->log = c->log;
    wev->log = c->log;
    rev->handler = ngx_http_sandbox_read_handler;
    wev->handler = ngx_http_sandbox_write_handler;

    c->recv = ngx_recv;
    c->send = ngx_send;
    c->send_chain = ngx_send_chain;

    /* an exiting worker does not wait for this connection */
    rev->channel = 1;

    ngx_memzero(&sa, sizeof(struct sockaddr_un));
    sa.sun_family = AF_UNIX;
    ngx_memcpy(sa.sun_path, helper.socket.data, helper.socket.len);

    n = connect(s, (struct sockaddr *) &sa, sizeof(struct sockaddr_un));

    if (n == -1) {
        err = ngx_socket_errno;

        /* EAGAIN: the helper's backlog is full */

        if (l->wait == 0) {
            ngx_log_error(NGX_LOG_ERR, c->log, err,
                          "sandbox helper: cannot connect to %V, trying again",
                          &helper.socket);
        }

        ngx_http_sandbox_close(l);
        return;
    }

    wev->ready = 1;

    if (ngx_add_event(rev, NGX_READ_EVENT,
                      ngx_event_flags & NGX_USE_CLEAR_EVENT
                      ? NGX_CLEAR_EVENT : NGX_LEVEL_EVENT)
        != NGX_OK)
    {
        ngx_http_sandbox_close(l);
        return;
    }

    ngx_http_sandbox_connected(l);

    return;

retry:

    l->connection = NULL;
    ngx_add_timer(&l->retry, NGX_HTTP_SANDBOX_BACKOFF);
}


static void
ngx_http_sandbox_connected(ngx_http_sandbox_link_t *l)
{
    static uint8_t     none[16];
    sb_frame_writer_t  w;

    if (l->out == NULL) {
        l->out_size = 8192;
        l->out = ngx_alloc(l->out_size, ngx_cycle->log);

        if (l->out == NULL) {
            ngx_http_sandbox_close(l);
            return;
        }
    }

    sb_frame_begin(&w, l->out, l->out_size, SB_F_HELLO, 0, 0, none,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_INSTANCE, helper.instance);
    sb_frame_put_u64(&w, SB_T_PID, (uint64_t) ngx_pid);
    sb_frame_put(&w, SB_T_ROLE, sb_str(l->role, ngx_strlen(l->role)));

    l->out_len = sb_frame_end(&w);
    l->out_sent = 0;

    if (ngx_http_sandbox_write_out(l) == NGX_ERROR) {
        ngx_http_sandbox_close(l);
    }
}


static void
ngx_http_sandbox_close(ngx_http_sandbox_link_t *l)
{
    if (l->connection) {
        ngx_close_connection(l->connection);
        l->connection = NULL;
    }

    if (l == &helper.control && l->ready) {

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "sandbox helper: the connection is gone, "
                      "%uz bytes wait for it", helper.queued);

        helper.away = 1;
        helper.away_since = ngx_current_msec;
    }

    l->ready = 0;

    if (helper.exiting) {
        return;
    }

    if (l->wait < NGX_HTTP_SANDBOX_BACKOFF) {
        l->wait = l->wait ? l->wait * 2 : NGX_HTTP_SANDBOX_RECONNECT;
    }

    if (!l->retry.timer_set) {
        ngx_add_timer(&l->retry, l->wait);
    }
}


static void
ngx_http_sandbox_retry_handler(ngx_event_t *ev)
{
    ngx_http_sandbox_link_t  *l = ev->data;

    if (l->connection == NULL && !helper.exiting) {
        ngx_http_sandbox_connect(l);
    }
}


static void
ngx_http_sandbox_read_handler(ngx_event_t *rev)
{
    ngx_connection_t         *c;
    ngx_http_sandbox_link_t  *l;

    c = rev->data;
    l = c->data;

    if (c->close) {
        /* the worker is short of connections; come back at once */
        ngx_http_sandbox_close(l);
        return;
    }

    if (ngx_http_sandbox_recv(l) == NGX_ERROR) {
        if (l->connection == c) {
            ngx_http_sandbox_close(l);
        }
    }
}


/* Reads and handles all frames that have come; NGX_ERROR ends the link. */

static ngx_int_t
ngx_http_sandbox_recv(ngx_http_sandbox_link_t *l)
{
    size_t             used, need, size;
    u_char            *p;
    ssize_t            n;
    sb_rc_t            rc;
    sb_frame_t         f;
    ngx_connection_t  *c;

    c = l->connection;

    if (l->in == NULL) {
        l->in_size = NGX_HTTP_SANDBOX_RECV;
        l->in = ngx_alloc(l->in_size, ngx_cycle->log);

        if (l->in == NULL) {
            return NGX_ERROR;
        }
    }

    for ( ;; ) {

        n = ngx_recv(c, l->in + l->in_len, l->in_size - l->in_len);

        if (n == NGX_AGAIN) {
            return NGX_OK;
        }

        if (n == NGX_ERROR || n == 0) {
            return NGX_ERROR;
        }

        l->in_len += n;
        used = 0;
        need = 0;

        while (l->in_len > used) {

            rc = sb_frame_read(&f, (char *) l->in + used, l->in_len - used,
                               &need);

            if (rc == SB_AGAIN) {
                break;
            }

            if (rc != SB_OK || ngx_http_sandbox_frame(l, &f) != NGX_OK) {
                ngx_log_error(NGX_LOG_ERR, c->log, 0,
                              "sandbox helper: a frame cannot be understood");
                return NGX_ERROR;
            }

            if (l->connection != c) {
                /* a handler has closed it */
                return NGX_OK;
            }

            used += f.length;
            need = 0;
        }

        l->in_len -= used;
        ngx_memmove(l->in, l->in + used, l->in_len);

        if (need > l->in_size) {

            if (need > NGX_HTTP_SANDBOX_FETCH_MAX) {
                return NGX_ERROR;
            }

            size = ngx_max(need, 2 * l->in_size);
            p = ngx_alloc(size, c->log);

            if (p == NULL) {
                return NGX_ERROR;
            }

            ngx_memcpy(p, l->in, l->in_len);
            ngx_free(l->in);
            l->in = p;
            l->in_size = size;
        }
    }
}


static ngx_int_t
ngx_http_sandbox_frame(ngx_http_sandbox_link_t *l, sb_frame_t *f)
{
    sb_str_t   body;
    ngx_str_t  text;

    switch (f->type) {

    case SB_F_WELCOME:

        l->ready = 1;
        l->wait = 0;

        if (l == &helper.bulk) {
            return NGX_OK;
        }

        if (helper.away) {
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "sandbox helper: connected");
        }

        helper.away = 0;

        /* what it has is answered, the rest goes (again) */

        ngx_http_sandbox_ack(sb_field_u64(f, SB_T_LAST_SEQ, 0), 0);
        ngx_http_sandbox_rewind();
        ngx_http_sandbox_send_gaps();

        if (ngx_http_sandbox_write_blocks() == NGX_ERROR) {
            return NGX_ERROR;
        }

        return NGX_OK;

    case SB_F_ACK:

        ngx_http_sandbox_ack(f->seq, sb_field_u64(f, SB_T_CODE, 0));
        return NGX_OK;

    case SB_F_FETCHED:

        ngx_str_null(&text);

        if (sb_field_get(f, SB_T_DATA, &body)) {
            text.data = (u_char *) body.data;
            text.len = body.len;
        }

        ngx_http_sandbox_fetched(f->seq,
                        (ngx_uint_t) sb_field_u64(f, SB_T_HTTP_STATUS, 0),
                        &text);
        return NGX_OK;

    default:
        /* of a later version */
        return NGX_OK;
    }
}


static void
ngx_http_sandbox_write_handler(ngx_event_t *wev)
{
    ngx_int_t                 rc;
    ngx_connection_t         *c;
    ngx_http_sandbox_link_t  *l;

    c = wev->data;
    l = c->data;

    rc = ngx_http_sandbox_write_out(l);

    if (rc == NGX_OK && l == &helper.control && l->ready) {
        rc = ngx_http_sandbox_write_blocks();
    }

    if (rc == NGX_ERROR) {
        ngx_http_sandbox_close(l);
    }
}


/* NGX_OK: all is written; NGX_AGAIN: the write event goes on. */

static ngx_int_t
ngx_http_sandbox_write_out(ngx_http_sandbox_link_t *l)
{
    ssize_t            n;
    ngx_connection_t  *c;

    c = l->connection;

    while (l->out_sent < l->out_len) {

        n = ngx_send(c, l->out + l->out_sent, l->out_len - l->out_sent);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (n == NGX_AGAIN) {
            return ngx_handle_write_event(c->write, 0) == NGX_OK
                   ? NGX_AGAIN : NGX_ERROR;
        }

        l->out_sent += n;
    }

    l->out_len = 0;
    l->out_sent = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_write_blocks(void)
{
    size_t                     left, part;
    ssize_t                    n;
    ngx_err_t                  err;
    ngx_uint_t                 niov;
    ngx_queue_t               *q;
    struct iovec               iov[NGX_HTTP_SANDBOX_IOVS];
    ngx_connection_t          *c;
    ngx_http_sandbox_block_t  *b;

    c = helper.control.connection;

    if (helper.control.out_len) {
        /* HELLO is still on its way */
        return NGX_AGAIN;
    }

    for ( ;; ) {

        niov = 0;

        for (q = ngx_queue_head(&helper.blocks);
             q != ngx_queue_sentinel(&helper.blocks)
             && niov < NGX_HTTP_SANDBOX_IOVS;
             q = ngx_queue_next(q))
        {
            b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

            if (b->sent < b->last) {
                iov[niov].iov_base = (void *) b->sent;
                iov[niov].iov_len = b->last - b->sent;
                niov++;
            }
        }

        if (niov == 0) {
            return NGX_OK;
        }

        n = writev(c->fd, iov, niov);

        if (n == -1) {
            err = ngx_socket_errno;

            if (err == NGX_EINTR) {
                continue;
            }

            if (err != NGX_EAGAIN) {
                ngx_log_error(NGX_LOG_ERR, c->log, err,
                              "sandbox helper: writev() failed");
                return NGX_ERROR;
            }

            c->write->ready = 0;

            return ngx_handle_write_event(c->write, 0) == NGX_OK
                   ? NGX_AGAIN : NGX_ERROR;
        }

        left = (size_t) n;

        for (q = ngx_queue_head(&helper.blocks);
             left && q != ngx_queue_sentinel(&helper.blocks);
             q = ngx_queue_next(q))
        {
            b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

            part = ngx_min(left, (size_t) (b->last - b->sent));
            b->sent += part;
            left -= part;
        }
    }
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

    if (ngx_http_sandbox_write_blocks() == NGX_ERROR) {
        ngx_http_sandbox_close(l);
    }
}


static u_char *
ngx_http_sandbox_room(size_t len)
{
    u_char                    *p;
    size_t                     size;
    ngx_queue_t               *q;
    ngx_http_sandbox_block_t  *b;

    if (!ngx_queue_empty(&helper.blocks)) {
        q = ngx_queue_last(&helper.blocks);
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

        if (b->size - (b->last - b->data) >= len) {
            p = b->last;
            b->last += len;
            return p;
        }
    }

    if (helper.nspare && len <= NGX_HTTP_SANDBOX_BLOCK) {
        q = ngx_queue_head(&helper.spare);
        ngx_queue_remove(q);
        helper.nspare--;

        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

    } else {
        size = ngx_max(len, NGX_HTTP_SANDBOX_BLOCK);

        b = ngx_alloc(offsetof(ngx_http_sandbox_block_t, data) + size,
                      ngx_cycle->log);
        if (b == NULL) {
            return NULL;
        }

        b->size = size;
    }

    b->pos = b->data;
    b->sent = b->data;
    b->last = b->data + len;

    ngx_queue_insert_tail(&helper.blocks, &b->queue);

    return b->data;
}


uint64_t
ngx_http_sandbox_helper_send(u_char *frame, size_t len, ngx_uint_t reserve)
{
    u_char  *p;
    size_t   limit;

    if (!helper.active) {
        return 0;
    }

    /* ends may use a quarter more: what has begun is to be closed */

    limit = reserve ? helper.limit + helper.limit / 4 : helper.limit;

    if (helper.queued + len > limit) {
        return 0;
    }

    p = ngx_http_sandbox_room(len);

    if (p == NULL) {
        return 0;
    }

    helper.queued += len;
    helper.seq++;

    ngx_memcpy(p, frame, len);
    sb_frame_set_seq((char *) p, helper.seq);

    if (helper.control.ready) {
        ngx_post_event(&helper.flush, &ngx_posted_events);
    }

    return helper.seq;
}


static void
ngx_http_sandbox_ack(uint64_t seq, uint64_t code)
{
    ngx_int_t                rc;
    ngx_queue_t             *q;
    ngx_http_sandbox_ctx_t  *ctx;

    if (code) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, (ngx_err_t) code,
                      "sandbox helper: the journal cannot be written");
    }

    ngx_http_sandbox_release(seq);

    rc = code ? NGX_ERROR : NGX_OK;

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


/* Forgets the frames up to seq. */

static void
ngx_http_sandbox_release(uint64_t seq)
{
    size_t                     need;
    ngx_queue_t               *q;
    sb_frame_t                 f;
    ngx_http_sandbox_block_t  *b;

    while (!ngx_queue_empty(&helper.blocks)) {

        q = ngx_queue_head(&helper.blocks);
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

        while (b->pos < b->last) {

            if (sb_frame_read(&f, (char *) b->pos, b->last - b->pos, &need)
                != SB_OK)
            {
                ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                              "sandbox helper: a queued frame is broken");
                b->pos = b->last;
                break;
            }

            if (f.seq > seq) {
                return;
            }

            b->pos += f.length;
            helper.queued -= f.length;
        }

        if (b->sent < b->last) {
            /* the helper knew it from before a reconnect */
            b->sent = b->last;
        }

        ngx_queue_remove(q);

        if (b->size == NGX_HTTP_SANDBOX_BLOCK
            && helper.nspare < NGX_HTTP_SANDBOX_FREE)
        {
            ngx_queue_insert_head(&helper.spare, q);
            helper.nspare++;

        } else {
            ngx_free(b);
        }
    }
}


/* On a new connection everything that is kept is sent again. */

static void
ngx_http_sandbox_rewind(void)
{
    ngx_queue_t               *q;
    ngx_http_sandbox_block_t  *b;

    for (q = ngx_queue_head(&helper.blocks);
         q != ngx_queue_sentinel(&helper.blocks);
         q = ngx_queue_next(q))
    {
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);
        b->sent = b->pos;
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
ngx_http_sandbox_helper_wait(ngx_http_sandbox_ctx_t *ctx, ngx_msec_t timeout)
{
    ctx->deadline = ngx_current_msec + timeout;

    ngx_queue_insert_tail(&helper.waiters, &ctx->queue);
    ngx_http_sandbox_timer_arm();
}


void
ngx_http_sandbox_helper_forget(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_queue_remove(&ctx->queue);

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
ngx_http_sandbox_helper_gap(sb_str_t sandbox, const char *reason)
{
    uint64_t                 now;
    ngx_uint_t               i;
    ngx_http_sandbox_gap_t  *g;

    if (!helper.active) {
        return;
    }

    now = sb_now_us();

    if (sandbox.len > sizeof(helper.gaps[0].sandbox)) {
        sandbox.len = 0;
    }

    for (i = 0; i < helper.ngaps; i++) {
        g = &helper.gaps[i];

        if (g->len == sandbox.len && g->reason == reason
            && ngx_memcmp(g->sandbox, sandbox.data, sandbox.len) == 0)
        {
            g->count++;
            g->last_us = now;
            return;
        }
    }

    if (helper.ngaps == NGX_HTTP_SANDBOX_GAPS) {
        /* the last one is for all others */
        g = &helper.gaps[NGX_HTTP_SANDBOX_GAPS - 1];
        g->len = 0;
        g->count++;
        g->last_us = now;
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "sandbox helper: operations pass without a record (%s)",
                  reason);

    g = &helper.gaps[helper.ngaps++];

    g->len = sandbox.len;
    ngx_memcpy(g->sandbox, sandbox.data, sandbox.len);
    g->count = 1;
    g->reason = reason;
    g->first_us = now;
    g->last_us = now;

    if (helper.control.ready) {
        ngx_post_event(&helper.flush, &ngx_posted_events);
        ngx_http_sandbox_send_gaps();
    }
}


static void
ngx_http_sandbox_send_gaps(void)
{
    size_t                   len;
    ngx_uint_t               i;
    sb_frame_writer_t        w;
    ngx_http_sandbox_gap_t  *g;
    u_char                   frame[1024];
    static uint8_t           none[16];

    for (i = 0; i < helper.ngaps; i++) {
        g = &helper.gaps[i];

        sb_frame_begin(&w, frame, sizeof(frame), SB_F_GAP, 0, 0, none,
                       g->last_us);

        if (g->len) {
            sb_frame_put(&w, SB_T_SANDBOX, sb_str(g->sandbox, g->len));
        }

        sb_frame_put_u64(&w, SB_T_COUNT, g->count);
        sb_frame_put_u64(&w, SB_T_TIME, g->first_us);
        sb_frame_put_u64(&w, SB_T_TIME_END, g->last_us);
        sb_frame_put(&w, SB_T_REASON, sb_str(g->reason, ngx_strlen(g->reason)));

        len = sb_frame_end(&w);

        if (ngx_http_sandbox_helper_send(frame, len, 1) == 0) {
            break;
        }
    }

    /* those that found no room stay for the next time */

    ngx_memmove(helper.gaps, helper.gaps + i,
                (helper.ngaps - i) * sizeof(ngx_http_sandbox_gap_t));
    helper.ngaps -= i;
}


ngx_uint_t
ngx_http_sandbox_helper_fetch(ngx_str_t *target,
    ngx_http_sandbox_fetched_pt done, void *data)
{
    size_t                     len, size;
    u_char                    *p;
    sb_frame_writer_t          w;
    ngx_http_sandbox_link_t   *l;
    ngx_http_sandbox_fetch_t  *f;
    static uint8_t             none[16];

    l = &helper.bulk;

    if (!l->ready || helper.nfetches == NGX_HTTP_SANDBOX_FETCHES) {
        return 0;
    }

    size = SB_FRAME_HEAD + 16 + target->len;

    if (l->out_size - l->out_len < size) {

        if (l->out_len > NGX_HTTP_SANDBOX_FETCH_MAX) {
            return 0;
        }

        p = ngx_alloc(2 * l->out_size + size, ngx_cycle->log);
        if (p == NULL) {
            return 0;
        }

        ngx_memcpy(p, l->out, l->out_len);
        ngx_free(l->out);
        l->out = p;
        l->out_size = 2 * l->out_size + size;
    }

    sb_frame_begin(&w, l->out + l->out_len, l->out_size - l->out_len,
                   SB_F_FETCH, 0, ++helper.fetch_seq, none, sb_now_us());
    sb_frame_put(&w, SB_T_TARGET, ngx_http_sandbox_str(target));
    len = sb_frame_end(&w);

    if (len == 0) {
        return 0;
    }

    l->out_len += len;

    f = &helper.fetches[helper.nfetches++];

    f->seq = helper.fetch_seq;
    f->deadline = ngx_current_msec + NGX_HTTP_SANDBOX_FETCH_TIME;
    f->done = done;
    f->data = data;

    if (!helper.fetch_timer.timer_set) {
        ngx_add_timer(&helper.fetch_timer, NGX_HTTP_SANDBOX_FETCH_TIME);
    }

    if (ngx_http_sandbox_write_out(l) == NGX_ERROR) {
        /* answered by the time-out */
        ngx_http_sandbox_close(l);
    }

    return 1;
}


static void
ngx_http_sandbox_fetched(uint64_t seq, ngx_uint_t status, ngx_str_t *body)
{
    ngx_uint_t                i;
    ngx_http_sandbox_fetch_t  f;

    for (i = 0; i < helper.nfetches; i++) {

        if (helper.fetches[i].seq == seq) {
            f = helper.fetches[i];
            helper.fetches[i] = helper.fetches[--helper.nfetches];
            f.done(f.data, status, body);
            return;
        }
    }
}


/* Questions that were not answered: the helper was replaced, or hangs. */

static void
ngx_http_sandbox_fetch_handler(ngx_event_t *ev)
{
    ngx_str_t   none;
    ngx_uint_t  i;

    ngx_str_null(&none);

    i = 0;

    while (i < helper.nfetches) {

        if ((ngx_msec_int_t) (helper.fetches[i].deadline - ngx_current_msec)
            <= 0)
        {
            ngx_http_sandbox_fetched(helper.fetches[i].seq, 0, &none);
            continue;
        }

        i++;
    }

    if (helper.nfetches) {
        ngx_add_timer(&helper.fetch_timer, 1000);
    }
}


/*
 * The worker leaves: what is queued is written and the acknowledgement waited
 * for, a bounded time; nobody is served by this process any more.
 */

void
ngx_http_sandbox_helper_exit(ngx_cycle_t *cycle)
{
    ssize_t            n;
    sb_rc_t            rc;
    size_t             need, used;
    sb_frame_t         f;
    struct pollfd      pfd;
    ngx_msec_t         start, passed;
    ngx_connection_t  *c;

    if (!helper.active) {
        return;
    }

    helper.exiting = 1;

    c = helper.control.connection;

    if (c == NULL || !helper.control.ready || helper.control.in == NULL) {

        if (helper.queued) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                          "sandbox helper: away at exit, %uz bytes of records "
                          "are lost", helper.queued);
        }

        return;
    }

    ngx_time_update();
    start = ngx_current_msec;

    while (helper.queued) {

        if (ngx_http_sandbox_write_blocks() == NGX_ERROR) {
            break;
        }

        ngx_time_update();
        passed = ngx_current_msec - start;

        if (passed >= NGX_HTTP_SANDBOX_EXIT_TIME) {
            break;
        }

        pfd.fd = c->fd;
        pfd.events = POLLIN;
        pfd.revents = 0;

        if (poll(&pfd, 1, 20) <= 0) {
            continue;
        }

        n = recv(c->fd, helper.control.in + helper.control.in_len,
                 helper.control.in_size - helper.control.in_len, 0);

        if (n == 0 || (n == -1 && ngx_socket_errno != NGX_EAGAIN)) {
            break;
        }

        if (n == -1) {
            continue;
        }

        helper.control.in_len += n;
        used = 0;

        while (helper.control.in_len > used) {

            rc = sb_frame_read(&f, (char *) helper.control.in + used,
                               helper.control.in_len - used, &need);
            if (rc != SB_OK) {
                break;
            }

            if (f.type == SB_F_ACK) {
                ngx_http_sandbox_release(f.seq);
            }

            used += f.length;
        }

        helper.control.in_len -= used;
        ngx_memmove(helper.control.in, helper.control.in + used,
                    helper.control.in_len);
    }

    if (helper.queued) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "sandbox helper: did not answer at exit, %uz bytes of "
                      "records may be lost", helper.queued);
    }
}
