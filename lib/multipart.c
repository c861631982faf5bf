/*
 * Uploads as Go's mime/multipart and execd read them, without keeping a file:
 * only a piece of a delimiter is carried from one feed to the next.
 */

#include "multipart.h"

#include "digest.h"
#include "json.h"
#include "multipart_head.h"
#include "path.h"

#include <stdlib.h>


#define SB_MP_FILES     10000
#define SB_MP_METADATA  (64 * 1024)
#define SB_MP_HEADERS   (16 * 1024)
#define SB_MP_LINE      4000        /* Go's reader gives up at 4096 */
#define SB_MP_PADDING   256         /* blanks behind a boundary */
#define SB_MP_TEXTS     (8 * 1024 * 1024)   /* paths and names together */
#define SB_MP_FILENAME  1024        /* kept of one */
#define SB_MP_BOUNDARY  70


typedef enum {
    SB_MP_PREAMBLE = 0,
    SB_MP_HEAD,             /* header lines of a part */
    SB_MP_BODY,
    SB_MP_TAIL,             /* behind a whole delimiter in a body */
    SB_MP_DASH,             /* ... and one "-" */
    SB_MP_PAD,              /* behind a boundary: blanks, then CR LF */
    SB_MP_CR,               /* ... behind the CR */
    SB_MP_EPILOGUE
} sb_mp_state_e;

typedef enum {
    SB_MP_OTHER = 0,
    SB_MP_META,
    SB_MP_FILE
} sb_mp_part_e;


struct sb_multipart_s {
    sb_mp_state_e         state;
    sb_rc_t               error;
    const char           *reason;
    sb_multipart_limits_t limits;

    char                  delim[SB_MP_BOUNDARY + 4];    /* CR LF "--" ... */
    size_t                dlen;
    size_t                matched;      /* bytes of delim seen */
    size_t                assumed;      /* of these, not in the input: a part
                                           may begin with its delimiter */
    size_t                padding;
    bool                  final;        /* "--" followed the boundary */

    sb_buf_t              line;         /* of the preamble or a head */
    size_t                head;         /* bytes of this head */
    bool                  has_disposition;

    sb_mp_part_e          part;
    sb_buf_t              meta;
    sb_sha256_t          *sha;

    sb_multipart_file_t  *files;
    size_t                room;         /* in files */
    size_t                nmeta, nfile;
    sb_mp_part_e          pending;      /* of the head being read */
    size_t                texts;        /* bytes of all texts */
};


static sb_rc_t
sb_mp_fail(sb_multipart_t *m, sb_rc_t rc, const char *reason)
{
    m->error = rc;
    m->reason = reason;

    return rc;
}


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


/* --- pairs ---------------------------------------------------------------- */

/* Makes the i-th pair exist. */
static sb_rc_t
sb_mp_reserve(sb_multipart_t *m, size_t i)
{
    void    *p;
    size_t   n;

    if (i >= m->limits.max_files) {
        return sb_mp_fail(m, SB_LIMIT, "The upload has too many files: send "
                          "them in several requests.");
    }

    if (i < m->room) {
        return SB_OK;
    }

    n = m->room ? m->room * 2 : 4;

    p = realloc(m->files, n * sizeof(sb_multipart_file_t));
    if (p == NULL) {
        return sb_mp_fail(m, SB_NOMEM, NULL);
    }

    m->files = p;
    memset(m->files + m->room, 0,
           (n - m->room) * sizeof(sb_multipart_file_t));

    for ( /* void */ ; m->room < n; m->room++) {
        m->files[m->room].mode = -1;
    }

    return SB_OK;
}


static sb_rc_t
sb_mp_copy(sb_multipart_t *m, sb_str_t *to, sb_str_t from)
{
    char  *p;

    if (from.len > SB_MP_TEXTS - m->texts) {
        return sb_mp_fail(m, SB_LIMIT, "The names in the upload are too long "
                          "together: send it in several requests.");
    }

    p = malloc(from.len + 1);
    if (p == NULL) {
        return sb_mp_fail(m, SB_NOMEM, NULL);
    }

    if (from.len) {
        memcpy(p, from.data, from.len);
    }

    p[from.len] = '\0';
    m->texts += from.len;
    *to = sb_str(p, from.len);

    return SB_OK;
}


/* --- metadata ------------------------------------------------------------- */

static const char *const  sb_mp_known[] = { "path", "owner", "group", "mode" };


static sb_rc_t
sb_mp_key(sb_multipart_t *m, const sb_jv_t *v)
{
    size_t          i;
    sb_str_t        name;
    const sb_jv_t  *other;

    for (i = 0; i < v->key.len; i++) {
        if ((uint8_t) v->key.data[i] >= 0x80) {
            return sb_mp_fail(m, SB_AMBIGUOUS, "A metadata part has a member "
                              "with letters outside ASCII, which may be taken "
                              "for another: remove it.");
        }
    }

    for (i = 0; i < sizeof(sb_mp_known) / sizeof(sb_mp_known[0]); i++) {
        name = sb_str(sb_mp_known[i], strlen(sb_mp_known[i]));

        if (sb_ieq(v->key, name) && !sb_eq(v->key, name)) {
            return sb_mp_fail(m, SB_AMBIGUOUS, "A metadata part has a member "
                              "that differs from a known one only in letter "
                              "case: write it in small letters.");
        }
    }

    for (other = v->next; other; other = other->next) {
        if (sb_eq(other->key, v->key)) {
            return sb_mp_fail(m, SB_AMBIGUOUS, "A metadata part has a member "
                              "twice: send it once.");
        }
    }

    return SB_OK;
}


static sb_rc_t
sb_mp_text(sb_multipart_t *m, const sb_jv_t *root, const char *key,
    sb_str_t *to)
{
    const sb_jv_t  *v;

    v = sb_jv_get(root, key);

    if (v == NULL || v->kind == SB_JSON_NULL) {
        return SB_OK;
    }

    if (v->kind != SB_JSON_STRING) {
        return sb_mp_fail(m, SB_ERROR, "A metadata part has a path, owner or "
                          "group that is no text: correct it.");
    }

    return sb_mp_copy(m, to, v->text);
}


static sb_rc_t
sb_mp_values(sb_multipart_t *m, sb_multipart_file_t *f, const sb_jv_t *root)
{
    int64_t         mode;
    sb_rc_t         rc;
    const sb_jv_t  *v;

    rc = sb_mp_text(m, root, "path", &f->path);

    if (rc == SB_OK) {
        rc = sb_mp_text(m, root, "owner", &f->owner);
    }

    if (rc == SB_OK) {
        rc = sb_mp_text(m, root, "group", &f->group);
    }

    if (rc != SB_OK) {
        return rc;
    }

    if (f->path.len == 0) {
        return sb_mp_fail(m, SB_ERROR, "A metadata part names no path: add "
                          "\"path\".");
    }

    f->flags = sb_path_flags(f->path);

    if (f->flags & SB_PATH_NUL) {
        return sb_mp_fail(m, SB_AMBIGUOUS, "The path in a metadata part holds "
                          "a NUL byte: remove it.");
    }

    v = sb_jv_get(root, "mode");

    if (v && v->kind != SB_JSON_NULL) {
        if (!sb_jv_int(v, &mode)) {
            return sb_mp_fail(m, SB_ERROR, "A metadata part has a mode that is "
                              "no integer: write it like 644.");
        }

        f->mode = mode >= 0 && mode <= 7777 ? (int32_t) mode : -1;
    }

    return SB_OK;
}


static sb_rc_t
sb_mp_metadata_end(sb_multipart_t *m)
{
    sb_rc_t               rc;
    sb_jdoc_t            *d;
    const sb_jv_t        *root, *v;
    sb_multipart_file_t  *f;
    sb_json_limits_t      limits = { 0, m->limits.max_metadata };

    d = sb_jdoc_parse(sb_str(m->meta.data, m->meta.len), &limits, &rc);
    m->meta.len = 0;

    if (d == NULL) {
        if (rc == SB_AMBIGUOUS) {
            return sb_mp_fail(m, rc, "Bytes follow the JSON object in a "
                              "metadata part: remove them.");
        }

        return sb_mp_fail(m, rc == SB_NOMEM || rc == SB_LIMIT ? rc : SB_ERROR,
                          "A metadata part is not strict JSON: correct it.");
    }

    root = sb_jdoc_root(d);
    rc = SB_OK;

    if (root->kind != SB_JSON_OPEN_OBJECT) {
        rc = sb_mp_fail(m, SB_ERROR, "A metadata part is no JSON object: send "
                        "{\"path\": ...}.");
    }

    for (v = root->child; rc == SB_OK && v; v = v->next) {
        rc = sb_mp_key(m, v);
    }

    if (rc == SB_OK) {
        f = &m->files[m->nmeta];
        m->nmeta++;
        f->has_metadata = true;
        rc = sb_mp_values(m, f, root);
    }

    sb_jdoc_free(d);

    return rc;
}


/* --- parts ---------------------------------------------------------------- */

static sb_rc_t
sb_mp_part_begin(sb_multipart_t *m)
{
    sb_rc_t  rc = SB_OK;

    if (!m->has_disposition) {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A part of the upload has no "
                          "Content-Disposition: add it.");
    }

    m->part = m->pending;
    m->state = SB_MP_BODY;
    m->matched = 2;
    m->assumed = 2;

    if (m->part == SB_MP_META) {
        rc = sb_mp_reserve(m, m->nmeta);

    } else if (m->part == SB_MP_FILE) {
        m->sha = sb_sha256_new();

        if (m->sha == NULL) {
            return sb_mp_fail(m, SB_NOMEM, NULL);
        }
    }

    return rc;
}


static sb_rc_t
sb_mp_part_end(sb_multipart_t *m)
{
    sb_multipart_file_t  *f;

    if (m->part == SB_MP_META) {
        return sb_mp_metadata_end(m);
    }

    if (m->part == SB_MP_FILE) {
        f = &m->files[m->nfile - 1];
        sb_sha256_final(m->sha, f->sha256);
        m->sha = NULL;
    }

    return SB_OK;
}


static sb_rc_t
sb_mp_content(sb_multipart_t *m, const char *p, size_t n)
{
    if (n == 0) {
        return SB_OK;
    }

    if (m->part == SB_MP_FILE) {
        sb_sha256_add(m->sha, p, n);
        m->files[m->nfile - 1].size += n;

    } else if (m->part == SB_MP_META
               && sb_buf_add(&m->meta, p, n) != SB_OK)
    {
        return sb_mp_fail(m, SB_LIMIT, "A metadata part is too long: it should "
                          "hold a path, an owner, a group and a mode only.");
    }

    return SB_OK;
}


/* --- heads ---------------------------------------------------------------- */

static sb_rc_t
sb_mp_disposition(sb_multipart_t *m, sb_str_t value)
{
    sb_rc_t            rc;
    const char        *why;
    sb_disposition_t   d;

    if (m->has_disposition) {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A part of the upload has two "
                          "Content-Disposition lines: send one.");
    }

    m->has_disposition = true;

    rc = sb_disposition_read(&d, value, &why);

    if (rc != SB_OK) {
        return sb_mp_fail(m, rc, why);
    }

    m->pending = SB_MP_OTHER;

    if (sb_eq(d.name, sb_lit("metadata"))) {
        m->pending = SB_MP_META;

    } else if (sb_eq(d.name, sb_lit("file"))) {
        m->pending = SB_MP_FILE;

    } else {
        return SB_OK;
    }

    /* execd looks at parts with a file name only: a plain field is a decoy */

    if (!d.has_filename) {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A metadata or file part has no "
                          "filename: add one, upstream ignores it otherwise.");
    }

    if (m->pending == SB_MP_META) {
        return SB_OK;
    }

    rc = sb_mp_reserve(m, m->nfile);

    if (rc == SB_OK) {
        m->nfile++;
        m->files[m->nfile - 1].has_file = true;

        d.filename.len = d.filename.data
                         ? sb_utf8_cut(d.filename, SB_MP_FILENAME) : 0;

        rc = sb_mp_copy(m, &m->files[m->nfile - 1].filename, d.filename);
    }

    return rc;
}


/* A whole header line without its CR LF. */
static sb_rc_t
sb_mp_header(sb_multipart_t *m, sb_str_t line)
{
    sb_str_t     name, value;
    const char  *colon;

    if (memchr(line.data, '\r', line.len) || memchr(line.data, '\0', line.len))
    {
        return sb_mp_fail(m, SB_ERROR, "A header of a part holds a control "
                          "character: remove it.");
    }

    if (line.data[0] == ' ' || line.data[0] == '\t') {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A header of a part is folded over "
                          "several lines: send it on one.");
    }

    colon = memchr(line.data, ':', line.len);

    if (colon == NULL) {
        return sb_mp_fail(m, SB_ERROR, "A header line of a part has no colon: "
                          "correct it.");
    }

    name = sb_str(line.data, (size_t) (colon - line.data));
    value = sb_str(colon + 1, line.len - name.len - 1);

    if (!sb_token_chars(name)) {
        return sb_mp_fail(m, SB_ERROR, "A header of a part has a malformed "
                          "name: correct it.");
    }

    while (value.len && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.len--;
    }

    while (value.len && (value.data[value.len - 1] == ' '
                         || value.data[value.len - 1] == '\t'))
    {
        value.len--;
    }

    if (sb_ieq(name, sb_lit("Content-Transfer-Encoding"))) {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A part has a "
                          "Content-Transfer-Encoding, which upstream may or "
                          "may not undo: remove it.");
    }

    if (sb_ieq(name, sb_lit("Content-Disposition"))) {
        return sb_mp_disposition(m, value);
    }

    return SB_OK;
}


/* A line of a head, with its LF. */
static sb_rc_t
sb_mp_head_line(sb_multipart_t *m)
{
    sb_rc_t   rc;
    sb_str_t  line = sb_str(m->line.data, m->line.len);

    m->line.len = 0;

    if (line.len < 2 || line.data[line.len - 2] != '\r') {
        return sb_mp_fail(m, SB_AMBIGUOUS, "A header of a part ends in a bare "
                          "line feed: end lines with CR LF.");
    }

    line.len -= 2;

    if (line.len) {
        rc = sb_mp_header(m, line);
    } else {
        rc = sb_mp_part_begin(m);
    }

    return rc;
}


static void
sb_mp_head_begin(sb_multipart_t *m)
{
    m->state = SB_MP_HEAD;
    m->line.len = 0;
    m->head = 0;
    m->has_disposition = false;
    m->pending = SB_MP_OTHER;
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


/* Finds the next delimiter, or the beginning of one at the end of the input.  A
 * CR occurs in it only at its beginning: so the last CR is the only place where
 * one may have begun. */
static const char *
sb_mp_search(sb_multipart_t *m, const char *p, const char *end)
{
    size_t       n = (size_t) (end - p);
    const char  *q;

    q = memmem(p, n, m->delim, m->dlen);

    if (q) {
        m->matched = m->dlen;
        return q;
    }

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
