/* UUIDv7 and times. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "id.h"

#define NOW  1795942800000001ull    /* 2026-11-29T09:00:00.000001Z */


static uint64_t
milliseconds(const uint8_t id[16])
{
    uint64_t  ms;

    ms = 0;

    for (int i = 0; i < 6; i++) {
        ms = ms << 8 | id[i];
    }

    return ms;
}


static void
assert_form(const uint8_t id[16])
{
    assert_int_equal(id[6] >> 4, 7);
    assert_int_equal(id[8] >> 6, 2);
}


static void
test_uuid7_form(void **state)
{
    char        text[SB_UUID_LEN + 1];
    uint8_t     id[16], back[16];
    sb_uuid7_t  g;

    (void) state;

    memset(&g, 0, sizeof(g));
    sb_uuid7(&g, NOW, id);

    assert_form(id);
    assert_int_equal(milliseconds(id), NOW / 1000);

    sb_uuid_text(text, id);
    assert_int_equal(strlen(text), SB_UUID_LEN);
    assert_int_equal(sb_uuid_parse(back, sb_str(text, SB_UUID_LEN)), SB_OK);
    assert_memory_equal(back, id, 16);
}


/* one generator's ids grow whatever the clock does */
static void
test_uuid7_order(void **state)
{
    uint8_t     last[16], id[16];
    uint64_t    now, high;
    sb_uuid7_t  g;

    (void) state;

    memset(&g, 0, sizeof(g));
    memset(last, 0, sizeof(last));
    now = NOW;
    high = 0;

    for (int i = 0; i < 20000; i++) {

        switch (i % 10) {
        case 3:
            now += 700;
            break;
        case 7:
            now -= 5000000;     /* the clock goes back five seconds */
            break;
        case 9:
            now += 5000300;
            break;
        }

        sb_uuid7(&g, now, id);
        assert_form(id);
        assert_true(memcmp(last, id, 16) < 0);

        if (now / 1000 > high) {
            high = now / 1000;
        }

        assert_int_equal(milliseconds(id), high);
        memcpy(last, id, 16);
    }
}


static void
test_uuid7_counter(void **state)
{
    uint8_t     last[16], id[16];
    sb_uuid7_t  g;

    (void) state;

    /* within a millisecond: plus one */

    memset(&g, 0, sizeof(g));
    g.ms = NOW / 1000;
    g.hi = 5;
    g.lo = 0x3fffffffffffffffull;
    sb_uuid7(&g, NOW, id);
    assert_int_equal(g.hi, 6);
    assert_int_equal(g.lo, 0);
    sb_uuid7(&g, NOW, id);
    assert_int_equal(g.lo, 1);
    assert_int_equal(id[15], 1);

    /* a full counter takes the next millisecond */

    g.hi = 0xfff;
    g.lo = 0x3fffffffffffffffull - 1;
    sb_uuid7(&g, NOW, last);
    assert_int_equal(milliseconds(last), NOW / 1000);
    sb_uuid7(&g, NOW, id);
    assert_int_equal(milliseconds(id), NOW / 1000 + 1);
    assert_form(id);
    assert_true(memcmp(last, id, 16) < 0);

    /* two processes that start in one millisecond do not meet */

    memset(&g, 0, sizeof(g));
    sb_uuid7(&g, NOW, last);
    memset(&g, 0, sizeof(g));
    sb_uuid7(&g, NOW, id);
    assert_memory_not_equal(last + 6, id + 6, 10);
}


static void
test_uuid_parse(void **state)
{
    static const char *const  bad[] = {
        "",
        "019abcde-f012-7345-8678-9abcdef0123",
        "019abcde-f012-7345-8678-9abcdef012345",
        "019abcde-f012-7345-8678-9abcdef0123g",
        "019abcdef-012-7345-8678-9abcdef01234",
        "019abcdef0127345867849abcdef01234-----",
        "{19abcde-f012-7345-8678-9abcdef0123}",
        " 19abcde-f012-7345-8678-9abcdef01234",
    };

    char     text[SB_UUID_LEN + 1];
    uint8_t  id[16];

    (void) state;

    assert_int_equal(
        sb_uuid_parse(id, sb_lit("019ABCDE-F012-7345-8678-9abcdef01234")),
        SB_OK);
    sb_uuid_text(text, id);
    assert_string_equal(text, "019abcde-f012-7345-8678-9abcdef01234");

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sb_uuid_parse(id, sb_str(bad[i], strlen(bad[i]))),
                         SB_ERROR);
    }
}


static void
test_time_text(void **state)
{
    static const struct {
        uint64_t     us;
        const char  *text;
    } cases[] = {
        { 0, "1970-01-01T00:00:00.000000Z" },
        { NOW, "2026-11-29T09:00:00.000001Z" },
        { 951782399999999, "2000-02-28T23:59:59.999999Z" },
        { 951782400000000, "2000-02-29T00:00:00.000000Z" },
        { 951868800000000, "2000-03-01T00:00:00.000000Z" },
        { 4107542400000000, "2100-03-01T00:00:00.000000Z" },
        { 4107542399999999, "2100-02-28T23:59:59.999999Z" },
        { 1735689599000000, "2024-12-31T23:59:59.000000Z" },
        { 253402300799999999, "9999-12-31T23:59:59.999999Z" },
    };

    char      text[SB_TIME_LEN + 1];
    uint64_t  us;

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sb_time_text(text, cases[i].us);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(sb_time_parse(&us, sb_str(text, SB_TIME_LEN)),
                         SB_OK);
        assert_int_equal(us, cases[i].us);
    }

    sb_time_text(text, UINT64_MAX);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");

    /* every day from 1970 to 2170, and some time in it */

    for (uint64_t day = 0; day < 73050; day++) {
        uint64_t  t = day * 86400000000ull + day * 1234567 % 86400000000ull;

        sb_time_text(text, t);
        assert_int_equal(sb_time_parse(&us, sb_str(text, SB_TIME_LEN)),
                         SB_OK);
        assert_int_equal(us, t);
    }
}


static void
test_time_parse(void **state)
{
    static const struct {
        const char  *text;
        uint64_t     us;
    } good[] = {
        { "2026-11-29T09:00:00Z", NOW - 1 },
        { "2026-11-29T09:00:00.5Z", NOW - 1 + 500000 },
        { "2026-11-29T09:00:00.000Z", NOW - 1 },
        { "2026-11-29T09:00:00.123Z", NOW - 1 + 123000 },
        { "2026-11-29T09:00:00.123456789Z", NOW - 1 + 123456 },
        { "2026-11-29T09:00:00.12345678Z", NOW - 1 + 123456 },
        { "2026-11-29T10:00:00.000001+01:00", NOW },
        { "2026-11-29T03:30:00.000001-05:30", NOW },
        { "2026-11-29T09:00:00+00:00", NOW - 1 },
        { "1969-12-31T23:00:00-01:00", 0 },
    };

    static const char *const  bad[] = {
        "", "2026-11-29", "2026-11-29T09:00:00", "2026-11-29 09:00:00Z",
        "2026-11-29t09:00:00z", "2026-13-29T09:00:00Z", "2026-00-29T09:00:00Z",
        "2026-11-31T09:00:00Z", "2026-02-29T09:00:00Z", "2100-02-29T09:00:00Z",
        "2026-11-00T09:00:00Z", "2026-11-29T24:00:00Z", "2026-11-29T09:60:00Z",
        "2026-11-29T09:00:60Z", "2026-11-29T09:00:00.Z",
        "2026-11-29T09:00:00.1234567890Z", "2026-11-29T09:00:00.12 Z",
        "2026-11-29T09:00:00+0100", "2026-11-29T09:00:00+01:60",
        "2026-11-29T09:00:00+24:00", "2026-11-29T09:00:00ZZ",
        "2026-11-29T09:00:00Z ", "+026-11-29T09:00:00Z",
        "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01", "2026-11-29T09:00:0Z0",
    };

    uint64_t  us;

    (void) state;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(
            sb_time_parse(&us, sb_str(good[i].text, strlen(good[i].text))),
            SB_OK);
        assert_int_equal(us, good[i].us);
    }

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (sb_time_parse(&us, sb_str(bad[i], strlen(bad[i]))) != SB_ERROR) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
}


static void
test_now_random(void **state)
{
    char      big[1000];
    uint8_t   a[16], b[16];
    size_t    zeros;

    (void) state;

    assert_true(sb_now_us() > 1700000000000000ull);
    assert_true(sb_now_us() < 253402300799999999ull);

    sb_random(a, sizeof(a));
    sb_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));

    memset(big, 0, sizeof(big));
    sb_random(big, sizeof(big));
    zeros = 0;

    for (size_t i = 0; i < sizeof(big); i++) {
        zeros += big[i] == 0;
    }

    assert_true(zeros < 100);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_uuid7_form),
        cmocka_unit_test(test_uuid7_order),
        cmocka_unit_test(test_uuid7_counter),
        cmocka_unit_test(test_uuid_parse),
        cmocka_unit_test(test_time_text),
        cmocka_unit_test(test_time_parse),
        cmocka_unit_test(test_now_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
