#include "cast.h"
#include "history_list.h"
#include "history_text.h"

#include <stdio.h>


enum {
    CAST_VERSION = 0, CAST_IDLE, CAST_JSON, CAST_DATA, CAST_HISTORY,
    CAST_COUNT
};

static const history_arg_t  history_cast_args[] = {
    { "--version", 0, HISTORY_ARG_TEXT, false, false, "2|3" },
    { "--idle-limit", 0, HISTORY_ARG_INT, false, false, NULL },
    HISTORY_COMMON_ARGS
};

static const char  history_cast_help[] =
    "usage: sandbox-history cast [options] ID|SANDBOX/SEQ\n"
    "\n"
    "A terminal, or what a command wrote, as asciicast: for asciinema play,\n"
    "asciinema-player and others.\n"
    "\n"
    "  --version 2|3          of the format (2)\n"
    "  --idle-limit SECONDS   longer pauses become as long\n";


static bool
history_cast(history_place_t *place, const char *text,
    const history_value_t *values)
{
    int               rc;
    bool              found;
    char              id[HISTORY_ID_MAX];
    cast_t            cast;
    sqlite3          *db;
    sb_buf_t          out;
    history_box_t    *box;
    history_error_t   err;

    if (values[CAST_IDLE].n
        && (values[CAST_IDLE].number < 1 || values[CAST_IDLE].number > 86400))
    {
        history_say("--idle-limit must be 1 to 86400 seconds");
        return false;
    }

    if (!history_place_record(place, text, &box, id)) {
        return false;
    }

    db = history_place_db(place, box);
    if (db == NULL) {
        return false;
    }

    memset(&cast, 0, sizeof(cast));
    memset(&out, 0, sizeof(out));
    out.max = SB_OUT_MAX;
    cast.version = values[CAST_VERSION].n
                   && strcmp(values[CAST_VERSION].text[0], "3") == 0 ? 3 : 2;
    cast.idle_us = values[CAST_IDLE].n ? values[CAST_IDLE].number * 1000000 : 0;

    rc = cast_begin(&cast, db, id, &out, &found, &err) ? 1 : -1;

    while (rc == 1) {
        rc = cast_next(&cast, db, &out, &err);

        if (!history_text_raw(stdout, sb_str(out.data, out.len))) {
            break;
        }

        out.len = 0;
    }

    if (rc == -1) {
        history_place_broken(place, box, &err);
    }

    cast_free(&cast);
    sb_buf_free(&out);

    return fflush(stdout) == 0 && rc == 0;
}


int
history_cast_run(const history_where_t *given, int argc, char **argv)
{
    history_value_t  values[CAST_COUNT];

    static const history_single_t  single = {
        "cast", history_cast_help, history_cast_args, history_cast
    };

    return history_single_run(&single, values, given, argc, argv);
}
