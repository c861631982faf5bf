/* Conditions about archives, of which somebody else has told what is in them. */

#include "policy_int.h"


sb_holds_e
sb_policy_inspected(const sb_policy_condition_t *c, const sb_policy_file_t *f)
{
    bool                 yes = false;
    size_t               i;
    const sb_inspect_t  *in = f->facts;

    if (f->archive != SB_POLICY_INSPECTED) {
        return SB_H_UNKNOWN;
    }

    if (!(in->found & SB_IN_ARCHIVE)) {

        for (i = 0; c->kind == SB_PC_ARCHIVE && i < c->n; i++) {
            yes = yes || (in->found & c->values[i].low);
        }

        return yes ? SB_H_YES : SB_H_NONE;
    }

    switch (c->kind) {

    case SB_PC_ARCHIVE:
        for (i = 0; i < c->n; i++) {
            yes = yes || (in->found & c->values[i].low);
        }

        break;

    case SB_PC_ARCHIVE_PATH:
        yes = in->matched >> c->index & 1;
        break;

    default:
        yes = in->counts[c->kind - SB_PC_ARCHIVE_ENTRIES] > c->values[0].low;
    }

    return yes ? SB_H_YES
           : in->cut || (in->found & SB_IN_BROKEN) ? SB_H_UNKNOWN : SB_H_NO;
}


const sb_policy_condition_t *
sb_policy_bound(const sb_policy_rule_t *rule)
{
    size_t                        i;
    const sb_policy_condition_t  *c, *bound = NULL;

    for (i = 0; i < rule->n; i++) {
        c = &rule->conditions[i];

        if (c->kind < SB_PC_OF_ARCHIVE) {
            continue;
        }

        if (bound || c->negated || c->kind < SB_PC_ARCHIVE_ENTRIES) {
            return NULL;
        }

        bound = c;
    }

    return bound;
}
