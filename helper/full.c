#include "full.h"

#include "id.h"
#include "log.h"
#include "marks.h"
#include "stats.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>


#define FULL_ROOM  256      /* of a frame, beside its marks */

/* as many as there are history files, of which retain.c knows as much */

typedef struct {
    table_node_t  node;
    uint8_t       mark[SB_MARK];
    char          dir[];
} full_one_t;

struct full_s {
    int              fd;
    pthread_mutex_t  lock;
    table_t          ones;
    const char      *limit;     /* of all of them */
    const char      *all;       /* limit, or NULL */
    size_t           lost;      /* without memory: full, nobody knows which */
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
full_add(full_t *f, const char *dir, const char *sandbox)
{
    size_t       len;
    full_one_t  *one;

    len = strlen(dir);
    one = malloc(sizeof(full_one_t) + len + 1);

    if (one) {
        memcpy(one->dir, dir, len + 1);
        sb_mark(one->mark, sb_str(sandbox, strlen(sandbox)));
    }

    if (one == NULL || table_add(&f->ones, &one->node, one->dir, len) != SB_OK)
    {
        free(one);

        /* not told of it could mean not on record */
        f->lost++;
    }

    if (f->lost || f->ones.count > FULL_MAX) {
        log_minutely(LOG_ERROR, "the histories of more than %d sandboxes are "
                     "full: strict operations of all are refused", FULL_MAX);
    }
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
            f->limit = limit;
            full_add(f, dir, sandbox);

        } else if (!full && e) {
            full_drop(e, f);

        } else if (!full && f->lost) {
            /* we are told once of each: it is one of those */
            f->lost--;
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
    uint8_t    **p = data;
    full_one_t  *one = entry;

    *p = (uint8_t *) memcpy(*p, one->mark, SB_MARK) + SB_MARK;
}


char *
full_frame(full_t *f, bool always, size_t *n)
{
    char               *mem;
    size_t              size;
    uint8_t            *marks, *p;
    const char         *all;
    sb_frame_writer_t   w;

    static const uint8_t  none[16];

    *n = 0;
    mem = NULL;
    marks = NULL;

    pthread_mutex_lock(&f->lock);

    all = f->all ? f->all
          : f->lost || f->ones.count > FULL_MAX ? f->limit : NULL;
    size = all ? 0 : f->ones.count * SB_MARK;

    if (size) {
        marks = malloc(size);
    }

    if ((always || size || all) && (size == 0 || marks)) {
        mem = malloc(size + FULL_ROOM);
    }

    if (mem) {
        sb_frame_begin(&w, mem, size + FULL_ROOM, SB_F_FULL, 0, 0, none,
                       sb_now_us());

        if (all) {
            sb_frame_put(&w, SB_T_SANDBOX, sb_lit(""));
            sb_frame_put(&w, SB_T_REASON, sb_str(all, strlen(all)));

        } else if (size) {
            p = marks;
            table_each(&f->ones, full_put, &p);
            sb_marks_sort(marks, f->ones.count);
            sb_frame_put(&w, SB_T_REASON, sb_str(f->limit, strlen(f->limit)));
            sb_frame_put(&w, SB_T_DATA, sb_str((char *) marks, size));
        }

        *n = sb_frame_end(&w);
    }

    pthread_mutex_unlock(&f->lock);

    free(marks);

    return mem;
}
