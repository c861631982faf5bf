/* Questions about one operation: where is it? */

#ifndef ASK_FIND_H_INCLUDED
#define ASK_FIND_H_INCLUDED

#include "ask_args.h"
#include "ask_listed.h"

typedef struct ask_find_s  ask_find_t;

/* Takes a parameter; false with why in the arguments. */
typedef bool (*ask_find_param_pt)(ask_find_t *s, const ask_param_t *p);

struct ask_find_s {
    ask_args_t          args;
    api_wait_t          wait;
    ask_listed_wait_t   listed;
    char                dir[STORE_DIR_LEN];
    char                id[129];
    bool                found;

    bool                answered;       /* return `rc` */
    ask_rc_e            rc;

    /* of the handler; freed with it */
    void               *own;
    void              (*free_own)(void *own);
};

/*
 * Reads the parameters of a question (`param` NULL: there are none) whose path
 * ends with ids of an operation and, `of_one`, of its sandbox before it, waits
 * until people see their own actions, and finds its file.  NULL without memory.
 */
ask_find_t *ask_op_find(ask_question_t *q, bool of_one, ask_find_param_pt param);

#endif /* ASK_FIND_H_INCLUDED */
