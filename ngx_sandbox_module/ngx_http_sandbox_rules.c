/*
 * Rules that change while an operation waits (ngx_http_sandbox_rules.h).
 *
 * The zone holds one text, written by the master: for each policy the places where
 * it is in force, then its source.  Numbers are 32 bits, in front of what they
 * count.  Each worker that needs it has a copy, and parses of it what it needs.
 */


#include "ngx_http_sandbox_rules.h"
#include "ngx_http_sandbox_metrics.h"
#include "digest.h"


/* of one size, for a reload keeps but what has the size of before */
#define NGX_HTTP_SANDBOX_RULES_ZONE  (4 * 1024 * 1024)


typedef struct {
    ngx_atomic_t                   generation;
    u_char                        *text;        /* NULL: there was no room */
    size_t                         len;
    uint8_t                        digest[32];
} ngx_http_sandbox_rules_sh_t;


typedef struct {
    ngx_http_sandbox_rules_sh_t   *sh;
    ngx_slab_pool_t               *shpool;
    ngx_atomic_uint_t              generation;  /* of this configuration */
} ngx_http_sandbox_rules_zone_t;


/* a copy, and what was parsed of it */

struct ngx_http_sandbox_rules_s {
    ngx_atomic_uint_t              generation;
    ngx_uint_t                     refs;        /* operations judged by it */
    u_char                        *text;        /* NULL: not known */
    size_t                         len;
    ngx_uint_t                     n;           /* policies in it */
    sb_policy_t                  **policies;    /* NULL: not parsed yet */
};


static ngx_int_t ngx_http_sandbox_rules_init(ngx_shm_zone_t *shm_zone,
    void *data);
static sb_rc_t ngx_http_sandbox_rules_write(ngx_http_sandbox_main_conf_t *mcf,
    sb_buf_t *b);
static sb_rc_t ngx_http_sandbox_rules_put(sb_buf_t *b, const void *p,
    size_t len);
static uint32_t ngx_http_sandbox_rules_number(u_char **p);
static ngx_str_t ngx_http_sandbox_rules_text(u_char **p);
static ngx_http_sandbox_rules_t *ngx_http_sandbox_rules_take(
    ngx_http_sandbox_rules_zone_t *zone, ngx_log_t *log);
static void ngx_http_sandbox_rules_free(ngx_http_sandbox_rules_t *rules);
static ngx_int_t ngx_http_sandbox_rules_judge(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
static ngx_int_t ngx_http_sandbox_rules_policy(
    ngx_http_sandbox_rules_t *rules, ngx_uint_t n, ngx_str_t *source,
    sb_policy_t **policy);
static ngx_int_t ngx_http_sandbox_rules_unknown(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);


/* of this worker: the newest */

static ngx_http_sandbox_rules_t  *ngx_http_sandbox_rules;


char *
ngx_http_sandbox_rules_zone(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_str_t                       name;
    ngx_http_sandbox_rules_zone_t  *zone;

    ngx_str_set(&name, "sandbox_rules");

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_rules_zone_t));
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->rules_zone = ngx_shared_memory_add(cf, &name,
                                            NGX_HTTP_SANDBOX_RULES_ZONE,
                                            &ngx_http_sandbox_module);
    if (mcf->rules_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->rules_zone->init = ngx_http_sandbox_rules_init;
    mcf->rules_zone->data = zone;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_rules_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_sandbox_rules_zone_t  *old = data;

    ngx_http_sandbox_rules_sh_t    *sh;
    ngx_http_sandbox_rules_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->shpool->log_nomem = 0;

    sh = old ? old->sh : shm_zone->shm.exists ? zone->shpool->data : NULL;

    if (sh == NULL) {
        sh = ngx_slab_calloc(zone->shpool, sizeof(ngx_http_sandbox_rules_sh_t));
        if (sh == NULL) {
            return NGX_ERROR;
        }

        zone->shpool->data = sh;
    }

    zone->sh = sh;

    return NGX_OK;
}


/* --- in the master ---------------------------------------------------------- */

ngx_int_t
ngx_http_sandbox_rules_publish(ngx_cycle_t *cycle)
{
    sb_rc_t                         rc;
    uint8_t                         digest[32];
    sb_buf_t                        b;
    ngx_http_sandbox_rules_sh_t    *sh;
    ngx_http_sandbox_main_conf_t   *mcf;
    ngx_http_sandbox_rules_zone_t  *zone;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_sandbox_module);

    if (mcf == NULL || mcf->rules_zone == NULL) {
        return NGX_OK;
    }

    zone = mcf->rules_zone->data;
    sh = zone->sh;

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_RULES_ZONE;

    rc = ngx_http_sandbox_rules_write(mcf, &b);

    if (rc == SB_OK) {
        sb_sha256(digest, sb_str(b.data, b.len));

    } else {
        sb_random(digest, sizeof(digest));
    }

    ngx_shmtx_lock(&zone->shpool->mutex);

    if (sh->generation == 0
        || ngx_memcmp(digest, sh->digest, sizeof(digest)) != 0)
    {
        if (sh->text) {
            ngx_slab_free_locked(zone->shpool, sh->text);
        }

        sh->text = rc == SB_OK ? ngx_slab_alloc_locked(zone->shpool, b.len)
                               : NULL;
        sh->len = b.len;
        ngx_memcpy(sh->digest, digest, sizeof(digest));

        if (sh->text) {
            ngx_memcpy(sh->text, b.data, b.len);
        }

        sh->generation++;
    }

    zone->generation = sh->generation;

    ngx_shmtx_unlock(&zone->shpool->mutex);

    sb_buf_free(&b);

    return NGX_OK;
}


static sb_rc_t
ngx_http_sandbox_rules_put(sb_buf_t *b, const void *p, size_t len)
{
    sb_rc_t   rc;
    uint32_t  n = (uint32_t) len;

    rc = sb_buf_add(b, &n, sizeof(n));

    return rc == SB_OK && p && len ? sb_buf_add(b, p, len) : rc;
}


static sb_rc_t
ngx_http_sandbox_rules_write(ngx_http_sandbox_main_conf_t *mcf, sb_buf_t *b)
{
    sb_rc_t                      rc;
    sb_str_t                     source;
    ngx_uint_t                   i, k;
    ngx_http_sandbox_place_t    *place;
    ngx_http_sandbox_policed_t  *policed;

    policed = mcf->policies ? mcf->policies->elts : NULL;

    rc = ngx_http_sandbox_rules_put(b, NULL, policed ? mcf->policies->nelts
                                                     : 0);

    for (i = 0; rc == SB_OK && policed && i < mcf->policies->nelts; i++) {

        place = policed[i].places.elts;
        rc = ngx_http_sandbox_rules_put(b, NULL, policed[i].places.nelts);

        for (k = 0; rc == SB_OK && k < policed[i].places.nelts; k++) {
            rc = ngx_http_sandbox_rules_put(b, place[k].name.data,
                                            place[k].name.len);

            if (rc == SB_OK) {
                rc = ngx_http_sandbox_rules_put(b, place[k].location.data,
                                                place[k].location.len);
            }
        }

        source = policed[i].policy ? sb_policy_source(policed[i].policy)
                                   : sb_lit("");

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_rules_put(b, source.data, source.len);
        }
    }

    return rc;
}


/* --- in a worker ------------------------------------------------------------ */

static uint32_t
ngx_http_sandbox_rules_number(u_char **p)
{
    uint32_t  n;

    ngx_memcpy(&n, *p, sizeof(n));
    *p += sizeof(n);

    return n;
}


static ngx_str_t
ngx_http_sandbox_rules_text(u_char **p)
{
    ngx_str_t  text;

    text.len = ngx_http_sandbox_rules_number(p);
    text.data = *p;
    *p += text.len;

    return text;
}


/* The newest, from the zone if need be; NULL without memory. */

static ngx_http_sandbox_rules_t *
ngx_http_sandbox_rules_take(ngx_http_sandbox_rules_zone_t *zone, ngx_log_t *log)
{
    u_char                       *p;
    ngx_http_sandbox_rules_t     *rules;
    ngx_http_sandbox_rules_sh_t  *sh;

    sh = zone->sh;
    rules = ngx_http_sandbox_rules;

    if (rules && rules->generation == sh->generation) {
        return rules;
    }

    rules = ngx_calloc(sizeof(ngx_http_sandbox_rules_t), log);
    if (rules == NULL) {
        return NULL;
    }

    ngx_shmtx_lock(&zone->shpool->mutex);

    rules->generation = sh->generation;
    rules->len = sh->len;
    rules->text = sh->text ? malloc(sh->len) : NULL;

    if (rules->text) {
        ngx_memcpy(rules->text, sh->text, sh->len);
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (rules->text) {
        p = rules->text;
        rules->n = ngx_http_sandbox_rules_number(&p);
        rules->policies = ngx_calloc((rules->n + 1) * sizeof(sb_policy_t *),
                                     log);

        if (rules->policies == NULL) {
            ngx_http_sandbox_rules_free(rules);
            return NULL;
        }
    }

    if (ngx_http_sandbox_rules && ngx_http_sandbox_rules->refs == 0) {
        ngx_http_sandbox_rules_free(ngx_http_sandbox_rules);
    }

    ngx_http_sandbox_rules = rules;

    return rules;
}


static void
ngx_http_sandbox_rules_free(ngx_http_sandbox_rules_t *rules)
{
    ngx_uint_t  i;

    for (i = 0; rules->policies && i < rules->n; i++) {
        sb_policy_free(rules->policies[i]);
    }

    ngx_free(rules->policies);
    free(rules->text);
    ngx_free(rules);
}


void
ngx_http_sandbox_rules_forget(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_rules_t  *rules;

    rules = ctx->rules;

    if (rules == NULL) {
        return;
    }

    ctx->rules = NULL;
    ctx->verdict = NULL;

    if (--rules->refs == 0 && rules != ngx_http_sandbox_rules) {
        ngx_http_sandbox_rules_free(rules);
    }
}


ngx_int_t
ngx_http_sandbox_rules_again(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_http_sandbox_rules_t       *rules;
    ngx_http_sandbox_main_conf_t   *mcf;
    ngx_http_sandbox_rules_zone_t  *zone;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);
    zone = mcf->rules_zone->data;

    if (zone->sh->generation == zone->generation || !ctx->authenticated) {
        return NGX_OK;
    }

    rules = ngx_http_sandbox_rules_take(zone, r->connection->log);
    if (rules == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rules->refs++;
    ctx->rules = rules;

    ngx_http_sandbox_metric_add(POLICY_AGAIN, 1);

    if (rules->text == NULL) {
        return ngx_http_sandbox_rules_unknown(r, ctx);
    }

    return ngx_http_sandbox_rules_judge(r, ctx, lcf);
}


/* Servers may share a name: where several places are called like this one, all
 * must allow it. */

static ngx_int_t
ngx_http_sandbox_rules_judge(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    u_char                    *p;
    ngx_int_t                  rc;
    ngx_str_t                  name, location, source;
    ngx_uint_t                 i, k, places, here, found;
    sb_policy_t               *policy;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_core_srv_conf_t  *cscf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    found = 0;
    p = ctx->rules->text + sizeof(uint32_t);

    for (i = 0; i < ctx->rules->n; i++) {

        here = 0;
        places = ngx_http_sandbox_rules_number(&p);

        for (k = 0; k < places; k++) {
            name = ngx_http_sandbox_rules_text(&p);
            location = ngx_http_sandbox_rules_text(&p);

            here |= name.len == cscf->server_name.len
                    && ngx_memcmp(name.data, cscf->server_name.data, name.len)
                       == 0
                    && location.len == clcf->name.len
                    && ngx_memcmp(location.data, clcf->name.data, location.len)
                       == 0;
        }

        source = ngx_http_sandbox_rules_text(&p);

        if (!here) {
            continue;
        }

        found = 1;

        if (source.len == 0) {
            /* it is not judged there any more */
            continue;
        }

        rc = ngx_http_sandbox_rules_policy(ctx->rules, i, &source, &policy);

        if (rc != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = ngx_http_sandbox_policy_again(r, ctx, lcf, policy);

        if (rc == NGX_DECLINED) {
            return ngx_http_sandbox_rules_unknown(r, ctx);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return found ? NGX_OK : ngx_http_sandbox_rules_unknown(r, ctx);
}


/* The master has parsed it before. */

static ngx_int_t
ngx_http_sandbox_rules_policy(ngx_http_sandbox_rules_t *rules, ngx_uint_t n,
    ngx_str_t *source, sb_policy_t **policy)
{
    sb_policy_error_t  error;

    if (rules->policies[n] == NULL
        && sb_policy_parse(ngx_http_sandbox_str(source), "sandbox_policy",
                           &rules->policies[n], &error)
           != SB_OK)
    {
        rules->policies[n] = NULL;
        return NGX_ERROR;
    }

    *policy = rules->policies[n];

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_rules_unknown(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   "GATEWAY_OVERLOADED",
                                   "The rules have changed while this operation "
                                   "waited, and it cannot be judged by the new "
                                   "ones; send it again.", NULL);
}
