/* The bytes of execd's stream: lines, framings, the structure of JSON. */

#include "stream_scan.h"

#include <stdlib.h>


static void
sb_stream_open(sb_stream_t *s, bool array)
{
    if (s->depth == SB_STREAM_DEPTH) {
        sb_stream_bad(s);
        return;
    }

    if (array) {
        s->arrays |= (uint64_t) 1 << s->depth;
    } else {
        s->arrays &= ~((uint64_t) 1 << s->depth);
    }

    s->depth++;
    s->sub = s->depth == 2 ? SB_K_OTHER : s->sub;
    s->state = array ? SB_S_FIRST_VALUE : SB_S_FIRST_KEY;
}


static bool
sb_stream_in_array(const sb_stream_t *s)
{
    return s->arrays >> (s->depth - 1) & 1;
}


static bool
sb_stream_number(const char *p, size_t n)
{
    size_t  i = 0, from;

    i += i < n && p[i] == '-';
    from = i;

    while (i < n && p[i] >= '0' && p[i] <= '9') {
        i++;
    }

    if (i == from || (p[from] == '0' && i > from + 1)) {
        return false;
    }

    if (i < n && p[i] == '.') {
        from = ++i;

        while (i < n && p[i] >= '0' && p[i] <= '9') {
            i++;
        }

        if (i == from) {
            return false;
        }
    }

    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        i++;
        i += i < n && (p[i] == '-' || p[i] == '+');
        from = i;

        while (i < n && p[i] >= '0' && p[i] <= '9') {
            i++;
        }

        if (i == from) {
            return false;
        }
    }

    return i == n;
}


static bool
sb_stream_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'
           || c == '+' || c == '.' || c == 'E';
}


static bool
sb_stream_token_end(sb_stream_t *s)
{
    sb_str_t  t = sb_str(s->token, s->token_len);

    s->state = SB_S_NEXT;

    if (sb_eq(t, sb_lit("true")) || sb_eq(t, sb_lit("false"))
        || sb_eq(t, sb_lit("null")))
    {
        return true;
    }

    if (t.len == sizeof(s->token)       /* longer than any honest number */
        || !sb_stream_number(t.data, t.len))
    {
        return false;
    }

    if (s->depth == 1 && s->top == SB_K_TIME && t.len < 19) {
        s->token[t.len] = '\0';
        s->time = strtoll(s->token, NULL, 10);
    }

    if (s->depth == 1 && s->top == SB_K_COUNT && t.len < 19) {
        s->token[t.len] = '\0';
        s->count = strtoll(s->token, NULL, 10);
    }

    return true;
}


static void
sb_stream_captured(sb_stream_t *s, const char *p, size_t n)
{
    size_t  room = s->result.max - s->result.len;

    if (n > room) {
        n = room;
        s->result_cut = true;
    }

    if (sb_buf_add(&s->result, p, n) != SB_OK) {
        s->result_cut = true;
    }
}


static void
sb_stream_close(sb_stream_t *s)
{
    s->depth--;

    if (s->depth == 0) {
        sb_stream_event(s);
        return;
    }

    s->state = SB_S_NEXT;
}


static void
sb_stream_line(sb_stream_t *s, char c)
{
    switch (c) {

    case '{':
        sb_stream_begin(s);
        return;

    case ':':
        s->state = SB_S_SKIP;
        return;

    case '\n':
    case '\r':
    case ' ':
    case '\t':
        return;

    default:
        s->token[0] = c;
        s->token_len = 1;
        s->state = SB_S_FIELD;
    }
}


/* The name of an SSE field, or something that is none. */
static void
sb_stream_field(sb_stream_t *s, char c)
{
    sb_str_t  name;

    if (c >= 'a' && c <= 'z' && s->token_len < 5) {
        s->token[s->token_len++] = c;
        return;
    }

    name = sb_str(s->token, s->token_len);

    if (c == ':' || c == '\r' || c == '\n') {
        if (sb_eq(name, sb_lit("data"))) {
            s->state = SB_S_DATA;
            return;
        }

        if (sb_eq(name, sb_lit("event")) || sb_eq(name, sb_lit("id"))
            || sb_eq(name, sb_lit("retry")))
        {
            s->state = SB_S_SKIP;
            return;
        }
    }

    s->facts.bad_frames++;
    s->state = SB_S_SKIP;
}


/* The first byte of a value. */
static bool
sb_stream_value(sb_stream_t *s, char c)
{
    switch (c) {

    case '"':
        sb_stream_string(s);
        return true;

    case '{':
        sb_stream_open(s, false);
        return true;

    case '[':
        sb_stream_open(s, true);
        return true;

    default:
        if (!sb_stream_token_char(c)) {
            return false;
        }

        s->token[0] = c;
        s->token_len = 1;
        s->state = SB_S_TOKEN;

        return true;
    }
}


/* One byte of an event outside of strings and blanks; false: not JSON. */
static bool
sb_stream_struct(sb_stream_t *s, char c)
{
    switch (s->state) {

    case SB_S_FIRST_KEY:
        if (c == '}') {
            sb_stream_close(s);
            return true;
        }

        /* fall through */

    case SB_S_KEY:
        if (c != '"') {
            return false;
        }

        s->state = SB_S_STRING;
        s->is_key = true;
        s->sink = SB_SINK_NONE;

        if (s->depth == 1 || (s->depth == 2 && s->top == SB_K_ERROR)) {
            sb_stream_collect(s, s->name, sizeof(s->name));
        }

        return true;

    case SB_S_COLON:
        s->state = SB_S_VALUE;
        return c == ':';

    case SB_S_FIRST_VALUE:
        if (c == ']') {
            sb_stream_close(s);
            return true;
        }

        /* fall through */

    case SB_S_VALUE:
        return sb_stream_value(s, c);

    default: /* SB_S_NEXT */
        if (c == ',') {
            s->top = s->depth == 1 ? SB_K_OTHER : s->top;
            s->state = sb_stream_in_array(s) ? SB_S_VALUE : SB_S_KEY;
            return true;
        }

        if (c == (sb_stream_in_array(s) ? ']' : '}')) {
            sb_stream_close(s);
            return true;
        }

        return false;
    }
}


/*
 * Nearly all events are lines of output in execd's own spelling: their head and
 * tail are taken at one go when they are whole.  These two only save time.
 */
static size_t
sb_stream_head(sb_stream_t *s, const char *p, const char *end)
{
    bool               err;
    static const char  out[] = "{\"type\":\"stdout\",\"text\":\"";
    const size_t       n = sizeof(out) - 1;

    if ((size_t) (end - p) < n || memcmp(p, out, 12) != 0
        || memcmp(p + 15, out + 15, n - 15) != 0)
    {
        return 0;
    }

    err = memcmp(p + 12, "err", 3) == 0;

    if (!err && memcmp(p + 12, "out", 3) != 0) {
        return 0;
    }

    sb_stream_begin(s);

    s->type = err ? SB_TYPE_STDERR : SB_TYPE_STDOUT;
    s->top = SB_K_TEXT;
    sb_stream_string(s);

    return n;
}


static size_t
sb_stream_tail(sb_stream_t *s, const char *p, const char *end)
{
    const char        *q;
    static const char  tail[] = ",\"timestamp\":";
    const size_t       n = sizeof(tail) - 1;

    if (s->depth != 1 || s->top != SB_K_TEXT || (size_t) (end - p) < n + 2
        || memcmp(p, tail, n) != 0 || p[n] < '1' || p[n] > '9')
    {
        return 0;
    }

    for (q = p + n; q < end && *q >= '0' && *q <= '9'; q++) {
        /* void */
    }

    if (q == end || *q != '}') {
        return 0;
    }

    sb_stream_close(s);

    return (size_t) (q + 1 - p);
}


/* Bytes from p on that belong to one state; returns how many were used. */
static size_t
sb_stream_step(sb_stream_t *s, const char *p, const char *end)
{
    size_t       n;
    const char  *q;

    switch (s->state) {

    case SB_S_STRING:
        n = sb_stream_chars(s, p, end);

        if (n) {
            return n;
        }

        if (*p == '"') {
            sb_stream_string_end(s);

        } else if (*p == '\\') {
            s->state = SB_S_ESCAPE;

        } else {
            sb_stream_bad(s);
            return 0;
        }

        return 1;

    case SB_S_ESCAPE:
        if (!sb_stream_escape(s, *p)) {
            sb_stream_bad(s);
            return 0;
        }

        return 1;

    case SB_S_HEX:
        if (!sb_stream_hex(s, *p)) {
            sb_stream_bad(s);
            return 0;
        }

        return 1;

    case SB_S_TOKEN:
        if (sb_stream_token_char(*p)) {
            if (s->token_len < sizeof(s->token)) {
                s->token[s->token_len++] = *p;
            }

            return 1;
        }

        if (!sb_stream_token_end(s)) {
            sb_stream_bad(s);
        }

        return 0;

    case SB_S_SKIP:
        q = memchr(p, '\n', (size_t) (end - p));

        if (q == NULL) {
            return (size_t) (end - p);
        }

        s->state = SB_S_LINE;

        return (size_t) (q + 1 - p);

    case SB_S_LINE:
        n = sb_stream_head(s, p, end);

        if (n == 0) {
            sb_stream_line(s, *p);
            n = 1;
        }

        return n;

    case SB_S_FIELD:
        sb_stream_field(s, *p);

        /* the LF itself is for the next state */
        return *p != '\n';

    case SB_S_DATA:
        if (*p == '{') {
            sb_stream_begin(s);

        } else if (*p == '\n') {
            s->state = SB_S_LINE;

        } else if (*p != ' ' && *p != '\t' && *p != '\r') {
            s->facts.bad_frames++;
            s->state = SB_S_SKIP;
        }

        return 1;

    case SB_S_NEXT:
        n = sb_stream_tail(s, p, end);

        if (n) {
            return n;
        }

        /* fall through */

    default:
        if (*p == ' ' || *p == '\t' || *p == '\r') {
            return 1;
        }

        if (!sb_stream_struct(s, *p)) {
            sb_stream_bad(s);
            return 0;
        }

        return 1;
    }
}


void
sb_stream_feed(sb_stream_t *s, const char *p, size_t n)
{
    bool         results;
    const char  *end = p + n, *from = p;

    while (p < end) {
        p += sb_stream_step(s, p, end);

        if (s->top != SB_K_RESULTS && !s->capture) {
            continue;
        }

        /* `results` is the only member whose raw bytes are kept */

        results = s->top == SB_K_RESULTS
                  && (s->depth > 1
                      || (s->depth == 1 && s->state != SB_S_COLON
                          && s->state != SB_S_NEXT));

        if (results != s->capture) {
            if (results) {
                sb_buf_free(&s->result);
                s->result_cut = false;
                s->captured = true;
                from = p;

            } else if (s->depth) {
                sb_stream_captured(s, from, (size_t) (p - from));
            }

            s->capture = results;
        }
    }

    if (s->capture) {
        sb_stream_captured(s, from, (size_t) (p - from));
    }

    /* what is decoded goes out at once: somebody may be watching */

    if (s->depth && sb_stream_is_output(s) && !s->held_over && s->len) {
        sb_stream_flush(s, false);
    }
}
