#include <stdlib.h>

#include "url.h"


sb_rc_t
rt_unescape(sb_buf_t *dst, sb_str_t s, bool plus)
{
    char     c;
    size_t   i;
    sb_rc_t  rc;

    rc = SB_OK;

    for (i = 0; i < s.len && rc == SB_OK; i++) {
        c = s.data[i];

        if (c == '%' && i + 2 < s.len && sb_hex_value(s.data[i + 1]) >= 0
            && sb_hex_value(s.data[i + 2]) >= 0)
        {
            c = (char) (sb_hex_value(s.data[i + 1]) * 16
                        + sb_hex_value(s.data[i + 2]));
            i += 2;

        } else if (c == '+' && plus) {
            c = ' ';
        }

        rc = sb_buf_add_c(dst, c);
    }

    return rc;
}


void
rt_query_init(rt_query_t *q, const char *query)
{
    memset(q, 0, sizeof(rt_query_t));

    q->next = query;
    q->name.max = q->value.max = 1024 * 1024;
}


static bool
rt_escapes_ok(sb_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] == '%'
            && (i + 2 >= s.len || sb_hex_value(s.data[i + 1]) < 0
                || sb_hex_value(s.data[i + 2]) < 0))
        {
            return false;
        }
    }

    return true;
}


bool
rt_query_next(rt_query_t *q)
{
    const char  *p, *end, *eq;

    while (*q->next != '\0') {
        p = q->next;
        end = p + strcspn(p, "&");
        q->next = *end == '&' ? end + 1 : end;

        if (end == p || memchr(p, ';', (size_t) (end - p)) != NULL
            || !rt_escapes_ok(rt_span(p, end)))
        {
            continue;
        }

        eq = memchr(p, '=', (size_t) (end - p));
        q->name.len = q->value.len = 0;

        if (rt_unescape(&q->name, rt_span(p, eq ? eq : end), true)
            != SB_OK
            || (eq && rt_unescape(&q->value, rt_span(eq + 1, end), true)
                      != SB_OK)
            || sb_buf_cstr(&q->name) == NULL
            || sb_buf_cstr(&q->value) == NULL)
        {
            continue;
        }

        return true;
    }

    return false;
}


void
rt_query_free(rt_query_t *q)
{
    sb_buf_free(&q->name);
    sb_buf_free(&q->value);
}


bool
rt_query_value(const char *query, const char *name, sb_buf_t *value)
{
    bool         found;
    rt_query_t   q;

    found = false;
    memset(value, 0, sizeof(sb_buf_t));
    rt_query_init(&q, query);

    while (!found && rt_query_next(&q)) {
        if (strcmp(q.name.data, name) == 0) {
            *value = q.value;
            memset(&q.value, 0, sizeof(sb_buf_t));
            found = true;
        }
    }

    rt_query_free(&q);

    return found;
}


char *
rt_query_get(const char *query, const char *name)
{
    char      *copy;
    sb_buf_t   value;

    copy = rt_query_value(query, name, &value) ? strdup(value.data) : NULL;
    sb_buf_free(&value);

    return copy;
}


sb_rc_t
rt_escape(sb_buf_t *dst, sb_str_t s, const char *safe, bool keep_escapes)
{
    char     c;
    size_t   i;
    sb_rc_t  rc;

    rc = SB_OK;

    for (i = 0; i < s.len && rc == SB_OK; i++) {
        c = s.data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9')
            || (c != '\0' && strchr("-_.~", c) != NULL)
            || (c != '\0' && strchr(safe, c) != NULL)
            || (c == '%' && keep_escapes && i + 2 < s.len
                && sb_hex_value(s.data[i + 1]) >= 0
                && sb_hex_value(s.data[i + 2]) >= 0))
        {
            rc = sb_buf_add_c(dst, c);

        } else {
            rc = sb_buf_printf(dst, "%%%02X", (unsigned char) c);
        }
    }

    return rc;
}


static sb_rc_t
rt_escape_plus(sb_buf_t *dst, sb_str_t s)
{
    size_t   i;
    sb_rc_t  rc;

    rc = SB_OK;

    for (i = 0; i < s.len && rc == SB_OK; i++) {
        rc = s.data[i] == ' ' ? sb_buf_add_c(dst, '+')
                              : rt_escape(dst, sb_str(s.data + i, 1), "",
                                          false);
    }

    return rc;
}


typedef struct {
    char   *name;
    char   *value;
    size_t  name_len, value_len;
    bool    done;
} rt_pair_t;


static size_t
rt_pairs(const char *query, rt_pair_t *pairs, size_t max)
{
    size_t       n;
    sb_buf_t     b;
    const char  *p, *end, *eq;

    n = 0;

    for (p = query; *p != '\0' && n < max; p = *end == '&' ? end + 1 : end) {
        end = p + strcspn(p, "&");

        if (end == p) {
            continue;
        }

        eq = memchr(p, '=', (size_t) (end - p));
        memset(&b, 0, sizeof(b));
        b.max = 1024 * 1024;
        rt_unescape(&b, rt_span(p, eq ? eq : end), true);
        pairs[n].name_len = b.len;
        pairs[n].name = b.data;

        memset(&b, 0, sizeof(b));
        b.max = 1024 * 1024;

        if (eq != NULL) {
            rt_unescape(&b, rt_span(eq + 1, end), true);
        }

        pairs[n].value_len = b.len;
        pairs[n].value = b.data;
        pairs[n].done = false;
        n++;
    }

    return n;
}


sb_rc_t
rt_query_httpx(sb_buf_t *dst, const char *query)
{
    size_t      i, j, n;
    sb_rc_t     rc;
    rt_pair_t  *pairs;

    pairs = calloc(1024, sizeof(rt_pair_t));

    if (pairs == NULL) {
        return SB_NOMEM;
    }

    n = rt_pairs(query, pairs, 1024);
    rc = SB_OK;

    for (i = 0; i < n; i++) {
        for (j = i; j < n; j++) {
            if (pairs[j].done
                || !sb_eq(sb_str(pairs[i].name, pairs[i].name_len),
                          sb_str(pairs[j].name, pairs[j].name_len)))
            {
                continue;
            }

            pairs[j].done = true;

            if (dst->len > 0 && dst->data[dst->len - 1] != '?') {
                rc = sb_buf_add_c(dst, '&');
            }

            if (rc != SB_OK
                || (rc = rt_escape_plus(dst, sb_str(pairs[j].name,
                                                    pairs[j].name_len)))
                   != SB_OK
                || (rc = sb_buf_add_c(dst, '=')) != SB_OK
                || (rc = rt_escape_plus(dst, sb_str(pairs[j].value,
                                                    pairs[j].value_len)))
                   != SB_OK)
            {
                goto done;
            }
        }
    }

done:

    for (i = 0; i < n; i++) {
        free(pairs[i].name);
        free(pairs[i].value);
    }

    free(pairs);

    return rc;
}
