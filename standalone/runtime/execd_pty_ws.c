#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <wslay/wslay.h>

#include "execd_pty.h"
#include "proxy.h"
#include "url.h"


#define RT_WS_RECV_MAX   (16 * 1024 * 1024)
#define RT_WS_SEND_MAX   (1024 * 1024)      /* queued before we stop taking */
#define RT_STDIN_MAX     (1024 * 1024)      /* typed ahead before we stop */
#define RT_WS_PING_MS    30000
#define RT_WS_IDLE_MS    60000
#define RT_WS_WRITE_MS   10000
#define RT_TAKEOVER_S    5


/* One WebSocket. */
typedef struct {
    rt_pty_t                 *s;
    bool                      locked;       /* we hold the session */
    bool                      pipe;
    uint64_t                  since;

    wslay_event_context_ptr   ws;
    int                       fd;
    int                       in;           /* copy of the shell's input */
    bool                      broken;
    bool                      end;          /* nothing more is to be said */
    uint16_t                  code;         /* of the close frame, 0: none */
    const char               *reason;
    uint64_t                  heard_ms;
    uint64_t                  wrote_ms;
    sb_buf_t                  typed;
    rt_pty_client_t           client;
    const char               *extra;        /* read with the head */
    size_t                    nextra;
} rt_pty_ws_t;


static void
rt_pty_unlock(rt_pty_ws_t *w)
{
    if (w->locked) {
        pthread_mutex_lock(&w->s->lock);
        w->s->held = false;
        w->s->client = NULL;
        pthread_cond_broadcast(&w->s->cond);
        pthread_mutex_unlock(&w->s->lock);
        w->locked = false;
    }
}


static void
rt_pty_ws_free(void *ctx)
{
    rt_pty_ws_t  *w;

    w = ctx;
    rt_pty_unlock(w);
    rt_pty_release(w->s);
    free(w);
}


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


static void
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


static void
rt_ws_text(rt_pty_ws_t *w, sb_buf_t *b)
{
    sb_buf_add_c(b, '\n');
    rt_ws_queue(w, WSLAY_TEXT_FRAME, b->data, b->len);
    sb_buf_free(b);
}


static void
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

    doc = rt_go_parse(sb_str(p, n), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;
    type = value = sb_lit("");
    cols = rows = 0;
    memset(&b, 0, sizeof(b));
    b.max = 256;

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT
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
        if (cols > 0 && rows > 0 && cols < 65536 && rows < 65536) {
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
    pthread_mutex_unlock(&w->s->lock);

    if (done) {
        memset(&b, 0, sizeof(b));
        b.max = 128;
        sb_buf_printf(&b, "{\"type\":\"exit\",\"exit_code\":%d}",
                      w->s->exit_code);
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

        if (!w->end && w->s->running) {
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
            w->wrote_ms = rt_ms();

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

        if (w->broken || (p[0].revents & (POLLERR|POLLNVAL))
            || now - w->heard_ms > RT_WS_IDLE_MS
            || now - w->wrote_ms > (w->client.evicted ? 200 : RT_WS_WRITE_MS))
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


/* Waits for the holder to go.  false: it does not. */

static bool
rt_pty_takeover(rt_pty_ws_t *w)
{
    uint64_t          one;
    rt_pty_t         *s;
    struct timespec   until;

    s = w->s;
    one = 1;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RT_TAKEOVER_S;

    pthread_mutex_lock(&s->lock);

    while (s->held) {
        if (s->client != NULL && !s->client->evicted) {
            s->client->evicted = true;

            if (write(s->client->wake, &one, sizeof(one)) == -1) {
                /* it is awake */
            }
        }

        if (pthread_cond_timedwait(&s->cond, &s->lock, &until) != 0) {
            break;
        }
    }

    w->locked = !s->held;
    s->held = true;
    pthread_mutex_unlock(&s->lock);

    return w->locked;
}


/* Starts the shell if it does not run, and attaches. */

static bool
rt_pty_attach(rt_pty_ws_t *w)
{
    bool       pty;
    char       text[128];
    uint64_t   offset;
    sb_buf_t   frame, b;
    size_t     i;
    rt_pty_t  *s;

    s = w->s;
    memset(&frame, 0, sizeof(frame));
    memset(&b, 0, sizeof(b));
    frame.max = RT_REPLAY_MAX + 9;
    b.max = 256;
    sb_buf_add(&frame, "\003\0\0\0\0\0\0\0\0", 9);

    pthread_mutex_lock(&s->lock);

    if (!s->running && rt_pty_start(s, !w->pipe) == -1) {
        snprintf(text, sizeof(text), "bash did not start: %s",
                 strerror(errno));
        pthread_mutex_unlock(&s->lock);
        rt_ws_error(w, "START_FAILED", text);
        sb_buf_free(&frame);
        return false;
    }

    offset = rt_pty_replay(s, w->since, &frame);
    w->in = fcntl(s->in, F_DUPFD_CLOEXEC, 0);
    s->client = &w->client;
    pty = s->pty;
    pthread_mutex_unlock(&s->lock);

    if (frame.len > 9) {
        for (i = 0; i < 8; i++) {
            frame.data[1 + i] = (char) (offset >> (56 - 8 * i));
        }

        rt_ws_queue(w, WSLAY_BINARY_FRAME, frame.data, frame.len);
    }

    sb_buf_free(&frame);
    sb_buf_printf(&b, "{\"type\":\"connected\",\"session_id\":\"%s\","
                      "\"mode\":\"%s\"}", s->id, pty ? "pty" : "pipe");
    rt_ws_text(w, &b);

    return true;
}


static void
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


static bool
rt_query_is(rt_req_t *r, const char *name, const char *value)
{
    bool   hit;
    char  *text;

    text = rt_query_get(r->query, name);
    hit = text != NULL && strcmp(text, value) == 0;
    free(text);

    return hit;
}


void
rt_pty_ws(rt_req_t *r, const char *id)
{
    bool          takeover;
    char          accept[32], *since;
    rt_pty_t     *s;
    rt_pty_ws_t  *w;

    s = rt_pty_find(id);

    if (s == NULL) {
        rt_fail(r, 404, "CONTEXT_NOT_FOUND", "pty session %s not found", id);
        return;
    }

    w = calloc(1, sizeof(rt_pty_ws_t));

    if (w == NULL) {
        abort();
    }

    w->s = s;
    r->ctx = w;
    r->ctx_free = rt_pty_ws_free;
    takeover = rt_query_is(r, "takeover", "1") && rt_is_websocket(r);

    pthread_mutex_lock(&s->lock);
    w->locked = !s->held;
    s->held = true;
    pthread_mutex_unlock(&s->lock);

    if (!w->locked && !takeover) {
        rt_fail(r, 409, "ALREADY_CONNECTED", "another client is already "
                "connected to pty session %s", id);
        return;
    }

    if (!rt_is_websocket(r)) {
        rt_out(r, "Sec-Websocket-Version", "13");
        rt_fail_text(r, 400, "Bad Request\n");
        return;
    }

    w->pipe = rt_query_is(r, "pty", "0");
    since = rt_query_get(r->query, "since");
    w->since = since && since[0] >= '0' && since[0] <= '9'
               ? strtoull(since, NULL, 10) : 0;
    free(since);

    rt_websocket_accept(accept, rt_header(r, "Sec-WebSocket-Key"));
    rt_out(r, "Upgrade", "websocket");
    rt_out(r, "Sec-WebSocket-Accept", accept);
    rt_reply_upgrade(r, rt_pty_talk, w);
}
