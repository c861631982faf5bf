/* The journal: what is in it stays, what is torn goes, nothing else. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "helper_frames.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>


/*
 * A disk under the newest segment: what is written is on it once it is flushed;
 * what a flush that failed was to write never gets there, unless it is written
 * again.  The journal of the test is not larger than that.
 */

#define DISK_SIZE  (64 * 1024)

static struct {
    bool     counts;
    bool     flush_fails;       /* the next one */
    int      read_error;        /* of each pread() */
    ino_t    bad;               /* of that file nothing can be read ... */
    off_t    bad_from;          /* ... behind there */
    bool     forgets;           /* reads give what is on the disk */
    char     disk[DISK_SIZE];
    off_t    from[64];          /* written and not flushed */
    size_t   len[64];
    unsigned n;
} faults;


ssize_t
pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    long  rc;

    rc = syscall(SYS_pwritev, fd, v, n, at, 0);

    if (faults.counts && rc > 0) {
        assert_true(faults.n < 64);
        faults.from[faults.n] = at;
        faults.len[faults.n] = (size_t) rc;
        faults.n++;
    }

    return rc;
}


ssize_t
pread(int fd, void *buf, size_t size, off_t at)
{
    long         n;
    struct stat  st;

    if (faults.read_error) {
        errno = faults.read_error;
        return -1;
    }

    if (faults.bad && fstat(fd, &st) == 0 && st.st_ino == faults.bad
        && at + (off_t) size > faults.bad_from)
    {
        if (at >= faults.bad_from) {
            errno = EIO;
            return -1;
        }

        size = (size_t) (faults.bad_from - at);
    }

    n = syscall(SYS_pread64, fd, buf, size, at);

    if (faults.forgets && n > 0) {
        memcpy(buf, faults.disk + at, (size_t) n);
    }

    return n;
}


static int
disk_flush(int fd)
{
    unsigned  i;

    for (i = 0; i < faults.n && !faults.flush_fails; i++) {
        assert_int_equal(syscall(SYS_pread64, fd,
                                 faults.disk + faults.from[i], faults.len[i],
                                 faults.from[i]), faults.len[i]);
    }

    faults.n = 0;

    if (faults.flush_fails) {
        faults.flush_fails = false;
        errno = EIO;
        return -1;
    }

    return 0;
}


typedef struct {
    char      path[64];
    int       fd;
} place_t;

typedef struct {
    unsigned  n;
    uint64_t  first, last;
    uint64_t  instances;        /* sum */
    uint64_t  seqs;             /* sum */
} seen_t;


static int
setup(void **state)
{
    static place_t  p;

    tdir_make(p.path);
    p.fd = tdir_open(p.path);
    *state = &p;

    return 0;
}


static int
teardown(void **state)
{
    place_t  *p = *state;

    close(p->fd);
    tdir_remove(p->path);

    return 0;
}


static void
scan(void *data, const journal_record_t *r)
{
    seen_t  *s = data;

    if (s->n++ == 0) {
        s->first = r->cursor;
    }

    s->last = r->cursor;
    s->instances += r->instance;
    s->seqs += r->frame.seq;
}


static journal_t *
journal(place_t *p, size_t segment, seen_t *s)
{
    char        why[256];
    journal_t  *j;

    memset(s, 0, sizeof(seen_t));
    memset(&faults, 0, sizeof(faults));
    flush_hook = NULL;
    j = journal_open(p->fd, segment, 0, 0, scan, s, why, sizeof(why));
    assert_non_null(j);

    return j;
}


/* Appends one record of about `size` bytes. */
static int
append(journal_t *j, uint64_t instance, uint64_t seq, size_t size)
{
    tframe_t        f;
    journal_item_t  item;
    static char     text[64 * 1024];

    memset(text, 'x', sizeof(text));
    tf_begin(&f, SB_F_OUTPUT, 0, seq, 1, seq);
    sb_frame_put(&f.w, SB_T_DATA, sb_str(text, size));

    item.instance = instance;
    item.frame = f.mem;
    item.len = tf_end(&f);

    return journal_append(j, &item, 1);
}


static ino_t
inode_of(place_t *p, const char *name)
{
    struct stat  st;

    assert_int_equal(fstatat(p->fd, name, &st, 0), 0);

    return st.st_ino;
}


static off_t
size_of(place_t *p, const char *name)
{
    struct stat  st;

    assert_int_equal(fstatat(p->fd, name, &st, 0), 0);

    return st.st_size;
}


static void
test_round_trip(void **state)
{
    static char       buf[JOURNAL_RECORD_MAX];
    size_t            i, pos;
    seen_t            s;
    ssize_t           n;
    tframe_t         *f;
    journal_t        *j;
    journal_pos_t     tail;
    journal_item_t    items[1200];
    journal_record_t  r;
    journal_reader_t  reader;

    j = journal(*state, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 0);

    /* more than one write takes */
    f = malloc(sizeof(tframe_t));

    for (i = 0; i < 1200; i++) {
        char  *copy;

        tf_begin(f, SB_F_BEGIN, SB_FF_STRICT, i + 1, (unsigned) i + 1, i);
        tf_u64(f, SB_T_PORT, i);
        copy = malloc(tf_end(f));
        memcpy(copy, f->mem, f->len);

        items[i].instance = 7;
        items[i].frame = copy;
        items[i].len = f->len;
    }

    assert_int_equal(journal_append(j, items, 1200), 0);

    tail = journal_tail(j);
    assert_int_equal(tail.cursor, 1200);

    /* a reader in the middle */
    journal_reader_init(&reader, j, 700);
    n = journal_read(&reader, buf, sizeof(buf), &tail);
    assert_true(n > 0);

    for (i = 700, pos = 0; journal_next(&r, buf, (size_t) n, &pos); i++) {
        assert_int_equal(r.cursor, i + 1);
        assert_int_equal(r.instance, 7);
        assert_int_equal(r.frame.seq, i + 1);
        assert_int_equal(r.frame.flags, SB_FF_STRICT);
        assert_int_equal(sb_field_u64(&r.frame, SB_T_PORT, 0), i);
    }

    assert_int_equal(i, 1200);
    assert_int_equal(journal_read(&reader, buf, sizeof(buf), &tail), 0);
    journal_reader_close(&reader);
    journal_close(j);

    j = journal(*state, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 1200);
    assert_int_equal(s.last, 1200);
    assert_int_equal(journal_tail(j).cursor, 1200);
    journal_close(j);

    for (i = 0; i < 1200; i++) {
        free((void *) (uintptr_t) items[i].frame);
    }

    free(f);
}


static size_t
slurp(place_t *p, const char *name, char *buf, size_t size)
{
    int      fd;
    ssize_t  n;

    fd = openat(p->fd, name, O_RDONLY);
    n = read(fd, buf, size);
    close(fd);
    assert_true(n >= 0);

    return (size_t) n;
}


static void
spit(place_t *p, const char *name, const char *buf, size_t n)
{
    int  fd;

    fd = openat(p->fd, name, O_WRONLY|O_CREAT|O_TRUNC, 0600);
    assert_true(write(fd, buf, n) == (ssize_t) n);
    close(fd);
}


/* Three records; the ends of them in the file. */
static size_t
three(place_t *p, char *buf, size_t size, off_t ends[4])
{
    size_t      n;
    seen_t      s;
    journal_t  *j;

    j = journal(p, JOURNAL_SEGMENT, &s);
    ends[0] = size_of(p, "0000000001.seg");
    assert_int_equal(append(j, 5, 1, 10), 0);
    ends[1] = size_of(p, "0000000001.seg");
    assert_int_equal(append(j, 5, 2, 100), 0);
    ends[2] = size_of(p, "0000000001.seg");
    assert_int_equal(append(j, 5, 3, 33), 0);
    ends[3] = size_of(p, "0000000001.seg");
    journal_close(j);

    n = slurp(p, "0000000001.seg", buf, size);
    assert_int_equal(n, ends[3]);

    return n;
}


/* Cut at every byte: whole records stay, the rest goes, appending goes on. */
static void
test_torn_at_every_byte(void **state)
{
    char        buf[4096];
    off_t       ends[4];
    place_t    *p = *state;
    seen_t      s;
    size_t      cut, n;
    unsigned    whole;
    journal_t  *j;

    n = three(p, buf, sizeof(buf), ends);

    for (cut = 0; cut <= n; cut++) {
        spit(p, "0000000001.seg", buf, cut);

        for (whole = 0; whole < 3 && cut >= (size_t) ends[whole + 1]; whole++)
        {
            /* void */
        }

        j = journal(p, JOURNAL_SEGMENT, &s);
        assert_int_equal(s.n, whole);
        assert_int_equal(journal_tail(j).cursor, whole);

        /* a flush each: not after every single one */
        if (cut % 8) {
            journal_close(j);
            continue;
        }

        assert_int_equal(append(j, 5, 9, 50), 0);
        journal_close(j);

        j = journal(p, JOURNAL_SEGMENT, &s);
        assert_int_equal(s.n, whole + 1);
        assert_int_equal(s.last, whole + 1);
        assert_int_equal(s.seqs, whole * (whole + 1) / 2 + 9);
        journal_close(j);
    }
}


/* Any byte changed: never a wrong record, never one behind it. */
static void
test_flipped_at_every_byte(void **state)
{
    char        buf[4096], bad[4096];
    off_t       ends[4];
    place_t    *p = *state;
    seen_t      s;
    size_t      at, n;
    unsigned    whole;
    journal_t  *j;

    n = three(p, buf, sizeof(buf), ends);

    for (at = (size_t) ends[0]; at < n; at++) {
        memcpy(bad, buf, n);
        bad[at] = (char) (bad[at] ^ 0x40);
        spit(p, "0000000001.seg", bad, n);

        for (whole = 0; at >= (size_t) ends[whole + 1]; whole++) {
            /* void */
        }

        j = journal(p, JOURNAL_SEGMENT, &s);
        assert_int_equal(s.n, whole);
        journal_close(j);
    }
}


/* Whole records that an append was cut back before do not come back. */
static void
test_leftovers(void **state)
{
    char        buf[4096], more[8192];
    off_t       ends[4];
    place_t    *p = *state;
    seen_t      s;
    size_t      n;
    journal_t  *j;

    n = three(p, buf, sizeof(buf), ends);

    /* the second record once more, behind the third */
    memcpy(more, buf, n);
    memcpy(more + n, buf + ends[1], (size_t) (ends[2] - ends[1]));
    spit(p, "0000000001.seg", more, n + (size_t) (ends[2] - ends[1]));

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 3);
    assert_int_equal(size_of(p, "0000000001.seg"), n);
    journal_close(j);
}


static void
test_segments(void **state)
{
    static char       buf[JOURNAL_RECORD_MAX];
    size_t            pos;
    place_t          *p = *state;
    seen_t            s;
    ssize_t           n;
    uint64_t          i, cursor;
    journal_t        *j;
    journal_pos_t     tail;
    journal_reader_t  reader;
    journal_record_t  r;

    j = journal(p, 4096, &s);

    for (i = 1; i <= 100; i++) {
        if (journal_full(j)) {
            assert_int_equal(journal_roll(j), 0);
        }

        assert_int_equal(append(j, 1, i, 300), 0);
    }

    tail = journal_tail(j);
    assert_true(tail.segment > 5);

    journal_reader_init(&reader, j, 0);
    cursor = 0;

    while ((n = journal_read(&reader, buf, sizeof(buf), &tail)) > 0) {
        for (pos = 0; journal_next(&r, buf, (size_t) n, &pos); ) {
            assert_int_equal(r.cursor, ++cursor);
        }
    }

    assert_int_equal(cursor, 100);
    journal_reader_close(&reader);

    /* nothing goes that is not applied, the newest two never */
    assert_false(journal_can_forget(j, 0));
    journal_forget(j, 0);
    assert_int_equal(faccessat(p->fd, "0000000001.seg", F_OK, 0), 0);
    assert_true(journal_can_forget(j, 100));
    journal_forget(j, 100);
    assert_int_equal(faccessat(p->fd, "0000000001.seg", F_OK, 0), -1);
    journal_close(j);

    j = journal(p, 4096, &s);
    assert_true(s.n > 0 && s.n < 40);
    assert_int_equal(s.last, 100);
    assert_int_equal(s.first, 100 - s.n + 1);
    assert_int_equal(append(j, 1, 101, 10), 0);
    assert_int_equal(journal_tail(j).cursor, 101);
    journal_close(j);
}


/* Damage in an older segment costs the rest of that segment only. */
static void
test_damaged_segment(void **state)
{
    static char       buf[JOURNAL_RECORD_MAX];
    size_t            n, pos;
    place_t          *p = *state;
    seen_t            s;
    ssize_t           got;
    uint64_t          i, sum;
    journal_t        *j;
    journal_pos_t     tail;
    journal_reader_t  reader;
    journal_record_t  r;

    j = journal(p, 4096, &s);

    for (i = 1; i <= 30; i++) {
        if (journal_full(j)) {
            assert_int_equal(journal_roll(j), 0);
        }

        assert_int_equal(append(j, 1, i, 300), 0);
    }

    journal_close(j);

    n = slurp(p, "0000000001.seg", buf, sizeof(buf));
    buf[n / 2] ^= 1;
    spit(p, "0000000001.seg", buf, n);

    j = journal(p, 4096, &s);
    assert_true(s.n > 15 && s.n < 30);
    assert_int_equal(s.last, 30);

    tail = journal_tail(j);
    journal_reader_init(&reader, j, 0);
    sum = 0;

    while ((got = journal_read(&reader, buf, sizeof(buf), &tail)) > 0) {
        for (pos = 0; journal_next(&r, buf, (size_t) got, &pos); ) {
            sum++;
        }
    }

    assert_int_equal(sum, s.n);
    journal_reader_close(&reader);
    journal_close(j);
}


/* C104: no room: nothing half written, and it goes on when there is room. */
static void
test_no_room(void **state)
{
    off_t          before;
    place_t       *p = *state;
    seen_t         s;
    journal_t     *j;
    struct rlimit  old, r;

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(append(j, 1, 1, 100), 0);
    before = size_of(p, "0000000001.seg");

    (void) signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    r = old;
    r.rlim_cur = (rlim_t) before + 60;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);

    assert_int_equal(append(j, 1, 2, 100), EFBIG);
    assert_int_equal(size_of(p, "0000000001.seg"), before);
    assert_int_equal(journal_tail(j).cursor, 1);
    assert_int_equal(append(j, 1, 2, 100), EFBIG);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

    assert_int_equal(append(j, 1, 3, 100), 0);
    assert_int_equal(journal_tail(j).cursor, 2);
    journal_close(j);

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.seqs, 4);
    journal_close(j);
}


/* A bound on what may wait for being applied. */
static void
test_bounded(void **state)
{
    int         rc;
    seen_t      s;
    unsigned    i;
    journal_t  *j;

    j = journal(*state, 100, &s);
    rc = 0;

    for (i = 0; i < JOURNAL_SEGMENTS + 5 && rc == 0; i++) {
        rc = journal_roll(j);
    }

    assert_int_equal(rc, EDQUOT);
    assert_int_equal(i, JOURNAL_SEGMENTS);
    assert_int_equal(stats_get(STATS_JOURNAL_SEGMENTS), JOURNAL_SEGMENTS);
    assert_int_equal(stats_get(STATS_JOURNAL_SEGMENTS_MAX), JOURNAL_SEGMENTS);
    journal_close(j);
}


static void
test_applied(void **state)
{
    int       fd;
    char      text[160], *boot;
    place_t  *p = *state;

    assert_int_equal(journal_applied_load(p->fd), 0);
    assert_int_equal(journal_applied_store(p->fd, 123456), 0);
    assert_int_equal(journal_applied_load(p->fd), 123456);
    assert_int_equal(journal_applied_store(p->fd, 7), 0);
    assert_int_equal(journal_applied_load(p->fd), 7);

    /* after another boot the files may lack what it says */
    text[slurp(p, "applied", text, sizeof(text) - 1)] = '\0';
    boot = text + 25;
    *boot = (char) (*boot == 'a' ? 'b' : 'a');
    spit(p, "applied", text, strlen(text));
    assert_int_equal(journal_applied_load(p->fd), 0);

    fd = openat(p->fd, "applied", O_WRONLY|O_TRUNC);
    close(fd);
    assert_int_equal(journal_applied_load(p->fd), 0);
}


static uint64_t
flushes(void)
{
    stats_times_t  all;

    stats_times(STATS_T_SYNC, &all);

    return all.count;
}


/* What a process wrote that was killed is flushed by the next one. */
static void
test_flushed_when_opened(void **state)
{
    seen_t      s;
    uint64_t    before;
    journal_t  *j;

    j = journal(*state, 4096, &s);
    assert_int_equal(append(j, 1, 1, 10), 0);
    journal_close(j);

    j = journal(*state, 4096, &s);
    before = flushes();
    assert_int_equal(journal_sync(j), 0);
    assert_int_equal(flushes(), before + 1);
    assert_int_equal(journal_sync(j), 0);
    assert_int_equal(flushes(), before + 1);
    journal_close(j);
}


/* The machine loses its power: of the segment there is what the disk has. */
static void
power_cut(place_t *p, const char *name)
{
    faults.counts = false;
    flush_hook = NULL;
    spit(p, name, faults.disk, (size_t) size_of(p, name));
}


/* A flush fails once: what the next one answers for is on the disk. */
static void
test_flush_failed(void **state)
{
    place_t    *p = *state;
    seen_t      s;
    journal_t  *j;

    j = journal(p, JOURNAL_SEGMENT, &s);
    faults.counts = true;
    flush_hook = disk_flush;

    assert_int_equal(append(j, 5, 1, 100), 0);
    assert_int_equal(journal_sync(j), 0);
    assert_int_equal(append(j, 5, 2, 10000), 0);
    assert_int_equal(append(j, 5, 3, 100), 0);
    faults.flush_fails = true;
    assert_int_equal(journal_sync(j), EIO);

    /* no new segment that would be flushed by itself */
    faults.flush_fails = true;
    assert_int_equal(journal_roll(j), EIO);

    assert_int_equal(append(j, 5, 4, 100), 0);
    assert_int_equal(journal_sync(j), 0);
    assert_int_equal(append(j, 5, 5, 100), 0);
    assert_int_equal(journal_sync(j), 0);
    power_cut(p, "0000000001.seg");
    journal_close(j);

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 5);
    assert_int_equal(s.seqs, 15);
    journal_close(j);
}


/* Nor is it forgotten with the process that was told. */
static void
test_flush_failed_before(void **state)
{
    place_t    *p = *state;
    seen_t      s;
    journal_t  *j;

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(append(j, 5, 1, 100), 0);
    journal_close(j);

    /* none of it is on the disk */
    j = journal(p, JOURNAL_SEGMENT, &s);
    faults.counts = true;
    flush_hook = disk_flush;
    assert_int_equal(journal_sync(j), 0);
    power_cut(p, "0000000001.seg");
    journal_close(j);

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 1);
    journal_close(j);
}


/* Lost from memory, too: nothing that is behind it is answered for. */
static void
test_flush_failed_for_good(void **state)
{
    seen_t      s;
    journal_t  *j;

    j = journal(*state, JOURNAL_SEGMENT, &s);
    faults.counts = true;
    flush_hook = disk_flush;

    assert_int_equal(journal_sync(j), 0);
    assert_int_equal(append(j, 5, 1, 100), 0);
    faults.flush_fails = true;
    assert_int_equal(journal_sync(j), EIO);

    faults.forgets = true;
    assert_int_equal(journal_sync(j), EBADMSG);
    assert_int_equal(append(j, 5, 2, 100), 0);
    assert_int_equal(journal_sync(j), EBADMSG);
    journal_close(j);
}


/* What cannot be read at a start is not taken for what was never written. */
static void
test_start_read_error(void **state)
{
    char        why[256];
    off_t       size;
    place_t    *p = *state;
    seen_t      s;
    journal_t  *j;

    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(append(j, 5, 1, 100), 0);
    journal_close(j);
    size = size_of(p, "0000000001.seg");

    faults.read_error = EIO;
    assert_null(journal_open(p->fd, JOURNAL_SEGMENT, 0, 0, scan, &s, why,
                             sizeof(why)));
    assert_non_null(strstr(why, strerror(EIO)));

    assert_int_equal(size_of(p, "0000000001.seg"), size);
    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 1);
    journal_close(j);
}


/*
 * Of the second of three segments, the first or the newest the disk gives nothing
 * behind an offset: the records that are read, and whether some are missing.
 */
static void
unreadable(place_t *p, const char *name, off_t from, uint64_t cursors,
    uint64_t *sum, bool *damaged)
{
    char              why[256];
    seen_t            s;
    ssize_t           n;
    size_t            pos;
    journal_t        *j;
    journal_pos_t     tail;
    journal_record_t  r;
    journal_reader_t  reader;
    static char       buf[JOURNAL_RECORD_MAX];

    memset(&s, 0, sizeof(s));
    faults.bad = inode_of(p, name);
    faults.bad_from = from;
    j = journal_open(p->fd, JOURNAL_SEGMENT, 0, 0, scan, &s, why, sizeof(why));
    assert_non_null(j);
    assert_int_equal(s.seqs, cursors);
    tail = journal_tail(j);
    assert_int_equal(tail.cursor, 6);

    journal_reader_init(&reader, j, 0);
    *sum = 0;

    while ((n = journal_read(&reader, buf, sizeof(buf), &tail)) > 0) {
        for (pos = 0; journal_next(&r, buf, (size_t) n, &pos); ) {
            *sum += r.cursor;
        }
    }

    assert_int_equal(n, 0);
    *damaged = reader.damaged;
    journal_reader_close(&reader);

    /* it can be read again: nothing is gone */
    faults.bad = 0;
    journal_close(j);
    j = journal(p, JOURNAL_SEGMENT, &s);
    assert_int_equal(s.n, 6);
    journal_close(j);
}


/* An older segment that cannot be read keeps nobody from recording. */
static void
test_start_read_error_old(void **state)
{
    bool        damaged;
    char        why[256];
    off_t       second;
    seen_t      s;
    place_t    *p = *state;
    uint64_t    sum;
    unsigned    i;
    journal_t  *j;

    j = journal(p, JOURNAL_SEGMENT, &s);
    second = 0;

    for (i = 1; i <= 6; i++) {
        assert_int_equal(append(j, 5, i, 100), 0);

        if (i == 1) {
            second = size_of(p, "0000000001.seg");
        }

        if (i == 2 || i == 4) {
            assert_int_equal(journal_roll(j), 0);
        }
    }

    journal_close(j);

    unreadable(p, "0000000001.seg", second, 1 + 3 + 4 + 5 + 6, &sum, &damaged);
    assert_int_equal(sum, 1 + 3 + 4 + 5 + 6);
    assert_true(damaged);

    unreadable(p, "0000000002.seg", second, 1 + 2 + 3 + 5 + 6, &sum, &damaged);
    assert_int_equal(sum, 1 + 2 + 3 + 5 + 6);
    assert_true(damaged);

    /* not even its beginning */
    unreadable(p, "0000000001.seg", 0, 3 + 4 + 5 + 6, &sum, &damaged);
    assert_int_equal(sum, 3 + 4 + 5 + 6);
    assert_true(damaged);

    unreadable(p, "0000000002.seg", 0, 1 + 2 + 5 + 6, &sum, &damaged);
    assert_int_equal(sum, 1 + 2 + 5 + 6);
    assert_true(damaged);

    /* nothing is appended behind what may be there */
    faults.bad = inode_of(p, "0000000003.seg");
    faults.bad_from = second;
    assert_null(journal_open(p->fd, JOURNAL_SEGMENT, 0, 0, scan, &s, why,
                             sizeof(why)));
    assert_non_null(strstr(why, strerror(EIO)));
    faults.bad = 0;
}


/* Cursors never repeat, whatever was lost. */
static void
test_cursor_begins(void **state)
{
    char        why[256];
    seen_t      s;
    place_t    *p = *state;
    journal_t  *j;

    j = journal_open(p->fd, 4096, 50, 1000, scan, &s, why, sizeof(why));
    assert_int_equal(journal_tail(j).cursor, 1000);
    assert_int_equal(append(j, 1, 1, 10), 0);
    journal_close(j);

    memset(&s, 0, sizeof(s));
    j = journal_open(p->fd, 4096, 50, 5000, scan, &s, why, sizeof(why));
    assert_int_equal(s.last, 1001);
    assert_int_equal(journal_tail(j).cursor, 1001);
    journal_close(j);

    j = journal_open(p->fd, 4096, 9000, 0, scan, &s, why, sizeof(why));
    assert_int_equal(journal_tail(j).cursor, 9000);
    assert_int_equal(append(j, 1, 2, 10), 0);
    journal_close(j);

    memset(&s, 0, sizeof(s));
    j = journal_open(p->fd, 4096, 0, 0, scan, &s, why, sizeof(why));
    assert_int_equal(s.first, 1001);
    assert_int_equal(s.last, 9001);
    journal_close(j);
}


#define journal_case(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        journal_case(test_round_trip),
        journal_case(test_torn_at_every_byte),
        journal_case(test_flipped_at_every_byte),
        journal_case(test_leftovers),
        journal_case(test_segments),
        journal_case(test_damaged_segment),
        journal_case(test_no_room),
        journal_case(test_bounded),
        journal_case(test_applied),
        journal_case(test_flushed_when_opened),
        journal_case(test_flush_failed),
        journal_case(test_flush_failed_before),
        journal_case(test_flush_failed_for_good),
        journal_case(test_start_read_error),
        journal_case(test_start_read_error_old),
        journal_case(test_cursor_begins)
    };

    (void) log_open("/dev/null");

    return cmocka_run_group_tests(tests, NULL, NULL);
}
