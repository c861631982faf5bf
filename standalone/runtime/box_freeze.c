/*
 * Pausing without a cgroup: every process below one pid is stopped.  The tree
 * is complete, because orphans fall to the init process of the sandbox, which
 * is in it.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "box.h"


#define RT_ROUNDS  50


typedef struct {
    pid_t  pid;
    pid_t  parent;
    char   state;
    bool   inside;
} rt_proc_t;


static bool
rt_proc_read(rt_proc_t *p, const char *name)
{
    int          parent, n;
    char         path[64], buf[1024], *close;
    FILE        *f;
    size_t       len;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
    f = fopen(path, "re");

    if (f == NULL) {
        return false;
    }

    len = fread(buf, 1, sizeof(buf) - 1, f);
    fclose(f);
    buf[len] = '\0';

    /* the name in brackets may hold anything */

    close = strrchr(buf, ')');
    n = close ? sscanf(close + 1, " %c %d", &p->state, &parent) : 0;

    if (n != 2) {
        return false;
    }

    p->pid = (pid_t) strtol(name, NULL, 10);
    p->parent = (pid_t) parent;
    p->inside = false;

    return true;
}


/* All processes below pid, parents before their children.  malloc'ed. */

static rt_proc_t *
rt_tree(pid_t pid, size_t *n)
{
    DIR            *d;
    bool            more;
    size_t          all, cap, i, j, m;
    rt_proc_t      *list, *grown, tmp;
    struct dirent  *e;

    *n = 0;
    d = opendir("/proc");

    if (d == NULL) {
        return NULL;
    }

    list = NULL;
    all = cap = 0;

    while ((e = readdir(d)) != NULL) {
        if (!isdigit((unsigned char) e->d_name[0])
            || !rt_proc_read(&tmp, e->d_name))
        {
            continue;
        }

        if (all == cap) {
            cap = cap ? cap * 2 : 256;
            grown = realloc(list, cap * sizeof(rt_proc_t));

            if (grown == NULL) {
                break;
            }

            list = grown;
        }

        list[all++] = tmp;
    }

    closedir(d);

    /* list[0 .. m) is the tree so far, in order */

    m = 0;

    do {
        more = false;

        for (i = m; i < all; i++) {
            bool  below;

            below = list[i].parent == pid;

            for (j = 0; j < m && !below; j++) {
                below = list[j].pid == list[i].parent;
            }

            if (below) {
                tmp = list[m];
                list[m] = list[i];
                list[i] = tmp;
                m++;
                more = true;
            }
        }
    } while (more);

    *n = m;

    return list;
}


void
rt_freeze(pid_t pid, pid_t **stopped, size_t *n)
{
    bool        again;
    size_t      i, count;
    unsigned    round;
    pid_t      *list;
    rt_proc_t  *tree;

    *stopped = NULL;
    *n = 0;

    /* a process that is not stopped yet may still make children */

    for (round = 0, again = true; again && round < RT_ROUNDS; round++) {
        again = false;
        tree = rt_tree(pid, &count);

        for (i = 0; i < count; i++) {
            if (tree[i].state == 'T' || tree[i].state == 't'
                || tree[i].state == 'Z' || tree[i].state == 'X')
            {
                continue;
            }

            again = true;

            if (kill(tree[i].pid, SIGSTOP) == -1) {
                continue;
            }

            list = realloc(*stopped, (*n + 1) * sizeof(pid_t));

            if (list == NULL) {
                continue;
            }

            *stopped = list;
            list[(*n)++] = tree[i].pid;
        }

        free(tree);
    }
}


void
rt_thaw(pid_t *stopped, size_t n)
{
    /* children first: a shell that wakes before its job would take it for
     * suspended */

    while (n > 0) {
        kill(stopped[--n], SIGCONT);
    }
}


void
rt_kill_tree(pid_t pid)
{
    size_t      i, count;
    rt_proc_t  *tree;

    tree = rt_tree(pid, &count);
    kill(pid, SIGKILL);

    for (i = 0; i < count; i++) {
        kill(tree[i].pid, SIGKILL);
    }

    free(tree);
}
