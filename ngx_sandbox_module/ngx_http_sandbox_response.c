/*
 * Answers: the headers that the gateway adds and removes, and the taps.  A tap
 * looks at bytes as they pass and never holds, changes or reorders them; the
 * endpoints answer is the one exception (ngx_http_sandbox_rewrite.c).
 */


#include "cookie.h"
#include "ngx_http_sandbox_known.h"
#include "ngx_http_sandbox_port.h"


/* headers of an answer that do not pass */

typedef struct {
    ngx_str_t    name;
    ngx_uint_t   cookie;    /* only one that is not the sandbox's to set */
    ngx_uint_t   proxied;   /* 1: only from sandboxes; 2: of these not on an
                               origin of its own */
} ngx_http_sandbox_shield_t;


static void ngx_http_sandbox_stream_output(void *data, sb_std_e which,
    const char *p, size_t n, bool last);
static void ngx_http_sandbox_stream_init(void *data, sb_str_t id);
static void ngx_http_sandbox_stream_result(void *data, sb_str_t json,
    bool whole);
static ngx_uint_t ngx_http_sandbox_whole_file(ngx_http_sandbox_ctx_t *ctx);
static ngx_int_t ngx_http_sandbox_taps(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf);
static void ngx_http_sandbox_feed(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const char *p, size_t n);
static void ngx_http_sandbox_whole(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_sent(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_int_t rc);
static ngx_int_t ngx_http_sandbox_own_body(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_chain_t *in);
static ngx_int_t ngx_http_sandbox_shield(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_upstream_finalize(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_sandbox_unbuffered(ngx_http_request_t *r);
static ngx_uint_t ngx_http_sandbox_is_type(ngx_http_request_t *r,
    const char *type);


static ngx_http_sandbox_shield_t  ngx_http_sandbox_shields[] = {
    { ngx_string("X-Operation-Id"), 0, 0 },
    { ngx_string("X-Correlation-Id"), 0, 0 },
    { ngx_string("Trailer"), 0, 0 },
    { ngx_string("Proxy-Authenticate"), 0, 0 },
    { ngx_string("Proxy-Connection"), 0, 0 },
    { ngx_string("X-Content-Type-Options"), 0, 2 },
    { ngx_string("Service-Worker-Allowed"), 0, 1 },
    { ngx_string("Clear-Site-Data"), 0, 1 },

    /* would bind the whole host, or tell of requests to it */
    { ngx_string("Strict-Transport-Security"), 0, 1 },
    { ngx_string("Alt-Svc"), 0, 1 },
    { ngx_string("NEL"), 0, 1 },
    { ngx_string("Report-To"), 0, 1 },
    { ngx_string("Reporting-Endpoints"), 0, 1 },

    { ngx_string("Set-Cookie"), 1, 1 },
    { ngx_null_string, 0, 0 }
};


ngx_http_output_header_filter_pt  ngx_http_sandbox_next_header_filter;
ngx_http_output_body_filter_pt    ngx_http_sandbox_next_body_filter;


ngx_int_t
ngx_http_sandbox_header_filter(ngx_http_request_t *r)
{
    ngx_int_t                     rc;
    ngx_http_upstream_t          *u;
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    if (r != r->main) {
        return ngx_http_sandbox_next_header_filter(r);
    }

    ctx = ngx_http_sandbox_get_ctx(r);

    if (ctx == NULL || ctx->tapped) {
        return ngx_http_sandbox_next_header_filter(r);
    }

    if (ctx->http_version != r->http_version
        && r->http_version == NGX_HTTP_VERSION_9)
    {
        /*
         * upstream sent no HTTP head; nginx would pass it on as HTTP/0.9,
         * without any header of ours, on the console's own origin
         */

        r->http_version = ctx->http_version;

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "sandbox %s: upstream sent no HTTP header, refused",
                      ctx->id_text);

        return NGX_HTTP_BAD_GATEWAY;
    }

    ctx->tapped = 1;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    u = r->upstream;

    if (ctx->judged && u && r->err_status == 0 && u->headers_in.status_n) {
        ctx->upstream_status = u->headers_in.status_n;
    }

    ngx_http_sandbox_known_changed(r, ctx);

    if (ctx->judged && u && u->finalize_request
        && u->finalize_request != ngx_http_sandbox_upstream_finalize)
    {
        ctx->upstream_finalize = u->finalize_request;
        u->finalize_request = ngx_http_sandbox_upstream_finalize;
    }

    /* but a page of the user's own stays */

    if (r->err_status && lcf->enable
        && (!r->internal || r->content_handler))
    {
        if (ngx_http_sandbox_replace_error(r, ctx) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    if (ctx->upstream_status) {

        ngx_http_sandbox_hop_answer(r);

        if (ngx_http_sandbox_shield(r, ctx) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_sandbox_add_header(r, "X-Operation-Id",
                                    (char *) ctx->id_text, SB_UUID_LEN)
        != NGX_OK
        || (ctx->correlation.len
            && ngx_http_sandbox_add_header(r, "X-Correlation-Id",
                                           (char *) ctx->correlation.data,
                                           ctx->correlation.len)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (ctx->upstream_status == 0) {
        return ngx_http_sandbox_next_header_filter(r);
    }

    if (u->upgrade && r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS) {

        if (ngx_http_sandbox_tunnel_open(r, ctx) != NGX_OK) {
            return NGX_ERROR;
        }

        return ngx_http_sandbox_next_header_filter(r);
    }

    if (ngx_http_sandbox_taps(r, ctx, lcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (lcf->endpoints != NGX_HTTP_SANDBOX_ENDPOINTS_OFF
        && sb_op_index(ctx->op) == SB_OP_ENDPOINT_GET)
    {
        rc = ngx_http_sandbox_rewrite_header(r, ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_sandbox_next_header_filter(r);
}


/*
 * Answers from sandboxes are never same-origin with the console (design 7):
 * a document gets an opaque origin, and what would act on the whole host is
 * taken out.  Nobody behind us can answer with our own headers.
 */

static ngx_int_t
ngx_http_sandbox_shield(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                     i, own;
    ngx_list_part_t               *part;
    ngx_table_elt_t               *h;
    ngx_http_sandbox_shield_t     *s;
    ngx_http_sandbox_main_conf_t  *mcf;

    static uint32_t  lengths;

    if (lengths == 0) {
        for (s = ngx_http_sandbox_shields; s->name.len; s++) {
            lengths |= (uint32_t) 1 << s->name.len;
        }
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    own = ctx->port_listener && mcf->port_host.len;

    part = &r->headers_out.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (ctx->route.surface != SB_SURFACE_PORT && h[i].key.len > 15
            && ngx_strncasecmp(h[i].key.data, (u_char *) "Access-Control-", 15)
               == 0)
        {
            /* other origins may read nothing that a session could open */
            h[i].hash = 0;
            continue;
        }

        if (h[i].hash == 0 || h[i].key.len >= 32
            || !(lengths >> h[i].key.len & 1))
        {
            continue;
        }

        for (s = ngx_http_sandbox_shields; s->name.len; s++) {

            if ((s->proxied && !ctx->route.proxied)
                || (s->proxied == 2 && own))
            {
                continue;
            }

            if (h[i].key.len == s->name.len
                && ngx_strncasecmp(h[i].key.data, s->name.data, s->name.len)
                   == 0
                && (!s->cookie
                    || sb_cookie_foreign(ngx_http_sandbox_str(&h[i].value))))
            {
                h[i].hash = 0;
                break;
            }
        }
    }

    if (!ctx->route.proxied) {
        return NGX_OK;
    }

    if (own) {
        return ngx_http_sandbox_port_shield(r);
    }

    if (ngx_http_sandbox_add_header(r, "Content-Security-Policy",
                                    "sandbox allow-scripts allow-forms "
                                    "allow-popups",
                                    sizeof("sandbox allow-scripts allow-forms "
                                           "allow-popups") - 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sandbox_add_header(r, "X-Content-Type-Options", "nosniff",
                                       sizeof("nosniff") - 1);
}


ngx_int_t
ngx_http_sandbox_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value.data = (u_char *) value;
    h->value.len = len;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sandbox_is_type(ngx_http_request_t *r, const char *type)
{
    size_t  len;

    len = ngx_strlen(type);

    /* nearly all are written like this */

    return r->headers_out.content_type.len >= len
           && (ngx_memcmp(r->headers_out.content_type.data, type, len) == 0
               || ngx_strncasecmp(r->headers_out.content_type.data,
                                  (u_char *) type, len)
                  == 0);
}


/* Decides what is read of this answer as it passes. */

static ngx_int_t
ngx_http_sandbox_taps(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_uint_t                     encoded;
    sb_stream_handler_t            handler;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    /* addresses end with what they name (design 6) */

    if (ctx->route.sandbox.len) {

        if (ctx->upstream_status == NGX_HTTP_NOT_FOUND
            && ctx->route.surface == SB_SURFACE_LIFECYCLE
            && !(ctx->op->flags & SB_OPF_UNKNOWN))
        {
            ngx_http_sandbox_endpoint_drop(mcf, ctx->route.sandbox, 0);

        } else if (ctx->upstream_status < NGX_HTTP_SPECIAL_RESPONSE) {

            if (sb_op_index(ctx->op) == SB_OP_SANDBOX_DELETE) {
                ngx_http_sandbox_endpoint_gone(mcf, ctx->route.sandbox);

            } else if (sb_op_index(ctx->op) == SB_OP_SANDBOX_PAUSE
                       || sb_op_index(ctx->op) == SB_OP_SANDBOX_RESUME)
            {
                ngx_http_sandbox_endpoint_drop(mcf, ctx->route.sandbox, 0);
            }
        }
    }

    if (r->header_only || ctx->upstream_status == NGX_HTTP_NO_CONTENT
        || ctx->upstream_status == NGX_HTTP_NOT_MODIFIED)
    {
        return NGX_OK;
    }

    if (ngx_http_sandbox_is_type(r, "text/event-stream")) {
        /* events are seen as they come, whatever proxy_buffering says (C024) */
        ngx_http_sandbox_unbuffered(r);
    }

    encoded = r->headers_out.content_encoding
              && r->headers_out.content_encoding->value.len;

    /* whatever its type: a sandbox must not choose what is on record */

    if ((ctx->op->flags & SB_OPF_STREAM)
        && ctx->upstream_status < NGX_HTTP_SPECIAL_RESPONSE)
    {
        if (ctx->mode == NGX_HTTP_SANDBOX_OFF) {
            return NGX_OK;
        }

        if (encoded) {
            ctx->reason = "answer_encoded";
            return NGX_OK;
        }

        ngx_memzero(&handler, sizeof(sb_stream_handler_t));

        handler.output = ngx_http_sandbox_stream_output;
        handler.init = ngx_http_sandbox_stream_init;
        handler.result = ngx_http_sandbox_stream_result;
        handler.data = ctx;

        ctx->stream = sb_stream_new(&handler);
        if (ctx->stream == NULL) {
            return NGX_ERROR;
        }

        if (sb_op_index(ctx->op) == SB_OP_CODE_EXECUTE) {
            sb_stream_raw(ctx->stream);
        }

        r->filter_need_in_memory = 1;

        return NGX_OK;
    }

    if (!encoded
        && (ctx->mode != NGX_HTTP_SANDBOX_OFF
            || (ctx->route.surface == SB_SURFACE_LIFECYCLE
                && sb_answer_dates(ctx->op, ctx->upstream_status)))
        && ngx_http_sandbox_is_type(r, "application/json"))
    {
        /* also without a record: until when a sandbox exists */
        ctx->answer = sb_answer_new(ctx->op, ctx->upstream_status);

        if (ctx->answer) {
            r->filter_need_in_memory = 1;
        }

        return NGX_OK;
    }

    if (ctx->mode != NGX_HTTP_SANDBOX_OFF && !encoded
        && ctx->upstream_status == NGX_HTTP_OK
        && ngx_http_sandbox_whole_file(ctx))
    {
        if (lcf->digest) {
            ctx->digest = sb_sha256_new();
            if (ctx->digest == NULL) {
                return NGX_ERROR;
            }

            r->filter_need_in_memory = 1;
        }

        if (r->headers_out.content_length_n <= SB_CONTENT_MAX
            && ngx_http_sandbox_content_wanted(r, ctx))
        {
            ctx->content = 1;
            r->filter_need_in_memory = 1;
        }
    }

    return NGX_OK;
}


/* Does the request ask for all of a file?  execd gives chosen lines with the
 * same status. */

static ngx_uint_t
ngx_http_sandbox_whole_file(ngx_http_sandbox_ctx_t *ctx)
{
    sb_str_t  json;

    if (sb_op_index(ctx->op) != SB_OP_FILE_READ) {
        return 0;
    }

    if (ctx->facts == NULL) {
        return 1;
    }

    /* canonical: these come before "path" */

    json = sb_str(ctx->facts->json.data, ctx->facts->json.len);

    return !(json.len > 9 && (ngx_memcmp(json.data, "{\"limit\":", 9) == 0
                              || ngx_memcmp(json.data, "{\"offset\"", 9)
                                 == 0));
}


/* Was it our limit that ended an answer, or upstream (C028)?  Later on nobody
 * can tell. */

static void
ngx_http_sandbox_upstream_finalize(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_connection_t        *c;
    ngx_http_sandbox_ctx_t  *ctx;

    ctx = ngx_http_sandbox_get_ctx(r);
    c = r->upstream->peer.connection;

    if (rc == NGX_HTTP_GATEWAY_TIME_OUT || (c && c->read->timedout)) {
        ctx->upstream_timedout = 1;
    }

    ctx->upstream_finalize(r, rc);
}


/* nginx looks at it after the header filters, as after X-Accel-Buffering. */

static void
ngx_http_sandbox_unbuffered(ngx_http_request_t *r)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    if (u && !u->store
#if (NGX_HTTP_CACHE)
        && !u->cacheable
#endif
       )
    {
        u->buffering = 0;
    }
}


ngx_int_t
ngx_http_sandbox_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    off_t                    size;
    ngx_int_t                rc;
    ngx_buf_t               *b;
    ngx_uint_t               whole;
    ngx_chain_t             *cl;
    ngx_http_sandbox_ctx_t  *ctx;

    if (r != r->main) {
        return ngx_http_sandbox_next_body_filter(r, in);
    }

    ctx = ngx_http_sandbox_get_ctx(r);

    if (ctx == NULL) {
        return ngx_http_sandbox_next_body_filter(r, in);
    }

    if (ctx->replace) {
        return ngx_http_sandbox_own_body(r, ctx, in);
    }

    whole = 0;

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        size = ngx_buf_size(b);

        if (size > 0) {
            ctx->bytes_out += size;

            if (ngx_buf_in_memory(b)) {
                ngx_http_sandbox_feed(r, ctx, (const char *) b->pos,
                                      b->last - b->pos);
            }
        }

        if (b->last_buf) {
            whole = 1;
        }
    }

    if (ctx->stream) {
        ngx_http_sandbox_record_flush(ctx);

    } else if (ctx->content) {
        ngx_http_sandbox_content_flush(ctx);
    }

    if (whole && !ctx->last) {
        ctx->last = 1;
        ngx_http_sandbox_whole(r, ctx);

    } else if (ctx->answer && r->headers_out.content_length_n != -1
               && ctx->bytes_out >= r->headers_out.content_length_n)
    {
        /* the client has all of it before we are told that it was the last:
         * what it asks next may depend on it */

        ngx_http_sandbox_whole(r, ctx);
    }

    if (ctx->rewrite) {
        rc = ngx_http_sandbox_rewrite_body(r, ctx, in);

    } else {
        rc = ngx_http_sandbox_next_body_filter(r, in);
    }

    ngx_http_sandbox_sent(r, ctx, rc);

    return rc;
}


/*
 * Once the last byte is out the operation has ended; nginx may keep the
 * request for seconds yet, until the client closes the connection.
 */

static void
ngx_http_sandbox_sent(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_int_t rc)
{
    if (rc == NGX_OK && ctx->last && r->out == NULL && !r->connection->buffered
        && !r->connection->error)
    {
        ngx_http_sandbox_record_end(r, ctx);
    }
}


static void
ngx_http_sandbox_feed(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    const char *p, size_t n)
{
    if (ctx->stream) {
        sb_stream_feed(ctx->stream, p, n);

    } else if (ctx->answer) {
        sb_answer_feed(ctx->answer, p, n);

    } else {

        if (ctx->digest) {
            sb_sha256_add(ctx->digest, p, n);
        }

        if (ctx->content) {
            ngx_http_sandbox_content_add(ctx, SB_CONTENT_AFTER, 0,
                                         ctx->bytes_out - n, p, n);
        }
    }
}


/* The answer has passed; what it told is ready for the END frame. */

static void
ngx_http_sandbox_whole(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    uint64_t                       expires;
    ngx_str_t                      id;
    const sb_answer_facts_t       *f;
    ngx_http_sandbox_main_conf_t  *mcf;

    if (ctx->stream) {
        (void) sb_stream_finish(ctx->stream);
        ngx_http_sandbox_record_flush(ctx);
        return;
    }

    if (ctx->answer == NULL || ctx->answer_facts) {
        return;
    }

    f = sb_answer_finish(ctx->answer);
    ctx->answer_facts = f;

    if (f == NULL || ctx->upstream_status >= NGX_HTTP_SPECIAL_RESPONSE) {
        return;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    id.data = (u_char *) (f->id.len ? f->id.data : ctx->route.sandbox.data);
    id.len = f->id.len ? f->id.len : ctx->route.sandbox.len;

    if (id.len && f->has_expires
        && ctx->route.surface == SB_SURFACE_LIFECYCLE)
    {
        expires = f->expires_us;
        ngx_http_sandbox_endpoint_expires(mcf, ngx_http_sandbox_str(&id),
                                          expires);
    }

    if (f->id.len && sb_op_index(ctx->op) == SB_OP_SANDBOX_CREATE) {
        ngx_http_sandbox_known_made(r, ctx, f->id);
    }

    if (f->nitems && ctx->mode != NGX_HTTP_SANDBOX_OFF) {
        ngx_http_sandbox_record_seen(ctx);
    }
}


/* Our envelope in place of the page that nginx made. */

static ngx_int_t
ngx_http_sandbox_own_body(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_chain_t *in)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *cl, out;

    for (cl = in; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;
    }

    if (ctx->replaced) {
        return ngx_http_sandbox_next_body_filter(r, NULL);
    }

    ctx->replaced = 1;
    ctx->last = 1;
    ctx->bytes_out = ctx->refusal.len;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = ctx->refusal.data;
    b->last = b->pos + ctx->refusal.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_sandbox_next_body_filter(r, &out);

    ngx_http_sandbox_sent(r, ctx, rc);

    return rc;
}


static void
ngx_http_sandbox_stream_output(void *data, sb_std_e which, const char *p,
    size_t n, bool last)
{
    ngx_http_sandbox_record_output(data, which, p, n);
}


static void
ngx_http_sandbox_stream_result(void *data, sb_str_t json, bool whole)
{
    ngx_http_sandbox_record_result(data, json, whole);
}


static void
ngx_http_sandbox_stream_init(void *data, sb_str_t id)
{
    ngx_http_sandbox_ctx_t  *ctx = data;

    if (ctx->command_id.len || id.len == 0 || id.len > 256) {
        return;
    }

    ctx->command_id.data = ngx_pnalloc(ctx->request->pool, id.len);

    if (ctx->command_id.data) {
        ngx_memcpy(ctx->command_id.data, id.data, id.len);
        ctx->command_id.len = id.len;
        ngx_http_sandbox_record_command(ctx);
    }
}
