/* Limits: how many of a kind run at once in a sandbox.  A slot is taken when the
 * keys are there, so that nobody holds one while waiting for them. */

#include "locks_int.h"

#include "id.h"


static void
locks_granted(locks_t *t, locks_req_t *r, uint64_t now_us)
{
    r->waited_us = now_us > r->since_us ? now_us - r->since_us : 0;
    locks_quiet_remove(t, r);

    if (r->lease) {
        locks_deadline(t, r, now_us + r->ttl_us);
        r->expires_us = sb_now_us() + r->ttl_us;

    } else {
        locks_answer(t, r, SB_LOCK_GRANTED);
    }

    if (r->lease || r->told) {
        locks_tale(t, r, "granted", NULL);
    }
}


/* The keys are there: is it its turn? */
void
locks_slot(locks_t *t, locks_req_t *r, uint64_t now_us)
{
    locks_box_t  *b;

    b = r->box;

    if (r->class == SB_LIMIT_NONE || r->limit == 0
        || b->running[r->class] < r->limit)
    {
        b->running[r->class]++;
        locks_granted(t, r, now_us);
        return;
    }

    if (b->queued[r->class] >= r->queue) {
        b->running[r->class]++;     /* as the end takes one */
        locks_answer(t, r, SB_LOCK_BUSY);

        if (r->told) {
            locks_over(t, r, "refused", "busy");
        }

        locks_req_end(t, r, now_us);
        return;
    }

    r->state = LOCKS_R_SLOT;
    b->queued[r->class]++;
    *b->slots_last[r->class] = r;
    b->slots_last[r->class] = &r->snext;
    locks_deadline(t, r, now_us + r->limit_us);
}


void
locks_slot_leave(locks_t *t, locks_req_t *r)
{
    locks_box_t   *b;
    locks_req_t  **p;

    b = r->box;

    for (p = &b->slots[r->class]; *p != r; p = &(*p)->snext) {
        /* void */
    }

    *p = r->snext;

    if (*p == NULL) {
        b->slots_last[r->class] = p;
    }

    r->snext = NULL;
    b->queued[r->class]--;
    r->state = LOCKS_R_HELD;
    locks_deadline(t, r, 0);
}


/* One has left: the next of its class. */
void
locks_slot_next(locks_t *t, locks_box_t *b, sb_limit_e class,
    uint64_t now_us)
{
    locks_req_t  *r;

    while ((r = b->slots[class]) != NULL && b->running[class] < r->limit) {
        locks_slot_leave(t, r);
        b->running[class]++;
        locks_granted(t, r, now_us);
    }
}
