/* Questions to upstream through the helper. */

#ifndef _NGX_HTTP_SANDBOX_FETCH_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_FETCH_H_INCLUDED_


#include "ngx_http_sandbox.h"
#include "ngx_http_sandbox_link.h"


/* open at once, of a worker */
#define NGX_HTTP_SANDBOX_FETCHES  64


void ngx_http_sandbox_fetch_init(ngx_http_sandbox_link_t *bulk,
    ngx_log_t *log);
/* A FETCHED frame has come. */
void ngx_http_sandbox_fetch_answer(sb_frame_t *f);


#endif /* _NGX_HTTP_SANDBOX_FETCH_H_INCLUDED_ */
