/*
 * Secrets in hostile texts: masked in place, nothing but "*" is ever put, and a
 * text that comes in pieces (ngx_http_sandbox_secret_begin(), _end()) is stored
 * like one that comes at once, but for the first bytes of a secret: too few to
 * tell anything, so that who watches need not wait (SB_SECRET_SHOWN).
 *
 * The first two bytes say how it is cut.  Bytes 1 to 6 stand for what no text
 * would hold by chance: a token, an endpoint token, upstream's key, a forged
 * token, the beginnings of them.
 */

#include "digest.h"
#include "secret.h"

#include <stdio.h>
#include <stdlib.h>

#define FUZZ_MAX    8192
#define FUZZ_NOW    1795942800000001ull
#define FUZZ_TOKEN  "sbx_fuzz_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
#define FUZZ_FORGED "sbx_fuzz_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPR"
#define FUZZ_KEY    "upstream/key\"0123456789"
#define FUZZ_PUTS   40          /* of those, at most: behind 64 forged ones all
                                   that looks like it is masked */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sb_tokens_t      tokens;
static sb_secret_set_t  set;
static sb_secrets_t     secrets = { &set, 1 };
static char             endpoint[SB_ENDPOINT_TOKEN_MAX];


static void
fuzz_make(void)
{
    char                 line[160], hex[65];
    uint8_t              hash[32];
    unsigned             bad;
    const char          *why;
    sb_endpoint_token_t  e;

    sb_sha256(hash, sb_lit(FUZZ_TOKEN));
    sb_hex(hex, hash, sizeof(hash));
    (void) snprintf(line, sizeof(line), "fuzz %s role=admin\n", hex);

    if (sb_tokens_parse(&tokens, sb_str(line, strlen(line)), &bad, &why)
        != SB_OK)
    {
        abort();
    }

    memset(&e, 0, sizeof(e));
    e.row = sb_token_check(&tokens, sb_lit(FUZZ_TOKEN), FUZZ_NOW);
    e.sandbox = sb_lit("box");
    e.port = 44772;

    if (e.row == NULL || sb_endpoint_token_make(endpoint, &e) != SB_OK) {
        abort();
    }

    set.tokens = &tokens;
    set.key = sb_lit(FUZZ_KEY);
    set.key_json = sb_lit("upstream/key\\\"0123456789");
}


static size_t
fuzz_text(char *text, const uint8_t *data, size_t size)
{
    size_t       n, len, puts;
    const char  *put;

    n = 0;
    puts = 0;

    for (size_t i = 0; i < size && n < FUZZ_MAX - SB_ENDPOINT_TOKEN_MAX; i++) {

        if (data[i] == 0 || data[i] > 6 || puts == FUZZ_PUTS) {
            text[n++] = (char) data[i];
            continue;
        }

        put = data[i] == 1 || data[i] == 5 ? FUZZ_TOKEN
              : data[i] == 2 || data[i] == 6 ? endpoint
              : data[i] == 3 ? FUZZ_KEY : FUZZ_FORGED;
        len = strlen(put);

        if (data[i] > 4) {
            /* so much of it */
            len = i + 1 < size ? data[++i] % len : 0;
        }

        memcpy(text + n, put, len);
        n += len;
        puts++;
    }

    return n;
}


/* Nothing changes but to "*". */
static void
fuzz_changed(const char *was, const char *is, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is[i] != was[i] && is[i] != '*') {
            abort();
        }
    }
}


/* As the module does with output: what may be going to be a secret is kept back,
 * but for a few bytes. */
static size_t
fuzz_split(char *out, const char *text, size_t n, unsigned cut, unsigned step)
{
    char    *buf;
    size_t   at, len, kept, shown, open, until, used, piece;

    static char  tail[SB_SECRET_MAX];

    kept = 0;
    shown = 0;
    used = 0;

    for (at = 0; at < n || kept; at += piece) {
        cut = cut * step + 7;
        piece = 1 + cut % 97;
        piece = piece < n - at ? piece : n - at;
        len = kept + piece;

        /* of its own size, so that nobody looks behind it */
        buf = malloc(len ? len : 1);
        if (buf == NULL) {
            abort();
        }

        memcpy(buf, tail, kept);
        memcpy(buf + kept, text + at, piece);
        (void) sb_secrets_mask(&secrets, buf, len, FUZZ_NOW);

        open = at + piece == n ? 0 : sb_secrets_open(&secrets,
                                                     sb_str(buf, len));
        if (open >= SB_SECRET_MAX || open > len) {
            abort();
        }

        until = open < SB_SECRET_SHOWN ? len : len - open;
        until = until < shown ? shown : until;
        memcpy(out + used, buf + shown, until - shown);
        used += until - shown;

        memcpy(tail, buf + len - open, open);
        kept = open;
        shown = until > len - open ? until - (len - open) : 0;
        free(buf);

        if (at + piece == n) {
            break;
        }
    }

    return used;
}


/* Is what came in pieces masked as at once? */
static bool
fuzz_same(const char *out, const char *whole, const char *text, size_t n)
{
    size_t  shown = 0;

    for (size_t i = 0; i < n; i++) {

        if (out[i] == whole[i]) {
            if (shown && whole[i] != '*') {
                return false;
            }

            shown = 0;
            continue;
        }

        if (whole[i] != '*' || out[i] != text[i]
            || ++shown >= SB_SECRET_SHOWN)
        {
            return false;
        }
    }

    return shown == 0;
}


/* A frame with such texts stays one, with fields of the same lengths. */
static void
fuzz_frame(const char *text, size_t n)
{
    char               *frame;
    size_t              len, size;
    uint8_t             type;
    uint16_t            tag;
    sb_str_t            fields, v;
    sb_frame_writer_t   w;

    static const uint8_t   id[16];
    static const uint16_t  tags[] = { SB_T_COMMAND, SB_T_REQUEST, SB_T_DATA };

    size = 3 * n + 256;
    frame = malloc(size);
    if (frame == NULL) {
        abort();
    }

    sb_frame_begin(&w, frame, size, SB_F_FACTS, 0, 1, id, FUZZ_NOW);

    for (size_t i = 0; i < 3; i++) {
        sb_frame_put(&w, tags[i], sb_str(text, n));
    }

    len = sb_frame_end(&w);

    if (len == 0) {
        abort();
    }

    (void) sb_secrets_frame(&secrets, frame, len, FUZZ_NOW);

    if (sb_frame_fields(frame, len, &type, &fields) != SB_OK) {
        abort();
    }

    for (size_t i = 0; i < 3; i++) {
        if (!sb_field_next(&fields, &tag, &v) || tag != tags[i] || v.len != n
            || (tag == SB_T_DATA && memcmp(v.data, text, n) != 0))
        {
            abort();
        }

        fuzz_changed(text, v.data, n);

        if (tag != SB_T_DATA && sb_secrets_like(set.key, v)
            && sb_secrets_mask(&secrets, (char *) (uintptr_t) v.data, v.len,
                               FUZZ_NOW))
        {
            /* there was one more */
            abort();
        }
    }

    free(frame);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char     *whole, *named;
    size_t    n, count;

    static char  text[FUZZ_MAX], out[FUZZ_MAX];

    if (tokens.n == 0) {
        fuzz_make();
    }

    if (size < 2) {
        return 0;
    }

    n = fuzz_text(text, data + 2, size - 2);
    whole = malloc(n ? n : 1);
    named = malloc(n ? n : 1);

    if (whole == NULL || named == NULL) {
        abort();
    }

    memcpy(whole, text, n);
    count = sb_secrets_mask(&secrets, whole, n, FUZZ_NOW);
    fuzz_changed(text, whole, n);

    if ((count != 0) != (memcmp(text, whole, n) != 0)
        || sb_secrets_mask(&secrets, whole, n, FUZZ_NOW) != 0)
    {
        abort();
    }

    if (fuzz_split(out, text, n, data[0], 2u * data[1] + 1) != n
        || !fuzz_same(out, whole, text, n))
    {
        abort();
    }

    memcpy(named, text, n);
    (void) sb_secrets_named(named, n);
    fuzz_changed(text, named, n);

    fuzz_frame(text, n);

    free(whole);
    free(named);

    return 0;
}
