/* What a helper is told that we start, and limits of history files: checked
 * here. */


#include "ngx_http_sandbox.h"


static ngx_int_t ngx_http_sandbox_limits_number(ngx_conf_t *cf,
    ngx_str_t *value, const char *name, ngx_uint_t time);
static ngx_int_t ngx_http_sandbox_limits_word(ngx_conf_t *cf, ngx_str_t *value,
    const char *name, const char **words);


char *
ngx_http_sandbox_conf_limits(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    static const char  *overflow[] = {
        "delete_oldest", "stop_recording", "fail_operation", NULL
    };
    static const char  *on_delete[] = { "keep", "archive", "delete", NULL };

    if (ngx_http_sandbox_limits_number(cf, &mcf->history_ttl,
                                       "sandbox_history_ttl", 1) != NGX_OK
        || ngx_http_sandbox_limits_number(cf, &mcf->history_keep,
                                          "sandbox_history_keep", 1) != NGX_OK
        || ngx_http_sandbox_limits_number(cf, &mcf->history_size,
                                          "sandbox_history_size", 0) != NGX_OK
        || ngx_http_sandbox_limits_number(cf, &mcf->history_total,
                                          "sandbox_history_total", 0) != NGX_OK
        || ngx_http_sandbox_limits_word(cf, &mcf->history_overflow,
                                        "sandbox_history_overflow", overflow)
           != NGX_OK
        || ngx_http_sandbox_limits_word(cf, &mcf->history_on_delete,
                                        "sandbox_history_on_delete", on_delete)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (mcf->history_holds == NGX_CONF_UNSET_PTR) {
        mcf->history_holds = NULL;

    } else if (mcf->history_holds->nelts > 64) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "there are more than 64 of "
                           "sandbox_history_hold: hold the others with "
                           "\"sandbox-history hold\"");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* What only a helper that we start is told of does nothing for another one. */

char *
ngx_http_sandbox_conf_unix(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_uint_t  i;
    ngx_str_t   holds;

    struct {
        const char  *name;
        const char  *flag;
        ngx_str_t   *value;
    } words[] = {
        { "sandbox_data",              "--data",              &mcf->data },
        { "sandbox_history_path",      "--history",
          &mcf->history_path },
        { "sandbox_history_sync",      "--sync",
          &mcf->history_sync },
        { "sandbox_history_lag",       "--lag",               &mcf->history_lag },
        { "sandbox_versions_limit",    "--contents",
          &mcf->versions_limit },
        { "sandbox_versions_fetches",  "--fetches",
          &mcf->versions_fetches },
        { "sandbox_history_ttl",       "--history-ttl",       &mcf->history_ttl },
        { "sandbox_history_size",      "--history-size",
          &mcf->history_size },
        { "sandbox_history_total",     "--history-total",
          &mcf->history_total },
        { "sandbox_history_keep",      "--history-keep",
          &mcf->history_keep },
        { "sandbox_history_overflow",  "--history-overflow",
          &mcf->history_overflow },
        { "sandbox_history_on_delete", "--history-on-delete",
          &mcf->history_on_delete },
        { "sandbox_history_hold",      "--history-hold",      &holds }
    };

    ngx_str_null(&holds);

    if (mcf->history_holds) {
        holds = *(ngx_str_t *) mcf->history_holds->elts;
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {

        if (words[i].value->data) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%s does nothing with a helper that somebody "
                               "else starts (sandbox_helper unix:): remove it, "
                               "and start that one with %s", words[i].name,
                               words[i].flag);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* nginx's units, to the plain seconds and bytes that the helper takes. */

static ngx_int_t
ngx_http_sandbox_limits_number(ngx_conf_t *cf, ngx_str_t *value,
    const char *name, ngx_uint_t time)
{
    off_t    n;
    u_char  *p;

    if (value->data == NULL
        || (value->len == 3 && ngx_strncmp(value->data, "off", 3) == 0))
    {
        return NGX_OK;
    }

    n = time ? (off_t) ngx_parse_time(value, 1) : ngx_parse_offset(value);

    if (n < (time ? 1 : 1024 * 1024)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s must be %s, or off", name,
                           time ? "a time of at least 1s"
                                : "a size of at least 1m");
        return NGX_ERROR;
    }

    p = ngx_pnalloc(cf->pool, NGX_OFF_T_LEN + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value->len = (size_t) (ngx_sprintf(p, "%O", n) - p);
    value->data = p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_limits_word(ngx_conf_t *cf, ngx_str_t *value,
    const char *name, const char **words)
{
    ngx_uint_t  i;

    if (value->data == NULL) {
        return NGX_OK;
    }

    for (i = 0; words[i]; i++) {
        if (ngx_strcmp(value->data, words[i]) == 0) {
            return NGX_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s must be %s, %s or %s", name,
                       words[0], words[1], words[2]);

    return NGX_ERROR;
}
