/*
 * What an operation wrote, in pages: a page is read whole and its statement
 * closed before anything of it is used, so that a reader who is slow to take it
 * keeps no snapshot open meanwhile.
 */

#ifndef HISTORY_PIECES_H_INCLUDED
#define HISTORY_PIECES_H_INCLUDED

#include "history_db.h"

#define HISTORY_PIECES       64             /* rows of a page at most */
#define HISTORY_PIECES_MAX   (256 * 1024)   /* bytes, and one row more */

typedef struct {
    int64_t   n;            /* what `after` takes to go on behind it: the chunk
                               of a stream, the run of both; runs that share a
                               row of gateway_output share it */
    size_t    len;
    int64_t   at_us;        /* when its first byte passed; -1: not known */
    bool      is_stderr;
    bool      plain;        /* false: in an encoding that is not read here */
} history_piece_t;

/* Zero-initialise; history_pieces_free(). */
typedef struct {
    sb_buf_t          bytes;        /* of all pieces, one behind the other */
    history_piece_t  *pieces;
    size_t            n;
    size_t            cap;
    int64_t           after;        /* goes on behind this page */
    bool              last;         /* nothing is behind it */

    sb_buf_t          streams[2];   /* of a row with many runs */
} history_pieces_t;

/*
 * The next page of one stream ("stdout", "stderr"), or of both as they came
 * (NULL), behind `after` (-1: from the beginning).  What others stored has no
 * order over both streams but that in which it was stored; its `n` are numbers
 * of rows then.  False with err.
 */
bool history_pieces_read(history_pieces_t *p, sqlite3 *db, const char *id,
    const char *stream, int64_t after, history_error_t *err);
void history_pieces_free(history_pieces_t *p);

/* An item of an answer: n, stream, at, bytes, and `text`, or `data_base64` for
 * what is no UTF-8; with its braces. */
void history_piece_json(sb_out_t *out, const history_piece_t *piece,
    sb_str_t bytes);

#endif /* HISTORY_PIECES_H_INCLUDED */
