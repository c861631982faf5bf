/*
 * Output of commands on its way to the helper: OUTPUT frames of pieces of at
 * most 16 KiB.  What one call of the body filter decodes goes as one frame.
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_secret.h"


/* pieces of one stream that came one after another */

typedef struct {
    ngx_http_sandbox_ctx_t  *ctx;       /* whose; NULL: nothing is open */
    ngx_uint_t               fd;
    size_t                   kept;      /* of what came before, in piece */
    size_t                   len;       /* in piece, with that */
    size_t                   bytes;     /* in the frame */
    u_char                   piece[SB_SECRET_MAX + NGX_HTTP_SANDBOX_PIECE];
} ngx_http_sandbox_output_t;


static void ngx_http_sandbox_output_open(ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_output_load(ngx_uint_t fd);
static void ngx_http_sandbox_output_piece(ngx_uint_t last);
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
        ngx_http_sandbox_output_open(ctx);
        ngx_http_sandbox_output_load(fd);
    }

    while (n) {

        if (o->fd != fd || o->len == NGX_HTTP_SANDBOX_PIECE) {
            ngx_http_sandbox_output_piece(0);
            ngx_http_sandbox_output_load(fd);
        }

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
ngx_http_sandbox_output_open(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_output.ctx = ctx;
    ngx_http_sandbox_output.bytes = 0;

    sb_frame_begin(&ngx_http_sandbox_output_writer,
                   ngx_http_sandbox_output_frame,
                   sizeof(ngx_http_sandbox_output_frame), SB_F_OUTPUT, 0, 0,
                   ctx->id, sb_now_us());
}


/* What is to come is of this stream. */

static void
ngx_http_sandbox_output_load(ngx_uint_t fd)
{
    ngx_http_sandbox_output_t  *o;

    o = &ngx_http_sandbox_output;

    o->fd = fd;
    o->kept = ngx_http_sandbox_secret_begin(o->ctx, o->ctx->tails[fd],
                                            o->piece);
    o->len = o->kept;
}


static void
ngx_http_sandbox_output_piece(ngx_uint_t last)
{
    size_t                      from, n;
    sb_frame_writer_t          *w;
    ngx_http_sandbox_ctx_t     *ctx;
    ngx_http_sandbox_output_t  *o;

    o = &ngx_http_sandbox_output;
    w = &ngx_http_sandbox_output_writer;

    if (o->len == o->kept && !last) {
        return;
    }

    ctx = o->ctx;

    n = ngx_http_sandbox_secret_end(ctx, &ctx->tails[o->fd], o->piece, o->len,
                                    last, &from);

    o->len = 0;
    o->kept = 0;

    if (n == 0) {
        return;
    }

    if ((size_t) (w->end - w->pos) < n + 64) {
        ngx_http_sandbox_output_send();
        ngx_http_sandbox_output_open(ctx);
    }

    sb_frame_put_u64(w, SB_T_STREAM, o->fd);
    sb_frame_put(w, SB_T_DATA, sb_str(o->piece + from, n));
    o->bytes += n;
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
        ngx_http_sandbox_output.ctx->output_lost += ngx_http_sandbox_output.bytes;
        ngx_http_sandbox_metric_add(OUTPUT_LOST, ngx_http_sandbox_output.bytes);
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

    ngx_http_sandbox_output_piece(0);
    ngx_http_sandbox_output_send();

    o->ctx = NULL;
}


void
ngx_http_sandbox_record_last(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                  fd;
    ngx_http_sandbox_output_t  *o;

    o = &ngx_http_sandbox_output;

    ngx_http_sandbox_record_flush(ctx);

    for (fd = 0; fd < 2; fd++) {

        if (ctx->tails[fd] == NULL
            || ctx->tails[fd]->len == ctx->tails[fd]->shown)
        {
            continue;
        }

        ngx_http_sandbox_record_flush(o->ctx);

        ngx_http_sandbox_output_open(ctx);
        ngx_http_sandbox_output_load(fd);
        ngx_http_sandbox_output_piece(1);
        ngx_http_sandbox_record_flush(ctx);
    }
}
