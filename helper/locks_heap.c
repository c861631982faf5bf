/* Deadlines of requests: a heap, the next one first. */

#include "locks_int.h"

#include <stdlib.h>


bool
locks_heap_room(locks_t *t)
{
    size_t         cap;
    locks_req_t  **heap;

    if (t->reqs.count + 2 < t->heap_cap) {
        return true;
    }

    cap = t->heap_cap ? 2 * t->heap_cap : 64;
    heap = realloc(t->heap, cap * sizeof(locks_req_t *));

    if (heap) {
        t->heap = heap;
        t->heap_cap = cap;
    }

    return heap != NULL;
}


static void
locks_heap_put(locks_t *t, size_t i, locks_req_t *r)
{
    t->heap[i] = r;
    r->heap = i;
}


static void
locks_heap_fix(locks_t *t, size_t i)
{
    size_t        child;
    locks_req_t  *r;

    r = t->heap[i];

    while (i > 1 && t->heap[i / 2]->deadline_us > r->deadline_us) {
        locks_heap_put(t, i, t->heap[i / 2]);
        i /= 2;
    }

    while ((child = 2 * i) <= t->nheap) {

        if (child < t->nheap
            && t->heap[child + 1]->deadline_us < t->heap[child]->deadline_us)
        {
            child++;
        }

        if (t->heap[child]->deadline_us >= r->deadline_us) {
            break;
        }

        locks_heap_put(t, i, t->heap[child]);
        i = child;
    }

    locks_heap_put(t, i, r);
}


void
locks_deadline(locks_t *t, locks_req_t *r, uint64_t us)
{
    size_t        i;
    locks_req_t  *last;

    if (us) {
        r->deadline_us = us;

        if (r->heap == 0) {
            locks_heap_put(t, ++t->nheap, r);
        }

        locks_heap_fix(t, r->heap);
        return;
    }

    i = r->heap;

    if (i == 0) {
        return;
    }

    r->heap = 0;
    last = t->heap[t->nheap--];

    if (last != r) {
        locks_heap_put(t, i, last);
        locks_heap_fix(t, i);
    }
}
