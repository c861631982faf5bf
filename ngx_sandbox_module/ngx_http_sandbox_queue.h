/*
 * Frames of this worker that the helper has not acknowledged yet: blocks of
 * whole frames, sent from the front, freed from the front.
 */

#ifndef _NGX_HTTP_SANDBOX_QUEUE_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_QUEUE_H_INCLUDED_


#include "ngx_http_sandbox.h"


typedef struct {
    ngx_queue_t       blocks;
    ngx_queue_t       spare;        /* kept for the next burst */
    ngx_uint_t        nspare;
    size_t            bytes;        /* not acknowledged */
    size_t            limit;
    uint64_t          seq;          /* last given */
} ngx_http_sandbox_queue_t;


/* Goes through the frames that are kept, in their order. */
void ngx_http_sandbox_queue_each(ngx_http_sandbox_queue_t *queue,
    ngx_http_sandbox_queued_pt handler);
/* How many operations that nobody waits for begin in it. */
ngx_uint_t ngx_http_sandbox_queue_begins(ngx_http_sandbox_queue_t *queue);
void ngx_http_sandbox_queue_init(ngx_http_sandbox_queue_t *q, size_t limit);
/* Copies a frame in and numbers it; 0: no room.  reserve is as in
 * ngx_http_sandbox_helper_send(). */
uint64_t ngx_http_sandbox_queue_add(ngx_http_sandbox_queue_t *q, u_char *frame,
    size_t len, ngx_uint_t reserve);
/* Forgets the frames up to seq. */
void ngx_http_sandbox_queue_release(ngx_http_sandbox_queue_t *q, uint64_t seq);
/* Everything that is kept is to be sent again. */
void ngx_http_sandbox_queue_rewind(ngx_http_sandbox_queue_t *q);
/* Writes what is not sent yet.  NGX_OK: all; NGX_AGAIN: the socket is full and
 * its write event is armed; NGX_ERROR. */
ngx_int_t ngx_http_sandbox_queue_write(ngx_http_sandbox_queue_t *q,
    ngx_connection_t *c);


#endif /* _NGX_HTTP_SANDBOX_QUEUE_H_INCLUDED_ */
