/*
 * The journal as events for live streams, from one place on: each record gives
 * at most one event, so that a cursor says exactly what has been seen.
 */

#ifndef LIVE_FEED_H_INCLUDED
#define LIVE_FEED_H_INCLUDED

#include "history_filter.h"
#include "journal.h"
#include "reader.h"

/* Bytes of output in one event; what is over is counted. */
#define LIVE_OUTPUT_MAX   (16 * 1024)
/* Bytes of one event: a command of a megabyte is cut in its summary. */
#define LIVE_EVENT_MAX    (4 * 1024 * 1024)
/* Frames kept of all open operations; over it records are partial. */
#define LIVE_STATE_MAX    (64 * 1024 * 1024)

typedef enum {
    LIVE_OPERATION = 0,     /* started, completed */
    LIVE_OUTPUT,
    LIVE_GAP,
    LIVE_LOCK,
    LIVE_SANDBOX,
    LIVE_TEXT               /* of the stream itself */
} live_kind_e;

/* Shared; counted with live_event_free(). */
typedef struct live_event_s  live_event_t;

struct live_event_s {
    unsigned                 refs;
    uint64_t                 cursor;
    live_kind_e              kind;
    uint8_t                  op[16];    /* zeros: none */
    bool                     fold;      /* a poll: only who asks for its type
                                           sees it, unless it fails */
    sb_str_t                 sandbox;   /* empty: none */
    history_filter_facts_t   facts;     /* of LIVE_OPERATION, LIVE_OUTPUT,
                                           LIVE_LOCK;
                                           paths of LIVE_SANDBOX: their ids */
    char                    *mem;       /* where the texts above stand */
    live_event_t            *base;      /* or there: of LIVE_OUTPUT, what its
                                           operation is; else NULL */
    size_t                   held;      /* bytes in both */
    size_t                   len;       /* of what is sent */
    char                     text[];
};

live_event_t *live_event_text(uint64_t cursor, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
live_event_t *live_event_ref(live_event_t *e);
void live_event_free(live_event_t *e);

typedef struct live_feed_s  live_feed_t;

/*
 * A feed of what comes behind a cursor.  What came before is read as far as
 * records need it; nothing is read yet.  NULL without memory.
 */
live_feed_t *live_feed_new(journal_t *j, readers_t *readers, uint64_t cursor);
void live_feed_free(live_feed_t *f);
/* Events of the segment that the cursor stands in are given from its beginning
 * on; before anything is read. */
void live_feed_all(live_feed_t *f);

typedef enum {
    LIVE_FEED_EVENT = 0,
    LIVE_FEED_NONE,         /* the record gives none */
    LIVE_FEED_END,          /* no more at the moment */
    LIVE_FEED_LOST,         /* records are missing: the journal has gone on */
    LIVE_FEED_ERROR
} live_feed_rc_e;

/* One record further.  The event is the caller's. */
live_feed_rc_e live_feed_next(live_feed_t *f, live_event_t **e);
/* Is everything behind us that comes before the first event? */
bool live_feed_caught_up(const live_feed_t *f);
/* The last record that was looked at. */
uint64_t live_feed_cursor(const live_feed_t *f);

#endif /* LIVE_FEED_H_INCLUDED */
