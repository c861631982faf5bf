/* The command line of sandbox-helper. */

#ifndef OPTIONS_H_INCLUDED
#define OPTIONS_H_INCLUDED

#include "retain.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OPTIONS_PEERS  16

typedef struct {
    const char  *data;          /* --data, required */
    const char  *history;       /* HISTORY_PATH; NULL: DATA/history */
    const char  *socket;        /* NULL: DATA/helper.sock */
    mode_t       socket_mode;
    bool         has_group;
    gid_t        group;         /* of the socket */
    uid_t        peers[OPTIONS_PEERS];
    unsigned     npeers;
    const char  *user;          /* to become, or NULL */
    uid_t        uid;
    gid_t        gid;
    bool         full;          /* --sync full */
    bool         none;          /* --mode none */
    const char  *upstream;
    const char  *api_key_file;
    const char  *tokens;        /* that may be added and revoked, or NULL */
    uint64_t     follow_us;
    uint64_t     lag_us;
    uint64_t     contents;      /* bytes of contents of files */
    unsigned     fetches;       /* of files in sandboxes, at once */
    unsigned     inspections;   /* of archives, at once */
    unsigned     inspect_seconds;
    uint64_t     inspect_memory;
    uint64_t     stop_us;
    bool         exec;
    size_t       locks;             /* operations and leases with keys */
    size_t       leases;
    unsigned     questions;         /* of the console API, open at once */
    unsigned     streams;           /* live ones, besides */
    unsigned     question_threads;
    unsigned     readers;           /* history files kept open for them */
    retain_conf_t  limits;      /* of history files */
    int          ready_fd;      /* -1: none */
    const char  *log;
} options_t;

typedef enum {
    OPTIONS_RUN, OPTIONS_EXIT_OK, OPTIONS_EXIT_BAD
} options_rc_e;

/* Reads the command line; prints help, version or what is wrong itself. */
options_rc_e options_read(options_t *o, int argc, char **argv);

#endif /* OPTIONS_H_INCLUDED */
