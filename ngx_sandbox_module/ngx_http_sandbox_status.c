/* How an operation ended, and why (design 5). */


#include "ngx_http_sandbox.h"


static const char *ngx_http_sandbox_cut(ngx_http_sandbox_ctx_t *ctx,
    ngx_uint_t gone);


/* Status and cause by the rules of design 5. */

void
ngx_http_sandbox_put_status(sb_frame_writer_t *w, ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                  gone, status;
    const char                 *text, *reason;
    ngx_http_upstream_t        *u;
    const sb_stream_facts_t    *s;
    ngx_http_sandbox_tunnel_t  *t;

    u = r->upstream;
    status = r->headers_out.status;
    reason = ctx->reason;
    text = "succeeded";

    gone = r->connection->error || r->connection->timedout
           || status == NGX_HTTP_CLIENT_CLOSED_REQUEST || status == 0;

    if (ctx->tunnel && (r->connection->read->eof || r->connection->read->error))
    {
        gone = 1;
    }

    if (ctx->refused || ctx->error_code.len) {
        text = status == NGX_HTTP_GATEWAY_TIME_OUT ? "timeout" : "failed";

        if (ctx->refused) {

            if (reason == NULL) {
                reason = "denied";
            }

        } else if (status == NGX_HTTP_GATEWAY_TIME_OUT) {
            reason = "upstream_timeout";

        } else if (status == NGX_HTTP_BAD_GATEWAY) {
            reason = "upstream_unavailable";
        }

    } else if (ctx->tunnel) {

        t = ctx->tunnel;

        if (t->from_upstream.has_exit) {
            sb_frame_put_u64(w, SB_T_EXIT_CODE, (uint64_t) (int64_t)
                             t->from_upstream.exit_code);

            text = t->from_upstream.exit_code ? "failed" : "succeeded";

        } else if (t->from_upstream.close_code == 4001) {
            text = "cancelled";
            reason = "taken_over";

        } else if (t->from_upstream.closed && !t->from_client.closed
                   && t->from_upstream.close_code > 1001
                   && t->from_upstream.close_code != 1005)
        {
            /* the server proxy reports a refused handshake like this */
            text = "failed";
            reason = "upstream_closed";

        } else if (!t->from_upstream.closed && !t->from_client.closed) {
            text = "unknown";
            reason = ngx_http_sandbox_cut(ctx, gone);
        }

    } else if (ctx->upstream_status == 0) {

        /* nobody has answered */

        if (gone) {
            text = "cancelled";
            reason = ctx->judged && r->request_body && r->request_body->rest > 0
                     ? "client_aborted" : "client_disconnected";

        } else if (status >= NGX_HTTP_BAD_REQUEST) {
            text = status == NGX_HTTP_GATEWAY_TIME_OUT ? "timeout" : "failed";
        }

    } else if (ctx->upstream_status >= NGX_HTTP_BAD_REQUEST) {
        text = ctx->upstream_status == NGX_HTTP_GATEWAY_TIME_OUT ? "timeout"
                                                                 : "failed";

    } else if (ctx->stream) {

        s = sb_stream_facts(ctx->stream);

        switch (s->end) {

        case SB_STREAM_COMPLETE:

            if (ctx->facts && ctx->facts->background) {
                sb_frame_put(w, SB_T_DETACHED, sb_lit(""));
                break;
            }

            sb_frame_put_u64(w, SB_T_EXIT_CODE, 0);
            break;

        case SB_STREAM_FAILED:

            text = "failed";

            if (s->has_exit_code) {
                sb_frame_put_u64(w, SB_T_EXIT_CODE,
                                 (uint64_t) (int64_t) s->exit_code);
            }

            if (s->terminated) {
                text = "cancelled";
                reason = "interrupted";

            } else if (s->killed && ctx->facts && ctx->facts->timeout_ms > 0) {
                text = "timeout";
                reason = "command_timeout";
            }

            break;

        case SB_STREAM_RUNTIME:
            text = "failed";
            reason = "runtime_error";
            break;

        default: /* SB_STREAM_OPEN */

            text = "unknown";
            reason = ngx_http_sandbox_cut(ctx, gone);

            if (gone && ctx->command_id.len
                && sb_op_index(ctx->op) == SB_OP_COMMAND_EXECUTE)
            {
                /* execd goes on without the client */
                sb_frame_put(w, SB_T_DETACHED, sb_lit(""));
            }
        }

    } else if (!ctx->last && !r->header_only
               && ctx->upstream_status != NGX_HTTP_NO_CONTENT
               && ctx->upstream_status != NGX_HTTP_NOT_MODIFIED)
    {
        text = "unknown";
        reason = ngx_http_sandbox_cut(ctx, gone);

    } else if (u && u->headers_in.content_length_n > ctx->bytes_out
               && !r->header_only && !ctx->rewrite)
    {
        text = "unknown";
        reason = ngx_http_sandbox_cut(ctx, gone);
    }

    if (ngx_exiting && r->connection->close && reason
        && ngx_strncmp(reason, "client_", 7) == 0)
    {
        /* it is we who have gone: worker_shutdown_timeout is over */
        text = "unknown";
        reason = "worker_shutdown";
    }

    ctx->status = text;

    ngx_http_sandbox_put_text(w, SB_T_STATUS, text);

    if (reason) {
        ngx_http_sandbox_put_text(w, SB_T_REASON, reason);
    }

    if (status == 0) {
        status = NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    sb_frame_put_u64(w, SB_T_HTTP_STATUS, status);

    if (ctx->upstream_status) {
        sb_frame_put_u64(w, SB_T_UPSTREAM_STATUS, ctx->upstream_status);
    }
}


/* Who ended an answer before its end. */

static const char *
ngx_http_sandbox_cut(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t gone)
{
    return gone ? "client_disconnected"
           : ctx->upstream_timedout ? "upstream_timeout"
           : "upstream_cut";
}
