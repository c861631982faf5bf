#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "execd.h"
#include "id.h"


#define RT_EVENTS_MAX   (4 * 1024 * 1024)   /* queued before the pump waits */
#define RT_EVENT_MAX    (512 * 1024 * 1024) /* one event, escapes included */
#define RT_LINE_MAX     (64 * 1024 * 1024)  /* then it is cut into two events */
#define RT_PING_MS      3000
#define RT_LOOK_MS      200


typedef struct rt_event_s  rt_event_t;

struct rt_event_s {
    rt_event_t  *next;
    sb_buf_t     text;
};

struct rt_events_s {
    pthread_mutex_t   lock;
    pthread_cond_t    cond;
    rt_event_t       *head;
    rt_event_t      **tail;
    size_t            bytes;        /* queued */
    size_t            pos;          /* in head, already sent */
    bool              attached;     /* somebody still reads */
    bool              closed;
    unsigned          refs;
    unsigned          sent;
    uint64_t          next_ping;
    uint64_t          grace_ms;
    uint64_t          end;          /* when the last chunk is due */
    int               client;
};


rt_events_t *
rt_events_new(rt_req_t *r, uint64_t grace_ms)
{
    rt_events_t         *e;
    pthread_condattr_t   attr;

    e = calloc(1, sizeof(rt_events_t));

    if (e == NULL) {
        return NULL;
    }

    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&e->cond, &attr);
    pthread_condattr_destroy(&attr);

    e->tail = &e->head;
    e->attached = true;
    e->refs = 2;
    e->grace_ms = grace_ms;
    e->client = rt_client_fd(r);

    return e;
}


void
rt_events_release(rt_events_t *e)
{
    unsigned     refs;
    rt_event_t  *ev;

    pthread_mutex_lock(&e->lock);
    refs = --e->refs;
    pthread_mutex_unlock(&e->lock);

    if (refs != 0) {
        return;
    }

    while ((ev = e->head) != NULL) {
        e->head = ev->next;
        sb_buf_free(&ev->text);
        free(ev);
    }

    pthread_cond_destroy(&e->cond);
    pthread_mutex_destroy(&e->lock);
    free(e);
}


static void
rt_events_wait(rt_events_t *e, uint64_t ms)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t) (ms / 1000);
    ts.tv_nsec += (long) (ms % 1000) * 1000000;

    if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
    }

    pthread_cond_timedwait(&e->cond, &e->lock, &ts);
}


static void
rt_events_put(rt_events_t *e, sb_buf_t *text)
{
    rt_event_t  *ev;

    ev = calloc(1, sizeof(rt_event_t));

    pthread_mutex_lock(&e->lock);

    while (e->attached && e->bytes > RT_EVENTS_MAX) {
        rt_events_wait(e, 1000);
    }

    if (ev == NULL || !e->attached) {
        pthread_mutex_unlock(&e->lock);
        free(ev);
        sb_buf_free(text);
        return;
    }

    ev->text = *text;
    e->bytes += text->len;
    *e->tail = ev;
    e->tail = &ev->next;

    pthread_cond_broadcast(&e->cond);
    pthread_mutex_unlock(&e->lock);
}


static void
rt_event_open(sb_buf_t *b, const char *type)
{
    memset(b, 0, sizeof(sb_buf_t));
    b->max = RT_EVENT_MAX;
    sb_buf_printf(b, "{\"type\":\"%s\"", type);
}


static void
rt_event_time(sb_buf_t *b)
{
    sb_buf_printf(b, ",\"timestamp\":%llu",
                  (unsigned long long) (sb_now_us() / 1000));
}


static void
rt_event_text(sb_buf_t *b, const char *type, sb_str_t text)
{
    rt_event_open(b, type);
    sb_buf_add(b, ",\"text\":", 8);
    rt_go_write(b, text);
    rt_event_time(b);
    sb_buf_add(b, "}\n\n", 3);
}


void
rt_events_text(rt_events_t *e, const char *type, sb_str_t text)
{
    sb_buf_t  b;

    rt_event_text(&b, type, text);
    rt_events_put(e, &b);
}


void
rt_events_error(rt_events_t *e, const char *evalue, const char *traceback)
{
    sb_buf_t  b;

    rt_event_open(&b, "error");
    rt_event_time(&b);
    sb_buf_printf(&b, ",\"error\":{\"ename\":\"CommandExecError\","
                      "\"evalue\":");
    rt_go_write(&b, sb_str(evalue, strlen(evalue)));
    sb_buf_printf(&b, ",\"traceback\":[");
    rt_go_write(&b, sb_str(traceback, strlen(traceback)));
    sb_buf_add(&b, "]}}\n\n", 5);
    rt_events_put(e, &b);
}


void
rt_events_json(rt_events_t *e, const char *type, const char *name,
    sb_str_t json)
{
    bool      before;
    sb_buf_t  b;

    /* of an event's members the time is the fifth */

    before = strcmp(name, "execution_count") == 0;
    rt_event_open(&b, type);

    if (!before) {
        rt_event_time(&b);
    }

    sb_buf_printf(&b, ",\"%s\":", name);
    sb_buf_add_str(&b, json);

    if (before) {
        rt_event_time(&b);
    }

    sb_buf_add(&b, "}\n\n", 3);
    rt_events_put(e, &b);
}


void
rt_events_complete(rt_events_t *e, int64_t ms)
{
    sb_buf_t  b;

    rt_event_open(&b, "execution_complete");

    if (ms > 0) {
        sb_buf_printf(&b, ",\"execution_time\":%lld", (long long) ms);
    }

    rt_event_time(&b);
    sb_buf_add(&b, "}\n\n", 3);
    rt_events_put(e, &b);
}


void
rt_events_raw(rt_events_t *e, sb_str_t text)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = RT_EVENT_MAX;
    sb_buf_add_str(&b, text);
    rt_events_put(e, &b);
}


void
rt_events_close(rt_events_t *e)
{
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    pthread_cond_broadcast(&e->cond);
    pthread_mutex_unlock(&e->lock);
}


bool
rt_events_gone(rt_events_t *e)
{
    bool  gone;

    pthread_mutex_lock(&e->lock);
    gone = !e->attached;
    pthread_mutex_unlock(&e->lock);

    return gone;
}


/* Called for each chunk.  The first ping stands behind the first event, the
 * others come every three seconds, between events. */

static ssize_t
rt_events_read(void *ctx, char *buf, size_t max)
{
    size_t        n;
    uint64_t      now;
    rt_event_t   *ev, ping;
    rt_events_t  *e;

    e = ctx;
    pthread_mutex_lock(&e->lock);

    for ( ;; ) {
        now = rt_ms();

        if (e->pos == 0 && !(e->closed && e->head == NULL)
            && e->sent > 0 && now >= e->next_ping)
        {
            e->next_ping = now + RT_PING_MS;
            pthread_mutex_unlock(&e->lock);

            rt_event_text(&ping.text, "ping", sb_lit("pong"));
            n = ping.text.len < max ? ping.text.len : max;
            memcpy(buf, ping.text.data, n);
            sb_buf_free(&ping.text);

            return (ssize_t) n;
        }

        if (e->head != NULL) {
            break;
        }

        if (e->closed) {

            if (e->end == 0) {
                e->end = now + e->grace_ms;
            }

            if (now >= e->end) {
                pthread_mutex_unlock(&e->lock);
                return 0;
            }

            rt_events_wait(e, e->end - now < RT_LOOK_MS ? e->end - now
                                                        : RT_LOOK_MS);

        } else {
            rt_events_wait(e, RT_LOOK_MS);
        }

        if (rt_client_gone(e->client)) {
            pthread_mutex_unlock(&e->lock);
            return -1;
        }
    }

    ev = e->head;
    n = ev->text.len - e->pos < max ? ev->text.len - e->pos : max;
    memcpy(buf, ev->text.data + e->pos, n);
    e->pos += n;

    if (e->pos == ev->text.len) {
        e->head = ev->next;

        if (e->head == NULL) {
            e->tail = &e->head;
        }

        e->bytes -= ev->text.len;
        e->pos = 0;
        e->sent++;
        sb_buf_free(&ev->text);
        free(ev);
        pthread_cond_broadcast(&e->cond);
    }

    pthread_mutex_unlock(&e->lock);

    return (ssize_t) n;
}


static void
rt_events_detach(void *ctx)
{
    rt_events_t  *e;

    e = ctx;

    pthread_mutex_lock(&e->lock);
    e->attached = false;
    pthread_cond_broadcast(&e->cond);
    pthread_mutex_unlock(&e->lock);

    rt_events_release(e);
}


void
rt_events_reply(rt_req_t *r, rt_events_t *e)
{
    rt_out(r, "Cache-Control", "no-cache");
    rt_out(r, "Content-Type", "text/event-stream");
    rt_out(r, "X-Accel-Buffering", "no");
    rt_reply_stream(r, 200, UINT64_MAX, rt_events_read, e, rt_events_detach);
}


void
rt_lines_feed(rt_lines_t *l, const char *p, size_t n, rt_events_t *e,
    const char *type)
{
    size_t       run;
    const char  *end, *q;

    l->buf.max = RT_LINE_MAX;
    end = p + n;

    while (p < end) {
        for (q = p; q < end && *q != '\n' && *q != '\r'; q++) { /* void */ }

        run = (size_t) (q - p);

        if (run > 0) {
            l->cr = false;

            if (l->buf.len + run > RT_LINE_MAX) {
                rt_lines_flush(l, e, type);
            }

            sb_buf_add(&l->buf, p, run);
        }

        if (q == end) {
            return;
        }

        if (l->buf.len > 0) {
            rt_lines_flush(l, e, type);

        } else if (*q != '\n' || !l->cr) {
            rt_events_text(e, type, sb_lit("\n"));
        }

        l->cr = *q == '\r';
        p = q + 1;
    }
}


void
rt_lines_flush(rt_lines_t *l, rt_events_t *e, const char *type)
{
    if (l->buf.len > 0) {
        rt_events_text(e, type, sb_str(l->buf.data, l->buf.len));
        l->buf.len = 0;
    }

    if (l->buf.cap > 1024 * 1024) {
        sb_buf_free(&l->buf);
    }
}
