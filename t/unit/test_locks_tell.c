/* What live streams are told of locks: only what lasts, each to its end, and no
 * more than there is room for. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "id.h"
#include "locks.h"

#define BOX  sb_lit("s1")


static locks_t   *t;
static uint64_t   now;


static int
begin(void **state)
{
    (void) state;

    t = locks_new(100000, 10, -1);
    now = 1000000;

    return t == NULL;
}


static int
finish(void **state)
{
    (void) state;

    locks_free(t);

    return 0;
}


static void
number(uint8_t op[16], unsigned n)
{
    memset(op, 0, 16);
    memcpy(op, &n, sizeof(n));
}


static void
ask(unsigned n, bool write, const char *path, unsigned limit)
{
    locks_ask_t    a;
    sb_lock_key_t  k;

    memset(&a, 0, sizeof(a));
    k.write = write;
    k.path = sb_str(path, strlen(path));
    a.instance = 7;
    a.sandbox = BOX;
    a.type = sb_lit("file.write");
    a.actor = sb_lit("x");
    a.keys = &k;
    a.nkeys = 1;
    a.timeout_us = 1000000;
    a.class = limit ? SB_LIMIT_WRITE : SB_LIMIT_NONE;
    a.limit = limit;
    a.queue = 10;
    a.limit_us = 500000;
    number(a.op, n);
    locks_ask(t, &a, now);
}


static void
end(unsigned n)
{
    uint8_t  op[16];

    number(op, n);
    locks_end(t, op, false);
}


/* What is told, as "1:waiting<2 2:released"; a lease is 0. */
static const char *
told(void)
{
    int            n;
    size_t         need;
    uint8_t        id[16];
    unsigned       op;
    sb_str_t       state, reason, holder, type;
    sb_frame_t     f;
    locks_tale_t  *tale, *next;
    static char    text[4096];

    n = 0;
    text[0] = '\0';

    for (tale = locks_tales(t); tale; tale = next) {
        next = tale->next;

        assert_int_equal(sb_frame_read(&f, tale->frame, tale->len, &need),
                         SB_OK);
        assert_int_equal(f.type, SB_F_LOCK);
        assert_true(sb_field_get(&f, SB_T_STATE, &state));
        assert_true(sb_field_get(&f, SB_T_TYPE, &type));
        memcpy(&op, f.op, sizeof(op));

        n += snprintf(text + n, sizeof(text) - (size_t) n, "%s%u:%.*s",
                      n ? " " : "", sb_eq(type, sb_lit("lease")) ? 0 : op,
                      (int) state.len, state.data);

        if (sb_field_get(&f, SB_T_REASON, &reason)) {
            n += snprintf(text + n, sizeof(text) - (size_t) n, "/%.*s",
                          (int) reason.len, reason.data);
        }

        if (sb_field_get(&f, SB_T_HOLDER, &holder)) {
            char  v[40];

            snprintf(v, sizeof(v), "%.*s", (int) holder.len, holder.data);
            assert_int_equal(sb_uuid_parse(id, sb_str(v, strlen(v))), SB_OK);
            memcpy(&op, id, sizeof(op));
            n += snprintf(text + n, sizeof(text) - (size_t) n, "<%u", op);
        }

        free(tale);
    }

    return text;
}


static void
test_waits(void **state)
{
    (void) state;

    /* what has its keys, and what waits shortly, is no news */
    ask(1, true, "/a", 0);
    ask(2, true, "/a", 0);
    now += 50000;
    assert_int_equal(locks_due(t, now), 1100000);
    end(1);
    now += 500000;
    (void) locks_due(t, now);
    end(2);
    assert_string_equal(told(), "");

    /* a long wait is, to its end */
    ask(3, true, "/a", 0);
    ask(4, true, "/a/b", 0);
    ask(5, false, "/", 0);
    now += 100000;
    (void) locks_due(t, now);
    assert_string_equal(told(), "4:waiting<3 5:waiting<3");
    end(3);
    assert_string_equal(told(), "4:granted");
    end(4);
    assert_string_equal(told(), "4:released 5:granted");
}


static void
test_ends(void **state)
{
    uint8_t  op[16];

    (void) state;

    ask(1, true, "/a", 0);
    ask(2, true, "/a", 0);
    ask(3, true, "/a", 0);
    ask(4, true, "/a", 0);
    now += 100000;
    (void) locks_due(t, now);
    assert_string_equal(told(), "2:waiting<1 3:waiting<1 4:waiting<1");

    /* its client leaves; an admin ends a waiting, and takes a key away */
    end(2);
    assert_string_equal(told(), "2:left<1");
    number(op, 3);
    assert_true(locks_break(t, op, BOX));
    assert_string_equal(told(), "3:broken<1");
    number(op, 1);
    assert_true(locks_break(t, op, BOX));
    assert_string_equal(told(), "1:broken 4:granted");
    end(1);
    end(4);
    assert_string_equal(told(), "4:released");

    /* its time is over */
    ask(5, true, "/a", 0);
    ask(6, true, "/a", 0);
    now += 1000000;
    (void) locks_due(t, now);
    assert_string_equal(told(), "6:refused/timeout<5");
    end(5);
    assert_string_equal(told(), "");

    /* a slot: one waits for it to its end, one is told no at once */
    ask(7, true, "/c", 1);
    ask(8, true, "/d", 1);
    now += 100000;
    (void) locks_due(t, now);
    assert_string_equal(told(), "8:queued");
    now += 400000;
    (void) locks_due(t, now);
    assert_string_equal(told(), "8:refused/busy");
    end(7);
    assert_string_equal(told(), "");
}


static void
test_leases(void **state)
{
    char           token[LOCKS_TOKEN];
    locks_lease_t  l;
    locks_event_t  e;
    sb_lock_key_t  k;

    (void) state;

    k.write = true;
    k.path = sb_lit("/a");
    memset(&l, 0, sizeof(l));
    l.sandbox = BOX;
    l.owner = sb_lit("build");
    l.keys = &k;
    l.nkeys = 1;

    now = sb_mono_us();
    assert_int_equal(locks_lease_new(t, &l, token, 1000000, now), SB_OK);
    assert_string_equal(told(), "0:granted");
    assert_true(locks_lease_renew(t, l.id, BOX, 2000000, now, &l));
    assert_string_equal(told(), "0:renewed");
    now += 2000000;
    (void) locks_due(t, now);
    assert_string_equal(told(), "0:released/expired");

    ask(1, true, "/a", 0);
    assert_int_equal(locks_lease_new(t, &l, token, 1000000, now), SB_OK);
    assert_string_equal(told(), "");
    locks_lease_refuse(t, l.id, &e);
    assert_string_equal(told(), "0:refused/timeout<1");
    end(1);

    assert_int_equal(locks_lease_new(t, &l, token, 1000000, now), SB_OK);
    assert_true(locks_lease_end(t, l.id, BOX));
    assert_string_equal(told(), "0:granted 0:released");
}


/* After our start those that read along may know of what is told again. */
static void
test_recall(void **state)
{
    locks_ask_t    a;
    sb_lock_key_t  k;

    (void) state;

    locks_recall(t, now);

    memset(&a, 0, sizeof(a));
    k.write = true;
    k.path = sb_lit("/a");
    a.instance = 7;
    a.sandbox = BOX;
    a.keys = &k;
    a.nkeys = 1;
    a.held = true;
    number(a.op, 1);
    locks_ask(t, &a, now);
    ask(2, true, "/a", 0);
    locks_recalled(t);
    assert_string_equal(told(), "");
    end(1);
    assert_string_equal(told(), "1:released 2:granted");
    end(2);
    assert_string_equal(told(), "2:released");
}


/* Of a long queue not all is walked for who is in the way of one in it: who
 * stands so far behind that it would be has somebody nearer named. */
static void
test_chain(void **state)
{
    unsigned       i, op, holder, last;
    size_t         need;
    uint8_t        id[16];
    char           text[40];
    sb_str_t       v;
    sb_frame_t     f;
    locks_tale_t  *tale, *next;

    (void) state;

    last = LOCKS_CHAIN + 4;

    for (i = 1; i <= last; i++) {
        ask(i, true, "/a", 0);
    }

    now += 100000;
    (void) locks_due(t, now);

    i = 1;

    for (tale = locks_tales(t); tale; tale = next) {
        next = tale->next;

        assert_int_equal(sb_frame_read(&f, tale->frame, tale->len, &need),
                         SB_OK);
        memcpy(&op, f.op, sizeof(op));
        assert_int_equal(op, ++i);

        assert_true(sb_field_get(&f, SB_T_HOLDER, &v));
        snprintf(text, sizeof(text), "%.*s", (int) v.len, v.data);
        assert_int_equal(sb_uuid_parse(id, sb_str(text, strlen(text))), SB_OK);
        memcpy(&holder, id, sizeof(holder));
        assert_int_equal(holder,
                         op <= LOCKS_CHAIN + 2 ? 1 : op - LOCKS_CHAIN - 1);

        free(tale);
    }

    assert_int_equal(i, last);
}


static void
test_bound(void **state)
{
    size_t         n, bytes;
    unsigned       i;
    locks_tale_t  *tale, *next;

    (void) state;

    ask(1, true, "/a", 0);

    for (i = 2; i < 60000; i++) {
        ask(i, true, "/a", 0);
    }

    now += 100000;
    (void) locks_due(t, now);

    n = 0;
    bytes = 0;

    for (tale = locks_tales(t); tale; tale = next) {
        next = tale->next;
        n++;
        bytes += tale->len;
        free(tale);
    }

    assert_true(bytes <= LOCKS_TALES && bytes > LOCKS_TALES / 2);
    assert_true(n < 59998);
    assert_string_equal(told(), "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_waits, begin, finish),
        cmocka_unit_test_setup_teardown(test_ends, begin, finish),
        cmocka_unit_test_setup_teardown(test_leases, begin, finish),
        cmocka_unit_test_setup_teardown(test_recall, begin, finish),
        cmocka_unit_test_setup_teardown(test_chain, begin, finish),
        cmocka_unit_test_setup_teardown(test_bound, begin, finish)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
