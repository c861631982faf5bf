/*
 * The sandboxes of the runtime: each one a root directory, processes under
 * bubblewrap and a listening port of its own.
 */

#ifndef RT_BOX_H_INCLUDED
#define RT_BOX_H_INCLUDED

#include <pthread.h>
#include <sys/types.h>

#include "sb.h"

#define RT_BOXES_MAX     64
#define RT_METADATA_MAX  256

typedef enum {
    RT_BOX_PENDING, RT_BOX_RUNNING, RT_BOX_PAUSED, RT_BOX_STOPPING,
    RT_BOX_TERMINATED
} rt_box_state_e;

typedef struct {
    char  *key;
    char  *value;
} rt_label_t;

typedef struct rt_box_s  rt_box_t;

struct rt_box_s {
    rt_box_t         *next;             /* newest first */
    unsigned          refs;
    pthread_mutex_t   op;               /* one change at a time */

    char              id[37];
    char             *image;            /* JSON, without credentials */
    char              snapshot[37];     /* it began with; image is NULL then */
    char             *platform;         /* JSON, or NULL */
    char             *entrypoint;       /* JSON array */
    char            **argv;             /* the same */
    char            **env;              /* NAME=VALUE, of the request */
    rt_label_t        metadata[RT_METADATA_MAX];
    unsigned          nmetadata;

    rt_box_state_e    state;
    const char       *reason;
    const char       *message;
    uint64_t          created_us;
    uint64_t          changed_us;
    uint64_t          expires_us;       /* 0: never */

    char             *dir;
    uint16_t          port;             /* of its execd */
    pid_t             pid;              /* bubblewrap, or the init process */
    pid_t            *stopped;          /* frozen by us, parents first */
    size_t            nstopped;
};

typedef struct {
    const char  *data;                  /* DIR */
    bool         unconfined;
    unsigned     grace_ms;
    bool         no_kernels;
    const char  *address;               /* where the runtime listens */
} rt_boxes_conf_t;

/* Once, before threads are started: makes DIR/sandboxes, removes what an
 * earlier runtime left, tries bubblewrap.  false with one sentence in why. */
bool rt_boxes_init(const rt_boxes_conf_t *conf, char *why, size_t n);

/* The main thread's work: starts sandboxes for the others (they die with the
 * thread that started them), ends those whose time is over, until SIGTERM or
 * SIGINT.  Then ends all of them. */
void rt_boxes_run(void);

/* Takes b (made with rt_box_new, filled in) into the store and starts it.
 * false with one sentence in why; b is then freed. */
rt_box_t *rt_box_new(void);
bool rt_box_start(rt_box_t *b, char *why, size_t n);
void rt_box_free(rt_box_t *b);

/* A sandbox by its id, or NULL.  End with rt_box_release(). */
rt_box_t *rt_box_find(sb_str_t id);
void rt_box_release(rt_box_t *b);

/* All of them, newest first; malloc'ed list of *n, each to be released. */
rt_box_t **rt_boxes_list(size_t *n);

/* Changes; the caller holds b->op.  false: not in the state for it. */
bool rt_box_pause(rt_box_t *b);
bool rt_box_resume(rt_box_t *b);
/* Kills its processes, removes its directory and takes it out of the store. */
void rt_box_delete(rt_box_t *b);

/* The store's lock protects what lists show: state, metadata, times. */
void rt_boxes_lock(void);
void rt_boxes_unlock(void);

/* --- inside --- */

extern rt_boxes_conf_t  rt_boxes_conf;

/* Makes the file tree of a sandbox.  0 or -1 with errno. */
int rt_root_make(const char *root, const char *hostname);
/* Makes a tree that a sandbox has left fit for another one: real directories
 * where something is to be mounted, whatever stands there now, and the host
 * name.  No link in it is followed.  0 or -1 with errno. */
int rt_root_mend(const char *root, const char *hostname);

/* Starts b's processes (main thread only).  false with a sentence. */
bool rt_box_spawn(rt_box_t *b, char *why, size_t n);
/* Tries a sandbox that does nothing. */
bool rt_box_probe(char *why, size_t n);

/* Stops, continues or kills all processes below pid, pid itself only by
 * kill. */
void rt_freeze(pid_t pid, pid_t **stopped, size_t *n);
void rt_thaw(pid_t *stopped, size_t n);
void rt_kill_tree(pid_t pid);

#endif /* RT_BOX_H_INCLUDED */
