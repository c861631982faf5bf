/* The token file of sandbox-gateway's `token` subcommands. */

#ifndef TOKEN_FILE_H_INCLUDED
#define TOKEN_FILE_H_INCLUDED

#include "token.h"

/* Fills id and hash of a token whose id the caller has chosen, and its text
 * (SB_TOKEN_TEXT_MAX bytes). */
void gw_token_named(sb_token_t *t, const char *id, char *text);

/* Whether there is a token file: 1, or 0 also for one of no bytes, which no start
 * of ours has left behind; -1 and errno when nobody can tell. */
int gw_tokens_there(const char *path);

/* Opens the file for appending and locks it; with `make` it is made with mode 0600
 * when it is not there.  -1 after a sentence. */
int gw_tokens_open(const char *path, bool make);

/* The file's text (malloc'd, NUL-terminated) and its tokens (to be freed by
 * sb_tokens_free()).  NULL after a sentence. */
char *gw_tokens_load(const char *path, sb_tokens_t *t, size_t *len);

/* Tells how what was written comes to count. */
void gw_token_hint(const char *path);

#endif /* TOKEN_FILE_H_INCLUDED */
