#include "history_list.h"
#include "history_query.h"
#include "history_text.h"
#include "schema.h"
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define HISTORY_LIST_LIMIT  1000


enum {
    LIST_SANDBOX = HF_COUNT, LIST_Q, LIST_LIMIT, LIST_ORDER, LIST_JSON, LIST_DATA,
    LIST_HISTORY,
    LIST_COUNT
};

static const history_arg_t  history_list_args[] = {
    HISTORY_FILTER_ARGS,
    { "--sandbox", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--q", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--limit", 'n', HISTORY_ARG_INT, false, false, NULL },
    { "--order", 0, HISTORY_ARG_TEXT, false, false, "asc|desc" },
    HISTORY_COMMON_ARGS
};

static const char  history_list_help[] =
    "usage: sandbox-history list [options] [SANDBOX]\n"
    "\n"
    "The newest operations, the newest last; of all sandboxes, or of one (its\n"
    "id, 3 characters of it, or its name).  On a terminal a table, else lines\n"
    "of fields separated by tabs.\n"
    "\n"
    HISTORY_FILTER_HELP
    "  --q TEXT               full text of commands, paths and output: every\n"
    "                         word must occur, \"...\" is a phrase\n"
    "  --sandbox SANDBOX      the same as the argument\n"
    "  -n, --limit N          the newest N (default 1000; 0: all)\n"
    "  --order asc|desc       desc: the newest first\n"
    "  --json                 one JSON object a line\n";


static int
history_key_compare(const void *one, const void *two)
{
    const history_key_t  *a = one, *b = two;

    if (a->cursor != b->cursor) {
        return a->cursor < b->cursor ? -1 : 1;
    }

    if (a->us != b->us) {
        return a->us < b->us ? -1 : 1;
    }

    if (a->box != b->box) {
        return a->box < b->box ? -1 : 1;
    }

    return (a->row > b->row) - (a->row < b->row);
}


bool
history_list_add(history_list_t *list, const history_key_t *key)
{
    size_t          cap;
    history_key_t  *keys;

    if (list->n == list->cap) {
        cap = list->cap ? list->cap * 2 : 256;

        keys = realloc(list->keys, cap * sizeof(history_key_t));
        if (keys == NULL) {
            history_say("out of memory: use --limit");
            return false;
        }

        list->keys = keys;
        list->cap = cap;
    }

    list->keys[list->n++] = *key;

    return true;
}


/* Drops all but the newest. */
void
history_list_trim(history_list_t *list, int64_t limit)
{
    size_t  drop;

    if (list->n == 0) {
        return;
    }

    qsort(list->keys, list->n, sizeof(history_key_t), history_key_compare);

    if (limit != -1 && list->n > (uint64_t) limit) {
        drop = list->n - (size_t) limit;
        list->n -= drop;
        list->older += drop;
        memmove(list->keys, list->keys + drop,
                list->n * sizeof(history_key_t));
    }
}


static bool
history_list_box(history_list_t *list, uint32_t index,
    const history_filter_t *filter, int64_t limit)
{
    int              rc;
    sqlite3         *db;
    sqlite3_stmt    *stmt;
    history_key_t    key;
    history_box_t   *box = list->boxes[index];
    history_error_t  err;

    db = history_place_db(list->place, box);
    if (db == NULL) {
        return true;
    }

    /* One more than asked for, to know whether there are older ones. */

    stmt = history_query_filter(db, filter, limit == -1 ? -1 : limit + 1, &err);
    rc = -1;

    if (stmt != NULL) {
        while ((rc = history_step(stmt, &err)) == 1) {
            key.row = sqlite3_column_int64(stmt, 0);
            key.cursor = sqlite3_column_int64(stmt, 1);
            key.us = sqlite3_column_int64(stmt, 2);
            key.box = index;
            key.done = false;

            if (!history_list_add(list, &key)) {
                sqlite3_finalize(stmt);
                return false;
            }
        }
    }

    if (rc == -1) {
        history_place_broken(list->place, box, &err);
    }

    sqlite3_finalize(stmt);

    return true;
}


bool
history_list_collect(history_list_t *list, history_place_t *place,
    history_box_t *only, const history_filter_t *filter, int64_t limit)
{
    memset(list, 0, sizeof(history_list_t));
    list->place = place;
    list->nboxes = only != NULL ? 1 : place->n;

    list->boxes = malloc((list->nboxes ? list->nboxes : 1)
                         * sizeof(history_box_t *));
    if (list->boxes == NULL) {
        history_say("out of memory");
        return false;
    }

    for (size_t i = 0; i < list->nboxes; i++) {
        list->boxes[i] = only != NULL ? only : place->boxes[i];
    }

    if (filter->q != NULL) {
        return history_list_search(list, only, filter, limit);
    }

    for (size_t i = 0; i < list->nboxes; i++) {
        if (!history_list_box(list, (uint32_t) i, filter, limit)) {
            return false;
        }

        if (limit != -1 && list->n > 2 * (uint64_t) limit + 65536) {
            history_list_trim(list, limit);
        }
    }

    history_list_trim(list, limit);

    return true;
}


void
history_list_free(history_list_t *list)
{
    free(list->boxes);
    free(list->keys);
}


/* Prints the row that a bound statement gives, if any, and resets it. */
static bool
history_list_print_row(history_place_t *place, history_box_t *box,
    sqlite3_stmt *stmt, history_printer_t *printer, bool *done, bool *missing)
{
    int              rc;
    history_error_t  err;

    rc = history_step(stmt, &err);

    if (rc == 1) {
        *done = !sb_eq(history_column(stmt, HR_STATUS), sb_lit("started"));
        history_printer_row(printer, stmt);

    } else if (rc == -1) {
        history_place_broken(place, box, &err);
    }

    sqlite3_reset(stmt);
    *missing = rc == 0;

    return rc != 1 || history_printer_send(printer);
}


/* Archived or deleted, and not open any more: what was in it is gone. */
static bool
history_list_vanished(const history_place_t *place, const history_box_t *box)
{
    char  path[PATH_MAX];

    history_place_path(place, box, path);

    return box->db == NULL && access(path, F_OK) == -1 && errno == ENOENT;
}


/* The box that a record of _gateway has moved into, and its row there.  1: found,
 * 0: it has not moved, or there is no more of it, -1: that cannot be read. */
static int
history_list_moved(history_place_t *place, history_box_t *gateway,
    int64_t cursor, history_box_t **to, int64_t *row)
{
    int               rc;
    char              id[HISTORY_ID_MAX], dir[STORE_DIR_LEN];
    sqlite3          *db;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    db = history_place_db(place, gateway);
    if (db == NULL) {
        return -1;
    }

    rc = -1;
    stmt = history_prepare(db, "SELECT event_id FROM gateway_records WHERE"
                           " cursor = ?1 AND moved_to IS NOT NULL", &err);

    if (stmt != NULL) {
        sqlite3_bind_int64(stmt, 1, cursor);
        rc = history_step(stmt, &err);

        if (rc == 1) {
            (void) snprintf(id, sizeof(id), "%.*s",
                            (int) history_column(stmt, 0).len,
                            history_column(stmt, 0).data);
        }

        sqlite3_finalize(stmt);
    }

    rc = rc == 1 ? history_query_moved(db, id, dir, &err) : rc;

    if (rc == -1) {
        history_place_broken(place, gateway, &err);
    }

    if (rc != 1) {
        return rc;
    }

    /* its file may be younger than the list of them */

    if (!history_place_scan(place)) {
        place->incomplete = true;
        return -1;
    }

    for (size_t i = 0; i < place->n; i++) {
        if (strcmp(place->boxes[i]->dir, dir) != 0) {
            continue;
        }

        *to = place->boxes[i];

        if (history_list_vanished(place, *to)) {
            return 0;
        }

        db = history_place_db(place, *to);
        if (db == NULL) {
            return -1;
        }

        rc = history_query_row(db, id, row, &err);

        if (rc == -1) {
            history_place_broken(place, *to, &err);
        }

        return rc;
    }

    return 0;
}


/* Is a record told at its own place?  Of one that moved while the list was made
 * it may have both rows, with the same cursor. */
static bool
history_list_has(const history_list_t *list, size_t i, const history_box_t *box,
    int64_t row)
{
    size_t                k;
    const history_key_t  *keys = list->keys;

    for (k = i; k > 0 && keys[k - 1].cursor == keys[i].cursor; k--) {
        /* void */
    }

    for ( /* void */ ; k < list->n && keys[k].cursor == keys[i].cursor; k++) {
        if (list->boxes[keys[k].box] == box && keys[k].row == row) {
            return true;
        }
    }

    return false;
}


/* Prints a record that is not where it was when the list was made. */
static bool
history_list_print_moved(history_list_t *list, size_t i,
    history_printer_t *printer)
{
    int               rc;
    bool              ok, missing;
    int64_t           row;
    sqlite3_stmt     *stmt;
    history_box_t    *box, *to;
    history_key_t    *key;
    history_error_t   err;

    key = &list->keys[i];
    box = list->boxes[key->box];
    to = NULL;
    rc = key->cursor >= 0 && strcmp(box->dir, SCHEMA_GATEWAY) == 0
         ? history_list_moved(list->place, box, key->cursor, &to, &row) : 0;

    if (rc != 1) {
        list->gone += rc == 0;
        return true;
    }

    if (history_list_has(list, i, to, row)
        || (to == list->moved && row == list->moved_row))
    {
        return true;
    }

    stmt = history_query_record(to->db, false, &err);

    if (stmt == NULL) {
        history_place_broken(list->place, to, &err);
        return true;
    }

    sqlite3_bind_int64(stmt, 1, row);
    ok = history_list_print_row(list->place, to, stmt, printer, &key->done,
                                &missing);
    sqlite3_finalize(stmt);

    list->gone += missing;
    list->moved = to;
    list->moved_row = row;

    return ok;
}


bool
history_list_print(history_list_t *list, history_printer_t *printer,
    bool reverse)
{
    bool              ok, missing, vanished;
    size_t            at;
    sqlite3          *db;
    history_box_t    *box, *last;
    sqlite3_stmt     *stmt;
    history_key_t    *key;
    history_error_t   err;

    ok = true;
    vanished = false;
    last = NULL;
    stmt = NULL;

    for (size_t i = 0; i < list->n && ok; i++) {
        at = reverse ? list->n - 1 - i : i;
        key = &list->keys[at];
        box = list->boxes[key->box];

        if (box != last) {
            sqlite3_finalize(stmt);
            stmt = NULL;
            last = box;

            vanished = history_list_vanished(list->place, box);
            db = vanished ? NULL : history_place_db(list->place, box);

            if (db != NULL) {
                stmt = history_query_record(db, false, &err);

                if (stmt == NULL) {
                    history_place_broken(list->place, box, &err);
                }
            }
        }

        if (stmt != NULL) {
            sqlite3_bind_int64(stmt, 1, key->row);
            ok = history_list_print_row(list->place, box, stmt, printer,
                                        &key->done, &missing);

            if (ok && missing) {
                /* another file has to be open for it */
                sqlite3_finalize(stmt);
                stmt = NULL;
                last = NULL;
                ok = history_list_print_moved(list, at, printer);
            }

        } else {
            list->gone += vanished;
        }
    }

    sqlite3_finalize(stmt);

    if (list->gone) {
        history_say("%zu records were removed while the list was made: they are"
                    " not in it", list->gone);
    }

    return ok;
}


bool
history_list_print_one(history_place_t *place, history_box_t *box,
    int64_t row, history_printer_t *printer)
{
    bool              ok, done, missing;
    sqlite3          *db;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    db = history_place_db(place, box);
    if (db == NULL) {
        return true;
    }

    stmt = history_query_record(db, false, &err);
    if (stmt == NULL) {
        history_place_broken(place, box, &err);
        return true;
    }

    sqlite3_bind_int64(stmt, 1, row);
    ok = history_list_print_row(place, box, stmt, printer, &done, &missing);
    sqlite3_finalize(stmt);

    return ok;
}


int
history_list_run(const history_where_t *given, int argc, char **argv)
{
    int                 rc;
    bool                ok;
    int64_t             limit;
    const char         *sandbox;
    history_box_t      *only;
    history_list_t      list;
    history_value_t     values[LIST_COUNT];
    history_where_t     where;
    history_place_t     place;
    history_filter_t    filter;
    history_printer_t   printer;
    history_parse_t     parse = {
        .args = history_list_args, .values = values, .rest = &sandbox, .max = 1
    };

    sandbox = NULL;

    rc = history_options(&parse, "list", history_list_help, given, &where,
                         argc, argv);
    if (rc != -1) {
        return rc;
    }

    if (values[LIST_SANDBOX].n) {
        if (sandbox != NULL) {
            history_say("list: give the sandbox once");
            return 2;
        }

        sandbox = values[LIST_SANDBOX].text[0];
    }

    limit = values[LIST_LIMIT].n ? values[LIST_LIMIT].number
                                 : HISTORY_LIST_LIMIT;

    if (limit < 0) {
        history_say("list: --limit must not be negative");
        return 2;
    }

    if (!history_filter_read(&filter, values)) {
        return 2;
    }

    filter.q = values[LIST_Q].n ? values[LIST_Q].text[0] : NULL;

    if (!history_place_open(&place, &where)) {
        return 1;
    }

    only = NULL;
    memset(&list, 0, sizeof(list));

    ok = sandbox == NULL
         || (only = history_place_find(&place, sandbox)) != NULL;

    ok = ok && history_list_collect(&list, &place, only, &filter,
                                    limit ? limit : -1)
         && history_printer_init(&printer, values[LIST_JSON].n != 0);

    if (ok) {
        ok = history_list_print(&list, &printer, values[LIST_ORDER].n
                                && *values[LIST_ORDER].text[0] == 'd');

        if (ok && list.n == 0) {
            if (printer.width) {
                puts("nothing is on record here");

            } else {
                history_printer_head(&printer);
                ok = history_printer_send(&printer);
            }
        }

        history_printer_free(&printer);

        if (fflush(stdout) != 0) {
            ok = false;
        }

        if (ok && list.older && !values[LIST_LIMIT].n) {
            history_say("older records were left out: use --limit N, 0 for"
                        " all");
        }

        ok = ok && !place.incomplete;
    }

    history_list_free(&list);
    history_place_close(&place);

    return ok ? 0 : 1;
}
