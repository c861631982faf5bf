/* A LOCK frame as the data of a live event (docs/console-api.md, "Live"). */

#ifndef LIVE_LOCK_H_INCLUDED
#define LIVE_LOCK_H_INCLUDED

#include "frame.h"
#include "history_filter.h"
#include "canonical.h"

/* Appends the object; `facts` gets type and actor, whose texts are the
 * frame's. */
void live_lock_write(const sb_frame_t *f, sb_out_t *out,
    history_filter_facts_t *facts);

#endif /* LIVE_LOCK_H_INCLUDED */
