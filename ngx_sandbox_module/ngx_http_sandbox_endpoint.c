/*
 * Straight roads to sandboxes (design 6): what upstream names is learnt, used
 * while it is fresh, asked for again before it lapses, and dropped when it may
 * be somebody else's.  The zone that holds it is in ngx_http_sandbox_zone.c.
 */


#include "ngx_http_sandbox_zone.h"


/* an address counts for this long after upstream has named it, ms */
#define NGX_HTTP_SANDBOX_ENDPOINT_VALID    30000
/* it is asked for again when it is older, but not more often */
#define NGX_HTTP_SANDBOX_ENDPOINT_REFRESH  15000
#define NGX_HTTP_SANDBOX_ENDPOINT_ASK      5000
/* an answer from before a deletion is not believed for this long after it */
#define NGX_HTTP_SANDBOX_ENDPOINT_GONE     30000


/* a question to upstream, asked through the helper */

typedef struct {
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_http_sandbox_loc_conf_t   *lcf;
    uint64_t                       question;
    uint32_t                       port;
    size_t                         len;
    u_char                         id[NGX_HTTP_SANDBOX_ZONE_ID_MAX];
} ngx_http_sandbox_endpoint_ask_t;


static ngx_int_t ngx_http_sandbox_endpoint_road(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_named_t *named);
static const char *ngx_http_sandbox_endpoint_learnt(
    ngx_http_sandbox_main_conf_t *mcf, ngx_http_sandbox_loc_conf_t *lcf,
    sb_str_t sandbox, uint32_t port, uint64_t question, ngx_str_t *body);
static void ngx_http_sandbox_endpoint_ask(ngx_http_sandbox_main_conf_t *mcf,
    ngx_http_sandbox_loc_conf_t *lcf, sb_str_t sandbox, uint32_t port,
    uint64_t question);
static void ngx_http_sandbox_endpoint_answer(void *data, ngx_uint_t status,
    ngx_str_t *body);
static void ngx_http_sandbox_endpoint_forget(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port, uint64_t question);
static uint32_t ngx_http_sandbox_endpoint_upstream(
    ngx_http_sandbox_loc_conf_t *lcf);
static uint64_t ngx_http_sandbox_endpoint_now_us(void);


ngx_int_t
ngx_http_sandbox_endpoint_find(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    uint32_t                       port;
    uint64_t                       question;
    ngx_int_t                      rc;
    ngx_msec_t                     now;
    ngx_uint_t                     valid;
    ngx_msec_int_t                 age;
    ngx_http_sandbox_named_t       named;
    ngx_http_sandbox_zone_port_t  *e;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    /* without our balancer an address could not be followed */

    if (mcf->peer_upstreams == 0
        || lcf->upstream == NULL
        || lcf->endpoints == NGX_HTTP_SANDBOX_ENDPOINTS_OFF
        || ctx->route.sandbox.len == 0)
    {
        return NGX_DECLINED;
    }

    zone = ngx_http_sandbox_zone_open(mcf, ctx->route.sandbox, &sn);
    if (zone == NULL) {
        return NGX_DECLINED;
    }

    port = ctx->route.carrier_port;


    if (sn == NULL || sn->gone) {
        ngx_http_sandbox_zone_unlock(zone);
        return NGX_DECLINED;
    }

    if (sn->expires_us
        && sn->expires_us <= ngx_http_sandbox_endpoint_now_us())
    {
        /* once: upstream may have let it live on, which its answer will tell */

        ngx_http_sandbox_zone_drop(zone, sn);
        sn->expires_us = 0;
    }

    e = ngx_http_sandbox_zone_port(sn, port);

    if (e == NULL
        || e->upstream != ngx_http_sandbox_endpoint_upstream(lcf))
    {
        ngx_http_sandbox_zone_unlock(zone);
        return NGX_DECLINED;
    }

    ngx_http_sandbox_zone_touch(zone, sn);

    now = ngx_current_msec;
    e->used = now;
    age = (ngx_msec_int_t) (now - e->learnt);

    valid = e->valid && age <= NGX_HTTP_SANDBOX_ENDPOINT_VALID;

    question = 0;

    if ((!e->valid || age >= NGX_HTTP_SANDBOX_ENDPOINT_REFRESH)
        && (!e->failures || (ngx_msec_int_t) (now - e->avoid) >= 0)
        && (!e->question
            || (ngx_msec_int_t) (now - e->asked)
               >= NGX_HTTP_SANDBOX_ENDPOINT_ASK))
    {
        question = ++zone->sh->asked;
        e->question = question;
        e->asked = now;
    }

    if (valid) {
        ngx_memcpy(named.text, e->text,
                   e->host_len + e->path_len + e->ingress_len);

        named.addr = e->addr;
        named.socklen = e->socklen;
        named.host.len = e->host_len;
        named.path.len = e->path_len;
        named.ingress_to.len = e->ingress_len;
    }

    ngx_http_sandbox_zone_unlock(zone);

    if (question) {
        ngx_http_sandbox_endpoint_ask(mcf, lcf, ctx->route.sandbox, port,
                                      question);
    }

    if (!valid) {
        return NGX_DECLINED;
    }

    named.host.data = named.text;
    named.path.data = named.host.data + named.host.len;
    named.ingress_to.data = named.path.data + named.path.len;

    /* learnt under an older or another location's configuration? */

    if (!ngx_http_sandbox_named_allowed(lcf, &named.addr.sockaddr,
                                        named.socklen))
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_sandbox_endpoint_road(r, ctx, &named);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "sandbox %s: straight to \"%V%V\" learnt %M ms ago",
                   ctx->id_text, &named.host, &named.path, (ngx_msec_t) age);

    return rc;
}


/* Everything that a request needs of the zone, in its own pool. */

static ngx_int_t
ngx_http_sandbox_endpoint_road(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_named_t *named)
{
    u_char                   *p;
    ngx_http_sandbox_road_t  *road;

    road = ngx_palloc(r->pool, sizeof(ngx_http_sandbox_road_t)
                               + sizeof(ngx_http_sandbox_sockaddr_t));
    if (road == NULL) {
        return NGX_ERROR;
    }

    p = ngx_pnalloc(r->pool, NGX_SOCKADDR_STRLEN + named->host.len
                             + named->path.len + named->ingress_to.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    road->sockaddr = (struct sockaddr *) &road[1];
    road->socklen = named->socklen;
    ngx_memcpy(road->sockaddr, &named->addr,
               sizeof(ngx_http_sandbox_sockaddr_t));

    road->name.data = p;
    road->name.len = ngx_sock_ntop(road->sockaddr, road->socklen, p,
                                   NGX_SOCKADDR_STRLEN, 1);
    p += road->name.len;

    road->host.data = p;
    road->host.len = named->host.len;
    p = ngx_cpymem(p, named->host.data, named->host.len);

    road->path.data = p;
    road->path.len = named->path.len;
    p = ngx_cpymem(p, named->path.data, named->path.len);

    road->ingress_to.data = p;
    road->ingress_to.len = named->ingress_to.len;
    ngx_memcpy(p, named->ingress_to.data, named->ingress_to.len);

    ctx->road = road;

    return NGX_OK;
}


void
ngx_http_sandbox_endpoint_learn(ngx_http_sandbox_main_conf_t *mcf,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_log_t *log, sb_str_t sandbox,
    uint32_t port, ngx_str_t *body)
{
    const char  *err;

    err = ngx_http_sandbox_endpoint_learnt(mcf, lcf, sandbox, port, 0, body);

    if (err) {

        /* whatever was known: it is something else now */
        ngx_http_sandbox_endpoint_forget(mcf, sandbox, port, 0);

        ngx_log_error(NGX_LOG_INFO, log, 0,
                      "sandbox \"%*s\": port %uD goes through the server "
                      "proxy, nothing was learnt from upstream's answer: %s",
                      sandbox.len, sandbox.data, port, err);
    }
}


/* question: that of the refresh that is answered; 0 when a client asked. */

static const char *
ngx_http_sandbox_endpoint_learnt(ngx_http_sandbox_main_conf_t *mcf,
    ngx_http_sandbox_loc_conf_t *lcf, sb_str_t sandbox, uint32_t port,
    uint64_t question, ngx_str_t *body)
{
    const char                    *err;
    ngx_http_sandbox_named_t       named;
    ngx_http_sandbox_zone_port_t  *e;
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    err = ngx_http_sandbox_named_read(&named, lcf, body);
    if (err) {
        return err;
    }

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return "there is no zone";
    }

    if (question) {

        /* what was dropped since is not brought back by an older answer */

        e = sn ? ngx_http_sandbox_zone_port(sn, port) : NULL;

        if (e == NULL || e->question != question) {
            ngx_http_sandbox_zone_unlock(zone);
            return NULL;
        }
    }

    if (sn == NULL) {
        sn = ngx_http_sandbox_zone_create(zone, sandbox);

        if (sn == NULL) {
            ngx_http_sandbox_zone_unlock(zone);
            return "sandbox_endpoint_zone is full";
        }
    }

    if (sn->gone) {

        if ((ngx_msec_int_t) (ngx_current_msec - sn->gone_ms)
            < NGX_HTTP_SANDBOX_ENDPOINT_GONE)
        {
            ngx_http_sandbox_zone_unlock(zone);
            return "the sandbox is gone";
        }

        sn->gone = 0;
    }

    if (sn->expires_us
        && sn->expires_us <= ngx_http_sandbox_endpoint_now_us())
    {
        /* evidently not */
        sn->expires_us = 0;
    }

    /* before the zone makes room for it */
    ngx_http_sandbox_zone_touch(zone, sn);

    ngx_http_sandbox_zone_store(zone, sn, port,
                                ngx_http_sandbox_endpoint_upstream(lcf),
                                &named);

    ngx_http_sandbox_zone_unlock(zone);

    return NULL;
}


void
ngx_http_sandbox_endpoint_drop(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port)
{
    ngx_http_sandbox_zone_port_t  *e;
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return;
    }

    if (sn && port == 0) {
        ngx_http_sandbox_zone_remove_all(zone, sn);

    } else if (sn) {
        e = ngx_http_sandbox_zone_port(sn, port);

        if (e) {
            ngx_http_sandbox_zone_disown(zone, e);
        }
    }

    ngx_http_sandbox_zone_unlock(zone);
}


void
ngx_http_sandbox_endpoint_failed(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port)
{
    ngx_uint_t                     n;
    ngx_msec_t                     wait;
    ngx_http_sandbox_zone_port_t  *e;
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return;
    }

    e = sn ? ngx_http_sandbox_zone_port(sn, port) : NULL;

    /* requests that were under way together have failed once */

    if (e && e->valid) {

        wait = NGX_HTTP_SANDBOX_ZONE_AVOID;

        for (n = e->failures;
             n && wait < NGX_HTTP_SANDBOX_ZONE_AVOID_MAX;
             n--)
        {
            wait *= 2;
        }

        e->failures++;
        e->avoid = ngx_current_msec
                   + ngx_min(wait, NGX_HTTP_SANDBOX_ZONE_AVOID_MAX);

        ngx_http_sandbox_zone_disown(zone, e);
    }

    ngx_http_sandbox_zone_unlock(zone);
}


void
ngx_http_sandbox_endpoint_gone(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox)
{
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return;
    }

    if (sn == NULL) {
        sn = ngx_http_sandbox_zone_create(zone, sandbox);
    }

    if (sn) {
        ngx_http_sandbox_zone_remove_all(zone, sn);
        ngx_http_sandbox_zone_touch(zone, sn);

        sn->gone = 1;
        sn->gone_ms = ngx_current_msec;
    }

    ngx_http_sandbox_zone_unlock(zone);
}


ngx_uint_t
ngx_http_sandbox_endpoint_is_gone(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox)
{
    ngx_uint_t                     gone;
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return 0;
    }

    gone = sn && sn->gone;

    ngx_http_sandbox_zone_unlock(zone);

    return gone;
}


void
ngx_http_sandbox_endpoint_expires(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint64_t expires_us)
{
    ngx_http_sandbox_zone_node_t  *sn;
    ngx_http_sandbox_zone_t       *zone;

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return;
    }

    /* what never expires needs no entry to say so */

    if (sn == NULL && expires_us) {
        sn = ngx_http_sandbox_zone_create(zone, sandbox);
    }

    if (sn) {
        sn->expires_us = expires_us;
    }

    ngx_http_sandbox_zone_unlock(zone);
}


static void
ngx_http_sandbox_endpoint_ask(ngx_http_sandbox_main_conf_t *mcf,
    ngx_http_sandbox_loc_conf_t *lcf, sb_str_t sandbox, uint32_t port,
    uint64_t question)
{
    u_char                            *p;
    ngx_str_t                          target;
    ngx_http_sandbox_endpoint_ask_t   *ask;

    u_char  buf[sizeof("/v1/sandboxes//endpoints/?use_server_proxy=false")
                + 3 * NGX_HTTP_SANDBOX_ZONE_ID_MAX + NGX_INT32_LEN];

    if (sandbox.len > NGX_HTTP_SANDBOX_ZONE_ID_MAX) {
        return;
    }

    if (lcf->upstream->url.len != mcf->upstream_url.len
        || ngx_strncmp(lcf->upstream->url.data, mcf->upstream_url.data,
                       mcf->upstream_url.len)
           != 0)
    {
        /* the helper asks another server; its address lapses after 30 s */
        return;
    }

    /* it may outlive the request */

    ask = ngx_alloc(sizeof(ngx_http_sandbox_endpoint_ask_t), ngx_cycle->log);
    if (ask == NULL) {
        return;
    }

    ask->mcf = mcf;
    ask->lcf = lcf;
    ask->question = question;
    ask->port = port;
    ask->len = sandbox.len;
    ngx_memcpy(ask->id, sandbox.data, sandbox.len);

    p = ngx_cpymem(buf, "/v1/sandboxes/", sizeof("/v1/sandboxes/") - 1);
    p = (u_char *) ngx_escape_uri(p, ask->id, ask->len,
                                  NGX_ESCAPE_URI_COMPONENT);
    p = ngx_sprintf(p, "/endpoints/%uD?use_server_proxy=false", port);

    target.data = buf;
    target.len = p - buf;

    if (ngx_http_sandbox_helper_fetch(&target, ngx_http_sandbox_endpoint_answer,
                                      ask)
        == 0)
    {
        ngx_free(ask);
    }
}


static void
ngx_http_sandbox_endpoint_answer(void *data, ngx_uint_t status,
    ngx_str_t *body)
{
    ngx_http_sandbox_endpoint_ask_t  *ask = data;

    sb_str_t     sandbox;
    const char  *err;

    sandbox = sb_str(ask->id, ask->len);
    err = NULL;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "sandbox refresh of port %uD: %ui, %uz bytes",
                   ask->port, status, body ? body->len : 0);

    if (status == NGX_HTTP_OK && body) {
        err = ngx_http_sandbox_endpoint_learnt(ask->mcf, ask->lcf, sandbox,
                                               ask->port, ask->question, body);
        if (err == NULL) {
            goto done;
        }

    } else if (status != NGX_HTTP_NOT_FOUND) {

        /* it stays as it is and lapses unless a later question succeeds */
        goto done;
    }

    /* upstream does not name it any more */

    ngx_http_sandbox_endpoint_forget(ask->mcf, sandbox, ask->port,
                                     ask->question);

    ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                  "sandbox \"%*s\": the address of port %uD was dropped: %s",
                  ask->len, ask->id, ask->port,
                  err ? err : "upstream answered 404");

done:

    ngx_free(ask);
}


/* Nothing is known of a port any more: it is not asked for again.  question:
 * not if something else was learnt or dropped since; 0: in any case. */

static void
ngx_http_sandbox_endpoint_forget(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port, uint64_t question)
{
    ngx_http_sandbox_zone_t       *zone;
    ngx_http_sandbox_zone_port_t  *e;
    ngx_http_sandbox_zone_node_t  *sn;

    zone = ngx_http_sandbox_zone_open(mcf, sandbox, &sn);
    if (zone == NULL) {
        return;
    }

    e = sn ? ngx_http_sandbox_zone_port(sn, port) : NULL;

    if (e && (question == 0 || e->question == question)) {
        ngx_http_sandbox_zone_remove(zone, e);
    }

    ngx_http_sandbox_zone_unlock(zone);
}


/* Addresses of one upstream are nothing to another, nor after a reload with
 * another sandbox_upstream. */

static uint32_t
ngx_http_sandbox_endpoint_upstream(ngx_http_sandbox_loc_conf_t *lcf)
{
    return ngx_crc32_short(lcf->upstream->url.data, lcf->upstream->url.len);
}


static uint64_t
ngx_http_sandbox_endpoint_now_us(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000000 + (uint64_t) tp->msec * 1000;
}
