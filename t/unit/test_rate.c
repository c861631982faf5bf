/* Accounts of requests. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "rate.h"

#define MINUTE  60000u


static void
test_leaked(void **state)
{
    (void) state;

    assert_int_equal(sb_rate_leaked(0, 1000), 0);
    assert_int_equal(sb_rate_leaked(1, 1000), 1);
    assert_int_equal(sb_rate_leaked(1000, 20000), 20000);

    /* a slow account, which is empty after hours: each minute counts */

    for (uint64_t minutes = 1; minutes < 100000; minutes *= 10) {
        assert_int_equal(sb_rate_leaked(minutes * MINUTE, 16),
                         minutes * MINUTE * 16 / 1000);
    }

    assert_true(sb_rate_leaked(UINT64_MAX, 1000000000) == UINT64_MAX / 1000);
    assert_true(sb_rate_leaked(UINT64_MAX, 16) >= 1000000000);
    assert_int_equal(sb_rate_leaked(UINT64_MAX, 0), 0);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
