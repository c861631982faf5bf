/*
 * Multipart uploads as execd reads them (reference/opensandbox-api.md 3.4,
 * field cases 4): streaming, any split, bounded memory.
 */

#ifndef SB_MULTIPART_H_INCLUDED
#define SB_MULTIPART_H_INCLUDED

#include "sb.h"

typedef struct sb_multipart_s  sb_multipart_t;

/* One metadata/file pair, paired by index within each name. */
typedef struct {
    sb_str_t  path;         /* metadata.path, decoded */
    sb_str_t  owner, group;
    int32_t   mode;         /* -1: not given */
    sb_str_t  filename;     /* of the file part, as sent */
    uint64_t  size;
    uint8_t   sha256[32];   /* zeros without digests */
    unsigned  found;        /* SB_SCAN_* (with `scan`) */
    uint64_t  offset;       /* where in the body it begins */
    bool      archive;      /* it looks like one (sniff.h; with `sniff`) */
    bool      has_file, has_metadata;
    unsigned  flags;        /* SB_PATH_* */
} sb_multipart_file_t;

typedef struct {
    size_t  max_files;      /* 0: 10000; more: SB_LIMIT */
    size_t  max_metadata;   /* bytes of one metadata part; 0: 64 KiB */
    size_t  max_headers;    /* bytes of one part's headers; 0: 16 KiB */
    bool    no_digest;      /* sha256 of the files is not made */
    bool    scan;           /* look for credentials in files (scan.h) */
    bool    sniff;          /* tell archives by their bytes */
} sb_multipart_limits_t;

/* The boundary of a Content-Type value, or SB_DECLINED (not multipart/form-data
 * or no boundary), SB_AMBIGUOUS (two boundaries, odd characters).  The slice
 * points into value. */
sb_rc_t sb_multipart_boundary(sb_str_t content_type, sb_str_t *boundary);

sb_multipart_t *sb_multipart_new(sb_str_t boundary,
    const sb_multipart_limits_t *limits);

/*
 * Feeds body bytes.  SB_AGAIN: goes on; SB_OK: the closing boundary was seen
 * (what follows is epilogue and is ignored); SB_ERROR: broken framing (C063,
 * C066, C070 ...); SB_AMBIGUOUS: a metadata part without filename, framing by
 * bare LF, case-folded or duplicate metadata keys, trailing bytes after the
 * metadata JSON, Content-Transfer-Encoding; SB_LIMIT.  After an error every
 * further call returns it again and counts nothing.
 */
sb_rc_t sb_multipart_feed(sb_multipart_t *m, const char *p, size_t n);

/* End of the body.  SB_OK; SB_ERROR: the closing boundary never came, numbers
 * of metadata and file parts differ, or none. */
sb_rc_t sb_multipart_finish(sb_multipart_t *m);

/* Whom to show the bytes of files as they pass: `file` counts from 0, `offset`
 * is that of p in it.  NULL: nobody. */
typedef void (*sb_multipart_tap_pt)(void *data, size_t file, uint64_t offset,
    const char *p, size_t n);
void sb_multipart_tap(sb_multipart_t *m, sb_multipart_tap_pt tap, void *data);

/* Static sentence about the last error, or NULL. */
const char *sb_multipart_reason(const sb_multipart_t *m);

/* What is known so far; files are complete once finish said SB_OK. */
size_t sb_multipart_count(const sb_multipart_t *m);
const sb_multipart_file_t *sb_multipart_file(const sb_multipart_t *m, size_t i);

void sb_multipart_free(sb_multipart_t *m);

#endif /* SB_MULTIPART_H_INCLUDED */
