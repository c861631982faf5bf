/*
 * LD_PRELOAD: the n-th write, or flush, of the history fails, or is the last
 * thing that happens (t/history-faults.t).
 *
 * SHIM_HISTORY names a file of 64-bit numbers that the test writes before: which
 * call (0 writes, 1 flushes), the number of the one that is meant (0: none), and
 * what becomes of it: 0 it fails, 1 it and all behind it fail, 2 it is done and
 * the process is gone.  What comes back: writes, flushes so far, how many failed.
 * Only files below SHIM_PART count.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>


enum { SHIM_ONCE, SHIM_ALWAYS, SHIM_GONE };

typedef struct {
    int64_t          call;
    int64_t          at;
    int64_t          mode;
    _Atomic int64_t  count[2];
    _Atomic int64_t  failed;
} shim_t;


static shim_t      *shim;
static const char  *shim_part;


__attribute__((constructor))
static void
shim_init(void)
{
    int          fd;
    void        *p;
    const char  *path;

    path = getenv("SHIM_HISTORY");
    shim_part = getenv("SHIM_PART");
    fd = path && shim_part ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd == -1) {
        return;
    }

    p = mmap(NULL, sizeof(shim_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);

    if (p != MAP_FAILED) {
        shim = p;
    }
}


/* 0: goes on; 1: fails; 2: is the last. */
static int
shim_judge(int fd, int call)
{
    char     name[64], path[4096];
    int64_t  n;
    ssize_t  len;

    if (shim == NULL) {
        return 0;
    }

    (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    len = readlink(name, path, sizeof(path) - 1);

    if (len <= 0) {
        return 0;
    }

    path[len] = '\0';

    if (strstr(path, shim_part) == NULL) {
        return 0;
    }

    n = ++shim->count[call];

    if (shim->at == 0 || shim->call != call || n < shim->at
        || (n > shim->at && shim->mode != SHIM_ALWAYS))
    {
        return 0;
    }

    if (shim->mode == SHIM_GONE) {
        return 2;
    }

    shim->failed++;

    return 1;
}


static long
shim_end(int judged, long rc)
{
    if (judged == 2) {
        (void) kill(getpid(), SIGKILL);
    }

    return rc;
}


#define shim_do(type, fd, kind, error, call)                                  \
    do {                                                                      \
        int  judged = shim_judge(fd, kind);                                   \
                                                                              \
        if (judged == 1) {                                                    \
            errno = error;                                                    \
            return -1;                                                        \
        }                                                                     \
                                                                              \
        return (type) shim_end(judged, call);                                 \
    } while (0)


ssize_t
write(int fd, const void *p, size_t n)
{
    shim_do(ssize_t, fd, 0, ENOSPC, syscall(SYS_write, fd, p, n));
}


ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
    shim_do(ssize_t, fd, 0, ENOSPC, syscall(SYS_pwrite64, fd, p, n, at));
}


ssize_t
pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    shim_do(ssize_t, fd, 0, ENOSPC, syscall(SYS_pwrite64, fd, p, n, at));
}


ssize_t
writev(int fd, const struct iovec *v, int n)
{
    shim_do(ssize_t, fd, 0, ENOSPC, syscall(SYS_writev, fd, v, n));
}


ssize_t
pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    shim_do(ssize_t, fd, 0, ENOSPC, syscall(SYS_pwritev, fd, v, n, at, 0));
}


ssize_t
pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
    shim_do(ssize_t, fd, 0, ENOSPC, syscall(SYS_pwritev, fd, v, n, at, 0));
}


static int
shim_truncate(int fd, off_t size)
{
    shim_do(int, fd, 0, ENOSPC, syscall(SYS_ftruncate, fd, size));
}


int
ftruncate(int fd, off_t size)
{
    return shim_truncate(fd, size);
}


int
ftruncate64(int fd, off64_t size)
{
    return shim_truncate(fd, size);
}


int
fsync(int fd)
{
    shim_do(int, fd, 1, EIO, syscall(SYS_fsync, fd));
}


int
fdatasync(int fd)
{
    shim_do(int, fd, 1, EIO, syscall(SYS_fdatasync, fd));
}
