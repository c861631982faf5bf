/* What server*.c share. */

#ifndef SERVER_INT_H_INCLUDED
#define SERVER_INT_H_INCLUDED

#include "conn.h"
#include "flush.h"
#include "server.h"

#define SERVER_ENDS_MAX  (16 * 1024 * 1024)
#define SERVER_LAZY_US   20000u     /* ... or after that time */
/* Whose questions our own are; connections are numbered from 1. */
#define SERVER_ASKER     0

typedef struct {
    conn_t      *conn;
    sb_frame_t   frame;
} server_from_t;

typedef struct {
    const server_conf_t  *conf;
    int                   epoll;
    bool                  stop;
    bool                  more;         /* frames are left to handle */
    bool                  idle;         /* nothing came in this round */
    uint64_t              lazy_us;      /* since when an answer waits for
                                           others; 0: none does */
    conn_t               *conns;
    unsigned              nconns;
    uint64_t              conn_ids;
    uint64_t              empty_us;     /* since when nobody is connected */
    uint64_t              deaf_us;      /* since when we do not accept, for want
                                           of descriptors; 0: we do */
    flush_t              *flush;
    bool                  flushing;

    journal_item_t       *items;        /* of this round */
    server_from_t        *from;         /* whose, behind items */
    size_t                nitems;

    uint64_t              locks_us;     /* when locks are due; 0: none is */

    sb_buf_t              ends;         /* END frames of our own */
    int                   error;        /* of the last append, 0 when fine */
    uint64_t              error_us;     /* time of the last failure, until it
                                           is over */
} server_t;

/* Queues bytes for a connection, which dies when it does not take them. */
void server_send(server_t *s, conn_t *c, const void *p, size_t n);

/* --- server_frames.c ----------------------------------------------------- */

/* Handles the whole frames a connection has sent; those to be kept become
 * items. */
void server_frames(server_t *s, conn_t *c);

/* --- server_answers.c ---------------------------------------------------- */

void server_fetched(server_t *s);
/* Answers a FETCH. */
void server_answer_fetch(server_t *s, conn_t *c, uint64_t seq, unsigned status,
    sb_str_t body, sb_str_t reason);
/* Sends off what the threads that answer questions have written. */
void server_answered(server_t *s);
/* Tells the workers which sandboxes have a full history. */
void server_full(server_t *s);
/* Sends off what the thread that writes has done for sandbox-history. */
void server_errands(server_t *s);
/* Answers an errand. */
void server_errand_answer(server_t *s, conn_t *c, uint64_t seq,
    unsigned status, sb_str_t text);

/* --- server_journal.c ---------------------------------------------------- */

/* Appends items of one caller to the journal; 0 or an errno value. */
int server_write(server_t *s, const journal_item_t *items, size_t n);
/* Appends the items and answers. */
void server_append(server_t *s);
/* Answers what a flush was missing for. */
void server_flushed(server_t *s);
/* Appends the records of the console's own. */
void server_console(server_t *s);
/* Appends the ends that are due by time or by what passed. */
void server_ends(server_t *s);
/* Takes what is still in the sockets before we stop. */
void server_last(server_t *s);

/* --- server_locks.c ------------------------------------------------------ */

/* A KEYS frame. */
void server_keys(server_t *s, conn_t *c, const sb_frame_t *f);
/* After our start: are all there who were, and have they told? */
void server_locks_told(server_t *s);
/* A worker is connected, or is not any more. */
void server_locks_open(server_t *s, conn_t *c);
void server_locks_closed(server_t *s, conn_t *c);
/* Ends what is due, and queues what was granted or refused for the workers. */
void server_granted(server_t *s);
/* Appends what live streams tell of locks, behind what it is about. */
void server_tales(server_t *s);
/* Milliseconds until something is due, at most `most` (-1: without bound). */
int server_locks_timeout(const server_t *s, int most);

/* --- server_inspect.c ----------------------------------------------------- */

/* An INSPECT, `raw` as it came; NULL, or what is wrong with it. */
const char *server_inspect(server_t *s, conn_t *c, const sb_frame_t *f,
    const char *raw);
/* Tells who has asked what was found. */
void server_inspected(server_t *s);

/* --- server_before.c ----------------------------------------------------- */

/* A FETCH of a file. */
void server_before(server_t *s, conn_t *c, const sb_frame_t *f);
/* Appends what was read of files, and tells who waits for it. */
void server_before_read(server_t *s);

#endif /* SERVER_INT_H_INCLUDED */
