/*
 * JSON: bounded strict events, fed in pieces, and writing
 * (history format 15.2).
 */

#ifndef SB_JSON_H_INCLUDED
#define SB_JSON_H_INCLUDED

#include "sb.h"

typedef struct sb_json_s  sb_json_t;

typedef enum {
    SB_JSON_NULL, SB_JSON_TRUE, SB_JSON_FALSE,
    SB_JSON_NUMBER,         /* text: the number as written */
    SB_JSON_STRING,         /* text: decoded UTF-8, may hold NUL */
    SB_JSON_KEY,            /* text: decoded */
    SB_JSON_OPEN_OBJECT, SB_JSON_CLOSE_OBJECT,
    SB_JSON_OPEN_ARRAY, SB_JSON_CLOSE_ARRAY
} sb_json_event_e;

/* Called for every event; depth is 0 outside, 1 inside the top value and so
 * on (an OPEN is reported at the depth of its container).  Anything but SB_OK
 * stops the parser with that code. */
typedef sb_rc_t (*sb_json_handler_pt)(void *data, sb_json_event_e event,
    sb_str_t text, unsigned depth);

typedef struct {
    unsigned  max_depth;    /* 0: 64 */
    size_t    max_bytes;    /* of input; 0: 1 MiB */
} sb_json_limits_t;

sb_json_t *sb_json_new(sb_json_handler_pt handler, void *data,
    const sb_json_limits_t *limits);

/*
 * Feeds bytes in pieces of any size.  SB_OK: the top value is complete and
 * nothing but white space followed so far; SB_AGAIN: goes on; SB_ERROR: not
 * strict JSON (also bad UTF-8, BOM, comments, a lone surrogate escape);
 * SB_AMBIGUOUS: bytes after the value; SB_LIMIT: deeper or longer than allowed.
 * After an error every further call returns it again.
 */
sb_rc_t sb_json_feed(sb_json_t *j, const char *p, size_t n);
/* End of input: SB_OK, SB_DECLINED when only white space came, or an error. */
sb_rc_t sb_json_finish(sb_json_t *j);
/* Ready for another text, with the same handler and limits. */
void sb_json_again(sb_json_t *j);
void sb_json_free(sb_json_t *j);

/* Appends a string in quotes, escaped as history format 15.2 says.  Invalid
 * UTF-8 becomes U+FFFD, so that the output is always valid JSON. */
sb_rc_t sb_json_write_str(sb_buf_t *b, sb_str_t s);

/*
 * A parsed value, for small things (records, answers, configuration): owned by
 * one arena, freed as one.  Objects keep the order of the text; duplicates are
 * kept too (sb_jv_get takes the last).
 */
typedef struct sb_jv_s  sb_jv_t;

struct sb_jv_s {
    sb_json_event_e  kind;      /* NULL, TRUE, FALSE, NUMBER, STRING,
                                   OPEN_OBJECT or OPEN_ARRAY */
    sb_str_t         key;       /* inside an object */
    sb_str_t         text;      /* NUMBER, STRING; NUL-terminated behind */
    sb_jv_t         *child;     /* first member or element */
    sb_jv_t         *next;
};

typedef struct sb_jdoc_s  sb_jdoc_t;

/* Parses a whole text; NULL on any error, with *rc set when rc is given. */
sb_jdoc_t *sb_jdoc_parse(sb_str_t text, const sb_json_limits_t *limits,
    sb_rc_t *rc);
const sb_jv_t *sb_jdoc_root(const sb_jdoc_t *d);
void sb_jdoc_free(sb_jdoc_t *d);

/* Member of an object (last one wins), or NULL. v may be NULL. */
const sb_jv_t *sb_jv_get(const sb_jv_t *v, const char *key);
/* Text of a string member, or an empty slice. */
sb_str_t sb_jv_str(const sb_jv_t *v, const char *key);
/* Integer of a number (or member) when it is one that fits; else false. */
bool sb_jv_int(const sb_jv_t *v, int64_t *out);

/* Appends the canonical form (15.2: keys sorted by bytes, last duplicate
 * wins, no blanks). */
sb_rc_t sb_jv_canonical(sb_buf_t *b, const sb_jv_t *v);
/* The same as Python's json prints what it has read: a number beyond a double
 * comes out as Infinity or -Infinity, where the above keeps its text. */
sb_rc_t sb_jv_python(sb_buf_t *b, const sb_jv_t *v);

/* Shortest decimal text that reads back as d, NUL-terminated.  Whole numbers
 * keep a ".0"; infinities and NaN are Infinity, -Infinity and NaN. */
#define SB_DOUBLE_MAX  48
void sb_double_text(char dst[SB_DOUBLE_MAX], double d);

#endif /* SB_JSON_H_INCLUDED */
