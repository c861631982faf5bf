/*
 * How far the history is without holes.  Cursors are applied in their order, but
 * for two: records of a file that cannot be written now wait, and those of all
 * others pass them; and a poll has its row only when its end shows that it is not
 * folded.  Who reads on behind a cursor must not pass what comes in front of it
 * later.
 *
 * The applying thread tells it, before STATS_APPLIED_CURSOR says more; the index
 * takes it over with what it reads.
 */

#ifndef SETTLED_H_INCLUDED
#define SETTLED_H_INCLUDED

#include "store.h"

/* Files of whom it is known; of more, each counts for all. */
#define SETTLED_FILES  32

typedef struct {
    char      dir[STORE_DIR_LEN];
    uint64_t  cursor;           /* everything up to it is in the file */
} settled_file_t;

typedef struct {
    uint64_t        polls;      /* everything up to it is, or waits for a file */
    uint64_t        all;        /* the least of the files; UINT64_MAX: none
                                   waits */
    unsigned        n;
    bool            more;
    settled_file_t  files[SETTLED_FILES];
} settled_t;

/* Nothing waits. */
void settled_init(settled_t *s);
/* A record of that file waits, and everything up to `cursor` does not. */
void settled_add(settled_t *s, const char *dir, uint64_t cursor);
/* The same of a poll without a row. */
void settled_add_poll(settled_t *s, uint64_t cursor);

/* Up to which cursor no record waits for the file (NULL: for any), or for that
 * of _gateway, where its records may be yet. */
uint64_t settled_files(const settled_t *s, const char *dir);
/* The same, for who reads on behind it: polls too. */
uint64_t settled_to(const settled_t *s, const char *dir);

/* What the process knows of it; any thread. */
void settled_put(const settled_t *s);
void settled_get(settled_t *s);

#endif /* SETTLED_H_INCLUDED */
