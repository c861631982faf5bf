/* Secrets in texts that are to be stored. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "frame.h"
#include "secret.h"

#define NOW  1795942800000001ull    /* 2026-11-29T09:00:00.000001Z */
#define KEY  "upstream/key\"0123456789"


typedef struct {
    sb_tokens_t      tokens;
    sb_secret_set_t  set;
    sb_secrets_t     secrets;
    char             token[SB_TOKEN_TEXT_MAX];      /* live */
    char             late[SB_TOKEN_TEXT_MAX];       /* expired */
    char             forged[SB_TOKEN_TEXT_MAX];     /* of a living id */
    char             endpoint[SB_ENDPOINT_TOKEN_MAX];
} fixture_t;


static sb_str_t
str(const char *s)
{
    return sb_str(s, strlen(s));
}


static int
setup(void **state)
{
    char                *secret;
    unsigned             line;
    sb_buf_t             file = { .max = 4096 };
    fixture_t           *f = calloc(1, sizeof(fixture_t));
    sb_token_t           t;
    const char          *why;
    sb_endpoint_token_t  e;

    memset(&t, 0, sizeof(t));
    sb_token_make(&t, f->token);
    assert_int_equal(sb_token_line(&file, &t, NOW), SB_OK);

    strcpy(f->forged, f->token);
    secret = &f->forged[strlen(f->forged) - 1];
    *secret = *secret == 'A' ? 'E' : 'A';   /* another letter, of the alphabet */

    memset(&t, 0, sizeof(t));
    sb_token_make(&t, f->late);
    t.expires_us = NOW - 1;
    assert_int_equal(sb_token_line(&file, &t, NOW), SB_OK);

    assert_int_equal(sb_tokens_parse(&f->tokens, sb_str(file.data, file.len),
                                     &line, &why), SB_OK);
    sb_buf_free(&file);

    memset(&e, 0, sizeof(e));
    e.row = sb_token_check(&f->tokens, str(f->token), NOW);
    assert_non_null(e.row);
    e.sandbox = sb_lit("0d4f6a2e-sandbox");
    e.port = 44772;
    e.actor_type = sb_lit("agent");
    e.actor_id = sb_lit("bot");
    assert_int_equal(sb_endpoint_token_make(f->endpoint, &e), SB_OK);

    f->set.tokens = &f->tokens;
    f->set.key = sb_lit(KEY);
    f->set.key_json = sb_lit("upstream/key\\\"0123456789");
    f->secrets.sets = &f->set;
    f->secrets.n = 1;

    *state = f;

    return 0;
}


static int
teardown(void **state)
{
    fixture_t  *f = *state;

    sb_tokens_free(&f->tokens);
    free(f);

    return 0;
}


static size_t
mask(fixture_t *f, char *text)
{
    return sb_secrets_mask(&f->secrets, text, strlen(text), NOW);
}


static void
test_mask(void **state)
{
    char        text[4096], want[4096], *secret;
    fixture_t  *f = *state;

    snprintf(text, sizeof(text), "a %s b", f->token);
    strcpy(want, text);
    secret = strchr(want + 6, '_') + 1;
    memset(secret, '*', 43);

    assert_int_equal(mask(f, text), 1);
    assert_string_equal(text, want);

    /* also with something of the same characters behind it */

    snprintf(text, sizeof(text), "sbx_%sxyz_sbx_", f->token);
    assert_int_equal(mask(f, text), 1);
    assert_null(strstr(text, strchr(f->token + 4, '_') + 1));

    snprintf(text, sizeof(text), "%s%s", f->endpoint, f->token);
    assert_int_equal(mask(f, text), 2);
    assert_null(strstr(text, f->endpoint + 4));

    snprintf(text, sizeof(text), "%s %s", KEY, "upstream/key\\\"0123456789");
    assert_int_equal(mask(f, text), 2);
    assert_null(strstr(text, "0123"));

    /* what is no credential of this gateway, now, stays */

    snprintf(text, sizeof(text), "sbx_ %s %s upstream/key sbx_other_%043d %s",
             f->late, f->forged, 0, "sbe_AQVhZG1pbg.x");
    strcpy(want, text);
    assert_int_equal(mask(f, text), 0);
    assert_string_equal(text, want);
}


/* Sessions and tickets are not known here: what has their form is one. */
static void
test_forms(void **state)
{
    char        text[256], want[256];
    size_t      n;
    fixture_t  *f = *state;

    static const char  *forms[] = { "sbx_session_", "sbx_port_" };

    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "a=%s%043d;", forms[i], 7);
        strcpy(want, text);
        memset(want + 2 + strlen(forms[i]), '*', 43);
        assert_int_equal(mask(f, text), 1);
        assert_string_equal(text, want);

        n = (size_t) snprintf(text, sizeof(text), "a=%s%042d", forms[i], 7);
        strcpy(want, text);
        assert_int_equal(sb_secrets_open(&f->secrets, str(text)), n - 2);
        assert_int_equal(mask(f, text), 0);
        assert_string_equal(text, want);
    }

    snprintf(text, sizeof(text), "sbx_ports_%043d sbx_session_ sbx_port_a", 7);
    strcpy(want, text);
    assert_int_equal(mask(f, text), 0);
    assert_string_equal(text, want);
}


/* Who knows no token goes by the form. */
static void
test_like(void **state)
{
    char        text[4096];
    fixture_t  *f = *state;

    const char  *holds[] = { f->token, f->late, f->forged, f->endpoint, KEY };

    const char  *none[] = {
        "", "a", "sbx_", "sbe_", "sbe_.", "sbx_abc_short", "upstream/key",
        "sbe_AQVhZG1pbg", "sbe_AQVhZG1pbg.x", "sbx__0123456789"
        "0123456789012345678901234567890123456789", "msb_x"
    };

    for (size_t i = 0; i < 5; i++) {
        assert_true(sb_secrets_like(sb_lit(KEY), str(holds[i])));

        snprintf(text, sizeof(text), "sbe_sbx_ %s%s%s", i % 2 ? "sbe_" : "x",
                 holds[i], "tail");
        assert_true(sb_secrets_like(sb_lit(KEY), str(text)));
        assert_false(sb_secrets_like(sb_lit(""), sb_str(text, 20)));
    }

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(sb_secrets_like(sb_lit(KEY), str(none[i])));
    }

    assert_false(sb_secrets_like(sb_lit("short"), sb_lit("a short one")));
}


/* A key that could be a word of any text. */
static void
test_short_keys(void **state)
{
    char        text[256];
    fixture_t  *f = *state;

    f->set.key = sb_lit("passwd");
    strcpy(text, "cat /etc/passwd");
    assert_int_equal(mask(f, text), 0);

    f->set.key = sb_lit("passwords");
    strcpy(text, "xpasswords passwordsx passwords /passwords/");
    assert_int_equal(mask(f, text), 2);
    assert_string_equal(text, "xpasswords passwordsx ********* /*********/");
}


/* Forged ones of a living credential cannot make it costly: after so many the
 * rest is taken for live. */
static void
test_flood(void **state)
{
    char       *text;
    size_t      n, count;
    fixture_t  *f = *state;

    n = strlen(f->forged);
    text = malloc(300 * n + 1);

    for (size_t i = 0; i < 300; i++) {
        memcpy(text + i * n, f->forged, n);
    }

    text[300 * n] = '\0';
    count = mask(f, text);
    assert_true(count > 200 && count < 300);
    free(text);
}


/* Cut anywhere, in pieces of any size: with what may be the beginning of one
 * held back, nothing is lost and nothing slips through. */
static void
test_borders(void **state)
{
    char        text[4096], out[4096], buf[8192];
    size_t      n, len, open, size, at, used, masked;
    fixture_t  *f = *state;

    snprintf(text, sizeof(text), "s sb sbx sbx_ sbe_ %ssbx_%s\n%s %s %s sbx_late_",
             f->token, f->token, f->endpoint, KEY, f->forged);
    n = strlen(text);

    for (size = 1; size < 200; size++) {
        used = masked = len = 0;

        for (at = 0; at < n; at += size) {
            open = n - at < size ? n - at : size;
            memcpy(buf + len, text + at, open);
            len += open;
            masked += sb_secrets_mask(&f->secrets, buf, len, NOW);
            open = sb_secrets_open(&f->secrets, sb_str(buf, len));
            assert_true(open < SB_SECRET_MAX && open <= len);
            memcpy(out + used, buf, len - open);
            used += len - open;
            memmove(buf, buf + len - open, open);
            len = open;
        }

        memcpy(out + used, buf, len);
        used += len;
        out[used] = '\0';

        assert_int_equal(used, n);
        assert_int_equal(masked, 4);
        assert_null(strstr(out, strchr(f->token + 4, '_') + 1));
        assert_null(strstr(out, f->endpoint + 10));
        assert_null(strstr(out, "key\"0"));
        assert_non_null(strstr(out, f->forged));
    }
}


static void
test_open(void **state)
{
    char        text[256];
    size_t      n;
    fixture_t  *f = *state;

    assert_int_equal(sb_secrets_open(&f->secrets, sb_lit("files")), 1);
    assert_int_equal(sb_secrets_open(&f->secrets, sb_lit("")), 0);
    assert_int_equal(sb_secrets_open(&f->secrets, sb_lit("a\n")), 0);
    assert_int_equal(sb_secrets_open(&f->secrets, sb_lit("sbx_Not")), 0);
    assert_int_equal(sb_secrets_open(&f->secrets, sb_lit("sbx_who_x")), 0);
    assert_int_equal(sb_secrets_open(&f->secrets, sb_lit("x upstr")), 5);

    strcpy(text, f->token);
    n = strlen(text);
    text[n - 1] = '\0';
    assert_int_equal(sb_secrets_open(&f->secrets, str(text)), n - 1);
    assert_int_equal(sb_secrets_open(&f->secrets, str(f->forged)), 0);
}


static void
test_named(void **state)
{
    size_t  i;
    char    text[512];

    static const struct {
        const char  *text, *want;
        size_t       n;
    }  cases[] = {
        { "curl -H \"Authorization: Bearer abc.def\" http://x/",
          "curl -H \"Authorization: Bearer *******\" http://x/", 1 },
        { "curl -H 'authorization: Basic YTpi' -H 'Cookie: a=b; c=d'",
          "curl -H 'authorization: Basic ****' -H 'Cookie: **** ***'", 2 },
        { "curl -H X-Api-Key:abc http://x/", "curl -H X-Api-Key:*** http://x/",
          1 },
        { "r.get(u, headers={\"Authorization\": \"Bearer abc\", \"A\": \"b\"})",
          "r.get(u, headers={\"Authorization\": \"Bearer ***\", \"A\": \"b\"})",
          1 },
        { "{\\\"open-sandbox-api-key\\\": \\\"abc\\\"}",
          "{\\\"open-sandbox-api-key\\\": \\\"***\\\"}", 1 },
        { "GET / HTTP/1.1\nX-EXECD-ACCESS-TOKEN: a b\n\n",
          "GET / HTTP/1.1\nX-EXECD-ACCESS-TOKEN: * *\n\n", 1 },
        { "wget 'http://x/?a=1&token=abc&b=2#f'",
          "wget 'http://x/?a=1&token=***&b=2#f'", 1 },
        { "git clone https://me:abc@host:8080/x.git",
          "git clone https://me:***@host:8080/x.git", 1 },

        /* the names of variables, and what only looks like it */
        { "curl -H \"Authorization: Bearer $TOKEN\" x?token=$T",
          "curl -H \"Authorization: Bearer $TOKEN\" x?token=$T", 0 },
        { "grep -r 'Authorization:' src; TOKEN=1 token=2; a?tokens=3",
          "grep -r 'Authorization:' src; TOKEN=1 token=2; a?tokens=3", 0 },
        { "curl http://host:80/a@b ssh://x@host", "curl http://host:80/a@b "
          "ssh://x@host", 0 },
        { ":", ":", 0 }, { "=", "=", 0 }, { "://", "://", 0 },
        { "://a:@", "://a:@", 0 }, { "cookie:", "cookie:", 0 },
        { "?token=", "?token=", 0 }, { "\\\":", "\\\":", 0 },
        { "Authorization: Bearer ", "Authorization: ****** ", 1 },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(text, cases[i].text);
        assert_int_equal(sb_secrets_named(text, strlen(text)), cases[i].n);
        assert_string_equal(text, cases[i].want);
    }
}


static void
test_frame(void **state)
{
    char               mem[4096], text[1024];
    size_t             n, need;
    sb_str_t           v;
    fixture_t         *f = *state;
    sb_frame_t         frame;
    sb_frame_writer_t  w;

    static const uint8_t  op[16] = { 1 };

    snprintf(text, sizeof(text), "echo %s", f->token);

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_FACTS, 0, 0, op, NOW);
    sb_frame_put(&w, SB_T_COMMAND, str(text));
    sb_frame_put(&w, SB_T_NEW_SANDBOX, str(f->token));
    sb_frame_put(&w, SB_T_CWD, sb_lit("/x?token=a"));
    n = sb_frame_end(&w);

    assert_int_equal(sb_secrets_frame(&f->secrets, mem, n, NOW), 1);
    assert_int_equal(sb_frame_read(&frame, mem, n, &need), SB_OK);

    assert_true(sb_field_get(&frame, SB_T_COMMAND, &v));
    assert_int_equal(v.len, strlen(text));
    assert_null(memmem(v.data, v.len, strchr(f->token + 4, '_') + 1, 8));

    /* a name by which files are found is left alone, and so is a path */

    assert_true(sb_field_get(&frame, SB_T_NEW_SANDBOX, &v));
    assert_memory_equal(v.data, f->token, v.len);
    assert_true(sb_field_get(&frame, SB_T_CWD, &v));
    assert_memory_equal(v.data, "/x?token=a", v.len);

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_FACTS, 0, 0, op, NOW);
    sb_frame_put(&w, SB_T_COMMAND, sb_lit("curl 'x?token=abc'"));
    n = sb_frame_end(&w);
    assert_int_equal(sb_secrets_frame(&f->secrets, mem, n, NOW), 1);
    assert_non_null(memmem(mem, n, "?token=***'", 11));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_mask, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_like, setup, teardown),
        cmocka_unit_test_setup_teardown(test_short_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_borders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open, setup, teardown),
        cmocka_unit_test_setup_teardown(test_frame, setup, teardown),
        cmocka_unit_test(test_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
