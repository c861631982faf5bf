/* Cookies of a request and of an answer: which of them are the gateway's own. */

#ifndef SB_COOKIE_H_INCLUDED
#define SB_COOKIE_H_INCLUDED

#include "sb.h"

/* Their names, also behind "__Host-" and "__Secure-"; that of the session goes on
 * with a port. */
#define SB_COOKIE_SESSION  "sandbox_session"
#define SB_COOKIE_PORT     "sandbox_port"

/* Cuts the next "name=value" off; blanks around names and values are not theirs. */
bool sb_cookie_next(sb_str_t *rest, sb_str_t *pair, sb_str_t *name,
    sb_str_t *value);

/* Is a cookie of that name the gateway's own? */
bool sb_cookie_ours(sb_str_t name);

/* Is one of them in a Cookie header? */
bool sb_cookie_has_ours(sb_str_t header);

/* The header without them: its length.  `to` has room for all of the header, and
 * is not the header itself. */
size_t sb_cookie_strip(char *to, sb_str_t header);

/* Would a Set-Cookie from a sandbox set one of ours, or reach beyond the host
 * that it came from? */
bool sb_cookie_foreign(sb_str_t set_cookie);

#endif /* SB_COOKIE_H_INCLUDED */
