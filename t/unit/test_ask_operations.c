/* Lists of operations while a poll that began before the newest of them has no row
 * yet: who reads upwards is told that what is behind it is not there yet. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "index_place.h"

#include "api.h"
#include "ask_int.h"


static struct {
    api_t     api;
    int       fd;
} a;


static void
nothing(void *data, const journal_record_t *r)
{
    (void) data;
    (void) r;
}


/* Of the cursors 1 to 6, the poll 4 is on its way. */
static int
setup_list(void **state)
{
    char       why[256];
    settled_t  settled;

    if (setup(state) != 0) {
        return -1;
    }

    memset(&a, 0, sizeof(a));
    a.fd = tdir_open(t.path);
    api_init(&a.api, NULL, journal_open(a.fd, JOURNAL_SEGMENT, 0, 6, nothing,
                                        NULL, why, sizeof(why)), NULL, NULL);
    assert_non_null(a.api.journal);
    assert_int_equal(journal_tail(a.api.journal).cursor, 6);
    a.api.index = t.ix;
    a.api.readers = readers_new(t.history, false, 4);
    a.api.ask = ask_new(api_routes, &a.api, -1, 1, 1);
    assert_non_null(a.api.readers);
    assert_non_null(a.api.ask);

    file("s1");
    add(.id = "one");
    add(.id = "two");
    add(.id = "three");
    t.cursor++;
    add(.id = "five");
    add(.id = "six");

    settled_init(&settled);
    settled_add_poll(&settled, 3);
    settled_put(&settled);
    sync_index();

    return 0;
}


static int
teardown_list(void **state)
{
    settled_t  settled;

    settled_init(&settled);
    settled_put(&settled);
    ask_free(a.api.ask);
    readers_free(a.api.readers);
    journal_close(a.api.journal);
    pthread_mutex_destroy(&a.api.lock);
    close(a.fd);

    return teardown(state);
}


/* The ids of the answer, and "..." when it is not complete. */
static const char *
listed(const char *query)
{
    ask_int_t    i;
    const char  *p;
    char        *text;
    size_t       n;
    static char  out[512];

    memset(&i, 0, sizeof(i));
    i.q.query = sb_str(query, strlen(query));
    i.q.context = &a.api;
    i.q.in = &i;
    i.pool = a.api.ask;

    /* there is no room: the answer stays where it is */
    assert_int_equal(ask_operations(&i.q), ASK_AGAIN);
    assert_true(i.body.len > 0);
    text = strndup(i.body.data, i.body.len);
    assert_non_null(text);

    n = 0;
    out[0] = '\0';

    for (p = text; (p = strstr(p, ",\"id\":\"")) != NULL; p++) {
        n += (size_t) snprintf(out + n, sizeof(out) - n, "%.*s ",
                               (int) strcspn(p + 7, "\""), p + 7);
    }

    p = strstr(text, "\"complete\":");
    assert_non_null(p);
    (void) snprintf(out + n, sizeof(out) - n, "%s",
                    strncmp(p + 11, "true", 4) == 0 ? "." : "...");

    free(text);
    sb_buf_free(&i.body);
    i.q.release(i.q.state);

    return out;
}


static void
test_upwards(void **state)
{
    (void) state;

    assert_string_equal(listed("order=asc&after=1"), "two three ...");

    /* the page in front of one, newest first: read upwards all the same */
    assert_string_equal(listed("after=1"), "three two ...");
    assert_string_equal(listed("after=3"), "...");

    /* what is not there yet is behind the page */
    assert_string_equal(listed("after=1&limit=1"), "two .");
    assert_string_equal(listed("after=1&before=4"), "three two .");
}


/* Newest first, who begins with the newest asks again for what is newer. */
static void
test_downwards(void **state)
{
    (void) state;

    assert_string_equal(listed(""), "six five three two one .");
    assert_string_equal(listed("before=6"), "five three two one .");
    assert_string_equal(listed("order=asc&before=6"), "one two three five .");
}


int
main(void)
{
#define list_case(f)                                                          \
    cmocka_unit_test_setup_teardown(f, setup_list, teardown_list)

    const struct CMUnitTest  tests[] = {
        list_case(test_upwards),
        list_case(test_downwards)
    };

    (void) log_open("/dev/null");

    return cmocka_run_group_tests(tests, NULL, NULL);
}
