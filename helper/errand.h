/*
 * What `sandbox-history` asks the helper to write for it, into files that the
 * helper holds (docs/frames.md, "Errands"): the thread that writes does it
 * between two batches.
 */

#ifndef ERRAND_H_INCLUDED
#define ERRAND_H_INCLUDED

#include "frame.h"
#include "retain.h"

#define ERRAND_MAX  32          /* that wait */

typedef struct errand_s   errand_t;
typedef struct errands_s  errands_t;

/* One that is done: an answer to question `seq` of connection `conn`. */
struct errand_s {
    errand_t  *next;
    uint64_t   conn;
    uint64_t   seq;
    bool       ok;
    sb_buf_t   out;         /* the value of "data", or TYPE "\n" MESSAGE */
    size_t     len;
    char       body[];
};

/* `fd` is an eventfd that is written when one is done. */
errands_t *errands_new(int fd);
void errands_free(errands_t *e);

/* The thread with the connections: takes one on (false: too many wait, or no
 * memory), and those that are done; errand_free() each. */
bool errands_put(errands_t *e, uint64_t conn, uint64_t seq, sb_str_t body);
errand_t *errands_take(errands_t *e);
void errand_free(errand_t *e);

/* The thread that writes: does what there is. */
void errands_run(errands_t *e, store_t *store, retain_t *retain);

#endif /* ERRAND_H_INCLUDED */
