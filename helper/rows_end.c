#include "rows_end.h"

#include "id.h"
#include "operation.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>


/* The operation's row of lib's table, or NULL. */
static const sb_op_t *
rows_known(sb_str_t type)
{
    return type.len ? sb_op_find(type) : NULL;
}


sb_str_t
rows_status(const facts_t *t)
{
    size_t  i;

    static const char  *known[] = {
        "succeeded", "failed", "timeout", "cancelled"
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (sb_eq(t->v[SB_T_STATUS], sb_str(known[i], strlen(known[i])))) {
            return t->v[SB_T_STATUS];
        }
    }

    return sb_lit("unknown");
}


sb_str_t
rows_request(const facts_t *t)
{
    return t->v[SB_T_REQUEST].len ? t->v[SB_T_REQUEST] : sb_lit("{}");
}


bool
rows_refused(const facts_t *t)
{
    switch (facts_int(t, SB_T_UPSTREAM_STATUS, 0)) {

    case 401:
    case 404:
    case 405:
    case 422:
        return true;

    default:
        return false;
    }
}


void
rows_count_output(rows_end_t *end, const sb_frame_t *f)
{
    int       stream;
    uint16_t  tag;
    sb_str_t  fields, v;

    if (f->type != SB_F_OUTPUT) {
        return;
    }

    fields = f->fields;
    stream = 0;

    while (sb_field_next(&fields, &tag, &v)) {
        if (tag == SB_T_STREAM) {
            stream = sb_value_u64(v, 0) == 1;

        } else if (tag == SB_T_DATA) {
            end->bytes[stream] += (int64_t) v.len;
        }
    }
}


static char *
rows_column_dup(sqlite3_stmt *st, int n)
{
    const char  *text;

    text = (const char *) sqlite3_column_text(st, n);

    return text ? strdup(text) : NULL;
}


static int64_t
rows_column_int(sqlite3_stmt *st, int n)
{
    return sqlite3_column_type(st, n) == SQLITE_NULL
           ? -1 : sqlite3_column_int64(st, n);
}


/* What the file says of an operation whose beginning was written before. */
static int
rows_end_before(store_db_t *db, rows_op_t *op, rows_end_t *end)
{
    int            rc;
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_WIRE_GET, "select w.http_status, w.bytes_in,"
            " w.bytes_out, e.operation_type, c.event_id is not null,"
            " d.event_id is not null, d.result, d.reason"
            " from history_events e"
            " left join gateway_wire w on w.event_id = e.event_id"
            " left join command_executions c on c.event_id = e.event_id"
            " left join gateway_detached d on d.event_id = e.event_id"
            " where e.event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        end->http_status = rows_column_int(st, 0);
        end->bytes_in = rows_column_int(st, 1);
        end->bytes_out = rows_column_int(st, 2);
        end->type = rows_column_dup(st, 3);
        end->command = sqlite3_column_int(st, 4) != 0;
        end->detached = sqlite3_column_int(st, 5) != 0;
        end->base = rows_column_dup(st, 6);
        end->reason = rows_column_dup(st, 7);
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_reset(st);

    return rc;
}


static void
rows_end_int(result_t *res, const char *name, const facts_t *t, uint16_t tag,
    int64_t before)
{
    int64_t  v;

    v = facts_int(t, tag, before);

    if (v >= 0 || facts_has(t, tag)) {
        result_int(res, name, v);
    }
}


/* What is said of a command's output. */
static void
rows_end_output(rows_op_t *op, const facts_t *t, rows_end_t *end,
    result_t *res)
{
    int64_t        dropped, lost, total;
    unsigned       i;
    const sb_op_t  *known;

    static const char  *names[2][2] = {
        { "stdout_bytes", "stdout_total_bytes" },
        { "stderr_bytes", "stderr_total_bytes" }
    };
    static const uint16_t  tags[2] = { SB_T_STDOUT_TOTAL, SB_T_STDERR_TOTAL };

    dropped = facts_int(t, SB_T_OUTPUT_DROPPED, 0);
    lost = facts_int(t, SB_T_OUTPUT_LOST, 0);

    end->complete = (dropped == 0 && lost == 0 && !end->detached
                     && !sb_eq(end->status, sb_lit("unknown")));

    if (lost > 0 || sb_eq(t->v[SB_T_REASON], sb_lit("worker_died"))
        || sb_eq(t->v[SB_T_REASON], sb_lit("gateway_restarted")))
    {
        end->storage = "partial";

    } else if (dropped > 0) {
        end->storage = "truncated_by_policy";

    } else if (end->detached) {
        end->storage = op->bytes[0] + op->bytes[1] + end->bytes[0]
                       + end->bytes[1] ? "partial" : "metadata_only";
    }

    if (!end->command && op->ord == 0 && end->bytes[0] + end->bytes[1] == 0) {
        return;
    }

    for (i = 0; i < 2; i++) {
        total = op->bytes[i] + end->bytes[i];
        result_int(res, names[i][0], total);
        result_int(res, names[i][1], facts_int(t, tags[i], total));
    }

    if (dropped) {
        result_int(res, "output_dropped_bytes", dropped);
    }

    if (lost) {
        result_int(res, "output_lost_bytes", lost);
    }

    result_bool(res, "output_complete", end->complete);
    result_str(res, "history_storage_state",
               sb_str(end->storage, strlen(end->storage)));

    known = rows_known(end->type ? sb_str(end->type, strlen(end->type))
                                 : t->v[SB_T_TYPE]);

    if (known && (known->flags & SB_OPF_STREAM)) {
        /* execd's events carry lines without their ends */
        result_str(res, "line_ends", sb_lit("reconstructed"));
    }
}


int
rows_end_read(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *begin, const rows_record_t *last, rows_end_t *end)
{
    int            rc;
    int64_t        us;
    uint64_t       begun;
    sb_str_t       base;
    result_t       res;
    const sb_op_t  *known;

    end->status = rows_status(t);
    (void) snprintf(end->status_text, sizeof(end->status_text), "%.*s",
                    (int) end->status.len, end->status.data);
    end->at_us = last->r.frame.time_us;
    end->storage = "complete";
    end->http_status = -1;
    end->bytes_in = -1;
    end->bytes_out = -1;

    if (begin) {
        known = rows_known(t->v[SB_T_TYPE]);
        end->command = facts_has(t, SB_T_COMMAND)
                       || (known && (known->flags & SB_OPF_COMMAND));
        end->detached = facts_has(t, SB_T_DETACHED);

    } else {
        rows_try(rc, rows_end_before(db, op, end));
        end->detached = end->detached || facts_has(t, SB_T_DETACHED);
        end->command = end->command || facts_has(t, SB_T_COMMAND);
    }

    us = facts_int(t, SB_T_DURATION_US, -1);

    if (us < 0 && begin) {
        begun = sb_field_u64(&begin->r.frame, SB_T_TIME,
                             begin->r.frame.time_us);
        us = end->at_us > begun ? (int64_t) (end->at_us - begun) : 0;
    }

    end->duration_ms = us < 0 ? 0 : us / 1000;

    res.n = 0;

    if (facts_has(t, SB_T_REASON)) {
        result_str(&res, "reason", t->v[SB_T_REASON]);

    } else if (end->reason) {
        result_str(&res, "detached", sb_str(end->reason, strlen(end->reason)));
    }

    result_str(&res, "error_code", t->v[SB_T_ERROR_CODE]);
    rows_end_int(&res, "http_status", t, SB_T_HTTP_STATUS, end->http_status);
    rows_end_int(&res, "bytes_in", t, SB_T_BYTES_IN, end->bytes_in);
    rows_end_int(&res, "bytes_out", t, SB_T_BYTES_OUT, end->bytes_out);

    if (facts_has(t, SB_T_EXIT_CODE)) {
        result_int(&res, "exit_code", facts_int(t, SB_T_EXIT_CODE, 0));
    }

    result_str(&res, "command_id", t->v[SB_T_COMMAND_ID]);

    if (facts_has(t, SB_T_FILES_TOTAL)) {
        result_int(&res, "files_total", facts_int(t, SB_T_FILES_TOTAL, 0));
    }

    rows_end_output(op, t, end, &res);

    base = t->v[SB_T_RESULT];

    if (base.len == 0 && end->base) {
        base = sb_str(end->base, strlen(end->base));
    }

    end->buf.max = RESULT_MAX * 2;

    if (result_write(&res, base, &end->buf) == SB_NOMEM) {
        return SQLITE_NOMEM;
    }

    if (end->buf.len) {
        end->result = sb_str(end->buf.data, end->buf.len);
    }

    return SQLITE_OK;
}


void
rows_end_free(rows_end_t *end)
{
    sb_buf_free(&end->buf);
    free(end->type);
    free(end->base);
    free(end->reason);
}


int
rows_end_write(store_db_t *db, rows_op_t *op, const rows_end_t *end)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_END, "update history_events set status = ?2,"
                    " completed_at = ?3, duration_ms = ?4, result_json = ?5"
                    " where event_id = ?1 and status = 'started'");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, end->status);
    store_bind_time(st, 3, end->at_us);
    sqlite3_bind_int64(st, 4, end->duration_ms);
    store_bind_text(st, 5, end->result);

    return store_run(st);
}


int
rows_completed(store_db_t *db, rows_op_t *op, const rows_end_t *end)
{
    int            rc;
    char           id[SB_UUID_LEN + 1], text[SB_UUID_LEN + 32];
    sqlite3_stmt  *st;

    if (end->detached) {
        st = store_stmt(db, ROWS_DETACHED_END, "update gateway_detached set"
                        " ended_at = ?2 where event_id = ?1");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        store_bind_id(st, 1, op->id);
        store_bind_time(st, 2, end->at_us);
        rows_try(rc, store_run(st));
    }

    sb_uuid_text(id, op->id);
    (void) snprintf(text, sizeof(text), "%s:completed:%s", id,
                    end->status_text);

    return rows_change(db, text, op->id, "completed", end->at_us);
}


static int
rows_command(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end, bool insert)
{
    int            rc;
    sb_str_t       v;
    sqlite3_stmt  *st;
    const sb_op_t *known;

    known = insert ? rows_known(t->v[SB_T_TYPE]) : NULL;

    if (facts_has(t, SB_T_COMMAND)
        || (known && (known->flags & SB_OPF_COMMAND)))
    {
        st = store_stmt(db, ROWS_COMMAND, "insert into command_executions("
                "event_id, command, cwd, timeout_ms) values(?1, ?2, ?3, ?4)"
                " on conflict(event_id) do update set"
                " command = excluded.command, cwd = excluded.cwd,"
                " timeout_ms = coalesce(excluded.timeout_ms, timeout_ms)");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        store_bind_id(st, 1, op->id);
        v = t->v[SB_T_COMMAND];
        store_bind_text(st, 2, v.data ? v : sb_lit(""));
        v = t->v[SB_T_CWD];
        store_bind_text(st, 3, v.data ? v : sb_lit(""));

        if (facts_int(t, SB_T_TIMEOUT_MS, -1) >= 0) {
            sqlite3_bind_int64(st, 4, facts_int(t, SB_T_TIMEOUT_MS, 0));
        }

        rows_try(rc, store_run(st));
    }

    if ((end == NULL || !end->command) && !facts_has(t, SB_T_COMMAND_ID)) {
        return SQLITE_OK;
    }

    st = store_stmt(db, ROWS_COMMAND_SET, "update command_executions set"
                    " exit_code = coalesce(?2, exit_code),"
                    " provider_command_id = coalesce(?3, provider_command_id),"
                    " output_complete = coalesce(?4, output_complete),"
                    " history_storage_state = coalesce(?5,"
                    " history_storage_state) where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    if (facts_has(t, SB_T_EXIT_CODE)) {
        sqlite3_bind_int64(st, 2, facts_int(t, SB_T_EXIT_CODE, 0));
    }

    store_bind_text(st, 3, t->v[SB_T_COMMAND_ID]);

    if (end) {
        sqlite3_bind_int(st, 4, end->complete);
        sqlite3_bind_text(st, 5, end->storage, -1, SQLITE_STATIC);
    }

    return store_run(st);
}


/* "write" of "file.write", "list" of "isolated.dir.list". */
static sb_str_t
rows_change_type(sb_str_t type)
{
    size_t  i;

    for (i = 0; i < type.len; i++) {

        if ((i == 0 || type.data[i - 1] == '.')
            && type.len - i > 5 && memcmp(type.data + i, "file.", 5) == 0)
        {
            return sb_str(type.data + i + 5, type.len - i - 5);
        }

        if ((i == 0 || type.data[i - 1] == '.')
            && type.len - i > 4 && memcmp(type.data + i, "dir.", 4) == 0)
        {
            return sb_str(type.data + i + 4, type.len - i - 4);
        }
    }

    return type;
}


static void
rows_bind_hash(sqlite3_stmt *st, int n, sb_str_t hash)
{
    char        text[65];
    unsigned    i;

    static const char  hex[] = "0123456789abcdef";

    if (hash.len != 32) {
        return;
    }

    for (i = 0; i < 32; i++) {
        text[2 * i] = hex[(unsigned char) hash.data[i] >> 4];
        text[2 * i + 1] = hex[hash.data[i] & 15];
    }

    sqlite3_bind_text(st, n, text, 64, SQLITE_TRANSIENT);
}


static void
rows_bind_file(sqlite3_stmt *st, const facts_file_t *f)
{
    if (f->old_path.len) {
        store_bind_text(st, 4, f->old_path);
    }

    if (f->size >= 0) {
        sqlite3_bind_int64(st, 5, f->size);
    }

    rows_bind_hash(st, 6, f->sha256);

    if (f->mode >= 0) {
        sqlite3_bind_int64(st, 7, f->mode);
    }

    sqlite3_bind_int64(st, 8, (sqlite3_int64) f->flags);
}


static int
rows_file_set(store_db_t *db, rows_op_t *op, int64_t n, const facts_file_t *f)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_FILE_SET, "update gateway_files set"
                    " old_path = coalesce(?4, old_path),"
                    " size = coalesce(?5, size), sha256 = coalesce(?6, sha256),"
                    " mode = coalesce(?7, mode), flags = flags | ?8"
                    " where event_id = ?1 and n = ?2");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    sqlite3_bind_int64(st, 2, n);
    rows_bind_file(st, f);

    return store_run(st);
}


/* More about a file that stands in the table already; *found tells. */
static int
rows_file_again(store_db_t *db, rows_op_t *op, const facts_file_t *f,
    bool *found)
{
    int            rc;
    int64_t        n;
    sqlite3_stmt  *st;

    *found = false;

    st = store_stmt(db, ROWS_FILE_FIND, "select n from gateway_files where"
                    " event_id = ?1 and path = ?2 and size is null and"
                    " sha256 is null order by n limit 1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, f->path);
    rc = sqlite3_step(st);
    n = sqlite3_column_int64(st, 0);
    (void) sqlite3_reset(st);

    if (rc != SQLITE_ROW) {
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    *found = true;

    return rows_file_set(db, op, n, f);
}


static int
rows_file(store_db_t *db, rows_op_t *op, const facts_file_t *f)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_FILE_ADD, "insert into gateway_files(event_id, n,"
                    " path, old_path, size, sha256, mode, flags)"
                    " values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    sqlite3_bind_int64(st, 2, op->nfiles++);
    store_bind_text(st, 3, f->path);
    rows_bind_file(st, f);

    return store_run(st);
}


static int
rows_file_operation(store_db_t *db, rows_op_t *op, const facts_t *t,
    const facts_file_t *f)
{
    int            rc;
    char           type[64];
    sb_str_t       v;
    sqlite3_stmt  *st;

    v = t->v[SB_T_TYPE];

    if (v.data == NULL) {
        /* facts of a batch of their own: the type stands in the file */
        st = store_stmt(db, ROWS_FILE_READ, "select operation_type from"
                        " history_events where event_id = ?1");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        store_bind_id(st, 1, op->id);
        rc = sqlite3_step(st);

        (void) snprintf(type, sizeof(type), "%s", rc == SQLITE_ROW
                        ? (const char *) sqlite3_column_text(st, 0) : "");
        (void) sqlite3_reset(st);
        v = sb_str(type, strlen(type));
    }

    st = store_stmt(db, ROWS_FILE, "insert into file_operations(event_id, path,"
                    " old_path, change_type) values(?1, ?2, ?3, ?4)"
                    " on conflict(event_id) do nothing");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, f->path);

    if (f->old_path.len) {
        store_bind_text(st, 3, f->old_path);
    }

    store_bind_text(st, 4, rows_change_type(v));

    return store_run(st);
}


/* What is true of the first file after the operation succeeded. */
static int
rows_file_after(store_db_t *db, rows_op_t *op, const facts_t *t)
{
    int            rc;
    facts_file_t   f;
    sqlite3_stmt  *st;

    if (facts_int(t, SB_T_HTTP_STATUS, 0) == 200
        && facts_has(t, SB_T_SHA256))
    {
        /* the whole file passed in the answer */
        memset(&f, 0, sizeof(f));
        f.size = facts_int(t, SB_T_BYTES_OUT, -1);
        f.sha256 = t->v[SB_T_SHA256];
        f.mode = -1;
        rows_try(rc, rows_file_set(db, op, 0, &f));
    }

    st = store_stmt(db, ROWS_FILE_AFTER, "update file_operations set"
                    " (after_size, after_hash) = (select size, sha256 from"
                    " gateway_files where event_id = ?1 and n = 0)"
                    " where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    return store_run(st);
}


int
rows_side(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end, bool insert)
{
    int     rc;
    bool    found;
    size_t  i;

    rows_try(rc, rows_command(db, op, t, end, insert));

    for (i = 0; i < t->nfiles; i++) {

        found = false;

        if (!insert && op->nfiles) {
            rows_try(rc, rows_file_again(db, op, &t->files[i], &found));
        }

        if (found) {
            continue;
        }

        if (op->nfiles == 0) {
            rows_try(rc, rows_file_operation(db, op, t, &t->files[i]));
        }

        rows_try(rc, rows_file(db, op, &t->files[i]));
    }

    if (end && op->nfiles && sb_eq(end->status, sb_lit("succeeded"))) {
        return rows_file_after(db, op, t);
    }

    return SQLITE_OK;
}


int
rows_detach(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *first)
{
    uint64_t              at_us;
    sqlite3_stmt         *st;
    const rows_record_t  *r;

    at_us = 0;

    for (r = first; r; r = r->next) {
        if (r->r.frame.type == SB_F_END) {
            at_us = r->r.frame.time_us;
        }
    }

    st = store_stmt(db, ROWS_DETACHED, "insert or ignore into gateway_detached("
                    "event_id, command_id, since, reason, result)"
                    " values(?1, ?2, ?3, ?4, ?5)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, t->v[SB_T_COMMAND_ID]);
    store_bind_time(st, 3, at_us);
    store_bind_text(st, 4, t->v[SB_T_REASON]);
    store_bind_text(st, 5, t->v[SB_T_RESULT]);

    return store_run(st);
}


int
rows_unhold(store_db_t *db, rows_op_t *op)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_UNHOLD, "delete from gateway_held where"
                    " event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    return store_run(st);
}
