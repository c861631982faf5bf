/*
 * Tickets and cookies of the user-port listener.
 *
 * A ticket is a random text; its digest and what it is for lie in the shared
 * zone until it is used or 60 s have passed, oldest first in a queue.  A full
 * zone drops the oldest unused ticket and counts it: who holds that one asks
 * again.  A cookie holds what it is for itself, under a MAC whose key comes of
 * the zone's secret and of the credential that had the ticket made: it ends
 * with that credential.
 */


#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_TICKET_LAYOUT  1
#define NGX_HTTP_SANDBOX_TICKET_EVICT   8
#define NGX_HTTP_SANDBOX_CLAIMS_FORM    2
#define NGX_HTTP_SANDBOX_MAC_LEN        32
#define NGX_HTTP_SANDBOX_MAC_TEXT       43


typedef struct {
    ngx_uint_t                     layout;
    ngx_rbtree_t                   tickets;     /* by digest */
    ngx_rbtree_node_t              sentinel;
    ngx_queue_t                    queue;       /* the newest is first */
    u_char                         secret[32];
} ngx_http_sandbox_ticket_sh_t;


typedef struct {
    ngx_http_sandbox_ticket_sh_t  *sh;
    ngx_slab_pool_t               *shpool;
} ngx_http_sandbox_ticket_zone_t;


typedef struct {
    ngx_str_node_t                 sn;          /* the digest, below */
    ngx_queue_t                    queue;
    ngx_msec_t                     made;
    size_t                         len;
    u_char                         digest[32];
    u_char                         claims[1];
} ngx_http_sandbox_ticket_t;


static ngx_int_t ngx_http_sandbox_ticket_init(ngx_shm_zone_t *shm_zone,
    void *data);
static void ngx_http_sandbox_ticket_remove(ngx_http_sandbox_ticket_zone_t *zone,
    ngx_http_sandbox_ticket_t *t);
static ngx_uint_t ngx_http_sandbox_ticket_over(ngx_http_sandbox_ticket_t *t);
static size_t ngx_http_sandbox_claims_write(u_char *buf,
    sb_endpoint_token_t *e, uint64_t expires_us);
static ngx_int_t ngx_http_sandbox_claims_read(u_char *p, size_t len,
    sb_tokens_t *tokens, uint64_t now_us, sb_endpoint_token_t *e);
static void ngx_http_sandbox_claims_mac(ngx_http_sandbox_main_conf_t *mcf,
    const sb_token_t *row, u_char *claims, size_t len, u_char *mac);


char *
ngx_http_sandbox_ticket_zone(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_str_t                        name;
    ngx_http_sandbox_ticket_zone_t  *zone;

    if (mcf->port_zone_size < 8 * ngx_pagesize) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox_port_zone\" of %uz bytes is too small, "
                           "give it at least %uz",
                           mcf->port_zone_size, 8 * ngx_pagesize);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&name, "sandbox_ports");

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_ticket_zone_t));
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->port_zone = ngx_shared_memory_add(cf, &name, mcf->port_zone_size,
                                           &ngx_http_sandbox_module);
    if (mcf->port_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->port_zone->init = ngx_http_sandbox_ticket_init;
    mcf->port_zone->data = zone;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_ticket_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_sandbox_ticket_zone_t  *ozone = data;

    ngx_http_sandbox_ticket_sh_t    *sh;
    ngx_http_sandbox_ticket_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (ozone || shm_zone->shm.exists) {

        zone->sh = ozone ? ozone->sh : zone->shpool->data;

        if (zone->sh == NULL
            || zone->sh->layout != NGX_HTTP_SANDBOX_TICKET_LAYOUT)
        {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "the zone \"%V\" was laid out by another version of "
                          "this module, restart nginx instead of reloading it",
                          &shm_zone->shm.name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    sh = ngx_slab_calloc(zone->shpool, sizeof(ngx_http_sandbox_ticket_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    sh->layout = NGX_HTTP_SANDBOX_TICKET_LAYOUT;

    sb_random(sh->secret, sizeof(sh->secret));

    ngx_rbtree_init(&sh->tickets, &sh->sentinel, ngx_str_rbtree_insert_value);
    ngx_queue_init(&sh->queue);

    zone->sh = sh;
    zone->shpool->data = sh;

    /* a full zone is nothing to report: the oldest ticket makes room */
    zone->shpool->log_nomem = 0;

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_ticket_make(ngx_http_sandbox_main_conf_t *mcf,
    sb_endpoint_token_t *e, u_char *text)
{
    char                             secret[NGX_HTTP_SANDBOX_MAC_TEXT + 1];
    size_t                           len, size;
    u_char                           bytes[32], digest[32];
    u_char                           claims[NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX];
    ngx_uint_t                       i;
    ngx_queue_t                     *q;
    ngx_http_sandbox_ticket_t       *t, *old;
    ngx_http_sandbox_ticket_zone_t  *zone;

    len = ngx_http_sandbox_claims_write(claims, e, 0);

    if (len == 0) {
        return NGX_DECLINED;
    }

    sb_random(bytes, sizeof(bytes));
    (void) sb_b64url(secret, bytes, sizeof(bytes));
    ngx_memcpy(text, "sbx_port_", 9);
    ngx_memcpy(text + 9, secret, NGX_HTTP_SANDBOX_MAC_TEXT);

    sb_sha256(digest, sb_str(text, NGX_HTTP_SANDBOX_TICKET_LEN));

    zone = mcf->port_zone->data;
    size = offsetof(ngx_http_sandbox_ticket_t, claims) + len;

    ngx_shmtx_lock(&zone->shpool->mutex);

    /* what is over goes first, a few at a time */

    for (i = 0; i < NGX_HTTP_SANDBOX_TICKET_EVICT; i++) {

        if (ngx_queue_empty(&zone->sh->queue)) {
            break;
        }

        q = ngx_queue_last(&zone->sh->queue);
        old = ngx_queue_data(q, ngx_http_sandbox_ticket_t, queue);

        if (!ngx_http_sandbox_ticket_over(old)) {
            break;
        }

        ngx_http_sandbox_ticket_remove(zone, old);
    }

    for ( ;; ) {
        t = ngx_slab_alloc_locked(zone->shpool, size);

        if (t || ngx_queue_empty(&zone->sh->queue)) {
            break;
        }

        q = ngx_queue_last(&zone->sh->queue);
        old = ngx_queue_data(q, ngx_http_sandbox_ticket_t, queue);

        if (!ngx_http_sandbox_ticket_over(old)) {
            ngx_http_sandbox_metric_add(TICKETS_DROPPED, 1);
        }

        ngx_http_sandbox_ticket_remove(zone, old);
    }

    if (t == NULL) {
        ngx_shmtx_unlock(&zone->shpool->mutex);
        return NGX_ERROR;
    }

    ngx_memcpy(t->digest, digest, sizeof(digest));
    ngx_memcpy(t->claims, claims, len);
    t->len = len;
    t->made = ngx_current_msec;

    t->sn.str.data = t->digest;
    t->sn.str.len = sizeof(digest);
    t->sn.node.key = ngx_crc32_short(digest, sizeof(digest));

    ngx_rbtree_insert(&zone->sh->tickets, &t->sn.node);
    ngx_queue_insert_head(&zone->sh->queue, &t->queue);

    ngx_shmtx_unlock(&zone->shpool->mutex);

    ngx_http_sandbox_metric_add(TICKETS, 1);

    return NGX_OK;
}


static void
ngx_http_sandbox_ticket_remove(ngx_http_sandbox_ticket_zone_t *zone,
    ngx_http_sandbox_ticket_t *t)
{
    ngx_rbtree_delete(&zone->sh->tickets, &t->sn.node);
    ngx_queue_remove(&t->queue);
    ngx_slab_free_locked(zone->shpool, t);
}


static ngx_uint_t
ngx_http_sandbox_ticket_over(ngx_http_sandbox_ticket_t *t)
{
    return (ngx_msec_int_t) (ngx_current_msec - t->made)
           > NGX_HTTP_SANDBOX_TICKET_VALID;
}


ngx_int_t
ngx_http_sandbox_ticket_take(ngx_http_sandbox_main_conf_t *mcf,
    sb_tokens_t *tokens, ngx_str_t *text, sb_endpoint_token_t *e, u_char *buf)
{
    size_t                           len;
    u_char                           digest[32];
    ngx_str_t                        key;
    ngx_uint_t                       over;
    ngx_http_sandbox_ticket_t       *t;
    ngx_http_sandbox_ticket_zone_t  *zone;

    if (text->len != NGX_HTTP_SANDBOX_TICKET_LEN) {
        return NGX_DECLINED;
    }

    sb_sha256(digest, ngx_http_sandbox_str(text));
    key.data = digest;
    key.len = sizeof(digest);

    zone = mcf->port_zone->data;

    ngx_shmtx_lock(&zone->shpool->mutex);

    t = (ngx_http_sandbox_ticket_t *)
        ngx_str_rbtree_lookup(&zone->sh->tickets, &key,
                              ngx_crc32_short(digest, sizeof(digest)));

    if (t == NULL) {
        ngx_shmtx_unlock(&zone->shpool->mutex);
        return NGX_DECLINED;
    }

    over = ngx_http_sandbox_ticket_over(t);
    len = t->len;
    ngx_memcpy(buf, t->claims, len);

    ngx_http_sandbox_ticket_remove(zone, t);

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (over) {
        return NGX_DECLINED;
    }

    return ngx_http_sandbox_claims_read(buf, len, tokens, 0, e);
}


void
ngx_http_sandbox_port_label(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port, u_char *label)
{
    size_t                           len;
    u_char                           mac[NGX_HTTP_SANDBOX_MAC_LEN];
    u_char                           buf[512];
    ngx_uint_t                       i, bits, value;
    ngx_http_sandbox_ticket_zone_t  *zone;

    static const u_char  digits[] = "abcdefghijklmnopqrstuvwxyz234567";

    zone = mcf->port_zone->data;

    len = ngx_snprintf(buf, sizeof(buf), "sandbox port label 1:%uD:%*s", port,
                       ngx_min(sandbox.len, 256), sandbox.data)
          - buf;

    sb_hmac_sha256(mac, sb_str(zone->sh->secret, sizeof(zone->sh->secret)),
                   sb_str(buf, len));

    /* a letter first: a name of digits alone could be taken for an address */
    *label++ = 'p';

    value = 0;
    bits = 0;

    for (i = 0, len = 1; len < NGX_HTTP_SANDBOX_LABEL_LEN; len++) {

        if (bits < 5) {
            value = (value & 31) << 8 | mac[i++];
            bits += 8;
        }

        bits -= 5;
        *label++ = digits[(value >> bits) & 31];
    }
}


size_t
ngx_http_sandbox_port_cookie_make(ngx_http_sandbox_main_conf_t *mcf,
    sb_endpoint_token_t *e, uint64_t expires_us, u_char *text)
{
    char    *p;
    size_t   len;
    u_char   mac[NGX_HTTP_SANDBOX_MAC_LEN];
    u_char   claims[NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX];

    len = ngx_http_sandbox_claims_write(claims, e, expires_us);
    ngx_http_sandbox_claims_mac(mcf, e->row, claims, len, mac);

    p = (char *) ngx_cpymem(text, "sbe_", 4);
    p += sb_b64url(p, claims, len);
    *p++ = '.';
    p += sb_b64url(p, mac, sizeof(mac));

    return (u_char *) p - text;
}


ngx_int_t
ngx_http_sandbox_port_cookie_check(ngx_http_sandbox_main_conf_t *mcf,
    sb_tokens_t *tokens, ngx_str_t *text, uint64_t now_us,
    sb_endpoint_token_t *e, u_char *buf)
{
    size_t   len, n;
    u_char   mac[NGX_HTTP_SANDBOX_MAC_LEN], given[NGX_HTTP_SANDBOX_MAC_LEN];
    u_char  *p;

    if (text->len <= 4 + 1 + NGX_HTTP_SANDBOX_MAC_TEXT
        || text->len > NGX_HTTP_SANDBOX_PORT_COOKIE_MAX
        || ngx_strncmp(text->data, "sbe_", 4) != 0)
    {
        return NGX_DECLINED;
    }

    p = text->data + text->len - NGX_HTTP_SANDBOX_MAC_TEXT;
    len = p - 1 - text->data - 4;

    if (p[-1] != '.'
        || len * 3 / 4 > NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX
        || sb_unb64url(given, &n, sb_str(p, NGX_HTTP_SANDBOX_MAC_TEXT))
           != SB_OK
        || sb_unb64url(buf, &len, sb_str(text->data + 4, len)) != SB_OK
        || ngx_http_sandbox_claims_read(buf, len, tokens, now_us, e) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_http_sandbox_claims_mac(mcf, e->row, buf, len, mac);

    return sb_equal_ct(mac, given, sizeof(mac)) ? NGX_OK : NGX_DECLINED;
}


/*
 * u8 form, u64 expiry in µs (0 in a ticket), u16 port, and with a u8 for their
 * length: id of the credential, sandbox, type and id of the actor; the lower
 * byte first.  0: too long.
 */

static size_t
ngx_http_sandbox_claims_write(u_char *buf, sb_endpoint_token_t *e,
    uint64_t expires_us)
{
    u_char      *p;
    sb_str_t     s[4];
    ngx_uint_t   i;

    s[0] = sb_str(e->row->id, ngx_strlen(e->row->id));
    s[1] = e->sandbox;
    s[2] = e->actor_type;
    s[3] = e->actor_id;

    p = buf;
    *p++ = NGX_HTTP_SANDBOX_CLAIMS_FORM;

    for (i = 0; i < 8; i++) {
        *p++ = (u_char) (expires_us >> (8 * i));
    }

    *p++ = (u_char) e->port;
    *p++ = (u_char) (e->port >> 8);

    for (i = 0; i < 4; i++) {

        if (s[i].len > 255
            || (size_t) (buf + NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX - p)
               < 1 + s[i].len)
        {
            return 0;
        }

        *p++ = (u_char) s[i].len;

        if (s[i].len) {
            p = ngx_cpymem(p, s[i].data, s[i].len);
        }
    }

    return p - buf;
}


/* now_us: 0 when there is no expiry to be looked at. */

static ngx_int_t
ngx_http_sandbox_claims_read(u_char *p, size_t len, sb_tokens_t *tokens,
    uint64_t now_us, sb_endpoint_token_t *e)
{
    u_char      *last;
    uint64_t     expires_us;
    sb_str_t     s[4];
    ngx_uint_t   i;

    last = p + len;

    if (len < 11 || *p++ != NGX_HTTP_SANDBOX_CLAIMS_FORM) {
        return NGX_DECLINED;
    }

    expires_us = 0;

    for (i = 0; i < 8; i++) {
        expires_us |= (uint64_t) *p++ << (8 * i);
    }

    ngx_memzero(e, sizeof(sb_endpoint_token_t));

    e->port = p[0] | (uint32_t) p[1] << 8;
    p += 2;

    for (i = 0; i < 4; i++) {

        if (p == last || (size_t) (last - p) - 1 < *p) {
            return NGX_DECLINED;
        }

        s[i] = sb_str(p + 1, *p);
        p += 1 + s[i].len;
    }

    if (p != last || (now_us && now_us >= expires_us)) {
        return NGX_DECLINED;
    }

    e->sandbox = s[1];
    e->actor_type = s[2];
    e->actor_id = s[3];
    e->row = sb_token_find(tokens, s[0], now_us ? now_us : sb_now_us());

    return e->row && e->row->role >= SB_ROLE_OPERATOR ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_sandbox_claims_mac(ngx_http_sandbox_main_conf_t *mcf,
    const sb_token_t *row, u_char *claims, size_t len, u_char *mac)
{
    u_char                           key[NGX_HTTP_SANDBOX_MAC_LEN];
    u_char                           buf[64];
    size_t                           n;
    ngx_http_sandbox_ticket_zone_t  *zone;

    zone = mcf->port_zone->data;

    n = sizeof("sandbox port cookie 1:") - 1;
    ngx_memcpy(buf, "sandbox port cookie 1:", n);
    ngx_memcpy(buf + n, row->hash, sizeof(row->hash));

    sb_hmac_sha256(key, sb_str(zone->sh->secret, sizeof(zone->sh->secret)),
                   sb_str(buf, n + sizeof(row->hash)));
    sb_hmac_sha256(mac, sb_str(key, sizeof(key)), sb_str(claims, len));
}
