/* Patterns of names as execd has them: *, ?, [class], {a,b}, !(not), \escape,
 * by characters of UTF-8.  A name holds no slash, so ** is *, and a slash in a
 * pattern fits only where ** stands for no directory at all. */

#include <stdlib.h>

#include "execd.h"
#include "utf8.h"


#define RT_GLOB_MAX    4096     /* bytes of a pattern */
#define RT_GLOB_DEPTH  64       /* of alternatives in each other */
#define RT_GLOB_PARTS  10000    /* that alternatives make of one; with more of
                                   them, as {a,b}{a,b}... has, nothing fits */


/* Length of one character; a byte that is none counts as one. */

static size_t
rt_char(const char *p)
{
    size_t  n;

    n = sb_utf8_char(p, strnlen(p, 4));

    return n == 0 ? 1 : n;
}


static uint32_t
rt_code(const char *p)
{
    size_t  n;

    n = sb_utf8_char(p, strnlen(p, 4));

    return n == 0 ? 0xfffd : sb_utf8_code(p, n);
}


/* The end of a class that begins behind `[`, or NULL. */

static const char *
rt_class_end(const char *p)
{
    p += *p == '^' || *p == '!' ? 1 : 0;

    if (*p == ']') {
        return NULL;
    }

    for ( /* void */ ; *p != '\0'; p++) {
        if (*p == ']') {
            return p;
        }

        if (*p == '\\' && *++p == '\0') {
            break;
        }
    }

    return NULL;
}


/* The closing one of a pair that was opened before p, or NULL; *comma gets the
 * first comma at its level. */

static const char *
rt_pair_end(const char *p, char open, char close, const char **comma)
{
    unsigned  depth;

    depth = 1;
    *comma = NULL;

    for ( /* void */ ; *p != '\0'; p++) {
        if (*p == '\\') {
            if (*++p == '\0') {
                break;
            }

        } else if (*p == open) {
            depth++;

        } else if (*p == close && --depth == 0) {
            return p;

        } else if (*p == ',' && depth == 1 && *comma == NULL) {
            *comma = p;
        }
    }

    return NULL;
}


bool
rt_glob_valid(const char *p)
{
    unsigned     depth;
    const char  *comma;

    if (strlen(p) > RT_GLOB_MAX) {
        return false;
    }

    depth = 0;

    for ( /* void */ ; *p != '\0'; p++) {

        switch (*p) {

        case '\\':
            if (*++p == '\0') {
                return false;
            }

            break;

        case '[':
            p = rt_class_end(p + 1);

            if (p == NULL) {
                return false;
            }

            break;

        case '{':
            if (++depth > RT_GLOB_DEPTH) {
                return false;
            }

            break;

        case '}':
            if (depth-- == 0) {
                return false;
            }

            break;

        case '!':
            if (p[1] != '(' || rt_pair_end(p + 2, '(', ')', &comma) == NULL) {
                return false;
            }

            break;
        }
    }

    return depth == 0;
}


static bool
rt_class(const char *p, const char *end, uint32_t c)
{
    bool      negate, hit;
    uint32_t  a, b;

    negate = *p == '^' || *p == '!';
    p += negate ? 1 : 0;
    hit = false;

    while (p < end && !hit) {
        p += *p == '\\' ? 1 : 0;
        a = b = rt_code(p);
        p += rt_char(p);

        if (*p == '-' && p + 1 < end) {
            p++;
            p += *p == '\\' ? 1 : 0;
            b = rt_code(p);
            p += rt_char(p);
        }

        hit = a <= c && c <= b;
    }

    return hit != negate;
}


/* One character of the pattern against one of the name; *next is behind the
 * former.  A slash fits nothing. */

static bool
rt_one(const char *p, const char *name, const char **next)
{
    const char  *end;

    if (*p == '?') {
        *next = p + 1;
        return true;
    }

    if (*p == '[') {
        end = rt_class_end(p + 1);
        *next = end + 1;
        return rt_class(p + 1, end, rt_code(name));
    }

    p += *p == '\\' ? 1 : 0;
    *next = p + rt_char(p);

    return *p != '\0' && *p != '/' && rt_char(p) == rt_char(name)
           && memcmp(p, name, rt_char(p)) == 0;
}


/* A pattern without alternatives and negations. */

static bool
rt_simple(const char *p, const char *name)
{
    const char  *star, *from, *next;

    while (strncmp(p, "**/", 3) == 0) {
        p += 3;
    }

    star = from = NULL;

    while (*name != '\0') {

        if (*p == '*') {
            while (*p == '*') {
                p++;
            }

            star = p;
            from = name;

        } else if (rt_one(p, name, &next)) {
            p = next;
            name += rt_char(name);

        } else if (star != NULL) {
            from += rt_char(from);
            name = from;
            p = star;

        } else {
            return false;
        }
    }

    return strcmp(p, "/**") == 0 || p[strspn(p, "*")] == '\0';
}


/* Of what alternatives and negations make of a pattern: how much of it is still
 * looked at, and whether a part of it is no pattern, as of `{[,]}`. */

typedef struct {
    unsigned  left;
    bool      bad;
} rt_glob_t;


/* Where the first alternatives or the first negation begin, or the end. */

static const char *
rt_glob_first(rt_glob_t *g, const char *p)
{
    for ( /* void */ ; *p != '\0' && *p != '{' && *p != '!'; p++) {
        if (*p == '[') {
            p = rt_class_end(p + 1);

        } else if (*p == '\\') {
            p = p[1] == '\0' ? NULL : p + 1;
        }

        if (p == NULL) {
            g->bad = true;
            return NULL;
        }
    }

    return p;
}


static bool
rt_glob_match(rt_glob_t *g, const char *pattern, const char *name)
{
    bool         fits;
    char        *one;
    const char  *p, *from, *to, *comma, *end;

    p = rt_glob_first(g, pattern);

    if (p == NULL || *p == '\0') {
        return p != NULL && rt_simple(pattern, name);
    }

    from = *p == '!' ? p + 2 : p + 1;

    end = *p == '{' ? rt_pair_end(from, '{', '}', &comma)
          : p[1] == '(' ? rt_pair_end(from, '(', ')', &comma) : NULL;

    one = end != NULL ? malloc(strlen(pattern) + 1) : NULL;

    if (one == NULL) {
        g->bad = true;
        return false;
    }

    fits = false;

    for ( ;; ) {
        if (g->left-- == 0) {
            g->left = 0;
            g->bad = true;
        }

        to = *p == '{' && comma != NULL ? comma : end;
        memcpy(one, pattern, (size_t) (p - pattern));
        memcpy(one + (p - pattern), from, (size_t) (to - from));
        strcpy(one + (p - pattern) + (to - from), end + 1);
        fits = !g->bad && rt_glob_match(g, one, name);

        if (fits || g->bad || to == end) {
            break;
        }

        from = to + 1;
        (void) rt_pair_end(from, '{', '}', &comma);
    }

    free(one);

    return *p == '!' ? !fits : fits;
}


bool
rt_glob(const char *pattern, const char *name)
{
    bool       fits;
    rt_glob_t  g;

    g.left = RT_GLOB_PARTS;
    g.bad = false;
    fits = rt_glob_match(&g, pattern, name);

    return fits && !g.bad;
}
