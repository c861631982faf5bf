/*
 * sandbox_peer in an upstream block (design 6): a request with a learnt address
 * goes there and nowhere else, all others go where the block's servers say.
 *
 * It wraps whatever balancer stands before it and is itself wrapped by
 * "keepalive", so in the block it comes behind the one ("least_conn") and
 * before the other.  Connections to sandboxes are kept in the same cache: it
 * looks them up by address.
 */


#include "ngx_http_sandbox.h"


typedef struct {
    ngx_http_upstream_srv_conf_t    *upstream;
    ngx_http_upstream_init_pt        original_init_upstream;
    ngx_http_upstream_init_peer_pt   original_init_peer;
} ngx_http_sandbox_peer_t;


typedef struct {
    ngx_http_request_t              *request;
    ngx_http_sandbox_ctx_t          *ctx;
    ngx_http_sandbox_road_t         *road;
} ngx_http_sandbox_peer_data_t;


static ngx_http_sandbox_peer_t *ngx_http_sandbox_peer_find(
    ngx_http_sandbox_main_conf_t *mcf, ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sandbox_peer_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sandbox_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sandbox_peer_get(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sandbox_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_sandbox_peer_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sandbox_peer_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif


char *
ngx_http_sandbox_peer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_peer_t       *peer;
    ngx_http_upstream_srv_conf_t  *uscf;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);
    uscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    if (mcf->peers == NULL) {
        mcf->peers = ngx_array_create(cf->pool, 2,
                                      sizeof(ngx_http_sandbox_peer_t));
        if (mcf->peers == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_sandbox_peer_find(mcf, uscf)) {
        return "is duplicate";
    }

    peer = ngx_array_push(mcf->peers);
    if (peer == NULL) {
        return NGX_CONF_ERROR;
    }

    peer->upstream = uscf;
    peer->original_init_upstream = uscf->peer.init_upstream
                                   ? uscf->peer.init_upstream
                                   : ngx_http_upstream_init_round_robin;
    peer->original_init_peer = NULL;

    uscf->peer.init_upstream = ngx_http_sandbox_peer_init_upstream;

    return NGX_CONF_OK;
}


/* There are one or two of them: a list is the fastest table. */

static ngx_http_sandbox_peer_t *
ngx_http_sandbox_peer_find(ngx_http_sandbox_main_conf_t *mcf,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_uint_t                i;
    ngx_http_sandbox_peer_t  *peer;

    peer = mcf->peers->elts;

    for (i = 0; i < mcf->peers->nelts; i++) {
        if (peer[i].upstream == us) {
            return &peer[i];
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_sandbox_peer_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_sandbox_peer_t       *peer;
    ngx_http_sandbox_main_conf_t  *mcf;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, cf->log, 0, "init sandbox peer");

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    peer = ngx_http_sandbox_peer_find(mcf, us);
    if (peer == NULL) {
        return NGX_ERROR;
    }

    if (peer->original_init_upstream(cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    peer->original_init_peer = us->peer.init;
    us->peer.init = ngx_http_sandbox_peer_init;

    /*
     * counted here and not when the directive is read: a balancer named behind
     * sandbox_peer would have put itself in our place
     */

    mcf->peer_upstreams++;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_upstream_t           *u;
    ngx_http_sandbox_ctx_t        *ctx;
    ngx_http_sandbox_peer_t       *peer;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_http_sandbox_peer_data_t  *pd;

    ctx = ngx_http_sandbox_get_ctx(r);

    /*
     * a subrequest of somebody else's is no operation and has no road; a clone
     * (slice, proxy_cache_background_update) has passed no phase that refuses it
     */

    if (r != r->main) {
        lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

        if (lcf->enable) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "subrequest to \"%V\" in a location with "
                          "\"sandbox on\", refused", &r->uri);
            return NGX_ERROR;
        }
    }

    if (ctx == NULL || ctx->road == NULL || r != r->main) {

        mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

        peer = ngx_http_sandbox_peer_find(mcf, us);
        if (peer == NULL) {
            return NGX_ERROR;
        }

        return peer->original_init_peer(r, us);
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "init sandbox peer: %V", &ctx->road->name);

    pd = ngx_palloc(r->pool, sizeof(ngx_http_sandbox_peer_data_t));
    if (pd == NULL) {
        return NGX_ERROR;
    }

    pd->request = r;
    pd->ctx = ctx;
    pd->road = ctx->road;

    u = r->upstream;

    u->peer.data = pd;
    u->peer.get = ngx_http_sandbox_peer_get;
    u->peer.free = ngx_http_sandbox_peer_free;
    u->peer.tries = 1;
#if (NGX_HTTP_SSL)
    u->peer.set_session = ngx_http_sandbox_peer_set_session;
    u->peer.save_session = ngx_http_sandbox_peer_save_session;
#endif

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_peer_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sandbox_peer_data_t  *pd = data;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, pc->log, 0,
                   "get sandbox peer: %V", &pd->road->name);

    pc->cached = 0;
    pc->connection = NULL;

    pc->sockaddr = pd->road->sockaddr;
    pc->socklen = pd->road->socklen;
    pc->name = &pd->road->name;

    return NGX_OK;
}


static void
ngx_http_sandbox_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_sandbox_peer_data_t  *pd = data;

    ngx_http_request_t            *r;
    ngx_http_sandbox_main_conf_t  *mcf;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, pc->log, 0,
                   "free sandbox peer: %V %ui", &pd->road->name, state);

    if (pc->tries) {
        pc->tries--;
    }

    if (!(state & NGX_PEER_FAILED)) {
        return;
    }

    r = pd->request;
    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    if (!r->upstream->request_sent && !pc->cached) {
        ngx_http_sandbox_endpoint_failed(mcf, pd->ctx->route.sandbox,
                                         pd->ctx->route.carrier_port);
        return;
    }

    /*
     * it was reached, but who answers there may be somebody else by now:
     * upstream has to name it again
     */

    ngx_http_sandbox_endpoint_drop(mcf, pd->ctx->route.sandbox,
                                   pd->ctx->route.carrier_port);
}


#if (NGX_HTTP_SSL)

/*
 * No TLS session is kept for a learnt address: there is no place to keep one
 * that ends together with the address.
 */

static ngx_int_t
ngx_http_sandbox_peer_set_session(ngx_peer_connection_t *pc, void *data)
{
    return NGX_OK;
}


static void
ngx_http_sandbox_peer_save_session(ngx_peer_connection_t *pc, void *data)
{
    return;
}

#endif
