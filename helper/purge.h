/*
 * Deleting records.  Only here is anything ever deleted from a history file
 * that a gateway writes; what went is told by a tombstone, an event
 * `gateway.purge` that begins with the first deletion of a run and ends with
 * its last, and by a row of gateway_purges for each step.
 */

#ifndef PURGE_H_INCLUDED
#define PURGE_H_INCLUDED

#include "store.h"

#define PURGE_EVENTS  200           /* of one step, at most */
#define PURGE_BYTES   (1024 * 1024) /* ... and about that much of records */
#define PURGE_VISIT   4000          /* rows looked at in one step */
#define PURGE_MOVED   1000          /* numbers of moved events in one step */

/* Which records may go. */
typedef struct {
    const char  *rule;          /* "ttl", "size", "total", "cleanup" */
    uint64_t     before_us;     /* completed before that; 0: any time */
    uint64_t     keep_us;       /* completed after that: stay; 0: none do */
    bool         is_protected;  /* those with a change above `seq` stay */
    int64_t      protected_seq;
    uint64_t     floor;         /* their beginning is in the journal up to here,
                                   which is never read again */
    int64_t      after;         /* history_events.seq to begin behind */
    unsigned     events;        /* at most; 0: PURGE_EVENTS */
    uint64_t     bytes;         /* so much is wanted; 0: PURGE_BYTES */
    uint64_t     now_us;
} purge_rule_t;

typedef struct {
    uint64_t     events;        /* deleted */
    uint64_t     operations;    /* ... those of the gateway itself apart */
    uint64_t     changes;
    uint64_t     bytes;         /* of output */
    int64_t      last;          /* looked at up to here */
    bool         more;          /* there may be more behind it */
    uint64_t     newest_us;     /* when the last deleted one was completed */
    uint64_t     oldest_us;     /* when the first one that stays, and may go
                                   later, was completed; 0: none was seen */
    bool         soon;          /* one stays only as long as the journal may
                                   say it again */
} purge_done_t;

/* When the first record that has ended was completed; 0: there is none. */
uint64_t purge_oldest(store_db_t *db);

/* One step, a transaction of its own. */
int purge_step(store_db_t *db, const purge_rule_t *r, purge_done_t *d);

/*
 * Deletes events with their side rows, changes and numbers, in a transaction of
 * its own.  `seqs` are those of history_events.
 */
int purge_events(store_db_t *db, const int64_t *seqs, size_t n,
    const purge_rule_t *r, purge_done_t *d);

/*
 * Deletes numbers of events that were moved into another file, PURGE_MOVED at
 * most, in a transaction of its own: those of events that began before
 * before_us, or, with a rule that has none, in front of all that is still
 * there.  *n: how many.
 */
int purge_moved(store_db_t *db, const purge_rule_t *r, unsigned *n);

/* Ends the tombstone of a run, if there is one that has not ended. */
int purge_end(store_db_t *db, uint64_t now_us);

/* Lowest sequence number that active consumers have acknowledged (format 13). */
int purge_protection(store_db_t *db, uint64_t now_us, int64_t days,
    bool *is_protected, int64_t *seq);

/* (page_count - freelist_count) * page_size, and free pages; any of them may
 * be NULL. */
int purge_size(store_db_t *db, uint64_t *logical, uint64_t *pages,
    uint64_t *unused);

#endif /* PURGE_H_INCLUDED */
