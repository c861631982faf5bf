/* Archives that wait to be looked into: the queue's bound, and what is answered
 * where the program is not there. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "inspector.h"
#include "stats.h"


static int
file(void)
{
    int  fd = open("/dev/null", O_RDONLY|O_CLOEXEC);

    assert_int_not_equal(fd, -1);

    return fd;
}


static void
test_queue(void **state)
{
    int                  wake;
    size_t               i, left;
    inspector_t         *q;
    const char          *why;
    inspector_answer_t   a;

    (void) state;

    wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    q = inspector_new(2, 1, INSPECTOR_MEMORY, wake);
    assert_non_null(q);

    for (i = 0; i < INSPECTOR_WAITING; i++) {
        assert_null(inspector_ask(q, "frame", 5, file(), i % 2 + 1, i));
    }

    assert_int_equal(stats_get(STATS_INSPECT_WAITING), INSPECTOR_WAITING);

    why = inspector_ask(q, "frame", 5, file(), 1, i);
    assert_non_null(why);
    assert_non_null(strstr(why, "Too many archives"));
    assert_int_equal(stats_get(STATS_INSPECT_REFUSED), 1);
    assert_false(inspector_take(q, &a));

    /* who has gone is not answered; the others are, in their order: beside this
     * program there is no sandbox-inspect */

    inspector_cancel(q, 1);
    assert_true(inspector_start(q));

    for (i = 1, left = INSPECTOR_WAITING / 2; left; left--, i += 2) {

        while (!inspector_take(q, &a)) {
            (void) poll(&(struct pollfd) { wake, POLLIN, 0 }, 1, 10);
        }

        assert_int_equal(a.conn, 2);
        assert_int_equal(a.seq, i);
        assert_non_null(a.reason);
        assert_non_null(strstr(a.reason, "cannot be started"));
    }

    assert_false(inspector_take(q, &a));
    assert_int_equal(stats_get(STATS_INSPECT_FAILED), INSPECTOR_WAITING / 2);

    /* what is left at the end is let go */

    assert_null(inspector_ask(q, "frame", 5, file(), 3, 1));
    inspector_stop(q);
    close(wake);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
