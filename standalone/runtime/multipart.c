#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "multipart.h"


#define RT_HEAD_MAX   (16 * 1024)
#define RT_LINE_REST  256       /* blanks behind a boundary */


/* Go's reading of the parameters of a field: one that is not well-formed makes
 * all of them void. */

static bool
rt_params_ok(const char *field)
{
    size_t       n;
    const char  *p;

    static const char  token[] = "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUV"
                                 "WXYZ^_`abcdefghijklmnopqrstuvwxyz{|}~";

    for (p = strchr(field, ';'); p != NULL && *p != '\0'; /* void */ ) {
        p += 1 + strspn(p + 1, " \t");

        if (*p == '\0') {
            break;
        }

        n = strspn(p, token);
        p += n;
        p += strspn(p, " \t");

        if (n == 0 || *p++ != '=') {
            return false;
        }

        p += strspn(p, " \t");

        if (*p == '"') {
            for (p++; *p != '\0' && *p != '"'; p++) {
                p += *p == '\\' && (p[1] == '"' || p[1] == '\\') ? 1 : 0;
            }

            if (*p++ == '\0') {
                return false;
            }

        } else {
            n = strspn(p, token);
            p += n;

            if (n == 0) {
                return false;
            }
        }

        p += strspn(p, " \t");

        if (*p != ';' && *p != '\0') {
            return false;
        }
    }

    return true;
}


/* Value of a parameter of a header field: `; name=token` or `"quoted"`.
 * Returns its length, or -1 when it is not there or does not fit. */

static int
rt_param(const char *field, const char *name, char *dst, size_t max)
{
    bool         hit;
    size_t       n, len;
    const char  *p;

    len = strlen(name);
    p = strchr(field, ';');

    while (p != NULL) {
        p += 1 + strspn(p + 1, " \t\r\n");
        hit = strncasecmp(p, name, len) == 0 && p[len] == '=';
        p += strcspn(p, "=;");

        if (*p != '=') {
            p = *p == ';' ? p : NULL;
            continue;
        }

        n = 0;
        p++;

        if (*p == '"') {
            for (p++; *p != '\0' && *p != '"'; p++) {
                if (*p == '\\' && (p[1] == '"' || p[1] == '\\')) {
                    p++;
                }

                if (hit && n < max - 1) {
                    dst[n++] = *p;
                }
            }

        } else {
            for ( /* void */ ; *p != '\0' && *p != ';' && *p != ' '; p++) {
                if (hit && n < max - 1) {
                    dst[n++] = *p;
                }
            }
        }

        if (hit) {
            dst[n] = '\0';
            return n == max - 1 ? -1 : (int) n;
        }

        p = strchr(p, ';');
    }

    return -1;
}


/* charset'language'text with percent escapes, in place.  Returns the length of
 * the text, or -1: it counts as not given, as in Go. */

static int
rt_extended(char *text)
{
    char    *p, *dst;
    size_t   n;

    n = strcspn(text, "'");

    if (!(n == 5 && strncasecmp(text, "utf-8", n) == 0)
        && !(n == 8 && strncasecmp(text, "us-ascii", n) == 0))
    {
        return -1;
    }

    p = text[n] == '\0' ? NULL : strchr(text + n + 1, '\'');

    if (p == NULL) {
        return -1;
    }

    for (p++, dst = text; *p != '\0'; p++) {

        if (*p != '%') {
            *dst++ = *p;
            continue;
        }

        if (sb_hex_value(p[1]) < 0 || sb_hex_value(p[2]) < 0) {
            return -1;
        }

        *dst++ = (char) (sb_hex_value(p[1]) * 16 + sb_hex_value(p[2]));
        p += 2;
    }

    *dst = '\0';

    return (int) (dst - text);
}


/* The filename of a part, "" without one: the extended form comes first. */

static void
rt_filename(const char *field, char *dst, size_t max)
{
    if ((rt_param(field, "filename*", dst, max) < 0 || rt_extended(dst) < 0)
        && rt_param(field, "filename", dst, max) < 0)
    {
        dst[0] = '\0';
    }
}


bool
rt_multipart_init(rt_multipart_t *m, const char *content_type,
    const rt_parts_t *parts)
{
    char  boundary[72];

    memset(m, 0, sizeof(rt_multipart_t));
    m->parts = *parts;
    m->buf.max = 1024 * 1024;
    m->state = RT_PART_FAILED;

    if (content_type == NULL
        || strncasecmp(content_type, "multipart/form-data", 19) != 0
        || !rt_params_ok(content_type)
        || rt_param(content_type, "boundary", boundary, sizeof(boundary))
           < 1)
    {
        return false;
    }

    /* the first boundary begins a line, whatever ends the one before; how its
     * own line ends decides for all others */

    snprintf(m->text, sizeof(m->text), "\r\n--%s", boundary);
    m->delim = m->text + 1;
    m->delim_len = strlen(m->delim);

    if (sb_buf_add(&m->buf, "\n", 1) != SB_OK) {
        return false;
    }

    m->state = RT_PART_PREAMBLE;

    return true;
}


static void
rt_multipart_drop(rt_multipart_t *m, size_t n)
{
    m->buf.len -= n;
    memmove(m->buf.data, m->buf.data + n, m->buf.len);
}


static bool
rt_multipart_out(rt_multipart_t *m, size_t n)
{
    bool    ok;
    size_t  skip;

    skip = m->skip < n ? m->skip : n;
    m->skip -= skip;

    ok = m->state != RT_PART_BODY || n == skip
         || m->parts.content(m->parts.data, m->buf.data + skip, n - skip);

    rt_multipart_drop(m, n);

    return ok;
}


/* Looks at what follows a delimiter: 1 next part, 2 the end, 0 more bytes are
 * needed, -1 it is no delimiter, -2 it is a broken one.  *n is the length of
 * all of it. */

static int
rt_multipart_after(rt_multipart_t *m, size_t at, size_t *n)
{
    bool         pre;
    size_t       left;
    const char  *p, *q;

    pre = m->state == RT_PART_PREAMBLE;

    p = m->buf.data + at + m->delim_len;
    left = m->buf.len - at - m->delim_len;

    if (left >= 2 && p[0] == '-' && p[1] == '-') {
        *n = m->delim_len + 2;
        return 2;
    }

    for (q = p; q < p + left && (*q == ' ' || *q == '\t'); q++) { }

    if (q - p > RT_LINE_REST) {
        return pre ? -1 : -2;
    }

    if (q < p + left && *q == '\n' && (pre || m->delim == m->text + 1)) {
        *n = m->delim_len + (size_t) (q - p) + 1;
        return 1;
    }

    if (q + 1 < p + left && q[0] == '\r' && q[1] == '\n'
        && (pre || m->delim == m->text))
    {
        if (pre) {
            m->delim = m->text;
        }

        *n = m->delim_len + (size_t) (q - p) + 2;
        m->delim_len = strlen(m->delim);
        return 1;
    }

    if (q == p + left || (q == p && left == 1 && *q == '-')
        || (q + 1 == p + left && *q == '\r'))
    {
        return 0;
    }

    return pre || (q == p && *q != '\r' && *q != '\n') ? -1 : -2;
}


/* Bytes of a part's head with the empty line behind it; 0: not all is there. */

static size_t
rt_multipart_head_len(const rt_multipart_t *m)
{
    size_t       n;
    const char  *p, *end, *lf;

    p = m->buf.data;
    end = p + m->buf.len;

    while ((lf = memchr(p, '\n', (size_t) (end - p))) != NULL) {
        n = (size_t) (lf - p);

        if (n == 0 || (n == 1 && *p == '\r')) {
            return (size_t) (lf + 1 - m->buf.data);
        }

        p = lf + 1;
    }

    return 0;
}


/* In the preamble and in a body.  1: the state changed, 0: more is needed. */

static int
rt_multipart_scan(rt_multipart_t *m)
{
    int     after;
    char   *hit;
    size_t  from, at, n;

    for (from = 0; from < m->buf.len; from = at + 1) {
        hit = memmem(m->buf.data + from, m->buf.len - from, m->delim,
                     m->delim_len);

        if (hit == NULL) {
            break;
        }

        at = (size_t) (hit - m->buf.data);
        after = rt_multipart_after(m, at, &n);

        if (after == -1) {
            continue;
        }

        if (after == -2) {
            return -1;
        }

        if (!rt_multipart_out(m, at)) {
            return -1;
        }

        if (after == 0) {
            return 0;
        }

        rt_multipart_drop(m, n);
        m->skip = 0;
        m->state = after == 2 ? RT_PART_DONE : RT_PART_HEAD;

        return 1;
    }

    if (m->buf.len > m->delim_len) {
        if (!rt_multipart_out(m, m->buf.len - m->delim_len)) {
            return -1;
        }
    }

    return 0;
}


static int
rt_multipart_head(rt_multipart_t *m)
{
    int     rc;
    char   *line, *next, name[256], filename[4096];
    size_t  n, nl, len;

    n = rt_multipart_head_len(m);

    /* of a head that comes whole no more is taken than of one in pieces */

    if (n > RT_HEAD_MAX || (n == 0 && m->buf.len > RT_HEAD_MAX)) {
        return -1;
    }

    if (n == 0) {
        return 0;
    }

    name[0] = filename[0] = '\0';
    m->buf.data[n - 1] = '\0';

    for (line = m->buf.data; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');

        if (next != NULL) {
            *next++ = '\0';
        }

        len = strlen(line);

        if (len > 0 && line[len - 1] == '\r') {
            line[len - 1] = '\0';
        }

        if (strncasecmp(line, "Content-Disposition:", 20) == 0
            && rt_params_ok(line))
        {
            if (rt_param(line, "name", name, sizeof(name)) < 0) {
                name[0] = '\0';
            }

            rt_filename(line, filename, sizeof(filename));
        }
    }

    rc = m->parts.part(m->parts.data, name, filename) ? 1 : -1;
    rt_multipart_drop(m, n);
    m->state = RT_PART_BODY;

    /* The boundary behind an empty part uses the line end of the head: give
     * every part one of its own that does not count as content. */

    nl = m->delim == m->text ? 2 : 1;

    if (sb_buf_add(&m->buf, "  ", nl) != SB_OK) {
        return -1;
    }

    memmove(m->buf.data + nl, m->buf.data, m->buf.len - nl);
    memcpy(m->buf.data, m->delim, nl);
    m->skip = nl;

    return rc;
}


bool
rt_multipart_feed(rt_multipart_t *m, const char *p, size_t n)
{
    int     rc;
    size_t  run;

    while (n > 0 && m->state != RT_PART_FAILED && m->state != RT_PART_DONE) {
        run = n < 65536 ? n : 65536;

        if (sb_buf_add(&m->buf, p, run) != SB_OK) {
            m->state = RT_PART_FAILED;
            break;
        }

        p += run;
        n -= run;

        do {
            rc = m->state == RT_PART_HEAD ? rt_multipart_head(m)
                                          : rt_multipart_scan(m);
        } while (rc == 1 && m->state != RT_PART_DONE);

        if (rc == -1) {
            m->state = RT_PART_FAILED;
        }
    }

    return m->state != RT_PART_FAILED;
}


bool
rt_multipart_done(const rt_multipart_t *m)
{
    return m->state == RT_PART_DONE;
}


void
rt_multipart_free(rt_multipart_t *m)
{
    sb_buf_free(&m->buf);
}
