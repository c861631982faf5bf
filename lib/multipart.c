/*
 * Uploads as Go's mime/multipart and execd read them, without keeping a file:
 * only a piece of a delimiter is carried from one feed to the next.
 */

#include "multipart_int.h"

#include <stdlib.h>


#define SB_MP_CRS  128      /* in one piece of input */


sb_multipart_t *
sb_multipart_new(sb_str_t boundary, const sb_multipart_limits_t *limits)
{
    sb_multipart_t  *m;

    if (boundary.len == 0 || boundary.len > SB_MP_BOUNDARY) {
        return NULL;
    }

    m = calloc(1, sizeof(sb_multipart_t));
    if (m == NULL) {
        return NULL;
    }

    if (limits) {
        m->limits = *limits;
    }

    if (m->limits.max_files == 0) {
        m->limits.max_files = SB_MP_FILES;
    }

    if (m->limits.max_metadata == 0) {
        m->limits.max_metadata = SB_MP_METADATA;
    }

    if (m->limits.max_headers == 0) {
        m->limits.max_headers = SB_MP_HEADERS;
    }

    m->line.max = m->limits.max_headers > SB_MP_LINE ? m->limits.max_headers
                                                     : SB_MP_LINE;
    m->meta.max = m->limits.max_metadata;

    memcpy(m->delim, "\r\n--", 4);
    memcpy(m->delim + 4, boundary.data, boundary.len);
    m->dlen = boundary.len + 4;

    return m;
}


void
sb_multipart_free(sb_multipart_t *m)
{
    size_t  i;

    if (m == NULL) {
        return;
    }

    for (i = 0; i < m->nmeta || i < m->nfile; i++) {
        free((void *) (uintptr_t) m->files[i].path.data);
        free((void *) (uintptr_t) m->files[i].owner.data);
        free((void *) (uintptr_t) m->files[i].group.data);
        free((void *) (uintptr_t) m->files[i].filename.data);
    }

    sb_sha256_free(m->sha);
    sb_buf_free(&m->line);
    sb_buf_free(&m->meta);
    free(m->files);
    free(m);
}


void
sb_multipart_tap(sb_multipart_t *m, sb_multipart_tap_pt tap, void *data)
{
    m->tap = tap;
    m->tap_data = data;
}


const char *
sb_multipart_reason(const sb_multipart_t *m)
{
    return m->reason;
}


size_t
sb_multipart_count(const sb_multipart_t *m)
{
    return m->nmeta > m->nfile ? m->nmeta : m->nfile;
}


const sb_multipart_file_t *
sb_multipart_file(const sb_multipart_t *m, size_t i)
{
    return i < sb_multipart_count(m) ? &m->files[i] : NULL;
}


/* A line before the first part, with its LF.  Go takes no other line for a
 * boundary here, and neither do we. */
static sb_rc_t
sb_mp_preamble_line(sb_multipart_t *m)
{
    bool         final;
    sb_str_t     rest = sb_str(m->line.data, m->line.len);
    const char  *dash = m->delim + 2;
    size_t       n = m->dlen - 2;

    m->line.len = 0;

    if (rest.len < n || memcmp(rest.data, dash, n) != 0) {
        return SB_OK;
    }

    rest.data += n;
    rest.len -= n;

    final = rest.len >= 2 && memcmp(rest.data, "--", 2) == 0;

    if (final) {
        rest.data += 2;
        rest.len -= 2;
    }

    while (rest.len && (rest.data[0] == ' ' || rest.data[0] == '\t')) {
        rest.data++;
        rest.len--;
    }

    if (sb_eq(rest, sb_lit("\r\n"))) {
        if (final) {
            m->state = SB_MP_EPILOGUE;
        } else {
            sb_mp_head_begin(m);
        }

        return SB_OK;
    }

    if (sb_eq(rest, sb_lit("\n"))) {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A boundary of the upload ends in a "
                          "bare line feed: end lines with CR LF.");
    }

    return SB_OK;
}


/* --- bytes ---------------------------------------------------------------- */

static sb_rc_t
sb_mp_lines(sb_multipart_t *m, const char **pos, const char *end)
{
    bool         head = m->state == SB_MP_HEAD;
    size_t       n;
    const char  *p = *pos, *lf;

    lf = memchr(p, '\n', (size_t) (end - p));
    n = (size_t) ((lf ? lf + 1 : end) - p);

    if (head) {
        m->head += n;

        if (m->head > m->limits.max_headers) {
            return sb_mp_fail(m, SB_LIMIT, "The headers of a part are too "
                              "long: shorten its filename.");
        }

    } else if (m->line.len + n > SB_MP_LINE) {
        return sb_mp_fail(m, SB_ERROR, "The upload does not begin with its "
                          "boundary: check the Content-Type.");
    }

    if (sb_buf_add(&m->line, p, n) != SB_OK) {
        return sb_mp_fail(m, SB_NOMEM, NULL);
    }

    *pos = p + n;
    m->at = m->fed + (uint64_t) (*pos - m->input);

    if (lf == NULL) {
        return SB_OK;
    }

    return head ? sb_mp_head_line(m) : sb_mp_preamble_line(m);
}


/* The delimiter bytes matched so far are content after all. */
static sb_rc_t
sb_mp_not_delimiter(sb_multipart_t *m)
{
    size_t  from = m->assumed, n = m->matched;

    m->matched = 0;
    m->assumed = 0;

    return n > from ? sb_mp_content(m, m->delim + from, n - from) : SB_OK;
}


/* A CR is rare in most files and found by memchr() at many bytes a step; in
 * those where it is not, memmem() is the faster one. */
static const char *
sb_mp_find(sb_multipart_t *m, const char *p, const char *end)
{
    size_t       n = m->dlen;
    unsigned     crs;

    for (crs = 0; crs < SB_MP_CRS; crs++) {

        if ((size_t) (end - p) < n) {
            return NULL;
        }

        p = memchr(p, '\r', (size_t) (end - p) - n + 1);

        if (p == NULL || memcmp(p, m->delim, n) == 0) {
            return p;
        }

        p++;
    }

    return memmem(p, (size_t) (end - p), m->delim, n);
}


/* Finds the next delimiter, or the beginning of one at the end of the input.  A
 * CR occurs in it only at its beginning: so the last CR is the only place where
 * one may have begun. */
static const char *
sb_mp_search(sb_multipart_t *m, const char *p, const char *end)
{
    size_t       n;
    const char  *q;

    q = sb_mp_find(m, p, end);

    if (q) {
        m->matched = m->dlen;
        return q;
    }

    n = (size_t) (end - p);

    if (n >= m->dlen) {
        p = end - m->dlen + 1;
        n = m->dlen - 1;
    }

    q = memrchr(p, '\r', n);

    if (q == NULL || memcmp(q, m->delim, (size_t) (end - q)) != 0) {
        return end;
    }

    m->matched = (size_t) (end - q);

    return q;
}


static sb_rc_t
sb_mp_body(sb_multipart_t *m, const char **pos, const char *end)
{
    sb_rc_t      rc;
    const char  *p = *pos, *q;

    if (m->matched == 0) {
        q = sb_mp_search(m, p, end);

        *pos = q + m->matched;
        rc = sb_mp_content(m, p, (size_t) (q - p));

    } else {
        while (p < end && m->matched < m->dlen && *p == m->delim[m->matched]) {
            p++;
            m->matched++;
        }

        *pos = p;
        rc = SB_OK;

        if (p < end && m->matched < m->dlen) {
            rc = sb_mp_not_delimiter(m);
        }
    }

    if (rc == SB_OK && m->matched == m->dlen) {
        m->state = SB_MP_TAIL;
    }

    return rc;
}


static sb_rc_t
sb_mp_delimiter(sb_multipart_t *m, bool final)
{
    m->state = SB_MP_PAD;
    m->matched = 0;
    m->assumed = 0;
    m->padding = 0;
    m->final = final;

    return sb_mp_part_end(m);
}


/* One byte behind a whole delimiter. */
static sb_rc_t
sb_mp_tail(sb_multipart_t *m, const char **pos)
{
    char     c = **pos;
    sb_rc_t  rc;

    if (m->state == SB_MP_TAIL) {
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            return sb_mp_delimiter(m, false);
        }

        if (c == '-') {
            m->state = SB_MP_DASH;
            (*pos)++;

            return SB_OK;
        }

        /* a longer word that begins with the boundary: content */

        m->state = SB_MP_BODY;

        return sb_mp_not_delimiter(m);
    }

    if (c == '-') {
        (*pos)++;
        return sb_mp_delimiter(m, true);
    }

    m->state = SB_MP_BODY;
    rc = sb_mp_not_delimiter(m);

    return rc == SB_OK ? sb_mp_content(m, "-", 1) : rc;
}


/* One byte of the rest of a boundary's line. */
static sb_rc_t
sb_mp_pad(sb_multipart_t *m, char c)
{
    if (m->state == SB_MP_PAD) {
        if ((c == ' ' || c == '\t') && ++m->padding <= SB_MP_PADDING) {
            return SB_OK;
        }

        if (c == '\r') {
            m->state = SB_MP_CR;
            return SB_OK;
        }

        if (c == '\n') {
            return sb_mp_fail(m, SB_AMBIGUOUS, "A boundary of the upload ends "
                              "in a bare line feed: end lines with CR LF.");
        }

    } else if (c == '\n') {
        if (m->final) {
            m->state = SB_MP_EPILOGUE;
        } else {
            sb_mp_head_begin(m);
        }

        return SB_OK;
    }

    return sb_mp_fail(m, SB_ERROR, "Text follows a boundary of the upload on "
                      "its line: choose a boundary that the files do not "
                      "hold.");
}


sb_rc_t
sb_multipart_feed(sb_multipart_t *m, const char *p, size_t n)
{
    sb_rc_t      rc = SB_OK;
    const char  *end = p + n;

    if (m->error != SB_OK) {
        return m->error;
    }

    m->input = p;

    while (rc == SB_OK && p < end) {

        switch (m->state) {

        case SB_MP_PREAMBLE:
        case SB_MP_HEAD:
            rc = sb_mp_lines(m, &p, end);
            break;

        case SB_MP_BODY:
            rc = sb_mp_body(m, &p, end);
            break;

        case SB_MP_TAIL:
        case SB_MP_DASH:
            rc = sb_mp_tail(m, &p);
            break;

        case SB_MP_PAD:
        case SB_MP_CR:
            rc = sb_mp_pad(m, *p++);
            break;

        case SB_MP_EPILOGUE:
            return SB_OK;
        }
    }

    m->fed += n;

    if (rc != SB_OK) {
        return rc;
    }

    return m->state == SB_MP_EPILOGUE ? SB_OK : SB_AGAIN;
}


sb_rc_t
sb_multipart_finish(sb_multipart_t *m)
{
    if (m->error != SB_OK) {
        return m->error;
    }

    /* the last line end may be missing */

    if (m->state == SB_MP_PAD && m->final) {
        m->state = SB_MP_EPILOGUE;
    }

    if (m->state != SB_MP_EPILOGUE) {
        return sb_mp_fail(m, SB_ERROR, "The upload is incomplete, its closing "
                          "boundary never came: send it again.");
    }

    if (m->nmeta == 0 || m->nmeta != m->nfile) {
        return sb_mp_fail(m, SB_ERROR, "The upload does not have one metadata "
                          "part for each file part: send them in pairs.");
    }

    return SB_OK;
}
