/*
 * Keys of locks: a path of a sandbox and how it is wanted.  A key means the
 * path and all under it (design 2, field cases 8).
 */

#ifndef SB_LOCK_H_INCLUDED
#define SB_LOCK_H_INCLUDED

#include "sb.h"

#define SB_LOCK_KEYS    64      /* of one operation or lease */
#define SB_LOCK_PATH    4096    /* bytes of one path */
#define SB_LOCK_HEADER  16384   /* of the header that declares keys */

typedef struct {
    sb_str_t  path;
    bool      write;            /* else it is read, beside others that read */
} sb_lock_key_t;

/*
 * The one spelling of a path that is compared: empty and "." segments are
 * dropped, ".." takes the segment before it with it (above "/" there is
 * nothing, a relative path keeps those in front).  A relative path stays one,
 * it never equals an absolute one; "" and "." are ".".  This is for telling
 * keys apart only: what is judged or sent is never resolved.  dst must hold
 * path.len + 2 bytes, and may be the path itself when that is absolute; its
 * length is returned.
 */
size_t sb_lock_path(char *dst, sb_str_t path);

/*
 * Reads "read:/a, write:/b%2C1": words and absolute paths, in which "%" and two
 * hex digits stand for a byte, and "," has to.  The paths are written into
 * `mem`, in their one spelling, which must hold header.len + 2 * SB_LOCK_KEYS
 * bytes.  SB_AMBIGUOUS with a sentence in `reason`: it cannot be read in
 * exactly one way; SB_LIMIT with one: too many keys, or too long.
 */
sb_rc_t sb_lock_read(sb_lock_key_t keys[SB_LOCK_KEYS], size_t *n,
    sb_str_t header, char *mem, const char **reason);

#endif /* SB_LOCK_H_INCLUDED */
