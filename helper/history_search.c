/* list --q: which records, by the index of the gateway. */

#include "history_list.h"
#include "history_query.h"
#include "history_text.h"
#include "index.h"
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static int
history_search_compare(const void *one, const void *two)
{
    const history_box_t *const  *a = one, *const *b = two;

    return strcmp((*a)->dir, (*b)->dir);
}


/* The number of a directory in `sorted`, which are boxes by name. */
static history_box_t **
history_search_box(history_box_t **sorted, size_t n, const char *dir)
{
    history_box_t  key, *p;

    p = &key;
    key.dir = (char *) (uintptr_t) dir;

    return bsearch(&p, sorted, n, sizeof(history_box_t *),
                   history_search_compare);
}


/*
 * Where a hit is that the index has seen in _gateway: it may have moved into the
 * file of its sandbox since.  NULL: it is gone.
 */
static history_box_t **
history_search_place(history_list_t *list, history_box_t **sorted,
    const index_hit_t *hit, int64_t *row)
{
    char              to[STORE_DIR_LEN];
    sqlite3          *db;
    history_box_t   **box;
    history_error_t   err;

    *row = hit->row;
    box = history_search_box(sorted, list->nboxes, hit->dir);

    if (box == NULL || strcmp(hit->dir, SCHEMA_GATEWAY) != 0) {
        return box;
    }

    db = history_place_db(list->place, *box);

    if (db == NULL || history_query_moved(db, hit->id, to, &err) != 1) {
        return box;
    }

    box = history_search_box(sorted, list->nboxes, to);
    db = box ? history_place_db(list->place, *box) : NULL;

    return db && history_query_row(db, hit->id, row, &err) == 1 ? box : NULL;
}


static bool
history_search_add(history_list_t *list, history_box_t **sorted,
    const index_answer_t *a)
{
    history_box_t  **box;
    history_key_t    key;

    for (size_t i = 0; i < a->n; i++) {
        box = history_search_place(list, sorted, &a->hits[i], &key.row);

        if (box == NULL) {
            continue;           /* it is gone */
        }

        key.cursor = a->hits[i].cursor < 0 ? -1 : a->hits[i].cursor;
        key.us = a->hits[i].started_us;
        key.box = (uint32_t) (box - sorted);
        key.done = false;

        if (!history_list_add(list, &key)) {
            return false;
        }
    }

    return true;
}


static bool
history_search(index_t *ix, history_list_t *list, history_box_t *only,
    const history_filter_t *filter, int64_t limit)
{
    bool              more, ok;
    index_rc_e        rc;
    index_answer_t    a;
    index_question_t  q;

    memset(&q, 0, sizeof(q));
    q.filter = filter;
    q.dir = only ? only->dir : NULL;
    q.limit = INDEX_LIMIT;
    q.ms = 60000;

    do {
        rc = index_query(ix, &q, &a);

        if (rc != INDEX_OK && rc != INDEX_PARTIAL) {
            history_say("the full text cannot be searched: %s", a.why);
            index_answer_free(&a);
            return false;
        }

        if (rc == INDEX_PARTIAL) {
            history_say("%s", a.why);
            list->place->incomplete = true;
        }

        ok = history_search_add(list, list->boxes, &a);
        more = ok && rc == INDEX_OK && a.more && a.n
               && (limit == -1 || list->n <= (uint64_t) limit);

        if (more) {
            q.has_before = true;
            q.before = a.hits[a.n - 1].cursor;
        }

        index_answer_free(&a);

    } while (more);

    return ok;
}


bool
history_list_search(history_list_t *list, history_box_t *only,
    const history_filter_t *filter, int64_t limit)
{
    int       n;
    bool      ok;
    char      base[PATH_MAX + 16];
    index_t  *ix;

    /* nothing depends on the order of the boxes yet */
    qsort(list->boxes, list->nboxes, sizeof(history_box_t *),
          history_search_compare);

    n = snprintf(base, sizeof(base), "%s/index", list->place->data);

    if (n >= (int) sizeof(base) || access(base, X_OK) == -1) {
        history_say("there is no %s: --q asks the index that a gateway keeps,"
                    " give its data directory with --data DIR", base);
        return false;
    }

    ix = index_new(base, list->place->root, false);
    if (ix == NULL) {
        history_say("out of memory");
        return false;
    }

    ok = history_search(ix, list, only, filter, limit);
    index_free(ix);

    history_list_trim(list, limit);

    return ok;
}
