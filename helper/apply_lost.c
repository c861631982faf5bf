/*
 * Records of the journal that were acknowledged and cannot be read any more: the
 * disk gave back something else.  What comes behind them does not wait for ever;
 * a gap stands in their place, and an operation whose end is one of them ends.
 */

#include "apply_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"


#define APPLY_DAMAGED  "journal_damaged"


/* One frame of ours, as an item; its length, 0 without memory. */
static size_t
apply_lost_frame(apply_t *a, apply_group_t *g, char *mem, uint8_t type,
    uint64_t cursor, apply_op_t *op)
{
    size_t             need;
    uint8_t            none[16];
    uint64_t           now;
    apply_box_t       *box;
    journal_record_t   r;
    sb_frame_writer_t  w;

    now = sb_now_us();
    memset(none, 0, sizeof(none));
    sb_frame_begin(&w, mem, APPLY_LOST_FRAME, type, 0, 0,
                   op ? op->row.id : none, now);

    if (type == SB_F_END) {
        sb_frame_put(&w, SB_T_STATUS, sb_lit("unknown"));

    } else {
        sb_frame_put_u64(&w, SB_T_COUNT, op != NULL);
        sb_frame_put_u64(&w, SB_T_TIME, now);
        sb_frame_put_u64(&w, SB_T_TIME_END, now);
    }

    sb_frame_put(&w, SB_T_REASON, sb_lit(APPLY_DAMAGED));

    memset(&r, 0, sizeof(r));
    r.cursor = cursor;
    r.raw = mem;

    if (sb_frame_read(&r.frame, mem, sb_frame_end(&w), &need) != SB_OK) {
        return 0;
    }

    box = g ? g->box : NULL;

    if (apply_item(a, &r, type == SB_F_END ? op : NULL,
                   type == SB_F_END ? NULL : box)
        == NULL
        || (g && apply_group_add(g, a->nitems - 1) != SB_OK))
    {
        return 0;
    }

    return r.frame.length;
}


size_t
apply_lost_aside(apply_t *a, apply_box_t *box, size_t i, apply_group_t *g,
    char *mem)
{
    bool            last;
    size_t          n, k, end;
    apply_aside_t  *p;

    p = &box->aside[i];
    last = p->op && p->op->parked;

    for (k = i + 1; last && k < box->naside; k++) {
        last = box->aside[k].op != p->op;
    }

    n = apply_lost_frame(a, g, mem, SB_F_GAP, p->cursor, p->op);

    if (n && last) {
        /* that was its end */
        end = apply_lost_frame(a, g, mem + n, SB_F_END, p->cursor, p->op);
        n = end ? n + end : 0;
    }

    return n;
}


void
apply_lost_told(const apply_aside_t *p, const char *dir)
{
    log_line(LOG_ERROR, "record %llu of the journal, of the history of %s, is"
             " damaged (segment %010u, offset %lld, %u bytes): a gap is"
             " written in its place", (unsigned long long) p->cursor, dir,
             p->segment, (long long) p->offset, p->size);
    stats_add(STATS_JOURNAL_DAMAGED, 1);
}


sb_rc_t
apply_lost_passed(apply_t *a, size_t n, uint64_t tail)
{
    size_t            size;
    uint64_t          first;
    journal_record_t  r;

    first = n && journal_record_read(&r, a->buf, n, &size) == SB_OK
            ? r.cursor : tail + 1;

    if (first <= a->batch_from + 1) {
        return SB_OK;
    }

    log_line(LOG_ERROR, "records %llu to %llu of the journal are damaged: a gap"
             " is written in their place",
             (unsigned long long) a->batch_from + 1,
             (unsigned long long) first - 1);
    stats_add(STATS_JOURNAL_DAMAGED, first - 1 - a->batch_from);

    /* should it have to wait, it is found damaged once more */
    a->at_offset = 0;
    a->at_size = JOURNAL_HEAD;

    return apply_lost_frame(a, NULL, a->lost, SB_F_GAP, first - 1, NULL)
           ? SB_OK : SB_NOMEM;
}
