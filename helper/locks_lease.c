/* Leases: keys held over several operations, until a time. */

#include "locks_int.h"

#include "digest.h"
#include "id.h"

#include <stdlib.h>


static const char  locks_token_head[] = "lease-";


static sb_rc_t
locks_lease_add(locks_t *t, const locks_lease_t *l, locks_req_t **req)
{
    sb_rc_t       rc;
    locks_req_t  *r;
    locks_who_t  *who;

    if (t->nleases >= t->max_leases) {
        return SB_LIMIT;
    }

    who = malloc(sizeof(locks_who_t));

    if (who == NULL) {
        return SB_NOMEM;
    }

    r = locks_req_new(t, l->id, l->sandbox, l->keys, l->nkeys, &rc);

    if (r == NULL) {
        free(who);
        return rc;
    }

    r->who = who;
    locks_copy(who->type, sizeof(who->type), l->actor_type);
    locks_copy(who->identity, sizeof(who->identity), l->identity);
    locks_copy(who->owner, sizeof(who->owner), l->owner);

    memcpy(r->hash, l->hash, 32);

    if (table_add(&t->tokens, &r->token, r->hash, 32) != SB_OK) {
        /* it has not begun to wait */
        t->nwaiting++;
        locks_req_end(t, r, 0);
        return SB_NOMEM;
    }

    r->tokened = true;
    t->nleases++;
    r->lease = true;
    r->fence = l->fence;
    locks_copy(r->type, sizeof(r->type), sb_lit("lease"));
    locks_copy(r->actor, sizeof(r->actor), l->actor);
    *req = r;

    return SB_OK;
}


sb_rc_t
locks_lease_new(locks_t *t, locks_lease_t *l, char token[LOCKS_TOKEN],
    uint64_t ttl_us, uint64_t now_us)
{
    size_t        n;
    uint8_t       secret[24];
    sb_rc_t       rc;
    uint64_t      unix_us;
    sb_uuid7_t    ids;
    locks_req_t  *r;

    memset(&ids, 0, sizeof(ids));
    unix_us = sb_now_us();
    sb_uuid7(&ids, unix_us, l->id);

    n = sizeof(locks_token_head) - 1;
    memcpy(token, locks_token_head, n);
    sb_random(secret, sizeof(secret));
    sb_hex(token + n, secret, sizeof(secret));
    n += 2 * sizeof(secret);
    sb_sha256(l->hash, sb_str(token, n));

    pthread_mutex_lock(&t->lock);

    /* grows even if the journal is lost */
    t->fence = t->fence + 1 > unix_us ? t->fence + 1 : unix_us;
    l->fence = t->fence;
    l->expires_us = 0;

    rc = locks_lease_add(t, l, &r);

    if (rc == SB_OK) {
        r->ttl_us = ttl_us;
        locks_wait(t, r, now_us, 0);
        locks_wake(t);      /* there is a deadline now */
    }

    pthread_mutex_unlock(&t->lock);

    return rc;
}


sb_rc_t
locks_lease_restore(locks_t *t, const locks_lease_t *l, uint64_t now_us)
{
    sb_rc_t       rc;
    uint64_t      unix_us;
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    unix_us = sb_now_us();
    rc = SB_OK;

    if (l->fence > t->fence) {
        t->fence = l->fence;
    }

    r = table_find(&t->reqs, l->id, 16);

    if (l->expires_us == 0) {

        if (r) {
            r->told = false;
            locks_req_end(t, r, now_us);
        }

    } else if (r || l->nkeys) {

        /* one that is over may be renewed by what comes next; else it ends as
         * soon as somebody looks */

        if (r == NULL) {
            rc = locks_lease_add(t, l, &r);

            if (rc == SB_OK) {
                r->since_us = now_us;
                r->state = LOCKS_R_HELD;
                r->told = true;
                r->box->running[SB_LIMIT_NONE]++;
                locks_link(r, true);
            }
        }

        if (rc == SB_OK) {
            r->expires_us = l->expires_us;
            locks_deadline(t, r, now_us + (l->expires_us > unix_us
                                           ? l->expires_us - unix_us : 1));
        }
    }

    pthread_mutex_unlock(&t->lock);

    return rc;
}


/* A lease of that sandbox, or NULL; with the lock held. */
static locks_req_t *
locks_lease_find(locks_t *t, const uint8_t id[16], sb_str_t sandbox)
{
    locks_req_t  *r;

    r = table_find(&t->reqs, id, 16);

    return r && r->lease && r->box->len == sandbox.len
           && memcmp(r->box->name, sandbox.data, sandbox.len) == 0 ? r : NULL;
}


sb_rc_t
locks_lease_state(locks_t *t, const uint8_t id[16], uint64_t *expires_us)
{
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    r = table_find(&t->reqs, id, 16);

    if (r) {
        *expires_us = r->state == LOCKS_R_HELD ? r->expires_us : 0;
    }

    pthread_mutex_unlock(&t->lock);

    return r ? SB_OK : SB_DECLINED;
}


/* As they are kept, cut alike. */
static bool
locks_who_is(const char *known, size_t size, sb_str_t text)
{
    char  mem[LOCKS_TEXT];

    locks_copy(mem, size, text);

    return strcmp(known, mem) == 0;
}


static bool
locks_lease_owned(const locks_req_t *r, const locks_asker_t *by)
{
    uint8_t  hash[32];

    if (by->token.len) {
        sb_sha256(hash, by->token);

        if (r->tokened && memcmp(hash, r->hash, 32) == 0) {
            return true;
        }
    }

    if (by->actor.len) {
        return locks_who_is(r->actor, sizeof(r->actor), by->actor)
               && locks_who_is(r->who->type, sizeof(r->who->type),
                               by->actor_type);
    }

    /* nobody by name: it is who has the same credential */

    return r->actor[0] == '\0' && by->identity.len
           && !sb_eq(by->identity, sb_lit("none"))
           && locks_who_is(r->who->identity, sizeof(r->who->identity),
                           by->identity);
}


sb_rc_t
locks_lease_may(locks_t *t, const uint8_t id[16], sb_str_t sandbox,
    const locks_asker_t *by)
{
    sb_rc_t       rc;
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    r = locks_lease_find(t, id, sandbox);
    rc = r == NULL ? SB_DECLINED
         : by->admin || locks_lease_owned(r, by) ? SB_OK : SB_ERROR;

    pthread_mutex_unlock(&t->lock);

    return rc;
}


void
locks_lease_refuse(locks_t *t, const uint8_t id[16], locks_event_t *e)
{
    uint64_t      now_us;
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    now_us = sb_mono_us();
    r = table_find(&t->reqs, id, 16);
    e->write = false;
    e->key[0] = '\0';
    e->holder[0] = '\0';
    e->actor[0] = '\0';
    e->owner[0] = '\0';
    e->waited_us = 0;

    if (r) {
        r->waited_us = now_us > r->since_us ? now_us - r->since_us : 0;
        locks_event(r, SB_LOCK_LATE, e);
        locks_over(t, r, "refused", "timeout");
        locks_req_end(t, r, now_us);
        locks_wake(t);
    }

    pthread_mutex_unlock(&t->lock);
}


bool
locks_lease_renew(locks_t *t, const uint8_t id[16], sb_str_t sandbox,
    uint64_t ttl_us, uint64_t now_us, locks_lease_t *l)
{
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    r = locks_lease_find(t, id, sandbox);

    if (r && r->state == LOCKS_R_HELD) {
        r->expires_us = sb_now_us() + ttl_us;
        locks_deadline(t, r, now_us + ttl_us);
        l->expires_us = r->expires_us;
        l->fence = r->fence;
        locks_tale(t, r, "renewed", NULL);
        locks_wake(t);

    } else {
        r = NULL;
    }

    pthread_mutex_unlock(&t->lock);

    return r != NULL;
}


bool
locks_lease_end(locks_t *t, const uint8_t id[16], sb_str_t sandbox)
{
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    r = locks_lease_find(t, id, sandbox);

    if (r) {
        locks_req_end(t, r, sb_mono_us());
        locks_wake(t);
    }

    pthread_mutex_unlock(&t->lock);

    return r != NULL;
}
