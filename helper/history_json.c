#include "history_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>


typedef struct {
    const sb_jv_t  *v;
    size_t          order;
} history_member_t;


void
history_out_raw(history_out_t *o, const void *p, size_t n)
{
    if (o->rc == SB_OK) {
        o->rc = sb_buf_add(&o->buf, p, n);
    }
}


void
history_out_text(history_out_t *o, const char *s)
{
    history_out_raw(o, s, strlen(s));
}


void
history_out_str(history_out_t *o, sb_str_t s)
{
    if (o->rc == SB_OK) {
        o->rc = sb_json_write_str(&o->buf, s);
    }
}


void
history_out_int(history_out_t *o, int64_t n)
{
    char  text[32];

    history_out_raw(o, text, (size_t) snprintf(text, sizeof(text), "%lld",
                                               (long long) n));
}


void
history_double_text(char dst[HISTORY_DOUBLE_MAX], double d)
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


void
history_out_double(history_out_t *o, double d)
{
    char  text[HISTORY_DOUBLE_MAX];

    history_double_text(text, d);
    history_out_text(o, text);
}


void
history_out_key(history_out_t *o, const char *name)
{
    char  last;

    if (o->rc != SB_OK) {
        return;
    }

    last = o->buf.len ? o->buf.data[o->buf.len - 1] : '{';

    if (last != '{' && last != '[' && last != ',') {
        history_out_text(o, ",");
    }

    history_out_str(o, sb_str(name, strlen(name)));
    history_out_text(o, ":");
}


void
history_out_base64(history_out_t *o, const void *p, size_t n)
{
    static const char  alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    char            block[4];
    size_t          left;
    unsigned        bits;
    const uint8_t  *in;

    in = p;
    history_out_text(o, "\"");

    for (size_t i = 0; i < n; i += 3) {
        left = n - i;
        bits = (unsigned) in[i] << 16;

        if (left > 1) {
            bits |= (unsigned) in[i + 1] << 8;
        }

        if (left > 2) {
            bits |= in[i + 2];
        }

        block[0] = alphabet[bits >> 18];
        block[1] = alphabet[(bits >> 12) & 63];
        block[2] = left > 1 ? alphabet[(bits >> 6) & 63] : '=';
        block[3] = left > 2 ? alphabet[bits & 63] : '=';

        history_out_raw(o, block, 4);
    }

    history_out_text(o, "\"");
}


static void
history_out_number(history_out_t *o, sb_str_t text)
{
    if (memchr(text.data, '.', text.len) == NULL
        && memchr(text.data, 'e', text.len) == NULL
        && memchr(text.data, 'E', text.len) == NULL)
    {
        if (sb_eq(text, sb_lit("-0"))) {
            text = sb_lit("0");
        }

        history_out_raw(o, text.data, text.len);
        return;
    }

    history_out_double(o, strtod(text.data, NULL));
}


static int
history_member_compare(const void *one, const void *two)
{
    int                      rc;
    size_t                   n;
    const history_member_t  *a = one, *b = two;

    n = a->v->key.len < b->v->key.len ? a->v->key.len : b->v->key.len;

    rc = n ? memcmp(a->v->key.data, b->v->key.data, n) : 0;
    if (rc != 0) {
        return rc;
    }

    if (a->v->key.len != b->v->key.len) {
        return a->v->key.len < b->v->key.len ? -1 : 1;
    }

    return a->order < b->order ? -1 : 1;
}


static void
history_out_object(history_out_t *o, const sb_jv_t *v)
{
    bool               first;
    size_t             n;
    history_member_t  *members;

    n = 0;

    for (const sb_jv_t *m = v->child; m != NULL; m = m->next) {
        n++;
    }

    members = malloc((n ? n : 1) * sizeof(history_member_t));
    if (members == NULL) {
        o->rc = SB_NOMEM;
        return;
    }

    n = 0;

    for (const sb_jv_t *m = v->child; m != NULL; m = m->next) {
        members[n].v = m;
        members[n].order = n;
        n++;
    }

    qsort(members, n, sizeof(history_member_t), history_member_compare);

    first = true;
    history_out_text(o, "{");

    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && sb_eq(members[i].v->key, members[i + 1].v->key)) {
            continue;
        }

        if (!first) {
            history_out_text(o, ",");
        }

        first = false;
        history_out_str(o, members[i].v->key);
        history_out_text(o, ":");
        history_out_value(o, members[i].v);
    }

    history_out_text(o, "}");
    free(members);
}


void
history_out_value(history_out_t *o, const sb_jv_t *v)
{
    switch (v->kind) {

    case SB_JSON_NULL:
        history_out_text(o, "null");
        break;

    case SB_JSON_TRUE:
        history_out_text(o, "true");
        break;

    case SB_JSON_FALSE:
        history_out_text(o, "false");
        break;

    case SB_JSON_NUMBER:
        history_out_number(o, v->text);
        break;

    case SB_JSON_STRING:
        history_out_str(o, v->text);
        break;

    case SB_JSON_OPEN_OBJECT:
        history_out_object(o, v);
        break;

    case SB_JSON_OPEN_ARRAY:
        history_out_text(o, "[");

        for (const sb_jv_t *e = v->child; e != NULL; e = e->next) {
            if (e != v->child) {
                history_out_text(o, ",");
            }

            history_out_value(o, e);
        }

        history_out_text(o, "]");
        break;

    default:
        o->rc = SB_ERROR;
        break;
    }
}


sb_rc_t
history_out_json(history_out_t *o, sb_str_t text)
{
    sb_rc_t           rc;
    sb_jdoc_t        *doc;
    sb_json_limits_t  limits;

    limits.max_depth = HISTORY_JSON_DEPTH;
    limits.max_bytes = HISTORY_JSON_MAX;

    rc = SB_ERROR;

    doc = sb_jdoc_parse(text, &limits, &rc);
    if (doc == NULL) {
        return rc;
    }

    history_out_value(o, sb_jdoc_root(doc));
    sb_jdoc_free(doc);

    return SB_OK;
}
