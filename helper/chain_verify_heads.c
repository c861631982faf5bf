/* The chain against its heads. */

#include "chain_verify_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>


typedef struct {
    verify_ctx_t  *c;
    verify_rc_e    ok;
    int64_t        line;
} verify_heads_t;


static verify_rc_e
verify_head(verify_ctx_t *c, const head_t *head)
{
    bool      same;
    verify_t *v;

    v = c->v;

    if (c->conf->keys && !head->signed_right) {
        return verify_fault(c, "signature", 0, "");
    }

    if (strcmp(head->sandbox, c->v->sandbox) != 0) {
        return verify_fault(c, "swapped", 0, "");
    }

    if (head->n > c->n) {
        return verify_fault(c, "cut", c->seq ? c->seq + 1 : 0, "");
    }

    if (head->n <= c->base) {
        /* what it speaks of was purged since */
        return VERIFY_OK;
    }

    sqlite3_bind_int64(c->at, 1, head->n);
    same = sqlite3_step(c->at) == SQLITE_ROW
           && sqlite3_column_bytes(c->at, 0) == CHAIN_HASH
           && memcmp(sqlite3_column_blob(c->at, 0), head->hash, CHAIN_HASH)
              == 0;
    (void) sqlite3_reset(c->at);

    if (!same) {
        return verify_fault(c, "rewritten", 0, "");
    }

    if (head->n >= v->head) {
        v->head = head->n;
        (void) snprintf(v->head_at, sizeof(v->head_at), "%s", head->at);
    }

    return VERIFY_OK;
}


static bool
verify_head_mine(verify_heads_t *h)
{
    const verify_lines_t  *l = &h->c->lines;

    h->line++;

    return h->line > l->from && h->line <= l->to;
}


static bool
verify_head_line(void *data, const head_t *head)
{
    verify_heads_t  *h = data;

    if (verify_head_mine(h)) {
        h->ok = verify_head(h->c, head);
    }

    return h->ok == VERIFY_OK;
}


/* What is proven is the same up to one head as up to the next, or follows. */
static bool
verify_head_proves(void *data, const head_t *head)
{
    void             *ranges;
    size_t            n;
    verify_heads_t   *h = data;
    verify_proven_t  *p = &h->c->proven;

    if (!verify_head_mine(h) || !head->signed_right) {
        return true;
    }

    p->last = head->n;
    p->on = head->proven >= 0;

    if (!p->on) {
        return true;
    }

    if (p->n && head->proven <= p->ranges[p->n - 1].to) {
        p->ranges[p->n - 1].to = head->n;
        return true;
    }

    if (p->n == p->alloc) {
        n = p->alloc ? p->alloc * 2 : 4;
        ranges = realloc(p->ranges, n * sizeof(p->ranges[0]));

        if (ranges == NULL) {
            p->failed = true;
            return false;
        }

        p->ranges = ranges;
        p->alloc = n;
    }

    p->ranges[p->n].from = head->proven;
    p->ranges[p->n++].to = head->n;

    return true;
}


verify_proof_e
verify_proof(const verify_ctx_t *c, int64_t n)
{
    size_t                  i;
    const verify_proven_t  *p = &c->proven;

    for (i = 0; i < p->n; i++) {
        if (n > p->ranges[i].from && n <= p->ranges[i].to) {
            return VERIFY_PROVEN;
        }
    }

    return n <= p->last ? VERIFY_EARLIER
           : p->on ? VERIFY_PROVEN : VERIFY_UNSIGNED;
}


/*
 * A sandbox may have had several files, one after the other: where one was
 * archived or deleted stands a head that ends it.  An archived one is held to
 * those up to its own end, the one that is there to those behind the last.
 */
static bool
verify_head_end(void *data, const head_t *head)
{
    verify_heads_t  *h = data;
    verify_ctx_t    *c = h->c;
    verify_lines_t  *l = &c->lines;

    h->line++;

    if (!head->ended) {
        return true;
    }

    if (c->conf->keys && !head->signed_right) {
        l->forged = true;
        return false;
    }

    if (c->conf->archived
        && memcmp(head->file, c->mine, CHAIN_HASH) == 0)
    {
        l->from = l->ended;
        l->to = h->line;
    }

    l->ended = h->line;
    (void) snprintf(l->ended_at, sizeof(l->ended_at), "%s", head->at);

    return true;
}


static const char *
verify_heads_dir(const verify_ctx_t *c)
{
    return c->conf->dir ? c->conf->dir : c->v->sandbox;
}


static bool
verify_heads_read(verify_heads_t *h, verify_ctx_t *c,
    bool (*visit)(void *data, const head_t *head))
{
    memset(h, 0, sizeof(verify_heads_t));
    h->c = c;
    h->ok = VERIFY_OK;
    errno = c->heads_errno;

    return c->heads && heads_each(c->heads, c->heads_bytes,
                                  verify_heads_dir(c), c->conf->keys, visit,
                                  h);
}


/* Of an older file, which is not that of the lines behind the last end.  When it
 * was made stands in its chain. */
static bool
verify_heads_gone(verify_ctx_t *c)
{
    bool           gone;
    sqlite3_stmt  *st;

    if (!c->conf->archived || c->lines.ended == 0
        || sqlite3_prepare_v2(c->db, "select value <= ?1 from history_meta"
                              " where key = 'created_at'", -1, &st, NULL)
           != SQLITE_OK)
    {
        return false;
    }

    sqlite3_bind_text(st, 1, c->lines.ended_at, -1, SQLITE_STATIC);
    gone = sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int(st, 0);
    (void) sqlite3_finalize(st);

    return gone;
}


bool
verify_heads_find(verify_ctx_t *c)
{
    verify_heads_t  h;

    c->lines.to = INT64_MAX;
    c->lines.read = verify_heads_read(&h, c, verify_head_end);

    if (c->lines.to == INT64_MAX) {
        c->lines.from = c->lines.ended;
        c->lines.gone = verify_heads_gone(c);
    }

    if (c->lines.read && c->conf->keys && !c->lines.gone) {
        c->lines.read = verify_heads_read(&h, c, verify_head_proves);
    }

    c->heads_errno = c->lines.read ? c->heads_errno : errno;

    return !c->proven.failed;
}


verify_rc_e
verify_heads(verify_ctx_t *c)
{
    verify_heads_t  h;

    if (c->conf->heads == NULL) {
        return verify_unable(c, "There is no head to hold the chain against;"
                             " name the file with --head.");
    }

    if (c->lines.forged) {
        return verify_fault(c, "signature", 0, "");
    }

    if (c->lines.gone) {
        (void) snprintf(c->v->why, sizeof(c->v->why), "%s holds no head of this"
                        " file of %s, only of later ones; an older " HEADS_FILE
                        " may (" HEADS_OLD ").", c->conf->heads,
                        verify_heads_dir(c));
        return VERIFY_UNABLE;
    }

    if (!c->lines.read || !verify_heads_read(&h, c, verify_head_line)) {
        (void) snprintf(c->v->why, sizeof(c->v->why), "The heads %s cannot be"
                        " read: %s.", c->conf->heads,
                        strerror(c->lines.read ? errno : c->heads_errno));
        return VERIFY_UNABLE;
    }

    if (h.ok != VERIFY_OK) {
        return h.ok;
    }

    if (c->n == 0) {
        /* nothing was ever recorded */
        return VERIFY_OK;
    }

    if (c->v->head == 0) {
        (void) snprintf(c->v->why, sizeof(c->v->why), "%s holds no head of %s"
                        " that its chain still reaches.", c->conf->heads,
                        verify_heads_dir(c));
        return VERIFY_UNABLE;
    }

    if (c->conf->keys == NULL) {
        return verify_unable(c, "The chain fits its head, but there is no key"
                             " to check the signature with; name it with"
                             " --key.");
    }

    return c->unsure ? verify_unable(c, "Records were purged since the last"
                                     " head, and that is not signed: an"
                                     " earlier version did not, and anybody"
                                     " could have.")
                     : VERIFY_OK;
}
