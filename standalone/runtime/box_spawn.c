/* Starting the processes of a sandbox. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box.h"
#include "fsutil.h"
#include "http.h"


#define RT_ARGS_MAX   256
#define RT_ENVS_MAX   4200
#define RT_START_MS   15000

/* The numbers under which the child has its descriptors. */
#define RT_FD_LISTEN  3
#define RT_FD_READY   4
#define RT_FD_EXE     5

#define RT_EXECD      "/opt/opensandbox/execd"


typedef struct {
    const char  *argv[RT_ARGS_MAX];
    unsigned     n;
    char         port[16];
    char         grace[16];
} rt_args_t;


static void
rt_arg(rt_args_t *a, const char *s)
{
    if (a->n < RT_ARGS_MAX - 1) {
        a->argv[a->n++] = s;
        a->argv[a->n] = NULL;
    }
}


static void
rt_arg3(rt_args_t *a, const char *s, const char *t, const char *u)
{
    rt_arg(a, s);
    rt_arg(a, t);

    if (u != NULL) {
        rt_arg(a, u);
    }
}


static void
rt_bwrap_args(rt_args_t *a, const char *root, const char *hostname)
{
    size_t       i;
    struct stat  st;

    /* what Docker leaves to root in a container, without raw sockets and
     * device files: the network and the devices are the host's here */

    static const char *const  caps[] = {
        "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
        "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
        "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_SETFCAP"
    };
    static const char *const  unmerged[] = {
        "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
    };

    rt_arg(a, "bwrap");
    rt_arg(a, "--die-with-parent");
    rt_arg(a, "--new-session");
    rt_arg(a, "--unshare-pid");
    rt_arg(a, "--unshare-ipc");
    rt_arg(a, "--unshare-uts");
    rt_arg(a, "--unshare-cgroup-try");
    rt_arg3(a, "--hostname", hostname, NULL);

    if (geteuid() != 0) {
        rt_arg(a, "--unshare-user");
        rt_arg3(a, "--uid", "0", NULL);
        rt_arg3(a, "--gid", "0", NULL);

    } else {
        rt_arg3(a, "--cap-drop", "ALL", NULL);

        for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
            rt_arg3(a, "--cap-add", caps[i], NULL);
        }
    }

    rt_arg3(a, "--bind", root, "/");
    rt_arg3(a, "--ro-bind", "/usr", "/usr");

    for (i = 0; i < sizeof(unmerged) / sizeof(unmerged[0]); i++) {
        if (lstat(unmerged[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            rt_arg3(a, "--ro-bind", unmerged[i], unmerged[i]);
        }
    }

    rt_arg3(a, "--proc", "/proc", NULL);
    rt_arg3(a, "--dev", "/dev", NULL);
    rt_arg3(a, "--perms", "0555", NULL);
    rt_arg3(a, "--ro-bind-data", "5", RT_EXECD);
    rt_arg3(a, "--chdir", "/workspace", NULL);
    rt_arg(a, "--");
    rt_arg(a, RT_EXECD);
}


static void
rt_execd_args(rt_args_t *a, const rt_box_t *b)
{
    unsigned  i;

    snprintf(a->port, sizeof(a->port), "%u", (unsigned) b->port);
    snprintf(a->grace, sizeof(a->grace), "%u", rt_boxes_conf.grace_ms);

    rt_arg(a, "--execd");
    rt_arg3(a, "--listen-fd", "3", NULL);
    rt_arg3(a, "--ready-fd", "4", NULL);
    rt_arg3(a, "--port", a->port, NULL);
    rt_arg3(a, "--grace", a->grace, NULL);

    if (rt_boxes_conf.unconfined) {
        rt_arg(a, "--init");
    }

    if (rt_boxes_conf.no_kernels) {
        rt_arg(a, "--no-kernels");
    }

    rt_arg(a, "--");

    for (i = 0; b->argv != NULL && b->argv[i] != NULL; i++) {
        rt_arg(a, b->argv[i]);
    }
}


/* In the child, with file descriptors that are all above 9. */

static void
rt_box_child(rt_args_t *a, char **env, const char *dir, int listen_fd,
    int ready, int exe, int log, pid_t parent)
{
    int       i, null;
    sigset_t  none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);

    if (getppid() != parent) {
        _exit(127);
    }

    null = open("/dev/null", O_RDONLY);

    if (null == -1 || dup2(null, 0) == -1 || dup2(log, 1) == -1
        || dup2(log, 2) == -1
        || (listen_fd != -1 && dup2(listen_fd, RT_FD_LISTEN) == -1)
        || (ready != -1 && dup2(ready, RT_FD_READY) == -1)
        || dup2(exe, RT_FD_EXE) == -1)
    {
        _exit(127);
    }

    for (i = RT_FD_EXE + 1; i < 10; i++) {
        close(i);
    }

    if (dir != NULL && chdir(dir) == -1) {
        _exit(127);
    }

    if (rt_boxes_conf.unconfined) {
        setsid();
        fexecve(exe, (char *const *) (uintptr_t) a->argv, env);

    } else {
        execvpe("bwrap", (char *const *) (uintptr_t) a->argv, env);
    }

    _exit(127);
}


/* A copy above the numbers that the child uses. */

static int
rt_high(int fd)
{
    int  high;

    if (fd == -1) {
        return -1;
    }

    high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);

    return high;
}


static pid_t
rt_box_fork(rt_args_t *a, char **env, const char *dir, int listen_fd,
    int ready, int log)
{
    int    exe;
    pid_t  pid, self;

    exe = rt_high(open("/proc/self/exe", O_RDONLY|O_CLOEXEC));

    if (exe == -1) {
        return -1;
    }

    self = getpid();
    pid = fork();

    if (pid == 0) {
        rt_box_child(a, env, dir, listen_fd, ready, exe, log, self);
    }

    close(exe);

    return pid;
}


static char **
rt_box_env(const rt_box_t *b, const char *home)
{
    char      **env, *s;
    size_t      n, i, j, len;

    static const char *const  base[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG=C.UTF-8", "TERM=xterm-256color", "USER=root", "LOGNAME=root",
        "SHELL=/bin/bash"
    };

    env = calloc(RT_ENVS_MAX + 1, sizeof(char *));

    if (env == NULL || asprintf(&s, "HOME=%s", home) == -1) {
        free(env);
        return NULL;
    }

    n = 0;
    env[n++] = s;

    for (i = 0; i < sizeof(base) / sizeof(base[0]); i++) {
        env[n++] = strdup(base[i]);
    }

    for (i = 0; b->env != NULL && b->env[i] != NULL && n < RT_ENVS_MAX; i++) {
        len = strcspn(b->env[i], "=") + 1;

        for (j = 0; j < n; j++) {
            if (strncmp(env[j], b->env[i], len) == 0) {
                break;
            }
        }

        if (j < n) {
            free(env[j]);
            env[j] = strdup(b->env[i]);

        } else {
            env[n++] = strdup(b->env[i]);
        }
    }

    return env;
}


static void
rt_box_env_free(char **env)
{
    size_t  i;

    for (i = 0; env != NULL && env[i] != NULL; i++) {
        free(env[i]);
    }

    free(env);
}


/* Last line of the log: what bubblewrap or execd had to say. */

static void
rt_log_tail(const char *path, char *why, size_t n)
{
    FILE  *f;
    char   line[512];

    why[0] = '\0';
    f = fopen(path, "re");

    if (f == NULL) {
        return;
    }

    while (fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(why, n, "%s", line);
    }

    fclose(f);
}


bool
rt_box_probe(char *why, size_t n)
{
    int        log, status;
    bool       ok;
    char       dir[PATH_MAX - 64], root[PATH_MAX], path[PATH_MAX],
               text[512];
    char      *env[2];
    pid_t      pid;
    rt_args_t  a;

    snprintf(dir, sizeof(dir), "%s/sandboxes/probe", rt_boxes_conf.data);
    snprintf(root, sizeof(root), "%s/root", dir);
    snprintf(path, sizeof(path), "%s/log", dir);
    rt_remove_at(AT_FDCWD, dir);

    if (mkdir(dir, 0700) == -1 || rt_root_make(root, "probe") == -1) {
        snprintf(why, n, "%s cannot be written: %s", dir, strerror(errno));
        return false;
    }

    memset(&a, 0, sizeof(a));
    rt_bwrap_args(&a, root, "probe");
    rt_arg(&a, "--version");
    env[0] = (char *) (uintptr_t) "PATH=/usr/bin:/bin";
    env[1] = NULL;

    log = rt_high(open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0600));
    pid = rt_box_fork(&a, env, NULL, -1, -1, log);
    close(log);
    ok = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)
         && WEXITSTATUS(status) == 0;

    if (!ok) {
        rt_log_tail(path, text, sizeof(text));
        snprintf(why, n, "bubblewrap (bwrap) does not run here%s%s",
                 text[0] ? ": " : "", text);
    }

    rt_remove_at(AT_FDCWD, dir);

    return ok;
}


/* Waits until execd serves.  false: it ended or took too long. */

static bool
rt_box_wait(int fd)
{
    char           c;
    struct pollfd  p;

    p.fd = fd;
    p.events = POLLIN;

    return poll(&p, 1, RT_START_MS) == 1 && read(fd, &c, 1) == 1;
}


bool
rt_box_spawn(rt_box_t *b, char *why, size_t n)
{
    int          listen_fd, ready[2], log;
    bool         ok;
    char         root[PATH_MAX], path[PATH_MAX], host[13], **env;
    rt_args_t    a;

    snprintf(root, sizeof(root), "%s/root", b->dir);
    snprintf(path, sizeof(path), "%s/log", b->dir);
    snprintf(host, sizeof(host), "%.12s", b->id + 24);

    /* of one that began with a snapshot the files are there */

    if (b->snapshot[0] != '\0'
        ? rt_root_mend(root, host) == -1
        : mkdir(b->dir, 0700) == -1 || rt_root_make(root, host) == -1)
    {
        snprintf(why, n, "the sandbox's directory %s cannot be made: %s",
                 b->dir, strerror(errno));
        return false;
    }

    b->port = 0;
    listen_fd = rt_high(rt_listen("127.0.0.1", &b->port));
    log = rt_high(open(path, O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0600));
    ready[0] = ready[1] = -1;
    memset(&a, 0, sizeof(a));
    env = rt_box_env(b, rt_boxes_conf.unconfined ? root : "/root");

    if (listen_fd == -1 || log == -1 || env == NULL
        || pipe2(ready, O_CLOEXEC) == -1)
    {
        snprintf(why, n, "the sandbox cannot be started: %s",
                 strerror(errno));
        close(listen_fd);
        close(log);
        rt_box_env_free(env);
        return false;
    }

    ready[0] = rt_high(ready[0]);
    ready[1] = rt_high(ready[1]);

    if (rt_boxes_conf.unconfined) {
        rt_arg(&a, "sandbox-runtime");

    } else {
        rt_bwrap_args(&a, root, host);
    }

    rt_execd_args(&a, b);

    if (rt_boxes_conf.unconfined) {
        snprintf(path, sizeof(path), "%s/root/workspace", b->dir);
    }

    b->pid = rt_box_fork(&a, env, rt_boxes_conf.unconfined ? path : NULL,
                         listen_fd, ready[1], log);

    close(listen_fd);
    close(ready[1]);
    close(log);
    rt_box_env_free(env);

    ok = b->pid > 0 && rt_box_wait(ready[0]);
    close(ready[0]);

    if (!ok) {
        snprintf(path, sizeof(path), "%s/log", b->dir);
        rt_log_tail(path, root, 400);
        snprintf(why, n, "the sandbox did not start%s%.400s",
                 root[0] ? ": " : "", root);

        if (b->pid > 0) {
            rt_kill_tree(b->pid);
            waitpid(b->pid, NULL, 0);
        }
    }

    return ok;
}
