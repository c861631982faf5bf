/* What ngx_http_sandbox_tokens*.c share; nothing for others. */

#ifndef _NGX_HTTP_SANDBOX_TOKENS_INT_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_TOKENS_INT_H_INCLUDED_


#include "ngx_http_sandbox_tokens.h"


#define NGX_HTTP_SANDBOX_WRONG_SETS   256
#define NGX_HTTP_SANDBOX_WRONG_WAYS   4


typedef struct {
    uint64_t                       address;     /* 0: free */
    ngx_msec_t                     last;
    ngx_uint_t                     n;
} ngx_http_sandbox_wrong_t;


typedef struct {
    ngx_atomic_t                   generation;
    ngx_atomic_t                   changes;     /* by the console API */
    size_t                         n;
    ngx_http_sandbox_wrong_t       wrong[NGX_HTTP_SANDBOX_WRONG_SETS]
                                        [NGX_HTTP_SANDBOX_WRONG_WAYS];
    sb_token_t                     rows[SB_TOKENS_MAX];
} ngx_http_sandbox_tokens_sh_t;


typedef struct {
    sb_tokens_t                    set;         /* first: what others see */
    ngx_str_t                      file;
    ngx_atomic_uint_t              generation;  /* that set is of */
    ngx_http_sandbox_tokens_sh_t  *sh;
    ngx_slab_pool_t               *shpool;
} ngx_http_sandbox_tokens_t;


#endif /* _NGX_HTTP_SANDBOX_TOKENS_INT_H_INCLUDED_ */
