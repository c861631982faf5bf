/*
 * Checkpoints.  A checkpoint flushes the write-ahead log, then the database:
 * some milliseconds of waiting for each file.  Here all files of a group share
 * two flushes of the whole file system:
 *
 *   flush: the logs are on the disk
 *   copy the logs into the databases, without flushing
 *   flush: the databases are on the disk
 *   now the logs may go
 */

#include "store_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define STORE_GROUP  64


typedef struct {
    table_node_t  node;
    char          dir[STORE_DIR_LEN];
} store_untidy_t;


bool
store_untidy_add(store_t *s, const char *dir)
{
    size_t           n;
    store_untidy_t  *u;

    n = strlen(dir);

    if (table_find(&s->untidy, dir, n)) {
        return true;
    }

    if (s->untidy.count >= STORE_UNTIDY || n >= STORE_DIR_LEN) {
        return false;
    }

    u = malloc(sizeof(store_untidy_t));
    if (u == NULL) {
        return false;
    }

    memcpy(u->dir, dir, n + 1);

    if (table_add(&s->untidy, &u->node, u->dir, n) != SB_OK) {
        free(u);
        return false;
    }

    return true;
}


static void
store_untidy_remove(void *entry, void *data)
{
    store_t         *s = data;
    store_untidy_t  *u = entry;

    table_remove(&s->untidy, &u->node);
    free(u);
}


void
store_untidy_free(store_t *s)
{
    table_each(&s->untidy, store_untidy_remove, s);
    table_free(&s->untidy);
}


size_t
store_untidy(const store_t *s)
{
    size_t       n;
    store_db_t  *db;

    n = s->untidy.count;

    for (db = s->first; db; db = db->next) {
        n += db->dirty;
    }

    return n;
}


void
store_find_untidy(store_t *s)
{
    DIR            *d;
    char            path[STORE_PATH_MAX];
    struct stat     st;
    struct dirent  *e;

    (void) snprintf(path, sizeof(path), "%s/.", s->base);

    d = opendir(path);
    if (d == NULL) {
        return;
    }

    while ((e = readdir(d)) != NULL) {

        if (e->d_name[0] == '.' || strlen(e->d_name) >= STORE_DIR_LEN
            || store_dir_path(path, sizeof(path) - 4, s->base, e->d_name) == 0)
        {
            continue;
        }

        (void) strcat(path, "-wal");

        if (lstat(path, &st) == 0 && S_ISREG(st.st_mode)
            && !store_untidy_add(s, e->d_name))
        {
            break;
        }
    }

    closedir(d);
}


bool
store_sync(store_t *s)
{
    int   fd, rc;
    char  path[STORE_PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/.", s->base);

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    rc = fd == -1 ? -1 : syncfs(fd);

    if (rc == -1) {
        log_minutely(LOG_ERROR, "cannot flush the history files: %s",
                     strerror(errno));
    }

    if (fd != -1) {
        close(fd);
    }

    return rc == 0;
}


/* What a directory says of its files. */
static bool
store_sync_dir(const char *path)
{
    int   fd;
    bool  ok;

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return false;
    }

    ok = fsync(fd) == 0;
    close(fd);

    return ok;
}


bool
store_sync_file(store_t *s, store_db_t *db)
{
    bool           ok;
    char           path[STORE_PATH_MAX];
    sqlite3_file  *file;

    /* through SQLite: a descriptor of our own would take its locks along when
     * it is closed */

    file = NULL;
    ok = sqlite3_file_control(db->db, "main", SQLITE_FCNTL_FILE_POINTER, &file)
         == SQLITE_OK
         && file && file->pMethods
         && file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK
         && snprintf(path, sizeof(path), "%s/%s", s->base, db->dir)
            < (int) sizeof(path)
         && store_sync_dir(path)
         && snprintf(path, sizeof(path), "%s/.", s->base) < (int) sizeof(path)
         && store_sync_dir(path);

    if (!ok) {
        log_minutely(LOG_ERROR, "cannot flush the history file of %s: %s",
                     db->dir, strerror(errno));
    }

    return ok;
}


bool
store_heads_due(const store_t *s, uint64_t mono_us, bool all)
{
    return s->heads && (all ? heads_any(s->heads)
                            : heads_due(s->heads, mono_us));
}


void
store_heads_sign(store_t *s, uint64_t now_us)
{
    /* no crash may undo what a head speaks of */
    if (store_sync(s)) {
        (void) heads_write(s->heads, now_us, sb_mono_us());
    }
}


void
store_heads_end(store_t *s, store_db_t *db, const char *how)
{
    uint8_t  file[CHAIN_HASH];

    if (s->heads == NULL || db->fresh
        || chain_file(db->db, &db->chain.stmts, file) != SQLITE_OK)
    {
        return;
    }

    if (heads_end(s->heads, db->dir, db->sandbox, db->instance, &db->chain,
                  db->next_seq - 1, how, file))
    {
        store_heads_sign(s, sb_now_us());
    }
}


/* Copies the log into the database; true when all of it could be copied. */
static bool
store_copy_log(store_db_t *db)
{
    int  rc, frames, copied;

    (void) sqlite3_exec(db->db, "pragma synchronous = off", NULL, NULL, NULL);

    rc = sqlite3_wal_checkpoint_v2(db->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                   &frames, &copied);

    (void) sqlite3_exec(db->db, "pragma synchronous = normal", NULL, NULL,
                        NULL);

    return rc == SQLITE_OK && frames == copied;
}


typedef struct {
    char    dirs[STORE_GROUP][STORE_DIR_LEN];
    size_t  n, most;
} store_group_t;


static void
store_group_pick(void *entry, void *data)
{
    store_group_t   *g = data;
    store_untidy_t  *u = entry;

    if (g->n < g->most) {
        (void) strcpy(g->dirs[g->n++], u->dir);
    }
}


/* Closed files: opened, copied, and after a flush closed without their log. */
static bool
store_tidy_closed(store_t *s, size_t most)
{
    int              rc;
    bool             ok, was_open;
    size_t           i;
    store_db_t      *db, *dbs[STORE_GROUP];
    store_group_t    g;
    store_untidy_t  *u;

    g.n = 0;
    g.most = most < STORE_GROUP ? most : STORE_GROUP;

    if (g.most > s->handles / 2) {
        g.most = s->handles / 2;
    }

    table_each(&s->untidy, store_group_pick, &g);

    for (i = 0; i < g.n; i++) {
        was_open = table_find(&s->open, g.dirs[i], strlen(g.dirs[i])) != NULL;
        dbs[i] = NULL;
        db = store_get(s, g.dirs[i], false, &rc);

        if (db == NULL) {
            /* gone, or not usable: whoever needs it will see */
            u = table_find(&s->untidy, g.dirs[i], strlen(g.dirs[i]));

            if (u) {
                store_untidy_remove(u, s);
            }

            continue;
        }

        if (was_open) {
            db->dirty = true;
        }

        db->pins++;
        dbs[i] = store_copy_log(db) ? db : NULL;

        if (dbs[i] == NULL) {
            db->pins--;
        }
    }

    ok = store_sync(s);

    for (i = 0; i < g.n; i++) {

        if (dbs[i] == NULL) {
            continue;
        }

        dbs[i]->pins--;

        if (!ok) {
            continue;
        }

        u = table_find(&s->untidy, g.dirs[i], strlen(g.dirs[i]));

        if (u) {
            store_untidy_remove(u, s);
        }

        dbs[i]->dirty = false;
        (void) sqlite3_exec(dbs[i]->db, "pragma synchronous = off", NULL, NULL,
                            NULL);
        store_drop(s, dbs[i]);
    }

    return ok;
}


bool
store_tidy(store_t *s, size_t most)
{
    bool         ok;
    size_t       n, before;
    uint64_t     began;
    store_db_t  *db;

    if (store_untidy(s) == 0) {
        return true;
    }

    began = sb_now_us();

    if (!store_sync(s)) {
        return false;
    }

    n = 0;
    ok = true;

    for (db = s->first; db; db = db->next) {
        if (db->dirty && !db->in_tx && n < most && store_copy_log(db)) {
            db->copied = true;
            n++;
        }
    }

    if (n) {
        ok = store_sync(s);

        for (db = s->first; db; db = db->next) {
            if (db->copied) {
                db->copied = false;
                db->dirty = db->dirty && !ok;
            }
        }
    }

    while (ok && n < most && s->untidy.count) {
        before = s->untidy.count;
        ok = store_tidy_closed(s, most - n);

        if (s->untidy.count >= before) {
            break;      /* readers hold them: another time */
        }

        n += before - s->untidy.count;
    }

    stats_time(STATS_T_CHECKPOINT, sb_now_us() - began);
    stats_set(STATS_UNTIDY, store_untidy(s));

    return ok;
}
