/* A store, a journal and what goes from the one to the other; for the tests of
 * what stands in history files. */

#ifndef STORE_PLACE_H_INCLUDED
#define STORE_PLACE_H_INCLUDED

#include "apply.h"
#include "helper_frames.h"
#include "id.h"
#include "log.h"
#include "store.h"

#include <fcntl.h>
#include <unistd.h>


typedef struct {
    char        path[64];
    char        history[80];
    int         fd;
    store_t    *store;
    journal_t  *journal;
    apply_t    *apply;
    uint64_t    seq;
} place_t;

static place_t   p;
static tframe_t  f;


/* The clock that limits see: T0 and so many seconds more. */
static inline void
clock_at(const char *path, int64_t s)
{
    int   n, fd;
    char  text[32];

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC, 0600);
    n = snprintf(text, sizeof(text), "%lld", (long long)
                 ((int64_t) (T0 / 1000000) + s
                  - (int64_t) (sb_now_us() / 1000000)));
    assert_int_equal(write(fd, text, (size_t) n), n);
    close(fd);
}


static inline void
scan(void *data, const journal_record_t *r)
{
    (void) data;
    apply_scan(p.apply, r);
}


static inline void
start(unsigned handles)
{
    char      why[256];
    uint64_t  from;

    p.store = store_new(p.history, handles, false);
    assert_non_null(p.store);

    from = journal_applied_load(p.fd);
    p.apply = apply_new(p.store, NULL, p.fd, from);
    assert_non_null(p.apply);

    p.journal = journal_open(p.fd, JOURNAL_SEGMENT, from, 0, scan, NULL, why,
                             sizeof(why));
    assert_non_null(p.journal);
    assert_true(apply_attach(p.apply, p.journal));
}


static inline void
stop(void)
{
    apply_free(p.apply);
    journal_close(p.journal);
    store_free(p.store);
}


static inline int
setup(void **state)
{
    char  dir[96];

    (void) state;

    memset(&p, 0, sizeof(p));
    tdir_make(p.path);
    (void) snprintf(p.history, sizeof(p.history), "%s/history", p.path);
    (void) mkdir(p.history, 0700);
    (void) snprintf(dir, sizeof(dir), "%s/journal", p.path);
    p.fd = tdir_open(dir);
    start(STORE_HANDLES);

    return 0;
}


static inline int
teardown(void **state)
{
    (void) state;

    stop();
    close(p.fd);
    tdir_remove(p.path);

    return 0;
}


/* Ends the frame at hand and appends it. */
static inline void
put(void)
{
    journal_item_t  item;

    item.instance = 1;
    item.frame = f.mem;
    item.len = tf_end(&f);
    assert_int_equal(journal_append(p.journal, &item, 1), 0);
}


static inline void
go(void)
{
    assert_true(apply_all(p.apply));
}


static inline void
begin(unsigned op, const char *type, const char *sandbox, uint64_t at_us)
{
    tf_begin(&f, SB_F_BEGIN, 0, ++p.seq, op, at_us);
    tf_str(&f, SB_T_TYPE, type);

    if (sandbox) {
        tf_str(&f, SB_T_SANDBOX, sandbox);
    }
}


static inline void
facts(unsigned op)
{
    tf_begin(&f, SB_F_FACTS, 0, ++p.seq, op, 0);
}


static inline void
end(unsigned op, const char *status, uint64_t http, uint64_t at_us)
{
    tf_begin(&f, SB_F_END, 0, ++p.seq, op, at_us);
    tf_str(&f, SB_T_STATUS, status);
    tf_u64(&f, SB_T_HTTP_STATUS, http);
    tf_u64(&f, SB_T_UPSTREAM_STATUS, http);
}


static inline void
seen(const char *sandbox)
{
    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
    tf_str(&f, SB_T_SANDBOX, sandbox);
    put();
}


/* A whole operation at once. */
static inline void
whole(unsigned op, const char *type, const char *sandbox, const char *status,
    uint64_t http)
{
    begin(op, type, sandbox, op);
    put();
    end(op, status, http, op + 5);
    put();
}


static inline void
poll_once(unsigned op, const char *type, const char *sandbox,
    const char *status)
{
    tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, op, op);
    tf_str(&f, SB_T_TYPE, type);
    tf_str(&f, SB_T_SANDBOX, sandbox);
    put();
    end(op, status, 200, op + 1);
    put();
}


static inline void
output(unsigned op, unsigned stream, const void *data, size_t n,
    uint64_t at_us)
{
    tf_begin(&f, SB_F_OUTPUT, 0, ++p.seq, op, at_us);
    tf_u64(&f, SB_T_STREAM, stream);
    sb_frame_put(&f.w, SB_T_DATA, sb_str(data, n));
    put();
}


/* A history file, as another process has it. */
static inline sqlite3 *
open_file(const char *dir)
{
    char      path[512];
    sqlite3  *db;

    assert_true(store_dir_path(path, sizeof(path), p.history, dir) != 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);

    return db;
}


/* ... which changes it. */
static inline void
change_file(const char *dir, const char *sql)
{
    sqlite3  *db = open_file(dir);

    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void) sqlite3_close(db);
}


/* First column of all rows, joined by ";"; "-" without a file, "" without a
 * row. */
static inline const char *
ask(const char *dir, const char *sql)
{
    char           path[512];
    size_t         n;
    sqlite3       *db;
    const char    *text;
    sqlite3_stmt  *st;

    static char    out[16384];

    assert_true(store_dir_path(path, sizeof(path), p.history, dir) != 0);

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        (void) sqlite3_close(db);
        return "-";
    }

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }

    n = 0;
    out[0] = '\0';

    while (sqlite3_step(st) == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        n += (size_t) snprintf(out + n, sizeof(out) - n, "%s%s", n ? ";" : "",
                               text ? text : "NULL");
    }

    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);

    return out;
}

#define is(dir, sql, want)  assert_string_equal(ask(dir, sql), want)

#define store_case(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)


/* All of them, or those that a pattern names, with the helper's log. */
#define store_run(argc, argv, tests)                                          \
    (argc > 1 ? cmocka_set_test_filter(argv[1])                               \
              : (void) log_open("/dev/null"),                                 \
     cmocka_run_group_tests(tests, NULL, NULL))

#endif /* STORE_PLACE_H_INCLUDED */
