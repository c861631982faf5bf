/* Small file helpers of sandbox-gateway. */

#ifndef FILES_H_INCLUDED
#define FILES_H_INCLUDED

#include "sb.h"

#include <sys/stat.h>
#include <sys/types.h>

/* mkdir -p; `mode` for the last one when it is new, 0755 for those above it.
 * False with errno. */
bool gw_mkdirs(const char *dir, mode_t mode);

/* Writes a whole file under a temporary name, then puts it in place.  False
 * with errno. */
bool gw_write_file(const char *path, const char *text, size_t len,
    mode_t mode);
/* The same with an owner; -1 leaves it ours. */
bool gw_replace_file(const char *path, const char *text, size_t len,
    mode_t mode, uid_t uid, gid_t gid);

/* Reads a file of at most `max` bytes; malloc'd and NUL-terminated, its length
 * in *len.  NULL with errno (EFBIG: larger). */
char *gw_read_file(const char *path, size_t max, size_t *len);

/* Can nobody but us, root, and who called us by sudo, write it? */
bool gw_trusted(const struct stat *st);

/* Copies files and directories, readable by all; at most 4,096 entries of at
 * most 64 MiB.  What is there is overwritten.  False with errno. */
bool gw_copy_tree(const char *from, const char *to);

/* Removes a directory and all below it; links are not followed.  False with
 * errno. */
bool gw_remove_tree(const char *dir);

#endif /* FILES_H_INCLUDED */
