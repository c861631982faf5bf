#include "history_query.h"
#include "id.h"
#include "operation.h"
#include "path.h"

#include <stdio.h>


/* Columns that the queries here ask of each table of ours. */
static const struct {
    const char  *table;
    const char  *columns;
} history_views[] = {
    { "gateway_records", "event_id,seq,cursor,moved_to" },
    { "gateway_chain", "n,event_id,kind,detail,purged,hash" },
    { "gateway_wire", "event_id,sandbox,method,path,port,client,agent,"
      "request_id,http_status,upstream_status,upstream,route,bytes_in,"
      "bytes_out,duration_us,identity,parent,error_code,reason,record,"
      "files_total" },
    { "gateway_files", "event_id,n,path,old_path,size,sha256,mode,flags" },
    { "gateway_output", "event_id,ord,stream,chunk_index,offset,length,at" },
    { "gateway_folded", "event_id,count,last_at" },
    { "gateway_gaps", "event_id,operations,output_bytes,from_at,to_at,reason" },
    { "gateway_detached", "event_id,since,ended_at" },
    { "gateway_terminals", "event_id,session,mode,base,recorded_to" },
    { "gateway_terminal", "event_id,n,at,events" }
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


int
history_query_moved(sqlite3 *db, const char *id, char dir[130],
    history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, "SELECT moved_to FROM gateway_records WHERE"
                           " event_id = ?1 AND moved_to IS NOT NULL", err);
    if (stmt == NULL) {
        return -1;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    rc = history_step(stmt, err);

    if (rc == 1) {
        sb_history_dir(dir, history_column(stmt, 0));
    }

    sqlite3_finalize(stmt);

    return rc;
}


int
history_query_row(sqlite3 *db, const char *id, int64_t *row,
    history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, "SELECT seq FROM history_events WHERE"
                           " event_id = ?1", err);
    if (stmt == NULL) {
        return -1;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    rc = history_step(stmt, err);

    if (rc == 1) {
        *row = sqlite3_column_int64(stmt, 0);
    }

    sqlite3_finalize(stmt);

    return rc;
}
