/* Trees of files. */

#ifndef RT_FSUTIL_H_INCLUDED
#define RT_FSUTIL_H_INCLUDED

/* Deletes a file or a tree without following links; a missing one is fine.
 * 0 or -1 with errno. */
int rt_remove_at(int dirfd, const char *name);

/* Copies a file, link or tree as far as it can be read; special files are left
 * out.  Best effort. */
void rt_copy(const char *from, const char *to);

/* Writes a small file.  0 or -1 with errno. */
int rt_write_file(const char *path, const char *text);

#endif /* RT_FSUTIL_H_INCLUDED */
