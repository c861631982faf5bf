/* Writing JSON: strings, and values in canonical form (history format 15.2). */

#include "json.h"
#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>


/* One open container while a value is written. */
typedef struct {
    const sb_jv_t  **items;     /* of an object: sorted, without duplicates */
    const sb_jv_t   *next;      /* of an array */
    size_t           n, i;
    bool             object;
} sb_writer_frame_t;


typedef struct {
    sb_writer_frame_t  *frames;
    size_t              depth, cap;
    bool                infinity;   /* sb_jv_python() */
} sb_writer_t;


static sb_rc_t
sb_json_escape(sb_buf_t *b, uint8_t c)
{
    static const char  letters[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    size_t             i;
    char               two[2] = { '\\', 0 };

    for (i = 0; i < sizeof(letters) - 1; i += 2) {
        if (c == (uint8_t) letters[i]) {
            two[1] = letters[i + 1];
            return sb_buf_add(b, two, 2);
        }
    }

    return sb_buf_printf(b, "\\u%04x", c);
}


sb_rc_t
sb_json_write_str(sb_buf_t *b, sb_str_t s)
{
    size_t          i = 0, plain = 0, len;
    sb_rc_t         rc;
    const uint8_t  *p = (const uint8_t *) s.data;

    rc = sb_buf_add_c(b, '"');

    while (rc == SB_OK && i < s.len) {

        if (p[i] >= 0x20 && p[i] < 0x80 && p[i] != '"' && p[i] != '\\') {
            i++;
            continue;
        }

        len = p[i] < 0x80 ? 0 : sb_utf8_char(p + i, s.len - i);

        if (len) {
            i += len;
            continue;
        }

        rc = sb_buf_add(b, p + plain, i - plain);

        if (rc == SB_OK) {
            rc = p[i] < 0x80 ? sb_json_escape(b, p[i])
                             : sb_buf_add(b, "\xef\xbf\xbd", 3);
        }

        plain = ++i;
    }

    if (rc == SB_OK) {
        rc = sb_buf_add(b, p + plain, s.len - plain);
    }

    return rc == SB_OK ? sb_buf_add_c(b, '"') : rc;
}


void
sb_double_text(char dst[SB_DOUBLE_MAX], double d)
{
    int    exponent, ndigits;
    char   digits[20], text[40], *e;
    char  *p;

    if (isnan(d)) {
        strcpy(dst, "NaN");
        return;
    }

    if (isinf(d)) {
        strcpy(dst, d < 0 ? "-Infinity" : "Infinity");
        return;
    }

    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, fabs(d));

        if (strtod(text, NULL) == fabs(d)) {
            break;
        }
    }

    e = strchr(text, 'e');
    exponent = (int) strtol(e + 1, NULL, 10);

    ndigits = 0;

    for (char *c = text; c < e; c++) {
        if (*c != '.') {
            digits[ndigits++] = *c;
        }
    }

    while (ndigits > 1 && digits[ndigits - 1] == '0') {
        ndigits--;
    }

    p = dst;

    if (signbit(d)) {
        *p++ = '-';
    }

    if (exponent < -4 || exponent >= 16) {
        *p++ = digits[0];

        if (ndigits > 1) {
            *p++ = '.';
            memcpy(p, &digits[1], (size_t) ndigits - 1);
            p += ndigits - 1;
        }

        snprintf(p, 16, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }

    if (exponent < 0) {
        *p++ = '0';
        *p++ = '.';

        for (int i = exponent + 1; i < 0; i++) {
            *p++ = '0';
        }

        memcpy(p, digits, (size_t) ndigits);
        p[ndigits] = '\0';
        return;
    }

    for (int i = 0; i <= exponent || i < ndigits; i++) {
        if (i == exponent + 1) {
            *p++ = '.';
        }

        *p++ = i < ndigits ? digits[i] : '0';
    }

    if (ndigits <= exponent + 1) {
        *p++ = '.';
        *p++ = '0';
    }

    *p = '\0';
}


/* A number as Python's json writes it after reading it: integers as they are,
 * others in the shortest form that reads back the same. */
static sb_rc_t
sb_json_write_number(sb_writer_t *w, sb_buf_t *b, sb_str_t text)
{
    char    buf[SB_DOUBLE_MAX];
    double  v;

    if (memchr(text.data, '.', text.len) == NULL
        && memchr(text.data, 'e', text.len) == NULL
        && memchr(text.data, 'E', text.len) == NULL)
    {
        return sb_eq(text, sb_lit("-0")) ? sb_buf_add_c(b, '0')
                                         : sb_buf_add_str(b, text);
    }

    /* text of a value is NUL-terminated behind */

    v = strtod(text.data, NULL);

    if (isinf(v) && !w->infinity) {
        /* too large for a double: JSON has no infinity, keep what was said */
        return sb_buf_add_str(b, text);
    }

    sb_double_text(buf, v);

    return sb_buf_add(b, buf, strlen(buf));
}


typedef struct {
    const sb_jv_t  *v;
    size_t          at;         /* keeps the sort stable */
} sb_sort_t;


static int
sb_json_compare(const void *one, const void *two)
{
    int               rc;
    size_t            n;
    const sb_sort_t  *a = one, *b = two;

    n = a->v->key.len < b->v->key.len ? a->v->key.len : b->v->key.len;
    rc = n ? memcmp(a->v->key.data, b->v->key.data, n) : 0;

    if (rc != 0) {
        return rc;
    }

    if (a->v->key.len != b->v->key.len) {
        return a->v->key.len < b->v->key.len ? -1 : 1;
    }

    return a->at < b->at ? -1 : 1;
}


/* Members of an object in order, the last of equal keys only. */
static sb_rc_t
sb_json_sorted(sb_writer_frame_t *f, const sb_jv_t *v)
{
    size_t          n = 0, i;
    sb_sort_t      *sort;
    const sb_jv_t  *c;

    for (c = v->child; c; c = c->next) {
        n++;
    }

    if (n == 0) {
        return SB_OK;
    }

    sort = malloc(n * sizeof(sb_sort_t));
    if (sort == NULL) {
        return SB_NOMEM;
    }

    f->items = malloc(n * sizeof(sb_jv_t *));
    if (f->items == NULL) {
        free(sort);
        return SB_NOMEM;
    }

    for (c = v->child, i = 0; c; c = c->next, i++) {
        sort[i].v = c;
        sort[i].at = i;
    }

    qsort(sort, n, sizeof(sb_sort_t), sb_json_compare);

    for (i = 0; i < n; i++) {
        if (i + 1 == n || !sb_eq(sort[i].v->key, sort[i + 1].v->key)) {
            f->items[f->n++] = sort[i].v;
        }
    }

    free(sort);

    return SB_OK;
}


static sb_rc_t
sb_json_push(sb_writer_t *w, const sb_jv_t *v)
{
    void               *p;
    size_t              cap;
    sb_writer_frame_t  *f;

    if (w->depth == w->cap) {
        cap = w->cap ? w->cap * 2 : 16;

        p = realloc(w->frames, cap * sizeof(sb_writer_frame_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        w->frames = p;
        w->cap = cap;
    }

    f = &w->frames[w->depth];
    memset(f, 0, sizeof(*f));

    f->object = v->kind == SB_JSON_OPEN_OBJECT;
    f->next = v->child;

    w->depth++;

    return f->object ? sb_json_sorted(f, v) : SB_OK;
}


/* A scalar, or the opening of a container. */
static sb_rc_t
sb_json_write_value(sb_writer_t *w, sb_buf_t *b, const sb_jv_t *v)
{
    sb_rc_t  rc;

    switch (v->kind) {

    case SB_JSON_NULL:
        return sb_buf_add(b, "null", 4);

    case SB_JSON_TRUE:
        return sb_buf_add(b, "true", 4);

    case SB_JSON_FALSE:
        return sb_buf_add(b, "false", 5);

    case SB_JSON_NUMBER:
        return sb_json_write_number(w, b, v->text);

    case SB_JSON_STRING:
        return sb_json_write_str(b, v->text);

    case SB_JSON_OPEN_OBJECT:
        rc = sb_buf_add_c(b, '{');
        break;

    case SB_JSON_OPEN_ARRAY:
        rc = sb_buf_add_c(b, '[');
        break;

    default:
        return SB_ERROR;
    }

    return rc == SB_OK ? sb_json_push(w, v) : rc;
}


/* The next member or element of the innermost container, or its end. */
static sb_rc_t
sb_json_write_step(sb_writer_t *w, sb_buf_t *b)
{
    bool                first;
    sb_rc_t             rc = SB_OK;
    const sb_jv_t      *v;
    sb_writer_frame_t  *f;

    f = &w->frames[w->depth - 1];
    first = f->i == 0;

    if (f->object) {
        v = f->i < f->n ? f->items[f->i] : NULL;

    } else {
        v = f->next;
        f->next = v ? v->next : NULL;
    }

    f->i++;

    if (v == NULL) {
        rc = sb_buf_add_c(b, f->object ? '}' : ']');
        free(f->items);
        w->depth--;

        return rc;
    }

    if (!first) {
        rc = sb_buf_add_c(b, ',');
    }

    if (rc == SB_OK && f->object) {
        rc = sb_json_write_str(b, v->key);

        if (rc == SB_OK) {
            rc = sb_buf_add_c(b, ':');
        }
    }

    return rc == SB_OK ? sb_json_write_value(w, b, v) : rc;
}


static sb_rc_t
sb_jv_write(sb_buf_t *b, const sb_jv_t *v, bool infinity)
{
    sb_rc_t      rc;
    sb_writer_t  w = { .infinity = infinity };

    rc = sb_json_write_value(&w, b, v);

    while (rc == SB_OK && w.depth) {
        rc = sb_json_write_step(&w, b);
    }

    while (w.depth) {
        free(w.frames[--w.depth].items);
    }

    free(w.frames);

    return rc;
}


sb_rc_t
sb_jv_canonical(sb_buf_t *b, const sb_jv_t *v)
{
    return sb_jv_write(b, v, false);
}


sb_rc_t
sb_jv_python(sb_buf_t *b, const sb_jv_t *v)
{
    return sb_jv_write(b, v, true);
}
