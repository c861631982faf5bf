/*
 * What people do in the console API itself is on record, too: in _gateway, as
 * console.* (docs/console-api.md, "On record").  Exports, verifications and
 * changes have a record of their own, which is in the journal before any of
 * the answer leaves; plain reading is folded to one console.read per user, view
 * and minute.
 */

#ifndef CONSOLE_H_INCLUDED
#define CONSOLE_H_INCLUDED

#include "ask.h"

#define CONSOLE_VIEWS  4096         /* of a minute that are told apart */
#define CONSOLE_QUEUE  (4 * 1024 * 1024)

typedef struct console_s  console_t;

/* `wake_fd` is an eventfd that is written when frames are ready.  NULL without
 * memory. */
console_t *console_new(int wake_fd);
void console_free(console_t *c);

/* Number of the process as a sender of frames. */
uint64_t console_instance(const console_t *c);

/* A question was taken; its handler has not been called.  False: it must be on
 * record and there is no room for that, refuse it. */
bool console_begin(console_t *c, ask_question_t *q, const ask_route_t *r);
/* It is over, `status` was answered; `whole`: to its end. */
void console_end(console_t *c, ask_question_t *q, unsigned status, bool whole);

/* A frame is to be appended; with seq, question (conn, seq) is refused when it
 * cannot be.  False: there is no room for it.  Any thread. */
bool console_keep(console_t *c, const void *frame, size_t len, uint64_t conn,
    uint64_t seq);

/* A frame that is to be appended. */
typedef struct console_frame_s  console_frame_t;

struct console_frame_s {
    console_frame_t  *next;
    uint64_t          conn;         /* with seq: the question that must not go
                                       on without it; seq 0: none */
    uint64_t          seq;
    size_t            len;
    char              frame[];
};

/* Takes all of them, oldest first; the caller frees each with free(). */
console_frame_t *console_take(console_t *c);

#endif /* CONSOLE_H_INCLUDED */
