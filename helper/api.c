#include "api.h"


/* Only this table says what there is; docs/console-api.md is held against
 * it. */
const ask_route_t  api_routes[] = {
    { "GET", "health", SB_ROLE_VIEWER, api_health },
    { "GET", "metrics", SB_ROLE_VIEWER, api_metrics },
    { NULL, NULL, SB_ROLE_VIEWER, NULL }
};


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
