/* What the two halves of the shell reader share: words come from
 * policy_shell.c, what they run from policy_shell_run.c. */

#ifndef SB_POLICY_SHELL_INT_H_INCLUDED
#define SB_POLICY_SHELL_INT_H_INCLUDED

#include "policy_shell.h"

/* of a word */
#define SB_SW_EXPANDS  0x01u    /* holds what only the shell can fill in */
#define SB_SW_GLOB     0x02u    /* may become other words */
#define SB_SW_QUOTED   0x04u
#define SB_SW_ASSIGN   0x08u    /* NAME=... */
#define SB_SW_REDIR    0x10u    /* of a redirection, its operator included */

typedef struct {
    size_t    at, len;          /* in sb_shell_line_t.text */
    unsigned  flags;
} sb_shell_word_t;

/* One simple command being read. */
typedef struct {
    sb_shell_t       *shell;
    unsigned          depth;
    sb_buf_t          text;
    sb_shell_word_t  *words;
    size_t            n, room;
    sb_str_t          input;    /* of <<< */
    bool              has_input;
    bool              stdin_runs;   /* what it is fed is run */
} sb_shell_line_t;

static inline sb_str_t
sb_shell_word(const sb_shell_line_t *line, size_t i)
{
    return sb_str(line->text.data + line->words[i].at, line->words[i].len);
}

/* Reads a text inside of another. */
sb_rc_t sb_shell_parse(sb_shell_t *s, sb_str_t text, unsigned depth);

/* Emits the command of the line and what it runs in turn. */
sb_rc_t sb_shell_run(sb_shell_line_t *line);

#endif /* SB_POLICY_SHELL_INT_H_INCLUDED */
