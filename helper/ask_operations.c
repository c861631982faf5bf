/* GET operations, GET sandboxes/{id}/operations: which there were. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_boxes.h"
#include "ask_facets.h"
#include "ask_records.h"
#include "id.h"
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>


#define ASK_LIMIT  100          /* records of a page, unless told */
#define ASK_GAPS   100          /* gaps told with one */


typedef struct {
    ask_args_t         args;
    api_wait_t         wait;
    ask_listed_wait_t  listed;
    history_filter_t   filter;
    index_question_t   ask;
    bool               facets;
    unsigned           buckets;     /* 0: no histogram */
    char               dir[STORE_DIR_LEN];
    settled_t          files;       /* what is missing in the index ... */
    int64_t            settled;     /* ... for nothing is up to here */
    bool               waits;       /* a record waits for its file */
    bool               lacks;       /* ... or, read upwards, for its end */
    bool               back;        /* read against the order it is told in */
    bool               up;          /* read upwards */
} ask_list_t;

/* A page. */
typedef struct {
    index_hit_t  *hits;         /* in the order of the answer */
    size_t        n;
    bool          more;         /* there are more behind it */
    bool          has_next, has_previous;
    int64_t       next, previous;
    bool          partial;
    bool          cut;          /* in front: of `back` */
} ask_page_t;


static void
ask_list_release(void *state)
{
    ask_list_t  *s = state;

    ask_args_free(&s->args);
    free(s);
}


/* No cursor is out there, and one more or less must not run over. */
static int64_t
ask_list_cursor(int64_t cursor)
{
    return cursor > INT64_MAX / 2 ? INT64_MAX / 2
           : cursor < INT64_MIN / 2 ? INT64_MIN / 2 : cursor;
}


static bool
ask_list_args(ask_list_t *s)
{
    bool          ok;
    int           n;
    unsigned      i;
    int64_t       v;
    ask_param_t  *p;

    static const char *const  orders[] = { "desc", "asc", NULL };
    static const char *const  switches[] = { "0", "1", NULL };

    for (i = 0; i < s->args.n; i++) {
        p = &s->args.p[i];

        if (strcmp(p->name, "limit") == 0) {
            ok = ask_args_int(&s->args, p, &v, 1, INDEX_LIMIT);
            s->ask.limit = ok ? (unsigned) v : 0;

        } else if (strcmp(p->name, "before") == 0) {
            ok = ask_args_int(&s->args, p, &s->ask.before, INT64_MIN,
                              INT64_MAX);
            s->ask.has_before = true;
            s->ask.before = ask_list_cursor(s->ask.before);

        } else if (strcmp(p->name, "after") == 0) {
            ok = ask_args_int(&s->args, p, &s->ask.after, INT64_MIN, INT64_MAX);
            s->ask.has_after = true;
            s->ask.after = ask_list_cursor(s->ask.after);

        } else if (strcmp(p->name, "order") == 0) {
            n = ask_args_word(&s->args, p, orders);
            ok = n != -1;
            s->ask.ascending = n == 1;

        } else if (strcmp(p->name, "facets") == 0) {
            n = ask_args_word(&s->args, p, switches);
            ok = n != -1;
            s->facets = n == 1;

        } else if (strcmp(p->name, "buckets") == 0) {
            ok = ask_args_int(&s->args, p, &v, 1, INDEX_BUCKETS);
            s->buckets = ok ? (unsigned) v : 0;

        } else {
            ok = ask_args_filter(&s->args, p, &s->filter);
        }

        if (!ok) {
            return false;
        }
    }

    if (s->buckets && s->filter.to_us == -1) {
        s->filter.to_us = (int64_t) sb_now_us();
    }

    if (s->buckets && (s->filter.from_us == -1
                       || s->filter.from_us >= s->filter.to_us))
    {
        (void) snprintf(s->args.why, sizeof(s->args.why), "buckets need a time"
                        " from which to count: give from, before to.");
        return false;
    }

    return true;
}


/*
 * With a bound on the near side only, it is the page next to that bound, whatever
 * the order it is told in: so `previous` leads back to the page that was in front.
 */
static void
ask_list_direction(ask_list_t *s)
{
    const index_question_t  *q = &s->ask;

    s->back = q->ascending ? q->has_before && !q->has_after
                           : q->has_after && !q->has_before;
    s->up = q->ascending != s->back;
}


/*
 * What the index has, and lacks in front of it.  A list that is read upwards ends
 * where the first record is missing; one that is read downwards says so.
 */
static void
ask_list_settle(api_t *api, ask_list_t *s)
{
    int64_t    to;
    uint64_t   reached, files, polls;
    settled_t  settled;

    reached = index_settled(api->index, &settled);
    files = settled_files(&settled, s->ask.dir);
    polls = settled_to(&settled, s->ask.dir);

    s->settled = (int64_t) (polls < reached ? polls : reached);

    to = s->ask.has_before && s->ask.before <= (int64_t) s->wait.cursor
         ? s->ask.before - 1 : (int64_t) s->wait.cursor;

    s->waits = files < reached && (int64_t) files < to;
    s->lacks = s->waits || (s->up && s->settled < to);
    s->files = settled;
}


/* Sandboxes whose records wait for their file. */
static void
ask_list_waiting(sb_out_t *out, const ask_list_t *s)
{
    bool      any;
    unsigned  i;

    any = false;
    sb_out_key(out, "waiting");
    sb_out_text(out, "[");

    for (i = 0; i < s->files.n; i++) {
        if (s->ask.dir == NULL || strcmp(s->ask.dir, s->files.files[i].dir) == 0
            || strcmp(s->files.files[i].dir, SCHEMA_GATEWAY) == 0)
        {
            sb_out_text(out, any ? "," : "");
            any = true;
            sb_out_str(out, sb_str(s->files.files[i].dir,
                                   strlen(s->files.files[i].dir)));
        }
    }

    sb_out_text(out, "]");
}


/* Is there a record on that side of a cursor? */
static bool
ask_page_has(api_t *api, const ask_list_t *s, bool older, int64_t cursor)
{
    bool              found;
    index_answer_t    a;
    index_question_t  q;

    q = s->ask;
    q.has_before = older;
    q.before = cursor;
    q.has_after = !older;
    q.after = cursor;
    q.ascending = !older;
    q.limit = 1;

    /* what cannot be told in time is assumed: it costs a question more */
    found = index_query(api->index, &q, &a) != INDEX_OK || a.n != 0;
    index_answer_free(&a);

    return found;
}


static void
ask_page_turn(ask_page_t *page)
{
    size_t       i;
    index_hit_t  hit;

    for (i = 0; i < page->n / 2; i++) {
        hit = page->hits[i];
        page->hits[i] = page->hits[page->n - 1 - i];
        page->hits[page->n - 1 - i] = hit;
    }
}


/* The hits of a page. */
static index_rc_e
ask_page_read(api_t *api, ask_list_t *s, ask_page_t *page, index_answer_t *a)
{
    index_rc_e        rc;
    index_question_t  q;

    q = s->ask;
    q.ascending = s->up;

    if (s->up) {

        /*
         * Whoever follows what comes must not pass a record that is on its way
         * into the index, when one that began later is there already.
         */
        if (!q.has_before || q.before > s->settled + 1) {
            q.has_before = true;
            q.before = s->settled + 1;
        }
    }

    rc = index_query(api->index, &q, a);

    if (rc != INDEX_OK && rc != INDEX_PARTIAL) {
        return rc;
    }

    page->hits = a->hits;
    page->n = a->n;
    page->more = a->more;
    page->partial = rc == INDEX_PARTIAL;

    if (s->back) {
        ask_page_turn(page);
    }

    return rc;
}


/* The records of a page; where they are too much, those stay that are next to
 * the bound it was asked from. */
static void
ask_page_tell(api_t *api, const ask_list_t *s, sb_out_t *out,
    ask_page_t *page, ask_records_t *r)
{
    if (!s->back) {
        ask_records(api, out, page->hits, page->n, ASK_ANSWER_BYTES, r);
        return;
    }

    ask_records_last(api, out, page->hits, page->n, ASK_ANSWER_BYTES, r);

    if (out->rc == SB_OK && r->first) {
        page->hits += r->first;
        page->n -= r->first;
        page->more = true;
        page->cut = true;
    }
}


/* Where the pages around it are; `taken` of its hits are told. */
static void
ask_page_around(api_t *api, const ask_list_t *s, const index_answer_t *a,
    ask_page_t *page, size_t taken)
{
    bool     asc, back;
    int64_t  first, last;

    asc = s->ask.ascending;
    back = s->back;

    if (page->n == 0) {

        if (page->partial && a->has_resume) {
            page->has_next = !back;
            page->has_previous = back;
            page->next = page->previous = a->resume;
            return;
        }

        /* nothing there (any more): the way back */

        if (!back && (asc ? s->ask.has_after : s->ask.has_before)) {
            page->previous = asc ? s->ask.after + 1 : s->ask.before - 1;
            page->has_previous = ask_page_has(api, s, asc, page->previous);
        }

        return;
    }

    first = page->hits[0].cursor;
    last = page->hits[taken - 1].cursor;

    page->next = last;
    page->previous = first;

    if (back) {
        page->has_next = ask_page_has(api, s, !asc, last);
        page->has_previous = page->more;

    } else {
        page->has_next = taken < page->n || page->more;
        page->has_previous = ask_page_has(api, s, asc, first);
    }

    if (page->partial && a->has_resume) {

        if (back) {
            page->has_previous = true;
            page->previous = page->cut ? first : a->resume;

        } else if (taken == page->n) {
            page->has_next = true;
            page->next = a->resume;
        }
    }
}


static void
ask_cursor(sb_out_t *out, const char *name, bool has, int64_t cursor)
{
    sb_out_key(out, name);

    if (has) {
        sb_out_int(out, cursor);

    } else {
        sb_out_text(out, "null");
    }
}


/* What is missing between the first and the last record of a page, and, where
 * none is in front of it or behind, on to the bound that was asked for. */
static void
ask_list_gaps(api_t *api, const ask_list_t *s, sb_out_t *out,
    const ask_page_t *page, size_t taken, bool *complete)
{
    index_rc_e        rc;
    ask_records_t     r;
    index_answer_t    a;
    index_question_t  q;
    history_filter_t  f;

    history_filter_init(&f);
    f.type.text[0] = "gateway.gap";
    f.type.n = 1;
    f.from_us = s->filter.from_us;
    f.to_us = s->filter.to_us;

    q = s->ask;
    q.filter = &f;
    q.limit = ASK_GAPS;

    if (taken && page->has_next) {

        if (q.ascending) {
            q.has_before = true;
            q.before = page->hits[taken - 1].cursor;

        } else {
            q.has_after = true;
            q.after = page->hits[taken - 1].cursor;
        }
    }

    if (taken && page->has_previous) {

        if (q.ascending) {
            q.has_after = true;
            q.after = page->hits[0].cursor - 1;

        } else {
            q.has_before = true;
            q.before = page->hits[0].cursor + 1;
        }
    }

    sb_out_key(out, "gaps");
    sb_out_text(out, "[");

    rc = index_query(api->index, &q, &a);

    if (rc == INDEX_OK || rc == INDEX_PARTIAL) {
        ask_records(api, out, a.hits, a.n, ASK_ANSWER_BYTES, &r);
        *complete = *complete && rc == INDEX_OK && !a.more && !r.unreadable;

    } else {
        *complete = false;
    }

    index_answer_free(&a);
    sb_out_text(out, "]");
}


static void
ask_list_facets(api_t *api, const ask_list_t *s, sb_out_t *out,
    bool *complete)
{
    index_rc_e      rc;
    index_facets_t  f;

    rc = index_facets(api->index, &s->ask, &f);
    sb_out_key(out, "facets");

    if (rc == INDEX_OK || rc == INDEX_PARTIAL) {
        ask_facets_json(api, out, &f);

    } else {
        sb_out_text(out, "null");
        *complete = false;
    }

    index_facets_free(&f);
}


static void
ask_list_histogram(api_t *api, const ask_list_t *s, sb_out_t *out,
    bool *complete)
{
    index_rc_e         rc;
    index_histogram_t  h;

    rc = index_histogram(api->index, &s->ask, s->buckets, &h);
    sb_out_key(out, "histogram");

    if (rc == INDEX_OK || rc == INDEX_PARTIAL) {
        ask_histogram_json(out, &h);

    } else {
        sb_out_text(out, "null");
    }

    *complete = *complete && rc == INDEX_OK;
}


static ask_rc_e
ask_list_failed(ask_question_t *q, index_rc_e rc, const char *why)
{
    char  text[300];

    if (rc == INDEX_BAD) {
        (void) snprintf(text, sizeof(text), "%s.", why);
        return ask_refuse(q, 400, "GATEWAY_INVALID_PARAMETER", text);
    }

    (void) snprintf(text, sizeof(text), "The list of operations cannot be read "
                    "now: %s; ask again.", why);

    return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", text);
}


static ask_rc_e
ask_list_answer(ask_question_t *q, ask_list_t *s)
{
    bool             complete;
    api_t           *api;
    ask_page_t       page;
    index_rc_e       rc;
    ask_records_t    r;
    index_answer_t   a;
    sb_out_t         out = { .buf.max = SB_OUT_MAX };

    api = q->context;
    memset(&page, 0, sizeof(page));

    ask_list_direction(s);
    ask_list_settle(api, s);
    rc = ask_page_read(api, s, &page, &a);

    if (rc != INDEX_OK && rc != INDEX_PARTIAL) {
        index_answer_free(&a);
        return rc == INDEX_FAILED && api_wait_more(q, &s->wait)
               ? ASK_AGAIN : ask_list_failed(q, rc, a.why);
    }

    complete = s->wait.reached && rc == INDEX_OK && !(s->lacks
               && !(s->up && page.more));

    sb_out_text(&out, "{");
    sb_out_key(&out, "items");
    sb_out_text(&out, "[");
    ask_page_tell(api, s, &out, &page, &r);
    sb_out_text(&out, "]");

    if (out.rc != SB_OK) {
        index_answer_free(&a);
        return ask_json(q, &out);
    }

    complete = complete && !r.unreadable;

    ask_page_around(api, s, &a, &page, r.taken);
    ask_cursor(&out, "next", page.has_next, page.next);
    ask_cursor(&out, "previous", page.has_previous, page.previous);
    ask_list_gaps(api, s, &out, &page, r.taken, &complete);

    if (s->facets) {
        ask_list_facets(api, s, &out, &complete);
    }

    if (s->buckets) {
        ask_list_histogram(api, s, &out, &complete);
    }

    if (s->waits) {
        ask_list_waiting(&out, s);
    }

    sb_out_key(&out, "complete");
    sb_out_text(&out, complete ? "true}" : "false}");

    index_answer_free(&a);

    return ask_json(q, &out);
}


static ask_rc_e
ask_list(ask_question_t *q, bool of_one)
{
    int          rc;
    api_t       *api;
    ask_list_t  *s;

    api = q->context;
    s = q->state;

    if (api->index == NULL || api->readers == NULL) {
        return ask_nothing(q);
    }

    if (s == NULL) {
        s = calloc(1, sizeof(ask_list_t));

        if (s == NULL) {
            return ASK_FAILED;
        }

        q->state = s;
        q->release = ask_list_release;
        s->wait.brief = true;

        history_filter_init(&s->filter);
        s->ask.filter = &s->filter;
        s->ask.limit = ASK_LIMIT;

        if (of_one) {
            ask_box_dir(s->dir, q->args[0]);
            s->ask.dir = s->dir;
        }

        if (!ask_args_read(&s->args, q->query) || !ask_list_args(s)) {
            return ask_args_refuse(q, &s->args);
        }
    }

    if (!api_wait_index(q, &s->wait)) {
        return ASK_AGAIN;
    }

    rc = of_one ? ask_box_exists(q, &s->listed, s->dir, q->args[0]) : 1;

    if (rc != 1) {
        return rc == 0 ? ask_no_sandbox(q) : ASK_AGAIN;
    }

    return ask_list_answer(q, s);
}


ask_rc_e
ask_operations(ask_question_t *q)
{
    return ask_list(q, false);
}


ask_rc_e
ask_box_operations(ask_question_t *q)
{
    return ask_list(q, true);
}
