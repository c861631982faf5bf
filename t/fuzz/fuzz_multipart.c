/* Uploads with the boundary "B": the verdict and the files do not depend on
 * splits; the input is also tried as a Content-Type. */

#include "multipart.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static sb_multipart_t *
run(const char *p, size_t n, size_t step, sb_rc_t *rc)
{
    size_t           i, part;
    sb_multipart_t  *m;

    m = sb_multipart_new(sb_lit("B"), NULL);
    if (m == NULL) {
        abort();
    }

    *rc = SB_AGAIN;

    for (i = 0; i < n && *rc >= SB_OK; i += part) {
        part = n - i < step ? n - i : step;
        *rc = sb_multipart_feed(m, p + i, part);
    }

    if (*rc >= SB_OK) {
        *rc = sb_multipart_finish(m);
    }

    if (*rc != SB_OK && sb_multipart_reason(m) == NULL) {
        abort();
    }

    return m;
}


static void
compare(const sb_multipart_t *a, const sb_multipart_t *b)
{
    size_t                      i;
    const sb_multipart_file_t  *x, *y;

    if (sb_multipart_count(a) != sb_multipart_count(b)) {
        abort();
    }

    for (i = 0; i < sb_multipart_count(a); i++) {
        x = sb_multipart_file(a, i);
        y = sb_multipart_file(b, i);

        if (!sb_eq(x->path, y->path) || !sb_eq(x->filename, y->filename)
            || x->size != y->size || x->mode != y->mode
            || memcmp(x->sha256, y->sha256, 32) != 0
            || !x->has_file || !x->has_metadata || x->path.len == 0)
        {
            abort();
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           step;
    sb_rc_t          rc, other;
    sb_str_t         boundary;
    const char      *p = (const char *) data;
    sb_multipart_t  *whole, *part;

    if (size > 200 * 1000) {
        return 0;
    }

    if (sb_multipart_boundary(sb_str(p, size), &boundary) == SB_OK
        && (boundary.data < p || boundary.data + boundary.len > p + size
            || boundary.len == 0 || boundary.len > 70))
    {
        abort();
    }

    whole = run(p, size, size + 1, &rc);

    for (step = 1; step < 20; step += 6) {
        part = run(p, size, step, &other);

        if (rc != other) {
            abort();
        }

        if (rc == SB_OK) {
            compare(whole, part);
        }

        sb_multipart_free(part);
    }

    sb_multipart_free(whole);

    return 0;
}
