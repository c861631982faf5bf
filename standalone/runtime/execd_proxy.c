/* execd's own /proxy/{port}/... (3.6) */

#include <stdio.h>
#include <stdlib.h>

#include "execd.h"
#include "proxy.h"
#include "url.h"


static void
rt_bad_gateway(rt_req_t *r, bool connected, const char *why)
{
    (void) connected;
    (void) why;

    rt_fail_text(r, 502, "Bad Gateway\n");
}


void
rt_execd_proxy(rt_req_t *r)
{
    char           *end;
    size_t          n;
    sb_buf_t        target;
    const char     *port, *rest;
    unsigned long   number;
    rt_backend_t    b;

    port = r->path.data + 7;
    n = strcspn(port, "/");

    if (n == 0) {
        rt_fail_text(r, 400, "port is required\n");
        return;
    }

    number = strtoul(port, &end, 10);

    if (end != port + n || *port < '0' || *port > '9' || number == 0
        || number > 65535)
    {
        rt_fail_text(r, 502, "Bad Gateway\n");
        return;
    }

    rest = port + n;
    memset(&target, 0, sizeof(target));
    target.max = 1024 * 1024;

    if (*rest == '\0') {
        sb_buf_add_c(&target, '/');

    } else {
        rt_escape(&target, rt_span(rest, r->path.data + r->path.len),
                  "$&+,/:;=@", false);
    }

    if (strchr(r->target, '?') != NULL) {
        sb_buf_printf(&target, "?%s", r->query);
    }

    memset(&b, 0, sizeof(b));
    b.port = (uint16_t) number;
    b.target = sb_buf_cstr(&target);
    b.fail = rt_bad_gateway;

    if (b.target == NULL) {
        rt_fail_text(r, 502, "Bad Gateway\n");
        return;
    }

    /* 44772 is the number under which the world knows this very process */

    if (b.port == RT_EXECD_PORT) {
        b.port = rt_execd.port;
    }

    if (rt_is_websocket(r)) {
        rt_proxy_websocket(r, &b);

    } else {
        rt_proxy_begin(r, &b);
    }
}
