/* The thread that flushes the journal (design 2, sandbox_history_sync). */

#ifndef FLUSH_H_INCLUDED
#define FLUSH_H_INCLUDED

#include "journal.h"

#define FLUSH_MS  100

typedef struct flush_s  flush_t;

/* normal (wake_fd -1): flushes every 100 ms what was written.  full: flushes
 * when asked, and writes to the eventfd when it is done. */
flush_t *flush_start(journal_t *j, int wake_fd);
void flush_stop(flush_t *f);

/* full: asks for a flush; one at a time. */
void flush_ask(flush_t *f);
/* full: is the flush that was asked for done?  Fills its errno value. */
bool flush_done(flush_t *f, int *rc);

#endif /* FLUSH_H_INCLUDED */
