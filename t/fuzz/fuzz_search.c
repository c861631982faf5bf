/* Questions of people against texts: what is found is among what was asked, a
 * question finds itself, and what stands beside a text takes nothing away.  A
 * line feed ends the question; sequences of terminals, which count in texts only,
 * are not in it. */

#include "search.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char         *both;
    size_t        at;
    sb_rc_t       rc;
    uint32_t      all, found;
    sb_str_t      q, text;
    sb_search_t  *s;

    for (at = 0; at < size && data[at] != '\n' && data[at] != 0x1b; at++) { /* void */ }

    q = sb_str(data, at);
    text = at < size ? sb_str(data + at + 1, size - at - 1) : sb_str(data, 0);
    s = sb_search_new(q, &rc);

    if (s == NULL) {
        if (rc != SB_DECLINED && rc != SB_LIMIT) {
            abort();
        }

        return 0;
    }

    all = sb_search_all(s);
    found = sb_search_find(s, text);

    if (all == 0 || (found & ~all) || sb_search_find(s, q) != all) {
        abort();
    }

    both = malloc(text.len + 1 + q.len);
    if (both == NULL) {
        abort();
    }

    memcpy(both, text.data, text.len);
    both[text.len] = '\n';
    memcpy(both + text.len + 1, q.data, q.len);

    if (sb_search_find(s, sb_str(both, text.len + 1 + q.len)) != all
        || (sb_search_find(s, sb_str(both, text.len + 1)) & found) != found)
    {
        abort();
    }

    free(both);
    sb_search_free(s);

    return 0;
}
