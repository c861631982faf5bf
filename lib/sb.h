/*
 * Shared basics of lib/: slices, return codes, a bounded growing buffer.
 *
 * Nothing in lib/ knows nginx, sockets or databases.  Every function states
 * who owns what it returns; memory comes from malloc() and is bounded by the
 * caller.
 */

#ifndef SB_H_INCLUDED
#define SB_H_INCLUDED

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SB_VERSION  "0.1.0"

/* A slice of bytes owned by somebody else; not NUL-terminated. */
typedef struct {
    const char  *data;
    size_t       len;
} sb_str_t;

#define sb_lit(s)       ((sb_str_t) { (s), sizeof(s) - 1 })
#define sb_str(p, n)    ((sb_str_t) { (const char *) (p), (n) })

typedef enum {
    SB_OK = 0,          /* done */
    SB_AGAIN = 1,       /* more input is needed */
    SB_DECLINED = -1,   /* not ours, nothing found */
    SB_ERROR = -2,      /* malformed input */
    SB_AMBIGUOUS = -3,  /* readable in more than one way: refuse (design 4) */
    SB_LIMIT = -4,      /* a stated bound was reached */
    SB_NOMEM = -5       /* malloc failed */
} sb_rc_t;

static inline bool
sb_eq(sb_str_t a, sb_str_t b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Value of a hexadecimal digit of either case, or -1. */
static inline int
sb_hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }

    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }

    return -1;
}

/* Equal but for ASCII letter case. */
bool sb_ieq(sb_str_t a, sb_str_t b);

/*
 * A growing buffer with an upper bound.  Zero-initialise and set `max` (bytes);
 * free with sb_buf_free().  `data` is not NUL-terminated unless sb_buf_cstr()
 * is used.
 */
typedef struct {
    char    *data;
    size_t   len;
    size_t   cap;
    size_t   max;
    bool     nomem;     /* memory was short for some of what was appended */
} sb_buf_t;

/* Appends n bytes.  SB_LIMIT when the bound would be passed (nothing is
 * appended), SB_NOMEM when memory is short. */
sb_rc_t sb_buf_add(sb_buf_t *b, const void *p, size_t n);
sb_rc_t sb_buf_add_str(sb_buf_t *b, sb_str_t s);
sb_rc_t sb_buf_add_c(sb_buf_t *b, char c);
/* The same in decimal digits. */
sb_rc_t sb_buf_add_uint(sb_buf_t *b, uint64_t v);
sb_rc_t sb_buf_printf(sb_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* NUL-terminates (the NUL is not counted in len) and returns data, or NULL. */
char *sb_buf_cstr(sb_buf_t *b);
void sb_buf_free(sb_buf_t *b);

#endif /* SB_H_INCLUDED */
