/*
 * Files over time: what stood in a file before an operation and what stands in
 * it afterwards, as far as the history can tell, and the difference.
 *
 * What is known of the state before:
 *   history      the newest record of the path says so, and no command has run
 *                since, nor any operation on it at the same time
 *   assumed      the same, but a command ran, or something overlaps: it may have
 *                changed
 *   fetched      it was read from the sandbox before the operation went on
 *   absent       history, with certainty: there was no such file
 *   unavailable  nobody knows
 */

#ifndef VERSIONS_H_INCLUDED
#define VERSIONS_H_INCLUDED

#include "facts.h"
#include "rows.h"

/* The operation has ended and its rows are written or queued: completes those of
 * its files. */
int versions_end(store_db_t *db, rows_op_t *op, const facts_t *t,
    const rows_record_t *first);

#endif /* VERSIONS_H_INCLUDED */
