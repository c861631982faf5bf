/* sandbox_rate: how many requests an actor may send. */

#ifndef _NGX_HTTP_SANDBOX_RATE_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_RATE_H_INCLUDED_


#include "ngx_http_sandbox.h"


char *ngx_http_sandbox_conf_rate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* Adds the zone, when a location has a rate. */
char *ngx_http_sandbox_rate_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* Counts the request for its actor.  NGX_OK, or what the phase handler has to
 * return: it was refused. */
ngx_int_t ngx_http_sandbox_rate(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);


#endif /* _NGX_HTTP_SANDBOX_RATE_H_INCLUDED_ */
