/*
 * Output: pieces of each stream are packed into chunks of at most 16 KiB;
 * gateway_output keeps the order and the times of both streams.
 */

#include "rows.h"

#include "id.h"

#include <stdio.h>
#include <stdlib.h>


/* Chunks named by one change row at most (the SDK's own limit). */
#define ROWS_CHANGE_CHUNKS  256

typedef struct {
    store_db_t  *db;
    rows_op_t   *op;

    struct {
        char      data[ROWS_CHUNK];
        size_t    len;
        uint64_t  at_us;        /* of its first byte */
    }            chunk[2];

    struct {
        int       stream;       /* -1: none open */
        int64_t   index;
        size_t    offset;
        size_t    len;
        uint64_t  at_us;
        uint64_t  cursor;
    }            run;

    sb_buf_t     names;         /* "stdout:0,stderr:0,..." */
    unsigned     nnames;
} rows_out_t;

static const char  *rows_streams[] = { "stdout", "stderr" };


static void
rows_run_end(rows_out_t *o)
{
    bulk_t  *b;

    if (o->run.stream == -1) {
        return;
    }

    b = o->db->bulk;

    bulk_row(b, BULK_RUN);
    bulk_id(b, o->op->id);
    bulk_int(b, o->op->ord++);
    bulk_static(b, rows_streams[o->run.stream]);
    bulk_int(b, o->run.index);
    bulk_int(b, (int64_t) o->run.offset);
    bulk_int(b, (int64_t) o->run.len);
    bulk_time(b, o->run.at_us);
    bulk_int(b, (int64_t) o->run.cursor);

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
            || at_us > o->run.at_us + ROWS_RUN_US)
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


static int
rows_output_frame(rows_out_t *o, const journal_record_t *r)
{
    int       rc, stream;
    uint16_t  tag;
    uint64_t  at_us;
    sb_str_t  fields, v;

    fields = r->frame.fields;
    at_us = r->frame.time_us;
    stream = 0;

    while (sb_field_next(&fields, &tag, &v)) {

        switch (tag) {

        case SB_T_TIME:
            at_us = sb_value_u64(v, at_us);
            break;

        case SB_T_STREAM:
            stream = sb_value_u64(v, 0) == 1;
            break;

        case SB_T_DATA:
            rows_try(rc, rows_piece(o, stream, v, at_us, r->cursor));
            break;

        default:
            break;
        }
    }

    return SQLITE_OK;
}


int
rows_output(store_db_t *db, rows_op_t *op, const rows_record_t *first)
{
    int                   rc;
    rows_out_t           *o;
    const rows_record_t  *r;

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

            o->db = db;
            o->op = op;
            o->chunk[0].len = 0;
            o->chunk[1].len = 0;
            o->run.stream = -1;
            o->nnames = 0;
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

    sb_buf_free(&o->names);
    free(o);

    return rc;
}
