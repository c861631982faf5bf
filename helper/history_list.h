/* Which records, over all sandboxes in one order: what list and tail share. */

#ifndef HISTORY_LIST_H_INCLUDED
#define HISTORY_LIST_H_INCLUDED

#include "history_place.h"
#include "history_record.h"

/* Where a record is, and its place in the order of all. */
typedef struct {
    int64_t   cursor;       /* -1: written by others, then by time, before */
    int64_t   us;
    int64_t   row;          /* history_events.seq */
    uint32_t  box;          /* index in the list's boxes */
    bool      done;         /* was printed, and had ended */
} history_key_t;

typedef struct {
    history_place_t   *place;
    history_box_t    **boxes;       /* as they were when the list was made */
    size_t             nboxes;
    history_key_t     *keys;        /* oldest first */
    size_t             n;
    size_t             cap;
    size_t             older;       /* that the limit left out, at least */
    size_t             gone;        /* removed since it was made */
    history_box_t     *moved;       /* where the last record is that was found */
    int64_t            moved_row;   /* to have moved */
} history_list_t;

/* Collects the newest `limit` (-1: all) records of `only` (NULL: of all
 * sandboxes).  False after a sentence. */
bool history_list_collect(history_list_t *list, history_place_t *place,
    history_box_t *only, const history_filter_t *filter, int64_t limit);
/* The same by the index, for filters with a `q`; list->place and boxes are
 * set. */
bool history_list_search(history_list_t *list, history_box_t *only,
    const history_filter_t *filter, int64_t limit);
/* Adds one; false after a sentence. */
bool history_list_add(history_list_t *list, const history_key_t *key);
/* Sorts, and drops all but the newest. */
void history_list_trim(history_list_t *list, int64_t limit);
/* Prints them, also those that have moved out of _gateway since.  What retention
 * has removed since is counted and said; what cannot be read makes
 * place->incomplete true.  False when stdout takes no more. */
bool history_list_print(history_list_t *list, history_printer_t *printer,
    bool reverse);
void history_list_free(history_list_t *list);

/* Prints the record with that history_events.seq, if it still is there; false
 * when stdout takes no more. */
bool history_list_print_one(history_place_t *place, history_box_t *box,
    int64_t row, history_printer_t *printer);

/* The commands; see history_people_run(). */
int history_list_run(const history_where_t *where, int argc, char **argv);
int history_show_run(const history_where_t *where, int argc, char **argv);
int history_output_run(const history_where_t *where, int argc, char **argv);
int history_cast_run(const history_where_t *where, int argc, char **argv);
int history_versions_run(const history_where_t *where, int argc, char **argv);
int history_content_run(const history_where_t *where, int argc, char **argv);
int history_diff_run(const history_where_t *where, int argc, char **argv);
int history_tail_run(const history_where_t *where, int argc, char **argv);

/* Parses a command's options and positional arguments; --data and --history
 * may stand behind the command too.  -1: go on, else the exit code. */
int history_options(history_parse_t *parse, const char *name, const char *help,
    const history_where_t *given, history_where_t *where, int argc,
    char **argv);

/* A command about one record: show, output. */
typedef struct {
    const char           *name;
    const char           *help;
    const history_arg_t  *args;
    bool                (*run)(history_place_t *place, const char *text,
                              const history_value_t *values);
} history_single_t;

/* `values` is of single->args. */
int history_single_run(const history_single_t *single, history_value_t *values,
    const history_where_t *given, int argc, char **argv);

/* The last entries of every command's options. */
#define HISTORY_COMMON_ARGS                                                  \
    { "--json", 0, HISTORY_ARG_FLAG, false, false, NULL },                   \
    { "--data", 0, HISTORY_ARG_TEXT, false, false, NULL },                   \
    { "--history", 0, HISTORY_ARG_TEXT, false, false, NULL },                \
    { .name = NULL }

#endif /* HISTORY_LIST_H_INCLUDED */
