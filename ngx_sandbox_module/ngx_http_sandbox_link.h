/*
 * One connection to the helper: it connects again by itself, says HELLO, and
 * hands on the frames that come.
 */

#ifndef _NGX_HTTP_SANDBOX_LINK_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_LINK_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* the longest frame that the helper may send, an answer to a FETCH */
#define NGX_HTTP_SANDBOX_LINK_MAX  (128 * 1024)


typedef struct ngx_http_sandbox_link_s  ngx_http_sandbox_link_t;


struct ngx_http_sandbox_link_s {
    /* set by the owner */
    const char        *role;        /* of HELLO */
    ngx_str_t          socket;
    uint64_t           instance;
    /* a frame has come; anything but NGX_OK closes the link */
    ngx_int_t        (*frame)(ngx_http_sandbox_link_t *l, sb_frame_t *f);
    /* there is room in the socket; NULL: only `out` is written */
    ngx_int_t        (*writable)(ngx_http_sandbox_link_t *l);
    /* it was ready and is not any more; may be NULL */
    void             (*gone)(ngx_http_sandbox_link_t *l);

    /* the link's own */
    ngx_connection_t  *connection;
    ngx_uint_t         ready;       /* WELCOME was read */
    ngx_uint_t         stopped;     /* do not connect again */
    ngx_msec_t         wait;        /* until the next try */
    ngx_event_t        retry;
    u_char            *in;
    size_t             in_size;
    size_t             in_len;
    u_char            *out;
    size_t             out_size;
    size_t             out_len;
    size_t             out_sent;
};


void ngx_http_sandbox_link_open(ngx_http_sandbox_link_t *l, ngx_log_t *log);
/* Closes it; it comes back unless `stopped` is set. */
void ngx_http_sandbox_link_close(ngx_http_sandbox_link_t *l);
/* Reads what has come; NGX_AGAIN: nothing more at the moment. */
ngx_int_t ngx_http_sandbox_link_read(ngx_http_sandbox_link_t *l);
/* Room for `size` bytes behind `out`, or NULL; add what is used to out_len. */
u_char *ngx_http_sandbox_link_room(ngx_http_sandbox_link_t *l, size_t size);
/* Writes `out`: NGX_OK, NGX_AGAIN (the write event goes on) or NGX_ERROR. */
ngx_int_t ngx_http_sandbox_link_write(ngx_http_sandbox_link_t *l);


#endif /* _NGX_HTTP_SANDBOX_LINK_H_INCLUDED_ */
