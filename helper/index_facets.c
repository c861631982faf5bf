/* How many records have which type, status, actor, sandbox, source. */

#include "index_int.h"

#include <stdio.h>
#include <stdlib.h>


#define FACET_SLOTS   65536         /* of the table of counts, a power of 2 */
#define FACET_MOST    (FACET_SLOTS / 2)     /* different values */

const char *const  index_facet_names[INDEX_FACET_COUNT] = {
    "type", "status", "actor", "sandbox", "source"
};

typedef struct {
    int64_t   a, b;                 /* the value; an actor has two numbers */
    uint32_t  n;                    /* 0: free */
    uint8_t   facet;
} facet_slot_t;

typedef struct {
    facet_slot_t    *slots;
    size_t           used;
    index_facets_t  *f;
    unsigned         most;
    uint64_t         other[INDEX_FACET_COUNT];
} facet_count_t;


static void
facet_add(facet_count_t *c, index_facet_e facet, int64_t a, int64_t b)
{
    size_t         i;
    uint64_t       h;
    facet_slot_t  *s;

    h = ((uint64_t) a * 0x9e3779b97f4a7c15ull
         ^ (uint64_t) b * 0xc2b2ae3d27d4eb4full) + facet;
    h ^= h >> 29;

    for (i = h & (FACET_SLOTS - 1); ; i = (i + 1) & (FACET_SLOTS - 1)) {
        s = &c->slots[i];

        if (s->n && s->a == a && s->b == b && s->facet == facet) {
            s->n++;
            return;
        }

        if (s->n == 0) {
            break;
        }
    }

    if (c->used >= FACET_MOST) {
        c->other[facet]++;
        return;
    }

    c->used++;
    s->a = a;
    s->b = b;
    s->facet = (uint8_t) facet;
    s->n = 1;
}


static bool
facet_row(void *data, sqlite3_stmt *st)
{
    facet_count_t  *c = data;

    if (c->f->total == c->most) {
        c->f->exact = false;
        return false;
    }

    c->f->total++;
    facet_add(c, INDEX_F_TYPE, sqlite3_column_int64(st, 0), 0);
    facet_add(c, INDEX_F_STATUS, sqlite3_column_int64(st, 1), 0);
    facet_add(c, INDEX_F_ACTOR, sqlite3_column_int64(st, 2),
              sqlite3_column_int64(st, 3));
    facet_add(c, INDEX_F_SANDBOX, sqlite3_column_int64(st, 4), 0);
    facet_add(c, INDEX_F_SOURCE, sqlite3_column_int64(st, 5), 0);

    return true;
}


static int
facet_compare(const void *one, const void *two)
{
    const facet_slot_t  *a = one, *b = two;

    if (a->facet != b->facet) {
        return a->facet < b->facet ? -1 : 1;
    }

    if (a->n != b->n) {
        return a->n > b->n ? -1 : 1;
    }

    return (a->a > b->a) - (a->a < b->a);
}


static char *
facet_text(sqlite3_stmt *word, sqlite3_stmt *box, const facet_slot_t *s)
{
    char           *text, *more, *both;
    const char     *p;
    sqlite3_stmt   *st;

    st = s->facet == INDEX_F_SANDBOX ? box : word;
    sqlite3_bind_int64(st, 1, s->a);
    p = sqlite3_step(st) == SQLITE_ROW
        ? (const char *) sqlite3_column_text(st, 0) : NULL;
    text = strdup(p ? p : "");
    (void) sqlite3_reset(st);

    if (s->facet != INDEX_F_ACTOR || text == NULL) {
        return text;
    }

    sqlite3_bind_int64(word, 1, s->b);
    p = s->b && sqlite3_step(word) == SQLITE_ROW
        ? (const char *) sqlite3_column_text(word, 0) : "";
    more = strdup(p ? p : "");
    (void) sqlite3_reset(word);

    both = more ? malloc(strlen(text) + strlen(more) + 2) : NULL;

    if (both) {
        (void) sprintf(both, "%s:%s", text, more);
    }

    free(text);
    free(more);

    return both;
}


/* The values of each facet, most first. */
static bool
facet_tell(index_reader_t *r, facet_count_t *c)
{
    int             rc;
    size_t          i, n;
    index_facet_t  *f;
    sqlite3_stmt   *word, *box;

    rc = sqlite3_prepare_v2(r->db, "select text from words where id = ?1", -1,
                            &word, NULL);
    if (rc != SQLITE_OK) {
        return false;
    }

    rc = sqlite3_prepare_v2(r->db, "select dir from boxes where id = ?1", -1,
                            &box, NULL);
    if (rc != SQLITE_OK) {
        (void) sqlite3_finalize(word);
        return false;
    }

    for (i = 0, n = 0; i < FACET_SLOTS; i++) {
        if (c->slots[i].n) {
            c->slots[n++] = c->slots[i];
        }
    }

    qsort(c->slots, n, sizeof(facet_slot_t), facet_compare);

    for (i = 0; i < INDEX_FACET_COUNT; i++) {
        c->f->of[i].values = calloc(INDEX_FACET_VALUES, sizeof(index_count_t));

        if (c->f->of[i].values == NULL) {
            rc = SQLITE_NOMEM;
        }

        c->f->of[i].other = c->other[i];
    }

    for (i = 0; i < n && rc == SQLITE_OK; i++) {
        f = &c->f->of[c->slots[i].facet];

        if (f->n == INDEX_FACET_VALUES) {
            f->other += c->slots[i].n;
            continue;
        }

        f->values[f->n].value = facet_text(word, box, &c->slots[i]);
        f->values[f->n].n = c->slots[i].n;

        if (f->values[f->n].value == NULL) {
            rc = SQLITE_NOMEM;
            break;
        }

        if (c->slots[i].facet == INDEX_F_STATUS
            && (strcmp(f->values[f->n].value, "failed") == 0
                || strcmp(f->values[f->n].value, "timeout") == 0))
        {
            c->f->failed += c->slots[i].n;
        }

        f->n++;
    }

    (void) sqlite3_finalize(word);
    (void) sqlite3_finalize(box);

    return rc == SQLITE_OK;
}


index_rc_e
index_facets(index_t *ix, const index_question_t *q, index_facets_t *f)
{
    bool              has_resume;
    int64_t           resume;
    index_rc_e        rc;
    index_plan_t      p;
    facet_count_t     c;
    index_reader_t   *r;
    index_question_t  all;

    memset(f, 0, sizeof(index_facets_t));
    memset(&c, 0, sizeof(c));
    f->exact = true;
    c.f = f;
    c.most = q->counted ? q->counted : INDEX_FACETS;
    all = *q;
    all.has_before = false;
    all.has_after = false;

    c.slots = calloc(FACET_SLOTS, sizeof(facet_slot_t));
    r = index_reader(ix, f->why, sizeof(f->why));

    if (c.slots == NULL || r == NULL) {
        if (r) {
            index_reader_back(ix, r, false);
        }

        free(c.slots);
        return INDEX_FAILED;
    }

    rc = index_plan(r, &all, &p, f->why, sizeof(f->why));

    if (rc == INDEX_OK) {
        rc = index_rows(ix, r, &p, "o.type, o.status, o.actor_type, o.actor,"
                        " o.box, o.source", false, (int64_t) c.most + 1,
                        facet_row, &c, &has_resume, &resume, f->why, sizeof(f->why));
    }

    if (rc == INDEX_PARTIAL) {
        f->exact = false;
    }

    index_note(ix, rc == INDEX_BAD ? &ix->numbers.refused
                   : !f->exact ? &ix->numbers.inexact : NULL);

    r->until_us = 0;
    r->looks = 0;

    if ((rc == INDEX_OK || rc == INDEX_PARTIAL) && !facet_tell(r, &c)) {
        (void) snprintf(f->why, sizeof(f->why), "the index cannot be read: %s",
                        sqlite3_errmsg(r->db));
        rc = INDEX_FAILED;
    }

    index_plan_free(&p);
    index_reader_back(ix, r, rc == INDEX_FAILED);
    free(c.slots);

    return rc;
}


void
index_facets_free(index_facets_t *f)
{
    size_t  i, k;

    for (i = 0; i < INDEX_FACET_COUNT; i++) {
        for (k = 0; f->of[i].values && k < f->of[i].n; k++) {
            free(f->of[i].values[k].value);
        }

        free(f->of[i].values);
        f->of[i].values = NULL;
        f->of[i].n = 0;
    }
}
