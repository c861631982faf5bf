/*
 * Tokens: the file that holds their hashes, and endpoint tokens
 * (design 4, 6, 7).
 *
 * The file is text, one token a line, "#" begins a comment line:
 *
 *   ID SHA256HEX [role=viewer|operator|admin] [actor=NAME] [type=user|agent|..]
 *      [states-actors] [sandboxes=GLOB,GLOB...] [created=TIME] [expires=TIME]
 *
 * sandboxes= names the sandboxes that it is for, by id; only "*" is special.
 * Without role= it is the viewer's.  NAME holds no blank.  No word and no id
 * may stand twice; created= is for people.
 *
 * ID is [a-z0-9]{1,32}; SHA256HEX is the digest of the whole token text.  A
 * token as people see it is "sbx_" + ID + "_" + 43 base64url characters
 * (256 random bits), so that the row is found without comparing secrets.
 */

#ifndef SB_TOKEN_H_INCLUDED
#define SB_TOKEN_H_INCLUDED

#include "sb.h"

#define SB_TOKEN_ID_MAX    32
#define SB_TOKEN_NAME_MAX  128
#define SB_TOKEN_TEXT_MAX  128
#define SB_TOKEN_GLOBS_MAX 255
#define SB_TOKENS_MAX      4096

typedef enum {
    SB_ROLE_VIEWER = 0,
    SB_ROLE_OPERATOR,
    SB_ROLE_ADMIN
} sb_role_e;

typedef struct {
    char       id[SB_TOKEN_ID_MAX + 1];
    uint8_t    hash[32];
    sb_role_e  role;
    bool       states_actors;
    char       actor[SB_TOKEN_NAME_MAX + 1];    /* may be empty */
    char       type[33];                        /* may be empty */
    char       sandboxes[SB_TOKEN_GLOBS_MAX + 1];   /* empty: all */
    uint64_t   created_us;                      /* 0: not known */
    uint64_t   expires_us;                      /* 0: never */
} sb_token_t;

typedef struct {
    sb_token_t  *items;     /* malloc'd, sorted by id */
    size_t       n;
} sb_tokens_t;

/* Parses the text of a token file.  On SB_ERROR `line` is the number of the bad
 * line (from 1) and `why` a static sentence; unknown words are errors.  After
 * any error t is empty and needs no sb_tokens_free(). */
sb_rc_t sb_tokens_parse(sb_tokens_t *t, sb_str_t text, unsigned *line,
    const char **why);
void sb_tokens_free(sb_tokens_t *t);

/* Makes a token: fills `token` (id of 10 characters and hash; the rest is the
 * caller's) and writes the text into `text` (SB_TOKEN_TEXT_MAX bytes,
 * NUL-terminated). */
void sb_token_make(sb_token_t *token, char *text);

/* One line of the file for a token, with "\n"; now_us goes into created= when
 * the token has no such time.
 * SB_ERROR when a name cannot stand in the file; nothing is added on errors. */
sb_rc_t sb_token_line(sb_buf_t *out, const sb_token_t *token, uint64_t now_us);

/* The line of the token with an id in the text of a file, "\n" included: where
 * it begins, its length in *len.  NULL when there is none. */
const char *sb_token_line_of(sb_str_t text, sb_str_t id, size_t *len);

/* "viewer", "operator" or "admin". */
const char *sb_role_name(sb_role_e role);

/* Would somebody be locked out without this token: is it an admin's for all
 * sandboxes, and no other such one lasts as long? */
bool sb_token_last_admin(const sb_tokens_t *t, const sb_token_t *token,
    uint64_t now_us);

/* token_json.c: what POST tokens of the console API asks for (docs/console-api.md,
 * "Tokens"); id and hash stay empty.  SB_ERROR with a static sentence in
 * *why, which needs no escapes in JSON; SB_NOMEM. */
sb_rc_t sb_token_ask(sb_token_t *token, sb_str_t body, uint64_t now_us,
    const char **why);
/* Appends the members of a token as the console API shows it, without braces
 * around them. */
sb_rc_t sb_token_members(sb_buf_t *out, const sb_token_t *token);
/* Appends the member "sandboxes" alone: ids with "*", none when it is for all. */
sb_rc_t sb_token_sandboxes(sb_buf_t *out, const sb_token_t *token);

/* The row of a presented token, or NULL (unknown, wrong, expired).  Constant
 * time in the secret part.  The row lives as long as t. */
const sb_token_t *sb_token_check(const sb_tokens_t *t, sb_str_t text,
    uint64_t now_us);

/* The row with an id, or NULL when there is none or it is expired. */
const sb_token_t *sb_token_find(const sb_tokens_t *t, sb_str_t id,
    uint64_t now_us);

/* Is it for a sandbox?  A token that is not for all is for nothing without a
 * sandbox (an empty id) either. */
bool sb_token_allows(const sb_token_t *token, sb_str_t sandbox);

/* Is it a list of globs as in sandboxes=: 1 to SB_TOKEN_GLOBS_MAX letters,
 * digits, ".", "_", "-" and "*", by commas? */
bool sb_token_globs(sb_str_t globs);

/*
 * Endpoint tokens (design 6): handed out in rewritten endpoint answers, bound
 * to one sandbox and port, and to the credential that asked.  Text:
 * "sbe_" + base64url(claims) + "." + base64url(HMAC-SHA256), keyed by
 * HMAC-SHA256(row hash, "sandbox endpoint token 1"): revoking the credential
 * revokes them, and nothing has to be stored.
 */
typedef struct {
    sb_str_t           sandbox;     /* decoded: points into the caller's buf */
    uint32_t           port;
    sb_str_t           actor_type;  /* as stated by who asked; may be empty */
    sb_str_t           actor_id;
    const sb_token_t  *row;
} sb_endpoint_token_t;

#define SB_ENDPOINT_TOKEN_MAX  1024

/* Writes the token text, NUL-terminated, into text (SB_ENDPOINT_TOKEN_MAX).
 * SB_LIMIT when the names do not fit (about 700 bytes in all). */
sb_rc_t sb_endpoint_token_make(char *text, const sb_endpoint_token_t *e);

/* Checks a presented text.  buf (SB_ENDPOINT_TOKEN_MAX bytes) receives what the
 * slices point to.  SB_DECLINED: not of this form, forged, or its credential is
 * gone or expired. */
sb_rc_t sb_endpoint_token_check(sb_endpoint_token_t *e, const sb_tokens_t *t,
    sb_str_t text, uint64_t now_us, char *buf);

/*
 * Codes that sign in to the console once (`sandbox-gateway link`): who can read
 * the file makes them, keyed by HMAC-SHA256(row hash, "sandbox console code 1").
 * They look like endpoint tokens.  That one is used once is the concern of who
 * checks it.
 */
typedef struct {
    const sb_token_t  *row;
    sb_role_e          role;        /* at most the row's */
    uint64_t           made_us;
} sb_code_t;

#define SB_CODE_VALID_US  (60 * UINT64_C(1000000))

/* Writes a code, different each time, NUL-terminated, into text
 * (SB_ENDPOINT_TOKEN_MAX). */
void sb_code_make(char *text, const sb_code_t *c);

/* SB_DECLINED: not of this form, forged, older than SB_CODE_VALID_US or from
 * the future, or its token is gone or expired. */
sb_rc_t sb_code_check(sb_code_t *c, const sb_tokens_t *t, sb_str_t text,
    uint64_t now_us);

/* Does a text hold, anywhere, what looks like a token of ours (valid or not)?
 * Used for stripping towards sandboxes. */
bool sb_token_like(sb_str_t text);

#endif /* SB_TOKEN_H_INCLUDED */
