#include "number.h"


bool
sb_number(sb_str_t text, unsigned base, uint64_t max, uint64_t *n)
{
    size_t    i;
    uint64_t  v;
    unsigned  digit;

    if (text.len == 0) {
        return false;
    }

    v = 0;

    for (i = 0; i < text.len; i++) {
        digit = (unsigned) (unsigned char) text.data[i] - '0';

        if (digit >= base || v > (UINT64_MAX - digit) / base) {
            return false;
        }

        v = v * base + digit;
    }

    if (v > max) {
        return false;
    }

    *n = v;

    return true;
}


bool
sb_number_signed(sb_str_t text, int64_t least, int64_t most, int64_t *n)
{
    bool      negative;
    int64_t   v;
    uint64_t  u;

    negative = text.len != 0 && text.data[0] == '-';

    if (negative) {
        text.data++;
        text.len--;
    }

    if (!sb_number(text, 10, (uint64_t) INT64_MAX + negative, &u)) {
        return false;
    }

    v = negative ? -1 - (int64_t) (u - 1) : (int64_t) u;
    v = u ? v : 0;

    if (v < least || v > most) {
        return false;
    }

    *n = v;

    return true;
}
