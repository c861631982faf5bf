/* One record whole, as JSON. */

#include "history_record.h"
#include "id.h"


#define HISTORY_COMMANDS  1000     /* of one terminal */


static void
history_bind(sqlite3_stmt *stmt, int n, sb_str_t text)
{
    sqlite3_bind_text64(stmt, n, text.data, text.len, SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}


static void
history_json_members(sb_out_t *out, history_row_t *row,
    const char *const *names, const int *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sb_out_key(out, names[i]);

        if (!sb_out_column(out, row, columns[i])) {
            sb_out_str(out, history_column(row, columns[i]));
        }
    }
}


static void
history_json_stored(sb_out_t *out, history_row_t *row, const char *name,
    int column)
{
    sb_str_t          text;
    sb_jdoc_t        *doc;
    sb_json_limits_t  limits;

    text = history_column(row, column);
    sb_out_key(out, name);

    if (text.len == 0) {
        sb_out_text(out, "null");
        return;
    }

    limits.max_depth = SB_OUT_DEPTH;
    limits.max_bytes = SB_OUT_MAX;
    doc = sb_jdoc_parse(text, &limits, NULL);

    /* What is not JSON is shown as the text that it is. */

    if (doc == NULL) {
        sb_out_str(out, text);

    } else if (out->rc == SB_OK) {
        out->rc = sb_jv_canonical(&out->buf, sb_jdoc_root(doc));
    }

    sb_jdoc_free(doc);
}


/* Commands typed into a terminal, as they were derived. */
static bool
history_json_commands(sb_out_t *out, sqlite3 *db, history_row_t *row,
    history_error_t *err)
{
    int            rc, n;
    char           at[SB_TIME_LEN + 1];
    uint64_t       us;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, "SELECT t.at, json_extract(j.value, '$[0]'),"
                               " json_extract(j.value, '$[2]')"
                               " FROM gateway_terminal t, json_each(t.events) j"
                               " WHERE t.event_id = ?1"
                               " AND json_extract(j.value, '$[1]') = 'c'"
                               " ORDER BY t.n, j.key", err);
    if (stmt == NULL) {
        return false;
    }

    history_bind(stmt, 1, history_column(row, HR_ID));
    sb_out_key(out, "commands");
    sb_out_text(out, "[");

    for (n = 0; (rc = history_step(stmt, err)) == 1 && n < HISTORY_COMMANDS;
         n++)
    {
        us = 0;
        (void) sb_time_parse(&us, history_column(stmt, 0));
        sb_time_text(at, us + (uint64_t) sqlite3_column_int64(stmt, 1));

        sb_out_text(out, n ? ",{" : "{");
        sb_out_key(out, "at");
        sb_out_str(out, sb_str(at, SB_TIME_LEN));
        sb_out_key(out, "command");
        sb_out_str(out, history_column(stmt, 2));
        sb_out_key(out, "derived");
        sb_out_text(out, "true}");
    }

    sb_out_text(out, "]");
    sb_out_key(out, "commands_cut");
    sb_out_text(out, rc == 1 ? "true" : "false");
    sqlite3_finalize(stmt);

    return rc != -1;
}


static bool
history_json_terminal(sb_out_t *out, sqlite3 *db, history_row_t *row,
    history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    static const char *const  names[] = {
        "session", "mode", "offset", "recorded_to"
    };

    static const int  columns[] = { 0, 1, 2, 3 };

    stmt = history_prepare(db, "SELECT session, mode, base, recorded_to"
                               " FROM gateway_terminals WHERE event_id = ?1",
                           err);
    if (stmt == NULL) {
        return false;
    }

    history_bind(stmt, 1, history_column(row, HR_ID));
    sb_out_key(out, "terminal");
    rc = history_step(stmt, err);

    if (rc == 1) {
        sb_out_text(out, "{");
        history_json_members(out, stmt, names, columns, 4);
        rc = history_json_commands(out, db, row, err) ? 0 : -1;
        sb_out_text(out, "}");

    } else {
        sb_out_text(out, "null");
    }

    sqlite3_finalize(stmt);

    return rc == 0;
}


static bool
history_json_files(sb_out_t *out, sqlite3 *db, history_row_t *row,
    history_error_t *err)
{
    static const char *const  names[] = {
        "n", "path", "old_path", "size", "sha256", "mode", "flags"
    };

    static const int  columns[] = { 0, 1, 2, 3, 4, 5, 6 };

    int            rc;
    bool           first;
    sqlite3_stmt  *stmt;

    sb_out_key(out, "files");
    sb_out_text(out, "[");

    stmt = history_prepare(db, "SELECT n, path, old_path, size, sha256, mode,"
                               " flags FROM gateway_files WHERE event_id = ?1"
                               " ORDER BY n", err);
    if (stmt == NULL) {
        return false;
    }

    history_bind(stmt, 1, history_column(row, HR_ID));
    first = true;

    while ((rc = history_step(stmt, err)) == 1) {
        sb_out_text(out, first ? "{" : ",{");
        history_json_members(out, stmt, names, columns, 7);
        sb_out_text(out, "}");
        first = false;
    }

    sb_out_text(out, "]");
    sqlite3_finalize(stmt);

    return rc == 0;
}


bool
history_record_whole(sb_out_t *out, sqlite3 *db, history_row_t *row,
    history_error_t *err)
{
    static const char *const  names[] = {
        "method", "path", "port", "client", "agent", "request_id",
        "upstream_status", "upstream", "route", "duration_us", "record",
        "sandbox"
    };

    static const int  columns[] = {
        HR_METHOD, HR_URL_PATH, HR_PORT, HR_CLIENT, HR_AGENT, HR_REQUEST_ID,
        HR_UPSTREAM_STATUS, HR_UPSTREAM, HR_ROUTE, HR_DURATION_US, HR_RECORD,
        HR_NAMED
    };

    static const char *const  command[] = {
        "command", "cwd", "timeout_ms", "provider_command_id"
    };

    static const int  command_columns[] = {
        HR_COMMAND, HR_CWD, HR_TIMEOUT_MS, HR_COMMAND_ID
    };

    static const char *const  more[] = {
        "folded_last_at", "files_total", "detached_since", "detached_ended",
        "gap_operations", "gap_output_bytes", "gap_from", "gap_to"
    };

    static const int  more_columns[] = {
        HR_FOLDED_AT, HR_FILES_TOTAL, HR_DETACHED_SINCE, HR_DETACHED_ENDED,
        HR_GAP_OPERATIONS, HR_GAP_BYTES, HR_GAP_FROM, HR_GAP_TO
    };

    history_record_members(out, row);
    history_json_stored(out, row, "request", HR_REQUEST);
    history_json_stored(out, row, "result", HR_RESULT);

    sb_out_key(out, "command");

    if (sqlite3_column_type(row, HR_COMMAND) == SQLITE_NULL) {
        sb_out_text(out, "null");

    } else {
        sb_out_text(out, "{");
        history_json_members(out, row, command, command_columns, 4);
        sb_out_text(out, "}");
    }

    sb_out_key(out, "wire");
    sb_out_text(out, "{");
    history_json_members(out, row, names, columns, 12);
    sb_out_text(out, "}");
    history_json_members(out, row, more, more_columns, 8);

    return history_json_terminal(out, db, row, err)
           && history_json_files(out, db, row, err);
}
