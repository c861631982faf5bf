/*
 * Live streams of the console API: what comes into the journal, as server-sent
 * events (docs/console-api.md, "Live").
 *
 * One thread follows the journal while anybody listens.  It makes each event
 * once, keeps the newest in a ring, and hands them to all who read along.  A
 * reader who falls behind holds nothing but his cursor: he is served from the
 * ring, or, when that has gone on, from the journal with a feed of his own, of
 * which there are few.
 */

#ifndef LIVE_H_INCLUDED
#define LIVE_H_INCLUDED

#include "ask.h"
#include "journal.h"
#include "reader.h"

#define LIVE_RING          4096             /* events kept in memory */
#define LIVE_RING_BYTES    (8 * 1024 * 1024)
#define LIVE_FEEDS         4                /* readers who catch up at once */
#define LIVE_SEARCHES      32               /* streams with a q: each looks at
                                               all text that comes */
/* below 15 s: proxies in front cut who is silent for 30 s, some for 20 s */
#define LIVE_BEAT_US       10000000u
#define LIVE_PADDING       (16 * 1024)      /* "padding" of a question */
#define LIVE_SUBSCRIBERS   1024             /* --live */

typedef struct live_s  live_t;

/* `readers` reads history files.  NULL without memory. */
live_t *live_new(journal_t *journal, readers_t *readers);
bool live_start(live_t *l);
/* Before ask_free(). */
void live_stop(live_t *l);
void live_free(live_t *l);

/* The journal has grown; any thread. */
void live_wake(live_t *l);

/* The handler of a question: a stream of `sandbox` (NULL: of all).  It takes
 * the query of the question and its parameter "after". */
ask_rc_e live_serve(live_t *l, ask_question_t *q, const sb_str_t *sandbox);

#endif /* LIVE_H_INCLUDED */
