/* Keys of locks: one spelling of each path, the header that declares them. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lock.h"


static void
assert_spelling(const char *path, const char *want)
{
    char    dst[256];
    size_t  n;

    n = sb_lock_path(dst, sb_str(path, strlen(path)));
    dst[n] = '\0';
    assert_string_equal(dst, want);
}


static void
test_path(void **state)
{
    (void) state;

    /* C126: one file in other spellings; a relative one is another */
    assert_spelling("/workspace/a", "/workspace/a");
    assert_spelling("/workspace//a", "/workspace/a");
    assert_spelling("/workspace/./a/", "/workspace/a");
    assert_spelling("/workspace/x/../a", "/workspace/a");
    assert_spelling("/../..", "/");
    assert_spelling("/", "/");
    assert_spelling("a", "a");
    assert_spelling("./a/.", "a");
    assert_spelling("a/..", ".");
    assert_spelling("", ".");
    assert_spelling("../a/../../b", "../../b");
    assert_spelling("a/b/../../../c", "../c");
    assert_spelling("/...", "/...");

    /* composed or not: two files on Linux */
    assert_spelling("/\xc3\xa9", "/\xc3\xa9");
    assert_spelling("/e\xcc\x81", "/e\xcc\x81");
}


/* What is read, as "write:/a read:/b", or "reason: ...". */
static const char *
reading(const char *header)
{
    char           mem[1024];
    size_t         i, n, len;
    sb_rc_t        rc;
    const char    *reason;
    static char    text[2048];
    sb_lock_key_t  keys[SB_LOCK_KEYS];

    reason = NULL;
    rc = sb_lock_read(keys, &n, sb_str(header, strlen(header)), mem, &reason);

    if (rc != SB_OK) {
        assert_non_null(reason);
        return rc == SB_LIMIT ? "limit" : "ambiguous";
    }

    len = 0;

    for (i = 0; i < n; i++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s:%.*s",
                                 i ? " " : "", keys[i].write ? "write" : "read",
                                 (int) keys[i].path.len, keys[i].path.data);
    }

    return text;
}


static void
test_header(void **state)
{
    char      many[2048];
    size_t    n;
    unsigned  i;

    (void) state;

    assert_string_equal(reading("read:/a"), "read:/a");
    assert_string_equal(reading("read:/a, write:/b//c/ ,\tread:/d"),
                        "read:/a write:/b/c read:/d");
    assert_string_equal(reading("write:/a%2Cb%25"), "write:/a,b%");
    assert_string_equal(reading("write:/"), "write:/");
    assert_string_equal(reading("write:/a b"), "write:/a b");

    assert_string_equal(reading(""), "ambiguous");
    assert_string_equal(reading("read:/a,"), "ambiguous");
    assert_string_equal(reading(",read:/a"), "ambiguous");
    assert_string_equal(reading("Read:/a"), "ambiguous");
    assert_string_equal(reading("read /a"), "ambiguous");
    assert_string_equal(reading("read:"), "ambiguous");
    assert_string_equal(reading("read:a"), "ambiguous");
    assert_string_equal(reading("read:/a/../b"), "ambiguous");
    assert_string_equal(reading("read:/%2e%2E/b"), "ambiguous");
    assert_string_equal(reading("read:/$HOME"), "ambiguous");
    assert_string_equal(reading("read:/a%0"), "ambiguous");
    assert_string_equal(reading("read:/a%"), "ambiguous");
    assert_string_equal(reading("read:/a%zz"), "ambiguous");
    assert_string_equal(reading("read:/a%00"), "ambiguous");
    assert_string_equal(reading("read:/a%ff"), "ambiguous");

    n = 0;

    for (i = 0; i < SB_LOCK_KEYS; i++) {
        n += (size_t) snprintf(many + n, sizeof(many) - n, "%sread:/%u",
                               i ? "," : "", i);
    }

    assert_string_not_equal(reading(many), "limit");
    snprintf(many + n, sizeof(many) - n, ",read:/x");
    assert_string_equal(reading(many), "limit");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_header)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
