#include "server_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>


/* Rounds before we stop, of up to SERVER_ROUND frames; what is left then was not
 * acknowledged, and is sent again to the next helper. */
#define SERVER_LAST  64u

/* Writing works again when it did for that long: a disk that is nearly full
 * takes a small record now and then. */
#define SERVER_CALM_US  1000000u

/* Frames that nobody waits for are answered together, when there are so many. */
#define SERVER_LAZY  256

/* Whose questions our own are; connections are numbered from 1. */
#define SERVER_ASKER  0

static const uint8_t  server_no_op[16];


static void
server_ack(server_t *s, conn_t *c, uint64_t seq, int error)
{
    char               mem[256];
    size_t             n;
    const char        *why;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_ACK, 0, seq, server_no_op,
                   sb_now_us());

    if (error) {
        why = error == EDQUOT ? "the journal is full: history files cannot be "
                                "written" : strerror(error);
        sb_frame_put_u64(&w, SB_T_CODE, (uint64_t) error);
        sb_frame_put(&w, SB_T_REASON, sb_str(why, strlen(why)));
    }

    n = sb_frame_end(&w);
    server_send(s, c, mem, n);
}


static void
server_protocol_error(conn_t *c, const char *what)
{
    log_minutely(LOG_ERROR, "a worker does not speak our protocol (%s), its "
                 "connection is closed", what);
    c->dead = true;
    c->more = false;
    c->in_used = c->in_len;
}


static void
server_hello(server_t *s, conn_t *c, const sb_frame_t *f)
{
    char               mem[256], *full;
    size_t             n;
    conn_t            *other;
    uint64_t           instance;
    sb_str_t           role;
    sb_frame_writer_t  w;

    instance = sb_field_u64(f, SB_T_INSTANCE, 0);

    if (c->inst || c->inspects || instance == 0
        || !sb_field_get(f, SB_T_ROLE, &role)
        || (!sb_eq(role, sb_lit("control")) && !sb_eq(role, sb_lit("bulk"))
            && !sb_eq(role, sb_lit("cli"))))
    {
        server_protocol_error(c, "bad HELLO");
        return;
    }

    c->instance = instance;
    c->cli = sb_eq(role, sb_lit("cli"));
    c->bulk = c->cli || sb_eq(role, sb_lit("bulk"));

    if (c->cli && c->uid != 0 && c->uid != s->conf->uid) {
        server_protocol_error(c, "an errand of another user");
        return;
    }
    c->out.max = c->bulk ? CONN_BULK_MAX : CONN_OUT_MAX;

    /* what its old connection sent in this very round counts */
    server_append(s);

    for (other = s->conns; other; other = other->next) {
        if (other != c && other->inst && other->instance == c->instance
            && other->bulk == c->bulk)
        {
            /* the worker came back before we saw it leave */
            other->dead = true;
            other->more = false;
            other->in_used = other->in_len;
        }
    }

    c->inst = inflight_instance(s->conf->inflight, c->instance);

    if (c->inst == NULL) {
        c->dead = true;
        return;
    }

    inflight_connected(s->conf->inflight, c->inst);

    if (!c->bulk) {
        server_locks_open(s, c);
    }

    c->seq = inflight_last_seq(c->inst);

    /* LAST_SEQ is an answer, too: what was written before our own start, or
     * for its old connection, may not be on the disk yet */

    if (!c->bulk && s->conf->journal && s->conf->flush_fd != -1
        && journal_sync(s->conf->journal) != 0)
    {
        c->dead = true;
        return;
    }

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_WELCOME, 0, 0, server_no_op,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_LAST_SEQ, c->seq);
    sb_frame_put(&w, SB_T_MODE, s->conf->journal ? sb_lit("provider")
                                                 : sb_lit("none"));
    n = sb_frame_end(&w);
    server_send(s, c, mem, n);

    if (!c->bulk) {
        full = full_frame(s->conf->full, false, &n);

        if (full) {
            server_send(s, c, full, n);
            free(full);
        }
    }
}


void
server_full(server_t *s)
{
    char    *full;
    size_t   n;
    conn_t  *c;

    full = full_frame(s->conf->full, true, &n);

    if (full == NULL) {
        log_line(LOG_ERROR, "no memory to tell which histories are full");
        return;
    }

    for (c = s->conns; c; c = c->next) {
        if (c->inst && !c->bulk) {
            server_send(s, c, full, n);
        }
    }

    free(full);
}


void
server_answer_fetch(server_t *s, conn_t *c, uint64_t seq, unsigned status,
    sb_str_t body, sb_str_t reason)
{
    char               mem[FETCH_BODY_MAX + 512];
    size_t             n;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_FETCHED, 0, seq, server_no_op,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_HTTP_STATUS, status);

    if (reason.len) {
        sb_frame_put(&w, SB_T_REASON, reason);
    }

    sb_frame_put(&w, SB_T_DATA, body);
    n = sb_frame_end(&w);
    server_send(s, c, mem, n);
}


static void
server_fetch(server_t *s, conn_t *c, const sb_frame_t *f)
{
    sb_rc_t   rc;
    sb_str_t  target, reason;

    if (sb_field_get(f, SB_T_FILE_PATH, &target)) {
        server_before(s, c, f);
        return;
    }

    if (s->conf->fetch == NULL) {
        reason = sb_lit("no --upstream was given to the helper");

    } else if (!sb_field_get(f, SB_T_TARGET, &target)) {
        reason = sb_lit("no target");

    } else {
        rc = fetch_ask(s->conf->fetch, target, c->id, f->seq);

        if (rc == SB_OK) {
            return;
        }

        reason = rc == SB_LIMIT ? sb_lit("too many requests wait already")
                                : sb_lit("not a target");
    }

    server_answer_fetch(s, c, f->seq, 0, sb_str("", 0), reason);
}


void
server_fetched(server_t *s)
{
    conn_t          *c;
    sb_str_t         text;
    fetch_answer_t   a;

    while (s->conf->fetch && fetch_take(s->conf->fetch, &a)) {

        if (a.conn == SERVER_ASKER) {
            inflight_told(s->conf->inflight, a.seq, a.status,
                          sb_str(a.body.data ? a.body.data : "", a.body.len));
        }

        for (c = s->conns; c; c = c->next) {
            if (c->id == a.conn && !c->dead) {
                text = sb_str(a.body.data ? a.body.data : "", a.body.len);

                if (a.status) {
                    server_answer_fetch(s, c, a.seq, a.status, text,
                                        sb_str("", 0));
                } else {
                    server_answer_fetch(s, c, a.seq, 0, sb_str("", 0), text);
                }
            }
        }

        sb_buf_free(&a.body);
    }
}


static void
server_errand_answer(server_t *s, conn_t *c, uint64_t seq, unsigned status,
    sb_str_t text)
{
    char               mem[SB_ASK_PIECE + 256];
    bool               first;
    size_t             n, part;
    sb_frame_writer_t  w;

    first = true;

    do {
        part = text.len < SB_ASK_PIECE ? text.len : SB_ASK_PIECE;

        sb_frame_begin(&w, mem, sizeof(mem), SB_F_ANSWER,
                       part == text.len ? SB_FF_LAST : 0, seq, server_no_op,
                       sb_now_us());

        if (first) {
            sb_frame_put_u64(&w, SB_T_HTTP_STATUS, status);
        }

        sb_frame_put(&w, SB_T_DATA, sb_str(text.data, part));
        n = sb_frame_end(&w);
        server_send(s, c, mem, n);

        first = false;
        text.data += part;
        text.len -= part;
    } while (text.len);
}


static void
server_errand(server_t *s, conn_t *c, const sb_frame_t *f)
{
    sb_str_t  body;

    if (f->type != SB_F_ASK || !sb_field_get(f, SB_T_DATA, &body)) {
        server_protocol_error(c, "bad errand");
        return;
    }

    if (s->conf->errands == NULL
        || !errands_put(s->conf->errands, c->id, f->seq, body))
    {
        server_errand_answer(s, c, f->seq, 503,
                             sb_lit("OperationalError\nthe helper has no time "
                                    "for that now, try again shortly"));
        return;
    }

    apply_wake(s->conf->apply);
}


void
server_errands(server_t *s)
{
    conn_t    *c;
    errand_t  *e, *next;

    if (s->conf->errands == NULL) {
        return;
    }

    for (e = errands_take(s->conf->errands); e; e = next) {
        next = e->next;

        for (c = s->conns; c; c = c->next) {
            if (c->id == e->conn) {
                server_errand_answer(s, c, e->seq, e->ok ? 200 : 400,
                                     sb_str(e->out.data, e->out.len));
            }
        }

        errand_free(e);
    }
}


static void
server_ask_frame(server_t *s, conn_t *c, const sb_frame_t *f)
{
    char     mem[1024];
    size_t   n;
    sb_rc_t  rc;

    if (c->inst == NULL || !c->bulk) {
        server_protocol_error(c, "a question outside a bulk connection");
        return;
    }

    if (c->cli) {
        server_errand(s, c, f);
        return;
    }

    if (f->type == SB_F_CREDIT) {
        ask_credit(s->conf->ask, c->id, f);
        return;
    }

    if (f->type == SB_F_CANCEL) {
        ask_cancel(s->conf->ask, c->id, f);
        return;
    }

    rc = ask_put(s->conf->ask, c->id, c->uid, f);

    if (rc == SB_ERROR) {
        server_protocol_error(c, "bad ASK");

    } else if (rc != SB_OK) {
        n = ask_refusal(mem, sizeof(mem), f->seq, 503, "GATEWAY_OVERLOADED",
                        "The helper has too many questions open; try again "
                        "shortly.", NULL);
        server_send(s, c, mem, n);
    }
}


void
server_answered(server_t *s)
{
    conn_t       *c;
    ask_piece_t  *p, *next;

    /* what a question has put on record is there before its answer leaves */
    server_console(s);

    for (p = ask_take(s->conf->ask); p; p = next) {
        next = p->next;

        for (c = s->conns; c; c = c->next) {
            if (c->id == p->conn) {
                /* many go out together */
                if (!c->dead && (!conn_queue(c, p->frame, p->len)
                                 || (c->out.len - c->out_sent > CONN_OUT_KEEP
                                     && !conn_flush(c))))
                {
                    c->dead = true;
                }

                break;
            }
        }

        free(p);
    }

    for (c = s->conns; c; c = c->next) {
        if (!c->dead && conn_blocked(c) && !conn_flush(c)) {
            c->dead = true;
        }
    }
}


/* Is a numbered frame the next one?  Else it is answered, or its connection is
 * closed. */
static bool
server_next(conn_t *c, const sb_frame_t *f)
{
    if (c->inst == NULL || c->bulk || f->seq == 0) {
        server_protocol_error(c, "a record outside a control connection");
        return false;
    }

    if (f->seq <= c->seq) {
        /* sent again after a reconnect; answer, so that it is let go */
        c->answer = true;
        c->urgent = true;
        return false;
    }

    if (c->hole && f->seq != c->seq + 1) {
        /* behind a frame that could not be kept: one ACK speaks of all up to
         * it, so nothing counts before that one has come again */
        c->refused = f->seq;
        return false;
    }

    c->hole = false;

    return true;
}


/* A frame about keys: in order with the others, and not in the journal. */
static void
server_about_keys(server_t *s, conn_t *c, const sb_frame_t *f)
{
    if (!server_next(c, f)) {
        return;
    }

    c->seq = f->seq;
    c->answer = true;
    c->urgent = c->urgent || (f->flags & SB_FF_STRICT);
    c->unanswered++;

    if (f->type == SB_F_KEYS) {
        server_keys(s, c, f);

    } else {
        locks_end(s->conf->locks, f->op, false);
    }
}


/* Its command goes on, with its keys: they are in the journal before its END, so
 * that a restart does not give them away. */
static void
server_keep_keys(server_t *s, const sb_frame_t *f)
{
    char            *mem;
    journal_item_t   item;

    mem = malloc(LOCKS_FRAME);
    if (mem == NULL) {
        return;
    }

    item.instance = 0;
    item.frame = mem;
    item.len = locks_kept_frame(s->conf->locks, f->op, mem);

    if (item.len) {
        (void) server_write(s, &item, 1);
    }

    free(mem);
}


/* A frame to be kept; false: no room in this round. */
static bool
server_keep(server_t *s, conn_t *c, const sb_frame_t *f, const char *raw)
{
    bool             detached;
    sb_str_t         v;
    journal_item_t  *items;

    if (!server_next(c, f)) {
        return true;
    }

    if (s->conf->journal == NULL) {
        if (f->type == SB_F_END) {
            locks_end(s->conf->locks, f->op, false);
        }

        c->seq = f->seq;
        c->answer = true;
        return true;
    }

    if (s->items == NULL) {
        items = malloc(SERVER_ROUND
                       * (sizeof(journal_item_t) + sizeof(server_from_t)));
        if (items == NULL) {
            return false;
        }

        s->items = items;
        s->from = (server_from_t *) (void *) (items + SERVER_ROUND);
    }

    if (s->nitems == SERVER_ROUND) {
        return false;
    }

    s->items[s->nitems].instance = c->instance;
    s->items[s->nitems].frame = raw;
    s->items[s->nitems].len = f->length;
    s->from[s->nitems].conn = c;
    s->from[s->nitems].frame = *f;
    s->nitems++;

    if (f->type == SB_F_END) {
        /* others go on, whether it can be written or not */
        detached = sb_field_get(f, SB_T_DETACHED, &v);

        if (detached) {
            server_keep_keys(s, f);
        }

        locks_end(s->conf->locks, f->op, detached);
    }

    c->seq = f->seq;
    c->answer = true;
    c->batch = true;
    c->urgent = c->urgent || (f->flags & SB_FF_STRICT);
    c->unanswered++;

    return true;
}


void
server_frames(server_t *s, conn_t *c)
{
    size_t       need;
    sb_rc_t      rc;
    sb_frame_t   f;
    const char  *why;

    c->more = false;

    while (c->in_used < c->in_len) {

        rc = sb_frame_read(&f, c->in + c->in_used, c->in_len - c->in_used,
                           &need);

        if (rc == SB_AGAIN) {
            /* room for all of it, behind what is still in the buffer: that
             * moves to the front after this round */
            if (c->in_used == 0 && !conn_room(c, need)) {
                server_protocol_error(c, "no memory for a frame");
            }

            return;
        }

        if (rc != SB_OK) {
            server_protocol_error(c, "bad frame");
            return;
        }

        switch (f.type) {

        case SB_F_HELLO:
            server_hello(s, c, &f);
            break;

        case SB_F_FETCH:
            if (c->inst == NULL) {
                server_protocol_error(c, "FETCH before HELLO");

            } else {
                server_fetch(s, c, &f);
            }

            break;

        case SB_F_INSPECT:
            why = server_inspect(s, c, &f, c->in + c->in_used);

            if (why) {
                server_protocol_error(c, why);
            }

            break;

        case SB_F_ASK:
        case SB_F_CREDIT:
        case SB_F_CANCEL:
            server_ask_frame(s, c, &f);
            break;

        case SB_F_KEYS:
        case SB_F_RELEASE:
            server_about_keys(s, c, &f);
            break;

        case SB_F_BEGIN:
        case SB_F_FACTS:
        case SB_F_OUTPUT:
        case SB_F_CONTENT:
        case SB_F_END:
        case SB_F_GAP:
        case SB_F_SEEN:
            if (!server_keep(s, c, &f, c->in + c->in_used)) {
                c->more = true;
                return;
            }

            break;

        default:
            server_protocol_error(c, "frame of unknown type");
        }

        if (c->in_used == c->in_len) {
            return;     /* closed by an error, too */
        }

        c->in_used += f.length;
    }
}


/* A new segment begins with what is open, so that older ones can go. */
static int
server_roll(server_t *s)
{
    int               rc;
    size_t            n, i, pos, need;
    sb_buf_t          buf;
    sb_frame_t        f;
    journal_item_t   *items;

    rc = journal_roll(s->conf->journal);
    if (rc != 0) {
        return rc;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = SERVER_ENDS_MAX;

    n = inflight_state(s->conf->inflight, sb_now_us(), &buf);
    n += locks_state(s->conf->locks, &buf);
    items = n ? malloc(n * sizeof(journal_item_t)) : NULL;

    if (items) {
        for (i = 0, pos = 0; i < n; i++, pos += f.length) {
            if (sb_frame_read(&f, buf.data + pos, buf.len - pos, &need)
                != SB_OK)
            {
                break;
            }

            items[i].instance = 0;
            items[i].frame = buf.data + pos;
            items[i].len = f.length;
        }

        rc = journal_append(s->conf->journal, items, i);
    }

    free(items);
    sb_buf_free(&buf);

    return rc;
}


int
server_write(server_t *s, const journal_item_t *items, size_t n)
{
    int  rc;

    rc = journal_full(s->conf->journal) ? server_roll(s) : 0;

    if (rc == 0) {
        rc = journal_append(s->conf->journal, items, n);
    }

    if (rc != 0) {
        log_minutely(LOG_ERROR, "cannot write the journal: %s; records are "
                     "refused until it works again",
                     rc == EDQUOT ? "too much of it is not applied yet"
                                  : strerror(rc));
        s->error_us = sb_now_us();
        stats_add(STATS_JOURNAL_REFUSED, n);

    } else if (s->error_us && sb_now_us() > s->error_us + SERVER_CALM_US) {
        log_line(LOG_INFO, "the journal can be written again");
        s->error_us = 0;
    }

    s->error = rc;
    stats_set(STATS_JOURNAL_FAILING, rc != 0);

    return rc;
}


static void
server_flush_kick(server_t *s)
{
    bool     any;
    conn_t  *c;

    any = false;

    for (c = s->conns; c; c = c->next) {
        if (c->next_seq) {
            c->sync_seq = c->next_seq;
            c->next_seq = 0;
            any = true;
        }
    }

    if (any) {
        s->flushing = true;
        flush_ask(s->flush);
    }
}


void
server_flushed(server_t *s)
{
    int      rc;
    conn_t  *c;

    if (s->flush == NULL || !flush_done(s->flush, &rc)) {
        return;
    }

    s->flushing = false;

    for (c = s->conns; c; c = c->next) {
        if (c->sync_seq) {
            server_ack(s, c, c->sync_seq, rc);
            c->sync_seq = 0;
        }
    }

    server_flush_kick(s);
}


void
server_append(server_t *s)
{
    int       rc, failed;
    bool      lazy, waiting;
    size_t    i;
    conn_t   *c;
    uint64_t  now;

    rc = 0;

    if (s->nitems) {
        rc = server_write(s, s->items, s->nitems);

        if (rc == 0) {
            for (i = 0; i < s->nitems; i++) {
                inflight_note(s->conf->inflight, s->from[i].conn->instance,
                              &s->from[i].frame);
            }

            apply_wake(s->conf->apply);
            live_wake(s->conf->live);
        }

        s->nitems = 0;
    }

    now = sb_now_us();
    lazy = !s->idle && (s->lazy_us == 0 || now < s->lazy_us + SERVER_LAZY_US);
    waiting = false;

    for (c = s->conns; c; c = c->next) {

        if (c->refused) {
            server_ack(s, c, c->refused, s->error ? s->error : EAGAIN);
            c->refused = 0;
        }

        failed = c->batch ? rc : 0;
        c->batch = false;

        if (!c->answer) {
            continue;
        }

        if (failed == 0 && !c->urgent && lazy && c->unanswered < SERVER_LAZY) {
            /* nobody waits: an ACK wakes a worker, one for many is enough */
            waiting = true;
            continue;
        }

        c->answer = false;
        c->urgent = false;
        c->unanswered = 0;

        if (failed != 0) {
            server_ack(s, c, c->seq, failed);
            /* nothing of it is kept: it has to come again */
            c->seq = inflight_last_seq(c->inst);
            c->hole = true;

        } else if (s->conf->flush_fd != -1 && s->flush) {
            c->next_seq = c->seq;

        } else {
            server_ack(s, c, c->seq, 0);
        }
    }

    s->lazy_us = !waiting ? 0 : lazy && s->lazy_us ? s->lazy_us : now;

    if (s->conf->flush_fd != -1 && s->flush && !s->flushing) {
        server_flush_kick(s);
    }
}


/* A question whose record cannot be written is not answered. */
static void
server_forbid(server_t *s, const console_frame_t *f)
{
    char     mem[1024];
    size_t   n;
    conn_t  *c;

    for (c = s->conns; c; c = c->next) {

        if (c->id == f->conn && !c->dead) {
            n = ask_refusal(mem, sizeof(mem), f->seq, 503,
                            "GATEWAY_RECORDER_UNAVAILABLE", "This must be on "
                            "record, and the journal cannot be written now; "
                            "try again shortly.", NULL);
            ask_forbid(s->conf->ask, f->conn, f->seq);
            server_send(s, c, mem, n);
            return;
        }
    }
}


void
server_console(server_t *s)
{
    size_t            need;
    sb_frame_t        t;
    journal_item_t    item;
    console_frame_t  *f, *next;

    if (s->conf->console == NULL) {
        return;
    }

    for (f = console_take(s->conf->console); f; f = next) {
        next = f->next;

        item.instance = console_instance(s->conf->console);
        item.frame = f->frame;
        item.len = f->len;

        if (sb_frame_read(&t, f->frame, f->len, &need) == SB_OK
            && server_write(s, &item, 1) == 0)
        {
            inflight_note(s->conf->inflight, item.instance, &t);
            apply_wake(s->conf->apply);
            live_wake(s->conf->live);

        } else if (f->seq) {
            server_forbid(s, f);
        }

        free(f);
    }
}


/* Commands that go on without their request: have they ended? */
static void
server_ask(server_t *s)
{
    sb_buf_t  target;
    uint64_t  question, now;

    memset(&target, 0, sizeof(target));
    target.max = 8192;
    now = sb_now_us();

    while ((question = inflight_ask(s->conf->inflight, now, &target))) {

        if (fetch_ask(s->conf->fetch, sb_str(target.data, target.len),
                      SERVER_ASKER, question)
            == SB_LIMIT)
        {
            /* those left have their turn at the next tick */
            break;
        }
    }

    sb_buf_free(&target);
}


void
server_ends(server_t *s)
{
    size_t           n, i, pos, need;
    sb_frame_t       f;
    journal_item_t   item;

    if (s->conf->journal == NULL || !inflight_waiting(s->conf->inflight)) {
        return;
    }

    if (s->conf->fetch) {
        server_ask(s);
    }

    s->ends.len = 0;
    n = inflight_due(s->conf->inflight, sb_now_us(), &s->ends);

    for (i = 0, pos = 0; i < n; i++, pos += f.length) {

        if (sb_frame_read(&f, s->ends.data + pos, s->ends.len - pos, &need)
            != SB_OK)
        {
            break;
        }

        item.instance = 0;
        item.frame = s->ends.data + pos;
        item.len = f.length;

        if (server_write(s, &item, 1) != 0) {
            break;      /* they are still due next time */
        }

        inflight_note(s->conf->inflight, 0, &f);
        locks_end(s->conf->locks, f.op, false);
    }

    if (i) {
        apply_wake(s->conf->apply);
        live_wake(s->conf->live);
        s->more = true;     /* others may have been let on */
    }
}


void
server_last(server_t *s)
{
    bool      more;
    conn_t   *c;
    unsigned  rounds;

    rounds = 0;

    /* no answer waits for others now */
    s->idle = true;

    do {
        more = false;
        s->nitems = 0;

        for (c = s->conns; c; c = c->next) {

            if (!c->dead && !conn_read(c)) {
                c->dead = true;
            }

            /* of who is gone, too: more than one round takes may have come */
            server_frames(s, c);
            more = more || c->in_used || c->more;
        }

        server_append(s);

        for (c = s->conns; c; c = c->next) {
            conn_consume(c);
        }

    } while (more && s->error == 0 && ++rounds < SERVER_LAST);

    if (more) {
        log_line(LOG_WARN, "stopping: workers send more than %u rounds take;"
                 " what is not acknowledged comes again", SERVER_LAST);
    }

    /* sync full: the answers that a flush is missing for */
    if (s->conf->journal && s->conf->flush_fd != -1
        && journal_sync(s->conf->journal) == 0)
    {
        for (c = s->conns; c; c = c->next) {
            if (c->sync_seq || c->next_seq) {
                server_ack(s, c, c->next_seq ? c->next_seq : c->sync_seq, 0);
            }
        }
    }
}
