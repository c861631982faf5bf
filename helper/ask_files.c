/*
 * Files over time: GET operations/{op}/diff and /content, GET
 * sandboxes/{id}/versions and /versions/diff.
 */

#include "ask_find.h"

#include "ask_answer.h"
#include "ask_boxes.h"
#include "contents.h"
#include "diff.h"
#include "frame.h"
#include "json.h"
#include "log.h"
#include "path.h"

#include <stdlib.h>


#define FILES_LIMIT    500          /* versions of one answer */
#define FILES_DEFAULT  100
#define FILES_ANSWER   (4u * 1024 * 1024)

static const char *const  files_versions[] = { "before", "after", NULL };

/* Parameters. */
typedef struct {
    int64_t  n;                     /* which file of the operation */
    bool     after;
} files_want_t;


/* --- an operation's file -------------------------------------------------- */

static bool
files_param(ask_find_t *s, const ask_param_t *p)
{
    int            word;
    files_want_t  *w;

    if (s->own == NULL) {
        s->own = w = calloc(1, sizeof(files_want_t));

        if (w == NULL) {
            (void) strcpy(s->args.why, "There is no memory.");
            return false;
        }

        w->after = true;
        s->free_own = free;
    }

    w = s->own;

    if (strcmp(p->name, "n") == 0) {
        return ask_args_int(&s->args, p, &w->n, 0, 1023);
    }

    if (strcmp(p->name, "version") == 0) {
        word = ask_args_word(&s->args, p, files_versions);
        w->after = word == 1;
        return word != -1;
    }

    return ask_args_unknown(&s->args, p);
}


/* The rows of a history cannot be read. */
static ask_rc_e
files_failed(ask_question_t *q, const char *dir, int rc)
{
    history_error_t  err;

    history_error_sqlite(&err, NULL, rc);
    log_minutely(LOG_ERROR, "files in the history of %s cannot be read: %s",
                 dir, err.message);

    return ask_unreadable(q, &err);
}


/* A statement about the file of a question, on its row; NULL without one. */
static sqlite3_stmt *
files_row(sqlite3 *db, const char *sql, const char *id, int64_t n, int *rc)
{
    sqlite3_stmt  *st;

    *rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (*rc != SQLITE_OK) {
        return NULL;
    }

    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, n);

    *rc = sqlite3_step(st);

    if (*rc != SQLITE_ROW) {
        (void) sqlite3_finalize(st);
        return NULL;
    }

    return st;
}


/* Either content of a file.  *why is set when there is none. */
static int
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
                     " ?1 and n = ?2", id, w->n, &rc);

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


/* The difference that is on record, or, of a further file, one that is made. */
static int
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
                       id, 0, &rc);

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
                   " = ?1 and n = ?2", id, w->n, &rc);

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


typedef int (*files_get_pt)(sqlite3 *db, const char *id, const files_want_t *w,
    sb_buf_t *out, const char **why);


static ask_rc_e
files_of(ask_question_t *q, bool of_one, const char *type, files_get_pt get)
{
    int               rc;
    api_t            *api;
    sb_buf_t          out;
    reader_t         *reader;
    ask_find_t       *s;
    const char       *why;
    reader_rc_e       taken;
    history_error_t   err;

    static const files_want_t  first = { 0, true };

    api = q->context;
    s = ask_op_find(q, of_one, files_param);

    if (s == NULL || s->answered) {
        return s ? s->rc : ASK_FAILED;
    }

    taken = api->readers ? reader_take_of(api->readers, s->dir, s->id, NULL,
                                          &reader, &err)
                         : READER_MISSING;

    if (taken != READER_OK) {
        return taken == READER_MISSING
               ? ask_no_operation(q) : ask_unreadable(q, &err);
    }

    memset(&out, 0, sizeof(out));
    out.max = SB_CONTENT_MAX;

    rc = get(reader->db, s->id, s->own ? s->own : &first, &out, &why);
    reader_give(api->readers, reader, rc != SQLITE_OK);

    if (rc != SQLITE_OK || why) {
        sb_buf_free(&out);
        return rc != SQLITE_OK ? files_failed(q, s->dir, rc)
                               : ask_absent(q, why);
    }

    return ask_whole(q, 200, type, &out);
}


ask_rc_e
ask_diff(ask_question_t *q)
{
    return files_of(q, false, "text/plain; charset=utf-8", files_diff);
}


ask_rc_e
ask_box_diff(ask_question_t *q)
{
    return files_of(q, true, "text/plain; charset=utf-8", files_diff);
}


ask_rc_e
ask_content(ask_question_t *q)
{
    return files_of(q, false, "application/octet-stream", files_content);
}


ask_rc_e
ask_box_content(ask_question_t *q)
{
    return files_of(q, true, "application/octet-stream", files_content);
}


/* --- versions of a path --------------------------------------------------- */

typedef struct {
    api_wait_t  wait;
    char        dir[STORE_DIR_LEN];
    ask_args_t  args;
    const char *path;
    const char *hash[2];            /* from, to */
    int64_t     before;
    int64_t     limit;
} files_ask_t;


static void
files_release(void *state)
{
    files_ask_t  *f = state;

    ask_args_free(&f->args);
    free(f);
}


static bool
files_hash(files_ask_t *f, const ask_param_t *p, const char **hash)
{
    if (strlen(p->value) != CONTENTS_HEX
        || strspn(p->value, "0123456789abcdef") != CONTENTS_HEX)
    {
        (void) strcpy(f->args.why, "from and to are SHA-256 digests of two "
                      "versions, 64 hexadecimal digits.");
        return false;
    }

    *hash = p->value;

    return true;
}


/* Reads the query of a question about a path; false after *rc. */
static bool
files_read(ask_question_t *q, files_ask_t *f, bool diff, ask_rc_e *rc)
{
    bool                ok;
    unsigned            i;
    const ask_param_t  *p;

    f->before = INT64_MAX;
    f->limit = FILES_DEFAULT;
    ok = ask_args_read(&f->args, q->query);

    for (i = 0; ok && i < f->args.n; i++) {
        p = &f->args.p[i];

        if (strcmp(p->name, "path") == 0) {
            f->path = p->value;

        } else if (diff && strcmp(p->name, "from") == 0) {
            ok = files_hash(f, p, &f->hash[0]);

        } else if (diff && strcmp(p->name, "to") == 0) {
            ok = files_hash(f, p, &f->hash[1]);

        } else if (!diff && strcmp(p->name, "before") == 0) {
            ok = ask_args_int(&f->args, p, &f->before, 1, INT64_MAX);

        } else if (!diff && strcmp(p->name, "limit") == 0) {
            ok = ask_args_int(&f->args, p, &f->limit, 1, FILES_LIMIT);

        } else {
            ok = ask_args_unknown(&f->args, p);
        }
    }

    if (ok && (f->path == NULL || (diff && (!f->hash[0] || !f->hash[1])))) {
        (void) strcpy(f->args.why, diff ? "Give path, from and to."
                                        : "Give path: which file?");
        ok = false;
    }

    if (!ok) {
        *rc = ask_args_refuse(q, &f->args);
    }

    return ok;
}


static sb_rc_t
files_text(sb_buf_t *b, const char *name, sqlite3_stmt *st, int i)
{
    sb_rc_t  rc;

    rc = sb_buf_printf(b, ",\"%s\":", name);

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


static int
files_list(sqlite3 *db, const files_ask_t *f, sb_buf_t *b)
{
    int            rc, i;
    bool           more;
    sb_rc_t        out;
    int64_t        n, seq;
    sqlite3_stmt  *st;

    static const char *const  names[] = {
        "id", "n", "type", "status", "started_at", "completed_at",
        "actor_type", "actor_id", "path", "old_path", "size", "sha256",
        "content", "before", "before_size", "before_sha256", "restored_from"
    };

    rc = sqlite3_prepare_v2(db, "select r.seq, e.event_id, f.n,"
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
            " order by r.seq desc, f.n desc limit ?3", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_text(st, 1, f->path, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, f->before);
    sqlite3_bind_int64(st, 3, f->limit + 1);

    out = sb_buf_add_str(b, sb_lit("{\"items\":["));
    seq = 0;
    more = false;

    for (n = 0; (rc = sqlite3_step(st)) == SQLITE_ROW && out == SB_OK; n++) {

        if (n == f->limit) {
            more = true;
            break;
        }

        seq = sqlite3_column_int64(st, 0);
        out = sb_buf_printf(b, "%s{\"seq\":%lld", n ? "," : "",
                            (long long) seq);

        for (i = 0; i < (int) (sizeof(names) / sizeof(names[0]))
                    && out == SB_OK; i++)
        {
            out = files_text(b, names[i], st, i + 1);
        }

        if (out == SB_OK) {
            out = sb_buf_printf(b, ",\"kept\":%s}",
                                sqlite3_column_int(st, i + 1) ? "true"
                                                              : "false");
        }
    }

    (void) sqlite3_finalize(st);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return rc;
    }

    if (out == SB_OK && more) {
        out = sb_buf_printf(b, "],\"next\":%lld}", (long long) seq);

    } else if (out == SB_OK) {
        out = sb_buf_add_str(b, sb_lit("],\"next\":null}"));
    }

    return out == SB_OK ? SQLITE_OK : SQLITE_NOMEM;
}


static int
files_compare(sqlite3 *db, const files_ask_t *f, sb_buf_t *b, const char **why)
{
    int       rc, i;
    sb_buf_t  text[2];
    sb_str_t  name;

    memset(text, 0, sizeof(text));
    *why = NULL;
    rc = SQLITE_OK;

    for (i = 0; i < 2 && rc == SQLITE_OK; i++) {
        text[i].max = SB_CONTENT_MAX;
        rc = contents_get(db, f->hash[i], &text[i]);
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
        name = sb_str(f->path, strlen(f->path));

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


static ask_rc_e
files_path(ask_question_t *q, bool diff)
{
    int               rc;
    api_t            *api;
    ask_rc_e          answer;
    sb_buf_t          b;
    reader_t         *reader;
    const char       *why;
    files_ask_t      *f;
    reader_rc_e       taken;
    history_error_t   err;

    api = q->context;
    f = q->state;

    if (f == NULL) {
        f = calloc(1, sizeof(files_ask_t));
        if (f == NULL) {
            return ASK_FAILED;
        }

        q->state = f;
        q->release = files_release;

        if (!files_read(q, f, diff, &answer)) {
            return answer;
        }

        ask_box_dir(f->dir, q->args[0]);
    }

    if (!api_wait(q, &f->wait)) {
        return ASK_AGAIN;
    }

    taken = api->readers ? reader_take(api->readers, f->dir, &reader, &err)
                         : READER_MISSING;

    if (taken != READER_OK) {
        return taken == READER_MISSING
               ? ask_absent(q, "There is no history of this sandbox.")
               : ask_unreadable(q, &err);
    }

    memset(&b, 0, sizeof(b));
    b.max = FILES_ANSWER;
    why = NULL;

    rc = diff ? files_compare(reader->db, f, &b, &why)
              : files_list(reader->db, f, &b);
    reader_give(api->readers, reader, rc != SQLITE_OK);

    if (rc != SQLITE_OK || why) {
        sb_buf_free(&b);
        return rc != SQLITE_OK ? files_failed(q, f->dir, rc)
                               : ask_absent(q, why);
    }

    return ask_whole(q, 200, diff ? "text/plain; charset=utf-8"
                                  : "application/json", &b);
}


ask_rc_e
ask_versions(ask_question_t *q)
{
    return files_path(q, false);
}


ask_rc_e
ask_versions_diff(ask_question_t *q)
{
    return files_path(q, true);
}
