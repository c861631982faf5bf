/* The chain of a history file and its heads: what is not as it was recorded is
 * found, and what a purge forgets is accounted for. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>

#include "chain_place.h"


/* A record that ended and is signed is changed, and ends once more. */
static void
test_second_end(void **state)
{
    sqlite3  *db;

    (void) state;

    seen("a");
    begins(1);
    ends(1);
    sign();
    verifies("a");

    db = open_file("a");
    change(db, "update history_events set status = 'failed' where event_id = '"
           EVENT_1 "'");
    forge(db, CHAIN_END, EVENT_1, sb_str(NULL, 0));
    (void) sqlite3_close(db);

    faults("a", "changed");
    assert_string_equal(v.event, EVENT_1);
    assert_int_equal(v.seq, 1);
}


/* The same that says nothing new, and one that begins again. */
static void
test_said_again(void **state)
{
    sqlite3  *db;

    (void) state;

    seen("a");
    begins(1);
    ends(1);
    sign();

    db = open_file("a");
    forge(db, CHAIN_END, EVENT_1, sb_str(NULL, 0));
    faults("a", "changed");

    change(db, "delete from gateway_chain where n = (select max(n) from"
           " gateway_chain)");
    verifies("a");
    forge(db, CHAIN_BEGIN, EVENT_1, sb_str(NULL, 0));
    faults("a", "changed");
    (void) sqlite3_close(db);
}


/* Output that is put behind the end of a record. */
static void
test_output_behind_end(void **state)
{
    char            detail[512];
    uint8_t         digest[CHAIN_HASH];
    sqlite3        *db;
    sb_buf_t        text = { .max = sizeof(detail) };
    chain_stmts_t   stmts = { 0 };
    chain_output_t  o = {
        .first = { 1, 0 }, .last = { 1, -1 }, .ord_first = 1, .ord_last = 0
    };

    (void) state;

    seen("a");
    begins(1);
    ends(1);
    sign();

    db = open_file("a");
    change(db, "insert into command_output_chunks(event_id, stream,"
           " chunk_index, data, encoding, original_size, created_at) select"
           " event_id, stream, 1, x'78', encoding, 1, created_at from"
           " command_output_chunks");
    assert_int_equal(chain_output_digest(db, &stmts, EVENT_1, &o, digest),
                     SQLITE_OK);
    assert_int_equal(chain_output_detail(&text, &o, digest), SB_OK);
    forge(db, CHAIN_OUTPUT, EVENT_1, sb_str(text.data, text.len));
    chain_stmts_free(&stmts);
    sb_buf_free(&text);
    (void) sqlite3_close(db);

    faults("a", "changed");
}


/* --- purged ------------------------------------------------------------- */

/* Two loops of commands that always overlap: what is purged is forgotten all
 * the same, and the chain stays good. */
static void
test_overlap(void **state)
{
    unsigned  i;

    (void) state;

    seen("a");
    begins(1);

    for (i = 1; i <= 60; i++) {
        begins(i + 1);
        ends(i);
    }

    for (i = 1; i <= 50; i++) {
        purges_op(i);
        sign();
        verifies("a");
    }

    /* three of each, and the purges that are not behind it yet */
    is("a", "select min(n) > 140 from gateway_chain", "1");
    is("a", "select count(*) < 20 from gateway_chain where purged is not null",
       "1");
}


/* A purge whose entries reach far is not taken over again and again for the sake
 * of few that could go. */
static void
test_handed_on(void **state)
{
    unsigned     i;
    uint8_t      id[16];
    store_db_t  *db;

    (void) state;

    seen("a");
    begins(1);
    begins(2);

    db = opened("a");
    tf_id(id, 1);
    assert_int_equal(store_begin(db), SQLITE_OK);

    for (i = 0; i < 5000; i++) {
        chain_note_detail(&db->chain, id, sb_lit("{}"));
    }

    assert_int_equal(store_commit(db, 0), SQLITE_OK);
    ends(1);

    /* the beginning of 2 stands in front of the rest of 1 */
    purges_op(1);
    sign();
    verifies("a");
    is("a", "select min(n) || ' ' || (select count(distinct purged) from"
       " gateway_chain) from gateway_chain", "1 1");

    ends(2);
    purges_op(2);
    sign();
    verifies("a");
    is("a", "select min(n) > 5000 from gateway_chain", "1");
}


/* Rows of others are not in the chain: where it begins is not told anew. */
static void
test_foreign_purged(void **state)
{
    sqlite3  *db;

    (void) state;

    seen("a");
    begins(1);
    ends(1);
    sign();

    db = open_file("a");
    change(db, "insert into history_events(event_id, provider_key, sandbox_id,"
           " sandbox_instance_id, actor_type, operation_type, status,"
           " occurred_at, completed_at) select 'other', provider_key,"
           " sandbox_id, sandbox_instance_id, 'system', 'file.list',"
           " 'succeeded', occurred_at, completed_at from history_events");
    (void) sqlite3_close(db);
    faults("a", "foreign");

    purges("select seq from history_events where event_id = 'other'");
    sign();
    verifies("a");
    is("a", "select min(n) from gateway_chain", "1");
}


/* --- heads -------------------------------------------------------------- */

static off_t
heads_size(void)
{
    struct stat  st;

    assert_int_equal(fstatat(dirfd_history, HEADS_FILE, &st, 0), 0);

    return st.st_size;
}


/* A disk that is full in the middle of a line, and a crash there: what comes
 * behind it is read. */
static void
test_half_a_line(void **state)
{
    int            fd;
    off_t          size;
    struct rlimit  was, now;

    (void) state;

    seen("a");
    begins(1);
    sign();
    size = heads_size();
    ends(1);

    (void) signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    now = was;
    now.rlim_cur = (rlim_t) size + 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    assert_false(heads_write(heads, T0, 0));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_true(heads_any(heads));
    assert_int_equal(heads_size(), size);

    sign();
    verifies("a");
    assert_int_equal(v.unsigned_entries, 0);

    fd = openat(dirfd_history, HEADS_FILE, O_WRONLY|O_APPEND);
    assert_int_equal(write(fd, "{\"at\":", 6), 6);
    close(fd);
    begins(2);
    sign();
    verifies("a");
    assert_int_equal(v.unsigned_entries, 0);
}


/* The clock of the machine is set back: heads are signed all the same. */
static void
test_clock_back(void **state)
{
    uint64_t  now;

    (void) state;

    now = sb_mono_us();
    seen("a");
    begins(1);
    assert_true(heads_write(heads, sb_now_us() + 3600000000u, now));
    ends(1);
    assert_false(heads_due(heads, now));
    assert_true(heads_due(heads, now + HEADS_US));
}


/* A sandbox that was gone and is there again has a file of its own, and the one
 * in the archive stays good. */
static void
test_again(void **state)
{
    char      clock[96], first[512], second[512];
    sqlite3  *db;

    (void) state;

    (void) snprintf(clock, sizeof(clock), "%s/clock", p.path);
    whole(99, "sandbox.list", NULL, "succeeded", 200);
    seen("a");
    begins(1);
    ends(1);
    begins(2);
    ends(2);
    sign();
    archives(clock, 10, first, sizeof(first));
    assert_string_equal(verified_file("a", first), "");
    assert_int_equal(v.unsigned_entries, 0);

    seen("a");
    begins(3);
    sign();
    is("a", "select operation_type from history_events", "command.execute");
    verifies("a");
    assert_string_equal(verified_file("a", first), "");

    ends(3);
    archives(clock, 100, second, sizeof(second));
    assert_string_not_equal(first, second);
    assert_string_equal(verified_file("a", first), "");
    assert_string_equal(verified_file("a", second), "");

    seen("a");
    begins(4);
    sign();
    verifies("a");
    assert_string_equal(verified_file("a", second), "");

    /* a copy of the one that is there may have any name */
    (void) snprintf(second, sizeof(second), "%s/a/history.sqlite3", p.history);
    assert_string_equal(verified_file("a", second), "");

    /* what its own end says holds */
    assert_int_equal(sqlite3_open(first, &db), SQLITE_OK);
    change(db, "delete from history_events where event_id like '%2';"
           "delete from gateway_records where event_id like '%2';"
           "delete from command_executions where event_id like '%2';"
           "delete from command_output_chunks where event_id like '%2';"
           "delete from gateway_chain where n >= (select min(n) from"
           " gateway_chain where event_id like '%2')");
    (void) sqlite3_close(db);
    assert_string_equal(verified_file("a", first), "cut");
}


/* The heads begin a new file between the end of a history and the first head of
 * the one that comes in its place. */
static void
test_again_turned(void **state)
{
    char         clock[96], first[512];
    struct stat  st;

    (void) state;

    (void) snprintf(clock, sizeof(clock), "%s/clock", p.path);
    whole(99, "sandbox.list", NULL, "succeeded", 200);
    seen("a");
    begins(1);
    ends(1);
    begins(2);
    ends(2);
    sign();
    archives(clock, 10, first, sizeof(first));
    turns();
    sign();
    assert_int_equal(fstatat(dirfd_history, HEADS_OLD, &st, 0), 0);
    assert_int_equal(fstatat(dirfd_history, HEADS_FILE, &st, 0), 0);
    assert_true(st.st_size < 4096);
    assert_string_equal(verified_file("a", first), "");

    seen("a");
    begins(3);
    sign();
    verifies("a");

    /* its own head stays when they turn again */
    turns();
    ends(3);
    sign();
    verifies("a");
    assert_int_equal(v.unsigned_entries, 0);
    assert_string_equal(verified_file("a", first), "");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        chain_case(test_second_end),
        chain_case(test_said_again),
        chain_case(test_output_behind_end),
        chain_case(test_overlap),
        chain_case(test_handed_on),
        chain_case(test_foreign_purged),
        chain_case(test_half_a_line),
        chain_case(test_clock_back),
        chain_case(test_again),
        chain_case(test_again_turned),
    };

    return store_run(argc, argv, tests);
}
