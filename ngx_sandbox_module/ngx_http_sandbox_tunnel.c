/*
 * What passes after 101: nginx copies raw bytes between the two connections
 * with their own send functions, no filter sees them.  Both are wrapped; send,
 * not recv, because bytes that were read before the switch never pass recv.
 */


#include "ngx_http_sandbox.h"


static ssize_t ngx_http_sandbox_tunnel_to_client(ngx_connection_t *c,
    u_char *buf, size_t size);
static ssize_t ngx_http_sandbox_tunnel_to_upstream(ngx_connection_t *c,
    u_char *buf, size_t size);
static void ngx_http_sandbox_tunnel_close(void *data);
static void ngx_http_sandbox_tunnel_goodbye(ngx_http_sandbox_tunnel_t *t);
static ngx_http_sandbox_tunnel_t *ngx_http_sandbox_tunnel_get(
    ngx_connection_t *c);
static void ngx_http_sandbox_tunnel_feed(ngx_connection_t *c, sb_ws_t *ws,
    u_char *buf, size_t n);


ngx_int_t
ngx_http_sandbox_tunnel_open(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_cleanup_t         *cln;
    ngx_http_sandbox_tunnel_t  *t;

    t = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_tunnel_t));
    if (t == NULL) {
        return NGX_ERROR;
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_sandbox_tunnel_close;
    cln->data = ctx;

    t->client = r->connection;
    t->upstream = r->upstream->peer.connection;
    t->client_send = t->client->send;
    t->upstream_send = t->upstream->send;

    t->client->send = ngx_http_sandbox_tunnel_to_client;
    t->upstream->send = ngx_http_sandbox_tunnel_to_upstream;

    ctx->tunnel = t;

    if (sb_op_index(ctx->op) == SB_OP_PTY_OPEN) {
        return ngx_http_sandbox_pty_open(r, ctx);
    }

    return NGX_OK;
}


static void
ngx_http_sandbox_tunnel_close(void *data)
{
    ngx_http_sandbox_ctx_t  *ctx = data;

    ngx_connection_t           *c;
    ngx_http_sandbox_tunnel_t  *t;

    t = ctx->tunnel;

    t->client->send = t->client_send;

    ngx_http_sandbox_tunnel_goodbye(t);

    c = ctx->request->upstream ? ctx->request->upstream->peer.connection : NULL;

    if (c && c == t->upstream) {
        c->send = t->upstream_send;
    }
}


/*
 * The worker leaves, worker_shutdown_timeout is over: the client is told to come
 * again (1012, service restart), if upstream is not just in the middle of a
 * frame.
 */

static void
ngx_http_sandbox_tunnel_goodbye(ngx_http_sandbox_tunnel_t *t)
{
    sb_ws_t  *ws;

    static u_char  frame[] = { 0x88, 0x02, 0x03, 0xf4 };

    ws = &t->from_upstream;

    if (!ngx_exiting || !t->client->close || ws->closed || ws->broken
        || ws->left || ws->head_len)
    {
        return;
    }

    (void) t->client_send(t->client, frame, sizeof(frame));
}


/* data of both connections is the request once it is upgraded */

static ngx_http_sandbox_tunnel_t *
ngx_http_sandbox_tunnel_get(ngx_connection_t *c)
{
    ngx_http_request_t      *r;
    ngx_http_sandbox_ctx_t  *ctx;

    r = c->data;
    ctx = ngx_http_sandbox_get_ctx(r);

    return ctx->tunnel;
}


static void
ngx_http_sandbox_tunnel_feed(ngx_connection_t *c, sb_ws_t *ws, u_char *buf,
    size_t n)
{
    ngx_http_sandbox_ctx_t  *ctx;

    ctx = ngx_http_sandbox_get_ctx(c->data);

    if (ctx->tunnel->pty == NULL) {
        sb_ws_feed(ws, buf, n);
        return;
    }

    ngx_http_sandbox_pty_now(ctx->tunnel->pty);
    sb_ws_feed(ws, buf, n);
    ngx_http_sandbox_pty_flush(ctx);
}


static ssize_t
ngx_http_sandbox_tunnel_to_client(ngx_connection_t *c, u_char *buf, size_t size)
{
    ssize_t                     n;
    ngx_http_sandbox_tunnel_t  *t;

    t = ngx_http_sandbox_tunnel_get(c);

    n = t->client_send(c, buf, size);

    if (n > 0) {
        t->bytes_out += n;
        ngx_http_sandbox_tunnel_feed(c, &t->from_upstream, buf, (size_t) n);
    }

    return n;
}


static ssize_t
ngx_http_sandbox_tunnel_to_upstream(ngx_connection_t *c, u_char *buf,
    size_t size)
{
    ssize_t                     n;
    ngx_http_sandbox_tunnel_t  *t;

    t = ngx_http_sandbox_tunnel_get(c);

    n = t->upstream_send(c, buf, size);

    if (n > 0) {
        t->bytes_in += n;
        ngx_http_sandbox_tunnel_feed(c, &t->from_client, buf, (size_t) n);
    }

    return n;
}
