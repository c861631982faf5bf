/* GET [sandboxes/{id}/]operations/{op}/recording: asciicast of an operation. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_find.h"
#include "cast.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>


#define RECORDING_TEXT  (64u * 1024 * 1024)     /* of one page at most */

typedef struct {
    bool        begun;
    bool        over;           /* all of it is in `out` */
    cast_t      cast;
    sb_buf_t    out;
    size_t      sent;
} recording_t;


static void
recording_free(void *own)
{
    recording_t  *r = own;

    cast_free(&r->cast);
    sb_buf_free(&r->out);
    free(r);
}


static recording_t *
recording_of(ask_find_t *s)
{
    recording_t  *r;

    r = s->own;

    if (r == NULL) {
        s->own = r = calloc(1, sizeof(recording_t));
        s->free_own = recording_free;
    }

    if (r && r->cast.version == 0) {
        r->cast.version = 2;
        r->out.max = RECORDING_TEXT;
    }

    return r;
}


static bool
recording_param(ask_find_t *s, const ask_param_t *p)
{
    int           word;
    int64_t       n;
    recording_t  *r;

    static const char *const  versions[] = { "2", "3", NULL };

    r = recording_of(s);

    if (r == NULL) {
        (void) snprintf(s->args.why, sizeof(s->args.why),
                        "There is no memory.");
        return false;
    }

    if (strcmp(p->name, "version") == 0) {
        word = ask_args_word(&s->args, p, versions);
        r->cast.version = word + 2;
        return word >= 0;
    }

    if (strcmp(p->name, "idle_limit") == 0) {

        if (!ask_args_int(&s->args, p, &n, 1, 86400)) {
            return false;
        }

        r->cast.idle_us = n * 1000000;
        return true;
    }

    return ask_args_unknown(&s->args, p);
}


/* The next page; false after *rc is what the handler returns. */
static bool
recording_page(ask_question_t *q, ask_find_t *s, recording_t *r, ask_rc_e *rc)
{
    int               n;
    bool              found, ok;
    api_t            *api;
    reader_t         *reader;
    reader_rc_e       taken;
    history_error_t   err;

    api = q->context;
    found = true;
    n = 1;

    taken = reader_take_of(api->readers, s->dir, s->id, NULL, &reader, &err);

    if (taken == READER_OK) {
        ok = r->begun || cast_begin(&r->cast, reader->db, s->id, &r->out,
                                    &found, &err);

        if (ok && found) {
            n = cast_next(&r->cast, reader->db, &r->out, &err);
            ok = n != -1;
        }

        reader_give(api->readers, reader, !ok);

    } else {
        ok = taken == READER_MISSING;
        found = false;
    }

    if (!ok) {
        log_minutely(LOG_ERROR, "a recording of %s cannot be read: %s", s->dir,
                     err.message);
        *rc = r->begun ? ASK_FAILED : ask_unreadable(q, &err);
        return false;
    }

    if (!found) {
        *rc = r->begun ? ASK_FAILED : ask_no_operation(q);
        return false;
    }

    if (!r->begun) {
        ask_head(q, 200, "application/x-asciicast");
    }

    r->begun = true;
    r->over = n == 0;

    return true;
}


static ask_rc_e
recording_answer(ask_question_t *q, bool of_one)
{
    size_t        n;
    ask_rc_e      rc;
    ask_find_t   *s;
    recording_t  *r;

    s = ask_op_find(q, of_one, recording_param);

    if (s == NULL || s->answered) {
        return s ? s->rc : ASK_FAILED;
    }

    r = recording_of(s);

    if (r == NULL) {
        return ASK_FAILED;
    }

    for ( ;; ) {

        while (r->sent < r->out.len) {
            n = ask_room(q);
            n = n < r->out.len - r->sent ? n : r->out.len - r->sent;

            if (n == 0) {
                return ask_over(q) ? ASK_FAILED : ASK_AGAIN;
            }

            if (!ask_write(q, r->out.data + r->sent, n)) {
                return ASK_FAILED;
            }

            r->sent += n;
        }

        if (r->over) {
            return ASK_DONE;
        }

        r->out.len = 0;
        r->sent = 0;

        if (!recording_page(q, s, r, &rc)) {
            return rc;
        }
    }
}


ask_rc_e
ask_recording(ask_question_t *q)
{
    return recording_answer(q, false);
}


ask_rc_e
ask_box_recording(ask_question_t *q)
{
    return recording_answer(q, true);
}
