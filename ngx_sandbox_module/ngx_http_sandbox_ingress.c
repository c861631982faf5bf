/*
 * Locations that stand for OpenSandbox's Kubernetes ingress
 * (reference/opensandbox-api.md 6.2): where a request goes is said by a header,
 * by the first label of Host, or by the path.  What is judged is what goes up:
 * forms that contradict each other are refused, and the route in a header is
 * set anew from what was read.
 */


#include "ngx_http_sandbox_headers.h"
#include "ingress.h"


static const char *ngx_http_sandbox_ingress_token(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_ingress_t *conf,
    sb_ingress_t *token);
static const char *ngx_http_sandbox_ingress_header(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_uint_t ngx_http_sandbox_ingress_label(ngx_http_request_t *r,
    ngx_http_sandbox_ingress_t *conf, ngx_str_t *label);
static u_char *ngx_http_sandbox_ingress_log(ngx_http_request_t *r,
    ngx_http_request_t *sr, u_char *buf, size_t len);


/* sandbox_ingress off | header | uri | host BASE... */

char *
ngx_http_sandbox_conf_ingress(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_str_t                   *value, *base;
    ngx_uint_t                   i;
    ngx_http_sandbox_ingress_t  *ingress;

    if (lcf->ingress != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    ingress = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_ingress_t));
    if (ingress == NULL) {
        return NGX_CONF_ERROR;
    }

    lcf->ingress = ingress;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        ingress->form = NGX_HTTP_SANDBOX_INGRESS_OFF;

    } else if (ngx_strcmp(value[1].data, "header") == 0) {
        ingress->form = NGX_HTTP_SANDBOX_INGRESS_HEADER;

    } else if (ngx_strcmp(value[1].data, "uri") == 0) {
        ingress->form = NGX_HTTP_SANDBOX_INGRESS_URI;

    } else if (ngx_strcmp(value[1].data, "host") == 0) {
        ingress->form = NGX_HTTP_SANDBOX_INGRESS_HOST;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_ingress: \"%V\" must be off, header, uri "
                           "or host", &value[1]);
        return NGX_CONF_ERROR;
    }

    if ((cf->args->nelts > 2)
        != (ingress->form == NGX_HTTP_SANDBOX_INGRESS_HOST))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_ingress: \"host\", and nothing else, is "
                           "followed by domains such as sandbox.example.com");
        return NGX_CONF_ERROR;
    }

    if (ngx_array_init(&ingress->bases, cf->pool, cf->args->nelts - 1,
                       sizeof(ngx_str_t))
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        base = ngx_array_push(&ingress->bases);
        *base = value[i];

        if (base->len == 0 || base->data[0] == '.'
            || base->data[base->len - 1] == '.'
            || strpbrk((char *) base->data, "*:/") != NULL)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_ingress: \"%V\" must be a domain such "
                               "as sandbox.example.com, without a port", base);
            return NGX_CONF_ERROR;
        }

        ngx_strlow(base->data, base->data, base->len);
    }

    return NGX_CONF_OK;
}


/* Finds ctx->route.  buf is as sb_route() wants it. */

void
ngx_http_sandbox_ingress_route(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, char *buf, size_t size)
{
    sb_str_t                      method, target;
    const char                   *reason;
    sb_ingress_t                  token;
    ngx_http_sandbox_ingress_t   *conf;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    conf = lcf->ingress;

    method = ngx_http_sandbox_str(&r->method_name);
    target = ngx_http_sandbox_str(&r->unparsed_uri);

    if (conf->form == NGX_HTTP_SANDBOX_INGRESS_OFF) {
        ctx->route_rc = sb_route(&ctx->route, method, target, ctx->upgrade, buf,
                                 size);

        if (ctx->route.op->flags & SB_OPF_UNKNOWN && !ctx->route.proxied) {
            sb_ingress_mask(&ctx->route, target);
        }

    } else if (conf->form == NGX_HTTP_SANDBOX_INGRESS_URI) {
        ctx->ingress = conf->form;
        ctx->route_rc = sb_ingress_route(&ctx->route, NULL, method, target,
                                         ctx->upgrade, buf, size);

    } else {
        reason = ngx_http_sandbox_ingress_token(r, ctx, conf, &token);

        ctx->route_rc = sb_ingress_route(&ctx->route, &token, method, target,
                                         ctx->upgrade, buf, size);

        if (reason && ctx->route.proxied) {
            ctx->route_rc = SB_AMBIGUOUS;
            ctx->route.reason = reason;
        }
    }

    if (ctx->route.signature.len) {
        ctx->log_handler = r->log_handler;
        r->log_handler = ngx_http_sandbox_ingress_log;
    }
}


/*
 * The route in a header or in Host, empty when there is none; returns what is
 * wrong with it, if anything.  The ingress looks at the header, at its old
 * name, then at Host.
 */

static const char *
ngx_http_sandbox_ingress_token(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_ingress_t *conf,
    sb_ingress_t *token)
{
    size_t         i;
    ngx_str_t      label;
    const char    *reason;
    sb_ingress_t   host;

    ngx_memzero(token, sizeof(sb_ingress_t));
    ngx_memzero(&host, sizeof(sb_ingress_t));
    ngx_str_null(&label);

    ctx->ingress = NGX_HTTP_SANDBOX_INGRESS_HEADER;

    reason = ngx_http_sandbox_ingress_header(r, ctx);
    if (reason) {
        return reason;
    }

    if (ngx_http_sandbox_ingress_label(r, conf, &label)
        && sb_ingress_token(&host, ngx_http_sandbox_str(&label))
           == SB_AMBIGUOUS)
    {
        return "The route in Host can be read as a signed and as an unsigned "
               "one.";
    }

    if (ctx->ingress_to.len) {

        switch (sb_ingress_token(token, ngx_http_sandbox_str(&ctx->ingress_to)))
        {
        case SB_OK:
            break;

        case SB_AMBIGUOUS:
            return "The route in OpenSandbox-Ingress-To can be read as a "
                   "signed and as an unsigned one.";

        default:
            return "OpenSandbox-Ingress-To must be {sandbox}-{port}, maybe "
                   "with an expiry and a signature.";
        }

        if (host.sandbox.len
            && (host.port != token->port
                || !sb_eq(host.sandbox, token->sandbox)))
        {
            return "OpenSandbox-Ingress-To and Host name different routes.";
        }

        return NULL;
    }

    if (host.sandbox.len == 0) {
        return conf->form == NGX_HTTP_SANDBOX_INGRESS_HOST
               ? "The first label of Host must be {sandbox}-{port}."
               : "The header OpenSandbox-Ingress-To must name {sandbox}-{port}."
               ;
    }

    /* names know no case, sandboxes do: which one upstream would find is
     * unknown */

    for (i = 0; i < label.len; i++) {
        if (label.data[i] >= 'A' && label.data[i] <= 'Z') {
            return "The route in Host must be in lower case.";
        }
    }

    ctx->ingress = NGX_HTTP_SANDBOX_INGRESS_HOST;
    *token = host;

    return NULL;
}


static const char *
ngx_http_sandbox_ingress_header(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t        i, n, bit, twin;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_http_sandbox_each_header(r, part, h, i) {

        n = ngx_http_sandbox_header(&h[i], &twin);

        if ((n != NGX_HTTP_SANDBOX_H_INGRESS_TO
             && n != NGX_HTTP_SANDBOX_H_INGRESS_OLD)
            || twin)
        {
            continue;
        }

        bit = n == NGX_HTTP_SANDBOX_H_INGRESS_TO ? NGX_HTTP_SANDBOX_INGRESS_NEW
                                                 : NGX_HTTP_SANDBOX_INGRESS_OLD;

        if (ctx->ingress_seen & bit) {
            return "A header that names the route occurs more than once.";
        }

        ctx->ingress_seen |= bit;

        if (ctx->ingress_to.data == NULL) {
            ctx->ingress_to = h[i].value;

        } else if (ctx->ingress_to.len != h[i].value.len
                   || ngx_strncmp(ctx->ingress_to.data, h[i].value.data,
                                  h[i].value.len)
                      != 0)
        {
            return "OpenSandbox-Ingress-To and OPEN-SANDBOX-INGRESS name "
                   "different routes.";
        }
    }

    if (ctx->ingress_to.len == 0) {
        /* an empty one counts for nothing, and is not passed on */
        ctx->ingress_seen = 0;
    }

    return NULL;
}


/* The first label of a Host right below one of the bases, as it was sent. */

static ngx_uint_t
ngx_http_sandbox_ingress_label(ngx_http_request_t *r,
    ngx_http_sandbox_ingress_t *conf, ngx_str_t *label)
{
    size_t      len;
    ngx_str_t  *base, *server;
    ngx_uint_t  i;

    server = &r->headers_in.server;

    if (r->headers_in.host == NULL) {
        return 0;
    }

    base = conf->bases.elts;

    for (i = 0; i < conf->bases.nelts; i++) {

        if (server->len < base[i].len + 2) {
            continue;
        }

        len = server->len - base[i].len - 1;

        if (server->data[len] != '.'
            || ngx_strncmp(server->data + len + 1, base[i].data, base[i].len)
               != 0
            || ngx_strlchr(server->data, server->data + len, '.') != NULL
            || r->headers_in.host->value.len < server->len
            || ngx_strncasecmp(r->headers_in.host->value.data, server->data,
                               server->len)
               != 0)
        {
            continue;
        }

        label->data = r->headers_in.host->value.data;
        label->len = len;

        return 1;
    }

    return 0;
}


/* Is a Host below one of the bases? */

ngx_uint_t
ngx_http_sandbox_ingress_host(ngx_http_request_t *r)
{
    ngx_str_t                     label;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    return ngx_http_sandbox_ingress_label(r, lcf->ingress, &label);
}


/* What nginx adds to lines about a request holds its target, its Host and what
 * went upstream: the signature of a route is not for logs. */

static u_char *
ngx_http_sandbox_ingress_log(ngx_http_request_t *r, ngx_http_request_t *sr,
    u_char *buf, size_t len)
{
    u_char                  *p, *end, *last;
    sb_str_t                 secret;
    ngx_http_sandbox_ctx_t  *ctx;

    ctx = ngx_http_sandbox_get_ctx(r);

    if (ctx == NULL || ctx->log_handler == NULL) {
        return buf;
    }

    last = ctx->log_handler(r, sr, buf, len);
    end = buf + len < last ? buf + len : last;

    secret = ctx->route.signature;

    for (p = buf; (size_t) (end - p) >= secret.len; p++) {

        p = memmem(p, (size_t) (end - p), secret.data, secret.len);

        if (p == NULL) {
            break;
        }

        ngx_memset(p, '*', secret.len);
    }

    /* one that was cut by the end of the line is of no use to anybody */

    return last;
}
