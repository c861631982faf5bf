/*
 * The language of policies: statements that end with ";" or have a block.
 *
 *   allow|deny|observe NAME { condition...; reason "..."; }
 *   default allow|deny ["reason"];
 */

#include "policy_parse_int.h"

#include "utf8.h"

#include <stdlib.h>


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
