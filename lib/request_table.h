/* The members of request bodies and queries as data; shared by request*.c. */

#ifndef SB_REQUEST_TABLE_H_INCLUDED
#define SB_REQUEST_TABLE_H_INCLUDED

#include "request.h"

typedef enum {
    SB_M_KEEP = 0,      /* any value, recorded as it is */
    SB_M_COMMAND,       /* text: the command or code */
    SB_M_CWD,           /* text */
    SB_M_TIMEOUT_MS,
    SB_M_TIMEOUT_S,     /* seconds, kept as such, also told in ms */
    SB_M_BACKGROUND,
    SB_M_LANGUAGE,      /* of a code context */
    SB_M_IMAGE,         /* text: the image of a sandbox */
    SB_M_METADATA,      /* kept; holds the names of a new sandbox */
    SB_M_NAMES,         /* object: its sorted keys only */
    SB_M_LIST,          /* array of objects or texts: their names only */
    SB_M_NAMED,         /* array of objects: their names only */
    SB_M_SIZE,          /* text or any value: its size only */
    SB_M_SECRET,        /* never recorded */
    SB_M_PATH,          /* text: a file */
    SB_M_PATHS,         /* array of texts: files */
    SB_M_OLD_PATH,      /* text: where a file comes from */
    SB_M_MODE,          /* octal digits as decimal */
    SB_M_OBJECT,        /* known members inside */
    SB_M_FLAT,          /* the same, put into the object around it */
    SB_M_ARRAY,         /* array of such objects */
    SB_M_MAP            /* object: keys are paths, values such objects */
} sb_member_kind_e;

typedef struct sb_member_s  sb_member_t;

struct sb_member_s {
    const char         *name;
    sb_member_kind_e    kind;
    const char         *as;     /* name in the record; NULL: the same */
    const sb_member_t  *sub;
};

typedef struct {
    const char         *op;
    const char         *arg;    /* name of the route's argument in the record */
    const char         *query;  /* names worth recording, each ended by a NUL,
                                   an empty one behind them; "*" before one:
                                   all of its values as an array */
    sb_member_kind_e    kind;   /* of the body as a whole */
    const char         *as;     /* ARRAY, MAP, KEEP, PATHS: its name */
    const sb_member_t  *members;
} sb_request_rule_t;

/* The rule of an operation; never NULL (nothing recorded by default). */
const sb_request_rule_t *sb_request_rule(const sb_op_t *op);

#endif /* SB_REQUEST_TABLE_H_INCLUDED */
