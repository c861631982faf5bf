/* The clock that is measured by. */

#ifndef BENCH_CLOCK_H_INCLUDED
#define BENCH_CLOCK_H_INCLUDED

#include <stdint.h>
#include <time.h>

/* Microseconds of a clock that nobody sets. */
static inline uint64_t
now_us(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

#endif /* BENCH_CLOCK_H_INCLUDED */
