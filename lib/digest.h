/* SHA-256, HMAC, CRC-32C, hex and base64url; the digests are libcrypto's. */

#ifndef SB_DIGEST_H_INCLUDED
#define SB_DIGEST_H_INCLUDED

#include "sb.h"

typedef struct sb_sha256_s  sb_sha256_t;

/* Streaming SHA-256.  new returns NULL without memory; final writes 32 bytes
 * and frees; free is for giving up early (NULL is fine). */
sb_sha256_t *sb_sha256_new(void);
void sb_sha256_add(sb_sha256_t *h, const void *p, size_t n);
void sb_sha256_final(sb_sha256_t *h, uint8_t out[32]);
void sb_sha256_free(sb_sha256_t *h);

/* One shot; they cannot fail.  parts: of n texts, one behind the other. */
void sb_sha256(uint8_t out[32], sb_str_t data);
void sb_sha256_parts(uint8_t out[32], const sb_str_t *parts, size_t n);
void sb_hmac_sha256(uint8_t out[32], sb_str_t key, sb_str_t data);

/* CRC-32C (Castagnoli), the journal's checksum.  crc is 0 at first. */
uint32_t sb_crc32c(uint32_t crc, const void *p, size_t n);
/* The same without the processor's instruction (what other machines run). */
uint32_t sb_crc32c_portable(uint32_t crc, const void *p, size_t n);

/* Lower-case hex; dst gets 2n bytes and a NUL.  sb_unhex() takes either case
 * and wants exactly 2n digits, else SB_ERROR. */
void sb_hex(char *dst, const uint8_t *p, size_t n);
sb_rc_t sb_unhex(uint8_t *dst, size_t n, sb_str_t hex);

/* Base64url without padding.  dst of encode: (n * 4 + 2) / 3 + 1 bytes, NUL-
 * terminated; dst of decode: len * 3 / 4 bytes.  Decode is strict: SB_ERROR for
 * other characters, an impossible length or unused bits that are not zero. */
size_t sb_b64url(char *dst, const uint8_t *p, size_t n);
sb_rc_t sb_unb64url(uint8_t *dst, size_t *n, sb_str_t text);

/* Equal in constant time. */
bool sb_equal_ct(const void *a, const void *b, size_t n);

#endif /* SB_DIGEST_H_INCLUDED */
