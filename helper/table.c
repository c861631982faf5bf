#include "table.h"

#include <stdlib.h>


/* FNV-1a with a final mix: keys are ids of our own or bounded in number, so
 * that chosen collisions buy nothing. */
static uint64_t
table_hash(const void *key, size_t len)
{
    uint64_t        h;
    const uint8_t  *p, *last;

    h = 0xcbf29ce484222325u;

    for (p = key, last = p + len; p < last; p++) {
        h = (h ^ *p) * 0x100000001b3u;
    }

    h ^= h >> 32;

    return h;
}


void *
table_find(const table_t *t, const void *key, size_t len)
{
    uint64_t       h;
    table_node_t  *n;

    if (t->buckets == NULL) {
        return NULL;
    }

    h = table_hash(key, len);

    for (n = t->buckets[h & t->mask]; n; n = n->next) {
        if (n->hash == h && n->len == len && memcmp(n->key, key, len) == 0) {
            return n;
        }
    }

    return NULL;
}


static sb_rc_t
table_grow(table_t *t)
{
    size_t          size, i;
    table_node_t   *n, *next, **buckets;

    size = t->buckets ? (t->mask + 1) * 2 : 64;

    buckets = calloc(size, sizeof(table_node_t *));
    if (buckets == NULL) {
        return t->buckets ? SB_OK : SB_NOMEM;
    }

    for (i = 0; t->buckets && i <= t->mask; i++) {
        for (n = t->buckets[i]; n; n = next) {
            next = n->next;
            n->next = buckets[n->hash & (size - 1)];
            buckets[n->hash & (size - 1)] = n;
        }
    }

    free(t->buckets);
    t->buckets = buckets;
    t->mask = size - 1;

    return SB_OK;
}


sb_rc_t
table_add(table_t *t, table_node_t *node, const void *key, size_t len)
{
    if ((t->buckets == NULL || t->count > t->mask)
        && table_grow(t) != SB_OK)
    {
        return SB_NOMEM;
    }

    node->key = key;
    node->len = len;
    node->hash = table_hash(key, len);
    node->next = t->buckets[node->hash & t->mask];
    t->buckets[node->hash & t->mask] = node;
    t->count++;

    return SB_OK;
}


void
table_remove(table_t *t, table_node_t *node)
{
    table_node_t  **p;

    for (p = &t->buckets[node->hash & t->mask]; *p; p = &(*p)->next) {
        if (*p == node) {
            *p = node->next;
            t->count--;
            return;
        }
    }
}


void
table_each(table_t *t, void (*visit)(void *entry, void *data), void *data)
{
    size_t         i;
    table_node_t  *n, *next;

    for (i = 0; t->buckets && i <= t->mask; i++) {
        for (n = t->buckets[i]; n; n = next) {
            next = n->next;
            visit(n, data);
        }
    }
}


void
table_free(table_t *t)
{
    free(t->buckets);
    t->buckets = NULL;
    t->mask = 0;
    t->count = 0;
}
