#include "files.h"

#include "contents.h"
#include "diff.h"
#include "frame.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>


/* A statement about a file of an operation, on its row; NULL without one. */
static sqlite3_stmt *
files_row(sqlite3 *db, const char *sql, const char *id, int64_t n,
    const char *other, int *rc)
{
    sqlite3_stmt  *st;

    *rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (*rc != SQLITE_OK) {
        return NULL;
    }

    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, n);

    if (other) {
        sqlite3_bind_text(st, 3, other, -1, SQLITE_STATIC);
    }

    *rc = sqlite3_step(st);

    if (*rc != SQLITE_ROW) {
        (void) sqlite3_finalize(st);
        return NULL;
    }

    return st;
}


int
files_content(sqlite3 *db, const char *id, const files_want_t *w,
    sb_buf_t *out, const char **why)
{
    int            rc;
    char           hash[CONTENTS_HEX + 1];
    const char    *text;
    sqlite3_stmt  *st;

    *why = NULL;

    st = files_row(db, w->after
                   ? "select sha256 from gateway_files where event_id = ?1 and"
                     " n = ?2"
                   : "select before_sha256 from gateway_files where event_id ="
                     " ?1 and n = ?2", id, w->n, NULL, &rc);

    if (st == NULL) {
        *why = "The operation has no such file.";
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    text = (const char *) sqlite3_column_text(st, 0);
    hash[0] = '\0';

    if (text && strlen(text) == CONTENTS_HEX) {
        (void) strcpy(hash, text);
    }

    (void) sqlite3_finalize(st);

    if (hash[0] == '\0') {
        *why = "What stood in the file then is not known, or there was none.";
        return SQLITE_OK;
    }

    rc = contents_get(db, hash, out);

    if (rc == SQLITE_NOTFOUND) {
        *why = "This content is not kept: it was too large, did not reach the "
               "recorder, or made room for newer ones.";
        rc = SQLITE_OK;
    }

    return rc;
}


int
files_diff(sqlite3 *db, const char *id, const files_want_t *w, sb_buf_t *out,
    const char **why)
{
    int            rc;
    char          *path;
    bool           absent;
    sb_buf_t       text[2];
    const char    *v;
    sb_str_t       name;
    files_want_t   side;
    sqlite3_stmt  *st;

    *why = NULL;

    if (w->n == 0) {
        st = files_row(db, "select diff_data from file_operations where"
                       " event_id = ?1 and ?2 = 0 and diff_data is not null",
                       id, 0, NULL, &rc);

        if (st == NULL) {
            *why = "There is no difference: the file is no text, or what stood "
                   "in it before or after is not known.";
            return rc == SQLITE_DONE ? SQLITE_OK : rc;
        }

        rc = sb_buf_add(out, sqlite3_column_text(st, 0),
                        (size_t) sqlite3_column_bytes(st, 0)) == SB_OK
             ? SQLITE_OK : SQLITE_NOMEM;
        (void) sqlite3_finalize(st);

        return rc;
    }

    st = files_row(db, "select path, before from gateway_files where event_id"
                   " = ?1 and n = ?2", id, w->n, NULL, &rc);

    if (st == NULL) {
        *why = "The operation has no such file.";
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    v = (const char *) sqlite3_column_text(st, 0);
    path = v ? strdup(v) : NULL;
    v = (const char *) sqlite3_column_text(st, 1);
    absent = v && strcmp(v, "absent") == 0;
    (void) sqlite3_finalize(st);

    memset(text, 0, sizeof(text));
    text[0].max = SB_CONTENT_MAX;
    text[1].max = SB_CONTENT_MAX;
    side.n = w->n;
    side.after = false;
    rc = path ? SQLITE_OK : SQLITE_NOMEM;

    if (rc == SQLITE_OK && !absent) {
        rc = files_content(db, id, &side, &text[0], why);
    }

    if (rc == SQLITE_OK && *why == NULL) {
        side.after = true;
        rc = files_content(db, id, &side, &text[1], why);
    }

    if (rc == SQLITE_OK && *why == NULL
        && (!sb_diff_is_text(sb_str(text[0].data, text[0].len))
            || !sb_diff_is_text(sb_str(text[1].data, text[1].len))))
    {
        *why = "There is no difference: the file is no text.";
    }

    if (rc == SQLITE_OK && *why == NULL) {
        name = sb_str(path, strlen(path));

        if (sb_diff(out, absent ? sb_str(NULL, 0) : name,
                    sb_str(text[0].data, text[0].len), name,
                    sb_str(text[1].data, text[1].len), NULL)
            == SB_NOMEM)
        {
            rc = SQLITE_NOMEM;
        }
    }

    free(path);
    sb_buf_free(&text[0]);
    sb_buf_free(&text[1]);

    return rc;
}


/* --- versions of a path --------------------------------------------------- */

static sb_rc_t
files_text(sb_buf_t *b, char sep, const char *name, sqlite3_stmt *st, int i)
{
    sb_rc_t  rc;

    rc = sb_buf_printf(b, "%c\"%s\":", sep, name);

    if (rc != SB_OK) {
        return rc;
    }

    switch (sqlite3_column_type(st, i)) {

    case SQLITE_NULL:
        return sb_buf_add_str(b, sb_lit("null"));

    case SQLITE_INTEGER:
        return sb_buf_printf(b, "%lld",
                             (long long) sqlite3_column_int64(st, i));

    default:
        return sb_json_write_str(b, sb_str(sqlite3_column_text(st, i),
                                           (size_t) sqlite3_column_bytes(st,
                                                                         i)));
    }
}


/* Columns of files_versions(), FILES_KEPT apart. */
static const char *const  files_members[] = {
    "seq", "id", "n", "type", "status", "started_at", "completed_at",
    "actor_type", "actor_id", "path", "old_path", "size", "sha256", "content",
    "before", "before_size", "before_sha256", "restored_from"
};


int
files_versions(sqlite3 *db, const char *path, int64_t before, int64_t limit,
    bool ascending, sqlite3_stmt **st)
{
    int   rc;
    char  sql[1024];

    (void) snprintf(sql, sizeof(sql), "select * from (select r.seq, e.event_id,"
            " f.n,"
            " e.operation_type, e.status, e.occurred_at, e.completed_at,"
            " e.actor_type, e.actor_id, f.path, f.old_path, f.size, f.sha256,"
            " f.content, f.before, f.before_size, f.before_sha256,"
            " case when json_valid(e.request_json) then"
            " json_extract(e.request_json, '$.restored_from') end,"
            " exists(select 1 from gateway_contents c where c.sha256 ="
            " f.sha256)"
            " from gateway_files f join history_events e on e.event_id ="
            " f.event_id join gateway_records r on r.event_id = f.event_id"
            " where (f.path = ?1 or f.old_path = ?1) and r.seq < ?2"
            " and f.before is not null"
            " order by r.seq desc, f.n desc limit ?3) order by 1 %1$s, 3 %1$s",
            ascending ? "asc" : "desc");

    rc = sqlite3_prepare_v2(db, sql, -1, st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_text(*st, 1, path, -1, SQLITE_STATIC);
    sqlite3_bind_int64(*st, 2, before);
    sqlite3_bind_int64(*st, 3, limit);

    return SQLITE_OK;
}


sb_rc_t
files_version_json(sb_buf_t *b, sqlite3_stmt *st)
{
    int      i;
    sb_rc_t  rc;

    rc = SB_OK;

    for (i = 0; i < FILES_KEPT && rc == SB_OK; i++) {
        rc = files_text(b, i ? ',' : '{', files_members[i], st, i);
    }

    if (rc != SB_OK) {
        return rc;
    }

    return sb_buf_printf(b, ",\"kept\":%s}",
                         sqlite3_column_int(st, FILES_KEPT) ? "true" : "false");
}


int
files_compare(sqlite3 *db, const char *path, const char *const hash[2],
    sb_buf_t *b, const char **why)
{
    int       rc, i;
    sb_buf_t  text[2];
    sb_str_t  name;

    memset(text, 0, sizeof(text));
    *why = NULL;
    rc = SQLITE_OK;

    for (i = 0; i < 2 && rc == SQLITE_OK; i++) {
        text[i].max = SB_CONTENT_MAX;
        rc = contents_get(db, hash[i], &text[i]);
    }

    if (rc == SQLITE_NOTFOUND) {
        *why = "One of these contents is not kept.";
        rc = SQLITE_OK;

    } else if (rc == SQLITE_OK
               && (!sb_diff_is_text(sb_str(text[0].data, text[0].len))
                   || !sb_diff_is_text(sb_str(text[1].data, text[1].len))))
    {
        *why = "There is no difference: these are no texts.";

    } else if (rc == SQLITE_OK) {
        name = sb_str(path, strlen(path));

        if (sb_diff(b, name, sb_str(text[0].data, text[0].len), name,
                    sb_str(text[1].data, text[1].len), NULL)
            == SB_NOMEM)
        {
            rc = SQLITE_NOMEM;
        }
    }

    sb_buf_free(&text[0]);
    sb_buf_free(&text[1]);

    return rc;
}


int
files_between(sqlite3 *db, const char *const id[2], int64_t n, sb_buf_t *b,
    const char **why)
{
    int            rc;
    bool           known;
    char           text[2][CONTENTS_HEX + 1];
    const char    *path, *hash[2] = { text[0], text[1] };
    sqlite3_stmt  *st;

    st = files_row(db, "select a.path, a.sha256, (select b.sha256 from"
                   " gateway_files b where b.event_id = ?3 and b.path = a.path"
                   " order by b.n desc limit 1), exists(select 1 from"
                   " gateway_files b where b.event_id = ?3 and b.path = a.path)"
                   " from gateway_files a where a.event_id = ?1 and a.n = ?2",
                   id[0], n, id[1], &rc);

    if (st == NULL) {
        *why = "The operation has no such file.";
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    *why = NULL;
    known = sqlite3_column_bytes(st, 1) == CONTENTS_HEX
            && sqlite3_column_bytes(st, 2) == CONTENTS_HEX;

    if (sqlite3_column_int(st, 3) == 0) {
        *why = "The second operation has not changed that file.";

    } else if (!known) {
        *why = "What one of them left in the file is not known, or there was "
               "none.";

    } else {
        (void) strcpy(text[0], (const char *) sqlite3_column_text(st, 1));
        (void) strcpy(text[1], (const char *) sqlite3_column_text(st, 2));
        path = (const char *) sqlite3_column_text(st, 0);
        rc = files_compare(db, path, hash, b, why);
        (void) sqlite3_finalize(st);

        return rc;
    }

    (void) sqlite3_finalize(st);

    return SQLITE_OK;
}
