/*
 * Reading what upstream names for a port of a sandbox.
 *
 * The address comes from upstream alone (C020), must lie in the configured
 * range, and must not be one of ours: a gateway that learnt its own address
 * would proxy to itself.
 */


#include "ngx_http_sandbox_named.h"
#include "json.h"

#include <ifaddrs.h>


static const char *ngx_http_sandbox_named_authority(
    ngx_http_sandbox_named_t *named, ngx_http_sandbox_loc_conf_t *lcf,
    ngx_str_t *authority);
static const char *ngx_http_sandbox_named_name(
    ngx_http_sandbox_named_t *named, ngx_http_sandbox_loc_conf_t *lcf,
    ngx_str_t *host, in_port_t port);
static const char *ngx_http_sandbox_named_judge(
    ngx_http_sandbox_named_t *named, ngx_http_sandbox_loc_conf_t *lcf);
static const char *ngx_http_sandbox_named_path(ngx_str_t *path);
static const char *ngx_http_sandbox_named_headers(
    ngx_http_sandbox_named_t *named, const sb_jv_t *headers);
static void ngx_http_sandbox_named_set(ngx_http_sandbox_named_t *named,
    struct sockaddr *sa, in_port_t port);
static ngx_uint_t ngx_http_sandbox_named_usable(struct sockaddr *sa);
static ngx_uint_t ngx_http_sandbox_named_loopback(struct sockaddr *sa);
static ngx_uint_t ngx_http_sandbox_named_ours(struct sockaddr *sa,
    socklen_t socklen);
static ngx_uint_t ngx_http_sandbox_named_local(struct sockaddr *sa,
    socklen_t socklen);


const char *
ngx_http_sandbox_named_read(ngx_http_sandbox_named_t *named,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *body)
{
    u_char         *p;
    sb_str_t        text;
    ngx_str_t       authority, path;
    sb_jdoc_t      *doc;
    const char     *err;
    const sb_jv_t  *root;

    static const sb_json_limits_t  limits = { 16, 64 * 1024 };

    if (lcf->upstream == NULL) {
        return "there is no sandbox_upstream";
    }

    ngx_memzero(named, sizeof(ngx_http_sandbox_named_t));

    doc = sb_jdoc_parse(ngx_http_sandbox_str(body), &limits, NULL);
    if (doc == NULL) {
        return "it is not JSON";
    }

    root = sb_jdoc_root(doc);
    text = sb_jv_str(root, "endpoint");

    if (text.len == 0) {
        err = "it has no \"endpoint\"";
        goto done;
    }

    authority.data = (u_char *) text.data;
    authority.len = text.len;

    ngx_str_null(&path);

    p = ngx_strlchr(authority.data, authority.data + authority.len, '/');

    if (p) {
        path.data = p;
        path.len = authority.data + authority.len - p;
        authority.len = p - authority.data;
    }

    while (path.len && path.data[path.len - 1] == '/') {
        path.len--;
    }

    if (authority.len > NGX_HTTP_SANDBOX_NAMED_MAX
        || path.len > NGX_HTTP_SANDBOX_NAMED_MAX)
    {
        err = "its \"endpoint\" is too long";
        goto done;
    }

    err = ngx_http_sandbox_named_path(&path);
    if (err) {
        goto done;
    }

    named->host.data = named->text;
    named->host.len = authority.len;
    p = ngx_cpymem(named->text, authority.data, authority.len);

    named->path.data = p;
    named->path.len = path.len;

    if (path.len) {
        p = ngx_copy(p, path.data, path.len);
    }

    named->ingress_to.data = p;

    err = ngx_http_sandbox_named_headers(named, sb_jv_get(root, "headers"));
    if (err) {
        goto done;
    }

    err = ngx_http_sandbox_named_authority(named, lcf, &named->host);

done:

    sb_jdoc_free(doc);

    return err;
}


static const char *
ngx_http_sandbox_named_authority(ngx_http_sandbox_named_t *named,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *authority)
{
    u_char                       *p, *last;
    ngx_int_t                     n;
    ngx_str_t                     host;
    ngx_http_sandbox_sockaddr_t   addr;

    p = authority->data;
    last = p + authority->len;

    ngx_memzero(&addr, sizeof(ngx_http_sandbox_sockaddr_t));

    if (p < last && *p == '[') {

        host.data = p + 1;
        p = ngx_strlchr(p, last, ']');

        if (p == NULL) {
            return "its address is not valid";
        }

        host.len = p - host.data;
        p++;

    } else {
        host.data = p;
        p = ngx_strlchr(p, last, ':');

        if (p == NULL) {
            p = last;
        }

        host.len = p - host.data;
    }

    if (p == last) {
        n = lcf->upstream->tls ? 443 : 80;

    } else {
        n = *p == ':' ? ngx_atoi(p + 1, last - p - 1) : NGX_ERROR;

        if (n < 1 || n > 65535) {
            return "its port is not valid";
        }
    }

    if (host.data != authority->data) {

#if (NGX_HAVE_INET6)

        if (ngx_inet6_addr(host.data, host.len,
                           addr.sockaddr_in6.sin6_addr.s6_addr)
            != NGX_OK)
        {
            return "its address is not valid";
        }

        addr.sockaddr_in6.sin6_family = AF_INET6;

        ngx_http_sandbox_named_set(named, &addr.sockaddr, (in_port_t) n);

        return ngx_http_sandbox_named_judge(named, lcf);

#else
        return "it is an IPv6 address";
#endif
    }

    addr.sockaddr_in.sin_addr.s_addr = ngx_inet_addr(host.data, host.len);

    if (addr.sockaddr_in.sin_addr.s_addr == INADDR_NONE) {
        return ngx_http_sandbox_named_name(named, lcf, &host, (in_port_t) n);
    }

    addr.sockaddr_in.sin_family = AF_INET;

    ngx_http_sandbox_named_set(named, &addr.sockaddr, (in_port_t) n);

    return ngx_http_sandbox_named_judge(named, lcf);
}


/*
 * A name other than upstream's own teaches nothing: resolving it here would
 * let whoever answers for that name choose where requests go.
 */

static const char *
ngx_http_sandbox_named_name(ngx_http_sandbox_named_t *named,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *host, in_port_t port)
{
    const char                   *err;
    ngx_uint_t                    i, own, v6;
    struct sockaddr              *sa;
    ngx_http_sandbox_upstream_t  *up;

    up = lcf->upstream;

    own = host->len == up->host.len
          && ngx_strncasecmp(host->data, up->host.data, host->len) == 0;

    if (!own
        && (host->len != sizeof("localhost") - 1
            || ngx_strncasecmp(host->data, (u_char *) "localhost", host->len)
               != 0))
    {
        return "it is a name other than upstream's own";
    }

    err = "upstream is not on this machine's loopback";

    /* execd and Docker's published ports are more often found on IPv4 */

    for (v6 = 0; v6 < 2; v6++) {
        for (i = 0; i < up->naddrs; i++) {

            sa = up->addrs[i].sockaddr;

            if ((sa->sa_family != AF_INET) != v6
                || (!own && !ngx_http_sandbox_named_loopback(sa)))
            {
                continue;
            }

            ngx_http_sandbox_named_set(named, sa, port);

            err = ngx_http_sandbox_named_judge(named, lcf);
            if (err == NULL) {
                return NULL;
            }
        }
    }

    return err;
}


static const char *
ngx_http_sandbox_named_judge(ngx_http_sandbox_named_t *named,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_uint_t                    i;
    struct sockaddr              *sa;
    ngx_http_sandbox_named_t      own;
    ngx_http_sandbox_upstream_t  *up;

    sa = &named->addr.sockaddr;

    if (!ngx_http_sandbox_named_usable(sa)) {
        return "nobody can be reached at its address";
    }

    /* upstream is no sandbox, unless an ingress has the same address */

    up = lcf->upstream;

    for (i = 0; named->path.len + named->ingress_to.len == 0 && i < up->naddrs;
         i++)
    {
        ngx_http_sandbox_named_set(&own, up->addrs[i].sockaddr,
                                   ngx_inet_get_port(up->addrs[i].sockaddr));

        if (ngx_cmp_sockaddr(sa, named->socklen, &own.addr.sockaddr,
                             own.socklen, 1)
            == NGX_OK)
        {
            return "its address is upstream's own";
        }
    }

    if (!ngx_http_sandbox_named_allowed(lcf, sa, named->socklen)) {
        return "its address is outside of sandbox_endpoint_allow";
    }

    if (ngx_http_sandbox_named_ours(sa, named->socklen)) {
        return "its address is one of this nginx";
    }

    return NULL;
}


/*
 * The path becomes the beginning of the URI that is sent: only what needs no
 * escaping, and nothing that climbs.
 */

static const char *
ngx_http_sandbox_named_path(ngx_str_t *path)
{
    u_char      *p, *last, *segment;
    size_t       len;

    static const char  chars[] = "-._~!$&'()*+,;=:@%";

    if (path->len == 0) {
        return NULL;
    }

    last = path->data + path->len;
    segment = path->data + 1;

    for (p = segment; p <= last; p++) {

        if (p == last || *p == '/') {
            len = p - segment;

            if (len == 0
                || (len == 1 && segment[0] == '.')
                || (len == 2 && segment[0] == '.' && segment[1] == '.'))
            {
                return "its path is not in its simplest form";
            }

            segment = p + 1;
            continue;
        }

        if (!((*p >= '0' && *p <= '9') || ((*p | 0x20) >= 'a'
              && (*p | 0x20) <= 'z')) && (*p == '\0' || !strchr(chars, *p)))
        {
            return "its path holds a character that is not allowed";
        }
    }

    /* behind a server of the same API it is the server proxy, no address */

    if (ngx_strlcasestrn(path->data, last, (u_char *) "/sandboxes/",
                         sizeof("/sandboxes/") - 2)
        != NULL)
    {
        return "it leads through the server proxy";
    }

    return NULL;
}


static const char *
ngx_http_sandbox_named_headers(ngx_http_sandbox_named_t *named,
    const sb_jv_t *headers)
{
    size_t          i;
    const sb_jv_t  *h;

    if (headers == NULL || headers->kind != SB_JSON_OPEN_OBJECT) {
        return NULL;
    }

    for (h = headers->child; h; h = h->next) {

        if (sb_ieq(h->key, sb_lit("OPEN-SANDBOX-INGRESS"))) {
            /* before ingress 1.0.2; the client sends it to whom it was told
             * to, the server proxy knows how to pass it on */
            return "it routes by OPEN-SANDBOX-INGRESS";
        }

        if (!sb_ieq(h->key, sb_lit("OpenSandbox-Ingress-To"))) {
            continue;
        }

        if (h->kind != SB_JSON_STRING
            || h->text.len == 0
            || h->text.len > NGX_HTTP_SANDBOX_NAMED_MAX)
        {
            return "its OpenSandbox-Ingress-To is not valid";
        }

        for (i = 0; i < h->text.len; i++) {
            if (h->text.data[i] <= ' ' || h->text.data[i] >= 0x7f) {
                return "its OpenSandbox-Ingress-To is not valid";
            }
        }

        named->ingress_to.len = h->text.len;
        ngx_memcpy(named->ingress_to.data, h->text.data, h->text.len);
    }

    return NULL;
}


/*
 * Keeps an address in the one form in which it is compared: no IPv4-mapped
 * IPv6, no scope, no padding.
 */

static void
ngx_http_sandbox_named_set(ngx_http_sandbox_named_t *named,
    struct sockaddr *sa, in_port_t port)
{
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct in6_addr      *in6;
    struct sockaddr_in6  *sin6;
#endif

    ngx_memzero(&named->addr, sizeof(ngx_http_sandbox_sockaddr_t));

    sin = &named->addr.sockaddr_in;

    switch (sa->sa_family) {

#if (NGX_HAVE_INET6)
    case AF_INET6:

        in6 = &((struct sockaddr_in6 *) sa)->sin6_addr;

        if (IN6_IS_ADDR_V4MAPPED(in6)) {
            ngx_memcpy(&sin->sin_addr, &in6->s6_addr[12], 4);
            break;
        }

        sin6 = &named->addr.sockaddr_in6;
        sin6->sin6_family = AF_INET6;
        sin6->sin6_port = htons(port);
        sin6->sin6_addr = *in6;
        named->socklen = sizeof(struct sockaddr_in6);

        return;
#endif

    case AF_INET:
        sin->sin_addr = ((struct sockaddr_in *) sa)->sin_addr;
        break;

    default: /* a Unix socket: 0.0.0.0 is never used */
        break;
    }

    sin->sin_family = AF_INET;
    sin->sin_port = htons(port);
    named->socklen = sizeof(struct sockaddr_in);
}


ngx_uint_t
ngx_http_sandbox_named_allowed(ngx_http_sandbox_loc_conf_t *lcf,
    struct sockaddr *sa, socklen_t socklen)
{
    ngx_uint_t                    i;
    ngx_http_sandbox_named_t      own;
    ngx_http_sandbox_upstream_t  *up;

    if (lcf->allow && lcf->allow->nelts) {
        return ngx_cidr_match(sa, lcf->allow) == NGX_OK;
    }

    up = lcf->upstream;

    for (i = 0; up && i < up->naddrs; i++) {

        ngx_http_sandbox_named_set(&own, up->addrs[i].sockaddr, 0);

        if (ngx_cmp_sockaddr(sa, socklen, &own.addr.sockaddr, own.socklen, 0)
            == NGX_OK)
        {
            return 1;
        }
    }

    return 0;
}


/* Not: unspecified (the kernel takes it for loopback), multicast, broadcast. */

static ngx_uint_t
ngx_http_sandbox_named_usable(struct sockaddr *sa)
{
    u_char  *p;

#if (NGX_HAVE_INET6)

    if (sa->sa_family == AF_INET6) {
        p = ((struct sockaddr_in6 *) sa)->sin6_addr.s6_addr;

        return p[0] != 0xff
               && !IN6_IS_ADDR_UNSPECIFIED((struct in6_addr *) p);
    }

#endif

    p = (u_char *) &((struct sockaddr_in *) sa)->sin_addr;

    return p[0] != 0 && p[0] < 224;
}


static ngx_uint_t
ngx_http_sandbox_named_loopback(struct sockaddr *sa)
{
    switch (sa->sa_family) {

#if (NGX_HAVE_INET6)
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *) sa)->sin6_addr);
#endif

    case AF_INET:
        return *(u_char *) &((struct sockaddr_in *) sa)->sin_addr == 127;

    default:
        return 0;
    }
}


static ngx_uint_t
ngx_http_sandbox_named_ours(struct sockaddr *sa, socklen_t socklen)
{
    ngx_uint_t                i;
    ngx_listening_t          *ls;
    ngx_http_sandbox_named_t  own;

    ls = ngx_cycle->listening.elts;

    for (i = 0; i < ngx_cycle->listening.nelts; i++) {

        if (ls[i].type != SOCK_STREAM
            || (ls[i].sockaddr->sa_family != AF_INET
#if (NGX_HAVE_INET6)
                && ls[i].sockaddr->sa_family != AF_INET6
#endif
               )
            || ngx_inet_get_port(ls[i].sockaddr) != ngx_inet_get_port(sa))
        {
            continue;
        }

        if (ngx_inet_wildcard(ls[i].sockaddr)) {

            /* a wildcard of either family may listen on the other, too */

            if (ngx_http_sandbox_named_local(sa, socklen)) {
                return 1;
            }

            continue;
        }

        ngx_http_sandbox_named_set(&own, ls[i].sockaddr,
                                   ngx_inet_get_port(ls[i].sockaddr));

        if (ngx_cmp_sockaddr(sa, socklen, &own.addr.sockaddr, own.socklen, 1)
            == NGX_OK)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_sandbox_named_local(struct sockaddr *sa, socklen_t socklen)
{
    ngx_uint_t                found;
    struct ifaddrs           *list, *ifa;
    ngx_http_sandbox_named_t  own;

    if (ngx_http_sandbox_named_loopback(sa)) {
        return 1;
    }

    if (getifaddrs(&list) == -1) {
        /* then every address could be ours */
        return 1;
    }

    found = 0;

    for (ifa = list; ifa && !found; ifa = ifa->ifa_next) {

        if (ifa->ifa_addr == NULL
            || ifa->ifa_addr->sa_family != sa->sa_family)
        {
            continue;
        }

        ngx_http_sandbox_named_set(&own, ifa->ifa_addr, 0);

        found = ngx_cmp_sockaddr(sa, socklen, &own.addr.sockaddr, own.socklen,
                                 0)
                == NGX_OK;
    }

    freeifaddrs(list);

    return found;
}
