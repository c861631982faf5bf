/* sandboxes/{id}/locks: what is held and waited for, and what is broken by
 * hand. */

#include "ask_answer.h"
#include "id.h"

#define ASK_LOCKS  1000         /* listed at most */


typedef struct {
    sb_out_t  out;
    unsigned  n;
    bool      more;
} ask_locks_t;


static bool
ask_locks_row(void *data, const locks_row_t *r)
{
    char          id[SB_UUID_LEN + 1], at[40];
    ask_locks_t  *a = data;

    if (a->n++ == ASK_LOCKS) {
        a->more = true;
        return false;
    }

    sb_uuid_text(id, r->id);

    if (a->n > 1) {
        sb_out_text(&a->out, ",");
    }

    sb_out_text(&a->out, "{");
    sb_out_key(&a->out, "id");
    sb_out_str(&a->out, sb_str(id, SB_UUID_LEN));
    sb_out_key(&a->out, "state");
    sb_out_str(&a->out, sb_str(r->state, strlen(r->state)));
    sb_out_key(&a->out, "type");
    sb_out_str(&a->out, sb_str(r->type, strlen(r->type)));
    sb_out_key(&a->out, "actor");
    sb_out_str(&a->out, sb_str(r->actor, strlen(r->actor)));
    sb_out_key(&a->out, "since");
    sb_time_text(at, sb_now_us() - r->since_us);
    sb_out_str(&a->out, sb_str(at, strlen(at)));
    sb_out_key(&a->out, "waited_ms");
    sb_out_int(&a->out, (int64_t) (r->waited_us / 1000));
    sb_out_key(&a->out, "detached");
    sb_out_text(&a->out, r->detached ? "true" : "false");

    if (r->lease) {
        sb_out_key(&a->out, "owner");
        sb_out_str(&a->out, sb_str(r->owner, strlen(r->owner)));
        sb_out_key(&a->out, "fence");
        sb_out_int(&a->out, (int64_t) r->fence);
        sb_out_key(&a->out, "expires_at");

        if (r->expires_us) {
            sb_time_text(at, r->expires_us);
            sb_out_str(&a->out, sb_str(at, strlen(at)));

        } else {
            sb_out_text(&a->out, "null");
        }
    }

    sb_out_key(&a->out, "keys");
    sb_out_text(&a->out, "[");

    return true;
}


static void
ask_locks_key(void *data, bool write, const char *path)
{
    ask_locks_t  *a = data;

    if (a->out.buf.len && a->out.buf.data[a->out.buf.len - 1] != '[') {
        sb_out_text(&a->out, ",");
    }

    sb_out_text(&a->out, "{");
    sb_out_key(&a->out, "path");
    sb_out_str(&a->out, sb_str(path, strlen(path)));
    sb_out_key(&a->out, "mode");
    sb_out_text(&a->out, write ? "\"write\"}" : "\"read\"}");
}


static void
ask_locks_done(void *data)
{
    ask_locks_t  *a = data;

    sb_out_text(&a->out, "]}");
}


ask_rc_e
ask_locks(ask_question_t *q)
{
    api_t          *api;
    ask_locks_t     a;
    locks_list_pt   list;

    api = q->context;
    memset(&a, 0, sizeof(a));
    a.out.buf.max = 16 * 1024 * 1024;

    list.row = ask_locks_row;
    list.key = ask_locks_key;
    list.done = ask_locks_done;
    list.data = &a;

    sb_out_text(&a.out, "{\"items\":[");
    locks_list(api->locks, q->args[0], &list, sb_mono_us());
    sb_out_text(&a.out, a.more ? "],\"more\":true}" : "],\"more\":false}");

    return ask_json(q, &a.out);
}


ask_rc_e
ask_lock_break(ask_question_t *q)
{
    api_t    *api;
    uint8_t   id[16];

    api = q->context;

    if (sb_uuid_parse(id, q->args[1]) != SB_OK
        || !locks_break(api->locks, id, q->args[0]))
    {
        return ask_refuse(q, 404, "GATEWAY_NOT_FOUND", "This sandbox has no "
                          "lock of that id: it may be over.");
    }

    return ASK_DONE;
}
