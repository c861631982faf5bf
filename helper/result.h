/* history_events.result_json: what the worker found in the answer, and ours. */

#ifndef RESULT_H_INCLUDED
#define RESULT_H_INCLUDED

#include "sb.h"

#define RESULT_MEMBERS  32
#define RESULT_MAX      (1024 * 1024)

/* Members to add; names are static texts. */
typedef struct {
    struct {
        const char  *name;
        sb_str_t     text;      /* of a string */
        char         number[24];
        enum { RESULT_STRING, RESULT_NUMBER, RESULT_BOOL } kind;
        bool         on;
    }       m[RESULT_MEMBERS];
    size_t  n;
} result_t;

void result_str(result_t *r, const char *name, sb_str_t text);
void result_int(result_t *r, const char *name, int64_t v);
void result_bool(result_t *r, const char *name, bool on);

/*
 * Appends the canonical object of `base` (an object as JSON text, or empty)
 * with the members of r, which win; nothing when there are none at all.  A base
 * that is not an object is left out and said so ("unparsed": true).
 */
sb_rc_t result_write(const result_t *r, sb_str_t base, sb_buf_t *out);

#endif /* RESULT_H_INCLUDED */
