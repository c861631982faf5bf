/* What the files of the policy engine share; nothing for others. */

#ifndef SB_POLICY_INT_H_INCLUDED
#define SB_POLICY_INT_H_INCLUDED

#include "policy.h"

#define SB_POLICY_SEGMENTS  64      /* of a path pattern */

typedef struct sb_policy_regex_s  sb_policy_regex_t;

typedef enum {
    /* of the request */
    SB_PC_OPERATION = 0,    /* globs */
    SB_PC_ACCESS,           /* read, write */
    SB_PC_ACTOR,            /* TYPE or TYPE/ID, globs */
    SB_PC_ROLE,
    SB_PC_SANDBOX,          /* globs */
    SB_PC_METADATA,         /* KEY=GLOB */
    SB_PC_COMMAND,          /* regular expressions, `unread` */
    SB_PC_IMAGE,            /* globs, `unread` */
    SB_PC_PORT,             /* N, N-M */
    SB_PC_REQUEST_SIZE,     /* > N */
    SB_PC_FILES,            /* > N */
    /* of one file */
    SB_PC_PATH,             /* patterns */
    SB_PC_PATH_HAS,         /* SB_PATH_* of path.h */
    SB_PC_FILE_SIZE,        /* > N */
    SB_PC_MODE,             /* octal mask */
    SB_PC_CONTENT,          /* what was found in it */
    /* ... that is an archive */
    SB_PC_ARCHIVE,          /* what was found */
    SB_PC_ARCHIVE_PATH,     /* patterns for names of members */
    SB_PC_ARCHIVE_ENTRIES,  /* > N, in the order of sb_inspect_count_e */
    SB_PC_ARCHIVE_SIZE,
    SB_PC_ARCHIVE_FILE_SIZE,
    SB_PC_ARCHIVE_RATIO,
    SB_PC_ARCHIVE_DEPTH
} sb_policy_cond_e;

#define SB_PC_OF_FILE     SB_PC_PATH
#define SB_PC_OF_ARCHIVE  SB_PC_ARCHIVE

/* A gitignore pattern, cut into segments. */
typedef struct {
    bool      negated;
    bool      anchored;
    bool      directory;    /* ended with "/" */
    bool      nocase;
    bool      mounts;       /* it is "<mounts>" */
    size_t    n;
    sb_str_t  segments[];
} sb_pattern_t;

typedef struct {
    sb_str_t            text;       /* as written; NUL behind */
    uint64_t            low, high;  /* numbers */
    sb_pattern_t       *pattern;
    sb_policy_regex_t  *regex;
    bool                unread;     /* command or image unread */
} sb_policy_value_t;

typedef struct {
    sb_policy_cond_e    kind;
    bool                negated;
    unsigned            index;      /* of an archive_path among all */
    size_t              n;
    sb_policy_value_t  *values;
} sb_policy_condition_t;

typedef enum {
    SB_PE_ALLOW = 0,
    SB_PE_DENY,
    SB_PE_OBSERVE
} sb_policy_effect_e;

typedef struct {
    sb_policy_effect_e      effect;
    char                   *name;
    char                   *reason;     /* NULL: none given */
    unsigned                line;
    sb_str_t                source;     /* in the policy's text */
    bool                    of_file;    /* has a condition about a file */
    bool                    limit;      /* by a size or a count */
    size_t                  n;
    sb_policy_condition_t  *conditions;
} sb_policy_rule_t;

/* Does a condition hold? */
typedef enum {
    SB_H_NO = 0,
    SB_H_YES,
    SB_H_UNKNOWN,           /* not known: holds for a refusal alone */
    SB_H_NONE               /* the request has nothing to ask about */
} sb_holds_e;

struct sb_policy_s {
    char                 *name;
    char                 *text;
    size_t                len;
    sb_policy_rule_t     *rules;
    size_t                n, room;
    sb_policy_rule_t      fallback;     /* the default */
};

/* policy_archive.c.  Does a condition about an archive hold?  What is not found
 * in one that was not read to its end may be in the rest. */
sb_holds_e sb_policy_inspected(const sb_policy_condition_t *c,
    const sb_policy_file_t *f);
/* The one limit that a rule has for archives, if that is all that it asks of
 * them; else NULL. */
const sb_policy_condition_t *sb_policy_bound(const sb_policy_rule_t *rule);

/* policy_path.c.  SB_ERROR: `why` is a static sentence. */
sb_rc_t sb_pattern_parse(sb_pattern_t **pattern, sb_str_t text, bool nocase,
    const char **why);

/* How a path stands to what a pattern says. */
typedef enum {
    SB_AT_FILE = 0,         /* the last segment is no directory */
    SB_AT_DIRECTORY,
    SB_AT_ANY               /* it may be either */
} sb_at_e;

/* A normal path cut at "/"; n segments (0: the root). */
typedef struct {
    size_t     n;
    sb_str_t  *segments;
} sb_path_parts_t;

#define SB_MOUNTS  sb_lit("<mounts>")

/* Is the path a mount or below one?  Or (tree) is one of them below it? */
bool sb_mounts_match(const sb_str_t *mounts, size_t n,
    const sb_path_parts_t *path, bool tree);
/* Does the pattern match the path or a directory above it? */
bool sb_pattern_match(const sb_pattern_t *p, const sb_path_parts_t *path,
    sb_at_e at);
/* Is the path a directory above what the pattern could match? */
bool sb_pattern_below(const sb_pattern_t *p, const sb_path_parts_t *path);

/* A glob: `*` any text, `?` one byte, all else itself. */
bool sb_policy_glob(sb_str_t glob, sb_str_t text);

/* policy_command.c.  SB_ERROR: `why` (size bytes) says what is wrong, `offset`
 * where in the text. */
sb_rc_t sb_policy_regex(sb_policy_regex_t **regex, sb_str_t text, char *why,
    size_t size, size_t *offset);
void sb_policy_regex_free(sb_policy_regex_t *regex);

/* A command that was read once for all rules. */
typedef struct sb_policy_command_s  sb_policy_command_t;

sb_rc_t sb_policy_command_read(sb_policy_command_t **command, sb_str_t text,
    bool argv, bool dark);
void sb_policy_command_free(sb_policy_command_t *command);
bool sb_policy_command_unread(const sb_policy_command_t *command);

typedef enum {
    SB_RM_NO = 0,
    SB_RM_YES,
    SB_RM_UNKNOWN           /* it took too long */
} sb_regex_match_e;

/* For a refusal: does one of the values match the text or any command in it?
 */
sb_regex_match_e sb_policy_command_any(sb_policy_command_t *command,
    const sb_policy_condition_t *condition);
/* For a permission: is all of it read, and does every command in it match one
 * of the values? */
bool sb_policy_command_all(sb_policy_command_t *command,
    const sb_policy_condition_t *condition);

#endif /* SB_POLICY_INT_H_INCLUDED */
