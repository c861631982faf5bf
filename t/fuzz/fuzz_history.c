/*
 * What sandbox-history reads from people and programs: JSON, whose canonical
 * form is its own canonical form, and command lines, one argument a line.
 */

#include <stdio.h>
#include <stdlib.h>

#include "history_args.h"
#include "canonical.h"

#define ARGS  16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void json(sb_str_t text);
static void arguments(const uint8_t *data, size_t size, bool stop);


static void
check(bool so, const char *what)
{
    if (!so) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json(sb_str(data, size));
    arguments(data, size, false);
    arguments(data, size, true);

    return 0;
}


static void
json(sb_str_t text)
{
    sb_out_t  once = { 0 }, twice = { 0 }, str = { 0 };

    once.buf.max = twice.buf.max = str.buf.max = 1 << 24;

    /* a number out of range becomes Infinity, which is JSON to Python only */

    if (sb_out_json(&once, text) == SB_OK && once.rc == SB_OK
        && memmem(once.buf.data, once.buf.len, "Infinity", 8) == NULL)
    {
        check(sb_out_json(&twice, sb_str(once.buf.data, once.buf.len))
              == SB_OK, "the canonical form is JSON");
        check(sb_eq(sb_str(once.buf.data, once.buf.len),
                    sb_str(twice.buf.data, twice.buf.len)),
              "and its own canonical form");
    }

    sb_out_str(&str, text);

    if (str.rc == SB_OK) {
        twice.buf.len = 0;
        twice.rc = SB_OK;
        check(sb_out_json(&twice, sb_str(str.buf.data, str.buf.len))
              == SB_OK, "any text is a JSON string");
    }

    sb_buf_free(&once.buf);
    sb_buf_free(&twice.buf);
    sb_buf_free(&str.buf);
}


static void
arguments(const uint8_t *data, size_t size, bool stop)
{
    static const history_arg_t  args[] = {
        { "--event-id", 0, HISTORY_ARG_TEXT, false, true, NULL },
        { "--event-ids", 0, HISTORY_ARG_TEXT, false, false, NULL },
        { "--limit", 'n', HISTORY_ARG_INT, false, false, NULL },
        { "--if-due", 0, HISTORY_ARG_FLAG, false, false, NULL },
        { "--stream", 0, HISTORY_ARG_TEXT, false, false, "stdout|stderr" },
        { NULL, 0, HISTORY_ARG_TEXT, false, false, NULL }
    };

    int               argc = 0;
    char             *copy, *argv[ARGS + 1], *p;
    const char       *rest[2];
    history_parse_t   parse;
    history_value_t   values[5];

    copy = malloc(size + 1);

    if (copy == NULL) {
        return;
    }

    memcpy(copy, data, size);
    copy[size] = '\0';

    for (p = copy; p && argc < ARGS; argc++) {
        argv[argc] = p;
        p = strchr(p, '\n');

        if (p) {
            *p++ = '\0';
        }
    }

    argv[argc] = NULL;

    memset(&parse, 0, sizeof(parse));
    parse.args = args;
    parse.values = values;
    parse.rest = rest;
    parse.max = 2;
    parse.stop = stop;

    if (history_args_parse(&parse, argc, argv)) {
        if (!parse.help) {
            check(parse.nrest >= 0 && parse.nrest <= (stop ? argc : 2),
                  "as many arguments as there may be");
        }

        for (int i = 0; i < 5; i++) {
            check(values[i].n <= HISTORY_ARG_VALUES, "as many values");
        }

        if (values[4].n) {
            check(history_args_choice("stdout|stderr", values[4].text[0]),
                  "one of the choices");
        }

    } else {
        check(parse.why[0] != '\0' && memchr(parse.why, 0, sizeof(parse.why)),
              "a sentence that says why");
    }

    free(copy);
}
