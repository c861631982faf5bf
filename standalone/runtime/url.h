/* Request targets: percent decoding, queries (Go's rules), re-encoding. */

#ifndef RT_URL_H_INCLUDED
#define RT_URL_H_INCLUDED

#include "sb.h"

/* The bytes between two pointers. */
static inline sb_str_t
rt_span(const char *p, const char *end)
{
    return sb_str(p, (size_t) (end - p));
}

/* Appends the decoded text; a bad escape stays as it is.  plus: `+` is a
 * space. */
sb_rc_t rt_unescape(sb_buf_t *dst, sb_str_t s, bool plus);

typedef struct {
    const char  *next;
    sb_buf_t     name;
    sb_buf_t     value;
} rt_query_t;

/* Walks a query as Go does: pairs between `&`, one with a raw `;` or a bad
 * escape is dropped.  Free with rt_query_free(). */
void rt_query_init(rt_query_t *q, const char *query);
bool rt_query_next(rt_query_t *q);
void rt_query_free(rt_query_t *q);

/* First value of a name, malloc'ed, or NULL. */
char *rt_query_get(const char *query, const char *name);
/* The same with its length, for values that may hold a NUL; *value ends with
 * one that does not count and is to be freed.  false: there is none. */
bool rt_query_value(const char *query, const char *name, sb_buf_t *value);

/* Appends percent-encoded text; `safe` names further bytes left alone besides
 * letters, digits and -_.~ ; keep_escapes: %XX stays. */
sb_rc_t rt_escape(sb_buf_t *dst, sb_str_t s, const char *safe,
    bool keep_escapes);

/* Appends a query as httpx writes it: same keys together, each pair with `=`,
 * space as `+`. */
sb_rc_t rt_query_httpx(sb_buf_t *dst, const char *query);

#endif /* RT_URL_H_INCLUDED */
