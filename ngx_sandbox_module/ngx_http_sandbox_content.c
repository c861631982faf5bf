/*
 * Contents of files on their way to the helper: CONTENT frames, copied as the
 * bytes pass.  Uploads and downloads are read by others already; what is kept
 * of each file is its first SB_CONTENT_MAX bytes, and of a longer one the helper
 * keeps nothing.  They take at most half of the queue: what records need comes
 * first.  A hole makes a content unavailable and is told in its record; so does
 * a credential in it (ngx_http_sandbox_secret.h): masked it would be another
 * content, so that nothing of it is kept.
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_secret.h"


/* bytes of one file that came one after another */

typedef struct {
    ngx_http_sandbox_ctx_t  *ctx;       /* whose; NULL: nothing is open */
    ngx_uint_t               kind;
    size_t                   file;
    uint64_t                 offset;
    size_t                   len;
    u_char                   piece[4 * NGX_HTTP_SANDBOX_PIECE];
} ngx_http_sandbox_content_t;


static void ngx_http_sandbox_content_rest(ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_content_send(ngx_uint_t last);


static ngx_http_sandbox_content_t  ngx_http_sandbox_content;
static u_char                      ngx_http_sandbox_content_frame[
                                       4 * NGX_HTTP_SANDBOX_PIECE + 256];


ngx_uint_t
ngx_http_sandbox_content_wanted(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    /* a content is known by its digest */
    return ctx->begun && lcf->digest
           && lcf->versions != NGX_HTTP_SANDBOX_VERSIONS_OFF;
}


void
ngx_http_sandbox_content_add(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t kind,
    size_t file, uint64_t offset, const char *p, size_t n)
{
    size_t                       size;
    ngx_http_sandbox_content_t  *c;

    if (ctx->content_lost || offset >= SB_CONTENT_MAX
        || file >= SB_REQUEST_FILES_RECORDED)
    {
        return;
    }

    if (n > SB_CONTENT_MAX - offset) {
        n = SB_CONTENT_MAX - offset;
    }

    c = &ngx_http_sandbox_content;

    while (n) {

        if (c->ctx && (c->ctx != ctx || c->file != file || c->kind != kind
                       || c->offset + c->len != offset
                       || c->len == sizeof(c->piece)))
        {
            ngx_http_sandbox_content_send(0);
        }

        if (c->ctx == NULL) {

            if (ctx->content_file != file || ctx->content_kind != kind
                || ctx->content_end != offset)
            {
                ngx_http_sandbox_content_rest(ctx);
            }

            c->ctx = ctx;
            c->kind = kind;
            c->file = file;
            c->len = ngx_http_sandbox_secret_begin(ctx, ctx->content_tail,
                                                   c->piece);
            c->offset = offset - c->len;
        }

        size = ngx_min(n, sizeof(c->piece) - c->len);

        ngx_memcpy(c->piece + c->len, p, size);
        c->len += size;
        p += size;
        n -= size;
        offset += size;
    }
}


/* What was kept back at the end of a piece, when nothing follows on it. */

static void
ngx_http_sandbox_content_rest(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_content_t  *c;

    c = &ngx_http_sandbox_content;

    /* behind the bound it may have gone on */

    if (ctx->content_tail == NULL || ctx->content_tail->len == 0
        || ctx->content_end == SB_CONTENT_MAX)
    {
        return;
    }

    c->ctx = ctx;
    c->kind = ctx->content_kind;
    c->file = ctx->content_file;
    c->len = ngx_http_sandbox_secret_begin(ctx, ctx->content_tail, c->piece);
    c->offset = ctx->content_end - c->len;

    ngx_http_sandbox_content_send(1);
}


static void
ngx_http_sandbox_content_send(ngx_uint_t last)
{
    size_t                       len, from, redacted;
    sb_frame_writer_t            w;
    ngx_http_sandbox_ctx_t      *ctx;
    ngx_http_sandbox_content_t  *c;

    c = &ngx_http_sandbox_content;
    ctx = c->ctx;
    c->ctx = NULL;

    if (ctx->content_lost) {
        return;
    }

    ctx->content_kind = c->kind;
    ctx->content_file = c->file;
    ctx->content_end = c->offset + c->len;

    redacted = ctx->redacted;
    len = ngx_http_sandbox_secret_end(ctx, &ctx->content_tail, c->piece, c->len,
                                      last, &from);

    if (ctx->redacted != redacted) {
        ctx->content_lost = 1;
        return;
    }

    if (len == 0) {
        return;
    }

    sb_frame_begin(&w, ngx_http_sandbox_content_frame,
                   sizeof(ngx_http_sandbox_content_frame), SB_F_CONTENT, 0, 0,
                   ctx->id, sb_now_us());
    sb_frame_put_u64(&w, SB_T_FILE_N, c->file);

    if (c->kind != SB_CONTENT_AFTER) {
        sb_frame_put_u64(&w, SB_T_FILE_KIND, c->kind);
    }

    sb_frame_put_u64(&w, SB_T_FILE_OFFSET, c->offset + from);
    sb_frame_put(&w, SB_T_DATA, sb_str(c->piece + from, len));

    len = sb_frame_end(&w);

    if (ngx_http_sandbox_helper_send(ngx_http_sandbox_content_frame, len,
                                     NGX_HTTP_SANDBOX_QUEUE_HALF)
        == 0)
    {
        /* the rest of it would be of no use */
        ctx->content_lost = 1;
        ngx_http_sandbox_metric_add(CONTENTS_LOST, 1);
    }
}


void
ngx_http_sandbox_content_void(ngx_http_sandbox_ctx_t *ctx, size_t file)
{
    size_t             len;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, ngx_http_sandbox_content_frame,
                   sizeof(ngx_http_sandbox_content_frame), SB_F_CONTENT, 0, 0,
                   ctx->id, sb_now_us());
    sb_frame_put_u64(&w, SB_T_FILE_N, file);
    sb_frame_put_u64(&w, SB_T_FILE_KIND, SB_CONTENT_VOID);
    sb_frame_put_u64(&w, SB_T_FILE_OFFSET, 0);
    sb_frame_put(&w, SB_T_DATA, sb_str("", 0));

    len = sb_frame_end(&w);

    (void) ngx_http_sandbox_helper_send(ngx_http_sandbox_content_frame, len,
                                        NGX_HTTP_SANDBOX_QUEUE_ALWAYS);
}


void
ngx_http_sandbox_content_flush(ngx_http_sandbox_ctx_t *ctx)
{
    if (ngx_http_sandbox_content.ctx == ctx) {
        ngx_http_sandbox_content_send(0);
    }
}


void
ngx_http_sandbox_content_done(ngx_http_sandbox_ctx_t *ctx)
{
    if (ngx_http_sandbox_content.ctx) {
        ngx_http_sandbox_content_send(ngx_http_sandbox_content.ctx == ctx);
    }

    ngx_http_sandbox_content_rest(ctx);
}


void
ngx_http_sandbox_content_tap(void *data, size_t file, uint64_t offset,
    const char *p, size_t n)
{
    ngx_http_sandbox_content_add(data, SB_CONTENT_AFTER, file, offset, p, n);
}
