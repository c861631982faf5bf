/*
 * What gcc's -fsanitize-coverage=trace-pc calls at every edge of the code.  Only
 * t/fuzz/run_seeds.c looks at it; elsewhere there is no map and nothing happens.
 * Must not be compiled with that option itself.
 */

#include <stddef.h>
#include <stdint.h>

#define COV_SIZE  65536

uint8_t           *cov_map;         /* COV_SIZE counters, or NULL */
static uintptr_t   cov_before;

void __sanitizer_cov_trace_pc(void);


void
__sanitizer_cov_trace_pc(void)
{
    uintptr_t  pc;

    if (cov_map == NULL) {
        return;
    }

    pc = (uintptr_t) __builtin_return_address(0);
    pc = (pc ^ (pc >> 15)) * 0x9e3779b1u;

    /* the way from one place to the next, not the place alone */
    cov_map[(pc ^ cov_before) % COV_SIZE]++;
    cov_before = pc >> 1;
}
