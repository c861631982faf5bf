/* Policies as the console shows them. */

#include "policy_int.h"

#include "json.h"


static sb_rc_t
sb_policy_describe_rule(const sb_policy_rule_t *rule, sb_buf_t *out)
{
    sb_rc_t  rc;

    static const char *const  effects[] = { "allow", "deny", "observe" };

    rc = sb_buf_printf(out, "{\"effect\":\"%s\",\"line\":%u,\"name\":",
                       effects[rule->effect], rule->line);

    if (rc == SB_OK) {
        rc = sb_json_write_str(out, sb_str(rule->name, strlen(rule->name)));
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit(",\"text\":"));
    }

    if (rc == SB_OK) {
        rc = sb_json_write_str(out, rule->source);
    }

    return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
}


sb_rc_t
sb_policy_describe(const sb_policy_t *policy, sb_buf_t *out)
{
    size_t   i;
    sb_rc_t  rc;

    rc = sb_buf_add_str(out, sb_lit("{\"default\":"));

    if (rc == SB_OK) {
        rc = sb_policy_describe_rule(&policy->fallback, out);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit(",\"name\":"));
    }

    if (rc == SB_OK) {
        rc = sb_json_write_str(out, sb_str(policy->name,
                                           strlen(policy->name)));
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit(",\"rules\":["));
    }

    for (i = 0; rc == SB_OK && i < policy->n; i++) {

        if (i) {
            rc = sb_buf_add_c(out, ',');
        }

        if (rc == SB_OK) {
            rc = sb_policy_describe_rule(&policy->rules[i], out);
        }
    }

    return rc == SB_OK ? sb_buf_add_str(out, sb_lit("]}")) : rc;
}


sb_str_t
sb_policy_source(const sb_policy_t *policy)
{
    return sb_str(policy->text, policy->len);
}
