/* A hash table of entries that carry their own links; keys are bytes. */

#ifndef TABLE_H_INCLUDED
#define TABLE_H_INCLUDED

#include "sb.h"

typedef struct table_node_s  table_node_t;

/* First member of an entry. */
struct table_node_s {
    table_node_t  *next;
    uint64_t       hash;
    const void    *key;     /* owned by the entry, unchanged while inside */
    size_t         len;
};

typedef struct {
    table_node_t  **buckets;
    size_t          mask;
    size_t          count;
} table_t;

/* An entry with that key, or NULL. */
void *table_find(const table_t *t, const void *key, size_t len);
/* Adds an entry whose key is not inside yet.  SB_NOMEM without memory. */
sb_rc_t table_add(table_t *t, table_node_t *node, const void *key, size_t len);
void table_remove(table_t *t, table_node_t *node);
/* Calls visit for every entry; it may remove (and free) the entry it got. */
void table_each(table_t *t, void (*visit)(void *entry, void *data),
    void *data);
/* Frees the table, not the entries. */
void table_free(table_t *t);

#endif /* TABLE_H_INCLUDED */
