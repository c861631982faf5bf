/*
 * Uploads that a policy wants to know more of: files that look like archives are
 * looked into by the helper, which is given the spooled body.
 */

#ifndef _NGX_HTTP_SANDBOX_ARCHIVE_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_ARCHIVE_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* sandbox_archives */
#define NGX_HTTP_SANDBOX_ARCHIVES  1024


/* Puts what is known into the files of an upload, in their order; what was found
 * for the rules of before tells nothing to `others`. */
void ngx_http_sandbox_archive_facts(ngx_http_sandbox_ctx_t *ctx,
    sb_policy_file_t *files, size_t n, ngx_uint_t others);

/* Asks about those that are wanted, once: NGX_AGAIN, the phases are run again
 * when all is known; NGX_DECLINED, nothing will be known of them; NGX_ERROR. */
ngx_int_t ngx_http_sandbox_archive_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    const sb_policy_file_t *files, size_t n);

ngx_uint_t ngx_http_sandbox_archive_waits(ngx_http_sandbox_ctx_t *ctx);

/* The client has gone. */
void ngx_http_sandbox_archive_forget(ngx_http_sandbox_ctx_t *ctx);

/* A member of the envelope's details, when an archive had to do with it. */
sb_rc_t ngx_http_sandbox_archive_details(sb_buf_t *b,
    const sb_policy_verdict_t *v);


#endif /* _NGX_HTTP_SANDBOX_ARCHIVE_H_INCLUDED_ */
