/*
 * Rows of a transaction that are inserted together: one statement that takes
 * many rows out of memory costs half of as many statements, for each of these
 * opens every index of its table anew.
 *
 * A row is queued with bulk_row() and its columns in order with bulk_text() and
 * the like; bulk_flush() inserts all.  What a reader of the same transaction
 * has to see must be flushed before.  Of one thread, for one transaction at a
 * time.
 */

#ifndef BULK_H_INCLUDED
#define BULK_H_INCLUDED

#include "sb.h"

#include <sqlite3.h>

/* In the order in which they are inserted. */
typedef enum {
    BULK_EVENT, BULK_RECORD, BULK_WIRE, BULK_COMMAND, BULK_FILE_OPERATION,
    BULK_FILE, BULK_CHUNK, BULK_RUN, BULK_CHANGE, BULK_CHAIN,
    BULK_TABLES
} bulk_table_e;

typedef struct bulk_s  bulk_t;

/* A column of a row that is queued, as it will stand in the table. */
typedef struct {
    enum { BULK_NULL, BULK_TEXT, BULK_BLOB, BULK_INT } kind;
    uint32_t     len;
    union {
        const char  *p;
        int64_t      i;
    } v;
} bulk_cell_t;

bulk_t *bulk_new(void);
void bulk_free(bulk_t *b);

/* Makes the queue readable for statements of a connection; an SQLite code. */
int bulk_attach(bulk_t *b, sqlite3 *db);

/* Begins a row. */
void bulk_row(bulk_t *b, bulk_table_e table);
/* Next columns of it: text that any reader can decode (bad UTF-8 and NUL become
 * U+FFFD; NULL data is NULL), text that outlives the transaction and is known
 * to be good, bytes, numbers.  All but the static text is copied. */
void bulk_text(bulk_t *b, sb_str_t s);
void bulk_static(bulk_t *b, const char *s);
void bulk_blob(bulk_t *b, const void *p, size_t n);
void bulk_int(bulk_t *b, int64_t v);
void bulk_null(bulk_t *b);
void bulk_id(bulk_t *b, const uint8_t id[16]);
void bulk_time(bulk_t *b, uint64_t us);

/* Forgets what is queued. */
void bulk_clear(bulk_t *b);

/*
 * Inserts what is queued into a connection; `stmts` are its BULK_TABLES
 * prepared statements, made as they are needed.  An SQLite code.  What is
 * queued can be looked at until bulk_clear(), which is to follow.
 */
int bulk_insert(bulk_t *b, sqlite3 *db, sqlite3_stmt **stmts);

/* How many rows of a table are queued; the columns of one of them, good until
 * bulk_clear(). */
size_t bulk_count(const bulk_t *b, bulk_table_e table);
const bulk_cell_t *bulk_cells(const bulk_t *b, bulk_table_e table, size_t row);
/* history_events.seq of the first queued event, once they are inserted. */
int64_t bulk_first_seq(const bulk_t *b);
/* How often it was cleared: rows queued before the last time are gone. */
uint64_t bulk_clears(const bulk_t *b);

#endif /* BULK_H_INCLUDED */
