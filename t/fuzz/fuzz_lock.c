/*
 * X-Sandbox-Lock: what is read of it, written again, is read as the same; each
 * path is absolute and in its one spelling, and no part of it climbs.
 */

#include <stdio.h>
#include <stdlib.h>

#include "lock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check(bool so, const char *what)
{
    if (!so) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}


static size_t
write_again(char *dst, const sb_lock_key_t *keys, size_t n)
{
    char    *p;
    size_t   i, j;

    p = dst;

    for (i = 0; i < n; i++) {
        p += sprintf(p, "%s%s:", i ? "," : "", keys[i].write ? "write" : "read");

        for (j = 0; j < keys[i].path.len; j++) {
            p += sprintf(p, "%%%02X", (unsigned char) keys[i].path.data[j]);
        }
    }

    return (size_t) (p - dst);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char           *mem, *again, *twice, path[SB_LOCK_PATH + 2];
    size_t          i, n, m, len;
    sb_rc_t         rc;
    sb_str_t        header;
    const char     *reason;
    sb_lock_key_t   keys[SB_LOCK_KEYS], other[SB_LOCK_KEYS];

    header = sb_str(data, size);
    mem = malloc(size + 2 * SB_LOCK_KEYS);
    again = malloc(3 * size + 16 * SB_LOCK_KEYS);
    twice = malloc(3 * size + 32 * SB_LOCK_KEYS);
    check(mem && again && twice, "memory");

    rc = sb_lock_read(keys, &n, header, mem, &reason);
    check(rc == SB_OK || rc == SB_AMBIGUOUS || rc == SB_LIMIT, "result");
    check(rc == SB_OK || reason != NULL, "a reason");

    if (rc == SB_OK) {
        check(n > 0 && n <= SB_LOCK_KEYS, "keys");

        for (i = 0; i < n; i++) {
            check(keys[i].path.len && keys[i].path.data[0] == '/', "absolute");
            len = sb_lock_path(path, keys[i].path);
            check(sb_eq(sb_str(path, len), keys[i].path), "one spelling");
        }

        len = write_again(again, keys, n);

        if (len <= SB_LOCK_HEADER) {
            check(sb_lock_read(other, &m, sb_str(again, len), twice, &reason)
                  == SB_OK && m == n, "read again");

            for (i = 0; i < n; i++) {
                check(keys[i].write == other[i].write
                      && sb_eq(keys[i].path, other[i].path), "the same");
            }
        }
    }

    /* any path: the spelling of a spelling is itself */
    if (size <= SB_LOCK_PATH) {
        len = sb_lock_path(path, header);
        n = sb_lock_path(again, sb_str(path, len));
        check(sb_eq(sb_str(path, len), sb_str(again, n)), "stable");
        check((size && data[0] == '/') == (path[0] == '/'), "kind");
    }

    free(mem);
    free(again);
    free(twice);

    return 0;
}
