/*
 * Files as they stand in sandboxes, read before they are changed: where a worker
 * says, with the credentials of its client.  For the history (sandbox_versions
 * fetch) their content is kept, unless it is known anyway; for If-Match and
 * If-None-Match (SB_CONTENT_CHECK) only their digest is told, and the history is
 * never believed.  One thread, a bounded number of requests of each kind at
 * once; there is no queue, for whoever asks is waited for.
 */

#ifndef BEFORE_H_INCLUDED
#define BEFORE_H_INCLUDED

#include "fetch.h"
#include "frame.h"
#include "reader.h"

#define BEFORE_FETCHES      16      /* at once, unless told otherwise */
#define BEFORE_FETCHES_MAX  256
/* A worker waits 500 ms; what is late must not be read while the file is being
 * written. */
#define BEFORE_MS           400

#define BEFORE_CHECKS       256         /* at once */
#define BEFORE_CHECK_MS     9000        /* a worker waits 10 s */
#define BEFORE_CHECK_MAX    (128u * 1024 * 1024)    /* of a file */

typedef struct before_s  before_t;

typedef struct {
    uint64_t     conn;          /* whose it is: numbers of the asker */
    uint64_t     seq;
    uint8_t      op[16];
    uint64_t     n;             /* number of the file in its operation */
    uint64_t     kind;          /* SB_CONTENT_*, what body is */
    unsigned     status;        /* 200: body is the file, or digest its SHA-256;
                                   304: the history tells; 404: there is no such
                                   file; 413: too large for a check; 0: not
                                   known */
    const char  *reason;        /* with 0: static */
    sb_buf_t     body;
    uint8_t      digest[32];    /* of a check */
} before_answer_t;

/* At most `max` at once.  `readers` may be NULL: then the history is not asked.
 * `fetch`, which may be NULL, knows the key that no content may hold.
 * `wake_fd` is an eventfd that is written when answers are ready.  NULL without
 * memory. */
before_t *before_new(unsigned max, readers_t *readers, fetch_t *fetch,
    int wake_fd);
bool before_start(before_t *b);
void before_stop(before_t *b);

/*
 * Takes the FETCH of a file, of its kind (FILE_KIND).  `current`: nothing but the operation's own records
 * waits for being written into history files, so these may be believed.
 * SB_OK: there will be an answer; SB_LIMIT: too many are under way; SB_ERROR:
 * it cannot be asked.
 */
sb_rc_t before_ask(before_t *b, const sb_frame_t *f, uint64_t conn,
    bool current);

/* Takes one answer; false when there is none.  The caller frees body. */
bool before_take(before_t *b, before_answer_t *a);

#endif /* BEFORE_H_INCLUDED */
