/* From the journal into history files: what stands there. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "history_pieces.h"
#include "history_query.h"
#include "store_place.h"
#include "versions_find.h"


static void
test_new_file(void **state)
{
    (void) state;

    seen("s1");
    whole(1, "file.list", "s1", "succeeded", 200);
    go();

    is("s1", "pragma user_version", "1");
    is("s1", "pragma journal_mode", "wal");
    is("s1", "pragma auto_vacuum", "2");
    is("s1", "pragma integrity_check", "ok");
    is("s1", "select group_concat(key || '=' || value, ' ') from history_meta"
       " where key in ('schema_version', 'provider_key', 'sandbox_id',"
       " 'sandbox_instance_id', 'history_config_revision',"
       " 'history_config_updated_by') order by key",
       "history_config_revision=0 history_config_updated_by=sdk:initialize"
       " provider_key=opensandbox-default sandbox_id=s1"
       " sandbox_instance_id=legacy-54070b7bb677ebee6f5c83bf53049a93"
       " schema_version=1");
    is("s1", "select value from history_meta where key = 'sdk_version'",
       "ngx_sandbox_module/" SB_VERSION);

    /* the 24 persisted fields, canonical */
    is("s1", "select count(*) from history_meta m, json_each(m.value) where"
       " m.key = 'history_config_json'", "24");
    is("s1", "select value = (select json_group_object(key, json(value)) from"
       " (select e.key, case when e.type in ('true', 'false') then e.type"
       " when e.type = 'text' then json_quote(e.value) when e.key ="
       " 'output_write_timeout_seconds' then '10.0' else e.value end value"
       " from json_each(m.value) e order by e.key)) from history_meta m where"
       " m.key = 'history_config_json'", "1");
}


static void
test_row(void **state)
{
    (void) state;

    seen("s1");

    begin(1, "command.execute", "s1", 1000);
    tf_str(&f, SB_T_SOURCE, "sdk");
    tf_str(&f, SB_T_ACTOR_TYPE, "agent");
    tf_str(&f, SB_T_ACTOR_ID, "a1");
    tf_str(&f, SB_T_THREAD, "t1");
    tf_str(&f, SB_T_RUN, "r1");
    tf_str(&f, SB_T_CORRELATION, "c1");
    tf_str(&f, SB_T_PARENT, "p1");
    tf_str(&f, SB_T_IDENTITY, "token:abc+stated");
    tf_str(&f, SB_T_METHOD, "POST");
    tf_str(&f, SB_T_PATH, "/command");
    tf_u64(&f, SB_T_PORT, 44772);
    tf_str(&f, SB_T_CLIENT, "127.0.0.1");
    tf_str(&f, SB_T_AGENT, "OpenSandbox-Python-SDK/0.1");
    tf_str(&f, SB_T_REQUEST_ID, "req1");
    tf_str(&f, SB_T_RECORD, "strict");
    put();

    facts(1);
    tf_str(&f, SB_T_REQUEST, "{\"command\":\"exit 3\"}");
    tf_str(&f, SB_T_COMMAND, "exit 3");
    tf_u64(&f, SB_T_TIMEOUT_MS, 1500);
    put();

    output(1, 0, "one\n", 4, 2000);
    output(1, 1, "two\n", 4, 2500);
    output(1, 0, "three\n", 6, 3000);

    end(1, "failed", 200, 2001000);
    tf_u64(&f, SB_T_DURATION_US, 1999999);
    tf_u64(&f, SB_T_EXIT_CODE, 3);
    tf_str(&f, SB_T_COMMAND_ID, "cmd1");
    tf_u64(&f, SB_T_BYTES_IN, 20);
    tf_u64(&f, SB_T_BYTES_OUT, 200);
    tf_u64(&f, SB_T_STDOUT_TOTAL, 10);
    tf_u64(&f, SB_T_STDERR_TOTAL, 4);
    tf_str(&f, SB_T_ROUTE, "straight");
    tf_str(&f, SB_T_UPSTREAM, "10.0.0.1:44772");
    tf_str(&f, SB_T_RESULT, "{\"exit_code\":3,\"ename\":\"CommandExecError\"}");
    put();
    go();

    is("s1", "select event_id || '|' || provider_key || '|' || sandbox_id ||"
       " '|' || source || '|' || actor_type || '|' || actor_id || '|' ||"
       " thread_id || '|' || run_id || '|' || correlation_id || '|' ||"
       " operation_type || '|' || status || '|' || occurred_at || '|' ||"
       " completed_at || '|' || duration_ms || '|' || request_json || '|' ||"
       " schema_version from history_events",
       "01000000-0000-7000-8000-000000000001|opensandbox-default|s1|sdk|agent"
       "|a1|t1|r1|c1|command.execute|failed|2026-11-29T09:00:00.001000Z"
       "|2026-11-29T09:00:02.001000Z|1999|{\"command\":\"exit 3\"}|1");
    is("s1", "select result_json from history_events",
       "{\"bytes_in\":20,\"bytes_out\":200,\"command_id\":\"cmd1\","
       "\"ename\":\"CommandExecError\",\"exit_code\":3,"
       "\"history_storage_state\":\"complete\",\"http_status\":200,"
       "\"line_ends\":\"reconstructed\",\"output_complete\":true,"
       "\"stderr_bytes\":4,\"stderr_total_bytes\":4,\"stdout_bytes\":10,"
       "\"stdout_total_bytes\":10}");
    is("s1", "select command || '|' || cwd || '|' || ifnull(environment_json,"
       " 'NULL') || '|' || timeout_ms || '|' || exit_code || '|' ||"
       " provider_command_id || '|' || output_complete || '|' ||"
       " history_storage_state from command_executions",
       "exit 3||NULL|1500|3|cmd1|1|complete");
    is("s1", "select stream || chunk_index || encoding || original_size || data"
       " from command_output_chunks order by id",
       "stdout0identity10one\nthree\n;stderr0identity4two\n");
    is("s1", "select ord || stream || chunk_index || '@' || offset || '+' ||"
       " length || at from gateway_output order by ord",
       "0stdout0@0+42026-11-29T09:00:00.002000Z;"
       "1stderr0@0+42026-11-29T09:00:00.002500Z;"
       "2stdout0@4+62026-11-29T09:00:00.003000Z");
    is("s1", "select change_id || ' ' || change_type from history_changes"
       " order by seq",
       "01000000-0000-7000-8000-000000000001:created created;"
       "01000000-0000-7000-8000-000000000001:output:stdout:0,stderr:0"
       " output_appended;"
       "01000000-0000-7000-8000-000000000001:completed:failed completed");
    is("s1", "select ifnull(sandbox, 'NULL') || method || path || port ||"
       " client || agent || request_id || http_status || upstream_status ||"
       " upstream || route || bytes_in || bytes_out || duration_us || identity"
       " || parent || record || foldable from gateway_wire",
       "NULLPOST/command44772127.0.0.1OpenSandbox-Python-SDK/0.1req1200200"
       "10.0.0.1:44772straight202001999999token:abc+statedp1strict0");
    is("s1", "select seq || '@' || cursor from gateway_records", "1@2");
}


/* The same, but every frame is applied before the next one comes. */
static void
test_row_in_pieces(void **state)
{
    (void) state;

    seen("s1");
    begin(1, "code.execute", "s1", 1000);
    put();
    go();
    is("s1", "select status || request_json from history_events", "started{}");

    facts(1);
    tf_str(&f, SB_T_TYPE, "command.execute");
    tf_str(&f, SB_T_REQUEST, "{\"a\":1}");
    tf_str(&f, SB_T_COMMAND, "x");
    tf_str(&f, SB_T_CWD, "/w");
    put();
    go();
    is("s1", "select operation_type || request_json from history_events",
       "command.execute{\"a\":1}");

    output(1, 0, "one\n", 4, 2000);
    go();
    output(1, 0, "two\n", 4, 2001);
    go();

    /* restarted in the middle: indexes go on */
    stop();
    start(STORE_HANDLES);

    output(1, 1, "err\n", 4, 2002);
    output(1, 0, "three\n", 6, 2003);
    go();

    end(1, "succeeded", 200, 9000);
    tf_u64(&f, SB_T_EXIT_CODE, 0);
    put();
    go();

    is("s1", "select stream || chunk_index from command_output_chunks order by"
       " id", "stdout0;stdout1;stdout2;stderr0");
    is("s1", "select group_concat(ord || stream, ' ') from (select * from"
       " gateway_output order by ord)", "0stdout 1stdout 2stderr 3stdout");
    is("s1", "select status || duration_ms from history_events",
       "succeeded0");
    is("s1", "select json_extract(result_json, '$.stdout_bytes') from"
       " history_events", "14");
    is("s1", "select command || cwd || exit_code || output_complete from"
       " command_executions", "x/w01");

    /* an end that comes again changes nothing */
    end(1, "failed", 500, 99000);
    put();
    output(1, 0, "late", 4, 99000);
    go();
    is("s1", "select status || completed_at from history_events",
       "succeeded2026-11-29T09:00:00.009000Z");
    is("s1", "select count(*) from history_changes", "5");
    is("s1", "select count(*) from gateway_records", "1");
}


static void
test_chunks(void **state)
{
    size_t       i;
    static char  data[100000];

    (void) state;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (char) (i * 7 % 251);
    }

    seen("s1");
    begin(1, "command.execute", "s1", 0);
    put();

    /* C107, C162: large pieces are cut, small ones merged; order is kept */
    output(1, 0, data, 50000, 0);
    output(1, 1, data, 1, 1);
    output(1, 0, data + 50000, 50000, 50000);
    go();

    is("s1", "select group_concat(stream || chunk_index || '=' ||"
       " length(data), ' ') from (select * from command_output_chunks order by"
       " stream, chunk_index)",
       "stderr0=1 stdout0=16384 stdout1=16384 stdout2=16384 stdout3=16384"
       " stdout4=16384 stdout5=16384 stdout6=1696");
    is("s1", "select sum(length) || ' ' || count(*) from gateway_output",
       "100001 9");
    is("s1", "select max(original_size - length(data)) from"
       " command_output_chunks", "0");

    for (i = 0; i < 1000; i++) {
        output(1, (unsigned) (i / 100) % 2, "line\n", 5, 60000 + i);
    }

    go();
    is("s1", "select count(*) from command_output_chunks where chunk_index >"
       " 6 or (stream = 'stderr' and chunk_index > 0)", "2");
    is("s1", "select sum(length) from gateway_output", "105001");
    is("s1", "select group_concat(length, ' ') from (select length from"
       " gateway_output where ord > 8 order by ord)",
       "500 500 500 500 500 500 500 500 500 500");
}


typedef struct {
    char    text[65536];
    size_t  n;
} flood_t;


/* Upper case: it came on stderr. */
static bool
flood_piece(void *data, const history_piece_t *piece, sb_str_t s)
{
    size_t    i;
    flood_t  *got = data;

    assert_true(piece->plain);

    for (i = 0; i < s.len; i++) {
        assert_true(got->n < sizeof(got->text));
        got->text[got->n++] = (char) (s.data[i] - (piece->is_stderr ? 32 : 0));
    }

    return true;
}


/* What a reader gets of an operation, both streams in order. */
static void
flood_read(flood_t *got)
{
    char             path[512], id[64];
    sqlite3         *db;
    history_error_t  err;

    got->n = 0;
    (void) snprintf(id, sizeof(id), "%s",
                    ask("s1", "select event_id from history_events"));
    (void) store_dir_path(path, sizeof(path), p.history, "s1");
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_true(history_query_prepare(db, &err));
    assert_int_equal(history_query_output(db, id, NULL, -1, flood_piece, got,
                                          &err), 1);
    (void) sqlite3_close(db);
}


/* Pieces of a byte, one stream after the other: few rows, order kept; also in a
 * file of the build before. */
static void
test_C162_flood(void **state)
{
    char             want[40000], c;
    size_t           i;
    static flood_t   got;

    (void) state;

    seen("s1");
    begin(1, "command.execute", "s1", 0);
    put();
    go();

    stop();
    {
        char      path[512];
        sqlite3  *db;

        (void) store_dir_path(path, sizeof(path), p.history, "s1");
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db,
                "alter table gateway_output drop column runs;"
                "alter table gateway_output drop column other_offset;"
                "alter table gateway_output drop column other_index;",
                NULL, NULL, NULL), SQLITE_OK);
        (void) sqlite3_close(db);
    }
    start(STORE_HANDLES);

    for (i = 0; i < sizeof(want); i++) {
        c = (char) ('a' + i * 7 % 26);
        want[i] = (char) (i % 3 == 1 ? c - 32 : c);
        output(1, i % 3 == 1, &c, 1, i);

        if (i % 15000 == 14999) {
            go();
        }
    }

    end(1, "succeeded", 200, 90000);
    put();
    go();

    is("s1", "select sum(length) || ' ' || (count(*) < 100) from"
       " gateway_output", "40000 1");
    is("s1", "select max(ord) + 1 = count(*) from gateway_output", "1");
    is("s1", "select sum(length(runs)) < 120000 from gateway_output", "1");

    flood_read(&got);
    assert_int_equal(got.n, sizeof(want));
    assert_memory_equal(got.text, want, sizeof(want));
}


/* Runs of a statement since it was asked last. */
static int
asked(const char *dir, unsigned stmt)
{
    int          rc;
    store_db_t  *db;

    db = store_get(p.store, dir, false, &rc);
    assert_non_null(db);

    return sqlite3_stmt_status(db->stmts[stmt], SQLITE_STMTSTATUS_RUN, 1);
}


/* Writes n files, one below the other or side by side, at that depth. */
static void
deep_files(unsigned op, unsigned n, size_t depth, bool beside)
{
    size_t    k, len;
    unsigned  i;

    static char  path[4096];

    begin(op, "file.write", "s1", op * 100);
    put();
    facts(op);

    for (i = 0; i < n; i++) {
        len = (size_t) snprintf(path, sizeof(path), "/%u", beside ? 0 : i);

        for (k = 1; k < depth; k++) {
            path[len++] = '/';
            path[len++] = 'd';
        }

        (void) snprintf(path + len, sizeof(path) - len, "/f%u", i);
        tf_str(&f, SB_T_FILE_PATH, path);
        tf_u64(&f, SB_T_FILE_SIZE, 1);
        sb_frame_put(&f.w, SB_T_FILE_SHA256, sb_str(path, 32));
    }

    put();
    end(op, "succeeded", 200, op * 100 + 10);
    put();
    go();
}


/* What is looked at above the files of one operation has a bound. */
static void
test_deep_files(void **state)
{
    (void) state;

    seen("s1");
    deep_files(1, 12, 1000, false);
    deep_files(2, 12, 1000, false);
    assert_int_equal(asked("s1", ROWS_VERSION_ABOVE), VERSIONS_DIRS);
    is("s1", "select group_concat(before) from (select before from gateway_files"
       " where event_id = (select max(event_id) from history_events)"
       " order by n)", "history,history,history,history,history,history,"
       "history,history,assumed,assumed,assumed,assumed");

    /* those of one directory have the same ones above them */
    deep_files(3, 100, 10, true);
    deep_files(4, 100, 10, true);
    assert_int_equal(asked("s1", ROWS_VERSION_ABOVE), 10);
    is("s1", "select distinct before from gateway_files where event_id ="
       " (select max(event_id) from history_events)", "history");

    /* one of which has become another since */
    begin(5, "file.move", "s1", 500);
    tf_str(&f, SB_T_FILE_PATH, "/0/d/e");
    tf_str(&f, SB_T_FILE_OLD, "/0/d/d");
    put();
    end(5, "succeeded", 200, 510);
    put();
    go();
    deep_files(6, 3, 10, true);
    is("s1", "select distinct before from gateway_files where event_id ="
       " (select max(event_id) from history_events)", "unavailable");
}


/* What does not fit into a file is a gap there; what is beside it is kept. */
static void
test_not_recordable(void **state)
{
    (void) state;

    seen("s1");
    begin(1, "command.execute", "s1", 1);
    put();
    go();
    change_file("s1", "create trigger a before insert on history_events when"
        " new.operation_type = 'file.read' begin select raise(abort, 'no');"
        " end; create trigger b before update on history_events when"
        " new.status = 'failed' begin select raise(abort, 'no'); end");

    whole(2, "file.list", "s1", "succeeded", 200);
    whole(3, "file.read", "s1", "succeeded", 200);
    end(1, "failed", 500, 10);
    put();
    whole(4, "file.list", "s1", "succeeded", 200);
    go();

    is("s1", "select operation_type || status || ifnull(json_extract("
       "result_json, '$.reason'), '') from history_events order by seq",
       "command.executeunknownnot_recordable;file.listsucceeded;"
       "gateway.gapunknownnot_recordable;gateway.gapunknownnot_recordable;"
       "file.listsucceeded");
    is("s1", "select operations || substr(json_extract(result_json,"
       " '$.operation_id'), -1) || (cursor > 0) from gateway_gaps join"
       " history_events using (event_id) order by seq", "131;011");
    is("s1", "select count(*) || max(seq) from gateway_records", "55");
    is("s1", "pragma integrity_check", "ok");
}


static void
test_files(void **state)
{
    static const char  hash[] = "\x01\x23\x45\x67\x89\xab\xcd\xef"
                                "\x01\x23\x45\x67\x89\xab\xcd\xef"
                                "\x01\x23\x45\x67\x89\xab\xcd\xef"
                                "\x01\x23\x45\x67\x89\xab\xcd\xef";

    (void) state;

    seen("s1");
    begin(1, "file.write", "s1", 0);
    put();
    facts(1);
    tf_str(&f, SB_T_FILE_PATH, "/w/a");
    tf_u64(&f, SB_T_FILE_MODE, 644);
    tf_str(&f, SB_T_FILE_PATH, "/w/b");
    put();
    go();

    /* size and digest come when the body has passed */
    facts(1);
    tf_str(&f, SB_T_FILE_PATH, "/w/a");
    tf_u64(&f, SB_T_FILE_SIZE, 11);
    sb_frame_put(&f.w, SB_T_FILE_SHA256, sb_str(hash, 32));
    tf_str(&f, SB_T_FILE_PATH, "/w/b");
    tf_u64(&f, SB_T_FILE_SIZE, 0);
    tf_str(&f, SB_T_FILE_PATH, "/w/a");
    tf_u64(&f, SB_T_FILE_SIZE, 12);
    put();
    go();
    is("s1", "select path || change_type || ifnull(after_size, 'NULL') from"
       " file_operations", "/w/awriteNULL");

    end(1, "succeeded", 200, 10);
    put();
    go();

    is("s1", "select n || path || size || ifnull(mode, '') ||"
       " ifnull(substr(sha256, 1, 16), '') from gateway_files order by n",
       "0/w/a116440123456789abcdef;1/w/b0;2/w/a12");
    is("s1", "select path || change_type || after_size || substr(after_hash,"
       " 1, 16) || ifnull(before_size, 'NULL') from file_operations",
       "/w/awrite110123456789abcdefNULL");

    /* C114: a write that failed has no "after" */
    begin(2, "file.write", "s1", 0);
    tf_str(&f, SB_T_FILE_PATH, "/w/c");
    tf_u64(&f, SB_T_FILE_SIZE, 5);
    put();
    end(2, "failed", 500, 10);
    put();

    begin(3, "file.move", "s1", 0);
    tf_str(&f, SB_T_FILE_PATH, "/w/new");
    tf_str(&f, SB_T_FILE_OLD, "/w/old");
    put();
    end(3, "succeeded", 200, 10);
    put();

    begin(4, "file.read", "s1", 0);
    tf_str(&f, SB_T_FILE_PATH, "/w/r");
    put();
    end(4, "succeeded", 200, 10);
    tf_u64(&f, SB_T_BYTES_OUT, 77);
    sb_frame_put(&f.w, SB_T_SHA256, sb_str(hash, 32));
    put();

    begin(5, "isolated.dir.list", "s1", 0);
    tf_str(&f, SB_T_FILE_PATH, "/w");
    put();
    go();

    is("s1", "select path || ' ' || ifnull(old_path, '-') || ' ' ||"
       " change_type || ' ' || ifnull(after_size, '-') from file_operations"
       " order by rowid",
       "/w/a - write 11;/w/c - write -;/w/new /w/old move -;/w/r - read 77;"
       "/w - list -");
}


/* Text that no reader could decode is made readable, the file stays sound. */
static void
test_bad_text(void **state)
{
    (void) state;

    seen("s1");
    begin(1, "command.execute", "s1", 0);
    sb_frame_put(&f.w, SB_T_COMMAND, sb_str("a\xff\0b\xe4\xb8\xad", 7));
    put();
    end(1, "nonsense", 200, 1);
    tf_str(&f, SB_T_RESULT, "{broken");
    put();
    go();

    is("s1", "select command from command_executions",
       "a\xef\xbf\xbd\xef\xbf\xbd" "b\xe4\xb8\xad");
    is("s1", "select status from history_events", "unknown");
    is("s1", "select json_extract(result_json, '$.unparsed') from"
       " history_events", "1");
}


static void
test_result_null(void **state)
{
    (void) state;

    seen("s1");
    begin(1, "file.list", "s1", 0);
    put();
    tf_begin(&f, SB_F_END, 0, ++p.seq, 1, 5);
    tf_str(&f, SB_T_STATUS, "succeeded");
    put();
    go();
    is("s1", "select result_json from history_events", "NULL");
    is("s1", "select actor_type || source from history_events",
       "systemgateway");
}


/* --- _gateway, holding and moving --------------------------------------- */

static void
test_create_moves(void **state)
{
    int  pieces;

    (void) state;

    for (pieces = 0; pieces < 2; pieces++) {
        const char  *id = pieces ? "new-2" : "new-1";
        unsigned     op = pieces ? 20 : 10;

        begin(op, "sandbox.create", NULL, 0);
        put();
        facts(op);
        tf_str(&f, SB_T_REQUEST, "{\"image\":\"x\"}");
        tf_str(&f, SB_T_NAME, " box ");
        tf_str(&f, SB_T_INSTANCE_ID, "inst-9");
        put();

        if (pieces) {
            go();
            is("_gateway", "select status from history_events", "started");

            /* the helper is killed and comes back in between */
            stop();
            start(STORE_HANDLES);
        }

        end(op, "succeeded", 202, 50);
        tf_str(&f, SB_T_NEW_SANDBOX, id);
        put();
        whole(op + 1, "sandbox.get", id, "succeeded", 200);
        go();

        is(id, "select operation_type || status from history_events order by"
           " seq", "sandbox.createsucceeded;sandbox.getsucceeded");
        is(id, "select seq from gateway_records order by cursor", "1;2");
        is(id, "select sandbox_id || sandbox_instance_id from history_events",
           pieces ? "new-2inst-9;new-2inst-9" : "new-1inst-9;new-1inst-9");
        is(id, "select value from history_meta where key = 'sandbox_name'",
           "box");
        is(id, "select count(*) from history_changes", "4");
    }

    is("_gateway", "select count(*) from history_events", "0");
    is("_gateway", "select seq || moved_to from gateway_records", "1new-2");
    is("_gateway", "select count(*) from history_changes", "0");
}


static void
test_held_until_shown(void **state)
{
    (void) state;

    whole(1, "sandbox.get", "ghost", "failed", 404);
    go();
    is("ghost", "select 1", "-");
    is("_gateway", "select sandbox from gateway_wire", "ghost");
    is("_gateway", "select sandbox_id from history_events", "_gateway");
    is("_gateway", "select count(*) from gateway_held", "0");

    /* our own refusal says nothing about it: held */
    begin(2, "command.execute", "ghost", 0);
    put();
    go();
    is("_gateway", "select sandbox from gateway_held", "ghost");
    output(2, 0, "x", 1, 5);
    go();

    /* ... but output of it does */
    is("ghost", "select event_id from history_events",
       "01000000-0000-7000-8000-000000000002");
    is("ghost", "select sum(length(data)) from command_output_chunks", "1");
    is("ghost", "select seq from gateway_records", "1");
    is("ghost", "select ifnull(sandbox, 'NULL') from gateway_wire", "NULL");
    is("_gateway", "select seq || ifnull(moved_to, '') from gateway_records"
       " order by seq", "1;2ghost");

    end(2, "succeeded", 200, 9);
    put();
    go();
    is("ghost", "select status from history_events", "succeeded");

    /* what comes now goes there at once, refusals too */
    whole(3, "file.stat", "ghost", "failed", 404);
    go();
    is("ghost", "select count(*) from history_events", "2");
}


static void
test_held_until_seen(void **state)
{
    unsigned  i;

    (void) state;

    /* upstream's answer before it has looked for the sandbox, and after */
    static const unsigned  shows[] = { 404, 401, 405, 422, 400, 307, 101, 501,
                                       502, 503, 409 };
    const unsigned         last = sizeof(shows) / sizeof(shows[0]) - 1;

    for (i = 0; i <= last; i++) {
        whole(30 + i, "file.stat", "t1", "failed", shows[i]);
        go();
        is("t1", "select count(*) from history_events", i < last ? "-" : "7");
    }

    /* not upstream's word: no UPSTREAM_STATUS */
    begin(20, "file.stat", "t2", 0);
    put();
    tf_begin(&f, SB_F_END, 0, ++p.seq, 20, 5);
    tf_str(&f, SB_T_STATUS, "failed");
    tf_u64(&f, SB_T_HTTP_STATUS, 403);
    put();
    go();
    is("t2", "select 1", "-");

    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
    tf_str(&f, SB_T_SANDBOX, "t1");
    tf_str(&f, SB_T_SANDBOX, "t2");
    tf_str(&f, SB_T_NAME, "zwei");
    tf_str(&f, SB_T_INSTANCE_ID, "i2");
    tf_str(&f, SB_T_STATE, "Running");
    tf_str(&f, SB_T_SANDBOX, "t3");
    put();
    go();

    is("t2", "select sandbox_instance_id from history_events", "i2");
    is("t2", "select value from history_meta where key = 'sandbox_name'",
       "zwei");
    is("t2", "select value from gateway_state where key = 'state'", "Running");

    /* an answer that has begun shows it, long before its end */
    begin(22, "command.execute", "t4", 0);
    tf_u64(&f, SB_T_TIME, T0 + 123);
    put();
    go();
    is("t4", "select 1", "-");
    facts(22);
    tf_u64(&f, SB_T_UPSTREAM_STATUS, 200);
    put();
    go();
    is("t4", "select status || occurred_at from history_events",
       "started2026-11-29T09:00:00.000123Z");

    /* seen, but nothing to keep: no file */
    is("t3", "select 1", "-");
    whole(21, "file.stat", "t3", "succeeded", 200);
    go();
    is("t3", "select count(*) from history_events", "1");

    /* gone: told, kept */
    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 77);
    tf_str(&f, SB_T_SANDBOX, "t2");
    tf_str(&f, SB_T_STATE, "gone");
    put();
    go();
    is("t2", "select value from gateway_state where key like 'state%' order by"
       " key", "gone;2026-11-29T09:00:00.000077Z");
}


/* Ids that are no directory names, and one that would be ours. */
static void
test_odd_ids(void **state)
{
    char  dir[STORE_DIR_LEN];

    (void) state;

    seen("../../etc");
    whole(1, "file.stat", "../../etc", "succeeded", 200);
    whole(2, "file.stat", "_gateway", "succeeded", 200);
    go();

    is("_gateway", "select event_id from history_events",
       "01000000-0000-7000-8000-000000000002");
    {
        DIR            *d = opendir(p.history);
        unsigned        n = 0;
        struct dirent  *e;

        while ((e = readdir(d)) != NULL) {
            if (e->d_name[0] == 'x') {
                n++;
                assert_int_equal(strlen(e->d_name), 66);
                (void) snprintf(dir, sizeof(dir), "%.66s", e->d_name);
            }
        }

        closedir(d);
        assert_int_equal(n, 1);
    }
    is(dir, "select sandbox_id from history_events", "../../etc");
}


/* --- folding ------------------------------------------------------------- */

static void
test_fold(void **state)
{
    unsigned  i;

    (void) state;

    seen("s1");

    for (i = 1; i <= 5; i++) {
        poll_once(i, "sandbox.get", "s1", "succeeded");
    }

    go();
    is("s1", "select count(*) from history_events", "1");
    is("s1", "select count || last_at from gateway_folded",
       "42026-11-29T09:00:00.000006Z");

    /* across a restart, and with another kind of poll between */
    stop();
    start(STORE_HANDLES);

    for (i = 6; i <= 9; i++) {
        poll_once(i, i % 2 ? "sandbox.get" : "endpoint.get", "s1",
                  "succeeded");
        go();
    }

    is("s1", "select operation_type from history_events order by seq",
       "sandbox.get;endpoint.get");
    is("s1", "select count from gateway_folded order by count", "1;6");

    /* another status is another row, then it counts itself */
    poll_once(10, "sandbox.get", "s1", "failed");
    poll_once(11, "sandbox.get", "s1", "failed");
    go();
    is("s1", "select status from history_events order by seq",
       "succeeded;succeeded;failed");

    /* anything else in between ends it */
    whole(12, "file.stat", "s1", "succeeded", 200);
    poll_once(13, "sandbox.get", "s1", "failed");
    go();
    is("s1", "select count(*) from history_events", "5");
    is("s1", "select seq from gateway_records order by seq", "1;2;3;4;5");
    is("s1", "select count(*) from history_changes", "10");
}


static void
knock(unsigned op, const char *type)
{
    tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, op, op);
    tf_str(&f, SB_T_TYPE, type);
    tf_str(&f, SB_T_IDENTITY, "none");
    put();
}


static void
knock_end(unsigned op, const char *code)
{
    end(op, "failed", 400, op + 1);

    if (code) {
        tf_str(&f, SB_T_ERROR_CODE, code);
    }

    put();
}


/* Refusals of strangers: a row for each code, in whatever order they come and
 * whatever they knock at. */
static void
test_fold_codes(void **state)
{
    unsigned  i;

    static const char  rows[] = "select w.error_code || f.count from gateway_wire"
                                " w join gateway_folded f on f.event_id ="
                                " w.event_id order by w.error_code";

    (void) state;

    for (i = 1; i <= 4; i++) {
        knock(i, i == 1 ? "sandbox.get" : "file.read");
        knock_end(i, i % 2 ? "A" : "B");
    }

    go();
    is("_gateway", "select count(*) from history_events", "2");
    is("_gateway", rows, "A1;B1");

    stop();
    start(STORE_HANDLES);

    for (i = 5; i <= 10; i++) {
        knock(i, "file.write");
        go();
        is("_gateway", "select count(*) from gateway_pending", "1");
        knock_end(i, i % 2 ? "A" : "B");
        go();
    }

    is("_gateway", "select count(*) from history_events", "2");
    is("_gateway", rows, "A4;B4");

    /* nginx refuses without one */
    knock(11, "file.read");
    knock_end(11, NULL);
    knock(12, "file.read");
    knock_end(12, "A");
    go();
    is("_gateway", "select count(*) from history_events", "3");
    is("_gateway", rows, "A5;B4");
}


/* A poll that fails for another cause is another one, as one of another status
 * is. */
static void
test_fold_causes(void **state)
{
    unsigned  i;

    (void) state;

    seen("s1");

    for (i = 1; i <= 4; i++) {
        tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, i, i);
        tf_str(&f, SB_T_TYPE, "sandbox.get");
        tf_str(&f, SB_T_SANDBOX, "s1");
        put();

        if (i == 1) {
            go();
        }

        knock_end(i, i <= 2 ? "A" : "B");
    }

    go();
    is("s1", "select w.error_code from gateway_wire w"
       " join gateway_records using (event_id) order by seq", "A;B");
    is("s1", "select count from gateway_folded", "1;1");
}


/* A poll whose end is not there yet waits without a row. */
static void
test_fold_in_pieces(void **state)
{
    (void) state;

    seen("s1");
    poll_once(1, "sandbox.get", "s1", "succeeded");
    go();

    tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, 2, 2);
    tf_str(&f, SB_T_TYPE, "sandbox.get");
    tf_str(&f, SB_T_SANDBOX, "s1");
    put();
    go();
    is("s1", "select count(*) from history_events", "1");
    is("s1", "select count(*) from gateway_pending", "1");

    stop();
    start(STORE_HANDLES);

    end(2, "succeeded", 200, 3);
    put();
    go();
    is("s1", "select count(*) from history_events", "1");
    is("s1", "select count from gateway_folded", "1");
    is("s1", "select count(*) from gateway_pending", "0");

    tf_begin(&f, SB_F_BEGIN, SB_FF_FOLD, ++p.seq, 3, 4);
    tf_str(&f, SB_T_TYPE, "sandbox.get");
    tf_str(&f, SB_T_SANDBOX, "s1");
    tf_str(&f, SB_T_METHOD, "GET");
    put();
    go();
    end(3, "failed", 500, 5);
    put();
    go();
    is("s1", "select status || occurred_at from history_events order by seq",
       "succeeded2026-11-29T09:00:00.000001Z;"
       "failed2026-11-29T09:00:00.000004Z");
    is("s1", "select method from gateway_wire where method is not null",
       "GET");
    is("s1", "select count(*) from gateway_pending", "0");
}


static void
test_gap(void **state)
{
    (void) state;

    tf_begin(&f, SB_F_GAP, 0, ++p.seq, 0, 9000000);
    tf_u64(&f, SB_T_COUNT, 12);
    tf_u64(&f, SB_T_TIME, T0);
    tf_u64(&f, SB_T_TIME_END, T0 + 2500000);
    tf_str(&f, SB_T_REASON, "helper_unreachable");
    put();

    seen("s1");
    begin(1, "command.execute", "s1", 0);
    put();
    tf_begin(&f, SB_F_GAP, 0, ++p.seq, 1, 9000000);
    tf_u64(&f, SB_T_OUTPUT_LOST, 4096);
    put();
    go();

    is("_gateway", "select operation_type || status || occurred_at ||"
       " completed_at || duration_ms from history_events",
       "gateway.gapunknown2026-11-29T09:00:00.000000Z"
       "2026-11-29T09:00:02.500000Z2500");
    is("_gateway", "select result_json from history_events",
       "{\"from\":\"2026-11-29T09:00:00.000000Z\",\"operations\":12,"
       "\"output_bytes\":0,\"reason\":\"helper_unreachable\","
       "\"to\":\"2026-11-29T09:00:02.500000Z\"}");
    is("_gateway", "select operations || reason from gateway_gaps",
       "12helper_unreachable");
    is("_gateway", "select change_type from history_changes order by seq",
       "created;completed");
    is("s1", "select operation_type from history_events order by seq",
       "command.execute;gateway.gap");
    is("s1", "select output_bytes from gateway_gaps", "4096");
    is("s1", "select json_extract(result_json, '$.operation_id') from"
       " history_events where operation_type = 'gateway.gap'",
       "01000000-0000-7000-8000-000000000001");
}


static void
test_detached(void **state)
{
    (void) state;

    seen("s1");
    begin(1, "command.execute", "s1", 0);
    tf_str(&f, SB_T_COMMAND, "sleep 9");
    put();
    output(1, 0, "begun\n", 6, 100);
    end(1, "succeeded", 200, 1000);
    tf_str(&f, SB_T_COMMAND_ID, "cmd1");
    tf_str(&f, SB_T_DETACHED, "");
    tf_str(&f, SB_T_REASON, "client_disconnected");
    tf_str(&f, SB_T_RESULT, "{\"was\":1}");
    tf_u64(&f, SB_T_BYTES_OUT, 55);
    put();
    go();

    is("s1", "select status || ifnull(completed_at, 'NULL') || "
       " ifnull(result_json, 'NULL') from history_events", "startedNULLNULL");
    is("s1", "select command_id || since || reason || ifnull(ended_at, '-')"
       " from gateway_detached",
       "cmd12026-11-29T09:00:00.001000Zclient_disconnected-");
    is("s1", "select provider_command_id from command_executions", "cmd1");

    stop();
    start(STORE_HANDLES);

    /* as the helper itself writes it: with the sandbox */
    tf_begin(&f, SB_F_END, 0, 0, 1, 9000000);
    tf_str(&f, SB_T_SANDBOX, "s1");
    tf_str(&f, SB_T_COMMAND_ID, "cmd1");
    tf_str(&f, SB_T_STATUS, "failed");
    tf_u64(&f, SB_T_EXIT_CODE, 4);
    tf_u64(&f, SB_T_DURATION_US, 9000000);
    put();
    go();

    is("s1", "select status || completed_at || duration_ms from history_events",
       "failed2026-11-29T09:00:09.000000Z9000");
    is("s1", "select ended_at from gateway_detached",
       "2026-11-29T09:00:09.000000Z");
    is("s1", "select exit_code || output_complete || history_storage_state"
       " from command_executions", "40partial");
    is("s1", "select json_extract(result_json, '$.was') ||"
       " json_extract(result_json, '$.detached') || json_extract(result_json,"
       " '$.bytes_out') from history_events", "1client_disconnected55");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_new_file),
        store_case(test_row),
        store_case(test_row_in_pieces),
        store_case(test_chunks),
        store_case(test_C162_flood),
        store_case(test_not_recordable),
        store_case(test_files),
        store_case(test_deep_files),
        store_case(test_bad_text),
        store_case(test_result_null),
        store_case(test_create_moves),
        store_case(test_held_until_shown),
        store_case(test_held_until_seen),
        store_case(test_odd_ids),
        store_case(test_fold),
        store_case(test_fold_codes),
        store_case(test_fold_causes),
        store_case(test_fold_in_pieces),
        store_case(test_gap),
        store_case(test_detached)
    };

    return store_run(argc, argv, tests);
}
