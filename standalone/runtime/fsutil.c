#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsutil.h"


static bool
rt_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}


int
rt_remove_at(int dirfd, const char *name)
{
    int             fd, rc;
    DIR            *d;
    struct dirent  *e;

    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }

    if (errno != EISDIR && errno != EPERM) {
        return -1;
    }

    fd = openat(dirfd, name, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1 && errno == EACCES
        && fchmodat(dirfd, name, 0700, 0) == 0)
    {
        fd = openat(dirfd, name, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);
    }

    if (fd == -1) {
        return errno == ENOENT ? 0 : -1;
    }

    d = fdopendir(fd);

    if (d == NULL) {
        close(fd);
        return -1;
    }

    rc = 0;

    while (rc == 0 && (e = readdir(d)) != NULL) {
        if (!rt_dots(e->d_name)) {
            rc = rt_remove_at(fd, e->d_name);
        }
    }

    closedir(d);

    if (rc == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) == -1
        && errno != ENOENT)
    {
        rc = -1;
    }

    return rc;
}


static void
rt_copy_file(const char *from, const char *to, mode_t mode)
{
    int      in, out;
    char     buf[65536];
    ssize_t  n;

    in = open(from, O_RDONLY|O_CLOEXEC);

    if (in == -1) {
        return;
    }

    out = open(to, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, mode & 0777);

    if (out != -1) {
        while ((n = read(in, buf, sizeof(buf))) > 0
               && write(out, buf, (size_t) n) == n)
        {
            /* void */
        }

        close(out);
    }

    close(in);
}


static void
rt_copy_dir(const char *from, const char *to, mode_t mode)
{
    DIR            *d;
    char            src[PATH_MAX], dst[PATH_MAX];
    struct dirent  *e;

    d = opendir(from);

    if (d == NULL) {
        return;
    }

    mkdir(to, (mode & 0777) | 0700);

    while ((e = readdir(d)) != NULL) {
        if (!rt_dots(e->d_name)
            && snprintf(src, sizeof(src), "%s/%s", from, e->d_name)
               < PATH_MAX
            && snprintf(dst, sizeof(dst), "%s/%s", to, e->d_name) < PATH_MAX)
        {
            rt_copy(src, dst);
        }
    }

    closedir(d);
}


void
rt_copy(const char *from, const char *to)
{
    char         link[PATH_MAX];
    ssize_t      n;
    struct stat  st;

    if (lstat(from, &st) == -1) {
        return;
    }

    if (S_ISLNK(st.st_mode)) {
        n = readlink(from, link, sizeof(link) - 1);

        if (n > 0) {
            link[n] = '\0';

            if (symlink(link, to) == -1) {
                return;
            }
        }

    } else if (S_ISDIR(st.st_mode)) {
        rt_copy_dir(from, to, st.st_mode);

    } else if (S_ISREG(st.st_mode)) {
        rt_copy_file(from, to, st.st_mode);
    }
}


int
rt_write_file(const char *path, const char *text)
{
    int     fd, rc;
    size_t  n;

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644);

    if (fd == -1) {
        return -1;
    }

    n = strlen(text);
    rc = write(fd, text, n) == (ssize_t) n ? 0 : -1;

    return close(fd) == -1 ? -1 : rc;
}
