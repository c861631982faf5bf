/*
 * The shared zone of learnt addresses.
 *
 * When it is full the sandboxes unused for the longest time make room; without
 * an address the server proxy serves, so nothing fails.
 *
 * An address has exactly one sandbox: upstream reuses ports, so the last one
 * it was named for has it and all others lose it at once.  A second tree finds
 * who has an address.
 */


#include "ngx_http_sandbox_zone.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_ZONE_LAYOUT  3

#define NGX_HTTP_SANDBOX_ZONE_PORTS   8
#define NGX_HTTP_SANDBOX_ZONE_EVICT   32


static ngx_int_t ngx_http_sandbox_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_http_sandbox_zone_node_t *ngx_http_sandbox_zone_lookup(
    ngx_http_sandbox_zone_t *zone, sb_str_t sandbox);
static void *ngx_http_sandbox_zone_alloc(ngx_http_sandbox_zone_t *zone,
    size_t size, ngx_http_sandbox_zone_node_t *keep);
static void ngx_http_sandbox_zone_evict(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn);
static ngx_http_sandbox_zone_port_t *ngx_http_sandbox_zone_replace(
    ngx_http_sandbox_zone_t *zone, ngx_http_sandbox_zone_node_t *sn,
    ngx_http_sandbox_zone_port_t *old, uint32_t port,
    ngx_http_sandbox_named_t *named);
static void ngx_http_sandbox_zone_own(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_port_t *e);
static ngx_int_t ngx_http_sandbox_zone_cmp(ngx_http_sandbox_zone_port_t *a,
    ngx_http_sandbox_zone_port_t *b);
static void ngx_http_sandbox_zone_insert_node(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_sandbox_zone_insert_owner(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_sandbox_zone_insert(ngx_rbtree_node_t **p,
    ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel);


char *
ngx_http_sandbox_endpoint_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_str_t                 name;
    ngx_http_sandbox_zone_t  *zone;

    if (mcf->zone_size < 8 * ngx_pagesize) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox_endpoint_zone\" of %uz bytes is too "
                           "small, give it at least %uz",
                           mcf->zone_size, 8 * ngx_pagesize);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&name, "sandbox_endpoints");

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_zone_t));
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->zone = ngx_shared_memory_add(cf, &name, mcf->zone_size,
                                      &ngx_http_sandbox_module);
    if (mcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->zone->init = ngx_http_sandbox_zone_init;
    mcf->zone->data = zone;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_sandbox_zone_t  *ozone = data;

    size_t                       len;
    ngx_http_sandbox_zone_sh_t  *sh;
    ngx_http_sandbox_zone_t     *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (ozone || shm_zone->shm.exists) {

        zone->sh = ozone ? ozone->sh : zone->shpool->data;

        /* the old workers go on using it, so it cannot be laid out anew */

        if (zone->sh == NULL
            || zone->sh->layout != NGX_HTTP_SANDBOX_ZONE_LAYOUT)
        {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "the zone \"%V\" was laid out by another version of "
                          "this module, restart nginx instead of reloading it",
                          &shm_zone->shm.name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    sh = ngx_slab_calloc(zone->shpool, sizeof(ngx_http_sandbox_zone_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    sh->layout = NGX_HTTP_SANDBOX_ZONE_LAYOUT;

    ngx_rbtree_init(&sh->sandboxes, &sh->sandboxes_sentinel,
                    ngx_http_sandbox_zone_insert_node);
    ngx_rbtree_init(&sh->owners, &sh->owners_sentinel,
                    ngx_http_sandbox_zone_insert_owner);
    ngx_queue_init(&sh->lru);

    zone->sh = sh;
    zone->shpool->data = sh;

    len = sizeof(" in sandbox zone \"\"") + shm_zone->shm.name.len;

    zone->shpool->log_ctx = ngx_slab_alloc(zone->shpool, len);
    if (zone->shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(zone->shpool->log_ctx, " in sandbox zone \"%V\"%Z",
                &shm_zone->shm.name);

    /* a full zone is nothing to report: the oldest make room */
    zone->shpool->log_nomem = 0;

    return NGX_OK;
}


ngx_http_sandbox_zone_t *
ngx_http_sandbox_zone_open(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, ngx_http_sandbox_zone_node_t **sn)
{
    ngx_http_sandbox_zone_t  *zone;

    if (mcf->zone == NULL) {
        return NULL;
    }

    zone = mcf->zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    *sn = ngx_http_sandbox_zone_lookup(zone, sandbox);

    return zone;
}


void
ngx_http_sandbox_zone_unlock(ngx_http_sandbox_zone_t *zone)
{
    ngx_shmtx_unlock(&zone->shpool->mutex);
}


static ngx_http_sandbox_zone_node_t *
ngx_http_sandbox_zone_lookup(ngx_http_sandbox_zone_t *zone, sb_str_t sandbox)
{
    uint32_t                       hash;
    ngx_int_t                      rc;
    ngx_rbtree_node_t             *node, *sentinel;
    ngx_http_sandbox_zone_node_t  *sn;

    hash = ngx_crc32_short((u_char *) sandbox.data, sandbox.len);

    node = zone->sh->sandboxes.root;
    sentinel = zone->sh->sandboxes.sentinel;

    while (node != sentinel) {

        if (hash != node->key) {
            node = (hash < node->key) ? node->left : node->right;
            continue;
        }

        sn = (ngx_http_sandbox_zone_node_t *) node;

        rc = ngx_memn2cmp((u_char *) sandbox.data, sn->id, sandbox.len,
                          sn->len);
        if (rc == 0) {
            return sn;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


ngx_http_sandbox_zone_node_t *
ngx_http_sandbox_zone_create(ngx_http_sandbox_zone_t *zone, sb_str_t sandbox)
{
    ngx_http_sandbox_zone_node_t  *sn;

    if (sandbox.len == 0 || sandbox.len > NGX_HTTP_SANDBOX_ZONE_ID_MAX) {
        return NULL;
    }

    sn = ngx_http_sandbox_zone_alloc(zone,
              offsetof(ngx_http_sandbox_zone_node_t, id) + sandbox.len, NULL);
    if (sn == NULL) {
        return NULL;
    }

    sn->node.key = ngx_crc32_short((u_char *) sandbox.data, sandbox.len);
    sn->len = sandbox.len;
    ngx_memcpy(sn->id, sandbox.data, sandbox.len);

    ngx_queue_init(&sn->ports);

    ngx_rbtree_insert(&zone->sh->sandboxes, &sn->node);
    ngx_queue_insert_head(&zone->sh->lru, &sn->lru);

    return sn;
}


void
ngx_http_sandbox_zone_touch(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn)
{
    ngx_queue_remove(&sn->lru);
    ngx_queue_insert_head(&zone->sh->lru, &sn->lru);
}


ngx_http_sandbox_zone_port_t *
ngx_http_sandbox_zone_port(ngx_http_sandbox_zone_node_t *sn, uint32_t port)
{
    ngx_queue_t                   *q;
    ngx_http_sandbox_zone_port_t  *e;

    for (q = ngx_queue_head(&sn->ports);
         q != ngx_queue_sentinel(&sn->ports);
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_sandbox_zone_port_t, queue);

        if (e->port == port) {
            return e;
        }
    }

    return NULL;
}


void
ngx_http_sandbox_zone_store(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn, uint32_t port, uint32_t upstream,
    ngx_http_sandbox_named_t *named)
{
    ngx_msec_t                     now;
    ngx_http_sandbox_zone_port_t  *e;

    now = ngx_current_msec;

    e = ngx_http_sandbox_zone_port(sn, port);

    if (e == NULL
        || e->host_len != named->host.len
        || e->path_len != named->path.len
        || e->ingress_len != named->ingress_to.len
        || ngx_memcmp(e->text, named->text,
                      e->host_len + e->path_len + e->ingress_len)
           != 0
        || ngx_memcmp(&e->addr, &named->addr,
                      sizeof(ngx_http_sandbox_sockaddr_t))
           != 0)
    {
        e = ngx_http_sandbox_zone_replace(zone, sn, e, port, named);
        if (e == NULL) {
            return;
        }
    }

    e->upstream = upstream;
    e->learnt = now;
    e->used = now;
    e->question = 0;

    if (e->failures) {

        if ((ngx_msec_int_t) (now - e->avoid) < 0) {
            return;
        }

        if ((ngx_msec_int_t) (now - e->avoid)
            > NGX_HTTP_SANDBOX_ZONE_AVOID_MAX)
        {
            e->failures = 0;
        }
    }

    if (!e->valid) {
        ngx_http_sandbox_zone_own(zone, e);
    }
}


/* A new entry for a port in place of the old one (NULL: there was none). */

static ngx_http_sandbox_zone_port_t *
ngx_http_sandbox_zone_replace(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn, ngx_http_sandbox_zone_port_t *old,
    uint32_t port, ngx_http_sandbox_named_t *named)
{
    u_char                        *p;
    size_t                         size;
    ngx_msec_t                     avoid;
    ngx_uint_t                     failures;
    ngx_queue_t                   *q;
    ngx_http_sandbox_zone_port_t  *e, *oldest;

    avoid = 0;
    failures = 0;

    if (old) {

        /* the same address by another text has failed just as well */

        if (ngx_memcmp(&old->addr, &named->addr,
                       sizeof(ngx_http_sandbox_sockaddr_t))
            == 0)
        {
            failures = old->failures;
            avoid = old->avoid;
        }

        ngx_http_sandbox_zone_remove(zone, old);

    } else if (sn->nports == NGX_HTTP_SANDBOX_ZONE_PORTS) {

        oldest = NULL;

        for (q = ngx_queue_head(&sn->ports);
             q != ngx_queue_sentinel(&sn->ports);
             q = ngx_queue_next(q))
        {
            e = ngx_queue_data(q, ngx_http_sandbox_zone_port_t, queue);

            if (oldest == NULL
                || (ngx_msec_int_t) (e->used - oldest->used) < 0)
            {
                oldest = e;
            }
        }

        ngx_http_sandbox_zone_remove(zone, oldest);
    }

    size = named->host.len + named->path.len + named->ingress_to.len;

    e = ngx_http_sandbox_zone_alloc(zone,
                       offsetof(ngx_http_sandbox_zone_port_t, text) + size, sn);
    if (e == NULL) {
        return NULL;
    }

    e->sandbox = sn;
    e->port = port;
    e->addr = named->addr;
    e->socklen = named->socklen;
    e->failures = failures;
    e->avoid = avoid;

    /* the three texts stand in this order in both */

    e->host_len = named->host.len;
    e->path_len = named->path.len;
    e->ingress_len = named->ingress_to.len;
    ngx_memcpy(e->text, named->text, size);

    p = ngx_strnstr(e->text + e->host_len, (char *) "/proxy/", e->path_len);
    e->prefix_len = p ? (size_t) (p - e->text) - e->host_len : e->path_len;

    e->node.key = ngx_crc32_short((u_char *) &e->addr,
                                  sizeof(ngx_http_sandbox_sockaddr_t))
                  ^ ngx_crc32_short(e->text + e->host_len, e->prefix_len)
                  ^ ngx_crc32_short(e->text + e->host_len + e->path_len,
                                    e->ingress_len);

    ngx_queue_insert_head(&sn->ports, &e->queue);
    sn->nports++;

    return e;
}


/*
 * Takes an address: whoever had it lives there no longer, and all addresses of
 * that sandbox are in doubt with this one.
 */

static void
ngx_http_sandbox_zone_own(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_port_t *e)
{
    ngx_int_t                      rc;
    ngx_rbtree_node_t             *node, *sentinel;
    ngx_http_sandbox_zone_port_t  *other;

    node = zone->sh->owners.root;
    sentinel = zone->sh->owners.sentinel;

    while (node != sentinel) {

        other = (ngx_http_sandbox_zone_port_t *) node;

        rc = ngx_http_sandbox_zone_cmp(e, other);

        if (rc == 0) {

            /* all entries with this address are of one sandbox */

            if (other->sandbox != e->sandbox) {
                ngx_http_sandbox_zone_drop(zone, other->sandbox);
            }

            break;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    e->valid = 1;
    ngx_rbtree_insert(&zone->sh->owners, &e->node);
}


void
ngx_http_sandbox_zone_disown(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_port_t *e)
{
    if (e->valid) {
        e->valid = 0;
        ngx_rbtree_delete(&zone->sh->owners, &e->node);
    }

    /* an answer on its way is about the time before */
    e->question = 0;
}


void
ngx_http_sandbox_zone_drop(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn)
{
    ngx_queue_t                   *q;
    ngx_http_sandbox_zone_port_t  *e;

    for (q = ngx_queue_head(&sn->ports);
         q != ngx_queue_sentinel(&sn->ports);
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_sandbox_zone_port_t, queue);
        ngx_http_sandbox_zone_disown(zone, e);
    }
}


void
ngx_http_sandbox_zone_remove(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_port_t *e)
{
    ngx_http_sandbox_zone_disown(zone, e);

    ngx_queue_remove(&e->queue);
    e->sandbox->nports--;

    ngx_slab_free_locked(zone->shpool, e);
}


void
ngx_http_sandbox_zone_remove_all(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn)
{
    ngx_queue_t                   *q;
    ngx_http_sandbox_zone_port_t  *e;

    while (!ngx_queue_empty(&sn->ports)) {
        q = ngx_queue_head(&sn->ports);
        e = ngx_queue_data(q, ngx_http_sandbox_zone_port_t, queue);
        ngx_http_sandbox_zone_remove(zone, e);
    }
}


ngx_http_sandbox_zone_changes_t *
ngx_http_sandbox_zone_changes(ngx_http_sandbox_zone_t *zone, sb_str_t sandbox)
{
    uint32_t  hash;

    hash = ngx_crc32_short((u_char *) sandbox.data, sandbox.len);

    return &zone->sh->changes[hash % NGX_HTTP_SANDBOX_ZONE_CHANGES];
}


void
ngx_http_sandbox_zone_know(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn, sb_str_t text)
{
    if (sn->known) {
        ngx_slab_free_locked(zone->shpool, sn->known);
        sn->known_len = 0;
    }

    sn->known_stale = 0;
    sn->known = ngx_http_sandbox_zone_alloc(zone, text.len, sn);

    if (sn->known) {
        sn->known_len = text.len;
        ngx_memcpy(sn->known, text.data, text.len);
    }
}


static void
ngx_http_sandbox_zone_evict(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn)
{
    ngx_http_sandbox_zone_remove_all(zone, sn);

    if (sn->known) {
        ngx_slab_free_locked(zone->shpool, sn->known);
    }

    ngx_queue_remove(&sn->lru);
    ngx_rbtree_delete(&zone->sh->sandboxes, &sn->node);

    ngx_slab_free_locked(zone->shpool, sn);
}


/*
 * Memory of the zone, zeroed; sandboxes unused for the longest time make room,
 * but never `keep`.
 */

static void *
ngx_http_sandbox_zone_alloc(ngx_http_sandbox_zone_t *zone, size_t size,
    ngx_http_sandbox_zone_node_t *keep)
{
    void                          *p;
    ngx_uint_t                     n;
    ngx_queue_t                   *q;
    ngx_http_sandbox_zone_node_t  *sn;

    for (n = 0; /* void */ ; n++) {

        p = ngx_slab_calloc_locked(zone->shpool, size);

        if (p || n == NGX_HTTP_SANDBOX_ZONE_EVICT
            || ngx_queue_empty(&zone->sh->lru))
        {
            return p;
        }

        q = ngx_queue_last(&zone->sh->lru);
        sn = ngx_queue_data(q, ngx_http_sandbox_zone_node_t, lru);

        if (sn == keep) {
            return NULL;
        }

        ngx_http_sandbox_zone_evict(zone, sn);
        ngx_http_sandbox_metric_add(ENDPOINTS_EVICTED, 1);
    }
}


/* The order of owners; 0 means the same address. */

static ngx_int_t
ngx_http_sandbox_zone_cmp(ngx_http_sandbox_zone_port_t *a,
    ngx_http_sandbox_zone_port_t *b)
{
    ngx_int_t  rc;

    if (a->node.key != b->node.key) {
        return (a->node.key < b->node.key) ? -1 : 1;
    }

    rc = ngx_memcmp(&a->addr, &b->addr, sizeof(ngx_http_sandbox_sockaddr_t));
    if (rc) {
        return rc;
    }

    rc = ngx_memn2cmp(a->text + a->host_len, b->text + b->host_len,
                      a->prefix_len, b->prefix_len);
    if (rc) {
        return rc;
    }

    return ngx_memn2cmp(a->text + a->host_len + a->path_len,
                        b->text + b->host_len + b->path_len,
                        a->ingress_len, b->ingress_len);
}


static void
ngx_http_sandbox_zone_insert_node(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t            **p;
    ngx_http_sandbox_zone_node_t  *sn, *snt;

    for ( ;; ) {

        if (node->key != temp->key) {
            p = (node->key < temp->key) ? &temp->left : &temp->right;

        } else {
            sn = (ngx_http_sandbox_zone_node_t *) node;
            snt = (ngx_http_sandbox_zone_node_t *) temp;

            p = (ngx_memn2cmp(sn->id, snt->id, sn->len, snt->len) < 0)
                ? &temp->left : &temp->right;
        }

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    ngx_http_sandbox_zone_insert(p, temp, node, sentinel);
}


static void
ngx_http_sandbox_zone_insert_owner(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t  **p;

    for ( ;; ) {

        /* equal ones are ports of one sandbox, in any order */

        p = (ngx_http_sandbox_zone_cmp((ngx_http_sandbox_zone_port_t *) node,
                                       (ngx_http_sandbox_zone_port_t *) temp)
             < 0)
            ? &temp->left : &temp->right;

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    ngx_http_sandbox_zone_insert(p, temp, node, sentinel);
}


static void
ngx_http_sandbox_zone_insert(ngx_rbtree_node_t **p,
    ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}
