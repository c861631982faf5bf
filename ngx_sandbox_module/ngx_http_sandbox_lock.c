/* What an operation locks, and what counts it (ngx_http_sandbox_lock.h). */


#include "ngx_http_sandbox_lock.h"
#include "ngx_http_sandbox_headers.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_LOCK_FRAME                                           \
    (SB_LOCK_KEYS * (SB_LOCK_PATH + 16) + 8192)


/* of the id of an isolated session */
#define NGX_HTTP_SANDBOX_LOCK_SESSION  255


/* the keys of one operation, while they are gathered */

typedef struct {
    sb_lock_key_t     keys[SB_LOCK_KEYS];
    ngx_uint_t        n;
    ngx_uint_t        all;          /* too many: everything */
    sb_str_t          within;       /* paths are those of an isolated session;
                                       empty: of the sandbox */
    u_char           *pos;          /* of texts */
    u_char            texts[SB_LOCK_KEYS * (SB_LOCK_PATH + 2)];
    u_char            within_text[NGX_HTTP_SANDBOX_LOCK_SESSION + 16];
} ngx_http_sandbox_lock_keys_t;


/* how an operation is counted, and what it does to its paths */

typedef struct {
    sb_limit_e        limit;
    ngx_uint_t        locks;
    ngx_uint_t        write;
    ngx_uint_t        session;      /* an isolated one, whole */
} ngx_http_sandbox_lock_kind_t;


static void ngx_http_sandbox_lock_kind(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_lock_kind_t *kind);
static void ngx_http_sandbox_lock_gather(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_lock_keys_t *k, ngx_uint_t write);
static void ngx_http_sandbox_lock_within(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_lock_keys_t *k);
static void ngx_http_sandbox_lock_key(ngx_http_sandbox_lock_keys_t *k,
    sb_str_t path, ngx_uint_t write);
static size_t ngx_http_sandbox_lock_text(ngx_http_sandbox_lock_keys_t *k,
    sb_str_t path);
static ngx_int_t ngx_http_sandbox_lock_header(ngx_str_t *slot,
    ngx_table_elt_t *h);
static ngx_int_t ngx_http_sandbox_lock_ambiguous(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const char *why);
static ngx_int_t ngx_http_sandbox_lock_away(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_int_t ngx_http_sandbox_lock_details(ngx_http_request_t *r,
    ngx_http_sandbox_lock_t *l, ngx_str_t *details);


/* of this worker: nothing is kept in them from one call to the next */

static ngx_http_sandbox_lock_keys_t  ngx_http_sandbox_lock_keys;
static u_char  ngx_http_sandbox_lock_frame[NGX_HTTP_SANDBOX_LOCK_FRAME];


ngx_int_t
ngx_http_sandbox_lock_headers(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_int_t         rc, ms;
    ngx_str_t        *slot, timeout;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    if (!ngx_http_sandbox_has(ctx, NGX_HTTP_SANDBOX_H_LOCK)
        && !ngx_http_sandbox_has(ctx, NGX_HTTP_SANDBOX_H_LOCK_TIMEOUT)
        && !ngx_http_sandbox_has(ctx, NGX_HTTP_SANDBOX_H_LEASE))
    {
        return NGX_OK;
    }

    ngx_str_null(&timeout);

    ngx_http_sandbox_each_header(r, part, h, i) {

        if (ngx_http_sandbox_header_is(&h[i], "x-sandbox-lock")) {
            slot = &ctx->lock_keys;

        } else if (ngx_http_sandbox_header_is(&h[i], "x-sandbox-lock-timeout"))
        {
            slot = &timeout;

        } else if (ngx_http_sandbox_header_is(&h[i], "x-sandbox-lease")) {
            slot = &ctx->lock_lease;

        } else {
            continue;
        }

        rc = ngx_http_sandbox_lock_header(slot, &h[i]);

        if (rc != NGX_OK) {
            return ngx_http_sandbox_lock_ambiguous(r, ctx,
                                       "X-Sandbox-Lock, X-Sandbox-Lock-Timeout "
                                       "and X-Sandbox-Lease may occur once "
                                       "each, and must not be empty.");
        }
    }

    if (ctx->lock_keys.data == NULL && ctx->lock_lease.data == NULL
        && timeout.data == NULL)
    {
        /* only with "_" in place of "-" */
        return NGX_OK;
    }

    if (!lcf->locks || !ngx_http_sandbox_helper_active()) {
        /* who asks for a lock must not believe that there is one */
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_NOT_IMPLEMENTED,
                                       "GATEWAY_UNSUPPORTED",
                                       "This gateway keeps no locks here: "
                                       "turn them on with sandbox_locks.",
                                       NULL);
    }

    if (ctx->route.sandbox.len == 0) {
        return ngx_http_sandbox_lock_ambiguous(r, ctx,
                                       "X-Sandbox-Lock and X-Sandbox-Lease "
                                       "belong to operations of one sandbox.");
    }

    ctx->lock_timeout = lcf->lock_timeout;

    if (timeout.data) {
        ms = ngx_parse_time(&timeout, 0);

        if (ms == NGX_ERROR || ms > NGX_HTTP_SANDBOX_LOCK_MAX) {
            return ngx_http_sandbox_lock_ambiguous(r, ctx,
                                       "X-Sandbox-Lock-Timeout must be a time "
                                       "such as 500ms or 10s, of at most 5m.");
        }

        ctx->lock_timeout = (ngx_msec_t) ms;
        ctx->lock_timed = 1;
    }

    return NGX_OK;
}


/* Takes the value of one header, once. */

static ngx_int_t
ngx_http_sandbox_lock_header(ngx_str_t *slot, ngx_table_elt_t *h)
{
    if (slot->data || h->value.len == 0) {
        return NGX_DECLINED;
    }

    *slot = h->value;
    ngx_http_sandbox_kill(h);

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_lock_ambiguous(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const char *why)
{
    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                   "GATEWAY_AMBIGUOUS_REQUEST", why, NULL);
}


/*
 * Listing blocks nobody and waits for nobody.  What lies in an isolated session is
 * not what lies in the sandbox, or nobody knows: it has keys of its own.  To end
 * one, or to put what it has written into the sandbox, waits for its files.
 */

static void
ngx_http_sandbox_lock_kind(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_lock_kind_t *kind)
{
    ngx_memzero(kind, sizeof(ngx_http_sandbox_lock_kind_t));

    if (ctx->op->flags & SB_OPF_COMMAND) {
        kind->limit = SB_LIMIT_COMMAND;
        return;
    }

    switch (sb_op_index(ctx->op)) {

    case SB_OP_FILE_READ:
    case SB_OP_FILE_STAT:
    case SB_OP_FILE_SEARCH:
        kind->limit = SB_LIMIT_READ;
        kind->locks = 1;
        return;

    case SB_OP_DIR_LIST:
        kind->limit = SB_LIMIT_READ;
        return;

    case SB_OP_FILE_WRITE:
        kind->limit = SB_LIMIT_UPLOAD;
        kind->locks = 1;
        kind->write = 1;
        return;

    case SB_OP_FILE_DELETE:
    case SB_OP_FILE_MOVE:
    case SB_OP_FILE_CHMOD:
    case SB_OP_FILE_REPLACE:
    case SB_OP_DIR_CREATE:
    case SB_OP_DIR_DELETE:
        kind->limit = SB_LIMIT_WRITE;
        kind->locks = 1;
        kind->write = 1;
        return;

    case SB_OP_ISOLATED_FILE_READ:
    case SB_OP_ISOLATED_FILE_STAT:
    case SB_OP_ISOLATED_FILE_SEARCH:
        kind->locks = 1;
        return;

    case SB_OP_ISOLATED_FILE_WRITE:
    case SB_OP_ISOLATED_FILE_DELETE:
    case SB_OP_ISOLATED_FILE_MOVE:
    case SB_OP_ISOLATED_FILE_CHMOD:
    case SB_OP_ISOLATED_FILE_REPLACE:
    case SB_OP_ISOLATED_DIR_CREATE:
    case SB_OP_ISOLATED_DIR_DELETE:
        kind->locks = 1;
        kind->write = 1;
        return;

    case SB_OP_ISOLATED_COMMIT:
    case SB_OP_ISOLATED_DELETE:
        kind->locks = 1;
        kind->write = 1;
        kind->session = 1;
        return;

    default:
        return;
    }
}


ngx_uint_t
ngx_http_sandbox_lock_reads(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_http_sandbox_lock_kind_t  kind;

    if (!(ctx->op->flags & SB_OPF_UPLOAD) || !ngx_http_sandbox_helper_active())
    {
        return 0;
    }

    if (lcf->locks) {
        return 1;
    }

    /* who is slow with a body must not hold a slot meanwhile */

    ngx_http_sandbox_lock_kind(ctx, &kind);

    return lcf->limits && lcf->limits->most[kind.limit];
}


/* Whose paths they are: nothing that an id could be taken for lies there. */

static void
ngx_http_sandbox_lock_within(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_lock_keys_t *k)
{
    sb_str_t  id = ctx->route.arg;

    if (ngx_strncmp(ctx->op->name, "isolated.", 9) != 0) {
        return;
    }

    if (id.len == 0 || id.len > NGX_HTTP_SANDBOX_LOCK_SESSION
        || memchr(id.data, '/', id.len) || memchr(id.data, '\0', id.len))
    {
        k->all = 1;
        return;
    }

    k->within.data = (char *) k->within_text;
    k->within.len = (size_t) (ngx_sprintf(k->within_text, "isolated:%*s",
                                          id.len, id.data)
                              - k->within_text);
}


/* Writes the text of a key to k->pos; its length. */

static size_t
ngx_http_sandbox_lock_text(ngx_http_sandbox_lock_keys_t *k, sb_str_t path)
{
    size_t   n;
    u_char  *p;

    if (k->within.len == 0) {
        return sb_lock_path((char *) k->pos, path);
    }

    /* in a session a relative path and an absolute one are taken for the same */

    p = ngx_cpymem(k->pos, k->within.data, k->within.len);
    *p++ = '/';
    n = sb_lock_path((char *) p, path);

    if (p[0] == '/') {
        ngx_memmove(p, p + 1, --n);

    } else if (n == 1 && p[0] == '.') {
        n = 0;
    }

    return k->within.len + (n ? n + 1 : 0);
}


static void
ngx_http_sandbox_lock_key(ngx_http_sandbox_lock_keys_t *k, sb_str_t path,
    ngx_uint_t write)
{
    size_t          n;
    ngx_uint_t      i;
    sb_lock_key_t  *key;

    if (k->n == SB_LOCK_KEYS
        || path.len > SB_LOCK_PATH - (k->within.len ? k->within.len + 1 : 0))
    {
        k->all = 1;
        return;
    }

    n = ngx_http_sandbox_lock_text(k, path);
    key = &k->keys[k->n];
    key->path = sb_str(k->pos, n);
    key->write = write;

    for (i = 0; i < k->n; i++) {
        if (k->keys[i].write == key->write
            && sb_eq(k->keys[i].path, key->path))
        {
            return;
        }
    }

    k->pos += n;
    k->n++;
}


/* The paths that an operation names. */

static void
ngx_http_sandbox_lock_gather(ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_lock_keys_t *k, ngx_uint_t write)
{
    size_t                      i, n;
    sb_request_file_t          *f;
    const sb_multipart_file_t  *m;

    if (ctx->op->flags & SB_OPF_UPLOAD) {

        if (ctx->multipart == NULL) {
            /* it was not read: execd refuses what has no parts */
            k->all = !ctx->multipart_bad;
            return;
        }

        n = sb_multipart_count(ctx->multipart);

        for (i = 0; i < n && !k->all; i++) {
            m = sb_multipart_file(ctx->multipart, i);

            if (m->path.len) {
                ngx_http_sandbox_lock_key(k, m->path, 1);
            }
        }

        return;
    }

    if (ctx->facts == NULL) {
        return;
    }

    if (ctx->facts->files_total > ctx->facts->nfiles) {
        k->all = 1;
    }

    for (i = 0; i < ctx->facts->nfiles && !k->all; i++) {
        f = &ctx->facts->files[i];

        ngx_http_sandbox_lock_key(k, f->path, write);

        if (f->old_path.len) {
            ngx_http_sandbox_lock_key(k, f->old_path, write);
        }
    }
}


ngx_int_t
ngx_http_sandbox_lock_ask(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    char                          *mem;
    size_t                         declared;
    sb_rc_t                        rc;
    ngx_uint_t                     i, limit, write, may_pass;
    const char                    *why;
    sb_lock_key_t                  keys[SB_LOCK_KEYS];
    sb_frame_writer_t              w;
    ngx_http_sandbox_lock_t       *l;
    ngx_http_sandbox_lock_keys_t  *k;
    ngx_http_sandbox_lock_kind_t   kind;

    if (!lcf->locks && !lcf->limits) {
        return NGX_OK;
    }

    if (ctx->route.sandbox.len == 0 || !ngx_http_sandbox_helper_active()) {
        return NGX_OK;
    }

    ngx_http_sandbox_lock_kind(ctx, &kind);

    k = &ngx_http_sandbox_lock_keys;
    k->n = 0;
    k->all = 0;
    k->within.len = 0;
    k->pos = k->texts;

    write = kind.write || kind.limit == SB_LIMIT_COMMAND;

    if (lcf->locks && kind.locks) {
        ngx_http_sandbox_lock_within(ctx, k);

        if (kind.session) {
            ngx_http_sandbox_lock_key(k, sb_lit("/"), kind.write);

        } else {
            ngx_http_sandbox_lock_gather(ctx, k, kind.write);
        }

        /* what a header declares is the sandbox's */
        k->within.len = 0;
    }

    if (ctx->lock_keys.len) {
        mem = ngx_pnalloc(r->pool, ctx->lock_keys.len + 2 * SB_LOCK_KEYS);
        if (mem == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = sb_lock_read(keys, &declared,
                          ngx_http_sandbox_str(&ctx->lock_keys), mem, &why);

        if (rc != SB_OK) {
            return ngx_http_sandbox_lock_ambiguous(r, ctx, why);
        }

        for (i = 0; i < declared; i++) {
            ngx_http_sandbox_lock_key(k, keys[i].path, keys[i].write);
            write = write || keys[i].write;
        }
    }

    if (k->all) {
        /* more than can be told: all there is */
        k->n = 0;
        k->pos = k->texts;
        ngx_http_sandbox_lock_key(k, sb_lit("/"), write);
        ngx_http_sandbox_lock_key(k, sb_lit("."), write);
    }

    limit = lcf->limits ? lcf->limits->most[kind.limit] : 0;

    if (k->n == 0 && limit == 0 && ctx->lock_lease.len == 0) {
        return NGX_OK;
    }

    may_pass = ctx->mode != NGX_HTTP_SANDBOX_STRICT && !kind.write
               && ctx->lock_keys.len == 0 && ctx->lock_lease.len == 0;

    if (ngx_http_sandbox_helper_away(lcf->timeout)) {

        if (!may_pass) {
            return ngx_http_sandbox_lock_away(r, ctx);
        }

        ngx_http_sandbox_metric_add(LOCKS_PASSED, 1);
        return NGX_OK;
    }

    if (!ctx->lock_timed) {
        ctx->lock_timeout = lcf->lock_timeout;
    }

    sb_frame_begin(&w, ngx_http_sandbox_lock_frame, NGX_HTTP_SANDBOX_LOCK_FRAME,
                   SB_F_KEYS, SB_FF_STRICT, 0, ctx->id, sb_now_us());

    sb_frame_put(&w, SB_T_SANDBOX, ctx->route.sandbox);
    sb_frame_put(&w, SB_T_TYPE, sb_str(ctx->op->name,
                                       ngx_strlen(ctx->op->name)));

    if (ctx->actor_id.len && ctx->actor_id.len < 1024) {
        sb_frame_put(&w, SB_T_ACTOR_ID, ngx_http_sandbox_str(&ctx->actor_id));
    }

    for (i = 0; i < k->n; i++) {
        sb_frame_put(&w, k->keys[i].write ? SB_T_LOCK_WRITE : SB_T_LOCK_READ,
                     k->keys[i].path);
    }

    sb_frame_put_u64(&w, SB_T_LOCK_MS, ctx->lock_timeout);

    if (ctx->lock_lease.len && ctx->lock_lease.len <= 256) {
        sb_frame_put(&w, SB_T_LOCK_LEASE,
                     ngx_http_sandbox_str(&ctx->lock_lease));

    } else if (ctx->lock_lease.len) {
        /* none of ours */
        sb_frame_put(&w, SB_T_LOCK_LEASE, sb_lit("?"));
    }

    if (limit) {
        sb_frame_put_u64(&w, SB_T_LOCK_CLASS, kind.limit);
        sb_frame_put_u64(&w, SB_T_LIMIT, limit);
        sb_frame_put_u64(&w, SB_T_LIMIT_QUEUE, lcf->limits->queue);
        sb_frame_put_u64(&w, SB_T_LIMIT_MS, lcf->limits->timeout);
    }

    if (ctx->lock_keys.len) {
        sb_frame_put(&w, SB_T_DECLARED, sb_lit(""));
    }

    l = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_lock_t));
    if (l == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    l->len = sb_frame_end(&w);
    l->frame = l->len ? ngx_pnalloc(r->pool, l->len) : NULL;

    if (l->frame == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(l->frame, ngx_http_sandbox_lock_frame, l->len);

    l->ctx = ctx;
    l->may_pass = may_pass;
    l->deadline = ngx_current_msec + ctx->lock_timeout
                  + (limit ? lcf->limits->timeout : 0)
                  + NGX_HTTP_SANDBOX_LOCK_GRACE;

    if (ngx_http_sandbox_lock_add(l) != NGX_OK) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "GATEWAY_OVERLOADED",
                                       "The queue to the helper is full and "
                                       "this operation needs a lock; try again "
                                       "shortly.", NULL);
    }

    ctx->lock = l;

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_lock_done(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx,
    ngx_http_sandbox_loc_conf_t *lcf)
{
    ngx_str_t                 details;
    ngx_http_sandbox_lock_t  *l;

    l = ctx->lock;

    if (!l->answered) {
        ctx->waiting = 1;

        /* else a client that leaves is not noticed */
        r->read_event_handler = ngx_http_test_reading;

        ngx_http_sandbox_lock_wait(l);

        return NGX_AGAIN;
    }

    switch (l->code) {

    case SB_LOCK_GRANTED:
        return NGX_OK;

    case SB_LOCK_LATE:
        if (ngx_http_sandbox_lock_details(r, l, &details) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_sandbox_refuse(r, ctx, 423 /* Locked */,
                                       "GATEWAY_LOCK_TIMEOUT",
                                       "A path that this operation needs was "
                                       "not free in time.", &details);

    case SB_LOCK_LEASE:
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_CONFLICT,
                                       "GATEWAY_LEASE_INVALID",
                                       "The lease in X-Sandbox-Lease is "
                                       "unknown, of another sandbox, or over.",
                                       NULL);

    case SB_LOCK_BUSY:
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_TOO_MANY_REQUESTS,
                                       "GATEWAY_BUSY",
                                       "Too many operations of this kind run "
                                       "in the sandbox (sandbox_limits); try "
                                       "again shortly.", NULL);

    case SB_LOCK_BROKEN:
        return ngx_http_sandbox_refuse(r, ctx, 423,
                                       "GATEWAY_LOCK_TIMEOUT",
                                       "An administrator has ended the waiting "
                                       "for a lock.", NULL);

    default:
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "GATEWAY_OVERLOADED",
                                       "The helper has no room for more locks, "
                                       "or did not answer; try again shortly.",
                                       NULL);
    }
}


/* What writes, or asks for a lock by name, does not go on without one, however
 * it is recorded. */

static ngx_int_t
ngx_http_sandbox_lock_away(ngx_http_request_t *r, ngx_http_sandbox_ctx_t *ctx)
{
    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   "GATEWAY_RECORDER_UNAVAILABLE",
                                   "This operation needs a lock and the helper "
                                   "that grants it does not answer; try again "
                                   "shortly.", NULL);
}


static ngx_int_t
ngx_http_sandbox_lock_details(ngx_http_request_t *r, ngx_http_sandbox_lock_t *l,
    ngx_str_t *details)
{
    sb_buf_t         b;
    ngx_pool_cleanup_t  *cln;

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = 65536;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    if (sb_buf_add_str(&b, sb_lit("\"key\":")) != SB_OK
        || sb_json_write_str(&b, ngx_http_sandbox_str(&l->key)) != SB_OK
        || sb_buf_printf(&b, ",\"mode\":\"%s\",\"holder\":{\"id\":",
                         l->write ? "write" : "read") != SB_OK
        || sb_json_write_str(&b, ngx_http_sandbox_str(&l->holder)) != SB_OK
        || sb_buf_add_str(&b, sb_lit(",\"actor\":")) != SB_OK
        || sb_json_write_str(&b, ngx_http_sandbox_str(&l->actor)) != SB_OK
        || (l->owner.len
            && (sb_buf_add_str(&b, sb_lit(",\"owner\":")) != SB_OK
                || sb_json_write_str(&b, ngx_http_sandbox_str(&l->owner))
                   != SB_OK))
        || sb_buf_printf(&b, "},\"waited_ms\":%llu",
                         (unsigned long long) (l->waited_us / 1000)) != SB_OK)
    {
        sb_buf_free(&b);
        return NGX_ERROR;
    }

    cln->handler = free;
    cln->data = b.data;

    details->data = (u_char *) b.data;
    details->len = b.len;

    return NGX_OK;
}
