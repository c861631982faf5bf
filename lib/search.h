/*
 * What a person types against texts as they come: which of its words and
 * "phrases" occur.  The same tokens and the same meaning as in the full text of
 * the index (tokenize.h), without an index.
 */

#ifndef SB_SEARCH_H_INCLUDED
#define SB_SEARCH_H_INCLUDED

#include "sb.h"

#define SB_SEARCH_TERMS   32    /* words and phrases of one question */
#define SB_SEARCH_PHRASE  64    /* words of one phrase */

typedef struct sb_search_s  sb_search_t;

/* NULL with *rc: SB_DECLINED, there is nothing in it that can be searched for;
 * SB_LIMIT, too many words or phrases, or one is too long; SB_NOMEM. */
sb_search_t *sb_search_new(sb_str_t q, sb_rc_t *rc);
void sb_search_free(sb_search_t *s);

/* Those that occur in a text, as bits. */
uint32_t sb_search_find(const sb_search_t *s, sb_str_t text);
/* All of them. */
uint32_t sb_search_all(const sb_search_t *s);

#endif /* SB_SEARCH_H_INCLUDED */
