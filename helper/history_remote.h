/*
 * Writing into a history file that a helper holds: the helper does it
 * (docs/frames.md, "Errands").
 */

#ifndef HISTORY_REMOTE_H_INCLUDED
#define HISTORY_REMOTE_H_INCLUDED

#include "history_api.h"

typedef enum {
    HISTORY_REMOTE_NONE,        /* no helper holds that file */
    HISTORY_REMOTE_OK,          /* done: `out` has the value of "data" */
    HISTORY_REMOTE_FAILED       /* err says why */
} history_remote_e;

/* `argv` is the subcommand with its arguments; `content` of the file that one of
 * them names, or NULL. */
history_remote_e history_remote(const char *database, int argc, char **argv,
    const sb_buf_t *content, sb_buf_t *out, history_error_t *err);

/* A subcommand whose arguments are right. */
history_remote_e history_remote_call(const history_command_t *command,
    const history_value_t *values, const char *database, int argc, char **argv,
    history_call_t *call);

/* sandbox-history hold|release SANDBOX; returns the exit code. */
int history_hold_run(const char *name, const char *database,
    const char *data, const char *history, int argc, char **argv);

#endif /* HISTORY_REMOTE_H_INCLUDED */
