/* What the workers say of keys, and are told. */

#include "server_int.h"

#include "id.h"
#include "stats.h"

#include <limits.h>
#include <stdlib.h>


void
server_keys(server_t *s, conn_t *c, const sb_frame_t *f)
{
    size_t          n;
    uint16_t        tag;
    sb_str_t        fields, v;
    uint64_t        class, now_us;
    locks_ask_t     a;
    sb_lock_key_t   keys[SB_LOCK_KEYS];

    static const uint8_t  none[16];

    now_us = sb_mono_us();

    if (memcmp(f->op, none, 16) == 0) {
        c->told = true;
        server_locks_told(s);
        return;
    }

    memset(&a, 0, sizeof(a));
    a.instance = c->instance;
    memcpy(a.op, f->op, 16);
    a.keys = keys;
    a.held = f->flags & SB_FF_HELD;

    n = 0;
    class = 0;

    for (fields = f->fields; sb_field_next(&fields, &tag, &v); /* void */ ) {

        switch (tag) {

        case SB_T_LOCK_READ:
        case SB_T_LOCK_WRITE:
            if (n < SB_LOCK_KEYS) {
                keys[n].write = tag == SB_T_LOCK_WRITE;
                keys[n].path = v;
            }

            n++;
            break;

        case SB_T_SANDBOX:
            a.sandbox = v;
            break;

        case SB_T_TYPE:
            a.type = v;
            break;

        case SB_T_ACTOR_ID:
            a.actor = v;
            break;

        case SB_T_LOCK_MS:
            a.timeout_us = sb_value_u64(v, 0) * 1000;
            break;

        case SB_T_LOCK_LEASE:
            a.lease = v;
            break;

        case SB_T_LOCK_CLASS:
            class = sb_value_u64(v, 0);
            break;

        case SB_T_LIMIT:
            a.limit = (unsigned) sb_value_u64(v, 0);
            break;

        case SB_T_LIMIT_QUEUE:
            a.queue = (unsigned) sb_value_u64(v, 0);
            break;

        case SB_T_LIMIT_MS:
            a.limit_us = sb_value_u64(v, 0) * 1000;
            break;

        case SB_T_DECLARED:
            a.declared = true;
            break;

        default:
            break;
        }
    }

    /* more than there can be are refused as what does not fit */
    a.nkeys = n;
    a.class = class < SB_LIMITS ? (sb_limit_e) class : SB_LIMIT_NONE;

    locks_ask(s->conf->locks, &a, now_us);
    s->locks_us = now_us;
}


/* After a start: have all who were there before come back and told? */
void
server_locks_told(server_t *s)
{
    conn_t  *c, *o;

    if (!locks_recalling(s->conf->locks)
        || s->conf->journal == NULL || inflight_away(s->conf->inflight))
    {
        return;
    }

    for (c = s->conns; c; c = c->next) {

        if (c->inst == NULL || c->cli || c->dead) {
            continue;
        }

        for (o = s->conns; o; o = o->next) {
            if (o->told && !o->dead && o->instance == c->instance) {
                break;
            }
        }

        if (o == NULL) {
            return;
        }
    }

    locks_recalled(s->conf->locks);
}


void
server_locks_open(server_t *s, conn_t *c)
{
    locks_connected(s->conf->locks, c->instance);
    s->locks_us = sb_mono_us();
}


void
server_locks_closed(server_t *s, conn_t *c)
{
    conn_t  *o;

    for (o = s->conns; o; o = o->next) {
        if (o != c && o->inst && !o->bulk && !o->dead
            && o->instance == c->instance)
        {
            /* it is back already */
            return;
        }
    }

    s->locks_us = sb_mono_us();
    locks_closed(s->conf->locks, c->instance, (int) c->pid, s->locks_us);
    s->more = true;     /* others may go on */
}


int
server_locks_timeout(const server_t *s, int most)
{
    uint64_t  now_us, ms;

    if (s->locks_us == 0) {
        return most;
    }

    now_us = sb_mono_us();

    if (s->locks_us <= now_us) {
        return 0;
    }

    ms = (s->locks_us - now_us + 999) / 1000;

    if (ms > INT_MAX) {
        ms = INT_MAX;
    }

    return most == -1 || (int) ms < most ? (int) ms : most;
}


static void
server_grant(conn_t *c, const locks_event_t *e)
{
    char               mem[SB_LOCK_PATH + 1024];
    size_t             n;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_GRANTED, 0, 0, e->op,
                   sb_now_us());
    sb_frame_put_u64(&w, SB_T_CODE, e->code);
    sb_frame_put_u64(&w, SB_T_WAITED_US, e->waited_us);

    if (e->key[0]) {
        sb_frame_put(&w, e->write ? SB_T_LOCK_WRITE : SB_T_LOCK_READ,
                     sb_str(e->key, strlen(e->key)));
        sb_frame_put(&w, SB_T_HOLDER, sb_str(e->holder, strlen(e->holder)));
        sb_frame_put(&w, SB_T_ACTOR_ID, sb_str(e->actor, strlen(e->actor)));

        if (e->owner[0]) {
            sb_frame_put(&w, SB_T_OWNER, sb_str(e->owner, strlen(e->owner)));
        }
    }

    n = sb_frame_end(&w);

    if (!conn_queue(c, mem, n)) {
        c->dead = true;
    }

    c->granted = c->granted || e->waited_us != 0;
}


/* Who has waited does not wait for what this round writes, too: a flush may hold
 * that up for milliseconds.  Others have their grant with the ACK that they wait
 * for anyway. */
static void
server_grants_go(server_t *s)
{
    conn_t  *c;

    for (c = s->conns; c; c = c->next) {

        if (c->granted && !c->dead && !conn_flush(c)) {
            c->dead = true;
        }

        c->granted = false;
    }
}


void
server_granted(server_t *s)
{
    conn_t           *c;
    uint64_t          now_us;
    locks_event_t     e;
    locks_numbers_t   n;

    now_us = sb_mono_us();

    if (s->locks_us && s->locks_us <= now_us) {
        s->locks_us = locks_due(s->conf->locks, now_us);
    }

    c = NULL;

    while (locks_take(s->conf->locks, &e)) {

        stats_add(STATS_LOCK_WAITS, e.waited_us != 0);
        stats_add(STATS_LOCK_TIMEOUTS, e.code == SB_LOCK_LATE);
        stats_add(STATS_LIMIT_REFUSED, e.code == SB_LOCK_BUSY);

        /* mostly many for one worker */

        if (c == NULL || c->instance != e.instance || c->bulk || c->dead) {

            for (c = s->conns; c; c = c->next) {
                if (c->inst && !c->bulk && !c->dead
                    && c->instance == e.instance)
                {
                    break;
                }
            }
        }

        if (c) {
            server_grant(c, &e);
        }
    }

    server_grants_go(s);

    locks_numbers(s->conf->locks, &n);
    stats_set(STATS_LOCKS, n.requests);
    stats_set(STATS_LOCKS_MAX, n.max_requests);
    stats_set(STATS_LOCKS_WAITING, n.waiting);
    stats_set(STATS_LOCK_KEYS, n.keys);
    stats_set(STATS_LEASES, n.leases);
    stats_set(STATS_LEASES_MAX, n.max_leases);
}


void
server_tales(server_t *s)
{
    size_t           n;
    locks_tale_t    *all, *tale;
    journal_item_t   items[64];

    all = locks_tales(s->conf->locks);

    if (all == NULL) {
        return;
    }

    for (tale = all, n = 0; tale; tale = tale->next) {

        items[n].instance = 0;
        items[n].frame = tale->frame;
        items[n].len = tale->len;

        if (++n < sizeof(items) / sizeof(items[0]) && tale->next) {
            continue;
        }

        /* who must not miss it is answered otherwise */

        if (s->conf->journal && (s->error || server_write(s, items, n) != 0)) {
            stats_add(STATS_LOCK_EVENTS_LOST, n);
        }

        n = 0;
    }

    while ((tale = all) != NULL) {
        all = tale->next;
        free(tale);
    }

    live_wake(s->conf->live);
}
