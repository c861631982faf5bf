/* Strings of the event stream: decoding, and where the characters go. */

#include "stream_scan.h"

#include "utf8.h"


static void
sb_stream_emit(sb_stream_t *s, const char *p, size_t n, bool last)
{
    if (s->h.output && (n || last)) {
        s->h.output(s->h.data, s->type == SB_TYPE_STDERR ? SB_STDERR
                                                         : SB_STDOUT,
                    p, n, last);
    }
}


void
sb_stream_flush(sb_stream_t *s, bool last)
{
    sb_stream_emit(s, s->buf, s->len, last);
    s->len = 0;
}


static void
sb_stream_put(sb_stream_t *s, const char *p, size_t n)
{
    size_t             room;
    sb_stream_word_t  *w;

    switch (s->sink) {

    case SB_SINK_NONE:
        return;

    case SB_SINK_WORD:
        w = &s->word;
        room = w->cap - w->len;

        if (n > room) {
            n = room;
            w->over = true;
        }

        memcpy(w->data + w->len, p, n);
        w->len += n;
        return;

    case SB_SINK_HOLD:
        if (s->held_over || n > SB_STREAM_BUF - s->len) {
            s->held_over = true;
            return;
        }

        break;

    case SB_SINK_TEXT:
        if (n >= SB_STREAM_DIRECT) {
            sb_stream_flush(s, false);
            sb_stream_emit(s, p, n, false);

        } else if (n > SB_STREAM_BUF - s->len) {
            sb_stream_flush(s, false);
        }

        break;
    }

    if (s->text_len == 0) {
        s->text_first = p[0];
    }

    s->text_len += n;

    if (s->sink == SB_SINK_HOLD || n < SB_STREAM_DIRECT) {
        memcpy(s->buf + s->len, p, n);
        s->len += n;
    }
}


static void
sb_stream_put_char(sb_stream_t *s, unsigned c)
{
    char    u[4];
    size_t  n;

    if (c < 0x80) {
        u[0] = (char) c;
        n = 1;

    } else if (c < 0x800) {
        u[0] = (char) (0xc0 | c >> 6);
        u[1] = (char) (0x80 | (c & 0x3f));
        n = 2;

    } else if (c < 0x10000) {
        u[0] = (char) (0xe0 | c >> 12);
        u[1] = (char) (0x80 | (c >> 6 & 0x3f));
        u[2] = (char) (0x80 | (c & 0x3f));
        n = 3;

    } else {
        u[0] = (char) (0xf0 | c >> 18);
        u[1] = (char) (0x80 | (c >> 12 & 0x3f));
        u[2] = (char) (0x80 | (c >> 6 & 0x3f));
        u[3] = (char) (0x80 | (c & 0x3f));
        n = 4;
    }

    sb_stream_put(s, u, n);
}


/* A high surrogate did not get its pair. */
void
sb_stream_lone(sb_stream_t *s)
{
    if (s->high) {
        s->high = 0;
        sb_stream_put_char(s, 0xfffd);
    }
}


static void
sb_stream_put_unit(sb_stream_t *s, unsigned u)
{
    bool  low = u >= 0xdc00 && u <= 0xdfff;

    if (low && s->high) {
        u = 0x10000 + ((s->high - 0xd800) << 10) + (u - 0xdc00);
        s->high = 0;
        sb_stream_put_char(s, u);
        return;
    }

    sb_stream_lone(s);

    if (u >= 0xd800 && u <= 0xdbff) {
        s->high = u;
        return;
    }

    sb_stream_put_char(s, low ? 0xfffd : u);
}


void
sb_stream_collect(sb_stream_t *s, char *p, size_t cap)
{
    s->sink = SB_SINK_WORD;
    s->word.data = p;
    s->word.len = 0;
    s->word.cap = cap;
    s->word.over = false;
}


/* Makes a C string of the collected word: cut at a character border, and not
 * ended early by a NUL of its own. */
void
sb_stream_word_end(sb_stream_t *s)
{
    size_t             i;
    sb_stream_word_t  *w = &s->word;

    if (w->len == w->cap) {
        w->len = sb_utf8_cut(sb_str(w->data, w->len), w->cap - 1);
    }

    for (i = 0; i < w->len; i++) {
        if (w->data[i] == '\0') {
            w->data[i] = '?';
        }
    }

    w->data[w->len] = '\0';
}


/* The first byte of a string that is not plain: a quote, a backslash or a line
 * feed.  Eight bytes at a time: this is where the time of large output goes. */
static const char *
sb_stream_plain(const char *p, const char *end)
{
    uint64_t        w, q, b, l;
    const uint64_t  ones = 0x0101010101010101u;

    while (end - p >= 8) {
        memcpy(&w, p, 8);

        q = w ^ ones * '"';
        b = w ^ ones * '\\';
        l = w ^ ones * '\n';

        q = (q - ones) & ~q;
        b = (b - ones) & ~b;
        l = (l - ones) & ~l;

        q = (q | b | l) & ones * 0x80;

        if (q) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return p + (__builtin_ctzll(q) >> 3);
#else
            break;
#endif
        }

        p += 8;
    }

    while (p < end && *p != '"' && *p != '\\' && *p != '\n') {
        p++;
    }

    return p;
}


/* What a simple escape stands for, or NUL. */
static char
sb_stream_simple(char c)
{
    switch (c) {

    case '"':
    case '\\':
    case '/':
        return c;

    case 'b':
        return '\b';

    case 'f':
        return '\f';

    case 'n':
        return '\n';

    case 'r':
        return '\r';

    case 't':
        return '\t';

    default:
        return '\0';
    }
}


bool
sb_stream_escape(sb_stream_t *s, char c)
{
    char  simple;

    if (c == 'u') {
        s->state = SB_S_HEX;
        s->digits = 0;
        s->value = 0;

        return true;
    }

    simple = sb_stream_simple(c);
    if (simple == '\0') {
        return false;
    }

    s->state = SB_S_STRING;
    sb_stream_lone(s);
    sb_stream_put(s, &simple, 1);

    return true;
}


bool
sb_stream_hex(sb_stream_t *s, char c)
{
    int  v;

    v = sb_hex_value(c);
    if (v < 0) {
        return false;
    }

    s->value = s->value << 4 | (unsigned) v;

    if (++s->digits == 4) {
        s->state = SB_S_STRING;
        sb_stream_put_unit(s, s->value);
    }

    return true;
}


/*
 * Runs and whole escapes of a string.  What is odd or cut by the end of the
 * input is left to the states, byte by byte.
 */
size_t
sb_stream_chars(sb_stream_t *s, const char *p, const char *end)
{
    int          a, b, c, d;
    char         simple;
    const char  *q, *start = p;

    for ( ;; ) {
        q = sb_stream_plain(p, end);

        if (q > p) {
            sb_stream_lone(s);
            sb_stream_put(s, p, (size_t) (q - p));
            p = q;
        }

        if (end - p < 6 || *p != '\\') {
            break;
        }

        if (p[1] != 'u') {
            simple = sb_stream_simple(p[1]);

            if (simple == '\0') {
                break;
            }

            sb_stream_lone(s);
            sb_stream_put(s, &simple, 1);
            p += 2;
            continue;
        }

        a = sb_hex_value(p[2]);
        b = sb_hex_value(p[3]);
        c = sb_hex_value(p[4]);
        d = sb_hex_value(p[5]);

        if ((a | b | c | d) < 0) {
            break;
        }

        sb_stream_put_unit(s, (unsigned) (a << 12 | b << 8 | c << 4 | d));
        p += 6;
    }

    return (size_t) (p - start);
}
