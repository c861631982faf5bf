#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execd.h"


/* As programs name themselves in their messages. */

static const char *
rt_base(const char *path)
{
    const char  *slash;

    slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}


const char *
rt_shell(const char **name)
{
    static const char *const  shells[] = {
        "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"
    };

    size_t  i;

    for (i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (access(shells[i], X_OK) == 0) {
            *name = rt_base(shells[i]);
            return shells[i];
        }
    }

    *name = "sh";

    return "/bin/sh";
}


static size_t
rt_env_name(const char *s)
{
    return strcspn(s, "=");
}


char **
rt_env_make(char *const *extra)
{
    char   **env;
    size_t   i, j, n, nextra, len;

    for (n = 0; environ != NULL && environ[n] != NULL; n++) { /* void */ }
    for (nextra = 0; extra != NULL && extra[nextra] != NULL; nextra++) { }

    env = calloc(n + nextra + 1, sizeof(char *));

    if (env == NULL) {
        return NULL;
    }

    n = 0;

    for (i = 0; environ != NULL && environ[i] != NULL; i++) {
        len = rt_env_name(environ[i]);

        for (j = 0; j < nextra; j++) {
            if (rt_env_name(extra[j]) == len
                && memcmp(extra[j], environ[i], len) == 0)
            {
                break;
            }
        }

        if (j == nextra) {
            env[n++] = strdup(environ[i]);
        }
    }

    for (j = 0; j < nextra; j++) {
        env[n++] = strdup(extra[j]);
    }

    for (i = 0; i < n; i++) {
        if (env[i] == NULL) {
            for (j = 0; j < n; j++) {
                free(env[j]);
            }

            free(env);
            return NULL;
        }
    }

    return env;
}


void
rt_env_free(char **env)
{
    size_t  i;

    if (env == NULL) {
        return;
    }

    for (i = 0; env[i] != NULL; i++) {
        free(env[i]);
    }

    free(env);
}


/* Between fork and exec: only what is safe when other threads hold locks. */

static int
rt_spawn_above(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, RT_SPAWN_FD4 + 1);
}


static void
rt_spawn_child(const rt_spawn_t *s, int in, int report)
{
    int                i, e, fd3, fd4;
    sigset_t           none;
    struct sigaction   sa;

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = SIG_DFL;

    for (i = 1; i < NSIG; i++) {
        sigaction(i, &sa, NULL);
    }

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    if (s->tty) {
        if (setsid() == -1) {
            goto failed;
        }

    } else if (setpgid(0, 0) == -1) {
        goto failed;
    }

    /* who has many descriptors has them at these numbers, too: they go above
     * them first, for one is not to overwrite the other, or to stay as it is */

    i = rt_spawn_above(report);

    if (i == -1) {
        goto failed;
    }

    report = i;
    fd3 = s->fd3 == -1 ? -1 : rt_spawn_above(s->fd3);
    fd4 = s->fd4 == -1 ? -1 : rt_spawn_above(s->fd4);

    if (dup2(in, 0) == -1 || dup2(s->out, 1) == -1 || dup2(s->err, 2) == -1
        || (s->fd3 != -1 && (fd3 == -1 || dup2(fd3, RT_SPAWN_FD3) == -1))
        || (s->fd4 != -1 && (fd4 == -1 || dup2(fd4, RT_SPAWN_FD4) == -1)))
    {
        goto failed;
    }

    if (s->tty && ioctl(0, TIOCSCTTY, 0) == -1) {
        goto failed;
    }

    if (s->has_cred
        && (setgroups((size_t) s->ngroups, s->groups) == -1
            || setgid(s->gid) == -1 || setuid(s->uid) == -1))
    {
        goto failed;
    }

    if (s->cwd != NULL && chdir(s->cwd) == -1) {
        goto failed;
    }

    execvpe(s->path ? s->path : s->argv[0], s->argv, s->env);

failed:

    e = errno;

    if (write(report, &e, sizeof(e)) == -1) {
        _exit(126);
    }

    _exit(127);
}


pid_t
rt_spawn(const rt_spawn_t *s)
{
    int      report[2], in, e;
    pid_t    pid;
    ssize_t  n;

    in = s->in;

    if (in == -1) {
        in = open("/dev/null", O_RDONLY|O_CLOEXEC);

        if (in == -1) {
            return -1;
        }
    }

    pid = -1;

    if (pipe2(report, O_CLOEXEC) == 0) {
        pid = fork();

        if (pid == 0) {
            rt_spawn_child(s, in, report[1]);
        }

        e = errno;
        close(report[1]);

        if (pid > 0) {
            do {
                n = read(report[0], &e, sizeof(e));
            } while (n == -1 && errno == EINTR);

            if (n == (ssize_t) sizeof(e)) {
                waitpid(pid, NULL, 0);
                pid = -1;
            }
        }

        close(report[0]);
        errno = e;
    }

    if (s->in == -1) {
        e = errno;
        close(in);
        errno = e;
    }

    return pid;
}


static const char *
rt_signal_text(int sig)
{
    /* Go's words; the abbreviations of glibc differ */

    static const struct {
        int          sig;
        const char  *text;
    } names[] = {
        { SIGHUP, "hangup" }, { SIGINT, "interrupt" }, { SIGQUIT, "quit" },
        { SIGILL, "illegal instruction" },
        { SIGTRAP, "trace/breakpoint trap" }, { SIGABRT, "aborted" },
        { SIGBUS, "bus error" }, { SIGFPE, "floating point exception" },
        { SIGKILL, "killed" }, { SIGUSR1, "user defined signal 1" },
        { SIGSEGV, "segmentation fault" },
        { SIGUSR2, "user defined signal 2" }, { SIGPIPE, "broken pipe" },
        { SIGALRM, "alarm clock" }, { SIGTERM, "terminated" },
    };

    size_t  i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].sig == sig) {
            return names[i].text;
        }
    }

    return NULL;
}


int
rt_exit_text(int status, char *dst, size_t n)
{
    const char  *name;

    if (WIFSIGNALED(status)) {
        name = rt_signal_text(WTERMSIG(status));

        if (name != NULL) {
            snprintf(dst, n, "signal: %s%s", name,
                     WCOREDUMP(status) ? " (core dumped)" : "");

        } else {
            snprintf(dst, n, "signal: signal %d", WTERMSIG(status));
        }

        return -1;
    }

    snprintf(dst, n, "exit status %d", WEXITSTATUS(status));

    return WEXITSTATUS(status);
}


bool
rt_thread(void *(*f)(void *), void *data)
{
    int             rc;
    pthread_t       t;
    pthread_attr_t  attr;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 512 * 1024);
    rc = pthread_create(&t, &attr, f, data);
    pthread_attr_destroy(&attr);

    return rc == 0;
}
