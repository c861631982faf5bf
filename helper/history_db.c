#include "history_db.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define HISTORY_BUSY_MS  5000


void
history_error(history_error_t *err, const char *type, const char *fmt, ...)
{
    va_list  args;

    snprintf(err->type, sizeof(err->type), "%s", type);

    va_start(args, fmt);
    vsnprintf(err->message, sizeof(err->message), fmt, args);
    va_end(args);
}


void
history_error_sqlite(history_error_t *err, sqlite3 *db, int rc)
{
    const char  *type, *message;

    message = db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

    switch (rc & 0xff) {

    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        type = "DatabaseError";
        break;

    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        type = "IntegrityError";
        break;

    case SQLITE_TOOBIG:
        type = "DataError";
        break;

    case SQLITE_NOMEM:
        type = "MemoryError";
        break;

    case SQLITE_INTERNAL:
    case SQLITE_NOTFOUND:
        type = "InternalError";
        break;

    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        type = "InterfaceError";
        break;

    default:
        type = "OperationalError";
        break;
    }

    history_error(err, type, "%s", message);
}


void
history_error_errno(history_error_t *err, int code, const char *path)
{
    const char  *type;

    switch (code) {

    case ENOENT:
        type = "FileNotFoundError";
        break;

    case EEXIST:
        type = "FileExistsError";
        break;

    case EACCES:
    case EPERM:
        type = "PermissionError";
        break;

    case ENOTDIR:
        type = "NotADirectoryError";
        break;

    case EISDIR:
        type = "IsADirectoryError";
        break;

    default:
        type = "OSError";
        break;
    }

    history_error(err, type, "[Errno %d] %s: '%s'", code, strerror(code), path);
}


/* Cuts the last component of a path off; "." or "/" when that is all. */
static void
history_parent(char *path)
{
    char  *slash;

    slash = strrchr(path, '/');

    if (slash == NULL) {
        strcpy(path, ".");

    } else if (slash == path) {
        path[1] = '\0';

    } else {
        *slash = '\0';
    }
}


bool
history_become_owner(const char *path)
{
    char         dir[PATH_MAX];
    struct stat  st;

    if (geteuid() != 0) {
        return true;
    }

    if (strlen(path) >= sizeof(dir)) {
        errno = ENAMETOOLONG;
        return false;
    }

    strcpy(dir, path);

    do {
        history_parent(dir);
    } while (stat(dir, &st) == -1 && strcmp(dir, ".") != 0
             && strcmp(dir, "/") != 0);

    /* The owner of a link may turn it elsewhere at any time. */

    if (stat(dir, &st) == -1
        || (st.st_uid == 0 && lstat(dir, &st) == -1))
    {
        return false;
    }

    if (st.st_uid == 0) {
        return true;
    }

    return setgroups(0, NULL) == 0
           && setresgid(st.st_gid, st.st_gid, st.st_gid) == 0
           && setresuid(st.st_uid, st.st_uid, st.st_uid) == 0;
}


/* The path as a file: URI with immutable=1; NULL without memory. */
static char *
history_immutable_uri(const char *path)
{
    char              *uri, *p;
    static const char  hex[] = "0123456789ABCDEF";

    uri = malloc(strlen(path) * 3 + 32);
    if (uri == NULL) {
        return NULL;
    }

    p = stpcpy(uri, "file:");

    for (const char *c = path; *c != '\0'; c++) {
        unsigned char  ch = (unsigned char) *c;

        if (ch <= ' ' || ch >= 0x7f || strchr("%?#", ch) != NULL) {
            *p++ = '%';
            *p++ = hex[ch >> 4];
            *p++ = hex[ch & 15];

        } else {
            *p++ = (char) ch;
        }
    }

    strcpy(p, "?immutable=1");

    return uri;
}


static bool
history_has_wal(const char *path)
{
    char         wal[PATH_MAX];
    struct stat  st;

    if (snprintf(wal, sizeof(wal), "%s-wal", path) >= (int) sizeof(wal)) {
        return true;
    }

    return stat(wal, &st) == 0 && st.st_size > 0;
}


/* Reads the schema, so that a file that is no database is noticed here. */
static int
history_probe(sqlite3 *db)
{
    return sqlite3_exec(db, "SELECT 1 FROM sqlite_master LIMIT 1", NULL, NULL,
                        NULL);
}


sqlite3 *
history_open_read(const char *path, history_error_t *err)
{
    int          rc;
    char        *uri;
    sqlite3     *db;
    struct stat  st;

    if (stat(path, &st) == -1) {
        history_error_errno(err, errno, path);
        return NULL;
    }

    rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(db, HISTORY_BUSY_MS);
        rc = history_probe(db);
    }

    if (rc == SQLITE_OK) {
        return db;
    }

    /* A WAL file in a directory that we cannot write needs a -shm that we
     * cannot make; without a -wal all there is to read is in the file. */

    if (((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY)
        && S_ISREG(st.st_mode) && access(path, R_OK) == 0
        && !history_has_wal(path))
    {
        sqlite3_close(db);

        uri = history_immutable_uri(path);
        if (uri == NULL) {
            history_error(err, "MemoryError", "out of memory");
            return NULL;
        }

        rc = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                             NULL);
        free(uri);

        if (rc == SQLITE_OK) {
            rc = history_probe(db);
        }

        if (rc == SQLITE_OK) {
            return db;
        }
    }

    history_error_sqlite(err, db, rc);
    sqlite3_close(db);

    return NULL;
}


static bool
history_is_dir(const char *path)
{
    struct stat  st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}


/* Makes a directory and what is missing above it; dir is put back as it was. */
static bool
history_make_dir(char *dir, history_error_t *err)
{
    int    code;
    bool   ok;
    char  *slash;

    if (history_is_dir(dir)) {
        return true;
    }

    slash = strrchr(dir, '/');

    if (slash != NULL && slash != dir) {
        *slash = '\0';
        ok = history_make_dir(dir, err);
        *slash = '/';

        if (!ok) {
            return false;
        }
    }

    if (mkdir(dir, 0777) == -1) {
        code = errno;

        if (!history_is_dir(dir)) {
            history_error_errno(err, code, dir);
            return false;
        }
    }

    return true;
}


static bool
history_make_parents(const char *path, history_error_t *err)
{
    char  dir[PATH_MAX], *slash;

    if (strlen(path) >= sizeof(dir)) {
        history_error_errno(err, ENAMETOOLONG, path);
        return false;
    }

    strcpy(dir, path);

    slash = strrchr(dir, '/');

    if (slash == NULL || slash == dir) {
        return true;
    }

    *slash = '\0';

    return history_make_dir(dir, err);
}


/* Switching to WAL is refused at once, without the busy time-out, while
 * another connection does the same. */
static int
history_use_wal(sqlite3 *db)
{
    int              rc;
    struct timespec  pause = { 0, 10 * 1000 * 1000 };

    for (int waited = 0; ; waited += 10) {
        rc = sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);

        if (((rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED)
            || waited >= HISTORY_BUSY_MS)
        {
            return rc;
        }

        nanosleep(&pause, NULL);
    }
}


sqlite3 *
history_open_write(const char *path, history_error_t *err)
{
    int       rc;
    sqlite3  *db;

    if (*path == '\0') {
        history_error_sqlite(err, NULL, SQLITE_CANTOPEN);
        return NULL;
    }

    if (!history_make_parents(path, err)) {
        return NULL;
    }

    rc = sqlite3_open_v2(path, &db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(db, HISTORY_BUSY_MS);

        rc = history_use_wal(db);
    }

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, "PRAGMA synchronous=NORMAL;"
                              "PRAGMA foreign_keys=ON;"
                              "PRAGMA wal_autocheckpoint=1000;",
                          NULL, NULL, NULL);
    }

    if (rc == SQLITE_OK) {
        return db;
    }

    history_error_sqlite(err, db, rc);
    sqlite3_close(db);

    return NULL;
}


sqlite3_stmt *
history_prepare(sqlite3 *db, const char *sql, history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc != SQLITE_OK) {
        history_error_sqlite(err, db, rc);
        return NULL;
    }

    return stmt;
}


int
history_step(sqlite3_stmt *stmt, history_error_t *err)
{
    int  rc;

    rc = sqlite3_step(stmt);

    if (rc == SQLITE_ROW) {
        return 1;
    }

    if (rc == SQLITE_DONE) {
        return 0;
    }

    history_error_sqlite(err, sqlite3_db_handle(stmt), rc);

    return -1;
}


bool
history_has_table(sqlite3 *db, const char *name)
{
    bool           found;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_master"
                               " WHERE type IN ('table','view') AND name = ?1",
                           -1, &stmt, NULL) != SQLITE_OK)
    {
        return false;
    }

    sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    found = sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);

    return found;
}


sb_str_t
history_column(sqlite3_stmt *stmt, int i)
{
    const void  *p;

    p = sqlite3_column_type(stmt, i) == SQLITE_BLOB
        ? sqlite3_column_blob(stmt, i)
        : (const void *) sqlite3_column_text(stmt, i);

    if (p == NULL) {
        return sb_lit("");
    }

    return sb_str(p, (size_t) sqlite3_column_bytes(stmt, i));
}


bool
sb_out_column(sb_out_t *o, sqlite3_stmt *stmt, int i)
{
    switch (sqlite3_column_type(stmt, i)) {

    case SQLITE_INTEGER:
        sb_out_int(o, sqlite3_column_int64(stmt, i));
        return true;

    case SQLITE_FLOAT:
        sb_out_double(o, sqlite3_column_double(stmt, i));
        return true;

    case SQLITE_TEXT:
        sb_out_str(o, history_column(stmt, i));
        return true;

    case SQLITE_NULL:
        sb_out_text(o, "null");
        return true;

    default:
        return false;
    }
}


bool
history_meta_get(sqlite3 *db, const char *key, sb_buf_t *value, bool *found,
    history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    *found = false;
    value->len = 0;
    value->max = SB_OUT_MAX;

    if (!history_has_table(db, "history_meta")) {
        return true;
    }

    stmt = history_prepare(db, "SELECT value FROM history_meta WHERE key = ?1",
                           err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);

    rc = history_step(stmt, err);

    if (rc == 1) {
        *found = true;

        if (sb_buf_add_str(value, history_column(stmt, 0)) != SB_OK
            || sb_buf_cstr(value) == NULL)
        {
            history_error(err, "MemoryError", "out of memory");
            rc = -1;
        }
    }

    sqlite3_finalize(stmt);

    return rc != -1;
}
