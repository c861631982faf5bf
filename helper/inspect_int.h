/*
 * What the files of sandbox-inspect share: the program that looks into archives.
 * It is started for one of them, by sandbox-helper, and reads what nobody has
 * judged yet: so it may open nothing and write nothing but its answer.
 */

#ifndef INSPECT_INT_H_INCLUDED
#define INSPECT_INT_H_INCLUDED

#include "inspect.h"
#include "policy_names.h"

#include <sys/types.h>

/* Its descriptors. */
#define INSPECT_QUESTION  0
#define INSPECT_ANSWER    1
#define INSPECT_FILE      3

/* Of a member that may be an archive itself, kept in memory. */
#define INSPECT_NESTED  (128u * 1024 * 1024)

typedef struct inspect_seen_s  inspect_seen_t;

typedef struct {
    uint64_t            size;           /* of the whole archive */
    uint64_t            most[SB_IN_COUNTS];
    sb_policy_names_t  *names;          /* NULL: none */
    uint64_t            seed;           /* of the hashes of names */
    unsigned            rank;           /* of what `why` is about */
    sb_inspect_t        out;
} inspect_t;

/* Bytes that can be read anywhere: a part of a file, or memory. */
typedef struct {
    int          fd;                    /* -1: memory */
    uint64_t     offset;                /* in the file */
    const char  *mem;
    uint64_t     size;
} inspect_blob_t;

/* --- inspect_run.c -------------------------------------------------------- */

/* Looks into it and, as far as bounds allow, into archives in it.  False: it is
 * no archive. */
bool inspect_blob(inspect_t *in, const inspect_blob_t *b, unsigned depth);

/* Puts `found` on record; `why` (static) and the name of the member are kept of
 * the worst. */
void inspect_found(inspect_t *in, unsigned found, const char *why,
    sb_str_t name);
/* A count was raised: is it within its bound?  Else all is over. */
bool inspect_within(inspect_t *in, sb_inspect_count_e count);
/* Bytes of a member were unpacked: the same. */
bool inspect_bytes(inspect_t *in, uint64_t n);

/* --- inspect_names.c ------------------------------------------------------ */

typedef enum { INSPECT_IS_FILE = 0, INSPECT_IS_DIR, INSPECT_IS_LINK,
               INSPECT_IS_HARD } inspect_kind_e;

/* Names of one archive's members; NULL without memory. */
inspect_seen_t *inspect_seen_new(void);
void inspect_seen_free(inspect_seen_t *seen);

/* Is it a name that leads out of where it is unpacked, or may? */
bool inspect_climbs(sb_str_t name);
/* Judges a member's name, and where a link leads.  False without memory. */
bool inspect_name(inspect_t *in, inspect_seen_t *seen, sb_str_t name,
    inspect_kind_e kind, sb_str_t target);

/* --- inspect_confine.c ---------------------------------------------------- */

/* Gives up everything but reading INSPECT_FILE and writing INSPECT_ANSWER, for
 * that long and with that much memory; dies with its parent.  NULL, or what
 * could not be given up. */
const char *inspect_confine(unsigned seconds, uint64_t memory, pid_t parent);

#endif /* INSPECT_INT_H_INCLUDED */
