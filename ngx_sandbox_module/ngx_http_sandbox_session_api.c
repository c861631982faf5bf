/* POST, GET and DELETE session: signing in and out, and who is signed in. */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_session.h"
#include "ngx_http_sandbox_tokens.h"


#define NGX_HTTP_SANDBOX_SESSION_TEXT  2048


static void ngx_http_sandbox_session_refused(ngx_http_request_t *r,
    ngx_http_sandbox_session_event_t *e, ngx_uint_t status, const char *code);
static ngx_int_t ngx_http_sandbox_session_row(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a, sb_code_t *c, const char **by);
static ngx_int_t ngx_http_sandbox_session_cookie(ngx_http_request_t *r,
    u_char *value, time_t age);
static ngx_int_t ngx_http_sandbox_session_tell(ngx_http_request_t *r,
    const sb_token_t *token, const char *type, sb_str_t id);


ngx_int_t
ngx_http_sandbox_session_get(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_str_t  body;

    if (a->token == NULL) {
        ngx_str_set(&body, "{\"actor\":null}");
        return ngx_http_sandbox_api_send(r, NGX_HTTP_OK, "application/json",
                                         &body);
    }

    return ngx_http_sandbox_session_tell(r, a->token, NULL,
                                         ngx_http_sandbox_str(&a->actor_id));
}


ngx_int_t
ngx_http_sandbox_session_post(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    u_char                             value[NGX_HTTP_SANDBOX_SESSION_LEN];
    sb_code_t                          code;
    ngx_int_t                          rc;
    sb_token_t                         token;
    const char                        *fault;
    ngx_http_sandbox_main_conf_t      *mcf;
    ngx_http_sandbox_session_event_t   e;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    ngx_memzero(&e, sizeof(ngx_http_sandbox_session_event_t));
    e.type = "console.sign_in";

    /* nobody is signed in by a page of others */

    fault = ngx_http_sandbox_origin_fault(r, 0);

    if (fault) {
        ngx_http_sandbox_session_refused(r, &e, NGX_HTTP_FORBIDDEN,
                                         "GATEWAY_FORBIDDEN");

        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_FORBIDDEN,
                                           "GATEWAY_FORBIDDEN", fault);
    }

    rc = ngx_http_sandbox_session_row(r, a, &code, &e.by);

    if (rc == NGX_ABORT) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           "GATEWAY_INVALID_PARAMETER",
                                           "The body must be {\\\"token\\\"} or "
                                           "{\\\"code\\\"}, a text, as JSON.");
    }

    if (rc == NGX_DECLINED) {
        ngx_http_sandbox_session_refused(r, &e, NGX_HTTP_UNAUTHORIZED,
                                         "GATEWAY_UNAUTHENTICATED");

        return ngx_http_sandbox_api_unauthenticated(r, a, 1,
                                   "This is no token of the gateway, or a code "
                                   "that was used or is older than 60 s.");
    }

    token = *code.row;
    e.token = &token;
    token.role = code.role;

    code.made_us = sb_now_us() + (uint64_t) mcf->session_lifetime * 1000000;

    if (token.expires_us == 0 || token.expires_us > code.made_us) {
        token.expires_us = code.made_us;
    }

    if (rc != NGX_OK
        || ngx_http_sandbox_session_make(mcf, &token, token.role,
                                         token.expires_us, value)
           != NGX_OK)
    {
        ngx_http_sandbox_session_refused(r, &e, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         "GATEWAY_OVERLOADED");

        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                           "GATEWAY_OVERLOADED",
                                           "There is no room for a session in "
                                           "sandbox_session_zone.");
    }

    if (a->session.len) {
        ngx_http_sandbox_session_end(mcf, &a->session);
    }

    if (ngx_http_sandbox_session_cookie(r, value, mcf->session_lifetime)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    e.status = NGX_HTTP_OK;
    e.begins = 1;
    ngx_http_sandbox_session_record(r, &e);

    return ngx_http_sandbox_session_tell(r, &token, "console", sb_str("", 0));
}


static void
ngx_http_sandbox_session_refused(ngx_http_request_t *r,
    ngx_http_sandbox_session_event_t *e, ngx_uint_t status, const char *code)
{
    e->status = status;
    e->code = code;

    ngx_http_sandbox_session_record(r, e);
}


ngx_int_t
ngx_http_sandbox_session_delete(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    ngx_http_sandbox_main_conf_t      *mcf;
    ngx_http_sandbox_session_event_t   e;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    if (a->session.len) {
        ngx_http_sandbox_session_end(mcf, &a->session);

        ngx_memzero(&e, sizeof(ngx_http_sandbox_session_event_t));
        e.type = "console.sign_out";
        e.token = a->token;
        e.by = "session";
        e.status = NGX_HTTP_NO_CONTENT;
        ngx_http_sandbox_session_record(r, &e);
    }

    if (ngx_http_sandbox_session_cookie(r, NULL, 0) != NGX_OK
        || ngx_http_sandbox_api_headers(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


/* Whose session a body asks for.  NGX_DECLINED: it is nobody's; NGX_ABORT: it is
 * no such body; NGX_ERROR: no room to use a code. */

static ngx_int_t
ngx_http_sandbox_session_row(ngx_http_request_t *r, ngx_http_sandbox_api_t *a,
    sb_code_t *c, const char **by)
{
    uint64_t                       now;
    sb_str_t                       token, text;
    ngx_int_t                      rc;
    ngx_str_t                      code;
    sb_jdoc_t                     *doc;
    const sb_jv_t                 *root;
    ngx_http_sandbox_loc_conf_t   *lcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    ngx_http_sandbox_tokens_refresh(lcf->tokens);

    doc = sb_jdoc_parse(ngx_http_sandbox_str(&a->body), NULL, NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;
    token = sb_jv_str(root, "token");
    text = sb_jv_str(root, "code");

    ngx_memzero(c, sizeof(sb_code_t));
    now = sb_now_us();
    rc = NGX_DECLINED;
    *by = token.len ? "token" : "code";

    if ((token.len == 0) == (text.len == 0)) {
        rc = NGX_ABORT;

    } else if (token.len) {
        c->row = sb_token_check(lcf->tokens, token, now);

        if (c->row) {
            c->role = c->row->role;
            rc = NGX_OK;
        }

    } else if (sb_code_check(c, lcf->tokens, text, now) == SB_OK) {
        code.data = (u_char *) text.data;
        code.len = text.len;
        rc = ngx_http_sandbox_session_code(mcf, &code, c->made_us);
    }

    sb_jdoc_free(doc);

    return rc;
}


/* value: NULL takes the cookie away. */

static ngx_int_t
ngx_http_sandbox_session_cookie(ngx_http_request_t *r, u_char *value,
    time_t age)
{
    u_char                     name[NGX_HTTP_SANDBOX_SESSION_NAME_MAX];
    u_char                    *p, *line;
    ngx_http_sandbox_origin_t  own;

    if (ngx_http_sandbox_session_name(r, name) != NGX_OK) {
        /* a client without Host has no cookies */
        return NGX_OK;
    }

    (void) ngx_http_sandbox_origin(r, &own);

    line = ngx_pnalloc(r->pool, 192 + NGX_HTTP_SANDBOX_SESSION_LEN);
    if (line == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(line, "%s=%*s; Path=/; HttpOnly; SameSite=Strict; "
                    "Max-Age=%T%s", name,
                    value ? (size_t) NGX_HTTP_SANDBOX_SESSION_LEN : (size_t) 0,
                    value ? value : line, age, own.tls ? "; Secure" : "");

    return ngx_http_sandbox_add_header(r, "Set-Cookie", (char *) line,
                                       p - line);
}


/* type: NULL, that of the request's actor; id: empty, that of the token. */

static ngx_int_t
ngx_http_sandbox_session_tell(ngx_http_request_t *r, const sb_token_t *token,
    const char *type, sb_str_t id)
{
    char                     time[SB_TIME_LEN + 1];
    sb_rc_t                  rc;
    sb_buf_t                 b;
    sb_str_t                 kind;
    ngx_str_t                body;
    ngx_http_sandbox_api_t  *a;

    static const char  *roles[] = { "viewer", "operator", "admin" };

    a = ngx_http_sandbox_api_get(r);

    kind = type ? sb_str(type, ngx_strlen(type))
                : ngx_http_sandbox_str(&a->actor_type);

    if (id.len == 0) {
        id = token->actor[0] ? sb_str(token->actor, ngx_strlen(token->actor))
                             : sb_str(token->id, ngx_strlen(token->id));
    }

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_SESSION_TEXT;

    rc = sb_buf_add_str(&b, sb_lit("{\"actor\":{\"type\":"));

    if (rc == SB_OK) {
        rc = sb_json_write_str(&b, kind);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(&b, sb_lit(",\"id\":"));
    }

    if (rc == SB_OK) {
        rc = sb_json_write_str(&b, id);
    }

    if (rc == SB_OK && token->expires_us) {
        sb_time_text(time, token->expires_us);
        rc = sb_buf_printf(&b, "},\"role\":\"%s\",\"expires_at\":\"%s\",",
                           roles[token->role], time);

    } else if (rc == SB_OK) {
        rc = sb_buf_printf(&b, "},\"role\":\"%s\",\"expires_at\":null,",
                           roles[token->role]);
    }

    if (rc == SB_OK) {
        rc = sb_token_sandboxes(&b, token);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_c(&b, '}');
    }

    body.len = b.len;
    body.data = rc == SB_OK ? ngx_pnalloc(r->pool, b.len) : NULL;

    if (body.data == NULL) {
        sb_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(body.data, b.data, b.len);
    sb_buf_free(&b);

    return ngx_http_sandbox_api_send(r, NGX_HTTP_OK, "application/json", &body);
}
