/* Who asks, for which host, and on whose behalf (design 4, 7). */


#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_session.h"
#include "ngx_http_sandbox_tokens.h"


#define NGX_HTTP_SANDBOX_ACTOR_MAX  256


static ngx_uint_t ngx_http_sandbox_bearer(ngx_table_elt_t *h,
    ngx_str_t *value);
static ngx_uint_t ngx_http_sandbox_loopback(ngx_str_t *host);
static ngx_uint_t ngx_http_sandbox_server_name(ngx_http_request_t *r,
    ngx_str_t *host);
static ngx_int_t ngx_http_sandbox_stated(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, ngx_str_t *value);


void
ngx_http_sandbox_authenticate(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_str_t                     value;
    ngx_uint_t                    i, twin, wrong;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ctx->checked = 1;

    if (lcf->tokens == NULL) {
        return;
    }

    ngx_http_sandbox_tokens_refresh(lcf->tokens);

    wrong = 0;

    /* one right credential suffices, OPEN-SANDBOX-API-KEY first */

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header(&h[i], &twin) == NGX_HTTP_SANDBOX_H_API_KEY
            && !twin)
        {
            if (ngx_http_sandbox_credential(r, ctx, lcf->tokens, &h[i].value)
                == NGX_OK)
            {
                return;
            }

            wrong = 1;
        }
    }

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_bearer(&h[i], &value)) {

            if (ngx_http_sandbox_credential(r, ctx, lcf->tokens, &value)
                == NGX_OK)
            {
                return;
            }

            wrong = 1;
        }
    }

    ctx->wrong = ngx_http_sandbox_session_enter(r, ctx) != NGX_OK && wrong;
}


static ngx_uint_t
ngx_http_sandbox_bearer(ngx_table_elt_t *h, ngx_str_t *value)
{
    if (!ngx_http_sandbox_header_is(h, "authorization")
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
    ngx_uint_t                    i, below;
    ngx_http_sandbox_loc_conf_t  *lcf;

    host = &r->headers_in.server;
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    below = ngx_http_sandbox_ingress_host(r);

    if (host->len == 0 || ngx_http_sandbox_loopback(host)
        || (below && !lcf->api))
    {
        return NGX_OK;
    }

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
        /* a name below an ingress is a sandbox's, never the console's */

        return !below && ngx_http_sandbox_server_name(r, host) ? NGX_OK
                                                               : NGX_DECLINED;
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
        && (ngx_memcmp(host->data, "localhost", host->len) == 0
            || ngx_memcmp(host->data, "127.0.0.1", host->len) == 0))
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
    ngx_str_t                     name;
    ngx_uint_t                    i;
    ngx_http_server_name_t       *sn;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    sn = lcf->names->elts;

    for (i = 0; i < lcf->names->nelts; i++) {

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
    uint8_t                       parsed[16];
    ngx_str_t                    *to, value, token_id, trace, user;
    ngx_uint_t                    i, n, twin, may_state, seen, stated;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ctx->trusted = ngx_http_sandbox_trusted(r);
    may_state = !ctx->port_listener && ctx->session.len == 0
                && (ctx->trusted
                    || (ctx->token && ctx->token->states_actors));
    stated = 0;
    ngx_str_null(&user);
    seen = 0;
    ngx_str_null(&trace);

    ngx_http_sandbox_each_header(r, part, h, i) {

        n = ngx_http_sandbox_header(&h[i], &twin);

        ctx->headers |= (uint32_t) 1 << n;

        if (n == NGX_HTTP_SANDBOX_H_REQUEST_ID && !twin) {
            ctx->request_id = h[i].value;
            ctx->request_id.len = ngx_min(ctx->request_id.len,
                                          NGX_HTTP_SANDBOX_ACTOR_MAX);
            continue;
        }

        if (n == NGX_HTTP_SANDBOX_H_RESTORED && !twin) {
            ctx->restored_bad |= ctx->restored.len
                                 || sb_uuid_parse(parsed,
                                        ngx_http_sandbox_str(&h[i].value))
                                    != SB_OK;
            ctx->restored = h[i].value;
            continue;
        }

        if (n != NGX_HTTP_SANDBOX_H_OSB_USER
            && (n < NGX_HTTP_SANDBOX_H_ACTOR_TYPE
                || n > NGX_HTTP_SANDBOX_H_TRACEPARENT))
        {
            continue;
        }

        if (twin || (n == NGX_HTTP_SANDBOX_H_OSB_USER && !ctx->trusted)) {
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

        case NGX_HTTP_SANDBOX_H_OSB_USER:
            to = &user;
            break;

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

    if (user.len && ctx->actor_id.len == 0 && may_state) {
        ctx->actor_id = user;
        stated = 1;

        if (ctx->actor_type.len == 0) {
            ngx_str_set(&ctx->actor_type, "user");
        }
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

        if (ctx->session.len) {
            ngx_str_set(&ctx->actor_type, "console");

        } else if (ctx->actor_id.len) {
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

    if (ctx->actor_id.len == 0 && ctx->session.len) {
        /* people have names */
        ctx->actor_id.data = (u_char *) ctx->token->id;
        ctx->actor_id.len = ngx_strlen(ctx->token->id);
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

    if (ctx->port_listener) {
        p = ngx_cpymem(p, "ticket:", sizeof("ticket:") - 1);

    } else if (ctx->session.len) {
        p = ngx_cpymem(p, "session:", sizeof("session:") - 1);

    } else if (ctx->endpoint.row) {
        p = ngx_cpymem(p, "endpoint:", sizeof("endpoint:") - 1);

    } else {
        p = ngx_cpymem(p, "token:", sizeof("token:") - 1);
    }

    p = ngx_cpymem(p, token_id.data, token_id.len);

    if (stated) {
        p = ngx_cpymem(p, "+stated", sizeof("+stated") - 1);
    }

    ctx->identity.len = p - ctx->identity.data;

    return NGX_OK;
}


ngx_uint_t
ngx_http_sandbox_trusted(ngx_http_request_t *r)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    return lcf->peers
           && ngx_cidr_match(r->connection->sockaddr, lcf->peers) == NGX_OK;
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
