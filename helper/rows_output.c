/*
 * Output: pieces of each stream are packed into chunks of at most 16 KiB;
 * gateway_output keeps the order and the times of both streams.
 */

#include "rows_pty.h"

#include "id.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>


/* Chunks named by one change row at most (the SDK's own limit). */
#define ROWS_CHANGE_CHUNKS  256

/* Of an operation: so many rows for one run each, then those that are shorter
 * than so many bytes share rows. */
#define ROWS_PLAIN   64
#define ROWS_SHORT   1024
#define ROWS_NUMBER  10         /* bytes of a number in `runs` at most */

typedef struct {
    int       stream;           /* -1: none open */
    int64_t   index;
    size_t    offset;
    size_t    len;
    uint64_t  at_us;
    uint64_t  cursor;
} rows_run_t;

typedef struct {
    store_db_t  *db;
    rows_op_t   *op;

    struct {
        char      data[ROWS_CHUNK];
        size_t    len;
        uint64_t  at_us;        /* of its first byte */
    }            chunk[2];

    rows_run_t   run;           /* open */

    struct {
        rows_run_t  run;        /* of all of them */
        int64_t     other_index;
        size_t      other_offset;
        uint64_t    last_us;
        size_t      len;        /* 0: none open */
        uint8_t     runs[4096];
    }            mix;

    rows_pty_t   pty;           /* when the operation is a terminal */

    sb_buf_t     names;         /* "stdout:0,stderr:0,..." */
    unsigned     nnames;
} rows_out_t;

static const char  *rows_streams[] = { "stdout", "stderr" };


static void
rows_run_row(rows_out_t *o, const rows_run_t *r)
{
    bulk_t  *b;

    b = o->db->bulk;

    bulk_row(b, BULK_RUN);
    bulk_id(b, o->op->id);
    bulk_int(b, o->op->ord++);
    bulk_static(b, rows_streams[r->stream]);
    bulk_int(b, r->index);
    bulk_int(b, (int64_t) r->offset);
    bulk_int(b, (int64_t) r->len);
    bulk_time(b, r->at_us);
    bulk_int(b, (int64_t) r->cursor);
}


static void
rows_mix_end(rows_out_t *o)
{
    if (o->mix.len == 0) {
        return;
    }

    rows_run_row(o, &o->mix.run);
    bulk_int(o->db->bulk, o->mix.other_index);
    bulk_int(o->db->bulk, (int64_t) o->mix.other_offset);
    bulk_blob(o->db->bulk, o->mix.runs, o->mix.len);
    o->mix.len = 0;
}


static void
rows_mix_number(rows_out_t *o, uint64_t v)
{
    while (v >= 0x80) {
        o->mix.runs[o->mix.len++] = (uint8_t) (v | 0x80);
        v >>= 7;
    }

    o->mix.runs[o->mix.len++] = (uint8_t) v;
}


/* A flood of short runs: many share a row. */
static void
rows_mix(rows_out_t *o)
{
    int  other;

    if (o->mix.len == 0) {
        other = !o->run.stream;
        o->mix.run = o->run;
        o->mix.run.len = 0;
        o->mix.other_index = o->op->chunk[other];
        o->mix.other_offset = o->chunk[other].len;
        o->mix.last_us = o->run.at_us;
    }

    rows_mix_number(o, (uint64_t) o->run.len * 2 + (o->run.stream == 1));
    rows_mix_number(o, o->run.at_us > o->mix.last_us
                       ? o->run.at_us - o->mix.last_us : 0);

    if (o->run.at_us > o->mix.last_us) {
        o->mix.last_us = o->run.at_us;
    }

    o->mix.run.len += o->run.len;

    if (o->mix.len + 2 * ROWS_NUMBER > sizeof(o->mix.runs)) {
        rows_mix_end(o);
    }
}


static void
rows_run_end(rows_out_t *o)
{
    if (o->run.stream == -1) {
        return;
    }

    if (o->op->ord >= ROWS_PLAIN && o->run.len < ROWS_SHORT) {
        rows_mix(o);

    } else {
        rows_mix_end(o);
        rows_run_row(o, &o->run);
    }

    o->run.stream = -1;
}


static int
rows_change_end(rows_out_t *o)
{
    char  id[SB_UUID_LEN + 1], *text;

    if (o->nnames == 0) {
        return SQLITE_OK;
    }

    sb_uuid_text(id, o->op->id);
    text = malloc(o->names.len + sizeof(id) + 16);

    if (text == NULL) {
        return SQLITE_NOMEM;
    }

    (void) sprintf(text, "%s:output:%.*s", id, (int) o->names.len,
                   o->names.data);

    rows_change(o->db, text, o->op->id, "output_appended", sb_now_us());

    free(text);
    o->names.len = 0;
    o->nnames = 0;

    return SQLITE_OK;
}


static int
rows_chunk_end(rows_out_t *o, int stream)
{
    bulk_t  *b;

    if (o->chunk[stream].len == 0) {
        return SQLITE_OK;
    }

    rows_mix_end(o);
    b = o->db->bulk;

    bulk_row(b, BULK_CHUNK);
    bulk_id(b, o->op->id);
    bulk_static(b, rows_streams[stream]);
    bulk_int(b, o->op->chunk[stream]);
    bulk_blob(b, o->chunk[stream].data, o->chunk[stream].len);
    bulk_int(b, (int64_t) o->chunk[stream].len);
    bulk_time(b, o->chunk[stream].at_us);

    if (sb_buf_printf(&o->names, "%s%s:%lld", o->nnames ? "," : "",
                      rows_streams[stream],
                      (long long) o->op->chunk[stream]) != SB_OK)
    {
        return SQLITE_NOMEM;
    }

    o->nnames++;
    o->op->chunk[stream]++;
    o->chunk[stream].len = 0;

    return o->nnames == ROWS_CHANGE_CHUNKS ? rows_change_end(o) : SQLITE_OK;
}


static int
rows_piece(rows_out_t *o, int stream, sb_str_t data, uint64_t at_us,
    uint64_t cursor)
{
    int     rc;
    size_t  n, room;

    while (data.len) {

        if (o->chunk[stream].len == 0) {
            o->chunk[stream].at_us = at_us;
        }

        if (o->run.stream != stream
            || o->run.index != o->op->chunk[stream]
            || (at_us > o->run.at_us + ROWS_RUN_US && !o->op->term))
        {
            rows_run_end(o);

            o->run.stream = stream;
            o->run.index = o->op->chunk[stream];
            o->run.offset = o->chunk[stream].len;
            o->run.len = 0;
            o->run.at_us = at_us;
            o->run.cursor = cursor;
        }

        room = ROWS_CHUNK - o->chunk[stream].len;
        n = data.len < room ? data.len : room;

        memcpy(o->chunk[stream].data + o->chunk[stream].len, data.data, n);
        o->chunk[stream].len += n;
        o->run.len += n;
        o->op->bytes[stream] += (int64_t) n;
        data.data += n;
        data.len -= n;

        if (o->chunk[stream].len == ROWS_CHUNK) {
            rows_run_end(o);
            rows_try(rc, rows_chunk_end(o, stream));
        }
    }

    return SQLITE_OK;
}


/* What a terminal sent, or was sent. */
static int
rows_output_pty(rows_out_t *o, uint64_t stream, uint64_t offset, sb_str_t data,
    uint64_t at_us, uint64_t cursor)
{
    int  rc;

    switch (stream) {

    case SB_STREAM_INPUT:
        return rows_pty_input(&o->pty, data, at_us, cursor);

    case SB_STREAM_NOTE:
        return rows_pty_note(&o->pty, data, at_us, cursor);

    case SB_STREAM_REPLAY:
        rows_try(rc, rows_pty_replay(&o->pty, offset, &data, at_us, cursor));
        return rows_piece(o, 0, data, at_us, cursor);

    default:
        rows_try(rc, rows_pty_output(&o->pty, stream == 1, offset, data.len,
                                     at_us, cursor));
        return rows_piece(o, stream == 1, data, at_us, cursor);
    }
}


static int
rows_output_frame(rows_out_t *o, const journal_record_t *r)
{
    int       rc;
    uint16_t  tag;
    uint64_t  at_us, stream, offset;
    sb_str_t  fields, v;

    fields = r->frame.fields;
    at_us = r->frame.time_us;
    stream = 0;
    offset = 0;

    while (sb_field_next(&fields, &tag, &v)) {

        switch (tag) {

        case SB_T_TIME:
            at_us = sb_value_u64(v, at_us);
            break;

        case SB_T_STREAM:
            stream = sb_value_u64(v, 0);
            break;

        case SB_T_OFFSET:
            offset = sb_value_u64(v, 0);
            break;

        case SB_T_DATA:
            if (o->op->term || stream > 1) {
                rows_try(rc, rows_output_pty(o, stream, offset, v, at_us,
                                             r->cursor));

            } else {
                rows_try(rc, rows_piece(o, stream == 1, v, at_us, r->cursor));
            }

            break;

        default:
            break;
        }
    }

    return SQLITE_OK;
}


static bool
rows_ends(const rows_record_t *r)
{
    sb_str_t  v;

    return r->r.frame.type == SB_F_END
           && !sb_field_get(&r->r.frame, SB_T_DETACHED, &v);
}


/* A full file: output is counted, and the operation says so at once. */
static int
rows_output_unkept(store_db_t *db, rows_op_t *op, const rows_record_t *first)
{
    int                   rc;
    bool                  ends;
    char                  id[SB_UUID_LEN + 1], text[SB_UUID_LEN + 32];
    int64_t               bytes;
    uint16_t              tag;
    uint64_t              at_us;
    sb_str_t              fields, v;
    sqlite3_stmt         *st;
    const rows_record_t  *r;

    bytes = 0;
    at_us = 0;
    ends = false;

    for (r = first; r; r = r->next) {
        ends = ends || rows_ends(r);

        if (r->r.frame.type != SB_F_OUTPUT) {
            continue;
        }

        at_us = r->r.frame.time_us;
        fields = r->r.frame.fields;

        while (sb_field_next(&fields, &tag, &v)) {
            bytes += tag == SB_T_DATA ? (int64_t) v.len : 0;
        }
    }

    op->unkept += bytes;

    if (bytes == 0 || ends || op->told) {
        return SQLITE_OK;
    }

    rows_try(rc, store_flush(db));
    rows_try(rc, sqlite3_prepare_v2(db->db, "update command_executions set"
                                    " output_complete = 0,"
                                    " history_storage_state = ?2 where"
                                    " event_id = ?1", -1, &st, NULL));

    store_bind_id(st, 1, op->id);
    sqlite3_bind_text(st, 2, op->bytes[0] + op->bytes[1]
                             ? "truncated_by_policy" : "metadata_only", -1,
                      SQLITE_STATIC);
    rc = sqlite3_step(st);
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;

    if (rc == SQLITE_OK && sqlite3_changes(db->db)) {
        sb_uuid_text(id, op->id);
        (void) snprintf(text, sizeof(text), "%s:storage:full", id);
        rows_change(db, text, op->id, "storage_state_changed", at_us);
    }

    (void) sqlite3_finalize(st);
    op->told = rc == SQLITE_OK;

    return rc;
}


int
rows_output(store_db_t *db, rows_op_t *op, const rows_record_t *first,
    chain_rows_t *rows)
{
    int                   rc, i;
    rows_out_t           *o;
    chain_output_t        made;
    const rows_record_t  *r;

    if (db->full) {
        return rows_output_unkept(db, op, first);
    }

    o = NULL;
    rc = SQLITE_OK;

    for (r = first; r && rc == SQLITE_OK; r = r->next) {

        if (r->r.frame.type != SB_F_OUTPUT) {
            continue;
        }

        if (o == NULL) {
            o = malloc(sizeof(rows_out_t));
            if (o == NULL) {
                return SQLITE_NOMEM;
            }

            if (rows) {
                rows->chunk = bulk_count(db->bulk, BULK_CHUNK);
                rows->run = bulk_count(db->bulk, BULK_RUN);
            }

            o->db = db;
            o->op = op;
            made.ord_first = op->ord;
            made.first[0] = op->chunk[0];
            made.first[1] = op->chunk[1];
            o->chunk[0].len = 0;
            o->chunk[1].len = 0;
            o->run.stream = -1;
            o->mix.len = 0;
            o->nnames = 0;
            rows_pty_init(&o->pty, db, op);
            memset(&o->names, 0, sizeof(o->names));
            o->names.max = ROWS_CHANGE_CHUNKS * 32;
        }

        rc = rows_output_frame(o, &r->r);
    }

    if (o == NULL) {
        return SQLITE_OK;
    }

    rows_run_end(o);

    if (rc == SQLITE_OK) {
        rc = rows_chunk_end(o, 0);
    }

    if (rc == SQLITE_OK) {
        rc = rows_chunk_end(o, 1);
    }

    if (rc == SQLITE_OK) {
        rc = rows_change_end(o);
    }

    if (rc == SQLITE_OK) {
        made.ord_last = op->ord - 1;

        for (i = 0; i < 2; i++) {
            made.last[i] = op->chunk[i] - 1;
        }

        if (rows) {
            rows->nchunks = bulk_count(db->bulk, BULK_CHUNK) - rows->chunk;
            rows->nruns = bulk_count(db->bulk, BULK_RUN) - rows->run;
            chain_note_rows(&db->chain, CHAIN_OUTPUT, op->id, rows, &made);

        } else {
            chain_note_output(&db->chain, op->id, &made);
        }
    }

    if (rc == SQLITE_OK) {
        rc = rows_pty_done(&o->pty);
    }

    rows_pty_free(&o->pty);
    sb_buf_free(&o->names);
    free(o);

    return rc;
}
