/*
 * lib/diff: applied to the one text, the difference gives the other, whatever
 * the bounds of work are.  The first byte says which bounds, the next two where
 * the first text ends.
 */

#include <assert.h>
#include <stdlib.h>

#include "diff.h"
#include "t/unit/patch.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t            at, changed;
    sb_rc_t           rc;
    sb_buf_t          diff, out;
    sb_str_t          a, b;
    sb_diff_limits_t  limits;

    if (size < 3) {
        return 0;
    }

    at = (size_t) (data[1] | data[2] << 8) % (size - 2);
    a = sb_str(data + 3, at);
    b = sb_str(data + 3 + at, size - 3 - at);

    memset(&limits, 0, sizeof(limits));
    limits.bytes = data[0] & 1 ? 1 + data[0] : 0;
    limits.lines = data[0] & 2 ? 1 + data[0] / 16 : 0;
    limits.work = data[0] & 4 ? 1 + data[0] : 0;

    memset(&diff, 0, sizeof(diff));
    memset(&out, 0, sizeof(out));
    out.max = size + 1;

    rc = sb_diff(&diff, sb_lit("/a"), a, sb_lit("/b"), b, &limits);

    if (limits.bytes) {
        assert(diff.len <= limits.bytes);
    }

    assert(rc == SB_OK || rc == SB_LIMIT);

    if (rc == SB_OK) {
        assert(patch_apply(&out, a, sb_str(diff.data, diff.len), &changed));
        assert(sb_eq(sb_str(out.data, out.len), b));
    }

    sb_buf_free(&diff);
    sb_buf_free(&out);

    return 0;
}
