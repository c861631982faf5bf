/* Who asks: operations of workers, and workers that leave. */

#include "locks_int.h"

#include "digest.h"
#include "id.h"
#include "stats.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>


static locks_inst_t *
locks_inst(locks_t *t, uint64_t id)
{
    locks_inst_t  *i;

    i = table_find(&t->insts, &id, sizeof(id));

    if (i) {
        return i;
    }

    i = calloc(1, sizeof(locks_inst_t));

    if (i == NULL) {
        return NULL;
    }

    i->id = id;
    i->pidfd = -1;

    if (table_add(&t->insts, &i->node, &i->id, sizeof(i->id)) != SB_OK) {
        free(i);
        return NULL;
    }

    return i;
}


static void
locks_refused(locks_t *t, const locks_ask_t *a, sb_lock_code_e code)
{
    locks_event_t  e;

    memset(&e, 0, offsetof(locks_event_t, key) + 1);
    e.instance = a->instance;
    memcpy(e.op, a->op, 16);
    e.code = code;
    locks_tell(t, &e);
}


/* The lease that a token is of; NULL: none that holds. */
static locks_req_t *
locks_inside(locks_t *t, const locks_ask_t *a)
{
    uint8_t       hash[32];
    void         *found;
    locks_req_t  *r;

    sb_sha256(hash, a->lease);
    found = table_find(&t->tokens, hash, 32);

    if (found == NULL) {
        return NULL;
    }

    r = (locks_req_t *) (void *) ((char *) found
                                  - offsetof(locks_req_t, token));

    return r->state == LOCKS_R_HELD && r->box->len == a->sandbox.len
           && memcmp(r->box->name, a->sandbox.data, a->sandbox.len) == 0
           ? r : NULL;
}


/* It asks again, after its connection was lost. */
static void
locks_again(locks_t *t, locks_req_t *r, locks_inst_t *inst)
{
    if (r->inst == NULL && !r->detached) {
        locks_own(r, inst);
    }

    if (r->state == LOCKS_R_HELD && !r->lease) {
        locks_answer(t, r, SB_LOCK_GRANTED);
    }
}


static void
locks_ask_locked(locks_t *t, const locks_ask_t *a, uint64_t now_us)
{
    sb_rc_t        rc;
    locks_req_t   *r, *inside;
    locks_inst_t  *inst;

    inst = locks_inst(t, a->instance);
    r = table_find(&t->reqs, a->op, 16);

    if (r) {
        if (inst) {
            locks_again(t, r, inst);
        }

        return;
    }

    inside = NULL;

    if (a->lease.len && !a->held) {
        inside = locks_inside(t, a);

        if (inside == NULL) {
            locks_refused(t, a, SB_LOCK_LEASE);
            return;
        }
    }

    r = inst ? locks_req_new(t, a->op, a->sandbox, a->keys, a->nkeys, &rc)
             : NULL;

    if (r == NULL) {
        stats_add(STATS_LOCKS_REFUSED, 1);
        locks_refused(t, a, SB_LOCK_FULL);
        return;
    }

    if (inside) {
        r->inside = inside;
        r->rank = 0;
    }

    r->class = a->class;
    r->limit = a->limit;
    r->queue = a->queue;
    r->limit_us = a->limit_us;
    r->declared = a->declared;
    locks_copy(r->type, sizeof(r->type), a->type);
    locks_copy(r->actor, sizeof(r->actor), a->actor);

    locks_own(r, inst);

    /* those that read along knew of it, or not: before our start */
    r->told = t->recall_us != 0;

    if (a->held) {
        r->since_us = now_us;
        /* the truth, whatever else we think */
        r->state = LOCKS_R_HELD;
        locks_link(r, true);
        r->box->running[r->class]++;
        locks_answer(t, r, SB_LOCK_GRANTED);
        return;
    }

    locks_wait(t, r, now_us, a->timeout_us ? a->timeout_us : 1);
}


void
locks_ask(locks_t *t, const locks_ask_t *a, uint64_t now_us)
{
    pthread_mutex_lock(&t->lock);
    locks_ask_locked(t, a, now_us);
    pthread_mutex_unlock(&t->lock);
}


void
locks_end(locks_t *t, const uint8_t op[16], bool detached)
{
    uint64_t       now_us;
    locks_req_t   *r;

    pthread_mutex_lock(&t->lock);

    now_us = sb_mono_us();
    r = table_find(&t->reqs, op, 16);

    if (r == NULL || r->lease) {
        /* it had none */

    } else if (detached && r->declared && r->state == LOCKS_R_HELD) {
        if (!r->detached) {
            r->detached = true;
            locks_disown(r);
            r->box->running[r->class]--;
            locks_slot_next(t, r->box, r->class, now_us);
        }

    } else {
        locks_req_end(t, r, now_us);
    }

    pthread_mutex_unlock(&t->lock);
}


/* --- workers that leave --------------------------------------------------- */

static void
locks_inst_free(locks_t *t, locks_inst_t *i)
{
    if (i->gone_us) {
        if (i->gprev) {
            i->gprev->gnext = i->gnext;
        } else {
            t->gone = i->gnext;
        }

        if (i->gnext) {
            i->gnext->gprev = i->gprev;
        }
    }

    if (i->pidfd != -1) {
        close(i->pidfd);
    }

    table_remove(&t->insts, &i->node);
    free(i);
}


void
locks_connected(locks_t *t, uint64_t instance)
{
    locks_inst_t  *i;

    pthread_mutex_lock(&t->lock);

    i = table_find(&t->insts, &instance, sizeof(instance));

    if (i && i->gone_us) {

        if (i->gprev) {
            i->gprev->gnext = i->gnext;
        } else {
            t->gone = i->gnext;
        }

        if (i->gnext) {
            i->gnext->gprev = i->gprev;
        }

        if (i->pidfd != -1) {
            close(i->pidfd);
        }

        i->gprev = NULL;
        i->gnext = NULL;
        i->gone_us = 0;
        i->pidfd = -1;
    }

    pthread_mutex_unlock(&t->lock);
}


static bool
locks_dead(const locks_inst_t *i)
{
    struct pollfd  p;

    p.fd = i->pidfd;
    p.events = POLLIN;
    p.revents = 0;

    return i->pidfd != -1 && poll(&p, 1, 0) == 1;
}


static void
locks_bury(locks_t *t, locks_inst_t *i, uint64_t now_us)
{
    while (i->reqs) {
        locks_req_end(t, i->reqs, now_us);
    }

    locks_inst_free(t, i);
}


void
locks_closed(locks_t *t, uint64_t instance, int pid, uint64_t now_us)
{
    bool           dead;
    locks_inst_t  *i;

    pthread_mutex_lock(&t->lock);

    i = table_find(&t->insts, &instance, sizeof(instance));

    if (i == NULL || i->gone_us) {
        /* it has nothing */

    } else if (i->reqs == NULL) {
        locks_inst_free(t, i);

    } else {
        dead = false;

        if (pid > 0) {
            i->pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
            dead = i->pidfd == -1 ? errno == ESRCH : locks_dead(i);
        }

        i->gone_us = now_us ? now_us : 1;
        i->gnext = t->gone;

        if (i->gnext) {
            i->gnext->gprev = i;
        }

        t->gone = i;

        if (dead) {
            locks_bury(t, i, now_us);
        }
    }

    pthread_mutex_unlock(&t->lock);
}


/* --- time ----------------------------------------------------------------- */

void
locks_recall(locks_t *t, uint64_t now_us)
{
    t->recall_us = now_us + LOCKS_RECALL_US;
}


bool
locks_recalling(locks_t *t)
{
    bool  yes;

    pthread_mutex_lock(&t->lock);
    yes = t->recall_us != 0;
    pthread_mutex_unlock(&t->lock);

    return yes;
}


static void
locks_recalled_one(void *entry, void *data)
{
    locks_t      *t = data;
    locks_req_t  *r = entry;

    if (r->state == LOCKS_R_WAITING && r->blocker == NULL) {
        locks_try(t, r, sb_mono_us());
    }
}


static void
locks_recalled_locked(locks_t *t)
{
    t->recall_us = 0;
    table_each(&t->reqs, locks_recalled_one, t);
}


void
locks_recalled(locks_t *t)
{
    pthread_mutex_lock(&t->lock);

    if (t->recall_us) {
        locks_recalled_locked(t);
    }

    pthread_mutex_unlock(&t->lock);
}


/* The time of a request is up. */
static void
locks_late(locks_t *t, locks_req_t *r, uint64_t now_us)
{
    sb_lock_code_e  code;

    r->waited_us = now_us > r->since_us ? now_us - r->since_us : 0;
    code = r->state == LOCKS_R_SLOT ? SB_LOCK_BUSY : SB_LOCK_LATE;

    if (r->lease) {
        stats_add(STATS_LEASES_EXPIRED, 1);
        locks_over(t, r, "released", "expired");

    } else {
        locks_answer(t, r, code);
        locks_over(t, r, "refused", code == SB_LOCK_BUSY ? "busy" : "timeout");
    }

    locks_req_end(t, r, now_us);
}


uint64_t
locks_due(locks_t *t, uint64_t now_us)
{
    uint64_t       next, tell_us;
    locks_inst_t  *i, *after;

    pthread_mutex_lock(&t->lock);

    for (i = t->gone; i; i = after) {
        after = i->gnext;

        if (locks_dead(i) || now_us >= i->gone_us + LOCKS_AWAY_US) {
            locks_bury(t, i, now_us);
        }
    }

    if (t->recall_us && now_us >= t->recall_us) {
        locks_recalled_locked(t);
    }

    /* nobody waits too long for what nobody has told yet */

    while (t->recall_us == 0 && t->nheap && t->heap[1]->deadline_us <= now_us)
    {
        locks_late(t, t->heap[1], now_us);
    }

    tell_us = locks_quiet_due(t, now_us);
    next = t->recall_us == 0 && t->nheap ? t->heap[1]->deadline_us : 0;

    if (tell_us && (next == 0 || next > tell_us)) {
        next = tell_us;
    }

    if (t->gone && (next == 0 || next > now_us + LOCKS_LOOK_US)) {
        next = now_us + LOCKS_LOOK_US;
    }

    if (t->recall_us && (next == 0 || next > t->recall_us)) {
        next = t->recall_us;
    }

    pthread_mutex_unlock(&t->lock);

    return next;
}
