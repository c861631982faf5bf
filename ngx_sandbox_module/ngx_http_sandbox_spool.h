/* sandbox_spool_limit: uploads that are read whole before they go on. */

#ifndef _NGX_HTTP_SANDBOX_SPOOL_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_SPOOL_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* n more bytes of the body are to be kept.  NGX_DECLINED: there is no room, the
 * request is refused with 503. */
ngx_int_t ngx_http_sandbox_spool_take(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, size_t n);
/* The request has ended. */
void ngx_http_sandbox_spool_give(ngx_http_sandbox_ctx_t *ctx);


#endif /* _NGX_HTTP_SANDBOX_SPOOL_H_INCLUDED_ */
