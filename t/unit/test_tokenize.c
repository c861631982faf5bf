/* Words and pairs: what a search compares. */

#include "fold.h"
#include "search.h"
#include "tokenize.h"
#include "utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


/* All tokens with "/" between places and "+" at the same place. */
static const char *
tokens(const char *text, size_t len, bool query)
{
    static char  out[4096];

    size_t       n;
    sb_tokens_t  t;

    n = 0;
    sb_tokens_init(&t, sb_str(text, len), query);

    while (sb_tokens_next(&t)) {
        assert_true(t.len > 0 && t.len <= SB_TOKEN_MAX);
        assert_true(t.from < t.to && t.to <= len);
        n += (size_t) snprintf(out + n, sizeof(out) - n, "%s%.*s",
                               n == 0 ? "" : t.together ? "+" : "/",
                               (int) t.len, t.token);
        assert_true(n < sizeof(out));
    }

    out[n] = '\0';

    return out;
}

#define is(text, wanted)                                                     \
    assert_string_equal(tokens(text, sizeof(text) - 1, false), wanted)
#define asks(text, wanted)                                                   \
    assert_string_equal(tokens(text, sizeof(text) - 1, true), wanted)


static void
test_words(void **state)
{
    (void) state;

    is("", "");
    is(" \t-/.:;\"'*()^", "");
    is("make -j2 ALL", "make/j2/all");
    is("/workspace/src/main_test.c", "workspace/src/main/test/c");
    is("E404: Not found!", "e404/not/found");
    is("a", "a");
    is("a\0b", "a/b");
    is("caf\xe9 x", "caf/x");           /* Latin-1 is no UTF-8 */
    is("\xc3", "");
}


static void
test_folding(void **state)
{
    (void) state;

    is("CAFÉ Ångström cafe\xcc\x81", "cafe/angstrom/cafe");
    is("ΑΘΉΝΑ σοφός", "αθηνα/σοφοσ");
    is("ПРИВЕТ Ёлка", "привет/елка");
    is("Straße STRASSE ẞ", "straße/strasse/ß");
    is("ＦＵＬＬ１２", "full12");
    is("soft\xc2\xadhyphen zero\xe2\x80\x8bwidth", "softhyphen/zerowidth");
    is("Việt Nam", "viet/nam");
    is("x→y…z", "x/y/z");
    is("🙂ok🙂", "ok");
}


/* Whatever is folded stays what it is when it is folded again: what a question
 * names is found. */
static void
test_fold_again(void **state)
{
    uint32_t   code, once, twice;
    sb_char_e  class;

    (void) state;

    for (code = 0; code <= 0x10ffff; code++) {
        class = sb_fold(code, &once);

        if (class == SB_CHAR_WORD || class == SB_CHAR_PAIR) {
            if (sb_fold(once, &twice) != class || twice != once) {
                fail_msg("U+%04X -> U+%04X -> U+%04X", code, once, twice);
            }
        }
    }
}


static void
test_pairs(void **state)
{
    (void) state;

    is("编译错误", "编译/译错/错误+误");
    is("编译", "编译+译");
    is("编", "编");
    is("编 译", "编/译");
    is("编译，错误。", "编译+译/错误+误");
    is("error编译ok", "error/编译+译/ok");
    is("こんにちは", "こん/んに/にち/ちは+は");
    is("안녕 세계", "안녕+녕/세계+계");
    is("か\xe3\x82\x99き", "かき+き");      /* a mark between */
    is("สวัสดี", "สว/วั/ัส/สด/ดี+ี");
    is("𠀀𠀁", "𠀀𠀁+𠀁");

    asks("编译错误", "编译/译错/错误");
    asks("编译", "编译");
    asks("误", "误");
    asks("误 ok", "误/ok");
}


static void
test_escapes(void **state)
{
    (void) state;

    is("\x1b[1;31merror\x1b[0m: x", "error/x");
    is("\x1b]0;title here\x07prompt", "prompt");
    is("\x1b]0;title\x1b\\prompt", "prompt");
    is("\x1b]never ended\nnext", "never/ended/next");
    is("\x1b(Babc", "abc");
    is("\x1b=abc\x1b>", "abc");
    is("abc\x1b", "abc");
    is("abc\x1b[", "abc");
    is("abc\x1b[12", "abc");
}


static void
test_long(void **state)
{
    char         text[300];
    sb_tokens_t  t;

    (void) state;

    memset(text, 'x', sizeof(text));
    memcpy(text + 200, " end", 4);

    sb_tokens_init(&t, sb_str(text, 204), false);
    assert_true(sb_tokens_next(&t));
    assert_int_equal(t.len, SB_TOKEN_MAX);
    assert_int_equal(t.to, 200);
    assert_true(sb_tokens_next(&t));
    assert_int_equal(t.len, 3);
    assert_false(sb_tokens_next(&t));

    /* a character that does not fit is not cut in two */
    memset(text, 'x', 63);
    memcpy(text + 63, "ж", 2);
    sb_tokens_init(&t, sb_str(text, 65), false);
    assert_true(sb_tokens_next(&t));
    assert_int_equal(t.len, 63);
}


static void
query(const char *q, const char *wanted)
{
    sb_buf_t  b = { .max = 4096 };

    assert_int_equal(sb_tokens_query(&b, sb_str(q, strlen(q)), 32),
                     wanted ? SB_OK : SB_DECLINED);

    if (wanted) {
        assert_non_null(sb_buf_cstr(&b));
        assert_string_equal(b.data, wanted);
    }

    sb_buf_free(&b);
}


static void
test_query(void **state)
{
    sb_buf_t  b = { .max = 64 };

    (void) state;

    query("make test", "\"make\" \"test\"");
    query("\"make test\" now", "\"make test\" \"now\"");
    query("a.b.c", "\"a b c\"");
    query("\"open phrase", "\"open phrase\"");
    query("编译错误", "\"编译 译错 错误\"");
    query("编", "\"编\"*");
    query("\"ok 编\"", "\"ok 编\"*");
    query("编　译", "\"编\"* \"译\"*");

    /* nothing in it is syntax */
    query("a OR b", "\"a\" \"or\" \"b\"");
    query("NOT x*", "\"not\" \"x\"");
    query("NEAR(a b, 5)", "\"near a\" \"b\" \"5\"");
    query("head : x ^y {z} - + (", "\"head\" \"x\" \"y\" \"z\"");
    query("a\" OR \"b", "\"a\" \"or\" \"b\"");
    query("'; drop table ops; --", "\"drop\" \"table\" \"ops\"");

    query("", NULL);
    query("  \"\" ... \"", NULL);

    /* bounds */
    assert_int_equal(sb_tokens_query(&b, sb_lit("a b c"), 2), SB_LIMIT);
    assert_int_equal(sb_tokens_query(&b, sb_lit("abcdefghij abcdefghij"
                     " abcdefghij abcdefghij abcdefghij abcdefghij"), 32),
                     SB_LIMIT);
    sb_buf_free(&b);
}


/* Is all of q in the text? */
static bool
in(const char *q, const char *text)
{
    bool          all;
    sb_rc_t       rc;
    sb_search_t  *s;

    s = sb_search_new(sb_str(q, strlen(q)), &rc);
    assert_non_null(s);
    all = sb_search_find(s, sb_str(text, strlen(text))) == sb_search_all(s);
    sb_search_free(s);

    return all;
}


static void
test_search(void **state)
{
    (void) state;

    assert_true(in("make", "MAKE all"));
    assert_false(in("mak", "make all"));
    assert_true(in("all make", "make all"));
    assert_false(in("all none", "make all"));

    /* phrases, and words that hang together */
    assert_true(in("\"not found\"", "E404: Not found!"));
    assert_false(in("\"found not\"", "E404: Not found!"));
    assert_true(in("\"a b a c\"", "a b a b a c"));
    assert_true(in("\"a a b\"", "a a a b"));
    assert_true(in("src/main.c", "cc -c src/main.c"));
    assert_false(in("src/main.c", "cc -c main.c src"));
    assert_true(in("src/main.c", "cc -c main.c src/main/c"));

    /* scripts without blanks: two neighbours, or one alone as a beginning */
    assert_true(in("编译", "发生编译错误"));
    assert_true(in("译错", "发生编译错误"));
    assert_true(in("错", "发生编译错误"));
    assert_true(in("误", "发生编译错误"));
    assert_true(in("发生编译错误", "ok 发生编译错误 ok"));
    assert_false(in("编错", "发生编译错误"));
    assert_true(in("误 ok", "发生编译错误ok"));

    /* what colours a terminal is no text */
    assert_true(in("\"red text\"", "\033[31mred\033[0m text"));
}


static void
test_search_bounds(void **state)
{
    char       text[8192];
    size_t     n;
    sb_rc_t    rc;
    unsigned   i;

    (void) state;

    assert_null(sb_search_new(sb_lit(" ! "), &rc));
    assert_int_equal(rc, SB_DECLINED);

    for (i = 0, n = 0; i < SB_SEARCH_TERMS; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, "w%u ", i);
    }

    assert_true(in(text, text));
    assert_false(in(text, "w0 w1"));
    (void) strcpy(text + n, "more");
    assert_null(sb_search_new(sb_str(text, n + 4), &rc));
    assert_int_equal(rc, SB_LIMIT);

    n = 1;
    text[0] = '"';

    for (i = 0; i < SB_SEARCH_PHRASE; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, "w%u ", i);
    }

    assert_true(in(text, text + 1));
    (void) strcpy(text + n, "more");
    assert_null(sb_search_new(sb_str(text, n + 4), &rc));
    assert_int_equal(rc, SB_LIMIT);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_fold_again),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_search_bounds)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
