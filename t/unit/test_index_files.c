/* The index and its files: records that move, files of others, late tables. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "index_place.h"


/* An event that moves from _gateway into the file of its sandbox is one
 * record. */
static void
test_moved(void **state)
{
    (void) state;

    file("_gateway");
    add("a", .type = "sandbox.create", .cursor = 77);
    t.cursor = 77;
    sync_index();
    assert_string_equal(ask(NULL, NULL), "a");

    file("s1");
    add("a", .type = "sandbox.create", .cursor = 77);
    index_touch(t.ix, "s1");
    file("_gateway");
    moves("a", "s1");
    sync_index();
    assert_string_equal(where("a"), "s1");
    index_forget(t.ix, "_gateway");
    sync_index();
    assert_string_equal(where("a"), "s1");
}


/* For a moment both files have it: it counts where it goes, in whatever order
 * they are read. */
static void
test_moving(void **state)
{
    (void) state;

    index_free(t.ix);
    file("_gateway");
    add("a", .command = "echo", .cursor = 77);
    file("s1");
    add("a", .command = "echo", .cursor = 77);
    t.ix = index_new(t.base, t.history, false);
    assert_non_null(t.ix);
    index_touch(t.ix, "_gateway");
    index_touch(t.ix, "s1");
    assert_true(index_start(t.ix));
    sync_index();
    assert_string_equal(where("a"), "s1");
    finds("echo", "a");

    file("_gateway");
    moves("a", "s1");
    sync_index();
    assert_string_equal(where("a"), "s1");
}


/* It leaves _gateway just when that is read, and nothing else is told later. */
static void
test_moved_meanwhile(void **state)
{
    sqlite3          *gateway;
    uint64_t          cursor;
    struct timespec   a_while = { 0, 200000000 };

    (void) state;

    sync_index();
    file("_gateway");
    sql("pragma journal_mode = delete");
    add("a", .cursor = 77);
    sql("begin exclusive");
    index_touch(t.ix, "_gateway");
    cursor = applied();
    index_hurry(t.ix, cursor);
    (void) nanosleep(&a_while, NULL);

    gateway = t.db;
    t.db = NULL;
    file("s1");
    add("a", .cursor = 77);
    file_close();
    t.db = gateway;
    index_touch(t.ix, "s1");
    moves("a", "s1");
    sql("commit");

    assert_true(index_wait(t.ix, cursor, WAIT_MS));
    assert_string_equal(where("a"), "s1");
}


/* What is compared tells of records that are gone, not of those that moved. */
static void
test_moved_compared(void **state)
{
    (void) state;

    file("_gateway");
    add("a", .cursor = 77);
    add("b", .cursor = 78);
    add("c", .cursor = 79);
    t.cursor = 79;
    sync_index();
    assert_string_equal(ask(NULL, NULL), "c b a");

    file("s1");
    add("a", .cursor = 77);
    file("_gateway");
    moves("a", "s1");
    moves("b", "none");
    sql("delete from history_events where event_id = 'c'");
    index_forget(t.ix, "_gateway");
    sync_index();
    assert_string_equal(ask(NULL, NULL), "a");
    assert_string_equal(where("a"), "s1");
}


/* A file of others, which gets the tables of ours. */
static void
test_tables_later(void **state)
{
    (void) state;

    file("s1");
    sql("drop table gateway_records");
    add("a", .cursor = -1);
    sync_index();
    assert_string_equal(ask(NULL, NULL), "a");

    assert_int_equal(schema_create(t.db), SQLITE_OK);
    add("b", .cursor = 77);
    add("c", .cursor = 76);
    t.cursor = 77;
    sync_index();
    assert_string_equal(ask(NULL, NULL), "b c a");
}


/* A file that is just being made. */
static void
test_no_tables(void **state)
{
    (void) state;

    file_empty("s1");
    sync_index();
    assert_string_equal(ask(NULL, NULL), "");
    file("s1");
    add("a", .command = "echo");
    sync_index();
    assert_string_equal(ask(NULL, NULL), "a");
}


/* What others wrote has no cursor: it stands first, by time. */
static void
test_foreign(void **state)
{
    index_hit_t       hit;
    index_answer_t    a;
    history_filter_t  f;
    index_question_t  q = { .filter = &f, .limit = 10 };

    (void) state;

    file("s1");
    add("ours", .command = "here");
    add("late", .command = "theirs here", .cursor = -1,
        .at_us = 1800000000000000);
    add("same", .command = "theirs", .cursor = -1, .at_us = 1600000000000000);
    add("early", .command = "theirs", .cursor = -1, .at_us = 1600000000000000);
    sync_index();

    assert_string_equal(ask(NULL, NULL), "ours late early same");
    finds("theirs", "late early same");
    finds("here", "ours late");
    assert_string_equal(ask("from", "2025-01-01"), "late");
    assert_string_equal(ask("to", "2022-01-01"), "early same");

    /* once more: the same places */
    changed("late", "storage_state_changed");
    sync_index();
    assert_string_equal(ask(NULL, NULL), "ours late early same");

    history_filter_init(&f);
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);
    assert_true(a.hits[0].cursor > 0);
    assert_true(a.hits[1].cursor < 0);
    index_answer_free(&a);

    assert_int_equal(index_find(t.ix, "late", &hit), 1);
    assert_string_equal(hit.dir, "s1");
    assert_int_equal(index_find(t.ix, "nothing", &hit), 0);
}


/* A copy of a history beside it does not take its records away. */
static void
test_copied(void **state)
{
    (void) state;

    file("s1");
    add("a", .command = "original", .cursor = 5);
    sync_index();
    file("s2");
    add("a", .command = "original", .cursor = 5);
    t.cursor = 5;
    sync_index();
    assert_string_equal(ask(NULL, NULL), "a a");
    finds("original", "a a");
    index_free(t.ix);
    (void) snprintf(t.base, sizeof(t.base), "%s/again", t.path);
    (void) mkdir(t.base, 0700);
    open_index();
    sync_index();
    assert_string_equal(ask(NULL, NULL), "a a");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        with(test_moved),
        with(test_moving),
        with(test_moved_meanwhile),
        with(test_moved_compared),
        with(test_tables_later),
        with(test_no_tables),
        with(test_foreign),
        with(test_copied)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
