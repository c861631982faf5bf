/* Questions of the console API: windows, bounds, ends. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ask.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>


#define WAIT_MS  5000
#define LONG     100000

static atomic_int  released;
static atomic_int  called;
static _Atomic(ask_question_t *)  held[4];


static void
release(void *state)
{
    free(state);
    atomic_fetch_add(&released, 1);
}


static ask_rc_e
on_whole(ask_question_t *q)
{
    size_t    i;
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = LONG;

    for (i = 0; i < LONG; i++) {
        assert_int_equal(sb_buf_add_c(&b, (char) ('a' + i % 26)), SB_OK);
    }

    return ask_whole(q, 200, "text/plain", &b);
}


static ask_rc_e
on_short(ask_question_t *q)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = 1024;

    assert_int_equal(sb_buf_add_str(&b, q->args[0]), SB_OK);
    assert_int_equal(sb_buf_add_str(&b, q->query), SB_OK);

    return ask_whole(q, 201, "text/plain", &b);
}


/* Waits for ever: for room, a cancel, or its time. */
static ask_rc_e
on_hold(ask_question_t *q)
{
    atomic_fetch_add(&called, 1);

    if (q->state == NULL) {
        q->state = malloc(1);
        q->release = release;
        ask_head(q, 200, "text/event-stream");
        assert_true(ask_write(q, "first", 5));
    }

    return ASK_AGAIN;
}


static ask_rc_e
on_tick(ask_question_t *q)
{
    char  *n;

    if (q->state == NULL) {
        q->state = calloc(1, 1);
        q->release = release;
        ask_head(q, 200, "text/plain");
    }

    n = q->state;
    assert_true(ask_write(q, "tick", 4));

    if (++*n == 3) {
        return ASK_DONE;
    }

    ask_later(q, 1000);

    return ASK_AGAIN;
}


static ask_rc_e
on_fail(ask_question_t *q)
{
    if (q->query.len) {
        ask_head(q, 200, "text/plain");
        assert_true(ask_write(q, "half", 4));
    }

    return ASK_FAILED;
}


static ask_rc_e
on_greedy(ask_question_t *q)
{
    char  big[SB_ASK_WINDOW + 1];

    memset(big, 'x', sizeof(big));
    ask_head(q, 200, "text/plain");
    assert_false(ask_write(q, big, sizeof(big)));
    assert_true(ask_write(q, big, sizeof(big) - 1));
    assert_int_equal(ask_room(q), 0);
    assert_false(ask_write(q, big, 1));

    return ASK_DONE;
}


/* Is written to by the test. */
static ask_rc_e
on_share(ask_question_t *q)
{
    unsigned  n;

    n = (unsigned) (q->args[0].data[0] - '0');

    if (atomic_load(&held[n])) {
        return ASK_AGAIN;
    }

    ask_head(q, 200, "text/event-stream");
    assert_true(ask_write(q, "first", 5));
    atomic_store(&held[n], q);

    return ASK_AGAIN;
}


static const ask_route_t  routes[] = {
    { "GET", "whole", SB_ROLE_VIEWER, on_whole },
    { "GET", "short/{x}/y", SB_ROLE_VIEWER, on_short },
    { "GET", "hold", SB_ROLE_VIEWER, on_hold },
    { "GET", "tick", SB_ROLE_VIEWER, on_tick },
    { "GET", "fail", SB_ROLE_VIEWER, on_fail },
    { "GET", "greedy", SB_ROLE_VIEWER, on_greedy },
    { "GET", "share/{n}", SB_ROLE_VIEWER, on_share },
    { "POST", "hold", SB_ROLE_ADMIN, on_hold },
    { NULL, NULL, SB_ROLE_VIEWER, NULL }
};


typedef struct {
    ask_t        *ask;
    int           fd;
    ask_piece_t  *pieces;       /* taken, not looked at */
} place_t;


static int
setup(void **state)
{
    size_t    i;
    place_t  *p;

    p = calloc(1, sizeof(place_t));
    p->fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
    p->ask = ask_new(routes, p, p->fd, 2, 3);
    atomic_store(&released, 0);
    atomic_store(&called, 0);

    for (i = 0; i < 4; i++) {
        atomic_store(&held[i], NULL);
    }

    *state = p;

    return p->ask && ask_start(p->ask) ? 0 : -1;
}


static int
teardown(void **state)
{
    place_t      *p = *state;
    ask_piece_t  *next;

    ask_free(p->ask);

    for ( /* void */ ; p->pieces; p->pieces = next) {
        next = p->pieces->next;
        free(p->pieces);
    }

    close(p->fd);
    free(p);

    return 0;
}


/* A frame of a worker's, as the helper reads it. */
static void
make(char mem[512], sb_frame_t *f, uint8_t type, uint64_t seq,
    const char *method, const char *path, uint64_t count)
{
    size_t             n, need;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, 512, type, 0, seq, NULL, 0);

    if (method) {
        sb_frame_put(&w, SB_T_METHOD, sb_str(method, strlen(method)));
        sb_frame_put(&w, SB_T_PATH, sb_str(path, strcspn(path, "?")));
        path += strcspn(path, "?");

        if (*path) {
            sb_frame_put(&w, SB_T_QUERY, sb_str(path + 1, strlen(path + 1)));
        }
    }

    if (count) {
        sb_frame_put_u64(&w, SB_T_COUNT, count);
    }

    n = sb_frame_end(&w);
    assert_int_equal(sb_frame_read(f, mem, n, &need), SB_OK);
}


static sb_rc_t
put(place_t *p, uint64_t seq, const char *method, const char *path)
{
    char        mem[512];
    sb_frame_t  f;

    make(mem, &f, SB_F_ASK, seq, method, path, SB_ASK_WINDOW);

    return ask_put(p->ask, 1, 0, &f);
}


static void
credit(place_t *p, uint64_t seq, uint64_t n)
{
    char        mem[512];
    sb_frame_t  f;

    make(mem, &f, SB_F_CREDIT, seq, NULL, NULL, n);
    ask_credit(p->ask, 1, &f);
}


static void
cancel(place_t *p, uint64_t seq)
{
    char        mem[512];
    sb_frame_t  f;

    make(mem, &f, SB_F_CANCEL, seq, NULL, NULL, 0);
    ask_cancel(p->ask, 1, &f);
}


/* The next frame that goes out; false when none does in `ms`. */
static bool
next(place_t *p, sb_frame_t *f, char mem[SB_ASK_PIECE + 512], int ms)
{
    size_t         need;
    uint64_t       n;
    ask_piece_t   *piece;
    struct pollfd  pfd;

    if (p->pieces == NULL) {
        pfd.fd = p->fd;
        pfd.events = POLLIN;

        if (poll(&pfd, 1, ms) <= 0) {
            return false;
        }

        assert_int_equal(read(p->fd, &n, sizeof(n)), sizeof(n));
        p->pieces = ask_take(p->ask);

        if (p->pieces == NULL) {
            /* taken together with the one before */
            return next(p, f, mem, ms);
        }
    }

    piece = p->pieces;
    p->pieces = piece->next;
    assert_int_equal(piece->conn, 1);
    assert_true(piece->len <= SB_ASK_PIECE + 512);
    memcpy(mem, piece->frame, piece->len);
    assert_int_equal(sb_frame_read(f, mem, piece->len, &need), SB_OK);
    free(piece);

    return true;
}


static sb_str_t
data_of(const sb_frame_t *f)
{
    sb_str_t  v;

    return sb_field_get(f, SB_T_DATA, &v) ? v : sb_str("", 0);
}


static void
test_short(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    place_t    *p = *state;
    sb_str_t    type;
    sb_frame_t  f;

    assert_int_equal(put(p, 7, "GET", "short/a%2Fb/y?q=1"), SB_OK);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(f.type, SB_F_ANSWER);
    assert_int_equal(f.seq, 7);
    assert_int_equal(f.flags, SB_FF_LAST);
    assert_int_equal(sb_field_u64(&f, SB_T_HTTP_STATUS, 0), 201);
    assert_true(sb_field_get(&f, SB_T_CONTENT_TYPE, &type));
    assert_true(sb_eq(type, sb_lit("text/plain")));
    assert_true(sb_eq(data_of(&f), sb_lit("a%2Fbq=1")));
}


/* A window, and not a byte more before a CREDIT. */
static void
test_window(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    size_t      i, sent, allowed;
    bool        last;
    place_t    *p = *state;
    sb_str_t    d;
    sb_frame_t  f;

    assert_int_equal(put(p, 1, "GET", "whole"), SB_OK);

    sent = 0;
    allowed = SB_ASK_WINDOW;
    last = false;

    while (!last) {

        if (!next(p, &f, mem, sent == allowed ? 50 : WAIT_MS)) {
            assert_int_equal(sent, allowed);
            allowed += 10000;
            credit(p, 1, 10000);
            continue;
        }

        d = data_of(&f);
        assert_true(d.len <= SB_ASK_PIECE);

        for (i = 0; i < d.len; i++) {
            assert_int_equal(d.data[i], 'a' + (int) ((sent + i) % 26));
        }

        sent += d.len;
        assert_true(sent <= allowed);
        last = f.flags & SB_FF_LAST;
    }

    assert_int_equal(sent, LONG);
}


static void
test_greedy(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    size_t      sent;
    place_t    *p = *state;
    sb_frame_t  f;

    assert_int_equal(put(p, 1, "GET", "greedy"), SB_OK);

    sent = 0;

    do {
        assert_true(next(p, &f, mem, WAIT_MS));
        assert_int_equal(f.type, SB_F_ANSWER);
        sent += data_of(&f).len;
    } while (!(f.flags & SB_FF_LAST));

    assert_int_equal(sent, SB_ASK_WINDOW);
}


/* The bound of open questions, and room when one is over. */
static void
test_limit(void **state)
{
    char           mem[SB_ASK_PIECE + 512];
    place_t       *p = *state;
    uint64_t       i;
    sb_frame_t     f;
    ask_numbers_t  n;

    for (i = 1; i <= 3; i++) {
        assert_int_equal(put(p, i, "GET", "hold"), SB_OK);
    }

    /* parked ones hold no thread: all three have been called */
    for (i = 1; i <= 3; i++) {
        assert_true(next(p, &f, mem, WAIT_MS));
        assert_true(sb_eq(data_of(&f), sb_lit("first")));
    }

    assert_int_equal(put(p, 4, "GET", "hold"), SB_LIMIT);
    assert_int_equal(put(p, 4, "GET", "nothing"), SB_LIMIT);

    ask_numbers(p->ask, &n);
    assert_int_equal(n.open, 3);
    assert_int_equal(n.limit, 3);
    assert_int_equal(n.refused, 2);
    assert_int_equal(n.asked, 5);

    cancel(p, 2);

    for (i = 0; i < WAIT_MS && n.open == 3; i++) {
        usleep(1000);
        ask_numbers(p->ask, &n);
    }

    assert_int_equal(n.open, 2);
    assert_int_equal(atomic_load(&released), 1);
    assert_int_equal(put(p, 5, "GET", "short/a/y"), SB_OK);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(f.seq, 5);

    /* nothing comes of the one that was cancelled */
    assert_false(next(p, &f, mem, 20));

    ask_closed(p->ask, 1);

    for (i = 0; i < WAIT_MS && atomic_load(&released) < 3; i++) {
        usleep(1000);
    }

    assert_int_equal(atomic_load(&released), 3);
}


static void
test_time(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    int         i;
    place_t    *p = *state;
    sb_frame_t  f;

    assert_int_equal(put(p, 1, "GET", "tick"), SB_OK);

    for (i = 0; i < 3; i++) {
        assert_true(next(p, &f, mem, WAIT_MS));
        assert_true(sb_eq(data_of(&f), sb_lit("tick")));
    }

    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(f.flags, SB_FF_LAST);
    assert_int_equal(data_of(&f).len, 0);
}


static void
test_fail(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    place_t    *p = *state;
    sb_frame_t  f;

    assert_int_equal(put(p, 1, "GET", "fail"), SB_OK);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(sb_field_u64(&f, SB_T_HTTP_STATUS, 0), 500);
    assert_int_equal(f.flags, SB_FF_LAST);

    /* the head is out: cut, not ended */

    assert_int_equal(put(p, 2, "GET", "fail?x"), SB_OK);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(sb_field_u64(&f, SB_T_HTTP_STATUS, 0), 200);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(f.type, SB_F_CANCEL);
    assert_int_equal(f.seq, 2);
}


static void
test_refused(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    char        raw[512];
    size_t      i;
    place_t    *p = *state;
    sb_str_t    allow;
    sb_frame_t  f;

    static const struct {
        const char  *method;
        const char  *path;
        unsigned     status;
        const char  *allow;
    } rows[] = {
        { "GET", "nothing", 404, NULL },
        { "GET", "", 404, NULL },
        { "GET", "whole/", 404, NULL },
        { "GET", "wholes", 404, NULL },
        { "GET", "short//y", 404, NULL },
        { "GET", "short/a", 404, NULL },
        { "PUT", "whole", 405, "GET, HEAD" },
        { "PUT", "hold", 405, "GET, HEAD, POST" },
        { "POST", "hold", 403, NULL }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(put(p, i + 1, rows[i].method, rows[i].path), SB_OK);
        assert_true(next(p, &f, mem, WAIT_MS));
        assert_int_equal(sb_field_u64(&f, SB_T_HTTP_STATUS, 0), rows[i].status);
        assert_int_equal(f.flags, SB_FF_LAST);
        assert_int_equal(sb_field_get(&f, SB_T_ALLOW, &allow),
                         rows[i].allow != NULL);

        if (rows[i].allow) {
            assert_true(sb_eq(allow, sb_str(rows[i].allow,
                                            strlen(rows[i].allow))));
        }
    }

    /* what is no question: no window, too large a one, no number, twice */

    make(raw, &f, SB_F_ASK, 30, "GET", "hold", 0);
    assert_int_equal(ask_put(p->ask, 1, 0, &f), SB_ERROR);
    make(raw, &f, SB_F_ASK, 30, "GET", "hold", SB_ASK_WINDOW + 1);
    assert_int_equal(ask_put(p->ask, 1, 0, &f), SB_ERROR);
    make(raw, &f, SB_F_ASK, 0, "GET", "hold", SB_ASK_WINDOW);
    assert_int_equal(ask_put(p->ask, 1, 0, &f), SB_ERROR);
    assert_int_equal(put(p, 30, "GET", "hold"), SB_OK);
    assert_int_equal(put(p, 30, "GET", "hold"), SB_ERROR);

    /* about nothing that is open */

    credit(p, 99, 1000);
    cancel(p, 99);
}


/* A CREDIT of any size lets no more than one window be on its way. */
static void
test_credit(void **state)
{
    char        mem[SB_ASK_PIECE + 512];
    size_t      sent;
    place_t    *p = *state;
    sb_frame_t  f;

    assert_int_equal(put(p, 1, "GET", "whole"), SB_OK);

    sent = 0;

    while (sent < SB_ASK_WINDOW) {
        assert_true(next(p, &f, mem, WAIT_MS));
        sent += data_of(&f).len;
    }

    credit(p, 1, UINT64_MAX);

    while (next(p, &f, mem, 50)) {
        sent += data_of(&f).len;
    }

    assert_int_equal(sent, 2 * SB_ASK_WINDOW);
}


static void
put_shared(place_t *p, uint64_t seq, const char *path, uint8_t flags)
{
    char         mem[512];
    char         out[SB_ASK_PIECE + 512];
    sb_frame_t   f;

    make(mem, &f, SB_F_ASK, seq, "GET", path, SB_ASK_WINDOW);
    f.flags = flags;
    assert_int_equal(ask_put(p->ask, 1, 0, &f), SB_OK);
    assert_true(next(p, &f, out, WAIT_MS));
    assert_int_equal(f.seq, seq);

    while (atomic_load(&held[seq]) == NULL) {
        /* its handler is about to leave it to us */
    }
}


/* One piece for those who take it so and have room. */
static void
test_shared(void **state)
{
    char          mem[SB_ASK_PIECE + 512];
    char          big[SB_ASK_PIECE];
    place_t      *p = *state;
    sb_str_t      v;
    sb_frame_t    f;
    ask_share_t   s[3];

    put_shared(p, 1, "share/1", SB_FF_SHARE);
    put_shared(p, 2, "share/2", SB_FF_SHARE);
    put_shared(p, 3, "share/3", 0);

    s[0].q = atomic_load(&held[1]);
    s[1].q = atomic_load(&held[3]);
    s[2].q = atomic_load(&held[2]);

    ask_write_shared(s, 3, "same", 4);
    assert_true(s[0].taken && !s[1].taken && s[2].taken);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(f.type, SB_F_ANSWER);
    assert_int_equal(f.seq, 1);
    assert_true(sb_eq(data_of(&f), sb_lit("same")));
    assert_true(sb_field_get(&f, SB_T_ALSO, &v));
    assert_int_equal(sb_value_u64(v, 0), 2);
    assert_false(next(p, &f, mem, 50));

    /* it counts for the windows of both */

    assert_int_equal(ask_room(s[0].q), SB_ASK_WINDOW - 9);
    assert_int_equal(ask_room(s[1].q), SB_ASK_WINDOW - 5);
    assert_int_equal(ask_room(s[2].q), SB_ASK_WINDOW - 9);

    memset(big, 'x', sizeof(big));
    ask_write_shared(s, 3, big, sizeof(big));
    assert_true(s[0].taken && s[2].taken);
    assert_true(next(p, &f, mem, WAIT_MS));
    credit(p, 2, 100);
    ask_write_shared(s, 3, big, sizeof(big));
    assert_true(!s[0].taken && s[2].taken);
    assert_true(next(p, &f, mem, WAIT_MS));
    assert_int_equal(f.seq, 2);
    assert_false(sb_field_get(&f, SB_T_ALSO, &v));

    /* what is no piece */

    ask_write_shared(s, 2, big, 0);
    assert_false(s[0].taken);
    ask_write_shared(s, 0, big, 1);
    assert_false(next(p, &f, mem, 50));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_short, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window, setup, teardown),
        cmocka_unit_test_setup_teardown(test_greedy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_credit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
