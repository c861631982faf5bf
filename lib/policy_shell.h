/*
 * Reads a shell command as far as text alone tells what would run: the
 * commands in lists and pipes, in $( ), backticks and <( ), in what `sh -c`,
 * `eval`, `env`, `sudo`, `xargs`, `find -exec` and their like are given.
 */

#ifndef SB_POLICY_SHELL_H_INCLUDED
#define SB_POLICY_SHELL_H_INCLUDED

#include "sb.h"

#define SB_SHELL_DEPTH     8
#define SB_SHELL_COMMANDS  2048
#define SB_SHELL_WORDS     2048         /* of one command */

typedef struct {
    size_t  at, len;        /* in sb_shell_t.out: words without quotes, one
                               blank between, redirections at the end */
    size_t  base;           /* where the base name of the program begins */
} sb_shell_command_t;

typedef struct {
    sb_buf_t             out;
    sb_shell_command_t  *commands;
    size_t               n, room;
    bool                 unread;    /* some of it runs what is not in the text,
                                       or could not be followed */
} sb_shell_t;

/* SB_OK, or SB_NOMEM.  Free with sb_shell_free() in either case. */
sb_rc_t sb_shell_read(sb_shell_t *s, sb_str_t text);
void sb_shell_free(sb_shell_t *s);

#endif /* SB_POLICY_SHELL_H_INCLUDED */
