/* Ids and times (design 4; history format 15). */

#ifndef SB_ID_H_INCLUDED
#define SB_ID_H_INCLUDED

#include "sb.h"

#define SB_UUID_LEN  36
#define SB_TIME_LEN  27      /* 2026-11-29T09:00:00.000001Z */

/* State of one generator; not shared between threads.  Zero-initialise; after
 * fork() zero it again. */
typedef struct {
    uint64_t  ms;
    uint64_t  hi;       /* 12 bits of the counter */
    uint64_t  lo;       /* 62 bits of the counter */
    size_t    left;     /* of what the system gave for starts to come */
    uint64_t  random[32];
} sb_uuid7_t;

/* Next UUIDv7 (history format 15.3): 48-bit Unix milliseconds, then a 74-bit
 * counter with a random start in each new millisecond, +1 within it; the last
 * millisecond is used again when the clock goes back, the next one when the
 * counter is full: ids of one generator always grow.  `now_us` is Unix time
 * in microseconds. */
void sb_uuid7(sb_uuid7_t *g, uint64_t now_us, uint8_t out[16]);

/* Text form, lower-case with hyphens; dst gets 36 bytes and a NUL. */
void sb_uuid_text(char dst[SB_UUID_LEN + 1], const uint8_t id[16]);
/* Parses that form in either case.  SB_ERROR when it is anything else. */
sb_rc_t sb_uuid_parse(uint8_t id[16], sb_str_t text);

/* Unix microseconds -> "YYYY-MM-DDTHH:MM:SS.ffffffZ", NUL-terminated.  Times
 * after the year 9999 become its last microsecond. */
void sb_time_text(char dst[SB_TIME_LEN + 1], uint64_t us);
/* The reverse, with no or 1 to 9 digits (Go leaves trailing zeros out; below a
 * microsecond they are cut) and `Z` or an offset such as +05:30.  SB_ERROR for
 * anything else, a time before 1970 and a leap second. */
sb_rc_t sb_time_parse(uint64_t *us, sb_str_t text);

/* Now, in Unix microseconds. */
uint64_t sb_now_us(void);

/* Microseconds of a clock that nobody sets, for deadlines and durations. */
uint64_t sb_mono_us(void);

/* n bytes from the system's random source.  Aborts the process when the
 * kernel has none: nothing may go on with guessable ids. */
void sb_random(void *dst, size_t n);

#endif /* SB_ID_H_INCLUDED */
