/* Files of a sandbox that the helper reads, by the road of a request and with
 * the credentials of its client. */

#ifndef _NGX_HTTP_SANDBOX_DOWNLOAD_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_DOWNLOAD_H_INCLUDED_


#include "ngx_http_sandbox_fetch.h"


typedef struct {
    ngx_str_t                  origin;      /* of the URL */
    ngx_str_t                  prefix;      /* of its path */
} ngx_http_sandbox_download_t;


/* The request has its road and headers. */
ngx_int_t ngx_http_sandbox_download_init(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_download_t *d);
/* Asks for file number `file` of the operation, for what `kind` (SB_CONTENT_*)
 * says; 0: it cannot be asked, else as ngx_http_sandbox_fetch_send(). */
ngx_uint_t ngx_http_sandbox_download_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_download_t *d, sb_str_t path,
    size_t file, ngx_uint_t kind, ngx_http_sandbox_fetched_pt done, void *data);


#endif /* _NGX_HTTP_SANDBOX_DOWNLOAD_H_INCLUDED_ */
