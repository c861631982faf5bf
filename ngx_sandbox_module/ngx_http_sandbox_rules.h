/*
 * Rules that change while an operation waits.  A reload leaves waiting requests
 * to the workers of before, who know the policies of before: the new ones, with
 * the places where they are in force, stand in a shared zone, and what has waited
 * is judged by them before it goes on.
 */

#ifndef _NGX_HTTP_SANDBOX_RULES_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_RULES_H_INCLUDED_


#include "ngx_http_sandbox_policy.h"


/* The zone. */
char *ngx_http_sandbox_rules_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* A configuration is in force: tells the workers of before. */
ngx_int_t ngx_http_sandbox_rules_publish(ngx_cycle_t *cycle);

/* The last thing before an operation goes on: NGX_OK when the rules are those that
 * it was judged by, or the new ones allow it; else what the phase handler has to
 * return. */
ngx_int_t ngx_http_sandbox_rules_again(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
/* Its verdict is not looked at any more. */
void ngx_http_sandbox_rules_forget(ngx_http_sandbox_ctx_t *ctx);


#endif /* _NGX_HTTP_SANDBOX_RULES_H_INCLUDED_ */
