/*
 * The command line of the published Python history helper (history format 8
 * and 11): same subcommands, flags, envelopes and exit codes, for programs
 * that read history files through it.
 */

#ifndef HISTORY_API_H_INCLUDED
#define HISTORY_API_H_INCLUDED

#include "history_args.h"
#include "history_db.h"

/* Where the published helper keeps its file inside a sandbox. */
#define HISTORY_API_DATABASE  "/.agent-history/history.sqlite3"

typedef struct {
    sqlite3                *db;
    const history_value_t  *values;     /* by the subcommand's own table */
    sb_out_t                out;        /* the answer, begun */
    bool                    flushed;    /* part of it is on stdout already */
    history_error_t         err;

    /* in the helper that holds the file: */
    bool                    held;
    bool                  (*purge)(void *data, const int64_t *seqs, size_t n,
                                   int64_t *changes, history_error_t *err);
    void                   *purge_data;
} history_call_t;

/* Writes the value of "data" into call->out; false with call->err. */
typedef bool (*history_call_pt)(history_call_t *call);

typedef struct {
    const char           *name;
    const char           *usage;        /* behind the program's name */
    const history_arg_t  *args;
    bool                  writes;
    history_call_pt       run;
} history_command_t;

/* All subcommands, ended by a NULL name. */
extern const history_command_t  history_api_commands[];

/* Is `name` one of them? */
const history_command_t *history_api_find(const char *name);

/* Runs one with the arguments behind its name; returns the exit code: 0, 1
 * with an error envelope, 2 with usage on stderr. */
int history_api_run(const history_command_t *command, const char *database,
    int argc, char **argv);

/* Usage of the whole (command NULL) or of one subcommand and the reason, on
 * stderr; returns 2. */
int history_api_usage(const history_command_t *command, const char *why);

/* Sends what is in call->out to stdout.  Only for answers too large to hold,
 * once nothing can fail any more. */
void history_call_flush(history_call_t *call);

/* Largest number of options of a subcommand. */
#define HISTORY_API_ARGS  8

#endif /* HISTORY_API_H_INCLUDED */
