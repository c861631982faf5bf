/*
 * Sandboxes whose strict operations are to be refused because a limit of their
 * history is reached (fail_operation); every worker is told of all of them.
 * Any thread.
 */

#ifndef FULL_H_INCLUDED
#define FULL_H_INCLUDED

#include "frame.h"

#define FULL_MAX  16384     /* told one by one; while there are more, all are
                               refused */

typedef struct full_s  full_t;

/* `fd` is an eventfd that is written when something changed. */
full_t *full_new(int fd);
void full_free(full_t *f);

/* `dir` names it (NULL: all sandboxes); `limit` is the directive reached.  Told
 * once when it is full, and once when it is not any more. */
void full_set(full_t *f, const char *dir, const char *sandbox, bool full,
    const char *limit);

/* The FULL frame that tells of all of them; free().  NULL without memory, and
 * (*n = 0) when there is none and `always` is not set. */
char *full_frame(full_t *f, bool always, size_t *n);

#endif /* FULL_H_INCLUDED */
