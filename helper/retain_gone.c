/* Whole files that go: archived or deleted. */

#include "retain_int.h"

#include "contents.h"
#include "id.h"
#include "log.h"
#include "own.h"
#include "result.h"
#include "stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define RETAIN_STAMP  20    /* 20261129T090000.123Z */


/* "2026-11-29T09:00:00.123456Z" -> "20261129T090000.123Z" */
static void
retain_stamp(char dst[RETAIN_STAMP + 1], uint64_t us)
{
    char    text[SB_TIME_LEN + 1];
    size_t  i, n;

    sb_time_text(text, us);
    n = 0;

    for (i = 0; i < 23; i++) {
        if (text[i] != '-' && text[i] != ':') {
            dst[n++] = text[i];
        }
    }

    dst[n++] = 'Z';
    dst[n] = '\0';
}


uint64_t
retain_archived(const char *name)
{
    char         text[32];
    size_t       n;
    uint64_t     us;
    const char  *p;

    n = strlen(name);

    /* DIR-STAMP.sqlite3 */
    if (n < RETAIN_STAMP + 10 || strcmp(name + n - 8, ".sqlite3") != 0
        || name[n - 8 - RETAIN_STAMP - 1] != '-')
    {
        return 0;
    }

    p = name + n - 8 - RETAIN_STAMP;
    (void) snprintf(text, sizeof(text), "%.4s-%.2s-%.5s:%.2s:%.7s", p, p + 4,
                    p + 6, p + 11, p + 13);

    return sb_time_parse(&us, sb_str(text, strlen(text))) == SB_OK ? us : 0;
}


/* How many records went with it, and where to, is told in _gateway. */
static bool
retain_tombstone(retain_t *r, const char *type, const char *sandbox,
    const char *rule, int64_t operations, const char *path)
{
    int          rc;
    char         request[64];
    uint8_t      id[16];
    sb_buf_t     b;
    result_t     res;
    store_db_t  *db;
    own_event_t  e;

    db = store_get(r->store, SCHEMA_GATEWAY, false, &rc);

    if (db == NULL || db->fresh) {
        /* it is made with the first record that passes */
        return false;
    }

    memset(&b, 0, sizeof(b));
    b.max = RESULT_MAX;
    res.n = 0;
    result_str(&res, "sandbox", sb_str(sandbox, strlen(sandbox)));
    result_int(&res, "operations", operations);
    result_str(&res, "rule", sb_str(rule, strlen(rule)));

    if (path) {
        result_str(&res, "archive", sb_str(path, strlen(path)));
    }

    if (result_write(&res, sb_str(NULL, 0), &b) != SB_OK) {
        sb_buf_free(&b);
        return false;
    }

    (void) snprintf(request, sizeof(request), "{\"rule\":\"%s\"}", rule);
    memset(&e, 0, sizeof(e));
    e.type = type;
    e.from_us = retain_now(r);
    e.to_us = e.from_us;
    e.request = sb_str(request, strlen(request));
    e.result = sb_str(b.data, b.len);

    rc = store_begin(db);

    if (rc == SQLITE_OK) {
        rc = own_event(db, &e, id);
        rc = rc == SQLITE_OK ? store_commit(db, 0) : (store_rollback(db), rc);
    }

    sb_buf_free(&b);

    if (rc != SQLITE_OK) {
        log_minutely(LOG_ERROR, "cannot note what becomes of the history of "
                     "%s: %s; it stays", sandbox, sqlite3_errstr(rc));
    }

    return rc == SQLITE_OK;
}


static int64_t
retain_number(sqlite3 *db, const char *sql)
{
    int64_t        n;
    sqlite3_stmt  *st;

    n = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK) {
        if (sqlite3_step(st) == SQLITE_ROW) {
            n = sqlite3_column_int64(st, 0);
        }

        (void) sqlite3_finalize(st);
    }

    return n;
}


/* A folded record is as many operations as it stands for; an old archive has no
 * table of them. */
static int64_t
retain_count(sqlite3 *db)
{
    return retain_number(db, "select count(*) from history_events where"
                             " operation_type != 'gateway.purge'")
           + retain_number(db, "select coalesce(sum(count), 0) from"
                               " gateway_folded");
}


/* All of it in the one file, with nobody in the way. */
static bool
retain_whole(store_db_t *db)
{
    int  rc, frames, copied;

    (void) sqlite3_busy_timeout(db->db, 0);
    rc = sqlite3_wal_checkpoint_v2(db->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                   &frames, &copied);
    (void) sqlite3_busy_timeout(db->db, RETAIN_BUSY_MS);

    return rc == SQLITE_OK;
}


bool
retain_remove(retain_t *r, retain_file_t *f, store_db_t *db, bool archive,
    const char *rule)
{
    int       n;
    bool      ok;
    char      from[RETAIN_PATH_MAX], to[RETAIN_PATH_MAX], dir[STORE_DIR_LEN];
    char      stamp[RETAIN_STAMP + 1], *sandbox, *slash;
    size_t    len, i;
    int64_t   operations;

    static const char  *suffixes[] = { "-wal", "-shm" };

    (void) purge_end(db, retain_now(r));

    sandbox = strdup(db->sandbox);
    len = retain_path(r, f, from, sizeof(from) - 8);

    if (sandbox == NULL || len == 0 || (archive && !retain_whole(db))) {
        free(sandbox);
        return false;
    }

    operations = retain_count(db->db);
    (void) strcpy(dir, db->dir);
    retain_stamp(stamp, retain_now(r));

    n = snprintf(to, sizeof(to), "%s/" RETAIN_ARCHIVE, store_base(r->store));
    ok = n > 0 && (size_t) n + strlen(dir) + RETAIN_STAMP + 16 < sizeof(to);

    if (ok && archive) {
        ok = mkdir(to, 0750) == 0 || errno == EEXIST;
        (void) sprintf(to + n, "/%s-%s.sqlite3", dir, stamp);
    }

    ok = ok && retain_tombstone(r, archive ? "gateway.archive"
                                           : "gateway.purge", sandbox, rule,
                                operations,
                                archive ? to + strlen(store_base(r->store)) + 1
                                        : NULL);

    if (!ok) {
        free(sandbox);
        return false;
    }

    /* another file of the store may have taken its place meanwhile */
    db = store_get(r->store, dir, false, &n);

    if (db) {
        /* a file that comes under this name is held to what follows */
        store_heads_end(r->store, db, archive ? "archive" : "delete");
        db->dirty = false;
        store_drop(r->store, db);
    }

    ok = archive ? rename(from, to) == 0 : unlink(from) == 0;

    if (!ok) {
        log_line(LOG_ERROR, "cannot %s the history of %s: %s",
                 archive ? "archive" : "delete", sandbox, strerror(errno));
        free(sandbox);
        return false;
    }

    for (i = 0; i < 2; i++) {
        (void) strcpy(from + len, suffixes[i]);
        (void) unlink(from);
    }

    from[len] = '\0';
    slash = strrchr(from, '/');
    *slash = '\0';

    /* what was set aside stays, and its directory with it */
    (void) rmdir(from);

    log_line(LOG_INFO, "the history of %s, which is gone, was %s (%lld "
             "operations)", sandbox, archive ? "archived" : "deleted",
             (long long) operations);

    stats_add(archive ? STATS_ARCHIVED : STATS_REMOVED, 1);
    contents_gone(dir);

    if (r->hooks.removed) {
        r->hooks.removed(r->hooks.data, sandbox);
    }

    if (r->hooks.purged) {
        r->hooks.purged(r->hooks.data, dir);
    }

    retain_forget(r, f);
    free(sandbox);

    return true;
}


/* The file says itself what is in it. */
static bool
retain_archive_read(const char *path, char **sandbox, int64_t *operations,
    bool *held)
{
    bool           ok;
    sqlite3       *db;
    const char    *text;
    sqlite3_stmt  *st;

    ok = false;
    st = NULL;
    *sandbox = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(db, "select (select value from history_meta where"
                              " key = 'sandbox_id'), exists(select 1 from"
                              " gateway_state where key = 'hold')", -1, &st,
                              NULL) == SQLITE_OK
        && sqlite3_step(st) == SQLITE_ROW)
    {
        text = (const char *) sqlite3_column_text(st, 0);
        *sandbox = strdup(text ? text : "");
        *held = sqlite3_column_int(st, 1) != 0;
        *operations = retain_count(db);
        ok = *sandbox != NULL;
    }

    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);

    return ok;
}


bool
retain_remove_archive(retain_t *r, retain_file_t *f, const char *rule)
{
    bool     held, ok;
    char     path[RETAIN_PATH_MAX], *sandbox;
    size_t   n;
    int64_t  operations;

    n = retain_path(r, f, path, sizeof(path) - 8);

    if (n == 0 || !retain_archive_read(path, &sandbox, &operations, &held)) {
        f->dry = true;
        f->squeeze = 0;
        return false;
    }

    if (held || retain_named(r, sandbox)) {
        f->held = true;
        f->squeeze = 0;
        free(sandbox);
        return false;
    }

    ok = retain_tombstone(r, "gateway.purge", sandbox, rule, operations, path
                          + strlen(store_base(r->store)) + 1)
         && unlink(path) == 0;

    if (ok) {
        (void) strcpy(path + n, "-wal");
        (void) unlink(path);
        (void) strcpy(path + n, "-shm");
        (void) unlink(path);

        log_line(LOG_INFO, "the archived history %s was deleted (%s)", f->dir,
                 rule);
        stats_add(STATS_REMOVED, 1);
        stats_add(STATS_PURGED, (uint64_t) operations);
        retain_forget(r, f);
    }

    free(sandbox);

    return ok;
}
