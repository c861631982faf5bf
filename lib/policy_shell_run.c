/* What the words of a command run: the command itself, and those that it is
 * given to run. */

#include "policy_shell_int.h"

#include <stdlib.h>


#define SB_SHELL_UNWRAP  16     /* `sudo env nice ...` */

/* Programs that run what follows their options. */
typedef struct {
    const char  *name;
    const char  *options;       /* short ones that take an argument */
    const char  *longs;         /* long ones, a blank behind each */
    unsigned     positional;    /* words before the command */
    bool         assigns;       /* NAME=... may come before it */
} sb_shell_wrapper_t;

static const sb_shell_wrapper_t  wrappers[] = {
    { "sudo", "ughpCrtTUDRa", "user group host prompt close-from role type "
      "other-user command-timeout chdir chroot auth-type ", 0, true },
    { "doas", "uC", "", 0, true },
    { "env", "uCS", "unset chdir split-string ", 0, true },
    { "nohup", "", "", 0, false },
    { "setsid", "", "", 0, false },
    { "exec", "a", "", 0, false },
    { "command", "", "", 0, false },
    { "builtin", "", "", 0, false },
    { "time", "of", "output format ", 0, false },
    { "nice", "n", "adjustment ", 0, false },
    { "ionice", "cnpPu", "class classdata ", 0, false },
    { "timeout", "ks", "kill-after signal ", 1, false },
    { "stdbuf", "ioe", "input output error ", 0, false },
    { "unbuffer", "", "", 0, false },
    { "chroot", "", "userspec groups ", 1, false },
    { "unshare", "SGRw", "setuid setgid root wd ", 0, false },
    { "nsenter", "tSG", "target setuid setgid ", 0, false },
    { "setpriv", "", "ruid euid reuid rgid egid regid groups inh-caps "
      "ambient-caps bounding-set securebits pdeathsig selinux-label "
      "apparmor-profile ", 0, false },
    { "taskset", "", "", 1, false },
    { "chrt", "", "", 1, false },
    { "flock", "wE", "wait timeout conflict-exit-code ", 1, false },
    { "strace", "eopsuaEPO", "", 0, false },
    { "ltrace", "eopsuaEPO", "", 0, false },
    { "watch", "n", "interval ", 0, false },
    { "busybox", "", "", 0, false },
    { "toybox", "", "", 0, false },
    { "parallel", "jIn", "jobs ", 0, false },
    { "xargs", "InPLdaEs", "replace max-args max-procs max-lines delimiter "
      "arg-file max-chars ", 0, false },
    { "fakeroot", "lsib", "", 0, false },
    { "systemd-run", "pMHu", "property unit ", 0, false },
    { "catchsegv", "", "", 0, false },
    { "coproc", "", "", 0, false },
};

/* These come before a command and are none. */
static const char *const  keywords[] = {
    "{", "}", "!", "if", "then", "elif", "else", "fi", "do", "done", "while",
    "until", NULL
};

static const char *const  shells[] = {
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish", NULL
};

/* Code in another language, given in an argument. */
static const char *const  interpreters[] = {
    "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "php",
    "lua", "tclsh", "deno", "bun", "awk", "gawk", "mawk", "pypy3", NULL
};


static bool
sb_shell_in(const char *const *list, sb_str_t name)
{
    for ( /* void */ ; *list; list++) {
        if (sb_eq(name, sb_str(*list, strlen(*list)))) {
            return true;
        }
    }

    return false;
}


static sb_str_t
sb_shell_base(sb_str_t word)
{
    const char  *slash;

    slash = word.len ? memrchr(word.data, '/', word.len) : NULL;

    return slash ? sb_str(slash + 1,
                          (size_t) (word.data + word.len - slash - 1))
                 : word;
}


/* Adds the words from i to n as one command. */
static sb_rc_t
sb_shell_emit(sb_shell_line_t *line, size_t i, size_t n)
{
    void                *p;
    size_t               k, room;
    sb_rc_t              rc = SB_OK;
    sb_str_t             word;
    sb_shell_t          *s = line->shell;
    sb_shell_command_t  *c;

    if (s->n == SB_SHELL_COMMANDS) {
        s->unread = true;
        return SB_OK;
    }

    if (s->n == s->room) {
        room = s->room ? s->room * 2 : 16;

        p = realloc(s->commands, room * sizeof(sb_shell_command_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        s->commands = p;
        s->room = room;
    }

    c = &s->commands[s->n];
    c->at = s->out.len;

    word = sb_shell_word(line, i);
    c->base = c->at + word.len - sb_shell_base(word).len;

    for (k = i; rc == SB_OK && k < n; k++) {
        word = sb_shell_word(line, k);

        if (k > i) {
            rc = sb_buf_add_c(&s->out, ' ');
        }

        if (rc == SB_OK && word.len) {
            rc = sb_buf_add(&s->out, word.data, word.len);
        }
    }

    if (rc == SB_LIMIT) {
        s->out.len = c->at;
        s->unread = true;
        return SB_OK;
    }

    if (rc != SB_OK) {
        return rc;
    }

    c->len = s->out.len - c->at;
    s->n++;

    return SB_OK;
}


/* Reads the words from i to n as a text of their own. */
static sb_rc_t
sb_shell_text(sb_shell_line_t *line, size_t i, size_t n)
{
    size_t    k;
    sb_rc_t   rc = SB_OK;
    sb_str_t  word;
    sb_buf_t  b = { .max = SIZE_MAX / 2 };

    for (k = i; rc == SB_OK && k < n; k++) {

        if (line->words[k].flags & (SB_SW_EXPANDS|SB_SW_GLOB)) {
            line->shell->unread = true;
        }

        word = sb_shell_word(line, k);

        if (k > i) {
            rc = sb_buf_add_c(&b, ' ');
        }

        if (rc == SB_OK && word.len) {
            rc = sb_buf_add(&b, word.data, word.len);
        }
    }

    if (rc == SB_OK && b.len) {
        rc = sb_shell_parse(line->shell, sb_str(b.data, b.len),
                            line->depth + 1);
    }

    sb_buf_free(&b);

    return rc;
}


static bool
sb_shell_option(sb_str_t word)
{
    return word.len > 1 && (word.data[0] == '-' || word.data[0] == '+');
}


/* `sh -c TEXT`, `bash script`, `sh < script`; i is the shell. */
static sb_rc_t
sb_shell_shell(sb_shell_line_t *line, size_t i, size_t n)
{
    bool      c = false, s = false;
    size_t    k, args;
    sb_str_t  word;

    for (k = i + 1; k < n; k++) {
        word = sb_shell_word(line, k);

        if (line->words[k].flags & (SB_SW_EXPANDS|SB_SW_GLOB)) {
            /* it may be an option, or several */
            line->shell->unread = true;
        }

        if (!sb_shell_option(word)) {
            break;
        }

        if (sb_eq(word, sb_lit("--"))) {
            k++;
            break;
        }

        if (word.data[1] == '-') {
            k += sb_eq(word, sb_lit("--rcfile"))
                 || sb_eq(word, sb_lit("--init-file"));
            continue;
        }

        c |= memchr(word.data, 'c', word.len) != NULL;
        s |= memchr(word.data, 's', word.len) != NULL;

        for (args = 0; args < word.len; args++) {
            k += word.data[args] == 'o' || word.data[args] == 'O';
        }
    }

    if (c) {
        return k < n ? sb_shell_text(line, k, k + 1) : SB_OK;
    }

    if (k < n && !s) {
        /* a script, which is not in the text */
        line->shell->unread = true;
        return SB_OK;
    }

    line->stdin_runs = true;

    return SB_OK;
}


/* `su -c TEXT`, `script -c TEXT`: -c anywhere; false: there is none. */
static bool
sb_shell_dash_c(sb_shell_line_t *line, size_t i, size_t n, sb_rc_t *rc)
{
    size_t       k;
    sb_str_t     word;
    static const char  equals[] = "--command=";

    for (k = i + 1; k < n; k++) {
        word = sb_shell_word(line, k);

        if (word.len > sizeof(equals) - 1
            && memcmp(word.data, equals, sizeof(equals) - 1) == 0)
        {
            *rc = sb_shell_parse(line->shell,
                                 sb_str(word.data + sizeof(equals) - 1,
                                        word.len - sizeof(equals) + 1),
                                 line->depth + 1);
            return true;
        }

        if (k + 1 < n
            && (sb_eq(word, sb_lit("--command"))
                || (word.len > 1 && word.data[0] == '-' && word.data[1] != '-'
                    && word.data[word.len - 1] == 'c')))
        {
            *rc = sb_shell_text(line, k + 1, k + 2);
            return true;
        }
    }

    return false;
}


static bool
sb_shell_takes(const sb_shell_wrapper_t *w, sb_str_t option)
{
    const char  *p, *end;

    if (memchr(option.data, '=', option.len)) {
        return false;
    }

    /* long options may be cut */

    for (p = w->longs; *p; p = end + 1) {
        end = strchr(p, ' ');

        if ((size_t) (end - p) >= option.len - 2
            && memcmp(p, option.data + 2, option.len - 2) == 0)
        {
            return true;
        }
    }

    return false;
}


/* Where the command of a wrapper at i begins; n: it has none. */
static size_t
sb_shell_unwrap(sb_shell_line_t *line, const sb_shell_wrapper_t *w, size_t i,
    size_t n, sb_rc_t *rc)
{
    size_t       k, c;
    sb_str_t     word;

    for (k = i + 1; k < n; k++) {
        word = sb_shell_word(line, k);

        if (sb_eq(word, sb_lit("-")) && strcmp(w->name, "env") == 0) {
            continue;
        }

        if (!sb_shell_option(word) || word.data[0] == '+') {
            break;
        }

        if (sb_eq(word, sb_lit("--"))) {
            k++;
            break;
        }

        if (word.data[1] == '-') {

            if (w->options[0] == 'u' && w->assigns
                && word.len > 15 && memcmp(word.data, "--split-string=", 15)
                                    == 0)
            {
                *rc = sb_shell_parse(line->shell, sb_str(word.data + 15,
                                                         word.len - 15),
                                     line->depth + 1);
                line->shell->unread = true;
                return n;
            }

            k += sb_shell_takes(w, word);
            continue;
        }

        for (c = 1; c < word.len; c++) {

            if (strchr(w->options, word.data[c]) == NULL) {
                continue;
            }

            if (strcmp(w->name, "env") == 0 && word.data[c] == 'S') {
                /* its text, and the words behind it */
                *rc = c + 1 < word.len
                      ? sb_shell_parse(line->shell,
                                       sb_str(word.data + c + 1,
                                              word.len - c - 1),
                                       line->depth + 1)
                      : sb_shell_text(line, k + 1, n);
                line->shell->unread |= c + 1 < word.len;
                return n;
            }

            k += c + 1 == word.len;
            break;
        }
    }

    for ( /* void */ ; w->assigns && k < n && *rc == SB_OK; k++) {
        word = sb_shell_word(line, k);

        if (word.len == 0 || word.data[0] == '='
            || memchr(word.data, '=', word.len) == NULL)
        {
            break;
        }

        *rc = sb_shell_emit(line, k, k + 1);
    }

    return k + w->positional < n ? k + w->positional : n;
}


/* Goes past what stands before a command: assignments and keywords. */
static sb_rc_t
sb_shell_lead(sb_shell_line_t *line, size_t *i, size_t n)
{
    sb_rc_t   rc = SB_OK;
    sb_str_t  word;

    while (rc == SB_OK && *i < n) {
        word = sb_shell_word(line, *i);

        if (line->words[*i].flags & SB_SW_ASSIGN) {
            rc = sb_shell_emit(line, *i, *i + 1);
            (*i)++;

        } else if (line->words[*i].flags & SB_SW_QUOTED) {
            break;

        } else if (sb_eq(word, sb_lit("function"))) {
            *i += 2;

        } else if (sb_shell_in(keywords, word)) {
            (*i)++;

        } else {
            break;
        }
    }

    return rc;
}


/* `time` and `coproc` are words of the shell: it reads on behind them. */
static sb_rc_t
sb_shell_reads_on(sb_shell_line_t *line, bool coproc, size_t *i, size_t n)
{
    sb_rc_t   rc;
    sb_str_t  next;

    if (coproc && *i + 1 < n && !(line->words[*i + 1].flags & SB_SW_QUOTED)) {
        next = sb_shell_word(line, *i + 1);

        if (sb_shell_in(keywords, next) || sb_eq(next, sb_lit("case"))) {
            /* a name, for bash; to other shells it is the command */
            rc = sb_shell_emit(line, *i, n);
            if (rc != SB_OK) {
                return rc;
            }

            (*i)++;
        }
    }

    return sb_shell_lead(line, i, n);
}


/* Has it an option that makes something else run, now or under a name? */
static bool
sb_shell_defers(sb_shell_line_t *line, size_t i, size_t n, sb_str_t base)
{
    int       option;
    size_t    k;
    sb_str_t  word;

    if (sb_eq(base, sb_lit("hash"))) {
        option = 'p';

    } else if (sb_eq(base, sb_lit("mapfile"))
               || sb_eq(base, sb_lit("readarray")))
    {
        option = 'C';

    } else {
        return false;
    }

    for (k = i + 1; k < n; k++) {
        word = sb_shell_word(line, k);

        if ((line->words[k].flags & (SB_SW_EXPANDS|SB_SW_GLOB))
            || (sb_shell_option(word) && memchr(word.data, option, word.len)))
        {
            return true;
        }
    }

    return false;
}


/* `find ... -exec COMMAND ... ;` */
static sb_rc_t
sb_shell_find(sb_shell_line_t *line, size_t i, size_t n, unsigned depth);

static sb_rc_t
sb_shell_command(sb_shell_line_t *line, size_t i, size_t n, unsigned depth)
{
    size_t                     k;
    sb_rc_t                    rc = SB_OK;
    sb_str_t                   word, base;
    const sb_shell_wrapper_t  *w;

    if (depth > SB_SHELL_UNWRAP) {
        line->shell->unread = true;
        return SB_OK;
    }

    word = sb_shell_word(line, i);
    base = sb_shell_base(word);

    rc = sb_shell_emit(line, i, n);

    if (line->words[i].flags & (SB_SW_EXPANDS|SB_SW_GLOB)) {
        line->shell->unread |= !sb_eq(word, sb_lit("["))
                               && !sb_eq(word, sb_lit("[["));
    }

    if (rc != SB_OK) {
        return rc;
    }

    for (k = i + 1; k < n; k++) {
        if (line->words[k].flags & SB_SW_REDIR) {
            /* what follows is kept for the text alone */
            n = k;
        }
    }

    if (sb_shell_in(shells, base)) {
        return sb_shell_shell(line, i, n);
    }

    if (sb_eq(base, sb_lit("eval"))) {
        return i + 1 < n ? sb_shell_text(line, i + 1, n) : SB_OK;
    }

    if (sb_eq(base, sb_lit("trap"))) {
        return i + 1 < n ? sb_shell_text(line, i + 1, i + 2) : SB_OK;
    }

    if (sb_eq(base, sb_lit("source")) || sb_eq(base, sb_lit("."))
        || sb_eq(base, sb_lit("case")) || sb_eq(base, sb_lit("alias")))
    {
        line->shell->unread = true;
        return SB_OK;
    }

    if (sb_eq(base, sb_lit("su")) || sb_eq(base, sb_lit("runuser"))
        || sb_eq(base, sb_lit("script")) || sb_eq(base, sb_lit("flock")))
    {
        if (sb_shell_dash_c(line, i, n, &rc)) {
            return rc;
        }

        if (!sb_eq(base, sb_lit("flock"))) {
            line->stdin_runs = true;
            return SB_OK;
        }
    }

    if (sb_eq(base, sb_lit("find"))) {
        return sb_shell_find(line, i, n, depth);
    }

    if (sb_shell_defers(line, i, n, base)) {
        line->shell->unread = true;
        return SB_OK;
    }

    if (sb_shell_in(interpreters, base)) {
        line->shell->unread |= i + 1 == n || sb_shell_option(
                                                 sb_shell_word(line, i + 1))
                               || base.data[base.len - 1] == 'k';
        return SB_OK;
    }

    for (w = wrappers;
         w < wrappers + sizeof(wrappers) / sizeof(wrappers[0]);
         w++)
    {
        if (!sb_eq(base, sb_str(w->name, strlen(w->name)))) {
            continue;
        }

        k = sb_shell_unwrap(line, w, i, n, &rc);

        if (rc == SB_OK && (sb_eq(base, sb_lit("time"))
                            || sb_eq(base, sb_lit("coproc"))))
        {
            rc = sb_shell_reads_on(line, base.data[0] == 'c', &k, n);
        }

        if (sb_eq(base, sb_lit("setpriv"))) {
            /* who runs it, and with which powers */
            line->shell->unread |= k > i + 1;
        }

        if (sb_eq(base, sb_lit("xargs")) || sb_eq(base, sb_lit("parallel"))) {
            /* more words come from elsewhere */
            line->shell->unread = true;
        }

        if (rc != SB_OK || k >= n) {
            return rc;
        }

        if (sb_eq(base, sb_lit("watch")) || sb_eq(base, sb_lit("parallel"))) {
            /* a shell reads their words once more */
            return sb_shell_text(line, k, n);
        }

        return sb_shell_command(line, k, n, depth + 1);
    }

    return SB_OK;
}


static sb_rc_t
sb_shell_find(sb_shell_line_t *line, size_t i, size_t n, unsigned depth)
{
    size_t    k, end;
    sb_rc_t   rc = SB_OK;
    sb_str_t  word;

    static const char *const  actions[] = {
        "-exec", "-execdir", "-ok", "-okdir", NULL
    };

    for (k = i + 1; rc == SB_OK && k < n; k++) {

        if (!sb_shell_in(actions, sb_shell_word(line, k))) {
            continue;
        }

        for (end = k + 1; end < n; end++) {
            word = sb_shell_word(line, end);

            if (sb_eq(word, sb_lit(";")) || sb_eq(word, sb_lit("+"))) {
                break;
            }
        }

        if (end > k + 1) {
            rc = sb_shell_command(line, k + 1, end, depth + 1);
        }

        k = end;
    }

    return rc;
}


/* Puts the words of redirections behind the others. */
static sb_rc_t
sb_shell_sort(sb_shell_line_t *line)
{
    size_t            i, k = 0, m = 0;
    sb_shell_word_t  *redirs;

    redirs = malloc(line->n * sizeof(sb_shell_word_t));
    if (redirs == NULL) {
        return SB_NOMEM;
    }

    for (i = 0; i < line->n; i++) {
        if (line->words[i].flags & SB_SW_REDIR) {
            redirs[m++] = line->words[i];

        } else {
            line->words[k++] = line->words[i];
        }
    }

    if (m) {
        memcpy(line->words + k, redirs, m * sizeof(sb_shell_word_t));
    }

    free(redirs);

    return SB_OK;
}


sb_rc_t
sb_shell_run(sb_shell_line_t *line)
{
    size_t   i = 0;
    sb_rc_t  rc;

    rc = sb_shell_sort(line);

    if (rc == SB_OK) {
        rc = sb_shell_lead(line, &i, line->n);
    }

    if (rc != SB_OK || i >= line->n) {
        return rc;
    }

    return sb_shell_command(line, i, line->n, 0);
}
