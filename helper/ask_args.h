/* The query of a question: its parameters, decoded and bounded. */

#ifndef ASK_ARGS_H_INCLUDED
#define ASK_ARGS_H_INCLUDED

#include "ask.h"
#include "history_filter.h"

#define ASK_PARAMS  80          /* of one question */

typedef struct {
    const char  *name;
    const char  *value;
} ask_param_t;

/* Zero-initialise; ask_args_free(). */
typedef struct {
    ask_param_t  p[ASK_PARAMS];
    unsigned     n;
    char        *text;
    char         why[300];      /* one sentence, when something is wrong */
} ask_args_t;

/* False with `why`: it cannot be read in one way, or there are too many.  Only
 * `type` and `status` may occur more than once. */
bool ask_args_read(ask_args_t *a, sb_str_t query);
void ask_args_free(ask_args_t *a);

/* A whole number between two bounds; false with `why`. */
bool ask_args_int(ask_args_t *a, const ask_param_t *p, int64_t *n, int64_t least,
    int64_t most);
/* One of a list of words that ends with NULL: its place; -1 with `why`. */
int ask_args_word(ask_args_t *a, const ask_param_t *p, const char *const *words);
/* Sets a filter; false with `why`: it is none, or its value is not possible. */
bool ask_args_filter(ask_args_t *a, const ask_param_t *p, history_filter_t *f);
/* False: says that there is no such parameter. */
bool ask_args_unknown(ask_args_t *a, const ask_param_t *p);

/* Refuses a question because of `why`; returns what the handler returns. */
ask_rc_e ask_args_refuse(ask_question_t *q, const ask_args_t *a);

#endif /* ASK_ARGS_H_INCLUDED */
