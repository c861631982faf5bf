/* What live*.c share; nothing for others. */

#ifndef LIVE_INT_H_INCLUDED
#define LIVE_INT_H_INCLUDED

#include "live.h"
#include "live_feed.h"
#include "live_search.h"

#include <pthread.h>

typedef struct live_sub_s  live_sub_t;

typedef enum {
    LIVE_NEW = 0,           /* the thread has not begun to follow yet */
    LIVE_BEHIND,            /* catches up out of the journal */
    LIVE_ALONG              /* reads along */
} live_sub_e;

struct live_sub_s {
    live_t            *live;
    ask_question_t    *q;
    live_sub_t        *prev, *next;

    char              *mem;         /* texts of the filter */
    history_filter_t   filter;
    char              *sandbox;     /* NULL: all */
    bool               output;      /* wants pieces of output */
    int                padding;     /* bytes of a sign of life, for a proxy
                                       that passes whole buffers only */
    live_search_t     *search;      /* NULL: no q */
    bool               primed;      /* it knows the words of what is open */

    /* under the lock; what is below `running` is the handler's while it is
     * set, else whose turn it is under the lock */
    bool               running;
    bool               blocked;     /* its client takes no more */
    bool               waiting;     /* for a feed */
    uint64_t           blocked_us;
    live_sub_e         state;
    uint64_t           cursor;      /* up to it all is sent that matches */
    uint64_t           turn;        /* LIVE_ALONG: number in the ring;
                                       LIVE_NEW: 1 when it has a cursor */
    uint64_t           sent_us;
    live_event_t      *event;       /* being sent ... */
    size_t             sent;        /* ... so far */
    live_feed_t       *feed;
};

struct live_s {
    journal_t         *journal;
    readers_t         *readers;
    pthread_t          thread;
    bool               started;

    pthread_mutex_t    lock;
    pthread_cond_t     cond;
    bool               stop;
    bool               asleep;      /* read without the lock */

    live_sub_t        *subs;
    unsigned           nsubs;
    unsigned           nsearches;   /* those with a q */
    ask_share_t       *shares;      /* room for those who get the same */
    size_t             nshares;
    unsigned           nfeeds;      /* of subscribers */
    unsigned           nwaiting;

    bool               ready;       /* it follows */
    uint64_t           cursor;      /* everything up to it is in the ring, or
                                       was before the ring */
    uint64_t           from;        /* the ring holds what is behind it */
    live_event_t      *ring[LIVE_RING];
    uint64_t           first, last; /* numbers of its events: [first, last) */
    size_t             bytes;
};

/* Does an event pass? */
bool live_sub_wants(live_sub_t *s, const live_event_t *e);
/* Its place in the ring, by its cursor. */
void live_sub_turn(live_sub_t *s);
/* Sends the event at hand; false: its client takes no more now. */
bool live_sub_send(live_sub_t *s, uint64_t now_us);
/* Gives its feed up, for others. */
void live_sub_unfeed(live_sub_t *s);
/* Sends what the ring has for it, as long as its client takes it; with the
 * lock held. */
void live_sub_along(live_sub_t *s, uint64_t now_us);

#endif /* LIVE_INT_H_INCLUDED */
