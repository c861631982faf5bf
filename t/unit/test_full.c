/* Which sandboxes have full histories: told one by one, up to a bound. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "full.h"
#include "log.h"
#include "marks.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>


static full_t  *full;
static int      fd;


static int
setup(void **state)
{
    (void) state;

    fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
    full = full_new(fd);

    return full == NULL;
}


static int
teardown(void **state)
{
    (void) state;

    full_free(full);
    close(fd);

    return 0;
}


static void
set(unsigned n, bool is)
{
    char  name[32];

    (void) snprintf(name, sizeof(name), "box-%u", n);
    full_set(full, name, is ? name : NULL, is, is ? "sandbox_history_size"
                                                  : NULL);
}


static bool
marked(sb_str_t marks, unsigned n)
{
    char  name[32];

    (void) snprintf(name, sizeof(name), "box-%u", n);

    return sb_marks_have(marks, sb_str(name, strlen(name)));
}


/* How many sandboxes the frame tells, box-FROM to before box-TO among them and
 * their neighbours not; -1: all of them. */
static int
told(const char *limit, unsigned from, unsigned to)
{
    int         n;
    char       *mem;
    size_t      len, need;
    unsigned    i;
    sb_str_t    v;
    sb_frame_t  frame;

    mem = full_frame(full, true, &len);
    assert_non_null(mem);
    assert_int_equal(sb_frame_read(&frame, mem, len, &need), SB_OK);
    assert_int_equal(frame.length, len);
    assert_int_equal(frame.type, SB_F_FULL);

    if (sb_field_get(&frame, SB_T_REASON, &v)) {
        assert_true(sb_eq(v, sb_str(limit, strlen(limit))));
    }

    if (sb_field_get(&frame, SB_T_SANDBOX, &v)) {
        assert_int_equal(v.len, 0);
        free(mem);
        return -1;
    }

    if (!sb_field_get(&frame, SB_T_DATA, &v)) {
        v = sb_lit("");
    }

    for (i = from; i < to; i++) {
        assert_true(marked(v, i));
    }

    assert_false(marked(v, from - 1));
    assert_false(marked(v, to));

    n = (int) (v.len / SB_MARK);
    free(mem);

    return n;
}


static void
test_some(void **state)
{
    char      *mem;
    size_t     n;
    uint64_t   woken;

    (void) state;

    mem = full_frame(full, false, &n);
    assert_int_equal(n, 0);
    assert_null(mem);

    set(1, true);
    assert_int_equal(read(fd, &woken, sizeof(woken)), sizeof(woken));
    set(2, true);
    set(2, true);
    assert_int_equal(told("sandbox_history_size", 1, 3), 2);
    set(1, false);
    assert_int_equal(told("sandbox_history_size", 2, 3), 1);

    /* the sum of all of them */
    full_set(full, NULL, NULL, true, "sandbox_history_total");
    assert_int_equal(told("sandbox_history_total", 0, 0), -1);
    full_set(full, NULL, NULL, false, "sandbox_history_total");
    assert_int_equal(told("sandbox_history_size", 2, 3), 1);
    set(2, false);
    assert_int_equal(told("sandbox_history_size", 2, 2), 0);
}


/* More than can be told: all are refused, but only as long as there are more. */
static void
test_bound(void **state)
{
    unsigned  i;

    (void) state;

    for (i = 0; i < FULL_MAX; i++) {
        set(i, true);
    }

    assert_int_equal(told("sandbox_history_size", 0, FULL_MAX), FULL_MAX);

    set(FULL_MAX, true);
    set(FULL_MAX + 1, true);
    assert_int_equal(told("sandbox_history_size", 0, 0), -1);

    /* whichever have room again: those are told that are still full */
    set(0, false);
    assert_int_equal(told("sandbox_history_size", 0, 0), -1);
    set(1, false);
    assert_int_equal(told("sandbox_history_size", 2, FULL_MAX + 2), FULL_MAX);

    for (i = 2; i < FULL_MAX + 1; i++) {
        set(i, false);
    }

    assert_int_equal(told("sandbox_history_size", FULL_MAX + 1, FULL_MAX + 2),
                     1);
    set(FULL_MAX + 1, false);
    assert_int_equal(told("sandbox_history_size", 9, 9), 0);

    /* and one that never was does not count */
    set(7, false);
    set(8, true);
    assert_int_equal(told("sandbox_history_size", 8, 9), 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_some, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bound, setup, teardown)
    };

    (void) log_open("/dev/null");

    return cmocka_run_group_tests(tests, NULL, NULL);
}
