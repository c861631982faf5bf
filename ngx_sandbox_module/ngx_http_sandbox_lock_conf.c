/* sandbox_limits off | on | NAME=N... */


#include "ngx_http_sandbox.h"


/* as the SDK has them (history format 18) */

static const struct {
    const char  *name;
    sb_limit_e   limit;
    ngx_int_t    most;
} ngx_http_sandbox_limit_names[] = {
    { "commands=", SB_LIMIT_COMMAND, 4 },
    { "reads=", SB_LIMIT_READ, 32 },
    { "writes=", SB_LIMIT_WRITE, 8 },
    { "uploads=", SB_LIMIT_UPLOAD, 1 },
    { NULL, SB_LIMIT_NONE, 0 }
};

#define NGX_HTTP_SANDBOX_LIMIT_MAX      65536
#define NGX_HTTP_SANDBOX_LIMIT_QUEUE    64
#define NGX_HTTP_SANDBOX_LIMIT_TIMEOUT  20000


static ngx_int_t ngx_http_sandbox_limit_set(ngx_http_sandbox_limits_t *limits,
    ngx_str_t *value);


char *
ngx_http_sandbox_conf_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_sandbox_limits_t  *limits;

    if (lcf->limits != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        lcf->limits = NULL;
        return NGX_CONF_OK;
    }

    limits = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_limits_t));
    if (limits == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 0; ngx_http_sandbox_limit_names[i].name; i++) {
        limits->most[ngx_http_sandbox_limit_names[i].limit] =
                              (ngx_uint_t) ngx_http_sandbox_limit_names[i].most;
    }

    limits->queue = NGX_HTTP_SANDBOX_LIMIT_QUEUE;
    limits->timeout = NGX_HTTP_SANDBOX_LIMIT_TIMEOUT;
    lcf->limits = limits;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "on") == 0) {
        return NGX_CONF_OK;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_sandbox_limit_set(limits, &value[i]) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_limits: \"%V\" must be off, on, "
                               "commands=N, reads=N, writes=N, uploads=N (off "
                               "or up to 65536), queue=N or timeout=TIME (up "
                               "to 5m)", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_limit_set(ngx_http_sandbox_limits_t *limits, ngx_str_t *value)
{
    size_t      len;
    ngx_int_t   n;
    ngx_str_t   text;
    ngx_uint_t  i;

    for (i = 0; ngx_http_sandbox_limit_names[i].name; i++) {

        len = ngx_strlen(ngx_http_sandbox_limit_names[i].name);

        if (value->len <= len
            || ngx_strncmp(value->data, ngx_http_sandbox_limit_names[i].name,
                           len)
               != 0)
        {
            continue;
        }

        if (ngx_strcmp(value->data + len, "off") == 0) {
            n = 0;

        } else {
            n = ngx_atoi(value->data + len, value->len - len);

            if (n <= 0 || n > NGX_HTTP_SANDBOX_LIMIT_MAX) {
                return NGX_ERROR;
            }
        }

        limits->most[ngx_http_sandbox_limit_names[i].limit] = (ngx_uint_t) n;

        return NGX_OK;
    }

    if (value->len > 6 && ngx_strncmp(value->data, "queue=", 6) == 0) {
        n = ngx_atoi(value->data + 6, value->len - 6);

        if (n < 0 || n > NGX_HTTP_SANDBOX_LIMIT_MAX) {
            return NGX_ERROR;
        }

        limits->queue = (ngx_uint_t) n;

        return NGX_OK;
    }

    if (value->len > 8 && ngx_strncmp(value->data, "timeout=", 8) == 0) {
        text.data = value->data + 8;
        text.len = value->len - 8;
        n = ngx_parse_time(&text, 0);

        if (n <= 0 || n > 300000) {
            return NGX_ERROR;
        }

        limits->timeout = (ngx_msec_t) n;

        return NGX_OK;
    }

    return NGX_ERROR;
}
