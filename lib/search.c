#include "search.h"

#include "tokenize.h"

#include <stdlib.h>


typedef struct {
    char    *token;
    size_t   len;
} search_token_t;

/* A word is a phrase of one. */
typedef struct {
    size_t   first, n;          /* of sb_search_s.tokens */
    bool     begins;            /* the last one is the beginning of a token */
} search_term_t;

struct sb_search_s {
    search_token_t  *tokens;
    size_t           n, alloc;
    search_term_t    terms[SB_SEARCH_TERMS];
    unsigned         nterms;
};


void
sb_search_free(sb_search_t *s)
{
    size_t  i;

    if (s == NULL) {
        return;
    }

    for (i = 0; i < s->n; i++) {
        free(s->tokens[i].token);
    }

    free(s->tokens);
    free(s);
}


static sb_rc_t
search_token(sb_search_t *s, const sb_tokens_t *t)
{
    size_t           n;
    search_token_t  *p;

    if (s->n == s->alloc) {
        n = s->alloc ? s->alloc * 2 : 16;
        p = realloc(s->tokens, n * sizeof(search_token_t));

        if (p == NULL) {
            return SB_NOMEM;
        }

        s->tokens = p;
        s->alloc = n;
    }

    p = &s->tokens[s->n];
    p->len = t->len;
    p->token = malloc(t->len + 1);

    if (p->token == NULL) {
        return SB_NOMEM;
    }

    memcpy(p->token, t->token, t->len);
    s->n++;

    return SB_OK;
}


static sb_rc_t
search_term(sb_search_t *s, sb_str_t text)
{
    sb_rc_t         rc;
    sb_tokens_t     t;
    search_term_t   term = { s->n, 0, false };

    rc = SB_OK;
    sb_tokens_init(&t, text, true);

    while (rc == SB_OK && sb_tokens_next(&t)) {
        rc = term.n == SB_SEARCH_PHRASE ? SB_LIMIT : search_token(s, &t);
        term.n++;
    }

    if (rc != SB_OK || term.n == 0) {
        return rc;
    }

    if (s->nterms == SB_SEARCH_TERMS) {
        return SB_LIMIT;
    }

    term.begins = t.single;
    s->terms[s->nterms++] = term;

    return SB_OK;
}


sb_search_t *
sb_search_new(sb_str_t q, sb_rc_t *rc)
{
    size_t        pos;
    sb_str_t      term;
    sb_search_t  *s;

    s = calloc(1, sizeof(sb_search_t));
    *rc = s ? SB_OK : SB_NOMEM;
    pos = 0;

    while (*rc == SB_OK && sb_tokens_term(q, &pos, &term)) {
        *rc = search_term(s, term);
    }

    if (*rc == SB_OK && s->nterms == 0) {
        *rc = SB_DECLINED;
    }

    if (*rc != SB_OK) {
        sb_search_free(s);
        return NULL;
    }

    return s;
}


uint32_t
sb_search_all(const sb_search_t *s)
{
    return s->nterms == 32 ? UINT32_MAX : (UINT32_C(1) << s->nterms) - 1;
}


static bool
search_is(const search_token_t *want, bool begins, const sb_tokens_t *t)
{
    return (begins ? t->len >= want->len : t->len == want->len)
           && memcmp(want->token, t->token, want->len) == 0;
}


/* One step of all terms: `at` has, for each, at which of its tokens the token
 * stands, as bits; `far` how far each has come. */
static uint32_t
search_step(const sb_search_t *s, const uint64_t *at, uint64_t *far)
{
    unsigned  i;
    uint32_t  found;

    found = 0;

    for (i = 0; i < s->nterms; i++) {
        far[i] = ((far[i] << 1) | 1) & at[i];

        if (far[i] >> (s->terms[i].n - 1) & 1) {
            found |= UINT32_C(1) << i;
        }
    }

    return found;
}


uint32_t
sb_search_find(const sb_search_t *s, sb_str_t text)
{
    bool                  any;
    size_t                k;
    uint32_t              found, all;
    uint64_t              at[SB_SEARCH_TERMS], far[SB_SEARCH_TERMS];
    unsigned              i;
    sb_tokens_t           t;
    const search_term_t  *term;

    memset(at, 0, sizeof(at));
    memset(far, 0, sizeof(far));
    all = sb_search_all(s);
    found = 0;
    any = false;
    sb_tokens_init(&t, text, false);

    while (found != all && sb_tokens_next(&t)) {

        if (any && !t.together) {
            /* all that stands at the place before is known */
            found |= search_step(s, at, far);
            memset(at, 0, sizeof(at));
        }

        any = true;

        for (i = 0; i < s->nterms; i++) {
            term = &s->terms[i];

            for (k = 0; k < term->n; k++) {
                if (search_is(&s->tokens[term->first + k],
                              term->begins && k == term->n - 1, &t))
                {
                    at[i] |= UINT64_C(1) << k;
                }
            }
        }
    }

    return any ? found | search_step(s, at, far) : found;
}
