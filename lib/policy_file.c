/* Conditions about one file of a request: its path, what is in it. */

#include "policy_walk.h"

#include "path.h"

#include <stdlib.h>
#include <time.h>


#define SB_POLICY_PATH_TIME      250000000   /* ns of one verdict's paths */
#define SB_POLICY_PATH_WORK      65536       /* bytes and 64 a pattern, between
                                               two looks at the clock */


/* --- what an operation does to its paths ----------------------------------- */

static const char *
sb_policy_plain_name(const sb_op_t *op)
{
    return strncmp(op->name, "isolated.", 9) == 0 ? op->name + 9 : op->name;
}


sb_at_e
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


bool
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


sb_rc_t
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


bool
sb_policy_file(sb_policy_walk_t *w, const sb_policy_rule_t *rule,
    const sb_policy_file_t *f, bool *odd)
{
    return sb_policy_plain(w, rule, f, odd)
           && (*odd || sb_policy_archive(w, rule, f));
}


void
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
