/*
 * Canonical JSON as the published history helper prints it (history format
 * 15.2): sorted keys, no blanks, UTF-8 unescaped, floats as their shortest
 * text that reads back the same.
 */

#ifndef HISTORY_JSON_H_INCLUDED
#define HISTORY_JSON_H_INCLUDED

#include "json.h"

/* Stored JSON that is deeper or longer is an error of the reader. */
#define HISTORY_JSON_DEPTH  256u
#define HISTORY_JSON_MAX    ((size_t) 512 * 1024 * 1024)

/* A writer that remembers its first failure, so that a chain of writes is
 * checked once, at the end.  Zero-initialise and set buf.max. */
typedef struct {
    sb_buf_t  buf;
    sb_rc_t   rc;
} history_out_t;

void history_out_raw(history_out_t *o, const void *p, size_t n);
/* A NUL-terminated text as it is. */
void history_out_text(history_out_t *o, const char *s);
/* A JSON string; invalid UTF-8 becomes U+FFFD. */
void history_out_str(history_out_t *o, sb_str_t s);
void history_out_int(history_out_t *o, int64_t n);
/* Whole numbers keep a ".0"; infinities and NaN come out as Infinity,
 * -Infinity and NaN, as the published helper prints them. */
void history_out_double(history_out_t *o, double d);
/* `"name":`, with a comma before it unless something opened just before. */
void history_out_key(history_out_t *o, const char *name);
/* A member: a string, or null for one without data. */
void history_out_member(history_out_t *o, const char *name, sb_str_t v);
/* Base64 with padding, in quotes. */
void history_out_base64(history_out_t *o, const void *p, size_t n);

/* A parsed value in canonical form; of equal keys the last one stays.  Numbers
 * with a fraction or an exponent are written as doubles, others keep their
 * digits. */
void history_out_value(history_out_t *o, const sb_jv_t *v);

/* The canonical form of a JSON text.  SB_ERROR or SB_LIMIT (not kept in o->rc,
 * nothing written): it is not JSON, or larger than the limits above. */
sb_rc_t history_out_json(history_out_t *o, sb_str_t text);

#endif /* HISTORY_JSON_H_INCLUDED */
