/* lib/ws: frames of one direction, fed in pieces of every size. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ws.h"


#define EXIT_TEXT  "{\"type\":\"exit\",\"exit_code\":7}\n"


typedef struct {
    uint8_t  data[128 * 1024];
    size_t   len;
} wire_t;


/* size_of_len: 0 the shortest form, else 2 or 8 bytes of length. */
static void
put_frame(wire_t *w, uint8_t first, const char *payload, size_t n,
    unsigned size_of_len, const uint8_t *mask)
{
    size_t    i;
    unsigned  shift;
    uint8_t   bit = mask ? 0x80 : 0;

    if (size_of_len == 0 && n > 125) {
        size_of_len = n > 65535 ? 8 : 2;
    }

    w->data[w->len++] = first;

    switch (size_of_len) {

    case 0:
        w->data[w->len++] = (uint8_t) (bit | n);
        break;

    case 2:
        w->data[w->len++] = (uint8_t) (bit | 126);
        break;

    default:
        w->data[w->len++] = (uint8_t) (bit | 127);
        break;
    }

    for (shift = size_of_len * 8; shift; shift -= 8) {
        w->data[w->len++] = (uint8_t) ((uint64_t) n >> (shift - 8));
    }

    if (mask) {
        memcpy(w->data + w->len, mask, 4);
        w->len += 4;
    }

    for (i = 0; i < n; i++) {
        w->data[w->len++] = (uint8_t) (payload[i] ^ (mask ? mask[i & 3] : 0));
    }
}


/* Feeds in two pieces, the first of `cut` bytes, or in single bytes. */
static sb_ws_t *
feed(const wire_t *w, size_t cut)
{
    size_t    i;
    sb_ws_t  *ws;

    ws = calloc(1, sizeof(sb_ws_t));
    assert_non_null(ws);

    if (cut > w->len) {
        for (i = 0; i < w->len; i++) {
            sb_ws_feed(ws, w->data + i, 1);
        }

    } else {
        sb_ws_feed(ws, w->data, cut);
        sb_ws_feed(ws, w->data + cut, w->len - cut);
    }

    return ws;
}


/* C045: a ping between two fragments is no part of the message */
static void
test_control_between_fragments(void **state)
{
    size_t   cut;
    wire_t  *w = *state;

    put_frame(w, 0x01, "sta", 3, 0, NULL);
    put_frame(w, 0x89, "p1", 2, 0, NULL);
    put_frame(w, 0x80, "tus", 3, 0, NULL);

    for (cut = 0; cut <= w->len + 1; cut++) {
        sb_ws_t  *ws = feed(w, cut);

        assert_false(ws->broken);
        assert_int_equal(ws->frames, 3);
        assert_int_equal(ws->messages, 1);
        assert_int_equal(ws->controls, 1);
        assert_int_equal(ws->payload, 8);
        assert_int_equal(ws->text_len, 6);
        assert_memory_equal(ws->text, "status", 6);
        assert_false(ws->closed);
        free(ws);
    }
}


/* C043: what came in one packet with the 101 is the first thing fed; the
 * terminal's exit, in fragments, and its close code are understood */
static void
test_exit(void **state)
{
    size_t         cut, split;
    wire_t        *w = *state;
    unsigned       masked;
    const uint8_t  mask[4] = { 0x37, 0xfa, 0x21, 0x3d };

    for (masked = 0; masked < 2; masked++) {
        for (split = 0; split < sizeof(EXIT_TEXT); split++) {
            const uint8_t  *m = masked ? mask : NULL;

            w->len = 0;
            put_frame(w, 0x82, "\001out", 4, 0, m);
            put_frame(w, 0x01, EXIT_TEXT, split, 0, m);
            put_frame(w, 0x8a, "", 0, 0, m);
            put_frame(w, 0x80, EXIT_TEXT + split,
                      sizeof(EXIT_TEXT) - 1 - split, 0, m);
            put_frame(w, 0x88, "\x03\xe8process exited", 16, 0, m);

            /* behind the close: not looked at */
            put_frame(w, 0x81, "{\"type\":\"exit\",\"exit_code\":9}", 29, 0, m);

            for (cut = 0; cut <= w->len + 1; cut++) {
                sb_ws_t  *ws = feed(w, cut);

                assert_false(ws->broken);
                assert_true(ws->has_exit);
                assert_int_equal(ws->exit_code, 7);
                assert_true(ws->closed);
                assert_int_equal(ws->close_code, 1000);
                assert_int_equal(ws->frames, 5);
                assert_int_equal(ws->messages, 2);
                free(ws);
            }
        }
    }
}


static void
test_lengths(void **state)
{
    char           *big;
    size_t          i, n, j;
    wire_t         *w = *state;
    sb_ws_t        *ws;
    const uint8_t   mask[4] = { 1, 2, 3, 4 };

    static const size_t    sizes[] = { 0, 1, 125, 126, 127, 65535, 65536,
                                       70001 };
    static const unsigned  forms[] = { 0, 2, 8 };

    big = malloc(70001);
    assert_non_null(big);

    for (i = 0; i < 70001; i++) {
        big[i] = (char) ('a' + i % 26);
    }

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (j = 0; j < 3; j++) {

            n = sizes[i];

            if ((forms[j] == 0 && n > 125) || (forms[j] == 2 && n > 65535)) {
                continue;
            }

            w->len = 0;
            put_frame(w, 0x81, big, n, forms[j], mask);
            put_frame(w, 0x81, "end", 3, 0, mask);
            ws = feed(w, w->len + 1);

            assert_false(ws->broken);
            assert_int_equal(ws->messages, 2);
            assert_int_equal(ws->payload, n + 3);
            assert_int_equal(ws->text_len, 3);
            assert_memory_equal(ws->text, "end", 3);
            free(ws);

            w->len = 0;
            put_frame(w, 0x81, big, n, forms[j], mask);
            ws = feed(w, 1);

            assert_int_equal(ws->text_len,
                             n < SB_WS_TEXT_MAX ? n : SB_WS_TEXT_MAX);
            assert_memory_equal(ws->text, big, ws->text_len);
            assert_int_equal(ws->text_cut, n > SB_WS_TEXT_MAX);
            free(ws);
        }
    }

    free(big);
}


static void
test_close(void **state)
{
    wire_t   *w = *state;
    sb_ws_t  *ws;

    static const struct {
        const char  *payload;
        size_t       n;
        unsigned     code;
    } cases[] = {
        { "", 0, 0 },
        { "\x03", 1, 0 },
        { "\x03\xf0", 2, 1008 },
        { "\x0f\xa1TAKEN_OVER", 12, 4001 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w->len = 0;
        put_frame(w, 0x88, cases[i].payload, cases[i].n, 0, NULL);
        ws = feed(w, w->len + 1);

        assert_true(ws->closed);
        assert_false(ws->broken);
        assert_int_equal(ws->close_code, cases[i].code);
        free(ws);
    }

    /* not before its last byte is there */

    ws = calloc(1, sizeof(sb_ws_t));
    assert_non_null(ws);
    sb_ws_feed(ws, w->data, w->len - 1);
    assert_false(ws->closed);
    free(ws);
}


static void
test_broken(void **state)
{
    wire_t   *w = *state;
    sb_ws_t  *ws;
    char      payload[126] = { 0 };

    static const struct {
        const char  *bytes;
        size_t       n;
    } cases[] = {
        { "\xc1\x01x", 3 },                     /* RSV1: compressed */
        { "\xa1\x01x", 3 },                     /* RSV2 */
        { "\x91\x01x", 3 },                     /* RSV3 */
        { "\x83\x00", 2 },                      /* reserved opcodes */
        { "\x87\x00", 2 },
        { "\x8b\x00", 2 },
        { "\x8f\x00", 2 },
        { "\x09\x00", 2 },                      /* fragmented ping */
        { "\x89\x7e\x00\x05hello", 9 + 0 },     /* fine: long form of 5 */
        { "\x80\x00", 2 },                      /* continues nothing */
        { "\x01\x01x\x81\x01x", 6 },            /* message inside a message */
        { "\x82\x7f\x80\0\0\0\0\0\0\x01", 10 }, /* length of 2^63 and more */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w->len = 0;
        memcpy(w->data, cases[i].bytes, cases[i].n);
        w->len = cases[i].n;
        ws = feed(w, w->len + 1);

        assert_int_equal(ws->broken, cases[i].n != 9);

        /* and stays so, whatever follows */

        sb_ws_feed(ws, "\x81\x1d" "{\"type\":\"exit\",\"exit_code\":9}", 31);
        assert_int_equal(ws->has_exit, cases[i].n == 9);
        free(ws);
    }

    w->len = 0;
    put_frame(w, 0x89, payload, 126, 2, NULL);
    ws = feed(w, w->len + 1);
    assert_true(ws->broken);
    assert_int_equal(ws->frames, 0);
    free(ws);
}


/* A stream of binary bytes is not text, and near misses are no exit. */
static void
test_no_exit(void **state)
{
    wire_t   *w = *state;
    sb_ws_t  *ws;

    static const struct {
        uint8_t      first;
        const char  *payload;
    } cases[] = {
        { 0x82, "{\"type\":\"exit\",\"exit_code\":7}" },
        { 0x89, "{\"type\":\"exit\",\"exit_code\":7}" },
        { 0x81, "{\"type\":\"exit\",\"exit_code\":\"7\"}" },
        { 0x81, "{\"type\":\"exit\"}" },
        { 0x81, "{\"type\":\"exit\",\"exit_code\":99999999999}" },
        { 0x81, "{\"type\":\"exit\",\"exit_code\":7" },
        { 0x81, "{\"type\":\"x\",\"a\":\"exit\",\"exit_code\":7}" },
        { 0x81, "[\"exit\"]" },
        { 0x81, "\"exit\"" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w->len = 0;
        put_frame(w, cases[i].first, cases[i].payload,
                  strlen(cases[i].payload), 0, NULL);
        ws = feed(w, w->len + 1);

        assert_false(ws->has_exit);
        assert_false(ws->broken);
        free(ws);
    }

    w->len = 0;
    put_frame(w, 0x81, "{\"exit_code\":-1,\"type\":\"exit\"}", 30, 0, NULL);
    ws = feed(w, 0);
    assert_true(ws->has_exit);
    assert_int_equal(ws->exit_code, -1);
    free(ws);
}


static int
setup(void **state)
{
    *state = calloc(1, sizeof(wire_t));
    return *state == NULL;
}


static int
teardown(void **state)
{
    free(*state);
    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_control_between_fragments, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_exit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_exit, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
