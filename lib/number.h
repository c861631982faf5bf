/* Whole numbers written as text, read in one way only. */

#ifndef SB_NUMBER_H_INCLUDED
#define SB_NUMBER_H_INCLUDED

#include "sb.h"

/* Digits of base 8 or 10 from beginning to end: no sign, no blank, nothing
 * behind; at most max.  False leaves *n as it was. */
bool sb_number(sb_str_t text, unsigned base, uint64_t max, uint64_t *n);

/* The same in base 10 with "-" allowed before it, from least to most. */
bool sb_number_signed(sb_str_t text, int64_t least, int64_t most, int64_t *n);

#endif /* SB_NUMBER_H_INCLUDED */
