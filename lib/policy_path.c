/*
 * Path patterns as .gitignore writes them, matched segment by segment against
 * normal absolute paths: "*" and "?" and "[...]" within a segment, "**" for
 * any number of segments.  Matching goes back to the last star only, so its
 * time is bounded by the product of the lengths.
 */

#include "policy_int.h"

#include <stdlib.h>


#define SB_UUID7  "<uuid7>"


/* --- reading ---------------------------------------------------------------- */

/* Counts segments and judges their text. */
static const char *
sb_pattern_fault(sb_str_t text, size_t *n)
{
    bool    inside = false;
    size_t  i, start = 0;

    *n = 0;

    for (i = 0; i <= text.len; i++) {

        if (i < text.len && (unsigned char) text.data[i] < ' ') {
            return "a path pattern holds a control character";
        }

        if (i < text.len && text.data[i] == '\\') {
            if (i + 1 == text.len) {
                return "a path pattern ends with \"\\\"";
            }

            i++;
            continue;
        }

        if (i < text.len && inside) {
            if (text.data[i] == '/') {
                return "a path pattern has a \"[\" without its \"]\"";
            }

            /* "]" right behind "[" or "[!" is itself */
            inside = text.data[i] != ']' || i <= start + 1;
            continue;
        }

        if (i < text.len && text.data[i] == '[') {
            inside = true;
            i += i + 1 < text.len && strchr("!^", text.data[i + 1]) != NULL;
            start = i;
            continue;
        }

        if (i == text.len || text.data[i] == '/') {
            (*n)++;
        }
    }

    if (inside) {
        return "a path pattern has a \"[\" without its \"]\"";
    }

    return *n > SB_POLICY_SEGMENTS ? "a path pattern has too many segments"
                                   : NULL;
}


sb_rc_t
sb_pattern_parse(sb_pattern_t **pattern, sb_str_t text, bool nocase,
    const char **why)
{
    size_t         i, n, start;
    sb_str_t       segment;
    sb_pattern_t  *p;

    *why = sb_pattern_fault(text, &n);

    if (*why) {
        return SB_ERROR;
    }

    p = calloc(1, sizeof(sb_pattern_t) + (n + 1) * sizeof(sb_str_t));
    if (p == NULL) {
        return SB_NOMEM;
    }

    p->nocase = nocase;

    if (text.len && text.data[0] == '!') {
        p->negated = true;
        text = sb_str(text.data + 1, text.len - 1);
    }

    if (text.len > 1 && text.data[text.len - 1] == '/') {
        p->directory = true;
        text.len--;
    }

    p->mounts = sb_eq(text, SB_MOUNTS);
    p->anchored = text.len && memchr(text.data, '/', text.len) != NULL;

    for (i = 0, start = 0; i <= text.len; i++) {

        if (i < text.len && text.data[i] == '\\') {
            i++;
            continue;
        }

        if (i < text.len && text.data[i] != '/') {
            continue;
        }

        segment = sb_str(text.data + start, i - start);
        start = i + 1;

        if (segment.len == 0) {
            continue;
        }

        if (sb_eq(segment, sb_lit(".")) || sb_eq(segment, sb_lit(".."))) {
            free(p);
            *why = "a path pattern has a \".\" or \"..\" segment, which no "
                   "judged path has";
            return SB_ERROR;
        }

        p->segments[p->n++] = segment;
    }

    if (p->n == 0 && !(p->anchored && !p->directory)) {
        free(p);
        *why = "a path pattern is empty";
        return SB_ERROR;
    }

    *pattern = p;

    return SB_OK;
}


/* --- one segment ------------------------------------------------------------ */

static int
sb_fold(int c, bool nocase)
{
    return nocase && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}


/* The set at p ("[" is behind), against c; *len: its length. */
static bool
sb_set_match(const char *p, const char *end, int c, bool nocase, size_t *len)
{
    bool         found = false, inverse = false;
    int          low, high;
    const char  *q = p, *first;

    if (q < end && (*q == '!' || *q == '^')) {
        inverse = true;
        q++;
    }

    for (first = q; q < end && (*q != ']' || q == first); q++) {

        if (*q == '\\' && q + 1 < end) {
            q++;
        }

        low = high = (unsigned char) *q;

        if (q + 2 < end && q[1] == '-' && q[2] != ']') {
            q += 2;
            high = (unsigned char) *q;
        }

        found |= (c >= low && c <= high)
                 || (nocase && ((sb_fold(c, true) >= sb_fold(low, true)
                                 && sb_fold(c, true) <= sb_fold(high, true))));
    }

    *len = (size_t) (q - p) + 1;

    return found != inverse;
}


/* A UUIDv7 as text in lower case: 8-4-4-4-12. */
static bool
sb_is_uuid7(const char *p, const char *end)
{
    int  i;

    if (end - p < 36) {
        return false;
    }

    for (i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (p[i] != '-') {
                return false;
            }

        } else if (!(p[i] >= '0' && p[i] <= '9')
                   && !(p[i] >= 'a' && p[i] <= 'f'))
        {
            return false;
        }
    }

    return p[14] == '7' && strchr("89ab", p[19]) != NULL;
}


static bool
sb_segment_match(sb_str_t pattern, sb_str_t text, bool nocase)
{
    bool         ok;
    size_t       n, m;
    const char  *p = pattern.data, *pe = p + pattern.len;
    const char  *t = text.data, *te = t + text.len;
    const char  *star = NULL, *from = NULL;

    for ( ;; ) {
        n = 1;
        m = 1;

        if (p == pe) {
            if (t == te) {
                return true;
            }

            ok = false;

        } else if (*p == '*') {
            star = ++p;
            from = t;
            continue;

        } else if (*p == '<' && (size_t) (pe - p) >= sizeof(SB_UUID7) - 1
                   && memcmp(p, SB_UUID7, sizeof(SB_UUID7) - 1) == 0)
        {
            ok = sb_is_uuid7(t, te);
            n = sizeof(SB_UUID7) - 1;
            m = 36;

        } else if (t == te) {
            ok = false;

        } else if (*p == '?') {
            ok = true;

        } else if (*p == '[') {
            ok = sb_set_match(p + 1, pe, (unsigned char) *t, nocase, &n);
            n++;

        } else {
            n += *p == '\\';
            ok = sb_fold((unsigned char) p[n - 1], nocase)
                 == sb_fold((unsigned char) *t, nocase);
        }

        if (ok) {
            p += n;
            t += m;
            continue;
        }

        if (star == NULL || from == te) {
            return false;
        }

        p = star;
        t = ++from;
    }
}


bool
sb_policy_glob(sb_str_t glob, sb_str_t text)
{
    size_t  g = 0, t = 0, star = SIZE_MAX, from = 0;

    for ( ;; ) {

        if (g < glob.len && glob.data[g] == '*') {
            star = ++g;
            from = t;

        } else if (g < glob.len && t < text.len
                   && (glob.data[g] == '?' || glob.data[g] == text.data[t]))
        {
            g++;
            t++;

        } else if (g == glob.len && t == text.len) {
            return true;

        } else if (star == SIZE_MAX || from == text.len) {
            return false;

        } else {
            g = star;
            t = ++from;
        }
    }
}


/* --- paths ------------------------------------------------------------------ */

static bool
sb_is_deep(sb_str_t segment)
{
    return sb_eq(segment, sb_lit("**"));
}


/* All segments of the pattern against the first of n, as many as it takes: the
 * leftmost place for what follows a star is as good as any other. */
static bool
sb_segments_match(const sb_pattern_t *p, const sb_str_t *segments, size_t n)
{
    size_t  i = 0, k = 0, star = SIZE_MAX, from = 0;

    for ( ;; ) {

        if (i == p->n) {
            return true;
        }

        if (sb_is_deep(p->segments[i])) {

            if (i + 1 == p->n) {
                /* all that is inside, and so at least one */
                return k < n;
            }

            star = ++i;
            from = k;

        } else if (k < n
                   && sb_segment_match(p->segments[i], segments[k], p->nocase))
        {
            i++;
            k++;

        } else if (star == SIZE_MAX || from >= n) {
            return false;

        } else {
            i = star;
            k = ++from;
        }
    }
}


bool
sb_pattern_match(const sb_pattern_t *p, const sb_path_parts_t *path,
    sb_at_e at)
{
    size_t  k, n = path->n;

    if (p->n == 0 || n == 0) {
        return p->n == n;
    }

    /* the file itself is no directory */
    n -= p->directory && at == SB_AT_FILE;

    if (p->anchored) {
        return sb_segments_match(p, path->segments, n);
    }

    for (k = 0; k < n; k++) {
        if (sb_segments_match(p, &path->segments[k], 1)) {
            return true;
        }
    }

    return false;
}


bool
sb_pattern_below(const sb_pattern_t *p, const sb_path_parts_t *path)
{
    size_t  i;

    if (!p->anchored || path->n >= p->n) {
        return false;
    }

    for (i = 0; i < path->n; i++) {

        /* within "**" nobody knows how much of the pattern is left */

        if (sb_is_deep(p->segments[i])
            || !sb_segment_match(p->segments[i], path->segments[i], p->nocase))
        {
            return false;
        }
    }

    return true;
}


bool
sb_mounts_match(const sb_str_t *mounts, size_t n, const sb_path_parts_t *path,
    bool tree)
{
    bool      same;
    size_t    i, k, at, end;
    sb_str_t  m;

    for (i = 0; i < n; i++) {
        m = mounts[i];
        same = true;

        for (k = 0, at = 0; ; at = end) {

            while (at < m.len && m.data[at] == '/') {
                at++;
            }

            for (end = at; end < m.len && m.data[end] != '/'; end++) {
                /* void */
            }

            if (sb_eq(sb_str(m.data + at, end - at), sb_lit("."))) {
                continue;
            }

            if (at == end || k == path->n) {
                break;
            }

            if (!sb_eq(sb_str(m.data + at, end - at), path->segments[k++])) {
                same = false;
                break;
            }
        }

        /* the mount ended first (one at the root is none), or the path did */

        if (same && (at == end ? k > 0 : tree)) {
            return true;
        }
    }

    return false;
}
