#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box.h"
#include "fsutil.h"
#include "id.h"
#include "snapshot.h"


#define RT_TICK_MS  200


/* A sandbox to be started by the main thread. */
typedef struct rt_job_s  rt_job_t;

struct rt_job_s {
    rt_job_t  *next;
    rt_box_t  *box;
    bool       done;
    bool       ok;
    char      *why;
    size_t     n;
};


rt_boxes_conf_t          rt_boxes_conf;

static pthread_mutex_t   rt_store = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t    rt_job_done = PTHREAD_COND_INITIALIZER;
static rt_box_t         *rt_boxes;
static unsigned          rt_nboxes;
static rt_job_t         *rt_jobs;
static int               rt_wake = -1;
static bool              rt_ending;


void
rt_boxes_lock(void)
{
    pthread_mutex_lock(&rt_store);
}


void
rt_boxes_unlock(void)
{
    pthread_mutex_unlock(&rt_store);
}


bool
rt_boxes_init(const rt_boxes_conf_t *conf, char *why, size_t n)
{
    char      dir[PATH_MAX];
    sigset_t  set;

    rt_boxes_conf = *conf;
    snprintf(dir, sizeof(dir), "%s/sandboxes", conf->data);

    /* blocked before the first thread: the main thread reads them */

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);

    if ((mkdir(conf->data, 0700) == -1 && errno != EEXIST)
        || rt_remove_at(AT_FDCWD, dir) == -1
        || mkdir(dir, 0700) == -1)
    {
        snprintf(why, n, "the directory %s cannot be used: %s; name another "
                 "with --data", dir, strerror(errno));
        return false;
    }

    rt_wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    return rt_snaps_init(conf->data, why, n)
           && (conf->unconfined || rt_box_probe(why, n));
}


rt_box_t *
rt_box_new(void)
{
    uint8_t    id[16];
    rt_box_t  *b;

    b = calloc(1, sizeof(rt_box_t));

    if (b == NULL) {
        abort();
    }

    sb_random(id, sizeof(id));
    id[6] = (uint8_t) ((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t) ((id[8] & 0x3f) | 0x80);
    sb_uuid_text(b->id, id);

    b->refs = 1;
    pthread_mutex_init(&b->op, NULL);
    b->created_us = b->changed_us = sb_now_us();

    if (asprintf(&b->dir, "%s/sandboxes/%s", rt_boxes_conf.data, b->id)
        == -1)
    {
        abort();
    }

    return b;
}


static void
rt_strings_free(char **list)
{
    size_t  i;

    for (i = 0; list != NULL && list[i] != NULL; i++) {
        free(list[i]);
    }

    free(list);
}


void
rt_box_free(rt_box_t *b)
{
    unsigned  i;

    for (i = 0; i < b->nmetadata; i++) {
        free(b->metadata[i].key);
        free(b->metadata[i].value);
    }

    if (b->snapshot[0] != '\0') {
        rt_snap_unuse(b->snapshot);
    }

    rt_strings_free(b->argv);
    rt_strings_free(b->env);
    free(b->image);
    free(b->platform);
    free(b->entrypoint);
    free(b->stopped);
    free(b->dir);
    pthread_mutex_destroy(&b->op);
    free(b);
}


void
rt_box_release(rt_box_t *b)
{
    unsigned  refs;

    rt_boxes_lock();
    refs = --b->refs;
    rt_boxes_unlock();

    if (refs == 0) {
        rt_box_free(b);
    }
}


rt_box_t *
rt_box_find(sb_str_t id)
{
    rt_box_t  *b;

    rt_boxes_lock();

    for (b = rt_boxes; b != NULL; b = b->next) {
        if (sb_eq(sb_str(b->id, 36), id)) {
            b->refs++;
            break;
        }
    }

    rt_boxes_unlock();

    return b;
}


rt_box_t **
rt_boxes_list(size_t *n)
{
    rt_box_t  *b, **list;

    list = calloc(RT_BOXES_MAX + 1, sizeof(rt_box_t *));
    *n = 0;

    rt_boxes_lock();

    for (b = rt_boxes; b != NULL && list != NULL; b = b->next) {
        b->refs++;
        list[(*n)++] = b;
    }

    rt_boxes_unlock();

    return list;
}


static void
rt_box_state(rt_box_t *b, rt_box_state_e state, const char *reason,
    const char *message)
{
    rt_boxes_lock();
    b->state = state;
    b->reason = reason;
    b->message = message;
    b->changed_us = sb_now_us();
    rt_boxes_unlock();
}


bool
rt_box_start(rt_box_t *b, char *why, size_t n)
{
    rt_job_t   job, **tail;
    uint64_t   one;

    memset(&job, 0, sizeof(job));
    job.box = b;
    job.why = why;
    job.n = n;
    one = 1;

    b->reason = "CONTAINER_STARTING";
    b->message = "The sandbox is being started.";

    /* nobody deletes it while it is being started */

    pthread_mutex_lock(&b->op);
    rt_boxes_lock();

    if (rt_ending || rt_nboxes == RT_BOXES_MAX) {
        rt_boxes_unlock();
        pthread_mutex_unlock(&b->op);
        snprintf(why, n, rt_ending ? "the runtime is stopping"
                 : "there are %d sandboxes already: delete some first",
                 RT_BOXES_MAX);
        rt_remove_at(AT_FDCWD, b->dir);
        rt_box_free(b);
        return false;
    }

    rt_nboxes++;
    b->refs = 2;                /* the store and the caller */
    b->next = rt_boxes;
    rt_boxes = b;

    for (tail = &rt_jobs; *tail != NULL; tail = &(*tail)->next) { }

    *tail = &job;

    if (write(rt_wake, &one, sizeof(one)) == -1) {
        /* it is awake */
    }

    while (!job.done) {
        pthread_cond_wait(&rt_job_done, &rt_store);
    }

    rt_boxes_unlock();

    if (!job.ok) {
        rt_box_delete(b);
    }

    pthread_mutex_unlock(&b->op);

    if (!job.ok) {
        rt_box_release(b);
    }

    return job.ok;
}


/* Main thread: starts what waits. */

static void
rt_boxes_spawn(void)
{
    rt_job_t  *job;

    for ( ;; ) {
        rt_boxes_lock();
        job = rt_jobs;
        rt_boxes_unlock();

        if (job == NULL) {
            return;
        }

        job->ok = rt_box_spawn(job->box, job->why, job->n);

        if (job->ok) {
            rt_box_state(job->box, RT_BOX_RUNNING, "CONTAINER_RUNNING",
                         "Sandbox container started successfully.");

        } else {
            job->box->pid = 0;
        }

        rt_boxes_lock();
        rt_jobs = job->next;
        job->done = true;
        pthread_cond_broadcast(&rt_job_done);
        rt_boxes_unlock();
    }
}


bool
rt_box_pause(rt_box_t *b)
{
    if (b->state != RT_BOX_RUNNING) {
        return false;
    }

    rt_freeze(b->pid, &b->stopped, &b->nstopped);
    rt_box_state(b, RT_BOX_PAUSED, "CONTAINER_PAUSED",
                 "The processes of the sandbox are stopped.");

    return true;
}


bool
rt_box_resume(rt_box_t *b)
{
    if (b->state != RT_BOX_PAUSED) {
        return false;
    }

    rt_thaw(b->stopped, b->nstopped);
    free(b->stopped);
    b->stopped = NULL;
    b->nstopped = 0;
    rt_box_state(b, RT_BOX_RUNNING, "CONTAINER_RUNNING",
                 "The processes of the sandbox run again.");

    return true;
}


void
rt_box_delete(rt_box_t *b)
{
    bool        found;
    rt_box_t  **p;

    found = false;

    rt_boxes_lock();

    for (p = &rt_boxes; *p != NULL; p = &(*p)->next) {
        if (*p == b) {
            *p = b->next;
            rt_nboxes--;
            found = true;
            break;
        }
    }

    b->state = RT_BOX_STOPPING;
    rt_boxes_unlock();

    if (!found) {
        return;
    }

    if (b->pid > 0) {
        rt_kill_tree(b->pid);
        waitpid(b->pid, NULL, 0);
        b->pid = 0;
    }

    rt_remove_at(AT_FDCWD, b->dir);
    rt_box_release(b);
}


/* Ends what is over, notices what died. */

static void
rt_boxes_tick(void)
{
    size_t      i, n;
    uint64_t    now;
    rt_box_t  **list;

    now = sb_now_us();
    list = rt_boxes_list(&n);

    for (i = 0; list != NULL && i < n; i++) {

        /* whoever changes it now is seen at the next tick */

        if (pthread_mutex_trylock(&list[i]->op) == 0) {

            if (list[i]->expires_us != 0 && list[i]->expires_us <= now) {
                rt_box_delete(list[i]);

            } else if (list[i]->pid > 0
                       && waitpid(list[i]->pid, NULL, WNOHANG)
                          == list[i]->pid)
            {
                list[i]->pid = 0;
                rt_box_state(list[i], RT_BOX_TERMINATED, "CONTAINER_EXITED",
                             "The processes of the sandbox have ended.");
            }

            pthread_mutex_unlock(&list[i]->op);
        }

        rt_box_release(list[i]);
    }

    free(list);
}


void
rt_boxes_run(void)
{
    int                       sig;
    size_t                    i, n;
    uint64_t                  count;
    sigset_t                  set;
    rt_box_t                **list;
    rt_job_t                 *job;
    struct pollfd             p[2];
    struct signalfd_siginfo   info;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sig = signalfd(-1, &set, SFD_CLOEXEC);

    for ( ;; ) {
        p[0].fd = rt_wake;
        p[1].fd = sig;
        p[0].events = p[1].events = POLLIN;
        p[0].revents = p[1].revents = 0;
        poll(p, 2, RT_TICK_MS);

        if (p[1].revents && read(sig, &info, sizeof(info)) > 0) {
            break;
        }

        if (p[0].revents && read(rt_wake, &count, sizeof(count)) == -1) {
            continue;
        }

        rt_boxes_spawn();
        rt_boxes_tick();
    }

    rt_boxes_lock();
    rt_ending = true;

    while ((job = rt_jobs) != NULL) {
        rt_jobs = job->next;
        snprintf(job->why, job->n, "the runtime is stopping");
        job->done = true;
    }

    pthread_cond_broadcast(&rt_job_done);
    rt_boxes_unlock();

    list = rt_boxes_list(&n);

    for (i = 0; list != NULL && i < n; i++) {
        pthread_mutex_lock(&list[i]->op);
        rt_box_delete(list[i]);
        pthread_mutex_unlock(&list[i]->op);
    }
}
