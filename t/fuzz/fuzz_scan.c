/*
 * Credentials in files: in pieces of a size that the first byte says, and whole.
 * Beside memory errors it looks for a difference.
 */

#include <stdlib.h>

#include "scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t       n, step, left;
    sb_scan_t    whole = { .found = 0 }, pieces = { .found = 0 };
    const char  *p = (const char *) data;

    if (size == 0) {
        return 0;
    }

    step = (size_t) data[0] + 1;
    sb_scan_feed(&whole, p, size);

    for (left = size; left; left -= n, p += n) {
        n = step < left ? step : left;
        sb_scan_feed(&pieces, p, n);
    }

    if (whole.found != pieces.found) {
        abort();
    }

    return 0;
}
