/*
 * Locks, leases and limits (design 2): per sandbox and path.  A key means the
 * path and all under it; reads share, writes exclude.  All keys of an operation
 * are granted at once, so that nobody holds one while waiting for another and
 * no order of them can block.
 *
 * Who goes first: operations inside a lease, then those that write, then those
 * that only read; of a kind, those that came first.  A request waits for every
 * holder, and for every waiter before it, that it has a key against.
 *
 * Any thread may call; one lock guards it all.  What is granted or refused
 * comes out of locks_take().  The thread that calls that, locks_ask(),
 * locks_end() and locks_due() looks by itself; the eventfd is written when
 * another has changed something.
 * Times are sb_mono_us() unless they say otherwise.
 */

#ifndef LOCKS_H_INCLUDED
#define LOCKS_H_INCLUDED

#include "frame.h"
#include "lock.h"

#define LOCKS_REQUESTS   65536      /* --locks: held and waiting, of all */
#define LOCKS_NODES      8          /* places in the tree for each of these */
#define LOCKS_LEASES     4096       /* --leases */
#define LOCKS_TEXT       128        /* of an actor, an owner, a type */
#define LOCKS_FRAME      (SB_LOCK_KEYS * (SB_LOCK_PATH + 8) + 2048)
#define LOCKS_AWAY_US    2000000u   /* a worker may come back within */
#define LOCKS_LOOK_US    10000u     /* ... is it alive? */
#define LOCKS_TELL_US    100000u    /* a wait is told of after that */
#define LOCKS_CHAIN      1024       /* of a queue, that is walked for its head:
                                       else who stands so far ahead is named */
#define LOCKS_TALES      (4 * 1024 * 1024)  /* bytes of frames to be taken */
#define LOCKS_RECALL_US  500000u    /* after our start */

typedef struct locks_s  locks_t;

typedef struct {
    uint64_t             instance;
    uint8_t              op[16];
    sb_str_t             sandbox;
    sb_str_t             type;          /* of the operation, for people */
    sb_str_t             actor;         /* the same */
    const sb_lock_key_t *keys;          /* paths as sb_lock_path() writes them */
    size_t               nkeys;
    uint64_t             timeout_us;
    sb_str_t             lease;         /* its token; empty: none */
    sb_limit_e        class;
    unsigned             limit;         /* at once; 0: without limit */
    unsigned             queue;         /* that may wait besides */
    uint64_t             limit_us;      /* ... for that long */
    bool                 declared;      /* kept for a command that goes on */
    bool                 held;          /* told again: it was granted before */
} locks_ask_t;

typedef struct {
    uint64_t      instance;
    uint8_t       op[16];
    sb_lock_code_e  code;
    uint64_t      waited_us;
    bool          write;                /* the key waited for, and its holder */
    char          holder[40];           /* operation or lease id */
    char          actor[LOCKS_TEXT];
    char          owner[LOCKS_TEXT];    /* of a lease, else empty */
    char          key[SB_LOCK_PATH + 1];
} locks_event_t;

/* `wake_fd`: an eventfd, or -1.  NULL without memory. */
locks_t *locks_new(size_t requests, size_t leases, int wake_fd);
void locks_free(locks_t *t);

/* We have started: nothing is granted, and nothing is too late, before
 * locks_recalled(), or for LOCKS_RECALL_US. */
void locks_recall(locks_t *t, uint64_t now_us);
/* All who were there have told what they hold. */
void locks_recalled(locks_t *t);
bool locks_recalling(locks_t *t);

/* An operation asks; its answer is an event, which may be there at once.  What
 * asks again is answered again. */
void locks_ask(locks_t *t, const locks_ask_t *a, uint64_t now_us);
/* It is over.  `detached`: its command goes on, declared keys are kept until
 * this is called again without it. */
void locks_end(locks_t *t, const uint8_t op[16], bool detached);

/* A worker is connected; it is not, `pid` (0: unknown) is to be looked at:
 * what it has is freed when it is dead, or does not come back. */
void locks_connected(locks_t *t, uint64_t instance);
void locks_closed(locks_t *t, uint64_t instance, int pid, uint64_t now_us);

/* Ends what is due; returns the time at which to be called again, 0: never. */
uint64_t locks_due(locks_t *t, uint64_t now_us);

/* The next event; false: none. */
bool locks_take(locks_t *t, locks_event_t *e);

/* A LOCK frame for the journal. */
typedef struct locks_tale_s  locks_tale_t;

struct locks_tale_s {
    locks_tale_t  *next;
    size_t         len;
    char           frame[];
};

/* Takes what is to be told live (locks_tell.c), the oldest first, up to
 * LOCKS_TALES: what is over is lost and counted.  The caller frees each. */
locks_tale_t *locks_tales(locks_t *t);

/* --- leases (locks_lease.c) ----------------------------------------------- */

#define LOCKS_TOKEN  64             /* text of a token, with its NUL */

typedef struct {
    uint8_t   id[16];
    uint8_t   hash[32];         /* SHA-256 of its token */
    uint64_t  fence;            /* grows, over restarts too */
    uint64_t  expires_us;       /* Unix; 0: it is not granted yet */
    sb_str_t  sandbox;
    sb_str_t  actor_type;       /* who took it, as the gateway knows */
    sb_str_t  actor;
    sb_str_t  identity;         /* ... and by what */
    sb_str_t  owner;            /* free text */
    const sb_lock_key_t  *keys;
    size_t    nkeys;
} locks_lease_t;

/*
 * Asks for the keys (sandbox, owner, keys are given; id, hash, fence and
 * `token` filled in).  It waits until it is granted, or ended.  SB_LIMIT: there
 * are too many, or requests; SB_NOMEM.
 */
sb_rc_t locks_lease_new(locks_t *t, locks_lease_t *l, char token[LOCKS_TOKEN],
    uint64_t ttl_us, uint64_t now_us);
/* When does it expire?  0: it still waits; SB_DECLINED: there is none. */
sb_rc_t locks_lease_state(locks_t *t, const uint8_t id[16],
    uint64_t *expires_us);
/*
 * May it be renewed or ended by whom `by` describes: who has its token, or took
 * it (the same actor; without one, the same credential), or is an admin?
 * SB_DECLINED: there is no such lease of that sandbox; SB_ERROR: no.
 */
typedef struct {
    sb_str_t  token;            /* empty: none */
    sb_str_t  actor_type;
    sb_str_t  actor;
    sb_str_t  identity;
    bool      admin;
} locks_asker_t;

sb_rc_t locks_lease_may(locks_t *t, const uint8_t id[16], sb_str_t sandbox,
    const locks_asker_t *by);
/* What is in its way, as of an operation that is refused; and ends it. */
void locks_lease_refuse(locks_t *t, const uint8_t id[16], locks_event_t *e);
/* Holds it for ttl_us from now on; fills expires_us and fence.  False: no
 * such lease of that sandbox. */
bool locks_lease_renew(locks_t *t, const uint8_t id[16], sb_str_t sandbox,
    uint64_t ttl_us, uint64_t now_us, locks_lease_t *l);
bool locks_lease_end(locks_t *t, const uint8_t id[16], sb_str_t sandbox);
/* One that was in the journal: granted before we started. */
sb_rc_t locks_lease_restore(locks_t *t, const locks_lease_t *l,
    uint64_t now_us);

/* The keys of a command that goes on without its request are kept in the same way,
 * in a LEASE frame with DECLARED and the operation's id; its END gives them back.
 * Makes that frame, of LOCKS_FRAME bytes at most; 0: the operation keeps none. */
size_t locks_kept_frame(locks_t *t, const uint8_t op[16], void *mem);

/* The LEASE frame of a lease as it is now; its length, 0: no room. */
size_t locks_lease_frame(const locks_lease_t *l, void *mem, size_t size);
/* Takes note of such a frame, of a LOCK or of an END that is in the journal, at
 * our start. */
void locks_note(locks_t *t, const sb_frame_t *f);
/* Appends those of all leases, and of commands that keep keys, for the beginning of a segment; their number. */
size_t locks_state(locks_t *t, sb_buf_t *out);

/* --- to be seen (locks_list.c) --------------------------------------------- */

typedef struct {
    uint8_t        id[16];
    bool           lease;
    bool           detached;
    const char    *state;           /* "held", "waiting", "queued" */
    const char    *type;            /* of the operation; of a lease "lease" */
    const char    *actor;
    const char    *owner;           /* of a lease; else NULL */
    uint64_t       since_us;        /* how long ago it asked */
    uint64_t       waited_us;
    uint64_t       expires_us;      /* Unix; 0: none */
    uint64_t       fence;           /* of a lease, else 0 */
    size_t         nkeys;
} locks_row_t;

/* Tells of each request of a sandbox, newest first, with the lock held: row(),
 * key() for each of its keys, done().  False of row() ends it. */
typedef struct {
    bool  (*row)(void *data, const locks_row_t *r);
    void  (*key)(void *data, bool write, const char *path);
    void  (*done)(void *data);
    void   *data;
} locks_list_pt;

void locks_list(locks_t *t, sb_str_t sandbox, const locks_list_pt *l,
    uint64_t now_us);
/* Takes away what a request holds, or ends its waiting with SB_LOCK_BROKEN; false:
 * the sandbox has none of that id. */
bool locks_break(locks_t *t, const uint8_t id[16], sb_str_t sandbox);

typedef struct {
    size_t  requests, waiting, keys, places, leases;
    size_t  max_requests, max_leases;
} locks_numbers_t;

void locks_numbers(locks_t *t, locks_numbers_t *n);

#endif /* LOCKS_H_INCLUDED */
