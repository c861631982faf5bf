/*
 * An answer of the helper on its way to the client.
 *
 * Two buffers of one window: what comes goes into the one while the other is
 * being sent, and the helper may send as much again when they change places.
 * So a client that reads slowly costs two windows and nothing more, and every
 * piece goes out as soon as the one before it is gone.
 */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_tokens.h"


/* silence of a live stream that is believed, ms */
#define NGX_HTTP_SANDBOX_API_LIFE  60000

/* the end of one: when its reader shall come back, ms */
#define NGX_HTTP_SANDBOX_API_RETRY  "retry: 250\n\n"


static void ngx_http_sandbox_api_piece(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_piece_t *p);
static void ngx_http_sandbox_api_gone(ngx_http_sandbox_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_sandbox_api_leaving(ngx_http_sandbox_ask_t *ask);
static ngx_int_t ngx_http_sandbox_api_header(ngx_http_sandbox_api_t *a,
    ngx_http_sandbox_piece_t *p);
static ngx_int_t ngx_http_sandbox_api_file(ngx_http_request_t *r,
    u_char *type, size_t len);
static ngx_int_t ngx_http_sandbox_api_plain(ngx_http_request_t *r);
static void ngx_http_sandbox_api_free(void *data);
static ngx_int_t ngx_http_sandbox_api_keep_stream(ngx_http_sandbox_api_t *a,
    u_char *data, size_t len);
static void ngx_http_sandbox_api_end(ngx_http_sandbox_api_t *a);
static ngx_int_t ngx_http_sandbox_api_keep(ngx_http_sandbox_api_t *a,
    ngx_http_sandbox_piece_t *p);
static void ngx_http_sandbox_api_flow(ngx_http_sandbox_api_t *a);
static ngx_int_t ngx_http_sandbox_api_flush(ngx_http_sandbox_api_t *a);
static void ngx_http_sandbox_api_writer(ngx_http_request_t *r);
static void ngx_http_sandbox_api_cut(ngx_http_sandbox_api_t *a);


void
ngx_http_sandbox_api_question(ngx_http_sandbox_api_t *a,
    ngx_http_sandbox_question_t *q)
{
    ngx_uint_t           i, leases;
    ngx_list_part_t     *part;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = a->request;

    ngx_memzero(q, sizeof(ngx_http_sandbox_question_t));

    if (r->method == NGX_HTTP_HEAD) {
        ngx_str_set(&q->method, "GET");

    } else {
        q->method = r->method_name;
    }

    q->path = a->path;
    q->query = r->args;
    q->body = a->body;
    q->actor_type = a->actor_type;
    q->actor_id = a->actor_id;
    q->identity = a->identity;
    q->role = a->token ? a->token->role : SB_ROLE_VIEWER;

    leases = 0;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (a->ask.stream && ngx_http_sandbox_header_is(&h[i], "last-event-id"))
        {
            q->event_id = h[i].value;
        }

        if (ngx_http_sandbox_header_is(&h[i], "x-sandbox-lease")) {
            leases++;
            q->lease = h[i].value;
        }
    }

    if (leases > 1) {
        /* which of them is meant nobody knows */
        ngx_str_null(&q->lease);
    }

    if (a->path.len > sizeof("sandboxes/") - 1
        && ngx_strncmp(a->path.data, "sandboxes/", sizeof("sandboxes/") - 1)
           == 0)
    {
        q->sandbox.data = a->path.data + sizeof("sandboxes/") - 1;

        while (q->sandbox.data + q->sandbox.len < a->path.data + a->path.len
               && q->sandbox.data[q->sandbox.len] != '/')
        {
            q->sandbox.len++;
        }
    }
}


ngx_int_t
ngx_http_sandbox_api_ask(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    a->ask.piece = ngx_http_sandbox_api_piece;
    a->ask.gone = ngx_http_sandbox_api_gone;
    a->ask.leaving = ngx_http_sandbox_api_leaving;

    return ngx_http_sandbox_api_put(r, a);
}


ngx_int_t
ngx_http_sandbox_api_put(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_int_t                     rc;
    ngx_http_sandbox_loc_conf_t  *lcf;
    ngx_http_sandbox_question_t   q;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ngx_http_sandbox_api_question(a, &q);

    a->ask.data = a;

    if (a->ask.timeout == 0) {
        a->ask.timeout = lcf->api_timeout;
    }

    rc = ngx_http_sandbox_ask(&a->ask, &q);

    if (rc != NGX_OK && a->alone) {
        return a->alone(r, a);
    }

    if (rc == NGX_BUSY) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                           "GATEWAY_OVERLOADED",
                                           "Too many questions to the helper "
                                           "are open; try again shortly.");
    }

    if (rc != NGX_OK) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                           "GATEWAY_RECORDER_UNAVAILABLE",
                                           "The helper that keeps the history "
                                           "cannot be reached; try again "
                                           "shortly.");
    }

    /* else a client that leaves is not noticed */
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    r->main->count++;

    return NGX_DONE;
}


ngx_int_t
ngx_http_sandbox_api_live(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (ngx_http_sandbox_tokens_hold(r, lcf->tokens, a->token, &a->session)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->ask.stream = 1;
    a->whole = 2;

    /* a sign of life comes every 15 s */
    a->ask.timeout = ngx_max(lcf->api_timeout, NGX_HTTP_SANDBOX_API_LIFE);

    return ngx_http_sandbox_api_ask(r, a);
}


static void
ngx_http_sandbox_api_piece(ngx_http_sandbox_ask_t *ask,
    ngx_http_sandbox_piece_t *p)
{
    ngx_int_t                rc;
    ngx_connection_t        *c;
    ngx_http_request_t      *r;
    ngx_http_sandbox_api_t  *a;

    a = ask->data;
    r = a->request;
    c = r->connection;

    if (!ask->stream || !a->headed || p->last) {
        /* an event of a stream that goes to a thousand readers finds the log as it
         * was left, with this request, and does not go and look for it */
        ngx_http_set_log_request(c->log, r);
    }

    a->last = p->last;

    if (!a->headed && a->alone && p->status != NGX_HTTP_OK) {
        ngx_http_sandbox_ask_cancel(ask);
        ngx_http_sandbox_api_finalize(a, a->alone(r, a));
        return;
    }

    if (!a->headed) {

        rc = ngx_http_sandbox_api_header(a, p);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            ngx_http_sandbox_ask_cancel(ask);
            ngx_http_sandbox_api_finalize(a, rc);
            return;
        }
    }

    if (ngx_http_sandbox_api_keep(a, p) != NGX_OK) {
        ngx_http_sandbox_ask_cancel(ask);
        ngx_http_sandbox_api_cut(a);
        return;
    }

    ngx_http_sandbox_api_flow(a);
}


static ngx_int_t
ngx_http_sandbox_api_header(ngx_http_sandbox_api_t *a,
    ngx_http_sandbox_piece_t *p)
{
    u_char              *type, *allow;
    ngx_http_request_t  *r;

    r = a->request;

    a->headed = 1;

    /* the frame does not outlive this call */

    type = ngx_pnalloc(r->pool, p->type.len + p->allow.len + 1);
    if (type == NULL) {
        return NGX_ERROR;
    }

    allow = ngx_cpymem(type, p->type.data, p->type.len);

    if (p->allow.len) {
        ngx_memcpy(allow, p->allow.data, p->allow.len);
    }

    r->headers_out.status = p->status;
    r->headers_out.content_type.data = type;
    r->headers_out.content_type.len = p->type.len;
    r->headers_out.content_type_len = p->type.len;
    r->headers_out.content_type_lowcase = NULL;

    a->live = p->type.len >= sizeof("text/event-stream") - 1
              && ngx_strncmp(type, "text/event-stream",
                             sizeof("text/event-stream") - 1)
                 == 0;

    if (p->last) {
        r->headers_out.content_length_n = a->prefix.len + p->len;
    }

    if (a->path.len == sizeof("export") - 1
        && ngx_strncmp(a->path.data, "export", sizeof("export") - 1) == 0
        && p->status == NGX_HTTP_OK
        && ngx_http_sandbox_api_file(r, type, p->type.len) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (a->live && ngx_http_sandbox_api_plain(r) != NGX_OK) {
        return NGX_ERROR;
    }

    if (p->type.len >= sizeof("text/html") - 1
        && ngx_strncmp(type, "text/html", sizeof("text/html") - 1) == 0
        && ngx_http_sandbox_add_header(r, "Content-Security-Policy",
                                   "default-src 'none'; style-src "
                                   "'unsafe-inline'; sandbox",
                                   sizeof("default-src 'none'; style-src "
                                          "'unsafe-inline'; sandbox") - 1)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_sandbox_api_headers(r) != NGX_OK
        || (p->allow.len
            && ngx_http_sandbox_add_header(r, "Allow", (char *) allow,
                                           p->allow.len)
               != NGX_OK)
        || (p->status == NGX_HTTP_SERVICE_UNAVAILABLE
            && ngx_http_sandbox_add_header(r, "Retry-After", "1", 1) != NGX_OK))
    {
        return NGX_ERROR;
    }

    return ngx_http_send_header(r);
}


/* An export is a file to keep, not a page of the console: it holds what agents
 * wrote. */

static ngx_int_t
ngx_http_sandbox_api_file(ngx_http_request_t *r, u_char *type, size_t len)
{
    ngx_uint_t  i;

    static const struct {
        ngx_str_t   type;
        ngx_str_t   disposition;
    } files[] = {
        { ngx_string("text/csv"),
          ngx_string("attachment; filename=\"sandbox-history.csv\"") },
        { ngx_string("text/html"),
          ngx_string("attachment; filename=\"sandbox-history.html\"") },
        { ngx_string("application/x-ndjson"),
          ngx_string("attachment; filename=\"sandbox-history.jsonl\"") }
    };

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {

        if (len >= files[i].type.len
            && ngx_strncmp(type, files[i].type.data, files[i].type.len) == 0)
        {
            return ngx_http_sandbox_add_header(r, "Content-Disposition",
                                        (char *) files[i].disposition.data,
                                        files[i].disposition.len);
        }
    }

    return NGX_OK;
}


/* Nobody may hold a live stream back: neither proxies in front of us nor our
 * own compression, which leaves alone what has an encoding; this one is in no
 * list of headers and so is not told. */

static ngx_int_t
ngx_http_sandbox_api_plain(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_pcalloc(r->pool, sizeof(ngx_table_elt_t));
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&h->key, "Content-Encoding");
    ngx_str_set(&h->value, "identity");

    r->headers_out.content_encoding = h;

    return ngx_http_sandbox_add_header(r, "X-Accel-Buffering", "no", 2);
}


/* With the pool and no sooner: over HTTP/2 a frame that is half written points
 * into it after the request was terminated. */

static void
ngx_http_sandbox_api_free(void *data)
{
    ngx_http_sandbox_api_t  *a = data;

    if (a->fill) {
        ngx_free(a->fill);
    }

    if (a->flight) {
        ngx_free(a->flight);
    }
}


/*
 * A stream is silent most of the time, and there are many: it has memory only
 * for what has come and is not sent.
 */

static ngx_int_t
ngx_http_sandbox_api_keep_stream(ngx_http_sandbox_api_t *a, u_char *data,
    size_t len)
{
    u_char              *p;
    ngx_http_request_t  *r;
    ngx_pool_cleanup_t  *cln;

    r = a->request;

    if (a->buf == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, 0);

        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_sandbox_api_free;
        cln->data = a;

        a->buf = ngx_calloc_buf(r->pool);

        if (a->buf == NULL) {
            return NGX_ERROR;
        }
    }

    if (len == 0) {
        return NGX_OK;
    }

    if (a->fill_len + len > NGX_HTTP_SANDBOX_ASK_STREAM
                            + sizeof(NGX_HTTP_SANDBOX_API_RETRY))
    {
        return NGX_ERROR;
    }

    p = ngx_alloc(a->fill_len + len, r->connection->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (a->fill) {
        ngx_memcpy(p, a->fill, a->fill_len);
        ngx_free(a->fill);
    }

    ngx_memcpy(p + a->fill_len, data, len);
    a->fill = p;
    a->fill_len += len;

    if (data[len - 1] != '\n') {
        a->whole = 0;

    } else if (len > 1 ? data[len - 2] == '\n' : a->whole != 0) {
        a->whole = 2;

    } else {
        a->whole = 1;
    }

    return NGX_OK;
}


/* Keeps a piece until it is sent. */

static ngx_int_t
ngx_http_sandbox_api_keep(ngx_http_sandbox_api_t *a,
    ngx_http_sandbox_piece_t *p)
{
    ngx_http_request_t  *r;

    r = a->request;

    if (a->ask.stream) {
        return ngx_http_sandbox_api_keep_stream(a, p->data, p->len);
    }

    if (a->buf == NULL) {

        /* what comes in one piece needs no more than that */

        a->size = a->prefix.len + (p->last ? p->len : SB_ASK_WINDOW);

        a->buf = ngx_calloc_buf(r->pool);
        a->fill = ngx_palloc(r->pool, ngx_max(a->size, 1));
        a->flight = p->last ? a->fill : ngx_palloc(r->pool, a->size);

        if (a->buf == NULL || a->fill == NULL || a->flight == NULL) {
            return NGX_ERROR;
        }

        if (a->prefix.len) {
            ngx_memcpy(a->fill, a->prefix.data, a->prefix.len);
        }

        a->fill_len = a->prefix.len;
    }

    if (p->len > a->size - a->fill_len) {
        return NGX_ERROR;
    }

    if (p->len) {
        ngx_memcpy(a->fill + a->fill_len, p->data, p->len);
    }

    a->fill_len += p->len;

    return NGX_OK;
}


/* Sends what is there; ends the request behind the last of it. */

static void
ngx_http_sandbox_api_flow(ngx_http_sandbox_api_t *a)
{
    size_t               n;
    u_char              *p;
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t          out;

    b = a->buf;

    while (b->pos == b->last && (a->fill_len || a->last)) {

        n = a->fill_len;
        p = a->fill;

        if (a->ask.stream && a->flight) {
            ngx_free(a->flight);
            a->flight = NULL;
        }

        a->fill = a->flight;
        a->flight = p;
        a->fill_len = 0;

        ngx_memzero(b, sizeof(ngx_buf_t));

        b->start = p;
        b->pos = p;
        b->last = p + n;
        b->end = b->last;
        b->memory = n ? 1 : 0;
        b->flush = 1;
        b->last_buf = a->last;
        b->last_in_chain = a->last;

        out.buf = b;
        out.next = NULL;

        rc = ngx_http_output_filter(a->request, &out);

        if (rc == NGX_ERROR) {
            ngx_http_sandbox_ask_cancel(&a->ask);
            ngx_http_sandbox_api_finalize(a, NGX_ERROR);
            return;
        }

        if (a->last) {
            /* nginx sends what is left */
            ngx_http_sandbox_api_finalize(a, rc);
            return;
        }

        ngx_http_sandbox_ask_credit(&a->ask, n);
    }

    if (a->ask.stream && b->pos == b->last && a->flight) {
        ngx_free(a->flight);
        a->flight = NULL;
    }

    if (b->pos != b->last && ngx_http_sandbox_api_flush(a) != NGX_OK) {
        ngx_http_sandbox_ask_cancel(&a->ask);
        ngx_http_sandbox_api_finalize(a, NGX_ERROR);
    }
}


/* The client takes no more at the moment. */

static ngx_int_t
ngx_http_sandbox_api_flush(ngx_http_sandbox_api_t *a)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = a->request;
    wev = r->connection->write;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    r->write_event_handler = ngx_http_sandbox_api_writer;

    if (!wev->delayed && !wev->timer_set) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    return ngx_handle_write_event(wev, clcf->send_lowat);
}


static void
ngx_http_sandbox_api_writer(ngx_http_request_t *r)
{
    ngx_event_t             *wev;
    ngx_connection_t        *c;
    ngx_http_sandbox_api_t  *a;

    c = r->connection;
    wev = c->write;

    a = ngx_http_sandbox_api_get(r);

    if (a == NULL || a->buf == NULL) {
        return;
    }

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out, reading the console API");
        c->timedout = 1;
        ngx_http_sandbox_ask_cancel(&a->ask);
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (wev->delayed) {
        return;
    }

    if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_sandbox_ask_cancel(&a->ask);
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (a->buf->pos != a->buf->last) {

        if (wev->timer_set) {
            /* it takes something, slowly */
            ngx_del_timer(wev);
        }

    } else if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    ngx_http_sandbox_api_flow(a);
}


static void
ngx_http_sandbox_api_gone(ngx_http_sandbox_ask_t *ask, ngx_int_t rc)
{
    ngx_http_sandbox_api_t  *a;

    a = ask->data;

    if (a->headed && a->live) {
        ngx_http_set_log_request(a->request->connection->log, a->request);
        ngx_http_sandbox_api_end(a);
        return;
    }

    if (a->headed) {
        ngx_http_sandbox_api_cut(a);
        return;
    }

    ngx_http_set_log_request(a->request->connection->log, a->request);

    if (a->alone) {
        ngx_http_sandbox_api_finalize(a, a->alone(a->request, a));
        return;
    }

    rc = ngx_http_sandbox_api_refuse(a->request, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "GATEWAY_RECORDER_UNAVAILABLE",
                                     rc == NGX_ABORT
                                     ? "The helper that keeps the history did "
                                       "not answer in time; try again shortly."
                                     : "The helper that keeps the history has "
                                       "left; try again shortly.");

    ngx_http_sandbox_api_finalize(a, rc);
}


/*
 * An answer that cannot be finished must not look whole: no last chunk, no
 * Content-Length that fits; for HTTP/1.0, where the end of the connection is
 * the end of the body, that is a reset.
 */

static void
ngx_http_sandbox_api_cut(ngx_http_sandbox_api_t *a)
{
    struct linger        linger;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = a->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_log_error(NGX_LOG_ERR, c->log, 0,
                  "console API: the helper broke off its answer");

    ngx_http_sandbox_metric_add(API_CUT, 1);

    if (!r->chunked && r->headers_out.content_length_n == -1
#if (NGX_HTTP_V2)
        && r->stream == NULL
#endif
       )
    {
        linger.l_onoff = 1;
        linger.l_linger = 0;

        if (setsockopt(c->fd, SOL_SOCKET, SO_LINGER, (const void *) &linger,
                       sizeof(struct linger))
            == -1)
        {
            ngx_log_error(NGX_LOG_ERR, c->log, ngx_socket_errno,
                          "setsockopt(SO_LINGER) failed");
        }
    }

    ngx_http_sandbox_api_finalize(a, NGX_ERROR);
}


/* The worker exits: a live stream ends well, and its reader comes back to
 * another worker; any other answer is finished first. */

static void
ngx_http_sandbox_api_leaving(ngx_http_sandbox_ask_t *ask)
{
    ngx_http_sandbox_api_t  *a;

    a = ask->data;

    if (!a->live) {
        return;
    }

    ngx_http_set_log_request(a->request->connection->log, a->request);

    ngx_http_sandbox_ask_cancel(ask);
    ngx_http_sandbox_api_end(a);
}


/* Ends a live stream well; its reader shall come back soon.  Behind half an
 * event no more is said, or it would pass for a whole one. */

static void
ngx_http_sandbox_api_end(ngx_http_sandbox_api_t *a)
{
    static u_char  retry[] = NGX_HTTP_SANDBOX_API_RETRY;

    a->last = 1;

    if (a->ask.stream && a->whole == 2
        && ngx_http_sandbox_api_keep_stream(a, retry, sizeof(retry) - 1)
           != NGX_OK)
    {
        ngx_http_sandbox_api_finalize(a, NGX_ERROR);
        return;
    }

    if (a->buf == NULL) {
        ngx_http_sandbox_api_finalize(a, ngx_http_send_special(a->request,
                                                               NGX_HTTP_LAST));
        return;
    }

    ngx_http_sandbox_api_flow(a);
}
