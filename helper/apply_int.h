/* What apply*.c share. */

#ifndef APPLY_INT_H_INCLUDED
#define APPLY_INT_H_INCLUDED

#include "apply.h"
#include "rows.h"
#include "table.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct apply_op_s     apply_op_t;
typedef struct apply_box_s    apply_box_t;
typedef struct apply_group_s  apply_group_t;

#define APPLY_BUF    (JOURNAL_RECORD_MAX + 2 * 1024 * 1024)
#define APPLY_LOST_FRAME  256   /* of ours about one that cannot be read */

/* Where a record stands that waits. */
typedef struct {
    uint64_t        cursor;
    off_t           offset;
    uint32_t        segment;
    uint32_t        size;
    bool            lost;           /* the journal does not give it back */
    apply_op_t     *op;
} apply_aside_t;

/* A sandbox that was named. */
struct apply_box_s {
    table_node_t    node;
    char           *id;
    char            dir[STORE_DIR_LEN];
    bool            file;           /* has a history file */
    bool            seen;           /* upstream has shown that it exists */
    bool            none_held;      /* _gateway holds nothing of it for sure */
    char           *name;
    char           *instance;
    char           *state;          /* as last written */
    char           *written_name;
    unsigned        refs;           /* operations */
    apply_op_t     *away;           /* operations whose rows are in _gateway */

    bool            making;         /* in apply_t.makes */
    bool            asked;          /* its create passed us: upstream knows no
                                       more than we do */
    uint8_t       (*moves)[16];     /* further events to move in */
    size_t          nmoves;
    apply_box_t    *next_make;
    size_t          group;          /* of this batch, by index; 0: none */

    bool            stalled;        /* its file cannot be written now, or not
                                       be made */
    uint64_t        retry_us;
    uint64_t        floor;          /* cursor of _gateway when it was stalled */
    apply_aside_t  *aside;          /* records that wait, in journal order */
    size_t          naside, aaside;
    apply_box_t    *next_stalled;
    apply_box_t    *prev, *next;    /* least recently used first */
};

struct apply_op_s {
    table_node_t    node;
    rows_op_t       row;
    apply_box_t    *box;            /* NULL: _gateway */
    bool            home;           /* rows are in the file of box */
    apply_op_t     *away_prev, *away_next;
    char           *name;           /* of a create request */
    char           *instance;
    uint64_t        pending_us;     /* since when its frames wait */
    uint64_t        pending_at;     /* their cursor, as committed; 0: none do */
    bool            deletes;        /* is a sandbox.delete */
    bool            over;           /* forget it after this batch */
    bool            stray;          /* its beginning is not in reach */
    bool            missed;         /* is to be applied behind the cursor of
                                       its file */
    apply_op_t     *next_over;
    size_t          aside;          /* records of it that wait */
    bool            parked;         /* over, when these are applied */

    /* of one slice */
    rows_record_t  *first, **last;
    bool            touched;
    int64_t         unkept_was;     /* what row said before it */
    bool            told_was;
};

typedef struct {
    rows_record_t   rec;
    apply_op_t     *op;             /* NULL: a gap, or news of a sandbox */
    apply_box_t    *box;            /* without op: whose; NULL: _gateway */
    sb_str_t        name, state;
    uint32_t        segment;        /* where it stands */
    uint32_t        size;
    off_t           offset;
} apply_item_t;

/* One transaction. */
typedef struct {
    apply_group_t  *group;
    size_t          from, to;       /* items of the group */
    uint64_t        cpu_us;         /* what it took */
    bool            careful;        /* each operation on its own */
} apply_slice_t;

/* What a batch holds for one file. */
struct apply_group_s {
    apply_box_t    *box;            /* NULL: _gateway */
    size_t         *items;
    size_t          n, alloc;
};

struct apply_s {
    store_t          *store;
    retain_t         *retain;       /* or NULL */
    errands_t        *errands;      /* or NULL */
    fetch_t          *fetch;
    int               dirfd;
    journal_t        *journal;
    journal_reader_t  reader;
    char             *buf;

    table_t           ops;
    table_t           boxes;
    apply_box_t      *first, *last;
    unsigned          npending;

    /* one batch */
    uint64_t          batch_from;   /* cursor before it */
    apply_item_t     *items;
    size_t            nitems, aitems;
    apply_group_t    *groups;       /* the first is that of _gateway */
    size_t            ngroups, agroups;
    apply_box_t      *makes;
    apply_op_t       *over;
    apply_box_t      *stalled;
    apply_box_t       gateway;      /* _gateway when it is stalled; in no
                                       table */
    uint64_t          gateway_applied;  /* its cursor when it was open last */
    bool              recover;      /* apply_recover() is still to be done */
    size_t            naside;
    size_t            aside_most;
    off_t             at_offset;    /* of the record being routed */
    uint32_t          at_size;
    char              lost[APPLY_LOST_FRAME];   /* in front of the batch */
    bool              busy;
    uint64_t          oldest_us;    /* time of the first record of the batch */
    uint64_t          newest_us;    /* ... of the last */

    uint64_t          ask_after_us;
    uint64_t          tidy_after_us;
    uint64_t          stored;       /* cursor in the file "applied" */
    uint64_t          lag_us;       /* bounds: see apply_bounds() */
    uint64_t          stop_us;

    pthread_t         thread;
    bool              running;
    pthread_mutex_t   lock;
    pthread_cond_t    wake;
    atomic_bool       waiting;
    uint64_t          wanted;       /* somebody waits for this cursor */
    bool              yields;       /* may be given the lowest priority, for it
                                       can come back */
    atomic_bool       lazy;         /* has it */

    pthread_t         low_id;       /* else: a thread that keeps it */
    bool              low;          /* ... there is one */
    pthread_cond_t    low_wake, low_done;
    apply_slice_t    *low_slice;    /* what it is to write; NULL: done */
    bool              low_ok;
    bool              low_stop;

    bool              hurry;        /* half of the lag bound is used up */
    bool              stop;
    bool              failed;
    uint64_t          applied;
};

/* --- apply_box.c: sandboxes and operations ------------------------------ */

apply_box_t *apply_box(apply_t *a, sb_str_t id);
/* Replaces a remembered text when the new one is not empty. */
void apply_set(char **dst, sb_str_t v, size_t max);
/* Upstream has shown that the sandbox exists: its file is to be made. */
void apply_box_known(apply_t *a, apply_box_t *box);
/* Something is to be moved into its file, which may have to be made. */
void apply_box_make(apply_t *a, apply_box_t *box);
void apply_boxes_trim(apply_t *a);
void apply_boxes_free(apply_t *a);

apply_op_t *apply_op(apply_t *a, const uint8_t id[16]);
apply_op_t *apply_op_new(apply_t *a, const uint8_t id[16], apply_box_t *box);
/* The rows of an operation may be in _gateway when the file of a box is made:
 * they are to be moved in. */
void apply_box_move(apply_box_t *box, const apply_op_t *op);
/* The operation belongs to that sandbox, as it turns out. */
void apply_op_rehome(apply_op_t *op, apply_box_t *box);
void apply_op_over(apply_t *a, apply_op_t *op);
void apply_ops_forget(apply_t *a);
void apply_ops_free(apply_t *a);

/* --- apply_route.c: which record goes where ----------------------------- */

/* Sorts the records of a buffer into items and groups.  SB_NOMEM without
 * memory. */
sb_rc_t apply_route(apply_t *a, const char *buf, size_t n);
apply_item_t *apply_item(apply_t *a, const journal_record_t *r, apply_op_t *op,
    apply_box_t *box);
sb_rc_t apply_group_add(apply_group_t *g, size_t item);
/* What a SEEN record says of a sandbox, into its item. */
void apply_seen_of(apply_item_t *item, const apply_box_t *box);

/* --- apply_file.c: opening and making files ----------------------------- */

/* Makes the file of a sandbox and moves in what was held for it; `lost`: it
 * had one, which is gone.  An SQLite code: not now. */
int apply_make_file(apply_t *a, apply_box_t *box, bool lost);

/* Does _gateway hold records of the sandbox? */
bool apply_box_held(apply_t *a, const apply_box_t *box);
/* Makes the files of sandboxes that became known; one that cannot be made now
 * is stalled. */
void apply_make_files(apply_t *a);
/* The file of a box is made. */
void apply_made(apply_t *a, apply_box_t *box);
/* The file of _gateway, made if need be, and pinned; NULL with an SQLite code:
 * not now. */
store_db_t *apply_gateway(apply_t *a, int *rc);
/* Can the file be written now?  Outside transactions. */
bool apply_writable(store_db_t *db);
/* What a crash kept from moving out of _gateway; false: not now. */
bool apply_recover(apply_t *a);
/* After a failure of the machine: waits a while; false: give up. */
bool apply_again(apply_t *a, const char *dir, int rc);

/* --- apply_stall.c: files that cannot be written now --------------------- */

/* Whose file a group is for. */
apply_box_t *apply_stall_box(apply_t *a, const apply_group_t *g);
/* The file of a box cannot be written, or made, now. */
void apply_stall_mark(apply_t *a, apply_box_t *box, int rc);
/* Puts the items of a group aside, from one on; false: no room for them. */
bool apply_stall(apply_t *a, apply_group_t *g, size_t from, int rc);
/* Tries those again whose time has come, or all. */
void apply_stall_retry(apply_t *a, bool now);
/* Everything up to that cursor is in files, if all up to `cursor` is but for
 * what waits. */
uint64_t apply_floor(const apply_t *a, uint64_t cursor);
/* Tells settled.h what waits. */
void apply_settle(apply_t *a);

/* --- apply_lost.c: records that the journal does not give back ------------ */

/*
 * Items in the place of record i of those of a box that wait: a gap, and the end
 * of its operation if that is what was lost.  `mem` has room for two frames and
 * stays until they are written; the bytes used, 0 without memory.
 */
size_t apply_lost_aside(apply_t *a, apply_box_t *box, size_t i,
    apply_group_t *g, char *mem);
/* Log and number of such a record. */
void apply_lost_told(const apply_aside_t *p, const char *dir);
/* An item for those that the reader has passed over in front of the n bytes of
 * the buffer (0: up to `tail`). */
sb_rc_t apply_lost_passed(apply_t *a, size_t n, uint64_t tail);

/* --- apply_write.c: into the files -------------------------------------- */

/* Writes a slice; an SQLite code of the machine's failure. */
int apply_slice_try(apply_t *a, apply_slice_t *s);

/* Writes a slice, or what of it cannot be written now waits; its time goes into
 * s->cpu_us.  False: stop. */
bool apply_slice(apply_t *a, apply_slice_t *s);
bool apply_write_groups(apply_t *a);
/* Is half of the lag bound used up, or does somebody wait? */
bool apply_pressed(apply_t *a);
/* Time of the traffic was spent: leaves the core to it for a while. */
void apply_pause(apply_t *a, uint64_t cpu_us);
/* Gives polls their rows that wait for more than two seconds. */
bool apply_force_pending(apply_t *a, uint64_t now_us);

/* --- apply_low.c: with the lowest priority ------------------------------- */

/* Finds out how it can be had. */
void apply_low_start(apply_t *a);
void apply_low_stop(apply_t *a);
/* apply_slice() in the thread that has it, which there is (a->low). */
bool apply_low_slice(apply_t *a, apply_slice_t *s);

#endif /* APPLY_INT_H_INCLUDED */
