/*
 * Questions of the console API to the helper over the bulk connection
 * (docs/frames.md, "Questions").  An answer comes in pieces; what may be on
 * its way is bounded by the window that the asker gives back as it passes
 * pieces on.
 */

#ifndef _NGX_HTTP_SANDBOX_ASK_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_ASK_H_INCLUDED_


#include "ngx_http_sandbox.h"
#include "ngx_http_sandbox_link.h"


/* window of a stream */
#define NGX_HTTP_SANDBOX_ASK_STREAM  16384


typedef struct ngx_http_sandbox_ask_s  ngx_http_sandbox_ask_t;


typedef struct {
    ngx_uint_t        status;       /* of the first piece, else 0 */
    ngx_str_t         type;
    ngx_str_t         allow;
    u_char           *data;
    size_t            len;
    ngx_uint_t        last;
} ngx_http_sandbox_piece_t;


/* what is asked */

typedef struct {
    ngx_str_t         method;
    ngx_str_t         path;         /* without the prefix of the API */
    ngx_str_t         query;
    ngx_str_t         body;
    ngx_str_t         actor_type;
    ngx_str_t         actor_id;
    ngx_str_t         identity;
    ngx_str_t         sandbox;
    ngx_str_t         event_id;     /* Last-Event-ID */
    ngx_str_t         lease;        /* X-Sandbox-Lease */
    sb_role_e         role;
} ngx_http_sandbox_question_t;


/* The asker's memory, until the question is over: the last piece, gone() or
 * ngx_http_sandbox_ask_cancel(). */

struct ngx_http_sandbox_ask_s {
    /* set by the asker */
    void            (*piece)(ngx_http_sandbox_ask_t *ask,
                             ngx_http_sandbox_piece_t *p);
    /* There will be no more.  NGX_ERROR: the helper has left, or broke off;
     * NGX_ABORT: it did not answer in time. */
    void            (*gone)(ngx_http_sandbox_ask_t *ask, ngx_int_t rc);
    /* The worker is about to exit; may be NULL. */
    void            (*leaving)(ngx_http_sandbox_ask_t *ask);
    void             *data;
    ngx_msec_t        timeout;      /* without a piece, while some may come */
    unsigned          stream:1;     /* goes on for ever; has a bound and a
                                       smaller window of its own */

    /* the client's own */
    ngx_queue_t       queue;
    ngx_queue_t       slot;         /* of those with a number like its own */
    uint64_t          seq;
    size_t            window;       /* bytes that may come */
    size_t            owed;         /* passed on, not given back yet */
    ngx_msec_t        deadline;
    unsigned          open:1;
    unsigned          head:1;
};


void ngx_http_sandbox_ask_init(ngx_http_sandbox_link_t *bulk,
    ngx_uint_t limit, ngx_uint_t stream_limit, ngx_log_t *log);
/* NGX_OK: asked.  NGX_DECLINED: there is no connection to the helper.
 * NGX_BUSY: too many questions are open.  Nothing is called back before it has
 * returned. */
ngx_int_t ngx_http_sandbox_ask(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_question_t *q);
/* n bytes were passed on: as many may come again. */
void ngx_http_sandbox_ask_credit(ngx_http_sandbox_ask_t *ask, size_t n);
/* Nobody wants the rest; does nothing when it is over already. */
void ngx_http_sandbox_ask_cancel(ngx_http_sandbox_ask_t *ask);
/* Open questions of this worker, streams among them. */
ngx_uint_t ngx_http_sandbox_asks(void);

/* --- for the owner of the bulk connection --- */

/* A frame of an answer; NGX_ERROR: the helper breaks the rules. */
ngx_int_t ngx_http_sandbox_ask_frame(sb_frame_t *f);
/* The connection is gone. */
void ngx_http_sandbox_ask_gone(ngx_http_sandbox_link_t *l);


#endif /* _NGX_HTTP_SANDBOX_ASK_H_INCLUDED_ */
