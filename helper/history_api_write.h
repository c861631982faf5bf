/* The writing subcommands of the published helper (history format 7.2, 8, 9,
 * 12, 13), and what they share.  All refuse a file that a gateway writes. */

#ifndef HISTORY_API_WRITE_H_INCLUDED
#define HISTORY_API_WRITE_H_INCLUDED

#include "history_api.h"

bool history_api_init(history_call_t *call);
bool history_api_apply(history_call_t *call);
bool history_api_ack(history_call_t *call);
bool history_api_config_set(history_call_t *call);
bool history_api_cleanup(history_call_t *call);
bool history_api_lease_acquire(history_call_t *call);
bool history_api_lease_renew(history_call_t *call);
bool history_api_lease_release(history_call_t *call);

/* The three keys that say whose file it is. */
extern const char *const  history_identity_keys[3];

/* A JSON object in a file, to be freed; NULL with err. */
sb_jdoc_t *history_read_object(const char *path, history_error_t *err);

bool history_exec(sqlite3 *db, const char *sql, history_error_t *err);
/* Runs a bound statement to its end and finalizes it; false when stmt is NULL
 * (err then is filled already). */
bool history_run(sqlite3_stmt *stmt, history_error_t *err);

/* Is the file one that a gateway's helper does not write?  Else false with
 * err. */
bool history_not_held(history_call_t *call);

/* Sets a row of history_meta, or leaves the one that is there. */
bool history_meta_put(sqlite3 *db, const char *key, sb_str_t value,
    bool replace, history_error_t *err);
/* Compares a value with the row that is there: 1 equal, 0 not set yet, -1
 * with err. */
int history_meta_compare(sqlite3 *db, const char *key, sb_str_t value,
    history_error_t *err);

#endif /* HISTORY_API_WRITE_H_INCLUDED */
