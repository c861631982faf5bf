/*
 * Sessions of people (docs/console-api.md, "Sessions"): a cookie stands for a
 * token.  Sessions, and the codes that have been used, lie in a shared zone of
 * their own, as digests: all workers and a reload agree.
 */

#ifndef _NGX_HTTP_SANDBOX_SESSION_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_SESSION_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* "sbx_session_" and 43 characters: what tokens look like, so that one is kept
 * out of records wherever it stands */
#define NGX_HTTP_SANDBOX_SESSION_LEN       (12 + 43)

/* "__Host-sandbox_session_65535" */
#define NGX_HTTP_SANDBOX_SESSION_NAME_MAX  32


/* the scheme, host and port by which a browser reaches us */

typedef struct {
    ngx_uint_t        tls;
    ngx_str_t         host;
    in_port_t         port;
} ngx_http_sandbox_origin_t;


/* somebody has signed in or out, or tried to */

typedef struct {
    const char       *type;         /* "console.sign_in", "console.sign_out" */
    const sb_token_t *token;        /* whose session; NULL: nobody's */
    const char       *by;           /* "token", "code", "session" */
    ngx_uint_t        status;       /* of the answer */
    const char       *code;         /* of a refusal, or NULL */
    ngx_uint_t        begins;       /* the token's role and end are those of the
                                       session */
} ngx_http_sandbox_session_event_t;


/* ngx_http_sandbox_session.c */
/* Adds the zone. */
char *ngx_http_sandbox_session_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* Begins a session of a token with a role until expires_us; its cookie's value
 * goes to text (NGX_HTTP_SANDBOX_SESSION_LEN). */
ngx_int_t ngx_http_sandbox_session_make(ngx_http_sandbox_main_conf_t *mcf,
    const sb_token_t *row, sb_role_e role, uint64_t expires_us, u_char *text);
/* The session of a cookie's value: its token, with the session's role and end,
 * is copied to token.  NGX_DECLINED: there is none, it is over, or its token is
 * gone. */
ngx_int_t ngx_http_sandbox_session_find(ngx_http_sandbox_main_conf_t *mcf,
    const sb_tokens_t *tokens, ngx_str_t *text, uint64_t now_us,
    sb_token_t *token);
void ngx_http_sandbox_session_end(ngx_http_sandbox_main_conf_t *mcf,
    ngx_str_t *text);
/* Uses a code that was made at made_us.  NGX_DECLINED: it has been used, or was
 * made before the zone, which does not know; NGX_ERROR: no room. */
ngx_int_t ngx_http_sandbox_session_code(ngx_http_sandbox_main_conf_t *mcf,
    ngx_str_t *text, uint64_t made_us);

/* ngx_http_sandbox_session_record.c */
/* Puts it on record in _gateway; what cannot be is a gap. */
void ngx_http_sandbox_session_record(ngx_http_request_t *r,
    ngx_http_sandbox_session_event_t *e);

/* ngx_http_sandbox_origin.c */
/* NGX_DECLINED: the request does not say. */
ngx_int_t ngx_http_sandbox_origin(ngx_http_request_t *r,
    ngx_http_sandbox_origin_t *o);
/* What is wrong with where a request comes from, as a sentence; NULL: nothing.
 * required: it has to say. */
const char *ngx_http_sandbox_origin_fault(ngx_http_request_t *r,
    ngx_uint_t required);
/* The name of the session's cookie for the origin of the request. */
ngx_int_t ngx_http_sandbox_session_name(ngx_http_request_t *r, u_char *name);
/* The session that the request brings, if it may; sets ctx->token. */
ngx_int_t ngx_http_sandbox_session_enter(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_session_api.c: handlers of /session */
struct ngx_http_sandbox_api_s;
ngx_int_t ngx_http_sandbox_session_get(ngx_http_request_t *r,
    struct ngx_http_sandbox_api_s *a);
ngx_int_t ngx_http_sandbox_session_post(ngx_http_request_t *r,
    struct ngx_http_sandbox_api_s *a);
ngx_int_t ngx_http_sandbox_session_delete(ngx_http_request_t *r,
    struct ngx_http_sandbox_api_s *a);


#endif /* _NGX_HTTP_SANDBOX_SESSION_H_INCLUDED_ */
