/*
 * Polls that are counted instead of having rows of their own, and those that
 * wait for their end to show it.
 */

#include "rows_end.h"

#include "id.h"

#include <stdio.h>
#include <stdlib.h>


bool
rows_foldable(const rows_op_t *op, const rows_record_t *begin)
{
    return begin && (begin->r.frame.flags & SB_FF_FOLD) && op->held == NULL;
}


static void
rows_fold_code(store_fold_t *f, const facts_t *t)
{
    sb_str_t  code;

    code = t->v[SB_T_ERROR_CODE];
    (void) snprintf(f->code, sizeof(f->code), "%.*s", (int) code.len,
                    code.data ? code.data : "");
}


void
rows_fold_key(store_fold_t *f, const facts_t *t)
{
    sb_str_t  type, actor, id;

    type = t->v[SB_T_TYPE];
    actor = t->v[SB_T_ACTOR_TYPE].len ? t->v[SB_T_ACTOR_TYPE]
                                      : sb_lit("system");
    id = t->v[SB_T_ACTOR_ID];

    (void) snprintf(f->type, sizeof(f->type), "%.*s", (int) type.len,
                    type.data ? type.data : "");
    (void) snprintf(f->actor, sizeof(f->actor), "%.*s\n%.*s",
                    actor.len < 47 ? (int) actor.len : 47, actor.data,
                    id.len < 207 ? (int) id.len : 207, id.data ? id.data : "");
    rows_fold_code(f, t);
    f->port = facts_int(t, SB_T_PORT, 0);

    /* who knocks without a credential chooses what at: that makes no rows */

    if (sb_eq(t->v[SB_T_IDENTITY], sb_lit("none"))) {
        f->type[0] = '\0';
        f->port = 0;
    }
}


store_fold_t *
rows_fold_find(store_db_t *db, const store_fold_t *key, bool ended)
{
    unsigned  i;

    for (i = 0; i < db->nfolds; i++) {
        if (store_fold_same(&db->folds[i], key, ended)) {
            return &db->folds[i];
        }
    }

    return NULL;
}


void
rows_fold_remember(store_db_t *db, rows_op_t *op, const store_fold_t *key,
    const char *status)
{
    store_fold_t  *f;

    f = rows_fold_find(db, key, true);

    if (f == NULL) {
        if (db->nfolds == STORE_FOLDS) {
            memmove(db->folds, db->folds + 1,
                    (STORE_FOLDS - 1) * sizeof(store_fold_t));
            db->nfolds--;
        }

        f = &db->folds[db->nfolds++];
    }

    *f = *key;
    sb_uuid_text(f->event_id, op->id);
    (void) snprintf(f->status, sizeof(f->status), "%s", status);
}


void
rows_fold_ended(store_db_t *db, const rows_op_t *op, const facts_t *t,
    const char *status)
{
    char           id[SB_UUID_LEN + 1];
    unsigned       i;
    store_fold_t  *f;

    sb_uuid_text(id, op->id);

    for (i = 0; i < db->nfolds; i++) {
        f = &db->folds[i];

        if (strcmp(f->event_id, id) == 0) {
            (void) snprintf(f->status, sizeof(f->status), "%s", status);
            rows_fold_code(f, t);
        }
    }
}


int
rows_fold_count(store_db_t *db, const store_fold_t *f, uint64_t at_us,
    uint64_t cursor)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_FOLD, "insert into gateway_folded(event_id, count,"
                    " last_at, cursor) values(?1, 1, ?2, ?3)"
                    " on conflict(event_id) do update set count = count + 1,"
                    " last_at = excluded.last_at, cursor = excluded.cursor");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_text(st, 1, f->event_id, -1, SQLITE_TRANSIENT);
    store_bind_time(st, 2, at_us);
    sqlite3_bind_int64(st, 3, (sqlite3_int64) cursor);

    return store_run(st);
}


/* Keeps the frames of a poll until its end shows whether it is folded. */
int
rows_pend(store_db_t *db, rows_op_t *op, const rows_record_t *first,
    uint64_t cursor)
{
    int                   rc;
    sb_buf_t              frames;
    sqlite3_stmt         *st;
    const rows_record_t  *r;

    memset(&frames, 0, sizeof(frames));
    frames.max = SB_FRAME_MAX;

    for (r = first; r; r = r->next) {
        if (sb_buf_add(&frames, r->r.raw, r->r.frame.length) != SB_OK) {
            break;
        }
    }

    st = store_stmt(db, ROWS_PENDING, "insert or replace into gateway_pending("
                    "event_id, cursor, frames) values(?1, ?2, ?3)");
    if (st == NULL) {
        sb_buf_free(&frames);
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    sqlite3_bind_int64(st, 2, (sqlite3_int64) cursor);
    sqlite3_bind_blob(st, 3, frames.data, (int) frames.len, SQLITE_TRANSIENT);

    rc = store_run(st);
    sb_buf_free(&frames);

    op->pending = (rc == SQLITE_OK);
    op->pending_at = cursor;
    op->loaded = true;

    return rc;
}


/* The frames of a pending poll, put before the new ones; *mem owns them. */
int
rows_unpend(store_db_t *db, rows_op_t *op, rows_record_t **first, void **mem)
{
    int             rc;
    char           *copy;
    size_t          n, pos, need, len;
    uint64_t        cursor;
    sqlite3_stmt   *st;
    sb_frame_t      f;
    rows_record_t  *r, *list, **last;

    st = store_stmt(db, ROWS_PENDING_GET, "select cursor, frames from"
                    " gateway_pending where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    rc = sqlite3_step(st);

    if (rc != SQLITE_ROW) {
        (void) sqlite3_reset(st);
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    cursor = (uint64_t) sqlite3_column_int64(st, 0);
    len = (size_t) sqlite3_column_bytes(st, 1);
    n = len / SB_FRAME_HEAD + 1;

    copy = malloc(n * sizeof(rows_record_t) + len);

    if (copy == NULL) {
        (void) sqlite3_reset(st);
        return SQLITE_NOMEM;
    }

    list = (rows_record_t *) (void *) copy;
    copy += n * sizeof(rows_record_t);

    if (len) {
        memcpy(copy, sqlite3_column_blob(st, 1), len);
    }

    (void) sqlite3_reset(st);

    *mem = list;
    last = NULL;
    r = list;

    for (pos = 0; pos < len && n; pos += f.length, n--) {

        if (sb_frame_read(&f, copy + pos, len - pos, &need) != SB_OK) {
            break;
        }

        memset(r, 0, sizeof(rows_record_t));
        r->r.cursor = cursor;
        r->r.frame = f;
        r->r.raw = copy + pos;
        r->next = r + 1;
        last = &r->next;
        r++;
    }

    if (last) {
        *last = *first;
        *first = list;
    }

    return SQLITE_OK;
}


int
rows_pending_done(store_db_t *db, rows_op_t *op)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_PENDING_DEL, "delete from gateway_pending where"
                    " event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    op->pending = false;

    return store_run(st);
}
