/*
 * sandbox_versions fetch: how files stand before they are written.  When all
 * else is decided, and before the request goes on, the helper is asked to read
 * them in the sandbox, by the road of the request and with the credentials of
 * its client, unless the history tells.  What it reads goes into the journal and
 * not through here; the request waits for its word, NGX_HTTP_SANDBOX_BEFORE_MS
 * at most.
 *
 * The paths of an upload stand in its body: it is read first, into nginx's own
 * spool.
 */


#include "ngx_http_sandbox_before.h"
#include "ngx_http_sandbox_download.h"
#include "ngx_http_sandbox_fetch.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_BEFORE_MS     500
#define NGX_HTTP_SANDBOX_BEFORE_FILES  16       /* of one operation */


typedef struct {
    ngx_http_sandbox_before_t         *before;
    size_t                             file;
    ngx_uint_t                         open;
} ngx_http_sandbox_before_file_t;


struct ngx_http_sandbox_before_s {
    ngx_http_sandbox_ctx_t            *ctx;
    ngx_event_t                        timer;
    ngx_uint_t                         open;    /* that are waited for */
    ngx_uint_t                         n;
    ngx_http_sandbox_download_t        from;
    ngx_http_sandbox_before_file_t     files[2 * NGX_HTTP_SANDBOX_BEFORE_FILES];
};


static void ngx_http_sandbox_before_spooled(ngx_http_request_t *r);
static void ngx_http_sandbox_before_ask(ngx_http_request_t *r,
    ngx_http_sandbox_before_t *b);
static size_t ngx_http_sandbox_before_count(ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_before_paths(ngx_http_sandbox_ctx_t *ctx,
    size_t i, sb_str_t *path, sb_str_t *old);
static ngx_uint_t ngx_http_sandbox_before_touched(ngx_http_sandbox_ctx_t *ctx,
    size_t n, sb_str_t text);
static void ngx_http_sandbox_before_file(ngx_http_request_t *r,
    ngx_http_sandbox_before_t *b, size_t file, sb_str_t path, ngx_uint_t kind);
static void ngx_http_sandbox_before_done(void *data, ngx_uint_t status,
    ngx_str_t *body);
static void ngx_http_sandbox_before_timer(ngx_event_t *ev);
static void ngx_http_sandbox_before_resume(ngx_http_sandbox_before_t *b);


ngx_uint_t
ngx_http_sandbox_before_wanted(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    if (lcf->versions != NGX_HTTP_SANDBOX_VERSIONS_FETCH
        || !ngx_http_sandbox_content_wanted(r, ctx)
        || !ctx->route.proxied)
    {
        return 0;
    }

    switch (sb_op_index(ctx->op)) {

    case SB_OP_FILE_WRITE:
    case SB_OP_FILE_REPLACE:
    case SB_OP_FILE_MOVE:
    case SB_OP_FILE_DELETE:
        return 1;

    default:
        return 0;
    }
}


ngx_int_t
ngx_http_sandbox_before_spool(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_int_t  rc;

    ctx->spooling = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_sandbox_before_spooled);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


static void
ngx_http_sandbox_before_spooled(ngx_http_request_t *r)
{
    ngx_http_sandbox_ctx_t  *ctx;

    ctx = ngx_http_sandbox_get_ctx(r);

    ctx->spooling = 0;
    ctx->spooled = 1;

    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


ngx_int_t
ngx_http_sandbox_before(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_http_sandbox_before_t  *b;

    b = ctx->before;

    if (b) {
        return b->open ? NGX_AGAIN : NGX_OK;
    }

    b = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_before_t));
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->ctx = ctx;
    ctx->before = b;

    if (ngx_http_sandbox_download_init(r, ctx, &b->from) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!ctx->acked) {
        ngx_http_sandbox_helper_push();
    }

    ngx_http_sandbox_before_ask(r, b);

    if (b->open == 0) {
        return NGX_OK;
    }

    b->timer.handler = ngx_http_sandbox_before_timer;
    b->timer.data = b;
    b->timer.log = r->connection->log;

    ngx_add_timer(&b->timer, NGX_HTTP_SANDBOX_BEFORE_MS);

    /* else a client that leaves is not noticed */
    r->read_event_handler = ngx_http_test_reading;

    return NGX_AGAIN;
}


static void
ngx_http_sandbox_before_ask(ngx_http_request_t *r,
    ngx_http_sandbox_before_t *b)
{
    size_t    i, n;
    sb_str_t  path, old;

    n = ngx_http_sandbox_before_count(b->ctx);

    for (i = 0; i < n; i++) {

        ngx_http_sandbox_before_paths(b->ctx, i, &path, &old);

        if (!ngx_http_sandbox_before_touched(b->ctx, i, path)) {
            ngx_http_sandbox_before_file(r, b, i, path, SB_CONTENT_BEFORE);
        }

        if (!ngx_http_sandbox_before_touched(b->ctx, i, old)) {
            /* what is there now will stand where it is moved */
            ngx_http_sandbox_before_file(r, b, i, old, SB_CONTENT_AFTER);
        }
    }
}


static size_t
ngx_http_sandbox_before_count(ngx_http_sandbox_ctx_t *ctx)
{
    size_t  n;

    n = ctx->multipart ? sb_multipart_count(ctx->multipart)
                       : ctx->facts ? ctx->facts->nfiles : 0;

    return ngx_min(n, NGX_HTTP_SANDBOX_BEFORE_FILES);
}


static void
ngx_http_sandbox_before_paths(ngx_http_sandbox_ctx_t *ctx, size_t i,
    sb_str_t *path, sb_str_t *old)
{
    if (ctx->multipart) {
        *path = sb_multipart_file(ctx->multipart, i)->path;
        *old = sb_str("", 0);

    } else {
        *path = ctx->facts->files[i].path;
        *old = ctx->facts->files[i].old_path;
    }
}


/* Does the operation itself change the path before it comes to file n? */

static ngx_uint_t
ngx_http_sandbox_before_touched(ngx_http_sandbox_ctx_t *ctx, size_t n,
    sb_str_t text)
{
    size_t    i;
    sb_str_t  path, old;

    for (i = 0; i < n; i++) {

        ngx_http_sandbox_before_paths(ctx, i, &path, &old);

        if (sb_eq(text, path) || sb_eq(text, old)) {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_sandbox_before_file(ngx_http_request_t *r,
    ngx_http_sandbox_before_t *b, size_t file, sb_str_t path, ngx_uint_t kind)
{
    ngx_http_sandbox_before_file_t  *f;

    f = &b->files[b->n];

    if (ngx_http_sandbox_download_ask(r, b->ctx, &b->from, path, file, kind,
                                      ngx_http_sandbox_before_done, f))
    {
        f->before = b;
        f->file = file;
        f->open = 1;
        b->n++;
        b->open++;
    }
}


static void
ngx_http_sandbox_before_done(void *data, ngx_uint_t status, ngx_str_t *body)
{
    ngx_http_sandbox_before_file_t  *f = data;

    ngx_http_sandbox_before_t       *b;

    b = f->before;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, b->ctx->request->connection->log, 0,
                   "sandbox %s: file %uz before: %ui", b->ctx->id_text,
                   f->file, status);

    f->open = 0;

    if (--b->open == 0) {
        ngx_http_sandbox_before_resume(b);
    }
}


/* What comes from now on may be read while the file is being written. */

static void
ngx_http_sandbox_before_timer(ngx_event_t *ev)
{
    ngx_uint_t                  i;
    ngx_http_sandbox_before_t  *b;

    b = ev->data;

    for (i = 0; i < b->n; i++) {

        if (b->files[i].open) {
            ngx_http_sandbox_content_void(b->ctx, b->files[i].file);
        }
    }

    ngx_log_error(NGX_LOG_INFO, b->ctx->request->connection->log, 0,
                  "sandbox %s: %ui files could not be read in time before "
                  "they are written", b->ctx->id_text, b->open);

    ngx_http_sandbox_metric_add(FILES_LATE, b->open);

    ngx_http_sandbox_before_forget(b->ctx);
    ngx_http_sandbox_before_resume(b);
}


void
ngx_http_sandbox_before_forget(ngx_http_sandbox_ctx_t *ctx)
{
    ngx_uint_t                  i;
    ngx_http_sandbox_before_t  *b;

    b = ctx->before;

    if (b == NULL || b->open == 0) {
        return;
    }

    for (i = 0; i < b->n; i++) {

        if (b->files[i].open) {
            ngx_http_sandbox_fetch_forget(&b->files[i]);
            b->files[i].open = 0;
        }
    }

    b->open = 0;

    if (b->timer.timer_set) {
        ngx_del_timer(&b->timer);
    }
}


static void
ngx_http_sandbox_before_resume(ngx_http_sandbox_before_t *b)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = b->ctx->request;
    c = r->connection;

    if (b->timer.timer_set) {
        ngx_del_timer(&b->timer);
    }

    ngx_http_set_log_request(c->log, r);

    /* still ngx_http_core_run_phases() */
    r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}
