#include "store.h"
#include "store_int.h"

#include "contents.h"
#include "id.h"
#include "log.h"
#include "stats.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define STORE_STMTS  96

/*
 * What we insert keeps the rules of the tables by itself: each IN () of a CHECK
 * makes a table of its own for every row, and a parent that was just written
 * need not be looked up.  Who deletes and counts on cascades turns foreign keys
 * on (store_cascades).
 */
static const char  store_settings[] =
    "pragma ignore_check_constraints = on;"
    "pragma foreign_keys = off;"
    "pragma cache_size = -2048;";

/*
 * A checkpoint in a commit copies what no reader needs any more and lets the
 * log begin anew when no reader is in it.  Seldom: pages that are written again
 * and again are copied once, and an idle file is checkpointed by store_tidy().
 */
#define STORE_WAL_PAGES       4000      /* 16 MiB */
#define STORE_WAL_AGAIN       1000
#define STORE_WAL_WARN        16000     /* 64 MiB */
#define STORE_WAL_MOST        64000     /* 250 MiB: nothing more goes in */

/* SQLite waits, and all others with it; who cannot be written is tried again
 * later. */
#define STORE_BUSY_MS         250


/*
 * SQLite resolves symbolic links in a path before it opens it.  Below
 * /proc/self/fd that would lead out to a name which may be out of reach after
 * privileges were dropped, though the descriptor is not.
 */
static int
store_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void) vfs;

    return snprintf(out, (size_t) size, "%s", name) < size ? SQLITE_OK
                                                           : SQLITE_CANTOPEN;
}


const char *
store_plain_vfs(void)
{
    sqlite3_vfs         *unix_vfs;
    static sqlite3_vfs   vfs;

    if (vfs.zName == NULL) {
        unix_vfs = sqlite3_vfs_find("unix");
        if (unix_vfs == NULL) {
            return NULL;
        }

        vfs = *unix_vfs;
        vfs.pNext = NULL;
        vfs.zName = "sandbox-plain";
        vfs.xFullPathname = store_full_path;

        if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK) {
            vfs.zName = NULL;
            return NULL;
        }
    }

    return vfs.zName;
}


store_t *
store_new(const char *base, unsigned handles, bool plain)
{
    store_t  *s;

    s = calloc(1, sizeof(store_t));
    if (s == NULL) {
        return NULL;
    }

    s->base = strdup(base);
    s->handles = handles;
    s->wal_most = STORE_WAL_MOST;
    stats_set(STATS_HANDLES_MAX, handles);
    s->vfs = plain ? store_plain_vfs() : NULL;
    s->bulk = bulk_new();

    if (s->base == NULL || s->bulk == NULL || (plain && s->vfs == NULL)) {
        store_free(s);
        return NULL;
    }

    return s;
}


void
store_free(store_t *s)
{
    if (s == NULL) {
        return;
    }

    while (s->first) {
        store_drop(s, s->first);
    }

    store_untidy_free(s);
    store_make_free(s);
    bulk_free(s->bulk);
    table_free(&s->open);
    free(s->base);
    free(s);
}


void
store_set_wal(store_t *s, int pages)
{
    s->wal_most = pages;
}


const char *
store_base(const store_t *s)
{
    return s->base;
}


void
store_set_heads(store_t *s, heads_t *heads)
{
    s->heads = heads;
}


void
store_set_news(store_t *s, store_news_pt news, void *data)
{
    s->news = news;
    s->news_data = data;
}


/* After a stat() that failed: may it be there all the same? */
static bool
store_hidden(void)
{
    return errno != ENOENT && errno != ENOTDIR;
}


bool
store_exists(store_t *s, const char *dir)
{
    char         path[STORE_PATH_MAX];
    struct stat  st;

    if (store_dir_path(path, sizeof(path), s->base, dir) == 0) {
        return false;
    }

    return stat(path, &st) == 0 ? S_ISREG(st.st_mode) : store_hidden();
}


bool
store_knew(store_t *s, const char *dir)
{
    return (s->gateway_lost && strcmp(dir, SCHEMA_GATEWAY) == 0)
           || (s->heads && heads_knew(s->heads, dir));
}


static void
store_unlink(store_t *s, store_db_t *db)
{
    if (db->prev) {
        db->prev->next = db->next;
    } else {
        s->first = db->next;
    }

    if (db->next) {
        db->next->prev = db->prev;
    } else {
        s->last = db->prev;
    }
}


static void
store_link(store_t *s, store_db_t *db)
{
    db->prev = s->last;
    db->next = NULL;

    if (s->last) {
        s->last->next = db;
    } else {
        s->first = db;
    }

    s->last = db;
}


void
store_drop(store_t *s, store_db_t *db)
{
    store_free_stmts(db);
    chain_free(&db->chain);
    s->awake -= !db->rests;

    if (db->dirty && store_untidy_add(s, db->dir)) {
        /* a checkpoint would wait for the disk, twice: many at once later
         * (store_tidy) wait as long as one */
        (void) sqlite3_db_config(db->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                                 NULL);
    }

    (void) sqlite3_close(db->db);

    store_unlink(s, db);
    table_remove(&s->open, &db->node);
    stats_set(STATS_HANDLES, s->open.count);
    free(db->stmts);
    free(db->sandbox);
    free(db->instance);
    free(db);
}


static void
store_evict(store_t *s)
{
    store_db_t  *db, *next;

    for (db = s->first; db && s->open.count >= s->handles; db = next) {
        next = db->next;

        if (db->pins == 0 && !db->in_tx) {
            store_drop(s, db);
        }
    }
}


bool
store_broken(int rc)
{
    switch (rc & 0xff) {

    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return true;

    default:
        return false;
    }
}


static void
store_wal_warn(const store_db_t *db)
{
    log_minutely(LOG_WARN, "the write-ahead log of %s is %llu MiB long: a "
                 "reader that does not end keeps it from being reused",
                 db->dir, (unsigned long long) db->wal_pages * 4096 >> 20);
}


/*
 * A log at its bound has to begin anew, which it cannot while a reader is in
 * it.  Until then the file counts as one that is locked.
 */
static int
store_wal_full(store_db_t *db)
{
    int  rc;

    (void) sqlite3_busy_timeout(db->db, 0);
    rc = sqlite3_wal_checkpoint_v2(db->db, "main", SQLITE_CHECKPOINT_RESTART,
                                   NULL, NULL);
    (void) sqlite3_busy_timeout(db->db, STORE_BUSY_MS);

    if (rc == SQLITE_OK) {
        db->wal_pages = 0;

    } else {
        store_wal_warn(db);
    }

    return rc;
}


/* Called behind a commit with the length of the log. */
static int
store_wal(void *data, sqlite3 *sqlite, const char *name, int pages)
{
    uint64_t     bytes;
    store_db_t  *db = data;

    (void) name;

    db->wal_pages = pages;

    if (pages < db->wal_next) {
        db->wal_next = STORE_WAL_PAGES;
    }

    bytes = (uint64_t) pages * 4096;

    if (bytes > stats_get(STATS_WAL_MAX_BYTES)) {
        stats_set(STATS_WAL_MAX_BYTES, bytes);
    }

    if (pages < STORE_WAL_PAGES || pages < db->wal_next) {
        return SQLITE_OK;
    }

    db->wal_next = pages + STORE_WAL_AGAIN;

    if (pages >= STORE_WAL_WARN) {
        store_wal_warn(db);
    }

    (void) sqlite3_wal_checkpoint_v2(sqlite, "main", SQLITE_CHECKPOINT_PASSIVE,
                                     NULL, NULL);

    return SQLITE_OK;
}


/*
 * What SQLite made beside a file that was read-only then is so, too, and would
 * stay it.  False: there is something that is no file, which SQLite could not
 * open, now or later.
 */
static bool
store_modes(const char *path)
{
    bool         fine;
    char         beside[STORE_PATH_MAX];
    size_t       i;
    struct stat  st, other;

    static const char  *suffixes[] = { "-wal", "-shm" };

    if (stat(path, &st) == -1) {
        return true;
    }

    fine = true;

    for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (snprintf(beside, sizeof(beside), "%s%s", path, suffixes[i])
                >= (int) sizeof(beside)
            || lstat(beside, &other) == -1)
        {
            continue;
        }

        if (!S_ISREG(other.st_mode)) {
            fine = false;

        } else if (other.st_uid == geteuid()
                   && (other.st_mode & 0777) != (st.st_mode & 0777))
        {
            (void) chmod(beside, st.st_mode & 0777);
        }
    }

    return fine;
}


static store_db_t *
store_open(store_t *s, const char *dir, const char *path, int *rc)
{
    size_t       n;
    store_db_t  *db;
    struct stat  st;

    store_evict(s);

    *rc = SQLITE_NOMEM;

    db = calloc(1, sizeof(store_db_t));
    if (db == NULL) {
        return NULL;
    }

    db->stmts = calloc(STORE_STMTS, sizeof(sqlite3_stmt *));

    n = strlen(dir);

    if (db->stmts == NULL || n >= sizeof(db->dir)) {
        free(db->stmts);
        free(db);
        return NULL;
    }

    memcpy(db->dir, dir, n + 1);

    if (table_add(&s->open, &db->node, db->dir, n) != SB_OK) {
        free(db->stmts);
        free(db);
        return NULL;
    }

    db->nstmts = STORE_STMTS;
    db->bulk = s->bulk;
    db->store = s;
    store_link(s, db);
    s->awake++;
    store_rest(s);
    stats_set(STATS_HANDLES, s->open.count);

    *rc = store_modes(path) ? SQLITE_OK : SQLITE_NOTADB;

    if (*rc == SQLITE_OK) {
        *rc = sqlite3_open_v2(path, &db->db,
                              SQLITE_OPEN_READWRITE|SQLITE_OPEN_NOMUTEX
                              |SQLITE_OPEN_NOFOLLOW, s->vfs);
    }

    if (*rc == SQLITE_OK && sqlite3_db_readonly(db->db, "main") == 1) {
        *rc = SQLITE_READONLY;
    }

    if (*rc == SQLITE_OK) {
        (void) sqlite3_extended_result_codes(db->db, 1);

        *rc = schema_pragmas(db->db, true);
    }

    if (*rc == SQLITE_OK) {
        *rc = sqlite3_exec(db->db, store_settings, NULL, NULL, NULL);
    }

    if (*rc == SQLITE_OK) {
        *rc = schema_upgrade(db->db);
    }

    if (*rc == SQLITE_OK) {
        (void) sqlite3_busy_timeout(db->db, STORE_BUSY_MS);
        (void) sqlite3_wal_hook(db->db, store_wal, db);
        *rc = bulk_attach(s->bulk, db->db);
    }

    if (*rc == SQLITE_OK) {
        *rc = store_load(db);
    }

    if (*rc == SQLITE_OK && stat(path, &st) == -1) {
        *rc = SQLITE_IOERR;
    }

    if (*rc != SQLITE_OK) {
        store_drop(s, db);
        return NULL;
    }

    db->dev = st.st_dev;
    db->ino = st.st_ino;

    return db;
}


/* Links lead elsewhere (C085): one that stands in the place of a sandbox's
 * directory or file goes, what it led to stays. */
static void
store_no_link(char *path, const char *dir)
{
    char         *slash;
    struct stat   st;

    slash = strrchr(path, '/');
    *slash = '\0';

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && unlink(path) == 0) {
        log_line(LOG_ERROR, "a link stood in the place of the history of %s: "
                 "it is removed, links are not followed", dir);
    }

    *slash = '/';

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && unlink(path) == 0) {
        log_line(LOG_ERROR, "a link stood in the place of the history file of "
                 "%s: it is removed, links are not followed", dir);
    }
}


/* Does something else stand where the directory of a history belongs? */
static bool
store_no_dir(char *path)
{
    bool          no;
    char         *slash;
    struct stat   st;

    slash = strrchr(path, '/');
    *slash = '\0';
    no = lstat(path, &st) == 0 && !S_ISDIR(st.st_mode);
    *slash = '/';

    return no;
}


store_db_t *
store_get(store_t *s, const char *dir, bool create, int *rc)
{
    bool         there, hidden;
    char         path[STORE_PATH_MAX], *slash;
    struct stat  st;
    store_db_t  *db;

    if (store_dir_path(path, sizeof(path), s->base, dir) == 0) {
        *rc = SQLITE_CANTOPEN;
        return NULL;
    }

    db = table_find(&s->open, dir, strlen(dir));

    if (db && db->unread) {

        if (db->pins) {
            *rc = SQLITE_IOERR;
            return NULL;
        }

        store_drop(s, db);
        db = NULL;
    }

    if (db == NULL) {
        store_no_link(path, dir);
    }

    there = stat(path, &st) == 0;
    hidden = !there && store_hidden();

    if (db) {
        if (hidden
            || (there && st.st_dev == db->dev && st.st_ino == db->ino))
        {
            store_unlink(s, db);
            store_link(s, db);
            store_wake(s, db);
            *rc = SQLITE_OK;
            return db;
        }

        log_line(LOG_ERROR, "the history file of %s was removed or replaced "
                 "while it was in use", dir);
        db->dirty = false;
        store_drop(s, db);
    }

    if (hidden) {
        *rc = SQLITE_CANTOPEN;
        return NULL;
    }

    if (there ? !S_ISREG(st.st_mode) : store_no_dir(path)) {
        /* it would fail in the same way for ever */
        *rc = SQLITE_NOTADB;
        return NULL;
    }

    if (!there && !create) {
        *rc = SQLITE_NOTFOUND;
        return NULL;
    }

    if (!there) {
        slash = strrchr(path, '/');
        *slash = '\0';

        if (mkdir(path, 0750) == -1 && errno != EEXIST) {
            *rc = SQLITE_CANTOPEN;
            return NULL;
        }

        *slash = '/';

        *rc = store_make(s, path);
        if (*rc != SQLITE_OK) {
            return NULL;
        }
    }

    return store_open(s, dir, path, rc);
}


/* First column of the first row as text, or NULL; malloc'd. */
static int
store_text(sqlite3 *db, const char *sql, char **out)
{
    int            rc;
    const char    *text;
    sqlite3_stmt  *st;

    free(*out);
    *out = NULL;

    rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        *out = text ? strdup(text) : NULL;
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


static void
store_copy(char *dst, size_t size, sqlite3_stmt *st, int column)
{
    const char  *text;

    text = (const char *) sqlite3_column_text(st, column);
    (void) snprintf(dst, size, "%s", text ? text : "");
}


bool
store_fold_same(const store_fold_t *a, const store_fold_t *b, bool ended)
{
    return a->port == b->port
           && strcmp(a->type, b->type) == 0
           && strcmp(a->actor, b->actor) == 0
           && (a->type[0] || !ended || strcmp(a->code, b->code) == 0);
}


/* The polls at the end of the history that others may be counted into. */
static int
store_load_folds(store_db_t *db)
{
    int            rc;
    char           type[48], id[208];
    unsigned       i, n;
    store_fold_t  *f, swap;
    sqlite3_stmt  *st;

    db->nfolds = 0;

    rc = sqlite3_prepare_v2(db->db,
            "select r.event_id, e.status,"
            " iif(w.identity is 'none', '', e.operation_type), e.actor_type,"
            " e.actor_id, iif(w.identity is 'none', 0, w.port),"
            " coalesce(w.foldable, 0), w.error_code"
            " from gateway_records r"
            " left join history_events e on e.event_id = r.event_id"
            " left join gateway_wire w on w.event_id = r.event_id"
            " order by r.seq desc limit ?1", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_int(st, 1, STORE_FOLDS);

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {

        if (sqlite3_column_int(st, 6) == 0) {
            rc = SQLITE_DONE;
            break;
        }

        f = &db->folds[db->nfolds];
        store_copy(f->event_id, sizeof(f->event_id), st, 0);
        store_copy(f->status, sizeof(f->status), st, 1);
        store_copy(f->type, sizeof(f->type), st, 2);
        store_copy(type, sizeof(type), st, 3);
        store_copy(id, sizeof(id), st, 4);
        (void) snprintf(f->actor, sizeof(f->actor), "%s\n%s", type, id);
        f->port = sqlite3_column_int64(st, 5);
        store_copy(f->code, sizeof(f->code), st, 7);

        /* an older one of the same group is not the one to count into */
        for (i = 0; i < db->nfolds; i++) {
            if (store_fold_same(f, &db->folds[i], true)) {
                break;
            }
        }

        db->nfolds += i == db->nfolds;
    }

    (void) sqlite3_finalize(st);

    if (rc != SQLITE_DONE) {
        return rc;
    }

    n = db->nfolds;

    for (i = 0; i < n / 2; i++) {
        swap = db->folds[i];
        db->folds[i] = db->folds[n - 1 - i];
        db->folds[n - 1 - i] = swap;
    }

    return SQLITE_OK;
}


int
store_load(store_db_t *db)
{
    int    rc;
    char  *text;

    text = NULL;

    rc = store_text(db->db, "select count(*) from sqlite_master where type ="
                    " 'table' and name in ('gateway_state', 'history_meta')",
                    &text);
    if (rc != SQLITE_OK) {
        return rc;
    }

    db->fresh = (text == NULL || strcmp(text, "2") != 0);
    db->applied = 0;
    db->next_seq = 1;
    db->nfolds = 0;

    if (db->fresh) {
        free(text);
        return SQLITE_OK;
    }

    rc = store_text(db->db, "select value from gateway_state where key ="
                    " 'applied_cursor'", &text);

    if (rc == SQLITE_OK && text) {
        db->applied = strtoull(text, NULL, 10);
    }

    if (rc == SQLITE_OK) {
        rc = store_text(db->db, "select coalesce(max(seq), 0) + 1 from"
                        " gateway_records", &text);
    }

    if (rc == SQLITE_OK && text) {
        db->next_seq = strtoll(text, NULL, 10);
    }

    free(text);

    if (rc == SQLITE_OK) {
        rc = store_text(db->db, "select value from history_meta where key ="
                        " 'sandbox_id'", &db->sandbox);
    }

    if (rc == SQLITE_OK) {
        rc = store_text(db->db, "select value from history_meta where key ="
                        " 'sandbox_instance_id'", &db->instance);
    }

    if (rc == SQLITE_OK && (db->sandbox == NULL || db->instance == NULL)) {
        db->fresh = true;
    }

    if (rc == SQLITE_OK) {
        rc = store_load_folds(db);
    }

    if (rc == SQLITE_OK) {
        rc = chain_load(&db->chain, db->db);
    }

    if (rc == SQLITE_OK && !db->fresh && db->store->heads) {
        heads_opened(db->store->heads, db->dir, db->sandbox, db->instance,
                     &db->chain, db->next_seq - 1);
    }

    return rc == SQLITE_OK ? contents_load(db) : rc;
}


const keys_t *
store_keys(const store_db_t *db)
{
    return db->store->heads ? heads_keys(db->store->heads) : NULL;
}


int
store_cascades(store_db_t *db, bool on)
{
    return sqlite3_exec(db->db, on ? "pragma foreign_keys = on"
                                   : "pragma foreign_keys = off",
                        NULL, NULL, NULL);
}


int
store_begin(store_db_t *db)
{
    int  rc;

    rc = db->wal_pages < db->store->wal_most ? SQLITE_OK : store_wal_full(db);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db->db, "begin immediate", NULL, NULL, NULL);
    }

    db->in_tx = (rc == SQLITE_OK);

    return rc;
}


int
store_flush(store_db_t *db)
{
    int  rc;

    rc = bulk_insert(db->bulk, db->db, db->bulk_stmts);

    if (rc == SQLITE_OK) {
        chain_take(&db->chain, db->bulk);
    }

    bulk_clear(db->bulk);

    return rc;
}


int
store_commit(store_db_t *db, uint64_t applied)
{
    int            rc;
    uint64_t       began;
    sqlite3_stmt  *st;

    began = sb_now_us();
    rc = store_flush(db);

    if (rc == SQLITE_OK && db->chain.nnotes) {
        rc = chain_write(&db->chain, db->db, db->bulk, db->next_seq - 1);

        if (rc == SQLITE_OK) {
            rc = store_flush(db);
        }
    }

    if (rc == SQLITE_OK && applied > db->applied) {
        st = store_stmt(db, 0, "insert or replace into gateway_state(key,"
                        " value) values('applied_cursor', ?1)");
        if (st == NULL) {
            rc = sqlite3_errcode(db->db);

        } else {
            sqlite3_bind_int64(st, 1, (sqlite3_int64) applied);
            rc = store_run(st);
        }
    }

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db->db, "commit", NULL, NULL, NULL);
    }

    if (rc != SQLITE_OK) {
        store_rollback(db);
        return rc;
    }

    stats_time(STATS_T_COMMIT, sb_now_us() - began);
    stats_add(STATS_APPLY_COMMITS, 1);
    db->in_tx = false;
    db->dirty = true;

    if (db->chain.nnotes && db->store->heads) {
        heads_note(db->store->heads, db->dir, db->sandbox, db->instance,
                   &db->chain, db->next_seq - 1);
    }

    chain_done(&db->chain);
    contents_done(db);

    if (applied > db->applied) {
        db->applied = applied;
    }

    if (db->store->news) {
        db->store->news(db->store->news_data, db->dir);
    }

    return SQLITE_OK;
}


void
store_rollback(store_db_t *db)
{
    unsigned  i;

    for (i = 0; i < db->nstmts; i++) {
        if (db->stmts[i]) {
            (void) sqlite3_reset(db->stmts[i]);
        }
    }

    bulk_clear(db->bulk);
    chain_forget(&db->chain);
    (void) sqlite3_exec(db->db, "rollback", NULL, NULL, NULL);
    db->in_tx = false;
    db->unread = store_load(db) != SQLITE_OK;
}


void
store_set_aside(store_t *s, const char *dir, const char *why)
{
    char         from[STORE_PATH_MAX], to[STORE_PATH_MAX + 64];
    char         now[SB_TIME_LEN + 1];
    size_t       i, n;
    store_db_t  *db;

    static const char  *suffixes[] = { "", "-wal", "-shm" };

    stats_add(STATS_FILES_LOST, 1);
    contents_gone(dir);
    s->gateway_lost = s->gateway_lost || strcmp(dir, SCHEMA_GATEWAY) == 0;

    db = table_find(&s->open, dir, strlen(dir));

    if (db) {
        db->dirty = false;
        store_drop(s, db);
    }

    n = store_dir_path(from, sizeof(from) - 8, s->base, dir);
    if (n == 0) {
        return;
    }

    sb_time_text(now, sb_now_us());

    if (store_no_dir(from)) {
        /* all of it: the name of the directory */
        n = (size_t) (strrchr(from, '/') - from);
        from[n] = '\0';
    }

    for (i = 0; i < 3; i++) {
        (void) strcpy(from + n, suffixes[i]);
        (void) snprintf(to, sizeof(to), "%.*s.%s-%s%s", (int) n, from, why, now,
                        suffixes[i]);

        if (rename(from, to) == -1 && errno != ENOENT) {
            log_line(LOG_ERROR, "cannot set aside the history file of %s: %s",
                     dir, strerror(errno));

        } else if (i == 0) {
            log_line(LOG_ERROR, "the history file of %s cannot be used (%s); "
                     "it is kept as %s", dir, why, strrchr(to, '/') + 1);
        }
    }

    if (s->news) {
        s->news(s->news_data, dir);
    }
}
