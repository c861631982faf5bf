#include "keys.h"

#include "digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define KEYS_B64     ((KEYS_SIGNATURE * 8 + 5) / 6)     /* of a signature */
#define KEYS_MEMBER  (sizeof(keys_mark) - 1 + KEYS_B64 + 1)

static const char  keys_mark[] = ",\"signature\":\"";

struct keys_s {
    EVP_PKEY  *key;
    bool       private;
    char       name[KEYS_NAME_LEN + 1];
};


static keys_t *
keys_new(EVP_PKEY *key, bool private)
{
    size_t    n;
    char      hex[65];
    uint8_t   raw[32], digest[32];
    keys_t   *k;

    n = sizeof(raw);
    k = calloc(1, sizeof(keys_t));

    if (k == NULL || EVP_PKEY_get_raw_public_key(key, raw, &n) != 1
        || n != sizeof(raw))
    {
        EVP_PKEY_free(key);
        free(k);
        return NULL;
    }

    sb_sha256(digest, sb_str(raw, n));
    sb_hex(hex, digest, sizeof(digest));
    memcpy(k->name, hex, KEYS_NAME_LEN);

    k->key = key;
    k->private = private;

    return k;
}


void
keys_free(keys_t *k)
{
    if (k) {
        EVP_PKEY_free(k->key);
        free(k);
    }
}


const char *
keys_name(const keys_t *k)
{
    return k->name;
}


/* A PEM file of either kind. */
static keys_t *
keys_load(FILE *f)
{
    bool       private;
    EVP_PKEY  *key;

    private = true;
    key = PEM_read_PrivateKey(f, NULL, NULL, NULL);

    if (key == NULL) {
        rewind(f);
        private = false;
        key = PEM_read_PUBKEY(f, NULL, NULL, NULL);
    }

    if (key && EVP_PKEY_get_id(key) != EVP_PKEY_ED25519) {
        EVP_PKEY_free(key);
        key = NULL;
    }

    return key ? keys_new(key, private) : NULL;
}


keys_t *
keys_read(const char *path, char *why, size_t size)
{
    FILE    *f;
    keys_t  *k;

    f = fopen(path, "re");

    if (f == NULL) {
        (void) snprintf(why, size, "The key %s cannot be opened: %s.", path,
                        strerror(errno));
        return NULL;
    }

    k = keys_load(f);
    (void) fclose(f);

    if (k == NULL) {
        (void) snprintf(why, size, "%s holds no Ed25519 key in PEM form.",
                        path);
    }

    return k;
}


/* Writes a whole file beside its name, then puts it there. */
static bool
keys_write(int dirfd, const char *name, mode_t mode, const EVP_PKEY *key,
    bool private)
{
    int    fd;
    bool   ok;
    FILE  *f;
    char   new[64];

    (void) snprintf(new, sizeof(new), "%s.new", name);

    fd = openat(dirfd, new, O_WRONLY|O_CREAT|O_TRUNC|O_NOFOLLOW|O_CLOEXEC,
                mode);
    if (fd == -1) {
        return false;
    }

    f = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL) {
        close(fd);
        return false;
    }

    ok = private ? PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1
                 : PEM_write_PUBKEY(f, key) == 1;

    ok = fflush(f) == 0 && ok && fsync(fd) == 0;
    ok = fclose(f) == 0 && ok;

    if (!ok || renameat(dirfd, new, dirfd, name) != 0) {
        (void) unlinkat(dirfd, new, 0);
        return false;
    }

    return fsync(dirfd) == 0;
}


keys_t *
keys_open(int dirfd, char *why, size_t size)
{
    int        fd;
    FILE      *f;
    keys_t    *k;
    EVP_PKEY  *key;

    fd = openat(dirfd, KEYS_PRIVATE, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1 && errno != ENOENT) {
        (void) snprintf(why, size, "keys/" KEYS_PRIVATE " cannot be opened:"
                        " %s.", strerror(errno));
        return NULL;
    }

    if (fd != -1) {
        f = fdopen(fd, "r");
        k = f ? keys_load(f) : NULL;

        if (f) {
            (void) fclose(f);

        } else {
            close(fd);
        }

        if (k == NULL || !k->private) {
            (void) snprintf(why, size, "keys/" KEYS_PRIVATE " holds no private"
                            " Ed25519 key; restore it, or move it away for a"
                            " new one.");
            keys_free(k);
            return NULL;
        }

    } else {
        key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        k = key ? keys_new(key, true) : NULL;

        if (k == NULL || !keys_write(dirfd, KEYS_PRIVATE, 0600, k->key, true))
        {
            (void) snprintf(why, size, "keys/" KEYS_PRIVATE " cannot be made:"
                            " %s.", strerror(errno));
            keys_free(k);
            return NULL;
        }
    }

    if (fd == -1 || faccessat(dirfd, KEYS_PUBLIC, F_OK, AT_SYMLINK_NOFOLLOW)
                    != 0)
    {
        if (!keys_write(dirfd, KEYS_PUBLIC, 0644, k->key, false)) {
            (void) snprintf(why, size, "keys/" KEYS_PUBLIC " cannot be"
                            " written: %s.", strerror(errno));
            keys_free(k);
            return NULL;
        }
    }

    return k;
}


bool
keys_sign(const keys_t *k, sb_str_t text, uint8_t signature[KEYS_SIGNATURE])
{
    bool         ok;
    size_t       n;
    EVP_MD_CTX  *ctx;

    n = KEYS_SIGNATURE;
    ctx = k->private ? EVP_MD_CTX_new() : NULL;

    ok = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->key) == 1
         && EVP_DigestSign(ctx, signature, &n, (const uint8_t *) text.data,
                           text.len) == 1
         && n == KEYS_SIGNATURE;

    EVP_MD_CTX_free(ctx);

    return ok;
}


bool
keys_verify(const keys_t *k, sb_str_t text,
    const uint8_t signature[KEYS_SIGNATURE])
{
    bool         ok;
    EVP_MD_CTX  *ctx;

    ctx = EVP_MD_CTX_new();

    ok = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, k->key) == 1
         && EVP_DigestVerify(ctx, signature, KEYS_SIGNATURE,
                             (const uint8_t *) text.data, text.len) == 1;

    EVP_MD_CTX_free(ctx);

    return ok;
}


bool
keys_sign_member(const keys_t *k, sb_buf_t *out, size_t from, size_t at)
{
    char     text[KEYS_MEMBER + 1];
    size_t   len;
    uint8_t  signature[KEYS_SIGNATURE];

    if (!keys_sign(k, sb_str(out->data + from, out->len - from), signature)) {
        return false;
    }

    len = sizeof(keys_mark) - 1;
    memcpy(text, keys_mark, len);
    (void) sb_b64url(text + len, signature, KEYS_SIGNATURE);
    text[KEYS_MEMBER - 1] = '"';

    /* room for it, then what follows makes way */
    if (sb_buf_add(out, text, KEYS_MEMBER) != SB_OK) {
        return false;
    }

    memmove(out->data + at + KEYS_MEMBER, out->data + at,
            out->len - KEYS_MEMBER - at);
    memcpy(out->data + at, text, KEYS_MEMBER);

    return true;
}


bool
keys_verify_member(const keys_t *k, sb_str_t object)
{
    bool         right;
    size_t       n, before;
    uint8_t      signature[KEYS_SIGNATURE + 8];
    sb_buf_t     text;
    const char  *p;

    /* no string has it in it: there its quotes are escaped */
    p = memmem(object.data, object.len, keys_mark, sizeof(keys_mark) - 1);

    if (p == NULL) {
        return false;
    }

    before = (size_t) (p - object.data);

    if (object.len < before + KEYS_MEMBER || p[KEYS_MEMBER - 1] != '"'
        || sb_unb64url(signature, &n, sb_str(p + sizeof(keys_mark) - 1,
                                             KEYS_B64)) != SB_OK
        || n != KEYS_SIGNATURE)
    {
        return false;
    }

    memset(&text, 0, sizeof(text));
    text.max = object.len;

    right = sb_buf_add(&text, object.data, before) == SB_OK
            && sb_buf_add(&text, p + KEYS_MEMBER,
                          object.len - before - KEYS_MEMBER) == SB_OK
            && keys_verify(k, sb_str(text.data, text.len), signature);

    sb_buf_free(&text);

    return right;
}
