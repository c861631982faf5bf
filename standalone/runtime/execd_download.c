#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "execd.h"
#include "url.h"


/* The first satisfiable range of a Range header.  1: found, 0: none of them
 * can be satisfied, -1: malformed. */

static int
rt_range(const char *h, int64_t size, int64_t *start, int64_t *len)
{
    int          found;
    char        *end;
    int64_t      a, b, from, n;
    const char  *p;

    if (strncmp(h, "bytes=", 6) != 0) {
        return -1;
    }

    found = 0;

    for (p = h + 6; *p != '\0'; p += *p == ',' ? 1 : 0) {
        p += strspn(p, " \t");

        if (*p == ',' || *p == '\0') {
            continue;
        }

        if (*p == '-') {
            a = strtoll(p + 1, &end, 10);

            if (end == p + 1 || a < 0) {
                return -1;
            }

            n = a < size ? a : size;
            from = size - n;

        } else {
            a = strtoll(p, &end, 10);

            if (end == p || a < 0) {
                return -1;
            }

            p = end + strspn(end, " \t");

            if (*p++ != '-') {
                return -1;
            }

            p += strspn(p, " \t");
            from = a;
            n = size - a;
            end = (char *) (uintptr_t) p;

            if (*p >= '0' && *p <= '9') {
                b = strtoll(p, &end, 10);

                if (b < a) {
                    return -1;
                }

                n = b - a + 1;
            }
        }

        p = end + strspn(end, " \t");

        if (*p != ',' && *p != '\0') {
            return -1;
        }

        if (from < size && !found) {
            *start = from;
            *len = n < size - from ? n : size - from;
            found = 1;
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
rt_disposition(rt_req_t *r, const char *path)
{
    size_t       i;
    sb_buf_t     b;
    const char  *base;

    base = strrchr(path, '/');
    base = base ? base + 1 : path;

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
    rt_reply(r, 200, b.data ? b.data : "", b.len);
    sb_buf_free(&b);
}


/* 1: a number of 1 or more, 0: not given, -1: wrong. */

static int
rt_query_count(rt_req_t *r, const char *name, int64_t *out)
{
    int    rc;
    char  *s, *end;

    s = rt_query_get(r->query, name);

    if (s == NULL || s[0] == '\0') {
        free(s);
        return 0;
    }

    errno = 0;
    *out = strtoll(s, &end, 10);
    rc = errno == 0 && *end == '\0' && *out >= 1 && *out < INT32_MAX ? 1 : -1;
    free(s);

    return rc;
}


static bool
rt_not_modified(rt_req_t *r, int64_t mtime)
{
    const char  *since;
    struct tm    tm;

    since = rt_header(r, "If-Modified-Since");

    if (since == NULL || rt_header(r, "If-None-Match") != NULL) {
        return false;
    }

    memset(&tm, 0, sizeof(tm));

    return strptime(since, "%a, %d %b %Y %H:%M:%S GMT", &tm) != NULL
           && mtime <= timegm(&tm);
}


static void
rt_download_send(rt_req_t *r, const char *path, int fd,
    const struct stat *st)
{
    int          found;
    char         date[32];
    int64_t      start, len;
    const char  *range;

    start = len = 0;
    range = rt_header(r, "Range");
    found = range ? rt_range(range, st->st_size, &start, &len) : 1;
    rt_http_date(date, st->st_mtime);
    rt_disposition(r, path);

    if (S_ISDIR(st->st_mode) || found != 1) {
        close(fd);
        rt_out(r, "Content-Type", found == 0 ? "text/plain; charset=utf-8"
                                             : "application/octet-stream");

        if (found == 0) {
            rt_outf(r, "Content-Range", "bytes */%lld",
                    (long long) st->st_size);
            rt_out(r, "Last-Modified", date);
            rt_out(r, "X-Content-Type-Options", "nosniff");
        }

        rt_reply_stream(r, found != 1 ? 416 : 200,
                        S_ISDIR(st->st_mode) ? (uint64_t) INT64_MAX - 1
                                             : (uint64_t) st->st_size,
                        rt_cut, NULL, NULL);
        return;
    }

    rt_out(r, "Content-Type", "application/octet-stream");

    if (range != NULL) {
        rt_outf(r, "Content-Range", "bytes %lld-%lld/%lld",
                (long long) start, (long long) (start + len - 1),
                (long long) st->st_size);
        rt_reply_fd(r, 206, fd, (uint64_t) start, (uint64_t) len);
        return;
    }

    rt_out(r, "Last-Modified", date);

    if (rt_not_modified(r, st->st_mtime)) {
        close(fd);
        rt_reply(r, 304, "", 0);
        return;
    }

    rt_out(r, "Accept-Ranges", "bytes");
    rt_reply_fd(r, 200, fd, 0, (uint64_t) st->st_size);
}


void
rt_files_download(rt_req_t *r)
{
    int          fd, ho, hl;
    char        *given, *path;
    int64_t      offset, limit;
    struct stat  st;

    given = rt_query_get(r->query, "path");

    if (given == NULL || given[0] == '\0') {
        rt_fail(r, 400, "MISSING_QUERY", "missing query parameter 'path'");
        free(given);
        return;
    }

    offset = 1;
    limit = -1;
    ho = rt_query_count(r, "offset", &offset);
    hl = rt_query_count(r, "limit", &limit);
    path = rt_expand(given, false);
    fd = path ? open(path, O_RDONLY|O_CLOEXEC) : -1;

    if (fd == -1 || fstat(fd, &st) == -1) {
        rt_fail_errno(r, errno, given);
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
    free(given);
}
