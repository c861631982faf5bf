/*
 * Opening history files for reading, without getting in the writer's way and
 * without leaving files behind that the writer cannot use.
 */

#ifndef HISTORY_DB_H_INCLUDED
#define HISTORY_DB_H_INCLUDED

#include "sb.h"
#include "canonical.h"

#include <sqlite3.h>

/* Why something failed: `type` is the class name that the published helper
 * reports (HelperError, OperationalError, ...), `message` one sentence. */
typedef struct {
    char  type[40];
    char  message[600];
} history_error_t;

void history_error(history_error_t *err, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* From the last failure on a connection (or a result code without one). */
void history_error_sqlite(history_error_t *err, sqlite3 *db, int rc);
/* From errno, in the words of the published helper. */
void history_error_errno(history_error_t *err, int code, const char *path);

/*
 * When root runs us: takes on the user and group that own the directory of
 * `path`, or the nearest one above that exists, for good.  SQLite makes -wal
 * and -shm even for readers, and the helper, which runs as that user, must be
 * able to use them; nor has root any business in files that others write.
 * Nothing happens for other users and for what root owns.  False with errno
 * set.
 */
bool history_become_owner(const char *path);

/*
 * Opens for reading only.  NULL with err filled when the file is missing or is
 * no database.  A file whose directory cannot be written is read as it lies
 * when no writer is at work in it (no -wal).
 */
sqlite3 *history_open_read(const char *path, history_error_t *err);

/*
 * Opens as the published helper does: parent directories and file are made
 * when missing, WAL is switched on (history format 3).
 */
sqlite3 *history_open_write(const char *path, history_error_t *err);

/* Prepares; NULL with err filled. */
sqlite3_stmt *history_prepare(sqlite3 *db, const char *sql,
    history_error_t *err);
/* Steps: 1 a row, 0 the end, -1 with err filled. */
int history_step(sqlite3_stmt *stmt, history_error_t *err);

/* Does the database have a table of that name? */
bool history_has_table(sqlite3 *db, const char *name);

/* The value of a row of history_meta, NUL-terminated; not found when there is
 * none, or no such table.  `value` is zero-initialised once and freed by the
 * caller. */
bool history_meta_get(sqlite3 *db, const char *key, sb_buf_t *value,
    bool *found, history_error_t *err);

/* A column as a slice; valid until the next step. */
sb_str_t history_column(sqlite3_stmt *stmt, int i);
/* A column as a JSON value; false for a blob, which has none. */
bool sb_out_column(sb_out_t *o, sqlite3_stmt *stmt, int i);

#endif /* HISTORY_DB_H_INCLUDED */
