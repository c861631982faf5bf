/*
 * Upstream's own list of sandboxes, kept for a while.  It is asked for page by
 * page by whoever needs it: no thread waits for upstream.
 */

#ifndef ASK_LISTED_H_INCLUDED
#define ASK_LISTED_H_INCLUDED

#include "api.h"

#define ASK_BOXES        20000      /* histories and sandboxes told at most */
#define ASK_LISTED_US    5000000u   /* how long the list counts */
#define ASK_LISTED_MS    1500       /* that upstream has for a page of it */
#define ASK_LISTED_ALL_MS  3000     /* ... after which no more are asked for */
#define ASK_LISTED_PAGES 100        /* of it at most */
#define ASK_LISTED_OLD_MS  300      /* that a question waits for a younger list
                                       when there is one */

/* One sandbox; texts may be NULL. */
typedef struct {
    char      *id;
    char      *name;
    char      *state;
    char      *image;
    char      *created;
    char      *expires;
    char      *last;                /* activity */
    int64_t    operations;
    int64_t    failures;
    int64_t    running;
    int64_t    gaps;
    int64_t    bytes;
    bool       history;             /* has a file; the numbers count then */
    bool       readable;
    bool       upstream;            /* is in upstream's list */
    bool       deleted;             /* was, through here */
} ask_box_t;

/* A copy of a text; NULL when it is empty, or without memory. */
char *ask_box_text(sb_str_t text);
/* Frees the texts. */
void ask_box_clear(ask_box_t *box);

typedef enum {
    ASK_LISTED_NOT, ASK_LISTED_OK, ASK_LISTED_PART, ASK_LISTED_FAILED
} ask_listed_e;

typedef struct ask_listed_s  ask_listed_t;

/* How long a question still waits; zero-initialise. */
typedef struct {
    uint64_t  until_us;
} ask_listed_wait_t;

ask_listed_t *ask_listed_new(void);
/* Before fetch_stop(). */
void ask_listed_free(ask_listed_t *l);

/* Asks upstream unless that was done a while ago.  True: go on with what is
 * known; false: return ASK_AGAIN. */
bool ask_listed(ask_listed_t *l, fetch_t *fetch, ask_question_t *q,
    ask_listed_wait_t *w);

typedef struct {
    ask_box_t     *boxes;           /* by id */
    size_t         n;
    ask_listed_e   how;             /* it was asked for last */
    uint64_t       asked_us;        /* when this list was */
} ask_listed_view_t;

/* What is known; it stays until it is released. */
const ask_listed_view_t *ask_listed_hold(ask_listed_t *l);
void ask_listed_release(ask_listed_t *l);
/* NULL: not listed. */
const ask_box_t *ask_listed_find(const ask_listed_view_t *view, const char *id);

#endif /* ASK_LISTED_H_INCLUDED */
