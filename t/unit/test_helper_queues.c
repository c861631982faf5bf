/* What the helper keeps for others, until it is full: answers for a worker, records
 * of the console, changes for sandbox-history. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_place.h"

#include "ask_int.h"
#include "conn.h"
#include "console.h"
#include "errand.h"
#include "stats.h"

#include <sys/eventfd.h>
#include <sys/socket.h>


static char  piece[64 * 1024];


static int
event(void)
{
    int  fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    assert_int_not_equal(fd, -1);

    return fd;
}


/* A worker that does not read: what is kept for it has an end, and nothing of what
 * was taken is lost. */
static void
test_answers(void **state)
{
    int      fd[2];
    char    *in;
    size_t   taken, got;
    ssize_t  n;
    conn_t  *c;

    (void) state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fd), 0);
    c = conn_new(fd[0], 1);
    assert_non_null(c);

    for (taken = 0; conn_send(c, piece, sizeof(piece)); taken += sizeof(piece)) {
        assert_true(taken < CONN_OUT_MAX + 16 * 1024 * 1024);
        assert_int_equal(stats_get(STATS_CONNECTIONS_CUT), 0);
    }

    assert_true(taken >= CONN_OUT_MAX);
    assert_true(c->out.len - c->out_sent <= CONN_OUT_MAX);
    assert_int_equal(stats_get(STATS_CONNECTIONS_CUT), 1);

    in = malloc(sizeof(piece));
    assert_non_null(in);

    for (got = 0; got < taken; got += (size_t) n) {
        n = read(fd[1], in, sizeof(piece));

        if (n == -1) {
            n = 0;
            assert_true(conn_flush(c));
        }
    }

    assert_int_equal(got, taken);
    assert_false(conn_blocked(c));
    assert_true(conn_send(c, piece, sizeof(piece)));

    free(in);
    close(fd[1]);
    conn_free(c);
}


/* At the bound of its records what only reads is answered, and what has to be on
 * record is not begun. */
static void
test_console(void **state)
{
    int               fd;
    size_t            kept;
    ask_int_t         in = { 0 };
    console_t        *c;
    ask_question_t    q = { 0 };
    console_frame_t  *one, *next;

    static const ask_route_t  reads = { .method = "GET", .path = "overview" };
    static const ask_route_t  exports = { .method = "GET", .path = "export" };

    (void) state;

    fd = event();
    c = console_new(fd);
    assert_non_null(c);

    q.method = sb_lit("GET");
    q.path = sb_lit("export");
    q.in = &in;

    for (kept = 0; console_keep(c, piece, sizeof(piece), 0, 0);
         kept += sizeof(piece))
    {
        assert_true(kept < CONSOLE_QUEUE);
        assert_int_equal(stats_get(STATS_CONSOLE_REFUSED), 0);
    }

    assert_int_equal(kept, CONSOLE_QUEUE);
    assert_int_equal(stats_get(STATS_CONSOLE_REFUSED), 1);

    assert_true(console_begin(c, &q, &reads));
    assert_int_equal(stats_get(STATS_CONSOLE_REFUSED), 2);
    assert_false(console_begin(c, &q, &exports));
    assert_int_equal(stats_get(STATS_CONSOLE_REFUSED), 3);
    assert_false(in.recorded);

    for (one = console_take(c); one; one = next) {
        next = one->next;
        kept -= one->len;
        free(one);
    }

    assert_int_equal(kept, 0);
    assert_true(console_begin(c, &q, &exports));
    assert_true(in.recorded);
    console_end(c, &q, 200, true);
    assert_int_equal(stats_get(STATS_CONSOLE_REFUSED), 3);

    console_free(c);
    close(fd);
}


/* Changes that find too many waiting are refused; those that wait are done, each
 * has its answer, and there is room again. */
static void
test_errands(void **state)
{
    int        fd;
    unsigned   i, done;
    errand_t  *e, *next;
    errands_t *errands;

    (void) state;

    fd = event();
    errands = errands_new(fd);
    assert_non_null(errands);

    for (i = 0; i < ERRAND_MAX; i++) {
        assert_true(errands_put(errands, 1, i, sb_lit("nonsense")));
    }

    assert_int_equal(stats_get(STATS_ERRANDS_REFUSED), 0);
    assert_false(errands_put(errands, 1, i, sb_lit("nonsense")));
    assert_int_equal(stats_get(STATS_ERRANDS_REFUSED), 1);
    assert_null(errands_take(errands));

    errands_run(errands, p.store, NULL);

    done = 0;

    for (e = errands_take(errands); e; e = next) {
        next = e->next;
        assert_false(e->ok);
        assert_true(e->seq < ERRAND_MAX);
        errand_free(e);
        done++;
    }

    assert_int_equal(done, ERRAND_MAX);
    assert_true(errands_put(errands, 1, i, sb_lit("nonsense")));

    errands_free(errands);
    close(fd);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_console),
        store_case(test_errands)
    };

    return store_run(argc, argv, tests);
}
