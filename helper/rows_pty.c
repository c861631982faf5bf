/*
 * Terminals.  The bytes of a terminal's output are in command_output_chunks, as
 * those of a command; when they came, what was typed, sizes, replays and holes
 * stand in gateway_terminal, one row for each batch that is applied (or 16 KiB of
 * events).  gateway_terminals has one row for each pty.open; the offset in the
 * session's output up to which something is on record goes from one to the next,
 * so that what execd sends again is not recorded again.
 *
 * Live output is always recorded, whatever offsets say: only what comes as a
 * replay can be left out.
 */

#include "rows_pty.h"

#include "digest.h"
#include "id.h"
#include "json.h"
#include "log.h"
#include "terminal.h"

#include <stdio.h>


#define ROWS_PTY_MAX  (16 * 1024)       /* of events in a row, about */


static int
rows_pty_failed(rows_pty_t *p, int rc)
{
    char  id[SB_UUID_LEN + 1];

    if (rc == SQLITE_OK || p->op->term_failed) {
        return SQLITE_OK;
    }

    if ((rc & 0xff) != SQLITE_CONSTRAINT && (rc & 0xff) != SQLITE_ERROR) {
        /* a fault of the machine or of the file: all of it is tried again */
        return rc;
    }

    sb_uuid_text(id, p->op->id);
    log_line(LOG_ERROR, "operation %s in %s: what happened in its terminal"
             " cannot be recorded (SQLite %d); its output is", id, p->db->dir,
             rc);

    p->op->term_failed = true;

    return rows_failed(p->db, p->op->id, 0, "recording_failed", p->cursor);
}


/* Begins an event: the time since the first of the row, and its code. */
static sb_rc_t
rows_pty_begin(rows_pty_t *p, uint64_t at_us, char code)
{
    if (p->events.len == 0) {
        p->at_us = at_us;
    }

    return sb_buf_printf(&p->events, "%s[%lld,\"%c\"", p->events.len ? "," : "",
                         at_us > p->at_us ? (long long) (at_us - p->at_us) : 0,
                         code);
}


/* The event that could grow ends. */
static int
rows_pty_last(rows_pty_t *p)
{
    sb_rc_t  rc;

    if (p->last.code == 0) {
        return SQLITE_OK;
    }

    rc = rows_pty_begin(p, p->last.at_us, p->last.code);

    if (rc == SB_OK && p->last.code == ROWS_PTY_REPLAY) {
        rc = sb_buf_printf(&p->events, ",%lld,%lld,%lld]",
                           (long long) p->last.offset, (long long) p->last.n,
                           (long long) p->last.fresh);

    } else if (rc == SB_OK) {
        rc = sb_buf_printf(&p->events, ",%lld]", (long long) p->last.n);
    }

    p->last.code = 0;

    return rc == SB_OK ? SQLITE_OK : SQLITE_NOMEM;
}


/* What the row says belongs to the record (chain_verify.c reads it). */
static int
rows_pty_chain(rows_pty_t *p)
{
    char          at[SB_TIME_LEN + 1];
    uint8_t       hash[CHAIN_HASH];
    sb_sha256_t  *h;

    h = sb_sha256_new();
    if (h == NULL) {
        return SQLITE_NOMEM;
    }

    sb_time_text(at, p->at_us);
    sb_sha256_add(h, at, SB_TIME_LEN);
    sb_sha256_add(h, "[", 1);
    sb_sha256_add(h, p->events.data, p->events.len);
    sb_sha256_final(h, hash);

    chain_note_terminal(&p->db->chain, p->op->id, p->op->term_n, hash);

    return SQLITE_OK;
}


static int
rows_pty_row(rows_pty_t *p)
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, rows_pty_last(p));

    if (p->events.len == 0) {
        return SQLITE_OK;
    }

    if (p->op->term_failed) {
        p->events.len = 0;
        return SQLITE_OK;
    }

    if (sb_buf_add_c(&p->events, ']') != SB_OK) {
        return SQLITE_NOMEM;
    }

    st = store_stmt(p->db, ROWS_TERMINAL_ADD, "insert into gateway_terminal("
                    "event_id, n, at, events) values(?1, ?2, ?3, '[' || ?4)");

    if (st == NULL) {
        rc = sqlite3_errcode(p->db->db);

    } else {
        store_bind_id(st, 1, p->op->id);
        sqlite3_bind_int64(st, 2, p->op->term_n);
        store_bind_time(st, 3, p->at_us);
        store_bind_text(st, 4, sb_str(p->events.data, p->events.len));
        rc = store_run(st);
    }

    if (rc == SQLITE_OK) {
        rc = rows_pty_chain(p);
    }

    p->op->term_n++;
    p->events.len = 0;

    return rows_pty_failed(p, rc);
}


/* Room for one more event. */
static int
rows_pty_room(rows_pty_t *p, uint64_t cursor)
{
    int  rc;

    p->cursor = cursor;

    if (p->events.len > ROWS_PTY_MAX) {
        rows_try(rc, rows_pty_row(p));
    }

    return SQLITE_OK;
}


static int
rows_pty_numbers(rows_pty_t *p, char code, int64_t a, int64_t b,
    uint64_t at_us)
{
    int  rc;

    rows_try(rc, rows_pty_last(p));

    if (rows_pty_begin(p, at_us, code) != SB_OK
        || sb_buf_printf(&p->events, ",%lld,%lld]", (long long) a,
                         (long long) b) != SB_OK)
    {
        return SQLITE_NOMEM;
    }

    return SQLITE_OK;
}


static int
rows_pty_text(rows_pty_t *p, char code, sb_str_t text, uint64_t at_us)
{
    int  rc;

    rows_try(rc, rows_pty_last(p));

    if (rows_pty_begin(p, at_us, code) != SB_OK
        || sb_buf_add_c(&p->events, ',') != SB_OK
        || sb_json_write_str(&p->events, text) != SB_OK
        || sb_buf_add_c(&p->events, ']') != SB_OK)
    {
        return SQLITE_NOMEM;
    }

    return SQLITE_OK;
}


/* A piece that may belong to the event before it. */
static int
rows_pty_grow(rows_pty_t *p, char code, int64_t offset, int64_t n,
    int64_t fresh, uint64_t at_us)
{
    int  rc;

    if (p->last.code != code || at_us > p->last.at_us + ROWS_RUN_US
        || (code == ROWS_PTY_REPLAY
            && offset != p->last.offset + p->last.n))
    {
        rows_try(rc, rows_pty_last(p));

        p->last.code = code;
        p->last.at_us = at_us;
        p->last.offset = offset;
        p->last.n = 0;
        p->last.fresh = 0;
    }

    p->last.n += n;
    p->last.fresh += fresh;

    return SQLITE_OK;
}


/* Up to where is the session's output on record? */
static int
rows_pty_known(rows_pty_t *p)
{
    int            rc;
    sqlite3_stmt  *st;

    if (p->known >= 0) {
        return SQLITE_OK;
    }

    p->known = 0;

    st = store_stmt(p->db, ROWS_TERMINAL_KNOWN, "select max(recorded_to) from"
                    " gateway_terminals where session = (select session from"
                    " gateway_terminals where event_id = ?1)");
    if (st == NULL) {
        return rows_pty_failed(p, sqlite3_errcode(p->db->db));
    }

    store_bind_id(st, 1, p->op->id);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        p->known = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }

    (void) sqlite3_reset(st);

    if (p->op->term_to > p->known) {
        p->known = p->op->term_to;
    }

    return rc;
}


/* Everything up to `to` is on record, or known to be missing. */
static void
rows_pty_to(rows_pty_t *p, int64_t to)
{
    if (to > p->op->term_to) {
        p->op->term_to = to;
    }

    if (to > p->known) {
        p->known = to;
    }

    p->changed = true;
}


int
rows_pty_output(rows_pty_t *p, int stream, uint64_t at, size_t n,
    uint64_t at_us, uint64_t cursor)
{
    int      rc;
    int64_t  from;

    rows_try(rc, rows_pty_room(p, cursor));

    if (p->op->term_base < 0) {
        /* nothing was sent again: it goes on where the record ends, for who
         * asked for no more may ask for anything */
        rows_try(rc, rows_pty_known(p));
        p->op->term_base = p->known;
        p->op->term_to = p->known;
    }

    from = p->op->term_base + (int64_t) at;

    if (from > p->op->term_to) {
        /* lost on its way, or beyond the capture limit for a while */
        rows_try(rc, rows_pty_numbers(p, ROWS_PTY_HOLE, p->op->term_to, from,
                                      at_us));
    }

    rows_pty_to(p, from + (int64_t) n);

    return rows_pty_grow(p, stream ? ROWS_PTY_STDERR : ROWS_PTY_STDOUT, 0,
                         (int64_t) n, 0, at_us);
}


int
rows_pty_replay(rows_pty_t *p, uint64_t offset, sb_str_t *data,
    uint64_t at_us, uint64_t cursor)
{
    int      rc;
    int64_t  from, to, skip;

    rows_try(rc, rows_pty_room(p, cursor));
    rows_try(rc, rows_pty_known(p));

    if (offset > INT64_MAX / 2) {
        /* no offset that execd could have come to */
        data->len = 0;
        return SQLITE_OK;
    }

    from = (int64_t) offset;
    to = from + (int64_t) data->len;

    if (from > p->known) {
        rows_try(rc, rows_pty_numbers(p, ROWS_PTY_HOLE, p->known, from,
                                      at_us));
    }

    skip = p->known > from ? p->known - from : 0;

    if (skip > (int64_t) data->len) {
        skip = (int64_t) data->len;
    }

    rows_try(rc, rows_pty_grow(p, ROWS_PTY_REPLAY, from, (int64_t) data->len,
                               (int64_t) data->len - skip, at_us));

    data->data += skip;
    data->len -= (size_t) skip;

    p->op->term_base = to;
    rows_pty_to(p, to);

    return SQLITE_OK;
}


int
rows_pty_input(rows_pty_t *p, sb_str_t data, uint64_t at_us, uint64_t cursor)
{
    int  rc;

    rows_try(rc, rows_pty_room(p, cursor));

    return rows_pty_text(p, ROWS_PTY_INPUT, data, at_us);
}


/* The row of this opening. */
static int
rows_pty_attach(rows_pty_t *p, sb_str_t session)
{
    sqlite3_stmt  *st;

    p->op->term = true;

    st = store_stmt(p->db, ROWS_TERMINAL_NEW, "insert or ignore into"
                    " gateway_terminals(event_id, session) values(?1, ?2)");

    if (st == NULL) {
        return rows_pty_failed(p, sqlite3_errcode(p->db->db));
    }

    store_bind_id(st, 1, p->op->id);
    store_bind_text(st, 2, session);

    return rows_pty_failed(p, store_run(st));
}


int
rows_pty_note(rows_pty_t *p, sb_str_t data, uint64_t at_us, uint64_t cursor)
{
    int            rc;
    char           what;
    sqlite3_stmt  *st;

    if (data.len == 0) {
        return SQLITE_OK;
    }

    rows_try(rc, rows_pty_room(p, cursor));

    what = *data.data++;
    data.len--;

    switch (what) {

    case SB_PTY_ATTACH:
        return rows_pty_attach(p, data);

    case SB_PTY_MODE:
        st = store_stmt(p->db, ROWS_TERMINAL_MODE, "update gateway_terminals"
                        " set mode = ?2 where event_id = ?1");

        if (st == NULL) {
            return rows_pty_failed(p, sqlite3_errcode(p->db->db));
        }

        store_bind_id(st, 1, p->op->id);
        store_bind_text(st, 2, data);
        return rows_pty_failed(p, store_run(st));

    case SB_PTY_FAULT:
        /* "e" is stderr there */
        what = 'f';

        /* fall through */

    case SB_PTY_RESIZE:
    case SB_PTY_SIGNAL:
    case SB_PTY_EXIT:
    case SB_PTY_COMMAND:
        return rows_pty_text(p, what, data, at_us);

    default:
        /* of a later version */
        return SQLITE_OK;
    }
}


void
rows_pty_init(rows_pty_t *p, store_db_t *db, rows_op_t *op)
{
    memset(p, 0, sizeof(rows_pty_t));
    p->db = db;
    p->op = op;
    p->known = -1;
    p->events.max = SB_FRAME_MAX;
}


int
rows_pty_done(rows_pty_t *p)
{
    int            rc;
    sqlite3_stmt  *st;

    rows_try(rc, rows_pty_row(p));

    if (!p->changed) {
        return SQLITE_OK;
    }

    st = store_stmt(p->db, ROWS_TERMINAL_SET, "update gateway_terminals set"
                    " base = ?2, recorded_to = ?3 where event_id = ?1");

    if (st == NULL) {
        return rows_pty_failed(p, sqlite3_errcode(p->db->db));
    }

    store_bind_id(st, 1, p->op->id);
    sqlite3_bind_int64(st, 2, p->op->term_base);
    sqlite3_bind_int64(st, 3, p->op->term_to);

    return rows_pty_failed(p, store_run(st));
}


void
rows_pty_free(rows_pty_t *p)
{
    sb_buf_free(&p->events);
}


bool
rows_pty_frame(const sb_frame_t *f)
{
    uint16_t  tag;
    sb_str_t  fields, v;

    if (f->type != SB_F_OUTPUT) {
        return false;
    }

    fields = f->fields;

    while (sb_field_next(&fields, &tag, &v)) {
        if (tag == SB_T_STREAM && sb_value_u64(v, 0) > 1) {
            return true;
        }
    }

    return false;
}


int
rows_pty_load(store_db_t *db, rows_op_t *op)
{
    int            rc;
    sqlite3_stmt  *st;

    op->term = false;
    op->term_n = 0;
    op->term_base = -1;
    op->term_to = 0;

    st = store_stmt(db, ROWS_TERMINAL_GET, "select base, recorded_to,"
                    " (select max(n) + 1 from gateway_terminal t where"
                    " t.event_id = s.event_id) from gateway_terminals s where"
                    " event_id = ?1");

    if (st == NULL) {
        rc = sqlite3_errcode(db->db);

        /* a file of an earlier version */
        return rc == SQLITE_ERROR ? SQLITE_OK : rc;
    }

    store_bind_id(st, 1, op->id);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        op->term = true;
        op->term_base = sqlite3_column_type(st, 0) == SQLITE_NULL
                        ? -1 : sqlite3_column_int64(st, 0);
        op->term_to = sqlite3_column_int64(st, 1);
        op->term_n = sqlite3_column_int64(st, 2);
        rc = SQLITE_DONE;
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
