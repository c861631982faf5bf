#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "execd_command.h"


#define RT_COMMANDS_MAX  4096   /* remembered; the oldest finished one goes */


pthread_mutex_t          rt_commands_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t           rt_commands_cond = PTHREAD_COND_INITIALIZER;

static rt_command_t     *rt_commands;       /* newest first */
static unsigned          rt_ncommands;


void
rt_command_unref(rt_command_t *c)
{
    if (--c->refs != 0) {
        return;
    }

    if (c->log != -1) {
        close(c->log);
    }

    free(c->content);
    free(c);
}


rt_command_t *
rt_command_find(const char *id)
{
    rt_command_t  *c;

    for (c = rt_commands; c != NULL; c = c->next) {
        if (strcmp(c->id, id) == 0) {
            return c;
        }
    }

    return NULL;
}


static void
rt_command_store(rt_command_t *c)
{
    rt_command_t  **p, **oldest, *gone;

    pthread_mutex_lock(&rt_commands_lock);

    c->refs = 2;
    c->next = rt_commands;
    rt_commands = c;

    if (++rt_ncommands > RT_COMMANDS_MAX) {
        oldest = NULL;

        for (p = &rt_commands; *p != NULL; p = &(*p)->next) {
            if (!(*p)->running) {
                oldest = p;
            }
        }

        if (oldest != NULL) {
            gone = *oldest;
            *oldest = gone->next;
            rt_ncommands--;
            rt_command_unref(gone);
        }
    }

    pthread_mutex_unlock(&rt_commands_lock);
}


static void
rt_command_finished(rt_command_t *c, int status)
{
    char  text[64], code[16];
    int   exit_code;

    exit_code = rt_exit_text(status, text, sizeof(text));

    pthread_mutex_lock(&rt_commands_lock);

    c->exit_code = exit_code;
    c->running = false;
    clock_gettime(CLOCK_REALTIME, &c->finished);

    if (exit_code != 0) {
        memcpy(c->error, text, sizeof(text));
    }

    pthread_cond_broadcast(&rt_commands_cond);
    pthread_mutex_unlock(&rt_commands_lock);

    if (c->events == NULL) {
        return;
    }

    if (exit_code != 0) {
        snprintf(code, sizeof(code), "%d", exit_code);
        rt_events_error(c->events, code, text);

    } else {
        exit_code = (int) (rt_ms() - c->start_ms);
        rt_events_complete(c->events, exit_code > 0 ? exit_code : 1);
    }
}


/* Reads once.  false: nothing there, the end, or an error (then *fd is closed
 * and -1). */

static bool
rt_command_read(rt_command_t *c, int *fd, rt_lines_t *lines,
    const char *type, bool finished)
{
    char     buf[65536];
    ssize_t  n, w, off;

    n = read(*fd, buf, sizeof(buf));

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }

    if (n <= 0) {
        close(*fd);
        *fd = -1;
        return false;
    }

    if (c->log != -1) {
        for (off = 0; off < n; off += w) {
            w = write(c->log, buf + off, (size_t) (n - off));

            if (w <= 0) {
                break;
            }
        }
    }

    if (c->events != NULL && !finished) {
        rt_lines_feed(lines, buf, (size_t) n, c->events, type);
    }

    return true;
}


/* Under the lock, so that nobody signals a group whose number is free. */

static bool
rt_command_reap(rt_command_t *c, int *status)
{
    bool  done;

    pthread_mutex_lock(&rt_commands_lock);

    done = waitpid(c->pid, status, WNOHANG) == c->pid;

    if (done) {
        c->pid = 0;
    }

    pthread_mutex_unlock(&rt_commands_lock);

    return done;
}


static void *
rt_command_pump(void *data)
{
    int            status, wait;
    bool           killed, finished;
    uint64_t       now, deadline;
    rt_lines_t     out, err;
    rt_command_t  *c;
    struct pollfd  p[3];

    c = data;
    memset(&out, 0, sizeof(out));
    memset(&err, 0, sizeof(err));
    killed = finished = false;
    deadline = c->timeout_ms ? c->start_ms + c->timeout_ms : 0;

    while (!finished || c->out != -1 || c->err != -1) {
        p[0].fd = c->out;
        p[1].fd = c->err;
        p[2].fd = finished ? -1 : c->pidfd;
        p[0].events = p[1].events = p[2].events = POLLIN;
        p[0].revents = p[1].revents = p[2].revents = 0;
        wait = -1;

        if (deadline != 0 && !killed && !finished) {
            now = rt_ms();

            if (now >= deadline) {
                kill(-c->pid, SIGKILL);
                killed = true;

            } else {
                wait = (int) (deadline - now < 60000 ? deadline - now
                                                     : 60000);
            }
        }

        if (poll(p, 3, wait) == -1 && errno != EINTR) {
            break;
        }

        if (p[0].revents) {
            rt_command_read(c, &c->out, &out, "stdout", finished);
        }

        if (p[1].revents) {
            rt_command_read(c, &c->err, &err, "stderr", finished);
        }

        if (p[2].revents && rt_command_reap(c, &status)) {

            /* what the process itself wrote is in the pipes now; what its
             * children write later belongs to no answer */

            while (c->out != -1
                   && rt_command_read(c, &c->out, &out, "stdout", false))
            {
                /* void */
            }

            while (c->err != -1
                   && rt_command_read(c, &c->err, &err, "stderr", false))
            {
                /* void */
            }

            if (c->events != NULL) {
                rt_lines_flush(&out, c->events, "stdout");
                rt_lines_flush(&err, c->events, "stderr");
            }

            finished = true;
            rt_command_finished(c, status);

            if (c->events != NULL) {
                rt_events_close(c->events);
                rt_events_release(c->events);
                c->events = NULL;
            }
        }
    }

    sb_buf_free(&out.buf);
    sb_buf_free(&err.buf);
    close(c->pidfd);

    pthread_mutex_lock(&rt_commands_lock);
    rt_command_unref(c);
    pthread_mutex_unlock(&rt_commands_lock);

    return NULL;
}


static int
rt_command_log(void)
{
    int  fd;

    fd = open("/tmp", O_TMPFILE|O_RDWR|O_CLOEXEC|O_APPEND, 0600);

    return fd != -1 ? fd : memfd_create("output", MFD_CLOEXEC);
}


static bool
rt_command_start(rt_command_t *c, const rt_run_t *run)
{
    int         out[2], err[2], e;
    char       *argv[4];
    char      **env;
    rt_spawn_t  s;
    const char *shell, *name;

    out[0] = out[1] = err[0] = err[1] = -1;
    env = NULL;
    e = EINVAL;

    if (memchr(run->command.data, '\0', run->command.len) != NULL) {
        goto failed;
    }

    env = rt_env_make(run->envs);
    e = ENOMEM;

    if (env == NULL || pipe2(out, O_CLOEXEC) == -1
        || (!run->background && pipe2(err, O_CLOEXEC) == -1))
    {
        e = errno;
        goto failed;
    }

    shell = rt_shell(&name);
    argv[0] = (char *) (uintptr_t) name;
    argv[1] = (char *) (uintptr_t) "-c";
    argv[2] = c->content;
    argv[3] = NULL;

    memset(&s, 0, sizeof(s));
    s.path = shell;
    s.argv = argv;
    s.env = env;
    s.cwd = run->cwd;
    s.in = s.fd3 = s.fd4 = -1;
    s.out = out[1];
    s.err = run->background ? out[1] : err[1];
    s.has_cred = run->has_cred;
    s.uid = run->uid;
    s.gid = run->gid;
    s.groups = (gid_t *) (uintptr_t) run->groups;
    s.ngroups = run->ngroups;

    c->pid = rt_spawn(&s);

    if (c->pid == -1) {
        e = errno;
        goto failed;
    }

    c->pidfd = (int) syscall(SYS_pidfd_open, c->pid, 0);

    if (c->pidfd == -1) {
        e = errno;
        kill(-c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        goto failed;
    }

    close(out[1]);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    c->out = out[0];

    if (err[1] != -1) {
        close(err[1]);
        fcntl(err[0], F_SETFL, O_NONBLOCK);
        c->err = err[0];
    }

    rt_env_free(env);

    return true;

failed:

    close(out[0]);
    close(out[1]);
    close(err[0]);
    close(err[1]);
    rt_env_free(env);
    errno = e;

    return false;
}


void
rt_command_execute(rt_req_t *r, const rt_run_t *run)
{
    char          text[128];
    rt_events_t  *e;
    rt_command_t *c;

    c = calloc(1, sizeof(rt_command_t));
    e = rt_events_new(r, run->grace_ms);

    if (c == NULL || e == NULL
        || (c->content = strndup(run->command.data, run->command.len))
           == NULL)
    {
        abort();
    }

    rt_id32(c->id);
    c->background = run->background;
    c->running = true;
    c->out = c->err = c->log = c->pidfd = -1;
    c->timeout_ms = (uint64_t) run->timeout_ms;
    c->start_ms = rt_ms();
    clock_gettime(CLOCK_REALTIME, &c->started);

    if (run->background) {
        c->log = rt_command_log();
    }

    if (!rt_command_start(c, run)) {
        snprintf(text, sizeof(text), "fork/exec bash: %s", strerror(errno));

        if (run->background) {
            rt_events_release(e);
            rt_events_release(e);
            rt_fail(r, 500, "RUNTIME_ERROR", "the command did not start: %s",
                    text);

        } else {
            rt_events_text(e, "init", sb_str(c->id, 32));
            rt_events_error(e, text, text);
            rt_events_close(e);
            rt_events_release(e);
            rt_events_reply(r, e);
        }

        c->refs = 1;
        rt_command_unref(c);
        return;
    }

    rt_events_text(e, "init", sb_str(c->id, 32));

    if (run->background) {
        rt_events_complete(e, 0);
        rt_events_close(e);
        rt_events_release(e);

    } else {
        c->events = e;
    }

    rt_command_store(c);

    if (!rt_thread(rt_command_pump, c)) {
        abort();
    }

    rt_events_reply(r, e);
}
