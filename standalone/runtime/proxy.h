/*
 * Forwarding of requests: the server proxy of the lifecycle side (2) and
 * execd's /proxy/{port}/ (3.6).  libcurl speaks to the backend; a WebSocket is
 * tunnelled as bytes once both sides have said 101.
 */

#ifndef RT_PROXY_H_INCLUDED
#define RT_PROXY_H_INCLUDED

#include "http.h"

typedef struct {
    uint16_t     port;          /* on 127.0.0.1 */
    char        *target;        /* of the backend's request line */
    bool         server;        /* the server proxy, not execd's */
    /* What to say when the backend cannot be reached or breaks off before its
     * head. */
    void       (*fail)(rt_req_t *r, bool connected, const char *why);
    /* Sets the answer's own headers (X-Request-ID ...), may be NULL. */
    void       (*decorate)(rt_req_t *r);
    const char  *request_id;    /* replaces the backend's; NULL: none */
} rt_backend_t;

/* Once, before threads are started. */
void rt_proxy_init(void);

/* Begins to forward r; takes b->target.  The body goes through
 * rt_proxy_sink(); rt_proxy_finish() answers when the body is complete. */
void rt_proxy_begin(rt_req_t *r, const rt_backend_t *b);
bool rt_proxy_sink(rt_req_t *r, const char *p, size_t n);
void rt_proxy_finish(rt_req_t *r);

/* Whether the request asks for a WebSocket. */
bool rt_is_websocket(const rt_req_t *r);
/* Answers with a tunnel to the backend; takes b->target. */
void rt_proxy_websocket(rt_req_t *r, const rt_backend_t *b);
/* 101, then a close frame with this code. */
void rt_websocket_refuse(rt_req_t *r, uint16_t code, const char *reason);
/* Sec-WebSocket-Accept for a key; dst gets 29 bytes. */
void rt_websocket_accept(char *dst, const char *key);

/* execd: a request whose path begins with /proxy/. */
void rt_execd_proxy(rt_req_t *r);

#endif /* RT_PROXY_H_INCLUDED */
