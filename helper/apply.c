#include "apply_int.h"

#include "contents.h"
#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>


#define APPLY_NAP_MS    30          /* lets a begin and its end meet */
#define APPLY_BUSY      60          /* records within a nap */
#define APPLY_BUSY_MS   500
#define APPLY_TIDY      32          /* files checkpointed at a time */
#define APPLY_TIDY_US   30000000u
#define APPLY_MANY      4000        /* records waiting: no more napping */
#define APPLY_DUTY      4           /* busy: times of work that we rest */
#define APPLY_REST_US   100000u     /* ... at most, at a time */
#define APPLY_LIMITS_US       5000u /* of purging between two batches */
#define APPLY_LIMITS_IDLE_US  500000u


apply_t *
apply_new(store_t *store, fetch_t *fetch, int journal_dirfd, uint64_t from)
{
    apply_t             *a;
    pthread_condattr_t   attr;

    a = calloc(1, sizeof(apply_t));
    if (a == NULL) {
        return NULL;
    }

    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_cond_init(&a->low_wake, NULL);
    pthread_cond_init(&a->low_done, NULL);
    a->store = store;
    (void) strcpy(a->gateway.dir, SCHEMA_GATEWAY);
    a->fetch = fetch;
    a->dirfd = journal_dirfd;
    a->lag_us = APPLY_LAG_US;
    a->stop_us = APPLY_STOP_US;
    a->aside_most = APPLY_ASIDE;
    a->applied = from;
    a->stored = from;
    a->agroups = 16;
    a->ngroups = 1;
    a->groups = calloc(a->agroups, sizeof(apply_group_t));
    a->buf = malloc(APPLY_BUF);

    if (a->groups == NULL || a->buf == NULL) {
        apply_free(a);
        return NULL;
    }

    return a;
}


void
apply_bounds(apply_t *a, uint64_t lag_us, uint64_t stop_us)
{
    a->lag_us = lag_us;
    a->stop_us = stop_us;
}


void
apply_set_aside(apply_t *a, size_t records)
{
    a->aside_most = records;
}


void
apply_retain(apply_t *a, retain_t *retain)
{
    a->retain = retain;
}


void
apply_errands(apply_t *a, errands_t *errands)
{
    a->errands = errands;
}


void
apply_free(apply_t *a)
{
    size_t  i;

    if (a == NULL) {
        return;
    }

    if (a->journal) {
        journal_reader_close(&a->reader);
    }

    apply_ops_forget(a);
    apply_ops_free(a);
    apply_boxes_free(a);
    free(a->gateway.aside);

    for (i = 0; a->groups && i < a->agroups; i++) {
        free(a->groups[i].items);
    }

    free(a->groups);
    free(a->items);
    free(a->buf);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->wake);
    pthread_cond_destroy(&a->low_wake);
    pthread_cond_destroy(&a->low_done);
    free(a);
}


/* Events whose sandbox has a file by now, and that were not moved. */
bool
apply_recover(apply_t *a)
{
    int            rc;
    const char    *text;
    store_db_t    *db;
    apply_box_t   *box;
    sqlite3_stmt  *st;

    a->recover = false;

    if (!store_exists(a->store, SCHEMA_GATEWAY)) {
        return true;
    }

    db = apply_gateway(a, &rc);

    if (db == NULL) {
        a->recover = true;
        apply_stall_mark(a, &a->gateway, rc);
        return false;
    }

    rc = sqlite3_prepare_v2(db->db, "select distinct sandbox from gateway_held",
                            -1, &st, NULL);

    if (rc == SQLITE_OK) {
        while (sqlite3_step(st) == SQLITE_ROW) {
            text = (const char *) sqlite3_column_text(st, 0);
            box = text ? apply_box(a, sb_str(text, strlen(text))) : NULL;

            if (box && box->file) {
                apply_box_make(a, box);
            }
        }

        (void) sqlite3_finalize(st);
    }

    db->pins--;
    apply_make_files(a);

    return a->stalled == NULL;
}


bool
apply_attach(apply_t *a, journal_t *journal)
{
    uint64_t  before;

    a->journal = journal;
    a->batch_from = a->applied;

    /* a new journal does not begin at 1: nothing waits before its beginning */
    before = journal_oldest(journal) - 1;
    stats_set(STATS_APPLIED_CURSOR, a->applied > before ? a->applied : before);
    journal_reader_init(&a->reader, journal, a->applied);
    (void) apply_recover(a);

    return !a->recover;
}


static void
apply_batch_reset(apply_t *a)
{
    size_t  i;

    for (i = 0; i < a->ngroups; i++) {
        a->groups[i].n = 0;

        if (a->groups[i].box) {
            a->groups[i].box->group = 0;
            a->groups[i].box = NULL;
        }
    }

    a->ngroups = 1;
    a->nitems = 0;
}


/* The batch comes again: no operation of it is over yet, and what was news is
 * news once more. */
static void
apply_batch_undo(apply_t *a)
{
    size_t         i;
    apply_op_t    *op;
    apply_item_t  *item;

    while ((op = a->over) != NULL) {
        a->over = op->next_over;
        op->over = false;
    }

    for (i = 0; i < a->nitems; i++) {
        item = &a->items[i];

        if (item->op == NULL && item->box) {
            free(item->box->state);
            item->box->state = NULL;
            free(item->box->written_name);
            item->box->written_name = NULL;
        }
    }
}


static void
apply_note(apply_t *a, uint64_t cursor)
{
    bool      forget;
    uint64_t  safe, before;

    before = a->batch_from;

    pthread_mutex_lock(&a->lock);
    a->applied = cursor;
    a->batch_from = cursor;
    pthread_mutex_unlock(&a->lock);

    apply_settle(a);
    stats_set(STATS_APPLIED_CURSOR, cursor);

    if (cursor > before) {
        stats_add(STATS_APPLY_RECORDS, cursor - before);
    }

    /* the journal backs up what SQLite has not flushed yet */
    safe = apply_floor(a, cursor);
    forget = journal_can_forget(a->journal, safe) && store_sync(a->store);

    if (forget || safe > a->stored) {
        if (journal_applied_store(a->dirfd, safe) != 0) {
            log_minutely(LOG_WARN, "cannot note the applied cursor: errno %d",
                         errno);
        }

        a->stored = safe;
    }

    if (forget) {
        journal_forget(a->journal, safe);
    }
}


static bool
apply_held(void *data, store_db_t *db)
{
    return retain_held(data, db);
}


/* Contents of files within their bound. */
static void
apply_contents(apply_t *a)
{
    contents_tend(a->store, a->retain ? apply_held : NULL, a->retain);
}


/* One buffer of the journal.  1: done, 0: nothing there, -1: give up. */
static int
apply_batch(apply_t *a)
{
    bool           ok;
    ssize_t        n;
    sb_rc_t        rc;
    journal_pos_t  tail;

    tail = journal_tail(a->journal);
    n = journal_read(&a->reader, a->buf, APPLY_BUF, &tail);

    if (n == -1) {
        log_minutely(LOG_ERROR, "cannot read the journal: errno %d", errno);
        return -1;
    }

    if (n == 0 && !a->reader.damaged) {
        if (tail.cursor > a->batch_from) {
            apply_note(a, tail.cursor);
        }

        return 0;
    }

    ok = false;
    rc = a->reader.damaged ? apply_lost_passed(a, (size_t) n, tail.cursor)
                           : SB_OK;

    if (rc != SB_OK || apply_route(a, a->buf, (size_t) n) != SB_OK) {
        log_minutely(LOG_ERROR, "no memory to apply the journal, %d bytes wait",
                     (int) n);

    } else {
        apply_make_files(a);
        ok = apply_write_groups(a);
    }

    if (!ok) {
        apply_batch_undo(a);
    }

    apply_batch_reset(a);

    if (!ok) {
        /* the same records again, next time */
        journal_reader_close(&a->reader);
        journal_reader_init(&a->reader, a->journal, a->batch_from);
        return -1;
    }

    apply_ops_forget(a);
    apply_boxes_trim(a);
    stats_set(STATS_APPLIED_US, a->newest_us);
    apply_contents(a);
    a->reader.damaged = false;
    apply_note(a, n ? a->reader.cursor : tail.cursor);

    return 1;
}


bool
apply_all(apply_t *a)
{
    int  rc;

    do {
        rc = apply_batch(a);
    } while (rc == 1);

    if (a->stalled) {
        apply_stall_retry(a, true);
        apply_note(a, a->batch_from);
    }

    return rc == 0 && a->stalled == NULL;
}


/* --- the thread ----------------------------------------------------------- */

/* Takes the lowest priority or the usual one; the lock is held. */
static void
apply_priority(apply_t *a, bool lazy)
{
    struct sched_param  p;

    if (!a->yields || a->lazy == lazy) {
        return;
    }

    memset(&p, 0, sizeof(p));

    if (pthread_setschedparam(a->thread, lazy ? SCHED_IDLE : SCHED_OTHER, &p)
        == 0)
    {
        a->lazy = lazy;
    }
}


/* Half of the bound is used up: no pauses, and the usual priority.  The lock is
 * held. */
static void
apply_hurry(apply_t *a)
{
    if (!a->hurry) {
        a->hurry = true;
        stats_add(STATS_APPLY_HURRIES, 1);
    }

    apply_priority(a, false);
}


/* Does nothing for a while, unless somebody waits for what is in the journal. */
static void
apply_doze(apply_t *a, uint64_t us)
{
    struct timespec  until;

    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long) us * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;

    pthread_mutex_lock(&a->lock);

    while (a->wanted <= a->batch_from && !a->stop
           && pthread_cond_timedwait(&a->wake, &a->lock, &until) == 0)
    {
        /* woken for something else */
    }

    pthread_mutex_unlock(&a->lock);
}


void
apply_pause(apply_t *a, uint64_t cpu_us)
{
    bool      rest;
    uint64_t  us;

    pthread_mutex_lock(&a->lock);

    if (sb_now_us() > a->oldest_us + a->lag_us / 2) {
        apply_hurry(a);
    }

    rest = !a->hurry && !a->stop;
    pthread_mutex_unlock(&a->lock);

    us = cpu_us * APPLY_DUTY;

    if (rest && us) {
        apply_doze(a, us < APPLY_REST_US ? us : APPLY_REST_US);
    }
}


/* Much traffic or not: what is due to it. */
static void
apply_mood(apply_t *a, bool busy)
{
    a->busy = busy;
    stats_set(STATS_APPLY_BUSY, busy);

    pthread_mutex_lock(&a->lock);

    if (a->hurry && sb_now_us() < stats_get(STATS_APPLIED_US) + a->lag_us / 4)
    {
        a->hurry = false;
    }

    apply_priority(a, busy && !a->hurry && a->wanted <= a->batch_from);
    pthread_mutex_unlock(&a->lock);
}


static void
apply_nap(unsigned ms)
{
    struct timespec  t;

    t.tv_sec = 0;
    t.tv_nsec = (long) ms * 1000000;
    (void) nanosleep(&t, NULL);
}


/* Waits for records; false: it is time to stop. */
static bool
apply_wait(apply_t *a)
{
    bool             stop;
    struct timespec  until;

    pthread_mutex_lock(&a->lock);

    for ( ;; ) {
        /* first, see apply_wake() */
        a->waiting = true;
        stop = a->stop;

        if (stop || journal_tail(a->journal).cursor > a->batch_from) {
            break;
        }

        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;

        stats_set(STATS_APPLIED_US, sb_now_us());
        (void) pthread_cond_timedwait(&a->wake, &a->lock, &until);

        if (a->npending || a->stalled || a->retain
            || store_untidy(a->store)
            || store_heads_due(a->store, sb_mono_us(), false))
        {
            break;
        }
    }

    a->waiting = false;
    pthread_mutex_unlock(&a->lock);

    return !stop;
}


bool
apply_pressed(apply_t *a)
{
    bool  pressed;

    pthread_mutex_lock(&a->lock);
    pressed = a->hurry || a->wanted > a->batch_from;
    pthread_mutex_unlock(&a->lock);

    return pressed;
}


static bool
apply_stopping(apply_t *a)
{
    bool  stop;

    pthread_mutex_lock(&a->lock);
    stop = a->stop;
    pthread_mutex_unlock(&a->lock);

    return stop;
}


static void
apply_gather(apply_t *a)
{
    unsigned  ms;
    uint64_t  before, waiting;

    before = journal_tail(a->journal).cursor;
    apply_doze(a, APPLY_NAP_MS * 1000);

    apply_mood(a, journal_tail(a->journal).cursor - before >= APPLY_BUSY);

    /* under load later is cheaper: begin and end meet, and a database is
     * committed once for many records */

    for (ms = APPLY_NAP_MS; a->busy && ms < APPLY_BUSY_MS; ms += APPLY_NAP_MS)
    {
        waiting = journal_tail(a->journal).cursor - a->batch_from;

        if (waiting >= APPLY_MANY || apply_stopping(a) || apply_pressed(a)) {
            break;
        }

        apply_doze(a, APPLY_NAP_MS * 1000);
    }
}


static void
apply_heads(apply_t *a, bool all)
{
    if (store_heads_due(a->store, sb_mono_us(), all)) {
        store_heads_sign(a->store, sb_now_us());
    }
}


/* Nothing came for a second: time for checkpoints. */
static void
apply_tidy(apply_t *a)
{
    size_t  before;

    before = store_untidy(a->store);

    if (before == 0 || sb_mono_us() < a->tidy_after_us) {
        return;
    }

    if (!store_tidy(a->store, APPLY_TIDY)
        || store_untidy(a->store) >= before)
    {
        /* a reader holds them: not every second */
        a->tidy_after_us = sb_mono_us() + APPLY_TIDY_US;
    }
}


/* What the limits ask for: some of it between two batches, more of it while
 * nothing comes, all of it for a file that grows faster than it shrinks. */
static void
apply_limits(apply_t *a, bool idle)
{
    bool      more;
    uint64_t  until;

    if (a->retain == NULL) {
        return;
    }

    if (a->errands) {
        errands_run(a->errands, a->store, a->retain);
    }

    until = sb_now_us() + (idle ? APPLY_LIMITS_IDLE_US : 0);

    do {
        more = retain_work(a->retain, a->stored, APPLY_LIMITS_US);

        if (more && a->busy) {
            apply_nap(APPLY_LIMITS_US / 1000);
        }

    } while (more && !apply_stopping(a)
             && (retain_urgent(a->retain)
                 || (sb_now_us() < until
                     && journal_tail(a->journal).cursor == a->batch_from)));
}


static void *
apply_thread(void *data)
{
    int        rc;
    bool       ok;
    uint64_t   until;
    apply_t   *a = data;

    store_find_untidy(a->store);

    while (apply_wait(a)) {

        if (journal_tail(a->journal).cursor == a->batch_from) {
            apply_mood(a, false);
            apply_stall_retry(a, false);
            apply_note(a, a->batch_from);
            apply_heads(a, false);
            apply_tidy(a);
            apply_contents(a);
            apply_limits(a, true);
            (void) apply_force_pending(a, sb_now_us());
            continue;
        }

        apply_gather(a);

        do {
            rc = apply_batch(a);
        } while (rc == 1 && !a->busy);

        if (rc == -1 && !apply_stopping(a)) {
            apply_nap(500);
        }

        if (a->stalled) {
            apply_stall_retry(a, false);
        }

        apply_limits(a, false);
        (void) apply_force_pending(a, sb_now_us());
        apply_heads(a, false);
    }

    apply_mood(a, false);
    until = sb_now_us() + a->stop_us;

    do {
        rc = apply_batch(a);
    } while (rc == 1 && sb_now_us() < until);

    if (a->stalled) {
        apply_stall_retry(a, true);
    }

    ok = rc == 0 && a->stalled == NULL;
    apply_heads(a, true);

    if (a->batch_from) {
        (void) journal_applied_store(a->dirfd, apply_floor(a, a->batch_from));
    }

    if (sb_now_us() >= until) {
        log_line(LOG_WARN, "stopping took all of its %u s: %llu records are in "
                 "the journal only", (unsigned) (a->stop_us / 1000000),
                 (unsigned long long) (journal_tail(a->journal).cursor
                                       - a->batch_from));

    } else if (!store_tidy(a->store, SIZE_MAX)) {
        log_line(LOG_WARN, "history files keep their write-ahead logs");
    }

    a->failed = !ok;

    return NULL;
}


bool
apply_start(apply_t *a)
{
    a->running = true;
    apply_low_start(a);

    /* the thread takes the lock before it uses its own name */
    pthread_mutex_lock(&a->lock);

    if (pthread_create(&a->thread, NULL, apply_thread, a) != 0) {
        a->running = false;
    }

    pthread_mutex_unlock(&a->lock);

    if (!a->running) {
        apply_low_stop(a);
    }

    return a->running;
}


void
apply_wake(apply_t *a)
{
    /* the journal has grown before that is looked at, and the thread looks at the
     * journal after it has set it */

    if (!atomic_load(&a->waiting) && !atomic_load(&a->lazy)) {
        return;
    }

    pthread_mutex_lock(&a->lock);

    if (a->waiting) {
        stats_set(STATS_APPLIED_US, sb_now_us());
        pthread_cond_signal(&a->wake);

    } else if (a->lazy
               && sb_now_us() > stats_get(STATS_APPLIED_US) + a->lag_us / 2)
    {
        /* it may not even get to see that */
        apply_hurry(a);
    }

    pthread_mutex_unlock(&a->lock);
}


void
apply_want(apply_t *a, uint64_t cursor)
{
    pthread_mutex_lock(&a->lock);

    if (cursor > a->wanted) {
        a->wanted = cursor;
    }

    if (a->wanted > a->batch_from) {
        apply_priority(a, false);
    }

    if (a->waiting) {
        stats_set(STATS_APPLIED_US, sb_now_us());
    }

    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
}


bool
apply_stop(apply_t *a)
{
    if (!a->running) {
        return true;
    }

    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);

    pthread_join(a->thread, NULL);
    apply_low_stop(a);
    a->running = false;

    return !a->failed;
}
