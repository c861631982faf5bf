#include "scan.h"


#define SB_SCAN_BEGIN    "-----BEGIN "
#define SB_SCAN_PRIVATE  "PRIVATE KEY"
#define SB_SCAN_LABEL    48     /* between the two, with the second */

/* Which bytes follow the beginning of a form. */
typedef enum {
    SB_SCAN_UPPER = 0,      /* capital letters and digits */
    SB_SCAN_ALNUM,
    SB_SCAN_WORD,           /* ... and "_" */
    SB_SCAN_DASH            /* ... and "-" */
} sb_scan_class_e;

static const struct {
    sb_str_t         prefix;
    size_t           n;         /* bytes behind it */
    sb_scan_class_e  set;
    unsigned         found;
} forms[] = {
    { { "AKIA", 4 }, 16, SB_SCAN_UPPER, SB_SCAN_AWS_KEY },
    { { "ASIA", 4 }, 16, SB_SCAN_UPPER, SB_SCAN_AWS_KEY },
    { { "AIza", 4 }, 35, SB_SCAN_DASH, SB_SCAN_GOOGLE_KEY },
    { { "ghp_", 4 }, 36, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "gho_", 4 }, 36, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "ghu_", 4 }, 36, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "ghs_", 4 }, 36, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "ghr_", 4 }, 36, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "github_pat_", 11 }, 60, SB_SCAN_WORD, SB_SCAN_TOKEN },
    { { "glpat-", 6 }, 20, SB_SCAN_DASH, SB_SCAN_TOKEN },
    { { "xoxb-", 5 }, 24, SB_SCAN_DASH, SB_SCAN_TOKEN },
    { { "xoxp-", 5 }, 24, SB_SCAN_DASH, SB_SCAN_TOKEN },
    { { "npm_", 4 }, 36, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "pypi-AgEIcHlwaS5vcmc", 20 }, 50, SB_SCAN_DASH, SB_SCAN_TOKEN },
    { { "sk_live_", 8 }, 24, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "rk_live_", 8 }, 24, SB_SCAN_ALNUM, SB_SCAN_TOKEN },
    { { "sbx_", 4 }, 40, SB_SCAN_DASH, SB_SCAN_GATEWAY },
};

/* Where one may begin. */
static const bool  first[256] = {
    ['-'] = true, ['A'] = true, ['g'] = true, ['x'] = true, ['n'] = true,
    ['p'] = true, ['s'] = true, ['r'] = true
};


static bool
sb_scan_in(sb_scan_class_e set, char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')) {
        return true;
    }

    if (set == SB_SCAN_UPPER) {
        return false;
    }

    return (c >= 'a' && c <= 'z')
           || (c == '_' && set >= SB_SCAN_WORD)
           || (c == '-' && set == SB_SCAN_DASH);
}


static bool
sb_scan_private(const char *p, size_t n)
{
    size_t  begin = sizeof(SB_SCAN_BEGIN) - 1;

    if (n < begin || memcmp(p, SB_SCAN_BEGIN, begin) != 0) {
        return false;
    }

    n = n - begin < SB_SCAN_LABEL ? n - begin : SB_SCAN_LABEL;

    return memmem(p + begin, n, SB_SCAN_PRIVATE, sizeof(SB_SCAN_PRIVATE) - 1)
           != NULL;
}


/* What begins at p, of which n bytes are there. */
static unsigned
sb_scan_at(const char *p, size_t n)
{
    size_t  i, k, len;

    if (*p == '-') {
        return sb_scan_private(p, n) ? SB_SCAN_PRIVATE_KEY : 0;
    }

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {

        len = forms[i].prefix.len;

        if (n < len + forms[i].n || memcmp(p, forms[i].prefix.data, len) != 0) {
            continue;
        }

        for (k = 0; k < forms[i].n && sb_scan_in(forms[i].set, p[len + k]);
             k++)
        {
            /* void */
        }

        if (k == forms[i].n) {
            return forms[i].found;
        }
    }

    return 0;
}


/* Looks at what begins in [from, to) of n bytes.  In the midst of a word nothing
 * begins; `before` is the byte before p. */
static unsigned
sb_scan_range(const char *p, size_t n, size_t from, size_t to, char before)
{
    char      prev;
    size_t    i;
    unsigned  found = 0;

    for (i = from; i < to; i++) {

        if (!first[(unsigned char) p[i]]) {
            continue;
        }

        prev = i ? p[i - 1] : before;

        if (p[i] == '-' || !sb_scan_in(SB_SCAN_ALNUM, prev)) {
            found |= sb_scan_at(p + i, n - i);
        }
    }

    return found;
}


void
sb_scan_feed(sb_scan_t *s, const char *p, size_t n)
{
    char    before = s->len ? s->tail[s->len - 1] : '\n';
    char    joint[2 * SB_SCAN_KEEP + 1];
    size_t  more = n < SB_SCAN_KEEP ? n : SB_SCAN_KEEP, drop;

    if (n == 0) {
        return;
    }

    /* what began before this piece and ends in it; the first byte of a full tail
     * only says what was before the others */

    memcpy(joint, s->tail, s->len);
    memcpy(joint + s->len, p, more);

    s->found |= sb_scan_range(joint, s->len + more,
                              s->len == sizeof(s->tail) ? 1 : 0, s->len, '\n');
    s->found |= sb_scan_range(p, n, 0, n, before);

    if (n >= sizeof(s->tail)) {
        memcpy(s->tail, p + n - sizeof(s->tail), sizeof(s->tail));
        s->len = sizeof(s->tail);
        return;
    }

    drop = s->len + n > sizeof(s->tail) ? s->len + n - sizeof(s->tail) : 0;

    memmove(s->tail, s->tail + drop, s->len - drop);
    memcpy(s->tail + s->len - drop, p, n);
    s->len = s->len - drop + n;
}


unsigned
sb_scan_word(const char *word)
{
    size_t  i;

    static const struct {
        const char  *word;
        unsigned     found;
    } words[] = {
        { "secret", SB_SCAN_ALL },
        { "private-key", SB_SCAN_PRIVATE_KEY },
        { "aws-key", SB_SCAN_AWS_KEY },
        { "google-key", SB_SCAN_GOOGLE_KEY },
        { "token", SB_SCAN_TOKEN },
        { "gateway-token", SB_SCAN_GATEWAY },
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i].word) == 0) {
            return words[i].found;
        }
    }

    return 0;
}
