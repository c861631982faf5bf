#include "history_text.h"

#include "utf8.h"

#include <stdarg.h>


/* Room for one character's text: "\u{10ffff}". */
#define HISTORY_UNIT  12


typedef struct {
    uint32_t  from;
    uint32_t  to;
} history_range_t;


static const history_range_t  history_hidden[] = {
    { 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad },
    { 0x061c, 0x061c }, { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
    { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
    { 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xd800, 0xf8ff },
    { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb },
    { 0xfffe, 0xffff }, { 0x1d173, 0x1d17a }, { 0xe0000, 0x10ffff }
};

static const history_range_t  history_wide[] = {
    { 0x1100, 0x115e }, { 0x231a, 0x231b }, { 0x2329, 0x232a },
    { 0x23e9, 0x23ec }, { 0x23f0, 0x23f0 }, { 0x23f3, 0x23f3 },
    { 0x25fd, 0x25fe }, { 0x2614, 0x2615 }, { 0x2648, 0x2653 },
    { 0x267f, 0x267f }, { 0x2693, 0x2693 }, { 0x26a1, 0x26a1 },
    { 0x26aa, 0x26ab }, { 0x26bd, 0x26be }, { 0x26c4, 0x26c5 },
    { 0x26ce, 0x26ce }, { 0x26d4, 0x26d4 }, { 0x26ea, 0x26ea },
    { 0x26f2, 0x26f3 }, { 0x26f5, 0x26f5 }, { 0x26fa, 0x26fa },
    { 0x26fd, 0x26fd }, { 0x2705, 0x2705 }, { 0x270a, 0x270b },
    { 0x2728, 0x2728 }, { 0x274c, 0x274c }, { 0x274e, 0x274e },
    { 0x2753, 0x2755 }, { 0x2757, 0x2757 }, { 0x2795, 0x2797 },
    { 0x27b0, 0x27b0 }, { 0x27bf, 0x27bf }, { 0x2b1b, 0x2b1c },
    { 0x2b50, 0x2b50 }, { 0x2b55, 0x2b55 }, { 0x2e80, 0x303e },
    { 0x3041, 0x33ff }, { 0x3400, 0x4dbf }, { 0x4e00, 0xa4cf },
    { 0xa960, 0xa97f }, { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff },
    { 0xfe10, 0xfe19 }, { 0xfe30, 0xfe6f }, { 0xff01, 0xff60 },
    { 0xffe0, 0xffe6 }, { 0x16fe0, 0x18aff }, { 0x1b000, 0x1b2ff },
    { 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f18e },
    { 0x1f191, 0x1f19a }, { 0x1f200, 0x1f320 }, { 0x1f32d, 0x1f64f },
    { 0x1f680, 0x1f6ff }, { 0x1f7e0, 0x1f7eb }, { 0x1f900, 0x1f9ff },
    { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd }
};

static const history_range_t  history_combining[] = {
    { 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },
    { 0x0610, 0x061a }, { 0x064b, 0x065f }, { 0x0670, 0x0670 },
    { 0x06d6, 0x06dc }, { 0x06df, 0x06e4 }, { 0x0e31, 0x0e31 },
    { 0x0e34, 0x0e3a }, { 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff },
    { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f },
    { 0xfe20, 0xfe2f }
};

#define history_in(ranges, c)                                                \
    history_in_ranges(ranges, sizeof(ranges) / sizeof(ranges[0]), c)


static bool
history_in_ranges(const history_range_t *ranges, size_t n, uint32_t c)
{
    size_t  low, high, middle;

    low = 0;
    high = n;

    while (low < high) {
        middle = (low + high) / 2;

        if (c > ranges[middle].to) {
            low = middle + 1;

        } else if (c < ranges[middle].from) {
            high = middle;

        } else {
            return true;
        }
    }

    return false;
}


/* The character at s, its length in bytes in *len; false: bad UTF-8 (then
 * *len is 1). */
static bool
history_decode(sb_str_t s, uint32_t *c, size_t *len)
{
    *len = sb_utf8_char(s.data, s.len);

    if (*len == 0) {
        *len = 1;
        return false;
    }

    *c = sb_utf8_code(s.data, *len);

    return true;
}


/* The safe text of the first character of s; returns the bytes taken. */
static size_t
history_unit(sb_str_t s, char unit[HISTORY_UNIT], size_t *size,
    unsigned *width)
{
    int       n;
    size_t    len;
    uint32_t  c;

    if (!history_decode(s, &c, &len)) {
        n = snprintf(unit, HISTORY_UNIT, "\\x%02x", (unsigned char) s.data[0]);

    } else if (!history_in(history_hidden, c)) {
        memcpy(unit, s.data, len);
        *size = len;
        *width = history_in(history_combining, c) ? 0
                 : history_in(history_wide, c) ? 2 : 1;
        return len;

    } else if (c == '\n' || c == '\r' || c == '\t') {
        n = snprintf(unit, HISTORY_UNIT, "\\%c",
                     c == '\n' ? 'n' : c == '\r' ? 'r' : 't');

    } else if (c < 0x80) {
        n = snprintf(unit, HISTORY_UNIT, "\\x%02x", (unsigned) c);

    } else {
        n = snprintf(unit, HISTORY_UNIT, "\\u{%x}", (unsigned) c);
    }

    *size = (size_t) n;
    *width = (unsigned) n;

    return len;
}


void
history_text_safe(char *dst, size_t size, sb_str_t s)
{
    char      unit[HISTORY_UNIT];
    size_t    n, used, len;
    unsigned  width;

    used = 0;

    while (s.len) {
        n = history_unit(s, unit, &len, &width);

        if (used + len >= size) {
            break;
        }

        memcpy(dst + used, unit, len);
        used += len;
        s.data += n;
        s.len -= n;
    }

    dst[used] = '\0';
}


/* Columns of the safe text of s, counted up to more than `max`. */
static unsigned
history_columns(sb_str_t s, unsigned max)
{
    char      unit[HISTORY_UNIT];
    size_t    n, len;
    unsigned  width, sum;

    sum = 0;

    while (s.len && sum <= max) {
        n = history_unit(s, unit, &len, &width);
        sum += width;
        s.data += n;
        s.len -= n;
    }

    return sum;
}


static void
history_fill(FILE *to, unsigned n)
{
    while (n--) {
        (void) fputc(' ', to);
    }
}


void
history_text_cell(FILE *to, sb_str_t s, unsigned width,
    history_align_e align)
{
    char      unit[HISTORY_UNIT];
    bool      cut;
    size_t    n, len;
    unsigned  all, used, room, w, marks;

    if (width == 0) {
        return;
    }

    all = history_columns(s, width);
    cut = all > width;
    room = cut ? width - 1 : width;
    used = 0;
    marks = 0;

    if (align == HISTORY_RIGHT && !cut) {
        history_fill(to, width - all);
    }

    while (s.len) {
        n = history_unit(s, unit, &len, &w);

        if (used + w > room) {
            break;
        }

        s.data += n;
        s.len -= n;

        /* A tower of combining marks would cost the reader the lines above. */

        marks = w == 0 ? marks + 1 : 0;

        if (marks > 4) {
            continue;
        }

        (void) fwrite(unit, 1, len, to);
        used += w;
    }

    if (cut) {
        fputs("\xe2\x80\xa6", to);
        used++;
    }

    if (align == HISTORY_LEFT || (align == HISTORY_RIGHT && cut)) {
        history_fill(to, width - used);
    }
}


bool
history_text_raw(FILE *to, sb_str_t s)
{
    return s.len == 0 || fwrite(s.data, 1, s.len, to) == s.len;
}


void
history_text_put(FILE *to, sb_str_t s, bool lines)
{
    char      unit[HISTORY_UNIT];
    size_t    n, len;
    unsigned  width;

    while (s.len) {
        if (lines && (s.data[0] == '\n' || s.data[0] == '\t')) {
            (void) fputc(s.data[0], to);
            n = 1;

        } else {
            n = history_unit(s, unit, &len, &width);
            (void) fwrite(unit, 1, len, to);
        }

        s.data += n;
        s.len -= n;
    }
}


void
history_text_json(FILE *to, sb_str_t json)
{
    size_t    len;
    uint32_t  c;

    while (json.len) {
        if (history_decode(json, &c, &len) && c >= 0x7f
            && history_in(history_hidden, c))
        {
            if (c >= 0x10000) {
                fprintf(to, "\\u%04x\\u%04x",
                        (unsigned) (0xd800 + ((c - 0x10000) >> 10)),
                        (unsigned) (0xdc00 + ((c - 0x10000) & 0x3ff)));

            } else {
                fprintf(to, "\\u%04x", (unsigned) c);
            }

        } else {
            (void) fwrite(json.data, 1, len, to);
        }

        json.data += len;
        json.len -= len;
    }
}


void
history_text_size(char dst[16], int64_t bytes)
{
    double       n;
    const char  *unit;

    unit = "KMGTPE";
    n = (double) bytes;

    if (bytes < 1000) {
        snprintf(dst, 16, "%d", (int) bytes);
        return;
    }

    for (n /= 1024; n >= 999.5; n /= 1024) {
        unit++;
    }

    snprintf(dst, 16, n < 9.95 ? "%.1f%c" : "%.0f%c", n, *unit);
}


void
history_text_duration(char dst[24], int64_t ms)
{
    if (ms < 1) {
        strcpy(dst, "<1ms");

    } else if (ms < 1000) {
        snprintf(dst, 24, "%dms", (int) ms);

    } else if (ms < 60 * 1000) {
        snprintf(dst, 24, ms < 9950 ? "%.1fs" : "%.0fs", (double) ms / 1000);

    } else if (ms < 3600 * 1000) {
        snprintf(dst, 24, "%dm%02ds", (int) (ms / 60000),
                 (int) (ms / 1000 % 60));

    } else {
        snprintf(dst, 24, "%lldh%02dm", (long long) (ms / 3600000),
                 (int) (ms / 60000 % 60));
    }
}


void
history_say(const char *fmt, ...)
{
    char     text[1024], safe[2048];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    history_text_safe(safe, sizeof(safe), sb_str(text, strlen(text)));
    fflush(stdout);
    fprintf(stderr, "sandbox-history: %s\n", safe);
}
