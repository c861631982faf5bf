/* What journal*.c share; nothing for others. */

#ifndef JOURNAL_INT_H_INCLUDED
#define JOURNAL_INT_H_INCLUDED

#include "journal.h"

#include <pthread.h>
#include <sys/uio.h>

#define JOURNAL_SEGMENT_MAGIC  "SBXJRNL1"

typedef struct {
    uint32_t  number;
    uint64_t  base;         /* cursor of its first record */
    bool      unreadable;   /* the disk could not give all of it at the start */
} journal_segment_t;

struct journal_s {
    int                 dirfd;
    int                 fd;             /* newest segment, or -1 */
    size_t              segment_size;

    pthread_mutex_t     lock;           /* segments, tail, written,
                                           pace */
    journal_segment_t  *segments;       /* oldest first */
    size_t              nsegments;
    size_t              asegments;
    journal_pos_t       tail;
    uint64_t            written;
    uint64_t            bytes;          /* of all segments */

    uint64_t            pace_us;        /* monotonic: begin of the stretch that
                                           is counted ... */
    uint64_t            pace_cursor;    /* ... and the tail there */
    uint64_t            pace;           /* records/s of the stretch before it */

    pthread_mutex_t     sync_lock;      /* fd against being replaced, synced;
                                           taken before `lock` */
    uint64_t            synced;
    off_t               synced_to;      /* of the newest segment: what is before
                                           it is on the disk */
    bool                unsure;         /* what is behind it may be on the disk
                                           no more, see journal_sync() */

    /* of the appending thread */
    struct iovec        iov[1000];
    char                heads[500 * JOURNAL_HEAD];
};

uint32_t journal_get_u32(const char *p);
uint64_t journal_get_u64(const char *p);
void journal_segment_name(char dst[32], uint32_t number);
/* Makes a segment the newest; the caller holds the locks.  0 or errno. */
int journal_segment_create(journal_t *j, uint32_t number);
/* Writes all of iov; 0 or errno. */
int journal_write(int fd, struct iovec *iov, int n, off_t offset);
/* Reads the beginning of a segment: 0, EBADMSG (it is none), or errno. */
int journal_head_read(int fd, uint32_t number, uint64_t *base);
/* Bytes of a segment that is on the disk. */
uint64_t journal_segment_size(journal_t *j, uint32_t number);
/* Tells stats.h how long the journal is. */
void journal_stats(journal_t *j);

#endif /* JOURNAL_INT_H_INCLUDED */
