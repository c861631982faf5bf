/*
 * Credentials are masked in what is recorded, before it reaches the helper
 * (lib/secret.h); what passes to client and upstream is never touched.
 */

#ifndef _NGX_HTTP_SANDBOX_SECRET_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_SECRET_H_INCLUDED_


#include "ngx_http_sandbox.h"
#include "secret.h"


/* The end of a text that may go on as a credential: kept until the next piece
 * of it comes.  The first `shown` bytes are recorded already. */

typedef struct ngx_http_sandbox_tail_s {
    size_t            len;
    size_t            shown;
    u_char            data[SB_SECRET_MAX];
} ngx_http_sandbox_tail_t;


/* Remembers the credentials of a location. */
char *ngx_http_sandbox_secret_conf(ngx_conf_t *cf,
    ngx_http_sandbox_loc_conf_t *lcf);

/* Masks n bytes, or a finished frame, of an operation, and counts. */
void ngx_http_sandbox_secret_mask(ngx_http_sandbox_ctx_t *ctx, u_char *p,
    size_t n);
/* What a command calls a credential. */
void ngx_http_sandbox_secret_named(ngx_http_sandbox_ctx_t *ctx, u_char *p,
    size_t n);
void ngx_http_sandbox_secret_frame(ngx_http_sandbox_ctx_t *ctx, u_char *frame,
    size_t len);

/*
 * A text that comes in pieces: begin() puts the end of what came before into
 * buf (room for SB_SECRET_MAX bytes before the new piece) and returns its
 * length; end(), with all of that and the piece behind it (n bytes), masks, and
 * keeps back at the end what may go on, unless it is the last.  What is to be
 * recorded now begins at *from and has the length returned.  Without memory
 * nothing is kept back.
 */
size_t ngx_http_sandbox_secret_begin(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_tail_t *tail, u_char *buf);
size_t ngx_http_sandbox_secret_end(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_tail_t **tail, u_char *buf, size_t n, ngx_uint_t last,
    size_t *from);


#endif /* _NGX_HTTP_SANDBOX_SECRET_H_INCLUDED_ */
