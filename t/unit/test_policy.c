/* Policies: the language, paths and commands, verdicts. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "path.h"
#include "policy.h"
#include "policy_shell.h"


static sb_policy_t *
policy(const char *text)
{
    sb_policy_t        *p = NULL;
    sb_policy_error_t   e;

    if (sb_policy_parse(sb_str(text, strlen(text)), "p", &p, &e) != SB_OK) {
        fail_msg("%s", e.text);
    }

    return p;
}


static sb_policy_verdict_t
judge(const sb_policy_t *p, const sb_policy_request_t *r)
{
    sb_policy_verdict_t  v;

    assert_int_equal(sb_policy_check(p, r, &v), SB_OK);

    return v;
}


/* One path, one operation. */
static sb_policy_verdict_t
judge_path(const sb_policy_t *p, const char *op, sb_str_t path)
{
    sb_policy_file_t     f = { .path = path, .mode = SB_MODE_NONE };
    sb_policy_request_t  r = { .op = sb_op_find(sb_str(op, strlen(op))),
                               .files = &f, .nfiles = 1, .files_total = 1 };

    assert_non_null(r.op);

    return judge(p, &r);
}


static sb_policy_verdict_t
judge_command(const sb_policy_t *p, const char *text)
{
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("command.execute")),
                               .has_command = true,
                               .command = sb_str(text, strlen(text)) };

    return judge(p, &r);
}


/* --- the language ----------------------------------------------------------- */

static void
test_errors(void **state)
{
    size_t              i;
    sb_policy_t        *p;
    sb_policy_error_t   e;

    static const struct {
        const char  *text, *error;
    } cases[] = {
        { "", "p:1:1: \"default allow;\" or \"default deny;\" is missing at "
          "the end" },
        { "default;", "p:1:8: the default is allow or deny" },
        { "default allow", "p:1:14: a \";\" is missing here" },
        { "default allow;\ndeny x;", "p:2:1: nothing may follow the default" },
        { "permit x;", "p:1:1: allow, deny, observe or default is missing "
          "here" },
        { "deny {}", "p:1:6: the name of the rule is missing here: small "
          "letters, digits, \"-\", \"_\", \".\"" },
        { "deny a;\ndeny a;", "p:2:6: there is a rule \"a\" already, on line "
          "1" },
        { "deny a {\n  colour red;\n}", "p:2:3: a condition is missing here: "
          "operation, access, actor, role, sandbox, metadata, path, path_has, "
          "command, image, port, file_size, request_size, files, mode, content, archive "
          "or archive_..." },
        { "deny a {\n  operation file.wirte;\n}", "p:2:13: \"file.wirte\" "
          "matches no operation; their names stand in docs/operations.md" },
        { "deny a { access all; }", "p:1:17: access is \"read\" or "
          "\"write\"" },
        { "deny a { role root; }", "p:1:15: a role is viewer, operator or "
          "admin" },
        { "deny a { metadata x; }", "p:1:19: metadata is written as "
          "KEY=VALUE" },
        { "deny a { port 70000; }", "p:1:15: a port is 1 to 65535, or a range "
          "such as 8000-8099" },
        { "deny a { file_size 1; }", "p:1:20: \">\" and a limit are missing "
          "here" },
        { "deny a { file_size > 1x; }", "p:1:22: \"1x\" is no size such as "
          "128m" },
        { "deny a { path_has dots; }", "p:1:19: a path has backslash, climbs, "
          "expands, relative, empty, not-utf8 or control" },
        { "allow a { image unread; }", "p:1:17: \"image unread\" cannot be "
          "allowed: what is not read is not judged" },
        { "deny a { mode 9; }", "p:1:15: a mode is one to four octal digits, "
          "such as 6000" },
        { "deny a { path ../x; }", "p:1:15: a path pattern has a \".\" or "
          "\"..\" segment, which no judged path has" },
        { "deny a { path [a; }", "p:1:15: a path pattern has a \"[\" without "
          "its \"]\"" },
        { "deny a { path; }", "p:1:14: a value is missing here" },
        { "deny a {\n  command \"a(b\";\n}", "p:2:15: missing closing "
          "parenthesis" },
        { "allow a { command unread; }", "p:1:19: \"command unread\" cannot "
          "be allowed: what is not read is not judged" },
        { "allow a { reason x; }", "p:1:11: an allow needs no reason" },
        { "deny a { reason x; reason y; }", "p:1:27: there is a reason "
          "already" },
        { "deny a { path \"x\n\"; }", "p:1:15: a quoted text does not end on "
          "its line" },
        { "deny a { path x\"y\"; }", "p:1:16: a quote stands inside of a word: "
          "put all of it in quotes" },
        { "deny a { path x", "p:1:16: a \";\" is missing here" },
        { "deny a { ", "p:1:10: a condition or \"}\" is missing here" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sb_policy_parse(sb_str(cases[i].text,
                                                strlen(cases[i].text)), "p",
                                         &p, &e), SB_ERROR);
        assert_string_equal(e.text, cases[i].error);
    }

    assert_int_equal(sb_policy_parse(sb_lit("deny a;\0"), "p", &p, &e),
                     SB_ERROR);
    assert_string_equal(e.text, "p:1:8: there is a NUL byte here");
    assert_int_equal(sb_policy_parse(sb_lit("# \xff\n"), "p", &p, &e),
                     SB_ERROR);
}


static void
test_describe(void **state)
{
    sb_buf_t      b = { .max = 4096 };
    sb_policy_t  *p;

    (void) state;

    p = policy("# a comment\ndeny a { path '/x y'; reason \"no \\\"x\\\"\"; }\n"
               "\nobserve b;\ndefault deny \"closed\";\n");

    assert_int_equal(sb_policy_describe(p, &b), SB_OK);
    assert_string_equal(sb_buf_cstr(&b),
        "{\"default\":{\"effect\":\"deny\",\"line\":5,\"name\":\"default\","
        "\"text\":\"default deny \\\"closed\\\";\"},\"name\":\"p\",\"rules\":["
        "{\"effect\":\"deny\",\"line\":2,\"name\":\"a\",\"text\":\"deny a { "
        "path '/x y'; reason \\\"no \\\\\\\"x\\\\\\\"\\\"; }\"},"
        "{\"effect\":\"observe\",\"line\":4,\"name\":\"b\",\"text\":\"observe "
        "b;\"}]}");

    sb_buf_free(&b);
    sb_policy_free(p);
}


/* --- paths ------------------------------------------------------------------ */

/* C080 to C087: never resolved, always refused */
static void
test_odd_paths(void **state)
{
    size_t               i;
    sb_policy_t         *p, *none;
    sb_policy_verdict_t  v;

    static const sb_str_t  odd[] = {
        sb_lit(""), sb_lit("x"), sb_lit("./x"), sb_lit("../x"),
        sb_lit("workspace/x"), sb_lit("/workspace/../etc/passwd"),
        sb_lit("/workspace/.."), sb_lit("/.."), sb_lit("//..//x"),
        sb_lit("/workspace/./../x"), sb_lit("/workspace/$HOME/x"),
        sb_lit("/workspace/${X}"), sb_lit("$HOME/.ssh/authorized_keys"),
        sb_lit("~/x"), sb_lit("~root/x"), sb_lit("~"),
        sb_lit("/workspace\\..\\x"), sb_lit("C:\\x"),
        sb_lit("\\\\host\\share"), sb_lit("/workspace/a\\b"),
        sb_lit("/workspace/ok\0/../x"), sb_lit("/workspace/\xc0\xae\xc0\xae/x"),
        sb_lit("/workspace/\xed\xa0\x80"), sb_lit("/workspace/\xff"),
    };

    static const sb_str_t  good[] = {
        sb_lit("/workspace/x"), sb_lit("//workspace//x"),
        sb_lit("/workspace/./x"), sb_lit("/workspace/a..b"),
        sb_lit("/workspace/..."), sb_lit("/workspace/..a"),
        sb_lit("/workspace/50%.txt"), sb_lit("/workspace/%2e%2e/x"),
        sb_lit("/workspace/a~"), sb_lit("/workspace/~x"),
        sb_lit("/workspace/\xef\xbc\x8e\xef\xbc\x8e/x"),
        sb_lit("/workspace/\xe6\x8a\xa5"), sb_lit("/workspace/a b"),
    };

    (void) state;

    p = policy("allow in { path /workspace/; }\ndefault deny;");
    none = policy("deny x { command \"^rm\"; }\ndefault allow;");

    for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        v = judge_path(p, "file.write", odd[i]);
        assert_int_equal(v.decision, SB_POLICY_DENY);
        assert_string_equal(v.rule, "in");
        assert_true(sb_eq(v.path, odd[i]));
        assert_non_null(strchr(v.reason, ':'));

        /* what no rule looks at is not judged */
        assert_int_equal(judge_path(none, "file.write", odd[i]).decision,
                         SB_POLICY_ALLOW);
    }

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        v = judge_path(p, "file.write", good[i]);

        if (v.decision != SB_POLICY_ALLOW) {
            fail_msg("%s: %s", good[i].data, v.reason);
        }
    }

    sb_policy_free(p);
    sb_policy_free(none);
}


static void
test_patterns(void **state)
{
    size_t        i;
    char          text[256];
    bool          denied;
    sb_policy_t  *p;

    static const struct {
        const char  *pattern, *op, *path;
        bool         match;
    } cases[] = {
        /* without a "/" at any depth, with one from the root */
        { ".env", "file.write", "/w/.env", true },
        { ".env", "file.write", "/.env", true },
        { ".env", "file.write", "/w/.env/x", true },
        { ".env", "file.write", "/w/.envy", false },
        { ".env", "file.write", "/w/x.env", false },
        { ".env.*", "file.write", "/w/.env.", true },
        { ".env.*", "file.write", "/w/.env.local", true },
        { "/etc", "file.write", "/etc", true },
        { "/etc", "file.write", "/etc/x", true },
        { "/etc", "file.write", "/w/etc", false },
        { "/etc", "file.write", "//etc/./x", true },
        { "etc/x", "file.write", "/etc/x", true },
        { "etc/x", "file.write", "/w/etc/x", false },

        /* directories */
        { ".git/", "file.write", "/w/.git", false },
        { ".git/", "dir.create", "/w/.git", true },
        { ".git/", "file.delete", "/w/.git", true },
        { ".git/", "file.write", "/w/.git/hooks/x", true },
        { "/workspace/", "file.write", "/workspace", false },
        { "/workspace/", "file.write", "/workspace/", false },
        { "/workspace/", "dir.list", "/workspace", true },
        { "/workspace/", "file.write", "/workspace2/x", false },

        /* stars */
        { "/a/*/c", "file.write", "/a/b/c", true },
        { "/a/*/c", "file.write", "/a/b/b/c", false },
        { "/a/**/c", "file.write", "/a/c", true },
        { "/a/**/c", "file.write", "/a/b/b/c/d", true },
        { "/a/**", "file.write", "/a", false },
        { "/a/**", "file.write", "/a/b/c", true },
        { "**/.git/config", "file.write", "/w/x/.git/config", true },
        { "**/.git/config", "file.write", "/.git/config", true },
        { "**/.git/config", "file.write", "/w/.git/hooks", false },
        { "**/**/**/**/**/x", "file.write", "/a/b/c/d/e/f/g/h", false },
        { "**/a/b", "file.write", "/a/a/b/c", true },
        { "**/a/b/**/c", "file.write", "/a/x/a/b/x/a/c/d", true },
        { "**/a/b/**/c", "file.write", "/a/x/b/x/a/c/d", false },
        { "**/a/", "file.write", "/w/a", false },
        { "**/a/", "file.write", "/w/a/a", true },
        { "/a/**/", "file.write", "/a/b", false },
        { "/a/**/", "file.write", "/a/b/c", true },
        { "*a*a*a*a*a*b", "file.write", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          false },
        { "*.py[co]", "file.write", "/w/a.pyc", true },
        { "*.py[!co]", "file.write", "/w/a.pyc", false },
        { "[]x]", "file.write", "/]", true },
        { "[a-f]?", "file.write", "/w/bz", true },
        { "\\*", "file.write", "/w/*", true },
        { "\\*", "file.write", "/w/x", false },
        { "*", "file.write", "/w/x", true },
        { "/", "dir.delete", "/", true },
        { "/", "file.write", "/x", false },

        /* the last pattern that matches decides */
        { "*.log !keep.log", "file.write", "/w/a.log", true },
        { "*.log !keep.log", "file.write", "/w/keep.log", false },

        /* letter case */
        { ".ENV", "file.write", "/w/.env", false },
        { "nocase .env", "file.write", "/w/.EnV", true },
        { "nocase [a-c]x", "file.write", "/w/BX", true },

        /* ids */
        { "/t/h-<uuid7>.pyz", "file.write",
          "/t/h-0190a0f1-2b3c-7d4e-8f50-61728394a5b6.pyz", true },
        { "/t/h-<uuid7>.pyz", "file.write",
          "/t/h-0190A0f1-2b3c-7d4e-8f50-61728394a5b6.pyz", false },
        { "/t/h-<uuid7>.pyz", "file.write",
          "/t/h-0190a0f1-2b3c-4d4e-8f50-61728394a5b6.pyz", false },
        { "/t/h-<uuid7>.pyz", "file.write", "/t/h-.pyz", false },

        /* what a directory above it would take along */
        { "/a/b/c", "dir.delete", "/a/b", true },
        { "/a/b/c", "dir.delete", "/a", true },
        { "/a/b/c", "dir.delete", "/", true },
        { "/a/b/c", "file.move", "/a/b", true },
        { "/a/b/c", "isolated.create", "/a/b", true },
        { "/a/b/c", "isolated.create", "/", true },
        { "/a/b/c", "isolated.create", "/a/x", false },
        { "/a/b/c", "file.write", "/a/b", false },
        { "/a/b/c", "dir.delete", "/a/x", false },
        { "/home/*/.ssh/", "dir.delete", "/home/bob", true },
        { "**/x/y", "dir.delete", "/w", false },
        { ".env", "dir.delete", "/w", false },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void) snprintf(text, sizeof(text), "deny x { path %s; }\n"
                        "default allow;", cases[i].pattern);
        p = policy(text);

        denied = judge_path(p, cases[i].op,
                            sb_str(cases[i].path, strlen(cases[i].path)))
                     .decision == SB_POLICY_DENY;

        if (denied != cases[i].match) {
            fail_msg("%s, %s %s: %d", cases[i].pattern, cases[i].op,
                     cases[i].path, denied);
        }

        sb_policy_free(p);
    }
}


/* C090: all of them are judged */
static void
test_many_paths(void **state)
{
    size_t               i;
    sb_policy_t         *p;
    sb_policy_file_t     f[300];
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.delete")),
                               .files = f, .nfiles = 300,
                               .files_total = 300 };
    sb_policy_verdict_t  v;

    (void) state;

    p = policy("observe seen { path s; }\ndeny x { path /etc/; }\n"
               "deny many { files > 300; reason few; }\ndefault allow;");

    for (i = 0; i < 300; i++) {
        f[i].path = sb_lit("/w/a");
        f[i].mode = SB_MODE_NONE;
    }

    assert_int_equal(judge(p, &r).decision, SB_POLICY_ALLOW);

    for (i = 0; i < 300; i++) {
        f[i].path = sb_lit("/etc/x");
        v = judge(p, &r);
        assert_int_equal(v.decision, SB_POLICY_DENY);
        assert_string_equal(v.rule, "x");
        assert_false(v.limit);
        assert_ptr_equal(v.path.data, f[i].path.data);
        f[i].path = sb_lit("/w/a");
    }

    f[299].path = sb_lit("/w/s");
    v = judge(p, &r);
    assert_int_equal(v.decision, SB_POLICY_ALLOW);
    assert_string_equal(v.observed, "seen");
    assert_string_equal(v.rule, "default");

    /* what was not kept cannot be judged */
    r.files_total = 301;
    v = judge(p, &r);
    assert_int_equal(v.decision, SB_POLICY_DENY);
    assert_true(v.limit);

    sb_policy_free(p);
}


/* C080: what names too many segments, or takes too long, is never let through */
static void
test_path_bounds(void **state)
{
    size_t               i;
    char                 deep[2 * 257 + 1];
    sb_policy_t         *p;
    sb_policy_file_t    *f;
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.write")),
                               .nfiles = 10000, .files_total = 10000 };
    sb_policy_verdict_t  v;

    (void) state;

    for (i = 0; i < 257; i++) {
        memcpy(deep + 2 * i, "/a", 2);
    }

    p = policy("deny x { path **/x/y; }\ndefault allow;");

    assert_int_equal(judge_path(p, "file.write", sb_str(deep, 512)).decision,
                     SB_POLICY_ALLOW);

    v = judge_path(p, "file.write", sb_str(deep, 514));
    assert_int_equal(v.decision, SB_POLICY_DENY);
    assert_string_equal(v.rule, "x");
    assert_non_null(strstr(v.reason, "segments"));

    sb_policy_free(p);

    /* seconds of work */

    f = calloc(10000, sizeof(sb_policy_file_t));
    assert_non_null(f);

    for (i = 0; i < 10000; i++) {
        f[i].path = sb_str(deep, 512);
        f[i].mode = SB_MODE_NONE;
    }

    r.files = f;
    p = policy("deny first { operation file.read; }\nobserve seen { path s; }\n"
               "deny slow { path **/*a*a*a*b/1 **/*a*a*a*b/2 **/*a*a*a*b/3 "
               "**/*a*a*a*b/4 **/*a*a*a*b/5 **/*a*a*a*b/6 **/*a*a*a*b/7 "
               "**/a/a/a/a/a/a/a/8 **/a/a/a/a/a/a/a/9 **/a/a/a/a/a/a/a/10; }\n"
               "default allow;");

    v = judge(p, &r);
    assert_int_equal(v.decision, SB_POLICY_DENY);
    assert_string_equal(v.rule, "slow");
    assert_non_null(strstr(v.reason, "too long"));

    /* the next verdict has its own time */
    r.nfiles = 1;
    r.files_total = 1;
    assert_int_equal(judge(p, &r).decision, SB_POLICY_ALLOW);

    free(f);
    sb_policy_free(p);
}


static void
test_limits(void **state)
{
    size_t               i;
    sb_policy_t         *p;
    sb_policy_file_t     f = { .path = sb_lit("/w/a"), .mode = SB_MODE_NONE };
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.write")),
                               .files = &f, .nfiles = 1, .files_total = 1 };
    sb_policy_verdict_t  v;

    static const struct {
        int32_t  mode;
        bool     denied;
    } modes[] = {
        { SB_MODE_NONE, false }, { 0, false }, { 644, false }, { 777, false },
        { 1777, false }, { 2755, true }, { 4755, true }, { 6000, true },
        { 7777, true }, { SB_MODE_ODD, true },
    };

    (void) state;

    p = policy("deny set-id { mode 6000; }\ndeny big { file_size > 1k; }\n"
               "deny all-big { request_size > 1m; }\ndefault allow;");

    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        f.mode = modes[i].mode;
        assert_int_equal(judge(p, &r).decision == SB_POLICY_DENY,
                         modes[i].denied);
    }

    f.mode = 644;
    f.has_size = true;
    f.size = 1024;
    assert_int_equal(judge(p, &r).decision, SB_POLICY_ALLOW);
    f.size = 1025;
    v = judge(p, &r);
    assert_int_equal(v.decision, SB_POLICY_DENY);
    assert_true(v.limit);

    f.size = 1;
    r.has_size = true;
    r.size = 1024 * 1024 + 1;
    v = judge(p, &r);
    assert_string_equal(v.rule, "all-big");
    assert_true(v.limit);

    assert_int_equal(sb_mode(644), 644);
    assert_int_equal(sb_mode(7777), 7777);
    assert_int_equal(sb_mode(8), SB_MODE_ODD);
    assert_int_equal(sb_mode(1080), SB_MODE_ODD);
    assert_int_equal(sb_mode(-1), SB_MODE_ODD);
    /* 1 << 23 in octal: Go's own bit for set-user-id */
    assert_int_equal(sb_mode(40000755), SB_MODE_ODD);

    sb_policy_free(p);
}


/* While an upload still comes: what its size alone decides. */
static void
test_early_limits(void **state)
{
    size_t               i;
    sb_policy_t         *p;
    sb_policy_file_t     f[2] = { { .path = sb_lit("../w/a"), .mode = 4755,
                                    .has_size = true, .size = 1 },
                                  { .path = sb_lit("/w/b"), .mode = 644,
                                    .has_size = true, .size = 2000 } };
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.write")),
                               .has_size = true, .size = 2001,
                               .files = f, .nfiles = 2, .files_total = 2 };
    sb_policy_verdict_t  v;

    static const struct {
        const char  *rules, *rule;
    } cases[] = {
        { "deny big { file_size > 1k; }", "big" },
        { "deny all { request_size > 2k; }", NULL },
        { "deny all { request_size > 1k; }", "all" },
        { "deny many { files > 1; }", "many" },
        { "deny x { path /w; } deny y { mode 4000; } deny z { not path /w; } "
          "deny big { file_size > 1k; }", "big" },
        { "allow none { operation file.read; } deny big { file_size > 1k; }",
          "big" },
        /* these wait for the rest */
        { "deny big { path /w; file_size > 1k; }", NULL },
        { "allow b { path /w/b; } deny big { file_size > 1k; }", NULL },
        { "deny small { not file_size > 1k; }", NULL },
        { "deny big { not content secret; file_size > 1k; }", NULL },
        { "observe big { file_size > 1k; }", NULL },
        { "deny x { mode 4000; }", NULL },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  text[256];

        snprintf(text, sizeof(text), "%s default deny;", cases[i].rules);
        p = policy(text);

        assert_int_equal(sb_policy_check_limits(p, &r, &v), SB_OK);

        if ((v.decision == SB_POLICY_DENY) != (cases[i].rule != NULL)
            || (cases[i].rule && (!v.limit
                                  || strcmp(v.rule, cases[i].rule) != 0)))
        {
            fail_msg("%s: %s", cases[i].rules, v.rule ? v.rule : "passed");
        }

        sb_policy_free(p);
    }
}


/* --- who and where ---------------------------------------------------------- */

/* Which rule denies it; NULL: none. */
static void
denied_by(const sb_policy_request_t *r, const char *text, const char *rule)
{
    sb_policy_t          *p = policy(text);
    sb_policy_verdict_t   v = judge(p, r);

    if ((v.decision == SB_POLICY_DENY) != (rule != NULL)
        || (rule && strcmp(rule, v.rule) != 0))
    {
        fail_msg("%s: %s", text, v.rule);
    }

    sb_policy_free(p);
}


/* What a path has in it is asked without judging it; a pattern is not. */
static void
test_texts(void)
{
    size_t               i;
    sb_policy_file_t     f = { .mode = SB_MODE_NONE };
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.read")),
                               .files = &f, .nfiles = 1, .files_total = 1 };

    static const struct {
        const char  *path, *rule;
    } texts[] = {
        { "/a/b", NULL }, { "/a\\b", "backslash" }, { "/a/..", "climbs" },
        { "/a\\..\\b", "climbs" }, { "/$A", "expands" }, { "~/a", "expands" },
        { "a", "relative" }, { "", "empty" }, { "/\xff", "utf8" },
        { "/a\tb", "control" },
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        f.path = sb_str(texts[i].path, strlen(texts[i].path));
        denied_by(&r, "deny expands { path_has expands; } "
                  "deny climbs { path_has climbs; } "
                  "deny empty { path_has empty; } "
                  "deny relative { path_has relative; } "
                  "deny utf8 { path_has not-utf8 empty; } "
                  "deny backslash { operation file.*; path_has backslash; } "
                  "deny control { path_has control; } default allow;",
                  texts[i].rule);
    }

    f.path = sb_lit("/w/a\\b");
    denied_by(&r, "deny a { not path_has backslash; } default allow;", NULL);
    denied_by(&r, "allow a { path_has backslash; } deny b { path /x; } "
              "default allow;", NULL);
    denied_by(&r, "deny a { path_has expands; path /x; } default allow;", NULL);
    denied_by(&r, "deny a { path_has backslash; path /x; } default allow;", "a");
    r.nfiles = 0;
    r.files_total = 0;
    denied_by(&r, "deny a { path_has backslash; } deny b { not path_has empty; } "
              "default allow;", NULL);
}


static void
test_images(void)
{
    sb_str_t             both[] = { sb_lit("python:3"), sb_lit("evil/x") };
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("sandbox.create")) };

    /* one that is not named */
    denied_by(&r, "deny a { not image python:*; } default allow;", "a");
    denied_by(&r, "deny a { image python:*; } default allow;", NULL);
    denied_by(&r, "deny a { image unread; } default allow;", "a");
    denied_by(&r, "deny a { image \"unread\"; } default allow;", NULL);
    denied_by(&r, "allow a { image *; } default deny;", "default");
    denied_by(&r, "allow a { not image evil/*; } default deny;", "default");

    /* ... beside one that is */
    r.has_image = true;
    r.image = both[0];
    denied_by(&r, "deny a { not image python:*; } default allow;", NULL);
    denied_by(&r, "deny a { image unread; } default allow;", NULL);
    denied_by(&r, "allow a { image python:*; } default deny;", NULL);
    r.image_unread = true;
    denied_by(&r, "deny a { not image python:*; } default allow;", "a");
    denied_by(&r, "deny a { image unread; } default allow;", "a");
    denied_by(&r, "allow a { image python:*; } default deny;", "default");

    /* several */
    r = (sb_policy_request_t) { .op = sb_op_find(sb_lit("pool.create")),
                                .images = both, .nimages = 2 };
    denied_by(&r, "deny a { image evil/*; } default allow;", "a");
    denied_by(&r, "deny a { not image python:*; } default allow;", "a");
    denied_by(&r, "deny a { not image python:* evil/*; } default allow;", NULL);
    denied_by(&r, "allow a { image python:*; } default deny;", "default");
    denied_by(&r, "allow a { image python:* evil/*; } default deny;", NULL);
    denied_by(&r, "allow a { not image evil/*; } default deny;", "default");

    r.nimages = 0;
    denied_by(&r, "deny a { not image *; } default allow;", "a");
    r.op = sb_op_find(sb_lit("template.update"));
    denied_by(&r, "deny a { not image *; } default allow;", "a");

    /* where none is started there is nothing to ask about */
    r.op = sb_op_find(sb_lit("pool.update"));
    denied_by(&r, "deny a { not image *; } deny b { image *; } default allow;",
              NULL);
}


static void
test_conditions(void **state)
{
    sb_policy_pair_t     m = { sb_lit("team"), sb_lit("red-1") };
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("sandbox.create")),
                               .actor_type = sb_lit("agent"),
                               .actor_id = sb_lit("bot-7"),
                               .role = sb_lit("operator") };

    (void) state;

    denied_by(&r, "deny a { actor agent; } default allow;", "a");
    denied_by(&r, "deny a { actor agent/bot-*; } default allow;", "a");
    denied_by(&r, "deny a { actor user agent/x; } default allow;", NULL);
    denied_by(&r, "deny a { not actor user; } default allow;", "a");
    denied_by(&r, "deny a { role viewer operator; } default allow;", "a");
    denied_by(&r, "deny a { role viewer; } default allow;", NULL);
    denied_by(&r, "deny a { access write; } default allow;", "a");
    denied_by(&r, "deny a { access read; } default allow;", NULL);
    denied_by(&r, "deny a { operation sandbox.*; not operation *.delete; } "
              "default allow;", "a");
    denied_by(&r, "allow a { operation sandbox.*; } default deny;", NULL);
    denied_by(&r, "allow a { operation file.*; } default deny;", "default");
    denied_by(&r, "deny a; allow b; default allow;", "a");
    denied_by(&r, "observe a; default allow;", NULL);

    /* nothing to ask about: neither a condition nor its opposite holds */
    denied_by(&r, "deny a { sandbox x; } deny b { not sandbox x; } "
              "deny c { not path /x; } deny d { not command x; } "
              "deny f { not port 1; } "
              "deny g { not metadata a=b; } default allow;", NULL);

    test_images();

    r.has_image = true;
    r.image = sb_lit("python:3.12");
    denied_by(&r, "deny a { not image python:*; } default allow;", NULL);
    denied_by(&r, "deny a { image python:3.*; } default allow;", "a");

    test_texts();

    r.port = 8080;
    denied_by(&r, "deny a { port 80 8000-8100; } default allow;", "a");
    denied_by(&r, "deny a { port 80 8081-8100; } default allow;", NULL);

    /* metadata that is not known does not allow, and does not save */
    r.sandbox = sb_lit("s-1");
    denied_by(&r, "deny a { metadata team=red; } default allow;", "a");
    denied_by(&r, "allow a { metadata team=red-*; } default deny;", "default");

    r.has_metadata = true;
    r.metadata = &m;
    r.nmetadata = 1;
    denied_by(&r, "allow a { metadata team=red-*; } default deny;", NULL);
    denied_by(&r, "deny a { not metadata team=blue; } default allow;", "a");
    denied_by(&r, "deny a { sandbox s-*; } default allow;", "a");
}


/* --- commands --------------------------------------------------------------- */

static void
test_shell(void **state)
{
    size_t      i, k;
    sb_buf_t    b = { .max = 65536 };
    sb_shell_t  s;

    static const struct {
        const char  *text;
        bool         unread;
        const char  *commands;
    } cases[] = {
        { "ls -l", false, "ls -l\n" },
        { "  a;b&&c||d|e&f\ng\n", false, "a\nb\nc\nd\ne\nf\ng\n" },
        { "r'm' -\"r\"f \\/x", false, "rm -rf /x\n" },
        { "r\\\nm x", false, "rm x\n" },
        { "$'\\x72\\155' x", false, "rm x\n" },
        { "echo \"$(rm x)\" `rm y`", false,
          "rm x\nrm y\necho $(rm x) \n" },
        { "echo \"${a:-$(rm x)}\" $(( $(rm y) ))", false,
          "rm x\nrm y\necho ${a:-$(rm x)} $(( $(rm y) ))\n" },
        { "echo $((rm y);(ls))", false, "rm y\nls\necho $((rm y);(ls))\n" },
        { "(a; {  b; })", false, "a\nb\n" },
        { "if a; then b; else c; fi", false, "a\nb\nc\n" },
        { "while ! a; do b; done", false, "a\nb\n" },
        { "f() { rm x; }; function g { rm y; }", false, "f\nrm x\nrm y\n" },
        { "sh -c 'rm x; ls'", false, "sh -c rm x; ls\nrm x\nls\n" },
        { "bash -lc \"rm x\"", false, "bash -lc rm x\nrm x\n" },
        { "/bin/bash -e -o pipefail -c 'rm x'", false,
          "/bin/bash -e -o pipefail -c rm x\nrm x\n" },
        { "bash x.sh", true, "bash x.sh\n" },
        { "curl u | sh", true, "curl u\nsh\n" },
        { "bash <<< 'rm x'", false, "bash <<< rm x\nrm x\n" },
        { "sh <<E\nrm x\nE\nls", false, "sh\nrm x\nls\n" },
        { "cat <<E\nrm x $(rm y)\nE\nls", false, "cat\nrm y\nls\n" },
        { "cat <<'E'\nrm x $(rm y)\nE\nls", false, "cat\nls\n" },
        { "cat <<-E\n\tx\n\tE\nls", false, "cat\nls\n" },
        { "env A=1 rm x", false, "env A=1 rm x\nA=1\nrm x\n" },
        { "env -u B A=1 rm x", false, "env -u B A=1 rm x\nA=1\nrm x\n" },
        { "env - rm x", false, "env - rm x\nrm x\n" },
        { "env -S 'rm x'", false, "env -S rm x\nrm x\n" },
        { "sudo -u bob -- rm x", false, "sudo -u bob -- rm x\nrm x\n" },
        { "sudo --user bob -ubob -n rm x", false,
          "sudo --user bob -ubob -n rm x\nrm x\n" },
        { "nohup nice -n 5 timeout -k 1 9 rm x", false,
          "nohup nice -n 5 timeout -k 1 9 rm x\nnice -n 5 timeout -k 1 9 rm "
          "x\ntimeout -k 1 9 rm x\nrm x\n" },
        { "time { rm x; }", false, "time { rm x\nrm x\n" },
        { "time -p { rm x; }", false, "time -p { rm x\nrm x\n" },
        { "time ! A=1 rm x", false, "time ! A=1 rm x\nA=1\nrm x\n" },
        { "! time while rm x; do b; done", false,
          "time while rm x\nrm x\nb\n" },
        { "time time if rm x; then b; fi", false,
          "time time if rm x\ntime if rm x\nrm x\nb\n" },
        { "coproc { rm x; }", false, "coproc { rm x\nrm x\n" },
        { "coproc N { rm x; }", false, "coproc N { rm x\nN { rm x\nrm x\n" },
        { "coproc rm '{' x", false, "coproc rm { x\nrm { x\n" },
        { "coproc N while rm x; do b; done", false,
          "coproc N while rm x\nN while rm x\nrm x\nb\n" },
        { "coproc ls -l", false, "coproc ls -l\nls -l\n" },
        { "time coproc N { rm x; }", false,
          "time coproc N { rm x\ncoproc N { rm x\nN { rm x\nrm x\n" },
        { "coproc N case x in x) ls; esac", true, NULL },
        { "setpriv rm x", false, "setpriv rm x\nrm x\n" },
        { "setpriv --reuid 0 --no-new-privs rm x", true,
          "setpriv --reuid 0 --no-new-privs rm x\nrm x\n" },
        { "hash -p /bin/rm ls; ls x", true,
          "hash -p /bin/rm ls\nls x\n" },
        { "hash -r", false, "hash -r\n" },
        { "mapfile -tC 'rm x' -c 1", true, NULL },
        { "readarray -C 'rm x' a", true, NULL },
        { "mapfile -t a", false, "mapfile -t a\n" },
        { "xargs -I {} -n1 rm {}", true, "xargs -I {} -n1 rm {}\nrm {}\n" },
        { "find / -name x -exec rm {} \\; -o -execdir sh -c 'ls' ';'", false,
          "find / -name x -exec rm {} ; -o -execdir sh -c ls ;\nrm {}\n"
          "sh -c ls\nls\n" },
        { "eval rm x", false, "eval rm x\nrm x\n" },
        { "eval \"$X\"", true, NULL },
        { "trap 'rm x' EXIT", false, "trap rm x EXIT\nrm x\n" },
        { "su bob -c 'rm x'", false, "su bob -c rm x\nrm x\n" },
        { "A=1 B=2 rm x", false, "A=1\nB=2\nrm x\n" },
        { ">o 2>&1 rm x <i", false, "rm x > o 2 >& 1 < i\n" },
        { "a >(rm x)", false, "rm x\na >(rm x)\n" },
        { "$X rm", true, "$X rm\n" },
        { "{rm,-rf,/}", true, "{rm,-rf,/}\n" },
        { "/bin/r? x", true, "/bin/r? x\n" },
        { "python3 -c 'x'", true, "python3 -c x\n" },
        { "python3 x.py", false, "python3 x.py\n" },
        { ". ./x", true, ". ./x\n" },
        { "echo 'a", true, "echo a\n" },
        { "echo $(a", true, NULL },
        { "# rm x\nls # rm y", false, "ls\n" },
        { "echo a#b", false, "echo a#b\n" },
        { "echo $HOME", false, "echo $HOME\n" },
        { "$($($($($($($($($(ls)))))))))", true, NULL },
        { "", false, "" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sb_shell_read(&s, sb_str(cases[i].text,
                                                  strlen(cases[i].text))),
                         SB_OK);
        b.len = 0;

        for (k = 0; k < s.n; k++) {
            assert_int_equal(sb_buf_add(&b, s.out.data + s.commands[k].at,
                                        s.commands[k].len), SB_OK);
            assert_int_equal(sb_buf_add_c(&b, '\n'), SB_OK);
        }

        if (s.unread != cases[i].unread
            || (cases[i].commands
                && strcmp(sb_buf_cstr(&b), cases[i].commands) != 0))
        {
            fail_msg("%s: unread %d\n%s", cases[i].text, s.unread,
                     sb_buf_cstr(&b));
        }

        sb_shell_free(&s);
    }

    sb_buf_free(&b);
}


static void
test_mounts(void **state)
{
    size_t               i;
    sb_policy_t         *p;
    sb_policy_file_t     f = { .mode = SB_MODE_NONE };
    sb_policy_request_t  r = { .files = &f, .nfiles = 1, .files_total = 1 };

    static const sb_str_t  mounts[] = { { "/data", 5 }, { "//srv/./deep/", 13 },
                                        { "/./", 3 } };

    static const struct {
        const char  *op, *rules, *path;
        int          known;         /* 0: no, 1: yes, 2: there are none */
        bool         denied;
    } cases[] = {
        { "file.write", "deny a { not path <mounts>; }", "/data/x", 1, false },
        { "file.write", "deny a { not path <mounts>; }", "/data", 1, false },
        { "file.write", "deny a { not path <mounts>; }", "/srv/deep/x", 1,
          false },
        { "file.write", "deny a { not path <mounts>; }", "/database", 1, true },
        { "file.write", "deny a { not path <mounts>; }", "/srv", 1, true },
        { "file.write", "deny a { not path <mounts>; }", "/", 1, true },
        { "file.write", "deny a { not path <mounts>; }", "/data/x", 2, true },
        { "file.write", "deny a { not path <mounts>; }", "/data/x", 0, true },
        { "file.write", "deny a { not path /w <mounts>; }", "/w/x", 0, false },
        { "file.write", "deny a { path <mounts>; }", "/x", 0, true },
        { "file.write", "deny a { path <mounts>; }", "/x", 1, false },
        { "file.write", "deny a { path <mounts> !/x; }", "/x", 0, false },
        { "file.write", "deny a { path /data !<mounts>; }", "/data", 1, false },
        { "dir.delete", "deny a { path <mounts>; }", "/srv", 1, true },
        { "dir.delete", "deny a { path <mounts>; }", "/", 1, true },
        { "dir.delete", "deny a { path <mounts>; }", "/sr", 1, false },
        { "file.write", "allow a { path <mounts>; } deny b;", "/data/x", 0,
          true },
        { "file.write", "allow a { not path <mounts>; } deny b;", "/x", 0,
          true },
        { "file.write", "allow a { path <mounts>; } deny b;", "/data/x", 1,
          false },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  text[256];

        snprintf(text, sizeof(text), "%s default allow;", cases[i].rules);
        p = policy(text);

        r.op = sb_op_find(sb_str(cases[i].op, strlen(cases[i].op)));
        r.has_mounts = cases[i].known > 0;
        r.mounts = mounts;
        r.nmounts = cases[i].known == 1 ? 3 : 0;
        f.path = sb_str(cases[i].path, strlen(cases[i].path));

        if ((judge(p, &r).decision == SB_POLICY_DENY) != cases[i].denied) {
            fail_msg("%s %s, %s", cases[i].op, cases[i].path, cases[i].rules);
        }

        assert_int_equal(sb_policy_asks(p, r.op), SB_POLICY_MOUNTS);
        assert_int_equal(sb_policy_asks(p, sb_op_find(sb_lit("file.write"))),
                         SB_POLICY_MOUNTS);
        sb_policy_free(p);
    }

    p = policy("deny a { operation file.write; metadata a=b; } default allow;");
    assert_int_equal(sb_policy_asks(p, sb_op_find(sb_lit("file.write"))),
                     SB_POLICY_METADATA);
    assert_int_equal(sb_policy_asks(p, sb_op_find(sb_lit("file.read"))), 0);
    sb_policy_free(p);
}


static void
test_commands(void **state)
{
    size_t               i;
    char                *text;
    sb_policy_t         *deny, *allow, *unread, *slow;
    sb_policy_verdict_t  v;

    static const char *const  bad[] = {
        "rm -rf /", "ls; rm -rf /", "ls && rm -rf /x", "true || rm -rf /",
        "echo $(rm -rf /)", "echo `rm -rf /`", "sh -c 'rm -rf /'",
        "bash -lc \"rm -rf /\"", "sh -c \"sh -c 'rm -rf /'\"",
        "env X=1 rm -rf /", "sudo -n rm -rf /", "nohup rm -rf / &",
        "ls\nrm -rf /", "r\\m -r\\f /", "'rm' -\"rf\" /", "/bin/rm -rf /",
        "/usr/bin/../bin/rm -rf /", "cat <(rm -rf /)", "eval 'rm -rf /'",
        "eval rm -rf /", "sh <<X\nrm -rf /\nX", "x=$(rm -rf /)",
        "rm   -rf\t/", "( rm -rf / )", "{ rm -rf /; }", "! rm -rf /",
        "time rm -rf /", ">/dev/null rm -rf /", "A=1 rm -rf /",
        "time { rm -rf /; }", "time ! rm -rf /", "coproc N { rm -rf /; }",
    };

    static const char *const  fine[] = {
        "ls -la", "echo rm -rf", "npm rm -rf x", "echo 'do not rm -rf /'",
        "grep -r 'rm -rf' .", "cat <<X\nrm -rf /\nX", "rmdir x",
        "git commit -m 'rm -rf / is bad'", "python3 x.py",
        "# rm -rf /\nls", "echo \"a; rm -rf /\"",
    };

    static const char *const  allowed[] = {
        "ls", "ls -l | sort", "ls && sort x", "ls $HOME", "sort <<X\nrm\nX",
    };

    static const char *const  refused[] = {
        "ls; rm x", "ls | sh", "ls $(rm x)", "ls `rm x`", "ls <(rm x)",
        "sudo ls", "X=1 ls", "$X", "l? x", "ls\nrm x", "bash x", "/tmp/ls",
        "sh -c 'ls'", "ls 'x", "",
    };

    (void) state;

    deny = policy("deny no-rm { command \"^rm\\s+-rf\\b\"; }\n"
                  "default allow;");
    allow = policy("allow some { command \"^ls\\b\" \"^sort\\b\"; }\n"
                   "default deny;");
    unread = policy("deny dark { command unread; }\ndefault allow;");
    slow = policy("deny slow { command \"(a+)+$\"; }\ndefault allow;");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        v = judge_command(deny, bad[i]);

        if (v.decision != SB_POLICY_DENY) {
            fail_msg("passed: %s", bad[i]);
        }
    }

    for (i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        v = judge_command(deny, fine[i]);

        if (v.decision != SB_POLICY_ALLOW) {
            fail_msg("refused: %s", fine[i]);
        }
    }

    for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        v = judge_command(allow, allowed[i]);

        if (v.decision != SB_POLICY_ALLOW) {
            fail_msg("refused: %s", allowed[i]);
        }
    }

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        v = judge_command(allow, refused[i]);

        if (v.decision != SB_POLICY_DENY) {
            fail_msg("passed: %s", refused[i]);
        }
    }

    /* words in an array */

    {
        sb_policy_request_t  r = { .op = sb_op_find(sb_lit("command.execute")),
                                   .has_command = true, .argv = true };

        r.command = sb_lit("[\"/bin/rm\",\"-rf\",\"/\"]");
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_DENY);
        r.command = sb_lit("[\"sh\",\"-c\",\"ls; rm -rf /\"]");
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_DENY);
        r.command = sb_lit("[\"echo\",\"it's; rm -rf /\"]");
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_ALLOW);
        r.command = sb_lit("[\"ls\",\";\",\"rm\"]");
        assert_int_equal(judge(allow, &r).decision, SB_POLICY_ALLOW);

        /* several of them: each is one */

        r.command = sb_lit("[[\"\"],[\"ls\",\";\"],[\"rm\",\"-rf\"]]");
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_DENY);
        assert_int_equal(judge(allow, &r).decision, SB_POLICY_DENY);
        r.command = sb_lit("[[\"\"],[\"rm\",\"-rf\"]]");
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_DENY);
        r.command = sb_lit("[[\"ls\",\";\"],[\"ls\",\"rm\"]]");
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_ALLOW);
        assert_int_equal(judge(allow, &r).decision, SB_POLICY_ALLOW);
        assert_false(judge(deny, &r).unread);

        /* what is no word is not read */

        r.command = sb_lit("[\"ls\",{\"a\":1}]");
        assert_true(judge(deny, &r).unread);
        r.command = sb_lit("\"ls\"");
        assert_true(judge(deny, &r).unread);
        assert_int_equal(judge(allow, &r).decision, SB_POLICY_DENY);

        /* nor is a template */

        r.op = sb_op_find(sb_lit("template.create"));
        r.has_command = false;
        r.command = sb_lit("");
        assert_int_equal(judge(unread, &r).decision, SB_POLICY_DENY);
        assert_int_equal(judge(allow, &r).decision, SB_POLICY_DENY);
        assert_int_equal(judge(deny, &r).decision, SB_POLICY_ALLOW);
    }

    /* what is not read is said, and may be refused */

    v = judge_command(deny, "curl x | sh");
    assert_int_equal(v.decision, SB_POLICY_ALLOW);
    assert_true(v.unread);
    assert_false(judge_command(deny, "ls").unread);
    assert_int_equal(judge_command(unread, "curl x | sh").decision,
                     SB_POLICY_DENY);
    assert_int_equal(judge_command(unread, "ls").decision, SB_POLICY_ALLOW);

    /* what takes too long, or is too long, is refused */

    text = malloc(SB_POLICY_COMMAND_MAX + 2);
    assert_non_null(text);

    memset(text, 'a', SB_POLICY_COMMAND_MAX + 1);
    text[100] = '!';
    text[101] = '\0';
    v = judge_command(slow, text);
    assert_int_equal(v.decision, SB_POLICY_DENY);
    assert_true(v.unread);

    text[100] = 'a';
    text[101] = 'a';
    text[SB_POLICY_COMMAND_MAX + 1] = '\0';
    assert_int_equal(judge_command(deny, text).decision, SB_POLICY_DENY);

    text[SB_POLICY_COMMAND_MAX] = '\0';
    assert_int_equal(judge_command(deny, text).decision, SB_POLICY_ALLOW);

    free(text);
    sb_policy_free(deny);
    sb_policy_free(allow);
    sb_policy_free(unread);
    sb_policy_free(slow);
}


static void
test_reads(void **state)
{
    sb_policy_t    *p;
    const sb_op_t  *op = sb_op_find(sb_lit("file.write"));

    (void) state;

    p = policy("deny a { operation file.write; path x; } default allow;");
    assert_true(sb_policy_reads(p, op));
    assert_false(sb_policy_reads(p, sb_op_find(sb_lit("file.read"))));
    sb_policy_free(p);

    p = policy("deny a { command x; } deny b { operation *.delete; path x; } "
               "default allow;");
    assert_false(sb_policy_reads(p, op));
    sb_policy_free(p);

    p = policy("deny a { access write; request_size > 1m; } default allow;");
    assert_true(sb_policy_reads(p, op));
    sb_policy_free(p);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_odd_paths),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_many_paths),
        cmocka_unit_test(test_path_bounds),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_early_limits),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_shell),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
