/* What workers send: each frame to where it belongs. */

#include "server_int.h"

#include "id.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>


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

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_WELCOME, 0, 0, NULL,
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
