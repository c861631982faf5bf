#include "move.h"

#include "id.h"
#include "rows.h"

#include <stdlib.h>


typedef struct {
    uint8_t   (*ids)[16];
    uint64_t   *cursors;
    size_t      n;
    size_t      alloc;
    size_t      named;          /* of them may be met again */
} move_list_t;

#define MOVE_COLUMNS                                                         \
    "source, actor_type, actor_id, thread_id, run_id, correlation_id,"       \
    " operation_type, status, occurred_at, completed_at, duration_ms,"       \
    " request_json, result_json, schema_version"

#define MOVE_FILES                                                           \
    "event_id, n, path, old_path, size, sha256, mode, flags, before,"        \
    " before_size, before_sha256, content"

/* ?1 event, ?2 sandbox, ?3 instance */
static const char  *move_copies[] = {
    "insert into main.history_events(event_id, provider_key, sandbox_id,"
    " sandbox_instance_id, " MOVE_COLUMNS ") select event_id, provider_key,"
    " ?2, ?3, " MOVE_COLUMNS " from g.history_events where event_id = ?1",

    "insert into main.command_executions select * from g.command_executions"
    " where event_id = ?1",

    "insert into main.command_output_chunks(event_id, stream, chunk_index,"
    " data, encoding, original_size, created_at) select event_id, stream,"
    " chunk_index, data, encoding, original_size, created_at from"
    " g.command_output_chunks where event_id = ?1 order by id",

    "insert into main.file_operations select * from g.file_operations where"
    " event_id = ?1",

    "insert into main.gateway_wire select * from g.gateway_wire where"
    " event_id = ?1",

    "update main.gateway_wire set sandbox = null where event_id = ?1",

    "insert into main.gateway_files(" MOVE_FILES ") select " MOVE_FILES
    " from g.gateway_files where event_id = ?1",

    "insert or ignore into main.gateway_contents(sha256, size, stored,"
    " encoding, used, data) select sha256, size, stored, encoding, used, data"
    " from g.gateway_contents where sha256 in (select sha256 from"
    " g.gateway_files where event_id = ?1 union select before_sha256 from"
    " g.gateway_files where event_id = ?1)",

    "insert into main.gateway_parts select * from g.gateway_parts where"
    " event_id = ?1",

    "insert into main.gateway_output select * from g.gateway_output where"
    " event_id = ?1",

    "insert into main.gateway_folded select * from g.gateway_folded where"
    " event_id = ?1",

    "insert into main.gateway_gaps select * from g.gateway_gaps where"
    " event_id = ?1",

    "insert into main.gateway_detached select * from g.gateway_detached where"
    " event_id = ?1",

    "insert into main.gateway_terminals select * from g.gateway_terminals where"
    " event_id = ?1",

    "insert into main.gateway_terminal select * from g.gateway_terminal where"
    " event_id = ?1",

    "insert into main.history_changes(change_id, event_id, change_type,"
    " changed_at, schema_version) select change_id, event_id, change_type,"
    " changed_at, schema_version from g.history_changes where event_id = ?1"
    " order by seq"
};

/* In _gateway: ?1 event, ?2 sandbox.  Deleting the event takes its side rows
 * along. */
static const char  *move_removals[] = {
    "delete from history_changes where event_id = ?1",
    "delete from history_events where event_id = ?1",
    "update gateway_records set moved_to = ?2 where event_id = ?1"
};


static int
move_exec(sqlite3 *db, const char *sql, const uint8_t id[16],
    const char *second, const char *third)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    store_bind_id(st, 1, id);

    if (sqlite3_bind_parameter_count(st) > 1) {
        sqlite3_bind_text(st, 2, second, -1, SQLITE_STATIC);
    }

    if (sqlite3_bind_parameter_count(st) > 2) {
        sqlite3_bind_text(st, 3, third, -1, SQLITE_STATIC);
    }

    rc = sqlite3_step(st);
    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


static int
move_list_add(move_list_t *l, const char *text, uint64_t cursor)
{
    size_t     n, i;
    uint64_t  *cursors;
    uint8_t  (*ids)[16];

    if (l->n == l->alloc) {
        n = l->alloc ? l->alloc * 2 : 8;

        ids = realloc(l->ids, n * 16);
        if (ids == NULL) {
            return SQLITE_NOMEM;
        }

        l->ids = ids;

        cursors = realloc(l->cursors, n * sizeof(uint64_t));
        if (cursors == NULL) {
            return SQLITE_NOMEM;
        }

        l->cursors = cursors;
        l->alloc = n;
    }

    if (text == NULL
        || sb_uuid_parse(l->ids[l->n], sb_str(text, strlen(text))) != SB_OK)
    {
        return SQLITE_OK;
    }

    for (i = 0; i < l->named; i++) {
        if (memcmp(l->ids[i], l->ids[l->n], 16) == 0) {
            return SQLITE_OK;
        }
    }

    l->cursors[l->n++] = cursor;

    return SQLITE_OK;
}


/* The events to move, in the order of the journal. */
static int
move_list(store_db_t *gateway, const move_t *m, move_list_t *l)
{
    int            rc;
    size_t         i;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(gateway->db,
            "select event_id, cursor from gateway_records where"
            " moved_to is null and (event_id = ?2 or event_id in"
            " (select event_id from gateway_held where sandbox = ?1))"
            " order by cursor", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    /* one round for each further event, and one for what is held, which may
     * be one of them */

    for (i = 0; i <= m->nevents && rc == SQLITE_OK; i++) {

        l->named = l->n;
        (void) sqlite3_clear_bindings(st);

        if (i == m->nevents) {
            sqlite3_bind_text(st, 1, m->sandbox, -1, SQLITE_STATIC);
        } else {
            store_bind_id(st, 2, m->events[i]);
        }

        while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
            rc = move_list_add(l, (const char *) sqlite3_column_text(st, 0),
                               (uint64_t) sqlite3_column_int64(st, 1));
            if (rc != SQLITE_OK) {
                break;
            }
        }

        if (rc == SQLITE_DONE) {
            rc = SQLITE_OK;
        }

        (void) sqlite3_reset(st);
    }

    (void) sqlite3_finalize(st);

    return rc;
}


/* Each row of a terminal has its entry, wherever it stands. */
static int
move_chain_terminal(store_db_t *db, const uint8_t id[16])
{
    int            rc;
    uint8_t        digest[CHAIN_HASH];
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db->db, "select n, at || events from"
                            " main.gateway_terminal where event_id = ?1 order"
                            " by n", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    store_bind_id(st, 1, id);

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        sb_sha256(digest, sb_str(sqlite3_column_text(st, 1),
                                 (size_t) sqlite3_column_bytes(st, 1)));
        chain_note_terminal(&db->chain, id, sqlite3_column_int64(st, 0),
                            digest);
    }

    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* What the chain of the new file says of a record that came. */
static int
move_chain(store_db_t *db, const uint8_t id[16])
{
    int             rc;
    bool            ended, gap;
    sqlite3_stmt   *st;
    chain_output_t  o;

    rc = sqlite3_prepare_v2(db->db,
            "select status <> 'started', operation_type = 'gateway.gap',"
            " (select coalesce(max(chunk_index), -1) from"
            " main.command_output_chunks where event_id = ?1 and stream ="
            " 'stdout'), (select coalesce(max(chunk_index), -1) from"
            " main.command_output_chunks where event_id = ?1 and stream ="
            " 'stderr'), (select coalesce(max(ord), -1) from"
            " main.gateway_output where event_id = ?1) from"
            " main.history_events where event_id = ?1", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    store_bind_id(st, 1, id);
    rc = sqlite3_step(st);

    if (rc != SQLITE_ROW) {
        (void) sqlite3_finalize(st);
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    ended = sqlite3_column_int(st, 0) != 0;
    gap = sqlite3_column_int(st, 1) != 0;

    memset(&o, 0, sizeof(o));
    o.last[0] = sqlite3_column_int64(st, 2);
    o.last[1] = sqlite3_column_int64(st, 3);
    o.ord_last = sqlite3_column_int64(st, 4);

    (void) sqlite3_finalize(st);

    if (gap) {
        chain_note(&db->chain, CHAIN_GAP, id);
        return SQLITE_OK;
    }

    chain_note(&db->chain, CHAIN_BEGIN, id);

    if (o.last[0] >= 0 || o.last[1] >= 0) {
        chain_note_output(&db->chain, id, &o);
    }

    rc = move_chain_terminal(db, id);

    if (rc == SQLITE_OK && ended) {
        chain_note(&db->chain, CHAIN_END, id);
    }

    return rc;
}


static int
move_event(store_db_t *db, const move_t *m, const uint8_t id[16],
    uint64_t cursor)
{
    int            rc;
    bool           have;
    size_t         i;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db->db, "select 1 from main.gateway_records where"
                            " event_id = ?1", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    store_bind_id(st, 1, id);
    have = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_finalize(st);

    if (have) {
        return SQLITE_OK;
    }

    for (i = 0; i < sizeof(move_copies) / sizeof(move_copies[0]); i++) {
        rc = move_exec(db->db, move_copies[i], id, m->sandbox, db->instance);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }

    rows_record(db, id, cursor);

    return move_chain(db, id);
}


int
move_file(store_db_t *db, const move_t *m)
{
    int                rc;
    char               now[SB_TIME_LEN + 1];
    schema_identity_t  id;

    rows_try(rc, schema_create(db->db));

    sb_time_text(now, sb_now_us());
    id.sandbox = m->sandbox;
    id.instance = m->instance;
    id.name = m->name;
    id.now = now;

    rows_try(rc, schema_write_meta(db->db, &id));

    return store_load(db);
}


static int
move_copy(store_db_t *db, const move_t *m, const move_list_t *l)
{
    int     rc;
    bool    fresh;
    size_t  i;

    fresh = db->fresh;

    rows_try(rc, store_begin(db));

    rc = fresh ? move_file(db, m) : SQLITE_OK;

    for (i = 0; i < l->n && rc == SQLITE_OK; i++) {
        rc = move_event(db, m, l->ids[i], l->cursors[i]);
    }

    if (rc != SQLITE_OK) {
        store_rollback(db);
        return rc;
    }

    return store_commit(db, fresh ? m->applied : 0);
}


static int
move_purge(store_db_t *gateway, const move_list_t *l)
{
    int          rc;
    char       (*texts)[SB_UUID_LEN + 1], now[SB_TIME_LEN + 1];
    size_t       i;
    const char **ids;

    texts = malloc(l->n * sizeof(texts[0]));
    ids = malloc(l->n * sizeof(ids[0]));

    if (texts == NULL || ids == NULL) {
        free(texts);
        free(ids);
        return SQLITE_NOMEM;
    }

    for (i = 0; i < l->n; i++) {
        sb_uuid_text(texts[i], l->ids[i]);
        ids[i] = texts[i];
    }

    sb_time_text(now, sb_now_us());
    rc = chain_purge(&gateway->chain, gateway->db, store_keys(gateway), ids,
                     l->n, "moved", now);

    free(texts);
    free(ids);

    return rc;
}


static int
move_remove(store_db_t *gateway, const move_t *m, const move_list_t *l)
{
    int     rc;
    size_t  i, k;

    rows_try(rc, store_begin(gateway));

    rc = move_purge(gateway, l);

    if (rc != SQLITE_OK) {
        store_rollback(gateway);
        return rc;
    }

    for (i = 0; i < l->n; i++) {
        for (k = 0; k < sizeof(move_removals) / sizeof(move_removals[0]); k++)
        {
            rc = move_exec(gateway->db, move_removals[k], l->ids[i],
                           m->sandbox, NULL);
            if (rc != SQLITE_OK) {
                store_rollback(gateway);
                return rc;
            }
        }
    }

    return store_commit(gateway, gateway->applied);
}


int
move_in(store_t *s, store_db_t *db, store_db_t *gateway, move_t *m)
{
    int            rc;
    char           path[1024];
    bool           was_fresh;
    move_list_t    l;
    sqlite3_stmt  *st;

    memset(&l, 0, sizeof(l));
    was_fresh = db->fresh;

    rc = move_list(gateway, m, &l);
    m->gateway_failed = (rc != SQLITE_OK);

    if (rc == SQLITE_OK && l.n == 0 && !was_fresh) {
        return SQLITE_OK;
    }

    if (rc == SQLITE_OK && l.n) {
        if (store_dir_path(path, sizeof(path), store_base(s), gateway->dir)
            == 0)
        {
            rc = SQLITE_CANTOPEN;
        }

        if (rc == SQLITE_OK) {
            rc = sqlite3_prepare_v2(db->db, "attach ?1 as g", -1, &st, NULL);
        }

        if (rc == SQLITE_OK) {
            sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
            rc = sqlite3_step(st);
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
            (void) sqlite3_finalize(st);
        }
    }

    if (rc == SQLITE_OK && (l.n || was_fresh)) {
        /* the two files do not share a commit: the copy must be on disk
         * before the original goes, and so must be the file that it is in,
         * which store_make() does not flush; an empty one may wait for it */
        (void) sqlite3_exec(db->db, l.n ? "pragma main.synchronous = full"
                                        : "pragma main.synchronous = off",
                            NULL, NULL, NULL);
        rc = move_copy(db, m, &l);
        (void) sqlite3_exec(db->db, "pragma main.synchronous = normal", NULL,
                            NULL, NULL);
    }

    if (l.n) {
        (void) sqlite3_exec(db->db, "detach g", NULL, NULL, NULL);
    }

    if (rc == SQLITE_OK && l.n && !store_sync_file(s, db)) {
        rc = SQLITE_IOERR_FSYNC;
    }

    if (rc == SQLITE_OK && l.n) {
        rc = store_cascades(gateway, true);

        if (rc == SQLITE_OK) {
            rc = move_remove(gateway, m, &l);
        }

        (void) store_cascades(gateway, false);
        m->gateway_failed = (rc != SQLITE_OK);
    }

    free(l.ids);
    free(l.cursors);

    return rc;
}
