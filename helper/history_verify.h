/* sandbox-history verify: is a history file what was recorded? */

#ifndef HISTORY_VERIFY_H_INCLUDED
#define HISTORY_VERIFY_H_INCLUDED

#include "chain_verify.h"
#include "history_place.h"

/*
 * Runs the command with the arguments behind its name, on one file (`database`)
 * or on sandboxes of a history directory.  The exit code: 0 all is as it was
 * recorded, 1 a fault, 2 it cannot be told.
 */
int history_verify_run(const char *database, const history_where_t *where,
    int argc, char **argv);

/* The result as canonical JSON: "ok", "checked", "head", "fault" ... */
sb_rc_t history_verify_json(sb_buf_t *out, verify_rc_e rc, const verify_t *v);

#endif /* HISTORY_VERIFY_H_INCLUDED */
