/* Credentials in files, in pieces of any size (C074). */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "scan.h"

/* no whole one stands in this file */
#define X10  "a1B2c3D4e5"
#define U8   "A1B2C3D4"

static const struct {
    const char  *text;
    unsigned     found;
} cases[] = {
    { "-----BEGIN RSA " "PRIVATE KEY-----\n", SB_SCAN_PRIVATE_KEY },
    { "-----BEGIN " "PRIVATE KEY-----\n", SB_SCAN_PRIVATE_KEY },
    { "x-----BEGIN OPENSSH " "PRIVATE KEY-----", SB_SCAN_PRIVATE_KEY },
    { "-----BEGIN PGP " "PRIVATE KEY BLOCK-----", SB_SCAN_PRIVATE_KEY },
    { "-----BEGIN ENCRYPTED " "PRIVATE KEY-----", SB_SCAN_PRIVATE_KEY },
    { "-----BEGIN PUBLIC KEY-----\n", 0 },
    { "-----BEGIN CERTIFICATE-----\n", 0 },
    { "key=\"AK" "IA" U8 U8 "\"", SB_SCAN_AWS_KEY },
    { "AS" "IA" U8 U8, SB_SCAN_AWS_KEY },
    { "AK" "IA" U8 "A1B2C3d4", 0 },
    { "XAK" "IA" U8 U8, 0 },
    { "AK" "IA" U8 "A1B2C3D", 0 },
    { "(AI" "za" X10 X10 X10 "-_x1y)", SB_SCAN_GOOGLE_KEY },
    { "gh" "p_" X10 X10 X10 "a1b2c3", SB_SCAN_TOKEN },
    { "gh" "p_" X10 X10 X10 "a1b2c", 0 },
    { "github" "_pat_" X10 X10 "a_" X10 X10 X10 X10, SB_SCAN_TOKEN },
    { "gl" "pat-" X10 "_-" X10, SB_SCAN_TOKEN },
    { "xo" "xb-" X10 "-" X10 "-abcd", SB_SCAN_TOKEN },
    { "np" "m_" X10 X10 X10 "a1b2c3", SB_SCAN_TOKEN },
    { "sk" "_live_" X10 X10 "abcd", SB_SCAN_TOKEN },
    { "sk" "_test_" X10 X10 "abcd", 0 },
    { "sb" "x_admin_" X10 X10 X10 X10, SB_SCAN_GATEWAY },
    { "AKIA, ghp_, and -----BEGIN what PRIVATE", 0 },
    { "", 0 },
};


static unsigned
scan(const char *text, size_t len, size_t first, size_t step)
{
    size_t     n;
    sb_scan_t  s = { .found = 0 };

    sb_scan_feed(&s, text, first);

    for (text += first, len -= first; len; text += n, len -= n) {
        n = step < len ? step : len;
        sb_scan_feed(&s, text, n);
    }

    return s.found;
}


static void
test_forms(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (scan(cases[i].text, strlen(cases[i].text), 0, 1000)
            != cases[i].found)
        {
            fail_msg("%s", cases[i].text);
        }
    }
}


/* Behind `pad` other bytes, and split everywhere. */
static void
test_splits(void **state)
{
    char      text[700];
    size_t    i, pad, len, at;

    static const size_t  pads[] = { 0, 1, 90, 95, 96, 97, 98, 200, 300 };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (pad = 0; pad < sizeof(pads) / sizeof(pads[0]); pad++) {

            memset(text, ' ', sizeof(text));
            len = strlen(cases[i].text);
            memcpy(text + pads[pad], cases[i].text, len);
            len += pads[pad] + 150;

            for (at = 0; at <= len; at++) {
                assert_int_equal(scan(text, len, at, len), cases[i].found);
                assert_int_equal(scan(text, len, at, 7), cases[i].found);
            }

            for (at = 1; at < 120; at++) {
                assert_int_equal(scan(text, len, 0, at), cases[i].found);
            }

            /* as the last bytes of a file */
            len -= 150;
            assert_int_equal(scan(text, len, len / 2, 1), cases[i].found);
        }
    }
}


/* Many small pieces leave as much behind as one large one. */
static void
test_word_before(void **state)
{
    sb_scan_t  s = { .found = 0 };
    char       text[400];
    size_t     i;

    (void) state;

    memset(text, 'Q', sizeof(text));
    memcpy(text + 200, "AK" "IA" U8 U8, 20);

    for (i = 0; i < sizeof(text); i++) {
        sb_scan_feed(&s, text + i, 1);
    }

    assert_int_equal(s.found, 0);
    assert_int_equal(scan(text, sizeof(text), 201, 300), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_word_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
