/* What live streams tell of locks: LOCK frames for the journal (lib/frame.h).
 *
 * Most requests have their keys at once or shortly after; nobody wants to read
 * of these.  One is told of when it has waited for LOCKS_TELL_US, when it is
 * refused after waiting, when somebody breaks it; and then to its end.  Leases
 * are told of from the beginning.
 */

#include "locks_int.h"

#include "id.h"
#include "stats.h"

#include <stdlib.h>


#define LOCKS_TALE_KEYS   8         /* told of one request, and of their paths: */
#define LOCKS_TALE_PATH   1024
#define LOCKS_TALE        (LOCKS_TALE_KEYS * LOCKS_TALE_PATH + SB_LOCK_PATH \
                           + 2048)


static void
locks_tale_key(sb_frame_writer_t *w, bool write, const char *path)
{
    sb_frame_put(w, write ? SB_T_LOCK_WRITE : SB_T_LOCK_READ,
                 sb_str(path, strlen(path)));
}


void
locks_tale(locks_t *t, locks_req_t *r, const char *phase, const char *reason)
{
    char               mem[LOCKS_TALE], path[LOCKS_TALE_PATH + 1];
    size_t             i, len;
    locks_tale_t      *tale;
    locks_event_t      e;
    sb_frame_writer_t  w;

    r->told = true;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_LOCK, 0, 0, r->id, sb_now_us());
    sb_frame_put(&w, SB_T_SANDBOX, sb_str(r->box->name, r->box->len));
    sb_frame_put(&w, SB_T_STATE, sb_str(phase, strlen(phase)));
    sb_frame_put(&w, SB_T_TYPE, sb_str(r->type, strlen(r->type)));
    sb_frame_put(&w, SB_T_ACTOR_ID, sb_str(r->actor, strlen(r->actor)));
    sb_frame_put_u64(&w, SB_T_WAITED_US, r->waited_us);

    if (reason) {
        sb_frame_put(&w, SB_T_REASON, sb_str(reason, strlen(reason)));
    }

    if (r->lease) {
        sb_frame_put(&w, SB_T_OWNER, sb_str(r->who->owner,
                                            strlen(r->who->owner)));
        sb_frame_put_u64(&w, SB_T_FENCE, r->fence);
        sb_frame_put_u64(&w, SB_T_EXPIRES, r->expires_us);
    }

    sb_frame_put_u64(&w, SB_T_COUNT, r->nkeys);

    for (i = 0; i < r->nkeys && i < LOCKS_TALE_KEYS; i++) {
        locks_path(path, sizeof(path), r->keys[i].node);
        locks_tale_key(&w, r->keys[i].write, path);
    }

    if (r->state == LOCKS_R_WAITING) {

        locks_event(r, SB_LOCK_LATE, &e);

        if (e.holder[0]) {
            sb_frame_put(&w, SB_T_HOLDER, sb_str(e.holder, strlen(e.holder)));
            sb_frame_put(&w, SB_T_ACTOR_ID, sb_str(e.actor, strlen(e.actor)));

            if (e.owner[0]) {
                sb_frame_put(&w, SB_T_OWNER, sb_str(e.owner, strlen(e.owner)));
            }

            locks_tale_key(&w, e.write, e.key);
        }
    }

    len = sb_frame_end(&w);

    tale = len && t->tales_bytes + len <= LOCKS_TALES
           ? malloc(sizeof(locks_tale_t) + len) : NULL;

    if (tale == NULL) {
        stats_add(STATS_LOCK_EVENTS_LOST, 1);
        return;
    }

    tale->next = NULL;
    tale->len = len;
    memcpy(tale->frame, mem, len);

    *t->tales_last = tale;
    t->tales_last = &tale->next;
    t->tales_bytes += len;
}


void
locks_over(locks_t *t, locks_req_t *r, const char *phase, const char *reason)
{
    locks_tale(t, r, phase, reason);
    r->ended = true;
}


locks_tale_t *
locks_tales(locks_t *t)
{
    locks_tale_t  *tales;

    pthread_mutex_lock(&t->lock);

    tales = t->tales;
    t->tales = NULL;
    t->tales_last = &t->tales;
    t->tales_bytes = 0;

    pthread_mutex_unlock(&t->lock);

    return tales;
}


/* --- those that wait and are not told of yet, the oldest first ------------- */

void
locks_quiet_add(locks_t *t, locks_req_t *r)
{
    r->quiet = true;
    r->qnext = NULL;
    r->qprev = t->quiet_last;

    if (r->qprev) {
        r->qprev->qnext = r;
    } else {
        t->quiet = r;
    }

    t->quiet_last = r;
}


void
locks_quiet_remove(locks_t *t, locks_req_t *r)
{
    if (!r->quiet) {
        return;
    }

    r->quiet = false;

    if (r->qprev) {
        r->qprev->qnext = r->qnext;
    } else {
        t->quiet = r->qnext;
    }

    if (r->qnext) {
        r->qnext->qprev = r->qprev;
    } else {
        t->quiet_last = r->qprev;
    }
}


uint64_t
locks_quiet_due(locks_t *t, uint64_t now_us)
{
    locks_req_t  *r;

    while ((r = t->quiet) != NULL && r->since_us + LOCKS_TELL_US <= now_us) {
        locks_quiet_remove(t, r);
        r->waited_us = now_us - r->since_us;
        locks_tale(t, r, r->state == LOCKS_R_SLOT ? "queued" : "waiting", NULL);
    }

    return r ? r->since_us + LOCKS_TELL_US : 0;
}
