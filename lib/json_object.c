#include "json_object.h"

#include "utf8.h"

#include <stdlib.h>


/* Quotes, colon and comma, and the suffix of a second member. */
#define SB_OBJECT_EXTRA  16


void
sb_object_init(sb_object_t *o, size_t room)
{
    o->n = 0;
    o->room = room;
    o->rc = SB_OK;

    memset(&o->text, 0, sizeof(o->text));
    o->text.max = room;
}


void
sb_object_free(sb_object_t *o)
{
    sb_buf_free(&o->text);
}


int
sb_str_compare(const void *one, const void *two)
{
    int              rc;
    const sb_str_t  *a = one, *b = two;

    rc = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);

    if (rc != 0) {
        return rc;
    }

    return a->len < b->len ? -1 : a->len > b->len;
}


/* How much one value may take. */
static size_t
sb_object_share(const sb_object_t *o)
{
    return o->room / 2;
}


/* Begins a value: what follows in o->text until sb_object_end() is it. */
static bool
sb_object_begin(sb_object_t *o, const char *name, const char *suffix)
{
    if (o->rc != SB_OK || o->n == SB_OBJECT_MEMBERS
        || o->room < strlen(name) + 2 * SB_OBJECT_EXTRA)
    {
        return false;
    }

    o->members[o->n].name = name;
    o->members[o->n].suffix = suffix;
    o->members[o->n].at = o->text.len;

    return true;
}


static void
sb_object_end(sb_object_t *o, sb_rc_t rc)
{
    size_t  used;

    if (rc != SB_OK) {
        o->rc = rc;
        return;
    }

    o->members[o->n].len = o->text.len - o->members[o->n].at;

    used = o->members[o->n].len + strlen(o->members[o->n].name)
           + SB_OBJECT_EXTRA;
    o->room = o->room > used ? o->room - used : 0;
    o->n++;
}


void
sb_object_uint(sb_object_t *o, const char *name, const char *suffix, uint64_t v)
{
    if (sb_object_begin(o, name, suffix)) {
        sb_object_end(o, sb_buf_add_uint(&o->text, v));
    }
}


void
sb_object_int(sb_object_t *o, const char *name, int64_t v)
{
    if (sb_object_begin(o, name, "")) {
        sb_object_end(o, v >= 0 ? sb_buf_add_uint(&o->text, (uint64_t) v)
                                : sb_buf_printf(&o->text, "%lld",
                                                (long long) v));
    }
}


void
sb_object_bool(sb_object_t *o, const char *name, bool v)
{
    if (sb_object_begin(o, name, "")) {
        sb_object_end(o, sb_buf_add_str(&o->text, v ? sb_lit("true")
                                                    : sb_lit("false")));
    }
}


/* The longest beginning of a text whose escaped form fits into `room`. */
static sb_str_t
sb_object_fit(sb_str_t s, size_t room)
{
    size_t   i, cost, used = 2;
    uint8_t  c;

    if (s.len < room / 6) {
        return s;
    }

    for (i = 0; i < s.len; i++) {
        c = (uint8_t) s.data[i];
        cost = 1;

        if (c < 0x20) {
            cost = 6;

        } else if (c == '"' || c == '\\') {
            cost = 2;

        } else if (c >= 0x80) {
            cost = 3;               /* should it become U+FFFD */
        }

        if (used + cost > room) {
            return sb_str(s.data, sb_utf8_cut(s, i));
        }

        used += cost;
    }

    return s;
}


void
sb_object_str(sb_object_t *o, const char *name, sb_str_t s)
{
    sb_str_t  kept;

    kept = sb_object_fit(s, sb_object_share(o));

    if (sb_object_begin(o, name, "")) {
        sb_object_end(o, sb_json_write_str(&o->text, kept));
    }

    if (kept.len < s.len) {
        sb_object_uint(o, name, "_bytes", s.len);
    }
}


void
sb_object_json(sb_object_t *o, const char *name, sb_str_t json, size_t kept,
    size_t total)
{
    if (json.len > sb_object_share(o)) {
        sb_object_uint(o, name, "_bytes", json.len);
        return;
    }

    if (sb_object_begin(o, name, "")) {
        sb_object_end(o, sb_buf_add_str(&o->text, json));
    }

    if (kept < total) {
        sb_object_uint(o, name, "_total", total);
    }
}


/* Values are written whole first, so that their size can be told when they do
 * not fit. */
static void
sb_object_written(sb_object_t *o, const char *name, sb_rc_t rc, sb_buf_t *b)
{
    if (rc == SB_OK) {
        sb_object_json(o, name, sb_str(b->data, b->len), 0, 0);
    } else {
        o->rc = rc;
    }

    sb_buf_free(b);
}


void
sb_object_value(sb_object_t *o, const char *name, const sb_jv_t *v)
{
    sb_buf_t  b = { .max = SIZE_MAX / 2 };

    if (v->kind == SB_JSON_STRING) {
        sb_object_str(o, name, v->text);
        return;
    }

    sb_object_written(o, name, sb_jv_canonical(&b, v), &b);
}


void
sb_object_object(sb_object_t *o, const char *name, sb_object_t *inner)
{
    sb_buf_t  b = { .max = SIZE_MAX / 2 };

    sb_object_written(o, name, sb_object_write(inner, &b), &b);
}


void
sb_object_names(sb_object_t *o, const char *name, sb_str_t *names, size_t n)
{
    size_t    i, kept, len, total;
    sb_rc_t   rc;
    sb_buf_t  b = { .max = sb_object_share(o) };

    qsort(names, n, sizeof(sb_str_t), sb_str_compare);

    rc = sb_buf_add_c(&b, '[');
    kept = 0;
    total = 0;

    for (i = 0; i < n; i++) {
        if (i && sb_eq(names[i - 1], names[i])) {
            continue;
        }

        total++;

        if (rc != SB_OK) {
            continue;
        }

        len = b.len;

        if (kept) {
            rc = sb_buf_add_c(&b, ',');
        }

        if (rc == SB_OK) {
            rc = sb_json_write_str(&b, names[i]);
        }

        if (rc == SB_OK && b.len == b.max) {
            rc = SB_LIMIT;          /* the bracket has to fit too */
        }

        if (rc == SB_OK) {
            kept++;
        } else {
            b.len = len;
        }
    }

    if (rc == SB_NOMEM) {
        o->rc = rc;

    } else if (sb_buf_add_c(&b, ']') == SB_OK) {
        sb_object_json(o, name, sb_str(b.data, b.len), kept, total);
    }

    sb_buf_free(&b);
}


/* The i-th character of a member's name and suffix, NUL behind them. */
static int
sb_object_char(const sb_object_t *o, size_t member, size_t i)
{
    size_t  n = strlen(o->members[member].name);

    return (unsigned char) (i < n ? o->members[member].name[i]
                                  : o->members[member].suffix[i - n]);
}


static int
sb_object_compare(const sb_object_t *o, size_t a, size_t b)
{
    int          x, y;
    size_t       i = 0;
    const char  *p = o->members[a].name, *q = o->members[b].name;

    while (*p != '\0' && *p == *q) {
        p++;
        q++;
        i++;
    }

    if (*p != '\0' && *q != '\0') {
        return (unsigned char) *p - (unsigned char) *q;
    }

    /* one is the beginning of the other, which their suffixes may end */

    do {
        x = sb_object_char(o, a, i);
        y = sb_object_char(o, b, i);
        i++;
    } while (x == y && x != '\0');

    return x - y;
}


static sb_rc_t
sb_object_name(sb_buf_t *b, const char *before, const sb_object_member_t *m)
{
    sb_rc_t  rc;

    rc = sb_buf_add(b, before, strlen(before));

    if (rc == SB_OK) {
        rc = sb_buf_add(b, m->name, strlen(m->name));
    }

    if (rc == SB_OK) {
        rc = sb_buf_add(b, m->suffix, strlen(m->suffix));
    }

    return rc == SB_OK ? sb_buf_add(b, "\":", 2) : rc;
}


sb_rc_t
sb_object_write(const sb_object_t *o, sb_buf_t *b)
{
    size_t   order[SB_OBJECT_MEMBERS], i, j, at;
    sb_rc_t  rc;

    if (o->rc != SB_OK) {
        return o->rc;
    }

    for (i = 0; i < o->n; i++) {
        for (j = i; j > 0 && sb_object_compare(o, i, order[j - 1]) < 0; j--) {
            order[j] = order[j - 1];
        }

        order[j] = i;
    }

    rc = sb_buf_add_c(b, '{');

    for (i = 0; rc == SB_OK && i < o->n; i++) {
        at = order[i];

        rc = sb_object_name(b, i ? ",\"" : "\"", &o->members[at]);

        if (rc == SB_OK) {
            rc = sb_buf_add(b, o->text.data + o->members[at].at,
                            o->members[at].len);
        }
    }

    return rc == SB_OK ? sb_buf_add_c(b, '}') : rc;
}
