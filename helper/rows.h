/* One operation's records -> rows of its history file. */

#ifndef ROWS_H_INCLUDED
#define ROWS_H_INCLUDED

#include "journal.h"
#include "store.h"

#define ROWS_CHUNK     (16 * 1024)
#define ROWS_RUN_US    10000        /* pieces closer than that share a run */

/* A record of an operation, in a list in journal order. */
typedef struct rows_record_s  rows_record_t;

struct rows_record_s {
    rows_record_t     *next;
    journal_record_t   r;
};

/* What is known of an open operation between two batches. */
typedef struct {
    uint8_t    id[16];
    bool       loaded;          /* the numbers below are right */
    bool       started;         /* its row exists and is not ended */
    bool       pending;         /* its frames stand in gateway_pending ... */
    uint64_t   pending_at;      /* ... with this cursor */
    int64_t    ord;             /* next of gateway_output */
    int64_t    chunk[2];        /* next per stream */
    int64_t    bytes[2];        /* stored per stream */
    int64_t    nfiles;

    bool       term;            /* a terminal: */
    bool       term_failed;     /* what happened in it cannot be recorded */
    int64_t    term_n;          /* next of gateway_terminal */
    int64_t    term_base;       /* offset in the session's output where live
                                   output begins; -1: not known yet */
    int64_t    term_to;         /* ... up to which it is on record */

    int64_t    unkept;          /* bytes of output, for the file was full */
    bool       told;            /* ... and its state says so */
    bool       skipped;         /* its file was so full that it has no row */
    const char *held;           /* id of the sandbox whose existence is not yet
                                   shown, while the rows are in _gateway */
} rows_op_t;

/*
 * Writes records of one operation, inside a transaction; part of it stays in
 * the queue of the store (store_flush) until the commit.  `force` gives a
 * pending poll its row now.  Returns an SQLite code; after a failure the
 * transaction is to be rolled back and op->loaded cleared.
 */
int rows_write(store_db_t *db, rows_op_t *op, const rows_record_t *first,
    bool force);

/* Writes the gateway.gap event of a GAP frame, or one that says that records
 * of this file were lost. */
int rows_gap(store_db_t *db, const journal_record_t *r);
int rows_lost(store_db_t *db, const char *reason, uint64_t cursor);
/* Part of an operation, or so many as a whole, cannot be recorded. */
int rows_failed(store_db_t *db, const uint8_t id[16], int64_t operations,
    const char *reason, uint64_t cursor);
/* Does the file say that already?  It reads all of its gaps. */
bool rows_gap_told(store_db_t *db, const char *reason, uint64_t cursor);

/*
 * What a full file does not take (retain.h): counts an operation without a row,
 * and writes the gateway.gap event about those counted.
 */
int rows_unkept(store_db_t *db, uint64_t at_us, uint64_t cursor);
int rows_unkept_gap(store_db_t *db, int64_t operations, uint64_t from_us,
    uint64_t to_us);

/* Of a beginning that has no row: does the file know that, for it was full or
 * purged, so that it is no news when the journal is replayed? */
bool rows_gone_known(store_db_t *db, uint64_t cursor);

/* Says in the file what upstream said of the sandbox ("Running", "gone"). */
int rows_state(store_db_t *db, sb_str_t state, sb_str_t name, uint64_t at_us);

/* A name as history_meta takes it (format 6): trimmed, 1-128 characters, no
 * control characters; else false. */
bool rows_name(sb_str_t *name);

/* --- rows_*.c among themselves ------------------------------------------ */

/* Numbers of prepared statements; 0 is the store's. */
enum {
    ROWS_STATUS = 1, ROWS_LOAD, ROWS_WIRE_SET, ROWS_COMMAND, ROWS_COMMAND_SET,
    ROWS_FILE, ROWS_FILE_ADD, ROWS_FILE_SET, ROWS_FILE_FIND, ROWS_FILE_READ,
    ROWS_FILE_AFTER, ROWS_FACTS, ROWS_END,
    ROWS_HELD, ROWS_UNHOLD, ROWS_DETACHED, ROWS_DETACHED_GET,
    ROWS_DETACHED_END, ROWS_PENDING, ROWS_PENDING_GET, ROWS_PENDING_DEL,
    ROWS_FOLD, ROWS_GAP_FACTS, ROWS_GAP_FIND, ROWS_STATE, ROWS_NAME,
    ROWS_WIRE_GET, ROWS_HELD_FIND, ROWS_RECORD_FIND, ROWS_GONE_FIND,
    ROWS_TERMINAL_ADD, ROWS_TERMINAL_KNOWN, ROWS_TERMINAL_NEW,
    ROWS_TERMINAL_MODE, ROWS_TERMINAL_SET, ROWS_TERMINAL_GET,
    ROWS_CONTENT_USE, ROWS_CONTENT_ADD, ROWS_CONTENT_TRIM,
    ROWS_PART_ADD, ROWS_PART_READ, ROWS_PART_DROP, ROWS_VERSION_SELF,
    ROWS_VERSION_FILES, ROWS_VERSION_PATH, ROWS_VERSION_OLD,
    ROWS_VERSION_ABOVE, ROWS_VERSION_RAN, ROWS_VERSION_SET,
    ROWS_VERSION_FIRST, ROWS_VERSION_SAME,
    ROWS_STMTS
};

/* Runs a statement and names it in the code that failed. */
#define rows_try(rc, expr)                                                   \
    do {                                                                     \
        (rc) = (expr);                                                       \
        if ((rc) != SQLITE_OK) {                                             \
            return (rc);                                                     \
        }                                                                    \
    } while (0)

/* A change row: `id` is the change_id. */
void rows_change(store_db_t *db, const char *id, const uint8_t event[16],
    const char *type, uint64_t at_us);

/* Has the file a number for an event, also for one that was moved away? */
bool rows_recorded(store_db_t *db, const uint8_t id[16]);

/* Gives an event the next seq. */
void rows_record(store_db_t *db, const uint8_t id[16], uint64_t cursor);

/* Output frames of the list -> chunks, runs and one change row; `rows` tells the
 * chain where those of the record are queued, NULL when they are in the file. */
int rows_output(store_db_t *db, rows_op_t *op, const rows_record_t *first,
    chain_rows_t *rows);

#endif /* ROWS_H_INCLUDED */
