/*
 * Policies.  A verdict needs the names of all files: those in a query or a JSON
 * body are there by then, those of an upload after its last byte, so nginx
 * spools a judged upload and nothing of it goes upstream before the verdict.
 */


#include "ngx_http_sandbox_archive.h"
#include "ngx_http_sandbox_known.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_policy.h"
#include "policy_known.h"


/* of an upload, between two looks at its limits */
#define NGX_HTTP_SANDBOX_POLICY_STEP  (4 * 1024 * 1024)

/* of a path in an answer */
#define NGX_HTTP_SANDBOX_POLICY_PATH  1024


typedef enum {
    NGX_HTTP_SANDBOX_POLICY_EARLY = 0,      /* its files are still coming */
    NGX_HTTP_SANDBOX_POLICY_NOW,
    NGX_HTTP_SANDBOX_POLICY_AGAIN           /* by other rules than before */
} ngx_http_sandbox_policy_when_e;


static ngx_int_t ngx_http_sandbox_policy_read(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static ngx_int_t ngx_http_sandbox_policy_verdict(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    sb_policy_t *policy, ngx_http_sandbox_policy_when_e when);
static size_t ngx_http_sandbox_policy_room(ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_policy_files(ngx_http_sandbox_ctx_t *ctx,
    sb_policy_request_t *p, sb_policy_file_t *f);
static size_t ngx_http_sandbox_policy_metadata(ngx_http_sandbox_ctx_t *ctx,
    sb_policy_pair_t *pair);
static ngx_int_t ngx_http_sandbox_policy_refuse(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
static void ngx_http_sandbox_policy_cleanup(void *data);


static const char  *ngx_http_sandbox_policy_roles[] = {
    "viewer", "operator", "admin"
};


/* sandbox_policy FILE | off */

char *
ngx_http_sandbox_conf_policy(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_str_t           *value, text;
    sb_policy_t         *policy;
    sb_policy_error_t    error;
    ngx_pool_cleanup_t  *cln;

    if (lcf->policy != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        lcf->policy = NULL;
        return NGX_CONF_OK;
    }

    if (ngx_http_sandbox_read_file(cf, cmd, &value[1], &text) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_CONF_ERROR;
    }

    switch (sb_policy_parse(ngx_http_sandbox_str(&text),
                            (const char *) value[1].data, &policy, &error))
    {

    case SB_OK:
        break;

    case SB_ERROR:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "sandbox_policy: %s",
                           error.text);
        return NGX_CONF_ERROR;

    default:
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_sandbox_policy_cleanup;
    cln->data = policy;

    lcf->policy = policy;

    return NGX_CONF_OK;
}


static void
ngx_http_sandbox_policy_cleanup(void *data)
{
    sb_policy_free(data);
}


ngx_int_t
ngx_http_sandbox_policy_judge(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf)
{
    unsigned   asks;
    ngx_int_t  rc;

    if (!ctx->authenticated) {
        /* "GET /health" of a load balancer */
        return NGX_OK;
    }

    if (ctx->archive && ngx_http_sandbox_archive_waits(ctx)) {
        return NGX_AGAIN;
    }

    if (sb_op_index(ctx->op) == SB_OP_SANDBOX_CREATE) {
        ngx_http_sandbox_known_making(r, ctx);
    }

    asks = ctx->route.sandbox.len ? sb_policy_asks(lcf->policy, ctx->op) : 0;
    asks &= SB_POLICY_METADATA|SB_POLICY_MOUNTS;

    if (asks) {
        rc = ngx_http_sandbox_known_find(r, ctx, asks);

        if (rc != NGX_OK) {
            return rc == NGX_AGAIN ? NGX_AGAIN : NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ctx->op->flags & SB_OPF_UPLOAD && !ctx->body_done
        && sb_policy_reads(lcf->policy, ctx->op))
    {
        return ngx_http_sandbox_policy_read(r, ctx);
    }

    rc = ngx_http_sandbox_policy_verdict(r, ctx, lcf, lcf->policy,
                                         NGX_HTTP_SANDBOX_POLICY_NOW);

    if (rc == NGX_DECLINED) {
        /* an archive of which nothing can be known */
        rc = ngx_http_sandbox_policy_verdict(r, ctx, lcf, lcf->policy,
                                             NGX_HTTP_SANDBOX_POLICY_NOW);
    }

    if (rc != NGX_OK) {
        return rc == NGX_AGAIN ? NGX_AGAIN : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->policed = 1;

    if (ctx->verdict->observed) {
        ngx_http_sandbox_metric_add(POLICY_OBSERVED, 1);
    }

    if (ctx->verdict->unread) {
        ngx_http_sandbox_metric_add(POLICY_UNREAD, 1);
    }

    if (ctx->verdict->decision == SB_POLICY_DENY) {
        ngx_http_sandbox_metric_add(POLICY_DENIED, 1);
        return ngx_http_sandbox_policy_refuse(r, ctx);
    }

    ngx_http_sandbox_metric_add(POLICY_ALLOWED, 1);

    return NGX_OK;
}


ngx_int_t
ngx_http_sandbox_policy_again(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    sb_policy_t *policy)
{
    unsigned  seen;

    if (ctx->op->flags & SB_OPF_UPLOAD) {

        if ((!ctx->body_done || ctx->multipart == NULL)
            && sb_policy_reads(policy, ctx->op))
        {
            return NGX_DECLINED;
        }

        /* its files were looked at for what the rules of before ask for */

        seen = lcf->policy ? sb_policy_asks(lcf->policy, ctx->op) : 0;

        if (sb_policy_asks(policy, ctx->op) & ~seen
            & (SB_POLICY_CONTENT|SB_POLICY_ARCHIVE))
        {
            return NGX_DECLINED;
        }
    }

    if (ngx_http_sandbox_policy_verdict(r, ctx, lcf, policy,
                                        NGX_HTTP_SANDBOX_POLICY_AGAIN)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->verdict->decision != SB_POLICY_DENY) {
        return NGX_OK;
    }

    if (ctx->verdict->uninspected) {
        return NGX_DECLINED;
    }

    ngx_http_sandbox_metric_add(POLICY_DENIED, 1);

    return ngx_http_sandbox_policy_refuse(r, ctx);
}


/* Spools an upload while it is read for its names and sizes. */

static ngx_int_t
ngx_http_sandbox_policy_read(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_sandbox_upload_start(r, ctx);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED || ctx->multipart == NULL) {
        return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_BAD_REQUEST,
                                       "GATEWAY_AMBIGUOUS_REQUEST",
                                       "An upload that is judged must have one "
                                       "Content-Type, multipart/form-data with "
                                       "one boundary.", NULL);
    }

    ctx->looked = NGX_HTTP_SANDBOX_POLICY_STEP;

    return ngx_http_sandbox_spool_upload(r, ctx);
}


ngx_int_t
ngx_http_sandbox_policy_early(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf)
{
    if (ctx->bytes_in < ctx->looked) {
        return NGX_OK;
    }

    ctx->looked = ctx->bytes_in + NGX_HTTP_SANDBOX_POLICY_STEP;

    if (ngx_http_sandbox_policy_verdict(r, ctx, lcf, lcf->policy,
                                        NGX_HTTP_SANDBOX_POLICY_EARLY)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->verdict->decision != SB_POLICY_DENY || !ctx->verdict->limit) {
        return NGX_OK;
    }

    /* sizes and counts only grow */

    ngx_http_sandbox_metric_add(POLICY_DENIED, 1);
    ngx_http_sandbox_metric_refused("GATEWAY_LIMIT_EXCEEDED");

    ctx->reason = "denied";
    ngx_str_set(&ctx->error_code, "GATEWAY_LIMIT_EXCEEDED");

    return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
}


static ngx_int_t
ngx_http_sandbox_policy_verdict(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    sb_policy_t *policy, ngx_http_sandbox_policy_when_e when)
{
    size_t                pairs;
    sb_rc_t               rc;
    ngx_int_t             next;
    sb_policy_file_t     *files;
    sb_policy_pair_t     *metadata;
    sb_policy_known_t     known;
    sb_policy_request_t   p;

    if (ctx->verdict == NULL) {
        ctx->verdict = ngx_palloc(r->pool, sizeof(sb_policy_verdict_t));
        if (ctx->verdict == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memzero(&p, sizeof(sb_policy_request_t));

    p.op = ctx->op;
    p.actor_type = ngx_http_sandbox_str(&ctx->actor_type);
    p.actor_id = ngx_http_sandbox_str(&ctx->actor_id);
    p.sandbox = ctx->route.sandbox;
    p.port = ctx->route.port;

    if (ctx->token) {
        p.role.data = ngx_http_sandbox_policy_roles[ctx->token->role];
        p.role.len = ngx_strlen(p.role.data);
    }

    next = NGX_OK;
    files = NULL;
    metadata = NULL;
    p.files_total = ngx_http_sandbox_policy_room(ctx);

    if (p.files_total) {
        files = ngx_alloc(p.files_total * sizeof(sb_policy_file_t),
                          r->connection->log);
        if (files == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(files, p.files_total * sizeof(sb_policy_file_t));
        ngx_http_sandbox_policy_files(ctx, &p, files);

        if (ctx->multipart && when != NGX_HTTP_SANDBOX_POLICY_EARLY
            && (sb_policy_asks(policy, ctx->op) & SB_POLICY_ARCHIVE))
        {
            ngx_http_sandbox_archive_facts(ctx, files, p.nfiles,
                                           when
                                           == NGX_HTTP_SANDBOX_POLICY_AGAIN);
        }
    }

    ngx_memzero(&known, sizeof(sb_policy_known_t));

    rc = SB_OK;

    if (ctx->known.len) {
        rc = sb_policy_known_read(&known, ngx_http_sandbox_str(&ctx->known));

        p.has_metadata = known.has_metadata;
        p.metadata = known.metadata;
        p.nmetadata = known.nmetadata;
        p.has_mounts = known.has_mounts;
        p.mounts = known.mounts;
        p.nmounts = known.nmounts;
    }

    if (rc == SB_OK && ctx->facts) {
        p.has_command = ctx->facts->has_command || ctx->facts->command.len;
        p.command = ctx->facts->command;
        p.argv = ctx->facts->argv;
        p.dark = sb_op_index(ctx->op) == SB_OP_CODE_EXECUTE
                 || ctx->facts->env_runs;
        p.has_image = ctx->facts->has_image;
        p.image = ctx->facts->image;
        p.images = ctx->facts->images;
        p.nimages = ctx->facts->nimages;
        p.image_unread = ctx->facts->image_unread;

        if (sb_op_index(ctx->op) == SB_OP_PTY_OPEN) {
            /* what will be typed there */
            p.has_command = true;
            p.dark = true;
        }

        if (sb_op_index(ctx->op) == SB_OP_SANDBOX_CREATE) {
            pairs = ngx_http_sandbox_policy_metadata(ctx, NULL);

            metadata = ngx_alloc((pairs + 1) * sizeof(sb_policy_pair_t),
                                 r->connection->log);

            p.has_metadata = true;
            p.metadata = metadata;

            if (metadata) {
                p.nmetadata = ngx_http_sandbox_policy_metadata(ctx, metadata);

            } else {
                rc = SB_NOMEM;
            }
        }
    }

    if (rc == SB_OK) {
        rc = when == NGX_HTTP_SANDBOX_POLICY_EARLY
             ? sb_policy_check_limits(policy, &p, ctx->verdict)
             : sb_policy_check(policy, &p, ctx->verdict);
    }

    if (rc == SB_OK && when == NGX_HTTP_SANDBOX_POLICY_NOW
        && ctx->verdict->pending
        && ctx->verdict->decision != SB_POLICY_DENY)
    {
        next = ngx_http_sandbox_archive_ask(r, ctx, lcf, p.files, p.nfiles);
    }

    sb_policy_known_free(&known);
    ngx_free(metadata);
    ngx_free(files);

    if (rc != SB_OK || next != NGX_OK) {
        ctx->verdict = NULL;
        return rc == SB_OK ? next : NGX_ERROR;
    }

    return NGX_OK;
}


/* How many files there may be to judge. */

static size_t
ngx_http_sandbox_policy_room(ngx_http_sandbox_ctx_t *ctx)
{
    return ctx->multipart ? sb_multipart_count(ctx->multipart)
           : ctx->facts ? 2 * ctx->facts->nfiles
           : 0;
}


static void
ngx_http_sandbox_policy_files(ngx_http_sandbox_ctx_t *ctx,
    sb_policy_request_t *p, sb_policy_file_t *f)
{
    size_t                      i, n;
    const sb_request_file_t    *file;
    const sb_multipart_file_t  *m;

    p->files = f;
    n = 0;

    if (ctx->multipart) {

        p->has_size = true;

        for (i = 0; i < p->files_total; i++) {
            m = sb_multipart_file(ctx->multipart, i);

            p->size += m->size;

            if (!m->has_metadata && !ctx->body_done) {
                /* its name may still come */
                continue;
            }

            f[n].path = m->path;
            f[n].mode = m->mode;
            f[n].has_size = true;
            f[n].size = m->size;
            f[n].has_found = true;
            f[n].found = m->found;
            n++;
        }

        p->nfiles = n;
        p->files_total = n;

        return;
    }

    for (i = 0; i < ctx->facts->nfiles; i++) {
        file = &ctx->facts->files[i];

        f[n].has_found = false;

        if (file->old_path.len) {
            f[n].path = file->old_path;
            f[n].mode = SB_MODE_NONE;
            f[n].has_size = false;
            n++;
        }

        f[n].path = file->path;
        f[n].mode = file->mode;
        f[n].has_size = false;
        f[n].has_found = sb_op_index(ctx->op) == SB_OP_FILE_REPLACE
                         || sb_op_index(ctx->op)
                            == SB_OP_ISOLATED_FILE_REPLACE;
        f[n].found = ctx->facts->found;
        n++;
    }

    p->nfiles = n;
    p->files_total = n + ctx->facts->files_total - ctx->facts->nfiles;
}


/* The texts in the metadata of a new sandbox; their number when pair is NULL.
 */

static size_t
ngx_http_sandbox_policy_metadata(ngx_http_sandbox_ctx_t *ctx,
    sb_policy_pair_t *pair)
{
    size_t          n;
    const sb_jv_t  *v;

    n = 0;

    for (v = ctx->facts->metadata ? ctx->facts->metadata->child : NULL;
         v;
         v = v->next)
    {
        if (v->kind != SB_JSON_STRING) {
            continue;
        }

        if (pair) {
            pair[n].key = v->key;
            pair[n].value = v->text;
        }

        n++;
    }

    return n;
}


ngx_int_t
ngx_http_sandbox_policy_details(ngx_http_request_t *r,
    sb_policy_verdict_t *v, ngx_str_t *details)
{
    sb_rc_t   rc;
    sb_buf_t  b;

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = 64 * 1024;

    rc = sb_buf_printf(&b, "\"line\":%u", v->line);

    if (rc == SB_OK && v->path.len) {
        rc = sb_buf_add_str(&b, sb_lit(",\"path\":"));

        if (rc == SB_OK) {
            rc = sb_json_write_str(&b, sb_str(v->path.data,
                                              sb_utf8_cut(v->path,
                                              NGX_HTTP_SANDBOX_POLICY_PATH)));
        }
    }

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_archive_details(&b, v);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(&b, sb_lit(",\"reason\":"));
    }

    if (rc == SB_OK) {
        rc = sb_json_write_str(&b, sb_str(v->reason, ngx_strlen(v->reason)));
    }

    if (rc == SB_OK) {
        rc = sb_buf_printf(&b, ",\"rule\":\"%s\"", v->rule);
    }

    details->data = rc == SB_OK ? ngx_pnalloc(r->pool, b.len) : NULL;

    if (details->data) {
        details->len = b.len;
        ngx_memcpy(details->data, b.data, b.len);
    }

    sb_buf_free(&b);

    return details->data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_sandbox_policy_refuse(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx)
{
    ngx_str_t             details;
    sb_policy_verdict_t  *v;

    v = ctx->verdict;

    if (ngx_http_sandbox_policy_details(r, v, &details) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->reason = "denied";

    if (v->limit) {
        return ngx_http_sandbox_refuse(r, ctx,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "GATEWAY_LIMIT_EXCEEDED", v->reason,
                                       &details);
    }

    return ngx_http_sandbox_refuse(r, ctx, NGX_HTTP_FORBIDDEN,
                                   "GATEWAY_POLICY_DENIED", v->reason,
                                   &details);
}


void
ngx_http_sandbox_policy_text(ngx_http_sandbox_ctx_t *ctx, ngx_str_t *decision,
    ngx_str_t *rule)
{
    sb_policy_verdict_t  *v;

    ngx_str_null(decision);
    ngx_str_null(rule);

    v = ctx->verdict;

    if (v == NULL || v->rule == NULL) {
        return;
    }

    if (v->decision == SB_POLICY_DENY) {
        ngx_str_set(decision, "deny");
        rule->data = (u_char *) v->rule;

    } else if (v->observed) {
        ngx_str_set(decision, "observe");
        rule->data = (u_char *) v->observed;

    } else {
        ngx_str_set(decision, "allow");
        rule->data = (u_char *) v->rule;
    }

    rule->len = ngx_strlen(rule->data);
}


void
ngx_http_sandbox_policy_put(sb_frame_writer_t *w, ngx_http_sandbox_ctx_t *ctx)
{
    ngx_str_t             decision, rule;
    sb_policy_verdict_t  *v;

    v = ctx->verdict;

    ngx_http_sandbox_policy_text(ctx, &decision, &rule);

    if (decision.len == 0) {
        return;
    }

    sb_frame_put(w, SB_T_VERDICT, ngx_http_sandbox_str(&decision));
    sb_frame_put(w, SB_T_RULE, ngx_http_sandbox_str(&rule));

    if (v->decision == SB_POLICY_DENY && v->path.len) {
        sb_frame_put(w, SB_T_RULE_PATH,
                     sb_str(v->path.data,
                            sb_utf8_cut(v->path,
                                        NGX_HTTP_SANDBOX_POLICY_PATH)));
    }

    if (v->unread) {
        sb_frame_put(w, SB_T_UNREAD, sb_lit(""));
    }
}
