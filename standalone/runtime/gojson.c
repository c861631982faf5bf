#include <stdio.h>
#include <time.h>

#include "gojson.h"
#include "utf8.h"


/* Bytes of the first JSON value with what stands before it. */

static size_t
rt_first_value(sb_str_t s)
{
    char      c;
    bool      string, escape;
    size_t    i;
    unsigned  depth;

    string = escape = false;
    depth = 0;

    for (i = 0; i < s.len; i++) {
        c = s.data[i];

        if (string) {
            if (escape) {
                escape = false;

            } else if (c == '\\') {
                escape = true;

            } else if (c == '"') {
                string = false;

                if (depth == 0) {
                    return i + 1;
                }
            }

            continue;
        }

        switch (c) {

        case '"':
            string = true;
            break;

        case '{':
        case '[':
            depth++;
            break;

        case '}':
        case ']':
            if (depth <= 1) {
                return i + 1;
            }

            depth--;
            break;

        default:
            break;
        }
    }

    return s.len;
}


sb_jdoc_t *
rt_go_parse(sb_str_t body, bool *empty)
{
    sb_rc_t           rc;
    sb_jdoc_t        *doc;
    sb_json_limits_t  limits;

    limits.max_depth = 1000;
    limits.max_bytes = body.len + 1;

    body.len = rt_first_value(body);
    doc = sb_jdoc_parse(body, &limits, &rc);

    if (empty != NULL) {
        *empty = doc == NULL && rc == SB_DECLINED;
    }

    return doc;
}


sb_jdoc_t *
rt_go_parse_all(sb_str_t text)
{
    sb_rc_t           rc;
    sb_json_limits_t  limits;

    limits.max_depth = 1000;
    limits.max_bytes = text.len + 1;

    return sb_jdoc_parse(text, &limits, &rc);
}


const sb_jv_t *
rt_go_get(const sb_jv_t *obj, const char *key)
{
    const sb_jv_t  *v, *found;

    found = NULL;

    if (obj == NULL || obj->kind != SB_JSON_OPEN_OBJECT) {
        return NULL;
    }

    for (v = obj->child; v != NULL; v = v->next) {
        if (v->kind != SB_JSON_NULL
            && sb_ieq(v->key, sb_str(key, strlen(key))))
        {
            found = v;
        }
    }

    return found;
}


int
rt_go_str(const sb_jv_t *obj, const char *key, sb_str_t *out)
{
    const sb_jv_t  *v;

    v = rt_go_get(obj, key);

    if (v == NULL) {
        return 0;
    }

    if (v->kind != SB_JSON_STRING) {
        return -1;
    }

    *out = v->text;

    return 1;
}


int
rt_go_bool(const sb_jv_t *obj, const char *key, bool *out)
{
    const sb_jv_t  *v;

    v = rt_go_get(obj, key);

    if (v == NULL) {
        return 0;
    }

    if (v->kind != SB_JSON_TRUE && v->kind != SB_JSON_FALSE) {
        return -1;
    }

    *out = v->kind == SB_JSON_TRUE;

    return 1;
}


int
rt_go_int(const sb_jv_t *obj, const char *key, int64_t *out)
{
    const sb_jv_t  *v;

    v = rt_go_get(obj, key);

    if (v == NULL) {
        return 0;
    }

    if (v->kind != SB_JSON_NUMBER || !sb_jv_int(v, out)) {
        return -1;
    }

    return 1;
}


sb_rc_t
rt_go_write(sb_buf_t *b, sb_str_t s)
{
    size_t                i, start, len;
    sb_rc_t               rc;
    uint32_t              cp;
    const char           *esc;
    char                  tmp[8];
    const unsigned char  *p;

    p = (const unsigned char *) s.data;
    rc = sb_buf_add_c(b, '"');
    start = 0;

    for (i = 0; i < s.len && rc == SB_OK; i += len) {
        esc = NULL;
        len = sb_utf8_char(p + i, s.len - i);
        cp = len ? sb_utf8_code(p + i, len) : 0;

        if (len == 0) {
            len = 1;
            esc = "\\ufffd";

        } else if (cp == '"' || cp == '\\') {
            snprintf(tmp, sizeof(tmp), "\\%c", (char) cp);
            esc = tmp;

        } else if (cp == '\n') {
            esc = "\\n";

        } else if (cp == '\r') {
            esc = "\\r";

        } else if (cp == '\t') {
            esc = "\\t";

        } else if (cp == '\b') {
            esc = "\\b";

        } else if (cp == '\f') {
            esc = "\\f";

        } else if (cp < 0x20 || cp == '<' || cp == '>' || cp == '&'
                   || cp == 0x2028 || cp == 0x2029)
        {
            snprintf(tmp, sizeof(tmp), "\\u%04x", (unsigned) cp & 0xffff);
            esc = tmp;
        }

        if (esc != NULL) {
            rc = sb_buf_add(b, s.data + start, i - start);

            if (rc == SB_OK) {
                rc = sb_buf_add(b, esc, strlen(esc));
            }

            start = i + len;
        }
    }

    if (rc == SB_OK) {
        rc = sb_buf_add(b, s.data + start, s.len - start);
    }

    return rc == SB_OK ? sb_buf_add_c(b, '"') : rc;
}


sb_rc_t
rt_go_time(sb_buf_t *b, int64_t sec, uint32_t nsec)
{
    char       frac[16];
    size_t     n;
    time_t     t;
    struct tm  tm;

    t = (time_t) sec;
    gmtime_r(&t, &tm);
    snprintf(frac, sizeof(frac), ".%09u", (unsigned) nsec % 1000000000);

    for (n = 10; n > 1 && frac[n - 1] == '0'; n--) { /* void */ }

    frac[n == 1 ? 0 : n] = '\0';

    return sb_buf_printf(b, "\"%04d-%02d-%02dT%02d:%02d:%02d%sZ\"",
                         tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                         tm.tm_hour, tm.tm_min, tm.tm_sec, frac);
}
