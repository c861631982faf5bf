/* The chain against its heads. */

#include "chain_verify_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>


typedef struct {
    verify_ctx_t  *c;
    verify_rc_e    ok;
    int64_t        line;    /* of the directory, counted from 1 */
    int64_t        from;    /* those of this file stand behind it */
    int64_t        to;      /* ... up to that one */
    int64_t        ended;   /* the last that ends a file of the directory */
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

    if (strcmp(head->sandbox, c->sandbox) != 0) {
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
verify_head_line(void *data, const head_t *head)
{
    verify_heads_t  *h = data;

    h->line++;

    if (h->line > h->from && h->line <= h->to) {
        h->ok = verify_head(h->c, head);
    }

    return h->ok == VERIFY_OK;
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

    h->line++;

    if (!head->ended) {
        return true;
    }

    if (c->conf->keys && !head->signed_right) {
        h->ok = verify_fault(c, "signature", 0, "");
        return false;
    }

    if (c->conf->archived
        && memcmp(head->file, c->mine, CHAIN_HASH) == 0)
    {
        h->from = h->ended;
        h->to = h->line;
    }

    h->ended = h->line;

    return true;
}


static bool
verify_heads_read(verify_heads_t *h, const char *dir,
    bool (*visit)(void *data, const head_t *head))
{
    verify_ctx_t  *c = h->c;

    h->line = 0;
    errno = c->heads_errno;

    if (c->heads && heads_each(c->heads, c->heads_bytes, dir, c->conf->keys,
                               visit, h))
    {
        return true;
    }

    (void) snprintf(c->v->why, sizeof(c->v->why), "The heads %s cannot be read:"
                    " %s.", c->conf->heads, strerror(errno));

    return false;
}


verify_rc_e
verify_heads(verify_ctx_t *c)
{
    const char      *dir;
    verify_heads_t   h;

    if (c->conf->heads == NULL) {
        return verify_unable(c, "There is no head to hold the chain against;"
                             " name the file with --head.");
    }

    memset(&h, 0, sizeof(h));
    h.c = c;
    h.ok = VERIFY_OK;
    h.to = INT64_MAX;
    dir = c->conf->dir ? c->conf->dir : c->sandbox;

    if (!verify_heads_read(&h, dir, verify_head_end)) {
        return VERIFY_UNABLE;
    }

    if (h.to == INT64_MAX) {
        h.from = h.ended;
    }

    if (h.ok == VERIFY_OK && !verify_heads_read(&h, dir, verify_head_line)) {
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
                        " that its chain still reaches.", c->conf->heads, dir);
        return VERIFY_UNABLE;
    }

    if (c->conf->keys == NULL) {
        return verify_unable(c, "The chain fits its head, but there is no key"
                             " to check the signature with; name it with"
                             " --key.");
    }

    return VERIFY_OK;
}
