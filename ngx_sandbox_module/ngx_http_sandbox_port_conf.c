/* Directives of the user-port listener, and the address of a port. */


#include "ngx_http_sandbox_port.h"


#define NGX_HTTP_SANDBOX_PORT_LIFETIME_MAX  (7 * 24 * 3600)


static ngx_uint_t ngx_http_sandbox_port_loopback(ngx_str_t *host);


/* sandbox_port_listen URL: http[s]://HOST[:PORT] */

char *
ngx_http_sandbox_conf_port_listen(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_int_t                        n;
    ngx_str_t                       *value, s;
    u_char                          *p, *last, *colon;
    ngx_http_sandbox_main_conf_t    *mcf;
    ngx_http_sandbox_port_listen_t  *pl;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (mcf->port_listen) {
        return "is duplicate: one nginx has one listener for user ports";
    }

    pl = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_port_listen_t));
    if (pl == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    s = value[1];

    if (s.len && s.data[s.len - 1] == '/') {
        s.len--;
    }

    pl->url = s;

    if (s.len > 7 && ngx_strncasecmp(s.data, (u_char *) "http://", 7) == 0) {
        s.data += 7;
        s.len -= 7;

    } else if (s.len > 8
               && ngx_strncasecmp(s.data, (u_char *) "https://", 8) == 0)
    {
        s.data += 8;
        s.len -= 8;
        pl->tls = 1;

    } else {
        goto invalid;
    }

    pl->authority = s;
    last = s.data + s.len;

    for (p = s.data; p < last; p++) {
        if (!isalnum(*p) && ngx_strchr("-._:[]", *p) == NULL) {
            goto invalid;
        }

        *p = ngx_tolower(*p);
    }

    p = s.data[0] == '[' ? ngx_strlchr(s.data, last, ']') : s.data;

    if (p == NULL) {
        goto invalid;
    }

    colon = ngx_strlchr(p, last, ':');

    pl->host.data = s.data;
    pl->host.len = (colon ? colon : last) - s.data;

    if (pl->host.len == 0) {
        goto invalid;
    }

    if (colon) {
        n = ngx_atoi(colon + 1, last - colon - 1);

        if (n < 1 || n > 65535) {
            goto invalid;
        }

        pl->port.data = colon;
        pl->port.len = last - colon;
    }

    pl->loopback = ngx_http_sandbox_port_loopback(&pl->host);

    lcf->port_listen = pl;
    mcf->port_listen = pl;

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sandbox_port_listen: \"%V\" must be the address that "
                       "browsers use, http://HOST[:PORT] or https://, without "
                       "a path", &value[1]);

    return NGX_CONF_ERROR;
}


/* sandbox_port_host *.NAME */

char *
ngx_http_sandbox_conf_port_host(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_main_conf_t  *mcf = conf;

    u_char      prev;
    ngx_str_t  *value, name;
    ngx_uint_t  i;

    if (mcf->port_host.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    name = value[1];

    if (name.len < 3 || name.data[0] != '*' || name.data[1] != '.') {
        goto invalid;
    }

    name.data += 2;
    name.len -= 2;

    /* with the label before it, it has to remain a name of DNS */

    if (name.len > 253 - NGX_HTTP_SANDBOX_LABEL_LEN - 1) {
        goto invalid;
    }

    for (i = 0, prev = '.'; i < name.len; i++) {
        name.data[i] = ngx_tolower(name.data[i]);

        if (!isalnum(name.data[i]) && name.data[i] != '-'
            && (name.data[i] != '.' || prev == '.'))
        {
            goto invalid;
        }

        prev = name.data[i];
    }

    if (prev == '.') {
        goto invalid;
    }

    mcf->port_host = name;

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sandbox_port_host: \"%V\" must be *.NAME, a domain "
                       "whose names all lead to the listener", &value[1]);

    return NGX_CONF_ERROR;
}


char *
ngx_http_sandbox_conf_ports(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    ngx_conf_init_size_value(mcf->port_zone_size, 256 * 1024);
    ngx_conf_init_value(mcf->port_lifetime, 8 * 3600);

    if (mcf->port_lifetime < 60
        || mcf->port_lifetime > NGX_HTTP_SANDBOX_PORT_LIFETIME_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_port_lifetime must be 1m to 7d");
        return NGX_CONF_ERROR;
    }

    if (mcf->port_listen == NULL) {

        if (mcf->port_host.data) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_port_host without sandbox_port_listen: "
                               "no location serves these names");
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    if (mcf->port_locations == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_port_listen needs \"sandbox on\" in the "
                           "same location");
        return NGX_CONF_ERROR;
    }

    if (mcf->port_host.len == 0 && mcf->port_listen->loopback) {
        /* browsers take any name below it for this machine */
        ngx_str_set(&mcf->port_host, "localhost");
    }

    return ngx_http_sandbox_ticket_zone(cf, mcf);
}


static ngx_uint_t
ngx_http_sandbox_port_loopback(ngx_str_t *host)
{
    in_addr_t  addr;

    if ((host->len == sizeof("localhost") - 1
         && ngx_strncmp(host->data, "localhost", host->len) == 0)
        || (host->len == sizeof("[::1]") - 1
            && ngx_strncmp(host->data, "[::1]", host->len) == 0))
    {
        return 1;
    }

    addr = ngx_inet_addr(host->data, host->len);

    return addr != INADDR_NONE && (ntohl(addr) >> 24) == 127;
}


ngx_int_t
ngx_http_sandbox_port_open(ngx_http_request_t *r, sb_endpoint_token_t *e,
    ngx_str_t *url)
{
    u_char                         *p;
    ngx_int_t                       rc;
    ngx_http_sandbox_main_conf_t   *mcf;
    ngx_http_sandbox_port_listen_t *pl;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);
    pl = mcf->port_listen;

    if (pl == NULL) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, sizeof("https://./?=") + pl->authority.len
                             + mcf->port_host.len + NGX_HTTP_SANDBOX_LABEL_LEN
                             + sizeof(NGX_HTTP_SANDBOX_TICKET_ARG)
                             + NGX_HTTP_SANDBOX_TICKET_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    url->data = p;
    p = ngx_sprintf(p, "%s", pl->tls ? "https://" : "http://");

    if (mcf->port_host.len) {
        ngx_http_sandbox_port_label(mcf, e->sandbox, e->port, p);
        p += NGX_HTTP_SANDBOX_LABEL_LEN;
        p = ngx_sprintf(p, ".%V%V", &mcf->port_host, &pl->port);

    } else {
        p = ngx_sprintf(p, "%V", &pl->authority);
    }

    p = ngx_sprintf(p, "/?" NGX_HTTP_SANDBOX_TICKET_ARG "=");

    rc = ngx_http_sandbox_ticket_make(mcf, e, p);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    p += NGX_HTTP_SANDBOX_TICKET_LEN;
    url->len = p - url->data;

    return NGX_OK;
}
