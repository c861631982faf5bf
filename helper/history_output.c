#include "history_list.h"
#include "history_text.h"

#include <stdio.h>
#include <unistd.h>


enum {
    OUTPUT_STREAM = 0, OUTPUT_AFTER, OUTPUT_RAW, OUTPUT_JSON, OUTPUT_DATA,
    OUTPUT_HISTORY,
    OUTPUT_COUNT
};

static const history_arg_t  history_output_args[] = {
    { "--stream", 0, HISTORY_ARG_TEXT, false, false, "stdout|stderr" },
    { "--after", 0, HISTORY_ARG_INT, false, false, NULL },
    { "--raw", 0, HISTORY_ARG_FLAG, false, false, NULL },
    HISTORY_COMMON_ARGS
};

static const char  history_output_help[] =
    "usage: sandbox-history output [options] ID|SANDBOX/SEQ\n"
    "\n"
    "What a command wrote, byte for byte, both streams in the order in which\n"
    "they came.  On a terminal control characters are shown as \\x1b and the\n"
    "like.\n"
    "\n"
    "  --stream stdout|stderr one stream only\n"
    "  --after N              only what follows piece N (pieces count from 0;\n"
    "                         with --stream: chunks of that stream)\n"
    "  --raw                  exact bytes on a terminal too\n"
    "  --json                 one JSON object a piece, as the console API has it\n";


typedef struct {
    bool      json;
    bool      safe;
    bool      skipped;     /* a piece in an encoding not read here */
    sb_out_t  out;
} history_sink_t;


static bool
history_sink_piece(void *data, const history_piece_t *piece, sb_str_t bytes)
{
    history_sink_t  *sink = data;

    if (!piece->plain) {
        sink->skipped = true;
    }

    if (sink->json) {
        sink->out.buf.len = 0;
        history_piece_json(&sink->out, piece, bytes);
        sb_out_text(&sink->out, "\n");
        history_text_json(stdout, sb_str(sink->out.buf.data,
                                         sink->out.buf.len));

        return sink->out.rc == SB_OK && !ferror(stdout);
    }

    if (!piece->plain) {
        return true;
    }

    if (sink->safe) {
        history_text_put(stdout, bytes, true);

    } else {
        (void) history_text_raw(stdout, bytes);
    }

    return !ferror(stdout);
}


static bool
history_output(history_place_t *place, const char *text,
    const history_value_t *values)
{
    int               rc;
    char              id[HISTORY_ID_MAX];
    int64_t           after;
    sqlite3          *db;
    history_box_t    *box;
    history_sink_t    sink;
    history_error_t   err;

    if (!history_place_record(place, text, &box, id)) {
        return false;
    }

    db = history_place_db(place, box);
    if (db == NULL) {
        return false;
    }

    memset(&sink, 0, sizeof(sink));
    sink.out.buf.max = SB_OUT_MAX;
    sink.json = values[OUTPUT_JSON].n != 0;
    sink.safe = values[OUTPUT_RAW].n == 0 && isatty(STDOUT_FILENO);

    after = values[OUTPUT_AFTER].n ? values[OUTPUT_AFTER].number : -1;

    rc = history_query_output(db, id, values[OUTPUT_STREAM].n
                                      ? values[OUTPUT_STREAM].text[0] : NULL,
                              after, history_sink_piece, &sink, &err);

    if (rc == -1) {
        history_place_broken(place, box, &err);
    }

    if (fflush(stdout) != 0) {
        rc = -1;
    }

    if (sink.skipped) {
        history_say("parts of this output are stored compressed by another"
                    " program and were left out");
    }

    sb_buf_free(&sink.out.buf);

    return rc == 1 && !sink.skipped;
}


int
history_output_run(const history_where_t *given, int argc, char **argv)
{
    history_value_t  values[OUTPUT_COUNT];

    static const history_single_t  single = {
        "output", history_output_help, history_output_args, history_output
    };

    return history_single_run(&single, values, given, argc, argv);
}
