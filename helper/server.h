/*
 * The thread that talks to the workers: reads what all of them sent in one
 * round, appends it to the journal with one write, answers each with one ACK.
 */

#ifndef SERVER_H_INCLUDED
#define SERVER_H_INCLUDED

#include "apply.h"
#include "ask.h"
#include "before.h"
#include "errand.h"
#include "console.h"
#include "fetch.h"
#include "full.h"
#include "inflight.h"
#include "inspector.h"
#include "journal.h"
#include "locks.h"
#include "live.h"
#include "options.h"

#define SERVER_CONNS    1024
#define SERVER_ROUND    8192        /* frames taken in one round */
#define SERVER_IDLE_US  5000000u    /* --exec: leave after that */

typedef struct {
    const options_t  *options;
    int               listen_fd;
    int               signal_fd;
    int               fetch_fd;     /* eventfd */
    int               flush_fd;     /* eventfd, sync full only, else -1 */
    int               ask_fd;       /* eventfd */
    ask_t            *ask;
    console_t        *console;      /* NULL with mode none */
    int               locks_fd;     /* eventfd */
    locks_t          *locks;
    int               full_fd;      /* eventfd */
    full_t           *full;
    int               errand_fd;    /* eventfd */
    errands_t        *errands;      /* NULL with mode none */
    fetch_t          *fetch;        /* or NULL */
    int               before_fd;    /* eventfd */
    before_t         *before;       /* NULL with mode none */
    int               inspect_fd;   /* eventfd */
    inspector_t      *inspector;
    journal_t        *journal;      /* NULL with mode none */
    inflight_t       *inflight;
    apply_t          *apply;        /* NULL with mode none */
    live_t           *live;         /* the same */
    uid_t             uid;          /* our own */
} server_conf_t;

/* Serves until SIGTERM or SIGINT (or, with --exec, until nobody is there any
 * more).  False when it could not even begin. */
bool server_run(const server_conf_t *conf);

#endif /* SERVER_H_INCLUDED */
