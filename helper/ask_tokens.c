/*
 * POST tokens and DELETE tokens/{id}: the worker has made the token and knows
 * who may use it at once; here it is written, so that the next reload finds it.
 * The body is its line of the file: no secret comes here.
 */

#include "ask_answer.h"
#include "id.h"
#include "log.h"
#include "tokens.h"

#define ASK_TOKENS_LOOK_US  10000       /* between two tries at the lock */


static ask_rc_e
ask_tokens_refuse(ask_question_t *q, tokens_rc_e rc)
{
    switch (rc) {

    case TOKENS_BUSY:
        /* the worker's patience ends it */
        ask_later(q, ASK_TOKENS_LOOK_US);
        return ASK_AGAIN;

    case TOKENS_CLOSED:
        return ask_refuse(q, 501, "GATEWAY_UNSUPPORTED", "The helper has no "
                          "file of tokens that it may write: make them with "
                          "sandbox-gateway token add, or start the helper with "
                          "--tokens.");

    case TOKENS_FULL:
        return ask_refuse(q, 409, "GATEWAY_LIMIT_EXCEEDED", "The file of "
                          "tokens holds 4096 tokens or 4 MiB: revoke some, and "
                          "remove lines from it that begin with #.");

    case TOKENS_NONE:
        return ask_absent(q, "There is no token of that id.");

    case TOKENS_LAST:
        return ask_refuse(q, 409, "GATEWAY_LAST_ADMIN", "No other token with "
                          "the role admin lasts as long: make one first, or "
                          "use sandbox-gateway token revoke.");

    default:
        return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", "The file of "
                          "tokens cannot be changed now; the log of the helper "
                          "says why.");
    }
}


/* What the record says of the token. */
static void
ask_tokens_result(ask_question_t *q, const sb_token_t *token)
{
    q->result.max = 4096;
    q->result.len = 0;

    if (sb_buf_add_str(&q->result, sb_lit("{\"token\":{")) != SB_OK
        || sb_token_members(&q->result, token) != SB_OK
        || sb_buf_add_str(&q->result, sb_lit("}}")) != SB_OK)
    {
        q->result.len = 0;
    }
}


ask_rc_e
ask_token_add(ask_question_t *q)
{
    unsigned      line;
    sb_rc_t       parsed;
    api_t        *api;
    sb_tokens_t   set;
    const char   *why;
    tokens_rc_e   rc;

    api = q->context;

    parsed = sb_tokens_parse(&set, q->body, &line, &why);

    if (parsed != SB_OK || set.n != 1) {
        sb_tokens_free(&set);
        return parsed == SB_NOMEM ? ASK_FAILED
               : ask_refuse(q, 400, "GATEWAY_INVALID_PARAMETER", "The worker "
                            "has not named one token.");
    }

    rc = api->options->tokens ? tokens_add(api->options->tokens, set.items,
                                           sb_now_us())
                              : TOKENS_CLOSED;

    if (rc == TOKENS_OK) {
        ask_tokens_result(q, set.items);
        ask_head(q, 201, "application/json");
        log_line(LOG_INFO, "token %s was added by %.*s", set.items[0].id,
                 (int) q->identity.len, q->identity.data);
    }

    sb_tokens_free(&set);

    return rc == TOKENS_OK ? ASK_DONE : ask_tokens_refuse(q, rc);
}


ask_rc_e
ask_token_revoke(ask_question_t *q)
{
    api_t        *api;
    sb_token_t    token;
    tokens_rc_e   rc;

    api = q->context;

    rc = api->options->tokens ? tokens_revoke(api->options->tokens, q->args[0],
                                              sb_now_us(), &token)
                              : TOKENS_CLOSED;

    if (rc != TOKENS_OK) {
        return ask_tokens_refuse(q, rc);
    }

    ask_tokens_result(q, &token);
    log_line(LOG_INFO, "token %s was revoked by %.*s", token.id,
             (int) q->identity.len, q->identity.data);

    return ASK_DONE;
}
