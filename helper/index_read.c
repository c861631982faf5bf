/* Records of history files, for the list, and their text. */

#include "index_int.h"

#include "history_query.h"
#include "id.h"
#include "json.h"
#include "utf8.h"

#include <stdio.h>


#define INDEX_GROWN      4096       /* bytes of output after which a running
                                       operation is searched anew, or a quarter
                                       of what it had */

enum {
    READ_EV, READ_TYPE, READ_STATUS, READ_SOURCE, READ_ACTOR_TYPE, READ_ACTOR,
    READ_THREAD, READ_RUN, READ_CORRELATION, READ_STARTED, READ_DURATION,
    READ_CURSOR, READ_COMMAND, READ_EXIT, READ_PATH, READ_OLD_PATH, READ_METHOD,
    READ_URL, READ_PORT, READ_GAP, READ_REQUEST
};

static const char  read_record[] =
    "select e.seq, e.operation_type, e.status, e.source, e.actor_type,"
    " e.actor_id, e.thread_id, e.run_id, e.correlation_id,"
    " time_us(e.occurred_at), e.duration_ms, r.cursor, c.command, c.exit_code,"
    " f.path, f.old_path, w.method, w.path, w.port, p.reason,"
    " case when e.operation_type = 'sandbox.create' then e.request_json end"
    " from history_events e"
    " left join gateway_records r on r.event_id = e.event_id"
    " left join gateway_wire w on w.event_id = e.event_id"
    " left join command_executions c on c.event_id = e.event_id"
    " left join file_operations f on f.event_id = e.event_id"
    " left join gateway_gaps p on p.event_id = e.event_id"
    " where e.event_id = ?1";

static const char  read_files[] =
    "select path, old_path from gateway_files where event_id = ?1 order by n"
    " limit 4096";

static const char  read_output[] =
    "select data from command_output_chunks where event_id = ?1 and"
    " stream = ?2 and encoding = 'identity' order by chunk_index";


bool
index_read_prepare(index_box_t *box, history_error_t *err)
{
    return history_query_prepare(box->db, err)
           && (box->record = history_prepare(box->db, read_record, err)) != NULL
           && (box->files = history_prepare(box->db, read_files, err)) != NULL
           && (box->output = history_prepare(box->db, read_output, err))
              != NULL;
}


/* --- texts ------------------------------------------------------------------------- */

static bool
index_add(index_t *ix, size_t from, size_t max, sb_str_t text)
{
    size_t  room;

    room = max - (ix->text.len - from);

    return sb_buf_add(&ix->text, text.data,
                      text.len <= room ? text.len : sb_utf8_cut(text, room))
           == SB_OK
           && text.len <= room;
}


static void
index_add_line(index_t *ix, size_t from, sb_str_t text)
{
    if (text.len && index_add(ix, from, INDEX_HEAD - 1, text)) {
        (void) sb_buf_add_c(&ix->text, '\n');
    }
}


/* The image of a create request. */
static void
index_add_image(index_t *ix, size_t from, sb_str_t json)
{
    sb_str_t          image;
    sb_jdoc_t        *doc;
    const sb_jv_t    *v;
    sb_json_limits_t  limits;

    limits.max_depth = SB_OUT_DEPTH;
    limits.max_bytes = SB_OUT_MAX;

    doc = json.len ? sb_jdoc_parse(json, &limits, NULL) : NULL;

    if (doc == NULL) {
        return;
    }

    v = sb_jv_get(sb_jdoc_root(doc), "image");
    image = v != NULL && v->kind == SB_JSON_STRING ? v->text
                                                   : sb_jv_str(v, "uri");
    index_add_line(ix, from, image);
    sb_jdoc_free(doc);
}


/* One path into the list of a record; it ends with a NUL. */
static void
index_add_path(index_t *ix, index_doc_t *d, sb_str_t path)
{
    size_t  len;

    if (path.len == 0) {
        return;
    }

    len = ix->text.len;

    if (sb_buf_add(&ix->text, path.data, strnlen(path.data, path.len)) != SB_OK
        || sb_buf_add_c(&ix->text, '\0') != SB_OK)
    {
        ix->text.len = len;
        return;
    }

    d->npaths++;
}


static int
index_read_paths(index_t *ix, index_box_t *box, index_doc_t *d)
{
    int  rc;

    d->paths = ix->text.len;
    d->npaths = 0;

    index_add_path(ix, d, history_column(box->record, READ_PATH));
    index_add_path(ix, d, history_column(box->record, READ_OLD_PATH));

    sqlite3_bind_text(box->files, 1, d->id, -1, SQLITE_STATIC);

    while ((rc = sqlite3_step(box->files)) == SQLITE_ROW) {
        index_add_path(ix, d, history_column(box->files, 0));
        index_add_path(ix, d, history_column(box->files, 1));
    }

    (void) sqlite3_reset(box->files);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* What a record was: its command, its paths, or the words of its summary. */
static void
index_read_head(index_t *ix, index_box_t *box, index_doc_t *d)
{
    char           port[32], path[4096];
    size_t         i, n, at, len;
    sqlite3_stmt  *st;

    st = box->record;
    d->head = ix->text.len;

    index_add_line(ix, d->head, history_column(st, READ_COMMAND));

    for (i = 0, at = d->paths; i < d->npaths; i++) {
        /* not from the buffer into itself: it may move */
        len = strlen(ix->text.data + at);
        n = len < sizeof(path) ? len : sizeof(path);
        memcpy(path, ix->text.data + at, n);
        index_add_line(ix, d->head, sb_str(path, n));
        at += len + 1;
    }

    index_add_image(ix, d->head, history_column(st, READ_REQUEST));
    index_add_line(ix, d->head, history_column(st, READ_GAP));

    if (ix->text.len == d->head) {
        index_add_line(ix, d->head, history_column(st, READ_METHOD));
        index_add_line(ix, d->head, history_column(st, READ_URL));

        if (sqlite3_column_type(st, READ_PORT) != SQLITE_NULL) {
            (void) snprintf(port, sizeof(port), "port %lld",
                            (long long) sqlite3_column_int64(st, READ_PORT));
            index_add_line(ix, d->head, sb_str(port, strlen(port)));
        }
    }

    d->nhead = ix->text.len - d->head;
}


static int
index_read_stream(index_t *ix, index_box_t *box, const char *id,
    const char *stream, size_t *n, bool *cut)
{
    int     rc;
    size_t  from;

    from = ix->text.len;
    sqlite3_bind_text(box->output, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_text(box->output, 2, stream, -1, SQLITE_STATIC);

    while ((rc = sqlite3_step(box->output)) == SQLITE_ROW) {
        if (!index_add(ix, from, INDEX_TEXT, history_column(box->output, 0))) {
            *cut = true;
            rc = SQLITE_DONE;
            break;
        }
    }

    (void) sqlite3_reset(box->output);
    *n = ix->text.len - from;

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* The beginning of both streams, one behind the other; neither keeps the other
 * from its half. */
static int
index_read_body(index_t *ix, index_box_t *box, index_doc_t *d)
{
    int     rc;
    bool    cut;
    size_t  out, err, keep;

    d->out = ix->text.len;
    cut = false;

    rc = index_read_stream(ix, box, d->id, "stdout", &out, &cut);

    if (rc == SQLITE_OK) {
        rc = index_read_stream(ix, box, d->id, "stderr", &err, &cut);
    }

    if (rc != SQLITE_OK) {
        return rc;
    }

    if (out + err > INDEX_TEXT) {
        cut = true;
        keep = err > INDEX_TEXT / 2 ? INDEX_TEXT / 2 : err;
        keep = out < INDEX_TEXT - keep ? INDEX_TEXT - out : keep;
        err = sb_utf8_cut(sb_str(ix->text.data + d->out + out, err), keep);
        keep = sb_utf8_cut(sb_str(ix->text.data + d->out, out),
                           INDEX_TEXT - err);
        memmove(ix->text.data + d->out + keep, ix->text.data + d->out + out,
                err);
        out = keep;
        ix->text.len = d->out + out + err;
    }

    if (out && err) {
        /* they are two texts: a word does not go from one into the other */
        if (sb_buf_add_c(&ix->text, ' ') != SB_OK) {
            return SQLITE_NOMEM;
        }

        memmove(ix->text.data + d->out + out + 1,
                ix->text.data + d->out + out, err);
        ix->text.data[d->out + out] = '\n';
    }

    d->nout = ix->text.len - d->out;

    if (cut) {
        d->flags |= INDEX_CUT;
    }

    return SQLITE_OK;
}


/* --- one record ---------------------------------------------------------------------- */

/* What the list has at the place of a record. */
typedef struct {
    bool     there, ours, moving, behind;
    int64_t  flags, head, body;
} index_have_t;


static int
index_have(index_t *ix, index_box_t *box, const index_doc_t *d,
    index_have_t *have)
{
    int            rc;
    char           id[129];
    bool           same;
    sb_str_t       dir;
    sqlite3_stmt  *st;

    memset(have, 0, sizeof(index_have_t));

    if (d->pos > ix->max_pos) {
        return SQLITE_OK;
    }

    st = index_stmt(ix, INDEX_S_HAVE, "select o.box, b.dir, o.event, o.flags,"
                    " o.head, o.body from ops o left join boxes b on"
                    " b.id = o.box where o.pos = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, d->pos);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        have->there = true;
        have->ours = sqlite3_column_int64(st, 0) == box->id;
        have->flags = sqlite3_column_int64(st, 3);
        have->head = sqlite3_column_int64(st, 4);
        have->body = sqlite3_column_int64(st, 5);

        if (have->flags & INDEX_NO_UUID) {
            same = sb_eq(history_column(st, 2), sb_str(d->id, strlen(d->id)));

        } else {
            sb_uuid_text(id, sqlite3_column_blob(st, 2));
            same = strcmp(id, d->id) == 0;
        }

        dir = history_column(st, 1);
        have->moving = same && sb_eq(dir, sb_lit(SCHEMA_GATEWAY));
        have->behind = same && index_is_gateway(box);
        have->ours = have->ours && same;
        rc = SQLITE_DONE;
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


static int64_t
index_read_word(index_t *ix, sqlite3_stmt *st, int column, int kind)
{
    if (sqlite3_column_type(st, column) == SQLITE_NULL) {
        return 0;
    }

    return index_word(ix, kind, history_column(st, column));
}


static int
index_read_row(index_t *ix, index_box_t *box, index_doc_t *d)
{
    sqlite3_stmt  *st;

    st = box->record;
    d->box = box;
    d->ev = sqlite3_column_int64(st, READ_EV);
    d->type = index_read_word(ix, st, READ_TYPE, INDEX_W_TYPE);
    d->status = index_read_word(ix, st, READ_STATUS, INDEX_W_STATUS);
    d->source = index_read_word(ix, st, READ_SOURCE, INDEX_W_SOURCE);
    d->actor_type = index_read_word(ix, st, READ_ACTOR_TYPE,
                                    INDEX_W_ACTOR_TYPE);
    d->actor = index_read_word(ix, st, READ_ACTOR, INDEX_W_ACTOR);

    if (d->type == 0 || d->status == 0 || d->source == 0
        || d->actor_type == 0
        || (d->actor == 0
            && sqlite3_column_type(st, READ_ACTOR) != SQLITE_NULL))
    {
        return sqlite3_errcode(ix->db) ? sqlite3_errcode(ix->db)
                                       : SQLITE_ERROR;
    }

    d->thread = index_hash(ix->secret, history_column(st, READ_THREAD));
    d->run = index_hash(ix->secret, history_column(st, READ_RUN));
    d->correlation = index_hash(ix->secret,
                                history_column(st, READ_CORRELATION));
    d->started = sqlite3_column_int64(st, READ_STARTED);
    d->duration = sqlite3_column_type(st, READ_DURATION) == SQLITE_NULL
                  ? -1 : sqlite3_column_int64(st, READ_DURATION);
    d->has_exit_code = sqlite3_column_type(st, READ_EXIT) != SQLITE_NULL;
    d->exit_code = sqlite3_column_int64(st, READ_EXIT);

    if (sqlite3_column_type(st, READ_CURSOR) == SQLITE_NULL) {
        return index_place(ix, box, d->ev, d->started, &d->pos);
    }

    d->pos = sqlite3_column_int64(st, READ_CURSOR);

    return SQLITE_OK;
}


int
index_read_one(index_t *ix, index_box_t *box, const char *id, bool *bad)
{
    int           rc;
    bool          running;
    size_t        grown;
    index_doc_t  *d;
    index_have_t  have;

    d = &ix->docs[ix->ndocs];
    memset(d, 0, sizeof(index_doc_t));
    (void) snprintf(d->id, sizeof(d->id), "%s", id);
    d->order = ix->ndocs;

    sqlite3_bind_text(box->record, 1, id, -1, SQLITE_STATIC);
    rc = sqlite3_step(box->record);

    if (rc != SQLITE_ROW) {
        /* deleted: the change that tells of it is left */
        *bad = rc != SQLITE_DONE;
        (void) sqlite3_reset(box->record);
        return SQLITE_OK;
    }

    rc = index_read_row(ix, box, d);

    if (rc == SQLITE_OK) {
        rc = index_have(ix, box, d, &have);
    }

    if (rc == SQLITE_OK && have.there && !have.ours && !have.moving
        && !have.behind)
    {
        rc = index_place(ix, box, d->ev, d->started, &d->pos);

        if (rc == SQLITE_OK) {
            rc = index_have(ix, box, d, &have);
        }
    }

    if (rc == SQLITE_OK && have.behind && !have.ours) {
        /* it has moved on from _gateway */
        (void) sqlite3_reset(box->record);
        return SQLITE_OK;
    }

    if (rc != SQLITE_OK) {
        (void) sqlite3_reset(box->record);
        return rc;
    }

    d->had = have.there;

    if (index_read_paths(ix, box, d) != SQLITE_OK) {
        *bad = true;
    }

    index_read_head(ix, box, d);
    running = sb_eq(history_column(box->record, READ_STATUS),
                    sb_lit("started"));
    (void) sqlite3_reset(box->record);

    if (have.there && (have.flags & INDEX_CUT)
        && have.head == (int64_t) d->nhead)
    {
        /* no more of its output would go in */
        d->flags |= INDEX_CUT;
        d->nout = (size_t) have.body;
        d->keep_text = true;

    } else if (index_read_body(ix, box, d) != SQLITE_OK) {
        *bad = true;
    }

    if (*bad) {
        return SQLITE_OK;
    }

    if (have.there && have.head == (int64_t) d->nhead && !d->keep_text) {
        grown = (size_t) have.body > d->nout ? 0
                : d->nout - (size_t) have.body;

        if (grown == 0 || (running && grown < INDEX_GROWN
                           && grown < (size_t) have.body / 4))
        {
            d->keep_text = true;
            d->nout = (size_t) have.body;
        }
    }

    ix->ndocs++;

    return SQLITE_OK;
}


bool
index_read_text(index_t *ix, index_box_t *box, const char *id, sb_str_t *head,
    sb_str_t *out)
{
    bool         ok;
    index_doc_t  d;

    if (!index_box_begin(ix, box)) {
        return false;
    }

    memset(&d, 0, sizeof(d));
    (void) snprintf(d.id, sizeof(d.id), "%s", id);
    ix->text.len = 0;

    sqlite3_bind_text(box->record, 1, id, -1, SQLITE_STATIC);
    ok = sqlite3_step(box->record) == SQLITE_ROW
         && index_read_paths(ix, box, &d) == SQLITE_OK;

    if (ok) {
        index_read_head(ix, box, &d);
        ok = index_read_body(ix, box, &d) == SQLITE_OK;
    }

    (void) sqlite3_reset(box->record);
    index_box_end(box);

    if (ok) {
        *head = sb_str(ix->text.data + d.head, d.nhead);
        *out = sb_str(ix->text.data + d.out, d.nout);
    }

    return ok;
}
