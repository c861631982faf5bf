/* Sandboxes whose history is full (ngx_http_sandbox_full.h). */


#include "ngx_http_sandbox_full.h"


/* The helper names at most 1024, then all: there is no second bound here. */

typedef struct {
    uint32_t    hash;
    ngx_str_t   sandbox;
    ngx_str_t   limit;
} ngx_http_sandbox_full_t;


static u_char                   *ngx_http_sandbox_full_text;
static ngx_http_sandbox_full_t  *ngx_http_sandbox_full_list;
static ngx_uint_t                ngx_http_sandbox_full_n;
static ngx_uint_t                ngx_http_sandbox_full_all;


void
ngx_http_sandbox_full_set(sb_frame_t *f)
{
    size_t                    size;
    uint16_t                  tag;
    sb_str_t                  fields, v;
    ngx_uint_t                n;
    ngx_http_sandbox_full_t  *list, *e;
    u_char                   *p;

    ngx_http_sandbox_full_all = 0;
    ngx_http_sandbox_full_n = 0;

    if (ngx_http_sandbox_full_list) {
        ngx_free(ngx_http_sandbox_full_list);
        ngx_free(ngx_http_sandbox_full_text);
        ngx_http_sandbox_full_list = NULL;
        ngx_http_sandbox_full_text = NULL;
    }

    if (f == NULL) {
        return;
    }

    n = 0;
    size = 1;

    for (fields = f->fields; sb_field_next(&fields, &tag, &v); /* void */ ) {
        n += (tag == SB_T_SANDBOX);
        size += v.len;
    }

    if (n == 0) {
        return;
    }

    list = ngx_calloc(n * sizeof(ngx_http_sandbox_full_t), ngx_cycle->log);
    p = ngx_alloc(size, ngx_cycle->log);

    if (list == NULL || p == NULL) {

        /* which ones is not known: what must be on record may not be */

        if (list) {
            ngx_free(list);
        }

        if (p) {
            ngx_free(p);
        }

        ngx_http_sandbox_full_all = 1;
        return;
    }

    ngx_http_sandbox_full_list = list;
    ngx_http_sandbox_full_text = p;
    e = list - 1;

    for (fields = f->fields; sb_field_next(&fields, &tag, &v); /* void */ ) {

        if (tag == SB_T_SANDBOX) {
            e++;
            e->sandbox.data = p;
            e->sandbox.len = v.len;
            e->hash = ngx_crc32_short((u_char *) v.data, v.len);

            if (v.len == 0) {
                ngx_http_sandbox_full_all = 1;
            }

        } else if (tag == SB_T_REASON && e >= list) {
            e->limit.data = p;
            e->limit.len = v.len;

        } else {
            continue;
        }

        p = ngx_cpymem(p, v.data, v.len);
    }

    ngx_http_sandbox_full_n = n;
}


ngx_str_t *
ngx_http_sandbox_full(sb_str_t sandbox)
{
    uint32_t                  hash;
    ngx_uint_t                i;
    ngx_http_sandbox_full_t  *e;

    static ngx_str_t  unknown = ngx_string("sandbox_history_size");

    if (ngx_http_sandbox_full_n == 0 && !ngx_http_sandbox_full_all) {
        return NULL;
    }

    if (ngx_http_sandbox_full_all) {
        return ngx_http_sandbox_full_n ? &ngx_http_sandbox_full_list[0].limit
                                       : &unknown;
    }

    if (sandbox.len == 0) {
        return NULL;
    }

    hash = ngx_crc32_short((u_char *) sandbox.data, sandbox.len);

    for (i = 0; i < ngx_http_sandbox_full_n; i++) {
        e = &ngx_http_sandbox_full_list[i];

        if (e->hash == hash && e->sandbox.len == sandbox.len
            && ngx_memcmp(e->sandbox.data, sandbox.data, sandbox.len) == 0)
        {
            return &e->limit;
        }
    }

    return NULL;
}
