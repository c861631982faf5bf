/*
 * LD_PRELOAD: the n-th eventfd() of a process, SHIM_EVENTFD, fails as it does
 * where there are no descriptors left (t/faults.t).
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>


int
eventfd(unsigned n, int flags)
{
    const char       *at;

    static unsigned   calls;

    at = getenv("SHIM_EVENTFD");

    if (at && ++calls == strtoul(at, NULL, 10)) {
        errno = ENFILE;
        return -1;
    }

    return (int) syscall(SYS_eventfd2, n, flags);
}
