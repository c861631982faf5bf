#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "digest.h"
#include "lifecycle.h"
#include "proxy.h"


#define RT_GET     1
#define RT_POST    2
#define RT_PUT     4
#define RT_DELETE  8
#define RT_PATCH   16


typedef struct {
    const char  *pattern;       /* `*` is one segment */
    unsigned     method;
    /* id: the first `*`, last: the last one; they end with a NUL */
    void       (*handle)(rt_req_t *r, const char *id, const char *last);
} rt_lc_entry_t;


static char         rt_lc_host[64];
static const char  *rt_lc_key;


void
rt_lifecycle_init(const char *address, const char *key)
{
    snprintf(rt_lc_host, sizeof(rt_lc_host), "%s",
             strcmp(address, "0.0.0.0") == 0 ? "127.0.0.1" : address);
    rt_lc_key = key;
}


const char *
rt_lc_address(void)
{
    return rt_lc_host;
}


static void
rt_lc_list_entry(rt_req_t *r, const char *id, const char *last)
{
    (void) id;
    (void) last;
    rt_lc_list(r);
}


static void
rt_lc_create_entry(rt_req_t *r, const char *id, const char *last)
{
    (void) id;
    (void) last;
    rt_lc_create(r);
}


static void
rt_lc_pools(rt_req_t *r, const char *id, const char *last)
{
    (void) id;
    (void) last;
    rt_lc_fail(r, 501, "KUBERNETES::POOL_NOT_SUPPORTED",
               "The local runtime has no pools.");
}


static void
rt_lc_events(rt_req_t *r, const char *id, const char *last)
{
    (void) id;
    (void) last;
    rt_lc_empty(r, 204);
}


static void
rt_lc_health(rt_req_t *r, const char *id, const char *last)
{
    (void) id;
    (void) last;
    rt_lc_decorate(r);
    rt_out(r, "content-type", "application/json");
    rt_reply(r, 200, "{\"status\":\"healthy\"}", 20);
}


static const rt_lc_entry_t  rt_lc_routes[] = {
    { "/sandboxes", RT_POST, rt_lc_create_entry },
    { "/sandboxes", RT_GET, rt_lc_list_entry },
    { "/sandboxes/*", RT_GET, rt_lc_get },
    { "/sandboxes/*", RT_DELETE, rt_lc_delete },
    { "/sandboxes/*/metadata", RT_PATCH, rt_lc_patch },
    { "/sandboxes/*/pause", RT_POST, rt_lc_pause },
    { "/sandboxes/*/resume", RT_POST, rt_lc_resume },
    { "/sandboxes/*/renew-expiration", RT_POST, rt_lc_renew },
    { "/sandboxes/*/snapshots", RT_POST, rt_lc_snap_create },
    { "/sandboxes/*/endpoints/*", RT_GET, rt_lc_endpoint },
    { "/sandboxes/*/diagnostics/*", RT_GET, rt_lc_diag },
    { "/snapshots", RT_GET, rt_lc_snap_list },
    { "/snapshots/*", RT_GET, rt_lc_snap_get },
    { "/snapshots/*", RT_DELETE, rt_lc_snap_delete },
    { "/pools", RT_POST, rt_lc_pools },
    { "/pools", RT_GET, rt_lc_pools },
    { "/pools/*", RT_GET, rt_lc_pools },
    { "/pools/*", RT_PUT|RT_DELETE, rt_lc_pools },
};


/* Whether path fits; first and last get what stands for `*`. */

static bool
rt_lc_match(const char *pattern, const char *path, char *first, char *last,
    size_t max)
{
    bool    any;
    size_t  n;

    any = false;
    first[0] = last[0] = '\0';

    while (*pattern != '\0') {

        if (*pattern != '*') {
            if (*pattern++ != *path++) {
                return false;
            }

            continue;
        }

        n = strcspn(path, "/");

        if (n == 0 || n >= max) {
            return false;
        }

        memcpy(last, path, n);
        last[n] = '\0';

        if (!any) {
            memcpy(first, last, n + 1);
        }

        any = true;
        path += n;
        pattern++;
    }

    return *path == '\0';
}


/* Looks a path up.  0: no such path, else the methods of the first route with
 * it, which is what Starlette allows; *e is the entry for this method, or
 * NULL. */

static unsigned
rt_lc_lookup(const char *path, unsigned method, const rt_lc_entry_t **e,
    char *first, char *last, size_t max)
{
    size_t    i;
    unsigned  methods;
    char      f[512], l[512];

    methods = 0;
    *e = NULL;

    for (i = 0; i < sizeof(rt_lc_routes) / sizeof(rt_lc_routes[0]); i++) {
        if (rt_lc_match(rt_lc_routes[i].pattern, path, f, l, sizeof(f))) {
            methods = methods ? methods : rt_lc_routes[i].method;

            if (rt_lc_routes[i].method & method) {
                *e = &rt_lc_routes[i];
                snprintf(first, max, "%s", f);
                snprintf(last, max, "%s", l);
            }
        }
    }

    return methods;
}


static unsigned
rt_lc_method(const char *m)
{
    return strcmp(m, "GET") == 0 ? RT_GET : strcmp(m, "POST") == 0 ? RT_POST
           : strcmp(m, "PUT") == 0 ? RT_PUT
           : strcmp(m, "DELETE") == 0 ? RT_DELETE
           : strcmp(m, "PATCH") == 0 ? RT_PATCH : 0;
}


static void
rt_lc_detail(rt_req_t *r, unsigned status, const char *text)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = 256;
    sb_buf_printf(&b, "{\"detail\":\"%s\"}", text);
    rt_lc_json(r, status, &b);
}


static void
rt_lc_not_allowed(rt_req_t *r, unsigned methods)
{
    char  allow[64];

    snprintf(allow, sizeof(allow), "%s%s%s%s%s",
             methods & RT_GET ? ", GET" : "",
             methods & RT_DELETE ? ", DELETE" : "",
             methods & RT_PUT ? ", PUT" : "",
             methods & RT_PATCH ? ", PATCH" : "",
             methods & RT_POST ? ", POST" : "");
    rt_out(r, "allow", allow + 2);
    rt_lc_detail(r, 405, "Method Not Allowed");
}


bool
rt_lc_is_proxy(const rt_req_t *r, rt_lc_route_t *route)
{
    size_t       n;
    const char  *p;

    p = r->path.data;
    p += strncmp(p, "/v1/", 4) == 0 ? 3 : 0;

    if (strncmp(p, "/sandboxes/", 11) != 0) {
        return false;
    }

    p += 11;
    n = strcspn(p, "/");
    route->id = sb_str(p, n);
    p += n;

    if (n == 0 || strncmp(p, "/proxy/", 7) != 0) {
        return false;
    }

    p += 7;
    n = strcspn(p, "/");
    route->port = sb_str(p, n);
    route->rest = p + n;

    return n > 0;
}


/* Whether the key is asked for here. */

static bool
rt_lc_exempt(const rt_req_t *r)
{
    size_t          i;
    const char     *p;
    rt_lc_route_t   route;

    static const char *const  open[] = {
        "/health", "/docs", "/redoc", "/openapi.json"
    };

    p = r->path.data;

    for (i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        if (strncmp(p, open[i], strlen(open[i])) == 0) {
            return true;
        }
    }

    if (!rt_lc_is_proxy(r, &route) || strstr(p, "..") != NULL) {
        return false;
    }

    for (i = 0; i < route.port.len; i++) {
        if (!isdigit((unsigned char) route.port.data[i])) {
            return false;
        }
    }

    return true;
}


static bool
rt_lc_authorized(rt_req_t *r)
{
    const char  *given;

    if (rt_lc_key == NULL || rt_lc_exempt(r)) {
        return true;
    }

    given = rt_header(r, "OPEN-SANDBOX-API-KEY");

    if (given == NULL || given[0] == '\0') {
        rt_lc_fail(r, 401, "MISSING_API_KEY", "Authentication credentials "
                   "are missing. Provide API key via OPEN-SANDBOX-API-KEY "
                   "header.");
        return false;
    }

    if (strlen(given) != strlen(rt_lc_key)
        || !sb_equal_ct(given, rt_lc_key, strlen(given)))
    {
        rt_lc_fail(r, 401, "INVALID_API_KEY", "Authentication credentials "
                   "are invalid. Check your API key and try again.");
        return false;
    }

    return true;
}


static bool
rt_lc_preflight(rt_req_t *r)
{
    bool         known;
    const char  *method, *headers;

    method = rt_header(r, "Access-Control-Request-Method");

    if (strcmp(r->method, "OPTIONS") != 0 || method == NULL
        || rt_header(r, "Origin") == NULL)
    {
        return false;
    }

    known = rt_lc_method(method) != 0 || strcmp(method, "HEAD") == 0
            || strcmp(method, "OPTIONS") == 0;
    headers = rt_header(r, "Access-Control-Request-Headers");
    rt_lc_decorate(r);
    rt_out(r, "access-control-allow-methods",
           "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
    rt_out(r, "access-control-max-age", "600");

    if (headers != NULL) {
        rt_out(r, "access-control-allow-headers", headers);
    }

    rt_out(r, "content-type", "text/plain; charset=utf-8");

    if (known) {
        rt_reply(r, 200, "OK", 2);

    } else {
        rt_reply(r, 400, "Disallowed CORS method", 22);
    }

    return true;
}


static void
rt_lc_redirect(rt_req_t *r, const char *path)
{
    const char  *host;

    host = rt_header(r, "Host");
    rt_outf(r, "location", "http://%s%s%s%s", host ? host : "", path,
            r->query[0] ? "?" : "", r->query);
    rt_lc_empty(r, 307);
}


static void
rt_lc_route(rt_req_t *r)
{
    char                  first[512], last[512], *other;
    size_t                n;
    unsigned              method, methods;
    const char           *path;
    const rt_lc_entry_t  *e;

    method = rt_lc_method(r->method);
    path = r->path.data;

    if (strcmp(path, "/health") == 0) {
        if (method == RT_GET) {
            rt_lc_health(r, NULL, NULL);

        } else {
            rt_lc_not_allowed(r, RT_GET);
        }

        return;
    }

    if (strcmp(path, "/v1/metrics/events") == 0 && method == RT_POST) {
        rt_lc_events(r, NULL, NULL);
        return;
    }

    path += strncmp(path, "/v1/", 4) == 0 ? 3 : 0;
    methods = rt_lc_lookup(path, method, &e, first, last, sizeof(first));

    if (e != NULL) {
        e->handle(r, first, last);
        return;
    }

    if (methods != 0) {
        rt_lc_not_allowed(r, methods);
        return;
    }

    /* one slash too many or too few */

    n = strlen(path);

    if (n > 1 && path[n - 1] == '/') {
        other = strndup(path, n - 1);

        if (other != NULL
            && (rt_lc_lookup(other, method, &e, first, last, sizeof(first))
                || strcmp(r->path.data, "/health/") == 0))
        {
            free(other);
            other = strndup(r->path.data, r->path.len - 1);
            rt_lc_redirect(r, other ? other : "/");
            free(other);
            return;
        }

        free(other);
    }

    rt_lc_detail(r, 404, "Not Found");
}


static void
rt_lc_begin(rt_req_t *r)
{
    rt_lc_route_t  route;
    const char    *upgrade;

    upgrade = rt_header(r, "Upgrade");

    if (upgrade != NULL && strcasecmp(upgrade, "websocket") == 0
        && rt_is_websocket(r) && !rt_lc_is_proxy(r, &route))
    {
        rt_reply(r, 403, "", 0);
        return;
    }

    if (rt_lc_is_proxy(r, &route)
        && (rt_is_websocket(r) || rt_lc_authorized(r)))
    {
        rt_lc_proxy_begin(r);
    }
}


static void
rt_lc_handle(rt_req_t *r)
{
    rt_lc_route_t  route;

    if (r->sink == rt_proxy_sink) {
        rt_proxy_finish(r);

    } else if (!rt_lc_preflight(r) && rt_lc_authorized(r)) {
        if (rt_lc_is_proxy(r, &route)) {
            rt_lc_proxy_refused(r);

        } else {
            rt_lc_route(r);
        }
    }
}


const rt_app_t  rt_lifecycle = { rt_lc_begin, rt_lc_handle };
