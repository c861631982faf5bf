/*
 * Output of commands on its way to the helper: OUTPUT frames of pieces of at
 * most 16 KiB.  What one call of the body filter decodes goes as one frame.
 */


#include "ngx_http_sandbox_metrics.h"


/* pieces of one stream that came one after another */

typedef struct {
    ngx_http_sandbox_ctx_t  *ctx;       /* whose; NULL: nothing is open */
    ngx_uint_t               fd;
    size_t                   len;       /* in piece */
    u_char                   piece[NGX_HTTP_SANDBOX_PIECE];
} ngx_http_sandbox_output_t;


static void ngx_http_sandbox_output_piece(void);
static void ngx_http_sandbox_output_send(void);


static sb_frame_writer_t          ngx_http_sandbox_output_writer;
static ngx_http_sandbox_output_t  ngx_http_sandbox_output;
static u_char                     ngx_http_sandbox_output_frame[
                                      8 * NGX_HTTP_SANDBOX_PIECE];


/* Output of a command, as decoded from the event stream. */

void
ngx_http_sandbox_record_output(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t fd,
    const char *p, size_t n)
{
    size_t                        size;
    off_t                         room;
    ngx_http_sandbox_output_t    *o;
    ngx_http_sandbox_loc_conf_t  *lcf;

    ctx->std_total[fd] += n;

    lcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_sandbox_module);

    if (lcf->capture_limit) {

        room = lcf->capture_limit - ctx->captured;

        if ((off_t) n > room) {
            size = sb_utf8_cut(sb_str(p, n), (size_t) room);

            ctx->output_dropped += n - size;
            ngx_http_sandbox_metric_add(OUTPUT_DROPPED, n - size);

            /* nothing behind a cut is kept, so that there is no hole */
            ctx->captured = lcf->capture_limit;
            n = size;

        } else {
            ctx->captured += n;
        }
    }

    if (n == 0 || !ctx->begun) {
        return;
    }

    o = &ngx_http_sandbox_output;

    if (o->ctx != ctx) {
        ngx_http_sandbox_record_flush(o->ctx);

        o->ctx = ctx;
        o->fd = fd;
        o->len = 0;

        sb_frame_begin(&ngx_http_sandbox_output_writer,
                       ngx_http_sandbox_output_frame,
                       sizeof(ngx_http_sandbox_output_frame), SB_F_OUTPUT, 0, 0,
                       ctx->id, sb_now_us());
    }

    while (n) {

        if (o->len && (o->fd != fd || o->len == NGX_HTTP_SANDBOX_PIECE)) {
            ngx_http_sandbox_output_piece();
        }

        o->fd = fd;

        size = ngx_min(n, NGX_HTTP_SANDBOX_PIECE - o->len);

        ngx_memcpy(o->piece + o->len, p, size);
        o->len += size;
        p += size;
        n -= size;
    }
}


/*
 * A result that is no JSON that a reader could take (cut, too deep, a text that
 * upstream garbled) is kept as a string, and so shown for what it is.
 */

void
ngx_http_sandbox_record_result(ngx_http_sandbox_ctx_t *ctx, sb_str_t json,
    ngx_uint_t whole)
{
    size_t                        mark;
    sb_rc_t                       rc;
    sb_buf_t                     *b;
    sb_jdoc_t                    *doc;
    ngx_http_sandbox_loc_conf_t  *lcf;

    static sb_json_limits_t       limits = { 32, NGX_HTTP_SANDBOX_RESULTS };

    if (!ctx->begun) {
        return;
    }

    lcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_sandbox_module);

    if (lcf->capture_limit
        && (off_t) json.len > lcf->capture_limit - ctx->captured)
    {
        ctx->results_dropped++;
        return;
    }

    b = &ctx->results;
    b->max = NGX_HTTP_SANDBOX_RESULTS;
    mark = b->len;

    doc = whole ? sb_jdoc_parse(json, &limits, NULL) : NULL;
    rc = mark ? sb_buf_add_c(b, ',') : SB_OK;

    if (rc == SB_OK) {
        rc = doc ? sb_buf_add_str(b, json)
                 : sb_json_write_str(b, sb_str(json.data,
                                               sb_utf8_cut(json, json.len)));
    }

    sb_jdoc_free(doc);

    if (rc != SB_OK) {
        b->len = mark;
        ctx->results_dropped++;
        return;
    }

    ctx->captured += json.len;
}


static void
ngx_http_sandbox_output_piece(void)
{
    sb_frame_writer_t          *w;
    ngx_http_sandbox_ctx_t     *ctx;
    ngx_http_sandbox_output_t  *o;

    o = &ngx_http_sandbox_output;
    w = &ngx_http_sandbox_output_writer;

    if ((size_t) (w->end - w->pos) < o->len + 64) {

        ctx = o->ctx;
        ngx_http_sandbox_output_send();

        sb_frame_begin(w, ngx_http_sandbox_output_frame,
                       sizeof(ngx_http_sandbox_output_frame), SB_F_OUTPUT, 0, 0,
                       ctx->id, sb_now_us());
    }

    sb_frame_put_u64(w, SB_T_STREAM, o->fd);
    sb_frame_put(w, SB_T_DATA, sb_str(o->piece, o->len));

    o->len = 0;
}


static void
ngx_http_sandbox_output_send(void)
{
    size_t  len;

    len = sb_frame_end(&ngx_http_sandbox_output_writer);

    if (len > SB_FRAME_HEAD
        && ngx_http_sandbox_helper_send(ngx_http_sandbox_output_frame, len, 0)
           == 0)
    {
        ngx_http_sandbox_output.ctx->output_lost += len - SB_FRAME_HEAD;
        ngx_http_sandbox_metric_add(OUTPUT_LOST, len - SB_FRAME_HEAD);
    }
}


void
ngx_http_sandbox_record_flush(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_output_t  *o;

    o = &ngx_http_sandbox_output;

    if (ctx == NULL || o->ctx != ctx) {
        return;
    }

    if (o->len) {
        ngx_http_sandbox_output_piece();
    }

    ngx_http_sandbox_output_send();

    o->ctx = NULL;
}
