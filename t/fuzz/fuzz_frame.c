/* Frames: whatever is taken for one can be walked and written again. */

#include "frame.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char               *copy;
    size_t              need, n, seen = 0;
    sb_rc_t             rc;
    uint16_t            tag;
    sb_str_t            fields, value;
    sb_frame_t          f;
    sb_frame_writer_t   w;

    rc = sb_frame_read(&f, (const char *) data, size, &need);

    if (rc == SB_AGAIN && (need <= size || need > SB_FRAME_MAX)) {
        abort();
    }

    if (rc != SB_OK) {
        return 0;
    }

    copy = malloc(f.length);
    if (copy == NULL) {
        return 0;
    }

    sb_frame_begin(&w, copy, f.length, f.type, f.flags, f.seq, f.op, f.time_us);

    for (fields = f.fields; sb_field_next(&fields, &tag, &value); seen++) {
        (void) sb_value_u64(value, 1);
        (void) sb_field_u64(&f, tag, seen);
        sb_frame_put(&w, tag, value);
    }

    n = sb_frame_end(&w);

    if (fields.len || n != f.length || n > size || memcmp(copy, data, n) != 0) {
        abort();
    }

    free(copy);

    return 0;
}
