#include "live_lock.h"

#include "id.h"


static void
live_lock_number(sb_out_t *out, const char *name, uint64_t n)
{
    sb_out_key(out, name);
    sb_out_int(out, (int64_t) n);
}


/* What comes behind HOLDER in the frame is the holder's, and the key that is
 * waited for. */
static void
live_lock_holder(sb_out_t *out, sb_str_t id, sb_str_t rest)
{
    uint16_t  tag;
    sb_str_t  v, actor, owner, key;

    actor = sb_str(NULL, 0);
    owner = sb_str(NULL, 0);
    key = sb_str(NULL, 0);

    while (sb_field_next(&rest, &tag, &v)) {

        if (tag == SB_T_ACTOR_ID) {
            actor = v;

        } else if (tag == SB_T_OWNER) {
            owner = v;

        } else if (tag == SB_T_LOCK_READ || tag == SB_T_LOCK_WRITE) {
            key = v;
        }
    }

    sb_out_text(out, "{");
    sb_out_member(out, "id", id);
    sb_out_member(out, "actor", actor);

    if (owner.data) {
        sb_out_member(out, "owner", owner);
    }

    sb_out_member(out, "key", key);
    sb_out_text(out, "}");
}


void
live_lock_write(const sb_frame_t *f, sb_out_t *out,
    history_filter_facts_t *facts)
{
    char      id[SB_UUID_LEN + 1], at[SB_TIME_LEN + 1];
    bool      first;
    uint16_t  tag;
    uint64_t  fence, expires_us;
    sb_str_t  fields, v, holder, rest, phase, sandbox, reason, owner;

    memset(facts, 0, sizeof(history_filter_facts_t));
    facts->duration_ms = -1;
    facts->started_us = (int64_t) f->time_us;
    facts->type = sb_str("", 0);
    facts->actor = sb_str("", 0);

    phase = sb_str("", 0);
    sandbox = sb_str("", 0);
    reason = sb_str(NULL, 0);
    owner = sb_str("", 0);
    holder = sb_str(NULL, 0);
    rest = sb_str(NULL, 0);
    fence = 0;
    expires_us = 0;

    sb_uuid_text(id, f->op);

    sb_out_text(out, "{");
    sb_out_member(out, "id", sb_str(id, SB_UUID_LEN));
    sb_out_key(out, "keys");
    sb_out_text(out, "[");
    first = true;

    for (fields = f->fields; sb_field_next(&fields, &tag, &v); /* void */ ) {

        switch (tag) {

        case SB_T_STATE:
            phase = v;
            break;

        case SB_T_SANDBOX:
            sandbox = v;
            break;

        case SB_T_REASON:
            reason = v;
            break;

        case SB_T_TYPE:
            facts->type = v;
            break;

        case SB_T_ACTOR_ID:
            facts->actor = v;
            break;

        case SB_T_OWNER:
            owner = v;
            break;

        case SB_T_FENCE:
            fence = sb_value_u64(v, 0);
            break;

        case SB_T_EXPIRES:
            expires_us = sb_value_u64(v, 0);
            break;

        case SB_T_LOCK_READ:
        case SB_T_LOCK_WRITE:
            sb_out_text(out, first ? "{" : ",{");
            sb_out_member(out, "path", v);
            sb_out_member(out, "mode", tag == SB_T_LOCK_WRITE
                          ? sb_lit("write") : sb_lit("read"));
            sb_out_text(out, "}");
            first = false;
            break;

        case SB_T_HOLDER:
            holder = v;
            rest = fields;
            fields.len = 0;
            break;

        default:
            break;
        }
    }

    sb_out_text(out, "]");
    live_lock_number(out, "keys_total", sb_field_u64(f, SB_T_COUNT, 0));
    sb_out_member(out, "phase", phase);
    sb_out_member(out, "sandbox_id", sandbox);
    sb_out_member(out, "type", facts->type);
    sb_out_member(out, "actor", facts->actor);
    live_lock_number(out, "waited_ms", sb_field_u64(f, SB_T_WAITED_US, 0)
                                       / 1000);
    sb_out_member(out, "reason", reason);
    sb_out_key(out, "holder");

    if (holder.data) {
        live_lock_holder(out, holder, rest);

    } else {
        sb_out_text(out, "null");
    }

    if (fence) {
        sb_out_member(out, "owner", owner);
        live_lock_number(out, "fence", fence);
        sb_time_text(at, expires_us);
        sb_out_member(out, "expires_at",
                      expires_us ? sb_str(at, SB_TIME_LEN)
                                 : sb_str(NULL, 0));
    }

    sb_time_text(at, f->time_us);
    sb_out_member(out, "at", sb_str(at, SB_TIME_LEN));
    sb_out_text(out, "}");
}
