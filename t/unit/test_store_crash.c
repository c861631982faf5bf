/* From the journal into history files: crashes, broken files, many files. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_place.h"


/* The numbers that must not change, of a file. */
static void
fingerprint(const char *dir, char *dst, size_t size)
{
    (void) snprintf(dst, size, "%s", ask(dir,
        "select group_concat(x, ' ') from ("
        "select event_id || status || ifnull(result_json, '') x from"
        " history_events union all"
        " select event_id || seq || '@' || cursor || ifnull(moved_to, '') from"
        " gateway_records union all"
        " select change_id from history_changes union all"
        " select event_id || stream || chunk_index || length(data) from"
        " command_output_chunks union all"
        " select event_id || ord || stream || length from gateway_output union"
        " all select event_id || count from gateway_folded union all"
        " select event_id || n || path from gateway_files)"));
}


static void
script(unsigned from)
{
    unsigned  i;

    begin(from, "sandbox.create", NULL, 0);
    put();
    begin(from + 1, "command.execute", "c1", 1);
    tf_str(&f, SB_T_COMMAND, "x");
    put();
    end(from, "succeeded", 202, 2);
    tf_str(&f, SB_T_NEW_SANDBOX, "c1");
    put();

    for (i = 0; i < 5; i++) {
        output(from + 1, i % 2, "some output\n", 12, 20000 * i);
        poll_once(from + 10 + i, "sandbox.get", "c1", "succeeded");
    }

    whole(from + 20, "file.stat", "never", "failed", 404);
    tf_begin(&f, SB_F_GAP, 0, ++p.seq, 0, 50);
    tf_u64(&f, SB_T_COUNT, 1);
    put();
    end(from + 1, "succeeded", 200, 100);
    put();
}


/* Applied twice, from any place: the same rows. */
static void
test_replay(void **state)
{
    char      a[16384], b[16384], ga[16384], gb[16384];
    uint64_t  cut, all;

    (void) state;

    script(1);
    script(101);
    all = journal_tail(p.journal).cursor;
    go();
    fingerprint("c1", a, sizeof(a));
    fingerprint("_gateway", ga, sizeof(ga));

    for (cut = 0; cut <= all; cut++) {
        stop();
        assert_int_equal(journal_applied_store(p.fd, cut), 0);
        start(STORE_HANDLES);
        go();

        fingerprint("c1", b, sizeof(b));
        fingerprint("_gateway", gb, sizeof(gb));
        assert_string_equal(a, b);
        assert_string_equal(ga, gb);
    }
}


/* Killed between any two transactions: nothing missing, nothing twice. */
static void
test_killed_anywhere(void **state)
{
    char      a[16384], b[16384];
    size_t    i, n, sizes[128];
    char     *frames[128];
    unsigned  stop_at;

    (void) state;

    script(1);
    go();
    fingerprint("c1", a, sizeof(a));

    /* take the frames back out of the journal */
    {
        static char       buf[JOURNAL_RECORD_MAX];
        size_t            pos = 0;
        ssize_t           got;
        journal_pos_t     tail = journal_tail(p.journal);
        journal_record_t  r;
        journal_reader_t  reader;

        journal_reader_init(&reader, p.journal, 0);
        got = journal_read(&reader, buf, sizeof(buf), &tail);
        journal_reader_close(&reader);

        for (n = 0; journal_next(&r, buf, (size_t) got, &pos); n++) {
            assert_true(n < 128);
            sizes[n] = r.frame.length;
            frames[n] = malloc(sizes[n]);
            memcpy(frames[n], r.raw, sizes[n]);
        }
    }

    for (stop_at = 1; stop_at < n; stop_at++) {
        journal_item_t  item;

        teardown(NULL);
        setup(NULL);

        for (i = 0; i < n; i++) {
            item.instance = 1;
            item.frame = frames[i];
            item.len = sizes[i];
            assert_int_equal(journal_append(p.journal, &item, 1), 0);

            if (i + 1 == stop_at) {
                go();
                stop();

                /* the mark was not written in time */
                assert_int_equal(journal_applied_store(p.fd, stop_at / 2), 0);
                start(STORE_HANDLES);
            }
        }

        go();
        fingerprint("c1", b, sizeof(b));

        /* output is merged by batches: compare without the chunks' borders */
        is("c1", "select group_concat(data, '') from (select * from"
           " command_output_chunks where stream = 'stdout' order by"
           " chunk_index)", "some output\nsome output\nsome output\n");
        is("c1", "select group_concat(seq, ' ') from (select seq from"
           " gateway_records order by seq)", "1 2 3");
        is("c1", "select status from history_events order by seq",
           "succeeded;succeeded;succeeded");
        is("c1", "select count from gateway_folded", "4");
        is("c1", "select count(*) from gateway_output", "5");
        is("_gateway", "select count(*) from gateway_held", "0");
        is("_gateway", "select count(*) from history_events", "2");
    }

    for (i = 0; i < n; i++) {
        free(frames[i]);
    }
}


static void
change(const char *dir, const char *sql)
{
    char      path[512];
    sqlite3  *db;

    assert_true(store_dir_path(path, sizeof(path), p.history, dir) != 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void) sqlite3_close(db);
}


/* A create that was to go straight into a file of its own, in the same batch,
 * when we were killed; replayed, its end comes with the next batch only. */
static void
test_replay_cut_elsewhere(void **state)
{
    (void) state;

    begin(1, "sandbox.create", NULL, 0);
    put();
    facts(1);
    tf_str(&f, SB_T_REQUEST, "{\"image\":\"x\"}");
    put();
    whole(2, "file.stat", "never", "failed", 404);
    go();
    stop();

    /* _gateway was written, and never had it */
    change("_gateway", "pragma foreign_keys = on;"
           " delete from history_changes where event_id in (select"
           " event_id from history_events where operation_type ="
           " 'sandbox.create'); delete from gateway_records where event_id in"
           " (select event_id from history_events where operation_type ="
           " 'sandbox.create'); delete from history_events where"
           " operation_type = 'sandbox.create'");
    assert_int_equal(journal_applied_store(p.fd, 0), 0);
    start(STORE_HANDLES);
    go();

    end(1, "succeeded", 202, 50);
    tf_str(&f, SB_T_NEW_SANDBOX, "c1");
    put();
    go();

    is("c1", "select operation_type || status || request_json from"
       " history_events", "sandbox.createsucceeded{\"image\":\"x\"}");
    is("_gateway", "select operation_type from history_events", "file.stat");
}


/* A new file that did not outlive the machine: _gateway is ahead of it. */
static void
test_file_lost_with_machine(void **state)
{
    char  cmd[160];

    (void) state;

    script(1);
    go();
    stop();

    (void) snprintf(cmd, sizeof(cmd), "rm -r '%s/c1'", p.history);
    assert_int_equal(system(cmd), 0);
    assert_int_equal(journal_applied_store(p.fd, 0), 0);
    start(STORE_HANDLES);
    go();

    is("c1", "select operation_type || status from history_events where"
       " operation_type != 'sandbox.get' order by seq",
       "sandbox.createsucceeded;command.executesucceeded");
    is("c1", "select group_concat(data, '') from (select * from"
       " command_output_chunks where stream = 'stdout' order by"
       " chunk_index)", "some output\nsome output\nsome output\n");
}


enum { SYNCED_FILE = 1, SYNCED_LOG = 2, SYNCED_DIR = 4, SYNCED_HISTORY = 8 };

static unsigned  synced;


/* What is flushed while _gateway still has all of it. */
static void
synced_before(int fd)
{
    char     link[64], path[512];
    size_t   base;
    ssize_t  n;

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    base = strlen(p.history);

    if (strncmp(path, p.history, base) != 0
        || strcmp(ask("_gateway", "select count(*) from history_events where"
                      " operation_type = 'sandbox.create'"), "1") != 0)
    {
        return;
    }

    synced |= strcmp(path + base, "/c1/history.sqlite3") == 0 ? SYNCED_FILE
              : strcmp(path + base, "/c1/history.sqlite3-wal") == 0 ? SYNCED_LOG
              : strcmp(path + base, "/c1") == 0 ? SYNCED_DIR
              : path[base] == '\0' ? SYNCED_HISTORY : 0;
}


/* A record leaves _gateway when the file that it moved to, which is new, would
 * be there after a power cut: its tables, the log with the record, its name. */
static void
test_moved_is_on_disk(void **state)
{
    (void) state;

    begin(1, "sandbox.create", NULL, 0);
    put();
    go();
    end(1, "succeeded", 202, 50);
    tf_str(&f, SB_T_NEW_SANDBOX, "c1");
    put();

    synced = 0;
    tdir_synced = synced_before;
    go();
    tdir_synced = NULL;

    is("c1", "select operation_type || status from history_events",
       "sandbox.createsucceeded");
    is("_gateway", "select count(*) from history_events", "0");
    assert_int_equal(synced, SYNCED_FILE | SYNCED_LOG | SYNCED_DIR
                             | SYNCED_HISTORY);
}


/* C115: a file that cannot be used is set aside, others are not concerned. */
static void
test_broken_file(void **state)
{
    int   fd;
    char  path[512];

    (void) state;

    seen("b1");
    seen("b2");
    whole(1, "file.stat", "b1", "succeeded", 200);
    whole(2, "file.stat", "b2", "succeeded", 200);
    go();
    assert_true(store_tidy(p.store, SIZE_MAX));
    assert_int_equal(store_untidy(p.store), 0);
    stop();

    (void) store_dir_path(path, sizeof(path), p.history, "b1");
    fd = open(path, O_WRONLY|O_TRUNC);
    assert_int_equal(write(fd, "this is no database at all, is it?", 34), 34);
    close(fd);

    start(STORE_HANDLES);
    whole(3, "file.stat", "b1", "succeeded", 200);
    whole(4, "file.stat", "b2", "succeeded", 200);
    go();

    is("b1", "select operation_type from history_events order by seq",
       "gateway.gap;file.stat");
    is("b1", "select json_extract(result_json, '$.reason') from history_events"
       " order by seq", "history_file_lost;NULL");
    is("b2", "select count(*) from history_events", "2");

    {
        char            dir[512];
        unsigned        n = 0;
        DIR            *d;
        struct dirent  *e;

        (void) snprintf(dir, sizeof(dir), "%s/b1", p.history);
        d = opendir(dir);

        while ((e = readdir(d)) != NULL) {
            n += strncmp(e->d_name, "history.sqlite3.broken-", 23) == 0;
        }

        closedir(d);
        assert_int_equal(n, 1);
    }
}


/* C105: a file that was removed while it is open. */
static void
test_removed_file(void **state)
{
    char  path[512];

    (void) state;

    seen("r1");
    whole(1, "file.stat", "r1", "succeeded", 200);
    go();

    (void) snprintf(path, sizeof(path), "%s/r1", p.history);
    tdir_remove(path);

    whole(2, "file.stat", "r1", "succeeded", 200);
    whole(3, "file.stat", "r1", "succeeded", 200);
    go();
    is("r1", "select operation_type from history_events order by seq",
       "gateway.gap;file.stat;file.stat");
}


/* C159: many sandboxes, few handles (1000 of them in t/helper.t). */
static void
test_many_sandboxes(void **state)
{
    char      id[16];
    unsigned  i, fds;
    DIR      *d;

    (void) state;

    stop();
    start(16);

    for (i = 0; i < 200; i++) {
        (void) snprintf(id, sizeof(id), "m%u", i);
        seen(id);
        whole(i + 1, "file.stat", id, "succeeded", 200);
    }

    go();

    for (i = 0; i < 200; i += 7) {
        (void) snprintf(id, sizeof(id), "m%u", i);
        whole(2000 + i, "file.stat", id, "succeeded", 200);
    }

    go();

    fds = 0;
    d = opendir("/proc/self/fd");

    while (readdir(d) != NULL) {
        fds++;
    }

    closedir(d);
    assert_true(fds < 16 * 3 + 32);

    is("m0", "select count(*) from history_events", "2");
    is("m1", "select count(*) from history_events", "1");
    is("m196", "select count(*) from history_events", "2");
    is("m199", "select count(*) from history_events", "1");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_replay),
        store_case(test_replay_cut_elsewhere),
        store_case(test_file_lost_with_machine),
        store_case(test_moved_is_on_disk),
        store_case(test_killed_anywhere),
        store_case(test_broken_file),
        store_case(test_removed_file),
        store_case(test_many_sandboxes)
    };

    return store_run(argc, argv, tests);
}
