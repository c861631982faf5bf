/* Terminal sessions: shared by execd_pty.c and execd_pty_ws.c. */

#ifndef RT_EXECD_PTY_H_INCLUDED
#define RT_EXECD_PTY_H_INCLUDED

#include <pthread.h>
#include <sys/types.h>

#include "execd.h"

#define RT_REPLAY_MAX  (1024 * 1024)
#define RT_PIECE_MAX   (32 * 1024)

/* The attached client: output on its way to it, as records of a channel byte,
 * a 32-bit length (ours) and the bytes. */
typedef struct {
    sb_buf_t  queue;
    int       wake;             /* eventfd: something changed */
    bool      evicted;
} rt_pty_client_t;

typedef struct rt_pty_s  rt_pty_t;

struct rt_pty_s {
    rt_pty_t         *next;
    unsigned          refs;
    char              id[37];
    char             *cwd;          /* NULL: ours */
    char             *command;      /* NULL: interactive */

    pthread_mutex_t   lock;
    pthread_cond_t    cond;
    bool              held;         /* a client has it, or is about to */
    rt_pty_client_t  *client;

    bool              running;
    bool              pty;          /* a terminal, not pipes */
    bool              closing;
    pid_t             pid;
    int               pidfd;
    int               in;           /* to the shell; the master if pty */
    int               out, err;     /* from it; err -1 if pty */
    int               exit_code;

    char             *ring;
    uint64_t          total;        /* bytes of output so far */
};

/* Starts bash.  0 or -1 with errno; s->lock is held. */
int rt_pty_start(rt_pty_t *s, bool pty);
/* Copies kept output from `since` on; returns its offset; s->lock is held. */
uint64_t rt_pty_replay(rt_pty_t *s, uint64_t since, sb_buf_t *dst);
void rt_pty_signal(rt_pty_t *s, const char *name);
void rt_pty_resize(rt_pty_t *s, unsigned short cols, unsigned short rows);

/* A session by its id with one more reference, or NULL. */
rt_pty_t *rt_pty_find(const char *id);
void rt_pty_release(rt_pty_t *s);

#endif /* RT_EXECD_PTY_H_INCLUDED */
