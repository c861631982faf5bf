#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "execd_pty.h"


#define RT_WS_RECV_MAX   (16 * 1024 * 1024)
#define RT_WS_SEND_MAX   (1024 * 1024)      /* queued before we stop taking */
#define RT_STDIN_MAX     (1024 * 1024)      /* typed ahead before we stop */
#define RT_WS_PING_MS    30000
#define RT_WS_IDLE_MS    60000
#define RT_WS_WRITE_MS   10000
#define RT_WS_EVICT_MS   200


static ssize_t
rt_ws_recv(wslay_event_context_ptr ctx, uint8_t *buf, size_t n, int flags,
    void *data)
{
    ssize_t       got;
    rt_pty_ws_t  *w;

    (void) flags;

    w = data;

    if (w->nextra > 0) {
        n = n < w->nextra ? n : w->nextra;
        memcpy(buf, w->extra, n);
        w->extra += n;
        w->nextra -= n;
        return (ssize_t) n;
    }

    got = recv(w->fd, buf, n, MSG_DONTWAIT);

    if (got > 0) {
        w->heard_ms = rt_ms();
        return got;
    }

    if (got == -1 && (errno == EAGAIN || errno == EINTR)) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);

    } else {
        w->broken = true;
        wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
    }

    return -1;
}


static ssize_t
rt_ws_send(wslay_event_context_ptr ctx, const uint8_t *buf, size_t n,
    int flags, void *data)
{
    ssize_t       sent;
    rt_pty_ws_t  *w;

    w = data;
    sent = send(w->fd, buf, n, MSG_DONTWAIT|MSG_NOSIGNAL
                | (flags & WSLAY_MSG_MORE ? MSG_MORE : 0));

    if (sent >= 0) {
        w->wrote_ms = rt_ms();
        return sent;
    }

    if (errno == EAGAIN || errno == EINTR) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);

    } else {
        w->broken = true;
        wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
    }

    return -1;
}


void
rt_ws_queue(rt_pty_ws_t *w, uint8_t opcode, const void *p, size_t n)
{
    struct wslay_event_msg  msg;

    msg.opcode = opcode;
    msg.msg = p;
    msg.msg_length = n;

    if (wslay_event_queue_msg(w->ws, &msg) == WSLAY_ERR_NOMEM) {
        w->broken = true;
    }
}


void
rt_ws_text(rt_pty_ws_t *w, sb_buf_t *b)
{
    sb_buf_add_c(b, '\n');
    rt_ws_queue(w, WSLAY_TEXT_FRAME, b->data, b->len);
    sb_buf_free(b);
}


void
rt_ws_error(rt_pty_ws_t *w, const char *code, const char *text)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = 65536;
    sb_buf_printf(&b, "{\"type\":\"error\",\"error\":");
    rt_go_write(&b, sb_str(text, strlen(text)));
    sb_buf_printf(&b, ",\"code\":\"%s\"}", code);
    rt_ws_text(w, &b);
}


static void
rt_pty_typed(rt_pty_ws_t *w, const char *p, size_t n)
{
    w->typed.max = RT_STDIN_MAX + RT_WS_RECV_MAX;
    sb_buf_add(&w->typed, p, n);
}


static void
rt_pty_text(rt_pty_ws_t *w, const char *p, size_t n)
{
    int64_t         cols, rows;
    char            text[256];
    sb_buf_t        b;
    sb_str_t        type, value;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root;

    doc = rt_go_parse_all(sb_str(p, n));
    root = doc ? sb_jdoc_root(doc) : NULL;
    type = value = sb_lit("");
    cols = rows = 0;
    memset(&b, 0, sizeof(b));
    b.max = 256;

    if (root == NULL
        || (root->kind != SB_JSON_OPEN_OBJECT && root->kind != SB_JSON_NULL)
        || rt_go_str(root, "type", &type) < 0
        || rt_go_int(root, "cols", &cols) < 0
        || rt_go_int(root, "rows", &rows) < 0)
    {
        sb_jdoc_free(doc);
        return;
    }

    if (sb_eq(type, sb_lit("stdin"))) {
        if (rt_go_str(root, "data", &value) == 1) {
            rt_pty_typed(w, value.data, value.len);
        }

    } else if (sb_eq(type, sb_lit("signal"))) {
        if (rt_go_str(root, "signal", &value) == 1) {
            rt_pty_signal(w->s, value.data);
        }

    } else if (sb_eq(type, sb_lit("resize"))) {
        if (cols > 0 && rows > 0) {
            rt_pty_resize(w->s, (unsigned short) cols,
                          (unsigned short) rows);
        }

    } else if (sb_eq(type, sb_lit("ping"))) {
        sb_buf_printf(&b, "{\"type\":\"pong\"}");
        rt_ws_text(w, &b);

    } else {
        snprintf(text, sizeof(text), "unknown frame type \"%.*s\"",
                 (int) (type.len < 200 ? type.len : 200), type.data);
        rt_ws_error(w, "INVALID_FRAME", text);
    }

    sb_jdoc_free(doc);
}


static void
rt_ws_message(wslay_event_context_ptr ctx,
    const struct wslay_event_on_msg_recv_arg *arg, void *data)
{
    rt_pty_ws_t  *w;
    const char   *p;

    (void) ctx;

    w = data;
    p = (const char *) arg->msg;

    if (arg->opcode == WSLAY_BINARY_FRAME) {
        if (arg->msg_length > 0 && p[0] == 0) {
            rt_pty_typed(w, p + 1, arg->msg_length - 1);
        }

    } else if (arg->opcode == WSLAY_TEXT_FRAME) {
        rt_pty_text(w, p, arg->msg_length);
    }
}


/* The close frame goes out behind everything else: wslay would let it, as a
 * control frame, overtake what is queued. */

static void
rt_ws_close(rt_pty_ws_t *w, uint16_t code, const char *reason)
{
    if (!w->end) {
        w->code = code;
        w->reason = reason;
        w->end = true;
    }
}


/* Takes output from the session's queue; when the shell has ended and all was
 * taken, says so. */

static void
rt_pty_take(rt_pty_ws_t *w)
{
    int        exit_code;
    bool       done;
    char      *p, *end;
    size_t     left;
    uint32_t   len;
    uint64_t   count;
    sb_buf_t   b;

    if (read(w->client.wake, &count, sizeof(count)) == -1) {
        /* woken by something else */
    }

    if (w->end || wslay_event_get_queued_msg_length(w->ws) > RT_WS_SEND_MAX) {
        return;
    }

    pthread_mutex_lock(&w->s->lock);

    if (w->client.evicted) {
        pthread_mutex_unlock(&w->s->lock);
        w->evicted = true;
        rt_ws_close(w, 4001, "TAKEN_OVER");
        return;
    }

    p = w->client.queue.data;
    end = p + w->client.queue.len;

    while (p < end) {
        memcpy(&len, p + 1, sizeof(len));

        /* the channel byte goes right before the bytes */

        p[4] = p[0];
        rt_ws_queue(w, WSLAY_BINARY_FRAME, p + 4, len + 1);
        p += 5 + len;
    }

    left = w->client.queue.len;
    w->client.queue.len = 0;

    if (left > 0) {
        pthread_cond_broadcast(&w->s->cond);
    }

    done = !w->s->running;
    exit_code = w->s->exit_code;
    pthread_mutex_unlock(&w->s->lock);

    if (done) {
        memset(&b, 0, sizeof(b));
        b.max = 128;
        sb_buf_printf(&b, "{\"type\":\"exit\",\"exit_code\":%d}",
                      exit_code);
        rt_ws_text(w, &b);
        rt_ws_close(w, 1000, "process exited");
    }
}


static void
rt_pty_feed(rt_pty_ws_t *w)
{
    ssize_t  n;

    n = write(w->in, w->typed.data, w->typed.len);

    if (n > 0) {
        w->typed.len -= (size_t) n;
        memmove(w->typed.data, w->typed.data + n, w->typed.len);

    } else if (n == -1 && errno != EAGAIN && errno != EINTR) {
        w->typed.len = 0;

        if (!w->end) {
            rt_ws_error(w, "STDIN_WRITE_FAILED", strerror(errno));
        }
    }
}


static void
rt_pty_loop(rt_pty_ws_t *w)
{
    bool           reading;
    uint64_t       now, ping;
    struct pollfd  p[3];

    w->heard_ms = w->wrote_ms = rt_ms();
    ping = w->heard_ms + RT_WS_PING_MS;

    for ( ;; ) {
        if (wslay_event_want_write(w->ws)) {
            if (wslay_event_send(w->ws) != 0) {
                return;
            }

        } else {
            if (w->code != 0) {
                wslay_event_queue_close(w->ws, w->code,
                                        (const uint8_t *) w->reason,
                                        strlen(w->reason));
                w->code = 0;
                continue;
            }

            if (w->end || wslay_event_get_close_sent(w->ws)) {
                return;
            }
        }

        reading = wslay_event_want_read(w->ws) && !w->end
                  && w->typed.len < RT_STDIN_MAX;
        p[0].fd = w->fd;
        p[0].events = (short) ((reading ? POLLIN : 0)
                      | (wslay_event_want_write(w->ws) ? POLLOUT : 0));
        p[1].fd = w->client.wake;
        p[1].events = POLLIN;
        p[2].fd = w->typed.len > 0 ? w->in : -1;
        p[2].events = POLLOUT;
        p[0].revents = p[1].revents = p[2].revents = 0;

        poll(p, 3, w->nextra > 0 ? 0 : w->end ? 200 : 1000);
        now = rt_ms();

        if (!wslay_event_want_write(w->ws)) {
            w->wrote_ms = now;
        }

        if (w->broken || (p[0].revents & (POLLERR|POLLNVAL))
            || now - w->heard_ms > RT_WS_IDLE_MS
            || (wslay_event_want_write(w->ws)
                && now - w->wrote_ms > (w->evicted ? RT_WS_EVICT_MS
                                                   : RT_WS_WRITE_MS)))
        {
            return;
        }

        if (now >= ping && !w->end) {
            rt_ws_queue(w, WSLAY_PING, "", 0);
            ping = now + RT_WS_PING_MS;
        }

        if (reading && (w->nextra > 0 || (p[0].revents & (POLLIN|POLLHUP)))
            && wslay_event_recv(w->ws) != 0)
        {
            return;
        }

        if (p[2].revents) {
            rt_pty_feed(w);
        }

        rt_pty_take(w);
    }
}


void
rt_pty_talk(void *ctx, int fd, const char *extra, size_t n)
{
    rt_pty_ws_t  *w;

    static const struct wslay_event_callbacks  callbacks = {
        rt_ws_recv, rt_ws_send, NULL, NULL, NULL, NULL, rt_ws_message
    };

    w = ctx;
    w->fd = fd;
    w->in = -1;
    w->extra = extra;
    w->nextra = n;
    w->client.wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (w->client.wake == -1
        || wslay_event_context_server_init(&w->ws, &callbacks, w) != 0)
    {
        close(w->client.wake);
        return;
    }

    wslay_event_config_set_max_recv_msg_length(w->ws, RT_WS_RECV_MAX);

    if (!w->locked && !rt_pty_takeover(w)) {
        rt_ws_error(w, "ALREADY_CONNECTED", "the holder does not go");
        w->end = true;

    } else if (!rt_pty_attach(w)) {
        w->end = true;
    }

    rt_pty_loop(w);
    rt_pty_unlock(w);

    wslay_event_context_free(w->ws);
    sb_buf_free(&w->typed);
    sb_buf_free(&w->client.queue);
    close(w->client.wake);
    close(w->in);
}
