/*
 * Questions about a policy ("would this be allowed?") as JSON, and their
 * answers: docs/console-api.md, "Policy".
 */

#ifndef SB_POLICY_ASK_H_INCLUDED
#define SB_POLICY_ASK_H_INCLUDED

#include "json.h"
#include "policy_facts.h"

#define SB_POLICY_ASK_PATHS     1024    /* of one question */
#define SB_POLICY_ASK_METADATA  256
#define SB_POLICY_ASK_NAMES     1024    /* of members of an archive */

/* What is asked; slices live as long as the question. */
typedef struct {
    sb_policy_request_t  request;
    char                 why[256];  /* SB_ERROR: one sentence, nothing
                                       in it needs an escape in JSON */
    sb_jdoc_t           *doc;       /* owned */
    sb_policy_file_t    *files;
    sb_policy_pair_t    *metadata;
    sb_buf_t             argv;
    sb_policy_facts_t    facts;     /* of each file */
    sb_str_t            *names;
} sb_policy_question_t;

/*
 * Reads a question.  SB_ERROR: it is none, `why` says what is wrong with it;
 * SB_NOMEM.  Free with sb_policy_question_free() in every case.
 */
sb_rc_t sb_policy_question(sb_policy_question_t *q, sb_str_t text);
void sb_policy_question_free(sb_policy_question_t *q);

/* What a policy says to it.  SB_NOMEM. */
sb_rc_t sb_policy_question_check(sb_policy_question_t *q,
    const sb_policy_t *policy, sb_policy_verdict_t *verdict);

/* Appends the members of the verdict's JSON object, without its braces. */
sb_rc_t sb_policy_answer(const sb_policy_verdict_t *v, sb_buf_t *out);

#endif /* SB_POLICY_ASK_H_INCLUDED */
