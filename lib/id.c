#include "id.h"
#include "digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define SB_US          1000000ull
#define SB_DAY         86400ull

#define SB_UUID7_HI    0x0fffull
#define SB_UUID7_LO    0x3fffffffffffffffull

/* 9999-12-31T23:59:59.999999Z */
#define SB_TIME_MAX    253402300799999999ull


static bool sb_digits(const char *p, size_t n, unsigned *value);
static char *sb_put(char *dst, unsigned value, unsigned n);


static void
sb_uuid7_start(sb_uuid7_t *g, uint64_t ms)
{
    if (g->left == 0) {
        sb_random(g->random, sizeof(g->random));
        g->left = sizeof(g->random) / sizeof(g->random[0]);
    }

    g->left -= 2;

    g->ms = ms;
    g->hi = g->random[g->left] & SB_UUID7_HI;
    g->lo = g->random[g->left + 1] & SB_UUID7_LO;
}


void
sb_uuid7(sb_uuid7_t *g, uint64_t now_us, uint8_t out[16])
{
    uint64_t  ms, a, b;

    ms = now_us / 1000;

    if (ms > g->ms) {
        sb_uuid7_start(g, ms);

    } else if (++g->lo > SB_UUID7_LO) {
        g->lo = 0;

        if (++g->hi > SB_UUID7_HI) {
            /* the order of ids matters more than the last millisecond */
            sb_uuid7_start(g, g->ms + 1);
        }
    }

    a = g->ms << 16 | 7ull << 12 | g->hi;
    b = 2ull << 62 | g->lo;

    for (int i = 7; i >= 0; i--) {
        out[i] = (uint8_t) a;
        out[i + 8] = (uint8_t) b;
        a >>= 8;
        b >>= 8;
    }
}


void
sb_uuid_text(char dst[SB_UUID_LEN + 1], const uint8_t id[16])
{
    char  hex[33];

    sb_hex(hex, id, 16);

    memcpy(dst, hex, 8);
    dst[8] = '-';
    memcpy(dst + 9, hex + 8, 4);
    dst[13] = '-';
    memcpy(dst + 14, hex + 12, 4);
    dst[18] = '-';
    memcpy(dst + 19, hex + 16, 4);
    dst[23] = '-';
    memcpy(dst + 24, hex + 20, 13);
}


sb_rc_t
sb_uuid_parse(uint8_t id[16], sb_str_t text)
{
    static const uint8_t  groups[] = { 4, 2, 2, 2, 6 };

    size_t       n;
    uint8_t      out[16];
    const char  *p;

    if (text.len != SB_UUID_LEN) {
        return SB_ERROR;
    }

    n = 0;
    p = text.data;

    for (size_t i = 0; i < sizeof(groups); i++) {
        if (i > 0 && *p++ != '-') {
            return SB_ERROR;
        }

        if (sb_unhex(out + n, groups[i], sb_str(p, 2 * groups[i])) != SB_OK) {
            return SB_ERROR;
        }

        n += groups[i];
        p += 2 * groups[i];
    }

    memcpy(id, out, sizeof(out));

    return SB_OK;
}


/* Days since 1970-01-01 and back, proleptic Gregorian calendar, in years that
 * begin in March and eras of 400 years, so that leap days come last. */

static uint64_t
sb_days(unsigned year, unsigned month, unsigned day)
{
    unsigned  y, era, yoe, doy, doe;

    y = month <= 2 ? year - 1 : year;
    era = y / 400;
    yoe = y - era * 400;
    doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return (uint64_t) era * 146097 + doe - 719468;
}


static void
sb_date(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
    uint64_t  z;
    unsigned  era, doe, yoe, doy, mp;

    z = days + 719468;
    era = (unsigned) (z / 146097);
    doe = (unsigned) (z % 146097);
    yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    mp = (5 * doy + 2) / 153;

    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = yoe + era * 400 + (*month <= 2 ? 1 : 0);
}


void
sb_time_text(char dst[SB_TIME_LEN + 1], uint64_t us)
{
    uint64_t  s;
    unsigned  year, month, day, second;

    if (us > SB_TIME_MAX) {
        us = SB_TIME_MAX;
    }

    s = us / SB_US;
    sb_date(s / SB_DAY, &year, &month, &day);
    second = (unsigned) (s % SB_DAY);

    dst = sb_put(dst, year, 4);
    *dst++ = '-';
    dst = sb_put(dst, month, 2);
    *dst++ = '-';
    dst = sb_put(dst, day, 2);
    *dst++ = 'T';
    dst = sb_put(dst, second / 3600, 2);
    *dst++ = ':';
    dst = sb_put(dst, second / 60 % 60, 2);
    *dst++ = ':';
    dst = sb_put(dst, second % 60, 2);
    *dst++ = '.';
    dst = sb_put(dst, (unsigned) (us % SB_US), 6);
    *dst++ = 'Z';
    *dst = '\0';
}


sb_rc_t
sb_time_parse(uint64_t *us, sb_str_t text)
{
    static const uint8_t  month_days[12] = {
        31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    };

    bool         leap;
    size_t       n;
    int64_t      t, offset;
    unsigned     year, month, day, hour, minute, second, fraction, oh, om;
    const char  *p, *end;

    p = text.data;

    if (text.len < sizeof("2026-11-29T09:00:00Z") - 1
        || !sb_digits(p, 4, &year) || p[4] != '-'
        || !sb_digits(p + 5, 2, &month) || p[7] != '-'
        || !sb_digits(p + 8, 2, &day) || p[10] != 'T'
        || !sb_digits(p + 11, 2, &hour) || p[13] != ':'
        || !sb_digits(p + 14, 2, &minute) || p[16] != ':'
        || !sb_digits(p + 17, 2, &second)
        || year < 1969 || month < 1 || month > 12 || day < 1
        || day > month_days[month - 1]
        || hour > 23 || minute > 59 || second > 59)
    {
        return SB_ERROR;
    }

    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    if (month == 2 && day == 29 && !leap) {
        return SB_ERROR;
    }

    end = p + text.len;
    p += 19;
    fraction = 0;

    if (*p == '.') {
        p++;

        for (n = 0; p < end && *p >= '0' && *p <= '9'; n++, p++) {
            if (n < 6) {
                fraction = fraction * 10 + (unsigned) (*p - '0');
            }
        }

        if (n < 1 || n > 9) {
            return SB_ERROR;
        }

        for ( /* void */ ; n < 6; n++) {
            fraction *= 10;
        }
    }

    offset = 0;

    if (end - p == 6 && (*p == '+' || *p == '-')) {
        if (!sb_digits(p + 1, 2, &oh) || p[3] != ':'
            || !sb_digits(p + 4, 2, &om) || oh > 23 || om > 59)
        {
            return SB_ERROR;
        }

        offset = (int64_t) oh * 3600 + (int64_t) om * 60;

        if (*p == '-') {
            offset = -offset;
        }

    } else if (end - p != 1 || *p != 'Z') {
        return SB_ERROR;
    }

    t = (int64_t) sb_days(year, month, day) * (int64_t) SB_DAY
        + (int64_t) hour * 3600 + (int64_t) minute * 60 + (int64_t) second
        - offset;

    if (t < 0 || t > (int64_t) (SB_TIME_MAX / SB_US)) {
        return SB_ERROR;
    }

    *us = (uint64_t) t * SB_US + fraction;

    return SB_OK;
}


uint64_t
sb_now_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    return (uint64_t) ts.tv_sec * SB_US + (uint64_t) ts.tv_nsec / 1000;
}


uint64_t
sb_mono_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * SB_US + (uint64_t) ts.tv_nsec / 1000;
}


void
sb_random(void *dst, size_t n)
{
    char     *p;
    ssize_t   got;

    p = dst;

    while (n) {
        got = getrandom(p, n, 0);

        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }

            perror("getrandom() failed, no random numbers can be had");
            abort();
        }

        p += got;
        n -= (size_t) got;
    }
}


static bool
sb_digits(const char *p, size_t n, unsigned *value)
{
    *value = 0;

    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }

        *value = *value * 10 + (unsigned) (p[i] - '0');
    }

    return true;
}


static char *
sb_put(char *dst, unsigned value, unsigned n)
{
    for (unsigned i = n; i > 0; i--) {
        dst[i - 1] = (char) ('0' + value % 10);
        value /= 10;
    }

    return dst + n;
}
