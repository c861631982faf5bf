/*
 * Frames between nginx workers and sandbox-helper (docs/frames.md), also the
 * payload of the helper's journal.
 *
 * A frame is a 40-byte header and fields.  All numbers are little-endian.
 *
 *   0  u32  length of the whole frame, header included
 *   4  u8   type (SB_F_*)
 *   5  u8   flags (SB_FF_*)
 *   6  u16  format version, 1
 *   8  u64  sequence number of the sender on its instance, from 1; 0 for
 *           frames that are not kept (HELLO, ACK, FETCH ...)
 *  16  u8[16] operation id (zero when the frame belongs to none)
 *  32  u64  time of the event, Unix microseconds
 *
 * A field is: u16 tag, u16 zero, u32 length, bytes, without padding.  Unknown
 * tags are skipped.  Integers in fields are u64 or i64 of 8 bytes unless the
 * tag says otherwise.
 */

#ifndef SB_FRAME_H_INCLUDED
#define SB_FRAME_H_INCLUDED

#include "sb.h"

#define SB_FRAME_HEAD     40
#define SB_FRAME_MAX      (2 * 1024 * 1024)     /* longer: protocol error */
#define SB_FRAME_VERSION  1

typedef enum {
    /* worker -> helper, connection set-up */
    SB_F_HELLO = 1,         /* INSTANCE, PID, ROLE ("control" or "bulk") */
    /* helper -> worker */
    SB_F_WELCOME = 2,       /* LAST_SEQ: the last kept frame of this instance;
                               HISTORY mode in MODE */
    SB_F_ACK = 3,           /* header seq: everything up to it is in the journal
                               (and flushed, with sync full); CODE non-zero:
                               it could not be written (reason in REASON) */
    /* worker -> helper, one operation; kept in the journal */
    SB_F_BEGIN = 16,
    SB_F_FACTS = 17,        /* what the body told: REQUEST, COMMAND, FILE_* ... */
    SB_F_OUTPUT = 18,       /* STREAM, DATA pairs; TIME before them if it
                               differs; OFFSET between them for terminals */
    SB_F_END = 19,
    SB_F_GAP = 20,          /* COUNT operations or OUTPUT bytes were lost */
    SB_F_SEEN = 21,         /* SANDBOX (NAME, INSTANCE, STATE follow their
                               SANDBOX): upstream has shown that it exists;
                               STATE "gone": that it does not any more */
    SB_F_CONTENT = 22,      /* pieces of what stands in files: FILE_N (and
                               KIND) begins one, OFFSET and DATA follow */
    /* worker -> helper, control: numbered as what is kept, for they go in order
     * with it, but not in the journal */
    SB_F_KEYS = 24,         /* the operation asks for LOCK_READ, LOCK_WRITE ...;
                               FLAG_HELD: it has them, we were connected anew;
                               without an operation: all of these are told */
    SB_F_RELEASE = 25,      /* one without a BEGIN holds nothing any more */
    SB_F_LEASE = 26,        /* the journal only: a lease was granted, renewed
                               or (EXPIRES 0) given back */
    SB_F_LOCK = 27,         /* the journal only, for live streams: STATE of the
                               operation or lease says what became of it */
    /* bulk, not kept */
    SB_F_FETCH = 32,        /* worker asks: helper, GET TARGET from upstream;
                               with FILE_PATH: keep how a file stands */
    SB_F_FETCHED = 33,      /* answer: HTTP_STATUS (0: failed), DATA body;
                               header seq copied from the FETCH */
    /* bulk, the console API (docs/frames.md, "Questions"); header seq is the
     * worker's number of the question in all of them */
    SB_F_ASK = 34,          /* worker: METHOD, PATH, QUERY, DATA (body), ROLE,
                               ACTOR_TYPE, ACTOR_ID, IDENTITY, SANDBOX; COUNT:
                               the window in bytes */
    SB_F_ANSWER = 35,       /* helper: a piece.  The first has HTTP_STATUS,
                               CONTENT_TYPE (and ALLOW); DATA; flag LAST */
    SB_F_CREDIT = 36,       /* worker: COUNT bytes of DATA more may come */
    SB_F_CANCEL = 37,       /* either side: there will be no more; REASON */

    SB_F_GRANTED = 40,      /* helper, control: answer to KEYS, for the operation
                               of the header: CODE (SB_LOCK_*), WAITED_US; with
                               SB_LOCK_LATE also the key (LOCK_READ or
                               LOCK_WRITE), HOLDER, ACTOR_ID */
    /* on a connection of its own (docs/frames.md, "Archives") */
    SB_F_INSPECT = 41,      /* worker, with a descriptor: what is in an archive,
                               FILE_OFFSET and FILE_SIZE; COUNT: bounds, as
                               inspect.h has them; CONDITION and its PATTERN */
    SB_F_INSPECTED = 42,    /* helper: FOUND, COUNT ..., MATCHED, CUT, REASON,
                               PATH; CODE: nothing is known, REASON says why */
    SB_F_FULL = 38          /* helper, control: whose strict operations are to
                               be refused, in place of those told before: their
                               marks (marks.h) in DATA, REASON is the limit; an
                               empty SANDBOX with its REASON: all */
} sb_frame_e;

#define SB_FF_STRICT      0x01u   /* BEGIN/FACTS: the request waits for the ACK */
#define SB_FF_FOLD        0x02u   /* BEGIN: polling, may be folded */
#define SB_FF_LAST        0x04u   /* ANSWER: this is the end of it */
#define SB_FF_HELD        0x08u   /* KEYS: told again, it has them */
#define SB_FF_SHARE       0x10u   /* ASK: pieces may come with SB_T_ALSO */

typedef enum {
    SB_T_INSTANCE = 1,      /* u64 random id of a worker process */
    SB_T_PID = 2,           /* u64 */
    SB_T_ROLE = 3,          /* text: "control" | "bulk" of a HELLO; of an ASK
                               "viewer" | "operator" | "admin" */
    SB_T_LAST_SEQ = 4,      /* u64 */
    SB_T_CODE = 5,          /* u64 errno-like */
    SB_T_REASON = 6,        /* text, also END: design 5 result.reason */
    SB_T_COUNT = 7,         /* u64 */
    SB_T_TIME = 8,          /* u64 Unix microseconds; GAP: first loss */
    SB_T_TIME_END = 9,      /* u64 GAP: last loss */
    SB_T_TARGET = 10,       /* FETCH: path and query on upstream */
    SB_T_DATA = 11,
    SB_T_MODE = 12,         /* text: "provider" | "none" */
    SB_T_QUERY = 13,        /* ASK: raw query without "?" */
    SB_T_CONTENT_TYPE = 14,
    SB_T_ALLOW = 15,        /* ANSWER 405: methods, as the header has them */

    SB_T_EVENT_ID = 16,     /* ASK: Last-Event-ID */

    SB_T_ADDRESS = 17,      /* FETCH of a file: where to connect, if that is not
                               where UPSTREAM leads */
    SB_T_HEADER = 18,       /* FETCH of a file: a line of the request's head */
    SB_T_ALSO = 19,         /* u64, of an ANSWER: another question that this
                               piece is for */

    SB_T_TYPE = 20,         /* text: operation name; FACTS may refine it */
    SB_T_SANDBOX = 21,      /* text: sandbox id; absent: _gateway */
    SB_T_PORT = 22,         /* u64 */
    SB_T_RECORD = 23,       /* text: "strict" | "best_effort" */
    SB_T_SOURCE = 24,       /* text: history_events.source */
    SB_T_METHOD = 25,
    SB_T_PATH = 26,         /* decoded inner path, no query */
    SB_T_CLIENT = 27,       /* peer address */
    SB_T_AGENT = 28,        /* User-Agent, cut at 256 bytes */
    SB_T_REQUEST_ID = 29,   /* X-Request-ID */

    SB_T_ACTOR_TYPE = 30,
    SB_T_ACTOR_ID = 31,
    SB_T_THREAD = 32,
    SB_T_RUN = 33,
    SB_T_CORRELATION = 34,
    SB_T_PARENT = 35,
    SB_T_IDENTITY = 36,     /* how known: "token:ID", "endpoint:ID", "none";
                               "+stated" behind it when headers stated it */

    SB_T_REQUEST = 40,      /* canonical JSON object (redacted) */
    SB_T_COMMAND = 41,
    SB_T_CWD = 42,
    SB_T_TIMEOUT_MS = 43,
    SB_T_BACKGROUND = 44,   /* present: true */
    SB_T_NAME = 45,         /* sandbox display name */
    SB_T_INSTANCE_ID = 46,  /* sandbox_instance_id */
    SB_T_STATE = 47,

    /* a file: FILE_PATH begins one, the others say more of it */
    SB_T_FILE_PATH = 50,
    SB_T_FILE_OLD = 51,
    SB_T_FILE_SIZE = 52,    /* u64, after */
    SB_T_FILE_SHA256 = 53,  /* 32 bytes, after */
    SB_T_FILE_MODE = 54,    /* u64, octal digits as decimal */
    SB_T_FILE_FLAGS = 55,   /* u64, SB_PATH_* */
    SB_T_FILES_TOTAL = 56,  /* u64, when more than are listed */
    SB_T_FILE_N = 57,       /* u64, number of the file in its operation */
    SB_T_FILE_OFFSET = 58,  /* u64, where in the file DATA begins */
    SB_T_FILE_KIND = 59,    /* u64, SB_CONTENT_* */

    SB_T_STREAM = 60,       /* u64: 0 stdout, 1 stderr, SB_STREAM_*; DATA
                               follows */
    SB_T_COMMAND_ID = 61,   /* provider command or session id */
    SB_T_OFFSET = 62,       /* u64, of a terminal's output: bytes since this
                               connection was opened; of a replay: of the
                               session's output */

    /* END */
    SB_T_STATUS = 70,       /* text: succeeded failed timeout cancelled unknown */
    SB_T_HTTP_STATUS = 71,  /* u64 as sent to the client */
    SB_T_UPSTREAM_STATUS = 72, /* u64; absent: upstream gave no answer */
    SB_T_DURATION_US = 73,
    SB_T_BYTES_IN = 74,     /* request body */
    SB_T_BYTES_OUT = 75,    /* answer body */
    SB_T_EXIT_CODE = 76,    /* i64 */
    SB_T_RESULT = 77,       /* canonical JSON object */
    SB_T_STDOUT_TOTAL = 78, /* u64 output bytes seen, kept or not */
    SB_T_STDERR_TOTAL = 79,
    SB_T_OUTPUT_DROPPED = 80, /* u64 bytes over the capture limit */
    SB_T_DETACHED = 81,     /* present: the command goes on without us */
    SB_T_ERROR_CODE = 82,   /* GATEWAY_* of our refusal, or upstream's code */
    SB_T_UPSTREAM = 83,     /* address that answered */
    SB_T_NEW_SANDBOX = 84,  /* sandbox.create: id in the answer */
    SB_T_OUTPUT_LOST = 85,  /* u64 output bytes lost inside (queue full) */
    SB_T_RUNNING = 86,      /* u64 0/1: command.status answered for COMMAND_ID */
    SB_T_SHA256 = 87,       /* 32 bytes: digest of the answer body (file.read) */
    SB_T_ROUTE = 88,        /* text: "straight" | "server-proxy" | "lifecycle"
                               | "ingress" */
    SB_T_READY_US = 89,     /* u64, Unix microseconds: free to change a file,
                               having waited for keys or for what is read
                               before; before that it cannot have */
    SB_T_VERDICT = 91,      /* text: "allow" | "deny" | "observe" (a rule
                               would have denied it) */
    SB_T_RULE = 92,         /* name of the rule that says so, "default" */
    SB_T_RULE_PATH = 93,    /* which path was denied */
    SB_T_UNREAD = 94,       /* present: not all of the command was read */
    SB_T_LOCK_READ = 110,   /* a path, in the spelling of lock.h */
    SB_T_LOCK_WRITE = 111,
    SB_T_LOCK_MS = 112,     /* u64: the time it waits for them */
    SB_T_LOCK_LEASE = 113,  /* token of the lease it is inside of */
    SB_T_LOCK_CLASS = 114,  /* u64: SB_LIMIT_*, of a limit */
    SB_T_LIMIT = 115,       /* u64: that run at once */
    SB_T_LIMIT_QUEUE = 116, /* u64: that may wait besides */
    SB_T_LIMIT_MS = 117,    /* u64: ... for that long */
    SB_T_DECLARED = 118,    /* present: kept while its command is followed */
    SB_T_WAITED_US = 90,    /* u64, for keys and slot; also END */
    SB_T_HOLDER = 120,      /* id of an operation or lease */
    SB_T_HASH = 121,        /* 32 bytes: SHA-256 of a lease's token */
    SB_T_FENCE = 122,       /* u64 */
    SB_T_EXPIRES = 123,     /* u64, Unix microseconds */
    SB_T_OWNER = 124,       /* text: what a lease says of itself, for people; behind
                               a HOLDER: that one's */
    SB_T_FOUND = 130,       /* u64, SB_IN_* of inspect.h */
    SB_T_MATCHED = 131,     /* u64, a bit for each CONDITION */
    SB_T_CUT = 132,         /* present: a bound was passed */
    SB_T_CONDITION = 133,   /* u64: 1 when letter case does not count; its
                               PATTERNs follow */
    SB_T_PATTERN = 134,     /* as in a policy */
    SB_T_REDACTED = 95      /* u64: credentials masked or left out */
} sb_tag_e;

/* What a GRANTED says. */
typedef enum {
    SB_LOCK_GRANTED = 0,
    SB_LOCK_LATE,           /* a key was not free in time */
    SB_LOCK_LEASE,          /* the lease is unknown, or over */
    SB_LOCK_BUSY,           /* too many run at once in that sandbox */
    SB_LOCK_FULL,           /* the helper has no room for more locks */
    SB_LOCK_BROKEN          /* an admin has ended the waiting */
} sb_lock_code_e;

/* What is counted for limits, per sandbox. */
typedef enum {
    SB_LIMIT_NONE = 0, SB_LIMIT_COMMAND, SB_LIMIT_READ, SB_LIMIT_WRITE,
    SB_LIMIT_UPLOAD,
    SB_LIMITS
} sb_limit_e;

/* What the DATA of a CONTENT frame is part of. */
typedef enum {
    SB_CONTENT_AFTER = 0,   /* the file as it was written or read */
    SB_CONTENT_BEFORE = 1,  /* ... as it stood before it was written */
    SB_CONTENT_EDIT = 2,    /* the body of a file.replace */
    SB_CONTENT_ABSENT = 3,  /* nothing: there was no such file before */
    SB_CONTENT_VOID = 4,    /* nothing: what was read of the file before does
                               not count, it came too late */
    SB_CONTENT_CHECK = 5    /* of a FETCH: its digest alone is wanted */
} sb_content_e;

/* Of one file; what is longer is not kept. */
#define SB_CONTENT_MAX  (1024 * 1024)

typedef struct {
    uint32_t   length;
    uint8_t    type;
    uint8_t    flags;
    uint64_t   seq;
    uint8_t    op[16];
    uint64_t   time_us;
    sb_str_t   fields;      /* the bytes behind the header */
} sb_frame_t;

/* Streams of terminals (terminal.h) */
#define SB_STREAM_INPUT   2         /* what was typed, as far as it is kept */
#define SB_STREAM_REPLAY  3         /* output of earlier, sent again */
#define SB_STREAM_NOTE    4         /* SB_PTY_* and its text */

/* Length and seq of a whole frame that the caller has made itself and that
 * begins at p, without looking into it; SB_ERROR when n bytes cannot hold it. */
sb_rc_t sb_frame_peek(const char *p, size_t n, size_t *length, uint64_t *seq);
/* Type and fields of such a frame, for sb_field_next(). */
sb_rc_t sb_frame_fields(const char *p, size_t n, uint8_t *type,
    sb_str_t *fields);

/* Reads one frame at p.  SB_AGAIN: not all of it is there (need says how many
 * bytes at least); SB_ERROR: not a frame (bad version, length, or fields that
 * do not fill it exactly). */
sb_rc_t sb_frame_read(sb_frame_t *f, const char *p, size_t n, size_t *need);

/* Next field; false at the end.  fields is advanced. */
bool sb_field_next(sb_str_t *fields, uint16_t *tag, sb_str_t *value);
/* First field with a tag, or false. */
bool sb_field_get(const sb_frame_t *f, uint16_t tag, sb_str_t *value);
/* An 8-byte integer field; `def` when absent or of another size. */
uint64_t sb_field_u64(const sb_frame_t *f, uint16_t tag, uint64_t def);
uint64_t sb_value_u64(sb_str_t value, uint64_t def);

/* Of a question: DATA of one ANSWER, and what may be on its way at once. */
#define SB_ASK_PIECE   16384
#define SB_ASK_WINDOW  32768
#define SB_ASK_BODY    65536            /* of a request */

/*
 * Writing into memory of the caller.  `size` is the room; a frame that does not
 * fit sets `full` and writes nothing further, end() then returns 0.
 */
typedef struct {
    char    *start;
    char    *pos;
    char    *end;
    bool     full;
} sb_frame_writer_t;

void sb_frame_begin(sb_frame_writer_t *w, void *mem, size_t size, uint8_t type,
    uint8_t flags, uint64_t seq, const uint8_t op[16], uint64_t time_us);
void sb_frame_put(sb_frame_writer_t *w, uint16_t tag, sb_str_t value);
void sb_frame_put_u64(sb_frame_writer_t *w, uint16_t tag, uint64_t v);
/* Writes the length and returns it (0 when it was full). */
size_t sb_frame_end(sb_frame_writer_t *w);
/* Sets the sequence number of a finished frame. */
void sb_frame_set_seq(void *frame, uint64_t seq);

#endif /* SB_FRAME_H_INCLUDED */
