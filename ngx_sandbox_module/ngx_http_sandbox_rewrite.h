/*
 * The endpoints answer while it is held: what passes between the filter that
 * holds it and the making of the new one.
 */

#ifndef _NGX_HTTP_SANDBOX_REWRITE_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_REWRITE_H_INCLUDED_


#include "ngx_http_sandbox.h"


#define NGX_HTTP_SANDBOX_REWRITE_MAX  (64 * 1024)


struct ngx_http_sandbox_rewrite_s {
    u_char       *body;
    size_t        size;
    size_t        len;
    ngx_uint_t    passing;  /* held no longer */
    ngx_uint_t    changes;  /* else it is only read */
    ngx_uint_t    teaches;  /* it names the sandbox, not the server proxy */
};


/*
 * Learns from the answer, which is whole, and makes the new body in r->pool.
 * Returns NULL, or why it has to pass as it is: half a sentence for the log.
 */
const char *ngx_http_sandbox_rewrite_make(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_str_t *body);


#endif /* _NGX_HTTP_SANDBOX_REWRITE_H_INCLUDED_ */
