/* Tokens as the console API is told about them, and shows them. */

#include "token.h"
#include "id.h"
#include "json.h"

#define SB_TOKEN_SPAN_MAX  (10 * 365 * 24 * 3600)      /* s */

#define SB_TOKEN_ASK                                                          \
    "The body must be a JSON object of role, actor, sandboxes, expires_in or " \
    "expires_at, and states_actors."


/* A text of at most size - 1 bytes, kept with a NUL. */
static bool
sb_token_text(char *out, size_t size, sb_str_t s)
{
    if (s.len == 0 || s.len >= size || memchr(s.data, '\0', s.len)) {
        return false;
    }

    memcpy(out, s.data, s.len);
    out[s.len] = '\0';

    return true;
}


static const char *
sb_token_ask_role(sb_token_t *token, const sb_jv_t *v)
{
    const char  *name;

    for (unsigned role = 0; role <= SB_ROLE_ADMIN; role++) {
        name = sb_role_name((sb_role_e) role);

        if (v->kind == SB_JSON_STRING
            && sb_eq(v->text, sb_str(name, strlen(name))))
        {
            token->role = (sb_role_e) role;
            return NULL;
        }
    }

    return "The role is viewer, operator or admin.";
}


static const char *
sb_token_ask_actor(sb_token_t *token, const sb_jv_t *v)
{
    bool            ok;
    const sb_jv_t  *m;

    ok = v->kind == SB_JSON_OPEN_OBJECT;

    for (m = ok ? v->child : NULL; m && ok; m = m->next) {

        if (m->kind == SB_JSON_NULL) {
            continue;
        }

        ok = m->kind == SB_JSON_STRING
             && ((sb_eq(m->key, sb_lit("id")) && token->actor[0] == '\0'
                  && sb_token_text(token->actor, sizeof(token->actor),
                                   m->text))
                 || (sb_eq(m->key, sb_lit("type")) && token->type[0] == '\0'
                     && sb_token_text(token->type, sizeof(token->type),
                                      m->text)));
    }

    return ok ? NULL
              : "An actor is an object of type, at most 32 bytes, and id, at "
                "most 128.";
}


static const char *
sb_token_ask_sandboxes(sb_token_t *token, const sb_jv_t *v)
{
    size_t          n;
    const sb_jv_t  *e;

    static const char  why[] =
        "The sandboxes are a list of ids such as build-*: of letters, digits, "
        "dots, underscores, hyphens and *, at most 255 bytes together.";

    if (v->kind != SB_JSON_OPEN_ARRAY) {
        return why;
    }

    n = 0;

    for (e = v->child; e; e = e->next) {

        if (e->kind != SB_JSON_STRING || memchr(e->text.data, ',', e->text.len)
            || !sb_token_globs(e->text)
            || e->text.len + 1 > SB_TOKEN_GLOBS_MAX - n)
        {
            return why;
        }

        if (n) {
            token->sandboxes[n++] = ',';
        }

        memcpy(token->sandboxes + n, e->text.data, e->text.len);
        n += e->text.len;
        token->sandboxes[n] = '\0';
    }

    return NULL;
}


static const char *
sb_token_ask_expires(sb_token_t *token, const sb_jv_t *v, bool span,
    uint64_t now_us)
{
    int64_t  s;

    if (token->expires_us) {
        return "Name the end by expires_in or by expires_at, not by both.";
    }

    if (span) {
        if (v->kind != SB_JSON_NUMBER || !sb_jv_int(v, &s) || s < 1
            || s > SB_TOKEN_SPAN_MAX)
        {
            return "expires_in is a whole number of seconds, from 1 to those "
                   "of ten years.";
        }

        token->expires_us = now_us + (uint64_t) s * 1000000;
        return NULL;
    }

    if (v->kind != SB_JSON_STRING
        || sb_time_parse(&token->expires_us, v->text) != SB_OK
        || token->expires_us <= now_us)
    {
        return "expires_at is a time to come such as 2030-01-31T00:00:00Z.";
    }

    return NULL;
}


static const char *
sb_token_ask_member(sb_token_t *token, const sb_jv_t *v, uint64_t now_us)
{
    if (sb_eq(v->key, sb_lit("states_actors"))) {
        token->states_actors = v->kind == SB_JSON_TRUE;

        return v->kind == SB_JSON_TRUE || v->kind == SB_JSON_FALSE
               ? NULL : "states_actors is true or false.";
    }

    if (sb_eq(v->key, sb_lit("role"))) {
        return sb_token_ask_role(token, v);
    }

    if (sb_eq(v->key, sb_lit("actor"))) {
        return v->kind == SB_JSON_NULL ? NULL : sb_token_ask_actor(token, v);
    }

    if (sb_eq(v->key, sb_lit("sandboxes"))) {
        return v->kind == SB_JSON_NULL ? NULL
                                       : sb_token_ask_sandboxes(token, v);
    }

    if (sb_eq(v->key, sb_lit("expires_in"))
        || sb_eq(v->key, sb_lit("expires_at")))
    {
        return v->kind == SB_JSON_NULL ? NULL
               : sb_token_ask_expires(token, v,
                                      sb_eq(v->key, sb_lit("expires_in")),
                                      now_us);
    }

    return SB_TOKEN_ASK;
}


sb_rc_t
sb_token_ask(sb_token_t *token, sb_str_t body, uint64_t now_us,
    const char **why)
{
    sb_rc_t         rc;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root, *v, *other;

    memset(token, 0, sizeof(sb_token_t));
    token->role = SB_ROLE_OPERATOR;
    token->created_us = now_us;
    *why = SB_TOKEN_ASK;

    doc = sb_jdoc_parse(body, NULL, &rc);

    if (doc == NULL) {
        return rc == SB_NOMEM ? SB_NOMEM : SB_ERROR;
    }

    root = sb_jdoc_root(doc);

    if (root != NULL && root->kind == SB_JSON_OPEN_OBJECT) {
        *why = NULL;

        for (v = root->child; v && *why == NULL; v = v->next) {

            for (other = root->child; other != v; other = other->next) {
                if (sb_eq(other->key, v->key)) {
                    *why = "A member of the body occurs twice.";
                }
            }

            if (*why == NULL) {
                *why = sb_token_ask_member(token, v, now_us);
            }
        }
    }

    sb_jdoc_free(doc);

    return *why ? SB_ERROR : SB_OK;
}


static sb_rc_t
sb_token_member(sb_buf_t *out, const char *name, const char *text)
{
    sb_rc_t  rc;

    rc = sb_buf_printf(out, "\"%s\":", name);

    if (rc != SB_OK) {
        return rc;
    }

    return text[0] ? sb_json_write_str(out, sb_str(text, strlen(text)))
                   : sb_buf_add_str(out, sb_lit("null"));
}


static sb_rc_t
sb_token_actor(sb_buf_t *out, const sb_token_t *token)
{
    sb_rc_t  rc;

    if (token->actor[0] == '\0' && token->type[0] == '\0') {
        return sb_buf_add_str(out, sb_lit("\"actor\":null,"));
    }

    rc = sb_buf_add_str(out, sb_lit("\"actor\":{"));

    if (rc == SB_OK) {
        rc = sb_token_member(out, "id", token->actor);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_c(out, ',');
    }

    if (rc == SB_OK) {
        rc = sb_token_member(out, "type", token->type);
    }

    return rc == SB_OK ? sb_buf_add_str(out, sb_lit("},")) : rc;
}


sb_rc_t
sb_token_sandboxes(sb_buf_t *out, const sb_token_t *token)
{
    size_t       n;
    sb_rc_t      rc;
    const char  *p;

    rc = sb_buf_add_str(out, sb_lit("\"sandboxes\":["));

    for (p = token->sandboxes; rc == SB_OK && *p; p += n + (p[n] == ',')) {
        n = strcspn(p, ",");
        rc = sb_buf_printf(out, "%s\"%.*s\"", p == token->sandboxes ? "" : ",",
                           (int) n, p);
    }

    return rc == SB_OK ? sb_buf_add_c(out, ']') : rc;
}


/* In the order of canonical JSON. */
sb_rc_t
sb_token_members(sb_buf_t *out, const sb_token_t *token)
{
    char     created[SB_TIME_LEN + 1], expires[SB_TIME_LEN + 1];
    sb_rc_t  rc;

    created[0] = '\0';
    expires[0] = '\0';

    if (token->created_us) {
        sb_time_text(created, token->created_us);
    }

    if (token->expires_us) {
        sb_time_text(expires, token->expires_us);
    }

    rc = sb_token_actor(out, token);

    if (rc == SB_OK) {
        rc = sb_token_member(out, "created_at", created);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_c(out, ',');
    }

    if (rc == SB_OK) {
        rc = sb_token_member(out, "expires_at", expires);
    }

    if (rc == SB_OK) {
        rc = sb_buf_printf(out, ",\"id\":\"%s\",\"role\":\"%s\",",
                           token->id, sb_role_name(token->role));
    }

    if (rc == SB_OK) {
        rc = sb_token_sandboxes(out, token);
    }

    return rc == SB_OK
           ? sb_buf_printf(out, ",\"states_actors\":%s",
                           token->states_actors ? "true" : "false")
           : rc;
}
