/* Routes of the Kubernetes ingress (reference/opensandbox-api.md 6.2). */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ingress.h"

#define SIG      "deadbeef7"
#define EXPIRES  "tj8k2x"

#define countof(a)  (sizeof(a) / sizeof((a)[0]))
#define str(s)      sb_str((s), strlen(s))


static char  buf[4096];


static sb_rc_t
by_path(sb_route_t *r, const char *method, const char *target)
{
    return sb_ingress_route(r, NULL, str(method), str(target), false, buf,
                            sizeof(buf));
}


static void
assert_text(sb_str_t s, const char *text)
{
    if (!sb_eq(s, str(text))) {
        fail_msg("\"%.*s\" is not \"%s\"", (int) s.len, s.data ? s.data : "",
                 text);
    }
}


static void
test_token(void **state)
{
    static const struct {
        const char  *text;
        sb_rc_t      rc;
        const char  *sandbox;
        uint32_t     port;
        const char  *signature;
    } cases[] = {
        { "a-1", SB_OK, "a", 1, "" },
        { "a-65535", SB_OK, "a", 65535, "" },
        { "7f3c2b1e-9d4a-4c55-8a0e-2f6b1c9d0e11-44772", SB_OK,
          "7f3c2b1e-9d4a-4c55-8a0e-2f6b1c9d0e11", 44772, "" },
        { "a--8080", SB_OK, "a-", 8080, "" },
        { "A_b-08080", SB_OK, "A_b", 8080, "" },
        { "a-8080-" EXPIRES "-" SIG, SB_OK, "a", 8080, SIG },
        { "a-b-8080-0-000000001", SB_AMBIGUOUS, "", 0, "" },
        { "a-b-8080-0-000065535", SB_AMBIGUOUS, "", 0, "" },
        { "a-b-8080-0-000065536", SB_OK, "a-b", 8080, "000065536" },
        { "a-b-8080-0-deadbee11", SB_OK, "a-b", 8080, "deadbee11" },
        { "a-8080-3w5e11264sgsf-" SIG, SB_OK, "a", 8080, SIG },

        /* no signature: upstream then looks for a port */
        { "a-8080-3w5e11264sgsg-" SIG, SB_DECLINED, "", 0, "" },
        { "a-8080-01-" SIG, SB_DECLINED, "", 0, "" },
        { "a-8080--" SIG, SB_DECLINED, "", 0, "" },
        { "a-8080-" EXPIRES "-DEADBEEF7", SB_DECLINED, "", 0, "" },
        { "a-8080-" EXPIRES "-deadbeefZ", SB_DECLINED, "", 0, "" },
        { "a-8080-" EXPIRES "-deadbeeg7", SB_DECLINED, "", 0, "" },
        { "a-8080-" EXPIRES "-deadbeef77", SB_DECLINED, "", 0, "" },
        { "a-http-" EXPIRES "-" SIG, SB_DECLINED, "", 0, "" },
        { "8080-" EXPIRES "-" SIG, SB_DECLINED, "", 0, "" },
        { "a-8080-01-000000080", SB_OK, "a-8080-01", 80, "" },

        { "", SB_DECLINED, "", 0, "" },
        { "a", SB_DECLINED, "", 0, "" },
        { "-", SB_DECLINED, "", 0, "" },
        { "a-", SB_DECLINED, "", 0, "" },
        { "-8080", SB_DECLINED, "", 0, "" },
        { "--8080", SB_DECLINED, "", 0, "" },
        { "a-0", SB_DECLINED, "", 0, "" },
        { "a-65536", SB_DECLINED, "", 0, "" },
        { "a-+80", SB_DECLINED, "", 0, "" },
        { "a-80.base.example", SB_DECLINED, "", 0, "" },
        { "http://a-80", SB_DECLINED, "", 0, "" },
        { "a-80, b-80", SB_DECLINED, "", 0, "" },
        { "a%2d80", SB_DECLINED, "", 0, "" },
        { "a-80\t", SB_DECLINED, "", 0, "" },
        { "\xc3\xa4-80", SB_DECLINED, "", 0, "" },
    };

    sb_rc_t       rc;
    sb_ingress_t  t;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        rc = sb_ingress_token(&t, str(cases[i].text));

        if (rc != cases[i].rc) {
            fail_msg("%s: %d", cases[i].text, rc);
        }

        if (rc == SB_OK) {
            assert_text(t.sandbox, cases[i].sandbox);
            assert_int_equal(t.port, cases[i].port);
            assert_text(t.signature, cases[i].signature);
        }
    }

    assert_int_equal(sb_ingress_token(&t, sb_lit("a-80\0")), SB_DECLINED);
}


static void
test_by_token(void **state)
{
    sb_route_t    r;
    sb_ingress_t  t;

    (void) state;

    assert_int_equal(sb_ingress_token(&t, sb_lit("s-44772-" EXPIRES "-" SIG)),
                     SB_OK);
    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("POST"),
                                      sb_lit("/%63ommand?a=b"), false, buf,
                                      sizeof(buf)),
                     SB_OK);
    assert_string_equal(r.op->name, "command.execute");
    assert_text(r.sandbox, "s");
    assert_text(r.path, "/command");
    assert_text(r.query, "a=b");
    assert_text(r.signature, SIG);
    assert_int_equal(r.port, 44772);
    assert_int_equal(r.carrier_port, 44772);
    assert_true(r.proxied);

    /* nested, also into a user port */

    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("GET"),
                                      sb_lit("/proxy/8080/ws"), true, buf,
                                      sizeof(buf)),
                     SB_OK);
    assert_string_equal(r.op->name, "proxy.ws");
    assert_int_equal(r.port, 8080);
    assert_int_equal(r.nested, 1);

    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("POST"),
                                      sb_lit("/x/../command"), false, buf,
                                      sizeof(buf)),
                     SB_AMBIGUOUS);
    assert_string_equal(r.op->name, "execd.unknown");

    /* an execd path is none of lifecycle's */

    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("GET"),
                                      sb_lit("/v1/sandboxes"), false, buf,
                                      sizeof(buf)),
                     SB_OK);
    assert_string_equal(r.op->name, "execd.unknown");

    /* nobody */

    memset(&t, 0, sizeof(t));
    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("GET"), sb_lit("/ping"),
                                      false, buf, sizeof(buf)),
                     SB_AMBIGUOUS);
    assert_true((r.op->flags & SB_OPF_UNKNOWN)
                || strcmp(r.op->name, "proxy.http") == 0);
    assert_int_equal(r.sandbox.len, 0);

    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("GET"),
                                      sb_lit("/status%2Eok?x"), false, buf,
                                      sizeof(buf)),
                     SB_OK);
    assert_string_equal(r.op->name, "server.health");
    assert_false(r.proxied);

    assert_int_equal(sb_ingress_route(&r, &t, sb_lit("GET"), sb_lit("/a"),
                                      false, buf, 8),
                     SB_LIMIT);
}


static void
test_by_path(void **state)
{
    static const struct {
        const char  *method;
        const char  *target;
        const char  *op;        /* NULL: refused */
        uint32_t     port;
        const char  *path;
        const char  *signature;
    } cases[] = {
        { "GET", "/s/8080", "proxy.http", 8080, "/", "" },
        { "GET", "/s/8080/", "proxy.http", 8080, "/", "" },
        { "GET", "/s/8080?a", "proxy.http", 8080, "/", "" },
        { "POST", "/s/44772/command", "command.execute", 44772, "/command",
          "" },
        { "POST", "/%73/4477%32/command", "command.execute", 44772, "/command",
          "" },
        { "GET", "/s/18080/policy", "egress.policy.get", 18080, "/policy", "" },
        { "POST", "/s/44772/proxy/44772/command", "command.execute", 44772,
          "/command", "" },
        { "GET", "/s/8080/a%2Fb/..c//d", "proxy.http", 8080, "/a/b/..c//d",
          "" },

        { "POST", "/s/44772/" EXPIRES "/" SIG "/command", "command.execute",
          44772, "/command", SIG },
        { "GET", "/s/8080/" EXPIRES "/" SIG, "proxy.http", 8080, "/", SIG },
        { "GET", "/s/8080/" EXPIRES "/" SIG "/a/b", "proxy.http", 8080, "/a/b",
          SIG },
        { "GET", "/s/44772/" EXPIRES "/" SIG "/nothing", "execd.unknown", 44772,
          "/nothing", SIG },
        { "POST", "/s/44772/" EXPIRES "/" SIG "/proxy/18080/policy",
          "egress.policy.set", 18080, "/policy", SIG },

        /* unsigned after all */
        { "GET", "/s/44772/command/deadbee07/logs", "command.logs", 44772,
          "/command/deadbee07/logs", "" },
        { "GET", "/s/44772/pty/deadbeef1/ws", "pty.open", 44772,
          "/pty/deadbeef1/ws", "" },
        { "POST", "/s/44772/session/deadbeef1/run", "session.run", 44772,
          "/session/deadbeef1/run", "" },
        { "GET", "/s/8080/EXP/" SIG "/x", "proxy.http", 8080,
          "/EXP/" SIG "/x", "" },

        /* both: refused */
        { "POST", "/s/44772/proxy/000008080/command", NULL, 0, "", "" },
        { "POST", "/s/44772/proxy/000044772/command", NULL, 0, "", "" },

        /* a signature that is spelt otherwise would not be found in logs */
        { "GET", "/s/8080/" EXPIRES "/%64eadbeef7/x", NULL, 0, "", "" },
        { "GET", "/%73/8080/" EXPIRES "/" SIG "/x", NULL, 0, "", "" },

        { "GET", "/", NULL, 0, "", "" },
        { "GET", "/s", NULL, 0, "", "" },
        { "GET", "/s/", NULL, 0, "", "" },
        { "GET", "//8080/x", NULL, 0, "", "" },
        { "GET", "//s/8080/x", NULL, 0, "", "" },
        { "GET", "/s//8080/x", NULL, 0, "", "" },
        { "GET", "/s/http/x", NULL, 0, "", "" },
        { "GET", "/s/0/x", NULL, 0, "", "" },
        { "GET", "/s/+80/x", NULL, 0, "", "" },
        { "GET", "/../8080/x", NULL, 0, "", "" },
        { "GET", "/s/8080/../44772/command", NULL, 0, "", "" },
        { "GET", "/s/8080/%2e%2e/44772/command", NULL, 0, "", "" },
        { "GET", "/s/8080/%252e%252e/44772/command", NULL, 0, "", "" },
        { "GET", "/s%2F8080/x", NULL, 0, "", "" },
        { "GET", "/s/8080%2Fx", NULL, 0, "", "" },
        { "GET", "/s/44772/a%2Fb", NULL, 0, "", "" },
        { "GET", "/s/44772/%2570ing", NULL, 0, "", "" },
        { "GET", "/s/44772/ping#x", NULL, 0, "", "" },
        { "GET", "/s/44772/proxy/x/y", NULL, 0, "", "" },
        { "GET", "/\xff/8080/x", NULL, 0, "", "" },
        { "GET", "/v1/sandboxes", NULL, 0, "", "" },
        { "GET", "*", NULL, 0, "", "" },
    };

    sb_rc_t     rc;
    sb_route_t  r;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        rc = by_path(&r, cases[i].method, cases[i].target);

        if (cases[i].op == NULL) {
            if (rc != SB_AMBIGUOUS || r.reason == NULL) {
                fail_msg("%s: %d", cases[i].target, rc);
            }

            assert_true((r.op->flags & SB_OPF_UNKNOWN)
                        || strcmp(r.op->name, "proxy.http") == 0);

            /* what is refused shows no signature either */
            assert_null(r.path.len ? memmem(r.path.data, r.path.len, SIG, 9)
                                   : NULL);
            continue;
        }

        if (rc != SB_OK || strcmp(r.op->name, cases[i].op) != 0) {
            fail_msg("%s: %d, %s, %s", cases[i].target, rc, r.op->name,
                     r.reason ? r.reason : "");
        }

        assert_text(r.sandbox, "s");
        assert_int_equal(r.port, cases[i].port);
        assert_text(r.path, cases[i].path);
        assert_text(r.signature, cases[i].signature);
        assert_true(r.proxied);
    }
}


static void
test_mask(void **state)
{
    static const struct {
        const char  *target;
        const char  *path;
        const char  *signature;
    } cases[] = {
        { "/s/8080/" EXPIRES "/" SIG "/x", "/s/8080/" EXPIRES "/*********/x",
          SIG },
        { "/s/8080/" EXPIRES "/" SIG, "/s/8080/" EXPIRES "/*********", SIG },
        { "/s/8080/" EXPIRES "/deadbeef", "/s/8080/" EXPIRES "/deadbeef", "" },
        { "/s/8080", "/s/8080", "" },
        { "/", "/", "" },
    };

    sb_rc_t     rc;
    sb_route_t  r;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        rc = sb_route(&r, sb_lit("GET"), str(cases[i].target), false, buf,
                      sizeof(buf));
        assert_int_equal(rc, SB_OK);
        sb_ingress_mask(&r, str(cases[i].target));
        assert_text(r.path, cases[i].path);
        assert_text(r.signature, cases[i].signature);
    }
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_by_token),
        cmocka_unit_test(test_by_path),
        cmocka_unit_test(test_mask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
