#include "locks_int.h"

#include "id.h"

#include <stdlib.h>
#include <unistd.h>


locks_t *
locks_new(size_t requests, size_t leases, int wake_fd)
{
    locks_t  *t;

    t = calloc(1, sizeof(locks_t));

    if (t) {
        t->max_reqs = requests;
        t->max_leases = leases;
        t->wake_fd = wake_fd;
        t->notes_last = &t->notes;
        t->tales_last = &t->tales;
        pthread_mutex_init(&t->lock, NULL);
    }

    return t;
}


/* --- events --------------------------------------------------------------- */

void
locks_wake(locks_t *t)
{
    uint64_t  one;

    one = 1;

    if (t->wake_fd != -1 && write(t->wake_fd, &one, sizeof(one)) == -1) {
        /* the counter is full: the reader is awake anyway */
    }
}


void
locks_tell(locks_t *t, const locks_event_t *e)
{
    size_t         len;
    locks_note_t  *n;

    len = offsetof(locks_event_t, key) + strlen(e->key) + 1;

    /* without memory the worker's own time runs out */
    n = malloc(sizeof(locks_note_t) + len);

    if (n == NULL) {
        return;
    }

    n->next = NULL;
    n->len = len;
    memcpy(n->event, e, len);

    *t->notes_last = n;
    t->notes_last = &n->next;
}


void
locks_event(locks_req_t *r, sb_lock_code_e code, locks_event_t *e)
{
    unsigned        n;
    locks_req_t    *b;
    locks_entry_t  *key;

    e->instance = r->inst ? r->inst->id : 0;
    memcpy(e->op, r->id, 16);
    e->code = code;
    e->waited_us = r->waited_us;
    e->write = false;
    e->key[0] = '\0';
    e->holder[0] = '\0';
    e->actor[0] = '\0';
    e->owner[0] = '\0';

    if (code != SB_LOCK_LATE) {
        return;
    }

    b = locks_blocker(r, &key);

    if (b) {
        /* it waits, too: who is in the way of both?  Of a long queue not all
         * is walked for each that stands in it */

        for (n = 0; b->blocker && n < LOCKS_CHAIN; n++) {
            b = b->blocker;
        }

        e->write = key->write;
        locks_path(e->key, sizeof(e->key), key->node);
        sb_uuid_text(e->holder, b->id);
        memcpy(e->actor, b->actor, sizeof(b->actor));

        if (b->who) {
            memcpy(e->owner, b->who->owner, sizeof(b->who->owner));
        }
    }
}


void
locks_answer(locks_t *t, locks_req_t *r, sb_lock_code_e code)
{
    locks_event_t  e;

    if (r->lease) {
        return;
    }

    locks_event(r, code, &e);
    locks_tell(t, &e);
}


bool
locks_take(locks_t *t, locks_event_t *e)
{
    locks_note_t  *n;

    pthread_mutex_lock(&t->lock);

    n = t->notes;

    if (n) {
        t->notes = n->next;

        if (t->notes == NULL) {
            t->notes_last = &t->notes;
        }
    }

    pthread_mutex_unlock(&t->lock);

    if (n == NULL) {
        return false;
    }

    memcpy(e, n->event, n->len);
    free(n);

    return true;
}


/* --- requests ------------------------------------------------------------- */

static locks_box_t *
locks_box(locks_t *t, sb_str_t name)
{
    unsigned      i;
    locks_box_t  *b;

    b = table_find(&t->boxes, name.data, name.len);

    if (b) {
        return b;
    }

    b = calloc(1, sizeof(locks_box_t) + name.len + 1);

    if (b == NULL) {
        return NULL;
    }

    memcpy(b->name, name.data, name.len);
    b->len = name.len;

    for (i = 0; i < SB_LIMITS; i++) {
        b->slots_last[i] = &b->slots[i];
    }

    if (table_add(&t->boxes, &b->node, b->name, b->len) != SB_OK) {
        free(b);
        return NULL;
    }

    return b;
}


static void
locks_box_drop(locks_t *t, locks_box_t *b)
{
    if (b->reqs == NULL && b->pins == 0) {
        table_remove(&t->boxes, &b->node);
        free(b);
    }
}


void
locks_copy(char *dst, size_t size, sb_str_t text)
{
    size_t  n;

    n = text.len < size - 1 ? text.len : size - 1;

    if (n) {
        memcpy(dst, text.data, n);
    }

    dst[n] = '\0';
}


locks_req_t *
locks_req_new(locks_t *t, const uint8_t id[16], sb_str_t sandbox,
    const sb_lock_key_t *keys, size_t nkeys, sb_rc_t *rc)
{
    size_t        i;
    locks_req_t  *r;

    *rc = SB_LIMIT;

    if (t->reqs.count >= t->max_reqs || nkeys > SB_LOCK_KEYS
        || sandbox.len == 0)
    {
        return NULL;
    }

    *rc = SB_NOMEM;

    if (!locks_heap_room(t)) {
        return NULL;
    }

    r = calloc(1, sizeof(locks_req_t) + nkeys * sizeof(locks_entry_t));

    if (r == NULL) {
        return NULL;
    }

    memcpy(r->id, id, 16);
    r->nkeys = nkeys;
    r->order = ++t->order;
    r->rank = 2;
    r->state = LOCKS_R_WAITING;

    for (i = 0; i < nkeys; i++) {
        if (keys[i].write) {
            r->rank = 1;
        }
    }

    r->box = locks_box(t, sandbox);

    if (r->box == NULL) {
        free(r);
        return NULL;
    }

    *rc = locks_place(t, r, sandbox, keys);

    if (*rc == SB_OK && table_add(&t->reqs, &r->node, r->id, 16) != SB_OK) {
        locks_unplace(t, r);
        *rc = SB_NOMEM;
    }

    if (*rc != SB_OK) {
        locks_box_drop(t, r->box);
        free(r);
        return NULL;
    }

    r->bnext = r->box->reqs;

    if (r->bnext) {
        r->bnext->bprev = r;
    }

    r->box->reqs = r;

    return r;
}


static void
locks_unblock(locks_req_t *r)
{
    if (r->blocker == NULL) {
        return;
    }

    if (r->wprev) {
        r->wprev->wnext = r->wnext;
    } else {
        r->blocker->blocked = r->wnext;
    }

    if (r->wnext) {
        r->wnext->wprev = r->wprev;
    }

    r->blocker = NULL;
    r->wprev = NULL;
    r->wnext = NULL;
}


static void
locks_hold(locks_t *t, locks_req_t *r, uint64_t now_us)
{
    locks_unlink(r);
    t->nwaiting--;
    r->state = LOCKS_R_HELD;
    locks_link(r, true);
    locks_deadline(t, r, 0);
    locks_slot(t, r, now_us);
}


void
locks_try(locks_t *t, locks_req_t *r, uint64_t now_us)
{
    locks_req_t    *b;
    locks_entry_t  *key;

    if (t->recall_us) {
        return;
    }

    b = locks_blocker(r, &key);

    if (b == NULL) {
        locks_hold(t, r, now_us);
        return;
    }

    r->blocker = b;
    r->wnext = b->blocked;

    if (r->wnext) {
        r->wnext->wprev = r;
    }

    b->blocked = r;
}


void
locks_wait(locks_t *t, locks_req_t *r, uint64_t now_us, uint64_t timeout_us)
{
    t->nwaiting++;
    r->since_us = now_us;
    locks_link(r, false);
    locks_quiet_add(t, r);

    if (timeout_us) {
        locks_deadline(t, r, now_us + timeout_us);
    }

    locks_try(t, r, now_us);
}


void
locks_own(locks_req_t *r, locks_inst_t *i)
{
    r->inst = i;
    r->inext = i->reqs;

    if (r->inext) {
        r->inext->iprev = r;
    }

    i->reqs = r;
}


void
locks_disown(locks_req_t *r)
{
    if (r->inst == NULL) {
        return;
    }

    if (r->iprev) {
        r->iprev->inext = r->inext;
    } else {
        r->inst->reqs = r->inext;
    }

    if (r->inext) {
        r->inext->iprev = r->iprev;
    }

    r->inst = NULL;
    r->iprev = NULL;
    r->inext = NULL;
}


void
locks_req_end(locks_t *t, locks_req_t *r, uint64_t now_us)
{
    locks_box_t    *b;
    locks_req_t    *w, *list, *next;
    sb_limit_e   class;

    b = r->box;
    b->pins++;      /* those let on may end, too */
    class = SB_LIMITS;

    if (r->told && !r->ended) {
        locks_tale(t, r, r->state == LOCKS_R_HELD ? "released" : "left", NULL);
    }

    if (r->state == LOCKS_R_SLOT) {
        locks_slot_leave(t, r);

    } else if (r->state == LOCKS_R_HELD && !r->detached) {
        class = r->class;
        b->running[class]--;

    } else if (r->state == LOCKS_R_WAITING) {
        t->nwaiting--;
    }

    locks_quiet_remove(t, r);
    locks_unlink(r);
    locks_unblock(r);
    locks_deadline(t, r, 0);

    locks_disown(r);

    if (r->bprev) {
        r->bprev->bnext = r->bnext;
    } else {
        b->reqs = r->bnext;
    }

    if (r->bnext) {
        r->bnext->bprev = r->bprev;
    }

    if (r->tokened) {
        table_remove(&t->tokens, &r->token);
        t->nleases--;
    }

    if (r->lease) {
        for (w = b->reqs; w; w = w->bnext) {
            if (w->inside == r) {
                w->inside = NULL;
            }
        }
    }

    table_remove(&t->reqs, &r->node);

    /* those that waited for this one are looked at again, in any order: each
     * sees the others that wait */

    list = r->blocked;

    for (w = list; w; w = w->wnext) {
        w->blocker = NULL;
        w->wprev = NULL;
    }

    for (w = list; w; w = next) {
        next = w->wnext;
        w->wnext = NULL;
        locks_try(t, w, now_us);
    }

    locks_unplace(t, r);
    free(r->who);
    free(r);

    if (class < SB_LIMITS) {
        locks_slot_next(t, b, class, now_us);
    }

    b->pins--;
    locks_box_drop(t, b);
}


static void
locks_free_entry(void *entry, void *data)
{
    (void) data;
    free(entry);
}


static void
locks_free_request(void *entry, void *data)
{
    locks_req_t  *r = entry;

    (void) data;

    free(r->who);
    free(r);
}


static void
locks_free_inst(void *entry, void *data)
{
    locks_inst_t  *i = entry;

    (void) data;

    if (i->pidfd != -1) {
        close(i->pidfd);
    }

    free(i);
}


void
locks_free(locks_t *t)
{
    locks_note_t  *n;
    locks_tale_t  *tale;

    if (t == NULL) {
        return;
    }

    while ((tale = t->tales) != NULL) {
        t->tales = tale->next;
        free(tale);
    }

    while ((n = t->notes) != NULL) {
        t->notes = n->next;
        free(n);
    }

    table_each(&t->reqs, locks_free_request, NULL);
    table_each(&t->nodes, locks_free_entry, NULL);
    table_each(&t->boxes, locks_free_entry, NULL);
    table_each(&t->insts, locks_free_inst, NULL);
    table_free(&t->reqs);
    table_free(&t->nodes);
    table_free(&t->boxes);
    table_free(&t->insts);
    table_free(&t->tokens);
    free(t->heap);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
