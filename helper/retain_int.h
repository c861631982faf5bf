/* What retain*.c share. */

#ifndef RETAIN_INT_H_INCLUDED
#define RETAIN_INT_H_INCLUDED

#include "purge.h"
#include "retain.h"

#include <dirent.h>

#define RETAIN_GONE       ".gone"   /* behind the name of what goes */
#define RETAIN_PATH_MAX   1024
#define RETAIN_NAME_LEN   192         /* of a directory or an archived file */
#define RETAIN_SWEEP_US   60000000u     /* every file is looked at that often */
#define RETAIN_TOUCH_US   1000000u      /* one that is written, so often */
#define RETAIN_IDLE_US    30000000u     /* one that is not gives space back */
#define RETAIN_DRY_US     1000000u      /* where nothing can go is not asked for
                                           so long */
#define RETAIN_BUSY_MS    250           /* as the store has it */
#define RETAIN_LEASE_US   3600000000u   /* somebody's lease counts so long */
#define RETAIN_CONSUMER_US  ((uint64_t) 30 * 86400 * 1000000)   /* of archives */
#define RETAIN_GONE_US    10000000u     /* what comes behind a delete has come */
#define RETAIN_GAP_US     3600000000u   /* gaps of a full file are told, once in */
#define RETAIN_TRIM       (256 * 1024)  /* bytes of a log that are worth it */
#define RETAIN_TRIM_US    10000000u
#define RETAIN_STEPS      64            /* ... made before a file is written */
#define RETAIN_VACUUM     256           /* pages given back in one step */

typedef struct retain_file_s  retain_file_t;

/* Times are those of a clock that nobody sets (sb_mono_us), but for those that
 * are held against records: oldest_us, ttl_us, gap_us, stays_us. */
struct retain_file_s {
    table_node_t    node;
    char            dir[RETAIN_NAME_LEN];
    retain_file_t  *next;           /* of those to look at */
    bool            queued;
    bool            archive;        /* a file in the archive: dir is its name */
    bool            held;
    bool            dry;            /* nothing can be deleted to make room */
    bool            soon;           /* of the run: purge_done_t.soon */
    uint64_t        dry_us;         /* ... before that, whatever is written */
    uint64_t        stays_us;       /* of the run: when the first that stays, and
                                       may go later, was completed; 0: none */
    bool            full;           /* was told so */
    bool            busy;           /* a run is not at its end */
    bool            broken;         /* what was to go cannot be deleted, ever */
    unsigned        sweep;          /* number of the one that saw it last */
    uint64_t        physical;       /* bytes on the disk, the log with them */
    uint64_t        wal;            /* ... of the log */
    uint64_t        trim_us;        /* the log was to be cut then */
    bool            trim;           /* it is to be cut now */
    uint64_t        oldest_us;      /* of what may go; 0: nothing, or unknown */
    uint64_t        ttl_us;         /* not looked at for its age before */
    uint64_t        written_us;
    uint64_t        look_us;        /* not before */
    uint64_t        squeeze;        /* bytes that must go for the total */
    uint64_t        gap_us;         /* when a gap was told last */
    uint64_t        lease_us;       /* somebody has a lease since; 0: nobody */
    int64_t         after;          /* place in the run */
};

/* What a file says of itself. */
typedef struct {
    uint64_t           logical;
    uint64_t           pages;
    uint64_t           unused;
    bool               held;
    bool               gone;
    uint64_t           gone_us;
    uint64_t           size;        /* limits that count for it */
    uint64_t           ttl_us;
    retain_overflow_e  overflow;
    int64_t            days;        /* consumers count as active */
    int64_t            unkept;      /* operations without a row, not yet told */
    uint64_t           unkept_from;
    uint64_t           unkept_to;
    bool               vacuums;     /* auto_vacuum is incremental */
} retain_facts_t;

struct retain_s {
    retain_conf_t    conf;
    retain_hooks_t   hooks;
    store_t         *store;
    table_t          files;
    retain_file_t   *first, **last; /* to look at */
    uint64_t         total;         /* bytes on the disk, as known */
    bool             total_full;    /* told so */
    bool             known;         /* a sweep has come to its end */
    uint64_t         floor;

    DIR             *sweep;
    bool             sweep_archive;
    unsigned         sweeps;
    uint64_t         sweep_us;      /* next one not before */
    int64_t          ahead_us;      /* clock of tests */
    uint64_t         clock_us;      /* read then, by sb_mono_us() */
    retain_file_t   *urgent;
};

/* --- retain.c ------------------------------------------------------------- */

retain_file_t *retain_file(retain_t *r, const char *dir, bool archive);
void retain_forget(retain_t *r, retain_file_t *f);
void retain_queue(retain_t *r, retain_file_t *f);
/* Its size on the disk, into the sum. */
void retain_measure(retain_t *r, retain_file_t *f);
/* Path of its database; 0: too long. */
size_t retain_path(const retain_t *r, const retain_file_t *f, char *dst,
    size_t size);

/* --- retain_file.c -------------------------------------------------------- */

/* One small step for a file.  True: there is more to do for it now. */
bool retain_look(retain_t *r, retain_file_t *f);
/* Deletes the oldest of a file that is about to be written, at once. */
void retain_room(retain_t *r, store_db_t *db);
int retain_facts(retain_t *r, store_db_t *db, retain_facts_t *facts);

/* --- retain_gone.c -------------------------------------------------------- */

/* Archives or deletes the file of a sandbox that is gone; `rule` is told in
 * the tombstone.  The file is closed then.  False: not now. */
bool retain_remove(retain_t *r, retain_file_t *f, store_db_t *db,
    bool archive, const char *rule);
/* Deletes an archived file; false: it may not go, or cannot, now. */
bool retain_remove_archive(retain_t *r, retain_file_t *f, const char *rule);
/* An entry of the history directory or of the archive whose deletion a crash
 * kept from being told: it is put back. */
void retain_come_back(retain_t *r, const char *name, bool archive);
/* When an archived file was archived, from its name; 0: it is none. */
uint64_t retain_archived(const char *name);

#endif /* RETAIN_INT_H_INCLUDED */
