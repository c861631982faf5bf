/*
 * What a character is to a search, and what it is compared as: letters without
 * case, Latin and Greek without accents, full-width forms as ASCII.
 */

#ifndef SB_FOLD_H_INCLUDED
#define SB_FOLD_H_INCLUDED

#include "sb.h"

typedef enum {
    SB_CHAR_BREAK = 0,      /* no part of a word */
    SB_CHAR_WORD,           /* letter, digit */
    SB_CHAR_PAIR,           /* of a script that is written without blanks */
    SB_CHAR_MARK            /* as if it were not there */
} sb_char_e;

/* The class of a code point; *folded is what it is compared as (one code
 * point, of the same class). */
sb_char_e sb_fold(uint32_t code, uint32_t *folded);

#endif /* SB_FOLD_H_INCLUDED */
