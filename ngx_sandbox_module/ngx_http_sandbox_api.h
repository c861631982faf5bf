/*
 * The console API (docs/console-api.md) at a location with sandbox_console_api:
 * who asks, which route, and how it is answered.
 *
 * A route is a row of the table in ngx_http_sandbox_api_routes.c.  Its handler
 * answers in this worker, or hands the request on to the helper with
 * ngx_http_sandbox_api_ask(); what no row names goes to the helper, whose
 * table (helper/api.c) says the rest.
 */

#ifndef _NGX_HTTP_SANDBOX_API_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_API_H_INCLUDED_


#include "ngx_http_sandbox_ask.h"


#define NGX_HTTP_SANDBOX_API_ARGS  2

/* flags of a route */
#define NGX_HTTP_SANDBOX_API_PUBLIC  0x01   /* without a token, too */


typedef struct ngx_http_sandbox_api_s  ngx_http_sandbox_api_t;

/* What a content handler returns.  The request has passed authentication; a
 * body has been read. */
typedef ngx_int_t (*ngx_http_sandbox_api_pt)(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);


typedef struct {
    const char                   *method;   /* "GET" is HEAD, too; "*" any */
    const char                   *path;     /* "sandboxes/{id}/ports/{port}";
                                               "{...}" is one segment, "**" any
                                               rest */
    sb_role_e                     role;     /* at least */
    ngx_uint_t                    flags;
    ngx_http_sandbox_api_pt       handler;
} ngx_http_sandbox_api_route_t;


/* one request */

struct ngx_http_sandbox_api_s {
    ngx_http_request_t           *request;
    ngx_http_sandbox_api_route_t *route;
    ngx_str_t                     path;     /* decoded, without the prefix */
    ngx_str_t                     args[NGX_HTTP_SANDBOX_API_ARGS];
    ngx_str_t                     body;

    /* who: token is NULL when a public route is asked without one */
    const sb_token_t             *token;
    ngx_str_t                     actor_type;
    ngx_str_t                     actor_id;
    ngx_str_t                     identity;
    ngx_str_t                     session;  /* its cookie; empty: none */
    const char                   *origin_fault;
    unsigned                      wrong:1;  /* a credential was shown, and is
                                               none */
    const char                   *unauthenticated;  /* to be said later */

    /* an answer of the helper on its way to the client */
    ngx_http_sandbox_ask_t        ask;
    ngx_str_t                     prefix;   /* goes before it */
    ngx_http_sandbox_api_pt       alone;    /* answers when the helper does
                                               not; NULL: 503 */
    u_char                       *fill;     /* what has come (of a stream: only
                                               while there is something) */
    u_char                       *flight;   /* what is being sent */
    size_t                        fill_len;
    size_t                        size;     /* of both */
    ngx_buf_t                    *buf;
    unsigned                      headed:1;
    unsigned                      live:1;   /* may end at any time */
    unsigned                      whole:2;  /* newlines that the stream ends
                                               with: 2, no event is cut */
    unsigned                      last:1;   /* all of it has come */

    sb_token_t                   *made;     /* that is being added */
    char                         *secret;   /* its text */

    /* among those who wait for the same thing */
    ngx_queue_t                   queue;
    unsigned                      queued:1;
};


/* ngx_http_sandbox_api_routes.c: ends with a row without a path */
extern ngx_http_sandbox_api_route_t  ngx_http_sandbox_api_routes[];

/* ngx_http_sandbox_api.c */
char *ngx_http_sandbox_conf_api(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* The answer that refuses, in the envelope {"code","message","details"}; both
 * texts are static and need no escapes.  Returns what a content handler has to
 * return; outside one, the argument of ngx_http_finalize_request(). */
ngx_int_t ngx_http_sandbox_api_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);
/* 401, which waits for some time when many wrong credentials came from this
 * address and this is one; the same. */
ngx_int_t ngx_http_sandbox_api_unauthenticated(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a, ngx_uint_t wrong, const char *message);
/* A whole answer from memory; the same. */
ngx_int_t ngx_http_sandbox_api_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, ngx_str_t *body);
/* The same from a buffer, which it frees; with another rc than SB_OK, 500. */
ngx_int_t ngx_http_sandbox_api_send_buf(ngx_http_request_t *r,
    ngx_uint_t status, sb_rc_t rc, sb_buf_t *b);
/* Cache-Control, nosniff: they stand in every answer. */
ngx_int_t ngx_http_sandbox_api_headers(ngx_http_request_t *r);
/* Ends a request out of the blue: as the last thing of an event. */
void ngx_http_sandbox_api_finalize(ngx_http_sandbox_api_t *a, ngx_int_t rc);
/* The console request r is, or NULL. */
ngx_http_sandbox_api_t *ngx_http_sandbox_api_get(ngx_http_request_t *r);

/* ngx_http_sandbox_api_answer.c */
/* Handler: the helper answers; its answer streams through. */
ngx_int_t ngx_http_sandbox_api_ask(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
/* The same for a handler of its own: it has set piece and gone of a->ask, which
 * get `a` as data. */
ngx_int_t ngx_http_sandbox_api_put(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
/* Handler: the same, for a stream that goes on for ever. */
ngx_int_t ngx_http_sandbox_api_live(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
/* Fills the question that a request is. */
void ngx_http_sandbox_api_question(ngx_http_sandbox_api_t *a,
    ngx_http_sandbox_question_t *q);

/* ngx_http_sandbox_api_health.c */
ngx_int_t ngx_http_sandbox_api_health(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
/* Takes the request out of the queue of those who wait. */
void ngx_http_sandbox_api_unqueue(ngx_http_sandbox_api_t *a);

/* ngx_http_sandbox_metrics_text.c */
ngx_int_t ngx_http_sandbox_api_metrics(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);

/* ngx_http_sandbox_policy_api.c */
ngx_int_t ngx_http_sandbox_policy_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
ngx_int_t ngx_http_sandbox_policy_check_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);

/* ngx_http_sandbox_tokens_api.c */
ngx_int_t ngx_http_sandbox_tokens_list_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
ngx_int_t ngx_http_sandbox_tokens_add_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);
ngx_int_t ngx_http_sandbox_tokens_revoke_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a);


#endif /* _NGX_HTTP_SANDBOX_API_H_INCLUDED_ */
