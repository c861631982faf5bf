/*
 * Contents of files, in the history file of their sandbox (gateway_contents):
 * by SHA-256, each once, compressed.  They stand beside the records that speak
 * of them, so that a file that is archived, copied or deleted takes them along.
 * All sandboxes together have one bound; at it the sandbox that holds most
 * gives its oldest ones.
 */

#ifndef CONTENTS_H_INCLUDED
#define CONTENTS_H_INCLUDED

#include "store.h"

#define CONTENTS_LIMIT  (1024ull * 1024 * 1024)     /* bytes, all sandboxes */
#define CONTENTS_HEX    64

/* --- the writer; inside a transaction --------------------------------------- */

/* Keeps a content, whose digest the caller has made (hexadecimal); `cursor` is
 * that of the record.  An SQLite code. */
int contents_put(store_db_t *db, const char *sha256, sb_str_t bytes,
    uint64_t cursor);

/* Retention, in the transaction that deletes the events in temp.purge (seq):
 * before, those of which their files speak are noted; afterwards, those of which
 * nobody speaks any more are deleted. */
int contents_note(store_db_t *db);
int contents_sweep(store_db_t *db);

/* --- reading, any connection -------------------------------------------------- */

/* Appends a content to `out`, whose max is set.  SQLITE_NOTFOUND when it is not
 * kept, SQLITE_CORRUPT when it is not what its digest says. */
int contents_get(sqlite3 *db, const char *sha256, sb_buf_t *out);

/* --- the bound; the thread that writes, outside of transactions --------------- */

void contents_limit(uint64_t bytes);
/* What a file holds, when it was opened, or 0 when it is gone. */
int contents_load(store_db_t *db);
void contents_gone(const char *dir);
/* After a commit. */
void contents_done(store_db_t *db);
/* Is nothing of a file to be dropped? */
typedef bool (*contents_held_pt)(void *data, store_db_t *db);

/* Counts a few more of the files that are there since the start, and drops a
 * few contents when there are too many. */
void contents_tend(store_t *s, contents_held_pt held, void *data);
/* Whether that file is held is to be asked anew. */
void contents_ask(const char *dir);
void contents_free(void);

#endif /* CONTENTS_H_INCLUDED */
