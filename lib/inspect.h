/*
 * What is asked of sandbox-inspect about an archive, and what it tells: facts
 * that the conditions of a policy judge.  Also how they stand in frames.
 */

#ifndef SB_INSPECT_H_INCLUDED
#define SB_INSPECT_H_INCLUDED

#include "frame.h"

/* What was found; bits may be combined. */
#define SB_IN_ARCHIVE       0x0001u     /* it is one, by its content */
#define SB_IN_CLIMBS        0x0002u     /* a name is absolute, has "..", a "\",
                                           a drive, a NUL, or is no UTF-8 */
#define SB_IN_LINKS         0x0004u     /* symbolic or hard links */
#define SB_IN_ESCAPES       0x0008u     /* a link leads out, or may, or stands
                                           above another member */
#define SB_IN_DEVICES       0x0010u     /* devices, FIFOs, sockets */
#define SB_IN_SETID         0x0020u
#define SB_IN_ENCRYPTED     0x0040u
#define SB_IN_BROKEN        0x0080u     /* it cannot be read to its end */
#define SB_IN_INCONSISTENT  0x0100u     /* two programs would read two things */
#define SB_IN_DUPLICATES    0x0200u     /* a name occurs twice */
#define SB_IN_MISNAMED      0x0400u     /* named as an archive, and is none */

/* What makes it unsafe to unpack. */
#define SB_IN_UNSAFE        0x03feu

/* Bounds, and what is counted. */
typedef enum {
    SB_IN_ENTRIES = 0,      /* members, of archives inside of it too */
    SB_IN_SIZE,             /* bytes of all members unpacked */
    SB_IN_FILE_SIZE,        /* ... of the largest one */
    SB_IN_RATIO,            /* SIZE to the size of the archive, rounded up;
                               counts from SB_IN_RATIO_MIN bytes on */
    SB_IN_DEPTH,            /* 1: no archive in it */
    SB_IN_COUNTS
} sb_inspect_count_e;

#define SB_IN_RATIO_MIN  (1024 * 1024)

/* Where looking ends, whatever a policy says. */
#define SB_IN_MOST_ENTRIES  1000000u
#define SB_IN_MOST_SIZE     ((uint64_t) 64 << 30)
#define SB_IN_MOST_RATIO    UINT32_MAX
#define SB_IN_MOST_DEPTH    16u

#define SB_IN_CONDITIONS  64            /* archive_path in a policy */
#define SB_IN_PATTERNS    (32 * 1024)   /* bytes of their patterns */
#define SB_IN_NAME        256           /* kept of a name */
#define SB_IN_WHY         128
#define SB_IN_FRAME       (SB_IN_PATTERNS + 64 * 1024)
#define SB_IN_ANSWER      4096          /* an INSPECTED is no longer */

typedef struct {
    unsigned  found;                    /* SB_IN_* */
    uint64_t  counts[SB_IN_COUNTS];
    uint64_t  matched;                  /* of archive_path n: bit n */
    bool      cut;                      /* a bound was passed: what is behind it
                                           was not looked at */
    char      why[SB_IN_WHY];           /* of the worst that was found, one
                                           sentence; or why nothing is known */
    char      name[SB_IN_NAME];         /* of the member, or empty */
} sb_inspect_t;

/* The bounds where nothing else is said. */
void sb_inspect_most(uint64_t most[SB_IN_COUNTS]);

/* SB_IN_* of a word of the policy language; 0: it is none. */
unsigned sb_inspect_word(const char *word);
/* The word for the worst of the bits, or "archive". */
const char *sb_inspect_name(unsigned found);

/* How bad the worst of them is: 0 is worst. */
size_t sb_inspect_rank(unsigned found);

/* Does the last segment of a path end as archives do? */
bool sb_inspect_named(sb_str_t path);

/* Fields of an INSPECTED, and back.  False: a field is missing or odd. */
void sb_inspect_put(sb_frame_writer_t *w, const sb_inspect_t *in);
bool sb_inspect_get(const sb_frame_t *f, sb_inspect_t *in);

#endif /* SB_INSPECT_H_INCLUDED */
