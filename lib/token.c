#include "token.h"
#include "digest.h"
#include "id.h"
#include "operation.h"
#include "utf8.h"

#include <stdlib.h>

/* "sbx_" ID "_" SECRET */
#define SB_TOKEN_SECRET    32       /* random bytes */
#define SB_TOKEN_ID_NEW    10

#define SB_TOKEN_TYPE_MAX  32


static const sb_str_t  sb_token_prefix = { "sbx_", 4 };

static const char *const  sb_token_roles[] = { "viewer", "operator", "admin" };


static const char *sb_token_row(sb_token_t *token, sb_str_t line);
static const char *sb_token_word(sb_token_t *token, sb_str_t word,
    unsigned *seen);
static bool sb_token_next(sb_str_t *line, sb_str_t *word);
static bool sb_token_id(sb_str_t id);
static bool sb_token_name(sb_str_t name);
static bool sb_token_type(sb_str_t type);
static int sb_token_compare(const void *a, const void *b);


sb_rc_t
sb_tokens_parse(sb_tokens_t *t, sb_str_t text, unsigned *line,
    const char **why)
{
    size_t       n, cap;
    sb_str_t     row, rest, word;
    sb_token_t  *items, token;
    const char  *end;

    memset(t, 0, sizeof(sb_tokens_t));
    *line = 0;
    *why = NULL;
    cap = 0;

    while (text.len) {
        (*line)++;

        end = memchr(text.data, '\n', text.len);
        n = end == NULL ? text.len : (size_t) (end - text.data);
        row = sb_str(text.data, n);

        if (end != NULL) {
            n++;
        }

        text.data += n;
        text.len -= n;

        if (row.len && row.data[row.len - 1] == '\r') {
            row.len--;
        }

        rest = row;

        if (!sb_token_next(&rest, &word) || word.data[0] == '#') {
            continue;
        }

        *why = sb_token_row(&token, row);

        for (size_t i = 0; *why == NULL && i < t->n; i++) {
            if (strcmp(t->items[i].id, token.id) == 0) {
                *why = "the id of the token stands in an earlier line";
            }
        }

        if (*why == NULL && t->n == SB_TOKENS_MAX) {
            *why = "there are more than 4096 tokens";
        }

        if (*why != NULL) {
            sb_tokens_free(t);
            return SB_ERROR;
        }

        if (t->n == cap) {
            cap = cap ? cap * 2 : 8;

            items = realloc(t->items, cap * sizeof(sb_token_t));
            if (items == NULL) {
                sb_tokens_free(t);
                return SB_NOMEM;
            }

            t->items = items;
        }

        t->items[t->n++] = token;
    }

    if (t->n) {
        qsort(t->items, t->n, sizeof(sb_token_t), sb_token_compare);
    }

    return SB_OK;
}


void
sb_tokens_free(sb_tokens_t *t)
{
    /* endpoint tokens are keyed by the hashes */

    if (t->items != NULL) {
        explicit_bzero(t->items, t->n * sizeof(sb_token_t));
        free(t->items);
    }

    memset(t, 0, sizeof(sb_tokens_t));
}


void
sb_token_make(sb_token_t *token, char *text)
{
    static const char  alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

    char     *p;
    size_t    n;
    uint8_t   random[SB_TOKEN_ID_NEW + SB_TOKEN_SECRET];

    sb_random(random, sizeof(random));

    for (n = 0; n < SB_TOKEN_ID_NEW; n++) {
        token->id[n] = alphabet[random[n] & 31];
    }

    token->id[n] = '\0';

    p = text;
    memcpy(p, sb_token_prefix.data, sb_token_prefix.len);
    p += sb_token_prefix.len;
    memcpy(p, token->id, n);
    p += n;
    *p++ = '_';
    p += sb_b64url(p, random + n, SB_TOKEN_SECRET);

    sb_sha256(token->hash, sb_str(text, (size_t) (p - text)));
    explicit_bzero(random, sizeof(random));
}


sb_rc_t
sb_token_line(sb_buf_t *out, const sb_token_t *token, uint64_t now_us)
{
    char      hash[65], time[SB_TIME_LEN + 1];
    size_t    len;
    sb_rc_t   rc;
    sb_str_t  actor, type;

    actor = sb_str(token->actor, strlen(token->actor));
    type = sb_str(token->type, strlen(token->type));

    if (!sb_token_id(sb_str(token->id, strlen(token->id)))
        || (unsigned) token->role > SB_ROLE_ADMIN
        || (actor.len && !sb_token_name(actor))
        || (type.len && !sb_token_type(type))
        || (token->sandboxes[0]
            && !sb_token_globs(sb_str(token->sandboxes,
                                      strlen(token->sandboxes)))))
    {
        return SB_ERROR;
    }

    sb_hex(hash, token->hash, 32);
    sb_time_text(time, token->created_us ? token->created_us : now_us);
    len = out->len;

    rc = sb_buf_printf(out, "%s %s role=%s%s%s%s%s%s%s%s created=%s",
                       token->id, hash, sb_token_roles[token->role],
                       actor.len ? " actor=" : "", token->actor,
                       type.len ? " type=" : "", token->type,
                       token->states_actors ? " states-actors" : "",
                       token->sandboxes[0] ? " sandboxes=" : "",
                       token->sandboxes, time);

    if (rc == SB_OK && token->expires_us) {
        sb_time_text(time, token->expires_us);
        rc = sb_buf_printf(out, " expires=%s", time);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_c(out, '\n');
    }

    if (rc != SB_OK) {
        /* a part of a line would be another token */
        out->len = len;
    }

    return rc;
}


const char *
sb_token_line_of(sb_str_t text, sb_str_t id, size_t *len)
{
    size_t       n;
    sb_str_t     line, word;
    const char  *end;

    while (text.len) {
        end = memchr(text.data, '\n', text.len);
        n = end == NULL ? text.len : (size_t) (end - text.data) + 1;
        line = sb_str(text.data, end == NULL ? n : n - 1);

        if (sb_token_next(&line, &word) && sb_eq(word, id)) {
            *len = n;
            return text.data;
        }

        text.data += n;
        text.len -= n;
    }

    return NULL;
}


const char *
sb_role_name(sb_role_e role)
{
    return sb_token_roles[role];
}


bool
sb_token_last_admin(const sb_tokens_t *t, const sb_token_t *token,
    uint64_t now_us)
{
    size_t             i;
    const sb_token_t  *other;

    if (token->role != SB_ROLE_ADMIN || token->sandboxes[0]
        || (token->expires_us && token->expires_us <= now_us))
    {
        return false;
    }

    for (i = 0; i < t->n; i++) {
        other = &t->items[i];

        if (other->role == SB_ROLE_ADMIN && other->sandboxes[0] == '\0'
            && strcmp(other->id, token->id) != 0
            && (other->expires_us == 0
                || (token->expires_us
                    && other->expires_us >= token->expires_us)))
        {
            return false;
        }
    }

    return true;
}


const sb_token_t *
sb_token_check(const sb_tokens_t *t, sb_str_t text, uint64_t now_us)
{
    size_t             n;
    uint8_t            hash[32];
    sb_str_t           id;
    const char        *end;
    const sb_token_t  *row;

    n = sb_token_prefix.len;

    if (text.len <= n || text.len >= SB_TOKEN_TEXT_MAX
        || memcmp(text.data, sb_token_prefix.data, n) != 0)
    {
        return NULL;
    }

    end = memchr(text.data + n, '_', text.len - n);
    if (end == NULL) {
        return NULL;
    }

    id = sb_str(text.data + n, (size_t) (end - text.data) - n);

    row = sb_token_find(t, id, now_us);
    if (row == NULL) {
        return NULL;
    }

    sb_sha256(hash, text);

    return sb_equal_ct(hash, row->hash, sizeof(hash)) ? row : NULL;
}


const sb_token_t *
sb_token_find(const sb_tokens_t *t, sb_str_t id, uint64_t now_us)
{
    sb_token_t         key;
    const sb_token_t  *row;

    if (t->n == 0 || !sb_token_id(id)) {
        return NULL;
    }

    memcpy(key.id, id.data, id.len);
    key.id[id.len] = '\0';

    row = bsearch(&key, t->items, t->n, sizeof(sb_token_t), sb_token_compare);

    if (row == NULL || (row->expires_us && row->expires_us <= now_us)) {
        return NULL;
    }

    return row;
}


/* One line of the file; returns what is wrong with it. */
static const char *
sb_token_row(sb_token_t *token, sb_str_t line)
{
    unsigned     seen;
    sb_str_t     word;
    const char  *why;

    memset(token, 0, sizeof(sb_token_t));
    seen = 0;

    if (!sb_token_next(&line, &word) || !sb_token_id(word)) {
        return "a token's id is made of 1 to 32 lower-case letters and digits";
    }

    memcpy(token->id, word.data, word.len);

    if (!sb_token_next(&line, &word)
        || sb_unhex(token->hash, sizeof(token->hash), word) != SB_OK)
    {
        return "the token's id is not followed by a SHA-256 of 64 hex digits";
    }

    while (sb_token_next(&line, &word)) {
        why = sb_token_word(token, word, &seen);

        if (why != NULL) {
            return why;
        }
    }

    return NULL;
}


static const char *
sb_token_word(sb_token_t *token, sb_str_t word, unsigned *seen)
{
    static const sb_str_t  names[] = {
        { "states-actors", 13 }, { "role=", 5 }, { "actor=", 6 },
        { "type=", 5 }, { "created=", 8 }, { "expires=", 8 },
        { "sandboxes=", 10 }
    };

    size_t    k, role;

    for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (word.len >= names[k].len
            && memcmp(word.data, names[k].data, names[k].len) == 0
            && (k != 0 || word.len == names[k].len))
        {
            break;
        }
    }

    if (k == sizeof(names) / sizeof(names[0])) {
        return "a word is none of role=, actor=, type=, states-actors, "
               "sandboxes=, created=, expires=";
    }

    if (*seen & 1u << k) {
        return "a word stands twice in one line";
    }

    *seen |= 1u << k;
    word.data += names[k].len;
    word.len -= names[k].len;

    switch (k) {

    case 0:
        token->states_actors = true;
        return NULL;

    case 1:
        for (role = 0; role <= SB_ROLE_ADMIN; role++) {
            if (sb_eq(word, sb_str(sb_token_roles[role],
                                   strlen(sb_token_roles[role]))))
            {
                token->role = (sb_role_e) role;
                return NULL;
            }
        }

        return "a role is viewer, operator or admin";

    case 2:
        if (!sb_token_name(word)) {
            return "an actor is 1 to 128 bytes of UTF-8 without control "
                   "characters";
        }

        memcpy(token->actor, word.data, word.len);
        return NULL;

    case 3:
        if (!sb_token_type(word)) {
            return "a type is 1 to 32 letters, digits, \".\", \"_\" or \"-\"";
        }

        memcpy(token->type, word.data, word.len);
        return NULL;

    case 4:
        if (sb_time_parse(&token->created_us, word) != SB_OK) {
            return "created= is not followed by a time such as "
                   "2026-11-29T09:00:00Z";
        }

        return NULL;

    case 6:
        if (!sb_token_globs(word)) {
            return "sandboxes= is not followed by ids such as build-*, "
                   "separated by commas";
        }

        memcpy(token->sandboxes, word.data, word.len);
        return NULL;

    default:
        if (sb_time_parse(&token->expires_us, word) != SB_OK
            || token->expires_us == 0)
        {
            return "expires= is not followed by a time such as "
                   "2026-11-29T09:00:00Z";
        }

        return NULL;
    }
}


/* Next word between blanks. */
static bool
sb_token_next(sb_str_t *line, sb_str_t *word)
{
    size_t  i, start;

    for (i = 0; i < line->len; i++) {
        if (line->data[i] != ' ' && line->data[i] != '\t') {
            break;
        }
    }

    for (start = i; i < line->len; i++) {
        if (line->data[i] == ' ' || line->data[i] == '\t') {
            break;
        }
    }

    *word = sb_str(line->data + start, i - start);
    line->data += i;
    line->len -= i;

    return word->len != 0;
}


static bool
sb_token_id(sb_str_t id)
{
    if (id.len == 0 || id.len > SB_TOKEN_ID_MAX) {
        return false;
    }

    for (size_t i = 0; i < id.len; i++) {
        if (!((id.data[i] >= 'a' && id.data[i] <= 'z')
              || (id.data[i] >= '0' && id.data[i] <= '9')))
        {
            return false;
        }
    }

    return true;
}


static bool
sb_token_name(sb_str_t name)
{
    if (name.len == 0 || name.len > SB_TOKEN_NAME_MAX
        || !sb_utf8_valid(name))
    {
        return false;
    }

    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char) name.data[i] <= 0x20 || name.data[i] == 0x7f) {
            return false;
        }
    }

    return true;
}


static bool
sb_token_type(sb_str_t type)
{
    char  c;

    if (type.len == 0 || type.len > SB_TOKEN_TYPE_MAX) {
        return false;
    }

    for (size_t i = 0; i < type.len; i++) {
        c = type.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
        {
            return false;
        }
    }

    return true;
}


bool
sb_token_globs(sb_str_t globs)
{
    char  c;

    if (globs.len == 0 || globs.len > SB_TOKEN_GLOBS_MAX) {
        return false;
    }

    for (size_t i = 0; i < globs.len; i++) {
        c = globs.data[i];

        if (c == ',') {
            /* an empty one would be for what has no sandbox */

            if (i == 0 || i + 1 == globs.len || globs.data[i - 1] == ',') {
                return false;
            }

        } else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                     || (c >= '0' && c <= '9') || c == '.' || c == '_'
                     || c == '-' || c == '*'))
        {
            return false;
        }
    }

    return true;
}


bool
sb_token_allows(const sb_token_t *token, sb_str_t sandbox)
{
    size_t       n;
    const char  *p;

    if (token->sandboxes[0] == '\0') {
        return true;
    }

    if (sandbox.len == 0) {
        return false;
    }

    for (p = token->sandboxes; *p; p += n + (p[n] == ',')) {
        n = strcspn(p, ",");

        if (sb_op_glob(sb_str(p, n), sandbox)) {
            return true;
        }
    }

    return false;
}


static int
sb_token_compare(const void *a, const void *b)
{
    return strcmp(((const sb_token_t *) a)->id, ((const sb_token_t *) b)->id);
}
