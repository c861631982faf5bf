/*
 * Tokens over the console API.  A token is made here and told to who asked for
 * it and to nobody else: the helper, who writes the file, gets the line with the
 * hash.  When that is written the table of all workers is changed.
 */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_tokens.h"


/* 4,096 tokens of full length, whose names may take six bytes for one */
#define NGX_HTTP_SANDBOX_TOKENS_ANSWER  (8 * 1024 * 1024)


static ngx_int_t ngx_http_sandbox_tokens_ask(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static void ngx_http_sandbox_tokens_piece(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_piece_t *p);
static void ngx_http_sandbox_tokens_gone(ngx_http_sandbox_ask_t *ask,
    ngx_int_t rc);
static ngx_int_t ngx_http_sandbox_tokens_pass(ngx_http_request_t *r,
    ngx_http_sandbox_piece_t *p);
static ngx_int_t ngx_http_sandbox_tokens_made(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
static ngx_int_t ngx_http_sandbox_tokens_dropped(ngx_http_request_t *r);
static sb_rc_t ngx_http_sandbox_tokens_item(sb_buf_t *b,
    const sb_token_t *token, const sb_token_t *own, const char *secret);


/* GET tokens */

ngx_int_t
ngx_http_sandbox_tokens_list_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    size_t                        i;
    sb_rc_t                       rc;
    sb_buf_t                      b;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ngx_http_sandbox_tokens_refresh(lcf->tokens);

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_TOKENS_ANSWER;

    rc = sb_buf_add_str(&b, sb_lit("{\"items\":["));

    for (i = 0; rc == SB_OK && i < lcf->tokens->n; i++) {

        if (i) {
            rc = sb_buf_add_c(&b, ',');
        }

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_tokens_item(&b, &lcf->tokens->items[i],
                                              a->token, NULL);
        }
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(&b, sb_lit("]}"));
    }

    return ngx_http_sandbox_api_send_buf(r, NGX_HTTP_OK, rc, &b);
}


/* POST tokens */

ngx_int_t
ngx_http_sandbox_tokens_add_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    char        *text;
    sb_rc_t      rc;
    sb_buf_t     b;
    u_char      *line;
    uint64_t     now;
    const char  *why;
    sb_token_t  *token;

    now = sb_now_us();

    token = ngx_palloc(r->pool, sizeof(sb_token_t));
    text = ngx_palloc(r->pool, SB_TOKEN_TEXT_MAX);

    if (token == NULL || text == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = sb_token_ask(token, ngx_http_sandbox_str(&a->body), now, &why);

    if (rc == SB_ERROR) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           "GATEWAY_INVALID_PARAMETER", why);
    }

    if (rc != SB_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (token->role > a->token->role) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_FORBIDDEN,
                                           "GATEWAY_FORBIDDEN",
                                           "A token has at most the role of "
                                           "who makes it.");
    }

    sb_token_make(token, text);

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = 4096;

    rc = sb_token_line(&b, token, now);

    if (rc == SB_ERROR) {
        sb_buf_free(&b);
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           "GATEWAY_INVALID_PARAMETER",
                                           "The id of an actor holds no "
                                           "blanks and control characters, and "
                                           "its type nothing but letters, "
                                           "digits, dots, underscores and "
                                           "hyphens.");
    }

    line = rc == SB_OK ? ngx_pnalloc(r->pool, b.len) : NULL;

    if (line == NULL) {
        sb_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(line, b.data, b.len);

    a->body.data = line;
    a->body.len = b.len;
    a->made = token;
    a->secret = text;

    sb_buf_free(&b);

    return ngx_http_sandbox_tokens_ask(r, a);
}


/* DELETE tokens/{id} */

ngx_int_t
ngx_http_sandbox_tokens_revoke_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    return ngx_http_sandbox_tokens_ask(r, a);
}


static ngx_int_t
ngx_http_sandbox_tokens_ask(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_int_t  rc;

    a->ask.piece = ngx_http_sandbox_tokens_piece;
    a->ask.gone = ngx_http_sandbox_tokens_gone;

    rc = ngx_http_sandbox_api_put(r, a);

    if (rc == NGX_DONE) {
        /* the table follows the file, also when the client has left */
        r->read_event_handler = ngx_http_block_reading;
    }

    return rc;
}


static void
ngx_http_sandbox_tokens_piece(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_piece_t *p)
{
    ngx_int_t                     rc;
    ngx_uint_t                    revokes;
    ngx_http_request_t           *r;
    ngx_http_sandbox_api_t       *a;
    ngx_http_sandbox_loc_conf_t  *lcf;

    a = ask->data;
    r = a->request;

    ngx_http_set_log_request(r->connection->log, r);

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);
    revokes = a->made == NULL;

    if (!p->last) {
        ngx_http_sandbox_ask_cancel(ask);
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else if (revokes && (p->status == NGX_HTTP_NO_CONTENT
                           || p->status == NGX_HTTP_NOT_FOUND))
    {
        /* also what is in the file no more, and was not reloaded */

        rc = ngx_http_sandbox_tokens_drop(lcf->tokens, &a->args[0]);

        rc = rc == NGX_OK || p->status == NGX_HTTP_NO_CONTENT
             ? ngx_http_sandbox_tokens_dropped(r)
             : ngx_http_sandbox_tokens_pass(r, p);

    } else if (!revokes && p->status == NGX_HTTP_CREATED) {

        rc = ngx_http_sandbox_tokens_add(lcf->tokens, a->made);

        if (rc != NGX_OK) {
            ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                          "the token \"%s\" is in the file and counts after a "
                          "reload: the table has no room", a->made->id);
        }

        rc = ngx_http_sandbox_tokens_made(r, a);

    } else {
        rc = ngx_http_sandbox_tokens_pass(r, p);
    }

    ngx_http_sandbox_api_finalize(a, rc);
}


static void
ngx_http_sandbox_tokens_gone(ngx_http_sandbox_ask_t *ask, ngx_int_t rc)
{
    ngx_http_sandbox_api_t  *a;

    a = ask->data;

    ngx_http_set_log_request(a->request->connection->log, a->request);

    rc = ngx_http_sandbox_api_refuse(a->request, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "GATEWAY_RECORDER_UNAVAILABLE",
                                     rc == NGX_ABORT
                                     ? "The helper, which writes the tokens, "
                                       "did not answer in time; ask again."
                                     : "The helper, which writes the tokens, "
                                       "has left; ask again shortly.");

    ngx_http_sandbox_api_finalize(a, rc);
}


/* What the helper refuses with. */

static ngx_int_t
ngx_http_sandbox_tokens_pass(ngx_http_request_t *r,
    ngx_http_sandbox_piece_t *p)
{
    ngx_str_t  body;

    body.len = p->len;
    body.data = ngx_pnalloc(r->pool, ngx_max(p->len, 1));

    if (body.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (p->len) {
        ngx_memcpy(body.data, p->data, p->len);
    }

    return ngx_http_sandbox_api_send(r, p->status, "application/json", &body);
}


static ngx_int_t
ngx_http_sandbox_tokens_made(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    sb_rc_t   rc;
    sb_buf_t  b;

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = 8192;

    rc = ngx_http_sandbox_tokens_item(&b, a->made, NULL, a->secret);

    return ngx_http_sandbox_api_send_buf(r, NGX_HTTP_CREATED, rc, &b);
}


static ngx_int_t
ngx_http_sandbox_tokens_dropped(ngx_http_request_t *r)
{
    if (ngx_http_sandbox_api_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


static sb_rc_t
ngx_http_sandbox_tokens_item(sb_buf_t *b, const sb_token_t *token,
    const sb_token_t *own, const char *secret)
{
    sb_rc_t  rc;

    rc = sb_buf_add_c(b, '{');

    if (rc == SB_OK) {
        rc = sb_token_members(b, token);
    }

    if (rc == SB_OK) {
        rc = sb_buf_printf(b, ",\"self\":%s",
                           own && ngx_strcmp(own->id, token->id) == 0
                           ? "true" : "false");
    }

    if (rc == SB_OK && secret) {
        rc = sb_buf_printf(b, ",\"token\":\"%s\"", secret);
    }

    return rc == SB_OK ? sb_buf_add_c(b, '}') : rc;
}
