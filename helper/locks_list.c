/* What can be seen of locks, and taken away by hand. */

#include "locks_int.h"

#include "id.h"


static void
locks_row(locks_row_t *row, const locks_req_t *r, uint64_t now_us)
{
    memcpy(row->id, r->id, 16);
    row->lease = r->lease;
    row->detached = r->detached;
    row->state = r->state == LOCKS_R_HELD ? "held"
                 : r->state == LOCKS_R_SLOT ? "queued" : "waiting";
    row->type = r->type;
    row->actor = r->actor;
    row->owner = r->who ? r->who->owner : NULL;
    row->since_us = now_us > r->since_us ? now_us - r->since_us : 0;
    row->waited_us = r->state == LOCKS_R_HELD ? r->waited_us : row->since_us;
    row->expires_us = r->expires_us;
    row->fence = r->fence;
    row->nkeys = r->nkeys;
}


void
locks_list(locks_t *t, sb_str_t sandbox, const locks_list_pt *l,
    uint64_t now_us)
{
    char          path[SB_LOCK_PATH + 1];
    size_t        i;
    locks_box_t  *b;
    locks_req_t  *r;
    locks_row_t   row;

    pthread_mutex_lock(&t->lock);

    b = table_find(&t->boxes, sandbox.data, sandbox.len);

    for (r = b ? b->reqs : NULL; r; r = r->bnext) {

        locks_row(&row, r, now_us);

        if (!l->row(l->data, &row)) {
            break;
        }

        for (i = 0; i < r->nkeys; i++) {
            locks_path(path, sizeof(path), r->keys[i].node);
            l->key(l->data, r->keys[i].write, path);
        }

        l->done(l->data);
    }

    pthread_mutex_unlock(&t->lock);
}


bool
locks_break(locks_t *t, const uint8_t id[16], sb_str_t sandbox)
{
    uint64_t      now_us;
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    now_us = sb_mono_us();
    r = table_find(&t->reqs, id, 16);

    if (r && (r->box->len != sandbox.len
              || memcmp(r->box->name, sandbox.data, sandbox.len) != 0))
    {
        r = NULL;
    }

    if (r) {
        if (r->state != LOCKS_R_HELD) {
            locks_answer(t, r, SB_LOCK_BROKEN);
        }

        locks_over(t, r, "broken", NULL);

        locks_req_end(t, r, now_us);
        locks_wake(t);
    }

    pthread_mutex_unlock(&t->lock);

    return r != NULL;
}


void
locks_numbers(locks_t *t, locks_numbers_t *n)
{
    pthread_mutex_lock(&t->lock);
    n->requests = t->reqs.count;
    n->waiting = t->nwaiting;
    n->keys = t->nkeys;
    n->places = t->nodes.count;
    n->leases = t->nleases;
    n->max_requests = t->max_reqs;
    n->max_leases = t->max_leases;
    pthread_mutex_unlock(&t->lock);
}
