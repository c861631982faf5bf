
/* Sandboxes whose history is full, as the helper says: their strict operations
 * are refused (sandbox_history_overflow fail_operation). */

#ifndef _NGX_HTTP_SANDBOX_FULL_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_FULL_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* A FULL frame: all of them; NULL: none. */
void ngx_http_sandbox_full_set(sb_frame_t *f);

/* The limit that is reached for a sandbox, or NULL. */
ngx_str_t *ngx_http_sandbox_full(sb_str_t sandbox);


#endif /* _NGX_HTTP_SANDBOX_FULL_H_INCLUDED_ */
