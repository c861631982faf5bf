/* What policies ask about sandboxes (lib/policy_known.h), kept in the zone of
 * learnt addresses. */

#ifndef _NGX_HTTP_SANDBOX_KNOWN_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_KNOWN_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* Finds what the policy asks about the sandbox, in the zone or by asking
 * upstream, into ctx->known.  NGX_AGAIN: the request waits, the phases run
 * again; NGX_OK: it is there, or cannot be known; NGX_ERROR: no memory. */
ngx_int_t ngx_http_sandbox_known_find(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, unsigned asks);
/* Nobody waits any more. */
void ngx_http_sandbox_known_forget(ngx_http_sandbox_ctx_t *ctx);

/* A sandbox will be asked for: in front of ngx_http_sandbox_known_made(). */
void ngx_http_sandbox_known_making(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Upstream has made it. */
void ngx_http_sandbox_known_made(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_str_t id);
/* Upstream has answered, or never will.  When the operation changes metadata,
 * what was asked for before counts no longer. */
void ngx_http_sandbox_known_changed(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);


#endif /* _NGX_HTTP_SANDBOX_KNOWN_H_INCLUDED_ */
