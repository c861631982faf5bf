/* The end of an operation and its side rows; parts of rows.c. */

#ifndef ROWS_END_H_INCLUDED
#define ROWS_END_H_INCLUDED

#include "facts.h"
#include "operation.h"
#include "rows.h"

typedef struct {
    sb_str_t     status;
    char         status_text[16];
    uint64_t     at_us;
    int64_t      duration_ms;
    sb_str_t     result;            /* data is NULL: no result */
    sb_buf_t     buf;               /* ... stands here */

    int64_t      bytes[2];          /* output of this batch, not yet counted
                                       in the operation */
    int64_t      unkept;            /* of it, because the file is full */
    bool         cut;               /* some was not kept before */
    bool         command;           /* has a command_executions row */
    bool         detached;          /* its request was over before it */
    bool         complete;          /* of its output */
    const char  *storage;           /* history_storage_state */

    /* what was known before this batch */
    int64_t      http_status, bytes_in, bytes_out;      /* -1: unknown */
    char        *type;
    char        *base;              /* result of the detached request */
    char        *reason;            /* ... and its reason */
} rows_end_t;

/* The operation's row of lib's table, or NULL. */
const sb_op_t *rows_known(sb_str_t type);
/* Status that an END states, "unknown" when it is none of the format's. */
sb_str_t rows_status(const facts_t *t);
/* request_json. */
sb_str_t rows_request(const facts_t *t);
/* change_type of a file operation: "write" of "file.write", "list" of
 * "isolated.dir.list". */
sb_str_t rows_change_type(sb_str_t type);
/* Did upstream answer in a way that shows nothing of the sandbox (404 ...)? */
bool rows_refused(const facts_t *t);

void rows_count_output(rows_end_t *end, const sb_frame_t *f);

/* Reads everything about the end; `begin` is NULL when it is in the file.
 * The caller frees `end` in any case. */
int rows_end_read(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *begin, const rows_record_t *last, rows_end_t *end);
void rows_end_free(rows_end_t *end);

/* Ends the event's row, once. */
int rows_end_write(store_db_t *db, rows_op_t *op, const rows_end_t *end);
/* Its change row, and that of a detached command; `rows` as in rows_output(). */
int rows_completed(store_db_t *db, rows_op_t *op, const rows_end_t *end,
    const chain_rows_t *rows);

/* Command and file rows, of a new event and of one that is in the file; `end`
 * may be NULL.  `rows` is told where they are queued. */
void rows_insert_side(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end, chain_rows_t *rows);
int rows_side(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_end_t *end);

int rows_detach(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *first);
int rows_unhold(store_db_t *db, rows_op_t *op);

/* --- rows_fold.c ---------------------------------------------------------- */

/* May an operation be counted instead of having a row? */
bool rows_foldable(const rows_op_t *op, const rows_record_t *begin);
/* Fills the key of its group. */
void rows_fold_key(store_fold_t *f, const facts_t *t);
/* The group's newest row at the end of the history, or NULL; not `ended`: the
 * row of any code will do. */
store_fold_t *rows_fold_find(store_db_t *db, const store_fold_t *key,
    bool ended);
/* The operation has the group's newest row now. */
void rows_fold_remember(store_db_t *db, rows_op_t *op,
    const store_fold_t *key, const char *status);
/* It has ended: does it have such a row? */
void rows_fold_ended(store_db_t *db, const rows_op_t *op, const facts_t *t,
    const char *status);
/* Counts a poll into a row. */
int rows_fold_count(store_db_t *db, const store_fold_t *f, uint64_t at_us,
    uint64_t cursor);

/* Keeps the frames of a poll until its end shows whether it is counted. */
int rows_pend(store_db_t *db, rows_op_t *op, const rows_record_t *first,
    uint64_t cursor);
/* Puts kept frames before the new ones; *mem owns them, free() it. */
int rows_unpend(store_db_t *db, rows_op_t *op, rows_record_t **first,
    void **mem);
int rows_pending_done(store_db_t *db, rows_op_t *op);

#endif /* ROWS_END_H_INCLUDED */
