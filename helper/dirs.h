/*
 * Directories, locks, the listening socket, and becoming another user.
 *
 * All is opened while we are still root; afterwards journal and history are
 * reached through their descriptors only, so that DATA itself may be closed to
 * our user (mode 0700, root's).
 */

#ifndef DIRS_H_INCLUDED
#define DIRS_H_INCLUDED

#include "options.h"

#include <stddef.h>

typedef struct {
    int    journal;             /* directories */
    int    history;
    int    keys;
    int    index;
    int    journal_lock;
    int    history_lock;
    int    listen;
    char   history_base[4096];  /* path for the store */
    char   index_base[4096];    /* path for the index */
    bool   plain;               /* ... both below /proc/self/fd */
    char   socket[108];
} dirs_t;

/* Makes and locks everything, listens, drops privileges.  False with a
 * sentence in `why`. */
bool dirs_open(dirs_t *d, const options_t *o, char *why, size_t size);
/* Removes the socket and closes all. */
void dirs_close(dirs_t *d);

#endif /* DIRS_H_INCLUDED */
