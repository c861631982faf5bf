/* What a helper is told that we start, and limits of history files: checked
 * here. */


#include "ngx_http_sandbox.h"


#define NGX_HTTP_SANDBOX_LIMITS_LIVE  1024      /* --live, if not told */


/* sandbox_helper_option: what the helper takes, and in which bounds */

typedef struct {
    ngx_str_t    name;
    const char  *flag;
    off_t        least;
    off_t        most;
    ngx_uint_t   size;
} ngx_http_sandbox_option_t;


static ngx_int_t ngx_http_sandbox_limits_seconds(ngx_conf_t *cf,
    ngx_str_t *value, const char *name, ngx_int_t least, ngx_int_t most,
    const char *bounds);
static ngx_int_t ngx_http_sandbox_limits_plain(ngx_conf_t *cf,
    ngx_str_t *value, off_t n);
static ngx_http_sandbox_option_t *ngx_http_sandbox_limits_option(ngx_conf_t *cf,
    ngx_keyval_t *kv);
static ngx_int_t ngx_http_sandbox_limits_number(ngx_conf_t *cf,
    ngx_str_t *value, const char *name, ngx_uint_t time);
static ngx_int_t ngx_http_sandbox_limits_word(ngx_conf_t *cf, ngx_str_t *value,
    const char *name, const char **words);


static ngx_http_sandbox_option_t  ngx_http_sandbox_limits_options[] = {
    { ngx_string("locks"), "--locks", 1, 16777216, 0 },
    { ngx_string("leases"), "--leases", 1, 16777216, 0 },
    { ngx_string("questions"), "--questions", 1, 65536, 0 },
    { ngx_string("question-threads"), "--question-threads", 1, 64, 0 },
    { ngx_string("live"), "--live", 1, 65536, 0 },
    { ngx_string("readers"), "--readers", 16, 16384, 0 },
    { ngx_string("inspections"), "--inspections", 1, 64, 0 },
    { ngx_string("inspect-seconds"), "--inspect-seconds", 1, 3600, 0 },
    { ngx_string("inspect-memory"), "--inspect-memory", 64 * 1024 * 1024,
      (off_t) 1 << 60, 1 },
    { ngx_null_string, NULL, 0, 0, 0 }
};


char *
ngx_http_sandbox_conf_limits(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    static const char  *overflow[] = {
        "delete_oldest", "stop_recording", "fail_operation", NULL
    };
    static const char  *on_delete[] = { "keep", "archive", "delete", NULL };

    if (ngx_http_sandbox_limits_seconds(cf, &mcf->history_lag,
                                        "sandbox_history_lag", 1, 3600,
                                        "1s to 1h") != NGX_OK
        || ngx_http_sandbox_limits_seconds(cf, &mcf->follow, "sandbox_follow",
                                           0, 365 * 86400, "0 to 365d")
           != NGX_OK
        || ngx_http_sandbox_limits_number(cf, &mcf->history_ttl,
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


char *
ngx_http_sandbox_conf_options(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_uint_t                  i, k, live;
    ngx_keyval_t               *kv;
    ngx_http_sandbox_option_t  *option;

    live = 0;
    kv = mcf->helper_options ? mcf->helper_options->elts : NULL;

    for (i = 0; kv && i < mcf->helper_options->nelts; i++) {
        option = ngx_http_sandbox_limits_option(cf, &kv[i]);

        if (option == NULL) {
            return NGX_CONF_ERROR;
        }

        for (k = 0; k < i; k++) {
            if (kv[k].key.data == (u_char *) option->flag) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "sandbox_helper_option %V is given twice",
                                   &option->name);
                return NGX_CONF_ERROR;
            }
        }

        kv[i].key.data = (u_char *) option->flag;
        kv[i].key.len = ngx_strlen(option->flag);
        live |= ngx_strcmp(option->flag, "--live") == 0;
    }

    if (live || mcf->helper != NGX_HTTP_SANDBOX_HELPER_EXEC
        || mcf->live_limit <= NGX_HTTP_SANDBOX_LIMITS_LIVE)
    {
        return NGX_CONF_OK;
    }

    /* one worker may have that many, which the helper must not fall short of */

    if (mcf->helper_options == NULL) {
        mcf->helper_options = ngx_array_create(cf->pool, 1,
                                               sizeof(ngx_keyval_t));
        if (mcf->helper_options == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    kv = ngx_array_push(mcf->helper_options);
    if (kv == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&kv->key, "--live");

    return ngx_http_sandbox_limits_plain(cf, &kv->value,
                                         (off_t) mcf->live_limit) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* What only a helper that we start is told of does nothing for another one. */

char *
ngx_http_sandbox_conf_unix(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_uint_t     i;
    ngx_str_t      holds, option;
    const char    *flag;
    ngx_keyval_t  *kv;

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
        { "sandbox_history_hold",      "--history-hold",      &holds },
        { "sandbox_follow",            "--follow",            &mcf->follow },
        { "sandbox_helper_option",     NULL,                  &option }
    };

    ngx_str_null(&holds);
    ngx_str_null(&option);

    if (mcf->history_holds) {
        holds = *(ngx_str_t *) mcf->history_holds->elts;
    }

    if (mcf->helper_options) {
        kv = mcf->helper_options->elts;
        option = kv[0].key;
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {

        if (words[i].value->data) {
            flag = words[i].flag ? words[i].flag
                                 : (char *) words[i].value->data;

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%s does nothing with a helper that somebody "
                               "else starts (sandbox_helper unix:): remove it, "
                               "and start that one with %s", words[i].name,
                               flag);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static ngx_http_sandbox_option_t *
ngx_http_sandbox_limits_option(ngx_conf_t *cf, ngx_keyval_t *kv)
{
    off_t                       n;
    ngx_http_sandbox_option_t  *o;

    for (o = ngx_http_sandbox_limits_options; o->name.len; o++) {

        if (o->name.len != kv->key.len
            || ngx_strncmp(o->name.data, kv->key.data, o->name.len) != 0)
        {
            continue;
        }

        n = o->size ? ngx_parse_offset(&kv->value)
                    : ngx_atoof(kv->value.data, kv->value.len);

        if (n < o->least || n > o->most) {

            if (o->size) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "sandbox_helper_option %V must be a size of "
                                   "at least %OM", &o->name, o->least >> 20);
            } else {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "sandbox_helper_option %V must be %O to %O",
                                   &o->name, o->least, o->most);
            }

            return NULL;
        }

        return ngx_http_sandbox_limits_plain(cf, &kv->value, n) == NGX_OK
               ? o : NULL;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sandbox_helper_option \"%V\" must be locks, leases, "
                       "questions, question-threads, live, readers, "
                       "inspections, inspect-seconds or inspect-memory",
                       &kv->key);

    return NULL;
}


static ngx_int_t
ngx_http_sandbox_limits_plain(ngx_conf_t *cf, ngx_str_t *value, off_t n)
{
    u_char  *p;

    p = ngx_pnalloc(cf->pool, NGX_OFF_T_LEN + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value->len = (size_t) (ngx_sprintf(p, "%O%Z", n) - p) - 1;
    value->data = p;

    return NGX_OK;
}


/* nginx's units, to the plain seconds and bytes that the helper takes. */

static ngx_int_t
ngx_http_sandbox_limits_seconds(ngx_conf_t *cf, ngx_str_t *value,
    const char *name, ngx_int_t least, ngx_int_t most, const char *bounds)
{
    ngx_int_t  sec;

    if (value->data == NULL) {
        return NGX_OK;
    }

    sec = ngx_parse_time(value, 1);

    if (sec == NGX_ERROR || sec < least || sec > most) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s must be %s", name, bounds);
        return NGX_ERROR;
    }

    return ngx_http_sandbox_limits_plain(cf, value, sec);
}


static ngx_int_t
ngx_http_sandbox_limits_number(ngx_conf_t *cf, ngx_str_t *value,
    const char *name, ngx_uint_t time)
{
    off_t  n;

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

    return ngx_http_sandbox_limits_plain(cf, value, n);
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
