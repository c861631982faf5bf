/*
 * Was memory short?  SQLite then gives NULL for a column, which reads like a
 * value that is not there, and texts put together may lack a part: whoever has
 * printed such a value has to say so at the end.
 */

#ifndef HISTORY_MEMORY_H_INCLUDED
#define HISTORY_MEMORY_H_INCLUDED

#include "sb.h"

/* Once, before the first use of SQLite. */
void history_memory_watch(void);
/* Remembers that something else of ours could not be had, if it is so. */
void history_memory_check(bool failed);
/* Has any allocation failed since? */
bool history_memory_short(void);

#endif /* HISTORY_MEMORY_H_INCLUDED */
