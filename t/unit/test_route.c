/* The way of a request target to its row of the table
 * (reference/opensandbox-api.md 8.1 and 10.4). */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "operation_table.h"

#define ID  "7f3c2b1e-9d4a-4c55-8a0e-2f6b1c9d0e11"
#define P   "/sandboxes/" ID "/proxy/"
#define E   P "44772"

#define countof(a)  (sizeof(a) / sizeof((a)[0]))


/* Section 8, row by row: written from the text, not from the code. */

typedef struct {
    const char  *method;
    const char  *path;
    const char  *op;
    const char  *arg;
} spec_t;


static const spec_t  lifecycle[] = {
    { "POST", "/sandboxes", "sandbox.create", "" },
    { "GET", "/sandboxes", "sandbox.list", "" },
    { "GET", "/sandboxes/" ID, "sandbox.get", "" },
    { "DELETE", "/sandboxes/" ID, "sandbox.delete", "" },
    { "PATCH", "/sandboxes/" ID "/metadata", "sandbox.metadata.patch", "" },
    { "POST", "/sandboxes/" ID "/pause", "sandbox.pause", "" },
    { "POST", "/sandboxes/" ID "/resume", "sandbox.resume", "" },
    { "POST", "/sandboxes/" ID "/renew-expiration", "sandbox.renew", "" },
    { "GET", "/sandboxes/" ID "/endpoints/44772", "endpoint.get", "" },
    { "POST", "/sandboxes/" ID "/snapshots", "snapshot.create", "" },
    { "GET", "/snapshots", "snapshot.list", "" },
    { "GET", "/snapshots/s1", "snapshot.get", "s1" },
    { "DELETE", "/snapshots/s1", "snapshot.delete", "s1" },
    { "GET", "/sandboxes/" ID "/diagnostics/logs", "diagnostics.logs", "" },
    { "GET", "/sandboxes/" ID "/diagnostics/events", "diagnostics.events",
      "" },
    { "GET", "/sandboxes/" ID "/diagnostics/inspect", "diagnostics.inspect",
      "" },
    { "GET", "/sandboxes/" ID "/diagnostics/summary", "diagnostics.summary",
      "" },
    { "POST", "/pools", "pool.create", "" },
    { "GET", "/pools", "pool.list", "" },
    { "GET", "/pools/p-1", "pool.get", "p-1" },
    { "PUT", "/pools/p-1", "pool.update", "p-1" },
    { "DELETE", "/pools/p-1", "pool.delete", "p-1" },
    { "POST", "/metrics/events", "client.metrics", "" },
    { "GET", "/sandboxes/" ID "/networkpolicy", "sandbox.networkpolicy.get",
      "" },
    { "PUT", "/sandboxes/" ID "/networkpolicy", "sandbox.networkpolicy.set",
      "" },
    { "PATCH", "/sandboxes/" ID "/networkpolicy",
      "sandbox.networkpolicy.patch", "" },
    { "DELETE", "/sandboxes/" ID "/networkpolicy",
      "sandbox.networkpolicy.delete", "" },
    { "GET", "/templates", "template.list", "" },
    { "POST", "/templates", "template.create", "" },
    { "GET", "/templates/t", "template.get", "t" },
    { "PUT", "/templates/t", "template.update", "t" },
    { "PATCH", "/templates/t", "template.update", "t" },
    { "DELETE", "/templates/t", "template.delete", "t" },
    { "GET", "/version", "server.version", "" },
    { "GET", "/nothing/like/this", "lifecycle.unknown", "" },
};

/* only at the root (1.1) */
static const spec_t  root[] = {
    { "GET", "/health", "server.health", "" },
    { "GET", "/docs", "server.docs", "" },
    { "GET", "/docs/oauth2-redirect", "server.docs", "" },
    { "GET", "/redoc", "server.docs", "" },
    { "GET", "/openapi.json", "server.docs", "" },
};

#define X  "/v1/isolated/session/x1"

static const spec_t  execd[] = {
    { "GET", "/ping", "execd.ping", "" },
    { "POST", "/command", "command.execute", "" },
    { "DELETE", "/command", "command.interrupt", "" },
    { "GET", "/command/status/c1", "command.status", "c1" },
    { "GET", "/command/status/logs", "command.status", "logs" },
    { "GET", "/command/c1/logs", "command.logs", "c1" },
    { "POST", "/code", "code.execute", "" },
    { "DELETE", "/code", "code.interrupt", "" },
    { "POST", "/code/context", "code.context.create", "" },
    { "GET", "/code/contexts", "code.context.list", "" },
    { "GET", "/code/contexts/x1", "code.context.get", "x1" },
    { "DELETE", "/code/contexts", "code.context.delete_all", "" },
    { "DELETE", "/code/contexts/x1", "code.context.delete", "x1" },
    { "POST", "/session", "session.create", "" },
    { "POST", "/session/x1/run", "session.run", "x1" },
    { "DELETE", "/session/x1", "session.delete", "x1" },
    { "POST", "/files/upload", "file.write", "" },
    { "GET", "/files/download", "file.read", "" },
    { "GET", "/files/info", "file.stat", "" },
    { "DELETE", "/files", "file.delete", "" },
    { "POST", "/files/mv", "file.move", "" },
    { "POST", "/files/permissions", "file.chmod", "" },
    { "GET", "/files/search", "file.search", "" },
    { "POST", "/files/replace", "file.replace", "" },
    { "GET", "/directories/list", "dir.list", "" },
    { "POST", "/directories", "dir.create", "" },
    { "DELETE", "/directories", "dir.delete", "" },
    { "GET", "/metrics", "metrics.get", "" },
    { "GET", "/metrics/watch", "metrics.watch", "" },
    { "POST", "/pty", "pty.create", "" },
    { "GET", "/pty/p1", "pty.status", "p1" },
    { "DELETE", "/pty/p1", "pty.delete", "p1" },
    { "GET", "/pty/p1/ws", "pty.open", "p1" },
    { "GET", "/ready", "execd.ready", "" },
    { "POST", "/internal/init", "execd.init", "" },
    { "POST", "/v1/isolated/session", "isolated.create", "" },
    { "GET", "/v1/isolated/sessions", "isolated.list", "" },
    { "GET", X, "isolated.get", "x1" },
    { "DELETE", X, "isolated.delete", "x1" },
    { "POST", X "/run", "isolated.run", "x1" },
    { "GET", X "/diff", "isolated.diff", "x1" },
    { "POST", X "/commit", "isolated.commit", "x1" },
    { "GET", "/v1/isolated/capabilities", "isolated.capabilities", "" },
    { "POST", X "/files/upload", "isolated.file.write", "x1" },
    { "GET", X "/files/download", "isolated.file.read", "x1" },
    { "GET", X "/files/info", "isolated.file.stat", "x1" },
    { "DELETE", X "/files", "isolated.file.delete", "x1" },
    { "POST", X "/files/mv", "isolated.file.move", "x1" },
    { "POST", X "/files/permissions", "isolated.file.chmod", "x1" },
    { "GET", X "/files/search", "isolated.file.search", "x1" },
    { "POST", X "/files/replace", "isolated.file.replace", "x1" },
    { "GET", X "/directories/list", "isolated.dir.list", "x1" },
    { "POST", X "/directories", "isolated.dir.create", "x1" },
    { "DELETE", X "/directories", "isolated.dir.delete", "x1" },
    { "GET", "/command", "execd.unknown", "" },
    { "POST", "/mcp", "execd.unknown", "" },
    { "GET", "/", "execd.unknown", "" },
};

static const spec_t  egress[] = {
    { "GET", "/policy", "egress.policy.get", "" },
    { "POST", "/policy", "egress.policy.set", "" },
    { "PUT", "/policy", "egress.policy.set", "" },
    { "PATCH", "/policy", "egress.policy.patch", "" },
    { "DELETE", "/policy", "egress.policy.delete_rules", "" },
    { "GET", "/healthz", "egress.health", "" },
    { "POST", "/credential-vault", "vault.create", "" },
    { "PATCH", "/credential-vault", "vault.patch", "" },
    { "DELETE", "/credential-vault", "vault.delete", "" },
    { "GET", "/credential-vault", "vault.get", "" },
    { "GET", "/credential-vault/credentials", "vault.get", "" },
    { "GET", "/credential-vault/credentials/k", "vault.get", "k" },
    { "GET", "/credential-vault/bindings", "vault.get", "" },
    { "GET", "/credential-vault/bindings/b", "vault.get", "b" },
    { "POST", "/credential-vault/_active", "egress.unknown", "" },
    { "GET", "/nothing", "egress.unknown", "" },
};


/* Routes with a buffer of exactly the stated size, so that the sanitizer sees
 * a byte too many.  The buffer lives until the next call. */
static sb_rc_t
route(sb_route_t *r, const char *method, const char *target, bool upgrade)
{
    static char  *buf;
    size_t        size;

    size = 2 * strlen(target) + 64;
    free(buf);
    buf = malloc(size);
    assert_non_null(buf);

    return sb_route(r, sb_str(method, strlen(method)),
                    sb_str(target, strlen(target)), upgrade, buf, size);
}


static void
expect(const char *method, const char *target, const char *op,
    const char *sandbox, uint32_t port, const char *path)
{
    sb_rc_t     rc;
    sb_route_t  r;

    rc = route(&r, method, target, false);

    if (rc != SB_OK || strcmp(r.op->name, op) != 0
        || !sb_eq(r.sandbox, sb_str(sandbox, strlen(sandbox)))
        || r.port != port || !sb_eq(r.path, sb_str(path, strlen(path))))
    {
        fail_msg("%s %s: rc %d, %s, sandbox \"%.*s\", port %u, path \"%.*s\","
                 " %s", method, target, rc, r.op->name, (int) r.sandbox.len,
                 r.sandbox.data, r.port, (int) r.path.len, r.path.data,
                 r.reason ? r.reason : "no reason");
    }
}


static void
refused(const char *method, const char *target)
{
    sb_rc_t     rc;
    sb_route_t  r;

    rc = route(&r, method, target, false);

    if (rc != SB_AMBIGUOUS || r.reason == NULL || r.op == NULL) {
        fail_msg("%s %s: rc %d, %s", method, target, rc, r.op->name);
    }
}


/* The lists above and the table name the same operations. */
static void
test_spec_complete(void **state)
{
    static const struct {
        const spec_t  *rows;
        size_t         n;
    } lists[] = {
        { lifecycle, countof(lifecycle) },
        { root, countof(root) },
        { execd, countof(execd) },
        { egress, countof(egress) },
    };

    bool            seen[SB_OP_COUNT];
    const sb_op_t  *op;

    (void) state;

    memset(seen, 0, sizeof(seen));

    for (size_t i = 0; i < countof(lists); i++) {
        for (size_t k = 0; k < lists[i].n; k++) {
            op = sb_op_find(sb_str(lists[i].rows[k].op,
                                   strlen(lists[i].rows[k].op)));
            assert_non_null(op);
            seen[sb_op_index(op)] = true;
        }
    }

    for (size_t i = 0; i < SB_OP_COUNT; i++) {
        if (!seen[i] && i != SB_OP_EGRESS_POLICY_RESET
            && i != SB_OP_PROXY_HTTP && i != SB_OP_PROXY_HTTP_READ
            && i != SB_OP_PROXY_WS)
        {
            fail_msg("%s is in no list", sb_op_at(i)->name);
        }
    }
}


static void
check_spec(const spec_t *spec, const char *target, sb_surface_e surface,
    bool versioned, uint32_t port, const char *path)
{
    sb_rc_t     rc;
    sb_route_t  r;

    rc = route(&r, spec->method, target, false);

    if (rc != SB_OK || strcmp(r.op->name, spec->op) != 0) {
        fail_msg("%s %s: rc %d, %s, not %s", spec->method, target, rc,
                 r.op->name, spec->op);
    }

    assert_int_equal(r.surface, surface);
    assert_int_equal(r.versioned, versioned);
    assert_int_equal(r.proxied, surface != SB_SURFACE_LIFECYCLE);
    assert_true(sb_eq(r.arg, sb_str(spec->arg, strlen(spec->arg))));
    assert_true(sb_eq(r.path, sb_str(path, strlen(path))));
    assert_null(r.reason);

    if (strstr(target, ID) != NULL) {
        assert_true(sb_eq(r.sandbox, sb_lit(ID)));

    } else {
        assert_int_equal(r.sandbox.len, 0);
    }

    if (strstr(spec->path, "/endpoints/") != NULL) {
        port = 44772;
    }

    assert_int_equal(r.port, port);
}


/* every row of 8.2, bare and below /v1, with and without a query */
static void
test_lifecycle(void **state)
{
    char    target[512];
    spec_t  spec;

    (void) state;

    for (size_t i = 0; i < countof(lifecycle); i++) {
        spec = lifecycle[i];

        check_spec(&spec, spec.path, SB_SURFACE_LIFECYCLE, false, 0,
                   spec.path);

        snprintf(target, sizeof(target), "/v1%s", spec.path);
        check_spec(&spec, target, SB_SURFACE_LIFECYCLE, true, 0, spec.path);

        snprintf(target, sizeof(target), "/v1%s?a=%%2F..&b=//", spec.path);
        check_spec(&spec, target, SB_SURFACE_LIFECYCLE, true, 0, spec.path);

        /* one version is enough, and a "/" too many is redirected upstream */

        snprintf(target, sizeof(target), "/v1/v1%s", spec.path);
        expect(spec.method, target, "lifecycle.unknown", "", 0, target + 3);

        snprintf(target, sizeof(target), "%s/", spec.path);
        expect(spec.method, target, "lifecycle.unknown",
               strstr(target, ID) ? ID : "", 0, target);
    }

    for (size_t i = 0; i < countof(root); i++) {
        spec = root[i];

        check_spec(&spec, spec.path, SB_SURFACE_LIFECYCLE, false, 0,
                   spec.path);

        snprintf(target, sizeof(target), "/v1%s", spec.path);
        expect(spec.method, target, "lifecycle.unknown", "", 0, spec.path);
    }
}


/* every row of 8.3, 8.4, 8.5 in every form of the carrier */
static void
test_proxied(void **state)
{
    static const char *const  carriers[] = {
        "/sandboxes/" ID "/proxy/%u%s",
        "/v1/sandboxes/" ID "/proxy/%u%s",
        "/sandboxes/" ID "/proxy/00%u%s",
        "/v1/sandboxes/" ID "/proxy/%010u%s",
        "/%%73andboxes/" ID "/pro%%78y/%u%s",
        "/sandboxes/" ID "/proxy/44772/proxy/%u%s",
        "/v1/sandboxes/" ID "/proxy/%%34%%34772/%%70roxy/0%u%s",
        "/sandboxes/" ID "/proxy/44772/proxy/44772/proxy/44772/proxy/44772"
        "/proxy/%u%s",
    };

    static const struct {
        const spec_t  *rows;
        size_t         n;
        uint32_t       port;
        sb_surface_e   surface;
    } lists[] = {
        { execd, countof(execd), 44772, SB_SURFACE_EXECD },
        { egress, countof(egress), 18080, SB_SURFACE_EGRESS },
    };

    char           target[512];
    const spec_t  *spec;

    (void) state;

    for (size_t c = 0; c < countof(carriers); c++) {
        for (size_t i = 0; i < countof(lists); i++) {
            for (size_t k = 0; k < lists[i].n; k++) {
                spec = &lists[i].rows[k];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(target, sizeof(target), carriers[c], lists[i].port,
                         spec->path);
#pragma GCC diagnostic pop

                check_spec(spec, target, lists[i].surface,
                           strncmp(target, "/v1", 3) == 0, lists[i].port,
                           spec->path);

                /* the first letter, escaped */

                if (spec->path[1] != '\0') {
                    snprintf(target, sizeof(target),
                             "/sandboxes/" ID "/proxy/%u/%%%02x%s?x=1",
                             lists[i].port, (unsigned) spec->path[1],
                             spec->path + 2);
                    check_spec(spec, target, lists[i].surface, false,
                               lists[i].port, spec->path);

                    if (strncmp(spec->op, "vault.get", 9) != 0) {
                        snprintf(target, sizeof(target), "%s%u%s/", P,
                                 lists[i].port, spec->path);
                        expect(spec->method, target,
                               lists[i].port == 44772 ? "execd.unknown"
                                                      : "egress.unknown",
                               ID, lists[i].port,
                               strstr(target, "/proxy/") + 12);
                    }
                }

                /* the same path on a user port is the user's own */

                snprintf(target, sizeof(target), "%s8080%s", P, spec->path);
                expect(spec->method, target, "proxy.http", ID, 8080,
                       spec->path);
            }
        }
    }
}


static void
test_methods(void **state)
{
    static const char *const  strange[] = {
        "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "Get", "GE",
        "GETT", "",
    };

    sb_route_t  r;

    (void) state;

    for (size_t i = 0; i < countof(strange); i++) {
        expect(strange[i], "/sandboxes", "lifecycle.unknown", "", 0,
               "/sandboxes");
        expect(strange[i], "/v1/sandboxes/" ID, "lifecycle.unknown", ID, 0,
               "/sandboxes/" ID);
        expect(strange[i], E "/ping", "execd.unknown", ID, 44772, "/ping");
        expect(strange[i], P "18080/policy", "egress.unknown", ID, 18080,
               "/policy");
        expect(strange[i], P "8080/x", "proxy.http", ID, 8080, "/x");
    }

    /* known paths with a method of others: never the known operation */

    expect("POST", E "/ping", "execd.unknown", ID, 44772, "/ping");
    expect("PUT", E "/files/upload", "execd.unknown", ID, 44772,
           "/files/upload");
    expect("GET", E "/directories", "execd.unknown", ID, 44772,
           "/directories");
    expect("PUT", "/sandboxes/" ID, "lifecycle.unknown", ID, 0,
           "/sandboxes/" ID);
    expect("POST", "/health", "lifecycle.unknown", "", 0, "/health");

    /* user ports: reading is GET and HEAD */

    assert_int_equal(route(&r, "GET", P "8080/x", false), SB_OK);
    assert_int_equal(sb_op_index(r.op), SB_OP_PROXY_HTTP_READ);
    assert_int_equal(route(&r, "HEAD", P "8080/x", false), SB_OK);
    assert_int_equal(sb_op_index(r.op), SB_OP_PROXY_HTTP_READ);
    assert_int_equal(route(&r, "POST", P "8080/x", false), SB_OK);
    assert_int_equal(sb_op_index(r.op), SB_OP_PROXY_HTTP);
    assert_int_equal(route(&r, "OPTIONS", P "8080/x", false), SB_OK);
    assert_int_equal(sb_op_index(r.op), SB_OP_PROXY_HTTP);
}


static void
test_upgrade(void **state)
{
    static const struct {
        const char  *method;
        const char  *target;
        const char  *op;
    } cases[] = {
        { "GET", E "/pty/p1/ws", "pty.open" },
        { "GET", E "/pty/p1/ws?pty=1&since=0&takeover=1", "pty.open" },
        { "GET", P "8080/socket", "proxy.ws" },
        { "GET", P "8080", "proxy.ws" },
        { "GET", "/v1" P "8080/a//b", "proxy.ws" },
        { "GET", E "/proxy/8080/socket", "proxy.ws" },
        { "POST", P "8080/socket", "proxy.http" },
        { "GET", E "/ping", "execd.ping" },
        { "POST", E "/command", "command.execute" },
        { "GET", E "/pty/p1", "pty.status" },
        { "GET", E "/nothing", "execd.unknown" },
        { "GET", P "18080/policy", "egress.policy.get" },
        { "GET", "/sandboxes", "sandbox.list" },
        { "GET", "/chat", "lifecycle.unknown" },
    };

    sb_route_t  r;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        assert_int_equal(route(&r, cases[i].method, cases[i].target, true),
                         SB_OK);
        assert_string_equal(r.op->name, cases[i].op);
    }

    /* without one execd itself refuses it */

    expect("GET", E "/pty/p1/ws", "pty.open", ID, 44772, "/pty/p1/ws");
    refused("GET", P "8080/../44772/pty/p1/ws");
}


/* A port may be upstream itself, whose server proxy asks nobody for a key. */
static void
test_second_carrier(void **state)
{
    static const char *const  cases[] = {
        P "8080/sandboxes/b/proxy/44772/command",
        P "8080/v1/sandboxes/b/proxy/44772",
        P "8080/%73andboxes/b/proxy/1",
        P "8080/%2573andboxes/b%252Fproxy/1",
        P "8080//sandboxes/b/proxy/44772/command",
        P "8080/%2Fsandboxes/b/proxy/44772/command",
        E "/proxy/8080/sandboxes/b/proxy/44772/command",
    };

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        refused("POST", cases[i]);
        refused("GET", cases[i]);
    }
}


/* C007, C008, C011: what a user port sees is the user's own affair */
static void
test_user_ports(void **state)
{
    static const struct {
        const char  *target;
        const char  *rest;
        const char  *path;
        const char  *query;
    } cases[] = {
        { P "8080", "", "/", "" },
        { P "8080/", "/", "/", "" },
        { P "8080?x=1", "?x=1", "/", "x=1" },
        { P "8080/?x=1", "/?x=1", "/", "x=1" },
        { "/v1" P "8080", "", "/", "" },
        { "/v1" P "8080?x=1", "?x=1", "/", "x=1" },
        { "/%73andboxes/" ID "/proxy/80%380/a", "/a", "/a", "" },
        { P "08080/a", "/a", "/a", "" },
        { P "8080/@org/pkg/~a,b;c=1/%E4%BD%A0.js?",
          "/@org/pkg/~a,b;c=1/%E4%BD%A0.js?",
          "/@org/pkg/~a,b;c=1/\xe4\xbd\xa0.js", "" },
        { P "8080/fetch/https://host/x?u=http://h/..",
          "/fetch/https://host/x?u=http://h/..",
          "/fetch/https://host/x", "u=http://h/.." },
        { P "8080//a", "//a", "//a", "" },
        { P "8080/./a/.", "/./a/.", "/./a/.", "" },
        { P "8080/js/a..b.js", "/js/a..b.js", "/js/a..b.js", "" },
        { P "8080/.../..a/a..", "/.../..a/a..", "/.../..a/a..", "" },
        { P "8080/a%2Fb%3Fc%23d%25e", "/a%2Fb%3Fc%23d%25e", "/a/b?c#d%e",
          "" },
        { P "8080/%", "/%", "/%", "" },
        { P "8080/%zz%4", "/%zz%4", "/%zz%4", "" },
        { P "8080/%ff%c0%ae", "/%ff%c0%ae", "/\xff\xc0\xae", "" },
        { P "8080/a\\b#c", "/a\\b#c", "/a\\b#c", "" },
        { P "8080/proxy/44772/command", "/proxy/44772/command",
          "/proxy/44772/command", "" },
        { P "8080/?a=b?c#d", "/?a=b?c#d", "/", "a=b?c#d" },
        { P "8080/%252525%2e%2e", "/%252525%2e%2e", "/%2525..", "" },
        { P "8080/sandboxes/a/proxy", "/sandboxes/a/proxy",
          "/sandboxes/a/proxy", "" },
        { P "8080/a/sandboxes/b/proxy/1", "/a/sandboxes/b/proxy/1",
          "/a/sandboxes/b/proxy/1", "" },
    };

    sb_rc_t     rc;
    sb_route_t  r;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        rc = route(&r, "POST", cases[i].target, false);

        if (rc != SB_OK) {
            fail_msg("%s: %d, %s", cases[i].target, rc, r.reason);
        }

        assert_string_equal(r.op->name, "proxy.http");
        assert_true(sb_eq(r.sandbox, sb_lit(ID)));
        assert_int_equal(r.port, 8080);
        assert_int_equal(r.carrier_port, 8080);
        assert_string_equal(cases[i].target + r.rest, cases[i].rest);

        if (!sb_eq(r.path, sb_str(cases[i].path, strlen(cases[i].path)))) {
            fail_msg("%s: path %.*s", cases[i].target, (int) r.path.len,
                     r.path.data);
        }

        assert_true(sb_eq(r.query, sb_str(cases[i].query,
                                          strlen(cases[i].query))));
    }

    /* NUL and control characters, escaped */

    assert_int_equal(route(&r, "GET", P "8080/a%00b%0a", false), SB_OK);
    assert_true(sb_eq(r.path, sb_lit("/a\0b\n")));

    /* what goes to a learnt address begins behind the first carrier */

    assert_int_equal(route(&r, "GET", "/v1" E "/proxy/8080/x", false), SB_OK);
    assert_string_equal("/v1" E "/proxy/8080/x" + r.rest, "/proxy/8080/x");
    assert_int_equal(r.carrier_port, 44772);
    assert_int_equal(r.port, 8080);
    assert_int_equal(r.nested, 1);

    assert_int_equal(route(&r, "GET", "/sandboxes/%61/proxy/%31/x", false),
                     SB_OK);
    assert_string_equal("/sandboxes/%61/proxy/%31/x" + r.rest, "/x");
    assert_true(sb_eq(r.sandbox, sb_lit("a")));
    assert_int_equal(r.port, 1);
}


/* 10.4, C010, C011, C080, C143: one meaning or none */
static void
test_hostile(void **state)
{
    static const char *const  bad[] = {
        /* not a path */
        "", "*", "sandboxes", "http://h/v1/sandboxes", "?/sandboxes",
        "http://h" E "/files/upload",

        /* dots */
        "/..", "/.", "/sandboxes/..", "/sandboxes/.", "/sandboxes/../x",
        "/v1/../v1/sandboxes", "/./sandboxes", "/%2e%2e/sandboxes",
        "/sandboxes/" ID "/%2e%2e", "/.%2e/x",
        P "8080/../44772/files/upload", P "8080/%2e%2e/44772/files/upload",
        P "8080/.%2e/44772/files/upload", P "8080/%2E./44772/files/upload",
        P "8080/..", P "8080/a/..", P "8080/..%2f44772/command",
        P "8080/%2e%2e%2f44772/command", P "8080/a%2f../b",
        P "8080/%252e%252e/44772/command", P "8080/%252e./44772/command",
        P "8080/%252e%252e%252f44772", P "8080/x%252f..%252fy",
        E "/./files/upload", E "/../44772/command", E "/files/../command",
        E "/..", E "/.", E "/%2e/command", E "/proxy/8080/../44772/command",
        P "../44772/command", "/sandboxes/../proxy/44772/command",
        "/sandboxes/./proxy/8080/x", "/sandboxes/%2e%2e/proxy/8080/x",

        /* slashes */
        "//sandboxes", "/v1//sandboxes", "//v1//sandboxes//" ID
        "//proxy//44772//files//upload", "/sandboxes//" ID,
        "/sandboxes/" ID "//proxy/44772/command",
        "/sandboxes//proxy/44772/command", E "//files/upload", E "//",
        E "/files//upload", P "18080//policy", "//" ID "/proxy/8080/x",
        "/sandboxes/" ID "//",

        /* encoded separators */
        E "%2Fcommand", E "%2fcommand", P "8080%2Fx", P "8080%2F",
        "/sandboxes/" ID "%2Fproxy/44772/command",
        "/sandboxes%2F" ID "/proxy/44772/command",
        "/sandboxes/" ID "/proxy%2F44772/command",
        "%2Fsandboxes/" ID "/proxy/44772/command",
        "/v1%2Fsandboxes/" ID "/proxy/8080/x", "/sandboxes%2F" ID,
        "/sandboxes/a%2fb", E "/files%2Fupload", E "/proxy%2F44772/command",
        E "/proxy/44772%2Fcommand", E "/proxy/8080%2Fx",

        /* encoded more than once */
        E "/%2563ommand", E "/%2570ing", E "/proxy%252F44772/ping",
        E "/%2525", "/%2573andboxes", "/sandboxes/%2541",
        P "%2534%2534772/command", "/sandboxes/a%25b/proxy/8080/x",

        /* broken escapes */
        "/sandboxes/%", "/sandboxes/%4", "/sandboxes/%zz", E "/%",
        E "/%6", E "/command%", "/sandboxes/%g1/proxy/8080/x",

        /* hidden query, fragment */
        E "/files%3Fpath=/a", E "/command%3f", E "%3Fa", P "8080%3Fa",
        "/sandboxes%3Fstate=x", E "/command#a", E "/command%23a",
        E "/command?a#b", "/sandboxes#", "/sandboxes?a#b",
        "/sandboxes/a#b/proxy/8080/x", P "8080#/x", P "8080%23",

        /* parameters, backslashes */
        E "/files/upload;a=b", E ";a/command", E "/command%3Ba",
        "/sandboxes;a=b", "/sandboxes/a;b/proxy/8080/x", P "8080;a/x",
        E "\\command", E "/files\\upload", E "/files%5Cupload",
        "/sandboxes\\" ID, P "8080\\..\\44772",

        /* controls, raw and encoded */
        E "/command%00", E "/%0acommand", "/sandboxes/%00", "/sandboxes%0d%0a",
        "/sandboxes/%7f", "/sandboxes/a b", "/sandboxes/a\tb",
        "/sandboxes/a\r\nX: y", "/sandboxes?a=b c", "/sandboxes\x7f",
        P "8080/a b", P "8080/a\nb", P "8080/\x01", P "8080/?a\rb",
        "/sandboxes/%01/proxy/8080/x",

        /* not UTF-8 */
        "/sandboxes/%c0%ae%c0%ae", "/sandboxes/\xff", "/sandboxes/%ed%a0%80",
        E "/%c0%af", E "/command\x80", "/sandboxes/%ff/proxy/8080/x",

        /* ports that are none: upstream's parser takes some of them */
        P "44772.0/command", P "+44772/command", P "-1/x", P "44772x/command",
        P "0/x", P "00/x", P "65536/x", P "99999/x", P "4294967297/x",
        P "00000044772/command", P "18446744073709596388/x", P "x/y",
        P "1x/", P "0x50/x", P "4_4772/command", P "%2044772/command",
        P "\xd9\xa4\xd9\xa4\xd9\xa7\xd9\xa7\xd9\xa2/command", P "/x", P "",
        P "8080.", P "44772,18080/x", P "8080:44772/x", P "8e3/x",
        E "/proxy/x/command", E "/proxy//command", E "/proxy/",
        E "/proxy/http/x", E "/proxy/0/x", E "/proxy/65536/x",
        E "/proxy/44772.0/command", E "/proxy/+44772/command",

        /* nesting has an end */
        E "/proxy/44772/proxy/44772/proxy/44772/proxy/44772/proxy/44772/ping",
        E "/proxy/44772/proxy/44772/proxy/44772/proxy/44772/proxy/8080/x",
    };

    static const char *const  bad_endpoints[] = {
        "0", "65536", "x", "44772.0", "+44772", "-1", "4_4", "00000044772",
    };

    char  target[256];

    (void) state;

    for (size_t i = 0; i < countof(bad); i++) {
        refused("GET", bad[i]);
        refused("POST", bad[i]);
    }

    for (size_t i = 0; i < countof(bad_endpoints); i++) {
        snprintf(target, sizeof(target), "/v1/sandboxes/" ID "/endpoints/%s",
                 bad_endpoints[i]);
        refused("GET", target);
    }
}


/* Odd but clear: one meaning, and the right one. */
static void
test_odd(void **state)
{
    static const struct {
        const char  *method;
        const char  *target;
        const char  *op;
        const char  *sandbox;
        uint32_t     port;
        const char  *path;
    } cases[] = {
        /* 10.4 */
        { "POST", "/%73andboxes/" ID "/proxy/44772/%63ommand",
          "command.execute", ID, 44772, "/command" },
        { "POST", P "0044772/command", "command.execute", ID, 44772,
          "/command" },
        { "POST", E "/proxy/44772/command", "command.execute", ID, 44772,
          "/command" },
        { "PATCH", E "/proxy/18080/policy", "egress.policy.patch", ID, 18080,
          "/policy" },
        { "DELETE", E "/files?path=%2Fa&path=%2Fb+c", "file.delete", ID,
          44772, "/files" },
        { "GET", E "/v1/isolated/capabilities", "isolated.capabilities", ID,
          44772, "/v1/isolated/capabilities" },
        { "GET", E "/v1/isolated/runs/r1", "execd.unknown", ID, 44772,
          "/v1/isolated/runs/r1" },

        /* only execd unwraps */
        { "GET", P "18080/proxy/44772/ping", "egress.unknown", ID, 18080,
          "/proxy/44772/ping" },
        { "GET", E "/proxy/18080/proxy/44772/ping", "egress.unknown", ID,
          18080, "/proxy/44772/ping" },
        { "GET", E "/proxy", "execd.unknown", ID, 44772, "/proxy" },
        { "GET", E "/proxyx/8080", "execd.unknown", ID, 44772,
          "/proxyx/8080" },
        { "GET", E "/proxy/44772", "execd.unknown", ID, 44772, "/" },
        { "GET", E, "execd.unknown", ID, 44772, "/" },
        { "GET", E "/", "execd.unknown", ID, 44772, "/" },
        { "GET", E "?path=/a", "execd.unknown", ID, 44772, "/" },

        /* execd's paths are at the root and in one case */
        { "GET", E "/v1/ping", "execd.unknown", ID, 44772, "/v1/ping" },
        { "POST", E "/Command", "execd.unknown", ID, 44772, "/Command" },
        { "POST", E "/command/", "execd.unknown", ID, 44772, "/command/" },
        { "POST", E "/commands", "execd.unknown", ID, 44772, "/commands" },
        { "POST", E "/comman", "execd.unknown", ID, 44772, "/comman" },
        { "GET", E "/command/a/b/logs", "execd.unknown", ID, 44772,
          "/command/a/b/logs" },
        { "GET", E "/code/contexts/", "execd.unknown", ID, 44772,
          "/code/contexts/" },
        { "GET", E "/pty//", NULL, NULL, 0, NULL },

        /* dots in names */
        { "GET", "/sandboxes/a..b", "sandbox.get", "a..b", 0,
          "/sandboxes/a..b" },
        { "GET", "/pools/...", "pool.get", "", 0, "/pools/..." },
        { "POST", "/sandboxes/..a/proxy/44772/command", "command.execute",
          "..a", 44772, "/command" },

        /* ids are any segment */
        { "GET", "/sandboxes/%E4%BD%A0%20x", "sandbox.get",
          "\xe4\xbd\xa0 x", 0, "/sandboxes/\xe4\xbd\xa0 x" },
        { "GET", "/sandboxes/proxy/proxy/8080/x", "proxy.http", "proxy", 8080,
          "/x" },
        { "GET", "/sandboxes/fsb-1+2@3,4:5~$&'()*!=", "sandbox.get",
          "fsb-1+2@3,4:5~$&'()*!=", 0,
          "/sandboxes/fsb-1+2@3,4:5~$&'()*!=" },

        /* C143: what only looks like a carrier */
        { "GET", "/x/sandboxes/1/proxy/44772/ping", "lifecycle.unknown", "",
          0, "/x/sandboxes/1/proxy/44772/ping" },
        { "GET", "/proxy/sandboxes/a/proxy/1/", "lifecycle.unknown", "", 0,
          "/proxy/sandboxes/a/proxy/1/" },
        { "GET", "/V1/sandboxes/a/proxy/1/", "lifecycle.unknown", "", 0,
          "/V1/sandboxes/a/proxy/1/" },
        { "GET", "/v1/Sandboxes/a/proxy/1/", "lifecycle.unknown", "", 0,
          "/Sandboxes/a/proxy/1/" },
        { "GET", "/v2/sandboxes/a/proxy/1/", "lifecycle.unknown", "", 0,
          "/v2/sandboxes/a/proxy/1/" },
        { "GET", "/v1/v1/sandboxes/a/proxy/1/", "lifecycle.unknown", "", 0,
          "/v1/sandboxes/a/proxy/1/" },
        { "GET", "/sandboxes/a/Proxy/1/", "lifecycle.unknown", "a", 0,
          "/sandboxes/a/Proxy/1/" },
        { "GET", "/sandboxes/a/proxy", "lifecycle.unknown", "a", 0,
          "/sandboxes/a/proxy" },
        { "GET", "/sandboxes/a/b/proxy/1/", "lifecycle.unknown", "a", 0,
          "/sandboxes/a/b/proxy/1/" },
        { "GET", "/healthXYZ", "lifecycle.unknown", "", 0, "/healthXYZ" },
        { "GET", "/docsx", "lifecycle.unknown", "", 0, "/docsx" },

        { "GET", "/", "lifecycle.unknown", "", 0, "/" },
        { "GET", "/v1", "lifecycle.unknown", "", 0, "/" },
        { "GET", "/v1/", "lifecycle.unknown", "", 0, "/" },
        { "GET", "/v1x", "lifecycle.unknown", "", 0, "/v1x" },
        { "GET", "/v1?/sandboxes", "lifecycle.unknown", "", 0, "/" },
        { "GET", "/sandboxes/", "lifecycle.unknown", "", 0, "/sandboxes/" },
        { "GET", "/sandboxes/a/", "lifecycle.unknown", "a", 0,
          "/sandboxes/a/" },
        { "GET", "/%76%31/sandboxes", "sandbox.list", "", 0, "/sandboxes" },
        { "GET", "/v1/sandboxes/a/endpoints/0008080?use_server_proxy=true",
          "endpoint.get", "a", 8080, "/sandboxes/a/endpoints/0008080" },
        { "GET", "/sandboxes?metadata=k%3Dv%26k2%3Dv2&state=Running",
          "sandbox.list", "", 0, "/sandboxes" },
    };

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        if (cases[i].op == NULL) {
            refused(cases[i].method, cases[i].target);
            continue;
        }

        expect(cases[i].method, cases[i].target, cases[i].op,
               cases[i].sandbox, cases[i].port, cases[i].path);
    }
}


/* What is known of a request that is refused, for its record. */
static void
test_refused_facts(void **state)
{
    sb_route_t  r;
    char        buf[64 + 2 * 10];

    (void) state;

    assert_int_equal(route(&r, "POST", E "/files//upload", false),
                     SB_AMBIGUOUS);
    assert_string_equal(r.op->name, "execd.unknown");
    assert_true(sb_eq(r.sandbox, sb_lit(ID)));
    assert_int_equal(r.port, 44772);
    assert_non_null(strstr(r.reason, "//"));

    assert_int_equal(route(&r, "POST", P "8080/../x", false), SB_AMBIGUOUS);
    assert_string_equal(r.op->name, "proxy.http");
    assert_true(sb_eq(r.sandbox, sb_lit(ID)));

    assert_int_equal(route(&r, "GET", "/sandboxes/a%2fb/proxy/8080/x", false),
                     SB_AMBIGUOUS);
    assert_int_equal(r.sandbox.len, 0);

    assert_int_equal(route(&r, "GET", "/sandboxes/%ff/proxy/8080/x", false),
                     SB_AMBIGUOUS);
    assert_int_equal(r.sandbox.len, 0);
    assert_non_null(strstr(r.reason, "UTF-8"));

    /* a buffer too small is said, not overrun */

    assert_int_equal(sb_route(&r, sb_lit("GET"), sb_lit("/sandboxes"), false,
                              buf, sizeof(buf) - 1), SB_LIMIT);
    assert_int_equal(sb_route(&r, sb_lit("GET"), sb_lit("/sandboxes"), false,
                              buf, sizeof(buf)), SB_OK);

    /* a NUL in the target is a control character, not its end */

    assert_int_equal(sb_route(&r, sb_lit("GET"), sb_lit("/pools\0/a"), false,
                              buf, sizeof(buf)), SB_AMBIGUOUS);
    assert_int_equal(sb_route(&r, sb_lit("GET\0"), sb_lit("/pools"), false,
                              buf, sizeof(buf)), SB_OK);
    assert_string_equal(r.op->name, "lifecycle.unknown");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_spec_complete),
        cmocka_unit_test(test_lifecycle),
        cmocka_unit_test(test_proxied),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_second_carrier),
        cmocka_unit_test(test_user_ports),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_odd),
        cmocka_unit_test(test_refused_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
