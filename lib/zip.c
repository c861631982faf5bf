#include "zip.h"

#include <stdlib.h>


#define SB_ZIP_END      22              /* bytes of the end record */
#define SB_ZIP_TAIL     (65535 + SB_ZIP_END)
#define SB_ZIP_LOCAL    30
#define SB_ZIP_CENTRAL  46
#define SB_ZIP_ENDS     64              /* marks of an end that are looked at */
#define SB_ZIP_PIECE    65536

#define SB_ZIP_ENCRYPTED  0x0001u
#define SB_ZIP_STREAMED   0x0008u       /* sizes stand behind the data */
#define SB_ZIP_UTF8       0x0800u
#define SB_ZIP_MASKED     0x2000u       /* values in local headers are hidden */

/* A member, as one of the two places has it. */
typedef struct {
    unsigned  flags, method;
    unsigned  mode;                     /* in the directory alone */
    uint32_t  crc;
    uint64_t  packed, size;
    uint64_t  offset;                   /* of its local header */
    sb_str_t  name, extra;
} sb_zip_entry_t;

typedef struct {
    const sb_zip_t  *zip;
    const char      *why;
    uint64_t         end;               /* where the end records begin */
    uint64_t         entries;
    uint64_t         directory, length; /* where it stands, its bytes */
    uint64_t         base;              /* added to offsets */
    char            *mem;               /* the directory */
    sb_zip_entry_t  *list;
    char            *local;             /* name and extra of a local header */
    char            *piece;             /* of a gap */
} sb_zip_audit_t;


static unsigned
sb_zip_16(const char *p)
{
    const unsigned char  *u = (const unsigned char *) p;

    return u[0] | (unsigned) u[1] << 8;
}


static uint32_t
sb_zip_32(const char *p)
{
    return sb_zip_16(p) | (uint32_t) sb_zip_16(p + 2) << 16;
}


static uint64_t
sb_zip_64(const char *p)
{
    return sb_zip_32(p) | (uint64_t) sb_zip_32(p + 4) << 32;
}


static sb_zip_e
sb_zip_fail(sb_zip_audit_t *a, sb_zip_e rc, const char *why)
{
    a->why = why;

    return rc;
}


static bool
sb_zip_read(sb_zip_audit_t *a, uint64_t offset, void *buf, size_t n)
{
    return n <= a->zip->size && offset <= a->zip->size - n
           && a->zip->read(a->zip->data, offset, buf, n);
}


static bool
sb_zip_mark(sb_zip_audit_t *a, uint64_t offset, const char *mark)
{
    char  p[4];

    return sb_zip_read(a, offset, p, 4) && memcmp(p, mark, 4) == 0;
}


/* --- the end ---------------------------------------------------------------- */

/* What the end record at `at` (whose bytes are p) says of the directory.  False:
 * there is none where it says. */
static bool
sb_zip_end_read(sb_zip_audit_t *a, uint64_t at, const char *p,
    sb_zip_e *rc)
{
    char      big[56];
    bool      absolute, adjacent;
    uint64_t  offset, where;

    *rc = SB_ZIP_FINE;

    a->end = at;
    a->entries = sb_zip_16(p + 10);
    a->length = sb_zip_32(p + 12);
    offset = sb_zip_32(p + 16);

    if (at >= 20 && sb_zip_mark(a, at - 20, "PK\6\7")
        && sb_zip_read(a, at - 20, big, 20))
    {
        where = sb_zip_64(big + 8);

        /* in front of it may stand what has moved everything */

        if (at < 76
            || (!sb_zip_mark(a, where, "PK\6\6")
                && !sb_zip_mark(a, where = at - 76, "PK\6\6"))
            || where > at - 76 || !sb_zip_read(a, where, big, sizeof(big)))
        {
            *rc = sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The zip64 end of the "
                              "ZIP is not where it is said to be.");
            return true;
        }

        if ((a->entries != 0xffff && a->entries != sb_zip_64(big + 32))
            || (a->length != 0xffffffff && a->length != sb_zip_64(big + 40))
            || (offset != 0xffffffff && offset != sb_zip_64(big + 48)))
        {
            *rc = sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The two ends of the "
                              "ZIP, with and without zip64, differ.");
        }

        a->end = where;
        a->entries = sb_zip_64(big + 32);
        a->length = sb_zip_64(big + 40);
        offset = sb_zip_64(big + 48);
    }

    if (a->entries == 0 && a->length == 0) {
        a->directory = a->end;
        a->base = 0;
        return sb_zip_16(p + 4) == 0 && sb_zip_16(p + 8) == 0;
    }

    if (a->length > a->end) {
        return false;
    }

    where = a->end - a->length;
    absolute = offset <= where && sb_zip_mark(a, offset, "PK\1\2");
    adjacent = sb_zip_mark(a, where, "PK\1\2");

    if (!absolute && !adjacent) {
        return false;
    }

    if (absolute && adjacent && offset != where) {
        *rc = sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The ZIP has two places "
                          "where its directory may stand.");
    }

    if (sb_zip_16(p + 4) || sb_zip_16(p + 6)
        || sb_zip_16(p + 8) != sb_zip_16(p + 10))
    {
        *rc = sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The ZIP is one of several "
                          "parts, or says so.");
    }

    a->directory = absolute ? offset : where;
    a->base = absolute ? 0 : where >= offset ? where - offset : 0;

    return true;
}


/* Finds the end of the ZIP, which must be the only one. */
static sb_zip_e
sb_zip_end(sb_zip_audit_t *a)
{
    char      *tail, *p, *end;
    bool       plausible = false, exact = false, odd = false;
    size_t     n, seen = 0;
    sb_zip_e   rc, found = SB_ZIP_NONE;
    uint64_t   start;

    sb_zip_audit_t  best = *a;

    if (a->zip->size < SB_ZIP_END) {
        return SB_ZIP_NONE;
    }

    n = a->zip->size < SB_ZIP_TAIL ? (size_t) a->zip->size : SB_ZIP_TAIL;
    start = a->zip->size - n;

    tail = malloc(n);
    if (tail == NULL) {
        return SB_ZIP_NO_MEMORY;
    }

    if (!sb_zip_read(a, start, tail, n)) {
        free(tail);
        return sb_zip_fail(a, SB_ZIP_BROKEN, "The file cannot be read.");
    }

    end = tail + n;

    for (p = tail; (p = memmem(p, (size_t) (end - p), "PK\5\6", 4)); p++) {

        if (++seen > SB_ZIP_ENDS) {
            odd = true;
            break;
        }

        if (end - p < SB_ZIP_END) {
            odd = odd || exact;
            continue;
        }

        if ((size_t) (end - p) != SB_ZIP_END + (size_t) sb_zip_16(p + 20)) {
            /* behind the end that counts it is a second one; before it, it may
             * be a member's */
            odd = odd || exact;
            plausible = plausible
                        || sb_zip_end_read(a, start + (uint64_t) (p - tail), p,
                                           &rc);
            continue;
        }

        if (sb_zip_end_read(a, start + (uint64_t) (p - tail), p, &rc)) {
            odd = odd || exact;
            exact = true;
            found = rc;
            best = *a;
        }
    }

    free(tail);

    if (exact && odd) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The ZIP has more than one "
                           "end.");
    }

    if (!exact) {
        return plausible || odd
               ? sb_zip_fail(a, SB_ZIP_FOLLOWED, "Bytes follow the end of "
                             "the ZIP.") : SB_ZIP_NONE;
    }

    *a = best;

    return found;
}


/* --- the directory ---------------------------------------------------------- */

/* Takes 64-bit values from an extra field, of those that are marked. */
static bool
sb_zip_big(sb_zip_entry_t *e, bool size, bool packed, bool offset)
{
    size_t       n;
    sb_str_t     x = e->extra;
    const char  *p;

    if (!size && !packed && !offset) {
        return true;
    }

    while (x.len >= 4) {
        n = sb_zip_16(x.data + 2);

        if (n > x.len - 4) {
            return false;
        }

        if (sb_zip_16(x.data) == 1) {
            p = x.data + 4;

            if (n < 8 * ((size_t) size + (size_t) packed + (size_t) offset)) {
                return false;
            }

            if (size) {
                e->size = sb_zip_64(p);
                p += 8;
            }

            if (packed) {
                e->packed = sb_zip_64(p);
                p += 8;
            }

            if (offset) {
                e->offset = sb_zip_64(p);
            }

            return true;
        }

        x.data += n + 4;
        x.len -= n + 4;
    }

    return false;
}


/* The name that Info-ZIP's field says in UTF-8, and all that is in place of the
 * one in the header. */
static void
sb_zip_names(sb_zip_audit_t *a, const sb_zip_entry_t *e)
{
    size_t    n;
    sb_str_t  x = e->extra;

    if (a->zip->name == NULL) {
        return;
    }

    a->zip->name(a->zip->data, e->name, e->mode);

    while (x.len >= 4) {
        n = sb_zip_16(x.data + 2);

        if (n > x.len - 4) {
            return;
        }

        if (sb_zip_16(x.data) == 0x7075 && n > 5) {
            a->zip->name(a->zip->data, sb_str(x.data + 9, n - 5), 0);
        }

        x.data += n + 4;
        x.len -= n + 4;
    }
}


static sb_zip_e
sb_zip_directory(sb_zip_audit_t *a)
{
    size_t           n;
    uint64_t         i;
    const char      *p, *end;
    sb_zip_entry_t  *e;

    if (a->entries > a->zip->most || a->length > SB_ZIP_DIRECTORY
        || a->entries > SB_ZIP_DIRECTORY / SB_ZIP_CENTRAL)
    {
        return sb_zip_fail(a, SB_ZIP_TOO_MANY, "The ZIP has too many members.");
    }

    if (a->length < a->entries * SB_ZIP_CENTRAL) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The directory of the ZIP "
                           "is too short for its members.");
    }

    a->mem = malloc((size_t) a->length + 1);
    a->list = malloc(((size_t) a->entries + 1) * sizeof(sb_zip_entry_t));

    if (a->mem == NULL || a->list == NULL) {
        return SB_ZIP_NO_MEMORY;
    }

    if (!sb_zip_read(a, a->directory, a->mem, (size_t) a->length)) {
        return sb_zip_fail(a, SB_ZIP_BROKEN, "The directory of the ZIP cannot "
                           "be read.");
    }

    p = a->mem;
    end = p + a->length;

    for (i = 0; i < a->entries; i++, p += n) {

        if (end - p < SB_ZIP_CENTRAL || memcmp(p, "PK\1\2", 4) != 0) {
            break;
        }

        e = &a->list[i];
        e->flags = sb_zip_16(p + 8);
        e->method = sb_zip_16(p + 10);
        e->crc = sb_zip_32(p + 16);
        e->packed = sb_zip_32(p + 20);
        e->size = sb_zip_32(p + 24);
        e->offset = sb_zip_32(p + 42);
        e->mode = sb_zip_16(p + 4) >> 8 == 3 ? sb_zip_16(p + 40) : 0;
        e->name = sb_str(p + SB_ZIP_CENTRAL, sb_zip_16(p + 28));
        e->extra = sb_str(e->name.data + e->name.len, sb_zip_16(p + 30));

        n = SB_ZIP_CENTRAL + e->name.len + e->extra.len + sb_zip_16(p + 32);

        if (n > (size_t) (end - p)) {
            break;
        }

        if (sb_zip_16(p + 34) != 0 || e->name.len == 0
            || !sb_zip_big(e, e->size == 0xffffffff, e->packed == 0xffffffff,
                           e->offset == 0xffffffff))
        {
            break;
        }

        sb_zip_names(a, e);
        e->offset += a->base;
    }

    if (i < a->entries || p != end) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The directory of the ZIP "
                           "is not what its end says.");
    }

    return SB_ZIP_FINE;
}


/* --- members ---------------------------------------------------------------- */

static bool
sb_zip_ascii(sb_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if ((unsigned char) s.data[i] >= 0x80) {
            return false;
        }
    }

    return true;
}


/* Does the local header say what the directory says?  `end`: behind the data. */
static sb_zip_e
sb_zip_member(sb_zip_audit_t *a, const sb_zip_entry_t *e, uint64_t *end)
{
    char            p[SB_ZIP_LOCAL];
    bool            streamed;
    size_t          n;
    sb_zip_entry_t  l;

    if (!sb_zip_read(a, e->offset, p, sizeof(p))
        || memcmp(p, "PK\3\4", 4) != 0)
    {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The directory of the ZIP "
                           "names a member where there is none.");
    }

    l.flags = sb_zip_16(p + 6);
    l.method = sb_zip_16(p + 8);
    l.crc = sb_zip_32(p + 14);
    l.packed = sb_zip_32(p + 18);
    l.size = sb_zip_32(p + 22);

    n = (size_t) sb_zip_16(p + 26) + sb_zip_16(p + 28);

    if (!sb_zip_read(a, e->offset + SB_ZIP_LOCAL, a->local, n)) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member's header is cut.");
    }

    l.name = sb_str(a->local, sb_zip_16(p + 26));
    l.extra = sb_str(a->local + l.name.len, sb_zip_16(p + 28));
    l.offset = 0;
    l.mode = 0;
    streamed = l.flags & SB_ZIP_STREAMED;

    if (!sb_zip_big(&l, l.size == 0xffffffff, l.packed == 0xffffffff, false)
        && !streamed)
    {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member's header has no "
                           "size.");
    }

    sb_zip_names(a, &l);

    if (!sb_eq(l.name, e->name)) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member has one name in "
                           "the directory and another in its header.");
    }

    if (l.method != e->method
        || ((l.flags ^ e->flags) & SB_ZIP_ENCRYPTED)
        || ((l.flags ^ e->flags) & SB_ZIP_UTF8 && !sb_zip_ascii(l.name))
        || (e->flags & SB_ZIP_MASKED))
    {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member is packed in one "
                           "way by the directory and in another by its "
                           "header.");
    }

    if ((l.size != e->size && !(streamed && l.size == 0))
        || (l.packed != e->packed && !(streamed && l.packed == 0))
        || (l.crc != e->crc && !(streamed && l.crc == 0)))
    {
        /* 0xffffffff without a field is what some write in a stream */

        if (!streamed
            || (l.size != e->size && l.size != 0 && l.size != 0xffffffff)
            || (l.packed != e->packed && l.packed != 0
                && l.packed != 0xffffffff)
            || (l.crc != e->crc && l.crc != 0))
        {
            return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member has one size "
                               "in the directory and another in its header.");
        }
    }

    if (e->method == 0 && e->size != e->packed
        && !(e->flags & SB_ZIP_ENCRYPTED))
    {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member that is not "
                           "packed has two sizes.");
    }

    *end = e->offset + SB_ZIP_LOCAL + n;

    if (e->packed > a->zip->size || *end > a->zip->size - e->packed) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "A member is longer than "
                           "the ZIP.");
    }

    *end += e->packed;

    return SB_ZIP_FINE;
}


/* Does a header stand at p, of which n bytes are there?  Four bytes alone occur
 * by chance. */
static bool
sb_zip_hidden(const char *p, size_t n, uint64_t left)
{
    unsigned  method, name;

    if (n >= SB_ZIP_LOCAL && memcmp(p, "PK\3\4", 4) == 0) {
        method = sb_zip_16(p + 8);
        name = sb_zip_16(p + 26);

        return (unsigned char) p[4] <= 63 && (method <= 20
                   || (method >= 93 && method <= 99))
               && name && name <= 4096 && name + SB_ZIP_LOCAL <= left;
    }

    /* an end, of one part, with as many members here as in all */

    return n >= SB_ZIP_END && memcmp(p, "PK\5\6", 4) == 0
           && sb_zip_32(p + 4) == 0
           && sb_zip_16(p + 8) == sb_zip_16(p + 10);
}


/* What stands between members and belongs to none. */
static sb_zip_e
sb_zip_gap(sb_zip_audit_t *a, uint64_t from, uint64_t to)
{
    char    *p, *end;
    size_t   n;

    while (from + SB_ZIP_END <= to) {
        n = to - from < SB_ZIP_PIECE ? (size_t) (to - from) : SB_ZIP_PIECE;

        if (!sb_zip_read(a, from, a->piece, n)) {
            return sb_zip_fail(a, SB_ZIP_BROKEN, "The file cannot be read.");
        }

        end = a->piece + n;

        for (p = a->piece; (p = memmem(p, (size_t) (end - p), "PK", 2)); p++) {
            if (sb_zip_hidden(p, (size_t) (end - p),
                              to - from - (uint64_t) (p - a->piece)))
            {
                return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "The ZIP has a "
                                   "member, or an end, that its directory "
                                   "does not name.");
            }
        }

        if (n < SB_ZIP_PIECE) {
            break;
        }

        /* one may stand on the border */
        from += n - SB_ZIP_LOCAL + 1;
    }

    return SB_ZIP_FINE;
}


static int
sb_zip_order(const void *one, const void *two)
{
    const sb_zip_entry_t  *a = one, *b = two;

    return a->offset < b->offset ? -1 : a->offset > b->offset;
}


/* Members in the order of their bytes, with what is between them; the directory
 * is among them, wherever it stands. */
static sb_zip_e
sb_zip_members(sb_zip_audit_t *a)
{
    bool      passed = a->entries == 0;
    uint64_t  i, end, at = 0;
    sb_zip_e  rc;

    a->local = malloc(2 * 65536);
    a->piece = malloc(SB_ZIP_PIECE);

    if (a->local == NULL || a->piece == NULL) {
        return SB_ZIP_NO_MEMORY;
    }

    qsort(a->list, (size_t) a->entries, sizeof(sb_zip_entry_t), sb_zip_order);

    for (i = 0; i < a->entries; i++) {

        if (!passed && a->directory <= a->list[i].offset) {
            passed = true;

            if (a->directory < at) {
                break;
            }

            rc = sb_zip_gap(a, at, a->directory);
            if (rc != SB_ZIP_FINE) {
                return rc;
            }

            at = a->directory + a->length;
        }

        if (a->list[i].offset < at) {
            break;
        }

        rc = sb_zip_gap(a, at, a->list[i].offset);

        if (rc == SB_ZIP_FINE) {
            rc = sb_zip_member(a, &a->list[i], &end);
        }

        if (rc != SB_ZIP_FINE) {
            return rc;
        }

        at = end;
    }

    if (i == a->entries && !passed && a->directory >= at) {
        passed = true;

        rc = sb_zip_gap(a, at, a->directory);
        if (rc != SB_ZIP_FINE) {
            return rc;
        }

        at = a->directory + a->length;
    }

    if (i < a->entries || !passed || at > a->end) {
        return sb_zip_fail(a, SB_ZIP_INCONSISTENT, "Members of the ZIP share "
                           "bytes with each other, or with its directory.");
    }

    return sb_zip_gap(a, at, a->end);
}


sb_zip_e
sb_zip_audit(const sb_zip_t *zip, uint64_t *entries, const char **why)
{
    sb_zip_e         rc;
    sb_zip_audit_t   audit = { .zip = zip }, *a = &audit;

    rc = sb_zip_end(a);
    *entries = rc == SB_ZIP_NONE ? 0 : a->entries;

    if (rc == SB_ZIP_FINE) {
        rc = sb_zip_directory(a);
    }

    if (rc == SB_ZIP_FINE) {
        rc = sb_zip_members(a);
    }

    free(a->mem);
    free(a->list);
    free(a->local);
    free(a->piece);

    if (rc == SB_ZIP_NO_MEMORY) {
        a->why = "There is not enough memory to look at the ZIP.";
    }

    *why = a->why;

    return rc;
}
