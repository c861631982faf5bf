/* Records that the index has found, read from their files. */

#ifndef ASK_RECORDS_H_INCLUDED
#define ASK_RECORDS_H_INCLUDED

#include "api.h"
#include "index.h"

#define ASK_ANSWER_BYTES  (1024 * 1024)     /* of one answer; then it is cut
                                               behind a record */

typedef struct {
    size_t    first;        /* of the hits that were taken */
    size_t    taken;        /* of the hits, from that one: written, or gone */
    size_t    written;
    bool      unreadable;   /* some could not be read, or just moved from
                               _gateway into the file of their sandbox */
} ask_records_t;

/*
 * Appends the records of hits as listed, with braces and commas, in the order
 * of the hits; stops behind the one that reaches `most` bytes.  A record that
 * is gone by now is left out.
 */
void ask_records(api_t *api, sb_out_t *out, const index_hit_t *hits,
    size_t n, size_t most, ask_records_t *r);
/* The same of those that end with the last hit: what is too much is left out in
 * front of them. */
void ask_records_last(api_t *api, sb_out_t *out, const index_hit_t *hits,
    size_t n, size_t most, ask_records_t *r);

#endif /* ASK_RECORDS_H_INCLUDED */
