/* Where files of a sandbox are read, and how (ngx_http_sandbox_download.h). */


#include "ngx_http_sandbox_download.h"
#include "ngx_http_sandbox_headers.h"


#define NGX_HTTP_SANDBOX_DOWNLOAD_PATH   2048     /* of a file, at most */
#define NGX_HTTP_SANDBOX_DOWNLOAD_VALUE  4096     /* of a credential */


static void ngx_http_sandbox_download_head(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_frame_writer_t *w);
static void ngx_http_sandbox_download_line(sb_frame_writer_t *w,
    const char *name, ngx_str_t *value);


/* what the sandbox wants to see of its client */

static ngx_str_t  ngx_http_sandbox_download_names[] = {
    ngx_string("x-execd-access-token"),
    ngx_string("opensandbox-secure-access"),
    ngx_string("opensandbox-ingress-to")
};


/*
 * Where execd's files are read: what goes upstream, without what the operation
 * itself is called ("/files/upload").  An ingress is not known by address, so
 * there it is the server proxy.
 */

ngx_int_t
ngx_http_sandbox_download_init(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_download_t *d)
{
    u_char                       *p, *last;
    size_t                        i, up;
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_sandbox_module);

    d->origin = lcf->upstream->url;

    if (ctx->ingress) {
        p = ngx_pnalloc(r->pool, sizeof("/v1/sandboxes//proxy/")
                                 + 3 * ctx->route.sandbox.len + NGX_INT32_LEN);
        if (p == NULL) {
            return NGX_ERROR;
        }

        d->prefix.data = p;
        p = ngx_cpymem(p, "/v1/sandboxes/", sizeof("/v1/sandboxes/") - 1);
        p = (u_char *) ngx_escape_uri(p, (u_char *) ctx->route.sandbox.data,
                                      ctx->route.sandbox.len,
                                      NGX_ESCAPE_URI_COMPONENT);
        p = ngx_sprintf(p, "/proxy/%uD", ctx->route.port);
        d->prefix.len = p - d->prefix.data;

        return NGX_OK;
    }

    if (ctx->road) {
        d->origin.len = sizeof("https://") - 1 + ctx->road->host.len;
        d->origin.data = ngx_pnalloc(r->pool, d->origin.len);
        if (d->origin.data == NULL) {
            return NGX_ERROR;
        }

        d->origin.len = ngx_sprintf(d->origin.data, "%s%V",
                                    lcf->upstream->tls ? "https://"
                                                       : "http://",
                                    &ctx->road->host)
                        - d->origin.data;
    }

    up = 0;

    for (i = 0; i < ctx->route.path.len; i++) {
        up += ctx->route.path.data[i] == '/';
    }

    p = ctx->upstream_uri.data;
    last = ngx_strlchr(p, p + ctx->upstream_uri.len, '?');
    last = last ? last : p + ctx->upstream_uri.len;

    while (up && last > p) {
        last--;
        up -= *last == '/';
    }

    d->prefix.data = p;
    d->prefix.len = last - p;

    return NGX_OK;
}


ngx_uint_t
ngx_http_sandbox_download_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_download_t *d, sb_str_t path,
    size_t file, ngx_uint_t kind, ngx_http_sandbox_fetched_pt done, void *data)
{
    u_char             *p;
    size_t              size;
    ngx_str_t           target;
    sb_frame_writer_t   w;

    if (path.len == 0 || path.len > NGX_HTTP_SANDBOX_DOWNLOAD_PATH
        || d->prefix.len > NGX_HTTP_SANDBOX_DOWNLOAD_PATH)
    {
        return 0;
    }

    size = d->prefix.len + sizeof("/files/download?path=") + 3 * path.len;

    target.data = ngx_pnalloc(r->pool, size);
    if (target.data == NULL) {
        return 0;
    }

    p = ngx_sprintf(target.data, "%V/files/download?path=", &d->prefix);
    p = (u_char *) ngx_escape_uri(p, (u_char *) path.data, path.len,
                                  NGX_ESCAPE_URI_COMPONENT);
    target.len = p - target.data;

    size = SB_FRAME_HEAD + 512 + target.len + d->origin.len + path.len
           + ctx->upstream_host.len + ctx->route.sandbox.len
           + 3 * (NGX_HTTP_SANDBOX_DOWNLOAD_VALUE + 64);

    if (ngx_http_sandbox_fetch_begin(&w, size, ctx->id) != NGX_OK) {
        return 0;
    }

    sb_frame_put(&w, SB_T_UPSTREAM, ngx_http_sandbox_str(&d->origin));
    sb_frame_put(&w, SB_T_TARGET, ngx_http_sandbox_str(&target));
    ngx_http_sandbox_download_head(r, ctx, &w);
    sb_frame_put(&w, SB_T_SANDBOX, ctx->route.sandbox);
    sb_frame_put(&w, SB_T_FILE_PATH, path);
    sb_frame_put_u64(&w, SB_T_FILE_N, file);
    sb_frame_put_u64(&w, SB_T_FILE_KIND, kind);

    return ngx_http_sandbox_fetch_send(&w, done, data);
}


static void
ngx_http_sandbox_download_head(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_frame_writer_t *w)
{
    ngx_uint_t                    i, n;
    ngx_list_part_t              *part;
    ngx_table_elt_t              *h;

    if (ctx->road) {
        sb_frame_put(w, SB_T_ADDRESS, ngx_http_sandbox_str(&ctx->road->name));

    } else if (!ctx->ingress) {
        ngx_http_sandbox_download_line(w, "Host", &ctx->upstream_host);
    }

    ngx_http_sandbox_each_header(r, part, h, i) {

        for (n = 0; n < sizeof(ngx_http_sandbox_download_names)
                        / sizeof(ngx_http_sandbox_download_names[0]); n++)
        {
            if (h[i].key.len == ngx_http_sandbox_download_names[n].len
                && ngx_strncmp(h[i].lowcase_key,
                               ngx_http_sandbox_download_names[n].data,
                               h[i].key.len)
                   == 0
                && h[i].value.len <= NGX_HTTP_SANDBOX_DOWNLOAD_VALUE)
            {
                ngx_http_sandbox_download_line(w, (const char *)
                                         ngx_http_sandbox_download_names[n].data,
                                             &h[i].value);
            }
        }
    }
}


static void
ngx_http_sandbox_download_line(sb_frame_writer_t *w, const char *name,
    ngx_str_t *value)
{
    u_char  *p;
    u_char   line[NGX_HTTP_SANDBOX_DOWNLOAD_VALUE + 64];

    p = ngx_snprintf(line, sizeof(line), "%s: %V", name, value);

    sb_frame_put(w, SB_T_HEADER, sb_str(line, (size_t) (p - line)));
    ngx_explicit_memzero(line, sizeof(line));
}
