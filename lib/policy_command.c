/*
 * Regular expressions over commands.  PCRE2 has a limit for each place where a
 * match may begin, but none for all of them together: a text is searched in
 * windows, between which the clock is looked at.  A window is bounded twice, by
 * what an expression that runs through the text may take in it, and by what one
 * that backtracks may: a few milliseconds.
 */

#include "policy_int.h"

#include "json.h"
#include "policy_shell.h"

#define PCRE2_CODE_UNIT_WIDTH  8
#include <pcre2.h>

#include <stdlib.h>
#include <time.h>


#define SB_REGEX_MATCH_LIMIT  20000             /* of one start */
#define SB_REGEX_DEPTH_LIMIT  10000
#define SB_REGEX_HEAP_LIMIT   1024              /* KiB */
#define SB_REGEX_STEPS        (4 * 1024 * 1024) /* text by starts, at once */
#define SB_REGEX_STARTS       64                /* at once */
#define SB_REGEX_WINDOWS      4                 /* between looks at the clock */
#define SB_REGEX_TIME         (20 * 1000000L)   /* ns of one check */

struct sb_policy_regex_s {
    pcre2_code           *code;
    pcre2_match_data     *data;
    pcre2_match_context  *context;
    bool                  anchored; /* a match begins at the first byte */
};

struct sb_policy_command_s {
    sb_str_t    text;
    sb_buf_t    joined;     /* words of an array, as a text */
    sb_shell_t  shell;
    bool        too_long;
    bool        odd;        /* there is more in an array than words */
    bool        timed;      /* the clock was read */
    int64_t     until;      /* CPU time of this thread, ns */
};


sb_rc_t
sb_policy_regex(sb_policy_regex_t **regex, sb_str_t text, char *why,
    size_t size, size_t *offset)
{
    int                 code;
    uint32_t            options;
    sb_policy_regex_t  *re;

    re = calloc(1, sizeof(sb_policy_regex_t));
    if (re == NULL) {
        return SB_NOMEM;
    }

    re->code = pcre2_compile((PCRE2_SPTR) text.data, text.len,
                             PCRE2_USE_OFFSET_LIMIT|PCRE2_NEVER_BACKSLASH_C,
                             &code, offset, NULL);

    if (re->code == NULL) {
        (void) pcre2_get_error_message(code, (PCRE2_UCHAR *) why, size);
        free(re);
        return SB_ERROR;
    }

    /* where there is no JIT the interpreter does it */
    (void) pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);

    re->data = pcre2_match_data_create(1, NULL);
    re->context = pcre2_match_context_create(NULL);

    if (re->data == NULL || re->context == NULL) {
        sb_policy_regex_free(re);
        return SB_NOMEM;
    }

    (void) pcre2_set_match_limit(re->context, SB_REGEX_MATCH_LIMIT);
    (void) pcre2_set_depth_limit(re->context, SB_REGEX_DEPTH_LIMIT);
    (void) pcre2_set_heap_limit(re->context, SB_REGEX_HEAP_LIMIT);

    re->anchored = pcre2_pattern_info(re->code, PCRE2_INFO_ALLOPTIONS, &options)
                   == 0
                   && (options & PCRE2_ANCHORED);

    *regex = re;

    return SB_OK;
}


void
sb_policy_regex_free(sb_policy_regex_t *regex)
{
    if (regex == NULL) {
        return;
    }

    pcre2_match_context_free(regex->context);
    pcre2_match_data_free(regex->data);
    pcre2_code_free(regex->code);
    free(regex);
}


static bool
sb_policy_late(sb_policy_command_t *c)
{
    int64_t          now;
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    now = (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;

    if (!c->timed) {
        c->timed = true;
        c->until = now + SB_REGEX_TIME;
    }

    return now > c->until;
}


static sb_regex_match_e
sb_policy_search(sb_policy_command_t *c, const sb_policy_regex_t *re,
    sb_str_t text)
{
    int     rc;
    size_t  at = 0, window, n;

    window = SB_REGEX_STEPS / (text.len + 1) + 1;
    window = window < SB_REGEX_STARTS ? window : SB_REGEX_STARTS;

    for (n = 0; at <= text.len; n++) {

        if (n % SB_REGEX_WINDOWS == 0 && sb_policy_late(c)) {
            return SB_RM_UNKNOWN;
        }

        /* a match may begin up to here */
        (void) pcre2_set_offset_limit(re->context, at + window - 1);

        rc = pcre2_match(re->code, (PCRE2_SPTR) text.data, text.len, at,
                         at ? PCRE2_NO_UTF_CHECK : 0, re->data, re->context);

        if (rc >= 0) {
            return SB_RM_YES;
        }

        if (rc != PCRE2_ERROR_NOMATCH) {
            return SB_RM_UNKNOWN;
        }

        if (re->anchored) {
            break;
        }

        at += window;
    }

    return SB_RM_NO;
}


/* A word in quotes, so that it is read as one. */
static sb_rc_t
sb_policy_word(sb_buf_t *b, sb_str_t word)
{
    size_t   i;
    sb_rc_t  rc;

    rc = sb_buf_add_c(b, '\'');

    for (i = 0; rc == SB_OK && i < word.len; i++) {
        rc = word.data[i] == '\'' ? sb_buf_add_str(b, sb_lit("'\\''"))
                                  : sb_buf_add_c(b, word.data[i]);
    }

    return rc == SB_OK ? sb_buf_add_str(b, sb_lit("' ")) : rc;
}


/* The words of one command: a line of its own. */
static sb_rc_t
sb_policy_words(sb_policy_command_t *c, sb_buf_t *quoted, const sb_jv_t *v)
{
    bool     odd;
    sb_rc_t  rc = SB_OK;

    odd = v->kind != SB_JSON_OPEN_ARRAY;

    if (quoted->len) {
        rc = sb_buf_add_c(&c->joined, '\n');
        rc = rc == SB_OK ? sb_buf_add_c(quoted, '\n') : rc;
    }

    for (v = v->child; rc == SB_OK && !odd && v; v = v->next) {

        odd = v->kind != SB_JSON_STRING;

        if (odd) {
            break;
        }

        rc = sb_buf_add(&c->joined, v->text.data, v->text.len);

        if (rc == SB_OK && v->next) {
            rc = sb_buf_add_c(&c->joined, ' ');
        }

        if (rc == SB_OK) {
            rc = sb_policy_word(quoted, v->text);
        }
    }

    c->odd |= odd;

    return rc;
}


/* Programmes and their arguments: no shell parts them, but one may be run. */
static sb_rc_t
sb_policy_argv(sb_policy_command_t *c)
{
    sb_rc_t         rc;
    sb_buf_t        quoted = { .max = SIZE_MAX / 2 };
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    doc = sb_jdoc_parse(c->text, NULL, &rc);

    if (doc == NULL) {
        c->shell.unread = true;
        return rc == SB_NOMEM ? SB_NOMEM : SB_OK;
    }

    c->joined.max = SIZE_MAX / 2;
    v = sb_jdoc_root(doc);
    rc = SB_OK;

    if (v->kind == SB_JSON_OPEN_ARRAY && v->child
        && v->child->kind == SB_JSON_OPEN_ARRAY)
    {
        for (v = v->child; rc == SB_OK && v; v = v->next) {
            rc = sb_policy_words(c, &quoted, v);
        }

    } else {
        rc = sb_policy_words(c, &quoted, v);
    }

    if (rc == SB_OK) {
        rc = sb_shell_read(&c->shell, sb_str(quoted.data, quoted.len));
        c->text = c->joined.len ? sb_str(c->joined.data, c->joined.len)
                                : sb_lit("");
    }

    sb_buf_free(&quoted);
    sb_jdoc_free(doc);

    return rc;
}


sb_rc_t
sb_policy_command_read(sb_policy_command_t **command, sb_str_t text,
    bool argv, bool dark)
{
    sb_rc_t               rc;
    sb_policy_command_t  *c;

    c = calloc(1, sizeof(sb_policy_command_t));
    if (c == NULL) {
        return SB_NOMEM;
    }

    *command = c;

    c->text = text.len ? text : sb_lit("");
    c->too_long = text.len > SB_POLICY_COMMAND_MAX;

    if (c->too_long) {
        return SB_OK;
    }

    rc = argv ? sb_policy_argv(c) : sb_shell_read(&c->shell, c->text);

    /* no shell sees what is behind a NUL as it stands */
    c->shell.unread |= dark || c->odd
                       || memchr(c->text.data, '\0', c->text.len) != NULL;

    return rc;
}


void
sb_policy_command_free(sb_policy_command_t *command)
{
    if (command) {
        sb_shell_free(&command->shell);
        sb_buf_free(&command->joined);
        free(command);
    }
}


bool
sb_policy_command_unread(const sb_policy_command_t *command)
{
    return command->too_long || command->shell.unread;
}


sb_regex_match_e
sb_policy_command_any(sb_policy_command_t *c,
    const sb_policy_condition_t *condition)
{
    size_t                     i, k;
    sb_str_t                   text;
    sb_regex_match_e           m;
    const sb_shell_command_t  *cmd;

    if (c->too_long) {
        return SB_RM_UNKNOWN;
    }

    for (i = 0; i < condition->n; i++) {

        if (condition->values[i].unread) {
            if (c->shell.unread) {
                return SB_RM_YES;
            }

            continue;
        }

        m = sb_policy_search(c, condition->values[i].regex, c->text);

        for (k = 0; m == SB_RM_NO && k < c->shell.n; k++) {
            cmd = &c->shell.commands[k];

            text = sb_str(c->shell.out.data + cmd->at, cmd->len);

            if (!sb_eq(text, c->text)) {
                m = sb_policy_search(c, condition->values[i].regex, text);
            }

            if (m == SB_RM_NO && cmd->base != cmd->at) {
                text = sb_str(c->shell.out.data + cmd->base,
                              cmd->len - (cmd->base - cmd->at));
                m = sb_policy_search(c, condition->values[i].regex, text);
            }
        }

        if (m != SB_RM_NO) {
            return m;
        }
    }

    return SB_RM_NO;
}


bool
sb_policy_command_all(sb_policy_command_t *c,
    const sb_policy_condition_t *condition)
{
    size_t                     i, k;
    sb_regex_match_e           m;
    const sb_shell_command_t  *cmd;

    if (sb_policy_command_unread(c) || c->shell.n == 0) {
        return false;
    }

    for (k = 0; k < c->shell.n; k++) {
        cmd = &c->shell.commands[k];
        m = SB_RM_NO;

        for (i = 0; m == SB_RM_NO && i < condition->n; i++) {
            if (condition->values[i].unread) {
                continue;
            }

            m = sb_policy_search(c, condition->values[i].regex,
                                 sb_str(c->shell.out.data + cmd->at,
                                        cmd->len));
        }

        if (m != SB_RM_YES) {
            return false;
        }
    }

    return true;
}
