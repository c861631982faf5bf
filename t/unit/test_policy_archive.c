/* Conditions about archives: the language, what waits for facts, what the facts
 * say, what is not known; and patterns on their way to who sees the names. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "path.h"
#include "policy.h"
#include "policy_names.h"


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
judge(const sb_policy_t *p, sb_policy_file_t *f, size_t n)
{
    sb_policy_verdict_t  v;
    sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.write")),
                               .files = f, .nfiles = n, .files_total = n };

    assert_int_equal(sb_policy_check(p, &r, &v), SB_OK);

    return v;
}


/* One file of facts; the rule that denies it, or NULL. */
static const char *
denied(const char *text, const char *path, sb_policy_archive_e archive,
    const sb_inspect_t *facts)
{
    static char          rule[64];
    sb_policy_t         *p = policy(text);
    sb_policy_file_t     f = { .path = sb_str(path, strlen(path)),
                               .mode = SB_MODE_NONE, .archive = archive,
                               .facts = facts };
    sb_policy_verdict_t  v = judge(p, &f, 1);

    (void) snprintf(rule, sizeof(rule), "%s%s%s", v.rule ? v.rule : "",
                    v.uninspected ? " unknown" : "", v.limit ? " limit" : "");
    sb_policy_free(p);

    return v.decision == SB_POLICY_DENY ? rule : NULL;
}


static void
test_errors(void **state)
{
    char               *text;
    size_t              i;
    sb_policy_t        *p;
    sb_policy_error_t   e;

    static const char  *cases[][2] = {
        { "deny a { archive bad; }", "p:1:18: archive is any, unsafe, climbs, "
          "escapes, links, devices, set-id, encrypted, broken, inconsistent, "
          "duplicates or misnamed" },
        { "deny a { archive; }", "p:1:17: a value is missing here" },
        { "deny a { archive_size 3; }", "p:1:23: \">\" and a limit are missing "
          "here" },
        { "deny a { archive_size > 3x; }", "p:1:25: \"3x\" is no size such as "
          "128m" },
        { "deny a { archive_entries > 3k; }", "p:1:28: \"3k\" is no number" },
        { "deny a { archive_ratio > 1 2; }", "p:1:29: one limit is wanted "
          "here" },
        { "deny a { archive_path ../x; }", "p:1:23: a path pattern has a \".\" "
          "or \"..\" segment, which no judged path has" },
        { "deny a { archive_path <mounts>; }", "p:1:23: an archive has no "
          "mounts" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sb_policy_parse(sb_str(cases[i][0],
                                                strlen(cases[i][0])), "p", &p,
                                         &e), SB_ERROR);
        assert_string_equal(e.text, cases[i][1]);
    }

    /* so many conditions, and so many bytes of patterns */

    text = malloc(65536);
    assert_non_null(text);
    text[0] = '\0';

    for (i = 0; i <= SB_IN_CONDITIONS; i++) {
        (void) sprintf(text + strlen(text), "deny r%zu { archive_path x; }\n",
                       i);
    }

    assert_int_equal(sb_policy_parse(sb_str(text, strlen(text)), "p", &p, &e),
                     SB_ERROR);
    assert_non_null(strstr(e.text, "more than 64 archive_path"));

    *strstr(text, "deny r64") = '\0';
    strcat(text, "default allow;");
    sb_policy_free(policy(text));

    strcpy(text, "deny a { archive_path");

    for (i = 0; i < SB_IN_PATTERNS / 108; i++) {
        (void) sprintf(text + strlen(text), " %0100zu", i);
    }

    i = strlen(text);
    strcpy(text + i, "; } default allow;");
    sb_policy_free(policy(text));

    (void) sprintf(text + i, " %0100d; }", 0);
    assert_int_equal(sb_policy_parse(sb_str(text, strlen(text)), "p", &p, &e),
                     SB_ERROR);
    assert_non_null(strstr(e.text, "longer than 32768 bytes"));

    free(text);
}


static void
test_facts(void **state)
{
    size_t        i;
    sb_inspect_t  fine = { .found = SB_IN_ARCHIVE, .counts = { 3, 300, 100, 2,
                                                               1 } };
    sb_inspect_t  bad, cut;

    static const struct {
        const char  *text;
        unsigned     found;
    } words[] = {
        { "climbs", SB_IN_CLIMBS }, { "escapes", SB_IN_ESCAPES },
        { "links", SB_IN_LINKS }, { "devices", SB_IN_DEVICES },
        { "set-id", SB_IN_SETID }, { "encrypted", SB_IN_ENCRYPTED },
        { "broken", SB_IN_BROKEN }, { "inconsistent", SB_IN_INCONSISTENT },
        { "duplicates", SB_IN_DUPLICATES },
    };
    static const struct {
        const char  *text;
        size_t       count;
    } limits[] = {
        { "archive_entries > 3", SB_IN_ENTRIES },
        { "archive_size > 300", SB_IN_SIZE },
        { "archive_file_size > 100", SB_IN_FILE_SIZE },
        { "archive_ratio > 2", SB_IN_RATIO },
        { "archive_depth > 1", SB_IN_DEPTH },
    };
    char  text[128];

    (void) state;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        bad = fine;
        bad.found |= words[i].found;

        (void) snprintf(text, sizeof(text), "deny a { archive %s; } "
                        "default allow;", words[i].text);
        assert_string_equal(denied(text, "/x", SB_POLICY_INSPECTED, &bad), "a");
        assert_null(denied(text, "/x", SB_POLICY_INSPECTED, &fine));
        assert_null(denied(text, "/x", SB_POLICY_NO_ARCHIVE, NULL));
        assert_string_equal(denied(text, "/x", SB_POLICY_UNINSPECTED, &fine),
                            "a unknown");
        assert_string_equal(denied("deny a { archive unsafe; } default allow;",
                                   "/x", SB_POLICY_INSPECTED, &bad), "a");

        (void) snprintf(text, sizeof(text), "allow a { not archive %s; } "
                        "default deny;", words[i].text);
        assert_string_equal(denied(text, "/x", SB_POLICY_INSPECTED, &bad),
                            "default");
        assert_null(denied(text, "/x", SB_POLICY_INSPECTED, &fine));
        assert_string_equal(denied(text, "/x", SB_POLICY_UNINSPECTED, &fine),
                            "default");
        assert_string_equal(denied(text, "/x", SB_POLICY_NO_ARCHIVE, NULL),
                            "default");
    }

    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        bad = fine;
        bad.counts[limits[i].count]++;
        cut = fine;
        cut.cut = true;

        (void) snprintf(text, sizeof(text), "deny a { %s; } default allow;",
                        limits[i].text);
        assert_null(denied(text, "/x", SB_POLICY_INSPECTED, &fine));
        assert_string_equal(denied(text, "/x", SB_POLICY_INSPECTED, &bad),
                            "a limit");
        assert_string_equal(denied(text, "/x", SB_POLICY_INSPECTED, &cut),
                            "a unknown");
        assert_null(denied(text, "/x", SB_POLICY_NO_ARCHIVE, NULL));
    }

    /* what is behind the fault may be anything */

    bad = fine;
    bad.found |= SB_IN_BROKEN;
    assert_string_equal(denied("deny a { archive climbs; } default allow;", "/x",
                               SB_POLICY_INSPECTED, &bad), "a unknown");
    assert_string_equal(denied("deny a { archive climbs; } "
                               "deny b { archive broken; } default allow;",
                               "/x", SB_POLICY_INSPECTED, &bad), "b");
    assert_string_equal(denied("deny a { archive climbs; } allow b; "
                               "default allow;", "/x", SB_POLICY_INSPECTED,
                               &bad), "a unknown");

    /* what is none but looks like it */

    bad.found = SB_IN_MISNAMED;
    assert_string_equal(denied("deny a { archive misnamed; } default allow;",
                               "/x", SB_POLICY_INSPECTED, &bad), "a");
    assert_null(denied("deny a { archive unsafe any; } default allow;", "/x",
                       SB_POLICY_INSPECTED, &bad));
    assert_null(denied("deny a { not archive any; } default allow;", "/x",
                       SB_POLICY_INSPECTED, &bad));

    /* conditions of names are numbered */

    bad = fine;
    bad.matched = 2;
    assert_string_equal(denied("deny a { archive_path x; } "
                               "deny b { archive_path y; } default allow;",
                               "/x", SB_POLICY_INSPECTED, &bad), "b");
}


/* Files that wait for facts, and how far these are to be looked for. */
static void
test_pending(void **state)
{
    sb_policy_t          *p;
    sb_policy_verdict_t   v;

    sb_policy_file_t  f[] = {
        { .path = sb_lit("/w/a"), .mode = SB_MODE_NONE,
          .archive = SB_POLICY_PENDING },
        { .path = sb_lit("/x/b"), .mode = SB_MODE_NONE,
          .archive = SB_POLICY_PENDING },
        { .path = sb_lit("/w/c"), .mode = SB_MODE_NONE },
        { .path = sb_lit("/w/small/d"), .mode = SB_MODE_NONE,
          .archive = SB_POLICY_PENDING },
        { .path = sb_lit("/bad"), .mode = SB_MODE_NONE },
    };

    (void) state;

    p = policy("deny bad { path /bad; }\n"
               "deny one { path /w/; archive unsafe; }\n"
               "deny two { path /w/small/; archive_entries > 5; }\n"
               "deny three { path /w/; archive_entries > 10; }\n"
               "deny four { path /w/; archive_size > 7; archive links; }\n"
               "observe five { archive_size > 8; }\n"
               "allow six { path /w/a; archive any; }\n"
               "deny seven { archive_size > 9; }\n"
               "default allow;\n");

    v = judge(p, f, 4);

    assert_int_equal(v.decision, SB_POLICY_ALLOW);
    assert_true(v.pending);
    assert_true(f[0].wanted);
    assert_true(f[1].wanted);
    assert_false(f[2].wanted);
    assert_true(f[3].wanted);

    assert_int_equal(f[0].most[SB_IN_ENTRIES], 10);
    assert_int_equal(f[0].most[SB_IN_SIZE], SB_IN_MOST_SIZE);
    assert_int_equal(f[1].most[SB_IN_ENTRIES], SB_IN_MOST_ENTRIES);
    assert_int_equal(f[1].most[SB_IN_SIZE], 9);
    assert_int_equal(f[3].most[SB_IN_ENTRIES], 5);
    assert_int_equal(f[3].most[SB_IN_SIZE], 9);
    assert_int_equal(f[3].most[SB_IN_DEPTH], SB_IN_MOST_DEPTH);

    /* what is denied anyway waits for nothing */

    v = judge(p, f, 5);
    assert_int_equal(v.decision, SB_POLICY_DENY);
    assert_string_equal(v.rule, "bad");
    sb_policy_free(p);

    f[1].wanted = false;
    p = policy("allow a { path /x/; } deny b { archive any; } default allow;");
    v = judge(p, &f[1], 1);
    assert_false(v.pending);
    assert_false(f[1].wanted);

    assert_int_equal(sb_policy_asks(p, sb_op_find(sb_lit("file.write"))),
                     SB_POLICY_ARCHIVE);
    assert_true(sb_policy_reads(p, sb_op_find(sb_lit("file.write"))));
    sb_policy_free(p);
}


static void
test_names(void **state)
{
    char                mem[4096];
    size_t              i, n, need;
    sb_frame_t          f;
    sb_policy_t        *p;
    sb_frame_writer_t   w;
    sb_policy_names_t  *names;

    static const struct {
        const char  *name;
        bool         directory;
        uint64_t     matched;
    } cases[] = {
        { ".env", false, 1 }, { "a/.ENV", false, 1 }, { "./.env/x", false, 1 },
        { "etc/passwd", false, 1 }, { "etc", true, 1 }, { "etc", false, 0 },
        { "a/etc/x", false, 0 }, { "ok.env", false, 0 }, { "x.exe", false, 2 },
        { "x.EXE", false, 0 }, { "etc//x.exe", false, 3 }, { "", false, 0 },
        { "keep/.env", false, 0 },
    };

    (void) state;

    p = policy("deny a { archive_path nocase .env /etc/ !/keep/.env; }\n"
               "deny b { path x; archive_path *.exe; } default allow;");

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_INSPECT, 0, 1,
                   (const uint8_t *) "0123456789abcdef", 0);
    sb_policy_names_put(p, &w);
    n = sb_frame_end(&w);
    sb_policy_free(p);

    assert_int_equal(sb_frame_read(&f, mem, n, &need), SB_OK);
    names = sb_policy_names_new(&f);
    assert_non_null(names);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (sb_policy_names_match(names, sb_str(cases[i].name,
                                                strlen(cases[i].name)),
                                  cases[i].directory) != cases[i].matched)
        {
            fail_msg("%s", cases[i].name);
        }
    }

    /* more segments than anybody needs */

    for (i = 0; i < 1024; i += 2) {
        memcpy(mem + 2048 + i, "d/", 2);
    }

    assert_int_equal(sb_policy_names_match(names, sb_str(mem + 2048, 512),
                                           false), 0);
    assert_true(sb_policy_names_match(names, sb_str(mem + 2048, 514), false)
                == UINT64_MAX);

    sb_policy_names_free(names);

    /* a pattern before its condition, and one that is none */

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_INSPECT, 0, 1,
                   (const uint8_t *) "0123456789abcdef", 0);
    sb_frame_put(&w, SB_T_PATTERN, sb_lit("x"));
    n = sb_frame_end(&w);
    assert_int_equal(sb_frame_read(&f, mem, n, &need), SB_OK);
    assert_null(sb_policy_names_new(&f));

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_INSPECT, 0, 1,
                   (const uint8_t *) "0123456789abcdef", 0);
    sb_frame_put_u64(&w, SB_T_CONDITION, 0);
    sb_frame_put(&w, SB_T_PATTERN, sb_lit("[x"));
    n = sb_frame_end(&w);
    assert_int_equal(sb_frame_read(&f, mem, n, &need), SB_OK);
    assert_null(sb_policy_names_new(&f));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
