/*
 * The file of tokens that the console API changes (--tokens), which is also
 * `sandbox-gateway token`'s.  Its directory need not be ours: a token is added
 * with one write at the end, and revoked by the one byte that makes a comment of
 * its line; so nobody ever reads half a change.
 */

#ifndef TOKENS_H_INCLUDED
#define TOKENS_H_INCLUDED

#include "token.h"

#define TOKENS_FILE_MAX  (4 * 1024 * 1024)      /* as nginx takes it */

typedef enum {
    TOKENS_OK = 0,
    TOKENS_BUSY,        /* another one is writing it */
    TOKENS_CLOSED,      /* it is not there, or we may not write it */
    TOKENS_FAILED,      /* the log says why */
    TOKENS_FULL,
    TOKENS_TAKEN,       /* a token with that id is there */
    TOKENS_NONE,        /* there is none with that id */
    TOKENS_LAST         /* sb_token_last_admin() */
} tokens_rc_e;

/* Adds a token. */
tokens_rc_e tokens_add(const char *path, const sb_token_t *token,
    uint64_t now_us);
/* Takes out the one with an id, and tells which it was. */
tokens_rc_e tokens_revoke(const char *path, sb_str_t id, uint64_t now_us,
    sb_token_t *token);

#endif /* TOKENS_H_INCLUDED */
