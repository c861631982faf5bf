/*
 * The events of execd's stream.  The scanner is not built on json.h, which keeps
 * a string until its end: here text goes out while it is decoded, so that one
 * event of many MiB costs no more memory than a short one (C029).
 */

#include "stream_scan.h"

#include "utf8.h"

#include <stdlib.h>


sb_stream_t *
sb_stream_new(const sb_stream_handler_t *h)
{
    sb_stream_t  *s;

    s = malloc(sizeof(sb_stream_t));
    if (s == NULL) {
        return NULL;
    }

    /* what stands in the buffer is told by len */
    memset(s, 0, offsetof(sb_stream_t, buf));

    s->h = *h;
    s->time = -1;
    s->count = -1;
    s->facts.execution_ms = -1;
    s->facts.execution_count = -1;
    s->facts.exit_code = -1;
    s->result.max = SB_STREAM_RESULT;

    return s;
}


void
sb_stream_free(sb_stream_t *s)
{
    if (s == NULL) {
        return;
    }

    sb_buf_free(&s->result);
    free(s);
}


void
sb_stream_begin(sb_stream_t *s)
{
    s->state = SB_S_FIRST_KEY;
    s->sink = SB_SINK_NONE;
    s->depth = 1;
    s->arrays = 0;
    s->high = 0;
    s->type = SB_TYPE_NONE;
    s->top = SB_K_OTHER;
    s->sub = SB_K_OTHER;
    s->has_code = false;
    s->held = false;
    s->held_over = false;
    s->text_len = 0;
    s->time = -1;
    s->count = -1;
    s->len = 0;
    s->ename[0] = '\0';
    s->evalue[0] = '\0';
    s->code[0] = '\0';
    s->message[0] = '\0';
    s->killed = false;
    s->terminated = false;
    s->capture = false;
    s->captured = false;
    s->result_cut = false;
}


/* Gives up an event: what was handed on stays, without an LF. */
static void
sb_stream_drop(sb_stream_t *s)
{
    if (sb_stream_is_output(s) && s->text_len && !s->held_over) {
        sb_stream_flush(s, true);
    }

    s->depth = 0;
    s->capture = false;
    s->len = 0;
    sb_buf_free(&s->result);
}


void
sb_stream_bad(sb_stream_t *s)
{
    sb_stream_drop(s);
    s->facts.bad_frames++;
    s->state = SB_S_SKIP;
}


static void
sb_stream_output_end(sb_stream_t *s)
{
    if (!s->raw && (s->text_len != 1 || s->text_first != '\n')) {
        if (s->len == SB_STREAM_BUF) {
            sb_stream_flush(s, false);
        }

        s->buf[s->len++] = '\n';
    }

    sb_stream_flush(s, true);
}


void
sb_stream_raw(sb_stream_t *s)
{
    s->raw = true;
}


static void
sb_stream_failed(sb_stream_t *s)
{
    long                v;
    char               *end;
    sb_stream_facts_t  *f = &s->facts;

    f->end = SB_STREAM_FAILED;
    f->has_exit_code = false;
    f->exit_code = -1;
    memcpy(f->ename, s->ename, sizeof(f->ename));
    memcpy(f->evalue, s->evalue, sizeof(f->evalue));
    f->killed = s->killed;
    f->terminated = s->terminated;

    if ((f->evalue[0] >= '0' && f->evalue[0] <= '9') || f->evalue[0] == '-') {
        v = strtol(f->evalue, &end, 10);

        if (*end == '\0' && end[-1] != '-' && v >= INT32_MIN
            && v <= INT32_MAX)
        {
            f->has_exit_code = true;
            f->exit_code = (int32_t) v;
        }
    }
}


/* Only the first terminal event counts, but for an error: of a Jupyter kernel
 * execd often says execution_complete first and the error after it. */
static void
sb_stream_terminal(sb_stream_t *s)
{
    sb_stream_facts_t  *f = &s->facts;

    if (f->end == SB_STREAM_COMPLETE && s->type == SB_TYPE_ERROR) {
        sb_stream_failed(s);
        return;
    }

    if (f->end != SB_STREAM_OPEN) {
        return;
    }

    switch (s->type) {

    case SB_TYPE_COMPLETE:
        f->end = SB_STREAM_COMPLETE;
        f->has_exit_code = true;
        f->exit_code = 0;
        f->execution_ms = s->time < 0 ? 0 : s->time;
        break;

    case SB_TYPE_ERROR:
        f->execution_ms = s->time;
        sb_stream_failed(s);
        break;

    default:
        f->end = SB_STREAM_RUNTIME;
        memcpy(f->code, s->code, sizeof(f->code));
        memcpy(f->message, s->message, sizeof(f->message));
        break;
    }
}


static void
sb_stream_result(sb_stream_t *s)
{
    size_t  i = 0;

    if (s->h.result == NULL || !s->captured) {
        return;
    }

    while (i < s->result.len && (s->result.data[i] == ' '
                                 || s->result.data[i] == '\t'))
    {
        i++;
    }

    s->h.result(s->h.data, sb_str(s->result.data + i, s->result.len - i),
                !s->result_cut);
}


/* The closing brace of an event. */
void
sb_stream_event(sb_stream_t *s)
{
    s->state = SB_S_LINE;

    if (s->held_over) {
        /* text stood before the type and is too long to be kept */
        s->type = SB_TYPE_UNKNOWN;
        s->facts.bad_frames++;
    }

    s->facts.events++;

    if (s->count >= 0 && s->type != SB_TYPE_NONE) {
        s->facts.execution_count = s->count;
    }

    switch (s->type) {

    case SB_TYPE_STDOUT:
    case SB_TYPE_STDERR:
        sb_stream_output_end(s);
        break;

    case SB_TYPE_INIT:
        if (s->h.init) {
            if (s->len > SB_STREAM_ID) {
                s->len = sb_utf8_cut(sb_str(s->buf, s->len), SB_STREAM_ID);
            }

            s->h.init(s->h.data, sb_str(s->buf, s->len));
        }

        break;

    case SB_TYPE_RESULT:
        sb_stream_result(s);
        break;

    case SB_TYPE_ERROR:
    case SB_TYPE_COMPLETE:
        sb_stream_terminal(s);
        break;

    case SB_TYPE_NONE:
        if (s->has_code) {
            sb_stream_terminal(s);
            break;
        }

        /* fall through */

    case SB_TYPE_UNKNOWN:
        s->facts.unknown_events++;
        break;

    case SB_TYPE_OTHER:
        break;
    }

    s->len = 0;
    sb_buf_free(&s->result);
}


static int
sb_stream_lookup(const sb_stream_word_t *w, const char *const *names)
{
    int  i;

    if (w->over) {
        return -1;
    }

    for (i = 0; names[i]; i++) {
        if (strlen(names[i]) == w->len
            && memcmp(names[i], w->data, w->len) == 0)
        {
            return i;
        }
    }

    return -1;
}


static void
sb_stream_key_end(sb_stream_t *s)
{
    int  i;

    static const char *const  top[] = { "type", "text", "results", "error",
        "execution_time", "code", "message", "execution_count", NULL };
    static const char *const  sub[] = { "ename", "evalue", "traceback", NULL };

    if (s->depth == 1) {
        i = sb_stream_lookup(&s->word, top);
        s->top = i < 0 ? SB_K_OTHER : (sb_stream_key_e) (SB_K_TYPE + i);

    } else if (s->depth == 2 && s->top == SB_K_ERROR) {
        i = sb_stream_lookup(&s->word, sub);
        s->sub = i < 0 ? SB_K_OTHER : (sb_stream_key_e) (SB_K_ENAME + i);
    }
}


static void
sb_stream_type_end(sb_stream_t *s)
{
    int               i;
    sb_stream_type_e  type;

    static const char *const       names[] = { "stdout", "stderr", "init",
        "result", "error", "execution_complete", "ping", "status",
        "execution_count", NULL };
    static const sb_stream_type_e  types[] = { SB_TYPE_STDOUT, SB_TYPE_STDERR,
        SB_TYPE_INIT, SB_TYPE_RESULT, SB_TYPE_ERROR, SB_TYPE_COMPLETE,
        SB_TYPE_OTHER, SB_TYPE_OTHER, SB_TYPE_OTHER };

    i = sb_stream_lookup(&s->word, names);
    type = i < 0 ? SB_TYPE_UNKNOWN : types[i];

    /* text that was handed on already cannot change its stream */

    if (s->type == SB_TYPE_NONE || s->text_len == 0 || s->held) {
        s->type = type;
    }
}


static void
sb_stream_traceback(sb_stream_t *s)
{
    s->killed = s->killed || strstr(s->word.data, "signal: killed");
    s->terminated = s->terminated
                    || strstr(s->word.data, "signal: terminated");
}


/* The opening quote of a string value. */
void
sb_stream_string(sb_stream_t *s)
{
    s->state = SB_S_STRING;
    s->sink = SB_SINK_NONE;
    s->is_key = false;

    if (s->depth == 1) {
        switch (s->top) {

        case SB_K_TYPE:
            sb_stream_collect(s, s->name, sizeof(s->name));
            break;

        case SB_K_TEXT:
            if (sb_stream_is_output(s)) {
                s->sink = SB_SINK_TEXT;
                s->held = false;

            } else if (s->type == SB_TYPE_NONE || s->type == SB_TYPE_INIT) {
                s->sink = SB_SINK_HOLD;
                s->held = true;
            }

            break;

        case SB_K_CODE:
            s->has_code = true;
            sb_stream_collect(s, s->code, sizeof(s->code));
            break;

        case SB_K_MESSAGE:
            sb_stream_collect(s, s->message, sizeof(s->message));
            break;

        default:
            break;
        }

        return;
    }

    if (s->top != SB_K_ERROR) {
        return;
    }

    if (s->depth == 2 && s->sub == SB_K_ENAME) {
        sb_stream_collect(s, s->ename, sizeof(s->ename));

    } else if (s->depth == 2 && s->sub == SB_K_EVALUE) {
        sb_stream_collect(s, s->evalue, sizeof(s->evalue));

    } else if (s->depth == 3 && s->sub == SB_K_TRACEBACK) {
        sb_stream_collect(s, s->name, sizeof(s->name));
    }
}


/* The closing quote of a name or a value. */
void
sb_stream_string_end(sb_stream_t *s)
{
    sb_stream_lone(s);

    if (s->is_key) {
        s->state = SB_S_COLON;
        sb_stream_key_end(s);
        return;
    }

    s->state = SB_S_NEXT;

    if (s->sink != SB_SINK_WORD) {
        return;
    }

    if (s->depth == 1 && s->top == SB_K_TYPE) {
        sb_stream_type_end(s);
        return;
    }

    sb_stream_word_end(s);

    if (s->depth == 3) {
        sb_stream_traceback(s);
    }
}


const sb_stream_facts_t *
sb_stream_finish(sb_stream_t *s)
{
    if (s->finished) {
        return &s->facts;
    }

    s->finished = true;

    if (s->depth) {
        s->facts.incomplete_frame = true;

        if (s->len && !sb_stream_is_output(s) && s->held
            && s->type == SB_TYPE_NONE)
        {
            /* text whose stream was never told */
            s->facts.bad_frames++;
        }

        if (sb_stream_is_output(s) && !s->held_over) {
            sb_stream_lone(s);
        }

        sb_stream_drop(s);

    } else if (s->state == SB_S_FIELD) {
        s->facts.incomplete_frame = true;
    }

    s->state = SB_S_SKIP;

    return &s->facts;
}


const sb_stream_facts_t *
sb_stream_facts(const sb_stream_t *s)
{
    return &s->facts;
}
