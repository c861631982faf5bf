/*
 * WebSocket frames as they pass (RFC 6455 5): a reader for one direction that
 * counts messages and looks into small text frames and close frames.  It never
 * fails and holds 4 KiB at the most.
 */

#ifndef SB_WS_H_INCLUDED
#define SB_WS_H_INCLUDED

#include "sb.h"

#define SB_WS_TEXT_MAX  4096

typedef struct sb_ws_s  sb_ws_t;

struct sb_ws_s {
    /* set by the caller, or NULL: payload of text and binary messages without
     * its mask, in pieces, `at` bytes into the message; and its end, when
     * `text` holds what a text message said */
    void    (*data)(void *ctx, const sb_ws_t *ws, uint64_t at,
                    const uint8_t *p, size_t n);
    void    (*message)(void *ctx, const sb_ws_t *ws);
    void     *ctx;

    /* set by the reader */
    uint64_t  frames;
    uint64_t  messages;         /* text and binary ones that are complete */
    uint64_t  controls;         /* ping, pong and close frames */
    uint64_t  payload;          /* payload bytes */
    uint16_t  close_code;       /* 0: no close frame yet */
    bool      closed;
    bool      broken;           /* reserved bits or lengths: no longer read */

    /* execd's terminal (5.3): {"type":"exit","exit_code":N} */
    bool      has_exit;
    int32_t   exit_code;

    /* inside */
    uint8_t   head[14];
    uint8_t   head_len;
    uint8_t   opcode;           /* of the message being read */
    uint8_t   frame_opcode;
    bool      fin;
    uint8_t   mask[4];
    bool      masked;
    uint64_t  left;
    uint64_t  offset;           /* in the frame, for the mask */
    size_t    text_len;
    bool      text_cut;
    uint64_t  at;               /* in the message */
    char      text[SB_WS_TEXT_MAX];
};

#define SB_WS_TEXT    0x1       /* opcodes */
#define SB_WS_BINARY  0x2

/*
 * Zero-initialise an sb_ws_t (and set the callbacks), then feed it what passed in one direction, in
 * pieces of any size.  Lengths that are not the shortest possible are accepted,
 * as execd does.  After a complete text message `text` holds its first text_len
 * bytes until the next message begins.  What comes behind a close frame is not
 * looked at.
 */
void sb_ws_feed(sb_ws_t *ws, const void *p, size_t n);

#endif /* SB_WS_H_INCLUDED */
