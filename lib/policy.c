/*
 * Verdicts.  Rules are walked once for each file of an operation (once for
 * what has none): the first that applies and is no `observe` decides; of
 * several files the strictest verdict stands.
 */

#include "policy_walk.h"

#include <stdlib.h>


static const char *
sb_policy_reason(const sb_policy_rule_t *rule)
{
    return rule->reason ? rule->reason : "A rule of the policy denies it.";
}


static void
sb_policy_denied(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const char *reason)
{
    sb_policy_verdict_t  *v = w->verdict;

    v->decision = SB_POLICY_DENY;
    v->rule = rule->name;
    v->line = rule->line;
    v->reason = reason;
    v->path = w->path;
    v->limit = rule->limit && reason != w->odd && !w->unknown;
    v->uninspected = w->unknown;
}


#define SB_POLICY_UNINSPECTED_REASON                                          \
    "The archive could not be looked into, or not to its end, and nobody "    \
    "knows what is in it."


/* The rules for one file, or for an operation without one. */
static void
sb_policy_one(sb_policy_walk_t *w, sb_policy_file_t *f)
{
    bool                     odd;
    size_t                   i;
    const char              *reason;
    sb_policy_verdict_t     *v = w->verdict;
    const sb_policy_rule_t  *rule, *held = NULL;

    for (i = 0; i < w->policy->n; i++) {

        rule = &w->policy->rules[i];

        if (!w->applies[i]) {
            continue;
        }

        odd = false;
        w->unknown = false;
        v->archive = NULL;

        if (rule->of_file
            && (f == NULL || !sb_policy_file(w, rule, f, &odd)))
        {
            continue;
        }

        if (w->pending) {
            w->pending = false;
            f->wanted = true;
            v->pending = true;
            sb_policy_most(w, f, i);
            return;
        }

        reason = odd ? w->odd
                 : w->unknown ? SB_POLICY_UNINSPECTED_REASON
                 : sb_policy_reason(rule);

        if (rule->effect == SB_PE_OBSERVE) {

            if (v->observed == NULL) {
                v->observed = rule->name;
                v->observed_line = rule->line;
                v->observed_reason = reason;
            }

            continue;
        }

        if (rule->effect == SB_PE_DENY && w->unknown) {
            /* denied, and perhaps by one that knows why */
            held = held ? held : rule;
            continue;
        }

        if (rule->effect == SB_PE_DENY || odd) {
            sb_policy_denied(w, rule, reason);
            return;
        }

        if (held) {
            break;
        }

        if (v->rule == NULL) {
            v->rule = rule->name;
            v->line = rule->line;
        }

        return;
    }

    if (held) {
        w->unknown = true;
        v->archive = f->facts;
        sb_policy_denied(w, held, SB_POLICY_UNINSPECTED_REASON);
        return;
    }

    w->unknown = false;
    v->archive = NULL;

    if (w->early) {
        return;
    }

    rule = &w->policy->fallback;

    if (rule->effect == SB_PE_DENY) {
        sb_policy_denied(w, rule, rule->reason ? rule->reason
                                  : "No rule of the policy allows it.");

    } else if (v->rule == NULL) {
        v->rule = rule->name;
        v->line = rule->line;
    }
}


/* Leaves what refuses by a limit, without a look at paths and before anything
 * could allow it, and what no more bytes can turn round. */
static void
sb_policy_only_limits(sb_policy_walk_t *w)
{
    bool                          keep = true;
    size_t                        i, k;
    const sb_policy_rule_t       *rule;
    const sb_policy_condition_t  *c;

    for (i = 0; i < w->policy->n; i++) {

        if (!w->applies[i]) {
            continue;
        }

        rule = &w->policy->rules[i];
        keep = keep && rule->effect != SB_PE_ALLOW;

        w->applies[i] = keep && rule->limit;

        for (k = 0; w->applies[i] && k < rule->n; k++) {
            c = &rule->conditions[k];
            w->applies[i] = c->kind < SB_PC_REQUEST_SIZE
                            || (c->kind != SB_PC_PATH
                                && c->kind != SB_PC_PATH_HAS && !c->negated);
        }
    }
}


static sb_rc_t
sb_policy_walk(sb_policy_walk_t *w)
{
    size_t                      i, k;
    sb_rc_t                     rc;
    sb_holds_e                  holds;
    const sb_policy_rule_t     *rule;
    const sb_policy_request_t  *r = w->request;

    for (i = 0; i < w->policy->n; i++) {

        rule = &w->policy->rules[i];
        w->applies[i] = 1;

        for (k = 0; w->applies[i] && k < rule->n; k++) {

            if (rule->conditions[k].kind >= SB_PC_OF_FILE) {
                continue;
            }

            rc = sb_policy_holds(w, rule, &rule->conditions[k], &holds);
            if (rc != SB_OK) {
                return rc;
            }

            w->applies[i] = sb_policy_outcome(rule, &rule->conditions[k],
                                              holds);
        }

        if (w->applies[i] && rule->of_file && r->files_total > r->nfiles) {
            sb_policy_denied(w, rule, "The request names more files than can "
                             "be judged: send them in several requests.");
            w->verdict->limit = true;
            return SB_OK;
        }
    }

    if (w->early) {
        sb_policy_only_limits(w);
    }

    if (r->nfiles == 0) {
        sb_policy_one(w, NULL);
        return SB_OK;
    }

    w->parts.segments = malloc(SB_POLICY_PATH_SEGMENTS * sizeof(sb_str_t));
    if (w->parts.segments == NULL) {
        return SB_NOMEM;
    }

    for (i = 0; i < r->nfiles; i++) {

        w->path = r->files[i].path;

        rc = w->early ? SB_OK : sb_policy_parts(w);
        if (rc != SB_OK) {
            return rc;
        }

        sb_policy_one(w, &r->files[i]);

        if (w->verdict->decision == SB_POLICY_DENY) {
            break;
        }
    }

    return SB_OK;
}


static sb_rc_t
sb_policy_judge(const sb_policy_t *policy, const sb_policy_request_t *request,
    bool early, sb_policy_verdict_t *verdict)
{
    sb_rc_t           rc;
    sb_policy_walk_t  walk, *w = &walk;

    memset(verdict, 0, sizeof(*verdict));
    memset(w, 0, sizeof(*w));

    w->policy = policy;
    w->request = request;
    w->verdict = verdict;
    w->early = early;
    w->at = sb_policy_at(request->op);
    w->tree = sb_policy_tree(request->op);

    rc = sb_policy_walk(w);

    sb_policy_command_free(w->command);
    free(w->parts.segments);
    free(w->mem);

    return rc;
}


sb_rc_t
sb_policy_check(const sb_policy_t *policy, const sb_policy_request_t *request,
    sb_policy_verdict_t *verdict)
{
    return sb_policy_judge(policy, request, false, verdict);
}


sb_rc_t
sb_policy_check_limits(const sb_policy_t *policy,
    const sb_policy_request_t *request, sb_policy_verdict_t *verdict)
{
    return sb_policy_judge(policy, request, true, verdict);
}


/* Could the rule apply to the operation, for all that is known of it? */
static bool
sb_policy_concerns(const sb_policy_t *policy, const sb_policy_rule_t *rule,
    const sb_op_t *op)
{
    size_t               i;
    sb_policy_request_t  r = { .op = op };
    sb_policy_walk_t     w = { .policy = policy, .request = &r };
    sb_holds_e           holds;

    for (i = 0; i < rule->n; i++) {

        if (rule->conditions[i].kind > SB_PC_ACCESS) {
            continue;
        }

        (void) sb_policy_holds(&w, rule, &rule->conditions[i], &holds);

        if (!sb_policy_outcome(rule, &rule->conditions[i], holds)) {
            return false;
        }
    }

    return true;
}


bool
sb_policy_reads(const sb_policy_t *policy, const sb_op_t *op)
{
    size_t                   i;
    const sb_policy_rule_t  *rule;

    for (i = 0; i < policy->n; i++) {
        rule = &policy->rules[i];

        if ((rule->of_file || rule->limit)
            && sb_policy_concerns(policy, rule, op))
        {
            return true;
        }
    }

    return false;
}


unsigned
sb_policy_asks(const sb_policy_t *policy, const sb_op_t *op)
{
    size_t                        i, k, n;
    unsigned                      asks, all = 0;
    const sb_policy_rule_t       *rule;
    const sb_policy_condition_t  *c;

    for (i = 0; i < policy->n; i++) {
        rule = &policy->rules[i];
        asks = 0;

        for (k = 0; k < rule->n; k++) {
            c = &rule->conditions[k];
            asks |= c->kind == SB_PC_METADATA ? SB_POLICY_METADATA
                    : c->kind == SB_PC_CONTENT ? SB_POLICY_CONTENT
                    : c->kind >= SB_PC_OF_ARCHIVE ? SB_POLICY_ARCHIVE : 0;

            for (n = 0; c->kind == SB_PC_PATH && n < c->n; n++) {
                asks |= c->values[n].pattern->mounts ? SB_POLICY_MOUNTS : 0;
            }
        }

        if (asks && sb_policy_concerns(policy, rule, op)) {
            all |= asks;
        }
    }

    return all;
}
