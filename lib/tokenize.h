/*
 * Text into what a search compares: words, and overlapping pairs of characters
 * where a script puts no blanks between words.
 *
 * A word is a run of letters and digits of any script, folded (fold.h), without
 * stemming; longer than SB_TOKEN_MAX bytes it is compared by its beginning.
 * "编译错误" gives the pairs 编译, 译错, 错误, so any two neighbours are found;
 * in a text the last character follows too, at the place of the last pair, so
 * that a single one is found as the beginning of a token.  Escape sequences
 * of terminals are skipped; what is no UTF-8 parts words.
 */

#ifndef SB_TOKENIZE_H_INCLUDED
#define SB_TOKENIZE_H_INCLUDED

#include "sb.h"

#define SB_TOKEN_MAX  64

typedef struct {
    sb_str_t  text;
    size_t    pos;
    bool      query;        /* of a question, not of a text */

    /* the token */
    char      token[SB_TOKEN_MAX + 8];
    size_t    len;
    size_t    from, to;     /* where it stands in text */
    bool      together;     /* at the place of the one before */
    bool      pair;         /* of a script without blanks ... */
    bool      single;       /* ... one character only */

    /* a run of such */
    char      last[8];
    size_t    last_len;
    size_t    last_from, last_to;
    size_t    chars;
} sb_tokens_t;

void sb_tokens_init(sb_tokens_t *t, sb_str_t text, bool query);
/* The next token; false: there is none. */
bool sb_tokens_next(sb_tokens_t *t);

/*
 * What a person types -> a query of FTS5 that says just that: every word and
 * every "phrase" must occur.  Nothing in it has a meaning to FTS5; words that
 * hang together without blanks ("a.b") are a phrase.  SB_DECLINED: nothing in
 * it can be searched for; SB_LIMIT: more than `terms` words or phrases, or
 * longer than out->max.
 */
sb_rc_t sb_tokens_query(sb_buf_t *out, sb_str_t q, unsigned terms);

/* The next word or "phrase" of q from *pos on, as it was typed; false: there is
 * none. */
bool sb_tokens_term(sb_str_t q, size_t *pos, sb_str_t *term);

#endif /* SB_TOKENIZE_H_INCLUDED */
