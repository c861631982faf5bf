/*
 * execd's terminal on record: what passes the tunnel of a pty.open goes to the
 * helper as OUTPUT frames (docs/frames.md, "Terminals"), each as soon as it has
 * passed.  Nothing is kept here but typed lines that wait for their echo
 * (lib/echo.h).
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_secret.h"


/* of a note in the capture limit, beside its text; so many are free */
#define NGX_HTTP_SANDBOX_PTY_NOTE   32
#define NGX_HTTP_SANDBOX_PTY_NOTES  8


struct ngx_http_sandbox_pty_s {
    sb_pty_t                  pty;
    ngx_uint_t                notes;
    uint64_t                  next[SB_STREAM_NOTE];     /* offset, by stream */
};


static void ngx_http_sandbox_pty_output(void *data, unsigned stream,
    uint64_t at, const char *p, size_t n);
static void ngx_http_sandbox_pty_replay(void *data, uint64_t offset,
    const char *p, size_t n);
static void ngx_http_sandbox_pty_input(void *data, const char *p, size_t n);
static void ngx_http_sandbox_pty_note(void *data, char what, sb_str_t text);
static size_t ngx_http_sandbox_pty_room(ngx_http_sandbox_ctx_t *ctx, size_t n);
static void ngx_http_sandbox_pty_text(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t stream, uint64_t offset, const char *p, size_t n);
static void ngx_http_sandbox_pty_rest(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t stream);
static void ngx_http_sandbox_pty_put(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t stream, uint64_t offset, u_char *p, size_t n);
static void ngx_http_sandbox_pty_send(void);


/* the frame being made, between two flushes */

static ngx_http_sandbox_ctx_t  *ngx_http_sandbox_pty_ctx;
static size_t                   ngx_http_sandbox_pty_bytes;     /* of DATA */
static sb_frame_writer_t        ngx_http_sandbox_pty_writer;
static u_char                   ngx_http_sandbox_pty_frame[
                                    4 * NGX_HTTP_SANDBOX_PIECE];
static u_char                   ngx_http_sandbox_pty_piece[
                                    NGX_HTTP_SANDBOX_PIECE];


static void
ngx_http_sandbox_pty_cleanup(void *data)
{
    ngx_http_sandbox_pty_t  *p = data;

    /* lines that waited: they may be secrets */
    ngx_memzero(&p->pty.echo, sizeof(sb_echo_t));
}


ngx_int_t
ngx_http_sandbox_pty_open(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_pool_cleanup_t           *cln;
    ngx_http_sandbox_pty_t       *p;
    ngx_http_sandbox_tunnel_t    *t;
    ngx_http_sandbox_loc_conf_t  *lcf;

    if (!ctx->begun) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_sandbox_pty_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_sandbox_pty_cleanup;

    p = cln->data;
    ngx_memzero(p, sizeof(ngx_http_sandbox_pty_t));

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    p->pty.output = ngx_http_sandbox_pty_output;
    p->pty.replay = ngx_http_sandbox_pty_replay;
    p->pty.input = ngx_http_sandbox_pty_input;
    p->pty.note = ngx_http_sandbox_pty_note;
    p->pty.ctx = ctx;
    p->pty.keep = lcf->record_input;

    t = ctx->tunnel;
    t->pty = p;

    sb_pty_init(&p->pty, &t->from_upstream, &t->from_client);

    ngx_http_sandbox_pty_note(ctx, SB_PTY_ATTACH, ctx->route.arg);
    ngx_http_sandbox_pty_flush(ctx);

    return NGX_OK;
}


void
ngx_http_sandbox_pty_now(ngx_http_sandbox_pty_t *p)
{
    p->pty.now_us = sb_now_us();
}


void
ngx_http_sandbox_pty_flush(ngx_http_sandbox_ctx_t *ctx)
{
    if (ctx && ngx_http_sandbox_pty_ctx == ctx) {
        ngx_http_sandbox_pty_send();
        ngx_http_sandbox_pty_ctx = NULL;
    }
}


void
ngx_http_sandbox_pty_end(ngx_http_sandbox_ctx_t *ctx)
{
    sb_pty_t    *pty;
    ngx_uint_t   stream;

    pty = &ctx->tunnel->pty->pty;

    sb_pty_end(pty);

    for (stream = 0; stream < SB_STREAM_NOTE; stream++) {
        ngx_http_sandbox_pty_rest(ctx, stream);
    }

    ngx_http_sandbox_pty_flush(ctx);

    if (pty->keep == SB_PTY_HIDDEN && pty->echo.hidden_bytes) {
        ngx_http_sandbox_metric_add(INPUT_HIDDEN, pty->echo.hidden_bytes);
    }

    if (pty->typed_unread) {
        ngx_http_sandbox_metric_add(INPUT_UNREAD, pty->typed_unread);
    }
}


/* Members of the result, in canonical order, with a comma behind each. */

u_char *
ngx_http_sandbox_pty_result(ngx_http_sandbox_pty_t *p, u_char *last)
{
    sb_pty_t  *pty;

    pty = &p->pty;

    last = ngx_sprintf(last, "\"input_bytes\":%uL,", pty->typed);

    if (pty->keep == SB_PTY_HIDDEN) {
        last = ngx_sprintf(last, "\"input_hidden_bytes\":%uL,",
                           pty->echo.hidden_bytes);
    }

    if (pty->typed_unread) {
        last = ngx_sprintf(last, "\"input_unread_messages\":%uL,",
                           pty->typed_unread);
    }

    if (pty->replayed) {
        last = ngx_sprintf(last, "\"replayed_bytes\":%uL,", pty->replayed);
    }

    return last;
}


static void
ngx_http_sandbox_pty_output(void *data, unsigned stream, uint64_t at,
    const char *p, size_t n)
{
    ngx_http_sandbox_ctx_t *ctx = data;

    size_t  size;

    ctx->std_total[stream] += n;

    size = ngx_http_sandbox_pty_room(ctx, n);

    ngx_http_sandbox_pty_text(ctx, stream, at, p, size);
}


static void
ngx_http_sandbox_pty_replay(void *data, uint64_t offset, const char *p,
    size_t n)
{
    ngx_http_sandbox_ctx_t *ctx = data;

    /* the helper knows what of it is new, and counts that */

    if (offset != ctx->tunnel->pty->next[SB_STREAM_REPLAY]) {
        ngx_http_sandbox_pty_rest(ctx, SB_STREAM_REPLAY);
    }

    ngx_http_sandbox_pty_text(ctx, SB_STREAM_REPLAY, offset, p,
                              ngx_http_sandbox_pty_room(ctx, n));
}


static void
ngx_http_sandbox_pty_input(void *data, const char *p, size_t n)
{
    ngx_http_sandbox_ctx_t *ctx = data;

    ngx_http_sandbox_pty_text(ctx, SB_STREAM_INPUT, 0, p,
                              ngx_http_sandbox_pty_room(ctx, n));
}


static void
ngx_http_sandbox_pty_note(void *data, char what, sb_str_t text)
{
    ngx_http_sandbox_ctx_t *ctx = data;

    size_t  n;
    u_char  note[SB_ECHO_LINE + 1];

    n = ngx_min(text.len, SB_ECHO_LINE) + 1;

    if (ctx->tunnel->pty->notes++ >= NGX_HTTP_SANDBOX_PTY_NOTES
        && ngx_http_sandbox_pty_room(ctx, n + NGX_HTTP_SANDBOX_PTY_NOTE)
           != n + NGX_HTTP_SANDBOX_PTY_NOTE)
    {
        return;
    }

    note[0] = (u_char) what;
    ngx_memcpy(note + 1, text.data, n - 1);

    ngx_http_sandbox_secret_mask(ctx, note + 1, n - 1);

    if (what == SB_PTY_COMMAND) {
        ngx_http_sandbox_secret_named(ctx, note + 1, n - 1);
    }

    ngx_http_sandbox_pty_put(ctx, SB_STREAM_NOTE, 0, note, n);
}


/* How much of n bytes the capture limit leaves room for; what is over is
 * counted. */

static size_t
ngx_http_sandbox_pty_room(ngx_http_sandbox_ctx_t *ctx, size_t n)
{
    off_t                         room;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_sandbox_module);

    if (lcf->capture_limit) {

        room = lcf->capture_limit - ctx->captured;

        if ((off_t) n > room) {
            ctx->output_dropped += n - room;
            ctx->captured = lcf->capture_limit;
            return (size_t) room;
        }
    }

    ctx->captured += n;

    return n;
}


/* The end of what has come is kept back while it may go on as a credential. */

static void
ngx_http_sandbox_pty_text(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t stream,
    uint64_t offset, const char *p, size_t n)
{
    size_t    kept, size, from;
    u_char   *piece;

    piece = ngx_http_sandbox_pty_piece;

    for ( /* void */ ; n; n -= size, p += size, offset += size) {

        kept = ngx_http_sandbox_secret_begin(ctx, ctx->tails[stream], piece);

        size = ngx_min(n, NGX_HTTP_SANDBOX_PIECE - kept);
        ngx_memcpy(piece + kept, p, size);

        ctx->tunnel->pty->next[stream] = offset + size;

        size = ngx_http_sandbox_secret_end(ctx, &ctx->tails[stream], piece,
                                           kept + size, 0, &from);

        ngx_http_sandbox_pty_put(ctx, stream, offset - kept + from,
                                 piece + from, size);

        size = ctx->tunnel->pty->next[stream] - offset;
    }
}


static void
ngx_http_sandbox_pty_rest(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t stream)
{
    size_t    kept, size, from;
    u_char   *piece;

    piece = ngx_http_sandbox_pty_piece;

    kept = ngx_http_sandbox_secret_begin(ctx, ctx->tails[stream], piece);

    if (kept) {
        size = ngx_http_sandbox_secret_end(ctx, &ctx->tails[stream], piece,
                                           kept, 1, &from);

        ngx_http_sandbox_pty_put(ctx, stream,
                              ctx->tunnel->pty->next[stream] - kept + from,
                              piece + from, size);
    }
}


static void
ngx_http_sandbox_pty_put(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t stream,
    uint64_t offset, u_char *p, size_t n)
{
    sb_frame_writer_t  *w;

    w = &ngx_http_sandbox_pty_writer;

    if (n == 0) {
        return;
    }

    if (ngx_http_sandbox_pty_ctx != ctx
        || (size_t) (w->end - w->pos) < n + 64)
    {
        if (ngx_http_sandbox_pty_ctx) {
            ngx_http_sandbox_pty_send();
        }

        ngx_http_sandbox_pty_ctx = ctx;
        ngx_http_sandbox_pty_bytes = 0;

        sb_frame_begin(w, ngx_http_sandbox_pty_frame,
                       sizeof(ngx_http_sandbox_pty_frame), SB_F_OUTPUT, 0,
                       0, ctx->id, sb_now_us());
    }

    sb_frame_put_u64(w, SB_T_STREAM, stream);

    if (stream != SB_STREAM_INPUT && stream != SB_STREAM_NOTE) {
        sb_frame_put_u64(w, SB_T_OFFSET, offset);
    }

    sb_frame_put(w, SB_T_DATA, sb_str(p, n));
    ngx_http_sandbox_pty_bytes += n;
}


static void
ngx_http_sandbox_pty_send(void)
{
    size_t  len;

    len = sb_frame_end(&ngx_http_sandbox_pty_writer);

    if (len > SB_FRAME_HEAD
        && ngx_http_sandbox_helper_send(ngx_http_sandbox_pty_frame, len, 0)
           == 0)
    {
        ngx_http_sandbox_pty_ctx->output_lost += ngx_http_sandbox_pty_bytes;
        ngx_http_sandbox_metric_add(OUTPUT_LOST, ngx_http_sandbox_pty_bytes);
    }
}
