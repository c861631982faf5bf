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
        (void) clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        (void) pthread_cond_timedwait(&a->wake, &a->lock, &until);
    }

    pthread_mutex_unlock(&a->lock);

    /* without a thread of our own (apply_all) nothing would ever stop it */
    return a->running ? !stop : false;
}


/*
 * Opens the file of a directory.  One that cannot be used is set aside and
 * made anew, which *lost tells; NULL: give up.
 */
store_db_t *
apply_open(apply_t *a, const char *dir, bool *lost)
{
    int          rc;
    bool         aside;
    store_db_t  *db;

    aside = false;

    for ( ;; ) {
        db = store_get(a->store, dir, true, &rc);

        if (db) {
            return db;
        }

        if (store_broken(rc) && !aside) {
            store_set_aside(a->store, dir, "broken");
            aside = true;
            *lost = true;
            continue;
        }

        if (!apply_again(a, dir, rc)) {
            return NULL;
        }
    }
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


store_db_t *
apply_gateway(apply_t *a)
{
    int          rc;
    bool         lost;
    move_t       m;
    store_db_t  *db;

    lost = false;

    for ( ;; ) {
        db = apply_open(a, SCHEMA_GATEWAY, &lost);
        if (db == NULL) {
            return NULL;
        }

        if (!db->fresh) {
            db->pins++;
            return db;
        }

        memset(&m, 0, sizeof(m));
        m.sandbox = SCHEMA_GATEWAY;
        m.instance = SCHEMA_GATEWAY_INSTANCE;
        m.applied = a->batch_from;

        rc = store_begin(db);

        if (rc == SQLITE_OK) {
            rc = move_file(db, &m);

            if (rc == SQLITE_OK) {
                rc = store_commit(db, a->batch_from);

            } else {
                store_rollback(db);
            }
        }

        if (rc == SQLITE_OK && lost) {
            apply_mark_lost(a, SCHEMA_GATEWAY);
        }

        if (rc != SQLITE_OK && !apply_again(a, SCHEMA_GATEWAY, rc)) {
            return NULL;
        }
    }
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

    now = sb_now_us();
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
        a->ask_after_us = sb_now_us() + APPLY_ASK_PAUSE_US;
        return;
    }

    if (answer.status == 200) {
        apply_answer(box, &answer);

    } else if (answer.status == 0) {
        a->ask_after_us = sb_now_us() + APPLY_ASK_PAUSE_US;
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


/* `lost`: it had a file, which is gone. */
bool
apply_make_file(apply_t *a, apply_box_t *box, bool lost)
{
    int          rc;
    char         legacy[SCHEMA_LEGACY_LEN + 1];
    move_t       m;
    store_db_t  *db, *gateway;

    for ( ;; ) {
        gateway = apply_gateway(a);
        if (gateway == NULL) {
            return false;
        }

        memset(&m, 0, sizeof(m));
        m.sandbox = box->id;
        m.events = (const uint8_t (*)[16]) box->moves;
        m.nevents = box->nmoves;
        m.applied = a->batch_from;

        /* replayed after a crash: what _gateway has of the sandbox may be
         * newer than what we are at */
        if (!lost && gateway->applied > m.applied) {
            m.applied = gateway->applied;
        }

        db = apply_open(a, box->dir, &lost);

        if (db == NULL) {
            gateway->pins--;
            return false;
        }

        db->pins++;

        if (db->fresh) {
            apply_identity(a, box, &m, legacy);
        }

        rc = move_in(a->store, db, gateway, &m);
        db->pins--;
        gateway->pins--;

        if (rc == SQLITE_OK) {
            break;
        }

        if (store_broken(rc)) {
            store_set_aside(a->store, m.gateway_failed ? SCHEMA_GATEWAY
                                                       : box->dir, "broken");

        } else if (!apply_again(a, box->dir, rc)) {
            return false;
        }
    }

    if (lost) {
        apply_mark_lost(a, box->dir);
    }

    return true;
}


bool
apply_make_files(apply_t *a)
{
    apply_box_t  *box;

    while ((box = a->makes) != NULL) {

        if (!apply_make_file(a, box, false)) {
            return false;
        }

        a->makes = box->next_make;
        box->making = false;
        box->next_make = NULL;
        free(box->moves);
        box->moves = NULL;
        box->nmoves = 0;
    }

    return true;
}
