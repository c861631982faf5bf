/*
 * The low-level functions of libcrypto: they keep their state where we say and
 * allocate nothing, so that a digest of a token cannot fail, and cost less than
 * the EVP ones, which libcrypto would rather have called.
 */

#define OPENSSL_SUPPRESS_DEPRECATED

#include "digest.h"

#include <endian.h>
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define SB_CRC32C_SSE42  1
#endif

#define SB_CRC32C_POLY   0x82f63b78u    /* reflected */
#define SB_SHA256_BLOCK  64


struct sb_sha256_s {
    SHA256_CTX  ctx;
};


static uint32_t sb_crc32c_table[8][256];
#if (SB_CRC32C_SSE42)
static bool     sb_crc32c_sse42;
#endif


sb_sha256_t *
sb_sha256_new(void)
{
    sb_sha256_t  *h;

    h = malloc(sizeof(sb_sha256_t));

    if (h) {
        (void) SHA256_Init(&h->ctx);
    }

    return h;
}


void
sb_sha256_add(sb_sha256_t *h, const void *p, size_t n)
{
    if (n) {
        (void) SHA256_Update(&h->ctx, p, n);
    }
}


void
sb_sha256_final(sb_sha256_t *h, uint8_t out[32])
{
    (void) SHA256_Final(out, &h->ctx);
    free(h);
}


void
sb_sha256_free(sb_sha256_t *h)
{
    free(h);
}


void
sb_sha256(uint8_t out[32], sb_str_t data)
{
    sb_sha256_parts(out, &data, 1);
}


void
sb_sha256_parts(uint8_t out[32], const sb_str_t *parts, size_t n)
{
    SHA256_CTX  ctx;

    (void) SHA256_Init(&ctx);

    for (size_t i = 0; i < n; i++) {
        if (parts[i].len) {
            (void) SHA256_Update(&ctx, parts[i].data, parts[i].len);
        }
    }

    (void) SHA256_Final(out, &ctx);
}


/* By hand (RFC 2104) on top of the digest: libcrypto's HMAC() allocates. */
void
sb_hmac_sha256(uint8_t out[32], sb_str_t key, sb_str_t data)
{
    uint8_t     pad[SB_SHA256_BLOCK];
    SHA256_CTX  ctx;

    memset(pad, 0, sizeof(pad));

    if (key.len > sizeof(pad)) {
        sb_sha256(pad, key);

    } else if (key.len) {
        memcpy(pad, key.data, key.len);
    }

    for (size_t i = 0; i < sizeof(pad); i++) {
        pad[i] ^= 0x36;
    }

    (void) SHA256_Init(&ctx);
    (void) SHA256_Update(&ctx, pad, sizeof(pad));

    if (data.len) {
        (void) SHA256_Update(&ctx, data.data, data.len);
    }

    (void) SHA256_Final(out, &ctx);

    for (size_t i = 0; i < sizeof(pad); i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }

    (void) SHA256_Init(&ctx);
    (void) SHA256_Update(&ctx, pad, sizeof(pad));
    (void) SHA256_Update(&ctx, out, 32);
    (void) SHA256_Final(out, &ctx);

    OPENSSL_cleanse(pad, sizeof(pad));
    OPENSSL_cleanse(&ctx, sizeof(ctx));
}


__attribute__((constructor))
static void
sb_crc32c_init(void)
{
    uint32_t  c;

    for (unsigned i = 0; i < 256; i++) {
        c = i;

        for (unsigned k = 0; k < 8; k++) {
            c = (c & 1) ? (c >> 1) ^ SB_CRC32C_POLY : c >> 1;
        }

        sb_crc32c_table[0][i] = c;
    }

    for (unsigned i = 0; i < 256; i++) {
        for (unsigned t = 1; t < 8; t++) {
            c = sb_crc32c_table[t - 1][i];
            sb_crc32c_table[t][i] = (c >> 8) ^ sb_crc32c_table[0][c & 0xff];
        }
    }

#if (SB_CRC32C_SSE42)
    __builtin_cpu_init();
    sb_crc32c_sse42 = __builtin_cpu_supports("sse4.2") != 0;
#endif
}


#if (SB_CRC32C_SSE42)

__attribute__((target("sse4.2")))
static uint32_t
sb_crc32c_hardware(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t  c, word;

    c = crc;

    for ( /* void */ ; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        c = _mm_crc32_u64(c, word);
    }

    for ( /* void */ ; n; n--, p++) {
        c = _mm_crc32_u8((uint32_t) c, *p);
    }

    return (uint32_t) c;
}

#endif


/* Eight bytes a step, one table each; byte order does not matter. */
uint32_t
sb_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
    uint32_t        c;
    const uint8_t  *p;

    c = ~crc;
    p = data;

    for ( /* void */ ; n >= 8; n -= 8, p += 8) {
        c ^= (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16
             | (uint32_t) p[3] << 24;

        c = sb_crc32c_table[7][c & 0xff]
            ^ sb_crc32c_table[6][c >> 8 & 0xff]
            ^ sb_crc32c_table[5][c >> 16 & 0xff]
            ^ sb_crc32c_table[4][c >> 24]
            ^ sb_crc32c_table[3][p[4]]
            ^ sb_crc32c_table[2][p[5]]
            ^ sb_crc32c_table[1][p[6]]
            ^ sb_crc32c_table[0][p[7]];
    }

    for ( /* void */ ; n; n--, p++) {
        c = (c >> 8) ^ sb_crc32c_table[0][(c ^ *p) & 0xff];
    }

    return ~c;
}


uint32_t
sb_crc32c(uint32_t crc, const void *p, size_t n)
{
#if (SB_CRC32C_SSE42)
    if (sb_crc32c_sse42) {
        return ~sb_crc32c_hardware(~crc, p, n);
    }
#endif

    return sb_crc32c_portable(crc, p, n);
}


/* The digits of four bytes: the halves of each are spread over a word, and all
 * become digits at once. */
static void
sb_hex_four(char *dst, const uint8_t *p)
{
    uint32_t  four;
    uint64_t  x;

    memcpy(&four, p, 4);

    x = le32toh(four);
    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x >> 4 | x << 8) & 0x0f0f0f0f0f0f0f0full;

    x += 0x3030303030303030ull
         + ((x + 0x0606060606060606ull) >> 4 & 0x0101010101010101ull)
           * ('a' - '0' - 10);

    x = htole64(x);
    memcpy(dst, &x, 8);
}


void
sb_hex(char *dst, const uint8_t *p, size_t n)
{
    static const char  digits[] = "0123456789abcdef";

    for ( /* void */ ; n >= 4; n -= 4, p += 4, dst += 8) {
        sb_hex_four(dst, p);
    }

    for (size_t i = 0; i < n; i++) {
        *dst++ = digits[p[i] >> 4];
        *dst++ = digits[p[i] & 15];
    }

    *dst = '\0';
}


sb_rc_t
sb_unhex(uint8_t *dst, size_t n, sb_str_t hex)
{
    int  hi, lo;

    if (hex.len % 2 || hex.len / 2 != n) {
        return SB_ERROR;
    }

    for (size_t i = 0; i < n; i++) {
        hi = sb_hex_value(hex.data[2 * i]);
        lo = sb_hex_value(hex.data[2 * i + 1]);

        if (hi < 0 || lo < 0) {
            return SB_ERROR;
        }

        dst[i] = (uint8_t) (hi << 4 | lo);
    }

    return SB_OK;
}


size_t
sb_b64url(char *dst, const uint8_t *p, size_t n)
{
    static const char  alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    char      *d;
    unsigned   bits;
    uint32_t   v;

    d = dst;
    v = 0;
    bits = 0;

    for (size_t i = 0; i < n; i++) {
        v = v << 8 | p[i];
        bits += 8;

        while (bits >= 6) {
            bits -= 6;
            *d++ = alphabet[v >> bits & 63];
        }
    }

    if (bits) {
        *d++ = alphabet[v << (6 - bits) & 63];
    }

    *d = '\0';

    return (size_t) (d - dst);
}


static int
sb_b64url_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    return c == '-' ? 62 : c == '_' ? 63 : -1;
}


sb_rc_t
sb_unb64url(uint8_t *dst, size_t *n, sb_str_t text)
{
    int        value;
    size_t     len;
    unsigned   bits;
    uint32_t   v;

    if (text.len % 4 == 1) {
        return SB_ERROR;
    }

    v = 0;
    len = 0;
    bits = 0;

    for (size_t i = 0; i < text.len; i++) {
        value = sb_b64url_value(text.data[i]);
        if (value < 0) {
            return SB_ERROR;
        }

        v = v << 6 | (uint32_t) value;
        bits += 6;

        if (bits >= 8) {
            bits -= 8;
            dst[len++] = (uint8_t) (v >> bits & 0xff);
        }
    }

    /* one value, one text: bits that carry nothing must be zero */

    if (v & ((1u << bits) - 1)) {
        return SB_ERROR;
    }

    *n = len;

    return SB_OK;
}


bool
sb_equal_ct(const void *a, const void *b, size_t n)
{
    uint64_t        x, y;
    const uint8_t  *p = a, *q = b;

    /* which is never looked at before the end: nothing may be left out */
    volatile uint64_t  differs = 0;

    for ( /* void */ ; n >= 8; n -= 8, p += 8, q += 8) {
        memcpy(&x, p, 8);
        memcpy(&y, q, 8);
        differs |= x ^ y;
    }

    for ( /* void */ ; n; n--) {
        differs |= *p++ ^ *q++;
    }

    return differs == 0;
}
