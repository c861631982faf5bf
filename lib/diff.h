/*
 * Unified differences of two texts, line by line.  Myers' algorithm in linear
 * space, bounded in work and in what it writes: where the bound of work is
 * reached the rest counts as replaced as a whole, which is still true.
 */

#ifndef SB_DIFF_H_INCLUDED
#define SB_DIFF_H_INCLUDED

#include "sb.h"

#define SB_DIFF_BYTES    (64 * 1024)    /* of the result */
#define SB_DIFF_LINES    65536          /* that differ, of one side */
#define SB_DIFF_WORK     (4 * 1024 * 1024)
#define SB_DIFF_CONTEXT  3

typedef struct {
    size_t    bytes;        /* of the result; 0: SB_DIFF_BYTES */
    size_t    lines;        /* more: replaced as a whole; 0: SB_DIFF_LINES */
    uint64_t  work;         /* steps; 0: SB_DIFF_WORK */
} sb_diff_limits_t;

/* Is it a text: valid UTF-8 without NUL? */
bool sb_diff_is_text(sb_str_t s);

/*
 * Appends the difference in the format of `diff -u` to `out`, whose `max` it
 * sets when that is 0.  A name with data NULL is "/dev/null": there is no such
 * file on that side, its text is empty.  Equal texts give nothing.  The caller
 * has seen to it that both are texts.
 *
 * SB_OK; SB_LIMIT: it was cut, behind a whole line (the numbers in the last
 * "@@" then speak of more than follows); SB_NOMEM.
 */
sb_rc_t sb_diff(sb_buf_t *out, sb_str_t before_name, sb_str_t before,
    sb_str_t after_name, sb_str_t after, const sb_diff_limits_t *limits);

#endif /* SB_DIFF_H_INCLUDED */
