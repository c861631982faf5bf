/*
 * Questions of the console API: what nginx cannot answer itself comes as an
 * ASK frame over a worker's bulk connection and goes back in ANSWER pieces
 * (docs/frames.md, "Questions").
 *
 * A few threads serve them.  A handler never waits for the one who asks: it
 * writes what there is room for (ask_room()) and returns ASK_AGAIN to be called
 * again when there is more room, when the time of ask_later() has come, or
 * when ask_wake() was called.  So a slow reader, or a live stream that is open
 * for hours, holds memory for one window and no thread.
 */

#ifndef ASK_H_INCLUDED
#define ASK_H_INCLUDED

#include "frame.h"
#include "token.h"

#include <pthread.h>
#include <sys/types.h>

#define ASK_QUESTIONS    256        /* open at once, of all workers */
#define ASK_STREAMS      1024       /* live streams besides */
#define ASK_THREADS      4
#define ASK_THREADS_MAX  64
#define ASK_ARGS         2          /* "{...}" in a pattern */

typedef struct ask_s           ask_t;
typedef struct ask_question_s  ask_question_t;

typedef enum {
    ASK_DONE = 0,       /* all is written: the answer ends here */
    ASK_AGAIN,          /* call me again */
    ASK_FAILED          /* it cannot be finished: a 500, or a cut answer when
                           the head has been written */
} ask_rc_e;

/* Called in a thread of the pool, never twice at once for one question. */
typedef ask_rc_e (*ask_handler_pt)(ask_question_t *q);

typedef struct {
    const char      *method;
    const char      *path;      /* "sandboxes/{id}/operations"; "{...}" is one
                                   segment, kept in args */
    sb_role_e        role;      /* at least */
    ask_handler_pt   handler;
} ask_route_t;

/* What a handler sees.  The texts live as long as the question. */
struct ask_question_s {
    sb_str_t         method;
    sb_str_t         path;          /* decoded, without the API's prefix */
    sb_str_t         query;         /* raw */
    sb_str_t         body;
    sb_str_t         actor_type;
    sb_str_t         actor_id;
    sb_str_t         identity;
    sb_str_t         sandbox;
    sb_str_t         event_id;      /* Last-Event-ID */
    sb_str_t         lease;         /* X-Sandbox-Lease */
    sb_role_e        role;
    uid_t            peer;          /* user of the worker that asks */
    sb_str_t         args[ASK_ARGS];
    void            *context;       /* of ask_new() */

    /* JSON for its record, if it has one; the handler may fill it */
    sb_buf_t         result;

    /* the handler's own; `release` is called with it, in any thread, when the
     * question is over */
    void            *state;
    void           (*release)(void *state);

    struct ask_int_s  *in;          /* of ask.c */
};

/* `routes` end with a row without a path.  `wake_fd` is an eventfd that is
 * written when pieces are ready; `context` is handed to the handlers.  NULL
 * without memory. */
ask_t *ask_new(const ask_route_t *routes, void *context, int wake_fd,
    unsigned threads, unsigned questions);
/* Before ask_start(): the answers of these handlers (ended by NULL) go on for
 * ever; they do not count as questions, and that many may be open. */
void ask_streams(ask_t *a, const ask_handler_pt *handlers, unsigned streams);
bool ask_start(ask_t *a);
/* Ends the threads; open questions are given up. */
void ask_stop(ask_t *a);
void ask_free(ask_t *a);

/* Who keeps record of questions: told when one is taken, in the thread that has
 * the connections (false: it is refused), and when it is over, in any. */
typedef struct {
    bool  (*begin)(void *data, ask_question_t *q, const ask_route_t *r);
    void  (*end)(void *data, ask_question_t *q, unsigned status, bool whole);
    void   *data;
} ask_record_t;

/* Before ask_start(). */
void ask_record(ask_t *a, const ask_record_t *record);
/* A question must not go on: its record cannot be written.  It is refused by
 * the caller. */
void ask_forbid(ask_t *a, uint64_t conn, uint64_t seq);

/* --- for the thread that has the connections ------------------------------ */

/*
 * Takes an ASK frame of a connection, whose other end is of user `peer`.
 * SB_LIMIT: too many are open (the caller answers GATEWAY_OVERLOADED);
 * SB_ERROR: it is not one; SB_NOMEM.
 */
sb_rc_t ask_put(ask_t *a, uint64_t conn, uid_t peer, const sb_frame_t *f);
/* A CREDIT or CANCEL frame; what is about no open question is ignored, it has
 * just been answered. */
void ask_credit(ask_t *a, uint64_t conn, const sb_frame_t *f);
void ask_cancel(ask_t *a, uint64_t conn, const sb_frame_t *f);
/* The connection is gone. */
void ask_closed(ask_t *a, uint64_t conn);

/* A frame that is ready for a connection. */
typedef struct ask_piece_s  ask_piece_t;

struct ask_piece_s {
    ask_piece_t  *next;
    uint64_t      conn;
    size_t        len;
    char          frame[];
};

/* Takes all pieces, oldest first; the caller frees each with free(). */
ask_piece_t *ask_take(ask_t *a);

/* Writes a whole refusal as the answer to question `seq` into mem; its
 * length. */
size_t ask_refusal(void *mem, size_t size, uint64_t seq, unsigned status,
    const char *code, const char *message, const char *allow);

/* --- for handlers --------------------------------------------------------- */

/* Status and type of the answer, before the first ask_write(). */
void ask_head(ask_question_t *q, unsigned status, const char *type);
/* Bytes that ask_write() takes at the moment. */
size_t ask_room(ask_question_t *q);
/* Appends to the answer, at most ask_room() bytes, and sends it off.  False
 * when they do not fit, there is no memory, or nobody wants it any more. */
bool ask_write(ask_question_t *q, const void *p, size_t n);
typedef struct {
    ask_question_t  *q;
    bool             taken;
} ask_share_t;

/* The same bytes, at most SB_ASK_PIECE, for all of them whose head is sent and
 * who have room for the whole: one frame for those of a connection.  `taken`
 * tells for each; the others are the caller's to serve. */
void ask_write_shared(ask_share_t *shares, size_t n, const void *p, size_t len);
/*
 * For answers that are written by another thread than the pool's, while the
 * handler is not running, too: after ask_more() has said false, room that comes
 * calls the handler; else it does not.  True: there is more room than `room`
 * now.
 */
bool ask_more(ask_question_t *q, size_t room);
/* A whole answer, of any length; takes the buffer.  Or an error in the API's
 * envelope.  Both return what the handler has to return. */
ask_rc_e ask_whole(ask_question_t *q, unsigned status, const char *type,
    sb_buf_t *body);
ask_rc_e ask_refuse(ask_question_t *q, unsigned status, const char *code,
    const char *message);
/* Call me again in that time at the latest, whatever happens. */
void ask_later(ask_question_t *q, uint64_t us);
/* Has the one who asked left, or do we stop?  Then return soon. */
bool ask_over(ask_question_t *q);
/* Calls the handler of a question that has returned ASK_AGAIN; any thread.  The
 * caller makes sure that the question is still there (by its release()). */
void ask_wake(ask_question_t *q);

/* Numbers, for metrics. */
typedef struct {
    unsigned  open;
    unsigned  limit;
    unsigned  running;
    unsigned  threads;
    uint64_t  asked;
    uint64_t  refused;      /* too many were open */
    unsigned  streams;      /* open */
    unsigned  stream_limit;
} ask_numbers_t;

void ask_numbers(ask_t *a, ask_numbers_t *n);

#endif /* ASK_H_INCLUDED */
