#include "reader.h"

#include "id.h"
#include "stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>


#define READER_STEPS    4000        /* of SQLite, between two looks at the
                                       clock */
#define READER_BUSY_MS  1000
#define READER_SLOTS    1024        /* lists that idle ones are found in */


struct readers_s {
    char             *base;
    const char       *vfs;
    pthread_mutex_t   lock;
    reader_t         *idle, *oldest;    /* used last first */
    reader_t         *slots[READER_SLOTS];
    unsigned          n;
    unsigned          max;
};


readers_t *
readers_new(const char *base, bool plain, unsigned most)
{
    readers_t      *rs;
    struct rlimit   r;

    rs = calloc(1, sizeof(readers_t));
    if (rs == NULL) {
        return NULL;
    }

    rs->max = most;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur / 12 < rs->max) {
        rs->max = (unsigned) (r.rlim_cur / 12);
    }

    stats_set(STATS_READERS_MAX, rs->max);
    pthread_mutex_init(&rs->lock, NULL);
    rs->base = strdup(base);
    rs->vfs = plain ? store_plain_vfs() : NULL;

    if (rs->base == NULL || (plain && rs->vfs == NULL)) {
        readers_free(rs);
        return NULL;
    }

    return rs;
}


static void
reader_close(reader_t *r)
{
    (void) sqlite3_finalize(r->record);
    (void) sqlite3_finalize(r->version);
    (void) sqlite3_close_v2(r->db);
    free(r);
}


void
readers_free(readers_t *rs)
{
    reader_t  *r;

    if (rs == NULL) {
        return;
    }

    while ((r = rs->idle) != NULL) {
        rs->idle = r->next;
        reader_close(r);
    }

    pthread_mutex_destroy(&rs->lock);
    free(rs->base);
    free(rs);
}


const char *
readers_base(const readers_t *rs)
{
    return rs->base;
}


static int
reader_progress(void *data)
{
    reader_t  *r = data;

    return r->until_us && sb_mono_us() > r->until_us;
}


static reader_t **
reader_slot(readers_t *rs, const char *dir)
{
    uint32_t  h;

    for (h = 2166136261u; *dir; dir++) {
        h = (h ^ (unsigned char) *dir) * 16777619u;
    }

    return &rs->slots[h % READER_SLOTS];
}


/* Idle no more; with the lock held. */
static void
reader_unlink(readers_t *rs, reader_t *r)
{
    reader_t  **p;

    for (p = reader_slot(rs, r->dir); *p != r; p = &(*p)->same) { /* void */ }

    *p = r->same;

    if (r->prev) {
        r->prev->next = r->next;
    } else {
        rs->idle = r->next;
    }

    if (r->next) {
        r->next->prev = r->prev;
    } else {
        rs->oldest = r->prev;
    }

    stats_set(STATS_READERS, --rs->n);
}


/* One that is open already. */
static reader_t *
reader_idle(readers_t *rs, const char *dir)
{
    reader_t  *r;

    pthread_mutex_lock(&rs->lock);

    for (r = *reader_slot(rs, dir); r; r = r->same) {
        if (strcmp(r->dir, dir) == 0) {
            reader_unlink(rs, r);
            break;
        }
    }

    pthread_mutex_unlock(&rs->lock);

    return r;
}


/* The number that changes with the tables, as the snapshot has it; -1 with
 * err. */
static int64_t
reader_schema(reader_t *r, history_error_t *err)
{
    int64_t  n;

    n = history_step(r->version, err) == 1 ? sqlite3_column_int64(r->version, 0)
                                           : -1;
    (void) sqlite3_reset(r->version);

    return n;
}


static reader_rc_e
reader_open(readers_t *rs, const char *path, reader_t *r, history_error_t *err)
{
    int  rc;

    rc = sqlite3_open_v2(path, &r->db,
                         SQLITE_OPEN_READONLY|SQLITE_OPEN_NOMUTEX
                         |SQLITE_OPEN_NOFOLLOW, rs->vfs);

    if (rc != SQLITE_OK) {
        history_error_sqlite(err, r->db, rc);
        return READER_FAILED;
    }

    (void) sqlite3_busy_timeout(r->db, READER_BUSY_MS);
    r->version = history_prepare(r->db, "PRAGMA schema_version", err);
    r->schema = r->version ? reader_schema(r, err) : -1;

    if (r->schema == -1) {
        return READER_FAILED;
    }

    if (!history_has_table(r->db, "history_events")) {
        return READER_MISSING;
    }

    if (!history_query_prepare(r->db, err)) {
        return READER_FAILED;
    }

    sqlite3_progress_handler(r->db, READER_STEPS, reader_progress, r);

    return READER_OK;
}


/* A snapshot begins; false, with err: not now. */
static bool
reader_begin(reader_t *r, history_error_t *err)
{
    int  rc;

    r->until_us = sb_mono_us() + READER_MS * 1000u;
    rc = sqlite3_exec(r->db, "BEGIN", NULL, NULL, NULL);

    if (rc != SQLITE_OK) {
        history_error_sqlite(err, r->db, rc);
    }

    return rc == SQLITE_OK;
}


reader_rc_e
reader_take(readers_t *rs, const char *dir, reader_t **reader,
    history_error_t *err)
{
    char          path[1024];
    reader_t     *r;
    reader_rc_e   found;
    struct stat   st;

    *reader = NULL;

    if (store_dir_path(path, sizeof(path), rs->base, dir) == 0) {
        return READER_MISSING;
    }

    r = reader_idle(rs, dir);

    if (stat(path, &st) == -1 || !S_ISREG(st.st_mode)) {

        if (r) {
            reader_close(r);
        }

        return READER_MISSING;
    }

    if (r && (r->dev != st.st_dev || r->ino != st.st_ino
              || !reader_begin(r, err) || reader_schema(r, err) != r->schema))
    {
        /* another file lies there, or tables were made in it: views that stand
         * in for them would hide these */
        reader_close(r);
        r = NULL;
    }

    if (r == NULL) {
        r = calloc(1, sizeof(reader_t));

        if (r == NULL) {
            history_error(err, "MemoryError", "out of memory");
            return READER_FAILED;
        }

        (void) snprintf(r->dir, sizeof(r->dir), "%s", dir);
        r->dev = st.st_dev;
        r->ino = st.st_ino;

        found = reader_open(rs, path, r, err);

        if (found == READER_OK && !reader_begin(r, err)) {
            found = READER_FAILED;
        }

        if (found != READER_OK) {
            reader_close(r);
            return found;
        }
    }

    *reader = r;

    return READER_OK;
}


reader_rc_e
reader_take_of(readers_t *rs, const char *dir, const char *id, int64_t *row,
    reader_t **reader, history_error_t *err)
{
    int           found;
    char          to[STORE_DIR_LEN];
    reader_rc_e   rc;

    rc = reader_take(rs, dir, reader, err);

    if (rc != READER_OK || strcmp(dir, SCHEMA_GATEWAY) != 0) {
        return rc;
    }

    found = history_query_moved((*reader)->db, id, to, err);

    if (found == 0) {
        return READER_OK;
    }

    reader_give(rs, *reader, found == -1);
    *reader = NULL;

    if (found == -1) {
        return READER_FAILED;
    }

    rc = reader_take(rs, to, reader, err);

    if (rc != READER_OK || row == NULL) {
        return rc;
    }

    found = history_query_row((*reader)->db, id, row, err);

    if (found == 1) {
        return READER_OK;
    }

    reader_give(rs, *reader, found == -1);
    *reader = NULL;

    return found == 0 ? READER_MISSING : READER_FAILED;
}


void
reader_give(readers_t *rs, reader_t *r, bool broken)
{
    reader_t  *last, **slot;

    r->until_us = 0;

    if (r->record) {
        (void) sqlite3_reset(r->record);
        (void) sqlite3_clear_bindings(r->record);
    }

    if (broken
        || sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
    {
        reader_close(r);
        return;
    }

    last = NULL;

    pthread_mutex_lock(&rs->lock);

    slot = reader_slot(rs, r->dir);
    r->same = *slot;
    *slot = r;
    r->prev = NULL;
    r->next = rs->idle;

    if (r->next) {
        r->next->prev = r;
    } else {
        rs->oldest = r;
    }

    rs->idle = r;
    stats_set(STATS_READERS, ++rs->n);

    if (rs->n > rs->max) {
        last = rs->oldest;
        reader_unlink(rs, last);
    }

    pthread_mutex_unlock(&rs->lock);

    if (last) {
        reader_close(last);
    }
}


sqlite3_stmt *
reader_record(reader_t *r, history_error_t *err)
{
    if (r->record == NULL) {
        r->record = history_query_record(r->db, false, err);
    }

    return r->record;
}
