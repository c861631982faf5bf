#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execd_pty.h"


#define RT_PTYS_MAX   256
#define RT_QUEUE_MAX  (1024 * 1024)


static pthread_mutex_t   rt_ptys_lock = PTHREAD_MUTEX_INITIALIZER;
static rt_pty_t         *rt_ptys;
static unsigned          rt_nptys;


void
rt_pty_release(rt_pty_t *s)
{
    unsigned  refs;

    pthread_mutex_lock(&rt_ptys_lock);
    refs = --s->refs;
    pthread_mutex_unlock(&rt_ptys_lock);

    if (refs == 0) {
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->cond);
        free(s->ring);
        free(s->cwd);
        free(s->command);
        free(s);
    }
}


rt_pty_t *
rt_pty_find(const char *id)
{
    rt_pty_t  *s;

    pthread_mutex_lock(&rt_ptys_lock);

    for (s = rt_ptys; s != NULL; s = s->next) {
        if (strcmp(s->id, id) == 0) {
            s->refs++;
            break;
        }
    }

    pthread_mutex_unlock(&rt_ptys_lock);

    return s;
}


static void
rt_pty_wake(rt_pty_t *s)
{
    uint64_t  one;

    one = 1;
    pthread_cond_broadcast(&s->cond);

    if (s->client != NULL
        && write(s->client->wake, &one, sizeof(one)) == -1)
    {
        return;                     /* it is awake */
    }
}


/* Keeps output and hands it to the client; waits while that one is slow. */

static void
rt_pty_output(rt_pty_t *s, uint8_t channel, const char *p, size_t n)
{
    size_t             at, run, left;
    uint32_t           len;
    const char        *q;
    rt_pty_client_t   *c;

    pthread_mutex_lock(&s->lock);

    while (s->client != NULL && !s->closing
           && s->client->queue.len > RT_QUEUE_MAX)
    {
        pthread_cond_wait(&s->cond, &s->lock);
    }

    for (q = p, left = n; s->ring != NULL && left > 0; left -= run) {
        at = (size_t) (s->total % RT_REPLAY_MAX);
        run = RT_REPLAY_MAX - at < left ? RT_REPLAY_MAX - at : left;
        memcpy(s->ring + at, q, run);
        s->total += run;
        q += run;
    }

    c = s->client;

    if (c != NULL) {
        len = (uint32_t) n;
        c->queue.max = 2 * RT_QUEUE_MAX;

        if (sb_buf_add(&c->queue, &channel, 1) == SB_OK) {
            sb_buf_add(&c->queue, &len, sizeof(len));
            sb_buf_add(&c->queue, p, n);
        }

        rt_pty_wake(s);
    }

    pthread_mutex_unlock(&s->lock);
}


/* Reads once.  false: nothing there, or the end (then *fd is -1). */

static bool
rt_pty_read(rt_pty_t *s, int *fd, uint8_t channel)
{
    char     buf[RT_PIECE_MAX];
    ssize_t  n;

    if (*fd == -1) {
        return false;
    }

    n = read(*fd, buf, sizeof(buf));

    if (n > 0) {
        rt_pty_output(s, channel, buf, (size_t) n);
        return true;
    }

    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(*fd);
        *fd = -1;
    }

    return false;
}


static void *
rt_pty_pump(void *data)
{
    int            status, out, err;
    rt_pty_t      *s;
    struct pollfd  p[3];

    s = data;
    out = s->out;
    err = s->err;

    for ( ;; ) {
        p[0].fd = out;
        p[1].fd = err;
        p[2].fd = s->pidfd;
        p[0].events = p[1].events = p[2].events = POLLIN;
        p[0].revents = p[1].revents = p[2].revents = 0;

        if (poll(p, 3, -1) == -1 && errno != EINTR) {
            break;
        }

        if (p[0].revents) {
            rt_pty_read(s, &out, 1);
        }

        if (p[1].revents) {
            rt_pty_read(s, &err, 2);
        }

        if (p[2].revents) {
            break;
        }
    }

    /* the rest of what the shell itself wrote; its children may go on */

    while (rt_pty_read(s, &out, 1) || rt_pty_read(s, &err, 2)) { }

    pthread_mutex_lock(&s->lock);

    if (waitpid(s->pid, &status, 0) != s->pid) {
        status = 0;
    }

    s->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    s->running = false;
    s->pid = 0;
    close(s->pidfd);
    close(s->in);
    close(out);
    close(err);
    s->in = s->out = s->err = s->pidfd = -1;
    rt_pty_wake(s);
    pthread_mutex_unlock(&s->lock);

    rt_pty_release(s);

    return NULL;
}


/* Descriptors of a shell: three ends of it and three of ours (-1: none). */
typedef struct {
    int  theirs[3];
    int  in, out, err;
} rt_pty_fds_t;


static int
rt_pty_open(rt_pty_fds_t *f, bool pty)
{
    int             p[3][2], i, slave;
    struct winsize  size;

    memset(&size, 0, sizeof(size));
    size.ws_col = 80;
    size.ws_row = 24;

    if (pty) {
        if (openpty(&f->in, &slave, NULL, NULL, &size) == -1) {
            return -1;
        }

        fcntl(f->in, F_SETFD, FD_CLOEXEC);
        fcntl(slave, F_SETFD, FD_CLOEXEC);
        fcntl(f->in, F_SETFL, O_RDWR|O_NONBLOCK);
        f->out = fcntl(f->in, F_DUPFD_CLOEXEC, 0);
        f->err = -1;
        f->theirs[0] = f->theirs[1] = f->theirs[2] = slave;
        return 0;
    }

    for (i = 0; i < 3; i++) {
        if (pipe2(p[i], O_CLOEXEC) == -1) {
            while (i-- > 0) {
                close(p[i][0]);
                close(p[i][1]);
            }

            return -1;
        }
    }

    f->in = p[0][1];
    f->out = p[1][0];
    f->err = p[2][0];
    f->theirs[0] = p[0][0];
    f->theirs[1] = p[1][1];
    f->theirs[2] = p[2][1];
    fcntl(f->in, F_SETFL, O_WRONLY|O_NONBLOCK);
    fcntl(f->out, F_SETFL, O_RDONLY|O_NONBLOCK);
    fcntl(f->err, F_SETFL, O_RDONLY|O_NONBLOCK);

    return 0;
}


int
rt_pty_start(rt_pty_t *s, bool pty)
{
    int           e;
    char         *argv[6], **env;
    rt_spawn_t    sp;
    const char   *name;
    rt_pty_fds_t  f;

    if (s->closing) {
        errno = ESHUTDOWN;
        return -1;
    }

    if (s->ring == NULL && (s->ring = malloc(RT_REPLAY_MAX)) == NULL) {
        return -1;
    }

    if (rt_pty_open(&f, pty) == -1) {
        return -1;
    }

    env = rt_env_make(NULL);
    memset(&sp, 0, sizeof(sp));
    sp.path = rt_shell(&name);
    argv[0] = (char *) (uintptr_t) name;
    argv[1] = (char *) (uintptr_t) "--norc";
    argv[2] = (char *) (uintptr_t) "--noprofile";
    argv[3] = s->command ? (char *) (uintptr_t) "-c" : NULL;
    argv[4] = s->command;
    argv[5] = NULL;

    sp.argv = argv;
    sp.env = env;
    sp.cwd = s->cwd;
    sp.in = f.theirs[0];
    sp.out = f.theirs[1];
    sp.err = f.theirs[2];
    sp.fd3 = sp.fd4 = -1;
    sp.tty = pty;

    s->pid = env ? rt_spawn(&sp) : -1;
    e = errno;
    rt_env_free(env);
    close(f.theirs[0]);

    if (!pty) {
        close(f.theirs[1]);
        close(f.theirs[2]);
    }

    s->pidfd = s->pid > 0 ? (int) syscall(SYS_pidfd_open, s->pid, 0) : -1;

    if (s->pidfd == -1) {
        close(f.in);
        close(f.out);
        close(f.err);
        s->pid = 0;
        errno = e;
        return -1;
    }

    s->in = f.in;
    s->out = f.out;
    s->err = f.err;
    s->pty = pty;
    s->running = true;

    pthread_mutex_lock(&rt_ptys_lock);
    s->refs++;
    pthread_mutex_unlock(&rt_ptys_lock);

    if (!rt_thread(rt_pty_pump, s)) {
        abort();
    }

    return 0;
}


uint64_t
rt_pty_replay(rt_pty_t *s, uint64_t since, sb_buf_t *dst)
{
    size_t    at, run;
    uint64_t  oldest, pos;

    oldest = s->total > RT_REPLAY_MAX ? s->total - RT_REPLAY_MAX : 0;
    since = since < oldest ? oldest : since;

    for (pos = since; pos < s->total; pos += run) {
        at = (size_t) (pos % RT_REPLAY_MAX);
        run = RT_REPLAY_MAX - at;
        run = s->total - pos < run ? (size_t) (s->total - pos) : run;
        sb_buf_add(dst, s->ring + at, run);
    }

    return since;
}


void
rt_pty_signal(rt_pty_t *s, const char *name)
{
    size_t  i;

    static const struct {
        const char  *name;
        int          sig;
    } signals[] = {
        { "SIGINT", SIGINT }, { "SIGTERM", SIGTERM }, { "SIGKILL", SIGKILL },
        { "SIGQUIT", SIGQUIT }, { "SIGHUP", SIGHUP }
    };

    pthread_mutex_lock(&s->lock);

    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (s->running && strcmp(name, signals[i].name) == 0) {
            kill(-s->pid, signals[i].sig);
        }
    }

    pthread_mutex_unlock(&s->lock);
}


void
rt_pty_resize(rt_pty_t *s, unsigned short cols, unsigned short rows)
{
    struct winsize  size;

    memset(&size, 0, sizeof(size));
    size.ws_col = cols;
    size.ws_row = rows;

    pthread_mutex_lock(&s->lock);

    if (s->running && s->pty) {
        ioctl(s->in, TIOCSWINSZ, &size);
    }

    pthread_mutex_unlock(&s->lock);
}


void
rt_pty_create(rt_req_t *r)
{
    bool        empty, full;
    sb_buf_t    b;
    sb_str_t    cwd, command;
    rt_pty_t   *s;
    sb_jdoc_t  *doc;

    cwd = command = sb_lit("");
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), &empty);

    if ((doc == NULL && !empty)
        || (doc != NULL && ((sb_jdoc_root(doc)->kind != SB_JSON_OPEN_OBJECT
                             && sb_jdoc_root(doc)->kind != SB_JSON_NULL)
            || rt_go_str(sb_jdoc_root(doc), "cwd", &cwd) < 0
            || rt_go_str(sb_jdoc_root(doc), "command", &command) < 0)))
    {
        sb_jdoc_free(doc);
        rt_fail(r, 400, "INVALID_REQUEST_BODY", "the body must be a JSON "
                "object with the strings cwd and command");
        return;
    }

    s = calloc(1, sizeof(rt_pty_t));

    if (s == NULL) {
        abort();
    }

    rt_uuid4(s->id);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->cond, NULL);
    s->refs = 1;
    s->in = s->out = s->err = s->pidfd = -1;
    s->command = command.len ? strndup(command.data, command.len) : NULL;
    s->cwd = cwd.len ? rt_expand(cwd, false) : NULL;

    /* a directory that cannot be had: the shell starts elsewhere */

    if (s->cwd != NULL && rt_mkdirs(s->cwd, 0777) == -1) {
        free(s->cwd);
        s->cwd = NULL;
    }

    sb_jdoc_free(doc);

    pthread_mutex_lock(&rt_ptys_lock);
    full = rt_nptys == RT_PTYS_MAX;

    if (!full) {
        s->next = rt_ptys;
        rt_ptys = s;
        rt_nptys++;
    }

    pthread_mutex_unlock(&rt_ptys_lock);

    if (full) {
        rt_pty_release(s);
        rt_fail(r, 500, "RUNTIME_ERROR", "there are %d terminals already: "
                "delete some first", RT_PTYS_MAX);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = 128;
    sb_buf_printf(&b, "{\"session_id\":\"%s\"}", s->id);
    rt_json(r, 201, &b);
}


static void
rt_pty_unknown(rt_req_t *r, const char *id)
{
    rt_fail(r, 404, "CONTEXT_NOT_FOUND", "pty session %s not found", id);
}


void
rt_pty_status(rt_req_t *r, const char *id)
{
    sb_buf_t   b;
    rt_pty_t  *s;

    s = rt_pty_find(id);

    if (s == NULL) {
        rt_pty_unknown(r, id);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = 256;

    pthread_mutex_lock(&s->lock);
    sb_buf_printf(&b, "{\"session_id\":\"%s\",\"running\":%s,"
                      "\"output_offset\":%llu}",
                  s->id, s->running ? "true" : "false",
                  (unsigned long long) s->total);
    pthread_mutex_unlock(&s->lock);

    rt_pty_release(s);
    rt_json(r, 200, &b);
}


void
rt_pty_delete(rt_req_t *r, const char *id)
{
    rt_pty_t  *s, **p;

    pthread_mutex_lock(&rt_ptys_lock);

    for (p = &rt_ptys; *p != NULL && strcmp((*p)->id, id) != 0;
         p = &(*p)->next)
    {
        /* void */
    }

    s = *p;

    if (s != NULL) {
        *p = s->next;
        rt_nptys--;
    }

    pthread_mutex_unlock(&rt_ptys_lock);

    if (s == NULL) {
        rt_pty_unknown(r, id);
        return;
    }

    pthread_mutex_lock(&s->lock);
    s->closing = true;

    if (s->running) {
        kill(-s->pid, SIGKILL);
    }

    rt_pty_wake(s);
    pthread_mutex_unlock(&s->lock);

    rt_pty_release(s);
    rt_ok(r);
}
