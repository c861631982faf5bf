/* The table of commands: shared by execd_command.c and execd_command_info.c. */

#ifndef RT_EXECD_COMMAND_H_INCLUDED
#define RT_EXECD_COMMAND_H_INCLUDED

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include "execd.h"

typedef struct rt_command_s  rt_command_t;

struct rt_command_s {
    rt_command_t     *next;
    char              id[33];
    char             *content;
    bool              background;
    bool              running;
    int               exit_code;
    char              error[64];
    pid_t             pid;
    int               pidfd;
    int               out, err;     /* read ends; err -1 when merged */
    int               log;          /* output of a background command */
    struct timespec   started, finished;
    uint64_t          start_ms;
    uint64_t          timeout_ms;
    rt_events_t      *events;       /* NULL: background */
    unsigned          refs;         /* table, pump */
};

/* Guards the table and all that its commands show; cond: one has ended. */
extern pthread_mutex_t  rt_commands_lock;
extern pthread_cond_t   rt_commands_cond;

/* Both under the lock. */
rt_command_t *rt_command_find(const char *id);
void rt_command_unref(rt_command_t *c);

#endif /* RT_EXECD_COMMAND_H_INCLUDED */
