/*
 * Keys as a tree of names.  Every place counts what stands below it, so that a
 * key of a directory finds what is in its way without looking at the rest.
 */

#include "locks_int.h"

#include <stdlib.h>


static locks_node_t *
locks_node(locks_t *t, locks_node_t *parent, sb_str_t name, sb_rc_t *rc)
{
    char           key[SB_LOCK_PATH + 64];
    size_t         len;
    locks_node_t  *n;

    memcpy(key, &parent, sizeof(parent));
    memcpy(key + sizeof(parent), name.data, name.len);
    len = sizeof(parent) + name.len;

    n = table_find(&t->nodes, key, len);

    if (n) {
        return n;
    }

    if (t->nodes.count >= t->max_reqs * LOCKS_NODES) {
        *rc = SB_LIMIT;
        return NULL;
    }

    n = calloc(1, sizeof(locks_node_t) + len);

    if (n == NULL) {
        *rc = SB_NOMEM;
        return NULL;
    }

    memcpy(n->key, key, len);
    n->len = len;

    if (table_add(&t->nodes, &n->node, n->key, len) != SB_OK) {
        free(n);
        *rc = SB_NOMEM;
        return NULL;
    }

    n->parent = parent;

    if (parent) {
        n->next = parent->child;

        if (n->next) {
            n->next->prev = n;
        }

        parent->child = n;
    }

    return n;
}


/* Frees a place that nobody needs, and those above that are left so. */
static void
locks_node_drop(locks_t *t, locks_node_t *n)
{
    locks_node_t  *parent;

    for ( /* void */ ; n && n->entries == 0 && n->child == NULL; n = parent) {

        parent = n->parent;

        if (n->prev) {
            n->prev->next = n->next;

        } else if (parent) {
            parent->child = n->next;
        }

        if (n->next) {
            n->next->prev = n->prev;
        }

        table_remove(&t->nodes, &n->node);
        free(n);
    }
}


static locks_node_t *
locks_find(locks_t *t, sb_str_t sandbox, sb_str_t path, sb_rc_t *rc)
{
    char           root[1024];
    size_t         n;
    const char    *p, *end, *slash;
    locks_node_t  *node, *next;

    if (sandbox.len >= sizeof(root) || path.len > SB_LOCK_PATH) {
        *rc = SB_LIMIT;
        return NULL;
    }

    /* relative paths have a tree of their own: nobody knows where they lie */

    root[0] = path.len && path.data[0] == '/' ? '/' : '.';
    memcpy(root + 1, sandbox.data, sandbox.len);
    node = locks_node(t, NULL, sb_str(root, sandbox.len + 1), rc);

    p = path.data;
    end = p + path.len;

    while (node && p < end) {
        slash = memchr(p, '/', (size_t) (end - p));
        n = (size_t) ((slash ? slash : end) - p);

        if (n && !(n == 1 && *p == '.')) {
            next = locks_node(t, node, sb_str(p, n), rc);

            if (next == NULL) {
                locks_node_drop(t, node);
                return NULL;
            }

            node = next;
        }

        p += n + 1;
    }

    return node;
}


sb_rc_t
locks_place(locks_t *t, locks_req_t *r, sb_str_t sandbox,
    const sb_lock_key_t *keys)
{
    size_t          i;
    sb_rc_t         rc;
    locks_entry_t  *e;

    rc = SB_OK;

    for (i = 0; i < r->nkeys; i++) {
        e = &r->keys[i];
        e->req = r;
        e->write = keys[i].write;
        e->node = locks_find(t, sandbox, keys[i].path, &rc);

        if (e->node == NULL) {
            r->nkeys = i;
            locks_unplace(t, r);
            return rc;
        }

        e->node->entries++;
        t->nkeys++;
    }

    return SB_OK;
}


void
locks_unplace(locks_t *t, locks_req_t *r)
{
    size_t          i;
    locks_entry_t  *e;

    for (i = 0; i < r->nkeys; i++) {
        e = &r->keys[i];
        e->node->entries--;
        t->nkeys--;
        locks_node_drop(t, e->node);
        e->node = NULL;
    }
}


static bool
locks_before(const locks_req_t *a, const locks_req_t *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->order < b->order);
}


static void
locks_count(locks_entry_t *e, bool more)
{
    unsigned       *count;
    locks_node_t   *n;

    for (n = e->node->parent; n; n = n->parent) {
        count = e->write ? &n->writes_below : &n->reads_below;

        if (more) {
            (*count)++;

        } else {
            (*count)--;
        }
    }
}


void
locks_link(locks_req_t *r, bool held)
{
    size_t          i;
    locks_list_t   *l;
    locks_entry_t  *e, *after;

    if (!held && r->rank == 2) {
        return;
    }

    for (i = 0; i < r->nkeys; i++) {
        e = &r->keys[i];
        l = held ? &e->node->held : &e->node->wait;
        after = l->last;

        while (!held && after && locks_before(r, after->req)) {
            after = after->prev;
        }

        e->prev = after;
        e->next = after ? after->next : l->first;

        if (e->prev) {
            e->prev->next = e;
        } else {
            l->first = e;
        }

        if (e->next) {
            e->next->prev = e;
        } else {
            l->last = e;
        }

        e->linked = true;
        locks_count(e, true);
    }
}


void
locks_unlink(locks_req_t *r)
{
    size_t          i;
    locks_list_t   *l;
    locks_entry_t  *e;

    for (i = 0; i < r->nkeys; i++) {
        e = &r->keys[i];

        if (!e->linked) {
            continue;
        }

        l = r->state == LOCKS_R_WAITING ? &e->node->wait : &e->node->held;

        if (e->prev) {
            e->prev->next = e->next;
        } else {
            l->first = e->next;
        }

        if (e->next) {
            e->next->prev = e->prev;
        } else {
            l->last = e->prev;
        }

        e->linked = false;
        locks_count(e, false);
    }
}


/* Is an entry in the way of key e, because it is held, or comes before it? */
static bool
locks_against(const locks_entry_t *e, const locks_entry_t *other, bool held)
{
    const locks_req_t  *r, *o;

    r = e->req;
    o = other->req;

    if (o == r || (!e->write && !other->write)) {
        return false;
    }

    if (r->inside && o == r->inside) {
        return false;
    }

    return held || locks_before(o, r);
}


static locks_req_t *
locks_at(const locks_entry_t *e, const locks_node_t *n)
{
    locks_entry_t  *o;

    /* from the end, or from our own place: the one just before us lets the
     * fewest wait for the same */

    o = e->node == n && e->linked && e->req->state == LOCKS_R_WAITING
        ? e->prev : n->wait.last;

    for ( /* void */ ; o; o = o->prev) {
        if (locks_against(e, o, false)) {
            return o->req;
        }
    }

    for (o = n->held.first; o; o = o->next) {
        if (locks_against(e, o, true)) {
            return o->req;
        }
    }

    return NULL;
}


static locks_req_t *
locks_below(const locks_entry_t *e, locks_node_t *top)
{
    locks_req_t   *r;
    locks_node_t  *n;

    n = top;

    for ( ;; ) {

        if (n->child
            && (n->writes_below || (e->write && n->reads_below)))
        {
            n = n->child;

        } else {
            while (n != top && n->next == NULL) {
                n = n->parent;
            }

            if (n == top) {
                return NULL;
            }

            n = n->next;
        }

        r = locks_at(e, n);

        if (r) {
            return r;
        }
    }
}


locks_req_t *
locks_blocker(locks_req_t *r, locks_entry_t **key)
{
    size_t          i;
    locks_req_t    *found;
    locks_node_t   *n;
    locks_entry_t  *e;

    for (i = 0; i < r->nkeys; i++) {
        e = &r->keys[i];
        found = NULL;

        for (n = e->node; n && found == NULL; n = n->parent) {
            found = locks_at(e, n);
        }

        if (found == NULL) {
            found = locks_below(e, e->node);
        }

        if (found) {
            *key = e;
            return found;
        }
    }

    return NULL;
}


void
locks_path(char *dst, size_t size, const locks_node_t *n)
{
    size_t               len, at;
    const locks_node_t  *p, *root;

    /* how long it will be */
    len = 0;

    for (p = n; p->parent; p = p->parent) {
        len += p->len - sizeof(p) + 1;
    }

    root = p;

    if (len == 0) {
        dst[0] = root->key[sizeof(p)];
        dst[1] = '\0';
        return;
    }

    if (len + 1 > size) {
        dst[0] = '\0';
        return;
    }

    at = len;
    dst[at] = '\0';

    for (p = n; p->parent; p = p->parent) {
        at -= p->len - sizeof(p);
        memcpy(dst + at, p->key + sizeof(p), p->len - sizeof(p));
        dst[--at] = '/';
    }

    if (root->key[sizeof(p)] != '/') {
        /* a relative one has no slash before it */
        memmove(dst, dst + 1, len);
    }
}
