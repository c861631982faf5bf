/* UTF-8: strict (no overlong forms, surrogates, or above U+10FFFF). */

#ifndef SB_UTF8_H_INCLUDED
#define SB_UTF8_H_INCLUDED

#include "sb.h"

/* Length of the whole and valid character at p, or 0; n (not 0) bytes are
 * there. */
size_t sb_utf8_char(const void *p, size_t n);

/* The code point of such a character of len bytes. */
uint32_t sb_utf8_code(const void *p, size_t len);

/* Is all of it valid? */
bool sb_utf8_valid(sb_str_t s);

/* Writes s with what is no UTF-8, and NUL, as U+FFFD; dst holds 3 * s.len bytes.
 * The length. */
size_t sb_utf8_clean(char *dst, sb_str_t s);

/* Length of the longest prefix of s, at most n bytes, that ends at a character
 * border.  What is no UTF-8 there is cut at n. */
size_t sb_utf8_cut(sb_str_t s, size_t n);

#endif /* SB_UTF8_H_INCLUDED */
