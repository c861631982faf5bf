#include "history_api_read.h"

#include <stdio.h>
#include <stdlib.h>


/* `"name":` and the text of a meta key, or null. */
static bool
history_write_meta(history_call_t *call, const char *name, const char *key)
{
    bool      ok, found;
    sb_buf_t  value = { 0 };

    ok = history_meta_get(call->db, key, &value, &found, &call->err);

    sb_out_key(&call->out, name);

    if (found) {
        sb_out_str(&call->out, sb_str(value.data, value.len));

    } else {
        sb_out_text(&call->out, "null");
    }

    sb_buf_free(&value);

    return ok;
}


/* The same for a key that holds a JSON object; {} when it is not set. */
static bool
history_write_meta_object(history_call_t *call, const char *name,
    const char *key)
{
    bool        ok, found;
    size_t      begin;
    sb_buf_t    value = { 0 };

    ok = history_meta_get(call->db, key, &value, &found, &call->err);

    sb_out_key(&call->out, name);
    begin = call->out.buf.len;

    if (!ok) {
        /* said in err */

    } else if (value.len == 0) {
        sb_out_text(&call->out, "{}");

    } else if (sb_out_json(&call->out, sb_str(value.data, value.len))
               != SB_OK)
    {
        history_error(&call->err, "JSONDecodeError",
                      "%s in history_meta is not JSON", key);
        ok = false;

    } else if (call->out.rc == SB_OK && call->out.buf.data[begin] != '{') {
        history_error(&call->err, "HelperError",
                      "JSON value must be an object");
        ok = false;
    }

    sb_buf_free(&value);

    return ok;
}


/* The same for a key that holds an integer; `preset` when it is not set. */
static bool
history_write_meta_int(history_call_t *call, const char *name, const char *key,
    int64_t preset)
{
    bool       ok, found;
    char      *text, *end;
    sb_buf_t   value = { 0 };
    long long  n;

    ok = history_meta_get(call->db, key, &value, &found, &call->err);
    n = preset;

    if (ok && value.len) {
        text = sb_buf_cstr(&value);
        n = text != NULL ? strtoll(text, &end, 10) : 0;

        if (text == NULL || *end != '\0') {
            history_error(&call->err, "ValueError",
                          "invalid literal for int() with base 10: '%s'",
                          text ? text : "");
            ok = false;
        }
    }

    sb_out_key(&call->out, name);
    sb_out_int(&call->out, n);
    sb_buf_free(&value);

    return ok;
}


bool
history_api_identity(history_call_t *call)
{
    sb_out_text(&call->out, "{");

    if (!history_write_meta(call, "provider_key", "provider_key")
        || !history_write_meta(call, "sandbox_id", "sandbox_id")
        || !history_write_meta(call, "sandbox_instance_id",
                               "sandbox_instance_id")
        || !history_write_meta_object(call, "sandbox_metadata",
                                      "sandbox_metadata_json")
        || !history_write_meta(call, "sandbox_name", "sandbox_name"))
    {
        return false;
    }

    sb_out_text(&call->out, "}");

    return true;
}


/* `"name":` and the first column of the first row of a pragma. */
static bool
history_write_pragma(history_call_t *call, const char *name, const char *sql)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(call->db, sql, &call->err);
    if (stmt == NULL) {
        return false;
    }

    rc = history_step(stmt, &call->err);

    if (rc == 1) {
        sb_out_key(&call->out, name);
        rc = sb_out_column(&call->out, stmt, 0) ? 1 : -1;
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


bool
history_api_health(history_call_t *call)
{
    sb_out_text(&call->out, "{\"identity\":");

    if (!history_api_identity(call)
        || !history_write_pragma(call, "journal_mode", "PRAGMA journal_mode")
        || !history_write_pragma(call, "schema_version",
                                 "PRAGMA user_version"))
    {
        return false;
    }

    sb_out_text(&call->out, "}");

    return true;
}


bool
history_api_config(history_call_t *call)
{
    sb_out_text(&call->out, "{");

    if (!history_write_meta_object(call, "config", "history_config_json")
        || !history_write_meta_int(call, "revision", "history_config_revision",
                                   0)
        || !history_write_meta(call, "updated_at", "history_config_updated_at")
        || !history_write_meta(call, "updated_by", "history_config_updated_by")
        || !history_write_meta_int(call, "version", "history_config_version",
                                   1))
    {
        return false;
    }

    sb_out_text(&call->out, "}");

    return true;
}


static void
history_write_change(sb_out_t *out, sqlite3_stmt *stmt)
{
    static const char *const  names[] = {
        "change_id", "change_type", "changed_at", "event_id",
        "operation_type", "schema_version", "source_seq", "status"
    };

    sb_out_text(out, "{");

    for (int i = 0; i < 8; i++) {
        sb_out_key(out, names[i]);

        if (!sb_out_column(out, stmt, i)) {
            sb_out_str(out, history_column(stmt, i));
        }
    }

    sb_out_text(out, "}");
}


/* Too large a number for SQLite, in Python's words. */
static bool
history_overflow(history_call_t *call, int i)
{
    if (call->values[i].big) {
        history_error(&call->err, "OverflowError",
                      "Python int too large to convert to SQLite INTEGER");
        return true;
    }

    return false;
}


bool
history_api_query(history_call_t *call)
{
    int            rc;
    size_t         begin, size, sum;
    int64_t        after, limit, max_bytes, next;
    sqlite3_stmt  *stmt;
    sb_out_t      *out = &call->out;

    after = call->values[0].number;
    limit = call->values[1].number;
    max_bytes = call->values[2].number;

    if (after < 0 || limit < 1 || max_bytes < 1) {
        history_error(&call->err, "HelperError", "Invalid query bounds");
        return false;
    }

    if (history_overflow(call, 0) || history_overflow(call, 1)) {
        return false;
    }

    stmt = history_prepare(call->db,
               "SELECT c.change_id, c.change_type, c.changed_at, c.event_id,"
               " e.operation_type, c.schema_version, c.seq, e.status"
               " FROM history_changes c"
               " JOIN history_events e ON e.event_id = c.event_id"
               " WHERE c.seq > ?1 ORDER BY c.seq LIMIT ?2",
               &call->err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_int64(stmt, 1, after);
    sqlite3_bind_int64(stmt, 2, limit);

    sb_out_text(out, "{\"changes\":[");

    next = after;
    sum = 0;

    while ((rc = history_step(stmt, &call->err)) == 1) {
        begin = out->buf.len;

        if (sum) {
            sb_out_text(out, ",");
        }

        size = out->buf.len;
        history_write_change(out, stmt);
        size = out->buf.len - size;

        if (size > (uint64_t) max_bytes - sum) {
            out->buf.len = begin;

            if (sum == 0) {
                history_error(&call->err, "HelperError",
                              "Single change exceeds query max_bytes");
                rc = -1;
            }

            break;
        }

        sum += size;
        next = sqlite3_column_int64(stmt, 6);
    }

    sqlite3_finalize(stmt);

    if (rc == -1) {
        return false;
    }

    stmt = history_prepare(call->db,
               "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0)"
               " FROM history_changes", &call->err);
    if (stmt == NULL) {
        return false;
    }

    rc = history_step(stmt, &call->err);

    if (rc == 1) {
        int64_t  min = sqlite3_column_int64(stmt, 0);

        sb_out_text(out, "]");
        sb_out_key(out, "max_change_seq");
        sb_out_int(out, sqlite3_column_int64(stmt, 1));
        sb_out_key(out, "min_available_change_seq");
        sb_out_int(out, min);
        sb_out_key(out, "next_change_seq");
        sb_out_int(out, next);
        sb_out_key(out, "reset_required");
        sb_out_text(out, min > 0 && after < min - 1 ? "true}" : "false}");
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


static bool
history_exists(history_call_t *call, const char *id)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(call->db, "SELECT 1 FROM history_events"
                                     " WHERE event_id = ?1", &call->err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    rc = history_step(stmt, &call->err);
    sqlite3_finalize(stmt);

    return rc == 0 ? history_missing(call, id) : rc == 1;
}


static void
history_write_chunk(sb_out_t *out, sqlite3_stmt *stmt)
{
    sb_str_t  data;

    data = history_column(stmt, 2);

    sb_out_key(out, "chunk_index");
    sb_out_column(out, stmt, 0);
    sb_out_key(out, "created_at");
    sb_out_column(out, stmt, 1);
    sb_out_key(out, "data_base64");
    sb_out_base64(out, data.data, data.len);
    sb_out_key(out, "encoding");
    sb_out_column(out, stmt, 3);
    sb_out_key(out, "original_size");
    sb_out_column(out, stmt, 4);
}


bool
history_api_output(history_call_t *call)
{
    int             rc;
    bool            first;
    const char     *id, *stream;
    sqlite3_stmt   *stmt;
    sb_out_t       *out = &call->out;

    id = call->values[0].text[0];
    stream = call->values[1].text[0];

    if (!history_exists(call, id) || history_overflow(call, 2)) {
        return false;
    }

    stmt = history_prepare(call->db,
               "SELECT chunk_index, created_at, data, encoding, original_size"
               " FROM command_output_chunks"
               " WHERE event_id = ?1 AND stream = ?2 AND chunk_index > ?3"
               " ORDER BY chunk_index", &call->err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, stream, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 3, call->values[2].n ? call->values[2].number
                                                  : -1);

    /* All of it is read once before the first byte goes out, so that a damaged
     * page is an error envelope and not half an answer. */

    while ((rc = history_step(stmt, &call->err)) == 1) {
        (void) history_column(stmt, 2);
    }

    sqlite3_reset(stmt);

    if (rc == 0) {
        first = true;
        sb_out_text(out, "{\"chunks\":[");

        while ((rc = history_step(stmt, &call->err)) == 1) {
            sb_out_text(out, first ? "{" : ",{");
            history_write_chunk(out, stmt);
            sb_out_text(out, "}");
            first = false;

            if (out->buf.len > 1024 * 1024) {
                history_call_flush(call);
            }
        }

        sb_out_text(out, "]");
        sb_out_key(out, "event_id");
        sb_out_str(out, sb_str(id, strlen(id)));
        sb_out_key(out, "stream");
        sb_out_str(out, sb_str(stream, strlen(stream)));
        sb_out_text(out, "}");
    }

    sqlite3_finalize(stmt);

    return rc == 0;
}
