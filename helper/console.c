#include "console.h"

#include "ask_int.h"
#include "canonical.h"
#include "id.h"
#include "log.h"
#include "stats.h"

#include <stdlib.h>
#include <unistd.h>


/* What is recorded by itself; what is not here is read, or changed. */
static const struct {
    const char  *method;
    const char  *path;
    const char  *type;          /* NULL: not at all, machines ask for it */
} console_types[] = {
    { "GET", "health", NULL },
    { "GET", "metrics", NULL },
    { "GET", "export", "console.export" },
    { "POST", "sandboxes/{id}/verify", "console.verify" },
    { "DELETE", "sandboxes/{id}/locks/{lock}", "console.lock_break" },
    { "POST", "sandboxes/{id}/leases", "console.lease" },
    { "PATCH", "sandboxes/{id}/leases/{lease}", "console.lease" },
    { "DELETE", "sandboxes/{id}/leases/{lease}", "console.lease" },
    { "POST", "tokens", "console.token_add" },
    { "DELETE", "tokens/{id}", "console.token_revoke" },
    { "DELETE", "*", "console.delete" },
    { "GET", "*", "console.read" },
    { "*", "*", "console.change" }
};

struct console_s {
    int                wake_fd;
    uint64_t           instance;

    pthread_mutex_t    lock;
    sb_uuid7_t         ids;
    console_frame_t   *first, **last;
    size_t             bytes;

    /* of the thread that takes questions */
    uint64_t           minute;
    uint64_t           views[CONSOLE_VIEWS];    /* 0: free */
    unsigned           nviews;
};


console_t *
console_new(int wake_fd)
{
    console_t  *c;

    c = calloc(1, sizeof(console_t));

    if (c) {
        c->wake_fd = wake_fd;
        c->last = &c->first;
        sb_random(&c->instance, sizeof(c->instance));
        c->instance |= 1;
        pthread_mutex_init(&c->lock, NULL);
    }

    return c;
}


void
console_free(console_t *c)
{
    console_frame_t  *f;

    if (c == NULL) {
        return;
    }

    while ((f = c->first) != NULL) {
        c->first = f->next;
        free(f);
    }

    pthread_mutex_destroy(&c->lock);
    free(c);
}


uint64_t
console_instance(const console_t *c)
{
    return c->instance;
}


console_frame_t *
console_take(console_t *c)
{
    console_frame_t  *f;

    pthread_mutex_lock(&c->lock);
    f = c->first;
    c->first = NULL;
    c->last = &c->first;
    c->bytes = 0;
    pthread_mutex_unlock(&c->lock);

    return f;
}


bool
console_keep(console_t *c, const void *frame, size_t len, uint64_t conn,
    uint64_t seq)
{
    bool              ok;
    uint64_t          one;
    console_frame_t  *f;

    f = len ? malloc(sizeof(console_frame_t) + len) : NULL;

    if (f == NULL) {
        return false;
    }

    f->next = NULL;
    f->conn = conn;
    f->seq = seq;
    f->len = len;
    memcpy(f->frame, frame, len);

    pthread_mutex_lock(&c->lock);

    ok = c->bytes + len <= CONSOLE_QUEUE;

    if (ok) {
        *c->last = f;
        c->last = &f->next;
        c->bytes += len;
    }

    pthread_mutex_unlock(&c->lock);

    if (!ok) {
        stats_add(STATS_CONSOLE_REFUSED, 1);
        free(f);
        return false;
    }

    one = 1;

    if (write(c->wake_fd, &one, sizeof(one)) == -1) {
        /* the counter is full: the reader is awake anyway */
    }

    return true;
}


static const char *
console_type(const ask_route_t *r)
{
    size_t  i;

    for (i = 0; /* void */ ; i++) {
        if ((console_types[i].method[0] == '*'
             || strcmp(console_types[i].method, r->method) == 0)
            && (console_types[i].path[0] == '*'
                || strcmp(console_types[i].path, r->path) == 0))
        {
            return console_types[i].type;
        }
    }
}


static uint64_t
console_hash(uint64_t h, sb_str_t v)
{
    size_t  i;

    for (i = 0; i < v.len; i++) {
        h = (h ^ (unsigned char) v.data[i]) * 0x100000001b3u;
    }

    return (h ^ 0xff) * 0x100000001b3u;
}


/* Is it the first of its user, view and minute? */
static bool
console_first(console_t *c, const ask_question_t *q, const ask_route_t *r,
    uint64_t now_us)
{
    size_t    i;
    uint64_t  h;

    if (c->minute != now_us / 60000000) {
        c->minute = now_us / 60000000;
        c->nviews = 0;
        memset(c->views, 0, sizeof(c->views));
    }

    h = console_hash(0xcbf29ce484222325u, q->actor_type);
    h = console_hash(h, q->actor_id);
    h = console_hash(h, q->identity);
    h = console_hash(h, q->sandbox);
    h = console_hash(h, sb_str(r->path, strlen(r->path))) | 1;

    for (i = h % CONSOLE_VIEWS; c->views[i]; i = (i + 1) % CONSOLE_VIEWS) {
        if (c->views[i] == h) {
            return false;
        }
    }

    /* a full table tells none apart any more: each is recorded */

    if (c->nviews < CONSOLE_VIEWS / 2) {
        c->views[i] = h;
        c->nviews++;
    }

    return true;
}


static size_t
console_frame_begin(console_t *c, ask_question_t *q, const ask_route_t *r,
    const char *type, void *mem, size_t size, uint64_t now_us)
{
    sb_out_t           json = { .buf.max = 64 * 1024 };
    sb_frame_writer_t  w;

    pthread_mutex_lock(&c->lock);
    sb_uuid7(&c->ids, now_us, q->in->op);
    pthread_mutex_unlock(&c->lock);

    /* keys in their canonical order */
    sb_out_text(&json, "{");

    if (strcmp(type, "console.read") != 0) {
        sb_out_key(&json, "query");
        sb_out_str(&json, q->query);
    }

    if (q->sandbox.len) {
        sb_out_key(&json, "sandbox_id");
        sb_out_str(&json, q->sandbox);
    }

    sb_out_key(&json, "view");
    sb_out_str(&json, sb_str(r->path, strlen(r->path)));
    sb_out_text(&json, "}");

    sb_frame_begin(&w, mem, size, SB_F_BEGIN, 0, 0, q->in->op, now_us);
    sb_frame_put(&w, SB_T_TYPE, sb_str(type, strlen(type)));
    sb_frame_put(&w, SB_T_RECORD, sb_lit("strict"));
    sb_frame_put(&w, SB_T_SOURCE, sb_lit("console"));
    sb_frame_put(&w, SB_T_METHOD, q->method);
    sb_frame_put(&w, SB_T_PATH, q->path);

    if (q->actor_type.len) {
        sb_frame_put(&w, SB_T_ACTOR_TYPE, q->actor_type);
    }

    if (q->actor_id.len) {
        sb_frame_put(&w, SB_T_ACTOR_ID, q->actor_id);
    }

    if (q->identity.len) {
        sb_frame_put(&w, SB_T_IDENTITY, q->identity);
    }

    if (json.rc == SB_OK) {
        sb_frame_put(&w, SB_T_REQUEST, sb_str(json.buf.data, json.buf.len));
    }

    sb_buf_free(&json.buf);

    return sb_frame_end(&w);
}


static size_t
console_frame_end(ask_question_t *q, const char *status, unsigned http,
    const char *reason, void *mem, size_t size, uint64_t now_us)
{
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, size, SB_F_END, 0, 0, q->in->op, now_us);
    sb_frame_put(&w, SB_T_STATUS, sb_str(status, strlen(status)));

    if (http) {
        sb_frame_put_u64(&w, SB_T_HTTP_STATUS, http);
    }

    if (reason) {
        sb_frame_put(&w, SB_T_REASON, sb_str(reason, strlen(reason)));
    }

    sb_frame_put_u64(&w, SB_T_DURATION_US, now_us > q->in->began_us
                                           ? now_us - q->in->began_us : 0);

    if (q->result.len) {
        sb_frame_put(&w, SB_T_RESULT, sb_str(q->result.data, q->result.len));
    }

    return sb_frame_end(&w);
}


bool
console_begin(console_t *c, ask_question_t *q, const ask_route_t *r)
{
    bool         ok, read;
    char        *mem;
    size_t       n, size;
    uint64_t     now_us;
    const char  *type;

    type = console_type(r);
    now_us = sb_now_us();
    read = type && strcmp(type, "console.read") == 0;

    if (type == NULL || (read && !console_first(c, q, r, now_us))) {
        return true;
    }

    q->in->began_us = now_us;

    size = 2048 + 2 * q->path.len + 8 * q->query.len + 8 * q->sandbox.len
           + q->actor_type.len + q->actor_id.len + q->identity.len;
    mem = malloc(size);
    ok = false;

    if (mem) {
        n = console_frame_begin(c, q, r, type, mem, size, now_us);
        ok = console_keep(c, mem, n, q->in->conn, read ? 0 : q->in->seq);

        if (ok && read) {
            n = console_frame_end(q, "succeeded", 0, NULL, mem, size, now_us);
            (void) console_keep(c, mem, n, 0, 0);
        }
    }

    free(mem);
    q->in->recorded = ok && !read;

    if (!ok && read) {
        log_minutely(LOG_ERROR, "no room to record a %s of the console", type);
        return true;
    }

    return ok;
}


void
console_end(console_t *c, ask_question_t *q, unsigned status, bool whole)
{
    char        *mem;
    size_t       n, size;

    if (!q->in->recorded) {
        return;
    }

    q->in->recorded = false;
    size = 1024 + q->result.len;
    mem = malloc(size);
    n = 0;

    if (mem) {
        n = console_frame_end(q, !whole ? "cancelled"
                                 : status < 400 ? "succeeded" : "failed",
                              status, whole ? NULL : "cut", mem, size,
                              sb_now_us());
    }

    if (!console_keep(c, mem, n, 0, 0)) {
        /* after the next start it is ended as of unknown end */
        log_minutely(LOG_ERROR, "no room to record the end of a question, "
                     "answered with %u", status);
    }

    free(mem);
}
