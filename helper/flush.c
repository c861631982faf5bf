#include "flush.h"

#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


struct flush_s {
    journal_t        *journal;
    int               wake_fd;
    pthread_t         thread;
    pthread_mutex_t   lock;
    pthread_cond_t    cond;
    bool              stop;
    bool              asked;
    bool              done;
    int               rc;
};


static void
flush_one(flush_t *f)
{
    int       rc;
    uint64_t  one;

    rc = journal_sync(f->journal);

    if (rc == EBADMSG) {
        /* workers send again to the next process what was not acknowledged */
        log_line(LOG_ERROR, "what was written to the journal last was not flushed "
                 "and cannot be read any more; the helper ends, and what was not "
                 "acknowledged comes again to the next one");
        _exit(EXIT_FAILURE);
    }

    if (rc != 0) {
        log_minutely(LOG_ERROR, "cannot flush the journal: errno %d", rc);
    }

    if (f->wake_fd == -1) {
        return;
    }

    pthread_mutex_lock(&f->lock);
    f->done = true;
    f->rc = rc;
    pthread_mutex_unlock(&f->lock);

    one = 1;

    if (write(f->wake_fd, &one, sizeof(one)) == -1) {
        /* the counter is full: the reader is awake anyway */
    }
}


static void *
flush_thread(void *data)
{
    bool             stop;
    flush_t         *f = data;
    struct timespec  until;

    do {
        pthread_mutex_lock(&f->lock);

        if (f->wake_fd == -1) {
            (void) clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += FLUSH_MS * 1000000;

            if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                until.tv_sec++;
            }

            if (!f->stop) {
                (void) pthread_cond_timedwait(&f->cond, &f->lock, &until);
            }

        } else {
            while (!f->asked && !f->stop) {
                (void) pthread_cond_wait(&f->cond, &f->lock);
            }

            f->asked = false;
        }

        stop = f->stop;
        pthread_mutex_unlock(&f->lock);

        flush_one(f);

    } while (!stop);

    return NULL;
}


flush_t *
flush_start(journal_t *j, int wake_fd)
{
    flush_t             *f;
    pthread_condattr_t   attr;

    f = calloc(1, sizeof(flush_t));
    if (f == NULL) {
        return NULL;
    }

    f->journal = j;
    f->wake_fd = wake_fd;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->cond, &attr);
    pthread_condattr_destroy(&attr);

    if (pthread_create(&f->thread, NULL, flush_thread, f) != 0) {
        pthread_mutex_destroy(&f->lock);
        pthread_cond_destroy(&f->cond);
        free(f);
        return NULL;
    }

    return f;
}


void
flush_stop(flush_t *f)
{
    if (f == NULL) {
        return;
    }

    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->lock);

    pthread_join(f->thread, NULL);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->cond);
    free(f);
}


void
flush_ask(flush_t *f)
{
    pthread_mutex_lock(&f->lock);
    f->asked = true;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->lock);
}


bool
flush_done(flush_t *f, int *rc)
{
    bool  done;

    pthread_mutex_lock(&f->lock);
    done = f->done;
    *rc = f->rc;
    f->done = false;
    pthread_mutex_unlock(&f->lock);

    return done;
}
