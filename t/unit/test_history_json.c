/* Canonical JSON of the published helper, and argparse's rules. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "history_args.h"
#include "canonical.h"


static void
check_json(const char *in, const char *want)
{
    sb_rc_t   rc;
    sb_out_t  out = { .buf.max = 65536 };

    rc = sb_out_json(&out, sb_str(in, strlen(in)));

    if (want == NULL) {
        assert_int_not_equal(rc, SB_OK);
        assert_int_equal(out.buf.len, 0);

    } else {
        assert_int_equal(rc, SB_OK);
        assert_int_equal(out.rc, SB_OK);
        assert_string_equal(sb_buf_cstr(&out.buf), want);
    }

    sb_buf_free(&out.buf);
}


static void
test_canonical(void **state)
{
    char  deep[2 * 400 + 1];

    (void) state;

    check_json(" { \"b\" : 1 , \"a\" : [ true , null ] } ",
               "{\"a\":[true,null],\"b\":1}");
    check_json("{\"a\":1,\"a\":2,\"ab\":3,\"a\":4}", "{\"a\":4,\"ab\":3}");
    check_json("[-0,1E2,10000000000000000000000]",
               "[0,100.0,10000000000000000000000]");
    check_json("\"\\u00e9\\n\\u007f\\/\"", "\"\xc3\xa9\\n\x7f/\"");
    check_json("[1e400,-1e400]", "[Infinity,-Infinity]");
    check_json("{}", "{}");
    check_json("[1", NULL);
    check_json("", NULL);
    check_json("{} x", NULL);

    /* C146: depth is an error, not a crash */

    memset(deep, '[', 400);
    memset(deep + 400, ']', 400);
    deep[800] = '\0';
    check_json(deep, NULL);
    memset(deep, ' ', 200);
    memset(deep + 600, ' ', 200);
    memset(deep + 200, '[', 200);
    deep[400] = ']';
    memset(deep + 400, ']', 200);
    {
        sb_out_t  out = { .buf.max = 65536 };

        assert_int_equal(sb_out_json(&out, sb_str(deep, 800)), SB_OK);
        assert_int_equal(out.buf.len, 400);
        sb_buf_free(&out.buf);
    }
}


static void
test_out(void **state)
{
    sb_out_t  out = { .buf.max = 39 };

    (void) state;

    sb_out_text(&out, "{");
    sb_out_key(&out, "a");
    sb_out_int(&out, INT64_MIN);
    sb_out_key(&out, "b");
    sb_out_base64(&out, "abcd", 4);
    assert_int_equal(out.rc, SB_LIMIT);

    out.rc = SB_OK;
    out.buf.len = 0;
    sb_out_base64(&out, "", 0);
    sb_out_base64(&out, "a", 1);
    sb_out_base64(&out, "ab", 2);
    sb_out_base64(&out, "\xff\xfe\xfd", 3);
    assert_string_equal(sb_buf_cstr(&out.buf),
                        "\"\"\"YQ==\"\"YWI=\"\"//79\"");
    sb_buf_free(&out.buf);
}


static const history_arg_t  args[] = {
    { "--after-chunk", 0, HISTORY_ARG_INT, false, false, NULL },
    { "--after-change", 0, HISTORY_ARG_INT, false, false, NULL },
    { "--stream", 's', HISTORY_ARG_TEXT, false, false, "stdout|stderr" },
    { "--type", 0, HISTORY_ARG_TEXT, false, true, NULL },
    { "--follow", 'f', HISTORY_ARG_FLAG, false, false, NULL },
    { .name = NULL }
};


static bool
parse(history_parse_t *p, int argc, const char *const *argv)
{
    static history_value_t  values[5];
    static const char      *rest[2];
    static char            *copy[16];

    for (int i = 0; i < argc; i++) {
        copy[i] = (char *) (uintptr_t) argv[i];
    }

    memset(p, 0, sizeof(*p));
    p->args = args;
    p->values = values;
    p->rest = rest;
    p->max = 2;

    return history_args_parse(p, argc, copy);
}

#define PARSE(p, ...)                                                        \
    parse(p, (int) (sizeof((const char *[]) { __VA_ARGS__ })                 \
                    / sizeof(char *)), (const char *[]) { __VA_ARGS__ })


static void
test_args(void **state)
{
    history_parse_t  p;

    (void) state;

    assert_true(PARSE(&p, "--after-chunk", "-1", "x", "--st=stderr", "y"));
    assert_int_equal(p.values[0].number, -1);
    assert_string_equal(p.values[2].text[0], "stderr");
    assert_int_equal(p.nrest, 2);
    assert_string_equal(p.rest[1], "y");

    assert_true(PARSE(&p, "-f", "--type", "a*", "--type=", "--", "-x"));
    assert_int_equal(p.values[4].n, 1);
    assert_int_equal(p.values[3].n, 2);
    assert_string_equal(p.values[3].text[1], "");
    assert_string_equal(p.rest[0], "-x");

    assert_true(PARSE(&p, "--after-chunk", " +1_000 "));
    assert_int_equal(p.values[0].number, 1000);
    assert_false(p.values[0].big);
    assert_true(PARSE(&p, "--after-chunk", "99999999999999999999"));
    assert_true(p.values[0].big);
    assert_int_equal(p.values[0].number, INT64_MAX);
    assert_true(PARSE(&p, "--after-chunk=1", "--after-chunk=2"));
    assert_int_equal(p.values[0].number, 2);

    assert_true(PARSE(&p, "-h"));
    assert_true(p.help);

    assert_false(PARSE(&p, "--after", "1"));
    assert_non_null(strstr(p.why, "ambiguous option: --after"));
    assert_false(PARSE(&p, "--after-chunk", "1x"));
    assert_non_null(strstr(p.why, "invalid int value: '1x'"));
    assert_false(PARSE(&p, "--after-chunk", "1__0"));
    assert_false(PARSE(&p, "--after-chunk", ""));
    assert_false(PARSE(&p, "--after-chunk"));
    assert_non_null(strstr(p.why, "expected one argument"));
    assert_false(PARSE(&p, "--stream", "-f"));
    assert_false(PARSE(&p, "--stream", "both"));
    assert_non_null(strstr(p.why, "invalid choice: 'both'"));
    assert_false(PARSE(&p, "--follow=1"));
    assert_false(PARSE(&p, "a", "b", "c"));
    assert_non_null(strstr(p.why, "unrecognized arguments: c"));
    assert_false(PARSE(&p, "--nope"));
    assert_false(PARSE(&p, "-z"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_out),
        cmocka_unit_test(test_args)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
