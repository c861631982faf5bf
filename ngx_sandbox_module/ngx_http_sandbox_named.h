/*
 * What upstream names in the answer to an endpoints request
 * (reference/opensandbox-api.md 1.6), and whether we may go there (design 6).
 */

#ifndef _NGX_HTTP_SANDBOX_NAMED_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_NAMED_H_INCLUDED_


#include "ngx_http_sandbox.h"


/* the longest host, path or OpenSandbox-Ingress-To that is kept */
#define NGX_HTTP_SANDBOX_NAMED_MAX  255


typedef union {
    struct sockaddr       sockaddr;
    struct sockaddr_in    sockaddr_in;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6   sockaddr_in6;
#endif
} ngx_http_sandbox_sockaddr_t;


typedef struct {
    ngx_http_sandbox_sockaddr_t   addr;     /* unused bytes are zero */
    socklen_t                     socklen;
    ngx_str_t                     host;     /* as named, with port */
    ngx_str_t                     path;     /* no "/" at its end */
    ngx_str_t                     ingress_to;
    u_char                        text[3 * NGX_HTTP_SANDBOX_NAMED_MAX];
} ngx_http_sandbox_named_t;


/*
 * Reads the JSON of an answer.  Returns NULL, or why nothing can be learnt
 * from it: half a sentence for the log.
 */
const char *ngx_http_sandbox_named_read(ngx_http_sandbox_named_t *named,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_str_t *body);

/* Is an address inside sandbox_endpoint_allow (default: upstream's own)? */
ngx_uint_t ngx_http_sandbox_named_allowed(ngx_http_sandbox_loc_conf_t *lcf,
    struct sockaddr *sa, socklen_t socklen);


#endif /* _NGX_HTTP_SANDBOX_NAMED_H_INCLUDED_ */
