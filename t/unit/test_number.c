/* Whole numbers written as text. */

#include "number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>


#define text(s)  sb_str(s, strlen(s))


static void
test_plain(void **state)
{
    size_t             i;
    uint64_t           n;
    static const char *bad[] = { "", " ", " 1", "1 ", "+1", "-1", "1.0", "0x10",
                                 "18446744073709551616",
                                 "99999999999999999999", "one" };

    (void) state;

    assert_true(sb_number(text("0"), 10, 0, &n));
    assert_int_equal(n, 0);
    assert_true(sb_number(text("007"), 10, 7, &n));
    assert_int_equal(n, 7);
    assert_true(sb_number(text("18446744073709551615"), 10, UINT64_MAX, &n));
    assert_true(n == UINT64_MAX);
    assert_true(sb_number(text("0640"), 8, 0777, &n));
    assert_int_equal(n, 0640);

    n = 5;
    assert_false(sb_number(text("8"), 8, 100, &n));
    assert_false(sb_number(text("8"), 10, 7, &n));
    assert_false(sb_number(sb_str("1\0", 2), 10, 9, &n));

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(sb_number(text(bad[i]), 10, UINT64_MAX, &n));
    }

    assert_int_equal(n, 5);
}


static void
test_signed(void **state)
{
    int64_t  n;

    (void) state;

    assert_true(sb_number_signed(text("-9223372036854775808"), INT64_MIN,
                                 INT64_MAX, &n));
    assert_true(n == INT64_MIN);
    assert_true(sb_number_signed(text("9223372036854775807"), INT64_MIN,
                                 INT64_MAX, &n));
    assert_true(n == INT64_MAX);
    assert_true(sb_number_signed(text("-0"), 0, 0, &n));
    assert_int_equal(n, 0);
    assert_true(sb_number_signed(text("-1"), -1, 1, &n));
    assert_int_equal(n, -1);

    assert_false(sb_number_signed(text("9223372036854775808"), INT64_MIN,
                                  INT64_MAX, &n));
    assert_false(sb_number_signed(text("-9223372036854775809"), INT64_MIN,
                                  INT64_MAX, &n));
    assert_false(sb_number_signed(text("-2"), -1, 1, &n));
    assert_false(sb_number_signed(text("-"), INT64_MIN, INT64_MAX, &n));
    assert_false(sb_number_signed(text("--1"), INT64_MIN, INT64_MAX, &n));
    assert_false(sb_number_signed(text("- 1"), INT64_MIN, INT64_MAX, &n));
    assert_int_equal(n, -1);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_signed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
