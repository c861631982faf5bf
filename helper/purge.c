#include "purge.h"

#include "contents.h"
#include "id.h"
#include "own.h"
#include "result.h"
#include "rows.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>


/* Times that are written behind each other may be out of order by that. */
#define PURGE_SLACK_US  3600000000u


/* --- what one number is ---------------------------------------------------- */

static int
purge_number(store_db_t *db, const char *sql, int64_t *v)
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, sqlite3_prepare_v2(db->db, sql, -1, &st, NULL));

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        *v = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


int
purge_size(store_db_t *db, uint64_t *logical, uint64_t *pages,
    uint64_t *unused)
{
    int      rc;
    int64_t  count, free_pages, size;

    count = 0;
    free_pages = 0;
    size = 4096;

    rows_try(rc, purge_number(db, "pragma page_count", &count));
    rows_try(rc, purge_number(db, "pragma freelist_count", &free_pages));
    rows_try(rc, purge_number(db, "pragma page_size", &size));

    if (logical) {
        *logical = (uint64_t) (count - free_pages) * (uint64_t) size;
    }

    if (pages) {
        *pages = (uint64_t) count;
    }

    if (unused) {
        *unused = (uint64_t) free_pages;
    }

    return SQLITE_OK;
}


int
purge_protection(store_db_t *db, uint64_t now_us, int64_t days,
    bool *is_protected, int64_t *seq)
{
    int            rc;
    uint64_t       us;
    sqlite3_stmt  *st;

    *is_protected = false;
    us = (uint64_t) days * 86400000000u;

    rows_try(rc, sqlite3_prepare_v2(db->db, "select min(acknowledged_seq) from"
            " history_consumers where updated_at >= ?1 having count(*)", -1,
            &st, NULL));

    store_bind_time(st, 1, now_us > us ? now_us - us : 0);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        *is_protected = true;
        *seq = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


/* --- tombstones ------------------------------------------------------------ */

static int
purge_tombstone(store_db_t *db, const purge_rule_t *r, uint8_t id[16])
{
    int          rc;
    bool         found;
    char         request[64];
    own_event_t  e;

    rows_try(rc, own_open(db, "gateway.purge", id, &found));

    if (found) {
        return SQLITE_OK;
    }

    /* a transaction of its own: the chain has nothing beside a purge */
    rows_try(rc, store_begin(db));

    (void) snprintf(request, sizeof(request), "{\"rule\":\"%s\"}", r->rule);

    memset(&e, 0, sizeof(e));
    e.type = "gateway.purge";
    e.status = "started";
    e.from_us = r->now_us;
    e.request = sb_str(request, strlen(request));

    rc = own_event(db, &e, id);

    return rc == SQLITE_OK ? store_commit(db, 0) : (store_rollback(db), rc);
}


/* What a step deleted, told before it is gone; a folded record is as many
   operations as it stands for. */
static int
purge_note(store_db_t *db, const purge_rule_t *r, purge_done_t *d,
    const uint8_t id[16])
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, sqlite3_prepare_v2(db->db,
            "insert into gateway_purges(event_id, at, rule, operations,"
            " changes, output_bytes, from_seq, to_seq, from_at, to_at)"
            " select ?1, ?2, ?3, count(*) filter (where e.operation_type not"
            " like 'gateway.%') + coalesce(sum(f.count), 0),"
            " (select count(*) from history_changes where"
            " event_id in (select event_id from history_events where seq in"
            " (select seq from temp.purge))),"
            " (select coalesce(sum(length(data)), 0) from"
            " command_output_chunks where event_id in (select event_id from"
            " history_events where seq in (select seq from temp.purge))),"
            " min(r.seq), max(r.seq), min(e.occurred_at), max(e.occurred_at)"
            " from temp.purge p join history_events e on e.seq = p.seq"
            " left join gateway_records r on r.event_id = e.event_id"
            " left join gateway_folded f on f.event_id = e.event_id"
            " returning operations, changes, output_bytes", -1, &st, NULL));

    store_bind_id(st, 1, id);
    store_bind_time(st, 2, r->now_us);
    sqlite3_bind_text(st, 3, r->rule, -1, SQLITE_STATIC);

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        d->operations += (uint64_t) sqlite3_column_int64(st, 0);
        d->changes += (uint64_t) sqlite3_column_int64(st, 1);
        d->bytes += (uint64_t) sqlite3_column_int64(st, 2);
        rc = sqlite3_step(st);
    }

    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


int
purge_end(store_db_t *db, uint64_t now_us)
{
    int            rc;
    bool           found;
    uint8_t        id[16];
    unsigned       i;
    sb_buf_t       b;
    result_t       res;
    sqlite3_stmt  *st;

    static const char  *names[] = {
        "operations", "changes", "output_bytes", "from_seq", "to_seq",
        "operations_total"
    };

    rows_try(rc, own_open(db, "gateway.purge", id, &found));

    if (!found) {
        return SQLITE_OK;
    }

    rows_try(rc, sqlite3_prepare_v2(db->db,
            "select sum(operations), sum(changes), sum(output_bytes),"
            " min(from_seq), max(to_seq), (select coalesce(value, 0) from"
            " gateway_state where key = 'purged_operations'), min(from_at),"
            " max(to_at), max(rule) from gateway_purges where event_id = ?1",
            -1, &st, NULL));

    store_bind_id(st, 1, id);
    rc = sqlite3_step(st);
    memset(&b, 0, sizeof(b));
    b.max = RESULT_MAX;
    res.n = 0;

    if (rc == SQLITE_ROW) {
        for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (sqlite3_column_type(st, (int) i) != SQLITE_NULL) {
                result_int(&res, names[i], sqlite3_column_int64(st, (int) i));
            }
        }

        if (sqlite3_column_type(st, 6) != SQLITE_NULL) {
            result_str(&res, "from",
                       sb_str(sqlite3_column_text(st, 6),
                              (size_t) sqlite3_column_bytes(st, 6)));
            result_str(&res, "to",
                       sb_str(sqlite3_column_text(st, 7),
                              (size_t) sqlite3_column_bytes(st, 7)));
            result_str(&res, "rule",
                       sb_str(sqlite3_column_text(st, 8),
                              (size_t) sqlite3_column_bytes(st, 8)));
        }

        rc = result_write(&res, sb_str(NULL, 0), &b) == SB_OK ? SQLITE_OK
                                                              : SQLITE_NOMEM;
    }

    (void) sqlite3_finalize(st);

    if (rc == SQLITE_OK) {
        rc = store_begin(db);
    }

    if (rc == SQLITE_OK) {
        rc = own_end(db, id, "succeeded", now_us, sb_str(b.data, b.len));
        rc = rc == SQLITE_OK ? store_commit(db, 0) : (store_rollback(db), rc);
    }

    sb_buf_free(&b);

    return rc;
}


/* --- deleting -------------------------------------------------------------- */

static int
purge_list(store_db_t *db, const int64_t *seqs, size_t n)
{
    int            rc;
    size_t         i;
    sqlite3_stmt  *st;

    rows_try(rc, sqlite3_exec(db->db, "create temp table if not exists purge("
                              "seq integer primary key); delete from"
                              " temp.purge", NULL, NULL, NULL));
    rows_try(rc, sqlite3_prepare_v2(db->db, "insert or ignore into temp.purge"
                                    " values(?1)", -1, &st, NULL));

    for (i = 0; i < n && rc == SQLITE_OK; i++) {
        sqlite3_bind_int64(st, 1, seqs[i]);
        rc = store_run(st);
    }

    (void) sqlite3_finalize(st);

    return rc;
}


/* Where they stood in the journal, which may say them again: see
 * rows_gone_known(). */
#define PURGE_STRETCH(key, which)                                             \
    "insert into gateway_state(key, value) select '" key "', c from"          \
    " (select " which "(cursor) c from gateway_records where event_id in"     \
    " (select event_id from history_events where seq in (select seq from"     \
    " temp.purge))) where c is not null on conflict(key) do update set"       \
    " value = " which "(value, excluded.value);"

/*
 * The number of an event is deleted with it, but the highest of all stays: it
 * tells the next one.
 */
static const char  purge_sql[] =
    "delete from history_changes where event_id in (select event_id from"
    " history_events where seq in (select seq from temp.purge));"

    "insert into gateway_state(key, value) select 'purged_operations',"
    " count(*) + coalesce(sum(f.count), 0) from history_events e left join"
    " gateway_folded f on f.event_id = e.event_id where e.seq in (select seq"
    " from temp.purge) and e.operation_type not like 'gateway.%'"
    " on conflict(key) do update set value = value + excluded.value;"

    "delete from gateway_purges where event_id in (select event_id from"
    " history_events where seq in (select seq from temp.purge));"

    PURGE_STRETCH("purged_first", "min")
    PURGE_STRETCH("purged_last", "max")

    "delete from gateway_records where event_id in (select event_id from"
    " history_events where seq in (select seq from temp.purge)) and seq <"
    " (select max(seq) from gateway_records);"

    "delete from history_events where seq in (select seq from temp.purge);"
    "delete from temp.purge;";


/* The chain accounts for what goes; `ids` are taken before. */
static int
purge_chain(store_db_t *db, const purge_rule_t *r)
{
    int            rc;
    char           at[SB_TIME_LEN + 1], *ids[PURGE_EVENTS];
    size_t         n;
    const char    *text;
    sqlite3_stmt  *st;

    rows_try(rc, sqlite3_prepare_v2(db->db, "select event_id from"
                                    " history_events where seq in (select seq"
                                    " from temp.purge)", -1, &st, NULL));

    n = 0;

    while (n < PURGE_EVENTS && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        ids[n] = strdup(text ? text : "");

        if (ids[n] == NULL) {
            rc = SQLITE_NOMEM;
            break;
        }

        n++;
    }

    (void) sqlite3_finalize(st);

    if (rc != SQLITE_NOMEM) {
        sb_time_text(at, r->now_us);
        rc = chain_purge(&db->chain, db->db, store_keys(db),
                         (const char *const *) ids, n, r->rule, at);
    }

    while (n) {
        free(ids[--n]);
    }

    return rc;
}


static int
purge_delete(store_db_t *db, const purge_rule_t *r, purge_done_t *d,
    const uint8_t id[16])
{
    int  rc;

    rows_try(rc, purge_note(db, r, d, id));
    rows_try(rc, purge_chain(db, r));
    rows_try(rc, contents_note(db));
    rows_try(rc, sqlite3_exec(db->db, purge_sql, NULL, NULL, NULL));

    return contents_sweep(db);
}


int
purge_events(store_db_t *db, const int64_t *seqs, size_t n,
    const purge_rule_t *r, purge_done_t *d)
{
    int      rc;
    uint8_t  id[16];

    rows_try(rc, purge_list(db, seqs, n));
    rows_try(rc, purge_tombstone(db, r, id));
    rows_try(rc, store_cascades(db, true));

    d->operations = 0;
    d->changes = 0;
    d->bytes = 0;
    rc = store_begin(db);

    if (rc == SQLITE_OK) {
        rc = purge_delete(db, r, d, id);
        rc = rc == SQLITE_OK ? store_commit(db, 0) : (store_rollback(db), rc);
    }

    (void) store_cascades(db, false);

    if (rc == SQLITE_OK) {
        stats_add(STATS_PURGED, d->operations);
        stats_add(STATS_PURGED_BYTES, d->bytes);

    } else {
        d->operations = 0;
        d->changes = 0;
        d->bytes = 0;
    }

    /* one of them may have been what polls are counted into */
    db->nfolds = 0;

    return rc;
}


/* The chain has accounted for them when they were moved.  What the journal may
 * say again has to be known, and the highest number tells the next one. */
#define PURGE_MOVED_SQL(which)                                               \
    "delete from gateway_records where seq in (select seq from"              \
    " gateway_records where moved_to is not null and " which                 \
    " and cursor <= ?1 and seq < (select max(seq) from gateway_records)"     \
    " order by seq limit ?2)"

static const char  purge_moved_old[] = PURGE_MOVED_SQL("event_id < ?3");
static const char  purge_moved_first[] =
    PURGE_MOVED_SQL("seq < (select min(seq) from gateway_records where"
                    " moved_to is null)");


int
purge_moved(store_db_t *db, const purge_rule_t *r, unsigned *n)
{
    int            rc;
    char           before[SB_UUID_LEN + 1];
    uint8_t        id[16];
    unsigned       i;
    uint64_t       ms;
    sqlite3_stmt  *st;

    *n = 0;

    /* the ids of our events begin with their time */
    memset(id, 0, sizeof(id));
    ms = r->before_us / 1000;

    for (i = 0; i < 6; i++) {
        id[i] = (uint8_t) (ms >> (40 - 8 * i));
    }

    sb_uuid_text(before, id);

    rows_try(rc, sqlite3_prepare_v2(db->db, r->before_us ? purge_moved_old
                                                         : purge_moved_first,
                                    -1, &st, NULL));

    sqlite3_bind_int64(st, 1, r->floor > INT64_MAX ? INT64_MAX
                                                   : (int64_t) r->floor);
    sqlite3_bind_int(st, 2, PURGE_MOVED);

    if (r->before_us) {
        sqlite3_bind_text(st, 3, before, -1, SQLITE_STATIC);
    }

    rc = store_begin(db);

    if (rc == SQLITE_OK) {
        rc = store_run(st);
        *n = rc == SQLITE_OK ? (unsigned) sqlite3_changes(db->db) : 0;
        rc = rc == SQLITE_OK ? store_commit(db, 0) : (store_rollback(db), rc);
    }

    (void) sqlite3_finalize(st);

    return rc;
}


/* --- choosing -------------------------------------------------------------- */

typedef struct {
    int64_t   seqs[PURGE_EVENTS];
    size_t    n;
    uint64_t  bytes;
} purge_pick_t;


static uint64_t
purge_time(sqlite3_stmt *st, int column)
{
    uint64_t     us;
    const char  *text;

    text = (const char *) sqlite3_column_text(st, column);

    if (text == NULL
        || sb_time_parse(&us, sb_str(text, strlen(text))) != SB_OK)
    {
        return 0;
    }

    return us;
}


uint64_t
purge_oldest(store_db_t *db)
{
    uint64_t       us;
    sqlite3_stmt  *st;

    us = 0;

    if (sqlite3_prepare_v2(db->db, "select completed_at from history_events"
                           " where completed_at is not null"
                           " and operation_type <> 'gateway.purge'"
                           " order by seq limit 1", -1, &st, NULL)
        == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
    {
        us = purge_time(st, 0);
    }

    (void) sqlite3_finalize(st);

    return us;
}


/* Has one of its changes not been acknowledged by all? */
static int
purge_unseen(sqlite3_stmt *changes, sqlite3_stmt *row, int64_t seq,
    bool *unseen)
{
    int  rc;

    sqlite3_bind_text(changes, 1, (const char *) sqlite3_column_text(row, 1),
                      -1, SQLITE_STATIC);
    rc = sqlite3_step(changes);
    *unseen = rc == SQLITE_ROW && sqlite3_column_int64(changes, 0) > seq;

    return sqlite3_reset(changes);
}


/* With about as many bytes as a record has, so that no more go than must. */
static const char  purge_rows[] =
    "select e.seq, e.event_id, e.status, e.occurred_at, e.completed_at,"
    " r.cursor, e.operation_type = 'gateway.purge' and e.seq = (select max(seq)"
    " from history_events where operation_type = 'gateway.purge'),"
    " (select coalesce(sum(length(data)), 0) from command_output_chunks c"
    " where c.event_id = e.event_id) + coalesce(length(e.request_json), 0)"
    " + coalesce(length(e.result_json), 0) + coalesce((select length(command)"
    " from command_executions x where x.event_id = e.event_id), 0) + (select"
    " coalesce(sum(length(events)), 0) from gateway_terminal t where"
    " t.event_id = e.event_id), r.event_id is null"
    " from history_events e left join gateway_records r on"
    " r.event_id = e.event_id where e.seq > ?1 order by e.seq";


/* One row: may it go?  False in *on: nothing behind it can. */
static int
purge_row(const purge_rule_t *r, sqlite3_stmt *st, sqlite3_stmt *changes,
    purge_pick_t *pick, purge_done_t *d, bool *on)
{
    int       rc;
    bool      unseen;
    uint64_t  begun, ended;

    d->last = sqlite3_column_int64(st, 0);
    begun = purge_time(st, 3);
    ended = purge_time(st, 4);

    if (r->before_us && begun > r->before_us + PURGE_SLACK_US) {
        *on = false;
    }

    if (sqlite3_column_type(st, 4) == SQLITE_NULL) {

        /* a row that others began and nobody ended goes with its time */
        if (sqlite3_column_int(st, 8) == 0 || r->before_us == 0
            || begun >= r->before_us)
        {
            return SQLITE_OK;
        }

        ended = begun;

    } else if (strcmp((const char *) sqlite3_column_text(st, 2), "started")
               == 0)
    {
        return SQLITE_OK;
    }

    if (sqlite3_column_int(st, 6)) {
        /* the newest tombstone */
        return SQLITE_OK;
    }

    if ((r->before_us && ended >= r->before_us)
        || (r->keep_us && ended >= r->keep_us))
    {
        if (d->oldest_us == 0 || ended < d->oldest_us) {
            d->oldest_us = ended;
        }

        return SQLITE_OK;
    }

    if ((uint64_t) sqlite3_column_int64(st, 5) > r->floor) {
        d->soon = true;
        return SQLITE_OK;
    }

    if (r->is_protected) {
        rows_try(rc, purge_unseen(changes, st, r->protected_seq, &unseen));

        if (unseen) {
            return SQLITE_OK;
        }
    }

    d->newest_us = ended;
    pick->bytes += (uint64_t) sqlite3_column_int64(st, 7);
    pick->seqs[pick->n++] = d->last;

    return SQLITE_OK;
}


static int
purge_choose(store_db_t *db, const purge_rule_t *r, purge_pick_t *pick,
    purge_done_t *d)
{
    int            rc;
    bool           on;
    uint64_t       bytes;
    unsigned       most, visited;
    sqlite3_stmt  *st, *changes;

    rows_try(rc, sqlite3_prepare_v2(db->db, "select coalesce(max(seq), 0) from"
                                    " history_changes where event_id = ?1", -1,
                                    &changes, NULL));
    rc = sqlite3_prepare_v2(db->db, purge_rows, -1, &st, NULL);

    if (rc != SQLITE_OK) {
        (void) sqlite3_finalize(changes);
        return rc;
    }

    most = r->events && r->events < PURGE_EVENTS ? r->events : PURGE_EVENTS;
    bytes = r->bytes && r->bytes < PURGE_BYTES ? r->bytes : PURGE_BYTES;
    on = true;
    d->more = true;
    sqlite3_bind_int64(st, 1, r->after);

    for (visited = 0; on && visited < PURGE_VISIT && pick->n < most
         && pick->bytes < bytes; visited++)
    {
        rc = sqlite3_step(st);

        if (rc != SQLITE_ROW) {
            d->more = false;
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
            break;
        }

        rc = purge_row(r, st, changes, pick, d, &on);

        if (rc != SQLITE_OK) {
            break;
        }
    }

    d->more = d->more && on && rc == SQLITE_OK;

    (void) sqlite3_finalize(st);
    (void) sqlite3_finalize(changes);

    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}


/* A run is not begun for the sake of old tombstones. */
static int
purge_worth(store_db_t *db, const purge_pick_t *pick, bool *worth)
{
    int            rc;
    size_t         i;
    sqlite3_stmt  *st;

    *worth = false;

    rows_try(rc, sqlite3_prepare_v2(db->db, "select 1 from history_events"
                                    " where seq = ?1 and operation_type !="
                                    " 'gateway.purge'", -1, &st, NULL));

    for (i = 0; i < pick->n && !*worth; i++) {
        sqlite3_bind_int64(st, 1, pick->seqs[i]);
        *worth = sqlite3_step(st) == SQLITE_ROW;
        (void) sqlite3_reset(st);
    }

    (void) sqlite3_finalize(st);

    return SQLITE_OK;
}


int
purge_step(store_db_t *db, const purge_rule_t *r, purge_done_t *d)
{
    int           rc;
    bool          worth;
    purge_pick_t  pick;

    memset(d, 0, sizeof(purge_done_t));
    pick.n = 0;
    pick.bytes = 0;

    rows_try(rc, purge_choose(db, r, &pick, d));
    rows_try(rc, purge_worth(db, &pick, &worth));

    if (!worth) {
        return SQLITE_OK;
    }

    rc = purge_events(db, pick.seqs, pick.n, r, d);

    if (rc == SQLITE_OK) {
        d->events = pick.n;
    }

    return rc;
}
