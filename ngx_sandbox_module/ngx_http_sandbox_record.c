/*
 * The frames of one operation: BEGIN, FACTS, OUTPUT, END (lib/frame.h).  They
 * are built in one buffer of the worker and copied into the queue of the
 * helper's connection; nothing here allocates.
 */


#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_policy.h"
#include "ngx_http_sandbox_secret.h"


static void ngx_http_sandbox_open(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx, uint8_t type, uint8_t flags);
static void ngx_http_sandbox_put(sb_frame_writer_t *w, uint16_t tag,
    ngx_str_t *value);
static size_t ngx_http_sandbox_close(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_put_stated(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx, uint16_t tag, ngx_str_t *value);
static void ngx_http_sandbox_put_facts(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_put_restored(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_put_files(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_put_answer(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_put_stream(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx, const sb_stream_facts_t *s);
static void ngx_http_sandbox_json_number(sb_buf_t *b, sb_str_t key,
    uint64_t n);
static void ngx_http_sandbox_json_member(sb_buf_t *b, const char *key,
    const char *value);


static u_char    ngx_http_sandbox_scratch[NGX_HTTP_SANDBOX_SCRATCH];
static uint64_t  ngx_http_sandbox_opened_us;    /* the frame in it */


static void
ngx_http_sandbox_open(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx,
    uint8_t type, uint8_t flags)
{
    ngx_http_sandbox_opened_us = sb_now_us();

    sb_frame_begin(w, ngx_http_sandbox_scratch, NGX_HTTP_SANDBOX_SCRATCH, type,
                   flags, 0, ctx->id, ngx_http_sandbox_opened_us);
}


static void
ngx_http_sandbox_put(sb_frame_writer_t *w, uint16_t tag, ngx_str_t *value)
{
    if (value->len) {
        sb_frame_put(w, tag, ngx_http_sandbox_str(value));
    }
}


/* The frame is whole: nothing leaves with a credential in it. */

static size_t
ngx_http_sandbox_close(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx)
{
    size_t  len;

    len = sb_frame_end(w);

    if (len) {
        ngx_http_sandbox_secret_frame(ctx, ngx_http_sandbox_scratch, len);
    }

    return len;
}


/* A header that a client has written: nothing is kept of one with what looks
 * like a token, or has been one. */

static void
ngx_http_sandbox_put_stated(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx,
    uint16_t tag, ngx_str_t *value)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    static ngx_str_t  redacted = ngx_string("[redacted]");

    if (value->len == 0 || value->data == ctx->id_text) {
        /* nothing, or of our own making */
        ngx_http_sandbox_put(w, tag, value);
        return;
    }

    lcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_sandbox_module);

    if (ngx_http_sandbox_ours(lcf, value)) {
        ctx->redacted++;
        ngx_http_sandbox_metric_add(REDACTED, 1);
        value = &redacted;
    }

    ngx_http_sandbox_put(w, tag, value);
}


/* Whose history a record or a gap goes to: strangers, and what names no sandbox
 * in one way, write into none but the gateway's own. */

static sb_str_t
ngx_http_sandbox_record_sandbox(ngx_http_sandbox_ctx_t *ctx)
{
    return ctx->route_rc == SB_OK && ctx->authenticated ? ctx->route.sandbox
                                                        : sb_str("", 0);
}


ngx_int_t
ngx_http_sandbox_record_begin(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    size_t                        len;
    uint8_t                       flags;
    sb_str_t                      sandbox;
    ngx_str_t                     agent, source, path;
    sb_frame_writer_t             w;
    ngx_http_sandbox_loc_conf_t  *lcf;

    if (ctx->mode == NGX_HTTP_SANDBOX_OFF) {
        return NGX_OK;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    flags = 0;

    if (ctx->mode == NGX_HTTP_SANDBOX_STRICT && !ctx->refused) {
        flags |= SB_FF_STRICT;
    }

    if ((ctx->op->flags & SB_OPF_FOLD
         && !(ctx->facts && ctx->facts->has_expires))
        || !ctx->authenticated)
    {
        /* polling, and what knocks without a credential */
        flags |= SB_FF_FOLD;
    }

    ngx_http_sandbox_open(&w, ctx, SB_F_BEGIN, flags);

    sb_frame_put_u64(&w, SB_T_TIME, ctx->started_us);
    ngx_http_sandbox_put_text(&w, SB_T_TYPE, ctx->op->name);

    sandbox = ngx_http_sandbox_record_sandbox(ctx);

    if (sandbox.len) {
        sb_frame_put(&w, SB_T_SANDBOX, sandbox);
    }

    if (ctx->route.port) {
        sb_frame_put_u64(&w, SB_T_PORT, ctx->route.port);
    }

    ngx_http_sandbox_put_text(&w, SB_T_RECORD,
                              ctx->mode == NGX_HTTP_SANDBOX_STRICT
                              ? "strict" : "best_effort");

    ngx_str_set(&source, "gateway");
    ngx_str_null(&agent);

    if (r->headers_in.user_agent) {
        agent = r->headers_in.user_agent->value;

        if (agent.len > 256) {
            agent.len = 256;
        }

        if (agent.len > 12
            && ngx_strncmp(agent.data, "OpenSandbox-", 12) == 0)
        {
            ngx_str_set(&source, "sdk");
        }
    }

    ngx_http_sandbox_put(&w, SB_T_SOURCE, &source);
    ngx_http_sandbox_put(&w, SB_T_METHOD, &r->method_name);

    path.data = (u_char *) ctx->route.path.data;
    path.len = ctx->route.path.len;
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_PATH, &path);

    ngx_http_sandbox_put(&w, SB_T_CLIENT, &r->connection->addr_text);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_AGENT, &agent);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_REQUEST_ID, &ctx->request_id);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_ACTOR_TYPE, &ctx->actor_type);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_ACTOR_ID, &ctx->actor_id);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_THREAD, &ctx->thread);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_RUN, &ctx->run);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_CORRELATION, &ctx->correlation);
    ngx_http_sandbox_put_stated(&w, ctx, SB_T_PARENT, &ctx->parent);
    ngx_http_sandbox_put(&w, SB_T_IDENTITY, &ctx->identity);

    if (ctx->facts && ctx->facts->reason == NULL && ctx->authenticated) {
        ngx_http_sandbox_put_facts(&w, ctx);
    }

    len = ngx_http_sandbox_close(&w, ctx);

    if (len) {
        if (flags & SB_FF_STRICT
            || !ngx_http_sandbox_helper_away(lcf->timeout))
        {
            ctx->wait_seq = ngx_http_sandbox_helper_send(
                                              ngx_http_sandbox_scratch, len, 0);
        }
    }

    if (ctx->wait_seq) {
        ctx->begun = 1;
        ngx_http_sandbox_metric_begun(ctx);
        return NGX_OK;
    }

    ctx->lost = 1;

    if (!ngx_http_sandbox_helper_away(lcf->timeout)) {
        ctx->overloaded = 1;
    }

    if (!(flags & SB_FF_STRICT)) {
        ngx_http_sandbox_helper_gap(sandbox,
                                    ctx->overloaded ? "queue_full"
                                                    : "recorder_unavailable");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_record_facts(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    size_t             len;
    uint64_t           seq;
    sb_frame_writer_t  w;

    if (!ctx->begun) {
        return NGX_OK;
    }

    ngx_http_sandbox_open(&w, ctx, SB_F_FACTS,
                          ctx->mode == NGX_HTTP_SANDBOX_STRICT
                          ? SB_FF_STRICT : 0);

    ngx_http_sandbox_put_text(&w, SB_T_TYPE, ctx->op->name);
    ngx_http_sandbox_put_facts(&w, ctx);

    len = ngx_http_sandbox_close(&w, ctx);
    seq = len ? ngx_http_sandbox_helper_send(ngx_http_sandbox_scratch, len, 0)
              : 0;

    if (seq) {
        ctx->wait_seq = seq;
        return NGX_OK;
    }

    /* what it is about cannot be kept: under strict it must not happen */

    ctx->overloaded = 1;

    if (ctx->mode != NGX_HTTP_SANDBOX_STRICT) {
        ngx_http_sandbox_helper_gap(ngx_http_sandbox_record_sandbox(ctx),
                                    "queue_full");
    }

    return NGX_OK;
}


static void
ngx_http_sandbox_put_facts(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx)
{
    size_t              i;
    sb_request_t       *f;
    sb_request_file_t  *file;

    f = ctx->facts;

    if (ctx->restored.len && sb_op_index(ctx->op) == SB_OP_FILE_WRITE) {
        ngx_http_sandbox_put_restored(w, ctx);

    } else if (f->json.len) {
        sb_frame_put(w, SB_T_REQUEST, sb_str(f->json.data, f->json.len));
    }

    if (f->has_command) {
        sb_frame_put(w, SB_T_COMMAND,
                     sb_str(f->command.data,
                            sb_utf8_cut(f->command,
                                        NGX_HTTP_SANDBOX_COMMAND)));
        sb_frame_put(w, SB_T_CWD, f->cwd);

        if (f->timeout_ms >= 0) {
            sb_frame_put_u64(w, SB_T_TIMEOUT_MS, (uint64_t) f->timeout_ms);
        }

        if (f->background) {
            sb_frame_put(w, SB_T_BACKGROUND, sb_lit(""));
        }
    }

    if (f->name.len) {
        sb_frame_put(w, SB_T_NAME, f->name);
    }

    if (f->instance.len) {
        sb_frame_put(w, SB_T_INSTANCE_ID, f->instance);
    }

    for (i = 0; i < f->nfiles && i < SB_REQUEST_FILES_RECORDED; i++) {
        file = &f->files[i];

        if ((size_t) (w->end - w->pos)
            < file->path.len + file->old_path.len + 128)
        {
            break;
        }

        sb_frame_put(w, SB_T_FILE_PATH, file->path);

        if (file->old_path.len) {
            sb_frame_put(w, SB_T_FILE_OLD, file->old_path);
        }

        if (file->mode >= 0) {
            sb_frame_put_u64(w, SB_T_FILE_MODE, (uint64_t) file->mode);
        }

        if (file->flags) {
            sb_frame_put_u64(w, SB_T_FILE_FLAGS, file->flags);
        }
    }

    if (f->files_total > i) {
        sb_frame_put_u64(w, SB_T_FILES_TOTAL, f->files_total);
    }
}


/* The request's object with one more member, behind all that an upload has. */

static void
ngx_http_sandbox_put_restored(sb_frame_writer_t *w,
    ngx_http_sandbox_ctx_t *ctx)
{
    size_t      len;
    u_char     *json, *last;
    sb_buf_t   *b;

    b = &ctx->facts->json;
    len = b->len > 2 ? b->len - 1 : 0;

    json = ngx_pnalloc(ctx->request->pool, len + SB_UUID_LEN + 32);
    if (json == NULL) {
        return;
    }

    last = len ? ngx_cpymem(json, b->data, len) : json;
    last = ngx_sprintf(last, "%s\"restored_from\":\"%V\"}", len ? "," : "{",
                       &ctx->restored);

    sb_frame_put(w, SB_T_REQUEST, sb_str(json, (size_t) (last - json)));
}


/*
 * Where an upload goes to is known long before it is over: who looks at what
 * runs is told.  The first file stands for all, END has them.
 */

void
ngx_http_sandbox_record_path(ngx_http_sandbox_ctx_t *ctx)
{
    size_t                      len;
    sb_frame_writer_t           w;
    const sb_multipart_file_t  *f;

    if (!ctx->begun || ctx->path_told || ctx->multipart_bad) {
        return;
    }

    f = sb_multipart_file(ctx->multipart, 0);

    if (f == NULL || f->path.len == 0) {
        return;
    }

    ctx->path_told = 1;

    ngx_http_sandbox_open(&w, ctx, SB_F_FACTS, 0);
    sb_frame_put(&w, SB_T_FILE_PATH, f->path);
    len = ngx_http_sandbox_close(&w, ctx);

    if (len) {
        /* END says it again */
        (void) ngx_http_sandbox_helper_send(ngx_http_sandbox_scratch, len, 0);
    }
}


void
ngx_http_sandbox_record_command(ngx_http_sandbox_ctx_t *ctx)
{
    size_t             len;
    sb_frame_writer_t  w;

    if (!ctx->begun) {
        return;
    }

    ngx_http_sandbox_open(&w, ctx, SB_F_FACTS, 0);
    ngx_http_sandbox_put(&w, SB_T_COMMAND_ID, &ctx->command_id);
    sb_frame_put_u64(&w, SB_T_UPSTREAM_STATUS, ctx->upstream_status);
    len = ngx_http_sandbox_close(&w, ctx);

    /* END says it again */
    (void) ngx_http_sandbox_helper_send(ngx_http_sandbox_scratch, len, 0);
}


void
ngx_http_sandbox_record_seen(ngx_http_sandbox_ctx_t *ctx)
{
    size_t                    i, len;
    sb_frame_writer_t         w;
    const sb_answer_facts_t  *f;

    f = ctx->answer_facts;

    ngx_http_sandbox_open(&w, ctx, SB_F_SEEN, 0);

    for (i = 0; i < f->nitems; i++) {

        sb_frame_put(&w, SB_T_SANDBOX, f->items[i].id);

        if (f->items[i].name.len) {
            sb_frame_put(&w, SB_T_NAME, f->items[i].name);
        }

        if (f->items[i].instance.len) {
            sb_frame_put(&w, SB_T_INSTANCE_ID, f->items[i].instance);
        }

        if (f->items[i].state.len) {
            sb_frame_put(&w, SB_T_STATE, f->items[i].state);
        }
    }

    len = ngx_http_sandbox_close(&w, ctx);

    if (len) {
        (void) ngx_http_sandbox_helper_send(ngx_http_sandbox_scratch, len, 0);
    }
}


/* The one END of an operation, whatever its end is. */

void
ngx_http_sandbox_record_end(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    size_t                    len;
    char                     *details;
    off_t                     in, out;
    uint64_t                  now;
    sb_frame_writer_t         w;
    ngx_http_upstream_t      *u;
    const sb_answer_facts_t  *f;

    if (ctx->ended) {
        return;
    }

    ctx->ended = 1;

    if (ctx->lock) {
        ngx_http_sandbox_lock_end(ctx->lock, ctx->begun);
    }

    ngx_http_sandbox_content_done(ctx);

    if (ctx->stream) {
        /* also when it was cut: the tail that had come */
        (void) sb_stream_finish(ctx->stream);
        ngx_http_sandbox_record_last(ctx);
    }

    if (ctx->facts && ctx->facts->redacted) {
        ctx->redacted += ctx->facts->redacted;
        ngx_http_sandbox_metric_add(REDACTED, ctx->facts->redacted);
    }

    if (ctx->answer_facts && ctx->answer_facts->redacted) {
        ctx->redacted += ctx->answer_facts->redacted;
        ngx_http_sandbox_metric_add(REDACTED, ctx->answer_facts->redacted);
    }

    if (ctx->tunnel && ctx->tunnel->pty) {
        ngx_http_sandbox_pty_end(ctx);
    }

    if (ctx->begun) {
        ngx_http_sandbox_open(&w, ctx, SB_F_END, 0);

    } else {
        /* takes nothing */
        ngx_memzero(&w, sizeof(sb_frame_writer_t));
        w.full = true;
    }

    /* $sandbox_status also of what is not on record */
    ngx_http_sandbox_put_status(&w, r, ctx);

    ngx_http_sandbox_metric_ended(r, ctx);

    if (!ctx->begun) {
        return;
    }

    now = ngx_http_sandbox_opened_us;

    sb_frame_put_u64(&w, SB_T_DURATION_US,
                     now > ctx->started_us ? now - ctx->started_us : 0);

    in = ctx->bytes_in;
    out = ctx->bytes_out;

    if (ctx->tunnel) {
        in = ctx->tunnel->bytes_in;
        out = ctx->tunnel->bytes_out;
    }

    sb_frame_put_u64(&w, SB_T_BYTES_IN, (uint64_t) in);
    sb_frame_put_u64(&w, SB_T_BYTES_OUT, (uint64_t) out);

    if (ctx->lock && ctx->lock->answered) {
        sb_frame_put_u64(&w, SB_T_WAITED_US, ctx->lock->waited_us);
    }

    if (ctx->ready_us) {
        sb_frame_put_u64(&w, SB_T_READY_US, ctx->ready_us);
    }

    ngx_http_sandbox_put(&w, SB_T_ERROR_CODE, &ctx->error_code);
    ngx_http_sandbox_put(&w, SB_T_COMMAND_ID, &ctx->command_id);

    if (ctx->verdict) {
        ngx_http_sandbox_policy_put(&w, ctx);
    }

    u = r->upstream;

    if (ctx->judged && u && u->peer.name) {
        ngx_http_sandbox_put(&w, SB_T_UPSTREAM, u->peer.name);
    }

    if (ctx->judged) {
        ngx_http_sandbox_put_text(&w, SB_T_ROUTE,
                                  ctx->ingress ? "ingress"
                                  : ctx->road ? "straight"
                                  : ctx->route.proxied ? "server-proxy"
                                  : "lifecycle");
    }

    if (ctx->stream || (ctx->tunnel && ctx->tunnel->pty)) {
        sb_frame_put_u64(&w, SB_T_STDOUT_TOTAL, (uint64_t) ctx->std_total[0]);
        sb_frame_put_u64(&w, SB_T_STDERR_TOTAL, (uint64_t) ctx->std_total[1]);
        sb_frame_put_u64(&w, SB_T_OUTPUT_DROPPED,
                         (uint64_t) ctx->output_dropped);

        if (ctx->output_lost) {
            sb_frame_put_u64(&w, SB_T_OUTPUT_LOST,
                             (uint64_t) ctx->output_lost);
        }
    }

    if (ctx->digest && ctx->last) {
        uint8_t  sum[32];

        sb_sha256_final(ctx->digest, sum);
        ctx->digest = NULL;
        sb_frame_put(&w, SB_T_SHA256, sb_str(sum, 32));
    }

    details = w.pos;

    if (ctx->multipart) {
        ngx_http_sandbox_put_files(&w, ctx);
    }

    ngx_http_sandbox_put_answer(&w, ctx);

    len = ngx_http_sandbox_close(&w, ctx);

    if (ctx->redacted && len) {
        /* what was found in this frame is counted with it */
        sb_frame_put_u64(&w, SB_T_REDACTED, ctx->redacted);
        len = sb_frame_end(&w);
    }

    if (len && ngx_http_sandbox_helper_send(ngx_http_sandbox_scratch, len,
                                            NGX_HTTP_SANDBOX_QUEUE_MORE))
    {
        return;
    }

    /*
     * It has no room; without an end the record would stay open for as long as
     * this worker lives.  There are no more of these than requests under way.
     */

    ngx_http_sandbox_metric_add(ENDS_SHORT, 1);

    w.pos = details;
    w.full = false;

    f = ctx->answer_facts;

    if (f && f->id.len && ctx->upstream_status < NGX_HTTP_BAD_REQUEST) {
        sb_frame_put(&w, SB_T_NEW_SANDBOX, f->id);
    }

    if (ctx->redacted) {
        sb_frame_put_u64(&w, SB_T_REDACTED, ctx->redacted);
    }

    sb_frame_put(&w, SB_T_RESULT, sb_lit("{\"details_lost\":true}"));

    len = ngx_http_sandbox_close(&w, ctx);

    if (ngx_http_sandbox_helper_send(ngx_http_sandbox_scratch, len,
                                     NGX_HTTP_SANDBOX_QUEUE_ALWAYS)
        == 0)
    {
        ngx_http_sandbox_helper_gap(ngx_http_sandbox_record_sandbox(ctx),
                                    "end_lost");
    }
}


static void
ngx_http_sandbox_put_files(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx)
{
    size_t                      i, n;
    const sb_multipart_file_t  *f;

    if (!ctx->multipart_bad
        && sb_multipart_finish(ctx->multipart) != SB_OK
        && ctx->reason == NULL)
    {
        ctx->multipart_bad = 1;
    }

    n = sb_multipart_count(ctx->multipart);

    for (i = 0; i < n; i++) {

        if (i == SB_REQUEST_FILES_RECORDED
            || w->end - w->pos < NGX_HTTP_SANDBOX_SCRATCH / 4)
        {
            sb_frame_put_u64(w, SB_T_FILES_TOTAL, n);
            break;
        }

        f = sb_multipart_file(ctx->multipart, i);

        if (f->path.len == 0) {
            continue;
        }

        sb_frame_put(w, SB_T_FILE_PATH, f->path);

        if (f->has_file) {
            sb_frame_put_u64(w, SB_T_FILE_SIZE, f->size);

            if (!ctx->multipart_bad && ctx->digests) {
                sb_frame_put(w, SB_T_FILE_SHA256, sb_str(f->sha256, 32));
            }
        }

        if (f->mode >= 0) {
            sb_frame_put_u64(w, SB_T_FILE_MODE, (uint64_t) f->mode);
        }

        if (f->flags) {
            sb_frame_put_u64(w, SB_T_FILE_FLAGS, f->flags);
        }
    }
}


/* What the answer itself told. */

static void
ngx_http_sandbox_put_answer(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx)
{
    u_char                    text[256], *p;
    ngx_uint_t                code;
    const sb_stream_facts_t  *s;
    const sb_answer_facts_t  *f;

    if (ctx->tunnel) {

        code = ctx->tunnel->from_upstream.close_code
               ? ctx->tunnel->from_upstream.close_code
               : ctx->tunnel->from_client.close_code;

        text[0] = '{';
        p = text + 1;

        if (code) {
            p = ngx_sprintf(p, "\"close_code\":%ui,", code);
        }

        if (ctx->tunnel->pty) {
            p = ngx_http_sandbox_pty_result(ctx->tunnel->pty, p);
        }

        if (p > text + 1) {
            p[-1] = '}';
            sb_frame_put(w, SB_T_RESULT, sb_str(text, p - text));
        }

        return;
    }

    if (ctx->stream) {

        s = sb_stream_facts(ctx->stream);

        if (s->end == SB_STREAM_RUNTIME && s->code[0]
            && ctx->error_code.len == 0)
        {
            ngx_http_sandbox_put_text(w, SB_T_ERROR_CODE, s->code);
        }

        ngx_http_sandbox_put_stream(w, ctx, s);
        return;
    }

    f = ctx->answer_facts;

    if (f == NULL) {
        return;
    }

    if (ctx->facts && ctx->facts->has_expires
        && ctx->upstream_status < NGX_HTTP_BAD_REQUEST)
    {
        /* the address holds a signature: whoever has it needs no other key */
        ctx->redacted++;
        sb_frame_put(w, SB_T_RESULT, sb_lit("{\"bypass\":\"signed\"}"));
        return;
    }

    if (f->json.len) {
        sb_frame_put(w, SB_T_RESULT, sb_str(f->json.data, f->json.len));
    }

    if (ctx->upstream_status >= NGX_HTTP_BAD_REQUEST) {

        if (f->error_code.len && ctx->error_code.len == 0) {
            sb_frame_put(w, SB_T_ERROR_CODE, f->error_code);
        }

        return;
    }

    if (f->id.len) {
        sb_frame_put(w, SB_T_NEW_SANDBOX, f->id);
    }

    if (f->name.len && ctx->facts && ctx->facts->name.len == 0) {
        sb_frame_put(w, SB_T_NAME, f->name);
    }

    if (f->instance.len && ctx->facts && ctx->facts->instance.len == 0) {
        sb_frame_put(w, SB_T_INSTANCE_ID, f->instance);
    }

    if (f->state.len) {
        sb_frame_put(w, SB_T_STATE, f->state);
    }

    if (f->command_id.len && ctx->command_id.len == 0) {
        sb_frame_put(w, SB_T_COMMAND_ID, f->command_id);
    }

    if (f->has_running) {
        sb_frame_put_u64(w, SB_T_RUNNING, f->running);
    }

    if (f->has_exit_code) {
        sb_frame_put_u64(w, SB_T_EXIT_CODE,
                         (uint64_t) (int64_t) f->exit_code);
    }
}


/* ename, evalue and the like of a stream that failed, results of code, and what
 * was odd. */

static void
ngx_http_sandbox_put_stream(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx,
    const sb_stream_facts_t *s)
{
    size_t    mark;
    char      text[2048];
    sb_buf_t  b;

    if (s->end == SB_STREAM_COMPLETE && s->bad_frames == 0
        && s->execution_ms < 0 && s->execution_count < 0
        && ctx->results.len == 0 && ctx->results_dropped == 0
        && !s->incomplete_frame)
    {
        return;
    }

    ngx_memzero(&b, sizeof(sb_buf_t));

    if (ctx->results.len == 0) {
        b.data = text;
        b.cap = sizeof(text);
        b.max = sizeof(text) - 1;

    } else {
        b.max = sizeof(text) + NGX_HTTP_SANDBOX_RESULTS;
    }

    /* keys in canonical order (history format 15.2) */

    (void) sb_buf_add_c(&b, '{');

    if (s->bad_frames) {
        ngx_http_sandbox_json_number(&b, sb_lit("\"bad_frames\":"),
                                     s->bad_frames);
    }

    if (s->end == SB_STREAM_FAILED) {
        ngx_http_sandbox_json_member(&b, "ename", s->ename);
        ngx_http_sandbox_json_member(&b, "evalue", s->evalue);
    }

    if (s->execution_count >= 0) {
        ngx_http_sandbox_json_number(&b, sb_lit("\"execution_count\":"),
                                     (uint64_t) s->execution_count);
    }

    if (s->execution_ms >= 0) {
        ngx_http_sandbox_json_number(&b, sb_lit("\"execution_ms\":"),
                                     (uint64_t) s->execution_ms);
    }

    if (s->incomplete_frame) {
        (void) sb_buf_add_str(&b, sb_lit("\"incomplete_frame\":true,"));
    }

    if (s->end == SB_STREAM_RUNTIME) {
        ngx_http_sandbox_json_member(&b, "message", s->message);
    }

    mark = b.len;

    if (ctx->results.len
        && (sb_buf_add_str(&b, sb_lit("\"results\":[")) != SB_OK
            || sb_buf_add(&b, ctx->results.data, ctx->results.len) != SB_OK
            || sb_buf_add_str(&b, sb_lit("],")) != SB_OK))
    {
        b.len = mark;
        ctx->results_dropped++;
    }

    if (ctx->results_dropped) {
        ngx_http_sandbox_json_number(&b, sb_lit("\"results_dropped\":"),
                                     ctx->results_dropped);
    }

    if (b.len > 1) {
        b.data[b.len - 1] = '}';
        sb_frame_put(w, SB_T_RESULT, sb_str(b.data, b.len));
    }

    if (b.data != text) {
        sb_buf_free(&b);
    }
}


static void
ngx_http_sandbox_json_number(sb_buf_t *b, sb_str_t key, uint64_t n)
{
    size_t  mark;

    mark = b->len;

    if (sb_buf_add_str(b, key) != SB_OK
        || sb_buf_add_uint(b, n) != SB_OK
        || sb_buf_add_c(b, ',') != SB_OK)
    {
        b->len = mark;
    }
}


static void
ngx_http_sandbox_json_member(sb_buf_t *b, const char *key, const char *value)
{
    size_t  mark;

    if (value[0] == '\0') {
        return;
    }

    mark = b->len;

    if (sb_buf_printf(b, "\"%s\":", key) != SB_OK
        || sb_json_write_str(b, sb_str(value, ngx_strlen(value))) != SB_OK
        || sb_buf_add_c(b, ',') != SB_OK)
    {
        b->len = mark;
    }
}
