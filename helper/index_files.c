/* Which history files there are, and which of them have news. */

#include "index_int.h"

#include "id.h"
#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


/* --- what others tell ---------------------------------------------------------- */

static void
index_tell(index_t *ix, const char *dir, bool forget)
{
    index_touch_t       *t;
    unsigned long long   none;

    t = NULL;

    if (atomic_load(&ix->ntouched) < INDEX_TOUCHES) {
        t = malloc(sizeof(index_touch_t));
    }

    if (t == NULL) {
        /* all files are looked at instead, and compared */
        atomic_store(&ix->all, true);

    } else {
        (void) snprintf(t->dir, sizeof(t->dir), "%s", dir);
        t->at_us = sb_mono_us();
        t->forget = forget;
        t->next = atomic_load(&ix->touched);
        atomic_fetch_add(&ix->ntouched, 1);

        while (!atomic_compare_exchange_weak(&ix->touched, &t->next, t)) {
            /* another one came in between */
        }
    }

    none = 0;
    (void) atomic_compare_exchange_strong(&ix->waiting_us, &none, sb_mono_us());

    if (!atomic_exchange(&ix->pending, true)) {
        (void) sem_post(&ix->wake);
    }
}


void
index_touch(index_t *ix, const char *dir)
{
    index_tell(ix, dir, false);
}


void
index_forget(index_t *ix, const char *dir)
{
    index_tell(ix, dir, true);
}


/* --- files --------------------------------------------------------------------------- */

index_box_t *
index_box(index_t *ix, const char *dir)
{
    index_box_t  *box;

    box = table_find(&ix->boxes, dir, strlen(dir));

    if (box) {
        return box;
    }

    box = calloc(1, sizeof(index_box_t));
    if (box == NULL) {
        return NULL;
    }

    (void) snprintf(box->dir, sizeof(box->dir), "%s", dir);

    if (table_add(&ix->boxes, &box->node, box->dir, strlen(box->dir)) != SB_OK)
    {
        free(box);
        return NULL;
    }

    return box;
}


bool
index_is_gateway(const index_box_t *box)
{
    return strcmp(box->dir, SCHEMA_GATEWAY) == 0;
}


void
index_dirty(index_t *ix, index_box_t *box, bool forget)
{
    box->forget = box->forget || forget;

    if (!box->dirty) {
        box->dirty = true;
        box->next_dirty = NULL;
        *ix->dirty_last = box;
        ix->dirty_last = &box->next_dirty;
    }
}


static bool
index_same_stat(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size
           && a->st_mtim.tv_sec == b->st_mtim.tv_sec
           && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}


/* Looks at a file; one that changed since is to be read. */
static bool
index_look(index_t *ix, const char *dir)
{
    char          path[1100];
    size_t        n;
    struct stat   main, wal;
    index_box_t  *box;

    n = store_dir_path(path, sizeof(path) - 8, ix->history, dir);

    if (n == 0 || stat(path, &main) == -1 || !S_ISREG(main.st_mode)) {
        return false;
    }

    (void) strcpy(path + n, "-wal");

    if (stat(path, &wal) == -1) {
        memset(&wal, 0, sizeof(wal));
    }

    box = index_box(ix, dir);
    if (box == NULL) {
        return false;
    }

    box->seen = true;

    if (!index_same_stat(&main, &box->main) || !index_same_stat(&wal, &box->wal)
        || !box->done || box->failing)
    {
        /* whatever was not told: a crash, or somebody else */
        index_dirty(ix, box, !box->done || main.st_ino != box->main.st_ino);
    }

    box->main = main;
    box->wal = wal;

    return true;
}


static void
index_unsee(void *entry, void *data)
{
    index_box_t  *box = entry;

    (void) data;
    box->seen = false;
}


typedef struct {
    index_t      *ix;
    index_box_t  *gone;
    int           rc;
} index_gone_t;

static void
index_find_gone(void *entry, void *data)
{
    index_box_t   *box = entry;
    index_gone_t  *g = data;

    if (!box->seen && !box->dirty) {
        box->next_dirty = g->gone;
        g->gone = box;
    }
}


/* Takes boxes whose files are gone out of the list. */
static int
index_leave(index_t *ix)
{
    int           rc;
    index_box_t  *box;
    index_gone_t  g;

    memset(&g, 0, sizeof(g));
    table_each(&ix->boxes, index_find_gone, &g);
    rc = SQLITE_OK;

    while ((box = g.gone) != NULL && rc == SQLITE_OK) {
        g.gone = box->next_dirty;

        rc = index_begin(ix);

        if (rc == SQLITE_OK) {
            rc = index_box_drop(ix, box, true);
        }

        if (rc == SQLITE_OK) {
            rc = index_commit(ix);

        } else {
            index_rollback(ix);
        }

        if (rc == SQLITE_OK) {
            index_box_close(ix, box);
            table_remove(&ix->boxes, &box->node);
            free(box);
        }
    }

    return rc;
}


/* All files: new ones, those that changed without a word, those that are gone.
 */
int
index_sweep(index_t *ix)
{
    DIR            *d;
    char            path[1100];
    struct dirent  *e;

    (void) snprintf(path, sizeof(path), "%s/.", ix->history);

    d = opendir(path);
    if (d == NULL) {
        log_minutely(LOG_WARN, "%s cannot be read for the index: %s",
                     ix->history, strerror(errno));
        return SQLITE_OK;
    }

    table_each(&ix->boxes, index_unsee, NULL);
    errno = 0;

    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.' && strlen(e->d_name) < STORE_DIR_LEN) {
            (void) index_look(ix, e->d_name);
        }

        errno = 0;
    }

    /* what could not be read to its end tells of nothing that is gone */

    if (errno) {
        closedir(d);
        return SQLITE_OK;
    }

    closedir(d);

    return index_leave(ix);
}


/* Boxes as the index knows them. */
int
index_load_boxes(index_t *ix)
{
    int            rc;
    index_box_t   *box;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(ix->db, "select id, dir, ino, change, change_id"
                            " from boxes", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        box = index_box(ix, (const char *) sqlite3_column_text(st, 1));

        if (box == NULL) {
            rc = SQLITE_NOMEM;
            break;
        }

        box->id = sqlite3_column_int64(st, 0);
        box->ino = sqlite3_column_int64(st, 2);
        box->change = sqlite3_column_int64(st, 3);
        (void) snprintf(box->change_id, sizeof(box->change_id), "%s",
                        (const char *) sqlite3_column_text(st, 4));
    }

    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


static void
index_box_free(void *entry, void *data)
{
    index_box_t  *box = entry;
    index_t      *ix = data;

    index_box_close(ix, box);
    table_remove(&ix->boxes, &box->node);
    free(box);
}


void
index_forget_boxes(index_t *ix)
{
    table_each(&ix->boxes, index_box_free, ix);
    ix->dirty = NULL;
    ix->dirty_last = &ix->dirty;
}
