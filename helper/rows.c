#include "rows.h"

#include "facts.h"
#include "id.h"
#include "log.h"
#include "rows_end.h"
#include "rows_pty.h"
#include "versions.h"
#include "versions_parts.h"

#include <stdio.h>
#include <stdlib.h>


void
rows_change(store_db_t *db, const char *id, const uint8_t event[16],
    const char *type, uint64_t at_us)
{
    bulk_row(db->bulk, BULK_CHANGE);
    bulk_text(db->bulk, sb_str(id, strlen(id)));
    bulk_id(db->bulk, event);
    bulk_static(db->bulk, type);
    bulk_time(db->bulk, at_us);
}


void
rows_record(store_db_t *db, const uint8_t id[16], uint64_t cursor)
{
    bulk_row(db->bulk, BULK_RECORD);
    bulk_id(db->bulk, id);
    bulk_int(db->bulk, db->next_seq++);
    bulk_int(db->bulk, (int64_t) cursor);
}


bool
rows_recorded(store_db_t *db, const uint8_t id[16])
{
    bool           have;
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_RECORD_FIND, "select 1 from gateway_records where"
                    " event_id = ?1");
    if (st == NULL) {
        /* a file that cannot be read is found out by what is written next */
        return true;
    }

    store_bind_id(st, 1, id);
    have = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_reset(st);

    return have;
}


static void
rows_created(store_db_t *db, const uint8_t id[16], uint64_t at_us)
{
    char  text[SB_UUID_LEN + 16];

    sb_uuid_text(text, id);
    (void) strcpy(text + SB_UUID_LEN, ":created");

    rows_change(db, text, id, "created", at_us);
}


/* What the file knows of an operation whose beginning is not at hand. */
static int
rows_load(store_db_t *db, rows_op_t *op)
{
    int            rc, stream;
    const char    *text;
    sqlite3_stmt  *st;

    op->started = false;
    op->pending = false;
    op->ord = 0;
    op->nfiles = 0;
    memset(op->chunk, 0, sizeof(op->chunk));
    memset(op->bytes, 0, sizeof(op->bytes));

    st = store_stmt(db, ROWS_STATUS,
            "select (select status from history_events where event_id = ?1),"
            " (select max(n) + 1 from gateway_files where event_id = ?1),"
            " (select max(ord) + 1 from gateway_output where event_id = ?1),"
            " (select cursor from gateway_pending where event_id = ?1)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        op->started = text && strcmp(text, "started") == 0;
        op->nfiles = sqlite3_column_int64(st, 1);
        op->ord = sqlite3_column_int64(st, 2);
        op->pending = sqlite3_column_type(st, 3) != SQLITE_NULL;
        op->pending_at = (uint64_t) sqlite3_column_int64(st, 3);
        rc = SQLITE_OK;
    }

    (void) sqlite3_reset(st);

    if (rc == SQLITE_OK) {
        rc = rows_pty_load(db, op);
    }

    if (rc != SQLITE_OK || op->ord == 0) {
        op->loaded = (rc == SQLITE_OK);
        return rc;
    }

    st = store_stmt(db, ROWS_LOAD, "select stream, max(chunk_index) + 1,"
                    " sum(length(data)) from command_output_chunks"
                    " where event_id = ?1 group by stream");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        stream = text && strcmp(text, "stderr") == 0;
        op->chunk[stream] = sqlite3_column_int64(st, 1);
        op->bytes[stream] = sqlite3_column_int64(st, 2);
    }

    (void) sqlite3_reset(st);

    op->loaded = (rc == SQLITE_DONE);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


static void
rows_bind_int(sqlite3_stmt *st, int n, const facts_t *t, uint16_t tag)
{
    if (facts_has(t, tag) && t->v[tag].len == 8) {
        sqlite3_bind_int64(st, n, facts_int(t, tag, 0));
    }
}


/* When it began: the worker may tell it later than it was. */
static uint64_t
rows_begun(const rows_record_t *begin)
{
    return sb_field_u64(&begin->r.frame, SB_T_TIME, begin->r.frame.time_us);
}


/* --- inserting ---------------------------------------------------------- */

static void
rows_bulk_int(bulk_t *b, const facts_t *t, uint16_t tag)
{
    if (facts_has(t, tag) && t->v[tag].len == 8) {
        bulk_int(b, facts_int(t, tag, 0));

    } else {
        bulk_null(b);
    }
}


static void
rows_insert_event(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *begin, const rows_end_t *end, chain_rows_t *rows)
{
    bulk_t    *b;
    sb_str_t   v;

    b = db->bulk;
    rows->event = bulk_count(b, BULK_EVENT);
    rows->record = bulk_count(b, BULK_RECORD);
    rows->seq = db->next_seq;
    rows->clears = bulk_clears(b);

    bulk_row(b, BULK_EVENT);
    bulk_id(b, op->id);
    bulk_static(b, SCHEMA_PROVIDER_KEY);
    bulk_static(b, db->sandbox);
    bulk_static(b, db->instance);

    v = t->v[SB_T_SOURCE];
    bulk_text(b, v.len ? v : sb_lit("gateway"));

    v = t->v[SB_T_ACTOR_TYPE];
    bulk_text(b, v.len ? v : sb_lit("system"));
    bulk_text(b, t->v[SB_T_ACTOR_ID]);
    bulk_text(b, t->v[SB_T_THREAD]);
    bulk_text(b, t->v[SB_T_RUN]);
    bulk_text(b, t->v[SB_T_CORRELATION]);
    bulk_text(b, t->v[SB_T_TYPE].len ? t->v[SB_T_TYPE] : sb_lit("unknown"));

    if (end) {
        bulk_text(b, end->status);
        bulk_time(b, rows_begun(begin));
        bulk_time(b, end->at_us);
        bulk_int(b, end->duration_ms);

    } else {
        bulk_static(b, "started");
        bulk_time(b, rows_begun(begin));
        bulk_null(b);
        bulk_null(b);
    }

    bulk_text(b, rows_request(t));
    bulk_text(b, end ? end->result : sb_str(NULL, 0));

    op->started = (end == NULL);

    rows_record(db, op->id, begin->r.cursor);
    chain_note_rows(&db->chain, CHAIN_BEGIN, op->id, rows, NULL);
}


static void
rows_insert_wire(store_db_t *db, rows_op_t *op, const facts_t *t,
    bool foldable, chain_rows_t *rows)
{
    bulk_t    *b;
    unsigned   i;

    static const uint16_t  texts[] = {
        SB_T_CLIENT, SB_T_AGENT, SB_T_REQUEST_ID, SB_T_IDENTITY, SB_T_PARENT,
        SB_T_RECORD, SB_T_ROUTE, SB_T_UPSTREAM, SB_T_ERROR_CODE, SB_T_REASON
    };
    static const uint16_t  numbers[] = {
        SB_T_HTTP_STATUS, SB_T_UPSTREAM_STATUS, SB_T_BYTES_IN, SB_T_BYTES_OUT,
        SB_T_DURATION_US, SB_T_FILES_TOTAL
    };

    b = db->bulk;
    rows->wire = bulk_count(b, BULK_WIRE);

    bulk_row(b, BULK_WIRE);
    bulk_id(b, op->id);

    if (strcmp(db->dir, SCHEMA_GATEWAY) == 0) {
        bulk_text(b, t->v[SB_T_SANDBOX]);

    } else {
        bulk_null(b);
    }

    bulk_text(b, t->v[SB_T_METHOD]);
    bulk_text(b, t->v[SB_T_PATH]);
    rows_bulk_int(b, t, SB_T_PORT);

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bulk_text(b, t->v[texts[i]]);
    }

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        rows_bulk_int(b, t, numbers[i]);
    }

    bulk_int(b, foldable);
}


/* Facts about the wire that came later: only what is said now replaces what was
 * there. */
static int
rows_wire(store_db_t *db, rows_op_t *op, const facts_t *t)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_WIRE_SET, "update gateway_wire set"
            " sandbox = coalesce(?2, sandbox),"
            " method = coalesce(?3, method), path = coalesce(?4, path),"
            " port = coalesce(?5, port), client = coalesce(?6, client),"
            " agent = coalesce(?7, agent),"
            " request_id = coalesce(?8, request_id),"
            " identity = coalesce(?9, identity),"
            " parent = coalesce(?10, parent),"
            " record = coalesce(?11, record), route = coalesce(?12, route),"
            " upstream = coalesce(?13, upstream),"
            " error_code = coalesce(?14, error_code),"
            " reason = coalesce(?15, reason),"
            " http_status = coalesce(?16, http_status),"
            " upstream_status = coalesce(?17, upstream_status),"
            " bytes_in = coalesce(?18, bytes_in),"
            " bytes_out = coalesce(?19, bytes_out),"
            " duration_us = coalesce(?20, duration_us),"
            " files_total = coalesce(?21, files_total)"
            " where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    if (strcmp(db->dir, SCHEMA_GATEWAY) == 0) {
        store_bind_text(st, 2, t->v[SB_T_SANDBOX]);
    }

    store_bind_text(st, 3, t->v[SB_T_METHOD]);
    store_bind_text(st, 4, t->v[SB_T_PATH]);
    rows_bind_int(st, 5, t, SB_T_PORT);
    store_bind_text(st, 6, t->v[SB_T_CLIENT]);
    store_bind_text(st, 7, t->v[SB_T_AGENT]);
    store_bind_text(st, 8, t->v[SB_T_REQUEST_ID]);
    store_bind_text(st, 9, t->v[SB_T_IDENTITY]);
    store_bind_text(st, 10, t->v[SB_T_PARENT]);
    store_bind_text(st, 11, t->v[SB_T_RECORD]);
    store_bind_text(st, 12, t->v[SB_T_ROUTE]);
    store_bind_text(st, 13, t->v[SB_T_UPSTREAM]);
    store_bind_text(st, 14, t->v[SB_T_ERROR_CODE]);
    store_bind_text(st, 15, t->v[SB_T_REASON]);
    rows_bind_int(st, 16, t, SB_T_HTTP_STATUS);
    rows_bind_int(st, 17, t, SB_T_UPSTREAM_STATUS);
    rows_bind_int(st, 18, t, SB_T_BYTES_IN);
    rows_bind_int(st, 19, t, SB_T_BYTES_OUT);
    rows_bind_int(st, 20, t, SB_T_DURATION_US);
    rows_bind_int(st, 21, t, SB_T_FILES_TOTAL);

    return store_run(st);
}


static int
rows_held(store_db_t *db, rows_op_t *op)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_HELD, "insert or ignore into gateway_held("
                    "event_id, sandbox) values(?1, ?2)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    sqlite3_bind_text(st, 2, op->held, -1, SQLITE_TRANSIENT);

    return store_run(st);
}


/* Facts that came after the beginning was written. */
static int
rows_update_event(store_db_t *db, rows_op_t *op, const facts_t *t)
{
    sqlite3_stmt  *st;

    if (!facts_has(t, SB_T_TYPE) && !facts_has(t, SB_T_REQUEST)) {
        return SQLITE_OK;
    }

    st = store_stmt(db, ROWS_FACTS, "update history_events set"
                    " operation_type = coalesce(?2, operation_type),"
                    " request_json = coalesce(?3, request_json)"
                    " where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, t->v[SB_T_TYPE]);

    if (facts_has(t, SB_T_REQUEST)) {
        store_bind_text(st, 3, rows_request(t));
    }

    return store_run(st);
}


/* --- one operation ------------------------------------------------------ */

static int
rows_write_new(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *first, const rows_record_t *begin,
    const rows_record_t *last, bool force)
{
    int                   rc;
    bool                  foldable, was_pending;
    rows_end_t            end;
    chain_rows_t          rows;
    store_fold_t          key, *f;
    const rows_record_t  *r;

    foldable = rows_foldable(op, begin);
    was_pending = op->pending;
    f = NULL;

    if (foldable) {
        rows_fold_key(&key, t);
        f = rows_fold_find(db, &key, last != NULL);

        if (f && strcmp(f->status, "started") == 0) {
            f = NULL;
        }

        if (f && last == NULL && !force) {
            return rows_pend(db, op, first, begin->r.cursor);
        }

        if (f && last && strcmp(f->code, key.code) == 0
            && sb_eq(rows_status(t), sb_str(f->status, strlen(f->status))))
        {
            rows_try(rc, rows_fold_count(db, f, last->r.frame.time_us,
                                         last->r.cursor));
            return was_pending ? rows_pending_done(db, op) : SQLITE_OK;
        }
    }

    if (!op->loaded) {
        op->ord = 0;
        op->nfiles = 0;
        memset(op->chunk, 0, sizeof(op->chunk));
        memset(op->bytes, 0, sizeof(op->bytes));
        op->term = false;
        op->term_n = 0;
        op->term_base = -1;
        op->term_to = 0;
        op->loaded = true;
    }

    if (was_pending) {
        rows_try(rc, rows_pending_done(db, op));
    }

    /* the result names output bytes, which only a dry count tells here */
    memset(&end, 0, sizeof(end));

    if (last) {
        for (r = first; r; r = r->next) {
            rows_count_output(&end, &r->r.frame);
        }

        if (db->full) {
            end.unkept = end.bytes[0] + end.bytes[1];
            end.bytes[0] = 0;
            end.bytes[1] = 0;
        }

        rc = rows_end_read(db, op, t, begin, last, &end);
        if (rc != SQLITE_OK) {
            rows_end_free(&end);
            return rc;
        }
    }

    memset(&rows, 0, sizeof(rows));
    rows_insert_event(db, op, t, begin, last ? &end : NULL, &rows);
    rows_insert_wire(db, op, t, foldable, &rows);
    rows_insert_side(db, op, t, last ? &end : NULL, &rows);

    rc = SQLITE_OK;

    if (op->held && !(last && rows_refused(t))) {
        rc = rows_held(db, op);
    }

    rows_created(db, op->id, rows_begun(begin));

    if (rc == SQLITE_OK) {
        rc = rows_output(db, op, first, &rows);
    }

    if (rc == SQLITE_OK && facts_has(t, SB_T_DETACHED) && last == NULL) {
        rc = rows_detach(db, op, t, first);
    }

    if (rc == SQLITE_OK && last) {
        rc = rows_completed(db, op, &end, &rows);
    }

    if (rc == SQLITE_OK) {
        if (foldable) {
            rows_fold_remember(db, op, &key, last ? end.status_text
                                                  : "started");
        } else {
            db->nfolds = 0;
        }
    }

    rows_end_free(&end);

    return rc;
}


static int
rows_write_more(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *first, const rows_record_t *last)
{
    int           rc;
    rows_end_t    end;

    rows_try(rc, rows_update_event(db, op, t));
    rows_try(rc, rows_wire(db, op, t));
    rows_try(rc, rows_output(db, op, first, NULL));

    memset(&end, 0, sizeof(end));

    if (last) {
        rc = rows_end_read(db, op, t, NULL, last, &end);
    }

    if (rc == SQLITE_OK) {
        rc = rows_side(db, op, t, last ? &end : NULL);
    }

    if (rc == SQLITE_OK && facts_has(t, SB_T_DETACHED) && last == NULL) {
        rc = rows_detach(db, op, t, first);
    }

    if (rc == SQLITE_OK && last && op->held && rows_refused(t)) {
        rc = rows_unhold(db, op);
    }

    if (rc == SQLITE_OK && last) {
        rc = rows_end_write(db, op, &end);

        if (rc == SQLITE_OK) {
            rc = rows_completed(db, op, &end, NULL);
        }

        rows_fold_ended(db, op, t, end.status_text);
    }

    rows_end_free(&end);

    return rc;
}


/* The whole of a terminal in one batch: its end is written behind the rest, for
 * only the file can tell how much of it is new. */
static int
rows_write_terminal(store_db_t *db, rows_op_t *op, rows_record_t *first,
    rows_record_t *before)
{
    int             rc;
    rows_record_t  *last;

    last = before->next;
    before->next = NULL;

    rc = rows_write(db, op, first, true);

    before->next = last;

    if (rc == SQLITE_OK) {
        rc = store_flush(db);
    }

    return rc == SQLITE_OK ? rows_write(db, op, last, true) : rc;
}


int
rows_write(store_db_t *db, rows_op_t *op, const rows_record_t *first,
    bool force)
{
    int                   rc;
    void                 *mem;
    facts_t               t;
    sb_str_t              v;
    rows_record_t        *list, *r, *before;
    const rows_record_t  *begin, *last;

    mem = NULL;
    list = (rows_record_t *) (uintptr_t) first;
    begin = NULL;

    if (first && first->r.frame.type == SB_F_BEGIN) {
        begin = first;
    }

    if (begin == NULL) {
        if (!op->loaded) {
            rows_try(rc, rows_load(db, op));
        }

        if (op->pending) {
            rows_try(rc, rows_unpend(db, op, &list, &mem));
            begin = list && list->r.frame.type == SB_F_BEGIN ? list : NULL;
        }

        if (begin == NULL && !op->started) {
            log_minutely(LOG_WARN, "records of an operation in %s that has not"
                         " begun or is over are left out", db->dir);
            free(mem);
            return SQLITE_OK;
        }
    }

    memset(&t, 0, sizeof(t));
    last = NULL;
    before = NULL;

    for (r = list; begin && r && r->next; r = r->next) {

        if (rows_pty_frame(&r->r.frame)) {
            before = r;
        }

        if (before && r->next->r.frame.type == SB_F_END) {
            rc = rows_write_terminal(db, op, list, r);
            free(mem);
            return rc;
        }
    }

    for (r = list; r; r = r->next) {

        if (r->r.frame.type == SB_F_OUTPUT
            || r->r.frame.type == SB_F_CONTENT)
        {
            continue;
        }

        facts_add(&t, &r->r.frame);

        if (r->r.frame.type == SB_F_END
            && !sb_field_get(&r->r.frame, SB_T_DETACHED, &v))
        {
            /* a completion that follows in the same batch ends it for good */
            last = r;
            break;
        }
    }

    if (begin) {
        rc = rows_write_new(db, op, &t, list, begin, last, force);

    } else {
        rc = rows_write_more(db, op, &t, list, last);
    }

    if (rc == SQLITE_OK && last) {
        op->started = false;
    }

    if (rc == SQLITE_OK) {
        rc = last ? versions_end(db, op, &t, list)
                  : versions_parts_keep(db, op, list);
    }

    facts_free(&t);
    free(mem);

    return rc;
}
