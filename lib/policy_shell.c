/* Words, quotes, expansions and operators of a shell command. */

#include "policy_shell_int.h"

#include <stdlib.h>


#define SB_SHELL_NESTED   64    /* brackets and quotes in one another */
#define SB_SHELL_HEREDOC  8     /* begun on one line */

typedef struct {
    size_t    at, len;
    bool      quoted, tabs, runs;
} sb_heredoc_t;

typedef struct {
    sb_shell_line_t   line;
    const char       *p, *end;
    sb_buf_t          names;
    sb_heredoc_t      heredocs[SB_SHELL_HEREDOC];
    size_t            nheredocs;
    size_t            own;      /* first heredoc of the command being read */
    unsigned          nested;   /* quotes in one another */
    unsigned          flags;    /* of the word being read */
    bool              name;     /* it could be a name so far */
} sb_shell_parser_t;


static sb_rc_t sb_shell_quoted(sb_shell_parser_t *s, sb_str_t text,
    sb_buf_t *out);


/* --- finding the end of what is open --------------------------------------- */

/* The character that closes what was opened before p; NULL: it is missing, or
 * nested too deep. */
static const char *
sb_shell_close(const char *p, const char *end, char closer, unsigned depth)
{
    if (depth == SB_SHELL_NESTED) {
        return NULL;
    }

    for ( /* void */ ; p < end; p++) {

        if (*p == closer) {
            return p;
        }

        if (*p == '\\') {
            p++;
            continue;
        }

        if (*p == '`') {
            p = sb_shell_close(p + 1, end, '`', depth + 1);

        } else if (*p == '$' && p + 1 < end && (p[1] == '(' || p[1] == '{')) {
            p = sb_shell_close(p + 2, end, p[1] == '(' ? ')' : '}', depth + 1);

        } else if (closer == '"' || closer == '`') {
            continue;

        } else if (*p == '\'') {
            p = memchr(p + 1, '\'', (size_t) (end - p - 1));

        } else if (*p == '"') {
            p = sb_shell_close(p + 1, end, '"', depth + 1);

        } else if (*p == '(' && closer == ')') {
            p = sb_shell_close(p + 1, end, ')', depth + 1);
        }

        if (p == NULL) {
            return NULL;
        }
    }

    return NULL;
}


/* --- expansions ------------------------------------------------------------ */

static sb_rc_t
sb_shell_backtick(sb_shell_parser_t *s, const char **p, const char *end)
{
    sb_rc_t      rc = SB_OK;
    sb_buf_t     b = { .max = SIZE_MAX / 2 };
    const char  *close, *q;

    close = sb_shell_close(*p + 1, end, '`', 0);

    if (close == NULL) {
        s->line.shell->unread = true;
        *p = end;
        return SB_OK;
    }

    for (q = *p + 1; rc == SB_OK && q < close; q++) {
        if (*q == '\\' && q + 1 < close && strchr("`\\$", q[1]) != NULL) {
            q++;
        }

        rc = sb_buf_add_c(&b, *q);
    }

    if (rc == SB_OK) {
        rc = sb_shell_parse(s->line.shell, sb_str(b.data, b.len),
                            s->line.depth + 1);
    }

    sb_buf_free(&b);

    s->flags |= SB_SW_EXPANDS;
    *p = close + 1;

    return rc;
}


/* $'...': p stands behind the quote. */
static sb_rc_t
sb_shell_ansi(sb_shell_parser_t *s, const char **pos, const char *end,
    sb_buf_t *out)
{
    int          digits, max, base, v;
    char         c;
    sb_rc_t      rc = SB_OK;
    const char  *p = *pos;

    static const char  from[] = "abefnrtv", to[] = "\a\b\033\f\n\r\t\v";

    for ( /* void */ ; rc == SB_OK && p < end && *p != '\''; p++) {
        c = *p;

        if (c != '\\' || p + 1 == end) {
            rc = sb_buf_add_c(out, c);
            continue;
        }

        c = *++p;

        if (strchr(from, c) != NULL && c) {
            rc = sb_buf_add_c(out, to[strchr(from, c) - from]);
            continue;
        }

        if (c == 'u' || c == 'U' || c == 'c') {
            s->line.shell->unread = true;
            continue;
        }

        if (c != 'x' && !(c >= '0' && c <= '7')) {
            rc = sb_buf_add_c(out, c);
            continue;
        }

        base = c == 'x' ? 16 : 8;
        max = c == 'x' ? 2 : 3;
        p += c == 'x';

        for (v = 0, digits = 0; digits < max && p < end; digits++, p++) {
            int  d = sb_hex_value(*p);

            if (d < 0 || d >= base) {
                break;
            }

            v = v * base + d;
        }

        p--;
        rc = sb_buf_add_c(out, (char) v);
    }

    if (p == end) {
        s->line.shell->unread = true;

    } else {
        p++;
    }

    *pos = p;

    return rc;
}


/* What stands in $( ) is another pair of brackets: a sum, no command. */
static bool
sb_shell_arithmetic(sb_str_t inside)
{
    return inside.len > 1 && inside.data[0] == '('
           && sb_shell_close(inside.data + 1, inside.data + inside.len, ')', 0)
              == inside.data + inside.len - 1;
}


/* What begins with "$" at *pos. */
static sb_rc_t
sb_shell_dollar(sb_shell_parser_t *s, const char **pos, const char *end,
    bool quoted, sb_buf_t *out)
{
    sb_rc_t      rc;
    sb_str_t     inside;
    const char  *p = *pos, *close;

    if (p + 1 == end) {
        *pos = end;
        return sb_buf_add_c(out, '$');
    }

    if (!quoted && p[1] == '\'') {
        *pos = p + 2;
        s->flags |= SB_SW_QUOTED;
        return sb_shell_ansi(s, pos, end, out);
    }

    if (!quoted && p[1] == '"') {
        *pos = p + 1;
        return SB_OK;
    }

    if (p[1] == '(' || p[1] == '{') {
        close = sb_shell_close(p + 2, end, p[1] == '(' ? ')' : '}', 0);

        if (close == NULL) {
            s->line.shell->unread = true;
            *pos = end;
            return SB_OK;
        }

        s->flags |= SB_SW_EXPANDS;
        *pos = close + 1;

        inside = sb_str(p + 2, (size_t) (close - p - 2));

        rc = p[1] == '(' && !sb_shell_arithmetic(inside)
             ? sb_shell_parse(s->line.shell, inside, s->line.depth + 1)
             : sb_shell_quoted(s, inside, NULL);

        return rc == SB_OK ? sb_buf_add(out, p, (size_t) (close + 1 - p)) : rc;
    }

    if (strchr("_@*#?$!-", p[1]) != NULL || (p[1] >= '0' && p[1] <= '9')
        || (p[1] >= 'a' && p[1] <= 'z') || (p[1] >= 'A' && p[1] <= 'Z'))
    {
        s->flags |= SB_SW_EXPANDS;
    }

    *pos = p + 1;

    return sb_buf_add_c(out, '$');
}


/* A text as it stands between double quotes; out NULL: only what it runs. */
static sb_rc_t
sb_shell_quoted(sb_shell_parser_t *s, sb_str_t text, sb_buf_t *out)
{
    sb_rc_t      rc = SB_OK;
    sb_buf_t     waste = { .max = SIZE_MAX / 2 };
    const char  *p = text.data, *end = p + text.len;

    if (s->nested == SB_SHELL_NESTED) {
        s->line.shell->unread = true;
        return SB_OK;
    }

    s->nested++;

    out = out ? out : &waste;

    while (rc == SB_OK && p < end) {

        if (*p == '`') {
            rc = sb_shell_backtick(s, &p, end);

        } else if (*p == '$') {
            rc = sb_shell_dollar(s, &p, end, true, out);

        } else if (*p == '\\' && p + 1 < end && p[1] == '\n') {
            p += 2;

        } else {
            p += *p == '\\' && p + 1 < end && strchr("$`\"\\", p[1]) != NULL;
            rc = sb_buf_add_c(out, *p++);
        }
    }

    s->nested--;
    sb_buf_free(&waste);

    return rc;
}


/* --- words ----------------------------------------------------------------- */

static bool
sb_shell_meta(char c)
{
    return c && strchr(" \t\n;&|<>()", c) != NULL;
}


static sb_rc_t
sb_shell_double(sb_shell_parser_t *s, sb_buf_t *out)
{
    sb_str_t     inside;
    const char  *close;

    close = sb_shell_close(s->p + 1, s->end, '"', 0);
    s->flags |= SB_SW_QUOTED;
    s->name = false;

    if (close == NULL) {
        s->line.shell->unread = true;
        close = s->end;
    }

    inside = sb_str(s->p + 1, (size_t) (close - s->p - 1));
    s->p = close < s->end ? close + 1 : close;

    return sb_shell_quoted(s, inside, out);
}


static sb_rc_t
sb_shell_single(sb_shell_parser_t *s, sb_buf_t *out)
{
    size_t       n;
    const char  *close;

    close = memchr(s->p + 1, '\'', (size_t) (s->end - s->p - 1));
    s->flags |= SB_SW_QUOTED;
    s->name = false;

    if (close == NULL) {
        s->line.shell->unread = true;
        close = s->end;
    }

    n = (size_t) (close - s->p - 1);

    if (n && sb_buf_add(out, s->p + 1, n) != SB_OK) {
        return SB_NOMEM;
    }

    s->p = close < s->end ? close + 1 : close;

    return SB_OK;
}


/* Reads one word at s->p to `out`; its flags are in s->flags. */
static sb_rc_t
sb_shell_lex(sb_shell_parser_t *s, sb_buf_t *out)
{
    char     c;
    bool     brace = false;
    size_t   start = out->len;
    sb_rc_t  rc = SB_OK;

    s->flags = 0;
    s->name = true;

    while (rc == SB_OK && s->p < s->end && !sb_shell_meta(*s->p)) {
        c = *s->p;

        switch (c) {

        case '\'':
            rc = sb_shell_single(s, out);
            continue;

        case '"':
            rc = sb_shell_double(s, out);
            continue;

        case '`':
            rc = sb_shell_backtick(s, &s->p, s->end);
            s->name = false;
            continue;

        case '$':
            rc = sb_shell_dollar(s, &s->p, s->end, false, out);
            s->name = false;
            continue;

        case '\\':
            s->p++;

            if (s->p == s->end) {
                continue;
            }

            if (*s->p == '\n') {
                s->p++;
                continue;
            }

            s->flags |= SB_SW_QUOTED;
            s->name = false;
            break;

        case '*':
        case '?':
        case '[':
            s->flags |= SB_SW_GLOB;
            break;

        case '{':
            brace = true;
            break;

        case ',':
        case '.':
            s->flags |= brace && (c == ',' || (s->p + 1 < s->end
                                               && s->p[1] == '.'))
                        ? SB_SW_GLOB : 0;
            break;

        case '=':
            if (s->name && out->len > start
                && (s->flags & SB_SW_QUOTED) == 0)
            {
                s->flags |= SB_SW_ASSIGN;
            }

            s->name = false;
            break;
        }

        s->name = s->name && (c == '_' || c == '+' || c == '[' || c == ']'
                              || (c >= '0' && c <= '9')
                              || (c >= 'a' && c <= 'z')
                              || (c >= 'A' && c <= 'Z'));

        rc = sb_buf_add_c(out, *s->p++);
    }

    return rc;
}


static sb_rc_t
sb_shell_add(sb_shell_parser_t *s, size_t at, unsigned flags)
{
    void             *p;
    size_t            n;
    sb_shell_line_t  *line = &s->line;

    if (line->n == SB_SHELL_WORDS) {
        line->shell->unread = true;
        return SB_OK;
    }

    if (line->n == line->room) {
        n = line->room ? line->room * 2 : 32;

        p = realloc(line->words, n * sizeof(sb_shell_word_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        line->words = p;
        line->room = n;
    }

    line->words[line->n].at = at;
    line->words[line->n].len = line->text.len - at;
    line->words[line->n++].flags = flags;

    return SB_OK;
}


/* --- redirections ---------------------------------------------------------- */

static void
sb_shell_blanks(sb_shell_parser_t *s)
{
    while (s->p < s->end
           && (*s->p == ' ' || *s->p == '\t'
               || (*s->p == '\\' && s->p + 1 < s->end && s->p[1] == '\n')))
    {
        s->p += *s->p == '\\' ? 2 : 1;
    }
}


static sb_rc_t
sb_shell_heredoc(sb_shell_parser_t *s, bool tabs)
{
    size_t         at = s->names.len;
    sb_rc_t        rc;
    sb_heredoc_t  *h;

    sb_shell_blanks(s);

    rc = sb_shell_lex(s, &s->names);

    if (s->nheredocs == SB_SHELL_HEREDOC) {
        s->line.shell->unread = true;
        return rc;
    }

    h = &s->heredocs[s->nheredocs++];
    h->at = at;
    h->len = s->names.len - at;
    h->quoted = s->flags & SB_SW_QUOTED;
    h->tabs = tabs;
    h->runs = false;

    return rc;
}


/* At "<", ">" or "&>": what is written or read, kept with the words. */
static sb_rc_t
sb_shell_redirect(sb_shell_parser_t *s)
{
    size_t       at, n;
    sb_rc_t      rc;
    const char  *p = s->p, *close;

    if (p + 1 < s->end && p[1] == '(' && *p != '&') {
        close = sb_shell_close(p + 2, s->end, ')', 0);

        if (close == NULL) {
            s->line.shell->unread = true;
            close = s->end;
        }

        at = s->line.text.len;
        s->p = close < s->end ? close + 1 : close;

        rc = sb_shell_parse(s->line.shell,
                            sb_str(p + 2, (size_t) (close - p - 2)),
                            s->line.depth + 1);

        if (rc == SB_OK) {
            rc = sb_buf_add(&s->line.text, p, (size_t) (s->p - p));
        }

        return rc == SB_OK ? sb_shell_add(s, at, SB_SW_EXPANDS) : rc;
    }

    for (n = 0; p + n < s->end && n < 3 && strchr("<>&|", p[n]) != NULL; n++) {
        /* its operator */
    }

    s->p += n;

    if (n == 2 && memcmp(p, "<<", 2) == 0) {
        if (s->p < s->end && *s->p == '-') {
            s->p++;
            return sb_shell_heredoc(s, true);
        }

        return sb_shell_heredoc(s, false);
    }

    at = s->line.text.len;
    rc = sb_buf_add(&s->line.text, p, n);

    if (rc == SB_OK) {
        rc = sb_shell_add(s, at, SB_SW_REDIR);
    }

    sb_shell_blanks(s);

    at = s->line.text.len;

    if (rc == SB_OK) {
        rc = sb_shell_lex(s, &s->line.text);
    }

    if (rc == SB_OK) {
        rc = sb_shell_add(s, at, s->flags|SB_SW_REDIR);
    }

    if (n == 3 && memcmp(p, "<<<", 3) == 0) {
        s->line.has_input = true;
        s->line.input.len = at;     /* where it stands: the text may move */

        if (s->flags & (SB_SW_EXPANDS|SB_SW_GLOB)) {
            s->line.shell->unread = true;
        }
    }

    return rc;
}


/* --- commands -------------------------------------------------------------- */

static sb_rc_t
sb_shell_flush(sb_shell_parser_t *s)
{
    size_t            i;
    sb_rc_t           rc;
    sb_shell_line_t  *line = &s->line;

    rc = SB_OK;

    if (line->n) {

        if (line->has_input) {
            i = line->input.len;
            line->input = sb_str(line->text.data + i, 0);

            for (size_t k = 0; k < line->n; k++) {
                if (line->words[k].at == i) {
                    line->input.len = line->words[k].len;
                }
            }
        }

        line->stdin_runs = false;

        rc = sb_shell_run(line);

        if (rc == SB_OK && line->stdin_runs) {

            if (line->has_input) {
                rc = sb_shell_parse(line->shell, line->input,
                                    line->depth + 1);

            } else if (s->own == s->nheredocs) {
                line->shell->unread = true;
            }

            for (i = s->own; i < s->nheredocs; i++) {
                s->heredocs[i].runs = true;
            }
        }
    }

    s->own = s->nheredocs;
    line->n = 0;
    line->text.len = 0;
    line->has_input = false;

    return rc;
}


/* s->p stands behind a newline: the bodies of what was begun before it. */
static sb_rc_t
sb_shell_bodies(sb_shell_parser_t *s)
{
    bool           found;
    size_t         i;
    sb_rc_t        rc = SB_OK;
    sb_str_t       body, line;
    const char    *start, *end, *q;
    sb_heredoc_t  *h;

    for (i = 0; rc == SB_OK && i < s->nheredocs; i++) {
        h = &s->heredocs[i];
        start = s->p;
        end = start;
        found = false;

        while (!found && s->p < s->end) {
            end = s->p;
            q = memchr(s->p, '\n', (size_t) (s->end - s->p));
            line = sb_str(s->p, (size_t) ((q ? q : s->end) - s->p));
            s->p = q ? q + 1 : s->end;

            while (h->tabs && line.len && line.data[0] == '\t') {
                line = sb_str(line.data + 1, line.len - 1);
            }

            found = sb_eq(line, sb_str(s->names.data + h->at, h->len));
        }

        body = sb_str(start, (size_t) ((found ? end : s->end) - start));

        if (h->runs) {
            /* with variables in it, it is not what runs */
            s->line.shell->unread |= !h->quoted
                                     && memchr(body.data, '$', body.len);
            rc = sb_shell_parse(s->line.shell, body, s->line.depth + 1);

        } else if (!h->quoted) {
            rc = sb_shell_quoted(s, body, NULL);
        }
    }

    s->nheredocs = 0;
    s->own = 0;
    s->names.len = 0;

    return rc;
}


static sb_rc_t
sb_shell_token(sb_shell_parser_t *s)
{
    char     c = *s->p;
    size_t   at, i;
    sb_rc_t  rc;

    if (c == '#') {
        while (s->p < s->end && *s->p != '\n') {
            s->p++;
        }

        return SB_OK;
    }

    if (c == '<' || c == '>'
        || (c == '&' && s->p + 1 < s->end && s->p[1] == '>'))
    {
        return sb_shell_redirect(s);
    }

    if (sb_shell_meta(c)) {
        s->p++;

        rc = sb_shell_flush(s);

        return rc == SB_OK && c == '\n' && s->nheredocs ? sb_shell_bodies(s)
                                                        : rc;
    }

    at = s->line.text.len;
    rc = sb_shell_lex(s, &s->line.text);

    if (rc != SB_OK) {
        return rc;
    }

    if (s->p < s->end && (*s->p == '<' || *s->p == '>') && s->flags == 0) {

        for (i = at; i < s->line.text.len; i++) {
            if (s->line.text.data[i] < '0' || s->line.text.data[i] > '9') {
                break;
            }
        }

        if (i == s->line.text.len) {
            /* the number of a descriptor */
            s->flags |= SB_SW_REDIR;
        }
    }

    return sb_shell_add(s, at, s->flags);
}


sb_rc_t
sb_shell_parse(sb_shell_t *shell, sb_str_t text, unsigned depth)
{
    sb_rc_t            rc = SB_OK;
    sb_shell_parser_t  parser, *s = &parser;

    if (depth > SB_SHELL_DEPTH) {
        shell->unread = true;
        return SB_OK;
    }

    memset(s, 0, sizeof(*s));

    s->line.shell = shell;
    s->line.depth = depth;
    s->line.text.max = SIZE_MAX / 2;
    s->names.max = SIZE_MAX / 2;
    s->p = text.data;
    s->end = text.data + text.len;

    for (sb_shell_blanks(s); rc == SB_OK && s->p < s->end; sb_shell_blanks(s)) {
        rc = sb_shell_token(s);
    }

    if (rc == SB_OK) {
        rc = sb_shell_flush(s);
    }

    sb_buf_free(&s->line.text);
    sb_buf_free(&s->names);
    free(s->line.words);

    return rc;
}


sb_rc_t
sb_shell_read(sb_shell_t *s, sb_str_t text)
{
    memset(s, 0, sizeof(*s));

    s->out.max = 4 * text.len + 64 * 1024;

    return sb_shell_parse(s, text, 0);
}


void
sb_shell_free(sb_shell_t *s)
{
    sb_buf_free(&s->out);
    free(s->commands);
    s->commands = NULL;
    s->n = 0;
}
