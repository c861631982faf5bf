/* One record: its one-line summary, its JSON, its line in a table. */

#ifndef HISTORY_RECORD_H_INCLUDED
#define HISTORY_RECORD_H_INCLUDED

#include "history_query.h"

#include <stdio.h>

/* The row of history_query_record() that a statement stands on. */
typedef sqlite3_stmt  history_row_t;

/* The command line, the path, the image, or what else tells most about it. */
sb_rc_t history_record_summary(sb_buf_t *b, history_row_t *row);

/* Appends `image.uri` of a create request, or `image` when it is a text; false
 * when it names none. */
bool history_record_image(sb_buf_t *b, sb_str_t json);

/* Of a summary, what lists tell; `summary_bytes` is the length of all of it. */
#define HISTORY_SUMMARY_MAX  4096

/* The members of "a record as listed" (docs/history.md), without braces. */
void history_record_members(sb_out_t *out, history_row_t *row);

/* These and what else is known of the record, without braces; false with err. */
bool history_record_whole(sb_out_t *out, sqlite3 *db, history_row_t *row,
    history_error_t *err);

/* How records are printed by list and tail.  Lines are made in memory, so that
 * no statement stays open while stdout is slow. */
typedef struct {
    FILE     *to;           /* memory: text, size */
    char     *text;
    size_t    size;
    bool      json;         /* a JSON object a line */
    bool      head;         /* the header is still to come */
    int       format;       /* an export: history_export_e + 1; 0: none */
    uint64_t  rows;
    unsigned  width;        /* columns of the terminal; 0: none, then fields
                               are whole and separated by tabs */
} history_printer_t;

/* Looks at stdout; false without memory. */
bool history_printer_init(history_printer_t *p, bool json);
/* Makes the header, unless it has been made (list and tail: before the first
 * record) or is not wanted (JSON). */
void history_printer_head(history_printer_t *p);
/* Makes the line of a record. */
void history_printer_row(history_printer_t *p, history_row_t *row);
/* Sends what was made to stdout; false when it takes no more. */
bool history_printer_send(history_printer_t *p);
void history_printer_free(history_printer_t *p);

#endif /* HISTORY_RECORD_H_INCLUDED */
