#include "conn.h"

#include "stats.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>


conn_t *
conn_new(int fd, uint64_t id)
{
    conn_t  *c;

    c = calloc(1, sizeof(conn_t));

    if (c) {
        c->fd = fd;
        c->id = id;
        c->passed = -1;
        c->out.max = CONN_OUT_MAX;
    }

    return c;
}


void
conn_free(conn_t *c)
{
    close(c->fd);

    if (c->passed != -1) {
        close(c->passed);
    }

    sb_buf_free(&c->out);
    free(c->in);
    free(c);
}


bool
conn_room(conn_t *c, size_t n)
{
    char    *p;
    size_t   cap;

    if (n <= c->in_cap) {
        return true;
    }

    cap = c->in_cap ? c->in_cap : CONN_IN_MIN;

    while (cap < n) {
        cap *= 2;
    }

    if (cap > CONN_IN_MAX) {
        cap = CONN_IN_MAX;
    }

    if (cap < n) {
        return false;
    }

    p = realloc(c->in, cap);
    if (p == NULL) {
        return false;
    }

    c->in = p;
    c->in_cap = cap;

    return true;
}


/* Descriptors that came along: the last one is kept. */
static void
conn_passed(conn_t *c, struct msghdr *m)
{
    int              fd;
    size_t           i, n;
    struct cmsghdr  *h;

    for (h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) {
            continue;
        }

        n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (i = 0; i < n; i++) {
            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));

            if (c->passed != -1) {
                close(c->passed);
            }

            c->passed = fd;
        }
    }
}


bool
conn_read(conn_t *c)
{
    ssize_t        n;
    struct iovec   to;
    struct msghdr  m;

    union {
        char            mem[CMSG_SPACE(sizeof(int))];
        struct cmsghdr  align;
    } control;

    if (!conn_room(c, CONN_IN_MIN)) {
        return false;
    }

    if (c->in_len == c->in_cap) {
        return true;
    }

    do {
        to.iov_base = c->in + c->in_len;
        to.iov_len = c->in_cap - c->in_len;
        memset(&m, 0, sizeof(m));
        m.msg_iov = &to;
        m.msg_iovlen = 1;
        m.msg_control = control.mem;
        m.msg_controllen = sizeof(control.mem);

        n = recvmsg(c->fd, &m, MSG_DONTWAIT|MSG_CMSG_CLOEXEC);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        return errno == EAGAIN;
    }

    if (m.msg_controllen) {
        conn_passed(c, &m);
    }

    c->in_len += (size_t) n;

    return n != 0;
}


void
conn_consume(conn_t *c)
{
    char  *p;

    if (c->in_used) {
        c->in_len -= c->in_used;
        memmove(c->in, c->in + c->in_used, c->in_len);
        c->in_used = 0;
    }

    /* a long frame passed: back to the usual size */
    if (c->in_cap > CONN_IN_MIN * 4 && c->in_len < CONN_IN_MIN) {
        p = realloc(c->in, CONN_IN_MIN);

        if (p) {
            c->in = p;
            c->in_cap = CONN_IN_MIN;
        }
    }
}


bool
conn_flush(conn_t *c)
{
    ssize_t  n;

    while (c->out_sent < c->out.len) {
        n = send(c->fd, c->out.data + c->out_sent, c->out.len - c->out_sent,
                 MSG_DONTWAIT|MSG_NOSIGNAL);

        if (n == -1) {
            if (errno == EINTR) {
                continue;
            }

            if (errno == EPIPE || errno == ECONNRESET) {
                /* what it has sent before it went is still to be read, up to
                 * its end */
                c->deaf = true;
                break;
            }

            return errno == EAGAIN;
        }

        c->out_sent += (size_t) n;
    }

    c->out.len = 0;
    c->out_sent = 0;

    if (c->out.cap > CONN_OUT_KEEP) {
        sb_buf_free(&c->out);
    }

    return true;
}


bool
conn_queue(conn_t *c, const void *p, size_t n)
{
    if (c->deaf) {
        return true;
    }

    if (c->out_sent && c->out.len + n > c->out.max) {
        c->out.len -= c->out_sent;
        memmove(c->out.data, c->out.data + c->out_sent, c->out.len);
        c->out_sent = 0;
    }

    if (sb_buf_add(&c->out, p, n) != SB_OK) {
        stats_add(STATS_CONNECTIONS_CUT, 1);
        return false;
    }

    return true;
}


bool
conn_send(conn_t *c, const void *p, size_t n)
{
    return conn_queue(c, p, n) && conn_flush(c);
}
