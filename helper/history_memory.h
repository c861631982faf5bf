/*
 * Was memory short for SQLite?  It then gives NULL for a column, which reads
 * like a value that is not there: whoever has printed such a value has to say
 * so at the end.
 */

#ifndef HISTORY_MEMORY_H_INCLUDED
#define HISTORY_MEMORY_H_INCLUDED

#include <stdbool.h>

/* Once, before the first use of SQLite. */
void history_memory_watch(void);
/* Has any allocation of SQLite's failed since? */
bool history_memory_short(void);

#endif /* HISTORY_MEMORY_H_INCLUDED */
