#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "url.h"


struct rt_http_s {
    struct MHD_Daemon  *daemon;
    const rt_app_t     *app;
    unsigned            idle_s;
};

typedef struct {
    rt_reader_pt   reader;
    void          *ctx;
    void         (*ctx_free)(void *);
} rt_stream_t;

typedef struct {
    rt_upgraded_pt   fn;
    void            *ctx;
} rt_upgrade_t;


void
rt_more_files(void)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}


int
rt_listen(const char *addr, uint16_t *port)
{
    int                 fd, one, e;
    socklen_t           len;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons(*port);

    if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }

    fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return -1;
    }

    one = 1;
    len = sizeof(sin);

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == -1
        || bind(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || listen(fd, 511) == -1
        || getsockname(fd, (struct sockaddr *) &sin, &len) == -1)
    {
        e = errno;
        close(fd);
        errno = e;
        return -1;
    }

    *port = ntohs(sin.sin_port);

    return fd;
}


static void
rt_req_free(rt_req_t *r)
{
    unsigned  i;

    for (i = 0; i < r->nout; i++) {
        free(r->out[i].name);
        free(r->out[i].value);
    }

    if (r->ctx_free != NULL) {
        r->ctx_free(r->ctx);
    }

    sb_buf_free(&r->path);
    sb_buf_free(&r->body);
    free(r->target);
    free(r);
}


/* Called before libmicrohttpd takes the request line apart: the only place
 * that shows the target as it was sent. */

static void *
rt_on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
{
    char       *q;
    rt_req_t   *r;
    rt_http_t  *http;

    http = cls;
    r = calloc(1, sizeof(rt_req_t));

    if (r == NULL) {
        return NULL;
    }

    r->conn = conn;
    r->app = http->app;
    r->rc = MHD_NO;
    r->path.max = 256 * 1024;
    r->body.max = RT_BODY_MAX;
    r->target = strdup(uri);

    if (r->target == NULL) {
        free(r);
        return NULL;
    }

    q = strchr(r->target, '?');
    r->query = q ? q + 1 : "";
    r->raw_path = sb_str(r->target, q ? (size_t) (q - r->target)
                                      : strlen(r->target));

    if (rt_unescape(&r->path, r->raw_path, false) != SB_OK
        || sb_buf_cstr(&r->path) == NULL)
    {
        rt_req_free(r);
        return NULL;
    }

    return r;
}


static size_t
rt_no_unescape(void *cls, struct MHD_Connection *conn, char *s)
{
    (void) cls;
    (void) conn;

    return strlen(s);
}


static enum MHD_Result
rt_on_request(void *cls, struct MHD_Connection *conn, const char *url,
    const char *method, const char *version, const char *data, size_t *n,
    void **req_cls)
{
    sb_rc_t    rc;
    rt_req_t  *r;

    (void) cls;
    (void) conn;
    (void) url;
    (void) version;

    r = *req_cls;

    if (r == NULL) {
        return MHD_NO;
    }

    if (!r->began) {
        r->began = true;
        r->method = method;
        /* no idle time-out while an answer is being made */
        MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
        r->app->begin(r);

        return r->replied ? r->rc : MHD_YES;
    }

    if (*n > 0) {

        if (r->replied || r->discard) {
            *n = 0;
            return MHD_YES;
        }

        if (r->sink != NULL) {
            if (!r->sink(r, data, *n)) {
                r->discard = true;
            }

        } else {
            rc = sb_buf_add(&r->body, data, *n);

            if (rc != SB_OK) {
                r->too_large = true;
                r->discard = true;
            }
        }

        *n = 0;

        return MHD_YES;
    }

    if (!r->replied) {
        r->app->handle(r);
    }

    return r->rc;
}


static void
rt_on_completed(void *cls, struct MHD_Connection *conn, void **req_cls,
    enum MHD_RequestTerminationCode code)
{
    rt_req_t   *r;
    rt_http_t  *http;

    (void) code;

    http = cls;
    r = *req_cls;

    if (r != NULL) {
        rt_req_free(r);
        *req_cls = NULL;
    }

    MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT,
                              http->idle_s);
}


rt_http_t *
rt_http_start(int listen_fd, const rt_app_t *app, unsigned idle_s)
{
    rt_http_t  *http;

    http = calloc(1, sizeof(rt_http_t));

    if (http == NULL) {
        return NULL;
    }

    http->app = app;
    http->idle_s = idle_s;
    http->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION|MHD_USE_INTERNAL_POLLING_THREAD
        |MHD_USE_POLL|MHD_ALLOW_UPGRADE, 0, NULL, NULL,
        rt_on_request, http,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket) listen_fd,
        MHD_OPTION_URI_LOG_CALLBACK, rt_on_uri, http,
        MHD_OPTION_UNESCAPE_CALLBACK, rt_no_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, rt_on_completed, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned) RT_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
        /* half of it can become one chunk, so that all but very long events
         * have a chunk of their own; it is cleared for every request */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) (512 * 1024),
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t) (64 * 1024),
        MHD_OPTION_THREAD_STACK_SIZE, (size_t) (512 * 1024),
        MHD_OPTION_END);

    if (http->daemon == NULL) {
        free(http);
        return NULL;
    }

    return http;
}


const char *
rt_header(const rt_req_t *r, const char *name)
{
    return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}


typedef struct {
    void  (*f)(void *data, const char *name, const char *value);
    void   *data;
} rt_each_t;


static enum MHD_Result
rt_each_one(void *cls, enum MHD_ValueKind kind, const char *name,
    const char *value)
{
    rt_each_t  *e;

    (void) kind;

    e = cls;
    e->f(e->data, name, value ? value : "");

    return MHD_YES;
}


void
rt_each_header(const rt_req_t *r,
    void (*f)(void *data, const char *name, const char *value), void *data)
{
    rt_each_t  e;

    e.f = f;
    e.data = data;
    MHD_get_connection_values(r->conn, MHD_HEADER_KIND, rt_each_one, &e);
}


void
rt_out(rt_req_t *r, const char *name, const char *value)
{
    rt_header_t  *h;

    if (r->nout == RT_HEADERS_MAX) {
        return;
    }

    h = &r->out[r->nout];
    h->name = strdup(name);
    h->value = strdup(value);

    if (h->name == NULL || h->value == NULL) {
        free(h->name);
        free(h->value);
        return;
    }

    r->nout++;
}


void
rt_outf(rt_req_t *r, const char *name, const char *fmt, ...)
{
    char     *value;
    va_list   args;

    va_start(args, fmt);

    if (vasprintf(&value, fmt, args) == -1) {
        value = NULL;
    }

    va_end(args);

    if (value != NULL) {
        rt_out(r, name, value);
        free(value);
    }
}


static void
rt_queue(rt_req_t *r, unsigned status, struct MHD_Response *res)
{
    unsigned  i;

    r->replied = true;

    if (res == NULL) {
        r->rc = MHD_NO;
        return;
    }

    for (i = 0; i < r->nout; i++) {
        MHD_add_response_header(res, r->out[i].name, r->out[i].value);
    }

    r->rc = MHD_queue_response(r->conn, status, res);
    MHD_destroy_response(res);
}


void
rt_reply(rt_req_t *r, unsigned status, const void *body, size_t n)
{
    rt_queue(r, status,
             MHD_create_response_from_buffer(n, (void *) (uintptr_t) body,
                                             MHD_RESPMEM_MUST_COPY));
}


static ssize_t
rt_stream_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    ssize_t       n;
    rt_stream_t  *s;

    (void) pos;

    s = cls;
    n = s->reader(s->ctx, buf, max);

    if (n == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }

    return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}


static void
rt_stream_free(void *cls)
{
    rt_stream_t  *s;

    s = cls;

    if (s->ctx_free != NULL) {
        s->ctx_free(s->ctx);
    }

    free(s);
}


void
rt_reply_stream(rt_req_t *r, unsigned status, uint64_t size,
    rt_reader_pt reader, void *ctx, void (*ctx_free)(void *))
{
    rt_stream_t          *s;
    struct MHD_Response  *res;

    s = malloc(sizeof(rt_stream_t));

    if (s == NULL) {
        if (ctx_free != NULL) {
            ctx_free(ctx);
        }

        rt_queue(r, status, NULL);
        return;
    }

    s->reader = reader;
    s->ctx = ctx;
    s->ctx_free = ctx_free;

    res = MHD_create_response_from_callback(
              size == UINT64_MAX ? MHD_SIZE_UNKNOWN : size, 256 * 1024,
              rt_stream_read, s, rt_stream_free);

    if (res == NULL) {
        rt_stream_free(s);
    }

    rt_queue(r, status, res);
}


void
rt_reply_fd(rt_req_t *r, unsigned status, int fd, uint64_t offset,
    uint64_t size)
{
    struct MHD_Response  *res;

    res = MHD_create_response_from_fd_at_offset64(size, fd, offset);

    if (res == NULL) {
        close(fd);
    }

    rt_queue(r, status, res);
}


static void
rt_on_upgrade(void *cls, struct MHD_Connection *conn, void *req_cls,
    const char *extra, size_t n, MHD_socket fd,
    struct MHD_UpgradeResponseHandle *urh)
{
    int            one, flags;
    rt_upgrade_t  *u;

    (void) conn;
    (void) req_cls;

    u = cls;
    one = 1;
    flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags|O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    u->fn(u->ctx, fd, extra, n);

    free(u);
    shutdown(fd, SHUT_WR);
    MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
}


void
rt_reply_upgrade(rt_req_t *r, rt_upgraded_pt fn, void *ctx)
{
    rt_upgrade_t         *u;
    struct MHD_Response  *res;

    u = malloc(sizeof(rt_upgrade_t));
    res = NULL;

    if (u != NULL) {
        u->fn = fn;
        u->ctx = ctx;
        res = MHD_create_response_for_upgrade(rt_on_upgrade, u);
    }

    rt_queue(r, MHD_HTTP_SWITCHING_PROTOCOLS, res);
}


int
rt_client_fd(const rt_req_t *r)
{
    const union MHD_ConnectionInfo  *info;

    info = MHD_get_connection_info(r->conn,
                                   MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}


bool
rt_client_gone(int fd)
{
    struct pollfd  p;

    p.fd = fd;
    p.events = POLLRDHUP;
    p.revents = 0;

    return poll(&p, 1, 0) == 1
           && (p.revents & (POLLRDHUP|POLLHUP|POLLERR|POLLNVAL)) != 0;
}


void
rt_http_date(char dst[32], int64_t t)
{
    time_t     tt;
    struct tm  tm;

    static const char  days[] = "SunMonTueWedThuFriSat";
    static const char  months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    tt = (time_t) t;
    gmtime_r(&tt, &tm);

    snprintf(dst, 32, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
             days + 3 * tm.tm_wday, (unsigned) tm.tm_mday % 100,
             months + 3 * tm.tm_mon, (unsigned) (tm.tm_year + 1900) % 10000,
             (unsigned) tm.tm_hour % 100, (unsigned) tm.tm_min % 100,
             (unsigned) tm.tm_sec % 100);
}


void
rt_envelope(sb_buf_t *b, const char *code,
    void (*str)(sb_buf_t *b, sb_str_t s), const char *fmt, va_list args)
{
    char  *text;

    if (vasprintf(&text, fmt, args) == -1) {
        text = NULL;
    }

    memset(b, 0, sizeof(*b));
    b->max = 1024 * 1024;

    sb_buf_printf(b, "{\"code\":\"%s\",\"message\":", code);
    str(b, sb_str(text ? text : "", text ? strlen(text) : 0));
    sb_buf_add_c(b, '}');

    free(text);
}
