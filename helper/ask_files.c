/*
 * Files over time: GET operations/{op}/diff and /content, GET
 * sandboxes/{id}/versions and /versions/diff.
 */

#include "ask_find.h"

#include "ask_answer.h"
#include "ask_boxes.h"
#include "contents.h"
#include "files.h"
#include "frame.h"
#include "log.h"

#include <stdlib.h>


#define FILES_LIMIT    500          /* versions of one answer */
#define FILES_DEFAULT  100
#define FILES_ANSWER   (4u * 1024 * 1024)

static const char *const  files_sides[] = { "before", "after", NULL };


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
        return ask_args_int(&s->args, p, &w->n, 0, FILES_MAX - 1);
    }

    if (strcmp(p->name, "version") == 0) {
        word = ask_args_word(&s->args, p, files_sides);
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


static int
files_list(sqlite3 *db, const files_ask_t *f, sb_buf_t *b)
{
    int            rc;
    bool           more;
    sb_rc_t        out;
    int64_t        n, seq;
    sqlite3_stmt  *st;

    rc = files_versions(db, f->path, f->before, f->limit + 1, false, &st);
    if (rc != SQLITE_OK) {
        return rc;
    }

    out = sb_buf_add_str(b, sb_lit("{\"items\":["));
    seq = 0;
    more = false;

    for (n = 0; (rc = sqlite3_step(st)) == SQLITE_ROW && out == SB_OK; n++) {

        if (n == f->limit) {
            more = true;
            break;
        }

        seq = sqlite3_column_int64(st, FILES_SEQ);

        if (n) {
            out = sb_buf_add_c(b, ',');
        }

        if (out == SB_OK) {
            out = files_version_json(b, st);
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

    rc = diff ? files_compare(reader->db, f->path, f->hash, &b, &why)
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
