/* Live streams: the routes. */

#include "api.h"


static ask_rc_e
ask_live_of(ask_question_t *q, const sb_str_t *sandbox)
{
    api_t  *api;

    api = q->context;

    if (api->live == NULL) {
        return ask_refuse(q, 501, "GATEWAY_UNSUPPORTED", "There is no history "
                          "to follow: the helper keeps none (--mode none).");
    }

    return live_serve(api->live, q, sandbox);
}


ask_rc_e
ask_live(ask_question_t *q)
{
    return ask_live_of(q, NULL);
}


ask_rc_e
ask_live_sandbox(ask_question_t *q)
{
    return ask_live_of(q, &q->args[0]);
}
