/*
 * The key that heads are signed with: Ed25519, DATA/keys/history.key (PEM, of
 * the helper's user only) and history.pub (PEM, for auditors).
 */

#ifndef KEYS_H_INCLUDED
#define KEYS_H_INCLUDED

#include "sb.h"

#define KEYS_PRIVATE    "history.key"
#define KEYS_PUBLIC     "history.pub"
#define KEYS_SIGNATURE  64
#define KEYS_NAME_LEN   16      /* hex digits */

typedef struct keys_s  keys_t;

/*
 * The key of a directory, made when there is none; the public file is written
 * again when it is missing.  NULL after a sentence in `why`.
 */
keys_t *keys_open(int dirfd, char *why, size_t size);
/* The key of a file, private or public.  NULL after a sentence in `why`. */
keys_t *keys_read(const char *path, char *why, size_t size);
void keys_free(keys_t *k);

/* The first 16 hex digits of the SHA-256 of the public key, NUL-terminated. */
const char *keys_name(const keys_t *k);

/* False when it cannot be done: no private key, no memory. */
bool keys_sign(const keys_t *k, sb_str_t text,
    uint8_t signature[KEYS_SIGNATURE]);
bool keys_verify(const keys_t *k, sb_str_t text,
    const uint8_t signature[KEYS_SIGNATURE]);

/*
 * The same of a JSON object that has its signature in it, as the member
 * "signature" (base64url), which is not its first: what is signed is the object
 * without.  It begins at out->data + from, the member is put in at out->data +
 * at.
 */
bool keys_sign_member(const keys_t *k, sb_buf_t *out, size_t from, size_t at);
bool keys_verify_member(const keys_t *k, sb_str_t object);

#endif /* KEYS_H_INCLUDED */
