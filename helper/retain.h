/*
 * Limits that hold by themselves: time to live, size of a file, size of all
 * files, legal holds, and what becomes of the file of a sandbox that is gone
 * (docs/history.md, "Limits").
 *
 * Works in the thread that writes the files, in small steps between its
 * batches: what is purged never waits for a lock and nobody waits for it.
 */

#ifndef RETAIN_H_INCLUDED
#define RETAIN_H_INCLUDED

#include "store.h"

#define RETAIN_TTL    ((uint64_t) 7 * 86400 * 1000000)
#define RETAIN_SIZE   ((uint64_t) 128 * 1024 * 1024)
#define RETAIN_TOTAL  ((uint64_t) 10 * 1024 * 1024 * 1024)
#define RETAIN_KEEP   ((uint64_t) 600 * 1000000)
#define RETAIN_SIZE_MIN  (1024 * 1024)
#define RETAIN_FILES  262144        /* remembered at most */
#define RETAIN_HOLDS  64            /* named in the configuration */

#define RETAIN_ARCHIVE  "archive"   /* below HISTORY */

typedef enum {
    RETAIN_DELETE_OLDEST, RETAIN_STOP_RECORDING, RETAIN_FAIL_OPERATION
} retain_overflow_e;

/* "delete_oldest", "stop_recording", "fail_operation" */
extern const char *const  retain_overflow_names[3];

typedef enum {
    RETAIN_ON_DELETE_KEEP, RETAIN_ON_DELETE_ARCHIVE, RETAIN_ON_DELETE_DELETE
} retain_on_delete_e;

typedef struct {
    uint64_t            ttl_us;     /* 0: no limit, for all of these */
    uint64_t            size;       /* bytes of one file */
    uint64_t            total;      /* ... of all, on the disk */
    uint64_t            keep_us;    /* younger records are not deleted to make
                                       room */
    retain_overflow_e   overflow;
    retain_on_delete_e  on_delete;
    const char         *holds[RETAIN_HOLDS];    /* sandbox ids, "*": all */
    unsigned            nholds;
    const char         *clock;      /* for tests: a file that says how many
                                       seconds we are ahead; or NULL */
} retain_conf_t;

void retain_defaults(retain_conf_t *conf);

/* How full a file is. */
typedef enum {
    RETAIN_ROOM = 0,
    RETAIN_NO_OUTPUT,       /* output is not kept */
    RETAIN_NO_RECORDS       /* nor are operations that begin now */
} retain_level_e;

/* What others have to do with it; any may be NULL. */
typedef struct {
    void   *data;
    /* Has a sandbox open operations? */
    bool  (*busy)(void *data, const char *sandbox);
    /* Its file was archived or deleted. */
    void  (*removed)(void *data, const char *sandbox);
    /* Rows of a file, or the file, are gone, after the commit. */
    void  (*purged)(void *data, const char *dir);
    /* Strict operations of a sandbox (`dir` NULL: of all) are to be refused, or
     * not any more (then `sandbox` may be NULL); `limit` is the one reached. */
    void  (*full)(void *data, const char *dir, const char *sandbox, bool full,
                  const char *limit);
} retain_hooks_t;

typedef struct retain_s  retain_t;

retain_t *retain_new(const retain_conf_t *conf, store_t *store,
    const retain_hooks_t *hooks);
void retain_free(retain_t *r);

/* That file was written (after the commit). */
void retain_touch(retain_t *r, const store_db_t *db);

/* Another than the limits deleted rows of a file: who follows it is told. */
void retain_purged(retain_t *r, const store_db_t *db);

/* Limits, or what they may delete, were changed: they are looked at anew. */
void retain_again(retain_t *r, const store_db_t *db);

/* How full is it?  Before a transaction; cheap. */
retain_level_e retain_level(retain_t *r, store_db_t *db);

/*
 * Works for about `us` microseconds, in small steps.  `floor`: records up to
 * this cursor are never read from the journal again.  True: there is more to
 * do now.
 */
bool retain_work(retain_t *r, uint64_t floor, uint64_t us);

/* Is some file so much over its limit that writing has to wait for it? */
bool retain_urgent(const retain_t *r);

/* Now, as limits see it. */
uint64_t retain_now(retain_t *r);

/* Does the configuration hold a sandbox (--history-hold)? */
bool retain_named(const retain_t *r, const char *sandbox);

/* Is a file on hold, by that or by a command? */
bool retain_held(const retain_t *r, store_db_t *db);

/*
 * Legal hold of a file, for `sandbox-history hold`; `who` is told in the
 * record.  *changed: it was the other way before.  An SQLite code.
 */
int retain_hold(retain_t *r, store_db_t *db, bool hold, const char *who,
    bool *changed);

#endif /* RETAIN_H_INCLUDED */
