/*
 * Many readers of one live stream through nginx, for bench/history: how long
 * after the first of them the last one has an event.
 *
 *   streams PORT TARGET TOKEN COUNT SECONDS
 *
 * Prints "ready" when all of them have begun, and a line of JSON in the end.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"


#define STREAMS_BUF     (64 * 1024)
#define STREAMS_EVENTS  (64 * 1024)
#define STREAMS_BATCH   256
#define STREAMS_READY_S 60


/* Of each event, by its cursor: how many have it, when the first and the last
 * had it. */
typedef struct {
    uint64_t  cursor, first, last;
    size_t    n;
} event_t;

typedef struct {
    int       fd;
    bool      ready;            /* its head has come */
    unsigned  at;               /* in "id: " at the beginning of a line */
    uint64_t  cursor;
    bool      number;           /* of a cursor is being read */
} stream_t;


static event_t   *events;
static stream_t  *streams;
static size_t     ready, ended;
static uint64_t   bytes;


static void
die(const char *what)
{
    fprintf(stderr, "streams: %s: %s\n", what, strerror(errno));
    exit(1);
}


static int
by_size(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}


static void
open_one(int loop, stream_t *s, int port, const char *target,
    const char *token)
{
    int                 n;
    char                text[2048];
    struct epoll_event  ev;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    s->at = 0;

    n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                 "Authorization: Bearer %s\r\n\r\n", target, port, token);

    if (s->fd == -1 || n >= (int) sizeof(text)
        || connect(s->fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || write(s->fd, text, (size_t) n) != n)
    {
        die("connect");
    }

    ev.events = EPOLLIN;
    ev.data.ptr = s;

    if (epoll_ctl(loop, EPOLL_CTL_ADD, s->fd, &ev) == -1) {
        die("epoll_ctl");
    }
}


static void
saw(uint64_t cursor, uint64_t now)
{
    event_t  *e;

    e = &events[cursor % STREAMS_EVENTS];

    if (e->cursor != cursor) {
        e->cursor = cursor;
        e->first = now;
        e->n = 0;
    }

    e->last = now;
    e->n++;
}


/* Looks for lines "id: N". */
static void
scan(stream_t *s, const char *p, size_t n, uint64_t now, bool counts)
{
    size_t  i;

    static const char  key[] = "id: ";

    for (i = 0; i < n; i++) {

        if (s->number && p[i] >= '0' && p[i] <= '9') {
            s->cursor = s->cursor * 10 + (uint64_t) (p[i] - '0');
            continue;
        }

        if (s->number && p[i] == '\n' && counts) {
            saw(s->cursor, now);
        }

        s->number = false;

        if (p[i] == '\n') {
            s->at = 0;

        } else if (s->at < sizeof(key) - 1 && p[i] == key[s->at]) {
            s->at++;

            if (s->at == sizeof(key) - 1) {
                s->number = true;
                s->cursor = 0;
            }

        } else {
            s->at = sizeof(key);
        }
    }
}


static void
take(int loop, stream_t *s, bool counts)
{
    ssize_t      n;

    static char  buf[STREAMS_BUF];

    n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

    if (n == -1 && errno == EAGAIN) {
        return;
    }

    if (n <= 0) {
        ended++;
        (void) epoll_ctl(loop, EPOLL_CTL_DEL, s->fd, NULL);
        return;
    }

    if (!s->ready) {
        if (n < 12 || memcmp(buf, "HTTP/1.1 200", 12) != 0) {
            fprintf(stderr, "streams: %.*s\n", (int) n, buf);
            exit(1);
        }

        s->ready = true;
        ready++;
    }

    bytes += (uint64_t) n;
    scan(s, buf, (size_t) n, now_us(), counts);
}


static void
tell(size_t count)
{
    size_t   i, whole = 0, missed = 0;
    double  *ms;

    ms = calloc(STREAMS_EVENTS, sizeof(double));

    if (ms == NULL) {
        die("memory");
    }

    for (i = 0; i < STREAMS_EVENTS; i++) {
        if (events[i].n == count) {
            ms[whole++] = (double) (events[i].last - events[i].first) / 1e3;

        } else if (events[i].n) {
            missed++;
        }
    }

    qsort(ms, whole, sizeof(double), by_size);

    printf("{\"subscribers\":%zu,\"events\":%zu,\"unfinished\":%zu,"
           "\"spread_p50_ms\":%.3f,\"spread_p99_ms\":%.3f,"
           "\"spread_max_ms\":%.3f,\"bytes\":%llu,\"ended\":%zu}\n", ready,
           whole, missed, whole ? ms[whole / 2] : 0,
           whole ? ms[(whole - 1) * 99 / 100] : 0, whole ? ms[whole - 1] : 0,
           (unsigned long long) bytes, ended);
}


int
main(int argc, char **argv)
{
    int                 i, n, loop;
    bool                told;
    size_t              k, count;
    uint64_t            until;
    struct rlimit       r;
    struct epoll_event  evs[STREAMS_BATCH];

    if (argc != 6) {
        fprintf(stderr, "usage: streams PORT TARGET TOKEN COUNT SECONDS\n");
        return 2;
    }

    (void) signal(SIGPIPE, SIG_IGN);

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &r);
    }

    count = strtoul(argv[4], NULL, 10);
    streams = calloc(count ? count : 1, sizeof(stream_t));
    events = calloc(STREAMS_EVENTS, sizeof(event_t));
    loop = epoll_create1(EPOLL_CLOEXEC);

    if (count == 0 || streams == NULL || events == NULL || loop == -1) {
        die("start");
    }

    for (k = 0; k < count; k++) {
        open_one(loop, &streams[k], atoi(argv[1]), argv[2], argv[3]);
    }

    told = false;
    until = now_us() + STREAMS_READY_S * 1000000u;

    while (now_us() < until) {

        n = epoll_wait(loop, evs, STREAMS_BATCH, 100);

        for (i = 0; i < n; i++) {
            take(loop, evs[i].data.ptr, told);
        }

        if (!told && ready == count) {
            /* what comes from now on is for all of them */
            told = true;
            printf("ready\n");
            (void) fflush(stdout);
            until = now_us() + (uint64_t) (atof(argv[5]) * 1e6);
        }
    }

    if (!told) {
        fprintf(stderr, "streams: only %zu of %zu have begun\n", ready, count);
        return 1;
    }

    tell(count);

    return 0;
}
