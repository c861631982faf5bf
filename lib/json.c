/*
 * The event parser: strict JSON (RFC 8259, and what json.h adds) in one pass,
 * fed in pieces.  It stands in the way of every answer that is read as it
 * passes, so text is handed on as it lies in the input whenever it can be.
 */

#include "json.h"

#include <stdlib.h>


#define SB_JSON_DEPTH   64
#define SB_JSON_BYTES   (1024 * 1024)
#define SB_JSON_INLINE  128             /* depth that needs no memory more */

#define SB_JSON_ONES    0x0101010101010101ull
#define SB_JSON_HIGH    0x8080808080808080ull


typedef enum {
    SB_J_VALUE = 0,
    SB_J_FIRST_VALUE,       /* or the end of the array */
    SB_J_FIRST_KEY,         /* or the end of the object */
    SB_J_KEY,
    SB_J_COLON,
    SB_J_NEXT,              /* behind a value in a container */

    SB_J_STRING,
    SB_J_UTF8,              /* within a character */
    SB_J_ESCAPE,            /* behind a backslash */
    SB_J_HEX,               /* in the digits of \u */
    SB_J_PAIR,              /* behind a high surrogate: wants a backslash */
    SB_J_PAIR_ESCAPE,       /* ... and a u */

    SB_J_NUMBER,            /* nothing of it is taken yet */
    SB_J_MINUS,
    SB_J_ZERO,              /* ends a number, as do the next two */
    SB_J_INT,
    SB_J_FRACTION,
    SB_J_EXPONENT,
    SB_J_POINT,             /* a digit has to follow */
    SB_J_E,                 /* a digit or a sign */
    SB_J_SIGN,              /* a digit */

    SB_J_WORD               /* true, false, null */
} sb_json_state_e;


struct sb_json_s {
    sb_json_handler_pt  handler;
    void               *data;
    size_t              max_bytes;
    size_t              bytes;
    unsigned            max_depth;
    unsigned            depth;
    sb_rc_t             error;
    sb_json_state_e     state;
    bool                done;       /* the top value is complete */
    bool                begun;      /* something else than blanks came */

    bool                is_key;     /* of a string */
    bool                low;        /* the digits must give a low surrogate */
    unsigned            digits;
    uint32_t            value;      /* of the digits */
    uint32_t            high;       /* surrogate before them */
    unsigned            more;       /* UTF-8 bytes still to come */
    uint8_t             lo, hi;     /* bounds of the next of them */

    const char         *word;       /* what is left of it */
    sb_json_event_e     word_event;

    /* the beginning of a string or number that does not lie in one piece as it
     * is to be handed on */
    sb_buf_t            text;

    /* one bit a container: is it an object? */
    uint64_t            bits[SB_JSON_INLINE / 64];
    uint64_t           *stack;
    size_t              words;      /* of stack */
};


sb_json_t *
sb_json_new(sb_json_handler_pt handler, void *data,
    const sb_json_limits_t *limits)
{
    sb_json_t  *j;

    /* calloc() is slow: it does not take what was freed last */

    j = malloc(sizeof(sb_json_t));
    if (j == NULL) {
        return NULL;
    }

    memset(j, 0, sizeof(sb_json_t));

    j->handler = handler;
    j->data = data;
    j->max_depth = limits && limits->max_depth ? limits->max_depth
                                               : SB_JSON_DEPTH;
    j->max_bytes = limits && limits->max_bytes ? limits->max_bytes
                                               : SB_JSON_BYTES;
    j->text.max = j->max_bytes;
    j->stack = j->bits;
    j->words = SB_JSON_INLINE / 64;

    return j;
}


void
sb_json_again(sb_json_t *j)
{
    sb_json_t  old = *j;

    if (j->stack != j->bits) {
        free(j->stack);
    }

    sb_buf_free(&j->text);
    memset(j, 0, sizeof(sb_json_t));

    j->handler = old.handler;
    j->data = old.data;
    j->max_depth = old.max_depth;
    j->max_bytes = old.max_bytes;
    j->text.max = old.max_bytes;
    j->stack = j->bits;
    j->words = SB_JSON_INLINE / 64;
}


void
sb_json_free(sb_json_t *j)
{
    if (j == NULL) {
        return;
    }

    if (j->stack != j->bits) {
        free(j->stack);
    }

    sb_buf_free(&j->text);
    free(j);
}


static bool
sb_json_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}


static bool
sb_json_digit(char c)
{
    return c >= '0' && c <= '9';
}


static bool
sb_json_in_object(const sb_json_t *j)
{
    unsigned  n = j->depth - 1;

    return j->stack[n / 64] >> n % 64 & 1;
}


static sb_rc_t
sb_json_event(sb_json_t *j, sb_json_event_e event, sb_str_t text)
{
    return j->handler(j->data, event, text, j->depth);
}


/* Behind a value. */
static void
sb_json_after(sb_json_t *j)
{
    j->state = SB_J_NEXT;
    j->done = j->depth == 0;
}


static sb_rc_t
sb_json_open(sb_json_t *j, bool object)
{
    void     *p;
    size_t    n;
    sb_rc_t   rc;

    if (j->depth == j->max_depth) {
        return SB_LIMIT;
    }

    if (j->depth == j->words * 64) {
        n = j->words * 2;

        p = realloc(j->stack == j->bits ? NULL : j->stack,
                    n * sizeof(uint64_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        if (j->stack == j->bits) {
            memcpy(p, j->bits, sizeof(j->bits));
        }

        j->stack = p;
        j->words = n;
    }

    rc = sb_json_event(j, object ? SB_JSON_OPEN_OBJECT : SB_JSON_OPEN_ARRAY,
                       sb_lit(""));

    n = j->depth++;

    if (object) {
        j->stack[n / 64] |= (uint64_t) 1 << n % 64;
        j->state = SB_J_FIRST_KEY;

    } else {
        j->stack[n / 64] &= ~((uint64_t) 1 << n % 64);
        j->state = SB_J_FIRST_VALUE;
    }

    return rc;
}


static sb_rc_t
sb_json_close(sb_json_t *j, bool object)
{
    j->depth--;
    sb_json_after(j);

    return sb_json_event(j, object ? SB_JSON_CLOSE_OBJECT
                                   : SB_JSON_CLOSE_ARRAY, sb_lit(""));
}


/* A string or number ends with the n bytes at p. */
static sb_rc_t
sb_json_text_end(sb_json_t *j, sb_json_event_e event, const char *p, size_t n)
{
    sb_rc_t   rc;
    sb_str_t  text = sb_str(p, n);

    if (j->text.len) {
        rc = sb_buf_add(&j->text, p, n);
        if (rc != SB_OK) {
            return rc;
        }

        text = sb_str(j->text.data, j->text.len);
        j->text.len = 0;
    }

    if (event == SB_JSON_KEY) {
        j->state = SB_J_COLON;

    } else {
        sb_json_after(j);
    }

    return sb_json_event(j, event, text);
}


/* Where the bytes end that stand for themselves in a string. */
static const char *
sb_json_plain(const char *p, const char *end)
{
    uint8_t   c;
    uint64_t  w, quote, slash;

    /* eight at a time, until one of them is none */

    while (end - p >= 8) {
        memcpy(&w, p, 8);

        quote = w ^ SB_JSON_ONES * '"';
        slash = w ^ SB_JSON_ONES * '\\';

        if ((w | (w - SB_JSON_ONES * 0x20) | (quote - SB_JSON_ONES)
             | (slash - SB_JSON_ONES)) & SB_JSON_HIGH)
        {
            break;
        }

        p += 8;
    }

    while (p < end) {
        c = (uint8_t) *p;

        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }

        p++;
    }

    return p;
}


/* Takes a byte outside ASCII as the first of a character. */
static bool
sb_json_lead(sb_json_t *j, uint8_t c)
{
    j->lo = 0x80;
    j->hi = 0xbf;

    if (c >= 0xc2 && c <= 0xdf) {
        j->more = 1;

    } else if (c >= 0xe0 && c <= 0xef) {
        j->more = 2;
        j->lo = c == 0xe0 ? 0xa0 : 0x80;
        j->hi = c == 0xed ? 0x9f : 0xbf;

    } else if (c >= 0xf0 && c <= 0xf4) {
        j->more = 3;
        j->lo = c == 0xf0 ? 0x90 : 0x80;
        j->hi = c == 0xf4 ? 0x8f : 0xbf;

    } else {
        return false;
    }

    j->state = SB_J_UTF8;

    return true;
}


/* Adds a character that was escaped. */
static sb_rc_t
sb_json_char(sb_json_t *j, uint32_t c)
{
    char    s[4];
    size_t  n = 0;

    if (c < 0x80) {
        s[n++] = (char) c;

    } else if (c < 0x800) {
        s[n++] = (char) (0xc0 | c >> 6);
        s[n++] = (char) (0x80 | (c & 0x3f));

    } else if (c < 0x10000) {
        s[n++] = (char) (0xe0 | c >> 12);
        s[n++] = (char) (0x80 | (c >> 6 & 0x3f));
        s[n++] = (char) (0x80 | (c & 0x3f));

    } else {
        s[n++] = (char) (0xf0 | c >> 18);
        s[n++] = (char) (0x80 | (c >> 12 & 0x3f));
        s[n++] = (char) (0x80 | (c >> 6 & 0x3f));
        s[n++] = (char) (0x80 | (c & 0x3f));
    }

    j->state = SB_J_STRING;

    return sb_buf_add(&j->text, s, n);
}


static sb_rc_t
sb_json_hex(sb_json_t *j, char c)
{
    int  digit = sb_hex_value(c);

    if (digit < 0) {
        return SB_ERROR;
    }

    j->value = j->value << 4 | (uint32_t) digit;

    if (++j->digits < 4) {
        return SB_OK;
    }

    if (j->low) {
        j->low = false;

        if (j->value < 0xdc00 || j->value > 0xdfff) {
            return SB_ERROR;
        }

        return sb_json_char(j, 0x10000 + ((j->high - 0xd800) << 10)
                               + (j->value - 0xdc00));
    }

    if (j->value >= 0xd800 && j->value <= 0xdbff) {
        j->low = true;
        j->high = j->value;
        j->state = SB_J_PAIR;

        return SB_OK;
    }

    if (j->value >= 0xdc00 && j->value <= 0xdfff) {
        return SB_ERROR;
    }

    return sb_json_char(j, j->value);
}


/* One byte of an escape. */
static sb_rc_t
sb_json_escape(sb_json_t *j, char c)
{
    const char  *p;

    static const char  letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t";

    switch (j->state) {

    case SB_J_HEX:
        return sb_json_hex(j, c);

    case SB_J_PAIR:
        j->state = SB_J_PAIR_ESCAPE;
        return c == '\\' ? SB_OK : SB_ERROR;

    case SB_J_PAIR_ESCAPE:
        if (c != 'u') {
            return SB_ERROR;
        }

        break;

    default: /* SB_J_ESCAPE */

        for (p = letters; *p; p += 2) {
            if (*p == c) {
                return sb_json_char(j, (uint32_t) p[1]);
            }
        }

        if (c != 'u') {
            return SB_ERROR;
        }
    }

    j->state = SB_J_HEX;
    j->digits = 0;
    j->value = 0;

    return SB_OK;
}


/* Within a string; *pos goes to what is behind the bytes that were used. */
static sb_rc_t
sb_json_string(sb_json_t *j, const char **pos, const char *end)
{
    sb_rc_t      rc;
    uint8_t      c;
    const char  *p = *pos, *start = p;

    for ( ;; ) {

        if (j->state == SB_J_UTF8) {

            for ( /* void */ ; j->more && p < end; j->more--, p++) {
                c = (uint8_t) *p;

                if (c < j->lo || c > j->hi) {
                    return SB_ERROR;
                }

                j->lo = 0x80;
                j->hi = 0xbf;
            }

            if (j->more == 0) {
                j->state = SB_J_STRING;
            }
        }

        p = sb_json_plain(p, end);

        if (p == end) {
            *pos = p;
            return sb_buf_add(&j->text, start, (size_t) (p - start));
        }

        c = (uint8_t) *p++;

        if (c == '"') {
            *pos = p;
            return sb_json_text_end(j, j->is_key ? SB_JSON_KEY : SB_JSON_STRING,
                                    start, (size_t) (p - 1 - start));
        }

        if (c == '\\') {
            rc = sb_buf_add(&j->text, start, (size_t) (p - 1 - start));
            *pos = p;
            j->state = SB_J_ESCAPE;

            return rc;
        }

        if (c < 0x20 || !sb_json_lead(j, c)) {
            return SB_ERROR;
        }
    }
}


/* Takes one more byte into a number; false: it does not belong to it. */
static bool
sb_json_number_byte(sb_json_t *j, char c)
{
    switch (j->state) {

    case SB_J_NUMBER:
        if (c == '-') {
            j->state = SB_J_MINUS;
            return true;
        }

        /* fall through */

    case SB_J_MINUS:
        if (!sb_json_digit(c)) {
            return false;
        }

        j->state = c == '0' ? SB_J_ZERO : SB_J_INT;
        return true;

    case SB_J_ZERO:
    case SB_J_INT:
        if (sb_json_digit(c)) {
            return j->state == SB_J_INT;
        }

        if (c == '.') {
            j->state = SB_J_POINT;
            return true;
        }

        /* fall through */

    case SB_J_FRACTION:
        if (c == 'e' || c == 'E') {
            j->state = SB_J_E;
            return true;
        }

        return sb_json_digit(c);

    case SB_J_POINT:
        j->state = SB_J_FRACTION;
        return sb_json_digit(c);

    case SB_J_E:
        if (c == '+' || c == '-') {
            j->state = SB_J_SIGN;
            return true;
        }

        /* fall through */

    case SB_J_SIGN:
        j->state = SB_J_EXPONENT;
        return sb_json_digit(c);

    default: /* SB_J_EXPONENT */
        return sb_json_digit(c);
    }
}


static bool
sb_json_number_ends(sb_json_state_e state)
{
    return state >= SB_J_ZERO && state <= SB_J_EXPONENT;
}


static sb_rc_t
sb_json_number(sb_json_t *j, const char **pos, const char *end)
{
    bool         ends;
    const char  *p = *pos, *start = p;

    for ( /* void */ ; p < end; p++) {

        ends = sb_json_number_ends(j->state);

        if (!sb_json_number_byte(j, *p)) {
            *pos = p;
            return ends ? sb_json_text_end(j, SB_JSON_NUMBER, start,
                                           (size_t) (p - start))
                        : SB_ERROR;
        }
    }

    *pos = p;

    return sb_buf_add(&j->text, start, (size_t) (p - start));
}


static sb_rc_t
sb_json_word(sb_json_t *j, const char **pos, const char *end)
{
    const char  *p = *pos;

    for ( /* void */ ; *j->word && p < end; p++, j->word++) {
        if (*p != *j->word) {
            return SB_ERROR;
        }
    }

    *pos = p;

    if (*j->word) {
        return SB_OK;
    }

    sb_json_after(j);

    return sb_json_event(j, j->word_event, sb_lit(""));
}


/* The first byte of a value. */
static sb_rc_t
sb_json_value(sb_json_t *j, char c)
{
    switch (c) {

    case '"':
        j->is_key = false;
        j->state = SB_J_STRING;
        return SB_OK;

    case '{':
    case '[':
        return sb_json_open(j, c == '{');

    case 't':
        j->word = "rue";
        j->word_event = SB_JSON_TRUE;
        break;

    case 'f':
        j->word = "alse";
        j->word_event = SB_JSON_FALSE;
        break;

    case 'n':
        j->word = "ull";
        j->word_event = SB_JSON_NULL;
        break;

    default:
        if (c != '-' && !sb_json_digit(c)) {
            return SB_ERROR;
        }

        j->state = SB_J_NUMBER;

        return SB_OK;
    }

    j->state = SB_J_WORD;

    return SB_OK;
}


/* One byte between strings, numbers and words. */
static sb_rc_t
sb_json_struct(sb_json_t *j, char c)
{
    if (sb_json_blank(c)) {
        return SB_OK;
    }

    j->begun = true;

    switch (j->state) {

    case SB_J_FIRST_KEY:
        if (c == '}') {
            return sb_json_close(j, true);
        }

        /* fall through */

    case SB_J_KEY:
        j->is_key = true;
        j->state = SB_J_STRING;
        return c == '"' ? SB_OK : SB_ERROR;

    case SB_J_COLON:
        j->state = SB_J_VALUE;
        return c == ':' ? SB_OK : SB_ERROR;

    case SB_J_FIRST_VALUE:
        if (c == ']') {
            return sb_json_close(j, false);
        }

        /* fall through */

    case SB_J_VALUE:
        return sb_json_value(j, c);

    default: /* SB_J_NEXT */

        if (sb_json_in_object(j)) {
            j->state = SB_J_KEY;
            return c == ',' ? SB_OK : c == '}' ? sb_json_close(j, true)
                                               : SB_ERROR;
        }

        j->state = SB_J_VALUE;
        return c == ',' ? SB_OK : c == ']' ? sb_json_close(j, false)
                                           : SB_ERROR;
    }
}


static sb_rc_t
sb_json_take(sb_json_t *j, const char *p, size_t n)
{
    sb_rc_t      rc;
    const char  *end = p + n;

    while (p < end) {

        if (j->done) {

            if (!sb_json_blank(*p++)) {
                return SB_AMBIGUOUS;
            }

            continue;
        }

        if (j->state <= SB_J_NEXT) {
            rc = sb_json_struct(j, *p++);

            if (j->state == SB_J_NUMBER) {
                /* handed on whole, the first byte with it */
                p--;
            }

        } else if (j->state <= SB_J_UTF8) {
            rc = sb_json_string(j, &p, end);

        } else if (j->state <= SB_J_PAIR_ESCAPE) {
            rc = sb_json_escape(j, *p++);

        } else if (j->state < SB_J_WORD) {
            rc = sb_json_number(j, &p, end);

        } else {
            rc = sb_json_word(j, &p, end);
        }

        if (rc != SB_OK) {
            return rc;
        }
    }

    return j->done ? SB_OK : SB_AGAIN;
}


sb_rc_t
sb_json_feed(sb_json_t *j, const char *p, size_t n)
{
    size_t   take;
    sb_rc_t  rc;

    if (j->error != SB_OK) {
        return j->error;
    }

    if (n == 0) {
        return j->done ? SB_OK : SB_AGAIN;
    }

    /* What fits is read first, so that the answer does not depend on how the
     * input was split. */

    take = j->max_bytes - j->bytes;

    if (take > n) {
        take = n;
    }

    rc = SB_AGAIN;

    if (take) {
        j->bytes += take;
        rc = sb_json_take(j, p, take);
    }

    if (rc >= SB_OK && take < n) {
        rc = SB_LIMIT;
    }

    if (rc < SB_OK) {
        j->error = rc;
    }

    return rc;
}


sb_rc_t
sb_json_finish(sb_json_t *j)
{
    if (j->error != SB_OK) {
        return j->error;
    }

    if (j->done) {
        return SB_OK;
    }

    if (!j->begun) {
        return SB_DECLINED;
    }

    /* A number at the top ends only here. */

    if (j->depth || !sb_json_number_ends(j->state)) {
        j->error = SB_ERROR;
        return j->error;
    }

    j->error = sb_json_text_end(j, SB_JSON_NUMBER, "", 0);

    return j->error;
}
