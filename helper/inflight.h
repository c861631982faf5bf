/*
 * What is open: worker instances with the last frame kept of each, operations
 * that have begun and not ended, and commands that go on without their
 * request.  Built from the journal at start and kept by the thread that
 * appends.  What has to be ended by us comes out as END frames of instance 0,
 * which the caller appends, so that the journal stays the truth.
 */

#ifndef INFLIGHT_H_INCLUDED
#define INFLIGHT_H_INCLUDED

#include "journal.h"

typedef struct inflight_s       inflight_t;
typedef struct inflight_inst_s  inflight_inst_t;

#define INFLIGHT_INSTANCES  4096    /* remembered; beyond, the one
                                       that is idle for longest goes */
#define INFLIGHT_DETACHED   10000   /* followed at once */

#define INFLIGHT_ASK_US      2000000u   /* between two questions about one */
#define INFLIGHT_BACK_US     2000000u   /* a worker may come back within */
#define INFLIGHT_RESTART_US  5000000u   /* ... after our own restart */

/* `follow_us`: how long a detached command may stay open. */
inflight_t *inflight_new(uint64_t follow_us);
void inflight_free(inflight_t *t);

/* Takes note of a record that is in the journal.  During the start scan and
 * afterwards alike; also of our own frames. */
void inflight_note(inflight_t *t, uint64_t instance, const sb_frame_t *f);

/* The scan is over: instances with open operations have until then to come
 * back. */
void inflight_started(inflight_t *t, uint64_t now_us);

/* The instance with an id, made when it is new; NULL without memory.  The
 * pointer stays good while the instance is connected. */
inflight_inst_t *inflight_instance(inflight_t *t, uint64_t id);
uint64_t inflight_last_seq(const inflight_inst_t *i);
/* A connection of the instance came or went. */
void inflight_connected(inflight_t *t, inflight_inst_t *i);
void inflight_closed(inflight_t *t, inflight_inst_t *i, uint64_t now_us);

/* Are there workers with open operations that are not connected? */
bool inflight_away(const inflight_t *t);

/* Is there anything that time alone may end? */
bool inflight_waiting(const inflight_t *t);

/* Appends to `out` the END frames that are due (workers gone, commands known
 * to have ended, followed for too long); their number is returned.  They take
 * effect when inflight_note() gets them back. */
size_t inflight_due(inflight_t *t, uint64_t now_us, sb_buf_t *out);

/* Appends the state frames for the beginning of a segment; their number. */
size_t inflight_state(inflight_t *t, uint64_t now_us, sb_buf_t *out);

/*
 * A question about a detached command that is due: its number, with the target
 * (path on upstream) in `target`; 0: none.  The command is not asked about
 * again for INFLIGHT_ASK_US.
 */
uint64_t inflight_ask(inflight_t *t, uint64_t now_us, sb_buf_t *target);
/* Upstream's answer to a question; status 0: none came. */
void inflight_told(inflight_t *t, uint64_t question, unsigned status,
    sb_str_t body);

/* How many frames of an operation that has not ended are in the journal; 0: it
 * is not open. */
size_t inflight_frames(const inflight_t *t, const uint8_t id[16]);

/* Numbers, for tests and the log. */
size_t inflight_operations(const inflight_t *t);
size_t inflight_instances(const inflight_t *t);
size_t inflight_detached(const inflight_t *t);

#endif /* INFLIGHT_H_INCLUDED */
