#include "files.h"
#include "history_list.h"
#include "history_memory.h"
#include "history_text.h"
#include "id.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>


#define VERSIONS_LIMIT  1000
#define VERSIONS_ID     18      /* of an id, at least */

enum {
    VERSIONS_LIMIT_ARG = 0, VERSIONS_ORDER, VERSIONS_JSON, VERSIONS_DATA,
    VERSIONS_HISTORY,
    VERSIONS_COUNT
};

static const history_arg_t  history_versions_args[] = {
    { "--limit", 'n', HISTORY_ARG_INT, false, false, NULL },
    { "--order", 0, HISTORY_ARG_TEXT, false, false, "asc|desc" },
    HISTORY_COMMON_ARGS
};

static const char  history_versions_help[] =
    "usage: sandbox-history versions [options] SANDBOX PATH\n"
    "\n"
    "How a file changed over time, the newest last: who did what to it, how it\n"
    "stood before is known, its size and SHA-256, and whether the content is\n"
    "kept.  On a terminal a table, else lines of fields separated by tabs.\n"
    "\n"
    "  -n, --limit N          the newest N (default 1000; 0: all)\n"
    "  --order asc|desc       desc: the newest first\n"
    "  --json                 one JSON object a line\n";

/* On a terminal: the width of each column (0: what is left), and which goes
 * first when there is no room (0: it stays). */
static const struct {
    const char  *title;
    int          from;
    unsigned     width;
    unsigned     leaves;
    int          align;
} history_versions_columns[] = {
    { "TIME", FILES_STARTED, 14, 0, HISTORY_LEFT },
    { "SEQ", FILES_SEQ, 5, 0, HISTORY_RIGHT },
    { "ACTOR", FILES_ACTOR_TYPE, 14, 3, HISTORY_LEFT },
    { "TYPE", FILES_TYPE, 12, 0, HISTORY_LEFT },
    { "STATUS", FILES_STATUS, 9, 2, HISTORY_LEFT },
    { "BEFORE", FILES_BEFORE, 11, 1, HISTORY_LEFT },
    { "SIZE", FILES_SIZE, 6, 0, HISTORY_RIGHT },
    { "SHA256", FILES_SHA256, 12, 4, HISTORY_LEFT },
    { "KEPT", FILES_KEPT, 4, 0, HISTORY_LEFT },
    { "ID", FILES_ID, 0, 0, HISTORY_OPEN }
};

#define VERSIONS_COLUMNS  (sizeof(history_versions_columns)                  \
                           / sizeof(history_versions_columns[0]))


/* Columns that leave at this width of the terminal. */
static unsigned
history_versions_rank(unsigned total)
{
    unsigned  rank, used;

    for (rank = 0; rank < 4; rank++) {
        used = VERSIONS_ID;

        for (size_t i = 0; i < VERSIONS_COLUMNS; i++) {
            if (history_versions_columns[i].leaves == 0
                || history_versions_columns[i].leaves > rank)
            {
                used += history_versions_columns[i].width + 1;
            }
        }

        if (used <= total) {
            break;
        }
    }

    return rank;
}


/* The text of one cell; points into the row, or into `text`. */
static sb_str_t
history_versions_cell(sqlite3_stmt *st, size_t i, unsigned width,
    char text[300])
{
    int       from;
    uint64_t  us;
    sb_str_t  id;

    from = history_versions_columns[i].from;

    switch (from) {

    case FILES_STARTED:
        if (width && sb_time_parse(&us, history_column(st, from)) == SB_OK) {
            sb_time_text(text, us);
            text[10] = ' ';
            return sb_str(text + 5, 14);
        }

        break;

    case FILES_ACTOR_TYPE:
        id = history_column(st, FILES_ACTOR_ID);
        (void) snprintf(text, 300, "%s%s%.*s",
                        (const char *) sqlite3_column_text(st, from),
                        id.len ? "/" : "",
                        (int) (id.len < 200 ? id.len : 200), id.data);
        return sb_str(text, strlen(text));

    case FILES_SIZE:
        if (width && sqlite3_column_type(st, from) != SQLITE_NULL) {
            history_text_size(text, sqlite3_column_int64(st, from));
            return sb_str(text, strlen(text));
        }

        break;

    case FILES_KEPT:
        return sqlite3_column_int(st, from) ? sb_lit("yes") : sb_lit("no");

    default:
        break;
    }

    return sqlite3_column_type(st, from) == SQLITE_NULL
           ? sb_lit("-") : history_column(st, from);
}


/* The line of a row, or with NULL the titles; total 0: not a terminal. */
static void
history_versions_line(sqlite3_stmt *st, unsigned total)
{
    char        text[300];
    unsigned    rank, width, left;
    const char  *title;
    sb_str_t    cell;

    rank = total ? history_versions_rank(total) : 0;
    left = total;

    for (size_t i = 0; i < VERSIONS_COLUMNS; i++) {

        if (history_versions_columns[i].leaves
            && history_versions_columns[i].leaves <= rank)
        {
            continue;
        }

        title = history_versions_columns[i].title;
        width = total ? history_versions_columns[i].width : 0;
        cell = st ? history_versions_cell(st, i, total, text)
                  : sb_str(title, strlen(title));

        if (i) {
            (void) putchar(total ? ' ' : '\t');
        }

        if (total == 0) {
            history_text_put(stdout, cell, false);
            continue;
        }

        if (width == 0) {
            width = left > 1 ? left : 1;

        } else if (st && history_versions_columns[i].from == FILES_SHA256
                   && cell.len > width)
        {
            /* the beginning of a digest needs no ellipsis */
            cell.len = width;
        }

        history_text_cell(stdout, cell, width, (history_align_e)
                          history_versions_columns[i].align);
        left -= left > width + 1 ? width + 1 : left;
    }

    (void) putchar('\n');
}


static int
history_versions_print(sqlite3_stmt *st, bool json, unsigned total)
{
    int       rc;
    sb_buf_t  b = { .max = SB_OUT_MAX };

    if (!json) {
        history_versions_line(NULL, total);
    }

    while ((rc = sqlite3_step(st)) == SQLITE_ROW && !ferror(stdout)) {

        if (!json) {
            history_versions_line(st, total);
            continue;
        }

        b.len = 0;

        if (files_version_json(&b, st) != SB_OK
            || sb_buf_add_c(&b, '\n') != SB_OK)
        {
            rc = SQLITE_NOMEM;
            break;
        }

        history_text_json(stdout, sb_str(b.data, b.len));
    }

    history_memory_check(b.nomem);
    sb_buf_free(&b);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* Are there more than that? */
static int
history_versions_more(sqlite3 *db, const char *path, int64_t limit, bool *more,
    bool *any)
{
    int            rc;
    int64_t        n;
    sqlite3_stmt  *st;

    rc = files_versions(db, path, INT64_MAX, limit == -1 ? 1 : limit + 1,
                        false, &st);
    if (rc != SQLITE_OK) {
        return rc;
    }

    for (n = 0; sqlite3_step(st) == SQLITE_ROW; n++) {
        /* void */
    }

    *any = n != 0;
    *more = limit != -1 && n > limit;

    return sqlite3_finalize(st);
}


static bool
history_versions(history_place_t *place, const char *sandbox, const char *path,
    const history_value_t *values, int64_t limit)
{
    int              rc;
    bool             json, more, any;
    unsigned         width;
    sqlite3         *db;
    sqlite3_stmt    *st;
    history_box_t   *box;
    struct winsize   size;
    history_error_t  err;

    box = history_place_find(place, sandbox);
    db = box ? history_place_db(place, box) : NULL;

    if (db == NULL) {
        return false;
    }

    more = any = false;
    json = values[VERSIONS_JSON].n != 0;
    width = 0;
    rc = SQLITE_OK;

    if (!json && isatty(STDOUT_FILENO)) {
        width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
                && size.ws_col >= 40 ? size.ws_col : 80;
    }

    /* a file that only others wrote has no versions */

    if (history_has_table(db, "gateway_contents")) {
        rc = history_versions_more(db, path, limit, &more, &any);
    }

    if (rc == SQLITE_OK && !any) {
        history_say("nothing has changed %s in sandbox %s, as far as is on"
                    " record", path, box->id);
        return false;
    }

    st = NULL;

    if (rc == SQLITE_OK) {
        rc = files_versions(db, path, INT64_MAX, limit,
                            values[VERSIONS_ORDER].n == 0
                            || *values[VERSIONS_ORDER].text[0] == 'a', &st);
    }

    if (rc == SQLITE_OK) {
        rc = history_versions_print(st, json, width);
    }

    (void) sqlite3_finalize(st);

    if (rc != SQLITE_OK && rc != SQLITE_ROW) {
        history_error_sqlite(&err, db, rc);
        history_place_broken(place, box, &err);
    }

    if (rc == SQLITE_OK && more && values[VERSIONS_LIMIT_ARG].n == 0) {
        history_say("older versions were left out: use --limit N, 0 for all");
    }

    return fflush(stdout) == 0 && rc == SQLITE_OK;
}


int
history_versions_run(const history_where_t *given, int argc, char **argv)
{
    int               rc;
    bool              ok;
    int64_t           limit;
    const char       *rest[2];
    history_place_t   place;
    history_value_t   values[VERSIONS_COUNT];
    history_where_t   where;
    history_parse_t   parse = {
        .args = history_versions_args, .values = values, .rest = rest, .max = 2
    };

    rc = history_options(&parse, "versions", history_versions_help, given,
                         &where, argc, argv);
    if (rc != -1) {
        return rc;
    }

    if (parse.nrest != 2) {
        history_say("versions: of which file? give SANDBOX and PATH");
        return 2;
    }

    limit = values[VERSIONS_LIMIT_ARG].n ? values[VERSIONS_LIMIT_ARG].number
                                         : VERSIONS_LIMIT;

    if (limit < 0 || limit == INT64_MAX) {
        history_say("versions: --limit must be a number of versions");
        return 2;
    }

    if (!history_place_open(&place, &where)) {
        return 1;
    }

    ok = history_versions(&place, rest[0], rest[1], values,
                          limit ? limit : -1);
    history_place_close(&place);

    return ok ? 0 : 1;
}
