/* Between the files of apply. */

#ifndef HISTORY_API_APPLY_H_INCLUDED
#define HISTORY_API_APPLY_H_INCLUDED

#include "history_api_write.h"
#include "id.h"

typedef struct {
    sqlite3          *db;
    history_error_t  *err;
    history_call_t   *call;
    char              now[SB_TIME_LEN + 1];
    sb_str_t          batch;
    size_t            index;         /* of the record in its batch */
} history_apply_t;

/* A member that must be a non-empty string; false with err. */
bool history_need(history_apply_t *a, const sb_jv_t *v, const char *key,
    sb_str_t *text);

void history_bind_str(sqlite3_stmt *stmt, int i, sb_str_t s);
/* Binds a member as it is: text, number, boolean as 0 or 1; leaves what was
 * bound when it is absent or null.  False with err for objects and arrays. */
bool history_bind(history_apply_t *a, sqlite3_stmt *stmt, int i,
    const sb_jv_t *v, const char *key);

/* One chunk of command_output. */
bool history_apply_chunk(history_apply_t *a, sb_str_t id,
    const sb_jv_t *chunk);

#endif /* HISTORY_API_APPLY_H_INCLUDED */
