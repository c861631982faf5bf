/* Addresses: upstream's URL, the short look whether it answers, our port. */

#include "gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define GW_PROBE_MS  2000


typedef struct {
    int         fd;
    SSL_CTX    *ctx;
    SSL        *ssl;
    int64_t     until_ms;
} gw_conn_t;


static bool gw_wait(gw_conn_t *c, short events);
static struct addrinfo *gw_resolve(const gw_url_t *url, int *rc);
static bool gw_dial(gw_conn_t *c, const gw_url_t *url, char *why, size_t n);
static bool gw_connect(gw_conn_t *c, const struct addrinfo *ai, int *err);
static bool gw_address_text(char *text, size_t n, const struct addrinfo *ai,
    unsigned port);
static bool gw_dial_tls(gw_conn_t *c, const gw_url_t *url, char *why,
    size_t n);
static bool gw_look(const gw_url_t *url, const char *path, const char *key,
    unsigned *status, char *why, size_t n);
static bool gw_ask(gw_conn_t *c, const gw_url_t *url, const char *path,
    const char *key, unsigned *status, char *why, size_t n);
static void gw_hang_up(gw_conn_t *c);
static int gw_listen_socket(const char *addr, unsigned port,
    struct sockaddr_storage *sa, socklen_t *len);


bool
gw_url_parse(gw_url_t *url, const char *text, const char **why)
{
    size_t       len;
    const char  *p, *end, *colon;

    memset(url, 0, sizeof(*url));

    if (strncmp(text, "http://", 7) == 0) {
        p = text + 7;

    } else if (strncmp(text, "https://", 8) == 0) {
        p = text + 8;
        url->tls = true;

    } else {
        *why = "does not begin with http:// or https://";
        return false;
    }

    if (text[strcspn(text, "?#@\\ \t\"'$;{}")] != '\0') {
        *why = "holds a user name, a query or a character that an address"
               " cannot have";
        return false;
    }

    end = p + strcspn(p, "/");
    len = (size_t) (end - p);

    if (len == 0 || len >= sizeof(url->authority)) {
        *why = "names no host";
        return false;
    }

    memcpy(url->authority, p, len);

    if (p[0] == '[') {
        colon = memchr(p, ']', len);

        if (colon == NULL) {
            *why = "has a \"[\" without \"]\"";
            return false;
        }

        len = (size_t) (colon - p - 1);
        p++;
        colon++;

    } else {
        colon = memchr(p, ':', len);
        if (colon == NULL) {
            colon = end;
        }

        len = (size_t) (colon - p);
    }

    if (len == 0 || len >= sizeof(url->host)) {
        *why = "names no host";
        return false;
    }

    memcpy(url->host, p, len);
    url->port = url->tls ? 443 : 80;

    if (colon != end) {
        char  port[8];

        len = (size_t) (end - colon) - 1;

        if (colon[0] != ':' || len == 0 || len >= sizeof(port)) {
            *why = "has no valid port";
            return false;
        }

        memcpy(port, colon + 1, len);
        port[len] = '\0';

        if (!gw_number(port, 1, 65535, &url->port)) {
            *why = "has no valid port";
            return false;
        }
    }

    if (end[strspn(end, "/")] != '\0') {
        *why = "has a path, which the module cannot put before its requests";
        return false;
    }

    return true;
}


bool
gw_upstream_probe(const gw_url_t *url, const char *text)
{
    char      why[400];
    unsigned  status;

    if (!gw_look(url, "/health", NULL, &status, why, sizeof(why))) {
        return gw_fail("upstream %s is unreachable: %s; start it or correct"
                       " --upstream.", text, why);
    }

    if (status != 200) {
        gw_note("upstream %s answers %u to /health: is that an OpenSandbox"
                " server?", text, status);
    }

    return true;
}


bool
gw_upstream_key(const gw_url_t *url, const char *text, const char *key)
{
    char      why[400];
    unsigned  status;

    if (!gw_look(url, "/v1/sandboxes?pageSize=1", key, &status, why,
                 sizeof(why))
        || (status != 401 && status != 403))
    {
        return true;            /* not now, or not about the key */
    }

    if (key) {
        return gw_fail("upstream %s refuses the API key (%u): every call of"
                       " every client will end there.", text, status);
    }

    return gw_fail("upstream %s wants an API key (%u): give it with"
                   " --api-key-file.", text, status);
}


/* One GET on a connection of its own, GW_PROBE_MS in all. */

static bool
gw_look(const gw_url_t *url, const char *path, const char *key,
    unsigned *status, char *why, size_t n)
{
    bool       ok;
    gw_conn_t  c;

    memset(&c, 0, sizeof(c));
    c.fd = -1;
    c.until_ms = gw_now_ms() + GW_PROBE_MS;
    why[0] = '\0';

    ok = gw_dial(&c, url, why, n)
         && (!url->tls || gw_dial_tls(&c, url, why, n))
         && gw_ask(&c, url, path, key, status, why, n);

    gw_hang_up(&c);

    return ok;
}


bool
gw_port_free(const char *addr, unsigned port, const char *flag)
{
    int                      fd, one, err;
    socklen_t                len;
    struct sockaddr_storage  sa;

    fd = gw_listen_socket(addr, port, &sa, &len);

    if (fd == -1) {
        return gw_fail("\"%s\" is not an address of IPv4 or IPv6.", addr);
    }

    one = 1;
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));

    err = 0;

    if (bind(fd, (struct sockaddr *) &sa, len) == -1 || listen(fd, 1) == -1) {
        err = errno;
    }

    close(fd);

    switch (err) {

    case 0:
        return true;

    case EADDRINUSE:
        return gw_fail("port %u on %s is taken; end what listens there or"
                       " choose another with %s.", port, addr, flag);

    case EACCES:
        return gw_fail("port %u on %s is not allowed for this user; choose one"
                       " above 1023 with %s.", port, addr, flag);

    case EADDRNOTAVAIL:
        return gw_fail("%s is no address of this machine.", addr);

    default:
        return gw_fail("port %u on %s cannot be used: %s.", port, addr,
                       strerror(err));
    }
}


bool
gw_port_open(const char *addr, unsigned port)
{
    int                      fd, rc;
    socklen_t                len;
    struct sockaddr_storage  sa;

    fd = gw_listen_socket(addr, port, &sa, &len);

    if (fd == -1) {
        return false;
    }

    /* connecting to the wildcard address means connecting to loopback */

    rc = connect(fd, (struct sockaddr *) &sa, len);
    close(fd);

    return rc == 0;
}


static int
gw_listen_socket(const char *addr, unsigned port,
    struct sockaddr_storage *sa, socklen_t *len)
{
    int               fd;
    char              service[8];
    struct addrinfo   hints, *res;

    memset(&hints, 0, sizeof(hints));
    hints.ai_flags = AI_NUMERICHOST|AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;

    snprintf(service, sizeof(service), "%u", port);

    if (getaddrinfo(addr, service, &hints, &res) != 0) {
        return -1;
    }

    memcpy(sa, res->ai_addr, res->ai_addrlen);
    *len = res->ai_addrlen;

    fd = socket(res->ai_family, SOCK_STREAM|SOCK_CLOEXEC, 0);
    freeaddrinfo(res);

    return fd;
}


static bool
gw_wait(gw_conn_t *c, short events)
{
    int64_t        left;
    struct pollfd  p;

    left = c->until_ms - gw_now_ms();

    if (left <= 0) {
        return false;
    }

    p.fd = c->fd;
    p.events = events;

    return poll(&p, 1, (int) left) == 1;
}


static struct addrinfo *
gw_resolve(const gw_url_t *url, int *rc)
{
    char              service[8];
    struct addrinfo   hints, *res;

    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;

    snprintf(service, sizeof(service), "%u", url->port);

    *rc = getaddrinfo(url->host, service, &hints, &res);

    return *rc == 0 ? res : NULL;
}


static bool
gw_dial(gw_conn_t *c, const gw_url_t *url, char *why, size_t n)
{
    int               rc, err;
    struct addrinfo  *res, *ai;

    res = gw_resolve(url, &rc);

    if (res == NULL) {
        snprintf(why, n, "%s", gai_strerror(rc));
        return false;
    }

    err = ETIMEDOUT;

    for (ai = res; ai && !gw_connect(c, ai, &err); ai = ai->ai_next) {
        /* void */
    }

    freeaddrinfo(res);

    if (c->fd == -1) {
        snprintf(why, n, "%s", strerror(err));
        return false;
    }

    return true;
}


static bool
gw_connect(gw_conn_t *c, const struct addrinfo *ai, int *err)
{
    socklen_t  len;

    c->fd = socket(ai->ai_family, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (c->fd == -1) {
        *err = errno;
        return false;
    }

    if (connect(c->fd, ai->ai_addr, ai->ai_addrlen) == 0) {
        return true;
    }

    *err = errno;

    if (*err == EINPROGRESS) {
        *err = ETIMEDOUT;

        if (gw_wait(c, POLLOUT)) {
            len = sizeof(*err);
            (void) getsockopt(c->fd, SOL_SOCKET, SO_ERROR, err, &len);

            if (*err == 0) {
                return true;
            }
        }
    }

    close(c->fd);
    c->fd = -1;

    return false;
}


/* There is nobody, or no way there: not only slow to answer. */

static bool
gw_refused(int err)
{
    return err == ECONNREFUSED || err == ENETUNREACH || err == EHOSTUNREACH
           || err == EADDRNOTAVAIL || err == EAFNOSUPPORT;
}


/* nginx goes round the addresses of a name, and a request is sent once: it would
 * end at an address where nobody listens, such as [::1] of localhost.  One that
 * has not answered yet may be slow at this moment only: it is used. */

void
gw_upstream_servers(gw_t *g)
{
    int               rc, err;
    char              text[80];
    size_t            used;
    unsigned          all, open;
    gw_conn_t         c;
    struct addrinfo  *res, *ai;

    res = gw_resolve(&g->upstream, &rc);
    all = open = 0;
    used = 0;

    for (ai = res; ai; ai = ai->ai_next) {

        memset(&c, 0, sizeof(c));
        c.until_ms = gw_now_ms() + GW_PROBE_MS / 4;
        all++;

        if (gw_connect(&c, ai, &err)) {
            gw_hang_up(&c);

        } else if (gw_refused(err)) {
            continue;
        }

        if (gw_address_text(text, sizeof(text), ai, g->upstream.port)
            && used + strlen(text) + 32 < sizeof(g->upstream_servers))
        {
            used += (size_t) snprintf(g->upstream_servers + used,
                                      sizeof(g->upstream_servers) - used,
                                      "%s%s", open ? ";\n        server  " : "",
                                      text);
            open++;
        }
    }

    if (res) {
        freeaddrinfo(res);
    }

    if (open == 0 || open == all) {
        g->upstream_servers[0] = '\0';      /* the name says it */
        return;
    }

    gw_note("upstream %s has %u addresses, of which %u can be used: the others"
            " are left out until the next start.", g->opt.upstream, all, open);
}


static bool
gw_address_text(char *text, size_t n, const struct addrinfo *ai, unsigned port)
{
    char  host[INET6_ADDRSTRLEN + 20];

    if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof(host), NULL, 0,
                    NI_NUMERICHOST)
        != 0 || strchr(host, '%'))
    {
        return false;           /* nginx knows no scopes of addresses */
    }

    snprintf(text, n, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);

    return true;
}


static bool
gw_dial_tls(gw_conn_t *c, const gw_url_t *url, char *why, size_t n)
{
    int            rc;
    long           verify;
    unsigned char  bin[16];

    c->ctx = SSL_CTX_new(TLS_client_method());

    if (c->ctx == NULL || SSL_CTX_set_default_verify_paths(c->ctx) != 1) {
        snprintf(why, n, "TLS cannot be set up here");
        return false;
    }

    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);

    c->ssl = SSL_new(c->ctx);

    if (c->ssl == NULL || SSL_set_fd(c->ssl, c->fd) != 1) {
        snprintf(why, n, "TLS cannot be set up here");
        return false;
    }

    if (inet_pton(AF_INET, url->host, bin) == 1
        || inet_pton(AF_INET6, url->host, bin) == 1)
    {
        (void) X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl),
                                             url->host);
    } else {
        (void) SSL_set_tlsext_host_name(c->ssl, url->host);
        (void) SSL_set1_host(c->ssl, url->host);
    }

    for ( ;; ) {
        rc = SSL_connect(c->ssl);

        if (rc == 1) {
            return true;
        }

        rc = SSL_get_error(c->ssl, rc);

        if ((rc == SSL_ERROR_WANT_READ && gw_wait(c, POLLIN))
            || (rc == SSL_ERROR_WANT_WRITE && gw_wait(c, POLLOUT)))
        {
            continue;
        }

        break;
    }

    verify = SSL_get_verify_result(c->ssl);

    if (verify != X509_V_OK) {
        snprintf(why, n, "its certificate is not trusted on this machine (%s)",
                 X509_verify_cert_error_string(verify));

    } else {
        snprintf(why, n, "it does not complete a TLS handshake");
    }

    return false;
}


static bool
gw_ask(gw_conn_t *c, const gw_url_t *url, const char *path, const char *key,
    unsigned *status, char *why, size_t n)
{
    int      rc, err;
    char     req[1024 + GW_KEY_MAX], answer[16];
    size_t   len, done;
    ssize_t  got;

    rc = snprintf(req, sizeof(req),
                  "GET %s HTTP/1.1\r\nHost: %s\r\n"
                  "User-Agent: sandbox-gateway/" SB_VERSION "\r\n"
                  "%s%s%sConnection: close\r\n\r\n", path, url->authority,
                  key ? "OPEN-SANDBOX-API-KEY: " : "", key ? key : "",
                  key ? "\r\n" : "");

    len = (size_t) rc;

    /* small enough for the socket's buffer: one write does it */

    got = c->ssl ? SSL_write(c->ssl, req, (int) len)
                 : send(c->fd, req, len, MSG_NOSIGNAL);

    if (got != (ssize_t) len) {
        snprintf(why, n, "it closed the connection");
        return false;
    }

    done = 0;

    while (done < sizeof("HTTP/1.1 200") - 1) {
        got = c->ssl ? SSL_read(c->ssl, answer + done,
                                (int) (sizeof(answer) - 1 - done))
                     : recv(c->fd, answer + done, sizeof(answer) - 1 - done, 0);

        if (got > 0) {
            done += (size_t) got;
            continue;
        }

        err = c->ssl ? SSL_get_error(c->ssl, (int) got) : SSL_ERROR_NONE;

        if (err == SSL_ERROR_WANT_READ
            || (c->ssl == NULL && got == -1 && errno == EAGAIN))
        {
            if (gw_wait(c, POLLIN)) {
                continue;
            }

            snprintf(why, n, "no answer within %d s", GW_PROBE_MS / 1000);
            return false;
        }

        snprintf(why, n, "it closed the connection without an answer");
        return false;
    }

    answer[done] = '\0';

    if (sscanf(answer, "HTTP/1.%*1u %3u", status) != 1) {
        snprintf(why, n, "what answers there does not speak HTTP");
        return false;
    }

    return true;
}


static void
gw_hang_up(gw_conn_t *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);

    if (c->fd != -1) {
        close(c->fd);
    }

    ERR_clear_error();
}
