/* One process that sandbox-gateway keeps running. */

#include "gateway.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


static bool gw_process_started(pid_t pid, unsigned long long *ticks);


int64_t
gw_now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


void
gw_child_arg(gw_child_t *c, const char *arg)
{
    if (c->argc == sizeof(c->argv) / sizeof(c->argv[0]) - 1) {
        abort();
    }

    c->argv[c->argc++] = arg;
    c->argv[c->argc] = NULL;
}


bool
gw_child_start(gw_child_t *c, bool ready)
{
    int                 fds[2], null, n;
    char                text[64];
    pid_t               self;
    sigset_t            none;
    unsigned long long  ticks;

    fds[0] = fds[1] = -1;

    if (ready && pipe2(fds, O_CLOEXEC) == -1) {
        return gw_fail("%s cannot be started: %s.", c->name, strerror(errno));
    }

    self = getpid();
    c->pid = fork();

    if (c->pid == -1) {
        c->pid = 0;

        if (ready) {
            close(fds[0]);
            close(fds[1]);
        }

        return gw_fail("%s cannot be started: %s.", c->name, strerror(errno));
    }

    if (c->pid == 0) {

        /* signals of the terminal are for us: we end the others in order */

        (void) setpgid(0, 0);

        if (c->end_signal) {
            (void) prctl(PR_SET_PDEATHSIG, c->end_signal);

            if (getppid() != self) {
                _exit(1);
            }
        }

        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);

        null = open("/dev/null", O_RDONLY);
        (void) dup2(null, 0);
        (void) dup2(2, 1);      /* standard output is for our own lines */

        if (ready) {
            if (fds[1] == GW_READY_FD) {
                (void) fcntl(fds[1], F_SETFD, 0);

            } else {
                (void) dup2(fds[1], GW_READY_FD);
            }
        }

        execv(c->argv[0], (char *const *) c->argv);

        fprintf(stderr, "sandbox-gateway: %s cannot be run: %s.\n",
                c->argv[0], strerror(errno));
        _exit(127);
    }

    if (ready) {
        close(fds[1]);
    }

    c->ready = fds[0];
    c->started_ms = gw_now_ms();
    c->again_ms = 0;

    if (gw_process_started(c->pid, &ticks)) {
        n = snprintf(text, sizeof(text), "%d %llu\n", (int) c->pid, ticks);

        if (!gw_write_file(c->note, text, (size_t) n, 0600)) {
            gw_note("%s cannot be written: %s.", c->note, strerror(errno));
        }
    }

    return true;
}


void
gw_child_ended(const gw_child_t *c, int status, char *text, size_t size)
{
    if (WIFSIGNALED(status)) {
        snprintf(text, size, "%s was ended by signal %d (%s)", c->name,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));

    } else {
        snprintf(text, size, "%s ended with status %d", c->name,
                 WEXITSTATUS(status));
    }
}


void
gw_child_end_group(pid_t pgid, unsigned wait_ms)
{
    int64_t          until;
    struct timespec  nap = { 0, 20 * 1000000 };

    if (kill(-pgid, SIGTERM) == -1) {
        return;
    }

    until = gw_now_ms() + wait_ms;

    while (kill(-pgid, 0) == 0) {

        if (gw_now_ms() > until) {
            (void) kill(-pgid, SIGKILL);
            return;
        }

        (void) nanosleep(&nap, NULL);
    }
}


void
gw_child_end_leftover(const gw_child_t *c, int sig, unsigned wait_ms)
{
    int                 pid;
    char               *text;
    size_t              len;
    int64_t             until;
    struct timespec     nap = { 0, 20 * 1000000 };
    unsigned long long  noted, ticks;

    text = gw_read_file(c->note, 128, &len);

    if (text == NULL) {
        return;
    }

    /* a number alone could be another process by now */

    if (sscanf(text, "%d %llu", &pid, &noted) == 2 && pid > 1
        && gw_process_started(pid, &ticks) && ticks == noted)
    {
        gw_note("%s of a gateway that was killed still runs (process %d);"
                " ending it.", c->name, pid);

        (void) kill(pid, sig);
        until = gw_now_ms() + wait_ms;

        while (gw_process_started(pid, &ticks) && ticks == noted) {

            if (gw_now_ms() > until) {
                (void) kill(pid, SIGKILL);
                until += 1000;
            }

            (void) nanosleep(&nap, NULL);
        }
    }

    free(text);
    (void) unlink(c->note);
}


/* When a process began, in clock ticks since boot: field 22 of its stat line.
 * False when there is none, or only its remains. */

static bool
gw_process_started(pid_t pid, unsigned long long *ticks)
{
    bool     ok;
    char     path[48], state;
    char    *text, *p;
    size_t   len;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);

    text = gw_read_file(path, 4096, &len);

    if (text == NULL) {
        return false;
    }

    p = strrchr(text, ')');     /* the name may hold anything */

    ok = p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u"
                            " %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                     &state, ticks) == 2
         && state != 'Z' && state != 'X';

    free(text);

    return ok;
}
