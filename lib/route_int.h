/* What lib/route.c and lib/ingress.c share: the steps of finding a route. */

#ifndef SB_ROUTE_INT_H_INCLUDED
#define SB_ROUTE_INT_H_INCLUDED

#include "operation_table.h"

/* A path decoded once, and the first thing in it that could be read in more
 * than one way. */
typedef struct {
    sb_str_t     target;        /* as the client sent it */
    sb_str_t     raw;           /* without the query */
    char        *data;
    size_t       len;
    size_t       dirty;         /* its offset in data; SIZE_MAX when clean */
    const char  *reason;
    bool         utf8;          /* all of it; and so each part up to a slash */
} sb_decoded_t;

extern const char  sb_bad_port[];

/* Clears the route, judges what holds for every target, decodes the path. */
sb_rc_t sb_route_begin(sb_route_t *route, sb_decoded_t *d, sb_str_t target,
    char *buf, size_t size);

/* route->port has been read and the path behind it begins at `end`: follows
 * nested "/proxy/{port}" and tells where the inner path begins. */
sb_rc_t sb_route_unwrap(sb_route_t *route, const sb_decoded_t *d, size_t end,
    size_t *inner);

/* Judges the inner path and finds its row. */
sb_rc_t sb_route_end(sb_route_t *route, const sb_decoded_t *d, size_t inner,
    sb_str_t method, bool upgrade);

/* Refuses when the first n bytes of the decoded path are not clean. */
sb_rc_t sb_route_clean(sb_route_t *route, const sb_decoded_t *d, size_t n);

/* Sets the reason; always SB_AMBIGUOUS. */
sb_rc_t sb_route_refuse(sb_route_t *route, const char *reason);

bool sb_route_port(uint32_t *port, sb_str_t text);

/* Where the segment that begins at i ends. */
size_t sb_segment(sb_str_t s, size_t i);

#endif /* SB_ROUTE_INT_H_INCLUDED */
