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


static char *
answer(const char *query)
{
    char       *text;
    ask_int_t   i;

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
    sb_buf_free(&i.body);
    i.q.release(i.q.state);

    return text;
}


/* The ids of the answer, and "..." when it is not complete. */
static const char *
listed(const char *query)
{
    char        *text;
    size_t       n;
    const char  *p;
    static char  out[512];

    text = answer(query);
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


/* The number that stands behind a name; 0: null. */
static int64_t
number(const char *text, const char *name)
{
    const char  *p;

    p = strstr(text, name);
    assert_non_null(p);

    return strtoll(p + strlen(name), NULL, 10);
}


/* Follows with one parameter from page to page, in 1 MiB each, and counts the
 * records; each has to be there once. */
static unsigned
follow(const char *ask, const char *way, int64_t from)
{
    int64_t      cursor;
    char         query[96], *text;
    unsigned     n, pages;
    const char  *p;
    uint8_t      seen[512] = { 0 };

    for (n = 0, pages = 0; from; pages++) {
        assert_true(pages < 20);
        (void) snprintf(query, sizeof(query), ask, (long long) from);
        text = answer(query);
        assert_true(strlen(text) < 3 * 1024 * 1024 / 2);

        for (p = text; (p = strstr(p, "{\"seq\":")) != NULL; p++) {
            cursor = number(p, ",\"cursor\":");
            assert_true(cursor > 0 && cursor < 512);
            assert_int_equal(seen[cursor], 0);
            seen[cursor] = 1;
            n++;
        }

        from = number(text, way);
        free(text);
    }

    assert_true(pages > 2);

    return n;
}


/* A page that is cut at its size keeps what is next to the bound it was asked
 * from: who goes on from its end passes nothing. */
static void
test_cut(void **state)
{
    char       *path;
    unsigned    i;
    char        id[16];
    settled_t   settled;

    (void) state;

    path = malloc(8192);
    assert_non_null(path);
    memset(path, 'x', 8191);
    path[8191] = '\0';

    for (i = 0; i < 400; i++) {
        (void) snprintf(id, sizeof(id), "large%u", i);
        add(.id = id, .path = path);
    }

    free(path);
    settled_init(&settled);
    settled_put(&settled);
    sync_index();

    assert_int_equal(follow("order=asc&limit=500&after=%lld", "\"next\":", 6),
                     400);
    assert_int_equal(follow("limit=500&before=%lld", "\"next\":", 407), 405);
    assert_int_equal(follow("limit=500&after=%lld", "\"previous\":", 6), 400);
    assert_int_equal(follow("order=asc&limit=500&before=%lld",
                            "\"previous\":", 407), 405);
}


/* A record with more output than is searched says so, and no other does. */
static void
test_text_cut(void **state)
{
    char       *text, *p;
    settled_t   settled;

    (void) state;

    add(.id = "much");
    text = calloc(1, 300 * 1024);
    assert_non_null(text);
    memset(text, 'x', 300 * 1024 - 1);
    output("much", "stdout", text, 300 * 1024 - 1);
    free(text);
    changed("much", "output_appended");
    settled_init(&settled);
    settled_put(&settled);
    sync_index();

    text = answer("limit=2");
    p = strstr(text, "\"text_cut\":true}");
    assert_non_null(p);
    assert_true(strstr(text, "\"id\":\"much\"") < p);
    assert_true(p < strstr(text, "\"id\":\"six\""));
    assert_null(strstr(p + 10, "text_cut"));
    free(text);
}


int
main(void)
{
#define list_case(f)                                                          \
    cmocka_unit_test_setup_teardown(f, setup_list, teardown_list)

    const struct CMUnitTest  tests[] = {
        list_case(test_upwards),
        list_case(test_downwards),
        list_case(test_cut),
        list_case(test_text_cut)
    };

    (void) log_open("/dev/null");

    return cmocka_run_group_tests(tests, NULL, NULL);
}
