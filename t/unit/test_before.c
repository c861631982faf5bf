/* Questions for files: how many at once, and what they may not say. */

#include "before.h"

#include "id.h"
#include "stats.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>


static sb_rc_t
ask(before_t *b, uint64_t kind, const char *upstream, const char *target,
    const char *header)
{
    size_t             len, need;
    sb_frame_t         f;
    sb_frame_writer_t  w;

    static char           mem[16384];
    static const uint8_t  op[16] = { 1 };

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_FETCH, 0, 1, op, sb_now_us());
    sb_frame_put(&w, SB_T_UPSTREAM, sb_str(upstream, strlen(upstream)));
    sb_frame_put(&w, SB_T_TARGET, sb_str(target, strlen(target)));
    sb_frame_put(&w, SB_T_HEADER, sb_str(header, strlen(header)));
    sb_frame_put(&w, SB_T_SANDBOX, sb_lit("s1"));
    sb_frame_put(&w, SB_T_FILE_PATH, sb_lit("/a"));
    sb_frame_put_u64(&w, SB_T_FILE_KIND, kind);
    len = sb_frame_end(&w);

    assert_int_equal(sb_frame_read(&f, mem, len, &need), SB_OK);

    return before_ask(b, &f, 1, true);
}


static sb_rc_t
good(before_t *b, uint64_t kind)
{
    return ask(b, kind, "http://127.0.0.1:1", "/files/download?path=a",
               "Host: x");
}


/* Nobody reads: all stay open. */
static void
test_bounds(void **state)
{
    int        fd;
    unsigned   i;
    before_t  *b;

    (void) state;

    fd = eventfd(0, 0);
    b = before_new(2, NULL, NULL, fd);
    assert_non_null(b);

    for (i = 0; i < BEFORE_CHECKS; i++) {
        assert_int_equal(good(b, SB_CONTENT_CHECK), SB_OK);
    }

    assert_int_equal(stats_get(STATS_CHECKS_RUNNING), BEFORE_CHECKS);
    assert_int_equal(stats_get(STATS_CHECKS_REFUSED), 0);
    assert_int_equal(good(b, SB_CONTENT_CHECK), SB_LIMIT);
    assert_int_equal(stats_get(STATS_CHECKS_REFUSED), 1);

    /* the others have room of their own */
    assert_int_equal(good(b, SB_CONTENT_BEFORE), SB_OK);
    assert_int_equal(good(b, SB_CONTENT_AFTER), SB_OK);
    assert_int_equal(good(b, SB_CONTENT_BEFORE), SB_LIMIT);

    before_stop(b);
    close(fd);
}


static void
test_questions(void **state)
{
    int        fd;
    size_t     i;
    before_t  *b;

    static const char  *bad[][3] = {
        { "ftp://h", "/a", "Host: x" },
        { "file:///etc/passwd", "/a", "Host: x" },
        { "http://u@h", "/a", "Host: x" },
        { "http://h?x", "/a", "Host: x" },
        { "http://h#x", "/a", "Host: x" },
        { "http://h x", "/a", "Host: x" },
        { "", "/a", "Host: x" },
        { "http://h", "a", "Host: x" },
        { "http://h", "@other/a", "Host: x" },
        { "http://h", "/a b", "Host: x" },
        { "http://h", "/a\r\nX: y", "Host: x" },
        { "http://h", "", "Host: x" },
        { "http://h", "/a", "Host: x\r\nX: y" },
        { "http://h", "/a", "Host: x\nX: y" },
        { "http://h", "/a", "" },
    };

    (void) state;

    fd = eventfd(0, 0);
    b = before_new(1, NULL, NULL, fd);
    assert_non_null(b);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ask(b, SB_CONTENT_CHECK, bad[i][0], bad[i][1],
                             bad[i][2]), SB_ERROR);
        assert_int_equal(ask(b, SB_CONTENT_BEFORE, bad[i][0], bad[i][1],
                             bad[i][2]), SB_ERROR);
    }

    /* those take no room */
    assert_int_equal(good(b, SB_CONTENT_BEFORE), SB_OK);

    before_stop(b);
    close(fd);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
