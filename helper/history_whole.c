/* One record whole, as JSON. */

#include "history_record.h"


static void
history_bind(sqlite3_stmt *stmt, int n, sb_str_t text)
{
    sqlite3_bind_text64(stmt, n, text.data, text.len, SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}


static void
history_json_members(history_out_t *out, history_row_t *row,
    const char *const *names, const int *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        history_out_key(out, names[i]);

        if (!history_out_column(out, row, columns[i])) {
            history_out_str(out, history_column(row, columns[i]));
        }
    }
}


static void
history_json_stored(history_out_t *out, history_row_t *row, const char *name,
    int column)
{
    sb_str_t          text;
    sb_jdoc_t        *doc;
    sb_json_limits_t  limits;

    text = history_column(row, column);
    history_out_key(out, name);

    if (text.len == 0) {
        history_out_text(out, "null");
        return;
    }

    limits.max_depth = HISTORY_JSON_DEPTH;
    limits.max_bytes = HISTORY_JSON_MAX;
    doc = sb_jdoc_parse(text, &limits, NULL);

    /* What is not JSON is shown as the text that it is. */

    if (doc == NULL) {
        history_out_str(out, text);

    } else if (out->rc == SB_OK) {
        out->rc = sb_jv_canonical(&out->buf, sb_jdoc_root(doc));
    }

    sb_jdoc_free(doc);
}


static bool
history_json_files(history_out_t *out, sqlite3 *db, history_row_t *row,
    history_error_t *err)
{
    static const char *const  names[] = {
        "n", "path", "old_path", "size", "sha256", "mode", "flags"
    };

    static const int  columns[] = { 0, 1, 2, 3, 4, 5, 6 };

    int            rc;
    bool           first;
    sqlite3_stmt  *stmt;

    history_out_key(out, "files");
    history_out_text(out, "[");

    stmt = history_prepare(db, "SELECT n, path, old_path, size, sha256, mode,"
                               " flags FROM gateway_files WHERE event_id = ?1"
                               " ORDER BY n", err);
    if (stmt == NULL) {
        return false;
    }

    history_bind(stmt, 1, history_column(row, HR_ID));
    first = true;

    while ((rc = history_step(stmt, err)) == 1) {
        history_out_text(out, first ? "{" : ",{");
        history_json_members(out, stmt, names, columns, 7);
        history_out_text(out, "}");
        first = false;
    }

    history_out_text(out, "]");
    sqlite3_finalize(stmt);

    return rc == 0;
}


bool
history_record_whole(history_out_t *out, sqlite3 *db, history_row_t *row,
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

    history_out_key(out, "command");

    if (sqlite3_column_type(row, HR_COMMAND) == SQLITE_NULL) {
        history_out_text(out, "null");

    } else {
        history_out_text(out, "{");
        history_json_members(out, row, command, command_columns, 4);
        history_out_text(out, "}");
    }

    history_out_key(out, "wire");
    history_out_text(out, "{");
    history_json_members(out, row, names, columns, 12);
    history_out_text(out, "}");
    history_json_members(out, row, more, more_columns, 8);

    return history_json_files(out, db, row, err);
}
