/*
 * Canonical JSON as the published history helper prints it (history format
 * 15.2): sorted keys, no blanks, UTF-8 unescaped, floats as their shortest
 * text that reads back the same.
 */

#ifndef SB_CANONICAL_H_INCLUDED
#define SB_CANONICAL_H_INCLUDED

#include "json.h"

/* Stored JSON that is deeper or longer is an error of the reader. */
#define SB_OUT_DEPTH  256u
#define SB_OUT_MAX    ((size_t) 512 * 1024 * 1024)

/* A writer that remembers its first failure, so that a chain of writes is
 * checked once, at the end.  Zero-initialise and set buf.max. */
typedef struct {
    sb_buf_t  buf;
    sb_rc_t   rc;
} sb_out_t;

void sb_out_raw(sb_out_t *o, const void *p, size_t n);
/* A NUL-terminated text as it is. */
void sb_out_text(sb_out_t *o, const char *s);
/* A JSON string; invalid UTF-8 becomes U+FFFD. */
void sb_out_str(sb_out_t *o, sb_str_t s);
void sb_out_int(sb_out_t *o, int64_t n);
/* Whole numbers keep a ".0"; infinities and NaN come out as Infinity,
 * -Infinity and NaN, as the published helper prints them. */
void sb_out_double(sb_out_t *o, double d);
/* `"name":`, with a comma before it unless something opened just before. */
void sb_out_key(sb_out_t *o, const char *name);
/* A member: a string, or null for one without data. */
void sb_out_member(sb_out_t *o, const char *name, sb_str_t v);
/* Base64 with padding, in quotes. */
void sb_out_base64(sb_out_t *o, const void *p, size_t n);

/* A parsed value in canonical form; of equal keys the last one stays.  Numbers
 * with a fraction or an exponent are written as doubles, others keep their
 * digits. */
void sb_out_value(sb_out_t *o, const sb_jv_t *v);

/* The canonical form of a JSON text.  SB_ERROR or SB_LIMIT (not kept in o->rc,
 * nothing written): it is not JSON, or larger than the limits above. */
sb_rc_t sb_out_json(sb_out_t *o, sb_str_t text);

#endif /* SB_CANONICAL_H_INCLUDED */
