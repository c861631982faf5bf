/*
 * Routes of OpenSandbox's Kubernetes ingress (reference/opensandbox-api.md 6.2):
 * a token "{id}-{port}", maybe signed, in a header or as the first label of
 * Host, or the beginning of the path.
 */

#ifndef SB_INGRESS_H_INCLUDED
#define SB_INGRESS_H_INCLUDED

#include "operation.h"

typedef struct {
    sb_str_t    sandbox;
    uint32_t    port;
    sb_str_t    signature;      /* nine characters; empty when not signed */
} sb_ingress_t;

/*
 * Reads "{id}-{port}" or "{id}-{port}-{expires}-{signature}" as the ingress
 * does: signed when it can be.  Slices point into text.  SB_DECLINED: it is no
 * route.  SB_AMBIGUOUS: an ingress that knows signatures and an older one that
 * does not would read two routes.  Letters, digits, "-" and "_" only: what
 * ingress ignores (a scheme, further labels) is no route here.
 */
sb_rc_t sb_ingress_token(sb_ingress_t *t, sb_str_t text);

/*
 * sb_route() for a request to an ingress.  `token` says where it goes and the
 * whole target is the inner request; its sandbox may be empty: the request
 * names none.  token NULL: the path does, /{id}/{port}/{rest} or
 * /{id}/{port}/{expires}/{signature}/{rest}.
 *
 * "/status.ok", which the ingress answers itself in every mode, is
 * server.health of nobody.  Whether a path that looks signed is signed, the
 * ingress decides by a property of the sandbox that nobody here knows: of both
 * readings the one that is an operation counts, and when both are it is
 * ambiguous.  buf, size, results and refusals as with sb_route().
 */
sb_rc_t sb_ingress_route(sb_route_t *route, const sb_ingress_t *token,
    sb_str_t method, sb_str_t target, bool upgrade, char *buf, size_t size);

/*
 * For a route that sb_route() found to be lifecycle.unknown: when its path is
 * that of a signed ingress route, the signature is overwritten with "*" in the
 * decoded path and route->signature set.
 */
void sb_ingress_mask(sb_route_t *route, sb_str_t target);

#endif /* SB_INGRESS_H_INCLUDED */
