#include "history_export.h"

#include "id.h"

#include <stdio.h>


const char *const  history_export_names[] = { "jsonl", "csv", "html", NULL };

const char *const  history_export_types[] = {
    "application/x-ndjson", "text/csv; charset=utf-8; header=present",
    "text/html; charset=utf-8"
};

#define EXPORT_SUMMARY  -1

/* Cells of CSV. */
static const struct {
    const char  *name;
    int          column;
} history_export_cells[] = {
    { "seq", HR_SEQ }, { "cursor", HR_CURSOR }, { "id", HR_ID },
    { "sandbox_id", HR_SANDBOX }, { "source", HR_SOURCE }, { "type", HR_TYPE },
    { "status", HR_STATUS }, { "started_at", HR_STARTED },
    { "completed_at", HR_COMPLETED }, { "duration_ms", HR_DURATION_MS },
    { "actor_type", HR_ACTOR_TYPE }, { "actor_id", HR_ACTOR_ID },
    { "thread", HR_THREAD }, { "run", HR_RUN },
    { "correlation", HR_CORRELATION }, { "parent", HR_PARENT },
    { "identity", HR_IDENTITY }, { "summary", EXPORT_SUMMARY },
    { "exit_code", HR_EXIT_CODE }, { "http_status", HR_HTTP_STATUS },
    { "bytes_in", HR_BYTES_IN }, { "bytes_out", HR_BYTES_OUT },
    { "stdout_bytes", HR_STDOUT_BYTES }, { "stderr_bytes", HR_STDERR_BYTES },
    { "output_complete", HR_OUTPUT_COMPLETE }, { "path", HR_PATH },
    { "old_path", HR_OLD_PATH }, { "change", HR_CHANGE },
    { "before_hash", HR_BEFORE_HASH }, { "after_hash", HR_AFTER_HASH },
    { "before_size", HR_BEFORE_SIZE }, { "after_size", HR_AFTER_SIZE },
    { "error_code", HR_ERROR_CODE }, { "reason", HR_REASON },
    { "folded", HR_FOLDED }, { "request", HR_REQUEST }, { "result", HR_RESULT }
};

#define EXPORT_CELLS                                                         \
    (sizeof(history_export_cells) / sizeof(history_export_cells[0]))

/* Columns of the page. */
static const struct {
    const char  *title;
    int          column;
} history_export_page[] = {
    { "Began", HR_STARTED }, { "Sandbox", HR_SANDBOX }, { "No.", HR_SEQ },
    { "Type", HR_TYPE }, { "Status", HR_STATUS }, { "Actor", HR_ACTOR_ID },
    { "Run", HR_RUN }, { "What", EXPORT_SUMMARY }, { "Exit", HR_EXIT_CODE },
    { "HTTP", HR_HTTP_STATUS }, { "ms", HR_DURATION_MS },
    { "Reason", HR_REASON }, { "Id", HR_ID }
};

#define EXPORT_PAGE                                                          \
    (sizeof(history_export_page) / sizeof(history_export_page[0]))

static const char  history_export_html[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src"
    " 'none'; style-src 'unsafe-inline'\">\n"
    "<title>Sandbox history</title>\n<style>\n"
    "body{font:13px/1.4 system-ui,sans-serif;margin:1.5em;color:#111;"
    "background:#fff}\n"
    "h1{font-size:1.4em;margin:0}p{margin:.3em 0 1em;color:#444;"
    "overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;vertical-align:top;padding:.25em .5em;"
    "border-bottom:1px solid #ccc;overflow-wrap:anywhere}\n"
    "th{border-bottom:2px solid #111;white-space:nowrap}\n"
    "td.w{font-family:monospace;white-space:pre-wrap}\n"
    "td.failed,td.timeout,td.unknown{font-weight:bold}\n"
    "@media print{body{margin:0;font-size:9px}thead{display:"
    "table-header-group}tr{break-inside:avoid}}\n"
    "</style>\n</head>\n<body>\n<h1>Sandbox history</h1>\n<p>";


static sb_str_t
history_export_text(history_row_t *row, int column, sb_buf_t *summary)
{
    if (column != EXPORT_SUMMARY) {
        return history_column(row, column);
    }

    summary->len = 0;
    (void) history_record_summary(summary, row);

    return sb_str(summary->data, summary->len);
}


/* --- CSV (RFC 4180) -------------------------------------------------------- */

/*
 * Programs for tables take a cell that begins so for a formula, whatever wrote
 * it: an apostrophe makes it a text.  Numbers of ours are none.
 */
static bool
history_export_formula(sb_str_t v)
{
    return v.len && memchr("=+-@\t\r", v.data[0], 6) != NULL;
}


static void
history_export_cell(sb_out_t *out, sb_str_t v, bool number)
{
    size_t  i, from;
    bool    quote;

    quote = history_export_formula(v) && !number;

    for (i = 0; i < v.len && !quote; i++) {
        quote = memchr(",\"\r\n\t", v.data[i], 5) != NULL;
    }

    if (!quote) {
        sb_out_raw(out, v.data, v.len);
        return;
    }

    sb_out_text(out, history_export_formula(v) && !number ? "\"'" : "\"");

    for (i = 0, from = 0; i < v.len; i++) {
        if (v.data[i] == '"') {
            sb_out_raw(out, v.data + from, i + 1 - from);
            sb_out_text(out, "\"");
            from = i + 1;
        }
    }

    sb_out_raw(out, v.data + from, v.len - from);
    sb_out_text(out, "\"");
}


static void
history_export_csv(sb_out_t *out, history_row_t *row)
{
    int       column;
    bool      number;
    size_t    i;
    sb_buf_t  summary = { .max = SB_OUT_MAX };

    for (i = 0; i < EXPORT_CELLS; i++) {
        column = history_export_cells[i].column;
        number = column != EXPORT_SUMMARY
                 && sqlite3_column_type(row, column) == SQLITE_INTEGER;

        sb_out_text(out, i ? "," : "");
        history_export_cell(out, history_export_text(row, column, &summary),
                            number);
    }

    if (summary.nomem) {
        out->rc = SB_NOMEM;
    }

    sb_buf_free(&summary);
    sb_out_text(out, "\r\n");
}


/* --- HTML ------------------------------------------------------------------ */

static void
history_export_escape(sb_out_t *out, sb_str_t v)
{
    char         number[16];
    size_t       i, from;
    const char  *with;

    for (i = 0, from = 0; i < v.len; i++) {

        switch (v.data[i]) {

        case '<':
            with = "&lt;";
            break;

        case '>':
            with = "&gt;";
            break;

        case '&':
            with = "&amp;";
            break;

        case '"':
            with = "&quot;";
            break;

        case '\'':
            with = "&#39;";
            break;

        case '\n':
        case '\t':
            continue;

        default:
            /* control characters are no text of a page: shown as pictures */

            if ((unsigned char) v.data[i] >= 0x20 && v.data[i] != 0x7f) {
                continue;
            }

            (void) snprintf(number, sizeof(number), "&#%u;",
                            v.data[i] == 0x7f ? 0x2421u
                            : 0x2400u + (unsigned char) v.data[i]);
            with = number;
        }

        sb_out_raw(out, v.data + from, i - from);
        sb_out_text(out, with);
        from = i + 1;
    }

    sb_out_raw(out, v.data + from, v.len - from);
}


static void
history_export_line(sb_out_t *out, history_row_t *row)
{
    int       column;
    size_t    i;
    sb_str_t  text;
    sb_buf_t  summary = { .max = SB_OUT_MAX };

    sb_out_text(out, "<tr>");

    for (i = 0; i < EXPORT_PAGE; i++) {
        column = history_export_page[i].column;
        text = history_export_text(row, column, &summary);

        if (column == HR_STATUS) {
            sb_out_text(out, "<td class=\"");
            history_export_escape(out, text);
            sb_out_text(out, "\">");

        } else {
            sb_out_text(out, column == EXPORT_SUMMARY ? "<td class=\"w\">"
                                                      : "<td>");
        }

        history_export_escape(out, text);
        sb_out_text(out, "</td>");
    }

    if (summary.nomem) {
        out->rc = SB_NOMEM;
    }

    sb_buf_free(&summary);
    sb_out_text(out, "</tr>\n");
}


/* --- JSON lines ------------------------------------------------------------ */

static void
history_export_member(sb_out_t *out, history_row_t *row,
    const char *name, int column)
{
    sb_out_key(out, name);

    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        sb_out_text(out, "null");

    } else if (sb_out_json(out, history_column(row, column)) != SB_OK) {
        /* others may have written it */
        sb_out_str(out, history_column(row, column));
    }
}


static void
history_export_json(sb_out_t *out, history_row_t *row)
{
    sb_out_text(out, "{");
    history_record_members(out, row);
    history_export_member(out, row, "request", HR_REQUEST);
    history_export_member(out, row, "result", HR_RESULT);
    sb_out_text(out, "}\n");
}


/* --- all of them ----------------------------------------------------------- */

void
history_export_head(sb_out_t *out, history_export_e format, sb_str_t what)
{
    char    now[SB_TIME_LEN + 1];
    size_t  i;

    if (format == HISTORY_EXPORT_CSV) {

        for (i = 0; i < EXPORT_CELLS; i++) {
            sb_out_text(out, i ? "," : "");
            sb_out_text(out, history_export_cells[i].name);
        }

        sb_out_text(out, "\r\n");

    } else if (format == HISTORY_EXPORT_HTML) {
        sb_time_text(now, sb_now_us());
        sb_out_text(out, history_export_html);
        history_export_escape(out, what);
        sb_out_text(out, " &middot; exported at ");
        sb_out_text(out, now);
        sb_out_text(out, "</p>\n<table>\n<thead><tr>");

        for (i = 0; i < EXPORT_PAGE; i++) {
            sb_out_text(out, "<th>");
            sb_out_text(out, history_export_page[i].title);
            sb_out_text(out, "</th>");
        }

        sb_out_text(out, "</tr></thead>\n<tbody>\n");
    }
}


void
history_export_row(sb_out_t *out, history_export_e format,
    history_row_t *row)
{
    if (format == HISTORY_EXPORT_CSV) {
        history_export_csv(out, row);

    } else if (format == HISTORY_EXPORT_HTML) {
        history_export_line(out, row);

    } else {
        history_export_json(out, row);
    }
}


void
history_export_tail(sb_out_t *out, history_export_e format,
    uint64_t records)
{
    char  n[32];

    (void) snprintf(n, sizeof(n), "%llu", (unsigned long long) records);

    if (format == HISTORY_EXPORT_CSV) {
        sb_out_text(out, "#end,");
        sb_out_text(out, n);

        for (size_t i = 2; i < EXPORT_CELLS; i++) {
            sb_out_text(out, ",");
        }

        sb_out_text(out, "\r\n");

    } else if (format == HISTORY_EXPORT_HTML) {
        sb_out_text(out, "</tbody>\n</table>\n<p>End of the export: ");
        sb_out_text(out, n);
        sb_out_text(out, " records.</p>\n</body>\n</html>\n");

    } else {
        sb_out_text(out, "{\"export\":{\"complete\":true,\"records\":");
        sb_out_text(out, n);
        sb_out_text(out, "}}\n");
    }
}
