#include "versions_find.h"

#include "operation_table.h"
#include "rows_end.h"

#include <stdio.h>
#include <stdlib.h>


#define VERSIONS_LOOK   64          /* records of a path that are looked at */
#define VERSIONS_ABOVE  256         /* ... of each directory above it */
#define VERSIONS_BACK   200         /* records before it that may still run */

/* A record that names the path. */
typedef struct {
    sb_op_e  type;
    bool     from;                  /* as old_path */
    char     id[37];
    int64_t  seq;
    char     status[16];
    char     begun[32];
    char     ended[32];             /* empty: not yet */
    int64_t  http_status;
    int64_t  upstream_status;
    int64_t  files;
    int64_t  size;
    char     sha256[CONTENTS_HEX + 1];
} versions_row_t;

#define VERSIONS_ROW                                                         \
    "select e.operation_type, e.event_id, e.seq, e.status, e.occurred_at,"   \
    " e.completed_at, w.http_status, w.upstream_status,"                     \
    " (select max(n) + 1 from gateway_files g where g.event_id = f.event_id),"\
    " f.size, f.sha256 from gateway_files f"                                 \
    " join history_events e on e.event_id = f.event_id"                      \
    " left join gateway_wire w on w.event_id = f.event_id"

#define VERSIONS_ENDS  "('succeeded','failed','timeout','cancelled','unknown'," \
                       "'started')"

/* What may change any file without a word. */
#define VERSIONS_RUNS  "('command.execute','code.execute','session.run',"    \
                       "'pty.open','isolated.run','isolated.commit')"


static void
versions_text(char *dst, size_t size, sqlite3_stmt *st, int n)
{
    const char  *text;

    text = (const char *) sqlite3_column_text(st, n);
    (void) snprintf(dst, size, "%s", text ? text : "");
}


int
versions_self(store_db_t *db, const uint8_t id[16], versions_self_t *self)
{
    int            rc;
    sqlite3_stmt  *st;

    memset(self, 0, sizeof(versions_self_t));

    st = store_stmt(db, ROWS_VERSION_SELF, "select event_id, seq, occurred_at,"
                    " exists(select 1 from gateway_parts where event_id = ?1),"
                    " operation_type from history_events where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, id);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        versions_text(self->id, sizeof(self->id), st, 0);
        self->seq = sqlite3_column_int64(st, 1);
        versions_text(self->begun, sizeof(self->begun), st, 2);
        self->parts = sqlite3_column_int(st, 3) != 0;
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


int
versions_type(store_db_t *db, const uint8_t id[16], const sb_op_t **op)
{
    int            rc;
    const char    *text;
    sqlite3_stmt  *st;

    *op = NULL;

    st = store_stmt(db, ROWS_FILE_READ, "select operation_type from"
                    " history_events where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, id);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        text = (const char *) sqlite3_column_text(st, 0);
        *op = text ? rows_known(sb_str(text, strlen(text))) : NULL;
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* execd works an operation on several files off one by one, and stops where one
 * fails: only with one file does a refusal mean that nothing happened. */
static bool
versions_undone(const char *status, int64_t http, int64_t upstream,
    int64_t files)
{
    if (strcmp(status, "failed") != 0 || http < 400) {
        return false;
    }

    if (upstream < 0) {
        /* ours, but for what upstream left without an answer */
        return http != 502 && http != 504;
    }

    return http < 500 && files <= 1;
}


bool
versions_refused(const facts_t *t)
{
    char      status[16];
    sb_str_t  v;

    v = rows_status(t);
    (void) snprintf(status, sizeof(status), "%.*s", (int) v.len, v.data);

    return versions_undone(status, facts_int(t, SB_T_HTTP_STATUS, 0),
                           facts_int(t, SB_T_UPSTREAM_STATUS, -1),
                           (int64_t) t->nfiles);
}


static int64_t
versions_int(sqlite3_stmt *st, int n)
{
    return sqlite3_column_type(st, n) == SQLITE_NULL
           ? -1 : sqlite3_column_int64(st, n);
}


static void
versions_row(sqlite3_stmt *st, bool from, versions_row_t *r)
{
    const char     *text;
    const sb_op_t  *op;

    text = (const char *) sqlite3_column_text(st, 0);
    op = text ? rows_known(sb_str(text, strlen(text))) : NULL;

    r->type = op ? (sb_op_e) sb_op_index(op) : SB_OP_COUNT;
    r->from = from;
    versions_text(r->id, sizeof(r->id), st, 1);
    r->seq = sqlite3_column_int64(st, 2);
    versions_text(r->status, sizeof(r->status), st, 3);
    versions_text(r->begun, sizeof(r->begun), st, 4);
    versions_text(r->ended, sizeof(r->ended), st, 5);
    r->http_status = versions_int(st, 6);
    r->upstream_status = versions_int(st, 7);
    r->files = versions_int(st, 8);
    r->size = versions_int(st, 9);
    versions_text(r->sha256, sizeof(r->sha256), st, 10);
}


/* Does a record say anything of what stands at the path? */
static bool
versions_says(const versions_row_t *r)
{
    switch (r->type) {

    case SB_OP_FILE_READ:
        return strcmp(r->status, "succeeded") == 0 && r->sha256[0];

    case SB_OP_FILE_WRITE:
    case SB_OP_FILE_DELETE:
    case SB_OP_FILE_MOVE:
    case SB_OP_FILE_REPLACE:
    case SB_OP_DIR_DELETE:
        return !versions_undone(r->status, r->http_status,
                                r->upstream_status, r->files);

    default:
        return false;
    }
}


static void
versions_take(const versions_row_t *r, version_t *out)
{
    out->state = VERSION_UNKNOWN;
    out->size = -1;
    out->sha256[0] = '\0';

    if (strcmp(r->status, "succeeded") != 0) {
        return;
    }

    if (r->from || r->type == SB_OP_FILE_DELETE || r->type == SB_OP_DIR_DELETE)
    {
        out->state = VERSION_ABSENT;
        return;
    }

    if (r->sha256[0]) {
        out->state = VERSION_KNOWN;
        out->size = r->size;
        (void) strcpy(out->sha256, r->sha256);
    }
}


/* The newest record that says something of the path, as one of its names, and
 * whether the one before it overlaps. */
static int
versions_newest(store_db_t *db, const versions_self_t *self, const char *path,
    bool from, versions_row_t *newest, bool *overlap)
{
    int             rc;
    bool            found;
    sqlite3_stmt   *st;
    versions_row_t  r;

    found = newest->id[0] != '\0';

    st = from ? store_stmt(db, ROWS_VERSION_OLD, VERSIONS_ROW
                           " where f.old_path = ?1 and f.event_id <> ?2"
                           " order by f.event_id desc limit ?3")
              : store_stmt(db, ROWS_VERSION_PATH, VERSIONS_ROW
                           " where f.path = ?1 and f.event_id <> ?2"
                           " order by f.event_id desc limit ?3");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, self->id, -1, SQLITE_STATIC);
    sqlite3_bind_int(st, 3, VERSIONS_LOOK);

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        versions_row(st, from, &r);

        if (!versions_says(&r)) {
            continue;
        }

        if (!found || strcmp(r.id, newest->id) > 0) {

            if (found && (newest->ended[0] == '\0'
                          || strcmp(newest->ended, r.begun) > 0))
            {
                *overlap = true;
            }

            *newest = r;
            found = true;
            continue;
        }

        /* the next older one decides */
        if (r.type != SB_OP_FILE_READ
            && (r.ended[0] == '\0' || strcmp(r.ended, newest->begun) > 0))
        {
            *overlap = true;
        }

        break;
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* Is a directory known to be quiet since then?  The files of one operation lie
 * side by side more often than not. */
static bool
versions_quiet(const versions_self_t *self, const versions_row_t *newest,
    const char *dir, size_t len)
{
    return self->quiet_since[0]
           && strcmp(newest->id, self->quiet_since) >= 0
           && strncmp(self->quiet, dir, len) == 0
           && (self->quiet[len] == '/' || self->quiet[len] == '\0');
}


/* What became of a directory above since then. */
static int
versions_above(store_db_t *db, versions_self_t *self,
    const versions_row_t *newest, const char *path, version_t *out)
{
    int             rc, n;
    bool            quiet;
    char            dir[sizeof(self->quiet)];
    size_t          len, nearest;
    sqlite3_stmt   *st;
    versions_row_t  r;

    len = strlen(path);

    if (len >= sizeof(dir)) {
        out->assumed = true;
        return SQLITE_OK;
    }

    memcpy(dir, path, len + 1);
    nearest = 0;
    quiet = true;

    for ( ;; ) {
        while (len && dir[len - 1] != '/') {
            len--;
        }

        if (len <= 1 || versions_quiet(self, newest, dir, len - 1)) {

            if (quiet && nearest) {
                memcpy(self->quiet, path, nearest);
                self->quiet[nearest] = '\0';
                (void) strcpy(self->quiet_since, newest->id);
            }

            return SQLITE_OK;
        }

        dir[--len] = '\0';
        nearest = nearest ? nearest : len;

        if (self->dirs == VERSIONS_DIRS) {
            out->assumed = true;
            return SQLITE_OK;
        }

        self->dirs++;

        st = store_stmt(db, ROWS_VERSION_ABOVE, VERSIONS_ROW
                        " where (f.path = ?1 or f.old_path = ?1)"
                        " and f.event_id <> ?2 and f.event_id > ?3"
                        " order by f.event_id desc limit ?4");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        sqlite3_bind_text(st, 1, dir, (int) len, SQLITE_STATIC);
        sqlite3_bind_text(st, 2, self->id, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 3, newest->id, -1, SQLITE_STATIC);
        sqlite3_bind_int(st, 4, VERSIONS_ABOVE);

        for (n = 0; (rc = sqlite3_step(st)) == SQLITE_ROW; n++) {
            versions_row(st, false, &r);

            if (versions_says(&r) && r.type != SB_OP_FILE_READ) {
                out->state = VERSION_UNKNOWN;
                quiet = false;
            }
        }

        (void) sqlite3_reset(st);

        if (rc != SQLITE_DONE) {
            return rc;
        }

        if (n == VERSIONS_ABOVE) {
            out->assumed = true;
            quiet = false;
        }
    }
}


/* Has anything run since that may change files unseen, or does it still? */
static int
versions_ran(store_db_t *db, const versions_row_t *newest, bool *ran)
{
    int            rc;
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_VERSION_RAN, "select exists(select 1 from"
            " history_events where operation_type in " VERSIONS_RUNS
            " and status in " VERSIONS_ENDS " and seq > ?1)"
            " or exists(select 1 from history_events where operation_type in "
            VERSIONS_RUNS " and status = 'started')"
            " or exists(select 1 from history_events where seq < ?1 and"
            " seq >= ?1 - ?2 and +operation_type in " VERSIONS_RUNS
            " and completed_at > ?3)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_int64(st, 1, newest->seq);
    sqlite3_bind_int(st, 2, VERSIONS_BACK);
    sqlite3_bind_text(st, 3, newest->begun, -1, SQLITE_STATIC);

    rc = sqlite3_step(st);
    *ran = rc == SQLITE_ROW && sqlite3_column_int(st, 0);
    (void) sqlite3_reset(st);

    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}


/* The same path earlier in the same operation. */
static int
versions_same(store_db_t *db, const versions_self_t *self, const char *path,
    int64_t n, version_t *out, bool *found)
{
    int            rc;
    sqlite3_stmt  *st;

    *found = false;

    st = store_stmt(db, ROWS_VERSION_SAME, "select size, sha256 from"
                    " gateway_files where event_id = ?1 and n < ?2 and"
                    " path = ?3 order by n desc limit 1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    sqlite3_bind_text(st, 1, self->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, n);
    sqlite3_bind_text(st, 3, path, -1, SQLITE_STATIC);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        *found = true;
        out->size = versions_int(st, 0);
        versions_text(out->sha256, sizeof(out->sha256), st, 1);
        out->state = out->sha256[0] ? VERSION_KNOWN : VERSION_UNKNOWN;
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


int
versions_find(store_db_t *db, versions_self_t *self, const char *path,
    int64_t n, version_t *out)
{
    int             rc;
    bool            found, overlap, ran;
    versions_row_t  newest;

    memset(out, 0, sizeof(version_t));
    memset(&newest, 0, sizeof(newest));
    overlap = false;

    if (n > 0) {
        rows_try(rc, versions_same(db, self, path, n, out, &found));

        if (found) {
            return SQLITE_OK;
        }
    }

    rows_try(rc, versions_newest(db, self, path, false, &newest, &overlap));
    rows_try(rc, versions_newest(db, self, path, true, &newest, &overlap));

    if (newest.id[0] == '\0') {
        return SQLITE_OK;
    }

    versions_take(&newest, out);

    if (out->state == VERSION_UNKNOWN) {
        return SQLITE_OK;
    }

    rows_try(rc, versions_above(db, self, &newest, path, out));
    rows_try(rc, versions_ran(db, &newest, &ran));

    out->assumed = out->assumed || overlap || ran || newest.ended[0] == '\0'
                   || strcmp(newest.ended, self->begun) > 0;

    return SQLITE_OK;
}


int
versions_find_in(sqlite3 *db, versions_self_t *self, const char *path,
    int64_t n, version_t *out)
{
    int           rc;
    unsigned      i;
    store_db_t    reader;

    memset(&reader, 0, sizeof(reader));
    reader.db = db;
    reader.nstmts = ROWS_STMTS;
    reader.stmts = calloc(ROWS_STMTS, sizeof(sqlite3_stmt *));

    if (reader.stmts == NULL) {
        return SQLITE_NOMEM;
    }

    rc = versions_find(&reader, self, path, n, out);

    for (i = 0; i < ROWS_STMTS; i++) {
        (void) sqlite3_finalize(reader.stmts[i]);
    }

    free(reader.stmts);

    return rc;
}
