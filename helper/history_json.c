#include "history_json.h"

#include <stdio.h>


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
history_out_double(history_out_t *o, double d)
{
    char  text[SB_DOUBLE_MAX];

    sb_double_text(text, d);
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
history_out_member(history_out_t *o, const char *name, sb_str_t v)
{
    history_out_key(o, name);

    if (v.data) {
        history_out_str(o, v);

    } else {
        history_out_text(o, "null");
    }
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


void
history_out_value(history_out_t *o, const sb_jv_t *v)
{
    if (o->rc == SB_OK) {
        o->rc = sb_jv_python(&o->buf, v);
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
