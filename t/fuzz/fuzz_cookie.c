/* Cookies: pairs lie in their header, one behind the other; without ours nothing of
 * ours is left, all others are, as they were and in their order, and the buffer is
 * not larger than the header. */

#include "cookie.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* The next pair that is not ours. */

static bool
next_theirs(sb_str_t *rest, sb_str_t *pair)
{
    const char  *last;
    sb_str_t     name, value;

    do {
        last = rest->data;

        if (!sb_cookie_next(rest, pair, &name, &value)) {
            return false;
        }

        if (pair->len == 0 || pair->data < last
            || rest->data < pair->data + pair->len
            || memchr(pair->data, ';', pair->len)
            || name.data != pair->data || name.len > pair->len
            || value.data + value.len != pair->data + pair->len
            || memchr(name.data, '=', name.len)
            || (name.len + value.len == pair->len && value.len))
        {
            abort();
        }

    } while (sb_cookie_ours(name));

    return true;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char      *header, *to;
    size_t     n;
    sb_str_t   whole, was, is, pair, left;

    /* each in memory of its own, so that a byte more is seen */

    header = malloc(size ? size : 1);
    to = malloc(size ? size : 1);

    if (header == NULL || to == NULL) {
        abort();
    }

    if (size) {
        memcpy(header, data, size);
    }

    whole = sb_str(header, size);
    n = sb_cookie_strip(to, whole);

    if (n > size || sb_cookie_has_ours(sb_str(to, n))) {
        abort();
    }

    was = whole;
    is = sb_str(to, n);

    while (next_theirs(&was, &pair)) {
        if (!next_theirs(&is, &left) || left.len != pair.len
            || memcmp(left.data, pair.data, pair.len) != 0)
        {
            abort();
        }
    }

    if (next_theirs(&is, &left)) {
        abort();
    }

    (void) sb_cookie_foreign(whole);

    free(header);
    free(to);

    return 0;
}
