/*
 * Verdicts.  Rules are walked once for each file of an operation (once for
 * what has none): the first that applies and is no `observe` decides; of
 * several files the strictest verdict stands.
 */

#include "policy_int.h"

#include "operation_table.h"
#include "path.h"

#include <stdlib.h>
#include <time.h>


#define SB_POLICY_PATH_SEGMENTS  256
#define SB_POLICY_PATH_TIME      250000000   /* ns of one verdict's paths */
#define SB_POLICY_PATH_WORK      65536       /* bytes and 64 a pattern, between
                                               two looks at the clock */

typedef struct {
    const sb_policy_t          *policy;
    const sb_policy_request_t  *request;
    sb_policy_verdict_t        *verdict;
    sb_policy_command_t        *command;
    uint8_t                     applies[SB_POLICY_RULES_MAX];
    bool                        early;      /* limits alone */
    bool                        pending;    /* this file has to be inspected */
    bool                        unknown;    /* ... and too little is known */

    /* one path */
    sb_at_e                     at;
    bool                        tree;       /* all below it is meant too */
    char                       *mem;
    sb_path_parts_t             parts;
    const char                 *odd;        /* why it cannot be judged */
    sb_str_t                    path;

    /* the time of all of them */
    size_t                      work;       /* since the clock was looked at */
    int64_t                     until;      /* 0: it was not yet */
    bool                        late;
} sb_policy_walk_t;


/* --- what an operation does to its paths ----------------------------------- */

static const char *
sb_policy_plain_name(const sb_op_t *op)
{
    return strncmp(op->name, "isolated.", 9) == 0 ? op->name + 9 : op->name;
}


static sb_at_e
sb_policy_at(const sb_op_t *op)
{
    const char  *name = sb_policy_plain_name(op);

    if (strcmp(name, "file.write") == 0 || strcmp(name, "file.replace") == 0
        || strcmp(name, "file.read") == 0)
    {
        return SB_AT_FILE;
    }

    return strncmp(name, "dir.", 4) == 0 ? SB_AT_DIRECTORY : SB_AT_ANY;
}


static bool
sb_policy_tree(const sb_op_t *op)
{
    const char  *name = sb_policy_plain_name(op);

    /* an isolated session sees all that is below what it is given */

    return strcmp(name, "dir.delete") == 0 || strcmp(name, "file.move") == 0
           || strcmp(op->name, "isolated.create") == 0;
}


/* What is wrong with a path: it is refused, never resolved. */
static const char *
sb_policy_odd(sb_str_t path)
{
    unsigned  flags = sb_path_flags(path);

    if (flags & SB_PATH_EMPTY) {
        return "The path is empty: name an absolute one.";
    }

    if (flags & SB_PATH_NUL) {
        return "The path holds a NUL byte: remove it.";
    }

    if (flags & SB_PATH_BAD_UTF8) {
        return "The path is no valid UTF-8, which execd changes: name the "
               "file in UTF-8.";
    }

    if (flags & SB_PATH_BACKSLASH) {
        return "The path holds a \"\\\", which parts names on some systems: "
               "use \"/\".";
    }

    if (flags & SB_PATH_EXPANDS) {
        return "The path holds a \"$\" or begins with \"~\", which execd "
               "expands: name the file itself.";
    }

    if (flags & SB_PATH_RELATIVE) {
        return "The path is relative: name an absolute one.";
    }

    if (flags & SB_PATH_CLIMBS) {
        return "The path has a \"..\" segment: name the file without it.";
    }

    return NULL;
}


/* Cuts a path into segments. */
static sb_rc_t
sb_policy_parts(sb_policy_walk_t *w)
{
    char      *p, *slash, *end;
    size_t     len, n = 0;
    sb_str_t   path = w->path;

    w->parts.n = 0;
    w->odd = sb_policy_odd(path);

    if (w->odd) {
        return SB_OK;
    }

    free(w->mem);

    w->mem = malloc(path.len + 1);
    if (w->mem == NULL) {
        return SB_NOMEM;
    }

    if (sb_path_normal(w->mem, &len, path) != SB_OK) {
        w->odd = "The path cannot be judged: name an absolute one.";
        return SB_OK;
    }

    end = w->mem + len;

    for (p = w->mem + 1; p < end; p = slash + 1) {
        slash = memchr(p, '/', (size_t) (end - p));
        slash = slash ? slash : end;

        if (n == SB_POLICY_PATH_SEGMENTS) {
            w->odd = "The path has too many segments: shorten it.";
            return SB_OK;
        }

        w->parts.segments[n++] = sb_str(p, (size_t) (slash - p));
    }

    w->parts.n = n;

    return SB_OK;
}


/* --- conditions ------------------------------------------------------------- */

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


/* A condition about the request as a whole. */
static sb_rc_t
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


static bool
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


/* Have the paths taken too long?  `cost` more is to be matched. */
static bool
sb_policy_late(sb_policy_walk_t *w, size_t cost)
{
    int64_t          now;
    struct timespec  ts;

    w->work += cost;

    if (w->late || (w->until && w->work < SB_POLICY_PATH_WORK)) {
        return w->late;
    }

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    now = (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;

    w->work = 0;
    w->until = w->until ? w->until : now + SB_POLICY_PATH_TIME;
    w->late = now > w->until;

    return w->late;
}


/* Patterns decide in order, the last that matches wins.  While mounts are not
 * known, `guess` says whether the path is in one. */
static bool
sb_policy_patterns(sb_policy_walk_t *w, const sb_policy_condition_t *c,
    bool below, bool guess)
{
    bool                        match = false, hit;
    size_t                      i;
    const sb_pattern_t         *p;
    const sb_policy_request_t  *r = w->request;

    for (i = 0; i < c->n && !sb_policy_late(w, w->path.len + 64); i++) {
        p = c->values[i].pattern;

        if (p->mounts) {
            hit = r->has_mounts
                  ? sb_mounts_match(r->mounts, r->nmounts, &w->parts,
                                    below && !p->negated)
                  : guess;

        } else {
            hit = sb_pattern_match(p, &w->parts, w->at)
                  || (below && !p->negated && sb_pattern_below(p, &w->parts));
        }

        if (hit) {
            match = !p->negated;
        }
    }

    return match;
}


static sb_holds_e
sb_policy_path(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_condition_t *c)
{
    bool  below, match;

    /* what is done to a directory is done to all that is in it */
    below = w->tree && rule->effect != SB_PE_ALLOW && !c->negated;

    match = sb_policy_patterns(w, c, below, false);

    if (!w->request->has_mounts
        && match != sb_policy_patterns(w, c, below, true))
    {
        return SB_H_UNKNOWN;
    }

    return match ? SB_H_YES : SB_H_NO;
}


static sb_holds_e
sb_policy_mode(const sb_policy_condition_t *c, int32_t digits)
{
    size_t    i;
    uint64_t  mode = 0;

    if (digits < 0) {
        /* nobody knows what execd makes of it */
        return SB_H_UNKNOWN;
    }

    for (i = 0; digits; digits /= 10, i += 3) {
        mode |= (uint64_t) (digits % 10) << i;
    }

    for (i = 0; i < c->n; i++) {
        if (mode & c->values[i].low) {
            return SB_H_YES;
        }
    }

    return SB_H_NO;
}


/* Of the text itself, so of paths too that cannot be judged. */
static sb_holds_e
sb_policy_flags(const sb_policy_condition_t *c, sb_str_t path)
{
    size_t    i;
    unsigned  flags = sb_path_flags(path);

    for (i = 0; i < c->n; i++) {
        if (flags & c->values[i].low) {
            return SB_H_YES;
        }
    }

    return SB_H_NO;
}


static sb_holds_e
sb_policy_found(const sb_policy_condition_t *c, const sb_policy_file_t *f)
{
    size_t  i;

    if (!f->has_found) {
        return SB_H_NONE;
    }

    for (i = 0; i < c->n; i++) {
        if (f->found & c->values[i].low) {
            return SB_H_YES;
        }
    }

    return SB_H_NO;
}


/* Those about an archive: asked last, for looking into one takes time. */
static bool
sb_policy_archive(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_file_t *f)
{
    size_t                        i;
    sb_holds_e                    holds;
    const sb_policy_condition_t  *c;

    for (i = 0; i < rule->n; i++) {
        c = &rule->conditions[i];

        if (c->kind < SB_PC_OF_ARCHIVE) {
            continue;
        }

        if (f->archive == SB_POLICY_PENDING) {
            w->pending = true;
            return true;
        }

        holds = sb_policy_inspected(c, f);

        if (!sb_policy_outcome(rule, c, holds)) {
            w->unknown = false;
            return false;
        }

        w->unknown = w->unknown || holds == SB_H_UNKNOWN;
        w->verdict->archive = f->facts;
    }

    return true;
}


/* Do the conditions about a file hold, but for those about an archive?  Those
 * about its path come last: a path that cannot be judged is refused there. */
static bool
sb_policy_plain(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_file_t *f, bool *odd)
{
    bool                          paths = false, outcome;
    size_t                        i;
    sb_holds_e                    holds;
    const sb_policy_condition_t  *c;

    *odd = false;

    for (i = 0; i < rule->n; i++) {
        c = &rule->conditions[i];
        holds = SB_H_NONE;

        switch (c->kind) {

        case SB_PC_PATH:
            paths = true;
            continue;

        case SB_PC_PATH_HAS:
            holds = sb_policy_flags(c, f->path);
            break;

        case SB_PC_FILE_SIZE:
            if (f->has_size) {
                holds = f->size > c->values[0].low ? SB_H_YES : SB_H_NO;
            }

            break;

        case SB_PC_MODE:
            if (f->mode != SB_MODE_NONE) {
                holds = sb_policy_mode(c, f->mode);
            }

            break;

        case SB_PC_CONTENT:
            holds = sb_policy_found(c, f);
            break;

        default:
            if (c->kind >= SB_PC_OF_ARCHIVE
                && f->archive == SB_POLICY_NO_ARCHIVE)
            {
                return false;
            }

            continue;
        }

        if (!sb_policy_outcome(rule, c, holds)) {
            return false;
        }
    }

    if (!paths) {
        return true;
    }

    if (w->odd) {
        *odd = true;
        return true;
    }

    for (i = 0; i < rule->n; i++) {
        c = &rule->conditions[i];

        if (c->kind != SB_PC_PATH) {
            continue;
        }

        outcome = sb_policy_outcome(rule, c, sb_policy_path(w, rule, c));

        if (w->late) {
            w->odd = "The paths take too long to judge: send fewer, or shorter "
                     "ones.";
            *odd = true;
            return true;
        }

        if (!outcome) {
            return false;
        }
    }

    return true;
}


static bool
sb_policy_file(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_file_t *f, bool *odd)
{
    return sb_policy_plain(w, rule, f, odd)
           && (*odd || sb_policy_archive(w, rule, f));
}


/* How far the file is to be looked into: what is behind a limit with which a rule
 * denies it for certain is of no use.  `from`: the first rule that asks. */
static void
sb_policy_most(sb_policy_walk_t *w, sb_policy_file_t *f, size_t from)
{
    bool                          odd;
    size_t                        i;
    uint64_t                     *most;
    const sb_policy_rule_t       *rule;
    const sb_policy_condition_t  *c;

    sb_inspect_most(f->most);

    for (i = from; i < w->policy->n; i++) {
        rule = &w->policy->rules[i];

        if (!w->applies[i] || rule->effect == SB_PE_OBSERVE) {
            continue;
        }

        c = sb_policy_bound(rule);

        if ((rule->effect == SB_PE_DENY && c == NULL)
            || (rule->of_file && !sb_policy_plain(w, rule, f, &odd)))
        {
            continue;
        }

        if (rule->effect == SB_PE_ALLOW || w->late || odd) {
            return;
        }

        most = &f->most[c->kind - SB_PC_ARCHIVE_ENTRIES];
        *most = c->values[0].low < *most ? c->values[0].low : *most;
    }
}


/* --- verdicts --------------------------------------------------------------- */

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
