#include "journal.h"
#include "journal_int.h"

#include "digest.h"
#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>


#define JOURNAL_MAGIC   0x4a584253u     /* "SBXJ" */
#define JOURNAL_IOV     1000            /* below IOV_MAX, even */
#define JOURNAL_PACE_US 100000u         /* a stretch whose records are counted
                                           for the pace */


uint32_t
journal_get_u32(const char *p)
{
    const uint8_t  *u = (const uint8_t *) p;

    return (uint32_t) u[0] | (uint32_t) u[1] << 8 | (uint32_t) u[2] << 16
           | (uint32_t) u[3] << 24;
}


uint64_t
journal_get_u64(const char *p)
{
    return (uint64_t) journal_get_u32(p)
           | (uint64_t) journal_get_u32(p + 4) << 32;
}


static void
journal_set_u32(char *p, uint32_t v)
{
    p[0] = (char) (v & 0xff);
    p[1] = (char) (v >> 8 & 0xff);
    p[2] = (char) (v >> 16 & 0xff);
    p[3] = (char) (v >> 24);
}


static void
journal_set_u64(char *p, uint64_t v)
{
    journal_set_u32(p, (uint32_t) (v & 0xffffffff));
    journal_set_u32(p + 4, (uint32_t) (v >> 32));
}


void
journal_segment_name(char dst[32], uint32_t number)
{
    (void) snprintf(dst, 32, "%010u.seg", number);
}


sb_rc_t
journal_record_read(journal_record_t *r, const char *p, size_t n,
    size_t *size)
{
    size_t    need;
    uint32_t  len;

    if (n < JOURNAL_HEAD) {
        return SB_AGAIN;
    }

    len = journal_get_u32(p + 8);

    if (journal_get_u32(p) != JOURNAL_MAGIC || len < SB_FRAME_HEAD
        || len > SB_FRAME_MAX)
    {
        return SB_ERROR;
    }

    *size = JOURNAL_HEAD + len;

    if (n < *size) {
        return SB_AGAIN;
    }

    if (sb_crc32c(0, p + 8, *size - 8) != journal_get_u32(p + 4)) {
        return SB_ERROR;
    }

    r->cursor = journal_get_u64(p + 16);
    r->instance = journal_get_u64(p + 24);
    r->raw = p + JOURNAL_HEAD;

    if (sb_frame_read(&r->frame, r->raw, len, &need) != SB_OK
        || r->frame.length != len)
    {
        return SB_ERROR;
    }

    return SB_OK;
}


bool
journal_next(journal_record_t *r, const char *buf, size_t n, size_t *pos)
{
    size_t  size;

    if (*pos >= n
        || journal_record_read(r, buf + *pos, n - *pos, &size) != SB_OK)
    {
        return false;
    }

    *pos += size;

    return true;
}


static void
journal_record_head(char *h, uint64_t cursor, const journal_item_t *item)
{
    uint32_t  crc;

    journal_set_u32(h, JOURNAL_MAGIC);
    journal_set_u32(h + 8, (uint32_t) item->len);
    journal_set_u32(h + 12, 0);
    journal_set_u64(h + 16, cursor);
    journal_set_u64(h + 24, item->instance);

    crc = sb_crc32c(0, h + 8, JOURNAL_HEAD - 8);
    crc = sb_crc32c(crc, item->frame, item->len);

    journal_set_u32(h + 4, crc);
}


uint64_t
journal_segment_size(journal_t *j, uint32_t number)
{
    char         name[32];
    struct stat  st;

    journal_segment_name(name, number);

    return fstatat(j->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0
           ? (uint64_t) st.st_size : 0;
}


void
journal_stats(journal_t *j)
{
    stats_set(STATS_JOURNAL_BYTES, j->bytes);
    stats_set(STATS_JOURNAL_SEGMENTS, j->nsegments);
    stats_set(STATS_JOURNAL_SEGMENTS_MAX, JOURNAL_SEGMENTS);
    stats_set(STATS_JOURNAL_CURSOR, j->tail.cursor);
}


int
journal_write(int fd, struct iovec *iov, int n, off_t offset)
{
    ssize_t  rc;

    while (n) {
        rc = pwritev(fd, iov, n, offset);

        if (rc == -1) {
            if (errno == EINTR) {
                continue;
            }

            return errno;
        }

        if (rc == 0) {
            return ENOSPC;
        }

        offset += rc;

        /* a short write: go on; a full disk then says so itself */
        while (n && (size_t) rc >= iov->iov_len) {
            rc -= (ssize_t) iov->iov_len;
            iov++;
            n--;
        }

        if (n) {
            iov->iov_base = (char *) iov->iov_base + rc;
            iov->iov_len -= (size_t) rc;
        }
    }

    return 0;
}


/* Measures the pace; the lock is held. */
static void
journal_count(journal_t *j)
{
    uint64_t  now;

    now = sb_mono_us();

    if (now < j->pace_us + JOURNAL_PACE_US) {
        return;
    }

    if (now > j->pace_us + 5 * JOURNAL_PACE_US) {
        /* a pause: what came after it is not known yet */
        j->pace = 0;

    } else {
        j->pace = (j->tail.cursor - j->pace_cursor) * 1000000u
                  / (now - j->pace_us);
    }

    j->pace_us = now;
    j->pace_cursor = j->tail.cursor;
}


int
journal_append(journal_t *j, const journal_item_t *items, size_t n)
{
    int     rc, k;
    off_t   offset, begin;
    size_t  i, m, bytes;

    uint64_t       began;
    struct iovec  *iov;

    if (j->fd == -1) {
        return EBADF;
    }

    began = sb_now_us();
    begin = j->tail.offset;
    offset = begin;
    iov = j->iov;
    rc = 0;

    for (i = 0; i < n; i += m) {

        m = n - i;
        if (m > JOURNAL_IOV / 2) {
            m = JOURNAL_IOV / 2;
        }

        bytes = 0;

        for (k = 0; k < (int) m; k++) {
            char  *head = j->heads + (size_t) k * JOURNAL_HEAD;

            journal_record_head(head, j->tail.cursor + i + (size_t) k + 1,
                                &items[i + (size_t) k]);

            iov[2 * k].iov_base = head;
            iov[2 * k].iov_len = JOURNAL_HEAD;
            iov[2 * k + 1].iov_base = (void *) (uintptr_t)
                                      items[i + (size_t) k].frame;
            iov[2 * k + 1].iov_len = items[i + (size_t) k].len;

            bytes += JOURNAL_HEAD + items[i + (size_t) k].len;
        }

        rc = journal_write(j->fd, iov, (int) m * 2, offset);
        if (rc != 0) {
            break;
        }

        offset += (off_t) bytes;
    }

    if (rc != 0) {
        /* What is cut off was never acknowledged.  Should even this fail, the
         * next append writes over it: readers stop at the tail. */
        if (ftruncate(j->fd, begin) == -1) {
            log_minutely(LOG_ERROR, "cannot cut the journal back: %d", errno);
        }

        stats_add(STATS_JOURNAL_ERRORS, 1);

        return rc;
    }

    pthread_mutex_lock(&j->lock);
    j->tail.offset = offset;
    j->tail.cursor += n;
    j->written += (uint64_t) (offset - begin);
    j->bytes += (uint64_t) (offset - begin);
    journal_count(j);
    journal_stats(j);
    pthread_mutex_unlock(&j->lock);

    stats_add(STATS_JOURNAL_RECORDS, n);
    stats_add(STATS_JOURNAL_APPENDS, 1);
    stats_time(STATS_T_APPEND, sb_now_us() - began);

    return 0;
}


bool
journal_full(const journal_t *j)
{
    return j->fd == -1 || (size_t) j->tail.offset >= j->segment_size;
}


int
journal_segment_create(journal_t *j, uint32_t number)
{
    int   fd, rc;
    char  name[32], head[JOURNAL_HEAD];

    struct iovec  iov;

    journal_segment_name(name, number);

    fd = openat(j->dirfd, name, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0640);
    if (fd == -1) {
        return errno;
    }

    memcpy(head, JOURNAL_SEGMENT_MAGIC, 8);
    journal_set_u64(head + 8, j->tail.cursor + 1);
    journal_set_u64(head + 16, number);
    journal_set_u32(head + 24, sb_crc32c(0, head, 24));
    journal_set_u32(head + 28, 0);

    iov.iov_base = head;
    iov.iov_len = JOURNAL_HEAD;

    rc = journal_write(fd, &iov, 1, 0);

    if (rc == 0 && j->nsegments == j->asegments) {
        journal_segment_t  *s;

        s = realloc(j->segments, (j->asegments + 16) * sizeof(*s));

        if (s == NULL) {
            rc = ENOMEM;

        } else {
            j->segments = s;
            j->asegments += 16;
        }
    }

    /* without its name on the disk, nothing that is flushed into it is there */

    if (rc == 0 && fsync(j->dirfd) == -1 && errno != EINVAL) {
        rc = errno;
    }

    if (rc != 0) {
        close(fd);
        (void) unlinkat(j->dirfd, name, 0);
        return rc;
    }

    j->segments[j->nsegments].number = number;
    j->segments[j->nsegments].base = j->tail.cursor + 1;
    j->segments[j->nsegments].unreadable = false;
    j->nsegments++;

    j->fd = fd;
    j->tail.segment = number;
    j->tail.offset = JOURNAL_HEAD;
    j->synced_to = 0;
    j->unsure = false;
    j->bytes += JOURNAL_HEAD;
    journal_stats(j);

    return 0;
}


int
journal_roll(journal_t *j)
{
    int       rc, old;
    uint32_t  number;

    if (j->nsegments >= JOURNAL_SEGMENTS) {
        return EDQUOT;
    }

    /* what the old segment holds must be flushed while its descriptor is at
     * hand: the flusher only knows the newest */

    if (j->fd != -1) {
        rc = journal_sync(j);
        if (rc != 0) {
            return rc;
        }
    }

    number = j->nsegments ? j->segments[j->nsegments - 1].number + 1 : 1;

    pthread_mutex_lock(&j->sync_lock);
    pthread_mutex_lock(&j->lock);

    old = j->fd;
    rc = journal_segment_create(j, number);

    if (rc == 0 && old != -1) {
        close(old);
    }

    pthread_mutex_unlock(&j->lock);
    pthread_mutex_unlock(&j->sync_lock);

    return rc;
}


/*
 * Writes once more what is in the newest segment up to `end` and may be on the
 * disk no more.  It is read from the page cache, and has to be what was written:
 * EBADMSG when it is not.
 */
static int
journal_rewrite(journal_t *j, off_t end)
{
    int               rc;
    char             *buf;
    off_t             at;
    size_t            pos, size;
    ssize_t           n;
    uint64_t          base;
    struct iovec      iov;
    journal_record_t  r;

    buf = malloc(JOURNAL_RECORD_MAX);
    if (buf == NULL) {
        return ENOMEM;
    }

    rc = 0;

    for (at = j->synced_to; rc == 0 && at < end; at += (off_t) pos) {
        size = (size_t) (end - at);
        n = pread(j->fd, buf, size < JOURNAL_RECORD_MAX ? size
                                                        : JOURNAL_RECORD_MAX,
                  at);

        if (n == -1) {
            rc = errno == EINTR ? 0 : errno;
            pos = 0;
            continue;
        }

        if (at == 0) {
            rc = journal_head_read(j->fd, j->tail.segment, &base);
            pos = JOURNAL_HEAD;

        } else {
            for (pos = 0;
                 pos < (size_t) n
                 && journal_record_read(&r, buf + pos, (size_t) n - pos, &size)
                    == SB_OK;
                 pos += size)
            {
                /* void */
            }

            rc = pos ? 0 : EBADMSG;
        }

        if (rc == 0) {
            iov.iov_base = buf;
            iov.iov_len = pos;
            rc = journal_write(j->fd, &iov, 1, at);
        }
    }

    free(buf);

    return rc;
}


int
journal_sync(journal_t *j)
{
    int       rc;
    bool      dirty;
    off_t     end;
    uint64_t  written, began;

    pthread_mutex_lock(&j->sync_lock);

    pthread_mutex_lock(&j->lock);
    written = j->written;
    end = j->tail.offset;
    dirty = (written != j->synced && j->fd != -1);
    pthread_mutex_unlock(&j->lock);

    rc = 0;

    if (dirty) {
        began = sb_now_us();

        /*
         * A flush that failed is told once, and what it was to write counts as
         * written then: the next flush says nothing of it.  Only what is
         * written again is on the disk behind one that succeeds.
         */
        rc = j->unsure ? journal_rewrite(j, end) : 0;

        if (rc == 0) {
            rc = fdatasync(j->fd) == -1 ? errno : 0;
        }

        stats_time(STATS_T_SYNC, sb_now_us() - began);
        j->unsure = rc != 0;

        if (rc == 0) {
            j->synced = written;
            j->synced_to = end;
        }
    }

    pthread_mutex_unlock(&j->sync_lock);

    return rc;
}


uint64_t
journal_oldest(journal_t *j)
{
    uint64_t  cursor;

    pthread_mutex_lock(&j->lock);
    cursor = j->nsegments ? j->segments[0].base : j->tail.cursor + 1;
    pthread_mutex_unlock(&j->lock);

    return cursor;
}


journal_pos_t
journal_tail(journal_t *j)
{
    journal_pos_t  pos;

    pthread_mutex_lock(&j->lock);
    pos = j->tail;
    pthread_mutex_unlock(&j->lock);

    return pos;
}


uint64_t
journal_pace(journal_t *j)
{
    uint64_t  pace;

    pthread_mutex_lock(&j->lock);
    pace = sb_mono_us() > j->pace_us + 5 * JOURNAL_PACE_US ? 0 : j->pace;
    pthread_mutex_unlock(&j->lock);

    return pace;
}


/* How many of the oldest segments may go. */
static size_t
journal_forgettable(const journal_t *j, uint64_t cursor)
{
    size_t  n;

    /* a segment ends where the next one begins */
    for (n = 0; n + JOURNAL_KEEP < j->nsegments; n++) {
        if (j->segments[n + 1].base > cursor + 1) {
            break;
        }
    }

    return n;
}


bool
journal_can_forget(journal_t *j, uint64_t cursor)
{
    size_t  n;

    pthread_mutex_lock(&j->lock);
    n = journal_forgettable(j, cursor);
    pthread_mutex_unlock(&j->lock);

    return n != 0;
}


void
journal_forget(journal_t *j, uint64_t cursor)
{
    char      name[32];
    size_t    i, n;
    uint64_t  size;

    pthread_mutex_lock(&j->lock);

    n = journal_forgettable(j, cursor);

    for (i = 0; i < n; i++) {
        journal_segment_name(name, j->segments[i].number);
        size = journal_segment_size(j, j->segments[i].number);

        if (unlinkat(j->dirfd, name, 0) == -1 && errno != ENOENT) {
            log_minutely(LOG_WARN, "cannot remove the applied journal segment "
                         "%s: errno %d", name, errno);
            break;
        }

        j->bytes -= size < j->bytes ? size : j->bytes;
    }

    j->nsegments -= i;
    memmove(j->segments, j->segments + i,
            j->nsegments * sizeof(journal_segment_t));
    journal_stats(j);

    pthread_mutex_unlock(&j->lock);
}
