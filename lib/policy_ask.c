/* Questions about a policy and their answers, as JSON. */

#include "policy_ask.h"

#include "path.h"

#include <stdio.h>
#include <stdlib.h>


static sb_rc_t
sb_policy_ask_wrong(sb_policy_question_t *q, const char *name,
    const char *what)
{
    (void) snprintf(q->why, sizeof(q->why), "%s %s.", name, what);

    return SB_ERROR;
}


/* A member that is a text, if it is there. */
static sb_rc_t
sb_policy_ask_text(sb_policy_question_t *q, const char *name, sb_str_t *text,
    bool *has)
{
    const sb_jv_t  *v = sb_jv_get(sb_jdoc_root(q->doc), name);

    if (v == NULL) {
        return SB_OK;
    }

    if (v->kind != SB_JSON_STRING) {
        return sb_policy_ask_wrong(q, name, "is to be a text");
    }

    *text = v->text;

    if (has) {
        *has = true;
    }

    return SB_OK;
}


static sb_rc_t
sb_policy_ask_number(sb_policy_question_t *q, const char *name, int64_t max,
    int64_t *n)
{
    const sb_jv_t  *v = sb_jv_get(sb_jdoc_root(q->doc), name);

    if (v == NULL) {
        return SB_OK;
    }

    if (v->kind != SB_JSON_NUMBER || !sb_jv_int(v, n) || *n < 0 || *n > max) {
        return sb_policy_ask_wrong(q, name, "is no possible number");
    }

    return SB_OK;
}


static sb_rc_t
sb_policy_ask_names(sb_policy_question_t *q)
{
    size_t          i;
    const sb_jv_t  *v, *w;

    static const char *const  known[] = {
        "operation", "path", "command", "actor", "role", "sandbox", "metadata",
        "image", "port", "size", "mode", "content", "archive", "archive_path",
        "archive_entries", "archive_size", "archive_file_size",
        "archive_ratio", "archive_depth"
    };

    for (v = sb_jdoc_root(q->doc)->child; v; v = v->next) {

        for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            if (sb_eq(v->key, sb_str(known[i], strlen(known[i])))) {
                break;
            }
        }

        if (i == sizeof(known) / sizeof(known[0])) {
            return sb_policy_ask_wrong(q, "A question", "has operation, path, "
                                       "command, actor, role, sandbox, "
                                       "metadata, image, port, size, mode, "
                                       "content, archive and archive_* as in "
                                       "policies, and nothing else");
        }

        for (w = v->next; w; w = w->next) {
            if (sb_eq(v->key, w->key)) {
                return sb_policy_ask_wrong(q, known[i], "is there twice");
            }
        }
    }

    return SB_OK;
}


static sb_rc_t
sb_policy_ask_actor(sb_policy_question_t *q)
{
    sb_rc_t      rc;
    sb_str_t     actor = { "", 0 };
    const char  *slash;

    rc = sb_policy_ask_text(q, "actor", &actor, NULL);

    slash = actor.len ? memchr(actor.data, '/', actor.len) : NULL;
    q->request.actor_type = actor;

    if (slash) {
        q->request.actor_type.len = (size_t) (slash - actor.data);
        q->request.actor_id = sb_str(slash + 1,
                                     actor.len - q->request.actor_type.len - 1);
    }

    return rc;
}


/* A text for a shell, or an array of words that no shell parts. */
static sb_rc_t
sb_policy_ask_command(sb_policy_question_t *q)
{
    sb_rc_t         rc;
    const sb_jv_t  *v, *w;

    v = sb_jv_get(sb_jdoc_root(q->doc), "command");

    if (v == NULL || v->kind != SB_JSON_OPEN_ARRAY) {
        return sb_policy_ask_text(q, "command", &q->request.command,
                                  &q->request.has_command);
    }

    for (w = v->child; w; w = w->next) {
        if (w->kind != SB_JSON_STRING) {
            return sb_policy_ask_wrong(q, "command", "is to be a text or an "
                                       "array of texts");
        }
    }

    q->argv.max = SIZE_MAX / 2;
    rc = sb_jv_canonical(&q->argv, v);

    q->request.has_command = true;
    q->request.argv = true;
    q->request.command = sb_str(q->argv.data, q->argv.len);

    return rc;
}


static sb_rc_t
sb_policy_ask_paths(sb_policy_question_t *q)
{
    size_t                n = 0;
    int64_t               mode = -1, size = -1;
    sb_rc_t               rc;
    const sb_jv_t        *v, *w;
    sb_policy_request_t  *r = &q->request;

    rc = sb_policy_ask_number(q, "mode", 99999999, &mode);
    rc = rc == SB_OK ? sb_policy_ask_number(q, "size", INT64_MAX / 2048, &size)
                     : rc;
    if (rc != SB_OK) {
        return rc;
    }

    v = sb_jv_get(sb_jdoc_root(q->doc), "path");
    w = v && v->kind == SB_JSON_OPEN_ARRAY ? v->child : v;

    q->files = calloc(SB_POLICY_ASK_PATHS, sizeof(sb_policy_file_t));
    if (q->files == NULL) {
        return SB_NOMEM;
    }

    for ( /* void */ ; w; w = w == v ? NULL : w->next) {

        if (w->kind != SB_JSON_STRING || n == SB_POLICY_ASK_PATHS) {
            return sb_policy_ask_wrong(q, "path", "is to be a text or an array "
                                       "of up to 1024 of them");
        }

        q->files[n].path = w->text;
        q->files[n].mode = mode < 0 ? SB_MODE_NONE : sb_mode(mode);
        q->files[n].has_size = size >= 0;
        q->files[n++].size = size < 0 ? 0 : (uint64_t) size;
    }

    r->files = q->files;
    r->nfiles = n;
    r->files_total = n;
    r->has_size = size >= 0;
    r->size = size < 0 ? 0 : (uint64_t) size * (n ? n : 1);

    return SB_OK;
}


static sb_rc_t
sb_policy_ask_metadata(sb_policy_question_t *q)
{
    const sb_jv_t        *v, *w;
    sb_policy_request_t  *r = &q->request;

    v = sb_jv_get(sb_jdoc_root(q->doc), "metadata");
    r->has_metadata = v != NULL || strcmp(r->op->name, "sandbox.create") == 0;

    if (v == NULL) {
        return SB_OK;
    }

    q->metadata = calloc(SB_POLICY_ASK_METADATA, sizeof(sb_policy_pair_t));
    if (q->metadata == NULL) {
        return SB_NOMEM;
    }

    for (w = v->child; w; w = w->next) {
        if (v->kind != SB_JSON_OPEN_OBJECT || w->kind != SB_JSON_STRING
            || r->nmetadata == SB_POLICY_ASK_METADATA)
        {
            break;
        }

        q->metadata[r->nmetadata].key = w->key;
        q->metadata[r->nmetadata++].value = w->text;
    }

    if (v->kind != SB_JSON_OPEN_OBJECT || w) {
        return sb_policy_ask_wrong(q, "metadata", "is to be an object of up to "
                                   "256 texts");
    }

    r->metadata = q->metadata;

    return SB_OK;
}


/* A member that is a word or an array of them, each for `take`. */
static sb_rc_t
sb_policy_ask_words(sb_policy_question_t *q, const char *name,
    bool (*take)(sb_policy_facts_t *facts, sb_str_t word), const char *what)
{
    const sb_jv_t  *v, *w;

    v = sb_jv_get(sb_jdoc_root(q->doc), name);
    w = v && v->kind == SB_JSON_OPEN_ARRAY ? v->child : v;

    for ( /* void */ ; w; w = w == v ? NULL : w->next) {
        if (w->kind != SB_JSON_STRING || !take(&q->facts, w->text)) {
            return sb_policy_ask_wrong(q, name, what);
        }
    }

    return SB_OK;
}


static sb_rc_t
sb_policy_ask_names_of_members(sb_policy_question_t *q)
{
    size_t          n = 0;
    const sb_jv_t  *v, *w;

    v = sb_jv_get(sb_jdoc_root(q->doc), "archive_path");
    w = v && v->kind == SB_JSON_OPEN_ARRAY ? v->child : v;

    if (v == NULL) {
        return SB_OK;
    }

    q->names = calloc(SB_POLICY_ASK_NAMES, sizeof(sb_str_t));
    if (q->names == NULL) {
        return SB_NOMEM;
    }

    for ( /* void */ ; w; w = w == v ? NULL : w->next) {

        if (w->kind != SB_JSON_STRING || n == SB_POLICY_ASK_NAMES) {
            return sb_policy_ask_wrong(q, "archive_path", "is to be a text or "
                                       "an array of up to 1024 of them");
        }

        q->names[n++] = w->text;
    }

    sb_policy_facts_names(&q->facts, q->names, n);

    return SB_OK;
}


static sb_rc_t
sb_policy_ask_facts(sb_policy_question_t *q)
{
    size_t    i;
    sb_rc_t   rc;
    int64_t  n;

    rc = sb_policy_ask_words(q, "content", sb_policy_facts_content,
                             "is to be of private-key, aws-key, google-key, "
                             "token and gateway-token");

    if (rc == SB_OK) {
        rc = sb_policy_ask_words(q, "archive", sb_policy_facts_archive,
                                 "is to be of any, uninspected and what is "
                                 "found in archives, such as links");
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_names_of_members(q);
    }

    for (i = 0; rc == SB_OK && i < SB_IN_COUNTS; i++) {
        n = -1;
        rc = sb_policy_ask_number(q, sb_policy_facts_counts[i], INT64_MAX, &n);

        if (n >= 0) {
            sb_policy_facts_count(&q->facts, (sb_inspect_count_e) i,
                                  (uint64_t) n);
        }
    }

    if (rc == SB_OK && sb_policy_facts_told(&q->facts)
        && q->request.nfiles == 0)
    {
        return sb_policy_ask_wrong(q, "What is in a file", "belongs to a path");
    }

    return rc;
}


sb_rc_t
sb_policy_question(sb_policy_question_t *q, sb_str_t text)
{
    int64_t               port = 0;
    sb_rc_t               rc;
    sb_str_t              name = { "", 0 };
    sb_policy_request_t  *r = &q->request;

    memset(q, 0, sizeof(*q));

    q->doc = sb_jdoc_parse(text, NULL, &rc);

    if (q->doc == NULL && rc == SB_NOMEM) {
        return SB_NOMEM;
    }

    if (q->doc == NULL || sb_jdoc_root(q->doc)->kind != SB_JSON_OPEN_OBJECT) {
        return sb_policy_ask_wrong(q, "A question",
                                   "is a JSON object with an operation");
    }

    rc = sb_policy_ask_names(q);
    rc = rc == SB_OK ? sb_policy_ask_text(q, "operation", &name, NULL) : rc;

    if (rc != SB_OK) {
        return rc;
    }

    r->op = sb_op_find(name);

    if (r->op == NULL) {
        return sb_policy_ask_wrong(q, "operation", "is to be one of those in "
                                   "docs/operations.md");
    }

    rc = sb_policy_ask_actor(q);

    if (rc == SB_OK) {
        rc = sb_policy_ask_text(q, "role", &r->role, NULL);
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_text(q, "sandbox", &r->sandbox, NULL);
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_text(q, "image", &r->image, &r->has_image);
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_number(q, "port", 65535, &port);
        r->port = (uint32_t) port;
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_command(q);
        r->dark = strcmp(r->op->name, "code.execute") == 0;
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_paths(q);
    }

    if (rc == SB_OK) {
        rc = sb_policy_ask_facts(q);
    }

    return rc == SB_OK ? sb_policy_ask_metadata(q) : rc;
}


sb_rc_t
sb_policy_question_check(sb_policy_question_t *q, const sb_policy_t *policy,
    sb_policy_verdict_t *verdict)
{
    return sb_policy_facts_check(&q->facts, policy, &q->request, verdict);
}


void
sb_policy_question_free(sb_policy_question_t *q)
{
    sb_jdoc_free(q->doc);
    sb_buf_free(&q->argv);
    free(q->files);
    free(q->metadata);
    free(q->names);
}


static sb_rc_t
sb_policy_answer_text(sb_buf_t *out, const char *name, sb_str_t text)
{
    sb_rc_t  rc = sb_buf_printf(out, ",\"%s\":", name);

    return rc == SB_OK ? sb_json_write_str(out, text) : rc;
}


sb_rc_t
sb_policy_answer(const sb_policy_verdict_t *v, sb_buf_t *out)
{
    sb_rc_t  rc;

    rc = sb_buf_printf(out, "\"decision\":\"%s\",\"rule\":\"%s\",\"line\":%u",
                       v->decision == SB_POLICY_DENY ? "deny" : "allow",
                       v->rule, v->line);

    if (rc == SB_OK && v->decision == SB_POLICY_DENY) {
        rc = sb_policy_answer_text(out, "reason",
                                   sb_str(v->reason, strlen(v->reason)));

        if (rc == SB_OK && v->path.len) {
            rc = sb_policy_answer_text(out, "path", v->path);
        }

        if (rc == SB_OK && v->limit) {
            rc = sb_buf_add_str(out, sb_lit(",\"limit\":true"));
        }
    }

    if (rc == SB_OK && v->observed) {
        rc = sb_buf_printf(out, ",\"observed\":{\"rule\":\"%s\",\"line\":%u",
                           v->observed, v->observed_line);

        if (rc == SB_OK) {
            rc = sb_policy_answer_text(out, "reason",
                                       sb_str(v->observed_reason,
                                              strlen(v->observed_reason)));
        }

        rc = rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
    }

    if (rc == SB_OK && v->unread) {
        rc = sb_buf_add_str(out, sb_lit(",\"unread\":true"));
    }

    return rc;
}
