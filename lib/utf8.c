#include "utf8.h"


size_t
sb_utf8_char(const void *text, size_t n)
{
    uint8_t         lo, hi;
    const uint8_t  *p = text;

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


uint32_t
sb_utf8_code(const void *text, size_t len)
{
    size_t          i;
    uint32_t        code;
    const uint8_t  *p = text;

    if (len == 1) {
        return p[0];
    }

    code = p[0] & (0xffu >> (len + 1));

    for (i = 1; i < len; i++) {
        code = code << 6 | (p[i] & 0x3fu);
    }

    return code;
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

        if (left < 8 && s.len >= 8) {
            /* the end of it together with some of what was looked at */
            memcpy(&word, p + left - 8, 8);

            if ((word & 0x8080808080808080ull) == 0) {
                return true;
            }
        }

        /* nearly all text is ASCII: eight bytes at once */

        if (left >= 8) {
            memcpy(&word, p, 8);

            if ((word & 0x8080808080808080ull) == 0) {
                p += 8;
                left -= 8;
                continue;
            }
        }

        if (*p < 0x80) {
            p++;
            left--;
            continue;
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


size_t
sb_utf8_clean(char *dst, sb_str_t s)
{
    size_t  i, n, len;

    len = 0;

    for (i = 0; i < s.len; i += n) {
        n = s.data[i] ? sb_utf8_char(s.data + i, s.len - i) : 0;

        if (n) {
            memcpy(dst + len, s.data + i, n);
            len += n;

        } else {
            memcpy(dst + len, "\xef\xbf\xbd", 3);
            len += 3;
            n = 1;
        }
    }

    return len;
}
