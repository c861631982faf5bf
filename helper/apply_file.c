/* Opening and making the history files that records go to. */

#include "apply_int.h"

#include "id.h"
#include "json.h"
#include "log.h"
#include "move.h"

#include <stdlib.h>
#include <time.h>


#define APPLY_ASK_MS         1000
#define APPLY_ASK_PAUSE_US   30000000u


bool
apply_again(apply_t *a, const char *dir, int rc)
{
    bool             stop;
    struct timespec  until;

    log_minutely(LOG_ERROR, "cannot write the history of %s: %s; the journal "
                 "keeps what is missing", dir, sqlite3_errstr(rc));

    pthread_mutex_lock(&a->lock);

    stop = a->stop;

    if (!stop) {
        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        (void) pthread_cond_timedwait(&a->wake, &a->lock, &until);
    }

    pthread_mutex_unlock(&a->lock);

    /* without a thread of our own (apply_all) nothing would ever stop it */
    return a->running ? !stop : false;
}


/*
 * Opens the file of a directory.  One that cannot be used is set aside and
 * made anew, which *lost tells; NULL with a code: not now.
 */
static store_db_t *
apply_open(apply_t *a, const char *dir, bool *lost, int *rc)
{
    store_db_t  *db;

    db = store_get(a->store, dir, true, rc);

    if (db == NULL && store_broken(*rc)) {
        store_set_aside(a->store, dir, "broken");
        *lost = true;
        db = store_get(a->store, dir, true, rc);
    }

    return db;
}


/* A marker where a history had to begin anew. */
static void
apply_mark_lost(apply_t *a, const char *dir)
{
    int          rc;
    store_db_t  *db;

    log_line(LOG_ERROR, "the history file of %s was lost, a new one begins",
             dir);

    db = store_get(a->store, dir, false, &rc);

    if (db == NULL || store_begin(db) != SQLITE_OK) {
        return;
    }

    if (rows_lost(db, "history_file_lost", a->batch_from) == SQLITE_OK) {
        (void) store_commit(db, 0);

    } else {
        store_rollback(db);
    }
}


/* The tables of a new _gateway. */
static int
apply_gateway_make(apply_t *a, store_db_t *db)
{
    int     rc;
    move_t  m;

    memset(&m, 0, sizeof(m));
    m.sandbox = SCHEMA_GATEWAY;
    m.instance = SCHEMA_GATEWAY_INSTANCE;
    m.applied = a->batch_from;

    if (a->gateway.naside && a->gateway.aside[0].cursor <= m.applied) {
        m.applied = a->gateway.aside[0].cursor - 1;
    }

    rc = store_begin(db);

    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = move_file(db, &m);

    if (rc == SQLITE_OK) {
        return store_commit(db, m.applied);
    }

    store_rollback(db);

    return rc;
}


store_db_t *
apply_gateway(apply_t *a, int *rc)
{
    bool         lost;
    store_db_t  *db;

    lost = false;
    db = apply_open(a, SCHEMA_GATEWAY, &lost, rc);

    if (db && db->fresh) {
        lost = lost || store_knew(a->store, SCHEMA_GATEWAY);
        *rc = apply_gateway_make(a, db);

        if (*rc == SQLITE_OK && lost) {
            apply_mark_lost(a, SCHEMA_GATEWAY);
        }

        db = *rc == SQLITE_OK ? store_get(a->store, SCHEMA_GATEWAY, false, rc)
                              : NULL;
    }

    if (db) {
        a->gateway_applied = db->applied;
        db->pins++;
    }

    return db;
}


bool
apply_writable(store_db_t *db)
{
    if (store_begin(db) != SQLITE_OK) {
        return false;
    }

    store_rollback(db);

    return true;
}


bool
apply_box_held(apply_t *a, const apply_box_t *box)
{
    int            rc;
    bool           held;
    store_db_t    *db;
    sqlite3_stmt  *st;

    db = store_get(a->store, SCHEMA_GATEWAY, false, &rc);

    if (db == NULL || db->fresh) {
        return false;
    }

    st = store_stmt(db, ROWS_HELD_FIND, "select 1 from gateway_held where"
                    " sandbox = ?1 limit 1");
    if (st == NULL) {
        return false;
    }

    sqlite3_bind_text(st, 1, box->id, -1, SQLITE_STATIC);
    held = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_reset(st);

    return held;
}


/* --- what upstream knows of a sandbox ----------------------------------- */

static void
apply_answer(apply_box_t *box, const fetch_answer_t *answer)
{
    sb_str_t        v;
    sb_jdoc_t      *doc;
    const sb_jv_t  *meta;

    sb_json_limits_t  limits = { 0, FETCH_BODY_MAX + 1 };

    doc = sb_jdoc_parse(sb_str(answer->body.data, answer->body.len), &limits,
                        NULL);
    if (doc == NULL) {
        return;
    }

    meta = sb_jv_get(sb_jdoc_root(doc), "metadata");

    apply_set(&box->instance, sb_jv_str(meta, "sandbox_instance_id"), 255);

    v = sb_jv_str(meta, "agent_sandbox.name");
    apply_set(&box->name, v.len ? v : sb_jv_str(meta, "sandbox_name"), 512);

    sb_jdoc_free(doc);
}


static void
apply_ask(apply_t *a, apply_box_t *box)
{
    char             target[256];
    size_t           i, n;
    sb_rc_t          rc;
    uint64_t         now;
    fetch_answer_t   answer;

    now = sb_mono_us();
    n = strlen(box->id);

    if (a->fetch == NULL || box->asked || now < a->ask_after_us || n > 200) {
        return;
    }

    box->asked = true;

    for (i = 0; i < n; i++) {
        if (!strchr("-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                    "0123456789", box->id[i]))
        {
            return;
        }
    }

    if (box->id[0] == '.') {
        return;
    }

    (void) strcpy(target, "/v1/sandboxes/");
    (void) strcat(target, box->id);

    rc = fetch_wait(a->fetch, sb_str(target, strlen(target)), APPLY_ASK_MS,
                    &answer);

    if (rc != SB_OK) {
        /* slow or overloaded: many new sandboxes must not add up */
        a->ask_after_us = sb_mono_us() + APPLY_ASK_PAUSE_US;
        return;
    }

    if (answer.status == 200) {
        apply_answer(box, &answer);

    } else if (answer.status == 0) {
        a->ask_after_us = sb_mono_us() + APPLY_ASK_PAUSE_US;
    }

    sb_buf_free(&answer.body);
}


/* --- making files ------------------------------------------------------- */

/* What a fresh file of a sandbox says of it. */
static void
apply_identity(apply_t *a, apply_box_t *box, move_t *m, char *legacy)
{
    sb_str_t  name;

    if (box->instance == NULL) {
        apply_ask(a, box);
    }

    schema_legacy_instance(legacy, sb_str(box->id, strlen(box->id)));
    m->instance = box->instance ? box->instance : legacy;

    if (box->name) {
        name = sb_str(box->name, strlen(box->name));

        if (rows_name(&name)) {
            box->name[(size_t) (name.data - box->name) + name.len] = '\0';
            m->name = name.data;
        }
    }
}


/* What a fresh file of a box may take as in _gateway, or gone. */
static uint64_t
apply_make_from(const apply_t *a, const apply_box_t *box, bool lost,
    const store_db_t *gateway)
{
    uint64_t  from, floor;

    from = a->batch_from;

    if (box->naside && box->aside[0].cursor <= from) {
        /* it waited for _gateway, and so did these */
        from = box->aside[0].cursor - 1;
    }

    /* replayed after a crash: what _gateway has of the sandbox may be newer
     * than what we are at */
    floor = box->stalled ? box->floor : gateway->applied;

    return !lost && floor > from ? floor : from;
}


/* A fresh file: was there another one, which nobody here has removed? */
static bool
apply_was_there(apply_t *a, const apply_box_t *box, store_db_t *gateway)
{
    bool           removed;
    sqlite3_stmt  *st;

    if (!store_knew(a->store, box->dir)
        || sqlite3_prepare_v2(gateway->db, "select 1 from history_events where"
                              " operation_type in ('gateway.archive',"
                              " 'gateway.purge') and json_extract(result_json,"
                              " '$.sandbox') = ?1 limit 1", -1, &st, NULL)
           != SQLITE_OK)
    {
        return false;
    }

    sqlite3_bind_text(st, 1, box->id, -1, SQLITE_STATIC);
    removed = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_finalize(st);

    return !removed;
}


int
apply_make_file(apply_t *a, apply_box_t *box, bool lost)
{
    int          rc;
    bool         gone;
    char         legacy[SCHEMA_LEGACY_LEN + 1];
    move_t       m;
    store_db_t  *db, *gateway;

    gone = false;

    do {
        gateway = apply_gateway(a, &rc);

        if (gateway == NULL) {
            apply_stall_mark(a, &a->gateway, rc);
            return rc;
        }

        memset(&m, 0, sizeof(m));
        m.sandbox = box->id;
        m.events = (const uint8_t (*)[16]) box->moves;
        m.nevents = box->nmoves;

        db = apply_open(a, box->dir, &lost, &rc);

        if (db == NULL) {
            gateway->pins--;
            return rc;
        }

        m.applied = apply_make_from(a, box, lost, gateway);
        db->pins++;

        if (db->fresh) {
            gone = gone || apply_was_there(a, box, gateway);
            apply_identity(a, box, &m, legacy);
        }

        rc = move_in(a->store, db, gateway, &m);
        db->pins--;
        gateway->pins--;

        if (rc != SQLITE_OK && !store_broken(rc) && !apply_writable(gateway)) {
            /* it is attached when it is copied from: either may be locked */
            m.gateway_failed = true;
        }

        if (store_broken(rc)) {
            store_set_aside(a->store, m.gateway_failed ? SCHEMA_GATEWAY
                                                       : box->dir, "broken");

        } else if (rc != SQLITE_OK) {

            if (m.gateway_failed) {
                apply_stall_mark(a, &a->gateway, rc);
            }

            return rc;
        }

    } while (rc != SQLITE_OK);

    if (lost || gone) {
        apply_mark_lost(a, box->dir);
    }

    return SQLITE_OK;
}


void
apply_made(apply_t *a, apply_box_t *box)
{
    apply_box_t  **p;

    for (p = &a->makes; *p != box; p = &(*p)->next_make) { /* void */ }

    *p = box->next_make;
    box->making = false;
    box->next_make = NULL;
    free(box->moves);
    box->moves = NULL;
    box->nmoves = 0;
}


void
apply_make_files(apply_t *a)
{
    int           rc;
    apply_box_t  *box, *next;

    for (box = a->makes; box; box = next) {
        next = box->next_make;

        if (box->stalled) {
            continue;
        }

        rc = a->gateway.stalled ? SQLITE_BUSY : apply_make_file(a, box, false);

        if (rc == SQLITE_OK) {
            apply_made(a, box);

        } else {
            apply_stall_mark(a, box, rc);
        }
    }
}
