#include "contents.h"

#include "digest.h"
#include "id.h"
#include "log.h"
#include "rows.h"
#include "stats.h"
#include "table.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>


#define CONTENTS_SMALL  64          /* not worth compressing */
#define CONTENTS_LEVEL  4
#define CONTENTS_STEP   256         /* dropped in one transaction at most */
#define CONTENTS_SHARE  (8 * 1024 * 1024)   /* ... bytes */
#define CONTENTS_SCAN   8           /* files counted, or asked, at a time */
#define CONTENTS_HELD_US  10000000u /* one that is held is not asked again */

/* What one history file holds. */
typedef struct contents_file_s  contents_file_t;

struct contents_file_s {
    table_node_t      node;
    char              dir[STORE_DIR_LEN];
    int64_t           bytes;
    uint64_t          held_us;      /* until then */
    contents_file_t  *prev, *next;
};

static struct {
    table_t           files;
    contents_file_t  *first;
    int64_t           total;
    uint64_t          limit;
    DIR              *scan;
    bool              scanned;
    bool              full;         /* too many, and nothing may be dropped */
} contents;


/* --- storing ---------------------------------------------------------------- */

static int
contents_insert(store_db_t *db, const char *sha256, sb_str_t bytes,
    uint64_t cursor)
{
    int            rc;
    uLongf         n;
    Bytef         *mem;
    sqlite3_stmt  *st;

    mem = NULL;
    n = 0;

    if (bytes.len > CONTENTS_SMALL) {
        n = compressBound(bytes.len);
        mem = malloc(n);

        if (mem == NULL) {
            return SQLITE_NOMEM;
        }

        if (compress2(mem, &n, (const Bytef *) bytes.data, bytes.len,
                      CONTENTS_LEVEL) != Z_OK
            || n >= bytes.len)
        {
            n = 0;
        }
    }

    st = store_stmt(db, ROWS_CONTENT_ADD, "insert into gateway_contents("
                    "sha256, size, stored, encoding, used, data)"
                    " values(?1, ?2, ?3, ?4, ?5, ?6)");
    if (st == NULL) {
        free(mem);
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_text(st, 1, sha256, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, (sqlite3_int64) bytes.len);
    sqlite3_bind_int64(st, 3, (sqlite3_int64) (n ? n : bytes.len));
    sqlite3_bind_text(st, 4, n ? "zlib" : "identity", -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 5, (sqlite3_int64) cursor);

    if (n) {
        sqlite3_bind_blob64(st, 6, mem, n, SQLITE_STATIC);

    } else {
        sqlite3_bind_blob64(st, 6, bytes.len ? bytes.data : "", bytes.len,
                            SQLITE_STATIC);
    }

    rc = store_run(st);
    free(mem);

    if (rc == SQLITE_OK) {
        db->contents_news += (int64_t) (n ? n : bytes.len);
        stats_add(STATS_CONTENTS_KEPT, 1);
    }

    return rc;
}


int
contents_put(store_db_t *db, const char *sha256, sb_str_t bytes,
    uint64_t cursor)
{
    int            rc;
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_CONTENT_USE, "update gateway_contents set"
                    " used = max(used, ?2) where sha256 = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_text(st, 1, sha256, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, (sqlite3_int64) cursor);
    rows_try(rc, store_run(st));

    if (sqlite3_changes(db->db)) {
        stats_add(STATS_CONTENTS_SAME, 1);
        return SQLITE_OK;
    }

    if (contents.full) {
        /* this one, then, is dropped at the bound */
        stats_add(STATS_CONTENTS_DROPPED, 1);
        return SQLITE_OK;
    }

    return contents_insert(db, sha256, bytes, cursor);
}


int
contents_note(store_db_t *db)
{
    return sqlite3_exec(db->db, "create temp table if not exists"
            " contents_gone(sha256 text primary key) without rowid;"
            "delete from temp.contents_gone;"
            "insert or ignore into temp.contents_gone select f.sha256 from"
            " gateway_files f where f.sha256 is not null and f.event_id in"
            " (select event_id from history_events where seq in (select seq"
            " from temp.purge));"
            "insert or ignore into temp.contents_gone select f.before_sha256"
            " from gateway_files f where f.before_sha256 is not null and"
            " f.event_id in (select event_id from history_events where seq in"
            " (select seq from temp.purge));", NULL, NULL, NULL);
}


int
contents_sweep(store_db_t *db)
{
    int            rc;
    int64_t        freed;
    sqlite3_stmt  *st;

    rows_try(rc, sqlite3_exec(db->db, "delete from temp.contents_gone where"
            " exists(select 1 from gateway_files f where f.sha256 ="
            " contents_gone.sha256) or exists(select 1 from gateway_files f"
            " where f.before_sha256 = contents_gone.sha256)", NULL, NULL,
            NULL));

    rows_try(rc, sqlite3_prepare_v2(db->db, "select coalesce(sum(stored), 0)"
            " from gateway_contents where sha256 in (select sha256 from"
            " temp.contents_gone)", -1, &st, NULL));

    rc = sqlite3_step(st);
    freed = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    (void) sqlite3_finalize(st);

    if (rc != SQLITE_ROW) {
        return rc;
    }

    rows_try(rc, sqlite3_exec(db->db, "delete from gateway_contents where"
            " sha256 in (select sha256 from temp.contents_gone)", NULL, NULL,
            NULL));

    db->contents_news -= freed;

    return SQLITE_OK;
}


/* --- reading ------------------------------------------------------------------ */

static int
contents_inflate(sb_buf_t *out, const void *p, size_t n, size_t size)
{
    size_t   at;
    uLongf   len;
    sb_rc_t  rc;

    static const char  zeros[4096];

    at = out->len;

    /* room for it, which uncompress() then fills */

    for (len = size; len; len -= len < sizeof(zeros) ? len : sizeof(zeros)) {
        rc = sb_buf_add(out, zeros, len < sizeof(zeros) ? len : sizeof(zeros));

        if (rc != SB_OK) {
            out->len = at;
            return rc == SB_LIMIT ? SQLITE_TOOBIG : SQLITE_NOMEM;
        }
    }

    len = size;

    if (size == 0 || uncompress((Bytef *) out->data + at, &len, p, n) != Z_OK
        || len != size)
    {
        out->len = at;
        return SQLITE_CORRUPT;
    }

    return SQLITE_OK;
}


static int
contents_row(sqlite3_stmt *st, sb_buf_t *out, const char *sha256)
{
    int          rc;
    char         hex[CONTENTS_HEX + 1];
    size_t       n, size, at;
    sb_rc_t      added;
    uint8_t      digest[32];
    const void  *p;
    const char  *encoding;

    at = out->len;
    encoding = (const char *) sqlite3_column_text(st, 0);
    size = (size_t) sqlite3_column_int64(st, 1);
    p = sqlite3_column_blob(st, 2);
    n = (size_t) sqlite3_column_bytes(st, 2);

    if (encoding && strcmp(encoding, "zlib") == 0) {
        rows_try(rc, contents_inflate(out, p, n, size));

    } else {
        added = sb_buf_add(out, p ? p : "", n);

        if (added != SB_OK) {
            return added == SB_LIMIT ? SQLITE_TOOBIG : SQLITE_NOMEM;
        }
    }

    sb_sha256(digest, sb_str(out->len > at ? out->data + at : "",
                             out->len - at));
    sb_hex(hex, digest, sizeof(digest));

    if (strcmp(hex, sha256) != 0) {
        out->len = at;
        return SQLITE_CORRUPT;
    }

    return SQLITE_OK;
}


int
contents_get(sqlite3 *db, const char *sha256, sb_buf_t *out)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, "select encoding, size, data from"
                            " gateway_contents where sha256 = ?1", -1, &st,
                            NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_text(st, 1, sha256, -1, SQLITE_STATIC);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        rc = contents_row(st, out, sha256);

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_NOTFOUND;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


/* --- the bound ---------------------------------------------------------------- */

static contents_file_t *
contents_file(const char *dir, bool make)
{
    contents_file_t  *f;

    f = table_find(&contents.files, dir, strlen(dir));

    if (f || !make) {
        return f;
    }

    f = calloc(1, sizeof(contents_file_t));
    if (f == NULL) {
        return NULL;
    }

    (void) snprintf(f->dir, sizeof(f->dir), "%s", dir);

    if (table_add(&contents.files, &f->node, f->dir, strlen(f->dir)) != SB_OK)
    {
        free(f);
        return NULL;
    }

    f->next = contents.first;

    if (f->next) {
        f->next->prev = f;
    }

    contents.first = f;

    return f;
}


static void
contents_set(const char *dir, int64_t bytes)
{
    contents_file_t  *f;

    f = contents_file(dir, bytes != 0);

    if (f) {
        contents.total += bytes - f->bytes;
        f->bytes = bytes;
        stats_set(STATS_CONTENTS_BYTES, (uint64_t) contents.total);
    }
}


void
contents_limit(uint64_t bytes)
{
    contents.limit = bytes;
    stats_set(STATS_CONTENTS_MAX, bytes);
}


int
contents_load(store_db_t *db)
{
    int            rc;
    sqlite3_stmt  *st;

    db->contents_news = 0;

    rc = sqlite3_prepare_v2(db->db, "select coalesce(sum(stored), 0) from"
                            " gateway_contents", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        db->contents = sqlite3_column_int64(st, 0);
        contents_set(db->dir, db->contents);
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


void
contents_gone(const char *dir)
{
    contents_set(dir, 0);
}


void
contents_done(store_db_t *db)
{
    if (db->contents_news) {
        db->contents += db->contents_news;
        contents_set(db->dir, db->contents);
    }

    db->contents_news = 0;
}


/* Files of earlier runs are opened one by one, which counts them. */
static void
contents_scan(store_t *s)
{
    int             rc, n;
    struct dirent  *e;

    if (contents.scan == NULL) {
        contents.scan = opendir(store_base(s));

        if (contents.scan == NULL) {
            return;
        }
    }

    for (n = 0; n < CONTENTS_SCAN; /* void */ ) {
        e = readdir(contents.scan);

        if (e == NULL) {
            (void) closedir(contents.scan);
            contents.scan = NULL;
            contents.scanned = true;
            return;
        }

        if (e->d_name[0] == '.' || strlen(e->d_name) >= STORE_DIR_LEN
            || contents_file(e->d_name, false) || !store_exists(s, e->d_name))
        {
            continue;
        }

        (void) store_get(s, e->d_name, false, &rc);
        n++;
    }
}


/* Drops the oldest of a file; in a transaction. */
static int
contents_trim_rows(store_db_t *db, int64_t most)
{
    int            rc, n;
    int64_t        freed, id;
    sqlite3_stmt  *st, *del;

    st = store_stmt(db, ROWS_CONTENT_TRIM, "select id, stored from"
                    " gateway_contents order by used limit ?1");

    if (st == NULL
        || sqlite3_prepare_v2(db->db, "delete from gateway_contents where"
                              " id = ?1", -1, &del, NULL) != SQLITE_OK)
    {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_int(st, 1, CONTENTS_STEP);
    freed = 0;
    n = 0;

    while (freed < most && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        id = sqlite3_column_int64(st, 0);
        freed += sqlite3_column_int64(st, 1);
        n++;

        sqlite3_bind_int64(del, 1, id);
        rc = store_run(del);

        if (rc != SQLITE_OK) {
            break;
        }
    }

    rc = sqlite3_errcode(db->db);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;

    (void) sqlite3_reset(st);
    (void) sqlite3_finalize(del);

    if (rc == SQLITE_OK) {
        db->contents_news -= freed;
        stats_add(STATS_CONTENTS_DROPPED, (uint64_t) n);
    }

    return rc;
}


static void
contents_drop(store_db_t *db)
{
    int      rc;
    int64_t  most;

    most = contents.total - (int64_t) contents.limit;
    most = most < CONTENTS_SHARE ? most : CONTENTS_SHARE;

    rc = store_begin(db);

    if (rc == SQLITE_OK) {
        rc = contents_trim_rows(db, most);

        if (rc == SQLITE_OK) {
            rc = store_commit(db, 0);

        } else {
            store_rollback(db);
        }
    }

    if (rc != SQLITE_OK) {
        log_minutely(LOG_WARN, "contents of files in the history of %s cannot "
                     "make room: %s", db->dir, sqlite3_errstr(rc));
        return;
    }

    (void) sqlite3_exec(db->db, "pragma incremental_vacuum(256)", NULL, NULL,
                        NULL);
}


/* Of those that are not known to be held. */
static contents_file_t *
contents_largest(uint64_t now)
{
    contents_file_t  *f, *largest;

    largest = NULL;

    for (f = contents.first; f; f = f->next) {
        if (f->bytes && now >= f->held_us
            && (largest == NULL || f->bytes > largest->bytes))
        {
            largest = f;
        }
    }

    return largest;
}


static bool
contents_over(void)
{
    return contents.total > (int64_t) contents.limit;
}


/* The file that holds most gives its oldest, but for one on legal hold. */
static void
contents_trim(store_t *s, contents_held_pt held, void *data)
{
    int               rc;
    unsigned          n;
    uint64_t          now;
    store_db_t       *db;
    contents_file_t  *f;

    now = sb_mono_us();

    for (n = 0; n < CONTENTS_SCAN && contents_over(); n++) {
        f = contents_largest(now);

        if (f == NULL) {
            contents.full = true;
            log_minutely(LOG_WARN, "contents of files take %lld MiB of %llu, "
                         "and all are on legal hold: no more are kept",
                         (long long) (contents.total >> 20),
                         (unsigned long long) (contents.limit >> 20));
            return;
        }

        db = store_get(s, f->dir, false, &rc);

        if (db == NULL || db->fresh) {
            /* gone, or it cannot be opened now: it counts again when it can */
            contents_set(f->dir, 0);

        } else if (held && held(data, db)) {
            f->held_us = now + CONTENTS_HELD_US;

        } else {
            contents.full = false;
            contents_drop(db);
            return;
        }
    }
}


void
contents_ask(const char *dir)
{
    contents_file_t  *f;

    f = contents_file(dir, false);

    if (f) {
        f->held_us = 0;
    }
}


void
contents_tend(store_t *s, contents_held_pt held, void *data)
{
    if (contents.limit == 0) {
        return;
    }

    if (!contents.scanned) {
        contents_scan(s);
    }

    if (contents_over()) {
        contents_trim(s, held, data);

    } else {
        contents.full = false;
    }
}


void
contents_free(void)
{
    contents_file_t  *f, *next;

    if (contents.scan) {
        (void) closedir(contents.scan);
    }

    for (f = contents.first; f; f = next) {
        next = f->next;
        free(f);
    }

    table_free(&contents.files);
    memset(&contents, 0, sizeof(contents));
}
