/*
 * The journal: what is acknowledged is here first (design 2).
 *
 * Segments NNNNNNNNNN.seg of about 64 MiB.  A segment begins with 32 bytes:
 * magic "SBXJRNL1", u64 cursor of its first record, u64 its number, u32
 * CRC-32C of the 24 bytes before, u32 zero.  A record is 32 bytes and a frame
 * (lib/frame.h), numbers little-endian:
 *
 *   0  u32  magic
 *   4  u32  CRC-32C over everything behind it (bytes 8 to the end)
 *   8  u32  length of the frame
 *  12  u32  zero
 *  16  u64  cursor: the running number of the record, from 1
 *  24  u64  instance that sent the frame; 0: the helper itself
 *
 * One thread appends; one other reads; a third flushes.
 */

#ifndef JOURNAL_H_INCLUDED
#define JOURNAL_H_INCLUDED

#include "frame.h"

#include <sys/types.h>

#define JOURNAL_SEGMENT      (64 * 1024 * 1024)
#define JOURNAL_HEAD         32
#define JOURNAL_RECORD_MAX   (JOURNAL_HEAD + SB_FRAME_MAX)
/* Segments that may wait for being applied before appending is refused. */
#define JOURNAL_SEGMENTS     64
/* Applied segments that are kept, so that live streams can resume. */
#define JOURNAL_KEEP         2

/*
 * Frames of the helper's own, at the beginning of a segment: what is still
 * open, so that older segments can go.
 *   STATE_INSTANCE  INSTANCE, LAST_SEQ
 *   STATE_OPERATION operation of the header, begun at its time; INSTANCE;
 *                   SANDBOX, COMMAND_ID when known; DETACHED and TIME (since)
 *                   when its request is over
 */
#define JOURNAL_F_STATE_INSTANCE   200
#define JOURNAL_F_STATE_OPERATION  201

typedef struct journal_s  journal_t;

typedef struct {
    uint32_t  segment;
    off_t     offset;
    uint64_t  cursor;       /* of the record before this place */
} journal_pos_t;

typedef struct {
    uint64_t     cursor;
    uint64_t     instance;
    sb_frame_t   frame;
    const char  *raw;       /* the frame as it stands */
} journal_record_t;

/* One frame to append. */
typedef struct {
    uint64_t     instance;
    const char  *frame;
    size_t       len;
} journal_item_t;

typedef void (*journal_scan_pt)(void *data, const journal_record_t *r);

/*
 * Opens the journal in a directory and reads all of it once, calling scan for
 * every record.  What follows the last whole record is cut off and reported in
 * the log.  New records come behind `applied` in any case; a journal without
 * segments begins behind `fresh` if that is more.  What the disk cannot give
 * (EIO) of another than the newest segment is passed over, and by journal_read()
 * as damaged; any other failure returns NULL with a sentence in `why`.
 */
journal_t *journal_open(int dirfd, size_t segment_size, uint64_t applied,
    uint64_t fresh, journal_scan_pt scan, void *data, char *why,
    size_t why_size);
void journal_close(journal_t *j);

/*
 * Appends frames with one write (more when there are over 500).  Returns 0 or
 * an errno value; then nothing of it is in the journal.  The new records have
 * the cursors up to journal_tail().
 */
int journal_append(journal_t *j, const journal_item_t *items, size_t n);

/* Is the segment full?  Then the caller begins the next one and appends the
 * state of what is open before anything else. */
bool journal_full(const journal_t *j);
int journal_roll(journal_t *j);

journal_pos_t journal_tail(journal_t *j);
/* Records a second that were appended lately; 0 when none were for half a
 * second.  Any thread. */
uint64_t journal_pace(journal_t *j);
/* Cursor of the oldest record that is kept; any thread. */
uint64_t journal_oldest(journal_t *j);
/*
 * Flushes what was written; any thread.  Returns 0 or an errno value; behind a
 * flush that failed, and of what an earlier process left, the next one first
 * writes again what is not known to be on the disk.  EBADMSG: that cannot be
 * read as it was written; it is lost, and nothing behind it may be acknowledged.
 */
int journal_sync(journal_t *j);

/* Removes segments that end at or before a cursor, but keeps the newest
 * JOURNAL_KEEP. */
void journal_forget(journal_t *j, uint64_t cursor);
/* Would journal_forget() remove something? */
bool journal_can_forget(journal_t *j, uint64_t cursor);

typedef struct {
    journal_t  *journal;
    int         fd;
    uint32_t    segment;    /* 0: before the first */
    off_t       offset;
    uint64_t    cursor;     /* last cursor that was given out */
    bool        damaged;    /* records were passed over; the caller resets it */
} journal_reader_t;

/* A reader that begins behind a cursor (0: with the oldest record). */
void journal_reader_init(journal_reader_t *r, journal_t *j, uint64_t cursor);
void journal_reader_close(journal_reader_t *r);

/*
 * Reads whole records that stand before `end` into buf, which must have room
 * for JOURNAL_RECORD_MAX.  Returns the bytes read, 0 at the end, -1 with errno.
 * Damaged records are reported and passed over with the rest of their segment.
 */
ssize_t journal_read(journal_reader_t *r, char *buf, size_t size,
    const journal_pos_t *end);

/* Next record of such a buffer; false at its end.  `pos` is advanced. */
bool journal_next(journal_record_t *r, const char *buf, size_t n, size_t *pos);

/* Reads one record at p: SB_OK, SB_AGAIN (cut), SB_ERROR (not a record). */
sb_rc_t journal_record_read(journal_record_t *r, const char *p, size_t n,
    size_t *size);

/* Place of the last applied cursor, in DATA/journal/applied.  It counts only
 * within one boot of the machine: after a power cut SQLite may have lost what
 * it says.  Returns 0 when it says nothing. */
uint64_t journal_applied_load(int dirfd);
int journal_applied_store(int dirfd, uint64_t cursor);

#endif /* JOURNAL_H_INCLUDED */
