/*
 * What is recorded of requests and answers, and what is refused (C148, C149,
 * C150, C151; reference 8, 10.4).
 */

#include "request.h"

#include "json.h"
#include "path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>


#define EXECD   "/sandboxes/s1/proxy/44772"
#define EGRESS  "/sandboxes/s1/proxy/18080"


typedef struct {
    char         *buf;
    char         *body;
    sb_route_t    route;
    sb_request_t  r;
} got_t;


/* What is not going to be recorded is refused for the same reasons. */

static void
judged_alike(const got_t *g, sb_rc_t rc)
{
    sb_request_t  r;

    assert_int_equal(sb_request_judge(&r, &g->route), rc);
    assert_int_equal(r.json.len, 0);
    assert_ptr_equal(r.op, g->r.op);
    assert_int_equal(r.has_expires, g->r.has_expires);
    assert_int_equal(r.files_total, g->r.files_total);
    assert_int_equal(r.nfiles, g->r.nfiles);

    for (size_t i = 0; i < r.nfiles; i++) {
        assert_true(sb_eq(r.files[i].path, g->r.files[i].path));
    }

    if (g->r.reason) {
        assert_string_equal(r.reason, g->r.reason);

    } else {
        assert_null(r.reason);
    }

    sb_request_free(&r);
}


static sb_rc_t
read_request(got_t *g, const char *method, const char *target, sb_str_t body)
{
    bool       upgrade;
    size_t     n = strlen(target);
    sb_rc_t    rc;
    sb_str_t   m = sb_str(method, strlen(method));

    upgrade = m.len && m.data[0] == '^';

    if (upgrade) {
        m.data++;
        m.len--;
    }

    g->buf = malloc(2 * n + 64);
    g->body = malloc(body.len ? body.len : 1);
    assert_non_null(g->buf);
    assert_non_null(g->body);

    if (body.len) {
        memcpy(g->body, body.data, body.len);
    }

    rc = sb_route(&g->route, m, sb_str(target, n), upgrade, g->buf,
                  2 * n + 64);

    if (rc != SB_OK) {
        fail_msg("%s %s is no route: %s", method, target, g->route.reason);
    }

    rc = sb_request_read(&g->r, &g->route, sb_str(g->body, body.len));

    /* whatever came, the record is one valid canonical object */

    if (rc != SB_NOMEM) {
        sb_buf_t     b = { .max = SB_REQUEST_JSON_MAX };
        sb_rc_t      parsed;
        sb_jdoc_t   *d;

        assert_true(g->r.json.len <= SB_REQUEST_JSON_MAX);
        d = sb_jdoc_parse(sb_str(g->r.json.data, g->r.json.len), NULL, &parsed);

        if (d == NULL) {
            fail_msg("no JSON: %.*s", (int) g->r.json.len, g->r.json.data);
        }

        assert_int_equal(sb_jv_canonical(&b, sb_jdoc_root(d)), SB_OK);
        assert_int_equal(b.len, g->r.json.len);
        assert_memory_equal(b.data, g->r.json.data, b.len);

        sb_buf_free(&b);
        sb_jdoc_free(d);
    }

    if (rc != SB_OK) {
        assert_non_null(g->r.reason);
    }

    if (!(g->route.op->flags & SB_OPF_JSON)) {
        judged_alike(g, rc);
    }

    return rc;
}


static void
done(got_t *g)
{
    sb_request_free(&g->r);
    sb_request_free(&g->r);
    free(g->buf);
    free(g->body);
    memset(g, 0, sizeof(*g));
}


typedef struct {
    const char  *method, *target, *body;
    const char  *op, *json;
} case_t;


static const case_t  cases[] = {

    /* lifecycle */

    { "POST", "/v1/sandboxes",
      "{\"image\": {\"uri\": \"python:3.11\", \"auth\": {\"username\": \"u\","
      "\"password\": \"S3CRET\"}}, \"timeout\": 600, \"resourceLimits\": "
      "{\"memory\": \"2Gi\", \"cpu\": \"1\"}, \"env\": {\"B\":\"S3CRET\","
      "\"A\":null}, \"metadata\": {\"agent_sandbox.name\": \"box\", "
      "\"sandbox_instance_id\": \"i-1\"}, \"entrypoint\": [\"tail\", \"-f\"], "
      "\"secureAccess\": false, \"snapshotId\": null, \"extensions\": "
      "{\"poolRef\":\"S3CRET\"}, \"volumes\": [{\"name\":\"v\",\"mountPath\":"
      "\"/m\",\"readOnly\":true,\"host\":{\"path\":\"/h\"},\"ossfs\":{"
      "\"bucket\":\"b\",\"accessKeyId\":\"S3CRET\",\"accessKeySecret\":"
      "\"S3CRET\",\"zz\":\"S3CRET\"}}], \"unheard\": \"S3CRET\", "
      "\"networkPolicy\":{\"defaultAction\":\"deny\",\"egress\":[{\"action\":"
      "\"allow\",\"target\":\"pypi.org\"}]}}", "sandbox.create",
      "{\"dropped\":[\"unheard\",\"volumes[].ossfs.zz\"],\"entrypoint\":"
      "[\"tail\",\"-f\"],\"env_names\":[\"A\",\"B\"],\"extension_names\":"
      "[\"poolRef\"],\"image\":{\"auth\":{\"password\":\"[redacted]\","
      "\"username\":\"u\"},\"uri\":\"python:3.11\"},\"metadata\":{"
      "\"agent_sandbox.name\":\"box\",\"sandbox_instance_id\":\"i-1\"},"
      "\"networkPolicy\":{\"defaultAction\":\"deny\",\"egress\":[{\"action\":"
      "\"allow\",\"target\":\"pypi.org\"}]},\"resourceLimits\":{\"cpu\":\"1\","
      "\"memory\":\"2Gi\"},\"secureAccess\":false,\"timeout\":600,\"volumes\":"
      "[{\"host\":{\"path\":\"/h\"},\"mountPath\":\"/m\",\"name\":\"v\","
      "\"ossfs\":{\"accessKeyId\":\"[redacted]\",\"accessKeySecret\":"
      "\"[redacted]\",\"bucket\":\"b\"},\"readOnly\":true}]}" },
    { "POST", "/sandboxes", "{\"snapshot_id\":\"x\",\"resource_limits\":{},"
      "\"network_policy\":{\"default_action\":\"deny\"}}", "sandbox.create",
      "{\"networkPolicy\":{\"defaultAction\":\"deny\"},\"resourceLimits\":{},"
      "\"snapshotId\":\"x\"}" },
    { "POST", "/sandboxes", "{\"env\":[\"A=S3CRET\"],\"image\":\"S3CRET\","
      "\"volumes\":{}}", "sandbox.create",
      "{\"dropped\":[\"env\",\"image\",\"volumes\"]}" },
    { "GET", "/v1/sandboxes?state=Running&state=Paused&metadata=a%3Db%26c%3Dd"
      "&page=1&page=2&x=S3CRET", "", "sandbox.list",
      "{\"dropped\":[\"?x\"],\"metadata\":\"a=b&c=d\",\"page\":\"2\","
      "\"state\":[\"Running\",\"Paused\"]}" },
    { "GET", "/v1/sandboxes/s1", "", "sandbox.get", "{}" },
    { "PATCH", "/v1/sandboxes/s1/metadata", "{\"b\":null,\"a\":\"x\"}",
      "sandbox.metadata.patch", "{\"metadata\":{\"a\":\"x\",\"b\":null}}" },
    { "POST", "/v1/sandboxes/s1/renew-expiration", "{\"expiresAt\":"
      "\"2026-11-29T13:25:27.914744+00:00\"}", "sandbox.renew",
      "{\"expiresAt\":\"2026-11-29T13:25:27.914744+00:00\"}" },
    { "GET", "/v1/sandboxes/s1/endpoints/44772?use_server_proxy=false", "",
      "endpoint.get", "{\"port\":44772,\"use_server_proxy\":\"false\"}" },
    { "GET", "/sandboxes/s1/endpoints/80?expires=17000", "", "endpoint.get",
      "{\"port\":80,\"signed\":true}" },
    { "POST", "/sandboxes/s1/snapshots", "", "snapshot.create", "{}" },
    { "POST", "/sandboxes/s1/snapshots", "{\"name\":\"n\"}", "snapshot.create",
      "{\"name\":\"n\"}" },
    { "GET", "/snapshots/x1", "", "snapshot.get", "{\"snapshot_id\":\"x1\"}" },
    { "GET", "/sandboxes/s1/diagnostics/logs?tail=5&since=10m", "",
      "diagnostics.logs", "{\"since\":\"10m\",\"tail\":\"5\"}" },
    { "POST", "/pools", "{\"name\":\"p\",\"template\":{\"env\":\"S3CRET\"},"
      "\"capacitySpec\":{\"poolMax\":3}}", "pool.create",
      "{\"capacitySpec\":{\"poolMax\":3},\"name\":\"p\",\"template_bytes\":16}"
    },
    { "DELETE", "/pools/p", "", "pool.delete", "{\"name\":\"p\"}" },

    /* execd */

    { "POST", EXECD "/command", "{\"command\":\"echo hi\",\"cwd\":\"/w\","
      "\"background\":false,\"timeout\":1500,\"uid\":1,\"envs\":{\"Z\":"
      "\"S3CRET\",\"A\":\"S3CRET\"},\"new\":1}", "command.execute",
      "{\"background\":false,\"command\":\"echo hi\",\"cwd\":\"/w\","
      "\"dropped\":[\"new\"],\"env_names\":[\"A\",\"Z\"],\"timeout_ms\":1500,"
      "\"uid\":1}" },
    { "POST", EXECD "/command", "{\"argv\":[\"ls\",\"-l\"]}", "command.execute",
      "{\"argv\":[\"ls\",\"-l\"]}" },
    { "POST", EXECD "/command", "{\"argv\":[],\"command\":\"ls\"}",
      "command.execute", "{\"argv\":[],\"command\":\"ls\"}" },
    { "POST", EXECD "/command", "[1]", "command.execute",
      "{\"dropped\":[\"(body)\"]}" },
    { "DELETE", EXECD "/command?id=abc", "", "command.interrupt",
      "{\"id\":\"abc\"}" },
    { "GET", EXECD "/command/status/abc", "", "command.status",
      "{\"id\":\"abc\"}" },
    { "GET", EXECD "/command/abc/logs?cursor=7", "", "command.logs",
      "{\"cursor\":\"7\",\"id\":\"abc\"}" },
    { "POST", EXECD "/code", "{\"context\":{\"id\":\"c\",\"language\":"
      "\"python\"},\"code\":\"1+1\"}", "code.execute",
      "{\"code\":\"1+1\",\"context_id\":\"c\",\"language\":\"python\"}" },
    { "POST", EXECD "/code", "{\"code\":\"id\"}", "command.execute",
      "{\"code\":\"id\"}" },
    { "POST", EXECD "/code", "{\"context\":{\"id\":\"x\"},\"code\":\"id\"}",
      "command.execute", "{\"code\":\"id\",\"context_id\":\"x\"}" },
    { "POST", EXECD "/code", "{\"language\":\"python\",\"code\":\"id\"}",
      "command.execute", "{\"code\":\"id\",\"dropped\":[\"language\"]}" },
    { "POST", EXECD "/code", "{\"context\":{\"language\":\"\"},\"code\":\"id\"}"
      , "command.execute", "{\"code\":\"id\",\"language\":\"\"}" },
    { "POST", EXECD "/code", "{\"context\":{\"language\":\"command\"},\"code\":"
      "\"id\"}", "command.execute",
      "{\"code\":\"id\",\"language\":\"command\"}" },
    { "POST", EXECD "/code", "{\"context\":{\"language\":"
      "\"background-command\"},\"code\":\"id\"}", "command.execute",
      "{\"code\":\"id\",\"language\":\"background-command\"}" },
    { "POST", EXECD "/code", "{\"context\":{\"language\":\"Command\"},\"code\":"
      "\"id\"}", "code.execute", "{\"code\":\"id\",\"language\":\"Command\"}" },
    { "POST", EXECD "/code", "{\"context\":null,\"code\":\"id\"}",
      "command.execute", "{\"code\":\"id\"}" },
    { "DELETE", EXECD "/code/contexts?language=python", "",
      "code.context.delete_all", "{\"language\":\"python\"}" },
    { "POST", EXECD "/session", "", "session.create", "{}" },
    { "POST", EXECD "/session/s/run", "{\"command\":\"ls\",\"timeout\":0}",
      "session.run",
      "{\"command\":\"ls\",\"session_id\":\"s\",\"timeout_ms\":0}" },
    { "GET", EXECD "/files/download?path=%2Ftmp%2Fa+b&offset=1&path=%2Fc", "",
      "file.read", "{\"offset\":\"1\",\"path\":\"/tmp/a b\"}" },
    { "DELETE", EXECD "/files?path=%2Fa&path=%2Fb+c&path=", "", "file.delete",
      "{\"paths\":[\"/a\",\"/b c\",\"\"]}" },
    { "GET", EXECD "/files/info?Path=/x", "", "file.stat",
      "{\"dropped\":[\"?Path\"]}" },
    { "POST", EXECD "/files/mv", "[{\"src\":\"/a\",\"dest\":\"/b\",\"x\":1},"
      "{\"src\":\"/c\",\"dest\":\"d\"}]", "file.move",
      "{\"dropped\":[\"moves[].x\"],\"moves\":[{\"dest\":\"/b\",\"src\":\"/a\"}"
      ",{\"dest\":\"d\",\"src\":\"/c\"}]}" },
    { "POST", EXECD "/files/permissions", "{\"/b\":{\"mode\":755},\"/a\":{"
      "\"owner\":\"root\",\"group\":null,\"mode\":644}}", "file.chmod",
      "{\"files\":{\"/a\":{\"mode\":644,\"owner\":\"root\"},\"/b\":{\"mode\":"
      "755}}}" },
    { "POST", EXECD "/files/replace?verbose=true", "{\"/a\":{\"old\":\"S3CRET\""
      ",\"new\":\"\xc3\xa9\"}}", "file.replace",
      "{\"files\":{\"/a\":{\"new_bytes\":2,\"old_bytes\":6}},\"verbose\":"
      "\"true\"}" },
    { "POST", EXECD "/directories", "{\"/d\":null}", "dir.create",
      "{\"files\":{\"/d\":null}}" },
    { "GET", EXECD "/files/search?path=/w&pattern=*.c", "", "file.search",
      "{\"path\":\"/w\",\"pattern\":\"*.c\"}" },
    { "POST", EXECD "/pty", "{\"cwd\":\"/w\",\"command\":\"top\"}",
      "pty.create", "{\"command\":\"top\",\"cwd\":\"/w\"}" },
    { "^GET", EXECD "/pty/p1/ws?since=0&takeover=1&client=c1", "", "pty.open",
      "{\"client\":\"c1\",\"session_id\":\"p1\",\"since\":\"0\",\"takeover\":\"1\"}" },
    { "POST", EXECD "/internal/init", "{\"sandboxId\":\"s\",\"generation\":3,"
      "\"accessTokenHash\":\"S3CRET\",\"envs\":{\"K\":\"S3CRET\"}}",
      "execd.init", "{\"accessTokenHash\":\"[redacted]\",\"env_names\":[\"K\"],"
      "\"generation\":3,\"sandboxId\":\"s\"}" },
    { "POST", EXECD "/v1/isolated/session", "{\"profile\":\"strict\","
      "\"workspace\":{\"path\":\"/w\",\"mode\":\"rw\"},\"binds\":[{\"source\":"
      "\"/s\",\"dest\":\"/d\"}],\"extra_writable\":[\"/e\"]}",
      "isolated.create", "{\"binds\":[{\"dest\":\"/d\",\"source\":\"/s\"}],"
      "\"extra_writable\":[\"/e\"],\"profile\":\"strict\",\"workspace\":{"
      "\"mode\":\"rw\",\"path\":\"/w\"}}" },
    { "POST", EXECD "/v1/isolated/session/x/run", "{\"code\":\"ls\","
      "\"timeout_seconds\":2,\"envs\":{}}", "isolated.run",
      "{\"code\":\"ls\",\"env_names\":[],\"session_id\":\"x\","
      "\"timeout_seconds\":2}" },
    { "DELETE", EXECD "/v1/isolated/session/x/files?path=/a", "",
      "isolated.file.delete", "{\"paths\":[\"/a\"],\"session_id\":\"x\"}" },
    { "PUT", EXECD "/nope?a=S3CRET&b=%zz&c", "", "execd.unknown",
      "{\"path\":\"/nope\",\"query_names\":[\"a\",\"c\"]}" },

    /* egress */

    { "POST", EGRESS "/policy", "{\"egress\":[{\"target\":\"a\",\"action\":"
      "\"deny\"}],\"defaultAction\":\"allow\"}", "egress.policy.set",
      "{\"defaultAction\":\"allow\",\"egress\":[{\"action\":\"deny\","
      "\"target\":\"a\"}]}" },
    { "PUT", EGRESS "/policy", "", "egress.policy.reset", "{}" },
    { "POST", EGRESS "/policy", " \r\n", "egress.policy.reset", "{}" },
    { "PATCH", EGRESS "/policy", "[{\"action\":\"deny\",\"target\":\"a\"}]",
      "egress.policy.patch",
      "{\"egress\":[{\"action\":\"deny\",\"target\":\"a\"}]}" },
    { "DELETE", EGRESS "/policy", "[\"b\",\"a\"]", "egress.policy.delete_rules",
      "{\"targets\":[\"b\",\"a\"]}" },
    { "POST", EGRESS "/credential-vault", "{\"credentials\":[{\"name\":\"c2\","
      "\"source\":{\"type\":\"inline\",\"value\":\"S3CRET\"}},{\"name\":\"c1\"}"
      "],\"bindings\":[{\"name\":\"b\",\"auth\":{\"headers\":\"S3CRET\"}}]}",
      "vault.create",
      "{\"binding_names\":[\"b\"],\"credential_names\":[\"c1\",\"c2\"]}" },
    { "PATCH", EGRESS "/credential-vault", "{\"expectedRevision\":4,"
      "\"credentials\":{\"add\":[{\"name\":\"a\",\"source\":\"S3CRET\"}],"
      "\"delete\":[\"d\"],\"odd\":\"S3CRET\"},\"bindings\":\"S3CRET\"}",
      "vault.patch", "{\"credentials\":{\"add\":[\"a\"],\"delete\":[\"d\"]},"
      "\"dropped\":[\"bindings\",\"credentials.(unknown)\"],"
      "\"expectedRevision\":4}"
    },
    { "GET", EGRESS "/credential-vault/credentials/c1", "", "vault.get",
      "{\"name\":\"c1\"}" },

    /* user ports */

    { "POST", "/sandboxes/s1/proxy/8000/a%20b?token=S3CRET&x;y=S3CRET", "{",
      "proxy.http", "{\"path\":\"/a b\",\"port\":8000,\"query_names\":"
      "[\"token\"]}" },
    { "^GET", "/sandboxes/s1/proxy/8000", "", "proxy.ws",
      "{\"path\":\"/\",\"port\":8000}" },
};


static void
test_cases(void **state)
{
    size_t         i;
    got_t          g = { 0 };
    sb_rc_t        rc;
    const case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        c = &cases[i];

        rc = read_request(&g, c->method, c->target,
                          sb_str(c->body, strlen(c->body)));

        if (rc != SB_OK || strcmp(g.r.op->name, c->op)
            || strcmp(sb_buf_cstr(&g.r.json), c->json))
        {
            fail_msg("%s %s %s: %d %s, %s\n%s\nnot\n%s\n%s", c->method,
                     c->target, c->body, rc, g.r.reason ? g.r.reason : "",
                     g.r.op->name, sb_buf_cstr(&g.r.json), c->op, c->json);
        }

        assert_null(strstr(g.r.json.data, "S3CRET"));

        done(&g);
    }
}


/* Names in an environment that run more than the text says. */
static void
test_env_runs(void **state)
{
    size_t  i;
    char    text[128];
    got_t   g = { 0 };

    static const struct {
        const char  *path, *member, *name;
        bool         runs;
    } runs[] = {
        { EXECD "/command", "command", "PATH", true },
        { EXECD "/command", "command", "PATHS", false },
        { EXECD "/v1/isolated/session/x/run", "code", "PATH", true },
        { EXECD "/v1/isolated/session/x/run", "code", "BASH_ENV", true },
        { EXECD "/v1/isolated/session/x/run", "code", "LD_PRELOAD", true },
        { EXECD "/v1/isolated/session/x/run", "code", "LANG", false },
    };

    (void) state;

    for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        (void) snprintf(text, sizeof(text), "{\"%s\":\"ls\",\"envs\":{\"A\":"
                        "\"1\",\"%s\":\"/x\"}}", runs[i].member,
                        runs[i].name);
        assert_int_equal(read_request(&g, "POST", runs[i].path,
                                      sb_str(text, strlen(text))), SB_OK);
        assert_int_equal(g.r.env_runs, runs[i].runs);
        done(&g);
    }
}


/* What new sandboxes and pools run: a command, whose array it is, whether more
 * runs than is told, the images, and whether others may be meant. */
static void
test_runs(void **state)
{
    got_t   g = { 0 };
    size_t  i, k;

    static const struct {
        const char  *target, *body, *command;
        bool         dark, unread;
        const char  *image, *images[3];
    } runs[] = {
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"env\":{\"PATH\":\"x\"}}",
          "", false, false, "a", { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"rm\","
          "\"x y\"],\"env\":{\"A\":\"x\"}}",
          "[\"rm\",\"x y\"]", false, false, "a", { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"rm\"],"
          "\"env\":{\"LD_PRELOAD\":\"x\"}}",
          "[\"rm\"]", true, false, "a", { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"entrypoint\":\"rm x\"}",
          "\"rm x\"", false, false, "a", { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"entrypoint\":null,"
          "\"snapshotId\":null,\"extensions\":{\"x\":\"y\"}}",
          "", false, false, "a", { NULL } },
        { "/sandboxes", "{\"snapshotId\":\"s\"}", "", false, true, NULL,
          { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"snapshot_id\":\"s\"}",
          "", false, true, "a", { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":\"a\"},\"extensions\":{"
          "\"poolRef\":\"p\"}}", "", false, true, "a", { NULL } },
        { "/sandboxes", "{\"image\":{\"uri\":[\"a\"]}}", "", false, true,
          NULL, { NULL } },

        { "/pools", "{\"name\":\"p\",\"template\":{\"spec\":{"
          "\"initContainers\":[{\"image\":\"i\",\"command\":[\"ls\"]}],"
          "\"containers\":[{\"image\":\"c\",\"command\":[\"sh\",\"-c\"],"
          "\"args\":[\"rm x\"],\"env\":[{\"name\":\"A\"}],"
          "\"livenessProbe\":{\"exec\":{\"command\":[\"true\"]}}},"
          "{\"IMAGE\":\"d\"}]}}}",
          "[[\"ls\"],[\"sh\",\"-c\",\"rm x\"],[\"true\"]]", false, false, NULL,
          { "i", "c", "d" } },
        { "/pools", "{\"template\":{\"containers\":[{\"image\":\"i\","
          "\"args\":[\"-c\",\"rm x\"]}]}}", "[[\"-c\",\"rm x\"]]", true,
          false, NULL, { "i" } },
        { "/pools", "{\"template\":{\"containers\":[{\"image\":\"i\","
          "\"command\":[\"x\"],\"env\":[{\"name\":\"BASH_ENV\"}]}]}}",
          "[[\"x\"]]", true, false, NULL, { "i" } },
        { "/pools", "{\"template\":{\"image\":\"i\",\"command\":\"rm x\"}}",
          "[[]]", true, false, NULL, { "i" } },
        { "/pools", "{\"template\":{\"x\":[[{}]]}}", "", false, true, NULL,
          { NULL } },
        { "/pools", "{\"template\":\"x\"}", "", false, true, NULL, { NULL } },
        { "/pools", "{\"name\":\"p\"}", "", false, false, NULL, { NULL } },
    };

    (void) state;

    for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        assert_int_equal(read_request(&g, "POST", runs[i].target,
                                      sb_str(runs[i].body,
                                             strlen(runs[i].body))), SB_OK);

        if (!sb_eq(g.r.command, sb_str(runs[i].command,
                                       strlen(runs[i].command))))
        {
            fail_msg("%s: %.*s", runs[i].body, (int) g.r.command.len,
                     g.r.command.data);
        }

        assert_int_equal(g.r.argv, runs[i].command[0] != '\0');
        assert_false(g.r.has_command);
        assert_int_equal(g.r.env_runs, runs[i].dark);
        assert_int_equal(g.r.image_unread, runs[i].unread);
        assert_int_equal(g.r.has_image, runs[i].image != NULL);

        if (runs[i].image) {
            assert_true(sb_eq(g.r.image, sb_str(runs[i].image, 1)));
        }

        for (k = 0; k < 3 && runs[i].images[k]; k++) {
            assert_true(k < g.r.nimages);
            assert_true(sb_eq(g.r.images[k], sb_str(runs[i].images[k], 1)));
        }

        assert_int_equal(g.r.nimages, k);
        done(&g);
    }
}


static void
test_facts(void **state)
{
    got_t  g = { 0 };

    (void) state;

    assert_int_equal(read_request(&g, "POST", EXECD "/command", sb_lit(
        "{\"command\":\"a\\u0000b\",\"cwd\":\"/w\",\"background\":true,"
        "\"timeout\":1500}")), SB_OK);
    assert_true(g.r.has_command);
    assert_int_equal(g.r.command.len, 3);
    assert_memory_equal(g.r.command.data, "a\0b", 3);
    assert_true(sb_eq(g.r.cwd, sb_lit("/w")));
    assert_true(g.r.background);
    assert_int_equal(g.r.timeout_ms, 1500);
    assert_int_equal(g.r.files_total, 0);
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/command",
                                  sb_lit("{\"argv\":[\"ls\",\"a b\"]}")), SB_OK);
    assert_true(g.r.has_command);
    assert_true(sb_eq(g.r.command, sb_lit("[\"ls\",\"a b\"]")));
    assert_int_equal(g.r.timeout_ms, -1);
    assert_false(g.r.background);
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/code", sb_lit(
        "{\"context\":{\"language\":\"background-command\"},\"code\":\"x\"}")),
        SB_OK);
    assert_true(g.r.background);
    assert_true(sb_eq(g.r.command, sb_lit("x")));
    done(&g);

    /* before the body is known nothing is refined */
    assert_int_equal(read_request(&g, "POST", EXECD "/code", sb_lit("")),
                     SB_OK);
    assert_string_equal(g.r.op->name, "code.execute");
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/pty",
                                  sb_lit("{\"command\":\"top\"}")), SB_OK);
    assert_false(g.r.has_command);
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/session/x/run", sb_lit(
        "{\"command\":\"x\",\"timeout\":0}")), SB_OK);
    assert_int_equal(g.r.timeout_ms, -1);
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD
        "/v1/isolated/session/x/run", sb_lit("{\"code\":\"x\","
        "\"timeout_seconds\":9223372036854775807}")), SB_OK);
    assert_int_equal(g.r.timeout_ms, -1);
    done(&g);

    assert_int_equal(read_request(&g, "POST", "/sandboxes", sb_lit(
        "{\"metadata\":{\"sandbox_name\":\"old\",\"sandbox_instance_id\":"
        "\"i\"}}")), SB_OK);
    assert_true(sb_eq(g.r.name, sb_lit("old")));
    assert_true(sb_eq(g.r.instance, sb_lit("i")));
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/files/mv", sb_lit(
        "[{\"src\":\"a\",\"dest\":\"/b\"},{\"dest\":\"/$X\"},{},7,"
        "{\"src\":\"~/c\",\"dest\":null}]")), SB_OK);
    assert_int_equal(g.r.nfiles, 3);
    assert_int_equal(g.r.files_total, 3);
    assert_true(sb_eq(g.r.files[0].path, sb_lit("/b")));
    assert_true(sb_eq(g.r.files[0].old_path, sb_lit("a")));
    assert_int_equal(g.r.files[0].flags, SB_PATH_RELATIVE);
    assert_int_equal(g.r.files[0].mode, -1);
    assert_int_equal(g.r.files[1].flags, SB_PATH_EXPANDS);
    assert_int_equal(g.r.files[1].old_path.len, 0);
    assert_true(sb_eq(g.r.files[2].old_path, sb_lit("~/c")));
    assert_true(g.r.files[2].flags & SB_PATH_EMPTY);
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/files/permissions",
        sb_lit("{\"/b\":{\"mode\":1777},\"/a\":{\"mode\":\"x\"}}")), SB_OK);
    assert_int_equal(g.r.nfiles, 2);
    assert_true(sb_eq(g.r.files[0].path, sb_lit("/a")));
    assert_int_equal(g.r.files[0].mode, SB_MODE_ODD);
    assert_int_equal(g.r.files[1].mode, 1777);
    done(&g);

    assert_int_equal(read_request(&g, "DELETE", EXECD
        "/files?path=%2Fa&path=..%2Fb&other=%2Fc", sb_lit("")), SB_OK);
    assert_int_equal(g.r.nfiles, 2);
    assert_true(sb_eq(g.r.files[1].path, sb_lit("../b")));
    assert_int_equal(g.r.files[1].flags, SB_PATH_RELATIVE | SB_PATH_CLIMBS);
    done(&g);

    assert_int_equal(read_request(&g, "GET", EXECD
        "/files/download?path=%2Fa&path=%2Fb", sb_lit("")), SB_OK);
    assert_int_equal(g.r.nfiles, 1);
    assert_true(sb_eq(g.r.files[0].path, sb_lit("/a")));
    done(&g);

    assert_int_equal(read_request(&g, "POST", EXECD "/v1/isolated/session",
        sb_lit("{\"workspace\":{\"path\":\"/w\"},\"binds\":[{\"source\":\"/s\","
        "\"dest\":\"/d\"}],\"extra_writable\":[\"/e\",3]}")), SB_OK);
    assert_int_equal(g.r.nfiles, 4);
    done(&g);
}


static void
test_refused(void **state)
{
    size_t   i;
    got_t    g = { 0 };
    sb_rc_t  rc;

    static const struct {
        const char *method, *target, *body; sb_rc_t rc;
    } bad[] = {
        /* C148 */
        { "POST", EXECD "/command", "{\"command\":\"a\",\"Command\":\"b\"}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"COMMAND\":\"b\"}", SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"command\":\"a\",\"argv\":[\"b\"]}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"bac\xe2\x84\xaaground\":true}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"env\xc5\xbf\":{}}", SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"env\\u017f\":{}}", SB_AMBIGUOUS },
        { "POST", EXECD "/code", "{\"context\":{\"Language\":\"python\"}}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/files/mv", "[{\"src\":\"/a\",\"Dest\":\"/b\"}]",
          SB_AMBIGUOUS },
        { "POST", EXECD "/files/permissions", "{\"/a\":{\"Mode\":777}}",
          SB_AMBIGUOUS },
        { "POST", "/sandboxes", "{\"Image\":{}}", SB_AMBIGUOUS },
        { "POST", "/sandboxes", "{\"Snapshot_ID\":{}}", SB_AMBIGUOUS },
        { "POST", "/sandboxes", "{\"image\":{\"URI\":\"x\"}}", SB_AMBIGUOUS },

        /* C149 */
        { "POST", EXECD "/command", "{\"command\":\"a\",\"command\":\"b\"}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"command\":\"a\",\"c\\u006fmmand\":\"b\""
          "}", SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"envs\":{\"A\":\"1\",\"A\":\"2\"}}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/files/permissions", "{\"/a\":{},\"/a\":{}}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"x\":[[{\"a\":1,\"a\":2}]]}",
          SB_AMBIGUOUS },
        { "POST", "/sandboxes", "{\"snapshotId\":\"a\",\"snapshot_id\":\"a\"}",
          SB_AMBIGUOUS },

        /* C150 */
        { "POST", EXECD "/command", "{\"command\":\"a\"}{\"command\":\"b\"}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"command\":\"a\"} x", SB_AMBIGUOUS },
        { "POST", EXECD "/command", "\xef\xbb\xbf{\"command\":\"a\"}",
          SB_ERROR },
        { "POST", EXECD "/command", "{\"command\":\"a\",}", SB_ERROR },
        { "POST", EXECD "/command", "{\"command\":\"a\"", SB_ERROR },
        { "POST", EXECD "/command", "{'command':'a'}", SB_ERROR },
        { "POST", EGRESS "/credential-vault", "{", SB_ERROR },

        /* C151 */
        { "POST", EXECD "/files/permissions", "{\"/a\\u0000b\":{}}",
          SB_AMBIGUOUS },
        { "POST", EXECD "/files/mv", "[{\"src\":\"/a\\u0000\",\"dest\":\"/b\"}"
          "]", SB_AMBIGUOUS },
        { "POST", EXECD "/command", "{\"command\":\"\\ud800\"}", SB_ERROR },
        { "POST", EXECD "/command", "{\"command\":\"\xff\"}", SB_ERROR },

        { "GET", EXECD "/files/download?path=%zz", "", SB_AMBIGUOUS },
        { "GET", EXECD "/files/download?path=a;b", "", SB_AMBIGUOUS },
        { "GET", EXECD "/files/download?path=%00", "", SB_AMBIGUOUS },
        { "DELETE", EXECD "/files?path=/a&p%ff=b", "", SB_AMBIGUOUS },
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        rc = read_request(&g, bad[i].method, bad[i].target,
                          sb_str(bad[i].body, strlen(bad[i].body)));

        if (rc != bad[i].rc) {
            fail_msg("%s %s %s: %d", bad[i].method, bad[i].target, bad[i].body,
                     rc);
        }

        assert_true(strlen(g.r.reason) > 20);
        assert_int_equal(g.r.reason[strlen(g.r.reason) - 1], '.');
        done(&g);
    }

    /* equal keys in different objects, and keys that are paths, are fine */

    assert_int_equal(read_request(&g, "POST", EXECD "/files/permissions",
        sb_lit("{\"/\xc3\xa9\":{\"mode\":1},\"/MODE\":{\"mode\":2},"
               "\"/mode\":{}}")), SB_OK);
    assert_int_equal(g.r.nfiles, 3);
    done(&g);
}


static void
test_large(void **state)
{
    char      *text;
    size_t     i, n;
    got_t      g = { 0 };
    sb_buf_t   b = { .max = 1 << 24 };

    (void) state;

    /* C152: a long command is cut in the record at a character border */

    n = 400 * 1000;
    text = malloc(n * 3 + 100);
    assert_non_null(text);
    strcpy(text, "{\"command\":\"x");
    i = strlen(text);

    while (i < n * 3) {
        memcpy(text + i, "\xe6\x97\xa5", 3);
        i += 3;
    }

    memcpy(text + i, "\",\"cwd\":\"/w\"}", 13);
    assert_int_equal(read_request(&g, "POST", EXECD "/command",
                                  sb_str(text, i + 13)), SB_OK);
    assert_int_equal(g.r.command.len, i - 12);
    (void) sb_buf_printf(&b, "\"command_bytes\":%zu,\"cwd\":\"/w\"}", i - 12);
    assert_non_null(strstr(sb_buf_cstr(&g.r.json), sb_buf_cstr(&b)));
    assert_true(g.r.json.len > 40 * 1000);
    done(&g);
    free(text);

    /* control characters grow sixfold */

    b.len = 0;
    assert_int_equal(sb_buf_add_str(&b, sb_lit("{\"command\":\"")), SB_OK);

    for (i = 0; i < 100 * 1000; i++) {
        assert_int_equal(sb_buf_add(&b, "\\u0001", 6), SB_OK);
    }

    assert_int_equal(sb_buf_add_str(&b, sb_lit("\"}")), SB_OK);
    assert_int_equal(read_request(&g, "POST", EXECD "/command",
                                  sb_str(b.data, b.len)), SB_OK);
    assert_int_equal(g.r.command.len, 100 * 1000);
    assert_non_null(strstr(sb_buf_cstr(&g.r.json), "\"command_bytes\":100000"));
    done(&g);

    /* many files: the first are kept, all are counted */

    b.len = 0;
    assert_int_equal(sb_buf_add_c(&b, '{'), SB_OK);

    for (i = 0; i < 20 * 1000; i++) {
        assert_int_equal(sb_buf_printf(&b, "%s\"/workspace/a/file/%zu\":{"
                         "\"mode\":644}", i ? "," : "", i), SB_OK);
    }

    assert_int_equal(sb_buf_add_c(&b, '}'), SB_OK);
    assert_int_equal(read_request(&g, "POST", EXECD "/files/permissions",
                                  sb_str(b.data, b.len)), SB_OK);
    assert_int_equal(g.r.files_total, 20 * 1000);
    assert_int_equal(g.r.nfiles, SB_REQUEST_FILES_MAX);
    assert_non_null(strstr(sb_buf_cstr(&g.r.json), ",\"files_total\":20000}"));
    done(&g);

    /* a value that is no text is left out whole */

    b.len = 0;
    assert_int_equal(sb_buf_add_str(&b, sb_lit("{\"entrypoint\":[")), SB_OK);

    for (i = 0; i < 50 * 1000; i++) {
        assert_int_equal(sb_buf_printf(&b, "%s\"arg%zu\"", i ? "," : "", i),
                         SB_OK);
    }

    assert_int_equal(sb_buf_add_str(&b, sb_lit("],\"timeout\":60}")), SB_OK);
    assert_int_equal(read_request(&g, "POST", "/sandboxes",
                                  sb_str(b.data, b.len)), SB_OK);
    assert_memory_equal(sb_buf_cstr(&g.r.json), "{\"entrypoint_bytes\":", 20);
    assert_non_null(strstr(g.r.json.data, ",\"timeout\":60}"));
    done(&g);

    /* unknown members without end */

    b.len = 0;
    assert_int_equal(sb_buf_add_c(&b, '{'), SB_OK);

    for (i = 0; i < 5000; i++) {
        assert_int_equal(sb_buf_printf(&b, "%s\"%0500zu\":1", i ? "," : "", i),
                         SB_OK);
    }

    assert_int_equal(sb_buf_add_c(&b, '}'), SB_OK);
    assert_int_equal(read_request(&g, "POST", EXECD "/command",
                                  sb_str(b.data, b.len)), SB_OK);
    assert_true(g.r.json.len < 64 * 130);
    done(&g);

    /* C146 */

    b.len = 0;

    for (i = 0; i < 200 * 1024; i++) {
        assert_int_equal(sb_buf_add_c(&b, '['), SB_OK);
    }

    assert_int_equal(read_request(&g, "POST", EXECD "/command",
                                  sb_str(b.data, b.len)), SB_LIMIT);
    done(&g);

    sb_buf_free(&b);
}


/* --- answers -------------------------------------------------------------- */

static const sb_answer_facts_t *
answer(sb_answer_t **a, const char *op, unsigned status, sb_str_t text,
    size_t step)
{
    char       *p;
    size_t      i, n;
    sb_rc_t     rc;
    sb_jdoc_t  *d;

    const sb_answer_facts_t  *f;

    *a = sb_answer_new(sb_op_find(sb_str(op, strlen(op))), status);
    assert_non_null(*a);

    for (i = 0; i < text.len; i += n) {
        n = text.len - i < step ? text.len - i : step;
        p = malloc(n);
        assert_non_null(p);
        memcpy(p, text.data + i, n);
        sb_answer_feed(*a, p, n);
        free(p);
    }

    f = sb_answer_finish(*a);
    assert_ptr_equal(f, sb_answer_finish(*a));

    d = sb_jdoc_parse(sb_str(f->json.data, f->json.len), NULL, &rc);

    if (d == NULL) {
        fail_msg("no JSON: %.*s", (int) f->json.len, f->json.data);
    }

    sb_jdoc_free(d);

    return f;
}


static void
test_answers(void **state)
{
    size_t                    i, step;
    sb_answer_t              *a;
    const sb_answer_facts_t  *f;

    static const struct {
        const char *op; unsigned status; const char *text, *json;
    } c[] = {
        { "sandbox.create", 202, "{\"id\":\"7f3c\",\"status\":{\"state\":"
          "\"Running\",\"reason\":\"X\"},\"metadata\":{\"agent_sandbox.name\":"
          "\"n\",\"sandbox_instance_id\":\"i\"},\"expiresAt\":\"T\",\"createdAt"
          "\":\"T\",\"entrypoint\":[\"tail\",\"-f\",{\"id\":\"no\"}]}",
          "{\"expires_at\":\"T\",\"id\":\"7f3c\",\"state\":\"Running\"}" },
        { "sandbox.list", 200, "{\"items\":[{\"id\":\"a\"},{\"id\":\"b\"}],"
          "\"pagination\":{\"page\":1,\"totalItems\":7}}",
          "{\"count\":2,\"total\":7}" },
        { "sandbox.list", 200, "{\"items\":[],\"pagination\":{\"totalItems\":0}"
          "}", "{\"count\":0,\"total\":0}" },
        { "sandbox.renew", 200, "{\"expiresAt\":\"T\"}",
          "{\"expires_at\":\"T\"}" },
        { "endpoint.get", 200, "{\"endpoint\":\"h:1/proxy/2\",\"headers\":{"
          "\"OpenSandbox-Secure-Access\":\"S3CRET\",\"A\":\"S3CRET\"}}",
          "{\"endpoint\":\"h:1/proxy/2\",\"header_names\":[\"A\","
          "\"OpenSandbox-Secure-Access\"]}" },
        { "command.status", 200, "{\"id\":\"c\",\"content\":\"S3CRET\","
          "\"running\":false,\"exit_code\":-3,\"error\":\"\",\"started_at\":"
          "\"T\"}", "{\"error\":\"\",\"exit_code\":-3,\"id\":\"c\",\"running\":"
          "false}" },
        { "pty.create", 201, "{\"session_id\":\"p\"}",
          "{\"session_id\":\"p\"}" },
        { "pty.status", 200, "{\"session_id\":\"p\",\"running\":true,"
          "\"output_offset\":12}",
          "{\"output_offset\":12,\"running\":true,\"session_id\":\"p\"}" },
        { "code.context.create", 200, "{\"id\":\"c\",\"language\":\"python\"}",
          "{\"id\":\"c\",\"language\":\"python\"}" },
        { "file.stat", 200, "{\"/a\":{\"path\":\"/a\",\"size\":1},\"/b\":{}}",
          "{\"count\":2}" },
        { "dir.list", 200, "[{\"path\":\"/a\",\"x\":[1,2]},{}]",
          "{\"count\":2}" },
        { "isolated.dir.list", 200, "[]", "{\"count\":0}" },
        { "file.replace", 200, "{\"/b\":{\"replacedCount\":2},\"/a.b\":{"
          "\"replacedCount\":0}}",
          "{\"replaced\":{\"/a.b\":0,\"/b\":2},\"replaced_count\":2}" },
        { "file.replace", 200, "", "{}" },
        { "egress.policy.get", 200, "{\"status\":\"ok\",\"mode\":\"enforcing\","
          "\"enforcementMode\":\"dns\",\"reason\":\"r\",\"policy\":{\"mode\":"
          "\"no\"}}", "{\"enforcement_mode\":\"dns\",\"mode\":\"enforcing\","
          "\"reason\":\"r\"}" },
        { "vault.patch", 200, "{\"revision\":3,\"credentials\":[{\"name\":"
          "\"c\"}]}", "{\"revision\":3}" },
        { "sandbox.delete", 404, "{\"code\":\"DOCKER::SANDBOX_NOT_FOUND\","
          "\"message\":\"no such\"}",
          "{\"error\":\"no such\",\"error_code\":\"DOCKER::SANDBOX_NOT_FOUND\"}"
        },
        { "sandbox.create", 422, "{\"detail\":[{\"type\":\"x\",\"loc\":[\"body"
          "\"],\"msg\":\"too small\"},{\"msg\":\"second\"}]}",
          "{\"error\":\"too small\"}" },
        { "execd.ping", 401, "{\"error\":\"Unauthorized\"}",
          "{\"error\":\"Unauthorized\"}" },
        { "execd.unknown", 404, "404 page not found", "{\"unparsed\":true}" },
        { "sandbox.renew", 200, "{\"expiresAt\":\"T\"}x",
          "{\"expires_at\":\"T\",\"unparsed\":true}" },
        { "sandbox.get", 200, "[1,\"x\"]", "{}" },
    };

    (void) state;

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        for (step = 1; step < 9; step++) {
            f = answer(&a, c[i].op, c[i].status,
                       sb_str(c[i].text, strlen(c[i].text)),
                       step == 8 ? 10000 : step);

            if (f->json.len != strlen(c[i].json)
                || memcmp(f->json.data, c[i].json, f->json.len))
            {
                fail_msg("%s: %.*s\nnot %s", c[i].op, (int) f->json.len,
                         f->json.data, c[i].json);
            }

            sb_answer_free(a);
        }
    }

    assert_null(sb_answer_new(sb_op_find(sb_lit("sandbox.delete")), 204));

    assert_true(sb_answer_dates(sb_op_find(sb_lit("sandbox.create")), 202));
    assert_true(sb_answer_dates(sb_op_find(sb_lit("sandbox.get")), 200));
    assert_true(sb_answer_dates(sb_op_find(sb_lit("sandbox.renew")), 200));
    assert_false(sb_answer_dates(sb_op_find(sb_lit("sandbox.get")), 404));
    assert_false(sb_answer_dates(sb_op_find(sb_lit("sandbox.list")), 200));
    assert_false(sb_answer_dates(sb_op_find(sb_lit("sandbox.delete")), 204));
}


static void
test_answer_facts(void **state)
{
    size_t                    i;
    sb_buf_t                  b = { .max = 1 << 24 };
    sb_answer_t              *a;
    const sb_answer_facts_t  *f;

    (void) state;

    f = answer(&a, "sandbox.create", 202, sb_lit("{\"metadata\":{"
        "\"sandbox_name\":\"old\",\"agent_sandbox.name\":\"new\","
        "\"sandbox_instance_id\":\"i\"},\"id\":\"s\",\"status\":{\"state\":"
        "\"Pending\"}}"), 3);
    assert_true(sb_eq(f->id, sb_lit("s")));
    assert_true(sb_eq(f->name, sb_lit("new")));
    assert_true(sb_eq(f->instance, sb_lit("i")));
    assert_true(sb_eq(f->state, sb_lit("Pending")));
    assert_int_equal(f->nitems, 0);
    sb_answer_free(a);

    f = answer(&a, "sandbox.get", 200, sb_lit("{\"id\":\"s\",\"status\":{"
        "\"state\":\"Running\"},\"metadata\":{\"agent_sandbox.name\":\"new\","
        "\"sandbox_name\":\"old\"}}"), 3);
    assert_int_equal(f->nitems, 1);
    assert_true(sb_eq(f->items[0].id, sb_lit("s")));
    assert_true(sb_eq(f->items[0].name, sb_lit("new")));
    assert_true(sb_eq(f->items[0].state, sb_lit("Running")));
    assert_int_equal(f->id.len, 0);
    sb_answer_free(a);

    f = answer(&a, "sandbox.renew", 200, sb_lit("{\"expiresAt\":"
        "\"soon\"}"), 99);
    assert_false(f->has_expires);
    sb_answer_free(a);

    f = answer(&a, "sandbox.renew", 200, sb_lit("{\"expiresAt\":"
        "\"1970-01-01T00:01:01.500000Z\"}"), 99);
    assert_true(f->has_expires);
    assert_true(f->expires_us == 61500000);
    sb_answer_free(a);

    f = answer(&a, "sandbox.get", 200, sb_lit("{\"expiresAt\":null}"), 99);
    assert_true(f->has_expires);
    assert_true(f->expires_us == 0);
    sb_answer_free(a);

    f = answer(&a, "command.status", 200, sb_lit("{\"id\":\"c\",\"running\":"
        "true}"), 99);
    assert_true(f->has_running && f->running && !f->has_exit_code);
    assert_true(sb_eq(f->command_id, sb_lit("c")));
    sb_answer_free(a);

    f = answer(&a, "command.status", 200, sb_lit("{\"running\":false,"
        "\"exit_code\":137}"), 99);
    assert_true(f->has_running && !f->running && f->has_exit_code);
    assert_int_equal(f->exit_code, 137);
    sb_answer_free(a);

    f = answer(&a, "file.read", 500, sb_lit("{\"code\":\"RUNTIME_ERROR\","
        "\"message\":\"m\"}"), 99);
    assert_true(sb_eq(f->error_code, sb_lit("RUNTIME_ERROR")));
    assert_true(sb_eq(f->error_message, sb_lit("m")));
    sb_answer_free(a);

    /* the server proxy tells the sandbox's own tokens; nobody else may tell
     * ours */

    f = answer(&a, "file.read", 502, sb_lit("{\"code\":\"X\",\"message\":"
        "\"Could not connect to the backend sandbox endpoint='h:1' headers="
        "{'OpenSandbox-Secure-Access': 's3cret'}: x\"}"), 99);
    assert_null(memmem(f->json.data, f->json.len, "s3cret", 6));
    assert_non_null(memmem(f->json.data, f->json.len, "h:1", 3));
    sb_answer_free(a);

    f = answer(&a, "file.read", 502, sb_lit("{\"message\":\"no sbx_a_0123456789"
        "0123456789012345678901234567890123 here\"}"), 99);
    assert_null(memmem(f->json.data, f->json.len, "sbx_", 4));
    sb_answer_free(a);

    /* items without an id are none; more than 1000 are counted */

    assert_int_equal(sb_buf_add_str(&b, sb_lit("{\"items\":[{\"status\":{}},"
                                               "7")), SB_OK);

    for (i = 0; i < 1500; i++) {
        assert_int_equal(sb_buf_printf(&b, ",{\"id\":\"s%zu\",\"status\":{"
                         "\"state\":\"S%zu\"}}", i, i), SB_OK);
    }

    assert_int_equal(sb_buf_add_str(&b, sb_lit("]}")), SB_OK);
    f = answer(&a, "sandbox.list", 200, sb_str(b.data, b.len), 4096);
    assert_int_equal(f->nitems, 999);
    assert_true(sb_eq(f->items[0].id, sb_lit("s0")));
    assert_true(sb_eq(f->items[998].state, sb_lit("S998")));
    assert_memory_equal(f->json.data, "{\"count\":1502}", f->json.len);
    sb_answer_free(a);

    /* more than 1 MiB */

    for (i = 0; i < 60 * 1000; i++) {
        b.len -= i == 0 ? 2 : 0;
        assert_int_equal(sb_buf_add_str(&b, sb_lit(",{\"id\":\"again and again"
                                                   "\"}")), SB_OK);
    }

    f = answer(&a, "sandbox.list", 200, sb_str(b.data, b.len), 4096);
    assert_int_equal(f->nitems, 999);
    assert_non_null(memmem(f->json.data, f->json.len, "\"unparsed\":true", 15));
    sb_answer_free(a);

    /* names that are too long for the path */

    b.len = 0;
    assert_int_equal(sb_buf_add_str(&b, sb_lit("{\"id\":\"x\"")), SB_OK);

    for (i = 0; i < 50; i++) {
        assert_int_equal(sb_buf_printf(&b, ",\"%0200zu\":{\"id\":\"no\"", i),
                         SB_OK);
    }

    for (i = 0; i < 50; i++) {
        assert_int_equal(sb_buf_add_c(&b, '}'), SB_OK);
    }

    assert_int_equal(sb_buf_add_str(&b, sb_lit(",\"status\":{\"state\":\"y\"}}"
                                               )), SB_OK);
    f = answer(&a, "sandbox.create", 200, sb_str(b.data, b.len), 100);
    assert_true(sb_eq(f->id, sb_lit("x")));
    assert_true(sb_eq(f->state, sb_lit("y")));
    sb_answer_free(a);

    sb_buf_free(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_env_runs),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_answer_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
