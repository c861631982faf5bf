#include "history_memory.h"
#include "history_export.h"
#include "history_record.h"
#include "history_text.h"
#include "id.h"
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>


typedef enum {
    COLUMN_TIME = 0, COLUMN_SANDBOX, COLUMN_SEQ, COLUMN_ACTOR, COLUMN_TYPE,
    COLUMN_STATUS, COLUMN_EXIT, COLUMN_DURATION, COLUMN_IN, COLUMN_OUT,
    COLUMN_SUMMARY, COLUMN_ID,
    COLUMN_COUNT
} history_table_e;

/* On a terminal: the width of each column, and which goes first when there is
 * no room for the summary (0: it stays). */
static const struct {
    const char  *title;
    unsigned     width;
    unsigned     leaves;
    int          align;
} history_columns[] = {
    { "TIME", 14, 0, HISTORY_LEFT },
    { "SANDBOX", 8, 0, HISTORY_LEFT },
    { "SEQ", 5, 0, HISTORY_RIGHT },
    { "ACTOR", 14, 6, HISTORY_LEFT },
    { "TYPE", 18, 0, HISTORY_LEFT },
    { "STATUS", 9, 0, HISTORY_LEFT },
    { "EXIT", 4, 4, HISTORY_RIGHT },
    { "TOOK", 6, 3, HISTORY_RIGHT },
    { "IN", 5, 1, HISTORY_RIGHT },
    { "OUT", 5, 2, HISTORY_RIGHT },
    { "SUMMARY", 0, 0, HISTORY_OPEN },
    { "ID", 0, 0, HISTORY_LEFT }
};

#define HISTORY_SUMMARY_MIN  24


bool
history_printer_init(history_printer_t *p, bool json)
{
    struct winsize  size;

    p->text = NULL;
    p->to = open_memstream(&p->text, &p->size);

    if (p->to == NULL) {
        history_say("out of memory");
        return false;
    }

    p->json = json;
    p->format = 0;
    p->rows = 0;
    p->head = !json;
    p->width = 0;

    if (!json && isatty(STDOUT_FILENO)) {
        p->width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
                   && size.ws_col >= 40 ? size.ws_col : 80;
    }

    return true;
}


void
history_printer_free(history_printer_t *p)
{
    (void) fclose(p->to);
    free(p->text);
}


bool
history_printer_send(history_printer_t *p)
{
    if (fflush(p->to) == 0 && !ferror(p->to)) {
        (void) history_text_raw(stdout, sb_str(p->text, p->size));

    } else {
        history_memory_check(true);
    }

    rewind(p->to);

    return !ferror(stdout);
}


/* Widths for this terminal; 0: not shown. */
static void
history_table_fit(unsigned widths[COLUMN_COUNT], unsigned total)
{
    unsigned  used, rank;

    for (rank = 0; ; rank++) {
        used = 0;

        for (int i = 0; i < COLUMN_SUMMARY; i++) {
            widths[i] = history_columns[i].leaves
                        && history_columns[i].leaves <= rank
                        ? 0 : history_columns[i].width;
            used += widths[i] ? widths[i] + 1 : 0;
        }

        if (used + HISTORY_SUMMARY_MIN <= total || rank == 6) {
            break;
        }
    }

    /* The date is the next to go, then the time is all that is left of it. */

    if (used + HISTORY_SUMMARY_MIN > total) {
        widths[COLUMN_TIME] = 8;
        used -= 6;
    }

    widths[COLUMN_SUMMARY] = total > used + 1 ? total - used : 1;
    widths[COLUMN_ID] = 0;
}


/* 12-31 23:59:59, or what stands there when it is no time. */
static sb_str_t
history_table_time(char dst[40], sb_str_t text, unsigned width)
{
    uint64_t  us;

    if (width == 0 || sb_time_parse(&us, text) != SB_OK) {
        return text;
    }

    sb_time_text(dst, us);
    dst[10] = ' ';

    return width < 14 ? sb_str(dst + 11, 8) : sb_str(dst + 5, 14);
}


static void
history_table_actor(sb_buf_t *b, history_row_t *row)
{
    sb_str_t  type, id;

    type = history_column(row, HR_ACTOR_TYPE);
    id = history_column(row, HR_ACTOR_ID);

    (void) sb_buf_add_str(b, type);

    if (id.len) {
        (void) sb_buf_add_c(b, '/');
        (void) sb_buf_add_str(b, id);
    }
}


static void
history_table_summary(sb_buf_t *b, history_row_t *row)
{
    (void) history_record_summary(b, row);

    if (sqlite3_column_type(row, HR_AFTER_HASH) != SQLITE_NULL) {
        (void) sb_buf_printf(b, " sha256:%.12s",
                             (const char *) sqlite3_column_text(row,
                                                        HR_AFTER_HASH));
    }

    if (sqlite3_column_int64(row, HR_FOLDED)) {
        (void) sb_buf_printf(b, "%s(and %lld times more)", b->len ? " " : "",
                             sqlite3_column_int64(row, HR_FOLDED));
    }

    if (sqlite3_column_type(row, HR_ERROR_CODE) != SQLITE_NULL) {
        (void) sb_buf_printf(b, "%s[%s]", b->len ? " " : "",
                             (const char *) sqlite3_column_text(row,
                                                        HR_ERROR_CODE));

    } else if (sqlite3_column_type(row, HR_REASON) != SQLITE_NULL) {
        (void) sb_buf_printf(b, "%s[%s]", b->len ? " " : "",
                             (const char *) sqlite3_column_text(row,
                                                                HR_REASON));
    }
}


/* The text of one cell; points into the row, into `text`, or into b. */
static sb_str_t
history_table_cell(history_row_t *row, int column, unsigned width,
    char text[40], sb_buf_t *b)
{
    static const int  plain[COLUMN_COUNT] = {
        [COLUMN_SEQ] = HR_SEQ, [COLUMN_TYPE] = HR_TYPE,
        [COLUMN_STATUS] = HR_STATUS, [COLUMN_EXIT] = HR_EXIT_CODE,
        [COLUMN_ID] = HR_ID
    };

    int       from;
    sb_str_t  cell;

    switch (column) {

    case COLUMN_TIME:
        return history_table_time(text, history_column(row, HR_STARTED),
                                  width);

    case COLUMN_SANDBOX:
        cell = history_column(row, HR_SANDBOX);

        return width && cell.len > width ? sb_str(cell.data, width) : cell;

    case COLUMN_ACTOR:
        history_table_actor(b, row);
        return sb_str(b->data, b->len);

    case COLUMN_SUMMARY:
        history_table_summary(b, row);
        return sb_str(b->data, b->len);

    case COLUMN_DURATION:
    case COLUMN_IN:
    case COLUMN_OUT:
        from = column == COLUMN_DURATION ? HR_DURATION_MS
               : column == COLUMN_IN ? HR_BYTES_IN : HR_BYTES_OUT;

        if (sqlite3_column_type(row, from) == SQLITE_NULL) {
            return sb_lit("-");
        }

        if (width == 0) {
            return history_column(row, from);
        }

        if (column == COLUMN_DURATION) {
            history_text_duration(text, sqlite3_column_int64(row, from));

        } else {
            history_text_size(text, sqlite3_column_int64(row, from));
        }

        return sb_str(text, strlen(text));

    default:
        if (sqlite3_column_type(row, plain[column]) == SQLITE_NULL) {
            return sb_lit("-");
        }

        return history_column(row, plain[column]);
    }
}


static void
history_table_line(history_printer_t *p, history_row_t *row)
{
    char      text[40];
    bool      first;
    sb_buf_t  b = { .max = SB_OUT_MAX };
    unsigned  widths[COLUMN_COUNT];
    sb_str_t  cell;

    if (p->width) {
        history_table_fit(widths, p->width);
    }

    first = true;

    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (p->width && widths[i] == 0) {
            continue;
        }

        b.len = 0;
        cell = row == NULL ? sb_str(history_columns[i].title,
                                    strlen(history_columns[i].title))
                           : history_table_cell(row, i, p->width ? widths[i]
                                                                 : 0,
                                                text, &b);

        if (!first) {
            (void) fputc(p->width ? ' ' : '\t', p->to);
        }

        first = false;

        if (p->width == 0) {
            history_text_put(p->to, cell, false);

        } else {
            history_text_cell(p->to, cell, widths[i],
                              (history_align_e) history_columns[i].align);
        }
    }

    (void) fputc('\n', p->to);
    history_memory_check(b.nomem);
    sb_buf_free(&b);
}


void
history_printer_head(history_printer_t *p)
{
    if (p->head) {
        p->head = false;
        history_table_line(p, NULL);
    }
}


void
history_printer_row(history_printer_t *p, history_row_t *row)
{
    sb_out_t  out = { .buf.max = SB_OUT_MAX };

    p->rows++;
    history_printer_head(p);

    if (!p->json) {
        history_table_line(p, row);
        return;
    }

    if (p->format) {
        history_export_row(&out, (history_export_e) (p->format - 1), row);

    } else {
        sb_out_text(&out, "{");
        history_record_members(&out, row);
        sb_out_text(&out, "}\n");
    }

    if (out.rc == SB_OK && p->format) {
        (void) history_text_raw(p->to, sb_str(out.buf.data, out.buf.len));

    } else if (out.rc == SB_OK) {
        history_text_json(p->to, sb_str(out.buf.data, out.buf.len));

    } else {
        history_say("a record is too large to be shown");
    }

    history_memory_check(out.buf.nomem);
    sb_buf_free(&out.buf);
}
