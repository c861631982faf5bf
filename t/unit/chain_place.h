/* History files with a chain, and heads that are signed; for the tests of what
 * verify finds. */

#ifndef CHAIN_PLACE_H_INCLUDED
#define CHAIN_PLACE_H_INCLUDED

#include "chain_verify.h"
#include "retain_int.h"
#include "store_place.h"


static int       dirfd_history;
static int       dirfd_keys;
static keys_t   *keys;
static heads_t  *heads;
static verify_t  v;


static inline void
begin_heads(void)
{
    heads = heads_new(dirfd_history, keys);
    assert_non_null(heads);
    store_set_heads(p.store, heads);
}


static inline int
setup_chain(void **state)
{
    char  why[256], dir[96];

    setup(state);
    (void) snprintf(dir, sizeof(dir), "%s/keys", p.path);
    dirfd_keys = tdir_open(dir);
    dirfd_history = tdir_open(p.history);
    keys = keys_open(dirfd_keys, why, sizeof(why));
    assert_non_null(keys);
    begin_heads();

    return 0;
}


static inline int
teardown_chain(void **state)
{
    store_set_heads(p.store, NULL);
    heads_free(heads);
    keys_free(keys);
    close(dirfd_keys);
    close(dirfd_history);

    return teardown(state);
}


static inline void
change(sqlite3 *db, const char *sql)
{
    char  *why = NULL;

    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", sql, why);
    }
}


/* The fault that is found; "" when there is none, else why it cannot be told.
 * The file that is there, or an archived one. */
static inline const char *
verified_file(const char *dir, const char *archived)
{
    char           path[128];
    sqlite3       *db;
    verify_rc_e    rc;
    verify_conf_t  conf = {
        .dir = dir, .heads = path, .keys = keys, .archived = archived != NULL
    };

    (void) snprintf(path, sizeof(path), "%s/" HEADS_FILE, p.history);

    if (archived) {
        assert_int_equal(sqlite3_open(archived, &db), SQLITE_OK);

    } else {
        db = open_file(dir);
    }

    rc = chain_verify(db, &conf, &v);
    (void) sqlite3_close(db);

    return rc == VERIFY_OK ? "" : rc == VERIFY_FAULT ? v.fault : v.why;
}


static inline const char *
verified(const char *dir)
{
    return verified_file(dir, NULL);
}

#define verifies(dir)      assert_string_equal(verified(dir), "")
#define faults(dir, kind)  assert_string_equal(verified(dir), kind)


static inline void
sign(void)
{
    store_heads_sign(p.store, T0);
    assert_false(heads_any(heads));
}


/* A command with some output, begun and not ended. */
static inline void
begins(unsigned op)
{
    begin(op, "command.execute", "a", op);
    put();
    facts(op);
    tf_str(&f, SB_T_COMMAND, "make");
    put();
    output(op, 0, "one\n", 4, op);
    go();
}


static inline void
ends(unsigned op)
{
    end(op, "succeeded", 200, op + 5);
    put();
    go();
}


static inline store_db_t *
opened(const char *dir)
{
    int          rc;
    store_db_t  *db;

    db = store_get(p.store, dir, false, &rc);
    assert_non_null(db);

    return db;
}


/* Deletes what a query names, in one purge. */
static inline void
purges(const char *sql)
{
    size_t         n;
    int64_t        seqs[PURGE_EVENTS];
    store_db_t    *db;
    sqlite3_stmt  *st;
    purge_done_t   done = { 0 };
    purge_rule_t   rule = { .rule = "cleanup", .now_us = T0 };

    db = opened("a");
    assert_int_equal(sqlite3_prepare_v2(db->db, sql, -1, &st, NULL),
                     SQLITE_OK);

    for (n = 0; sqlite3_step(st) == SQLITE_ROW; n++) {
        assert_true(n < PURGE_EVENTS);
        seqs[n] = sqlite3_column_int64(st, 0);
    }

    (void) sqlite3_finalize(st);
    assert_true(n > 0);
    assert_int_equal(purge_events(db, seqs, n, &rule, &done), SQLITE_OK);
}


static inline void
purges_op(unsigned op)
{
    char  sql[160];

    (void) snprintf(sql, sizeof(sql), "select seq from history_events where"
                    " event_id like '01000000-%%-%012x'", op);
    purges(sql);
}


/* --- forged ------------------------------------------------------------- */

/* Appends an entry whose hash is right for what now stands in the file. */
static inline void
forge(sqlite3 *db, chain_kind_e kind, const char *event, sb_str_t detail)
{
    int64_t        seq;
    uint8_t        hash[CHAIN_HASH];
    sb_buf_t       text = { .max = CHAIN_TEXT_MAX };
    sqlite3_stmt  *st;
    chain_stmts_t  stmts = { 0 };

    assert_int_equal(sqlite3_prepare_v2(db, "select hash from gateway_chain"
                                        " order by n desc limit 1", -1, &st,
                                        NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    memcpy(hash, sqlite3_column_blob(st, 0), CHAIN_HASH);
    (void) sqlite3_finalize(st);

    seq = 0;

    if (kind == CHAIN_PURGE) {
        /* of no record */

    } else if (detail.data) {
        assert_int_equal(chain_seq(db, &stmts, event, &seq), SQLITE_OK);

    } else {
        assert_int_equal(chain_content(db, &stmts, kind, event, &text, &seq),
                         SQLITE_OK);
    }

    chain_hash(hash, hash, seq, kind, detail.data ? detail
                                      : sb_str(text.data, text.len));

    assert_int_equal(sqlite3_prepare_v2(db, "insert into gateway_chain(n,"
                                        " event_id, kind, detail, hash) select"
                                        " max(n) + 1, ?1, ?2, ?3, ?4 from"
                                        " gateway_chain", -1, &st, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(st, 1, event, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, chain_kind_name(kind), -1, SQLITE_STATIC);

    if (detail.data) {
        sqlite3_bind_text(st, 3, detail.data, (int) detail.len, SQLITE_STATIC);
    }

    sqlite3_bind_blob(st, 4, hash, CHAIN_HASH, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(st), SQLITE_DONE);
    (void) sqlite3_finalize(st);
    sb_buf_free(&text);
    chain_stmts_free(&stmts);
}


/* When the heads are next written they begin a new file. */
static inline void
turns(void)
{
    int  fd;

    fd = openat(dirfd_history, HEADS_FILE, O_WRONLY|O_CLOEXEC);
    assert_true(fd != -1);
    assert_int_equal(ftruncate(fd, HEADS_BYTES), 0);
    close(fd);
}


/* The sandbox is gone, its file goes to the archive. */
static inline void
archives(const char *clock, int64_t s, char *to, size_t size)
{
    DIR            *d;
    char            path[512];
    unsigned        n;
    retain_t       *retain;
    retain_conf_t   conf;
    struct dirent  *e;
    retain_hooks_t  hooks = {
        .data = p.apply, .busy = apply_busy, .removed = apply_removed
    };

    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, (uint64_t) s * 1000000);
    tf_str(&f, SB_T_SANDBOX, "a");
    tf_str(&f, SB_T_STATE, "gone");
    put();
    go();
    sign();

    retain_defaults(&conf);
    conf.on_delete = RETAIN_ON_DELETE_ARCHIVE;
    conf.clock = clock;
    clock_at(clock, s + 60);
    retain = retain_new(&conf, p.store, &hooks);
    assert_non_null(retain);
    apply_retain(p.apply, retain);

    for (n = 0; retain_work(retain, UINT64_MAX, 1000000); n++) {
        assert_true(n < 1000);
    }

    apply_retain(p.apply, NULL);
    retain_free(retain);

    (void) snprintf(path, sizeof(path), "%s/archive", p.history);
    d = opendir(path);
    assert_non_null(d);
    to[0] = '\0';

    while ((e = readdir(d)) != NULL) {
        if (retain_archived(e->d_name)) {
            (void) snprintf(path, sizeof(path), "%s/archive/%s", p.history,
                            e->d_name);

            if (strcmp(path, to) > 0) {
                assert_true(strlen(path) < size);
                (void) strcpy(to, path);
            }
        }
    }

    closedir(d);
    assert_true(to[0]);
}


#define EVENT_1  "01000000-0000-7000-8000-000000000001"

#define chain_case(fn)                                                        \
    cmocka_unit_test_setup_teardown(fn, setup_chain, teardown_chain)

#endif /* CHAIN_PLACE_H_INCLUDED */
