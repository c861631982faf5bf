/* GET sandboxes/{id}/operations/{op}/recording: asciicast of an operation. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_boxes.h"
#include "cast.h"
#include "log.h"

#include <stdlib.h>


#define RECORDING_TEXT  (64u * 1024 * 1024)     /* of one page at most */

typedef struct {
    bool        begun;
    bool        over;           /* all of it is in `out` */
    char        dir[STORE_DIR_LEN];
    char        id[256];
    api_wait_t  wait;
    cast_t      cast;
    sb_buf_t    out;
    size_t      sent;
} recording_t;


static void
recording_release(void *state)
{
    recording_t  *r = state;

    cast_free(&r->cast);
    sb_buf_free(&r->out);
    free(r);
}


/* Reads the query; false after *rc is what the handler returns. */
static bool
recording_query(ask_question_t *q, recording_t *r, ask_rc_e *rc)
{
    int         word;
    bool        ok;
    unsigned    i;
    int64_t     n;
    ask_args_t  args;

    static const char *const  versions[] = { "2", "3", NULL };

    memset(&args, 0, sizeof(args));
    r->cast.version = 2;
    ok = ask_args_read(&args, q->query);

    for (i = 0; ok && i < args.n; i++) {

        if (strcmp(args.p[i].name, "version") == 0) {
            word = ask_args_word(&args, &args.p[i], versions);
            ok = word >= 0;
            r->cast.version = word + 2;

        } else if (strcmp(args.p[i].name, "idle_limit") == 0) {
            ok = ask_args_int(&args, &args.p[i], &n, 1, 86400);
            r->cast.idle_us = ok ? n * 1000000 : 0;

        } else {
            ok = ask_args_unknown(&args, &args.p[i]);
        }
    }

    if (!ok) {
        *rc = ask_args_refuse(q, &args);
    }

    ask_args_free(&args);

    return ok;
}


/* The next page; false after *rc is what the handler returns. */
static bool
recording_page(ask_question_t *q, recording_t *r, ask_rc_e *rc)
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

    taken = api->readers ? reader_take(api->readers, r->dir, &reader, &err)
                         : READER_MISSING;

    if (taken == READER_OK) {
        ok = r->begun || cast_begin(&r->cast, reader->db, r->id, &r->out,
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
        log_minutely(LOG_ERROR, "a recording of %s cannot be read: %s", r->dir,
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


ask_rc_e
ask_recording(ask_question_t *q)
{
    size_t        n;
    ask_rc_e      rc;
    recording_t  *r;

    r = q->state;

    if (r == NULL) {
        r = calloc(1, sizeof(recording_t));
        if (r == NULL) {
            return ASK_FAILED;
        }

        q->state = r;
        q->release = recording_release;
        r->out.max = RECORDING_TEXT;

        if (!recording_query(q, r, &rc)) {
            return rc;
        }

        if (q->args[1].len >= sizeof(r->id)) {
            return ask_no_operation(q);
        }

        ask_box_dir(r->dir, q->args[0]);
        memcpy(r->id, q->args[1].data, q->args[1].len);
    }

    if (!r->begun && !api_wait(q, &r->wait)) {
        return ASK_AGAIN;
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

        if (!recording_page(q, r, &rc)) {
            return rc;
        }
    }
}
