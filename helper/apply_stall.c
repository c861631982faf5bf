/*
 * Sandboxes whose file cannot be written now: somebody holds its lock, or the
 * disk is full.  Their records stay in the journal, which is not forgotten from
 * there on; here stands where each of them is.  All others go on.
 */

#include "apply_int.h"

#include "id.h"
#include "log.h"
#include "settled.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define APPLY_RETRY_US   1000000u


static void
apply_stall_stats(apply_t *a)
{
    size_t              n;
    const apply_box_t  *box;

    n = 0;

    for (box = a->stalled; box; box = box->next_stalled) {
        n++;
    }

    stats_set(STATS_STALLED, n);
    stats_set(STATS_STALLED_RECORDS, a->naside);
}


apply_box_t *
apply_stall_box(apply_t *a, const apply_group_t *g)
{
    return g->box ? g->box : &a->gateway;
}


void
apply_stall_mark(apply_t *a, apply_box_t *box, int rc)
{
    if (box->stalled) {
        return;
    }

    box->stalled = true;
    box->floor = a->gateway_applied;
    box->retry_us = sb_mono_us() + APPLY_RETRY_US;
    box->next_stalled = a->stalled;
    a->stalled = box;

    log_line(LOG_WARN, "the history of %s cannot be written now: %s; its"
             " records wait in the journal, others go on", box->dir,
             sqlite3_errstr(rc));
    apply_stall_stats(a);
}


uint64_t
apply_floor(const apply_t *a, uint64_t cursor)
{
    const apply_box_t  *box;

    for (box = a->stalled; box; box = box->next_stalled) {
        if (box->naside && box->aside[0].cursor <= cursor) {
            cursor = box->aside[0].cursor - 1;
        }
    }

    return cursor;
}


/* A poll that waits for its end, or for its row. */
static void
apply_settle_visit(void *entry, void *data)
{
    settled_t   *s = data;
    apply_op_t  *op = entry;

    if (op->row.loaded) {
        op->pending_at = op->row.pending ? op->row.pending_at : 0;
    }

    if (op->pending_at == 0) {
        return;
    }

    if (op->home && op->box && op->box->stalled) {
        /* and for its file, which takes longer */
        settled_add(s, op->box->dir, op->pending_at - 1);

    } else {
        settled_add_poll(s, op->pending_at - 1);
    }
}


void
apply_settle(apply_t *a)
{
    settled_t           s;
    const apply_box_t  *box;

    settled_init(&s);

    for (box = a->stalled; box; box = box->next_stalled) {
        if (box->naside) {
            settled_add(&s, box->dir, box->aside[0].cursor - 1);
        }
    }

    table_each(&a->ops, apply_settle_visit, &s);
    settled_put(&s);
}


bool
apply_stall(apply_t *a, apply_group_t *g, size_t from, int rc)
{
    size_t               i, n;
    uint64_t             last;
    apply_box_t         *box;
    apply_item_t        *item;
    apply_aside_t       *p;

    box = apply_stall_box(a, g);
    n = g->n - from;
    last = box->naside ? box->aside[box->naside - 1].cursor : 0;

    if (a->naside + n > a->aside_most) {
        return false;
    }

    if (box->naside + n > box->aaside) {
        p = realloc(box->aside, (box->naside + n) * 2 * sizeof(*p));
        if (p == NULL) {
            return false;
        }

        box->aside = p;
        box->aaside = (box->naside + n) * 2;
    }

    for (i = from; i < g->n; i++) {
        item = &a->items[g->items[i]];

        if (item->rec.r.cursor <= last) {
            /* the batch comes again, for another reason */
            continue;
        }

        p = &box->aside[box->naside++];
        p->segment = item->segment;
        p->offset = item->offset;
        p->size = item->size;
        p->cursor = item->rec.r.cursor;
        p->op = item->op;
        p->lost = false;

        if (item->op) {
            item->op->aside++;
        }

        a->naside++;
    }

    apply_stall_mark(a, box, rc);
    apply_stall_stats(a);

    return true;
}


/* Reads a record that waits; SB_AGAIN: it cannot be read now, SB_ERROR: nor at
 * any other time. */
static sb_rc_t
apply_stall_record(journal_record_t *r, int fd, int error,
    const apply_aside_t *p, char *buf)
{
    size_t   size;
    ssize_t  n;

    if (fd == -1) {
        return error == ENOENT ? SB_ERROR : SB_AGAIN;
    }

    n = pread(fd, buf, p->size, p->offset);

    if (n == -1) {
        return errno == EIO ? SB_ERROR : SB_AGAIN;
    }

    return n == (ssize_t) p->size
           && journal_record_read(r, buf, p->size, &size) == SB_OK
           && r->cursor == p->cursor ? SB_OK : SB_ERROR;
}


/* A record that waited, as an item; false without memory. */
static bool
apply_stall_item(apply_t *a, apply_box_t *box, apply_group_t *g,
    const journal_record_t *r, const apply_aside_t *p)
{
    apply_item_t  *item;

    item = apply_item(a, r, p->op, g->box && p->op == NULL ? box : NULL);

    if (item == NULL || apply_group_add(g, a->nitems - 1) != SB_OK) {
        return false;
    }

    if (p->op == NULL && r->frame.type == SB_F_SEEN) {
        apply_seen_of(item, box);

    } else if (p->op == NULL && r->frame.type == SB_F_END) {
        /* of its deletion */
        item->state = sb_lit("gone");
    }

    return true;
}


/* Reads the records of a box that stand first, as items; their number. */
static size_t
apply_stall_read(apply_t *a, apply_box_t *box, apply_group_t *g)
{
    int               fd, error;
    char              name[32];
    size_t            i, used, size;
    sb_rc_t           rc;
    uint32_t          segment;
    apply_aside_t    *p;
    journal_record_t  r;

    fd = -1;
    error = 0;
    segment = 0;
    used = 0;
    memset(&r, 0, sizeof(r));

    for (i = 0; i < box->naside; i++) {
        p = &box->aside[i];

        if (i && p->cursor == p[-1].cursor) {
            /* what the record before it is besides: it stays with it */

            if (!p[-1].lost && !apply_stall_item(a, box, g, &r, p)) {
                break;
            }

            continue;
        }

        if (i >= APPLY_SLICE || used + p->size + 2 * APPLY_LOST_FRAME > APPLY_BUF) {
            break;
        }

        if (p->segment != segment) {
            if (fd != -1) {
                close(fd);
            }

            segment = p->segment;
            (void) snprintf(name, sizeof(name), "%010u.seg", segment);
            fd = openat(a->dirfd, name, O_RDONLY|O_CLOEXEC);
            error = errno;
        }

        rc = apply_stall_record(&r, fd, error, p, a->buf + used);

        if (rc == SB_AGAIN) {
            log_minutely(LOG_ERROR, "record %llu of %s cannot be read from the "
                         "journal now", (unsigned long long) p->cursor,
                         box->dir);
            break;
        }

        if (rc == SB_ERROR) {
            size = apply_lost_aside(a, box, i, g, a->buf + used);

            if (size == 0) {
                break;
            }

            p->lost = true;
            used += size;
            continue;
        }

        if (!apply_stall_item(a, box, g, &r, p)) {
            break;
        }

        used += p->size;
    }

    if (fd != -1) {
        close(fd);
    }

    return i;
}


/* The first n records are in the file. */
static void
apply_stall_done(apply_t *a, apply_box_t *box, size_t n)
{
    size_t       i;
    apply_op_t  *op;

    for (i = 0; i < n; i++) {
        op = box->aside[i].op;

        if (box->aside[i].lost) {
            apply_lost_told(&box->aside[i], box->dir);
        }

        if (op && --op->aside == 0 && op->parked) {
            op->parked = false;
            op->next_over = a->over;
            a->over = op;
        }
    }

    box->naside -= n;
    a->naside -= n;
    memmove(box->aside, box->aside + n, box->naside * sizeof(apply_aside_t));
}


/* Can _gateway be written? */
static bool
apply_stall_probe(apply_t *a)
{
    int          rc;
    bool         can;
    store_db_t  *db;

    db = apply_gateway(a, &rc);
    can = db && apply_writable(db);

    if (db) {
        db->pins--;
    }

    return can;
}


/* True when all of a box is in its file. */
static bool
apply_stall_one(apply_t *a, apply_box_t *box)
{
    int            rc;
    size_t         n;
    apply_group_t  g;
    apply_slice_t  s;

    memset(&g, 0, sizeof(g));
    g.box = box == &a->gateway ? NULL : box;
    rc = SQLITE_OK;

    if (box->making) {
        /* what of it is in _gateway moves in first */
        rc = a->gateway.stalled ? SQLITE_BUSY : apply_make_file(a, box, false);

        if (rc != SQLITE_OK) {
            return false;
        }

        apply_made(a, box);
    }

    if (g.box == NULL && !apply_stall_probe(a)) {
        return false;
    }

    while (box->naside && rc == SQLITE_OK) {
        a->nitems = 0;
        g.n = 0;
        n = apply_stall_read(a, box, &g);

        if (n == 0) {
            break;
        }

        s.group = &g;
        s.from = 0;
        s.to = g.n;
        rc = apply_slice_try(a, &s);

        if (rc == SQLITE_OK) {
            apply_stall_done(a, box, n);
        }
    }

    a->nitems = 0;
    free(g.items);

    return box->naside == 0;
}


/* True: it is stalled no more. */
static bool
apply_stall_again(apply_t *a, apply_box_t *box, uint64_t time, bool now)
{
    if ((!now && time < box->retry_us) || !apply_stall_one(a, box)) {

        if (time >= box->retry_us) {
            box->retry_us = time + APPLY_RETRY_US;
        }

        return false;
    }

    box->stalled = false;
    free(box->aside);
    box->aside = NULL;
    box->aaside = 0;

    log_line(LOG_INFO, "the history of %s is written again, nothing of it waits",
             box->dir);

    return true;
}


void
apply_stall_retry(apply_t *a, bool now)
{
    bool           freed;
    uint64_t       time;
    apply_box_t   *box, **p;

    time = sb_mono_us();
    freed = false;

    /* first of all: files that are to be made wait for what is in it */
    if (a->gateway.stalled && apply_stall_again(a, &a->gateway, time, now)) {
        freed = true;

        for (p = &a->stalled; *p != &a->gateway; p = &(*p)->next_stalled) {
            /* void */
        }

        *p = a->gateway.next_stalled;
        a->gateway.next_stalled = NULL;
    }

    if (a->recover && !a->gateway.stalled) {
        (void) apply_recover(a);
    }

    for (p = &a->stalled; (box = *p) != NULL; /* void */) {

        if (box != &a->gateway
            && apply_stall_again(a, box, time, now || freed))
        {
            /* others may have come in front of it meanwhile */
            for (p = &a->stalled; *p != box; p = &(*p)->next_stalled) {
                /* void */
            }

            *p = box->next_stalled;
            box->next_stalled = NULL;
            continue;
        }

        p = &box->next_stalled;
    }

    apply_ops_forget(a);
    apply_stall_stats(a);
}
