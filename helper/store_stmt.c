/* What readers and the writer of history files share: names, statements. */

#include "store.h"

#include "id.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>


size_t
store_dir_path(char *dst, size_t size, const char *base, const char *dir)
{
    int  n;

    n = snprintf(dst, size, "%s/%s/" STORE_FILE, base, dir);

    return n > 0 && (size_t) n < size ? (size_t) n : 0;
}


sqlite3_stmt *
store_stmt(store_db_t *db, unsigned n, const char *sql)
{
    if (n >= db->nstmts) {
        return NULL;
    }

    if (db->stmts[n] == NULL) {
        if (sqlite3_prepare_v3(db->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                               &db->stmts[n], NULL) != SQLITE_OK)
        {
            return NULL;
        }

    } else {
        (void) sqlite3_clear_bindings(db->stmts[n]);
    }

    return db->stmts[n];
}


int
store_run(sqlite3_stmt *st)
{
    int  rc;

    rc = sqlite3_step(st);

    if (rc == SQLITE_DONE || rc == SQLITE_ROW) {
        (void) sqlite3_reset(st);
        return SQLITE_OK;
    }

    (void) sqlite3_reset(st);

    return rc;
}


void
store_bind_text(sqlite3_stmt *st, int n, sb_str_t s)
{
    char  *clean;

    if (s.data == NULL) {
        sqlite3_bind_null(st, n);
        return;
    }

    if (s.len < (size_t) 1 << 30 && sb_utf8_valid(s)
        && memchr(s.data, '\0', s.len) == NULL)
    {
        sqlite3_bind_text(st, n, s.data, (int) s.len, SQLITE_TRANSIENT);
        return;
    }

    clean = malloc(s.len * 3 + 1);

    if (clean == NULL) {
        sqlite3_bind_null(st, n);
        return;
    }

    sqlite3_bind_text(st, n, clean, (int) sb_utf8_clean(clean, s), free);
}


void
store_bind_id(sqlite3_stmt *st, int n, const uint8_t id[16])
{
    char  text[SB_UUID_LEN + 1];

    sb_uuid_text(text, id);
    sqlite3_bind_text(st, n, text, SB_UUID_LEN, SQLITE_TRANSIENT);
}


void
store_bind_time(sqlite3_stmt *st, int n, uint64_t us)
{
    char  text[SB_TIME_LEN + 1];

    sb_time_text(text, us);
    sqlite3_bind_text(st, n, text, SB_TIME_LEN, SQLITE_TRANSIENT);
}
