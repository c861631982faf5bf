/* The table of operations, globs over their names, queries
 * (reference/opensandbox-api.md 8). */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "operation_table.h"

#define countof(a)  (sizeof(a) / sizeof((a)[0]))


static void
test_table(void **state)
{
    bool                used[SB_OP_COUNT];
    size_t              rows;
    const sb_op_t      *op;
    const sb_op_row_t  *row, *next;

    (void) state;

    assert_int_equal(sb_op_count(), SB_OP_COUNT);
    memset(used, 0, sizeof(used));
    rows = 0;

    for (row = sb_op_rows(); row->op != NULL; row++) {
        rows++;
        used[sb_op_index(row->op)] = true;

        assert_int_equal(row->pattern[0], '/');
        assert_true(row->pattern[1] == '*'
                    || (row->pattern[1] >= 'a' && row->pattern[1] <= 'z'));

        /* surfaces do not mix, and each ends with a row that takes all */

        next = row + 1;

        if (next->op == NULL || next->surface != row->surface) {
            assert_string_equal(row->method, "*");
            assert_string_equal(row->pattern, "/**");
            assert_int_equal(row->when, 0);
        }

        assert_true(next->op == NULL || next->surface >= row->surface);
    }

    assert_int_equal(row->surface, SB_SURFACE_PORT);
    assert_true(rows > 100);

    for (size_t i = 0; i < SB_OP_COUNT; i++) {
        op = sb_op_at(i);
        assert_non_null(op->name);
        assert_int_equal(sb_op_index(op), i);

        /* all have a route but the one that a body makes of another */

        assert_int_equal(used[i], i != SB_OP_EGRESS_POLICY_RESET);

        if (i == SB_OP_PROXY_HTTP_READ) {
            assert_ptr_equal(sb_op_find(sb_lit("proxy.http")),
                             sb_op_at(SB_OP_PROXY_HTTP));
            assert_string_equal(op->name, "proxy.http");

        } else {
            assert_ptr_equal(sb_op_find(sb_str(op->name, strlen(op->name))),
                             op);
        }
    }

    assert_null(sb_op_find(sb_lit("file.")));
    assert_null(sb_op_find(sb_lit("file.writes")));
    assert_null(sb_op_find(sb_lit("")));
    assert_null(sb_op_find(sb_lit("file.write\0")));
    assert_string_equal(sb_op_at(SB_OP_FILE_WRITE)->name, "file.write");
}


/* Which operations have a property, written from the text again. */
static void
test_flags(void **state)
{
    static const struct {
        unsigned     flag;
        const char  *names;
    } cases[] = {
        { SB_OPF_STREAM,
          " command.execute code.execute session.run isolated.run " },
        { SB_OPF_COMMAND,
          " command.execute code.execute session.run isolated.run " },
        { SB_OPF_LONG,
          " command.execute code.execute session.run isolated.run"
          " metrics.watch file.read file.write isolated.file.read"
          " isolated.file.write sandbox.create pty.open proxy.http"
          " proxy.ws " },
        { SB_OPF_UPGRADE, " pty.open proxy.ws " },
        { SB_OPF_UPLOAD, " file.write isolated.file.write " },
        { SB_OPF_PATHS,
          " file.stat file.delete dir.delete isolated.file.stat"
          " isolated.file.delete isolated.dir.delete " },
        { SB_OPF_PATH,
          " file.read file.search dir.list isolated.file.read"
          " isolated.file.search isolated.dir.list " },
        { SB_OPF_FOLD, " sandbox.get endpoint.get " },
        { SB_OPF_OFF,
          " execd.ping server.health server.docs server.version " },
        { SB_OPF_UNKNOWN,
          " lifecycle.unknown execd.unknown egress.unknown " },
        { SB_OPF_OPERATOR, " proxy.http vault.get " },
        { SB_OPF_JSON,
          " sandbox.create sandbox.metadata.patch sandbox.renew"
          " snapshot.create pool.create pool.update client.metrics"
          " sandbox.networkpolicy.set sandbox.networkpolicy.patch"
          " sandbox.networkpolicy.delete"
          " command.execute code.execute code.context.create session.create"
          " session.run file.move file.chmod file.replace dir.create"
          " pty.create execd.init isolated.create isolated.run"
          " isolated.file.move isolated.file.chmod isolated.file.replace"
          " isolated.dir.create egress.policy.set egress.policy.reset"
          " egress.policy.patch egress.policy.delete_rules vault.create"
          " vault.patch vault.delete " },
        { SB_OPF_ANSWER,
          " sandbox.create sandbox.list sandbox.get sandbox.metadata.patch"
          " sandbox.renew endpoint.get snapshot.create snapshot.list"
          " snapshot.get pool.create command.status code.context.create"
          " session.create file.replace pty.create pty.status execd.ready"
          " isolated.create isolated.file.replace egress.policy.get"
          " egress.policy.set egress.policy.reset egress.policy.patch"
          " egress.policy.delete_rules vault.create vault.patch"
          " vault.delete vault.get " },
    };

    static const char  reads[] =
        " sandbox.list sandbox.get endpoint.get snapshot.list snapshot.get"
        " diagnostics.logs diagnostics.events diagnostics.inspect"
        " diagnostics.summary pool.list pool.get server.health server.docs"
        " server.version client.metrics sandbox.networkpolicy.get"
        " template.list template.get execd.ping command.status command.logs"
        " code.context.list code.context.get file.read file.stat"
        " file.search dir.list metrics.get metrics.watch pty.status"
        " execd.ready isolated.list isolated.get isolated.diff"
        " isolated.capabilities isolated.file.read isolated.file.stat"
        " isolated.file.search isolated.dir.list egress.policy.get"
        " egress.health vault.get ";

    char            name[64];
    bool            has;
    const sb_op_t  *op;

    (void) state;

    for (size_t i = 0; i < SB_OP_COUNT; i++) {
        op = sb_op_at(i);
        snprintf(name, sizeof(name), " %s ", op->name);

        for (size_t k = 0; k < countof(cases); k++) {
            has = (op->flags & cases[k].flag) != 0;

            if (has != (strstr(cases[k].names, name) != NULL)) {
                fail_msg("%s: flag 0x%x", op->name, cases[k].flag);
            }
        }

        has = (op->flags & SB_OPF_MUTATES) != 0;

        if (i == SB_OP_PROXY_HTTP_READ) {
            assert_false(has);

        } else if (has == (strstr(reads, name) != NULL)) {
            fail_msg("%s: mutates", op->name);
        }
    }
}


static void
test_glob(void **state)
{
    static const struct {
        const char  *glob;
        const char  *name;
        bool         match;
    } cases[] = {
        { "*", "file.read", true },
        { "*", "", true },
        { "", "", true },
        { "", "file.read", false },
        { "file.read", "file.read", true },
        { "file.read", "file.reads", false },
        { "file.reads", "file.read", false },
        { "file.*", "file.read", true },
        { "file.*", "file.", true },
        { "file.*", "file", false },
        { "file.*", "isolated.file.read", false },
        { "*file.*", "isolated.file.read", true },
        { "*.unknown", "execd.unknown", true },
        { "*.unknown", "execd.unknown.x", false },
        { "code.*.delete", "code.context.delete", true },
        { "code.*.delete", "code.context.delete_all", false },
        { "code*delete*", "code.context.delete_all", true },
        { "*a*b*", "xaxbx", true },
        { "*a*b", "xaxbxb", true },
        { "*a*b", "xaxbxc", false },
        { "**", "x", true },
        { "a**b", "ab", true },
        { "*ab", "aab", true },
        { "*aab*", "aaaab", true },
        { "sandbox.{get,list}", "sandbox.get", false },
        { "sandbox.?et", "sandbox.get", false },
        { "File.*", "file.read", false },
    };

    unsigned  n;
    char      glob[64], name[2000];

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        if (sb_op_glob(sb_str(cases[i].glob, strlen(cases[i].glob)),
                       sb_str(cases[i].name, strlen(cases[i].name)))
            != cases[i].match)
        {
            fail_msg("%s %s", cases[i].glob, cases[i].name);
        }
    }

    /* both entries of proxy.http, and not exponential */

    n = 0;

    for (size_t i = 0; i < sb_op_count(); i++) {
        n += sb_op_glob(sb_lit("proxy.*"),
                        sb_str(sb_op_at(i)->name, strlen(sb_op_at(i)->name)));
    }

    assert_int_equal(n, 3);

    for (size_t i = 0; i < sizeof(glob); i += 2) {
        memcpy(glob + i, "*a", 2);
    }

    memset(name, 'a', sizeof(name));
    assert_true(sb_op_glob(sb_str(glob, sizeof(glob)),
                           sb_str(name, sizeof(name))));
    name[sizeof(name) - 1] = 'b';
    assert_false(sb_op_glob(sb_str(glob, sizeof(glob)),
                            sb_str(name, sizeof(name))));
}


static void
test_query(void **state)
{
    static const struct {
        const char  *query;
        const char  *want;      /* [name|value] ... */
    } cases[] = {
        { "", "" },
        { "a=b", "[a|b]" },
        { "a", "[a|]" },
        { "a=", "[a|]" },
        { "=b", "[|b]" },
        { "=", "[|]" },
        { "&", "" },
        { "&&a=1&&b=2&", "[a|1][b|2]" },
        { "a=b=c&d", "[a|b=c][d|]" },
        { "path=%2Fa&path=%2Fb+c", "[path|%2Fa][path|%2Fb+c]" },
        { "a=1;b=2", "[a|1;b=2]" },
        { "a=?&b=/", "[a|?][b|/]" },
    };

    char      got[256];
    sb_str_t  query, name, value;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        query = sb_str(cases[i].query, strlen(cases[i].query));
        got[0] = '\0';

        while (sb_query_next(&query, &name, &value)) {
            snprintf(got + strlen(got), sizeof(got) - strlen(got),
                     "[%.*s|%.*s]", (int) name.len, name.data,
                     (int) value.len, value.data);
        }

        assert_string_equal(got, cases[i].want);
        assert_false(sb_query_next(&query, &name, &value));
    }
}


/* C080 to C083: one decoding, then a verdict */
static void
test_query_decode(void **state)
{
    static const struct {
        const char  *raw;
        const char  *want;      /* NULL: ambiguous */
    } cases[] = {
        { "", "" },
        { "/a/b", "/a/b" },
        { "%2Fb+c", "/b c" },
        { "%2b", "+" },
        { "50%25.txt", "50%.txt" },
        { "a%252fb", "a%2fb" },
        { "%2fworkspace%2f%2e%2e%2fetc", "/workspace/../etc" },
        { "%25%32%35%25%32%35", "%25%25" },
        { "%E6%8A%A5%E5%91%8A%20%22x%22", "\xe6\x8a\xa5\xe5\x91\x8a \"x\"" },
        { "\xe6\x8a\xa5", "\xe6\x8a\xa5" },
        { "%EF%BC%8E%EF%BC%8E/", "\xef\xbc\x8e\xef\xbc\x8e/" },
        { "a%3Bb", "a;b" },
        { "%0a%09", "\n\t" },
        { "a=b&c", "a=b&c" },
        { "%", NULL },
        { "%2", NULL },
        { "a%2", NULL },
        { "%2g", NULL },
        { "%u002f", NULL },
        { "%%32%66", NULL },
        { "/workspace/ok%00/../../etc", NULL },
        { "a;b", NULL },
        { "%c0%ae%c0%ae%c0%af", NULL },
        { "%ed%a0%80", NULL },
        { "%f5%80%80%80", NULL },
        { "%e6%8a", NULL },
        { "\xff", NULL },
    };

    char    *dst;
    size_t   n, len;
    sb_rc_t  rc;

    (void) state;

    for (size_t i = 0; i < countof(cases); i++) {
        n = strlen(cases[i].raw);
        dst = malloc(n ? n : 1);
        assert_non_null(dst);

        rc = sb_query_decode(dst, &len, sb_str(cases[i].raw, n));

        if (cases[i].want == NULL) {
            assert_int_equal(rc, SB_AMBIGUOUS);

        } else {
            assert_int_equal(rc, SB_OK);
            assert_true(sb_eq(sb_str(dst, len),
                              sb_str(cases[i].want, strlen(cases[i].want))));
        }

        free(dst);
    }

    dst = malloc(3);
    assert_non_null(dst);
    assert_int_equal(sb_query_decode(dst, &len, sb_lit("a\0b")),
                     SB_AMBIGUOUS);
    free(dst);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_query_decode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
