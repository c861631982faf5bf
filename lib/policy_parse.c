/*
 * The language of policies: statements that end with ";" or have a block.
 *
 *   allow|deny|observe NAME { condition...; reason "..."; }
 *   default allow|deny ["reason"];
 *
 * A word stands bare, or in "..." (\" is a quote) or '...' (nothing special).
 */

#include "policy_int.h"

#include "operation_table.h"
#include "path.h"
#include "scan.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


typedef enum {
    SB_PT_END = 0,
    SB_PT_WORD,
    SB_PT_OPEN,
    SB_PT_CLOSE,
    SB_PT_SEMICOLON
} sb_policy_token_e;

typedef struct {
    sb_policy_t         *policy;
    sb_policy_error_t   *error;
    const char          *p, *end;
    const char          *token;     /* where the last one begins */
    bool                 quoted;
    sb_buf_t             word;
    size_t               values;    /* of all conditions */
    unsigned             names;     /* archive_path, */
    size_t               patterns;  /* ... and bytes of their patterns */
} sb_policy_parser_t;

static const struct {
    const char        *name;
    sb_policy_cond_e   kind;
} conditions[] = {
    { "operation", SB_PC_OPERATION },
    { "access", SB_PC_ACCESS },
    { "actor", SB_PC_ACTOR },
    { "role", SB_PC_ROLE },
    { "sandbox", SB_PC_SANDBOX },
    { "metadata", SB_PC_METADATA },
    { "command", SB_PC_COMMAND },
    { "image", SB_PC_IMAGE },
    { "port", SB_PC_PORT },
    { "request_size", SB_PC_REQUEST_SIZE },
    { "files", SB_PC_FILES },
    { "path", SB_PC_PATH },
    { "path_has", SB_PC_PATH_HAS },
    { "file_size", SB_PC_FILE_SIZE },
    { "mode", SB_PC_MODE },
    { "content", SB_PC_CONTENT },
    { "archive", SB_PC_ARCHIVE },
    { "archive_path", SB_PC_ARCHIVE_PATH },
    { "archive_entries", SB_PC_ARCHIVE_ENTRIES },
    { "archive_size", SB_PC_ARCHIVE_SIZE },
    { "archive_file_size", SB_PC_ARCHIVE_FILE_SIZE },
    { "archive_ratio", SB_PC_ARCHIVE_RATIO },
    { "archive_depth", SB_PC_ARCHIVE_DEPTH },
};


/* --- errors ----------------------------------------------------------------- */

static void
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


__attribute__((format(printf, 3, 4)))
static sb_rc_t
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


static sb_rc_t
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


static bool
sb_policy_is(const sb_policy_parser_t *s, const char *word)
{
    return !s->quoted && sb_eq(sb_str(s->word.data, s->word.len),
                               sb_str(word, strlen(word)));
}


/* --- values ----------------------------------------------------------------- */

/* Digits, with k, m or g behind them when `size`. */
static const char *
sb_policy_number(const char *p, uint64_t *n, bool size)
{
    const char  *start = p;

    for (*n = 0; *p >= '0' && *p <= '9'; p++) {
        if (*n > UINT64_MAX / 100) {
            return NULL;
        }

        *n = *n * 10 + (uint64_t) (*p - '0');
    }

    if (p == start) {
        return NULL;
    }

    if (size && strchr("kKmMgG", *p) != NULL && *p) {
        if (*n > UINT64_MAX >> 32) {
            return NULL;
        }

        *n <<= strchr("kK", *p) ? 10 : strchr("mM", *p) ? 20 : 30;
        p++;
    }

    return p;
}


static bool
sb_policy_operation_known(const char *glob)
{
    size_t       i;
    const char  *name;

    for (i = 0; i < sb_op_count(); i++) {
        name = sb_op_at(i)->name;

        if (sb_op_glob(sb_str(glob, strlen(glob)), sb_str(name, strlen(name))))
        {
            return true;
        }
    }

    return false;
}


/* A NUL-terminated copy. */
static sb_rc_t
sb_policy_copy(char **to, const char *from, size_t len)
{
    *to = malloc(len + 1);
    if (*to == NULL) {
        return SB_NOMEM;
    }

    memcpy(*to, from, len);
    (*to)[len] = '\0';

    return SB_OK;
}


/* Is it a condition with one limit; of bytes? */
static bool
sb_policy_limited(sb_policy_cond_e kind, bool *size)
{
    *size = kind == SB_PC_REQUEST_SIZE || kind == SB_PC_FILE_SIZE
            || kind == SB_PC_ARCHIVE_SIZE || kind == SB_PC_ARCHIVE_FILE_SIZE;

    return *size || kind == SB_PC_FILES || kind >= SB_PC_ARCHIVE_ENTRIES;
}


/* What the text of a path may have in it; 0: no such word. */
static unsigned
sb_policy_path_word(const char *text)
{
    size_t  i;

    static const struct {
        const char  *name;
        unsigned     flag;
    } words[] = {
        { "backslash", SB_PATH_BACKSLASH },
        { "climbs", SB_PATH_CLIMBS },
        { "expands", SB_PATH_EXPANDS },
        { "relative", SB_PATH_RELATIVE },
        { "empty", SB_PATH_EMPTY },
        { "not-utf8", SB_PATH_BAD_UTF8 },
        { "control", SB_PATH_CONTROL }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i].name) == 0) {
            return words[i].flag;
        }
    }

    return 0;
}


/* The bare word `unread`, in place of an expression or a glob. */
static sb_rc_t
sb_policy_unread(sb_policy_parser_t *s, const sb_policy_rule_t *rule,
    sb_policy_value_t *v, const char *text, const char *name)
{
    if (s->quoted || strcmp(text, "unread") != 0) {
        return SB_OK;
    }

    if (rule->effect == SB_PE_ALLOW) {
        return sb_policy_fail(s, s->token, "\"%s unread\" cannot be allowed: "
                              "what is not read is not judged", name);
    }

    v->unread = true;

    return SB_OK;
}


/* Reads v->text by the kind of its condition. */
static sb_rc_t
sb_policy_value(sb_policy_parser_t *s, const sb_policy_rule_t *rule,
    const sb_policy_condition_t *c, sb_policy_value_t *v, bool nocase)
{
    bool         size;
    char         why[128];
    size_t       offset;
    sb_rc_t      rc;
    const char  *text = v->text.data, *p, *reason;

    if (sb_policy_limited(c->kind, &size)) {
        p = sb_policy_number(text, &v->low, size);

        return p && *p == '\0' ? SB_OK
               : sb_policy_fail(s, s->token, "\"%.64s\" is no %s", text,
                                size ? "size such as 128m" : "number");
    }

    switch (c->kind) {

    case SB_PC_OPERATION:
        if (!sb_policy_operation_known(text)) {
            return sb_policy_fail(s, s->token, "\"%.64s\" matches no "
                                  "operation; their names stand in "
                                  "docs/operations.md", text);
        }

        break;

    case SB_PC_ACCESS:
        if (strcmp(text, "read") != 0 && strcmp(text, "write") != 0) {
            return sb_policy_fail(s, s->token, "access is \"read\" or "
                                  "\"write\"");
        }

        break;

    case SB_PC_ROLE:
        if (strcmp(text, "viewer") != 0 && strcmp(text, "operator") != 0
            && strcmp(text, "admin") != 0)
        {
            return sb_policy_fail(s, s->token, "a role is viewer, operator or "
                                  "admin");
        }

        break;

    case SB_PC_METADATA:
        if (strchr(text, '=') == NULL || *text == '=') {
            return sb_policy_fail(s, s->token, "metadata is written as "
                                  "KEY=VALUE");
        }

        break;

    case SB_PC_PORT:
        p = sb_policy_number(text, &v->low, false);
        v->high = v->low;

        if (p && *p == '-') {
            p = sb_policy_number(p + 1, &v->high, false);
        }

        if (p == NULL || *p || v->low < 1 || v->high > 65535
            || v->low > v->high)
        {
            return sb_policy_fail(s, s->token, "a port is 1 to 65535, or a "
                                  "range such as 8000-8099");
        }

        break;

    case SB_PC_PATH_HAS:
        v->low = sb_policy_path_word(text);

        if (v->low == 0) {
            return sb_policy_fail(s, s->token, "a path has backslash, climbs, "
                                  "expands, relative, empty, not-utf8 or "
                                  "control");
        }

        break;

    case SB_PC_MODE:
        for (p = text, v->low = 0; *p >= '0' && *p <= '7'; p++) {
            v->low = v->low * 8 + (uint64_t) (*p - '0');
        }

        if (*p || v->low == 0 || p - text > 4) {
            return sb_policy_fail(s, s->token, "a mode is one to four octal "
                                  "digits, such as 6000");
        }

        break;

    case SB_PC_CONTENT:
        v->low = sb_scan_word(text);

        if (v->low == 0) {
            return sb_policy_fail(s, s->token, "content is secret, private-key,"
                                  " aws-key, google-key, token or "
                                  "gateway-token");
        }

        break;

    case SB_PC_ARCHIVE:
        v->low = sb_inspect_word(text);

        if (v->low == 0) {
            return sb_policy_fail(s, s->token, "archive is any, unsafe, climbs,"
                                  " escapes, links, devices, set-id, encrypted,"
                                  " broken, inconsistent, duplicates or "
                                  "misnamed");
        }

        break;

    case SB_PC_PATH:
    case SB_PC_ARCHIVE_PATH:
        rc = sb_pattern_parse(&v->pattern, v->text, nocase, &reason);

        if (rc == SB_ERROR) {
            return sb_policy_fail(s, s->token, "%s", reason);
        }

        if (rc == SB_OK && c->kind == SB_PC_ARCHIVE_PATH) {

            if (v->pattern->mounts) {
                return sb_policy_fail(s, s->token, "an archive has no mounts");
            }

            s->patterns += v->text.len + 8;

            if (s->patterns > SB_IN_PATTERNS) {
                return sb_policy_fail(s, s->token, "the patterns of all "
                                      "archive_path are longer than %d bytes",
                                      SB_IN_PATTERNS);
            }
        }

        return rc;

    case SB_PC_IMAGE:
        return sb_policy_unread(s, rule, v, text, "image");

    case SB_PC_COMMAND:
        rc = sb_policy_unread(s, rule, v, text, "command");

        if (rc != SB_OK || v->unread) {
            return rc;
        }

        rc = sb_policy_regex(&v->regex, v->text, why, sizeof(why), &offset);

        if (rc == SB_ERROR) {
            return sb_policy_fail(s, s->token + (s->quoted ? 1 : 0) + offset,
                                  "%s", why);
        }

        return rc;

    default:
        break;
    }

    return SB_OK;
}


static sb_rc_t
sb_policy_values(sb_policy_parser_t *s, const sb_policy_rule_t *rule,
    sb_policy_condition_t *c)
{
    bool                number, size, nocase = false;
    void               *p;
    char               *text;
    size_t              len, room = 0;
    sb_rc_t             rc;
    sb_policy_token_e   token;
    sb_policy_value_t  *v;

    number = sb_policy_limited(c->kind, &size);

    rc = sb_policy_next(s, &token);

    if (rc == SB_OK && number) {
        if (token != SB_PT_WORD || !sb_policy_is(s, ">")) {
            return sb_policy_fail(s, s->token, "\">\" and a limit are missing "
                                  "here");
        }

        rc = sb_policy_next(s, &token);
    }

    if (c->kind == SB_PC_ARCHIVE_PATH) {
        c->index = s->names++;

        if (s->names > SB_IN_CONDITIONS) {
            return sb_policy_fail(s, s->token, "the policy has more than %d "
                                  "archive_path", SB_IN_CONDITIONS);
        }
    }

    if (rc == SB_OK && token == SB_PT_WORD && sb_policy_is(s, "nocase")
        && (c->kind == SB_PC_PATH || c->kind == SB_PC_ARCHIVE_PATH))
    {
        nocase = true;
        rc = sb_policy_next(s, &token);
    }

    for ( /* void */ ; rc == SB_OK && token == SB_PT_WORD;
          rc = sb_policy_next(s, &token))
    {
        if (++s->values > SB_POLICY_VALUES_MAX) {
            return sb_policy_fail(s, s->token, "the policy has more than %d "
                                  "values", SB_POLICY_VALUES_MAX);
        }

        if (c->n == room) {
            room = room ? room * 2 : 4;

            p = realloc(c->values, room * sizeof(sb_policy_value_t));
            if (p == NULL) {
                return SB_NOMEM;
            }

            c->values = p;
        }

        len = s->word.len;

        if (len == 0) {
            return sb_policy_fail(s, s->token, "a value is empty");
        }

        rc = sb_policy_copy(&text, s->word.data, len);
        if (rc != SB_OK) {
            return rc;
        }

        v = &c->values[c->n++];
        memset(v, 0, sizeof(*v));
        v->text = sb_str(text, len);

        rc = sb_policy_value(s, rule, c, v, nocase);
        if (rc != SB_OK) {
            return rc;
        }
    }

    if (rc != SB_OK) {
        return rc;
    }

    if (token != SB_PT_SEMICOLON) {
        return sb_policy_fail(s, s->token, "a \";\" is missing here");
    }

    if (c->n == 0 || (number && c->n > 1)) {
        return sb_policy_fail(s, s->token, number ? "one limit is wanted here"
                                                  : "a value is missing here");
    }

    return SB_OK;
}


/* --- rules ------------------------------------------------------------------ */

static sb_rc_t
sb_policy_text(sb_policy_parser_t *s, char **to, const char *what)
{
    sb_rc_t            rc;
    sb_policy_token_e  token;

    rc = sb_policy_next(s, &token);
    if (rc != SB_OK) {
        return rc;
    }

    if (token != SB_PT_WORD || s->word.len == 0) {
        return sb_policy_fail(s, s->token, "%s is missing here", what);
    }

    if (*to) {
        return sb_policy_fail(s, s->token, "there is %s already", what);
    }

    return sb_policy_copy(to, s->word.data, s->word.len);
}


static sb_rc_t
sb_policy_end(sb_policy_parser_t *s)
{
    sb_rc_t            rc;
    sb_policy_token_e  token;

    rc = sb_policy_next(s, &token);

    return rc == SB_OK && token != SB_PT_SEMICOLON
           ? sb_policy_fail(s, s->token, "a \";\" is missing here") : rc;
}


/* One condition; the current token is its first word. */
static sb_rc_t
sb_policy_condition(sb_policy_parser_t *s, sb_policy_rule_t *rule)
{
    bool                    negated = false, size;
    void                   *p;
    size_t                  i;
    sb_rc_t                 rc;
    sb_policy_token_e       token = SB_PT_WORD;
    sb_policy_condition_t  *c;

    if (sb_policy_is(s, "reason")) {

        if (rule->effect == SB_PE_ALLOW) {
            return sb_policy_fail(s, s->token, "an allow needs no reason");
        }

        rc = sb_policy_text(s, &rule->reason, "a reason");

        return rc == SB_OK ? sb_policy_end(s) : rc;
    }

    if (sb_policy_is(s, "not")) {
        negated = true;

        rc = sb_policy_next(s, &token);
        if (rc != SB_OK) {
            return rc;
        }
    }

    for (i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        if (token == SB_PT_WORD && sb_policy_is(s, conditions[i].name)) {
            break;
        }
    }

    if (i == sizeof(conditions) / sizeof(conditions[0])) {
        return sb_policy_fail(s, s->token, "a condition is missing here: "
                              "operation, access, actor, role, sandbox, "
                              "metadata, path, path_has, command, image, "
                              "port, file_size, request_size, files, mode, "
                              "content, archive or archive_...");
    }

    p = realloc(rule->conditions,
                (rule->n + 1) * sizeof(sb_policy_condition_t));
    if (p == NULL) {
        return SB_NOMEM;
    }

    rule->conditions = p;

    c = &rule->conditions[rule->n++];
    memset(c, 0, sizeof(*c));
    c->kind = conditions[i].kind;
    c->negated = negated;

    rule->of_file |= c->kind >= SB_PC_OF_FILE;
    rule->limit |= sb_policy_limited(c->kind, &size);

    return sb_policy_values(s, rule, c);
}


static sb_rc_t
sb_policy_block(sb_policy_parser_t *s, sb_policy_rule_t *rule)
{
    sb_rc_t            rc;
    sb_policy_token_e  token;

    for ( ;; ) {
        rc = sb_policy_next(s, &token);
        if (rc != SB_OK) {
            return rc;
        }

        if (token == SB_PT_CLOSE) {
            return SB_OK;
        }

        if (token != SB_PT_WORD) {
            return sb_policy_fail(s, s->token, "a condition or \"}\" is "
                                  "missing here");
        }

        rc = sb_policy_condition(s, rule);
        if (rc != SB_OK) {
            return rc;
        }
    }
}


static bool
sb_policy_name_ok(const sb_buf_t *word)
{
    size_t  i;

    for (i = 0; i < word->len; i++) {
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", word->data[i])
            == NULL)
        {
            return false;
        }
    }

    return word->len > 0 && word->len <= 64;
}


static sb_rc_t
sb_policy_rule(sb_policy_parser_t *s, sb_policy_effect_e effect)
{
    void               *p;
    size_t              i, room;
    sb_rc_t             rc;
    const char         *start = s->token;
    unsigned            column;
    sb_policy_t        *policy = s->policy;
    sb_policy_rule_t   *rule;
    sb_policy_token_e   token;

    if (policy->n == SB_POLICY_RULES_MAX) {
        return sb_policy_fail(s, s->token, "the policy has more than %d rules",
                              SB_POLICY_RULES_MAX);
    }

    rc = sb_policy_next(s, &token);
    if (rc != SB_OK) {
        return rc;
    }

    if (token != SB_PT_WORD || !sb_policy_name_ok(&s->word)
        || sb_policy_is(s, "default"))
    {
        return sb_policy_fail(s, s->token, "the name of the rule is missing "
                              "here: small letters, digits, \"-\", \"_\", "
                              "\".\"");
    }

    for (i = 0; i < policy->n; i++) {
        if (strcmp(policy->rules[i].name, s->word.data) == 0) {
            return sb_policy_fail(s, s->token, "there is a rule \"%.64s\" "
                                  "already, on line %u", s->word.data,
                                  policy->rules[i].line);
        }
    }

    if (policy->n == policy->room) {
        room = policy->room ? policy->room * 2 : 16;

        p = realloc(policy->rules, room * sizeof(sb_policy_rule_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        policy->rules = p;
        policy->room = room;
    }

    rule = &policy->rules[policy->n++];
    memset(rule, 0, sizeof(*rule));
    rule->effect = effect;
    sb_policy_where(s, start, &rule->line, &column);

    rc = sb_policy_copy(&rule->name, s->word.data, s->word.len);

    if (rc == SB_OK) {
        rc = sb_policy_next(s, &token);
    }

    if (rc != SB_OK) {
        return rc;
    }

    if (token == SB_PT_OPEN) {
        rc = sb_policy_block(s, rule);

    } else if (token != SB_PT_SEMICOLON) {
        return sb_policy_fail(s, s->token, "\"{\" or \";\" is missing here");
    }

    rule->source = sb_str(start, (size_t) (s->p - start));

    return rc;
}


static sb_rc_t
sb_policy_default(sb_policy_parser_t *s)
{
    sb_rc_t            rc;
    unsigned           column;
    const char        *start = s->token;
    sb_policy_rule_t  *rule = &s->policy->fallback;
    sb_policy_token_e  token;

    sb_policy_where(s, start, &rule->line, &column);

    rc = sb_policy_next(s, &token);
    if (rc != SB_OK) {
        return rc;
    }

    if (token == SB_PT_WORD && sb_policy_is(s, "deny")) {
        rule->effect = SB_PE_DENY;

    } else if (token != SB_PT_WORD || !sb_policy_is(s, "allow")) {
        return sb_policy_fail(s, s->token, "the default is allow or deny");
    }

    rc = sb_policy_next(s, &token);

    if (rc == SB_OK && token == SB_PT_WORD && rule->effect == SB_PE_DENY
        && s->word.len)
    {
        rc = sb_policy_copy(&rule->reason, s->word.data, s->word.len);

        if (rc == SB_OK) {
            rc = sb_policy_next(s, &token);
        }
    }

    if (rc != SB_OK) {
        return rc;
    }

    if (token != SB_PT_SEMICOLON) {
        return sb_policy_fail(s, s->token, "a \";\" is missing here");
    }

    rule->source = sb_str(start, (size_t) (s->p - start));

    rc = sb_policy_next(s, &token);

    if (rc == SB_OK && token != SB_PT_END) {
        return sb_policy_fail(s, s->token, "nothing may follow the default");
    }

    return rc;
}


static sb_rc_t
sb_policy_statements(sb_policy_parser_t *s)
{
    size_t             i;
    sb_rc_t            rc;
    sb_policy_token_e  token;

    static const char *const  effects[] = { "allow", "deny", "observe" };

    for ( ;; ) {
        rc = sb_policy_next(s, &token);
        if (rc != SB_OK) {
            return rc;
        }

        if (token == SB_PT_END) {
            return sb_policy_fail(s, s->token, "\"default allow;\" or "
                                  "\"default deny;\" is missing at the end");
        }

        if (token == SB_PT_WORD && sb_policy_is(s, "default")) {
            return sb_policy_default(s);
        }

        for (i = 0; i < 3; i++) {
            if (token == SB_PT_WORD && sb_policy_is(s, effects[i])) {
                break;
            }
        }

        if (i == 3) {
            return sb_policy_fail(s, s->token, "allow, deny, observe or "
                                  "default is missing here");
        }

        rc = sb_policy_rule(s, (sb_policy_effect_e) i);
        if (rc != SB_OK) {
            return rc;
        }
    }
}


sb_rc_t
sb_policy_parse(sb_str_t text, const char *name, sb_policy_t **policy,
    sb_policy_error_t *error)
{
    sb_rc_t             rc;
    const char         *nul;
    sb_policy_parser_t  parser, *s = &parser;

    memset(error, 0, sizeof(*error));
    memset(s, 0, sizeof(*s));

    s->error = error;
    s->word.max = SB_POLICY_TEXT_MAX + 1;

    s->policy = calloc(1, sizeof(sb_policy_t));
    if (s->policy == NULL) {
        return SB_NOMEM;
    }

    rc = sb_policy_copy(&s->policy->name, name, strlen(name));

    if (rc == SB_OK) {
        rc = sb_policy_copy(&s->policy->text, text.len ? text.data : "",
                            text.len);
    }

    if (rc == SB_OK) {
        rc = sb_policy_copy(&s->policy->fallback.name, "default", 7);
    }

    if (rc == SB_OK) {
        s->policy->len = text.len;
        s->p = s->policy->text;
        s->end = s->p + text.len;
        s->token = s->p;

        nul = text.len ? memchr(s->p, '\0', text.len) : NULL;

        if (text.len > SB_POLICY_TEXT_MAX) {
            rc = sb_policy_fail(s, s->p, "the policy is longer than %d bytes",
                                SB_POLICY_TEXT_MAX);

        } else if (nul) {
            rc = sb_policy_fail(s, nul, "there is a NUL byte here");

        } else if (!sb_utf8_valid(text)) {
            rc = sb_policy_fail(s, s->p, "the policy is no UTF-8 text");

        } else {
            rc = sb_policy_statements(s);
        }
    }

    sb_buf_free(&s->word);

    if (rc != SB_OK) {
        sb_policy_free(s->policy);
        return rc;
    }

    *policy = s->policy;

    return SB_OK;
}


static void
sb_policy_rule_free(sb_policy_rule_t *rule)
{
    size_t              i, k;
    sb_policy_value_t  *v;

    for (i = 0; i < rule->n; i++) {
        for (k = 0; k < rule->conditions[i].n; k++) {
            v = &rule->conditions[i].values[k];

            free(v->pattern);
            sb_policy_regex_free(v->regex);
            free((char *) v->text.data);
        }

        free(rule->conditions[i].values);
    }

    free(rule->conditions);
    free(rule->reason);
    free(rule->name);
}


void
sb_policy_free(sb_policy_t *policy)
{
    size_t  i;

    if (policy == NULL) {
        return;
    }

    for (i = 0; i < policy->n; i++) {
        sb_policy_rule_free(&policy->rules[i]);
    }

    sb_policy_rule_free(&policy->fallback);

    free(policy->rules);
    free(policy->text);
    free(policy->name);
    free(policy);
}
