/* What other threads have ready, for those who have asked. */

#include "server_int.h"

#include "id.h"
#include "log.h"

#include <stdlib.h>


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

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_FETCHED, 0, seq, NULL,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_HTTP_STATUS, status);

    if (reason.len) {
        sb_frame_put(&w, SB_T_REASON, reason);
    }

    sb_frame_put(&w, SB_T_DATA, body);
    n = sb_frame_end(&w);
    server_send(s, c, mem, n);
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


void
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
                       part == text.len ? SB_FF_LAST : 0, seq, NULL,
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


void
server_answered(server_t *s)
{
    conn_t       *c;
    ask_piece_t  *p, *next;

    /* what a question has put on record, or let go of, is there before its
     * answer leaves */
    server_tales(s);
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
