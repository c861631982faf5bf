/*
 * What a request body and an answer body say about their operation: the
 * columns "record from the request", "file paths" and "result found in" of
 * reference/opensandbox-api.md 8, with secrets left out (1.5, 9.3 item 19).
 */

#ifndef SB_REQUEST_H_INCLUDED
#define SB_REQUEST_H_INCLUDED

#include "json.h"
#include "operation.h"

typedef struct {
    sb_str_t  path;         /* as in the request, decoded */
    sb_str_t  old_path;     /* file.move: src; else empty */
    int32_t   mode;         /* octal digits as decimal, or SB_MODE_* of path.h */
    unsigned  flags;        /* SB_PATH_* of path.h, of both paths */
} sb_request_file_t;

typedef struct {
    const sb_op_t      *op;         /* refined: code.execute without language is
                                       command.execute, egress.policy.set with
                                       an empty body is egress.policy.reset */
    sb_buf_t            json;       /* canonical JSON object for request_json */
    sb_str_t            command;    /* command or code, also that of a new
                                       terminal, and what a new sandbox or a
                                       pool's starts; empty when none */
    bool                argv;       /* it is the JSON text of an array: words,
                                       or arrays of them (several commands) */
    bool                env_runs;   /* names in its environment have a shell run
                                       more than the command says, or not all of
                                       it is told */
    bool                has_command;    /* it has a row of its own */
    sb_str_t            cwd;
    int64_t             timeout_ms; /* -1: none */
    bool                background;
    bool                has_expires;    /* endpoint.get: a signed address is
                                           asked for */
    sb_request_file_t  *files;      /* first SB_REQUEST_FILES_MAX of them */
    size_t              nfiles;
    size_t              files_total;
    sb_str_t            name;       /* sandbox.create: metadata agent_sandbox.name
                                       or sandbox_name */
    sb_str_t            instance;   /* sandbox.create: metadata
                                       sandbox_instance_id */
    sb_str_t            image;      /* sandbox.create: image.uri */
    bool                has_image;
    const sb_str_t     *images;     /* pool.*: those of its template */
    size_t              nimages;
    bool                image_unread;   /* another one may be run (that of a
                                           snapshot, of a pool) */
    const sb_jv_t      *metadata;   /* sandbox.create: an object, or NULL */
    unsigned            found;      /* file.replace: SB_SCAN_* in what is put in
                                       place of other text */
    const sb_jv_t      *volumes;    /* sandbox.create: what it has, or NULL */
    size_t              redacted;   /* values left out because they are, or may
                                       be, secrets */
    const char         *reason;     /* on errors */
    void               *mem;        /* owned */
} sb_request_t;

#define SB_REQUEST_FILES_MAX       10000    /* kept, to be judged */
#define SB_REQUEST_FILES_RECORDED  1024
#define SB_REQUEST_JSON_MAX        (256 * 1024)

/*
 * Reads the whole body of an operation with SB_OPF_JSON, and the query of any
 * operation (file paths with SB_OPF_PATH/PATHS, parameters worth recording).
 * SB_OK also for an empty body.  SB_AMBIGUOUS (refuse with 400): key that
 * equals a known one but for letter case, or non-ASCII key, or duplicate key
 * in an object with known members; duplicate key in a path map; bytes after
 * the value; a query component that does not decode.  SB_ERROR: not strict
 * JSON (also refused with 400).  SB_LIMIT: too deep.  Members of unknown name
 * are listed by name under "dropped"; env, envs become sorted arrays of names;
 * passwords, keys, vault values and file contents of file.replace (only their
 * sizes) never appear.  A value too large for SB_REQUEST_JSON_MAX is cut at a
 * character border and its full size given in "<name>_bytes".
 * Free with sb_request_free() in every case.
 */
sb_rc_t sb_request_read(sb_request_t *r, const sb_route_t *route,
    sb_str_t body);
/* The same without SB_OPF_JSON, of what is not going to be recorded: `json`
 * stays empty. */
sb_rc_t sb_request_judge(sb_request_t *r, const sb_route_t *route);
void sb_request_free(sb_request_t *r);

/* Facts in a JSON answer, gathered while it passes. */
typedef struct sb_answer_s  sb_answer_t;

typedef struct {
    sb_buf_t  json;             /* canonical JSON object for result_json */
    sb_str_t  id;               /* sandbox.create: id; else empty */
    sb_str_t  name;             /* display name from metadata */
    sb_str_t  instance;         /* metadata sandbox_instance_id */
    sb_str_t  state;            /* status.state */
    bool      has_expires;      /* expiresAt was there */
    uint64_t  expires_us;
    sb_str_t  command_id;       /* command.status: id */
    bool      has_running;
    bool      running;          /* command.status, pty.status */
    bool      has_exit_code;
    int32_t   exit_code;
    sb_str_t  error_code;       /* `code` of an error envelope */
    sb_str_t  error_message;    /* its `message`, at most 512 bytes */
    size_t    redacted;         /* values left out: headers of an endpoint, what
                                   an error tells of them */
    /* sandbox.list (and get): what upstream has shown to exist */
    struct sb_answer_item_s {
        sb_str_t  id, name, instance, state;
    }        *items;
    size_t    nitems;           /* at most 1000 */
} sb_answer_facts_t;

/* NULL when nothing of this operation's answer is worth reading. `status` is
 * the HTTP status: answers >= 400 are read as error envelopes. */
sb_answer_t *sb_answer_new(const sb_op_t *op, unsigned status);
/* Does this answer say until when a sandbox exists?  Only then is one worth
 * reading that nobody records. */
bool sb_answer_dates(const sb_op_t *op, unsigned status);
/* Feeds a piece; never fails: what cannot be read or passes 1 MiB is dropped
 * and said so in the facts ("unparsed": true). */
void sb_answer_feed(sb_answer_t *a, const char *p, size_t n);
/* End of the body; the facts live until sb_answer_free(). */
const sb_answer_facts_t *sb_answer_finish(sb_answer_t *a);
void sb_answer_free(sb_answer_t *a);

#endif /* SB_REQUEST_H_INCLUDED */
