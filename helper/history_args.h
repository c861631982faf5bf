/*
 * Command-line options by the rules of Python's argparse, which the published
 * history helper uses: "--name value", "--name=value", unambiguous prefixes of
 * names, "--" ends the options, a negative number is a value.
 */

#ifndef HISTORY_ARGS_H_INCLUDED
#define HISTORY_ARGS_H_INCLUDED

#include "sb.h"

typedef enum {
    HISTORY_ARG_TEXT = 0,
    HISTORY_ARG_INT,        /* 64 bits, clamped; `big` tells that it was cut */
    HISTORY_ARG_FLAG        /* takes no value */
} history_arg_type_e;

#define HISTORY_ARG_VALUES  32      /* of one repeatable option */

typedef struct {
    const char          *name;      /* "--event-id" */
    char                 letter;    /* short form, or 0 */
    history_arg_type_e   type;
    bool                 required;
    bool                 repeats;   /* else the last one counts */
    const char          *choices;   /* "a|b|c", or NULL: anything */
} history_arg_t;

typedef struct {
    const char  *text[HISTORY_ARG_VALUES];
    unsigned     n;                 /* 0: not given */
    int64_t      number;            /* of the last one */
    bool         big;
} history_value_t;

typedef struct {
    const history_arg_t  *args;
    history_value_t      *values;
    const char          **rest;
    int                   max;
    int                   nrest;
    bool                  stop;
    bool                  help;
    char                  why[400];
} history_parse_t;

/*
 * Parses argv[0..argc) for the options `args` (ended by a NULL name) into
 * `values`, one for each, which is cleared first.  Up to `max` positional
 * arguments go to `rest`, their number to nrest.  With `stop` the first
 * positional argument ends the parsing and nrest is its index in argv (argc:
 * there is none).  -h and --help set `help` and end the parsing.  False with a
 * sentence in `why`.
 */
bool history_args_parse(history_parse_t *p, int argc, char **argv);

/* Is `text` one of "a|b|c"? */
bool history_args_choice(const char *choices, const char *text);

#endif /* HISTORY_ARGS_H_INCLUDED */
