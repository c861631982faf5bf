/*
 * Events of the gateway's own in a history file: gaps, tombstones, holds.  They
 * have the numbers and changes of any other record.
 *
 * All inside a transaction of the store; SQLite codes.
 */

#ifndef OWN_H_INCLUDED
#define OWN_H_INCLUDED

#include "store.h"

typedef struct {
    const char  *type;          /* "gateway.purge" */
    uint64_t     from_us;
    uint64_t     to_us;
    sb_str_t     request;       /* request_json; empty: {} */
    sb_str_t     result;        /* result_json; empty: none */
    const char  *status;        /* NULL: "succeeded"; "started": it is to be
                                   ended by own_end() */
    const char  *actor_type;    /* NULL: "system" */
    const char  *actor_id;      /* or NULL */
} own_event_t;

/* Writes one; its id is left in `id`. */
int own_event(store_db_t *db, const own_event_t *e, uint8_t id[16]);

/* Ends one that was begun. */
int own_end(store_db_t *db, const uint8_t id[16], const char *status,
    uint64_t to_us, sb_str_t result);

/* The event of a type that was begun last and has not ended: *found. */
int own_open(store_db_t *db, const char *type, uint8_t id[16], bool *found);

#endif /* OWN_H_INCLUDED */
