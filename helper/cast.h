/*
 * Recordings as asciicast, version 2 or 3: of a terminal all that is on record,
 * of a command its output with its times (both streams; LF becomes CR LF, as a
 * terminal would have made it).  Made piece by piece: between two calls nothing
 * of the database is held.
 */

#ifndef CAST_H_INCLUDED
#define CAST_H_INCLUDED

#include "history_pieces.h"

typedef struct {
    /* set by the caller before cast_begin() */
    int               version;      /* 2 or 3 */
    int64_t           idle_us;      /* longer pauses become as long; 0: none do */

    /* inside */
    char              id[256];
    bool              terminal;
    bool              cooked;       /* LF becomes CR LF */
    bool              done;
    int64_t           start_us;     /* of the operation */
    int64_t           last_us;      /* of the event before, as it was */
    int64_t           shown_us;     /* ... as it is told, since the start */
    int64_t           told_us;      /* ... in the file, rounded (version 3) */
    int64_t           row;          /* of gateway_terminal, the next */
    int64_t           exit_code;
    int64_t           end_us;       /* -1: has not ended */
    bool              has_exit;     /* exit_code is known */
    bool              exit_told;

    struct {
        history_pieces_t  page;
        size_t            piece;        /* in the page */
        const char       *at;           /* in its bytes */
        size_t            left;         /* of the piece */
        int64_t           after;
        char              carry[4];     /* the beginning of a character */
        size_t            ncarry;
    }                 stream[2];
    sb_buf_t          text;
} cast_t;

/*
 * Writes the head of a recording to `out`; *found tells whether there is such
 * an operation.  False with err.  Zero-initialise c; cast_free() in any case.
 */
bool cast_begin(cast_t *c, sqlite3 *db, const char *id, sb_buf_t *out,
    bool *found, history_error_t *err);
/* Appends some more; 1: there may be more, 0: that was all, -1 with err. */
int cast_next(cast_t *c, sqlite3 *db, sb_buf_t *out, history_error_t *err);
void cast_free(cast_t *c);

#endif /* CAST_H_INCLUDED */
