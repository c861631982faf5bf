/* What inflight*.c share. */

#ifndef INFLIGHT_INT_H_INCLUDED
#define INFLIGHT_INT_H_INCLUDED

#include "inflight.h"
#include "table.h"

typedef struct inflight_op_s  inflight_op_t;

struct inflight_inst_s {
    table_node_t      node;
    uint64_t          id;
    uint64_t          last_seq;
    unsigned          connections;
    bool              restarted;    /* not seen since our own start */
    uint64_t          gone_us;      /* when the last connection closed */
    inflight_op_t    *ops;
    inflight_inst_t  *prev, *next;  /* all instances, least recently used
                                       first */
};

struct inflight_op_s {
    table_node_t      node;
    uint8_t           id[16];
    inflight_inst_t  *inst;         /* NULL: detached */
    inflight_op_t    *prev, *next;  /* of the instance, or detached ones */
    size_t            frames;       /* of its own in the journal */
    char             *sandbox;
    char             *command;
    uint64_t          begun_us;
    uint64_t          since_us;     /* detached at */
    bool              interrupts;   /* it is a command.interrupt */
    bool              deletes;      /* it is a sandbox.delete */
    bool              interrupted;
    bool              ended;        /* an end is known and not yet noted */
    bool              has_exit;
    int64_t           exit_code;
    const char       *reason;       /* of an end without an exit code */
    uint64_t          took_us;      /* by execd's clock; 0: not told */
    uint64_t          asked_us;     /* when it was asked about */
    uint64_t          question;     /* number of that question */
};

struct inflight_s {
    table_t           instances;
    inflight_inst_t  *first, *last;
    table_t           ops;
    inflight_op_t    *detached, *detached_last;
    size_t            ndetached;
    size_t            nended;
    size_t            ngone;        /* instances gone with open operations */
    uint64_t          follow_us;
    uint64_t          questions;    /* asked so far */
};

/* The end of a detached command is known. */
void inflight_mark_ended(inflight_t *t, inflight_op_t *op);

#endif /* INFLIGHT_INT_H_INCLUDED */
