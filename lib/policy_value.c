/* What may stand behind the name of a condition. */

#include "policy_parse_int.h"

#include "operation_table.h"
#include "path.h"
#include "scan.h"

#include <stdlib.h>


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


sb_rc_t
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


bool
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


sb_rc_t
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
