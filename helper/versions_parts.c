#include "versions_parts.h"

#include <stdlib.h>


static int
versions_piece(versions_parts_t *v, uint64_t n, uint64_t kind,
    uint64_t offset, sb_str_t data)
{
    size_t             alloc;
    versions_piece_t  *p;

    if (v->npieces == v->apieces) {
        alloc = v->apieces ? v->apieces * 2 : 16;

        p = realloc(v->pieces, alloc * sizeof(versions_piece_t));
        if (p == NULL) {
            return SQLITE_NOMEM;
        }

        v->pieces = p;
        v->apieces = alloc;
    }

    p = &v->pieces[v->npieces];
    p->n = n;
    p->kind = kind;
    p->offset = offset;
    p->order = v->npieces++;
    p->data = data;

    return SQLITE_OK;
}


static int
versions_compare(const void *a, const void *b)
{
    const versions_piece_t  *x = a, *y = b;

    if (x->n != y->n) {
        return x->n < y->n ? -1 : 1;
    }

    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }

    return x->order < y->order ? -1 : x->order > y->order;
}


static int
versions_frame(versions_parts_t *v, const sb_frame_t *f)
{
    int       rc;
    uint16_t  tag;
    uint64_t  n, kind, offset;
    sb_str_t  fields, value;

    fields = f->fields;
    n = 0;
    kind = SB_CONTENT_AFTER;
    offset = 0;

    while (sb_field_next(&fields, &tag, &value)) {

        switch (tag) {

        case SB_T_FILE_N:
            n = sb_value_u64(value, FACTS_FILES);
            kind = SB_CONTENT_AFTER;
            break;

        case SB_T_FILE_KIND:
            kind = sb_value_u64(value, UINT64_MAX);
            break;

        case SB_T_FILE_OFFSET:
            offset = sb_value_u64(value, SB_CONTENT_MAX);
            break;

        case SB_T_DATA:
            if (n < FACTS_FILES && kind <= SB_CONTENT_VOID
                && offset <= SB_CONTENT_MAX
                && value.len <= SB_CONTENT_MAX - offset)
            {
                rows_try(rc, versions_piece(v, n, kind, offset, value));
            }

            break;

        default:
            break;
        }
    }

    return SQLITE_OK;
}


int
versions_parts_collect(versions_parts_t *v, const rows_record_t *first)
{
    int                   rc;
    const rows_record_t  *r;

    for (r = first; r; r = r->next) {
        if (r->r.frame.type == SB_F_CONTENT) {
            rows_try(rc, versions_frame(v, &r->r.frame));
        }
    }

    if (v->npieces) {
        qsort(v->pieces, v->npieces, sizeof(versions_piece_t),
              versions_compare);
    }

    return SQLITE_OK;
}


int
versions_parts_keep(store_db_t *db, rows_op_t *op, const rows_record_t *first)
{
    int                   rc;
    size_t                i;
    sqlite3_stmt         *st;
    versions_parts_t      v;
    versions_piece_t     *p;
    const rows_record_t  *r;

    for (r = first; r && r->r.frame.type != SB_F_CONTENT; r = r->next) {
        /* void */
    }

    if (r == NULL || op->pending) {
        return SQLITE_OK;
    }

    memset(&v, 0, sizeof(v));
    rc = versions_parts_collect(&v, r);

    if (rc == SQLITE_OK) {
        /* the event they refer to */
        rc = store_flush(db);
    }

    for (i = 0; i < v.npieces && rc == SQLITE_OK; i++) {
        p = &v.pieces[i];

        st = store_stmt(db, ROWS_PART_ADD, "insert or ignore into"
                        " gateway_parts(event_id, n, kind, offset, data)"
                        " values(?1, ?2, ?3, ?4, ?5)");
        if (st == NULL) {
            rc = sqlite3_errcode(db->db);
            break;
        }

        store_bind_id(st, 1, op->id);
        sqlite3_bind_int64(st, 2, (sqlite3_int64) p->n);
        sqlite3_bind_int64(st, 3, (sqlite3_int64) p->kind);
        sqlite3_bind_int64(st, 4, (sqlite3_int64) p->offset);
        sqlite3_bind_blob64(st, 5, p->data.data, p->data.len, SQLITE_STATIC);
        rc = store_run(st);
    }

    versions_parts_free(&v);

    return rc;
}


void
versions_parts_free(versions_parts_t *v)
{
    free(v->pieces);
}


int
versions_parts_gather(const versions_parts_t *v, store_db_t *db,
    const uint8_t id[16], int64_t n, sb_content_e kind, sb_buf_t *out,
    versions_parts_e *state)
{
    int                rc;
    bool               whole;
    size_t             lo, hi, mid, pieces;
    sqlite3_stmt      *st;
    versions_piece_t   key, *p;

    whole = true;
    pieces = 0;
    out->len = 0;
    out->max = SB_CONTENT_MAX;
    rc = SQLITE_OK;

    if (v->stored) {
        st = store_stmt(db, ROWS_PART_READ, "select offset, data from"
                        " gateway_parts where event_id = ?1 and n = ?2 and"
                        " kind = ?3 order by offset");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        store_bind_id(st, 1, id);
        sqlite3_bind_int64(st, 2, n);
        sqlite3_bind_int64(st, 3, kind);

        while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
            pieces++;

            if ((size_t) sqlite3_column_int64(st, 0) != out->len) {
                whole = false;

            } else if (sb_buf_add(out, sqlite3_column_blob(st, 1),
                                  (size_t) sqlite3_column_bytes(st, 1))
                       != SB_OK)
            {
                whole = false;
            }
        }

        (void) sqlite3_reset(st);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    key.n = (uint64_t) n;
    key.kind = kind;
    key.order = 0;

    for (lo = 0, hi = v->npieces; lo < hi; /* void */ ) {
        mid = lo + (hi - lo) / 2;

        if (versions_compare(&v->pieces[mid], &key) < 0) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    for (p = v->pieces + lo; p < v->pieces + v->npieces
                             && p->n == (uint64_t) n && p->kind == kind; p++)
    {
        pieces++;

        if (p->offset != out->len
            || sb_buf_add(out, p->data.data, p->data.len) != SB_OK)
        {
            whole = false;
        }
    }

    *state = pieces == 0 ? VERSIONS_PARTS_NONE
             : whole ? VERSIONS_PARTS_WHOLE : VERSIONS_PARTS_HOLE;

    return rc;
}
