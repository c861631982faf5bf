/*
 * Request bodies: the JSON that is read before it is forwarded, and the tap of
 * what streams through.
 */


#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_policy.h"
#include "ngx_http_sandbox_spool.h"


static void ngx_http_sandbox_body_ready(ngx_http_request_t *r);
static void ngx_http_sandbox_upload_ready(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_upload_refused(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_rc_t rc);


ngx_http_request_body_filter_pt  ngx_http_sandbox_next_request_body_filter;


ngx_int_t
ngx_http_sandbox_read_body(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_int_t  rc;

    ctx->body_started = 1;

    /* one piece in memory is wanted, whatever client_body_buffer_size says */
    r->request_body_in_single_buf = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_sandbox_body_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


ngx_int_t
ngx_http_sandbox_read_upload(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_sandbox_upload_start(r, ctx);

    if (rc == NGX_DECLINED) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "The boundary in Content-Type can be "
                                       "read in more than one way.", NULL);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_sandbox_spool_upload(r, ctx);
}


ngx_int_t
ngx_http_sandbox_spool_upload(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_int_t  rc;

    ctx->body_started = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_sandbox_upload_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


static void
ngx_http_sandbox_upload_ready(ngx_http_request_t *r)
{
    ngx_http_sandbox_ctx_t  *ctx;

    ctx = ngx_http_sandbox_get_ctx(r);

    ctx->body_done = 1;

    r->preserve_body = 1;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


static void
ngx_http_sandbox_body_ready(ngx_http_request_t *r)
{
    sb_rc_t                       rc;
    sb_str_t                      body;
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    ctx = ngx_http_sandbox_get_ctx(r);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    ctx->body_done = 1;

    r->preserve_body = 1;
    r->write_event_handler = ngx_http_core_run_phases;

    if (!ctx->too_large) {

        if (ngx_http_sandbox_body_text(r, &body) != NGX_OK
            || ngx_http_sandbox_read_facts(r, ctx, body, &rc) != NGX_OK)
        {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        if (rc == SB_OK) {

            if (ctx->facts->op != ctx->op) {
                /* such as a shell command that came by /code */
                ctx->op = ctx->facts->op;
                ctx->mode = lcf->modes[sb_op_index(ctx->op)];

                if (!ctx->begun && !ctx->lost) {
                    /* what it seemed to be is not recorded, what it is may be */
                    ctx->admitted = 0;
                }
            }

            if (ngx_http_sandbox_record_facts(r, ctx) != NGX_OK) {
                ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
                return;
            }

            if (sb_op_index(ctx->op) == SB_OP_FILE_REPLACE
                && body.len <= SB_CONTENT_MAX
                && ngx_http_sandbox_content_wanted(r, ctx))
            {
                /* what comes of it is worked out where the text is held */
                ngx_http_sandbox_content_add(ctx, SB_CONTENT_EDIT, 0, 0,
                                             body.data, body.len);
                ngx_http_sandbox_content_done(ctx);
            }
        }
    }

    ngx_http_core_run_phases(r);
}


/* The body as one slice.  It is at most sandbox_body_limit long: the request
 * body filter sees to that. */

ngx_int_t
ngx_http_sandbox_body_text(ngx_http_request_t *r, sb_str_t *body)
{
    u_char       *p;
    size_t        len;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    body->data = "";
    body->len = 0;

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return NGX_OK;
    }

    cl = r->request_body->bufs;

    if (cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
        body->data = (const char *) cl->buf->pos;
        body->len = cl->buf->last - cl->buf->pos;
        return NGX_OK;
    }

    len = 0;

    for ( /* void */ ; cl; cl = cl->next) {
        len += ngx_buf_size(cl->buf);
    }

    p = ngx_pnalloc(r->pool, len ? len : 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    body->data = (const char *) p;
    body->len = len;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            p = ngx_copy(p, b->pos, b->last - b->pos);
            continue;
        }

        if (!b->in_file) {
            continue;
        }

        /* only when client_body_in_file_only is on or the buffer is small:
         * the page cache holds what nginx has just written */

        len = (size_t) (b->file_last - b->file_pos);
        n = ngx_read_file(b->file, p, len, b->file_pos);

        if (n != (ssize_t) len) {
            return NGX_ERROR;
        }

        p += n;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_read_facts(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    sb_str_t body, sb_rc_t *rc)
{
    if (ctx->facts == NULL) {
        ctx->facts = ngx_pcalloc(r->pool, sizeof(sb_request_t));
        if (ctx->facts == NULL) {
            return NGX_ERROR;
        }
    }

    /* what a body makes of an operation may have to be recorded */

    if (ctx->mode == NGX_HTTP_SANDBOX_OFF && !(ctx->op->flags & SB_OPF_JSON)) {
        *rc = sb_request_judge(ctx->facts, &ctx->route);

    } else {
        *rc = sb_request_read(ctx->facts, &ctx->route, body);
    }

    if (*rc == SB_NOMEM) {
        return NGX_ERROR;
    }

    if (*rc != SB_OK && ctx->facts->reason == NULL) {
        ctx->facts->reason = "The request can be read in more than one way.";
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_upload_start(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    sb_rc_t                       rc;
    sb_str_t                      boundary;
    ngx_str_t                     type;
    unsigned                      asks;
    ngx_uint_t                    i;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;
    sb_multipart_limits_t         limits;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (ctx->multipart || r->headers_in.content_type == NULL
        || (ctx->mode == NGX_HTTP_SANDBOX_OFF && lcf->policy == NULL
            && !lcf->locks))
    {
        return NGX_OK;
    }

    /* of several the server proxy passes on the last, we would read the
     * first */

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (&h[i] != r->headers_in.content_type
            && ngx_http_sandbox_header_is(&h[i], "content-type"))
        {
            return NGX_DECLINED;
        }
    }

    type = r->headers_in.content_type->value;

    rc = sb_multipart_boundary(ngx_http_sandbox_str(&type), &boundary);

    if (rc == SB_AMBIGUOUS) {
        return NGX_DECLINED;
    }

    if (rc != SB_OK) {
        /* execd refuses it as well; the record tells */
        ctx->multipart_bad = 1;
        return NGX_OK;
    }

    ctx->digests = lcf->digest;

    ngx_memzero(&limits, sizeof(sb_multipart_limits_t));
    limits.no_digest = !lcf->digest;

    if (lcf->policy) {
        asks = sb_policy_asks(lcf->policy, ctx->op);

        limits.scan = asks & SB_POLICY_CONTENT;
        limits.sniff = asks & SB_POLICY_ARCHIVE;
    }

    ctx->multipart = sb_multipart_new(boundary, &limits);
    if (ctx->multipart == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_sandbox_content_wanted(r, ctx)) {
        sb_multipart_tap(ctx->multipart, ngx_http_sandbox_content_tap, ctx);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_request_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    size_t                        n;
    sb_rc_t                       rc;
    ngx_int_t                     next;
    ngx_buf_t                    *b;
    ngx_chain_t                  *cl;
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_http_sandbox_loc_conf_t  *lcf;

    ctx = r == r->main ? ngx_http_sandbox_get_ctx(r) : NULL;

    if (ctx == NULL) {
        return ngx_http_sandbox_next_request_body_filter(r, in);
    }

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;

        /* the last one of a chunked body is a bare flag without memory */

        n = ngx_buf_in_memory(b) ? b->last - b->pos : 0;
        ctx->bytes_in += n;

        if (ctx->body_started && !ctx->body_done && ctx->multipart == NULL) {

            lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

            if (ctx->bytes_in > (off_t) lcf->body_limit) {
                ctx->too_large = 1;
                return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
            }
        }

        if (ctx->multipart == NULL || (n == 0 && !b->last_buf)) {
            continue;
        }

        if (ctx->multipart_bad) {
            return NGX_HTTP_BAD_REQUEST;
        }

        if (ctx->spool_full
            || (n && ((ctx->body_started && !ctx->body_done) || ctx->spooling)
                && ngx_http_sandbox_spool_take(r, ctx, n) != NGX_OK))
        {
            return NGX_HTTP_SERVICE_UNAVAILABLE;
        }

        rc = n ? sb_multipart_feed(ctx->multipart, (const char *) b->pos, n)
               : SB_AGAIN;

        if (b->last_buf && (rc == SB_OK || rc == SB_AGAIN)) {
            rc = sb_multipart_finish(ctx->multipart);
        }

        ngx_http_sandbox_content_flush(ctx);

        if (rc != SB_OK && rc != SB_AGAIN) {
            return ngx_http_sandbox_upload_refused(r, ctx, rc);
        }

        if (rc == SB_AGAIN) {
            ngx_http_sandbox_record_path(ctx);
        }

        if (ctx->body_started && !ctx->body_done) {

            lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

            /* what was judged already is read for its locks alone, and its
             * verdict stands */

            next = lcf->policy && !ctx->policed
                   ? ngx_http_sandbox_policy_early(r, ctx, lcf) : NGX_OK;
            if (next != NGX_OK) {
                return next;
            }
        }
    }

    next = ngx_http_sandbox_next_request_body_filter(r, in);

    if (next == NGX_HTTP_INTERNAL_SERVER_ERROR) {

        /* the spool is full, or memory is short: neither is the client's fault
         * and both pass */

        ngx_str_set(&ctx->error_code, "GATEWAY_OVERLOADED");
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    return next;
}


/*
 * What we cannot read to its end execd might: it would write files that are
 * not on record.  The upstream request is broken off before its end, and execd
 * writes nothing before it has all of it.
 */

static ngx_int_t
ngx_http_sandbox_upload_refused(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_rc_t rc)
{
    ctx->multipart_bad = 1;

    if (rc == SB_NOMEM) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "sandbox %s: upload refused: %s", ctx->id_text,
                  sb_multipart_reason(ctx->multipart));

    ctx->reason = "denied";

    if (rc == SB_LIMIT) {
        ngx_str_set(&ctx->error_code, "GATEWAY_LIMIT_EXCEEDED");
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    ngx_str_set(&ctx->error_code, "GATEWAY_AMBIGUOUS_REQUEST");

    return NGX_HTTP_BAD_REQUEST;
}
