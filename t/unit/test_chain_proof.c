/* What is in the chain may be there because somebody who can write the file put
 * it there: what only the key can say, and what no entry speaks of. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "chain_place.h"


#define EVENT_2  "01000000-0000-7000-8000-000000000002"

/* All rows of an event, as deleting it takes them along. */
#define WITHOUT(event)                                                        \
    "pragma foreign_keys = on;"                                               \
    "delete from gateway_records where event_id = '" event "';"               \
    "delete from history_events where event_id = '" event "';"


static void
restarts(void)
{
    store_set_heads(p.store, NULL);
    heads_free(heads);
    stop();
    start(STORE_HANDLES);
    begin_heads();
}


static int64_t
last_entry(void)
{
    return atoll(ask("a", "select max(n) from gateway_chain"));
}


/* --- purges that the gateway did not make ---------------------------------- */

/* A purge as the gateway makes one, but for the signature: all of its hashes
 * are right.  It accounts for what names it, and has the chain begin behind
 * `base`. */
static void
forge_purge(sqlite3 *db, int64_t base)
{
    int            n;
    char           detail[640], hex[2 * CHAIN_HASH + 1];
    char           file[2 * CHAIN_HASH + 1], hash[2 * CHAIN_HASH + 1];
    uint8_t        digest[CHAIN_HASH], of[CHAIN_HASH];
    sb_sha256_t   *h;
    sqlite3_stmt  *st;
    chain_stmts_t  stmts = { 0 };

    h = sb_sha256_new();
    assert_int_equal(sqlite3_prepare_v2(db, "select hash from gateway_chain"
                                        " where purged = (select max(n) + 1"
                                        " from gateway_chain) order by n", -1,
                                        &st, NULL), SQLITE_OK);

    while (sqlite3_step(st) == SQLITE_ROW) {
        sb_sha256_add(h, sqlite3_column_blob(st, 0), CHAIN_HASH);
    }

    (void) sqlite3_finalize(st);
    sb_sha256_final(h, digest);
    sb_hex(hex, digest, CHAIN_HASH);

    memset(of, 0, CHAIN_HASH);
    assert_int_equal(sqlite3_prepare_v2(db, "select hash from gateway_chain"
                                        " where n = ?1", -1, &st, NULL),
                     SQLITE_OK);
    sqlite3_bind_int64(st, 1, base);

    if (sqlite3_step(st) == SQLITE_ROW) {
        memcpy(of, sqlite3_column_blob(st, 0), CHAIN_HASH);
    }

    (void) sqlite3_finalize(st);
    sb_hex(hash, of, CHAIN_HASH);

    assert_int_equal(chain_file(db, &stmts, of), SQLITE_OK);
    sb_hex(file, of, CHAIN_HASH);
    chain_stmts_free(&stmts);

    n = snprintf(detail, sizeof(detail), "{\"at\":\"2026-01-01T00:00:00.000000Z"
                 "\",\"base\":%lld,\"base_hash\":\"%s\",\"count\":1,"
                 "\"digest\":\"%s\",\"file\":\"%s\",\"from\":2,"
                 "\"rule\":\"ttl\",\"to\":2}", (long long) base, hash, hex,
                 file);
    forge(db, CHAIN_PURGE, NULL, sb_str(detail, (size_t) n));

    if (base) {
        (void) snprintf(detail, sizeof(detail), "delete from gateway_chain"
                        " where n <= %lld", (long long) base);
        change(db, detail);
    }
}


/* A record is taken out, and a purge accounts for it. */
static void
takes_out(void)
{
    sqlite3  *db;

    db = open_file("a");
    change(db, "update gateway_chain set purged = (select max(n) + 1 from"
           " gateway_chain) where event_id = '" EVENT_2 "'");
    forge_purge(db, 0);
    change(db, WITHOUT(EVENT_2));
    (void) sqlite3_close(db);
}


static void
three(void)
{
    unsigned  i;

    seen("a");

    for (i = 1; i <= 3; i++) {
        begins(i);
        ends(i);
    }

    sign();
    verifies("a");
}


/* Somebody takes a record out, and adds the purge that accounts for it. */
static void
test_forged_purge(void **state)
{
    (void) state;

    three();
    takes_out();
    faults("a", "removed");

    /* a gateway that finds it there signs that end of the chain, no more */
    restarts();
    begins(4);
    sign();
    faults("a", "removed");
}


/* ... or has the chain begin behind all that was recorded but the last. */
static void
test_forged_base(void **state)
{
    sqlite3  *db;

    (void) state;

    three();
    db = open_file("a");
    forge_purge(db, last_entry() - 1);
    change(db, WITHOUT(EVENT_1) WITHOUT(EVENT_2));
    (void) sqlite3_close(db);
    faults("a", "removed");
}


/* A purge of the gateway's that is changed, or said of another record. */
static void
test_purge_changed(void **state)
{
    sqlite3       *db;
    sb_str_t       detail;
    const char    *text;
    sqlite3_stmt  *st;

    (void) state;

    three();
    purges_op(1);
    sign();
    verifies("a");
    is("a", "select json_extract(detail, '$.signature') is not null from"
       " gateway_chain where kind = 'purge'", "1");

    /* what it says is in the signature, not only in the hash */
    text = ask("a", "select detail from gateway_chain where kind = 'purge'");
    assert_true(keys_verify_member(keys, sb_str(text, strlen(text))));
    text = ask("a", "select replace(detail, '\"count\":1', '\"count\":2') from"
               " gateway_chain where kind = 'purge'");
    assert_false(keys_verify_member(keys, sb_str(text, strlen(text))));

    /* the same once more, for what else is gone */
    db = open_file("a");
    change(db, "update gateway_chain set purged = (select max(n) + 1 from"
           " gateway_chain) where event_id = '" EVENT_2 "'");
    assert_int_equal(sqlite3_prepare_v2(db, "select detail from gateway_chain"
                                        " where kind = 'purge'", -1, &st,
                                        NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    detail = sb_str((const char *) sqlite3_column_text(st, 0),
                    (size_t) sqlite3_column_bytes(st, 0));
    forge(db, CHAIN_PURGE, NULL, detail);
    (void) sqlite3_finalize(st);
    change(db, WITHOUT(EVENT_2));
    (void) sqlite3_close(db);
    faults("a", "removed");
}


/* --- files of versions that did not sign them ------------------------------- */

/* Signs each head anew, as `edit` leaves it; false: without it. */
static void
heads_edit(bool (*edit)(char *line))
{
    char      path[128], line[HEADS_LINE_MAX], *at;
    FILE     *f_;
    sb_buf_t  all = { .max = 1024 * 1024 };
    size_t    from;

    (void) snprintf(path, sizeof(path), "%s/" HEADS_FILE, p.history);
    f_ = fopen(path, "r+");
    assert_non_null(f_);

    while (fgets(line, sizeof(line), f_)) {
        if (!edit(line)) {
            continue;
        }

        at = strstr(line, ",\"signature\":");
        assert_non_null(at);
        (void) strcpy(at, "}");

        from = all.len;
        assert_int_equal(sb_buf_add(&all, line, strlen(line)), SB_OK);
        assert_true(keys_sign_member(keys, &all, from, all.len - 1));
        assert_int_equal(sb_buf_add_c(&all, '\n'), SB_OK);
    }

    rewind(f_);
    assert_int_equal(fwrite(all.data, 1, all.len, f_), all.len);
    (void) fclose(f_);
    assert_int_equal(truncate(path, (off_t) all.len), 0);
    sb_buf_free(&all);
}


static bool
head_earlier(char *line)
{
    char  *at, *behind;

    at = strstr(line, "\"proven\":");
    assert_non_null(at);
    behind = strchr(at, ',') + 1;
    memmove(at, behind, strlen(behind) + 1);

    return true;
}


/* The heads as these versions wrote them. */
static void
heads_earlier(void)
{
    heads_edit(head_earlier);
}


static void
purges_unsigned(unsigned op)
{
    store_set_heads(p.store, NULL);
    purges_op(op);
    store_set_heads(p.store, heads);
}


static void
three_earlier(void)
{
    three();
    purges_unsigned(1);
    begins(4);
    sign();
    heads_earlier();
}


/* They verify as before; from when this version goes on with them every purge is
 * signed. */
static void
test_earlier(void **state)
{
    (void) state;

    three_earlier();
    is("a", "select json_extract(detail, '$.signature') is null from"
       " gateway_chain where kind = 'purge'", "1");
    verifies("a");

    restarts();
    verifies("a");
    ends(4);
    sign();
    verifies("a");
    purges_op(3);
    sign();
    verifies("a");

    /* also when only the last head is left to say so */
    turns();
    begins(5);
    sign();
    verifies("a");

    takes_out();
    faults("a", "removed");
}


/* What is purged behind their last head may be theirs or anybody's. */
static void
test_earlier_unsigned(void **state)
{
    (void) state;

    three_earlier();
    verifies("a");
    takes_out();
    assert_non_null(strstr(verified("a"), "is not signed"));

    /* nobody vouches for it later */
    restarts();
    ends(4);
    sign();
    faults("a", "removed");
}


/* --- rows that no entry speaks of ------------------------------------------- */

/* A terminal: typed into, and answered. */
static void
terminal_begins(unsigned op)
{
    begin(op, "pty.open", "a", op);
    put();
    output(op, SB_STREAM_NOTE, "as1", 3, op);
    output(op, SB_STREAM_INPUT, "ls\r", 3, op);
    output(op, 0, "a b\r\n", 5, op);
    go();
}


static void
terminal_ends(unsigned op)
{
    output(op, SB_STREAM_INPUT, "exit\r", 5, op + 3);
    ends(op);
}

#define TERMINAL_ROW(n)                                                       \
    "insert into gateway_terminal(event_id, n, at, events) select event_id, " \
    n ", at, '[[0,\"i\",\"rm -rf /\\r\"]]' from gateway_terminal where n = 0"

/* the first row, written past the chain */
#define TERMINAL_FIRST                                                        \
    "insert into gateway_terminals(event_id, session) values('" EVENT_1       \
    "', 's1');"                                                               \
    "insert into gateway_terminal(event_id, n, at, events) values('" EVENT_1  \
    "', 0, '2026-01-01T00:00:00.000000Z', '[[0,\"o\",5]]')"


/* Rows of a terminal behind those that it has, and output that is told once
 * more. */
static void
test_rows_added(void **state)
{
    sqlite3  *db;

    (void) state;

    seen("a");
    terminal_begins(1);
    ends(1);
    begins(2);
    ends(2);
    sign();
    is("a", "select count(*) from gateway_terminal", "1");
    verifies("a");

    db = open_file("a");
    change(db, TERMINAL_ROW("1"));
    faults("a", "foreign");
    assert_string_equal(v.event, EVENT_1);
    change(db, "delete from gateway_terminal where n = 1");
    verifies("a");

    change(db, TERMINAL_ROW("-1"));
    faults("a", "foreign");
    change(db, "delete from gateway_terminal where n = -1");

    change(db, "insert into gateway_terminal(event_id, n, at, events) values('"
           EVENT_2 "', 0, '', '[]')");
    faults("a", "foreign");
    assert_string_equal(v.event, EVENT_2);
    change(db, "delete from gateway_terminal where event_id = '" EVENT_2 "'");
    verifies("a");

    change(db, "insert into gateway_output(event_id, ord, stream, chunk_index,"
           " offset, length, at, cursor) select event_id, 1, stream,"
           " chunk_index, offset, length, at, cursor from gateway_output where"
           " event_id = '" EVENT_2 "'");
    (void) sqlite3_close(db);
    faults("a", "foreign");
    assert_string_equal(v.event, EVENT_2);
}


/* A terminal that is opened before its sandbox is known moves with its rows. */
static void
test_terminal_moved(void **state)
{
    sqlite3  *db;

    (void) state;

    begin(1, "pty.open", "a", 1);
    put();
    go();
    change_file("_gateway", TERMINAL_FIRST);
    restarts();
    seen("a");
    go();
    is("_gateway", "select count(*) from gateway_terminal", "0");
    terminal_ends(1);
    sign();
    is("a", "select count(*) from gateway_terminal", "2");
    verifies("a");
    verifies("_gateway");

    db = open_file("a");
    change(db, TERMINAL_ROW("2"));
    faults("a", "foreign");
    change(db, "delete from gateway_terminal where n = 2");
    verifies("a");
    change(db, "update gateway_terminal set events = '[]' where n = 0");
    (void) sqlite3_close(db);
    faults("a", "changed");
}


/* Where an earlier version moved it these rows have no entries. */
static void
test_terminal_earlier(void **state)
{
    sqlite3  *db;

    (void) state;

    seen("a");
    begin(1, "pty.open", "a", 1);
    put();
    go();

    /* a row beside the chain */
    db = open_file("a");
    change(db, TERMINAL_FIRST);
    sign();
    heads_earlier();
    verifies("a");

    restarts();
    verifies("a");
    terminal_ends(1);
    sign();
    is("a", "select count(*) from gateway_terminal", "2");
    is("a", "select count(*) from gateway_chain where kind = 'note'", "1");
    verifies("a");

    change(db, TERMINAL_ROW("2"));
    faults("a", "foreign");
    change(db, "delete from gateway_terminal where n = 2");
    verifies("a");
    change(db, TERMINAL_ROW("-1"));
    faults("a", "foreign");
    (void) sqlite3_close(db);
}


/* What others wrote does not hide that the chain was cut. */
static void
test_foreign_and_cut(void **state)
{
    sqlite3  *db;

    (void) state;

    three();
    db = open_file("a");
    change(db, "insert into history_events(event_id, provider_key, sandbox_id,"
           " sandbox_instance_id, actor_type, operation_type, status,"
           " occurred_at) select 'other', provider_key, sandbox_id,"
           " sandbox_instance_id, 'system', 'file.list', 'succeeded',"
           " occurred_at from history_events limit 1");
    faults("a", "foreign");
    change(db, "delete from gateway_chain where n > 4");
    (void) sqlite3_close(db);
    faults("a", "cut");
}


/* --- the end of another file ------------------------------------------------ */

static unsigned  ends_seen;

/* Only those behind the first end, and they are signed now. */
static bool
head_later(char *line)
{
    char  now[SB_TIME_LEN + 1];
    bool  keep;

    keep = ends_seen > 0;
    ends_seen += strstr(line, "\"ended\":") != NULL;
    sb_time_text(now, sb_now_us());
    assert_memory_equal(line, "{\"at\":\"", 7);
    memcpy(line + 7, now, SB_TIME_LEN);

    return keep;
}


/* Of the files of a sandbox only the later ones have an end in the heads: the
 * first is not held to what is not of it. */
static void
test_older_end(void **state)
{
    char      clock[96], first[512], second[512], path[512];
    sqlite3  *db;

    (void) state;

    (void) snprintf(clock, sizeof(clock), "%s/clock", p.path);
    three();
    archives(clock, 10, first, sizeof(first));
    seen("a");
    begins(4);
    ends(4);
    archives(clock, 100, second, sizeof(second));
    assert_string_equal(verified_file("a", first), "");
    assert_string_equal(verified_file("a", second), "");

    ends_seen = 0;
    heads_edit(head_later);
    assert_int_equal(ends_seen, 2);
    assert_string_equal(verified_file("a", second), "");
    assert_non_null(strstr(verified_file("a", first), HEADS_OLD));

    /* a copy of the one that came after is held to what is behind */
    seen("a");
    begins(5);
    ends(5);
    store_heads_sign(p.store, sb_now_us());
    (void) snprintf(path, sizeof(path), "%s/a/history.sqlite3", p.history);
    assert_string_equal(verified_file("a", path), "");
    db = open_file("a");
    change(db, "delete from gateway_chain where kind = 'end'");
    (void) sqlite3_close(db);
    assert_string_equal(verified_file("a", path), "cut");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        chain_case(test_forged_purge),
        chain_case(test_forged_base),
        chain_case(test_purge_changed),
        chain_case(test_earlier),
        chain_case(test_earlier_unsigned),
        chain_case(test_rows_added),
        chain_case(test_terminal_moved),
        chain_case(test_terminal_earlier),
        chain_case(test_foreign_and_cut),
        chain_case(test_older_end),
    };

    return store_run(argc, argv, tests);
}
