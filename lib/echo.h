/*
 * What was typed at a terminal and came back: the one rule by which typed bytes
 * are kept (sandbox_record_input hidden).
 *
 * Typed bytes wait, line by line, and are kept only when the whole line was
 * echoed: every printable byte of it was the next printable byte of the output,
 * within SB_ECHO_US, and then came a new line.  Escape sequences of the output,
 * and what a shell prints after all that was typed has been echoed (completion,
 * redrawn rests of lines), stand between.  Otherwise the whole line is given up:
 * a password that is not echoed differs from whatever is printed next, and what
 * is kept stands in the output as well.  Bytes that end a line without a new
 * line (Ctrl-C, Ctrl-D, Ctrl-Z, Ctrl-\) are kept by themselves.
 */

#ifndef SB_ECHO_H_INCLUDED
#define SB_ECHO_H_INCLUDED

#include "sb.h"

#define SB_ECHO_LINE  1024          /* bytes of lines that wait */
#define SB_ECHO_US    2000000u

typedef struct {
    /* set by the caller: a line that was echoed, its end included; `prompt`
     * tells that it was echoed behind something that looks like a prompt */
    void     (*kept)(void *ctx, sb_str_t line, bool prompt);
    void      *ctx;

    uint64_t   kept_bytes;
    uint64_t   hidden_bytes;        /* given up */

    /* inside */
    size_t     len;
    size_t     next;                /* the first that is not echoed yet */
    uint64_t   since_us;            /* it waits since */
    bool       dirty;               /* the rest of this line is given up too */
    bool       prompt;
    bool       behind_cr;           /* the new line has begun with a CR */
    bool       behind_bs;
    uint8_t    typed_esc;
    uint8_t    typed_args;
    uint8_t    shown_esc;
    char       shown[2];            /* last of the output's line */
    uint8_t    kind[SB_ECHO_LINE];
    char       line[SB_ECHO_LINE];
} sb_echo_t;

/* Zero-initialise, set kept and ctx, then tell what passes, in order. */
void sb_echo_typed(sb_echo_t *e, const void *p, size_t n, uint64_t now_us);
void sb_echo_shown(sb_echo_t *e, const void *p, size_t n, uint64_t now_us);
/* Nothing more comes: what waits is given up. */
void sb_echo_end(sb_echo_t *e);

/*
 * The command that a typed line is: its end left out, deletions applied.  Its
 * length in dst, which holds line.len bytes; 0 when there is none, or it cannot
 * be told (completion, history, the cursor was moved).
 */
size_t sb_echo_command(char *dst, sb_str_t line);

#endif /* SB_ECHO_H_INCLUDED */
