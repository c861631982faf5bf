/*
 * LD_PRELOAD: lets allocations of one process fail (t/alloc.t).
 *
 * SHIM_ALLOC names a file of 64-bit numbers that the test writes at any time:
 * the process id that is meant (0: none, -1: whoever has it loaded), how many
 * allocations pass first, how many fail then; how many have failed comes back.
 * With SHIM_TRACE in the environment each failure is told with its callers.
 */

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


typedef struct {
    _Atomic int64_t  pid;
    _Atomic int64_t  pass;
    _Atomic int64_t  fail;
    _Atomic int64_t  failed;
} shim_t;


void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);


static shim_t  *shim;
static int      shim_trace;


__attribute__((constructor))
static void
shim_init(void)
{
    int          fd;
    void        *p;
    const char  *path;
    void        *none[1];

    shim_trace = getenv("SHIM_TRACE") != NULL;

    if (shim_trace) {
        /* it allocates the first time */
        (void) backtrace(none, 1);
    }

    path = getenv("SHIM_ALLOC");
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
shim_fails(void)
{
    void    *callers[32];
    int64_t  pid, n;

    if (shim == NULL || (pid = shim->pid) == 0
        || (pid != -1 && pid != getpid()))
    {
        return 0;
    }

    n = shim->pass--;

    if (n > 0 || n <= -shim->fail) {
        return 0;
    }

    shim->failed++;

    if (shim_trace) {
        pid = shim->pid;
        shim->pid = 0;
        backtrace_symbols_fd(callers, backtrace(callers, 32), STDERR_FILENO);
        (void) !write(STDERR_FILENO, "\n", 1);
        shim->pid = pid;
    }

    errno = ENOMEM;

    return 1;
}


void *
malloc(size_t size)
{
    return shim_fails() ? NULL : __libc_malloc(size);
}


void *
calloc(size_t n, size_t size)
{
    return shim_fails() ? NULL : __libc_calloc(n, size);
}


void *
realloc(void *p, size_t size)
{
    return shim_fails() ? NULL : __libc_realloc(p, size);
}


void *
memalign(size_t alignment, size_t size)
{
    return shim_fails() ? NULL : __libc_memalign(alignment, size);
}


void *
aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}


int
posix_memalign(void **p, size_t alignment, size_t size)
{
    void  *memory;

    memory = memalign(alignment, size);

    if (memory == NULL) {
        return ENOMEM;
    }

    *p = memory;

    return 0;
}
