/* How an operation is let in. */

#ifndef _NGX_HTTP_SANDBOX_ADMIT_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_ADMIT_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* Everything that is known without the body: refuses, or puts the operation on
 * record (NGX_OK). */
ngx_int_t ngx_http_sandbox_admit(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);


#endif /* _NGX_HTTP_SANDBOX_ADMIT_H_INCLUDED_ */
