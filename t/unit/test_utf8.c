/* UTF-8: what is valid, where it is cut, what it means. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "utf8.h"


/* All that are valid of up to four bytes, by counting the code points. */
static void
test_valid(void **state)
{
    char    s[5];
    size_t  valid;

    (void) state;

    valid = 0;

    for (unsigned a = 0xc0; a < 0x100; a++) {
        for (unsigned b = 0x70; b < 0xd0; b++) {
            s[0] = (char) a;
            s[1] = (char) b;
            valid += sb_utf8_valid(sb_str(s, 2));
        }
    }

    assert_int_equal(valid, 0x800 - 0x80);

    valid = 0;

    for (unsigned a = 0xe0; a < 0xf0; a++) {
        for (unsigned b = 0x70; b < 0xd0; b++) {
            for (unsigned c = 0x80; c < 0xc0; c++) {
                s[0] = (char) a;
                s[1] = (char) b;
                s[2] = (char) c;
                valid += sb_utf8_valid(sb_str(s, 3));
            }
        }
    }

    assert_int_equal(valid, 0x10000 - 0x800 - 0x800);

    valid = 0;

    for (unsigned a = 0xf0; a < 0x100; a++) {
        for (unsigned b = 0x80; b < 0xc0; b++) {
            for (unsigned c = 0x7f; c < 0xc1; c++) {
                s[0] = (char) a;
                s[1] = (char) b;
                s[2] = (char) c;
                s[3] = (char) 0xbf;
                valid += sb_utf8_valid(sb_str(s, 4));
            }
        }
    }

    assert_int_equal(valid, 0x100000 / 64);

    /* a bad byte at any place of a long text */

    for (size_t i = 0; i < 40; i++) {
        char  line[40];

        memset(line, 'a', sizeof(line));
        assert_true(sb_utf8_valid(sb_str(line, sizeof(line))));
        line[i] = (char) 0x80;
        assert_false(sb_utf8_valid(sb_str(line, sizeof(line))));
    }

    assert_true(sb_utf8_valid(sb_str(NULL, 0)));
}


static void
test_cut(void **state)
{
    size_t    n;
    sb_str_t  text;

    (void) state;

    /* cutting: e, é, 報, 😀 */

    text = sb_lit("e\xc3\xa9\xe5\xa0\xb1\xf0\x9f\x98\x80");

    for (size_t i = 0; i <= text.len + 1; i++) {
        static const size_t  want[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10 };

        n = sb_utf8_cut(text, i);
        assert_int_equal(n, want[i]);
        assert_true(sb_utf8_valid(sb_str(text.data, n)));
    }

    assert_int_equal(sb_utf8_cut(sb_lit("\x80\x80\x80\x80\x80\x80"), 5), 5);
    assert_int_equal(sb_utf8_cut(sb_lit("\x80\x80"), 1), 1);
    assert_int_equal(sb_utf8_cut(sb_lit("\xc3\xa9\x80\x80"), 3), 3);
}


static void
test_code(void **state)
{
    static const struct {
        const char  *text;
        size_t       len;
        uint32_t     code;
    } cases[] = {
        { "\x7f!", 1, 0x7f },
        { "\xc2\x80", 2, 0x80 },
        { "\xdf\xbf!", 2, 0x7ff },
        { "\xe0\xa0\x80", 3, 0x800 },
        { "\xe5\xa0\xb1!", 3, 0x5831 },
        { "\xef\xbf\xbf", 3, 0xffff },
        { "\xf0\x90\x80\x80", 4, 0x10000 },
        { "\xf4\x8f\xbf\xbf!", 4, 0x10ffff },
        { "\xe5\xa0", 0, 0 },
        { "\x80", 0, 0 }
    };

    size_t  n;

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        n = sb_utf8_char(cases[i].text, strlen(cases[i].text));
        assert_int_equal(n, cases[i].len);

        if (n) {
            assert_int_equal(sb_utf8_code(cases[i].text, n), cases[i].code);
        }
    }
}


static void
test_clean(void **state)
{
    char    dst[64];
    size_t  n;

    (void) state;

    n = sb_utf8_clean(dst, sb_lit("a\0\xe4\xbd\xa0\xff\xe4\xbd" "b"));
    assert_int_equal(n, 17);
    assert_memory_equal(dst, "a\xef\xbf\xbd\xe4\xbd\xa0\xef\xbf\xbd"
                             "\xef\xbf\xbd\xef\xbf\xbd" "b", 17);
    assert_int_equal(sb_utf8_clean(dst, sb_lit("")), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
