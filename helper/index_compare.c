/* The list against what history files still have. */

#include "index_int.h"

#include "history_query.h"
#include "id.h"

#include <stdio.h>
#include <stdlib.h>


static int
index_int_compare(const void *one, const void *two)
{
    const int64_t  *a = one, *b = two;

    return (*a > *b) - (*a < *b);
}


/* All numbers of history_events, in order; NULL without memory or a file. */
static int64_t *
index_events(index_box_t *box, size_t *n)
{
    int            rc;
    size_t         alloc;
    int64_t       *seqs, *more;
    sqlite3_stmt  *st;

    *n = 0;
    alloc = 1024;
    seqs = malloc(alloc * sizeof(int64_t));

    if (seqs == NULL
        || sqlite3_prepare_v2(box->db, "select seq from history_events order"
                              " by seq", -1, &st, NULL) != SQLITE_OK)
    {
        free(seqs);
        return NULL;
    }

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {

        if (*n == alloc) {
            alloc *= 2;
            more = realloc(seqs, alloc * sizeof(int64_t));

            if (more == NULL) {
                break;
            }

            seqs = more;
        }

        seqs[(*n)++] = sqlite3_column_int64(st, 0);
    }

    (void) sqlite3_finalize(st);

    if (rc != SQLITE_DONE) {
        free(seqs);
        return NULL;
    }

    return seqs;
}


/* The event id of a place in the list; false: *rc. */
static bool
index_event(index_t *ix, int64_t pos, char id[129], int *rc)
{
    sb_str_t       text;
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_EVENT, "select event, flags from ops where"
                    " pos = ?1");
    if (st == NULL) {
        *rc = sqlite3_errcode(ix->db);
        return false;
    }

    sqlite3_bind_int64(st, 1, pos);
    *rc = sqlite3_step(st);

    if (*rc == SQLITE_ROW) {
        if (sqlite3_column_int64(st, 1) & INDEX_NO_UUID) {
            text = history_column(st, 0);
            (void) snprintf(id, 129, "%.*s", (int) text.len, text.data);

        } else {
            sb_uuid_text(id, sqlite3_column_blob(st, 0));
        }

        *rc = SQLITE_OK;
    }

    (void) sqlite3_reset(st);

    return *rc == SQLITE_OK;
}


/* Reads a record that _gateway has no longer where it is now; false: it is
 * nowhere, or *failed: that cannot be told now, or *rc. */
static bool
index_moved(index_t *ix, index_box_t *gateway, int64_t pos, bool *failed,
    int *rc)
{
    int               moved;
    char              id[129], dir[STORE_DIR_LEN];
    size_t            n;
    index_box_t      *box;
    history_error_t   err;

    if (!index_event(ix, pos, id, rc)) {
        return false;
    }

    /* those of other files may have taken its connection */
    moved = index_box_open(ix, gateway)
            ? history_query_moved(gateway->db, id, dir, &err) : -1;

    if (moved == 0) {
        return false;
    }

    box = moved == 1 ? index_box(ix, dir) : NULL;
    if (box == NULL) {
        *failed = true;
        return false;
    }

    if (!index_box_begin(ix, box)) {
        *failed = box->failing || box->retry_us;
        return false;
    }

    n = ix->ndocs;
    *rc = index_box_add(ix, box);

    if (*rc == SQLITE_OK) {
        *rc = index_read_one(ix, box, id, failed);
    }

    index_box_end(box);

    if (ix->ndocs == n) {
        return false;
    }

    if (*rc == SQLITE_OK && ix->ndocs >= INDEX_BATCH) {
        *rc = index_commit(ix);

        if (*rc == SQLITE_OK) {
            *rc = index_begin(ix);
        }
    }

    return true;
}


bool
index_compare(index_t *ix, index_box_t *box, int *rc)
{
    bool           failed, there;
    size_t         n, i, gone, alloc;
    int64_t        ev, *events, *pos, *more;
    sqlite3_stmt  *st;

    *rc = SQLITE_OK;

    if (box->id == 0) {
        return true;
    }

    if (!index_box_open(ix, box)
        || (events = index_events(box, &n)) == NULL)
    {
        return false;
    }

    gone = 0;
    alloc = 256;
    pos = malloc(alloc * sizeof(int64_t));
    st = index_stmt(ix, INDEX_S_EVENTS, "select ev, pos from ops indexed by"
                    " ops_box where box = ?1");

    if (pos == NULL || st == NULL) {
        *rc = pos == NULL ? SQLITE_NOMEM : sqlite3_errcode(ix->db);
        free(pos);
        free(events);
        return false;
    }

    sqlite3_bind_int64(st, 1, box->id);

    while (*rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
        ev = sqlite3_column_int64(st, 0);

        if (bsearch(&ev, events, n, sizeof(int64_t), index_int_compare)) {
            continue;
        }

        if (gone == alloc) {
            alloc *= 2;
            more = realloc(pos, alloc * sizeof(int64_t));

            if (more == NULL) {
                *rc = SQLITE_NOMEM;
                break;
            }

            pos = more;
        }

        pos[gone++] = sqlite3_column_int64(st, 1);
    }

    if (*rc == SQLITE_OK) {
        *rc = sqlite3_reset(st);

    } else {
        (void) sqlite3_reset(st);
    }

    if (*rc == SQLITE_OK && gone) {
        *rc = index_begin(ix);
    }

    failed = false;

    for (i = 0; i < gone && *rc == SQLITE_OK && !failed; i++) {
        there = index_is_gateway(box)
                && index_moved(ix, box, pos[i], &failed, rc);

        if (*rc == SQLITE_OK && !failed && !there) {
            *rc = index_op_drop(ix, pos[i]);
        }
    }

    free(pos);
    free(events);

    return *rc == SQLITE_OK && !failed;
}
