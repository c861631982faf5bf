/*
 * Routes.  A seed is "METHOD TARGET", with a "!" in front for a WebSocket.
 *
 * Beside memory errors it looks for a request that upstream reads in another
 * way than sb_route(): a plain model of what upstream does (decode everything
 * once, match, decode what is behind the carrier again, cut at "?" and "#",
 * unwrap) must come to the same sandbox, port and path, or the request must
 * have been refused.
 */

#include <stdio.h>
#include <stdlib.h>

#include "operation.h"
#include "path.h"
#include "utf8.h"

#define check(what)  if (!(what)) fail(#what, target)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
fail(const char *what, sb_str_t target)
{
    fprintf(stderr, "not so: %s\ntarget: %.*s\n", what, (int) target.len,
            target.data);
    abort();
}


/* %XX where whole, all else as it stands; dst holds src.len bytes. */
static sb_str_t
decode(char *dst, sb_str_t src)
{
    char    *out;
    size_t   i;
    char     hex[3];

    out = dst;
    hex[2] = '\0';

    for (i = 0; i < src.len; i++) {
        if (src.data[i] == '%' && i + 2 < src.len
            && strspn((hex[0] = src.data[i + 1], hex[1] = src.data[i + 2],
                       hex), "0123456789abcdefABCDEF") == 2)
        {
            *out++ = (char) strtol(hex, NULL, 16);
            i += 2;

        } else {
            *out++ = src.data[i];
        }
    }

    return sb_str(dst, (size_t) (out - dst));
}


/* Takes "/name" off the front of s, with a whole segment behind it when value
 * is given. */
static bool
take(sb_str_t *s, const char *name, sb_str_t *value)
{
    size_t    n, i;
    sb_str_t  rest;

    n = strlen(name);

    if (s->len < n || memcmp(s->data, name, n) != 0) {
        return false;
    }

    rest = sb_str(s->data + n, s->len - n);

    if (value != NULL) {
        for (i = 0; i < rest.len && rest.data[i] != '/'; i++) { /* void */ }

        *value = sb_str(rest.data, i);
        rest = sb_str(rest.data + i, rest.len - i);

    } else if (rest.len && rest.data[0] != '/') {
        return false;
    }

    *s = rest;

    return true;
}


static unsigned long
number(sb_str_t s)
{
    char  text[32];

    if (s.len == 0 || s.len >= sizeof(text)) {
        return 0;
    }

    memcpy(text, s.data, s.len);
    text[s.len] = '\0';

    return strspn(text, "0123456789") == s.len ? strtoul(text, NULL, 10) : 0;
}


static bool
climbs(sb_str_t s)
{
    return (sb_path_flags(s) & SB_PATH_CLIMBS) != 0
           && memchr(s.data, '\\', s.len) == NULL;
}


static void
check_route(const sb_route_t *r, sb_str_t target)
{
    char           *once, *twice;
    size_t          i;
    sb_str_t        raw, path, rest, id, text, inner, cut;
    unsigned long   port;
    unsigned        pass;

    raw = target;

    for (i = 0; i < raw.len && raw.data[i] != '?'; i++) { /* void */ }

    raw.len = i;
    once = malloc(raw.len + 1);
    twice = malloc(raw.len + 1);

    if (once == NULL || twice == NULL) {
        abort();
    }

    path = decode(once, raw);
    check(take(&path, "/v1", NULL) == r->versioned);
    rest = path;

    if (!take(&rest, "/sandboxes/", &id) || !take(&rest, "/proxy/", &text)) {

        /* lifecycle */

        check(!r->proxied && r->surface == SB_SURFACE_LIFECYCLE);
        check(sb_eq(path.len ? path : sb_lit("/"), r->path));
        check(memchr(r->path.data, '%', r->path.len) == NULL);
        free(once);
        free(twice);
        return;
    }

    check(r->proxied);
    check(sb_eq(id, r->sandbox));
    check(number(text) == r->carrier_port);

    /* over the short way what is left is decoded once, over the long way
     * twice: both must lead to the same place */

    for (pass = 0; pass < 2; pass++) {
        inner = rest;
        port = number(text);

        if (pass == 1) {
            inner = decode(twice, inner);

            if (r->surface != SB_SURFACE_PORT) {
                cut = inner;

                for (i = 0; i < cut.len && cut.data[i] != '?'
                            && cut.data[i] != '#'; i++) { /* void */ }

                inner.len = i;
            }
        }

        for ( ;; ) {
            sb_str_t  digits, behind;

            behind = inner;

            if (port != SB_PORT_EXECD || !take(&behind, "/proxy/", &digits)) {
                break;
            }

            port = number(digits);
            inner = behind;
        }

        check(port == r->port);

        if (r->surface == SB_SURFACE_PORT) {
            check(!climbs(inner));

            if (pass == 1) {
                break;
            }
        }

        check(sb_eq(inner.len ? inner : sb_lit("/"), r->path));
    }

    check((r->port == SB_PORT_EXECD) == (r->surface == SB_SURFACE_EXECD));
    check((r->port == SB_PORT_EGRESS) == (r->surface == SB_SURFACE_EGRESS));

    free(once);
    free(twice);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool         upgrade;
    char        *buf, *dst;
    size_t       n, len;
    sb_rc_t      rc;
    sb_str_t     method, target, query, name, value;
    sb_route_t   r;
    const char  *space;

    upgrade = size && data[0] == '!';
    method = sb_str(data + upgrade, size - upgrade);
    space = method.len ? memchr(method.data, ' ', method.len) : NULL;

    if (space == NULL) {
        return 0;
    }

    target = sb_str(space + 1, method.len - (size_t) (space - method.data) - 1);
    method.len = (size_t) (space - method.data);

    n = 2 * target.len + 64;
    buf = malloc(n);

    if (buf == NULL) {
        abort();
    }

    rc = sb_route(&r, method, target, upgrade, buf, n);

    check(r.op != NULL && r.op == sb_op_at(sb_op_index(r.op)));
    check(rc == SB_OK || rc == SB_AMBIGUOUS);
    check((rc == SB_AMBIGUOUS) == (r.reason != NULL));
    check(!r.proxied || r.rest <= target.len);
    check(sb_utf8_valid(r.sandbox));
    check(memchr(r.sandbox.data ? r.sandbox.data : "", '/', r.sandbox.len)
          == NULL);

    if (rc == SB_OK) {
        check(r.path.len && r.path.data[0] == '/');

        if (r.proxied) {
            check(r.rest == target.len || target.data[r.rest] == '/'
                  || target.data[r.rest] == '?');
        }

        check_route(&r, target);

    } else {
        check((r.op->flags & SB_OPF_UNKNOWN)
              || r.op == sb_op_find(sb_lit("proxy.http")));
    }

    /* the query, whatever the verdict */

    query = r.query;

    while (sb_query_next(&query, &name, &value)) {
        check(memchr(name.data, '=', name.len) == NULL);

        dst = malloc(value.len + 1);

        if (dst == NULL) {
            abort();
        }

        if (sb_query_decode(dst, &len, value) == SB_OK) {
            check(len <= value.len && sb_utf8_valid(sb_str(dst, len)));
            check(memchr(dst, '\0', len) == NULL);
        }

        free(dst);
    }

    /* any bytes are a glob and a name */

    check(sb_op_glob(target, target));
    check(sb_op_glob(sb_lit("*"), target));

    free(buf);

    return 0;
}
