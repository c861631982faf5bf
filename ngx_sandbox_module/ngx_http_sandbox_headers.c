/*
 * Request headers on their way to upstream: credentials and hop-by-hop headers
 * are taken out, the upstream key is put in (design 6, 7).
 */


#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_port.h"


/* a header that is put into requests; its hash is made when first used */

typedef struct {
    ngx_str_t    key;
    const char  *lowcase;
    ngx_uint_t   hash;
} ngx_http_sandbox_name_t;


static u_char *ngx_http_sandbox_caseless(u_char *p, u_char *last, u_char c);
static void ngx_http_sandbox_hop_by_hop(ngx_http_request_t *r);
static void ngx_http_sandbox_hop_names(ngx_http_request_t *r,
    ngx_str_t *names);
static ngx_uint_t ngx_http_sandbox_hop_next(ngx_str_t *names, ngx_str_t *name);
static void ngx_http_sandbox_hop_hide(ngx_http_request_t *r, ngx_str_t *name);
static ngx_int_t ngx_http_sandbox_set(ngx_http_request_t *r,
    ngx_http_sandbox_name_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_sandbox_set_route(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);


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
    ngx_string("x-opensandbox-user"),
    ngx_string("x-opensandbox-team"),
    ngx_string("x-opensandbox-roles"),
    ngx_string("accept-encoding"),
    ngx_string("sec-websocket-extensions"),
    ngx_string("x-sandbox-restored-from"),
    ngx_string("trailer"),
    ngx_string("proxy-authorization"),
    ngx_string("proxy-connection"),
    ngx_string("connection"),
    ngx_string("cookie"),
    ngx_string("x-sandbox-lock"),
    ngx_string("x-sandbox-lock-timeout"),
    ngx_string("x-sandbox-lease")
};


static ngx_http_sandbox_name_t  ngx_http_sandbox_key_name = {
    ngx_string("OPEN-SANDBOX-API-KEY"), "open-sandbox-api-key", 0
};

static ngx_http_sandbox_name_t  ngx_http_sandbox_ingress_name = {
    ngx_string("OpenSandbox-Ingress-To"), "opensandbox-ingress-to", 0
};

static ngx_http_sandbox_name_t  ngx_http_sandbox_ingress_old_name = {
    ngx_string("OPEN-SANDBOX-INGRESS"), "open-sandbox-ingress", 0
};


ngx_uint_t
ngx_http_sandbox_header(ngx_table_elt_t *h, ngx_uint_t *twin)
{
    u_char      *p, *q;
    size_t       n;
    ngx_uint_t   i, dashes;

    /* every header of every request is looked at: those of one length are
     * linked, from the first of each */
    static u_char  first[32], next[NGX_HTTP_SANDBOX_H_NONE];

    *twin = 0;

    if (first[0] == 0) {
        ngx_memset(first, NGX_HTTP_SANDBOX_H_NONE, sizeof(first));

        for (i = 0; i < NGX_HTTP_SANDBOX_H_NONE; i++) {
            n = ngx_http_sandbox_headers[i].len;
            next[i] = first[n];
            first[n] = (u_char) i;
        }
    }

    if (h->key.len >= sizeof(first)) {
        return NGX_HTTP_SANDBOX_H_NONE;
    }

    dashes = 0;

    for (i = first[h->key.len]; i != NGX_HTTP_SANDBOX_H_NONE; i = next[i]) {

        p = h->lowcase_key;
        q = ngx_http_sandbox_headers[i].data;

        /* none begins with '-': nearly all differ here */
        if (*p != *q) {
            continue;
        }

        if (ngx_memcmp(p, q, h->key.len) == 0) {
            return i;
        }

        if (dashes || memchr(p, '_', h->key.len) == NULL) {
            /* most that begin alike go on alike, too */
            dashes = 1;
            continue;
        }

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


/* The next place of a letter of either case, or of another byte. */

static u_char *
ngx_http_sandbox_caseless(u_char *p, u_char *last, u_char c)
{
    u_char  *lower, *upper;

    c = ngx_tolower(c);

    lower = memchr(p, c, last - p);

    if (c < 'a' || c > 'z') {
        return lower;
    }

    upper = memchr(p, c ^ 0x20, (lower ? lower : last) - p);

    return upper ? upper : lower;
}


/*
 * A key of upstream's that is short could be a part of any word: it counts
 * when it stands alone.
 */

ngx_uint_t
ngx_http_sandbox_ours(ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *value)
{
    u_char     *p, *last, *end;
    ngx_str_t  *key;

    key = &lcf->api_key;
    last = value->data + value->len;

    for (p = value->data;
         key->len && (size_t) (last - p) >= key->len;
         p++)
    {
        p = ngx_http_sandbox_caseless(p, last - key->len + 1, key->data[0]);

        if (p == NULL) {
            break;
        }

        if (ngx_strncasecmp(p, key->data, key->len) != 0) {
            continue;
        }

        end = p + key->len;

        if (key->len >= 16
            || ((p == value->data || !isalnum(p[-1]))
                && (end == last || !isalnum(*end))))
        {
            return 1;
        }
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
    ngx_str_t                     rest;
    ngx_uint_t                    i, n, twin;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (ngx_http_sandbox_has(ctx, NGX_HTTP_SANDBOX_H_CONNECTION)) {
        ngx_http_sandbox_hop_by_hop(r);
    }

    if (ngx_http_sandbox_has(ctx, NGX_HTTP_SANDBOX_H_COOKIE)
        && ngx_http_sandbox_cookie_strip(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_sandbox_each_header(r, part, h, i) {

        n = ngx_http_sandbox_header(&h[i], &twin);

        if (n == NGX_HTTP_SANDBOX_H_INGRESS_TO
            || n == NGX_HTTP_SANDBOX_H_INGRESS_OLD)
        {
            /* the road is chosen here, never by the client (C020); the
             * route of an ingress is set anew below */
            ngx_http_sandbox_kill(&h[i]);

        } else if (n >= NGX_HTTP_SANDBOX_H_TRAILER
                   && n <= NGX_HTTP_SANDBOX_H_PROXY_CONN)
        {
            /* of this hop; nginx passes no trailers on (C003) */
            ngx_http_sandbox_kill(&h[i]);

        } else if (n == NGX_HTTP_SANDBOX_H_RESTORED) {
            /* said to the gateway */
            ngx_http_sandbox_kill(&h[i]);

        } else if (n == NGX_HTTP_SANDBOX_H_OSB_USER
                   || n == NGX_HTTP_SANDBOX_H_OSB_TEAM
                   || n == NGX_HTTP_SANDBOX_H_OSB_ROLES)
        {
            /* upstream would believe them */

            if (twin || !ctx->trusted) {
                ngx_http_sandbox_kill(&h[i]);
            }

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
                   || (&h[i] != r->headers_in.upgrade
                       && ngx_http_sandbox_header_is(&h[i], "upgrade")))
        {
            /* whatever is in it: no sandbox may see a key of upstream's, also
             * one that is not known here; nor is a second Upgrade judged */
            ngx_http_sandbox_kill(&h[i]);

        } else if (&h[i] != r->headers_in.host
                   && ngx_http_sandbox_ours(lcf, &h[i].value))
        {
            ngx_http_sandbox_kill(&h[i]);
        }
    }

    if (!(ctx->op->flags & (SB_OPF_UPGRADE|SB_OPF_UNKNOWN))) {
        /* judged, and maybe not recorded, as a plain request */
        ctx->upgrade = 0;
    }

    if (r->headers_in.upgrade && !ctx->upgrade) {
        /* h2c and the like are not passed on as upgrades (C044) */
        ngx_http_sandbox_kill(r->headers_in.upgrade);
        r->headers_in.upgrade = NULL;
    }

    if (ctx->route.surface == SB_SURFACE_LIFECYCLE && !ctx->route.proxied
        && !ctx->ingress && ctx->authenticated && lcf->api_key.len)
    {
        if (ngx_http_sandbox_set(r, &ngx_http_sandbox_key_name, &lcf->api_key)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ctx->upstream_uri = ctx->target;

    if (ctx->road == NULL) {

        if (r->headers_in.host == NULL || ctx->port_listener
            || (!ctx->ingress
                && (lcf->host_header == NGX_HTTP_SANDBOX_HOST_UPSTREAM
                    || (lcf->host_header == NGX_HTTP_SANDBOX_HOST_AUTO
                        && lcf->upstream->tls))))
        {
            ctx->upstream_host = lcf->upstream->authority;

        } else {
            ctx->upstream_host = r->headers_in.host->value;
        }

        return ngx_http_sandbox_set_route(r, ctx);
    }

    /* the raw rest of the request line behind the path that upstream named */

    rest.data = ctx->target.data + ctx->route.rest;
    rest.len = ctx->target.len - ctx->route.rest;

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
        return ngx_http_sandbox_set(r, &ngx_http_sandbox_ingress_name,
                                    &ctx->road->ingress_to);
    }

    return NGX_OK;
}


/* The headers by which an ingress is to find the route that was judged, under
 * the names that the client used: an old ingress knows but the old one. */

static ngx_int_t
ngx_http_sandbox_set_route(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    if (ctx->ingress_seen & NGX_HTTP_SANDBOX_INGRESS_NEW
        && ngx_http_sandbox_set(r, &ngx_http_sandbox_ingress_name,
                                &ctx->ingress_to)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->ingress_seen & NGX_HTTP_SANDBOX_INGRESS_OLD) {
        return ngx_http_sandbox_set(r, &ngx_http_sandbox_ingress_old_name,
                                    &ctx->ingress_to);
    }

    return NGX_OK;
}


/* Each name is looked for among all headers: a client sends one or two. */

const char *
ngx_http_sandbox_hop_fault(ngx_http_request_t *r)
{
    ngx_str_t         rest, name;
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (!ngx_http_sandbox_header_is(&h[i], "connection")) {
            continue;
        }

        rest = h[i].value;

        while (ngx_http_sandbox_hop_next(&rest, &name)) {

            if (++n > NGX_HTTP_SANDBOX_HOP_NAMES) {
                return "Connection names more than 32 headers.";
            }
        }
    }

    return NULL;
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

        if (ngx_http_sandbox_header_is(&h[i], "connection")) {
            ngx_http_sandbox_hop_names(r, &h[i].value);
        }
    }
}


static void
ngx_http_sandbox_hop_names(ngx_http_request_t *r, ngx_str_t *names)
{
    ngx_str_t         rest, name;
    ngx_uint_t        i, n, twin;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    rest = *names;

    while (ngx_http_sandbox_hop_next(&rest, &name)) {

        ngx_http_sandbox_each_header(r, part, h, i) {

            if (h[i].key.len != name.len
                || ngx_strncasecmp(h[i].key.data, name.data, name.len) != 0)
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
ngx_http_sandbox_set(ngx_http_request_t *r, ngx_http_sandbox_name_t *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_in.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->key = name->key;
    h->value = *value;
    h->lowcase_key = (u_char *) name->lowcase;

    if (name->hash == 0) {
        name->hash = ngx_hash_key((u_char *) name->lowcase, name->key.len);
    }

    h->hash = name->hash;

    return NGX_OK;
}


/* The next name of a list such as that of Connection. */

static ngx_uint_t
ngx_http_sandbox_hop_next(ngx_str_t *names, ngx_str_t *name)
{
    u_char  *p, *last;

    p = names->data;
    last = p + names->len;

    while (p < last && (*p == ' ' || *p == ',' || *p == '\t')) {
        p++;
    }

    name->data = p;

    while (p < last && *p != ' ' && *p != ',' && *p != '\t') {
        p++;
    }

    name->len = p - name->data;
    names->data = p;
    names->len = last - p;

    return name->len != 0;
}


void
ngx_http_sandbox_hop_answer(ngx_http_request_t *r)
{
    ngx_str_t             rest, name;
    ngx_uint_t            i;
    ngx_list_part_t      *part;
    ngx_table_elt_t      *h;
    ngx_http_upstream_t  *u;

    u = r->upstream;

    if (u == NULL || u->headers_in.connection == NULL) {
        return;
    }

    /* there may be several of them */

    part = &u->headers_in.headers.part;
    h = part->elts;

    for (i = 0; ngx_http_sandbox_next(&part, &h, &i); i++) {

        if (!ngx_http_sandbox_header_is(&h[i], "connection")) {
            continue;
        }

        rest = h[i].value;

        while (ngx_http_sandbox_hop_next(&rest, &name)) {
            ngx_http_sandbox_hop_hide(r, &name);
        }
    }
}


/* Upgrade stands beside "Connection: upgrade" in every WebSocket answer. */

static void
ngx_http_sandbox_hop_hide(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    if (name->len == sizeof("upgrade") - 1
        && ngx_strncasecmp(name->data, (u_char *) "upgrade", name->len) == 0)
    {
        return;
    }

    part = &r->headers_out.headers.part;
    h = part->elts;

    for (i = 0; ngx_http_sandbox_next(&part, &h, &i); i++) {

        if (h[i].key.len == name->len
            && ngx_strncasecmp(h[i].key.data, name->data, name->len) == 0)
        {
            h[i].hash = 0;
        }
    }
}
