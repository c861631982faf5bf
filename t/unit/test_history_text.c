/* Recorded text on a terminal: nothing hostile, never wider than it may be. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "history_text.h"

#include <stdlib.h>


static void
check_safe(const char *in, size_t len, const char *want)
{
    char    out[256], *mem;
    FILE   *to;
    size_t  size;

    history_text_safe(out, sizeof(out), sb_str(in, len));
    assert_string_equal(out, want);

    to = open_memstream(&mem, &size);
    history_text_put(to, sb_str(in, len), false);
    fclose(to);
    assert_string_equal(mem, want);
    free(mem);
}

#define SAFE(in, want)  check_safe(in, sizeof(in) - 1, want)


static void
test_safe(void **state)
{
    (void) state;

    SAFE("", "");
    SAFE("plain \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80",
         "plain \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80");
    SAFE("a\nb\tc\rd", "a\\nb\\tc\\rd");
    SAFE("\x1b[31m\a\x7f\0", "\\x1b[31m\\x07\\x7f\\x00");
    SAFE("\xc2\x9b" "2J\xc2\x85", "\\u{9b}2J\\u{85}");
    SAFE("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf",
         "\\u{202e}\\u{2066}\\u{200b}\\u{2028}\\u{feff}");
    SAFE("\xf3\xa0\x81\x81", "\\u{e0041}");

    /* no UTF-8: overlong, surrogate, cut, beyond the last, stray */
    SAFE("\xc0\xaf", "\\xc0\\xaf");
    SAFE("\xed\xa0\x80", "\\xed\\xa0\\x80");
    SAFE("\xe4\xbd", "\\xe4\\xbd");
    SAFE("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    SAFE("\xff\x80", "\\xff\\x80");
}


/* Bytes as they are; nothing, which has no address, is no fault (-fsanitize). */
static void
test_raw(void **state)
{
    char    *mem;
    FILE    *to;
    size_t   size;

    (void) state;

    to = open_memstream(&mem, &size);
    assert_true(history_text_raw(to, sb_str(NULL, 0)));
    assert_true(history_text_raw(to, sb_str("\x1b\0", 2)));
    fclose(to);
    assert_int_equal(size, 2);
    assert_memory_equal(mem, "\x1b\0", 2);
    free(mem);

    to = fopen("/dev/full", "w");
    assert_non_null(to);
    setvbuf(to, NULL, _IONBF, 0);
    assert_false(history_text_raw(to, sb_lit("x")));
    fclose(to);
}


static void
test_safe_is_cut(void **state)
{
    char  out[6];

    (void) state;

    history_text_safe(out, sizeof(out), sb_lit("abcdefgh"));
    assert_string_equal(out, "abcde");
    history_text_safe(out, sizeof(out), sb_lit("abc\x1b"));
    assert_string_equal(out, "abc");
    history_text_safe(out, sizeof(out), sb_lit("abcd\xe4\xbd\xa0"));
    assert_string_equal(out, "abcd");
}


static void
check_cell(sb_str_t in, unsigned width, history_align_e align, const char *want)
{
    char   *mem;
    FILE   *to;
    size_t  size;

    to = open_memstream(&mem, &size);
    history_text_cell(to, in, width, align);
    fclose(to);
    assert_string_equal(mem, want);
    free(mem);
}


static void
test_cells(void **state)
{
    (void) state;

    check_cell(sb_lit("abc"), 5, HISTORY_LEFT, "abc  ");
    check_cell(sb_lit("abc"), 5, HISTORY_RIGHT, "  abc");
    check_cell(sb_lit("abc"), 5, HISTORY_OPEN, "abc");
    check_cell(sb_lit("abcde"), 5, HISTORY_LEFT, "abcde");
    check_cell(sb_lit("abcdef"), 5, HISTORY_LEFT, "abcd\xe2\x80\xa6");
    check_cell(sb_lit(""), 2, HISTORY_LEFT, "  ");
    check_cell(sb_lit("abc"), 0, HISTORY_LEFT, "");

    /* two columns each; the one that does not fit leaves a blank */
    check_cell(sb_lit("\xe4\xbd\xa0\xe5\xa5\xbd"), 4, HISTORY_LEFT,
               "\xe4\xbd\xa0\xe5\xa5\xbd");
    check_cell(sb_lit("\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0"), 4, HISTORY_LEFT,
               "\xe4\xbd\xa0\xe2\x80\xa6 ");

    /* an escape is never cut in half */
    check_cell(sb_lit("ab\x1b[2J"), 5, HISTORY_LEFT, "ab\xe2\x80\xa6  ");

    /* combining characters take no column, and do not pile up */
    check_cell(sb_lit("e\xcc\x81x"), 2, HISTORY_LEFT, "e\xcc\x81x");
    check_cell(sb_lit("e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"),
               1, HISTORY_LEFT, "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81");
}


static void
test_json(void **state)
{
    char   *mem;
    FILE   *to;
    size_t  size;

    (void) state;

    to = open_memstream(&mem, &size);
    history_text_json(to, sb_lit("{\"a\":\"\x7f\xc2\x9b\xe2\x80\xae"
                                 "\xf3\xa0\x81\x81\xe4\xbd\xa0\"}"));
    fclose(to);
    assert_string_equal(mem, "{\"a\":\"\\u007f\\u009b\\u202e\\udb40\\udc41"
                             "\xe4\xbd\xa0\"}");
    free(mem);
}


static void
test_sizes(void **state)
{
    char    text[24];
    size_t  i;

    static const struct {
        int64_t      n;
        const char  *want;
    } sizes[] = {
        { 0, "0" }, { 999, "999" }, { 1000, "1.0K" }, { 10188, "9.9K" },
        { 10240, "10K" }, { 1048575, "1.0M" }, { 16777216, "16M" },
        { INT64_MAX, "8.0E" }
    }, durations[] = {
        { -5, "<1ms" }, { 0, "<1ms" }, { 12, "12ms" }, { 999, "999ms" },
        { 1000, "1.0s" }, { 9949, "9.9s" }, { 9950, "10s" }, { 59999, "60s" },
        { 65000, "1m05s" }, { 3599999, "59m59s" }, { 3600000, "1h00m" },
        { INT64_C(360000000), "100h00m" }
    };

    (void) state;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        history_text_size(text, sizes[i].n);
        assert_string_equal(text, sizes[i].want);
    }

    for (i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        history_text_duration(text, durations[i].n);
        assert_string_equal(text, durations[i].want);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_safe),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_safe_is_cut),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_sizes)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
