#include "history_api_read.h"

#include <stdlib.h>


/* Columns of a row that become members of one object in sorted order. */
#define HISTORY_ROW_MAX  64

typedef struct {
    const char  *name;
    int          column;        /* -1: `json` */
    bool         decode;        /* the column holds JSON text */
    sb_str_t     json;
} history_cell_t;


static int
history_cell_compare(const void *one, const void *two)
{
    const history_cell_t  *a = one, *b = two;

    return strcmp(a->name, b->name);
}


/* The cells of a row as an object; false with err. */
static bool
history_write_cells(sb_out_t *out, sqlite3_stmt *stmt,
    history_cell_t *cells, size_t n, history_error_t *err)
{
    sb_str_t  text;

    qsort(cells, n, sizeof(history_cell_t), history_cell_compare);

    sb_out_text(out, "{");

    for (size_t i = 0; i < n; i++) {
        sb_out_key(out, cells[i].name);

        if (cells[i].column == -1) {
            sb_out_raw(out, cells[i].json.data, cells[i].json.len);

        } else if (cells[i].decode) {
            text = history_column(stmt, cells[i].column);

            if (text.len == 0) {
                sb_out_text(out, "null");

            } else if (sb_out_json(out, text) != SB_OK) {
                history_error(err, "JSONDecodeError",
                              "%s_json is not JSON", cells[i].name);
                return false;
            }

        } else if (!sb_out_column(out, stmt, cells[i].column)) {
            history_error(err, "TypeError",
                          "Object of type bytes is not JSON serializable");
            return false;
        }
    }

    sb_out_text(out, "}");

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
history_write_side(sqlite3 *db, sb_out_t *out, const char *sql,
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
        sb_out_text(out, "null");

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
history_write_event(sb_out_t *out, sqlite3_stmt *stmt,
    sb_out_t *command, sb_out_t *file, history_error_t *err)
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


static int
history_write_operation(sqlite3 *db, sb_out_t *out, sb_str_t id,
    history_error_t *err)
{
    int             rc;
    sqlite3_stmt   *stmt;
    sb_out_t        command = { .buf.max = SB_OUT_MAX };
    sb_out_t        file = { .buf.max = SB_OUT_MAX };

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


bool
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

    rc = history_write_operation(call->db, &call->out,
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

    sb_out_text(&call->out, "{\"operations\":[");

    first = true;
    rc = 0;

    for (size_t i = 0; i < n && rc != -1; i++) {
        if (i && sb_eq(ids[i], ids[i - 1])) {
            continue;
        }

        size_t  before = call->out.buf.len;

        if (!first) {
            sb_out_text(&call->out, ",");
        }

        rc = history_write_operation(call->db, &call->out, ids[i],
                                         &call->err);

        if (rc == 0) {
            call->out.buf.len = before;

        } else {
            first = false;
        }
    }

    sb_out_text(&call->out, "]}");
    free(ids);

    return rc != -1;
}
