/* A sandbox's file begins: what was held for it in _gateway moves in. */

#ifndef MOVE_H_INCLUDED
#define MOVE_H_INCLUDED

#include "store.h"

typedef struct {
    const char  *sandbox;
    const char  *instance;
    const char  *name;          /* or NULL */
    uint64_t     applied;       /* of a fresh file: everything of the sandbox up
                                   to this cursor is in _gateway */
    const uint8_t (*events)[16];    /* further events to move */
    size_t       nevents;
    bool         gateway_failed;    /* on failure: not `db` but `gateway` */
} move_t;

/* The tables and history_meta of a fresh file, inside a transaction. */
int move_file(store_db_t *db, const move_t *m);

/*
 * Makes the tables of `db` if it is fresh, and moves the events that
 * gateway_held names for the sandbox and those listed out of `gateway`.  Safe
 * to repeat after a crash at any point: an event is first durable in its new
 * file, then goes from the old one.  Both are pinned by the caller.  Returns an
 * SQLite code.
 */
int move_in(store_t *s, store_db_t *db, store_db_t *gateway, move_t *m);

#endif /* MOVE_H_INCLUDED */
