/* Small file helpers of sandbox-gateway. */

#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GW_COPY_ENTRIES  4096
#define GW_COPY_FILE     (64 * 1024 * 1024)
#define GW_COPY_DEPTH    16


static int gw_remove_one(const char *path, const struct stat *st, int flag,
    struct FTW *ftw);
static bool gw_write_all(int fd, const char *p, size_t n);
static bool gw_copy_dir(const char *from, const char *to, unsigned depth,
    unsigned *left);
static bool gw_copy_file(const char *from, const char *to);


bool
gw_mkdirs(const char *dir, mode_t mode)
{
    char         path[PATH_MAX];
    char        *p;
    struct stat  st;

    if (snprintf(path, sizeof(path), "%s", dir) >= (int) sizeof(path)) {
        errno = ENAMETOOLONG;
        return false;
    }

    for (p = path + 1; *p; p++) {
        if (*p != '/') {
            continue;
        }

        *p = '\0';

        if (mkdir(path, 0755) == -1 && errno != EEXIST) {
            return false;
        }

        *p = '/';
    }

    if (mkdir(path, mode) == 0) {
        return chmod(path, mode) == 0;      /* whatever the umask is */
    }

    if (errno != EEXIST) {
        return false;
    }

    if (stat(path, &st) == -1) {
        return false;
    }

    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return false;
    }

    return true;
}


bool
gw_write_file(const char *path, const char *text, size_t len, mode_t mode)
{
    return gw_replace_file(path, text, len, mode, (uid_t) -1, (gid_t) -1);
}


bool
gw_replace_file(const char *path, const char *text, size_t len, mode_t mode,
    uid_t uid, gid_t gid)
{
    int   fd, err;
    char  temp[PATH_MAX];

    if (snprintf(temp, sizeof(temp), "%s.XXXXXX", path) >= (int) sizeof(temp)) {
        errno = ENAMETOOLONG;
        return false;
    }

    fd = mkostemp(temp, O_CLOEXEC);

    if (fd == -1) {
        return false;
    }

    if (fchmod(fd, mode) == 0 && fchown(fd, uid, gid) == 0
        && gw_write_all(fd, text, len)
        && fsync(fd) == 0 && rename(temp, path) == 0)
    {
        close(fd);
        return true;
    }

    err = errno;
    close(fd);
    (void) unlink(temp);
    errno = err;

    return false;
}


char *
gw_read_file(const char *path, size_t max, size_t *len)
{
    int      fd;
    char    *text;
    size_t   n;
    ssize_t  got;

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return NULL;
    }

    text = malloc(max + 2);
    n = 0;

    while (text && n <= max) {
        got = read(fd, text + n, max + 1 - n);

        if (got == 0) {
            close(fd);
            text[n] = '\0';
            *len = n;
            return text;
        }

        if (got == -1 && errno != EINTR) {
            break;
        }

        n += (got > 0) ? (size_t) got : 0;
    }

    if (n > max) {
        errno = EFBIG;
    }

    close(fd);
    free(text);

    return NULL;
}


bool
gw_trusted(const struct stat *st)
{
    char        *end;
    const char  *sudo;

    if (st->st_mode & S_IWOTH) {
        return false;
    }

    if (st->st_uid == 0 || st->st_uid == geteuid()) {
        return true;
    }

    sudo = (geteuid() == 0) ? getenv("SUDO_UID") : NULL;

    return sudo != NULL && *sudo != '\0'
           && strtoul(sudo, &end, 10) == st->st_uid && *end == '\0';
}


bool
gw_copy_tree(const char *from, const char *to)
{
    unsigned  left;

    left = GW_COPY_ENTRIES;

    return gw_copy_dir(from, to, 0, &left);
}


bool
gw_remove_tree(const char *dir)
{
    return nftw(dir, gw_remove_one, 16, FTW_DEPTH|FTW_PHYS) == 0;
}


static int
gw_remove_one(const char *path, const struct stat *st, int flag,
    struct FTW *ftw)
{
    (void) st;
    (void) flag;
    (void) ftw;

    return remove(path);
}


static bool
gw_copy_dir(const char *from, const char *to, unsigned depth, unsigned *left)
{
    DIR            *dir;
    bool            ok;
    char            src[PATH_MAX], dst[PATH_MAX];
    struct stat     st;
    struct dirent  *e;

    if (depth == GW_COPY_DEPTH) {
        errno = ELOOP;
        return false;
    }

    if (!gw_mkdirs(to, 0755)) {
        return false;
    }

    dir = opendir(from);

    if (dir == NULL) {
        return false;
    }

    ok = true;

    while (ok && (e = readdir(dir)) != NULL) {

        if (e->d_name[0] == '.') {
            continue;
        }

        if ((*left)-- == 0
            || snprintf(src, sizeof(src), "%s/%s", from, e->d_name)
               >= (int) sizeof(src)
            || snprintf(dst, sizeof(dst), "%s/%s", to, e->d_name)
               >= (int) sizeof(dst))
        {
            errno = E2BIG;
            ok = false;
            break;
        }

        ok = stat(src, &st) == 0
             && (S_ISDIR(st.st_mode) ? gw_copy_dir(src, dst, depth + 1, left)
                                     : gw_copy_file(src, dst));
    }

    closedir(dir);

    return ok;
}


static bool
gw_copy_file(const char *from, const char *to)
{
    bool    ok;
    char   *text;
    size_t  len;

    text = gw_read_file(from, GW_COPY_FILE, &len);

    if (text == NULL) {
        return false;
    }

    ok = gw_write_file(to, text, len, 0644);
    free(text);

    return ok;
}


static bool
gw_write_all(int fd, const char *p, size_t n)
{
    ssize_t  done;

    while (n) {
        done = write(fd, p, n);

        if (done == -1) {
            if (errno == EINTR) {
                continue;
            }

            return false;
        }

        p += done;
        n -= (size_t) done;
    }

    return true;
}
