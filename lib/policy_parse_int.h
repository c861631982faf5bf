/* What the files that read a policy share: policy_token.c, policy_value.c and
 * policy_parse.c. */

#ifndef SB_POLICY_PARSE_INT_H_INCLUDED
#define SB_POLICY_PARSE_INT_H_INCLUDED

#include "policy_int.h"

typedef enum {
    SB_PT_END = 0,
    SB_PT_WORD,
    SB_PT_OPEN,
    SB_PT_CLOSE,
    SB_PT_SEMICOLON
} sb_policy_token_e;

typedef struct {
    sb_policy_t         *policy;
    sb_policy_error_t   *error;
    const char          *p, *end;
    const char          *token;     /* where the last one begins */
    bool                 quoted;
    sb_buf_t             word;
    size_t               values;    /* of all conditions */
    unsigned             names;     /* archive_path, */
    size_t               patterns;  /* ... and bytes of their patterns */
} sb_policy_parser_t;

/* policy_token.c.  Line and column of a place in the text, from 1. */
void sb_policy_where(sb_policy_parser_t *s, const char *at, unsigned *line,
    unsigned *column);
/* Says what is wrong there; always SB_ERROR. */
sb_rc_t sb_policy_fail(sb_policy_parser_t *s, const char *at, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* The next token; what a word says is in s->word. */
sb_rc_t sb_policy_next(sb_policy_parser_t *s, sb_policy_token_e *token);
/* Is the last one this bare word? */
bool sb_policy_is(const sb_policy_parser_t *s, const char *word);

/* policy_value.c.  A NUL-terminated copy. */
sb_rc_t sb_policy_copy(char **to, const char *from, size_t len);
/* Is it a condition with one limit; of bytes? */
bool sb_policy_limited(sb_policy_cond_e kind, bool *size);
/* The values of a condition, with the ";" behind them. */
sb_rc_t sb_policy_values(sb_policy_parser_t *s, const sb_policy_rule_t *rule,
    sb_policy_condition_t *c);

#endif /* SB_POLICY_PARSE_INT_H_INCLUDED */
