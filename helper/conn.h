/* One connection of a worker: bounded buffers both ways. */

#ifndef CONN_H_INCLUDED
#define CONN_H_INCLUDED

#include "frame.h"
#include "inflight.h"

#include <sys/types.h>

#define CONN_IN_MIN   (64 * 1024)
#define CONN_IN_MAX   (SB_FRAME_MAX + 64 * 1024)
#define CONN_OUT_MAX  (4 * 1024 * 1024)
/* Of a bulk connection: as many windows as may be open. */
#define CONN_BULK_MAX (64 * 1024 * 1024)
#define CONN_OUT_KEEP (1024 * 1024)     /* kept when all is sent */

typedef struct conn_s  conn_t;

struct conn_s {
    conn_t           *prev, *next;
    int               fd;
    uid_t             uid;          /* of the peer */
    pid_t             pid;
    uint64_t          id;           /* never used twice */
    inflight_inst_t  *inst;         /* NULL before HELLO */
    uint64_t          instance;
    bool              bulk;
    bool              cli;          /* ... of sandbox-history: errands only */
    bool              inspects;     /* it asks about archives, and has said no
                                       HELLO */
    int               passed;       /* descriptor that came with a frame; -1 */
    bool              told;         /* what it holds, since it connected */
    bool              deaf;         /* nobody reads what we send any more */
    bool              dead;         /* close it after this round */
    bool              writing;      /* registered for EPOLLOUT */

    char             *in;
    size_t            in_len, in_cap;
    size_t            in_used;      /* handled bytes of in, this round */
    bool              more;         /* whole frames were left for next round */

    sb_buf_t          out;
    size_t            out_sent;

    uint64_t          seq;          /* newest kept or dropped frame */
    bool              answer;       /* an ACK is due */
    bool              batch;        /* has frames in this round's write */
    bool              urgent;       /* somebody waits for it */
    bool              granted;      /* ... somebody who has waited for keys */
    unsigned          unanswered;   /* frames it will speak of */
    bool              hole;         /* a frame could not be kept: seq + 1 has to
                                       come first */
    uint64_t          refused;      /* behind the hole, to be answered so */
    uint64_t          next_seq;     /* sync full: written, not being flushed */
    uint64_t          sync_seq;     /* ... being flushed */
};

conn_t *conn_new(int fd, uint64_t id);
void conn_free(conn_t *c);

/* Reads what is there, at most what fits; a descriptor that comes along replaces
 * the one in `passed`.  False: the peer is gone. */
bool conn_read(conn_t *c);
/* Drops the handled bytes and gives memory back. */
void conn_consume(conn_t *c);
/* Makes room for a frame of n bytes.  False without memory. */
bool conn_room(conn_t *c, size_t n);

/* Queues bytes and sends what goes at once; false: it does not read and its queue
 * is full.  What is for one that is gone is dropped: conn_read() tells. */
bool conn_send(conn_t *c, const void *p, size_t n);
/* Queues bytes; conn_flush() sends them. */
bool conn_queue(conn_t *c, const void *p, size_t n);
bool conn_flush(conn_t *c);
static inline bool
conn_blocked(const conn_t *c)
{
    return c->out.len > c->out_sent;
}

#endif /* CONN_H_INCLUDED */
