#include "inspect_int.h"

#include "sniff.h"
#include "zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define RUN_PIECE  65536
#define RUN_SLACK  (1024 * 1024)
#define RUN_TAIL   (65535 + 22)     /* where the end of a ZIP may begin */

/* What libarchive reads from: bytes, or what another archive unpacks. */
typedef struct {
    const inspect_blob_t  *blob;    /* NULL: */
    struct archive        *from;
    inspect_t             *in;      /* ... which counts it */
    char                  *head;    /* ... of which so much was read before */
    size_t                 nhead;
    uint64_t               at;
    uint64_t               solid;   /* behind the last byte that is not 0 */
    char                  *piece;
} run_source_t;

/* A member's bytes, as far as they are kept. */
typedef struct {
    char    *mem;
    size_t   len, cap;
    bool     lost;                  /* of a long one only the end */
    uint64_t size;
    sb_sniff_t  sniff;              /* of all of it */
} run_bytes_t;

typedef struct {
    inspect_t       *in;
    inspect_seen_t  *seen;
    unsigned         depth;
    run_bytes_t      bytes;
    char            *piece;
} run_level_t;


/* --- facts ------------------------------------------------------------------ */

void
inspect_found(inspect_t *in, unsigned found, const char *why, sb_str_t name)
{
    size_t    i;
    unsigned  rank;

    in->out.found |= found;
    rank = (unsigned) sb_inspect_rank(found);

    if (rank >= in->rank) {
        return;
    }

    in->rank = rank;
    (void) snprintf(in->out.why, sizeof(in->out.why), "%s", why);

    /* the end of a long name is what tells */

    if (name.len >= sizeof(in->out.name)) {
        name.data += name.len - sizeof(in->out.name) + 1;
        name.len = sizeof(in->out.name) - 1;
    }

    for (i = 0; i < name.len; i++) {
        in->out.name[i] = (unsigned char) name.data[i] < 0x20 ? '?'
                                                              : name.data[i];
    }

    in->out.name[i] = '\0';
}


bool
inspect_within(inspect_t *in, sb_inspect_count_e count)
{
    if (in->out.counts[count] > in->most[count]) {
        in->out.cut = true;
    }

    return !in->out.cut;
}


bool
inspect_bytes(inspect_t *in, uint64_t n)
{
    uint64_t  size;

    in->out.counts[SB_IN_SIZE] += n;
    size = in->out.counts[SB_IN_SIZE];

    if (size > SB_IN_RATIO_MIN) {
        in->out.counts[SB_IN_RATIO] = in->size
                                      ? size / in->size + !!(size % in->size)
                                      : size;
    }

    return inspect_within(in, SB_IN_SIZE) && inspect_within(in, SB_IN_RATIO);
}


static sb_str_t
run_text(const char *s)
{
    return s ? sb_str(s, strlen(s)) : sb_str("", 0);
}


static const sb_str_t  run_none = { "", 0 };


/* --- bytes ------------------------------------------------------------------ */

static bool
run_read(const inspect_blob_t *b, uint64_t offset, void *buf, size_t n)
{
    char     *p = buf;
    ssize_t   got;

    if (offset > b->size || n > b->size - offset) {
        return false;
    }

    if (b->fd == -1) {
        memcpy(p, b->mem + offset, n);
        return true;
    }

    while (n) {
        got = pread(b->fd, p, n, (off_t) (b->offset + offset));

        if (got <= 0) {
            if (got == -1 && errno == EINTR) {
                continue;
            }

            return false;
        }

        p += got;
        n -= (size_t) got;
        offset += (uint64_t) got;
    }

    return true;
}


/* What a stream brings beside members counts when it is more than headers and
 * padding are. */
static bool
run_stream_within(inspect_t *in, uint64_t n)
{
    uint64_t  slack, *counts = in->out.counts;

    slack = RUN_SLACK + RUN_SLACK / 512 * counts[SB_IN_ENTRIES];

    if (n > slack && n - slack > counts[SB_IN_SIZE]) {
        n -= slack;

        if (n > in->most[SB_IN_SIZE]
            || n / (in->size + 1) > in->most[SB_IN_RATIO])
        {
            return inspect_bytes(in, n - counts[SB_IN_SIZE]);
        }
    }

    return true;
}


static la_ssize_t
run_source_read(struct archive *a, void *data, const void **p)
{
    size_t         i, n;
    la_ssize_t     got;
    run_source_t  *s = data;

    if (s->blob == NULL) {

        if (s->nhead) {
            *p = s->head;
            got = (la_ssize_t) s->nhead;
            s->nhead = 0;

        } else {
            *p = s->piece;
            got = archive_read_data(s->from, s->piece, RUN_PIECE);
        }

        if (got < 0 || !run_stream_within(s->in, s->at)) {
            archive_set_error(a, EIO, "%s", "a compressed stream is broken, or "
                              "too long");
            return ARCHIVE_FATAL;
        }

    } else {
        n = s->blob->size - s->at < RUN_PIECE ? (size_t) (s->blob->size - s->at)
                                              : RUN_PIECE;
        *p = s->piece;
        got = (la_ssize_t) n;

        if (!run_read(s->blob, s->at, s->piece, n)) {
            archive_set_error(a, EIO, "%s", "the file cannot be read");
            return ARCHIVE_FATAL;
        }
    }

    for (i = (size_t) got; i && ((const char *) *p)[i - 1] == '\0'; i--) {
        /* void */
    }

    if (i) {
        s->solid = s->at + i;
    }

    s->at += (uint64_t) got;

    return got;
}


static la_int64_t
run_source_seek(struct archive *a, void *data, la_int64_t offset, int whence)
{
    int64_t        to;
    run_source_t  *s = data;

    (void) a;

    to = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? (int64_t) s->at
         : (int64_t) s->blob->size;

    if (__builtin_add_overflow(to, offset, &to) || to < 0
        || (uint64_t) to > s->blob->size)
    {
        return ARCHIVE_FATAL;
    }

    s->at = (uint64_t) to;

    return to;
}


/* What is kept of a member: all, or the end of what is too long for an archive
 * that is looked into. */
static bool
run_keep(run_bytes_t *b, const char *p, size_t n)
{
    char    *mem;
    size_t   cap;

    sb_sniff_feed(&b->sniff, p, n);
    b->size += n;

    if (b->len + n > INSPECT_NESTED) {
        b->lost = true;
        memmove(b->mem, b->mem + b->len - RUN_TAIL, RUN_TAIL);
        b->len = RUN_TAIL;
    }

    if (b->len + n > b->cap) {
        cap = b->cap ? 2 * b->cap : 4 * RUN_PIECE;

        mem = realloc(b->mem, cap);
        if (mem == NULL) {
            return false;
        }

        b->mem = mem;
        b->cap = cap;
    }

    memcpy(b->mem + b->len, p, n);
    b->len += n;

    return true;
}


/* The member has ended: is there an archive in it? */
static void
run_nested(run_level_t *l, sb_str_t name)
{
    bool            end = false;
    size_t          n;
    sb_sniff_t      tail;
    run_bytes_t    *b = &l->bytes;
    inspect_blob_t  blob;

    if (b->lost) {
        memset(&tail, 0, sizeof(tail));
        n = b->len < RUN_TAIL ? b->len : RUN_TAIL;
        sb_sniff_feed(&tail, b->mem + b->len - n, n);
        end = tail.directory;

        if (end || (sb_sniff_begins(&b->sniff) != SB_SNIFF_NONE
                    && sb_sniff_begins(&b->sniff) != SB_SNIFF_WEAK))
        {
            inspect_found(l->in, SB_IN_BROKEN, "An archive in the archive is "
                          "too large to be looked into.", name);
        }

        return;
    }

    if (!sb_sniff_archive(&b->sniff)) {
        return;
    }

    memset(&blob, 0, sizeof(blob));
    blob.fd = -1;
    blob.mem = b->mem;
    blob.size = b->len;

    (void) inspect_blob(l->in, &blob, l->depth + 1);
}


/* --- members ---------------------------------------------------------------- */

/* Reads what is in a member; false: all is over. */
static bool
run_data(run_level_t *l, struct archive *a, sb_str_t name)
{
    la_ssize_t    n;
    inspect_t    *in = l->in;
    run_bytes_t  *b = &l->bytes;

    b->len = 0;
    b->lost = false;
    b->size = 0;
    memset(&b->sniff, 0, sizeof(b->sniff));

    while ((n = archive_read_data(a, l->piece, RUN_PIECE)) > 0) {

        if (b->size + (uint64_t) n > in->out.counts[SB_IN_FILE_SIZE]) {
            in->out.counts[SB_IN_FILE_SIZE] = b->size + (uint64_t) n;
        }

        if (!inspect_within(in, SB_IN_FILE_SIZE)
            || !inspect_bytes(in, (uint64_t) n))
        {
            return false;
        }

        if (!run_keep(b, l->piece, (size_t) n)) {
            inspect_found(in, SB_IN_BROKEN, "There is not enough memory to "
                          "look into the archive.", name);
            return false;
        }
    }

    if (in->out.cut) {
        return false;
    }

    if (n < 0) {
        inspect_found(in, SB_IN_BROKEN, "A member cannot be unpacked.", name);
        return n != ARCHIVE_FATAL;
    }

    run_nested(l, name);

    return !in->out.cut;
}


static bool
run_type(run_level_t *l, struct archive_entry *e, sb_str_t name,
    inspect_kind_e *kind)
{
    inspect_t  *in = l->in;

    *kind = INSPECT_IS_FILE;

    if (archive_entry_hardlink(e)) {
        *kind = INSPECT_IS_HARD;
        inspect_found(in, SB_IN_LINKS, "A member is a hard link.", name);
        return true;
    }

    switch (archive_entry_filetype(e)) {

    case AE_IFLNK:
        *kind = INSPECT_IS_LINK;
        inspect_found(in, SB_IN_LINKS, "A member is a symbolic link.", name);
        return true;

    case AE_IFDIR:
        *kind = INSPECT_IS_DIR;
        return true;

    case AE_IFCHR:
    case AE_IFBLK:
    case AE_IFIFO:
    case AE_IFSOCK:
        inspect_found(in, SB_IN_DEVICES, "A member is a device, a FIFO or a "
                      "socket.", name);
        return true;

    default:
        return true;
    }
}


/* Bytes that nobody can unpack here count as the member tells them. */
static bool
run_declared(inspect_t *in, struct archive_entry *e)
{
    int64_t  size = archive_entry_size_is_set(e) ? archive_entry_size(e) : 0;

    if (size <= 0) {
        return true;
    }

    if ((uint64_t) size > in->out.counts[SB_IN_FILE_SIZE]) {
        in->out.counts[SB_IN_FILE_SIZE] = (uint64_t) size;
    }

    return inspect_within(in, SB_IN_FILE_SIZE)
           && inspect_bytes(in, (uint64_t) size);
}


/* One member; false: all is over. */
static bool
run_member(run_level_t *l, struct archive *a, struct archive_entry *e)
{
    sb_str_t         name, target;
    inspect_t       *in = l->in;
    const char      *text;
    inspect_kind_e   kind;

    in->out.counts[SB_IN_ENTRIES]++;

    text = archive_entry_pathname(e);
    text = text ? text : archive_entry_pathname_utf8(e);
    name = run_text(text);

    if (!inspect_within(in, SB_IN_ENTRIES) || !run_type(l, e, name, &kind)) {
        return false;
    }

    text = kind == INSPECT_IS_LINK ? archive_entry_symlink(e)
           : kind == INSPECT_IS_HARD ? archive_entry_hardlink(e) : NULL;
    target = run_text(text);

    if (!inspect_name(in, l->seen, name, kind, target)) {
        inspect_found(in, SB_IN_BROKEN, "There is not enough memory to look "
                      "into the archive.", name);
        return false;
    }

    if (archive_entry_mode(e) & (S_ISUID|S_ISGID)) {
        inspect_found(in, SB_IN_SETID, "A member is set-user-id or "
                      "set-group-id.", name);
    }

    if (archive_entry_is_data_encrypted(e)
        || archive_entry_is_metadata_encrypted(e))
    {
        inspect_found(in, SB_IN_ENCRYPTED, "A member is encrypted.", name);

        if (kind == INSPECT_IS_LINK) {
            inspect_found(in, SB_IN_ESCAPES, "An encrypted symbolic link may "
                          "lead anywhere.", name);
        }

        return run_declared(in, e);
    }

    if (archive_entry_size_is_set(e) && archive_entry_size(e) > 0) {

        /* what it says counts, so that nobody has to unpack it */

        if ((uint64_t) archive_entry_size(e) > in->most[SB_IN_FILE_SIZE]) {
            in->out.counts[SB_IN_FILE_SIZE]
                                          = (uint64_t) archive_entry_size(e);
            return inspect_within(in, SB_IN_FILE_SIZE);
        }

        if (kind == INSPECT_IS_HARD) {
            inspect_found(in, SB_IN_ESCAPES, "A hard link brings data for what "
                          "it is to.", name);
        }
    }

    return run_data(l, a, name);
}


/* A warning about a name in another character set is none of ours: names are
 * judged anyway. */
static bool
run_harmless(struct archive *a)
{
    const char  *why = archive_error_string(a);

    return why && strstr(why, "can't be converted");
}


/* All members; false: it is no such archive (its first header was none). */
static bool
run_members(run_level_t *l, struct archive *a, run_source_t *s, bool weak,
    bool padded)
{
    int                    rc;
    bool                   first = true;
    inspect_t             *in = l->in;
    const void            *p;
    struct archive_entry  *e;

    for ( ;; ) {
        rc = archive_read_next_header(a, &e);

        if (rc == ARCHIVE_EOF) {
            break;
        }

        if (rc < ARCHIVE_WARN) {

            if (first && weak) {
                return false;
            }

            in->out.found |= SB_IN_ARCHIVE;

            if (in->out.cut) {
                return true;
            }

            if (archive_read_has_encrypted_entries(a) > 0) {
                inspect_found(in, SB_IN_ENCRYPTED|SB_IN_BROKEN, "The names in "
                              "the archive are encrypted.", run_none);

            } else {
                inspect_found(in, SB_IN_BROKEN, "A header in the archive "
                              "cannot be read.", run_none);
            }

            return true;
        }

        in->out.found |= SB_IN_ARCHIVE;

        if (rc == ARCHIVE_WARN && !run_harmless(a)) {
            inspect_found(in, SB_IN_BROKEN, "A header in the archive is "
                          "malformed.", run_text(archive_entry_pathname(e)));
        }

        if (!run_member(l, a, e)) {
            return true;
        }

        first = false;
    }

    if (first && weak) {
        return false;
    }

    in->out.found |= SB_IN_ARCHIVE;

    if (padded) {
        /* zeros alone may follow: others go on reading behind them */

        while (run_source_read(a, s, &p) > 0) {
            if (s->solid > (uint64_t) archive_read_header_position(a)) {
                break;
            }
        }

        if (s->solid > (uint64_t) archive_read_header_position(a)) {
            inspect_found(in, SB_IN_INCONSISTENT, "Bytes follow the end of the "
                          "archive.", run_none);
        }
    }

    return true;
}


static bool
run_level_open(run_level_t *l, inspect_t *in, unsigned depth, run_source_t *s)
{
    memset(l, 0, sizeof(*l));
    l->in = in;
    l->depth = depth;
    l->seen = inspect_seen_new();
    l->piece = malloc(RUN_PIECE);
    s->piece = malloc(RUN_PIECE);

    return l->seen && l->piece && s->piece;
}


static void
run_level_close(run_level_t *l, run_source_t *s)
{
    inspect_seen_free(l->seen);
    free(l->bytes.mem);
    free(l->piece);
    free(s->piece);
}


/* Depth is counted when it is known that it is an archive. */
static bool
run_depth(inspect_t *in, unsigned depth)
{
    if (depth > in->out.counts[SB_IN_DEPTH]) {
        in->out.counts[SB_IN_DEPTH] = depth;
    }

    return inspect_within(in, SB_IN_DEPTH);
}


static bool
run_no_memory(inspect_t *in)
{
    in->out.found |= SB_IN_ARCHIVE;
    inspect_found(in, SB_IN_BROKEN, "There is not enough memory to look into "
                  "the archive.", run_none);

    return true;
}


/* An archive whose format is one of those that `formats` sets up. */
static bool
run_format(inspect_t *in, const inspect_blob_t *b, unsigned depth,
    sb_sniff_e kind, run_source_t *s)
{
    bool             is, ok, padded;
    run_level_t      level;
    struct archive  *a;

    padded = kind == SB_SNIFF_TAR;
    a = archive_read_new();
    ok = run_level_open(&level, in, depth, s) && a;

    if (ok && kind == SB_SNIFF_ZIP) {
        ok = archive_read_support_format_zip_seekable(a) == ARCHIVE_OK;

    } else if (ok && kind == SB_SNIFF_TAR) {
        ok = archive_read_support_format_tar(a) == ARCHIVE_OK;

    } else if (ok) {
        ok = archive_read_support_format_cpio(a) == ARCHIVE_OK
             && archive_read_support_format_ar(a) == ARCHIVE_OK;

        if (ok && b) {
            ok = archive_read_support_format_7zip(a) == ARCHIVE_OK
                 && archive_read_support_format_rar(a) == ARCHIVE_OK
                 && archive_read_support_format_rar5(a) == ARCHIVE_OK
                 && archive_read_support_format_cab(a) == ARCHIVE_OK
                 && archive_read_support_format_xar(a) == ARCHIVE_OK
                 && archive_read_support_format_lha(a) == ARCHIVE_OK;
        }
    }

    ok = ok && archive_read_set_read_callback(a, run_source_read) == ARCHIVE_OK
         && archive_read_set_callback_data(a, s) == ARCHIVE_OK
         && (padded || b == NULL
             || archive_read_set_seek_callback(a, run_source_seek)
                == ARCHIVE_OK);

    if (!ok) {
        is = run_no_memory(in);

    } else if (archive_read_open1(a) != ARCHIVE_OK) {
        is = kind != SB_SNIFF_WEAK;

        if (is) {
            in->out.found |= SB_IN_ARCHIVE;
            inspect_found(in, SB_IN_BROKEN, "The archive cannot be read.",
                          run_none);
        }

    } else {
        is = run_members(&level, a, s, kind == SB_SNIFF_WEAK, padded);
    }

    (void) archive_read_free(a);
    run_level_close(&level, s);

    return is;
}


/* --- compressed files ------------------------------------------------------- */

/* What a stream unpacks to: an archive that can be read as it comes, or one
 * file. */
static void
run_stream(run_level_t *l, struct archive *a)
{
    la_ssize_t    n;
    sb_sniff_e    kind;
    inspect_t    *in = l->in;
    run_source_t  s;
    run_bytes_t  *b = &l->bytes;

    /* so much that it tells */

    do {
        n = archive_read_data(a, l->piece, SB_SNIFF_HEAD);

        if (n > 0 && !run_keep(b, l->piece, (size_t) n)) {
            (void) run_no_memory(in);
            return;
        }
    } while (n > 0 && b->len < SB_SNIFF_HEAD);

    kind = n < 0 ? SB_SNIFF_NONE : sb_sniff_begins(&b->sniff);

    if (kind == SB_SNIFF_TAR
        || ((kind == SB_SNIFF_OTHER || kind == SB_SNIFF_WEAK)
            && (memcmp(b->mem, "!<arch>", 7) == 0
                || memcmp(b->mem, "0707", 4) == 0)))
    {
        memset(&s, 0, sizeof(s));
        s.from = a;
        s.in = in;
        s.head = b->mem;
        s.nhead = b->len;

        (void) run_format(in, NULL, l->depth, kind == SB_SNIFF_WEAK
                                              ? SB_SNIFF_OTHER : kind, &s);

        /* the stream may be broken behind the archive in it */

        while (!in->out.cut
               && (n = archive_read_data(a, l->piece, RUN_PIECE)) > 0)
        {
            /* void */
        }

        if (n < 0) {
            inspect_found(in, SB_IN_BROKEN, "A compressed stream is broken.",
                          run_none);
        }

        return;
    }

    in->out.counts[SB_IN_ENTRIES]++;

    if (!inspect_within(in, SB_IN_ENTRIES)) {
        return;
    }

    while (n >= 0) {

        if (b->size > in->out.counts[SB_IN_FILE_SIZE]) {
            in->out.counts[SB_IN_FILE_SIZE] = b->size;
        }

        if (!inspect_within(in, SB_IN_FILE_SIZE)
            || !inspect_bytes(in, n ? (uint64_t) n : b->size))
        {
            return;
        }

        n = archive_read_data(a, l->piece, RUN_PIECE);

        if (n <= 0) {
            break;
        }

        if (!run_keep(b, l->piece, (size_t) n)) {
            (void) run_no_memory(in);
            return;
        }
    }

    if (n < 0) {
        inspect_found(in, SB_IN_BROKEN, "A compressed stream is broken.",
                      run_none);
        return;
    }

    run_nested(l, run_none);
}


/* Is there nothing but zeros from there on? */
static bool
run_zeros(const inspect_blob_t *b, uint64_t from)
{
    char    p[4096];
    size_t  i, n;

    for ( /* void */ ; from < b->size; from += n) {
        n = b->size - from < sizeof(p) ? (size_t) (b->size - from) : sizeof(p);

        if (!run_read(b, from, p, n)) {
            return false;
        }

        for (i = 0; i < n; i++) {
            if (p[i]) {
                return false;
            }
        }
    }

    return true;
}


static bool
run_filter(inspect_t *in, const inspect_blob_t *b, unsigned depth,
    bool weak)
{
    bool                   is = true, ok;
    run_level_t            l;
    run_source_t           s;
    struct archive        *a;
    struct archive_entry  *e;

    memset(&s, 0, sizeof(s));
    s.blob = b;

    a = archive_read_new();

    ok = run_level_open(&l, in, depth, &s) && a
         && archive_read_support_filter_gzip(a) == ARCHIVE_OK
         && archive_read_support_filter_bzip2(a) == ARCHIVE_OK
         && archive_read_support_filter_compress(a) == ARCHIVE_OK
         && archive_read_support_filter_lzma(a) == ARCHIVE_OK
         && archive_read_support_filter_lzip(a) == ARCHIVE_OK
         && archive_read_support_filter_xz(a) == ARCHIVE_OK
         && archive_read_support_filter_lz4(a) == ARCHIVE_OK
         && archive_read_support_filter_zstd(a) == ARCHIVE_OK
         && archive_read_support_filter_rpm(a) == ARCHIVE_OK
         && archive_read_support_format_raw(a) == ARCHIVE_OK
         && archive_read_set_read_callback(a, run_source_read) == ARCHIVE_OK
         && archive_read_set_callback_data(a, &s) == ARCHIVE_OK;

    if (!ok) {
        is = run_no_memory(in);

    } else if (archive_read_open1(a) != ARCHIVE_OK
               || archive_read_next_header(a, &e) != ARCHIVE_OK
               || archive_filter_count(a) < 2)
    {
        is = !weak;

        if (is) {
            in->out.found |= SB_IN_ARCHIVE;
            inspect_found(in, SB_IN_BROKEN, "A compressed stream is broken.",
                          run_none);
        }

    } else {
        in->out.found |= SB_IN_ARCHIVE;
        l.depth += (unsigned) archive_filter_count(a) - 2;

        if (run_depth(in, l.depth)) {
            run_stream(&l, a);
        }

        if (!in->out.cut && !(in->out.found & SB_IN_BROKEN)
            && !run_zeros(b, (uint64_t) archive_filter_bytes(a, -1)))
        {
            inspect_found(in, SB_IN_INCONSISTENT, "Bytes follow the end of a "
                          "compressed stream.", run_none);
        }
    }

    (void) archive_read_free(a);
    run_level_close(&l, &s);

    return is;
}


/* --- any file --------------------------------------------------------------- */

typedef struct {
    inspect_t             *in;
    const inspect_blob_t  *blob;
} run_zip_t;


static bool
run_zip_read(void *data, uint64_t offset, void *buf, size_t n)
{
    run_zip_t  *z = data;

    return run_read(z->blob, offset, buf, n);
}


static void
run_zip_name(void *data, sb_str_t name, unsigned mode)
{
    run_zip_t  *z = data;

    /* libarchive takes some for files */

    if (S_ISFIFO(mode) || S_ISCHR(mode) || S_ISBLK(mode) || S_ISSOCK(mode)) {
        inspect_found(z->in, SB_IN_DEVICES, "A member is a device, a FIFO or a "
                      "socket.", name);
    }

    if (inspect_climbs(name)) {
        inspect_found(z->in, SB_IN_CLIMBS, "A member's name may lead out of "
                      "where it is unpacked.", name);
    }
}


/* Is a ZIP in it, and the same one for everybody?  Another archive may end with
 * one that is a member and is looked into as such. */
static sb_zip_e
run_zip(inspect_t *in, const inspect_blob_t *b, sb_sniff_e kind,
    uint64_t *entries)
{
    sb_zip_e    rc;
    sb_zip_t    zip = { .size = b->size };
    run_zip_t   data = { in, b };
    const char *why;

    zip.most = in->most[SB_IN_ENTRIES];
    zip.data = &data;
    zip.read = run_zip_read;
    zip.name = run_zip_name;

    rc = sb_zip_audit(&zip, entries, &why);

    switch (rc) {

    case SB_ZIP_NONE:
    case SB_ZIP_FINE:
        break;

    case SB_ZIP_FOLLOWED:
        if (kind == SB_SNIFF_WEAK) {
            break;
        }

        if (kind != SB_SNIFF_NONE && kind != SB_SNIFF_ZIP) {
            return SB_ZIP_NONE;
        }

        inspect_found(in, SB_IN_INCONSISTENT, why, run_none);
        break;

    case SB_ZIP_INCONSISTENT:
        inspect_found(in, SB_IN_INCONSISTENT, why, run_none);
        break;

    case SB_ZIP_TOO_MANY:
        in->out.counts[SB_IN_ENTRIES] += *entries > zip.most ? *entries
                                                             : zip.most + 1;
        in->out.cut = true;
        break;

    default:
        inspect_found(in, SB_IN_BROKEN, why, run_none);
    }

    return rc;
}


/* Is it one of those that are told by reading them? */
static bool
run_weak(inspect_t *in, const inspect_blob_t *b, unsigned depth)
{
    run_source_t  s;

    memset(&s, 0, sizeof(s));
    s.blob = b;

    if (!run_filter(in, b, depth, true)
        && !run_format(in, b, depth, SB_SNIFF_WEAK, &s))
    {
        return false;
    }

    (void) run_depth(in, depth);

    return true;
}


bool
inspect_blob(inspect_t *in, const inspect_blob_t *b, unsigned depth)
{
    bool          is = false;
    size_t        n;
    char          head[SB_SNIFF_HEAD];
    uint64_t      entries;
    sb_zip_e      zip;
    sb_sniff_e    kind;
    sb_sniff_t    sniff;
    run_source_t  s;

    memset(&sniff, 0, sizeof(sniff));
    memset(&s, 0, sizeof(s));
    s.blob = b;

    n = b->size < sizeof(head) ? (size_t) b->size : sizeof(head);

    if (!run_read(b, 0, head, n)) {
        inspect_found(in, SB_IN_BROKEN, "The file cannot be read.", run_none);
        return true;
    }

    sb_sniff_feed(&sniff, head, n);
    kind = sb_sniff_begins(&sniff);
    zip = run_zip(in, b, kind, &entries);

    if (zip == SB_ZIP_FOLLOWED && kind == SB_SNIFF_WEAK) {

        if (run_weak(in, b, depth)) {
            return true;
        }

        kind = SB_SNIFF_NONE;
        inspect_found(in, SB_IN_INCONSISTENT, "Bytes follow the end of the "
                      "ZIP.", run_none);
    }

    if (zip != SB_ZIP_NONE || kind == SB_SNIFF_ZIP) {

        is = true;
        in->out.found |= SB_IN_ARCHIVE;

        if (zip == SB_ZIP_NONE) {
            inspect_found(in, SB_IN_BROKEN, "The ZIP has no end.", run_none);
        }

        if (zip == SB_ZIP_NONE || in->out.cut || !run_depth(in, depth)) {
            return true;
        }

        /* libarchive knows no empty ones */

        if (zip != SB_ZIP_FINE || entries) {
            (void) run_format(in, b, depth, SB_SNIFF_ZIP, &s);
        }

        if (in->out.cut || kind == SB_SNIFF_ZIP) {
            return true;
        }
    }

    memset(&s, 0, sizeof(s));
    s.blob = b;

    switch (kind) {

    case SB_SNIFF_TAR:
    case SB_SNIFF_OTHER:
        if (run_depth(in, depth)) {
            (void) run_format(in, b, depth, kind, &s);
        }

        break;

    case SB_SNIFF_FILTER:
        (void) run_filter(in, b, depth, false);
        break;

    case SB_SNIFF_WEAK:
        if (!run_weak(in, b, depth)) {
            return is;
        }

        break;

    default:
        return is;
    }

    in->out.found |= SB_IN_ARCHIVE;

    if (is) {
        inspect_found(in, SB_IN_INCONSISTENT, "The file is a ZIP and another "
                      "archive too.", run_none);
    }

    return true;
}
