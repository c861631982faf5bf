/* Applies a unified difference: what lib/diff makes has to lead from the one
 * text to the other. */

#ifndef PATCH_H_INCLUDED
#define PATCH_H_INCLUDED

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sb.h"


static inline sb_str_t
patch_line(sb_str_t *s)
{
    sb_str_t     line;
    const char  *nl;

    nl = s->len ? memchr(s->data, '\n', s->len) : NULL;
    line = sb_str(s->data, nl ? (size_t) (nl + 1 - s->data) : s->len);
    s->data += line.len;
    s->len -= line.len;

    return line;
}


/* Takes lines from `before` up to number n (from 0) over as they are. */
static inline void
patch_until(sb_buf_t *out, sb_str_t *before, size_t *at, size_t n)
{
    while (*at < n && before->len) {
        (void) sb_buf_add_str(out, patch_line(before));
        (*at)++;
    }
}


/* What comes of `before`; false: it is no difference of that text.  `changed`
 * counts the lines with a sign. */
static inline bool
patch_apply(sb_buf_t *out, sb_str_t before, sb_str_t diff, size_t *changed)
{
    char      head[128];
    size_t    at, from, n, to, m;
    sb_str_t  line, body, old;

    at = 0;
    *changed = 0;

    if (diff.len == 0) {
        patch_until(out, &before, &at, SIZE_MAX);
        return true;
    }

    line = patch_line(&diff);

    if (line.len < 4 || memcmp(line.data, "--- ", 4) != 0) {
        return false;
    }

    line = patch_line(&diff);

    if (line.len < 4 || memcmp(line.data, "+++ ", 4) != 0) {
        return false;
    }

    while (diff.len) {
        line = patch_line(&diff);

        if (line.len >= sizeof(head)) {
            return false;
        }

        memcpy(head, line.data, line.len);
        head[line.len] = '\0';
        n = 1;
        m = 1;

        if (sscanf(head, "@@ -%zu,%zu +%zu,%zu @@", &from, &n, &to, &m) != 4
            && (m = 1, sscanf(head, "@@ -%zu,%zu +%zu @@", &from, &n, &to) != 3)
            && (n = 1, sscanf(head, "@@ -%zu +%zu,%zu @@", &from, &to, &m) != 3)
            && (m = 1, sscanf(head, "@@ -%zu +%zu @@", &from, &to) != 2))
        {
            return false;
        }

        patch_until(out, &before, &at, n ? from - 1 : from);

        while (n || m) {
            line = patch_line(&diff);

            if (line.len < 2) {
                return false;
            }

            body = sb_str(line.data + 1, line.len - 1);

            if (diff.len && diff.data[0] == '\\') {
                (void) patch_line(&diff);
                body.len--;
            }

            if (line.data[0] != '+') {
                old = patch_line(&before);
                at++;

                if (n-- == 0 || !sb_eq(old, body)) {
                    return false;
                }
            }

            if (line.data[0] != '-') {
                if (m-- == 0) {
                    return false;
                }

                (void) sb_buf_add_str(out, body);
            }

            *changed += line.data[0] != ' ';
        }
    }

    patch_until(out, &before, &at, SIZE_MAX);

    return true;
}

#endif /* PATCH_H_INCLUDED */
