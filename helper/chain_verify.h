/* Is what a history file holds what was recorded? */

#ifndef CHAIN_VERIFY_H_INCLUDED
#define CHAIN_VERIFY_H_INCLUDED

#include "heads.h"

typedef enum {
    VERIFY_OK,
    VERIFY_FAULT,       /* see fault, seq, event */
    VERIFY_UNABLE       /* see why */
} verify_rc_e;

/*
 * Kinds of fault:
 *
 *   changed     a record is not what the chain says of it
 *   removed     a record that was not purged is not there
 *   reordered   records stand in another order
 *   foreign     rows that the chain knows nothing of
 *   broken      an entry does not follow from the one before, or is missing
 *   cut         the chain ends before its head
 *   rewritten   the chain is not the one that its head speaks of
 *   swapped     the file is of another sandbox
 *   signature   a head is not signed with the key
 */
typedef struct {
    int64_t      checked;           /* records */
    int64_t      entries;
    int64_t      head;              /* entry the last head speaks of; 0: none */
    int64_t      unsigned_entries;  /* behind it */
    int64_t      foreign;           /* records, with allow_foreign */
    int64_t      before;            /* records older than the chain */
    char         head_at[40];
    char         sandbox[512];      /* whose the file says it is */
    const char  *fault;
    int64_t      seq;               /* record number; 0: of none */
    char         event[40];
    char         why[1024];
} verify_t;

typedef struct {
    const char    *dir;             /* whose file it should be; NULL: anyone's */
    const char    *heads;           /* path of heads.jsonl */
    const keys_t  *keys;            /* NULL: signatures cannot be checked */
    bool           allow_foreign;
    bool           archived;        /* it may not be the file that is there now,
                                       but one that was archived before, or a
                                       copy */
    /* Called now and then; true stops with VERIFY_UNABLE.  May be NULL. */
    bool         (*stop)(void *data, int64_t entries);
    void          *data;
} verify_conf_t;

/* In one read transaction of a connection that may make temporary tables. */
verify_rc_e chain_verify(sqlite3 *db, const verify_conf_t *conf, verify_t *v);

#endif /* CHAIN_VERIFY_H_INCLUDED */
