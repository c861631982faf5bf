/*
 * LD_PRELOAD: a disk that is full, or slow (t/faults.t).
 *
 * SHIM_DISK names a file that the test writes at any time: a 64-bit number, how
 * many writes have failed, and a text; while it is not empty, writes to files
 * whose path contains it fail with ENOSPC.  "N:TEXT": they are done, and each takes
 * N milliseconds; the number counts these.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>


typedef struct {
    _Atomic int64_t  failed;
    char             part[248];
} shim_t;


static shim_t  *shim;


__attribute__((constructor))
static void
shim_init(void)
{
    int          fd;
    void        *p;
    const char  *path;

    path = getenv("SHIM_DISK");
    fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd == -1) {
        return;
    }

    p = mmap(NULL, sizeof(shim_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);

    if (p != MAP_FAILED) {
        shim = p;
    }
}


static int
shim_full(int fd)
{
    int      saved;
    char     name[64], path[4096], part[sizeof(shim->part) + 1], *text;
    long     ms;
    ssize_t  n;

    if (shim == NULL || shim->part[0] == '\0') {
        return 0;
    }

    memcpy(part, shim->part, sizeof(shim->part));
    part[sizeof(shim->part)] = '\0';
    ms = strtol(part, &text, 10);
    text += *text == ':';

    (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    n = readlink(name, path, sizeof(path) - 1);

    if (n <= 0) {
        return 0;
    }

    path[n] = '\0';

    if (strstr(path, text) == NULL) {
        return 0;
    }

    shim->failed++;

    if (ms) {
        saved = errno;
        (void) usleep((useconds_t) ms * 1000);
        errno = saved;
        return 0;
    }

    errno = ENOSPC;

    return 1;
}


ssize_t
write(int fd, const void *p, size_t n)
{
    return shim_full(fd) ? -1 : syscall(SYS_write, fd, p, n);
}


ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
    return shim_full(fd) ? -1 : syscall(SYS_pwrite64, fd, p, n, at);
}


ssize_t
pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return shim_full(fd) ? -1 : syscall(SYS_pwrite64, fd, p, n, at);
}


ssize_t
writev(int fd, const struct iovec *v, int n)
{
    return shim_full(fd) ? -1 : syscall(SYS_writev, fd, v, n);
}


ssize_t
pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    return shim_full(fd) ? -1 : syscall(SYS_pwritev, fd, v, n, at, 0);
}


int
ftruncate(int fd, off_t size)
{
    return shim_full(fd) ? -1 : (int) syscall(SYS_ftruncate, fd, size);
}


int
ftruncate64(int fd, off64_t size)
{
    return shim_full(fd) ? -1 : (int) syscall(SYS_ftruncate, fd, size);
}


int
posix_fallocate(int fd, off_t at, off_t size)
{
    return shim_full(fd) ? ENOSPC
           : syscall(SYS_fallocate, fd, 0, at, size) == -1 ? errno : 0;
}
