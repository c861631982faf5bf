/* What is signed with the hash of a token: endpoint tokens, and codes that sign
 * in once; and how tokens look. */

#include "token.h"
#include "digest.h"
#include "id.h"

/* Base64url of the 32 bytes of a secret or a MAC. */
#define SB_TOKEN_TEXT       43
/* "sbx_" or "sbe_", a character and a separator, and that */
#define SB_TOKEN_LEAST      (4 + 2 + SB_TOKEN_TEXT)

/* "sbe_" CLAIMS "." MAC; the claims are
 *
 *   u8   1
 *   u8   length, id of the credential
 *   u16  length, sandbox
 *   u16  port
 *   u8   length, actor type
 *   u16  length, actor id
 *
 * with the lower byte first. */
#define SB_ENDPOINT_FORM    1
#define SB_ENDPOINT_MAC     32
#define SB_ENDPOINT_TEXT    (SB_ENDPOINT_TOKEN_MAX - 1 - 4 - 1 - SB_TOKEN_TEXT)
#define SB_ENDPOINT_CLAIMS  (SB_ENDPOINT_TEXT * 3 / 4)


/* A code: u8 2, the id as above, u8 role, u32 and u32 of the time in us, and as
 * many random bytes */
#define SB_CODE_FORM        2
#define SB_CODE_NONCE       16

#define SB_ENDPOINT_KEY     "sandbox endpoint token 1"
#define SB_CODE_KEY         "sandbox console code 1"


typedef struct {
    uint8_t  *data;
    size_t    len;
    size_t    max;
    bool      failed;
} sb_claims_t;


static const sb_str_t  sb_token_prefix = { "sbx_", 4 };
static const sb_str_t  sb_endpoint_prefix = { "sbe_", 4 };


static void sb_endpoint_mac(uint8_t mac[SB_ENDPOINT_MAC],
    const sb_token_t *row, const char *use, const uint8_t *claims, size_t n);
static void sb_endpoint_text(char *p, const sb_token_t *row, const char *use,
    const sb_claims_t *c);
static bool sb_endpoint_open(sb_claims_t *c, uint8_t given[SB_ENDPOINT_MAC],
    sb_str_t text);
static void sb_claims_put(sb_claims_t *c, unsigned width, uint64_t value);
static void sb_claims_put_str(sb_claims_t *c, unsigned width, sb_str_t s);
static uint32_t sb_claims_get(sb_claims_t *c, unsigned width);
static sb_str_t sb_claims_get_str(sb_claims_t *c, unsigned width);
static bool sb_token_at(sb_str_t s);
static bool sb_endpoint_at(sb_str_t s, size_t i);
static size_t sb_token_run(sb_str_t s, size_t i);


sb_rc_t
sb_endpoint_token_make(char *text, const sb_endpoint_token_t *e)
{
    uint8_t      claims[SB_ENDPOINT_CLAIMS];
    sb_claims_t  c;

    memset(&c, 0, sizeof(sb_claims_t));
    c.data = claims;
    c.max = sizeof(claims);

    sb_claims_put(&c, 1, SB_ENDPOINT_FORM);
    sb_claims_put_str(&c, 1, sb_str(e->row->id, strlen(e->row->id)));
    sb_claims_put_str(&c, 2, e->sandbox);
    sb_claims_put(&c, 2, e->port);
    sb_claims_put_str(&c, 1, e->actor_type);
    sb_claims_put_str(&c, 2, e->actor_id);

    if (c.failed) {
        return SB_LIMIT;
    }

    sb_endpoint_text(text, e->row, SB_ENDPOINT_KEY, &c);

    return SB_OK;
}


sb_rc_t
sb_endpoint_token_check(sb_endpoint_token_t *e, const sb_tokens_t *t,
    sb_str_t text, uint64_t now_us, char *buf)
{
    uint8_t      given[SB_ENDPOINT_MAC], mac[SB_ENDPOINT_MAC];
    uint32_t     form;
    sb_str_t     id;
    sb_claims_t  c;

    memset(e, 0, sizeof(sb_endpoint_token_t));
    memset(&c, 0, sizeof(sb_claims_t));
    c.data = (uint8_t *) buf;

    if (!sb_endpoint_open(&c, given, text)) {
        return SB_DECLINED;
    }

    form = sb_claims_get(&c, 1);
    id = sb_claims_get_str(&c, 1);
    e->sandbox = sb_claims_get_str(&c, 2);
    e->port = sb_claims_get(&c, 2);
    e->actor_type = sb_claims_get_str(&c, 1);
    e->actor_id = sb_claims_get_str(&c, 2);

    if (!c.failed && form == SB_ENDPOINT_FORM && c.len == c.max) {
        e->row = sb_token_find(t, id, now_us);
    }

    if (e->row != NULL) {
        sb_endpoint_mac(mac, e->row, SB_ENDPOINT_KEY, c.data, c.max);

        if (sb_equal_ct(mac, given, sizeof(mac))) {
            return SB_OK;
        }
    }

    memset(e, 0, sizeof(sb_endpoint_token_t));

    return SB_DECLINED;
}


void
sb_code_make(char *text, const sb_code_t *code)
{
    uint8_t      claims[SB_ENDPOINT_CLAIMS], nonce[SB_CODE_NONCE];
    sb_claims_t  c;

    memset(&c, 0, sizeof(sb_claims_t));
    c.data = claims;
    c.max = sizeof(claims);

    sb_random(nonce, sizeof(nonce));

    sb_claims_put(&c, 1, SB_CODE_FORM);
    sb_claims_put_str(&c, 1, sb_str(code->row->id, strlen(code->row->id)));
    sb_claims_put(&c, 1, code->role);
    sb_claims_put(&c, 4, code->made_us & UINT32_MAX);
    sb_claims_put(&c, 4, code->made_us >> 32);
    sb_claims_put_str(&c, 1, sb_str(nonce, sizeof(nonce)));

    sb_endpoint_text(text, code->row, SB_CODE_KEY, &c);
}


sb_rc_t
sb_code_check(sb_code_t *code, const sb_tokens_t *t, sb_str_t text,
    uint64_t now_us)
{
    uint8_t      buf[SB_ENDPOINT_TOKEN_MAX];
    uint8_t      given[SB_ENDPOINT_MAC], mac[SB_ENDPOINT_MAC];
    uint32_t     form, role;
    sb_str_t     id, nonce;
    sb_claims_t  c;

    memset(code, 0, sizeof(sb_code_t));
    memset(&c, 0, sizeof(sb_claims_t));
    c.data = buf;

    if (!sb_endpoint_open(&c, given, text)) {
        return SB_DECLINED;
    }

    form = sb_claims_get(&c, 1);
    id = sb_claims_get_str(&c, 1);
    role = sb_claims_get(&c, 1);
    code->made_us = sb_claims_get(&c, 4);
    code->made_us |= (uint64_t) sb_claims_get(&c, 4) << 32;
    nonce = sb_claims_get_str(&c, 1);

    if (!c.failed && form == SB_CODE_FORM && c.len == c.max
        && nonce.len == SB_CODE_NONCE && role <= SB_ROLE_ADMIN
        && code->made_us <= now_us
        && now_us - code->made_us <= SB_CODE_VALID_US)
    {
        code->row = sb_token_find(t, id, now_us);
    }

    if (code->row != NULL) {
        sb_endpoint_mac(mac, code->row, SB_CODE_KEY, c.data, c.max);

        if (sb_equal_ct(mac, given, sizeof(mac))) {
            code->role = role < code->row->role ? (sb_role_e) role
                                                : code->row->role;
            return SB_OK;
        }
    }

    memset(code, 0, sizeof(sb_code_t));

    return SB_DECLINED;
}


bool
sb_token_like(sb_str_t text)
{
    sb_str_t     s;
    const char  *p, *end, *mark, *claims;

    if (text.len < SB_TOKEN_LEAST) {
        return false;
    }

    end = text.data + text.len;
    claims = text.data;

    /* each has three letters before its first "_", of which texts have few */

    for (mark = text.data + 3;
         (mark = memchr(mark, '_', (size_t) (end - mark))) != NULL;
         mark++)
    {
        p = mark - 3;
        s = sb_str(p, (size_t) (end - p));

        if (sb_token_at(s)) {
            return true;
        }

        /* claims that begin within others end where these do: they are looked
         * at once, else a text of many beginnings takes the square of it */

        if (p >= claims && s.len > sb_endpoint_prefix.len
            && memcmp(p, sb_endpoint_prefix.data, sb_endpoint_prefix.len) == 0)
        {
            claims = p + sb_endpoint_prefix.len;
            claims += sb_token_run(s, sb_endpoint_prefix.len);

            if (sb_endpoint_at(s, (size_t) (claims - p))) {
                return true;
            }
        }
    }

    return false;
}


static void
sb_endpoint_mac(uint8_t mac[SB_ENDPOINT_MAC], const sb_token_t *row,
    const char *use, const uint8_t *claims, size_t n)
{
    uint8_t  key[32];

    sb_hmac_sha256(key, sb_str(row->hash, sizeof(row->hash)),
                   sb_str(use, strlen(use)));
    sb_hmac_sha256(mac, sb_str(key, sizeof(key)), sb_str(claims, n));
}


static void
sb_endpoint_text(char *p, const sb_token_t *row, const char *use,
    const sb_claims_t *c)
{
    uint8_t  mac[SB_ENDPOINT_MAC];

    sb_endpoint_mac(mac, row, use, c->data, c->len);

    memcpy(p, sb_endpoint_prefix.data, sb_endpoint_prefix.len);
    p += sb_endpoint_prefix.len;
    p += sb_b64url(p, c->data, c->len);
    *p++ = '.';
    (void) sb_b64url(p, mac, sizeof(mac));
}


/* Takes a text apart; nothing is checked yet but its form. */
static bool
sb_endpoint_open(sb_claims_t *c, uint8_t given[SB_ENDPOINT_MAC], sb_str_t text)
{
    size_t       n, len;
    const char  *dot;

    n = sb_endpoint_prefix.len;

    if (text.len <= n || text.len >= SB_ENDPOINT_TOKEN_MAX
        || memcmp(text.data, sb_endpoint_prefix.data, n) != 0)
    {
        return false;
    }

    dot = memchr(text.data + n, '.', text.len - n);

    return dot != NULL
           && text.data + text.len - dot - 1 == SB_TOKEN_TEXT
           && sb_unb64url(given, &len, sb_str(dot + 1, SB_TOKEN_TEXT)) == SB_OK
           && sb_unb64url(c->data, &c->max,
                          sb_str(text.data + n, (size_t) (dot - text.data) - n))
              == SB_OK;
}


static void
sb_claims_put(sb_claims_t *c, unsigned width, uint64_t value)
{
    if (c->max - c->len < width || value >> (8 * width)) {
        c->failed = true;
        return;
    }

    for (unsigned i = 0; i < width; i++) {
        c->data[c->len++] = (uint8_t) (value >> (8 * i));
    }
}


static void
sb_claims_put_str(sb_claims_t *c, unsigned width, sb_str_t s)
{
    sb_claims_put(c, width, s.len);

    if (c->failed || c->max - c->len < s.len) {
        c->failed = true;
        return;
    }

    if (s.len) {
        memcpy(c->data + c->len, s.data, s.len);
        c->len += s.len;
    }
}


/* Reading: max is where the claims end, len how much of them is read. */
static uint32_t
sb_claims_get(sb_claims_t *c, unsigned width)
{
    uint32_t  value;

    if (c->failed || c->max - c->len < width) {
        c->failed = true;
        return 0;
    }

    value = 0;

    for (unsigned i = 0; i < width; i++) {
        value |= (uint32_t) c->data[c->len++] << (8 * i);
    }

    return value;
}


static sb_str_t
sb_claims_get_str(sb_claims_t *c, unsigned width)
{
    size_t    n;
    sb_str_t  s;

    n = sb_claims_get(c, width);

    if (c->failed || c->max - c->len < n) {
        c->failed = true;
        return sb_str(NULL, 0);
    }

    s = sb_str(c->data + c->len, n);
    c->len += n;

    return s;
}


/* Does s begin with something of the form of a token? */
static bool
sb_token_at(sb_str_t s)
{
    size_t  i;

    i = sb_token_prefix.len;

    if (s.len <= i || memcmp(s.data, sb_token_prefix.data, i) != 0) {
        return false;
    }

    while (i < s.len
           && ((s.data[i] >= 'a' && s.data[i] <= 'z')
               || (s.data[i] >= '0' && s.data[i] <= '9')))
    {
        i++;
    }

    return i > sb_token_prefix.len && i < s.len && s.data[i] == '_'
           && sb_token_run(s, i + 1) >= SB_TOKEN_TEXT;
}


/* Do the claims of an endpoint token that s begins with end at i? */
static bool
sb_endpoint_at(sb_str_t s, size_t i)
{
    return i > sb_endpoint_prefix.len && i < s.len && s.data[i] == '.'
           && sb_token_run(s, i + 1) >= SB_TOKEN_TEXT;
}


/* How many base64url characters stand at i. */
static size_t
sb_token_run(sb_str_t s, size_t i)
{
    char    c;
    size_t  start;

    for (start = i; i < s.len; i++) {
        c = s.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9') || c == '-' || c == '_'))
        {
            break;
        }
    }

    return i - start;
}
