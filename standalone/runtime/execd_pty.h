/*
 * Terminal sessions: shared by execd_pty.c, execd_pty_open.c and
 * execd_pty_ws.c.
 */

#ifndef RT_EXECD_PTY_H_INCLUDED
#define RT_EXECD_PTY_H_INCLUDED

#include <pthread.h>
#include <sys/types.h>

#include <wslay/wslay.h>

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

/* One WebSocket. */
typedef struct {
    rt_pty_t                 *s;
    bool                      locked;       /* we hold the session */
    bool                      pipe;
    uint64_t                  since;

    wslay_event_context_ptr   ws;
    int                       fd;
    int                       in;           /* copy of the shell's input */
    bool                      broken;
    bool                      evicted;      /* by another client */
    bool                      end;          /* nothing more is to be said */
    uint16_t                  code;         /* of the close frame, 0: none */
    const char               *reason;
    uint64_t                  heard_ms;
    uint64_t                  wrote_ms;
    sb_buf_t                  typed;
    rt_pty_client_t           client;
    const char               *extra;        /* read with the head */
    size_t                    nextra;
} rt_pty_ws_t;

/* Talks on an accepted WebSocket until it ends (rt_upgraded_pt). */
void rt_pty_talk(void *ctx, int fd, const char *extra, size_t n);
/* Waits for the holder to go.  false: it does not. */
bool rt_pty_takeover(rt_pty_ws_t *w);
/* Starts the shell if it does not run, and attaches. */
bool rt_pty_attach(rt_pty_ws_t *w);
void rt_pty_unlock(rt_pty_ws_t *w);

/* Queue a frame, a text frame (takes b) or an error frame. */
void rt_ws_queue(rt_pty_ws_t *w, uint8_t opcode, const void *p, size_t n);
void rt_ws_text(rt_pty_ws_t *w, sb_buf_t *b);
void rt_ws_error(rt_pty_ws_t *w, const char *code, const char *text);

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
