/* The index: the list of all operations and their full text. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "helper_frames.h"

#include "id.h"
#include "index.h"
#include "log.h"
#include "schema.h"
#include "stats.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define WAIT_MS  20000


static struct {
    char       path[64];
    char       history[80];
    char       base[80];
    index_t   *ix;
    int64_t    cursor;
    sqlite3   *db;              /* the file that was opened last */
    char       dir[STORE_DIR_LEN];
} t;

/* A record. */
typedef struct {
    const char  *id;
    const char  *type;
    const char  *status;
    const char  *actor;
    const char  *run;
    const char  *command;
    const char  *path;
    const char  *out;
    const char  *err;
    int64_t      cursor;        /* 0: the next; -1: none */
    int64_t      exit_code;
    int64_t      duration;
    int64_t      at_us;
} rec_t;


/* --- history files ---------------------------------------------------------------- */

static void
sql(const char *fmt, ...)
{
    char     *text;
    va_list   args;

    va_start(args, fmt);
    text = sqlite3_vmprintf(fmt, args);
    va_end(args);

    if (sqlite3_exec(t.db, text, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", text, sqlite3_errmsg(t.db));
    }

    sqlite3_free(text);
}


static void
file_close(void)
{
    (void) sqlite3_close(t.db);
    t.db = NULL;
}


static void
file_empty(const char *dir)
{
    char  path[512];

    file_close();
    (void) snprintf(path, sizeof(path), "%s/%s", t.history, dir);
    (void) mkdir(path, 0700);
    assert_true(store_dir_path(path, sizeof(path), t.history, dir) != 0);
    assert_int_equal(sqlite3_open(path, &t.db), SQLITE_OK);
    assert_int_equal(schema_pragmas(t.db, true), SQLITE_OK);
    (void) snprintf(t.dir, sizeof(t.dir), "%s", dir);
}


static void
file(const char *dir)
{
    schema_identity_t  id = { dir, "i", NULL, "2026-01-01T00:00:00.000000Z" };

    file_empty(dir);
    assert_int_equal(schema_create(t.db), SQLITE_OK);
    assert_int_equal(schema_write_meta(t.db, &id), SQLITE_OK);
}


static void
changed(const char *id, const char *what)
{
    sql("insert into history_changes(change_id, event_id, change_type,"
        " changed_at) values('%q:%q:' || hex(randomblob(4)), '%q', '%q',"
        " '2026-01-01T00:00:00.000000Z')", id, what, id, what);
}


static void
output(const char *id, const char *stream, const char *text, size_t len)
{
    sqlite3_stmt  *st;

    assert_int_equal(sqlite3_prepare_v2(t.db, "insert into"
        " command_output_chunks(event_id, stream, chunk_index, data,"
        " original_size, created_at) select ?1, ?2, (select count(*) from"
        " command_output_chunks where event_id = ?1 and stream = ?2), ?3,"
        " length(?3), ''", -1, &st, NULL), SQLITE_OK);
    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, stream, -1, SQLITE_STATIC);
    sqlite3_bind_blob(st, 3, text, (int) len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(st), SQLITE_DONE);
    (void) sqlite3_finalize(st);
}


static void
record(const rec_t *r)
{
    char     at[SB_TIME_LEN + 1];
    int64_t  cursor;

    sb_time_text(at, (uint64_t) (r->at_us ? r->at_us : 1700000000000000
                                                       + t.cursor * 1000));
    sql("savepoint one");
    sql("insert into history_events(event_id, provider_key, sandbox_id,"
        " sandbox_instance_id, actor_type, actor_id, run_id, operation_type,"
        " status, occurred_at, duration_ms) values('%q', 'p', '%q', 'i',"
        " 'agent', %Q, %Q, '%q', '%q', '%s', %lld)", r->id, t.dir,
        r->actor, r->run, r->type ? r->type : "command.execute",
        r->status ? r->status : "succeeded", at, (long long) r->duration);

    if (r->cursor != -1) {
        cursor = r->cursor ? r->cursor : ++t.cursor;
        sql("insert into gateway_records(seq, event_id, cursor) select"
            " coalesce(max(seq), 0) + 1, '%q', %lld from gateway_records",
            r->id, (long long) cursor);
    }

    if (r->command) {
        sql("insert into command_executions(event_id, command, cwd, exit_code)"
            " values('%q', '%q', '', %lld)", r->id, r->command,
            (long long) r->exit_code);
    }

    if (r->path) {
        sql("insert into file_operations(event_id, path, change_type)"
            " values('%q', '%q', 'write')", r->id, r->path);
        sql("insert into gateway_files(event_id, n, path) values('%q', 0, '%q')",
            r->id, r->path);
    }

    if (r->out) {
        output(r->id, "stdout", r->out, strlen(r->out));
    }

    if (r->err) {
        output(r->id, "stderr", r->err, strlen(r->err));
    }

    changed(r->id, "created");

    if (r->status == NULL || strcmp(r->status, "started") != 0) {
        changed(r->id, "completed");
    }

    sql("release one");
}

#define add(...)  record(&(rec_t) { __VA_ARGS__ })


/* A record leaves _gateway, the file at hand; the other one has it already. */
static void
moves(const char *id, const char *sandbox)
{
    sql("savepoint one");
    sql("delete from history_changes where event_id = '%q'", id);
    sql("delete from history_events where event_id = '%q'", id);
    sql("update gateway_records set moved_to = '%q' where event_id = '%q'",
        sandbox, id);
    sql("release one");
}


/* --- the index --------------------------------------------------------------------- */

/* Everything that was told is applied, up to this cursor. */
static uint64_t
applied(void)
{
    static uint64_t  cursor;

    cursor = cursor > (uint64_t) t.cursor ? cursor + 1
                                          : (uint64_t) t.cursor + 1;
    stats_set(STATS_APPLIED_CURSOR, cursor);

    return cursor;
}


/* Everything that is in the files is in the index when it returns. */
static void
sync_index(void)
{
    index_touch(t.ix, t.dir);
    assert_true(index_wait(t.ix, applied(), WAIT_MS));
}


static void
open_index(void)
{
    t.ix = index_new(t.base, t.history, false);
    assert_non_null(t.ix);
    assert_true(index_start(t.ix));
}


static int
setup(void **state)
{
    (void) state;

    memset(&t, 0, sizeof(t));
    tdir_make(t.path);
    (void) snprintf(t.history, sizeof(t.history), "%s/history", t.path);
    (void) snprintf(t.base, sizeof(t.base), "%s/index", t.path);
    (void) mkdir(t.history, 0700);
    (void) mkdir(t.base, 0700);
    open_index();

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    file_close();
    index_free(t.ix);
    tdir_remove(t.path);

    return 0;
}


/* Event ids of the hits, newest first, with blanks between. */
static const char *
ask_as(const history_filter_t *f, const char *dir, index_rc_e wanted)
{
    static char       out[8192];

    size_t            n;
    index_rc_e        rc;
    index_answer_t    a;
    index_question_t  q = { .filter = f, .dir = dir, .limit = 100 };

    rc = index_query(t.ix, &q, &a);

    if (rc != wanted) {
        fail_msg("index_query: %d %s", rc, a.why);
    }

    for (size_t i = n = 0; i < a.n; i++) {
        n += (size_t) snprintf(out + n, sizeof(out) - n, "%s%s", i ? " " : "",
                               a.hits[i].id);
    }

    out[n] = '\0';
    index_answer_free(&a);

    return out;
}


static const char *
ask(const char *name, const char *value)
{
    char              why[200];
    history_filter_t  f;

    history_filter_init(&f);
    f.console = true;

    if (name) {
        assert_int_equal(history_filter_set(&f, name, value, why, sizeof(why)),
                         SB_OK);
    }

    return ask_as(&f, NULL, INDEX_OK);
}

/* The file that the only record with this id, and no other, is in. */
static const char *
where(const char *id)
{
    static index_hit_t  hit;

    assert_string_equal(ask(NULL, NULL), id);
    assert_int_equal(index_find(t.ix, id, &hit), 1);

    return hit.dir;
}

#define finds(q, ids)  assert_string_equal(ask("q", q), ids)


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


/* Bounds of a question: what is over is told. */
static void
test_bounds(void **state)
{
    unsigned          i;
    char              id[16];
    index_facets_t    c;
    index_answer_t    a;
    index_numbers_t   n;
    history_filter_t  f;
    index_question_t  q = { .filter = &f, .limit = 10 };

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
    q.late = true;
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

    q.late = false;
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_OK);
    assert_int_equal(a.n, 0);
    index_answer_free(&a);

    f.q = "...";
    assert_int_equal(index_query(t.ix, &q, &a), INDEX_BAD);
    index_answer_free(&a);

    index_numbers(t.ix, &n);
    assert_int_equal(n.partial, 3);
    assert_int_equal(n.refused, 1);
    assert_int_equal(n.inexact, 2);
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
#define with(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)
        with(test_list),
        with(test_pages),
        with(test_text),
        with(test_injection),
        with(test_cut),
        with(test_growing),
        with(test_delete),
        with(test_rebuild),
        with(test_replaced),
        with(test_moved),
        with(test_moving),
        with(test_moved_meanwhile),
        with(test_moved_compared),
        with(test_tables_later),
        with(test_no_tables),
        with(test_foreign),
        with(test_copied),
        with(test_facets),
        with(test_bounds),
        with(test_types),
        with(test_sparse),
        with(test_parts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
