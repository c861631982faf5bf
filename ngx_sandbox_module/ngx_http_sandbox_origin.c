/*
 * Cookies come along whoever sent the browser here, so a session counts only
 * for requests of our own pages: Origin has to be the scheme, host and port by
 * which we are reached (C052, C053).
 */


#include "cookie.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_session.h"


static ngx_int_t ngx_http_sandbox_authority(ngx_str_t *text,
    ngx_http_sandbox_origin_t *o);
static ngx_uint_t ngx_http_sandbox_headers_named(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);


ngx_int_t
ngx_http_sandbox_origin(ngx_http_request_t *r, ngx_http_sandbox_origin_t *o)
{
    u_char     *p;
    ngx_str_t   value;

    ngx_memzero(o, sizeof(ngx_http_sandbox_origin_t));

#if (NGX_HTTP_SSL)
    o->tls = r->connection->ssl != NULL;
#endif

    if (r->headers_in.host == NULL) {
        return NGX_DECLINED;
    }

    value = r->headers_in.host->value;

    if (ngx_http_sandbox_trusted(r)) {
        ngx_str_t  forwarded;

        switch (ngx_http_sandbox_headers_named(r, "x-forwarded-proto",
                                               &forwarded))
        {
        case 0:
            break;

        case 1:
            o->tls = forwarded.len == 5
                     && ngx_strncasecmp(forwarded.data, (u_char *) "https", 5)
                        == 0;
            break;

        default:
            return NGX_DECLINED;
        }

        switch (ngx_http_sandbox_headers_named(r, "x-forwarded-host",
                                               &forwarded))
        {
        case 0:
            break;

        case 1:
            value = forwarded;

            /* behind several proxies the first has written the first */
            p = ngx_strlchr(value.data, value.data + value.len, ',');
            value.len = p ? (size_t) (p - value.data) : value.len;
            break;

        default:
            return NGX_DECLINED;
        }
    }

    return ngx_http_sandbox_authority(&value, o);
}


/* HOST[:PORT], the port being that of the scheme when it is left out. */

static ngx_int_t
ngx_http_sandbox_authority(ngx_str_t *text, ngx_http_sandbox_origin_t *o)
{
    u_char     *p, *last, *colon;
    ngx_int_t   port;

    last = text->data + text->len;
    colon = NULL;

    for (p = last; p > text->data && p[-1] != ']'; p--) {
        if (p[-1] == ':') {
            colon = p - 1;
            break;
        }
    }

    o->host.data = text->data;
    o->host.len = (colon ? colon : last) - text->data;
    o->port = o->tls ? 443 : 80;

    if (colon && colon + 1 != last) {
        port = ngx_atoi(colon + 1, last - colon - 1);

        if (port < 1 || port > 65535) {
            return NGX_DECLINED;
        }

        o->port = (in_port_t) port;
    }

    for (p = o->host.data; p < o->host.data + o->host.len; p++) {
        if (*p <= ' ' || *p == '/' || *p == '@' || *p == ',' || *p == '?'
            || *p == '#')
        {
            return NGX_DECLINED;
        }
    }

    return o->host.len ? NGX_OK : NGX_DECLINED;
}


const char *
ngx_http_sandbox_origin_fault(ngx_http_request_t *r, ngx_uint_t required)
{
    ngx_str_t                  value;
    ngx_http_sandbox_origin_t  own, theirs;

    switch (ngx_http_sandbox_headers_named(r, "origin", &value)) {

    case 0:
        return required
               ? "With a session, a request that changes something, or opens a "
                 "WebSocket, must carry Origin."
               : NULL;

    case 1:
        break;

    default:
        return "The header Origin occurs more than once.";
    }

    ngx_memzero(&theirs, sizeof(ngx_http_sandbox_origin_t));

    if (value.len > 8
        && ngx_strncasecmp(value.data, (u_char *) "https://", 8) == 0)
    {
        theirs.tls = 1;
        value.data += 8;
        value.len -= 8;

    } else if (value.len > 7
               && ngx_strncasecmp(value.data, (u_char *) "http://", 7) == 0)
    {
        value.data += 7;
        value.len -= 7;

    } else {
        value.len = 0;
    }

    if (value.len == 0
        || ngx_http_sandbox_authority(&value, &theirs) != NGX_OK
        || ngx_http_sandbox_origin(r, &own) != NGX_OK
        || own.tls != theirs.tls || own.port != theirs.port
        || own.host.len != theirs.host.len
        || ngx_strncasecmp(own.host.data, theirs.host.data, own.host.len) != 0)
    {
        return "With a session, requests must come from the gateway's own "
               "pages: Origin is another one.";
    }

    return NULL;
}


/* How many headers of a name there are; the value of the last. */

static ngx_uint_t
ngx_http_sandbox_headers_named(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    size_t            len;
    ngx_uint_t        i, n;
    ngx_table_elt_t  *h;
    ngx_list_part_t  *part;

    n = 0;
    len = ngx_strlen(name);

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_named(&h[i], name, len)) {
            *value = h[i].value;
            n++;
        }
    }

    return n;
}


/* Two gateways on one host are told apart by their ports, which cookies are
 * not. */

ngx_int_t
ngx_http_sandbox_session_name(ngx_http_request_t *r, u_char *name)
{
    ngx_http_sandbox_origin_t  own;

    if (ngx_http_sandbox_origin(r, &own) != NGX_OK) {
        return NGX_DECLINED;
    }

    (void) ngx_sprintf(name, "%s" SB_COOKIE_SESSION "_%ud%Z",
                       own.tls ? "__Host-" : "", (unsigned) own.port);

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_session_enter(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    u_char                         name[NGX_HTTP_SANDBOX_SESSION_NAME_MAX];
    ngx_str_t                      value;
    ngx_uint_t                     n;
    sb_token_t                     found, *token;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    /* what comes from a user port is a stranger's page, and what an ingress
     * names may be one */

    if (mcf->session_zone == NULL
        || lcf->ingress->form != NGX_HTTP_SANDBOX_INGRESS_OFF
        || ctx->route_rc != SB_OK || ctx->route.surface == SB_SURFACE_PORT
        || ngx_http_sandbox_session_name(r, name) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    /* another server of the host may have set one of the same name beside it,
     * but no end of them */

    for (n = 0;
         n < NGX_HTTP_SANDBOX_COOKIES
         && ngx_http_sandbox_cookie_find(r, (char *) name, n, &value) == NGX_OK;
         n++)
    {
        if (ngx_http_sandbox_session_find(mcf, lcf->tokens, &value,
                                          ctx->started_us, &found)
            != NGX_OK)
        {
            continue;
        }

        token = ngx_palloc(r->pool, sizeof(sb_token_t));
        if (token == NULL) {
            return NGX_ERROR;
        }

        *token = found;

        ctx->token = token;
        ctx->session = value;
        ctx->authenticated = 1;
        ctx->origin_fault = ngx_http_sandbox_origin_fault(r,
                                ctx->upgrade
                                || (r->method != NGX_HTTP_GET
                                    && r->method != NGX_HTTP_HEAD)
                                || (ctx->op
                                    && ctx->op->flags & SB_OPF_MUTATES));
        return NGX_OK;
    }

    return NGX_DECLINED;
}
