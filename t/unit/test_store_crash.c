/* From the journal into history files: crashes, broken files, many files. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "stats.h"
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
    change_file("_gateway", "pragma foreign_keys = on;"
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


typedef enum {
    BROKEN_START, BROKEN_MIDDLE, BROKEN_PAGE, BROKEN_SHORT, BROKEN_DIR,
    BROKEN_FIFO, BROKEN_LOG, BROKEN_PLACE, BROKEN_FORMS
} broken_e;


/* Bytes of a file become others. */
static void
flip(const char *path, off_t from, off_t to)
{
    int      fd;
    off_t    at;
    uint8_t  c;

    fd = open(path, O_RDWR);
    assert_true(fd != -1);

    for (at = from; at < to; at++) {
        assert_int_equal(pread(fd, &c, 1, at), 1);
        c = (uint8_t) ~c;
        assert_int_equal(pwrite(fd, &c, 1, at), 1);
    }

    close(fd);
}


/* The history of `dir` as a bad disk, or somebody who slipped, leaves it. */
static void
break_file(const char *dir, broken_e form)
{
    int          fd;
    char         path[512], place[600];
    long         page;
    struct stat  st;

    (void) store_dir_path(path, sizeof(path), p.history, dir);
    assert_int_equal(stat(path, &st), 0);

    switch (form) {

    case BROKEN_START:
        fd = open(path, O_WRONLY|O_TRUNC);
        assert_int_equal(write(fd, "this is no database at all, is it?", 34),
                         34);
        close(fd);
        break;

    case BROKEN_MIDDLE:
        flip(path, st.st_size / 4, st.st_size / 4 * 3);
        break;

    case BROKEN_PAGE:
        /* opening it does not read that one */
        page = atol(ask(dir, "select rootpage from sqlite_master where name ="
                        " 'history_changes'"));
        assert_true(page > 1);
        flip(path, (page - 1) * 4096, page * 4096);
        break;

    case BROKEN_SHORT:
        assert_int_equal(truncate(path, 100), 0);
        break;

    case BROKEN_DIR:
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        (void) snprintf(place, sizeof(place), "%s/what", path);
        assert_int_equal(mkdir(place, 0700), 0);
        break;

    case BROKEN_FIFO:
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        break;

    case BROKEN_LOG:
        (void) snprintf(place, sizeof(place), "%s-wal", path);
        (void) unlink(place);
        assert_int_equal(mkdir(place, 0700), 0);
        break;

    default:
        (void) snprintf(place, sizeof(place), "%s/%s", p.history, dir);
        tdir_remove(place);
        fd = open(place, O_WRONLY|O_CREAT, 0600);
        assert_true(fd != -1);
        close(fd);
    }
}


/* How many names in a directory of ours begin like that? */
static unsigned
names(const char *dir, const char *prefix)
{
    char            path[512];
    unsigned        n;
    DIR            *d;
    struct dirent  *e;

    (void) snprintf(path, sizeof(path), "%s/%s", p.history, dir);
    d = opendir(path);
    assert_non_null(d);

    for (n = 0; (e = readdir(d)) != NULL; /* void */ ) {
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    }

    closedir(d);

    return n;
}


/* C115: a file that cannot be used is set aside, whatever became of it, others
 * are not concerned. */
static void
test_broken_file(void **state)
{
    broken_e  form;

    for (form = 0; form < BROKEN_FORMS; form++) {

        if (form) {
            teardown(state);
            setup(state);
        }

        seen("b1");
        seen("b2");
        whole(1, "file.stat", "b1", "succeeded", 200);
        whole(2, "file.stat", "b2", "succeeded", 200);
        go();
        assert_true(store_tidy(p.store, SIZE_MAX));
        assert_int_equal(store_untidy(p.store), 0);
        stop();
        break_file("b1", form);

        start(STORE_HANDLES);
        whole(3, "file.stat", "b1", "succeeded", 200);
        whole(4, "file.stat", "b2", "succeeded", 200);
        go();

        is("b1", "select operation_type from history_events order by seq",
           "gateway.gap;file.stat");
        is("b1", "select json_extract(result_json, '$.reason') from"
           " history_events order by seq", "history_file_lost;NULL");
        is("b2", "select count(*) from history_events", "2");

        if (form == BROKEN_PLACE) {
            assert_int_equal(names(".", "b1.broken-"), 1);

        } else {
            assert_int_equal(names("b1", "history.sqlite3.broken-"),
                             form == BROKEN_LOG ? 2 : 1);
        }
    }
}


/* The same of the file for what has no sandbox, which all others need. */
static void
test_broken_gateway(void **state)
{
    broken_e  form;

    for (form = 0; form < BROKEN_FORMS; form++) {

        if (form) {
            teardown(state);
            setup(state);
        }

        seen("b1");
        whole(1, "file.stat", "b1", "succeeded", 200);
        whole(2, "file.stat", "never", "failed", 404);
        go();
        assert_true(store_tidy(p.store, SIZE_MAX));
        stop();
        break_file(SCHEMA_GATEWAY, form);

        start(STORE_HANDLES);
        whole(3, "file.stat", "never", "failed", 404);
        seen("b3");
        whole(4, "file.stat", "b3", "succeeded", 200);
        whole(5, "file.stat", "b1", "succeeded", 200);
        go();

        is("_gateway", "select operation_type from history_events order by seq",
           "gateway.gap;file.stat");
        is("b1", "select count(*) from history_events", "2");
        is("b3", "select count(*) from history_events", "1");
    }
}


/* A file that was removed while it is open. */
static void
test_c105_removed_file(void **state)
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


/* More files than have statements stay open all the same. */
static void
test_files_at_rest(void **state)
{
    int          rc;
    char         id[16];
    unsigned     i;
    store_db_t  *db;

    (void) state;

    stop();
    start(STORE_AWAKE * 2);

    for (i = 0; i < STORE_AWAKE + 20; i++) {
        (void) snprintf(id, sizeof(id), "m%u", i);
        seen(id);
        whole(i + 1, "file.stat", id, "succeeded", 200);
        go();
    }

    assert_int_equal(stats_get(STATS_HANDLES), STORE_AWAKE + 20 + 1);

    db = store_get(p.store, "m0", false, &rc);
    assert_non_null(db);
    assert_null(sqlite3_next_stmt(db->db, NULL));
    db = store_get(p.store, "m140", false, &rc);
    assert_non_null(db);
    assert_non_null(sqlite3_next_stmt(db->db, NULL));

    for (i = 0; i < STORE_AWAKE + 20; i++) {
        (void) snprintf(id, sizeof(id), "m%u", i);
        whole(2000 + i, "file.stat", id, "succeeded", 200);
        go();
        is(id, "select count(*) from history_events", "2");
    }

    assert_int_equal(stats_get(STATS_HANDLES), STORE_AWAKE + 20 + 1);
}


/* What does not fit into its file is one gap, however often it is replayed. */
static void
test_not_recordable_again(void **state)
{
    char  a[16384], b[16384];

    (void) state;

    seen("s1");
    whole(9, "file.info", "s1", "succeeded", 200);
    go();
    change_file("s1", "create trigger a before insert on history_events when"
        " new.operation_type = 'file.read' begin select raise(abort, 'no');"
        " end");
    whole(1, "file.read", "s1", "succeeded", 200);
    whole(2, "file.list", "s1", "succeeded", 200);
    whole(3, "file.read", "s1", "succeeded", 200);
    go();
    is("s1", "select operation_type from history_events order by seq",
       "file.info;gateway.gap;file.list;gateway.gap");
    fingerprint("s1", a, sizeof(a));

    stop();
    assert_int_equal(journal_applied_store(p.fd, 0), 0);
    start(STORE_HANDLES);
    go();

    fingerprint("s1", b, sizeof(b));
    assert_string_equal(a, b);
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
        store_case(test_not_recordable_again),
        store_case(test_broken_file),
        store_case(test_broken_gateway),
        store_case(test_c105_removed_file),
        store_case(test_many_sandboxes),
        store_case(test_files_at_rest)
    };

    return store_run(argc, argv, tests);
}
