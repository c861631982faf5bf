#include "sb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


bool
sb_ieq(sb_str_t a, sb_str_t b)
{
    if (a.len != b.len) {
        return false;
    }

    for (size_t i = 0; i < a.len; i++) {
        unsigned char x = (unsigned char) a.data[i];
        unsigned char y = (unsigned char) b.data[i];

        if (x >= 'A' && x <= 'Z') {
            x = (unsigned char) (x | 0x20);
        }

        if (y >= 'A' && y <= 'Z') {
            y = (unsigned char) (y | 0x20);
        }

        if (x != y) {
            return false;
        }
    }

    return true;
}


static sb_rc_t
sb_buf_grow(sb_buf_t *b, size_t need)
{
    size_t  cap;
    char   *p;

    cap = b->cap ? b->cap : 256;

    while (cap < need) {
        cap *= 2;
    }

    p = realloc(b->data, cap);
    if (p == NULL) {
        b->nomem = true;
        return SB_NOMEM;
    }

    b->data = p;
    b->cap = cap;

    return SB_OK;
}


static inline sb_rc_t
sb_buf_reserve(sb_buf_t *b, size_t n)
{
    if (n > b->max || b->len > b->max - n) {
        return SB_LIMIT;
    }

    return b->len + n < b->cap ? SB_OK : sb_buf_grow(b, b->len + n + 1);
}


sb_rc_t
sb_buf_add(sb_buf_t *b, const void *p, size_t n)
{
    sb_rc_t  rc;

    rc = sb_buf_reserve(b, n);
    if (rc != SB_OK) {
        return rc;
    }

    if (n) {
        memcpy(b->data + b->len, p, n);
        b->len += n;
    }

    return SB_OK;
}


sb_rc_t
sb_buf_add_str(sb_buf_t *b, sb_str_t s)
{
    return sb_buf_add(b, s.data, s.len);
}


sb_rc_t
sb_buf_add_c(sb_buf_t *b, char c)
{
    sb_rc_t  rc;

    rc = sb_buf_reserve(b, 1);

    if (rc == SB_OK) {
        b->data[b->len++] = c;
    }

    return rc;
}


sb_rc_t
sb_buf_add_uint(sb_buf_t *b, uint64_t v)
{
    char   text[20];
    char  *p = text + sizeof(text);

    do {
        *--p = (char) ('0' + v % 10);
        v /= 10;
    } while (v);

    return sb_buf_add(b, p, (size_t) (text + sizeof(text) - p));
}


sb_rc_t
sb_buf_printf(sb_buf_t *b, const char *fmt, ...)
{
    int      n;
    va_list  args;
    sb_rc_t  rc;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);

    if (n < 0) {
        return SB_ERROR;
    }

    rc = sb_buf_reserve(b, (size_t) n);
    if (rc != SB_OK) {
        return rc;
    }

    va_start(args, fmt);
    (void) vsnprintf(b->data + b->len, (size_t) n + 1, fmt, args);
    va_end(args);

    b->len += (size_t) n;

    return SB_OK;
}


char *
sb_buf_cstr(sb_buf_t *b)
{
    if (sb_buf_reserve(b, 0) != SB_OK) {
        return NULL;
    }

    b->data[b->len] = '\0';

    return b->data;
}


void
sb_buf_free(sb_buf_t *b)
{
    free(b->data);
    b->data = NULL;
    b->len = 0;
    b->cap = 0;
}
