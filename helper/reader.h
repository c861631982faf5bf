/*
 * Connections for reading history files beside the writer, for the threads that
 * answer questions: a bounded number stays open between two questions.  Whoever
 * has taken one gives it back before it waits for anything but the disk: no
 * statement and no snapshot outlives that, so the write-ahead log of a file
 * never grows because somebody reads slowly.
 */

#ifndef READER_H_INCLUDED
#define READER_H_INCLUDED

#include "history_query.h"
#include "store.h"

#define READERS_IDLE  256       /* kept open while nobody uses them, unless told:
                                   a page may hold records of as many files */
#define READER_MS     2000      /* what a question to one file may take */

typedef struct readers_s  readers_t;
typedef struct reader_s   reader_t;

struct reader_s {
    reader_t      *prev, *next;     /* idle, used last first */
    reader_t      *same;            /* idle, of the same slot */
    char           dir[STORE_DIR_LEN];
    sqlite3       *db;              /* ready for history_query_...() */
    sqlite3_stmt  *record;          /* of reader_record() */
    sqlite3_stmt  *version;         /* of its tables ... */
    int64_t        schema;          /* ... when it was opened */
    dev_t          dev;
    ino_t          ino;
    uint64_t       until_us;        /* monotonic; 0: no bound */
};

/* `base` and `plain` as for store_new(); `most` stay open while nobody uses them.
 * These take three descriptors and a quarter MiB each, and not more than a quarter
 * of all descriptors.  NULL without memory. */
readers_t *readers_new(const char *base, bool plain, unsigned most);
void readers_free(readers_t *rs);
const char *readers_base(const readers_t *rs);

typedef enum {
    READER_OK = 0,
    READER_MISSING,             /* no such file, or nothing is in it yet */
    READER_FAILED               /* cannot be read now: err says why */
} reader_rc_e;

/*
 * A connection to the history file of a directory, with a snapshot that lasts
 * until it is given back.  What runs longer than READER_MS in all ends with an
 * error.
 */
reader_rc_e reader_take(readers_t *rs, const char *dir, reader_t **reader,
    history_error_t *err);
/*
 * As reader_take(), of the file that holds a record, where `dir` was looked up
 * before: a record that has moved on from _gateway since is followed (reader->dir
 * says where), and *row becomes its history_events.seq there (row NULL: not
 * asked for).  READER_MISSING also when it is gone from there.
 */
reader_rc_e reader_take_of(readers_t *rs, const char *dir, const char *id,
    int64_t *row, reader_t **reader, history_error_t *err);
/* Ends the snapshot; `broken` also closes the connection.  All statements of
 * the caller's own are finalized before. */
void reader_give(readers_t *rs, reader_t *r, bool broken);

/* The statement of history_query_record() by history_events.seq, prepared once
 * for each connection; the caller binds ?1, steps and resets it. */
sqlite3_stmt *reader_record(reader_t *r, history_error_t *err);

#endif /* READER_H_INCLUDED */
