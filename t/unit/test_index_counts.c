/* What the index counts, and within which bounds. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "index_place.h"


static void
test_facets(void **state)
{
    index_facets_t    c;
    history_filter_t  f;
    index_question_t  q = { .filter = &f };

    (void) state;

    file("s1");
    add("a", .command = "one", .actor = "bot");
    add("b", .command = "two", .actor = "bot", .status = "failed");
    add("c", .type = "file.read", .path = "/x");
    file("s2");
    add("d", .command = "two", .actor = "eve");
    index_touch(t.ix, "s1");
    sync_index();

    history_filter_init(&f);
    assert_int_equal(index_facets(t.ix, &q, &c), INDEX_OK);
    assert_true(c.exact);
    assert_int_equal(c.total, 4);
    assert_int_equal(c.failed, 1);
    assert_int_equal(c.of[INDEX_F_TYPE].n, 2);
    assert_string_equal(c.of[INDEX_F_TYPE].values[0].value, "command.execute");
    assert_int_equal(c.of[INDEX_F_TYPE].values[0].n, 3);
    assert_string_equal(c.of[INDEX_F_ACTOR].values[0].value, "agent:bot");
    assert_int_equal(c.of[INDEX_F_ACTOR].values[0].n, 2);
    assert_int_equal(c.of[INDEX_F_ACTOR].n, 3);
    assert_string_equal(c.of[INDEX_F_SANDBOX].values[0].value, "s1");
    assert_int_equal(c.of[INDEX_F_SANDBOX].values[0].n, 3);
    assert_string_equal(c.of[INDEX_F_SOURCE].values[0].value, "sdk");
    index_facets_free(&c);

    f.q = "two";
    assert_int_equal(index_facets(t.ix, &q, &c), INDEX_OK);
    assert_int_equal(c.total, 2);
    index_facets_free(&c);
}


static void
test_histogram(void **state)
{
    history_filter_t   f;
    index_question_t   q = { .filter = &f, .dir = "s1" };
    index_histogram_t  h;

    (void) state;

    file("s2");
    add("other", .at_us = 1700000000000000);
    index_touch(t.ix, "s2");
    file("s1");
    add("old", .at_us = 1699999999999999);
    add("a", .at_us = 1700000000000000, .actor = "bot");
    add("b", .at_us = 1700000000003999, .status = "failed");
    add("c", .at_us = 1700000000004000, .status = "timeout");
    add("d", .at_us = 1700000000009999, .status = "cancelled");
    add("late", .at_us = 1700000000010000);
    add("foreign", .at_us = 1700000000009998, .cursor = -1);
    sync_index();

    history_filter_init(&f);
    f.from_us = 1700000000000000;
    f.to_us = 1700000000010000;
    assert_int_equal(index_histogram(t.ix, &q, 3, &h), INDEX_OK);
    assert_true(h.exact);
    assert_int_equal(h.step_us, 4000);
    assert_int_equal(h.n, 3);
    assert_int_equal(h.buckets[0].total, 2);
    assert_int_equal(h.buckets[0].failed, 1);
    assert_int_equal(h.buckets[1].total, 1);
    assert_int_equal(h.buckets[1].failed, 1);
    assert_int_equal(h.buckets[2].total, 2);
    assert_int_equal(h.buckets[2].failed, 0);

    /* no step is shorter than a millisecond */
    assert_int_equal(index_histogram(t.ix, &q, INDEX_BUCKETS, &h), INDEX_OK);
    assert_int_equal(h.n, 10);
    assert_int_equal(h.step_us, 1000);

    /* where one page ends is nothing to it; the filters are */
    q.has_before = true;
    q.before = 1;
    f.actor = "bot";
    assert_int_equal(index_histogram(t.ix, &q, 1, &h), INDEX_OK);
    assert_int_equal(h.buckets[0].total, 1);
    f.actor = NULL;

    assert_int_equal(index_histogram(t.ix, &q, 0, &h), INDEX_BAD);
    assert_int_equal(index_histogram(t.ix, &q, INDEX_BUCKETS + 1, &h),
                     INDEX_BAD);
    f.from_us = f.to_us;
    assert_int_equal(index_histogram(t.ix, &q, 1, &h), INDEX_BAD);
    f.from_us = -1;
    assert_int_equal(index_histogram(t.ix, &q, 1, &h), INDEX_BAD);
}


/* Bounds of a question: what is over is told. */
static void
test_bounds(void **state)
{
    unsigned           i;
    char               id[16];
    index_facets_t     c;
    index_answer_t     a;
    index_numbers_t    n;
    history_filter_t   f;
    index_histogram_t  h;
    index_question_t   q = { .filter = &f, .limit = 10 };

    (void) state;

    file("s1");
    sql("begin");

    for (i = 0; i < 1500; i++) {
        (void) snprintf(id, sizeof(id), "e%u", i);
        add(id, .command = "same thing");
    }

    sql("commit");

    sync_index();

    history_filter_init(&f);
    q.counted = 20;
    assert_int_equal(index_facets(t.ix, &q, &c), INDEX_OK);
    assert_false(c.exact);
    assert_int_equal(c.total, 20);
    index_facets_free(&c);

    q.counted = 1500;
    assert_int_equal(index_facets(t.ix, &q, &c), INDEX_OK);
    assert_true(c.exact);
    assert_int_equal(c.total, 1500);
    index_facets_free(&c);

    /* no time is left: what needs some says so, and nothing is broken */
    q.looks = 1;
    f.min_duration_ms = 1;
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_PARTIAL);
    assert_int_equal(a.n, 0);
    index_answer_free(&a);

    f.q = "same";
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_PARTIAL);
    index_answer_free(&a);
    assert_int_equal(index_facets(t.ix, &q, &c), INDEX_PARTIAL);
    assert_false(c.exact);
    index_facets_free(&c);
    f.from_us = 1;
    f.to_us = 1800000000000000;
    assert_int_equal(index_histogram(t.ix, &q, 1, &h), INDEX_PARTIAL);
    assert_false(h.exact);
    f.from_us = f.to_us = -1;

    q.looks = 0;
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);
    assert_int_equal(a.n, 0);
    index_answer_free(&a);

    f.q = "...";
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_BAD);
    index_answer_free(&a);

    index_numbers(t.ix, &n);
    assert_int_equal(n.partial, 4);
    assert_int_equal(n.refused, 1);
    assert_int_equal(n.inexact, 3);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        with(test_facets),
        with(test_histogram),
        with(test_bounds)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
