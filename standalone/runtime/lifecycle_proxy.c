/* The server proxy, /sandboxes/{id}/proxy/{port}/... (2). */

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "lifecycle.h"
#include "proxy.h"
#include "url.h"


#define RT_EXECD_PORT  44772


/* A port of one to five figures behind any zeros, or 0. */

static uint16_t
rt_lc_port(sb_str_t text)
{
    size_t    i;
    unsigned  n;

    n = 0;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }

        n = n * 10 + (unsigned) (text.data[i] - '0');

        if (n > 65535) {
            return 0;
        }
    }

    return (uint16_t) n;
}


static void
rt_backend_failed(rt_req_t *r, bool connected, const char *why)
{
    if (connected) {
        rt_lc_fail(r, 500, "GENERAL::UNKNOWN_ERROR",
                   "An internal error occurred in the proxy: %s", why);

    } else {
        rt_lc_fail(r, 502, "GENERAL::UNKNOWN_ERROR", "Could not connect to "
                   "the backend sandbox: %s", why);
    }
}


/* The backend's target: the decoded rest is encoded again but what still looks
 * like an escape stays, so that it is decoded twice in all; a decoded `?` or
 * `#` counts. */

static char *
rt_backend_target(const rt_req_t *r, const rt_lc_route_t *route)
{
    sb_buf_t     b;
    const char  *rest, *hash;
    bool         query;

    memset(&b, 0, sizeof(b));
    b.max = 1024 * 1024;

    /* what is not execd's own goes through execd: it is there that the port
     * is the sandbox's */

    if (rt_lc_port(route->port) != RT_EXECD_PORT) {
        sb_buf_printf(&b, "/proxy/%u", (unsigned) rt_lc_port(route->port));
    }

    sb_buf_add_c(&b, '/');
    rest = route->rest + strspn(route->rest, "/");
    hash = strchr(rest, '#');
    query = memchr(rest, '?', hash ? (size_t) (hash - rest) : strlen(rest))
            != NULL;

    rt_escape(&b, hash ? rt_span(rest, hash) : sb_str(rest, strlen(rest)),
              "!$&'()*+,;=:@/?", true);

    if (hash == NULL && r->query[0] != '\0') {
        sb_buf_add_c(&b, query ? '&' : '?');
        rt_query_httpx(&b, r->query);
    }

    return sb_buf_cstr(&b);
}


/* The target of a WebSocket: the query as it was sent. */

static char *
rt_websocket_target(const rt_req_t *r, const rt_lc_route_t *route)
{
    sb_buf_t     b;
    const char  *rest;

    memset(&b, 0, sizeof(b));
    b.max = 1024 * 1024;

    if (rt_lc_port(route->port) != RT_EXECD_PORT) {
        sb_buf_printf(&b, "/proxy/%u", (unsigned) rt_lc_port(route->port));
    }

    rest = route->rest + strspn(route->rest, "/");
    sb_buf_add_c(&b, '/');
    rt_escape(&b, sb_str(rest, strlen(rest)), "!$&'()*+,;=:@/", true);

    if (r->query[0] != '\0') {
        sb_buf_printf(&b, "?%s", r->query);
    }

    return sb_buf_cstr(&b);
}


/* Methods that the server proxy has a route for. */

static bool
rt_lc_proxied(const char *method)
{
    size_t  i;

    static const char *const  methods[] = {
        "GET", "POST", "PUT", "PATCH", "DELETE"
    };

    for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(method, methods[i]) == 0) {
            return true;
        }
    }

    return false;
}


void
rt_lc_proxy_begin(rt_req_t *r)
{
    bool            websocket;
    char            reason[128];
    rt_box_t       *b;
    rt_backend_t    be;
    rt_lc_route_t   route;

    rt_lc_is_proxy(r, &route);
    websocket = rt_is_websocket(r);

    if (rt_lc_port(route.port) == 0) {
        if (websocket) {
            rt_reply(r, 403, "", 0);
        }

        return;
    }

    if (!rt_lc_proxied(r->method)
        || (!websocket && rt_header(r, "Upgrade") != NULL
            && strcasecmp(rt_header(r, "Upgrade"), "websocket") == 0))
    {
        return;
    }

    b = rt_box_find(route.id);

    if (b == NULL) {
        if (websocket) {
            snprintf(reason, sizeof(reason), "Sandbox %.*s not found.",
                     (int) (route.id.len < 80 ? route.id.len : 80),
                     route.id.data);
            rt_websocket_refuse(r, 1011, reason);
        }

        return;
    }

    memset(&be, 0, sizeof(be));
    be.port = b->port;
    be.server = true;
    be.fail = rt_backend_failed;
    be.decorate = rt_lc_decorate;
    be.request_id = "";
    rt_box_release(b);

    if (websocket) {
        be.target = rt_websocket_target(r, &route);
        rt_proxy_websocket(r, &be);

    } else {
        be.target = rt_backend_target(r, &route);
        rt_proxy_begin(r, &be);
    }
}


void
rt_lc_proxy_refused(rt_req_t *r)
{
    rt_lc_route_t   route;

    rt_lc_is_proxy(r, &route);

    if (!rt_lc_proxied(r->method)) {
        rt_lc_decorate(r);
        rt_out(r, "allow", "GET, DELETE, PUT, PATCH, POST");
        rt_out(r, "content-type", "application/json");
        rt_reply(r, 405, "{\"detail\":\"Method Not Allowed\"}", 31);

    } else if (rt_lc_port(route.port) == 0) {
        rt_lc_invalid(r, "int_parsing", "\"path\",\"port\"",
                      "Input should be a valid integer, unable to parse "
                      "string as an integer", NULL, NULL);

    } else if (rt_header(r, "Upgrade") != NULL
               && strcasecmp(rt_header(r, "Upgrade"), "websocket") == 0)
    {
        rt_lc_fail(r, 400, "GENERAL::UNKNOWN_ERROR",
                   "Websocket upgrade is not supported yet");

    } else {
        rt_lc_unknown(r, route.id);
    }
}
