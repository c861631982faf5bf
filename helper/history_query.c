#include "history_query.h"
#include "history_text.h"
#include "id.h"
#include "operation.h"

#include <ctype.h>
#include <errno.h>
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


/* A time of the command line: a date, a time of ISO 8601 (UTC when it names no
 * zone), or so much ago. */
static bool
history_filter_time(int64_t *us, const char *text)
{
    char       full[64];
    char      *end;
    size_t     len;
    uint64_t   value;
    long long  n, unit;

    len = strlen(text);

    if (isdigit((unsigned char) text[0])
        && text[strspn(text, "0123456789")] != '\0'
        && text[strspn(text, "0123456789") + 1] == '\0'
        && strchr("smhd", text[len - 1]) != NULL && len < 10)
    {
        n = strtoll(text, &end, 10);
        unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 86400;
        *us = (int64_t) sb_now_us() - n * unit * 1000000;
        return true;
    }

    if (len >= sizeof(full) - 16) {
        return false;
    }

    strcpy(full, text);

    if (len > 10 && full[10] == ' ') {
        full[10] = 'T';
    }

    if (len == 10) {
        strcat(full, "T00:00:00Z");

    } else if (len == 16) {
        strcat(full, ":00Z");

    } else if (len >= 19 && strpbrk(full + 19, "Zz+-") == NULL) {
        strcat(full, "Z");
    }

    if (sb_time_parse(&value, sb_str(full, strlen(full))) != SB_OK) {
        return false;
    }

    *us = (int64_t) value;

    return true;
}


bool
history_filter_read(history_filter_t *filter, const history_value_t *values)
{
    const history_value_t  *from, *to;

    filter->values = values;
    filter->from_us = -1;
    filter->to_us = -1;

    from = values[HF_SINCE].n ? &values[HF_SINCE] : &values[HF_FROM];
    to = &values[HF_TO];

    if (from->n && !history_filter_time(&filter->from_us, from->text[0])) {
        history_say("%s is no time: write 2026-11-29, 2026-11-29T09:30 or 10m"
                    " (ago)", from->text[0]);
        return false;
    }

    if (to->n && !history_filter_time(&filter->to_us, to->text[0])) {
        history_say("%s is no time: write 2026-11-29, 2026-11-29T09:30 or 10m"
                    " (ago)", to->text[0]);
        return false;
    }

    return true;
}


/* "expression(:name0) OR expression(:name1) ..." for a repeatable option. */
static void
history_filter_any(history_out_t *sql, const history_value_t *v,
    const char *before, const char *name, const char *after)
{
    char  item[64];

    if (v->n == 0) {
        return;
    }

    history_out_text(sql, " AND (");

    for (unsigned i = 0; i < v->n; i++) {
        snprintf(item, sizeof(item), "%s%s:%s%u%s", i ? " OR " : "", before,
                 name, i, after);
        history_out_text(sql, item);
    }

    history_out_text(sql, ")");
}


static void
history_filter_where(history_out_t *sql, const history_filter_t *filter)
{
    static const struct {
        int          option;
        const char  *text;
    } simple[] = {
        { HF_ACTOR, " AND e.actor_id = :actor" },
        { HF_ACTOR_TYPE, " AND e.actor_type = :actor_type" },
        { HF_SOURCE, " AND e.source = :source" },
        { HF_THREAD, " AND e.thread_id = :thread" },
        { HF_RUN, " AND e.run_id = :run" },
        { HF_CORRELATION, " AND e.correlation_id = :correlation" },
        { HF_MIN_DURATION, " AND e.duration_ms >= :duration" },
        { HF_EXIT_CODE, " AND EXISTS(SELECT 1 FROM command_executions c"
          " WHERE c.event_id = e.event_id AND c.exit_code = :exit)" },
        { HF_PATH, " AND (EXISTS(SELECT 1 FROM file_operations f"
          " WHERE f.event_id = e.event_id"
          " AND (op_glob(:path, f.path) OR op_glob(:path, f.old_path)))"
          " OR EXISTS(SELECT 1 FROM gateway_files g"
          " WHERE g.event_id = e.event_id"
          " AND (op_glob(:path, g.path) OR op_glob(:path, g.old_path))))" }
    };

    const history_value_t  *v = filter->values;

    history_filter_any(sql, &v[HF_TYPE], "op_glob(", "type",
                       ", e.operation_type)");
    history_filter_any(sql, &v[HF_STATUS], "e.status = ", "status", "");

    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
        if (v[simple[i].option].n) {
            history_out_text(sql, simple[i].text);
        }
    }

    /* What people do in the console itself is kept out of the way unless it is
     * asked for. */

    if (v[HF_TYPE].n == 0) {
        history_out_text(sql, " AND e.operation_type NOT LIKE 'console.%'");
    }

    if (filter->from_us != -1) {
        history_out_text(sql, " AND time_us(e.occurred_at) >= :from");
    }

    if (filter->to_us != -1) {
        history_out_text(sql, " AND time_us(e.occurred_at) < :to");
    }
}


static void
history_filter_bind_text(sqlite3_stmt *stmt, const char *name, const char *text)
{
    int  i;

    i = sqlite3_bind_parameter_index(stmt, name);

    if (i) {
        sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
    }
}


static void
history_filter_bind_int(sqlite3_stmt *stmt, const char *name, int64_t n)
{
    int  i;

    i = sqlite3_bind_parameter_index(stmt, name);

    if (i) {
        sqlite3_bind_int64(stmt, i, n);
    }
}


static void
history_filter_bind(sqlite3_stmt *stmt, const history_filter_t *filter)
{
    static const struct {
        int          option;
        const char  *name;
    } texts[] = {
        { HF_ACTOR, ":actor" }, { HF_ACTOR_TYPE, ":actor_type" },
        { HF_SOURCE, ":source" }, { HF_THREAD, ":thread" }, { HF_RUN, ":run" },
        { HF_CORRELATION, ":correlation" }, { HF_PATH, ":path" }
    };

    char                    name[24];
    const history_value_t  *v = filter->values;

    for (unsigned i = 0; i < v[HF_TYPE].n; i++) {
        snprintf(name, sizeof(name), ":type%u", i);
        history_filter_bind_text(stmt, name, v[HF_TYPE].text[i]);
    }

    for (unsigned i = 0; i < v[HF_STATUS].n; i++) {
        snprintf(name, sizeof(name), ":status%u", i);
        history_filter_bind_text(stmt, name, v[HF_STATUS].text[i]);
    }

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (v[texts[i].option].n) {
            history_filter_bind_text(stmt, texts[i].name,
                                     v[texts[i].option].text[0]);
        }
    }

    history_filter_bind_int(stmt, ":duration", v[HF_MIN_DURATION].number);
    history_filter_bind_int(stmt, ":exit", v[HF_EXIT_CODE].number);
    history_filter_bind_int(stmt, ":from", filter->from_us);
    history_filter_bind_int(stmt, ":to", filter->to_us);
}


static sqlite3_stmt *
history_filter_prepare(sqlite3 *db, const char *select, const char *order,
    const history_filter_t *filter, history_error_t *err)
{
    sqlite3_stmt   *stmt;
    history_out_t   sql = { .buf.max = 64 * 1024 };

    history_out_text(&sql, select);
    history_filter_where(&sql, filter);
    history_out_text(&sql, order);

    stmt = NULL;

    if (sql.rc == SB_OK && sb_buf_cstr(&sql.buf) != NULL) {
        stmt = history_prepare(db, sql.buf.data, err);

        if (stmt != NULL) {
            history_filter_bind(stmt, filter);
        }

    } else {
        history_error(err, "MemoryError", "out of memory");
    }

    sb_buf_free(&sql.buf);

    return stmt;
}


sqlite3_stmt *
history_query_filter(sqlite3 *db, const history_filter_t *filter,
    int64_t limit, history_error_t *err)
{
    sqlite3_stmt  *stmt;

    stmt = history_filter_prepare(db,
               "SELECT e.seq, coalesce(r.cursor, -1), time_us(e.occurred_at)"
               " FROM history_events e"
               " LEFT JOIN gateway_records r ON r.event_id = e.event_id"
               " WHERE 1",
               " ORDER BY 2 DESC, 3 DESC, 1 DESC LIMIT :limit", filter, err);

    if (stmt != NULL) {
        history_filter_bind_int(stmt, ":limit", limit);
    }

    return stmt;
}


sqlite3_stmt *
history_query_passes(sqlite3 *db, const history_filter_t *filter,
    history_error_t *err)
{
    return history_filter_prepare(db, "SELECT e.seq FROM history_events e"
                                      " WHERE e.seq = ?1", "", filter,
                                  err);
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
    sb_str_t  data;

    page->n = 0;
    page->bytes.len = 0;

    sqlite3_bind_int64(stmt, 2, *after);

    while ((rc = history_step(stmt, err)) == 1 && page->n < HISTORY_PAGE) {
        data = history_column(stmt, 3);

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
    }

    sqlite3_reset(stmt);

    return rc == -1 ? -1 : 1;
}


/* Are the runs of both streams known? */
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

    return rc;
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

        sql = history_both_streams;

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
    free(page);

    return !more ? 0 : rc;
}
