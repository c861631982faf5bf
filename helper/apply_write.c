/* One batch: each group of records into its file. */

#include "apply_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <time.h>


#define APPLY_PENDING_US     2000000u
#define APPLY_LEFT_OUT       "not_recordable"


/* --- one transaction ---------------------------------------------------- */

static bool
apply_is_logic(int rc)
{
    switch (rc & 0xff) {

    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
    case SQLITE_MISUSE:
        return true;

    default:
        return false;
    }
}


/* Where the transaction stood before the operation at hand. */
typedef struct {
    size_t   chain;
    int64_t  seq;
    int64_t  contents;
} apply_mark_t;


/* What was written of it does not count. */
static void
apply_op_back(apply_op_t *op)
{
    op->row.loaded = false;
    op->row.pending = false;
    op->row.unkept = op->unkept_was;
    op->row.told = op->told_was;
}


static void
apply_back(store_db_t *db, apply_op_t *op, const apply_mark_t *m)
{
    bulk_clear(db->bulk);
    (void) sqlite3_exec(db->db, "rollback to one", NULL, NULL, NULL);
    db->next_seq = m->seq;
    db->contents_news = m->contents;
    db->nfolds = 0;
    chain_back(&db->chain, m->chain);

    if (op) {
        apply_op_back(op);
    }
}


/* In the place of records that do not fit: a gap, and the bare end of their
 * operation if that is among them. */
static int
apply_left_out(store_db_t *db, apply_op_t *op, const apply_item_t *item,
    bool end)
{
    int                 rc;
    char                mem[256];
    bool                begins;
    size_t              need;
    sb_str_t            v;
    rows_record_t      *r, bare;
    sb_frame_writer_t   w;

    begins = op && op->first->r.frame.type == SB_F_BEGIN;

    rc = SQLITE_OK;

    /* it does not fit each time that the journal is replayed */

    if (item->rec.r.cursor > db->applied
        || !rows_gap_told(db, APPLY_LEFT_OUT, item->rec.r.cursor))
    {
        rows_try(rc, rows_failed(db, op ? op->row.id : NULL, begins,
                                 APPLY_LEFT_OUT, item->rec.r.cursor));
    }

    for (r = end && op && !begins ? op->first : NULL; r; r = r->next) {

        if (r->r.frame.type != SB_F_END
            || sb_field_get(&r->r.frame, SB_T_DETACHED, &v))
        {
            continue;
        }

        sb_frame_begin(&w, mem, sizeof(mem), SB_F_END, 0, 0, op->row.id,
                       r->r.frame.time_us);
        sb_frame_put(&w, SB_T_STATUS, sb_lit("unknown"));
        sb_frame_put(&w, SB_T_REASON, sb_lit(APPLY_LEFT_OUT));

        bare = *r;
        bare.next = NULL;
        bare.r.raw = mem;

        if (sb_frame_read(&bare.r.frame, mem, sb_frame_end(&w), &need) == SB_OK)
        {
            rows_try(rc, rows_write(db, &op->row, &bare, false));
        }

        break;
    }

    return store_flush(db);
}


static int
apply_guarded(store_db_t *db, bool careful, apply_op_t *op,
    const apply_item_t *item)
{
    int           rc;
    char          id[SB_UUID_LEN + 1];
    bool          end;
    apply_mark_t  m;

    rc = SQLITE_OK;
    m.seq = db->next_seq;
    m.contents = db->contents_news;
    m.chain = chain_mark(&db->chain);

    if (careful) {
        rows_try(rc, sqlite3_exec(db->db, "savepoint one", NULL, NULL, NULL));
    }

    if (op && op->first->r.frame.type == SB_F_BEGIN) {
        op->row.skipped = db->full == RETAIN_NO_RECORDS;

        if (op->row.skipped) {
            rc = rows_unkept(db, op->first->r.frame.time_us,
                             op->first->r.cursor);
        }
    }

    if (op && op->row.skipped) {
        op->row.pending = false;

    } else if (op) {
        rc = rows_write(db, &op->row, op->first, false);

    } else if (item->rec.r.frame.type == SB_F_GAP) {
        rc = rows_gap(db, &item->rec.r);

    } else {
        rc = rows_state(db, item->state, item->name,
                        item->rec.r.frame.time_us);
    }

    if (!careful) {
        return rc;
    }

    if (rc == SQLITE_OK) {
        rc = store_flush(db);
    }

    if (apply_is_logic(rc)) {
        sb_uuid_text(id, op ? op->row.id : item->rec.r.frame.op);
        log_minutely(LOG_ERROR, "record %llu (operation %s) does not fit into "
                     "the history of %s and is left out: %s",
                     (unsigned long long) item->rec.r.cursor, id, db->dir,
                     sqlite3_errmsg(db->db));
    }

    for (end = true; apply_is_logic(rc); end = false) {
        apply_back(db, op, &m);

        if (item->op == NULL && item->rec.r.frame.type != SB_F_GAP) {
            /* news of a sandbox: no record is missing */
            rc = SQLITE_OK;
            break;
        }

        rc = apply_left_out(db, op, item, end);

        if (!end && apply_is_logic(rc)) {
            apply_back(db, op, &m);
            rc = SQLITE_OK;
        }
    }

    return rc == SQLITE_OK
           ? sqlite3_exec(db->db, "release one", NULL, NULL, NULL) : rc;
}


/*
 * Replayed after a crash, batches are cut elsewhere: what went past _gateway
 * into a file that the same batch made may come to _gateway first today, behind
 * its cursor, and a file may be younger than the cursor that it began with.
 * What a file has of an operation is not told by its cursor alone.
 */
static bool
apply_missed(store_db_t *db, apply_op_t *op, const apply_item_t *item)
{
    const sb_frame_t  *f;

    f = &item->rec.r.frame;

    if (f->type == SB_F_BEGIN) {
        /* a folded poll leaves no record of its own */
        op->missed = !(f->flags & SB_FF_FOLD)
                     && !rows_recorded(db, op->row.id);

        if (op->missed && rows_gone_known(db, item->rec.r.cursor)) {
            /* it was deleted, or there was no room for it; both are counted */
            op->missed = false;
            op->row.skipped = true;
        }
    }

    return op->missed;
}


static int
apply_slice_write(apply_t *a, store_db_t *db, const apply_slice_t *s)
{
    int            rc;
    size_t         i, unkept;
    uint64_t       last, bytes;
    apply_op_t    *op;
    apply_item_t  *item;

    /* the records of each operation in one list, in order */

    for (i = s->from; i < s->to; i++) {
        item = &a->items[s->group->items[i]];
        op = item->op;

        if (op == NULL || (item->rec.r.cursor <= db->applied
                           && !apply_missed(db, op, item)))
        {
            continue;
        }

        if (!op->touched) {
            op->touched = true;
            op->unkept_was = op->row.unkept;
            op->told_was = op->row.told;
            op->first = NULL;
            op->last = &op->first;
        }

        item->rec.next = NULL;
        *op->last = &item->rec;
        op->last = &item->rec.next;
    }

    db->full = a->retain ? retain_level(a->retain, db) : RETAIN_ROOM;
    rc = store_begin(db);
    last = db->applied;
    unkept = 0;
    bytes = 0;

    for (i = s->from; i < s->to; i++) {
        item = &a->items[s->group->items[i]];
        op = item->op;

        if (item->rec.r.cursor > last) {
            last = item->rec.r.cursor;
        }

        if (op ? !op->touched : item->rec.r.cursor <= db->applied) {
            continue;
        }

        if (op) {
            op->touched = false;
        }

        if (rc == SQLITE_OK) {
            rc = apply_guarded(db, s->careful, op, item);
            bytes += op ? (uint64_t) (op->row.unkept - op->unkept_was) : 0;
            unkept += op && op->row.skipped
                      && op->first->r.frame.type == SB_F_BEGIN;
        }
    }

    if (rc != SQLITE_OK) {
        if (db->in_tx) {
            store_rollback(db);
        }

        return rc;
    }

    rc = store_commit(db, last);

    if (rc == SQLITE_OK) {
        stats_add(STATS_UNKEPT, unkept);
        stats_add(STATS_UNKEPT_BYTES, bytes);
    }

    if (rc == SQLITE_OK && a->retain) {
        retain_touch(a->retain, db);
    }

    return rc;
}


/* The transaction did not happen: neither did what was noted meanwhile. */
static void
apply_slice_undo(apply_t *a, const apply_slice_t *s)
{
    size_t       i;
    apply_op_t  *op;

    for (i = s->from; i < s->to; i++) {
        op = a->items[s->group->items[i]].op;

        if (op) {
            apply_op_back(op);
        }
    }
}


/* The open file of a group; one that vanished is made anew.  NULL with a
 * code. */
static store_db_t *
apply_group_file(apply_t *a, apply_group_t *g, int *rc)
{
    store_db_t  *db;

    if (g->box == NULL) {
        db = apply_gateway(a, rc);

        if (db) {
            db->pins--;
        }

        return db;
    }

    db = store_get(a->store, g->box->dir, false, rc);

    if (db && !db->fresh) {
        return db;
    }

    if (*rc != SQLITE_OK && *rc != SQLITE_NOTFOUND && !store_broken(*rc)) {
        return NULL;
    }

    if (*rc != SQLITE_OK && *rc != SQLITE_NOTFOUND) {
        store_set_aside(a->store, g->box->dir, "broken");
    }

    /* one without tables was not made to its end: nothing of it is lost */
    *rc = apply_make_file(a, g->box, db == NULL);

    if (*rc != SQLITE_OK) {
        return NULL;
    }

    return store_get(a->store, g->box->dir, false, rc);
}


int
apply_slice_try(apply_t *a, apply_slice_t *s)
{
    int          rc;
    store_db_t  *db;

    s->careful = false;

    for ( ;; ) {
        db = apply_group_file(a, s->group, &rc);

        if (db == NULL) {
            return rc;
        }

        rc = apply_slice_write(a, db, s);

        if (rc == SQLITE_OK) {
            return rc;
        }

        apply_slice_undo(a, s);

        if (apply_is_logic(rc) && !s->careful) {
            s->careful = true;

        } else if (store_broken(rc)) {
            store_set_aside(a->store, s->group->box ? s->group->box->dir
                                                    : SCHEMA_GATEWAY,
                            "broken");
        } else {

            if ((rc & 0xff) == SQLITE_READONLY) {
                /* it stays so until it is opened again */
                store_drop(a->store, db);
            }

            return rc;
        }
    }
}


/* What cannot be written now waits: for its file alone while there is room,
 * else all of it.  False: stop. */
static bool
apply_slice_write_or_wait(apply_t *a, apply_slice_t *s)
{
    int           rc;
    apply_box_t  *box;

    box = apply_stall_box(a, s->group);

    for ( ;; ) {

        /* those before it come first */
        rc = box->stalled ? SQLITE_BUSY : apply_slice_try(a, s);

        if (rc == SQLITE_OK) {
            return true;
        }

        if (apply_stall(a, s->group, s->from, rc)) {
            s->to = s->group->n;
            return true;
        }

        /* the batch at hand stays where it is: what waits cannot be tried in
         * between */
        if (box->stalled || !apply_again(a, box->dir, rc)) {
            return false;
        }
    }
}


static uint64_t
apply_cpu_us(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}


bool
apply_slice(apply_t *a, apply_slice_t *s)
{
    bool      ok;
    uint64_t  begun;

    begun = apply_cpu_us();
    ok = apply_slice_write_or_wait(a, s);
    s->cpu_us = apply_cpu_us() - begun;

    return ok;
}


static uint64_t
apply_cursor(const apply_t *a, const apply_slice_t *s, size_t i)
{
    return a->items[s->group->items[i]].rec.r.cursor;
}


bool
apply_write_groups(apply_t *a)
{
    bool           low, ok;
    size_t         i, n, most;
    apply_slice_t  s;

    for (i = 0; i < a->ngroups; i++) {
        s.group = &a->groups[i];
        n = s.group->n;

        for (s.from = 0; s.from < n; s.from = s.to) {
            low = a->low && a->busy && !apply_pressed(a);
            most = low ? APPLY_SLICE_LOW
                       : a->busy ? APPLY_SLICE : APPLY_SLICE_IDLE;
            s.to = n - s.from > most ? s.from + most : n;

            /* what one record is besides is written with it: a file is asked
             * by its cursor what it has */

            while (s.to < n && apply_cursor(a, &s, s.to)
                               == apply_cursor(a, &s, s.to - 1))
            {
                s.to++;
            }

            ok = low ? apply_low_slice(a, &s) : apply_slice(a, &s);

            if (!ok) {
                return false;
            }

            if (a->busy) {
                apply_pause(a, s.cpu_us);
            }
        }
    }

    return true;
}


/* --- polls that take long ----------------------------------------------- */

typedef struct {
    apply_t   *a;
    uint64_t   now_us;
    unsigned   n;
    bool       failed;
} apply_force_t;


static void
apply_force_visit(void *entry, void *data)
{
    int             rc;
    apply_op_t     *op = entry;
    store_db_t     *db;
    apply_force_t  *f = data;

    if (!op->row.pending || f->failed || op->aside
        || (op->box && op->box->stalled)
        || (!op->home && f->a->gateway.stalled))
    {
        return;
    }

    if (op->pending_us == 0) {
        op->pending_us = f->now_us;
    }

    if (f->now_us < op->pending_us + APPLY_PENDING_US) {
        f->n++;
        return;
    }

    db = store_get(f->a->store, op->home && op->box ? op->box->dir
                                                    : SCHEMA_GATEWAY,
                   false, &rc);
    if (db == NULL || db->fresh) {
        /* gone with its file, or it cannot be opened now */
        op->row.pending = db == NULL && rc != SQLITE_NOTFOUND;
        op->row.loaded = false;
        f->n += op->row.pending;
        return;
    }

    rc = store_begin(db);

    if (rc == SQLITE_OK) {
        rc = rows_write(db, &op->row, NULL, true);

        if (rc == SQLITE_OK) {
            rc = store_commit(db, db->applied);

        } else {
            store_rollback(db);
        }
    }

    if (rc != SQLITE_OK) {
        op->row.loaded = false;
        f->failed = !apply_again(f->a, db->dir, rc);
        f->n++;
    }
}


bool
apply_force_pending(apply_t *a, uint64_t now_us)
{
    apply_force_t  f;

    f.a = a;
    f.now_us = now_us;
    f.n = 0;
    f.failed = false;

    table_each(&a->ops, apply_force_visit, &f);
    a->npending = f.n;

    return !f.failed;
}
