/* Cookies of a request: finding ours, and keeping them from upstream. */


#include "cookie.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_port.h"


ngx_int_t
ngx_http_sandbox_cookie_find(ngx_http_request_t *r, const char *name,
    ngx_uint_t n, ngx_str_t *value)
{
    size_t            len;
    sb_str_t          rest, pair, key, found;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (!ngx_http_sandbox_header_is(&h[i], "cookie")) {
            continue;
        }

        rest = ngx_http_sandbox_str(&h[i].value);

        while (sb_cookie_next(&rest, &pair, &key, &found)) {

            if (key.len == len && ngx_strncmp(key.data, name, len) == 0
                && n-- == 0)
            {
                value->data = (u_char *) found.data;
                value->len = found.len;
                return NGX_OK;
            }
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_sandbox_cookie_strip(ngx_http_request_t *r)
{
    u_char           *p;
    sb_str_t          s;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (!ngx_http_sandbox_header_is(&h[i], "cookie")) {
            continue;
        }

        s = ngx_http_sandbox_str(&h[i].value);

        if (!sb_cookie_has_ours(s)) {
            /* not a byte of it is touched */
            continue;
        }

        p = ngx_pnalloc(r->pool, s.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        h[i].value.len = sb_cookie_strip((char *) p, s);
        h[i].value.data = p;

        if (h[i].value.len == 0) {
            ngx_http_sandbox_kill(&h[i]);
        }
    }

    return NGX_OK;
}
