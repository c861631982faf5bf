/* Cookies of a request: finding ours, and keeping them from upstream. */


#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_port.h"


static ngx_uint_t ngx_http_sandbox_cookie_next(ngx_str_t *rest,
    ngx_str_t *pair, ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_http_sandbox_cookie_header(ngx_table_elt_t *h);


ngx_int_t
ngx_http_sandbox_cookie_find(ngx_http_request_t *r, const char *name,
    ngx_uint_t n, ngx_str_t *value)
{
    size_t            len;
    ngx_str_t         rest, pair, key;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (!ngx_http_sandbox_cookie_header(&h[i])) {
            continue;
        }

        rest = h[i].value;

        while (ngx_http_sandbox_cookie_next(&rest, &pair, &key, value)) {

            if (key.len == len && ngx_strncmp(key.data, name, len) == 0
                && n-- == 0)
            {
                return NGX_OK;
            }
        }
    }

    return NGX_DECLINED;
}


ngx_uint_t
ngx_http_sandbox_cookie_ours(ngx_str_t *name)
{
    ngx_str_t  s;

    s = *name;

    if (s.len > 7 && ngx_strncasecmp(s.data, (u_char *) "__Host-", 7) == 0) {
        s.data += 7;
        s.len -= 7;

    } else if (s.len > 9
               && ngx_strncasecmp(s.data, (u_char *) "__Secure-", 9) == 0)
    {
        s.data += 9;
        s.len -= 9;
    }

    /* the session cookie's name goes on with a port */

    return (s.len >= sizeof(NGX_HTTP_SANDBOX_SESSION_COOKIE) - 1
            && ngx_strncasecmp(s.data,
                               (u_char *) NGX_HTTP_SANDBOX_SESSION_COOKIE,
                               sizeof(NGX_HTTP_SANDBOX_SESSION_COOKIE) - 1)
               == 0)
           || (s.len == sizeof(NGX_HTTP_SANDBOX_PORT_COOKIE) - 1
               && ngx_strncasecmp(s.data,
                                  (u_char *) NGX_HTTP_SANDBOX_PORT_COOKIE,
                                  sizeof(NGX_HTTP_SANDBOX_PORT_COOKIE) - 1)
                  == 0);
}


ngx_int_t
ngx_http_sandbox_cookie_strip(ngx_http_request_t *r)
{
    u_char           *p, *last, *end;
    ngx_str_t         rest, pair, name, value;
    ngx_uint_t        i, ours;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (!ngx_http_sandbox_cookie_header(&h[i])) {
            continue;
        }

        rest = h[i].value;
        ours = 0;

        while (ngx_http_sandbox_cookie_next(&rest, &pair, &name, &value)) {
            if (ngx_http_sandbox_cookie_ours(&name)) {
                ours = 1;
                break;
            }
        }

        if (!ours) {
            /* not a byte of it is touched */
            continue;
        }

        p = ngx_pnalloc(r->pool, h[i].value.len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        last = p;
        rest = h[i].value;
        end = rest.data;

        while (ngx_http_sandbox_cookie_next(&rest, &pair, &name, &value)) {

            if (!ngx_http_sandbox_cookie_ours(&name)) {

                /* with what stood before it: no byte is copied twice, and so
                 * the whole fits whatever the client puts between pairs */

                if (last != p) {
                    last = ngx_cpymem(last, end, pair.data - end);
                }

                last = ngx_cpymem(last, pair.data, pair.len);
            }

            end = pair.data + pair.len;
        }

        h[i].value.data = p;
        h[i].value.len = last - p;

        if (last == p) {
            ngx_http_sandbox_kill(&h[i]);
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_sandbox_cookie_foreign(ngx_str_t *set_cookie)
{
    ngx_str_t   rest, pair, name, value;
    ngx_uint_t  first;

    rest = *set_cookie;
    first = 1;

    while (ngx_http_sandbox_cookie_next(&rest, &pair, &name, &value)) {

        if (first) {

            /* without a name a browser keeps the value and sends it alone, so
             * that "=name=value" comes back as a cookie of that name */

            if (name.len == 0 || ngx_http_sandbox_cookie_ours(&name)) {
                return 1;
            }

            first = 0;

        } else if (name.len == 6
                   && ngx_strncasecmp(name.data, (u_char *) "domain", 6) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_sandbox_cookie_header(ngx_table_elt_t *h)
{
    return ngx_http_sandbox_header_is(h, "cookie");
}


/* Cuts the next "name=value" off; blanks around names and values are not
 * theirs. */

static ngx_uint_t
ngx_http_sandbox_cookie_next(ngx_str_t *rest, ngx_str_t *pair,
    ngx_str_t *name, ngx_str_t *value)
{
    u_char  *p, *last, *end, *eq;

    p = rest->data;
    last = p + rest->len;

    while (p < last && (*p == ';' || *p == ' ' || *p == '\t')) {
        p++;
    }

    if (p == last) {
        return 0;
    }

    end = ngx_strlchr(p, last, ';');

    if (end == NULL) {
        end = last;
    }

    rest->data = end;
    rest->len = last - end;

    while (end[-1] == ' ' || end[-1] == '\t') {
        end--;
    }

    pair->data = p;
    pair->len = end - p;

    eq = ngx_strlchr(p, end, '=');

    name->data = p;
    value->data = eq ? eq + 1 : end;
    value->len = end - value->data;

    while (value->len && (value->data[0] == ' ' || value->data[0] == '\t')) {
        value->data++;
        value->len--;
    }

    if (eq == NULL) {
        eq = end;
    }

    while (eq > p && (eq[-1] == ' ' || eq[-1] == '\t')) {
        eq--;
    }

    name->len = eq - p;

    return 1;
}
