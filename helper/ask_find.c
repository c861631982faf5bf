#include "ask_find.h"

#include "ask_answer.h"
#include "ask_boxes.h"

#include <stdlib.h>


static void
ask_find_release(void *state)
{
    ask_find_t  *s = state;

    if (s->free_own) {
        s->free_own(s->own);
    }

    ask_args_free(&s->args);
    free(s);
}


static void
ask_find_answer(ask_find_t *s, ask_rc_e rc)
{
    s->answered = true;
    s->rc = rc;
}


static ask_find_t *
ask_find_new(ask_question_t *q, ask_find_param_pt param)
{
    unsigned     i;
    ask_find_t  *s;

    s = calloc(1, sizeof(ask_find_t));

    if (s == NULL) {
        return NULL;
    }

    q->state = s;
    q->release = ask_find_release;

    if (!ask_args_read(&s->args, q->query)) {
        ask_find_answer(s, ask_args_refuse(q, &s->args));
        return s;
    }

    for (i = 0; i < s->args.n; i++) {
        if (param ? !param(s, &s->args.p[i])
                  : !ask_args_unknown(&s->args, &s->args.p[i]))
        {
            ask_find_answer(s, ask_args_refuse(q, &s->args));
            return s;
        }
    }

    return s;
}


ask_find_t *
ask_op_find(ask_question_t *q, bool of_one, ask_find_param_pt param)
{
    int           rc;
    api_t        *api;
    sb_str_t      id;
    ask_find_t   *s;
    index_hit_t   hit;

    api = q->context;
    s = q->state;

    if (s == NULL) {
        s = ask_find_new(q, param);

        if (s == NULL || s->answered) {
            return s;
        }
    }

    if (s->found) {
        return s;
    }

    if (api->index == NULL || api->readers == NULL) {
        ask_find_answer(s, ask_nothing(q));
        return s;
    }

    if (of_one ? !api_wait(q, &s->wait) : !api_wait_index(q, &s->wait)) {
        s->answered = true;
        s->rc = ASK_AGAIN;
        return s;
    }

    s->answered = false;
    id = q->args[of_one ? 1 : 0];

    if (id.len >= sizeof(s->id) || memchr(id.data, '\0', id.len)) {
        ask_find_answer(s, ask_no_operation(q));
        return s;
    }

    memcpy(s->id, id.data, id.len);

    if (of_one) {
        ask_box_dir(s->dir, q->args[0]);
        rc = ask_box_exists(q, &s->listed, s->dir, q->args[0]);

        if (rc != 1) {
            ask_find_answer(s, rc == 0 ? ask_no_sandbox(q) : ASK_AGAIN);
            return s;
        }

    } else {
        rc = index_find(api->index, s->id, &hit);

        if (rc == -1 && api_wait_more(q, &s->wait)) {
            s->answered = true;
            s->rc = ASK_AGAIN;
            return s;
        }

        if (rc != 1) {
            ask_find_answer(s, rc == 0 ? ask_no_operation(q)
                               : ask_refuse(q, 503,
                                            "GATEWAY_RECORDER_UNAVAILABLE",
                                            "The index cannot be read now; ask "
                                            "again."));
            return s;
        }

        (void) strcpy(s->dir, hit.dir);
    }

    s->found = true;

    return s;
}
