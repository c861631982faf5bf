#include "apply_int.h"

#include "path.h"

#include <stdlib.h>


void
apply_set(char **dst, sb_str_t v, size_t max)
{
    char  *p;

    if (v.len == 0 || v.len > max || memchr(v.data, '\0', v.len)) {
        return;
    }

    if (*dst && strlen(*dst) == v.len && memcmp(*dst, v.data, v.len) == 0) {
        return;
    }

    p = malloc(v.len + 1);

    if (p) {
        memcpy(p, v.data, v.len);
        p[v.len] = '\0';
        free(*dst);
        *dst = p;
    }
}


static void
apply_box_unlink(apply_t *a, apply_box_t *box)
{
    if (box->prev) {
        box->prev->next = box->next;
    } else {
        a->first = box->next;
    }

    if (box->next) {
        box->next->prev = box->prev;
    } else {
        a->last = box->prev;
    }
}


static void
apply_box_link(apply_t *a, apply_box_t *box)
{
    box->prev = a->last;
    box->next = NULL;

    if (a->last) {
        a->last->next = box;
    } else {
        a->first = box;
    }

    a->last = box;
}


static void
apply_box_free(apply_t *a, apply_box_t *box)
{
    apply_box_unlink(a, box);
    table_remove(&a->boxes, &box->node);
    free(box->id);
    free(box->name);
    free(box->instance);
    free(box->state);
    free(box->written_name);
    free(box->moves);
    free(box->aside);
    free(box);
}


apply_box_t *
apply_box(apply_t *a, sb_str_t id)
{
    apply_box_t  *box;

    /* an id with NUL is nobody's; a longer one than any header takes neither */
    if (id.len == 0 || id.len > 1024 || memchr(id.data, '\0', id.len)
        || sb_eq(id, sb_lit(SCHEMA_GATEWAY)))
    {
        return NULL;
    }

    box = table_find(&a->boxes, id.data, id.len);

    if (box) {
        apply_box_unlink(a, box);
        apply_box_link(a, box);
        return box;
    }

    box = calloc(1, sizeof(apply_box_t));
    if (box == NULL) {
        return NULL;
    }

    apply_set(&box->id, id, id.len);

    if (box->id == NULL
        || table_add(&a->boxes, &box->node, box->id, id.len) != SB_OK)
    {
        free(box->id);
        free(box);
        return NULL;
    }

    sb_history_dir(box->dir, id);
    box->file = store_exists(a->store, box->dir);
    apply_box_link(a, box);

    return box;
}


void
apply_boxes_trim(apply_t *a)
{
    apply_box_t  *box, *next;

    for (box = a->first; box && a->boxes.count > APPLY_SEEN; box = next) {
        next = box->next;

        if (box->refs == 0 && !box->making && !box->stalled) {
            apply_box_free(a, box);
        }
    }
}


bool
apply_busy(void *data, const char *sandbox)
{
    apply_t      *a = data;
    apply_box_t  *box;

    box = table_find(&a->boxes, sandbox, strlen(sandbox));

    return box && (box->refs || box->making || box->stalled);
}


/* A record that names it once more makes a file only when upstream shows that
 * there is such a sandbox. */
void
apply_removed(void *data, const char *sandbox)
{
    apply_t      *a = data;
    apply_box_t  *box;

    box = table_find(&a->boxes, sandbox, strlen(sandbox));

    if (box) {
        box->file = false;
        box->seen = false;
        free(box->state);
        box->state = NULL;
        free(box->written_name);
        box->written_name = NULL;
    }
}


void
apply_boxes_free(apply_t *a)
{
    while (a->first) {
        apply_box_free(a, a->first);
    }

    table_free(&a->boxes);
}


static void
apply_away_unlink(apply_op_t *op)
{
    if (op->away_prev) {
        op->away_prev->away_next = op->away_next;

    } else if (op->box && op->box->away == op) {
        op->box->away = op->away_next;
    }

    if (op->away_next) {
        op->away_next->away_prev = op->away_prev;
    }

    op->away_prev = NULL;
    op->away_next = NULL;
}


void
apply_box_make(apply_t *a, apply_box_t *box)
{
    if (!box->making) {
        box->making = true;
        box->next_make = a->makes;
        a->makes = box;
    }
}


void
apply_box_known(apply_t *a, apply_box_t *box)
{
    apply_op_t  *op;

    box->seen = true;

    if (box->file) {
        return;
    }

    box->file = true;
    apply_box_make(a, box);

    while ((op = box->away) != NULL) {
        apply_away_unlink(op);
        op->home = true;
        op->row.held = NULL;

        if (op->aside) {
            /* what of it is written into _gateway later names no sandbox */
            apply_box_move(box, op);
        }
    }
}


void
apply_box_move(apply_box_t *box, const apply_op_t *op)
{
    uint8_t  (*moves)[16];

    moves = realloc(box->moves, (box->nmoves + 1) * sizeof(*moves));

    if (moves) {
        memcpy(moves[box->nmoves], op->row.id, 16);
        box->moves = moves;
        box->nmoves++;
    }
}


apply_op_t *
apply_op(apply_t *a, const uint8_t id[16])
{
    return table_find(&a->ops, id, 16);
}


static void
apply_op_place(apply_op_t *op, apply_box_t *box)
{
    op->box = box;

    if (box == NULL) {
        return;
    }

    box->refs++;
    op->home = box->file;

    if (!op->home) {
        op->row.held = box->id;
        box->none_held = false;
        op->away_next = box->away;

        if (box->away) {
            box->away->away_prev = op;
        }

        box->away = op;
    }
}


apply_op_t *
apply_op_new(apply_t *a, const uint8_t id[16], apply_box_t *box)
{
    apply_op_t  *op;

    op = calloc(1, sizeof(apply_op_t));
    if (op == NULL) {
        return NULL;
    }

    memcpy(op->row.id, id, 16);

    if (table_add(&a->ops, &op->node, op->row.id, 16) != SB_OK) {
        free(op);
        return NULL;
    }

    apply_op_place(op, box);

    return op;
}


void
apply_op_rehome(apply_op_t *op, apply_box_t *box)
{
    if (op->box == box && op->home) {
        return;
    }

    if (op->box) {
        apply_away_unlink(op);
        op->box->refs--;
    }

    op->row.held = NULL;
    op->home = true;
    op->missed = false;
    op->box = box;
    box->refs++;

    /* from an earlier batch */
    apply_box_move(box, op);
}


void
apply_op_over(apply_t *a, apply_op_t *op)
{
    if (!op->over) {
        op->over = true;
        op->next_over = a->over;
        a->over = op;
    }
}


static void
apply_op_free(apply_t *a, apply_op_t *op)
{
    apply_away_unlink(op);

    if (op->box) {
        op->box->refs--;
    }

    table_remove(&a->ops, &op->node);
    free(op->name);
    free(op->instance);
    free(op);
}


void
apply_ops_forget(apply_t *a)
{
    apply_op_t  *op;

    while ((op = a->over) != NULL) {
        a->over = op->next_over;

        if (op->aside) {
            op->parked = true;

        } else {
            apply_op_free(a, op);
        }
    }
}


static void
apply_op_visit(void *entry, void *data)
{
    apply_op_free(data, entry);
}


void
apply_ops_free(apply_t *a)
{
    table_each(&a->ops, apply_op_visit, a);
    table_free(&a->ops);
}
