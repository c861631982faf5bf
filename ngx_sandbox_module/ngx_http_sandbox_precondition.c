/*
 * If-Match: sha256:... and If-None-Match: * of an upload.  What the history knows
 * is no proof, for commands change files too: with the file's key held, the
 * helper reads it in the sandbox and tells its digest.  Who asks for this is
 * never let through without.
 */


#include "ngx_http_sandbox_precondition.h"
#include "ngx_http_sandbox_download.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_PRECONDITION_MS  10000

#define NGX_HTTP_SANDBOX_DIGEST  (sizeof("sha256:") - 1 + 64)


struct ngx_http_sandbox_precondition_s {
    ngx_http_sandbox_ctx_t       *ctx;
    ngx_event_t                   timer;
    ngx_http_sandbox_download_t   from;
    ngx_uint_t                    status;   /* of the answer */
    u_char                        want[32];
    u_char                        have[32];

    unsigned                      absent:1; /* there must be no file */
    unsigned                      open:1;
    unsigned                      answered:1;
};


static ngx_int_t ngx_http_sandbox_precondition_read(
    ngx_http_sandbox_precondition_t *p, ngx_table_elt_t *h, ngx_uint_t absent);
static ngx_int_t ngx_http_sandbox_precondition_bad(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const char *why);
static ngx_int_t ngx_http_sandbox_precondition_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_precondition_t *p);
static ngx_int_t ngx_http_sandbox_precondition_judge(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_precondition_t *p);
static ngx_int_t ngx_http_sandbox_precondition_failed(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_precondition_t *p);
static void ngx_http_sandbox_precondition_done(void *data, ngx_uint_t status,
    ngx_str_t *body);
static void ngx_http_sandbox_precondition_timer(ngx_event_t *ev);
static void ngx_http_sandbox_precondition_resume(
    ngx_http_sandbox_precondition_t *p);


ngx_int_t
ngx_http_sandbox_precondition_headers(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_uint_t                        i, absent;
    ngx_list_part_t                  *part;
    ngx_table_elt_t                  *h;
    ngx_http_sandbox_precondition_t  *p;

    if (!(ctx->op->flags & SB_OPF_UPLOAD)) {
        return NGX_OK;
    }

    p = NULL;

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_is(&h[i], "if-match")) {
            absent = 0;

        } else if (ngx_http_sandbox_header_is(&h[i], "if-none-match")) {
            absent = 1;

        } else {
            continue;
        }

        if (p) {
            return ngx_http_sandbox_precondition_bad(r, ctx,
                                       "An upload may have one If-Match or one "
                                       "If-None-Match, not several.");
        }

        p = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_precondition_t));
        if (p == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (ngx_http_sandbox_precondition_read(p, &h[i], absent) != NGX_OK) {
            return ngx_http_sandbox_precondition_bad(r, ctx,
                                       "An upload is conditional with "
                                       "If-Match: sha256:DIGEST, in 64 hex "
                                       "digits, or with If-None-Match: *.");
        }

        ngx_http_sandbox_kill(&h[i]);
    }

    if (p == NULL) {
        return NGX_OK;
    }

    if (!lcf->locks || !ngx_http_sandbox_helper_active()
        || sb_op_index(ctx->op) != SB_OP_FILE_WRITE || !ctx->route.proxied)
    {
        /* between the look and the write anybody could write */
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_NOT_IMPLEMENTED,
                                       "GATEWAY_UNSUPPORTED",
                                       "If-Match and If-None-Match need "
                                       "sandbox_locks, and a file that other "
                                       "operations see too.", NULL);
    }

    r->headers_in.if_match = NULL;
    r->headers_in.if_none_match = NULL;

    p->ctx = ctx;
    ctx->precondition = p;

    return NGX_OK;
}


/* An entity tag stands in quotes; without them it cannot be anything else. */

static ngx_int_t
ngx_http_sandbox_precondition_read(ngx_http_sandbox_precondition_t *p,
    ngx_table_elt_t *h, ngx_uint_t absent)
{
    ngx_str_t  v;

    v = h->value;

    if (absent) {
        p->absent = 1;
        return v.len == 1 && v.data[0] == '*' ? NGX_OK : NGX_DECLINED;
    }

    if (v.len == NGX_HTTP_SANDBOX_DIGEST + 2
        && v.data[0] == '"' && v.data[v.len - 1] == '"')
    {
        v.data++;
        v.len -= 2;
    }

    if (v.len != NGX_HTTP_SANDBOX_DIGEST
        || ngx_strncmp(v.data, "sha256:", sizeof("sha256:") - 1) != 0
        || sb_unhex(p->want, 32, sb_str(v.data + sizeof("sha256:") - 1, 64))
           != SB_OK)
    {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_precondition_bad(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const char *why)
{
    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                   "GATEWAY_AMBIGUOUS_REQUEST", why, NULL);
}


ngx_int_t
ngx_http_sandbox_precondition(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_precondition_t  *p;

    p = ctx->precondition;

    if (p == NULL) {
        return NGX_OK;
    }

    if (p->open) {
        return NGX_AGAIN;
    }

    return p->answered ? ngx_http_sandbox_precondition_judge(r, ctx, p)
                       : ngx_http_sandbox_precondition_ask(r, ctx, p);
}


static ngx_int_t
ngx_http_sandbox_precondition_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_precondition_t *p)
{
    const sb_multipart_file_t  *file;

    if (ctx->multipart == NULL || sb_multipart_count(ctx->multipart) != 1
        || sb_multipart_file(ctx->multipart, 0)->path.len == 0)
    {
        return ngx_http_sandbox_precondition_bad(r, ctx,
                                       "A conditional upload must be of one "
                                       "file, and name its path.");
    }

    if (ctx->lock == NULL || ctx->lock->passed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_sandbox_download_init(r, ctx, &p->from) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    file = sb_multipart_file(ctx->multipart, 0);

    if (!ngx_http_sandbox_download_ask(r, ctx, &p->from, file->path, 0,
                                       SB_CONTENT_CHECK,
                                       ngx_http_sandbox_precondition_done, p))
    {
        p->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        return ngx_http_sandbox_precondition_judge(r, ctx, p);
    }

    p->open = 1;

    p->timer.handler = ngx_http_sandbox_precondition_timer;
    p->timer.data = p;
    p->timer.log = r->connection->log;

    ngx_add_timer(&p->timer, NGX_HTTP_SANDBOX_PRECONDITION_MS);

    /* else a client that leaves is not noticed */
    r->read_event_handler = ngx_http_test_reading;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_sandbox_precondition_judge(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_precondition_t *p)
{
    switch (p->status) {

    case NGX_HTTP_OK:
        if (!p->absent && ngx_memcmp(p->want, p->have, 32) == 0) {
            return NGX_OK;
        }

        return ngx_http_sandbox_precondition_failed(r, ctx, p);

    case NGX_HTTP_NOT_FOUND:
        if (p->absent) {
            return NGX_OK;
        }

        return ngx_http_sandbox_precondition_failed(r, ctx, p);

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        if (p->absent) {
            return ngx_http_sandbox_precondition_failed(r, ctx, p);
        }

        return ngx_http_sandbox_refuse(r, ctx,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "GATEWAY_LIMIT_EXCEEDED",
                                       "The file is larger than 128 MiB, and "
                                       "so is not compared for If-Match.",
                                       NULL);

    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "GATEWAY_OVERLOADED",
                                       "Too many files are read for If-Match "
                                       "and If-None-Match, or the helper is "
                                       "away; try again shortly.", NULL);

    default:
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_GATEWAY,
                                       "GATEWAY_UPSTREAM_UNAVAILABLE",
                                       "The sandbox did not tell how the file "
                                       "stands, so If-Match or If-None-Match "
                                       "could not be judged.", NULL);
    }
}


/* What it is instead, so that nobody has to ask again. */

static ngx_int_t
ngx_http_sandbox_precondition_failed(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_precondition_t *p)
{
    char                        hex[2 * 32 + 1];
    sb_buf_t                    b;
    ngx_int_t                   rc;
    ngx_str_t                   details;
    const sb_multipart_file_t  *file;

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = 65536;

    ngx_http_sandbox_metric_add(PRECONDITIONS_FAILED, 1);

    file = sb_multipart_file(ctx->multipart, 0);
    sb_hex(hex, p->have, 32);

    if (sb_buf_add_str(&b, sb_lit("\"path\":")) != SB_OK
        || sb_json_write_str(&b, file->path) != SB_OK
        || (p->status == NGX_HTTP_OK
            ? sb_buf_printf(&b, ",\"sha256\":\"%s\"", hex)
            : sb_buf_add_str(&b, sb_lit(",\"sha256\":null")))
           != SB_OK
        || sb_buf_printf(&b, ",\"exists\":%s",
                         p->status == NGX_HTTP_NOT_FOUND ? "false" : "true")
           != SB_OK)
    {
        sb_buf_free(&b);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    details.data = (u_char *) b.data;
    details.len = b.len;

    rc = ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_PRECONDITION_FAILED,
                                 "GATEWAY_PRECONDITION_FAILED",
                                 p->absent
                                 ? "The file is there already."
                                 : p->status == NGX_HTTP_NOT_FOUND
                                 ? "There is no such file any more."
                                 : "The file has changed: read it again.",
                                 &details);
    sb_buf_free(&b);

    return rc;
}


static void
ngx_http_sandbox_precondition_done(void *data, ngx_uint_t status,
    ngx_str_t *body)
{
    ngx_http_sandbox_precondition_t  *p = data;

    if (status == NGX_HTTP_OK && body->len != 32) {
        status = 0;
    }

    p->status = status;

    if (status == NGX_HTTP_OK) {
        ngx_memcpy(p->have, body->data, 32);
    }

    ngx_http_sandbox_precondition_resume(p);
}


static void
ngx_http_sandbox_precondition_timer(ngx_event_t *ev)
{
    ngx_http_sandbox_precondition_t  *p;

    p = ev->data;

    ngx_http_sandbox_fetch_forget(p);
    ngx_http_sandbox_precondition_resume(p);
}


void
ngx_http_sandbox_precondition_forget(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_precondition_t  *p;

    p = ctx->precondition;

    if (p == NULL || !p->open) {
        return;
    }

    p->open = 0;
    ngx_http_sandbox_fetch_forget(p);

    if (p->timer.timer_set) {
        ngx_del_timer(&p->timer);
    }
}


static void
ngx_http_sandbox_precondition_resume(ngx_http_sandbox_precondition_t *p)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = p->ctx->request;
    c = r->connection;

    p->open = 0;
    p->answered = 1;

    if (p->timer.timer_set) {
        ngx_del_timer(&p->timer);
    }

    ngx_http_set_log_request(c->log, r);

    /* still ngx_http_core_run_phases() */
    r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}
