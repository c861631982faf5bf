#include "history_api_apply.h"
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>


bool
history_need(history_apply_t *a, const sb_jv_t *v, const char *key,
    sb_str_t *text)
{
    *text = sb_jv_str(v, key);

    if (text->len == 0) {
        history_error(a->err, "HelperError", "%s must be a non-empty string",
                      key);
        return false;
    }

    return true;
}


/* An optional object: NULL when it is absent or null. */
static bool
history_maybe_object(history_apply_t *a, const sb_jv_t *v, const char *key,
    const sb_jv_t **object)
{
    const sb_jv_t  *m;

    *object = NULL;

    m = sb_jv_get(v, key);

    if (m == NULL || m->kind == SB_JSON_NULL) {
        return true;
    }

    if (m->kind != SB_JSON_OPEN_OBJECT) {
        history_error(a->err, "HelperError", "value must be an object");
        return false;
    }

    *object = m;

    return true;
}


void
history_bind_str(sqlite3_stmt *stmt, int i, sb_str_t s)
{
    sqlite3_bind_text(stmt, i, s.len ? s.data : "", (int) s.len,
                      SQLITE_STATIC);
}


bool
history_bind(history_apply_t *a, sqlite3_stmt *stmt, int i, const sb_jv_t *v,
    const char *key)
{
    int64_t         n;
    const sb_jv_t  *m;

    m = sb_jv_get(v, key);

    if (m == NULL) {
        return true;        /* unbound: NULL */
    }

    switch (m->kind) {

    case SB_JSON_NULL:
        return true;

    case SB_JSON_TRUE:
    case SB_JSON_FALSE:
        sqlite3_bind_int(stmt, i, m->kind == SB_JSON_TRUE);
        return true;

    case SB_JSON_STRING:
        history_bind_str(stmt, i, m->text);
        return true;

    case SB_JSON_NUMBER:
        if (sb_jv_int(m, &n)) {
            sqlite3_bind_int64(stmt, i, n);

        } else {
            sqlite3_bind_double(stmt, i, strtod(m->text.data, NULL));
        }

        return true;

    default:
        history_error(a->err, "ProgrammingError",
                      "Error binding parameter %d: %s is not a plain value", i,
                      key);
        return false;
    }
}


/* Binds the canonical JSON of a member; NULL when absent or null. */
static bool
history_bind_json(history_apply_t *a, sqlite3_stmt *stmt, int i,
    const sb_jv_t *v, const char *key)
{
    const sb_jv_t  *m;
    sb_out_t        out = { .buf.max = SB_OUT_MAX };

    m = sb_jv_get(v, key);

    if (m == NULL || m->kind == SB_JSON_NULL) {
        return true;
    }

    sb_out_value(&out, m);

    if (out.rc != SB_OK) {
        history_error(a->err, "MemoryError", "out of memory");
        sb_buf_free(&out.buf);
        return false;
    }

    sqlite3_bind_text(stmt, i, out.buf.data, (int) out.buf.len,
                      SQLITE_TRANSIENT);
    sb_buf_free(&out.buf);

    return true;
}


/* True (absent), or the truth of the member. */
static int
history_truth(const sb_jv_t *v, const char *key)
{
    const sb_jv_t  *m;

    m = sb_jv_get(v, key);

    return m == NULL || m->kind == SB_JSON_TRUE
           || (m->kind == SB_JSON_NUMBER && strtod(m->text.data, NULL) != 0)
           || (m->kind == SB_JSON_STRING && m->text.len != 0);
}


/* The operation type and status of an event: 1, 0 there is none, -1 with
 * err.  Both buffers hold `size` bytes. */
static int
history_apply_find(history_apply_t *a, sb_str_t id, char *type, char *status,
    size_t size)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(a->db, "SELECT operation_type, status"
                                  " FROM history_events WHERE event_id = ?1",
                           a->err);
    if (stmt == NULL) {
        return -1;
    }

    history_bind_str(stmt, 1, id);
    rc = history_step(stmt, a->err);

    if (rc == 1) {
        snprintf(type, size, "%s", (const char *) sqlite3_column_text(stmt, 0));
        snprintf(status, size, "%s",
                 (const char *) sqlite3_column_text(stmt, 1));
    }

    sqlite3_finalize(stmt);

    return rc;
}


static bool
history_apply_exists(history_apply_t *a, sb_str_t id, char *status, size_t size)
{
    int   rc;
    char  type[256];

    rc = history_apply_find(a, id, type, status, size < sizeof(type)
                                                 ? size : sizeof(type));

    if (rc == 0) {
        history_error(a->err, "HelperError", "Operation does not exist: %.*s",
                      (int) id.len, id.data);
    }

    return rc == 1;
}


static bool
history_apply_change(history_apply_t *a, const sb_jv_t *record, sb_str_t id,
    const char *change, sb_str_t at)
{
    char           text[512];
    sb_str_t       change_id;
    sqlite3_stmt  *stmt;

    change_id = sb_jv_str(record, "change_id");

    if (change_id.len == 0) {
        snprintf(text, sizeof(text), "%.*s:%zu:%.*s", (int) a->batch.len,
                 a->batch.data, a->index,
                 (int) sb_jv_str(record, "type").len,
                 sb_jv_str(record, "type").data);
        change_id = sb_str(text, strlen(text));
    }

    stmt = history_prepare(a->db, "INSERT OR IGNORE INTO history_changes("
                                  "change_id, event_id, change_type,"
                                  " changed_at) VALUES(?1, ?2, ?3, ?4)",
                           a->err);

    if (stmt != NULL) {
        history_bind_str(stmt, 1, change_id);
        history_bind_str(stmt, 2, id);
        sqlite3_bind_text(stmt, 3, change, -1, SQLITE_STATIC);
        history_bind_str(stmt, 4, at);
    }

    return history_run(stmt, a->err);
}


static bool
history_apply_command(history_apply_t *a, sb_str_t id, const sb_jv_t *command)
{
    sb_str_t        text;
    sqlite3_stmt   *stmt;

    if (command == NULL) {
        return true;
    }

    if (!history_need(a, command, "command", &text)) {
        return false;
    }

    stmt = history_prepare(a->db, "INSERT OR IGNORE INTO command_executions("
                                  "event_id, command, cwd, environment_json,"
                                  " timeout_ms) VALUES(?1, ?2, ?3, ?4, ?5)",
                           a->err);
    if (stmt == NULL) {
        return false;
    }

    history_bind_str(stmt, 1, id);
    history_bind_str(stmt, 2, text);
    sqlite3_bind_text(stmt, 3, "/workspace", -1, SQLITE_STATIC);

    if (!history_bind(a, stmt, 3, command, "cwd")
        || !history_bind_json(a, stmt, 4, command, "environment")
        || !history_bind(a, stmt, 5, command, "timeout_ms"))
    {
        sqlite3_finalize(stmt);
        return false;
    }

    return history_run(stmt, a->err);
}


static bool
history_apply_file(history_apply_t *a, sb_str_t id, const sb_jv_t *file)
{
    static const char *const  names[] = {
        "old_path", "before_hash", "after_hash", "before_size", "after_size"
    };

    sb_str_t       path, change;
    sqlite3_stmt  *stmt;

    if (file == NULL) {
        return true;
    }

    if (!history_need(a, file, "path", &path)
        || !history_need(a, file, "change_type", &change))
    {
        return false;
    }

    stmt = history_prepare(a->db,
               "INSERT OR IGNORE INTO file_operations(event_id, path,"
               " change_type, old_path, before_hash, after_hash, before_size,"
               " after_size, diff_complete)"
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", a->err);
    if (stmt == NULL) {
        return false;
    }

    history_bind_str(stmt, 1, id);
    history_bind_str(stmt, 2, path);
    history_bind_str(stmt, 3, change);
    sqlite3_bind_int(stmt, 9, history_truth(file, "diff_complete"));

    for (int i = 0; i < 5; i++) {
        if (!history_bind(a, stmt, 4 + i, file, names[i])) {
            sqlite3_finalize(stmt);
            return false;
        }
    }

    return history_run(stmt, a->err);
}


static bool
history_apply_event(history_apply_t *a, const sb_jv_t *event, sb_str_t id,
    sb_str_t type, sb_str_t at, const sb_jv_t *actor)
{
    static const char *const  names[] = {
        "actor_type", "actor_id", "thread_id", "run_id", "correlation_id"
    };

    sqlite3_stmt  *stmt;

    /* The identity is the file's own (format 6). */

    stmt = history_prepare(a->db,
               "INSERT OR IGNORE INTO history_events(event_id, provider_key,"
               " sandbox_id, sandbox_instance_id, operation_type, status,"
               " occurred_at, source, schema_version, request_json,"
               " actor_type, actor_id, thread_id, run_id, correlation_id)"
               " SELECT ?1, p.value, s.value, i.value, ?2, 'started', ?3,"
               " ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"
               " FROM history_meta p, history_meta s, history_meta i"
               " WHERE p.key = 'provider_key' AND s.key = 'sandbox_id'"
               " AND i.key = 'sandbox_instance_id'", a->err);
    if (stmt == NULL) {
        return false;
    }

    history_bind_str(stmt, 1, id);
    history_bind_str(stmt, 2, type);
    history_bind_str(stmt, 3, at);
    sqlite3_bind_text(stmt, 4, "sdk", -1, SQLITE_STATIC);
    sqlite3_bind_int(stmt, 5, SCHEMA_VERSION);
    sqlite3_bind_text(stmt, 7, "system", -1, SQLITE_STATIC);

    if (!history_bind(a, stmt, 4, event, "source")
        || !history_bind(a, stmt, 5, event, "schema_version")
        || !history_bind_json(a, stmt, 6, event, "request"))
    {
        sqlite3_finalize(stmt);
        return false;
    }

    for (int i = 0; i < 5; i++) {
        if (!history_bind(a, stmt, 7 + i, actor, names[i])) {
            sqlite3_finalize(stmt);
            return false;
        }
    }

    return history_run(stmt, a->err);
}


static const sb_jv_t *
history_apply_member(history_apply_t *a, const sb_jv_t *record)
{
    const sb_jv_t  *event;

    event = sb_jv_get(record, "event");

    if (event == NULL || event->kind != SB_JSON_OPEN_OBJECT) {
        history_error(a->err, "HelperError", "event must be an object");
        return NULL;
    }

    return event;
}


static bool
history_apply_started(history_apply_t *a, const sb_jv_t *record)
{
    int             rc;
    char            old[256], status[256];
    sb_str_t        id, type, at;
    const sb_jv_t  *event, *actor, *command, *file;

    event = history_apply_member(a, record);

    if (event == NULL || !history_need(a, event, "event_id", &id)
        || !history_need(a, event, "operation_type", &type)
        || !history_need(a, event, "occurred_at", &at)
        || !history_maybe_object(a, event, "actor", &actor)
        || !history_maybe_object(a, event, "command", &command)
        || !history_maybe_object(a, event, "file_operation", &file))
    {
        return false;
    }

    rc = history_apply_find(a, id, old, status, sizeof(old));

    if (rc == 1 && !sb_eq(sb_str(old, strlen(old)), type)) {
        history_error(a->err, "HelperError",
                      "Conflicting duplicate operation start: %.*s",
                      (int) id.len, id.data);
        return false;
    }

    return rc != -1
           && history_apply_event(a, event, id, type, at, actor)
           && history_apply_command(a, id, command)
           && history_apply_file(a, id, file)
           && history_apply_change(a, record, id, "created", at);
}


static bool
history_apply_output(history_apply_t *a, const sb_jv_t *record)
{
    char            status[256];
    sb_str_t        id;
    const sb_jv_t  *chunks;

    if (!history_need(a, record, "event_id", &id)) {
        return false;
    }

    chunks = sb_jv_get(record, "chunks");

    if (chunks == NULL || chunks->kind != SB_JSON_OPEN_ARRAY) {
        history_error(a->err, "HelperError", "chunks must be an array");
        return false;
    }

    if (chunks->child == NULL) {
        history_error(a->err, "HelperError",
                      "command_output requires non-empty chunks");
        return false;
    }

    if (!history_apply_exists(a, id, status, sizeof(status))) {
        return false;
    }

    for (const sb_jv_t *c = chunks->child; c != NULL; c = c->next) {
        if (!history_apply_chunk(a, id, c)) {
            return false;
        }
    }

    return history_apply_change(a, record, id, "output_appended",
                                sb_str(a->now, SB_TIME_LEN));
}


static bool
history_apply_ended_command(history_apply_t *a, sb_str_t id,
    const sb_jv_t *command)
{
    sqlite3_stmt  *stmt;

    if (command == NULL) {
        return true;
    }

    stmt = history_prepare(a->db,
               "UPDATE command_executions SET exit_code = ?2,"
               " provider_command_id = ?3, output_complete = ?4,"
               " history_storage_state = ?5 WHERE event_id = ?1", a->err);
    if (stmt == NULL) {
        return false;
    }

    history_bind_str(stmt, 1, id);
    sqlite3_bind_int(stmt, 4, history_truth(command, "output_complete"));
    sqlite3_bind_text(stmt, 5, "complete", -1, SQLITE_STATIC);

    if (!history_bind(a, stmt, 2, command, "exit_code")
        || !history_bind(a, stmt, 3, command, "provider_command_id")
        || !history_bind(a, stmt, 5, command, "history_storage_state"))
    {
        sqlite3_finalize(stmt);
        return false;
    }

    return history_run(stmt, a->err);
}


static bool
history_apply_completed(history_apply_t *a, const sb_jv_t *record)
{
    char            old[256];
    sb_str_t        id, status, at;
    sqlite3_stmt   *stmt;
    const sb_jv_t  *event, *command;

    event = history_apply_member(a, record);

    if (event == NULL || !history_need(a, event, "event_id", &id)
        || !history_need(a, event, "status", &status))
    {
        return false;
    }

    if (sb_eq(status, sb_lit("started"))) {
        history_error(a->err, "HelperError",
                      "operation_completed requires a terminal status");
        return false;
    }

    if (!history_need(a, event, "completed_at", &at)
        || !history_maybe_object(a, event, "command", &command)
        || !history_apply_exists(a, id, old, sizeof(old)))
    {
        return false;
    }

    if (strcmp(old, "started") != 0
        && !sb_eq(sb_str(old, strlen(old)), status))
    {
        history_error(a->err, "HelperError",
                      "Conflicting terminal status for event: %.*s",
                      (int) id.len, id.data);
        return false;
    }

    stmt = history_prepare(a->db,
               "UPDATE history_events SET status = ?2, completed_at = ?3,"
               " duration_ms = ?4, result_json = ?5 WHERE event_id = ?1",
               a->err);
    if (stmt == NULL) {
        return false;
    }

    history_bind_str(stmt, 1, id);
    history_bind_str(stmt, 2, status);
    history_bind_str(stmt, 3, at);

    if (!history_bind(a, stmt, 4, event, "duration_ms")
        || !history_bind_json(a, stmt, 5, event, "result"))
    {
        sqlite3_finalize(stmt);
        return false;
    }

    return history_run(stmt, a->err)
           && history_apply_ended_command(a, id, command)
           && history_apply_change(a, record, id, "completed", at);
}


static bool
history_apply_storage(history_apply_t *a, const sb_jv_t *record)
{
    char           status[256];
    sb_str_t       id, state;
    sqlite3_stmt  *stmt;

    if (!history_need(a, record, "event_id", &id)
        || !history_need(a, record, "history_storage_state", &state)
        || !history_apply_exists(a, id, status, sizeof(status)))
    {
        return false;
    }

    stmt = history_prepare(a->db,
               "UPDATE command_executions SET history_storage_state = ?2"
               " WHERE event_id = ?1", a->err);

    if (stmt != NULL) {
        history_bind_str(stmt, 1, id);
        history_bind_str(stmt, 2, state);
    }

    return history_run(stmt, a->err)
           && history_apply_change(a, record, id, "storage_state_changed",
                                   sb_str(a->now, SB_TIME_LEN));
}


static bool
history_apply_record(history_apply_t *a, const sb_jv_t *record)
{
    static const struct {
        const char  *type;
        bool       (*apply)(history_apply_t *a, const sb_jv_t *record);
    } types[] = {
        { "operation_started", history_apply_started },
        { "command_output", history_apply_output },
        { "operation_completed", history_apply_completed },
        { "storage_state_changed", history_apply_storage }
    };

    sb_str_t  type;

    if (record->kind != SB_JSON_OPEN_OBJECT) {
        history_error(a->err, "HelperError", "records item must be an object");
        return false;
    }

    type = sb_jv_str(record, "type");

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sb_eq(type, sb_str(types[i].type, strlen(types[i].type)))) {
            return types[i].apply(a, record);
        }
    }

    history_error(a->err, "HelperError", "Unsupported record type: %.*s",
                  type.len ? (int) type.len : 4, type.len ? type.data : "None");

    return false;
}


/* An event without identity would belong to nobody. */
static bool
history_apply_identity(history_apply_t *a)
{
    int  rc;

    for (size_t i = 0; i < 3; i++) {
        rc = history_meta_compare(a->db, history_identity_keys[i], sb_lit(""),
                                  a->err);

        if (rc != -1) {
            history_error(a->err, "HelperError",
                          "Database identity is incomplete: %s",
                          history_identity_keys[i]);
            return false;
        }
    }

    return true;
}


/* What a gateway recorded is its own, and its chain would tell. */
static bool
history_apply_foreign(history_apply_t *a, const sb_jv_t *record)
{
    int            rc;
    sb_str_t       id;
    sqlite3_stmt  *stmt;

    if (!a->call->held) {
        return true;
    }

    id = sb_jv_str(record, "event_id");

    if (id.len == 0) {
        id = sb_jv_str(sb_jv_get(record, "event"), "event_id");
    }

    stmt = history_prepare(a->db, "SELECT 1 FROM gateway_records WHERE"
                                  " event_id = ?1", a->err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, id.data, (int) id.len, SQLITE_STATIC);
    rc = history_step(stmt, a->err);
    sqlite3_finalize(stmt);

    if (rc == 1) {
        history_error(a->err, "HelperError", "Operation is the gateway's own"
                      " record: %.*s", (int) id.len, id.data);
    }

    return rc == 0;
}


static bool
history_apply_batch(history_apply_t *a, const sb_jv_t *records)
{
    if (!history_exec(a->db, "BEGIN IMMEDIATE", a->err)
        || !history_not_held(a->call) || !history_apply_identity(a))
    {
        return false;
    }

    a->index = 0;

    for (const sb_jv_t *r = records->child; r != NULL; r = r->next) {
        if (!history_apply_foreign(a, r) || !history_apply_record(a, r)) {
            return false;
        }

        a->index++;
    }

    return history_exec(a->db, "COMMIT", a->err);
}


bool
history_api_apply(history_call_t *call)
{
    bool             ok;
    int64_t          version;
    sb_jdoc_t       *doc;
    const sb_jv_t   *root, *records;
    history_apply_t  apply;

    doc = history_read_object(call->values[0].text[0], &call->err);
    if (doc == NULL) {
        return false;
    }

    memset(&apply, 0, sizeof(apply));
    apply.db = call->db;
    apply.err = &call->err;
    apply.call = call;
    sb_time_text(apply.now, sb_now_us());

    ok = false;
    root = sb_jdoc_root(doc);
    records = sb_jv_get(root, "records");
    apply.batch = sb_jv_str(root, "batch_id");

    if (!sb_jv_int(sb_jv_get(root, "schema_version"), &version)
        || version != SCHEMA_VERSION)
    {
        history_error(&call->err, "HelperError",
                      "Apply envelope schema_version must be 1");

    } else if (records != NULL && records->kind != SB_JSON_OPEN_ARRAY) {
        history_error(&call->err, "HelperError", "records must be an array");

    } else if (apply.batch.len == 0 || records == NULL
               || records->child == NULL)
    {
        history_error(&call->err, "HelperError",
                      "Apply envelope requires batch_id and non-empty records");

    } else {
        ok = history_apply_batch(&apply, records);
    }

    if (ok) {
        sb_out_text(&call->out, "{");
        sb_out_key(&call->out, "batch_id");
        sb_out_str(&call->out, apply.batch);
        sb_out_key(&call->out, "records_applied");
        sb_out_int(&call->out, (int64_t) apply.index);
        sb_out_text(&call->out, "}");
    }

    sb_jdoc_free(doc);

    return ok;
}
