#include "api.h"

#include "id.h"
#include "stats.h"


#define API_LOOK_US  1000       /* between two looks whether it is there */


/* Only this table says what there is; docs/console-api.md is held against
 * it. */
const ask_route_t  api_routes[] = {
    { "GET", "export", SB_ROLE_VIEWER, ask_export },
    { "GET", "health", SB_ROLE_VIEWER, ask_health },
    { "GET", "live", SB_ROLE_VIEWER, ask_live },
    { "GET", "metrics", SB_ROLE_VIEWER, ask_metrics },
    { "GET", "overview", SB_ROLE_VIEWER, ask_overview },
    { "GET", "operations", SB_ROLE_VIEWER, ask_operations },
    { "GET", "operations/{op}", SB_ROLE_VIEWER, ask_operation },
    { "GET", "operations/{op}/output", SB_ROLE_VIEWER, ask_output },
    { "GET", "sandboxes", SB_ROLE_VIEWER, ask_sandboxes },
    { "GET", "sandboxes/{id}/operations", SB_ROLE_VIEWER, ask_box_operations },
    { "GET", "sandboxes/{id}/operations/{op}", SB_ROLE_VIEWER,
      ask_box_operation },
    { "GET", "sandboxes/{id}/operations/{op}/output", SB_ROLE_VIEWER,
      ask_box_output },
    { "GET", "operations/{op}/diff", SB_ROLE_VIEWER, ask_diff },
    { "GET", "operations/{op}/content", SB_ROLE_VIEWER, ask_content },
    { "GET", "sandboxes/{id}/operations/{op}/diff", SB_ROLE_VIEWER,
      ask_box_diff },
    { "GET", "sandboxes/{id}/operations/{op}/content", SB_ROLE_VIEWER,
      ask_box_content },
    { "GET", "sandboxes/{id}/versions", SB_ROLE_VIEWER, ask_versions },
    { "GET", "sandboxes/{id}/versions/diff", SB_ROLE_VIEWER,
      ask_versions_diff },
    { "GET", "operations/{op}/recording", SB_ROLE_VIEWER, ask_recording },
    { "GET", "sandboxes/{id}/operations/{op}/recording", SB_ROLE_VIEWER,
      ask_box_recording },
    { "POST", "sandboxes/{id}/verify", SB_ROLE_VIEWER, ask_verify },
    { "POST", "tokens", SB_ROLE_ADMIN, ask_token_add },
    { "DELETE", "tokens/{id}", SB_ROLE_ADMIN, ask_token_revoke },
    { "GET", "sandboxes/{id}/locks", SB_ROLE_VIEWER, ask_locks },
    { "DELETE", "sandboxes/{id}/locks/{lock}", SB_ROLE_ADMIN, ask_lock_break },
    { "POST", "sandboxes/{id}/leases", SB_ROLE_OPERATOR, ask_lease_new },
    { "PATCH", "sandboxes/{id}/leases/{lease}", SB_ROLE_OPERATOR,
      ask_lease_renew },
    { "DELETE", "sandboxes/{id}/leases/{lease}", SB_ROLE_OPERATOR,
      ask_lease_end },
    { "GET", "sandboxes/{id}/live", SB_ROLE_VIEWER, ask_live_sandbox },
    { NULL, NULL, SB_ROLE_VIEWER, NULL }
};


const ask_handler_pt  api_streams[] = { ask_live, ask_live_sandbox, NULL };


void
api_init(api_t *api, const options_t *o, journal_t *journal, apply_t *apply,
    fetch_t *fetch)
{
    api->options = o;
    api->journal = journal;
    api->apply = apply;
    api->fetch = fetch;
    pthread_mutex_init(&api->lock, NULL);
}


/* Much is on its way, and more comes: the end of it is not near. */
static bool
api_load(api_t *api, uint64_t cursor)
{
    return cursor > stats_get(STATS_APPLIED_CURSOR) + API_WAIT_RECORDS
           || journal_pace(api->journal) > API_WAIT_PACE;
}


static bool
api_wait_for(ask_question_t *q, api_wait_t *w, bool index)
{
    api_t     *api;
    uint64_t   now;

    api = q->context;

    if (w->reached || api->journal == NULL) {
        w->reached = true;
        return true;
    }

    now = sb_now_us();

    if (w->until_us == 0) {
        w->cursor = journal_tail(api->journal).cursor;
        w->until_us = now + API_WAIT_MS * 1000u;

        if (w->brief && api_load(api, w->cursor)) {
            /* and nobody is hurried for it: that is time of the traffic */
            w->until_us = now;
            w->reached = stats_get(STATS_APPLIED_CURSOR) >= w->cursor
                         && (!index || index_reached(api->index, w->cursor));
            return true;
        }
    }

    w->reached = stats_get(STATS_APPLIED_CURSOR) >= w->cursor;

    if (!w->reached) {
        apply_want(api->apply, w->cursor);

    } else if (index) {
        index_hurry(api->index, w->cursor);
        w->reached = index_reached(api->index, w->cursor);
    }

    /* the clock may be turned back */
    if (w->reached || now >= w->until_us
        || now + API_WAIT_MS * 1000u < w->until_us)
    {
        return true;
    }

    ask_later(q, API_LOOK_US);

    return false;
}


bool
api_wait(ask_question_t *q, api_wait_t *w)
{
    return api_wait_for(q, w, false);
}


bool
api_wait_index(ask_question_t *q, api_wait_t *w)
{
    return api_wait_for(q, w, true);
}


bool
api_wait_more(ask_question_t *q, const api_wait_t *w)
{
    uint64_t  now;

    now = sb_now_us();

    if (now > w->until_us + API_INDEX_MS * 1000u
        || now + API_INDEX_MS * 1000u < w->until_us)
    {
        return false;
    }

    ask_later(q, 40 * API_LOOK_US);

    return true;
}
