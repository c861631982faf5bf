/* The thread that follows the journal, and those who read along. */

#include "live_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <stdlib.h>
#include <time.h>


#define LIVE_BATCH    256           /* events between two deliveries */
#define LIVE_SHARE    8192          /* bytes of events that are sent as one
                                       piece */
#define LIVE_IDLE_US  10000000u     /* it follows on for those who come back */
#define LIVE_TICK_US  1000000u
#define LIVE_HOLD_US  5000000u      /* a feed that is not used, for others */


live_t *
live_new(journal_t *journal, readers_t *readers)
{
    live_t              *l;
    pthread_condattr_t   attr;

    l = calloc(1, sizeof(live_t));
    if (l == NULL) {
        return NULL;
    }

    l->journal = journal;
    l->readers = readers;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->cond, &attr);
    pthread_condattr_destroy(&attr);

    return l;
}


/* --- the ring -------------------------------------------------------------- */

static void
live_ring_shift(live_t *l)
{
    live_event_t  *e;

    e = l->ring[l->first % LIVE_RING];
    l->from = e->cursor;
    l->bytes -= e->len + e->held;
    l->first++;
    live_event_free(e);
}


static void
live_ring_clear(live_t *l, uint64_t cursor)
{
    while (l->first < l->last) {
        live_ring_shift(l);
    }

    l->from = cursor;
    l->cursor = cursor;
}


static void
live_ring_add(live_t *l, live_event_t *e)
{
    while (l->last - l->first == LIVE_RING
           || (l->first < l->last && l->bytes + e->len + e->held
                                    > LIVE_RING_BYTES))
    {
        live_ring_shift(l);
    }

    l->ring[l->last % LIVE_RING] = e;
    l->last++;
    l->bytes += e->len + e->held;
}


/* --- delivery, with the lock held ------------------------------------------ */

/* Of a lock only type and actor are known. */
static bool
live_sub_wants_lock(const live_sub_t *s, const live_event_t *e)
{
    history_filter_t  f;

    history_filter_init(&f);
    f.type = s->filter.type;
    f.actor = s->filter.actor;

    return history_filter_match(&f, &e->facts);
}


bool
live_sub_wants(live_sub_t *s, const live_event_t *e)
{
    bool      found;
    size_t    i;
    sb_str_t  sandbox;

    if (s->sandbox) {
        sandbox = sb_str(s->sandbox, strlen(s->sandbox));

        if (e->kind == LIVE_SANDBOX) {

            for (i = 0; i < e->facts.npaths; i++) {
                if (sb_eq(e->facts.paths[i], sandbox)) {
                    return true;
                }
            }

            return false;
        }

        /* a gap that is about no sandbox may be about this one */
        if (!sb_eq(e->sandbox, sandbox)
            && (e->kind != LIVE_GAP || e->sandbox.len))
        {
            return false;
        }
    }

    if (e->kind == LIVE_GAP || e->kind == LIVE_SANDBOX) {
        return true;
    }

    if (e->kind == LIVE_LOCK) {
        return live_sub_wants_lock(s, e);
    }

    /* also what does not pass for another reason has words of its operation */
    found = s->search == NULL || live_search_event(s->search, e);

    if (!found || (e->kind == LIVE_OUTPUT && !s->output)
        || (e->fold && s->filter.type.n == 0))
    {
        return false;
    }

    return history_filter_match(&s->filter, &e->facts);
}


bool
live_sub_send(live_sub_t *s, uint64_t now_us)
{
    size_t  n, room;

    while (s->event) {

        n = s->event->len - s->sent;
        room = ask_room(s->q);

        if (room < n && !ask_more(s->q, room)) {

            if (room == 0) {
                s->blocked_us = s->blocked ? s->blocked_us : now_us;
                s->blocked = true;
                return false;
            }

            n = room;

        } else if (room < n) {
            continue;
        }

        if (!ask_write(s->q, s->event->text + s->sent, n)) {
            /* no memory, or it is over: the next tick tries again */
            s->blocked_us = s->blocked ? s->blocked_us : now_us;
            s->blocked = true;
            return false;
        }

        s->blocked = false;
        s->sent_us = now_us;
        s->sent += n;

        if (s->sent == s->event->len) {
            s->cursor = s->event->cursor > s->cursor ? s->event->cursor
                                                     : s->cursor;
            live_event_free(s->event);
            s->event = NULL;
            s->sent = 0;
        }
    }

    return true;
}


void
live_sub_turn(live_sub_t *s)
{
    live_t    *l;
    uint64_t   low, high, mid;

    l = s->live;
    low = l->first;
    high = l->last;

    while (low < high) {
        mid = low + (high - low) / 2;

        if (l->ring[mid % LIVE_RING]->cursor <= s->cursor) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    s->turn = low;
    s->state = LIVE_ALONG;
}


void
live_sub_along(live_sub_t *s, uint64_t now_us)
{
    live_t        *l;
    live_event_t  *e;

    l = s->live;

    for ( ;; ) {

        if (!live_sub_send(s, now_us)) {
            return;
        }

        if (s->turn < l->first) {
            s->state = LIVE_BEHIND;
            stats_add(STATS_LIVE_BEHIND, 1);
            s->event = live_event_text(s->cursor, ": behind\n\n");
            return;
        }

        while (s->turn < l->last && s->event == NULL) {
            e = l->ring[s->turn % LIVE_RING];
            s->turn++;

            if (live_sub_wants(s, e)) {
                s->event = live_event_ref(e);
            }
        }

        if (s->event == NULL) {
            s->cursor = l->cursor > s->cursor ? l->cursor : s->cursor;
            return;
        }
    }
}


static bool
live_share_room(live_t *l)
{
    size_t        n;
    ask_share_t  *shares;

    if (l->nsubs <= l->nshares) {
        return true;
    }

    n = l->nsubs + l->nsubs / 2;
    shares = realloc(l->shares, n * sizeof(ask_share_t));

    if (shares) {
        l->shares = shares;
        l->nshares = n;
    }

    return shares != NULL;
}


/* How many events from there on all of them want, up to LIVE_SHARE bytes; the
 * first is wanted.  *len: of these. */
static size_t
live_run(const live_t *l, uint64_t turn, size_t n, size_t *len)
{
    size_t               i;
    uint64_t             to;
    const live_event_t  *e;

    *len = l->ring[turn % LIVE_RING]->len;

    for (to = turn + 1; to < l->last; to++) {
        e = l->ring[to % LIVE_RING];

        if (*len + e->len > LIVE_SHARE) {
            break;
        }

        for (i = 0; i < n && live_sub_wants(l->shares[i].q->state, e); i++) {
            /* void */
        }

        if (i < n) {
            break;
        }

        *len += e->len;
    }

    return (size_t) (to - turn);
}


/*
 * An event, and what all who wait for it want behind it, for all of them: one
 * piece for those of a worker, which costs it a write for each.  Whom it does
 * not suit gets it by himself.
 */
static void
live_share(live_t *l, uint64_t turn, uint64_t now_us)
{
    char          *text;
    size_t         i, n, run, len, at;
    live_sub_t    *s;
    live_event_t  *e;

    e = l->ring[turn % LIVE_RING];
    n = 0;

    for (s = l->subs; s; s = s->next) {

        if (s->state != LIVE_ALONG || s->running || s->blocked || s->event
            || s->turn != turn)
        {
            continue;
        }

        if (live_sub_wants(s, e)) {
            l->shares[n++].q = s->q;

        } else {
            s->turn++;
        }
    }

    if (n == 0) {
        return;
    }

    run = live_run(l, turn, n, &len);
    text = run > 1 ? malloc(len) : NULL;

    if (text == NULL) {
        run = 1;
        ask_write_shared(l->shares, n, e->text, e->len);

    } else {
        for (i = 0, at = 0; i < run; i++, at += e->len) {
            e = l->ring[(turn + i) % LIVE_RING];
            memcpy(text + at, e->text, e->len);
        }

        ask_write_shared(l->shares, n, text, len);
        free(text);
    }

    e = l->ring[(turn + run - 1) % LIVE_RING];

    for (i = 0; i < n; i++) {
        if (l->shares[i].taken) {
            s = l->shares[i].q->state;
            s->turn += run;
            s->cursor = e->cursor > s->cursor ? e->cursor : s->cursor;
            s->sent_us = now_us;
        }
    }
}


/* What is in the ring from `fresh` on is new. */
static void
live_deliver(live_t *l, uint64_t fresh, uint64_t now_us)
{
    live_sub_t  *s;

    fresh = fresh > l->first ? fresh : l->first;

    for ( /* void */ ; fresh < l->last && live_share_room(l); fresh++) {
        live_share(l, fresh, now_us);
    }

    for (s = l->subs; s; s = s->next) {

        if (s->state != LIVE_ALONG || s->running || s->blocked) {
            continue;
        }

        live_sub_along(s, now_us);

        if (s->state != LIVE_ALONG) {
            ask_wake(s->q);
        }
    }
}


/* Once a second: signs of life, and feeds that are held for nothing. */
static void
live_tick(live_t *l, uint64_t now_us)
{
    live_sub_t  *s;

    for (s = l->subs; s; s = s->next) {

        if (s->running) {
            continue;
        }

        if (s->blocked) {

            if (ask_room(s->q)) {
                ask_wake(s->q);

            } else if (s->feed && l->nwaiting
                       && now_us > s->blocked_us + LIVE_HOLD_US)
            {
                live_sub_unfeed(s);
            }

            continue;
        }

        if (s->state == LIVE_NEW || s->event
            || now_us < s->sent_us + LIVE_BEAT_US)
        {
            continue;
        }

        /* those whose filter lets little pass get a younger cursor by it */
        s->event = live_event_text(s->cursor, ":%*s\nid: %llu\n\n",
                                   s->padding, "",
                                   (unsigned long long) s->cursor);
        (void) live_sub_send(s, now_us);
    }
}


void
live_sub_unfeed(live_sub_t *s)
{
    live_t      *l;
    live_sub_t  *o;

    l = s->live;

    if (s->feed == NULL) {
        return;
    }

    live_feed_free(s->feed);
    s->feed = NULL;
    l->nfeeds--;

    for (o = l->subs; o; o = o->next) {
        if (o->waiting) {
            o->waiting = false;
            l->nwaiting--;
            ask_wake(o->q);
            return;
        }
    }
}


/* --- the thread ------------------------------------------------------------ */

/* Begins to follow: what is open is learnt from the newest segment. */
static live_feed_t *
live_follow(live_t *l)
{
    uint64_t         cursor;
    live_sub_t      *s;
    live_feed_t     *f;
    live_event_t    *e;
    live_feed_rc_e   rc;

    cursor = journal_tail(l->journal).cursor;

    pthread_mutex_unlock(&l->lock);

    f = live_feed_new(l->journal, l->readers, cursor);
    rc = LIVE_FEED_NONE;

    while (f && rc == LIVE_FEED_NONE && !live_feed_caught_up(f)) {
        /* up to the cursor there are no events */
        rc = live_feed_next(f, &e);
    }

    pthread_mutex_lock(&l->lock);

    if (f == NULL || rc == LIVE_FEED_ERROR || rc == LIVE_FEED_LOST) {
        live_feed_free(f);
        return NULL;
    }

    live_ring_clear(l, cursor);
    l->ready = true;

    for (s = l->subs; s; s = s->next) {
        ask_wake(s->q);
    }

    return f;
}


/* Reads what is there, up to a batch; the lock is not held meanwhile. */
static live_feed_rc_e
live_read(live_t *l, live_feed_t *f)
{
    size_t           i, n;
    uint64_t         fresh;
    live_event_t    *e, *batch[LIVE_BATCH];
    live_feed_rc_e   rc;

    n = 0;

    pthread_mutex_unlock(&l->lock);

    do {
        rc = live_feed_next(f, &e);

        if (rc == LIVE_FEED_EVENT) {
            batch[n++] = e;
        }

    } while (n < LIVE_BATCH && rc <= LIVE_FEED_NONE
             && live_feed_cursor(f) % LIVE_BATCH != 0);

    pthread_mutex_lock(&l->lock);
    fresh = l->last;

    for (i = 0; i < n; i++) {
        live_ring_add(l, batch[i]);
    }

    stats_add(STATS_LIVE_EVENTS, n);
    l->cursor = live_feed_cursor(f) > l->cursor ? live_feed_cursor(f)
                                                : l->cursor;
    live_deliver(l, fresh, sb_mono_us());

    return rc;
}


/* Waits for news of the journal, a second at most. */
static void
live_wait(live_t *l, uint64_t cursor)
{
    struct timespec  until;

    __atomic_store_n(&l->asleep, true, __ATOMIC_SEQ_CST);

    if (!l->stop && journal_tail(l->journal).cursor <= cursor) {
        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        (void) pthread_cond_timedwait(&l->cond, &l->lock, &until);
    }

    __atomic_store_n(&l->asleep, false, __ATOMIC_SEQ_CST);
}


static void *
live_thread(void *data)
{
    live_t          *l = data;
    uint64_t         now, used, ticked;
    live_feed_t     *f;
    live_feed_rc_e   rc;

    f = NULL;
    used = 0;
    ticked = 0;

    pthread_mutex_lock(&l->lock);

    while (!l->stop) {

        now = sb_mono_us();
        used = l->nsubs ? now : used;

        if (l->nsubs == 0 && (f == NULL || now > used + LIVE_IDLE_US)) {
            live_feed_free(f);
            f = NULL;
            l->ready = false;
            live_ring_clear(l, l->cursor);

            /* for somebody who listens; the journal does not wake it */
            (void) pthread_cond_wait(&l->cond, &l->lock);
            continue;
        }

        if (f == NULL) {
            f = live_follow(l);

            if (f == NULL) {
                log_minutely(LOG_ERROR, "cannot read the journal for %u live "
                             "streams", l->nsubs);
                live_wait(l, UINT64_MAX);
            }

            continue;
        }

        rc = live_read(l, f);

        if (rc == LIVE_FEED_LOST || rc == LIVE_FEED_ERROR) {
            /* who reads along is told by his cursor */
            log_minutely(LOG_ERROR, "live streams have lost their place in the "
                         "journal behind %llu",
                         (unsigned long long) live_feed_cursor(f));
            live_feed_free(f);
            f = NULL;
            live_wait(l, UINT64_MAX);
            continue;
        }

        now = sb_mono_us();

        if (now >= ticked + LIVE_TICK_US) {
            ticked = now;
            live_tick(l, now);
        }

        if (rc == LIVE_FEED_END) {
            live_wait(l, live_feed_cursor(f));
        }
    }

    live_ring_clear(l, l->cursor);
    pthread_mutex_unlock(&l->lock);
    live_feed_free(f);

    return NULL;
}


bool
live_start(live_t *l)
{
    l->started = pthread_create(&l->thread, NULL, live_thread, l) == 0;

    return l->started;
}


void
live_wake(live_t *l)
{
    if (l == NULL || !__atomic_load_n(&l->asleep, __ATOMIC_SEQ_CST)) {
        return;
    }

    pthread_mutex_lock(&l->lock);
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->lock);
}


void
live_stop(live_t *l)
{
    if (l == NULL || !l->started) {
        return;
    }

    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->lock);

    pthread_join(l->thread, NULL);
    l->started = false;
}


void
live_free(live_t *l)
{
    if (l == NULL) {
        return;
    }

    live_stop(l);
    free(l->shares);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->cond);
    free(l);
}
