#include "bulk.h"

#include "id.h"
#include "utf8.h"

#include <stdlib.h>


#define BULK_COLUMNS  24
#define BULK_BLOCK    (64 * 1024)
#define BULK_KEEP     16            /* blocks kept for the next transaction */

typedef struct {
    bulk_cell_t  *cells;
    size_t        n, alloc;         /* rows */
} bulk_queue_t;

typedef struct bulk_block_s  bulk_block_t;

struct bulk_block_s {
    bulk_block_t  *next;
    size_t         used, size;
    char           data[];
};

struct bulk_s {
    bulk_queue_t    queue[BULK_TABLES];
    bulk_table_e    table;          /* of the row at hand, or being inserted */
    unsigned        column;
    bulk_block_t   *blocks;         /* the one in use is first */
    bulk_block_t   *spare;
    unsigned        nspare;
    bool            failed;         /* no memory */
    int64_t         first_seq;      /* of the events that were inserted */
    uint64_t        clears;
};

#define BULK_FROM(n)  "select " BULK_SELECT_##n " from gateway_bulk"

#define BULK_SELECT_3   "a0,a1,a2"
#define BULK_SELECT_4   BULK_SELECT_3 ",a3"
#define BULK_SELECT_5   BULK_SELECT_4 ",a4"
#define BULK_SELECT_6   BULK_SELECT_5 ",a5"
#define BULK_SELECT_8   BULK_SELECT_6 ",a6,a7"
#define BULK_SELECT_11  BULK_SELECT_8 ",a8,a9,a10"
#define BULK_SELECT_17  BULK_SELECT_11 ",a11,a12,a13,a14,a15,a16"
#define BULK_SELECT_22  BULK_SELECT_17 ",a17,a18,a19,a20,a21"

static const struct {
    unsigned     columns;
    const char  *sql;
} bulk_tables[BULK_TABLES] = {

    { 17, "insert into history_events(event_id, provider_key, sandbox_id,"
          " sandbox_instance_id, source, actor_type, actor_id, thread_id,"
          " run_id, correlation_id, operation_type, status, occurred_at,"
          " completed_at, duration_ms, request_json, result_json) "
          BULK_FROM(17) },

    { 3,  "insert into gateway_records(event_id, seq, cursor) "
          BULK_FROM(3) },

    { 22, "insert into gateway_wire(event_id, sandbox, method, path, port,"
          " client, agent, request_id, identity, parent, record, route,"
          " upstream, error_code, reason, http_status, upstream_status,"
          " bytes_in, bytes_out, duration_us, files_total, foldable) "
          BULK_FROM(22) },

    { 8,  "insert into command_executions(event_id, command, cwd, timeout_ms,"
          " exit_code, provider_command_id, output_complete,"
          " history_storage_state) "
          BULK_FROM(8) },

    { 6,  "insert into file_operations(event_id, path, old_path, change_type,"
          " after_size, after_hash) "
          BULK_FROM(6) },

    { 8,  "insert into gateway_files(event_id, n, path, old_path, size, sha256,"
          " mode, flags) "
          BULK_FROM(8) },

    { 6,  "insert into command_output_chunks(event_id, stream, chunk_index,"
          " data, original_size, created_at) "
          BULK_FROM(6) },

    { 11, "insert into gateway_output(event_id, ord, stream, chunk_index,"
          " offset, length, at, cursor, other_index, other_offset, runs) "
          BULK_FROM(11) },

    { 4,  "insert or ignore into history_changes(change_id, event_id,"
          " change_type, changed_at) "
          BULK_FROM(4) },

    { 5,  "insert into gateway_chain(n, event_id, kind, detail, hash) "
          BULK_FROM(5) }
};


/* --- memory --------------------------------------------------------------- */

static char *
bulk_alloc(bulk_t *b, size_t n)
{
    char          *p;
    size_t         size;
    bulk_block_t  *block;

    block = b->blocks;

    if (block == NULL || block->size - block->used < n) {

        if (n <= BULK_BLOCK && b->spare) {
            block = b->spare;
            b->spare = block->next;
            b->nspare--;

        } else {
            size = n > BULK_BLOCK ? n : BULK_BLOCK;
            block = malloc(sizeof(bulk_block_t) + size);

            if (block == NULL) {
                b->failed = true;
                return NULL;
            }

            block->size = size;
        }

        block->used = 0;
        block->next = b->blocks;
        b->blocks = block;
    }

    p = block->data + block->used;
    block->used += n;

    return p;
}


void
bulk_clear(bulk_t *b)
{
    unsigned       i;
    bulk_block_t  *block;

    while ((block = b->blocks) != NULL) {
        b->blocks = block->next;

        if (block->size == BULK_BLOCK && b->nspare < BULK_KEEP) {
            block->next = b->spare;
            b->spare = block;
            b->nspare++;

        } else {
            free(block);
        }
    }

    for (i = 0; i < BULK_TABLES; i++) {
        b->queue[i].n = 0;
    }

    b->failed = false;
    b->clears++;
}


bulk_t *
bulk_new(void)
{
    return calloc(1, sizeof(bulk_t));
}


void
bulk_free(bulk_t *b)
{
    unsigned       i;
    bulk_block_t  *block;

    if (b == NULL) {
        return;
    }

    bulk_clear(b);

    while ((block = b->spare) != NULL) {
        b->spare = block->next;
        free(block);
    }

    for (i = 0; i < BULK_TABLES; i++) {
        free(b->queue[i].cells);
    }

    free(b);
}


/* --- queueing ------------------------------------------------------------- */

void
bulk_row(bulk_t *b, bulk_table_e table)
{
    size_t         n;
    unsigned       columns;
    bulk_cell_t   *cells;
    bulk_queue_t  *q;

    q = &b->queue[table];
    columns = bulk_tables[table].columns;
    b->table = table;
    b->column = 0;

    if (q->n == q->alloc) {
        n = q->alloc ? q->alloc * 2 : 64;

        cells = realloc(q->cells, n * columns * sizeof(bulk_cell_t));
        if (cells == NULL) {
            b->failed = true;
            b->column = columns;
            return;
        }

        q->cells = cells;
        q->alloc = n;
    }

    memset(q->cells + q->n * columns, 0, columns * sizeof(bulk_cell_t));
    q->n++;
}


/* The next cell of the row at hand, or NULL. */
static bulk_cell_t *
bulk_cell(bulk_t *b)
{
    unsigned       columns;
    bulk_queue_t  *q;

    q = &b->queue[b->table];
    columns = bulk_tables[b->table].columns;

    if (b->column >= columns) {
        return NULL;
    }

    return &q->cells[(q->n - 1) * columns + b->column++];
}


static void
bulk_copy(bulk_t *b, bulk_cell_t *c, const char *p, size_t n)
{
    char  *copy;

    copy = bulk_alloc(b, n ? n : 1);

    if (copy) {
        memcpy(copy, p, n);
        c->v.p = copy;
        c->len = (uint32_t) n;
        c->kind = BULK_TEXT;
    }
}


/* Text with what no reader could decode replaced. */
static void
bulk_clean(bulk_t *b, bulk_cell_t *c, sb_str_t s)
{
    char  *clean;

    clean = bulk_alloc(b, s.len * 3 + 1);
    if (clean == NULL) {
        return;
    }

    c->v.p = clean;
    c->len = (uint32_t) sb_utf8_clean(clean, s);
    c->kind = BULK_TEXT;
}


void
bulk_text(bulk_t *b, sb_str_t s)
{
    bulk_cell_t  *c;

    c = bulk_cell(b);

    if (c == NULL || s.data == NULL) {
        return;
    }

    if (sb_utf8_valid(s) && memchr(s.data, '\0', s.len) == NULL) {
        bulk_copy(b, c, s.data, s.len);

    } else {
        bulk_clean(b, c, s);
    }
}


void
bulk_static(bulk_t *b, const char *s)
{
    bulk_cell_t  *c;

    c = bulk_cell(b);

    if (c && s) {
        c->v.p = s;
        c->len = (uint32_t) strlen(s);
        c->kind = BULK_TEXT;
    }
}


void
bulk_blob(bulk_t *b, const void *p, size_t n)
{
    bulk_cell_t  *c;

    c = bulk_cell(b);

    if (c) {
        bulk_copy(b, c, p, n);
        c->kind = c->kind == BULK_TEXT ? BULK_BLOB : c->kind;
    }
}


void
bulk_int(bulk_t *b, int64_t v)
{
    bulk_cell_t  *c;

    c = bulk_cell(b);

    if (c) {
        c->v.i = v;
        c->kind = BULK_INT;
    }
}


void
bulk_null(bulk_t *b)
{
    (void) bulk_cell(b);
}


void
bulk_id(bulk_t *b, const uint8_t id[16])
{
    char         *p;
    bulk_cell_t  *c;

    c = bulk_cell(b);
    p = bulk_alloc(b, SB_UUID_LEN + 1);

    if (c && p) {
        sb_uuid_text(p, id);
        c->v.p = p;
        c->len = SB_UUID_LEN;
        c->kind = BULK_TEXT;
    }
}


void
bulk_time(bulk_t *b, uint64_t us)
{
    char         *p;
    bulk_cell_t  *c;

    c = bulk_cell(b);
    p = bulk_alloc(b, SB_TIME_LEN + 1);

    if (c && p) {
        sb_time_text(p, us);
        c->v.p = p;
        c->len = SB_TIME_LEN;
        c->kind = BULK_TEXT;
    }
}


/* --- the table "gateway_bulk": rows of the queue being inserted ----------- */

typedef struct {
    sqlite3_vtab   base;
    bulk_t        *bulk;
} bulk_vtab_t;

typedef struct {
    sqlite3_vtab_cursor   base;
    bulk_t               *bulk;
    size_t                row;
} bulk_cursor_t;


static int
bulk_connect(sqlite3 *db, void *data, int argc, const char *const *argv,
    sqlite3_vtab **out, char **error)
{
    int           rc;
    bulk_vtab_t  *v;

    (void) argc;
    (void) argv;
    (void) error;

    rc = sqlite3_declare_vtab(db, "create table x(" BULK_SELECT_22 ")");
    if (rc != SQLITE_OK) {
        return rc;
    }

    v = calloc(1, sizeof(bulk_vtab_t));
    if (v == NULL) {
        return SQLITE_NOMEM;
    }

    v->bulk = data;
    *out = &v->base;

    return SQLITE_OK;
}


static int
bulk_disconnect(sqlite3_vtab *v)
{
    free(v);

    return SQLITE_OK;
}


static int
bulk_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void) v;

    info->estimatedCost = 100;
    info->estimatedRows = 100;

    return SQLITE_OK;
}


static int
bulk_cursor_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    bulk_cursor_t  *c;

    c = calloc(1, sizeof(bulk_cursor_t));
    if (c == NULL) {
        return SQLITE_NOMEM;
    }

    c->bulk = ((bulk_vtab_t *) (void *) v)->bulk;
    *out = &c->base;

    return SQLITE_OK;
}


static int
bulk_cursor_close(sqlite3_vtab_cursor *c)
{
    free(c);

    return SQLITE_OK;
}


static int
bulk_cursor_first(sqlite3_vtab_cursor *c, int number, const char *text,
    int argc, sqlite3_value **argv)
{
    (void) number;
    (void) text;
    (void) argc;
    (void) argv;

    ((bulk_cursor_t *) (void *) c)->row = 0;

    return SQLITE_OK;
}


static int
bulk_cursor_next(sqlite3_vtab_cursor *c)
{
    ((bulk_cursor_t *) (void *) c)->row++;

    return SQLITE_OK;
}


static int
bulk_cursor_eof(sqlite3_vtab_cursor *base)
{
    bulk_cursor_t  *c = (bulk_cursor_t *) (void *) base;

    return c->row >= c->bulk->queue[c->bulk->table].n;
}


static int
bulk_cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int n)
{
    bulk_t         *b;
    bulk_cell_t    *cell;
    bulk_cursor_t  *c = (bulk_cursor_t *) (void *) base;

    b = c->bulk;
    cell = &b->queue[b->table].cells[c->row * bulk_tables[b->table].columns
                                     + (size_t) n];

    switch (cell->kind) {

    case BULK_TEXT:
        sqlite3_result_text(ctx, cell->v.p, (int) cell->len, SQLITE_STATIC);
        break;

    case BULK_BLOB:
        sqlite3_result_blob(ctx, cell->v.p, (int) cell->len, SQLITE_STATIC);
        break;

    case BULK_INT:
        sqlite3_result_int64(ctx, cell->v.i);
        break;

    default:
        break;
    }

    return SQLITE_OK;
}


static int
bulk_cursor_rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *id)
{
    *id = (sqlite3_int64) ((bulk_cursor_t *) (void *) c)->row;

    return SQLITE_OK;
}


/* Without xCreate it exists by its name alone. */
static const sqlite3_module  bulk_module = {
    .xConnect = bulk_connect,
    .xBestIndex = bulk_best_index,
    .xDisconnect = bulk_disconnect,
    .xDestroy = bulk_disconnect,
    .xOpen = bulk_cursor_open,
    .xClose = bulk_cursor_close,
    .xFilter = bulk_cursor_first,
    .xNext = bulk_cursor_next,
    .xEof = bulk_cursor_eof,
    .xColumn = bulk_cursor_column,
    .xRowid = bulk_cursor_rowid
};


int
bulk_attach(bulk_t *b, sqlite3 *db)
{
    return sqlite3_create_module(db, "gateway_bulk", &bulk_module, b);
}


size_t
bulk_count(const bulk_t *b, bulk_table_e table)
{
    return b->queue[table].n;
}


const bulk_cell_t *
bulk_cells(const bulk_t *b, bulk_table_e table, size_t row)
{
    return b->queue[table].cells + row * bulk_tables[table].columns;
}


int64_t
bulk_first_seq(const bulk_t *b)
{
    return b->first_seq;
}


uint64_t
bulk_clears(const bulk_t *b)
{
    return b->clears;
}


int
bulk_insert(bulk_t *b, sqlite3 *db, sqlite3_stmt **stmts)
{
    int       rc;
    unsigned  i;

    rc = b->failed ? SQLITE_NOMEM : SQLITE_OK;

    for (i = 0; i < BULK_TABLES && rc == SQLITE_OK; i++) {

        if (b->queue[i].n == 0) {
            continue;
        }

        b->table = (bulk_table_e) i;

        if (stmts[i] == NULL) {
            rc = sqlite3_prepare_v3(db, bulk_tables[i].sql, -1,
                                    SQLITE_PREPARE_PERSISTENT, &stmts[i],
                                    NULL);
        }

        if (rc == SQLITE_OK) {
            rc = sqlite3_step(stmts[i]);
            (void) sqlite3_reset(stmts[i]);
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        }

        if (i == BULK_EVENT) {
            /* AUTOINCREMENT: they follow one another */
            b->first_seq = sqlite3_last_insert_rowid(db)
                           - (int64_t) b->queue[i].n + 1;
        }
    }

    return rc;
}
