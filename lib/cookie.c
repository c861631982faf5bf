#include "cookie.h"

#include <strings.h>


static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}


bool
sb_cookie_next(sb_str_t *rest, sb_str_t *pair, sb_str_t *name, sb_str_t *value)
{
    const char  *p, *last, *end, *eq;

    p = rest->data;
    last = p + rest->len;

    while (p < last && (*p == ';' || is_blank(*p))) {
        p++;
    }

    if (p == last) {
        return false;
    }

    end = memchr(p, ';', (size_t) (last - p));

    if (end == NULL) {
        end = last;
    }

    *rest = sb_str(end, (size_t) (last - end));

    /* not blank at p: this ends */

    while (is_blank(end[-1])) {
        end--;
    }

    *pair = sb_str(p, (size_t) (end - p));

    eq = memchr(p, '=', pair->len);

    *value = eq ? sb_str(eq + 1, (size_t) (end - eq - 1)) : sb_str(end, 0);

    while (value->len && is_blank(value->data[0])) {
        value->data++;
        value->len--;
    }

    if (eq == NULL) {
        eq = end;
    }

    while (eq > p && is_blank(eq[-1])) {
        eq--;
    }

    *name = sb_str(p, (size_t) (eq - p));

    return true;
}


static bool
begins(sb_str_t s, const char *with, size_t n)
{
    return s.len >= n && strncasecmp(s.data, with, n) == 0;
}


bool
sb_cookie_ours(sb_str_t name)
{
    if (begins(name, "__Host-", 7)) {
        name.data += 7;
        name.len -= 7;

    } else if (begins(name, "__Secure-", 9)) {
        name.data += 9;
        name.len -= 9;
    }

    return begins(name, SB_COOKIE_SESSION, sizeof(SB_COOKIE_SESSION) - 1)
           || (name.len == sizeof(SB_COOKIE_PORT) - 1
               && begins(name, SB_COOKIE_PORT, sizeof(SB_COOKIE_PORT) - 1));
}


bool
sb_cookie_has_ours(sb_str_t header)
{
    sb_str_t  pair, name, value;

    while (sb_cookie_next(&header, &pair, &name, &value)) {
        if (sb_cookie_ours(name)) {
            return true;
        }
    }

    return false;
}


size_t
sb_cookie_strip(char *to, sb_str_t header)
{
    char        *last;
    const char  *end;
    sb_str_t     pair, name, value;

    last = to;
    end = header.data;

    while (sb_cookie_next(&header, &pair, &name, &value)) {

        if (!sb_cookie_ours(name)) {

            /* with what stood before it: no byte is copied twice, and so the
             * whole fits whatever the client puts between pairs */

            if (last != to) {
                memcpy(last, end, (size_t) (pair.data - end));
                last += pair.data - end;
            }

            memcpy(last, pair.data, pair.len);
            last += pair.len;
        }

        end = pair.data + pair.len;
    }

    return (size_t) (last - to);
}


bool
sb_cookie_foreign(sb_str_t set_cookie)
{
    bool      first;
    sb_str_t  pair, name, value;

    first = true;

    while (sb_cookie_next(&set_cookie, &pair, &name, &value)) {

        if (first) {

            /* without a name a browser keeps the value and sends it alone, so
             * that "=name=value" comes back as a cookie of that name */

            if (name.len == 0 || sb_cookie_ours(name)) {
                return true;
            }

            first = false;

        } else if (name.len == 6 && begins(name, "domain", 6)) {
            return true;
        }
    }

    return false;
}
