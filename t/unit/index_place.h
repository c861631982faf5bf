/* History files, records in them, and an index that is asked about them. */

#ifndef INDEX_PLACE_H_INCLUDED
#define INDEX_PLACE_H_INCLUDED

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

static inline void
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


static inline void
file_close(void)
{
    (void) sqlite3_close(t.db);
    t.db = NULL;
}


static inline void
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


static inline void
file(const char *dir)
{
    schema_identity_t  id = { dir, "i", NULL, "2026-01-01T00:00:00.000000Z" };

    file_empty(dir);
    assert_int_equal(schema_create(t.db), SQLITE_OK);
    assert_int_equal(schema_write_meta(t.db, &id), SQLITE_OK);
}


static inline void
changed(const char *id, const char *what)
{
    sql("insert into history_changes(change_id, event_id, change_type,"
        " changed_at) values('%q:%q:' || hex(randomblob(4)), '%q', '%q',"
        " '2026-01-01T00:00:00.000000Z')", id, what, id, what);
}


static inline void
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


static inline void
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
static inline void
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
static inline uint64_t
applied(void)
{
    static uint64_t  cursor;

    cursor = cursor > (uint64_t) t.cursor ? cursor + 1
                                          : (uint64_t) t.cursor + 1;
    stats_set(STATS_APPLIED_CURSOR, cursor);

    return cursor;
}


/* Everything that is in the files is in the index when it returns. */
static inline void
sync_index(void)
{
    index_touch(t.ix, t.dir);
    assert_true(index_wait(t.ix, applied(), WAIT_MS));
}


static inline void
open_index(void)
{
    t.ix = index_new(t.base, t.history, false);
    assert_non_null(t.ix);
    assert_true(index_start(t.ix));
}


static inline int
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


static inline int
teardown(void **state)
{
    (void) state;

    file_close();
    index_free(t.ix);
    tdir_remove(t.path);

    return 0;
}


/* Event ids of the hits, newest first, with blanks between. */
static inline const char *
ask_as(const history_filter_t *f, const char *dir, index_rc_e wanted)
{
    static char       out[8192];

    size_t            n;
    index_rc_e        rc;
    index_answer_t    a;
    index_question_t  q = { .filter = f, .dir = dir, .limit = 100 };

    rc = index_query(t.ix, &q, &a);

    /* it says so while its file is made anew: who asks asks again */

    for (unsigned i = 0; rc == INDEX_FAILED && wanted != rc && i < 100; i++) {
        (void) usleep(50000);
        rc = index_query(t.ix, &q, &a);
    }

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


static inline const char *
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
static inline const char *
where(const char *id)
{
    static index_hit_t  hit;

    assert_string_equal(ask(NULL, NULL), id);
    assert_int_equal(index_find(t.ix, id, &hit), 1);

    return hit.dir;
}

#define finds(q, ids)  assert_string_equal(ask("q", q), ids)

#define with(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif /* INDEX_PLACE_H_INCLUDED */
