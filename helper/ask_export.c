/* GET export: exactly the records that pass, to take away. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_boxes.h"
#include "history_export.h"
#include "index.h"
#include "schema.h"
#include "stats.h"

#include "id.h"

#include <stdio.h>
#include <stdlib.h>


#define ASK_EXPORT_PAGE  100        /* records looked up at a time */
#define ASK_EXPORT_US    10000000u  /* that the index has to come along */
#define ASK_EXPORT_LOOK  20000u


typedef struct {
    ask_args_t         args;
    api_wait_t         wait;
    history_filter_t   filter;
    history_export_e   format;
    index_question_t   ask;
    uint64_t           cursor;      /* what began up to it is exported */
    uint64_t           until_us;
    bool               waits;       /* ... and some of it for its file */
    char               dir[STORE_DIR_LEN];

    index_answer_t     page;
    size_t             at;          /* in the page */
    bool               last;        /* there is no page behind it */
    bool               begun;
    bool               ended;       /* its end is in the text */
    uint64_t           records;

    sb_out_t      text;
    size_t        sent;
} ask_export_t;


static void
ask_export_release(void *state)
{
    ask_export_t  *s = state;

    ask_args_free(&s->args);
    index_answer_free(&s->page);
    sb_buf_free(&s->text.buf);
    free(s);
}


static bool
ask_export_args(ask_export_t *s)
{
    int           n;
    unsigned      i;
    ask_param_t  *p;

    for (i = 0; i < s->args.n; i++) {
        p = &s->args.p[i];

        if (strcmp(p->name, "format") == 0) {
            n = ask_args_word(&s->args, p, history_export_names);

            if (n == -1) {
                return false;
            }

            s->format = (history_export_e) n;

        } else if (strcmp(p->name, "sandbox") == 0) {
            ask_box_dir(s->dir, sb_str(p->value, strlen(p->value)));
            s->ask.dir = s->dir;

        } else if (!ask_args_filter(&s->args, p, &s->filter)) {
            return false;
        }
    }

    return true;
}


static ask_export_t *
ask_export_new(ask_question_t *q)
{
    api_t         *api;
    ask_export_t  *s;

    api = q->context;
    s = calloc(1, sizeof(ask_export_t));

    if (s) {
        q->state = s;
        q->release = ask_export_release;

        history_filter_init(&s->filter);
        s->ask.filter = &s->filter;
        s->ask.limit = ASK_EXPORT_PAGE;
        s->ask.ascending = true;
        s->text.buf.max = SB_OUT_MAX;
        s->cursor = journal_tail(api->journal).cursor;
        s->until_us = sb_now_us() + ASK_EXPORT_US;
    }

    return s;
}


/* Is everything in the index that is to be exported?  -1: it takes too long. */
static int
ask_export_ready(api_t *api, ask_question_t *q, ask_export_t *s)
{
    uint64_t   now;
    settled_t  settled;

    if (stats_get(STATS_APPLIED_CURSOR) >= s->cursor) {

        index_hurry(api->index, s->cursor);

        if (index_settled(api->index, &settled) >= s->cursor
            && settled_to(&settled, s->ask.dir) >= s->cursor)
        {
            return 1;
        }

        s->waits = settled_files(&settled, s->ask.dir) < s->cursor;

    } else {
        apply_want(api->apply, s->cursor);
    }

    now = sb_now_us();

    if (now > s->until_us || now + ASK_EXPORT_US < s->until_us) {
        return -1;
    }

    ask_later(q, ASK_EXPORT_LOOK);

    return 0;
}


/* The next page of hits; INDEX_OK, or what is wrong, in page.why. */
static index_rc_e
ask_export_page(api_t *api, ask_export_t *s)
{
    index_rc_e  rc;

    index_answer_free(&s->page);
    memset(&s->page, 0, sizeof(s->page));
    s->at = 0;

    rc = index_query(api->index, &s->ask, &s->page);

    if (rc == INDEX_PARTIAL && s->page.has_resume) {
        s->last = false;
        s->ask.after = s->page.resume;

    } else if (rc == INDEX_OK) {
        s->last = !s->page.more;

        if (s->page.n) {
            s->ask.after = s->page.hits[s->page.n - 1].cursor;
        }

    } else {
        return rc == INDEX_BAD ? INDEX_BAD : INDEX_FAILED;
    }

    s->ask.has_after = true;

    return INDEX_OK;
}


/* Writes the record of a hit, if it is in that file: 1 it is, 0 not, -1 the file
 * cannot be read. */
static int
ask_export_row(ask_export_t *s, reader_t *reader, int64_t row,
    const index_hit_t *hit)
{
    int               rc;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    stmt = reader_record(reader, &err);

    if (stmt == NULL) {
        return -1;
    }

    sqlite3_bind_int64(stmt, 1, row);
    rc = history_step(stmt, &err);

    if (rc == 1 && !sb_eq(history_column(stmt, HR_ID),
                          sb_str(hit->id, strlen(hit->id))))
    {
        rc = 0;
    }

    if (rc == 1) {
        history_export_row(&s->text, s->format, stmt);
        s->records++;
    }

    sqlite3_reset(stmt);

    return rc;
}


/* The same of one that _gateway has no longer: it may have moved on since it
 * was indexed. */
static int
ask_export_moved(api_t *api, ask_export_t *s, const index_hit_t *hit)
{
    int               rc;
    int64_t           row;
    reader_t         *reader;
    reader_rc_e       took;
    history_error_t   err;

    row = hit->row;
    took = reader_take_of(api->readers, hit->dir, hit->id, &row, &reader, &err);

    if (took != READER_OK) {
        return took == READER_MISSING ? 0 : -1;
    }

    rc = ask_export_row(s, reader, row, hit);
    reader_give(api->readers, reader, rc == -1);

    return rc;
}


/* Writes records of one file, as long as there are some and the text is short.
 * False: one cannot be read. */
static bool
ask_export_rows(api_t *api, ask_export_t *s)
{
    int                 rc;
    bool                gateway;
    reader_t           *reader;
    reader_rc_e         took;
    const char         *dir;
    history_error_t     err;
    const index_hit_t  *hit;

    dir = s->page.hits[s->at].dir;
    gateway = strcmp(dir, SCHEMA_GATEWAY) == 0;
    took = reader_take(api->readers, dir, &reader, &err);

    if (took != READER_OK) {
        /* missing: it was deleted meanwhile */
        s->at++;
        return took == READER_MISSING;
    }

    rc = 0;

    while (rc != -1 && s->at < s->page.n && s->text.buf.len < SB_ASK_WINDOW) {
        hit = &s->page.hits[s->at];

        if (strcmp(hit->dir, dir) != 0) {
            break;
        }

        rc = ask_export_row(s, reader, hit->row, hit);

        if (rc == 0 && gateway) {
            rc = ask_export_moved(api, s, hit);
        }

        s->at += rc != -1;
    }

    reader_give(api->readers, reader, rc == -1);

    return rc != -1;
}


/* Some more text; false: it cannot be had. */
static bool
ask_export_more(api_t *api, ask_question_t *q, ask_export_t *s)
{
    s->text.buf.len = 0;
    s->sent = 0;

    if (!s->begun) {
        s->begun = true;
        history_export_head(&s->text, s->format,
                            q->query.len ? q->query : sb_lit("all records"));
    }

    while (s->text.rc == SB_OK && s->text.buf.len < SB_ASK_WINDOW / 2) {

        if (s->at < s->page.n) {

            if (!ask_export_rows(api, s)) {
                return false;
            }

        } else if (s->last) {
            history_export_tail(&s->text, s->format, s->records);
            s->ended = true;
            break;

        } else if (ask_export_page(api, s) != INDEX_OK) {
            return false;
        }

        if (ask_over(q)) {
            return false;
        }
    }

    return s->text.rc == SB_OK;
}


/* How many there were is on record, too. */
static void
ask_export_result(ask_question_t *q, const ask_export_t *s)
{
    q->result.max = 256;
    q->result.len = 0;
    (void) sb_buf_printf(&q->result, "{\"format\":\"%s\",\"records\":%llu}",
                         history_export_names[s->format],
                         (unsigned long long) s->records);
}


static ask_rc_e
ask_export_send(ask_question_t *q, ask_export_t *s)
{
    size_t  n, room;
    api_t  *api;

    api = q->context;

    for ( ;; ) {

        if (s->sent == s->text.buf.len) {

            if (s->ended) {
                return ASK_DONE;
            }

            if (!ask_export_more(api, q, s)) {
                ask_export_result(q, s);
                return ASK_FAILED;
            }

            ask_export_result(q, s);
        }

        room = ask_room(q);

        if (room == 0) {
            return ASK_AGAIN;
        }

        n = s->text.buf.len - s->sent;
        n = n < room ? n : room;

        if (!ask_write(q, s->text.buf.data + s->sent, n)) {
            return ASK_FAILED;
        }

        s->sent += n;
    }
}


ask_rc_e
ask_export(ask_question_t *q)
{
    int            rc;
    api_t         *api;
    ask_export_t  *s;

    api = q->context;
    s = q->state;

    if (api->index == NULL || api->readers == NULL || api->journal == NULL) {
        return ask_nothing(q);
    }

    if (s == NULL) {
        s = ask_export_new(q);

        if (s == NULL) {
            return ASK_FAILED;
        }

        if (!ask_args_read(&s->args, q->query) || !ask_export_args(s)) {
            return ask_args_refuse(q, &s->args);
        }
    }

    if (s->begun) {
        return ask_export_send(q, s);
    }

    rc = ask_export_ready(api, q, s);

    if (rc == 0) {
        return ASK_AGAIN;
    }

    s->ask.has_before = true;
    s->ask.before = (int64_t) s->cursor + 1;

    if (rc == -1 && s->waits) {
        return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", s->ask.dir
                          ? "Records of this sandbox wait for its history file, "
                          "which cannot be written now; the log of the helper "
                          "says why."
                          : "Records wait for a history file that cannot be "
                          "written now; the log of the helper says which and "
                          "why. Others can be exported with sandbox=ID.");
    }

    if (rc == -1) {
        return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", "The list of "
                          "operations is behind what was recorded; try again "
                          "shortly.");
    }

    switch (ask_export_page(api, s)) {

    case INDEX_OK:
        break;

    case INDEX_BAD:
        (void) snprintf(s->args.why, sizeof(s->args.why), "%s.", s->page.why);
        return ask_args_refuse(q, &s->args);

    default:
        return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", "The list of "
                          "operations cannot be read now; try again shortly.");
    }

    ask_head(q, 200, history_export_types[s->format]);

    return ask_export_send(q, s);
}
