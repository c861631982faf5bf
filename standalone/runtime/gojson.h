/*
 * JSON the way execd's encoding/json reads and writes it: keys match without
 * regard to case, the last duplicate wins, null changes nothing, what follows
 * the first value is not looked at.
 */

#ifndef RT_GOJSON_H_INCLUDED
#define RT_GOJSON_H_INCLUDED

#include "json.h"

/* The first value of a body; NULL when there is none or it is not JSON, with
 * *empty set in the former case (empty may be NULL). */
sb_jdoc_t *rt_go_parse(sb_str_t body, bool *empty);
/* The same of a text that must be one value and nothing else. */
sb_jdoc_t *rt_go_parse_all(sb_str_t text);

/* Members of an object: 1 present, 0 absent or null, -1 of another type. */
int rt_go_str(const sb_jv_t *obj, const char *key, sb_str_t *out);
int rt_go_bool(const sb_jv_t *obj, const char *key, bool *out);
int rt_go_int(const sb_jv_t *obj, const char *key, int64_t *out);
/* Any type but null; the value itself. */
const sb_jv_t *rt_go_get(const sb_jv_t *obj, const char *key);

/* Appends a string in quotes with Go's escapes (< > & and U+2028/9 too). */
sb_rc_t rt_go_write(sb_buf_t *b, sb_str_t s);

/* Appends a time as Go does: RFC 3339, UTC, nanoseconds without the zeros at
 * the end, in quotes. */
sb_rc_t rt_go_time(sb_buf_t *b, int64_t sec, uint32_t nsec);

#endif /* RT_GOJSON_H_INCLUDED */
