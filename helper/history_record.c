#include "history_memory.h"
#include "history_record.h"
#include "history_text.h"
#include "utf8.h"

#include <stdio.h>


static bool
history_row_null(history_row_t *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL;
}


bool
history_record_image(sb_buf_t *b, sb_str_t json)
{
    bool              found;
    sb_str_t          image;
    sb_jdoc_t        *doc;
    const sb_jv_t    *v;
    sb_json_limits_t  limits;

    limits.max_depth = SB_OUT_DEPTH;
    limits.max_bytes = SB_OUT_MAX;

    doc = sb_jdoc_parse(json, &limits, NULL);
    if (doc == NULL) {
        return false;
    }

    v = sb_jv_get(sb_jdoc_root(doc), "image");

    image = v != NULL && v->kind == SB_JSON_STRING ? v->text
                                                   : sb_jv_str(v, "uri");

    found = image.len != 0;

    if (found) {
        (void) sb_buf_add_str(b, image);
    }

    sb_jdoc_free(doc);

    return found;
}


static void
history_summary_gap(sb_buf_t *b, history_row_t *row)
{
    char     size[16];
    int64_t  operations, bytes;

    operations = sqlite3_column_int64(row, HR_GAP_OPERATIONS);
    bytes = sqlite3_column_int64(row, HR_GAP_BYTES);

    if (operations) {
        (void) sb_buf_printf(b, "%lld operation%s not recorded",
                             (long long) operations,
                             operations == 1 ? "" : "s");
    }

    if (bytes) {
        history_text_size(size, bytes);
        (void) sb_buf_printf(b, "%s%s bytes of output not recorded",
                             operations ? ", " : "", size);
    }

    if (!history_row_null(row, HR_GAP_REASON)) {
        (void) sb_buf_printf(b, "%s%s", b->len ? ": " : "",
                             (const char *) sqlite3_column_text(row,
                                                        HR_GAP_REASON));
    }
}


sb_rc_t
history_record_summary(sb_buf_t *b, history_row_t *row)
{
    int64_t   files;
    sb_str_t  type;

    type = history_column(row, HR_TYPE);

    if (!history_row_null(row, HR_COMMAND)) {
        return sb_buf_add_str(b, history_column(row, HR_COMMAND));
    }

    if (!history_row_null(row, HR_PATH)) {
        if (!history_row_null(row, HR_OLD_PATH)) {
            (void) sb_buf_add_str(b, history_column(row, HR_OLD_PATH));
            (void) sb_buf_add_str(b, sb_lit(" -> "));
        }

        (void) sb_buf_add_str(b, history_column(row, HR_PATH));

        files = sqlite3_column_int64(row, HR_FILES);

        if (sqlite3_column_int64(row, HR_FILES_TOTAL) > files) {
            files = sqlite3_column_int64(row, HR_FILES_TOTAL);
        }

        return files > 1 ? sb_buf_printf(b, " and %lld more",
                                         (long long) files - 1)
                         : SB_OK;
    }

    if (!history_row_null(row, HR_GAP_OPERATIONS)) {
        history_summary_gap(b, row);
        return SB_OK;
    }

    if (sb_eq(type, sb_lit("sandbox.create"))
        && history_record_image(b, history_column(row, HR_REQUEST)))
    {
        return SB_OK;
    }

    if (sb_eq(type, sb_lit("endpoint.get")) && !history_row_null(row, HR_PORT))
    {
        return sb_buf_printf(b, "port %lld",
                             sqlite3_column_int64(row, HR_PORT));
    }

    if (history_row_null(row, HR_METHOD)) {
        return SB_OK;
    }

    /* For what has no better words: the request itself. */

    (void) sb_buf_add_str(b, history_column(row, HR_METHOD));
    (void) sb_buf_add_c(b, ' ');

    if (sb_eq(type, sb_lit("proxy.http")) || sb_eq(type, sb_lit("proxy.ws"))) {
        (void) sb_buf_printf(b, ":%lld", sqlite3_column_int64(row, HR_PORT));
    }

    return sb_buf_add_str(b, history_column(row, HR_URL_PATH));
}


static void
history_member(sb_out_t *out, history_row_t *row, const char *name,
    int column)
{
    sb_out_key(out, name);

    if (!sb_out_column(out, row, column)) {
        sb_out_str(out, history_column(row, column));
    }
}


static void
history_members(sb_out_t *out, history_row_t *row,
    const char *const *names, const int *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        history_member(out, row, names[i], columns[i]);
    }
}


static void
history_member_actor(sb_out_t *out, history_row_t *row)
{
    static const char *const  names[] = {
        "type", "id", "thread", "run", "correlation", "parent", "identity"
    };

    static const int  columns[] = {
        HR_ACTOR_TYPE, HR_ACTOR_ID, HR_THREAD, HR_RUN, HR_CORRELATION,
        HR_PARENT, HR_IDENTITY
    };

    sb_out_key(out, "actor");
    sb_out_text(out, "{");
    history_members(out, row, names, columns, 7);
    sb_out_text(out, "}");
}


static void
history_member_output(sb_out_t *out, history_row_t *row)
{
    sb_out_key(out, "output");

    if (history_row_null(row, HR_COMMAND)
        && history_row_null(row, HR_STDOUT_BYTES)
        && history_row_null(row, HR_STDERR_BYTES))
    {
        sb_out_text(out, "null");
        return;
    }

    sb_out_text(out, "{");
    sb_out_key(out, "stdout_bytes");
    sb_out_int(out, sqlite3_column_int64(row, HR_STDOUT_BYTES));
    sb_out_key(out, "stderr_bytes");
    sb_out_int(out, sqlite3_column_int64(row, HR_STDERR_BYTES));
    history_member(out, row, "stdout_total_bytes", HR_STDOUT_TOTAL);
    history_member(out, row, "stderr_total_bytes", HR_STDERR_TOTAL);
    sb_out_key(out, "complete");
    sb_out_text(out, history_row_null(row, HR_OUTPUT_COMPLETE) ? "null"
                     : sqlite3_column_int(row, HR_OUTPUT_COMPLETE)
                     ? "true" : "false");
    history_member(out, row, "state", HR_OUTPUT_STATE);
    sb_out_text(out, "}");
}


static void
history_member_file(sb_out_t *out, history_row_t *row)
{
    static const char *const  names[] = {
        "path", "old_path", "change", "before_hash", "after_hash",
        "before_size", "after_size"
    };

    static const int  columns[] = {
        HR_PATH, HR_OLD_PATH, HR_CHANGE, HR_BEFORE_HASH, HR_AFTER_HASH,
        HR_BEFORE_SIZE, HR_AFTER_SIZE
    };

    sb_out_key(out, "file");

    if (history_row_null(row, HR_PATH)) {
        sb_out_text(out, "null");
        return;
    }

    sb_out_text(out, "{");
    history_members(out, row, names, columns, 7);
    sb_out_key(out, "has_diff");
    sb_out_text(out, sqlite3_column_int(row, HR_HAS_DIFF) ? "true}"
                                                          : "false}");
}


void
history_record_members(sb_out_t *out, history_row_t *row)
{
    static const char *const  names[] = {
        "seq", "cursor", "id", "sandbox_id", "source", "type", "status",
        "started_at", "completed_at", "duration_ms"
    };

    static const int  columns[] = {
        HR_SEQ, HR_CURSOR, HR_ID, HR_SANDBOX, HR_SOURCE, HR_TYPE, HR_STATUS,
        HR_STARTED, HR_COMPLETED, HR_DURATION_MS
    };

    sb_buf_t  summary = { .max = SB_OUT_MAX };

    history_members(out, row, names, columns, 10);
    history_member_actor(out, row);

    (void) history_record_summary(&summary, row);
    sb_out_key(out, "summary");
    sb_out_str(out, sb_str(summary.data,
                           sb_utf8_cut(sb_str(summary.data, summary.len),
                                       HISTORY_SUMMARY_MAX)));
    sb_out_key(out, "summary_bytes");
    sb_out_int(out, (int64_t) summary.len);
    history_memory_check(summary.nomem);
    sb_buf_free(&summary);

    history_member(out, row, "exit_code", HR_EXIT_CODE);
    history_member(out, row, "http_status", HR_HTTP_STATUS);
    history_member(out, row, "bytes_in", HR_BYTES_IN);
    history_member(out, row, "bytes_out", HR_BYTES_OUT);
    history_member_output(out, row);
    history_member_file(out, row);

    sb_out_key(out, "verdict");

    if (history_row_null(row, HR_VERDICT)) {
        sb_out_text(out, "null");

    } else {
        sb_out_text(out, "{");
        history_member(out, row, "decision", HR_VERDICT);
        history_member(out, row, "rule", HR_RULE);
        sb_out_text(out, "}");
    }

    sb_out_key(out, "lock");

    if (history_row_null(row, HR_LOCK_WAITED_US)) {
        sb_out_text(out, "null");

    } else {
        sb_out_text(out, "{");
        sb_out_key(out, "waited_ms");
        sb_out_int(out, sqlite3_column_int64(row, HR_LOCK_WAITED_US)
                        / 1000);
        sb_out_text(out, "}");
    }

    sb_out_key(out, "chain");

    if (history_row_null(row, HR_CHAIN)) {
        sb_out_text(out, "null");

    } else {
        sb_out_text(out, "{\"hash\":\"");
        sb_out_raw(out, sqlite3_column_text(row, HR_CHAIN),
                   (size_t) sqlite3_column_bytes(row, HR_CHAIN));
        sb_out_text(out, "\"}");
    }

    history_member(out, row, "error_code", HR_ERROR_CODE);
    history_member(out, row, "reason", HR_REASON);
    history_member(out, row, "folded", HR_FOLDED);
}
