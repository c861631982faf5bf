/* Rows that belong to no operation of a worker. */

#include "rows.h"

#include "facts.h"
#include "id.h"
#include "result.h"

#include <stdio.h>


typedef struct {
    uint8_t    id[16];
    int64_t    operations;
    int64_t    output_bytes;
    uint64_t   from;
    uint64_t   to;
    sb_str_t   reason;
    sb_str_t   operation;
} rows_gap_t;


static sb_rc_t
rows_gap_result(const rows_gap_t *g, sb_buf_t *out)
{
    char      from[SB_TIME_LEN + 1], to[SB_TIME_LEN + 1];
    result_t  r;

    sb_time_text(from, g->from);
    sb_time_text(to, g->to);

    r.n = 0;
    result_int(&r, "operations", g->operations);
    result_int(&r, "output_bytes", g->output_bytes);
    result_str(&r, "from", sb_str(from, SB_TIME_LEN));
    result_str(&r, "to", sb_str(to, SB_TIME_LEN));
    result_str(&r, "reason", g->reason);
    result_str(&r, "operation_id", g->operation);

    return result_write(&r, sb_str(NULL, 0), out);
}


static void
rows_gap_event(store_db_t *db, const rows_gap_t *g, sb_str_t result)
{
    bulk_t    *b;
    unsigned   i;

    b = db->bulk;

    bulk_row(b, BULK_EVENT);
    bulk_id(b, g->id);
    bulk_static(b, SCHEMA_PROVIDER_KEY);
    bulk_static(b, db->sandbox);
    bulk_static(b, db->instance);
    bulk_static(b, "gateway");
    bulk_static(b, "system");

    /* actor, thread, run, correlation */
    for (i = 0; i < 4; i++) {
        bulk_null(b);
    }

    bulk_static(b, "gateway.gap");
    bulk_static(b, "unknown");
    bulk_time(b, g->from);
    bulk_time(b, g->to);
    bulk_int(b, (int64_t) ((g->to - g->from) / 1000));
    bulk_static(b, "{}");
    bulk_text(b, result);
}


static int
rows_gap_facts(store_db_t *db, const rows_gap_t *g, uint64_t cursor)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_GAP_FACTS, "insert into gateway_gaps(event_id,"
                    " cursor, operations, output_bytes, from_at, to_at,"
                    " reason) values(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, g->id);
    sqlite3_bind_int64(st, 2, (sqlite3_int64) cursor);
    sqlite3_bind_int64(st, 3, g->operations);
    sqlite3_bind_int64(st, 4, g->output_bytes);
    store_bind_time(st, 5, g->from);
    store_bind_time(st, 6, g->to);
    store_bind_text(st, 7, g->reason);

    return store_run(st);
}


static int
rows_gap_write(store_db_t *db, const rows_gap_t *g, uint64_t cursor)
{
    int       rc;
    char      id[SB_UUID_LEN + 1], text[SB_UUID_LEN + 32];
    sb_buf_t  result;

    memset(&result, 0, sizeof(result));
    result.max = RESULT_MAX;

    if (rows_gap_result(g, &result) != SB_OK) {
        sb_buf_free(&result);
        return SQLITE_NOMEM;
    }

    rows_gap_event(db, g, sb_str(result.data, result.len));
    sb_buf_free(&result);

    rows_record(db, g->id, cursor);
    rows_try(rc, rows_gap_facts(db, g, cursor));

    sb_uuid_text(id, g->id);
    (void) snprintf(text, sizeof(text), "%s:created", id);
    rows_change(db, text, g->id, "created", g->from);

    (void) snprintf(text, sizeof(text), "%s:completed:unknown", id);
    rows_change(db, text, g->id, "completed", g->to);

    db->nfolds = 0;
    chain_note(&db->chain, CHAIN_GAP, g->id);

    return SQLITE_OK;
}


int
rows_gap(store_db_t *db, const journal_record_t *r)
{
    int         rc;
    char        operation[SB_UUID_LEN + 1];
    facts_t     t;
    rows_gap_t  g;
    sb_uuid7_t  gen;

    static const uint8_t  none[16];

    memset(&t, 0, sizeof(t));
    memset(&g, 0, sizeof(g));
    facts_add(&t, &r->frame);

    g.operations = facts_int(&t, SB_T_COUNT, 0);
    g.output_bytes = facts_int(&t, SB_T_OUTPUT_LOST, 0);
    g.from = (uint64_t) facts_int(&t, SB_T_TIME, (int64_t) r->frame.time_us);
    g.to = (uint64_t) facts_int(&t, SB_T_TIME_END, (int64_t) r->frame.time_us);
    g.to = g.to < g.from ? g.from : g.to;
    g.reason = t.v[SB_T_REASON];

    if (memcmp(r->frame.op, none, 16) != 0) {
        sb_uuid_text(operation, r->frame.op);
        g.operation = sb_str(operation, SB_UUID_LEN);
    }

    memset(&gen, 0, sizeof(gen));
    sb_uuid7(&gen, g.from, g.id);

    rc = rows_gap_write(db, &g, r->cursor);
    facts_free(&t);

    return rc;
}


int
rows_lost(store_db_t *db, const char *reason, uint64_t cursor)
{
    return rows_failed(db, NULL, 0, reason, cursor);
}


int
rows_failed(store_db_t *db, const uint8_t id[16], int64_t operations,
    const char *reason, uint64_t cursor)
{
    char        operation[SB_UUID_LEN + 1];
    rows_gap_t  g;
    sb_uuid7_t  gen;

    memset(&g, 0, sizeof(g));

    if (id) {
        sb_uuid_text(operation, id);
        g.operation = sb_str(operation, SB_UUID_LEN);
    }

    g.operations = operations;
    g.from = sb_now_us();
    g.to = g.from;
    g.reason = sb_str(reason, strlen(reason));

    memset(&gen, 0, sizeof(gen));
    sb_uuid7(&gen, g.from, g.id);

    return rows_gap_write(db, &g, cursor);
}


bool
rows_gap_told(store_db_t *db, const char *reason, uint64_t cursor)
{
    bool           told;
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_GAP_FIND, "select 1 from gateway_gaps where"
                    " cursor = ?1 and reason = ?2");
    if (st == NULL) {
        return false;
    }

    sqlite3_bind_int64(st, 1, (sqlite3_int64) cursor);
    store_bind_text(st, 2, sb_str(reason, strlen(reason)));
    told = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_reset(st);

    return told;
}


/* The stretch of the journal stays behind when the gap is told: see
 * rows_gone_known(). */
int
rows_unkept(store_db_t *db, uint64_t at_us, uint64_t cursor)
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, sqlite3_prepare_v2(db->db,
            "insert into gateway_state(key, value) values('unkept', 1),"
            " ('unkept_from', ?1), ('unkept_to', ?1), ('unkept_first', ?2),"
            " ('unkept_last', ?2) on conflict(key) do update set value ="
            " case key when 'unkept' then value + 1"
            " when 'unkept_from' then min(value, ?1)"
            " when 'unkept_to' then max(value, ?1)"
            " when 'unkept_first' then min(value, ?2)"
            " else max(value, ?2) end", -1, &st, NULL));

    sqlite3_bind_int64(st, 1, (sqlite3_int64) at_us);
    sqlite3_bind_int64(st, 2, (sqlite3_int64) cursor);
    rc = sqlite3_step(st);
    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


bool
rows_gone_known(store_db_t *db, uint64_t cursor)
{
    bool           known;
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_GONE_FIND, "select exists(select 1 from"
                    " gateway_state f join gateway_state l where"
                    " (f.key, l.key) in (values('unkept_first', 'unkept_last'),"
                    " ('purged_first', 'purged_last'))"
                    " and ?1 between f.value and l.value)");
    if (st == NULL) {
        /* as rows_recorded() */
        return true;
    }

    sqlite3_bind_int64(st, 1, (sqlite3_int64) cursor);
    known = sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int(st, 0);
    (void) sqlite3_reset(st);

    return known;
}


int
rows_unkept_gap(store_db_t *db, int64_t operations, uint64_t from_us,
    uint64_t to_us)
{
    int         rc;
    rows_gap_t  g;
    sb_uuid7_t  gen;

    memset(&g, 0, sizeof(g));
    g.operations = operations;
    g.from = from_us;
    g.to = to_us < from_us ? from_us : to_us;
    g.reason = sb_lit("history_full");

    memset(&gen, 0, sizeof(gen));
    sb_uuid7(&gen, g.from, g.id);

    rows_try(rc, sqlite3_exec(db->db, "delete from gateway_state where key in"
                              " ('unkept', 'unkept_from', 'unkept_to')", NULL,
                              NULL, NULL));

    return rows_gap_write(db, &g, db->applied);
}


bool
rows_name(sb_str_t *name)
{
    size_t  i, chars;

    while (name->len && (unsigned char) name->data[0] <= 0x20) {
        name->data++;
        name->len--;
    }

    while (name->len && (unsigned char) name->data[name->len - 1] <= 0x20) {
        name->len--;
    }

    chars = 0;

    for (i = 0; i < name->len; i++) {
        if ((unsigned char) name->data[i] < 0x20 || name->data[i] == 0x7f) {
            return false;
        }

        chars += ((unsigned char) name->data[i] & 0xc0) != 0x80;
    }

    return chars >= 1 && chars <= 128;
}


static int
rows_key(store_db_t *db, const char *key, sb_str_t value, uint64_t at_us)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_STATE, "insert or replace into gateway_state(key,"
                    " value) values(?1, ?2)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);

    if (value.data) {
        store_bind_text(st, 2, value);

    } else {
        store_bind_time(st, 2, at_us);
    }

    return store_run(st);
}


int
rows_state(store_db_t *db, sb_str_t state, sb_str_t name, uint64_t at_us)
{
    int            rc;
    sqlite3_stmt  *st;

    if (state.len) {
        rows_try(rc, rows_key(db, "state", state, 0));
        rows_try(rc, rows_key(db, "state_at", sb_str(NULL, 0), at_us));
    }

    if (!rows_name(&name)) {
        return SQLITE_OK;
    }

    st = store_stmt(db, ROWS_NAME, "insert or replace into history_meta(key,"
                    " value) values('sandbox_name', ?1)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_text(st, 1, name);

    return store_run(st);
}
