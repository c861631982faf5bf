/* cleanup (history format 13). */

#include "history_api_write.h"
#include "id.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>


enum {
    CLEANUP_MAX_BYTES = 0, CLEANUP_POLICY, CLEANUP_TTL, CLEANUP_IF_DUE,
    CLEANUP_INTERVAL, CLEANUP_CONSUMER_TTL
};

/* A time as SQLite makes it: three digits. */
#define HISTORY_SQL_NOW  "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
#define HISTORY_SQL_TIME_LEN  24

#define HISTORY_CLEANUP_PART  200   /* records deleted at a time */

typedef struct {
    history_call_t  *call;
    sqlite3         *db;
    char             owner[64];
    char             now[HISTORY_SQL_TIME_LEN + 1];
    char             last[64];          /* of the cleanup before; empty: none */
    char             next[64];          /* not before then */
    int64_t          interval;
    bool             has_protected;
    int64_t          protected_seq;
    int64_t          before;            /* logical bytes */
    int64_t          ttl_deleted;
    int64_t          capacity_deleted;
    int64_t          changes;
} history_cleanup_t;


/* What may be deleted: ended, its output fully stored or cut on purpose, and
 * seen by every active consumer. */
static const char  history_candidate[] =
    " FROM history_events e WHERE e.status <> 'started'"
    " AND e.completed_at IS NOT NULL"
    " AND NOT EXISTS(SELECT 1 FROM command_executions c"
    " WHERE c.event_id = e.event_id AND c.history_storage_state NOT IN"
    " ('complete', 'truncated_by_policy', 'metadata_only'))"
    " AND (?1 IS NULL OR coalesce((SELECT max(h.seq) FROM history_changes h"
    " WHERE h.event_id = e.event_id), 0) <= ?1)";


/* One value of one row: an integer, or a text into `text`. */
static bool
history_value_of(history_cleanup_t *c, const char *sql, const char *arg,
    int64_t *number, char *text, size_t size)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(c->db, sql, &c->call->err);
    if (stmt == NULL) {
        return false;
    }

    if (arg != NULL) {
        sqlite3_bind_text(stmt, 1, arg, -1, SQLITE_STATIC);
    }

    rc = history_step(stmt, &c->call->err);

    if (rc == 1 && number != NULL) {
        *number = sqlite3_column_int64(stmt, 0);
    }

    if (rc == 1 && text != NULL) {
        sb_str_t  s = history_column(stmt, 0);

        snprintf(text, size, "%.*s", (int) s.len, s.data);
    }

    sqlite3_finalize(stmt);

    return rc != -1;
}


static bool
history_cleanup_logical(history_cleanup_t *c, int64_t *bytes)
{
    int64_t  pages, free_pages, size;

    pages = free_pages = size = 0;

    if (!history_value_of(c, "PRAGMA page_count", NULL, &pages, NULL, 0)
        || !history_value_of(c, "PRAGMA freelist_count", NULL, &free_pages,
                             NULL, 0)
        || !history_value_of(c, "PRAGMA page_size", NULL, &size, NULL, 0))
    {
        return false;
    }

    *bytes = (pages - free_pages) * size;

    return true;
}


/* Takes the lease; *taken tells whether it could be had. */
static bool
history_cleanup_lease(history_cleanup_t *c, bool *taken)
{
    char           id[SB_UUID_LEN + 1];
    uint8_t        uuid[16];
    sqlite3_stmt  *stmt;

    sb_random(uuid, sizeof(uuid));
    uuid[6] = (uint8_t) ((uuid[6] & 0x0f) | 0x40);
    uuid[8] = (uint8_t) ((uuid[8] & 0x3f) | 0x80);
    sb_uuid_text(id, uuid);
    snprintf(c->owner, sizeof(c->owner), "cleanup-%s", id);

    stmt = history_prepare(c->db,
               "INSERT INTO history_leases(resource_key, owner_id, expires_at,"
               " updated_at) VALUES('history:cleanup', ?1,"
               " strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+5 minutes'),"
               " " HISTORY_SQL_NOW ")"
               " ON CONFLICT(resource_key) DO UPDATE SET owner_id ="
               " excluded.owner_id, expires_at = excluded.expires_at,"
               " updated_at = excluded.updated_at"
               " WHERE history_leases.expires_at <= " HISTORY_SQL_NOW,
               &c->call->err);

    if (stmt != NULL) {
        sqlite3_bind_text(stmt, 1, c->owner, -1, SQLITE_STATIC);
    }

    if (!history_run(stmt, &c->call->err)) {
        return false;
    }

    *taken = sqlite3_changes(c->db) == 1;

    return true;
}


static void
history_cleanup_release(history_cleanup_t *c)
{
    history_error_t  ignored;
    sqlite3_stmt    *stmt;

    stmt = history_prepare(c->db, "DELETE FROM history_leases WHERE"
                                  " resource_key = 'history:cleanup'"
                                  " AND owner_id = ?1", &ignored);

    if (stmt != NULL) {
        sqlite3_bind_text(stmt, 1, c->owner, -1, SQLITE_STATIC);
        (void) history_run(stmt, &ignored);
    }
}


static bool
history_cleanup_next(history_cleanup_t *c, const char *from)
{
    char  sql[160];

    snprintf(sql, sizeof(sql), "SELECT strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', ?1,"
                               " '+%lld seconds')", (long long) c->interval);

    return history_value_of(c, sql, from, NULL, c->next, sizeof(c->next));
}


static bool
history_cleanup_protection(history_cleanup_t *c, int64_t days)
{
    char  sql[240];

    snprintf(sql, sizeof(sql),
             "SELECT min(acknowledged_seq) FROM history_consumers"
             " WHERE updated_at >= strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now',"
             " '-%lld days') HAVING count(*)", (long long) days);

    c->protected_seq = -1;

    if (!history_value_of(c, sql, NULL, &c->protected_seq, NULL, 0)) {
        return false;
    }

    c->has_protected = c->protected_seq != -1;

    return true;
}


/* In the helper: it deletes, and accounts for it. */
static bool
history_cleanup_purge(history_cleanup_t *c)
{
    int            rc;
    bool           ok;
    size_t         n;
    int64_t        seqs[HISTORY_CLEANUP_PART];
    sqlite3_stmt  *stmt;

    stmt = history_prepare(c->db, "SELECT e.seq FROM temp.cleanup t JOIN"
                                  " history_events e USING(event_id)"
                                  " ORDER BY e.seq", &c->call->err);
    if (stmt == NULL) {
        return false;
    }

    do {
        ok = true;

        for (n = 0; n < HISTORY_CLEANUP_PART; n++) {
            rc = history_step(stmt, &c->call->err);
            ok = rc != -1;

            if (rc != 1) {
                break;
            }

            seqs[n] = sqlite3_column_int64(stmt, 0);
        }

        /* nobody deletes while somebody reads */
        sqlite3_reset(stmt);

        if (ok && n) {
            ok = c->call->purge(c->call->purge_data, seqs, n, &c->changes,
                                &c->call->err);
        }
    } while (ok && n == HISTORY_CLEANUP_PART);

    sqlite3_finalize(stmt);

    return ok;
}


/* Deletes the candidates that a query adds to, at most `limit`; counts. */
static bool
history_cleanup_delete(history_cleanup_t *c, const char *and, int limit,
    int64_t *deleted)
{
    char           sql[1200];
    sqlite3_stmt  *stmt;

    static const char *const  last[] = {
        "DELETE FROM history_changes WHERE event_id IN"
        " (SELECT event_id FROM temp.cleanup)",
        "DELETE FROM history_events WHERE event_id IN"
        " (SELECT event_id FROM temp.cleanup)"
    };

    snprintf(sql, sizeof(sql), "INSERT INTO temp.cleanup SELECT e.event_id%s%s"
                               " ORDER BY e.seq LIMIT %d",
             history_candidate, and, limit);

    if (!history_exec(c->db, "DELETE FROM temp.cleanup", &c->call->err)) {
        return false;
    }

    stmt = history_prepare(c->db, sql, &c->call->err);

    if (stmt != NULL && c->has_protected) {
        sqlite3_bind_int64(stmt, 1, c->protected_seq);
    }

    if (!history_run(stmt, &c->call->err)) {
        return false;
    }

    *deleted = sqlite3_changes(c->db);

    if (c->call->purge) {
        return history_cleanup_purge(c);
    }

    for (int i = 0; i < 2 && *deleted; i++) {
        if (!history_exec(c->db, last[i], &c->call->err)) {
            return false;
        }

        if (i == 0) {
            c->changes += sqlite3_changes(c->db);
        }
    }

    return true;
}


static bool
history_cleanup_run(history_cleanup_t *c)
{
    char                    and[200];
    int64_t                 bytes, deleted;
    const history_value_t  *v = c->call->values;

    if (!history_exec(c->db, "PRAGMA temp_store=MEMORY;"
                             "CREATE TEMP TABLE cleanup(event_id TEXT)",
                      &c->call->err)
        || (c->call->purge == NULL
            && !history_exec(c->db, "BEGIN IMMEDIATE", &c->call->err))
        || !history_cleanup_logical(c, &c->before))
    {
        return false;
    }

    if (v[CLEANUP_TTL].n) {
        snprintf(and, sizeof(and), " AND e.completed_at <"
                 " strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '%+lld days')",
                 (long long) -v[CLEANUP_TTL].number);

        if (!history_cleanup_delete(c, and, -1, &c->ttl_deleted)) {
            return false;
        }
    }

    if (strcmp(v[CLEANUP_POLICY].text[0], "delete_oldest") == 0) {
        for ( ;; ) {
            if (!history_cleanup_logical(c, &bytes)) {
                return false;
            }

            if (bytes <= v[CLEANUP_MAX_BYTES].number) {
                break;
            }

            if (!history_cleanup_delete(c, "", c->call->purge ? 16 : 1,
                                        &deleted))
            {
                return false;
            }

            if (deleted == 0) {
                break;
            }

            c->capacity_deleted += deleted;
        }
    }

    return c->call->purge
           || history_exec(c->db, "COMMIT", &c->call->err);
}


static void
history_cleanup_int(sb_out_t *out, const char *name, int64_t n)
{
    sb_out_key(out, name);
    sb_out_int(out, n);
}


static void
history_cleanup_text(sb_out_t *out, const char *name, const char *text)
{
    sb_out_key(out, name);
    sb_out_str(out, sb_str(text, strlen(text)));
}


static int64_t
history_cleanup_size(history_cleanup_t *c, const char *suffix)
{
    char         path[PATH_MAX];
    struct stat  st;

    snprintf(path, sizeof(path), "%s%s", sqlite3_db_filename(c->db, "main"),
             suffix);

    return stat(path, &st) == 0 ? st.st_size : 0;
}


static bool
history_cleanup_report(history_cleanup_t *c, sb_out_t *out,
    int64_t *logical)
{
    int64_t  min, max, main_bytes, wal;

    min = max = 0;

    if (!history_cleanup_logical(c, logical)
        || !history_value_of(c, "SELECT coalesce(min(seq), 0)"
                                " FROM history_changes", NULL, &min, NULL, 0)
        || !history_value_of(c, "SELECT coalesce(max(seq), 0)"
                                " FROM history_changes", NULL, &max, NULL, 0))
    {
        return false;
    }

    main_bytes = history_cleanup_size(c, "");
    wal = history_cleanup_size(c, "-wal");

    sb_out_text(out, "{");
    history_cleanup_int(out, "capacity_deleted_operations",
                        c->capacity_deleted);
    history_cleanup_int(out, "database_bytes_before", c->before);
    history_cleanup_text(out, "database_now", c->now);
    history_cleanup_int(out, "deleted_changes", c->changes);
    history_cleanup_int(out, "deleted_operations",
                        c->ttl_deleted + c->capacity_deleted);
    sb_out_text(out, ",\"executed\":true");
    history_cleanup_text(out, "last_cleanup_at", c->now);
    history_cleanup_int(out, "logical_database_bytes", *logical);
    history_cleanup_int(out, "main_database_bytes", main_bytes);
    history_cleanup_int(out, "max_change_seq", max);
    history_cleanup_int(out, "min_available_change_seq", min);
    history_cleanup_text(out, "next_cleanup_not_before", c->next);
    history_cleanup_int(out, "physical_database_bytes", main_bytes + wal);
    sb_out_key(out, "protected_acknowledged_seq");

    if (c->has_protected) {
        sb_out_int(out, c->protected_seq);

    } else {
        sb_out_text(out, "null");
    }

    history_cleanup_text(out, "reason", "ttl_or_capacity");
    history_cleanup_int(out, "shm_bytes", history_cleanup_size(c, "-shm"));
    history_cleanup_int(out, "ttl_deleted_operations", c->ttl_deleted);
    history_cleanup_int(out, "wal_bytes", wal);
    sb_out_text(out, "}");

    return true;
}


/* The five keys that tell of the last cleanup, and the answer. */
static bool
history_cleanup_finish(history_cleanup_t *c)
{
    char              deleted[24], bytes[24];
    bool              ok;
    int64_t           logical;
    history_error_t  *err = &c->call->err;
    sb_out_t          out = { .buf.max = SB_OUT_MAX };

    ok = history_cleanup_report(c, &out, &logical) && out.rc == SB_OK;

    if (ok) {
        snprintf(deleted, sizeof(deleted), "%lld",
                 (long long) (c->ttl_deleted + c->capacity_deleted));
        snprintf(bytes, sizeof(bytes), "%lld", (long long) logical);

        ok = history_exec(c->db, "BEGIN IMMEDIATE", err)
             && history_meta_put(c->db, "last_cleanup_at",
                                 sb_str(c->now, strlen(c->now)), true, err)
             && history_meta_put(c->db, "last_cleanup_result",
                                 sb_str(out.buf.data, out.buf.len), true, err)
             && history_meta_put(c->db, "last_cleanup_deleted_operations",
                                 sb_str(deleted, strlen(deleted)), true, err)
             && history_meta_put(c->db, "last_cleanup_database_bytes",
                                 sb_str(bytes, strlen(bytes)), true, err)
             && history_meta_put(c->db, "last_cleanup_reason",
                                 sb_lit("ttl_or_capacity"), true, err)
             && history_exec(c->db, "COMMIT", err);
    }

    sb_out_raw(&c->call->out, out.buf.data, out.buf.len);
    sb_buf_free(&out.buf);

    return ok;
}


/* Is it too early?  Then the answer is written. */
static bool
history_cleanup_due(history_cleanup_t *c, bool *due)
{
    int64_t    late;
    sb_out_t  *out = &c->call->out;

    *due = true;

    if (!history_value_of(c, "SELECT value FROM history_meta"
                             " WHERE key = 'last_cleanup_at'", NULL, NULL,
                          c->last, sizeof(c->last)))
    {
        return false;
    }

    if (c->call->values[CLEANUP_IF_DUE].n == 0 || c->last[0] == '\0') {
        return true;
    }

    if (!history_cleanup_next(c, c->last)
        || !history_value_of(c, "SELECT " HISTORY_SQL_NOW " >= ?1", c->next,
                             &late, NULL, 0))
    {
        return false;
    }

    if (late) {
        return true;
    }

    *due = false;
    sb_out_text(out, "{");
    history_cleanup_text(out, "database_now", c->now);
    sb_out_text(out, ",\"executed\":false");
    history_cleanup_text(out, "last_cleanup_at", c->last);
    history_cleanup_text(out, "next_cleanup_not_before", c->next);
    history_cleanup_text(out, "reason", "not_due");
    sb_out_text(out, "}");

    return true;
}


/* A file on legal hold stays as it is. */
static bool
history_cleanup_free(history_cleanup_t *c)
{
    int64_t  held;

    held = 0;

    if (!history_has_table(c->db, "gateway_state")) {
        return true;
    }

    if (!history_value_of(c, "SELECT 1 FROM gateway_state WHERE key = 'hold'",
                          NULL, &held, NULL, 0))
    {
        return false;
    }

    if (held) {
        history_error(&c->call->err, "HelperError", "this file is on legal"
                      " hold: release it first");
    }

    return held == 0;
}


static bool
history_cleanup_valid(history_call_t *call, int64_t interval, int64_t days)
{
    if (call->values[CLEANUP_MAX_BYTES].number < 1 || interval < 0 || days < 1)
    {
        history_error(&call->err, "HelperError", "Invalid cleanup policy");
        return false;
    }

    return true;
}


bool
history_api_cleanup(history_call_t *call)
{
    bool                    ok, taken, due;
    int64_t                 days;
    history_cleanup_t       c;
    const history_value_t  *v = call->values;

    memset(&c, 0, sizeof(c));
    c.call = call;
    c.db = call->db;
    c.interval = v[CLEANUP_INTERVAL].n ? v[CLEANUP_INTERVAL].number : 3600;
    days = v[CLEANUP_CONSUMER_TTL].n ? v[CLEANUP_CONSUMER_TTL].number : 30;

    if (!history_cleanup_valid(call, c.interval, days)
        || !history_not_held(call)
        || !history_value_of(&c, "SELECT " HISTORY_SQL_NOW, NULL, NULL, c.now,
                             sizeof(c.now))
        || !history_cleanup_lease(&c, &taken))
    {
        return false;
    }

    if (!taken) {
        sb_out_text(&call->out, "{");
        history_cleanup_text(&call->out, "database_now", c.now);
        sb_out_text(&call->out, ",\"executed\":false");
        history_cleanup_text(&call->out, "reason", "cleanup_in_progress");
        sb_out_text(&call->out, "}");
        return true;
    }

    ok = history_cleanup_due(&c, &due) && history_cleanup_free(&c);

    if (ok && due) {
        ok = history_cleanup_next(&c, c.now)
             && history_cleanup_protection(&c, days)
             && history_cleanup_run(&c) && history_cleanup_finish(&c);
    }

    if (!sqlite3_get_autocommit(c.db)) {
        sqlite3_exec(c.db, "ROLLBACK", NULL, NULL, NULL);
    }

    history_cleanup_release(&c);

    return ok;
}
