#include "history_pieces.h"

#include "history_query.h"
#include "id.h"
#include "utf8.h"

#include <stdlib.h>


typedef enum {
    PIECES_STREAM,          /* one */
    PIECES_ORDER,           /* both, a row for each run */
    PIECES_RUNS,            /* both, rows may hold many */
    PIECES_STORED           /* both, written by others */
} history_pieces_e;

/* Columns: place, stream, encoding, data, time; with PIECES_RUNS the runs and
 * the bytes of the other stream from where they begin. */

static const char *const  history_pieces_sql[] = {
    "SELECT chunk_index, stream, encoding, data, time_us(created_at)"
    " FROM command_output_chunks"
    " WHERE event_id = ?1 AND chunk_index > ?2 AND stream = ?3"
    " ORDER BY chunk_index LIMIT 65",

    "SELECT o.ord, o.stream, k.encoding, substr(k.data, o.offset + 1, o.length),"
    " time_us(o.at) FROM gateway_output o JOIN command_output_chunks k"
    " ON k.event_id = o.event_id AND k.stream = o.stream"
    " AND k.chunk_index = o.chunk_index"
    " WHERE o.event_id = ?1 AND o.ord > ?2 ORDER BY o.ord LIMIT 65",

    "SELECT o.ord, o.stream, k.encoding, substr(k.data, o.offset + 1,"
    " iif(o.runs IS NULL, o.length, 16384)), time_us(o.at), o.runs, (SELECT"
    " substr(x.data, o.other_offset + 1) FROM command_output_chunks x"
    " WHERE x.event_id = o.event_id AND x.chunk_index = o.other_index"
    " AND x.stream = iif(o.stream = 'stdout', 'stderr', 'stdout'))"
    " FROM gateway_output o JOIN command_output_chunks k"
    " ON k.event_id = o.event_id AND k.stream = o.stream"
    " AND k.chunk_index = o.chunk_index"
    " WHERE o.event_id = ?1 AND o.ord > ?2 ORDER BY o.ord LIMIT 65",

    "SELECT id, stream, encoding, data, time_us(created_at)"
    " FROM command_output_chunks"
    " WHERE event_id = ?1 AND id > ?2 ORDER BY id LIMIT 65"
};


/* Are the runs of both streams known, and may rows hold many of them?  -1 with
 * err. */
static int
history_pieces_kind(sqlite3 *db, const char *id, history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, "SELECT 1 FROM gateway_output"
                               " WHERE event_id = ?1 LIMIT 1", err);
    if (stmt == NULL) {
        return -1;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    rc = history_step(stmt, err);
    sqlite3_finalize(stmt);

    if (rc != 1) {
        return rc == 0 ? PIECES_STORED : -1;
    }

    /* files of an older build have no such column */
    stmt = history_prepare(db, "SELECT 1 FROM"
                               " pragma_table_info('gateway_output')"
                               " WHERE name = 'runs'", err);
    if (stmt == NULL) {
        return -1;
    }

    rc = history_step(stmt, err);
    sqlite3_finalize(stmt);

    return rc == -1 ? -1 : rc ? PIECES_RUNS : PIECES_ORDER;
}


static bool
history_pieces_add(history_pieces_t *p, const history_piece_t *piece,
    sb_str_t bytes)
{
    size_t            cap;
    history_piece_t  *pieces;

    if (p->n == p->cap) {
        cap = p->cap ? p->cap * 2 : HISTORY_PIECES;
        pieces = realloc(p->pieces, cap * sizeof(history_piece_t));

        if (pieces == NULL) {
            return false;
        }

        p->pieces = pieces;
        p->cap = cap;
    }

    if (sb_buf_add_str(&p->bytes, bytes) != SB_OK) {
        return false;
    }

    p->pieces[p->n] = *piece;
    p->pieces[p->n].len = bytes.len;
    p->n++;

    return true;
}


static uint64_t
history_run_number(sb_str_t *runs)
{
    uint64_t  v;
    unsigned  shift, c;

    v = 0;

    for (shift = 0; runs->len && shift < 64; shift += 7) {
        c = (unsigned char) runs->data[0];
        runs->data++;
        runs->len--;
        v |= (uint64_t) (c & 0x7f) << shift;

        if (c < 0x80) {
            break;
        }
    }

    return v;
}


/* The runs of a row that holds many, one by one. */
static bool
history_pieces_runs(history_pieces_t *p, history_piece_t *piece, sb_str_t runs,
    sb_str_t own, sb_str_t other)
{
    size_t    n;
    uint64_t  v;
    sb_str_t  streams[2], *from;

    streams[piece->is_stderr] = own;
    streams[!piece->is_stderr] = other;

    while (runs.len) {
        v = history_run_number(&runs);
        piece->at_us += (int64_t) history_run_number(&runs);
        piece->is_stderr = v & 1;

        from = &streams[v & 1];
        n = v / 2 < from->len ? (size_t) (v / 2) : from->len;

        if (n && !history_pieces_add(p, piece, sb_str(from->data, n))) {
            return false;
        }

        from->data += n;
        from->len -= n;
    }

    return true;
}


static bool
history_pieces_row(history_pieces_t *p, sqlite3_stmt *stmt, bool many)
{
    sb_str_t         data;
    history_piece_t  piece;

    piece.n = sqlite3_column_int64(stmt, 0);
    piece.is_stderr = sb_eq(history_column(stmt, 1), sb_lit("stderr"));
    piece.plain = sb_eq(history_column(stmt, 2), sb_lit("identity"));
    piece.at_us = sqlite3_column_type(stmt, 4) == SQLITE_NULL
                  ? -1 : sqlite3_column_int64(stmt, 4);
    data = history_column(stmt, 3);

    if (many && sqlite3_column_type(stmt, 5) != SQLITE_NULL) {

        /* the columns are not all good at the same time */

        for (int i = 0; i < 2; i++) {
            p->streams[i].max = p->bytes.max;
            p->streams[i].len = 0;

            if (sb_buf_add_str(&p->streams[i],
                               history_column(stmt, i ? 6 : 3)) != SB_OK)
            {
                return false;
            }
        }

        return history_pieces_runs(p, &piece, history_column(stmt, 5),
                                   sb_str(p->streams[0].data,
                                          p->streams[0].len),
                                   sb_str(p->streams[1].data,
                                          p->streams[1].len));
    }

    return history_pieces_add(p, &piece, data);
}


bool
history_pieces_read(history_pieces_t *p, sqlite3 *db, const char *id,
    const char *stream, int64_t after, history_error_t *err)
{
    int            rc, kind;
    unsigned       rows;
    sqlite3_stmt  *stmt;

    p->n = 0;
    p->after = after;
    p->bytes.len = 0;
    p->bytes.max = SB_OUT_MAX;

    kind = stream ? PIECES_STREAM : history_pieces_kind(db, id, err);

    if (kind == -1) {
        return false;
    }

    stmt = history_prepare(db, history_pieces_sql[kind], err);
    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, after);

    if (stream) {
        sqlite3_bind_text(stmt, 3, stream, -1, SQLITE_STATIC);
    }

    rows = 0;

    while ((rc = history_step(stmt, err)) == 1 && rows < HISTORY_PIECES
           && p->bytes.len < HISTORY_PIECES_MAX)
    {
        if (!history_pieces_row(p, stmt, kind == PIECES_RUNS)) {
            history_error(err, "MemoryError", "out of memory");
            rc = -1;
            break;
        }

        p->after = sqlite3_column_int64(stmt, 0);
        rows++;
    }

    sqlite3_finalize(stmt);
    p->last = rc == 0;

    return rc != -1;
}


void
history_pieces_free(history_pieces_t *p)
{
    sb_buf_free(&p->bytes);
    sb_buf_free(&p->streams[0]);
    sb_buf_free(&p->streams[1]);
    free(p->pieces);
}


void
history_piece_json(sb_out_t *out, const history_piece_t *piece,
    sb_str_t bytes)
{
    char  time[SB_TIME_LEN + 1];

    sb_out_text(out, "{");
    sb_out_key(out, "n");
    sb_out_int(out, piece->n);
    sb_out_key(out, "stream");
    sb_out_text(out, piece->is_stderr ? "\"stderr\"" : "\"stdout\"");
    sb_out_key(out, "at");

    if (piece->at_us < 0) {
        sb_out_text(out, "null");

    } else {
        sb_time_text(time, (uint64_t) piece->at_us);
        sb_out_str(out, sb_str(time, SB_TIME_LEN));
    }

    sb_out_key(out, "bytes");
    sb_out_int(out, (int64_t) bytes.len);

    if (piece->plain && sb_utf8_valid(bytes)) {
        sb_out_key(out, "text");
        sb_out_str(out, bytes);

    } else {
        sb_out_key(out, "data_base64");
        sb_out_base64(out, bytes.data, bytes.len);
    }

    if (!piece->plain) {
        sb_out_key(out, "encoded");
        sb_out_text(out, "true");
    }

    sb_out_text(out, "}");
}


int
history_query_output(sqlite3 *db, const char *id, const char *stream,
    int64_t after, history_piece_pt piece, void *data, history_error_t *err)
{
    int                rc, kind;
    bool               more;
    int64_t            skip, row;
    const char        *at;
    history_piece_t   *x;
    history_pieces_t   p;

    memset(&p, 0, sizeof(p));
    skip = 0;

    kind = stream ? PIECES_STREAM : history_pieces_kind(db, id, err);

    if (kind == PIECES_STORED) {

        /* pieces are counted: nobody knows the numbers of rows */
        skip = after + 1;
        after = -1;
    }

    more = kind != -1;
    rc = more ? 1 : -1;
    row = after;

    while (more && rc == 1) {

        if (!history_pieces_read(&p, db, id, stream, row, err)) {
            rc = -1;
            break;
        }

        at = p.bytes.data;

        for (x = p.pieces; x < p.pieces + p.n && more; x++) {

            if (skip > 0) {
                skip--;

            } else {
                more = piece(data, x, sb_str(at, x->len));
            }

            at += x->len;
        }

        row = p.after;

        if (p.last) {
            break;
        }
    }

    history_pieces_free(&p);

    return rc == -1 ? -1 : more;
}
