/*
 * Policies.  A seed is a policy, a line "--", an operation, a line feed, and
 * the rest: a command, and at the same time a path.
 *
 * Beside memory errors it looks for a verdict without a rule, a denial without
 * a reason, a path that climbs, expands or is relative and was allowed though a
 * rule about paths was met, and for a policy that does not read back from its
 * own description.
 */

#include <stdio.h>
#include <stdlib.h>

#include "path.h"
#include "policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
judge(const sb_policy_t *p, const sb_op_t *op, sb_str_t rest)
{
    sb_policy_file_t     f = { .path = rest, .mode = 644, .has_size = true,
                               .size = rest.len };
    sb_policy_request_t  r = { .op = op, .actor_type = sb_lit("agent"),
                               .actor_id = sb_lit("a"),
                               .role = sb_lit("operator"),
                               .sandbox = sb_lit("s"), .port = 44772,
                               .has_command = true, .command = rest,
                               .has_image = true, .image = rest,
                               .files = &f, .nfiles = 1, .files_total = 1,
                               .has_size = true, .size = rest.len };
    sb_policy_verdict_t  v;

    if (sb_policy_check(p, &r, &v) != SB_OK || v.rule == NULL || v.line == 0
        || (v.decision == SB_POLICY_DENY && v.reason == NULL))
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sb_buf_t            b = { .max = 16 * SB_POLICY_TEXT_MAX };
    sb_str_t            all = sb_str(data, size), text, name, rest;
    const char         *cut, *eol;
    sb_policy_t        *p, *strict;
    const sb_op_t      *op;
    sb_policy_error_t   e;
    sb_policy_verdict_t v;

    static const char  roots[] = "allow in { path /w/; } default deny;";

    cut = size ? memmem(data, size, "\n--\n", 4) : NULL;
    text = cut ? sb_str(all.data, (size_t) (cut + 1 - all.data)) : all;
    rest = cut ? sb_str(cut + 4, (size_t) (all.data + size - cut - 4)) : all;

    eol = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;
    name = eol ? sb_str(rest.data, (size_t) (eol - rest.data)) : rest;
    rest = eol ? sb_str(eol + 1, rest.len - name.len - 1) : rest;

    op = sb_op_find(name);
    op = op ? op : sb_op_find(sb_lit("command.execute"));

    switch (sb_policy_parse(text, "p", &p, &e)) {

    case SB_OK:
        judge(p, op, rest);

        if (sb_policy_describe(p, &b) == SB_NOMEM) {
            abort();
        }

        (void) sb_policy_reads(p, op);
        sb_policy_free(p);
        break;

    case SB_ERROR:
        if (e.line == 0 || e.column == 0 || e.text[0] == '\0') {
            abort();
        }

        break;

    default:
        abort();
    }

    sb_buf_free(&b);

    if (sb_policy_parse(sb_str(roots, sizeof(roots) - 1), "p", &strict, &e)
        != SB_OK)
    {
        abort();
    }

    {
        sb_policy_file_t     f = { .path = rest, .mode = SB_MODE_NONE };
        sb_policy_request_t  r = { .op = sb_op_find(sb_lit("file.write")),
                                   .files = &f, .nfiles = 1,
                                   .files_total = 1 };

        if (sb_policy_check(strict, &r, &v) != SB_OK
            || (v.decision == SB_POLICY_ALLOW
                && (sb_path_flags(rest) & (unsigned) ~SB_PATH_CONTROL)))
        {
            abort();
        }
    }

    sb_policy_free(strict);

    return 0;
}
