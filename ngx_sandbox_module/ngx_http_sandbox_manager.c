/*
 * sandbox_helper exec:PATH (design 2): starts the helper and keeps it running.
 *
 * A directory of ours with a manager makes nginx run its cache manager process,
 * which has the workers' user and an event loop; nothing of it runs during
 * "nginx -t".  There we start the helper and hold one connection to it.  That
 * connection
 *
 *   - tells at once that the helper has left, whoever started it: a helper
 *     outlives its starter, so after a reload it is not our child;
 *   - keeps it from leaving while there are no workers.
 *
 * Nothing is ever started while somebody accepts connections on the socket, and
 * after a helper has refused to start or died the next try waits, so that two
 * managers (the old one lives for some 100 ms after a reload) do not replace
 * each other's helpers in a circle.
 *
 * The helper has the workers' user: sandbox_api_key_file has to be readable for
 * it, and sandbox_data, which nginx creates and gives to that user, is not
 * protected from the workers.
 */


#include "ngx_http_sandbox.h"

#include <sys/syscall.h>


/* all in ms */
#define NGX_HTTP_SANDBOX_MANAGER_POLL      20       /* a helper is starting */
#define NGX_HTTP_SANDBOX_MANAGER_START     10000    /* and should be done */
#define NGX_HTTP_SANDBOX_MANAGER_BUSY      1000     /* it does not accept */
#define NGX_HTTP_SANDBOX_MANAGER_BACKOFF   100
#define NGX_HTTP_SANDBOX_MANAGER_MAX       10000
#define NGX_HTTP_SANDBOX_MANAGER_STABLE    5000     /* a start has succeeded */
/* an old manager is gone by then */
#define NGX_HTTP_SANDBOX_MANAGER_COMPARE   2000
#define NGX_HTTP_SANDBOX_MANAGER_IDLE      (60 * 60 * 1000)

#define NGX_HTTP_SANDBOX_MANAGER_ARGS      224
#define NGX_HTTP_SANDBOX_MANAGER_CMDLINE   16384


typedef struct {
    ngx_http_sandbox_main_conf_t  *mcf;
    ngx_event_t                    event;       /* the next step */
    ngx_connection_t              *connection;  /* to the helper */
    ngx_msec_t                     connected;
    ngx_pid_t                      pid;         /* one that we have started */
    ngx_msec_t                     started;
    ngx_uint_t                     failures;    /* in a row */
    ngx_uint_t                     late;        /* said that it is */
    ngx_uint_t                     compared;
    char                          *argv[NGX_HTTP_SANDBOX_MANAGER_ARGS];
    ngx_uint_t                     argc;
} ngx_http_sandbox_manager_t;


static ngx_msec_t ngx_http_sandbox_manager(void *data);
static ngx_int_t ngx_http_sandbox_manager_arguments(
    ngx_http_sandbox_manager_t *m);
static void ngx_http_sandbox_manager_step(ngx_event_t *ev);
static ngx_int_t ngx_http_sandbox_manager_connect(
    ngx_http_sandbox_manager_t *m);
static ngx_int_t ngx_http_sandbox_manager_hello(ngx_socket_t s);
static void ngx_http_sandbox_manager_read(ngx_event_t *rev);
static void ngx_http_sandbox_manager_dummy(ngx_event_t *wev);
static ngx_msec_t ngx_http_sandbox_manager_backoff(
    ngx_http_sandbox_manager_t *m);
static ngx_int_t ngx_http_sandbox_manager_start(ngx_http_sandbox_manager_t *m);
static void ngx_http_sandbox_manager_child(ngx_http_sandbox_manager_t *m,
    int err, int files);
static void ngx_http_sandbox_manager_compare(ngx_http_sandbox_manager_t *m);


/* one per process; only the manager's has anything in it */
static ngx_http_sandbox_manager_t  ngx_http_sandbox_manager_state;


ngx_int_t
ngx_http_sandbox_manager_add(ngx_conf_t *cf, ngx_http_sandbox_main_conf_t *mcf)
{
    u_char           *p;
    ngx_path_t       *path;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cf->cycle->conf_ctx,
                                           ngx_core_module);

    if (ccf->master == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox_helper exec:\" needs \"master_process "
                           "on\"; with it off start the helper yourself and "
                           "use \"sandbox_helper unix:\"");
        return NGX_ERROR;
    }

    path = ngx_pcalloc(cf->pool, sizeof(ngx_path_t));
    if (path == NULL) {
        return NGX_ERROR;
    }

    p = ngx_pnalloc(cf->pool, mcf->data.len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    path->name.data = p;
    path->name.len = mcf->data.len;
    (void) ngx_cpystrn(p, mcf->data.data, mcf->data.len + 1);

    while (path->name.len > 1 && p[path->name.len - 1] == '/') {
        p[--path->name.len] = '\0';
    }

    path->manager = ngx_http_sandbox_manager;
    path->data = mcf;
    path->conf_file = cf->conf_file->file.name.data;
    path->line = cf->conf_file->line;

    return ngx_add_path(cf, &path);
}


/* Called by the cache manager process: first when it starts, later whenever
 * some other path of nginx's wants to be looked after. */

static ngx_msec_t
ngx_http_sandbox_manager(void *data)
{
    ngx_http_sandbox_main_conf_t *mcf = data;

    ngx_http_sandbox_manager_t  *m;

    m = &ngx_http_sandbox_manager_state;

    if (m->mcf == NULL) {

        m->mcf = mcf;
        m->event.handler = ngx_http_sandbox_manager_step;
        m->event.data = m;
        m->event.log = ngx_cycle->log;

        if (ngx_http_sandbox_manager_arguments(m) == NGX_OK) {
            ngx_http_sandbox_manager_step(&m->event);
        }
    }

    return NGX_HTTP_SANDBOX_MANAGER_IDLE;
}


static ngx_int_t
ngx_http_sandbox_manager_argument(ngx_http_sandbox_manager_t *m,
    const char *flag, ngx_str_t *value)
{
    u_char  *p;

    if (flag) {
        m->argv[m->argc++] = (char *) flag;
    }

    /* they are compared with those of a running helper: in plain form */

    p = ngx_alloc(value->len + 1, ngx_cycle->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(p, value->data, value->len + 1);
    m->argv[m->argc++] = (char *) p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_manager_arguments(ngx_http_sandbox_manager_t *m)
{
    ngx_str_t                     *hold;
    ngx_uint_t                     i;
    ngx_keyval_t                  *option;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = m->mcf;

    struct {
        const char  *flag;
        ngx_str_t   *value;
    } args[] = {
        { NULL,              &mcf->helper_path },
        { "--data",          &mcf->data },
        { "--history",       &mcf->history_path },
        { "--socket",        &mcf->socket },
        { "--sync",          &mcf->history_sync },
        { "--lag",           &mcf->history_lag },
        { "--contents",      &mcf->versions_limit },
        { "--fetches",       &mcf->versions_fetches },
        { "--follow",        &mcf->follow },
        { "--history-ttl",   &mcf->history_ttl },
        { "--history-size",  &mcf->history_size },
        { "--history-total", &mcf->history_total },
        { "--history-keep",  &mcf->history_keep },
        { "--history-overflow",   &mcf->history_overflow },
        { "--history-on-delete",  &mcf->history_on_delete },
        { "--mode",          &mcf->history },
        { "--upstream",      &mcf->upstream_url },
        { "--api-key-file",  &mcf->api_key_file },
    };

    for (i = 0; i < sizeof(args) / sizeof(args[0]); i++) {

        if (args[i].value->len
            && ngx_http_sandbox_manager_argument(m, args[i].flag,
                                                 args[i].value)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (mcf->helper_options) {
        option = mcf->helper_options->elts;

        for (i = 0; i < mcf->helper_options->nelts; i++) {
            if (ngx_http_sandbox_manager_argument(m,
                                                  (char *) option[i].key.data,
                                                  &option[i].value)
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    if (mcf->history_holds) {
        hold = mcf->history_holds->elts;

        for (i = 0; i < mcf->history_holds->nelts
                    && m->argc < NGX_HTTP_SANDBOX_MANAGER_ARGS - 4; i++)
        {
            if (ngx_http_sandbox_manager_argument(m, "--history-hold", &hold[i])
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    m->argv[m->argc++] = (char *) "--exec";
    m->argv[m->argc] = NULL;

    return NGX_OK;
}


static void
ngx_http_sandbox_manager_step(ngx_event_t *ev)
{
    ngx_int_t                    rc;
    ngx_msec_t                   next;
    ngx_http_sandbox_manager_t  *m;

    m = ev->data;

    if (m->connection) {
        ngx_http_sandbox_manager_compare(m);
        return;
    }

    rc = ngx_http_sandbox_manager_connect(m);

    if (rc == NGX_OK) {
        m->connected = ngx_current_msec;
        m->late = 0;

        if (!m->compared) {
            ngx_add_timer(&m->event, NGX_HTTP_SANDBOX_MANAGER_COMPARE);
        }

        return;
    }

    if (rc == NGX_ERROR || rc == NGX_AGAIN) {
        ngx_add_timer(&m->event, rc == NGX_AGAIN
                                 ? NGX_HTTP_SANDBOX_MANAGER_BUSY
                                 : NGX_HTTP_SANDBOX_MANAGER_MAX);
        return;
    }

    /* rc == NGX_DECLINED: nobody listens */

    next = NGX_HTTP_SANDBOX_MANAGER_POLL;

    if (m->pid && kill(m->pid, 0) == 0) {

        if (ngx_current_msec - m->started > NGX_HTTP_SANDBOX_MANAGER_START) {

            if (!m->late) {
                m->late = 1;
                ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                              "sandbox-helper %P does not listen on \"%V\" "
                              "yet; requests that have to be recorded wait "
                              "or are refused", m->pid, &m->mcf->socket);
            }

            next = NGX_HTTP_SANDBOX_MANAGER_BUSY;
        }

        ngx_add_timer(&m->event, next);
        return;
    }

    if (m->pid) {

        /* nginx has reaped it and logged how it ended */

        next = ngx_http_sandbox_manager_backoff(m);

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sandbox-helper %P has left before it listened on "
                      "\"%V\" (it says why in a line of its own), trying again "
                      "in %M ms", m->pid, &m->mcf->socket, next);

        m->pid = 0;

    } else if (ngx_http_sandbox_manager_start(m) != NGX_OK) {
        next = ngx_http_sandbox_manager_backoff(m);
    }

    ngx_add_timer(&m->event, next);
}


static ngx_msec_t
ngx_http_sandbox_manager_backoff(ngx_http_sandbox_manager_t *m)
{
    ngx_uint_t  n;
    ngx_msec_t  wait;

    wait = NGX_HTTP_SANDBOX_MANAGER_BACKOFF;

    for (n = m->failures; n && wait < NGX_HTTP_SANDBOX_MANAGER_MAX; n--) {
        wait *= 2;
    }

    m->failures++;

    return ngx_min(wait, NGX_HTTP_SANDBOX_MANAGER_MAX);
}


/* NGX_DECLINED: nobody listens; NGX_AGAIN: somebody does, but has too much to
 * do; NGX_ERROR: somebody might. */

static ngx_int_t
ngx_http_sandbox_manager_connect(ngx_http_sandbox_manager_t *m)
{
    ngx_err_t            err;
    ngx_socket_t         s;
    ngx_connection_t    *c;
    struct sockaddr_un   sa;

    s = ngx_socket(AF_UNIX, SOCK_STREAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_socket_errno,
                      ngx_socket_n " failed");
        return NGX_ERROR;
    }

    ngx_memzero(&sa, sizeof(struct sockaddr_un));
    sa.sun_family = AF_UNIX;
    (void) ngx_cpystrn((u_char *) sa.sun_path, m->mcf->socket.data,
                       ngx_min(m->mcf->socket.len + 1, sizeof(sa.sun_path)));

    /* on a Unix socket it is done or has failed when connect() returns */

    if (ngx_nonblocking(s) == -1
        || fcntl(s, F_SETFD, FD_CLOEXEC) == -1
        || connect(s, (struct sockaddr *) &sa, sizeof(struct sockaddr_un))
           == -1)
    {
        err = ngx_socket_errno;

        (void) ngx_close_socket(s);

        if (err == NGX_ECONNREFUSED || err == NGX_ENOENT) {
            return NGX_DECLINED;
        }

        if (err == NGX_EAGAIN) {
            return NGX_AGAIN;
        }

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "connecting to the sandbox-helper at \"%V\" failed",
                      &m->mcf->socket);
        return NGX_ERROR;
    }

    if (ngx_http_sandbox_manager_hello(s) != NGX_OK) {
        (void) ngx_close_socket(s);
        return NGX_DECLINED;
    }

    c = ngx_get_connection(s, ngx_cycle->log);

    if (c == NULL) {
        (void) ngx_close_socket(s);
        return NGX_ERROR;
    }

    c->data = m;
    c->recv = ngx_recv;
    c->log = ngx_cycle->log;
    c->read->log = c->log;
    c->write->log = c->log;
    c->read->handler = ngx_http_sandbox_manager_read;
    c->write->handler = ngx_http_sandbox_manager_dummy;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        ngx_close_connection(c);
        return NGX_ERROR;
    }

    m->connection = c;

    return NGX_OK;
}


/* Introduces us as somebody who will not send records. */

static ngx_int_t
ngx_http_sandbox_manager_hello(ngx_socket_t s)
{
    size_t             n;
    u_char             buf[256];
    sb_frame_writer_t  w;

    static const uint8_t  none[16];

    sb_frame_begin(&w, buf, sizeof(buf), SB_F_HELLO, 0, 0, none, 0);
    sb_frame_put_u64(&w, SB_T_INSTANCE,
                     (uint64_t) ngx_random() << 32 ^ (uint64_t) ngx_random());
    sb_frame_put_u64(&w, SB_T_PID, (uint64_t) ngx_pid);
    sb_frame_put(&w, SB_T_ROLE, sb_lit("bulk"));

    n = sb_frame_end(&w);

    return send(s, buf, n, MSG_NOSIGNAL) == (ssize_t) n ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_sandbox_manager_read(ngx_event_t *rev)
{
    u_char                       buf[512];
    ssize_t                      n;
    ngx_msec_t                   next;
    ngx_connection_t            *c;
    ngx_http_sandbox_manager_t  *m;

    c = rev->data;
    m = c->data;

    /* what the helper has to say is for workers */

    do {
        n = c->recv(c, buf, sizeof(buf));
    } while (n > 0);

    if (n == NGX_AGAIN && ngx_handle_read_event(rev, 0) == NGX_OK) {
        return;
    }

    ngx_close_connection(c);
    m->connection = NULL;

    if (ngx_current_msec - m->connected > NGX_HTTP_SANDBOX_MANAGER_STABLE) {
        m->failures = 0;
    }

    next = ngx_http_sandbox_manager_backoff(m);

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "sandbox-helper has left, starting it in %M ms unless "
                  "somebody else does", next);

    /* its pid may soon be another process's */
    m->pid = 0;

    ngx_add_timer(&m->event, next);
}


static void
ngx_http_sandbox_manager_dummy(ngx_event_t *wev)
{
    ngx_log_debug0(NGX_LOG_DEBUG_CORE, wev->log, 0,
                   "sandbox manager dummy handler");
}


static ngx_int_t
ngx_http_sandbox_manager_start(ngx_http_sandbox_manager_t *m)
{
    int                            err;
    ngx_log_t                     *log;
    ngx_pid_t                      pid;
    struct rlimit                  rlmt;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = m->mcf;

    if (access(m->argv[0], X_OK) == -1) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "sandbox_helper exec: \"%s\" cannot be executed by the "
                      "workers' user", m->argv[0]);
        return NGX_ERROR;
    }

    if (mcf->api_key_file.len
        && access((char *) mcf->api_key_file.data, R_OK) == -1)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "sandbox_api_key_file \"%V\" cannot be read by the "
                      "workers' user, whose helper needs it with "
                      "\"sandbox_helper exec:\"", &mcf->api_key_file);
        return NGX_ERROR;
    }

    log = ngx_log_get_file_log(ngx_cycle->log);

    err = (log && log->file->fd != NGX_INVALID_FILE) ? log->file->fd
                                                     : STDERR_FILENO;

    if (getrlimit(RLIMIT_NOFILE, &rlmt) == -1
        || rlmt.rlim_cur > 1024 * 1024)
    {
        rlmt.rlim_cur = 1024 * 1024;
    }

    pid = fork();

    switch (pid) {

    case -1:
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "fork() of the sandbox-helper failed");
        return NGX_ERROR;

    case 0:
        ngx_http_sandbox_manager_child(m, err, (int) rlmt.rlim_cur);
        _exit(127);

    default:
        break;
    }

    m->pid = pid;
    m->started = ngx_current_msec;
    m->late = 0;
    m->compared = 1;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "start sandbox-helper %P", pid);

    return NGX_OK;
}


/*
 * Becomes the helper.  Other threads may have held any lock at the time of the
 * fork: system calls only.
 */

static void
ngx_http_sandbox_manager_child(ngx_http_sandbox_manager_t *m, int err,
    int files)
{
    int               fd;
    sigset_t          set;
    struct sigaction  sa;

    static const char  text[] = "nginx cannot execute the sandbox-helper: ";

    /* Ctrl-C in the terminal of a foreground nginx is not for it: it leaves
     * after the workers, whose last records it still takes */

    (void) setsid();

    (void) umask(077);

    ngx_memzero(&sa, sizeof(struct sigaction));
    sa.sa_handler = SIG_DFL;
    (void) sigaction(SIGPIPE, &sa, NULL);
    (void) sigaction(SIGSYS, &sa, NULL);

    sigemptyset(&set);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);

    if (err != STDERR_FILENO) {
        (void) dup2(err, STDERR_FILENO);
    }

    (void) dup2(STDERR_FILENO, STDOUT_FILENO);

    fd = open("/dev/null", O_RDONLY);

    if (fd != -1) {
        (void) dup2(fd, STDIN_FILENO);
    }

    /* listening sockets, connections and logs of nginx are not for it */

#ifdef SYS_close_range
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == -1)
#endif
    {
        for (fd = STDERR_FILENO + 1; fd < files; fd++) {
            (void) close(fd);
        }
    }

    (void) execv(m->argv[0], m->argv);

    if (write(STDERR_FILENO, text, sizeof(text) - 1) == -1
        || write(STDERR_FILENO, m->argv[0], strlen(m->argv[0])) == -1
        || write(STDERR_FILENO, "\n", 1) == -1)
    {
        return;
    }
}


/*
 * A reload may have changed what the helper is told.  One that runs with other
 * arguments is asked to leave; it applies what it has, and the read handler
 * starts its successor.
 */

static void
ngx_http_sandbox_manager_compare(ngx_http_sandbox_manager_t *m)
{
    char           *p, *last;
    ngx_fd_t        fd;
    ssize_t         n;
    socklen_t       len;
    ngx_uint_t      i, same, ours;
    struct ucred    peer;

    u_char  name[sizeof("/proc//cmdline") + NGX_INT64_LEN];
    char    buf[NGX_HTTP_SANDBOX_MANAGER_CMDLINE];

    m->compared = 1;

    len = sizeof(struct ucred);

    if (getsockopt(m->connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)
        == -1
        || peer.pid <= 0)
    {
        return;
    }

    (void) ngx_sprintf(name, "/proc/%P/cmdline%Z", peer.pid);

    fd = ngx_open_file(name, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        return;
    }

    n = ngx_read_fd(fd, buf, sizeof(buf) - 1);

    (void) ngx_close_file(fd);

    if (n <= 0) {
        return;
    }

    buf[n] = '\0';
    last = buf + n;

    /* an interpreter may stand before the program */

    i = 0;
    same = 1;
    ours = 0;

    for (p = buf; p < last; p += ngx_strlen(p) + 1) {

        if (i < m->argc && ngx_strcmp(p, m->argv[i]) == 0) {
            i++;

        } else if (i) {
            same = 0;
        }

        if (ngx_strcmp(p, "--exec") == 0) {
            ours = 1;
        }
    }

    if (same && i == m->argc) {
        return;
    }

    if (!ours || peer.uid != geteuid()) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "the sandbox-helper %P on \"%V\" was not started by "
                      "\"sandbox_helper exec:\"; it is used as it is",
                      peer.pid, &m->mcf->socket);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "sandbox-helper %P runs with other arguments than the "
                  "configuration says, replacing it", peer.pid);

    (void) kill(peer.pid, SIGTERM);
}
