/*
 * Snapshots: copies of a sandbox's files, from which others begin.  They end
 * with the runtime, as sandboxes do.
 */

#ifndef RT_SNAPSHOT_H_INCLUDED
#define RT_SNAPSHOT_H_INCLUDED

#include "box.h"

#define RT_SNAPSHOTS_MAX  64

typedef enum {
    RT_SNAP_CREATING, RT_SNAP_READY, RT_SNAP_FAILED, RT_SNAP_DELETING
} rt_snap_state_e;

/* What is shown of one; a copy, for the caller to free. */
typedef struct {
    char              id[37];
    char              box[37];
    char             *name;             /* or NULL */
    rt_snap_state_e   state;
    const char       *reason;
    char              message[256];
    uint64_t          created_us;
    uint64_t          changed_us;
} rt_snap_t;

/* Once: makes DIR/snapshots, empty. */
bool rt_snaps_init(const char *data, char *why, size_t n);

/* Begins to copy the files of a running sandbox, which is stopped meanwhile;
 * the work is done by a thread.  name may be NULL.  false: there are too many;
 * else *out is the new one (RT_SNAP_CREATING). */
bool rt_snap_create(rt_box_t *b, sb_str_t *name, rt_snap_t *out);

/* false: unknown. */
bool rt_snap_find(const char *id, rt_snap_t *out);
/* All of them, newest first; malloc'ed list of *n. */
rt_snap_t *rt_snaps_list(size_t *n);
void rt_snap_clear(rt_snap_t *s);

typedef enum {
    RT_SNAP_DONE, RT_SNAP_UNKNOWN, RT_SNAP_BUSY, RT_SNAP_USED, RT_SNAP_NOT_READY
} rt_snap_rc_e;

/* RT_SNAP_BUSY while it is being made; RT_SNAP_USED while a sandbox that began
 * with it exists (it then waits in RT_SNAP_DELETING for the next attempt). */
rt_snap_rc_e rt_snap_delete(const char *id);

/* Makes the file tree of a sandbox that is not started yet out of a snapshot,
 * which is in use until rt_snap_unuse().  RT_SNAP_UNKNOWN, RT_SNAP_NOT_READY;
 * RT_SNAP_BUSY with a sentence in why: it could not be copied. */
rt_snap_rc_e rt_snap_restore(const char *id, rt_box_t *b, char *why,
    size_t n);
void rt_snap_unuse(const char *id);

#endif /* RT_SNAPSHOT_H_INCLUDED */
