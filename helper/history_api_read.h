/* The reading subcommands of the published helper (history format 11). */

#ifndef HISTORY_API_READ_H_INCLUDED
#define HISTORY_API_READ_H_INCLUDED

#include "history_api.h"

bool history_api_health(history_call_t *call);
bool history_api_identity(history_call_t *call);
bool history_api_config(history_call_t *call);
bool history_api_query(history_call_t *call);
bool history_api_operation(history_call_t *call);
bool history_api_operations(history_call_t *call);
bool history_api_output(history_call_t *call);

/* Appends one operation as get-operation shows it: 1, 0 when there is none, -1
 * with err.  Also used by "show --json". */
int history_api_write_operation(sqlite3 *db, history_out_t *out, sb_str_t id,
    history_error_t *err);

#endif /* HISTORY_API_READ_H_INCLUDED */
