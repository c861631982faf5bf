/*
 * Request rates per actor, over all workers: leaky buckets, as of limit_req, in a
 * table of fixed size.  An actor's account lies in one of a few places that its
 * digest names; when all of them are taken the one that was used longest ago is
 * forgotten, and counted when it had not run empty.
 */


#include "ngx_http_sandbox_rate.h"
#include "ngx_http_sandbox_metrics.h"
#include "rate.h"


#define NGX_HTTP_SANDBOX_RATE_WAYS    8
#define NGX_HTTP_SANDBOX_RATE_MAX     1000000     /* a second; of a burst, too */
#define NGX_HTTP_SANDBOX_RATE_LAYOUT  1


/* a request weighs 1000 */

typedef struct {
    uint64_t           key;             /* 0: free */
    ngx_msec_t         last;
    uint64_t           excess;
} ngx_http_sandbox_rate_t;


typedef struct {
    ngx_uint_t               layout;
    ngx_uint_t               sets;
    u_char                   secret[16];    /* nobody chooses who shares a set */
    ngx_http_sandbox_rate_t  places[1];
} ngx_http_sandbox_rates_t;


static ngx_int_t ngx_http_sandbox_rate_init(ngx_shm_zone_t *shm_zone,
    void *data);
static void ngx_http_sandbox_rate_key(ngx_http_sandbox_rates_t *rates,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    uint64_t key[2]);
static ngx_http_sandbox_rate_t *ngx_http_sandbox_rate_place(
    ngx_http_sandbox_rates_t *rates, uint64_t key[2]);


char *
ngx_http_sandbox_conf_rate(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    size_t      len;
    ngx_int_t   rate, burst, unit;
    ngx_str_t  *value;

    if (lcf->rate != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        lcf->rate = 0;
        return NGX_CONF_OK;
    }

    len = value[1].len;
    unit = 0;

    if (len > 3 && ngx_strncmp(value[1].data + len - 3, "r/s", 3) == 0) {
        unit = 1;

    } else if (len > 3 && ngx_strncmp(value[1].data + len - 3, "r/m", 3) == 0) {
        unit = 60;
    }

    rate = unit ? ngx_atoi(value[1].data, len - 3) : NGX_ERROR;
    burst = 0;

    if (cf->args->nelts == 3) {
        burst = ngx_strncmp(value[2].data, "burst=", 6) == 0
                ? ngx_atoi(value[2].data + 6, value[2].len - 6) : NGX_ERROR;
    }

    if (rate <= 0 || rate > NGX_HTTP_SANDBOX_RATE_MAX
        || burst < 0 || burst > NGX_HTTP_SANDBOX_RATE_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_rate must be off, or a rate such as 20r/s "
                           "or 600r/m with burst=N behind it, both up to "
                           "1000000");
        return NGX_CONF_ERROR;
    }

    lcf->rate = (ngx_uint_t) (rate * 1000 / unit);
    lcf->rate_burst = (ngx_uint_t) burst;

    return NGX_CONF_OK;
}


char *
ngx_http_sandbox_rate_zone(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_str_t  name;

    ngx_conf_init_size_value(mcf->rate_zone_size, 1024 * 1024);

    if (mcf->rates == 0) {
        return NGX_CONF_OK;
    }

    if (mcf->rate_zone_size < 8 * ngx_pagesize) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox_rate_zone\" of %uz bytes is too small, "
                           "give it at least %uz",
                           mcf->rate_zone_size, 8 * ngx_pagesize);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&name, "sandbox_rates");

    mcf->rate_zone = ngx_shared_memory_add(cf, &name, mcf->rate_zone_size,
                                           &ngx_http_sandbox_module);
    if (mcf->rate_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->rate_zone->init = ngx_http_sandbox_rate_init;
    mcf->rate_zone->data = NULL;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_rate_init(ngx_shm_zone_t *shm_zone, void *data)
{
    size_t                     size;
    ngx_slab_pool_t           *shpool;
    ngx_http_sandbox_rates_t  *rates;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (data || shm_zone->shm.exists) {

        rates = data ? data : shpool->data;

        if (rates == NULL || rates->layout != NGX_HTTP_SANDBOX_RATE_LAYOUT) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "the zone \"%V\" was laid out by another version of "
                          "this module, restart nginx instead of reloading it",
                          &shm_zone->shm.name);
            return NGX_ERROR;
        }

        shm_zone->data = rates;

        return NGX_OK;
    }

    /* what the slab's own takes is less */

    size = shm_zone->shm.size - shm_zone->shm.size / 16 - 4 * ngx_pagesize;

    rates = ngx_slab_calloc(shpool, size);
    if (rates == NULL) {
        return NGX_ERROR;
    }

    rates->layout = NGX_HTTP_SANDBOX_RATE_LAYOUT;
    rates->sets = (size - offsetof(ngx_http_sandbox_rates_t, places))
                  / (NGX_HTTP_SANDBOX_RATE_WAYS
                     * sizeof(ngx_http_sandbox_rate_t));
    sb_random(rates->secret, sizeof(rates->secret));

    shpool->data = rates;
    shm_zone->data = rates;

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_rate(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    uint64_t                       excess, passed, most, key[2];
    ngx_uint_t                     forgotten;
    ngx_slab_pool_t               *shpool;
    ngx_http_sandbox_rate_t       *a;
    ngx_http_sandbox_rates_t      *rates;
    ngx_http_sandbox_main_conf_t  *mcf;

    if (lcf->rate == 0) {
        return NGX_OK;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    rates = mcf->rate_zone->data;
    shpool = (ngx_slab_pool_t *) mcf->rate_zone->shm.addr;

    ngx_http_sandbox_rate_key(rates, ctx, lcf, key);

    most = (uint64_t) lcf->rate_burst * 1000;
    forgotten = 0;

    ngx_shmtx_lock(&shpool->mutex);

    a = ngx_http_sandbox_rate_place(rates, key);

    /* clocks of workers differ by little, in both directions */

    passed = (ngx_msec_int_t) (ngx_current_msec - a->last) > 0
             ? ngx_current_msec - a->last : 0;
    passed = sb_rate_leaked(passed, lcf->rate);

    if (a->key != key[0]) {
        forgotten = a->key && a->excess > passed;
        a->key = key[0];
        a->excess = 0;
        excess = 0;

    } else {
        excess = a->excess + 1000 > passed ? a->excess + 1000 - passed : 0;
    }

    if (excess <= most) {
        a->excess = excess;
        a->last = ngx_current_msec;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    ngx_http_sandbox_metric_add(RATE_FORGOTTEN, forgotten);

    if (excess <= most) {
        return NGX_OK;
    }

    ngx_http_sandbox_metric_add(RATE_REFUSED, 1);

    ctx->retry_after = (ngx_uint_t) ((excess - most + lcf->rate - 1)
                                     / lcf->rate);

    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                   "GATEWAY_BUSY",
                                   "This actor sends more requests than "
                                   "sandbox_rate allows; try again later.",
                                   NULL);
}


/* An account is of an actor, and of one setting. */

static void
ngx_http_sandbox_rate_key(ngx_http_sandbox_rates_t *rates,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    uint64_t key[2])
{
    u_char        digest[32];
    sb_sha256_t  *h;

    key[0] = 1;
    key[1] = 0;

    h = sb_sha256_new();
    if (h == NULL) {
        /* all share one account: the stricter way */
        return;
    }

    sb_sha256_add(h, rates->secret, sizeof(rates->secret));
    sb_sha256_add(h, &lcf->rate, sizeof(lcf->rate));
    sb_sha256_add(h, &lcf->rate_burst, sizeof(lcf->rate_burst));
    sb_sha256_add(h, ctx->actor_type.data, ctx->actor_type.len);
    sb_sha256_add(h, "", 1);
    sb_sha256_add(h, ctx->actor_id.data, ctx->actor_id.len);
    sb_sha256_final(h, digest);

    ngx_memcpy(key, digest, 2 * sizeof(uint64_t));
    key[0] |= 1;
}


/* Its account, or the one whose place it takes. */

static ngx_http_sandbox_rate_t *
ngx_http_sandbox_rate_place(ngx_http_sandbox_rates_t *rates, uint64_t key[2])
{
    ngx_uint_t                i;
    ngx_http_sandbox_rate_t  *set, *oldest;

    set = &rates->places[key[1] % rates->sets * NGX_HTTP_SANDBOX_RATE_WAYS];
    oldest = set;

    for (i = 0; i < NGX_HTTP_SANDBOX_RATE_WAYS; i++) {

        if (set[i].key == key[0]) {
            return &set[i];
        }

        if (oldest->key
            && (set[i].key == 0
                || (ngx_msec_int_t) (set[i].last - oldest->last) < 0))
        {
            oldest = &set[i];
        }
    }

    return oldest;
}
