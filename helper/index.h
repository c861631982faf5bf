/*
 * The index: DATA/index/index.sqlite3, one list of all operations over all
 * sandboxes and the full text of what they were and said.  Filled from the
 * history files behind them, by a thread of its own; whatever is in it can be
 * made again from them, so it may be deleted at any time (docs/history.md,
 * "Index").
 *
 * The order of the list is that of the journal: the cursor of a record's
 * beginning.  What others wrote into a file has no cursor: it stands before all
 * of ours, by time, under a negative number that stays the same until the index
 * is made anew.
 */

#ifndef INDEX_H_INCLUDED
#define INDEX_H_INCLUDED

#include "history_filter.h"
#include "settled.h"
#include "store.h"

#define INDEX_LIMIT        500      /* hits of one answer */
#define INDEX_TEXT         (256 * 1024) /* bytes of output in the full text */
#define INDEX_FACETS       20000    /* records that facets count at most */
#define INDEX_FACET_VALUES 64       /* values told of one facet */
#define INDEX_BUCKETS      500      /* of one histogram */
#define INDEX_MS           2000     /* what a question may take */

typedef struct index_s  index_t;

/*
 * `base` is DATA/index, or a path below /proc/self/fd (`plain`, see
 * store_new()); `history` the base of the store.  The file is opened, made, or
 * made anew when it cannot be used.  NULL without memory.
 */
index_t *index_new(const char *base, const char *history, bool plain);
bool index_start(index_t *ix);
/* Ends the thread: what it has not come to is indexed after the next start. */
void index_stop(index_t *ix);
void index_free(index_t *ix);

/* --- for writers of history files; any thread, never waits ---------------- */

/* That file has news (after the commit). */
void index_touch(index_t *ix, const char *dir);
/* Records were deleted from that file, or the file is gone, after the commit:
 * what the file has no longer leaves the index.  One call for a batch of
 * deletions is enough; a call that a crash kept from happening is made up for
 * after the start. */
void index_forget(index_t *ix, const char *dir);

/* --- questions; any thread, beside the writer ------------------------------ */

typedef enum {
    INDEX_OK = 0,
    INDEX_PARTIAL,      /* took too long: what was found until then, newest
                           (or, ascending, oldest) first as asked */
    INDEX_BAD,          /* the question is at fault: `why` says how (400) */
    INDEX_FAILED        /* cannot be read now: `why` says why (503) */
} index_rc_e;

typedef struct {
    int64_t   cursor;           /* place in the list, for `before`, `after` */
    int64_t   row;              /* history_events.seq in its file */
    char      dir[STORE_DIR_LEN];
    char      id[129];          /* event id */
    int64_t   started_us;
    bool      text_cut;         /* full text holds only the first INDEX_TEXT
                                   bytes of its output */
} index_hit_t;

typedef struct {
    const history_filter_t  *filter;
    const char              *dir;       /* of one sandbox; NULL: all */
    bool                     has_before, has_after;
    int64_t                  before;    /* exclusive, both */
    int64_t                  after;
    unsigned                 limit;     /* 1-INDEX_LIMIT */
    bool                     ascending; /* oldest first */
    unsigned                 ms;        /* may take; 0: INDEX_MS */
    unsigned                 counted;   /* records that facets count; 0:
                                           INDEX_FACETS */
    unsigned                 looks;     /* at the clock, then its time is over;
                                           0: only when it is */
} index_question_t;

typedef struct {
    index_hit_t  *hits;         /* free() */
    size_t        n;
    bool          more;         /* there are more in that direction */
    bool          has_resume;   /* partial: all up to `resume` was looked at,
                                   no hit is behind it; ask again from there */
    int64_t       resume;
    char          why[200];
} index_answer_t;

/* A hit may be gone from its file by the time it is looked up: skip it. */
index_rc_e index_query(index_t *ix, const index_question_t *q,
    index_answer_t *a);
void index_answer_free(index_answer_t *a);

/* Where an operation is, by its whole id: 1 found, 0 not there, -1 cannot be
 * read now. */
int index_find(index_t *ix, const char *id, index_hit_t *hit);

typedef enum {
    INDEX_F_TYPE, INDEX_F_STATUS, INDEX_F_ACTOR, INDEX_F_SANDBOX,
    INDEX_F_SOURCE,
    INDEX_FACET_COUNT
} index_facet_e;

/* "type", "status", "actor", "sandbox", "source" */
extern const char *const  index_facet_names[INDEX_FACET_COUNT];

typedef struct {
    char      *value;           /* actor: "type:id", "type:" without id;
                                   sandbox: the directory */
    uint64_t   n;
} index_count_t;

typedef struct {
    index_count_t  *values;     /* most first */
    size_t          n;
    uint64_t        other;      /* records of values that are not told */
} index_facet_t;

typedef struct {
    index_facet_t  of[INDEX_FACET_COUNT];
    uint64_t       total;       /* records counted */
    uint64_t       failed;      /* of these: failed, timeout */
    bool           exact;       /* these are all; else the newest of them */
    char           why[200];
} index_facets_t;

/* Counts over the records of a question (its before, after, limit and order do
 * not count).  INDEX_PARTIAL comes with exact false. */
index_rc_e index_facets(index_t *ix, const index_question_t *q,
    index_facets_t *f);
void index_facets_free(index_facets_t *f);

typedef struct {
    uint64_t  total;
    uint64_t  failed;               /* of these: failed, timeout */
} index_bucket_t;

typedef struct {
    int64_t         from_us, to_us; /* of the question's filter */
    int64_t         step_us;        /* whole milliseconds */
    unsigned        n;              /* buckets; the last one ends at to_us */
    bool            exact;          /* else the oldest are not in it */
    index_bucket_t  buckets[INDEX_BUCKETS];
    char            why[200];
} index_histogram_t;

/*
 * When the records of a question began (its before, after, limit and order do
 * not count), in at most `n` (1-INDEX_BUCKETS) equal steps of the time between
 * from_us and to_us of its filter, both of which it needs.  INDEX_PARTIAL comes
 * with exact false.
 */
index_rc_e index_histogram(index_t *ix, const index_question_t *q, unsigned n,
    index_histogram_t *h);

/*
 * Is everything in the index that is in the journal up to this cursor?
 * index_hurry() makes the thread do without its pauses until it is;
 * index_wait() does so and waits up to `ms`.  Handlers of questions
 * call the first two and come again (ask_later()).
 */
bool index_reached(index_t *ix, uint64_t cursor);
/* What was missing in it when it was that far: returns the cursor of then. */
uint64_t index_settled(index_t *ix, settled_t *s);
void index_hurry(index_t *ix, uint64_t cursor);
bool index_wait(index_t *ix, uint64_t cursor, unsigned ms);

typedef struct {
    bool      ready;            /* false: being made (anew); see done, files */
    uint64_t  files;            /* history files known */
    uint64_t  done;             /* of these, read to their end once */
    uint64_t  rows;             /* operations in the list */
    uint64_t  bytes;            /* of the index on the disk, with its log */
    uint64_t  cursor;           /* everything up to it is in the index */
    uint64_t  lag_us;           /* age of the oldest news that waits */
    uint64_t  rebuilds;         /* since the start */
    uint64_t  indexed;          /* operations written since the start */
    uint64_t  cut;              /* of these, with more output than INDEX_TEXT */
    uint64_t  partial;          /* questions that took too long */
    uint64_t  refused;          /* whose q could not be searched for */
    uint64_t  inexact;          /* facets, histograms not of all */
} index_numbers_t;

void index_numbers(index_t *ix, index_numbers_t *n);

#endif /* INDEX_H_INCLUDED */
