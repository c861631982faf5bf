/*
 * execd's event stream (reference/opensandbox-api.md 4): bare JSON objects
 * separated by line feeds, also "data:"-prefixed lines with CR LF and
 * "event:"/"id:" lines (C030).  Any split, any size of an event, bounded
 * memory: text is handed on while it is being decoded.
 */

#ifndef SB_STREAM_H_INCLUDED
#define SB_STREAM_H_INCLUDED

#include "sb.h"

typedef struct sb_stream_s  sb_stream_t;

typedef enum { SB_STDOUT = 0, SB_STDERR = 1 } sb_std_e;

typedef enum {
    SB_STREAM_OPEN = 0,     /* no terminal event yet */
    SB_STREAM_COMPLETE,     /* execution_complete */
    SB_STREAM_FAILED,       /* error event */
    SB_STREAM_RUNTIME       /* typeless {"code","message"} tail */
} sb_stream_end_e;

typedef struct {
    /* Output bytes by the rule of design 5: the text of each stdout/stderr
     * event plus one LF, a text that is a single LF is that LF (but see
     * sb_stream_raw()).  Pieces come
     * as they are decoded; `last` marks the end of an event (its piece may be
     * empty). */
    void  (*output)(void *data, sb_std_e which, const char *p, size_t n,
        bool last);
    /* init event: command or session id. */
    void  (*init)(void *data, sb_str_t id);
    /* a Jupyter result event: its `results` object as raw JSON text, cut at
     * 64 KiB (then `whole` is false). */
    void  (*result)(void *data, sb_str_t json, bool whole);
    void  *data;
} sb_stream_handler_t;

typedef struct {
    sb_stream_end_e  end;
    bool             has_exit_code;
    int32_t          exit_code;         /* 4.3 */
    int64_t          execution_ms;      /* -1: not given */
    int64_t          execution_count;   /* of a Jupyter kernel; -1: not given */
    char             ename[128];        /* NUL-terminated, cut */
    char             evalue[512];
    char             code[128];         /* of the typeless tail */
    char             message[512];
    uint64_t         events;
    uint64_t         unknown_events;
    uint64_t         bad_frames;        /* not JSON: skipped to the next LF */
    bool             incomplete_frame;  /* input ended inside an event */
    bool             killed;            /* traceback says "signal: killed" */
    bool             terminated;        /* ... "signal: terminated" */
} sb_stream_facts_t;

/* NULL without memory.  One parser uses less than 20 KiB whatever passes, and
 * up to 64 KiB more while a result event passes. */
sb_stream_t *sb_stream_new(const sb_stream_handler_t *h);
/* Before the first byte: the text of output is kept as it comes, for kernels
 * give it with its own line ends (no LF is added). */
void sb_stream_raw(sb_stream_t *s);
/* Feeds bytes; never fails. */
void sb_stream_feed(sb_stream_t *s, const char *p, size_t n);
/* The input ended.  Output of an event that was cut is handed on without an
 * LF.  The facts live until sb_stream_free(). */
const sb_stream_facts_t *sb_stream_finish(sb_stream_t *s);
const sb_stream_facts_t *sb_stream_facts(const sb_stream_t *s);
void sb_stream_free(sb_stream_t *s);

#endif /* SB_STREAM_H_INCLUDED */
