/* Policies: sandbox_policy, the verdict on an operation (lib/policy.h). */

#ifndef _NGX_HTTP_SANDBOX_POLICY_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_POLICY_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* In the precontent phase, once query and JSON body are read: NGX_OK, it may
 * go on; else what the phase handler has to return (refused, or an upload is
 * being read to its end). */
ngx_int_t ngx_http_sandbox_policy_judge(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);

/* While an upload is read: NGX_OK, or the status with which a rule with a limit
 * ends it before its end. */
ngx_int_t ngx_http_sandbox_policy_early(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);

/* Judges it again, after it has waited, by other rules: NGX_OK, it may go on;
 * NGX_DECLINED: they ask for what was not looked at, or at other ends; else what
 * the phase handler has to return. */
ngx_int_t ngx_http_sandbox_policy_again(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    sb_policy_t *policy);

/* Members of the envelope's details: which rule, why. */
ngx_int_t ngx_http_sandbox_policy_details(ngx_http_request_t *r,
    sb_policy_verdict_t *v, ngx_str_t *details);

/* What END says of the verdict. */
void ngx_http_sandbox_policy_put(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx);

/* "allow", "deny", "observe" (it would have been denied), and which rule says
 * so; empty when nothing was judged. */
void ngx_http_sandbox_policy_text(ngx_http_sandbox_ctx_t *ctx,
    ngx_str_t *decision, ngx_str_t *rule);

/* where a policy is in force */
typedef struct {
    ngx_http_core_srv_conf_t  *server;
    ngx_str_t                  name;
    ngx_str_t                  location;
} ngx_http_sandbox_place_t;

typedef struct {
    sb_policy_t               *policy;      /* NULL: none there */
    ngx_array_t                places;      /* of ngx_http_sandbox_place_t */
} ngx_http_sandbox_policed_t;

/* ngx_http_sandbox_policy_api.c */
/* A location with sandbox on has this policy (NULL: none). */
ngx_int_t ngx_http_sandbox_policy_known(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf, sb_policy_t *policy);


#endif /* _NGX_HTTP_SANDBOX_POLICY_H_INCLUDED_ */
