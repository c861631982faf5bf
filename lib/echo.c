#include "echo.h"


enum {
    ECHO_SHOWN = 0,     /* has to be echoed */
    ECHO_CONTROL,       /* does not */
    ECHO_END            /* a new line is to follow */
};

enum {
    ESC_NONE = 0,
    ESC_BEGUN,          /* behind an ESC */
    ESC_CSI,            /* ESC [ */
    ESC_ONE,            /* one byte more */
    ESC_STRING,         /* ESC ] and the like, up to BEL or ESC \ */
    ESC_STRING_ESC
};

#define ECHO_ARGS  16   /* bytes of a typed sequence */


static bool
sb_echo_stops(char c)
{
    return c == 0x03 || c == 0x04 || c == 0x1a || c == 0x1c;
}


/* Gives up all that waits, and with `dirty` the rest of the line. */
static void
sb_echo_drop(sb_echo_t *e, bool dirty)
{
    e->hidden_bytes += e->len;
    e->len = 0;
    e->next = 0;
    e->typed_esc = ESC_NONE;
    e->dirty = dirty;
}


/* It was not echoed; does its line go on? */
static void
sb_echo_fail(sb_echo_t *e)
{
    sb_echo_drop(e, e->len && e->kind[e->len - 1] != ECHO_END);
}


static void
sb_echo_keep(sb_echo_t *e, size_t n)
{
    e->kept_bytes += n;
    e->kept(e->ctx, sb_str(e->line, n), e->prompt);

    e->len -= n;
    e->next -= n;
    e->prompt = false;
    memmove(e->line, e->line + n, e->len);
    memmove(e->kind, e->kind + n, e->len);
}


/* Passes over what need not be echoed; false: nothing waits. */
static bool
sb_echo_waits(sb_echo_t *e)
{
    while (e->next < e->len && e->kind[e->next] == ECHO_CONTROL) {
        e->next++;
    }

    return e->next < e->len;
}


static void
sb_echo_late(sb_echo_t *e, uint64_t now_us)
{
    if (sb_echo_waits(e) && now_us > e->since_us + SB_ECHO_US) {
        /* the line goes on, however long ago it began */
        sb_echo_fail(e);
    }
}


/* What a typed byte is. */
static int
sb_echo_kind(sb_echo_t *e, char c)
{
    switch (e->typed_esc) {

    case ESC_BEGUN:
        e->typed_args = 0;
        e->typed_esc = c == '[' ? ESC_CSI : c == 'O' ? ESC_ONE : ESC_NONE;
        return e->typed_esc == ESC_NONE ? -1 : ECHO_CONTROL;

    case ESC_ONE:
        e->typed_esc = ESC_NONE;
        return c >= 'A' && c <= 'z' ? ECHO_CONTROL : -1;

    case ESC_CSI:
        if ((c >= '0' && c <= '9') || c == ';') {
            return e->typed_args++ < ECHO_ARGS ? ECHO_CONTROL : -1;
        }

        e->typed_esc = ESC_NONE;
        return c >= '@' && c <= '~' ? ECHO_CONTROL : -1;

    default:
        break;
    }

    if (c == 0x1b) {
        e->typed_esc = ESC_BEGUN;
        return ECHO_CONTROL;
    }

    if (c == '\r' || c == '\n') {
        return ECHO_END;
    }

    return (unsigned char) c < 0x20 || c == 0x7f ? ECHO_CONTROL : ECHO_SHOWN;
}


static void
sb_echo_type(sb_echo_t *e, char c, uint64_t now_us)
{
    int  kind;

    if (sb_echo_stops(c) && e->typed_esc == ESC_NONE) {

        if (e->dirty || sb_echo_waits(e) || e->len == SB_ECHO_LINE) {
            sb_echo_drop(e, false);
        }

        e->line[e->len] = c;
        e->kind[e->len++] = ECHO_CONTROL;
        e->next = e->len;
        e->prompt = false;
        sb_echo_keep(e, e->len);
        return;
    }

    if (e->dirty) {
        e->hidden_bytes++;
        e->dirty = c != '\r' && c != '\n';
        return;
    }

    kind = sb_echo_kind(e, c);

    if (kind == -1 || e->len == SB_ECHO_LINE) {
        e->hidden_bytes++;
        sb_echo_drop(e, c != '\r' && c != '\n');
        return;
    }

    if (kind != ECHO_CONTROL && !sb_echo_waits(e)) {
        e->since_us = now_us;
    }

    e->line[e->len] = c;
    e->kind[e->len++] = (uint8_t) kind;
}


void
sb_echo_typed(sb_echo_t *e, const void *p, size_t n, uint64_t now_us)
{
    const char  *c = p;

    sb_echo_late(e, now_us);

    while (n--) {
        sb_echo_type(e, *c++, now_us);
    }
}


/* Is a byte of the output part of an escape sequence? */
static bool
sb_echo_escape(sb_echo_t *e, char c)
{
    switch (e->shown_esc) {

    case ESC_NONE:
        if (c != 0x1b) {
            return false;
        }

        e->shown_esc = ESC_BEGUN;
        break;

    case ESC_BEGUN:
        switch (c) {

        case '[':
            e->shown_esc = ESC_CSI;
            break;

        case ']': case 'P': case '^': case '_': case 'X':
            e->shown_esc = ESC_STRING;
            break;

        case '(': case ')': case '*': case '+': case '#': case '%': case ' ':
            e->shown_esc = ESC_ONE;
            break;

        case 0x1b:
            break;

        default:
            e->shown_esc = ESC_NONE;
            break;
        }

        break;

    case ESC_CSI:
        if (c >= '@' && c <= '~') {
            e->shown_esc = ESC_NONE;
        }

        break;

    case ESC_STRING:
        if (c == 0x07) {
            e->shown_esc = ESC_NONE;

        } else if (c == 0x1b) {
            e->shown_esc = ESC_STRING_ESC;
        }

        break;

    case ESC_STRING_ESC:
        e->shown_esc = c == '\\' ? ESC_NONE : ESC_STRING;
        break;

    default:
        e->shown_esc = ESC_NONE;
        break;
    }

    return true;
}


static bool
sb_echo_is_prompt(const sb_echo_t *e)
{
    return e->shown[1] == ' '
           && (e->shown[0] == '$' || e->shown[0] == '#' || e->shown[0] == '%'
               || e->shown[0] == '>');
}


static void
sb_echo_new_line(sb_echo_t *e, char c, uint64_t now_us)
{
    bool  second;

    second = c == '\n' && e->behind_cr;

    e->behind_cr = false;

    if (!second && sb_echo_waits(e)) {

        if (e->kind[e->next] == ECHO_END) {

            e->next++;
            sb_echo_keep(e, e->next);
            e->since_us = now_us;
            e->behind_cr = c == '\r';

        } else if (c == '\n') {
            sb_echo_fail(e);
        }

    }

    e->shown[0] = '\0';
    e->shown[1] = '\0';
}


static void
sb_echo_show(sb_echo_t *e, char c, uint64_t now_us)
{
    bool    behind_bs;
    size_t  i;

    if (sb_echo_escape(e, c)) {
        return;
    }

    behind_bs = e->behind_bs;
    e->behind_bs = (c == '\b');

    if (c == '\r' && e->behind_cr) {
        return;
    }

    if (c == '\r' || c == '\n') {
        sb_echo_new_line(e, c, now_us);
        return;
    }

    if ((unsigned char) c < 0x20 || c == 0x7f || (behind_bs && c == ' ')) {
        return;
    }

    e->behind_cr = false;

    if (sb_echo_waits(e)) {

        if (e->kind[e->next] == ECHO_SHOWN && e->line[e->next] == c) {

            for (i = 0; i < e->next && e->kind[i] != ECHO_SHOWN; i++) {
                /* void */
            }

            if (i == e->next) {
                /* the first of its line */
                e->prompt = sb_echo_is_prompt(e);
            }

            e->next++;
            e->since_us = now_us;

        } else {
            sb_echo_fail(e);
        }
    }

    e->shown[0] = e->shown[1];
    e->shown[1] = c;
}


void
sb_echo_shown(sb_echo_t *e, const void *p, size_t n, uint64_t now_us)
{
    const char  *c = p;

    sb_echo_late(e, now_us);

    while (n--) {
        sb_echo_show(e, *c++, now_us);
    }
}


void
sb_echo_end(sb_echo_t *e)
{
    sb_echo_drop(e, false);
}


size_t
sb_echo_command(char *dst, sb_str_t line)
{
    char    c;
    size_t  i, n = 0;

    static const char  paste[] = "\033[200~", pasted[] = "\033[201~";

    if (line.len == 0
        || (line.data[line.len - 1] != '\r' && line.data[line.len - 1] != '\n'))
    {
        return 0;
    }

    for (i = 0; i < line.len - 1; i++) {
        c = line.data[i];

        if (c == 0x1b && line.len - i > sizeof(paste) - 1
            && (memcmp(line.data + i, paste, sizeof(paste) - 1) == 0
                || memcmp(line.data + i, pasted, sizeof(pasted) - 1) == 0))
        {
            i += sizeof(paste) - 2;

        } else if (c == 0x7f || c == '\b') {

            while (n && ((unsigned char) dst[n - 1] & 0xc0) == 0x80) {
                n--;
            }

            n -= n != 0;

        } else if (c == 0x15) {
            n = 0;

        } else if (c == 0x17) {

            while (n && dst[n - 1] == ' ') {
                n--;
            }

            while (n && dst[n - 1] != ' ') {
                n--;
            }

        } else if ((unsigned char) c < 0x20) {
            return 0;

        } else {
            dst[n++] = c;
        }
    }

    while (n && dst[n - 1] == ' ') {
        n--;
    }

    return n;
}
