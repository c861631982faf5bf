#include "own.h"

#include "id.h"
#include "rows.h"

#include <stdio.h>


static void
own_changes(store_db_t *db, const uint8_t id[16], const char *status,
    uint64_t from_us, uint64_t to_us)
{
    char  text[SB_UUID_LEN + 64];

    sb_uuid_text(text, id);

    if (from_us) {
        (void) strcpy(text + SB_UUID_LEN, ":created");
        rows_change(db, text, id, "created", from_us);
    }

    if (strcmp(status, "started") != 0) {
        (void) snprintf(text + SB_UUID_LEN, sizeof(text) - SB_UUID_LEN,
                        ":completed:%s", status);
        rows_change(db, text, id, "completed", to_us);
    }
}


int
own_event(store_db_t *db, const own_event_t *e, uint8_t id[16])
{
    bulk_t      *b;
    const char  *status;
    sb_uuid7_t   gen;

    memset(&gen, 0, sizeof(gen));
    sb_uuid7(&gen, e->from_us, id);

    b = db->bulk;
    status = e->status ? e->status : "succeeded";

    bulk_row(b, BULK_EVENT);
    bulk_id(b, id);
    bulk_static(b, SCHEMA_PROVIDER_KEY);
    bulk_static(b, db->sandbox);
    bulk_static(b, db->instance);
    bulk_static(b, "gateway");
    bulk_text(b, e->actor_type ? sb_str(e->actor_type, strlen(e->actor_type))
                               : sb_lit("system"));
    bulk_text(b, e->actor_id ? sb_str(e->actor_id, strlen(e->actor_id))
                             : sb_str(NULL, 0));

    /* thread, run, correlation */
    bulk_null(b);
    bulk_null(b);
    bulk_null(b);

    bulk_static(b, e->type);
    bulk_static(b, status);
    bulk_time(b, e->from_us);

    if (strcmp(status, "started") == 0) {
        bulk_null(b);
        bulk_null(b);

    } else {
        bulk_time(b, e->to_us);
        bulk_int(b, (int64_t) ((e->to_us - e->from_us) / 1000));
    }

    bulk_text(b, e->request.len ? e->request : sb_lit("{}"));
    bulk_text(b, e->result.len ? e->result : sb_str(NULL, 0));

    rows_record(db, id, db->applied);
    chain_note(&db->chain, CHAIN_BEGIN, id);

    if (strcmp(status, "started") != 0) {
        chain_note(&db->chain, CHAIN_END, id);
    }

    own_changes(db, id, status, e->from_us, e->to_us);

    /* polls are not counted past it */
    db->nfolds = 0;

    return SQLITE_OK;
}


int
own_end(store_db_t *db, const uint8_t id[16], const char *status,
    uint64_t to_us, sb_str_t result)
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, store_flush(db));

    rows_try(rc, sqlite3_prepare_v2(db->db,
            "update history_events set status = ?2, completed_at = ?3,"
            " duration_ms = max(0, cast((julianday(?3) -"
            " julianday(occurred_at)) * 86400000 as integer)),"
            " result_json = ?4 where event_id = ?1 and status = 'started'",
            -1, &st, NULL));

    store_bind_id(st, 1, id);
    sqlite3_bind_text(st, 2, status, -1, SQLITE_STATIC);
    store_bind_time(st, 3, to_us);
    store_bind_text(st, 4, result.len ? result : sb_str(NULL, 0));

    rc = sqlite3_step(st);
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    (void) sqlite3_finalize(st);

    if (rc == SQLITE_OK) {
        chain_note(&db->chain, CHAIN_END, id);
        own_changes(db, id, status, 0, to_us);
    }

    return rc;
}


int
own_open(store_db_t *db, const char *type, uint8_t id[16], bool *found)
{
    int            rc;
    const char    *text;
    sqlite3_stmt  *st;

    *found = false;

    rows_try(rc, sqlite3_prepare_v2(db->db, "select event_id from"
            " history_events where operation_type = ?1 and status = 'started'"
            " and source = 'gateway' order by seq desc limit 1", -1, &st,
            NULL));

    sqlite3_bind_text(st, 1, type, -1, SQLITE_STATIC);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        *found = text && sb_uuid_parse(id, sb_str(text, strlen(text))) == SB_OK;
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}
