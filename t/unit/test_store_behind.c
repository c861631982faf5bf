/* Files that fall behind the journal: locked ones, backlogs, bounds. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_place.h"

#include "apply_int.h"
#include "id.h"
#include "schema.h"
#include "settled.h"
#include "stats.h"

#include <sys/resource.h>
#include <time.h>


/* Another process in the file: begins a transaction that writes. */
static sqlite3 *
hold(const char *dir)
{
    sqlite3  *db = open_file(dir);

    assert_int_equal(sqlite3_exec(db, "begin immediate", NULL, NULL, NULL),
                     SQLITE_OK);

    return db;
}


static void
let_go(sqlite3 *db)
{
    assert_int_equal(sqlite3_exec(db, "rollback", NULL, NULL, NULL),
                     SQLITE_OK);
    (void) sqlite3_close(db);
}


static void
nap(void)
{
    struct timespec  t;

    t.tv_sec = 0;
    t.tv_nsec = 5000000;
    (void) nanosleep(&t, NULL);
}


/* One locked file keeps nobody else waiting, and misses nothing later. */
static void
test_C102_locked_file(void **state)
{
    unsigned  i;
    sqlite3  *db;

    (void) state;

    seen("s1");
    seen("s2");
    begin(1, "command.execute", "s1", 1);
    put();
    whole(2, "file.list", "s1", "succeeded", 200);
    whole(3, "file.list", "s2", "succeeded", 200);
    go();

    db = hold("s1");

    output(1, 0, "one\n", 4, 2);
    whole(4, "file.read", "s1", "succeeded", 200);
    whole(5, "file.read", "s2", "succeeded", 200);
    assert_false(apply_all(p.apply));

    is("s1", "select count(*) from history_events", "2");
    is("s2", "select count(*) from history_events", "2");
    assert_int_equal(stats_get(STATS_STALLED), 1);
    assert_true(stats_get(STATS_STALLED_RECORDS) >= 3);

    /* what comes while it waits, in several batches */
    for (i = 6; i < 30; i += 2) {
        whole(i, "file.info", "s1", "failed", 404);
        whole(i + 1, "file.info", "s2", "succeeded", 200);
        assert_false(apply_all(p.apply));
    }

    output(1, 1, "two\n", 4, 3);
    end(1, "succeeded", 200, 9);
    put();
    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
    tf_str(&f, SB_T_SANDBOX, "s1");
    tf_str(&f, SB_T_STATE, "Paused");
    put();
    assert_false(apply_all(p.apply));
    is("s2", "select count(*) from history_events", "14");

    let_go(db);
    go();

    is("s1", "select count(*) || min(seq) || max(seq) from gateway_records",
       "15115");
    is("s1", "select group_concat(status) from history_events where"
       " operation_type <> 'file.info'", "succeeded,succeeded,succeeded");
    is("s1", "select cast(group_concat(data, '') as text) from"
       " (select data from command_output_chunks order by id)", "one\ntwo\n");
    is("s1", "select value from gateway_state where key = 'state'", "Paused");
    is("s1", "pragma integrity_check", "ok");
    assert_int_equal(stats_get(STATS_STALLED), 0);
    assert_int_equal(stats_get(STATS_STALLED_RECORDS), 0);

    whole(40, "file.read", "s1", "succeeded", 200);
    go();
    is("s1", "select max(seq) from gateway_records", "16");
}


/* Upstream deleted a sandbox: one record, which its file has to take twice, as the
 * end of the operation and as news of the sandbox. */
static void
test_deleted(void **state)
{
    unsigned  i, n;
    sqlite3  *db;

    (void) state;

    /* while its file is locked, behind as many as are read at a time */
    seen("s1");
    whole(1, "file.list", "s1", "succeeded", 200);
    go();
    db = hold("s1");

    for (n = 0; n < APPLY_SLICE / 2 - 1; n++) {
        whole(2 + n, "file.read", "s1", "succeeded", 200);
    }

    whole(2 + n, "sandbox.delete", "s1", "succeeded", 204);
    assert_false(apply_all(p.apply));
    let_go(db);
    go();
    is("s1", "select value from gateway_state where key = 'state'", "gone");
    is("s1", "select count(*) from history_events where status = 'started'", "0");

    /* at the end of a transaction */
    seen("s2");
    whole(5000, "file.list", "s2", "succeeded", 200);
    go();

    for (i = 0; i < APPLY_SLICE_IDLE / 2 - 1; i++) {
        whole(5001 + i, "file.read", "s2", "succeeded", 200);
    }

    whole(5001 + i, "sandbox.delete", "s2", "succeeded", 204);
    go();
    is("s2", "select value from gateway_state where key = 'state'", "gone");
}


/* Who reads on behind a cursor is told what comes in front of it later. */
static void
test_settled(void **state)
{
    sqlite3    *db;
    uint64_t    before, poll;
    settled_t   s;

    (void) state;

    seen("s1");
    seen("s2");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", "s2", "succeeded", 200);
    go();
    settled_get(&s);
    assert_true(settled_to(&s, NULL) == UINT64_MAX);

    db = hold("s1");
    before = journal_tail(p.journal).cursor;
    whole(3, "file.read", "s1", "succeeded", 200);
    whole(4, "file.read", "s2", "succeeded", 200);
    whole(5, "file.read", "s1", "succeeded", 200);
    assert_false(apply_all(p.apply));

    settled_get(&s);
    assert_int_equal(settled_to(&s, NULL), before);
    assert_int_equal(settled_to(&s, "s1"), before);
    assert_true(settled_to(&s, "s2") == UINT64_MAX);
    assert_int_equal(stats_get(STATS_APPLIED_CURSOR),
                     journal_tail(p.journal).cursor);

    let_go(db);
    go();
    settled_get(&s);
    assert_true(settled_to(&s, NULL) == UINT64_MAX);

    /* a poll gets the cursor of its beginning when it is over */
    poll_once(6, "sandbox.get", "s1", "succeeded");
    tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, 7, 7);
    tf_str(&f, SB_T_TYPE, "sandbox.get");
    tf_str(&f, SB_T_SANDBOX, "s1");
    put();
    poll = journal_tail(p.journal).cursor;
    whole(8, "file.read", "s2", "succeeded", 200);
    go();
    settled_get(&s);
    assert_int_equal(settled_to(&s, NULL), poll - 1);
    assert_true(settled_files(&s, NULL) == UINT64_MAX);

    end(7, "failed", 404, 1);
    put();
    go();
    settled_get(&s);
    assert_true(settled_to(&s, NULL) == UINT64_MAX);
}


/* More files than are told of: each counts for all. */
static void
test_settled_bounds(void **state)
{
    char       dir[16];
    unsigned   i;
    settled_t  s;

    (void) state;

    settled_init(&s);

    for (i = 0; i < SETTLED_FILES; i++) {
        (void) snprintf(dir, sizeof(dir), "s%u", i);
        settled_add(&s, dir, 100 + i);
    }

    assert_int_equal(settled_files(&s, "s7"), 107);
    assert_true(settled_files(&s, "t") == UINT64_MAX);

    settled_add(&s, "t", 50);
    assert_int_equal(settled_files(&s, "t"), 50);
    assert_int_equal(settled_files(&s, "s7"), 50);

    settled_init(&s);
    settled_add(&s, SCHEMA_GATEWAY, 9);
    settled_add(&s, SCHEMA_GATEWAY, 11);
    assert_int_equal(settled_files(&s, "s7"), 9);
}


/* A crash while a file is locked: its records are still in the journal. */
static void
test_locked_and_killed(void **state)
{
    sqlite3  *db;

    (void) state;

    seen("s1");
    seen("s2");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", "s2", "succeeded", 200);
    go();

    db = hold("s1");
    whole(3, "file.read", "s1", "succeeded", 200);
    whole(4, "file.read", "s2", "succeeded", 200);
    assert_false(apply_all(p.apply));

    stop();
    start(STORE_HANDLES);
    assert_false(apply_all(p.apply));
    is("s2", "select count(*) from history_events", "2");

    let_go(db);
    go();
    is("s1", "select group_concat(operation_type) from history_events",
       "file.list,file.read");
    is("s2", "select group_concat(operation_type) from history_events",
       "file.list,file.read");
}


static off_t
log_size(const char *dir)
{
    char         path[512];
    struct stat  st;

    assert_true(store_dir_path(path, sizeof(path) - 4, p.history, dir) != 0);
    (void) strcat(path, "-wal");

    return stat(path, &st) == 0 ? st.st_size : 0;
}


/* C101: a reader that never ends does not make the log grow without end: from
 * the bound on what comes waits in the journal, and others go on. */
static void
test_C101_endless_reader(void **state)
{
    char           path[512], text[8192], want[32];
    off_t          full;
    sqlite3       *db;
    unsigned       i, n;
    sqlite3_stmt  *st;

    (void) state;

    memset(text, 'x', sizeof(text));
    store_set_wal(p.store, 200);
    seen("s1");
    seen("s2");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", "s2", "succeeded", 200);
    go();

    /* one row is read, and no other */
    assert_true(store_dir_path(path, sizeof(path), p.history, "s1") != 0);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "select seq from history_changes",
                                        -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);

    for (n = 10; n < 200 && stats_get(STATS_STALLED) == 0; n++) {
        begin(n, "command.execute", "s1", n);
        put();
        output(n, 0, text, sizeof(text), n);
        end(n, "succeeded", 200, n + 5);
        put();
        (void) apply_all(p.apply);
    }

    assert_int_equal(stats_get(STATS_STALLED), 1);
    full = log_size("s1");
    assert_true(full >= 200 * 4096);

    for (i = 0; i < 20; i++, n++) {
        begin(n, "command.execute", "s1", n);
        put();
        output(n, 0, text, sizeof(text), n);
        end(n, "succeeded", 200, n + 5);
        put();
        whole(1000 + i, "file.list", "s2", "succeeded", 200);
        assert_false(apply_all(p.apply));
    }

    assert_int_equal(log_size("s1"), full);
    is("s2", "select count(*) from history_events", "21");

    /* the reader has its moment of it still, and ends */
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);

    go();
    (void) snprintf(want, sizeof(want), "%u %u", n - 10 + 1, n - 10 + 1);
    is("s1", "select count(*) || ' ' || max(seq) from gateway_records", want);
    is("s1", "pragma integrity_check", "ok");
    assert_true(log_size("s1") <= full);
    assert_int_equal(stats_get(STATS_STALLED), 0);
}


/* What a sandbox's file has of one operation: its status, and its output. */
static void
is_op(const char *dir, unsigned op, const char *want)
{
    char     id[SB_UUID_LEN + 1], sql[512];
    uint8_t  raw[16];

    tf_id(raw, op);
    sb_uuid_text(id, raw);
    (void) snprintf(sql, sizeof(sql), "select e.status || ' ' || coalesce("
                    "(select cast(group_concat(data, '') as text) from (select"
                    " data from command_output_chunks c where c.event_id ="
                    " e.event_id order by id)), '') from history_events e where"
                    " event_id = '%s'", id);
    is(dir, sql, want);
}


static void
created(unsigned op, const char *sandbox)
{
    end(op, "succeeded", 200, op + 5);
    tf_str(&f, SB_T_NEW_SANDBOX, sandbox);
    put();
}


/* While _gateway is locked: records of sandboxes that have a file, and of those
 * that must wait. */
static void
around_gateway(void)
{
    /* s1 goes on */
    output(1, 0, "one\n", 4, 2);
    whole(10, "file.list", "s1", "succeeded", 200);

    /* nothing is known of s3 but what is in _gateway already, and more */
    output(3, 0, "b\n", 2, 2);
    begin(11, "file.read", "s4", 3);
    put();
    (void) apply_all(p.apply);

    /* upstream shows that there is s4, and what was made is s5 */
    seen("s4");
    output(11, 0, "c\n", 2, 2);
    created(2, "s5");
    whole(12, "file.list", "s5", "succeeded", 200);
    whole(13, "sandbox.list", NULL, "succeeded", 200);
    (void) apply_all(p.apply);

    output(1, 0, "two\n", 4, 2);
    end(1, "succeeded", 200, 9);
    put();
    end(11, "succeeded", 200, 9);
    put();
    end(3, "succeeded", 200, 9);
    put();
    whole(14, "file.list", "s4", "succeeded", 200);
    whole(15, "file.list", "s5", "succeeded", 200);
    (void) apply_all(p.apply);
}


static void
before_gateway(void)
{
    seen("s1");
    begin(1, "command.execute", "s1", 1);
    put();
    whole(20, "file.list", "s1", "succeeded", 200);
    begin(2, "sandbox.create", NULL, 1);
    put();
    begin(3, "command.execute", "s3", 1);
    put();
    whole(21, "file.list", "s4", "failed", 502);
    go();
}


static void
after_gateway(void)
{
    go();

    assert_int_equal(stats_get(STATS_STALLED), 0);
    assert_int_equal(stats_get(STATS_STALLED_RECORDS), 0);

    is_op("s1", 1, "succeeded one\ntwo\n");
    is_op("s3", 3, "succeeded b\n");
    is_op("s4", 11, "succeeded c\n");
    is_op("s5", 2, "succeeded ");
    is("s1", "select count(*) || ' ' || max(seq) from gateway_records", "3 3");
    is("s3", "select count(*) || ' ' || max(seq) from gateway_records", "1 1");
    is("s4", "select count(*) || ' ' || max(seq) from gateway_records", "3 3");
    is("s5", "select count(*) || ' ' || max(seq) from gateway_records", "3 3");
    is("s4", "select count(*) from history_events where status = 'started'",
       "0");
    is("_gateway", "select group_concat(operation_type) from history_events",
       "sandbox.list");
    is("_gateway", "select count(*) from gateway_held", "0");
}


/* _gateway is locked: only what it is needed for waits. */
static void
test_locked_gateway(void **state)
{
    sqlite3  *db;

    (void) state;

    before_gateway();
    db = hold("_gateway");
    around_gateway();

    is_op("s1", 1, "succeeded one\ntwo\n");
    is("s1", "select count(*) from history_events", "3");
    assert_true(stats_get(STATS_STALLED) >= 1);
    assert_true(stats_get(STATS_STALLED_RECORDS) >= 4);

    /* nothing may be forgotten that is not in a file */
    assert_true(journal_applied_load(p.fd) < journal_tail(p.journal).cursor);

    let_go(db);
    after_gateway();
}


/* The same, and the helper dies meanwhile, once or with the lock still there
 * when it is back. */
static void
test_locked_gateway_and_killed(void **state)
{
    sqlite3  *db;

    (void) state;

    before_gateway();
    db = hold("_gateway");
    around_gateway();
    stop();
    start(STORE_HANDLES);
    (void) apply_all(p.apply);
    is_op("s1", 1, "succeeded one\ntwo\n");

    let_go(db);
    after_gateway();
}


/* What is held in _gateway, and has more that waits for it, moves once. */
static void
test_held_with_more_aside(void **state)
{
    sqlite3  *db;

    (void) state;

    begin(3, "command.execute", "s3", 1);
    put();
    go();
    is("_gateway", "select count(*) from gateway_held", "1");

    db = hold("_gateway");
    facts(3);
    tf_str(&f, SB_T_REQUEST, "{\"a\":1}");
    put();
    assert_false(apply_all(p.apply));
    output(3, 0, "b\n", 2, 2);
    assert_false(apply_all(p.apply));

    let_go(db);
    end(3, "succeeded", 200, 9);
    put();
    whole(4, "file.list", "s3", "succeeded", 200);
    (void) apply_all(p.apply);
    go();

    is_op("s3", 3, "succeeded b\n");
    is("s3", "select count(*) || ' ' || max(seq) from gateway_records", "2 2");
    is("s3", "select request_json from history_events limit 1", "{\"a\":1}");
    is("_gateway", "select count(*) from gateway_held", "0");
    assert_int_equal(stats_get(STATS_STALLED), 0);
}


/* What the disk gives back of a record is not what was written. */
static void
damage(uint32_t segment, off_t offset)
{
    int   fd;
    char  name[32], byte;

    (void) snprintf(name, sizeof(name), "%010u.seg", segment);
    fd = openat(p.fd, name, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, offset + JOURNAL_HEAD + 4), 1);
    byte ^= 0x55;
    assert_int_equal(pwrite(fd, &byte, 1, offset + JOURNAL_HEAD + 4), 1);
    close(fd);
}


/* Of what waits for a file, a beginning, an end, some output and a state are
 * damaged: the file goes on, with a gap for each; nothing stays open. */
static void
test_damaged_aside(void **state)
{
    size_t        i;
    sqlite3      *db;
    uint64_t      told;
    apply_box_t  *box;

    (void) state;

    seen("s1");
    begin(1, "command.execute", "s1", 1);
    put();
    begin(2, "command.execute", "s1", 1);
    put();
    go();

    db = hold("s1");
    output(1, 0, "one\n", 4, 2);
    output(2, 0, "two\n", 4, 2);
    end(1, "succeeded", 200, 9);
    put();
    end(2, "succeeded", 200, 9);
    put();
    whole(3, "file.read", "s1", "succeeded", 200);
    whole(4, "file.list", "s1", "succeeded", 200);
    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
    tf_str(&f, SB_T_SANDBOX, "s1");
    tf_str(&f, SB_T_STATE, "Paused");
    put();
    assert_false(apply_all(p.apply));

    box = apply_box(p.apply, sb_lit("s1"));
    assert_int_equal(box->naside, 9);

    /* output of 1, end of 2, beginning of 3, state */
    for (i = 0; i < box->naside; i++) {
        if (i == 0 || i == 3 || i == 4 || i == 8) {
            damage(box->aside[i].segment, box->aside[i].offset);
        }
    }

    told = stats_get(STATS_JOURNAL_DAMAGED);
    let_go(db);
    go();

    assert_int_equal(stats_get(STATS_STALLED), 0);
    assert_int_equal(stats_get(STATS_STALLED_RECORDS), 0);
    assert_int_equal(stats_get(STATS_JOURNAL_DAMAGED) - told, 4);
    is_op("s1", 1, "succeeded ");
    is_op("s1", 2, "unknown two\n");
    is("s1", "select ifnull(json_extract(result_json, '$.reason'), '-') from"
       " history_events where event_id like '%-000000000002'",
       "journal_damaged");
    is("s1", "select operation_type || status from history_events where"
       " operation_type like 'file.%'", "file.listsucceeded");
    is("s1", "select json_extract(result_json, '$.operations') ||"
       " ifnull(substr(json_extract(result_json, '$.operation_id'), -2), '-')"
       " from history_events where operation_type = 'gateway.gap' and"
       " json_extract(result_json, '$.reason') = 'journal_damaged' order by"
       " seq", "101;102;103;0-");
    is("s1", "select count(*) from history_events where status = 'started'",
       "0");
    is("s1", "pragma integrity_check", "ok");
}


/* What is damaged before it was read is passed over up to the next segment, or
 * to the end: a gap in _gateway. */
static void
test_damaged_ahead(void **state)
{
    journal_pos_t  at;
    uint64_t       told;

    (void) state;

    seen("s1");
    whole(1, "file.read", "s1", "succeeded", 200);
    at = journal_tail(p.journal);
    whole(2, "file.read", "s1", "succeeded", 200);
    assert_int_equal(journal_sync(p.journal), 0);
    damage(at.segment, at.offset);
    assert_int_equal(journal_roll(p.journal), 0);
    whole(3, "file.read", "s1", "succeeded", 200);
    told = stats_get(STATS_JOURNAL_DAMAGED);
    go();

    is("s1", "select count(*) from history_events", "2");
    is("_gateway", "select json_extract(result_json, '$.reason') from"
       " history_events where operation_type = 'gateway.gap'",
       "journal_damaged");
    assert_int_equal(stats_get(STATS_JOURNAL_DAMAGED) - told, 2);

    at = journal_tail(p.journal);
    whole(4, "file.read", "s1", "succeeded", 200);
    damage(at.segment, at.offset);
    go();
    whole(5, "file.read", "s1", "succeeded", 200);
    go();

    is("s1", "select count(*) from history_events", "3");
    is("_gateway", "select count(*) from history_events where operation_type ="
       " 'gateway.gap'", "2");
    assert_int_equal(stats_get(STATS_JOURNAL_DAMAGED) - told, 4);
}


/* More waits for a locked file than may: all wait, and when it goes on nothing
 * of anybody is missing. */
static void
test_no_room_to_wait(void **state)
{
    unsigned  i;
    sqlite3  *db;

    (void) state;

    seen("s1");
    seen("s2");
    begin(1, "command.execute", "s1", 1);
    put();
    begin(2, "command.execute", "s2", 1);
    put();
    whole(3, "file.list", "s2", "succeeded", 200);
    go();

    apply_set_aside(p.apply, 2);
    db = hold("s1");
    whole(4, "file.list", "s1", "succeeded", 200);
    assert_false(apply_all(p.apply));
    assert_int_equal(stats_get(STATS_STALLED_RECORDS), 2);

    /* one batch, and there is no room for what stands first in it */
    end(1, "succeeded", 200, 9);
    put();
    output(2, 0, "two\n", 4, 2);
    end(2, "succeeded", 200, 9);
    put();
    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
    tf_str(&f, SB_T_SANDBOX, "s2");
    tf_str(&f, SB_T_STATE, "Paused");
    put();

    for (i = 0; i < 3; i++) {
        assert_false(apply_all(p.apply));
    }

    is_op("s2", 2, "started ");

    let_go(db);
    (void) apply_all(p.apply);
    go();

    is_op("s1", 1, "succeeded ");
    is_op("s2", 2, "succeeded two\n");
    is("s1", "select count(*) || ' ' || max(seq) from gateway_records", "2 2");
    is("s2", "select count(*) || ' ' || max(seq) from gateway_records", "2 2");
    is("s2", "select value from gateway_state where key = 'state'", "Paused");
    assert_int_equal(stats_get(STATS_STALLED), 0);
    assert_int_equal(stats_get(STATS_STALLED_RECORDS), 0);
}


/* A poll that takes long has its row when the file can be opened again. */
static void
test_poll_without_descriptors(void **state)
{
    unsigned       i;
    struct rlimit  none, was;

    (void) state;

    stop();
    start(1);
    seen("s1");
    whole(1, "file.list", "s1", "succeeded", 200);
    poll_once(2, "sandbox.get", "s1", "succeeded");
    tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, 3, 3);
    tf_str(&f, SB_T_TYPE, "sandbox.get");
    tf_str(&f, SB_T_SANDBOX, "s1");
    put();
    go();

    /* the one handle is that of another file */
    seen("s2");
    whole(4, "file.list", "s2", "succeeded", 200);
    go();
    is("s1", "select count(*) from gateway_pending", "1");

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);

    for (i = 0; i < 3; i++) {
        assert_true(apply_force_pending(p.apply, T0 + i * 3000000));
    }

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);

    assert_true(apply_force_pending(p.apply, T0 + 9000000));
    is_op("s1", 3, "started ");
    is("s1", "select count(*) from gateway_pending", "0");

    end(3, "failed", 502, 9);
    put();
    go();
    is_op("s1", 3, "failed ");
}


static void
many(unsigned from, unsigned n)
{
    unsigned  i;

    for (i = from; i < from + n; i++) {
        whole(i, "file.list", "s1", "succeeded", 200);
    }
}


/* Stopping takes no longer than it may; the next start applies the rest. */
static void
test_stop_with_backlog(void **state)
{
    char      text[32];
    uint64_t  cursor;

    (void) state;

    seen("s1");
    many(1, 10);
    go();
    many(11, 24000);
    cursor = journal_tail(p.journal).cursor;

    /* one batch at least, and no time for more */
    apply_bounds(p.apply, APPLY_LAG_US, 0);
    assert_true(apply_start(p.apply));
    (void) apply_stop(p.apply);
    assert_true(journal_applied_load(p.fd) < cursor);

    stop();
    start(STORE_HANDLES);
    go();

    (void) snprintf(text, sizeof(text), "%d %d", 24010, 24010);
    is("s1", "select count(*) || ' ' || max(seq) from gateway_records", text);
    is("s1", "select count(*) from history_events where status <> 'succeeded'",
       "0");
    is("s1", "pragma integrity_check", "ok");
}


/* Records that are older than the bound (sandbox_history_lag) are applied in a hurry. */
static void
test_lag_bound(void **state)
{
    unsigned  i, n;
    uint64_t  hurries;

    (void) state;

    seen("s1");
    hurries = stats_get(STATS_APPLY_HURRIES);

    /* their time, T0, is long ago */
    apply_bounds(p.apply, 1000000, 10000000);
    assert_true(apply_start(p.apply));

    n = 1;

    for (i = 0; i < 4000 && stats_get(STATS_APPLY_HURRIES) == hurries; i++) {
        many(n, 100);
        n += 100;
        apply_wake(p.apply);
        nap();
    }

    assert_true(stats_get(STATS_APPLY_HURRIES) > hurries);

    for (i = 0; i < 4000 && stats_lag_records(); i++) {
        nap();
    }

    assert_int_equal(stats_lag_records(), 0);
    assert_int_equal(stats_lag_us(sb_now_us()), 0);
    assert_true(apply_stop(p.apply));
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_C102_locked_file),
        store_case(test_deleted),
        store_case(test_settled),
        store_case(test_settled_bounds),
        store_case(test_locked_and_killed),
        store_case(test_C101_endless_reader),
        store_case(test_locked_gateway),
        store_case(test_locked_gateway_and_killed),
        store_case(test_held_with_more_aside),
        store_case(test_damaged_aside),
        store_case(test_damaged_ahead),
        store_case(test_no_room_to_wait),
        store_case(test_poll_without_descriptors),
        store_case(test_stop_with_backlog),
        store_case(test_lag_bound)
    };

    return store_run(argc, argv, tests);
}
