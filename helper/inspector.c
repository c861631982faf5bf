#include "inspector.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>


#define INSPECTOR_PROGRAM  "sandbox-inspect"
#define INSPECTOR_BUSY     "Too many archives are being looked into; try again shortly."
#define INSPECTOR_LATE     "It takes too long to look into the archive."
#define INSPECTOR_DIED     "The process that looked into the archive died."
#define INSPECTOR_START    "The process that looks into archives cannot be started."

typedef struct inspector_job_s  inspector_job_t;

struct inspector_job_s {
    inspector_job_t     *next;
    void                *frame;
    size_t               len;
    int                  fd;            /* the file; -1: closed */
    pid_t                pid;           /* 0: it waits */
    int                  out;
    uint64_t             until;         /* monotonic microseconds */
    bool                 cancelled;
    size_t               got;
    char                 in[SB_IN_ANSWER];
    inspector_answer_t   answer;
};

struct inspector_s {
    unsigned          max, seconds;
    uint64_t          memory;
    int               wake_fd;          /* of who takes the answers */
    int               own_fd;           /* eventfd: wakes the thread */
    int               program;          /* O_PATH; -1: it is not there */

    pthread_t         thread;
    bool              running;

    pthread_mutex_t   lock;
    bool              stop;
    unsigned          waiting;
    inspector_job_t  *fresh, **fresh_last;
    inspector_job_t  *answers, **answers_last;
    inspector_job_t  *active;           /* list and number of the thread alone;
                                           `cancelled` is under the lock */
    unsigned          nactive;
};


/* The program lies beside ours; it is held open, so that another version that is
 * installed meanwhile is not taken for it. */
static int
inspector_program(void)
{
    int      fd, high;
    char     path[4096], *slash;
    ssize_t  n;

    n = readlink("/proc/self/exe", path, sizeof(path) - 32);

    if (n <= 0) {
        return -1;
    }

    path[n] = '\0';
    slash = strrchr(path, '/');

    if (slash == NULL) {
        return -1;
    }

    (void) strcpy(slash + 1, INSPECTOR_PROGRAM);

    fd = open(path, O_PATH|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    /* above those that the child is given */
    high = fcntl(fd, F_DUPFD_CLOEXEC, 16);
    close(fd);

    return high;
}


inspector_t *
inspector_new(unsigned max, unsigned seconds, uint64_t memory, int wake_fd)
{
    inspector_t  *i;

    i = calloc(1, sizeof(inspector_t));
    if (i == NULL) {
        return NULL;
    }

    i->own_fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (i->own_fd == -1) {
        free(i);
        return NULL;
    }

    i->max = max;
    i->seconds = seconds;
    i->memory = memory;
    i->wake_fd = wake_fd;
    i->program = inspector_program();
    i->fresh_last = &i->fresh;
    i->answers_last = &i->answers;
    pthread_mutex_init(&i->lock, NULL);
    stats_set(STATS_INSPECT_LIMIT, max);

    return i;
}


static void
inspector_kick(int fd)
{
    uint64_t  one = 1;

    if (write(fd, &one, sizeof(one)) == -1) {
        /* the counter is full: the reader is awake anyway */
    }
}


static void
inspector_job_free(inspector_job_t *job)
{
    if (job->fd != -1) {
        close(job->fd);
    }

    free(job->frame);
    free(job);
}


static void
inspector_jobs_free(inspector_job_t *job)
{
    inspector_job_t  *next;

    for ( /* void */ ; job; job = next) {
        next = job->next;
        inspector_job_free(job);
    }
}


/* What is told: facts, or with `reason` that there are none. */
static void
inspector_finish(inspector_t *i, inspector_job_t *job, const char *reason)
{
    job->answer.reason = reason;
    job->next = NULL;

    if (job->fd != -1) {
        close(job->fd);
        job->fd = -1;
    }

    stats_add(reason ? STATS_INSPECT_FAILED : STATS_INSPECTED, 1);

    pthread_mutex_lock(&i->lock);
    *i->answers_last = job;
    i->answers_last = &job->next;
    pthread_mutex_unlock(&i->lock);

    inspector_kick(i->wake_fd);
}


/* --- one process -------------------------------------------------------------- */

static bool
inspector_actions(posix_spawn_file_actions_t *actions,
    posix_spawnattr_t *attr, int in, int out, int file)
{
    sigset_t  none, usual;

    (void) sigemptyset(&none);
    (void) sigemptyset(&usual);
    (void) sigaddset(&usual, SIGPIPE);
    (void) sigaddset(&usual, SIGXFSZ);

    return posix_spawn_file_actions_adddup2(actions, in, 0) == 0
           && posix_spawn_file_actions_adddup2(actions, out, 1) == 0
           && posix_spawn_file_actions_adddup2(actions, file, 3) == 0
           && posix_spawnattr_setsigmask(attr, &none) == 0
           && posix_spawnattr_setsigdefault(attr, &usual) == 0
           && posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK
                                             |POSIX_SPAWN_SETSIGDEF) == 0;
}


static bool
inspector_spawn(inspector_t *i, inspector_job_t *job, int in, int out, int file)
{
    bool   ok;
    char   program[32], seconds[16], memory[32], parent[16];
    char  *argv[] = { (char *) INSPECTOR_PROGRAM, (char *) "-", seconds, memory,
                      parent, NULL };
    char  *envp[] = { NULL };

    posix_spawnattr_t           attr;
    posix_spawn_file_actions_t  actions;

    (void) snprintf(program, sizeof(program), "/proc/self/fd/%d", i->program);
    (void) snprintf(seconds, sizeof(seconds), "%u", i->seconds);
    (void) snprintf(memory, sizeof(memory), "%llu",
                    (unsigned long long) i->memory);
    (void) snprintf(parent, sizeof(parent), "%d", (int) getpid());

    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }

    if (posix_spawnattr_init(&attr) != 0) {
        (void) posix_spawn_file_actions_destroy(&actions);
        return false;
    }

    ok = inspector_actions(&actions, &attr, in, out, file)
         && posix_spawn(&job->pid, program, &actions, &attr, argv, envp) == 0;

    (void) posix_spawn_file_actions_destroy(&actions);
    (void) posix_spawnattr_destroy(&attr);

    if (!ok) {
        job->pid = 0;
    }

    return ok;
}


/* Starts it: the question lies in the pipe by then, or is being written to it
 * while the process reads. */
static bool
inspector_begin(inspector_t *i, inspector_job_t *job)
{
    int      in[2], out[2];
    bool     ok;
    ssize_t  n;

    if (i->program == -1 || pipe2(in, O_CLOEXEC) == -1) {
        return false;
    }

    if (pipe2(out, O_CLOEXEC) == -1) {
        close(in[0]);
        close(in[1]);
        return false;
    }

    (void) fcntl(in[1], F_SETPIPE_SZ, (int) SB_IN_FRAME);
    (void) fcntl(in[1], F_SETFL, O_NONBLOCK);

    n = write(in[1], job->frame, job->len);

    ok = n == (ssize_t) job->len
         && inspector_spawn(i, job, in[0], out[1], job->fd);

    close(in[0]);
    close(in[1]);
    close(out[1]);

    if (!ok) {
        close(out[0]);
        return false;
    }

    (void) fcntl(out[0], F_SETFL, O_NONBLOCK);
    job->out = out[0];
    job->until = sb_mono_us() + (uint64_t) i->seconds * 3 * 1000000;

    close(job->fd);
    job->fd = -1;

    return true;
}


/* The end of the process; why there is no answer. */
static const char *
inspector_reap(inspector_job_t *job)
{
    int    status;
    pid_t  pid;

    close(job->out);
    (void) kill(job->pid, SIGKILL);

    do {
        pid = waitpid(job->pid, &status, 0);
    } while (pid == -1 && errno == EINTR);

    job->pid = 0;

    if (pid == -1) {
        return INSPECTOR_DIED;
    }

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        return INSPECTOR_LATE;
    }

    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        log_minutely(LOG_ERROR, "sandbox-inspect left with status %d",
                     WEXITSTATUS(status));
        return INSPECTOR_START;
    }

    log_minutely(LOG_ERROR, "sandbox-inspect died, of signal %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : 0);

    return INSPECTOR_DIED;
}


/* Reads what it has written.  False: it goes on. */
static bool
inspector_read(inspector_job_t *job, const char **reason)
{
    bool        whole;
    size_t      need;
    ssize_t     n;
    sb_frame_t  f;

    n = read(job->out, job->in + job->got, sizeof(job->in) - job->got);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }

    if (n > 0) {
        job->got += (size_t) n;

        if (sb_frame_read(&f, job->in, job->got, &need) == SB_AGAIN
            && need <= sizeof(job->in))
        {
            return false;
        }
    }

    whole = sb_frame_read(&f, job->in, job->got, &need) == SB_OK
            && f.length == job->got && f.type == SB_F_INSPECTED
            && sb_inspect_get(&f, &job->answer.in);

    if (!whole && n == 0) {
        /* how it ended is to be told by the system, not by us */
        (void) waitid(P_PID, (id_t) job->pid, &(siginfo_t) { 0 },
                      WEXITED|WNOWAIT);
    }

    *reason = inspector_reap(job);

    if (whole) {
        *reason = NULL;
    }

    return true;
}


/* --- the thread ------------------------------------------------------------- */

/* Takes those that wait, as many as may run. */
static void
inspector_more(inspector_t *i)
{
    bool              cancelled;
    inspector_job_t  *job;

    while (i->nactive < i->max) {

        pthread_mutex_lock(&i->lock);

        job = i->fresh;
        cancelled = job && job->cancelled;

        if (job) {
            i->fresh = job->next;
            i->fresh_last = i->fresh ? i->fresh_last : &i->fresh;
            stats_set(STATS_INSPECT_WAITING, --i->waiting);
        }

        if (job && !cancelled) {
            job->next = i->active;
            i->active = job;
        }

        pthread_mutex_unlock(&i->lock);

        if (job == NULL) {
            return;
        }

        if (cancelled) {
            inspector_job_free(job);
            continue;
        }

        if (inspector_begin(i, job)) {
            stats_set(STATS_INSPECT_RUNNING, ++i->nactive);
            continue;
        }

        log_minutely(LOG_ERROR, "sandbox-inspect cannot be started, is it "
                     "beside sandbox-helper? errno %d", errno);

        pthread_mutex_lock(&i->lock);
        i->active = job->next;
        pthread_mutex_unlock(&i->lock);

        inspector_finish(i, job, INSPECTOR_START);
    }
}


/* Those that run: has one answered, or is it not wanted any more? */
static void
inspector_look(inspector_t *i)
{
    bool               cancelled, over;
    const char        *reason;
    inspector_job_t   *job, **p;

    for (p = &i->active; *p; /* void */) {
        job = *p;

        pthread_mutex_lock(&i->lock);
        cancelled = job->cancelled;
        pthread_mutex_unlock(&i->lock);

        reason = NULL;
        over = inspector_read(job, &reason);

        if (!over && (cancelled || sb_mono_us() >= job->until)) {
            (void) inspector_reap(job);
            reason = INSPECTOR_LATE;
            over = true;
        }

        if (!over) {
            p = &job->next;
            continue;
        }

        pthread_mutex_lock(&i->lock);
        *p = job->next;
        pthread_mutex_unlock(&i->lock);

        stats_set(STATS_INSPECT_RUNNING, --i->nactive);

        if (cancelled) {
            inspector_job_free(job);

        } else {
            inspector_finish(i, job, reason);
        }
    }
}


static void *
inspector_thread(void *data)
{
    int               timeout;
    bool              stop;
    nfds_t            n;
    uint64_t          now, drained;
    inspector_t      *i = data;
    inspector_job_t  *job;
    struct pollfd     fds[INSPECTOR_LIMIT + 1];

    for ( ;; ) {
        pthread_mutex_lock(&i->lock);
        stop = i->stop;
        pthread_mutex_unlock(&i->lock);

        if (stop) {
            for (job = i->active; job; job = job->next) {
                (void) inspector_reap(job);
            }

            return NULL;
        }

        inspector_look(i);
        inspector_more(i);

        now = sb_mono_us();
        timeout = -1;

        fds[0] = (struct pollfd) { i->own_fd, POLLIN, 0 };

        for (n = 1, job = i->active; job; job = job->next, n++) {
            fds[n] = (struct pollfd) { job->out, POLLIN, 0 };

            if (timeout == -1
                || job->until < now + (uint64_t) timeout * 1000)
            {
                timeout = job->until > now
                          ? (int) ((job->until - now) / 1000) + 1 : 0;
            }
        }

        if (poll(fds, n, timeout) > 0 && fds[0].revents
            && read(i->own_fd, &drained, sizeof(drained)) == -1)
        {
            /* somebody was faster */
        }
    }
}


bool
inspector_start(inspector_t *i)
{
    i->running = (pthread_create(&i->thread, NULL, inspector_thread, i) == 0);

    return i->running;
}


void
inspector_stop(inspector_t *i)
{
    if (i == NULL) {
        return;
    }

    if (i->running) {
        pthread_mutex_lock(&i->lock);
        i->stop = true;
        pthread_mutex_unlock(&i->lock);
        inspector_kick(i->own_fd);
        pthread_join(i->thread, NULL);
    }

    inspector_jobs_free(i->active);
    inspector_jobs_free(i->fresh);
    inspector_jobs_free(i->answers);
    pthread_mutex_destroy(&i->lock);
    close(i->own_fd);

    if (i->program != -1) {
        close(i->program);
    }

    free(i);
}


/* --- questions ------------------------------------------------------------------ */

const char *
inspector_ask(inspector_t *i, const void *frame, size_t len, int fd,
    uint64_t conn, uint64_t seq)
{
    bool              full;
    inspector_job_t  *job;

    job = calloc(1, sizeof(inspector_job_t));

    if (job) {
        job->fd = fd;
        job->len = len;
        job->frame = malloc(len);
    }

    if (job == NULL || job->frame == NULL) {

        if (job) {
            inspector_job_free(job);

        } else {
            close(fd);
        }

        return INSPECTOR_START;
    }

    memcpy(job->frame, frame, len);
    job->answer.conn = conn;
    job->answer.seq = seq;

    pthread_mutex_lock(&i->lock);

    full = i->waiting >= INSPECTOR_WAITING;

    if (!full) {
        *i->fresh_last = job;
        i->fresh_last = &job->next;
        stats_set(STATS_INSPECT_WAITING, ++i->waiting);
    }

    pthread_mutex_unlock(&i->lock);

    if (full) {
        inspector_job_free(job);
        stats_add(STATS_INSPECT_REFUSED, 1);
        return INSPECTOR_BUSY;
    }

    inspector_kick(i->own_fd);

    return NULL;
}


void
inspector_cancel(inspector_t *i, uint64_t conn)
{
    bool              any = false;
    inspector_job_t  *job;

    pthread_mutex_lock(&i->lock);

    for (job = i->fresh; job; job = job->next) {
        job->cancelled = job->cancelled || job->answer.conn == conn;
    }

    for (job = i->active; job; job = job->next) {
        if (job->answer.conn == conn) {
            job->cancelled = true;
            any = true;
        }
    }

    pthread_mutex_unlock(&i->lock);

    if (any) {
        inspector_kick(i->own_fd);
    }
}


bool
inspector_take(inspector_t *i, inspector_answer_t *a)
{
    inspector_job_t  *job;

    pthread_mutex_lock(&i->lock);

    job = i->answers;

    if (job) {
        i->answers = job->next;
        i->answers_last = i->answers ? i->answers_last : &i->answers;
    }

    pthread_mutex_unlock(&i->lock);

    if (job == NULL) {
        return false;
    }

    *a = job->answer;
    inspector_job_free(job);

    return true;
}
