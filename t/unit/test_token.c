/* The token file, tokens and endpoint tokens. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "digest.h"
#include "id.h"
#include "token.h"

#define NOW  1795942800000001ull    /* 2026-11-29T09:00:00.000001Z */

#define HASH  "00112233445566778899aabbccddeeff"                             \
              "00112233445566778899AABBCCDDEEFF"


static sb_str_t
str(const char *s)
{
    return sb_str(s, strlen(s));
}


static void
test_file(void **state)
{
    static const char  text[] =
        "# tokens of this gateway\n"
        "\n"
        "   \t\r\n"
        "zeta " HASH "\n"
        "  # not a token\n"
        "alpha\t" HASH "  role=admin actor=l\xc3\xa9""a@example.org type=user"
        " states-actors created=2026-11-29T09:00:00.000001Z\r\n"
        "m1 " HASH " expires=2026-11-29T10:00:00+01:00 role=operator";

    unsigned      line;
    sb_tokens_t   t;
    const char   *why;
    sb_token_t   *row;

    (void) state;

    assert_int_equal(sb_tokens_parse(&t, str(text), &line, &why), SB_OK);
    assert_int_equal(t.n, 3);

    row = &t.items[0];
    assert_string_equal(row->id, "alpha");
    assert_int_equal(row->role, SB_ROLE_ADMIN);
    assert_string_equal(row->actor, "l\xc3\xa9""a@example.org");
    assert_string_equal(row->type, "user");
    assert_true(row->states_actors);
    assert_int_equal(row->expires_us, 0);
    assert_int_equal(row->hash[1], 0x11);
    assert_int_equal(row->hash[31], 0xff);

    row = &t.items[1];
    assert_string_equal(row->id, "m1");
    assert_int_equal(row->role, SB_ROLE_OPERATOR);
    assert_int_equal(row->expires_us, NOW - 1);

    /* what is not said is the least */

    row = &t.items[2];
    assert_string_equal(row->id, "zeta");
    assert_int_equal(row->role, SB_ROLE_VIEWER);
    assert_string_equal(row->actor, "");
    assert_string_equal(row->type, "");
    assert_false(row->states_actors);

    sb_tokens_free(&t);
    assert_null(t.items);

    assert_int_equal(sb_tokens_parse(&t, str(""), &line, &why), SB_OK);
    assert_int_equal(t.n, 0);
    sb_tokens_free(&t);
}


/* an empty id is that of what has no sandbox */
static void
test_allows(void **state)
{
    static const struct {
        const char  *globs, *sandbox;
        bool         may;
    } cases[] = {
        { "", "", true }, { "", "s1", true },
        { "s1", "s1", true }, { "s1", "s11", false }, { "s1", "", false },
        { "*", "s1", true }, { "*", "", false },
        { "a,build-*", "a", true }, { "a,build-*", "build-7", true },
        { "a,build-*", "ab", false }, { "a,build-*", "a,build-7", false },
    };

    sb_token_t  t;

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&t, 0, sizeof(t));
        strcpy(t.sandboxes, cases[i].globs);
        assert_int_equal(sb_token_allows(&t, str(cases[i].sandbox)),
                         cases[i].may);
    }
}


/* C142: a code is of one token, for a minute, and nothing else */
static void
test_code(void **state)
{
    char         text[SB_ENDPOINT_TOKEN_MAX], again[SB_ENDPOINT_TOKEN_MAX];
    char         buf[SB_ENDPOINT_TOKEN_MAX], token[SB_TOKEN_TEXT_MAX];
    size_t       i;
    sb_code_t    c, got;
    sb_token_t   row;
    sb_tokens_t  t;

    sb_endpoint_token_t  e;

    (void) state;

    memset(&row, 0, sizeof(row));
    sb_token_make(&row, token);
    row.role = SB_ROLE_OPERATOR;
    t.items = &row;
    t.n = 1;

    c.row = &row;
    c.role = SB_ROLE_VIEWER;
    c.made_us = NOW;
    sb_code_make(text, &c);
    sb_code_make(again, &c);
    assert_string_not_equal(text, again);
    assert_true(sb_token_like(str(text)));

    assert_int_equal(sb_code_check(&got, &t, str(text), NOW), SB_OK);
    assert_ptr_equal(got.row, &row);
    assert_int_equal(got.role, SB_ROLE_VIEWER);
    assert_int_equal(got.made_us, NOW);
    assert_int_equal(sb_code_check(&got, &t, str(text), NOW + SB_CODE_VALID_US),
                     SB_OK);
    assert_int_equal(sb_code_check(&got, &t, str(text),
                                   NOW + SB_CODE_VALID_US + 1), SB_DECLINED);
    assert_int_equal(sb_code_check(&got, &t, str(text), NOW - 1), SB_DECLINED);

    assert_null(sb_token_check(&t, str(text), NOW));
    assert_int_equal(sb_endpoint_token_check(&e, &t, str(text), NOW, buf),
                     SB_DECLINED);

    e.sandbox = str("s1");
    e.port = 1;
    e.actor_type = e.actor_id = str("");
    e.row = &row;
    assert_int_equal(sb_endpoint_token_make(again, &e), SB_OK);
    assert_int_equal(sb_code_check(&got, &t, str(again), NOW), SB_DECLINED);

    for (i = 0; i < strlen(text); i++) {
        memcpy(again, text, sizeof(again));
        again[i] = again[i] == 'A' ? 'B' : 'A';
        assert_int_equal(sb_code_check(&got, &t, str(again), NOW),
                         SB_DECLINED);
        assert_int_equal(sb_code_check(&got, &t, sb_str(text, i), NOW),
                         SB_DECLINED);
    }

    /* no more than its token, and gone with it */

    c.role = SB_ROLE_ADMIN;
    sb_code_make(text, &c);
    assert_int_equal(sb_code_check(&got, &t, str(text), NOW), SB_OK);
    assert_int_equal(got.role, SB_ROLE_OPERATOR);
    row.hash[0] ^= 1;
    assert_int_equal(sb_code_check(&got, &t, str(text), NOW), SB_DECLINED);
    t.n = 0;
    assert_int_equal(sb_code_check(&got, &t, str(text), NOW), SB_DECLINED);
}


/* C145: what is misspelt stops the start, it never opens a door */
static void
test_file_errors(void **state)
{
    static const struct {
        const char  *text;
        unsigned     line;
    } cases[] = {
        { "a", 1 },
        { "a \n", 1 },
        { "\n\na 0011\n", 3 },
        { "A " HASH, 1 },
        { "a-b " HASH, 1 },
        { "a_b " HASH, 1 },
        { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " HASH, 1 },
        { "a " HASH "0", 1 },
        { "a g" HASH, 1 },
        { "ok " HASH "\na " HASH " role=root\n", 2 },
        { "a " HASH " role=", 1 },
        { "a " HASH " role=Admin", 1 },
        { "a " HASH " role=adminx", 1 },
        { "a " HASH " rolle=admin", 1 },
        { "a " HASH " admin", 1 },
        { "a " HASH " role=admin role=viewer", 1 },
        { "a " HASH " states-actors states-actors", 1 },
        { "a " HASH " states-actorsx", 1 },
        { "a " HASH " states-actors=no", 1 },
        { "a " HASH " actor=", 1 },
        { "a " HASH " actor=\x01", 1 },
        { "a " HASH " actor=\xc0\xae", 1 },
        { "a " HASH " actor=two words", 1 },
        { "a " HASH " type=a/b", 1 },
        { "a " HASH " sandboxes=", 1 },
        { "a " HASH " sandboxes=a,", 1 },
        { "a " HASH " sandboxes=,a", 1 },
        { "a " HASH " sandboxes=a,,b", 1 },
        { "a " HASH " sandboxes=a/b", 1 },
        { "a " HASH " sandboxes=a sandboxes=b", 1 },
        { "a " HASH " type=", 1 },
        { "a " HASH " expires=tomorrow", 1 },
        { "a " HASH " expires=1970-01-01T00:00:00Z", 1 },
        { "a " HASH " expires=0", 1 },
        { "a " HASH " created=2026-11-29", 1 },
        { "a " HASH " # comment", 1 },
        { "a " HASH "\nb " HASH "\na " HASH "\n", 3 },
    };

    char         big[400];
    unsigned     line;
    sb_tokens_t  t;
    const char  *why;

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        why = NULL;

        if (sb_tokens_parse(&t, str(cases[i].text), &line, &why) != SB_ERROR
            || line != cases[i].line || why == NULL || t.items != NULL)
        {
            fail_msg("\"%s\": line %u, %s", cases[i].text, line,
                     why ? why : "taken");
        }
    }

    /* the longest names, and one byte more */

    memset(big, 0, sizeof(big));
    strcpy(big, "a " HASH " actor=");
    memset(big + strlen(big), 'n', 128);
    assert_int_equal(sb_tokens_parse(&t, str(big), &line, &why), SB_OK);
    assert_int_equal(strlen(t.items[0].actor), 128);
    sb_tokens_free(&t);

    strcat(big, "n");
    assert_int_equal(sb_tokens_parse(&t, str(big), &line, &why), SB_ERROR);

    /* a NUL does not end a line early */

    assert_int_equal(sb_tokens_parse(&t, sb_lit("a " HASH "\0 role=viewer"),
                                     &line, &why), SB_ERROR);
}


static void
test_file_bound(void **state)
{
    sb_rc_t      rc;
    sb_buf_t     b;
    unsigned     line;
    sb_tokens_t  t;
    const char  *why;

    (void) state;

    memset(&b, 0, sizeof(b));
    b.max = 1 << 20;

    for (int i = 0; i < SB_TOKENS_MAX; i++) {
        rc = sb_buf_printf(&b, "t%d " HASH "\n", i * 7919 % SB_TOKENS_MAX);
        assert_int_equal(rc, SB_OK);
    }

    assert_int_equal(sb_tokens_parse(&t, sb_str(b.data, b.len), &line, &why),
                     SB_OK);
    assert_int_equal(t.n, SB_TOKENS_MAX);

    for (int i = 0; i < SB_TOKENS_MAX; i++) {
        char  id[16];

        snprintf(id, sizeof(id), "t%d", i);
        assert_non_null(sb_token_find(&t, str(id), NOW));
    }

    sb_tokens_free(&t);

    assert_int_equal(sb_buf_printf(&b, "more " HASH "\n"), SB_OK);
    assert_int_equal(sb_tokens_parse(&t, sb_str(b.data, b.len), &line, &why),
                     SB_ERROR);
    assert_int_equal(line, SB_TOKENS_MAX + 1);

    sb_buf_free(&b);
}


/* A file of two tokens, made as the launcher makes it. */
static void
make_tokens(sb_tokens_t *t, char text[2][SB_TOKEN_TEXT_MAX],
    uint64_t expires_us)
{
    sb_buf_t     b;
    unsigned     line;
    sb_token_t   token;
    const char  *why;

    memset(&b, 0, sizeof(b));
    b.max = 4096;

    memset(&token, 0, sizeof(token));
    token.role = SB_ROLE_ADMIN;
    token.states_actors = true;
    strcpy(token.actor, "first");
    strcpy(token.type, "user");
    sb_token_make(&token, text[0]);
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_OK);

    memset(&token, 0, sizeof(token));
    token.expires_us = expires_us;
    sb_token_make(&token, text[1]);
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_OK);

    assert_int_equal(sb_tokens_parse(t, sb_str(b.data, b.len), &line, &why),
                     SB_OK);
    assert_int_equal(t->n, 2);
    sb_buf_free(&b);
}


static void
test_line(void **state)
{
    sb_buf_t    b;
    sb_token_t  token;

    (void) state;

    memset(&b, 0, sizeof(b));
    b.max = 400;
    memset(&token, 0, sizeof(token));
    strcpy(token.id, "a1");
    memset(token.hash, 0xab, 32);
    token.role = SB_ROLE_OPERATOR;
    token.states_actors = true;
    strcpy(token.actor, "bot-7");
    strcpy(token.type, "agent");
    token.expires_us = NOW;

    assert_int_equal(sb_token_line(&b, &token, NOW - 1), SB_OK);
    assert_string_equal(sb_buf_cstr(&b),
        "a1 abababababababababababababababab"
        "abababababababababababababababab role=operator actor=bot-7 "
        "type=agent states-actors created=2026-11-29T09:00:00.000000Z "
        "expires=2026-11-29T09:00:00.000001Z\n");

    /* half a line would be another token */

    b.max = b.len + 90;
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_LIMIT);
    assert_int_equal(b.data[b.len - 1], '\n');

    strcpy(token.actor, "two words");
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_ERROR);
    strcpy(token.actor, "a\nb");
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_ERROR);
    strcpy(token.actor, "");
    strcpy(token.type, "a b");
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_ERROR);
    strcpy(token.type, "");
    strcpy(token.id, "");
    assert_int_equal(sb_token_line(&b, &token, NOW), SB_ERROR);

    sb_buf_free(&b);
}


static void
test_check(void **state)
{
    char               text[2][SB_TOKEN_TEXT_MAX], changed[200];
    size_t             n;
    sb_tokens_t        t, other;
    const sb_token_t  *row;
    char               texts[2][SB_TOKEN_TEXT_MAX];

    (void) state;

    make_tokens(&t, text, NOW + 1000);
    make_tokens(&other, texts, 0);

    n = strlen(text[0]);
    assert_int_equal(n, 4 + 10 + 1 + 43);
    assert_memory_equal(text[0], "sbx_", 4);

    row = sb_token_check(&t, str(text[0]), NOW);
    assert_non_null(row);
    assert_string_equal(row->actor, "first");
    assert_int_equal(row->role, SB_ROLE_ADMIN);
    assert_true(row->states_actors);
    assert_null(sb_token_check(&other, str(text[0]), NOW));

    /* the second one is a viewer's and ends */

    row = sb_token_check(&t, str(text[1]), NOW + 999);
    assert_non_null(row);
    assert_int_equal(row->role, SB_ROLE_VIEWER);
    assert_null(sb_token_check(&t, str(text[1]), NOW + 1000));
    assert_null(sb_token_check(&t, str(text[1]), NOW + 2000));

    /* any change, cut or addition is another token */

    for (size_t i = 0; i < n; i++) {
        strcpy(changed, text[0]);
        changed[i] = changed[i] == 'x' ? 'y' : 'x';

        if (strcmp(changed, text[0]) != 0) {
            assert_null(sb_token_check(&t, str(changed), NOW));
        }

        assert_null(sb_token_check(&t, sb_str(text[0], i), NOW));
    }

    strcpy(changed, text[0]);
    strcat(changed, "A");
    assert_null(sb_token_check(&t, str(changed), NOW));
    assert_null(sb_token_check(&t, sb_str(text[0], n + 1), NOW));

    memset(changed, 'a', sizeof(changed));
    memcpy(changed, text[0], n);
    assert_null(sb_token_check(&t, sb_str(changed, sizeof(changed)), NOW));

    assert_null(sb_token_check(&t, str(""), NOW));
    assert_null(sb_token_check(&t, str("sbx_"), NOW));
    assert_null(sb_token_check(&t, str("sbx__"), NOW));
    assert_null(sb_token_check(&t, str("sbx_abcdefghijklmnopqrstuvwxyz"
                                       "abcdefghijklmnopqrstuvwxyz_x"), NOW));

    sb_tokens_free(&t);
    sb_tokens_free(&other);
    assert_null(sb_token_check(&t, str(text[0]), NOW));
}


static void
test_endpoint(void **state)
{
    char                 text[2][SB_TOKEN_TEXT_MAX];
    char                 token[SB_ENDPOINT_TOKEN_MAX];
    char                 changed[SB_ENDPOINT_TOKEN_MAX + 8];
    char                 buf[SB_ENDPOINT_TOKEN_MAX];
    size_t               n, refused;
    sb_tokens_t          t;
    sb_endpoint_token_t  e, got;

    (void) state;

    make_tokens(&t, text, NOW + 1000);

    e.sandbox = str("7f3c2b1e-9d4a-4c55-8a0e-2f6b1c9d0e11");
    e.port = 44772;
    e.actor_type = str("agent");
    e.actor_id = str("l\xc3\xa9""a \xf0\x9f\x98\x80");
    e.row = sb_token_check(&t, str(text[0]), NOW);

    assert_int_equal(sb_endpoint_token_make(token, &e), SB_OK);
    n = strlen(token);
    assert_memory_equal(token, "sbe_", 4);

    for (size_t i = 0; i < n; i++) {
        assert_non_null(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
                               "uvwxyz0123456789-_.", token[i]));
    }

    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW, buf),
                     SB_OK);
    assert_true(sb_eq(got.sandbox, e.sandbox));
    assert_int_equal(got.port, 44772);
    assert_true(sb_eq(got.actor_type, e.actor_type));
    assert_true(sb_eq(got.actor_id, e.actor_id));
    assert_ptr_equal(got.row, e.row);

    /* no other form of it is taken */

    refused = 0;

    for (size_t i = 0; i < n; i++) {
        for (char c = 'A'; c <= 'z'; c++) {
            strcpy(changed, token);
            changed[i] = c;

            if (c == token[i]) {
                continue;
            }

            assert_int_equal(sb_endpoint_token_check(&got, &t, str(changed),
                                                     NOW, buf), SB_DECLINED);
            assert_null(got.row);
            assert_int_equal(got.sandbox.len, 0);
            refused++;
        }

        assert_int_equal(sb_endpoint_token_check(&got, &t, sb_str(token, i),
                                                 NOW, buf), SB_DECLINED);
    }

    assert_true(refused > n * 56);

    strcpy(changed, token);
    strcat(changed, "A");
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(changed), NOW, buf),
                     SB_DECLINED);

    /* empty names, the other credential and its end */

    e.port = 18080;
    e.actor_type = sb_str(NULL, 0);
    e.actor_id = sb_str(NULL, 0);
    e.row = sb_token_check(&t, str(text[1]), NOW);
    assert_int_equal(sb_endpoint_token_make(token, &e), SB_OK);
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW + 999,
                                             buf), SB_OK);
    assert_int_equal(got.port, 18080);
    assert_int_equal(got.actor_id.len, 0);
    assert_ptr_equal(got.row, e.row);
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW + 1000,
                                             buf), SB_DECLINED);

    sb_tokens_free(&t);
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW, buf),
                     SB_DECLINED);
}


/* The key is the row's: a token of another one, or of a row whose secret was
 * changed under the same id, is worth nothing. */
static void
test_endpoint_bound(void **state)
{
    char                 text[2][SB_TOKEN_TEXT_MAX];
    char                 token[SB_ENDPOINT_TOKEN_MAX], *p;
    char                 long_id[1024], buf[SB_ENDPOINT_TOKEN_MAX];
    size_t               n, max;
    uint8_t              hash[32], claims[800], mac[32];
    sb_tokens_t          t;
    sb_endpoint_token_t  e, got;

    (void) state;

    make_tokens(&t, text, 0);

    e.sandbox = str("s");
    e.port = 8080;
    e.actor_type = str("agent");
    e.actor_id = str("a");
    e.row = &t.items[0];
    assert_int_equal(sb_endpoint_token_make(token, &e), SB_OK);

    memcpy(hash, t.items[0].hash, 32);
    t.items[0].hash[0] ^= 1;
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW, buf),
                     SB_DECLINED);
    memcpy(t.items[0].hash, hash, 32);
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW, buf),
                     SB_OK);

    /* signed with a key that is not ours: the form alone does not do */

    p = strchr(token, '.');
    n = 0;
    assert_int_equal(sb_unb64url(claims, &n,
                                 sb_str(token + 4, (size_t) (p - token) - 4)),
                     SB_OK);
    sb_hmac_sha256(mac, sb_str(hash, 32), sb_str(claims, n));
    sb_b64url(p + 1, mac, 32);
    assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW, buf),
                     SB_DECLINED);

    /* the longest that fits, and one byte more */

    memset(long_id, 'i', sizeof(long_id));
    max = 0;

    for (size_t i = 1; i < sizeof(long_id); i++) {
        e.sandbox = sb_str(long_id, i);

        if (sb_endpoint_token_make(token, &e) != SB_OK) {
            assert_int_equal(sb_endpoint_token_make(token, &e), SB_LIMIT);
            break;
        }

        assert_true(strlen(token) < SB_ENDPOINT_TOKEN_MAX);
        assert_int_equal(sb_endpoint_token_check(&got, &t, str(token), NOW,
                                                 buf), SB_OK);
        assert_int_equal(got.sandbox.len, i);
        max = i;
    }

    assert_in_range(max, 650, 731);

    /* lengths that do not fit their fields are refused, not cut */

    e.sandbox = str("s");
    e.actor_type = sb_str(long_id, 256);
    assert_int_equal(sb_endpoint_token_make(token, &e), SB_LIMIT);
    e.actor_type = str("agent");
    e.port = 65536 + 44772;
    assert_int_equal(sb_endpoint_token_make(token, &e), SB_LIMIT);

    sb_tokens_free(&t);
}


static void
test_like(void **state)
{
    static const char *const  no[] = {
        "", "s", "sbx_", "sbe_", "sbx_abc", "sbx_abc_", "sbe_.", "sbe_a.b",
        "sbx_abc_0123456789012345678901234567890123456789_",
        "sbx__0123456789012345678901234567890123456789012",
        "sbx_ABC_0123456789012345678901234567890123456789012",
        "sbe_.0123456789012345678901234567890123456789012",
        "SBX_abc_0123456789012345678901234567890123456789012",
        "an execd token of the user's own", "sbx sbx_ sbe_ sss",
    };

    char                 text[2][SB_TOKEN_TEXT_MAX];
    char                 token[SB_ENDPOINT_TOKEN_MAX], around[2048], *many;
    sb_tokens_t          t;
    sb_endpoint_token_t  e;

    (void) state;

    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (sb_token_like(str(no[i]))) {
            fail_msg("\"%s\" looks like a token", no[i]);
        }
    }

    make_tokens(&t, text, 0);
    memset(&e, 0, sizeof(e));
    e.sandbox = str("s");
    e.port = 1;
    e.row = &t.items[0];
    assert_int_equal(sb_endpoint_token_make(token, &e), SB_OK);

    assert_true(sb_token_like(str(text[0])));
    assert_true(sb_token_like(str(token)));
    assert_false(sb_token_like(sb_str(text[0], strlen(text[0]) - 1)));
    assert_false(sb_token_like(sb_str(token, strlen(token) - 1)));

    snprintf(around, sizeof(around), "Bearer %s", text[0]);
    assert_true(sb_token_like(str(around)));
    snprintf(around, sizeof(around), "a=sbx_; sbsbe_%s; b=sbe_", token);
    assert_true(sb_token_like(str(around)));
    snprintf(around, sizeof(around), "sbe_sbe_%s", text[0]);
    assert_true(sb_token_like(str(around)));
    snprintf(around, sizeof(around), "sbe_x.sbe_%s", token);
    assert_true(sb_token_like(str(around)));

    /* in a time that grows with the length, whatever the text: as the square
     * of it this would take half an hour */

    many = malloc(4 * 1000 * 1000);
    assert_non_null(many);

    for (size_t i = 0; i < 1000 * 1000; i++) {
        memcpy(many + 4 * i, i & 1 ? "sbx_" : "sbe_", 4);
    }

    memcpy(many, "sbx_", 4);
    assert_true(sb_token_like(sb_str(many, 4 * 1000 * 1000)));

    for (size_t i = 0; i < 1000 * 1000; i++) {
        memcpy(many + 4 * i, "sbe_", 4);
    }

    assert_false(sb_token_like(sb_str(many, 4 * 1000 * 1000)));
    free(many);

    sb_tokens_free(&t);
}


static const char *
refused(const char *body)
{
    sb_token_t   token;
    const char  *why;

    assert_int_equal(sb_token_ask(&token, str(body), NOW, &why), SB_ERROR);
    assert_non_null(why);
    assert_null(strpbrk(why, "\"\\\n"));

    return why;
}


static void
test_ask(void **state)
{
    sb_buf_t     b;
    sb_token_t   token;
    const char  *why;

    (void) state;

    memset(&b, 0, sizeof(b));
    b.max = 4096;

    assert_int_equal(sb_token_ask(&token, str("{}"), NOW, &why), SB_OK);
    assert_int_equal(token.role, SB_ROLE_OPERATOR);
    assert_int_equal(token.created_us, NOW);
    assert_int_equal(token.expires_us, 0);

    assert_int_equal(sb_token_ask(&token, str("{\"role\":\"admin\","
        "\"actor\":{\"id\":\"a\\\"b\",\"type\":null},"
        "\"sandboxes\":[\"s1\",\"b-*\"],\"expires_in\":60,"
        "\"states_actors\":true}"), NOW, &why), SB_OK);
    assert_int_equal(token.expires_us, NOW + 60000000);
    assert_string_equal(token.sandboxes, "s1,b-*");
    strcpy(token.id, "x");

    assert_int_equal(sb_token_members(&b, &token), SB_OK);
    assert_int_equal(sb_buf_add_c(&b, '\0'), SB_OK);
    assert_string_equal(b.data, "\"actor\":{\"id\":\"a\\\"b\",\"type\":null},"
        "\"created_at\":\"2026-11-29T09:00:00.000001Z\","
        "\"expires_at\":\"2026-11-29T09:01:00.000001Z\",\"id\":\"x\","
        "\"role\":\"admin\",\"sandboxes\":[\"s1\",\"b-*\"],"
        "\"states_actors\":true");

    sb_buf_free(&b);

    (void) refused("");
    (void) refused("null");
    (void) refused("{\"x\":1}");
    (void) refused("{\"role\":\"viewer\",\"role\":\"viewer\"}");
    (void) refused("{\"actor\":{\"id\":\"a\",\"id\":\"b\"}}");
    (void) refused("{\"actor\":{\"name\":\"a\"}}");
    (void) refused("{\"actor\":[]}");
    (void) refused("{\"sandboxes\":[\"a,b\"]}");
    (void) refused("{\"expires_in\":1.5}");
    (void) refused("{\"expires_in\":315360001}");
    (void) refused("{\"expires_at\":\"2026-11-29T09:00:00Z\"}");
    assert_non_null(strstr(refused("{\"expires_at\":\"2099-01-01T00:00:00Z\","
                                   "\"expires_in\":5}"), "both"));
}


static void
test_line_of(void **state)
{
    size_t       len;
    const char  *line;

    static const char  text[] = "#a 1\n \tab 2\r\na 3\nb 4";

    (void) state;

    line = sb_token_line_of(str(text), str("a"), &len);
    assert_ptr_equal(line, text + 13);
    assert_int_equal(len, 4);

    line = sb_token_line_of(str(text), str("ab"), &len);
    assert_ptr_equal(line, text + 5);
    assert_int_equal(len, 8);

    line = sb_token_line_of(str(text), str("b"), &len);
    assert_ptr_equal(line, text + 17);
    assert_int_equal(len, 3);

    assert_null(sb_token_line_of(str(text), str("c"), &len));
    assert_null(sb_token_line_of(str(text), str("3"), &len));
    assert_null(sb_token_line_of(str(""), str("a"), &len));
}


/* Whether "a" is the last admin beside "b". */
static bool
last(const char *a, const char *b)
{
    bool          is;
    char          text[512];
    unsigned      line;
    sb_tokens_t   t;
    const char   *why;

    snprintf(text, sizeof(text), "a " HASH " %s\nb " HASH " %s\n", a, b);
    assert_int_equal(sb_tokens_parse(&t, str(text), &line, &why), SB_OK);

    is = sb_token_last_admin(&t, &t.items[0], NOW);
    sb_tokens_free(&t);

    return is;
}


static void
test_last_admin(void **state)
{
    (void) state;

    assert_true(last("role=admin", "role=operator"));
    assert_true(last("role=admin", "role=admin sandboxes=s1"));
    assert_true(last("role=admin", "role=admin expires=2030-01-01T00:00:00Z"));
    assert_true(last("role=admin expires=2030-01-02T00:00:00Z",
                     "role=admin expires=2030-01-01T00:00:00Z"));

    assert_false(last("role=operator", "role=operator"));
    assert_false(last("role=admin", "role=admin"));
    assert_false(last("role=admin sandboxes=s1", "role=operator"));
    assert_false(last("role=admin expires=2030-01-01T00:00:00Z", "role=admin"));
    assert_false(last("role=admin expires=2030-01-01T00:00:00Z",
                      "role=admin expires=2030-01-02T00:00:00Z"));
    assert_false(last("role=admin expires=2020-01-01T00:00:00Z",
                      "role=viewer"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_allows),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_file_errors),
        cmocka_unit_test(test_file_bound),
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_endpoint),
        cmocka_unit_test(test_endpoint_bound),
        cmocka_unit_test(test_like),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_line_of),
        cmocka_unit_test(test_last_admin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
