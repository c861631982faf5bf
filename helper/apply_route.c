/*
 * Which file a record belongs to.  Everything an unknown sandbox is named in
 * stays in _gateway until upstream has shown that it exists (design 5).
 */

#include "apply_int.h"

#include <stdlib.h>


static apply_group_t *
apply_group(apply_t *a, apply_box_t *box)
{
    size_t          n;
    apply_group_t  *g;

    if (box == NULL) {
        return &a->groups[0];
    }

    if (box->group) {
        return &a->groups[box->group];
    }

    if (a->ngroups == a->agroups) {
        n = a->agroups * 2;

        g = realloc(a->groups, n * sizeof(apply_group_t));
        if (g == NULL) {
            return NULL;
        }

        memset(g + a->agroups, 0, (n - a->agroups) * sizeof(apply_group_t));
        a->groups = g;
        a->agroups = n;
    }

    g = &a->groups[a->ngroups];
    g->box = box;
    g->n = 0;
    box->group = a->ngroups++;

    return g;
}


sb_rc_t
apply_group_add(apply_group_t *g, size_t item)
{
    size_t  n, *p;

    if (g->n == g->alloc) {
        n = g->alloc ? g->alloc * 2 : 16;

        p = realloc(g->items, n * sizeof(size_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        g->items = p;
        g->alloc = n;
    }

    g->items[g->n++] = item;

    return SB_OK;
}


apply_item_t *
apply_item(apply_t *a, const journal_record_t *r, apply_op_t *op,
    apply_box_t *box)
{
    size_t         n;
    apply_item_t  *items;

    if (a->nitems == a->aitems) {
        n = a->aitems ? a->aitems * 2 : 1024;

        items = realloc(a->items, n * sizeof(apply_item_t));
        if (items == NULL) {
            return NULL;
        }

        a->items = items;
        a->aitems = n;
    }

    items = &a->items[a->nitems];
    memset(items, 0, sizeof(apply_item_t));
    items->rec.r = *r;
    items->op = op;
    items->box = box;
    items->segment = a->reader.segment;
    items->offset = a->at_offset;
    items->size = a->at_size;
    a->nitems++;

    return items;
}


static sb_str_t
apply_field(const sb_frame_t *f, uint16_t tag)
{
    sb_str_t  v;

    return sb_field_get(f, tag, &v) ? v : sb_str("", 0);
}


/*
 * Does upstream's answer show that the sandbox exists?  Many come before it
 * looks: redirects, refusals of parameters, errors of its own, also the 101 in
 * front of a close.  A file for every id that somebody makes up would fill the
 * disk.  What went straight went to an address that upstream has named.
 */
static bool
apply_answer_shows(const sb_frame_t *f)
{
    uint64_t  status;

    status = sb_field_u64(f, SB_T_UPSTREAM_STATUS, 0);

    return (status >= 200 && status < 300) || status == 304 || status == 409
           || (status && sb_eq(apply_field(f, SB_T_ROUTE),
                               sb_lit("straight")));
}


/* Upstream took the deletion of a sandbox, or does not know it any more. */
static sb_rc_t
apply_deleted(apply_t *a, apply_op_t *op, const journal_record_t *r)
{
    uint64_t       status;
    apply_item_t  *item;

    status = sb_field_u64(&r->frame, SB_T_UPSTREAM_STATUS, 0);

    if (r->frame.type != SB_F_END || !op->deletes || op->box == NULL
        || !op->box->file
        || ((status < 200 || status >= 300) && status != 404))
    {
        return SB_OK;
    }

    item = apply_item(a, r, NULL, op->box);
    if (item == NULL) {
        return SB_NOMEM;
    }

    item->state = sb_lit("gone");
    apply_set(&op->box->state, item->state, 64);

    return SB_OK;
}


static void
apply_end(apply_t *a, apply_op_t *op, const sb_frame_t *f)
{
    sb_str_t      v;
    apply_box_t  *box;

    v = apply_field(f, SB_T_NEW_SANDBOX);

    if (v.len) {
        box = apply_box(a, v);

        if (box) {
            apply_set(&box->name, apply_field(f, SB_T_NAME), 512);
            apply_set(&box->instance, apply_field(f, SB_T_INSTANCE_ID), 255);

            if (op->name) {
                apply_set(&box->name, sb_str(op->name, strlen(op->name)), 512);
            }

            if (op->instance) {
                apply_set(&box->instance,
                          sb_str(op->instance, strlen(op->instance)), 255);
            }

            box->asked = true;
            apply_op_rehome(op, box);
            apply_box_known(a, box);
            apply_box_make(a, box);
        }

    } else if (op->box && !op->home && apply_answer_shows(f)) {
        apply_box_known(a, op->box);
    }

    if (!sb_field_get(f, SB_T_DETACHED, &v)) {
        apply_op_over(a, op);
    }
}


static sb_rc_t
apply_op_record(apply_t *a, const journal_record_t *r)
{
    sb_str_t          v;
    apply_op_t       *op;
    apply_box_t      *box;
    const sb_frame_t *f;

    f = &r->frame;
    op = apply_op(a, f->op);

    if (op == NULL) {
        v = apply_field(f, SB_T_SANDBOX);
        box = v.len ? apply_box(a, v) : NULL;

        if (box && !box->file && box->seen) {
            apply_box_known(a, box);
        }

        op = apply_op_new(a, f->op, box);
        if (op == NULL) {
            return SB_NOMEM;
        }

        op->deletes = sb_eq(apply_field(f, SB_T_TYPE),
                            sb_lit("sandbox.delete"));

        op->stray = f->type != SB_F_BEGIN && f->type != SB_F_END;
    }

    if (op->stray) {
        /* nothing to remember */
        apply_op_over(a, op);
    }

    switch (f->type) {

    case SB_F_BEGIN:
    case SB_F_FACTS:
        apply_set(&op->name, apply_field(f, SB_T_NAME), 512);
        apply_set(&op->instance, apply_field(f, SB_T_INSTANCE_ID), 255);

        if (op->box && !op->home && apply_answer_shows(f)) {
            apply_box_known(a, op->box);
        }

        break;

    case SB_F_CONTENT:
        break;

    case SB_F_OUTPUT:
        if (op->box && !op->home) {
            apply_box_known(a, op->box);
        }

        break;

    case SB_F_END:
        apply_end(a, op, f);
        break;

    default:
        break;
    }

    return apply_item(a, r, op, NULL) ? apply_deleted(a, op, r) : SB_NOMEM;
}


/* One sandbox of a SEEN frame. */
static sb_rc_t
apply_seen_one(apply_t *a, const journal_record_t *r, apply_box_t *box,
    sb_str_t name, sb_str_t state)
{
    bool           gone, news;
    apply_item_t  *item;

    gone = sb_eq(state, sb_lit("gone"));

    box->seen = !gone;

    /* only a sandbox that something is kept of gets a file */
    if (!gone && !box->file && !box->none_held) {

        if (box->away || apply_box_held(a, box)) {
            apply_box_known(a, box);

        } else {
            box->none_held = true;
        }
    }

    if (!box->file) {
        return SB_OK;
    }

    news = (state.len && (box->state == NULL || strlen(box->state) != state.len
                          || memcmp(box->state, state.data, state.len) != 0))
           || (name.len && (box->written_name == NULL
                            || strlen(box->written_name) != name.len
                            || memcmp(box->written_name, name.data, name.len)
                               != 0));
    if (!news) {
        return SB_OK;
    }

    item = apply_item(a, r, NULL, box);
    if (item == NULL) {
        return SB_NOMEM;
    }

    item->state = state;
    item->name = name;

    apply_set(&box->state, state, 64);
    apply_set(&box->written_name, name, 512);

    return SB_OK;
}


void
apply_seen_of(apply_item_t *item, const apply_box_t *box)
{
    bool      mine;
    uint16_t  tag;
    sb_str_t  fields, v;

    fields = item->rec.r.frame.fields;
    mine = false;

    while (sb_field_next(&fields, &tag, &v)) {

        if (tag == SB_T_SANDBOX) {
            mine = sb_eq(v, sb_str(box->id, strlen(box->id)));

        } else if (mine && tag == SB_T_NAME) {
            item->name = v;

        } else if (mine && tag == SB_T_STATE) {
            item->state = v;
        }
    }
}


static sb_rc_t
apply_seen(apply_t *a, const journal_record_t *r)
{
    bool          more;
    uint16_t      tag;
    sb_rc_t       rc;
    sb_str_t      fields, v, name, state;
    apply_box_t  *box;

    fields = r->frame.fields;
    box = NULL;
    name = sb_str("", 0);
    state = sb_str("", 0);

    do {
        more = sb_field_next(&fields, &tag, &v);

        if (!more || tag == SB_T_SANDBOX) {

            if (box) {
                rc = apply_seen_one(a, r, box, name, state);
                if (rc != SB_OK) {
                    return rc;
                }
            }

            box = more ? apply_box(a, v) : NULL;
            name = sb_str("", 0);
            state = sb_str("", 0);

        } else if (box && tag == SB_T_NAME) {
            name = v;
            apply_set(&box->name, v, 512);

        } else if (box && tag == SB_T_INSTANCE_ID) {
            apply_set(&box->instance, v, 255);

        } else if (box && tag == SB_T_STATE) {
            state = v;
        }

    } while (more);

    return SB_OK;
}


static sb_rc_t
apply_gap(apply_t *a, const journal_record_t *r)
{
    sb_str_t      v;
    apply_op_t   *op;
    apply_box_t  *box;

    v = apply_field(&r->frame, SB_T_SANDBOX);
    box = v.len ? apply_box(a, v) : NULL;

    if (box == NULL) {
        op = apply_op(a, r->frame.op);
        box = op && op->home ? op->box : NULL;
    }

    if (box && !box->file) {
        box = NULL;
    }

    return apply_item(a, r, NULL, box) ? SB_OK : SB_NOMEM;
}


/* An operation that was open when its beginning went with an old segment. */
static sb_rc_t
apply_state(apply_t *a, const sb_frame_t *f)
{
    sb_str_t  v;

    if (sb_field_get(f, SB_T_DETACHED, &v) || apply_op(a, f->op)) {
        return SB_OK;
    }

    v = apply_field(f, SB_T_SANDBOX);

    return apply_op_new(a, f->op, v.len ? apply_box(a, v) : NULL) ? SB_OK
                                                                  : SB_NOMEM;
}


void
apply_scan(apply_t *a, const journal_record_t *r)
{
    sb_str_t          v;
    apply_op_t       *op;
    const sb_frame_t *f;

    f = &r->frame;

    if (r->cursor > a->applied) {
        return;
    }

    switch (f->type) {

    case SB_F_BEGIN:
    case JOURNAL_F_STATE_OPERATION:
        (void) apply_state(a, f);
        op = apply_op(a, f->op);

        if (op) {
            op->deletes = sb_eq(apply_field(f, SB_T_TYPE),
                                sb_lit("sandbox.delete"));
        }

        /* fall through */

    case SB_F_FACTS:
        op = apply_op(a, f->op);

        if (op) {
            apply_set(&op->name, apply_field(f, SB_T_NAME), 512);
            apply_set(&op->instance, apply_field(f, SB_T_INSTANCE_ID), 255);
        }

        break;

    case SB_F_END:
        op = apply_op(a, f->op);

        if (op && !sb_field_get(f, SB_T_DETACHED, &v)) {
            apply_op_over(a, op);
            apply_ops_forget(a);
        }

        break;

    default:
        break;
    }
}


static sb_rc_t
apply_sort(apply_t *a)
{
    size_t          i;
    apply_op_t     *op;
    apply_box_t    *box;
    apply_group_t  *g;

    for (i = 0; i < a->nitems; i++) {
        op = a->items[i].op;
        box = op ? (op->home ? op->box : NULL) : a->items[i].box;
        g = apply_group(a, box);

        if (g == NULL || apply_group_add(g, i) != SB_OK) {
            return SB_NOMEM;
        }
    }

    return SB_OK;
}


sb_rc_t
apply_route(apply_t *a, const char *buf, size_t n)
{
    size_t            pos, at;
    sb_rc_t           rc;
    journal_record_t  r;

    pos = 0;
    rc = SB_OK;
    a->oldest_us = 0;

    for (at = 0; rc == SB_OK && journal_next(&r, buf, n, &pos); at = pos) {

        a->at_offset = a->reader.offset - (off_t) (n - at);
        a->at_size = (uint32_t) (pos - at);

        if (a->oldest_us == 0) {
            a->oldest_us = r.frame.time_us;
        }

        a->newest_us = r.frame.time_us;

        switch (r.frame.type) {

        case SB_F_BEGIN:
        case SB_F_FACTS:
        case SB_F_OUTPUT:
        case SB_F_CONTENT:
        case SB_F_END:
            rc = apply_op_record(a, &r);
            break;

        case SB_F_SEEN:
            rc = apply_seen(a, &r);
            break;

        case SB_F_GAP:
            rc = apply_gap(a, &r);
            break;

        case JOURNAL_F_STATE_OPERATION:
            rc = apply_state(a, &r.frame);
            break;

        default:
            /* other state frames and what later versions may add */
            break;
        }
    }

    return rc == SB_OK ? apply_sort(a) : rc;
}
