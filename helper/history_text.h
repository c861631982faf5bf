/*
 * Recorded text on a terminal.  It is hostile: control characters, escape
 * sequences, characters that turn the writing direction or cannot be seen are
 * shown as \n, \x1b, \u{202e} and so on, and bytes that are not UTF-8 as \xff.
 */

#ifndef HISTORY_TEXT_H_INCLUDED
#define HISTORY_TEXT_H_INCLUDED

#include "sb.h"

#include <stdio.h>

/* One line, NUL-terminated, cut at size - 1 bytes at a character border. */
void history_text_safe(char *dst, size_t size, sb_str_t s);

/*
 * A cell of exactly `width` terminal columns: safe text, cut with an ellipsis,
 * filled with blanks (on the left when `right`).  East Asian characters count
 * two columns, combining ones none.
 */
void history_text_cell(FILE *to, sb_str_t s, unsigned width, bool right);

/* The safe text, whole; with `lines`, line feeds and tabs stay as they are. */
void history_text_put(FILE *to, sb_str_t s, bool lines);

/* "1.5 K", "12 M": at most 6 columns.  dst holds 16 bytes. */
void history_text_size(char dst[16], int64_t bytes);
/* "12 ms", "3.4 s", "2 m 05 s", "3 h 10 m".  dst holds 24 bytes. */
void history_text_duration(char dst[24], int64_t ms);

#endif /* HISTORY_TEXT_H_INCLUDED */
