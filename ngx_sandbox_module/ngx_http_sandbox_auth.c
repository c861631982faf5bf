/*
 * Who asks, for which host, on whose behalf, and which of that goes upstream
 * (design 4, 7).
 */


#include "ngx_http_sandbox.h"


#define NGX_HTTP_SANDBOX_ACTOR_MAX  256


/* request headers that this module reads or decides about */

typedef enum {
    NGX_HTTP_SANDBOX_H_API_KEY = 0,
    NGX_HTTP_SANDBOX_H_ACTOR_TYPE,
    NGX_HTTP_SANDBOX_H_ACTOR_ID,
    NGX_HTTP_SANDBOX_H_AGENT_ID,
    NGX_HTTP_SANDBOX_H_THREAD,
    NGX_HTTP_SANDBOX_H_RUN,
    NGX_HTTP_SANDBOX_H_CORRELATION,
    NGX_HTTP_SANDBOX_H_PARENT,
    NGX_HTTP_SANDBOX_H_TRACEPARENT,
    NGX_HTTP_SANDBOX_H_REQUEST_ID,
    NGX_HTTP_SANDBOX_H_INGRESS_TO,
    NGX_HTTP_SANDBOX_H_INGRESS_OLD,
    NGX_HTTP_SANDBOX_H_ACCEPT_ENCODING,
    NGX_HTTP_SANDBOX_H_WS_EXTENSIONS,
    NGX_HTTP_SANDBOX_H_NONE
} ngx_http_sandbox_header_e;


static ngx_str_t  ngx_http_sandbox_headers[] = {
    ngx_string("open-sandbox-api-key"),
    ngx_string("x-actor-type"),
    ngx_string("x-actor-id"),
    ngx_string("x-agent-id"),
    ngx_string("x-thread-id"),
    ngx_string("x-run-id"),
    ngx_string("x-correlation-id"),
    ngx_string("x-parent-operation-id"),
    ngx_string("traceparent"),
    ngx_string("x-request-id"),
    ngx_string("opensandbox-ingress-to"),
    ngx_string("open-sandbox-ingress"),
    ngx_string("accept-encoding"),
    ngx_string("sec-websocket-extensions")
};


static ngx_str_t  ngx_http_sandbox_key_name =
    ngx_string("OPEN-SANDBOX-API-KEY");


static ngx_uint_t ngx_http_sandbox_header(ngx_table_elt_t *h,
    ngx_uint_t *twin);
static ngx_int_t ngx_http_sandbox_credential(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    ngx_str_t *value);
static ngx_uint_t ngx_http_sandbox_bearer(ngx_table_elt_t *h,
    ngx_str_t *value);
static ngx_uint_t ngx_http_sandbox_loopback(ngx_str_t *host);
static ngx_uint_t ngx_http_sandbox_server_name(ngx_http_request_t *r,
    ngx_str_t *host);
static void ngx_http_sandbox_kill(ngx_table_elt_t *h);
static ngx_uint_t ngx_http_sandbox_ours(ngx_http_sandbox_loc_conf_t *lcf,
    ngx_str_t *value);
static void ngx_http_sandbox_hop_by_hop(ngx_http_request_t *r);
static void ngx_http_sandbox_hop_names(ngx_http_request_t *r,
    ngx_str_t *names);
static ngx_int_t ngx_http_sandbox_set(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value);
static ngx_int_t ngx_http_sandbox_stated(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_str_t *value);


/* Walking the list of request headers: `h` is each element in turn. */

#define ngx_http_sandbox_each_header(r, part, h, i)                           \
    for (part = &(r)->headers_in.headers.part, h = part->elts, i = 0;         \
         ngx_http_sandbox_next(&part, &h, &i);                                \
         i++)


static ngx_inline ngx_uint_t
ngx_http_sandbox_next(ngx_list_part_t **part, ngx_table_elt_t **h,
    ngx_uint_t *i)
{
    while (*i >= (*part)->nelts) {

        if ((*part)->next == NULL) {
            return 0;
        }

        *part = (*part)->next;
        *h = (*part)->elts;
        *i = 0;
    }

    return 1;
}


/*
 * Which header of ours is it?  "_" counts as "-": an underscore twin of an
 * identity header must not pass beside the real one (C140).
 */

static ngx_uint_t
ngx_http_sandbox_header(ngx_table_elt_t *h, ngx_uint_t *twin)
{
    u_char      *p, *q;
    size_t       n;
    ngx_uint_t   i;

    *twin = 0;

    for (i = 0; i < NGX_HTTP_SANDBOX_H_NONE; i++) {

        if (h->key.len != ngx_http_sandbox_headers[i].len) {
            continue;
        }

        p = h->lowcase_key;
        q = ngx_http_sandbox_headers[i].data;

        for (n = h->key.len; n; n--, p++, q++) {
            if (*p != *q) {
                if (*p != '_' || *q != '-') {
                    break;
                }

                *twin = 1;
            }
        }

        if (n == 0) {
            return i;
        }
    }

    return NGX_HTTP_SANDBOX_H_NONE;
}


void
ngx_http_sandbox_authenticate(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_str_t                     value;
    ngx_uint_t                    i, twin;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ctx->checked = 1;

    if (lcf->tokens == NULL) {
        return;
    }

    /* one right credential suffices, OPEN-SANDBOX-API-KEY first */

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header(&h[i], &twin) == NGX_HTTP_SANDBOX_H_API_KEY
            && !twin
            && ngx_http_sandbox_credential(r, ctx, lcf, &h[i].value) == NGX_OK)
        {
            return;
        }
    }

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_bearer(&h[i], &value)
            && ngx_http_sandbox_credential(r, ctx, lcf, &value) == NGX_OK)
        {
            return;
        }
    }
}


static ngx_int_t
ngx_http_sandbox_credential(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *value)
{
    char                          *buf;
    sb_endpoint_token_t            e;
    ngx_http_sandbox_main_conf_t  *mcf;

    ctx->token = sb_token_check(lcf->tokens, ngx_http_sandbox_str(value),
                                ctx->started_us);
    if (ctx->token) {
        ctx->authenticated = 1;
        return NGX_OK;
    }

    if (!ctx->route.proxied || ctx->route_rc != SB_OK
        || value->len >= SB_ENDPOINT_TOKEN_MAX)
    {
        return NGX_DECLINED;
    }

    buf = ngx_pnalloc(r->pool, SB_ENDPOINT_TOKEN_MAX);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    if (sb_endpoint_token_check(&e, lcf->tokens, ngx_http_sandbox_str(value),
                                ctx->started_us, buf)
        != SB_OK)
    {
        return NGX_DECLINED;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    if (!sb_eq(e.sandbox, ctx->route.sandbox)
        || e.port != ctx->route.port
        || ngx_http_sandbox_endpoint_is_gone(mcf, e.sandbox))
    {
        return NGX_DECLINED;
    }

    ctx->endpoint = e;
    ctx->token = e.row;
    ctx->authenticated = 1;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sandbox_bearer(ngx_table_elt_t *h, ngx_str_t *value)
{
    if (h->key.len != sizeof("authorization") - 1
        || ngx_strncmp(h->lowcase_key, "authorization", h->key.len) != 0
        || h->value.len <= sizeof("Bearer ") - 1
        || ngx_strncasecmp(h->value.data, (u_char *) "Bearer ",
                           sizeof("Bearer ") - 1)
           != 0)
    {
        return 0;
    }

    value->data = h->value.data + sizeof("Bearer ") - 1;
    value->len = h->value.len - (sizeof("Bearer ") - 1);

    while (value->len && value->data[0] == ' ') {
        value->data++;
        value->len--;
    }

    return 1;
}


/*
 * A Host that is neither loopback nor named is refused: a page of a foreign
 * name that resolves to us (DNS rebinding) gets nothing.  A request without
 * Host (HTTP/1.0) names nobody.
 */

ngx_int_t
ngx_http_sandbox_host_allowed(ngx_http_request_t *r)
{
    ngx_str_t                    *host, *hosts, public;
    ngx_uint_t                    i;
    ngx_http_sandbox_loc_conf_t  *lcf;

    host = &r->headers_in.server;

    if (host->len == 0 || ngx_http_sandbox_loopback(host)) {
        return NGX_OK;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->public.len) {
        public = lcf->public;

        for (i = 0; i < public.len; i++) {
            if (public.data[i] == '/' || (public.data[i] == ':'
                                          && public.data[0] != '['))
            {
                break;
            }

            if (public.data[i] == ']') {
                i++;
                break;
            }
        }

        public.len = i;

        if (public.len == host->len
            && ngx_strncasecmp(public.data, host->data, host->len) == 0)
        {
            return NGX_OK;
        }
    }

    if (lcf->hosts == NULL) {
        return ngx_http_sandbox_server_name(r, host) ? NGX_OK : NGX_DECLINED;
    }

    hosts = lcf->hosts->elts;

    for (i = 0; i < lcf->hosts->nelts; i++) {
        if (hosts[i].len == host->len
            && ngx_strncasecmp(hosts[i].data, host->data, host->len) == 0)
        {
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_http_sandbox_loopback(ngx_str_t *host)
{
    in_addr_t  addr;

    if (host->len == sizeof("localhost") - 1
        && ngx_strncmp(host->data, "localhost", host->len) == 0)
    {
        return 1;
    }

    if (host->len == sizeof("[::1]") - 1
        && ngx_strncmp(host->data, "[::1]", host->len) == 0)
    {
        return 1;
    }

    addr = ngx_inet_addr(host->data, host->len);

    return addr != INADDR_NONE && (ntohl(addr) >> 24) == 127;
}


static ngx_uint_t
ngx_http_sandbox_server_name(ngx_http_request_t *r, ngx_str_t *host)
{
    ngx_str_t                  name;
    ngx_uint_t                 i;
    ngx_http_server_name_t    *sn;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    sn = cscf->server_names.elts;

    for (i = 0; i < cscf->server_names.nelts; i++) {

#if (NGX_PCRE)
        if (sn[i].regex) {
            if (ngx_regex_exec(sn[i].regex->regex, host, NULL, 0) >= 0) {
                return 1;
            }

            continue;
        }
#endif

        name = sn[i].name;

        if (name.len > 1 && name.data[0] == '*') {
            /* "*.example.com": the name has to end with ".example.com" */
            name.data++;
            name.len--;

            if (host->len > name.len
                && ngx_strncasecmp(host->data + host->len - name.len,
                                   name.data, name.len)
                   == 0)
            {
                return 1;
            }

            continue;
        }

        if (name.len > 1 && name.data[0] == '.') {
            /* ".example.com": itself, too */

            if (host->len >= name.len
                && ngx_strncasecmp(host->data + host->len - name.len,
                                   name.data, name.len)
                   == 0)
            {
                return 1;
            }

            name.data++;
            name.len--;
        }

        if (name.len > 1 && name.data[name.len - 1] == '*') {
            name.len--;

            if (host->len > name.len
                && ngx_strncasecmp(host->data, name.data, name.len) == 0)
            {
                return 1;
            }

            continue;
        }

        if (name.len && name.len == host->len
            && ngx_strncasecmp(name.data, host->data, host->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Sets actor, thread, run, correlation and parent of the operation.  Identity
 * is set or deleted, never added to: who may not state an actor has the
 * headers deleted; a repeated identity header marks the request.
 */

ngx_int_t
ngx_http_sandbox_identify(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    u_char                       *p;
    ngx_str_t                    *to, value, token_id, trace;
    ngx_uint_t                    i, n, twin, may_state, seen, stated;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    may_state = ctx->token && ctx->token->states_actors;
    stated = 0;
    seen = 0;
    ngx_str_null(&trace);

    ngx_http_sandbox_each_header(r, part, h, i) {

        n = ngx_http_sandbox_header(&h[i], &twin);

        if (n == NGX_HTTP_SANDBOX_H_REQUEST_ID && !twin) {
            ctx->request_id = h[i].value;
            ctx->request_id.len = ngx_min(ctx->request_id.len,
                                          NGX_HTTP_SANDBOX_ACTOR_MAX);
            continue;
        }

        if (n < NGX_HTTP_SANDBOX_H_ACTOR_TYPE
            || n > NGX_HTTP_SANDBOX_H_TRACEPARENT)
        {
            continue;
        }

        if (twin) {
            ngx_http_sandbox_kill(&h[i]);
            continue;
        }

        if (seen & (1 << n)) {
            ctx->identity_bad = 1;
        }

        seen |= 1 << n;

        value = h[i].value;

        if (value.len > NGX_HTTP_SANDBOX_ACTOR_MAX) {
            value.len = sb_utf8_cut(ngx_http_sandbox_str(&value),
                                    NGX_HTTP_SANDBOX_ACTOR_MAX);
        }

        switch (n) {

        case NGX_HTTP_SANDBOX_H_ACTOR_TYPE:
        case NGX_HTTP_SANDBOX_H_ACTOR_ID:
        case NGX_HTTP_SANDBOX_H_AGENT_ID:

            if (!may_state) {
                ngx_http_sandbox_kill(&h[i]);
                continue;
            }

            if (value.len == 0) {
                continue;
            }

            stated = 1;

            if (n == NGX_HTTP_SANDBOX_H_ACTOR_TYPE) {
                ctx->actor_type = value;

            } else if (n == NGX_HTTP_SANDBOX_H_ACTOR_ID
                       || ctx->actor_id.len == 0)
            {
                ctx->actor_id = value;
            }

            continue;

        case NGX_HTTP_SANDBOX_H_THREAD:
            to = &ctx->thread;
            break;

        case NGX_HTTP_SANDBOX_H_RUN:
            to = &ctx->run;
            break;

        case NGX_HTTP_SANDBOX_H_CORRELATION:
            to = &ctx->correlation;
            break;

        case NGX_HTTP_SANDBOX_H_PARENT:
            to = &ctx->parent;
            break;

        default: /* traceparent */
            to = &trace;
        }

        *to = value;
    }

    if (ngx_http_sandbox_stated(r, lcf->actor_type, &ctx->actor_type)
        == NGX_ERROR
        || ngx_http_sandbox_stated(r, lcf->actor_id, &ctx->actor_id)
           == NGX_ERROR
        || ngx_http_sandbox_stated(r, lcf->thread, &ctx->thread) == NGX_ERROR
        || ngx_http_sandbox_stated(r, lcf->run, &ctx->run) == NGX_ERROR
        || ngx_http_sandbox_stated(r, lcf->correlation, &ctx->correlation)
           == NGX_ERROR
        || ngx_http_sandbox_stated(r, lcf->parent, &ctx->parent) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    /* what the endpoint token was issued to, then the token's own actor */

    if (ctx->endpoint.row && !stated) {

        if (ctx->actor_id.len == 0 && ctx->endpoint.actor_id.len) {
            ctx->actor_id.data = (u_char *) ctx->endpoint.actor_id.data;
            ctx->actor_id.len = ctx->endpoint.actor_id.len;
        }

        if (ctx->actor_type.len == 0 && ctx->endpoint.actor_type.len) {
            ctx->actor_type.data = (u_char *) ctx->endpoint.actor_type.data;
            ctx->actor_type.len = ctx->endpoint.actor_type.len;
        }
    }

    if (ctx->actor_type.len == 0) {

        if (ctx->actor_id.len) {
            ngx_str_set(&ctx->actor_type, "agent");

        } else if (ctx->token && ctx->token->type[0]) {
            ctx->actor_type.data = (u_char *) ctx->token->type;
            ctx->actor_type.len = ngx_strlen(ctx->token->type);

        } else {
            ngx_str_set(&ctx->actor_type, "system");
        }
    }

    if (ctx->actor_id.len == 0 && ctx->token && ctx->token->actor[0]) {
        ctx->actor_id.data = (u_char *) ctx->token->actor;
        ctx->actor_id.len = ngx_strlen(ctx->token->actor);
    }

    if (ctx->correlation.len == 0 && trace.len == 55 && trace.data[2] == '-'
        && trace.data[35] == '-')
    {
        ctx->correlation.data = trace.data + 3;
        ctx->correlation.len = 32;
    }

    if (ctx->correlation.len == 0) {
        ctx->correlation.data = ctx->id_text;
        ctx->correlation.len = SB_UUID_LEN;
    }

    if (ctx->token == NULL) {
        ngx_str_set(&ctx->identity, "none");
        return NGX_OK;
    }

    token_id.data = (u_char *) ctx->token->id;
    token_id.len = ngx_strlen(ctx->token->id);

    p = ngx_pnalloc(r->pool, sizeof("endpoint:+stated") + token_id.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ctx->identity.data = p;
    ctx->identity.len = ngx_sprintf(p, "%s:%V%s",
                                    ctx->endpoint.row ? "endpoint" : "token",
                                    &token_id, stated ? "+stated" : "")
                        - p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_stated(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    ngx_str_t *value)
{
    ngx_str_t  v;

    if (cv == NULL) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, cv, &v) != NGX_OK) {
        return NGX_ERROR;
    }

    if (v.len > NGX_HTTP_SANDBOX_ACTOR_MAX) {
        v.len = sb_utf8_cut(ngx_http_sandbox_str(&v),
                            NGX_HTTP_SANDBOX_ACTOR_MAX);
    }

    /* the configuration decides, also that there is none */
    *value = v;

    return NGX_OK;
}


/*
 * Takes a header out of the request.  Elements of the list are pointed to from
 * elsewhere and cannot move; under the name of a hop-by-hop header that the
 * proxy never passes on, and without its value, it is gone for everybody: the
 * upstream, $http_ variables and logs.
 */

static void
ngx_http_sandbox_kill(ngx_table_elt_t *h)
{
    static ngx_uint_t  hash;

    if (hash == 0) {
        hash = ngx_hash_key((u_char *) "keep-alive", sizeof("keep-alive") - 1);
    }

    h->hash = hash;
    ngx_str_set(&h->key, "Keep-Alive");
    h->lowcase_key = (u_char *) "keep-alive";
    ngx_str_set(&h->value, "");
}


/* Is a header's value a credential of the gateway's or of upstream's? */

static ngx_uint_t
ngx_http_sandbox_ours(ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *value)
{
    if (lcf->api_key.len && value->len >= lcf->api_key.len
        && ngx_strlcasestrn(value->data, value->data + value->len,
                            lcf->api_key.data, lcf->api_key.len - 1)
           != NULL)
    {
        return 1;
    }

    /* "Bearer TOKEN", "name=TOKEN; ...": wherever it stands */

    return sb_token_like(ngx_http_sandbox_str(value));
}


/* The headers as upstream is to see them. */

ngx_int_t
ngx_http_sandbox_headers_upstream(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    u_char                       *p;
    ngx_str_t                     rest, name;
    ngx_uint_t                    i, n, twin;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ngx_http_sandbox_hop_by_hop(r);

    ngx_http_sandbox_each_header(r, part, h, i) {

        n = ngx_http_sandbox_header(&h[i], &twin);

        if (n == NGX_HTTP_SANDBOX_H_INGRESS_TO
            || n == NGX_HTTP_SANDBOX_H_INGRESS_OLD)
        {
            /* the road is chosen here, never by the client (C020) */
            ngx_http_sandbox_kill(&h[i]);

        } else if (n == NGX_HTTP_SANDBOX_H_ACCEPT_ENCODING) {

            /* what is read as it passes must not be compressed (C041) */

            if (ctx->op->flags & (SB_OPF_STREAM|SB_OPF_ANSWER)) {
                ngx_http_sandbox_kill(&h[i]);
            }

        } else if (n == NGX_HTTP_SANDBOX_H_WS_EXTENSIONS) {

            /* execd has none; frames of terminals are read (C059) */

            if (ctx->op->flags & SB_OPF_UPGRADE
                && ctx->route.surface == SB_SURFACE_EXECD)
            {
                ngx_http_sandbox_kill(&h[i]);
            }

        } else if (n == NGX_HTTP_SANDBOX_H_API_KEY
                   && ctx->route.surface == SB_SURFACE_LIFECYCLE)
        {
            ngx_http_sandbox_kill(&h[i]);

        } else if (ngx_http_sandbox_ours(lcf, &h[i].value)) {
            ngx_http_sandbox_kill(&h[i]);
        }
    }

    if (r->headers_in.upgrade && !ctx->upgrade) {
        /* h2c and the like are not passed on as upgrades (C044) */
        ngx_http_sandbox_kill(r->headers_in.upgrade);
        r->headers_in.upgrade = NULL;
    }

    if (ctx->route.surface == SB_SURFACE_LIFECYCLE && !ctx->route.proxied
        && lcf->api_key.len)
    {
        if (ngx_http_sandbox_set(r, &ngx_http_sandbox_key_name, &lcf->api_key)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ctx->upstream_uri = r->unparsed_uri;

    if (ctx->road == NULL) {

        if (lcf->upstream->tls || r->headers_in.host == NULL) {
            ctx->upstream_host = lcf->upstream->authority;

        } else if (r->headers_in.host) {
            ctx->upstream_host = r->headers_in.host->value;
        }

        return NGX_OK;
    }

    /* the raw rest of the request line behind the path that upstream named */

    rest.data = r->unparsed_uri.data + ctx->route.rest;
    rest.len = r->unparsed_uri.len - ctx->route.rest;

    p = ngx_pnalloc(r->pool, ctx->road->path.len + 1 + rest.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ctx->upstream_uri.data = p;
    p = ngx_copy(p, ctx->road->path.data, ctx->road->path.len);

    if (ctx->road->path.len == 0 && (rest.len == 0 || rest.data[0] != '/')) {
        *p++ = '/';
    }

    p = ngx_copy(p, rest.data, rest.len);
    ctx->upstream_uri.len = p - ctx->upstream_uri.data;

    ctx->upstream_host = ctx->road->host;

    if (ctx->road->ingress_to.len) {
        ngx_str_set(&name, "OpenSandbox-Ingress-To");
        return ngx_http_sandbox_set(r, &name, &ctx->road->ingress_to);
    }

    return NGX_OK;
}


/*
 * Headers named in Connection are for this hop only (C003).  What the gateway
 * or the framing needs cannot be taken away by naming it.
 */

static void
ngx_http_sandbox_hop_by_hop(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    /* there may be several; nginx before 1.23 points to none of them */

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (h[i].key.len == sizeof("connection") - 1
            && ngx_strncmp(h[i].lowcase_key, "connection", h[i].key.len) == 0)
        {
            ngx_http_sandbox_hop_names(r, &h[i].value);
        }
    }
}


static void
ngx_http_sandbox_hop_names(ngx_http_request_t *r, ngx_str_t *names)
{
    u_char           *p, *last, *start;
    size_t            len;
    ngx_uint_t        i, n, twin;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    p = names->data;
    last = p + names->len;

    while (p < last) {

        while (p < last && (*p == ' ' || *p == ',' || *p == '\t')) {
            p++;
        }

        start = p;

        while (p < last && *p != ' ' && *p != ',' && *p != '\t') {
            p++;
        }

        len = p - start;

        if (len == 0) {
            continue;
        }

        ngx_http_sandbox_each_header(r, part, h, i) {

            if (h[i].key.len != len
                || ngx_strncasecmp(h[i].key.data, start, len) != 0)
            {
                continue;
            }

            n = ngx_http_sandbox_header(&h[i], &twin);

            if (n < NGX_HTTP_SANDBOX_H_REQUEST_ID
                || &h[i] == r->headers_in.host
                || &h[i] == r->headers_in.upgrade
                || &h[i] == r->headers_in.content_length
                || &h[i] == r->headers_in.transfer_encoding
                || &h[i] == r->headers_in.content_type)
            {
                continue;
            }

            ngx_http_sandbox_kill(&h[i]);
        }
    }
}


static ngx_int_t
ngx_http_sandbox_set(ngx_http_request_t *r, ngx_str_t *name, ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_in.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->key = *name;
    h->value = *value;
    h->lowcase_key = ngx_pnalloc(r->pool, name->len);
    if (h->lowcase_key == NULL) {
        return NGX_ERROR;
    }

    h->hash = ngx_hash_strlow(h->lowcase_key, name->data, name->len);

    return NGX_OK;
}
