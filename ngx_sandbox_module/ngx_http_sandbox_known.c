/*
 * What policies ask about sandboxes.  The create request tells metadata and
 * mounts; of a sandbox made before nginx was, or thrown out of the zone,
 * upstream is asked, which tells metadata alone.  What is not known then counts
 * against the operation (lib/policy.h).
 *
 * An answer is about the time when it was asked for.  Changes of metadata that
 * pass here are counted: what was asked for before one is asked for again.
 */


#include "ngx_http_sandbox_fetch.h"
#include "ngx_http_sandbox_known.h"
#include "ngx_http_sandbox_zone.h"
#include "policy_known.h"


/* of one sandbox in the zone; what is longer is asked for again */
#define NGX_HTTP_SANDBOX_KNOWN_MAX  8192

/* questions for one operation; fits known_asked */
#define NGX_HTTP_SANDBOX_KNOWN_ASKS  3

/* how long upstream may still carry out a change that it has not answered; s */
#define NGX_HTTP_SANDBOX_KNOWN_UNSURE  60


/* ms; while it is set an exiting worker stays, for those who wait */
#define NGX_HTTP_SANDBOX_KNOWN_TICK  1000


static void ngx_http_sandbox_known_hold(ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_known_leave(ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_known_tick_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_sandbox_known_differs(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_int_t ngx_http_sandbox_known_look(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_uint_t *stale);
static ngx_uint_t ngx_http_sandbox_known_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_known_answer(void *data, ngx_uint_t status,
    ngx_str_t *body);
static ngx_int_t ngx_http_sandbox_known_keep(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_str_t id, sb_buf_t *b, ngx_uint_t made);


/* of this worker */
static ngx_uint_t        ngx_http_sandbox_known_waiters;
static ngx_event_t       ngx_http_sandbox_known_tick;
static ngx_connection_t  ngx_http_sandbox_known_dummy;


ngx_int_t
ngx_http_sandbox_known_find(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, unsigned asks)
{
    ngx_uint_t  stale;

    if (ctx->known_found && !ngx_http_sandbox_known_differs(r, ctx)) {
        return NGX_OK;
    }

    ctx->known_found = 1;

    if (ngx_http_sandbox_known_look(r, ctx, &stale) != NGX_OK) {
        return NGX_ERROR;
    }

    if ((ctx->known.len && !stale) || !(asks & SB_POLICY_METADATA)
        || !ngx_http_sandbox_known_ask(r, ctx))
    {
        if (stale) {
            ngx_str_null(&ctx->known);
        }

        return NGX_OK;
    }

    ngx_http_sandbox_known_hold(ctx);

    /* else a client that leaves is not noticed */
    r->read_event_handler = ngx_http_test_reading;

    return NGX_AGAIN;
}


static void
ngx_http_sandbox_known_hold(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_event_t  *ev;

    ctx->known_waiting = 1;
    ngx_http_sandbox_known_waiters++;

    ev = &ngx_http_sandbox_known_tick;

    if (!ev->timer_set) {
        ngx_http_sandbox_known_dummy.fd = (ngx_socket_t) -1;

        ev->handler = ngx_http_sandbox_known_tick_handler;
        ev->data = &ngx_http_sandbox_known_dummy;
        ev->log = ngx_cycle->log;

        ngx_add_timer(ev, NGX_HTTP_SANDBOX_KNOWN_TICK);
    }
}


static void
ngx_http_sandbox_known_leave(ngx_http_sandbox_ctx_t *ctx)
{
    ctx->known_waiting = 0;

    if (--ngx_http_sandbox_known_waiters == 0
        && ngx_http_sandbox_known_tick.timer_set)
    {
        ngx_del_timer(&ngx_http_sandbox_known_tick);
    }
}


static void
ngx_http_sandbox_known_tick_handler(ngx_event_t *ev)
{
    if (ngx_http_sandbox_known_waiters) {
        ngx_add_timer(ev, NGX_HTTP_SANDBOX_KNOWN_TICK);
    }
}


/* Has metadata changed since it was found?  An upload takes its time. */

static ngx_uint_t
ngx_http_sandbox_known_differs(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                     differs;
    ngx_http_sandbox_zone_t       *zone;
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_http_sandbox_zone_node_t  *sn;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    zone = ngx_http_sandbox_zone_open(mcf, ctx->route.sandbox, &sn);
    if (zone == NULL) {
        return 0;
    }

    differs = ngx_http_sandbox_zone_changes(zone, ctx->route.sandbox)->n
              != ctx->known_changes;

    ngx_http_sandbox_zone_unlock(zone);

    return differs;
}


static ngx_int_t
ngx_http_sandbox_known_look(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_uint_t *stale)
{
    u_char                        *p;
    ngx_http_sandbox_zone_t       *zone;
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_http_sandbox_zone_node_t  *sn;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    *stale = 0;

    ngx_str_null(&ctx->known);

    /* nothing else may be allocated while the zone is locked */

    p = ngx_pnalloc(r->pool, NGX_HTTP_SANDBOX_KNOWN_MAX);
    if (p == NULL) {
        return NGX_ERROR;
    }

    zone = ngx_http_sandbox_zone_open(mcf, ctx->route.sandbox, &sn);
    if (zone == NULL) {
        return NGX_OK;
    }

    ctx->known_changes = ngx_http_sandbox_zone_changes(zone,
                                                       ctx->route.sandbox)->n;

    if (sn && sn->known) {
        ngx_http_sandbox_zone_touch(zone, sn);

        ctx->known.data = p;
        ctx->known.len = sn->known_len;
        ngx_memcpy(p, sn->known, sn->known_len);

        *stale = sn->known_stale;
    }

    ngx_http_sandbox_zone_unlock(zone);

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sandbox_known_ask(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    u_char                        *p;
    sb_str_t                       id;
    ngx_str_t                      target;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    u_char  buf[sizeof("/v1/sandboxes/") + 3 * NGX_HTTP_SANDBOX_ZONE_ID_MAX];

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    id = ctx->route.sandbox;

    if (ctx->known_asked == NGX_HTTP_SANDBOX_KNOWN_ASKS
        || id.len > NGX_HTTP_SANDBOX_ZONE_ID_MAX
        || lcf->upstream->url.len != mcf->upstream_url.len
        || ngx_strncmp(lcf->upstream->url.data, mcf->upstream_url.data,
                       mcf->upstream_url.len)
           != 0)
    {
        /* the helper asks the server of the first location */
        return 0;
    }

    ctx->known_asked++;

    p = ngx_cpymem(buf, "/v1/sandboxes/", sizeof("/v1/sandboxes/") - 1);
    p = (u_char *) ngx_escape_uri(p, (u_char *) id.data, id.len,
                                  NGX_ESCAPE_URI_COMPONENT);
    target.data = buf;
    target.len = p - buf;

    return ngx_http_sandbox_helper_fetch(&target,
                                         ngx_http_sandbox_known_answer, ctx);
}


static void
ngx_http_sandbox_known_answer(void *data, ngx_uint_t status, ngx_str_t *body)
{
    ngx_http_sandbox_ctx_t  *ctx = data;

    sb_buf_t             b;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_http_sandbox_known_leave(ctx);

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = SB_POLICY_KNOWN_MAX;

    if (status == NGX_HTTP_OK
        && sb_policy_known_told(ctx->route.sandbox, ngx_http_sandbox_str(body),
                                ngx_http_sandbox_str(&ctx->known), &b)
           == SB_OK)
    {
        if (ngx_http_sandbox_known_keep(r, ctx, ctx->route.sandbox, &b, 0)
            != NGX_OK)
        {
            ctx->known_found = 0;
        }

        ctx->known.data = ngx_pnalloc(r->pool, b.len);
        ctx->known.len = ctx->known.data ? b.len : 0;

        if (ctx->known.data) {
            ngx_memcpy(ctx->known.data, b.data, b.len);
        }

    } else {
        ngx_str_null(&ctx->known);
    }

    sb_buf_free(&b);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "sandbox %s: its sandbox is told: %ui", ctx->id_text, status);

    ngx_http_sandbox_run(r);
}


void
ngx_http_sandbox_known_forget(ngx_http_sandbox_ctx_t *ctx)
{
    if (ctx->known_waiting) {
        ngx_http_sandbox_known_leave(ctx);
        ngx_http_sandbox_fetch_forget(ctx);
    }
}


/*
 * What upstream tells later never takes the place of what the create request
 * said meanwhile: that knows the mounts.  NGX_DECLINED: metadata has changed
 * since upstream was asked.
 */

static ngx_int_t
ngx_http_sandbox_known_keep(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    sb_str_t id, sb_buf_t *b, ngx_uint_t made)
{
    ngx_uint_t                        differs;
    ngx_http_sandbox_zone_t          *zone;
    ngx_http_sandbox_main_conf_t     *mcf;
    ngx_http_sandbox_zone_node_t     *sn;
    ngx_http_sandbox_zone_changes_t  *changes;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    zone = ngx_http_sandbox_zone_open(mcf, id, &sn);
    if (zone == NULL) {
        return NGX_OK;
    }

    changes = ngx_http_sandbox_zone_changes(zone, id);

    /* the id of what is made was not known when it was asked for */
    differs = (made ? zone->sh->changed : changes->n) != ctx->known_changes;

    if ((differs && !made) || b->len > NGX_HTTP_SANDBOX_KNOWN_MAX) {
        ngx_http_sandbox_zone_unlock(zone);
        return differs && !made ? NGX_DECLINED : NGX_OK;
    }

    if (sn == NULL) {
        sn = ngx_http_sandbox_zone_create(zone, id);
    }

    if (sn && (made || sn->known == NULL || sn->known_stale)) {
        ngx_http_sandbox_zone_touch(zone, sn);
        ngx_http_sandbox_zone_know(zone, sn, sb_str(b->data, b->len));

        sn->known_stale = differs || ngx_time() < changes->unsure;
    }

    ngx_http_sandbox_zone_unlock(zone);

    return NGX_OK;
}


void
ngx_http_sandbox_known_making(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_zone_t       *zone;
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_http_sandbox_zone_node_t  *sn;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    zone = ngx_http_sandbox_zone_open(mcf, ctx->route.sandbox, &sn);

    if (zone) {
        ctx->known_changes = zone->sh->changed;
        ngx_http_sandbox_zone_unlock(zone);
    }
}


void
ngx_http_sandbox_known_made(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    sb_str_t id)
{
    sb_buf_t                      b;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->policy == NULL || ctx->facts == NULL) {
        return;
    }

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_KNOWN_MAX;

    if (sb_policy_known_made(ctx->facts->metadata, ctx->facts->volumes, &b)
        == SB_OK)
    {
        (void) ngx_http_sandbox_known_keep(r, ctx, id, &b, 1);
    }

    sb_buf_free(&b);
}


void
ngx_http_sandbox_known_changed(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_zone_t          *zone;
    ngx_http_sandbox_main_conf_t     *mcf;
    ngx_http_sandbox_zone_node_t     *sn;
    ngx_http_sandbox_zone_changes_t  *changes;

    if (!ctx->judged || ctx->known_told
        || sb_op_index(ctx->op) != SB_OP_SANDBOX_METADATA_PATCH)
    {
        return;
    }

    ctx->known_told = 1;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    zone = ngx_http_sandbox_zone_open(mcf, ctx->route.sandbox, &sn);

    if (zone) {
        zone->sh->changed++;

        changes = ngx_http_sandbox_zone_changes(zone, ctx->route.sandbox);
        changes->n++;

        if (ctx->upstream_status == 0) {
            changes->unsure = ngx_time() + NGX_HTTP_SANDBOX_KNOWN_UNSURE;
        }

        if (sn) {
            sn->known_stale = 1;
        }

        ngx_http_sandbox_zone_unlock(zone);
    }
}
