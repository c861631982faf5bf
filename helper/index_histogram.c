/* How many records began when. */

#include "index_int.h"

#include <stdio.h>


#define HISTOGRAM_FAILED  4         /* statuses that count as failures */

typedef struct {
    index_histogram_t  *h;
    int64_t             failed[HISTOGRAM_FAILED];
    unsigned            nfailed;
} histogram_count_t;


static bool
histogram_row(void *data, sqlite3_stmt *st)
{
    int64_t             at, status;
    index_bucket_t     *b;
    histogram_count_t  *c = data;

    at = (sqlite3_column_int64(st, 1) - c->h->from_us) / c->h->step_us;

    if (at < 0 || at >= (int64_t) c->h->n) {
        return true;
    }

    b = &c->h->buckets[at];
    b->total++;
    status = sqlite3_column_int64(st, 2);

    for (unsigned i = 0; i < c->nfailed; i++) {
        b->failed += status == c->failed[i];
    }

    return true;
}


/* The numbers of the statuses that count as failures. */
static bool
histogram_words(index_reader_t *r, histogram_count_t *c)
{
    sqlite3_stmt  *st;

    if (sqlite3_prepare_v2(r->db, "select id from words where kind = 1 and"
                           " text in ('failed', 'timeout')", -1, &st, NULL)
        != SQLITE_OK)
    {
        return false;
    }

    while (c->nfailed < HISTOGRAM_FAILED && sqlite3_step(st) == SQLITE_ROW) {
        c->failed[c->nfailed++] = sqlite3_column_int64(st, 0);
    }

    return sqlite3_finalize(st) == SQLITE_OK;
}


static void
histogram_steps(index_histogram_t *h, const history_filter_t *f, unsigned n)
{
    int64_t  ms;

    h->from_us = f->from_us;
    h->to_us = f->to_us;

    ms = (f->to_us - f->from_us + 999) / 1000;
    h->step_us = (ms + n - 1) / n * 1000;
    h->n = (unsigned) ((f->to_us - f->from_us + h->step_us - 1) / h->step_us);
}


index_rc_e
index_histogram(index_t *ix, const index_question_t *q, unsigned n,
    index_histogram_t *h)
{
    bool                     has_resume;
    int64_t                  resume;
    index_rc_e               rc;
    index_plan_t             p;
    index_reader_t          *r;
    index_question_t         all;
    histogram_count_t        c;
    const history_filter_t  *f = q->filter;

    memset(h, 0, sizeof(index_histogram_t));
    memset(&c, 0, sizeof(c));

    if (n == 0 || n > INDEX_BUCKETS || f->from_us < 0
        || f->to_us <= f->from_us)
    {
        (void) snprintf(h->why, sizeof(h->why), "buckets need a time from that"
                        " is before the time to");
        return INDEX_BAD;
    }

    histogram_steps(h, f, n);
    h->exact = true;
    c.h = h;
    all = *q;
    all.has_before = false;
    all.has_after = false;

    r = index_reader(ix, h->why, sizeof(h->why));
    if (r == NULL) {
        return INDEX_FAILED;
    }

    rc = index_plan(r, &all, &p, h->why, sizeof(h->why));

    if (rc == INDEX_OK && !histogram_words(r, &c)) {
        (void) snprintf(h->why, sizeof(h->why), "the index cannot be read: %s",
                        sqlite3_errmsg(r->db));
        rc = INDEX_FAILED;
    }

    if (rc == INDEX_OK) {
        rc = index_rows(ix, r, &p, "o.pos, o.started, o.status", false, -1,
                        histogram_row, &c, &has_resume, &resume, h->why,
                        sizeof(h->why));
    }

    h->exact = rc == INDEX_OK;
    index_note(ix, rc == INDEX_BAD ? &ix->numbers.refused
                   : rc == INDEX_PARTIAL ? &ix->numbers.inexact : NULL);

    index_plan_free(&p);
    index_reader_back(ix, r, rc == INDEX_FAILED);

    return rc;
}
