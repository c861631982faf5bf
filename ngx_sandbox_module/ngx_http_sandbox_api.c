/* The console API: who asks, and which route (ngx_http_sandbox_api.h). */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_tokens.h"


static ngx_int_t ngx_http_sandbox_api_handler(ngx_http_request_t *r);
static void ngx_http_sandbox_api_cleanup(void *data);
static void ngx_http_sandbox_api_slowed(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_api_401(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static ngx_int_t ngx_http_sandbox_api_who(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static sb_str_t ngx_http_sandbox_api_sandbox(ngx_str_t *path);
static ngx_uint_t ngx_http_sandbox_api_match(const char *pattern,
    ngx_str_t *path, ngx_str_t *args);
static ngx_http_sandbox_api_route_t *ngx_http_sandbox_api_find(
    ngx_http_request_t *r, ngx_http_sandbox_api_t *a, ngx_str_t *allow);
static ngx_int_t ngx_http_sandbox_api_body(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static void ngx_http_sandbox_api_body_ready(ngx_http_request_t *r);


static ngx_str_t  ngx_http_sandbox_api_get_name = ngx_string("GET");


/* sandbox_console_api */

char *
ngx_http_sandbox_conf_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_http_core_loc_conf_t  *clcf;

    if (lcf->api) {
        return "is duplicate";
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->name.len == 0 || clcf->name.data[clcf->name.len - 1] != '/'
#if (NGX_PCRE)
        || clcf->regex
#endif
        )
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_console_api needs a location of a path "
                           "that ends with \"/\", such as /console/api/v1/");
        return NGX_CONF_ERROR;
    }

    lcf->api = 1;
    clcf->handler = ngx_http_sandbox_api_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_api_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_str_t                      allow;
    ngx_http_cleanup_t            *cln;
    ngx_http_sandbox_api_t        *a;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_api_route_t  *route;

    if (r != r->main) {
        return NGX_HTTP_NOT_FOUND;
    }

    ngx_http_sandbox_metric_add(API_REQUESTS, 1);

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_sandbox_api_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a = cln->data;
    ngx_memzero(a, sizeof(ngx_http_sandbox_api_t));

    a->request = r;
    cln->handler = ngx_http_sandbox_api_cleanup;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    a->path.data = r->uri.data + clcf->name.len;
    a->path.len = r->uri.len - clcf->name.len;

    if (ngx_http_sandbox_host_allowed(r) != NGX_OK) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_MISDIRECTED_REQUEST,
                                           "GATEWAY_WRONG_HOST",
                                           "This gateway does not serve the "
                                           "host named in the request; name it "
                                           "with sandbox_host or --host.");
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (ngx_http_sandbox_ours(lcf, &r->unparsed_uri)
        || ngx_http_sandbox_ours(lcf, &r->uri))
    {
        /* questions are on record, with their query */
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           "GATEWAY_AMBIGUOUS_REQUEST",
                                           "The request target holds a "
                                           "credential: send it in the header "
                                           "OPEN-SANDBOX-API-KEY.");
    }

    rc = ngx_http_sandbox_api_who(r, a);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           "GATEWAY_AMBIGUOUS_REQUEST",
                                           "A header that says who acts occurs "
                                           "more than once.");
    }

    if (a->origin_fault) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_FORBIDDEN,
                                           "GATEWAY_FORBIDDEN",
                                           a->origin_fault);
    }

    route = ngx_http_sandbox_api_find(r, a, &allow);

    if (a->token == NULL
        && (route == NULL || !(route->flags & NGX_HTTP_SANDBOX_API_PUBLIC)))
    {
        return ngx_http_sandbox_api_unauthenticated(r, a, a->wrong,
                                   "The console API needs a token of the "
                                   "gateway: send it as Authorization: Bearer "
                                   "or as OPEN-SANDBOX-API-KEY, or sign in "
                                   "with POST session.");
    }

    if (route == NULL) {

        if (ngx_http_sandbox_add_header(r, "Allow", (char *) allow.data,
                                        allow.len)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_NOT_ALLOWED,
                                           "GATEWAY_METHOD_NOT_ALLOWED",
                                           "The console API has no such method "
                                           "here; the header Allow names those "
                                           "that it has.");
    }

    if (a->token && a->token->role < route->role) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_FORBIDDEN,
                                           "GATEWAY_FORBIDDEN",
                                           route->role == SB_ROLE_ADMIN
                                           ? "This needs a token with the role "
                                             "admin."
                                           : "This needs a token with the role "
                                             "operator.");
    }

    if (a->token && !(route->flags & NGX_HTTP_SANDBOX_API_PUBLIC)
        && !sb_token_allows(a->token, ngx_http_sandbox_api_sandbox(&a->path)))
    {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_FORBIDDEN,
                                           "GATEWAY_FORBIDDEN",
                                           "The token is for certain sandboxes "
                                           "only: ask for what is below "
                                           "sandboxes/{id}/ of one of these.");
    }

    a->route = route;

    return ngx_http_sandbox_api_body(r, a);
}


ngx_int_t
ngx_http_sandbox_api_unauthenticated(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a, ngx_uint_t wrong, const char *message)
{
    ngx_msec_t                    delay;
    ngx_http_sandbox_loc_conf_t  *lcf;

    ngx_http_sandbox_metric_add(AUTH_FAILURES, 1);

    a->unauthenticated = message;

    if (wrong) {
        lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
        delay = ngx_http_sandbox_tokens_wrong(lcf->tokens, r->connection);

        if (delay) {
            ngx_http_sandbox_tokens_delay(r, delay,
                                          ngx_http_sandbox_api_slowed);
            r->main->count++;

            return NGX_DONE;
        }
    }

    return ngx_http_sandbox_api_401(r, a);
}


static void
ngx_http_sandbox_api_slowed(ngx_http_request_t *r)
{
    if (!ngx_http_sandbox_tokens_delayed(r)) {
        ngx_http_finalize_request(r, ngx_http_sandbox_api_401(r,
                                              ngx_http_sandbox_api_get(r)));
    }
}


static ngx_int_t
ngx_http_sandbox_api_401(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    if (ngx_http_sandbox_add_header(r, "WWW-Authenticate", "Bearer",
                                    sizeof("Bearer") - 1)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_sandbox_api_refuse(r, NGX_HTTP_UNAUTHORIZED,
                                       "GATEWAY_UNAUTHENTICATED",
                                       a->unauthenticated);
}


static void
ngx_http_sandbox_api_cleanup(void *data)
{
    ngx_http_sandbox_api_t  *a = data;

    ngx_http_sandbox_ask_cancel(&a->ask);
    ngx_http_sandbox_api_unqueue(a);
}


ngx_http_sandbox_api_t *
ngx_http_sandbox_api_get(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    for (cln = r->main->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_sandbox_api_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/*
 * Who asks: a token as bearer or as OPEN-SANDBOX-API-KEY, or a session, by the
 * same rules as on intercepted routes.
 */

static ngx_int_t
ngx_http_sandbox_api_who(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    /* of the facts of an operation only those of the actor are filled */

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_ctx_t));
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->request = r;
    ctx->started_us = sb_now_us();

    ngx_http_sandbox_authenticate(r, ctx);

    if (ngx_http_sandbox_identify(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->authenticated && ctx->identity_bad) {
        return NGX_DECLINED;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    a->token = ctx->token;
    a->actor_type = ctx->actor_type;
    a->actor_id = ctx->actor_id;

    if (ngx_http_sandbox_ours(lcf, &a->actor_type)) {
        ngx_str_set(&a->actor_type, "[redacted]");
    }

    if (ngx_http_sandbox_ours(lcf, &a->actor_id)) {
        ngx_str_set(&a->actor_id, "[redacted]");
    }

    a->identity = ctx->identity;
    a->session = ctx->session;
    a->wrong = ctx->wrong;
    a->origin_fault = ctx->origin_fault;

    return NGX_OK;
}


/* The sandbox that a path is about: "sandboxes/{id}/...". */

static sb_str_t
ngx_http_sandbox_api_sandbox(ngx_str_t *path)
{
    size_t  n;

    n = sizeof("sandboxes/") - 1;

    if (path->len <= n || ngx_strncmp(path->data, "sandboxes/", n) != 0) {
        return sb_str("", 0);
    }

    while (n < path->len && path->data[n] != '/') {
        n++;
    }

    return sb_str(path->data + sizeof("sandboxes/") - 1,
                  n - (sizeof("sandboxes/") - 1));
}


/* Does a path have the form of a pattern?  Fills args. */

static ngx_uint_t
ngx_http_sandbox_api_match(const char *pattern, ngx_str_t *path,
    ngx_str_t *args)
{
    size_t       n, m;
    u_char      *p, *last;
    ngx_uint_t   arg;

    arg = 0;
    p = path->data;
    last = p + path->len;

    for ( ;; ) {

        if (pattern[0] == '*' && pattern[1] == '*') {
            return 1;
        }

        n = strcspn(pattern, "/");

        for (m = 0; p + m < last && p[m] != '/'; m++) { /* void */ }

        if (pattern[0] == '{') {

            if (m == 0 || arg == NGX_HTTP_SANDBOX_API_ARGS) {
                return 0;
            }

            args[arg].data = p;
            args[arg++].len = m;

        } else if (n != m || ngx_memcmp(pattern, p, n) != 0) {
            return 0;
        }

        if (pattern[n] == '\0' || p + m == last) {
            return pattern[n] == '\0' && p + m == last;
        }

        pattern += n + 1;
        p += m + 1;
    }
}


/* The row of a request; NULL: the path has no such method, allow lists those
 * that it has. */

static ngx_http_sandbox_api_route_t *
ngx_http_sandbox_api_find(ngx_http_request_t *r, ngx_http_sandbox_api_t *a,
    ngx_str_t *allow)
{
    u_char                        *p;
    ngx_str_t                      method, args[NGX_HTTP_SANDBOX_API_ARGS];
    ngx_http_sandbox_api_route_t  *route;

    static u_char                  text[64];

    method = r->method == NGX_HTTP_HEAD ? ngx_http_sandbox_api_get_name
                                        : r->method_name;
    p = text;

    for (route = ngx_http_sandbox_api_routes; route->path; route++) {

        ngx_memzero(args, sizeof(args));

        if (!ngx_http_sandbox_api_match(route->path, &a->path, args)) {
            continue;
        }

        if (route->method[0] == '*') {

            if (p != text) {
                /* a row above has the path and not this method */
                break;
            }

        } else if (ngx_strlen(route->method) != method.len
                   || ngx_strncmp(route->method, method.data, method.len) != 0)
        {
            p = ngx_slprintf(p, text + sizeof(text), "%s%s%s",
                             p == text ? "" : ", ", route->method,
                             ngx_strcmp(route->method, "GET") == 0 ? ", HEAD"
                                                                   : "");
            continue;
        }

        ngx_memcpy(a->args, args, sizeof(args));

        return route;
    }

    allow->data = text;
    allow->len = p - text;

    return NULL;
}


/* The body of a request is small and comes with its length. */

static ngx_int_t
ngx_http_sandbox_api_body(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    off_t                         n, limit;
    ngx_int_t                     rc;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    n = r->headers_in.content_length_n;
    limit = ngx_min((off_t) lcf->body_limit, SB_ASK_BODY);

    if (r->headers_in.chunked
#if (NGX_HTTP_V2)
        || (n == -1 && r->stream && !r->stream->in_closed)
#endif
       )
    {
        if (ngx_http_sandbox_drain(r) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_LENGTH_REQUIRED,
                                           "GATEWAY_LENGTH_REQUIRED",
                                           "A body for the console API must "
                                           "come with Content-Length.");
    }

    if (n > limit) {

        if (ngx_http_sandbox_drain(r) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                           "GATEWAY_LIMIT_EXCEEDED",
                                           "A body for the console API is at "
                                           "most 64 KiB long, or what "
                                           "sandbox_body_limit allows.");
    }

    if (n <= 0 || r->method == NGX_HTTP_GET || r->method == NGX_HTTP_HEAD) {

        rc = ngx_http_discard_request_body(r);

        return rc == NGX_OK ? a->route->handler(r, a) : rc;
    }

    r->request_body_in_single_buf = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_sandbox_api_body_ready);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static void
ngx_http_sandbox_api_body_ready(ngx_http_request_t *r)
{
    sb_str_t                      body;
    ngx_http_sandbox_api_t       *a;
    ngx_http_sandbox_loc_conf_t  *lcf;

    a = ngx_http_sandbox_api_get(r);

    if (a == NULL || ngx_http_sandbox_body_text(r, &body) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    a->body.data = (u_char *) body.data;
    a->body.len = body.len;

    /* a body may come slowly */

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (a->token
        && !ngx_http_sandbox_tokens_stand(r, lcf->tokens, a->token, &a->session))
    {
        a->unauthenticated = "The token, or the session, was revoked or ended "
                             "before the request had come.";
        ngx_http_finalize_request(r, ngx_http_sandbox_api_401(r, a));
        return;
    }

    ngx_http_finalize_request(r, a->route->handler(r, a));
}


ngx_int_t
ngx_http_sandbox_api_headers(ngx_http_request_t *r)
{
    if (ngx_http_sandbox_add_header(r, "Cache-Control", "no-store",
                                    sizeof("no-store") - 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sandbox_add_header(r, "X-Content-Type-Options", "nosniff",
                                       sizeof("nosniff") - 1);
}


ngx_int_t
ngx_http_sandbox_api_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, ngx_str_t *body)
{
    ngx_str_t                 ct;
    ngx_http_complex_value_t  cv;

    if (ngx_http_sandbox_api_headers(r) != NGX_OK
        || (status == NGX_HTTP_SERVICE_UNAVAILABLE
            && ngx_http_sandbox_add_header(r, "Retry-After", "1", 1) != NGX_OK))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ct.data = (u_char *) type;
    ct.len = ngx_strlen(type);

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = *body;

    return ngx_http_send_response(r, status, &ct, &cv);
}


ngx_int_t
ngx_http_sandbox_api_send_buf(ngx_http_request_t *r, ngx_uint_t status,
    sb_rc_t rc, sb_buf_t *b)
{
    ngx_str_t  body;

    body.data = rc == SB_OK ? ngx_pnalloc(r->pool, b->len) : NULL;

    if (body.data) {
        body.len = b->len;
        ngx_memcpy(body.data, b->data, b->len);
    }

    sb_buf_free(b);

    return body.data ? ngx_http_sandbox_api_send(r, status, "application/json",
                                                 &body)
                     : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_sandbox_api_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    size_t     size;
    ngx_str_t  body;

    ngx_http_sandbox_metric_refused(code);

    size = sizeof("{\"code\":\"\",\"message\":\"\",\"details\":{}}")
           + ngx_strlen(code) + ngx_strlen(message);

    body.data = ngx_pnalloc(r->pool, size);
    if (body.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body.len = ngx_sprintf(body.data, "{\"code\":\"%s\",\"message\":\"%s\","
                           "\"details\":{}}", code, message)
               - body.data;

    return ngx_http_sandbox_api_send(r, status, "application/json", &body);
}


void
ngx_http_sandbox_api_finalize(ngx_http_sandbox_api_t *a, ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = a->request->connection;

    ngx_http_set_log_request(c->log, a->request);

    ngx_http_finalize_request(a->request, rc);
    ngx_http_run_posted_requests(c);
}
