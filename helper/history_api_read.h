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

/* Fills err: there is no such operation.  Returns false. */
bool history_missing(history_call_t *call, const char *id);

#endif /* HISTORY_API_READ_H_INCLUDED */
