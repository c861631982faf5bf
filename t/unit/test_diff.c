/* Unified differences: their form, that they lead from one text to the other,
 * that they are short, and their bounds. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "diff.h"
#include "patch.h"


static sb_buf_t  diff;


static sb_rc_t
run(sb_str_t a, sb_str_t b, const sb_diff_limits_t *limits)
{
    sb_buf_free(&diff);
    memset(&diff, 0, sizeof(diff));

    return sb_diff(&diff, sb_lit("/w/x"), a, sb_lit("/w/x"), b, limits);
}


static void
is(const char *want)
{
    assert_non_null(sb_buf_cstr(&diff));
    assert_string_equal(diff.data, want);
}


static void
test_form(void **state)
{
    (void) state;

    assert_int_equal(run(sb_lit("a\nb\nc\n"), sb_lit("a\nB\nc\n"), NULL),
                     SB_OK);
    is("--- a/w/x\n+++ b/w/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");

    assert_int_equal(run(sb_lit("a\nb"), sb_lit("a\nb\n"), NULL), SB_OK);
    is("--- a/w/x\n+++ b/w/x\n@@ -1,2 +1,2 @@\n a\n-b\n"
       "\\ No newline at end of file\n+b\n");

    assert_int_equal(run(sb_lit("one\n"), sb_lit("two\n"), NULL), SB_OK);
    is("--- a/w/x\n+++ b/w/x\n@@ -1 +1 @@\n-one\n+two\n");

    assert_int_equal(run(sb_lit("same\n"), sb_lit("same\n"), NULL), SB_OK);
    assert_int_equal(diff.len, 0);

    /* what was not there */
    memset(&diff, 0, sizeof(diff));
    assert_int_equal(sb_diff(&diff, sb_str(NULL, 0), sb_str(NULL, 0),
                             sb_lit("rel"), sb_lit("x\n"), NULL), SB_OK);
    is("--- /dev/null\n+++ b/rel\n@@ -0,0 +1 @@\n+x\n");
    sb_buf_free(&diff);

    /* two changes further apart than their context */
    assert_int_equal(run(sb_lit("1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
                         sb_lit("x\n2\n3\n4\n5\n6\n7\n8\ny\n"), NULL), SB_OK);
    is("--- a/w/x\n+++ b/w/x\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n"
       "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n");

    sb_buf_free(&diff);
}


static void
test_names(void **state)
{
    (void) state;

    memset(&diff, 0, sizeof(diff));
    assert_int_equal(sb_diff(&diff, sb_lit("/a\nb\"\\\377"), sb_lit("1\n"),
                             sb_lit("/\344\275\240"), sb_lit("2\n"), NULL),
                     SB_OK);
    is("--- \"a/a\\012b\\\"\\\\\\377\"\n+++ b/\344\275\240\n@@ -1 +1 @@\n-1\n"
       "+2\n");
    assert_true(sb_diff_is_text(sb_str(diff.data, diff.len)));
    sb_buf_free(&diff);

    assert_true(sb_diff_is_text(sb_lit("\344\275\240")));
    assert_true(sb_diff_is_text(sb_str(NULL, 0)));
    assert_false(sb_diff_is_text(sb_lit("a\0b")));
    assert_false(sb_diff_is_text(sb_lit("\377")));
}


/* All pairs of short texts over three lines: applied, and as short as the
 * longest common part allows. */
static void
test_all(void **state)
{
    char      text[2][32];
    size_t    len[2], changed, i, j, n[2], lcs[8][8];
    unsigned  code, x, k;
    sb_buf_t  out;

    (void) state;

    for (code = 0; code < 6 * 243 * 6 * 243; code += 7) {
        x = code;

        for (k = 0; k < 2; k++) {
            n[k] = x % 6;
            x /= 6;
            len[k] = 0;

            for (i = 0; i < 5; i++) {
                if (i < n[k]) {
                    text[k][len[k]++] = (char) ('a' + x % 3);
                    text[k][len[k]++] = '\n';
                }

                x /= 3;
            }
        }

        assert_int_equal(run(sb_str(text[0], len[0]), sb_str(text[1], len[1]),
                             NULL), SB_OK);

        memset(&out, 0, sizeof(out));
        out.max = 64;

        assert_true(patch_apply(&out, sb_str(text[0], len[0]),
                                sb_str(diff.data, diff.len), &changed));
        assert_true(sb_eq(sb_str(out.data, out.len),
                          sb_str(text[1], len[1])));
        sb_buf_free(&out);

        memset(lcs, 0, sizeof(lcs));

        for (i = 1; i <= n[0]; i++) {
            for (j = 1; j <= n[1]; j++) {
                lcs[i][j] = text[0][2 * i - 2] == text[1][2 * j - 2]
                            ? lcs[i - 1][j - 1] + 1
                            : lcs[i - 1][j] > lcs[i][j - 1] ? lcs[i - 1][j]
                                                            : lcs[i][j - 1];
            }
        }

        assert_int_equal(changed, n[0] + n[1] - 2 * lcs[n[0]][n[1]]);
    }

    sb_buf_free(&diff);
}


static void
test_bounds(void **state)
{
    char             *a, *b;
    size_t            i, n, changed;
    sb_buf_t          out;
    sb_diff_limits_t  limits;

    (void) state;

    /* nothing in common, lines beyond number: bounded work */
    n = 500000;
    a = malloc(2 * n);
    b = malloc(2 * n);
    assert_non_null(a);
    assert_non_null(b);

    for (i = 0; i < n; i++) {
        a[2 * i] = (char) ('a' + i % 5);
        b[2 * i] = (char) ('a' + i * i % 7);
        a[2 * i + 1] = '\n';
        b[2 * i + 1] = '\n';
    }

    assert_int_equal(run(sb_str(a, 2 * n), sb_str(b, 2 * n), NULL), SB_LIMIT);
    assert_true(diff.len <= SB_DIFF_BYTES);
    assert_true(diff.len > SB_DIFF_BYTES - 8);
    assert_int_equal(diff.data[diff.len - 1], '\n');

    /* the work ends in the middle: not the shortest, but right */
    memset(&limits, 0, sizeof(limits));
    limits.work = 3000;
    n = 2000;
    assert_int_equal(run(sb_str(a, 2 * n), sb_str(b, 2 * n), &limits), SB_OK);
    memset(&out, 0, sizeof(out));
    out.max = 4 * n;
    assert_true(patch_apply(&out, sb_str(a, 2 * n),
                            sb_str(diff.data, diff.len), &changed));
    assert_true(sb_eq(sb_str(out.data, out.len), sb_str(b, 2 * n)));
    sb_buf_free(&out);

    /* a line that does not fit is left out whole */
    memset(&limits, 0, sizeof(limits));
    limits.bytes = 64;
    memset(a, 'x', 4096);
    a[99] = '\n';
    assert_int_equal(run(sb_lit("y\n"), sb_str(a, 100), &limits), SB_LIMIT);
    is("--- a/w/x\n+++ b/w/x\n@@ -1 +1 @@\n-y\n");

    sb_buf_free(&diff);
    free(a);
    free(b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
