/* Shared by the files of the proxy. */

#ifndef RT_PROXY_INT_H_INCLUDED
#define RT_PROXY_INT_H_INCLUDED

#include <curl/curl.h>

#include "proxy.h"

#define RT_IN_MAX   (256 * 1024)    /* of the answer, not yet passed on */


typedef struct {
    rt_req_t           *r;
    rt_backend_t        b;
    CURL               *easy;
    CURLM              *multi;
    struct curl_slist  *headers;
    int                 client;

    const char         *up;         /* piece of the request body */
    size_t              up_len;
    bool                up_eof;
    bool                up_paused;

    sb_buf_t            in;         /* piece of the answer's body */
    size_t              in_pos;
    bool                in_paused;

    rt_header_t         head[RT_HEADERS_MAX];
    unsigned            nhead;
    unsigned            status;
    bool                head_done;
    bool                done;
    CURLcode            rc;
} rt_proxy_t;

/* Whether a header stays on its own leg: the hop-by-hop ones and those named
 * in Connection; secrets: also those the server proxy takes away. */
bool rt_hop_header(const char *name, const char *connection, bool secrets);
/* The client's address, and with its port as execd writes it. */
void rt_peer_address(const rt_req_t *r, char *dst, size_t n);
/* X-Forwarded-For of execd's proxy, malloc'ed. */
char *rt_forwarded_for(const rt_req_t *r);
void rt_lower(char *s);

/* Fills p->headers from the request; adds one field to it. */
void rt_proxy_headers(rt_proxy_t *p);
void rt_proxy_add(rt_proxy_t *p, const char *name, const char *value);
/* Sets the answer's headers from the backend's, whose Connection is given. */
void rt_proxy_answer_headers(rt_proxy_t *p, const char *connection);

#endif /* RT_PROXY_INT_H_INCLUDED */
