/* Command lines of sandbox-gateway: options from a table, for its subcommands. */

#ifndef ARGS_H_INCLUDED
#define ARGS_H_INCLUDED

#include "gateway.h"

#include <stddef.h>

typedef struct {
    const char  *name;          /* without "--"; NULL ends the table */
    const char  *value;         /* as the help names it; NULL: a switch */
    const char  *help;
    size_t       offset;        /* of the const char *, of a switch the bool */
    bool       (*take)(void *args, const char *value);  /* or this keeps it */
} gw_arg_t;

typedef struct {
    const char      *name;      /* "token add" */
    const char      *about;     /* lines of the help */
    const gw_arg_t  *args;
    const char      *operand;   /* what may stand without "--"; NULL: nothing */
    size_t           operand_at;    /* offset of its const char * */
    bool             empty;     /* a value may be the empty text */
} gw_command_t;

#define GW_ARGS_READ  -1        /* no exit code: there is something to do */

/* Reads what follows argv[0] into `args`, a zeroed structure that the table's
 * offsets are of; values point into argv.  GW_ARGS_READ, or what to exit with:
 * after the help, which --help asks for, or a sentence about what is wrong. */
int gw_args_read(const gw_command_t *c, void *args, int argc, char **argv);

/* The value of the option argv[*i], whose name ends at `end`: behind "=", or the
 * next argument, to which *i goes on.  NULL when there is none: what begins with
 * "--" is the next option. */
const char *gw_arg_value(const char *end, int *i, int argc, char **argv);

/* Whether argv[i] asks for help. */
bool gw_arg_help(const char *arg);

/* One line of a help: "  --name VALUE   help". */
void gw_arg_line(const char *name, const char *value, const char *help);

#endif /* ARGS_H_INCLUDED */
