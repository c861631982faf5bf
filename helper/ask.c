#include "ask_int.h"

#include "id.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>


const uint8_t  ask_no_op[16];


ask_t *
ask_new(const ask_route_t *routes, void *context, int wake_fd,
    unsigned threads, unsigned questions)
{
    ask_t               *a;
    pthread_condattr_t   attr;

    a = calloc(1, sizeof(ask_t));
    if (a == NULL) {
        return NULL;
    }

    a->routes = routes;
    a->context = context;
    a->wake_fd = wake_fd;
    a->limit = questions;
    a->stream_limit = ASK_STREAMS;
    a->nthreads = threads < ASK_THREADS_MAX ? threads : ASK_THREADS_MAX;
    a->ready_last = &a->ready;
    a->pieces_last = &a->pieces;

    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->work, &attr);
    pthread_condattr_destroy(&attr);

    return a;
}


void
ask_streams(ask_t *a, const ask_handler_pt *handlers, unsigned streams)
{
    a->stream_handlers = handlers;
    a->stream_limit = streams;
}


void
ask_record(ask_t *a, const ask_record_t *record)
{
    a->record = *record;
}


void
ask_ready(ask_t *a, ask_int_t *i)
{
    i->state = ASK_READY;
    i->again = false;
    i->queue = NULL;
    *a->ready_last = i;
    a->ready_last = &i->queue;
    pthread_cond_signal(&a->work);
}


void
ask_stir(ask_t *a, ask_int_t *i)
{
    if (i->state == ASK_PARKED) {
        ask_ready(a, i);

    } else {
        i->again = true;
    }
}


static void
ask_destroy(ask_int_t *i)
{
    if (i->q.release) {
        i->q.release(i->q.state);
    }

    sb_buf_free(&i->body);
    sb_buf_free(&i->q.result);
    free(i);
}


ask_int_t *
ask_find(ask_t *a, uint64_t conn, uint64_t seq)
{
    uint64_t  key[2] = { conn, seq };

    return table_find(&a->table, key, sizeof(key));
}


void
ask_push(ask_t *a, ask_piece_t *piece)
{
    bool      first;
    uint64_t  one;

    first = a->pieces == NULL;

    piece->next = NULL;
    *a->pieces_last = piece;
    a->pieces_last = &piece->next;

    if (first) {
        one = 1;

        if (write(a->wake_fd, &one, sizeof(one)) == -1) {
            /* the counter is full: the reader is awake anyway */
        }
    }
}


ask_piece_t *
ask_take(ask_t *a)
{
    ask_piece_t  *p;

    pthread_mutex_lock(&a->lock);
    p = a->pieces;
    a->pieces = NULL;
    a->pieces_last = &a->pieces;
    pthread_mutex_unlock(&a->lock);

    return p;
}


void
ask_credit(ask_t *a, uint64_t conn, const sb_frame_t *f)
{
    uint64_t    n;
    ask_int_t  *i;

    n = sb_field_u64(f, SB_T_COUNT, 0);

    pthread_mutex_lock(&a->lock);

    i = ask_find(a, conn, f->seq);

    if (i) {
        /* more than a window is never on its way */
        n = n < SB_ASK_WINDOW - i->window ? n : SB_ASK_WINDOW - i->window;
        i->window += (size_t) n;

        if (!i->deaf || i->hungry) {
            i->hungry = false;
            ask_stir(a, i);
        }
    }

    pthread_mutex_unlock(&a->lock);
}


void
ask_cancel(ask_t *a, uint64_t conn, const sb_frame_t *f)
{
    ask_forbid(a, conn, f->seq);
}


void
ask_forbid(ask_t *a, uint64_t conn, uint64_t seq)
{
    ask_int_t  *i;

    pthread_mutex_lock(&a->lock);

    i = ask_find(a, conn, seq);

    if (i) {
        i->cancelled = true;
        ask_stir(a, i);
    }

    pthread_mutex_unlock(&a->lock);
}


void
ask_closed(ask_t *a, uint64_t conn)
{
    ask_int_t  *i;

    pthread_mutex_lock(&a->lock);

    for (i = a->all; i; i = i->next) {
        if (i->conn == conn) {
            i->cancelled = true;
            ask_stir(a, i);
        }
    }

    pthread_mutex_unlock(&a->lock);
}


/* The handler has been here for the last time. */
static void
ask_finish(ask_int_t *i, ask_rc_e rc)
{
    ask_t  *a;

    a = i->pool;

    if (rc == ASK_FAILED && !i->head && ask_room(&i->q) >= 256) {
        rc = ask_refuse(&i->q, 500, "GATEWAY_INTERNAL", "The helper could not "
                        "answer this; its log may have more.");
    }

    if (rc == ASK_DONE && !i->head && i->status == 0) {
        ask_head(&i->q, 204, "application/json");
    }

    if (!i->ended && rc == ASK_DONE) {
        i->ended = ask_send(i, "", 0, true, false);
    }

    if (!i->ended) {
        (void) ask_send(i, "", 0, false, true);
    }

    if (a->record.end) {
        a->record.end(a->record.data, &i->q, i->status,
                      i->ended && !ask_over(&i->q));
    }

    pthread_mutex_lock(&a->lock);

    if (i->prev) {
        i->prev->next = i->next;
    } else {
        a->all = i->next;
    }

    if (i->next) {
        i->next->prev = i->prev;
    }

    table_remove(&a->table, &i->node);

    if (i->stream) {
        a->streams--;

    } else {
        a->open--;
    }

    a->running--;

    pthread_mutex_unlock(&a->lock);

    ask_destroy(i);
}


/* One call of the handler. */
static void
ask_run(ask_int_t *i)
{
    ask_t     *a;
    ask_rc_e   rc;

    a = i->pool;
    i->later_us = 0;

    rc = ask_over(&i->q) ? ASK_FAILED
         : i->whole ? ask_pump(i)
         : i->handler(&i->q);

    if (rc != ASK_AGAIN) {
        ask_finish(i, rc);
        return;
    }

    pthread_mutex_lock(&a->lock);

    a->running--;
    i->wake_us = i->later_us ? sb_mono_us() + i->later_us : 0;

    if (i->again) {
        ask_ready(a, i);

    } else {
        i->state = ASK_PARKED;

        if (i->wake_us) {
            if (a->next_us == 0 || i->wake_us < a->next_us) {
                a->next_us = i->wake_us;
            }

            /* one that waits without a time, or for a later one, is told */
            pthread_cond_signal(&a->work);
        }
    }

    pthread_mutex_unlock(&a->lock);
}


/* Those whose time has come become ready; the next time, 0: none.  With the
 * lock held. */
static uint64_t
ask_times(ask_t *a)
{
    uint64_t    now, next;
    ask_int_t  *i;

    if (a->next_us == 0) {
        return 0;
    }

    now = sb_mono_us();

    if (now < a->next_us) {
        return a->next_us;
    }

    next = 0;

    for (i = a->all; i; i = i->next) {

        if (i->state != ASK_PARKED || i->wake_us == 0) {
            continue;
        }

        if (i->wake_us <= now) {
            ask_ready(a, i);

        } else if (next == 0 || i->wake_us < next) {
            next = i->wake_us;
        }
    }

    a->next_us = next;

    return next;
}


static void *
ask_thread(void *data)
{
    ask_t            *a = data;
    uint64_t          next;
    ask_int_t        *i;
    struct timespec   until;

    pthread_mutex_lock(&a->lock);

    while (!a->stop) {

        next = ask_times(a);

        if (a->ready == NULL) {

            if (next) {
                until.tv_sec = (time_t) (next / 1000000u);
                until.tv_nsec = (long) (next % 1000000u) * 1000;
                (void) pthread_cond_timedwait(&a->work, &a->lock, &until);

            } else {
                (void) pthread_cond_wait(&a->work, &a->lock);
            }

            continue;
        }

        i = a->ready;
        a->ready = i->queue;

        if (a->ready == NULL) {
            a->ready_last = &a->ready;
        }

        i->state = ASK_RUNNING;
        i->again = false;
        a->running++;

        pthread_mutex_unlock(&a->lock);
        ask_run(i);
        pthread_mutex_lock(&a->lock);
    }

    pthread_mutex_unlock(&a->lock);

    return NULL;
}


bool
ask_start(ask_t *a)
{
    while (a->started < a->nthreads) {

        if (pthread_create(&a->threads[a->started], NULL, ask_thread, a) != 0) {
            return a->started != 0;
        }

        a->started++;
    }

    return true;
}


void
ask_stop(ask_t *a)
{
    if (a == NULL) {
        return;
    }

    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);

    while (a->started) {
        pthread_join(a->threads[--a->started], NULL);
    }
}


void
ask_free(ask_t *a)
{
    ask_int_t    *i;
    ask_piece_t  *p;

    if (a == NULL) {
        return;
    }

    ask_stop(a);

    while ((i = a->all) != NULL) {
        a->all = i->next;
        table_remove(&a->table, &i->node);
        ask_destroy(i);
    }

    while ((p = a->pieces) != NULL) {
        a->pieces = p->next;
        free(p);
    }

    table_free(&a->table);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->work);
    free(a);
}


void
ask_numbers(ask_t *a, ask_numbers_t *n)
{
    pthread_mutex_lock(&a->lock);
    n->open = a->open;
    n->limit = a->limit;
    n->running = a->running;
    n->threads = a->nthreads;
    n->asked = a->asked;
    n->refused = a->refused;
    n->streams = a->streams;
    n->stream_limit = a->stream_limit;
    pthread_mutex_unlock(&a->lock);
}
