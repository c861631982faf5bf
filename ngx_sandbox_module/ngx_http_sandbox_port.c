/*
 * The user-port listener: a server of its own in which every (sandbox, port)
 * has a name and so an origin of its own.
 *
 *   ticket in the query  -> used up, cookie set, redirected to what remains
 *   cookie               -> the request goes to the sandbox and port in it
 *   neither              -> 401, a page that says what to do
 *
 * From here on such a request is one to /v1/sandboxes/{id}/proxy/{port}/...,
 * judged and recorded as any other.
 */


#include "cookie.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_tokens.h"


static ngx_int_t ngx_http_sandbox_port_ticket(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_uint_t ngx_http_sandbox_port_is_ticket(u_char *name, u_char *last);
static void ngx_http_sandbox_port_scrub(u_char *p, u_char *last);
static void ngx_http_sandbox_port_scrub_query(ngx_str_t *text,
    ngx_uint_t version);
static ngx_int_t ngx_http_sandbox_port_route(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_endpoint_token_t *e);
static ngx_uint_t ngx_http_sandbox_port_named(ngx_http_request_t *r,
    sb_endpoint_token_t *e);
static ngx_int_t ngx_http_sandbox_port_redirect(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_int_t ngx_http_sandbox_port_cookie(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static const char *ngx_http_sandbox_port_stranger(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_uint_t ngx_http_sandbox_port_same(ngx_http_request_t *r,
    ngx_str_t *origin);
static ngx_str_t *ngx_http_sandbox_port_header(ngx_http_request_t *r,
    const char *name);


#define ngx_http_sandbox_port_is(s, text)                                     \
    ((s) && (s)->len == sizeof(text) - 1                                      \
     && ngx_strncmp((s)->data, text, sizeof(text) - 1) == 0)


static const char *
ngx_http_sandbox_port_cookie_name(ngx_http_sandbox_main_conf_t *mcf)
{
    return mcf->port_listen->tls ? "__Host-" SB_COOKIE_PORT : SB_COOKIE_PORT;
}


ngx_int_t
ngx_http_sandbox_port_enter(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    u_char                        *buf;
    ngx_str_t                      value;
    ngx_uint_t                     n;
    sb_endpoint_token_t            e;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    ngx_http_sandbox_tokens_refresh(lcf->tokens);

    /* no other credential counts here */
    ctx->checked = 1;
    ctx->port_listener = 1;

    if (ngx_http_sandbox_port_ticket(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    buf = ngx_pnalloc(r->pool, NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    /* another host of the domain may have set one of the same name beside it */

    for (n = 0;
         n < NGX_HTTP_SANDBOX_COOKIES
         && ngx_http_sandbox_cookie_find(r,
                                         ngx_http_sandbox_port_cookie_name(mcf),
                                         n, &value)
            == NGX_OK;
         n++)
    {
        if (ngx_http_sandbox_port_cookie_check(mcf, lcf->tokens, &value,
                                               ctx->started_us, &e, buf)
            == NGX_OK
            && ngx_http_sandbox_port_named(r, &e))
        {
            if (ngx_http_sandbox_port_route(r, ctx, &e) != NGX_OK) {
                return NGX_ERROR;
            }

            break;
        }
    }

    return ngx_http_sandbox_cookie_strip(r);
}


/* Takes the ticket out of the target; what remains is ctx->target. */

static ngx_int_t
ngx_http_sandbox_port_ticket(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    u_char      *p, *last, *mark, *start, *end, *eq;
    ngx_uint_t   kept;

    mark = ngx_strlchr(r->unparsed_uri.data,
                       r->unparsed_uri.data + r->unparsed_uri.len, '?');

    if (mark == NULL) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, r->unparsed_uri.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_cpymem(p, r->unparsed_uri.data, mark - r->unparsed_uri.data);

    kept = 0;
    start = mark + 1;
    mark = r->unparsed_uri.data + r->unparsed_uri.len;

    for ( /* void */ ; start < mark; start = end + 1) {

        end = ngx_strlchr(start, mark, '&');
        end = end ? end : mark;
        eq = ngx_strlchr(start, end, '=');

        if (!ngx_http_sandbox_port_is_ticket(start, eq ? eq : end)) {
            *last++ = kept++ ? '&' : '?';
            last = ngx_cpymem(last, start, end - start);
            continue;
        }

        if (ctx->ticket.data == NULL) {
            ctx->ticket.data = ngx_pnalloc(r->pool, end - start + 1);
            if (ctx->ticket.data == NULL) {
                return NGX_ERROR;
            }

            eq = eq ? eq + 1 : end;
            ctx->ticket.len = end - eq;
            ngx_memcpy(ctx->ticket.data, eq, ctx->ticket.len);
        }
    }

    if (ctx->ticket.data == NULL) {
        return NGX_OK;
    }

    ctx->target.data = p;
    ctx->target.len = last - p;

    /* wherever nginx keeps the target, for logs and variables; each is gone
     * through once, however many there are */

    ngx_http_sandbox_port_scrub_query(&r->request_line, 1);
    ngx_http_sandbox_port_scrub_query(&r->unparsed_uri, 0);
    ngx_http_sandbox_port_scrub(r->args.data, r->args.data + r->args.len);

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sandbox_port_is_ticket(u_char *name, u_char *last)
{
    char    buf[64];
    size_t  n;

    return (size_t) (last - name) <= sizeof(buf)
           && sb_query_decode(buf, &n, sb_str(name, last - name)) == SB_OK
           && sb_eq(sb_str(buf, n), sb_lit(NGX_HTTP_SANDBOX_TICKET_ARG));
}


/* Tickets in a query are overwritten where they stand. */

static void
ngx_http_sandbox_port_scrub(u_char *p, u_char *last)
{
    u_char  *end, *eq;

    for ( /* void */ ; p < last; p = end + 1) {

        end = ngx_strlchr(p, last, '&');
        end = end ? end : last;
        eq = ngx_strlchr(p, end, '=');

        if (eq && ngx_http_sandbox_port_is_ticket(p, eq)) {
            ngx_memset(eq + 1, '*', end - eq - 1);
        }
    }
}


/* The same in what is behind the first "?" of a text, that may end in the version
 * of a request line. */

static void
ngx_http_sandbox_port_scrub_query(ngx_str_t *text, ngx_uint_t version)
{
    u_char  *p, *last, *blank;

    last = text->data + text->len;
    p = ngx_strlchr(text->data, last, '?');

    if (p == NULL) {
        return;
    }

    for (blank = last; version && blank > p; blank--) {

        if (blank[-1] == ' ') {
            last = blank - 1;
            break;
        }
    }

    ngx_http_sandbox_port_scrub(p + 1, last);
}


/* The request becomes one to that port; who acts is who had the ticket made. */

static ngx_int_t
ngx_http_sandbox_port_route(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    sb_endpoint_token_t *e)
{
    u_char                       *p;
    uintptr_t                     escape;
    ngx_str_t                     target;
    ngx_http_sandbox_loc_conf_t  *lcf;

    escape = 2 * ngx_escape_uri(NULL, (u_char *) e->sandbox.data,
                                e->sandbox.len, NGX_ESCAPE_URI_COMPONENT);

    p = ngx_pnalloc(r->pool, sizeof("/v1/sandboxes//proxy/65535/")
                             + e->sandbox.len + escape + ctx->target.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    target.data = p;

    p = ngx_cpymem(p, "/v1/sandboxes/", sizeof("/v1/sandboxes/") - 1);

    if (escape) {
        p = (u_char *) ngx_escape_uri(p, (u_char *) e->sandbox.data,
                                      e->sandbox.len,
                                      NGX_ESCAPE_URI_COMPONENT);
    } else {
        p = ngx_cpymem(p, e->sandbox.data, e->sandbox.len);
    }

    p = ngx_sprintf(p, "/proxy/%uD", e->port);
    p = ngx_cpymem(p, ctx->target.data, ctx->target.len);

    target.len = p - target.data;

    ctx->port_target = ctx->target;
    ctx->target = target;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ctx->token = ngx_http_sandbox_tokens_keep(r, lcf->tokens, e->row);
    if (ctx->token == NULL) {
        return NGX_ERROR;
    }

    ctx->endpoint = *e;
    ctx->endpoint.row = ctx->token;
    ctx->authenticated = 1;

    return NGX_OK;
}


/* Is it meant for the name that the request was made to, and still there? */

static ngx_uint_t
ngx_http_sandbox_port_named(ngx_http_request_t *r, sb_endpoint_token_t *e)
{
    u_char                         label[NGX_HTTP_SANDBOX_LABEL_LEN];
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    if (ngx_http_sandbox_endpoint_is_gone(mcf, e->sandbox)) {
        return 0;
    }

    if (mcf->port_host.len == 0) {
        return 1;
    }

    ngx_http_sandbox_port_label(mcf, e->sandbox, e->port, label);

    return r->headers_in.server.len > sizeof(label)
           && ngx_strncasecmp(r->headers_in.server.data, label, sizeof(label))
              == 0;
}


ngx_int_t
ngx_http_sandbox_port_host_allowed(ngx_http_request_t *r)
{
    u_char                        *p;
    ngx_str_t                     *host;
    ngx_uint_t                     i;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);
    host = &r->headers_in.server;

    if (mcf->port_host.len == 0) {
        return host->len == mcf->port_listen->host.len
               && ngx_strncasecmp(host->data, mcf->port_listen->host.data,
                                  host->len)
                  == 0
               ? NGX_OK : NGX_DECLINED;
    }

    /* "{label}.NAME" */

    if (host->len != NGX_HTTP_SANDBOX_LABEL_LEN + 1 + mcf->port_host.len) {
        return NGX_DECLINED;
    }

    for (i = 0, p = host->data; i < NGX_HTTP_SANDBOX_LABEL_LEN; i++, p++) {
        if (!((*p >= 'a' && *p <= 'z') || (*p >= '2' && *p <= '7'))) {
            return NGX_DECLINED;
        }
    }

    return *p == '.'
           && ngx_strncasecmp(p + 1, mcf->port_host.data, mcf->port_host.len)
              == 0
           ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_sandbox_port_redeem(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    u_char                        *buf;
    ngx_int_t                      rc;
    sb_endpoint_token_t            e;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    if (ctx->ticket.data == NULL || r->method != NGX_HTTP_GET
        || ctx->ticket_used)
    {
        return NGX_OK;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    buf = ngx_pnalloc(r->pool, NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    ngx_http_sandbox_tokens_refresh(lcf->tokens);

    rc = ngx_http_sandbox_ticket_take(mcf, lcf->tokens, &ctx->ticket, &e, buf);

    if (rc != NGX_OK || !ngx_http_sandbox_port_named(r, &e)) {
        ngx_http_sandbox_metric_add(TICKETS_REFUSED, 1);
        return NGX_OK;
    }

    if (ctx->authenticated) {
        /* the cookie stood for the same or an older ticket */
        ctx->target = ctx->port_target;
    }

    ctx->ticket_used = 1;

    if (ngx_http_sandbox_port_route(r, ctx, &e) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sandbox_route(r, ctx);
}


ngx_int_t
ngx_http_sandbox_port_admit(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    const char  *why;

    if (ctx->route.surface != SB_SURFACE_PORT
        || ctx->route.port != ctx->endpoint.port
        || !sb_eq(ctx->route.sandbox, ctx->endpoint.sandbox))
    {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_FORBIDDEN,
                                       "GATEWAY_FORBIDDEN",
                                       "This listener serves the port that was "
                                       "opened and nothing else.", NULL);
    }

    why = ngx_http_sandbox_port_stranger(r, ctx);

    if (why) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_FORBIDDEN,
                                       "GATEWAY_FORBIDDEN", why, NULL);
    }

    if (ctx->ticket.data == NULL) {
        return NGX_OK;
    }

    if (r->method != NGX_HTTP_GET) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "A ticket is used with GET.", NULL);
    }

    return ngx_http_sandbox_port_redirect(r, ctx);
}


/*
 * Cookies go with whatever a page sends, so who sends it is looked at: other
 * origins may link here and no more.  A service worker would outlive cookie
 * and sandbox in the browser, and see the tickets of later visits.
 */

static const char *
ngx_http_sandbox_port_stranger(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_str_t  *origin, *site;

    if (ngx_http_sandbox_port_header(r, "service-worker")) {
        return "Service workers are not served here.";
    }

    origin = ngx_http_sandbox_port_header(r, "origin");
    site = ngx_http_sandbox_port_header(r, "sec-fetch-site");

    if (ctx->upgrade) {
        return origin && ngx_http_sandbox_port_same(r, origin)
               ? NULL : "A WebSocket is opened by a page of this origin only.";
    }

    if (site && (ngx_http_sandbox_port_is(site, "same-site")
                 || ngx_http_sandbox_port_is(site, "cross-site")))
    {
        if ((r->method == NGX_HTTP_GET || r->method == NGX_HTTP_HEAD)
            && ngx_http_sandbox_port_is(
                   ngx_http_sandbox_port_header(r, "sec-fetch-mode"),
                   "navigate")
            && ngx_http_sandbox_port_is(
                   ngx_http_sandbox_port_header(r, "sec-fetch-dest"),
                   "document"))
        {
            return NULL;
        }

        return "Another page may link here, but not load or embed this.";
    }

    if (origin == NULL || ngx_http_sandbox_port_same(r, origin)
        || (ngx_http_sandbox_port_is(origin, "null")
            && ngx_http_sandbox_port_is(site, "same-origin")))
    {
        return NULL;
    }

    return "The page that sent this is of another origin.";
}


/* Scheme and Host of the request, letter case and default port apart. */

static ngx_uint_t
ngx_http_sandbox_port_same(ngx_http_request_t *r, ngx_str_t *origin)
{
    ngx_str_t                      host, o;
    ngx_uint_t                     i, n;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    n = mcf->port_listen->tls ? sizeof("https://") - 1 : sizeof("http://") - 1;

    if (r->headers_in.host == NULL || origin->len <= n
        || ngx_strncasecmp(origin->data,
                           (u_char *) (mcf->port_listen->tls ? "https://"
                                                             : "http://"), n)
           != 0)
    {
        return 0;
    }

    o.data = origin->data + n;
    o.len = origin->len - n;
    host = r->headers_in.host->value;

    for (i = 0; i < 2; i++) {
        ngx_str_t  *s = i ? &host : &o;

        if (mcf->port_listen->tls) {

            if (s->len > 4
                && ngx_strncmp(s->data + s->len - 4, ":443", 4) == 0)
            {
                s->len -= 4;
            }

        } else if (s->len > 3
                   && ngx_strncmp(s->data + s->len - 3, ":80", 3) == 0)
        {
            s->len -= 3;
        }
    }

    return o.len == host.len
           && ngx_strncasecmp(o.data, host.data, host.len) == 0;
}


static ngx_str_t *
ngx_http_sandbox_port_header(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_named(&h[i], name, len)) {
            return &h[i].value;
        }
    }

    return NULL;
}


/* The ticket leaves the address: to what remains of it. */

static ngx_int_t
ngx_http_sandbox_port_redirect(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    u_char                        *p;
    ngx_int_t                      rc;
    ngx_str_t                      type, location, *host;
    ngx_http_complex_value_t       cv;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    if (r->headers_in.host == NULL) {
        /* HTTP/3 may name the server by ":authority" alone */
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "A ticket is used with a Host in the "
                                       "request.", NULL);
    }

    if (ctx->mode != NGX_HTTP_SANDBOX_OFF
        && ngx_http_sandbox_record_begin(r, ctx) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->lost && ctx->mode == NGX_HTTP_SANDBOX_STRICT) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "GATEWAY_RECORDER_UNAVAILABLE",
                                       "This operation must be on record and "
                                       "the recorder does not answer; open the "
                                       "port again shortly.", NULL);
    }

    if (ctx->ticket_used && ngx_http_sandbox_port_cookie(r, ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* with its host: "//elsewhere/" alone would lead there */

    host = &r->headers_in.host->value;

    p = ngx_pnalloc(r->pool, sizeof("https://") + host->len
                             + ctx->port_target.len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    location.data = p;
    location.len = ngx_sprintf(p, "%s%V%V",
                               mcf->port_listen->tls ? "https://" : "http://",
                               host, &ctx->port_target)
                   - p;

    if (ngx_http_sandbox_add_header(r, "Cache-Control", "no-store",
                                    sizeof("no-store") - 1)
        != NGX_OK
        || ngx_http_sandbox_add_header(r, "Referrer-Policy", "no-referrer",
                                       sizeof("no-referrer") - 1)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->judged = 1;

    if (ngx_http_sandbox_drain(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* with a status of this kind the value becomes Location */

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = location;
    ngx_str_set(&type, "text/plain");

    rc = ngx_http_send_response(r, NGX_HTTP_SEE_OTHER, &type, &cv);

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_sandbox_port_cookie(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    u_char                        *p, *last;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    p = ngx_pnalloc(r->pool, NGX_HTTP_SANDBOX_PORT_COOKIE_MAX + 128);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_sprintf(p, "%s=", ngx_http_sandbox_port_cookie_name(mcf));
    last += ngx_http_sandbox_port_cookie_make(mcf, &ctx->endpoint,
                                              ctx->started_us
                                              + (uint64_t) mcf->port_lifetime
                                                * 1000000,
                                              last);

    /* Lax: the redirect comes of a link in the console, which is another site;
     * what else comes from there is refused by where it comes from */

    last = ngx_sprintf(last, "; Path=/; Max-Age=%T; HttpOnly; SameSite=Lax%s",
                       mcf->port_lifetime,
                       mcf->port_listen->tls ? "; Secure" : "");

    return ngx_http_sandbox_add_header(r, "Set-Cookie", (char *) p, last - p);
}


ngx_int_t
ngx_http_sandbox_port_page(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t status, const char *message)
{
    size_t       len;
    u_char      *p;
    ngx_str_t   *accept;
    const char  *todo;

    static const char  policy[] = "default-src 'none'; style-src "
                                  "'unsafe-inline'; frame-ancestors 'none'";

    accept = ngx_http_sandbox_port_header(r, "accept");

    if (accept == NULL
        || ngx_strlcasestrn(accept->data, accept->data + accept->len,
                            (u_char *) "text/html", sizeof("text/html") - 2)
           == NULL)
    {
        return NGX_DECLINED;
    }

    todo = status == NGX_HTTP_UNAUTHORIZED
           ? "Open this port from the console again: a link to it is good once "
             "and for a minute, what it opens for some hours."
           : "Go back to the console, or ask who runs this gateway.";

    len = sizeof("<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
                 "<title></title><style>body{font:1rem/1.5 system-ui,"
                 "sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}"
                 "small{color:#666}</style><h1></h1><p></p><p></p>"
                 "<p><small>Operation </small></p></html>\n")
          + 2 * sizeof("This port is not open here") + ngx_strlen(message)
          + ngx_strlen(todo) + SB_UUID_LEN;

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ctx->refusal.data = p;

    p = ngx_sprintf(p, "<!DOCTYPE html><html lang=\"en\"><meta charset="
                       "\"utf-8\"><title>%s</title><style>body{font:1rem/1.5 "
                       "system-ui,sans-serif;max-width:36rem;margin:4rem auto;"
                       "padding:0 1rem}small{color:#666}</style><h1>%s</h1>"
                       "<p>%s</p><p>%s</p><p><small>Operation %s</small></p>"
                       "</html>\n",
                    "This port is not open here", "This port is not open here",
                    message, todo, ctx->id_text);

    ctx->refusal.len = p - ctx->refusal.data;

    if (ngx_http_sandbox_add_header(r, "Content-Security-Policy", policy,
                                    sizeof(policy) - 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sandbox_add_header(r, "Cache-Control", "no-store",
                                       sizeof("no-store") - 1);
}


ngx_int_t
ngx_http_sandbox_port_shield(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const char  policy[] = "frame-ancestors 'self'";

    part = &r->headers_out.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].hash
            && h[i].key.len == sizeof("Cross-Origin-Opener-Policy") - 1
            && ngx_strncasecmp(h[i].key.data,
                               (u_char *) "Cross-Origin-Opener-Policy",
                               h[i].key.len)
               == 0)
        {
            goto framing;
        }
    }

    /* no page of another origin keeps a handle on it */

    if (ngx_http_sandbox_add_header(r, "Cross-Origin-Opener-Policy",
                                    "same-origin-allow-popups",
                                    sizeof("same-origin-allow-popups") - 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

framing:

    return ngx_http_sandbox_add_header(r, "Content-Security-Policy", policy,
                                       sizeof(policy) - 1);
}
