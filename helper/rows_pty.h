/* What a terminal did beside its output; a part of rows_output.c. */

#ifndef ROWS_PTY_H_INCLUDED
#define ROWS_PTY_H_INCLUDED

#include "rows.h"

/* Codes of events in gateway_terminal (docs/history.md) beside those of
 * SB_PTY_*. */
#define ROWS_PTY_STDOUT  'o'
#define ROWS_PTY_STDERR  'e'
#define ROWS_PTY_INPUT   'i'
#define ROWS_PTY_REPLAY  'p'
#define ROWS_PTY_HOLE    'h'

/* One batch of records of an open terminal. */
typedef struct {
    store_db_t  *db;
    rows_op_t   *op;
    sb_buf_t     events;        /* JSON, without its brackets */
    uint64_t     at_us;         /* of the first */
    uint64_t     cursor;
    int64_t      known;         /* offset up to which the session's output is
                                   on record; -1: not asked for yet */
    bool         changed;       /* op's numbers have */

    struct {
        char      code;         /* 0: none waits */
        uint64_t  at_us;
        int64_t   offset;
        int64_t   n;
        int64_t   fresh;
    }            last;          /* may grow */
} rows_pty_t;

void rows_pty_init(rows_pty_t *p, store_db_t *db, rows_op_t *op);
/* Writes what is left of it. */
int rows_pty_done(rows_pty_t *p);
void rows_pty_free(rows_pty_t *p);

/* A piece of live output, `at` bytes behind its opening. */
int rows_pty_output(rows_pty_t *p, int stream, uint64_t at, size_t n,
    uint64_t at_us, uint64_t cursor);
/* A piece of a replay: leaves in data what is not on record yet. */
int rows_pty_replay(rows_pty_t *p, uint64_t offset, sb_str_t *data,
    uint64_t at_us, uint64_t cursor);
int rows_pty_input(rows_pty_t *p, sb_str_t data, uint64_t at_us,
    uint64_t cursor);
int rows_pty_note(rows_pty_t *p, sb_str_t data, uint64_t at_us,
    uint64_t cursor);

/* Is the frame of a terminal?  Then what of it is new only the file can tell.
 */
bool rows_pty_frame(const sb_frame_t *f);
/* What the file knows of an open terminal. */
int rows_pty_load(store_db_t *db, rows_op_t *op);

#endif /* ROWS_PTY_H_INCLUDED */
