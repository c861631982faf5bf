/* JSON: the verdict does not depend on splits, and the canonical form of what
 * is accepted is accepted and its own canonical form. */

#include "json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static sb_rc_t
on_event(void *data, sb_json_event_e event, sb_str_t text, unsigned depth)
{
    size_t  *events = data;

    (void) text;
    *events += (size_t) event + depth;

    return depth > 64 ? SB_ERROR : SB_OK;
}


static sb_rc_t
run(const char *p, size_t n, size_t step, size_t *events)
{
    size_t      i, part;
    sb_rc_t     rc = SB_AGAIN;
    sb_json_t  *j;

    *events = 0;

    j = sb_json_new(on_event, events, NULL);
    if (j == NULL) {
        abort();
    }

    for (i = 0; i < n && rc >= SB_OK; i += part) {
        part = n - i < step ? n - i : step;
        rc = sb_json_feed(j, p + i, part);
    }

    if (rc >= SB_OK) {
        rc = sb_json_finish(j);
    }

    sb_json_free(j);

    return rc;
}


static void
check_canonical(const char *p, size_t n)
{
    sb_rc_t      rc;
    sb_buf_t     a = { .max = 1 << 24 }, b = { .max = 1 << 24 };
    sb_jdoc_t   *d;

    d = sb_jdoc_parse(sb_str(p, n), NULL, &rc);
    if (d == NULL) {
        abort();
    }

    if (sb_jv_canonical(&a, sb_jdoc_root(d)) != SB_OK) {
        abort();
    }

    sb_jdoc_free(d);

    d = sb_jdoc_parse(sb_str(a.data, a.len), NULL, &rc);

    if (d == NULL || sb_jv_canonical(&b, sb_jdoc_root(d)) != SB_OK
        || a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
    {
        abort();
    }

    sb_jdoc_free(d);
    sb_buf_free(&a);
    sb_buf_free(&b);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t       whole, part;
    sb_rc_t      rc;
    sb_buf_t     b = { .max = 1 << 20 };
    const char  *p = (const char *) data;

    if (size > 100 * 1000) {
        return 0;
    }

    rc = run(p, size, size + 1, &whole);

    if (run(p, size, 1, &part) != rc || (rc == SB_OK && whole != part)
        || run(p, size, 7, &part) != rc || (rc == SB_OK && whole != part))
    {
        abort();
    }

    if (rc == SB_OK) {
        check_canonical(p, size);
    }

    if (sb_json_write_str(&b, sb_str(p, size)) != SB_OK
        || run(b.data, b.len, b.len, &part) != SB_OK)
    {
        abort();
    }

    sb_buf_free(&b);

    return 0;
}
