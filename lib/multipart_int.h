/*
 * What the files of the multipart reader share; nothing for others.
 *
 * multipart.c finds the parts in the bytes, multipart_part.c reads what is in
 * them, multipart_head.c reads parameters of their headers.
 */

#ifndef SB_MULTIPART_INT_H_INCLUDED
#define SB_MULTIPART_INT_H_INCLUDED

#include "digest.h"
#include "multipart.h"
#include "scan.h"
#include "sniff.h"

#define SB_MP_FILES     10000
#define SB_MP_METADATA  (64 * 1024)
#define SB_MP_MEMBERS   64          /* of the metadata of one file */
#define SB_MP_HEADERS   (16 * 1024)
#define SB_MP_LINE      4000        /* Go's reader gives up at 4096 */
#define SB_MP_PADDING   256         /* blanks behind a boundary */
#define SB_MP_TEXTS     (8 * 1024 * 1024)   /* paths and names together */
#define SB_MP_FILENAME  1024        /* kept of one */
#define SB_MP_BOUNDARY  70


typedef enum {
    SB_MP_PREAMBLE = 0,
    SB_MP_HEAD,             /* header lines of a part */
    SB_MP_BODY,
    SB_MP_TAIL,             /* behind a whole delimiter in a body */
    SB_MP_DASH,             /* ... and one "-" */
    SB_MP_PAD,              /* behind a boundary: blanks, then CR LF */
    SB_MP_CR,               /* ... behind the CR */
    SB_MP_EPILOGUE
} sb_mp_state_e;

typedef enum {
    SB_MP_OTHER = 0,
    SB_MP_META,
    SB_MP_FILE
} sb_mp_part_e;


struct sb_multipart_s {
    sb_mp_state_e         state;
    sb_rc_t               error;
    const char           *reason;
    sb_multipart_limits_t limits;

    char                  delim[SB_MP_BOUNDARY + 4];    /* CR LF "--" ... */
    size_t                dlen;
    size_t                matched;      /* bytes of delim seen */
    size_t                assumed;      /* of these, not in the input: a part
                                           may begin with its delimiter */
    size_t                padding;
    bool                  final;        /* "--" followed the boundary */

    sb_buf_t              line;         /* of the preamble or a head */
    size_t                head;         /* bytes of this head */
    bool                  has_disposition;

    sb_mp_part_e          part;
    sb_buf_t              meta;
    sb_sha256_t          *sha;
    sb_scan_t             scan;         /* of this file */
    sb_sniff_t            sniff;        /* the same */
    uint64_t              fed;          /* bytes of earlier calls */
    uint64_t              at;           /* behind the head read last */
    const char           *input;        /* of this call */
    sb_multipart_tap_pt   tap;
    void                 *tap_data;

    sb_multipart_file_t  *files;
    size_t                room;         /* in files */
    size_t                nmeta, nfile;
    sb_mp_part_e          pending;      /* of the head being read */
    size_t                texts;        /* bytes of all texts */
};


/* Remembers an error and a static sentence about it; returns rc. */
sb_rc_t sb_mp_fail(sb_multipart_t *m, sb_rc_t rc, const char *reason);

/* Behind the line of a boundary: the head of a part begins. */
void sb_mp_head_begin(sb_multipart_t *m);
/* Reads the line of a head that was collected, with its LF. */
sb_rc_t sb_mp_head_line(sb_multipart_t *m);
/* Takes bytes of the part's content. */
sb_rc_t sb_mp_content(sb_multipart_t *m, const char *p, size_t n);
/* The part's content is over. */
sb_rc_t sb_mp_part_end(sb_multipart_t *m);

#endif /* SB_MULTIPART_INT_H_INCLUDED */
