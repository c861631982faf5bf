#include "inspect_int.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>


#if defined(__x86_64__)
#define CONFINE_ARCH  AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CONFINE_ARCH  AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_SANITIZER  1
#endif


static bool
confine_limit(__rlimit_resource_t what, rlim_t soft, rlim_t hard)
{
    struct rlimit  r = { soft, hard };

    return setrlimit(what, &r) == 0;
}


#if defined(CONFINE_ARCH) && !defined(CONFINE_SANITIZER)

#define LOAD(field)  BPF_STMT(BPF_LD|BPF_W|BPF_ABS,                           \
                              offsetof(struct seccomp_data, field))
/* Low halves of arguments: both are little-endian. */
#define ARG(n)       BPF_STMT(BPF_LD|BPF_W|BPF_ABS,                           \
                              offsetof(struct seccomp_data, args)             \
                              + (n) * sizeof(uint64_t))
#define RETURN(v)    BPF_STMT(BPF_RET|BPF_K, (v))
#define REFUSE       RETURN(SECCOMP_RET_ERRNO|EPERM)
#define ALLOW        RETURN(SECCOMP_RET_ALLOW)
/* The next n statements are for this call alone. */
#define CALL(nr, n)  BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, (nr), 0, (n))
#define ALWAYS(nr)   CALL((nr), 1), ALLOW
/* Four statements each, the last of which refuses. */
#define ONLY_OF(fd)  ARG(0),                                                  \
                     BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, (fd), 0, 1),             \
                     ALLOW, REFUSE
#define NOT_TO_RUN   ARG(2),                                                  \
                     BPF_JUMP(BPF_JMP|BPF_JSET|BPF_K, PROT_EXEC, 1, 0),       \
                     ALLOW, REFUSE

/* All else, opening above all, says EPERM. */
static const struct sock_filter  confine_calls[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, CONFINE_ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),

    LOAD(nr),
    CALL(__NR_pread64, 4),
    ONLY_OF(INSPECT_FILE),

    CALL(__NR_write, 4),
    ONLY_OF(INSPECT_ANSWER),

    /* memory: of no file, not to be run */
    CALL(__NR_mmap, 6),
    ARG(3),
    BPF_JUMP(BPF_JMP|BPF_JSET|BPF_K, MAP_ANONYMOUS, 0, 3),
    NOT_TO_RUN,

    CALL(__NR_mprotect, 4),
    NOT_TO_RUN,

    ALWAYS(__NR_munmap),
    ALWAYS(__NR_mremap),
    ALWAYS(__NR_madvise),
    ALWAYS(__NR_brk),
    ALWAYS(__NR_futex),
    ALWAYS(__NR_clock_gettime),
    ALWAYS(__NR_gettimeofday),
    ALWAYS(__NR_rt_sigreturn),
    ALWAYS(__NR_restart_syscall),
    ALWAYS(__NR_exit),
    ALWAYS(__NR_exit_group),
    REFUSE
};


static const char *
confine_calls_only(void)
{
    struct sock_fprog  program;

    program.len = sizeof(confine_calls) / sizeof(confine_calls[0]);
    program.filter = (struct sock_filter *) (uintptr_t) confine_calls;

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0
           ? NULL : "system calls";
}

#elif defined(CONFINE_SANITIZER)

/* A search for leaks needs a process that looks at this one. */
int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
    return 1;
}


/* The sanitizers open files, and need more memory than there is. */
static const char *
confine_calls_only(void)
{
    return NULL;
}

#else
#error "the numbers of system calls are known for x86-64 and arm64 only"
#endif


const char *
inspect_confine(unsigned seconds, uint64_t memory, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1
        || (parent && getppid() != parent))
    {
        return "outliving its parent";
    }

    /* SIGXCPU first, SIGKILL a second later */

    if (setpriority(PRIO_PROCESS, 0, 5) == -1 && errno != EACCES) {
        return "priority";
    }

    if (!confine_limit(RLIMIT_CPU, seconds, (rlim_t) seconds + 1)
        || !confine_limit(RLIMIT_CORE, 0, 0)
        || !confine_limit(RLIMIT_NPROC, 0, 0)
        || !confine_limit(RLIMIT_MEMLOCK, 0, 0))
    {
        return "resources";
    }

#if !defined(CONFINE_SANITIZER)
    if (!confine_limit(RLIMIT_NOFILE, 0, 0)
        || !confine_limit(RLIMIT_AS, memory, memory))
    {
        return "resources";
    }
#else
    (void) memory;
#endif

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
    {
        return "privileges";
    }

    return confine_calls_only();
}
