/* Accounts of requests: leaky buckets, in which a request weighs 1000. */

#ifndef SB_RATE_H_INCLUDED
#define SB_RATE_H_INCLUDED

#include "sb.h"

/* What leaks out of an account in so many ms, at `rate` requests in 1000 s; no
 * time is too long. */
uint64_t sb_rate_leaked(uint64_t ms, uint64_t rate);

#endif /* SB_RATE_H_INCLUDED */
