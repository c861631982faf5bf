/* Questions to upstream through the helper. */

#ifndef _NGX_HTTP_SANDBOX_FETCH_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_FETCH_H_INCLUDED_


#include "ngx_http_sandbox.h"
#include "ngx_http_sandbox_link.h"


/* open at once, of a worker */
#define NGX_HTTP_SANDBOX_FETCHES  64


void ngx_http_sandbox_fetch_init(ngx_http_sandbox_link_t *bulk,
    ngx_log_t *log);
/*
 * Begins a FETCH of at most size bytes for an operation; NGX_DECLINED: it cannot
 * be asked now.  Nothing else may be sent to the helper before _send(), which
 * returns 0 when that was not possible; else done is called once, as by
 * ngx_http_sandbox_helper_fetch().
 */
ngx_int_t ngx_http_sandbox_fetch_begin(sb_frame_writer_t *w, size_t size,
    const u_char *id);
ngx_uint_t ngx_http_sandbox_fetch_send(sb_frame_writer_t *w,
    ngx_http_sandbox_fetched_pt done, void *data);
/* Nobody waits for the answer to that data any more. */
void ngx_http_sandbox_fetch_forget(void *data);
/* A FETCHED frame has come. */
void ngx_http_sandbox_fetch_answer(sb_frame_t *f);


#endif /* _NGX_HTTP_SANDBOX_FETCH_H_INCLUDED_ */
