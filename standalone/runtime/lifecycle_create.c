/* POST /sandboxes: what FastAPI's model accepts, and what can be built here. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "id.h"
#include "lifecycle.h"
#include "snapshot.h"


#define RT_ENVS_MAX  4000
#define RT_ARGS_MAX  200


/* A member by its name or the other spelling of it. */

static const sb_jv_t *
rt_member(const sb_jv_t *root, const char *name, const char *snake)
{
    const sb_jv_t  *v;

    v = sb_jv_get(root, name);

    if (v == NULL) {
        v = sb_jv_get(root, snake);
    }

    return v != NULL && v->kind == SB_JSON_NULL ? NULL : v;
}


static bool
rt_blank(sb_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] != ' ' && s.data[i] != '\t' && s.data[i] != '\n') {
            return false;
        }
    }

    return true;
}


static void
rt_value_error(rt_req_t *r, const char *text)
{
    char  msg[256], ctx[256];

    snprintf(msg, sizeof(msg), "Value error, %s", text);
    snprintf(ctx, sizeof(ctx), "{\"error\":{}}");
    rt_lc_invalid(r, "value_error", "\"body\"", msg, "{}", ctx);
}


/* A number without a fraction, 60.0 too. */

static bool
rt_integral(const sb_jv_t *v, int64_t *out)
{
    char    text[40], *end;
    double  n;

    if (sb_jv_int(v, out)) {
        return true;
    }

    if (v->text.len >= sizeof(text)) {
        return false;
    }

    memcpy(text, v->text.data, v->text.len);
    text[v->text.len] = '\0';
    n = strtod(text, &end);

    if (*end != '\0' || n < -1e15 || n > 1e15 || n != (double) (int64_t) n) {
        return false;
    }

    *out = (int64_t) n;

    return true;
}


/* seconds: 0 when the sandbox never expires. */

static bool
rt_timeout(rt_req_t *r, const sb_jv_t *root, int64_t *seconds)
{
    char            input[32], *end, text[32];
    const sb_jv_t  *v;

    *seconds = 0;
    v = rt_member(root, "timeout", "timeout");

    if (v == NULL) {
        return true;
    }

    if (v->kind == SB_JSON_STRING && v->text.len > 0 && v->text.len < 20) {
        snprintf(text, sizeof(text), "%.*s", (int) v->text.len,
                 v->text.data);
        *seconds = strtoll(text, &end, 10);

        if (*end != '\0') {
            rt_lc_invalid(r, "int_parsing", "\"body\",\"timeout\"",
                          "Input should be a valid integer, unable to parse "
                          "string as an integer", NULL, NULL);
            return false;
        }

    } else if (v->kind == SB_JSON_TRUE || v->kind == SB_JSON_FALSE) {
        *seconds = v->kind == SB_JSON_TRUE;

    } else if (v->kind != SB_JSON_NUMBER || !rt_integral(v, seconds)) {
        rt_lc_invalid(r, v->kind == SB_JSON_NUMBER ? "int_from_float"
                                                   : "int_type",
                      "\"body\",\"timeout\"",
                      "Input should be a valid integer", NULL, NULL);
        return false;
    }

    if (*seconds < 60) {
        snprintf(input, sizeof(input), "%lld", (long long) *seconds);
        rt_lc_invalid(r, "greater_than_equal", "\"body\",\"timeout\"",
                      "Input should be greater than or equal to 60", input,
                      "{\"ge\":60}");
        return false;
    }

    if (*seconds > 10LL * 366 * 86400) {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER",
                   "timeout must not be more than ten years");
        return false;
    }

    return true;
}


static bool
rt_image(rt_req_t *r, const sb_jv_t *root, rt_box_t *b)
{
    sb_buf_t        buf;
    const sb_jv_t  *image, *uri;

    image = rt_member(root, "image", "image");

    if (image == NULL) {
        return true;
    }

    if (image->kind != SB_JSON_OPEN_OBJECT) {
        rt_lc_invalid(r, "model_attributes_type", "\"body\",\"image\"",
                      "Input should be a valid dictionary or object to "
                      "extract fields from", NULL, NULL);
        return false;
    }

    uri = sb_jv_get(image, "uri");

    if (uri == NULL) {
        rt_lc_invalid(r, "missing", "\"body\",\"image\",\"uri\"",
                      "Field required", "{}", NULL);
        return false;
    }

    if (uri->kind != SB_JSON_STRING) {
        rt_lc_invalid(r, "string_type", "\"body\",\"image\",\"uri\"",
                      "Input should be a valid string", NULL, NULL);
        return false;
    }

    if (rt_blank(uri->text)) {
        return true;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = 1024 * 1024;
    sb_buf_printf(&buf, "{\"uri\":");
    rt_lc_str(&buf, uri->text);
    sb_buf_add_c(&buf, '}');
    b->image = sb_buf_cstr(&buf);

    return b->image != NULL;
}


static bool
rt_entrypoint(rt_req_t *r, const sb_jv_t *root, rt_box_t *b)
{
    char            loc[64];
    unsigned        n;
    sb_buf_t        buf;
    const sb_jv_t  *v, *m;

    v = rt_member(root, "entrypoint", "entrypoint");

    if (v == NULL) {
        return true;
    }

    if (v->kind != SB_JSON_OPEN_ARRAY) {
        rt_lc_invalid(r, "list_type", "\"body\",\"entrypoint\"",
                      "Input should be a valid list", NULL, NULL);
        return false;
    }

    if (v->child == NULL) {
        rt_lc_invalid(r, "too_short", "\"body\",\"entrypoint\"", "List should"
                      " have at least 1 item after validation, not 0", "[]",
                      "{\"field_type\":\"List\",\"min_length\":1,"
                      "\"actual_length\":0}");
        return false;
    }

    b->argv = calloc(RT_ARGS_MAX + 1, sizeof(char *));
    memset(&buf, 0, sizeof(buf));
    buf.max = RT_BODY_MAX;
    sb_buf_add_c(&buf, '[');
    n = 0;

    for (m = v->child; m != NULL; m = m->next) {
        if (m->kind != SB_JSON_STRING) {
            sb_buf_free(&buf);
            snprintf(loc, sizeof(loc), "\"body\",\"entrypoint\",%u", n);
            rt_lc_invalid(r, "string_type", loc,
                          "Input should be a valid string", NULL, NULL);
            return false;
        }

        if (n == RT_ARGS_MAX) {
            sb_buf_free(&buf);
            rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER", "entrypoint "
                       "must not have more than %d words", RT_ARGS_MAX);
            return false;
        }

        b->argv[n++] = strndup(m->text.data, m->text.len);
        sb_buf_add(&buf, ",", n > 1 ? 1 : 0);
        rt_lc_str(&buf, m->text);
    }

    sb_buf_add_c(&buf, ']');
    b->entrypoint = sb_buf_cstr(&buf);

    return b->entrypoint != NULL;
}


/* What the real server would take but this runtime cannot do is refused, never
 * passed over. */

static bool
rt_supported(rt_req_t *r, const sb_jv_t *root)
{
    size_t          i;
    struct utsname  u;
    const sb_jv_t  *v, *os, *arch;

    static const struct {
        const char  *name, *snake;
    } refused[] = {
        { "networkPolicy", "network_policy" },
        { "credentialProxy", "credential_proxy" },
    };

    v = sb_jv_get(sb_jv_get(root, "extensions"), "poolRef");

    if (v != NULL && v->kind != SB_JSON_NULL) {
        rt_lc_fail(r, 400, "SANDBOX::UNSUPPORTED_POOL_REF",
                   "The local runtime has no pools.");
        return false;
    }

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        v = rt_member(root, refused[i].name, refused[i].snake);

        if (v != NULL) {
            rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER", "The local "
                       "runtime does not filter traffic: leave %s out.",
                       refused[i].name);
            return false;
        }
    }

    v = rt_member(root, "volumes", "volumes");

    if (v != NULL && v->child != NULL) {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER",
                   "The local runtime mounts no volumes: leave volumes out.");
        return false;
    }

    v = rt_member(root, "secureAccess", "secure_access");

    if (v != NULL && v->kind == SB_JSON_TRUE) {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER",
                   "secureAccess is not supported here.");
        return false;
    }

    v = rt_member(root, "platform", "platform");
    os = sb_jv_get(v, "os");
    arch = sb_jv_get(v, "arch");
    uname(&u);

    if ((os != NULL && !sb_eq(os->text, sb_lit("linux")))
        || (arch != NULL
            && !sb_eq(arch->text, strcmp(u.machine, "aarch64") == 0
                                  ? sb_lit("arm64") : sb_lit("amd64"))))
    {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER", "The local runtime "
                   "runs linux on %s only.", u.machine);
        return false;
    }

    return true;
}


static void
rt_platform(const sb_jv_t *root, rt_box_t *b)
{
    sb_buf_t        buf;
    const sb_jv_t  *v;

    v = rt_member(root, "platform", "platform");

    if (v == NULL || v->kind != SB_JSON_OPEN_OBJECT) {
        return;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = 65536;
    sb_buf_printf(&buf, "{\"os\":");
    rt_lc_str(&buf, sb_jv_str(v, "os"));
    sb_buf_printf(&buf, ",\"arch\":");
    rt_lc_str(&buf, sb_jv_str(v, "arch"));
    sb_buf_add_c(&buf, '}');
    b->platform = sb_buf_cstr(&buf);
}


static bool
rt_env(rt_req_t *r, const sb_jv_t *root, rt_box_t *b)
{
    unsigned        n;
    const sb_jv_t  *v, *m;

    v = rt_member(root, "env", "env");

    if (!rt_lc_strings(r, v, "env", true) || v == NULL) {
        return v == NULL;
    }

    b->env = calloc(RT_ENVS_MAX + 1, sizeof(char *));

    for (m = v->child, n = 0; m != NULL && n < RT_ENVS_MAX; m = m->next) {
        if (m->kind == SB_JSON_STRING && m->key.len > 0
            && asprintf(&b->env[n], "%.*s=%.*s", (int) m->key.len,
                        m->key.data, (int) m->text.len, m->text.data)
               != -1)
        {
            n++;
        }
    }

    return true;
}


static bool
rt_metadata(rt_req_t *r, const sb_jv_t *root, rt_box_t *b)
{
    const sb_jv_t  *v, *m;

    v = rt_member(root, "metadata", "metadata");

    if (!rt_lc_strings(r, v, "metadata", false)) {
        return false;
    }

    for (m = v ? v->child : NULL; m != NULL; m = m->next) {
        if (!rt_lc_label_ok(r, m->key, m->text)) {
            return false;
        }

        if (!rt_lc_label_set(b, m->key, &m->text)) {
            rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER", "metadata must "
                       "not have more than %d members", RT_METADATA_MAX);
            return false;
        }
    }

    return true;
}


/* Of a sandbox that begins with a snapshot. */

static void
rt_default_entrypoint(rt_box_t *b)
{
    b->argv = calloc(4, sizeof(char *));
    b->entrypoint = strdup("[\"tail\",\"-f\",\"/dev/null\"]");

    if (b->argv == NULL || b->entrypoint == NULL) {
        abort();
    }

    b->argv[0] = strdup("tail");
    b->argv[1] = strdup("-f");
    b->argv[2] = strdup("/dev/null");
}


/* false: an answer was given. */

static bool
rt_restore(rt_req_t *r, rt_box_t *b, const char *id)
{
    char  why[512];

    switch (rt_snap_restore(id, b, why, sizeof(why))) {

    case RT_SNAP_DONE:
        memcpy(b->snapshot, id, sizeof(b->snapshot));
        return true;

    case RT_SNAP_UNKNOWN:
        rt_lc_fail(r, 404, "SNAPSHOT::NOT_FOUND",
                   "Snapshot %.200s not found", id);
        break;

    case RT_SNAP_NOT_READY:
        rt_lc_fail(r, 409, "SNAPSHOT::NOT_READY",
                   "Snapshot %s is not ready for restore.", id);
        break;

    default:
        rt_lc_fail(r, 500, "DOCKER::SANDBOX_START_FAILED", "%s", why);
        break;
    }

    return false;
}


/* The rules of the model in FastAPI's order, then those of the service; id gets
 * the snapshot to begin with. */

static bool
rt_create_check(rt_req_t *r, const sb_jv_t *root, rt_box_t *b, char *id,
    size_t max)
{
    bool            snapshot;
    int64_t         seconds;
    const sb_jv_t  *v;

    if (!rt_image(r, root, b) || !rt_timeout(r, root, &seconds)
        || !rt_lc_strings(r, rt_member(root, "resourceLimits",
                                       "resource_limits"),
                          "resourceLimits", false)
        || !rt_env(r, root, b)
        || !rt_lc_strings(r, rt_member(root, "metadata", "metadata"),
                          "metadata", false)
        || !rt_entrypoint(r, root, b)
        || !rt_lc_strings(r, rt_member(root, "extensions", "extensions"),
                          "extensions", false)
        || !rt_lc_check(r, root))
    {
        return false;
    }

    v = rt_member(root, "snapshotId", "snapshot_id");
    snapshot = v != NULL && v->kind == SB_JSON_STRING && !rt_blank(v->text);
    v = sb_jv_get(sb_jv_get(root, "extensions"), "poolRef");

    if (v == NULL || v->kind == SB_JSON_NULL) {
        if ((b->image != NULL) == snapshot) {
            rt_value_error(r, "Exactly one of image or snapshotId must be "
                              "provided.");
            return false;
        }

        if (b->image != NULL && b->argv == NULL) {
            rt_value_error(r, "Entrypoint is required when image is "
                              "provided.");
            return false;
        }

        if (rt_member(root, "resourceLimits", "resource_limits") == NULL) {
            rt_value_error(r, "resourceLimits is required when poolRef is "
                              "not provided.");
            return false;
        }
    }

    if (!rt_lc_check_service(r, root) || !rt_supported(r, root)
        || !rt_metadata(r, root, b))
    {
        return false;
    }

    if (snapshot) {
        v = rt_member(root, "snapshotId", "snapshot_id");
        snprintf(id, max, "%.*s", (int) v->text.len, v->text.data);

        if (b->argv == NULL) {
            rt_default_entrypoint(b);
        }
    }

    rt_platform(root, b);

    if (seconds > 0) {
        b->expires_us = b->created_us + (uint64_t) seconds * 1000000;
    }

    return true;
}


void
rt_lc_create(rt_req_t *r)
{
    char        why[1024], snapshot[256];
    sb_buf_t    buf;
    rt_box_t   *b;
    sb_jdoc_t  *doc;

    doc = rt_lc_body(r);

    if (doc == NULL) {
        return;
    }

    b = rt_box_new();
    snapshot[0] = '\0';

    if (!rt_create_check(r, sb_jdoc_root(doc), b, snapshot, sizeof(snapshot))
        || (snapshot[0] != '\0' && !rt_restore(r, b, snapshot)))
    {
        rt_box_free(b);
        sb_jdoc_free(doc);
        return;
    }

    sb_jdoc_free(doc);

    if (!rt_box_start(b, why, sizeof(why))) {
        rt_lc_fail(r, 500, "DOCKER::SANDBOX_START_FAILED", "%s", why);
        return;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = RT_BODY_MAX;
    rt_lc_box(&buf, b, true);
    rt_box_release(b);
    rt_lc_json(r, 202, &buf);
}
