/*
 * Full text of a live stream: an operation passes from the event on with which
 * all words of the question have come up, in its command, paths, summary or
 * output.
 */

#ifndef LIVE_SEARCH_H_INCLUDED
#define LIVE_SEARCH_H_INCLUDED

#include "live_feed.h"
#include "search.h"

#define LIVE_SEARCH_OPS  1024   /* operations that some of the words were found
                                   in; the one found first is forgotten */

typedef struct live_search_s  live_search_t;

/* As sb_search_new(). */
live_search_t *live_search_new(const char *q, sb_rc_t *rc);
void live_search_free(live_search_t *s);

/* Notes what an event has; are all words there by now? */
bool live_search_event(live_search_t *s, const live_event_t *e);

#endif /* LIVE_SEARCH_H_INCLUDED */
