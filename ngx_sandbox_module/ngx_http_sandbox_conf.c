/* Directives that need more than a slot. */


#include "ngx_http_sandbox_secret.h"




/* sandbox_helper unix:PATH | exec:PATH */

char *
ngx_http_sandbox_conf_helper(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                     *value, path;
    ngx_core_conf_t               *ccf;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (mcf->helper != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cf->cycle->conf_ctx,
                                           ngx_core_module);

    if (ccf->master == 0 && ngx_process == NGX_PROCESS_SINGLE
        && !ngx_is_init_cycle(cf->cycle->old_cycle))
    {
        /*
         * the only process there is would go on with requests and a connection
         * to the helper that belong to the configuration that goes; refused
         * here, before the filters are chained anew
         */

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "with \"master_process off\" and \"sandbox_helper\" "
                           "the configuration cannot be reloaded: restart "
                           "nginx");
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    path = value[1];

    if (path.len <= 5
        || (ngx_strncmp(path.data, "unix:", 5) != 0
            && ngx_strncmp(path.data, "exec:", 5) != 0))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_helper: "
                           "\"%V\" must be unix:PATH of a helper's socket or "
                           "exec:PATH of the sandbox-helper program", &path);
        return NGX_CONF_ERROR;
    }

    mcf->helper = path.data[0] == 'u' ? NGX_HTTP_SANDBOX_HELPER_UNIX
                                      : NGX_HTTP_SANDBOX_HELPER_EXEC;
    path.data += 5;
    path.len -= 5;

    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (mcf->helper == NGX_HTTP_SANDBOX_HELPER_UNIX) {
        mcf->socket = path;

    } else {
        mcf->helper_path = path;
    }

    return NGX_CONF_OK;
}


/* sandbox_upstream URL */

char *
ngx_http_sandbox_conf_upstream(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_url_t                     u;
    ngx_str_t                    *value, url;
    ngx_http_sandbox_upstream_t  *up;

    if (lcf->upstream != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    up = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_upstream_t));
    if (up == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    url = value[1];

    while (url.len && url.data[url.len - 1] == '/') {
        url.len--;
    }

    up->url = url;

    ngx_memzero(&u, sizeof(ngx_url_t));

    if (url.len > 7
        && ngx_strncasecmp(url.data, (u_char *) "http://", 7) == 0)
    {
        u.url.data = url.data + 7;
        u.url.len = url.len - 7;
        u.default_port = 80;

    } else if (url.len > 8
               && ngx_strncasecmp(url.data, (u_char *) "https://", 8) == 0)
    {
        u.url.data = url.data + 8;
        u.url.len = url.len - 8;
        u.default_port = 443;
        up->tls = 1;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_upstream: "
                           "\"%V\" must be a http:// or https:// URL", &url);
        return NGX_CONF_ERROR;
    }

    if (ngx_strlchr(u.url.data, u.url.data + u.url.len, '/')) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_upstream: "
                           "the URL \"%V\" must not have a path", &url);
        return NGX_CONF_ERROR;
    }

    up->authority = u.url;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_upstream: %s in \"%V\"",
                           u.err ? u.err : "error", &url);
        return NGX_CONF_ERROR;
    }

    up->host.data = ngx_pnalloc(cf->pool, u.host.len + 1);
    if (up->host.data == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_strlow(up->host.data, u.host.data, u.host.len);
    up->host.len = u.host.len;
    up->port = u.port;
    up->addrs = u.addrs;
    up->naddrs = u.naddrs;

    lcf->upstream = up;

    return NGX_CONF_OK;
}


/* sandbox_public HOST[:PORT][/PREFIX] */

char *
ngx_http_sandbox_conf_public(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_str_t   *value, public;
    ngx_uint_t   i;

    if (lcf->public.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    public = value[1];

    while (public.len && public.data[public.len - 1] == '/') {
        public.len--;
    }

    for (i = 0; i < public.len; i++) {
        if (public.data[i] <= ' ' || public.data[i] == '"'
            || public.data[i] == '\\' || public.data[i] >= 0x7f)
        {
            break;
        }
    }

    if (public.len == 0 || i != public.len || public.data[0] == '/'
        || ngx_strstr(value[1].data, "://"))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_public: "
                           "\"%V\" must be HOST[:PORT][/PREFIX] without a "
                           "scheme", &value[1]);
        return NGX_CONF_ERROR;
    }

    lcf->public = public;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_sandbox_read_file(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_str_t *name, ngx_str_t *text)
{
    size_t           size;
    ssize_t          n;
    ngx_fd_t         fd;
    ngx_file_t       file;
    ngx_file_info_t  fi;

    if (ngx_conf_full_name(cf->cycle, name, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "%V: \"%V\" cannot be read", &cmd->name, name);
        return NGX_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR
        || ngx_file_size(&fi) > 4 * 1024 * 1024)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%V: \"%V\" is larger than 4 MiB", &cmd->name, name);
        ngx_close_file(fd);
        return NGX_ERROR;
    }

    size = (size_t) ngx_file_size(&fi);

    text->data = ngx_pnalloc(cf->pool, size + 1);
    if (text->data == NULL) {
        ngx_close_file(fd);
        return NGX_ERROR;
    }

    ngx_memzero(&file, sizeof(ngx_file_t));
    file.fd = fd;
    file.name = *name;
    file.log = cf->log;

    n = ngx_read_file(&file, text->data, size, 0);
    ngx_close_file(fd);

    if (n == NGX_ERROR || (size_t) n != size) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "%V: \"%V\" cannot be read", &cmd->name, name);
        return NGX_ERROR;
    }

    text->len = size;
    text->data[size] = '\0';

    return NGX_OK;
}


/* sandbox_api_key_file FILE: the upstream's key, alone in a file */

char *
ngx_http_sandbox_conf_api_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_str_t   *value, text;
    ngx_uint_t   i;

    if (lcf->api_key.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    lcf->api_key_file = value[1];

    if (ngx_http_sandbox_read_file(cf, cmd, &lcf->api_key_file, &text)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    while (text.len && (text.data[text.len - 1] == '\n'
                        || text.data[text.len - 1] == '\r'
                        || text.data[text.len - 1] == ' '))
    {
        text.len--;
    }

    for (i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f) {
            break;
        }
    }

    if (text.len == 0 || i != text.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_api_key_file: "
                           "\"%V\" must hold the API key alone on one line",
                           &lcf->api_key_file);
        return NGX_CONF_ERROR;
    }

    if (text.len > SB_SECRET_KEY) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_api_key_file: "
                           "the API key in \"%V\" is longer than %d bytes",
                           &lcf->api_key_file, SB_SECRET_KEY);
        return NGX_CONF_ERROR;
    }

    lcf->api_key = text;

    return NGX_CONF_OK;
}


/* sandbox_endpoint_allow, sandbox_trusted_peer CIDR... */

char *
ngx_http_sandbox_conf_allow(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    ngx_int_t      rc;
    ngx_str_t     *value;
    ngx_uint_t     i;
    ngx_cidr_t    *cidr;
    ngx_array_t  **list;

    list = (ngx_array_t **) (p + cmd->offset);

    if (*list == NGX_CONF_UNSET_PTR) {
        *list = ngx_array_create(cf->pool, 4, sizeof(ngx_cidr_t));
        if (*list == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        cidr = ngx_array_push(*list);
        if (cidr == NULL) {
            return NGX_CONF_ERROR;
        }

        rc = ngx_ptocidr(&value[i], cidr);

        if (rc == NGX_ERROR) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%V: \"%V\" is no address range such as "
                               "10.0.0.0/8", &cmd->name, &value[i]);
            return NGX_CONF_ERROR;
        }

        if (rc == NGX_DONE) {
            ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                               "%V: low address bits of %V are meaningless",
                               &cmd->name, &value[i]);
        }
    }

    return NGX_CONF_OK;
}


/* sandbox_record GLOB strict|best_effort|off */

char *
ngx_http_sandbox_conf_record(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    size_t                      i;
    ngx_str_t                  *value;
    ngx_uint_t                  found;
    const char                 *name;
    ngx_http_sandbox_record_t  *rule;

    if (lcf->record == NGX_CONF_UNSET_PTR) {
        lcf->record = ngx_array_create(cf->pool, 4,
                                       sizeof(ngx_http_sandbox_record_t));
        if (lcf->record == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    rule = ngx_array_push(lcf->record);
    if (rule == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    rule->glob = value[1];

    if (ngx_strcmp(value[2].data, "strict") == 0) {
        rule->mode = NGX_HTTP_SANDBOX_STRICT;

    } else if (ngx_strcmp(value[2].data, "best_effort") == 0) {
        rule->mode = NGX_HTTP_SANDBOX_BEST_EFFORT;

    } else if (ngx_strcmp(value[2].data, "off") == 0) {
        rule->mode = NGX_HTTP_SANDBOX_OFF;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_record: "
                           "\"%V\" must be strict, best_effort or off",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    found = 0;

    for (i = 0; i < sb_op_count(); i++) {
        name = sb_op_at(i)->name;

        if (sb_op_glob(ngx_http_sandbox_str(&rule->glob),
                       sb_str(name, ngx_strlen(name))))
        {
            found = 1;
            break;
        }
    }

    if (!found) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_record: "
                           "\"%V\" matches no operation; their names stand in "
                           "docs/operations.md", &rule->glob);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_sandbox_conf_names(ngx_conf_t *cf, ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_array_t               *from;
    ngx_http_server_name_t    *name;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    /* the names themselves stay, the array is in the temporary pool */

    from = &cscf->server_names;

    lcf->names = ngx_array_create(cf->pool, ngx_max(from->nelts, 1),
                                  sizeof(ngx_http_server_name_t));
    if (lcf->names == NULL) {
        return NGX_CONF_ERROR;
    }

    if (from->nelts) {

        name = ngx_array_push_n(lcf->names, from->nelts);
        if (name == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_memcpy(name, from->elts,
                   from->nelts * sizeof(ngx_http_server_name_t));
    }

    return NGX_CONF_OK;
}


/* Later rules win over earlier ones and over the defaults of design 2. */

char *
ngx_http_sandbox_conf_modes(ngx_conf_t *cf, ngx_http_sandbox_loc_conf_t *lcf)
{
    size_t                         i, n;
    ngx_uint_t                     k;
    const sb_op_t                 *op;
    ngx_http_sandbox_record_t     *rule;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    n = sb_op_count();

    lcf->modes = ngx_pnalloc(cf->pool, n);
    if (lcf->modes == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < n; i++) {
        op = sb_op_at(i);

        if (mcf->history_none) {
            lcf->modes[i] = NGX_HTTP_SANDBOX_OFF;
            continue;
        }

        lcf->modes[i] = op->flags & SB_OPF_OFF ? NGX_HTTP_SANDBOX_OFF
                        : op->flags & SB_OPF_MUTATES ? NGX_HTTP_SANDBOX_STRICT
                        : NGX_HTTP_SANDBOX_BEST_EFFORT;

        if (lcf->record == NULL) {
            continue;
        }

        rule = lcf->record->elts;

        for (k = 0; k < lcf->record->nelts; k++) {
            if (sb_op_glob(ngx_http_sandbox_str(&rule[k].glob),
                           sb_str(op->name, ngx_strlen(op->name))))
            {
                lcf->modes[i] = (u_char) rule[k].mode;
            }
        }
    }

    return NGX_CONF_OK;
}


/* sandbox_history provider | none; the others come later and say so */

char *
ngx_http_sandbox_conf_history(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                     *value;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (mcf->history.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "sandbox") == 0
        || ngx_strcmp(value[1].data, "database") == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_history: "
                           "the mode \"%V\" is not built yet; use \"provider\" "
                           "(one file per sandbox on this host) or \"none\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    if (ngx_strcmp(value[1].data, "provider") != 0
        && ngx_strcmp(value[1].data, "none") != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_history: "
                           "\"%V\" must be \"provider\" or \"none\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    mcf->history = value[1];
    mcf->history_none = ngx_strcmp(value[1].data, "none") == 0;

    return NGX_CONF_OK;
}


/* A size in bytes, as the helper takes it. */
static char *
ngx_http_sandbox_conf_bytes(ngx_conf_t *cf, ngx_str_t *size)
{
    off_t    n;
    u_char  *p;

    if (size->data == NULL) {
        return NGX_CONF_OK;
    }

    n = ngx_parse_offset(size);

    if (n == NGX_ERROR || n < 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_versions_limit must be a size of at least "
                           "1m");
        return NGX_CONF_ERROR;
    }

    p = ngx_pnalloc(cf->pool, NGX_OFF_T_LEN + 1);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    size->len = (size_t) (ngx_sprintf(p, "%O", n) - p);
    size->data = p;

    return NGX_CONF_OK;
}


/* Defaults and contradictions of the http level. */

char *
ngx_http_sandbox_conf_main(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    size_t              max;
    ngx_int_t           n;
    struct sockaddr_un  sa;

    ngx_conf_init_uint_value(mcf->helper, NGX_HTTP_SANDBOX_HELPER_NONE);
    ngx_conf_init_size_value(mcf->queue, 32 * 1024 * 1024);
    ngx_conf_init_size_value(mcf->zone_size, 1024 * 1024);
    ngx_conf_init_value(mcf->spool_limit, (off_t) 4 * 1024 * 1024 * 1024);
    ngx_conf_init_uint_value(mcf->questions, 64);
    ngx_conf_init_uint_value(mcf->live_limit, 1024);

    if (mcf->history.data == NULL) {
        ngx_str_set(&mcf->history, "provider");
    }

    if (mcf->history_sync.data
        && ngx_strcmp(mcf->history_sync.data, "normal") != 0
        && ngx_strcmp(mcf->history_sync.data, "full") != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_history_sync must be normal or full");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_sandbox_conf_limits(cf, mcf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_sandbox_conf_bytes(cf, &mcf->versions_limit) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (mcf->versions_fetches.len) {
        n = ngx_atoi(mcf->versions_fetches.data, mcf->versions_fetches.len);

        if (n < 1 || n > 256) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_versions_fetches must be 1 to 256");
            return NGX_CONF_ERROR;
        }
    }

    if (mcf->queue < 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_queue must be at least 1m");
        return NGX_CONF_ERROR;
    }

    if (mcf->spool_limit < 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_spool_limit must be at least 1m");
        return NGX_CONF_ERROR;
    }

    if (mcf->questions == 0 || mcf->questions > 65536) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_api_questions must be 1 to 65536");
        return NGX_CONF_ERROR;
    }

    if (mcf->live_limit == 0 || mcf->live_limit > 65536) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_live_limit must be 1 to 65536");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_sandbox_conf_options(cf, mcf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (mcf->helper == NGX_HTTP_SANDBOX_HELPER_UNIX) {

        if (ngx_http_sandbox_conf_unix(cf, mcf) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }

    } else if (mcf->helper == NGX_HTTP_SANDBOX_HELPER_EXEC) {

        if (mcf->data.data == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_helper exec: needs sandbox_data DIR, a "
                               "directory of the workers' user");
            return NGX_CONF_ERROR;
        }

        if (ngx_conf_full_name(cf->cycle, &mcf->data, 0) != NGX_OK
            || (mcf->history_path.data
                && ngx_conf_full_name(cf->cycle, &mcf->history_path, 0)
                   != NGX_OK))
        {
            return NGX_CONF_ERROR;
        }

        mcf->socket.len = mcf->data.len + sizeof("/helper.sock") - 1;
        mcf->socket.data = ngx_pnalloc(cf->pool, mcf->socket.len + 1);
        if (mcf->socket.data == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_sprintf(mcf->socket.data, "%V/helper.sock%Z", &mcf->data);
    }

    if (mcf->history_sync.data == NULL) {
        ngx_str_set(&mcf->history_sync, "normal");
    }

    max = sizeof(sa.sun_path) - 1;

    if (mcf->socket.len > max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the helper's socket \"%V\" has a longer path than "
                           "the %uz bytes that the system allows",
                           &mcf->socket, max);
        return NGX_CONF_ERROR;
    }

    if (mcf->locations && mcf->helper == NGX_HTTP_SANDBOX_HELPER_NONE
        && !mcf->history_none)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox on\" needs sandbox_helper, or "
                           "\"sandbox_history none\" to go without a record");
        return NGX_CONF_ERROR;
    }

    if (mcf->locations && mcf->peer_upstreams == 0) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "no upstream block has sandbox_peer: all requests "
                           "to sandboxes take the server proxy");
    }

    return NGX_CONF_OK;
}
