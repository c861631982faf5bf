#include "tokenize.h"

#include "fold.h"
#include "utf8.h"


#define TOKEN_ESCAPE  4096      /* bytes of an escape sequence, at most */


void
sb_tokens_init(sb_tokens_t *t, sb_str_t text, bool query)
{
    memset(t, 0, sizeof(sb_tokens_t));
    t->text = text;
    t->query = query;
}


static size_t
tokens_put(char *dst, uint32_t code)
{
    if (code < 0x80) {
        dst[0] = (char) code;
        return 1;
    }

    if (code < 0x800) {
        dst[0] = (char) (0xc0 | code >> 6);
        dst[1] = (char) (0x80 | (code & 0x3f));
        return 2;
    }

    if (code < 0x10000) {
        dst[0] = (char) (0xe0 | code >> 12);
        dst[1] = (char) (0x80 | (code >> 6 & 0x3f));
        dst[2] = (char) (0x80 | (code & 0x3f));
        return 3;
    }

    dst[0] = (char) (0xf0 | code >> 18);
    dst[1] = (char) (0x80 | (code >> 12 & 0x3f));
    dst[2] = (char) (0x80 | (code >> 6 & 0x3f));
    dst[3] = (char) (0x80 | (code & 0x3f));

    return 4;
}


/* Length of the escape sequence at p, which begins with ESC. */
static size_t
tokens_escape(const unsigned char *p, size_t n)
{
    size_t  i;

    if (n < 2) {
        return 1;
    }

    if (n > TOKEN_ESCAPE) {
        n = TOKEN_ESCAPE;
    }

    if (p[1] == '[') {
        for (i = 2; i < n && p[i] >= 0x20 && p[i] <= 0x3f; i++) { /* void */ }

        return i < n && p[i] >= 0x40 && p[i] <= 0x7e ? i + 1 : i;
    }

    if (p[1] == ']' || p[1] == 'P' || p[1] == '_' || p[1] == '^') {
        for (i = 2; i < n; i++) {
            if (p[i] == 0x07) {
                return i + 1;
            }

            if (p[i] == 0x1b) {
                return i + 1 < n && p[i + 1] == '\\' ? i + 2 : i;
            }

            if (p[i] == '\n') {
                break;
            }
        }

        /* not ended: a stray one, whose text is text */
        return 2;
    }

    if (p[1] >= 0x20 && p[1] <= 0x2f) {
        /* ESC ( B */
        return n >= 3 && p[2] >= 0x30 && p[2] <= 0x7e ? 3 : 2;
    }

    return p[1] >= 0x30 && p[1] <= 0x7e ? 2 : 1;
}


/* The class of the character at pos, its length and what it is folded to. */
static sb_char_e
tokens_char(const sb_tokens_t *t, size_t *len, uint32_t *folded)
{
    size_t                n, left;
    const unsigned char  *p;

    p = (const unsigned char *) t->text.data + t->pos;
    left = t->text.len - t->pos;

    if (*p < 0x80) {
        if (*p == 0x1b) {
            *len = tokens_escape(p, left);
            *folded = ' ';
            return SB_CHAR_BREAK;
        }

        *len = 1;
        return sb_fold(*p, folded);
    }

    n = sb_utf8_char(p, left);

    if (n == 0) {
        *len = 1;
        *folded = ' ';
        return SB_CHAR_BREAK;
    }

    *len = n;

    return sb_fold(sb_utf8_code(p, n), folded);
}


static void
tokens_word(sb_tokens_t *t)
{
    char       c, mem[4];
    bool       full;
    size_t     len, n;
    uint32_t   code;
    sb_char_e  class;

    t->len = 0;
    t->from = t->pos;
    t->pair = false;
    t->single = false;
    t->together = false;
    full = false;

    while (t->pos < t->text.len) {
        c = t->text.data[t->pos];

        if (((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9'))
        {
            /* nearly all of them; digits have that bit */
            t->pos++;

            if (t->len < SB_TOKEN_MAX && !full) {
                t->token[t->len++] = (char) (c | 0x20);

            } else {
                full = true;
            }

            continue;
        }

        class = tokens_char(t, &len, &code);

        if (class == SB_CHAR_BREAK || class == SB_CHAR_PAIR) {
            break;
        }

        t->pos += len;

        if (class == SB_CHAR_MARK || full) {
            continue;
        }

        n = tokens_put(mem, code);

        if (t->len + n > SB_TOKEN_MAX) {
            full = true;
            continue;
        }

        memcpy(t->token + t->len, mem, n);
        t->len += n;
    }

    t->to = t->pos;
}


static void
tokens_single(sb_tokens_t *t)
{
    memcpy(t->token, t->last, t->last_len);
    t->len = t->last_len;
    t->from = t->last_from;
    t->to = t->last_to;
    t->pair = true;
    t->single = true;
}


/* In a run of characters that make pairs; false: it ends. */
static bool
tokens_run(sb_tokens_t *t)
{
    char       mem[4];
    size_t     len, n, from;
    uint32_t   code;
    sb_char_e  class;

    while (t->pos < t->text.len) {
        class = tokens_char(t, &len, &code);

        if (class == SB_CHAR_MARK) {
            t->pos += len;
            continue;
        }

        if (class != SB_CHAR_PAIR) {
            break;
        }

        from = t->pos;
        t->pos += len;
        n = tokens_put(mem, code);
        t->chars++;

        if (t->chars > 1) {
            memcpy(t->token, t->last, t->last_len);
            memcpy(t->token + t->last_len, mem, n);
            t->len = t->last_len + n;
            t->from = t->last_from;
            t->to = t->pos;
            t->together = false;
            t->pair = true;
            t->single = false;
        }

        memcpy(t->last, mem, n);
        t->last_len = n;
        t->last_from = from;
        t->last_to = t->pos;

        if (t->chars > 1) {
            return true;
        }
    }

    /* its last character */

    n = t->chars;
    t->chars = 0;

    if (n == 0 || (n > 1 && t->query)) {
        return false;
    }

    tokens_single(t);
    t->together = n > 1;

    return true;
}


bool
sb_tokens_next(sb_tokens_t *t)
{
    size_t     len;
    uint32_t   code;
    sb_char_e  class;

    if (t->chars && tokens_run(t)) {
        return true;
    }

    while (t->pos < t->text.len) {
        class = tokens_char(t, &len, &code);

        if (class == SB_CHAR_WORD) {
            tokens_word(t);
            return true;
        }

        if (class == SB_CHAR_PAIR) {
            if (tokens_run(t)) {
                return true;
            }

            continue;
        }

        t->pos += len;
    }

    return false;
}


/* --- questions ------------------------------------------------------------- */

static bool
tokens_blank(sb_str_t q, size_t i, size_t *len)
{
    const unsigned char  *p = (const unsigned char *) q.data;

    *len = 1;

    if (p[i] <= ' ') {
        return true;
    }

    if (q.len - i >= 3 && p[i] == 0xe3 && p[i + 1] == 0x80 && p[i + 2] == 0x80)
    {
        /* the blank between Chinese characters */
        *len = 3;
        return true;
    }

    return false;
}


bool
sb_tokens_term(sb_str_t q, size_t *pos, sb_str_t *term)
{
    size_t  i, len, from;

    for (i = *pos; i < q.len && tokens_blank(q, i, &len); i += len) {
        /* void */
    }

    if (i == q.len) {
        return false;
    }

    if (q.data[i] == '"') {
        from = ++i;

        while (i < q.len && q.data[i] != '"') {
            i++;
        }

        *term = sb_str(q.data + from, i - from);
        *pos = i < q.len ? i + 1 : i;
        return true;
    }

    from = i;

    while (i < q.len && q.data[i] != '"' && !tokens_blank(q, i, &len)) {
        i++;
    }

    *term = sb_str(q.data + from, i - from);
    *pos = i;

    return true;
}


/* A phrase of FTS5, made of the tokens themselves: letters and digits only. */
static sb_rc_t
tokens_phrase(sb_buf_t *out, sb_str_t term, bool *any)
{
    sb_rc_t      rc;
    sb_tokens_t  t;

    *any = false;
    rc = SB_OK;
    sb_tokens_init(&t, term, true);

    while (rc == SB_OK && sb_tokens_next(&t)) {
        rc = *any ? sb_buf_add_c(out, ' ')
                  : sb_buf_add_str(out, out->len ? sb_lit(" \"") : sb_lit("\""));

        if (rc == SB_OK) {
            rc = sb_buf_add(out, t.token, t.len);
        }

        *any = true;
    }

    if (rc == SB_OK && *any) {
        rc = sb_buf_add_str(out, t.single ? sb_lit("\"*") : sb_lit("\""));
    }

    return rc;
}


sb_rc_t
sb_tokens_query(sb_buf_t *out, sb_str_t q, unsigned terms)
{
    bool      any;
    size_t    pos;
    sb_rc_t   rc;
    unsigned  n;
    sb_str_t  term;

    pos = 0;
    n = 0;
    out->len = 0;

    while (sb_tokens_term(q, &pos, &term)) {

        rc = tokens_phrase(out, term, &any);
        if (rc != SB_OK) {
            return rc;
        }

        if (any && ++n > terms) {
            return SB_LIMIT;
        }
    }

    return n ? SB_OK : SB_DECLINED;
}
