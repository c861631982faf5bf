/* GET sandboxes: upstream's list and everything with a history. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_boxes.h"

#include "id.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>


#define ASK_SANDBOXES       200     /* of a page, unless told */
#define ASK_SANDBOXES_MOST  1000


/* One that passes: its place in the order, and its JSON. */
typedef struct {
    char    *key;           /* created, id */
    size_t   at;
    size_t   len;
} ask_found_t;

typedef struct {
    ask_args_t          args;
    api_wait_t          wait;
    ask_listed_wait_t   listed;
    uint64_t            until_us;
    int64_t             limit;
    const char         *state;
    const char         *q;
    const char         *after;

    sb_out_t           text;       /* JSON of those found */
    ask_found_t       *found;
    size_t             n, cap;
    bool               short_of_memory;
} ask_sandboxes_t;


static void
ask_sandboxes_release(void *state)
{
    size_t            i;
    ask_sandboxes_t  *s = state;

    for (i = 0; i < s->n; i++) {
        free(s->found[i].key);
    }

    free(s->found);
    sb_buf_free(&s->text.buf);
    ask_args_free(&s->args);
    free(s);
}


static bool
ask_sandboxes_args(ask_sandboxes_t *s)
{
    unsigned      i;
    ask_param_t  *p;

    for (i = 0; i < s->args.n; i++) {
        p = &s->args.p[i];

        if (strcmp(p->name, "state") == 0) {
            s->state = p->value;

        } else if (strcmp(p->name, "q") == 0) {
            s->q = p->value;

        } else if (strcmp(p->name, "after") == 0) {
            s->after = p->value;

        } else if (strcmp(p->name, "limit") == 0) {
            if (!ask_args_int(&s->args, p, &s->limit, 1, ASK_SANDBOXES_MOST)) {
                return false;
            }

        } else {
            return ask_args_unknown(&s->args, p);
        }
    }

    return true;
}


/* Holds a text another, whatever the case of ASCII letters? */
static bool
ask_holds(const char *text, const char *part)
{
    return text && strcasestr(text, part) != NULL;
}


static void
ask_sandbox_text(sb_out_t *out, const char *name, const char *text)
{
    sb_out_key(out, name);

    if (text) {
        sb_out_str(out, sb_str(text, strlen(text)));

    } else {
        sb_out_text(out, "null");
    }
}


static void
ask_sandbox_number(sb_out_t *out, const char *name, const ask_box_t *box,
    int64_t n)
{
    sb_out_key(out, name);

    if (box->history && !box->readable) {
        sb_out_text(out, "null");

    } else {
        sb_out_int(out, n);
    }
}


static void
ask_sandbox_json(sb_out_t *out, const ask_box_t *box)
{
    sb_out_text(out, "{");
    ask_sandbox_text(out, "id", box->id);
    ask_sandbox_text(out, "name", box->name ? box->name : box->id);
    ask_sandbox_text(out, "state", box->state);
    ask_sandbox_text(out, "image", box->image);
    ask_sandbox_text(out, "created_at", box->created);
    ask_sandbox_text(out, "expires_at", box->expires);
    ask_sandbox_text(out, "last_activity_at", box->last);
    ask_sandbox_number(out, "operations", box, box->operations);
    ask_sandbox_number(out, "failures", box, box->failures);
    ask_sandbox_number(out, "running", box, box->running);
    ask_sandbox_number(out, "gaps", box, box->gaps);
    sb_out_key(out, "history_bytes");
    sb_out_int(out, box->bytes);
    sb_out_key(out, "history");
    sb_out_text(out, !box->history ? "\"none\""
                     : box->readable ? "\"ok\"" : "\"unreadable\"");
    sb_out_key(out, "upstream");
    sb_out_text(out, box->upstream ? "true" : "false");
    sb_out_text(out, "}");
}


/* Times are written in several ways; their order is one. */
static char *
ask_sandbox_key(const ask_box_t *box)
{
    char      *key;
    char       time[SB_TIME_LEN + 1];
    size_t     size;
    uint64_t   us;

    us = 0;

    if (box->created) {
        (void) sb_time_parse(&us, sb_str(box->created, strlen(box->created)));
    }

    sb_time_text(time, us);
    size = SB_TIME_LEN + strlen(box->id) + 2;
    key = malloc(size);

    if (key) {
        (void) snprintf(key, size, "%s/%s", time, box->id);
    }

    return key;
}


static void
ask_sandboxes_each(void *data, const ask_box_t *box)
{
    size_t            cap;
    ask_found_t      *found;
    ask_sandboxes_t  *s = data;

    if ((s->state && (box->state == NULL
                      || strcasecmp(box->state, s->state) != 0))
        || (s->q && !ask_holds(box->id, s->q) && !ask_holds(box->name, s->q)
            && !ask_holds(box->image, s->q)))
    {
        return;
    }

    if (s->n == s->cap) {
        cap = s->cap ? s->cap * 2 : 64;
        found = realloc(s->found, cap * sizeof(ask_found_t));

        if (found == NULL) {
            s->short_of_memory = true;
            return;
        }

        s->found = found;
        s->cap = cap;
    }

    found = &s->found[s->n];
    found->key = ask_sandbox_key(box);

    if (found->key == NULL) {
        s->short_of_memory = true;
        return;
    }

    found->at = s->text.buf.len;
    ask_sandbox_json(&s->text, box);
    found->len = s->text.buf.len - found->at;
    s->n++;
}


/* The newest first. */
static int
ask_sandboxes_order(const void *one, const void *two)
{
    const ask_found_t  *a = one, *b = two;

    return strcmp(b->key, a->key);
}


static ask_rc_e
ask_sandboxes_answer(ask_question_t *q, ask_sandboxes_t *s, bool all)
{
    bool            complete;
    size_t          i, from, to;
    ask_listed_e    how;
    sb_out_t        out = { .buf.max = SB_OUT_MAX };

    /* in the order of ask_listed_e */
    static const char *const  words[] = {
        "\"unknown\"", "\"ok\"", "\"partial\"", "\"unreachable\""
    };

    s->text.buf.max = SB_OUT_MAX;
    how = ask_boxes_each(q->context, ask_sandboxes_each, s, &complete);

    if (s->short_of_memory || s->text.rc != SB_OK) {
        return ASK_FAILED;
    }

    if (s->n) {
        qsort(s->found, s->n, sizeof(ask_found_t), ask_sandboxes_order);
    }

    from = 0;

    while (s->after && from < s->n
           && strcmp(s->found[from].key, s->after) >= 0)
    {
        from++;
    }

    to = s->n - from > (size_t) s->limit ? from + (size_t) s->limit : s->n;

    sb_out_text(&out, "{");
    sb_out_key(&out, "items");
    sb_out_text(&out, "[");

    for (i = from; i < to; i++) {
        sb_out_text(&out, i == from ? "" : ",");
        sb_out_raw(&out, s->text.buf.data + s->found[i].at,
                   s->found[i].len);
    }

    /* all of them, while the answer, one page, may be read slowly */
    sb_buf_free(&s->text.buf);

    sb_out_text(&out, "]");
    ask_sandbox_text(&out, "next", to < s->n ? s->found[to - 1].key : NULL);
    sb_out_key(&out, "total");
    sb_out_int(&out, (int64_t) s->n);
    sb_out_key(&out, "upstream");
    sb_out_text(&out, words[how]);
    sb_out_key(&out, "complete");
    sb_out_text(&out, complete && all && s->wait.reached ? "true}"
                                                         : "false}");

    return ask_json(q, &out);
}


ask_rc_e
ask_sandboxes(ask_question_t *q)
{
    bool              all;
    api_t            *api;
    uint64_t          now;
    ask_sandboxes_t  *s;

    api = q->context;
    s = q->state;

    if (api->boxes == NULL || api->readers == NULL) {
        return ask_nothing(q);
    }

    if (s == NULL) {
        s = calloc(1, sizeof(ask_sandboxes_t));

        if (s == NULL) {
            return ASK_FAILED;
        }

        q->state = s;
        q->release = ask_sandboxes_release;
        s->limit = ASK_SANDBOXES;

        if (!ask_args_read(&s->args, q->query) || !ask_sandboxes_args(s)) {
            return ask_args_refuse(q, &s->args);
        }
    }

    if (!api_wait(q, &s->wait)) {
        return ASK_AGAIN;
    }

    if (s->until_us == 0 && !ask_boxes_listed(q, &s->listed)) {
        return ASK_AGAIN;
    }

    now = sb_now_us();

    if (s->until_us == 0) {
        s->until_us = now + ASK_BOXES_ALL_MS * 1000u;
    }

    /* others have their turn in between */
    all = ask_boxes_read(api);

    if (!all && now < s->until_us) {
        ask_later(q, 1000);
        return ASK_AGAIN;
    }

    return ask_sandboxes_answer(q, s, all);
}
