/* Archives that workers ask about, each on a connection of its own: when that is
 * lost, nobody waits any more. */

#include "server_int.h"

#include "id.h"


static const uint8_t  server_no_op[16];


static void
server_tell(server_t *s, conn_t *c, uint64_t seq, const char *reason,
    const sb_inspect_t *in)
{
    char               mem[SB_IN_ANSWER];
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_INSPECTED, 0, seq, server_no_op,
                   sb_now_us());

    if (reason) {
        sb_frame_put_u64(&w, SB_T_CODE, 1);
        sb_frame_put(&w, SB_T_REASON, sb_str(reason, strlen(reason)));

    } else {
        sb_inspect_put(&w, in);
    }

    server_send(s, c, mem, sb_frame_end(&w));
}


const char *
server_inspect(server_t *s, conn_t *c, const sb_frame_t *f, const char *raw)
{
    int          fd;
    const char  *why;

    if (c->inst) {
        return "an archive on a connection that has another use";
    }

    if (c->passed == -1) {
        return "an archive without a descriptor";
    }

    if (f->length > SB_IN_FRAME) {
        return "a question that is too long";
    }

    c->inspects = true;
    fd = c->passed;
    c->passed = -1;

    why = inspector_ask(s->conf->inspector, raw, f->length, fd, c->id, f->seq);

    if (why) {
        server_tell(s, c, f->seq, why, NULL);
    }

    return NULL;
}


void
server_inspected(server_t *s)
{
    conn_t              *c;
    inspector_answer_t   a;

    while (inspector_take(s->conf->inspector, &a)) {

        for (c = s->conns; c; c = c->next) {
            if (c->id == a.conn && !c->dead) {
                server_tell(s, c, a.seq, a.reason, &a.in);
                break;
            }
        }
    }
}
