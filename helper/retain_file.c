/* One history file: what its limits ask for, in small steps. */

#include "retain_int.h"

#include "contents.h"
#include "id.h"
#include "json.h"
#include "log.h"
#include "own.h"
#include "rows.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>


/* --- what a file says of itself -------------------------------------------- */

/* One of the texts of a row as JSON; NULL when it is none. */
static sb_jdoc_t *
retain_json(sqlite3_stmt *st, int column)
{
    size_t       n;
    const char  *text;

    text = (const char *) sqlite3_column_text(st, column);
    n = (size_t) sqlite3_column_bytes(st, column);

    return text == NULL ? NULL
           : sb_jdoc_parse(sb_str(text, n), &(sb_json_limits_t) { 0, n + 1 },
                           NULL);
}


static bool
retain_null(const sb_jv_t *v)
{
    return v && v->kind == SB_JSON_NULL;
}


/* A number that is not what the file was made with. */
static bool
retain_own(const sb_jv_t *root, const sb_jv_t *made, const char *name,
    int64_t preset, int64_t least, int64_t most, int64_t *n)
{
    int64_t  was;

    if (retain_null(sb_jv_get(made, name))) {
        was = least - 1;

    } else if (!sb_jv_int(sb_jv_get(made, name), &was)) {
        was = preset;
    }

    return sb_jv_int(sb_jv_get(root, name), n) && *n != was && *n >= least
           && *n <= most;
}


static void
retain_config_read(const sb_jv_t *root, const sb_jv_t *made,
    retain_facts_t *facts)
{
    int       i;
    int64_t   n;
    sb_str_t  v, was;

    if (retain_own(root, made, "ttl_days", 7, 1, 999999, &n)) {
        facts->ttl_us = (uint64_t) n * 86400000000u;

    } else if (retain_null(sb_jv_get(root, "ttl_days"))
               && !retain_null(sb_jv_get(made, "ttl_days")))
    {
        /* no limit (format 7.1) */
        facts->ttl_us = 0;
    }

    if (retain_own(root, made, "max_database_bytes", RETAIN_SIZE,
                   1024 * 1024, INT64_MAX, &n))
    {
        facts->size = (uint64_t) n;
    }

    if (retain_own(root, made, "consumer_active_ttl_days", 30, 1, 3650, &n)) {
        facts->days = n;
    }

    v = sb_jv_str(root, "overflow_policy");
    was = made ? sb_jv_str(made, "overflow_policy")
               : sb_lit("delete_oldest");

    for (i = 0; i < 3 && !sb_eq(v, was); i++) {
        if (sb_eq(v, sb_str(retain_overflow_names[i],
                            strlen(retain_overflow_names[i]))))
        {
            facts->overflow = (retain_overflow_e) i;
        }
    }
}


/* Who set other values than those that the file was made with has them count
 * (config-set, format 7). */
static void
retain_config(retain_t *r, sqlite3_stmt *st, retain_facts_t *facts)
{
    sb_jdoc_t  *doc, *made;

    facts->size = r->conf.size;
    facts->ttl_us = r->conf.ttl_us;
    facts->overflow = r->conf.overflow;
    facts->days = 30;

    if (sqlite3_column_int64(st, 1) < 1) {
        return;
    }

    doc = retain_json(st, 0);
    made = retain_json(st, 9);

    if (doc) {
        retain_config_read(sb_jdoc_root(doc), made ? sb_jdoc_root(made) : NULL,
                           facts);
    }

    sb_jdoc_free(doc);
    sb_jdoc_free(made);
}


bool
retain_named(const retain_t *r, const char *sandbox)
{
    unsigned  i;

    for (i = 0; i < r->conf.nholds; i++) {
        if (strcmp(r->conf.holds[i], "*") == 0
            || (sandbox && strcmp(r->conf.holds[i], sandbox) == 0))
        {
            return true;
        }
    }

    return false;
}


bool
retain_held(const retain_t *r, store_db_t *db)
{
    int            rc;
    sqlite3_stmt  *st;

    if (retain_named(r, db->sandbox)) {
        return true;
    }

    rc = sqlite3_prepare_v2(db->db, "select 1 from gateway_state where key ="
                            " 'hold'", -1, &st, NULL);
    rc = rc == SQLITE_OK ? sqlite3_step(st) : rc;
    (void) sqlite3_finalize(st);

    /* what cannot be told stays */
    return rc != SQLITE_DONE;
}


int
retain_facts(retain_t *r, store_db_t *db, retain_facts_t *facts)
{
    int            rc;
    const char    *text;
    sqlite3_stmt  *st;

    memset(facts, 0, sizeof(retain_facts_t));

    rows_try(rc, purge_size(db, &facts->logical, &facts->pages,
                            &facts->unused));

    rows_try(rc, sqlite3_prepare_v2(db->db,
            "select (select value from history_meta where key ="
            " 'history_config_json'), (select value from history_meta where"
            " key = 'history_config_revision'), (select value from"
            " gateway_state where key = 'state'), (select value from"
            " gateway_state where key = 'state_at'), (select value from"
            " gateway_state where key = 'hold'), (select auto_vacuum from"
            " pragma_auto_vacuum), (select value from gateway_state where key ="
            " 'unkept'), (select value from gateway_state where key ="
            " 'unkept_from'), (select value from gateway_state where key ="
            " 'unkept_to'), (select value from gateway_state where key ="
            " 'config')", -1, &st, NULL));

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        retain_config(r, st, facts);

        text = (const char *) sqlite3_column_text(st, 2);
        facts->gone = text && strcmp(text, "gone") == 0;
        text = (const char *) sqlite3_column_text(st, 3);

        if (text == NULL
            || sb_time_parse(&facts->gone_us, sb_str(text, strlen(text)))
               != SB_OK)
        {
            facts->gone_us = 0;
        }

        facts->held = sqlite3_column_type(st, 4) != SQLITE_NULL
                      || retain_named(r, db->sandbox);
        facts->vacuums = sqlite3_column_int(st, 5) == 2;
        facts->unkept = sqlite3_column_int64(st, 6);
        facts->unkept_from = (uint64_t) sqlite3_column_int64(st, 7);
        facts->unkept_to = (uint64_t) sqlite3_column_int64(st, 8);
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


int
retain_hold(retain_t *r, store_db_t *db, bool hold, const char *who,
    bool *changed)
{
    int             rc;
    uint8_t         id[16];
    own_event_t     e;
    sqlite3_stmt   *st;
    retain_file_t  *f;

    *changed = false;

    rows_try(rc, store_begin(db));

    rc = sqlite3_prepare_v2(db->db, hold
            ? "insert or ignore into gateway_state(key, value)"
              " values('hold', ?1)"
            : "delete from gateway_state where key = 'hold' and ?1 is not"
              " null", -1, &st, NULL);

    if (rc == SQLITE_OK) {
        store_bind_time(st, 1, sb_now_us());
        rc = sqlite3_step(st);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        *changed = rc == SQLITE_OK && sqlite3_changes(db->db) == 1;
        (void) sqlite3_finalize(st);
    }

    if (rc == SQLITE_OK && *changed) {
        memset(&e, 0, sizeof(e));
        e.type = hold ? "gateway.hold" : "gateway.release";
        e.from_us = sb_now_us();
        e.to_us = e.from_us;
        e.actor_type = "user";
        e.actor_id = who;
        rc = own_event(db, &e, id);
    }

    if (rc != SQLITE_OK) {
        store_rollback(db);
        return rc;
    }

    rows_try(rc, store_commit(db, 0));

    contents_ask(db->dir);
    f = retain_file(r, db->dir, false);

    if (f) {
        f->held = hold || retain_named(r, db->sandbox);
        retain_again(r, db);
    }

    return SQLITE_OK;
}


/* --- one step -------------------------------------------------------------- */

static void
retain_tell_full(retain_t *r, retain_file_t *f, store_db_t *db,
    const retain_facts_t *facts)
{
    bool  full;

    full = facts->overflow == RETAIN_FAIL_OPERATION && facts->size
           && facts->logical >= (f->full ? facts->size - facts->size / 16
                                         : facts->size);

    if (full == f->full || strcmp(db->dir, SCHEMA_GATEWAY) == 0) {
        return;
    }

    f->full = full;

    if (full) {
        log_line(LOG_WARN, "the history of %s is full (%llu MiB): strict "
                 "operations are refused until there is room", db->sandbox,
                 (unsigned long long) (facts->size >> 20));
    } else {
        log_line(LOG_INFO, "the history of %s has room again", db->sandbox);
    }

    if (r->hooks.full) {
        r->hooks.full(r->hooks.data, db->dir, db->sandbox, full,
                      "sandbox_history_size");
    }
}


/*
 * Does somebody have the lease under which records are deleted (format 12, 13)?
 * Then none are for now: who copies them loses none under his hands.  A bound
 * has to hold, so it counts for an hour on end.
 */
static bool
retain_leased(retain_file_t *f, store_db_t *db)
{
    int            rc;
    uint64_t       now;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db->db, "select 1 from history_leases where"
                            " resource_key = 'history:cleanup' and expires_at"
                            " > ?1", -1, &st, NULL);

    if (rc == SQLITE_OK) {
        store_bind_time(st, 1, sb_now_us());
        rc = sqlite3_step(st);
        (void) sqlite3_finalize(st);
    }

    if (rc != SQLITE_ROW) {
        f->lease_us = 0;
        return false;
    }

    now = sb_mono_us();
    f->lease_us = f->lease_us ? f->lease_us : now;

    if (now >= f->lease_us + RETAIN_LEASE_US) {
        log_minutely(LOG_WARN, "somebody has the cleanup lease of the history "
                     "of %s for more than an hour: its limits hold all the "
                     "same", f->dir);
        return false;
    }

    /* from the beginning, later */
    f->after = 0;
    f->busy = false;
    f->squeeze = 0;
    f->dry = true;
    f->dry_us = now + RETAIN_TOUCH_US;

    return true;
}


/* Which limit is not kept?  NULL: all are. */
static const char *
retain_rule(retain_t *r, retain_file_t *f, const retain_facts_t *facts,
    purge_rule_t *rule)
{
    uint64_t  now;

    now = retain_now(r);

    memset(rule, 0, sizeof(purge_rule_t));
    rule->now_us = now;
    rule->floor = r->floor;
    rule->after = f->after;

    if (facts->ttl_us && now > facts->ttl_us && now >= f->ttl_us) {
        rule->before_us = now - facts->ttl_us;
        rule->rule = "ttl";
        return rule->rule;
    }

    if (r->conf.keep_us && now > r->conf.keep_us) {
        rule->keep_us = now - r->conf.keep_us;
    }

    if (f->dry) {
        return NULL;
    }

    if (facts->overflow == RETAIN_DELETE_OLDEST && facts->size
        && facts->logical > (f->busy ? facts->size - facts->size / 16
                                     : facts->size))
    {
        rule->rule = "size";
        rule->bytes = facts->logical - (facts->size - facts->size / 16);

    } else if (f->squeeze) {
        rule->rule = "total";
        rule->bytes = f->squeeze;
    }

    return rule->rule;
}


/*
 * For how long need nobody ask again what may go?  To ask is to read all of the
 * file: where records are only too young, until the first of them is not.
 */
static uint64_t
retain_dry(const retain_t *r, const retain_file_t *f, const purge_rule_t *rule)
{
    uint64_t  until;

    if (f->soon) {
        return 0;
    }

    until = f->stays_us && !rule->is_protected ? f->stays_us + r->conf.keep_us
                                               : 0;

    if (until <= rule->now_us + RETAIN_DRY_US) {
        return RETAIN_DRY_US;
    }

    until -= rule->now_us;

    return until < RETAIN_SWEEP_US ? until : RETAIN_SWEEP_US;
}


/* A run is at its end. */
static void
retain_run_end(retain_t *r, retain_file_t *f, const retain_facts_t *facts,
    const purge_rule_t *rule)
{
    uint64_t  step;

    f->after = 0;
    f->busy = false;

    if (rule->before_us) {
        /* not for every record that becomes too old */
        step = facts->ttl_us / 168;
        f->oldest_us = f->stays_us;
        f->ttl_us = (f->stays_us ? f->stays_us + facts->ttl_us
                                 : rule->now_us) + step;

        if (f->ttl_us < rule->now_us + step) {
            f->ttl_us = rule->now_us + step;
        }

    } else {
        f->dry = true;
        f->dry_us = sb_mono_us() + retain_dry(r, f, rule);
        f->squeeze = 0;
    }
}


static bool
retain_purge(retain_t *r, retain_file_t *f, store_db_t *db,
    const retain_facts_t *facts, purge_rule_t *rule)
{
    int           rc;
    uint64_t      before;
    unsigned      moved;
    purge_done_t  d;

    moved = 0;

    rc = purge_protection(db, rule->now_us, facts->days, &rule->is_protected,
                          &rule->protected_seq);
    if (rc == SQLITE_OK) {
        rc = purge_step(db, rule, &d);
    }

    if ((rc & 0xff) == SQLITE_FULL && rule->events != 1) {
        /* there may be room for less */
        rule->events = 1;
        rc = purge_step(db, rule, &d);
    }

    if (rc == SQLITE_OK && (rule->before_us == 0 || !d.more)
        && strcmp(f->dir, SCHEMA_GATEWAY) == 0)
    {
        rc = purge_moved(db, rule, &moved);
    }

    if (store_broken(rc)) {
        log_line(LOG_ERROR, "cannot purge the history of %s: %s", f->dir,
                 sqlite3_errstr(rc));
        f->busy = false;
        f->broken = true;
        return false;
    }

    if (rc != SQLITE_OK) {
        log_minutely(LOG_ERROR, "cannot purge the history of %s: %s; tried "
                     "again later", f->dir, sqlite3_errstr(rc));
        f->busy = false;
        f->look_us = sb_mono_us() + RETAIN_TOUCH_US;
        return false;
    }

    f->busy = true;

    if (d.events) {
        before = facts->logical;
        (void) purge_size(db, &rule->floor, NULL, NULL);
        before -= rule->floor < before ? rule->floor : before;
        f->squeeze -= before < f->squeeze ? before : f->squeeze;

        retain_purged(r, db);
    }

    if (f->after == 0) {
        f->stays_us = 0;
        f->soon = false;
    }

    f->soon = f->soon || d.soon;

    f->after = d.last;

    if (d.oldest_us && (f->stays_us == 0 || d.oldest_us < f->stays_us)) {
        f->stays_us = d.oldest_us;
    }

    if (d.newest_us > f->oldest_us) {
        f->oldest_us = d.newest_us;
    }

    if (!d.more && moved < PURGE_MOVED) {
        retain_run_end(r, f, facts, rule);
    }

    return true;
}


void
retain_room(retain_t *r, store_db_t *db)
{
    unsigned         n;
    purge_rule_t     rule;
    retain_file_t   *f;
    retain_facts_t   facts;

    f = retain_file(r, db->dir, false);

    for (n = 0; f && n < RETAIN_STEPS; n++) {

        if (retain_facts(r, db, &facts) != SQLITE_OK || facts.held
            || retain_rule(r, f, &facts, &rule) == NULL
            || retain_leased(f, db)
            || !retain_purge(r, f, db, &facts, &rule))
        {
            break;
        }
    }

    /* the rest of the run, or a file to set aside, which who is about to write
     * it has open; a look that found nothing to do would ask for another */

    if (n || (f && f->broken)) {
        retain_queue(r, f);
    }
}


static void
retain_trim(store_db_t *db)
{
    (void) sqlite3_busy_timeout(db->db, 0);
    (void) sqlite3_wal_checkpoint_v2(db->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                     NULL, NULL);
    (void) sqlite3_busy_timeout(db->db, RETAIN_BUSY_MS);
}


/* Gives free pages back; true: there are more. */
static bool
retain_vacuum(retain_t *r, retain_file_t *f, store_db_t *db,
    const retain_facts_t *facts)
{
    int       rc;
    char      sql[64];
    uint64_t  now;

    now = sb_mono_us();

    if (!facts->vacuums || facts->unused == 0) {
        return false;
    }

    /* what is written every moment needs its free pages itself */
    if (facts->unused <= facts->pages / 4 && !f->squeeze
        && r->total <= r->conf.total
        && (facts->unused < 64 || now < f->written_us + RETAIN_IDLE_US))
    {
        return false;
    }

    (void) snprintf(sql, sizeof(sql), "pragma incremental_vacuum(%d)",
                    RETAIN_VACUUM);
    rc = sqlite3_exec(db->db, sql, NULL, NULL, NULL);

    if (rc != SQLITE_OK) {
        log_minutely(LOG_WARN, "cannot give back what is free in the history "
                     "of %s: %s", f->dir, sqlite3_errstr(rc));
        return false;
    }

    db->dirty = true;

    if (facts->unused <= RETAIN_VACUUM) {
        /* the file shrinks when its log is in it; a reader may be in the way,
         * then the next checkpoint does it */
        retain_trim(db);
        return false;
    }

    return true;
}


/* Operations that a full file did not take: told at once, then now and then
 * while it lasts, and when there is room again. */
static void
retain_gap(retain_t *r, retain_file_t *f, store_db_t *db,
    const retain_facts_t *facts)
{
    int       rc;
    uint64_t  now;

    now = retain_now(r);

    if (facts->unkept == 0
        || (f->gap_us && now >= f->gap_us && now < f->gap_us + RETAIN_GAP_US
            && retain_level(r, db) == RETAIN_NO_RECORDS))
    {
        return;
    }

    rc = store_begin(db);

    if (rc == SQLITE_OK) {
        rc = rows_unkept_gap(db, facts->unkept, facts->unkept_from,
                             facts->unkept_to);
        rc = rc == SQLITE_OK ? store_commit(db, 0) : (store_rollback(db), rc);
    }

    if (rc == SQLITE_OK) {
        f->gap_us = now;
    }
}


/* A sandbox that is gone, and all that was kept of it: the file may go. */
static bool
retain_empty(store_db_t *db)
{
    int            rc;
    sqlite3_stmt  *st;

    if (sqlite3_prepare_v2(db->db, "select 1 from history_events where"
                           " operation_type != 'gateway.purge' limit 1", -1,
                           &st, NULL)
        != SQLITE_OK)
    {
        return false;
    }

    rc = sqlite3_step(st);
    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE;
}


/* Has an active consumer not seen all of it? */
static bool
retain_unseen(store_db_t *db, uint64_t now, const retain_facts_t *facts)
{
    int            rc;
    bool           is_protected;
    int64_t        seq;
    sqlite3_stmt  *st;

    if (purge_protection(db, now, facts->days, &is_protected, &seq)
        != SQLITE_OK)
    {
        return true;
    }

    if (!is_protected) {
        return false;
    }

    rc = sqlite3_prepare_v2(db->db, "select 1 from history_changes where seq >"
                            " ?1 limit 1", -1, &st, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, seq);
        rc = sqlite3_step(st);
        (void) sqlite3_finalize(st);
    }

    return rc != SQLITE_DONE;
}


/* True: it was removed. */
static bool
retain_gone(retain_t *r, retain_file_t *f, store_db_t *db,
    const retain_facts_t *facts)
{
    uint64_t  now;

    now = retain_now(r);

    if (!facts->gone || facts->held || now < facts->gone_us + RETAIN_GONE_US
        || strcmp(db->dir, SCHEMA_GATEWAY) == 0
        || (r->hooks.busy && r->hooks.busy(r->hooks.data, db->sandbox)))
    {
        return false;
    }

    if (r->conf.on_delete == RETAIN_ON_DELETE_ARCHIVE) {
        return retain_remove(r, f, db, true, "on_delete");
    }

    if (r->conf.on_delete == RETAIN_ON_DELETE_DELETE) {
        return !retain_unseen(db, now, facts)
               && retain_remove(r, f, db, false, "on_delete");
    }

    return facts->ttl_us && now > facts->gone_us + facts->ttl_us
           && retain_empty(db) && retain_remove(r, f, db, false, "ttl");
}


static bool
retain_look_archive(retain_t *r, retain_file_t *f)
{
    uint64_t  now, at;

    now = retain_now(r);
    at = retain_archived(f->dir);
    f->oldest_us = at;

    if (f->dry) {
        f->squeeze = 0;
        return false;
    }

    if (r->conf.ttl_us && now > at + r->conf.ttl_us) {
        (void) retain_remove_archive(r, f, "ttl");

    } else if (f->squeeze && now > at + r->conf.keep_us) {
        (void) retain_remove_archive(r, f, "total");

    } else if (f->squeeze) {
        /* too young to make room */
        f->squeeze = 0;
        f->dry = true;
    }

    return false;
}


/* C115: limits hold for a broken file as well, which only a new one can keep;
 * whoever writes next begins it and tells of it. */
static bool
retain_set_aside(retain_t *r, retain_file_t *f)
{
    if (!f->broken) {
        return false;
    }

    f->broken = false;
    f->after = 0;
    f->squeeze = 0;
    store_set_aside(r->store, f->dir, "broken");
    retain_measure(r, f);

    return true;
}


bool
retain_look(retain_t *r, retain_file_t *f)
{
    int              rc;
    bool             more;
    store_db_t      *db;
    purge_rule_t     rule;
    retain_facts_t   facts;

    if (f->archive) {
        return retain_look_archive(r, f);
    }

    if (retain_set_aside(r, f)) {
        return false;
    }

    db = store_get(r->store, f->dir, false, &rc);

    if (db == NULL || db->fresh || retain_facts(r, db, &facts) != SQLITE_OK) {
        /* whoever writes it will see */
        f->squeeze = 0;
        return false;
    }

    f->held = facts.held;
    retain_tell_full(r, f, db, &facts);

    if (retain_gone(r, f, db, &facts)) {
        return false;
    }

    retain_gap(r, f, db, &facts);
    more = false;

    if (!facts.held && retain_rule(r, f, &facts, &rule)
        && !retain_leased(f, db))
    {
        more = retain_purge(r, f, db, &facts, &rule);

        if (retain_set_aside(r, f)) {
            return false;
        }

    } else {
        f->after = 0;
        f->busy = false;
        f->squeeze = 0;
    }

    if (f->oldest_us == 0 && !f->dry && r->conf.total) {
        /* without an age limit nobody else has looked */
        f->oldest_us = purge_oldest(db);
    }

    if (!f->busy && facts.overflow == RETAIN_DELETE_OLDEST) {
        more = more && !f->dry;
    }

    if (f->trim) {
        f->trim = false;
        retain_trim(db);
    }

    if (!more || !f->busy) {
        (void) purge_end(db, retain_now(r));
        more = retain_vacuum(r, f, db, &facts) || more;
        retain_measure(r, f);
    }

    r->urgent = facts.overflow == RETAIN_DELETE_OLDEST && more && f->busy
                && facts.logical > facts.size + facts.size / 16
                ? f : r->urgent == f ? NULL : r->urgent;

    return more;
}
