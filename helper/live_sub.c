/* One live stream: its question, its place, and how it catches up. */

#include "live_int.h"

#include "ask_args.h"
#include "id.h"
#include "log.h"
#include "number.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>


#define LIVE_SLICE_US  20000u   /* of a thread, for one who catches up */
#define LIVE_RETRY_MS  1000     /* after which a browser connects again */


static void
live_sub_free(live_sub_t *s)
{
    live_event_free(s->event);
    live_search_free(s->search);
    free(s->sandbox);
    free(s->mem);
    free(s);
}


static void
live_sub_release(void *state)
{
    live_t      *l;
    live_sub_t  *s = state;

    l = s->live;

    pthread_mutex_lock(&l->lock);

    live_sub_unfeed(s);

    if (s->waiting) {
        l->nwaiting--;
    }

    if (s->prev) {
        s->prev->next = s->next;
    } else {
        l->subs = s->next;
    }

    if (s->next) {
        s->next->prev = s->prev;
    }

    l->nsearches -= s->search != NULL;
    stats_set(STATS_LIVE_SEARCHES, l->nsearches);
    stats_set(STATS_LIVE_SUBSCRIBERS, --l->nsubs);
    pthread_mutex_unlock(&l->lock);

    live_sub_free(s);
}


/* Reads the question; what is wrong with it goes to `why`. */
static bool
live_sub_read(live_sub_t *s, ask_args_t *a)
{
    int       word;
    int64_t   n;
    sb_rc_t   rc;
    unsigned  i;

    static const char *const  words[] = { "0", "1", NULL };

    history_filter_init(&s->filter);
    s->output = true;

    if (!ask_args_read(a, s->q->query)) {
        return false;
    }

    for (i = 0; i < a->n; i++) {

        if (strcmp(a->p[i].name, "after") == 0) {

            if (!ask_args_int(a, &a->p[i], &n, 0, INT64_MAX)) {
                return false;
            }

            s->cursor = (uint64_t) n;
            s->turn = 1;

        } else if (strcmp(a->p[i].name, "output") == 0) {

            word = ask_args_word(a, &a->p[i], words);

            if (word == -1) {
                return false;
            }

            s->output = word == 1;

        } else if (strcmp(a->p[i].name, "padding") == 0) {

            if (!ask_args_int(a, &a->p[i], &n, 0, LIVE_PADDING)) {
                return false;
            }

            s->padding = (int) n;

        } else if (!ask_args_filter(a, &a->p[i], &s->filter)) {
            return false;
        }
    }

    if (s->filter.q) {
        s->search = live_search_new(s->filter.q, &rc);

        if (s->search == NULL) {
            (void) snprintf(a->why, sizeof(a->why), rc == SB_LIMIT
                            ? "q has more than %d words and phrases, or a"
                              " phrase of more than %d words."
                            : "q has no word that can be searched for.",
                            SB_SEARCH_TERMS, SB_SEARCH_PHRASE);
            return false;
        }
    }

    /* what a browser saw last is younger than the address it began with */

    if (s->q->event_id.len == 0) {
        return true;
    }

    if (sb_number(s->q->event_id, 10, INT64_MAX, &s->cursor)) {
        s->turn = 1;
        return true;
    }

    (void) snprintf(a->why, sizeof(a->why), "Last-Event-ID is no cursor of "
                    "an event.");
    return false;
}


/* A new stream; NULL with *rc: refused. */
static live_sub_t *
live_sub_new(live_t *l, ask_question_t *q, const sb_str_t *sandbox,
    ask_rc_e *rc)
{
    ask_args_t   args;
    live_sub_t  *s;

    *rc = ASK_FAILED;
    memset(&args, 0, sizeof(args));
    s = calloc(1, sizeof(live_sub_t));

    if (s == NULL) {
        return NULL;
    }

    s->live = l;
    s->q = q;

    if (!live_sub_read(s, &args)) {
        *rc = ask_args_refuse(q, &args);
        ask_args_free(&args);
        live_sub_free(s);
        return NULL;
    }

    s->mem = args.text;

    if (sandbox) {
        s->sandbox = malloc(sandbox->len + 1);

        if (s->sandbox == NULL) {
            live_sub_free(s);
            return NULL;
        }

        memcpy(s->sandbox, sandbox->data, sandbox->len);
        s->sandbox[sandbox->len] = '\0';
    }

    return s;
}


/* What is missing cannot be had any more: from now on. */
static void
live_sub_reset(live_sub_t *s, const char *reason)
{
    live_t  *l;

    l = s->live;

    live_sub_unfeed(s);
    live_event_free(s->event);
    s->sent = 0;
    s->event = live_event_text(l->cursor, "retry: %d\nevent: reset\nid: %llu\n"
                               "data: {\"cursor\":%llu,\"after\":%llu,"
                               "\"oldest\":%llu,\"reason\":\"%s\"}\n\n",
                               LIVE_RETRY_MS,
                               (unsigned long long) l->cursor,
                               (unsigned long long) l->cursor,
                               (unsigned long long) s->cursor,
                               (unsigned long long) journal_oldest(l->journal),
                               reason);
    s->cursor = l->cursor;
    s->turn = l->last;
    s->state = LIVE_ALONG;
    stats_add(STATS_LIVE_RESETS, 1);
}


static void
live_sub_begin(live_sub_t *s)
{
    live_t  *l;

    l = s->live;

    if (s->turn == 0) {
        s->cursor = l->cursor;
        s->turn = l->last;
        s->state = s->search ? LIVE_BEHIND : LIVE_ALONG;
        s->event = live_event_text(s->cursor, "%s%*sretry: %d\nid: %llu\n\n",
                                   s->padding ? ":" : "",
                                   s->padding, s->padding ? "\n" : "",
                                   LIVE_RETRY_MS,
                                   (unsigned long long) s->cursor);
        return;
    }

    if (s->cursor > l->cursor) {
        live_sub_reset(s, "unknown");
        return;
    }

    if (s->cursor + 1 < journal_oldest(l->journal)) {
        live_sub_reset(s, "too_old");
        return;
    }

    s->event = live_event_text(s->cursor, "%s%*sretry: %d\n\n",
                               s->padding ? ":" : "",
                               s->padding, s->padding ? "\n" : "",
                               LIVE_RETRY_MS);
    s->state = LIVE_BEHIND;
}


/* A part of the journal for one who is behind; the lock is not held. */
static live_feed_rc_e
live_sub_read_on(live_sub_t *s)
{
    uint64_t         until;
    live_event_t    *e;
    live_feed_rc_e   rc;

    until = sb_mono_us() + LIVE_SLICE_US;

    do {
        rc = live_feed_next(s->feed, &e);

        if (rc > LIVE_FEED_NONE) {
            break;
        }

        if (e && live_sub_wants(s, e) && e->cursor > s->cursor) {
            s->event = e;
            break;
        }

        live_event_free(e);

        if (live_feed_cursor(s->feed) > s->cursor) {
            s->cursor = live_feed_cursor(s->feed);
        }

    } while (sb_mono_us() < until);

    s->primed = s->primed || rc == LIVE_FEED_END
                || live_feed_caught_up(s->feed);

    return rc;
}


/* True: go on; false: wait to be called. */
static bool
live_sub_behind(live_sub_t *s)
{
    live_t          *l;
    live_feed_rc_e   rc;

    l = s->live;

    if (!live_sub_send(s, sb_mono_us())) {
        return false;
    }

    /* a search reads what is open first: words of it may be there already */

    if (s->cursor >= l->from && (s->search == NULL || s->primed)) {
        live_sub_unfeed(s);
        live_sub_turn(s);
        return true;
    }

    if (s->feed == NULL) {

        if (l->nfeeds >= LIVE_FEEDS) {
            l->nwaiting += !s->waiting;
            s->waiting = true;
            return false;
        }

        l->nfeeds++;
        pthread_mutex_unlock(&l->lock);
        s->feed = live_feed_new(l->journal, l->readers, s->cursor);

        if (s->feed && s->search && !s->primed) {
            live_feed_all(s->feed);
        }

        pthread_mutex_lock(&l->lock);

        if (s->feed == NULL) {
            l->nfeeds--;
            ask_later(s->q, 1000000);
            return false;
        }
    }

    pthread_mutex_unlock(&l->lock);
    rc = live_sub_read_on(s);
    pthread_mutex_lock(&l->lock);

    if (rc == LIVE_FEED_LOST || rc == LIVE_FEED_ERROR) {
        live_sub_reset(s, "too_old");
        return true;
    }

    if (s->event == NULL && rc != LIVE_FEED_END
        && (s->cursor < l->from || (s->search && !s->primed)))
    {
        /* others have their turn in between */
        ask_wake(s->q);
        return false;
    }

    return true;
}


ask_rc_e
live_serve(live_t *l, ask_question_t *q, const sb_str_t *sandbox)
{
    bool         go;
    ask_rc_e     rc;
    live_sub_t  *s;

    s = q->state;

    if (s == NULL) {
        s = live_sub_new(l, q, sandbox, &rc);

        if (s == NULL) {
            return rc;
        }

        pthread_mutex_lock(&l->lock);

        if (s->search && l->nsearches >= LIVE_SEARCHES) {
            pthread_mutex_unlock(&l->lock);
            live_sub_free(s);
            return ask_refuse(q, 503, "GATEWAY_OVERLOADED", "Too many live "
                              "streams are searched (q); try again later, or "
                              "leave q out.");
        }

        ask_head(q, 200, "text/event-stream");
        q->state = s;
        q->release = live_sub_release;
        l->nsearches += s->search != NULL;
        stats_set(STATS_LIVE_SEARCHES, l->nsearches);
        s->running = true;
        s->sent_us = sb_mono_us();
        s->next = l->subs;

        if (s->next) {
            s->next->prev = s;
        }

        l->subs = s;
        stats_set(STATS_LIVE_SUBSCRIBERS, ++l->nsubs);

        if (!l->ready) {
            pthread_cond_signal(&l->cond);
        }

    } else {
        pthread_mutex_lock(&l->lock);
        s->running = true;
    }

    do {
        go = false;

        if (s->state == LIVE_NEW && l->ready) {
            live_sub_begin(s);
        }

        if (s->state == LIVE_BEHIND) {
            go = live_sub_behind(s);

        } else if (s->state == LIVE_ALONG) {
            live_sub_along(s, sb_mono_us());
            go = s->state != LIVE_ALONG;
        }

    } while (go && !ask_over(q));

    s->running = false;
    pthread_mutex_unlock(&l->lock);

    return ASK_AGAIN;
}
