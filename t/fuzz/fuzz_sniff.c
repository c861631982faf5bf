/*
 * Archives told by their bytes: in pieces of a size that the first byte says, and
 * whole.  Beside memory errors it looks for a difference.
 */

#include <stdlib.h>

#include "sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t       n, step, left;
    sb_sniff_t   whole = { .len = 0 }, pieces = { .len = 0 };
    const char  *p = (const char *) data + 1;

    if (size == 0) {
        return 0;
    }

    step = (size_t) data[0] + 1;
    size--;
    sb_sniff_feed(&whole, p, size);

    for (left = size; left; left -= n, p += n) {
        n = step < left ? step : left;
        sb_sniff_feed(&pieces, p, n);
    }

    if (sb_sniff_begins(&whole) != sb_sniff_begins(&pieces)
        || sb_sniff_archive(&whole) != sb_sniff_archive(&pieces))
    {
        abort();
    }

    return 0;
}
