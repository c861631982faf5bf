#include "live_search.h"

#include <stdlib.h>


typedef struct {
    uint8_t   op[16];
    uint32_t  found;
} live_search_op_t;

struct live_search_s {
    sb_search_t       *q;
    size_t             n, next;
    live_search_op_t   ops[LIVE_SEARCH_OPS];
};


live_search_t *
live_search_new(const char *q, sb_rc_t *rc)
{
    live_search_t  *s;

    s = calloc(1, sizeof(live_search_t));
    *rc = SB_NOMEM;

    if (s) {
        s->q = sb_search_new(sb_str(q, strlen(q)), rc);
    }

    if (s && s->q == NULL) {
        free(s);
        s = NULL;
    }

    return s;
}


void
live_search_free(live_search_t *s)
{
    if (s) {
        sb_search_free(s->q);
        free(s);
    }
}


static live_search_op_t *
live_search_op(live_search_t *s, const uint8_t op[16])
{
    size_t  i;

    for (i = 0; i < s->n; i++) {
        if (memcmp(s->ops[i].op, op, 16) == 0) {
            return &s->ops[i];
        }
    }

    return NULL;
}


bool
live_search_event(live_search_t *s, const live_event_t *e)
{
    uint32_t           all, found;
    live_search_op_t  *op;

    all = sb_search_all(s->q);
    op = live_search_op(s, e->op);

    if (op && op->found == all) {
        return true;
    }

    /* a phrase does not go from the one into the other */
    found = sb_search_find(s->q, e->facts.head) | sb_search_find(s->q,
                                                                   e->facts.out);

    if (found == 0) {
        return false;
    }

    if (op == NULL) {
        op = &s->ops[s->next];
        s->next = (s->next + 1) % LIVE_SEARCH_OPS;
        s->n += s->n < LIVE_SEARCH_OPS;
        memcpy(op->op, e->op, 16);
        op->found = 0;
    }

    op->found |= found;

    return op->found == all;
}
