/* One request on its way through the rules: what the files that judge it share,
 * policy.c, policy_holds.c and policy_file.c. */

#ifndef SB_POLICY_WALK_H_INCLUDED
#define SB_POLICY_WALK_H_INCLUDED

#include "policy_int.h"

#define SB_POLICY_PATH_SEGMENTS  256

typedef struct {
    const sb_policy_t          *policy;
    const sb_policy_request_t  *request;
    sb_policy_verdict_t        *verdict;
    sb_policy_command_t        *command;
    uint8_t                     applies[SB_POLICY_RULES_MAX];
    bool                        early;      /* limits alone */
    bool                        pending;    /* this file has to be inspected */
    bool                        unknown;    /* ... and too little is known */

    /* one path */
    sb_at_e                     at;
    bool                        tree;       /* all below it is meant too */
    char                       *mem;
    sb_path_parts_t             parts;
    const char                 *odd;        /* why it cannot be judged */
    sb_str_t                    path;

    /* the time of all of them */
    size_t                      work;       /* since the clock was looked at */
    int64_t                     until;      /* 0: it was not yet */
    bool                        late;
} sb_policy_walk_t;

/* policy_holds.c.  Does a condition about the request as a whole hold? */
sb_rc_t sb_policy_holds(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_condition_t *c, sb_holds_e *holds);
/* What follows from that for the rule: can it apply? */
bool sb_policy_outcome(const sb_policy_rule_t *rule,
    const sb_policy_condition_t *c, sb_holds_e holds);

/* policy_file.c.  What an operation does to its paths. */
sb_at_e sb_policy_at(const sb_op_t *op);
bool sb_policy_tree(const sb_op_t *op);
/* Cuts w->path into segments, or says in w->odd why not. */
sb_rc_t sb_policy_parts(sb_policy_walk_t *w);
/* Do the conditions about a file hold?  w->pending: they wait for what is in an
 * archive; *odd: they would, but the path cannot be judged (w->odd). */
bool sb_policy_file(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_file_t *f, bool *odd);
/* How far the file is to be looked into: what is behind a limit with which a rule
 * denies it for certain is of no use.  `from`: the first rule that asks. */
void sb_policy_most(sb_policy_walk_t *w, sb_policy_file_t *f, size_t from);

#endif /* SB_POLICY_WALK_H_INCLUDED */
