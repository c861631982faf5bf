/*
 * Locks and limits of one operation (design 2): it asks the helper in one KEYS
 * frame, which goes off with its BEGIN, and does not go on before it is granted.
 */

#ifndef _NGX_HTTP_SANDBOX_LOCK_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_LOCK_H_INCLUDED_


#include "ngx_http_sandbox.h"
#include "lock.h"


#define NGX_HTTP_SANDBOX_LOCK_MAX    300000     /* ms, of the header */
/* the helper ends the waiting; when it does not, we do */
#define NGX_HTTP_SANDBOX_LOCK_GRACE  2000


struct ngx_http_sandbox_lock_s {
    ngx_queue_t               queue;        /* in the table, by operation */
    ngx_queue_t               wait;         /* among those that wait */
    ngx_rbtree_node_t         late;         /* ... by the deadline */
    ngx_http_sandbox_ctx_t   *ctx;
    u_char                   *frame;        /* KEYS, to be told again */
    size_t                    len;
    uint64_t                  seq;          /* with which it was told last */
    ngx_msec_t                deadline;
    ngx_uint_t                code;         /* SB_LOCK_* of the answer */
    uint64_t                  waited_us;
    ngx_str_t                 key;          /* LATE: what was waited for */
    ngx_str_t                 holder;
    ngx_str_t                 actor;
    ngx_str_t                 owner;        /* what a lease says of itself */

    unsigned                  answered:1;
    unsigned                  waiting:1;
    unsigned                  timed:1;      /* late is in the tree */
    unsigned                  write:1;      /* the key was to be written */
    unsigned                  may_pass:1;   /* without, when nobody answers */
    unsigned                  passed:1;     /* went on without */
};


/* ngx_http_sandbox_lock.c */

/* What the headers X-Sandbox-Lock, -Timeout and -Lease say; they do not pass to
 * upstream.  NGX_OK, or what the phase handler has to return. */
ngx_int_t ngx_http_sandbox_lock_headers(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
/* Does the body have to be read, for its paths or because a slot is taken behind
 * it, before anything can be asked for? */
ngx_uint_t ngx_http_sandbox_lock_reads(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf);
/* Asks for what the operation needs, if it needs anything. */
ngx_int_t ngx_http_sandbox_lock_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
/* NGX_OK: it may go on; NGX_AGAIN: it waits; else it was refused. */
ngx_int_t ngx_http_sandbox_lock_done(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);

/* ngx_http_sandbox_lock_table.c: all of this worker */

/* An empty table; who waited waits no more and is not resumed. */
void ngx_http_sandbox_lock_init(ngx_log_t *log);
/* Sends the frame off, and has it told again after a new connection. */
ngx_int_t ngx_http_sandbox_lock_add(ngx_http_sandbox_lock_t *l);
/* Waits for the answer, with a time of our own. */
void ngx_http_sandbox_lock_wait(ngx_http_sandbox_lock_t *l);
/* Nobody waits for it any more. */
void ngx_http_sandbox_lock_leave(ngx_http_sandbox_lock_t *l);
/* The operation is over; `begun`: its END says so. */
void ngx_http_sandbox_lock_end(ngx_http_sandbox_lock_t *l, ngx_uint_t begun);
/* A GRANTED frame. */
void ngx_http_sandbox_lock_granted(sb_frame_t *f);
/* A new connection: tells all again. */
void ngx_http_sandbox_lock_tell(void);


#endif /* _NGX_HTTP_SANDBOX_LOCK_H_INCLUDED_ */
