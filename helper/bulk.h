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
 * prepared statements, made as they are needed.  An SQLite code; the queue is
 * empty afterwards in any case.
 */
int bulk_flush(bulk_t *b, sqlite3 *db, sqlite3_stmt **stmts);

#endif /* BULK_H_INCLUDED */
