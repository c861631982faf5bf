#include "live_row.h"

#include "digest.h"
#include "facts.h"
#include "history_record.h"
#include "id.h"
#include "operation.h"
#include "path.h"
#include "rows_end.h"
#include "schema.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>


#define LIVE_ROW_PATHS  64      /* that a filter of paths looks at */
#define LIVE_ROW_HEAD   (64 * 1024)     /* bytes of a command, of paths, that
                                           are searched */

struct live_row_s {
    readers_t      *readers;
    sqlite3        *db;             /* in memory, empty */
    sqlite3_stmt   *row;            /* HR_COUNT parameters as columns */

    /* of the last call */
    facts_t         facts;
    rows_end_t      end;
    char            id[SB_UUID_LEN + 1];
    char            started[SB_TIME_LEN + 1];
    char            completed[SB_TIME_LEN + 1];
    char            hash[65];
    sb_str_t        paths[LIVE_ROW_PATHS];
    sb_buf_t        head;
};


live_row_t *
live_row_new(readers_t *readers)
{
    int            i;
    char           sql[HR_COUNT * 8 + 16];
    size_t         n;
    live_row_t    *r;

    r = calloc(1, sizeof(live_row_t));
    if (r == NULL) {
        return NULL;
    }

    r->readers = readers;

    n = (size_t) snprintf(sql, sizeof(sql), "SELECT ");

    for (i = 0; i < HR_COUNT; i++) {
        n += (size_t) snprintf(sql + n, sizeof(sql) - n, "%s?%d", i ? "," : "",
                               i + 1);
    }

    if (sqlite3_open_v2(":memory:", &r->db, SQLITE_OPEN_READWRITE
                        | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL)
        != SQLITE_OK
        || sqlite3_prepare_v2(r->db, sql, -1, &r->row, NULL) != SQLITE_OK)
    {
        live_row_free(r);
        return NULL;
    }

    return r;
}


static void
live_row_reset(live_row_t *r)
{
    (void) sqlite3_reset(r->row);
    (void) sqlite3_clear_bindings(r->row);
    facts_free(&r->facts);
    rows_end_free(&r->end);
    memset(&r->end, 0, sizeof(r->end));
}


void
live_row_free(live_row_t *r)
{
    if (r == NULL) {
        return;
    }

    if (r->row) {
        live_row_reset(r);
        (void) sqlite3_finalize(r->row);
    }

    (void) sqlite3_close(r->db);
    sb_buf_free(&r->head);
    free(r);
}


bool
live_op_add(live_op_t *op, const sb_frame_t *f, const char *raw)
{
    op->frames.max = LIVE_OP_MAX;

    if (sb_buf_add(&op->frames, raw, f->length) != SB_OK) {
        op->partial = true;
        return false;
    }

    return true;
}


void
live_op_sandbox(live_op_t *op, const sb_frame_t *f)
{
    sb_str_t  v;

    if ((sb_field_get(f, SB_T_SANDBOX, &v)
         || sb_field_get(f, SB_T_NEW_SANDBOX, &v))
        && v.len)
    {
        free(op->sandbox);
        op->sandbox = malloc(v.len + 1);

        if (op->sandbox) {
            memcpy(op->sandbox, v.data, v.len);
            op->sandbox[v.len] = '\0';
        }
    }
}


void
live_op_clear(live_op_t *op)
{
    size_t  i;

    for (i = 0; op->base && i < HR_COUNT; i++) {
        sqlite3_value_free(op->base[i]);
    }

    free(op->base);
    op->base = NULL;
    free(op->sandbox);
    op->sandbox = NULL;
    sb_buf_free(&op->frames);
}


static bool
live_row_copy(live_op_t *op, sqlite3_stmt *row)
{
    size_t  i;

    op->base = calloc(HR_COUNT, sizeof(sqlite3_value *));

    for (i = 0; op->base && i < HR_COUNT; i++) {
        op->base[i] = sqlite3_value_dup(sqlite3_column_value(row, (int) i));
    }

    return op->base != NULL;
}


/* The beginning is not in reach: what the history file says of it. */
static void
live_row_look(live_row_t *r, live_op_t *op)
{
    char              dir[STORE_DIR_LEN];
    bool              broken;
    unsigned          i;
    reader_t         *reader;
    sqlite3_stmt     *st;
    history_error_t   err;

    op->looked = true;

    for (i = op->sandbox ? 0 : 1; i < 2 && r->readers && op->base == NULL; i++)
    {
        if (i == 0) {
            sb_history_dir(dir, sb_str(op->sandbox, strlen(op->sandbox)));

        } else {
            (void) snprintf(dir, sizeof(dir), "%s", SCHEMA_GATEWAY);
        }

        if (reader_take(r->readers, dir, &reader, &err) != READER_OK) {
            continue;
        }

        st = history_query_record(reader->db, true, &err);
        broken = st == NULL;

        if (st) {
            sb_uuid_text(r->id, op->id);
            (void) sqlite3_bind_text(st, 1, r->id, SB_UUID_LEN, SQLITE_STATIC);

            if (history_step(st, &err) == 1) {
                (void) live_row_copy(op, st);
            }

            (void) sqlite3_finalize(st);
        }

        reader_give(r->readers, reader, broken);
    }

    op->partial = op->base == NULL;
}


/* --- values of the row ----------------------------------------------------- */

static void
live_text(live_row_t *r, int column, sb_str_t v)
{
    if (v.data) {
        (void) sqlite3_bind_text64(r->row, column + 1, v.data, v.len,
                                   SQLITE_STATIC, SQLITE_UTF8);
    }
}


static void
live_int(live_row_t *r, int column, int64_t v)
{
    (void) sqlite3_bind_int64(r->row, column + 1, v);
}


static void
live_tag(live_row_t *r, int column, uint16_t tag)
{
    if (facts_has(&r->facts, tag) && r->facts.v[tag].len == 8) {
        live_int(r, column, facts_int(&r->facts, tag, 0));
    }
}


static void
live_texts(live_row_t *r, const live_op_t *op, const rows_record_t *begin)
{
    size_t  i;

    static const struct {
        int       column;
        uint16_t  tag;
    } texts[] = {
        { HR_SOURCE, SB_T_SOURCE }, { HR_TYPE, SB_T_TYPE },
        { HR_ACTOR_TYPE, SB_T_ACTOR_TYPE }, { HR_ACTOR_ID, SB_T_ACTOR_ID },
        { HR_THREAD, SB_T_THREAD }, { HR_RUN, SB_T_RUN },
        { HR_CORRELATION, SB_T_CORRELATION }, { HR_PARENT, SB_T_PARENT },
        { HR_IDENTITY, SB_T_IDENTITY }, { HR_REQUEST, SB_T_REQUEST },
        { HR_COMMAND, SB_T_COMMAND }, { HR_CWD, SB_T_CWD },
        { HR_COMMAND_ID, SB_T_COMMAND_ID }, { HR_METHOD, SB_T_METHOD },
        { HR_URL_PATH, SB_T_PATH }, { HR_CLIENT, SB_T_CLIENT },
        { HR_AGENT, SB_T_AGENT }, { HR_REQUEST_ID, SB_T_REQUEST_ID },
        { HR_RECORD, SB_T_RECORD }, { HR_ROUTE, SB_T_ROUTE },
        { HR_UPSTREAM, SB_T_UPSTREAM }, { HR_ERROR_CODE, SB_T_ERROR_CODE },
        { HR_REASON, SB_T_REASON }, { HR_VERDICT, SB_T_VERDICT },
        { HR_RULE, SB_T_RULE }
    };
    static const struct {
        int       column;
        uint16_t  tag;
    } numbers[] = {
        { HR_TIMEOUT_MS, SB_T_TIMEOUT_MS }, { HR_EXIT_CODE, SB_T_EXIT_CODE },
        { HR_FILES_TOTAL, SB_T_FILES_TOTAL }, { HR_PORT, SB_T_PORT },
        { HR_HTTP_STATUS, SB_T_HTTP_STATUS },
        { HR_UPSTREAM_STATUS, SB_T_UPSTREAM_STATUS },
        { HR_BYTES_IN, SB_T_BYTES_IN }, { HR_BYTES_OUT, SB_T_BYTES_OUT },
        { HR_DURATION_US, SB_T_DURATION_US },
        { HR_LOCK_WAITED_US, SB_T_WAITED_US }
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        live_text(r, texts[i].column, r->facts.v[texts[i].tag]);
    }

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        live_tag(r, numbers[i].column, numbers[i].tag);
    }

    sb_uuid_text(r->id, op->id);
    live_text(r, HR_ID, sb_str(r->id, SB_UUID_LEN));

    if (begin) {
        if (!facts_has(&r->facts, SB_T_SOURCE)) {
            live_text(r, HR_SOURCE, sb_lit("gateway"));
        }

        if (!facts_has(&r->facts, SB_T_ACTOR_TYPE)) {
            live_text(r, HR_ACTOR_TYPE, sb_lit("system"));
        }

        if (!facts_has(&r->facts, SB_T_TYPE)) {
            live_text(r, HR_TYPE, sb_lit("unknown"));
        }

        live_int(r, HR_CURSOR, (int64_t) begin->r.cursor);
        sb_time_text(r->started, sb_field_u64(&begin->r.frame, SB_T_TIME,
                                              begin->r.frame.time_us));
        live_text(r, HR_STARTED, sb_str(r->started, SB_TIME_LEN));
        live_text(r, HR_STATUS, sb_lit("started"));
        live_text(r, HR_REQUEST, rows_request(&r->facts));
    }

    live_text(r, HR_SANDBOX, op->sandbox ? sb_str(op->sandbox,
                                                  strlen(op->sandbox))
                                         : sb_lit(SCHEMA_GATEWAY));
}


static void
live_command(live_row_t *r, const live_op_t *op, bool has_end)
{
    bool           command;
    const sb_op_t *known;

    known = rows_known(r->facts.v[SB_T_TYPE]);

    if (known == NULL && op->base) {
        /* what came before is of the file */
        if (has_end && r->end.command) {
            live_int(r, HR_OUTPUT_COMPLETE, r->end.complete);
            live_text(r, HR_OUTPUT_STATE,
                      sb_str(r->end.storage, strlen(r->end.storage)));
        }

        return;
    }

    command = facts_has(&r->facts, SB_T_COMMAND)
              || (known && (known->flags & SB_OPF_COMMAND));

    if (command) {
        if (!facts_has(&r->facts, SB_T_COMMAND)) {
            live_text(r, HR_COMMAND, sb_lit(""));
        }

        live_int(r, HR_OUTPUT_COMPLETE, has_end ? r->end.complete : true);
        live_text(r, HR_OUTPUT_STATE,
                  has_end ? sb_str(r->end.storage, strlen(r->end.storage))
                          : sb_lit("complete"));
    }

    if (op->bytes[0]) {
        live_int(r, HR_STDOUT_BYTES, op->bytes[0]);
    }

    if (op->bytes[1]) {
        live_int(r, HR_STDERR_BYTES, op->bytes[1]);
    }

    if (has_end && (command || op->pieces)) {
        live_int(r, HR_STDOUT_TOTAL, facts_int(&r->facts, SB_T_STDOUT_TOTAL,
                                               op->bytes[0]));
        live_int(r, HR_STDERR_TOTAL, facts_int(&r->facts, SB_T_STDERR_TOTAL,
                                               op->bytes[1]));
    }
}


static void
live_file(live_row_t *r, bool has_end)
{
    bool           done;
    facts_file_t  *f;

    if (r->facts.nfiles == 0) {
        return;
    }

    f = &r->facts.files[0];
    done = has_end && sb_eq(r->end.status, sb_lit("succeeded"));

    if (done && facts_int(&r->facts, SB_T_HTTP_STATUS, 0) == 200
        && r->facts.v[SB_T_SHA256].len == 32)
    {
        f->size = facts_int(&r->facts, SB_T_BYTES_OUT, f->size);
        f->sha256 = r->facts.v[SB_T_SHA256];
    }

    live_text(r, HR_PATH, f->path);

    if (f->old_path.len) {
        live_text(r, HR_OLD_PATH, f->old_path);
    }

    live_text(r, HR_CHANGE,
              rows_change_type(r->facts.v[SB_T_TYPE].len
                               ? r->facts.v[SB_T_TYPE] : sb_lit("unknown")));
    live_int(r, HR_HAS_DIFF, 0);
    live_int(r, HR_FILES, (int64_t) r->facts.nfiles);

    if (done && f->size >= 0) {
        live_int(r, HR_AFTER_SIZE, f->size);
    }

    if (done && f->sha256.len == 32) {
        sb_hex(r->hash, (const uint8_t *) f->sha256.data, 32);
        live_text(r, HR_AFTER_HASH, sb_str(r->hash, 64));
    }
}


/* Reads the frames of the operation; *begin is filled when it is there. */
static bool
live_row_gather(live_row_t *r, live_op_t *op, rows_record_t *begin,
    const journal_record_t *end)
{
    bool        has;
    size_t      pos, need;
    sb_frame_t  f;

    has = false;

    for (pos = 0; pos < op->frames.len; pos += f.length) {

        if (sb_frame_read(&f, op->frames.data + pos, op->frames.len - pos,
                          &need)
            != SB_OK)
        {
            break;
        }

        if (f.type == SB_F_BEGIN) {
            has = true;
            begin->r.frame = f;
            begin->r.cursor = op->cursor;
        }

        facts_add(&r->facts, &f);
    }

    if (end) {
        facts_add(&r->facts, &end->frame);
    }

    return has;
}


static sb_str_t
live_value(sqlite3_value *v)
{
    const void  *p;

    p = sqlite3_value_text(v);

    return sb_str(p ? p : "", (size_t) sqlite3_value_bytes(v));
}


/* Makes the row; it stands on r->row. */
static bool
live_row_make(live_row_t *r, live_op_t *op, const journal_record_t *end)
{
    bool           has;
    size_t         i;
    rows_op_t      row;
    rows_record_t  begin, last;

    live_row_reset(r);
    memset(&begin, 0, sizeof(begin));

    has = live_row_gather(r, op, &begin, end);

    if (!has && !op->looked) {
        live_row_look(r, op);
    }

    for (i = 0; op->base && i < HR_COUNT; i++) {
        (void) sqlite3_bind_value(r->row, (int) i + 1, op->base[i]);
    }

    live_texts(r, op, has ? &begin : NULL);

    if (end) {
        memset(&row, 0, sizeof(row));
        memset(&last, 0, sizeof(last));
        memcpy(row.id, op->id, 16);
        row.ord = op->pieces;
        row.bytes[0] = op->bytes[0];
        row.bytes[1] = op->bytes[1];
        last.r = *end;

        if (!has) {
            begin.r.frame.time_us = end->frame.time_us;
        }

        if (op->base && !facts_has(&r->facts, SB_T_COMMAND)
            && sqlite3_value_type(op->base[HR_COMMAND]) != SQLITE_NULL)
        {
            /* so that its output is judged as a command's */
            r->facts.v[SB_T_COMMAND] = live_value(op->base[HR_COMMAND]);
        }

        if (rows_end_read(NULL, &row, &r->facts, &begin, &last, &r->end)
            != SQLITE_OK)
        {
            return false;
        }

        live_text(r, HR_STATUS, r->end.status);
        sb_time_text(r->completed, r->end.at_us);
        live_text(r, HR_COMPLETED, sb_str(r->completed, SB_TIME_LEN));
        live_int(r, HR_DURATION_MS, r->end.duration_ms);
        live_text(r, HR_RESULT, r->end.result);
    }

    live_command(r, op, end != NULL);
    live_file(r, end != NULL);

    return sqlite3_step(r->row) == SQLITE_ROW;
}


/* What is searched: the beginning of the summary, and the paths. */
static sb_str_t
live_row_head(live_row_t *r, const history_filter_facts_t *t)
{
    size_t  i, n;

    r->head.max = SB_OUT_MAX;
    r->head.len = 0;
    (void) history_record_summary(&r->head, r->row);

    if (r->head.len > LIVE_ROW_HEAD) {
        r->head.len = sb_utf8_cut(sb_str(r->head.data, r->head.len),
                                  LIVE_ROW_HEAD);
    }

    for (i = 0, n = r->head.len; i < t->npaths; i++) {

        if (r->head.len - n + t->paths[i].len > LIVE_ROW_HEAD) {
            break;
        }

        (void) sb_buf_add_c(&r->head, '\n');
        (void) sb_buf_add_str(&r->head, t->paths[i]);
    }

    return sb_str(r->head.data, r->head.len);
}


static void
live_row_look_at(live_row_t *r, history_filter_facts_t *t)
{
    size_t    i;
    uint64_t  us;

    const struct {
        sb_str_t  *to;
        int        column;
    } texts[] = {
        { &t->type, HR_TYPE }, { &t->status, HR_STATUS },
        { &t->actor, HR_ACTOR_ID }, { &t->actor_type, HR_ACTOR_TYPE },
        { &t->source, HR_SOURCE }, { &t->thread, HR_THREAD },
        { &t->run, HR_RUN }, { &t->correlation, HR_CORRELATION }
    };

    memset(t, 0, sizeof(history_filter_facts_t));

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i].to = history_column(r->row, texts[i].column);
    }

    t->paths = r->paths;

    for (i = 0; i < r->facts.nfiles && t->npaths + 2 < LIVE_ROW_PATHS; i++) {
        r->paths[t->npaths++] = r->facts.files[i].path;

        if (r->facts.files[i].old_path.len) {
            r->paths[t->npaths++] = r->facts.files[i].old_path;
        }
    }

    if (t->npaths == 0 && sqlite3_column_type(r->row, HR_PATH) != SQLITE_NULL)
    {
        r->paths[t->npaths++] = history_column(r->row, HR_PATH);
    }

    t->head = live_row_head(r, t);
    t->has_exit_code = sqlite3_column_type(r->row, HR_EXIT_CODE) != SQLITE_NULL;
    t->exit_code = sqlite3_column_int64(r->row, HR_EXIT_CODE);
    t->duration_ms = sqlite3_column_type(r->row, HR_DURATION_MS) == SQLITE_NULL
                     ? -1 : sqlite3_column_int64(r->row, HR_DURATION_MS);

    if (sb_time_parse(&us, history_column(r->row, HR_STARTED)) == SB_OK) {
        t->started_us = (int64_t) us;
    }
}


bool
live_row_write(live_row_t *r, live_op_t *op, const journal_record_t *end,
    sb_out_t *out, history_filter_facts_t *facts)
{
    if (!live_row_make(r, op, end)) {
        return false;
    }

    history_record_members(out, r->row);

    if (op->partial) {
        sb_out_key(out, "partial");
        sb_out_text(out, "true");
    }

    live_row_look_at(r, facts);

    return out->rc == SB_OK;
}


bool
live_row_facts(live_row_t *r, live_op_t *op, history_filter_facts_t *facts)
{
    if (!live_row_make(r, op, NULL)) {
        return false;
    }

    live_row_look_at(r, facts);

    return true;
}
