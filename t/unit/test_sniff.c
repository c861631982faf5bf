/* Archives told by their bytes, in pieces of any size (C096, C100); where they
 * stand in an upload. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "inspect.h"
#include "multipart.h"
#include "sniff.h"


#define S(s)  { s, sizeof(s) - 1 }

static const struct {
    sb_str_t    text;
    sb_sniff_e  begins;
    bool        archive;
} cases[] = {
    { S(""), SB_SNIFF_NONE, false },
    { S("hello"), SB_SNIFF_NONE, false },
    { S("PK\3\4 and so on"), SB_SNIFF_ZIP, true },
    { S("PK\5\6"), SB_SNIFF_ZIP, true },
    { S("PK\3"), SB_SNIFF_NONE, false },
    { S("\x89PNG and then PK\5\6 somewhere"), SB_SNIFF_NONE, true },
    { S("PK\5PPK\5PK\5\5\6 not quite"), SB_SNIFF_NONE, false },
    { S("PPKPK\5PK\5\6"), SB_SNIFF_NONE, true },
    { S("\x1f\x8b\x08 gz"), SB_SNIFF_FILTER, true },
    { S("\x1f\x8b\x07 gz"), SB_SNIFF_NONE, false },
    { S("BZh91AY&SY"), SB_SNIFF_FILTER, true },
    { S("BZh9 is a text"), SB_SNIFF_NONE, false },
    { S("xxxx1AY&SY"), SB_SNIFF_NONE, false },
    { S("\xfd" "7zXZ\0"), SB_SNIFF_FILTER, true },
    { S("\x28\xb5\x2f\xfd"), SB_SNIFF_FILTER, true },
    { S("7z\xbc\xaf\x27\x1c"), SB_SNIFF_OTHER, true },
    { S("!<arch>\n"), SB_SNIFF_OTHER, true },
    { S("0707010000"), SB_SNIFF_WEAK, true },
    { S("\x1f\x9dx"), SB_SNIFF_WEAK, true },
    { S("xx-lh5-"), SB_SNIFF_WEAK, true },
};


static sb_sniff_t
sniff(const char *text, size_t len, size_t first, size_t step)
{
    size_t      n;
    sb_sniff_t  s;

    memset(&s, 0, sizeof(s));
    sb_sniff_feed(&s, text, first);

    for (text += first, len -= first; len; text += n, len -= n) {
        n = step < len ? step : len;
        sb_sniff_feed(&s, text, n);
    }

    return s;
}


static void
test_marks(void **state)
{
    size_t      i, k;
    sb_str_t    t;
    sb_sniff_t  s;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        t = cases[i].text;

        for (k = 0; k <= t.len; k++) {
            s = sniff(t.data, t.len, k, k % 3 + 1);

            if (sb_sniff_begins(&s) != cases[i].begins
                || sb_sniff_archive(&s) != cases[i].archive)
            {
                fail_msg("%.*s at %zu", (int) t.len, t.data, k);
            }
        }
    }
}


/* A block of a tar, its check sum of signed or unsigned bytes, or wrong. */
static void
tar(char *p, const char *name, bool magic, int sum)
{
    long    n = 0;
    size_t  i;

    memset(p, 0, 512);
    strcpy(p, name);
    memcpy(p + 100, "0000644", 7);
    memset(p + 148, ' ', 8);

    if (magic) {
        memcpy(p + 257, "ustar", 5);
    }

    for (i = 0; i < 512; i++) {
        n += sum < 0 ? (signed char) p[i] : (unsigned char) p[i];
    }

    (void) snprintf(p + 148, 8, "%06lo", n + (sum == 2));
}


static void
test_tar(void **state)
{
    char        p[513];
    sb_sniff_t  s;

    (void) state;

    tar(p, "a", true, 1);
    s = sniff(p, 512, 100, 100);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_TAR);

    tar(p, "a", false, 1);
    s = sniff(p, 512, 1, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_TAR);
    s = sniff(p, 511, 1, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_NONE);

    tar(p, "\xc3\xbc", false, -1);
    s = sniff(p, 512, 512, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_TAR);

    /* a wrong sum is a broken tar, if it says to be one */
    tar(p, "a", false, 2);
    s = sniff(p, 512, 512, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_NONE);
    tar(p, "a", true, 2);
    s = sniff(p, 512, 512, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_TAR);

    /* a name that begins as something else does */
    tar(p, "070707", true, 1);
    s = sniff(p, 512, 512, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_TAR);

    memset(p, 0, 512);
    s = sniff(p, 512, 512, 1);
    assert_int_equal(sb_sniff_begins(&s), SB_SNIFF_NONE);
}


static void
test_names(void **state)
{
    (void) state;

    assert_true(sb_inspect_named(sb_lit("/w/a.zip")));
    assert_true(sb_inspect_named(sb_lit("/w/a.tar.GZ")));
    assert_true(sb_inspect_named(sb_lit("/w/a.docx")));
    assert_false(sb_inspect_named(sb_lit("/w/a.zip.txt")));
    assert_false(sb_inspect_named(sb_lit(".zip")));
    assert_false(sb_inspect_named(sb_lit("/w/zip")));
}


#define PART(name, text)  "--B\r\nContent-Disposition: form-data; name=\""    \
    name "\"; filename=\"x\"\r\n\r\n" text "\r\n"
#define META(path)        PART("metadata", "{\"path\":\"" path "\"}")

static void
test_upload(void **state)
{
    size_t                      i, step, at;
    sb_multipart_t             *m;
    const sb_multipart_file_t  *f;
    sb_multipart_limits_t       limits = { .no_digest = true, .sniff = true };

    static const char  body[] =
        "preamble\r\n" META("/a") PART("file", "text\r\n--not the boundary")
        META("/b") PART("file", "PK\3\4zip") META("/c") PART("file", "")
        META("/d") PART("file", "behind\r\nPK\5\6...") "--B--\r\n";
    static const struct {
        const char  *text;
        bool         archive;
    } files[] = {
        { "text\r\n--not the boundary", false }, { "PK\3\4zip", true },
        { "", false }, { "behind\r\nPK\5\6...", true }
    };

    (void) state;

    for (step = 1; step < sizeof(body); step += step < 9 ? 1 : 31) {

        m = sb_multipart_new(sb_lit("B"), &limits);
        assert_non_null(m);

        for (at = 0; at < sizeof(body) - 1; at += i) {
            i = sizeof(body) - 1 - at < step ? sizeof(body) - 1 - at : step;
            assert_true(sb_multipart_feed(m, body + at, i) >= SB_OK);
        }

        assert_int_equal(sb_multipart_finish(m), SB_OK);
        assert_int_equal(sb_multipart_count(m), 4);

        for (i = 0; i < 4; i++) {
            f = sb_multipart_file(m, i);
            assert_int_equal(f->size, strlen(files[i].text));
            assert_memory_equal(body + f->offset, files[i].text, f->size);
            assert_memory_equal(body + f->offset - 4, "\r\n\r\n", 4);
            assert_int_equal(f->archive, files[i].archive);
        }

        sb_multipart_free(m);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_upload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
