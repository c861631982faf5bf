/* Records of an answer that are not where the index has seen them. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "helper_frames.h"

#include "ask_records.h"
#include "schema.h"
#include "stats.h"

#include <sys/stat.h>
#include <unistd.h>


static struct {
    char      path[64];
    api_t     api;
    sqlite3  *db;               /* the file that was opened last */
} t;


static void
sql(const char *text)
{
    if (sqlite3_exec(t.db, text, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", text, sqlite3_errmsg(t.db));
    }
}


static void
file(const char *dir)
{
    char               path[512];
    schema_identity_t  id = { dir, "i", NULL, "2026-01-01T00:00:00.000000Z" };

    (void) sqlite3_close(t.db);
    (void) snprintf(path, sizeof(path), "%s/%s", t.path, dir);
    (void) mkdir(path, 0700);
    assert_true(store_dir_path(path, sizeof(path), t.path, dir) != 0);
    assert_int_equal(sqlite3_open(path, &t.db), SQLITE_OK);
    assert_int_equal(schema_pragmas(t.db, true), SQLITE_OK);
    assert_int_equal(schema_create(t.db), SQLITE_OK);
    assert_int_equal(schema_write_meta(t.db, &id), SQLITE_OK);
}


static void
add(const char *id)
{
    char  text[512];

    (void) snprintf(text, sizeof(text), "insert into history_events(event_id,"
                    " provider_key, sandbox_id, sandbox_instance_id,"
                    " actor_type, operation_type, status, occurred_at)"
                    " values('%s', 'p', 's', 'i', 'agent', 'file.read',"
                    " 'succeeded', '2026-01-01T00:00:00.000000Z');"
                    "insert into gateway_records(event_id, cursor) values('%s',"
                    " 7)", id, id);
    sql(text);
}


static int
setup(void **state)
{
    (void) state;

    memset(&t, 0, sizeof(t));
    tdir_make(t.path);
    t.api.readers = readers_new(t.path, false, 4);
    assert_non_null(t.api.readers);
    file("s1");
    add("other");
    add("moved");
    file("_gateway");
    add("stays");
    add("gone");
    add("moved");
    add("purged");
    sql("delete from history_events where event_id not like 'stays';"
        "update gateway_records set moved_to = 's1' where event_id in"
        " ('moved', 'purged')");

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    readers_free(t.api.readers);
    (void) sqlite3_close(t.db);
    tdir_remove(t.path);

    return 0;
}


static ask_records_t
tell(sb_out_t *out, const char *id, int64_t row)
{
    index_hit_t    hit;
    ask_records_t  r;

    memset(&hit, 0, sizeof(hit));
    memset(out, 0, sizeof(sb_out_t));
    out->buf.max = 65536;
    (void) strcpy(hit.dir, "_gateway");
    (void) strcpy(hit.id, id);
    hit.row = row;
    ask_records(&t.api, out, &hit, 1, 65536, &r);
    assert_int_equal(out->rc, SB_OK);

    return r;
}


static void
test_records(void **state)
{
    char           want[32];
    ask_records_t  r;
    sb_out_t       out;

    static const struct {
        const char  *id;
        int64_t      row;
        bool         told;
    } cases[] = {
        { "stays", 1, true }, { "gone", 2, false }, { "moved", 3, true },
        { "purged", 4, false }, { "stays", 2, false }
    };

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        r = tell(&out, cases[i].id, cases[i].row);
        assert_int_equal(r.written, cases[i].told);
        assert_int_equal(r.taken, 1);
        assert_false(r.unreadable);

        if (cases[i].told) {
            (void) snprintf(want, sizeof(want), "\"id\":\"%s\"", cases[i].id);
            assert_non_null(memmem(out.buf.data, out.buf.len, want,
                                   strlen(want)));
        }

        sb_buf_free(&out.buf);
    }
}


/* It has moved into a file that cannot be read. */
static void
test_unreadable(void **state)
{
    FILE           *f;
    char            path[128];
    ask_records_t   r;
    sb_out_t        out;

    (void) state;

    (void) snprintf(path, sizeof(path), "%s/s1/history.sqlite3", t.path);
    assert_int_equal(unlink(path), 0);
    f = fopen(path, "w");
    assert_non_null(f);
    (void) fprintf(f, "no database at all, whatever its name says");
    (void) fclose(f);

    r = tell(&out, "moved", 3);
    assert_int_equal(r.written, 0);
    assert_true(r.unreadable);
    sb_buf_free(&out.buf);
}


static void
test_take_of(void **state)
{
    int64_t           row;
    reader_t         *reader;
    history_error_t   err;

    (void) state;

    row = 3;
    assert_int_equal(reader_take_of(t.api.readers, "_gateway", "moved", &row,
                                    &reader, &err), READER_OK);
    assert_string_equal(reader->dir, "s1");
    assert_int_equal(row, 2);
    reader_give(t.api.readers, reader, false);

    row = 1;
    assert_int_equal(reader_take_of(t.api.readers, "_gateway", "stays", &row,
                                    &reader, &err), READER_OK);
    assert_string_equal(reader->dir, "_gateway");
    assert_int_equal(row, 1);
    reader_give(t.api.readers, reader, false);

    assert_int_equal(reader_take_of(t.api.readers, "_gateway", "purged", &row,
                                    &reader, &err), READER_MISSING);
    assert_int_equal(reader_take_of(t.api.readers, "_gateway", "purged", NULL,
                                    &reader, &err), READER_OK);
    reader_give(t.api.readers, reader, false);
    assert_int_equal(reader_take_of(t.api.readers, "none", "moved", &row,
                                    &reader, &err), READER_MISSING);
}


/* Takes a file; was it open? */
static bool
warm(const char *dir, reader_t **reader)
{
    uint64_t         idle;
    history_error_t  err;

    idle = stats_get(STATS_READERS);
    assert_int_equal(reader_take(t.api.readers, dir, reader, &err), READER_OK);
    assert_string_equal((*reader)->dir, dir);

    return stats_get(STATS_READERS) == idle - 1;
}


static void
touch(const char *dir)
{
    reader_t  *r;

    (void) warm(dir, &r);
    reader_give(t.api.readers, r, false);
}


/* As many as told stay open: those used last. */
static void
test_idle(void **state)
{
    char       dir[8];
    unsigned   i;
    reader_t  *a, *b;

    (void) state;

    assert_int_equal(stats_get(STATS_READERS_MAX), 4);

    for (i = 1; i <= 6; i++) {
        (void) snprintf(dir, sizeof(dir), "f%u", i);
        file(dir);
        touch(dir);
        assert_true(stats_get(STATS_READERS) <= 4);
    }

    /* 3 4 5 6, and 3 is used once more */
    touch("f3");
    file("f7");
    touch("f7");
    assert_true(warm("f3", &a));
    assert_false(warm("f3", &b));
    reader_give(t.api.readers, a, false);
    reader_give(t.api.readers, b, false);
    assert_int_equal(stats_get(STATS_READERS), 4);

    /* 3 3 7 6 */
    assert_true(warm("f3", &a));
    assert_true(warm("f3", &b));
    reader_give(t.api.readers, a, true);
    reader_give(t.api.readers, b, true);
    assert_true(warm("f7", &a));
    assert_true(warm("f6", &b));
    assert_int_equal(stats_get(STATS_READERS), 0);
    reader_give(t.api.readers, a, false);
    reader_give(t.api.readers, b, false);
    assert_false(warm("f5", &a));
    assert_int_equal(stats_get(STATS_READERS), 2);
    reader_give(t.api.readers, a, false);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_take_of, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
