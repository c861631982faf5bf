/*
 * A small JSON object being written in canonical form (keys sorted) under a
 * bound: request_json and result_json are made with it.
 */

#ifndef SB_JSON_OBJECT_H_INCLUDED
#define SB_JSON_OBJECT_H_INCLUDED

#include "json.h"

#define SB_OBJECT_MEMBERS  48

/* Names of members are static texts, each added once. */
typedef struct {
    const char          *name;
    const char          *suffix;    /* behind the name */
    size_t               at, len;   /* its value in `text` */
} sb_object_member_t;

typedef struct {
    size_t               n;
    sb_buf_t             text;
    size_t               room;      /* bytes still allowed */
    sb_rc_t              rc;        /* SB_NOMEM once memory was short */
    sb_object_member_t   members[SB_OBJECT_MEMBERS];
} sb_object_t;

/* `room` bounds the whole text.  Free with sb_object_free(). */
void sb_object_init(sb_object_t *o, size_t room);
void sb_object_free(sb_object_t *o);

/* No single value takes more than half of what is left.  A text that would is
 * cut at a character border, anything else left out; both are told by
 * "<name>_bytes" with the full size. */
void sb_object_str(sb_object_t *o, const char *name, sb_str_t s);
void sb_object_int(sb_object_t *o, const char *name, int64_t v);
void sb_object_uint(sb_object_t *o, const char *name, const char *suffix,
    uint64_t v);
void sb_object_bool(sb_object_t *o, const char *name, bool v);
void sb_object_value(sb_object_t *o, const char *name, const sb_jv_t *v);
void sb_object_object(sb_object_t *o, const char *name, sb_object_t *inner);

/* A sorted array of texts without duplicates; one that is too long is cut and
 * told by "<name>_total".  Sorts `names`. */
void sb_object_names(sb_object_t *o, const char *name, sb_str_t *names,
    size_t n);

/* A value that is JSON text already; `total` elements were there, `kept` of
 * them are in it ("<name>_total" when they differ). */
void sb_object_json(sb_object_t *o, const char *name, sb_str_t json,
    size_t kept, size_t total);

/* Appends the object. */
sb_rc_t sb_object_write(const sb_object_t *o, sb_buf_t *b);

/* By bytes, for qsort() of sb_str_t. */
int sb_str_compare(const void *one, const void *two);

#endif /* SB_JSON_OBJECT_H_INCLUDED */
