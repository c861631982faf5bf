/*
 * Files over time, through any connection that may read a history file: what an
 * operation changed in a file, what stood in it, which versions of a path there
 * are.  For the console API and for sandbox-history.
 */

#ifndef FILES_H_INCLUDED
#define FILES_H_INCLUDED

#include "sb.h"

#include <sqlite3.h>

#define FILES_MAX  1024             /* files of one operation */

/* Which file of an operation, and when. */
typedef struct {
    int64_t  n;                     /* 0 to FILES_MAX - 1 */
    bool     after;                 /* else before */
} files_want_t;

/* Appends what stood in the file to `out`, whose max is set.  An SQLite code;
 * *why is a sentence when there is none to give, else NULL. */
int files_content(sqlite3 *db, const char *id, const files_want_t *w,
    sb_buf_t *out, const char **why);

/* The unified difference that is on record, or, of a further file, one that is
 * made; returns as files_content(). */
int files_diff(sqlite3 *db, const char *id, const files_want_t *w,
    sb_buf_t *out, const char **why);

/* The difference of two contents by their SHA-256; returns as
 * files_content(). */
int files_compare(sqlite3 *db, const char *path, const char *const hash[2],
    sb_buf_t *b, const char **why);

/* The difference of how two operations left a file: file n of the first, which
 * the second has changed too; returns as files_content(). */
int files_between(sqlite3 *db, const char *const id[2], int64_t n,
    sb_buf_t *b, const char **why);

/* Columns of files_versions(), in the order of the members of its JSON. */
enum {
    FILES_SEQ = 0, FILES_ID, FILES_N, FILES_TYPE, FILES_STATUS, FILES_STARTED,
    FILES_COMPLETED, FILES_ACTOR_TYPE, FILES_ACTOR_ID, FILES_PATH,
    FILES_OLD_PATH, FILES_SIZE, FILES_SHA256, FILES_CONTENT, FILES_BEFORE,
    FILES_BEFORE_SIZE, FILES_BEFORE_SHA256, FILES_RESTORED,
    FILES_KEPT                      /* the content is there */
};

/* The newest versions of a path whose seq is below `before`, `limit` at most
 * (-1: all), newest first or, ascending, last.  The text of the path must
 * outlive the statement. */
int files_versions(sqlite3 *db, const char *path, int64_t before, int64_t limit,
    bool ascending, sqlite3_stmt **st);
/* The row that the statement stands on, as an object. */
sb_rc_t files_version_json(sb_buf_t *b, sqlite3_stmt *st);

#endif /* FILES_H_INCLUDED */
