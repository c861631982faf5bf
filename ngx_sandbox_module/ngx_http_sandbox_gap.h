/* Operations that pass without a record, counted per sandbox and reason. */

#ifndef _NGX_HTTP_SANDBOX_GAP_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_GAP_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* Queues a GAP frame for each of them; those without room stay. */
void ngx_http_sandbox_gap_send(void);
/* How many are not queued yet. */
ngx_uint_t ngx_http_sandbox_gap_pending(void);


#endif /* _NGX_HTTP_SANDBOX_GAP_H_INCLUDED_ */
