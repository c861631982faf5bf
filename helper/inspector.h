/*
 * Archives that workers ask about: for each a process of its own is started
 * (sandbox-inspect, beside our own program), that may do nothing but read it, for
 * a while and with bounded memory.  One thread; some at once, others wait, those
 * on top are not looked into.  Whatever goes wrong is an answer too: nobody knows
 * what is in it.
 */

#ifndef INSPECTOR_H_INCLUDED
#define INSPECTOR_H_INCLUDED

#include "inspect.h"

#define INSPECTOR_MAX      2            /* at once, unless told otherwise */
#define INSPECTOR_LIMIT    64
#define INSPECTOR_SECONDS  20           /* for each */
#define INSPECTOR_MEMORY   ((uint64_t) 512 << 20)
#define INSPECTOR_WAITING  256          /* besides */

typedef struct inspector_s  inspector_t;

typedef struct {
    uint64_t      conn;         /* whose it is */
    uint64_t      seq;
    const char   *reason;       /* static; NULL: `in` tells */
    sb_inspect_t  in;
} inspector_answer_t;

/* `seconds` of processor time, and three times as long by the clock.  `wake_fd`
 * is an eventfd that is written when answers are ready.  NULL without memory. */
inspector_t *inspector_new(unsigned max, unsigned seconds, uint64_t memory,
    int wake_fd);
bool inspector_start(inspector_t *i);
/* Ends those that run. */
void inspector_stop(inspector_t *i);

/*
 * Takes an INSPECT, `len` bytes at `frame`, and (always) the descriptor of the
 * file.  NULL: there will be an answer; else why there will be none, a static
 * sentence.
 */
const char *inspector_ask(inspector_t *i, const void *frame, size_t len, int fd,
    uint64_t conn, uint64_t seq);
/* Nobody waits for what that connection has asked. */
void inspector_cancel(inspector_t *i, uint64_t conn);

/* Takes one answer; false when there is none. */
bool inspector_take(inspector_t *i, inspector_answer_t *a);

#endif /* INSPECTOR_H_INCLUDED */
