/*
 * From the journal into the history files, behind the traffic (design 2, 5).
 * All of it runs in one thread; apply_wake() may be called from others.
 */

#ifndef APPLY_H_INCLUDED
#define APPLY_H_INCLUDED

#include "errand.h"
#include "fetch.h"
#include "journal.h"
#include "retain.h"
#include "store.h"

#define APPLY_SLICE       1000u     /* records per transaction while busy */
#define APPLY_SLICE_LOW   128u      /* ... that nothing can hurry */
#define APPLY_SLICE_IDLE  4000u     /* ... and otherwise */
#define APPLY_LAG_US      5000000u  /* defaults of apply_bounds() */
#define APPLY_STOP_US     10000000u
#define APPLY_SEEN     16384        /* sandboxes remembered */
#define APPLY_ASIDE    262144       /* default of apply_set_aside() */

typedef struct apply_s  apply_t;

/* `fetch` may be NULL: instance ids are then never asked for.  `journal` is set
 * later, by apply_start() or apply_attach(): the scan that opens it calls
 * apply_scan().  `from` is what journal_applied_load() said. */
apply_t *apply_new(store_t *store, fetch_t *fetch, int journal_dirfd,
    uint64_t from);
void apply_free(apply_t *a);

/*
 * How far files may be behind the journal while there is much traffic: past
 * half of it records are applied without pauses and with the priority of
 * everybody else.  And how long apply_stop() may take: what is left then stays
 * in the journal.
 */
void apply_bounds(apply_t *a, uint64_t lag_us, uint64_t stop_us);

/* Records that may wait for files which cannot be written, until everything has
 * to wait with them. */
void apply_set_aside(apply_t *a, size_t records);

/* Limits are kept between the batches.  Its hooks `busy` and `removed` are
 * apply_busy() and apply_removed(), with `a` as their data. */
void apply_retain(apply_t *a, retain_t *retain);
/* ... and what sandbox-history asks for is done. */
void apply_errands(apply_t *a, errands_t *errands);
bool apply_busy(void *a, const char *sandbox);
void apply_removed(void *a, const char *sandbox);

/* A record met while the journal is opened. */
void apply_scan(apply_t *a, const journal_record_t *r);

/* Takes up work that a crash left half done.  False: not possible now (it is
 * in the log). */
bool apply_attach(apply_t *a, journal_t *journal);

/* Applies everything that is in the journal by now, in the calling thread.
 * False when it could not be written, be it for one sandbox. */
bool apply_all(apply_t *a);

/* The thread.  apply_stop() lets it apply what is left, then joins it; false
 * when something is left. */
bool apply_start(apply_t *a);
void apply_wake(apply_t *a);
/* Somebody waits for everything up to that cursor (STATS_APPLIED_CURSOR tells
 * when it is in files): no naps until then.  Any thread. */
void apply_want(apply_t *a, uint64_t cursor);
bool apply_stop(apply_t *a);

#endif /* APPLY_H_INCLUDED */
