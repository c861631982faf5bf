/* GET operations/{op}/output: what a command wrote. */

#include "ask_answer.h"
#include "ask_find.h"

#include "history_record.h"

#include <stdlib.h>


/* Of a question; a page of output is held, never a statement. */
typedef struct {
    const char        *stream;      /* NULL: both */
    int64_t            after;
    bool               raw;
    bool               begun;
    history_pieces_t   page;
    size_t             sent;        /* of it */
} ask_output_t;


static void
ask_output_free(void *own)
{
    ask_output_t  *o = own;

    history_pieces_free(&o->page);
    free(o);
}


static bool
ask_output_param(ask_find_t *s, const ask_param_t *p)
{
    int            n;
    ask_output_t  *o;

    static const char *const  streams[] = { "stdout", "stderr", "both", NULL };
    static const char *const  formats[] = { "json", "raw", NULL };

    if (s->own == NULL) {
        s->own = calloc(1, sizeof(ask_output_t));
        s->free_own = ask_output_free;

        if (s->own == NULL) {
            s->free_own = NULL;
            (void) strcpy(s->args.why, "There is no memory.");
            return false;
        }

        o = s->own;
        o->after = -1;
    }

    o = s->own;

    if (strcmp(p->name, "stream") == 0) {
        n = ask_args_word(&s->args, p, streams);
        o->stream = n == 2 || n == -1 ? NULL : streams[n];
        return n != -1;
    }

    if (strcmp(p->name, "format") == 0) {
        n = ask_args_word(&s->args, p, formats);
        o->raw = n == 1;
        return n != -1;
    }

    if (strcmp(p->name, "after") == 0) {
        return ask_args_int(&s->args, p, &o->after, -1, INT64_MAX);
    }

    return ask_args_unknown(&s->args, p);
}


/* Reads the next page, and (JSON) what is to be said of the operation. */
static reader_rc_e
ask_output_page(api_t *api, const ask_find_t *s, ask_output_t *o,
    sb_out_t *out, bool *found, history_error_t *err)
{
    int            rc;
    bool           ok;
    reader_t      *reader;
    reader_rc_e    taken;
    sqlite3_stmt  *stmt;

    *found = false;
    taken = reader_take_of(api->readers, s->dir, s->id, NULL, &reader, err);

    if (taken != READER_OK) {
        return taken;
    }

    stmt = history_prepare(reader->db, "SELECT e.status,"
                           " c.history_storage_state, c.output_complete"
                           " FROM history_events e LEFT JOIN command_executions"
                           " c ON c.event_id = e.event_id"
                           " WHERE e.event_id = ?1", err);
    ok = stmt != NULL;

    if (ok) {
        sqlite3_bind_text(stmt, 1, s->id, -1, SQLITE_STATIC);
        rc = history_step(stmt, err);
        ok = rc != -1;
        *found = rc == 1;

        if (*found && out) {
            sb_out_key(out, "status");
            sb_out_str(out, history_column(stmt, 0));
            sb_out_key(out, "state");

            if (!sb_out_column(out, stmt, 1)) {
                sb_out_text(out, "null");
            }

            sb_out_key(out, "complete");
            sb_out_text(out, sqlite3_column_type(stmt, 2) == SQLITE_NULL
                        ? "null"
                        : sqlite3_column_int(stmt, 2) ? "true" : "false");
        }

        sqlite3_finalize(stmt);
    }

    if (ok && *found) {
        ok = history_pieces_read(&o->page, reader->db, s->id, o->stream,
                                 o->after, err);
        o->sent = 0;
    }

    reader_give(api->readers, reader, !ok);

    return ok ? READER_OK : READER_FAILED;
}


static ask_rc_e
ask_output_json(ask_question_t *q, ask_find_t *s, ask_output_t *o)
{
    bool              found;
    const char       *at;
    reader_rc_e       rc;
    sb_out_t          out = { .buf.max = SB_OUT_MAX };
    history_piece_t  *x;
    history_error_t   err;

    sb_out_text(&out, "{");
    rc = ask_output_page(q->context, s, o, &out, &found, &err);

    if (rc != READER_OK || !found) {
        sb_buf_free(&out.buf);
        return rc == READER_FAILED ? ask_unreadable(q, &err)
                                   : ask_no_operation(q);
    }

    sb_out_key(&out, "items");
    sb_out_text(&out, "[");
    at = o->page.bytes.data;

    for (x = o->page.pieces; x < o->page.pieces + o->page.n; x++) {
        sb_out_text(&out, x == o->page.pieces ? "" : ",");
        history_piece_json(&out, x, sb_str(at, x->len));
        at += x->len;
    }

    o->after = o->page.after;

    sb_out_text(&out, "]");
    sb_out_key(&out, "last");

    if (o->after == -1) {
        sb_out_text(&out, "null");

    } else {
        sb_out_int(&out, o->after);
    }

    sb_out_key(&out, "next");

    if (o->page.last) {
        sb_out_text(&out, "null");

    } else {
        sb_out_int(&out, o->after);
    }

    sb_out_text(&out, "}");

    return ask_json(q, &out);
}


/* The exact bytes, as there is room for them. */
static ask_rc_e
ask_output_raw(ask_question_t *q, ask_find_t *s, ask_output_t *o)
{
    bool              found;
    size_t            i, n, room;
    reader_rc_e       rc;
    history_error_t   err;

    for ( ;; ) {

        if (o->sent == o->page.bytes.len) {

            if (o->begun && o->page.last) {
                return ASK_DONE;
            }

            rc = ask_output_page(q->context, s, o, NULL, &found, &err);

            if (rc != READER_OK || !found) {
                return o->begun ? ASK_FAILED
                       : rc == READER_FAILED ? ask_unreadable(q, &err)
                       : ask_no_operation(q);
            }

            o->after = o->page.after;

            for (i = 0; i < o->page.n; i++) {
                if (!o->page.pieces[i].plain) {
                    return o->begun ? ASK_FAILED
                           : ask_refuse(q, 501, "GATEWAY_UNSUPPORTED",
                                        "This output was stored compressed by "
                                        "another program; format=json gives it "
                                        "as it is stored.");
                }
            }

            if (!o->begun) {
                ask_head(q, 200, "application/octet-stream");
                o->begun = true;
            }

            continue;
        }

        room = ask_room(q);

        if (room == 0) {
            return ASK_AGAIN;
        }

        n = o->page.bytes.len - o->sent;
        n = n < room ? n : room;

        if (!ask_write(q, o->page.bytes.data + o->sent, n)) {
            return ASK_FAILED;
        }

        o->sent += n;
    }
}


static ask_rc_e
ask_output_of(ask_question_t *q, bool of_one)
{
    ask_find_t    *s;
    ask_output_t  *o;

    s = ask_op_find(q, of_one, ask_output_param);

    if (s == NULL || s->answered) {
        return s ? s->rc : ASK_FAILED;
    }

    if (s->own == NULL) {
        s->own = o = calloc(1, sizeof(ask_output_t));

        if (o == NULL) {
            return ASK_FAILED;
        }

        s->free_own = ask_output_free;
        o->after = -1;
    }

    o = s->own;

    return o->raw ? ask_output_raw(q, s, o) : ask_output_json(q, s, o);
}


ask_rc_e
ask_output(ask_question_t *q)
{
    return ask_output_of(q, false);
}


ask_rc_e
ask_box_output(ask_question_t *q)
{
    return ask_output_of(q, true);
}
