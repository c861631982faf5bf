/* What locks*.c share. */

#ifndef LOCKS_INT_H_INCLUDED
#define LOCKS_INT_H_INCLUDED

#include "locks.h"
#include "table.h"

#include <pthread.h>

typedef struct locks_node_s   locks_node_t;
typedef struct locks_req_s    locks_req_t;
typedef struct locks_entry_s  locks_entry_t;
typedef struct locks_inst_s   locks_inst_t;
typedef struct locks_box_s    locks_box_t;

/* One key of one request, at its place in the tree. */
struct locks_entry_s {
    locks_req_t    *req;
    locks_node_t   *node;
    bool            write;
    bool            linked;         /* it stands in a list of its node */
    locks_entry_t  *prev, *next;
};

typedef struct {
    locks_entry_t  *first, *last;
} locks_list_t;

/* A place: a sandbox's root, or a name below another place. */
struct locks_node_s {
    table_node_t    node;           /* key: `key`, the parent and the name */
    locks_node_t   *parent;
    locks_node_t   *child;          /* first one */
    locks_node_t   *prev, *next;    /* beside it */
    locks_list_t    held;
    locks_list_t    wait;           /* in their order; those that only read are
                                       not here: nobody waits for them */
    unsigned        entries;        /* of any request, here */
    unsigned        reads_below;    /* in the lists of places below */
    unsigned        writes_below;
    size_t          len;
    char            key[];
};

typedef enum {
    LOCKS_R_WAITING, LOCKS_R_SLOT, LOCKS_R_HELD
} locks_state_e;

/* Who took a lease, besides `actor`. */
typedef struct {
    char            type[32];
    char            identity[LOCKS_TEXT];
    char            owner[LOCKS_TEXT];
} locks_who_t;

struct locks_req_s {
    table_node_t    node;           /* key: id */
    uint8_t         id[16];
    locks_state_e   state;
    bool            lease;          /* it is one; else an operation */
    bool            declared;
    bool            detached;
    unsigned        rank;           /* 0 inside a lease, 1 writes, 2 reads */
    uint64_t        order;
    locks_req_t    *inside;         /* the lease it is inside of, or NULL */

    locks_inst_t   *inst;           /* NULL: of nobody connected */
    locks_req_t    *iprev, *inext;
    locks_box_t    *box;
    locks_req_t    *bprev, *bnext;

    locks_req_t    *blocker;        /* what it waits for */
    locks_req_t    *blocked;        /* first of those that wait for it */
    locks_req_t    *wprev, *wnext;

    sb_limit_e   class;
    unsigned        limit, queue;
    uint64_t        limit_us;
    locks_req_t    *snext;          /* in the queue for a slot */

    uint64_t        since_us;
    uint64_t        waited_us;
    uint64_t        deadline_us;
    size_t          heap;           /* place in it, from 1; 0: none */

    /* of a lease */
    table_node_t    token;          /* key: hash */
    uint8_t         hash[32];
    bool            tokened;
    uint64_t        fence;
    uint64_t        expires_us;     /* Unix */
    uint64_t        ttl_us;
    locks_who_t    *who;

    bool            told;           /* live streams know of it */
    bool            ended;          /* and of its end */
    bool            quiet;          /* it waits, they do not know yet */
    locks_req_t    *qprev, *qnext;  /* among those */

    char            type[32];
    char            actor[LOCKS_TEXT];

    size_t          nkeys;
    locks_entry_t   keys[];
};

struct locks_inst_s {
    table_node_t    node;
    uint64_t        id;
    locks_req_t    *reqs;
    int             pidfd;          /* of a closed one, or -1 */
    uint64_t        gone_us;        /* 0: it is connected */
    locks_inst_t   *gprev, *gnext;  /* among those that are gone */
};

struct locks_box_s {
    table_node_t    node;
    locks_req_t    *reqs;           /* newest first */
    unsigned        running[SB_LIMITS];
    unsigned        queued[SB_LIMITS];
    locks_req_t    *slots[SB_LIMITS];
    locks_req_t   **slots_last[SB_LIMITS];
    unsigned        pins;           /* not to be freed meanwhile */
    size_t          len;
    char            name[];
};

typedef struct locks_note_s  locks_note_t;

struct locks_note_s {
    locks_note_t   *next;
    size_t          len;
    char            event[];        /* a locks_event_t up to the end of `key` */
};

struct locks_s {
    pthread_mutex_t   lock;
    int               wake_fd;

    table_t           reqs;
    table_t           nodes;
    table_t           boxes;
    table_t           insts;
    table_t           tokens;
    locks_inst_t     *gone;
    size_t            max_reqs;
    size_t            max_leases;
    size_t            nkeys, nleases, nwaiting;

    uint64_t          order;
    uint64_t          fence;        /* last one given */
    uint64_t          recall_us;    /* until then nothing is granted; 0: no */

    locks_req_t     **heap;         /* by deadline, from 1 */
    size_t            nheap, heap_cap;

    locks_note_t     *notes, **notes_last;
    locks_tale_t     *tales, **tales_last;
    size_t            tales_bytes;
    locks_req_t      *quiet, *quiet_last;
};

/* --- locks_tell.c: with the lock held -------------------------------------- */

/* Tells live streams what became of a request; `reason` may be NULL. */
void locks_tale(locks_t *t, locks_req_t *r, const char *phase,
    const char *reason);
/* The last that is told of it. */
void locks_over(locks_t *t, locks_req_t *r, const char *phase,
    const char *reason);
/* It begins to wait; it does no more. */
void locks_quiet_add(locks_t *t, locks_req_t *r);
void locks_quiet_remove(locks_t *t, locks_req_t *r);
/* Tells of those that have waited long; when to look again, 0: there are none.
 */
uint64_t locks_quiet_due(locks_t *t, uint64_t now_us);

/* --- locks_tree.c: with the lock held ------------------------------------- */

/* Finds or makes the places of a request's keys; SB_LIMIT, SB_NOMEM: then no
 * key has a place. */
sb_rc_t locks_place(locks_t *t, locks_req_t *r, sb_str_t sandbox,
    const sb_lock_key_t *keys);
/* Puts the entries into the lists: of holders, or of those that wait. */
void locks_link(locks_req_t *r, bool held);
void locks_unlink(locks_req_t *r);
/* Gives the places back. */
void locks_unplace(locks_t *t, locks_req_t *r);
/* A request that this one has to wait for, and the key of its own that it
 * waits with; NULL: none. */
locks_req_t *locks_blocker(locks_req_t *r, locks_entry_t **key);
/* Writes the path of a place, NUL-terminated, cut at `size`. */
void locks_path(char *dst, size_t size, const locks_node_t *n);

/* --- locks_heap.c: with the lock held ------------------------------------- */

/* us 0: none.  There is room, see below. */
void locks_deadline(locks_t *t, locks_req_t *r, uint64_t us);
/* Room for one request more; false without memory. */
bool locks_heap_room(locks_t *t);

/* --- locks.c, for the others: with the lock held -------------------------- */

locks_req_t *locks_req_new(locks_t *t, const uint8_t id[16], sb_str_t sandbox,
    const sb_lock_key_t *keys, size_t nkeys, sb_rc_t *rc);
/* Grants it, or lets it wait for what is in its way. */
void locks_try(locks_t *t, locks_req_t *r, uint64_t now_us);
/* It begins to wait: goes on at once when nothing is in its way.  timeout_us 0:
 * until somebody ends it. */
void locks_wait(locks_t *t, locks_req_t *r, uint64_t now_us,
    uint64_t timeout_us);
/* Takes it out of everything, frees it and lets others on. */
void locks_req_end(locks_t *t, locks_req_t *r, uint64_t now_us);
/* The keys are there: it goes on, waits for a slot, or is refused and freed. */
void locks_slot(locks_t *t, locks_req_t *r, uint64_t now_us);
/* It waits for one no more. */
void locks_slot_leave(locks_t *t, locks_req_t *r);
/* One of a class has left its slot. */
void locks_slot_next(locks_t *t, locks_box_t *b, sb_limit_e class,
    uint64_t now_us);
void locks_own(locks_req_t *r, locks_inst_t *i);
void locks_disown(locks_req_t *r);
void locks_event(locks_req_t *r, sb_lock_code_e code, locks_event_t *e);
void locks_tell(locks_t *t, const locks_event_t *e);
/* Tells the worker of an operation; a lease's own question looks by itself. */
void locks_answer(locks_t *t, locks_req_t *r, sb_lock_code_e code);
void locks_wake(locks_t *t);
void locks_copy(char *dst, size_t size, sb_str_t text);

#endif /* LOCKS_INT_H_INCLUDED */
