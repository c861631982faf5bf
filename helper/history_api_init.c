#include "history_api_write.h"
#include "history_api_read.h"
#include "id.h"
#include "schema.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>


const char *const  history_identity_keys[3] = {
    "provider_key", "sandbox_id", "sandbox_instance_id"
};


sb_jdoc_t *
history_read_object(const char *path, history_error_t *err)
{
    char              chunk[65536];
    FILE             *file;
    size_t            n;
    sb_rc_t           rc;
    sb_buf_t          text = { .max = SB_OUT_MAX };
    sb_jdoc_t        *doc;
    struct stat       st;
    sb_json_limits_t  limits;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        history_error_errno(err, EISDIR, path);
        return NULL;
    }

    file = fopen(path, "re");
    if (file == NULL) {
        history_error_errno(err, errno, path);
        return NULL;
    }

    rc = SB_OK;

    while (rc == SB_OK && (n = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        rc = sb_buf_add(&text, chunk, n);
    }

    if (ferror(file)) {
        history_error_errno(err, errno, path);
        fclose(file);
        sb_buf_free(&text);
        return NULL;
    }

    fclose(file);

    limits.max_depth = SB_OUT_DEPTH;
    limits.max_bytes = SB_OUT_MAX;

    doc = rc == SB_OK ? sb_jdoc_parse(sb_str(text.data, text.len), &limits, &rc)
                      : NULL;
    sb_buf_free(&text);

    if (doc == NULL) {
        history_error(err, rc == SB_NOMEM ? "MemoryError" : "JSONDecodeError",
                      "%s is not JSON", path);
        return NULL;
    }

    if (sb_jdoc_root(doc)->kind != SB_JSON_OPEN_OBJECT) {
        history_error(err, "HelperError", "JSON file %s must be an object",
                      path);
        sb_jdoc_free(doc);
        return NULL;
    }

    return doc;
}


bool
history_exec(sqlite3 *db, const char *sql, history_error_t *err)
{
    int  rc;

    rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    if (rc != SQLITE_OK) {
        history_error_sqlite(err, db, rc);
        return false;
    }

    return true;
}


bool
history_run(sqlite3_stmt *stmt, history_error_t *err)
{
    int  rc;

    if (stmt == NULL) {
        return false;
    }

    while ((rc = history_step(stmt, err)) == 1) { /* void */ }

    sqlite3_finalize(stmt);

    return rc == 0;
}


/* The gateway's own files have one writer, the helper, whose numbers (seq,
 * cursor) and later chain do not know what others write. */
bool
history_not_held(history_call_t *call)
{
    int               rc;
    sqlite3          *db = call->db;
    sqlite3_stmt     *stmt;
    history_error_t  *err = &call->err;

    if (call->held) {
        return true;
    }

    if (!history_has_table(db, "gateway_records")) {
        return true;
    }

    stmt = history_prepare(db, "SELECT 1 FROM gateway_records LIMIT 1", err);
    if (stmt == NULL) {
        return false;
    }

    rc = history_step(stmt, err);
    sqlite3_finalize(stmt);

    if (rc == 1) {
        history_error(err, "HelperError", "this file belongs to a gateway:"
                      " only its sandbox-helper, which is not"
                      " running, writes it");
    }

    return rc == 0;
}


bool
history_meta_put(sqlite3 *db, const char *key, sb_str_t value, bool replace,
    history_error_t *err)
{
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, replace
               ? "INSERT OR REPLACE INTO history_meta(key, value)"
                 " VALUES(?1, ?2)"
               : "INSERT OR IGNORE INTO history_meta(key, value)"
                 " VALUES(?1, ?2)", err);

    if (stmt != NULL) {
        sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 2, value.data, (int) value.len, SQLITE_STATIC);
    }

    return history_run(stmt, err);
}


int
history_meta_compare(sqlite3 *db, const char *key, sb_str_t value,
    history_error_t *err)
{
    bool      ok, found;
    sb_buf_t  text = { 0 };

    ok = history_meta_get(db, key, &text, &found, err);

    if (ok && found && !sb_eq(sb_str(text.data, text.len), value)) {
        history_error(err, "HelperError", "History identity conflict for %s",
                      key);
        ok = false;
    }

    sb_buf_free(&text);

    return ok ? found : -1;
}


/* Are the required members there, and of the version that we know? */
static bool
history_identity_check(const sb_jv_t *id, history_error_t *err)
{
    static const char *const  required[] = {
        "provider_key", "sandbox_id", "sandbox_instance_id", "schema_version",
        "sdk_version"
    };

    char            missing[200];
    size_t          used;
    int64_t         version;
    const sb_jv_t  *v;

    used = 0;
    missing[0] = '\0';

    for (size_t i = 0; i < 5; i++) {
        if (sb_jv_get(id, required[i]) == NULL) {
            used += (size_t) snprintf(missing + used, sizeof(missing) - used,
                                      "%s%s", used ? ", " : "", required[i]);
        }
    }

    if (used) {
        history_error(err, "HelperError",
                      "Identity is missing required fields: %s", missing);
        return false;
    }

    v = sb_jv_get(id, "schema_version");

    if (!sb_jv_int(v, &version) || version != SCHEMA_VERSION) {
        history_error(err, "HelperError", "Unsupported schema version: %.*s",
                      (int) v->text.len, v->text.len ? v->text.data : "");
        return false;
    }

    for (size_t i = 0; i < 3; i++) {
        if (sb_jv_str(id, history_identity_keys[i]).len == 0) {
            history_error(err, "HelperError", "%s must be a non-empty string",
                          history_identity_keys[i]);
            return false;
        }
    }

    return true;
}


static sb_str_t
history_trim(sb_str_t s)
{
    while (s.len && (unsigned char) s.data[0] <= ' ') {
        s.data++;
        s.len--;
    }

    while (s.len && (unsigned char) s.data[s.len - 1] <= ' ') {
        s.len--;
    }

    return s;
}


/* The canonical text of an object, as a meta value. */
static bool
history_meta_object(sqlite3 *db, const char *key, const sb_jv_t *v,
    bool replace, history_error_t *err)
{
    bool      ok;
    sb_out_t  out = { .buf.max = SB_OUT_MAX };

    sb_out_value(&out, v);

    ok = out.rc == SB_OK
         && history_meta_put(db, key, sb_str(out.buf.data, out.buf.len),
                             replace, err);

    if (out.rc != SB_OK) {
        history_error(err, "MemoryError", "out of memory");
    }

    sb_buf_free(&out.buf);

    return ok;
}


static bool
history_init_meta(history_call_t *call, const sb_jv_t *id)
{
    char            now[SB_TIME_LEN + 1];
    bool            ok;
    sqlite3        *db = call->db;
    sb_str_t        name;
    const sb_jv_t  *v;

    for (size_t i = 0; i < 3; i++) {
        if (history_meta_compare(db, history_identity_keys[i],
                                 sb_jv_str(id, history_identity_keys[i]),
                                 &call->err) == -1)
        {
            return false;
        }
    }

    sb_time_text(now, sb_now_us());

    ok = history_meta_put(db, "schema_version", sb_lit("1"), true, &call->err)
         && history_meta_put(db, "sdk_version", sb_jv_str(id, "sdk_version"),
                             true, &call->err)
         && history_meta_put(db, "created_at", sb_str(now, SB_TIME_LEN), false,
                             &call->err)
         && history_meta_put(db, "history_config_version", sb_lit("1"), false,
                             &call->err);

    for (size_t i = 0; i < 3 && ok; i++) {
        ok = history_meta_put(db, history_identity_keys[i],
                              sb_jv_str(id, history_identity_keys[i]), true,
                              &call->err);
    }

    v = sb_jv_get(id, "history_config");

    if (ok && v != NULL && v->kind != SB_JSON_OPEN_OBJECT) {
        history_error(&call->err, "HelperError",
                      "history_config must be an object");
        return false;
    }

    if (ok) {
        ok = history_meta_put(db, "history_config_revision", sb_lit("0"),
                              false, &call->err)
             && (v != NULL
                 ? history_meta_object(db, "history_config_json", v, false,
                                       &call->err)
                 : history_meta_put(db, "history_config_json", sb_lit("{}"),
                                    false, &call->err))
             && history_meta_put(db, "history_config_updated_at",
                                 sb_str(now, SB_TIME_LEN), false, &call->err)
             && history_meta_put(db, "history_config_updated_by",
                                 sb_lit("sdk:initialize"), false, &call->err);
    }

    name = history_trim(sb_jv_str(id, "sandbox_name"));

    if (ok && name.len) {
        ok = history_meta_put(db, "sandbox_name", name, true, &call->err);
    }

    v = sb_jv_get(id, "sandbox_metadata");

    if (ok && v != NULL && v->kind != SB_JSON_NULL) {
        if (v->kind != SB_JSON_OPEN_OBJECT) {
            history_error(&call->err, "HelperError",
                          "sandbox_metadata must be an object");
            return false;
        }

        ok = history_meta_object(db, "sandbox_metadata_json", v, true,
                                 &call->err);
    }

    return ok;
}


/* A file of a later version is left alone. */
static bool
history_init_version(sqlite3 *db, history_error_t *err)
{
    int            rc;
    int64_t        version;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, "PRAGMA user_version", err);
    if (stmt == NULL) {
        return false;
    }

    rc = history_step(stmt, err);
    version = rc == 1 ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);

    if (version > SCHEMA_VERSION) {
        history_error(err, "HelperError",
                      "Database schema %lld is newer than helper",
                      (long long) version);
        return false;
    }

    return rc == 1;
}


bool
history_api_init(history_call_t *call)
{
    int         rc;
    bool        ok;
    sb_jdoc_t  *doc;

    doc = history_read_object(call->values[0].text[0], &call->err);
    if (doc == NULL) {
        return false;
    }

    ok = history_identity_check(sb_jdoc_root(doc), &call->err)
         && history_exec(call->db, "BEGIN IMMEDIATE", &call->err)
         && history_init_version(call->db, &call->err)
         && history_not_held(call);

    if (ok) {
        rc = schema_create(call->db);

        if (rc != SQLITE_OK) {
            history_error_sqlite(&call->err, call->db, rc);
            ok = false;
        }
    }

    ok = ok && history_init_meta(call, sb_jdoc_root(doc))
         && history_exec(call->db, "COMMIT", &call->err);

    sb_jdoc_free(doc);

    return ok && history_api_health(call);
}
