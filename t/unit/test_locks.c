/* Locks, leases and limits: rules one by one, then at random against a model
 * that knows no tree and no order of waking. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "id.h"
#include "locks.h"

#define BOX  sb_lit("box")


static uint64_t
clock_us(void)
{
    return sb_mono_us();
}


static void
number(uint8_t op[16], unsigned n)
{
    memset(op, 0, 16);
    memcpy(op, &n, sizeof(n));
    op[15] = 1;
}


static unsigned
number_of(const uint8_t op[16])
{
    unsigned  n;

    memcpy(&n, op, sizeof(n));

    return n;
}


/* "w/a r/b": the keys of operation n of a worker. */
static void
ask(locks_t *t, unsigned n, const char *keys, locks_ask_t *given)
{
    char           text[256], *p, *save;
    locks_ask_t    a;
    sb_lock_key_t  k[SB_LOCK_KEYS];

    if (given) {
        a = *given;

    } else {
        memset(&a, 0, sizeof(a));
        a.timeout_us = 1000000;
    }

    snprintf(text, sizeof(text), "%s", keys);
    a.nkeys = 0;

    for (p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        k[a.nkeys].write = *p == 'w';
        k[a.nkeys++].path = sb_str(p + 1, strlen(p + 1));
    }

    a.instance = a.instance ? a.instance : 7;
    a.sandbox = BOX;
    a.type = sb_lit("file.write");
    a.actor = sb_lit("agent:x");
    a.keys = k;
    number(a.op, n);
    locks_ask(t, &a, clock_us());
}


static void
end(locks_t *t, unsigned n)
{
    uint8_t  op[16];

    number(op, n);
    locks_end(t, op, false);
}


/* The events that are there, as "1 2 3!1": granted, or refused with a code. */
static const char *
events(locks_t *t)
{
    int            n;
    locks_event_t  e;
    static char    text[4096];

    n = 0;
    text[0] = '\0';

    while (locks_take(t, &e)) {
        n += snprintf(text + n, sizeof(text) - (size_t) n, "%s%u", n ? " " : "",
                      number_of(e.op));

        if (e.code) {
            n += snprintf(text + n, sizeof(text) - (size_t) n, "!%d",
                          (int) e.code);
        }
    }

    return text;
}


static void
assert_empty(locks_t *t)
{
    locks_numbers_t  n;

    locks_numbers(t, &n);
    assert_int_equal(n.requests, 0);
    assert_int_equal(n.waiting, 0);
    assert_int_equal(n.keys, 0);
    assert_int_equal(n.places, 0);
    assert_int_equal(n.leases, 0);
}


static void
test_share(void **state)
{
    locks_t  *t;

    (void) state;

    t = locks_new(100, 10, -1);

    /* reads share, writes exclude, a reader does not pass a writer (C125) */
    ask(t, 1, "r/a", NULL);
    ask(t, 2, "r/a", NULL);
    assert_string_equal(events(t), "1 2");
    ask(t, 3, "w/a", NULL);
    ask(t, 4, "r/a", NULL);
    ask(t, 5, "w/b", NULL);
    assert_string_equal(events(t), "5");
    end(t, 1);
    assert_string_equal(events(t), "");
    end(t, 2);
    assert_string_equal(events(t), "3");

    /* the next writer goes before the reader that came first */
    ask(t, 6, "w/a", NULL);
    end(t, 3);
    assert_string_equal(events(t), "6");
    end(t, 6);
    assert_string_equal(events(t), "4");

    end(t, 4);
    end(t, 5);
    assert_empty(t);
    locks_free(t);
}


static void
test_hierarchy(void **state)
{
    locks_t  *t;

    (void) state;

    t = locks_new(100, 10, -1);

    /* C123: above excludes below, siblings do not; a name that begins alike is
     * another one; a relative path is a key of its own */
    ask(t, 1, "w/w/d", NULL);
    ask(t, 2, "w/w/d/x", NULL);
    ask(t, 3, "r/w", NULL);
    ask(t, 4, "w/w/dd", NULL);
    ask(t, 5, "ww/d/x", NULL);
    assert_string_equal(events(t), "1 4 5");
    end(t, 1);
    assert_string_equal(events(t), "2");
    end(t, 4);
    assert_string_equal(events(t), "");
    end(t, 2);
    assert_string_equal(events(t), "3");

    ask(t, 6, "w/", NULL);
    assert_string_equal(events(t), "");
    end(t, 3);
    assert_string_equal(events(t), "6");
    end(t, 6);
    end(t, 5);

    /* C122: twice the same key */
    ask(t, 7, "w/a w/a", NULL);
    assert_string_equal(events(t), "7");
    end(t, 7);

    assert_empty(t);
    locks_free(t);
}


static void
test_c121_opposite_order(void **state)
{
    locks_t  *t;

    (void) state;

    t = locks_new(100, 10, -1);

    ask(t, 8, "w/a w/b", NULL);
    ask(t, 9, "w/b w/a", NULL);
    ask(t, 10, "r/a w/c", NULL);
    assert_string_equal(events(t), "8");
    end(t, 8);
    assert_string_equal(events(t), "9");
    end(t, 9);
    assert_string_equal(events(t), "10");
    end(t, 10);

    assert_empty(t);
    locks_free(t);
}


static void
test_timeout(void **state)
{
    locks_t        *t;
    uint64_t        now;
    locks_ask_t     a;
    locks_event_t   e;

    (void) state;

    t = locks_new(100, 10, -1);
    now = clock_us();
    memset(&a, 0, sizeof(a));
    a.timeout_us = 60000000;

    ask(t, 1, "r/a", &a);
    assert_string_equal(events(t), "1");
    a.timeout_us = 1000;
    ask(t, 2, "w/a/b", &a);
    a.timeout_us = 60000000;
    ask(t, 3, "r/a/b", &a);
    assert_string_equal(events(t), "");
    assert_int_not_equal(locks_due(t, now), 0);

    /* a writer that times out lets the readers go on (history format 18), and
     * hears who was in its way */
    (void) locks_due(t, now + 5000000);
    assert_true(locks_take(t, &e));
    assert_int_equal(number_of(e.op), 2);
    assert_int_equal(e.code, SB_LOCK_LATE);
    assert_string_equal(e.key, "/a/b");
    assert_true(e.write);
    assert_string_equal(e.actor, "agent:x");
    assert_memory_equal(e.holder, "01000000", 8);
    assert_string_equal(events(t), "3");
    end(t, 1);
    end(t, 3);
    end(t, 2);

    assert_int_equal(locks_due(t, now), 0);
    assert_empty(t);
    locks_free(t);
}


static void
test_bounds(void **state)
{
    char          deep[SB_LOCK_PATH + 2];
    unsigned      i;
    locks_t      *t;
    locks_ask_t   a;

    (void) state;

    t = locks_new(4, 10, -1);

    for (i = 1; i <= 4; i++) {
        ask(t, i, "r/a", NULL);
    }

    assert_string_equal(events(t), "1 2 3 4");
    ask(t, 5, "r/a", NULL);
    assert_string_equal(events(t), "5!4");
    end(t, 1);
    ask(t, 5, "r/a", NULL);
    assert_string_equal(events(t), "5");

    for (i = 1; i <= 5; i++) {
        end(t, i);
    }

    /* places are bounded, too: what did not fit leaves nothing behind */
    memset(&a, 0, sizeof(a));
    a.timeout_us = 1;

    for (i = 0; i < 80; i++) {
        memcpy(deep + 1 + 2 * i, "/d", 2);
    }

    deep[0] = 'w';
    deep[161] = '\0';
    ask(t, 6, deep, &a);
    assert_string_equal(events(t), "6!4");
    assert_empty(t);
    locks_free(t);
}


static void
test_limits(void **state)
{
    locks_t      *t;
    uint8_t       op[16];
    locks_ask_t   a;

    (void) state;

    t = locks_new(100, 10, -1);
    memset(&a, 0, sizeof(a));
    a.timeout_us = 60000000;
    a.class = SB_LIMIT_COMMAND;
    a.limit = 2;
    a.queue = 2;
    a.limit_us = 1000000;

    ask(t, 1, "", &a);
    ask(t, 2, "", &a);
    ask(t, 3, "w/a", &a);
    ask(t, 4, "", &a);
    ask(t, 5, "", &a);
    assert_string_equal(events(t), "1 2 5!3");

    /* C127: who waits for a key holds no slot */
    ask(t, 6, "w/a", &a);
    end(t, 4);
    a.class = SB_LIMIT_WRITE;
    ask(t, 7, "", &a);
    assert_string_equal(events(t), "7");
    a.class = SB_LIMIT_COMMAND;

    end(t, 1);
    assert_string_equal(events(t), "3");
    end(t, 3);
    assert_string_equal(events(t), "6");

    /* a command that goes on holds none; undeclared keys are free */
    ask(t, 8, "", &a);
    assert_string_equal(events(t), "");
    number(op, 2);
    locks_end(t, op, true);
    assert_string_equal(events(t), "8");

    /* declared ones are kept until it ends */
    a.declared = true;
    end(t, 8);
    ask(t, 9, "w/z", &a);
    number(op, 9);
    locks_end(t, op, true);
    locks_end(t, op, true);
    a.declared = false;
    ask(t, 10, "", &a);
    ask(t, 11, "w/z", NULL);
    assert_string_equal(events(t), "9 10");
    locks_end(t, op, false);
    assert_string_equal(events(t), "11");

    /* in time, or not at all */
    ask(t, 12, "w/q", &a);
    ask(t, 13, "w/q", NULL);
    assert_string_equal(events(t), "");
    (void) locks_due(t, clock_us() + 900000);
    assert_string_equal(events(t), "");
    (void) locks_due(t, clock_us() + 1100000);
    assert_string_equal(events(t), "12!3 13");

    end(t, 6);
    end(t, 7);
    end(t, 10);
    end(t, 11);
    end(t, 13);
    assert_empty(t);
    locks_free(t);
}


/* Whose is it? */
static void
owned(locks_t *t, const locks_lease_t *l, const char *token)
{
    locks_asker_t  by = { .token = sb_lit("") };

    assert_int_equal(locks_lease_may(t, l->id, sb_lit("other"), &by),
                     SB_DECLINED);
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_ERROR);

    by.actor = sb_lit("a");
    by.identity = sb_lit("token:1");
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_ERROR);
    by.actor_type = sb_lit("user");
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_ERROR);
    by.actor_type = sb_lit("agent");
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_OK);
    by.actor = sb_lit("");
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_ERROR);
    by.token = sb_lit("lease-00");
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_ERROR);
    by.token = sb_str(token, strlen(token));
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_OK);
    by.token = sb_lit("");
    by.admin = true;
    assert_int_equal(locks_lease_may(t, l->id, BOX, &by), SB_OK);
}


static void
test_leases(void **state)
{
    char           token[LOCKS_TOKEN], first[LOCKS_TOKEN];
    locks_t       *t;
    uint64_t       now, at, fence;
    locks_ask_t    a;
    sb_lock_key_t  key;
    locks_lease_t  l, m;

    (void) state;

    t = locks_new(100, 2, -1);
    now = clock_us();

    key.write = true;
    key.path = sb_lit("/a");
    memset(&l, 0, sizeof(l));
    l.sandbox = BOX;
    l.owner = sb_lit("me");
    l.actor_type = sb_lit("agent");
    l.actor = sb_lit("a");
    l.identity = sb_lit("token:1");
    l.keys = &key;
    l.nkeys = 1;

    assert_int_equal(locks_lease_new(t, &l, token, 30000000, now), SB_OK);
    memcpy(first, token, LOCKS_TOKEN);
    assert_int_equal(locks_lease_state(t, l.id, &at), SB_OK);
    assert_int_not_equal(at, 0);
    fence = l.fence;

    /* others wait, also before one that is inside */
    ask(t, 1, "w/a/x", NULL);
    memset(&a, 0, sizeof(a));
    a.timeout_us = 60000000;
    a.lease = sb_str(token, strlen(token));
    ask(t, 2, "w/a/x", &a);
    assert_string_equal(events(t), "2");
    ask(t, 3, "w/a/x", &a);
    assert_string_equal(events(t), "");
    end(t, 2);
    assert_string_equal(events(t), "3");

    a.lease = sb_lit("lease-00");
    ask(t, 4, "w/b", &a);
    assert_string_equal(events(t), "4!2");

    /* a second one waits, a third is one too many */
    m = l;
    assert_int_equal(locks_lease_new(t, &m, token, 1000, now), SB_OK);
    assert_true(m.fence > fence);
    assert_int_equal(locks_lease_state(t, m.id, &at), SB_OK);
    assert_int_equal(at, 0);
    fence = m.fence;
    assert_int_equal(locks_lease_new(t, &m, token, 1000, now), SB_LIMIT);

    owned(t, &l, first);

    assert_false(locks_lease_renew(t, l.id, sb_lit("other"), 1, now, &m));
    assert_true(locks_lease_renew(t, l.id, BOX, 40000000, now, &m));
    assert_int_equal(m.fence, l.fence);

    /* over: the inner operation still has its keys */
    (void) locks_due(t, now + 39000000);
    assert_int_equal(locks_lease_state(t, l.id, &at), SB_OK);
    (void) locks_due(t, now + 41000000);
    assert_int_equal(locks_lease_state(t, l.id, &at), SB_DECLINED);
    assert_string_equal(events(t), "1!1");
    end(t, 3);

    /* as the journal has it */
    locks_free(t);
    t = locks_new(100, 2, -1);
    l.expires_us = sb_now_us() + 10000000;
    assert_int_equal(locks_lease_restore(t, &l, now), SB_OK);
    l.fence = fence + (uint64_t) 1000000 * 3600 * 24 * 365;
    assert_int_equal(locks_lease_restore(t, &l, now), SB_OK);
    ask(t, 1, "r/a", NULL);
    assert_string_equal(events(t), "");
    m = l;
    assert_int_equal(locks_lease_new(t, &m, token, 1000, now), SB_OK);
    assert_true(m.fence > l.fence);
    assert_true(locks_lease_end(t, m.id, BOX));
    assert_false(locks_lease_end(t, m.id, BOX));
    l.expires_us = 0;
    assert_int_equal(locks_lease_restore(t, &l, now), SB_OK);
    assert_string_equal(events(t), "1");
    end(t, 1);
    assert_empty(t);
    locks_free(t);
}


static void
test_workers(void **state)
{
    pid_t        pid;
    uint8_t      op[16];
    locks_t     *t;
    uint64_t     now;
    locks_ask_t  a;

    (void) state;

    t = locks_new(100, 10, -1);
    now = clock_us();
    memset(&a, 0, sizeof(a));
    a.timeout_us = 60000000;
    a.instance = 1;

    /* C120: it is dead, and what it had is free at once */
    pid = fork();

    if (pid == 0) {
        _exit(0);
    }

    assert_int_equal(waitpid(pid, NULL, 0), pid);

    ask(t, 1, "w/a", &a);
    ask(t, 2, "w/b", NULL);
    ask(t, 3, "w/a w/b", NULL);
    assert_string_equal(events(t), "1 2");
    locks_closed(t, 1, pid, now);
    assert_string_equal(events(t), "");
    end(t, 2);
    assert_string_equal(events(t), "3");

    /* one that lives may come back; what asks again is answered again */
    locks_closed(t, 7, getpid(), now);
    assert_int_not_equal(locks_due(t, now + 1900000), 0);
    locks_connected(t, 7);
    (void) locks_due(t, now + 9000000);
    ask(t, 3, "w/a w/b", NULL);
    assert_string_equal(events(t), "3");

    /* ... or not */
    ask(t, 4, "w/a", &a);
    locks_closed(t, 7, 0, now);
    (void) locks_due(t, now + 1900000);
    assert_string_equal(events(t), "");
    (void) locks_due(t, now + 2100000);
    assert_string_equal(events(t), "4");
    end(t, 4);
    locks_closed(t, 1, 0, now);
    assert_empty(t);

    /* after a restart nothing is granted before all have told */
    locks_recall(t, now);
    assert_true(locks_recalling(t));
    ask(t, 5, "w/a", NULL);
    a.held = true;
    ask(t, 6, "w/a/b", &a);
    assert_string_equal(events(t), "6");
    locks_recalled(t);
    assert_string_equal(events(t), "");
    end(t, 6);
    assert_string_equal(events(t), "5");
    end(t, 5);

    locks_recall(t, now);
    ask(t, 7, "w/a", NULL);
    (void) locks_due(t, now + 400000);
    assert_string_equal(events(t), "");
    (void) locks_due(t, now + 600000);
    assert_string_equal(events(t), "7");
    end(t, 7);

    /* and nobody waits too long meanwhile */
    locks_recall(t, now);
    a.held = false;
    a.timeout_us = 1000;
    ask(t, 10, "w/a", &a);
    assert_true(locks_due(t, now + 2000) > now + 2000);
    assert_string_equal(events(t), "");
    locks_recalled(t);
    assert_string_equal(events(t), "10");
    end(t, 10);
    ask(t, 7, "w/a", NULL);
    assert_string_equal(events(t), "7");

    /* taken away by hand */
    ask(t, 8, "w/a", NULL);
    number(op, 8);
    assert_false(locks_break(t, op, sb_lit("other")));
    assert_true(locks_break(t, op, BOX));
    assert_string_equal(events(t), "8!5");
    ask(t, 9, "w/a", NULL);
    number(op, 7);
    assert_true(locks_break(t, op, BOX));
    assert_string_equal(events(t), "9");
    end(t, 9);

    locks_free(t);
}


/* --- at random ------------------------------------------------------------ */

#define MODEL  40

typedef struct {
    bool      used, held, lease;
    int       inside;               /* place of its lease, -1: none */
    unsigned  number, rank;
    uint64_t  order, deadline;
    size_t    nkeys;
    bool      write[4];
    char      path[4][16];
    char      token[LOCKS_TOKEN];
    uint8_t   id[16];
} model_t;

static model_t   model[MODEL];
static uint32_t  seed;


static unsigned
chance(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;

    return (seed >> 8) % n;
}


static bool
overlap(const char *a, const char *b)
{
    size_t  n, m;

    n = strlen(a);
    m = strlen(b);

    if (strcmp(a, "/") == 0) {
        return *b == '/';
    }

    if (strcmp(b, "/") == 0) {
        return *a == '/';
    }

    if (strcmp(a, ".") == 0 || strcmp(b, ".") == 0) {
        return *a != '/' && *b != '/';
    }

    return n <= m ? strncmp(a, b, n) == 0 && (b[n] == '/' || b[n] == '\0')
                  : strncmp(a, b, m) == 0 && a[m] == '/';
}


static bool
against(const model_t *a, const model_t *b)
{
    size_t  i, j;

    for (i = 0; i < a->nkeys; i++) {
        for (j = 0; j < b->nkeys; j++) {
            if ((a->write[i] || b->write[j])
                && overlap(a->path[i], b->path[j]))
            {
                return true;
            }
        }
    }

    return false;
}


static bool
may(const model_t *r)
{
    int             i;
    const model_t  *o;

    for (i = 0; i < MODEL; i++) {
        o = &model[i];

        if (!o->used || o == r || (r->inside >= 0 && r->inside == i)
            || !against(r, o))
        {
            continue;
        }

        if (o->held || o->rank < r->rank
            || (o->rank == r->rank && o->order < r->order && o->rank < 2))
        {
            return false;
        }
    }

    return true;
}


/* Grants whatever may go on; what was granted is added to `granted`. */
static void
settle(bool granted[MODEL])
{
    int   i;
    bool  more;

    do {
        more = false;

        for (i = 0; i < MODEL; i++) {
            if (model[i].used && !model[i].held && may(&model[i])) {
                model[i].held = true;
                granted[i] = true;
                more = true;
            }
        }
    } while (more);
}


static void
forget(int n)
{
    int  i;

    model[n].used = false;

    for (i = 0; i < MODEL; i++) {
        if (model[i].used && model[i].inside == n) {
            model[i].inside = -1;
        }
    }
}


static void
check(locks_t *t, bool granted[MODEL], int late)
{
    int            i;
    uint64_t       at;
    locks_event_t  e;

    while (locks_take(t, &e)) {

        if (e.code) {
            assert_int_equal(late, (int) number_of(e.op));
            assert_int_equal(e.code, SB_LOCK_LATE);
            late = -1;
            continue;
        }

        for (i = 0; i < MODEL; i++) {
            if (model[i].used && !model[i].lease
                && model[i].number == number_of(e.op))
            {
                break;
            }
        }

        assert_true(i < MODEL);
        assert_true(granted[i]);
        granted[i] = false;
    }

    assert_int_equal(late, -1);

    for (i = 0; i < MODEL; i++) {
        assert_false(granted[i] && !model[i].lease);

        if (model[i].used && model[i].lease) {
            assert_int_equal(locks_lease_state(t, model[i].id, &at), SB_OK);
            assert_int_equal(at != 0, model[i].held);
        }
    }
}


static void
model_ask(locks_t *t, int n, unsigned step, uint64_t now)
{
    int             j;
    size_t          i;
    model_t        *m;
    locks_ask_t     a;
    sb_lock_key_t   k[4];
    locks_lease_t   l;

    static const char *const  paths[] = {
        "/", "/a", "/b", "/a/x", "/a/y", "/a/x/1", "/a/x/2", "/aa", "a", "a/x",
        "."
    };

    m = &model[n];
    memset(m, 0, sizeof(*m));
    m->used = true;
    m->inside = -1;
    m->number = step;
    m->order = step;
    m->rank = 2;
    m->nkeys = 1 + chance(3);

    for (i = 0; i < m->nkeys; i++) {
        m->write[i] = chance(3) == 0;
        strcpy(m->path[i], paths[chance(8) == 0 ? chance(11)
                                                : 1 + chance(9)]);
        k[i].write = m->write[i];
        k[i].path = sb_str(m->path[i], strlen(m->path[i]));

        if (m->write[i]) {
            m->rank = 1;
        }
    }

    if (chance(12) == 0) {
        m->lease = true;
        memset(&l, 0, sizeof(l));
        l.sandbox = BOX;
        l.keys = k;
        l.nkeys = m->nkeys;
        assert_int_equal(locks_lease_new(t, &l, m->token, 1u << 30, now),
                         SB_OK);
        memcpy(m->id, l.id, 16);
        m->deadline = UINT64_MAX;
        return;
    }

    memset(&a, 0, sizeof(a));

    if (chance(3) == 0) {
        j = (int) chance(MODEL);

        if (j != n && model[j].used && model[j].lease && model[j].held) {
            m->inside = j;
            m->rank = 0;
            a.lease = sb_str(model[j].token, strlen(model[j].token));
        }
    }

    a.instance = 1 + chance(3);
    a.sandbox = BOX;
    a.keys = k;
    a.nkeys = m->nkeys;
    a.timeout_us = chance(4) == 0 ? 1 + chance(100) * 1000u : 1u << 30;
    /* no two at the same time */
    a.timeout_us += step % 1000;
    m->deadline = now + a.timeout_us;
    number(a.op, step);
    locks_ask(t, &a, now);
}


static void
test_model(void **state)
{
    int              i, late;
    bool             granted[MODEL];
    uint8_t          op[16];
    locks_t         *t;
    uint64_t         now;
    unsigned         step, steps, waited;
    const char      *env;
    locks_numbers_t  n;

    (void) state;

    env = getenv("LOCKS_STEPS");
    steps = env ? (unsigned) atoi(env) : 200000;
    env = getenv("LOCKS_SEED");
    seed = env ? (uint32_t) atoi(env) : (uint32_t) sb_now_us();
    print_message("seed %u\n", seed);

    memset(model, 0, sizeof(model));
    t = locks_new(1000, 1000, -1);
    now = clock_us();
    waited = 0;

    for (step = 1; step <= steps; step++) {

        now += 1000;
        memset(granted, 0, sizeof(granted));
        i = (int) chance(MODEL);

        if (!model[i].used) {
            model_ask(t, i, step, now);

        } else {
            if (model[i].lease) {
                assert_true(locks_lease_end(t, model[i].id, BOX));

            } else {
                number(op, model[i].number);
                locks_end(t, op, false);
            }

            forget(i);
        }

        settle(granted);
        check(t, granted, -1);

        for ( ;; ) {
            late = -1;

            for (i = 0; i < MODEL; i++) {
                if (model[i].used && !model[i].held
                    && model[i].deadline <= now
                    && (late == -1
                        || model[i].deadline < model[late].deadline))
                {
                    late = i;
                }
            }

            if (late == -1) {
                break;
            }

            /* as far as the first of them only */
            (void) locks_due(t, model[late].deadline);
            i = (int) model[late].number;
            memset(granted, 0, sizeof(granted));
            forget(late);
            settle(granted);
            check(t, granted, i);
        }

        locks_numbers(t, &n);
        waited += (unsigned) n.waiting;
    }

    /* it was about something */
    assert_true(waited > steps);

    for (i = 0; i < MODEL; i++) {
        if (model[i].used && model[i].lease) {
            (void) locks_lease_end(t, model[i].id, BOX);

        } else if (model[i].used) {
            number(op, model[i].number);
            locks_end(t, op, false);
        }
    }

    (void) events(t);
    assert_empty(t);
    locks_free(t);
}


/* 10,000 waiters on 100 keys: how long, how much. */
#define TEST_WAITER  2048       /* bytes that one may take, with all that it needs */

/* Where sanitizers have an allocator of their own, they know. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));


static size_t
allocated(void)
{
    return __sanitizer_get_current_allocated_bytes
           ? __sanitizer_get_current_allocated_bytes()
           : mallinfo2().uordblks;
}


static void
test_many(void **state)
{
    char             path[32];
    size_t           bytes;
    unsigned         i, left;
    locks_t         *t;
    uint64_t         begin, us, worst, at;
    locks_ask_t      a;
    locks_event_t    e;
    locks_numbers_t  n;

    (void) state;

    t = locks_new(20000, 10, -1);
    memset(&a, 0, sizeof(a));
    a.timeout_us = 1u << 30;
    bytes = allocated();
    begin = clock_us();

    for (i = 0; i < 10000; i++) {
        snprintf(path, sizeof(path), "%c/w/d%u/f", i % 10 == 9 ? 'r' : 'w',
                 i % 100);
        ask(t, i, path, &a);
    }

    us = clock_us() - begin;
    bytes = allocated() - bytes;
    locks_numbers(t, &n);
    assert_int_equal(n.requests, 10000);
    assert_true(n.waiting >= 8500);

    worst = 0;

    for (left = 0; locks_take(t, &e); left++) {
        at = clock_us();
        locks_end(t, e.op, false);
        at = clock_us() - at;
        worst = at > worst ? at : worst;
    }

    assert_int_equal(left, 10000);
    assert_empty(t);
    print_message("10000 asked in %u us; the longest end took %u us; %zu of them "
                  "waited: %zu bytes each\n", (unsigned) us, (unsigned) worst,
                  n.waiting, bytes / 10000);
    assert_true(bytes / 10000 < TEST_WAITER);
    locks_free(t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_hierarchy),
        cmocka_unit_test(test_c121_opposite_order),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_leases),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_many)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
