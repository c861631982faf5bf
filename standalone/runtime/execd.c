#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "digest.h"
#include "execd.h"
#include "id.h"
#include "proxy.h"


#define RT_LOG_MAX    (1024 * 1024)     /* of the entrypoint's output */


typedef struct {
    const char  *method;
    const char  *pattern;               /* `*` is one segment, the id */
    void       (*handle)(rt_req_t *r);
    void       (*handle_id)(rt_req_t *r, const char *id);
} rt_route_t;


rt_execd_conf_t      rt_execd;
static const char   *rt_token;


static const rt_route_t  rt_routes[] = {
    { "GET", "/ping", rt_ok, NULL },

    { "DELETE", "/files", rt_files_delete, NULL },
    { "GET", "/files/info", rt_files_info, NULL },
    { "POST", "/files/mv", rt_files_mv, NULL },
    { "POST", "/files/permissions", rt_files_permissions, NULL },
    { "GET", "/files/search", rt_files_search, NULL },
    { "POST", "/files/replace", rt_files_replace, NULL },
    { "POST", "/files/upload", rt_files_upload, NULL },
    { "GET", "/files/download", rt_files_download, NULL },

    { "GET", "/directories/list", rt_dirs_list, NULL },
    { "POST", "/directories", rt_dirs_create, NULL },
    { "DELETE", "/directories", rt_dirs_delete, NULL },

    { "POST", "/code", rt_code_run, NULL },
    { "DELETE", "/code", rt_command_interrupt, NULL },
    { "POST", "/code/context", rt_code_context_create, NULL },
    { "GET", "/code/contexts", rt_code_contexts, NULL },
    { "DELETE", "/code/contexts", rt_code_contexts_delete, NULL },
    { "GET", "/code/contexts/*", NULL, rt_code_context },
    { "DELETE", "/code/contexts/*", NULL, rt_code_context },

    { "POST", "/session", rt_session_create, NULL },
    { "POST", "/session/*/run", NULL, rt_session_run },
    { "DELETE", "/session/*", NULL, rt_session_delete },

    { "POST", "/command", rt_command_run, NULL },
    { "DELETE", "/command", rt_command_interrupt, NULL },
    { "GET", "/command/status/*", NULL, rt_command_status },
    { "GET", "/command/*/logs", NULL, rt_command_logs },

    { "GET", "/metrics", rt_metrics, NULL },
    { "GET", "/metrics/watch", rt_metrics_watch, NULL },

    { "POST", "/pty", rt_pty_create, NULL },
    { "GET", "/pty/*", NULL, rt_pty_status },
    { "DELETE", "/pty/*", NULL, rt_pty_delete },
    { "GET", "/pty/*/ws", NULL, rt_pty_ws },

};


uint64_t
rt_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


void
rt_id32(char *dst)
{
    uint8_t  id[16];

    sb_random(id, sizeof(id));
    sb_hex(dst, id, sizeof(id));
}


void
rt_uuid4(char *dst)
{
    uint8_t  id[16];

    sb_random(id, sizeof(id));
    id[6] = (uint8_t) ((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t) ((id[8] & 0x3f) | 0x80);
    sb_uuid_text(dst, id);
}


void
rt_ok(rt_req_t *r)
{
    rt_reply(r, 200, "", 0);
}


typedef struct {
    sb_buf_t  buf;
    size_t    pos;
} rt_sent_t;


static ssize_t
rt_send_read(void *ctx, char *buf, size_t max)
{
    size_t      n;
    rt_sent_t  *s;

    s = ctx;
    n = s->buf.len - s->pos < max ? s->buf.len - s->pos : max;
    memcpy(buf, s->buf.data + s->pos, n);
    s->pos += n;

    return (ssize_t) n;
}


static void
rt_send_free(void *ctx)
{
    rt_sent_t  *s;

    s = ctx;
    sb_buf_free(&s->buf);
    free(s);
}


void
rt_send(rt_req_t *r, unsigned status, sb_buf_t *b)
{
    rt_sent_t  *s;

    s = b->len > RT_GO_BUFFER ? calloc(1, sizeof(rt_sent_t)) : NULL;

    if (s == NULL) {
        rt_reply(r, status, b->data ? b->data : "", b->len);
        sb_buf_free(b);
        return;
    }

    s->buf = *b;
    rt_reply_stream(r, status, UINT64_MAX, rt_send_read, s, rt_send_free);
}


void
rt_json(rt_req_t *r, unsigned status, sb_buf_t *b)
{
    rt_out(r, "Content-Type", "application/json; charset=utf-8");
    rt_send(r, status, b);
}


static void
rt_go_text(sb_buf_t *b, sb_str_t s)
{
    rt_go_write(b, s);
}


void
rt_fail(rt_req_t *r, unsigned status, const char *code, const char *fmt, ...)
{
    va_list   args;
    sb_buf_t  b;

    va_start(args, fmt);
    rt_envelope(&b, code, rt_go_text, fmt, args);
    va_end(args);

    rt_json(r, status, &b);
}


void
rt_fail_errno(rt_req_t *r, int err, const char *path)
{
    if (err == ENOTNAM) {
        rt_fail(r, 500, "RUNTIME_ERROR",
                "there is no such owner or group for %s", path);

    } else if (err == ENOKEY) {
        rt_fail(r, 500, "RUNTIME_ERROR",
                "%s names a variable that is not set", path);

    } else if (err == ENOENT) {
        rt_fail(r, 404, "FILE_NOT_FOUND", "file not found: %s", path);

    } else {
        rt_fail(r, 500, "RUNTIME_ERROR", "error accessing %s: %s", path,
                strerror(err));
    }
}


void
rt_fail_text(rt_req_t *r, unsigned status, const char *text)
{
    rt_out(r, "Content-Type", "text/plain; charset=utf-8");
    rt_out(r, "X-Content-Type-Options", "nosniff");
    rt_reply(r, status, text, strlen(text));
}


/* Whether a path fits a pattern; id gets what stands for `*`. */

static bool
rt_match(const char *pattern, const char *path, char *id, size_t max)
{
    size_t  n;

    while (*pattern != '\0') {

        if (*pattern == '*') {
            n = strcspn(path, "/");

            if (n == 0 || n >= max) {
                return false;
            }

            memcpy(id, path, n);
            id[n] = '\0';
            path += n;
            pattern++;
            continue;
        }

        if (*pattern++ != *path++) {
            return false;
        }
    }

    return *path == '\0';
}


static const rt_route_t *
rt_route(const char *method, const char *path, char *id, size_t max)
{
    size_t  i;

    for (i = 0; i < sizeof(rt_routes) / sizeof(rt_routes[0]); i++) {
        if (strcmp(method, rt_routes[i].method) == 0
            && rt_match(rt_routes[i].pattern, path, id, max))
        {
            return &rt_routes[i];
        }
    }

    return NULL;
}


static void
rt_html(sb_buf_t *b, const char *s)
{
    for ( /* void */ ; *s != '\0'; s++) {

        switch (*s) {

        case '&':
            sb_buf_add(b, "&amp;", 5);
            break;

        case '<':
            sb_buf_add(b, "&lt;", 4);
            break;

        case '>':
            sb_buf_add(b, "&gt;", 4);
            break;

        case '"':
            sb_buf_add(b, "&#34;", 5);
            break;

        case '\'':
            sb_buf_add(b, "&#39;", 5);
            break;

        default:
            sb_buf_add_c(b, *s);
            break;
        }
    }
}


/* One slash too many: sent without a look at the token. */

static bool
rt_redirect(rt_req_t *r)
{
    bool     get;
    char     id[512], *path;
    size_t   n;
    sb_buf_t b;

    n = r->path.len;

    if (n < 2 || r->path.data[n - 1] != '/') {
        return false;
    }

    path = strndup(r->path.data, n - 1);

    if (path == NULL || rt_route(r->method, path, id, sizeof(id)) == NULL) {
        free(path);
        return false;
    }

    get = strcmp(r->method, "GET") == 0;
    memset(&b, 0, sizeof(b));
    b.max = 65536;

    if (get) {
        sb_buf_printf(&b, "<a href=\"");
        rt_html(&b, path);
        rt_html(&b, r->query[0] ? "?" : "");
        rt_html(&b, r->query);
        sb_buf_printf(&b, "\">Moved Permanently</a>.\n\n");
        rt_out(r, "Content-Type", "text/html; charset=utf-8");
    }

    rt_outf(r, "Location", "%s%s%s", path, r->query[0] ? "?" : "", r->query);
    rt_reply(r, get ? 301 : 307, b.data ? b.data : "", b.len);
    sb_buf_free(&b);
    free(path);

    return true;
}


static bool
rt_authorized(rt_req_t *r)
{
    const char  *given;
    static const char  body[] = "{\"error\":\"Unauthorized: invalid or "
                                "missing header X-EXECD-ACCESS-TOKEN\"}";

    given = rt_header(r, "X-EXECD-ACCESS-TOKEN");

    if (rt_token == NULL
        || (given != NULL && strlen(given) == strlen(rt_token)
            && sb_equal_ct(given, rt_token, strlen(rt_token))))
    {
        return true;
    }

    rt_out(r, "Content-Type", "application/json; charset=utf-8");
    rt_reply(r, 401, body, sizeof(body) - 1);

    return false;
}


static void
rt_execd_begin(rt_req_t *r)
{
    if (strncmp(r->path.data, "/proxy/", 7) == 0) {
        if (rt_authorized(r)) {
            rt_execd_proxy(r);
        }

        return;
    }

    if (strcmp(r->method, "POST") == 0
        && strcmp(r->path.data, "/files/upload") == 0)
    {
        rt_upload_begin(r);
    }
}


static void
rt_execd_handle(rt_req_t *r)
{
    char               id[512];
    const rt_route_t  *route;

    if (r->ctx != NULL && r->sink == rt_proxy_sink) {
        rt_proxy_finish(r);
        return;
    }

    if (rt_redirect(r) || !rt_authorized(r)) {
        return;
    }

    route = rt_route(r->method, r->path.data, id, sizeof(id));

    if (route == NULL || strlen(r->path.data) != r->path.len) {
        rt_out(r, "Content-Type", "text/plain");
        rt_reply(r, 404, "404 page not found", 18);

    } else if (r->too_large) {
        rt_fail(r, 413, "INVALID_REQUEST_BODY",
                "the body is larger than %u bytes", RT_BODY_MAX);

    } else if (route->handle != NULL) {
        route->handle(r);

    } else {
        route->handle_id(r, id);
    }
}


/* Keeps the first megabyte of what the entrypoint writes on our own standard
 * error, so that a chatty one does not fill the disk. */

static void *
rt_entrypoint_log(void *data)
{
    int      fd;
    bool     begins;
    char     buf[4096], time[SB_TIME_LEN + 1], *p, *lf;
    size_t   left, n;
    ssize_t  got;

    fd = (int) (intptr_t) data;
    left = RT_LOG_MAX;

    begins = true;

    while ((got = read(fd, buf, sizeof(buf))) > 0) {

        for (p = buf; p < buf + got && left > 0; p += n) {
            lf = memchr(p, '\n', (size_t) (buf + got - p));
            n = (size_t) ((lf ? lf + 1 : buf + got) - p);
            n = n < left ? n : left;

            /* each line with its time, as Docker logs it */

            if (begins) {
                sb_time_text(time, sb_now_us());
                dprintf(2, "%s ", time);
            }

            if (write(2, p, n) == -1) {
                left = n;
            }

            begins = lf != NULL;
            left -= n;
        }
    }

    close(fd);

    return NULL;
}


static void
rt_entrypoint(char **argv)
{
    int          out[2];
    char       **env;
    pid_t        pid;
    rt_spawn_t   s;

    env = rt_env_make(NULL);

    if (env == NULL || pipe2(out, O_CLOEXEC) == -1) {
        return;
    }

    memset(&s, 0, sizeof(s));
    s.argv = argv;
    s.env = env;
    s.in = s.fd3 = s.fd4 = -1;
    s.out = s.err = out[1];
    pid = rt_spawn(&s);

    if (pid == -1) {
        fprintf(stderr, "the entrypoint %s did not start: %s\n", argv[0],
                strerror(errno));
    }

    close(out[1]);
    rt_env_free(env);

    if (pid == -1
        || !rt_thread(rt_entrypoint_log, (void *) (intptr_t) out[0]))
    {
        close(out[0]);
    }
}


/* Without a pid namespace of ours: our parent is the init of the sandbox's
 * processes, reaps the orphans, and ends them with us. */

static void
rt_execd_init(void)
{
    int    status;
    pid_t  pid, child;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }

    do {
        pid = waitpid(-1, &status, 0);
    } while (child > 0 && (pid != child || WIFSTOPPED(status))
             && (pid > 0 || errno == EINTR));

    _exit(0);
}


int
rt_execd_main(const rt_execd_conf_t *conf)
{
    rt_http_t  *http;

    static const rt_app_t  app = { rt_execd_begin, rt_execd_handle };

    rt_execd = *conf;

    if (conf->init) {
        rt_execd_init();
    }

    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    umask(022);

    rt_more_files();

    rt_token = getenv("EXECD_ACCESS_TOKEN");

    if (rt_token != NULL && rt_token[0] == '\0') {
        rt_token = NULL;
    }

    rt_proxy_init();
    http = rt_http_start(conf->listen_fd, &app, 0);

    if (http == NULL) {
        fprintf(stderr, "the execd side cannot serve: %s\n",
                strerror(errno));
        return 1;
    }

    if (conf->entrypoint != NULL) {
        rt_entrypoint(conf->entrypoint);
    }

    if (conf->ready_fd != -1) {
        if (write(conf->ready_fd, "R", 1) != 1) {
            return 1;
        }

        close(conf->ready_fd);
    }

    for ( ;; ) {
        pause();
    }
}
