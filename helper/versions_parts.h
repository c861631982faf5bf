/* Pieces of files: among the records at hand, and those kept in gateway_parts
 * until their operation ends; parts of versions.c. */

#ifndef VERSIONS_PARTS_H_INCLUDED
#define VERSIONS_PARTS_H_INCLUDED

#include "facts.h"
#include "rows.h"

/* A piece among the records at hand. */
typedef struct {
    uint64_t  n;
    uint64_t  kind;
    uint64_t  offset;
    size_t    order;
    sb_str_t  data;
} versions_piece_t;

/* Those of one operation. */
typedef struct {
    versions_piece_t  *pieces;
    size_t             npieces, apieces;
    bool               stored;      /* some stand in gateway_parts */
} versions_parts_t;

/* The pieces among the records, in order; their data stays where it is.  An
 * SQLite code; versions_parts_free() in any case. */
int versions_parts_collect(versions_parts_t *v, const rows_record_t *first);
void versions_parts_free(versions_parts_t *v);

typedef enum {
    VERSIONS_PARTS_NONE = 0,        /* nothing has come */
    VERSIONS_PARTS_HOLE,
    VERSIONS_PARTS_WHOLE
} versions_parts_e;

/* Puts together what has come of file n of the operation; an SQLite code. */
int versions_parts_gather(const versions_parts_t *v, store_db_t *db,
    const uint8_t id[16], int64_t n, sb_content_e kind, sb_buf_t *out,
    versions_parts_e *state);

/* Keeps the pieces among the records of an operation that goes on. */
int versions_parts_keep(store_db_t *db, rows_op_t *op,
    const rows_record_t *first);

#endif /* VERSIONS_PARTS_H_INCLUDED */
