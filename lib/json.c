/* The event parser: yajl with what it lets through caught around it. */

#include "json.h"

#include <stdlib.h>
#include <yajl/yajl_parse.h>


#define SB_JSON_DEPTH  64
#define SB_JSON_BYTES  (1024 * 1024)


typedef enum {
    SB_SCAN_OUTSIDE = 0,
    SB_SCAN_STRING,
    SB_SCAN_ESCAPE,         /* behind a backslash */
    SB_SCAN_HEX,            /* in the digits of \u */
    SB_SCAN_PAIR,           /* a high surrogate: wants a backslash */
    SB_SCAN_PAIR_ESCAPE     /* ... and a u */
} sb_scan_e;


/*
 * yajl checks neither that surrogate escapes come in pairs (it writes "?") nor
 * that UTF-8 is in its shortest form: this scanner runs ahead of it.
 */
typedef struct {
    sb_scan_e  state;
    bool       low;             /* the digits must give a low surrogate */
    unsigned   digits;
    unsigned   value;
    unsigned   more;            /* UTF-8 bytes still to come */
    uint8_t    lo, hi;          /* bounds of the next of them */
} sb_scan_t;


struct sb_json_s {
    yajl_handle         yajl;
    sb_json_handler_pt  handler;
    void               *data;
    size_t              max_bytes;
    size_t              bytes;
    unsigned            max_depth;
    unsigned            depth;
    bool                done;       /* the top value is complete */
    bool                begun;      /* something else than blanks came */
    sb_rc_t             error;
    sb_scan_t           scan;
};


static bool
sb_json_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}


static int
sb_json_event(sb_json_t *j, sb_json_event_e event, const void *p, size_t n)
{
    sb_rc_t  rc;

    rc = j->handler(j->data, event, sb_str(p, n), j->depth);

    if (rc != SB_OK) {
        j->error = rc;
        return 0;
    }

    if (j->depth == 0 && event != SB_JSON_OPEN_OBJECT
        && event != SB_JSON_OPEN_ARRAY)
    {
        j->done = true;
    }

    return 1;
}


static int
sb_json_open(sb_json_t *j, sb_json_event_e event)
{
    if (j->depth == j->max_depth) {
        j->error = SB_LIMIT;
        return 0;
    }

    if (!sb_json_event(j, event, "", 0)) {
        return 0;
    }

    j->depth++;

    return 1;
}


static int
sb_json_close(sb_json_t *j, sb_json_event_e event)
{
    j->depth--;

    return sb_json_event(j, event, "", 0);
}


static int
sb_json_on_null(void *ctx)
{
    return sb_json_event(ctx, SB_JSON_NULL, "", 0);
}


static int
sb_json_on_boolean(void *ctx, int value)
{
    return sb_json_event(ctx, value ? SB_JSON_TRUE : SB_JSON_FALSE, "", 0);
}


static int
sb_json_on_number(void *ctx, const char *p, size_t n)
{
    return sb_json_event(ctx, SB_JSON_NUMBER, p, n);
}


static int
sb_json_on_string(void *ctx, const unsigned char *p, size_t n)
{
    return sb_json_event(ctx, SB_JSON_STRING, p, n);
}


static int
sb_json_on_key(void *ctx, const unsigned char *p, size_t n)
{
    return sb_json_event(ctx, SB_JSON_KEY, p, n);
}


static int
sb_json_on_open_object(void *ctx)
{
    return sb_json_open(ctx, SB_JSON_OPEN_OBJECT);
}


static int
sb_json_on_close_object(void *ctx)
{
    return sb_json_close(ctx, SB_JSON_CLOSE_OBJECT);
}


static int
sb_json_on_open_array(void *ctx)
{
    return sb_json_open(ctx, SB_JSON_OPEN_ARRAY);
}


static int
sb_json_on_close_array(void *ctx)
{
    return sb_json_close(ctx, SB_JSON_CLOSE_ARRAY);
}


static const yajl_callbacks  sb_json_callbacks = {
    sb_json_on_null,
    sb_json_on_boolean,
    NULL,
    NULL,
    sb_json_on_number,
    sb_json_on_string,
    sb_json_on_open_object,
    sb_json_on_key,
    sb_json_on_close_object,
    sb_json_on_open_array,
    sb_json_on_close_array
};


sb_json_t *
sb_json_new(sb_json_handler_pt handler, void *data,
    const sb_json_limits_t *limits)
{
    sb_json_t  *j;

    j = calloc(1, sizeof(sb_json_t));
    if (j == NULL) {
        return NULL;
    }

    j->handler = handler;
    j->data = data;
    j->max_depth = limits && limits->max_depth ? limits->max_depth
                                               : SB_JSON_DEPTH;
    j->max_bytes = limits && limits->max_bytes ? limits->max_bytes
                                               : SB_JSON_BYTES;

    j->yajl = yajl_alloc(&sb_json_callbacks, NULL, j);
    if (j->yajl == NULL) {
        free(j);
        return NULL;
    }

    /* With this yajl stops behind the value and says where. */
    yajl_config(j->yajl, yajl_allow_trailing_garbage, 1);

    return j;
}


void
sb_json_free(sb_json_t *j)
{
    if (j == NULL) {
        return;
    }

    yajl_free(j->yajl);
    free(j);
}


/* Takes a byte outside ASCII as the first of a character. */
static bool
sb_scan_lead(sb_scan_t *s, uint8_t c)
{
    s->lo = 0x80;
    s->hi = 0xbf;

    if (c >= 0xc2 && c <= 0xdf) {
        s->more = 1;

    } else if (c >= 0xe0 && c <= 0xef) {
        s->more = 2;
        s->lo = c == 0xe0 ? 0xa0 : 0x80;
        s->hi = c == 0xed ? 0x9f : 0xbf;

    } else if (c >= 0xf0 && c <= 0xf4) {
        s->more = 3;
        s->lo = c == 0xf0 ? 0x90 : 0x80;
        s->hi = c == 0xf4 ? 0x8f : 0xbf;

    } else {
        return false;
    }

    return true;
}


static int
sb_scan_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


/* One byte of an escape. */
static bool
sb_scan_escape(sb_scan_t *s, uint8_t c)
{
    int  digit;

    switch (s->state) {

    case SB_SCAN_ESCAPE:
        s->state = SB_SCAN_STRING;

        if (c == 'u') {
            s->state = SB_SCAN_HEX;
            s->digits = 0;
            s->value = 0;
        }

        return true;

    case SB_SCAN_PAIR:
        s->state = SB_SCAN_PAIR_ESCAPE;
        return c == '\\';

    case SB_SCAN_PAIR_ESCAPE:
        s->state = SB_SCAN_HEX;
        s->digits = 0;
        s->value = 0;
        return c == 'u';

    default: /* SB_SCAN_HEX */
        break;
    }

    digit = sb_scan_digit(c);

    if (digit < 0) {
        return false;
    }

    s->value = s->value << 4 | (unsigned) digit;

    if (++s->digits < 4) {
        return true;
    }

    if (s->low) {
        s->low = false;
        s->state = SB_SCAN_STRING;

        return s->value >= 0xdc00 && s->value <= 0xdfff;
    }

    if (s->value >= 0xd800 && s->value <= 0xdbff) {
        s->low = true;
        s->state = SB_SCAN_PAIR;

        return true;
    }

    s->state = SB_SCAN_STRING;

    return s->value < 0xdc00 || s->value > 0xdfff;
}


/* Returns the offset of the first byte that is wrong, or n. */
static size_t
sb_scan(sb_scan_t *s, const char *p, size_t n)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < n; i++) {
        c = (uint8_t) p[i];

        if (s->more) {
            if (c < s->lo || c > s->hi) {
                return i;
            }

            s->more--;
            s->lo = 0x80;
            s->hi = 0xbf;

        } else if (s->state > SB_SCAN_STRING) {
            if (!sb_scan_escape(s, c)) {
                return i;
            }

        } else if (c >= 0x80) {
            if (!sb_scan_lead(s, c)) {
                return i;
            }

        } else if (c == '"') {
            s->state = s->state == SB_SCAN_OUTSIDE ? SB_SCAN_STRING
                                                   : SB_SCAN_OUTSIDE;

        } else if (c == '\\' && s->state == SB_SCAN_STRING) {
            s->state = SB_SCAN_ESCAPE;
        }
    }

    return n;
}


static sb_rc_t
sb_json_rest(sb_json_t *j, const char *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (!sb_json_blank(p[i])) {
            j->error = SB_AMBIGUOUS;
            return j->error;
        }
    }

    return SB_OK;
}


static sb_rc_t
sb_json_take(sb_json_t *j, const char *p, size_t n)
{
    size_t       good, used, i;
    yajl_status  status;

    if (j->done) {
        return sb_json_rest(j, p, n);
    }

    for (i = 0; !j->begun && i < n; i++) {
        j->begun = !sb_json_blank(p[i]);
    }

    good = sb_scan(&j->scan, p, n);

    status = yajl_parse(j->yajl, (const unsigned char *) p, good);

    if (status == yajl_status_client_canceled) {
        return j->error;
    }

    if (status != yajl_status_ok) {
        j->error = SB_ERROR;
        return j->error;
    }

    if (j->done) {
        used = yajl_get_bytes_consumed(j->yajl);
        return sb_json_rest(j, p + used, n - used);
    }

    if (good != n) {
        j->error = SB_ERROR;
        return j->error;
    }

    return SB_AGAIN;
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
        j->error = SB_LIMIT;
        return j->error;
    }

    return rc;
}


sb_rc_t
sb_json_finish(sb_json_t *j)
{
    yajl_status  status;

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

    status = yajl_complete_parse(j->yajl);

    if (status == yajl_status_client_canceled) {
        return j->error;
    }

    if (status != yajl_status_ok || !j->done) {
        j->error = SB_ERROR;
        return j->error;
    }

    return SB_OK;
}
