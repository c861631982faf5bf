#include "full.h"

#include "id.h"
#include "log.h"
#include "stats.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>


#define FULL_ROOM  256      /* of a frame, for each beside its id */

typedef struct {
    table_node_t  node;
    char         *dir;
    char         *sandbox;
    const char   *limit;
} full_one_t;

struct full_s {
    int              fd;
    pthread_mutex_t  lock;
    table_t          ones;
    size_t           bytes;     /* of their ids */
    const char      *all;       /* limit, or NULL */
    size_t           over;      /* that were not taken in, and are full */
};


full_t *
full_new(int fd)
{
    full_t  *f;

    f = calloc(1, sizeof(full_t));

    if (f) {
        f->fd = fd;
        pthread_mutex_init(&f->lock, NULL);
    }

    return f;
}


static void
full_drop(void *entry, void *data)
{
    full_t      *f = data;
    full_one_t  *one = entry;

    table_remove(&f->ones, &one->node);
    f->bytes -= strlen(one->sandbox);
    free(one->dir);
    free(one->sandbox);
    free(one);
}


void
full_free(full_t *f)
{
    if (f) {
        table_each(&f->ones, full_drop, f);
        table_free(&f->ones);
        pthread_mutex_destroy(&f->lock);
        free(f);
    }
}


static void
full_add(full_t *f, const char *dir, const char *sandbox, const char *limit)
{
    full_one_t  *one;

    one = f->ones.count < FULL_MAX ? calloc(1, sizeof(full_one_t)) : NULL;

    if (one) {
        one->dir = strdup(dir);
        one->sandbox = strdup(sandbox);
        one->limit = limit;
    }

    if (one == NULL || one->dir == NULL || one->sandbox == NULL
        || table_add(&f->ones, &one->node, one->dir, strlen(dir)) != SB_OK)
    {
        if (one) {
            free(one->dir);
            free(one->sandbox);
            free(one);
        }

        /* not told of it could mean not on record */
        f->over++;
        log_minutely(LOG_ERROR, "the histories of more than %d sandboxes are "
                     "full: strict operations of all are refused", FULL_MAX);
        return;
    }

    f->bytes += strlen(sandbox);
}


void
full_set(full_t *f, const char *dir, const char *sandbox, bool full,
    const char *limit)
{
    uint64_t     one;
    full_one_t  *e;

    pthread_mutex_lock(&f->lock);

    if (dir == NULL) {
        f->all = full ? limit : NULL;

    } else {
        e = table_find(&f->ones, dir, strlen(dir));

        if (full && e == NULL) {
            full_add(f, dir, sandbox, limit);

        } else if (!full && e) {
            full_drop(e, f);

        } else if (!full && f->over) {
            /* we are told once of each: it is one of those */
            f->over--;
        }
    }

    stats_set(STATS_HISTORY_FULL, f->ones.count);
    pthread_mutex_unlock(&f->lock);

    one = 1;

    if (write(f->fd, &one, sizeof(one)) == -1) {
        /* it is written already */
    }
}


static void
full_put(void *entry, void *data)
{
    full_one_t         *one = entry;
    sb_frame_writer_t  *w = data;

    sb_frame_put(w, SB_T_SANDBOX, sb_str(one->sandbox, strlen(one->sandbox)));
    sb_frame_put(w, SB_T_REASON, sb_str(one->limit, strlen(one->limit)));
}


char *
full_frame(full_t *f, bool always, size_t *n)
{
    char               *mem;
    size_t              size;
    const char         *all;
    sb_frame_writer_t   w;

    static const uint8_t  none[16];

    *n = 0;
    mem = NULL;

    pthread_mutex_lock(&f->lock);

    all = f->all ? f->all : f->over ? "sandbox_history_size" : NULL;
    size = f->bytes + (f->ones.count + 2) * FULL_ROOM;

    if (always || f->ones.count || all) {
        mem = malloc(size);
    }

    if (mem) {
        sb_frame_begin(&w, mem, size, SB_F_FULL, 0, 0, none, sb_now_us());

        if (all) {
            sb_frame_put(&w, SB_T_SANDBOX, sb_lit(""));
            sb_frame_put(&w, SB_T_REASON, sb_str(all, strlen(all)));

        } else {
            table_each(&f->ones, full_put, &w);
        }

        *n = sb_frame_end(&w);
    }

    pthread_mutex_unlock(&f->lock);

    return mem;
}
