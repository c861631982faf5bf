/* Sandboxes whose history is full (ngx_http_sandbox_full.h). */


#include "ngx_http_sandbox_full.h"
#include "marks.h"


/* The helper tells at most 16384 marks, then all: there is no second bound
 * here. */

static u_char     *ngx_http_sandbox_full_marks;
static size_t      ngx_http_sandbox_full_len;
static ngx_uint_t  ngx_http_sandbox_full_all;
static ngx_str_t   ngx_http_sandbox_full_limit;
static u_char      ngx_http_sandbox_full_name[64];


void
ngx_http_sandbox_full_set(sb_frame_t *f)
{
    u_char    *p;
    sb_str_t   v;

    ngx_http_sandbox_full_all = 0;
    ngx_http_sandbox_full_len = 0;

    if (ngx_http_sandbox_full_marks) {
        ngx_free(ngx_http_sandbox_full_marks);
        ngx_http_sandbox_full_marks = NULL;
    }

    if (f == NULL) {
        return;
    }

    ngx_str_set(&ngx_http_sandbox_full_limit, "sandbox_history_size");

    if (sb_field_get(f, SB_T_REASON, &v)
        && v.len <= sizeof(ngx_http_sandbox_full_name))
    {
        ngx_memcpy(ngx_http_sandbox_full_name, v.data, v.len);
        ngx_http_sandbox_full_limit.data = ngx_http_sandbox_full_name;
        ngx_http_sandbox_full_limit.len = v.len;
    }

    if (sb_field_get(f, SB_T_SANDBOX, &v)) {
        ngx_http_sandbox_full_all = 1;
        return;
    }

    if (!sb_field_get(f, SB_T_DATA, &v) || v.len == 0) {
        return;
    }

    p = ngx_alloc(v.len, ngx_cycle->log);

    if (p == NULL) {
        /* which ones is not known: what must be on record may not be */
        ngx_http_sandbox_full_all = 1;
        return;
    }

    ngx_memcpy(p, v.data, v.len);
    ngx_http_sandbox_full_marks = p;
    ngx_http_sandbox_full_len = v.len;
}


ngx_str_t *
ngx_http_sandbox_full(sb_str_t sandbox)
{
    if (ngx_http_sandbox_full_all
        || (ngx_http_sandbox_full_len && sandbox.len
            && sb_marks_have(sb_str((char *) ngx_http_sandbox_full_marks,
                                    ngx_http_sandbox_full_len),
                             sandbox)))
    {
        return &ngx_http_sandbox_full_limit;
    }

    return NULL;
}
