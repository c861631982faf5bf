/*
 * Paths inside a sandbox as execd will understand them, judged lexically
 * (design 7, field cases 5).  A verdict about text, never about symlinks.
 */

#ifndef SB_PATH_H_INCLUDED
#define SB_PATH_H_INCLUDED

#include "sb.h"

/* What can be said about a path text; bits may be combined. */
#define SB_PATH_RELATIVE   0x01u   /* does not begin with "/" */
#define SB_PATH_CLIMBS     0x02u   /* has a ".." segment; "\" parts too */
#define SB_PATH_EXPANDS    0x04u   /* holds "$" or begins with "~" */
#define SB_PATH_BACKSLASH  0x08u
#define SB_PATH_NUL        0x10u
#define SB_PATH_BAD_UTF8   0x20u
#define SB_PATH_CONTROL    0x40u   /* a byte below 0x20 or 0x7f */
#define SB_PATH_EMPTY      0x80u

/* What stands for a mode that was not given, and for one that is no number of
 * one to four octal digits (execd takes other bits from it). */
#define SB_MODE_NONE  (-1)
#define SB_MODE_ODD   (-2)

/* The mode that a JSON number stands for: its digits are octal. */
int32_t sb_mode(int64_t number);

unsigned sb_path_flags(sb_str_t path);

/*
 * Lexical normal form of an absolute path: "//" and "." segments are dropped,
 * a trailing slash too; ".." is SB_DECLINED (never resolved), so is a relative
 * path and one with a NUL.  dst must hold path.len + 1 bytes; it is
 * NUL-terminated.
 */
sb_rc_t sb_path_normal(char *dst, size_t *len, sb_str_t path);

/*
 * The directory name of a sandbox's history below HISTORY_PATH: the id itself
 * when it matches [A-Za-z0-9][A-Za-z0-9._-]{0,127}, else "x-" and the
 * lower-case hex SHA-256 of the id (design 5).  Also hashed are ids that name
 * something else there ("archive", "heads.jsonl...") or look like a hash.  dst must hold 130 bytes.
 */
void sb_history_dir(char dst[130], sb_str_t sandbox);

#endif /* SB_PATH_H_INCLUDED */
