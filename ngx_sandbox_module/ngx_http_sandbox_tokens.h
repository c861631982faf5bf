/* The tokens of a file, over all workers. */

#ifndef _NGX_HTTP_SANDBOX_TOKENS_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_TOKENS_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* Before credentials of a request are looked at: tokens is what it is now.  Rows
 * of it do not outlive the event. */
void ngx_http_sandbox_tokens_refresh(sb_tokens_t *tokens);
/* Another number: rows of before are gone. */
ngx_uint_t ngx_http_sandbox_tokens_generation(const sb_tokens_t *tokens);
/* A copy of a row that lives as long as the request; NULL without memory. */
const sb_token_t *ngx_http_sandbox_tokens_keep(ngx_http_request_t *r,
    const sb_tokens_t *tokens, const sb_token_t *row);

/* Changes what all workers know, until a reload reads the file again.  NGX_BUSY:
 * there is no room, or one with that id; NGX_DECLINED: there is none. */
ngx_int_t ngx_http_sandbox_tokens_add(sb_tokens_t *tokens,
    const sb_token_t *token);
ngx_int_t ngx_http_sandbox_tokens_drop(sb_tokens_t *tokens, ngx_str_t *id);

/* After a wait: do the token, as it was kept, and the session (empty: none) by
 * which a request was let in still stand?  Refreshes tokens. */
ngx_uint_t ngx_http_sandbox_tokens_stand(ngx_http_request_t *r,
    sb_tokens_t *tokens, const sb_token_t *token, ngx_str_t *session);
/* What lasts is cut when they do not any more.  The text of the session lives as
 * long as the request.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sandbox_tokens_hold(ngx_http_request_t *r,
    sb_tokens_t *tokens, const sb_token_t *token, ngx_str_t *session);

/* A wrong credential came over a connection: how long, in ms, its answer is to
 * wait.  Right ones are never asked for that, whoever shares their address. */
ngx_msec_t ngx_http_sandbox_tokens_wrong(sb_tokens_t *tokens,
    ngx_connection_t *c);
/* Calls handler after that time, and before when there are events. */
void ngx_http_sandbox_tokens_delay(ngx_http_request_t *r, ngx_msec_t delay,
    ngx_http_event_handler_pt handler);
/* For the handler: is it too early? */
ngx_uint_t ngx_http_sandbox_tokens_delayed(ngx_http_request_t *r);


#endif /* _NGX_HTTP_SANDBOX_TOKENS_H_INCLUDED_ */
