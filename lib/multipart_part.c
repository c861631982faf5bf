/* Parts of an upload: their heads, metadata and files, and the pairs these
 * make. */

#include "multipart_int.h"

#include "json.h"
#include "multipart_head.h"
#include "path.h"
#include "utf8.h"

#include <stdlib.h>


sb_rc_t
sb_mp_fail(sb_multipart_t *m, sb_rc_t rc, const char *reason)
{
    m->error = rc;
    m->reason = reason;

    return rc;
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

        f->mode = sb_mode(mode);
    }

    return SB_OK;
}


static sb_rc_t
sb_mp_metadata_end(sb_multipart_t *m)
{
    size_t                members = 0;
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

        /* each is compared with all: nobody needs more than a few */

        if (rc == SB_OK && ++members > SB_MP_MEMBERS) {
            rc = sb_mp_fail(m, SB_LIMIT, "A metadata part has too many "
                            "members: send path, owner, group and mode.");
        }
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
        m->files[m->nfile - 1].offset = m->at;
        memset(&m->sniff, 0, sizeof(m->sniff));

        if (!m->limits.no_digest) {
            m->sha = sb_sha256_new();

            if (m->sha == NULL) {
                return sb_mp_fail(m, SB_NOMEM, NULL);
            }
        }
    }

    return rc;
}


sb_rc_t
sb_mp_part_end(sb_multipart_t *m)
{
    sb_multipart_file_t  *f;

    if (m->part == SB_MP_META) {
        return sb_mp_metadata_end(m);
    }

    if (m->part == SB_MP_FILE && m->limits.sniff) {
        m->files[m->nfile - 1].archive = sb_sniff_archive(&m->sniff);
    }

    if (m->part == SB_MP_FILE && m->sha) {
        f = &m->files[m->nfile - 1];
        sb_sha256_final(m->sha, f->sha256);
        m->sha = NULL;
    }

    return SB_OK;
}


sb_rc_t
sb_mp_content(sb_multipart_t *m, const char *p, size_t n)
{
    sb_rc_t  rc;

    if (n == 0) {
        return SB_OK;
    }

    if (m->part == SB_MP_FILE) {

        if (m->sha) {
            sb_sha256_add(m->sha, p, n);
        }

        if (m->limits.scan) {
            if (m->files[m->nfile - 1].size == 0) {
                memset(&m->scan, 0, sizeof(m->scan));
            }

            sb_scan_feed(&m->scan, p, n);
            m->files[m->nfile - 1].found = m->scan.found;
        }

        if (m->limits.sniff) {
            sb_sniff_feed(&m->sniff, p, n);
        }

        if (m->tap) {
            m->tap(m->tap_data, m->nfile - 1, m->files[m->nfile - 1].size, p,
                   n);
        }

        m->files[m->nfile - 1].size += n;

    } else if (m->part == SB_MP_META) {
        rc = sb_buf_add(&m->meta, p, n);

        if (rc != SB_OK) {
            return sb_mp_fail(m, rc, "A metadata part is too long: it should "
                              "hold a path, an owner, a group and a mode "
                              "only.");
        }
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
sb_rc_t
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


void
sb_mp_head_begin(sb_multipart_t *m)
{
    m->state = SB_MP_HEAD;
    m->line.len = 0;
    m->head = 0;
    m->has_disposition = false;
    m->pending = SB_MP_OTHER;
}
