/*
 * What wrk cannot do for bench/run: an upstream that echoes WebSocket messages,
 * streams events and answers with a delay, and the clients that time them.
 *
 *   load serve PORT
 *   load echo PORT TARGET KEY CONNECTIONS SECONDS SIZE
 *   load first PORT TARGET KEY CONNECTIONS SECONDS
 *
 * The clients print a line: RESULT answers us bytes errors p99/ms p50/ms.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


#define LOAD_BUF      (256 * 1024)
#define LOAD_SAMPLES  (4 * 1024 * 1024)
#define LOAD_CONNS    256


typedef struct {
    int       fd;
    size_t    got, want;    /* bytes of an echo; of a head: got */
    size_t    sent;
    uint64_t  start;
    bool      counted;      /* the first event has been seen */
} load_conn_t;


static char      load_buf[LOAD_BUF];
static char      load_message[LOAD_BUF];
static float    *load_samples;
static size_t    load_n;
static uint64_t  load_bytes;


static void
load_die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}


static uint64_t
load_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}


static struct sockaddr_in
load_addr(int port)
{
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    return sin;
}


static void
load_nodelay(int fd)
{
    int  on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}


static bool
load_write(int fd, const char *p, size_t n)
{
    ssize_t  k;

    while (n) {
        k = write(fd, p, n);

        if (k <= 0) {
            return false;
        }

        p += k;
        n -= (size_t) k;
    }

    return true;
}


/* --- the upstream: a process a connection --------------------------------- */

/* Frames go back as they are, but unmasked: clients here mask with zeros. */
static void
load_echo_frames(int fd, char *p, size_t n)
{
    size_t   head, size;
    ssize_t  k;

    for ( ;; ) {

        for ( ;; ) {
            head = 6;
            size = n > 1 ? (size_t) (p[1] & 0x7f) : 0;

            if (size == 126) {
                head = 8;
                size = n > 3 ? (size_t) (uint8_t) p[2] << 8 | (uint8_t) p[3] : 0;

            } else if (size == 127) {
                head = 14;
                size = n > 9 ? (size_t) (uint8_t) p[7] << 16
                               | (size_t) (uint8_t) p[8] << 8 | (uint8_t) p[9]
                             : 0;
            }

            if (n < head || n < head + size) {
                break;
            }

            /* the mask lies between: the head moves up to the payload */

            p[1] &= 0x7f;
            memmove(p + 4, p, head - 4);

            if (!load_write(fd, p + 4, head - 4 + size)) {
                return;
            }

            n -= head + size;
            memmove(p, p + head + size, n);
        }

        k = read(fd, p + n, LOAD_BUF - n);

        if (k <= 0) {
            return;
        }

        n += (size_t) k;
    }
}


static bool
load_events(int fd)
{
    static const char  first[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
        "39\r\n{\"type\":\"stdout\",\"text\":\"the first line\",\"timestamp\":1}\n\n"
        "\r\n";
    static const char  rest[] =
        "45\r\n{\"type\":\"execution_complete\",\"execution_time\":2,"
        "\"timestamp\":123456}\n\n\r\n0\r\n\r\n";

    if (!load_write(fd, first, sizeof(first) - 1)) {
        return false;
    }

    usleep(2000);

    return load_write(fd, rest, sizeof(rest) - 1);
}


static void
load_serve_one(int fd)
{
    char     *end, *p, answer[512];
    size_t    n = 0, head, body;
    ssize_t   k;

    load_nodelay(fd);

    for ( ;; ) {

        load_buf[n] = '\0';
        end = strstr(load_buf, "\r\n\r\n");

        if (end == NULL) {
            k = read(fd, load_buf + n, LOAD_BUF - 1 - n);

            if (k <= 0) {
                return;
            }

            n += (size_t) k;
            continue;
        }

        head = (size_t) (end + 4 - load_buf);
        *end = '\0';

        if (strcasestr(load_buf, "\r\nupgrade: websocket")) {
            /* nobody here checks the accept key */
            n -= head;

            if (!load_write(fd, "HTTP/1.1 101 Switching Protocols\r\n"
                                "Upgrade: websocket\r\n"
                                "Connection: Upgrade\r\n\r\n", 77))
            {
                return;
            }

            memmove(load_buf, load_buf + head, n);
            load_echo_frames(fd, load_buf, n);
            return;
        }

        p = strcasestr(load_buf, "\r\ncontent-length:");
        body = p ? (size_t) atol(p + 17) : 0;

        while (n < head + body) {
            k = read(fd, load_buf + n, LOAD_BUF - 1 - n);

            if (k <= 0) {
                return;
            }

            n += (size_t) k;
        }

        if (strstr(load_buf, "/command")) {

            if (!load_events(fd)) {
                return;
            }

        } else {
            usleep(1000);

            k = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Content-Length: 200\r\n\r\n"
                         "{\"items\":[],\"pad\":\"%0180d\"}", 0);

            if (!load_write(fd, answer, (size_t) k)) {
                return;
            }
        }

        n -= head + body;
        memmove(load_buf, load_buf + head + body, n);
    }
}


static int
load_serve(int port)
{
    int                 s, fd, on = 1;
    struct sockaddr_in  sin = load_addr(port);

    signal(SIGCHLD, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1000);

    s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));

    if (bind(s, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || listen(s, 512) == -1)
    {
        load_die("listen");
    }

    for ( ;; ) {
        fd = accept(s, NULL, NULL);

        if (fd == -1) {
            continue;
        }

        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            close(s);
            load_serve_one(fd);
            _exit(0);
        }

        close(fd);
    }
}


/* --- the clients ---------------------------------------------------------- */

static void
load_sample(load_conn_t *c)
{
    if (load_n < LOAD_SAMPLES) {
        load_samples[load_n++] = (float) (load_now() - c->start) / 1e6f;
    }
}


static int
load_compare(const void *a, const void *b)
{
    float  x = *(const float *) a, y = *(const float *) b;

    return x < y ? -1 : x > y;
}


static int
load_connect(int port)
{
    int                 fd;
    struct sockaddr_in  sin = load_addr(port);

    fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
        load_die("connect");
    }

    load_nodelay(fd);

    return fd;
}


static void
load_handshake(int fd, const char *target, const char *key)
{
    char     text[2048];
    int      n;
    size_t   got = 0;
    ssize_t  k;

    n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 "OPEN-SANDBOX-API-KEY: %s\r\nUpgrade: websocket\r\n"
                 "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", target,
                 key);

    if (!load_write(fd, text, (size_t) n)) {
        load_die("handshake");
    }

    do {
        k = read(fd, text + got, sizeof(text) - 1 - got);

        if (k <= 0) {
            load_die("handshake");
        }

        got += (size_t) k;
        text[got] = '\0';
    } while (strstr(text, "\r\n\r\n") == NULL);

    if (strncmp(text, "HTTP/1.1 101", 12) != 0) {
        fprintf(stderr, "load: no upgrade: %s\n", text);
        exit(1);
    }
}


/* One frame of a binary message, masked with zeros; its size, and that of its
 * echo in *back. */
static size_t
load_frame(size_t size, size_t *back)
{
    size_t  n = 2;

    load_message[0] = (char) 0x82;

    if (size < 126) {
        load_message[1] = (char) (0x80 | size);

    } else if (size < 65536) {
        load_message[1] = (char) (0x80 | 126);
        load_message[2] = (char) (size >> 8);
        load_message[3] = (char) size;
        n = 4;

    } else {
        memset(load_message + 2, 0, 8);
        load_message[1] = (char) (0x80 | 127);
        load_message[7] = (char) (size >> 16);
        load_message[8] = (char) (size >> 8);
        load_message[9] = (char) size;
        n = 10;
    }

    *back = n + size;
    memset(load_message + n, 0, 4 + size);

    return n + 4 + size;
}


/* Reads what has come; true when the answer is complete. */
static bool
load_read(load_conn_t *c, bool echo)
{
    ssize_t  k;

    k = read(c->fd, load_buf, LOAD_BUF);

    if (k <= 0) {
        load_die("read");
    }

    load_bytes += (uint64_t) k;

    if (c->got == 0 && !echo && strncmp(load_buf, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "load: %.*s\n", (int) k, load_buf);
        exit(1);
    }

    c->got += (size_t) k;

    if (echo) {
        if (c->got < c->want) {
            return false;
        }

        load_sample(c);
        return true;
    }

    if (!c->counted && memmem(load_buf, (size_t) k, "\"stdout\"", 8)) {
        c->counted = true;
        load_sample(c);
    }

    return k >= 5 && memcmp(load_buf + k - 5, "0\r\n\r\n", 5) == 0;
}


static void
load_send(load_conn_t *c, size_t n)
{
    c->got = 0;
    c->counted = false;
    c->start = load_now();

    if (!load_write(c->fd, load_message, n)) {
        load_die("write");
    }
}


static int
load_client(bool echo, char **arg, size_t size)
{
    int            conns = atoi(arg[3]), port = atoi(arg[0]), i;
    size_t         n, back = 0, answers = 0;
    uint64_t       start, end;
    load_conn_t    c[LOAD_CONNS];
    struct pollfd  fds[LOAD_CONNS];

    if (conns < 1 || conns > LOAD_CONNS || size + 16 > LOAD_BUF) {
        fprintf(stderr, "load: too many connections, or too large\n");
        return 1;
    }

    load_samples = malloc(LOAD_SAMPLES * sizeof(float));

    n = echo ? load_frame(size, &back)
             : (size_t) snprintf(load_message, LOAD_BUF, "POST %s HTTP/1.1\r\n"
                                 "Host: 127.0.0.1\r\nOPEN-SANDBOX-API-KEY: %s"
                                 "\r\nContent-Type: application/json\r\n"
                                 "Content-Length: 15\r\n\r\n"
                                 "{\"command\":\"x\"}", arg[1], arg[2]);

    for (i = 0; i < conns; i++) {
        memset(&c[i], 0, sizeof(load_conn_t));
        c[i].fd = load_connect(port);
        c[i].want = back;
        fds[i].fd = c[i].fd;
        fds[i].events = POLLIN;

        if (echo) {
            load_handshake(c[i].fd, arg[1], arg[2]);
        }
    }

    start = load_now();
    end = start + (uint64_t) (atof(arg[4]) * 1e9);

    for (i = 0; i < conns; i++) {
        load_send(&c[i], n);
    }

    while (load_now() < end) {

        if (poll(fds, (nfds_t) conns, 1000) <= 0) {
            fprintf(stderr, "load: nothing came for a second\n");
            return 1;
        }

        for (i = 0; i < conns; i++) {

            if (fds[i].revents && load_read(&c[i], echo)) {
                answers++;
                load_send(&c[i], n);
            }
        }
    }

    if (load_n == 0) {
        fprintf(stderr, "load: no answers\n");
        return 1;
    }

    qsort(load_samples, load_n, sizeof(float), load_compare);

    printf("RESULT %zu %llu %llu 0 %.4f %.4f\n", answers,
           (unsigned long long) (load_now() - start) / 1000,
           (unsigned long long) load_bytes, load_samples[load_n * 99 / 100],
           load_samples[load_n / 2]);

    return 0;
}


int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);

    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        return load_serve(atoi(argv[2]));
    }

    if (argc == 8 && strcmp(argv[1], "echo") == 0) {
        return load_client(true, argv + 2, (size_t) atol(argv[7]));
    }

    if (argc == 7 && strcmp(argv[1], "first") == 0) {
        return load_client(false, argv + 2, 0);
    }

    fprintf(stderr, "usage: load serve PORT | echo ... | first ...\n");

    return 2;
}
