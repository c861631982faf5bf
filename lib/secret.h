/*
 * Secrets in texts that are to be stored: each is masked where it stands, "*"
 * for every byte, so that lengths and places stay what they were (C116).
 *
 * Two kinds: what is a credential of this gateway, live now (its tokens, its
 * endpoint tokens, upstream's key; of sessions and tickets all that have the
 * form), wherever it stands; and what a command calls
 * a credential (a header, a parameter of a URL, a password in one).
 */

#ifndef SB_SECRET_H_INCLUDED
#define SB_SECRET_H_INCLUDED

#include "frame.h"
#include "token.h"

/* None is longer, or begins further before the end of a text that may go on. */
#define SB_SECRET_MAX    SB_ENDPOINT_TOKEN_MAX
/* A key of upstream's is: */
#define SB_SECRET_KEY    1000
/* Of one that may be going to follow, so many bytes tell nothing yet. */
#define SB_SECRET_SHOWN  4

typedef struct {
    const sb_tokens_t  *tokens;     /* may be NULL */
    sb_str_t            key;        /* of upstream; empty: none.  One of less
                                       than 8 bytes is a word and is not looked
                                       for, one of less than 16 must stand
                                       alone */
    sb_str_t            key_json;   /* the same as JSON writes it, when that is
                                       something else */
} sb_secret_set_t;

typedef struct {
    const sb_secret_set_t  *sets;
    size_t                  n;
} sb_secrets_t;

/*
 * Masks the live ones among n bytes at p; returns how many there were.  Of a
 * token its id stays.  Texts that are none are not touched, but where more than
 * 64 name an existing credential and are forged, the rest of them is masked
 * without a look.
 */
size_t sb_secrets_mask(const sb_secrets_t *s, char *p, size_t n,
    uint64_t now_us);

/* Does a text hold such a key (which may be empty), or what has the form of a
 * token or an endpoint token, live or not?  For those who know none. */
bool sb_secrets_like(sb_str_t key, sb_str_t text);

/* The number of bytes at the end that could be the beginning of one, less than
 * SB_SECRET_MAX. */
size_t sb_secrets_open(const sb_secrets_t *s, sb_str_t text);

/* Masks within a finished frame: texts of clients and upstream, and what its
 * command and request call a credential.  Not DATA. */
size_t sb_secrets_frame(const sb_secrets_t *s, void *frame, size_t len,
    uint64_t now_us);

/*
 * Masks what a command, or the JSON of a request, calls a credential: the value
 * of headers and of parameters in URLs whose names are in the list of
 * docs/threat-model.md, a password before the "@" of a URL.  What begins with
 * "$" or "{" is the name of a variable and stays.
 */
size_t sb_secrets_named(char *p, size_t n);

#endif /* SB_SECRET_H_INCLUDED */
