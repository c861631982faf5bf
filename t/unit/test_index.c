/* The index: the list of all operations and their full text. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "index_place.h"


static void
test_list(void **state)
{
    history_filter_t  f;

    (void) state;

    file("s1");
    add("a", .command = "make all", .actor = "bot", .run = "r1");
    add("b", .type = "file.write", .path = "/work/a.txt", .actor = "bot");
    file("s2");
    add("c", .command = "false", .status = "failed", .exit_code = 1,
        .actor = "eve", .run = "r2", .duration = 40000);
    add("d", .type = "file.read", .path = "/etc/passwd", .duration = 1500);
    add("e", .type = "console.read");
    sync_index();
    index_touch(t.ix, "s1");
    sync_index();

    assert_string_equal(ask(NULL, NULL), "e d c b a");
    assert_string_equal(ask("type", "file.*"), "d b");
    assert_string_equal(ask("type", "file.read"), "d");
    assert_string_equal(ask("type", "none.*"), "");
    assert_string_equal(ask("status", "failed"), "c");
    assert_string_equal(ask("status", "succeeded"), "e d b a");
    assert_string_equal(ask("status", "timeout"), "");
    assert_string_equal(ask("actor", "bot"), "b a");
    assert_string_equal(ask("actor", "nobody"), "");
    assert_string_equal(ask("actor_type", "agent"), "e d c b a");
    assert_string_equal(ask("source", "sdk"), "e d c b a");
    assert_string_equal(ask("run", "r1"), "a");
    assert_string_equal(ask("thread", "r1"), "");
    assert_string_equal(ask("exit_code", "1"), "c");
    assert_string_equal(ask("exit_code", "0"), "a");
    assert_string_equal(ask("min_duration_ms", "30000"), "c");
    assert_string_equal(ask("min_duration_ms", "1000"), "d c");
    assert_string_equal(ask("path", "/work/*"), "b");
    assert_string_equal(ask("path", "*"), "d b");
    assert_string_equal(ask("path", "*.txt"), "b");
    assert_string_equal(ask("path", "/etc/passwd"), "d");
    assert_string_equal(ask("path", "/nowhere"), "");
    assert_string_equal(ask("from", "2023-11-14"), "e d c b a");
    assert_string_equal(ask("to", "2023-11-14"), "");
    assert_string_equal(ask("from", "2024-11-14"), "");

    history_filter_init(&f);
    assert_string_equal(ask_as(&f, NULL, INDEX_OK), "d c b a");
    assert_string_equal(ask_as(&f, "s1", INDEX_OK), "b a");
    assert_string_equal(ask_as(&f, "s3", INDEX_OK), "");
    f.q = "make";
    assert_string_equal(ask_as(&f, "s1", INDEX_OK), "a");
    assert_string_equal(ask_as(&f, "s2", INDEX_OK), "");
}


/* Pages in both directions meet every record once. */
static void
test_pages(void **state)
{
    char              id[16];
    unsigned          seen, i;
    int64_t           last;
    index_answer_t    a;
    history_filter_t  f;
    index_question_t  q = { .filter = &f, .limit = 7 };

    (void) state;

    for (i = 0; i < 50; i++) {
        file(i % 2 ? "s1" : "s2");
        (void) snprintf(id, sizeof(id), "e%u", i);
        add(id, .command = i % 5 ? "ls" : "grep five");
    }

    index_touch(t.ix, "s1");
    index_touch(t.ix, "s2");
    sync_index();

    history_filter_init(&f);

    for (unsigned way = 0; way < 4; way++) {
        q.ascending = way & 1;
        f.q = way & 2 ? "five" : NULL;
        q.has_before = q.has_after = false;
        seen = 0;
        last = 0;

        do {
            assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);
            assert_true(a.n > 0 && a.n <= 7);

            for (i = 0; i < a.n; i++) {
                assert_true(last == 0 || (q.ascending
                                          ? a.hits[i].cursor > last
                                          : a.hits[i].cursor < last));
                last = a.hits[i].cursor;
                seen++;
            }

            q.has_before = !q.ascending;
            q.has_after = q.ascending;
            q.before = q.after = last;
            i = a.more;
            index_answer_free(&a);
        } while (i);

        assert_int_equal(seen, way & 2 ? 10 : 50);
    }

    q.limit = INDEX_LIMIT + 1;
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_BAD);
    index_answer_free(&a);
}


static void
test_text(void **state)
{
    (void) state;

    file("s1");
    add("a", .command = "pytest -k login", .out = "2 passed, 1 FAILED\n",
        .err = "AssertionError: 用户名或密码错误\n");
    add("b", .command = "cat main.c", .out = "int main(void)\n");
    add("c", .type = "file.write", .path = "/src/登录页面/main.py");
    sync_index();

    finds("pytest", "a");
    finds("PYTEST failed", "a");
    finds("\"1 failed\"", "a");
    finds("\"failed 1\"", "");
    finds("main", "c b");
    finds("main.py", "c");
    finds("main.c", "b");
    finds("\"main void\"", "b");
    finds("login main", "");

    /* pairs */
    finds("密码", "a");
    finds("用户名", "a");
    finds("户密", "");
    finds("错", "a");
    finds("误", "a");
    finds("登录", "c");
    finds("页面 main", "c");
    finds("\"密码错误\"", "a");
    finds("\"错误密码\"", "");

    /* words of two texts are no phrase */
    finds("\"login 2\"", "");
    finds("\"failed assertionerror\"", "a");
}


static void
test_injection(void **state)
{
    history_filter_t  f;

    (void) state;

    file("s1");
    add("a", .command = "or and not near");
    add("b", .command = "x head y");
    sync_index();

    finds("OR", "a");
    finds("x OR near", "");
    finds("NOT x", "");
    finds("NEAR", "a");
    finds("head:x", "");
    finds("head", "b");
    finds("^x", "b");
    finds("x*", "b");
    finds("ne*", "");
    finds("{x}", "b");
    finds("(x", "b");
    finds("\"x", "b");
    finds("x\" OR \"near", "");
    finds("'; drop table ops; --", "");
    finds("x\"\"y", "b");
    assert_string_equal(ask("actor", "' or 1=1 --"), "");
    assert_string_equal(ask("path", "' or 1=1 --*"), "");

    history_filter_init(&f);
    f.q = "...";
    (void) ask_as(&f, NULL, INDEX_BAD);
    f.q = "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g";
    (void) ask_as(&f, NULL, INDEX_BAD);
}


/* The first 256 KiB of the output are searched; the row says when there is
 * more. */
static void
test_cut(void **state)
{
    char              *text;
    size_t             i;
    index_answer_t     a;
    history_filter_t   f;
    index_question_t   q = { .filter = &f, .limit = 10 };

    (void) state;

    file("s1");
    add("a", .command = "yes", .status = "started");
    text = malloc(16384);
    assert_non_null(text);
    memset(text, ' ', 16384);

    for (i = 0; i < 20; i++) {
        (void) snprintf(text, 16384, "piece%zu", i);
        text[strlen(text)] = ' ';
        output("a", "stdout", text, 16384);
    }

    output("a", "stderr", "complaint", 9);
    free(text);
    changed("a", "output_appended");
    sync_index();

    finds("piece0", "a");
    finds("piece14", "a");
    finds("piece17", "");
    finds("complaint", "a");

    history_filter_init(&f);
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);
    assert_int_equal(a.n, 1);
    assert_true(a.hits[0].text_cut);
    index_answer_free(&a);

    sql("update history_events set status = 'succeeded'");
    changed("a", "completed");
    sync_index();
    finds("piece0", "a");
    assert_string_equal(ask("status", "succeeded"), "a");
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);
    assert_true(a.hits[0].text_cut);
    index_answer_free(&a);
}


/* What changes is searched as it is now, and once. */
static void
test_growing(void **state)
{
    (void) state;

    file("s1");
    add("a", .command = "build", .status = "started", .out = "first ");
    sync_index();
    finds("build", "a");
    finds("first", "a");
    finds("second", "");

    output("a", "stdout", "second third", 12);
    changed("a", "output_appended");
    sync_index();
    finds("first second", "a");
    finds("\"first second\"", "a");
    assert_string_equal(ask("status", "started"), "a");

    output("a", "stdout", " .", 2);
    output("a", "stdout", " x", 2);
    sql("update history_events set status = 'failed', duration_ms = 5");
    sql("update command_executions set exit_code = 3");
    changed("a", "completed");
    sync_index();
    finds("x", "a");
    finds("first", "a");
    assert_string_equal(ask("status", "started"), "");
    assert_string_equal(ask("exit_code", "3"), "a");
    assert_string_equal(ask(NULL, NULL), "a");
}


/* Records of the helper's own have the cursor of what was applied last, which may
 * be that of one that still runs: each has a place, whatever is read with what. */
static void
test_shared(void **state)
{
    unsigned         i;
    index_numbers_t  n;

    (void) state;

    file("s1");
    add("a", .command = "one", .path = "/a", .status = "started", .cursor = 5);
    add("b", .command = "two", .path = "/b", .cursor = 5);
    add("c", .command = "three", .path = "/c", .cursor = 5);
    changed("a", "output_appended");
    add("d", .command = "four", .cursor = 6);
    t.cursor = 6;

    for (i = 0; i < 3; i++) {
        sync_index();
        finds("one", "a");
        finds("two", "b");
        finds("three", "c");
        finds("four", "d");
        assert_string_equal(ask("path", "/b"), "b");
        index_numbers(t.ix, &n);
        assert_int_equal(n.rows, 4);

        if (i == 0) {
            sql("update history_events set status = 'failed', duration_ms = 5"
                " where event_id = 'a'");
            changed("c", "output_appended");
            changed("a", "completed");
            changed("b", "output_appended");
        }

        if (i == 1) {
            /* from the beginning, all at once */
            index_free(t.ix);
            tdir_remove(t.base);
            (void) mkdir(t.base, 0700);
            open_index();
        }
    }

    assert_string_equal(ask("status", "failed"), "a");
}


static void
test_delete(void **state)
{
    char             path[512];
    index_numbers_t  n;

    (void) state;

    file("s1");
    add("a", .command = "one word");
    add("b", .command = "two word");
    file("s2");
    add("c", .command = "three word");
    index_touch(t.ix, "s1");
    sync_index();
    finds("word", "c b a");

    file("s1");
    sql("pragma foreign_keys = on");
    sql("delete from history_events where event_id = 'a'");
    index_forget(t.ix, "s1");
    sync_index();
    finds("word", "c b");
    assert_string_equal(ask(NULL, NULL), "c b");

    /* a file that is gone */
    file_close();
    (void) snprintf(path, sizeof(path), "%s/s2/history.sqlite3", t.history);
    assert_int_equal(unlink(path), 0);
    index_forget(t.ix, "s2");
    (void) snprintf(t.dir, sizeof(t.dir), "s2");

    for (unsigned i = 0; i < 2000 && *ask(NULL, NULL) == 'c'; i++) {
        (void) usleep(10000);
    }

    assert_string_equal(ask(NULL, NULL), "b");
    index_numbers(t.ix, &n);
    assert_int_equal(n.rows, 1);
}


static void
test_rebuild(void **state)
{
    int              fd;
    char             path[512];
    index_numbers_t  n;

    (void) state;

    file("s1");
    add("a", .command = "keep 我们", .run = "r");
    add("b", .command = "keep");
    sync_index();
    finds("keep", "b a");

    (void) snprintf(path, sizeof(path), "%s/index.sqlite3", t.base);

    /* kept over a stop, and what came meanwhile is added */
    index_free(t.ix);
    add("c", .command = "keep");
    open_index();
    sync_index();
    finds("keep", "c b a");
    index_numbers(t.ix, &n);
    assert_int_equal(n.rebuilds, 0);
    assert_int_equal(n.indexed, 1);

    /* missing */
    index_free(t.ix);
    assert_int_equal(unlink(path), 0);
    open_index();
    sync_index();
    finds("keep", "c b a");

    /* corrupt */
    index_free(t.ix);
    fd = open(path, O_WRONLY);
    assert_true(fd != -1);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(pwrite(fd, "no database at all", 18, i * 1024), 18);
    }
    close(fd);
    open_index();
    sync_index();
    finds("我们", "a");
    assert_string_equal(ask("run", "r"), "a");
    index_numbers(t.ix, &n);
    assert_int_equal(n.rebuilds, 1);
    assert_true(n.ready);
    assert_int_equal(n.rows, 3);

    /* of another version */
    index_free(t.ix);
    file_close();
    assert_int_equal(sqlite3_open(path, &t.db), SQLITE_OK);
    sql("pragma user_version = 99");
    open_index();
    file("s1");
    sync_index();
    finds("keep", "c b a");
    index_numbers(t.ix, &n);
    assert_int_equal(n.rebuilds, 1);
}


/* A file that is another one than was read, or lost its end. */
static void
test_replaced(void **state)
{
    char  path[512], old[520];

    (void) state;

    file("s1");
    add("a", .command = "before");
    add("b", .command = "before");
    sync_index();
    finds("before", "b a");

    file_close();
    (void) snprintf(path, sizeof(path), "%s/s1/history.sqlite3", t.history);
    (void) snprintf(old, sizeof(old), "%s.old", path);
    assert_int_equal(rename(path, old), 0);
    (void) snprintf(old, sizeof(old), "%s-wal", path);
    (void) unlink(old);
    (void) snprintf(old, sizeof(old), "%s-shm", path);
    (void) unlink(old);

    file("s1");
    add("c", .command = "after");
    sync_index();
    finds("before", "");
    finds("after", "c");
    assert_string_equal(ask(NULL, NULL), "c");

    /* another history under the same numbers */
    sql("delete from history_changes");
    sql("delete from history_events");
    sql("delete from gateway_records");
    sql("delete from sqlite_sequence");
    add("d", .command = "later");
    sync_index();
    finds("after", "");
    finds("later", "d");
}


/* Types that are too many to be sorted are merged in the order of the list. */
static void
test_types(void **state)
{
    bool              more;
    char              id[16], why[100];
    size_t            i, seen;
    int64_t           last;
    index_answer_t    a;
    history_filter_t  f;
    index_question_t  q = { .filter = &f, .limit = 400 };

    (void) state;

    file("s1");
    sql("begin");

    for (i = 0; i < 2400; i++) {
        (void) snprintf(id, sizeof(id), "e%zu", i);
        add(id, .type = i % 6 == 0 ? "command.execute"
                        : i % 2 ? "file.read" : "file.write");
    }

    sql("commit");
    sync_index();

    history_filter_init(&f);
    assert_int_equal(history_filter_set(&f, "type", "file.*", why, sizeof(why)),
                     SB_OK);

    for (unsigned way = 0; way < 2; way++) {
        q.ascending = way;
        q.has_before = q.has_after = false;
        last = way ? 0 : INT64_MAX;
        seen = 0;

        do {
            assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);

            for (i = 0; i < a.n; i++, seen++) {
                assert_true(way ? a.hits[i].cursor > last
                                : a.hits[i].cursor < last);
                last = a.hits[i].cursor;
            }

            q.has_before = !way;
            q.has_after = way;
            q.before = q.after = last;
            more = a.more;
            index_answer_free(&a);
        } while (more);

        assert_int_equal(seen, 2000);
    }
}


/* A part of which few are left is made anew with these. */
static void
test_sparse(void **state)
{
    unsigned       i;
    char           id[16], path[512];
    sqlite3       *db;
    int64_t        dead;
    sqlite3_stmt  *st;

    (void) state;

    file("s1");
    sql("pragma foreign_keys = on");
    sql("begin");

    for (i = 0; i < 1500; i++) {
        (void) snprintf(id, sizeof(id), "e%u", i);
        add(id, .command = "same thing", .out = i % 100 ? "odd" : "even");
    }

    sql("commit");

    sync_index();
    sql("delete from history_events where event_id not in (select event_id from"
        " command_output_chunks where cast(data as text) = 'even')");
    index_forget(t.ix, "s1");
    sync_index();

    (void) snprintf(path, sizeof(path), "%s/index.sqlite3", t.base);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "select sum(dead) from parts", -1,
                                        &st, NULL), SQLITE_OK);
    dead = -1;

    for (i = 0; i < 2000 && dead != 0; i++) {
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        dead = sqlite3_column_int64(st, 0);
        (void) sqlite3_reset(st);
        (void) usleep(10000);
    }

    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);
    assert_int_equal(dead, 0);

    finds("odd", "");
    finds("even thing", "e1400 e1300 e1200 e1100 e1000 e900 e800 e700 e600 e500"
          " e400 e300 e200 e100 e0");
}


/* A part of the full text that nothing is left of goes. */
static void
test_parts(void **state)
{
    unsigned       i;
    char           path[512];
    sqlite3       *db;
    int64_t        n;
    sqlite3_stmt  *st;

    (void) state;

    file("s1");
    add("a", .command = "old", .cursor = 1000);
    add("b", .command = "new", .cursor = 1000000);
    t.cursor = 1000000;
    sync_index();
    finds("old", "a");

    sql("pragma foreign_keys = on");
    sql("delete from history_events where event_id = 'a'");
    index_forget(t.ix, "s1");
    sync_index();
    finds("old", "");
    finds("new", "b");

    (void) snprintf(path, sizeof(path), "%s/index.sqlite3", t.base);
    n = 2;

    for (i = 0; i < 2000 && n != 1; i++) {
        assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                         SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, "select count(*) from parts",
                                            -1, &st, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        n = sqlite3_column_int64(st, 0);
        (void) sqlite3_finalize(st);
        (void) sqlite3_close(db);
        (void) usleep(10000);
    }

    assert_int_equal(n, 1);
    finds("new", "b");
}


/* Goes through all hits; a question whose time is over after so many looks is
 * asked again from where it came to.  How often it was, with hits. */
static unsigned
take_all(const history_filter_t *f, bool ascending, unsigned looks,
    unsigned wanted)
{
    bool              more;
    unsigned          cut, seen;
    int64_t           last;
    index_rc_e        rc;
    index_answer_t    a;
    index_question_t  q = { .filter = f, .limit = 200, .looks = looks,
                            .ascending = ascending };

    cut = seen = 0;
    last = 0;

    do {
        rc = index_query(t.ix, &q, &a);
        assert_true(rc == INDEX_OK || rc == INDEX_PARTIAL);

        for (size_t i = 0; i < a.n; i++) {
            assert_true(last == 0 || (ascending ? a.hits[i].cursor > last
                                                : a.hits[i].cursor < last));
            last = a.hits[i].cursor;
            seen++;
        }

        more = rc == INDEX_PARTIAL || a.more;

        if (rc == INDEX_OK) {
            q.before = q.after = last;

        } else if (a.has_resume) {
            cut += a.n != 0;
            q.before = q.after = a.resume;

        } else {
            assert_int_equal(a.n, 0);
            q.looks++;
        }

        if (rc == INDEX_OK || a.has_resume) {
            q.has_before = !ascending;
            q.has_after = ascending;
        }

        index_answer_free(&a);
    } while (more);

    assert_int_equal(seen, wanted);

    return cut;
}


/* Wherever the time of a question is over: asked on, each hit comes once. */
static void
test_interrupted(void **state)
{
    char              id[16];
    unsigned          i, looks, cut;
    history_filter_t  f;

    (void) state;

    file("s1");
    sql("begin");

    /* three parts of the text, with a few hits, many, and few again */
    for (i = 0; i < 320; i++) {
        (void) snprintf(id, sizeof(id), "e%u", i);
        add(id, .command = "same", .cursor = (i < 10 ? 1000 : i < 310 ? 300000
                                              : 600000) + i);
    }

    sql("commit");
    t.cursor = 700000;
    sync_index();

    history_filter_init(&f);

    for (unsigned way = 0; way < 4; way++) {
        f.q = way & 2 ? "same" : NULL;
        f.min_duration_ms = -1;
        looks = 0;

        do {
            cut = take_all(&f, way & 1, ++looks, 320);
            assert_true(looks > 1 || cut > 1);
        } while (cut);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        with(test_list),
        with(test_pages),
        with(test_text),
        with(test_injection),
        with(test_cut),
        with(test_growing),
        with(test_shared),
        with(test_delete),
        with(test_rebuild),
        with(test_replaced),
        with(test_types),
        with(test_sparse),
        with(test_parts),
        with(test_interrupted)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
