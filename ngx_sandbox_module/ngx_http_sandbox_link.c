/* One connection to the helper (ngx_http_sandbox_link.h). */


#include "ngx_http_sandbox_link.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_RECV       4096
#define NGX_HTTP_SANDBOX_HELLO      8192
#define NGX_HTTP_SANDBOX_SNDBUF     (1024 * 1024)
#define NGX_HTTP_SANDBOX_RECONNECT  20      /* ms, grows to: */
#define NGX_HTTP_SANDBOX_BACKOFF    500


static void ngx_http_sandbox_link_connect(ngx_http_sandbox_link_t *l);
static void ngx_http_sandbox_link_hello(ngx_http_sandbox_link_t *l);
static ngx_int_t ngx_http_sandbox_link_frames(ngx_http_sandbox_link_t *l,
    size_t *need);
static void ngx_http_sandbox_link_retry_handler(ngx_event_t *ev);
static void ngx_http_sandbox_link_read_handler(ngx_event_t *rev);
static void ngx_http_sandbox_link_write_handler(ngx_event_t *wev);


void
ngx_http_sandbox_link_open(ngx_http_sandbox_link_t *l, ngx_log_t *log)
{
    l->retry.handler = ngx_http_sandbox_link_retry_handler;
    l->retry.data = l;
    l->retry.log = log;
    l->retry.cancelable = 1;

    ngx_http_sandbox_link_connect(l);
}


static void
ngx_http_sandbox_link_connect(ngx_http_sandbox_link_t *l)
{
    int                  n;
    ngx_err_t            err;
    ngx_socket_t         s;
    ngx_event_t         *rev, *wev;
    ngx_connection_t    *c;
    struct sockaddr_un   sa;

    l->ready = 0;
    l->in_len = 0;
    l->out_len = 0;
    l->out_sent = 0;

    s = ngx_socket(AF_UNIX, SOCK_STREAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_socket_errno,
                      "sandbox helper: " ngx_socket_n " failed");
        ngx_http_sandbox_link_close(l);
        return;
    }

    c = ngx_get_connection(s, ngx_cycle->log);

    if (c == NULL) {
        (void) ngx_close_socket(s);
        ngx_http_sandbox_link_close(l);
        return;
    }

    l->connection = c;
    c->data = l;
    c->log = ngx_cycle->log;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);

    if (ngx_nonblocking(s) == -1) {
        ngx_log_error(NGX_LOG_ERR, c->log, ngx_socket_errno,
                      ngx_nonblocking_n " failed");
        ngx_http_sandbox_link_close(l);
        return;
    }

    n = NGX_HTTP_SANDBOX_SNDBUF;
    (void) setsockopt(s, SOL_SOCKET, SO_SNDBUF, (const void *) &n, sizeof(int));

    rev = c->read;
    wev = c->write;

    rev->log = c->log;
    wev->log = c->log;
    rev->handler = ngx_http_sandbox_link_read_handler;
    wev->handler = ngx_http_sandbox_link_write_handler;

    c->recv = ngx_recv;
    c->send = ngx_send;
    c->send_chain = ngx_send_chain;

    /* an exiting worker does not wait for this connection */
    rev->channel = 1;

    ngx_memzero(&sa, sizeof(struct sockaddr_un));
    sa.sun_family = AF_UNIX;
    ngx_memcpy(sa.sun_path, l->socket.data, l->socket.len);

    if (connect(s, (struct sockaddr *) &sa, sizeof(struct sockaddr_un)) == -1) {

        /* EAGAIN: the helper's backlog is full */

        err = ngx_socket_errno;

        /*
         * a helper that is being started or replaced is away for moments;
         * the back-off grows with the time, its last step is said once
         */

        if (l->wait >= NGX_HTTP_SANDBOX_BACKOFF / 2
            && l->wait < NGX_HTTP_SANDBOX_BACKOFF)
        {
            ngx_log_error(NGX_LOG_ERR, c->log, err,
                          "sandbox helper: cannot connect to %V, trying again",
                          &l->socket);
        }

        ngx_http_sandbox_link_close(l);
        return;
    }

    wev->ready = 1;

    if (ngx_add_event(rev, NGX_READ_EVENT,
                      ngx_event_flags & NGX_USE_CLEAR_EVENT
                      ? NGX_CLEAR_EVENT : NGX_LEVEL_EVENT)
        != NGX_OK)
    {
        ngx_http_sandbox_link_close(l);
        return;
    }

    ngx_http_sandbox_link_hello(l);
}


static void
ngx_http_sandbox_link_hello(ngx_http_sandbox_link_t *l)
{
    u_char            *p;
    sb_frame_writer_t  w;

    p = ngx_http_sandbox_link_room(l, NGX_HTTP_SANDBOX_HELLO);

    if (p == NULL) {
        ngx_http_sandbox_link_close(l);
        return;
    }

    sb_frame_begin(&w, p, NGX_HTTP_SANDBOX_HELLO, SB_F_HELLO, 0, 0, NULL,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_INSTANCE, l->instance);
    sb_frame_put_u64(&w, SB_T_PID, (uint64_t) ngx_pid);
    sb_frame_put(&w, SB_T_ROLE, sb_str(l->role, ngx_strlen(l->role)));

    l->out_len += sb_frame_end(&w);

    if (ngx_http_sandbox_link_write(l) == NGX_ERROR) {
        ngx_http_sandbox_link_close(l);
    }
}


void
ngx_http_sandbox_link_close(ngx_http_sandbox_link_t *l)
{
    ngx_uint_t  ready;

    if (l->connection) {
        ngx_close_connection(l->connection);
        l->connection = NULL;
    }

    ready = l->ready;
    l->ready = 0;

    if (ready) {
        ngx_http_sandbox_metric_add(RECONNECTS, 1);
    }

    if (ready && l->gone) {
        l->gone(l);
    }

    if (l->stopped) {
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
ngx_http_sandbox_link_retry_handler(ngx_event_t *ev)
{
    ngx_http_sandbox_link_t  *l = ev->data;

    if (l->connection == NULL && !l->stopped) {
        ngx_http_sandbox_link_connect(l);
    }
}


static void
ngx_http_sandbox_link_read_handler(ngx_event_t *rev)
{
    ngx_connection_t         *c;
    ngx_http_sandbox_link_t  *l;

    c = rev->data;
    l = c->data;

    if (c->close) {
        /* the worker is short of connections; it comes back at once */
        ngx_http_sandbox_link_close(l);
        return;
    }

    if (ngx_http_sandbox_link_read(l) == NGX_ERROR && l->connection == c) {
        ngx_http_sandbox_link_close(l);
    }
}


ngx_int_t
ngx_http_sandbox_link_read(ngx_http_sandbox_link_t *l)
{
    size_t             need, size;
    u_char            *p;
    ssize_t            n;
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
            return NGX_AGAIN;
        }

        if (n == NGX_ERROR || n == 0) {
            return NGX_ERROR;
        }

        l->in_len += n;

        if (ngx_http_sandbox_link_frames(l, &need) != NGX_OK) {
            return NGX_ERROR;
        }

        if (l->connection != c) {
            /* a handler has closed it */
            return NGX_OK;
        }

        if (need <= l->in_size) {
            continue;
        }

        if (need > NGX_HTTP_SANDBOX_LINK_MAX) {
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


/* Hands on the whole frames of the buffer; need: bytes that the next one
 * takes. */

static ngx_int_t
ngx_http_sandbox_link_frames(ngx_http_sandbox_link_t *l, size_t *need)
{
    size_t             used;
    sb_rc_t            rc;
    sb_frame_t         f;
    ngx_connection_t  *c;

    c = l->connection;
    used = 0;
    *need = 0;

    while (l->in_len > used) {

        rc = sb_frame_read(&f, (char *) l->in + used, l->in_len - used, need);

        if (rc == SB_AGAIN) {
            break;
        }

        if (rc != SB_OK || l->frame(l, &f) != NGX_OK) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "sandbox helper: a frame cannot be understood");
            return NGX_ERROR;
        }

        if (l->connection != c) {
            return NGX_OK;
        }

        used += f.length;
        *need = 0;
    }

    l->in_len -= used;
    ngx_memmove(l->in, l->in + used, l->in_len);

    return NGX_OK;
}


static void
ngx_http_sandbox_link_write_handler(ngx_event_t *wev)
{
    ngx_int_t                 rc;
    ngx_connection_t         *c;
    ngx_http_sandbox_link_t  *l;

    c = wev->data;
    l = c->data;

    rc = ngx_http_sandbox_link_write(l);

    if (rc == NGX_OK && l->ready && l->writable) {
        rc = l->writable(l);
    }

    if (rc == NGX_ERROR) {
        ngx_http_sandbox_link_close(l);
        return;
    }

    if (rc == NGX_OK && wev->active
        && (ngx_event_flags & NGX_USE_CLEAR_EVENT))
    {
        /* else every read of the helper's wakes this worker */

        if (ngx_del_event(wev, NGX_WRITE_EVENT, 0) != NGX_OK) {
            ngx_http_sandbox_link_close(l);
        }
    }
}


u_char *
ngx_http_sandbox_link_room(ngx_http_sandbox_link_t *l, size_t size)
{
    u_char  *p;
    size_t   all;

    if (l->out_size - l->out_len >= size) {
        return l->out + l->out_len;
    }

    if (l->out_len + size > NGX_HTTP_SANDBOX_LINK_MAX) {
        return NULL;
    }

    all = ngx_max(2 * l->out_size, l->out_len + size);

    p = ngx_alloc(all, ngx_cycle->log);
    if (p == NULL) {
        return NULL;
    }

    if (l->out) {
        ngx_memcpy(p, l->out, l->out_len);
        ngx_free(l->out);
    }

    l->out = p;
    l->out_size = all;

    return l->out + l->out_len;
}


ngx_int_t
ngx_http_sandbox_link_write(ngx_http_sandbox_link_t *l)
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
