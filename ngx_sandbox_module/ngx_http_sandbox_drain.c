/*
 * The body behind a refusal: nginx reads it on for a while, so that the client
 * gets to read the answer (C017).  It does so by time only; here is the bound
 * in bytes, for a body that never ends (C015).
 */


#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_DRAIN  (100 * 1024 * 1024)


typedef struct {
    ngx_connection_t  *connection;
    ngx_recv_pt        recv;
    off_t              left;
} ngx_http_sandbox_drain_t;


static ssize_t ngx_http_sandbox_drain_recv(ngx_connection_t *c, u_char *buf,
    size_t size);
static void ngx_http_sandbox_drain_cleanup(void *data);


ngx_int_t
ngx_http_sandbox_drain(ngx_http_request_t *r)
{
    ngx_http_cleanup_t        *cln;
    ngx_http_sandbox_drain_t  *d;

#if (NGX_HTTP_V2)
    if (r->stream) {
        /* its flow control window is not opened any more */
        return NGX_OK;
    }
#endif

    if (!r->headers_in.chunked
        && r->headers_in.content_length_n <= NGX_HTTP_SANDBOX_DRAIN)
    {
        return NGX_OK;
    }

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_sandbox_drain_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_sandbox_drain_cleanup;

    d = cln->data;
    d->connection = r->connection;
    d->recv = r->connection->recv;
    d->left = NGX_HTTP_SANDBOX_DRAIN;

    r->connection->recv = ngx_http_sandbox_drain_recv;

    return NGX_OK;
}


static ssize_t
ngx_http_sandbox_drain_recv(ngx_connection_t *c, u_char *buf, size_t size)
{
    ssize_t                    n;
    ngx_http_request_t        *r;
    ngx_http_cleanup_t        *cln;
    ngx_http_sandbox_drain_t  *d;

    r = c->data;

    for (cln = r->main->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_sandbox_drain_cleanup) {
            break;
        }
    }

    if (cln == NULL) {
        return NGX_ERROR;
    }

    d = cln->data;

    if (d->left <= 0) {
        ngx_http_sandbox_metric_add(BODIES_CLOSED, 1);
        ngx_log_error(NGX_LOG_INFO, c->log, 0,
                      "the body of a refused request is longer than %d bytes, "
                      "closing", NGX_HTTP_SANDBOX_DRAIN);
        c->read->error = 1;
        return NGX_ERROR;
    }

    n = d->recv(c, buf, size);

    if (n > 0) {
        d->left -= n;
    }

    return n;
}


static void
ngx_http_sandbox_drain_cleanup(void *data)
{
    ngx_http_sandbox_drain_t  *d = data;

    d->connection->recv = d->recv;
}
