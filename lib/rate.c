/* Accounts of requests (rate.h). */

#include "rate.h"


uint64_t
sb_rate_leaked(uint64_t ms, uint64_t rate)
{
    if (rate && ms > UINT64_MAX / rate) {
        return UINT64_MAX / 1000;
    }

    return ms * rate / 1000;
}
