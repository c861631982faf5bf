#include "history_query.h"
#include "id.h"
#include "operation.h"

#include <stdio.h>
#include <stdlib.h>


/* Columns that the queries here ask of each table of ours. */
static const struct {
    const char  *table;
    const char  *columns;
} history_views[] = {
    { "gateway_records", "event_id,seq,cursor,moved_to" },
    { "gateway_wire", "event_id,sandbox,method,path,port,client,agent,"
      "request_id,http_status,upstream_status,upstream,route,bytes_in,"
      "bytes_out,duration_us,identity,parent,error_code,reason,record,"
      "files_total" },
    { "gateway_files", "event_id,n,path,old_path,size,sha256,mode,flags" },
    { "gateway_output", "event_id,ord,stream,chunk_index,offset,length,at" },
    { "gateway_folded", "event_id,count,last_at" },
    { "gateway_gaps", "event_id,operations,output_bytes,from_at,to_at,reason" },
    { "gateway_detached", "event_id,since,ended_at" }
};

#define HISTORY_VIEWS  (sizeof(history_views) / sizeof(history_views[0]))


/* time_us(text): Unix microseconds, or NULL. */
static void
history_sql_time(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    uint64_t  us;

    (void) argc;

    if (sqlite3_value_text(argv[0]) == NULL
        || sb_time_parse(&us, sb_str(sqlite3_value_text(argv[0]),
                                     (size_t) sqlite3_value_bytes(argv[0])))
           != SB_OK)
    {
        sqlite3_result_null(ctx);
        return;
    }

    sqlite3_result_int64(ctx, (sqlite3_int64) us);
}


/* op_glob(glob, text): only "*" is special. */
static void
history_sql_glob(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sb_str_t  glob, text;

    (void) argc;

    if (sqlite3_value_text(argv[0]) == NULL
        || sqlite3_value_text(argv[1]) == NULL)
    {
        sqlite3_result_int(ctx, 0);
        return;
    }

    glob = sb_str(sqlite3_value_text(argv[0]),
                  (size_t) sqlite3_value_bytes(argv[0]));
    text = sb_str(sqlite3_value_text(argv[1]),
                  (size_t) sqlite3_value_bytes(argv[1]));

    sqlite3_result_int(ctx, sb_op_glob(glob, text));
}


/* An empty view for a table that is not there. */
static bool
history_query_view(sqlite3 *db, const char *table, const char *columns,
    history_error_t *err)
{
    int          rc;
    char         sql[1024];
    size_t       n, used;

    used = (size_t) snprintf(sql, sizeof(sql), "CREATE TEMP VIEW %s AS SELECT ",
                             table);

    for (const char *c = columns; *c != '\0'; c += n + (c[n] == ',')) {
        n = strcspn(c, ",");
        used += (size_t) snprintf(sql + used, sizeof(sql) - used,
                                  "%sNULL AS %.*s", c == columns ? "" : ",",
                                  (int) n, c);
    }

    (void) snprintf(sql + used, sizeof(sql) - used, " WHERE 0");

    rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        history_error_sqlite(err, db, rc);
        return false;
    }

    return true;
}


/* Which of the tables are there, as bits. */
static bool
history_query_tables(sqlite3 *db, unsigned *found, history_error_t *err)
{
    int            rc;
    sb_str_t       name;
    sqlite3_stmt  *stmt;

    *found = 0;

    stmt = history_prepare(db, "SELECT name FROM sqlite_master"
                               " WHERE name LIKE 'gateway%'", err);
    if (stmt == NULL) {
        return false;
    }

    while ((rc = history_step(stmt, err)) == 1) {
        name = history_column(stmt, 0);

        for (unsigned i = 0; i < HISTORY_VIEWS; i++) {
            if (sb_eq(name, sb_str(history_views[i].table,
                                   strlen(history_views[i].table))))
            {
                *found |= 1u << i;
            }
        }
    }

    sqlite3_finalize(stmt);

    return rc == 0;
}


bool
history_query_prepare(sqlite3 *db, history_error_t *err)
{
    int       rc;
    unsigned  found;

    rc = sqlite3_exec(db, "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-512;"
                          "BEGIN",
                      NULL, NULL, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(db, "time_us", 1,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                     history_sql_time, NULL, NULL);
    }

    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(db, "op_glob", 2,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                     history_sql_glob, NULL, NULL);
    }

    if (rc != SQLITE_OK) {
        history_error_sqlite(err, db, rc);
        return false;
    }

    if (!history_query_tables(db, &found, err)) {
        return false;
    }

    for (unsigned i = 0; i < HISTORY_VIEWS; i++) {
        if ((found & 1u << i) == 0
            && !history_query_view(db, history_views[i].table,
                                   history_views[i].columns, err))
        {
            return false;
        }
    }

    rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        history_error_sqlite(err, db, rc);
        return false;
    }

    return true;
}


sqlite3_stmt *
history_query_record(sqlite3 *db, bool by_id, history_error_t *err)
{
    static const char  select[] =
        "SELECT "
#define X(name, expression)  expression ","
        HISTORY_COLUMNS(X)
#undef X
        "NULL FROM history_events e"
        " LEFT JOIN gateway_records r ON r.event_id = e.event_id"
        " LEFT JOIN gateway_wire w ON w.event_id = e.event_id"
        " LEFT JOIN command_executions c ON c.event_id = e.event_id"
        " LEFT JOIN file_operations f ON f.event_id = e.event_id"
        " LEFT JOIN gateway_folded d ON d.event_id = e.event_id"
        " LEFT JOIN gateway_gaps p ON p.event_id = e.event_id"
        " LEFT JOIN gateway_detached t ON t.event_id = e.event_id";

    char  sql[sizeof(select) + 64];

    snprintf(sql, sizeof(sql), "%s WHERE %s = ?1", select,
             by_id ? "e.event_id" : "e.seq");

    return history_prepare(db, sql, err);
}


/* What one page of output may hold: a reader that is slow to take it must not
 * keep a snapshot open meanwhile. */
#define HISTORY_PAGE  64

typedef struct {
    sb_buf_t  bytes;
    size_t    n;
    struct {
        size_t  len;
        bool    is_stderr;
        bool    plain;
    }         pieces[HISTORY_PAGE];

    sb_buf_t  runs;             /* of a row that holds many: the only one */
} history_page_t;


static const char  history_one_stream[] =
    "SELECT chunk_index, stream, encoding, data FROM command_output_chunks"
    " WHERE event_id = ?1 AND chunk_index > ?2 AND stream = ?3"
    " ORDER BY chunk_index LIMIT 64";

static const char  history_both_streams[] =
    "SELECT o.ord, o.stream, k.encoding, substr(k.data, o.offset + 1, o.length)"
    " FROM gateway_output o JOIN command_output_chunks k"
    " ON k.event_id = o.event_id AND k.stream = o.stream"
    " AND k.chunk_index = o.chunk_index"
    " WHERE o.event_id = ?1 AND o.ord > ?2 ORDER BY o.ord LIMIT 64";

/* With rows of many runs: the bytes of both streams from where they begin. */

static const char  history_many_runs[] =
    "SELECT o.ord, o.stream, k.encoding, substr(k.data, o.offset + 1,"
    " iif(o.runs IS NULL, o.length, 16384)), o.runs, (SELECT"
    " substr(x.data, o.other_offset + 1) FROM command_output_chunks x"
    " WHERE x.event_id = o.event_id AND x.chunk_index = o.other_index"
    " AND x.stream = iif(o.stream = 'stdout', 'stderr', 'stdout'))"
    " FROM gateway_output o JOIN command_output_chunks k"
    " ON k.event_id = o.event_id AND k.stream = o.stream"
    " AND k.chunk_index = o.chunk_index"
    " WHERE o.event_id = ?1 AND o.ord > ?2 ORDER BY o.ord LIMIT 64";

/* Written by others: the order in which the chunks were stored. */

static const char  history_stored[] =
    "SELECT id, stream, encoding, data FROM command_output_chunks"
    " WHERE event_id = ?1 AND id > ?2 ORDER BY id LIMIT 64";


/* Reads the next page and moves *after behind it: 1, or -1 with err. */
static int
history_output_page(history_page_t *page, sqlite3_stmt *stmt, int64_t *after,
    history_error_t *err)
{
    int       rc;
    sb_str_t  data, runs;

    page->n = 0;
    page->bytes.len = 0;
    page->runs.len = 0;

    sqlite3_bind_int64(stmt, 2, *after);

    while ((rc = history_step(stmt, err)) == 1 && page->n < HISTORY_PAGE) {
        data = history_column(stmt, 3);
        runs = sqlite3_column_count(stmt) > 4 ? history_column(stmt, 4)
                                              : sb_str("", 0);

        if (runs.len && page->n) {
            break;      /* a page of its own */
        }

        if (sb_buf_add_str(&page->bytes, data) != SB_OK) {
            history_error(err, "MemoryError", "out of memory");
            rc = -1;
            break;
        }

        page->pieces[page->n].len = data.len;
        page->pieces[page->n].is_stderr = sb_eq(history_column(stmt, 1),
                                                sb_lit("stderr"));
        page->pieces[page->n].plain = sb_eq(history_column(stmt, 2),
                                            sb_lit("identity"));
        page->n++;
        *after = sqlite3_column_int64(stmt, 0);

        if (runs.len) {

            if (sb_buf_add_str(&page->runs, runs) != SB_OK
                || sb_buf_add_str(&page->bytes, history_column(stmt, 5))
                   != SB_OK)
            {
                history_error(err, "MemoryError", "out of memory");
                rc = -1;
            }

            break;
        }
    }

    sqlite3_reset(stmt);

    return rc == -1 ? -1 : 1;
}


static uint64_t
history_run_number(sb_str_t *runs)
{
    uint64_t  v;
    unsigned  shift, c;

    v = 0;

    for (shift = 0; runs->len && shift < 64; shift += 7) {
        c = (unsigned char) runs->data[0];
        runs->data++;
        runs->len--;
        v |= (uint64_t) (c & 0x7f) << shift;

        if (c < 0x80) {
            break;
        }
    }

    return v;
}


/* The runs of a row that holds many, one by one; false: no more is wanted. */
static bool
history_output_runs(history_page_t *page, history_piece_pt piece, void *data)
{
    bool      is_stderr;
    size_t    n;
    uint64_t  v;
    sb_str_t  runs, *from, streams[2];

    is_stderr = page->pieces[0].is_stderr;
    n = page->pieces[0].len;
    streams[is_stderr] = sb_str(page->bytes.data, n);
    streams[!is_stderr] = sb_str(page->bytes.data + n, page->bytes.len - n);
    runs = sb_str(page->runs.data, page->runs.len);

    while (runs.len) {
        v = history_run_number(&runs);
        (void) history_run_number(&runs);

        is_stderr = v & 1;
        from = &streams[is_stderr];
        n = v / 2 < from->len ? (size_t) (v / 2) : from->len;

        if (n && !piece(data, sb_str(from->data, n), is_stderr,
                        page->pieces[0].plain))
        {
            return false;
        }

        from->data += n;
        from->len -= n;
    }

    return true;
}


/* Are the runs of both streams known?  2: some rows hold many. */
static int
history_output_ordered(sqlite3 *db, const char *id, history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, "SELECT 1 FROM gateway_output"
                               " WHERE event_id = ?1 LIMIT 1", err);
    if (stmt == NULL) {
        return -1;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    rc = history_step(stmt, err);
    sqlite3_finalize(stmt);

    if (rc != 1) {
        return rc;
    }

    /* files of an older build have no such column */
    stmt = history_prepare(db, "SELECT 1 FROM"
                               " pragma_table_info('gateway_output')"
                               " WHERE name = 'runs'", err);
    if (stmt == NULL) {
        return -1;
    }

    rc = history_step(stmt, err);
    sqlite3_finalize(stmt);

    return rc == -1 ? -1 : rc + 1;
}


int
history_query_output(sqlite3 *db, const char *id, const char *stream,
    int64_t after, history_piece_pt piece, void *data, history_error_t *err)
{
    int              rc;
    bool             more;
    int64_t          skip;
    const char      *sql, *p;
    sqlite3_stmt    *stmt;
    history_page_t  *page;

    sql = history_one_stream;
    skip = 0;

    if (stream == NULL) {
        rc = history_output_ordered(db, id, err);

        if (rc == -1) {
            return -1;
        }

        sql = rc == 2 ? history_many_runs : history_both_streams;

        if (rc == 0) {
            sql = history_stored;
            skip = after + 1;
            after = -1;
        }
    }

    page = calloc(1, sizeof(history_page_t));
    if (page == NULL) {
        history_error(err, "MemoryError", "out of memory");
        return -1;
    }

    page->bytes.max = HISTORY_JSON_MAX;
    page->runs.max = HISTORY_JSON_MAX;

    stmt = history_prepare(db, sql, err);
    if (stmt == NULL) {
        free(page);
        return -1;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);

    if (stream != NULL) {
        sqlite3_bind_text(stmt, 3, stream, -1, SQLITE_STATIC);
    }

    more = true;

    while (more && (rc = history_output_page(page, stmt, &after, err)) == 1
           && page->n)
    {
        p = page->bytes.data;

        if (page->runs.len) {

            if (skip > 0) {
                skip--;

            } else {
                more = history_output_runs(page, piece, data);
            }

            continue;
        }

        for (size_t i = 0; i < page->n && more; i++) {
            if (skip > 0) {
                skip--;

            } else {
                more = piece(data, sb_str(p, page->pieces[i].len),
                             page->pieces[i].is_stderr,
                             page->pieces[i].plain);
            }

            p += page->pieces[i].len;
        }
    }

    sqlite3_finalize(stmt);
    sb_buf_free(&page->bytes);
    sb_buf_free(&page->runs);
    free(page);

    return !more ? 0 : rc;
}
