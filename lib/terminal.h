/*
 * execd's terminal (reference 5) as it passes in both directions: WebSocket
 * messages -> output, replay, what was typed, sizes, signals, the end.  It
 * changes nothing, never fails, and holds a few KiB.
 */

#ifndef SB_TERMINAL_H_INCLUDED
#define SB_TERMINAL_H_INCLUDED

#include "echo.h"
#include "ws.h"

typedef enum {
    SB_PTY_HIDDEN = 0,      /* what was echoed (echo.h) */
    SB_PTY_ON,              /* all of it */
    SB_PTY_OFF
} sb_pty_input_e;

/* What a note is about; its text in brackets. */
#define SB_PTY_ATTACH   'a'     /* of the module: the session's id */
#define SB_PTY_MODE     'm'     /* "pty" or "pipe" */
#define SB_PTY_RESIZE   'r'     /* "80x24" */
#define SB_PTY_SIGNAL   's'     /* "SIGINT" */
#define SB_PTY_EXIT     'x'     /* the exit code */
#define SB_PTY_FAULT    'e'     /* code of an error frame */
#define SB_PTY_COMMAND  'c'     /* a command derived from what was typed */

typedef struct {
    /* set by the caller; pieces live for the call only */

    /* stdout (0) or stderr (1); `at`: bytes of both since it was opened */
    void     (*output)(void *ctx, unsigned stream, uint64_t at, const char *p,
                       size_t n);
    /* `offset`: of the session's output */
    void     (*replay)(void *ctx, uint64_t offset, const char *p, size_t n);
    void     (*input)(void *ctx, const char *p, size_t n);
    void     (*note)(void *ctx, char what, sb_str_t text);
    void      *ctx;
    sb_pty_input_e  keep;

    uint64_t   now_us;          /* to be set before bytes are fed */

    uint64_t   shown;           /* bytes of live output */
    uint64_t   replayed;
    uint64_t   typed;
    uint64_t   typed_unread;    /* text messages that were too long, or nothing
                                   that execd would take */

    /* inside */
    uint8_t    channel;
    uint8_t    offset_len;
    uint64_t   offset;
    uint8_t    client_channel;
    sb_echo_t  echo;
} sb_pty_t;

/* Connects the readers of both directions; all three zero-initialised but for
 * what the caller sets.  Then feed the readers. */
void sb_pty_init(sb_pty_t *pty, sb_ws_t *from_server, sb_ws_t *from_client);
/* Nothing more comes. */
void sb_pty_end(sb_pty_t *pty);

#endif /* SB_TERMINAL_H_INCLUDED */
