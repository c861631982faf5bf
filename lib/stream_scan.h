/*
 * What the three files of the stream scanner share; nothing for others.
 *
 * stream.c says what events mean, stream_scan.c finds them in the bytes,
 * stream_text.c decodes strings and hands them on.
 */

#ifndef SB_STREAM_SCAN_H_INCLUDED
#define SB_STREAM_SCAN_H_INCLUDED

#include "stream.h"


#define SB_STREAM_BUF     8192      /* decoded text not yet handed on */
#define SB_STREAM_DIRECT  1024      /* longer runs are not copied */
#define SB_STREAM_RESULT  (64 * 1024 - 1)     /* with its NUL: 64 KiB */
#define SB_STREAM_ID      256
#define SB_STREAM_WORD    64        /* keys, types, numbers, traceback lines */
#define SB_STREAM_DEPTH   64


typedef enum {
    SB_S_LINE = 0,          /* between events */
    SB_S_FIELD,             /* in "data", "event" ... of an SSE line */
    SB_S_DATA,              /* behind "data:" */
    SB_S_SKIP,              /* to the next LF */
    SB_S_FIRST_KEY,         /* behind "{" */
    SB_S_KEY,               /* behind "," in an object */
    SB_S_COLON,
    SB_S_FIRST_VALUE,       /* behind "[" */
    SB_S_VALUE,
    SB_S_NEXT,              /* behind a value */
    SB_S_TOKEN,             /* number, true, false, null */
    SB_S_STRING,
    SB_S_ESCAPE,
    SB_S_HEX
} sb_stream_state_e;


typedef enum {
    SB_TYPE_NONE = 0,
    SB_TYPE_STDOUT, SB_TYPE_STDERR, SB_TYPE_INIT, SB_TYPE_RESULT, SB_TYPE_ERROR,
    SB_TYPE_COMPLETE,
    SB_TYPE_OTHER,          /* known, nothing to take from it */
    SB_TYPE_UNKNOWN
} sb_stream_type_e;


typedef enum {
    SB_K_OTHER = 0,
    SB_K_TYPE, SB_K_TEXT, SB_K_RESULTS, SB_K_ERROR, SB_K_TIME, SB_K_CODE,
    SB_K_MESSAGE, SB_K_COUNT,
    SB_K_ENAME, SB_K_EVALUE, SB_K_TRACEBACK     /* inside of error */
} sb_stream_key_e;


/* Where the characters of a string go. */
typedef enum {
    SB_SINK_NONE = 0,
    SB_SINK_TEXT,           /* handed on */
    SB_SINK_HOLD,           /* text, before the type is known */
    SB_SINK_WORD            /* collected in `word`, cut there */
} sb_stream_sink_e;


typedef struct {
    char    *data;
    size_t   len, cap;
    bool     over;          /* more came than fits */
} sb_stream_word_t;


struct sb_stream_s {
    sb_stream_handler_t  h;
    sb_stream_facts_t    facts;

    sb_stream_state_e    state;
    sb_stream_sink_e     sink;
    bool                 is_key;        /* the string is a member's name */
    unsigned             depth;
    uint64_t             arrays;        /* bit n: container n is an array */

    unsigned             digits, value; /* of \uXXXX */
    unsigned             high;          /* surrogate that waits for its pair */

    /* the event */
    sb_stream_type_e     type;
    sb_stream_key_e      top, sub;      /* member at depth 1, below error */
    bool                 has_code, held, held_over, finished, raw;
    uint64_t             text_len;      /* decoded bytes */
    char                 text_first;
    int64_t              time, count;

    sb_stream_word_t     word;          /* what SB_SINK_WORD fills */

    char                 token[SB_STREAM_WORD];
    size_t               token_len;
    char                 name[SB_STREAM_WORD];
    char                 ename[sizeof(((sb_stream_facts_t *) 0)->ename)];
    char                 evalue[sizeof(((sb_stream_facts_t *) 0)->evalue)];
    char                 code[sizeof(((sb_stream_facts_t *) 0)->code)];
    char                 message[sizeof(((sb_stream_facts_t *) 0)->message)];
    bool                 killed, terminated;

    bool                 capture;       /* raw bytes of `results` */
    bool                 captured, result_cut;
    sb_buf_t             result;

    size_t               len;
    char                 buf[SB_STREAM_BUF];
};


static inline bool
sb_stream_is_output(const sb_stream_t *s)
{
    return s->type == SB_TYPE_STDOUT || s->type == SB_TYPE_STDERR;
}


/* stream_text.c */

/* Hands on what is decoded; `last`: the event ends. */
void sb_stream_flush(sb_stream_t *s, bool last);
/* From here on the characters of the string are collected at p. */
void sb_stream_collect(sb_stream_t *s, char *p, size_t cap);
/* Makes a C string of them: cut at a character border, and not ended early by
 * a NUL of its own. */
void sb_stream_word_end(sb_stream_t *s);
/* A high surrogate that still waits for its pair will not get it. */
void sb_stream_lone(sb_stream_t *s);
/* Takes runs and whole escapes of a string; what is odd or cut by the end of
 * the input is left to the states.  Returns how many bytes were used. */
size_t sb_stream_chars(sb_stream_t *s, const char *p, const char *end);
/* One byte behind a backslash, one digit of \u; false: not JSON. */
bool sb_stream_escape(sb_stream_t *s, char c);
bool sb_stream_hex(sb_stream_t *s, char c);

/* stream.c */

/* Behind the opening brace of an event. */
void sb_stream_begin(sb_stream_t *s);
/* Behind its closing brace. */
void sb_stream_event(sb_stream_t *s);
/* It is not JSON: gives it up, to go on behind the next LF. */
void sb_stream_bad(sb_stream_t *s);
/* Behind the opening quote of a string value: decides where it goes. */
void sb_stream_string(sb_stream_t *s);
/* Behind the closing quote of a name or a value. */
void sb_stream_string_end(sb_stream_t *s);

#endif /* SB_STREAM_SCAN_H_INCLUDED */
