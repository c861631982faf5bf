#include "versions.h"

#include "contents.h"
#include "diff.h"
#include "digest.h"
#include "id.h"
#include "json.h"
#include "operation_table.h"
#include "rows_end.h"
#include "stats.h"
#include "versions_find.h"
#include "versions_parts.h"

#include <stdio.h>
#include <stdlib.h>


/* One operation. */
typedef struct {
    store_db_t        *db;
    rows_op_t         *op;
    sb_op_e            type;
    bool               succeeded;
    bool               stateless;   /* nothing is known of its paths */
    uint64_t           cursor;
    versions_self_t    self;
    versions_parts_t   parts;
    sb_buf_t           edit;        /* body of a file.replace */
    uint64_t           ready_us;    /* 0: it could change files at once */
} versions_op_t;

/* One file of it. */
typedef struct {
    int64_t      n;
    char        *path;
    char        *old_path;
    int64_t      size;              /* -1: not known */
    char         sha256[CONTENTS_HEX + 1];      /* empty: not known */
    const char  *before;            /* NULL: does not apply */
    int64_t      before_size;
    char         before_sha256[CONTENTS_HEX + 1];
    const char  *content;
    sb_buf_t     text[2];           /* before, after */
    bool         held[2];           /* these are whole */
    sb_buf_t     diff;
    bool         has_diff;
    bool         diff_cut;
} versions_file_t;


/* --- one file ------------------------------------------------------------- */

/* Puts together what has come of one of its files. */
static int
versions_gather(versions_op_t *v, int64_t n, sb_content_e kind, sb_buf_t *out,
    versions_parts_e *state)
{
    return versions_parts_gather(&v->parts, v->db, v->op->id, n, kind, out,
                                 state);
}


static sb_str_t
versions_text(const versions_file_t *f, unsigned which)
{
    return sb_str(f->text[which].len ? f->text[which].data : "",
                  f->text[which].len);
}


static void
versions_hash(char hex[CONTENTS_HEX + 1], sb_str_t s)
{
    uint8_t  digest[32];

    sb_sha256(digest, s);
    sb_hex(hex, digest, sizeof(digest));
}


/* What passed of the file as it is now. */
static int
versions_after(versions_op_t *v, versions_file_t *f)
{
    int               rc;
    char              hex[CONTENTS_HEX + 1];
    versions_parts_e  state;

    f->content = "unavailable";

    if (f->size > SB_CONTENT_MAX) {
        f->content = "too_large";
        stats_add(STATS_CONTENTS_MISSED, 1);
        return SQLITE_OK;
    }

    rows_try(rc, versions_gather(v, f->n, SB_CONTENT_AFTER, &f->text[1],
                                 &state));

    versions_hash(hex, versions_text(f, 1));

    /* an empty file has no pieces */

    if (state == VERSIONS_PARTS_HOLE || f->size < 0
        || (size_t) f->size != f->text[1].len
        || (f->sha256[0] && strcmp(f->sha256, hex) != 0)
        || (f->size == 0 && v->parts.npieces == 0 && !v->parts.stored
            && f->sha256[0] == '\0'))
    {
        stats_add(STATS_CONTENTS_MISSED, 1);
        return SQLITE_OK;
    }

    (void) strcpy(f->sha256, hex);
    f->held[1] = true;
    f->content = "kept";

    return contents_put(v->db, f->sha256, versions_text(f, 1), v->cursor);
}


/* Reads a content that is known by its digest. */
static int
versions_load(versions_op_t *v, versions_file_t *f, unsigned which,
    const char *sha256)
{
    int  rc;

    f->text[which].len = 0;
    f->text[which].max = SB_CONTENT_MAX;

    rc = contents_get(v->db->db, sha256, &f->text[which]);
    f->held[which] = rc == SQLITE_OK;

    /* not kept, or what is kept is not it: it is not there */
    return rc == SQLITE_NOTFOUND || rc == SQLITE_CORRUPT
           || rc == SQLITE_TOOBIG ? SQLITE_OK : rc;
}


/* Does what was read of the file, before the operation went on, count? */
static int
versions_fetched(versions_op_t *v, int64_t n, bool *counts)
{
    int               rc;
    sb_buf_t          none;
    versions_parts_e  state;

    memset(&none, 0, sizeof(none));
    rc = versions_gather(v, n, SB_CONTENT_VOID, &none, &state);
    sb_buf_free(&none);
    *counts = rc == SQLITE_OK && state == VERSIONS_PARTS_NONE;

    return rc;
}


/* How the file stood before. */
static int
versions_before(versions_op_t *v, versions_file_t *f)
{
    int               rc;
    bool              counts;
    version_t         found;
    versions_parts_e  state;

    rows_try(rc, versions_fetched(v, f->n, &counts));
    rows_try(rc, versions_gather(v, f->n, SB_CONTENT_ABSENT, &f->text[0],
                                 &state));

    if (counts && state == VERSIONS_PARTS_WHOLE) {
        f->before = "absent";
        f->held[0] = true;
        return SQLITE_OK;
    }

    rows_try(rc, versions_gather(v, f->n, SB_CONTENT_BEFORE, &f->text[0],
                                 &state));

    if (counts && state == VERSIONS_PARTS_WHOLE) {
        f->before = "fetched";
        f->before_size = (int64_t) f->text[0].len;
        versions_hash(f->before_sha256, versions_text(f, 0));
        f->held[0] = true;

        return contents_put(v->db, f->before_sha256, versions_text(f, 0),
                            v->cursor);
    }

    f->before = "unavailable";

    if (v->stateless) {
        return SQLITE_OK;
    }

    rows_try(rc, versions_find(v->db, &v->self, f->path, f->n, &found));

    if (found.state == VERSION_UNKNOWN) {
        return SQLITE_OK;
    }

    if (found.state == VERSION_ABSENT) {
        f->before = found.assumed ? "assumed" : "absent";
        f->held[0] = true;
        return SQLITE_OK;
    }

    f->before = found.assumed ? "assumed" : "history";
    f->before_size = found.size;
    (void) strcpy(f->before_sha256, found.sha256);

    return versions_load(v, f, 0, f->before_sha256);
}


/* What execd makes of a text: all that is `old` becomes `new`. */
static sb_rc_t
versions_replace(sb_buf_t *out, sb_str_t text, sb_str_t old, sb_str_t new)
{
    sb_rc_t      rc;
    const char  *p;

    out->len = 0;
    out->max = SB_CONTENT_MAX;
    rc = SB_OK;

    while (rc == SB_OK && text.len) {
        p = memmem(text.data, text.len, old.data, old.len);

        if (p == NULL) {
            return sb_buf_add_str(out, text);
        }

        rc = sb_buf_add(out, text.data, (size_t) (p - text.data));

        if (rc == SB_OK) {
            rc = sb_buf_add_str(out, new);
        }

        text.len -= (size_t) (p - text.data) + old.len;
        text.data = p + old.len;
    }

    return rc;
}


/* What stands in it now is known without having passed. */
static int
versions_made(versions_op_t *v, versions_file_t *f)
{
    f->size = (int64_t) f->text[1].len;
    versions_hash(f->sha256, versions_text(f, 1));
    f->held[1] = true;
    f->content = "kept";

    return contents_put(v->db, f->sha256, versions_text(f, 1), v->cursor);
}


/* A text was replaced in the file: known only if it was held before. */
static int
versions_edited(versions_op_t *v, versions_file_t *f)
{
    int                rc;
    sb_jdoc_t         *doc;
    const sb_jv_t     *edit, *old, *new;
    versions_parts_e   state;

    sb_json_limits_t  limits = { 0, SB_CONTENT_MAX };

    f->content = "unavailable";

    if (!f->held[0] || f->before_sha256[0] == '\0'
        || strcmp(f->before, "assumed") == 0)
    {
        return SQLITE_OK;
    }

    rows_try(rc, versions_gather(v, 0, SB_CONTENT_EDIT, &v->edit, &state));

    if (state != VERSIONS_PARTS_WHOLE || v->edit.len == 0) {
        return SQLITE_OK;
    }

    doc = sb_jdoc_parse(sb_str(v->edit.data, v->edit.len), &limits, NULL);
    if (doc == NULL) {
        return SQLITE_OK;
    }

    edit = sb_jv_get(sb_jdoc_root(doc), f->path);
    old = sb_jv_get(edit, "old");
    new = sb_jv_get(edit, "new");

    if (old && new && sb_jv_str(edit, "old").len
        && versions_replace(&f->text[1], versions_text(f, 0),
                            sb_jv_str(edit, "old"), sb_jv_str(edit, "new"))
           == SB_OK)
    {
        rc = versions_made(v, f);
    }

    sb_jdoc_free(doc);

    return rc;
}


/* The file came from another path. */
static int
versions_moved(versions_op_t *v, versions_file_t *f)
{
    int               rc;
    bool              counts;
    version_t         found;
    versions_parts_e  state;

    if (f->old_path == NULL) {
        return SQLITE_OK;
    }

    rows_try(rc, versions_fetched(v, f->n, &counts));
    rows_try(rc, versions_gather(v, f->n, SB_CONTENT_AFTER, &f->text[1],
                                 &state));

    if (counts && state == VERSIONS_PARTS_WHOLE) {
        return versions_made(v, f);
    }

    if (v->stateless) {
        return SQLITE_OK;
    }

    rows_try(rc, versions_find(v->db, &v->self, f->old_path, f->n, &found));

    if (found.state == VERSION_KNOWN && !found.assumed) {
        f->size = found.size;
        (void) strcpy(f->sha256, found.sha256);
        f->content = "kept";
        rc = versions_load(v, f, 1, f->sha256);
        f->content = f->held[1] ? "kept" : "unavailable";
    }

    return rc;
}


static int
versions_diff(versions_op_t *v, versions_file_t *f)
{
    sb_rc_t   rc;
    sb_str_t  none, path;

    if (!f->held[0] || !(f->held[1] || v->type == SB_OP_FILE_DELETE)
        || !sb_diff_is_text(versions_text(f, 0))
        || !sb_diff_is_text(versions_text(f, 1)))
    {
        return SQLITE_OK;
    }

    none = sb_str(NULL, 0);
    path = sb_str(f->path, strlen(f->path));

    rc = sb_diff(&f->diff, f->before_sha256[0] ? path : none,
                 versions_text(f, 0),
                 v->type == SB_OP_FILE_DELETE ? none : path,
                 versions_text(f, 1), NULL);

    if (rc == SB_NOMEM) {
        return SQLITE_NOMEM;
    }

    f->has_diff = true;
    f->diff_cut = rc != SB_OK;

    return SQLITE_OK;
}


static void
versions_bind_hash(sqlite3_stmt *st, int n, const char *sha256)
{
    if (sha256[0]) {
        sqlite3_bind_text(st, n, sha256, -1, SQLITE_STATIC);
    }
}


static void
versions_bind_size(sqlite3_stmt *st, int n, int64_t size)
{
    if (size >= 0) {
        sqlite3_bind_int64(st, n, size);
    }
}


static int
versions_write(versions_op_t *v, versions_file_t *f)
{
    int            rc;
    sqlite3_stmt  *st;

    st = store_stmt(v->db, ROWS_VERSION_SET, "update gateway_files set"
                    " before = ?3, before_size = ?4, before_sha256 = ?5,"
                    " content = ?6, size = coalesce(?7, size),"
                    " sha256 = coalesce(?8, sha256)"
                    " where event_id = ?1 and n = ?2");
    if (st == NULL) {
        return sqlite3_errcode(v->db->db);
    }

    store_bind_id(st, 1, v->op->id);
    sqlite3_bind_int64(st, 2, f->n);
    sqlite3_bind_text(st, 3, f->before, -1, SQLITE_STATIC);
    versions_bind_size(st, 4, f->before_size);
    versions_bind_hash(st, 5, f->before_sha256);
    sqlite3_bind_text(st, 6, f->content, -1, SQLITE_STATIC);
    versions_bind_size(st, 7, f->size);
    versions_bind_hash(st, 8, f->sha256);
    rows_try(rc, store_run(st));

    if (f->n != 0) {
        return SQLITE_OK;
    }

    st = store_stmt(v->db, ROWS_VERSION_FIRST, "update file_operations set"
                    " before_size = ?2, before_hash = ?3,"
                    " after_size = coalesce(?4, after_size),"
                    " after_hash = coalesce(?5, after_hash),"
                    " diff_data = ?6, diff_encoding = ?7, diff_complete = ?8"
                    " where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(v->db->db);
    }

    store_bind_id(st, 1, v->op->id);
    versions_bind_size(st, 2, f->before_size);
    versions_bind_hash(st, 3, f->before_sha256);

    if (v->succeeded) {
        versions_bind_size(st, 4, f->size);
        versions_bind_hash(st, 5, f->sha256);
    }

    if (f->has_diff) {
        sqlite3_bind_text64(st, 6, f->diff.len ? f->diff.data : "",
                            f->diff.len, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_text(st, 7, "identity", -1, SQLITE_STATIC);
    }

    sqlite3_bind_int(st, 8, !f->diff_cut);

    return store_run(st);
}


static int
versions_file(versions_op_t *v, versions_file_t *f)
{
    int  rc;

    if (v->type == SB_OP_FILE_READ || v->type == SB_OP_ISOLATED_FILE_READ) {

        if (!v->succeeded || f->sha256[0] == '\0') {
            return SQLITE_OK;
        }

        rows_try(rc, versions_after(v, f));

        /* reading changes nothing */
        f->before = "read";
        f->before_size = f->size;
        (void) strcpy(f->before_sha256, f->sha256);

        return versions_write(v, f);
    }

    rows_try(rc, versions_before(v, f));

    if (!v->succeeded) {
        /* it may have happened, or half of it */
        return versions_write(v, f);
    }

    switch (v->type) {

    case SB_OP_FILE_WRITE:
    case SB_OP_ISOLATED_FILE_WRITE:
        rc = versions_after(v, f);
        break;

    case SB_OP_FILE_REPLACE:
        rc = versions_edited(v, f);
        break;

    case SB_OP_FILE_MOVE:
        rc = versions_moved(v, f);
        break;

    default:
        break;
    }

    if (rc == SQLITE_OK && v->type != SB_OP_FILE_MOVE) {
        rc = versions_diff(v, f);
    }

    return rc == SQLITE_OK ? versions_write(v, f) : rc;
}


/* --- one operation -------------------------------------------------------- */

static int
versions_files(versions_op_t *v)
{
    int               rc;
    int64_t           n;
    const char       *text;
    sqlite3_stmt     *st;
    versions_file_t   f;

    for (n = 0; n < v->op->nfiles && n < FACTS_FILES; n++) {

        st = store_stmt(v->db, ROWS_VERSION_FILES, "select path, old_path,"
                        " size, sha256 from gateway_files where event_id = ?1"
                        " and n = ?2");
        if (st == NULL) {
            return sqlite3_errcode(v->db->db);
        }

        store_bind_id(st, 1, v->op->id);
        sqlite3_bind_int64(st, 2, n);
        rc = sqlite3_step(st);

        if (rc != SQLITE_ROW) {
            (void) sqlite3_reset(st);

            if (rc == SQLITE_DONE) {
                continue;
            }

            return rc;
        }

        memset(&f, 0, sizeof(f));
        f.n = n;
        f.before_size = -1;
        text = (const char *) sqlite3_column_text(st, 0);
        f.path = text ? strdup(text) : NULL;
        text = (const char *) sqlite3_column_text(st, 1);
        f.old_path = text ? strdup(text) : NULL;
        f.size = sqlite3_column_type(st, 2) == SQLITE_NULL
                 ? -1 : sqlite3_column_int64(st, 2);
        text = (const char *) sqlite3_column_text(st, 3);
        (void) snprintf(f.sha256, sizeof(f.sha256), "%s", text ? text : "");
        (void) sqlite3_reset(st);

        rc = f.path ? versions_file(v, &f) : SQLITE_NOMEM;

        free(f.path);
        free(f.old_path);
        sb_buf_free(&f.text[0]);
        sb_buf_free(&f.text[1]);
        sb_buf_free(&f.diff);

        if (rc != SQLITE_OK) {
            return rc;
        }
    }

    return SQLITE_OK;
}


static int
versions_run(versions_op_t *v, const rows_record_t *first)
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, versions_self(v->db, v->op->id, &v->self));
    rows_try(rc, versions_parts_collect(&v->parts, first));

    if (v->ready_us) {
        sb_time_text(v->self.begun, v->ready_us);
    }

    v->parts.stored = v->self.parts;

    rows_try(rc, versions_files(v));

    if (!v->parts.stored) {
        return SQLITE_OK;
    }

    st = store_stmt(v->db, ROWS_PART_DROP, "delete from gateway_parts where"
                    " event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(v->db->db);
    }

    store_bind_id(st, 1, v->op->id);

    return store_run(st);
}


int
versions_end(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *first)
{
    int                   rc;
    versions_op_t         v;
    const sb_op_t        *known;
    const rows_record_t  *r;

    if (op->nfiles == 0) {
        return SQLITE_OK;
    }

    memset(&v, 0, sizeof(v));

    if (facts_has(t, SB_T_TYPE)) {
        known = rows_known(t->v[SB_T_TYPE]);

    } else {
        rows_try(rc, versions_type(db, op->id, &known));
    }

    if (known == NULL) {
        return SQLITE_OK;
    }

    v.db = db;
    v.op = op;
    v.type = (sb_op_e) sb_op_index(known);
    v.succeeded = sb_eq(rows_status(t), sb_lit("succeeded"));
    v.ready_us = (uint64_t) facts_int(t, SB_T_READY_US, 0);

    switch (v.type) {

    case SB_OP_FILE_WRITE:
    case SB_OP_FILE_READ:
    case SB_OP_FILE_DELETE:
    case SB_OP_FILE_MOVE:
    case SB_OP_FILE_REPLACE:
        /* paths of all sandboxes that nobody has shown to exist */
        v.stateless = strcmp(db->dir, SCHEMA_GATEWAY) == 0;
        break;

    case SB_OP_ISOLATED_FILE_WRITE:
    case SB_OP_ISOLATED_FILE_READ:
        /* another root */
        v.stateless = true;
        break;

    default:
        return SQLITE_OK;
    }

    for (r = first; r; r = r->next) {
        v.cursor = r->r.cursor;
    }

    if (versions_refused(t)) {
        return SQLITE_OK;
    }

    /* rows of this transaction have to be seen, those of this operation then
     * change */
    chain_changes(&db->chain, op->id);
    rc = store_flush(db);

    if (rc == SQLITE_OK) {
        rc = versions_run(&v, first);
    }

    versions_parts_free(&v.parts);
    sb_buf_free(&v.edit);

    return rc;
}
