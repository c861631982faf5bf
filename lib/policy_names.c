#include "policy_names.h"

#include "inspect.h"
#include "policy_int.h"

#include <stdlib.h>


#define SB_NAME_SEGMENTS  256

typedef struct {
    size_t         n, room;
    sb_pattern_t **patterns;
} sb_policy_name_t;

struct sb_policy_names_s {
    size_t            n;
    sb_policy_name_t  conditions[SB_IN_CONDITIONS];
};


void
sb_policy_names_put(const sb_policy_t *policy, sb_frame_writer_t *w)
{
    size_t                        i, k, n;
    const sb_policy_condition_t  *c;

    for (i = 0; i < policy->n; i++) {
        for (k = 0; k < policy->rules[i].n; k++) {
            c = &policy->rules[i].conditions[k];

            if (c->kind != SB_PC_ARCHIVE_PATH) {
                continue;
            }

            sb_frame_put_u64(w, SB_T_CONDITION, c->values[0].pattern->nocase);

            for (n = 0; n < c->n; n++) {
                sb_frame_put(w, SB_T_PATTERN, c->values[n].text);
            }
        }
    }
}


void
sb_policy_names_free(sb_policy_names_t *names)
{
    size_t  i, k;

    if (names == NULL) {
        return;
    }

    for (i = 0; i < names->n; i++) {
        for (k = 0; k < names->conditions[i].n; k++) {
            free(names->conditions[i].patterns[k]);
        }

        free(names->conditions[i].patterns);
    }

    free(names);
}


static bool
sb_policy_names_add(sb_policy_name_t *c, sb_str_t text, bool nocase)
{
    void        *p;
    const char  *why;

    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 4;

        p = realloc(c->patterns, c->room * sizeof(sb_pattern_t *));
        if (p == NULL) {
            return false;
        }

        c->patterns = p;
    }

    if (sb_pattern_parse(&c->patterns[c->n], text, nocase, &why) != SB_OK) {
        return false;
    }

    c->n++;

    return true;
}


sb_policy_names_t *
sb_policy_names_new(const sb_frame_t *f)
{
    bool                nocase = false, ok = true;
    uint16_t            tag;
    sb_str_t            fields = f->fields, value;
    sb_policy_names_t  *names;

    names = calloc(1, sizeof(*names));
    if (names == NULL) {
        return NULL;
    }

    while (ok && sb_field_next(&fields, &tag, &value)) {

        if (tag == SB_T_CONDITION) {
            nocase = sb_value_u64(value, 0);
            ok = names->n++ < SB_IN_CONDITIONS;

        } else if (tag == SB_T_PATTERN) {
            ok = names->n && names->n <= SB_IN_CONDITIONS
                 && sb_policy_names_add(&names->conditions[names->n - 1],
                                        value, nocase);
        }
    }

    if (!ok) {
        names->n = names->n > SB_IN_CONDITIONS ? SB_IN_CONDITIONS : names->n;
        sb_policy_names_free(names);
        return NULL;
    }

    return names;
}


sb_policy_names_t *
sb_policy_names_of(const sb_policy_t *policy)
{
    size_t                        i, k, n;
    sb_policy_names_t            *names;
    const sb_policy_condition_t  *c;

    names = calloc(1, sizeof(*names));
    if (names == NULL) {
        return NULL;
    }

    for (i = 0; i < policy->n; i++) {
        for (k = 0; k < policy->rules[i].n; k++) {
            c = &policy->rules[i].conditions[k];

            if (c->kind != SB_PC_ARCHIVE_PATH) {
                continue;
            }

            names->n++;

            for (n = 0; n < c->n; n++) {
                if (!sb_policy_names_add(&names->conditions[names->n - 1],
                                         c->values[n].text,
                                         c->values[n].pattern->nocase))
                {
                    sb_policy_names_free(names);
                    return NULL;
                }
            }
        }
    }

    return names;
}


uint64_t
sb_policy_names_match(const sb_policy_names_t *names, sb_str_t name,
    bool directory)
{
    bool             hit;
    size_t           i, k, from, to;
    uint64_t         matched = 0;
    sb_str_t         segments[SB_NAME_SEGMENTS];
    sb_path_parts_t  parts = { .segments = segments };

    if (names->n == 0) {
        return 0;
    }

    for (from = 0; from < name.len; from = to + 1) {

        for (to = from; to < name.len && name.data[to] != '/'; to++) {
            /* void */
        }

        if (to == from || (to == from + 1 && name.data[from] == '.')) {
            continue;
        }

        if (parts.n == SB_NAME_SEGMENTS) {
            return UINT64_MAX;
        }

        segments[parts.n++] = sb_str(name.data + from, to - from);
    }

    for (i = 0; i < names->n; i++) {
        hit = false;

        /* the last one that matches decides */

        for (k = 0; k < names->conditions[i].n; k++) {
            if (sb_pattern_match(names->conditions[i].patterns[k], &parts,
                                 directory ? SB_AT_DIRECTORY : SB_AT_FILE))
            {
                hit = !names->conditions[i].patterns[k]->negated;
            }
        }

        matched |= (uint64_t) hit << i;
    }

    return matched;
}
