/* What the model of POST /sandboxes demands of members that this runtime then
 * does not use: types and required members, as FastAPI's answers name them. */

#include <stdio.h>
#include <stdlib.h>

#include "lifecycle.h"


/* A member of a member: "body","image","auth","username". */

static void
rt_loc(char *dst, size_t n, const char *at, const char *name)
{
    snprintf(dst, n, name ? "\"body\",%s,\"%s\"" : "\"body\",%s", at, name);
}


/* An object, or nothing when null may stand for it. */

static bool
rt_check_object(rt_req_t *r, const sb_jv_t *v, const char *at)
{
    char  loc[256];

    if (v == NULL || v->kind == SB_JSON_NULL
        || v->kind == SB_JSON_OPEN_OBJECT)
    {
        return true;
    }

    rt_loc(loc, sizeof(loc), at, NULL);
    rt_lc_invalid(r, "model_attributes_type", loc, "Input should be a valid "
                  "dictionary or object to extract fields from", NULL, NULL);

    return false;
}


/* A string that must be there. */

static bool
rt_check_string(rt_req_t *r, const sb_jv_t *obj, const char *at,
    const char *name)
{
    char            loc[256];
    const sb_jv_t  *v;

    v = sb_jv_get(obj, name);

    if (v != NULL && v->kind == SB_JSON_STRING) {
        return true;
    }

    rt_loc(loc, sizeof(loc), at, name);
    rt_lc_invalid(r, v ? "string_type" : "missing", loc,
                  v ? "Input should be a valid string" : "Field required",
                  v ? NULL : "{}", NULL);

    return false;
}


static bool
rt_check_platform(rt_req_t *r, const sb_jv_t *v)
{
    return rt_check_object(r, v, "\"platform\"")
           && (v == NULL || v->kind == SB_JSON_NULL
               || (rt_check_string(r, v, "\"platform\"", "os")
                   && rt_check_string(r, v, "\"platform\"", "arch")));
}


static bool
rt_check_auth(rt_req_t *r, const sb_jv_t *image)
{
    const sb_jv_t  *v;

    v = sb_jv_get(image, "auth");

    return rt_check_object(r, v, "\"image\",\"auth\"")
           && (v == NULL || v->kind == SB_JSON_NULL
               || (rt_check_string(r, v, "\"image\",\"auth\"", "username")
                   && rt_check_string(r, v, "\"image\",\"auth\"",
                                      "password")));
}


static bool
rt_check_secure(rt_req_t *r, const sb_jv_t *v)
{
    int64_t      n;
    const char  *type;

    if (v == NULL || v->kind == SB_JSON_TRUE || v->kind == SB_JSON_FALSE
        || (v->kind == SB_JSON_NUMBER && sb_jv_int(v, &n)
            && (n == 0 || n == 1))
        || (v->kind == SB_JSON_STRING && rt_lc_bool(v->text) != -1))
    {
        return true;
    }

    type = v->kind == SB_JSON_STRING || v->kind == SB_JSON_NUMBER
           ? "bool_parsing" : "bool_type";
    rt_lc_invalid(r, type, "\"body\",\"secureAccess\"",
                  "Input should be a valid boolean", NULL, NULL);

    return false;
}


static bool
rt_check_volumes(rt_req_t *r, const sb_jv_t *v)
{
    char            at[64];
    unsigned        i;
    const sb_jv_t  *m;

    if (v == NULL || v->kind == SB_JSON_NULL) {
        return true;
    }

    if (v->kind != SB_JSON_OPEN_ARRAY) {
        rt_lc_invalid(r, "list_type", "\"body\",\"volumes\"",
                      "Input should be a valid list", NULL, NULL);
        return false;
    }

    for (m = v->child, i = 0; m != NULL; m = m->next, i++) {
        snprintf(at, sizeof(at), "\"volumes\",%u", i);

        if (m->kind == SB_JSON_NULL || !rt_check_object(r, m, at)
            || !rt_check_string(r, m, at, "name")
            || !rt_check_string(r, m, at, "mountPath"))
        {
            if (!r->replied) {
                rt_lc_invalid(r, "model_attributes_type", at, "Input should "
                              "be a valid dictionary or object to extract "
                              "fields from", NULL, NULL);
            }

            return false;
        }
    }

    return true;
}


/* 300 to 86400 seconds, as text. */

static bool
rt_check_renew(rt_req_t *r, const sb_jv_t *extensions)
{
    char            text[16], *end;
    long            n;
    const sb_jv_t  *v;

    v = sb_jv_get(extensions, "access.renew.extend.seconds");

    if (v == NULL || v->kind != SB_JSON_STRING) {
        return true;
    }

    n = 0;
    end = text;

    if (v->text.len > 0 && v->text.len < sizeof(text)) {
        memcpy(text, v->text.data, v->text.len);
        text[v->text.len] = '\0';
        n = strtol(text, &end, 10);
    }

    if (end != text && *end == '\0' && n >= 300 && n <= 86400) {
        return true;
    }

    rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER",
               "access.renew.extend.seconds must be 300 to 86400.");

    return false;
}


bool
rt_lc_check(rt_req_t *r, const sb_jv_t *root)
{
    const sb_jv_t  *v, *policy, *proxy;

    v = sb_jv_get(root, "snapshotId");

    if (v == NULL) {
        v = sb_jv_get(root, "snapshot_id");
    }

    if (v != NULL && v->kind != SB_JSON_STRING && v->kind != SB_JSON_NULL) {
        rt_lc_invalid(r, "string_type", "\"body\",\"snapshotId\"",
                      "Input should be a valid string", NULL, NULL);
        return false;
    }

    policy = sb_jv_get(root, "networkPolicy");
    proxy = sb_jv_get(root, "credentialProxy");

    if (!rt_check_auth(r, sb_jv_get(root, "image"))
        || !rt_check_platform(r, sb_jv_get(root, "platform"))
        || !rt_check_object(r, policy, "\"networkPolicy\"")
        || !rt_check_object(r, proxy, "\"credentialProxy\"")
        || !rt_check_secure(r, sb_jv_get(root, "secureAccess"))
        || !rt_check_volumes(r, sb_jv_get(root, "volumes")))
    {
        return false;
    }

    if (proxy != NULL && sb_jv_get(proxy, "enabled") != NULL
        && sb_jv_get(proxy, "enabled")->kind == SB_JSON_TRUE
        && (policy == NULL || policy->kind == SB_JSON_NULL))
    {
        rt_lc_invalid(r, "value_error", "\"body\"", "Value error, "
                      "credentialProxy needs networkPolicy", "{}",
                      "{\"error\":{}}");
        return false;
    }

    return true;
}


bool
rt_lc_check_service(rt_req_t *r, const sb_jv_t *root)
{
    return rt_check_renew(r, sb_jv_get(root, "extensions"));
}
