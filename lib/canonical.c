#include "canonical.h"

#include <stdio.h>


void
sb_out_raw(sb_out_t *o, const void *p, size_t n)
{
    if (o->rc == SB_OK) {
        o->rc = sb_buf_add(&o->buf, p, n);
    }
}


void
sb_out_text(sb_out_t *o, const char *s)
{
    sb_out_raw(o, s, strlen(s));
}


void
sb_out_str(sb_out_t *o, sb_str_t s)
{
    if (o->rc == SB_OK) {
        o->rc = sb_json_write_str(&o->buf, s);
    }
}


void
sb_out_int(sb_out_t *o, int64_t n)
{
    char  text[32];

    sb_out_raw(o, text, (size_t) snprintf(text, sizeof(text), "%lld",
                                          (long long) n));
}


void
sb_out_double(sb_out_t *o, double d)
{
    char  text[SB_DOUBLE_MAX];

    sb_double_text(text, d);
    sb_out_text(o, text);
}


void
sb_out_key(sb_out_t *o, const char *name)
{
    char  last;

    if (o->rc != SB_OK) {
        return;
    }

    last = o->buf.len ? o->buf.data[o->buf.len - 1] : '{';

    if (last != '{' && last != '[' && last != ',') {
        sb_out_text(o, ",");
    }

    sb_out_str(o, sb_str(name, strlen(name)));
    sb_out_text(o, ":");
}


void
sb_out_member(sb_out_t *o, const char *name, sb_str_t v)
{
    sb_out_key(o, name);

    if (v.data) {
        sb_out_str(o, v);

    } else {
        sb_out_text(o, "null");
    }
}


void
sb_out_base64(sb_out_t *o, const void *p, size_t n)
{
    static const char  alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    char            block[4];
    size_t          left;
    unsigned        bits;
    const uint8_t  *in;

    in = p;
    sb_out_text(o, "\"");

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

        sb_out_raw(o, block, 4);
    }

    sb_out_text(o, "\"");
}


void
sb_out_value(sb_out_t *o, const sb_jv_t *v)
{
    if (o->rc == SB_OK) {
        o->rc = sb_jv_python(&o->buf, v);
    }
}


sb_rc_t
sb_out_json(sb_out_t *o, sb_str_t text)
{
    sb_rc_t           rc;
    sb_jdoc_t        *doc;
    sb_json_limits_t  limits;

    limits.max_depth = SB_OUT_DEPTH;
    limits.max_bytes = SB_OUT_MAX;

    rc = SB_ERROR;

    doc = sb_jdoc_parse(text, &limits, &rc);
    if (doc == NULL) {
        return rc;
    }

    sb_out_value(o, sb_jdoc_root(doc));
    sb_jdoc_free(doc);

    return SB_OK;
}
