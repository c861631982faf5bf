/* Paths as text: flags, normal form, history directories. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "path.h"


#define case_of(text, flags)  { sb_lit(text), (flags) }


static void
test_flags(void **state)
{
    static const struct {
        sb_str_t  path;
        unsigned  flags;
    } cases[] = {
        case_of("", SB_PATH_EMPTY),
        case_of("/", 0),
        case_of("/workspace/a b.txt", 0),
        case_of("x", SB_PATH_RELATIVE),
        case_of("./x", SB_PATH_RELATIVE),

        /* C080: after one decoding a climb is a climb */
        case_of("/workspace/../etc/passwd", SB_PATH_CLIMBS),
        case_of("..", SB_PATH_RELATIVE|SB_PATH_CLIMBS),
        case_of("../x", SB_PATH_RELATIVE|SB_PATH_CLIMBS),
        case_of("/x/..", SB_PATH_CLIMBS),
        case_of("/..", SB_PATH_CLIMBS),
        case_of("//..//", SB_PATH_CLIMBS),

        /* C081: NUL; still encoded text and look-alike dots are names */
        case_of("/workspace/ok\0/x", SB_PATH_NUL|SB_PATH_CONTROL),
        case_of("/workspace/ok\0/../../etc",
                SB_PATH_NUL|SB_PATH_CONTROL|SB_PATH_CLIMBS),
        case_of("/workspace/%252e%252e/x", 0),
        case_of("/workspace/\xef\xbc\x8e\xef\xbc\x8e/x", 0),

        /* C082: overlong forms, surrogates, above U+10FFFF, cut */
        case_of("/\xc0\xae\xc0\xae\xc0\xaf", SB_PATH_BAD_UTF8),
        case_of("/\xed\xa0\x80", SB_PATH_BAD_UTF8),
        case_of("/\xf5\x80\x80\x80", SB_PATH_BAD_UTF8),
        case_of("/\xf4\x90\x80\x80", SB_PATH_BAD_UTF8),
        case_of("/\xe6\x8a", SB_PATH_BAD_UTF8),
        case_of("/\xff", SB_PATH_BAD_UTF8),
        case_of("/\xe6\x8a\xa5\xe5\x91\x8a \xf0\x9f\x98\x80", 0),

        /* C083: a percent sign is a character */
        case_of("/workspace/50%.txt", 0),
        case_of("/workspace/a%2fb", 0),

        /* C084: what execd expands */
        case_of("$HOME/.ssh/authorized_keys",
                SB_PATH_RELATIVE|SB_PATH_EXPANDS),
        case_of("${HOME}/x", SB_PATH_RELATIVE|SB_PATH_EXPANDS),
        case_of("~/x", SB_PATH_RELATIVE|SB_PATH_EXPANDS),
        case_of("~root/x", SB_PATH_RELATIVE|SB_PATH_EXPANDS),
        case_of("/workspace/$X", SB_PATH_EXPANDS),
        case_of("/workspace/~", 0),
        case_of("/workspace/a~", 0),

        /* C086: a backslash separates as well */
        case_of("/workspace\\..\\..\\x", SB_PATH_BACKSLASH|SB_PATH_CLIMBS),
        case_of("C:\\x", SB_PATH_RELATIVE|SB_PATH_BACKSLASH),
        case_of("\\\\host\\share", SB_PATH_RELATIVE|SB_PATH_BACKSLASH),
        case_of("/a\\/..b", SB_PATH_BACKSLASH),

        /* C087: only a whole segment climbs */
        case_of("/workspace/notes..txt", 0),
        case_of("/workspace/a...b", 0),
        case_of("/v1..v2.diff", 0),
        case_of("/...", 0),
        case_of("/..a", 0),
        case_of("/a../b", 0),

        case_of("/a\nb", SB_PATH_CONTROL),
        case_of("/a\x7f", SB_PATH_CONTROL),
    };

    unsigned  flags;

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        flags = sb_path_flags(cases[i].path);

        if (flags != cases[i].flags) {
            fail_msg("\"%.*s\": 0x%x, not 0x%x", (int) cases[i].path.len,
                     cases[i].path.data, flags, cases[i].flags);
        }
    }
}


static void
test_normal(void **state)
{
    static const struct {
        const char  *path;
        const char  *want;      /* NULL: declined */
    } cases[] = {
        { "/", "/" },
        { "//", "/" },
        { "/.", "/" },
        { "/./", "/" },
        { "/a", "/a" },
        { "/a/", "/a" },
        { "/a//b/./c/", "/a/b/c" },
        { "///a", "/a" },
        { "/a/.b/..c/d..", "/a/.b/..c/d.." },
        { "/a/...", "/a/..." },
        { "/a b/%2e%2e/\xe6\x8a\xa5", "/a b/%2e%2e/\xe6\x8a\xa5" },
        { "", NULL },
        { "a", NULL },
        { "./a", NULL },
        { "~/a", NULL },
        { "/a/../b", NULL },
        { "/..", NULL },
        { "/../", NULL },
    };

    char     dst[64], again[64];
    size_t   n, len;
    sb_rc_t  rc;

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(dst, 'x', sizeof(dst));
        rc = sb_path_normal(dst, &n, sb_str(cases[i].path,
                                            strlen(cases[i].path)));

        if (cases[i].want == NULL) {
            assert_int_equal(rc, SB_DECLINED);
            continue;
        }

        assert_int_equal(rc, SB_OK);
        assert_string_equal(dst, cases[i].want);
        assert_int_equal(n, strlen(cases[i].want));

        assert_int_equal(sb_path_normal(again, &len, sb_str(dst, n)), SB_OK);
        assert_string_equal(again, dst);
    }

    assert_int_equal(sb_path_normal(dst, &n, sb_lit("/a\0b")), SB_DECLINED);
}


static void
test_history_dir(void **state)
{
    static const struct {
        const char  *id;
        bool         plain;
    } cases[] = {
        { "7f3c2b1e-9d4a-4c55-8a0e-2f6b1c9d0e11", true },
        { "fsb-A_b.c", true },
        { "0", true },
        { "a..b", true },
        { "_gateway", false },
        { "archive", false },
        { "archives", true },
        { "heads.jsonl", false },
        { "heads.jsonl.1", false },
        { "x-c14cddc033f64b9dea80ea675cf280a015e672516090a5626781153dc68fea11",
          false },
        { "x-1", true },
        { ".", false },
        { "..", false },
        { ".a", false },
        { "-a", false },
        { "", false },
        { "a/b", false },
        { "a b", false },
        { "a%", false },
        { "\xe6\x8a\xa5", false },
    };

    char  dst[130], id[129];

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sb_history_dir(dst, sb_str(cases[i].id, strlen(cases[i].id)));

        if (cases[i].plain) {
            assert_string_equal(dst, cases[i].id);

        } else {
            assert_int_equal(strlen(dst), 66);
            assert_memory_equal(dst, "x-", 2);
        }
    }

    sb_history_dir(dst, sb_lit("a/b"));
    assert_string_equal(dst, "x-c14cddc033f64b9dea80ea675cf280a015e67251"
                        "6090a5626781153dc68fea11");

    memset(id, 'a', sizeof(id));
    sb_history_dir(dst, sb_str(id, 128));
    assert_int_equal(strlen(dst), 128);
    sb_history_dir(dst, sb_str(id, 129));
    assert_int_equal(strlen(dst), 66);
    sb_history_dir(dst, sb_lit("a\0b"));
    assert_int_equal(strlen(dst), 66);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_history_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
