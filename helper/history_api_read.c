#include "history_api_read.h"

#include <stdio.h>
#include <stdlib.h>


/* Columns of a row that become members of one object in sorted order. */
#define HISTORY_ROW_MAX  64

typedef struct {
    const char  *name;
    int          column;        /* -1: `json` */
    bool         decode;        /* the column holds JSON text */
    sb_str_t     json;
} history_cell_t;


static bool
history_meta(sqlite3 *db, const char *key, sb_buf_t *value, bool *found,
    history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    *found = false;
    value->len = 0;
    value->max = HISTORY_JSON_MAX;

    if (!history_has_table(db, "history_meta")) {
        return true;
    }

    stmt = history_prepare(db, "SELECT value FROM history_meta WHERE key = ?1",
                           err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);

    rc = history_step(stmt, err);

    if (rc == 1) {
        *found = true;

        if (sb_buf_add_str(value, history_column(stmt, 0)) != SB_OK) {
            history_error(err, "MemoryError", "out of memory");
            rc = -1;
        }
    }

    sqlite3_finalize(stmt);

    return rc != -1;
}


/* `"name":` and the text of a meta key, or null. */
static bool
history_write_meta(history_call_t *call, const char *name, const char *key)
{
    bool      ok, found;
    sb_buf_t  value = { 0 };

    ok = history_meta(call->db, key, &value, &found, &call->err);

    history_out_key(&call->out, name);

    if (found) {
        history_out_str(&call->out, sb_str(value.data, value.len));

    } else {
        history_out_text(&call->out, "null");
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

    ok = history_meta(call->db, key, &value, &found, &call->err);

    history_out_key(&call->out, name);
    begin = call->out.buf.len;

    if (!ok) {
        /* said in err */

    } else if (value.len == 0) {
        history_out_text(&call->out, "{}");

    } else if (history_out_json(&call->out, sb_str(value.data, value.len))
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

    ok = history_meta(call->db, key, &value, &found, &call->err);
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

    history_out_key(&call->out, name);
    history_out_int(&call->out, n);
    sb_buf_free(&value);

    return ok;
}


bool
history_api_identity(history_call_t *call)
{
    history_out_text(&call->out, "{");

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

    history_out_text(&call->out, "}");

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
        history_out_key(&call->out, name);
        rc = history_out_column(&call->out, stmt, 0) ? 1 : -1;
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


bool
history_api_health(history_call_t *call)
{
    history_out_text(&call->out, "{\"identity\":");

    if (!history_api_identity(call)
        || !history_write_pragma(call, "journal_mode", "PRAGMA journal_mode")
        || !history_write_pragma(call, "schema_version",
                                 "PRAGMA user_version"))
    {
        return false;
    }

    history_out_text(&call->out, "}");

    return true;
}


bool
history_api_config(history_call_t *call)
{
    history_out_text(&call->out, "{");

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

    history_out_text(&call->out, "}");

    return true;
}


static void
history_write_change(history_out_t *out, sqlite3_stmt *stmt)
{
    static const char *const  names[] = {
        "change_id", "change_type", "changed_at", "event_id",
        "operation_type", "schema_version", "source_seq", "status"
    };

    history_out_text(out, "{");

    for (int i = 0; i < 8; i++) {
        history_out_key(out, names[i]);

        if (!history_out_column(out, stmt, i)) {
            history_out_str(out, history_column(stmt, i));
        }
    }

    history_out_text(out, "}");
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
    int             rc;
    size_t          begin, size, sum;
    int64_t         after, limit, max_bytes, next;
    sqlite3_stmt   *stmt;
    history_out_t  *out = &call->out;

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

    history_out_text(out, "{\"changes\":[");

    next = after;
    sum = 0;

    while ((rc = history_step(stmt, &call->err)) == 1) {
        begin = out->buf.len;

        if (sum) {
            history_out_text(out, ",");
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

        history_out_text(out, "]");
        history_out_key(out, "max_change_seq");
        history_out_int(out, sqlite3_column_int64(stmt, 1));
        history_out_key(out, "min_available_change_seq");
        history_out_int(out, min);
        history_out_key(out, "next_change_seq");
        history_out_int(out, next);
        history_out_key(out, "reset_required");
        history_out_text(out, min > 0 && after < min - 1 ? "true}" : "false}");
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


static int
history_cell_compare(const void *one, const void *two)
{
    const history_cell_t  *a = one, *b = two;

    return strcmp(a->name, b->name);
}


/* The cells of a row as an object; false with err. */
static bool
history_write_cells(history_out_t *out, sqlite3_stmt *stmt,
    history_cell_t *cells, size_t n, history_error_t *err)
{
    sb_str_t  text;

    qsort(cells, n, sizeof(history_cell_t), history_cell_compare);

    history_out_text(out, "{");

    for (size_t i = 0; i < n; i++) {
        history_out_key(out, cells[i].name);

        if (cells[i].column == -1) {
            history_out_raw(out, cells[i].json.data, cells[i].json.len);

        } else if (cells[i].decode) {
            text = history_column(stmt, cells[i].column);

            if (text.len == 0) {
                history_out_text(out, "null");

            } else if (history_out_json(out, text) != SB_OK) {
                history_error(err, "JSONDecodeError",
                              "%s_json is not JSON", cells[i].name);
                return false;
            }

        } else if (!history_out_column(out, stmt, cells[i].column)) {
            history_error(err, "TypeError",
                          "Object of type bytes is not JSON serializable");
            return false;
        }
    }

    history_out_text(out, "}");

    return true;
}


/* All columns of the row that `stmt` stands on. */
static size_t
history_row_cells(sqlite3_stmt *stmt, history_cell_t *cells, size_t max)
{
    size_t  n;

    n = (size_t) sqlite3_column_count(stmt);
    n = n < max ? n : max;

    for (size_t i = 0; i < n; i++) {
        cells[i].name = sqlite3_column_name(stmt, (int) i);
        cells[i].column = (int) i;
        cells[i].decode = false;
    }

    return n;
}


/* A side row of an event as an object, or null. */
static bool
history_write_side(sqlite3 *db, history_out_t *out, const char *sql,
    sb_str_t id, history_error_t *err)
{
    int             rc;
    size_t          n;
    sqlite3_stmt   *stmt;
    history_cell_t  cells[HISTORY_ROW_MAX];

    stmt = history_prepare(db, sql, err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, id.data, (int) id.len, SQLITE_STATIC);

    rc = history_step(stmt, err);

    if (rc == 0) {
        history_out_text(out, "null");

    } else if (rc == 1) {
        n = history_row_cells(stmt, cells, HISTORY_ROW_MAX);

        if (!history_write_cells(out, stmt, cells, n, err)) {
            rc = -1;
        }
    }

    sqlite3_finalize(stmt);

    return rc != -1;
}


static int
history_write_event(history_out_t *out, sqlite3_stmt *stmt,
    history_out_t *command, history_out_t *file, history_error_t *err)
{
    size_t          n;
    history_cell_t  cells[HISTORY_ROW_MAX + 2];

    n = history_row_cells(stmt, cells, HISTORY_ROW_MAX);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(cells[i].name, "request_json") == 0) {
            cells[i].name = "request";
            cells[i].decode = true;

        } else if (strcmp(cells[i].name, "result_json") == 0) {
            cells[i].name = "result";
            cells[i].decode = true;
        }
    }

    cells[n].name = "command";
    cells[n].column = -1;
    cells[n++].json = sb_str(command->buf.data, command->buf.len);

    cells[n].name = "file_operation";
    cells[n].column = -1;
    cells[n++].json = sb_str(file->buf.data, file->buf.len);

    return history_write_cells(out, stmt, cells, n, err) ? 1 : -1;
}


int
history_api_write_operation(sqlite3 *db, history_out_t *out, sb_str_t id,
    history_error_t *err)
{
    int             rc;
    sqlite3_stmt   *stmt;
    history_out_t   command = { .buf.max = HISTORY_JSON_MAX };
    history_out_t   file = { .buf.max = HISTORY_JSON_MAX };

    stmt = history_prepare(db, "SELECT * FROM history_events"
                               " WHERE event_id = ?1", err);
    if (stmt == NULL) {
        return -1;
    }

    sqlite3_bind_text(stmt, 1, id.data, (int) id.len, SQLITE_STATIC);

    rc = history_step(stmt, err);

    if (rc == 1) {
        rc = history_write_side(db, &command,
                                "SELECT * FROM command_executions"
                                " WHERE event_id = ?1", id, err)
             && history_write_side(db, &file,
                                   "SELECT * FROM file_operations"
                                   " WHERE event_id = ?1", id, err) ? 1 : -1;
    }

    if (rc == 1) {
        rc = history_write_event(out, stmt, &command, &file, err);

        if (command.rc != SB_OK || file.rc != SB_OK) {
            out->rc = SB_LIMIT;
        }
    }

    sqlite3_finalize(stmt);
    sb_buf_free(&command.buf);
    sb_buf_free(&file.buf);

    return rc;
}


static bool
history_missing(history_call_t *call, const char *id)
{
    history_error(&call->err, "HelperError", "Operation does not exist: %s",
                  id);
    return false;
}


bool
history_api_operation(history_call_t *call)
{
    int          rc;
    const char  *id = call->values[0].text[0];

    rc = history_api_write_operation(call->db, &call->out,
                                     sb_str(id, strlen(id)), &call->err);

    return rc == 0 ? history_missing(call, id) : rc == 1;
}


static int
history_text_compare(const void *one, const void *two)
{
    const sb_str_t  *a = one, *b = two;
    size_t           n = a->len < b->len ? a->len : b->len;
    int              rc = memcmp(a->data, b->data, n);

    return rc != 0 ? rc : (a->len > b->len) - (a->len < b->len);
}


bool
history_api_operations(history_call_t *call)
{
    int          rc;
    bool         first;
    size_t       n, max;
    sb_str_t    *ids;
    const char  *text = call->values[0].text[0];

    max = 1;

    for (const char *p = text; *p != '\0'; p++) {
        max += *p == ',';
    }

    ids = malloc(max * sizeof(sb_str_t));
    if (ids == NULL) {
        history_error(&call->err, "MemoryError", "out of memory");
        return false;
    }

    n = 0;

    for (const char *p = text; ; ) {
        size_t  len = strcspn(p, ",");

        ids[n] = sb_str(p, len);

        while (ids[n].len && ids[n].data[0] == ' ') {
            ids[n].data++;
            ids[n].len--;
        }

        while (ids[n].len && ids[n].data[ids[n].len - 1] == ' ') {
            ids[n].len--;
        }

        n += ids[n].len != 0;

        if (p[len] == '\0') {
            break;
        }

        p += len + 1;
    }

    qsort(ids, n, sizeof(sb_str_t), history_text_compare);

    history_out_text(&call->out, "{\"operations\":[");

    first = true;
    rc = 0;

    for (size_t i = 0; i < n && rc != -1; i++) {
        if (i && sb_eq(ids[i], ids[i - 1])) {
            continue;
        }

        size_t  before = call->out.buf.len;

        if (!first) {
            history_out_text(&call->out, ",");
        }

        rc = history_api_write_operation(call->db, &call->out, ids[i],
                                         &call->err);

        if (rc == 0) {
            call->out.buf.len = before;

        } else {
            first = false;
        }
    }

    history_out_text(&call->out, "]}");
    free(ids);

    return rc != -1;
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
history_write_chunk(history_out_t *out, sqlite3_stmt *stmt)
{
    sb_str_t  data;

    data = history_column(stmt, 2);

    history_out_key(out, "chunk_index");
    history_out_column(out, stmt, 0);
    history_out_key(out, "created_at");
    history_out_column(out, stmt, 1);
    history_out_key(out, "data_base64");
    history_out_base64(out, data.data, data.len);
    history_out_key(out, "encoding");
    history_out_column(out, stmt, 3);
    history_out_key(out, "original_size");
    history_out_column(out, stmt, 4);
}


bool
history_api_output(history_call_t *call)
{
    int              rc;
    bool             first;
    const char      *id, *stream;
    sqlite3_stmt    *stmt;
    history_out_t   *out = &call->out;

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
        history_out_text(out, "{\"chunks\":[");

        while ((rc = history_step(stmt, &call->err)) == 1) {
            history_out_text(out, first ? "{" : ",{");
            history_write_chunk(out, stmt);
            history_out_text(out, "}");
            first = false;

            if (out->buf.len > 1024 * 1024) {
                history_call_flush(call);
            }
        }

        history_out_text(out, "]");
        history_out_key(out, "event_id");
        history_out_str(out, sb_str(id, strlen(id)));
        history_out_key(out, "stream");
        history_out_str(out, sb_str(stream, strlen(stream)));
        history_out_text(out, "}");
    }

    sqlite3_finalize(stmt);

    return rc == 0;
}
