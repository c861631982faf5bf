/* Side rows: the command of an operation, and its files. */

#include "rows_end.h"

#include "digest.h"

#include <stdio.h>


static int
rows_command(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end)
{
    int            rc;
    sb_str_t       v;
    sqlite3_stmt  *st;

    if (facts_has(t, SB_T_COMMAND)) {
        st = store_stmt(db, ROWS_COMMAND, "insert into command_executions("
                "event_id, command, cwd, timeout_ms) values(?1, ?2, ?3, ?4)"
                " on conflict(event_id) do update set"
                " command = excluded.command, cwd = excluded.cwd,"
                " timeout_ms = coalesce(excluded.timeout_ms, timeout_ms)");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        store_bind_id(st, 1, op->id);
        v = t->v[SB_T_COMMAND];
        store_bind_text(st, 2, v.data ? v : sb_lit(""));
        v = t->v[SB_T_CWD];
        store_bind_text(st, 3, v.data ? v : sb_lit(""));

        if (facts_int(t, SB_T_TIMEOUT_MS, -1) >= 0) {
            sqlite3_bind_int64(st, 4, facts_int(t, SB_T_TIMEOUT_MS, 0));
        }

        rows_try(rc, store_run(st));
    }

    if ((end == NULL || !end->command) && !facts_has(t, SB_T_COMMAND_ID)) {
        return SQLITE_OK;
    }

    st = store_stmt(db, ROWS_COMMAND_SET, "update command_executions set"
                    " exit_code = coalesce(?2, exit_code),"
                    " provider_command_id = coalesce(?3, provider_command_id),"
                    " output_complete = coalesce(?4, output_complete),"
                    " history_storage_state = coalesce(?5,"
                    " history_storage_state) where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    if (facts_has(t, SB_T_EXIT_CODE)) {
        sqlite3_bind_int64(st, 2, facts_int(t, SB_T_EXIT_CODE, 0));
    }

    store_bind_text(st, 3, t->v[SB_T_COMMAND_ID]);

    if (end) {
        sqlite3_bind_int(st, 4, end->complete);
        sqlite3_bind_text(st, 5, end->storage, -1, SQLITE_STATIC);
    }

    return store_run(st);
}


sb_str_t
rows_change_type(sb_str_t type)
{
    size_t  i;

    for (i = 0; i < type.len; i++) {

        if ((i == 0 || type.data[i - 1] == '.')
            && type.len - i > 5 && memcmp(type.data + i, "file.", 5) == 0)
        {
            return sb_str(type.data + i + 5, type.len - i - 5);
        }

        if ((i == 0 || type.data[i - 1] == '.')
            && type.len - i > 4 && memcmp(type.data + i, "dir.", 4) == 0)
        {
            return sb_str(type.data + i + 4, type.len - i - 4);
        }
    }

    return type;
}


/* Hexadecimal digits of a digest, which must have room for 65; NULL data
 * without one. */
static sb_str_t
rows_hash(char text[65], sb_str_t hash)
{
    if (hash.len != 32) {
        return sb_str(NULL, 0);
    }

    sb_hex(text, (const uint8_t *) hash.data, 32);

    return sb_str(text, 64);
}


static void
rows_bind_file(sqlite3_stmt *st, const facts_file_t *f)
{
    char      text[65];
    sb_str_t  hash;

    if (f->old_path.len) {
        store_bind_text(st, 4, f->old_path);
    }

    if (f->size >= 0) {
        sqlite3_bind_int64(st, 5, f->size);
    }

    hash = rows_hash(text, f->sha256);
    store_bind_text(st, 6, hash);

    if (f->mode >= 0) {
        sqlite3_bind_int64(st, 7, f->mode);
    }

    sqlite3_bind_int64(st, 8, (sqlite3_int64) f->flags);
}


static void
rows_insert_command(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end, chain_rows_t *rows)
{
    bulk_t         *b;
    sb_str_t        v;
    const sb_op_t  *known;

    known = rows_known(t->v[SB_T_TYPE]);

    if (!facts_has(t, SB_T_COMMAND)
        && (known == NULL || !(known->flags & SB_OPF_COMMAND)))
    {
        return;
    }

    b = db->bulk;
    rows->command = bulk_count(b, BULK_COMMAND);
    rows->has_command = true;

    bulk_row(b, BULK_COMMAND);
    bulk_id(b, op->id);
    v = t->v[SB_T_COMMAND];
    bulk_text(b, v.data ? v : sb_lit(""));
    v = t->v[SB_T_CWD];
    bulk_text(b, v.data ? v : sb_lit(""));

    if (facts_int(t, SB_T_TIMEOUT_MS, -1) >= 0) {
        bulk_int(b, facts_int(t, SB_T_TIMEOUT_MS, 0));

    } else {
        bulk_null(b);
    }

    if (facts_has(t, SB_T_EXIT_CODE)) {
        bulk_int(b, facts_int(t, SB_T_EXIT_CODE, 0));

    } else {
        bulk_null(b);
    }

    bulk_text(b, t->v[SB_T_COMMAND_ID]);
    bulk_int(b, end ? end->complete : true);
    bulk_static(b, end ? end->storage : "complete");
}


static void
rows_insert_file(store_db_t *db, rows_op_t *op, const facts_file_t *f)
{
    char     hash[65];
    bulk_t  *b;

    b = db->bulk;

    bulk_row(b, BULK_FILE);
    bulk_id(b, op->id);
    bulk_int(b, op->nfiles++);
    bulk_text(b, f->path);
    bulk_text(b, f->old_path.len ? f->old_path : sb_str(NULL, 0));

    if (f->size >= 0) {
        bulk_int(b, f->size);

    } else {
        bulk_null(b);
    }

    bulk_text(b, rows_hash(hash, f->sha256));

    if (f->mode >= 0) {
        bulk_int(b, f->mode);

    } else {
        bulk_null(b);
    }

    bulk_int(b, (int64_t) f->flags);
}


void
rows_insert_side(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end, chain_rows_t *rows)
{
    bool           done;
    char           hash[65];
    size_t         i;
    bulk_t        *b;
    facts_file_t  *f;

    rows_insert_command(db, op, t, end, rows);

    if (t->nfiles == 0) {
        return;
    }

    b = db->bulk;
    f = &t->files[0];
    done = end && sb_eq(end->status, sb_lit("succeeded"));

    if (done && facts_int(t, SB_T_HTTP_STATUS, 0) == 200
        && t->v[SB_T_SHA256].len == 32)
    {
        /* the whole file passed in the answer */
        f->size = facts_int(t, SB_T_BYTES_OUT, f->size);
        f->sha256 = t->v[SB_T_SHA256];
    }

    rows->operation = bulk_count(b, BULK_FILE_OPERATION);
    rows->file = bulk_count(b, BULK_FILE);
    rows->nfiles = t->nfiles;

    bulk_row(b, BULK_FILE_OPERATION);
    bulk_id(b, op->id);
    bulk_text(b, f->path);
    bulk_text(b, f->old_path.len ? f->old_path : sb_str(NULL, 0));
    bulk_text(b, rows_change_type(t->v[SB_T_TYPE].len ? t->v[SB_T_TYPE]
                                                      : sb_lit("unknown")));

    if (done && f->size >= 0) {
        bulk_int(b, f->size);

    } else {
        bulk_null(b);
    }

    bulk_text(b, done ? rows_hash(hash, f->sha256) : sb_str(NULL, 0));

    for (i = 0; i < t->nfiles; i++) {
        rows_insert_file(db, op, &t->files[i]);
    }
}


static int
rows_file_set(store_db_t *db, rows_op_t *op, int64_t n, const facts_file_t *f)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_FILE_SET, "update gateway_files set"
                    " old_path = coalesce(?4, old_path),"
                    " size = coalesce(?5, size), sha256 = coalesce(?6, sha256),"
                    " mode = coalesce(?7, mode), flags = flags | ?8"
                    " where event_id = ?1 and n = ?2");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    sqlite3_bind_int64(st, 2, n);
    rows_bind_file(st, f);

    return store_run(st);
}


/* More about a file that stands in the table already; *found tells. */
static int
rows_file_again(store_db_t *db, rows_op_t *op, const facts_file_t *f,
    bool *found)
{
    int            rc;
    int64_t        n;
    sqlite3_stmt  *st;

    *found = false;

    st = store_stmt(db, ROWS_FILE_FIND, "select n from gateway_files where"
                    " event_id = ?1 and path = ?2 and size is null and"
                    " sha256 is null order by n limit 1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, f->path);
    rc = sqlite3_step(st);
    n = sqlite3_column_int64(st, 0);
    (void) sqlite3_reset(st);

    if (rc != SQLITE_ROW) {
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    *found = true;

    return rows_file_set(db, op, n, f);
}


static int
rows_file(store_db_t *db, rows_op_t *op, const facts_file_t *f)
{
    sqlite3_stmt  *st;

    st = store_stmt(db, ROWS_FILE_ADD, "insert into gateway_files(event_id, n,"
                    " path, old_path, size, sha256, mode, flags)"
                    " values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    sqlite3_bind_int64(st, 2, op->nfiles++);
    store_bind_text(st, 3, f->path);
    rows_bind_file(st, f);

    return store_run(st);
}


static int
rows_file_operation(store_db_t *db, rows_op_t *op, const facts_t *t,
    const facts_file_t *f)
{
    int            rc;
    char           type[64];
    sb_str_t       v;
    sqlite3_stmt  *st;

    v = t->v[SB_T_TYPE];

    if (v.data == NULL) {
        /* facts of a batch of their own: the type stands in the file */
        st = store_stmt(db, ROWS_FILE_READ, "select operation_type from"
                        " history_events where event_id = ?1");
        if (st == NULL) {
            return sqlite3_errcode(db->db);
        }

        store_bind_id(st, 1, op->id);
        rc = sqlite3_step(st);

        (void) snprintf(type, sizeof(type), "%s", rc == SQLITE_ROW
                        ? (const char *) sqlite3_column_text(st, 0) : "");
        (void) sqlite3_reset(st);
        v = sb_str(type, strlen(type));
    }

    st = store_stmt(db, ROWS_FILE, "insert into file_operations(event_id, path,"
                    " old_path, change_type) values(?1, ?2, ?3, ?4)"
                    " on conflict(event_id) do nothing");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);
    store_bind_text(st, 2, f->path);

    if (f->old_path.len) {
        store_bind_text(st, 3, f->old_path);
    }

    store_bind_text(st, 4, rows_change_type(v));

    return store_run(st);
}


/* What is true of the first file after the operation succeeded. */
static int
rows_file_after(store_db_t *db, rows_op_t *op, const facts_t *t)
{
    int            rc;
    facts_file_t   f;
    sqlite3_stmt  *st;

    if (facts_int(t, SB_T_HTTP_STATUS, 0) == 200
        && facts_has(t, SB_T_SHA256))
    {
        /* the whole file passed in the answer */
        memset(&f, 0, sizeof(f));
        f.size = facts_int(t, SB_T_BYTES_OUT, -1);
        f.sha256 = t->v[SB_T_SHA256];
        f.mode = -1;
        rows_try(rc, rows_file_set(db, op, 0, &f));
    }

    st = store_stmt(db, ROWS_FILE_AFTER, "update file_operations set"
                    " (after_size, after_hash) = (select size, sha256 from"
                    " gateway_files where event_id = ?1 and n = 0)"
                    " where event_id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(db->db);
    }

    store_bind_id(st, 1, op->id);

    return store_run(st);
}


int
rows_side(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end)
{
    int     rc;
    bool    found;
    size_t  i;

    rows_try(rc, rows_command(db, op, t, end));

    for (i = 0; i < t->nfiles; i++) {

        found = false;

        if (op->nfiles) {
            rows_try(rc, rows_file_again(db, op, &t->files[i], &found));
        }

        if (found) {
            continue;
        }

        if (op->nfiles == 0) {
            rows_try(rc, rows_file_operation(db, op, t, &t->files[i]));
        }

        rows_try(rc, rows_file(db, op, &t->files[i]));
    }

    if (end && op->nfiles && sb_eq(end->status, sb_lit("succeeded"))) {
        return rows_file_after(db, op, t);
    }

    return SQLITE_OK;
}
