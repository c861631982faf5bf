/*
 * Records for taking away: JSON lines, CSV, or a page that stands by itself.
 * One writer for the API and the command line (docs/history.md, "Exports").
 */

#ifndef HISTORY_EXPORT_H_INCLUDED
#define HISTORY_EXPORT_H_INCLUDED

#include "history_people.h"
#include "history_record.h"

typedef enum {
    HISTORY_EXPORT_JSONL = 0, HISTORY_EXPORT_CSV, HISTORY_EXPORT_HTML
} history_export_e;

/* "jsonl", "csv", "html", NULL */
extern const char *const  history_export_names[];
/* Content types, in that order. */
extern const char *const  history_export_types[];

/* What stands before all records; `what` says in words which these are. */
void history_export_head(sb_out_t *out, history_export_e format,
    sb_str_t what);
void history_export_row(sb_out_t *out, history_export_e format,
    history_row_t *row);
/* The end, without which an export is not whole. */
void history_export_tail(sb_out_t *out, history_export_e format,
    uint64_t records);

/* The command; see history_people_run(). */
int history_export_run(const history_where_t *where, int argc, char **argv);

#endif /* HISTORY_EXPORT_H_INCLUDED */
