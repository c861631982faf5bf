#include "cast.h"

#include "id.h"
#include "rows_pty.h"
#include "terminal.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>


#define CAST_COLS    80
#define CAST_ROWS    24
#define CAST_SIZE    9999           /* of a column or row number */
#define CAST_LINE    (32 * 1024)    /* bytes of output in one event */
#define CAST_EVENTS  (1024 * 1024)  /* of a row of gateway_terminal */

static const char  *cast_streams[] = { "stdout", "stderr" };


static bool
cast_memory(sb_rc_t rc, history_error_t *err)
{
    if (rc == SB_OK) {
        return true;
    }

    history_error(err, "MemoryError", "out of memory");

    return false;
}


/* --- the head --------------------------------------------------------------- */

static int64_t
cast_time(sb_str_t text)
{
    uint64_t  us;

    return sb_time_parse(&us, text) == SB_OK ? (int64_t) us : -1;
}


static bool
cast_size(sb_str_t text, int *cols, int *rows)
{
    char  s[32];
    int   x, y;

    if (text.len >= sizeof(s)) {
        return false;
    }

    memcpy(s, text.data, text.len);
    s[text.len] = '\0';

    if (sscanf(s, "%5dx%5d", &x, &y) != 2 || x < 1 || y < 1 || x > CAST_SIZE
        || y > CAST_SIZE)
    {
        return false;
    }

    *cols = x;
    *rows = y;

    return true;
}


/* The size that a terminal had when its output began. */
static bool
cast_first_size(sqlite3 *db, const char *id, int *cols, int *rows,
    history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *st;

    st = history_prepare(db, "select json_extract(j.value, '$[2]') from"
                         " gateway_terminal t, json_each(t.events) j"
                         " where t.event_id = ?1 and t.n = 0"
                         " and json_extract(j.value, '$[1]') = 'r'"
                         " and j.key < (select ifnull(min(k.key), 1e9) from"
                         " json_each(t.events) k where"
                         " json_extract(k.value, '$[1]') in ('o', 'e', 'p'))"
                         " order by j.key desc limit 1", err);
    if (st == NULL) {
        return false;
    }

    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    rc = history_step(st, err);

    if (rc == 1) {
        (void) cast_size(history_column(st, 0), cols, rows);
    }

    sqlite3_finalize(st);

    return rc != -1;
}


static sb_rc_t
cast_head(const cast_t *c, sb_str_t title, int cols, int rows, sb_buf_t *out)
{
    sb_rc_t  rc;

    if (c->version == 3) {
        rc = sb_buf_printf(out, "{\"version\":3,\"term\":{\"cols\":%d,"
                           "\"rows\":%d,\"type\":\"xterm-256color\"}", cols,
                           rows);

    } else {
        rc = sb_buf_printf(out, "{\"version\":2,\"width\":%d,\"height\":%d",
                           cols, rows);
    }

    if (rc == SB_OK) {
        rc = sb_buf_printf(out, ",\"timestamp\":%lld",
                           (long long) (c->start_us / 1000000));
    }

    if (rc == SB_OK && title.len) {
        rc = sb_buf_printf(out, ",\"title\":");
        rc = rc == SB_OK ? sb_json_write_str(out, title) : rc;
    }

    if (rc == SB_OK && c->version == 2) {
        rc = sb_buf_printf(out, ",\"env\":{\"TERM\":\"xterm-256color\"}");
    }

    return rc == SB_OK ? sb_buf_printf(out, "}\n") : rc;
}


bool
cast_begin(cast_t *c, sqlite3 *db, const char *id, sb_buf_t *out, bool *found,
    history_error_t *err)
{
    int            rc, cols, rows;
    bool           ok;
    sb_str_t       mode;
    sqlite3_stmt  *st;

    *found = false;
    c->text.max = CAST_LINE * 8;
    c->stream[0].after = -1;
    c->stream[1].after = -1;
    (void) snprintf(c->id, sizeof(c->id), "%s", id);

    st = history_prepare(db, "select e.occurred_at, e.completed_at,"
                         " coalesce(c.command, e.operation_type), c.exit_code,"
                         " s.event_id is not null, s.mode"
                         " from history_events e"
                         " left join command_executions c using (event_id)"
                         " left join gateway_terminals s using (event_id)"
                         " where e.event_id = ?1", err);
    if (st == NULL) {
        return false;
    }

    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    rc = history_step(st, err);
    ok = rc != -1;

    if (rc == 1) {
        *found = true;
        c->start_us = cast_time(history_column(st, 0));
        c->end_us = cast_time(history_column(st, 1));
        c->has_exit = sqlite3_column_type(st, 3) != SQLITE_NULL;
        c->exit_code = sqlite3_column_int64(st, 3);
        c->terminal = sqlite3_column_int(st, 4) != 0;
        mode = history_column(st, 5);
        c->cooked = !c->terminal || sb_eq(mode, sb_lit("pipe"));
        c->last_us = c->start_us;

        cols = CAST_COLS;
        rows = CAST_ROWS;

        ok = (!c->terminal || cast_first_size(db, id, &cols, &rows, err))
             && cast_memory(cast_head(c, history_column(st, 2), cols, rows,
                                      out), err);
    }

    sqlite3_finalize(st);

    return ok;
}


/* --- events ----------------------------------------------------------------- */

/* Begins an event: its time and code. */
static sb_rc_t
cast_event(cast_t *c, int64_t at_us, char code, sb_buf_t *out)
{
    int64_t  pause, us;

    pause = at_us > c->last_us ? at_us - c->last_us : 0;
    c->last_us = at_us > c->last_us ? at_us : c->last_us;

    if (c->idle_us && pause > c->idle_us) {
        pause = c->idle_us;
    }

    c->shown_us += pause;
    us = c->version == 3 ? c->shown_us - c->told_us : c->shown_us;
    c->told_us = c->shown_us;

    return sb_buf_printf(out, "[%lld.%06lld,\"%c\",",
                         (long long) (us / 1000000),
                         (long long) (us % 1000000), code);
}


static sb_rc_t
cast_text(cast_t *c, int64_t at_us, char code, sb_str_t text, sb_buf_t *out)
{
    sb_rc_t  rc;

    rc = cast_event(c, at_us, code, out);
    rc = rc == SB_OK ? sb_json_write_str(out, text) : rc;

    return rc == SB_OK ? sb_buf_add_str(out, sb_lit("]\n")) : rc;
}


/* Bytes at the end that may be the beginning of a character. */
static size_t
cast_tail(sb_str_t s)
{
    size_t         n, need;
    unsigned char  c;

    for (n = 1; n <= 3 && n <= s.len; n++) {
        c = (unsigned char) s.data[s.len - n];

        if ((c & 0xc0) == 0x80) {
            continue;
        }

        need = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;

        return c >= 0xf5 || need <= n ? 0 : n;
    }

    return 0;
}


/* Output: characters that were cut between two pieces are put together. */
static sb_rc_t
cast_output(cast_t *c, unsigned stream, int64_t at_us, sb_str_t bytes,
    sb_buf_t *out)
{
    size_t    i, from;
    sb_rc_t   rc;
    sb_buf_t *b;

    b = &c->text;
    b->len = 0;

    rc = sb_buf_add(b, c->stream[stream].carry, c->stream[stream].ncarry);
    c->stream[stream].ncarry = 0;

    for (i = 0, from = 0; c->cooked && i < bytes.len && rc == SB_OK; i++) {

        if (bytes.data[i] == '\n') {
            rc = sb_buf_add(b, bytes.data + from, i - from);
            rc = rc == SB_OK ? sb_buf_add_str(b, sb_lit("\r\n")) : rc;
            from = i + 1;
        }
    }

    rc = rc == SB_OK ? sb_buf_add(b, bytes.data + from, bytes.len - from) : rc;

    if (rc != SB_OK) {
        return rc;
    }

    i = cast_tail(sb_str(b->data, b->len));
    b->len -= i;
    memcpy(c->stream[stream].carry, b->data + b->len, i);
    c->stream[stream].ncarry = i;

    return b->len ? cast_text(c, at_us, 'o', sb_str(b->data, b->len), out)
                  : SB_OK;
}


/* What was carried is no character after all. */
static sb_rc_t
cast_carried(cast_t *c, int64_t at_us, sb_buf_t *out)
{
    sb_rc_t   rc;
    unsigned  i;

    for (i = 0; i < 2; i++) {

        if (c->stream[i].ncarry == 0) {
            continue;
        }

        rc = cast_text(c, at_us, 'o', sb_str(c->stream[i].carry,
                                             c->stream[i].ncarry), out);
        c->stream[i].ncarry = 0;

        if (rc != SB_OK) {
            return rc;
        }
    }

    return SB_OK;
}


/* The next bytes of a stream, at most n; none: they are not on record.  False
 * with err. */
static bool
cast_bytes(cast_t *c, sqlite3 *db, unsigned stream, size_t n, sb_str_t *bytes,
    history_error_t *err)
{
    history_pieces_t  *p;
    history_piece_t   *piece;

    p = &c->stream[stream].page;

    while (c->stream[stream].left == 0) {

        if (c->stream[stream].piece == p->n) {

            if (p->last) {
                bytes->len = 0;
                return true;
            }

            if (!history_pieces_read(p, db, c->id, cast_streams[stream],
                                     c->stream[stream].after, err))
            {
                return false;
            }

            c->stream[stream].piece = 0;
            c->stream[stream].at = p->bytes.data;

            if (p->n == 0) {
                p->last = true;
            }

            continue;
        }

        piece = &p->pieces[c->stream[stream].piece++];
        c->stream[stream].left = piece->len;
        c->stream[stream].after = piece->n;
    }

    n = n < c->stream[stream].left ? n : c->stream[stream].left;

    *bytes = sb_str(c->stream[stream].at, n);
    c->stream[stream].at += n;
    c->stream[stream].left -= n;

    return true;
}


static bool
cast_bytes_out(cast_t *c, sqlite3 *db, unsigned stream, int64_t n,
    int64_t at_us, sb_buf_t *out, history_error_t *err)
{
    sb_str_t  bytes;

    while (n > 0) {

        if (!cast_bytes(c, db, stream, n < CAST_LINE ? (size_t) n : CAST_LINE,
                        &bytes, err))
        {
            return false;
        }

        if (bytes.len == 0) {
            break;
        }

        if (!cast_memory(cast_output(c, stream, at_us, bytes, out), err)) {
            return false;
        }

        n -= (int64_t) bytes.len;
    }

    return true;
}


static int64_t
cast_number(const sb_jv_t *v)
{
    int64_t  n;

    return v && sb_jv_int(v, &n) ? n : 0;
}


/* One event of a terminal: [time, code, ...]. */
static bool
cast_terminal_event(cast_t *c, sqlite3 *db, int64_t row_us, const sb_jv_t *v,
    sb_buf_t *out, history_error_t *err)
{
    int             cols, rows;
    char            text[128], code;
    int64_t         at_us;
    sb_rc_t         rc;
    sb_str_t        what;
    const sb_jv_t  *arg;

    if (v->kind != SB_JSON_OPEN_ARRAY || v->child == NULL
        || v->child->next == NULL || v->child->next->next == NULL)
    {
        return true;
    }

    at_us = row_us + cast_number(v->child);
    code = v->child->next->text.len == 1 ? *v->child->next->text.data : '\0';
    arg = v->child->next->next;
    what = arg->kind == SB_JSON_STRING ? arg->text : sb_str("", 0);
    rc = SB_OK;

    switch (code) {

    case ROWS_PTY_STDOUT:
    case ROWS_PTY_STDERR:
        return cast_bytes_out(c, db, code == ROWS_PTY_STDERR, cast_number(arg),
                              at_us, out, err);

    case ROWS_PTY_REPLAY:
        return cast_bytes_out(c, db, 0, arg->next && arg->next->next
                                        ? cast_number(arg->next->next) : 0,
                              at_us, out, err);

    case ROWS_PTY_HOLE:
        (void) snprintf(text, sizeof(text), "not recorded: %lld bytes",
                        (long long) (arg->next ? cast_number(arg->next)
                                                 - cast_number(arg) : 0));
        rc = cast_text(c, at_us, 'm', sb_str(text, strlen(text)), out);
        break;

    case ROWS_PTY_INPUT:
        rc = cast_text(c, at_us, 'i', what, out);
        break;

    case SB_PTY_COMMAND:
        c->text.len = 0;
        rc = sb_buf_add_str(&c->text, sb_lit("derived: "));
        rc = rc == SB_OK ? sb_buf_add_str(&c->text, what) : rc;
        rc = rc == SB_OK ? cast_text(c, at_us, 'm',
                                     sb_str(c->text.data, c->text.len), out)
                         : rc;
        break;

    case SB_PTY_RESIZE:
        if (cast_size(what, &cols, &rows)) {
            rc = cast_text(c, at_us, 'r', what, out);
        }

        break;

    case SB_PTY_EXIT:
        rc = cast_carried(c, at_us, out);

        if (c->version == 3 && rc == SB_OK) {
            rc = cast_text(c, at_us, 'x', what, out);
        }

        c->exit_told = true;
        break;

    default:
        break;
    }

    return cast_memory(rc, err);
}


/* A row of a terminal's events. */
static int
cast_terminal(cast_t *c, sqlite3 *db, sb_buf_t *out, history_error_t *err)
{
    int             rc;
    bool            ok;
    int64_t         row_us;
    sb_jdoc_t      *doc;
    sqlite3_stmt   *st;
    const sb_jv_t  *v;

    static const sb_json_limits_t  limits = { 4, CAST_EVENTS };

    st = history_prepare(db, "select n, at, events from gateway_terminal"
                         " where event_id = ?1 and n >= ?2 order by n limit 1",
                         err);
    if (st == NULL) {
        return -1;
    }

    sqlite3_bind_text(st, 1, c->id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, c->row);
    rc = history_step(st, err);

    if (rc == 1) {
        c->row = sqlite3_column_int64(st, 0) + 1;
        row_us = cast_time(history_column(st, 1));
        doc = sb_jdoc_parse(history_column(st, 2), &limits, NULL);
        ok = true;

        if (doc && sb_jdoc_root(doc)->kind == SB_JSON_OPEN_ARRAY) {
            for (v = sb_jdoc_root(doc)->child; v && ok; v = v->next) {
                ok = cast_terminal_event(c, db, row_us, v, out, err);
            }
        }

        sb_jdoc_free(doc);
        rc = ok ? 1 : -1;
    }

    sqlite3_finalize(st);

    return rc;
}


/* A page of a command's output. */
static int
cast_command(cast_t *c, sqlite3 *db, sb_buf_t *out, history_error_t *err)
{
    size_t             i, n, k;
    int64_t            at_us;
    const char        *bytes;
    history_piece_t   *piece;
    history_pieces_t  *p;

    p = &c->stream[0].page;

    if (p->last) {
        return 0;
    }

    if (!history_pieces_read(p, db, c->id, NULL, c->stream[0].after, err)) {
        return -1;
    }

    bytes = p->bytes.data;

    for (i = 0; i < p->n; i++) {
        piece = &p->pieces[i];
        c->stream[0].after = piece->n;

        if (!piece->plain) {
            bytes += piece->len;
            continue;
        }

        at_us = piece->at_us < 0 ? c->last_us : piece->at_us;

        for (n = piece->len; n; n -= k, bytes += k) {
            k = n < CAST_LINE ? n : CAST_LINE;

            if (!cast_memory(cast_output(c, piece->is_stderr, at_us,
                                         sb_str(bytes, k), out), err))
            {
                return -1;
            }
        }
    }

    return p->n && !p->last;
}


int
cast_next(cast_t *c, sqlite3 *db, sb_buf_t *out, history_error_t *err)
{
    int      rc;
    char     text[32];
    int64_t  at_us;
    sb_rc_t  w;

    if (c->done) {
        return 0;
    }

    rc = c->terminal ? cast_terminal(c, db, out, err)
                     : cast_command(c, db, out, err);

    if (rc != 0) {
        return rc;
    }

    c->done = true;
    at_us = c->end_us > 0 ? c->end_us : c->last_us;
    w = cast_carried(c, at_us, out);

    if (w == SB_OK && c->version == 3 && c->has_exit && !c->exit_told) {
        (void) snprintf(text, sizeof(text), "%lld", (long long) c->exit_code);
        w = cast_text(c, at_us, 'x', sb_str(text, strlen(text)), out);
    }

    return cast_memory(w, err) ? 0 : -1;
}


void
cast_free(cast_t *c)
{
    history_pieces_free(&c->stream[0].page);
    history_pieces_free(&c->stream[1].page);
    sb_buf_free(&c->text);
}
