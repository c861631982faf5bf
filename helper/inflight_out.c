/* The frames that come out of the table of what is open. */

#include "inflight_int.h"


static const char *
inflight_outcome(inflight_op_t *op, const char **reason)
{
    if (op->interrupted && !(op->has_exit && op->exit_code == 0)) {
        *reason = "interrupted";
        return "cancelled";
    }

    *reason = op->reason;

    if (op->has_exit) {
        return op->exit_code == 0 ? "succeeded" : "failed";
    }

    return "unknown";
}


/* Writes the END of an operation that nobody else will send. */
static size_t
inflight_write_end(inflight_op_t *op, uint64_t now_us, const char *status,
    const char *reason, sb_buf_t *out)
{
    char               mem[4096];
    size_t             n;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_END, 0, 0, op->id, now_us);

    if (op->sandbox) {
        sb_frame_put(&w, SB_T_SANDBOX, sb_str(op->sandbox,
                                              strlen(op->sandbox)));
    }

    if (op->command) {
        sb_frame_put(&w, SB_T_COMMAND_ID, sb_str(op->command,
                                                 strlen(op->command)));
    }

    sb_frame_put(&w, SB_T_STATUS, sb_str(status, strlen(status)));

    if (reason) {
        sb_frame_put(&w, SB_T_REASON, sb_str(reason, strlen(reason)));
    }

    if (op->has_exit) {
        sb_frame_put_u64(&w, SB_T_EXIT_CODE, (uint64_t) op->exit_code);
    }

    if (op->took_us) {
        sb_frame_put_u64(&w, SB_T_DURATION_US, op->took_us);

    } else if (now_us > op->begun_us) {
        sb_frame_put_u64(&w, SB_T_DURATION_US, now_us - op->begun_us);
    }

    n = sb_frame_end(&w);

    if (n == 0 || sb_buf_add(out, mem, n) != SB_OK) {
        return 0;
    }

    return 1;
}


size_t
inflight_due(inflight_t *t, uint64_t now_us, sb_buf_t *out)
{
    size_t            n, over;
    uint64_t          limit;
    const char       *status, *reason;
    inflight_op_t    *op;
    inflight_inst_t  *i;

    n = 0;

    if (t->ngone) {
        for (i = t->first; i; i = i->next) {

            if (i->gone_us == 0) {
                continue;
            }

            if (now_us < i->gone_us) {
                /* the clock was set back: it has that long from now */
                i->gone_us = now_us;
            }

            limit = i->restarted ? INFLIGHT_RESTART_US : INFLIGHT_BACK_US;

            if (now_us < i->gone_us + limit) {
                continue;
            }

            reason = i->restarted ? "gateway_restarted" : "worker_died";

            for (op = i->ops; op; op = op->next) {
                n += inflight_write_end(op, now_us, "unknown", reason, out);
            }
        }
    }

    over = t->ndetached > INFLIGHT_DETACHED
           ? t->ndetached - INFLIGHT_DETACHED : 0;

    for (op = t->detached; op; op = op->next) {

        if (op->ended) {
            over -= over != 0;
            status = inflight_outcome(op, &reason);
            n += inflight_write_end(op, now_us, status, reason, out);

        } else if (over || now_us >= op->since_us + t->follow_us) {
            over -= over != 0;
            n += inflight_write_end(op, now_us, "unknown", "follow_expired",
                                    out);

        } else if (t->nended == 0) {
            /* oldest first: the rest is younger */
            break;
        }
    }

    return n;
}


typedef struct {
    sb_buf_t  *out;
    size_t     n;
    uint64_t   now_us;
} inflight_state_t;


static void
inflight_state_op(void *entry, void *data)
{
    char                mem[4096];
    size_t              n;
    inflight_op_t      *op = entry;
    inflight_state_t   *s = data;
    sb_frame_writer_t   w;

    sb_frame_begin(&w, mem, sizeof(mem), JOURNAL_F_STATE_OPERATION, 0, 0,
                   op->id, op->begun_us);

    sb_frame_put_u64(&w, SB_T_INSTANCE, op->inst ? op->inst->id : 0);

    if (op->interrupts) {
        sb_frame_put(&w, SB_T_TYPE, sb_lit("command.interrupt"));

    } else if (op->deletes) {
        sb_frame_put(&w, SB_T_TYPE, sb_lit("sandbox.delete"));
    }

    if (op->sandbox) {
        sb_frame_put(&w, SB_T_SANDBOX, sb_str(op->sandbox,
                                              strlen(op->sandbox)));
    }

    if (op->command) {
        sb_frame_put(&w, SB_T_COMMAND_ID, sb_str(op->command,
                                                 strlen(op->command)));
    }

    if (op->inst == NULL) {
        sb_frame_put(&w, SB_T_DETACHED, sb_str("", 0));
        sb_frame_put_u64(&w, SB_T_TIME, op->since_us);
    }

    n = sb_frame_end(&w);

    if (n && sb_buf_add(s->out, mem, n) == SB_OK) {
        s->n++;
    }
}


size_t
inflight_state(inflight_t *t, uint64_t now_us, sb_buf_t *out)
{
    char               mem[128];
    size_t             n;
    inflight_inst_t   *i;
    inflight_state_t   s;
    sb_frame_writer_t  w;

    static const uint8_t  none[16];

    s.out = out;
    s.n = 0;
    s.now_us = now_us;

    for (i = t->first; i; i = i->next) {
        sb_frame_begin(&w, mem, sizeof(mem), JOURNAL_F_STATE_INSTANCE, 0, 0,
                       none, now_us);
        sb_frame_put_u64(&w, SB_T_INSTANCE, i->id);
        sb_frame_put_u64(&w, SB_T_LAST_SEQ, i->last_seq);
        n = sb_frame_end(&w);

        if (n && sb_buf_add(out, mem, n) == SB_OK) {
            s.n++;
        }
    }

    table_each(&t->ops, inflight_state_op, &s);

    return s.n;
}
