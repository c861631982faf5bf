/* What is taken from JSON answers, as data; for answer.c only. */

#ifndef SB_ANSWER_TABLE_H_INCLUDED
#define SB_ANSWER_TABLE_H_INCLUDED

#include "request.h"

typedef enum {
    SB_A_STR = 0,           /* text, number, true or false -> result */
    SB_A_ID,                /* the sandbox that was made */
    SB_A_NAME, SB_A_OLD_NAME, SB_A_INSTANCE, SB_A_STATE,
    SB_A_COMMAND, SB_A_RUNNING, SB_A_EXIT,
    SB_A_CODE, SB_A_MESSAGE,
    SB_A_EXPIRES,
    SB_A_ITEM,              /* a sandbox begins */
    SB_A_ITEM_ID, SB_A_ITEM_NAME, SB_A_ITEM_OLD_NAME, SB_A_ITEM_INSTANCE,
    SB_A_ITEM_STATE,
    SB_A_COUNT,             /* values at this path */
    SB_A_KEYS,              /* names of the members below */
    SB_A_REPLACED           /* count of one file, named by the member above */
} sb_answer_kind_e;


/* A path: names joined by ".", "[]" for elements of an array; "*" alone: every
 * value just below the top. */
typedef struct {
    const char        *path;
    sb_answer_kind_e   kind;
    const char        *as;      /* member of the result; NULL: none */
} sb_answer_row_t;

/* The rows of an operation's answer, ended by one without a path; NULL when
 * nothing in it is worth reading. */
const sb_answer_row_t *sb_answer_rows(const sb_op_t *op, unsigned status);

#endif /* SB_ANSWER_TABLE_H_INCLUDED */
