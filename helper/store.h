/*
 * History files: HISTORY_PATH/<dir>/history.sqlite3, one per sandbox, and a
 * bounded cache of open ones for the writer.  Of one thread.
 */

#ifndef STORE_H_INCLUDED
#define STORE_H_INCLUDED

#include "bulk.h"
#include "chain.h"
#include "heads.h"
#include "schema.h"
#include "table.h"

#include <sys/types.h>

#define STORE_FILE     "history.sqlite3"
#define STORE_HANDLES  512         /* open, ... */
#define STORE_AWAKE    128         /* ... and of them with statements and pages */
#define STORE_DIR_LEN  130      /* of a directory name, with NUL */
#define STORE_FOLDS    16

/* --- for readers -------------------------------------------------------- */

/* Writes "BASE/DIR/history.sqlite3"; the length, or 0 when it does not fit. */
size_t store_dir_path(char *dst, size_t size, const char *base,
    const char *dir);

/* The VFS that leaves symbolic links to the system, for paths below
 * /proc/self/fd; NULL when there is none.  First called by the main thread. */
const char *store_plain_vfs(void);

/* --- the writer --------------------------------------------------------- */

typedef struct store_s  store_t;

/* A group of equal polls that may be counted into one event. */
typedef struct {
    char     event_id[37];
    char     status[16];
    char     code[64];          /* of an error */
    char     type[64];          /* "": knocks without a credential */
    char     actor[256];        /* type, "\n", id */
    int64_t  port;
} store_fold_t;

/* Is it the same group?  Refusals of knocks are one for each code; `ended`: the
 * codes are known. */
bool store_fold_same(const store_fold_t *a, const store_fold_t *b, bool ended);

typedef struct store_db_s  store_db_t;

struct store_db_s {
    table_node_t    node;
    char            dir[STORE_DIR_LEN];
    sqlite3        *db;
    sqlite3_stmt  **stmts;
    unsigned        nstmts;
    bulk_t         *bulk;           /* of the store: rows to be inserted */
    sqlite3_stmt   *bulk_stmts[BULK_TABLES];

    store_t        *store;
    char           *sandbox;        /* identity, from history_meta */
    char           *instance;
    bool            fresh;          /* has no tables of ours yet */
    uint64_t        applied;        /* everything up to this cursor is in it */
    int64_t         next_seq;
    int64_t         contents;       /* bytes of contents of files */
    int64_t         contents_news;  /* ... by the transaction at hand */
    store_fold_t    folds[STORE_FOLDS];     /* newest last */
    unsigned        nfolds;

    dev_t           dev;
    ino_t           ino;
    int             wal_next;       /* pages of the log at which a checkpoint
                                       is tried */
    int             wal_pages;      /* of the log, as the last commit left it */
    chain_t         chain;

    bool            dirty;          /* commits since store_tidy() */
    bool            copied;         /* within store_tidy() */
    bool            in_tx;
    bool            rests;          /* has no statements, see store_rest.c */
    bool            unread;         /* what is known of it could not be read:
                                       to be opened anew */
    unsigned        pins;

    struct {
        uint64_t    read_us;        /* 0: not yet */
        uint64_t    size;
        int         overflow;
    }               limits;         /* retain.h */
    unsigned        full;           /* retain_level_e of this transaction */
    store_db_t     *prev, *next;    /* least recently used first */
};

/* `base` is HISTORY_PATH, or a path below /proc/self/fd.  `plain` tells that
 * symbolic links in it must not be resolved by SQLite. */
store_t *store_new(const char *base, unsigned handles, bool plain);
/* STORE_HANDLES, or as many as the limit of descriptors has room for. */
unsigned store_handles(void);
void store_free(store_t *s);
const char *store_base(const store_t *s);

/* Pages of 4096 bytes that a write-ahead log may have (64,000): beyond, while a
 * reader keeps it from beginning anew, the file cannot be written, as if it were
 * locked. */
void store_set_wal(store_t *s, int pages);

/* Calls `news` with the directory after each commit, and when a file was set
 * aside; in the thread of the writer, which it must not keep waiting. */
typedef void (*store_news_pt)(void *data, const char *dir);
void store_set_news(store_t *s, store_news_pt news, void *data);

/* Where the chains of the files stand is signed there; not owned. */
void store_set_heads(store_t *s, heads_t *heads);
/* Are there heads to sign by now?  With `all` whether there are any. */
bool store_heads_due(const store_t *s, uint64_t mono_us, bool all);
/* The chain of a file ends: it is to be archived or deleted at once, as `how`
 * says.  Signed, too, or with the next that are. */
void store_heads_end(store_t *s, store_db_t *db, const char *how);
/* Flushes the files, then signs.  What fails stays for the next time. */
void store_heads_sign(store_t *s, uint64_t now_us);

/* Is there a history file in that directory?  Asks the file system. */
bool store_exists(store_t *s, const char *dir);
/* Was there one, as far as signed heads tell, or who has set it aside? */
bool store_knew(store_t *s, const char *dir);

/*
 * The open file of a directory, opened (with `create`: made) when it is not in
 * the cache.  NULL with an SQLite code in *rc.  A cached file that somebody
 * removed or replaced is noticed: it is opened anew, SQLITE_NOTFOUND when it is
 * gone.  The pointer is good until the next store_get(), unless pinned.
 */
store_db_t *store_get(store_t *s, const char *dir, bool create, int *rc);
/* Closes a file, dropping what is known of it. */
void store_drop(store_t *s, store_db_t *db);

/* Reads identity, cursor, seq and folds again (after a rollback, or when the
 * tables were made). */
int store_load(store_db_t *db);

/* What the chain of a file is signed with; NULL: it is not. */
const keys_t *store_keys(const store_db_t *db);

/* Do deletions take along what refers to them?  Outside transactions; off
 * unless asked for. */
int store_cascades(store_db_t *db, bool on);

/* SQLITE_BUSY when somebody else writes, or the log is full and read. */
int store_begin(store_db_t *db);
/* Inserts the rows that are queued. */
int store_flush(store_db_t *db);
/* Inserts what is queued, notes the cursor and commits; rolls back on failure.
 */
int store_commit(store_db_t *db, uint64_t applied);
/* Rolls back and reads again what was known. */
void store_rollback(store_db_t *db);

/* A prepared statement, by number; reset and ready to bind.  NULL on error. */
sqlite3_stmt *store_stmt(store_db_t *db, unsigned n, const char *sql);
/* Runs a statement that gives no rows, and resets it. */
int store_run(sqlite3_stmt *st);

/* Text that any reader can decode: bad UTF-8 and NUL become U+FFFD; NULL data
 * is NULL. */
void store_bind_text(sqlite3_stmt *st, int n, sb_str_t s);
void store_bind_id(sqlite3_stmt *st, int n, const uint8_t id[16]);
void store_bind_time(sqlite3_stmt *st, int n, uint64_t us);

/* Renames a file that cannot be used, with its -wal and -shm, to
 * history.sqlite3.WHY-TIME, so that a new one can begin. */
void store_set_aside(store_t *s, const char *dir, const char *why);

/*
 * Everything that was committed is on the disk when it returns true: the
 * journal may forget it.
 */
bool store_sync(store_t *s);

/* An open file is on the disk, and so are the names that lead to it. */
bool store_sync_file(store_t *s, store_db_t *db);

/* Files whose write-ahead log is not in the database yet, open or not. */
size_t store_untidy(const store_t *s);
/* Finds those that an earlier process left. */
void store_find_untidy(store_t *s);
/*
 * Checkpoints up to `most` of them together, and closes those that were not
 * open: two flushes of the file system instead of two for each.  False when it
 * did not work; they stay in the list.
 */
bool store_tidy(store_t *s, size_t most);

/* Is it a fault of this one file (set it aside) rather than of the machine
 * (try again)? */
bool store_broken(int rc);

#endif /* STORE_H_INCLUDED */
