#include "history_memory.h"
#include "history_list.h"
#include "history_text.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>


/* Of the output, what show prints. */
#define HISTORY_HEAD_BYTES  2048
#define HISTORY_HEAD_LINES  24


enum { SHOW_JSON = 0, SHOW_DATA, SHOW_HISTORY, SHOW_COUNT };

static const history_arg_t  history_show_args[] = {
    HISTORY_COMMON_ARGS
};

static const char  history_show_help[] =
    "usage: sandbox-history show [--json] ID|SANDBOX/SEQ\n"
    "\n"
    "One operation whole: request, result, actor and how it was known, what\n"
    "passed on the wire, files, the beginning of the output.  ID may be the\n"
    "beginning of one, of 6 characters at least.\n"
    "\n"
    "  --json                 as one JSON object\n";


/* Collects the head of an output. */
typedef struct {
    sb_buf_t  text;
    unsigned  lines;
    bool      cut;
} history_head_t;


static bool
history_head_piece(void *data, const history_piece_t *piece, sb_str_t bytes)
{
    history_head_t  *head = data;

    if (!piece->plain) {
        head->cut = true;
        return true;
    }

    for (size_t i = 0; i < bytes.len; i++) {
        if (head->lines == HISTORY_HEAD_LINES
            || sb_buf_add_c(&head->text, bytes.data[i]) != SB_OK)
        {
            head->cut = true;
            return false;
        }

        head->lines += bytes.data[i] == '\n';
    }

    return true;
}


/* "  label       value" of a column that is not NULL. */
static void
history_show_line(FILE *to, history_row_t *row, const char *label, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        return;
    }

    fprintf(to, "  %-13s ", label);
    history_text_put(to, history_column(row, column), false);
    fputc('\n', to);
}


static void
history_show_bytes(FILE *to, history_row_t *row, const char *label, int column)
{
    char  size[16];

    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        return;
    }

    history_text_size(size, sqlite3_column_int64(row, column));
    fprintf(to, "  %-13s %lld", label, sqlite3_column_int64(row, column));

    if (sqlite3_column_int64(row, column) >= 1000) {
        fprintf(to, " (%s)", size);
    }

    fputc('\n', to);
}


static void
history_show_indent(FILE *to, unsigned depth)
{
    fprintf(to, "%*s", (int) (2 * depth), "");
}


/* A stored value, indented; text stays hostile and is made safe. */
static void
history_show_value(FILE *to, const sb_jv_t *v, unsigned depth)
{
    bool       object;
    sb_out_t   out = { .buf.max = SB_OUT_MAX };

    object = v->kind == SB_JSON_OPEN_OBJECT;

    if ((!object && v->kind != SB_JSON_OPEN_ARRAY) || v->child == NULL) {
        sb_out_value(&out, v);
        history_text_put(to, sb_str(out.buf.data, out.buf.len), false);
        history_memory_check(out.buf.nomem);
        sb_buf_free(&out.buf);
        return;
    }

    fputs(object ? "{\n" : "[\n", to);

    for (const sb_jv_t *m = v->child; m != NULL; m = m->next) {
        history_show_indent(to, depth + 1);

        if (object) {
            history_text_put(to, m->key, false);
            fputs(": ", to);
        }

        history_show_value(to, m, depth + 1);
        fputs(m->next != NULL ? ",\n" : "\n", to);
    }

    history_show_indent(to, depth);
    fputs(object ? "}" : "]", to);
}


static void
history_show_json(FILE *to, history_row_t *row, const char *label, int column)
{
    sb_str_t          text;
    sb_jdoc_t        *doc;
    sb_json_limits_t  limits;

    text = history_column(row, column);

    if (text.len == 0 || sb_eq(text, sb_lit("{}"))) {
        return;
    }

    limits.max_depth = SB_OUT_DEPTH;
    limits.max_bytes = SB_OUT_MAX;

    fprintf(to, "\n%s\n  ", label);

    doc = sb_jdoc_parse(text, &limits, NULL);

    if (doc == NULL) {
        history_text_put(to, text, false);

    } else {
        history_show_value(to, sb_jdoc_root(doc), 1);
        sb_jdoc_free(doc);
    }

    fputc('\n', to);
}


static void
history_show_head(FILE *to, history_row_t *row, const char *id)
{
    char      text[24];
    sb_str_t  name;

    history_text_put(to, history_column(row, HR_TYPE), false);
    fputs("  ", to);
    history_text_put(to, history_column(row, HR_STATUS), false);

    if (sqlite3_column_type(row, HR_EXIT_CODE) != SQLITE_NULL) {
        fprintf(to, "  exit %lld", sqlite3_column_int64(row, HR_EXIT_CODE));
    }

    if (sqlite3_column_type(row, HR_DURATION_MS) != SQLITE_NULL) {
        history_text_duration(text, sqlite3_column_int64(row, HR_DURATION_MS));
        fprintf(to, "  took %s", text);
    }

    fputs("\n  id            ", to);
    name = sb_str(id, strlen(id));
    history_text_put(to, name, false);
    fputs("\n  sandbox       ", to);
    history_text_put(to, history_column(row, HR_SANDBOX), false);

    if (sqlite3_column_type(row, HR_SEQ) != SQLITE_NULL) {
        fprintf(to, "/%lld  cursor %lld", sqlite3_column_int64(row, HR_SEQ),
                sqlite3_column_int64(row, HR_CURSOR));
    }

    fputc('\n', to);
    history_show_line(to, row, "named", HR_NAMED);
    history_show_line(to, row, "started", HR_STARTED);
    history_show_line(to, row, "completed", HR_COMPLETED);
    history_show_line(to, row, "reason", HR_REASON);
    history_show_line(to, row, "error", HR_ERROR_CODE);
    history_show_line(to, row, "repeated", HR_FOLDED);
    history_show_line(to, row, "last repeated", HR_FOLDED_AT);
    history_show_line(to, row, "detached", HR_DETACHED_SINCE);
    history_show_line(to, row, "gap from", HR_GAP_FROM);
    history_show_line(to, row, "gap to", HR_GAP_TO);
    history_show_line(to, row, "lost", HR_GAP_OPERATIONS);
    history_show_bytes(to, row, "output lost", HR_GAP_BYTES);

    fputs("\nActor\n", to);
    history_show_line(to, row, "type", HR_ACTOR_TYPE);
    history_show_line(to, row, "id", HR_ACTOR_ID);
    history_show_line(to, row, "known by", HR_IDENTITY);
    history_show_line(to, row, "source", HR_SOURCE);
    history_show_line(to, row, "thread", HR_THREAD);
    history_show_line(to, row, "run", HR_RUN);
    history_show_line(to, row, "correlation", HR_CORRELATION);
    history_show_line(to, row, "parent", HR_PARENT);
}


static void
history_show_wire(FILE *to, history_row_t *row)
{
    if (sqlite3_column_type(row, HR_METHOD) == SQLITE_NULL) {
        return;
    }

    fputs("\nWire\n  request       ", to);
    history_text_put(to, history_column(row, HR_METHOD), false);
    fputc(' ', to);
    history_text_put(to, history_column(row, HR_URL_PATH), false);
    fputc('\n', to);
    history_show_line(to, row, "port", HR_PORT);
    history_show_line(to, row, "client", HR_CLIENT);
    history_show_line(to, row, "agent", HR_AGENT);
    history_show_line(to, row, "request id", HR_REQUEST_ID);
    history_show_line(to, row, "status", HR_HTTP_STATUS);
    history_show_line(to, row, "upstream said", HR_UPSTREAM_STATUS);
    history_show_line(to, row, "upstream", HR_UPSTREAM);
    history_show_line(to, row, "route", HR_ROUTE);
    history_show_bytes(to, row, "bytes in", HR_BYTES_IN);
    history_show_bytes(to, row, "bytes out", HR_BYTES_OUT);
}


static bool
history_show_files(FILE *to, sqlite3 *db, history_row_t *row, const char *id,
    history_error_t *err)
{
    int            rc;
    int64_t        n, total;
    sqlite3_stmt  *stmt;

    if (sqlite3_column_type(row, HR_PATH) == SQLITE_NULL) {
        return true;
    }

    fputs("\nFiles\n", to);
    history_show_line(to, row, "change", HR_CHANGE);

    stmt = history_prepare(db, "SELECT path, old_path, size, sha256, mode"
                               " FROM gateway_files WHERE event_id = ?1"
                               " ORDER BY n", err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    n = 0;

    while ((rc = history_step(stmt, err)) == 1) {
        n++;
        fputs("  ", to);

        if (sqlite3_column_type(stmt, 1) != SQLITE_NULL) {
            history_text_put(to, history_column(stmt, 1), false);
            fputs(" -> ", to);
        }

        history_text_put(to, history_column(stmt, 0), false);

        if (sqlite3_column_type(stmt, 2) != SQLITE_NULL) {
            fprintf(to, "  %lld bytes", sqlite3_column_int64(stmt, 2));
        }

        if (sqlite3_column_type(stmt, 4) != SQLITE_NULL) {
            fprintf(to, "  mode %lld", sqlite3_column_int64(stmt, 4));
        }

        if (sqlite3_column_type(stmt, 3) != SQLITE_NULL) {
            fputs("\n    sha256 ", to);
            history_text_put(to, history_column(stmt, 3), false);
        }

        fputc('\n', to);
    }

    sqlite3_finalize(stmt);

    if (n == 0) {
        history_show_line(to, row, "path", HR_PATH);
        history_show_line(to, row, "old path", HR_OLD_PATH);
        history_show_bytes(to, row, "size before", HR_BEFORE_SIZE);
        history_show_line(to, row, "hash before", HR_BEFORE_HASH);
        history_show_bytes(to, row, "size after", HR_AFTER_SIZE);
        history_show_line(to, row, "hash after", HR_AFTER_HASH);
    }

    total = sqlite3_column_int64(row, HR_FILES_TOTAL);

    if (total > n && n) {
        fprintf(to, "  and %lld more that are not listed\n",
                (long long) (total - n));
    }

    return rc == 0;
}


static bool
history_show_output(FILE *to, sqlite3 *db, history_row_t *row, const char *id,
    history_error_t *err)
{
    int             rc;
    history_head_t  head = { .text.max = HISTORY_HEAD_BYTES + 1 };

    if (sqlite3_column_type(row, HR_COMMAND) == SQLITE_NULL
        && sqlite3_column_type(row, HR_STDOUT_BYTES) == SQLITE_NULL
        && sqlite3_column_type(row, HR_STDERR_BYTES) == SQLITE_NULL)
    {
        return true;
    }

    if (sqlite3_column_type(row, HR_COMMAND) != SQLITE_NULL) {
        fputs("\nCommand\n", to);
        history_show_line(to, row, "command", HR_COMMAND);
        history_show_line(to, row, "directory", HR_CWD);
        history_show_line(to, row, "time-out ms", HR_TIMEOUT_MS);
        history_show_line(to, row, "exit code", HR_EXIT_CODE);
        history_show_line(to, row, "command id", HR_COMMAND_ID);
    }

    fputs("\nOutput\n", to);
    history_show_bytes(to, row, "stdout", HR_STDOUT_BYTES);
    history_show_bytes(to, row, "stdout in all", HR_STDOUT_TOTAL);
    history_show_bytes(to, row, "stderr", HR_STDERR_BYTES);
    history_show_bytes(to, row, "stderr in all", HR_STDERR_TOTAL);
    history_show_line(to, row, "kept", HR_OUTPUT_STATE);

    rc = history_query_output(db, id, NULL, -1, history_head_piece, &head, err);

    head.text.len = sb_utf8_cut(sb_str(head.text.data, head.text.len),
                                HISTORY_HEAD_BYTES);

    if (rc != -1 && head.text.len) {
        fputc('\n', to);
        history_text_put(to, sb_str(head.text.data, head.text.len), true);

        if (head.text.data[head.text.len - 1] != '\n') {
            fputc('\n', to);
        }
    }

    if (rc != -1 && head.cut) {
        fprintf(to, "\nMore: sandbox-history output %s\n", id);
    }

    history_memory_check(head.text.nomem);
    sb_buf_free(&head.text);

    return rc != -1;
}


/* Makes the text or JSON of the record that `row` stands on. */
static bool
history_show_record(FILE *to, sqlite3 *db, history_row_t *row, const char *id,
    bool json, history_error_t *err)
{
    bool      ok;
    sb_out_t  out = { .buf.max = SB_OUT_MAX };

    if (json) {
        sb_out_text(&out, "{");
        ok = history_record_whole(&out, db, row, err);
        sb_out_text(&out, "}\n");

        if (ok && out.rc != SB_OK) {
            history_error(err, "MemoryError", "the record is too large");
            ok = false;
        }

        if (ok) {
            history_text_json(to, sb_str(out.buf.data, out.buf.len));
        }

        history_memory_check(out.buf.nomem);
        sb_buf_free(&out.buf);

        return ok;
    }

    history_show_head(to, row, id);
    history_show_wire(to, row);
    history_show_json(to, row, "Request", HR_REQUEST);
    history_show_json(to, row, "Result", HR_RESULT);

    return history_show_files(to, db, row, id, err)
           && history_show_output(to, db, row, id, err);
}


static bool
history_show(history_place_t *place, const char *text,
    const history_value_t *values)
{
    int               rc;
    char              id[HISTORY_ID_MAX], *mem;
    FILE             *to;
    size_t            size;
    sqlite3          *db;
    history_box_t    *box;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    if (!history_place_record(place, text, &box, id)) {
        return false;
    }

    db = history_place_db(place, box);
    if (db == NULL) {
        return false;
    }

    mem = NULL;

    to = open_memstream(&mem, &size);
    if (to == NULL) {
        history_say("out of memory");
        return false;
    }

    stmt = history_query_record(db, true, &err);
    rc = -1;

    if (stmt != NULL) {
        sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
        rc = history_step(stmt, &err);

        if (rc == 1 && !history_show_record(to, db, stmt, id,
                                            values[SHOW_JSON].n != 0, &err)) {
            rc = -1;
        }
    }

    sqlite3_finalize(stmt);
    (void) fclose(to);

    if (rc == 1) {
        (void) fwrite(mem, 1, size, stdout);

    } else if (rc == 0) {
        history_say("record %s is just being moved: ask again", id);

    } else {
        history_place_broken(place, box, &err);
    }

    free(mem);

    return rc == 1 && fflush(stdout) == 0;
}


int
history_show_run(const history_where_t *given, int argc, char **argv)
{
    history_value_t  values[SHOW_COUNT];

    static const history_single_t  single = {
        "show", history_show_help, history_show_args, history_show
    };

    return history_single_run(&single, values, given, argc, argv);
}
