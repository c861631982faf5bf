/* A policy's text as tokens, and where something in it is wrong.  A word stands
 * bare, or in "..." (\" is a quote) or '...' (nothing special). */

#include "policy_parse_int.h"

#include <stdarg.h>
#include <stdio.h>


/* --- errors ----------------------------------------------------------------- */

void
sb_policy_where(sb_policy_parser_t *s, const char *at, unsigned *line,
    unsigned *column)
{
    const char  *p = s->policy->text, *start = p;

    for (*line = 1; p < at; p++) {
        if (*p == '\n') {
            (*line)++;
            start = p + 1;
        }
    }

    *column = (unsigned) (at - start) + 1;
}


sb_rc_t
sb_policy_fail(sb_policy_parser_t *s, const char *at, const char *fmt, ...)
{
    int                 n;
    va_list             args;
    sb_policy_error_t  *e = s->error;

    sb_policy_where(s, at, &e->line, &e->column);

    n = snprintf(e->text, sizeof(e->text), "%.120s:%u:%u: ", s->policy->name,
                 e->line, e->column);

    va_start(args, fmt);
    (void) vsnprintf(e->text + n, sizeof(e->text) - (size_t) n, fmt, args);
    va_end(args);

    return SB_ERROR;
}


/* --- tokens ----------------------------------------------------------------- */

static bool
sb_policy_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}


static sb_rc_t
sb_policy_quoted(sb_policy_parser_t *s)
{
    char     quote = *s->p++;
    sb_rc_t  rc = SB_OK;

    s->quoted = true;

    while (rc == SB_OK && s->p < s->end && *s->p != quote) {

        if (*s->p == '\n') {
            break;
        }

        if (quote == '"' && *s->p == '\\' && s->p + 1 < s->end
            && s->p[1] == '"')
        {
            s->p++;
        }

        rc = sb_buf_add_c(&s->word, *s->p++);
    }

    if (rc != SB_OK) {
        return rc;
    }

    if (s->p == s->end || *s->p != quote) {
        return sb_policy_fail(s, s->token, "a quoted text does not end on its "
                              "line");
    }

    s->p++;

    if (s->p < s->end && !sb_policy_blank(*s->p) && *s->p != ';'
        && *s->p != '{')
    {
        return sb_policy_fail(s, s->p, "a blank or \";\" must follow a quoted "
                              "text");
    }

    return SB_OK;
}


sb_rc_t
sb_policy_next(sb_policy_parser_t *s, sb_policy_token_e *token)
{
    sb_rc_t  rc = SB_OK;

    for ( ;; ) {
        while (s->p < s->end && sb_policy_blank(*s->p)) {
            s->p++;
        }

        if (s->p == s->end || *s->p != '#') {
            break;
        }

        while (s->p < s->end && *s->p != '\n') {
            s->p++;
        }
    }

    s->token = s->p;
    s->quoted = false;
    s->word.len = 0;

    if (s->p == s->end) {
        *token = SB_PT_END;
        return SB_OK;
    }

    switch (*s->p) {

    case ';':
        s->p++;
        *token = SB_PT_SEMICOLON;
        return SB_OK;

    case '{':
        s->p++;
        *token = SB_PT_OPEN;
        return SB_OK;

    case '}':
        s->p++;
        *token = SB_PT_CLOSE;
        return SB_OK;

    case '"':
    case '\'':
        *token = SB_PT_WORD;
        rc = sb_policy_quoted(s);
        break;

    default:
        *token = SB_PT_WORD;

        while (rc == SB_OK && s->p < s->end && !sb_policy_blank(*s->p)
               && strchr(";{}\"'", *s->p) == NULL)
        {
            rc = sb_buf_add_c(&s->word, *s->p++);
        }

        if (rc == SB_OK && s->p < s->end && strchr("\"'", *s->p) != NULL) {
            return sb_policy_fail(s, s->p, "a quote stands inside of a word: "
                                  "put all of it in quotes");
        }
    }

    return rc == SB_OK && sb_buf_cstr(&s->word) == NULL ? SB_NOMEM : rc;
}


bool
sb_policy_is(const sb_policy_parser_t *s, const char *word)
{
    return !s->quoted && sb_eq(sb_str(s->word.data, s->word.len),
                               sb_str(word, strlen(word)));
}
