/* What goes into the journal, and the answers that it is there. */

#include "server_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <stdlib.h>


/* Rounds before we stop, of up to SERVER_ROUND frames; what is left then was not
 * acknowledged, and is sent again to the next helper. */
#define SERVER_LAST  64u

/* Writing works again when it did for that long: a disk that is nearly full
 * takes a small record now and then. */
#define SERVER_CALM_US  1000000u

/* Frames that nobody waits for are answered together, when there are so many. */
#define SERVER_LAZY  256


static void
server_ack(server_t *s, conn_t *c, uint64_t seq, int error)
{
    char               mem[256];
    size_t             n;
    const char        *why;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_ACK, 0, seq, NULL,
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


/* Whose frame cannot be written: a lease that is new was told to nobody, and
 * nobody could end it. */
static void
server_lease_back(server_t *s, const sb_frame_t *f)
{
    sb_str_t  key, sandbox;

    if (f->type == SB_F_LEASE
        && (sb_field_get(f, SB_T_LOCK_WRITE, &key)
            || sb_field_get(f, SB_T_LOCK_READ, &key))
        && sb_field_get(f, SB_T_SANDBOX, &sandbox))
    {
        (void) locks_lease_end(s->conf->locks, f->op, sandbox);
    }
}


void
server_console(server_t *s)
{
    bool              whole;
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

        whole = sb_frame_read(&t, f->frame, f->len, &need) == SB_OK;

        if (whole && server_write(s, &item, 1) == 0)
        {
            inflight_note(s->conf->inflight, item.instance, &t);
            apply_wake(s->conf->apply);
            live_wake(s->conf->live);

        } else if (f->seq) {
            server_forbid(s, f);

            if (whole) {
                server_lease_back(s, &t);
            }
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
