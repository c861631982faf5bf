/*
 * The JSON body of a request.  Upstreams read it leniently and not alike
 * (reference/opensandbox-api.md 9.3): what two of them would read differently
 * is refused, the rest is recorded by the table of request_table.c.
 */

#include "request_internal.h"

#include "path.h"
#include "scan.h"

#include <stdio.h>
#include <stdlib.h>


#define SB_BODY_FEW      16         /* members compared pair by pair */
#define SB_BODY_KNOWN    32         /* members of one table at most */
#define SB_BODY_PREFIX   64
#define SB_BODY_REDACTED sb_lit("[redacted]")


/* One object with known members while it is read. */
typedef struct {
    sb_object_t         *out;
    const sb_member_t   *members;
    const char          *prefix;    /* of the names that are dropped */
    uint64_t             seen;      /* bit n: members[n] was there */
    sb_str_t             path, old_path;
    int32_t              mode;
    bool                 has_path, has_old_path;
} sb_body_object_t;


static sb_rc_t sb_body_object(sb_request_ctx_t *c, sb_body_object_t *o,
    const sb_jv_t *v);


/* --- names ---------------------------------------------------------------- */

static sb_rc_t
sb_body_twice(sb_request_ctx_t *c, sb_str_t name)
{
    return sb_request_refuse(c, SB_AMBIGUOUS, "The JSON body has the member "
                             "\"%.*s\" twice in one object: send it once.",
                             name);
}


static sb_rc_t
sb_body_duplicates(sb_request_ctx_t *c, const sb_jv_t *v)
{
    size_t          i, n = 0;
    sb_rc_t         rc = SB_OK;
    sb_str_t       *keys;
    const sb_jv_t  *a, *b;

    for (a = v->child; a; a = a->next) {
        n++;
    }

    if (n <= SB_BODY_FEW) {
        for (a = v->child; a; a = a->next) {
            for (b = a->next; b; b = b->next) {
                if (sb_eq(a->key, b->key)) {
                    return sb_body_twice(c, a->key);
                }
            }
        }

        return SB_OK;
    }

    keys = malloc(n * sizeof(sb_str_t));
    if (keys == NULL) {
        return SB_NOMEM;
    }

    for (a = v->child, i = 0; a; a = a->next) {
        keys[i++] = a->key;
    }

    qsort(keys, n, sizeof(sb_str_t), sb_str_compare);

    for (i = 1; i < n; i++) {
        if (sb_eq(keys[i - 1], keys[i])) {
            rc = sb_body_twice(c, keys[i]);
            break;
        }
    }

    free(keys);

    return rc;
}


const sb_jv_t *
sb_request_next(sb_request_walk_t *w, const sb_jv_t *v)
{
    if (v->child) {
        w->stack[w->depth++] = v;
        return v->child;
    }

    while (w->depth && v->next == NULL) {
        v = w->stack[--w->depth];
    }

    return w->depth ? v->next : NULL;
}


/* No object anywhere in the body may have a member twice (C149). */
static sb_rc_t
sb_body_unique(sb_request_ctx_t *c, const sb_jv_t *root)
{
    sb_rc_t             rc;
    const sb_jv_t      *v;
    sb_request_walk_t   walk = { .depth = 0 };

    for (v = root; v; v = sb_request_next(&walk, v)) {
        if (v->kind == SB_JSON_OPEN_OBJECT) {
            rc = sb_body_duplicates(c, v);
            if (rc != SB_OK) {
                return rc;
            }
        }
    }

    return SB_OK;
}


static bool
sb_body_ascii(sb_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if ((uint8_t) s.data[i] >= 0x80) {
            return false;
        }
    }

    return true;
}


/* snapshotId -> snapshot_id, as the lifecycle server accepts it. */
static sb_str_t
sb_body_snake(char *buf, size_t size, const char *name)
{
    size_t  n = 0;

    for ( /* void */ ; *name && n + 2 < size; name++) {
        if (*name >= 'A' && *name <= 'Z') {
            buf[n++] = '_';
            buf[n++] = (char) (*name | 0x20);
        } else {
            buf[n++] = *name;
        }
    }

    return sb_str(buf, n);
}


/*
 * Finds a member by its exact name, or by its alias.  A name that upstream may
 * take for a known one though it is not equal is refused: Go ignores case, also
 * of some letters outside ASCII (C148).
 */
static sb_rc_t
sb_body_find(sb_request_ctx_t *c, const sb_member_t *members, sb_str_t key,
    size_t *found)
{
    char      buf[64];
    size_t    i;
    sb_str_t  name, alias;

    *found = SB_BODY_KNOWN;

    for (i = 0; members[i].name; i++) {
        name = sb_str(members[i].name, strlen(members[i].name));
        alias = name;

        if (c->route->surface == SB_SURFACE_LIFECYCLE) {
            alias = sb_body_snake(buf, sizeof(buf), members[i].name);
        }

        if (sb_eq(key, name) || sb_eq(key, alias)) {
            *found = i;
            return SB_OK;
        }

        if (sb_ieq(key, name) || sb_ieq(key, alias)) {
            return sb_request_refuse(c, SB_AMBIGUOUS, "The member \"%.*s\" of "
                                     "the JSON body differs from a known one "
                                     "only in letter case: write it as "
                                     "documented.", key);
        }
    }

    if (i && !sb_body_ascii(key)) {
        return sb_request_refuse(c, SB_AMBIGUOUS, "The member \"%.*s\" of the "
                                 "JSON body has letters outside ASCII, which "
                                 "may be taken for another member: remove it.",
                                 key);
    }

    return SB_OK;
}


/* --- values --------------------------------------------------------------- */

/*
 * Sorted names: the keys of an object, or what the elements of an array are
 * called (the `name` of objects, texts themselves if these are names).  A value
 * of another kind
 * may hold secrets: it is dropped.
 */
static sb_rc_t
sb_body_names(sb_request_ctx_t *c, sb_body_object_t *o, const char *as,
    const sb_jv_t *v, sb_json_event_e kind, bool texts, bool *ok)
{
    size_t          n = 0;
    sb_str_t       *names, name;
    const sb_jv_t  *m;

    *ok = v->kind == kind;

    if (!*ok) {
        return SB_OK;
    }

    for (m = v->child; m; m = m->next) {
        n++;
    }

    names = malloc((n ? n : 1) * sizeof(sb_str_t));
    if (names == NULL) {
        return SB_NOMEM;
    }

    for (m = v->child, n = 0; m; m = m->next) {
        if (kind == SB_JSON_OPEN_OBJECT) {
            names[n++] = m->key;
            continue;
        }

        name = m->kind == SB_JSON_STRING ? m->text : sb_jv_str(m, "name");

        if (name.len && (texts || m->kind != SB_JSON_STRING)) {
            names[n++] = name;
        }
    }

    if (kind == SB_JSON_OPEN_OBJECT || !texts) {
        c->r->redacted += n;
    }

    sb_object_names(o->out, as, names, n);

    free(names);

    return SB_OK;
}


static sb_rc_t
sb_body_size(sb_request_ctx_t *c, sb_body_object_t *o, const char *as,
    const sb_jv_t *v)
{
    sb_rc_t    rc;
    sb_buf_t   b = { .max = SIZE_MAX / 2 };
    sb_scan_t  s = { .found = 0 };

    if (v->kind == SB_JSON_STRING) {
        if (strcmp(as, "new") == 0) {
            sb_scan_feed(&s, v->text.data, v->text.len);
            c->r->found |= s.found;
        }

        sb_object_uint(o->out, as, "_bytes", v->text.len);
        return SB_OK;
    }

    rc = sb_jv_canonical(&b, v);

    if (rc == SB_OK) {
        sb_object_uint(o->out, as, "_bytes", b.len);
    }

    sb_buf_free(&b);

    return rc;
}


static void
sb_body_metadata(sb_request_ctx_t *c, const sb_jv_t *v)
{
    c->r->metadata = v->kind == SB_JSON_OPEN_OBJECT ? v : NULL;
    c->r->name = sb_jv_str(v, "agent_sandbox.name");

    if (c->r->name.len == 0) {
        c->r->name = sb_jv_str(v, "sandbox_name");
    }

    c->r->instance = sb_jv_str(v, "sandbox_instance_id");
}


/* Milliseconds; none when it is 0, no integer, or absurd. */
static void
sb_body_timeout(sb_request_ctx_t *c, const sb_jv_t *v, int64_t unit)
{
    int64_t  n;

    if (sb_jv_int(v, &n) && n > 0 && n <= INT64_MAX / unit) {
        c->r->timeout_ms = n * unit;
    }
}


static sb_rc_t
sb_body_flush_file(sb_request_ctx_t *c, sb_body_object_t *o)
{
    sb_rc_t  rc = SB_OK;

    if (o->has_path || o->has_old_path) {
        rc = sb_request_file(c, o->path, o->old_path, o->mode);
    }

    o->has_path = false;
    o->has_old_path = false;
    o->path = sb_str("", 0);
    o->old_path = sb_str("", 0);

    return rc;
}


static sb_rc_t
sb_body_paths(sb_request_ctx_t *c, const sb_jv_t *v)
{
    sb_rc_t         rc = SB_OK;
    const sb_jv_t  *m;

    for (m = v->child; rc == SB_OK && m; m = m->next) {
        if (m->kind == SB_JSON_STRING) {
            rc = sb_request_file(c, m->text, sb_str("", 0), -1);
        }
    }

    return rc;
}


/* --- containers ----------------------------------------------------------- */

static void
sb_body_prefix(char buf[SB_BODY_PREFIX], const char *outer, const char *name,
    const char *tail)
{
    (void) snprintf(buf, SB_BODY_PREFIX, "%s%s%s", outer, name, tail);
}


/* An object of its own inside of the record. */
static sb_rc_t
sb_body_inner(sb_request_ctx_t *c, sb_object_t *out, const char *prefix,
    const sb_member_t *members, const sb_jv_t *v, sb_str_t *path)
{
    sb_body_object_t  o = { .out = out, .members = members, .prefix = prefix,
                            .path = { "", 0 }, .old_path = { "", 0 },
                            .mode = -1 };

    if (path) {
        o.path = *path;
        o.has_path = true;
    }

    return sb_body_object(c, &o, v);
}


/* Writes "key": before the value of a map. */
static sb_rc_t
sb_body_key(sb_buf_t *b, const sb_str_t *key)
{
    sb_rc_t  rc;

    if (key == NULL) {
        return SB_OK;
    }

    rc = sb_json_write_str(b, *key);

    return rc == SB_OK ? sb_buf_add_c(b, ':') : rc;
}


/* One element of an array or a map; `kept` counts those that fit. */
static sb_rc_t
sb_body_element(sb_request_ctx_t *c, sb_buf_t *b, const char *prefix,
    const sb_member_t *members, const sb_jv_t *v, bool map, size_t *kept)
{
    bool         object = v->kind == SB_JSON_OPEN_OBJECT;
    size_t       len = b->len;
    sb_rc_t      rc = SB_OK, written;
    sb_str_t     key = v->key;
    sb_object_t  inner;

    sb_object_init(&inner, b->max - b->len);

    if (object) {
        rc = sb_body_inner(c, &inner, prefix, members, v, map ? &key : NULL);

    } else if (map) {
        /* upstream will refuse it or take it for an empty object */
        rc = sb_request_file(c, key, sb_str("", 0), -1);
    }

    written = len > 1 ? sb_buf_add_c(b, ',') : SB_OK;

    if (written == SB_OK) {
        written = sb_body_key(b, map ? &key : NULL);
    }

    if (written == SB_OK) {
        written = object ? sb_object_write(&inner, b)
                         : sb_buf_add(b, "null", 4);
    }

    sb_object_free(&inner);

    if (written == SB_OK && b->len < b->max) {
        (*kept)++;

    } else {
        b->len = len;
        rc = rc == SB_OK && written == SB_NOMEM ? SB_NOMEM : rc;
    }

    return rc;
}


static int
sb_body_order(const void *one, const void *two)
{
    const sb_jv_t *const  *a = one, *const *b = two;

    return sb_str_compare(&(*a)->key, &(*b)->key);
}


/* An array of objects, or a map from paths to objects. */
static sb_rc_t
sb_body_array(sb_request_ctx_t *c, sb_object_t *out, const char *as,
    const char *prefix, const sb_member_t *members, const sb_jv_t *v, bool map)
{
    size_t           i, n = 0, kept = 0;
    sb_rc_t          rc;
    sb_buf_t         b = { .max = out->room / 2 };
    const sb_jv_t   *m, **items;

    for (m = v->child; m; m = m->next) {
        n++;
    }

    items = malloc((n ? n : 1) * sizeof(sb_jv_t *));
    if (items == NULL) {
        return SB_NOMEM;
    }

    for (m = v->child, n = 0; m; m = m->next) {
        items[n++] = m;
    }

    if (map) {
        qsort(items, n, sizeof(sb_jv_t *), sb_body_order);
    }

    rc = sb_buf_add_c(&b, map ? '{' : '[') == SB_NOMEM ? SB_NOMEM : SB_OK;

    for (i = 0; rc == SB_OK && i < n; i++) {
        rc = sb_body_element(c, &b, prefix, members, items[i], map, &kept);
    }

    if (b.len && sb_buf_add_c(&b, map ? '}' : ']') == SB_OK) {
        sb_object_json(out, as, sb_str(b.data, b.len), kept, n);
    }

    sb_buf_free(&b);
    free(items);

    return rc;
}


/* One known member; `ok` false: not of the type it should have. */
static sb_rc_t
sb_body_member(sb_request_ctx_t *c, sb_body_object_t *o, const sb_member_t *m,
    const sb_jv_t *v, bool *ok)
{
    char          prefix[SB_BODY_PREFIX];
    int64_t       n;
    sb_rc_t       rc = SB_OK;
    sb_object_t   inner;
    const char   *as = m->as ? m->as : m->name;
    bool          text = v->kind == SB_JSON_STRING;

    *ok = true;

    switch (m->kind) {

    case SB_M_COMMAND:
        c->r->command = text ? v->text : c->r->command;
        c->r->has_command |= text && (c->r->op->flags & SB_OPF_COMMAND);

        break;

    case SB_M_CWD:
        c->r->cwd = text ? v->text : c->r->cwd;
        break;

    case SB_M_TIMEOUT_MS:
        sb_body_timeout(c, v, 1);
        break;

    case SB_M_TIMEOUT_S:
        sb_body_timeout(c, v, 1000);
        break;

    case SB_M_BACKGROUND:
        c->r->background = v->kind == SB_JSON_TRUE;
        break;

    case SB_M_LANGUAGE:
        c->language = text ? v->text : c->language;
        break;

    case SB_M_IMAGE:
        c->r->image = text ? v->text : c->r->image;
        c->r->has_image = text;
        break;

    case SB_M_METADATA:
        sb_body_metadata(c, v);
        break;

    case SB_M_MODE:
        o->mode = sb_jv_int(v, &n) ? sb_mode(n) : SB_MODE_ODD;

        break;

    case SB_M_PATH:
        if (text) {
            rc = o->has_path ? sb_body_flush_file(c, o) : SB_OK;
            o->path = v->text;
            o->has_path = true;
        }

        break;

    case SB_M_OLD_PATH:
        o->old_path = text ? v->text : o->old_path;
        o->has_old_path = text;
        break;

    case SB_M_PATHS:
        rc = sb_body_paths(c, v);
        break;

    case SB_M_KEEP:
        break;

    case SB_M_NAMES:
        return sb_body_names(c, o, as, v, SB_JSON_OPEN_OBJECT, true, ok);

    case SB_M_LIST:
        return sb_body_names(c, o, as, v, SB_JSON_OPEN_ARRAY, true, ok);

    case SB_M_NAMED:
        return sb_body_names(c, o, as, v, SB_JSON_OPEN_ARRAY, false, ok);

    case SB_M_SIZE:
        return sb_body_size(c, o, as, v);

    case SB_M_SECRET:
        c->r->redacted++;
        sb_object_str(o->out, as, SB_BODY_REDACTED);
        return SB_OK;

    case SB_M_OBJECT:
        *ok = v->kind == SB_JSON_OPEN_OBJECT;

        if (!*ok) {
            return SB_OK;
        }

        sb_body_prefix(prefix, o->prefix, m->name, ".");
        sb_object_init(&inner, o->out->room / 2);
        rc = sb_body_inner(c, &inner, prefix, m->sub, v, NULL);
        sb_object_object(o->out, as, &inner);
        sb_object_free(&inner);

        return rc;

    case SB_M_FLAT:
        *ok = v->kind == SB_JSON_OPEN_OBJECT;
        sb_body_prefix(prefix, o->prefix, m->name, ".");

        return *ok ? sb_body_inner(c, o->out, prefix, m->sub, v, NULL) : SB_OK;

    case SB_M_ARRAY:
        *ok = v->kind == SB_JSON_OPEN_ARRAY;
        sb_body_prefix(prefix, o->prefix, m->name, "[].");

        return *ok ? sb_body_array(c, o->out, as, prefix, m->sub, v, false)
                   : SB_OK;

    case SB_M_MAP:
        *ok = v->kind == SB_JSON_OPEN_OBJECT;

        return *ok ? sb_body_array(c, o->out, as, o->prefix, m->sub, v, true)
                   : SB_OK;
    }

    sb_object_value(o->out, as, v);

    return rc;
}


static sb_rc_t
sb_body_object(sb_request_ctx_t *c, sb_body_object_t *o, const sb_jv_t *v)
{
    bool            ok;
    size_t          i;
    sb_rc_t         rc = SB_OK;
    const sb_jv_t  *m;

    for (m = v->child; rc == SB_OK && m; m = m->next) {
        rc = sb_body_find(c, o->members, m->key, &i);

        if (rc != SB_OK) {
            return rc;
        }

        if (i == SB_BODY_KNOWN) {
            /* what is misplaced in a vault may be a value, also as a name */

            sb_request_drop(c, o->prefix,
                            strncmp(c->route->op->name, "vault.", 6) == 0
                            ? sb_lit("(unknown)") : m->key);
            continue;
        }

        /* the same member under its two names */

        if (o->seen >> i & 1) {
            return sb_body_twice(c, m->key);
        }

        o->seen |= (uint64_t) 1 << i;

        if (m->kind == SB_JSON_NULL) {
            continue;
        }

        rc = sb_body_member(c, o, &o->members[i], m, &ok);

        if (rc == SB_OK && !ok) {
            sb_request_drop(c, o->prefix, m->key);
        }
    }

    return rc == SB_OK ? sb_body_flush_file(c, o) : rc;
}


static sb_rc_t
sb_body_refused(sb_request_ctx_t *c, sb_rc_t rc)
{
    const char  *why;

    switch (rc) {

    case SB_AMBIGUOUS:
        why = "Bytes follow the JSON value of the body: send one value only."
              "%.0s";
        break;

    case SB_LIMIT:
        why = "The JSON body is nested deeper than 64 levels or has too many "
              "values: split the request.%.0s";
        break;

    case SB_ERROR:
        why = "The body is not strict JSON in UTF-8: correct it.%.0s";
        break;

    default:
        return rc;
    }

    return sb_request_refuse(c, rc, why, sb_str("", 0));
}


sb_rc_t
sb_request_body(sb_request_ctx_t *c, sb_str_t body)
{
    bool              ok;
    sb_rc_t           rc;
    sb_member_t       whole;
    const sb_jv_t    *root;
    sb_body_object_t  o = { .out = &c->out, .prefix = "", .path = { "", 0 },
                            .old_path = { "", 0 }, .mode = -1 };
    sb_json_limits_t  limits = { SB_REQUEST_DEPTH, body.len };

    c->mem->doc = sb_jdoc_parse(body, &limits, &rc);

    if (c->mem->doc == NULL) {
        return sb_body_refused(c, rc);
    }

    root = sb_jdoc_root(c->mem->doc);

    rc = sb_body_unique(c, root);

    if (rc != SB_OK || (c->rule->members == NULL && c->rule->as == NULL)) {
        return rc;
    }

    if (c->rule->as == NULL && root->kind == SB_JSON_OPEN_OBJECT) {
        o.members = c->rule->members;
        return sb_body_object(c, &o, root);
    }

    /* the body as a whole is recorded under a name */

    ok = false;

    if (c->rule->as) {
        whole.name = c->rule->as;
        whole.kind = c->rule->kind;
        whole.as = NULL;
        whole.sub = c->rule->members;

        rc = sb_body_member(c, &o, &whole, root, &ok);
    }

    if (rc == SB_OK && !ok) {
        sb_request_drop(c, "", sb_lit("(body)"));
    }

    return rc;
}
