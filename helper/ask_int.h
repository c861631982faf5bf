/* What ask*.c share; nothing for others. */

#ifndef ASK_INT_H_INCLUDED
#define ASK_INT_H_INCLUDED

#include "ask.h"
#include "table.h"

typedef enum { ASK_READY = 0, ASK_RUNNING, ASK_PARKED } ask_state_e;

typedef struct ask_int_s  ask_int_t;

/* One question; the text of the frame stands behind it. */
struct ask_int_s {
    table_node_t     node;
    ask_question_t   q;
    ask_t           *pool;
    ask_int_t       *prev, *next;       /* all */
    ask_int_t       *queue;             /* those that are ready */
    uint64_t         conn;              /* with seq: the key */
    uint64_t         seq;
    ask_handler_pt   handler;
    uint8_t          op[16];            /* of its record */
    uint64_t         began_us;
    bool             recorded;          /* its end is still to come */
    bool             stream;
    bool             shares;            /* takes pieces with SB_T_ALSO */

    /* under the lock */
    ask_state_e      state;
    bool             again;             /* woken while it ran */
    bool             cancelled;
    bool             deaf;              /* room alone does not call it ... */
    bool             hungry;            /* ... unless it waits for that */
    size_t           window;            /* bytes that may be sent */
    uint64_t         wake_us;           /* 0: no time was asked for */

    /* of the thread that runs it */
    bool             head;              /* has been sent */
    unsigned         status;
    const char      *type;
    uint64_t         later_us;
    bool             ended;             /* the last piece is sent */
    bool             whole;             /* of ask_whole() */
    sb_buf_t         body;
    size_t           sent;

    char             text[];
};

struct ask_s {
    const ask_route_t  *routes;
    void               *context;
    int                 wake_fd;
    unsigned            limit;
    ask_record_t        record;
    const ask_handler_pt  *stream_handlers;     /* or NULL */
    unsigned            stream_limit;

    pthread_t           threads[ASK_THREADS_MAX];
    unsigned            nthreads;       /* wanted */
    unsigned            started;

    pthread_mutex_t     lock;
    pthread_cond_t      work;
    bool                stop;
    ask_int_t          *all;
    table_t             table;          /* the same */
    unsigned            open;
    unsigned            streams;
    uint64_t            next_us;        /* no time comes before; 0: none */
    unsigned            running;
    ask_int_t          *ready, **ready_last;
    ask_piece_t        *pieces, **pieces_last;
    uint64_t            asked;
    uint64_t            refused;
};

extern const uint8_t  ask_no_op[16];

/* With the lock held: it is to be called; something has happened to it. */
void ask_ready(ask_t *a, ask_int_t *i);
void ask_stir(ask_t *a, ask_int_t *i);
/* The open question of a connection, or NULL.  With the lock held. */
ask_int_t *ask_find(ask_t *a, uint64_t conn, uint64_t seq);
/* A piece is ready: the thread with the connections is woken for the first.
 * With the lock held. */
void ask_push(ask_t *a, ask_piece_t *piece);

/* One frame of an answer; `cancel`: the end of one that cannot be finished.
 * False when it does not fit or nobody wants it. */
bool ask_send(ask_int_t *i, const void *p, size_t n, bool last, bool cancel);
/* Sends on what ask_whole() was given, as there is room. */
ask_rc_e ask_pump(ask_int_t *i);

#endif /* ASK_INT_H_INCLUDED */
