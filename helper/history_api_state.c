/* ack, config-set and the leases (history format 7.2, 11.4, 12). */

#include "history_api_read.h"
#include "history_api_write.h"
#include "id.h"

#include <stdio.h>
#include <stdlib.h>


/* The fields of HistoryConfig that a file keeps (history format 7.1). */
static const char  history_config_fields[] =
    "ttl_days|max_database_bytes|max_operation_output_bytes|overflow_policy|"
    "capture_stdout|capture_stderr|output_chunk_bytes|output_flush_bytes|"
    "output_flush_interval_ms|output_queue_max_bytes|"
    "output_queue_max_chunks|output_write_timeout_seconds|"
    "cleanup_min_interval_seconds|consumer_active_ttl_days|compression|"
    "compression_min_bytes|compression_level|sqlite_busy_timeout_ms|"
    "sqlite_cache_bytes|helper_query_max_bytes|helper_envelope_max_bytes|"
    "cleanup_interval_operations|cleanup_on_connect|"
    "stale_started_after_seconds";

/* Longest lease: what still is a time of four-digit years. */
#define HISTORY_LEASE_MAX_MS  ((int64_t) 100 * 366 * 86400 * 1000)


static bool
history_overflows(history_call_t *call, int i, int64_t max, const char *what)
{
    if (!call->values[i].big && call->values[i].number <= max) {
        return false;
    }

    history_error(&call->err, "OverflowError",
                  "Python int too large to convert to %s", what);

    return true;
}


static void
history_member_text(sb_out_t *out, const char *name, const char *text)
{
    sb_out_key(out, name);
    sb_out_str(out, sb_str(text, strlen(text)));
}


bool
history_api_ack(history_call_t *call)
{
    int            rc;
    char           now[SB_TIME_LEN + 1];
    const char    *consumer;
    sqlite3_stmt  *stmt;

    consumer = call->values[0].text[0];

    if (*consumer == '\0' || call->values[1].number < 0) {
        history_error(&call->err, "HelperError",
                      "Invalid consumer acknowledgement");
        return false;
    }

    if (history_overflows(call, 1, INT64_MAX, "SQLite INTEGER")
        || !history_exec(call->db, "BEGIN IMMEDIATE", &call->err)
        || !history_not_held(call))
    {
        return false;
    }

    sb_time_text(now, sb_now_us());

    stmt = history_prepare(call->db,
               "INSERT INTO history_consumers(consumer_id, acknowledged_seq,"
               " updated_at) VALUES(?1, ?2, ?3)"
               " ON CONFLICT(consumer_id) DO UPDATE SET acknowledged_seq ="
               " max(acknowledged_seq, excluded.acknowledged_seq),"
               " updated_at = excluded.updated_at"
               " RETURNING acknowledged_seq", &call->err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, consumer, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, call->values[1].number);
    sqlite3_bind_text(stmt, 3, now, -1, SQLITE_STATIC);

    rc = history_step(stmt, &call->err);

    if (rc == 1) {
        sb_out_text(&call->out, "{");
        sb_out_key(&call->out, "acknowledged_seq");
        sb_out_int(&call->out, sqlite3_column_int64(stmt, 0));
        history_member_text(&call->out, "consumer_id", consumer);
        history_member_text(&call->out, "updated_at", now);
        sb_out_text(&call->out, "}");
    }

    sqlite3_finalize(stmt);

    return rc == 1 && history_exec(call->db, "COMMIT", &call->err);
}


static int
history_name_compare(const void *one, const void *two)
{
    return strcmp(*(const char *const *) one, *(const char *const *) two);
}


/* Are all changes to fields that a file keeps? */
static bool
history_config_check(const sb_jv_t *changes, history_error_t *err)
{
    char         list[400];
    size_t       n, used;
    const char  *unknown[16];

    n = 0;

    for (const sb_jv_t *m = changes->child; m != NULL && n < 16; m = m->next) {
        if (!history_args_choice(history_config_fields, m->key.data)) {
            unknown[n++] = m->key.data;
        }
    }

    if (n == 0) {
        return true;
    }

    qsort(unknown, n, sizeof(unknown[0]), history_name_compare);

    used = 0;

    for (size_t i = 0; i < n && used < sizeof(list); i++) {
        used += (size_t) snprintf(list + used, sizeof(list) - used, "%s%s",
                                  i ? ", " : "", unknown[i]);
    }

    history_error(err, "HelperError", "Config contains unsupported fields: %s",
                  list);

    return false;
}


static bool
history_config_revision(history_call_t *call, int64_t *revision)
{
    bool      ok, found;
    sb_buf_t  text = { 0 };

    ok = history_meta_get(call->db, "history_config_revision", &text, &found,
                          &call->err);

    *revision = ok && found ? strtoll(text.data, NULL, 10) : 0;
    sb_buf_free(&text);

    return ok;
}


/* The stored object with the changes in it: of equal keys the last one stays,
 * so it is enough to write one behind the other. */
static bool
history_config_merge(history_call_t *call, const sb_jv_t *changes,
    sb_out_t *merged)
{
    bool       ok, found;
    size_t     begin;
    sb_str_t   stored;
    sb_buf_t   text = { 0 };
    sb_out_t   both = { .buf.max = SB_OUT_MAX };

    ok = history_meta_get(call->db, "history_config_json", &text, &found,
                          &call->err);
    stored = sb_str(text.data, text.len);

    if (stored.len < 2 || stored.data[0] != '{'
        || stored.data[stored.len - 1] != '}')
    {
        stored = sb_lit("{}");
    }

    sb_out_raw(&both, stored.data, stored.len - 1);

    if (changes->child != NULL && stored.len > 2) {
        sb_out_text(&both, ",");
    }

    begin = both.buf.len;
    sb_out_value(&both, changes);

    if (both.rc == SB_OK) {
        both.buf.data[begin] = ' ';
    }

    if (ok && (both.rc != SB_OK
               || sb_out_json(merged, sb_str(both.buf.data, both.buf.len))
                  != SB_OK))
    {
        history_error(&call->err, "JSONDecodeError",
                      "history_config_json in history_meta is not JSON");
        ok = false;
    }

    sb_buf_free(&text);
    sb_buf_free(&both.buf);

    return ok;
}


static bool
history_config_write(history_call_t *call, const sb_jv_t *changes,
    sb_str_t by, int64_t revision)
{
    char      now[SB_TIME_LEN + 1], number[24];
    bool      ok;
    sb_out_t  merged = { .buf.max = SB_OUT_MAX };

    sb_time_text(now, sb_now_us());
    snprintf(number, sizeof(number), "%lld", (long long) revision);

    ok = history_config_merge(call, changes, &merged)
         && history_meta_put(call->db, "history_config_json",
                             sb_str(merged.buf.data, merged.buf.len), true,
                             &call->err)
         && history_meta_put(call->db, "history_config_revision",
                             sb_str(number, strlen(number)), true, &call->err)
         && history_meta_put(call->db, "history_config_updated_at",
                             sb_str(now, SB_TIME_LEN), true, &call->err)
         && history_meta_put(call->db, "history_config_updated_by", by, true,
                             &call->err);

    sb_buf_free(&merged.buf);

    return ok;
}


static bool
history_config_set(history_call_t *call, const sb_jv_t *root)
{
    int64_t         revision;
    sb_str_t        by;
    const sb_jv_t  *changes;

    by = sb_jv_str(root, "updated_by");

    if (by.len == 0) {
        history_error(&call->err, "HelperError",
                      "updated_by must be a non-empty string");
        return false;
    }

    changes = sb_jv_get(root, "changes");

    if (changes == NULL || changes->kind != SB_JSON_OPEN_OBJECT) {
        history_error(&call->err, "HelperError",
                      "config-set changes must be an object");
        return false;
    }

    /* Unlike the published helper, the look at the revision and the change are
     * one transaction: two callers cannot both win. */

    if (!history_config_check(changes, &call->err)
        || !history_exec(call->db, "BEGIN IMMEDIATE", &call->err)
        || !history_not_held(call)
        || !history_config_revision(call, &revision))
    {
        return false;
    }

    if (call->values[1].big || revision != call->values[1].number) {
        history_error(&call->err, "ConfigConflictError",
                      "Expected config revision %s, got %lld",
                      call->values[1].text[0], (long long) revision);
        return false;
    }

    return history_config_write(call, changes, by, revision + 1)
           && history_exec(call->db, "COMMIT", &call->err);
}


bool
history_api_config_set(history_call_t *call)
{
    bool        ok;
    sb_jdoc_t  *doc;

    doc = history_read_object(call->values[0].text[0], &call->err);
    if (doc == NULL) {
        return false;
    }

    ok = history_config_set(call, sb_jdoc_root(doc));
    sb_jdoc_free(doc);

    return ok && history_api_config(call);
}


/* Begins a lease call: the transaction, and its two times. */
static bool
history_lease_begin(history_call_t *call, int64_t ttl_ms,
    char now[SB_TIME_LEN + 1], char expires[SB_TIME_LEN + 1])
{
    uint64_t  us;

    us = sb_now_us();
    sb_time_text(now, us);
    sb_time_text(expires, us + (uint64_t) (ttl_ms > 0 ? ttl_ms : 0) * 1000);

    return history_exec(call->db, "BEGIN IMMEDIATE", &call->err)
           && history_not_held(call);
}


/* Runs a statement over key ?1, owner ?2, and perhaps expiry ?3 and now ?4. */
static bool
history_lease_run(history_call_t *call, const char *sql, const char *now,
    const char *expires)
{
    sqlite3_stmt  *stmt;

    stmt = history_prepare(call->db, sql, &call->err);

    if (stmt != NULL) {
        sqlite3_bind_text(stmt, 1, call->values[0].text[0], -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 2, call->values[1].text[0], -1, SQLITE_STATIC);

        if (sqlite3_bind_parameter_count(stmt) == 4) {
            sqlite3_bind_text(stmt, 3, expires, -1, SQLITE_STATIC);
            sqlite3_bind_text(stmt, 4, now, -1, SQLITE_STATIC);
        }
    }

    return history_run(stmt, &call->err);
}


bool
history_api_lease_acquire(history_call_t *call)
{
    int            rc;
    char           now[SB_TIME_LEN + 1], expires[SB_TIME_LEN + 1];
    bool           acquired;
    const char    *key, *owner;
    sqlite3_stmt  *stmt;

    key = call->values[0].text[0];
    owner = call->values[1].text[0];

    if (*key == '\0' || *owner == '\0' || call->values[2].number < 1) {
        history_error(&call->err, "HelperError", "Invalid lease parameters");
        return false;
    }

    if (history_overflows(call, 2, HISTORY_LEASE_MAX_MS, "C int")
        || !history_lease_begin(call, call->values[2].number, now, expires))
    {
        return false;
    }

    if (!history_lease_run(call,
               "INSERT INTO history_leases(resource_key, owner_id, expires_at,"
               " updated_at) VALUES(?1, ?2, ?3, ?4)"
               " ON CONFLICT(resource_key) DO UPDATE SET owner_id ="
               " excluded.owner_id, expires_at = excluded.expires_at,"
               " updated_at = excluded.updated_at"
               " WHERE history_leases.owner_id = excluded.owner_id"
               " OR history_leases.expires_at <= ?4",
               now, expires))
    {
        return false;
    }

    acquired = sqlite3_changes(call->db) == 1;

    stmt = history_prepare(call->db, "SELECT expires_at, owner_id"
                                     " FROM history_leases"
                                     " WHERE resource_key = ?1", &call->err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    rc = history_step(stmt, &call->err);

    if (rc == 1) {
        sb_out_text(&call->out, acquired ? "{\"acquired\":true"
                                         : "{\"acquired\":false");
        sb_out_key(&call->out, "expires_at");
        sb_out_column(&call->out, stmt, 0);
        sb_out_key(&call->out, "owner_id");
        sb_out_column(&call->out, stmt, 1);
        history_member_text(&call->out, "resource_key", key);
        sb_out_text(&call->out, "}");
    }

    sqlite3_finalize(stmt);

    return rc == 1 && history_exec(call->db, "COMMIT", &call->err);
}


bool
history_api_lease_renew(history_call_t *call)
{
    char         now[SB_TIME_LEN + 1], expires[SB_TIME_LEN + 1];
    bool         renewed;
    const char  *key, *owner;

    key = call->values[0].text[0];
    owner = call->values[1].text[0];

    if (history_overflows(call, 2, HISTORY_LEASE_MAX_MS, "C int")
        || !history_lease_begin(call, call->values[2].number, now, expires))
    {
        return false;
    }

    if (!history_lease_run(call,
               "UPDATE history_leases SET expires_at = ?3, updated_at = ?4"
               " WHERE resource_key = ?1 AND owner_id = ?2 AND expires_at > ?4",
               now, expires))
    {
        return false;
    }

    renewed = sqlite3_changes(call->db) == 1;

    sb_out_text(&call->out, "{");

    if (renewed) {
        history_member_text(&call->out, "expires_at", expires);
    }

    history_member_text(&call->out, "owner_id", owner);
    sb_out_key(&call->out, "renewed");
    sb_out_text(&call->out, renewed ? "true" : "false");
    history_member_text(&call->out, "resource_key", key);
    sb_out_text(&call->out, "}");

    return history_exec(call->db, "COMMIT", &call->err);
}


bool
history_api_lease_release(history_call_t *call)
{
    bool         released;
    const char  *key;

    key = call->values[0].text[0];

    if (!history_exec(call->db, "BEGIN IMMEDIATE", &call->err)
        || !history_not_held(call))
    {
        return false;
    }

    if (!history_lease_run(call,
               "DELETE FROM history_leases WHERE resource_key = ?1"
               " AND owner_id = ?2",
               NULL, NULL))
    {
        return false;
    }

    released = sqlite3_changes(call->db) != 0;

    sb_out_text(&call->out, released ? "{\"released\":true"
                                     : "{\"released\":false");
    history_member_text(&call->out, "resource_key", key);
    sb_out_text(&call->out, "}");

    return history_exec(call->db, "COMMIT", &call->err);
}
