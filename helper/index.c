/* The thread that fills the index. */

#include "index_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>


#define INDEX_SWEEP_US   10000000u  /* all files are looked at so often */
#define INDEX_NAP_MS     20         /* lets what belongs together come in */
#define INDEX_BUSY_MS    400        /* ... while there is much */
#define INDEX_NICE       15         /* where it cannot come back from the lowest
                                       priority */
#define INDEX_HURRY_US   5000000u   /* someone who waits is hurried for */
#define INDEX_BUSY       200        /* records of a round: much */
#define INDEX_PUT_OFF_US 1000000u   /* so long news waits while there is much
                                       traffic */
#define INDEX_LATE_US    5000000u   /* behind by that: no pauses, and the usual
                                       priority */


index_t *
index_new(const char *base, const char *history, bool plain)
{
    index_t             *ix;
    pthread_condattr_t   attr;

    ix = calloc(1, sizeof(index_t));
    if (ix == NULL) {
        return NULL;
    }

    settled_init(&ix->settled);
    pthread_mutex_init(&ix->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ix->news, &attr);
    pthread_condattr_destroy(&attr);
    (void) sem_init(&ix->wake, 0, 0);
    ix->dirty_last = &ix->dirty;
    ix->text.max = INDEX_BATCH_TEXT + 32 * 1024 * 1024;
    ix->history = strdup(history);
    ix->docs = malloc((INDEX_BATCH + INDEX_CHANGES) * sizeof(index_doc_t));
    ix->vfs = plain ? store_plain_vfs() : NULL;

    if (ix->history == NULL || ix->docs == NULL || (plain && ix->vfs == NULL)
        || snprintf(ix->path, sizeof(ix->path), "%s/" INDEX_FILE, base)
           >= (int) sizeof(ix->path))
    {
        index_free(ix);
        return NULL;
    }

    return ix;
}


/* --- one round ----------------------------------------------------------------------- */

/* What was told since. */
static void
index_take(index_t *ix)
{
    index_box_t    *box;
    index_touch_t  *t, *next;

    atomic_store(&ix->pending, false);

    if (atomic_exchange(&ix->all, false)) {
        ix->sweep_us = 0;
    }

    for (t = atomic_exchange(&ix->touched, NULL); t; t = next) {
        next = t->next;
        atomic_fetch_sub(&ix->ntouched, 1);

        if (ix->oldest_us == 0 || t->at_us < ix->oldest_us) {
            ix->oldest_us = t->at_us;
        }

        box = index_box(ix, t->dir);

        if (box) {
            index_dirty(ix, box, t->forget);
        } else {
            ix->sweep_us = 0;
        }

        free(t);
    }
}


/* Reads one file to its end; false: it, or the index (*rc), failed. */
static bool
index_one(index_t *ix, index_box_t *box, size_t *n, int *rc)
{
    size_t        before;
    index_read_e  got;

    do {
        before = ix->ndocs;
        got = index_read(ix, box, rc);

        if (*rc != SQLITE_OK || got == INDEX_READ_FAILED) {
            return false;
        }

        *n += ix->ndocs - before;

        if (got == INDEX_READ_FULL) {
            *rc = index_commit(ix);

            if (*rc != SQLITE_OK) {
                return false;
            }
        }

    } while ((got == INDEX_READ_MORE || got == INDEX_READ_FULL)
             && !atomic_load(&ix->stop));

    if (got == INDEX_READ_DONE && !box->done) {
        box->done = true;
        pthread_mutex_lock(&ix->lock);
        ix->numbers.done++;
        pthread_mutex_unlock(&ix->lock);
    }

    return true;
}


/*
 * Reads _gateway before all others.  What is not in it any more when it is read
 * was told to be where it is now before it left (helper/move.c): so what is told
 * until then is read, too.
 */
static int
index_gateway(index_t *ix, size_t *n)
{
    int           rc;
    index_box_t  *box, **p;

    rc = SQLITE_OK;

    for (p = &ix->dirty; (box = *p) != NULL; p = &box->next_dirty) {
        if (index_is_gateway(box)) {
            break;
        }
    }

    if (box == NULL) {
        return SQLITE_OK;
    }

    *p = box->next_dirty;
    box->dirty = false;

    if (*p == NULL) {
        ix->dirty_last = p;
    }

    if (!index_one(ix, box, n, &rc) || box->forget) {
        index_dirty(ix, box, false);
    }

    index_take(ix);

    return rc;
}


/* Reads all files that have news.  *n: records; *left: some could not be read.
 */
static int
index_round(index_t *ix, size_t *n, bool *left)
{
    int            rc;
    index_box_t   *box, *next, *compare, *again;

    rc = index_gateway(ix, n);
    compare = NULL;
    again = NULL;
    box = ix->dirty;
    ix->dirty = NULL;
    ix->dirty_last = &ix->dirty;

    for ( /* void */ ; box; box = next) {
        next = box->next_dirty;
        box->dirty = false;

        if (rc == SQLITE_OK && !atomic_load(&ix->stop)
            && index_one(ix, box, n, &rc))
        {
            if (box->forget) {
                box->next_dirty = compare;
                compare = box;
            }

        } else {
            box->next_dirty = again;
            again = box;
        }
    }

    if (rc == SQLITE_OK) {
        rc = index_commit(ix);
    }

    for ( /* void */ ; compare; compare = next) {
        next = compare->next_dirty;

        if (rc == SQLITE_OK && index_compare(ix, compare, &rc)) {
            compare->forget = false;
            rc = index_commit(ix);

        } else {
            compare->next_dirty = again;
            again = compare;
        }
    }

    for ( /* void */ ; again; again = next) {
        next = again->next_dirty;

        /* what is gone is found by the sweep */

        *left = true;

        if (rc != SQLITE_OK || again->failing || again->retry_us > sb_mono_us())
        {
            index_dirty(ix, again, false);

        } else {
            ix->sweep_us = 0;
        }
    }

    if (rc != SQLITE_OK) {
        index_rollback(ix);
    }

    return rc;
}


static void
index_numbers_set(index_t *ix, bool ready)
{
    struct stat  st;
    uint64_t     bytes;
    char         path[1120];

    bytes = stat(ix->path, &st) == 0 ? (uint64_t) st.st_size : 0;
    (void) snprintf(path, sizeof(path), "%s-wal", ix->path);
    bytes += stat(path, &st) == 0 ? (uint64_t) st.st_size : 0;

    pthread_mutex_lock(&ix->lock);
    ix->numbers.bytes = bytes;
    ix->numbers.files = ix->boxes.count;
    ix->numbers.ready = ix->numbers.ready || ready;

    if (ix->numbers.done > ix->numbers.files) {
        ix->numbers.done = ix->numbers.files;
    }

    pthread_mutex_unlock(&ix->lock);
}


static int
index_count_rows(index_t *ix)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(ix->db, "select count(*) from ops", -1, &st, NULL);

    if (rc == SQLITE_OK) {
        pthread_mutex_lock(&ix->lock);
        ix->numbers.rows = sqlite3_step(st) == SQLITE_ROW
                           ? (uint64_t) sqlite3_column_int64(st, 0) : 0;
        ix->numbers.done = 0;
        pthread_mutex_unlock(&ix->lock);
        rc = sqlite3_finalize(st);
    }

    return rc;
}


/* Opens the file, or makes it anew, and learns what it has. */
static bool
index_prepare(index_t *ix)
{
    int  rc;

    if (ix->db) {
        return true;
    }

    if (!index_db_open(ix)) {
        return false;
    }

    index_forget_boxes(ix);
    ix->sweep_us = 0;
    ix->lost = true;
    rc = index_load_boxes(ix);

    if (rc == SQLITE_OK) {
        rc = index_count_rows(ix);
    }

    if (rc != SQLITE_OK) {
        if (index_db_broken(rc)) {
            (void) index_db_anew(ix, sqlite3_errstr(rc));
        }

        index_db_close(ix);
        return false;
    }

    return true;
}


/* Somebody removed the file. */
static bool
index_removed(index_t *ix)
{
    struct stat  st;

    return stat(ix->path, &st) == -1 ? errno == ENOENT : st.st_ino != ix->ino;
}


/* *n: records that went in.  False: it could not be done. */
static bool
index_turn(index_t *ix, size_t *n)
{
    int       rc;
    bool      left, swept;
    uint64_t  cursor;

    settled_t  settled;

    *n = 0;
    left = false;
    swept = false;
    rc = SQLITE_OK;

    if (!index_prepare(ix)) {
        return false;
    }

    /* what is told after this is of the next turn */
    cursor = stats_get(STATS_APPLIED_CURSOR);
    settled_get(&settled);
    index_take(ix);

    if (sb_mono_us() >= ix->sweep_us) {

        if (index_removed(ix)) {
            (void) index_db_anew(ix, "it was removed");
            index_db_close(ix);
            return false;
        }

        rc = index_sweep(ix);
        ix->sweep_us = sb_mono_us() + INDEX_SWEEP_US;
        swept = true;
    }

    if (rc == SQLITE_OK) {
        rc = index_round(ix, n, &left);
    }

    if (rc == SQLITE_OK && *n == 0) {
        rc = index_parts_tidy(ix, true);
    }

    if (rc != SQLITE_OK) {
        log_minutely(LOG_WARN, "the index cannot be written: %s",
                     ix->db ? sqlite3_errmsg(ix->db) : sqlite3_errstr(rc));
        index_rollback(ix);

        if (index_db_broken(rc)) {
            (void) index_db_anew(ix, sqlite3_errstr(rc));
            index_db_close(ix);
        }

        return false;
    }

    index_numbers_set(ix, swept && !atomic_load(&ix->stop));

    if (!left) {
        ix->oldest_us = 0;
        atomic_store(&ix->waiting_us, 0);
        pthread_mutex_lock(&ix->lock);

        if (ix->numbers.ready && cursor > ix->reached) {
            ix->reached = cursor;
        }

        ix->settled = settled;

        pthread_cond_broadcast(&ix->news);
        pthread_mutex_unlock(&ix->lock);
    }

    return true;
}


/* --- the thread -------------------------------------------------------------------------- */

/* Of the thread: the usual one, or the lowest; with the lock held. */
static void
index_priority(index_t *ix, bool usual)
{
    struct sched_param  p;

    /* the helper may come back from the lowest priority (helper_limits()) */

    if (!ix->yields || ix->usual == usual) {
        return;
    }

    memset(&p, 0, sizeof(p));

    if (pthread_setschedparam(ix->thread, usual ? SCHED_OTHER : SCHED_IDLE, &p)
        == 0)
    {
        ix->usual = usual;
    }
}


/* Can a thread that took the lowest priority have its own again? */
static void *
index_probe(void *data)
{
    bool                *yields = data;
    struct sched_param   p;

    memset(&p, 0, sizeof(p));

    *yields = pthread_setschedparam(pthread_self(), SCHED_IDLE, &p) == 0
              && pthread_setschedparam(pthread_self(), SCHED_OTHER, &p) == 0;

    return NULL;
}


/* With the lock held. */
static bool
index_awaited(index_t *ix)
{
    /* not for a cursor that never comes, or takes long in any case */

    return atomic_load(&ix->hurry) > ix->reached
           && sb_mono_us() <= atomic_load(&ix->hurry_us) + INDEX_HURRY_US;
}


static bool
index_hurried(index_t *ix)
{
    bool  awaited;

    pthread_mutex_lock(&ix->lock);
    awaited = index_awaited(ix);
    pthread_mutex_unlock(&ix->lock);

    return awaited;
}


/* Waits to be woken; false: so long in vain. */
static bool
index_wake(index_t *ix, const struct timespec *until)
{
    int  rc;

    do {
        rc = sem_clockwait(&ix->wake, CLOCK_MONOTONIC, until);
    } while (rc == -1 && errno == EINTR);

    return rc == 0;
}


static void
index_until(struct timespec *until, unsigned ms)
{
    (void) clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_nsec += (long) (ms % 1000) * 1000000;
    until->tv_sec += ms / 1000 + until->tv_nsec / 1000000000;
    until->tv_nsec %= 1000000000;
}


/* Waits for something to do, at most so long. */
static void
index_sleep(index_t *ix, unsigned ms)
{
    struct timespec  until;

    index_until(&until, ms);
    (void) index_wake(ix, &until);
}


/* A pause, unless somebody waits. */
static void
index_nap(index_t *ix, unsigned ms)
{
    struct timespec  until;

    index_until(&until, ms);

    while (!atomic_load(&ix->stop) && !index_hurried(ix)
           && index_wake(ix, &until))
    {
        /* what there is now, the turn behind the pause will see */
    }
}


/* The traffic comes first, and more at a time costs less. */
static bool
index_put_off(index_t *ix)
{
    if (ix->db == NULL || !stats_get(STATS_APPLY_BUSY) || index_hurried(ix)) {
        return false;
    }

    index_take(ix);

    return ix->oldest_us && sb_mono_us() < ix->oldest_us + INDEX_PUT_OFF_US;
}


static void *
index_thread(void *data)
{
    bool      usual, ok;
    size_t    n;
    index_t  *ix = data;

    if (!ix->yields) {
        /* of this thread: low for good, but with a share */
        (void) setpriority(PRIO_PROCESS, 0, INDEX_NICE);
    }

    while (!atomic_load(&ix->stop)) {

        if (index_put_off(ix)) {
            index_nap(ix, 5 * INDEX_NAP_MS);
            continue;
        }

        usual = ix->oldest_us && sb_mono_us() > ix->oldest_us + INDEX_LATE_US;

        pthread_mutex_lock(&ix->lock);
        index_priority(ix, usual || index_awaited(ix));
        pthread_mutex_unlock(&ix->lock);

        ok = index_turn(ix, &n);

        if (!ok) {
            index_sleep(ix, 500);

        } else if (n >= INDEX_BUSY) {
            /* later is cheaper: more goes into one transaction */
            index_nap(ix, usual ? INDEX_NAP_MS : INDEX_BUSY_MS);

        } else if (!atomic_load(&ix->pending)) {
            index_sleep(ix, index_hurried(ix) ? INDEX_NAP_MS : 1000);

            if (!index_hurried(ix)) {
                index_nap(ix, INDEX_NAP_MS);
            }
        }
    }

    return NULL;
}


bool
index_start(index_t *ix)
{
    pthread_t  probe;

    if (pthread_create(&probe, NULL, index_probe, &ix->yields) == 0) {
        (void) pthread_join(probe, NULL);
    }

    ix->usual = true;
    ix->running = pthread_create(&ix->thread, NULL, index_thread, ix) == 0;

    return ix->running;
}


static void
index_readers_close(index_t *ix)
{
    index_reader_t  *r, *next;

    pthread_mutex_lock(&ix->lock);
    r = ix->readers;
    ix->readers = NULL;
    ix->nreaders = 0;
    pthread_mutex_unlock(&ix->lock);

    for ( /* void */ ; r; r = next) {
        next = r->next;
        (void) sqlite3_close(r->db);
        free(r);
    }
}


void
index_stop(index_t *ix)
{
    if (ix == NULL || !ix->running) {
        return;
    }

    atomic_store(&ix->stop, true);
    (void) sem_post(&ix->wake);
    (void) pthread_join(ix->thread, NULL);
    ix->running = false;

    index_rollback(ix);
    index_forget_boxes(ix);

    /* the writer is the last: it takes the log into the file */
    index_readers_close(ix);
    index_db_close(ix);

    pthread_mutex_lock(&ix->lock);
    pthread_cond_broadcast(&ix->news);
    pthread_mutex_unlock(&ix->lock);
}


void
index_free(index_t *ix)
{
    index_touch_t  *t;

    if (ix == NULL) {
        return;
    }

    index_stop(ix);
    index_forget_boxes(ix);
    table_free(&ix->boxes);
    index_forget_words(ix);

    index_readers_close(ix);

    while ((t = atomic_load(&ix->touched)) != NULL) {
        atomic_store(&ix->touched, t->next);
        free(t);
    }

    sb_buf_free(&ix->text);
    free(ix->docs);
    free(ix->history);
    (void) sem_destroy(&ix->wake);
    pthread_cond_destroy(&ix->news);
    pthread_mutex_destroy(&ix->lock);
    free(ix);
}


/* --- how far it is ------------------------------------------------------------------------ */

bool
index_reached(index_t *ix, uint64_t cursor)
{
    bool  reached;

    pthread_mutex_lock(&ix->lock);
    reached = ix->reached >= cursor;
    pthread_mutex_unlock(&ix->lock);

    return reached;
}


uint64_t
index_settled(index_t *ix, settled_t *s)
{
    uint64_t  cursor;

    pthread_mutex_lock(&ix->lock);
    *s = ix->settled;
    cursor = ix->reached;
    pthread_mutex_unlock(&ix->lock);

    return cursor;
}


void
index_hurry(index_t *ix, uint64_t cursor)
{
    bool                awaited, raised;
    unsigned long long  was;

    was = atomic_load(&ix->hurry);
    atomic_store(&ix->hurry_us, sb_mono_us());

    while (was < cursor
           && !atomic_compare_exchange_weak(&ix->hurry, &was, cursor))
    {
        /* another one came in between */
    }

    raised = was < cursor;
    pthread_mutex_lock(&ix->lock);

    /* who waits must not wait for a machine that is busy otherwise */
    awaited = ix->reached < cursor;

    if (awaited && ix->running) {
        index_priority(ix, true);
    }

    pthread_mutex_unlock(&ix->lock);

    /* also out of a pause, once for each who waits */
    if (awaited && (!atomic_exchange(&ix->pending, true) || raised)) {
        (void) sem_post(&ix->wake);
    }
}


bool
index_wait(index_t *ix, uint64_t cursor, unsigned ms)
{
    bool             reached;
    struct timespec  until;

    index_until(&until, ms);
    index_hurry(ix, cursor);
    pthread_mutex_lock(&ix->lock);

    while (ix->reached < cursor && !atomic_load(&ix->stop)
           && pthread_cond_timedwait(&ix->news, &ix->lock, &until)
              != ETIMEDOUT)
    {
        /* it may be another's news */
    }

    reached = ix->reached >= cursor;
    pthread_mutex_unlock(&ix->lock);

    return reached;
}


void
index_numbers(index_t *ix, index_numbers_t *n)
{
    uint64_t  now, oldest;

    oldest = atomic_load(&ix->waiting_us);
    now = sb_mono_us();

    pthread_mutex_lock(&ix->lock);
    *n = ix->numbers;
    n->cursor = ix->reached;
    pthread_mutex_unlock(&ix->lock);

    n->lag_us = oldest && oldest < now ? now - oldest : 0;
}
