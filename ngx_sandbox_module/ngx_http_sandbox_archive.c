/*
 * Archives in uploads (ngx_http_sandbox_archive.h).  A request that waits has a
 * connection to the helper of its own, for a descriptor goes with each question:
 * a part of the file in which nginx has spooled the body.  They are asked one
 * after the other.  When the connection breaks, or an answer takes too long,
 * nothing is known of those that are left, and a deny counts.
 */


#include "ngx_http_sandbox_archive.h"
#include "ngx_http_sandbox_metrics.h"
#include "policy_names.h"

#include <sys/mman.h>


#define NGX_HTTP_SANDBOX_ARCHIVE_SNDBUF  (256 * 1024)


typedef struct {
    size_t                           file;      /* of the upload */
    uint64_t                         most[SB_IN_COUNTS];
    sb_policy_archive_e              state;
    sb_inspect_t                     facts;
} ngx_http_sandbox_archive_file_t;


struct ngx_http_sandbox_archive_s {
    ngx_http_sandbox_ctx_t          *ctx;
    ngx_http_sandbox_loc_conf_t     *lcf;
    ngx_connection_t                *connection;    /* NULL: none */
    ngx_fd_t                         fd;            /* of the body */
    ngx_uint_t                       n;
    ngx_uint_t                       next;          /* that is asked about */
    ngx_http_sandbox_archive_file_t *files;
    size_t                           got;
    char                             in[SB_IN_ANSWER];

    unsigned                         open:1;
};


static ngx_fd_t ngx_http_sandbox_archive_body(ngx_http_request_t *r);
static ngx_fd_t ngx_http_sandbox_archive_memory(ngx_http_request_t *r);
static ngx_int_t ngx_http_sandbox_archive_connect(
    ngx_http_sandbox_archive_t *a);
static ngx_int_t ngx_http_sandbox_archive_send(ngx_http_sandbox_archive_t *a);
static ngx_int_t ngx_http_sandbox_archive_pass(ngx_http_sandbox_archive_t *a,
    u_char *frame, size_t len);
static void ngx_http_sandbox_archive_read_handler(ngx_event_t *rev);
static ngx_int_t ngx_http_sandbox_archive_read(ngx_http_sandbox_archive_t *a);
static void ngx_http_sandbox_archive_unknown(ngx_http_sandbox_archive_t *a,
    const char *why);
static void ngx_http_sandbox_archive_close(ngx_http_sandbox_archive_t *a);
static void ngx_http_sandbox_archive_resume(ngx_http_sandbox_archive_t *a);


static const sb_inspect_t  ngx_http_sandbox_archive_misnamed = {
    .found = SB_IN_MISNAMED,
    .why = "The file is named as an archive, and is none."
};

static const sb_inspect_t  ngx_http_sandbox_archive_others = {
    .why = "The rules have changed since the archive was looked into."
};

static const sb_inspect_t  ngx_http_sandbox_archive_many = {
    .why = "The upload has more archives than sandbox_archives lets be looked "
           "into."
};


void
ngx_http_sandbox_archive_facts(ngx_http_sandbox_ctx_t *ctx,
    sb_policy_file_t *files, size_t n, ngx_uint_t others)
{
    size_t                       i;
    ngx_uint_t                   k;
    ngx_http_sandbox_archive_t  *a;
    const sb_multipart_file_t   *m;

    a = ctx->archive;

    for (i = 0, k = 0; i < n; i++) {

        m = sb_multipart_file(ctx->multipart, i);

        if (!m->archive) {

            if (sb_inspect_named(m->path)) {
                files[i].archive = SB_POLICY_INSPECTED;
                files[i].facts = &ngx_http_sandbox_archive_misnamed;
            }

            continue;
        }

        if (others) {
            files[i].archive = SB_POLICY_UNINSPECTED;
            files[i].facts = &ngx_http_sandbox_archive_others;
            continue;
        }

        if (a == NULL) {
            files[i].archive = SB_POLICY_PENDING;
            continue;
        }

        /* those that were asked about stand in the order of the upload */

        while (k < a->n && a->files[k].file < i) {
            k++;
        }

        if (k < a->n && a->files[k].file == i) {
            files[i].archive = a->files[k].state;
            files[i].facts = &a->files[k].facts;

        } else {
            files[i].archive = SB_POLICY_UNINSPECTED;
            files[i].facts = &ngx_http_sandbox_archive_many;
        }
    }
}


ngx_int_t
ngx_http_sandbox_archive_ask(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_http_sandbox_loc_conf_t *lcf,
    const sb_policy_file_t *files, size_t n)
{
    size_t                       i;
    ngx_uint_t                   wanted;
    ngx_http_sandbox_archive_t  *a;

    if (ctx->archive) {
        return NGX_ERROR;
    }

    for (i = 0, wanted = 0; i < n && wanted < lcf->archives; i++) {
        wanted += files[i].wanted;
    }

    a = ngx_pcalloc(r->pool, sizeof(ngx_http_sandbox_archive_t));
    if (a == NULL) {
        return NGX_ERROR;
    }

    a->files = ngx_pcalloc(r->pool,
                           wanted * sizeof(ngx_http_sandbox_archive_file_t));
    if (a->files == NULL) {
        return NGX_ERROR;
    }

    a->ctx = ctx;
    a->lcf = lcf;
    a->fd = NGX_INVALID_FILE;

    for (i = 0; i < n && a->n < wanted; i++) {

        if (files[i].wanted) {
            a->files[a->n].file = i;
            a->files[a->n].state = SB_POLICY_UNINSPECTED;
            ngx_memcpy(a->files[a->n].most, files[i].most,
                       sizeof(files[i].most));
            a->n++;
        }
    }

    ctx->archive = a;

    a->fd = ngx_http_sandbox_archive_body(r);

    if (a->fd == NGX_INVALID_FILE
        || ngx_http_sandbox_archive_connect(a) != NGX_OK
        || ngx_http_sandbox_archive_send(a) != NGX_OK)
    {
        ngx_http_sandbox_archive_unknown(a, "The helper, which looks into "
                                         "archives, does not answer.");
        ngx_http_sandbox_archive_close(a);

        return NGX_DECLINED;
    }

    a->open = 1;

    /* else a client that leaves is not noticed */
    r->read_event_handler = ngx_http_test_reading;

    return NGX_AGAIN;
}


/* A descriptor of the body, for reading alone if the system has one. */

static ngx_fd_t
ngx_http_sandbox_archive_body(ngx_http_request_t *r)
{
    u_char      path[sizeof("/proc/self/fd/") + NGX_INT_T_LEN];
    ngx_fd_t    fd, other;

    if (r->request_body == NULL) {
        return NGX_INVALID_FILE;
    }

    if (r->request_body->temp_file) {
        fd = r->request_body->temp_file->file.fd;
        (void) ngx_sprintf(path, "/proc/self/fd/%d%Z", fd);

        other = open((char *) path, O_RDONLY|O_CLOEXEC);

        return other != NGX_INVALID_FILE ? other
                                         : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }

    return ngx_http_sandbox_archive_memory(r);
}


/* A body that was not spooled, as it fits into client_body_buffer_size. */

static ngx_fd_t
ngx_http_sandbox_archive_memory(ngx_http_request_t *r)
{
    size_t        n;
    ngx_fd_t      fd;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    fd = memfd_create("sandbox-upload", MFD_CLOEXEC|MFD_ALLOW_SEALING);

    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, ngx_errno,
                      "memfd_create() failed");
        return NGX_INVALID_FILE;
    }

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;
        n = ngx_buf_in_memory(b) ? (size_t) (b->last - b->pos) : 0;

        if ((b->in_file && n == 0)
            || (n && write(fd, b->pos, n) != (ssize_t) n))
        {
            (void) ngx_close_file(fd);
            return NGX_INVALID_FILE;
        }
    }

    (void) fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE|F_SEAL_SHRINK|F_SEAL_GROW
                                  |F_SEAL_SEAL);

    return fd;
}


static ngx_int_t
ngx_http_sandbox_archive_connect(ngx_http_sandbox_archive_t *a)
{
    int                            n;
    ngx_log_t                     *log;
    ngx_socket_t                   s;
    ngx_connection_t              *c;
    struct sockaddr_un             sa;
    ngx_http_sandbox_main_conf_t  *mcf;

    log = a->ctx->request->connection->log;
    mcf = ngx_http_get_module_main_conf(a->ctx->request,
                                        ngx_http_sandbox_module);

    if (!ngx_http_sandbox_helper_active()) {
        return NGX_DECLINED;
    }

    s = ngx_socket(AF_UNIX, SOCK_STREAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ERR, log, ngx_socket_errno,
                      ngx_socket_n " failed");
        return NGX_ERROR;
    }

    c = ngx_get_connection(s, log);

    if (c == NULL) {
        (void) ngx_close_socket(s);
        return NGX_ERROR;
    }

    a->connection = c;
    c->data = a;
    c->log = log;
    c->recv = ngx_recv;
    c->read->log = log;
    c->write->log = log;
    c->read->handler = ngx_http_sandbox_archive_read_handler;
    c->write->handler = ngx_http_empty_handler;

    n = NGX_HTTP_SANDBOX_ARCHIVE_SNDBUF;
    (void) setsockopt(s, SOL_SOCKET, SO_SNDBUF, (const void *) &n, sizeof(int));

    ngx_memzero(&sa, sizeof(struct sockaddr_un));
    sa.sun_family = AF_UNIX;
    ngx_memcpy(sa.sun_path, mcf->socket.data, mcf->socket.len);

    if (ngx_nonblocking(s) == -1
        || connect(s, (struct sockaddr *) &sa, sizeof(struct sockaddr_un))
           == -1)
    {
        ngx_log_error(NGX_LOG_ERR, log, ngx_socket_errno,
                      "sandbox helper: cannot connect for an archive");
        return NGX_ERROR;
    }

    return ngx_handle_read_event(c->read, 0);
}


/* The question about the next one. */

static ngx_int_t
ngx_http_sandbox_archive_send(ngx_http_sandbox_archive_t *a)
{
    size_t                      len;
    u_char                     *p;
    ngx_int_t                   rc;
    ngx_uint_t                  i;
    sb_frame_writer_t           w;
    const sb_multipart_file_t  *m;

    p = ngx_alloc(SB_IN_FRAME, a->connection->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    m = sb_multipart_file(a->ctx->multipart, a->files[a->next].file);

    sb_frame_begin(&w, p, SB_IN_FRAME, SB_F_INSPECT, 0, a->next + 1,
                   a->ctx->id, sb_now_us());
    sb_frame_put_u64(&w, SB_T_FILE_OFFSET, m->offset);
    sb_frame_put_u64(&w, SB_T_FILE_SIZE, m->size);

    for (i = 0; i < SB_IN_COUNTS; i++) {
        sb_frame_put_u64(&w, SB_T_COUNT, a->files[a->next].most[i]);
    }

    sb_policy_names_put(a->lcf->policy, &w);

    len = sb_frame_end(&w);

    rc = len ? ngx_http_sandbox_archive_pass(a, p, len) : NGX_ERROR;

    ngx_free(p);

    if (rc == NGX_OK) {
        ngx_add_timer(a->connection->read, a->lcf->archive_timeout);
    }

    return rc;
}


/* All of it fits into the socket's buffer, or the helper does not read. */

static ngx_int_t
ngx_http_sandbox_archive_pass(ngx_http_sandbox_archive_t *a, u_char *frame,
    size_t len)
{
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *h;

    union {
        struct cmsghdr  align;
        char            mem[CMSG_SPACE(sizeof(int))];
    } control;

    iov.iov_base = frame;
    iov.iov_len = len;

    ngx_memzero(&msg, sizeof(struct msghdr));
    ngx_memzero(&control, sizeof(control));

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.mem;
    msg.msg_controllen = sizeof(control.mem);

    h = CMSG_FIRSTHDR(&msg);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    ngx_memcpy(CMSG_DATA(h), &a->fd, sizeof(int));

    n = sendmsg(a->connection->fd, &msg, MSG_NOSIGNAL);

    if (n != (ssize_t) len) {
        ngx_log_error(NGX_LOG_ERR, a->connection->log,
                      n == -1 ? ngx_socket_errno : 0,
                      "sandbox helper: a question about an archive cannot be "
                      "sent");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_sandbox_archive_read_handler(ngx_event_t *rev)
{
    ngx_int_t                    rc;
    const char                  *why;
    ngx_connection_t            *c;
    ngx_http_sandbox_archive_t  *a;

    c = rev->data;
    a = c->data;

    if (rev->timedout) {
        rc = NGX_ERROR;
        why = "It took longer than sandbox_archive_timeout to look into the "
              "archive.";

    } else {
        rc = ngx_http_sandbox_archive_read(a);
        why = "The helper, which looks into archives, went away.";
    }

    if (rc == NGX_AGAIN) {
        return;
    }

    if (rc == NGX_OK && a->next < a->n) {

        rc = ngx_http_sandbox_archive_send(a);

        if (rc == NGX_OK) {
            return;
        }
    }

    if (rc != NGX_OK) {
        ngx_http_sandbox_archive_unknown(a, why);
    }

    ngx_http_sandbox_archive_resume(a);
}


/* NGX_OK: the answer about the one that was asked is there. */

static ngx_int_t
ngx_http_sandbox_archive_read(ngx_http_sandbox_archive_t *a)
{
    size_t                            need;
    ssize_t                           n;
    sb_rc_t                           rc;
    sb_str_t                          text;
    sb_frame_t                        f;
    ngx_connection_t                 *c;
    ngx_http_sandbox_archive_file_t  *file;

    c = a->connection;

    for ( ;; ) {
        n = ngx_recv(c, (u_char *) a->in + a->got, sizeof(a->in) - a->got);

        if (n == NGX_AGAIN) {
            return ngx_handle_read_event(c->read, 0) == NGX_OK ? NGX_AGAIN
                                                               : NGX_ERROR;
        }

        if (n == NGX_ERROR || n == 0) {
            return NGX_ERROR;
        }

        a->got += n;

        rc = sb_frame_read(&f, a->in, a->got, &need);

        if (rc == SB_AGAIN && need <= sizeof(a->in)) {
            continue;
        }

        if (rc != SB_OK || f.length != a->got || f.type != SB_F_INSPECTED
            || f.seq != a->next + 1)
        {
            return NGX_ERROR;
        }

        break;
    }

    a->got = 0;
    file = &a->files[a->next++];

    if (sb_field_u64(&f, SB_T_CODE, 0) == 0
        && sb_inspect_get(&f, &file->facts))
    {
        file->state = SB_POLICY_INSPECTED;
        ngx_http_sandbox_metric_add(ARCHIVES, 1);
        return NGX_OK;
    }

    ngx_memzero(&file->facts, sizeof(sb_inspect_t));

    if (sb_field_get(&f, SB_T_REASON, &text)) {
        ngx_memcpy(file->facts.why, text.data,
                   ngx_min(text.len, SB_IN_WHY - 1));
    }

    ngx_http_sandbox_metric_add(ARCHIVES_UNKNOWN, 1);

    return NGX_OK;
}


/* Of those that are left nothing will be known. */

static void
ngx_http_sandbox_archive_unknown(ngx_http_sandbox_archive_t *a,
    const char *why)
{
    ngx_log_error(NGX_LOG_WARN, a->ctx->request->connection->log, 0,
                  "sandbox %s: %ui archives are not looked into: %s",
                  a->ctx->id_text, a->n - a->next, why);

    for ( /* void */ ; a->next < a->n; a->next++) {
        (void) ngx_cpystrn((u_char *) a->files[a->next].facts.why,
                           (u_char *) why, SB_IN_WHY);
        ngx_http_sandbox_metric_add(ARCHIVES_UNKNOWN, 1);
    }
}


static void
ngx_http_sandbox_archive_close(ngx_http_sandbox_archive_t *a)
{
    if (a->connection) {
        ngx_close_connection(a->connection);
        a->connection = NULL;
    }

    if (a->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(a->fd);
        a->fd = NGX_INVALID_FILE;
    }
}


ngx_uint_t
ngx_http_sandbox_archive_waits(ngx_http_sandbox_ctx_t *ctx)
{
    return ctx->archive->open;
}


void
ngx_http_sandbox_archive_forget(ngx_http_sandbox_ctx_t *ctx)
{
    if (ctx->archive) {
        ctx->archive->open = 0;
        ngx_http_sandbox_archive_close(ctx->archive);
    }
}


static void
ngx_http_sandbox_archive_resume(ngx_http_sandbox_archive_t *a)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = a->ctx->request;
    c = r->connection;

    a->open = 0;
    ngx_http_sandbox_archive_close(a);

    ngx_http_set_log_request(c->log, r);

    /* still ngx_http_core_run_phases() */
    r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}


sb_rc_t
ngx_http_sandbox_archive_details(sb_buf_t *b, const sb_policy_verdict_t *v)
{
    sb_rc_t              rc;
    const sb_inspect_t  *in;

    in = v->archive;

    if (in == NULL) {
        return SB_OK;
    }

    rc = sb_buf_printf(b, ",\"archive\":{\"found\":\"%s\"",
                       v->uninspected ? "uninspected"
                       : v->limit ? "limit" : sb_inspect_name(in->found));

    if (rc == SB_OK && in->name[0]) {
        rc = sb_buf_add_str(b, sb_lit(",\"member\":"));

        if (rc == SB_OK) {
            rc = sb_json_write_str(b, sb_str(in->name, ngx_strlen(in->name)));
        }
    }

    if (rc == SB_OK && in->why[0]) {
        rc = sb_buf_add_str(b, sb_lit(",\"why\":"));

        if (rc == SB_OK) {
            rc = sb_json_write_str(b, sb_str(in->why, ngx_strlen(in->why)));
        }
    }

    return rc == SB_OK ? sb_buf_add_c(b, '}') : rc;
}
