#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "digest.h"
#include "id.h"
#include "proxy.h"
#include "proxy_int.h"


#define RT_HEAD_MAX    (64 * 1024)
#define RT_TUNNEL_BUF  (64 * 1024)


typedef struct {
    int       fd;               /* of the backend */
    sb_buf_t  first;            /* what it sent behind its head */
} rt_tunnel_t;

typedef struct {
    sb_buf_t         *b;
    const rt_req_t   *r;
    bool              server;
} rt_ws_head_t;


static bool
rt_has_token(const char *list, const char *token)
{
    size_t  n;

    while (list != NULL && *list != '\0') {
        list += strspn(list, ", \t");
        n = strcspn(list, ", \t");

        if (n == strlen(token) && strncasecmp(list, token, n) == 0) {
            return true;
        }

        list += n;
    }

    return false;
}


/* Sixteen bytes in base64. */

static bool
rt_is_challenge(const char *key)
{
    static const char  digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789+/";

    return key != NULL && strspn(key, digits) == 22
           && strcmp(key + 22, "==") == 0;
}


bool
rt_is_websocket(const rt_req_t *r)
{
    const char  *version;

    version = rt_header(r, "Sec-WebSocket-Version");

    return strcmp(r->method, "GET") == 0
           && rt_has_token(rt_header(r, "Upgrade"), "websocket")
           && rt_has_token(rt_header(r, "Connection"), "upgrade")
           && rt_is_challenge(rt_header(r, "Sec-WebSocket-Key"))
           && version != NULL && strcmp(version, "13") == 0;
}


void
rt_websocket_accept(char *dst, const char *key)
{
    char           text[512];
    unsigned char  sha[SHA_DIGEST_LENGTH];

    snprintf(text, sizeof(text), "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
             key);
    SHA1((const unsigned char *) text, strlen(text), sha);
    EVP_EncodeBlock((unsigned char *) dst, sha, sizeof(sha));
}


static void
rt_tunnel_free(void *ctx)
{
    rt_tunnel_t  *t;

    t = ctx;
    close(t->fd);
    sb_buf_free(&t->first);
    free(t);
}


typedef struct {
    int      from, to;
    size_t   len, pos;
    bool     eof;               /* from has ended and all was passed on */
    char     buf[RT_TUNNEL_BUF];
} rt_pipe_t;


/* Moves what it can; false: a side is broken. */

static bool
rt_pipe_move(rt_pipe_t *p, short in, short out)
{
    ssize_t  n;

    if (in && p->len == 0 && !p->eof) {
        n = recv(p->from, p->buf, sizeof(p->buf), MSG_DONTWAIT);

        if (n == 0) {
            p->eof = true;
            shutdown(p->to, SHUT_WR);

        } else if (n > 0) {
            p->len = (size_t) n;
            p->pos = 0;
            out = 1;

        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        }
    }

    if (out && p->len > 0) {
        n = send(p->to, p->buf + p->pos, p->len,
                 MSG_DONTWAIT|MSG_NOSIGNAL);

        if (n > 0) {
            p->pos += (size_t) n;
            p->len -= (size_t) n;

        } else if (n == -1 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
    }

    return true;
}


static bool
rt_send_all(int fd, const char *p, size_t n)
{
    ssize_t        w;
    struct pollfd  pfd;

    while (n > 0) {
        w = send(fd, p, n, MSG_NOSIGNAL);

        if (w > 0) {
            p += w;
            n -= (size_t) w;
            continue;
        }

        pfd.fd = fd;
        pfd.events = POLLOUT;

        if ((errno != EAGAIN && errno != EINTR) || poll(&pfd, 1, 10000) < 1) {
            return false;
        }
    }

    return true;
}


static void
rt_tunnel(void *ctx, int fd, const char *extra, size_t n)
{
    rt_pipe_t      *up, *down;
    rt_tunnel_t    *t;
    struct pollfd   p[2];

    t = ctx;
    up = malloc(sizeof(rt_pipe_t));
    down = malloc(sizeof(rt_pipe_t));

    if (up == NULL || down == NULL
        || !rt_send_all(t->fd, extra, n)
        || !rt_send_all(fd, t->first.data, t->first.len))
    {
        goto done;
    }

    up->from = down->to = fd;
    up->to = down->from = t->fd;
    up->len = up->pos = down->len = down->pos = 0;
    up->eof = down->eof = false;

    while (!up->eof || !down->eof) {
        p[0].fd = fd;
        p[1].fd = t->fd;
        p[0].events = (short) ((up->len == 0 && !up->eof ? POLLIN : 0)
                               | (down->len > 0 ? POLLOUT : 0));
        p[1].events = (short) ((down->len == 0 && !down->eof ? POLLIN : 0)
                               | (up->len > 0 ? POLLOUT : 0));
        p[0].fd = p[0].events ? fd : -1;
        p[1].fd = p[1].events ? t->fd : -1;
        p[0].revents = p[1].revents = 0;

        /* one side has ended: the other gets some time to say good-bye */

        if (poll(p, 2, up->eof || down->eof ? 10000 : -1) == 0) {
            break;
        }

        if (!rt_pipe_move(up, p[0].revents, p[1].revents)
            || !rt_pipe_move(down, p[1].revents, p[0].revents))
        {
            break;
        }
    }

done:

    free(up);
    free(down);
}


static int
rt_connect(uint16_t port)
{
    int                 fd, one;
    struct sockaddr_in  sin;

    fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return -1;
    }

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons(port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    if (connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
        close(fd);
        return -1;
    }

    one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    return fd;
}


static void
rt_ws_header(void *data, const char *name, const char *value)
{
    rt_ws_head_t  *h;

    h = data;

    if (strcasecmp(name, "Upgrade") == 0
        || rt_hop_header(name, rt_header(h->r, "Connection"), h->server)
        || (h->server && (strcasecmp(name, "Host") == 0
            || (strncasecmp(name, "Sec-WebSocket-", 14) == 0
                && strcasecmp(name + 14, "Protocol") != 0)))
        || (!h->server && strncasecmp(name, "X-Forwarded-", 12) == 0))
    {
        return;
    }

    sb_buf_printf(h->b, "%s: %s\r\n", name, value);
}


static bool
rt_ws_request(rt_req_t *r, const rt_backend_t *b, int fd)
{
    bool          ok;
    char         *fwd;
    uint8_t       nonce[16];
    sb_buf_t      buf;
    unsigned char key[32];
    rt_ws_head_t  h;

    memset(&buf, 0, sizeof(buf));
    buf.max = 1024 * 1024;
    sb_buf_printf(&buf, "GET %s HTTP/1.1\r\n", b->target);
    h.b = &buf;
    h.r = r;
    h.server = b->server;
    rt_each_header(r, rt_ws_header, &h);
    sb_buf_printf(&buf, "Connection: Upgrade\r\nUpgrade: websocket\r\n");

    if (b->server) {
        sb_random(nonce, sizeof(nonce));
        EVP_EncodeBlock(key, nonce, sizeof(nonce));
        sb_buf_printf(&buf, "Host: 127.0.0.1:%u\r\nSec-WebSocket-Version: "
                            "13\r\nSec-WebSocket-Key: %s\r\n",
                      (unsigned) b->port, key);

    } else {
        fwd = rt_forwarded_for(r);
        sb_buf_printf(&buf, "X-Forwarded-For: %s\r\n"
                            "X-Forwarded-Proto: http\r\n", fwd ? fwd : "");
        free(fwd);
    }

    sb_buf_add(&buf, "\r\n", 2);
    ok = rt_send_all(fd, buf.data, buf.len);
    sb_buf_free(&buf);

    return ok;
}


/* Reads the backend's head; returns its length with the empty line, or 0. */

static size_t
rt_ws_read_head(int fd, sb_buf_t *b)
{
    char           buf[4096], *end;
    ssize_t        n;
    struct pollfd  p;

    b->max = RT_HEAD_MAX;

    for ( ;; ) {
        if (b->len > 0) {
            end = memmem(b->data, b->len, "\r\n\r\n", 4);

            if (end != NULL) {
                return (size_t) (end - b->data) + 4;
            }
        }

        p.fd = fd;
        p.events = POLLIN;

        if (poll(&p, 1, 180000) < 1) {
            return 0;
        }

        n = read(fd, buf, sizeof(buf));

        if (n <= 0 || sb_buf_add(b, buf, (size_t) n) != SB_OK) {
            return 0;
        }
    }
}


/* The backend said something else than 101: pass it on (execd's proxy). */

static void
rt_ws_pass(rt_req_t *r, rt_tunnel_t *t, unsigned status, size_t want)
{
    char           buf[4096];
    ssize_t        n;
    struct pollfd  p;

    t->first.max = 1024 * 1024;

    while (t->first.len < want) {
        p.fd = t->fd;
        p.events = POLLIN;

        if (poll(&p, 1, 10000) < 1
            || (n = read(t->fd, buf, sizeof(buf))) <= 0
            || sb_buf_add(&t->first, buf, (size_t) n) != SB_OK)
        {
            break;
        }
    }

    if (t->first.len > want) {
        t->first.len = want;
    }

    rt_reply(r, status, t->first.data ? t->first.data : "", t->first.len);
}


/* Takes the head apart: headers of the answer are set on r for execd's proxy,
 * the chosen subprotocol for the server proxy.  Returns the status. */

static unsigned
rt_ws_head(rt_req_t *r, char *head, bool server, size_t *length)
{
    char      *line, *next, *value;
    unsigned   status;

    status = strncmp(head, "HTTP/1.", 7) == 0
             ? (unsigned) strtoul(head + 9, NULL, 10) : 502;
    *length = 0;

    for (line = strstr(head, "\r\n"); line != NULL; line = next) {
        line += 2;
        next = strstr(line, "\r\n");

        if (next != NULL) {
            *next = '\0';
        }

        value = strchr(line, ':');

        if (value == NULL) {
            continue;
        }

        *value++ = '\0';
        value += strspn(value, " ");

        if (strcasecmp(line, "Content-Length") == 0) {
            *length = strtoul(value, NULL, 10);

        } else if (strcasecmp(line, "Connection") == 0
                   || strcasecmp(line, "Transfer-Encoding") == 0)
        {
            continue;

        } else if (!server) {
            rt_out(r, strcasecmp(line, "Sec-WebSocket-Accept") == 0
                      ? "Sec-Websocket-Accept" : line, value);

        } else if (strcasecmp(line, "Sec-WebSocket-Protocol") == 0
                   && status == 101)
        {
            rt_out(r, "sec-websocket-protocol", value);
        }
    }

    return status;
}


static void
rt_ws_failed(rt_req_t *r, const rt_backend_t *b, uint16_t code,
    const char *why)
{
    if (b->server) {
        rt_websocket_refuse(r, code, "");

    } else {
        b->fail(r, false, why);
    }
}


void
rt_proxy_websocket(rt_req_t *r, const rt_backend_t *b)
{
    int           fd;
    char          accept[32], *head;
    size_t        n, length = 0;
    sb_buf_t      in;
    unsigned      status;
    rt_tunnel_t  *t;

    fd = rt_connect(b->port);

    if (fd == -1) {
        rt_ws_failed(r, b, 1011, strerror(errno));
        free(b->target);
        return;
    }

    memset(&in, 0, sizeof(in));
    t = calloc(1, sizeof(rt_tunnel_t));
    n = t && rt_ws_request(r, b, fd) ? rt_ws_read_head(fd, &in) : 0;
    free(b->target);

    if (n == 0) {
        close(fd);
        free(t);
        sb_buf_free(&in);
        rt_ws_failed(r, b, 1011, "no answer");
        return;
    }

    t->fd = fd;
    t->first.max = RT_HEAD_MAX;
    sb_buf_add(&t->first, in.data + n, in.len - n);
    head = strndup(in.data, n - 2);
    sb_buf_free(&in);
    r->ctx = t;
    r->ctx_free = rt_tunnel_free;

    status = head ? rt_ws_head(r, head, b->server, &length) : 502;
    free(head);

    if (status == 101) {
        if (b->server) {
            rt_websocket_accept(accept, rt_header(r, "Sec-WebSocket-Key"));
            rt_out(r, "Upgrade", "websocket");
            rt_out(r, "Sec-WebSocket-Accept", accept);
        }

        rt_reply_upgrade(r, rt_tunnel, t);

    } else if (b->server) {
        rt_websocket_refuse(r, 1008, "");

    } else {
        rt_ws_pass(r, t, status, length);
    }
}


static void
rt_refusal(void *ctx, int fd, const char *extra, size_t n)
{
    char            buf[256];
    size_t          len;
    struct pollfd   p;
    unsigned char   frame[128];
    const char     *text;

    (void) extra;
    (void) n;

    text = ctx;
    len = strlen(text + 2);
    len = len < 123 ? len : 123;

    frame[0] = 0x88;
    frame[1] = (unsigned char) (2 + len);
    memcpy(frame + 2, text, 2 + len);
    rt_send_all(fd, (char *) frame, 4 + len);

    /* until the client's own close frame, for a moment */

    p.fd = fd;
    p.events = POLLIN;

    if (poll(&p, 1, 2000) == 1 && read(fd, buf, sizeof(buf)) == -1) {
        return;
    }
}


void
rt_websocket_refuse(rt_req_t *r, uint16_t code, const char *reason)
{
    char    accept[32], *text;
    size_t  n;

    n = strlen(reason);
    text = malloc(n + 3);

    if (text == NULL) {
        abort();
    }

    text[0] = (char) (code >> 8);
    text[1] = (char) (code & 0xff);
    memcpy(text + 2, reason, n + 1);

    if (r->ctx_free != NULL) {
        r->ctx_free(r->ctx);
    }

    r->ctx = text;
    r->ctx_free = free;

    rt_websocket_accept(accept, rt_header(r, "Sec-WebSocket-Key"));
    rt_out(r, "Upgrade", "websocket");
    rt_out(r, "Sec-WebSocket-Accept", accept);
    rt_reply_upgrade(r, rt_refusal, text);
}
