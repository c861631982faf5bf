#include "path.h"
#include "digest.h"
#include "utf8.h"

/* The longest history directory name that is the id itself. */
#define SB_HISTORY_DIR_MAX  128


/* Bytes of a path that are looked at, nearly none of most. */
static const bool  sb_path_odd[256] = {
    [0 ... 0x1f] = true, [0x7f] = true, ['/'] = true, ['\\'] = true,
    ['$'] = true
};


int32_t
sb_mode(int64_t number)
{
    int64_t  n;

    if (number < 0 || number > 7777) {
        return SB_MODE_ODD;
    }

    for (n = number; n; n /= 10) {
        if (n % 10 > 7) {
            return SB_MODE_ODD;
        }
    }

    return (int32_t) number;
}


unsigned
sb_path_flags(sb_str_t path)
{
    size_t         start;
    unsigned       flags;
    unsigned char  c;

    if (path.len == 0) {
        return SB_PATH_EMPTY;
    }

    flags = 0;
    start = 0;

    if (path.data[0] != '/') {
        flags |= SB_PATH_RELATIVE;
    }

    if (path.data[0] == '~') {
        flags |= SB_PATH_EXPANDS;
    }

    for (size_t i = 0; i <= path.len; i++) {

        if (i < path.len && !sb_path_odd[(unsigned char) path.data[i]]) {
            continue;
        }

        if (i == path.len || path.data[i] == '/' || path.data[i] == '\\') {
            if (i - start == 2 && memcmp(path.data + start, "..", 2) == 0) {
                flags |= SB_PATH_CLIMBS;
            }

            start = i + 1;

            if (i == path.len) {
                break;
            }
        }

        c = (unsigned char) path.data[i];

        switch (c) {

        case '$':
            flags |= SB_PATH_EXPANDS;
            break;

        case '\\':
            flags |= SB_PATH_BACKSLASH;
            break;

        case '\0':
            flags |= SB_PATH_NUL|SB_PATH_CONTROL;
            break;

        default:
            if (c < 0x20 || c == 0x7f) {
                flags |= SB_PATH_CONTROL;
            }
        }
    }

    if (!sb_utf8_valid(path)) {
        flags |= SB_PATH_BAD_UTF8;
    }

    return flags;
}


sb_rc_t
sb_path_normal(char *dst, size_t *len, sb_str_t path)
{
    size_t       n, out;
    const char  *p, *end, *slash;

    if (path.len == 0 || path.data[0] != '/'
        || memchr(path.data, '\0', path.len) != NULL)
    {
        return SB_DECLINED;
    }

    out = 0;
    p = path.data;
    end = p + path.len;

    while (p < end) {
        slash = memchr(p, '/', (size_t) (end - p));
        n = (size_t) ((slash ? slash : end) - p);

        if (n == 2 && p[0] == '.' && p[1] == '.') {
            return SB_DECLINED;
        }

        if (n && !(n == 1 && p[0] == '.')) {
            dst[out++] = '/';
            memcpy(dst + out, p, n);
            out += n;
        }

        p += n + 1;
    }

    if (out == 0) {
        dst[out++] = '/';
    }

    dst[out] = '\0';
    *len = out;

    return SB_OK;
}


/* Names that mean something else below HISTORY_PATH. */
static bool
sb_history_reserved(sb_str_t id)
{
    static const sb_str_t  heads = { "heads.jsonl", sizeof("heads.jsonl") - 1 };

    if (sb_eq(id, sb_lit("archive"))) {
        return true;
    }

    if (id.len >= heads.len && memcmp(id.data, heads.data, heads.len) == 0) {
        return true;
    }

    /* what another id may be hashed to */
    return id.len == 66 && memcmp(id.data, "x-", 2) == 0;
}


void
sb_history_dir(char dst[130], sb_str_t sandbox)
{
    bool     plain;
    char     c;
    uint8_t  hash[32];

    plain = sandbox.len > 0 && sandbox.len <= SB_HISTORY_DIR_MAX
            && !sb_history_reserved(sandbox);

    for (size_t i = 0; plain && i < sandbox.len; i++) {
        c = sandbox.data[i];

        plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                || (c >= '0' && c <= '9')
                || (i > 0 && (c == '.' || c == '_' || c == '-'));
    }

    if (plain) {
        memcpy(dst, sandbox.data, sandbox.len);
        dst[sandbox.len] = '\0';
        return;
    }

    sb_sha256(hash, sandbox);
    memcpy(dst, "x-", 2);
    sb_hex(dst + 2, hash, sizeof(hash));
}
