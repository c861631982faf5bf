#include "lock.h"
#include "path.h"


size_t
sb_lock_path(char *dst, sb_str_t path)
{
    bool         absolute;
    size_t       n, out, base, floor;
    const char  *p, *end, *slash;

    absolute = path.len && path.data[0] == '/';
    out = 0;
    floor = 0;      /* what ".." does not take away */
    p = path.data;
    end = p + path.len;

    while (p < end) {
        slash = memchr(p, '/', (size_t) (end - p));
        n = (size_t) ((slash ? slash : end) - p);

        if (n == 2 && p[0] == '.' && p[1] == '.' && (absolute || out > floor)) {

            for (base = out; base > floor && dst[base - 1] != '/'; base--) {
                /* void */
            }

            out = base > floor ? base - 1 : base;

        } else if (n && !(n == 1 && p[0] == '.')) {

            if (absolute || out) {
                dst[out++] = '/';
            }

            /* dst may be the path itself */
            memmove(dst + out, p, n);
            out += n;

            if (n == 2 && p[0] == '.' && p[1] == '.') {
                floor = out;
            }
        }

        p += n + 1;
    }

    if (out == 0) {
        dst[out++] = absolute ? '/' : '.';
    }

    return out;
}


/* Decodes a path; false: a "%" without its digits. */
static bool
sb_lock_decode(char *dst, size_t *len, sb_str_t text)
{
    int     high, low;
    size_t  i, out;

    out = 0;

    for (i = 0; i < text.len; i++) {

        if (text.data[i] != '%') {
            dst[out++] = text.data[i];
            continue;
        }

        high = i + 2 < text.len ? sb_hex_value(text.data[i + 1]) : -1;
        low = high >= 0 ? sb_hex_value(text.data[i + 2]) : -1;

        if (low < 0) {
            return false;
        }

        dst[out++] = (char) (high * 16 + low);
        i += 2;
    }

    *len = out;

    return true;
}


static sb_str_t
sb_lock_trim(sb_str_t s)
{
    while (s.len && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s.data++;
        s.len--;
    }

    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t')) {
        s.len--;
    }

    return s;
}


/* One "read:/path" of the list; NULL, or what is wrong with it. */
static const char *
sb_lock_item(sb_lock_key_t *key, sb_str_t item, char **mem)
{
    char     *p;
    size_t    len;
    unsigned  flags;

    static const sb_str_t  read = { "read:", 5 };
    static const sb_str_t  write = { "write:", 6 };

    if (item.len > read.len && memcmp(item.data, read.data, read.len) == 0) {
        key->write = false;
        item.data += read.len;
        item.len -= read.len;

    } else if (item.len > write.len
               && memcmp(item.data, write.data, write.len) == 0)
    {
        key->write = true;
        item.data += write.len;
        item.len -= write.len;

    } else {
        return "X-Sandbox-Lock must be a list of read:/PATH and write:/PATH, "
               "with commas between them.";
    }

    p = *mem;

    if (!sb_lock_decode(p, &len, item)) {
        return "A path in X-Sandbox-Lock has a % that is not followed by two "
               "hexadecimal digits; write %25 for one.";
    }

    flags = sb_path_flags(sb_str(p, len));

    if (flags & ~(unsigned) SB_PATH_BACKSLASH) {
        return "A path in X-Sandbox-Lock must be absolute, in UTF-8 and "
               "without \"..\", \"$\" and control characters.";
    }

    /* what is written is never longer than what was read of it */
    len = sb_lock_path(p, sb_str(p, len));
    key->path = sb_str(p, len);
    *mem = p + len;

    return NULL;
}


sb_rc_t
sb_lock_read(sb_lock_key_t keys[SB_LOCK_KEYS], size_t *n, sb_str_t header,
    char *mem, const char **reason)
{
    size_t       len;
    sb_str_t     rest, item;
    const char  *comma;

    *n = 0;

    if (header.len > SB_LOCK_HEADER) {
        *reason = "X-Sandbox-Lock is longer than 16384 bytes.";
        return SB_LIMIT;
    }

    for (rest = header; /* void */ ; /* void */ ) {

        comma = rest.len ? memchr(rest.data, ',', rest.len) : NULL;
        len = comma ? (size_t) (comma - rest.data) : rest.len;
        item = sb_lock_trim(sb_str(rest.data, len));

        if (*n == SB_LOCK_KEYS) {
            *reason = "X-Sandbox-Lock names more than 64 paths.";
            return SB_LIMIT;
        }

        *reason = sb_lock_item(&keys[*n], item, &mem);

        if (*reason) {
            return SB_AMBIGUOUS;
        }

        if (keys[*n].path.len > SB_LOCK_PATH) {
            *reason = "A path in X-Sandbox-Lock is longer than 4096 bytes.";
            return SB_LIMIT;
        }

        (*n)++;

        if (comma == NULL) {
            return SB_OK;
        }

        rest.data += len + 1;
        rest.len -= len + 1;
    }
}
