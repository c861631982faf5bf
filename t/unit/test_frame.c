/* Frames: what is written is read back; nothing malformed is believed. */

#include "frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>


static const uint8_t  op[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                 15, 16 };


/* A frame in memory of exactly its length, so that ASan sees every over-read;
 * the caller frees it. */
static char *
make(size_t *n)
{
    char               mem[512], *p;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_BEGIN, SB_FF_STRICT,
                   0x0102030405060708u, op, 1795957342222333u);
    sb_frame_put(&w, SB_T_TYPE, sb_lit("command.execute"));
    sb_frame_put(&w, SB_T_BACKGROUND, sb_lit(""));
    sb_frame_put_u64(&w, SB_T_PORT, 44772);
    sb_frame_put(&w, SB_T_DATA, sb_str("a\0b", 3));

    *n = sb_frame_end(&w);
    assert_true(*n > SB_FRAME_HEAD);

    p = malloc(*n);
    assert_non_null(p);
    memcpy(p, mem, *n);

    return p;
}


static void
test_round_trip(void **state)
{
    char        *p;
    size_t       n, need;
    uint16_t     tag;
    sb_str_t     value, fields;
    sb_frame_t   f;

    (void) state;

    p = make(&n);

    assert_int_equal(sb_frame_read(&f, p, n, &need), SB_OK);
    assert_int_equal(f.length, n);
    assert_int_equal(f.type, SB_F_BEGIN);
    assert_int_equal(f.flags, SB_FF_STRICT);
    assert_true(f.seq == 0x0102030405060708u);
    assert_true(f.time_us == 1795957342222333u);
    assert_memory_equal(f.op, op, 16);

    assert_true(sb_field_get(&f, SB_T_TYPE, &value));
    assert_true(sb_eq(value, sb_lit("command.execute")));
    assert_true(sb_field_get(&f, SB_T_BACKGROUND, &value));
    assert_int_equal(value.len, 0);
    assert_int_equal(sb_field_u64(&f, SB_T_PORT, 1), 44772);
    assert_int_equal(sb_field_u64(&f, SB_T_PID, 77), 77);
    assert_int_equal(sb_field_u64(&f, SB_T_DATA, 78), 78);
    assert_false(sb_field_get(&f, SB_T_REASON, &value));

    fields = f.fields;
    n = 0;

    while (sb_field_next(&fields, &tag, &value)) {
        n++;
    }

    assert_int_equal(n, 4);
    assert_int_equal(tag, SB_T_DATA);
    assert_memory_equal(value.data, "a\0b", 3);

    free(p);
}


static void
test_layout(void **state)
{
    char               mem[64];
    size_t             n;
    sb_frame_writer_t  w;

    static const char  want[] =
        "\x39\x00\x00\x00" "\x11" "\x01" "\x01\x00"
        "\x02\x01\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        "\x03\x00\x00\x00\x00\x00\x00\x80"
        "\x29\x00\x00\x00\x09\x00\x00\x00" "echo true";

    (void) state;

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_FACTS, 1, 0x102, NULL,
                   0x8000000000000003u);
    sb_frame_put(&w, SB_T_COMMAND, sb_lit("echo true"));
    n = sb_frame_end(&w);

    assert_int_equal(n, sizeof(want) - 1);
    assert_memory_equal(mem, want, n);

    /* a frame is numbered when it is sent */

    sb_frame_set_seq(mem, 0x0807060504030201u);
    assert_memory_equal(mem + 8, "\1\2\3\4\5\6\7\10", 8);
    assert_memory_equal(mem + 16, want + 16, n - 16);
    assert_memory_equal(mem, want, 8);
}


/* Every prefix asks for more and says how much; the whole is one frame. */
static void
test_prefixes(void **state)
{
    char        *p, *cut;
    size_t       n, i, need;
    sb_frame_t   f;

    (void) state;

    p = make(&n);

    for (i = 0; i < n; i++) {
        cut = malloc(i ? i : 1);
        assert_non_null(cut);
        memcpy(cut, p, i);

        assert_int_equal(sb_frame_read(&f, cut, i, &need), SB_AGAIN);
        assert_true(need > i);
        assert_int_equal(need, i < SB_FRAME_HEAD ? SB_FRAME_HEAD : n);

        free(cut);
    }

    free(p);
}


static void
test_malformed(void **state)
{
    char        *p, *q;
    size_t       n, i, need;
    sb_frame_t   f;

    (void) state;

    p = make(&n);

    /* a length below the header or above the bound, told from 4 bytes */
    assert_int_equal(sb_frame_read(&f, "\x27\0\0\0", 4, &need), SB_ERROR);
    assert_int_equal(sb_frame_read(&f, "\x01\0\x20\0", 4, &need), SB_ERROR);
    assert_int_equal(sb_frame_read(&f, "\0\0\x20\0", 4, &need), SB_AGAIN);
    assert_int_equal(sb_frame_read(&f, "\xff\xff\xff\xff", 4, &need),
                     SB_ERROR);

    p[6] = 2;
    assert_int_equal(sb_frame_read(&f, p, n, &need), SB_ERROR);
    assert_int_equal(sb_frame_read(&f, p, 8, &need), SB_ERROR);
    p[6] = 1;

    /* the zero behind a tag */
    p[SB_FRAME_HEAD + 2] = 1;
    assert_int_equal(sb_frame_read(&f, p, n, &need), SB_ERROR);
    p[SB_FRAME_HEAD + 2] = 0;

    /* fields that do not fill the frame exactly: every shorter length */
    q = malloc(n);
    assert_non_null(q);

    for (i = SB_FRAME_HEAD; i < n; i++) {
        memcpy(q, p, n);
        q[0] = (char) i;

        if (i == SB_FRAME_HEAD || i == SB_FRAME_HEAD + 23
            || i == SB_FRAME_HEAD + 31 || i == SB_FRAME_HEAD + 47)
        {
            assert_int_equal(sb_frame_read(&f, q, n, &need), SB_OK);
        } else {
            assert_int_equal(sb_frame_read(&f, q, n, &need), SB_ERROR);
        }
    }

    /* a field that claims more than there is */
    memcpy(q, p, n);
    memset(q + SB_FRAME_HEAD + 4, 0xff, 4);
    assert_int_equal(sb_frame_read(&f, q, n, &need), SB_ERROR);

    free(q);
    free(p);
}


static void
test_full(void **state)
{
    char               *mem;
    size_t              size, need = SB_FRAME_HEAD + 8 + 5 + 16;
    sb_frame_writer_t   w;

    (void) state;

    for (size = 0; size <= need + 1; size++) {
        mem = malloc(size ? size : 1);
        assert_non_null(mem);

        sb_frame_begin(&w, mem, size, SB_F_END, 0, 1, op, 2);
        sb_frame_put(&w, SB_T_STATUS, sb_lit("12345"));
        sb_frame_put_u64(&w, SB_T_HTTP_STATUS, 200);

        assert_int_equal(sb_frame_end(&w), size < need ? 0 : need);
        assert_int_equal(w.full, size < need);

        free(mem);
    }
}


/* No frame longer than SB_FRAME_MAX is ever written: the peer would refuse
 * it. */
static void
test_largest(void **state)
{
    char               *mem, *data;
    size_t              n, need, room;
    sb_frame_t          f;
    sb_frame_writer_t   w;

    (void) state;

    room = SB_FRAME_MAX - SB_FRAME_HEAD - 8;
    mem = malloc(SB_FRAME_MAX + 100);
    data = calloc(1, SB_FRAME_MAX);
    assert_non_null(mem);
    assert_non_null(data);

    sb_frame_begin(&w, mem, SB_FRAME_MAX + 100, SB_F_OUTPUT, 0, 1, op, 2);
    sb_frame_put(&w, SB_T_DATA, sb_str(data, room));
    n = sb_frame_end(&w);

    assert_int_equal(n, SB_FRAME_MAX);
    assert_int_equal(sb_frame_read(&f, mem, n, &need), SB_OK);

    sb_frame_begin(&w, mem, SB_FRAME_MAX + 100, SB_F_OUTPUT, 0, 1, op, 2);
    sb_frame_put(&w, SB_T_DATA, sb_str(data, room + 1));
    assert_int_equal(sb_frame_end(&w), 0);

    free(mem);
    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
