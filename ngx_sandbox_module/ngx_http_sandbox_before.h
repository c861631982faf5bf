/* Files as they stand before they are written (sandbox_versions fetch). */

#ifndef _NGX_HTTP_SANDBOX_BEFORE_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_BEFORE_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* Does the operation change files that are to be read first? */
ngx_uint_t ngx_http_sandbox_before_wanted(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Reads the body of an upload, and runs the phases again; returns what the
 * phase handler has to return. */
ngx_int_t ngx_http_sandbox_before_spool(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* The request has its road and headers.  NGX_AGAIN: it has to wait, the phases
 * run again; NGX_OK: it may go on. */
ngx_int_t ngx_http_sandbox_before(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Nobody waits any more. */
void ngx_http_sandbox_before_forget(ngx_http_sandbox_ctx_t *ctx);


#endif /* _NGX_HTTP_SANDBOX_BEFORE_H_INCLUDED_ */
