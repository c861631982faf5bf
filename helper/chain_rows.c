/*
 * What an entry speaks of, from rows that are queued: the same JSON, byte for
 * byte, that chain_content.c reads from the file once they are in it.
 */

#include "chain.h"

#include "digest.h"
#include "json.h"

#include <stdio.h>


/* Columns that are not in the queue. */
enum {
    ROWS_NULL = -1,         /* not written with the row */
    ROWS_ONE = -2,          /* DEFAULT 1 */
    ROWS_CURSOR = -3,       /* of gateway_records */
    ROWS_SEQ = -4           /* of history_events */
};

typedef struct {
    const char  *name;
    int          cell;
} chain_column_t;

/* Names in alphabetical order; cells as bulk.c has the columns. */

static const chain_column_t  chain_begin_columns[] = {
    { "{\"actor_id\":", 6 }, { ",\"actor_type\":", 5 },
    { ",\"correlation_id\":", 9 }, { ",\"cursor\":", ROWS_CURSOR },
    { ",\"event_id\":", 0 }, { ",\"occurred_at\":", 12 },
    { ",\"provider_key\":", 1 }, { ",\"run_id\":", 8 },
    { ",\"sandbox_id\":", 2 }, { ",\"sandbox_instance_id\":", 3 },
    { ",\"seq\":", ROWS_SEQ }, { ",\"source\":", 4 },
    { ",\"thread_id\":", 7 }, { NULL, 0 }
};

static const chain_column_t  chain_event_columns[] = {
    { "{\"completed_at\":", 13 }, { ",\"duration_ms\":", 14 },
    { ",\"event_id\":", 0 }, { ",\"operation_type\":", 10 },
    { ",\"request_json\":", 15 }, { ",\"result_json\":", 16 },
    { ",\"schema_version\":", ROWS_ONE }, { ",\"status\":", 11 }, { NULL, 0 }
};

static const chain_column_t  chain_command_columns[] = {
    { "{\"command\":", 1 }, { ",\"cwd\":", 2 },
    { ",\"environment_json\":", ROWS_NULL }, { ",\"exit_code\":", 4 },
    { ",\"history_storage_state\":", 7 }, { ",\"output_complete\":", 6 },
    { ",\"provider_command_id\":", 5 }, { ",\"timeout_ms\":", 3 }, { NULL, 0 }
};

static const chain_column_t  chain_operation_columns[] = {
    { "{\"after_hash\":", 5 }, { ",\"after_size\":", 4 },
    { ",\"before_hash\":", ROWS_NULL }, { ",\"before_size\":", ROWS_NULL },
    { ",\"change_type\":", 3 }, { ",\"diff_complete\":", ROWS_ONE },
    { ",\"diff_data\":", ROWS_NULL }, { ",\"diff_encoding\":", ROWS_NULL },
    { ",\"old_path\":", 2 }, { ",\"path\":", 1 }, { NULL, 0 }
};

static const chain_column_t  chain_file_columns[] = {
    { "{\"before\":", ROWS_NULL }, { ",\"before_sha256\":", ROWS_NULL },
    { ",\"before_size\":", ROWS_NULL }, { ",\"content\":", ROWS_NULL },
    { ",\"flags\":", 7 }, { ",\"mode\":", 6 }, { ",\"n\":", 1 },
    { ",\"old_path\":", 3 }, { ",\"path\":", 2 }, { ",\"sha256\":", 5 },
    { ",\"size\":", 4 }, { NULL, 0 }
};

static const chain_column_t  chain_wire_columns[] = {
    { "{\"agent\":", 6 }, { ",\"bytes_in\":", 17 }, { ",\"bytes_out\":", 18 },
    { ",\"client\":", 5 }, { ",\"duration_us\":", 19 },
    { ",\"error_code\":", 13 }, { ",\"files_total\":", 20 },
    { ",\"foldable\":", 21 }, { ",\"http_status\":", 15 },
    { ",\"identity\":", 8 }, { ",\"method\":", 2 }, { ",\"parent\":", 9 },
    { ",\"path\":", 3 }, { ",\"port\":", 4 }, { ",\"reason\":", 14 },
    { ",\"record\":", 10 }, { ",\"request_id\":", 7 }, { ",\"route\":", 11 },
    { ",\"sandbox\":", 1 }, { ",\"upstream\":", 12 },
    { ",\"upstream_status\":", 16 }, { NULL, 0 }
};

static const chain_column_t  chain_run_columns[] = {
    { "{\"at\":", 6 }, { ",\"chunk_index\":", 3 }, { ",\"cursor\":", 7 },
    { ",\"length\":", 5 }, { ",\"offset\":", 4 }, { ",\"ord\":", 1 },
    { ",\"other_index\":", 8 }, { ",\"other_offset\":", 9 },
    { ",\"runs\":", 10 }, { ",\"stream\":", 2 }, { NULL, 0 }
};


static sb_rc_t
chain_cell(sb_buf_t *out, const bulk_cell_t *c)
{
    switch (c->kind) {

    case BULK_TEXT:
        return sb_json_write_str(out, sb_str(c->v.p, c->len));

    case BULK_INT:
        return chain_int(out, c->v.i);

    case BULK_BLOB:
        return chain_blob(out, c->v.p, c->len);

    default:
        return sb_buf_add(out, "null", 4);
    }
}


/* A row as an object; `cursor` and `seq` for those that have such columns. */
static sb_rc_t
chain_object(sb_buf_t *out, const chain_column_t *columns,
    const bulk_cell_t *cells, int64_t cursor, int64_t seq)
{
    sb_rc_t  rc;

    for (rc = SB_OK; rc == SB_OK && columns->name; columns++) {

        rc = sb_buf_add(out, columns->name, strlen(columns->name));
        if (rc != SB_OK) {
            break;
        }

        switch (columns->cell) {

        case ROWS_NULL:
            rc = sb_buf_add(out, "null", 4);
            break;

        case ROWS_ONE:
            rc = sb_buf_add_c(out, '1');
            break;

        case ROWS_CURSOR:
            rc = chain_int(out, cursor);
            break;

        case ROWS_SEQ:
            rc = chain_int(out, seq);
            break;

        default:
            rc = chain_cell(out, &cells[columns->cell]);
        }
    }

    return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
}


/* The row of a table, named; null without one. */
static sb_rc_t
chain_named(sb_buf_t *out, const char *name, const chain_column_t *columns,
    const bulk_cell_t *cells)
{
    sb_rc_t  rc;

    rc = sb_buf_add(out, name, strlen(name));

    if (rc == SB_OK) {
        rc = cells ? chain_object(out, columns, cells, 0, 0)
                   : sb_buf_add(out, "null", 4);
    }

    return rc;
}


static sb_rc_t
chain_rows_end(const bulk_t *b, const chain_rows_t *rows, sb_buf_t *out)
{
    size_t   i;
    sb_rc_t  rc;

    rc = chain_named(out, "{\"command\":", chain_command_columns,
                     rows->has_command
                     ? bulk_cells(b, BULK_COMMAND, rows->command) : NULL);

    if (rc == SB_OK) {
        rc = chain_named(out, ",\"event\":", chain_event_columns,
                         bulk_cells(b, BULK_EVENT, rows->event));
    }

    if (rc == SB_OK) {
        rc = chain_named(out, ",\"file\":", chain_operation_columns,
                         rows->nfiles ? bulk_cells(b, BULK_FILE_OPERATION,
                                                   rows->operation) : NULL);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit(",\"files\":["));
    }

    for (i = 0; i < rows->nfiles && rc == SB_OK; i++) {
        rc = chain_named(out, i ? "," : "", chain_file_columns,
                         bulk_cells(b, BULK_FILE, rows->file + i));
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit("],\"gap\":null"));
    }

    if (rc == SB_OK) {
        rc = chain_named(out, ",\"wire\":", chain_wire_columns,
                         bulk_cells(b, BULK_WIRE, rows->wire));
    }

    return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
}


static sb_rc_t
chain_rows_output(const bulk_t *b, const chain_rows_t *rows,
    const chain_output_t *o, sb_buf_t *out)
{
    int                 i;
    size_t              n;
    uint8_t             digest[CHAIN_HASH];
    sb_rc_t             rc;
    sb_buf_t            row;
    sb_sha256_t        *h;
    const char         *stream;
    const bulk_cell_t  *c;

    h = sb_sha256_new();
    if (h == NULL) {
        return SB_NOMEM;
    }

    for (i = 0; i < 2; i++) {
        stream = chain_stream_name(i);

        for (n = 0; n < rows->nchunks; n++) {
            c = bulk_cells(b, BULK_CHUNK, rows->chunk + n);

            if (c[1].len == strlen(stream)
                && memcmp(c[1].v.p, stream, c[1].len) == 0)
            {
                chain_output_chunk(h, stream, c[2].v.i, c[4].v.i, c[5].v.p,
                                   "identity", sb_str(c[3].v.p, c[3].len));
            }
        }
    }

    memset(&row, 0, sizeof(row));
    row.max = 64 * 1024;
    rc = SB_OK;

    for (n = 0; n < rows->nruns && rc == SB_OK; n++) {
        row.len = 0;
        rc = chain_object(&row, chain_run_columns,
                          bulk_cells(b, BULK_RUN, rows->run + n), 0, 0);
        sb_sha256_add(h, row.data, row.len);
    }

    sb_buf_free(&row);
    sb_sha256_final(h, digest);

    return rc == SB_OK ? chain_output_detail(out, o, digest) : rc;
}


sb_rc_t
chain_rows_text(const bulk_t *b, chain_kind_e kind, const chain_rows_t *rows,
    const chain_output_t *o, sb_buf_t *out)
{
    int64_t             cursor;
    const bulk_cell_t  *c;

    if (kind == CHAIN_OUTPUT) {
        return chain_rows_output(b, rows, o, out);
    }

    if (kind == CHAIN_END) {
        return chain_rows_end(b, rows, out);
    }

    c = bulk_cells(b, BULK_RECORD, rows->record);
    cursor = c[2].v.i;

    return chain_object(out, chain_begin_columns,
                        bulk_cells(b, BULK_EVENT, rows->event), cursor,
                        bulk_first_seq(b) + (int64_t) rows->event);
}
