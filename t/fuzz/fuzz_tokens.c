/*
 * Tokens: the bytes are a token file, a presented token, an endpoint token and
 * a header value in turn.  What was parsed must come out as written again, and
 * nothing but what was made with the key may be taken.
 */

#include <stdio.h>
#include <stdlib.h>

#include "digest.h"
#include "token.h"

#define NOW  1795942800000001ull

#define check(what)  if (!(what)) fail(#what)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
fail(const char *what)
{
    fprintf(stderr, "not so: %s\n", what);
    abort();
}


/* Every row written and parsed again is the same row. */
static void
check_file(sb_str_t text)
{
    sb_rc_t      rc;
    sb_buf_t     b;
    unsigned     line, again;
    sb_tokens_t  t, u;
    const char  *why;

    rc = sb_tokens_parse(&t, text, &line, &why);

    check((rc == SB_ERROR) == (why != NULL));

    if (rc != SB_OK) {
        check(line > 0 && t.items == NULL && t.n == 0);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = SIZE_MAX / 2;

    for (size_t i = 0; i < t.n; i++) {
        check(sb_token_line(&b, &t.items[i], NOW) == SB_OK);
        check(i == 0 || strcmp(t.items[i - 1].id, t.items[i].id) < 0);
    }

    check(sb_tokens_parse(&u, sb_str(b.data, b.len), &again, &why) == SB_OK);
    check(u.n == t.n);

    for (size_t i = 0; i < t.n; i++) {
        if (t.items[i].created_us == 0) {
            t.items[i].created_us = NOW;
        }
    }

    if (t.n) {
        check(memcmp(u.items, t.items, t.n * sizeof(sb_token_t)) == 0);
    }

    sb_tokens_free(&u);
    sb_tokens_free(&t);
    sb_buf_free(&b);
}


/* What is asked for can be written or is refused, and reads as it was asked. */
static void
check_ask(sb_str_t text)
{
    sb_rc_t      rc;
    sb_buf_t     b;
    unsigned     line;
    sb_token_t   token;
    sb_tokens_t  t;
    const char  *why;

    rc = sb_token_ask(&token, text, NOW, &why);
    check((rc == SB_ERROR) == (why != NULL) || rc == SB_NOMEM);

    if (rc != SB_OK) {
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = 8192;
    strcpy(token.id, "asked");

    if (sb_token_line(&b, &token, NOW) == SB_OK) {
        check(sb_tokens_parse(&t, sb_str(b.data, b.len), &line, &why) == SB_OK);
        check(t.n == 1 && memcmp(&t.items[0], &token, sizeof(token)) == 0);
        sb_tokens_free(&t);
    }

    b.len = 0;
    check(sb_token_members(&b, &token) == SB_OK);
    sb_buf_free(&b);
}


/* A presented text against one known row. */
static void
check_presented(sb_str_t text)
{
    static const char  secret[] =
        "sbx_seed_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    char                 again[SB_ENDPOINT_TOKEN_MAX];
    char                 buf[SB_ENDPOINT_TOKEN_MAX];
    sb_rc_t              rc;
    sb_token_t           row;
    sb_tokens_t          t;
    const sb_token_t    *found;
    sb_code_t            code;
    sb_endpoint_token_t  e;

    memset(&row, 0, sizeof(row));
    strcpy(row.id, "seed");
    sb_sha256(row.hash, sb_str(secret, sizeof(secret) - 1));
    t.items = &row;
    t.n = 1;

    found = sb_token_check(&t, text, NOW);
    check((found != NULL)
          == sb_eq(text, sb_str(secret, sizeof(secret) - 1)));

    rc = sb_endpoint_token_check(&e, &t, text, NOW, buf);

    if (rc == SB_OK) {
        check(e.row == &row);
        check(sb_endpoint_token_make(again, &e) == SB_OK);
        check(sb_eq(text, sb_str(again, strlen(again))));

    } else {
        check(rc == SB_DECLINED && e.row == NULL && e.sandbox.len == 0);
    }

    if (sb_code_check(&code, &t, text, NOW) == SB_OK) {
        check(found == NULL && rc != SB_OK);
        check(code.row == &row && code.role <= row.role
              && code.made_us <= NOW);
        check(sb_token_like(text));

    } else {
        check(code.row == NULL);
    }

    if (found != NULL || rc == SB_OK) {
        check(sb_token_like(text));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sb_str_t  text;

    text = sb_str(data, size);

    check_file(text);
    check_ask(text);
    (void) sb_token_like(text);

    /* editors end a seed with a newline */

    if (text.len && text.data[text.len - 1] == '\n') {
        text.len--;
    }

    check_presented(text);

    return 0;
}
