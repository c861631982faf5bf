/*
 * Kernels: an interpreter that lives on between pieces of code, as Jupyter's do
 * for the real execd.  Shared by execd_code.c and execd_kernel*.c.
 */

#ifndef RT_EXECD_KERNEL_H_INCLUDED
#define RT_EXECD_KERNEL_H_INCLUDED

#include <pthread.h>
#include <sys/types.h>

#include "execd.h"

#define RT_KERNELS_MAX  64

typedef enum { RT_KERNEL_PYTHON, RT_KERNEL_BASH } rt_kernel_lang_e;

typedef struct rt_kernel_s  rt_kernel_t;

struct rt_kernel_s {
    rt_kernel_t       *next;
    char               id[37];
    rt_kernel_lang_e   lang;
    bool               standard;    /* of its language, for code without one */
    char              *cwd;         /* NULL: ours */
    bool               busy;
    bool               deleted;
    unsigned           refs;

    pid_t              pid;         /* 0: not started, or it has died */
    int                pidfd;
    int                in;          /* code goes in here */
    int                out, err;
    int                ctl;         /* what the interpreter tells: JSON lines */
};

/* Guards the table of kernels and all but the descriptors of one that is
 * busy. */
extern pthread_mutex_t     rt_kernels_lock;

/* The interpreter and its part of the talk. */
extern const char          rt_kernel_python[];
extern const char          rt_kernel_bash[];

/* Under the lock: starts the interpreter.  0 or -1 with errno. */
int rt_kernel_start(rt_kernel_t *k);
/* Under the lock: kills it and closes what belongs to it. */
void rt_kernel_end(rt_kernel_t *k);
/* Under the lock. */
void rt_kernel_unref(rt_kernel_t *k);

/* Runs code in a kernel whose busy the caller has set, and answers r. */
void rt_kernel_run(rt_req_t *r, rt_kernel_t *k, sb_str_t code);

/* Interrupts what runs in the context of this id.  false: there is none. */
bool rt_kernel_interrupt(const char *id);

#endif /* RT_EXECD_KERNEL_H_INCLUDED */
