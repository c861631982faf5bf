/*
 * Policies: what may be done by whom to what (docs/policy.md has the language).
 * Text in, verdict out; nothing here knows where the text came from.
 */

#ifndef SB_POLICY_H_INCLUDED
#define SB_POLICY_H_INCLUDED

#include "inspect.h"
#include "operation.h"

#define SB_POLICY_TEXT_MAX     (256 * 1024)     /* bytes of a policy */
#define SB_POLICY_RULES_MAX    256
#define SB_POLICY_VALUES_MAX   4096             /* of all its conditions */
#define SB_POLICY_COMMAND_MAX  (128 * 1024)     /* a longer command is judged
                                                   as one that cannot be read:
                                                   no shell takes it */

typedef struct sb_policy_s  sb_policy_t;

/* Where a text is wrong; line and column count from 1. */
typedef struct {
    unsigned  line, column;
    char      text[256];    /* "NAME:LINE:COLUMN: sentence" */
} sb_policy_error_t;

/* What is known of an archive. */
typedef enum {
    SB_POLICY_NO_ARCHIVE = 0,   /* it is none */
    SB_POLICY_PENDING,          /* it may be one: nobody has asked yet */
    SB_POLICY_INSPECTED,        /* facts */
    SB_POLICY_UNINSPECTED       /* nobody can say */
} sb_policy_archive_e;

/* One path that an operation touches. */
typedef struct {
    sb_str_t  path;         /* decoded, as execd will get it */
    int32_t   mode;         /* octal digits as decimal; SB_MODE_NONE (-1) or
                               SB_MODE_ODD (-2) of path.h */
    bool      has_found;    /* its content was looked at */
    unsigned  found;        /* SB_SCAN_* of scan.h */
    bool      has_size;
    uint64_t  size;         /* bytes of the file to be written */
    sb_policy_archive_e  archive;
    const sb_inspect_t  *facts;
    bool      wanted;       /* set by a verdict that waits for them, */
    uint64_t  most[SB_IN_COUNTS];   /* ... with the bounds that are of use */
} sb_policy_file_t;

typedef struct {
    sb_str_t  key, value;
} sb_policy_pair_t;

typedef struct {
    const sb_op_t           *op;
    sb_str_t                 actor_type, actor_id;
    sb_str_t                 role;          /* "viewer", "operator", "admin" */
    sb_str_t                 sandbox;       /* empty: none */
    bool                     has_metadata;  /* it is known; else a deny by
                                               metadata applies, an allow does
                                               not */
    const sb_policy_pair_t  *metadata;
    size_t                   nmetadata;
    bool                     has_mounts;    /* they are known; else a deny by
                                               <mounts> applies, an allow does
                                               not */
    const sb_str_t          *mounts;        /* normal absolute paths */
    size_t                   nmounts;
    bool                     has_command;
    sb_str_t                 command;
    bool                     argv;          /* it is a JSON array of words, or of
                                               arrays of them: several commands */
    bool                     dark;          /* what runs is not all in it (code
                                               of another language, a terminal,
                                               an environment with PATH):
                                               counts as unread */
    bool                     has_image;
    sb_str_t                 image;
    const sb_str_t          *images;        /* others, of which all are run */
    size_t                   nimages;
    bool                     image_unread;  /* not all of them are named; also of
                                               what makes a sandbox or a pool
                                               without naming any */
    uint32_t                 port;          /* 0: none */
    bool                     has_size;
    uint64_t                 size;          /* bytes of the request's files */
    sb_policy_file_t        *files;
    size_t                   nfiles;
    size_t                   files_total;   /* may be more than nfiles */
} sb_policy_request_t;

typedef enum {
    SB_POLICY_ALLOW = 0,
    SB_POLICY_DENY
} sb_policy_decision_e;

/* Texts belong to the policy (NUL-terminated) or, as slices, to the request. */
typedef struct {
    sb_policy_decision_e  decision;
    const char           *rule;     /* its name; "default" */
    unsigned              line;     /* where it stands */
    const char           *reason;   /* one sentence; NULL when allowed */
    sb_str_t              path;     /* which one; empty: none */
    bool                  limit;    /* refused by a size or a count */
    bool                  unread;   /* not all of the command could be read */
    bool                  pending;  /* not decided: files that are `wanted` have
                                       to be inspected first */
    const sb_inspect_t   *archive;  /* of the path; facts that had to do with
                                       it, or NULL */
    bool                  uninspected;  /* ... which say too little */
    const char           *observed; /* first `observe` rule that would have
                                       denied; NULL: none */
    unsigned              observed_line;
    const char           *observed_reason;
} sb_policy_verdict_t;

/*
 * Parses a policy; `name` (a file name) stands in errors and descriptions.
 * SB_ERROR: error says what and where; SB_NOMEM.  Free with sb_policy_free().
 */
sb_rc_t sb_policy_parse(sb_str_t text, const char *name, sb_policy_t **policy,
    sb_policy_error_t *error);
void sb_policy_free(sb_policy_t *policy);

/* The text that it was parsed from. */
sb_str_t sb_policy_source(const sb_policy_t *policy);

/*
 * Judges a request: each of its paths, the strictest verdict stands.  What is
 * denied whatever is in archives is denied at once; else the verdict may be
 * pending.  Time is
 * bounded: what takes longer (patterns that backtrack) is denied.  The only
 * error is SB_NOMEM, for which the caller must refuse.
 */
sb_rc_t sb_policy_check(const sb_policy_t *policy,
    const sb_policy_request_t *request, sb_policy_verdict_t *verdict);

/*
 * The same of a request whose files are still coming: denied is only what a
 * rule with a limit and without a path denies, whatever else comes.  Looks at
 * no path, so that it may be asked again and again.
 */
sb_rc_t sb_policy_check_limits(const sb_policy_t *policy,
    const sb_policy_request_t *request, sb_policy_verdict_t *verdict);

/* Can a verdict on this operation depend on its files?  Then an upload is read
 * to its end before it goes on. */
bool sb_policy_reads(const sb_policy_t *policy, const sb_op_t *op);

/* What has to be known, beside what the request tells, for a verdict on this
 * operation: of the sandbox */
#define SB_POLICY_METADATA  0x01
#define SB_POLICY_MOUNTS    0x02
#define SB_POLICY_CONTENT   0x04    /* ... of its files */
#define SB_POLICY_ARCHIVE   0x08    /* ... of those that are archives */
unsigned sb_policy_asks(const sb_policy_t *policy, const sb_op_t *op);

/* Appends the rules in force as a JSON object: name, rules with name, effect,
 * line and their text, default. */
sb_rc_t sb_policy_describe(const sb_policy_t *policy, sb_buf_t *out);

#endif /* SB_POLICY_H_INCLUDED */
