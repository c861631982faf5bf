#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "execd.h"
#include "url.h"


/* A number of a Range header: [*p, end) without blanks around.  false: it is
 * none, or too large. */

static bool
rt_range_number(const char *p, const char *end, int64_t *out)
{
    char    text[32];
    size_t  n;

    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    while (p < end && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }

    n = (size_t) (end - p);

    if (n == 0 || n >= sizeof(text)) {
        return false;
    }

    memcpy(text, p, n);
    text[n] = '\0';

    return rt_atoi(text, out) && *out >= 0;
}


typedef struct {
    int64_t  start;
    int64_t  len;
    bool     any;               /* one was given */
    bool     suffix;            /* bytes=-0: nothing, from the end on */
} rt_range_t;


/* The first range that can be had.  1: found, 0: there is none, -1: the header
 * is malformed. */

static int
rt_range(const char *h, int64_t size, rt_range_t *range)
{
    bool         found;
    int64_t      a, b, from, n;
    const char  *p, *end, *dash;

    memset(range, 0, sizeof(rt_range_t));

    if (strncmp(h, "bytes=", 6) != 0) {
        return -1;
    }

    found = false;

    for (p = h + 6; *p != '\0'; p = *end == ',' ? end + 1 : end) {
        end = p + strcspn(p, ",");

        if (strspn(p, " \t") >= (size_t) (end - p)) {
            continue;
        }

        dash = memchr(p, '-', (size_t) (end - p));

        if (dash == NULL) {
            return -1;
        }

        range->any = true;

        if (strspn(p, " \t") == (size_t) (dash - p)) {
            if (!rt_range_number(dash + 1, end, &a)) {
                return -1;
            }

            n = a < size ? a : size;
            from = size - n;
            range->suffix = true;

        } else {
            if (!rt_range_number(p, dash, &a)) {
                return -1;
            }

            from = a;
            n = size - a;

            if (strspn(dash + 1, " \t") != (size_t) (end - dash - 1)) {
                if (!rt_range_number(dash + 1, end, &b) || b < a) {
                    return -1;
                }

                n = b - a < INT64_MAX ? b - a + 1 : b - a;
            }
        }

        if (from < size && !found) {
            range->start = from;
            range->len = n < size - from ? n : size - from;
            found = true;
        }
    }

    return found;
}


/* Go announces the length of the file, cannot send its error text under it and
 * cuts the connection. */

static ssize_t
rt_cut(void *ctx, char *buf, size_t max)
{
    (void) ctx;
    (void) buf;
    (void) max;

    return -1;
}


static void
rt_disposition(rt_req_t *r, char *path)
{
    size_t       i, n;
    sb_buf_t     b;
    const char  *base;

    n = strlen(path);

    while (n > 1 && path[n - 1] == '/') {
        path[--n] = '\0';
    }

    base = strrchr(path, '/');
    base = base && base[1] != '\0' ? base + 1 : path;

    for (i = 0; base[i] != '\0'; i++) {
        if ((unsigned char) base[i] > 127) {
            break;
        }
    }

    if (base[i] == '\0') {
        rt_outf(r, "Content-Disposition", "attachment; filename=\"%s\"",
                base);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = 65536;
    rt_escape(&b, sb_str(base, strlen(base)), "$&+:=@", false);
    rt_outf(r, "Content-Disposition",
            "attachment; filename=\"%s\"; filename*=UTF-8''%s",
            sb_buf_cstr(&b), sb_buf_cstr(&b));
    sb_buf_free(&b);
}


/* Lines offset .. offset + limit - 1 of a text, joined by line feeds. */

static void
rt_download_lines(rt_req_t *r, int fd, int64_t offset, int64_t limit)
{
    char      *line;
    FILE      *f;
    size_t     cap;
    int64_t    n;
    ssize_t    len;
    sb_buf_t   b;

    f = fdopen(fd, "r");

    if (f == NULL) {
        close(fd);
        rt_fail(r, 500, "RUNTIME_ERROR", "out of memory");
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX * 4;
    line = NULL;
    cap = 0;

    for (n = 1; (len = getline(&line, &cap, f)) > 0; n++) {
        if (n < offset) {
            continue;
        }

        if (limit >= 0 && n >= offset + limit) {
            break;
        }

        if (line[len - 1] == '\n') {
            len--;
        }

        if (len > 0 && line[len - 1] == '\r') {
            len--;
        }

        if ((b.len > 0 || n > offset) && sb_buf_add_c(&b, '\n') != SB_OK) {
            break;
        }

        if (sb_buf_add(&b, line, (size_t) len) != SB_OK) {
            break;
        }
    }

    free(line);
    fclose(f);
    rt_out(r, "Content-Type", "text/plain; charset=utf-8");
    rt_send(r, 200, &b);
}


/* 1: a number of 1 or more, 0: not given, -1: wrong. */

static int
rt_query_count(rt_req_t *r, const char *name, int64_t *out)
{
    int    rc;
    char  *s;

    s = rt_query_get(r->query, name);

    if (s == NULL || s[0] == '\0') {
        free(s);
        return 0;
    }

    rc = rt_atoi(s, out) && *out >= 1 && *out < INT32_MAX ? 1 : -1;
    free(s);

    return rc;
}


/* The time of a header; false: it is not there or none. */

static bool
rt_header_time(rt_req_t *r, const char *name, int64_t *t)
{
    const char  *value;
    struct tm    tm;

    value = rt_header(r, name);
    memset(&tm, 0, sizeof(tm));

    if (value == NULL
        || strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &tm) == NULL)
    {
        return false;
    }

    *t = timegm(&tm);

    return true;
}


/* The conditions of a request as Go checks them for a file without an ETag: 0
 * go on, else 304 or 412. */

static unsigned
rt_conditions(rt_req_t *r, int64_t mtime)
{
    int64_t      t;
    const char  *tags;

    tags = rt_header(r, "If-Match");

    if (tags != NULL) {
        if (tags[strspn(tags, " \t,")] != '*') {
            return 412;
        }

    } else if (rt_header_time(r, "If-Unmodified-Since", &t) && mtime > t) {
        return 412;
    }

    tags = rt_header(r, "If-None-Match");

    if (tags != NULL) {
        return tags[strspn(tags, " \t,")] == '*' ? 304 : 0;
    }

    return rt_header_time(r, "If-Modified-Since", &t) && mtime <= t ? 304 : 0;
}


/* What Go's server of files makes of a range that execd could not take. */

static int
rt_download_odd(rt_req_t *r, int fd, const struct stat *st,
    const rt_range_t *range)
{
    int64_t  t;

    if ((rt_header(r, "If-Range") != NULL
         && (!rt_header_time(r, "If-Range", &t) || t != st->st_mtime))
        || !range->any || (st->st_size == 0 && !range->suffix))
    {
        return 0;
    }

    if (range->suffix) {
        rt_out(r, "Accept-Ranges", "bytes");
        rt_out(r, "Content-Type", "application/octet-stream");
        rt_outf(r, "Content-Range", "bytes %lld-%lld/%lld",
                (long long) st->st_size, (long long) st->st_size - 1,
                (long long) st->st_size);
        rt_reply(r, 206, "", 0);

    } else {
        rt_out(r, "Content-Type", "text/plain; charset=utf-8");
        rt_outf(r, "Content-Range", "bytes */%lld",
                (long long) st->st_size);
        rt_out(r, "X-Content-Type-Options", "nosniff");
        rt_reply_stream(r, 416, (uint64_t) st->st_size, rt_cut, NULL, NULL);
    }

    close(fd);

    return 1;
}


static void
rt_download_send(rt_req_t *r, char *path, int fd, const struct stat *st)
{
    int          found;
    char         date[32];
    unsigned     status;
    rt_range_t   range;
    const char  *header;

    header = rt_header(r, "Range");
    found = header ? rt_range(header, st->st_size, &range) : 0;
    rt_disposition(r, path);

    if (found == 1 && !S_ISDIR(st->st_mode)) {
        rt_out(r, "Content-Type", "application/octet-stream");
        rt_outf(r, "Content-Range", "bytes %lld-%lld/%lld",
                (long long) range.start,
                (long long) (range.start + range.len - 1),
                (long long) st->st_size);
        rt_reply_fd(r, 206, fd, (uint64_t) range.start,
                    (uint64_t) range.len);
        return;
    }

    if (found == -1) {
        close(fd);
        rt_out(r, "Content-Type", "application/octet-stream");
        rt_reply_stream(r, 416, (uint64_t) st->st_size, rt_cut, NULL, NULL);
        return;
    }

    rt_http_date(date, st->st_mtime);
    rt_out(r, "Last-Modified", date);
    status = rt_conditions(r, st->st_mtime);

    if (status == 304) {
        close(fd);
        rt_reply(r, 304, "", 0);
        return;
    }

    if (status == 412) {
        close(fd);
        rt_out(r, "Content-Type", "application/octet-stream");
        rt_reply_stream(r, 412, (uint64_t) st->st_size, rt_cut, NULL, NULL);
        return;
    }

    if (header != NULL && rt_download_odd(r, fd, st, &range)) {
        return;
    }

    rt_out(r, "Content-Type", "application/octet-stream");
    rt_out(r, "Accept-Ranges", "bytes");

    if (S_ISDIR(st->st_mode)) {
        close(fd);
        rt_reply_stream(r, 200, (uint64_t) INT64_MAX, rt_cut, NULL, NULL);
        return;
    }

    rt_reply_fd(r, 200, fd, 0, (uint64_t) st->st_size);
}


void
rt_files_download(rt_req_t *r)
{
    int          fd, ho, hl;
    char        *path;
    int64_t      offset, limit;
    sb_buf_t     given;
    struct stat  st;

    if (!rt_query_value(r->query, "path", &given) || given.len == 0) {
        rt_fail(r, 400, "MISSING_QUERY", "missing query parameter 'path'");
        sb_buf_free(&given);
        return;
    }

    offset = 1;
    limit = -1;
    ho = rt_query_count(r, "offset", &offset);
    hl = rt_query_count(r, "limit", &limit);
    path = rt_expand(sb_str(given.data, given.len), false);
    fd = path ? open(path, O_RDONLY|O_CLOEXEC) : -1;

    if (fd == -1 || fstat(fd, &st) == -1) {
        rt_fail_errno(r, errno, given.data);
        close(fd);

    } else if (ho < 0 || hl < 0) {
        close(fd);
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "offset and limit must be line numbers, 1 or more");

    } else if ((ho || hl) && rt_header(r, "Range") != NULL) {
        close(fd);
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "offset and limit do not go together with Range");

    } else if (ho || hl) {
        rt_download_lines(r, fd, offset, limit);

    } else {
        rt_download_send(r, path, fd, &st);
    }

    free(path);
    sb_buf_free(&given);
}
