/* A plan is run: rows of the list. */

#include "index_int.h"

#include "id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


#define INDEX_PARTS  4096       /* of the full text, asked at most */


/* One statement over the list, or over it and one part of the text.  *n counts
 * what was seen; SQLITE_DONE: to the end, SQLITE_ROW: `row` had enough. */
static int
index_rows_of(index_reader_t *r, const index_plan_t *p, const char *text,
    int64_t lo, int64_t hi, const char *columns, bool ascending, int64_t limit,
    index_row_pt row, void *data)
{
    int            rc;
    sb_buf_t       sql = { .max = 512 * 1024 };
    unsigned       i;
    const char    *order;
    sqlite3_stmt  *st;

    order = ascending ? "asc" : "desc";

    if (text == NULL && p->ntypes && strncmp(columns, "o.pos,", 6) == 0) {

        /* each type in the order of its index; SQLite merges them */

        for (i = 0; i < p->ntypes; i++) {
            (void) sb_buf_printf(&sql, "%sselect %s from ops o indexed by"
                                 " ops_type cross join boxes b on b.id = o.box"
                                 " where o.type = %" PRId64 " and"
                                 " o.pos between ?1 and ?2%s",
                                 i ? " union all " : "", columns, p->types[i],
                                 p->where.data);
        }

        (void) sb_buf_printf(&sql, " order by 1 %s limit %" PRId64, order,
                             limit);

    } else if (text == NULL) {
        (void) sb_buf_printf(&sql, "select %s from ops o %s cross join boxes b"
                             " on b.id = o.box where o.pos between ?1 and ?2"
                             "%s order by o.pos %s limit %" PRId64, columns,
                             p->index, p->where.data, order, limit);

    } else if (p->few) {
        (void) sb_buf_printf(&sql, "select %s from ops o %s cross join %s f on"
                             " f.rowid = o.pos cross join boxes b on"
                             " b.id = o.box where %s match ?3 and"
                             " o.pos between ?1 and ?2%s order by o.pos %s"
                             " limit %" PRId64, columns, p->index, text, text,
                             p->where.data, order, limit);

    } else {
        (void) sb_buf_printf(&sql, "select %s from %s f cross join ops o not"
                             " indexed on o.pos = f.rowid cross join boxes b on"
                             " b.id = o.box where %s match ?3 and"
                             " f.rowid between ?1 and ?2%s order by f.rowid %s"
                             " limit %" PRId64, columns, text, text,
                             p->where.data, order, limit);
    }

    rc = sb_buf_cstr(&sql) == NULL ? SQLITE_NOMEM
         : sqlite3_prepare_v2(r->db, sql.data, -1, &st, NULL);
    sb_buf_free(&sql);

    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_int64(st, 1, lo);
    sqlite3_bind_int64(st, 2, hi);

    if (text) {
        sqlite3_bind_text(st, 3, p->match.data, (int) p->match.len,
                          SQLITE_STATIC);
    }

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (!row(data, st)) {
            break;
        }
    }

    (void) sqlite3_finalize(st);

    return rc;
}


void
index_note(index_t *ix, uint64_t *number)
{
    if (number) {
        pthread_mutex_lock(&ix->lock);
        (*number)++;
        pthread_mutex_unlock(&ix->lock);
    }
}


static size_t
index_parts_of(index_reader_t *r, const index_plan_t *p, bool ascending,
    int64_t *ids, int *rc)
{
    size_t         n;
    sqlite3_stmt  *st;

    *rc = sqlite3_prepare_v2(r->db, ascending
              ? "select id from parts where id between ?1 and ?2 order by id"
              : "select id from parts where id between ?1 and ?2"
                " order by id desc", -1, &st, NULL);
    if (*rc != SQLITE_OK) {
        return 0;
    }

    sqlite3_bind_int64(st, 1, index_part(p->lo));
    sqlite3_bind_int64(st, 2, index_part(p->hi));

    for (n = 0; n < INDEX_PARTS && sqlite3_step(st) == SQLITE_ROW; n++) {
        ids[n] = sqlite3_column_int64(st, 0);
    }

    *rc = sqlite3_finalize(st);

    return n;
}


static int
index_rows_text(index_reader_t *r, const index_plan_t *p, const char *columns,
    bool ascending, int64_t limit, index_row_pt row, void *data,
    bool *has_resume, int64_t *resume)
{
    int       rc;
    char      name[32];
    size_t    i, n;
    int64_t  *ids, lo, hi;

    ids = malloc(INDEX_PARTS * sizeof(int64_t));
    if (ids == NULL) {
        return SQLITE_NOMEM;
    }

    n = index_parts_of(r, p, ascending, ids, &rc);

    if (rc == SQLITE_OK) {
        rc = SQLITE_DONE;
    }

    for (i = 0; i < n && rc == SQLITE_DONE; i++) {
        index_part_name(name, ids[i]);
        lo = ids[i] < 0 ? INT64_MIN : ids[i] << INDEX_PART_BITS;
        hi = ids[i] < 0 ? -1 : ((ids[i] + 1) << INDEX_PART_BITS) - 1;

        rc = index_rows_of(r, p, name, lo > p->lo ? lo : p->lo,
                           hi < p->hi ? hi : p->hi, columns, ascending, limit,
                           row, data);

        if (rc == SQLITE_DONE) {
            *has_resume = true;
            *resume = ascending ? hi : lo;
        }
    }

    free(ids);

    return rc;
}


index_rc_e
index_rows(index_t *ix, index_reader_t *r, index_plan_t *p,
    const char *columns, bool ascending, int64_t limit, index_row_pt row,
    void *data, bool *has_resume, int64_t *resume, char *why, size_t size)
{
    int  rc;

    *has_resume = false;

    if (p->none) {
        return INDEX_OK;
    }

    rc = p->text ? index_rows_text(r, p, columns, ascending, limit, row, data,
                                   has_resume, resume)
                 : index_rows_of(r, p, NULL, p->lo, p->hi, columns, ascending,
                                 limit, row, data);

    if (rc == SQLITE_DONE || rc == SQLITE_ROW) {
        *has_resume = false;
        return INDEX_OK;
    }

    if (rc == SQLITE_INTERRUPT) {
        index_note(ix, &ix->numbers.partial);
        (void) snprintf(why, size, "the question took too long: what was found"
                        " until then");
        return INDEX_PARTIAL;
    }

    *has_resume = false;
    (void) snprintf(why, size, "the index cannot be read: %s",
                    sqlite3_errmsg(r->db));

    return INDEX_FAILED;
}


/* --- hits ---------------------------------------------------------------------------- */

#define INDEX_HIT  "o.pos, o.ev, b.dir, o.event, o.started, o.flags"

typedef struct {
    index_answer_t  *a;
    unsigned         limit;
} index_hits_t;


static void
index_hit(index_hit_t *hit, sqlite3_stmt *st)
{
    int64_t  flags;

    flags = sqlite3_column_int64(st, 5);
    hit->cursor = sqlite3_column_int64(st, 0);
    hit->row = sqlite3_column_int64(st, 1);
    (void) snprintf(hit->dir, sizeof(hit->dir), "%s",
                    (const char *) sqlite3_column_text(st, 2));

    if ((flags & INDEX_NO_UUID) || sqlite3_column_bytes(st, 3) != 16) {
        (void) snprintf(hit->id, sizeof(hit->id), "%s",
                        (const char *) sqlite3_column_text(st, 3));
    } else {
        sb_uuid_text(hit->id, sqlite3_column_blob(st, 3));
    }

    hit->started_us = sqlite3_column_int64(st, 4);
    hit->text_cut = (flags & INDEX_CUT) != 0;
}


static bool
index_hits(void *data, sqlite3_stmt *st)
{
    index_hits_t  *h = data;

    if (h->a->n == h->limit) {
        h->a->more = true;
        return false;
    }

    index_hit(&h->a->hits[h->a->n++], st);

    return h->a->n <= h->limit;
}


/*
 * The time was over within a part of the text, or of the list: what was handed
 * out of it is looked at, too.  Hits come in the order of the list.
 */
static void
index_resume(const index_question_t *q, index_answer_t *a)
{
    int64_t  last;

    if (a->n == 0) {
        return;
    }

    last = a->hits[a->n - 1].cursor;

    if (!a->has_resume || (q->ascending ? last > a->resume
                                        : last < a->resume))
    {
        a->has_resume = true;
        a->resume = last;
    }
}


index_rc_e
index_query(index_t *ix, const index_question_t *q, index_answer_t *a)
{
    index_rc_e       rc;
    index_hits_t     h;
    index_plan_t     p;
    index_reader_t  *r;

    memset(a, 0, sizeof(index_answer_t));

    if (q->limit == 0 || q->limit > INDEX_LIMIT) {
        (void) snprintf(a->why, sizeof(a->why), "limit is 1 to %d",
                        INDEX_LIMIT);
        return INDEX_BAD;
    }

    h.a = a;
    h.limit = q->limit;
    a->hits = calloc(q->limit, sizeof(index_hit_t));
    r = index_reader(ix, a->why, sizeof(a->why));

    if (a->hits == NULL || r == NULL) {
        if (r) {
            index_reader_back(ix, r, false);
        }

        return INDEX_FAILED;
    }

    rc = index_plan(r, q, &p, a->why, sizeof(a->why));
    index_note(ix, rc == INDEX_BAD ? &ix->numbers.refused
                   : rc == INDEX_PARTIAL ? &ix->numbers.partial : NULL);

    if (rc == INDEX_OK) {
        rc = index_rows(ix, r, &p, INDEX_HIT, q->ascending,
                        (int64_t) q->limit + 1, index_hits, &h,
                        &a->has_resume, &a->resume, a->why, sizeof(a->why));
    }

    if (rc == INDEX_PARTIAL) {
        index_resume(q, a);
    }

    index_plan_free(&p);
    index_reader_back(ix, r, rc == INDEX_FAILED);

    return rc;
}


void
index_answer_free(index_answer_t *a)
{
    free(a->hits);
    a->hits = NULL;
    a->n = 0;
}


int
index_find(index_t *ix, const char *id, index_hit_t *hit)
{
    int              rc;
    char             why[100];
    uint8_t          uuid[16];
    sqlite3_stmt    *st;
    index_reader_t  *r;

    r = index_reader(ix, why, sizeof(why));
    if (r == NULL) {
        return -1;
    }

    rc = sqlite3_prepare_v2(r->db, "select " INDEX_HIT " from ops o indexed by"
                            " ops_event cross join boxes b on b.id = o.box"
                            " where o.event = ?1 order by o.pos desc limit 1",
                            -1, &st, NULL);

    if (rc == SQLITE_OK) {

        if (sb_uuid_parse(uuid, sb_str(id, strlen(id))) == SB_OK) {
            sqlite3_bind_blob(st, 1, uuid, 16, SQLITE_STATIC);
        } else {
            sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
        }

        rc = sqlite3_step(st);

        if (rc == SQLITE_ROW) {
            index_hit(hit, st);
        }

        (void) sqlite3_finalize(st);
    }

    index_reader_back(ix, r, rc != SQLITE_ROW && rc != SQLITE_DONE);

    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : -1;
}
