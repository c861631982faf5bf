/* /code/context*: there are no kernels here, so there are no contexts. */

#include <stdlib.h>

#include "execd.h"
#include "url.h"


void
rt_code_context_create(rt_req_t *r)
{
    sb_str_t        lang;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root;

    lang = sb_lit("");
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT
        || rt_go_str(root, "language", &lang) < 0)
    {
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "the body must be a JSON object with a language");

    } else {
        rt_fail(r, 500, "RUNTIME_ERROR", "this runtime has no kernel for "
                "language %.*s: only shell commands run here",
                (int) (lang.len < 64 ? lang.len : 64), lang.data);
    }

    sb_jdoc_free(doc);
}


void
rt_code_contexts(rt_req_t *r)
{
    rt_out(r, "Content-Type", "application/json; charset=utf-8");
    rt_reply(r, 200, "[]", 2);
}


void
rt_code_contexts_delete(rt_req_t *r)
{
    char  *lang;

    lang = rt_query_get(r->query, "language");

    if (lang == NULL || lang[0] == '\0') {
        rt_fail(r, 400, "MISSING_QUERY",
                "missing query parameter 'language'");

    } else {
        rt_ok(r);
    }

    free(lang);
}


void
rt_code_context(rt_req_t *r, const char *id)
{
    rt_fail(r, 404, "CONTEXT_NOT_FOUND", "no context has the id %s", id);
}
