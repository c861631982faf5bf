/* Shared by proxy.c and proxy_ws.c. */

#ifndef RT_PROXY_INT_H_INCLUDED
#define RT_PROXY_INT_H_INCLUDED

#include "http.h"

/* Whether a header stays on its own leg: the hop-by-hop ones and those named
 * in Connection; secrets: also those the server proxy takes away. */
bool rt_hop_header(const char *name, const char *connection, bool secrets);
/* The client's address, and with its port as execd writes it. */
void rt_peer_address(const rt_req_t *r, char *dst, size_t n);
/* X-Forwarded-For of execd's proxy, malloc'ed. */
char *rt_forwarded_for(const rt_req_t *r);
void rt_lower(char *s);

#endif /* RT_PROXY_INT_H_INCLUDED */
