/*
 * Files are written with the lowest priority while there is much traffic.  A
 * thread that took it may often not come back from it (RLIMIT_NICE, containers):
 * then there is one that keeps it, and the usual one waits while that writes.
 * Nothing can hurry it, so its transactions are small.
 */

#include "apply_int.h"

#include <sched.h>


/* Can a thread that took the lowest priority have its own again? */
static void *
apply_low_probe(void *data)
{
    bool                *yields = data;
    struct sched_param   p;

    memset(&p, 0, sizeof(p));

    *yields = pthread_setschedparam(pthread_self(), SCHED_IDLE, &p) == 0
              && pthread_setschedparam(pthread_self(), SCHED_OTHER, &p) == 0;

    return NULL;
}


static void *
apply_low_thread(void *data)
{
    bool                 ok;
    apply_t             *a = data;
    apply_slice_t       *s;
    struct sched_param   p;

    memset(&p, 0, sizeof(p));
    (void) pthread_setschedparam(pthread_self(), SCHED_IDLE, &p);

    pthread_mutex_lock(&a->lock);

    for ( ;; ) {

        while (a->low_slice == NULL && !a->low_stop) {
            (void) pthread_cond_wait(&a->low_wake, &a->lock);
        }

        if (a->low_slice == NULL) {
            break;
        }

        s = a->low_slice;
        pthread_mutex_unlock(&a->lock);

        ok = apply_slice(a, s);

        pthread_mutex_lock(&a->lock);
        a->low_slice = NULL;
        a->low_ok = ok;
        pthread_cond_signal(&a->low_done);
    }

    pthread_mutex_unlock(&a->lock);

    return NULL;
}


void
apply_low_start(apply_t *a)
{
    pthread_t  probe;

    if (pthread_create(&probe, NULL, apply_low_probe, &a->yields) == 0) {
        (void) pthread_join(probe, NULL);
    }

    if (!a->yields) {
        a->low = pthread_create(&a->low_id, NULL, apply_low_thread, a) == 0;
    }
}


void
apply_low_stop(apply_t *a)
{
    if (!a->low) {
        return;
    }

    pthread_mutex_lock(&a->lock);
    a->low_stop = true;
    pthread_cond_signal(&a->low_wake);
    pthread_mutex_unlock(&a->lock);

    pthread_join(a->low_id, NULL);
    a->low = false;
}


bool
apply_low_slice(apply_t *a, apply_slice_t *s)
{
    bool  ok;

    pthread_mutex_lock(&a->lock);
    a->low_slice = s;
    pthread_cond_signal(&a->low_wake);

    while (a->low_slice) {
        (void) pthread_cond_wait(&a->low_done, &a->lock);
    }

    ok = a->low_ok;
    pthread_mutex_unlock(&a->lock);

    return ok;
}
