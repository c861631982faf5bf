/* What is open, and who ends it when nobody else does. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "helper_frames.h"
#include "inflight.h"

#define SECOND  1000000u
#define FOLLOW  (600 * SECOND)


static tframe_t  f;


static void
note(inflight_t *t, uint64_t instance)
{
    size_t      need;
    sb_frame_t  frame;

    assert_int_equal(sb_frame_read(&frame, f.mem, tf_end(&f), &need), SB_OK);
    inflight_note(t, instance, &frame);
}


static void
begin(inflight_t *t, uint64_t instance, uint64_t seq, unsigned op,
    const char *type, const char *sandbox)
{
    tf_begin(&f, SB_F_BEGIN, 0, seq, op, 0);
    tf_str(&f, SB_T_TYPE, type);

    if (sandbox) {
        tf_str(&f, SB_T_SANDBOX, sandbox);
    }

    note(t, instance);
}


static void
detach(inflight_t *t, uint64_t instance, uint64_t seq, unsigned op,
    const char *command, uint64_t at_us)
{
    tf_begin(&f, SB_F_END, 0, seq, op, at_us);
    tf_str(&f, SB_T_COMMAND_ID, command);
    tf_str(&f, SB_T_STATUS, "succeeded");
    tf_str(&f, SB_T_DETACHED, "");
    note(t, instance);
}


/* command.status of a command: it is over (exit < 0: without a code). */
static void
status(inflight_t *t, uint64_t instance, uint64_t seq, unsigned op,
    const char *sandbox, const char *command, bool running, int64_t code)
{
    begin(t, instance, seq, op, "command.status", sandbox);
    tf_begin(&f, SB_F_END, 0, seq + 1, op, 0);
    tf_str(&f, SB_T_STATUS, "succeeded");
    tf_str(&f, SB_T_COMMAND_ID, command);
    tf_u64(&f, SB_T_RUNNING, running);

    if (code >= 0) {
        tf_u64(&f, SB_T_EXIT_CODE, (uint64_t) code);
    }

    note(t, instance);
}


/* Takes the one END that is due and notes it; its fields go to the caller. */
static void
one_due(inflight_t *t, uint64_t at_us, unsigned op, const char *want_status,
    const char *want_reason, const char *want_sandbox)
{
    size_t      need;
    uint8_t     id[16];
    sb_buf_t    out;
    sb_str_t    v;
    sb_frame_t  frame;

    memset(&out, 0, sizeof(out));
    out.max = 1 << 20;

    assert_int_equal(inflight_due(t, T0 + at_us, &out), 1);
    assert_int_equal(sb_frame_read(&frame, out.data, out.len, &need), SB_OK);
    assert_int_equal(frame.length, out.len);
    assert_int_equal(frame.type, SB_F_END);

    tf_id(id, op);
    assert_memory_equal(frame.op, id, 16);

    assert_true(sb_field_get(&frame, SB_T_STATUS, &v));
    assert_true(sb_eq(v, sb_str(want_status, strlen(want_status))));

    if (want_reason) {
        assert_true(sb_field_get(&frame, SB_T_REASON, &v));
        assert_true(sb_eq(v, sb_str(want_reason, strlen(want_reason))));
    } else {
        assert_false(sb_field_get(&frame, SB_T_REASON, &v));
    }

    if (want_sandbox) {
        assert_true(sb_field_get(&frame, SB_T_SANDBOX, &v));
        assert_true(sb_eq(v, sb_str(want_sandbox, strlen(want_sandbox))));
    }

    inflight_note(t, 0, &frame);
    sb_buf_free(&out);
}


static void
none_due(inflight_t *t, uint64_t at_us)
{
    sb_buf_t  out;

    memset(&out, 0, sizeof(out));
    out.max = 1 << 20;
    assert_int_equal(inflight_due(t, T0 + at_us, &out), 0);
    sb_buf_free(&out);
}


static void
test_seq(void **state)
{
    inflight_t       *t = inflight_new(FOLLOW);
    inflight_inst_t  *i;

    (void) state;

    begin(t, 11, 5, 1, "file.read", "s");
    begin(t, 12, 9, 2, "file.read", "s");

    i = inflight_instance(t, 11);
    assert_int_equal(inflight_last_seq(i), 5);
    assert_int_equal(inflight_last_seq(inflight_instance(t, 12)), 9);
    assert_int_equal(inflight_last_seq(inflight_instance(t, 13)), 0);
    assert_int_equal(inflight_operations(t), 2);

    tf_begin(&f, SB_F_END, 0, 6, 1, 10);
    note(t, 11);
    assert_int_equal(inflight_operations(t), 1);
    assert_int_equal(inflight_last_seq(i), 6);

    inflight_free(t);
}


/* C108, C156: a worker that died, and one that came back in time. */
static void
test_worker_died(void **state)
{
    inflight_t       *t = inflight_new(FOLLOW);
    inflight_inst_t  *i;

    (void) state;

    i = inflight_instance(t, 11);
    inflight_connected(t, i);
    inflight_connected(t, i);
    begin(t, 11, 1, 1, "command.execute", "s1");

    inflight_closed(t, i, T0);
    assert_false(inflight_waiting(t));

    inflight_closed(t, i, T0);
    assert_true(inflight_waiting(t));
    none_due(t, SECOND);

    inflight_connected(t, i);
    none_due(t, 10 * SECOND);

    inflight_closed(t, i, T0 + 10 * SECOND);
    none_due(t, 12 * SECOND - 1);
    one_due(t, 12 * SECOND, 1, "unknown", "worker_died", "s1");
    none_due(t, 13 * SECOND);
    assert_false(inflight_waiting(t));
    assert_int_equal(inflight_operations(t), 0);

    /* its own end, late, changes nothing */
    tf_begin(&f, SB_F_END, 0, 2, 1, 13 * SECOND);
    note(t, 11);
    none_due(t, 14 * SECOND);

    inflight_free(t);
}


/* The clock is set back while a worker is gone, and while a command is
 * followed: neither waits until it was that late before. */
static void
test_clock_back(void **state)
{
    sb_buf_t          target = { .max = 4096 };
    inflight_t       *t = inflight_new(FOLLOW);
    inflight_inst_t  *i;

    (void) state;

    i = inflight_instance(t, 11);
    inflight_connected(t, i);
    begin(t, 11, 1, 1, "command.execute", "s1");
    inflight_closed(t, i, T0 + 5000 * SECOND);
    none_due(t, 10 * SECOND);
    none_due(t, 11 * SECOND);
    one_due(t, 12 * SECOND, 1, "unknown", "worker_died", "s1");

    begin(t, 11, 2, 2, "command.execute", "s1");
    detach(t, 11, 3, 2, "cmd1", 5000 * SECOND);
    assert_int_equal(inflight_ask(t, T0 + 10 * SECOND, &target), 0);
    assert_int_not_equal(inflight_ask(t, T0 + 12 * SECOND, &target), 0);
    assert_int_equal(inflight_ask(t, T0 + 13 * SECOND, &target), 0);
    assert_int_not_equal(inflight_ask(t, T0 + 14 * SECOND, &target), 0);

    sb_buf_free(&target);
    inflight_free(t);
}


static void
test_restarted(void **state)
{
    inflight_t  *t = inflight_new(FOLLOW);

    (void) state;

    begin(t, 11, 1, 1, "command.execute", "s1");
    begin(t, 12, 1, 2, "command.execute", "s2");
    inflight_started(t, T0);

    none_due(t, 4 * SECOND);
    inflight_connected(t, inflight_instance(t, 12));
    one_due(t, 5 * SECOND, 1, "unknown", "gateway_restarted", "s1");
    none_due(t, 100 * SECOND);
    assert_int_equal(inflight_operations(t), 1);

    inflight_free(t);
}


static void
test_detached_ends(void **state)
{
    inflight_t  *t = inflight_new(FOLLOW);

    (void) state;

    begin(t, 11, 1, 1, "command.execute", "s1");
    detach(t, 11, 2, 1, "cmd1", SECOND);
    assert_int_equal(inflight_operations(t), 0);
    assert_int_equal(inflight_detached(t), 1);

    /* running, another command, another sandbox: not it */
    status(t, 11, 3, 2, "s1", "cmd1", true, -1);
    status(t, 11, 5, 3, "s1", "cmd2", false, 0);
    status(t, 11, 7, 4, "s2", "cmd1", false, 0);
    none_due(t, 2 * SECOND);

    status(t, 11, 9, 5, "s1", "cmd1", false, 3);
    one_due(t, 2 * SECOND, 1, "failed", NULL, "s1");
    assert_int_equal(inflight_detached(t), 0);

    /* told twice: ended once */
    status(t, 11, 11, 6, "s1", "cmd1", false, 3);
    none_due(t, 3 * SECOND);

    begin(t, 11, 13, 7, "command.execute", "s1");
    detach(t, 11, 14, 7, "cmd7", SECOND);
    status(t, 11, 15, 8, "s1", "cmd7", false, 0);
    one_due(t, 3 * SECOND, 7, "succeeded", NULL, "s1");

    begin(t, 11, 17, 9, "command.execute", "s1");
    detach(t, 11, 18, 9, "cmd9", SECOND);
    status(t, 11, 19, 10, "s1", "cmd9", false, -1);
    one_due(t, 3 * SECOND, 9, "unknown", "exit_code_unknown", "s1");

    inflight_free(t);
}


static void
test_detached_interrupted(void **state)
{
    inflight_t  *t = inflight_new(FOLLOW);

    (void) state;

    begin(t, 11, 1, 1, "command.execute", "s1");
    detach(t, 11, 2, 1, "cmd1", SECOND);

    begin(t, 11, 3, 2, "command.interrupt", "s1");
    tf_begin(&f, SB_F_END, 0, 4, 2, SECOND);
    tf_str(&f, SB_T_STATUS, "succeeded");
    tf_str(&f, SB_T_COMMAND_ID, "cmd1");
    note(t, 11);
    none_due(t, 2 * SECOND);

    status(t, 11, 5, 3, "s1", "cmd1", false, 255);
    one_due(t, 2 * SECOND, 1, "cancelled", "interrupted", "s1");

    inflight_free(t);
}


static void
test_detached_expires(void **state)
{
    inflight_t  *t = inflight_new(FOLLOW);

    (void) state;

    begin(t, 11, 1, 1, "command.execute", "s1");
    detach(t, 11, 2, 1, "cmd1", 5 * SECOND);
    none_due(t, FOLLOW + 5 * SECOND - 1);
    one_due(t, FOLLOW + 5 * SECOND, 1, "unknown", "follow_expired", "s1");

    /* a sandbox that is gone takes its commands along */
    begin(t, 11, 3, 2, "command.execute", "s1");
    detach(t, 11, 4, 2, "cmd2", 5 * SECOND);
    tf_begin(&f, SB_F_SEEN, 0, 5, 0, 0);
    tf_str(&f, SB_T_SANDBOX, "s2");
    tf_str(&f, SB_T_STATE, "gone");
    tf_str(&f, SB_T_SANDBOX, "s1");
    tf_str(&f, SB_T_STATE, "Running");
    note(t, 11);
    none_due(t, 6 * SECOND);

    tf_begin(&f, SB_F_SEEN, 0, 6, 0, 0);
    tf_str(&f, SB_T_SANDBOX, "s1");
    tf_str(&f, SB_T_STATE, "gone");
    note(t, 11);
    one_due(t, 6 * SECOND, 2, "unknown", "sandbox_gone", "s1");

    begin(t, 11, 7, 3, "command.execute", "s1");
    detach(t, 11, 8, 3, "cmd3", 5 * SECOND);
    begin(t, 11, 9, 4, "sandbox.delete", "s1");
    tf_begin(&f, SB_F_END, 0, 10, 4, SECOND);
    tf_str(&f, SB_T_STATUS, "succeeded");
    note(t, 11);
    one_due(t, 6 * SECOND, 3, "unknown", "sandbox_deleted", "s1");

    inflight_free(t);
}


/* The state frames of a new segment carry everything over. */
/* More than are followed (sandbox_follow): those that went on for longest end, those that are over
 * anyway with their own end. */
static void
test_detached_bounded(void **state)
{
    size_t       need, at;
    unsigned     i, n, unknown;
    uint8_t      id[16];
    sb_buf_t     out;
    sb_str_t     v;
    inflight_t  *t = inflight_new(FOLLOW);
    sb_frame_t   frame;

    const unsigned  more = 5;

    (void) state;

    for (i = 0; i < INFLIGHT_DETACHED; i++) {
        char  command[32];

        (void) snprintf(command, sizeof(command), "cmd%u", i);
        begin(t, 11, 2 * i + 1, i + 1, "command.execute", "s1");
        detach(t, 11, 2 * i + 2, i + 1, command, SECOND);
    }

    assert_int_equal(inflight_detached(t), INFLIGHT_DETACHED);
    none_due(t, 2 * SECOND);

    for (n = 0; n < more; n++, i++) {
        begin(t, 11, 2 * i + 1, i + 1, "command.execute", "s1");
        detach(t, 11, 2 * i + 2, i + 1, "more", SECOND);
    }

    /* the second one is seen to be over */
    status(t, 11, 2 * i + 1, i + 1, "s1", "cmd1", false, 0);

    memset(&out, 0, sizeof(out));
    out.max = 1 << 20;
    assert_int_equal(inflight_due(t, T0 + 2 * SECOND, &out), more);

    unknown = 0;

    for (at = 0, i = 0; at < out.len; at += frame.length, i++) {
        assert_int_equal(sb_frame_read(&frame, out.data + at, out.len - at,
                                       &need), SB_OK);
        tf_id(id, i + 1);
        assert_memory_equal(frame.op, id, 16);
        assert_true(sb_field_get(&frame, SB_T_STATUS, &v));

        if (sb_eq(v, sb_lit("unknown"))) {
            assert_true(sb_field_get(&frame, SB_T_REASON, &v));
            assert_true(sb_eq(v, sb_lit("follow_expired")));
            unknown++;

        } else {
            assert_int_equal(i, 1);
        }

        inflight_note(t, 0, &frame);
    }

    assert_int_equal(unknown, more - 1);
    assert_int_equal(inflight_detached(t), INFLIGHT_DETACHED);
    none_due(t, 2 * SECOND);
    sb_buf_free(&out);
    inflight_free(t);
}


static void
test_state(void **state)
{
    size_t       n, pos, need, i;
    sb_buf_t     out;
    inflight_t  *t = inflight_new(FOLLOW), *u;
    sb_frame_t   frame;

    (void) state;

    begin(t, 11, 41, 1, "command.execute", "s1");
    begin(t, 12, 7, 2, "command.execute", "s2");
    detach(t, 12, 8, 2, "cmd2", 3 * SECOND);

    memset(&out, 0, sizeof(out));
    out.max = 1 << 20;
    n = inflight_state(t, T0 + 9 * SECOND, &out);
    assert_int_equal(n, 4);

    u = inflight_new(FOLLOW);

    for (i = 0, pos = 0; i < n; i++, pos += frame.length) {
        assert_int_equal(sb_frame_read(&frame, out.data + pos, out.len - pos,
                                       &need), SB_OK);
        inflight_note(u, 0, &frame);
    }

    assert_int_equal(inflight_last_seq(inflight_instance(u, 11)), 41);
    assert_int_equal(inflight_last_seq(inflight_instance(u, 12)), 8);
    assert_int_equal(inflight_operations(u), 1);
    assert_int_equal(inflight_detached(u), 1);

    inflight_started(u, T0 + 10 * SECOND);
    status(u, 12, 9, 5, "s2", "cmd2", false, 0);
    one_due(u, 11 * SECOND, 2, "succeeded", NULL, "s2");
    one_due(u, 15 * SECOND, 1, "unknown", "gateway_restarted", "s1");

    sb_buf_free(&out);
    inflight_free(t);
    inflight_free(u);
}


/* Bounded: instances are forgotten that are idle for longest. */
static void
test_instances_bounded(void **state)
{
    uint64_t     i;
    inflight_t  *t = inflight_new(FOLLOW);

    (void) state;

    begin(t, 1, 77, 1, "command.execute", "s1");

    for (i = 2; i < INFLIGHT_INSTANCES + 100; i++) {
        tf_begin(&f, SB_F_SEEN, 0, 3, 0, 0);
        note(t, i);
        assert_true(inflight_instances(t) <= INFLIGHT_INSTANCES);

        if (i == INFLIGHT_INSTANCES - 10) {
            /* the second is an old one, and at work */
            tf_begin(&f, SB_F_SEEN, 0, 4, 0, 0);
            note(t, 2);
        }
    }

    assert_int_equal(inflight_last_seq(inflight_instance(t, 1)), 77);
    assert_int_equal(inflight_last_seq(inflight_instance(t, i - 1)), 3);
    assert_int_equal(inflight_last_seq(inflight_instance(t, 2)), 4);
    assert_int_equal(inflight_last_seq(inflight_instance(t, 3)), 0);

    inflight_free(t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_seq),
        cmocka_unit_test(test_worker_died),
        cmocka_unit_test(test_clock_back),
        cmocka_unit_test(test_restarted),
        cmocka_unit_test(test_detached_ends),
        cmocka_unit_test(test_detached_interrupted),
        cmocka_unit_test(test_detached_expires),
        cmocka_unit_test(test_detached_bounded),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_instances_bounded)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
