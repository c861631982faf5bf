/*
 * What the journal tells of an operation -> its record as listed, before it
 * is in a history file.  Nothing here writes JSON of its own for a record: the
 * values are put into a row as history_query_record() gives it, and
 * history_record.c writes that.
 */

#ifndef LIVE_ROW_H_INCLUDED
#define LIVE_ROW_H_INCLUDED

#include "history_filter.h"
#include "history_query.h"
#include "journal.h"
#include "reader.h"
#include "rows.h"
#include "table.h"

/* Frames that are kept of one operation: over it a record is partial. */
#define LIVE_OP_MAX  (1024 * 1024 * 4)

typedef struct {
    table_node_t     node;
    uint8_t          id[16];
    uint64_t         cursor;        /* of its BEGIN; 0: not seen */
    char            *sandbox;       /* NULL: _gateway */
    sb_buf_t         frames;        /* BEGIN, FACTS, END with DETACHED */
    bool             fold;          /* a poll that may be folded */
    bool             partial;       /* some of it is missing */
    bool             looked;        /* in its history file */
    int64_t          pieces;        /* of output */
    int64_t          bytes[2];
    uint64_t         used;          /* time of the last record */
    struct live_event_s  *facts;    /* what filters look at, until more is
                                       known of it; or NULL */
    sqlite3_value  **base;          /* HR_COUNT values out of its file, when
                                       its BEGIN is not in reach; or NULL */
} live_op_t;

typedef struct live_row_s  live_row_t;

/* `readers` reads history files, for operations whose beginning
 * is not in the journal any more.  NULL without memory. */
live_row_t *live_row_new(readers_t *readers);
void live_row_free(live_row_t *r);

/* Takes a record in; false when there is no memory for it. */
bool live_op_add(live_op_t *op, const sb_frame_t *f, const char *raw);
/* The sandbox that a frame names is that of the operation. */
void live_op_sandbox(live_op_t *op, const sb_frame_t *f);
void live_op_clear(live_op_t *op);

/*
 * Appends the members of the record to `out` and fills what filters look at,
 * whose texts are valid until the next call.  `end`: its END has been added.
 */
bool live_row_write(live_row_t *r, live_op_t *op, const journal_record_t *end,
    sb_out_t *out, history_filter_facts_t *facts);

/* Only what filters look at. */
bool live_row_facts(live_row_t *r, live_op_t *op,
    history_filter_facts_t *facts);

#endif /* LIVE_ROW_H_INCLUDED */
