#include "path.h"
#include "digest.h"

/* The longest history directory name that is the id itself. */
#define SB_HISTORY_DIR_MAX  128


static size_t sb_utf8_char(const unsigned char *p, size_t n);


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


bool
sb_utf8_valid(sb_str_t s)
{
    size_t                n, left;
    uint64_t              word;
    const unsigned char  *p;

    p = (const unsigned char *) s.data;
    left = s.len;

    while (left) {

        /* nearly all text is ASCII: eight bytes at once */

        if (left >= 8) {
            memcpy(&word, p, 8);

            if ((word & 0x8080808080808080ull) == 0) {
                p += 8;
                left -= 8;
                continue;
            }
        }

        n = sb_utf8_char(p, left);
        if (n == 0) {
            return false;
        }

        p += n;
        left -= n;
    }

    return true;
}


size_t
sb_utf8_cut(sb_str_t s, size_t n)
{
    size_t         i;
    unsigned char  c;

    if (s.len <= n) {
        return s.len;
    }

    /* back to the lead byte of the character that the cut would split; what
     * is no UTF-8 has no borders and is cut where asked */

    for (i = 0; i < 3 && i < n; i++) {
        if (((unsigned char) s.data[n - i] & 0xc0) != 0x80) {
            break;
        }
    }

    if (i == 0) {
        return n;
    }

    c = (unsigned char) s.data[n - i];

    if ((c >= 0xf0 && c < 0xf8 && i < 4)
        || (c >= 0xe0 && c < 0xf0 && i < 3)
        || (c >= 0xc0 && c < 0xe0 && i < 2))
    {
        return n - i;
    }

    return n;
}


void
sb_history_dir(char dst[130], sb_str_t sandbox)
{
    bool     plain;
    char     c;
    uint8_t  hash[32];

    plain = sandbox.len > 0 && sandbox.len <= SB_HISTORY_DIR_MAX;

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


/* Length of the valid character at p, or 0. */
static size_t
sb_utf8_char(const unsigned char *p, size_t n)
{
    unsigned char  lo, hi;

    if (p[0] < 0x80) {
        return 1;
    }

    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        return n >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    }

    if ((p[0] & 0xf0) == 0xe0) {
        lo = p[0] == 0xe0 ? 0xa0 : 0x80;    /* overlong */
        hi = p[0] == 0xed ? 0x9f : 0xbf;    /* surrogates */

        return n >= 3 && p[1] >= lo && p[1] <= hi && (p[2] & 0xc0) == 0x80
               ? 3 : 0;
    }

    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        lo = p[0] == 0xf0 ? 0x90 : 0x80;    /* overlong */
        hi = p[0] == 0xf4 ? 0x8f : 0xbf;    /* above U+10FFFF */

        return n >= 4 && p[1] >= lo && p[1] <= hi && (p[2] & 0xc0) == 0x80
               && (p[3] & 0xc0) == 0x80
               ? 4 : 0;
    }

    return 0;
}
