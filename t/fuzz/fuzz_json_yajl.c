/*
 * Our reader beside yajl, which nobody here wrote: what ours accepts yajl
 * accepts, with the same events; what yajl accepts ours accepts, unless json.h
 * says that it is stricter there.
 */

#include "json.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#define DEPTH  64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The events as one text: kind, length, bytes. */
typedef struct {
    sb_buf_t  log;
    unsigned  depth;
    unsigned  deepest;
} events_t;


static void
note(events_t *e, char kind, const void *p, size_t n)
{
    char  head[32];
    int   len;

    len = snprintf(head, sizeof(head), "%c%zu:", kind, n);

    if (sb_buf_add(&e->log, head, (size_t) len) != SB_OK
        || sb_buf_add(&e->log, p, n) != SB_OK)
    {
        abort();
    }

    if (kind == '{' || kind == '[') {
        e->depth++;
        e->deepest = e->depth > e->deepest ? e->depth : e->deepest;
    }

    if (kind == '}' || kind == ']') {
        e->depth--;
    }
}


static sb_rc_t
on_ours(void *data, sb_json_event_e event, sb_str_t text, unsigned depth)
{
    static const char  kind[] = "ntf#\"k{}[]";

    (void) depth;
    note(data, kind[event], text.data, text.len);

    return SB_OK;
}


static int
on_null(void *e)
{
    note(e, 'n', "", 0);
    return 1;
}


static int
on_boolean(void *e, int value)
{
    note(e, value ? 't' : 'f', "", 0);
    return 1;
}


static int
on_number(void *e, const char *p, size_t n)
{
    note(e, '#', p, n);
    return 1;
}


static int
on_string(void *e, const unsigned char *p, size_t n)
{
    note(e, '"', p, n);
    return 1;
}


static int
on_key(void *e, const unsigned char *p, size_t n)
{
    note(e, 'k', p, n);
    return 1;
}


static int
on_open_object(void *e)
{
    note(e, '{', "", 0);
    return 1;
}


static int
on_close_object(void *e)
{
    note(e, '}', "", 0);
    return 1;
}


static int
on_open_array(void *e)
{
    note(e, '[', "", 0);
    return 1;
}


static int
on_close_array(void *e)
{
    note(e, ']', "", 0);
    return 1;
}


static const yajl_callbacks  callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_map_key = on_key,
    .yajl_start_map = on_open_object,
    .yajl_end_map = on_close_object,
    .yajl_start_array = on_open_array,
    .yajl_end_array = on_close_array,
};


/* Ours refuses the escape of half a character, yajl makes "?" of it; to yajl
 * vertical tab and form feed are blanks. */
static bool
is_lax(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\v' || p[i] == '\f'
            || (i + 2 < n && p[i] == '\\' && p[i + 1] == 'u'
                && (p[i + 2] | 0x20) == 'd'))
        {
            return true;
        }
    }

    return false;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sb_rc_t            rc;
    events_t           ours = { .log.max = 1 << 24 };
    events_t           other = { .log.max = 1 << 24 };
    sb_json_t         *j;
    yajl_handle        y;
    yajl_status        st;
    sb_json_limits_t   limits = { .max_depth = DEPTH };

    if (size > 100 * 1000 || is_lax(data, size)) {
        return 0;
    }

    j = sb_json_new(on_ours, &ours, &limits);
    y = yajl_alloc(&callbacks, NULL, &other);

    if (j == NULL || y == NULL) {
        abort();
    }

    rc = sb_json_feed(j, (const char *) data, size);
    if (rc >= SB_OK) {
        rc = sb_json_finish(j);
    }

    st = yajl_parse(y, data, size);
    if (st == yajl_status_ok) {
        st = yajl_complete_parse(y);
    }

    if (rc == SB_OK && st != yajl_status_ok) {
        abort();
    }

    /* yajl takes overlong forms, half characters, and half a token behind */
    if (rc != SB_OK && rc != SB_AMBIGUOUS && st == yajl_status_ok && other.deepest <= DEPTH
        && sb_utf8_valid(sb_str((const char *) data, size)))
    {
        abort();
    }

    if (rc == SB_OK && (ours.log.len != other.log.len
                        || memcmp(ours.log.data, other.log.data,
                                  ours.log.len) != 0))
    {
        abort();
    }

    sb_json_free(j);
    yajl_free(y);
    sb_buf_free(&ours.log);
    sb_buf_free(&other.log);

    return 0;
}
