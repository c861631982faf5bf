/* Finds the sandbox of a request to an ingress: see ingress.h. */

#include "ingress.h"
#include "route_int.h"

#define SB_EXPIRES_LEN    13    /* at most */
#define SB_SIGNATURE_LEN  9


static bool sb_ingress_expires(sb_str_t s);
static bool sb_ingress_signature(sb_str_t s);
static bool sb_ingress_lower(char c);
static sb_rc_t sb_ingress_path(sb_route_t *route, const sb_decoded_t *d,
    sb_str_t method, bool upgrade);
static size_t sb_ingress_signed(const sb_decoded_t *d, size_t end);
static bool sb_ingress_known(const sb_route_t *route, sb_rc_t rc);


sb_rc_t
sb_ingress_token(sb_ingress_t *t, sb_str_t text)
{
    size_t    n, cut[3];
    uint32_t  port;
    sb_str_t  last, expires, middle;

    memset(t, 0, sizeof(sb_ingress_t));

    for (size_t i = 0; i < text.len; i++) {
        if (!sb_ingress_lower(text.data[i])
            && !(text.data[i] >= 'A' && text.data[i] <= 'Z')
            && text.data[i] != '-' && text.data[i] != '_')
        {
            return SB_DECLINED;
        }
    }

    if (text.len == 0 || text.data[0] == '-') {
        return SB_DECLINED;
    }

    /* the last three "-", from behind */

    n = 0;

    for (size_t i = text.len; i > 0 && n < 3; i--) {
        if (text.data[i - 1] == '-') {
            cut[n++] = i - 1;
        }
    }

    if (n == 0) {
        return SB_DECLINED;
    }

    last = sb_str(text.data + cut[0] + 1, text.len - cut[0] - 1);

    if (n == 3) {
        expires = sb_str(text.data + cut[1] + 1, cut[0] - cut[1] - 1);
        middle = sb_str(text.data + cut[2] + 1, cut[1] - cut[2] - 1);

        if (sb_ingress_signature(last) && sb_ingress_expires(expires)
            && sb_route_port(&port, middle))
        {
            if (sb_route_port(&t->port, last)) {
                return SB_AMBIGUOUS;
            }

            t->sandbox = sb_str(text.data, cut[2]);
            t->port = port;
            t->signature = last;

            return SB_OK;
        }
    }

    if (!sb_route_port(&t->port, last)) {
        return SB_DECLINED;
    }

    t->sandbox = sb_str(text.data, cut[0]);

    return SB_OK;
}


/* A number to base 36 as upstream's parser takes it: that of 64 bits, without
 * leading zeros. */
static bool
sb_ingress_expires(sb_str_t s)
{
    uint64_t  n, digit;

    if (s.len == 0 || s.len > SB_EXPIRES_LEN
        || (s.len > 1 && s.data[0] == '0'))
    {
        return false;
    }

    n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (!sb_ingress_lower(s.data[i])) {
            return false;
        }

        digit = (uint64_t) (s.data[i] <= '9' ? s.data[i] - '0'
                                             : s.data[i] - 'a' + 10);

        if (n > (UINT64_MAX - digit) / 36) {
            return false;
        }

        n = n * 36 + digit;
    }

    return true;
}


/* Eight hexadecimal digits and the name of a key. */
static bool
sb_ingress_signature(sb_str_t s)
{
    if (s.len != SB_SIGNATURE_LEN) {
        return false;
    }

    for (size_t i = 0; i < s.len; i++) {
        if (!sb_ingress_lower(s.data[i])
            || (i < s.len - 1 && s.data[i] > 'f'))
        {
            return false;
        }
    }

    return true;
}


static bool
sb_ingress_lower(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}


sb_rc_t
sb_ingress_route(sb_route_t *route, const sb_ingress_t *token, sb_str_t method,
    sb_str_t target, bool upgrade, char *buf, size_t size)
{
    size_t        inner;
    sb_rc_t       rc;
    sb_decoded_t  d;

    rc = sb_route_begin(route, &d, target, buf, size);

    route->op = &sb_op_table[SB_OP_PROXY_HTTP];
    route->surface = SB_SURFACE_PORT;
    route->proxied = true;

    if (rc != SB_OK) {
        return rc;
    }

    if (sb_eq(sb_str(d.data, d.len), sb_lit("/status.ok"))) {
        route->op = &sb_op_table[SB_OP_SERVER_HEALTH];
        route->surface = SB_SURFACE_LIFECYCLE;
        route->proxied = false;
        route->path = sb_str(d.data, d.len);

        return SB_OK;
    }

    if (token == NULL) {
        return sb_ingress_path(route, &d, method, upgrade);
    }

    if (token->sandbox.len == 0) {
        return sb_route_refuse(route, "the request to the ingress names no "
                                      "sandbox and port");
    }

    route->sandbox = token->sandbox;
    route->port = token->port;
    route->signature = token->signature;

    rc = sb_route_unwrap(route, &d, 0, &inner);
    if (rc != SB_OK) {
        return rc;
    }

    return sb_route_end(route, &d, inner, method, upgrade);
}


static sb_rc_t
sb_ingress_path(sb_route_t *route, const sb_decoded_t *d, sb_str_t method,
    bool upgrade)
{
    bool        plain, stripped;
    size_t      i, end, behind, inner;
    sb_rc_t     rc, src;
    sb_str_t    path;
    sb_route_t  other;

    path = sb_str(d->data, d->len);
    i = sb_segment(path, 1);

    rc = sb_route_clean(route, d, i < d->len ? i + 1 : i);
    if (rc != SB_OK) {
        return rc;
    }

    if (i == 1 || i == d->len) {
        return sb_route_refuse(route, "the path does not begin with "
                                      "/{sandbox}/{port}");
    }

    end = sb_segment(path, i + 1);

    if (!sb_route_port(&route->port, sb_str(d->data + i + 1, end - i - 1))) {
        return sb_route_refuse(route, sb_bad_port);
    }

    route->sandbox = sb_str(d->data + 1, i - 1);
    other = *route;

    behind = sb_ingress_signed(d, end);

    if (behind == 0) {
        rc = sb_route_unwrap(route, d, end, &inner);
        return rc == SB_OK ? sb_route_end(route, d, inner, method, upgrade)
                           : rc;
    }

    /* in one place of the target, and there as it is */

    if (memchr(d->raw.data, '%', behind) != NULL) {
        return sb_route_refuse(route, "the signed route is percent-encoded");
    }

    other.signature = sb_str(d->raw.data + behind - SB_SIGNATURE_LEN,
                             SB_SIGNATURE_LEN);

    src = sb_route_unwrap(&other, d, behind, &inner);

    if (src == SB_OK) {
        src = sb_route_end(&other, d, inner, method, upgrade);
    }

    rc = sb_route_unwrap(route, d, end, &inner);

    if (rc == SB_OK) {
        rc = sb_route_end(route, d, inner, method, upgrade);
    }

    plain = sb_ingress_known(route, rc);
    stripped = sb_ingress_known(&other, src);

    if (route->carrier_port != SB_PORT_EXECD
        && route->carrier_port != SB_PORT_EGRESS)
    {
        /* a user port: the same thing in both readings */
        plain = false;
    }

    if (plain && stripped) {
        *route = other;
        route->path = sb_str(NULL, 0);
        route->op = &sb_op_table[SB_OP_PROXY_HTTP];

        return sb_route_refuse(route, "the path is an operation both with and "
                                      "without a signature");
    }

    if (plain) {
        return rc;
    }

    *route = other;

    return src;
}


/* Where a signed route's inner path begins, when the segments behind the port
 * look like an expiry and a signature; else 0. */
static size_t
sb_ingress_signed(const sb_decoded_t *d, size_t end)
{
    size_t    mid, behind;
    sb_str_t  path;

    path = sb_str(d->data, d->len);

    if (end == d->len) {
        return 0;
    }

    mid = sb_segment(path, end + 1);

    if (mid == d->len) {
        return 0;
    }

    behind = sb_segment(path, mid + 1);

    return sb_ingress_expires(sb_str(d->data + end + 1, mid - end - 1))
           && sb_ingress_signature(sb_str(d->data + mid + 1,
                                          behind - mid - 1))
           ? behind : 0;
}


static bool
sb_ingress_known(const sb_route_t *route, sb_rc_t rc)
{
    return rc == SB_OK && !(route->op->flags & SB_OPF_UNKNOWN);
}


void
sb_ingress_mask(sb_route_t *route, sb_str_t target)
{
    char          *p;
    size_t         i, end, behind;
    uint32_t       port;
    sb_str_t       path;
    sb_decoded_t   d;

    path = route->path;

    if (path.len < 2 || path.data[0] != '/') {
        return;
    }

    i = sb_segment(path, 1);

    if (i == path.len) {
        return;
    }

    end = sb_segment(path, i + 1);

    if (!sb_route_port(&port, sb_str(path.data + i + 1, end - i - 1))) {
        return;
    }

    memset(&d, 0, sizeof(sb_decoded_t));
    d.data = (char *) path.data;
    d.len = path.len;

    behind = sb_ingress_signed(&d, end);

    if (behind == 0) {
        return;
    }

    p = d.data + behind - SB_SIGNATURE_LEN;
    route->signature = sb_str(memmem(target.data, target.len, p,
                                     SB_SIGNATURE_LEN),
                              SB_SIGNATURE_LEN);

    if (route->signature.data == NULL) {
        route->signature.len = 0;
    }

    memset(p, '*', SB_SIGNATURE_LEN);
}
