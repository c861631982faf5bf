/* Files that are read before they are changed: the thread that appends puts
 * their contents into the journal, in front of the end of their operation. */

#include "server_int.h"

#include "id.h"
#include "stats.h"

#include <stdlib.h>


/* A worker has sent what it says of the operation before it asks, but on its
 * other connection, which may have its turn after this one. */
static size_t
server_before_begun(server_t *s, conn_t *c, const uint8_t op[16])
{
    size_t   own;
    conn_t  *other;

    /* what this round brought counts */
    server_append(s);
    own = inflight_frames(s->conf->inflight, op);

    for (other = s->conns; other && own == 0; other = other->next) {

        if (other != c && other->inst == c->inst && !other->bulk
            && !other->dead)
        {
            other->dead = !conn_read(other);
            server_frames(s, other);
            server_append(s);
            own = inflight_frames(s->conf->inflight, op);
        }
    }

    return own;
}


/* For the digest alone nothing has to be on record. */
static sb_rc_t
server_before_ask(server_t *s, conn_t *c, const sb_frame_t *f)
{
    size_t  own;

    if (sb_field_u64(f, SB_T_FILE_KIND, 0) == SB_CONTENT_CHECK) {
        return before_ask(s->conf->before, f, c->id, false);
    }

    own = s->conf->apply ? server_before_begun(s, c, f->op) : 0;

    return own ? before_ask(s->conf->before, f, c->id,
                            stats_lag_records() <= own)
               : SB_ERROR;
}


void
server_before(server_t *s, conn_t *c, const sb_frame_t *f)
{
    sb_rc_t   rc;
    unsigned  status;
    sb_str_t  reason;

    rc = server_before_ask(s, c, f);

    if (rc != SB_OK) {
        status = 0;
        reason = sb_lit("not a file that can be read");

        if (rc == SB_LIMIT) {
            reason = sb_lit("too many files are read already");
            status = sb_field_u64(f, SB_T_FILE_KIND, 0) == SB_CONTENT_CHECK
                     ? 503 : 0;
        }

        server_answer_fetch(s, c, f->seq, status, sb_str("", 0), reason);
    }
}


/* A content into the journal; false when that is not possible. */
static bool
server_before_keep(server_t *s, const before_answer_t *a)
{
    bool                ok;
    char               *mem;
    size_t              size, need;
    sb_frame_t          f;
    journal_item_t      item;
    sb_frame_writer_t   w;

    if (inflight_frames(s->conf->inflight, a->op) == 0) {
        /* it has ended meanwhile: its record is closed */
        return false;
    }

    size = a->body.len + 256;

    mem = malloc(size);
    if (mem == NULL) {
        return false;
    }

    sb_frame_begin(&w, mem, size, SB_F_CONTENT, 0, 0, a->op, sb_now_us());
    sb_frame_put_u64(&w, SB_T_FILE_N, a->n);
    sb_frame_put_u64(&w, SB_T_FILE_KIND,
                     a->status == 404 ? SB_CONTENT_ABSENT : a->kind);
    sb_frame_put_u64(&w, SB_T_FILE_OFFSET, 0);
    sb_frame_put(&w, SB_T_DATA, a->status == 404 || a->body.len == 0
                                ? sb_lit("")
                                : sb_str(a->body.data, a->body.len));

    item.instance = 0;
    item.frame = mem;
    item.len = sb_frame_end(&w);

    ok = sb_frame_read(&f, mem, item.len, &need) == SB_OK
         && server_write(s, &item, 1) == 0;

    if (ok) {
        inflight_note(s->conf->inflight, 0, &f);
        apply_wake(s->conf->apply);
    }

    free(mem);

    return ok;
}


void
server_before_read(server_t *s)
{
    conn_t           *c;
    sb_str_t          body;
    const char       *reason;
    before_answer_t   a;

    while (s->conf->before && before_take(s->conf->before, &a)) {

        body = sb_str("", 0);

        if (a.kind == SB_CONTENT_CHECK) {
            if (a.status == 200) {
                body = sb_str(a.digest, sizeof(a.digest));
            }

        } else if ((a.status == 200 || a.status == 404)
                   && !server_before_keep(s, &a))
        {
            a.status = 0;
            a.reason = "it could not be kept";
        }

        reason = a.reason ? a.reason : "";

        for (c = s->conns; c; c = c->next) {
            if (c->id == a.conn && !c->dead) {
                server_answer_fetch(s, c, a.seq, a.status, body,
                                    sb_str(reason, strlen(reason)));
                break;
            }
        }

        sb_buf_free(&a.body);
    }
}
