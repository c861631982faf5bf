/*
 * The part of the console API that the helper answers (docs/console-api.md):
 * the table of its routes, and what the handlers work with.
 */

#ifndef API_H_INCLUDED
#define API_H_INCLUDED

#include "apply.h"
#include "ask.h"
#include "console.h"
#include "fetch.h"
#include "index.h"
#include "journal.h"
#include "live.h"
#include "locks.h"
#include "options.h"
#include "reader.h"

#define API_WAIT_MS        300      /* that a question waits for what was
                                       acknowledged before it came */
#define API_WAIT_RECORDS   256      /* ... a list only while no more are on
                                       their way ... */
#define API_WAIT_PACE      2000     /* ... and no more come in a second: under
                                       load, whose end is not near, it would be
                                       slow and in vain, and take the machine
                                       from the traffic */
#define API_INDEX_MS       2000     /* ... that the index can be read */
#define API_UPSTREAM_US    5000000u     /* how long upstream's answer counts */
#define API_UPSTREAM_MS    1500         /* that it has for it */

typedef struct {
    const options_t  *options;
    journal_t        *journal;          /* NULL with mode none */
    apply_t          *apply;
    fetch_t          *fetch;            /* or NULL */
    ask_t            *ask;
    locks_t          *locks;
    console_t        *console;          /* NULL with mode none */
    live_t           *live;             /* NULL with mode none */
    readers_t        *readers;          /* NULL with mode none */
    struct ask_boxes_s  *boxes;         /* ask_boxes.h */
    index_t          *index;            /* NULL with mode none */
    const keys_t     *keys;             /* that heads are signed with; or NULL */

    pthread_mutex_t   lock;             /* what upstream said last */
    bool              asking;
    uint64_t          asked_us;         /* 0: never */
    unsigned          status;           /* 0: no answer */
    uint64_t          took_us;
} api_t;

extern const ask_route_t  api_routes[];
/* Of these, those that go on for ever. */
extern const ask_handler_pt  api_streams[];

void api_init(api_t *api, const options_t *o, journal_t *journal,
    apply_t *apply, fetch_t *fetch);

/* How far a question waits until people see their own actions; zero-initialise. */
typedef struct {
    uint64_t  cursor;           /* up to there */
    uint64_t  until_us;
    bool      brief;            /* of a list: not under load
                                   (API_WAIT_RECORDS, API_WAIT_PACE) */
    bool      reached;          /* all of it is in the files */
} api_wait_t;

/*
 * False: return ASK_AGAIN, the handler is called again.  True: go on; what was
 * acknowledged before the question came is in the history files, or API_WAIT_MS
 * are over (w->reached tells).
 */
bool api_wait(ask_question_t *q, api_wait_t *w);
/* The same, until it is in the index too. */
bool api_wait_index(ask_question_t *q, api_wait_t *w);
/* The index cannot be read: true, return ASK_AGAIN, for it may just be made; at
 * most API_INDEX_MS. */
bool api_wait_more(ask_question_t *q, const api_wait_t *w);

/* --- handlers: one family of routes in each ask_NAME.c ---------------------- */

ask_rc_e ask_health(ask_question_t *q);
ask_rc_e ask_metrics(ask_question_t *q);
ask_rc_e ask_operations(ask_question_t *q);
ask_rc_e ask_operation(ask_question_t *q);
ask_rc_e ask_output(ask_question_t *q);
ask_rc_e ask_box_operations(ask_question_t *q);
ask_rc_e ask_box_operation(ask_question_t *q);
ask_rc_e ask_box_output(ask_question_t *q);
ask_rc_e ask_sandboxes(ask_question_t *q);
ask_rc_e ask_overview(ask_question_t *q);
ask_rc_e ask_recording(ask_question_t *q);
ask_rc_e ask_box_recording(ask_question_t *q);
ask_rc_e ask_verify(ask_question_t *q);
/* ask_files.c */
ask_rc_e ask_diff(ask_question_t *q);
ask_rc_e ask_box_diff(ask_question_t *q);
ask_rc_e ask_content(ask_question_t *q);
ask_rc_e ask_box_content(ask_question_t *q);
ask_rc_e ask_versions(ask_question_t *q);
ask_rc_e ask_versions_diff(ask_question_t *q);
ask_rc_e ask_export(ask_question_t *q);
/* ask_locks.c, ask_leases.c */
ask_rc_e ask_locks(ask_question_t *q);
ask_rc_e ask_lock_break(ask_question_t *q);
ask_rc_e ask_lease_new(ask_question_t *q);
ask_rc_e ask_lease_renew(ask_question_t *q);
ask_rc_e ask_lease_end(ask_question_t *q);
/* ask_tokens.c */
ask_rc_e ask_token_add(ask_question_t *q);
ask_rc_e ask_token_revoke(ask_question_t *q);
/* ask_live.c */
ask_rc_e ask_live(ask_question_t *q);
ask_rc_e ask_live_sandbox(ask_question_t *q);

#endif /* API_H_INCLUDED */
