/*
 * Does a file look like an archive?  Told by its bytes as they pass, in pieces
 * of any size: how it begins, and whether the end of a ZIP stands anywhere.
 */

#ifndef SB_SNIFF_H_INCLUDED
#define SB_SNIFF_H_INCLUDED

#include "sb.h"

typedef enum {
    SB_SNIFF_NONE = 0,
    SB_SNIFF_ZIP,           /* begins as one */
    SB_SNIFF_TAR,           /* by its check sum, old ones without a magic too */
    SB_SNIFF_OTHER,         /* cpio, ar, 7z, rar, cab, xar */
    SB_SNIFF_FILTER,        /* compressed: gzip, bzip2, xz, zstd ... */
    SB_SNIFF_WEAK           /* as a rare one whose mark is short: it is one if
                               it can be read */
} sb_sniff_e;

#define SB_SNIFF_HEAD  512

/* Zero-initialise for each file. */
typedef struct {
    size_t  len;                    /* of head */
    char    head[SB_SNIFF_HEAD];
    size_t  tail;                   /* bytes of the ZIP mark seen last */
    bool    directory;              /* the end of a ZIP's directory was seen */
} sb_sniff_t;

void sb_sniff_feed(sb_sniff_t *s, const char *p, size_t n);

/* How it begins. */
sb_sniff_e sb_sniff_begins(const sb_sniff_t *s);

/* Is it to be looked into?  Most files that are no archive are known here. */
bool sb_sniff_archive(const sb_sniff_t *s);

#endif /* SB_SNIFF_H_INCLUDED */
