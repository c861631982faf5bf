/* What POST /command and POST /code ask for. */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include "execd.h"


#define RT_ENVS_MAX  4096


static bool
rt_run_cred(rt_run_t *run, const sb_jv_t *root, const char **why)
{
    int            hu, hg, n;
    char           buf[4096];
    int64_t        uid, gid;
    struct passwd  pw, *found;

    uid = gid = 0;
    hu = rt_go_int(root, "uid", &uid);
    hg = rt_go_int(root, "gid", &gid);

    if (hu < 0 || hg < 0 || uid < 0 || gid < 0 || uid > UINT32_MAX
        || gid > UINT32_MAX)
    {
        *why = "uid and gid must be unsigned 32-bit integers";
        return false;
    }

    if (hg && !hu) {
        *why = "gid needs uid";
        return false;
    }

    if (!hu) {
        return true;
    }

    run->has_cred = true;
    run->uid = (uid_t) uid;
    run->gid = (gid_t) gid;

    if (getpwuid_r(run->uid, &pw, buf, sizeof(buf), &found) == 0 && found) {
        if (!hg) {
            run->gid = pw.pw_gid;
        }

        n = RT_GROUPS_MAX;

        if (getgrouplist(pw.pw_name, pw.pw_gid, run->groups, &n) != -1) {
            run->ngroups = n;
        }
    }

    return true;
}


/* envs: an object of strings -> NAME=VALUE entries. */

static bool
rt_run_envs(rt_run_t *run, const sb_jv_t *envs)
{
    size_t          n;
    const sb_jv_t  *v;

    if (envs == NULL) {
        return true;
    }

    if (envs->kind != SB_JSON_OPEN_OBJECT) {
        return false;
    }

    run->envs = calloc(RT_ENVS_MAX + 1, sizeof(char *));

    if (run->envs == NULL) {
        return false;
    }

    for (n = 0, v = envs->child; v != NULL; v = v->next) {
        if ((v->kind != SB_JSON_STRING && v->kind != SB_JSON_NULL)
            || n == RT_ENVS_MAX
            || asprintf(&run->envs[n], "%.*s=%.*s", (int) v->key.len,
                        v->key.data, (int) v->text.len,
                        v->text.data ? v->text.data : "") == -1)
        {
            return false;
        }

        n++;
    }

    return true;
}


static void
rt_run_free(rt_run_t *run)
{
    rt_env_free(run->envs);
    free(run->cwd);
}


void
rt_command_run(rt_req_t *r)
{
    rt_run_t        run;
    sb_str_t        cwd;
    sb_jdoc_t      *doc;
    const char     *why;
    const sb_jv_t  *root;

    memset(&run, 0, sizeof(run));
    run.grace_ms = rt_execd.grace_ms;
    cwd = sb_lit("");
    why = NULL;
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT) {
        why = "the body must be a JSON object";

    } else if (rt_go_str(root, "command", &run.command) < 0
               || rt_go_str(root, "cwd", &cwd) < 0
               || rt_go_bool(root, "background", &run.background) < 0)
    {
        why = "command and cwd must be strings, background true or false";

    } else if (run.command.len == 0) {
        why = "command must not be empty";

    } else if (rt_go_int(root, "timeout", &run.timeout_ms) < 0
               || run.timeout_ms < 0)
    {
        why = "timeout must be milliseconds, 1 or more";

    } else if (!rt_run_envs(&run, rt_go_get(root, "envs"))) {
        why = "envs must be an object of strings";

    } else if (rt_run_cred(&run, root, &why) && cwd.len > 0) {
        run.cwd = rt_expand(cwd, false);

        if (!rt_is_dir(cwd)) {
            why = "cwd is not a directory";
        }
    }

    if (why != NULL) {
        rt_fail(r, 400, "INVALID_REQUEST_BODY", "invalid request: %s", why);

    } else {
        rt_command_execute(r, &run);
    }

    rt_run_free(&run);
    sb_jdoc_free(doc);
}


void
rt_code_run(rt_req_t *r)
{
    int             rc;
    rt_run_t        run;
    sb_str_t        lang, id;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root, *context;

    memset(&run, 0, sizeof(run));
    lang = id = sb_lit("");
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;
    rc = -1;

    if (root != NULL && root->kind == SB_JSON_OPEN_OBJECT) {
        rc = rt_go_str(root, "code", &run.command);
        context = rt_go_get(root, "context");

        if (rc >= 0 && context != NULL) {
            rc = context->kind == SB_JSON_OPEN_OBJECT
                 && rt_go_str(context, "id", &id) >= 0
                 ? rt_go_str(context, "language", &lang) : -1;
        }
    }

    if (rc < 0 || run.command.len == 0) {
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "invalid request: code must be a string that is not empty");

    } else if (lang.len > 0 && !sb_eq(lang, sb_lit("command"))
               && !sb_eq(lang, sb_lit("background-command")))
    {
        rt_code_in_kernel(r, lang, id.data, run.command);

    } else {
        run.background = sb_eq(lang, sb_lit("background-command"));
        rt_command_execute(r, &run);
    }

    sb_jdoc_free(doc);
}
