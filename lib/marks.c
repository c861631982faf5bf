#include "marks.h"

#include "digest.h"

#include <stdlib.h>


void
sb_mark(uint8_t mark[SB_MARK], sb_str_t sandbox)
{
    uint8_t  hash[32];

    sb_sha256(hash, sandbox);
    memcpy(mark, hash, SB_MARK);
}


static int
sb_marks_order(const void *a, const void *b)
{
    return memcmp(a, b, SB_MARK);
}


void
sb_marks_sort(uint8_t *marks, size_t n)
{
    if (n) {
        qsort(marks, n, SB_MARK, sb_marks_order);
    }
}


bool
sb_marks_have(sb_str_t marks, sb_str_t sandbox)
{
    uint8_t  mark[SB_MARK];

    if (marks.len < SB_MARK) {
        return false;
    }

    sb_mark(mark, sandbox);

    return bsearch(mark, marks.data, marks.len / SB_MARK, SB_MARK,
                   sb_marks_order)
           != NULL;
}
