/* GET /pty/{id}/ws: who may attach, and what is sent first. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "execd_pty.h"
#include "proxy.h"
#include "url.h"


#define RT_TAKEOVER_S  5


void
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


bool
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


bool
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
        /* before the answer: who has read it may attach at once */
        rt_pty_unlock(w);
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
