#include "sniff.h"


#define SB_SNIFF_END      "PK\5\6"
#define SB_SNIFF_END_LEN  4

static const struct {
    sb_str_t    magic;
    size_t      at;
    sb_sniff_e  kind;
} marks[] = {
    { { "PK\3\4", 4 }, 0, SB_SNIFF_ZIP },
    { { "PK\5\6", 4 }, 0, SB_SNIFF_ZIP },
    { { "PK\7\10PK\3\4", 8 }, 0, SB_SNIFF_ZIP },
    { { "PK00PK\3\4", 8 }, 0, SB_SNIFF_ZIP },
    { { "\x1f\x8b\x08", 3 }, 0, SB_SNIFF_FILTER },
    { { "1AY&SY", 6 }, 4, SB_SNIFF_FILTER },                    /* bzip2 */
    { { "\x17\x72\x45\x38\x50\x90", 6 }, 4, SB_SNIFF_FILTER },
    { { "\xfd" "7zXZ\0", 6 }, 0, SB_SNIFF_FILTER },
    { { "\x28\xb5\x2f\xfd", 4 }, 0, SB_SNIFF_FILTER },
    { { "\x04\x22\x4d\x18", 4 }, 0, SB_SNIFF_FILTER },
    { { "\x02\x21\x4c\x18", 4 }, 0, SB_SNIFF_FILTER },
    { { "LZIP", 4 }, 0, SB_SNIFF_FILTER },
    { { "\x89LZO\0\r\n\x1a\n", 9 }, 0, SB_SNIFF_FILTER },
    { { "\xed\xab\xee\xdb", 4 }, 0, SB_SNIFF_FILTER },          /* rpm */
    { { "\x1f\x9d", 2 }, 0, SB_SNIFF_WEAK },                    /* compress */
    { { "\x5d\0\0", 3 }, 0, SB_SNIFF_WEAK },                    /* lzma */
    { { "7z\xbc\xaf\x27\x1c", 6 }, 0, SB_SNIFF_OTHER },
    { { "Rar!\x1a\x07", 6 }, 0, SB_SNIFF_OTHER },
    { { "MSCF\0\0\0\0", 8 }, 0, SB_SNIFF_OTHER },
    { { "xar!", 4 }, 0, SB_SNIFF_OTHER },
    { { "!<arch>\n", 8 }, 0, SB_SNIFF_OTHER },
    { { "070701", 6 }, 0, SB_SNIFF_WEAK },                      /* cpio */
    { { "070702", 6 }, 0, SB_SNIFF_WEAK },
    { { "070707", 6 }, 0, SB_SNIFF_WEAK },
    { { "\xc7\x71", 2 }, 0, SB_SNIFF_WEAK },
    { { "\x71\xc7", 2 }, 0, SB_SNIFF_WEAK },
    { { "-lh", 3 }, 2, SB_SNIFF_WEAK },
    { { "-lz", 3 }, 2, SB_SNIFF_WEAK },
};


static void
sb_sniff_end(sb_sniff_t *s, const char *p, size_t n)
{
    const char  *end = p + n;

    /* no byte of the mark but its first is a "P" */

    while (s->tail && p < end) {

        if (*p == SB_SNIFF_END[s->tail]) {
            p++;

            if (++s->tail == SB_SNIFF_END_LEN) {
                s->directory = true;
                return;
            }

        } else {
            s->tail = 0;
        }
    }

    if (p == end) {
        return;
    }

    if (memmem(p, (size_t) (end - p), SB_SNIFF_END, SB_SNIFF_END_LEN)) {
        s->directory = true;
        return;
    }

    for (n = SB_SNIFF_END_LEN - 1; n; n--) {
        if ((size_t) (end - p) >= n
            && memcmp(end - n, SB_SNIFF_END, n) == 0)
        {
            s->tail = n;
            return;
        }
    }
}


void
sb_sniff_feed(sb_sniff_t *s, const char *p, size_t n)
{
    size_t  part;

    if (n == 0) {
        return;
    }

    part = SB_SNIFF_HEAD - s->len;
    part = n < part ? n : part;

    if (part) {
        memcpy(s->head + s->len, p, part);
        s->len += part;
    }

    if (!s->directory) {
        sb_sniff_end(s, p, n);
    }
}


/* An octal number with blanks or zeros before it, as a tar has its check sum. */
static bool
sb_sniff_octal(const char *p, size_t n, long *value)
{
    size_t  i = 0, digits;

    while (i < n && p[i] == ' ') {
        i++;
    }

    for (*value = 0, digits = 0; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
        *value = *value * 8 + (p[i] - '0');
        digits++;
    }

    return digits && (i == n || p[i] == ' ' || p[i] == '\0');
}


/* The sum of a tar's first block, of signed or unsigned bytes: both are in use.
 */
static bool
sb_sniff_tar(const sb_sniff_t *s)
{
    long    want, plain = 0, sign = 0;
    size_t  i;

    if (s->len < SB_SNIFF_HEAD || s->head[0] == '\0'
        || !sb_sniff_octal(s->head + 148, 8, &want))
    {
        /* of "ustar" with a wrong sum something else is told */
        return s->len >= 265 && memcmp(s->head + 257, "ustar", 5) == 0;
    }

    for (i = 0; i < SB_SNIFF_HEAD; i++) {
        plain += i >= 148 && i < 156 ? ' ' : (unsigned char) s->head[i];
        sign += i >= 148 && i < 156 ? ' ' : (signed char) s->head[i];
    }

    return want == plain || want == sign
           || memcmp(s->head + 257, "ustar", 5) == 0;
}


sb_sniff_e
sb_sniff_begins(const sb_sniff_t *s)
{
    size_t  i;

    for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {

        if (s->len >= marks[i].at + marks[i].magic.len
            && memcmp(s->head + marks[i].at, marks[i].magic.data,
                      marks[i].magic.len) == 0
            && (marks[i].at != 4 || memcmp(s->head, "BZh", 3) == 0))
        {
            if (marks[i].kind == SB_SNIFF_WEAK && sb_sniff_tar(s)) {
                break;
            }

            return marks[i].kind;
        }
    }

    return sb_sniff_tar(s) ? SB_SNIFF_TAR : SB_SNIFF_NONE;
}


bool
sb_sniff_archive(const sb_sniff_t *s)
{
    return s->directory || sb_sniff_begins(s) != SB_SNIFF_NONE;
}
