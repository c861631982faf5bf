#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsutil.h"
#include "id.h"
#include "snapshot.h"


#define RT_COPIES_MAX  2        /* at the same time */


typedef struct rt_entry_s  rt_entry_t;

struct rt_entry_s {
    rt_entry_t  *next;          /* newest first */
    rt_snap_t    shown;
    unsigned     uses;          /* sandboxes that began with it */
    rt_box_t    *source;        /* while it is being made */
};


static pthread_mutex_t   rt_snaps_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t    rt_snaps_cond = PTHREAD_COND_INITIALIZER;
static rt_entry_t       *rt_snaps;
static unsigned          rt_nsnaps;
static unsigned          rt_ncopies;
static char              rt_snaps_dir[PATH_MAX];


bool
rt_snaps_init(const char *data, char *why, size_t n)
{
    if (snprintf(rt_snaps_dir, sizeof(rt_snaps_dir), "%s/snapshots", data)
            >= (int) sizeof(rt_snaps_dir)
        || rt_remove_at(AT_FDCWD, rt_snaps_dir) == -1
        || mkdir(rt_snaps_dir, 0700) == -1)
    {
        snprintf(why, n, "the directory %s/snapshots cannot be used: %s; name "
                 "another with --data", data, strerror(errno));
        return false;
    }

    return true;
}


static void
rt_snap_path(char dst[PATH_MAX], const char *id)
{
    int  n;

    n = snprintf(dst, PATH_MAX, "%s/%s", rt_snaps_dir, id);

    if (n < 0 || n >= PATH_MAX) {
        abort();
    }
}


/* Copies a tree as it is: owners, modes, times, links, holes.  false with a
 * sentence. */

static bool
rt_tree_copy(const char *from, const char *to, char *why, size_t n)
{
    int                         status, e;
    pid_t                       pid;
    char                       *argv[6], *env[2];
    posix_spawn_file_actions_t  files;

    argv[0] = (char *) (uintptr_t) "cp";
    argv[1] = (char *) (uintptr_t) "-a";
    argv[2] = (char *) (uintptr_t) "--reflink=auto";
    argv[3] = (char *) (uintptr_t) from;
    argv[4] = (char *) (uintptr_t) to;
    argv[5] = NULL;
    env[0] = (char *) (uintptr_t) "PATH=/usr/bin:/bin";
    env[1] = NULL;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    e = posix_spawnp(&pid, "cp", &files, NULL, argv, env);
    posix_spawn_file_actions_destroy(&files);

    if (e != 0) {
        snprintf(why, n, "cp does not start: %s", strerror(e));
        return false;
    }

    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) { /* void */ }

    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        snprintf(why, n, "the files could not all be copied; the runtime's "
                 "log says which");
        return false;
    }

    return true;
}


static bool
rt_snap_copy(rt_box_t *b, const char *id, char *why, size_t n)
{
    bool    ok;
    char    from[PATH_MAX], to[PATH_MAX];
    size_t  nstopped;
    pid_t  *stopped;

    if (snprintf(from, sizeof(from), "%s/root", b->dir)
        >= (int) sizeof(from))
    {
        abort();
    }

    rt_snap_path(to, id);

    pthread_mutex_lock(&b->op);

    if (b->state != RT_BOX_RUNNING) {
        pthread_mutex_unlock(&b->op);
        snprintf(why, n, "the sandbox did not run any more");
        return false;
    }

    /* as docker commit: nothing changes while it is being copied */

    stopped = NULL;
    nstopped = 0;
    rt_freeze(b->pid, &stopped, &nstopped);
    ok = rt_tree_copy(from, to, why, n);
    rt_thaw(stopped, nstopped);
    free(stopped);

    pthread_mutex_unlock(&b->op);

    return ok;
}


static void *
rt_snap_work(void *data)
{
    bool         ok;
    char         why[200], path[PATH_MAX];
    rt_entry_t  *e;

    e = data;
    why[0] = '\0';

    pthread_mutex_lock(&rt_snaps_lock);

    while (rt_ncopies == RT_COPIES_MAX) {
        pthread_cond_wait(&rt_snaps_cond, &rt_snaps_lock);
    }

    rt_ncopies++;
    pthread_mutex_unlock(&rt_snaps_lock);

    /* nobody deletes one that is being made: e stays */

    ok = rt_snap_copy(e->source, e->shown.id, why, sizeof(why));
    rt_box_release(e->source);

    if (!ok) {
        rt_snap_path(path, e->shown.id);
        rt_remove_at(AT_FDCWD, path);
    }

    pthread_mutex_lock(&rt_snaps_lock);
    rt_ncopies--;
    e->source = NULL;
    e->shown.state = ok ? RT_SNAP_READY : RT_SNAP_FAILED;
    e->shown.reason = ok ? "snapshot_runtime_ready"
                         : "snapshot_runtime_failed";
    snprintf(e->shown.message, sizeof(e->shown.message), "%s",
             ok ? "The files of the sandbox were copied." : why);
    e->shown.changed_us = sb_now_us();
    pthread_cond_signal(&rt_snaps_cond);
    pthread_mutex_unlock(&rt_snaps_lock);

    return NULL;
}


static void
rt_snap_show(rt_snap_t *dst, const rt_entry_t *e)
{
    *dst = e->shown;

    if (e->shown.name != NULL) {
        dst->name = strdup(e->shown.name);
    }
}


void
rt_snap_clear(rt_snap_t *s)
{
    free(s->name);
    s->name = NULL;
}


bool
rt_snap_create(rt_box_t *b, sb_str_t *name, rt_snap_t *out)
{
    uint8_t         id[16];
    pthread_t       thread;
    rt_entry_t     *e, **p;
    pthread_attr_t  attr;

    e = calloc(1, sizeof(rt_entry_t));

    if (e == NULL) {
        abort();
    }

    sb_random(id, sizeof(id));
    id[6] = (uint8_t) ((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t) ((id[8] & 0x3f) | 0x80);
    sb_uuid_text(e->shown.id, id);
    memcpy(e->shown.box, b->id, sizeof(e->shown.box));
    e->shown.name = name ? strndup(name->data, name->len) : NULL;
    e->shown.state = RT_SNAP_CREATING;
    e->shown.reason = "snapshot_accepted";
    snprintf(e->shown.message, sizeof(e->shown.message),
             "Snapshot creation accepted.");
    e->shown.created_us = e->shown.changed_us = sb_now_us();

    pthread_mutex_lock(&rt_snaps_lock);

    if (rt_nsnaps == RT_SNAPSHOTS_MAX) {
        pthread_mutex_unlock(&rt_snaps_lock);
        free(e->shown.name);
        free(e);
        return false;
    }

    e->source = rt_box_find(sb_str(b->id, 36));
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);

    if (e->source == NULL
        || pthread_create(&thread, &attr, rt_snap_work, e) != 0)
    {
        pthread_mutex_unlock(&rt_snaps_lock);

        if (e->source != NULL) {
            rt_box_release(e->source);
        }

        pthread_attr_destroy(&attr);
        free(e->shown.name);
        free(e);
        return false;
    }

    pthread_attr_destroy(&attr);
    p = &rt_snaps;
    e->next = *p;
    *p = e;
    rt_nsnaps++;
    rt_snap_show(out, e);
    pthread_mutex_unlock(&rt_snaps_lock);

    return true;
}


/* Under the lock. */

static rt_entry_t **
rt_snap_entry(const char *id)
{
    rt_entry_t  **p;

    for (p = &rt_snaps; *p != NULL; p = &(*p)->next) {
        if (strcmp((*p)->shown.id, id) == 0) {
            return p;
        }
    }

    return NULL;
}


bool
rt_snap_find(const char *id, rt_snap_t *out)
{
    rt_entry_t  **p;

    pthread_mutex_lock(&rt_snaps_lock);
    p = rt_snap_entry(id);

    if (p != NULL) {
        rt_snap_show(out, *p);
    }

    pthread_mutex_unlock(&rt_snaps_lock);

    return p != NULL;
}


rt_snap_t *
rt_snaps_list(size_t *n)
{
    rt_snap_t   *list;
    rt_entry_t  *e;

    *n = 0;
    list = calloc(RT_SNAPSHOTS_MAX + 1, sizeof(rt_snap_t));

    pthread_mutex_lock(&rt_snaps_lock);

    for (e = rt_snaps; e != NULL && list != NULL; e = e->next) {
        rt_snap_show(&list[(*n)++], e);
    }

    pthread_mutex_unlock(&rt_snaps_lock);

    return list;
}


rt_snap_rc_e
rt_snap_delete(const char *id)
{
    char          path[PATH_MAX];
    rt_entry_t   *e, **p;
    rt_snap_rc_e  rc;

    pthread_mutex_lock(&rt_snaps_lock);
    p = rt_snap_entry(id);
    e = p ? *p : NULL;
    rc = e == NULL ? RT_SNAP_UNKNOWN
         : e->shown.state == RT_SNAP_CREATING ? RT_SNAP_BUSY
         : e->uses > 0 ? RT_SNAP_USED : RT_SNAP_DONE;

    if (rc == RT_SNAP_USED && e->shown.state != RT_SNAP_DELETING) {
        e->shown.state = RT_SNAP_DELETING;
        e->shown.reason = "snapshot_delete_requested";
        snprintf(e->shown.message, sizeof(e->shown.message),
                 "Snapshot deletion requested.");
        e->shown.changed_us = sb_now_us();
    }

    if (rc == RT_SNAP_DONE) {
        *p = e->next;
        rt_nsnaps--;
    }

    pthread_mutex_unlock(&rt_snaps_lock);

    if (rc == RT_SNAP_DONE) {
        rt_snap_path(path, id);
        rt_remove_at(AT_FDCWD, path);
        free(e->shown.name);
        free(e);
    }

    return rc;
}


rt_snap_rc_e
rt_snap_restore(const char *id, rt_box_t *b, char *why, size_t n)
{
    char          from[PATH_MAX], to[PATH_MAX];
    rt_entry_t  **p;
    rt_snap_rc_e  rc;

    pthread_mutex_lock(&rt_snaps_lock);
    p = rt_snap_entry(id);
    rc = p == NULL ? RT_SNAP_UNKNOWN
         : (*p)->shown.state != RT_SNAP_READY ? RT_SNAP_NOT_READY
         : RT_SNAP_DONE;

    if (rc == RT_SNAP_DONE) {
        (*p)->uses++;
    }

    pthread_mutex_unlock(&rt_snaps_lock);

    if (rc != RT_SNAP_DONE) {
        return rc;
    }

    rt_snap_path(from, id);

    if (snprintf(to, sizeof(to), "%s/root", b->dir) >= (int) sizeof(to)) {
        abort();
    }

    if (mkdir(b->dir, 0700) == -1) {
        snprintf(why, n, "the sandbox's directory %s cannot be made: %s",
                 b->dir, strerror(errno));
        rc = RT_SNAP_BUSY;

    } else if (!rt_tree_copy(from, to, why, n)) {
        rc = RT_SNAP_BUSY;
    }

    if (rc != RT_SNAP_DONE) {
        rt_remove_at(AT_FDCWD, b->dir);
        rt_snap_unuse(id);
    }

    return rc;
}


void
rt_snap_unuse(const char *id)
{
    rt_entry_t  **p;

    pthread_mutex_lock(&rt_snaps_lock);
    p = rt_snap_entry(id);

    if (p != NULL) {
        (*p)->uses--;
    }

    pthread_mutex_unlock(&rt_snaps_lock);
}
