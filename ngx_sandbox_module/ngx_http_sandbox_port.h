/*
 * The listener for user ports (design 7): what a person opens in a browser from
 * a sandbox has an origin of its own, reached by a ticket and then a cookie.
 * Tickets, and the secret that signs cookies and makes names, lie in a shared
 * zone of their own: all workers and a reload agree.
 */

#ifndef _NGX_HTTP_SANDBOX_PORT_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_PORT_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* a ticket is good for one use within this time, ms */
#define NGX_HTTP_SANDBOX_TICKET_VALID     60000
/* "sbx_port_" and 43 characters: what tokens look like, so that one is kept
 * out of records and away from sandboxes wherever it stands */
#define NGX_HTTP_SANDBOX_TICKET_LEN       (9 + 43)
#define NGX_HTTP_SANDBOX_TICKET_ARG       "sandbox_ticket"

/* a letter and 125 bits in base32 */
#define NGX_HTTP_SANDBOX_LABEL_LEN        26
#define NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX  720
/* "sbe_" CLAIMS "." MAC */
#define NGX_HTTP_SANDBOX_PORT_COOKIE_MAX  1024

/* so many of one name are looked at */
#define NGX_HTTP_SANDBOX_COOKIES          8


struct ngx_http_sandbox_port_listen_s {
    ngx_str_t         url;          /* as configured */
    ngx_str_t         host;         /* of it, lower case; "[...]" for IPv6 */
    ngx_str_t         authority;    /* host[:port] */
    ngx_str_t         port;         /* ":port" or empty */
    ngx_uint_t        tls;
    ngx_uint_t        loopback;
};


/* ngx_http_sandbox_ticket.c */

/* Adds the zone; called when there is a listener. */
char *ngx_http_sandbox_ticket_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* Makes a ticket for e (sandbox, port, actor, row) in text, which holds
 * NGX_HTTP_SANDBOX_TICKET_LEN bytes.  NGX_DECLINED: a name is too long. */
ngx_int_t ngx_http_sandbox_ticket_make(ngx_http_sandbox_main_conf_t *mcf,
    sb_endpoint_token_t *e, u_char *text);
/* Takes a ticket out of the zone, whoever asks first: NGX_OK, and what it is
 * for in e, whose slices point into buf (NGX_HTTP_SANDBOX_PORT_CLAIMS_MAX).
 * NGX_DECLINED: unknown, used, over, or its credential is gone. */
ngx_int_t ngx_http_sandbox_ticket_take(ngx_http_sandbox_main_conf_t *mcf,
    sb_tokens_t *tokens, ngx_str_t *text, sb_endpoint_token_t *e, u_char *buf);
/* The name of (sandbox, port): NGX_HTTP_SANDBOX_LABEL_LEN bytes.  It cannot be
 * guessed and stays until nginx is started anew. */
void ngx_http_sandbox_port_label(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port, u_char *label);
/* The value of a cookie for e, until expires_us; returns its length, at most
 * NGX_HTTP_SANDBOX_PORT_COOKIE_MAX. */
size_t ngx_http_sandbox_port_cookie_make(ngx_http_sandbox_main_conf_t *mcf,
    sb_endpoint_token_t *e, uint64_t expires_us, u_char *text);
/* As ngx_http_sandbox_ticket_take(), for the value of a cookie. */
ngx_int_t ngx_http_sandbox_port_cookie_check(ngx_http_sandbox_main_conf_t *mcf,
    sb_tokens_t *tokens, ngx_str_t *text, uint64_t now_us,
    sb_endpoint_token_t *e, u_char *buf);

/* ngx_http_sandbox_port.c */

/* A first look at a request on the listener: a ticket is taken out of the
 * target before it can reach a log, a right cookie says which port is meant.
 * Sets ctx->target and, when the cookie is right, ctx->endpoint. */
ngx_int_t ngx_http_sandbox_port_enter(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Is the name one that the listener serves? */
ngx_int_t ngx_http_sandbox_port_host_allowed(ngx_http_request_t *r);
/* Uses the ticket, if there is one. */
ngx_int_t ngx_http_sandbox_port_redeem(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Judges where an authenticated request comes from, and answers it when it
 * brought a ticket; NGX_OK: it goes on. */
ngx_int_t ngx_http_sandbox_port_admit(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* A page for people in place of the envelope of a refusal; NGX_DECLINED: the
 * client does not want HTML. */
ngx_int_t ngx_http_sandbox_port_page(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_uint_t status, const char *message);
/* What an answer from a sandbox gets on an origin of its own. */
ngx_int_t ngx_http_sandbox_port_shield(ngx_http_request_t *r);

/* ngx_http_sandbox_port_api.c: handler of POST sandboxes/{id}/ports/{port} */
struct ngx_http_sandbox_api_s;
ngx_int_t ngx_http_sandbox_port_api(ngx_http_request_t *r,
    struct ngx_http_sandbox_api_s *a);

/* ngx_http_sandbox_cookie.c */

/* The value of the n-th (from 0) cookie of a name; NGX_DECLINED: no more. */
ngx_int_t ngx_http_sandbox_cookie_find(ngx_http_request_t *r, const char *name,
    ngx_uint_t n, ngx_str_t *value);
/* Takes the gateway's own cookies out of the request. */
ngx_int_t ngx_http_sandbox_cookie_strip(ngx_http_request_t *r);


#endif /* _NGX_HTTP_SANDBOX_PORT_H_INCLUDED_ */
