/* What stood in a file, and what changed in it: content, diff. */

#include "files.h"
#include "frame.h"
#include "history_list.h"
#include "history_memory.h"
#include "history_text.h"

#include <stdio.h>
#include <unistd.h>


enum {
    FILE_N = 0, FILE_RAW, FILE_DATA, FILE_HISTORY, FILE_VERSION,
    FILE_COUNT
};

#define HISTORY_FILE_ARGS                                                    \
    { "--file", 0, HISTORY_ARG_INT, false, false, NULL },                    \
    { "--raw", 0, HISTORY_ARG_FLAG, false, false, NULL },                    \
    { "--data", 0, HISTORY_ARG_TEXT, false, false, NULL },                   \
    { "--history", 0, HISTORY_ARG_TEXT, false, false, NULL }

static const history_arg_t  history_diff_args[] = {
    HISTORY_FILE_ARGS,
    { .name = NULL }
};

static const history_arg_t  history_content_args[] = {
    HISTORY_FILE_ARGS,
    { "--version", 0, HISTORY_ARG_TEXT, false, false, "before|after" },
    { .name = NULL }
};

#define HISTORY_FILE_HELP                                                    \
    "  --file N               which file of the operation (0: the first)\n"  \
    "  --raw                  exact bytes on a terminal too\n"

static const char  history_diff_help[] =
    "usage: sandbox-history diff [options] ID|SANDBOX/SEQ [ID|SANDBOX/SEQ]\n"
    "\n"
    "What an operation changed in a file, as a unified difference; with two\n"
    "operations, from how the first left the file to how the second left it.\n"
    "\n"
    HISTORY_FILE_HELP;

static const char  history_content_help[] =
    "usage: sandbox-history content [options] ID|SANDBOX/SEQ\n"
    "\n"
    "What stood in a file after an operation, or before it, byte for byte.  On\n"
    "a terminal control characters are shown as \\x1b and the like.\n"
    "\n"
    "  --version before|after (after)\n"
    HISTORY_FILE_HELP;

typedef struct {
    const char       *name;
    const char       *help;
    history_parse_t   parse;
    const char       *rest[2];
    history_value_t   values[FILE_COUNT];
    files_want_t      want;
    bool              diff;
} history_file_t;


static int
history_file_get(const history_file_t *f, sqlite3 *db, const char *const id[2],
    sb_buf_t *out, const char **why)
{
    if (!f->diff) {
        return files_content(db, id[0], &f->want, out, why);
    }

    return id[1] ? files_between(db, id, f->want.n, out, why)
                 : files_diff(db, id[0], &f->want, out, why);
}


static bool
history_file_print(const history_file_t *f, history_place_t *place,
    history_box_t *box, const char *const id[2])
{
    int               rc;
    sqlite3          *db;
    sb_buf_t          out = { .max = SB_CONTENT_MAX };
    const char       *why;
    history_error_t   err;

    db = history_place_db(place, box);
    if (db == NULL) {
        return false;
    }

    rc = SQLITE_OK;
    why = "There is no such file: this history knows of no versions.";

    /* a file that only others wrote has no versions */

    if (history_has_table(db, "gateway_contents")) {
        rc = history_file_get(f, db, id, &out, &why);
    }

    if (rc != SQLITE_OK) {
        history_error_sqlite(&err, db, rc);
        history_place_broken(place, box, &err);

    } else if (why) {
        history_say("%s", why);

    } else if (f->values[FILE_RAW].n == 0 && isatty(STDOUT_FILENO)) {
        history_text_put(stdout, sb_str(out.data, out.len), true);

    } else {
        (void) history_text_raw(stdout, sb_str(out.data, out.len));
    }

    history_memory_check(out.nomem);
    sb_buf_free(&out);

    return fflush(stdout) == 0 && rc == SQLITE_OK && why == NULL;
}


static bool
history_file_find(const history_file_t *f, history_place_t *place)
{
    char            first[HISTORY_ID_MAX], second[HISTORY_ID_MAX];
    const char     *id[2] = { first, NULL };
    history_box_t  *box, *other;

    if (!history_place_record(place, f->rest[0], &box, first)) {
        return false;
    }

    if (f->parse.nrest == 2) {
        id[1] = second;

        if (!history_place_record(place, f->rest[1], &other, second)) {
            return false;
        }

        if (other != box) {
            history_say("%s and %s are of two sandboxes: give two operations of"
                        " one", f->rest[0], f->rest[1]);
            return false;
        }
    }

    return history_file_print(f, place, box, id);
}


static int
history_file_run(history_file_t *f, const history_arg_t *args,
    const history_where_t *given, int argc, char **argv)
{
    int               rc;
    bool              ok;
    history_place_t   place;
    history_where_t   where;

    f->parse.args = args;
    f->parse.values = f->values;
    f->parse.rest = f->rest;
    f->parse.max = f->diff ? 2 : 1;

    rc = history_options(&f->parse, f->name, f->help, given, &where, argc,
                         argv);
    if (rc != -1) {
        return rc;
    }

    if (f->parse.nrest == 0) {
        history_say("%s: of which operation? give ID or SANDBOX/SEQ", f->name);
        return 2;
    }

    if (f->values[FILE_N].n && (f->values[FILE_N].number < 0
                                || f->values[FILE_N].number >= FILES_MAX))
    {
        history_say("%s: --file must be 0 to %d", f->name, FILES_MAX - 1);
        return 2;
    }

    f->want.n = f->values[FILE_N].n ? f->values[FILE_N].number : 0;
    f->want.after = f->diff || f->values[FILE_VERSION].n == 0
                    || *f->values[FILE_VERSION].text[0] == 'a';

    if (!history_place_open(&place, &where)) {
        return 1;
    }

    ok = history_file_find(f, &place);
    history_place_close(&place);

    return ok ? 0 : 1;
}


int
history_content_run(const history_where_t *given, int argc, char **argv)
{
    history_file_t  f = { .name = "content", .help = history_content_help };

    return history_file_run(&f, history_content_args, given, argc, argv);
}


int
history_diff_run(const history_where_t *given, int argc, char **argv)
{
    history_file_t  f = {
        .name = "diff", .help = history_diff_help, .diff = true
    };

    return history_file_run(&f, history_diff_args, given, argc, argv);
}
