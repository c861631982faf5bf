/* JSON: strictness, limits, splits, values, canonical writing (C146-C151). */

#include "json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>


/* Writes every event as a line of text, so that two runs can be compared. */
static sb_rc_t
trace(void *data, sb_json_event_e event, sb_str_t text, unsigned depth)
{
    sb_buf_t  *b = data;

    return sb_buf_printf(b, "%u %d %zu:", depth, event, text.len) == SB_OK
           && sb_buf_add_str(b, text) == SB_OK
           && sb_buf_add_c(b, '\n') == SB_OK ? SB_OK : SB_LIMIT;
}


/* Parses a text in pieces of at most `step` bytes, each in memory of its own
 * size; `cut` is one more border. */
static sb_rc_t
run(sb_buf_t *out, sb_str_t text, size_t step, size_t cut,
    const sb_json_limits_t *limits)
{
    char       *p;
    size_t      i, n;
    sb_rc_t     rc = SB_AGAIN;
    sb_json_t  *j;

    out->max = 1 << 20;
    out->len = 0;

    j = sb_json_new(trace, out, limits);
    assert_non_null(j);

    for (i = 0; i < text.len; i += n) {
        n = text.len - i < step ? text.len - i : step;

        if (i < cut && cut < i + n) {
            n = cut - i;
        }

        p = malloc(n);
        assert_non_null(p);
        memcpy(p, text.data + i, n);
        rc = sb_json_feed(j, p, n);
        free(p);

        if (rc < SB_OK) {
            assert_int_equal(sb_json_feed(j, "{}", 2), rc);
            assert_int_equal(sb_json_finish(j), rc);
            break;
        }
    }

    if (rc >= SB_OK) {
        rc = sb_json_finish(j);
    }

    sb_json_free(j);

    return rc;
}


static sb_rc_t
judge(sb_str_t text)
{
    sb_rc_t   rc, other;
    size_t    cut;
    sb_buf_t  whole = { 0 }, part = { 0 };

    rc = run(&whole, text, text.len + 1, 0, NULL);

    /* the same verdict and, when it is good, the same events in any split */

    other = run(&part, text, 1, 0, NULL);
    assert_int_equal(rc, other);

    for (cut = 1; cut < text.len; cut++) {
        other = run(&part, text, text.len, cut, NULL);
        assert_int_equal(rc, other);

        if (rc == SB_OK) {
            assert_int_equal(part.len, whole.len);
            assert_memory_equal(part.data, whole.data, whole.len);
        }
    }

    sb_buf_free(&whole);
    sb_buf_free(&part);

    return rc;
}


static void
test_good(void **state)
{
    size_t    i;
    sb_buf_t  out = { 0 };

    static const char  *texts[] = {
        "{}", "[]", "null", "true", "false", "0", "-0", "12", "-1.5e+10",
        "\"\"", "\"a\\u0000b\"", "\"\\ud83d\\ude00\"", "\"\\u00e9\\n\\/\"",
        " \t\r\n{\"a\":[1,{\"b\":null}],\"c\":\"\xc3\xa9\"} \n",
        "\"\xf0\x9f\x98\x80\"", "\"\xed\x9f\xbf\xee\x80\x80\"",
        "\"\\\\ud800\"", "\"\\\"\\\\\"", "[\"\\uD83D\\uDE00\\u0041\"]",
        "\"\\udbff\\udfff\"", "\"\x7f\"",
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (judge(sb_str(texts[i], strlen(texts[i]))) != SB_OK) {
            fail_msg("refused: %s", texts[i]);
        }
    }

    assert_int_equal(run(&out, sb_lit("{\"a\\u0062\":[-1.50,\"\\ud83d\\ude00"
                                      "\\u0000\"]}"), 3, 0, NULL), SB_OK);
    assert_memory_equal(out.data,
        "0 6 0:\n1 5 2:ab\n1 8 0:\n2 3 5:-1.50\n"
        "2 4 5:\xf0\x9f\x98\x80\0\n1 9 0:\n0 7 0:\n", out.len);

    sb_buf_free(&out);
}


/* C150, C151 */
static void
test_bad(void **state)
{
    size_t  i;

    static const struct { const char *text; sb_rc_t rc; } cases[] = {
        { "", SB_DECLINED }, { " \r\n\t", SB_DECLINED },
        { "{", SB_ERROR }, { "[1,]", SB_ERROR }, { "{\"a\":1,}", SB_ERROR },
        { "\"abc", SB_ERROR }, { "-", SB_ERROR }, { "tru", SB_ERROR },
        { "\xef\xbb\xbf{}", SB_ERROR }, { "//c\n{}", SB_ERROR },
        { "/**/{}", SB_ERROR }, { "{'a':1}", SB_ERROR }, { "NaN", SB_ERROR },
        { "[NaN]", SB_ERROR }, { "[01]", SB_ERROR }, { "[1.]", SB_ERROR },
        { "[.5]", SB_ERROR }, { "[+1]", SB_ERROR }, { "[1 2]", SB_ERROR },
        { "{\"a\" 1}", SB_ERROR }, { "{1:2}", SB_ERROR },
        { "\"a\nb\"", SB_ERROR }, { "\"\\x41\"", SB_ERROR },
        { "\"\\u12g4\"", SB_ERROR }, { "]", SB_ERROR },
        { "{} x", SB_AMBIGUOUS }, { "{}{}", SB_AMBIGUOUS },
        { "{},", SB_AMBIGUOUS }, { "{}//c", SB_AMBIGUOUS },
        { "1 2", SB_AMBIGUOUS }, { "\"a\"\"b\"", SB_AMBIGUOUS },
        { "{}\xff", SB_AMBIGUOUS }, { "{} \"\\ud800\"", SB_AMBIGUOUS },
        { "\"\\ud800\"", SB_ERROR }, { "\"\\udc00\"", SB_ERROR },
        { "\"\\ud800x\"", SB_ERROR }, { "\"\\ud800\\n\"", SB_ERROR },
        { "\"\\ud800\\u0041\"", SB_ERROR }, { "\"\\ud800\\", SB_ERROR },
        { "\"\\ud800\\ud800\\udc00\"", SB_ERROR },
        { "{\"\\ud800\":1}", SB_ERROR },
        { "\"\xff\"", SB_ERROR }, { "\"\xc0\x80\"", SB_ERROR },
        { "\"\xe0\x80\x80\"", SB_ERROR }, { "\"\xed\xa0\x80\"", SB_ERROR },
        { "\"\xf4\x90\x80\x80\"", SB_ERROR }, { "\"\xc3\"", SB_ERROR },
        { "\"\xf0\x9f\x98\"", SB_ERROR }, { "\"\x80\"", SB_ERROR },
        { "\"\xf0\x8f\xbf\xbf\"", SB_ERROR },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sb_rc_t  rc = judge(sb_str(cases[i].text, strlen(cases[i].text)));

        if (rc != cases[i].rc) {
            fail_msg("%d, not %d: %s", rc, cases[i].rc, cases[i].text);
        }
    }

    /* a raw NUL, in and outside of a string */
    assert_int_equal(judge(sb_lit("\"a\0b\"")), SB_ERROR);
    assert_int_equal(judge(sb_lit("[1\0]")), SB_ERROR);
}


/* C147: exactly the limit; siblings do not add up. */
static void
test_limits(void **state)
{
    char              text[4096];
    size_t            i, n;
    sb_buf_t          out = { 0 };
    sb_json_limits_t  limits = { 5, 0 };

    (void) state;

    assert_int_equal(run(&out, sb_lit("[[[[{}]]]]"), 99, 0, &limits), SB_OK);
    assert_int_equal(run(&out, sb_lit("[[[[{\"a\":[]}]]]]"), 99, 0, &limits),
                     SB_LIMIT);
    assert_int_equal(run(&out, sb_lit("[[[[[[1]]]]]]"), 99, 0, &limits),
                     SB_LIMIT);

    for (n = 0, text[n++] = '['; n + 8 < sizeof(text); ) {
        memcpy(text + n, "[[[]]],", 7);
        n += 7;
    }

    text[n - 1] = ']';
    assert_int_equal(run(&out, sb_str(text, n), 99, 0, &limits), SB_OK);

    /* the default */

    for (i = 63; i <= 65; i++) {
        memset(text, '[', i);
        memset(text + i, ']', i);
        assert_int_equal(run(&out, sb_str(text, 2 * i), 999, 0, NULL),
                         i <= 64 ? SB_OK : SB_LIMIT);
    }

    /* bytes, blanks included, however they come */

    limits.max_bytes = 10;

    for (i = 1; i <= 12; i++) {
        assert_int_equal(run(&out, sb_lit("[\"\xe6\x97\xa5\xe6\x97\"]"), i, 0,
                             &limits), SB_ERROR);
        assert_int_equal(run(&out, sb_lit("[\"\xe6\x97\xa5\xe6\x97\xa5\"]"), i,
                             0, &limits), SB_OK);
        assert_int_equal(run(&out, sb_lit("[\"\xe6\x97\xa5\xe6\x97\xa5\"] "), i,
                             0, &limits), SB_LIMIT);
        assert_int_equal(run(&out, sb_lit("[\"\xe6\x97\xa5\xe6\x97\xa5 \"]"),
                             i, 0, &limits), SB_LIMIT);
        assert_int_equal(run(&out, sb_lit("{}x         "), i, 0, &limits),
                         SB_AMBIGUOUS);
    }

    sb_buf_free(&out);
}


static sb_rc_t
stop_at_key(void *data, sb_json_event_e event, sb_str_t text, unsigned depth)
{
    (void) data;
    (void) text;
    (void) depth;

    return event == SB_JSON_KEY ? SB_DECLINED : SB_OK;
}


static void
test_handler_stops(void **state)
{
    sb_json_t  *j;

    (void) state;

    j = sb_json_new(stop_at_key, NULL, NULL);
    assert_non_null(j);
    assert_int_equal(sb_json_feed(j, "[{\"a", 4), SB_AGAIN);
    assert_int_equal(sb_json_feed(j, "\":1}]", 5), SB_DECLINED);
    assert_int_equal(sb_json_feed(j, " ", 1), SB_DECLINED);
    assert_int_equal(sb_json_finish(j), SB_DECLINED);
    sb_json_free(j);
}


/* C146: on a 64 KiB stack, with the limit raised to what the text needs. */
static void *
deep(void *arg)
{
    int               valid = 0;
    char             *text;
    sb_rc_t           rc;
    size_t            n = 100 * 1000;
    sb_buf_t          out = { 0 };
    sb_jdoc_t        *d;
    sb_json_limits_t  limits = { 200 * 1000, 0 };

    (void) arg;

    text = malloc(2 * n);

    if (text) {
        memset(text, '[', n);
        memset(text + n, ']', n);

        d = sb_jdoc_parse(sb_str(text, 2 * n), &limits, &rc);
        out.max = 2 * n;

        if (d && rc == SB_OK
            && sb_jv_canonical(&out, sb_jdoc_root(d)) == SB_OK
            && out.len == 2 * n && memcmp(out.data, text, out.len) == 0)
        {
            valid = 1;
        }

        sb_jdoc_free(d);
        sb_buf_free(&out);

        /* only openings, cut and refused */

        memset(text, '[', 2 * n);
        d = sb_jdoc_parse(sb_str(text, 2 * n), &limits, &rc);
        valid += d == NULL && rc == SB_ERROR;

        d = sb_jdoc_parse(sb_str(text, 2 * n), NULL, &rc);
        valid += d == NULL && rc == SB_LIMIT;

        free(text);
    }

    return (void *) (intptr_t) valid;
}


static void
test_deep(void **state)
{
    void            *result;
    pthread_t        thread;
    pthread_attr_t   attr;

    (void) state;

    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, deep, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t) result, 3);
    pthread_attr_destroy(&attr);
}


static void
canonical(const char *text, const char *want)
{
    sb_rc_t     rc;
    sb_buf_t    out = { .max = 10000 };
    sb_jdoc_t  *d;

    d = sb_jdoc_parse(sb_str(text, strlen(text)), NULL, &rc);

    if (d == NULL) {
        fail_msg("%d: %s", rc, text);
    }

    assert_int_equal(sb_jv_canonical(&out, sb_jdoc_root(d)), SB_OK);
    assert_string_equal(sb_buf_cstr(&out), want);

    sb_buf_free(&out);
    sb_jdoc_free(d);
}


/* The expected texts are what Python's json.dumps(json.loads(text),
 * sort_keys=True, ensure_ascii=False, separators=(",", ":")) writes. */
static void
test_canonical(void **state)
{
    (void) state;

    canonical(" { \"b\" : 1 , \"a\" : [ ] , \"B\" : { } } ",
              "{\"B\":{},\"a\":[],\"b\":1}");
    canonical("{\"a\":1,\"b\":2,\"a\":{\"z\":1,\"z\":[1,2]}}",
              "{\"a\":{\"z\":[1,2]},\"b\":2}");
    canonical("{\"ab\":1,\"a\":2,\"\":3,\"a\\u0000\":4,\"\\u00e9\":5,"
              "\"\\uff61\":6,\"\\ud83d\\ude00\":7}",
              "{\"\":3,\"a\":2,\"a\\u0000\":4,\"ab\":1,\"\xc3\xa9\":5,"
              "\"\xef\xbd\xa1\":6,\"\xf0\x9f\x98\x80\":7}");
    canonical("\"\\u0000\\u0001\\b\\f\\n\\r\\t\\u001f\\\"\\\\\\/\\u007f\\u2028"
              "\\u003c\"",
              "\"\\u0000\\u0001\\b\\f\\n\\r\\t\\u001f\\\"\\\\/\x7f\xe2\x80\xa8"
              "<\"");
    canonical("[null,true,false,[],{},\"\"]", "[null,true,false,[],{},\"\"]");
    canonical("[0,-0,12345678901234567890123,-7]",
              "[0,0,12345678901234567890123,-7]");
    canonical("[30.0,1e2,1.50,0.1,-0.0,1e-5,0.0001,123456.789]",
              "[30.0,100.0,1.5,0.1,-0.0,1e-05,0.0001,123456.789]");
    canonical("[1e15,1e16,123456789012345678.0,1.7976931348623157e308,5e-324]",
              "[1000000000000000.0,1e+16,1.2345678901234568e+17,"
              "1.7976931348623157e+308,5e-324]");
    canonical("[1e999,0.30000000000000004,2.5e-7,9007199254740993.0]",
              "[1e999,0.30000000000000004,2.5e-07,9007199254740992.0]");
}


static void
test_write_str(void **state)
{
    size_t    i;
    sb_buf_t  b = { .max = 100 };

    static const struct { const char *in; const char *out; } cases[] = {
        { "", "\"\"" },
        { "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
        { "\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"" },
        { "\xff\xfe", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "x\xc3", "\"x\xef\xbf\xbd\"" },
        { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
        { "\xe6\x97\xa5z", "\"\xe6\x97\xa5z\"" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        b.len = 0;
        assert_int_equal(sb_json_write_str(&b, sb_str(cases[i].in,
                                               strlen(cases[i].in))), SB_OK);
        assert_string_equal(sb_buf_cstr(&b), cases[i].out);
    }

    b.len = 0;
    assert_int_equal(sb_json_write_str(&b, sb_str("a\0b", 3)), SB_OK);
    assert_string_equal(sb_buf_cstr(&b), "\"a\\u0000b\"");

    /* whatever the bytes, the result is one strict JSON string */

    for (i = 0; i < 20000; i++) {
        char        in[12];
        size_t      n;
        sb_rc_t     rc;
        sb_jdoc_t  *d;

        for (n = 0; n < sizeof(in); n++) {
            in[n] = (char) ((rand() & 1) ? rand() : 0x80 | rand());
        }

        b.len = 0;
        assert_int_equal(sb_json_write_str(&b, sb_str(in, i % 13)), SB_OK);

        d = sb_jdoc_parse(sb_str(b.data, b.len), NULL, &rc);
        assert_non_null(d);
        assert_int_equal(sb_jdoc_root(d)->kind, SB_JSON_STRING);
        sb_jdoc_free(d);
    }

    b.len = 0;
    b.max = 6;
    assert_int_equal(sb_json_write_str(&b, sb_lit("abcd")), SB_OK);
    b.len = 0;
    assert_int_equal(sb_json_write_str(&b, sb_lit("abcde")), SB_LIMIT);

    sb_buf_free(&b);
}


static void
test_values(void **state)
{
    int64_t         n;
    sb_rc_t         rc;
    sb_jdoc_t      *d;
    const sb_jv_t  *v;

    (void) state;

    d = sb_jdoc_parse(sb_lit("{\"a\":\"x\\u0000y\",\"n\":-9223372036854775808,"
        "\"m\":9223372036854775807,\"o\":9223372036854775808,\"f\":1.0,"
        "\"a2\":1,\"l\":[1,2,3],\"p\\u0061th\":\"/a\",\"path\":\"/b\"}"), NULL,
        &rc);
    assert_non_null(d);
    assert_int_equal(rc, SB_OK);
    v = sb_jdoc_root(d);

    assert_int_equal(sb_jv_str(v, "a").len, 3);
    assert_int_equal(sb_jv_str(v, "a").data[3], 0);
    assert_int_equal(sb_jv_str(v, "n").len, 0);
    assert_null(sb_jv_get(v, "z"));
    assert_null(sb_jv_get(NULL, "z"));
    assert_null(sb_jv_get(sb_jv_get(v, "l"), "z"));

    /* C149: the last of equal keys, escapes undone */
    assert_true(sb_eq(sb_jv_str(v, "path"), sb_lit("/b")));

    assert_true(sb_jv_int(sb_jv_get(v, "n"), &n));
    assert_true(n == INT64_MIN);
    assert_true(sb_jv_int(sb_jv_get(v, "m"), &n));
    assert_true(n == INT64_MAX);
    assert_false(sb_jv_int(sb_jv_get(v, "o"), &n));
    assert_false(sb_jv_int(sb_jv_get(v, "f"), &n));
    assert_false(sb_jv_int(sb_jv_get(v, "a"), &n));
    assert_false(sb_jv_int(sb_jv_get(v, "z"), &n));

    v = sb_jv_get(v, "l")->child;
    assert_true(sb_jv_int(v->next->next, &n));
    assert_int_equal(n, 3);
    assert_null(v->next->next->next);

    sb_jdoc_free(d);

    assert_null(sb_jdoc_parse(sb_lit("  "), NULL, &rc));
    assert_int_equal(rc, SB_DECLINED);
    assert_null(sb_jdoc_parse(sb_lit("{}{}"), NULL, NULL));
}


/* A small text must not become a huge tree. */
static void
test_nodes_bounded(void **state)
{
    char    *text;
    size_t   i, n = 1000 * 1000 + 1;
    sb_rc_t  rc;

    (void) state;

    text = malloc(n);
    assert_non_null(text);

    for (i = 1; i < n; i += 2) {
        memcpy(text + i, "0,", 2);
    }

    text[0] = '[';
    text[n - 1] = ']';

    assert_null(sb_jdoc_parse(sb_str(text, n), NULL, &rc));
    assert_int_equal(rc, SB_LIMIT);

    free(text);
}


static void
check_double(double d, const char *want)
{
    char  text[SB_DOUBLE_MAX];

    sb_double_text(text, d);
    assert_string_equal(text, want);
}


static void
test_doubles(void **state)
{
    char    text[SB_DOUBLE_MAX];
    double  d;

    (void) state;

    check_double(0, "0.0");
    check_double(-0.0, "-0.0");
    check_double(30, "30.0");
    check_double(0.1, "0.1");
    check_double(-1.5, "-1.5");
    check_double(0.0001, "0.0001");
    check_double(0.00001, "1e-05");
    check_double(1.25e-7, "1.25e-07");
    check_double(123456.789e3, "123456789.0");
    check_double(9999999999999998.0, "9999999999999998.0");
    check_double(1e16, "1e+16");
    check_double(1.5e300, "1.5e+300");
    check_double(5e-324, "5e-324");
    check_double(1.7976931348623157e308, "1.7976931348623157e+308");
    check_double(0.30000000000000004, "0.30000000000000004");
    check_double(INFINITY, "Infinity");
    check_double(-INFINITY, "-Infinity");
    check_double((double) NAN, "NaN");

    /* whatever comes out reads back the same */

    srand(1);

    for (int i = 0; i < 20000; i++) {
        uint64_t  bits = (uint64_t) rand() << 42 ^ (uint64_t) rand() << 21
                         ^ (uint64_t) rand();

        memcpy(&d, &bits, sizeof(d));

        if (isfinite(d)) {
            sb_double_text(text, d);
            assert_true(strtod(text, NULL) == d);
            assert_non_null(strpbrk(text, ".e"));
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_handler_stops),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_write_str),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_nodes_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
