#include "rows_end.h"

#include "id.h"
#include "operation_table.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>


const sb_op_t *
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
            stream = (int) sb_value_u64(v, 0);

        } else if (tag == SB_T_DATA && (stream == 0 || stream == 1)) {
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
            " d.event_id is not null, d.result, d.reason,"
            " coalesce(c.history_storage_state, 'complete') != 'complete'"
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
        end->cut = sqlite3_column_int(st, 8) != 0;
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
    int64_t        dropped, lost, total, unkept;
    unsigned       i;
    const sb_op_t  *known;

    static const char  *names[2][2] = {
        { "stdout_bytes", "stdout_total_bytes" },
        { "stderr_bytes", "stderr_total_bytes" }
    };
    static const uint16_t  tags[2] = { SB_T_STDOUT_TOTAL, SB_T_STDERR_TOTAL };

    dropped = facts_int(t, SB_T_OUTPUT_DROPPED, 0);
    lost = facts_int(t, SB_T_OUTPUT_LOST, 0);

    unkept = op->unkept + end->unkept;
    end->cut = end->cut || unkept > 0;
    dropped += unkept;

    end->complete = (dropped == 0 && lost == 0 && !end->cut && !end->detached
                     && !sb_eq(end->status, sb_lit("unknown")));

    if (lost > 0 || sb_eq(t->v[SB_T_REASON], sb_lit("worker_died"))
        || sb_eq(t->v[SB_T_REASON], sb_lit("gateway_restarted")))
    {
        end->storage = "partial";

    } else if (end->cut) {
        end->storage = op->bytes[0] + op->bytes[1] + end->bytes[0]
                       + end->bytes[1] ? "truncated_by_policy"
                                       : "metadata_only";

    } else if (dropped > 0) {
        end->storage = "truncated_by_policy";

    } else if (end->detached) {
        end->storage = op->bytes[0] + op->bytes[1] + end->bytes[0]
                       + end->bytes[1] ? "partial" : "metadata_only";
    }

    if (!end->command && op->ord == 0 && !end->cut
        && end->bytes[0] + end->bytes[1] == 0)
    {
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

    if (end->cut) {
        result_str(res, "output_dropped_by", sb_lit("history_full"));
    }

    if (lost) {
        result_int(res, "output_lost_bytes", lost);
    }

    result_bool(res, "output_complete", end->complete);
    result_str(res, "history_storage_state",
               sb_str(end->storage, strlen(end->storage)));

    known = rows_known(end->type ? sb_str(end->type, strlen(end->type))
                                 : t->v[SB_T_TYPE]);

    if (known && (known->flags & SB_OPF_STREAM)
        && sb_op_index(known) != SB_OP_CODE_EXECUTE)
    {
        /* execd's events carry lines without their ends, but for kernels */
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
    result_str(&res, "verdict", t->v[SB_T_VERDICT]);
    result_str(&res, "verdict_rule", t->v[SB_T_RULE]);
    result_str(&res, "verdict_path", t->v[SB_T_RULE_PATH]);

    if (facts_has(t, SB_T_UNREAD)) {
        result_bool(&res, "verdict_unread", true);
    }

    if (facts_has(t, SB_T_WAITED_US)) {
        result_int(&res, "lock_waited_us", facts_int(t, SB_T_WAITED_US, 0));
    }

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

    if (facts_int(t, SB_T_REDACTED, 0) > 0) {
        result_int(&res, "redacted", facts_int(t, SB_T_REDACTED, 0));
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
rows_completed(store_db_t *db, rows_op_t *op, const rows_end_t *end,
    const chain_rows_t *rows)
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

    rows_change(db, text, op->id, "completed", end->at_us);

    if (rows) {
        chain_note_rows(&db->chain, CHAIN_END, op->id, rows, NULL);

    } else {
        chain_note(&db->chain, CHAIN_END, op->id);
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
