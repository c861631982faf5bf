/* WebSocket handshakes: what is one, and what must be one (C044, C050). */


#include "ngx_http_sandbox_headers.h"


static ngx_uint_t ngx_http_sandbox_listed(ngx_str_t *list, ngx_str_t *token);
static ngx_uint_t ngx_http_sandbox_takeover(ngx_http_sandbox_ctx_t *ctx);
static ngx_uint_t ngx_http_sandbox_handshake_key(ngx_str_t *value);


ngx_uint_t
ngx_http_sandbox_wants_upgrade(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_table_elt_t  *h;
    ngx_list_part_t  *part;

    static ngx_str_t  upgrade = ngx_string("upgrade");

    h = r->headers_in.upgrade;

    if (h == NULL || h->value.len != sizeof("websocket") - 1
        || ngx_strncasecmp(h->value.data, (u_char *) "websocket", h->value.len)
           != 0)
    {
        return 0;
    }

    if (r->http_version >= NGX_HTTP_VERSION_20) {
        /* has no Connection; it is refused for that later */
        return 1;
    }

    if (r->http_version < NGX_HTTP_VERSION_11) {
        /* has to be answered as if there were no Upgrade */
        return 0;
    }

    /* a hop-by-hop header that Connection does not name is none */

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_is(&h[i], "connection")
            && ngx_http_sandbox_listed(&h[i].value, &upgrade))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_sandbox_listed(ngx_str_t *list, ngx_str_t *token)
{
    u_char  *p, *last, *end;

    p = list->data;
    last = p + list->len;

    for ( /* void */ ; p < last; p = end + 1) {

        end = ngx_strlchr(p, last, ',');
        end = end ? end : last;

        while (p < end && (*p == ' ' || *p == '\t')) {
            p++;
        }

        if ((size_t) (end - p) >= token->len
            && ngx_strncasecmp(p, token->data, token->len) == 0)
        {
            p += token->len;

            while (p < end && (*p == ' ' || *p == '\t')) {
                p++;
            }

            if (p == end) {
                return 1;
            }
        }
    }

    return 0;
}


/*
 * Versions of execd put the holder of a terminal out before they knew the
 * handshake to be good: with "takeover" it is looked at here.  Without, execd
 * says no in its own words, and nobody comes to harm.
 */

const char *
ngx_http_sandbox_handshake_fault(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t        i, keys, versions;
    ngx_table_elt_t  *h;
    ngx_list_part_t  *part;

    if (sb_op_index(ctx->op) != SB_OP_PTY_OPEN
        || !ngx_http_sandbox_takeover(ctx))
    {
        return NULL;
    }

    if (!ctx->upgrade) {
        return "A terminal is taken over by a WebSocket handshake only.";
    }

    keys = 0;
    versions = 0;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_is(&h[i], "sec-websocket-key")) {
            keys += ngx_http_sandbox_handshake_key(&h[i].value) ? 1 : 2;

        } else if (ngx_http_sandbox_header_is(&h[i], "sec-websocket-version")) {
            versions += h[i].value.len == 2
                        && ngx_strncmp(h[i].value.data, "13", 2) == 0 ? 1 : 2;
        }
    }

    return keys == 1 && versions == 1
           ? NULL : "A terminal is taken over by a WebSocket handshake with one "
                    "Sec-WebSocket-Key and version 13 only.";
}


static ngx_uint_t
ngx_http_sandbox_takeover(ngx_http_sandbox_ctx_t *ctx)
{
    char      buf[64];
    size_t    n;
    sb_str_t  query, name, value;

    query = ctx->route.query;

    while (sb_query_next(&query, &name, &value)) {

        if (name.len <= sizeof(buf)
            && sb_query_decode(buf, &n, name) == SB_OK
            && sb_eq(sb_str(buf, n), sb_lit("takeover")))
        {
            return 1;
        }
    }

    return 0;
}


/* 16 bytes in base64 */

static ngx_uint_t
ngx_http_sandbox_handshake_key(ngx_str_t *value)
{
    u_char     buf[24];
    ngx_str_t  dst;

    dst.data = buf;

    return value->len == 24 && ngx_decode_base64(&dst, value) == NGX_OK
           && dst.len == 16;
}
