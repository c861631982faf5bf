/*
 * Questions about a policy.  Beside memory errors it looks for an error without
 * a reason or with one that is no JSON text, and for an answer that is none.
 */

#include <stdlib.h>

#include "policy_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check(const sb_policy_request_t *r)
{
    sb_buf_t             b = { .max = 64 * 1024 };
    sb_jdoc_t           *doc;
    sb_policy_t         *p;
    sb_policy_error_t    e;
    sb_policy_verdict_t  v;

    static const char  rules[] = "observe o { command a; } deny d { path b; }"
                                 "deny m { metadata c=d*; } default allow;";

    if (sb_policy_parse(sb_str(rules, sizeof(rules) - 1), "p", &p, &e) != SB_OK
        || sb_policy_check(p, r, &v) != SB_OK
        || sb_buf_add_c(&b, '{') != SB_OK)
    {
        abort();
    }

    if (sb_policy_answer(&v, &b) == SB_OK) {

        if (sb_buf_add_c(&b, '}') != SB_OK) {
            abort();
        }

        doc = sb_jdoc_parse(sb_str(b.data, b.len), NULL, NULL);

        if (doc == NULL || sb_jv_str(sb_jdoc_root(doc), "rule").len == 0) {
            abort();
        }

        sb_jdoc_free(doc);
    }

    sb_buf_free(&b);
    sb_policy_free(p);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sb_rc_t               rc;
    sb_policy_question_t  q;

    rc = sb_policy_question(&q, sb_str(data, size));

    if (rc == SB_OK) {
        check(&q.request);

    } else if (rc != SB_ERROR || q.why[0] == '\0' || strpbrk(q.why, "\"\\")) {
        abort();
    }

    sb_policy_question_free(&q);

    return 0;
}
