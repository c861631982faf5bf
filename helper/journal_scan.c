/* Opening a journal and reading it. */

#include "journal_int.h"

#include "digest.h"
#include "log.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define JOURNAL_SCAN_BUF  (JOURNAL_RECORD_MAX + 1024 * 1024)


static int
journal_segment_cmp(const void *a, const void *b)
{
    const journal_segment_t  *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}


/* Is it the name of a segment?  Fills the number. */
static bool
journal_segment_parse(const char *name, uint32_t *number)
{
    int            i;
    unsigned long  n;

    for (i = 0; i < 10; i++) {
        if (!isdigit((unsigned char) name[i])) {
            return false;
        }
    }

    n = strtoul(name, NULL, 10);

    if (strcmp(name + 10, ".seg") != 0 || n == 0 || n >= UINT32_MAX) {
        return false;
    }

    *number = (uint32_t) n;

    return true;
}


static int
journal_list(journal_t *j)
{
    int                 fd;
    DIR                *dir;
    uint32_t            number;
    struct dirent      *e;
    journal_segment_t  *s;

    fd = openat(j->dirfd, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return errno;
    }

    dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return ENOMEM;
    }

    while ((e = readdir(dir)) != NULL) {

        if (!journal_segment_parse(e->d_name, &number)) {
            continue;
        }

        if (j->nsegments == j->asegments) {
            s = realloc(j->segments, (j->asegments + 16) * sizeof(*s));

            if (s == NULL) {
                closedir(dir);
                return ENOMEM;
            }

            j->segments = s;
            j->asegments += 16;
        }

        j->segments[j->nsegments].number = number;
        j->segments[j->nsegments].base = 0;
        j->segments[j->nsegments].unreadable = false;
        j->nsegments++;
    }

    closedir(dir);

    if (j->nsegments) {
        qsort(j->segments, j->nsegments, sizeof(journal_segment_t),
              journal_segment_cmp);
    }

    return 0;
}


int
journal_head_read(int fd, uint32_t number, uint64_t *base)
{
    char     head[JOURNAL_HEAD];
    ssize_t  n;

    n = pread(fd, head, JOURNAL_HEAD, 0);

    if (n == -1) {
        return errno;
    }

    if (n != JOURNAL_HEAD
        || memcmp(head, JOURNAL_SEGMENT_MAGIC, 8) != 0
        || journal_get_u64(head + 16) != number
        || journal_get_u32(head + 24) != sb_crc32c(0, head, 24))
    {
        return EBADMSG;
    }

    *base = journal_get_u64(head + 8);

    return 0;
}


/*
 * Reads one segment from its beginning.  *end becomes the offset behind its last
 * whole record that can be read; *cursor is advanced to that record.  0 or errno:
 * what cannot be read now is not what was never written.
 */
static int
journal_scan_segment(int fd, char *buf, uint64_t *cursor, off_t *end,
    journal_scan_pt scan, void *data)
{
    off_t             offset;
    size_t            have, pos, size;
    ssize_t           n;
    sb_rc_t           rc;
    journal_record_t  r;

    offset = JOURNAL_HEAD;
    have = 0;

    for ( ;; ) {
        n = pread(fd, buf + have, JOURNAL_SCAN_BUF - have,
                  offset + (off_t) have);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n == -1) {
            *end = offset;
            return errno;
        }

        if (n == 0) {
            *end = offset;
            return 0;
        }

        have += (size_t) n;
        pos = 0;
        rc = SB_AGAIN;

        while (pos < have) {
            rc = journal_record_read(&r, buf + pos, have - pos, &size);

            /* leftovers of an append that was cut back have other numbers */
            if (rc == SB_OK && r.cursor != *cursor + 1) {
                rc = SB_ERROR;
            }

            if (rc != SB_OK) {
                break;
            }

            *cursor = r.cursor;
            scan(data, &r);
            pos += size;
        }

        offset += (off_t) pos;
        have -= pos;
        memmove(buf, buf + pos, have);

        if (rc == SB_ERROR) {
            *end = offset;
            return 0;
        }
    }
}


/* The newest segment: cuts off what is not a record and keeps it open. */
static int
journal_adopt(journal_t *j, int fd, const char *name, off_t end, off_t size)
{
    if (end < size) {
        log_line(LOG_WARN, "journal segment %s: %lld bytes behind the last "
                 "whole record are cut off", name, (long long) (size - end));

        if (ftruncate(fd, end) == -1) {
            return errno;
        }
    }

    j->fd = fd;
    j->tail.offset = end;

    return 0;
}


/*
 * The disk does not give an older segment, or the rest of it.  It does not keep
 * everything else from being recorded: who reads the journal passes it over as
 * damaged.  `base` is 0 where not even its beginning can be read.
 */
static void
journal_keep_unreadable(journal_t *j, size_t kept, uint32_t number,
    uint64_t base, off_t from)
{
    char  name[32];

    journal_segment_name(name, number);
    log_line(LOG_ERROR, "journal segment %s cannot be read behind offset %lld:"
             " %s; the helper goes on without the rest of it", name,
             (long long) from, strerror(EIO));

    j->segments[kept].number = number;
    j->segments[kept].base = base;
    j->segments[kept].unreadable = true;
}


static int
journal_scan(journal_t *j, journal_scan_pt scan, void *data)
{
    int                 fd, rc;
    char                name[32], bad[48], *buf;
    bool                known;
    off_t               end;
    size_t              i, n, kept;
    uint64_t            base;
    struct stat         st;
    journal_segment_t  *s;

    buf = malloc(JOURNAL_SCAN_BUF);
    if (buf == NULL) {
        return ENOMEM;
    }

    rc = 0;
    end = 0;
    kept = 0;
    known = false;

    for (i = 0; i < j->nsegments && rc == 0; i++) {
        s = &j->segments[i];
        journal_segment_name(name, s->number);

        fd = openat(j->dirfd, name, O_RDWR|O_CLOEXEC);

        if (fd == -1 || fstat(fd, &st) == -1) {
            rc = errno;
            break;
        }

        rc = journal_head_read(fd, s->number, &base);

        if (rc == EIO && i + 1 < j->nsegments) {
            journal_keep_unreadable(j, kept++, s->number, 0, 0);
            close(fd);
            rc = 0;
            continue;
        }

        if (rc != 0 && rc != EBADMSG) {
            close(fd);
            break;
        }

        if (rc == EBADMSG || (known && base <= j->tail.cursor)) {
            rc = 0;

            /* torn while it was made, or damaged: out of the way */
            (void) snprintf(bad, sizeof(bad), "%s.bad", name);
            log_line(LOG_WARN, "journal segment %s (%lld bytes) has no valid "
                     "beginning and is %s", name, (long long) st.st_size,
                     st.st_size <= JOURNAL_HEAD ? "removed"
                                                : "set aside as .bad");

            if ((st.st_size <= JOURNAL_HEAD
                 ? unlinkat(j->dirfd, name, 0)
                 : renameat(j->dirfd, name, j->dirfd, bad)) == -1)
            {
                rc = errno;
            }

            close(fd);
            continue;
        }

        if (j->fd != -1) {
            close(j->fd);
            j->fd = -1;
        }

        known = true;
        j->tail.cursor = base - 1;
        j->tail.segment = s->number;

        rc = journal_scan_segment(fd, buf, &j->tail.cursor, &end, scan, data);

        if (rc == EIO && i + 1 < j->nsegments) {
            journal_keep_unreadable(j, kept++, s->number, base, end);
            j->fd = fd;
            j->tail.offset = end;
            rc = 0;
            continue;
        }

        if (rc != 0) {
            close(fd);
            break;
        }

        if (i + 1 == j->nsegments) {
            rc = journal_adopt(j, fd, name, end, st.st_size);

        } else {
            if (end < st.st_size) {
                log_line(LOG_ERROR, "journal segment %s is damaged: %lld bytes"
                         " of it cannot be read", name,
                         (long long) (st.st_size - end));
            }

            j->fd = fd;
            j->tail.offset = end;
        }

        j->segments[kept].number = s->number;
        j->segments[kept].base = base;
        j->segments[kept].unreadable = false;
        kept++;
    }

    j->nsegments = kept;
    free(buf);

    /* nothing is to be had of one without a beginning: the next one's is its */
    base = j->tail.cursor + 1;

    for (n = kept; n > 0; n--) {
        if (j->segments[n - 1].base) {
            base = j->segments[n - 1].base;

        } else {
            j->segments[n - 1].base = base;
        }
    }

    /*
     * A newest segment that is not the last file of the list was followed by
     * a bad one; it may be damaged itself, so nothing is appended to it.
     */
    if (rc == 0 && kept && kept < i && j->fd != -1) {
        close(j->fd);
        j->fd = -1;
        j->tail.offset = 0;
    }

    return rc;
}


journal_t *
journal_open(int dirfd, size_t segment_size, uint64_t applied,
    uint64_t fresh, journal_scan_pt scan, void *data, char *why,
    size_t why_size)
{
    int         rc;
    size_t      i;
    journal_t  *j;

    j = calloc(1, sizeof(journal_t));
    if (j == NULL) {
        (void) snprintf(why, why_size, "no memory for the journal");
        return NULL;
    }

    pthread_mutex_init(&j->lock, NULL);
    pthread_mutex_init(&j->sync_lock, NULL);
    j->dirfd = dirfd;
    j->fd = -1;
    j->segment_size = segment_size;
    j->tail.cursor = applied;

    rc = journal_list(j);

    if (rc == 0 && j->nsegments == 0 && fresh > applied) {
        j->tail.cursor = fresh;
    }

    if (rc == 0) {
        rc = journal_scan(j, scan, data);
    }

    for (i = 0; i < j->nsegments; i++) {
        j->bytes += journal_segment_size(j, j->segments[i].number);
    }

    journal_stats(j);

    if (rc == 0 && j->tail.cursor < applied) {
        /* the applied mark is ahead of the journal: numbers never repeat */
        if (j->fd != -1) {
            close(j->fd);
            j->fd = -1;
        }

        j->tail.cursor = applied;
    }

    if (rc == 0 && j->fd == -1) {
        rc = journal_segment_create(j, j->nsegments
                            ? j->segments[j->nsegments - 1].number + 1 : 1);
    }

    if (rc != 0) {
        (void) snprintf(why, why_size, "cannot open the journal: %s",
                        strerror(rc));
        journal_close(j);
        return NULL;
    }

    /* what an earlier process wrote is still to be flushed, and a flush of it may
     * have failed */
    j->written = 1;
    j->unsure = true;

    return j;
}


void
journal_close(journal_t *j)
{
    if (j == NULL) {
        return;
    }

    if (j->fd != -1) {
        (void) journal_sync(j);
        close(j->fd);
    }

    pthread_mutex_destroy(&j->lock);
    pthread_mutex_destroy(&j->sync_lock);
    free(j->segments);
    free(j);
}


void
journal_reader_init(journal_reader_t *r, journal_t *j, uint64_t cursor)
{
    size_t  i;

    memset(r, 0, sizeof(journal_reader_t));
    r->journal = j;
    r->fd = -1;
    r->cursor = cursor;

    pthread_mutex_lock(&j->lock);

    /* the newest segment that may hold the record behind the cursor */
    for (i = j->nsegments; i > 1 && j->segments[i - 1].base > cursor + 1; i--)
    {
        /* void */
    }

    r->segment = i ? j->segments[i - 1].number : 0;

    pthread_mutex_unlock(&j->lock);
}


void
journal_reader_close(journal_reader_t *r)
{
    if (r->fd != -1) {
        close(r->fd);
        r->fd = -1;
    }
}


/* The segment behind a number, or 0. */
static uint32_t
journal_following(journal_t *j, uint32_t number)
{
    size_t    i;
    uint32_t  next;

    next = 0;

    pthread_mutex_lock(&j->lock);

    for (i = 0; i < j->nsegments; i++) {
        if (j->segments[i].number > number) {
            next = j->segments[i].number;
            break;
        }
    }

    pthread_mutex_unlock(&j->lock);

    return next;
}


/* Could the disk not give all of a segment when the journal was opened? */
static bool
journal_unreadable(journal_t *j, uint32_t number)
{
    bool    found;
    size_t  i;

    found = false;

    pthread_mutex_lock(&j->lock);

    for (i = 0; i < j->nsegments && !found; i++) {
        found = j->segments[i].number == number && j->segments[i].unreadable;
    }

    pthread_mutex_unlock(&j->lock);

    return found;
}


ssize_t
journal_read(journal_reader_t *r, char *buf, size_t size,
    const journal_pos_t *end)
{
    char              name[32];
    size_t            want, pos, len, skip;
    ssize_t           n;
    uint32_t          next;
    struct stat       st;
    sb_rc_t           rc;
    journal_record_t  rec;

    for ( ;; ) {

        if (r->segment == 0 || r->segment > end->segment) {
            return 0;
        }

        if (r->fd == -1) {
            journal_segment_name(name, r->segment);

            r->fd = openat(r->journal->dirfd, name, O_RDONLY|O_CLOEXEC);
            if (r->fd == -1) {
                return -1;
            }

            r->offset = JOURNAL_HEAD;
        }

        if (r->segment == end->segment) {
            st.st_size = end->offset;

        } else if (fstat(r->fd, &st) == -1) {
            return -1;
        }

        rc = SB_OK;

        if (r->offset < st.st_size) {
            want = (size_t) (st.st_size - r->offset);
            want = want < size ? want : size;

            n = pread(r->fd, buf, want, r->offset);

            if (n == -1) {
                if (errno != EIO || !journal_unreadable(r->journal, r->segment))
                {
                    return -1;
                }

                n = 0;
                rc = SB_ERROR;
            }

            pos = 0;
            skip = 0;

            while (pos < (size_t) n) {
                rc = journal_record_read(&rec, buf + pos, (size_t) n - pos,
                                         &len);
                if (rc != SB_OK) {
                    break;
                }

                pos += len;

                if (rec.cursor <= r->cursor) {
                    skip = pos;
                    continue;
                }

                r->cursor = rec.cursor;
            }

            r->offset += (off_t) pos;

            if (pos > skip) {
                memmove(buf, buf + skip, pos - skip);
                return (ssize_t) (pos - skip);
            }

            if (rc == SB_OK || (rc == SB_AGAIN && pos > 0)) {
                continue;
            }

            log_line(LOG_ERROR, "journal segment %010u is damaged at offset "
                     "%lld, the rest of it is passed over", r->segment,
                     (long long) r->offset);
            r->damaged = true;
        }

        if (r->segment == end->segment) {
            r->offset = st.st_size;
            return 0;
        }

        next = journal_following(r->journal, r->segment);
        close(r->fd);
        r->fd = -1;
        r->segment = next;
    }
}


/* The id of this boot of the machine; empty when there is none. */
static const char *
journal_boot(void)
{
    int          fd;
    ssize_t      n;

    static char  boot[37];      /* of one thread: start, then apply */

    if (boot[0]) {
        return boot;
    }

    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY|O_CLOEXEC);

    if (fd != -1) {
        n = read(fd, boot, 36);
        boot[n > 0 ? n : 0] = '\0';
        close(fd);
    }

    return boot;
}


static size_t
journal_applied_text(char text[80], unsigned long long cursor)
{
    return (size_t) snprintf(text, 80, "%020llu %s", cursor, journal_boot());
}


uint64_t
journal_applied_load(int dirfd)
{
    int                 fd;
    char                have[80], want[80], *end;
    ssize_t             n;
    unsigned long long  cursor;

    fd = openat(dirfd, "applied", O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return 0;
    }

    n = read(fd, have, sizeof(have) - 1);
    close(fd);

    if (n < 21) {
        return 0;
    }

    have[n] = '\0';
    cursor = strtoull(have, &end, 10);

    if (end != have + 20) {
        return 0;
    }

    (void) journal_applied_text(want, cursor);

    end = strchr(have, '\n');
    if (end) {
        *end = '\0';
    }

    return strcmp(have, want) == 0 ? cursor : 0;
}


int
journal_applied_store(int dirfd, uint64_t cursor)
{
    int     fd, rc;
    char    text[80];
    size_t  n;

    n = journal_applied_text(text, cursor);
    text[n++] = '\n';

    fd = openat(dirfd, "applied", O_WRONLY|O_CREAT|O_CLOEXEC, 0640);
    if (fd == -1) {
        return errno;
    }

    rc = pwrite(fd, text, n, 0) == (ssize_t) n ? 0 : ENOSPC;
    close(fd);

    return rc;
}
