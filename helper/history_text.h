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

typedef enum {
    HISTORY_LEFT = 0, HISTORY_RIGHT,
    HISTORY_OPEN                        /* not filled */
} history_align_e;

/*
 * A cell of `width` terminal columns: safe text, cut with an ellipsis, filled
 * with blanks.  East Asian characters count two columns, combining ones none.
 */
void history_text_cell(FILE *to, sb_str_t s, unsigned width,
    history_align_e align);

/* The bytes as they are; there may be none, at no address, which fwrite() does not
 * take.  False when they could not be written. */
bool history_text_raw(FILE *to, sb_str_t s);

/* The safe text, whole; with `lines`, line feeds and tabs stay as they are. */
void history_text_put(FILE *to, sb_str_t s, bool lines);

/* JSON text with the characters in strings that could not be seen, or that a
 * terminal would obey, as \u escapes; it means the same. */
void history_text_json(FILE *to, sb_str_t json);

/* "1.5K", "12M": at most 5 columns.  dst holds 16 bytes. */
void history_text_size(char dst[16], int64_t bytes);
/* "<1ms", "12ms", "3.4s", "2m05s", "3h10m".  dst holds 24 bytes. */
void history_text_duration(char dst[24], int64_t ms);

/* Prints "sandbox-history: " and a sentence, made safe, on stderr. */
void history_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* HISTORY_TEXT_H_INCLUDED */
