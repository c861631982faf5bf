/* Parsed JSON values in one arena. */

#include "json.h"

#include <stdlib.h>


#define SB_ARENA_CHUNK  4096

/* One byte of input can become a node ("[0,0,..."): this bounds the memory of
 * one document to some 30 MiB whatever the limit of its bytes is. */
#define SB_JDOC_NODES   (256 * 1024)


typedef struct sb_arena_s  sb_arena_t;

struct sb_arena_s {
    sb_arena_t  *next;
    size_t       used, size;
    _Alignas(max_align_t) char  data[];
};


/* A value while its document is being built. */
typedef struct sb_jnode_s  sb_jnode_t;

struct sb_jnode_s {
    sb_jv_t      v;             /* first: a value is its node */
    sb_jnode_t  *parent;
    sb_jnode_t  *last;
};


struct sb_jdoc_s {
    sb_arena_t  *arena;
    sb_jnode_t  *root;
    sb_jnode_t  *open;          /* innermost open container */
    sb_str_t     key;           /* of the member to come */
    size_t       nodes;
};


static void *
sb_arena_alloc(sb_jdoc_t *d, size_t n)
{
    size_t       size;
    sb_arena_t  *a = d->arena;
    const size_t align = _Alignof(max_align_t);

    n = (n + align - 1) & ~(align - 1);

    if (a == NULL || a->size - a->used < n) {
        size = n > SB_ARENA_CHUNK ? n : SB_ARENA_CHUNK;

        a = malloc(sizeof(sb_arena_t) + size);
        if (a == NULL) {
            return NULL;
        }

        a->next = d->arena;
        a->used = 0;
        a->size = size;
        d->arena = a;
    }

    a->used += n;

    return a->data + a->used - n;
}


static sb_rc_t
sb_arena_text(sb_jdoc_t *d, sb_str_t *out, sb_str_t text)
{
    char  *p;

    p = sb_arena_alloc(d, text.len + 1);
    if (p == NULL) {
        return SB_NOMEM;
    }

    if (text.len) {
        memcpy(p, text.data, text.len);
    }

    p[text.len] = '\0';
    *out = sb_str(p, text.len);

    return SB_OK;
}


static sb_rc_t
sb_jdoc_event(void *data, sb_json_event_e event, sb_str_t text, unsigned depth)
{
    sb_rc_t      rc;
    sb_jdoc_t   *d = data;
    sb_jnode_t  *node;

    (void) depth;

    switch (event) {

    case SB_JSON_KEY:
        return sb_arena_text(d, &d->key, text);

    case SB_JSON_CLOSE_OBJECT:
    case SB_JSON_CLOSE_ARRAY:
        d->open = d->open->parent;
        return SB_OK;

    default:
        break;
    }

    if (d->nodes++ == SB_JDOC_NODES) {
        return SB_LIMIT;
    }

    node = sb_arena_alloc(d, sizeof(sb_jnode_t));
    if (node == NULL) {
        return SB_NOMEM;
    }

    memset(node, 0, sizeof(*node));

    node->v.kind = event;
    node->parent = d->open;

    if (event == SB_JSON_NUMBER || event == SB_JSON_STRING) {
        rc = sb_arena_text(d, &node->v.text, text);
        if (rc != SB_OK) {
            return rc;
        }
    }

    if (d->open == NULL) {
        d->root = node;

    } else {
        if (d->open->v.kind == SB_JSON_OPEN_OBJECT) {
            node->v.key = d->key;
        }

        if (d->open->last) {
            d->open->last->v.next = &node->v;
        } else {
            d->open->v.child = &node->v;
        }

        d->open->last = node;
    }

    if (event == SB_JSON_OPEN_OBJECT || event == SB_JSON_OPEN_ARRAY) {
        d->open = node;
    }

    return SB_OK;
}


sb_jdoc_t *
sb_jdoc_parse(sb_str_t text, const sb_json_limits_t *limits, sb_rc_t *rc)
{
    sb_rc_t     r = SB_NOMEM;
    sb_json_t  *j = NULL;
    sb_jdoc_t  *d;

    d = calloc(1, sizeof(sb_jdoc_t));

    if (d) {
        j = sb_json_new(sb_jdoc_event, d, limits);
    }

    if (j) {
        r = sb_json_feed(j, text.data, text.len);

        if (r >= SB_OK) {
            r = sb_json_finish(j);
        }

        sb_json_free(j);
    }

    if (rc) {
        *rc = r;
    }

    if (r != SB_OK) {
        sb_jdoc_free(d);
        return NULL;
    }

    return d;
}


const sb_jv_t *
sb_jdoc_root(const sb_jdoc_t *d)
{
    return &d->root->v;
}


void
sb_jdoc_free(sb_jdoc_t *d)
{
    sb_arena_t  *a, *next;

    if (d == NULL) {
        return;
    }

    for (a = d->arena; a; a = next) {
        next = a->next;
        free(a);
    }

    free(d);
}


const sb_jv_t *
sb_jv_get(const sb_jv_t *v, const char *key)
{
    sb_str_t        name;
    const sb_jv_t  *c, *found = NULL;

    if (v == NULL || v->kind != SB_JSON_OPEN_OBJECT) {
        return NULL;
    }

    name = sb_str(key, strlen(key));

    for (c = v->child; c; c = c->next) {
        if (sb_eq(c->key, name)) {
            found = c;
        }
    }

    return found;
}


sb_str_t
sb_jv_str(const sb_jv_t *v, const char *key)
{
    const sb_jv_t  *m = sb_jv_get(v, key);

    return m && m->kind == SB_JSON_STRING ? m->text : sb_str("", 0);
}


bool
sb_jv_int(const sb_jv_t *v, int64_t *out)
{
    bool      minus;
    size_t    i;
    uint64_t  n = 0, digit, max;

    if (v == NULL || v->kind != SB_JSON_NUMBER || v->text.len == 0) {
        return false;
    }

    minus = v->text.data[0] == '-';
    max = minus ? (uint64_t) INT64_MAX + 1 : (uint64_t) INT64_MAX;

    for (i = minus; i < v->text.len; i++) {
        if (v->text.data[i] < '0' || v->text.data[i] > '9') {
            return false;
        }

        digit = (uint64_t) (v->text.data[i] - '0');

        if (n > (max - digit) / 10) {
            return false;
        }

        n = n * 10 + digit;
    }

    if (minus) {
        *out = n ? -(int64_t) (n - 1) - 1 : 0;
    } else {
        *out = (int64_t) n;
    }

    return true;
}
