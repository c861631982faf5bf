/* Limits of history files: age, size, sum, holds, archives; the clock is moved
 * by hand. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "limits_place.h"
#include "stats.h"


static const char  whole_sql[] =
    "select (select count(*) from command_output_chunks where event_id not in"
    " (select event_id from history_events)) + (select count(*) from"
    " command_executions where event_id not in (select event_id from"
    " history_events)) + (select count(*) from gateway_wire where event_id not"
    " in (select event_id from history_events)) + (select count(*) from"
    " gateway_output where event_id not in (select event_id from"
    " history_events)) + (select count(*) from history_changes where event_id"
    " not in (select event_id from history_events))";


/* What is too old goes by itself (sandbox_history_ttl), a tombstone says so. */
static void
test_ttl(void **state)
{
    unsigned  i;

    (void) state;

    seen("a");

    for (i = 0; i < 10; i++) {
        command(1 + i, "a", 100, i * DAY);
    }

    go();
    at(9 * DAY - 10);
    work();

    /* completed before day 2 */
    is("a", "select operation_type || ' ' || occurred_at from history_events"
       " order by seq limit 1", "command.execute 2026-12-01T09:00:00.000000Z");
    is("a", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "8");
    is("a", "select status || json_extract(result_json, '$.operations') ||"
       " json_extract(result_json, '$.rule') || json_extract(result_json,"
       " '$.from_seq') || json_extract(result_json, '$.to_seq') from"
       " history_events where operation_type = 'gateway.purge'",
       "succeeded2ttl12");
    is("a", whole_sql, "0");
    is("a", "select group_concat(seq, ' ') from (select seq from"
       " gateway_records order by seq)", "3 4 5 6 7 8 9 10 11");
    is("a", "pragma integrity_check", "ok");

    /* off: nothing goes */
    conf.ttl_us = 0;
    at(400 * DAY);
    work();
    is("a", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "8");

    /* all of it; its tombstone stays, and what comes is numbered on */
    conf.ttl_us = RETAIN_TTL;
    work();
    is("a", "select operation_type || json_extract(result_json,"
       " '$.operations') || json_extract(result_json, '$.operations_total')"
       " from history_events", "gateway.purge22;gateway.purge810");
    command(100, "a", 10, 400 * DAY);
    go();
    is("a", "select max(seq) from gateway_records", "13");
}


/* A folded record goes as the operations that it stands for. */
static void
test_folded(void **state)
{
    (void) state;

    seen("a");
    command(1, "a", 100, 0);
    command(2, "a", 100, 1);
    go();
    change_file("a",
        "insert into gateway_folded select event_id, 6, occurred_at, 1"
        " from history_events order by seq limit 1");
    at(400 * DAY);
    work();
    is("a", "select operation_type || json_extract(result_json,"
       " '$.operations') || ',' || json_extract(result_json,"
       " '$.operations_total') from history_events", "gateway.purge8,8");
}


/* An operation that has not ended is never taken, however old it is. */
static void
test_open(void **state)
{
    (void) state;

    seen("a");
    begin(1, "command.execute", "a", 1);
    put();
    command(2, "a", 100, 1);
    go();
    at(100 * DAY);
    work();
    is("a", "select operation_type || status from history_events order by seq",
       "command.executestarted;gateway.purgesucceeded");
    end(1, "succeeded", 200, 5000000);
    put();
    go();
    is("a", "select status from history_events where operation_type ="
       " 'command.execute'", "succeeded");
}


/* The size of a file: the oldest go, the file shrinks (C117). */
static void
test_size_C117(void **state)
{
    unsigned  i;
    uint64_t  before;

    (void) state;

    conf.size = 4 * 1024 * 1024;
    apply_retain(p.apply, NULL);
    seen("a");

    for (i = 0; i < 64; i++) {
        command(1 + i, "a", 160000, i);
    }

    go();
    assert_true(store_tidy(p.store, SIZE_MAX));
    before = size_of("a");
    assert_true(before > 10 * 1000 * 1000);

    at(100);
    work();

    assert_true(size_of("a") < 5 * 1024 * 1024);
    is("a", "select (count(*) > 15) || (count(*) < 30) || (min(occurred_at) >"
       " '2026-11-29T09:00:30') || ( max(occurred_at) ="
       " '2026-11-29T09:01:03.000000Z') from history_events where"
       " operation_type = 'command.execute'", "1111");
    is("a", "select json_extract(result_json, '$.rule') || (json_extract("
       "result_json, '$.output_bytes') > 5000000) from history_events where"
       " operation_type = 'gateway.purge'", "size1");
    is("a", "select freelist_count < 256 from pragma_freelist_count", "1");
    is("a", whole_sql, "0");
    is("a", "pragma integrity_check", "ok");
}


/* What is young stays, whatever the size; and what consumers have not seen. */
static void
test_protected(void **state)
{
    unsigned  i;

    (void) state;

    conf.size = 1024 * 1024;
    conf.keep_us = 600u * 1000000u;
    apply_retain(p.apply, NULL);
    seen("a");

    for (i = 0; i < 20; i++) {
        command(1 + i, "a", 160000, i * 60);
    }

    go();

    /* 10 of 20 are older than ten minutes */
    at(20 * 60 - 10);
    work();
    is("a", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "10");

    conf.keep_us = 0;
    change_file("a",
        "insert into history_consumers values('c', (select max(seq)"
        " from history_changes where event_id = (select event_id from"
        " history_events where operation_type = 'command.execute' order by"
        " seq limit 1 offset 3)), '2026-11-29T09:00:00.000000Z')");
    work();
    is("a", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "6");

    /* 30 days without a word: it does not count any more */
    conf.ttl_us = 0;
    at(31 * DAY);
    work();
    is("a", "select count(*) < 6 from history_events where operation_type ="
       " 'command.execute'", "1");
}


/* Where nothing may be deleted yet, that is not asked anew with each commit:
 * the whole file is read for it. */
static void
test_dry(void **state)
{
    unsigned        i;
    retain_file_t  *file;

    (void) state;

    conf.size = 1024 * 1024;
    conf.keep_us = 600u * 1000000u;
    apply_retain(p.apply, NULL);
    seen("a");

    for (i = 0; i < 6; i++) {
        command(1 + i, "a", 160000, 300 + i);
    }

    go();
    at(400);
    work();
    file = retain_file(retain, "a", false);
    assert_true(file->dry);

    command(20, "a", 10, 400);
    go();
    assert_true(file->dry);
    is("a", "select count(*) from history_events", "7");

    /* the first is old enough in 500 s, so it is asked in a minute */
    assert_true(file->dry_us > sb_mono_us() + RETAIN_SWEEP_US / 2);
    file->dry_us = 0;
    at(1000);
    command(21, "a", 10, 1000);
    go();
    assert_false(file->dry);

    work();
    is("a", "select count(*) < 7 from history_events where operation_type ="
       " 'command.execute'", "1");
}


static void
test_hold(void **state)
{
    int          rc;
    bool         changed;
    store_db_t  *db;

    (void) state;

    seen("a");
    seen("b");
    command(1, "a", 100, 0);
    command(2, "b", 100, 0);
    go();

    db = store_get(p.store, "a", false, &rc);
    assert_int_equal(retain_hold(retain, db, true, "sue", &changed),
                     SQLITE_OK);
    assert_true(changed);
    assert_int_equal(retain_hold(retain, db, true, "sue", &changed),
                     SQLITE_OK);
    assert_false(changed);

    conf.holds[0] = "b";
    conf.nholds = 1;
    at(100 * DAY);
    work();
    is("a", "select operation_type || ifnull(actor_id, '') from history_events"
       " order by seq", "command.execute;gateway.holdsue");
    is("b", "select operation_type from history_events", "command.execute");

    db = store_get(p.store, "a", false, &rc);
    assert_int_equal(retain_hold(retain, db, false, "sue", &changed),
                     SQLITE_OK);
    assert_true(changed);
    conf.nholds = 0;
    work();
    is("a", "select operation_type from history_events where operation_type ="
       " 'command.execute'", "");
    is("b", "select operation_type from history_events", "gateway.purge");
}


/* The sum (sandbox_history_total): the oldest of all files goes first. */
static void
test_total(void **state)
{
    unsigned  i;

    (void) state;

    conf.total = 4 * 1024 * 1024;
    apply_retain(p.apply, NULL);
    seen("a");
    seen("b");

    for (i = 0; i < 20; i++) {
        command(1 + i, "a", 160000, i);
        command(101 + i, "b", 160000, 1000 + i);
    }

    go();
    assert_true(store_tidy(p.store, SIZE_MAX));
    at(2000);
    work();

    is("b", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "20");
    is("a", "select count(*) < 8 from history_events where operation_type ="
       " 'command.execute'", "1");
    is("a", "select json_extract(result_json, '$.rule') from history_events"
       " where operation_type = 'gateway.purge'", "total");
    assert_true(size_of("a") + size_of("b") <= conf.total);
}


/* The same without an age limit, for the look at which nothing would be known of
 * how old things are. */
static void
test_total_alone(void **state)
{
    conf.ttl_us = 0;
    test_total(state);
}


/* stop_recording: output is not kept and says so, then operations become a
 * gap. */
static void
test_stop_recording(void **state)
{
    unsigned  i, n;

    (void) state;

    conf.size = 2 * 1024 * 1024;
    conf.overflow = RETAIN_STOP_RECORDING;
    limits();
    seen("a");

    for (i = 0; i < 12; i++) {
        command(1 + i, "a", 160000, i);
        go();
    }

    /* one that is cut in the middle, told before it ends */
    begin(50, "command.execute", "a", 50000000);
    put();
    facts(50);
    tf_str(&f, SB_T_COMMAND, "make");
    put();
    go();
    output(50, 0, "abc", 3, 50000001);
    go();
    is("a", "select output_complete || history_storage_state from"
       " command_executions where event_id like '%-000000000032'",
       "0metadata_only");
    is("a", "select change_type from history_changes where event_id like"
       " '%-000000000032' order by seq", "created;storage_state_changed");
    end(50, "succeeded", 200, 51000000);
    put();
    go();
    is("a", "select e.status || c.output_complete || c.history_storage_state"
       " || json_extract(e.result_json, '$.output_dropped_bytes') ||"
       " json_extract(e.result_json, '$.output_dropped_by')"
       " from history_events e join command_executions c using (event_id)"
       " where e.event_id like '%-000000000032'",
       "succeeded0metadata_only3history_full");

    /* whole ones: records without output */
    command(60, "a", 160000, 60);
    go();
    is("a", "select e.status || c.output_complete || c.history_storage_state"
       " || json_extract(e.result_json, '$.output_dropped_bytes')"
       " from history_events e join command_executions c using (event_id)"
       " where e.event_id like '%-00000000003c'",
       "succeeded0metadata_only160000");

    /* until there is no room for these either */
    for (n = 0, i = 100; i < 2000 && n == 0; i += 50) {
        unsigned  k;

        for (k = 0; k < 50; k++) {
            command(i + k, "a", 100, 100 + i + k);
        }

        go();
        n = stats_get(STATS_UNKEPT) != 0;
    }

    assert_int_equal(n, 1);
    work();
    is("a", "select json_extract(result_json, '$.operations') > 0 from"
       " history_events where operation_type = 'gateway.gap' and"
       " json_extract(result_json, '$.reason') = 'history_full'", "1");
    assert_true(size_of("a") < 3 * 1024 * 1024);

    /* what goes by its age makes room */
    at(100 * DAY);
    work();
    limits();
    command(3000, "a", 100, 100 * DAY);
    go();
    is("a", "select c.history_storage_state from history_events e join"
       " command_executions c using (event_id)", "complete");
    is("a", "pragma integrity_check", "ok");
}


/* What was counted in a transaction that did not happen counts once. */
static void
test_stop_recording_again(void **state)
{
    char      path[512];
    sqlite3  *db;
    unsigned  i;
    uint64_t  bytes;

    (void) state;

    conf.size = 2 * 1024 * 1024;
    conf.overflow = RETAIN_STOP_RECORDING;
    limits();
    seen("a");

    for (i = 0; i < 12; i++) {
        command(1 + i, "a", 160000, i);
        go();
    }

    begin(50, "command.execute", "a", 50000000);
    put();
    facts(50);
    tf_str(&f, SB_T_COMMAND, "make");
    put();
    go();

    /* the first try ends with a record that does not fit */
    assert_true(store_dir_path(path, sizeof(path), p.history, "a") != 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "create trigger a before insert on"
                                  " history_events when new.operation_type ="
                                  " 'file.read' begin select raise(abort, 'no');"
                                  " end", NULL, NULL, NULL), SQLITE_OK);
    (void) sqlite3_close(db);

    bytes = stats_get(STATS_UNKEPT_BYTES);
    output(50, 0, "abc", 3, 50000001);
    whole(51, "file.read", "a", "succeeded", 200);
    go();
    assert_int_equal(stats_get(STATS_UNKEPT_BYTES), bytes + 3);
    is("a", "select output_complete || history_storage_state from"
       " command_executions where event_id like '%-000000000032'",
       "0metadata_only");
    end(50, "succeeded", 200, 51000000);
    put();
    go();
    is("a", "select json_extract(result_json, '$.output_dropped_bytes') from"
       " history_events where event_id like '%-000000000032'", "3");
}


/* Operations that are counted because the file was full: told, and not yet. */
static unsigned
unkept(void)
{
    return (unsigned) atoi(ask("a", "select (select ifnull(sum(operations), 0)"
                               " from gateway_gaps) + (select ifnull(sum(value)"
                               ", 0) from gateway_state where key ="
                               " 'unkept')"));
}


/* C102: killed while a file is full, before and after the gap is told: what
 * comes again from the journal is counted once. */
static void
test_full_replayed(void **state)
{
    unsigned  i, n, rows;

    (void) state;

    conf.size = 1024 * 1024;
    conf.overflow = RETAIN_STOP_RECORDING;
    limits();
    seen("a");
    rows = 0;

    for (i = 0; unkept() < 3; i++) {
        assert_true(i < 200);
        command(1 + i, "a", 16000, i);
        go();
    }

    n = unkept();
    rows = (unsigned) atoi(ask("a", "select count(*) from history_events"));
    assert_int_equal(rows + n, i);

    for (i = 0; i < 3; i++) {
        apply_retain(p.apply, NULL);
        stop();
        assert_int_equal(journal_applied_store(p.fd, 0), 0);
        start(STORE_HANDLES);
        limits();

        if (i == 2) {
            /* there is room now, which they do not get any more */
            conf.size = 8 * 1024 * 1024;
            limits();
        }

        go();
        assert_int_equal(unkept(), n);
        is("a", "select count(*) from history_events where operation_type ="
           " 'gateway.gap'", i == 0 ? "0" : "1");
        assert_int_equal(atoi(ask("a", "select count(*) from history_events"
                                  " where operation_type <> 'gateway.gap'")),
                         rows);
        work();
    }
}


/* What was deleted does not come back with the journal, which is replayed from its
 * beginning after the machine was cut off. */
static void
test_purged_replayed(void **state)
{
    unsigned  i;

    (void) state;

    conf.ttl_us = (uint64_t) (7 * DAY) * 1000000;
    limits();
    seen("a");

    for (i = 0; i < 5; i++) {
        command(1 + i, "a", 1000, i);
    }

    command(6, "a", 1000, 6 * DAY);
    go();
    at(8 * DAY);
    work();
    is("a", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "1");

    apply_retain(p.apply, NULL);
    stop();
    assert_int_equal(journal_applied_store(p.fd, 0), 0);
    start(STORE_HANDLES);
    limits();
    go();

    is("a", "select count(*) from history_events where operation_type ="
       " 'command.execute'", "1");
    work();
    is("a", "select value from gateway_state where key = 'purged_operations'",
       "5");
    is("a", "select count(*) from history_events where operation_type ="
       " 'gateway.purge'", "1");
}


/* fail_operation: others are told, once, and again when there is room. */
static void
test_fail_operation(void **state)
{
    unsigned  i;

    (void) state;

    conf.size = 1024 * 1024;
    conf.overflow = RETAIN_FAIL_OPERATION;
    limits();
    seen("a");

    for (i = 0; i < 8; i++) {
        command(1 + i, "a", 160000, i);
    }

    go();

    while (retain_work(retain, UINT64_MAX, 1000000)) { /* void */ }

    assert_string_equal(told, "a a 1 sandbox_history_size");
    is("a", "select count(*) from history_events where operation_type ="
       " 'gateway.purge'", "0");

    at(100 * DAY);

    for (i = 0; i < 300 && strcmp(told, "a a 0 sandbox_history_size"); i++) {
        (void) usleep(10000);
        (void) retain_work(retain, UINT64_MAX, 10000);
    }

    assert_string_equal(told, "a a 0 sandbox_history_size");
}


/* The sum with stop_recording: what is new is not kept, in no file, output
 * first, and nothing goes to make room. */
static void
test_total_stop_recording(void **state)
{
    unsigned  i, n;

    (void) state;

    conf.size = 0;
    conf.total = 3 * 1024 * 1024;
    conf.overflow = RETAIN_STOP_RECORDING;
    limits();
    seen("a");
    seen("b");
    n = 0;

    for (i = 0; n == 0; i++) {
        assert_true(i < 60);
        command(1 + i, i % 2 ? "a" : "b", 40000, i);
        go();
        work();
        n = (unsigned) atoi(ask(i % 2 ? "a" : "b", "select count(*) from"
                                " command_executions where"
                                " history_storage_state = 'metadata_only'"));
    }

    assert_true(i > 20);

    /* the other one, too, though it has not grown since */
    command(1 + i, i % 2 ? "a" : "b", 40000, i);
    go();
    is(i % 2 ? "a" : "b", "select count(*) from command_executions where"
       " history_storage_state = 'metadata_only' and not output_complete", "1");

    /* until there is no room for records either */
    for (n = 0, i = 100; i < 6000 && n == 0; i += 100) {
        unsigned  k;

        for (k = 0; k < 100; k++) {
            command(i + k, "a", 100, 100 + i + k);
        }

        go();
        work();
        n = unkept();
    }

    assert_true(n > 0);
    n = (unsigned) atoi(ask("b", "select count(*) from history_events"));
    command(7000, "b", 100, 7000);
    go();
    assert_int_equal(atoi(ask("b", "select count(*) from history_events where"
                              " operation_type = 'command.execute'")), n);
    work();
    is("b", "select operations || json_extract(result_json, '$.reason') from"
       " gateway_gaps join history_events using (event_id)", "1history_full");
    is("a", "select count(*) from history_events where operation_type ="
       " 'gateway.purge'", "0");

    /* what goes by its age makes room */
    at(100 * DAY);
    work();
    work();
    command(8000, "b", 100, 100 * DAY);
    go();
    is("b", "select c.history_storage_state from history_events e join"
       " command_executions c using (event_id)", "complete");
}


/* The sum with fail_operation: strict operations of all are refused, and told
 * of, until there is room. */
static void
test_total_fail_operation(void **state)
{
    unsigned  i;

    (void) state;

    conf.size = 0;
    conf.total = 2 * 1024 * 1024;
    conf.overflow = RETAIN_FAIL_OPERATION;
    limits();
    seen("a");
    seen("b");

    for (i = 0; i < 10; i++) {
        command(1 + i, "a", 80000, i);
        command(101 + i, "b", 80000, i);
    }

    go();

    while (retain_work(retain, UINT64_MAX, 1000000)) { /* void */ }

    assert_string_equal(told, "- - 1 sandbox_history_total");
    is("a", "select count(*) from history_events where operation_type ="
       " 'gateway.purge'", "0");
    is("a", "select count(*) from history_events", "10");

    at(100 * DAY);

    for (i = 0; i < 600 && strcmp(told, "- - 0 sandbox_history_total"); i++) {
        (void) usleep(10000);
        (void) retain_work(retain, UINT64_MAX, 10000);
    }

    assert_string_equal(told, "- - 0 sandbox_history_total");
}


/* C115: a file that cannot be purged is set aside, or it would be as old and as
 * large as it wants. */
static void
test_broken_set_aside(void **state)
{
    int      fd;
    char     path[512], garbage[4096];
    long     page;

    (void) state;

    seen("a");
    seen("b");
    command(1, "a", 100, 0);
    command(2, "b", 100, 0);
    go();
    assert_true(store_tidy(p.store, SIZE_MAX));
    page = atol(ask("a", "select rootpage from sqlite_master where name ="
                    " 'command_output_chunks'"));
    apply_retain(p.apply, NULL);
    stop();

    /* nothing but deleting reads that page */
    (void) store_dir_path(path, sizeof(path), p.history, "a");
    memset(garbage, 0xa5, sizeof(garbage));
    fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, garbage, sizeof(garbage), (page - 1) * 4096),
                     sizeof(garbage));
    close(fd);

    start(STORE_HANDLES);
    at(100 * DAY);
    work();
    assert_int_equal(size_of("a"), 0);
    is("b", "select operation_type from history_events", "gateway.purge");

    whole(3, "file.stat", "a", "succeeded", 200);
    go();
    is("a", "select operation_type || ifnull(json_extract(result_json,"
       " '$.reason'), '') from history_events order by seq",
       "gateway.gaphistory_file_lost;file.stat");
}


/* What becomes of the file of a sandbox that is deleted. */
static void
test_on_delete(void **state)
{
    char      name[600];
    sqlite3  *db;

    (void) state;

    begin(9, "sandbox.create", NULL, 0);
    put();
    seen("a");
    seen("b");
    command(1, "a", 100000, 0);
    command(2, "b", 100, 0);
    begin(3, "command.execute", "b", 5);
    put();
    gone("a");
    gone("b");
    go();
    change_file("a",
        "insert into gateway_folded select event_id, 6, occurred_at, 1"
        " from history_events");

    /* keep */
    at(60);
    work();
    assert_true(size_of("a") != 0);

    /* archive: not while an operation is open */
    conf.on_delete = RETAIN_ON_DELETE_ARCHIVE;
    work();
    assert_int_equal(size_of("a"), 0);
    assert_true(size_of("b") != 0);
    assert_int_equal(archived(name, sizeof(name)), 1);
    is("_gateway", "select operation_type || json_extract(result_json,"
       " '$.sandbox') || json_extract(result_json, '$.operations') from"
       " history_events where operation_type = 'gateway.archive'",
       "gateway.archivea7");

    /* one file, all in it */
    assert_int_equal(sqlite3_open_v2(name, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "select 1 from history_events", NULL,
                                  NULL, NULL), SQLITE_OK);
    (void) sqlite3_close(db);

    /* delete */
    end(3, "succeeded", 200, 10);
    put();
    go();
    conf.on_delete = RETAIN_ON_DELETE_DELETE;
    work();
    assert_int_equal(size_of("b"), 0);
    assert_int_equal(archived(name, sizeof(name)), 1);
    is("_gateway", "select json_extract(result_json, '$.sandbox') ||"
       " json_extract(result_json, '$.rule') from history_events where"
       " operation_type = 'gateway.purge'", "bon_delete");

    /* one comes back under the same name */
    seen("b");
    command(20, "b", 100, 100);
    go();
    is("b", "select count(*) from history_events", "1");

    /* an archive has its time too, and a held one stays */
    conf.holds[0] = "*";
    conf.nholds = 1;
    at(100 * DAY);
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);
    conf.nholds = 0;
    work();
    assert_int_equal(archived(name, sizeof(name)), 0);
    is("_gateway", "select json_extract(result_json, '$.operations') from"
       " history_events where operation_type = 'gateway.purge' and"
       " json_extract(result_json, '$.sandbox') = 'a'", "7");
}


/* An archive that is older than folded records goes like any other. */
static void
test_archive_old(void **state)
{
    char      name[600];
    sqlite3  *db;

    (void) state;

    begin(9, "sandbox.create", NULL, 0);
    put();
    seen("a");
    command(1, "a", 100, 0);
    command(2, "a", 100, 1);
    gone("a");
    go();
    conf.on_delete = RETAIN_ON_DELETE_ARCHIVE;
    at(60);
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);

    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "drop table gateway_folded", NULL, NULL,
                                  NULL), SQLITE_OK);
    (void) sqlite3_close(db);

    at(100 * DAY);
    work();
    assert_int_equal(archived(name, sizeof(name)), 0);
    is("_gateway", "select json_extract(result_json, '$.operations') from"
       " history_events where operation_type = 'gateway.purge' and"
       " json_extract(result_json, '$.sandbox') = 'a'", "2");
}


/* Numbers of what was moved into the files of sandboxes go with their time, or
 * with all that stood behind them when there is no room. */
static void
test_moved(void **state)
{
    unsigned  i;

    static const char  moved[] =
        "select group_concat(seq, ' ') from (select seq from gateway_records"
        " where moved_to is not null order by seq)";

    (void) state;

    for (i = 1; i <= 3; i++) {
        begin(i, "command.execute", "a", i);
        put();
    }

    whole(4, "sandbox.list", NULL, "succeeded", 200);
    go();

    for (i = 1; i <= 3; i++) {
        end(i, "succeeded", 200, i);
        put();
    }

    go();
    is("_gateway", moved, "1 2 3");
    /* the first is of 2004, these of T0 + 1 d and of a far future */
    change_file("_gateway", "update gateway_records set event_id ="
        " '01a22bae-b680-7000-8000-000000000002' where seq = 2");
    change_file("_gateway", "update gateway_records set event_id ="
        " 'ffffffff-0000-7000-8000-000000000003' where seq = 3");

    work();
    is("_gateway", moved, "2 3");
    at(7 * DAY);
    work();
    is("_gateway", moved, "2 3");
    at(9 * DAY);
    work();
    is("_gateway", moved, "3");
    is("_gateway", "select operation_type from history_events", "gateway.purge");

    /* no age limit, no room: what is in front of the rest */
    conf.ttl_us = 0;
    conf.size = 1024 * 1024;
    apply_retain(p.apply, NULL);

    for (i = 0; i < 16; i++) {
        command(10 + i, NULL, 160000, 9 * DAY + i);
    }

    go();
    is("_gateway", moved, "3");
    work();
    is("_gateway", moved, "NULL");
    is("_gateway", "select count(*) > 1 from gateway_records", "1");
    is("_gateway", "pragma integrity_check", "ok");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        limits_case(test_ttl),
        limits_case(test_folded),
        limits_case(test_open),
        limits_case(test_size_C117),
        limits_case(test_protected),
        limits_case(test_dry),
        limits_case(test_hold),
        limits_case(test_total),
        limits_case(test_total_alone),
        limits_case(test_stop_recording),
        limits_case(test_stop_recording_again),
        limits_case(test_full_replayed),
        limits_case(test_purged_replayed),
        limits_case(test_fail_operation),
        limits_case(test_total_stop_recording),
        limits_case(test_total_fail_operation),
        limits_case(test_broken_set_aside),
        limits_case(test_on_delete),
        limits_case(test_archive_old),
        limits_case(test_moved),
    };

    return store_run(argc, argv, tests);
}
