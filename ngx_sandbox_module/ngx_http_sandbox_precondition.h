/* If-Match and If-None-Match of uploads. */

#ifndef _NGX_HTTP_SANDBOX_PRECONDITION_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_PRECONDITION_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* What the headers say; they do not pass to upstream.  NGX_OK, or what the phase
 * handler has to return. */
ngx_int_t ngx_http_sandbox_precondition_headers(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
/* The keys are held, the request has its road and headers, its body is read.
 * NGX_OK: it may go on; NGX_AGAIN: it waits, the phases run again; else it was
 * refused. */
ngx_int_t ngx_http_sandbox_precondition(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Nobody waits any more. */
void ngx_http_sandbox_precondition_forget(ngx_http_sandbox_ctx_t *ctx);


#endif /* _NGX_HTTP_SANDBOX_PRECONDITION_H_INCLUDED_ */
