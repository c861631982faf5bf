/* Conditions about a request as a whole. */

#include "policy_walk.h"

#include "operation_table.h"


static sb_holds_e
sb_policy_globs(const sb_policy_condition_t *c, sb_str_t text)
{
    size_t  i;

    for (i = 0; i < c->n; i++) {
        if (sb_policy_glob(c->values[i].text, text)) {
            return SB_H_YES;
        }
    }

    return SB_H_NO;
}


static sb_holds_e
sb_policy_actor(const sb_policy_condition_t *c, const sb_policy_request_t *r)
{
    size_t       i;
    sb_str_t     type, id;
    const char  *slash;

    for (i = 0; i < c->n; i++) {
        type = c->values[i].text;
        id = sb_lit("*");
        slash = memchr(type.data, '/', type.len);

        if (slash) {
            id = sb_str(slash + 1,
                        (size_t) (type.data + type.len - slash - 1));
            type.len = (size_t) (slash - type.data);
        }

        if (sb_policy_glob(type, r->actor_type)
            && sb_policy_glob(id, r->actor_id))
        {
            return SB_H_YES;
        }
    }

    return SB_H_NO;
}


static sb_holds_e
sb_policy_metadata(const sb_policy_condition_t *c,
    const sb_policy_request_t *r)
{
    size_t       i, k;
    sb_str_t     key, value;
    const char  *equals;

    if (!r->has_metadata) {
        return r->sandbox.len ? SB_H_UNKNOWN : SB_H_NONE;
    }

    for (i = 0; i < c->n; i++) {
        equals = memchr(c->values[i].text.data, '=', c->values[i].text.len);
        key = sb_str(c->values[i].text.data,
                     (size_t) (equals - c->values[i].text.data));
        value = sb_str(equals + 1, c->values[i].text.len - key.len - 1);

        for (k = 0; k < r->nmetadata; k++) {
            if (sb_eq(r->metadata[k].key, key)
                && sb_policy_glob(value, r->metadata[k].value))
            {
                return SB_H_YES;
            }
        }
    }

    return SB_H_NO;
}


/* What is in a template is not read: it is of no documented form. */
static bool
sb_policy_hidden(const sb_op_t *op)
{
    size_t  i = sb_op_index(op);

    return i == SB_OP_TEMPLATE_CREATE || i == SB_OP_TEMPLATE_UPDATE;
}


/* Of images as of commands: a refusal looks for one that matches, a permission
 * asks all of them, and that all are known. */
static sb_holds_e
sb_policy_image(const sb_policy_rule_t *rule, const sb_policy_condition_t *c,
    const sb_policy_request_t *r)
{
    bool    unread, strict, hit;
    size_t  i, k, n, hits = 0;

    i = sb_op_index(r->op);
    n = r->nimages + r->has_image;

    unread = r->image_unread || sb_policy_hidden(r->op)
             || (n == 0
                 && (i == SB_OP_SANDBOX_CREATE || i == SB_OP_POOL_CREATE));

    if (n == 0 && !unread) {
        return SB_H_NONE;
    }

    hit = false;

    for (k = 0; k < c->n; k++) {
        hit |= unread && c->values[k].unread;
    }

    for (i = 0; i < n; i++) {
        for (k = 0; k < c->n; k++) {
            if (!c->values[k].unread
                && sb_policy_glob(c->values[k].text,
                                  i < r->nimages ? r->images[i] : r->image))
            {
                hits++;
                break;
            }
        }
    }

    strict = (rule->effect == SB_PE_ALLOW) != c->negated;

    if (strict) {
        return hits == n && !unread ? SB_H_YES : SB_H_NO;
    }

    return hit || hits || (c->negated && unread) ? SB_H_YES : SB_H_NO;
}


/* Of a command, "yes" depends on what would follow from it: a refusal looks
 * for one command that matches, a permission asks all of them. */
static sb_rc_t
sb_policy_command(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_condition_t *c, sb_holds_e *holds)
{
    bool     strict;
    sb_rc_t  rc;

    if (!w->request->has_command && !sb_policy_hidden(w->request->op)) {
        *holds = SB_H_NONE;
        return SB_OK;
    }

    if (w->command == NULL) {
        rc = sb_policy_command_read(&w->command, w->request->command,
                                    w->request->argv,
                                    w->request->dark
                                    || sb_policy_hidden(w->request->op));
        if (rc != SB_OK) {
            return rc;
        }

        w->verdict->unread = sb_policy_command_unread(w->command);
    }

    strict = (rule->effect == SB_PE_ALLOW) != c->negated;

    if (strict) {
        *holds = sb_policy_command_all(w->command, c) ? SB_H_YES : SB_H_NO;
        return SB_OK;
    }

    switch (sb_policy_command_any(w->command, c)) {

    case SB_RM_NO:
        /* what is not read may still match */
        *holds = c->negated && w->verdict->unread ? SB_H_YES : SB_H_NO;
        break;

    case SB_RM_YES:
        *holds = SB_H_YES;
        break;

    default:
        *holds = SB_H_YES;
        w->verdict->unread = true;
    }

    return SB_OK;
}


static sb_holds_e
sb_policy_ports(const sb_policy_condition_t *c, uint32_t port)
{
    size_t  i;

    if (port == 0) {
        return SB_H_NONE;
    }

    for (i = 0; i < c->n; i++) {
        if (port >= c->values[i].low && port <= c->values[i].high) {
            return SB_H_YES;
        }
    }

    return SB_H_NO;
}


sb_rc_t
sb_policy_holds(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_condition_t *c, sb_holds_e *holds)
{
    const sb_policy_request_t  *r = w->request;

    *holds = SB_H_NONE;

    switch (c->kind) {

    case SB_PC_OPERATION:
        *holds = sb_policy_globs(c, sb_str(r->op->name, strlen(r->op->name)));
        break;

    case SB_PC_ACCESS:
        *holds = sb_policy_globs(c, r->op->flags & SB_OPF_MUTATES
                                    ? sb_lit("write") : sb_lit("read"));
        break;

    case SB_PC_ACTOR:
        *holds = sb_policy_actor(c, r);
        break;

    case SB_PC_ROLE:
        *holds = sb_policy_globs(c, r->role);
        break;

    case SB_PC_SANDBOX:
        if (r->sandbox.len) {
            *holds = sb_policy_globs(c, r->sandbox);
        }

        break;

    case SB_PC_METADATA:
        *holds = sb_policy_metadata(c, r);
        break;

    case SB_PC_COMMAND:
        return sb_policy_command(w, rule, c, holds);

    case SB_PC_IMAGE:
        *holds = sb_policy_image(rule, c, r);
        break;

    case SB_PC_PORT:
        *holds = sb_policy_ports(c, r->port);
        break;

    case SB_PC_REQUEST_SIZE:
        if (r->has_size) {
            *holds = r->size > c->values[0].low ? SB_H_YES : SB_H_NO;
        }

        break;

    case SB_PC_FILES:
        if (r->files_total) {
            *holds = r->files_total > c->values[0].low ? SB_H_YES : SB_H_NO;
        }

        break;

    default:
        break;
    }

    return SB_OK;
}


bool
sb_policy_outcome(const sb_policy_rule_t *rule, const sb_policy_condition_t *c,
    sb_holds_e holds)
{
    switch (holds) {

    case SB_H_NONE:
        return false;

    case SB_H_UNKNOWN:
        return rule->effect != SB_PE_ALLOW;

    default:
        return (holds == SB_H_YES) != c->negated;
    }
}
