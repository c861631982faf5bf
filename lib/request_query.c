/* The query of a request. */

#include "request_internal.h"

#include <stdlib.h>


typedef struct {
    sb_str_t  name, value;
    bool      used;
} sb_pair_t;

typedef struct {
    sb_pair_t  *pairs;
    size_t      n;
    sb_pair_t   few[16];
} sb_pairs_t;


/* On ports of users the query is theirs: what does not decode is passed on and
 * not named. */
static bool
sb_query_lenient(const sb_request_ctx_t *c)
{
    return c->route->surface == SB_SURFACE_PORT
           || (c->r->op->flags & SB_OPF_UNKNOWN);
}


static sb_rc_t
sb_query_pair(sb_request_ctx_t *c, sb_pairs_t *p, char **pos, sb_str_t name,
    sb_str_t value)
{
    size_t      n, v;
    sb_pair_t  *pair;

    if (sb_query_decode(*pos, &n, name) != SB_OK
        || sb_query_decode(*pos + n, &v, value) != SB_OK)
    {
        if (sb_query_lenient(c)) {
            return SB_OK;
        }

        return sb_request_refuse(c, SB_AMBIGUOUS, "The query parameter "
                                 "\"%.*s\" is not encoded in the one way that "
                                 "everybody reads alike: encode it with %%XX.",
                                 name);
    }

    pair = &p->pairs[p->n++];

    pair->name = sb_str(*pos, n);
    pair->value = sb_str(*pos + n, v);
    pair->used = false;

    *pos += n + v;

    return SB_OK;
}


static sb_rc_t
sb_query_read(sb_request_ctx_t *c, sb_pairs_t *p)
{
    char      *pos;
    size_t     i, n = 1;
    sb_rc_t    rc = SB_OK;
    sb_str_t   query = c->route->query, name, value;

    for (i = 0; i < query.len; i++) {
        n += query.data[i] == '&';
    }

    if (n > sizeof(p->few) / sizeof(p->few[0])) {
        p->pairs = malloc(n * sizeof(sb_pair_t));

        if (p->pairs == NULL) {
            return SB_NOMEM;
        }
    }

    pos = c->mem->query;

    while (rc == SB_OK && p->n < n && sb_query_next(&query, &name, &value)) {
        if (name.len || value.len) {
            rc = sb_query_pair(c, p, &pos, name, value);
        }
    }

    return rc;
}


/* All values of a parameter, as an array. */
static sb_rc_t
sb_query_values(sb_request_ctx_t *c, sb_pairs_t *p, const char *as,
    sb_str_t name)
{
    bool       files;
    size_t     i, kept = 0, total = 0, len;
    sb_rc_t    rc, written;
    sb_buf_t   b = { .max = c->out.room / 2 };

    files = (c->r->op->flags & SB_OPF_PATHS) && sb_eq(name, sb_lit("path"));

    rc = SB_OK;
    written = sb_buf_add_c(&b, '[');

    for (i = 0; rc == SB_OK && i < p->n; i++) {
        if (!sb_eq(p->pairs[i].name, name)) {
            continue;
        }

        p->pairs[i].used = true;
        total++;

        if (files) {
            rc = sb_request_file(c, p->pairs[i].value, sb_str("", 0), -1);
        }

        len = b.len;

        if (written == SB_OK && kept) {
            written = sb_buf_add_c(&b, ',');
        }

        if (written == SB_OK) {
            written = sb_json_write_str(&b, p->pairs[i].value);
        }

        if (written == SB_OK && b.len < b.max) {
            kept++;

        } else {
            /* no more room; the array stays well-formed */
            b.len = len;
            written = written == SB_NOMEM ? SB_NOMEM : SB_LIMIT;
        }
    }

    if (written == SB_NOMEM) {
        rc = SB_NOMEM;

    } else if (total && sb_buf_add_c(&b, ']') == SB_OK) {
        sb_object_json(&c->out, as, sb_str(b.data, b.len), kept, total);
    }

    sb_buf_free(&b);

    return rc;
}


/* The one value that upstream takes: execd the first, Python the last. */
static sb_rc_t
sb_query_value(sb_request_ctx_t *c, sb_pairs_t *p, const char *as,
    sb_str_t name)
{
    size_t            i;
    const sb_pair_t  *found = NULL;

    for (i = 0; i < p->n; i++) {
        if (!sb_eq(p->pairs[i].name, name)) {
            continue;
        }

        p->pairs[i].used = true;

        if (found == NULL || c->route->surface == SB_SURFACE_LIFECYCLE) {
            found = &p->pairs[i];
        }
    }

    if (found == NULL) {
        return SB_OK;
    }

    sb_object_str(&c->out, as, found->value);

    if ((c->r->op->flags & SB_OPF_PATH) && sb_eq(name, sb_lit("path"))) {
        return sb_request_file(c, found->value, sb_str("", 0), -1);
    }

    return SB_OK;
}


/* Signed endpoints: that it was asked for, not until when. */
static void
sb_query_signed(sb_request_ctx_t *c, sb_pairs_t *p)
{
    size_t  i;
    bool    found = false;

    for (i = 0; i < p->n; i++) {
        if (sb_eq(p->pairs[i].name, sb_lit("expires"))) {
            p->pairs[i].used = true;
            found = true;
        }
    }

    if (found) {
        c->r->has_expires = true;
        sb_object_bool(&c->out, "signed", true);
    }
}


static sb_rc_t
sb_query_rule(sb_request_ctx_t *c, sb_pairs_t *p)
{
    bool         all;
    sb_rc_t      rc = SB_OK;
    sb_str_t     name;
    const char  *q;

    for (q = c->rule->query; rc == SB_OK && *q; q += name.len + 1) {
        all = *q == '*';
        q += all;
        name = sb_str(q, strlen(q));

        if (all) {
            rc = sb_query_values(c, p, strcmp(q, "path") == 0 ? "paths" : q,
                                 name);
        } else {
            rc = sb_query_value(c, p, q, name);
        }
    }

    return rc;
}


/* What is not ours to understand: path and the names in the query. */
static sb_rc_t
sb_query_names(sb_request_ctx_t *c, sb_pairs_t *p)
{
    size_t     i;
    sb_str_t  *names;

    sb_object_str(&c->out, "path", c->route->path);

    if (c->route->surface == SB_SURFACE_PORT) {
        sb_object_uint(&c->out, "port", "", c->route->port);
    }

    if (p->n == 0) {
        return SB_OK;
    }

    names = malloc(p->n * sizeof(sb_str_t));
    if (names == NULL) {
        return SB_NOMEM;
    }

    for (i = 0; i < p->n; i++) {
        names[i] = p->pairs[i].name;
    }

    sb_object_names(&c->out, "query_names", names, p->n);

    free(names);

    return SB_OK;
}


sb_rc_t
sb_request_query(sb_request_ctx_t *c)
{
    size_t      i;
    sb_rc_t     rc;
    sb_pairs_t  p;

    p.pairs = p.few;
    p.n = 0;

    rc = c->route->query.len ? sb_query_read(c, &p) : SB_OK;

    if (rc == SB_OK && sb_query_lenient(c)) {
        rc = sb_query_names(c, &p);

    } else if (rc == SB_OK) {
        if (sb_op_index(c->r->op) == SB_OP_ENDPOINT_GET) {
            sb_query_signed(c, &p);
        }

        rc = sb_query_rule(c, &p);

        for (i = 0; rc == SB_OK && i < p.n; i++) {
            if (!p.pairs[i].used) {
                sb_request_drop(c, "?", p.pairs[i].name);
            }
        }
    }

    if (p.pairs != p.few) {
        free(p.pairs);
    }

    return rc;
}
