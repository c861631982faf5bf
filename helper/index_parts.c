/* Parts of the full text: tables cannot forget single records without their
 * text, so they go, or are made anew, as a whole. */

#include "index_int.h"

#include "id.h"

#include <stdio.h>


#define INDEX_FEW    4          /* a part of which no more than that fraction
                                   counts is made anew ... */
#define INDEX_SMALL  1000       /* ... when at least that many do not */

_Static_assert(INDEX_PART_BITS - INDEX_SPAN_BITS == 6, "see \"id >> 6\"");


static int
index_exec(index_t *ix, const char *fmt, const char *name, int64_t part)
{
    char  sql[300];

    /* a format takes the one or the other */
    (void) snprintf(sql, sizeof(sql), fmt, name, (long long) part);

    return sqlite3_exec(ix->db, sql, NULL, NULL, NULL);
}


static void
index_part_range(int64_t part, int64_t *lo, int64_t *hi)
{
    *lo = part < 0 ? INT64_MIN : part << INDEX_PART_BITS;
    *hi = part < 0 ? -1 : ((part + 1) << INDEX_PART_BITS) - 1;
}


/* The texts of the records that are left, once more. */
static int
index_part_fill(index_t *ix, int64_t part)
{
    int            rc, step;
    char           id[129];
    int64_t        lo, hi, pos;
    sb_str_t       head, out;
    index_box_t   *box;
    const char    *dir;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(ix->db, "select o.pos, b.dir, o.event, o.flags"
                            " from ops o join boxes b on b.id = o.box where"
                            " o.pos between ?1 and ?2 and o.head + o.body > 0"
                            " order by o.pos", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    index_part_range(part, &lo, &hi);
    sqlite3_bind_int64(st, 1, lo);
    sqlite3_bind_int64(st, 2, hi);

    while (rc == SQLITE_OK && (step = sqlite3_step(st)) != SQLITE_DONE) {

        if (step != SQLITE_ROW || atomic_load(&ix->stop)) {
            rc = step != SQLITE_ROW ? step : SQLITE_INTERRUPT;
            break;
        }

        pos = sqlite3_column_int64(st, 0);
        dir = (const char *) sqlite3_column_text(st, 1);

        if (sqlite3_column_int64(st, 3) & INDEX_NO_UUID) {
            (void) snprintf(id, sizeof(id), "%s",
                            (const char *) sqlite3_column_text(st, 2));
        } else {
            sb_uuid_text(id, sqlite3_column_blob(st, 2));
        }

        box = dir ? index_box(ix, dir) : NULL;

        /* one that is gone in the meantime will leave the list too */

        if (box && index_read_text(ix, box, id, &head, &out)) {
            rc = index_text(ix, pos, head, out);
        }
    }

    (void) sqlite3_finalize(st);

    return rc;
}


static int
index_part_anew(index_t *ix, int64_t part)
{
    int   rc;
    char  name[32];

    index_part_name(name, part);
    (void) sqlite3_finalize(ix->part_stmt);
    ix->part_stmt = NULL;

    rc = index_exec(ix, "alter table %s rename to text_old", name, 0);

    if (rc == SQLITE_OK) {
        rc = index_exec(ix, "delete from parts where id = %2$lld%1$s", "",
                        part);
    }

    if (rc == SQLITE_OK) {
        rc = index_part_fill(ix, part);
    }

    if (rc == SQLITE_OK) {
        rc = index_part_note(ix);
    }

    (void) sqlite3_finalize(ix->part_stmt);
    ix->part_stmt = NULL;

    return rc != SQLITE_OK ? rc
           : sqlite3_exec(ix->db, "drop table text_old", NULL, NULL, NULL);
}


static int
index_part_drop(index_t *ix, int64_t part)
{
    int   rc;
    char  name[32];

    index_part_name(name, part);
    (void) sqlite3_finalize(ix->part_stmt);
    ix->part_stmt = NULL;
    ix->part_docs = 0;

    rc = index_exec(ix, "drop table %s", name, 0);

    if (rc == SQLITE_OK) {
        rc = index_exec(ix, "delete from parts where id = %2$lld%1$s", "",
                        part);
    }

    if (rc == SQLITE_OK && part >= 0) {
        rc = index_exec(ix, "delete from spans where id >> 6 = %2$lld%1$s", "",
                        part);
    }

    return rc != SQLITE_OK ? rc
           : sqlite3_exec(ix->db, "delete from paths where not exists(select 1"
                          " from op_paths where path = paths.id)", NULL, NULL,
                          NULL);
}


static bool
index_part_empty(index_t *ix, int64_t part)
{
    bool           empty;
    int64_t        lo, hi;
    sqlite3_stmt  *st;

    if (sqlite3_prepare_v2(ix->db, "select 1 from ops where pos between ?1 and"
                           " ?2 limit 1", -1, &st, NULL) != SQLITE_OK)
    {
        return false;
    }

    index_part_range(part, &lo, &hi);
    sqlite3_bind_int64(st, 1, lo);
    sqlite3_bind_int64(st, 2, hi);
    empty = sqlite3_step(st) == SQLITE_DONE;
    (void) sqlite3_finalize(st);

    return empty;
}


int
index_parts_tidy(index_t *ix, bool much)
{
    int            rc;
    size_t         i, n;
    int64_t        ids[64];
    bool           all[64], anew;
    sqlite3_stmt  *st;

    if (!ix->lost) {
        return SQLITE_OK;
    }

    rc = sqlite3_prepare_v2(ix->db, "select id, dead >= docs from parts where"
                            " dead >= docs or (?1 and dead >= ?2 and"
                            " (docs - dead) * ?3 <= docs) limit 64", -1, &st,
                            NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_int(st, 1, much);
    sqlite3_bind_int(st, 2, INDEX_SMALL);
    sqlite3_bind_int(st, 3, INDEX_FEW);

    for (n = 0; n < 64 && sqlite3_step(st) == SQLITE_ROW; n++) {
        ids[n] = sqlite3_column_int64(st, 0);
        all[n] = sqlite3_column_int(st, 1) != 0;
    }

    rc = sqlite3_finalize(st);
    anew = false;

    for (i = 0; i < n && rc == SQLITE_OK; i++) {

        if (!(all[i] && index_part_empty(ix, ids[i])) && (anew || !much)) {
            continue;
        }

        rc = index_begin(ix);

        if (rc == SQLITE_OK && all[i] && index_part_empty(ix, ids[i])) {
            rc = index_part_drop(ix, ids[i]);

        } else if (rc == SQLITE_OK) {
            anew = true;
            rc = index_part_anew(ix, ids[i]);
        }

        if (rc == SQLITE_OK) {
            rc = index_commit(ix);

        } else {
            index_rollback(ix);
        }
    }

    if (rc == SQLITE_INTERRUPT) {
        return SQLITE_OK;
    }

    if (rc == SQLITE_OK && !anew && much) {
        ix->lost = false;
    }

    return rc != SQLITE_OK || n == 0 ? rc
           : sqlite3_exec(ix->db, "pragma incremental_vacuum(2000)", NULL,
                          NULL, NULL);
}
