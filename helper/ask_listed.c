#include "ask_listed.h"

#include "id.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>


#define LISTED_LOOK_US  2000        /* between two looks whether it is there */
#define LISTED_PAGE     50          /* sandboxes of a page */


struct ask_listed_s {
    pthread_mutex_t     lock;
    ask_listed_view_t   view;
    uint64_t            over_us;    /* when upstream was asked last; 0: never */

    /* on its way */
    fetch_t            *fetch;
    fetch_job_t        *job;        /* NULL: nothing is */
    uint64_t            asked_us;
    uint64_t            page_us;    /* bounds, monotonic: of this page, */
    uint64_t            until_us;   /* of the last one's beginning */
    unsigned            page, size, asked;
    ask_box_t          *boxes;
    size_t              n;
};


char *
ask_box_text(sb_str_t text)
{
    return text.len ? strndup(text.data, text.len) : NULL;
}


void
ask_box_clear(ask_box_t *box)
{
    free(box->id);
    free(box->name);
    free(box->state);
    free(box->image);
    free(box->created);
    free(box->expires);
    free(box->last);
    memset(box, 0, sizeof(ask_box_t));
}


static void
listed_clear(ask_box_t **boxes, size_t *n)
{
    size_t  i;

    for (i = 0; i < *n; i++) {
        ask_box_clear(&(*boxes)[i]);
    }

    free(*boxes);
    *boxes = NULL;
    *n = 0;
}


ask_listed_t *
ask_listed_new(void)
{
    ask_listed_t  *l;

    l = calloc(1, sizeof(ask_listed_t));

    if (l) {
        pthread_mutex_init(&l->lock, NULL);
    }

    return l;
}


/* What is on its way is given up. */
static void
listed_drop(ask_listed_t *l)
{
    if (l->job) {
        fetch_drop(l->fetch, l->job);
        l->job = NULL;
    }

    listed_clear(&l->boxes, &l->n);
}


void
ask_listed_free(ask_listed_t *l)
{
    if (l == NULL) {
        return;
    }

    listed_drop(l);
    listed_clear(&l->view.boxes, &l->view.n);
    pthread_mutex_destroy(&l->lock);
    free(l);
}


static int
listed_by_id(const void *one, const void *two)
{
    const ask_box_t  *a = one, *b = two;

    return strcmp(a->id, b->id);
}


/* What upstream says of one sandbox. */
static bool
listed_one(ask_box_t *box, const sb_jv_t *v)
{
    sb_str_t        name, image;
    const sb_jv_t  *m;

    memset(box, 0, sizeof(ask_box_t));
    box->upstream = true;
    box->id = ask_box_text(sb_jv_str(v, "id"));

    if (box->id == NULL) {
        return false;
    }

    m = sb_jv_get(v, "metadata");
    name = sb_jv_str(m, "agent_sandbox.name");

    if (name.len == 0) {
        name = sb_jv_str(m, "sandbox_name");
    }

    m = sb_jv_get(v, "image");
    image = m && m->kind == SB_JSON_STRING ? m->text : sb_jv_str(m, "uri");

    box->name = ask_box_text(name);
    box->image = ask_box_text(image);
    box->state = ask_box_text(sb_jv_str(sb_jv_get(v, "status"), "state"));
    box->created = ask_box_text(sb_jv_str(v, "createdAt"));
    box->expires = ask_box_text(sb_jv_str(v, "expiresAt"));

    return true;
}


/* A page of the list; its sandboxes are added.  *more: there are others. */
static ask_listed_e
listed_page(ask_listed_t *l, sb_str_t text, bool *more)
{
    ask_box_t        *grown;
    sb_jdoc_t        *doc;
    ask_listed_e      how;
    const sb_jv_t    *items, *v;
    sb_json_limits_t  limits;

    *more = false;
    limits.max_depth = 64;
    limits.max_bytes = FETCH_BODY_MAX;
    doc = sb_jdoc_parse(text, &limits, NULL);
    items = doc ? sb_jv_get(sb_jdoc_root(doc), "items") : NULL;

    if (items == NULL || items->kind != SB_JSON_OPEN_ARRAY) {
        sb_jdoc_free(doc);
        return ASK_LISTED_FAILED;
    }

    how = ASK_LISTED_OK;

    for (v = items->child; v; v = v->next) {

        if (l->n == ASK_BOXES) {
            how = ASK_LISTED_PART;
            break;
        }

        grown = realloc(l->boxes, (l->n + 1) * sizeof(ask_box_t));

        if (grown == NULL) {
            how = ASK_LISTED_PART;
            break;
        }

        l->boxes = grown;

        if (listed_one(&grown[l->n], v)) {
            l->n++;
        }
    }

    v = sb_jv_get(sb_jv_get(sb_jdoc_root(doc), "pagination"), "hasNextPage");
    *more = how == ASK_LISTED_OK && items->child && v
            && v->kind == SB_JSON_TRUE;

    sb_jdoc_free(doc);

    return how;
}


/* --- asking, with the lock held --------------------------------------------------- */

static void
listed_over(ask_listed_t *l, ask_listed_e how)
{
    if (how == ASK_LISTED_FAILED && l->n) {
        how = ASK_LISTED_PART;
    }

    l->over_us = sb_now_us();
    l->view.how = how;

    if (how != ASK_LISTED_FAILED) {

        if (l->n) {
            qsort(l->boxes, l->n, sizeof(ask_box_t), listed_by_id);
        }

        listed_clear(&l->view.boxes, &l->view.n);
        l->view.boxes = l->boxes;
        l->view.n = l->n;
        l->view.asked_us = l->asked_us;
        l->boxes = NULL;
        l->n = 0;
    }

    listed_drop(l);
}


/* The page at hand is asked for. */
static void
listed_ask(ask_listed_t *l)
{
    int   len;
    char  target[64];

    if (l->asked == ASK_LISTED_PAGES || sb_mono_us() > l->until_us) {
        listed_over(l, l->asked == ASK_LISTED_PAGES ? ASK_LISTED_PART
                                                    : ASK_LISTED_FAILED);
        return;
    }

    len = snprintf(target, sizeof(target), "/v1/sandboxes?page=%u&pageSize=%u",
                   l->page, l->size);
    l->asked++;
    l->page_us = sb_mono_us() + ASK_LISTED_MS * 1000u;
    l->job = fetch_open(l->fetch, sb_str(target, (size_t) len));

    if (l->job == NULL) {
        listed_over(l, ASK_LISTED_FAILED);
    }
}


static void
listed_begin(ask_listed_t *l, fetch_t *fetch)
{
    l->fetch = fetch;
    l->page = 1;
    l->size = LISTED_PAGE;
    l->asked = 0;
    l->asked_us = sb_now_us();
    l->until_us = sb_mono_us() + ASK_LISTED_ALL_MS * 1000u;
    listed_ask(l);
}


/* A page that has come; one that is too large is asked for again, smaller, if
 * it is the first. */
static void
listed_answer(ask_listed_t *l, fetch_answer_t *a)
{
    bool          more;
    ask_listed_e  how;

    how = ASK_LISTED_FAILED;
    more = false;

    if (a->status == 200) {
        how = listed_page(l, sb_str(a->body.data, a->body.len), &more);
    }

    if (how == ASK_LISTED_FAILED && (a->status == 200 || a->status == 0)
        && l->page == 1 && l->size > 1)
    {
        l->size = l->size / 7 ? l->size / 7 : 1;

    } else if (how == ASK_LISTED_FAILED || !more) {
        listed_over(l, how);
        return;

    } else {
        l->page++;
    }

    listed_ask(l);
}


static void
listed_step(ask_listed_t *l)
{
    fetch_answer_t  a;

    while (l->job && fetch_done(l->fetch, l->job, &a)) {
        l->job = NULL;
        listed_answer(l, &a);
        sb_buf_free(&a.body);
    }

    if (l->job && sb_mono_us() > l->page_us) {
        listed_over(l, ASK_LISTED_FAILED);
    }
}


bool
ask_listed(ask_listed_t *l, fetch_t *fetch, ask_question_t *q,
    ask_listed_wait_t *w)
{
    bool      asking;
    uint64_t  now;

    now = sb_now_us();

    pthread_mutex_lock(&l->lock);

    if (l->job && sb_mono_us() > l->until_us + ASK_LISTED_MS * 1000u) {
        /* those who asked have left, and what came since is old */
        listed_drop(l);
    }

    if (l->job == NULL && fetch
        && (l->over_us == 0 || now < l->over_us
            || now - l->over_us >= ASK_LISTED_US))
    {
        listed_begin(l, fetch);
    }

    listed_step(l);
    asking = l->job != NULL;
    now = sb_mono_us();

    if (w->until_us == 0) {
        w->until_us = now + 1000u * (l->over_us ? ASK_LISTED_OLD_MS
                                     : ASK_LISTED_ALL_MS + ASK_LISTED_MS);
    }

    pthread_mutex_unlock(&l->lock);

    if (!asking || now >= w->until_us) {
        return true;
    }

    ask_later(q, LISTED_LOOK_US);

    return false;
}


/* --- what is known ---------------------------------------------------------------- */

const ask_listed_view_t *
ask_listed_hold(ask_listed_t *l)
{
    pthread_mutex_lock(&l->lock);

    return &l->view;
}


void
ask_listed_release(ask_listed_t *l)
{
    pthread_mutex_unlock(&l->lock);
}


const ask_box_t *
ask_listed_find(const ask_listed_view_t *view, const char *id)
{
    ask_box_t  key;

    if (view->n == 0) {
        return NULL;
    }

    key.id = (char *) (uintptr_t) id;

    return bsearch(&key, view->boxes, view->n, sizeof(ask_box_t), listed_by_id);
}
