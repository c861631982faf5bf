/*
 * The zone of sessions and used codes.  A full zone ends the session that was
 * begun first, and counts it; when there is none, nothing is begun.
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_session.h"


#define NGX_HTTP_SANDBOX_SESSION_LAYOUT  1


typedef struct {
    ngx_uint_t                      layout;
    uint64_t                        born_us;
    ngx_rbtree_t                    entries;    /* by digest */
    ngx_rbtree_node_t               sentinel;
    ngx_queue_t                     sessions;   /* the newest is first */
    ngx_queue_t                     codes;      /* so here */
} ngx_http_sandbox_session_sh_t;


typedef struct {
    ngx_http_sandbox_session_sh_t  *sh;
    ngx_slab_pool_t                *shpool;
} ngx_http_sandbox_session_zone_t;


/* a session, or a code that has been used (without a token) */

typedef struct {
    ngx_str_node_t                  sn;         /* the digest, below */
    ngx_queue_t                     queue;
    uint64_t                        expires_us;
    u_char                          digest[32];
    char                            id[SB_TOKEN_ID_MAX + 1];
    uint8_t                         hash[32];   /* of the token: one that is
                                                   made anew is another */
    sb_role_e                       role;
} ngx_http_sandbox_session_t;


static ngx_int_t ngx_http_sandbox_session_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_http_sandbox_session_t *ngx_http_sandbox_session_look(
    ngx_http_sandbox_session_zone_t *zone, u_char *digest);
static ngx_http_sandbox_session_t *ngx_http_sandbox_session_add(
    ngx_http_sandbox_session_zone_t *zone, u_char *digest, ngx_queue_t *queue,
    uint64_t now_us);
static void ngx_http_sandbox_session_remove(
    ngx_http_sandbox_session_zone_t *zone, ngx_http_sandbox_session_t *s);
static ngx_http_sandbox_session_t *ngx_http_sandbox_session_oldest(
    ngx_queue_t *queue);


char *
ngx_http_sandbox_session_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_str_t                         name;
    ngx_http_sandbox_session_zone_t  *zone;

    ngx_conf_init_size_value(mcf->session_zone_size, 256 * 1024);
    ngx_conf_init_value(mcf->session_lifetime, 12 * 3600);

    if (mcf->session_lifetime < 60 || mcf->session_lifetime > 7 * 24 * 3600) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_session_lifetime must be 1m to 7d");
        return NGX_CONF_ERROR;
    }

    if (mcf->session_zone_size < 8 * ngx_pagesize) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox_session_zone\" of %uz bytes is too "
                           "small, give it at least %uz",
                           mcf->session_zone_size, 8 * ngx_pagesize);
        return NGX_CONF_ERROR;
    }

    if (mcf->apis == 0) {
        /* nobody can sign in */
        return NGX_CONF_OK;
    }

    ngx_str_set(&name, "sandbox_sessions");

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_session_zone_t));
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->session_zone = ngx_shared_memory_add(cf, &name, mcf->session_zone_size,
                                              &ngx_http_sandbox_module);
    if (mcf->session_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->session_zone->init = ngx_http_sandbox_session_init;
    mcf->session_zone->data = zone;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_session_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_sandbox_session_zone_t  *ozone = data;

    ngx_http_sandbox_session_sh_t    *sh;
    ngx_http_sandbox_session_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (ozone || shm_zone->shm.exists) {

        zone->sh = ozone ? ozone->sh : zone->shpool->data;

        if (zone->sh == NULL
            || zone->sh->layout != NGX_HTTP_SANDBOX_SESSION_LAYOUT)
        {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "the zone \"%V\" was laid out by another version of "
                          "this module, restart nginx instead of reloading it",
                          &shm_zone->shm.name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    sh = ngx_slab_calloc(zone->shpool, sizeof(ngx_http_sandbox_session_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    sh->layout = NGX_HTTP_SANDBOX_SESSION_LAYOUT;
    sh->born_us = sb_now_us();

    ngx_rbtree_init(&sh->entries, &sh->sentinel, ngx_str_rbtree_insert_value);
    ngx_queue_init(&sh->sessions);
    ngx_queue_init(&sh->codes);

    zone->sh = sh;
    zone->shpool->data = sh;

    /* a full zone is nothing to report: the oldest session makes room */
    zone->shpool->log_nomem = 0;

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_session_make(ngx_http_sandbox_main_conf_t *mcf,
    const sb_token_t *row, sb_role_e role, uint64_t expires_us, u_char *text)
{
    char                              secret[43 + 1];
    u_char                            bytes[32], digest[32];
    ngx_http_sandbox_session_t       *s;
    ngx_http_sandbox_session_zone_t  *zone;

    sb_random(bytes, sizeof(bytes));
    (void) sb_b64url(secret, bytes, sizeof(bytes));
    ngx_memcpy(text, "sbx_session_", 12);
    ngx_memcpy(text + 12, secret, 43);

    sb_sha256(digest, sb_str(text, NGX_HTTP_SANDBOX_SESSION_LEN));

    zone = mcf->session_zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    s = ngx_http_sandbox_session_add(zone, digest, &zone->sh->sessions,
                                     sb_now_us());
    if (s) {
        s->expires_us = expires_us;
        s->role = role;
        ngx_memcpy(s->id, row->id, sizeof(s->id));
        ngx_memcpy(s->hash, row->hash, sizeof(s->hash));
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (s == NULL) {
        return NGX_ERROR;
    }

    ngx_http_sandbox_metric_add(SESSIONS, 1);

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_session_find(ngx_http_sandbox_main_conf_t *mcf,
    const sb_tokens_t *tokens, ngx_str_t *text, uint64_t now_us,
    sb_token_t *token)
{
    u_char                            digest[32];
    const sb_token_t                 *row;
    ngx_http_sandbox_session_t       *s, copy;
    ngx_http_sandbox_session_zone_t  *zone;

    if (text->len != NGX_HTTP_SANDBOX_SESSION_LEN) {
        return NGX_DECLINED;
    }

    sb_sha256(digest, ngx_http_sandbox_str(text));

    zone = mcf->session_zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    s = ngx_http_sandbox_session_look(zone, digest);

    if (s && s->id[0] && s->expires_us > now_us) {
        copy = *s;

    } else {
        s = NULL;
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (s == NULL) {
        return NGX_DECLINED;
    }

    row = sb_token_find(tokens, sb_str(copy.id, ngx_strlen(copy.id)), now_us);

    if (row == NULL || !sb_equal_ct(row->hash, copy.hash, sizeof(copy.hash))) {
        return NGX_DECLINED;
    }

    *token = *row;
    token->role = ngx_min(row->role, copy.role);
    token->expires_us = copy.expires_us;

    return NGX_OK;
}


void
ngx_http_sandbox_session_end(ngx_http_sandbox_main_conf_t *mcf,
    ngx_str_t *text)
{
    u_char                            digest[32];
    ngx_http_sandbox_session_t       *s;
    ngx_http_sandbox_session_zone_t  *zone;

    sb_sha256(digest, ngx_http_sandbox_str(text));

    zone = mcf->session_zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    s = ngx_http_sandbox_session_look(zone, digest);

    if (s && s->id[0]) {
        ngx_http_sandbox_session_remove(zone, s);
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


ngx_int_t
ngx_http_sandbox_session_code(ngx_http_sandbox_main_conf_t *mcf,
    ngx_str_t *text, uint64_t made_us)
{
    u_char                            digest[32];
    ngx_int_t                         rc;
    ngx_http_sandbox_session_t       *s;
    ngx_http_sandbox_session_zone_t  *zone;

    sb_sha256(digest, ngx_http_sandbox_str(text));

    zone = mcf->session_zone->data;

    if (made_us < zone->sh->born_us) {
        return NGX_DECLINED;
    }

    ngx_shmtx_lock(&zone->shpool->mutex);

    if (ngx_http_sandbox_session_look(zone, digest)) {
        rc = NGX_DECLINED;

    } else {
        s = ngx_http_sandbox_session_add(zone, digest, &zone->sh->codes,
                                         sb_now_us());
        rc = s ? NGX_OK : NGX_ERROR;

        if (s) {
            s->expires_us = made_us + SB_CODE_VALID_US;
        }
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);

    return rc;
}


static ngx_http_sandbox_session_t *
ngx_http_sandbox_session_look(ngx_http_sandbox_session_zone_t *zone,
    u_char *digest)
{
    ngx_str_t  key;

    key.data = digest;
    key.len = 32;

    return (ngx_http_sandbox_session_t *)
           ngx_str_rbtree_lookup(&zone->sh->entries, &key,
                                 ngx_crc32_short(digest, 32));
}


/* Room for one more, zeroed; NULL: there is none. */

static ngx_http_sandbox_session_t *
ngx_http_sandbox_session_add(ngx_http_sandbox_session_zone_t *zone,
    u_char *digest, ngx_queue_t *queue, uint64_t now_us)
{
    ngx_http_sandbox_session_t  *s, *old;

    /* codes that are over first */

    for ( ;; ) {
        old = ngx_http_sandbox_session_oldest(&zone->sh->codes);

        if (old == NULL || old->expires_us >= now_us) {
            break;
        }

        ngx_http_sandbox_session_remove(zone, old);
    }

    for ( ;; ) {
        s = ngx_slab_calloc_locked(zone->shpool,
                                   sizeof(ngx_http_sandbox_session_t));
        if (s) {
            break;
        }

        old = ngx_http_sandbox_session_oldest(&zone->sh->sessions);

        if (old == NULL) {
            return NULL;
        }

        if (old->expires_us > now_us) {
            ngx_http_sandbox_metric_add(SESSIONS_DROPPED, 1);
        }

        ngx_http_sandbox_session_remove(zone, old);
    }

    ngx_memcpy(s->digest, digest, sizeof(s->digest));

    s->sn.str.data = s->digest;
    s->sn.str.len = sizeof(s->digest);
    s->sn.node.key = ngx_crc32_short(digest, sizeof(s->digest));

    ngx_rbtree_insert(&zone->sh->entries, &s->sn.node);
    ngx_queue_insert_head(queue, &s->queue);

    return s;
}


static void
ngx_http_sandbox_session_remove(ngx_http_sandbox_session_zone_t *zone,
    ngx_http_sandbox_session_t *s)
{
    ngx_rbtree_delete(&zone->sh->entries, &s->sn.node);
    ngx_queue_remove(&s->queue);
    ngx_slab_free_locked(zone->shpool, s);
}


static ngx_http_sandbox_session_t *
ngx_http_sandbox_session_oldest(ngx_queue_t *queue)
{
    return ngx_queue_empty(queue)
           ? NULL : ngx_queue_data(ngx_queue_last(queue),
                                   ngx_http_sandbox_session_t, queue);
}
