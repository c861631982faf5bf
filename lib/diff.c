#include "diff.h"

#include "utf8.h"

#include <stdlib.h>


typedef struct {
    const char  *text;
    size_t      *at;            /* begin of each line; one more: the end */
    int32_t     *id;            /* equal lines have equal numbers */
    uint8_t     *changed;       /* deleted, or inserted */
    size_t       n;
} diff_side_t;

typedef struct {
    const char  *p;
    size_t       len;
    int32_t     *id;            /* where its number goes */
} diff_line_t;

typedef struct {
    diff_side_t  side[2];
    int32_t     *ahead;         /* furthest x of each diagonal, from the front */
    int32_t     *back;          /* ... and from the end */
    uint64_t     work;          /* steps that are left */
} diff_t;


bool
sb_diff_is_text(sb_str_t s)
{
    return s.len == 0
           || (memchr(s.data, '\0', s.len) == NULL && sb_utf8_valid(s));
}


/* --- lines ---------------------------------------------------------------- */

static sb_rc_t
diff_split(diff_side_t *s, sb_str_t text)
{
    size_t       n;
    const char  *p, *end;

    s->text = text.data;
    n = 0;

    if (text.len) {
        end = text.data + text.len;

        for (p = text.data; p < end; n++) {
            p = memchr(p, '\n', (size_t) (end - p));
            p = p ? p + 1 : end;
        }
    }

    s->n = n;
    s->at = malloc((n + 1) * sizeof(size_t));
    s->changed = calloc(n + 1, 1);

    if (s->at == NULL || s->changed == NULL) {
        return SB_NOMEM;
    }

    n = 0;

    if (text.len) {
        end = text.data + text.len;

        for (p = text.data; p < end; n++) {
            s->at[n] = (size_t) (p - text.data);
            p = memchr(p, '\n', (size_t) (end - p));
            p = p ? p + 1 : end;
        }
    }

    s->at[n] = text.len;

    return SB_OK;
}


static sb_str_t
diff_line(const diff_side_t *s, size_t i)
{
    return sb_str(s->text + s->at[i], s->at[i + 1] - s->at[i]);
}


static int
diff_compare(const void *a, const void *b)
{
    const diff_line_t  *x = a, *y = b;

    if (x->len != y->len) {
        return x->len < y->len ? -1 : 1;
    }

    return memcmp(x->p, y->p, x->len);
}


/* Numbers the lines of both sides that differ.  Sorted, not hashed: whoever
 * writes the files cannot make it slow. */
static sb_rc_t
diff_number(diff_t *d, size_t first, const size_t last[2])
{
    size_t        i, k, n;
    int32_t       id;
    sb_str_t      line;
    diff_line_t  *lines;

    n = last[0] - first + last[1] - first;
    lines = malloc(n * sizeof(diff_line_t));

    if (lines == NULL) {
        return SB_NOMEM;
    }

    n = 0;

    for (k = 0; k < 2; k++) {
        for (i = first; i < last[k]; i++) {
            line = diff_line(&d->side[k], i);
            lines[n].p = line.data;
            lines[n].len = line.len;
            lines[n++].id = &d->side[k].id[i - first];
        }
    }

    qsort(lines, n, sizeof(diff_line_t), diff_compare);

    for (i = 0, id = 0; i < n; i++) {
        if (i && diff_compare(&lines[i - 1], &lines[i]) != 0) {
            id++;
        }

        *lines[i].id = id;
    }

    free(lines);

    return SB_OK;
}


/* --- Myers ---------------------------------------------------------------- */

/*
 * Where a shortest way through the block crosses its middle; false when that
 * was not found within the work that is left.
 */
static bool
diff_middle(diff_t *d, const int32_t *a, int32_t n, const int32_t *b, int32_t m,
    int32_t *mx, int32_t *my)
{
    bool      odd;
    int32_t   delta, step, most, k, x, y, from;
    int32_t  *f, *r;

    delta = n - m;
    odd = delta & 1;
    most = (n + m + 1) / 2;
    f = d->ahead + most + 1;
    r = d->back + most + 1;
    f[1] = 0;
    r[1] = 0;

    for (step = 0; step <= most; step++) {

        for (k = -step; k <= step; k += 2) {
            x = k == -step || (k != step && f[k - 1] < f[k + 1])
                ? f[k + 1] : f[k - 1] + 1;
            y = x - k;
            from = x;

            while (x < n && y < m && a[x] == b[y]) {
                x++;
                y++;
            }

            f[k] = x;

            if (d->work < (uint64_t) (x - from) + 1) {
                return false;
            }

            d->work -= (uint64_t) (x - from) + 1;

            if (odd && delta - k >= -(step - 1) && delta - k <= step - 1
                && x + r[delta - k] >= n)
            {
                *mx = x;
                *my = y;
                return x <= n && y <= m;
            }
        }

        for (k = -step; k <= step; k += 2) {
            x = k == -step || (k != step && r[k - 1] < r[k + 1])
                ? r[k + 1] : r[k - 1] + 1;
            y = x - k;
            from = x;

            while (x < n && y < m && a[n - 1 - x] == b[m - 1 - y]) {
                x++;
                y++;
            }

            r[k] = x;

            if (d->work < (uint64_t) (x - from) + 1) {
                return false;
            }

            d->work -= (uint64_t) (x - from) + 1;

            if (!odd && delta - k >= -step && delta - k <= step
                && x + f[delta - k] >= n)
            {
                *mx = n - x;
                *my = m - y;
                return *mx >= 0 && *my >= 0;
            }
        }
    }

    return false;
}


/* Marks what differs in lines a0 to a1 and b0 to b1, counted from those that
 * have numbers. */
static void
diff_block(diff_t *d, size_t first, int32_t a0, int32_t a1, int32_t b0,
    int32_t b1)
{
    int32_t         x, y;
    const int32_t  *a, *b;

    a = d->side[0].id;
    b = d->side[1].id;

    for ( ;; ) {

        while (a0 < a1 && b0 < b1 && a[a0] == b[b0]) {
            a0++;
            b0++;
        }

        while (a0 < a1 && b0 < b1 && a[a1 - 1] == b[b1 - 1]) {
            a1--;
            b1--;
        }

        if (a0 == a1 || b0 == b1
            || !diff_middle(d, a + a0, a1 - a0, b + b0, b1 - b0, &x, &y)
            || (x == 0 && y == 0) || (x == a1 - a0 && y == b1 - b0))
        {
            memset(d->side[0].changed + first + a0, 1, (size_t) (a1 - a0));
            memset(d->side[1].changed + first + b0, 1, (size_t) (b1 - b0));
            return;
        }

        /* each half needs half of the steps: the depth is bounded */
        diff_block(d, first, a0, a0 + x, b0, b0 + y);

        a0 += x;
        b0 += y;
    }
}


static sb_rc_t
diff_mark(diff_t *d, const sb_diff_limits_t *limits)
{
    size_t   first, last[2], k, n, most, room;
    sb_rc_t  rc;

    last[0] = d->side[0].n;
    last[1] = d->side[1].n;
    n = last[0] < last[1] ? last[0] : last[1];

    for (first = 0; first < n; first++) {
        if (!sb_eq(diff_line(&d->side[0], first),
                   diff_line(&d->side[1], first)))
        {
            break;
        }
    }

    while (last[0] > first && last[1] > first
           && sb_eq(diff_line(&d->side[0], last[0] - 1),
                    diff_line(&d->side[1], last[1] - 1)))
    {
        last[0]--;
        last[1]--;
    }

    most = limits && limits->lines ? limits->lines : SB_DIFF_LINES;

    if (most > INT32_MAX / 4) {
        most = INT32_MAX / 4;
    }

    if (last[0] == first || last[1] == first || last[0] - first > most
        || last[1] - first > most)
    {
        for (k = 0; k < 2; k++) {
            memset(d->side[k].changed + first, 1, last[k] - first);
        }

        return SB_OK;
    }

    n = last[0] - first + last[1] - first;
    room = (n + 1) / 2 * 2 + 5;

    d->side[0].id = malloc((last[0] - first) * sizeof(int32_t));
    d->side[1].id = malloc((last[1] - first) * sizeof(int32_t));
    d->ahead = malloc(room * sizeof(int32_t));
    d->back = malloc(room * sizeof(int32_t));

    if (d->side[0].id == NULL || d->side[1].id == NULL || d->ahead == NULL
        || d->back == NULL)
    {
        return SB_NOMEM;
    }

    rc = diff_number(d, first, last);

    if (rc == SB_OK) {
        d->work = limits && limits->work ? limits->work : SB_DIFF_WORK;
        diff_block(d, first, 0, (int32_t) (last[0] - first), 0,
                   (int32_t) (last[1] - first));
    }

    return rc;
}


/* --- writing -------------------------------------------------------------- */

/* A name as git writes it: quoted when it holds what would be misread. */
static sb_rc_t
diff_name(sb_buf_t *out, const char *mark, const char *side, sb_str_t name)
{
    size_t         i, n;
    sb_rc_t        rc;
    bool           quote;
    unsigned char  c;

    if (name.data == NULL) {
        return sb_buf_printf(out, "%s /dev/null\n", mark);
    }

    quote = !sb_utf8_valid(name);

    for (i = 0; i < name.len && !quote; i++) {
        c = (unsigned char) name.data[i];
        quote = c < 0x20 || c == 0x7f || c == '"' || c == '\\';
    }

    rc = sb_buf_printf(out, "%s %s%s%s", mark, quote ? "\"" : "", side,
                       name.len && name.data[0] == '/' ? "" : "/");

    for (i = 0; i < name.len && rc == SB_OK; i += n) {
        c = (unsigned char) name.data[i];
        n = sb_utf8_char(name.data + i, name.len - i);

        if (quote && (c == '"' || c == '\\')) {
            rc = sb_buf_printf(out, "\\%c", c);

        } else if (n == 0 || c < 0x20 || c == 0x7f) {
            rc = sb_buf_printf(out, "\\%03o", c);

        } else {
            rc = sb_buf_add(out, name.data + i, n);
        }

        n = n ? n : 1;
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, quote ? sb_lit("\"\n") : sb_lit("\n"));
    }

    return rc;
}


/* One line, all of it or nothing. */
static sb_rc_t
diff_put(sb_buf_t *out, char mark, sb_str_t line)
{
    size_t   at;
    sb_rc_t  rc;

    at = out->len;
    rc = sb_buf_add_c(out, mark);

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, line);
    }

    if (rc == SB_OK && line.data[line.len - 1] != '\n') {
        rc = sb_buf_add_str(out, sb_lit("\n\\ No newline at end of file\n"));
    }

    if (rc != SB_OK) {
        out->len = at;
    }

    return rc;
}


static sb_rc_t
diff_range(sb_buf_t *out, char mark, size_t from, size_t n)
{
    if (n == 1) {
        return sb_buf_printf(out, "%c%zu", mark, from + 1);
    }

    /* of nothing: the line behind which it stands */
    return sb_buf_printf(out, "%c%zu,%zu", mark, n ? from + 1 : from, n);
}


/* Lines a0 to a1 and b0 to b1: changes with what stands around them. */
static sb_rc_t
diff_hunk(sb_buf_t *out, const diff_t *d, size_t a0, size_t a1, size_t b0,
    size_t b1)
{
    size_t              a, b, at;
    sb_rc_t             rc;
    const diff_side_t  *x, *y;

    x = &d->side[0];
    y = &d->side[1];
    at = out->len;

    rc = sb_buf_add_str(out, sb_lit("@@ "));

    if (rc == SB_OK) {
        rc = diff_range(out, '-', a0, a1 - a0);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_c(out, ' ');
    }

    if (rc == SB_OK) {
        rc = diff_range(out, '+', b0, b1 - b0);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit(" @@\n"));
    }

    if (rc != SB_OK) {
        out->len = at;
        return rc;
    }

    for (a = a0, b = b0; rc == SB_OK && (a < a1 || b < b1); /* void */ ) {

        if (a < a1 && x->changed[a]) {
            rc = diff_put(out, '-', diff_line(x, a++));

        } else if (b < b1 && y->changed[b]) {
            rc = diff_put(out, '+', diff_line(y, b++));

        } else {
            rc = diff_put(out, ' ', diff_line(x, a++));
            b++;
        }
    }

    return rc;
}


static sb_rc_t
diff_write(sb_buf_t *out, const diff_t *d)
{
    size_t              a, b, a0, b0, a1, b1, same;
    sb_rc_t             rc;
    const diff_side_t  *x, *y;

    x = &d->side[0];
    y = &d->side[1];
    rc = SB_OK;

    for (a = 0, b = 0; rc == SB_OK; /* void */ ) {

        while (a < x->n && b < y->n && !x->changed[a] && !y->changed[b]) {
            a++;
            b++;
        }

        if (a == x->n && b == y->n) {
            break;
        }

        same = a < SB_DIFF_CONTEXT ? a : SB_DIFF_CONTEXT;
        a0 = a - same;
        b0 = b - same;

        /* on to where more follows unchanged than context of two changes */

        for (same = 0, a1 = a, b1 = b; /* void */ ; /* void */ ) {

            if (a < x->n && x->changed[a]) {
                a1 = ++a;
                b1 = b;
                same = 0;

            } else if (b < y->n && y->changed[b]) {
                b1 = ++b;
                a1 = a;
                same = 0;

            } else if (a < x->n && same < 2 * SB_DIFF_CONTEXT) {
                a++;
                b++;
                same++;

            } else {
                break;
            }
        }

        same = same < SB_DIFF_CONTEXT ? same : SB_DIFF_CONTEXT;
        rc = diff_hunk(out, d, a0, a1 + same, b0, b1 + same);
    }

    return rc;
}


sb_rc_t
sb_diff(sb_buf_t *out, sb_str_t before_name, sb_str_t before,
    sb_str_t after_name, sb_str_t after, const sb_diff_limits_t *limits)
{
    size_t   max, most;
    diff_t   d;
    sb_rc_t  rc;

    if (sb_eq(before, after)) {
        return SB_OK;
    }

    memset(&d, 0, sizeof(d));

    most = limits && limits->bytes ? limits->bytes : SB_DIFF_BYTES;
    max = out->max;
    out->max = max && max < out->len + most ? max : out->len + most;

    rc = diff_split(&d.side[0], before);

    if (rc == SB_OK) {
        rc = diff_split(&d.side[1], after);
    }

    if (rc == SB_OK) {
        rc = diff_mark(&d, limits);
    }

    if (rc == SB_OK) {
        rc = diff_name(out, "---", "a", before_name);
    }

    if (rc == SB_OK) {
        rc = diff_name(out, "+++", "b", after_name);
    }

    if (rc == SB_OK) {
        rc = diff_write(out, &d);
    }

    if (max) {
        out->max = max;
    }

    free(d.side[0].at);
    free(d.side[0].id);
    free(d.side[0].changed);
    free(d.side[1].at);
    free(d.side[1].id);
    free(d.side[1].changed);
    free(d.ahead);
    free(d.back);

    return rc;
}
