/* Records into the list and their text into the full text. */

#include "index_int.h"

#include "id.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>


int
index_begin(index_t *ix)
{
    int  rc;

    if (ix->in_tx) {
        return SQLITE_OK;
    }

    rc = sqlite3_exec(ix->db, "begin immediate", NULL, NULL, NULL);
    ix->in_tx = (rc == SQLITE_OK);

    return rc;
}


void
index_rollback(index_t *ix)
{
    if (ix->db && ix->in_tx) {
        (void) sqlite3_exec(ix->db, "rollback", NULL, NULL, NULL);
    }

    /* its statement may be of a table that is not there now; so may words */
    (void) sqlite3_finalize(ix->part_stmt);
    ix->part_stmt = NULL;
    ix->part_docs = 0;
    ix->in_tx = false;
    ix->ndocs = 0;
    ix->text.len = 0;
}


/* --- the full text ------------------------------------------------------------ */

int
index_part_note(index_t *ix)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = SQLITE_OK;

    if (ix->part_docs) {
        st = index_stmt(ix, INDEX_S_PART_DOCS, "update parts set"
                        " docs = docs + ?2 where id = ?1");
        if (st == NULL) {
            return sqlite3_errcode(ix->db);
        }

        sqlite3_bind_int64(st, 1, ix->part_id);
        sqlite3_bind_int64(st, 2, (sqlite3_int64) ix->part_docs);
        rc = index_run(st);
        ix->part_docs = 0;
    }

    return rc;
}


static int
index_part_make(index_t *ix, int64_t part)
{
    int            rc;
    char           name[32], sql[400];
    bool           there;
    sqlite3_stmt  *st;

    index_part_name(name, part);

    st = index_stmt(ix, INDEX_S_PART, "select 1 from parts where id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, part);
    there = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_reset(st);

    if (there) {
        return SQLITE_OK;
    }

    /* the text itself is in the history files; ranks are not asked for */

    (void) snprintf(sql, sizeof(sql), "create virtual table %s using fts5("
                    "head, body, content='', columnsize=0, tokenize='sandbox');"
                    "insert into %s(%s, rank) values('hashsize', 4194304);"
                    "insert into %s(%s, rank) values('automerge', 8);",
                    name, name, name, name, name);

    rc = sqlite3_exec(ix->db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    st = index_stmt(ix, INDEX_S_PART_ADD, "insert into parts values(?1, 0,"
                    " 0)");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, part);

    return index_run(st);
}


/* A row of a part of the full text counts no more. */
static int
index_part_dead(index_t *ix, int64_t pos)
{
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_PART_DEAD, "update parts set dead = dead + 1"
                    " where id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, index_part(pos));
    ix->lost = true;

    return index_run(st);
}


/*
 * A record whose text has grown is added again: where a table without content
 * has a row twice, what came later counts, and it says all that the earlier
 * one said.
 */
int
index_text(index_t *ix, int64_t pos, sb_str_t head, sb_str_t out)
{
    int      rc;
    char     name[32], sql[128];
    int64_t  part;

    if (head.len == 0 && out.len == 0) {
        return SQLITE_OK;
    }

    part = index_part(pos);

    if (ix->part_stmt == NULL || ix->part_id != part) {
        rc = index_part_note(ix);

        if (rc == SQLITE_OK) {
            rc = index_part_make(ix, part);
        }

        if (rc != SQLITE_OK) {
            return rc;
        }

        index_part_name(name, part);
        (void) snprintf(sql, sizeof(sql), "insert into %s(rowid, head, body)"
                        " values(?1, ?2, ?3)", name);
        (void) sqlite3_finalize(ix->part_stmt);
        rc = sqlite3_prepare_v3(ix->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                &ix->part_stmt, NULL);
        if (rc != SQLITE_OK) {
            ix->part_stmt = NULL;
            return rc;
        }

        ix->part_id = part;
    }

    sqlite3_bind_int64(ix->part_stmt, 1, pos);
    sqlite3_bind_text(ix->part_stmt, 2, head.data, (int) head.len,
                      SQLITE_STATIC);
    sqlite3_bind_text(ix->part_stmt, 3, out.data, (int) out.len, SQLITE_STATIC);
    ix->part_docs++;

    return index_run(ix->part_stmt);
}


/* --- records --------------------------------------------------------------------- */

static void
index_bind_or_null(sqlite3_stmt *st, int n, int64_t v, int64_t none)
{
    if (v == none) {
        sqlite3_bind_null(st, n);

    } else {
        sqlite3_bind_int64(st, n, v);
    }
}


static int
index_row(index_t *ix, const index_doc_t *d)
{
    uint8_t        id[16];
    int64_t        flags;
    sqlite3_stmt  *st;

    /* REPLACE would take paths along for nothing: what is there is changed */

    st = d->had ? index_stmt(ix, INDEX_S_SET, "update ops set box = ?2,"
                    " ev = ?3, event = ?4, type = ?5, status = ?6, source = ?7,"
                    " actor_type = ?8, actor = ?9, thread = ?10, run = ?11,"
                    " correlation = ?12, started = ?13, duration = ?14,"
                    " exit_code = ?15, flags = ?16, head = ?17, body = ?18"
                    " where pos = ?1")
                : index_stmt(ix, INDEX_S_ADD, "insert into ops values(?1, ?2,"
                    " ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
                    " ?16, ?17, ?18)");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    flags = d->flags;
    sqlite3_bind_int64(st, 1, d->pos);
    sqlite3_bind_int64(st, 2, d->box->id);
    sqlite3_bind_int64(st, 3, d->ev);

    if (sb_uuid_parse(id, sb_str(d->id, strlen(d->id))) == SB_OK) {
        sqlite3_bind_blob(st, 4, id, 16, SQLITE_TRANSIENT);

    } else {
        flags |= INDEX_NO_UUID;
        sqlite3_bind_text(st, 4, d->id, -1, SQLITE_STATIC);
    }

    sqlite3_bind_int64(st, 5, d->type);
    sqlite3_bind_int64(st, 6, d->status);
    sqlite3_bind_int64(st, 7, d->source);
    sqlite3_bind_int64(st, 8, d->actor_type);
    index_bind_or_null(st, 9, d->actor, 0);
    index_bind_or_null(st, 10, d->thread, 0);
    index_bind_or_null(st, 11, d->run, 0);
    index_bind_or_null(st, 12, d->correlation, 0);
    sqlite3_bind_int64(st, 13, d->started);
    index_bind_or_null(st, 14, d->duration, -1);

    if (d->has_exit_code) {
        sqlite3_bind_int64(st, 15, d->exit_code);
    } else {
        sqlite3_bind_null(st, 15);
    }

    sqlite3_bind_int64(st, 16, flags);
    sqlite3_bind_int64(st, 17, (sqlite3_int64) d->nhead);
    sqlite3_bind_int64(st, 18, (sqlite3_int64) d->nout);

    return index_run(st);
}


static int
index_path(index_t *ix, int64_t pos, const char *path)
{
    int            rc;
    int64_t        id;
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_PATH, "select id from paths where path = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    id = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    (void) sqlite3_reset(st);

    if (id == 0) {
        st = index_stmt(ix, INDEX_S_PATH_ADD, "insert into paths(path)"
                        " values(?1)");
        if (st == NULL) {
            return sqlite3_errcode(ix->db);
        }

        sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
        rc = index_run(st);
        if (rc != SQLITE_OK) {
            return rc;
        }

        id = sqlite3_last_insert_rowid(ix->db);
    }

    st = index_stmt(ix, INDEX_S_PATHS_ADD, "insert or ignore into op_paths"
                    " values(?1, ?2)");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, pos);

    return index_run(st);
}


static int
index_paths(index_t *ix, const index_doc_t *d)
{
    int          rc;
    size_t       i;
    const char  *p;

    rc = SQLITE_OK;
    p = ix->text.data + d->paths;

    /* paths are only added to a record: what is there stays */

    for (i = 0; i < d->npaths && rc == SQLITE_OK; i++) {
        rc = index_path(ix, d->pos, p);
        p += strlen(p) + 1;
    }

    return rc;
}


static int
index_span(index_t *ix, int64_t pos, int64_t lo, int64_t hi)
{
    sqlite3_stmt  *st;

    if (pos < 0) {
        return SQLITE_OK;
    }

    st = index_stmt(ix, INDEX_S_SPAN, "insert into spans values(?1, ?2, ?3)"
                    " on conflict(id) do update set lo = min(lo, excluded.lo),"
                    " hi = max(hi, excluded.hi)");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, pos >> INDEX_SPAN_BITS);
    sqlite3_bind_int64(st, 2, lo);
    sqlite3_bind_int64(st, 3, hi);

    return index_run(st);
}


/* Positions in order: a table of the full text takes rows out of order only
 * with a flush.  What was read of one record, the last word last: that of the
 * file it moves to from _gateway, which has it until it is there. */
static int
index_doc_compare(const void *one, const void *two)
{
    bool                moved;
    const index_doc_t  *a = one, *b = two;

    if (a->pos != b->pos) {
        return a->pos < b->pos ? -1 : 1;
    }

    moved = !index_is_gateway(a->box);

    if (moved == index_is_gateway(b->box)) {
        return moved ? 1 : -1;
    }

    return (a->order > b->order) - (a->order < b->order);
}


/* The same record, be it on its way from _gateway? */
static bool
index_same(const index_doc_t *a, const index_doc_t *b)
{
    return strcmp(a->id, b->id) == 0
           && (a->box == b->box || index_is_gateway(a->box)
               || index_is_gateway(b->box));
}


/* Is there a row at a position? */
static int
index_taken(index_t *ix, int64_t pos, bool *taken)
{
    int            rc;
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_FREE, "select 1 from ops where pos = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, pos);
    rc = sqlite3_step(st);
    *taken = rc == SQLITE_ROW;
    (void) sqlite3_reset(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/*
 * Those of one position.  What was read twice counts once, the last time, which
 * knows more.  Of different records one has the position: that whose row is there
 * already, else the first; the others (a copy of a file, a record of the helper's
 * own behind one that is still running) have places of their own.
 */
static int
index_settle(index_t *ix, index_doc_t *d, size_t n)
{
    int           rc;
    size_t        i, j;
    index_doc_t  *own;

    own = NULL;

    for (i = 0; i < n; i++) {

        for (j = i + 1; j < n && !index_same(&d[i], &d[j]); j++) {
            /* void */
        }

        if (j < n) {
            d[j].keep_text = d[j].keep_text && d[i].keep_text;
            d[i].skip = true;

        } else if (own == NULL || (d[i].had && !own->had)) {
            own = &d[i];
        }
    }

    for (i = 0, rc = SQLITE_OK; i < n && rc == SQLITE_OK; i++) {

        if (!d[i].skip && &d[i] != own) {
            rc = index_place(ix, d[i].box, d[i].ev, d[i].started, &d[i].pos);

            if (rc == SQLITE_OK) {
                rc = index_taken(ix, d[i].pos, &d[i].had);
            }
        }
    }

    return rc;
}


static int
index_docs(index_t *ix)
{
    int           rc;
    size_t        i, n;
    int64_t       span, lo, hi;
    index_doc_t  *d;

    rc = SQLITE_OK;
    span = -1;
    lo = hi = 0;

    qsort(ix->docs, ix->ndocs, sizeof(index_doc_t), index_doc_compare);

    for (i = 0; i < ix->ndocs && rc == SQLITE_OK; i += n) {
        d = &ix->docs[i];

        for (n = 1; i + n < ix->ndocs && d[n].pos == d->pos; n++) {
            /* void */
        }

        if (n > 1) {
            rc = index_settle(ix, d, n);
        }
    }

    for (i = 0; i < ix->ndocs && rc == SQLITE_OK; i++) {
        d = &ix->docs[i];

        if (d->skip) {
            continue;
        }

        if (rc == SQLITE_OK && d->had && !d->keep_text) {
            rc = index_part_dead(ix, d->pos);
        }

        if (rc == SQLITE_OK) {
            rc = index_row(ix, d);
        }

        if (rc == SQLITE_OK && d->npaths) {
            rc = index_paths(ix, d);
        }

        if (rc == SQLITE_OK && !d->keep_text) {
            rc = index_text(ix, d->pos,
                            sb_str(ix->text.data + d->head, d->nhead),
                            sb_str(ix->text.data + d->out, d->nout));
        }

        if (rc == SQLITE_OK && d->pos >> INDEX_SPAN_BITS != span) {
            if (span >= 0) {
                rc = index_span(ix, span << INDEX_SPAN_BITS, lo, hi);
            }

            span = d->pos >> INDEX_SPAN_BITS;
            lo = hi = d->started;
        }

        lo = d->started < lo ? d->started : lo;
        hi = d->started > hi ? d->started : hi;

        if (d->pos > ix->max_pos) {
            ix->max_pos = d->pos;
        }
    }

    if (rc == SQLITE_OK && span >= 0) {
        rc = index_span(ix, span << INDEX_SPAN_BITS, lo, hi);
    }

    return rc == SQLITE_OK ? index_part_note(ix) : rc;
}


static void
index_count(index_t *ix)
{
    size_t    i;
    uint64_t  rows, cut;

    rows = 0;
    cut = 0;

    for (i = 0; i < ix->ndocs; i++) {
        rows += !ix->docs[i].had;
        cut += (ix->docs[i].flags & INDEX_CUT) != 0;
    }

    pthread_mutex_lock(&ix->lock);
    ix->numbers.rows += rows;
    ix->numbers.cut += cut;
    ix->numbers.indexed += ix->ndocs;
    pthread_mutex_unlock(&ix->lock);
}


int
index_commit(index_t *ix)
{
    int  rc;

    if (!ix->in_tx) {
        return SQLITE_OK;
    }

    rc = index_docs(ix);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(ix->db, "commit", NULL, NULL, NULL);
    }

    if (rc != SQLITE_OK) {
        index_rollback(ix);
        return rc;
    }

    index_count(ix);
    ix->in_tx = false;
    ix->ndocs = 0;
    ix->text.len = 0;

    return SQLITE_OK;
}


/* --- records of others ------------------------------------------------------------- */

int
index_place(index_t *ix, index_box_t *box, int64_t ev, int64_t started,
    int64_t *pos)
{
    int            rc;
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_FOREIGN, "select pos from ops indexed by"
                    " ops_foreign where box = ?1 and ev = ?2 and pos < 0");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, box->id);
    sqlite3_bind_int64(st, 2, ev);
    rc = sqlite3_step(st);
    *pos = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    (void) sqlite3_reset(st);

    if (rc == SQLITE_ROW) {
        return SQLITE_OK;
    }

    /* the first free one from its time on, those of this batch included */

    *pos = INDEX_FOREIGN + (started > 0 ? started : 0);

    for ( ;; ) {
        st = index_stmt(ix, INDEX_S_FREE, "select 1 from ops where pos = ?1");
        if (st == NULL) {
            return sqlite3_errcode(ix->db);
        }

        sqlite3_bind_int64(st, 1, *pos);
        rc = sqlite3_step(st);
        (void) sqlite3_reset(st);

        if (rc != SQLITE_ROW) {
            size_t  i;

            for (i = 0; i < ix->ndocs; i++) {
                if (ix->docs[i].pos == *pos
                    && (ix->docs[i].box != box || ix->docs[i].ev != ev))
                {
                    break;
                }
            }

            if (i == ix->ndocs) {
                return rc == SQLITE_DONE ? SQLITE_OK : rc;
            }
        }

        (*pos)++;
    }
}


/* --- what is no more --------------------------------------------------------------- */

int
index_op_drop(index_t *ix, int64_t pos)
{
    int            rc;
    bool           text;
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_OP_DEL, "delete from ops where pos = ?1"
                    " returning head + body");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, pos);
    rc = sqlite3_step(st);
    text = rc == SQLITE_ROW && sqlite3_column_int64(st, 0);

    if (rc == SQLITE_ROW) {
        rc = sqlite3_step(st);
    }

    (void) sqlite3_reset(st);

    if (rc == SQLITE_DONE && text) {
        rc = index_part_dead(ix, pos);
        rc = rc == SQLITE_OK ? SQLITE_DONE : rc;
    }

    if (rc != SQLITE_DONE) {
        return rc;
    }

    st = index_stmt(ix, INDEX_S_PATHS_DEL, "delete from op_paths where"
                    " pos = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, pos);

    pthread_mutex_lock(&ix->lock);
    ix->numbers.rows -= ix->numbers.rows != 0;
    pthread_mutex_unlock(&ix->lock);

    return index_run(st);
}


int
index_box_drop(index_t *ix, index_box_t *box, bool gone)
{
    int            rc;
    size_t         i, n;
    int64_t        pos[256];
    sqlite3_stmt  *st;

    if (box->id == 0) {
        return SQLITE_OK;
    }

    do {
        st = index_stmt(ix, INDEX_S_OPS_OF, "select pos from ops indexed by"
                        " ops_box where box = ?1 limit 256");
        if (st == NULL) {
            return sqlite3_errcode(ix->db);
        }

        sqlite3_bind_int64(st, 1, box->id);

        for (n = 0; (rc = sqlite3_step(st)) == SQLITE_ROW; n++) {
            pos[n] = sqlite3_column_int64(st, 0);
        }

        (void) sqlite3_reset(st);

        for (i = 0; i < n && rc == SQLITE_DONE; i++) {
            if (index_op_drop(ix, pos[i]) != SQLITE_OK) {
                return sqlite3_errcode(ix->db);
            }
        }

    } while (n == 256 && rc == SQLITE_DONE);

    if (rc != SQLITE_DONE) {
        return rc;
    }

    box->change = 0;
    box->change_id[0] = '\0';

    st = gone ? index_stmt(ix, INDEX_S_BOX_DEL, "delete from boxes where"
                           " id = ?1")
              : index_stmt(ix, INDEX_S_BOX_SET, "update boxes set ino = ?2,"
                           " change = ?3, change_id = ?4 where id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, box->id);

    if (gone) {
        box->id = 0;

    } else {
        sqlite3_bind_int64(st, 2, box->ino);
        sqlite3_bind_int64(st, 3, 0);
        sqlite3_bind_text(st, 4, "", 0, SQLITE_STATIC);
    }

    return index_run(st);
}
