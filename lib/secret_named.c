/* What a command calls a credential (secret.h). */

#include "secret.h"


typedef struct {
    const char  *start, *end;
    char         before;        /* what stands before the name; 0: nothing */
    bool         quoted;        /* the name is: "name": "value" */
} sb_named_t;


/* docs/threat-model.md lists them; t/redaction.t holds it against these */

static const sb_str_t  sb_named_headers[] = {
    { "authorization", 13 },
    { "proxy-authorization", 19 },
    { "cookie", 6 },
    { "x-api-key", 9 },
    { "x-auth-token", 12 },
    { "private-token", 13 },
    { "open-sandbox-api-key", 20 },
    { "x-execd-access-token", 20 },
    { "opensandbox-secure-access", 25 },
    { "opensandbox-egress-auth", 23 }
};

static const sb_str_t  sb_named_parameters[] = {
    { "token", 5 },
    { "access_token", 12 },
    { "refresh_token", 13 },
    { "id_token", 8 },
    { "auth", 4 },
    { "api_key", 7 },
    { "apikey", 6 },
    { "api-key", 7 },
    { "key", 3 },
    { "secret", 6 },
    { "client_secret", 13 },
    { "password", 8 },
    { "sig", 3 },
    { "signature", 9 },
    { "x-amz-signature", 15 },
    { "x-amz-security-token", 20 }
};

#define sb_named_in(list, name)                                               \
    sb_named_find(list, sizeof(list) / sizeof(list[0]), name)


static bool
sb_named_find(const sb_str_t *list, size_t n, sb_str_t name)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].len == name.len && sb_ieq(list[i], name)) {
            return true;
        }
    }

    return false;
}


static bool
sb_named_blank(char c)
{
    return c == ' ' || c == '\t';
}


static bool
sb_named_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}


static bool
sb_named_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_';
}


/* The name before p, where a ":" or "=" stands. */
static sb_str_t
sb_named_before(sb_named_t *c, const char *p)
{
    const char  *end, *least;

    least = p - c->start > 32 ? p - 32 : c->start;

    while (p > least && sb_named_blank(p[-1])) {
        p--;
    }

    c->quoted = p > least && sb_named_quote(p[-1]);

    if (c->quoted) {
        p--;

        if (p > least && p[-1] == '\\') {
            p--;
        }
    }

    end = p;

    while (p > least && sb_named_letter(p[-1])) {
        p--;
    }

    c->before = p > c->start ? p[-1] : '\0';

    return sb_str(p, (size_t) (end - p));
}


/* Behind the word of a scheme ("Bearer", "Basic"), when one stands there. */
static char *
sb_named_scheme(char *p, const char *end)
{
    char  *q;

    for (q = p; q < end && ((*q >= 'a' && *q <= 'z')
                            || (*q >= 'A' && *q <= 'Z')); q++)
    {
        /* void */
    }

    if (q == p || q == end || !sb_named_blank(*q)) {
        return p;
    }

    while (q < end && sb_named_blank(*q)) {
        q++;
    }

    return q == end || sb_named_quote(*q) || *q == '\\' ? p : q;
}


static size_t
sb_named_value(char *p, const char *end, const char *stop, bool blanks)
{
    size_t  n = 0;

    if (p < end && (*p == '$' || *p == '{' || *p == '*')) {
        return 0;
    }

    for ( /* void */ ; p < end; p++) {

        if (sb_named_blank(*p)) {
            if (!blanks) {
                break;
            }

            continue;
        }

        if (*p == '\r' || *p == '\n' || *p == '\\' || sb_named_quote(*p)
            || strchr(stop, *p))
        {
            break;
        }

        *p = '*';
        n++;
    }

    return n != 0;
}


static size_t
sb_named_header(sb_named_t *c, char *p, sb_str_t name)
{
    bool  blanks;

    /* within quotes, or a line of a text: what follows a blank is of it too */

    blanks = sb_named_quote(c->before) || c->before == '\n' || c->quoted;

    while (p < c->end && sb_named_blank(*p)) {
        p++;
    }

    if (c->quoted) {
        if (p < c->end && *p == '\\') {
            p++;
        }

        if (p < c->end && sb_named_quote(*p)) {
            p++;
        }
    }

    if (name.len >= 13
        && sb_ieq(sb_str(name.data + name.len - 13, 13),
                  sb_lit("authorization")))
    {
        p = sb_named_scheme(p, c->end);
    }

    return sb_named_value(p, c->end, "", blanks);
}


/* user:PASSWORD@, behind the "//" of a URL */
static size_t
sb_named_user(char *p, const char *end)
{
    char  *colon = NULL;

    for ( /* void */ ; p < end; p++) {

        if (*p == '@') {
            return colon && colon + 1 < p
                   ? sb_named_value(colon + 1, p, "", false) : 0;
        }

        if (*p == ':' && colon == NULL) {
            colon = p;

        } else if (*p == '/' || *p == '?' || *p == '#' || *p <= ' '
                   || *p == '\\' || sb_named_quote(*p))
        {
            break;
        }
    }

    return 0;
}


size_t
sb_secrets_named(char *p, size_t n)
{
    char        *at;
    size_t       count = 0;
    sb_str_t     name;
    sb_named_t   c = { .start = p, .end = p + n };

    for (at = p; (at = memchr(at, ':', (size_t) (c.end - at))); at++) {

        if (c.end - at > 2 && at[1] == '/' && at[2] == '/') {
            count += sb_named_user(at + 3, c.end);
            continue;
        }

        name = sb_named_before(&c, at);

        if (sb_named_in(sb_named_headers, name)) {
            count += sb_named_header(&c, at + 1, name);
        }
    }

    for (at = p; (at = memchr(at, '=', (size_t) (c.end - at))); at++) {

        name = sb_named_before(&c, at);

        if ((c.before == '?' || c.before == '&') && !c.quoted
            && sb_named_in(sb_named_parameters, name))
        {
            count += sb_named_value(at + 1, c.end, "&#;)", false);
        }
    }

    return count;
}
