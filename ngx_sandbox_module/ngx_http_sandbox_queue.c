/* The queue of frames for the helper (ngx_http_sandbox_queue.h). */


#include "ngx_http_sandbox_queue.h"


#define NGX_HTTP_SANDBOX_BLOCK  65536
#define NGX_HTTP_SANDBOX_SPARE  16
#define NGX_HTTP_SANDBOX_IOVS   64


typedef struct {
    ngx_queue_t       queue;
    size_t            size;
    u_char           *pos;          /* first byte that is not acknowledged */
    u_char           *sent;         /* first byte that is not sent */
    u_char           *last;
    u_char            data[1];
} ngx_http_sandbox_block_t;


static u_char *ngx_http_sandbox_queue_room(ngx_http_sandbox_queue_t *queue,
    size_t len);
static void ngx_http_sandbox_queue_count(u_char *frame, sb_frame_t *f);


static ngx_uint_t  ngx_http_sandbox_queue_n;


void
ngx_http_sandbox_queue_init(ngx_http_sandbox_queue_t *queue, size_t limit)
{
    ngx_memzero(queue, sizeof(ngx_http_sandbox_queue_t));

    ngx_queue_init(&queue->blocks);
    ngx_queue_init(&queue->spare);

    queue->limit = limit;
}


uint64_t
ngx_http_sandbox_queue_add(ngx_http_sandbox_queue_t *queue, u_char *frame,
    size_t len, ngx_uint_t reserve)
{
    u_char  *p;
    size_t   limit;

    switch (reserve) {

    case 0:
        limit = queue->limit;
        break;

    case NGX_HTTP_SANDBOX_QUEUE_HALF:
        limit = queue->limit / 2;
        break;

    default:
        limit = queue->limit + queue->limit / 4;
    }

    if (queue->bytes + len > limit
        && reserve != NGX_HTTP_SANDBOX_QUEUE_ALWAYS)
    {
        return 0;
    }

    p = ngx_http_sandbox_queue_room(queue, len);

    if (p == NULL) {
        return 0;
    }

    queue->bytes += len;
    queue->seq++;

    ngx_memcpy(p, frame, len);
    sb_frame_set_seq(p, queue->seq);

    return queue->seq;
}


static u_char *
ngx_http_sandbox_queue_room(ngx_http_sandbox_queue_t *queue, size_t len)
{
    u_char                    *p;
    size_t                     size;
    ngx_queue_t               *q;
    ngx_http_sandbox_block_t  *b;

    if (!ngx_queue_empty(&queue->blocks)) {
        q = ngx_queue_last(&queue->blocks);
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

        if (b->size - (b->last - b->data) >= len) {
            p = b->last;
            b->last += len;
            return p;
        }
    }

    if (queue->nspare && len <= NGX_HTTP_SANDBOX_BLOCK) {
        q = ngx_queue_head(&queue->spare);
        ngx_queue_remove(q);
        queue->nspare--;

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

    ngx_queue_insert_tail(&queue->blocks, &b->queue);

    return b->data;
}


void
ngx_http_sandbox_queue_each(ngx_http_sandbox_queue_t *queue,
    ngx_http_sandbox_queued_pt handler)
{
    size_t                     need;
    u_char                    *p;
    ngx_queue_t               *q;
    sb_frame_t                 f;
    ngx_http_sandbox_block_t  *b;

    for (q = ngx_queue_head(&queue->blocks);
         q != ngx_queue_sentinel(&queue->blocks);
         q = ngx_queue_next(q))
    {
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

        for (p = b->pos; p < b->last; p += f.length) {

            if (sb_frame_read(&f, (char *) p, b->last - p, &need) != SB_OK) {
                break;
            }

            handler(p, &f);
        }
    }
}


ngx_uint_t
ngx_http_sandbox_queue_begins(ngx_http_sandbox_queue_t *queue)
{
    ngx_http_sandbox_queue_n = 0;
    ngx_http_sandbox_queue_each(queue, ngx_http_sandbox_queue_count);

    return ngx_http_sandbox_queue_n;
}


static void
ngx_http_sandbox_queue_count(u_char *frame, sb_frame_t *f)
{
    if (f->type == SB_F_BEGIN && !(f->flags & SB_FF_STRICT)) {
        ngx_http_sandbox_queue_n++;
    }
}


void
ngx_http_sandbox_queue_release(ngx_http_sandbox_queue_t *queue, uint64_t seq)
{
    size_t                     len;
    uint64_t                   n;
    ngx_queue_t               *q;
    ngx_http_sandbox_block_t  *b;

    while (!ngx_queue_empty(&queue->blocks)) {

        q = ngx_queue_head(&queue->blocks);
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

        while (b->pos < b->last) {

            if (sb_frame_peek((char *) b->pos, b->last - b->pos, &len, &n)
                != SB_OK)
            {
                ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                              "sandbox helper: a queued frame is broken");
                b->pos = b->last;
                break;
            }

            if (n > seq) {
                return;
            }

            b->pos += len;
            queue->bytes -= len;
        }

        if (b->sent < b->last) {
            /* the helper knew it from before a reconnect */
            b->sent = b->last;
        }

        ngx_queue_remove(q);

        if (b->size == NGX_HTTP_SANDBOX_BLOCK
            && queue->nspare < NGX_HTTP_SANDBOX_SPARE)
        {
            ngx_queue_insert_head(&queue->spare, q);
            queue->nspare++;

        } else {
            ngx_free(b);
        }
    }
}


void
ngx_http_sandbox_queue_rewind(ngx_http_sandbox_queue_t *queue)
{
    ngx_queue_t               *q;
    ngx_http_sandbox_block_t  *b;

    for (q = ngx_queue_head(&queue->blocks);
         q != ngx_queue_sentinel(&queue->blocks);
         q = ngx_queue_next(q))
    {
        b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);
        b->sent = b->pos;
    }
}


ngx_int_t
ngx_http_sandbox_queue_write(ngx_http_sandbox_queue_t *queue,
    ngx_connection_t *c)
{
    size_t                     left, part;
    ssize_t                    n;
    ngx_err_t                  err;
    ngx_uint_t                 niov;
    ngx_queue_t               *q;
    struct iovec               iov[NGX_HTTP_SANDBOX_IOVS];
    ngx_http_sandbox_block_t  *b;

    for ( ;; ) {

        niov = 0;

        for (q = ngx_queue_head(&queue->blocks);
             q != ngx_queue_sentinel(&queue->blocks)
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

        for (q = ngx_queue_head(&queue->blocks);
             left && q != ngx_queue_sentinel(&queue->blocks);
             q = ngx_queue_next(q))
        {
            b = ngx_queue_data(q, ngx_http_sandbox_block_t, queue);

            part = ngx_min(left, (size_t) (b->last - b->sent));
            b->sent += part;
            left -= part;
        }
    }
}
