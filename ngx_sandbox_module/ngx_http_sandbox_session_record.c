/*
 * Signing in and out on record (docs/console-api.md, "On record").  The worker
 * does both by itself, so the record is its own and not the helper's: nobody
 * waits for it, and without a helper people can sign in to see that there is
 * none.  Neither token, code nor cookie is in it.
 */


#include "ngx_http_sandbox_gap.h"
#include "ngx_http_sandbox_session.h"


#define NGX_HTTP_SANDBOX_SESSION_FRAME  2048


void
ngx_http_sandbox_session_record(ngx_http_request_t *r,
    ngx_http_sandbox_session_event_t *e)
{
    size_t             len;
    uint64_t           now;
    sb_uuid7_t         ids;
    sb_frame_writer_t  w;
    u_char             id[16], frame[NGX_HTTP_SANDBOX_SESSION_FRAME];
    char               text[256], time[SB_TIME_LEN + 1];

    static const char  *roles[] = { "viewer", "operator", "admin" };

    if (!ngx_http_sandbox_helper_active()) {
        return;
    }

    ngx_memzero(&ids, sizeof(sb_uuid7_t));
    now = sb_now_us();
    sb_uuid7(&ids, now, id);

    /* what knocks without a credential may be folded */

    sb_frame_begin(&w, frame, sizeof(frame), SB_F_BEGIN,
                   e->token ? 0 : SB_FF_FOLD, 0, id, now);

    sb_frame_put(&w, SB_T_TYPE, sb_str(e->type, ngx_strlen(e->type)));
    sb_frame_put(&w, SB_T_RECORD, sb_lit("best_effort"));
    sb_frame_put(&w, SB_T_SOURCE, sb_lit("console"));
    sb_frame_put(&w, SB_T_METHOD, ngx_http_sandbox_str(&r->method_name));
    sb_frame_put(&w, SB_T_PATH, sb_lit("session"));
    sb_frame_put(&w, SB_T_CLIENT,
                 ngx_http_sandbox_str(&r->connection->addr_text));

    if (e->token) {
        sb_frame_put(&w, SB_T_ACTOR_TYPE, sb_lit("console"));
        sb_frame_put(&w, SB_T_ACTOR_ID, e->token->actor[0]
                     ? sb_str(e->token->actor, ngx_strlen(e->token->actor))
                     : sb_str(e->token->id, ngx_strlen(e->token->id)));

        len = (size_t) snprintf(text, sizeof(text), "%s:%s", e->by,
                                e->token->id);
        sb_frame_put(&w, SB_T_IDENTITY, sb_str(text, len));

    } else {
        sb_frame_put(&w, SB_T_IDENTITY, sb_lit("none"));
    }

    sb_frame_put(&w, SB_T_REQUEST, sb_lit("{\"view\":\"session\"}"));

    len = sb_frame_end(&w);

    if (len == 0 || ngx_http_sandbox_helper_send(frame, len, 0) == 0) {
        ngx_http_sandbox_helper_gap(sb_str(NULL, 0), "queue_full");
        return;
    }

    sb_frame_begin(&w, frame, sizeof(frame), SB_F_END, 0, 0, id, now);
    sb_frame_put(&w, SB_T_STATUS, e->status < NGX_HTTP_BAD_REQUEST
                                  ? sb_lit("succeeded") : sb_lit("failed"));
    sb_frame_put_u64(&w, SB_T_HTTP_STATUS, e->status);
    sb_frame_put_u64(&w, SB_T_DURATION_US, 0);

    if (e->code) {
        sb_frame_put(&w, SB_T_ERROR_CODE, sb_str(e->code, ngx_strlen(e->code)));

    } else if (e->begins) {
        sb_time_text(time, e->token->expires_us);
        len = (size_t) snprintf(text, sizeof(text), "{\"expires_at\":\"%s\","
                                "\"role\":\"%s\"}", time,
                                roles[e->token->role]);
        sb_frame_put(&w, SB_T_RESULT, sb_str(text, len));
    }

    len = sb_frame_end(&w);

    (void) ngx_http_sandbox_helper_send(frame, len,
                                        NGX_HTTP_SANDBOX_QUEUE_ALWAYS);
}
