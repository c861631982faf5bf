/*
 * A worker as sandbox-helper sees it, without nginx, for bench/history: it writes
 * operations, waits for their beginnings and asks questions, all in frames
 * (docs/frames.md).
 *
 *   frames write SOCKET FIRST COUNT SANDBOXES BYTES RATE   (0: as fast as it goes)
 *   frames begin SOCKET FIRST COUNT RATE
 *   frames ask SOCKET COUNT PATH QUERY...                  (in turn; "" is none)
 *
 * Each prints one line of JSON.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"
#include "id.h"

#define IN_SIZE     (4 * 1024 * 1024)
#define OUT_SIZE    (8 * 1024 * 1024)
#define WINDOW      4096        /* operations on their way */
#define WORDS       4096
#define OFTEN       64          /* of these, the first */
#define FRAME       (256 * 1024)
#define SAMPLES     (1024 * 1024)


typedef struct {
    int       fd;
    char     *in, *out;
    size_t    in_len, out_len;
    uint64_t  seq;              /* of kept frames */
} peer_t;


static char           words[WORDS][12];
static uint64_t       rng;
static double        *samples;
static size_t         nsamples;
static volatile sig_atomic_t  ended;


static void
die(const char *what)
{
    fprintf(stderr, "frames: %s: %s\n", what, errno ? strerror(errno) : "");
    exit(1);
}


static uint64_t
now_us(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}


static uint32_t
dice(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;

    return (uint32_t) (rng >> 32) % n;
}


static void
sample(double ms)
{
    if (nsamples < SAMPLES) {
        samples[nsamples++] = ms;
    }
}


static int
by_size(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}


static double
part(double of)
{
    return nsamples ? samples[(size_t) (of * (double) (nsamples - 1))] : 0;
}


/* What the vocabulary of outputs is: few words often, many seldom. */
static const char *
word(void)
{
    uint32_t  n = dice(WORDS);

    return words[dice(2) ? n % OFTEN : n];
}


static void
queue(peer_t *p, sb_frame_writer_t *w)
{
    size_t  n = sb_frame_end(w);

    if (n == 0) {
        errno = 0;
        die("a frame is too long");
    }

    p->out_len += n;
}


static void
start_frame(peer_t *p, sb_frame_writer_t *w, uint8_t type, uint8_t flags,
    uint64_t seq, const uint8_t op[16])
{
    static const uint8_t  none[16];

    if (OUT_SIZE - p->out_len < FRAME) {
        errno = 0;
        die("the buffer is full");
    }

    sb_frame_begin(w, p->out + p->out_len, OUT_SIZE - p->out_len, type, flags,
                   seq, op ? op : none, sb_now_us());
}


static void
put_text(sb_frame_writer_t *w, uint16_t tag, const char *s)
{
    sb_frame_put(w, tag, sb_str(s, strlen(s)));
}


/* Writes and reads once what can be; waits up to so many microseconds for
 * either. */
static void
turn_us(peer_t *p, uint64_t us)
{
    ssize_t          n;
    struct pollfd    pfd = { p->fd, POLLIN, 0 };
    struct timespec  t = { (time_t) (us / 1000000),
                           (long) (us % 1000000) * 1000 };

    if (p->out_len) {
        pfd.events |= POLLOUT;
    }

    if (ppoll(&pfd, 1, &t, NULL) == -1) {
        if (errno == EINTR) {
            return;
        }

        die("poll");
    }

    if (pfd.revents & POLLOUT) {
        n = send(p->fd, p->out, p->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n == -1 && errno != EAGAIN) {
            die("send");
        }

        if (n > 0) {
            p->out_len -= (size_t) n;
            memmove(p->out, p->out + n, p->out_len);
        }
    }

    if (pfd.revents & (POLLIN | POLLHUP | POLLERR)) {
        n = recv(p->fd, p->in + p->in_len, IN_SIZE - p->in_len, MSG_DONTWAIT);

        if (n == 0 || (n == -1 && errno != EAGAIN)) {
            errno = n == 0 ? ECONNRESET : errno;
            die("the helper");
        }

        if (n > 0) {
            p->in_len += (size_t) n;
        }
    }
}


static void
turn(peer_t *p, unsigned ms)
{
    turn_us(p, (uint64_t) ms * 1000);
}


/* The next frame of what has been read; it is at *at. */
static bool
next(peer_t *p, size_t *at, sb_frame_t *f)
{
    size_t   need;
    sb_rc_t  rc;

    rc = sb_frame_read(f, p->in + *at, p->in_len - *at, &need);

    if (rc == SB_OK) {
        *at += f->length;
        return true;
    }

    if (rc != SB_AGAIN) {
        errno = 0;
        die("no frame");
    }

    memmove(p->in, p->in + *at, p->in_len - *at);
    p->in_len -= *at;
    *at = 0;

    return false;
}


static void
join(peer_t *p, const char *path, const char *role)
{
    size_t              at = 0;
    uint64_t            instance;
    sb_frame_t          f;
    sb_frame_writer_t   w;
    struct sockaddr_un  sun = { .sun_family = AF_UNIX };

    memset(p, 0, sizeof(peer_t));
    p->in = malloc(IN_SIZE);
    p->out = malloc(OUT_SIZE);
    samples = malloc(SAMPLES * sizeof(double));
    p->fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (p->in == NULL || p->out == NULL || samples == NULL || p->fd == -1) {
        die("start");
    }

    (void) snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);

    if (connect(p->fd, (struct sockaddr *) &sun, sizeof(sun)) == -1) {
        die(path);
    }

    sb_random(&instance, sizeof(instance));
    sb_random(&rng, sizeof(rng));
    rng |= 1;

    start_frame(p, &w, SB_F_HELLO, 0, 0, NULL);
    sb_frame_put_u64(&w, SB_T_INSTANCE, instance);
    sb_frame_put_u64(&w, SB_T_PID, (uint64_t) getpid());
    put_text(&w, SB_T_ROLE, role);
    queue(p, &w);

    for ( ;; ) {
        turn(p, 5000);

        if (next(p, &at, &f)) {
            break;
        }
    }

    (void) next(p, &at, &f);
}


static void
make_words(void)
{
    size_t    i;
    uint64_t  keep = rng;

    rng = 42;       /* the same in every run, so that questions find them */

    for (i = 0; i < WORDS; i++) {
        (void) snprintf(words[i], sizeof(words[i]), "%c%c%c%c%u",
                        'a' + (int) dice(26), 'a' + (int) dice(26),
                        'a' + (int) dice(26), 'a' + (int) dice(26),
                        (unsigned) i);
    }

    rng = keep;
}


static void
make_id(uint8_t id[16])
{
    static sb_uuid7_t  g;

    sb_uuid7(&g, sb_now_us(), id);
}


static void
put_begin(peer_t *p, uint64_t n, unsigned sandboxes, uint8_t flags,
    const uint8_t id[16])
{
    char               text[64];
    sb_frame_writer_t  w;

    start_frame(p, &w, SB_F_BEGIN, flags, ++p->seq, id);
    sb_frame_put_u64(&w, SB_T_TIME, sb_now_us());
    put_text(&w, SB_T_TYPE, "command.execute");
    (void) snprintf(text, sizeof(text), "bench-%03u", (unsigned) (n % sandboxes));
    put_text(&w, SB_T_SANDBOX, text);
    sb_frame_put_u64(&w, SB_T_PORT, 44772);
    put_text(&w, SB_T_RECORD, flags ? "strict" : "best_effort");
    put_text(&w, SB_T_SOURCE, "sdk");
    put_text(&w, SB_T_METHOD, "POST");
    put_text(&w, SB_T_PATH, "/command");
    put_text(&w, SB_T_CLIENT, "127.0.0.1");
    put_text(&w, SB_T_AGENT, "OpenSandbox-Python-SDK/0.1.10");
    put_text(&w, SB_T_ACTOR_TYPE, "agent");
    (void) snprintf(text, sizeof(text), "agent-%u", (unsigned) (n % 37));
    put_text(&w, SB_T_ACTOR_ID, text);
    (void) snprintf(text, sizeof(text), "run-%u", (unsigned) (n / 500));
    put_text(&w, SB_T_RUN, text);
    put_text(&w, SB_T_IDENTITY, "token:bench");
    queue(p, &w);
}


static void
put_rest(peer_t *p, uint64_t n, size_t bytes, const uint8_t id[16])
{
    static char        text[128 * 1024];
    size_t             len = 0;
    sb_frame_writer_t  w;

    (void) snprintf(text, sizeof(text), "make %s && ./%s --%s=%u", word(),
                    word(), word(), (unsigned) n);
    start_frame(p, &w, SB_F_FACTS, 0, ++p->seq, id);
    put_text(&w, SB_T_COMMAND, text);
    queue(p, &w);

    /* between a half and one and a half of it */
    bytes = bytes / 2 + dice((uint32_t) bytes + 1);

    while (len < bytes && len < sizeof(text) - 64) {
        len += (size_t) snprintf(text + len, 16, "%s%c", word(),
                                 dice(10) ? ' ' : '\n');
    }

    if (len) {
        size_t  at, piece;

        start_frame(p, &w, SB_F_OUTPUT, 0, ++p->seq, id);

        for (at = 0; at < len; at += piece) {
            piece = len - at < 16384 ? len - at : 16384;
            sb_frame_put_u64(&w, SB_T_STREAM, 0);
            sb_frame_put(&w, SB_T_DATA, sb_str(text + at, piece));
        }

        queue(p, &w);
    }

    start_frame(p, &w, SB_F_END, 0, ++p->seq, id);
    put_text(&w, SB_T_STATUS, n % 20 ? "succeeded" : "failed");
    sb_frame_put_u64(&w, SB_T_HTTP_STATUS, 200);
    sb_frame_put_u64(&w, SB_T_UPSTREAM_STATUS, 200);
    sb_frame_put_u64(&w, SB_T_DURATION_US, 1000 + dice(1000000));
    sb_frame_put_u64(&w, SB_T_BYTES_IN, 60);
    sb_frame_put_u64(&w, SB_T_BYTES_OUT, len + 300);
    sb_frame_put_u64(&w, SB_T_EXIT_CODE, n % 20 ? 0 : 1);
    sb_frame_put_u64(&w, SB_T_STDOUT_TOTAL, len);
    sb_frame_put_u64(&w, SB_T_STDERR_TOTAL, 0);
    put_text(&w, SB_T_ROUTE, "straight");
    queue(p, &w);
}


/* Reads answers; the highest acknowledged number. */
static uint64_t
acked(peer_t *p, uint64_t before)
{
    size_t      at = 0;
    sb_frame_t  f;

    while (next(p, &at, &f)) {
        if (f.type == SB_F_ACK) {
            if (sb_field_u64(&f, SB_T_CODE, 0)) {
                errno = 0;
                die("the journal could not be written");
            }

            before = f.seq > before ? f.seq : before;
        }
    }

    return before;
}


static int
run_write(peer_t *p, char **a)
{
    char               name[32];
    double             seconds;
    uint8_t            id[16];
    uint64_t           first, count, i, done = 0, begun, due, seen;
    unsigned           sandboxes, k;
    uint64_t           rate;
    sb_frame_writer_t  w;

    first = strtoull(a[0], NULL, 10);
    count = strtoull(a[1], NULL, 10);
    sandboxes = (unsigned) strtoul(a[2], NULL, 10);
    rate = strtoull(a[4], NULL, 10);

    for (k = 0; k < sandboxes; k++) {
        start_frame(p, &w, SB_F_SEEN, 0, ++p->seq, NULL);
        (void) snprintf(name, sizeof(name), "bench-%03u", k);
        put_text(&w, SB_T_SANDBOX, name);
        put_text(&w, SB_T_STATE, "Running");
        queue(p, &w);
    }

    begun = now_us();

    for (i = 0; i < count && !ended; i++) {

        if (rate) {
            due = begun + i * 1000000 / rate;

            while ((seen = now_us()) < due && !ended) {
                turn_us(p, due - seen);
                done = acked(p, done);
            }
        }

        make_id(id);
        put_begin(p, first + i, sandboxes, 0, id);
        put_rest(p, first + i, strtoul(a[3], NULL, 10), id);

        while ((p->seq - done > 4 * WINDOW || p->out_len > OUT_SIZE / 4)) {
            turn(p, 1000);
            done = acked(p, done);
        }
    }

    while (done < p->seq) {
        turn(p, 1000);
        done = acked(p, done);
    }

    seconds = (double) (now_us() - begun) / 1e6;
    printf("{\"operations\":%llu,\"seconds\":%.3f,\"rate\":%.0f}\n",
           (unsigned long long) i, seconds, (double) i / seconds);

    return 0;
}


static int
run_begin(peer_t *p, char **a)
{
    uint8_t   id[16];
    uint64_t  first, count, rate, i, done = 0, begun, due, now, want;

    first = strtoull(a[0], NULL, 10);
    count = strtoull(a[1], NULL, 10);
    rate = strtoull(a[2], NULL, 10);
    begun = now_us();

    for (i = 0; i < count && !ended; i++) {

        due = begun + i * 1000000 / rate;

        while ((now = now_us()) < due) {
            turn_us(p, due - now);
            done = acked(p, done);
        }

        make_id(id);
        now = now_us();
        put_begin(p, first + i, 200, SB_FF_STRICT, id);
        want = p->seq;

        while (done < want) {
            turn(p, 1000);
            done = acked(p, done);
        }

        sample((double) (now_us() - now) / 1e3);
        put_rest(p, first + i, 200, id);
    }

    while (done < p->seq) {
        turn(p, 1000);
        done = acked(p, done);
    }

    qsort(samples, nsamples, sizeof(double), by_size);
    printf("{\"n\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
           nsamples, part(0.5), part(0.99), part(1));

    return 0;
}


static void
put_ask(peer_t *p, uint64_t n, const char *path, const char *query)
{
    sb_frame_writer_t  w;

    start_frame(p, &w, SB_F_ASK, 0, n, NULL);
    put_text(&w, SB_T_METHOD, "GET");
    put_text(&w, SB_T_PATH, path);
    put_text(&w, SB_T_QUERY, query);
    put_text(&w, SB_T_ROLE, "admin");
    put_text(&w, SB_T_ACTOR_TYPE, "user");
    put_text(&w, SB_T_ACTOR_ID, "bench");
    put_text(&w, SB_T_IDENTITY, "token:bench");
    sb_frame_put_u64(&w, SB_T_COUNT, SB_ASK_WINDOW);
    queue(p, &w);
}


static void
put_credit(peer_t *p, uint64_t n, size_t bytes)
{
    sb_frame_writer_t  w;

    if (bytes) {
        start_frame(p, &w, SB_F_CREDIT, 0, n, NULL);
        sb_frame_put_u64(&w, SB_T_COUNT, bytes);
        queue(p, &w);
    }
}


/* A query with words of the outputs: each %o an often, each %w a seldom one. */
static void
fill(char *query, size_t size, const char *pattern)
{
    size_t       len = 0;
    const char  *w;

    for ( ; *pattern && len + sizeof(words[0]) < size; ) {

        if (pattern[0] != '%' || (pattern[1] != 'o' && pattern[1] != 'w')) {
            query[len++] = *pattern++;
            continue;
        }

        w = words[pattern[1] == 'o' ? dice(OFTEN)
                                    : OFTEN + dice(WORDS - OFTEN)];
        memcpy(query + len, w, strlen(w));
        len += strlen(w);
        pattern += 2;
    }

    query[len] = '\0';
}


static int
run_ask(peer_t *p, int argc, char **a)
{
    bool        last;
    char        query[512];
    size_t      at, bytes = 0, bad = 0, items = 0;
    uint64_t    n, count, began;
    sb_str_t    v;
    sb_frame_t  f;

    count = strtoull(a[0], NULL, 10);

    for (n = 1; n <= count && !ended; n++) {
        fill(query, sizeof(query),
             argc > 2 ? a[2 + (n - 1) % (uint64_t) (argc - 2)] : "");

        began = now_us();
        put_ask(p, n, a[1], query);

        for (last = false; !last; ) {
            turn(p, 10000);

            for (at = 0; next(p, &at, &f); ) {

                if (f.type == SB_F_CANCEL) {
                    bad++;
                    last = true;
                }

                if (f.type != SB_F_ANSWER || f.seq != n) {
                    continue;
                }

                if (sb_field_u64(&f, SB_T_HTTP_STATUS, 200) != 200) {
                    bad++;
                }

                if (sb_field_get(&f, SB_T_DATA, &v)) {
                    bytes += v.len;
                    put_credit(p, n, v.len);

                    for (const char *q = v.data;
                         (q = memmem(q, (size_t) (v.data + v.len - q),
                                     "\"seq\":", 6)); q++)
                    {
                        items++;
                    }
                }

                last = last || (f.flags & SB_FF_LAST);
            }
        }

        sample((double) (now_us() - began) / 1e3);
    }

    qsort(samples, nsamples, sizeof(double), by_size);
    printf("{\"n\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,"
           "\"bytes\":%zu,\"records\":%zu,\"failed\":%zu}\n", nsamples,
           part(0.5), part(0.99), part(1), bytes, items, bad);

    return 0;
}


static void
end_it(int sig)
{
    (void) sig;
    ended = 1;
}


int
main(int argc, char **argv)
{
    peer_t  p;
    bool    kept;

    if (argc < 4) {
        fprintf(stderr, "usage: frames write|begin|ask SOCKET ...\n");
        return 2;
    }

    (void) signal(SIGTERM, end_it);

    kept = strcmp(argv[1], "write") == 0 || strcmp(argv[1], "begin") == 0;
    join(&p, argv[2], kept ? "control" : "bulk");
    make_words();

    if (strcmp(argv[1], "write") == 0 && argc == 8) {
        return run_write(&p, argv + 3);
    }

    if (strcmp(argv[1], "begin") == 0 && argc == 6) {
        return run_begin(&p, argv + 3);
    }

    if (strcmp(argv[1], "ask") == 0 && argc >= 5) {
        return run_ask(&p, argc - 3, argv + 3);
    }

    fprintf(stderr, "frames: what is to be done? see bench/frames.c\n");

    return 2;
}
