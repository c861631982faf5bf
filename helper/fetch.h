/*
 * Asking upstream: one thread, one libcurl handle, at most FETCH_QUEUE
 * requests waiting (nginx has no client of its own for this).
 */

#ifndef FETCH_H_INCLUDED
#define FETCH_H_INCLUDED

#include "sb.h"

#define FETCH_QUEUE      32
#define FETCH_BODY_MAX   (64 * 1024)
#define FETCH_TIMEOUT_S  5

typedef struct fetch_s      fetch_t;
typedef struct fetch_job_s  fetch_job_t;

typedef struct {
    uint64_t  conn;         /* whose it is: numbers of the asker */
    uint64_t  seq;
    unsigned  status;       /* HTTP status; 0: no answer */
    sb_buf_t  body;         /* with status 0: the reason as text */
} fetch_answer_t;

/* `key_file` may be NULL; it is opened now, so that it stays readable after
 * privileges are dropped.  `wake_fd` is an eventfd that is written when answers
 * are ready.  NULL with a sentence in why. */
fetch_t *fetch_new(const char *upstream, const char *key_file, int wake_fd,
    char *why, size_t why_size);
bool fetch_start(fetch_t *f);
void fetch_stop(fetch_t *f);

/* Queues GET {upstream}{target}.  SB_LIMIT when the queue is full, SB_ERROR
 * when the target is none. */
sb_rc_t fetch_ask(fetch_t *f, sb_str_t target, uint64_t conn, uint64_t seq);

/* Takes one answer; false when there is none.  The caller frees body. */
bool fetch_take(fetch_t *f, fetch_answer_t *a);

/* Asks; NULL: not possible now.  The job ends with a fetch_done() that says
 * true, or with fetch_drop(), before fetch_stop(). */
fetch_job_t *fetch_open(fetch_t *f, sb_str_t target);
/* True: there is the answer (the caller frees its body). */
bool fetch_done(fetch_t *f, fetch_job_t *job, fetch_answer_t *a);
void fetch_drop(fetch_t *f, fetch_job_t *job);

/* Asks and waits, at most wait_ms.  SB_OK: answer filled (caller frees body);
 * SB_AGAIN: not in time. */
sb_rc_t fetch_wait(fetch_t *f, sb_str_t target, unsigned wait_ms,
    fetch_answer_t *a);

/* Does a text hold upstream's key, or what has the form of a token?  f may be
 * NULL; any thread. */
bool fetch_secret(fetch_t *f, sb_str_t text);

#endif /* FETCH_H_INCLUDED */
