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


/* The log of a database that is gone goes with it. */
static void
retain_remove_log(char *path, size_t len)
{
    size_t  i;

    static const char *const  suffixes[] = { "-wal", "-shm" };

    for (i = 0; i < 2; i++) {
        (void) strcpy(path + len, suffixes[i]);
        (void) unlink(path);
    }

    path[len] = '\0';
}


/*
 * Renames and tells: what cannot be moved is not told to be gone, and what
 * cannot be told comes back.  A crash in between leaves it where it went: in the
 * archive, or beside its place (retain_come_back).
 */
static bool
retain_move(retain_t *r, const char *from, const char *to, const char *type,
    const char *sandbox, const char *rule, int64_t operations,
    const char *archive)
{
    if (rename(from, to) != 0) {
        log_minutely(LOG_ERROR, "cannot %s the history of %s, %s: %s",
                     strcmp(type, "gateway.archive") == 0 ? "archive"
                                                          : "delete",
                     sandbox, from, strerror(errno));
        return false;
    }

    if (retain_tombstone(r, type, sandbox, rule, operations, archive)) {
        return true;
    }

    if (rename(to, from) != 0) {
        log_line(LOG_ERROR, "cannot put back %s: %s", from, strerror(errno));
    }

    return false;
}


/* Where it goes: into the archive, or beside its place; 0: too long. */
static size_t
retain_target(retain_t *r, const char *from, const char *dir,
    bool archive, char *to, size_t size)
{
    int   n;
    char  stamp[RETAIN_STAMP + 1];

    if (!archive) {
        n = snprintf(to, size, "%s" RETAIN_GONE, from);
        return n > 0 && (size_t) n < size ? (size_t) n : 0;
    }

    retain_stamp(stamp, retain_now(r));
    n = snprintf(to, size, "%s/" RETAIN_ARCHIVE, store_base(r->store));

    if (n <= 0 || (size_t) n + strlen(dir) + RETAIN_STAMP + 16 > size
        || (mkdir(to, 0750) != 0 && errno != EEXIST))
    {
        return 0;
    }

    return (size_t) n + (size_t) sprintf(to + n, "/%s-%s.sqlite3", dir, stamp);
}


bool
retain_remove(retain_t *r, retain_file_t *f, store_db_t *db, bool archive,
    const char *rule)
{
    bool      ok;
    char      from[RETAIN_PATH_MAX], to[RETAIN_PATH_MAX], dir[STORE_DIR_LEN];
    char     *sandbox, *slash;
    size_t    len;
    int64_t   operations;

    (void) purge_end(db, retain_now(r));

    sandbox = strdup(db->sandbox);
    (void) strcpy(dir, db->dir);
    len = retain_path(r, f, from, sizeof(from) - 8);

    if (sandbox == NULL || len == 0
        || retain_target(r, from, dir, archive, to, sizeof(to)) == 0
        || (archive && !retain_whole(db)))
    {
        free(sandbox);
        return false;
    }

    operations = retain_count(db->db);

    /* not closed for the sake of the file that is told */
    db->pins++;
    ok = retain_move(r, from, to, archive ? "gateway.archive"
                                          : "gateway.purge", sandbox, rule,
                     operations,
                     archive ? to + strlen(store_base(r->store)) + 1 : NULL);
    db->pins--;

    if (!ok) {
        free(sandbox);
        return false;
    }

    /* a file that comes under this name is held to what follows */
    store_heads_end(r->store, db, archive ? "archive" : "delete");
    db->dirty = false;
    store_drop(r->store, db);

    if (!archive) {
        (void) unlink(to);
    }

    retain_remove_log(from, len);
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


void
retain_come_back(retain_t *r, const char *name, bool archive)
{
    int   n, len;
    char  to[RETAIN_PATH_MAX], from[RETAIN_PATH_MAX];

    n = archive ? snprintf(from, sizeof(from), "%s/" RETAIN_ARCHIVE "/%s",
                           store_base(r->store), name)
                : snprintf(from, sizeof(from), "%s/%s/history.sqlite3"
                           RETAIN_GONE, store_base(r->store), name);

    if (n <= 0 || (size_t) n >= sizeof(from)) {
        return;
    }

    len = n - (int) strlen(RETAIN_GONE);
    (void) snprintf(to, sizeof(to), "%.*s", len, from);

    /* nothing that is there is replaced */
    if (access(to, F_OK) == -1 && errno == ENOENT && rename(from, to) == 0) {
        log_line(LOG_WARN, "%s was about to be deleted when the helper ended: "
                 "it is back", to);
    }
}


/* The file says itself what is in it; *held: nothing of it may go, for it is on
 * hold or an active consumer has not seen all of it. */
static bool
retain_archive_read(retain_t *r, const char *path, char **sandbox,
    int64_t *operations, bool *held)
{
    bool           ok;
    sqlite3       *db;
    uint64_t       now;
    const char    *text;
    sqlite3_stmt  *st;

    ok = false;
    st = NULL;
    *sandbox = NULL;
    now = retain_now(r);

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(db, "select (select value from history_meta where"
                              " key = 'sandbox_id'), exists(select 1 from"
                              " gateway_state where key = 'hold') or"
                              " exists(select 1 from history_consumers where"
                              " updated_at >= ?1 and acknowledged_seq < (select"
                              " max(seq) from history_changes))", -1, &st,
                              NULL) == SQLITE_OK)
    {
        store_bind_time(st, 1, now > RETAIN_CONSUMER_US
                               ? now - RETAIN_CONSUMER_US : 0);

        if (sqlite3_step(st) == SQLITE_ROW) {
            text = (const char *) sqlite3_column_text(st, 0);
            *sandbox = strdup(text ? text : "");
            *held = sqlite3_column_int(st, 1) != 0;
            *operations = retain_count(db);
            ok = *sandbox != NULL;
        }
    }

    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);

    return ok;
}


bool
retain_remove_archive(retain_t *r, retain_file_t *f, const char *rule)
{
    bool     held;
    char     path[RETAIN_PATH_MAX], beside[RETAIN_PATH_MAX], *sandbox;
    size_t   n;
    int64_t  operations;

    sandbox = NULL;
    operations = 0;
    n = retain_path(r, f, path, sizeof(path) - 8);

    if (n == 0
        || !retain_archive_read(r, path, &sandbox, &operations, &held))
    {
        held = true;
    }

    if (held || retain_named(r, sandbox)
        || retain_target(r, path, f->dir, false, beside, sizeof(beside)) == 0
        || !retain_move(r, path, beside, "gateway.purge", sandbox, rule,
                        operations, path + strlen(store_base(r->store)) + 1))
    {
        /* asked again with the next sweep */
        f->dry = true;
        f->squeeze = 0;
        free(sandbox);
        return false;
    }

    (void) unlink(beside);
    retain_remove_log(path, n);

    log_line(LOG_INFO, "the archived history %s was deleted (%s)", f->dir,
             rule);
    stats_add(STATS_REMOVED, 1);
    stats_add(STATS_PURGED, (uint64_t) operations);
    retain_forget(r, f);
    free(sandbox);

    return true;
}
