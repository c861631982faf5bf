/* Bash sessions: shared by execd_session.c and execd_session_pump.c. */

#ifndef RT_EXECD_SESSION_H_INCLUDED
#define RT_EXECD_SESSION_H_INCLUDED

#include <pthread.h>
#include <sys/types.h>

#include "execd.h"

typedef struct rt_session_s  rt_session_t;

/* A bash session is an environment and a directory; each run is a bash of its
 * own that begins with both and writes both down at its end (descriptor 198:
 * directory, then the variables, each with a NUL behind). */

struct rt_session_s {
    rt_session_t  *next;
    char           id[37];
    char          *cwd;
    char         **env;         /* NULL: ours */
    pid_t          pid;         /* of the run under way, 0: none */
    bool           deleted;
    unsigned       refs;
};

typedef struct {
    rt_session_t  *session;
    rt_events_t   *events;
    pid_t          pid;
    int            pidfd;
    int            out;
    int            state;
    int64_t        timeout_ms;
    uint64_t       start_ms;
    sb_buf_t       line;
} rt_session_run_t;

/* Guards the table, the sessions and their references. */
extern pthread_mutex_t  rt_sessions_lock;

/* Under the lock. */
void rt_session_unref(rt_session_t *s);
/* The thread of one run (an rt_session_run_t, which it frees). */
void *rt_session_pump(void *data);

#endif /* RT_EXECD_SESSION_H_INCLUDED */
