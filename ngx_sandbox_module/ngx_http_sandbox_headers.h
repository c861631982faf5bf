/* The request headers that the module reads or decides about. */

#ifndef _NGX_HTTP_SANDBOX_HEADERS_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_HEADERS_H_INCLUDED_


#include "ngx_http_sandbox.h"


typedef enum {
    NGX_HTTP_SANDBOX_H_API_KEY = 0,
    NGX_HTTP_SANDBOX_H_ACTOR_TYPE,
    NGX_HTTP_SANDBOX_H_ACTOR_ID,
    NGX_HTTP_SANDBOX_H_AGENT_ID,
    NGX_HTTP_SANDBOX_H_THREAD,
    NGX_HTTP_SANDBOX_H_RUN,
    NGX_HTTP_SANDBOX_H_CORRELATION,
    NGX_HTTP_SANDBOX_H_PARENT,
    NGX_HTTP_SANDBOX_H_TRACEPARENT,
    NGX_HTTP_SANDBOX_H_REQUEST_ID,
    NGX_HTTP_SANDBOX_H_INGRESS_TO,
    NGX_HTTP_SANDBOX_H_INGRESS_OLD,
    NGX_HTTP_SANDBOX_H_OSB_USER,
    NGX_HTTP_SANDBOX_H_OSB_TEAM,
    NGX_HTTP_SANDBOX_H_OSB_ROLES,
    NGX_HTTP_SANDBOX_H_ACCEPT_ENCODING,
    NGX_HTTP_SANDBOX_H_WS_EXTENSIONS,
    NGX_HTTP_SANDBOX_H_RESTORED,
    NGX_HTTP_SANDBOX_H_TRAILER,
    NGX_HTTP_SANDBOX_H_PROXY_AUTH,
    NGX_HTTP_SANDBOX_H_PROXY_CONN,
    NGX_HTTP_SANDBOX_H_CONNECTION,
    NGX_HTTP_SANDBOX_H_COOKIE,
    NGX_HTTP_SANDBOX_H_LOCK,
    NGX_HTTP_SANDBOX_H_LOCK_TIMEOUT,
    NGX_HTTP_SANDBOX_H_LEASE,
    NGX_HTTP_SANDBOX_H_NONE
} ngx_http_sandbox_header_e;


/* May the request have one of these headers?  Known once it is identified. */

#define ngx_http_sandbox_has(ctx, n)                                          \
    ((ctx)->headers & (uint32_t) 1 << (n))


/* Is a request header NAME?  `name` is a literal in lower case. */

#define ngx_http_sandbox_header_is(h, name)                                   \
    ngx_http_sandbox_header_named(h, name, sizeof(name) - 1)

/* Walking the list of request headers: `h` is each element in turn. */

#define ngx_http_sandbox_each_header(r, part, h, i)                           \
    for (part = &(r)->headers_in.headers.part, h = part->elts, i = 0;         \
         ngx_http_sandbox_next(&part, &h, &i);                                \
         i++)


static ngx_inline ngx_uint_t
ngx_http_sandbox_header_named(ngx_table_elt_t *h, const char *name, size_t len)
{
    return h->key.len == len && ngx_strncmp(h->lowcase_key, name, len) == 0;
}


static ngx_inline ngx_uint_t
ngx_http_sandbox_next(ngx_list_part_t **part, ngx_table_elt_t **h,
    ngx_uint_t *i)
{
    while (*i >= (*part)->nelts) {

        if ((*part)->next == NULL) {
            return 0;
        }

        *part = (*part)->next;
        *h = (*part)->elts;
        *i = 0;
    }

    return 1;
}


/*
 * Which header of ours is it?  NGX_HTTP_SANDBOX_H_NONE: none.  "_" counts as
 * "-" and is told by twin: an underscore twin of an identity header must not
 * pass beside the real one (C140).
 */
ngx_uint_t ngx_http_sandbox_header(ngx_table_elt_t *h, ngx_uint_t *twin);

/*
 * Takes a header out of the request.  Elements of the list are pointed to from
 * elsewhere and cannot move; under the name of a hop-by-hop header that the
 * proxy never passes on, and without its value, it is gone for everybody: the
 * upstream, $http_ variables and logs.
 */
void ngx_http_sandbox_kill(ngx_table_elt_t *h);

/* names that Connection may hold; the sentence of the refusal says 32 */
#define NGX_HTTP_SANDBOX_HOP_NAMES  32

/* Why the headers that Connection names are not looked for; NULL: they are. */
const char *ngx_http_sandbox_hop_fault(ngx_http_request_t *r);

/* Is there a credential of the gateway's or of upstream's in a value? */
ngx_uint_t ngx_http_sandbox_ours(ngx_http_sandbox_loc_conf_t *lcf,
    ngx_str_t *value);


#endif /* _NGX_HTTP_SANDBOX_HEADERS_H_INCLUDED_ */
